//! A deterministic packet-level simulator for active queue management.
//!
//! Every packet's serialisation, propagation and queueing is simulated, at integer nanoseconds.
//! The same scenario and seed give the same decisions on every machine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`packet`], [`link`] | packets; queue, transmitter and wire |
//! | [`network`] | links joined by paths |
//! | [`tcp`], [`tfrc`], [`app`] | transports and what they carry |
//! | [`simulation`] | the loop, and web sessions |
//! | [`metrics`], [`hash`] | what is measured |
//! | [`capture`] | the captures that a scenario names |
//! | [`run`], [`table`] | from a scenario to its results |

pub mod app;
pub mod capture;
mod engine;
mod fold;
pub mod hash;
pub mod link;
mod memory;
pub mod metrics;
pub mod network;
pub mod packet;
mod ring;
pub mod run;
pub mod simulation;
pub mod table;
pub mod tcp;
pub mod tfrc;
mod wheel;

pub use ::scenario::{Scenario, ScenarioError};
pub use run::{Outcome, Run};
