//! One link: a queue, a transmitter of exact rate and a wire of constant delay, and what is measured
//! there. The simulator and the gateway serve their queues by this code, so that a recording of real
//! packets is repeated by construction.
//!
//! | module | what it holds |
//! |---|---|
//! | [`transmitter`] | bytes to time on the wire, exactly |
//! | [`server`] | what serves a queue: arrivals, departures and timers, each at its time |
//! | [`stats`], [`histogram`] | counters, time-weighted means, distributions |
//! | [`hash`] | the fingerprint of all decisions |
//! | [`columns`] | the names under which all of it stands in results |
//! | [`memory`] | hints to the processor about large tables |

pub mod columns;
pub mod hash;
pub mod histogram;
pub mod memory;
pub mod server;
pub mod stats;
pub mod transmitter;

pub use hash::DecisionHash;
pub use histogram::Histogram;
pub use server::{Exit, Item, Server};
pub use stats::{QueueStats, QueueSummary};
pub use transmitter::Transmitter;

/// In place of a time, ns: not at all.
pub const NEVER: u64 = u64::MAX;
