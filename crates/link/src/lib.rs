//! One link: a queue, a transmitter of exact rate and a wire of constant delay, and what is measured
//! there. The simulator and the gateway serve their queues by this code, so that a recording of real
//! packets is repeated by construction.
//!
//! | module | what it holds |
//! |---|---|
//! | [`transmitter`], [`varying`] | bytes to time on the wire, exactly, at a rate that varies or not |
//! | [`impair`] | what a wire does to packets: jitter, loss, copies, damage |
//! | [`steps`] | values over time |
//! | [`server`] | what serves a queue: arrivals, departures and timers, each at its time |
//! | [`stats`], [`histogram`] | counters, time-weighted means, distributions |
//! | [`hash`] | the fingerprint of all decisions |
//! | [`columns`] | the names under which all of it stands in results |
//! | [`memory`] | hints to the processor about large tables |

pub mod columns;
pub mod hash;
pub mod histogram;
pub mod impair;
pub mod memory;
pub mod server;
pub mod stats;
pub mod steps;
pub mod transmitter;
pub mod varying;

pub use hash::DecisionHash;
pub use histogram::{Fine, Histogram};
pub use impair::{Impair, Impaired, Impairments};
pub use server::{Exit, Item, Server};
pub use stats::{QueueStats, QueueSummary};
pub use steps::Steps;
pub use transmitter::{Sending, Transmitter};

/// In place of a time, ns: not at all.
pub const NEVER: u64 = u64::MAX;
