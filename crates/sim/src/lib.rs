//! A deterministic packet-level simulator for active queue management.
//!
//! Every packet's serialisation, propagation and queueing is simulated, at integer nanoseconds.
//! The same scenario and seed give the same decisions on every machine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`packet`] | packets |
//! | `event` | what happens next |
//! | [`network`] | links and managed queues joined by paths |
//! | [`transport`] | how data is carried: a folder a transport |
//! | [`app`] | what is carried |
//! | [`simulation`] | the loop |
//! | [`autorate`] | algorithms that set the rates of shapers, brought along |
//! | [`control`] | congestion controllers that are brought along |
//! | [`stack`] | protocol stacks that are brought along |
//! | [`capture`], `graphml` | the captures and graphs that a scenario names |
//! | `watch` | what congestion controls do, looked at from outside |
//! | `setup`, [`run`], [`results`] | from a scenario to its results |

pub mod app;
pub mod autorate;
pub mod capture;
pub mod control;
mod event;
mod graphml;
pub mod network;
pub mod packet;
pub mod parts;
pub mod results;
pub mod run;
mod series;
mod setup;
pub mod simulation;
pub mod stack;
pub mod transport;
mod watch;

pub use ::scenario::{Scenario, ScenarioError};
pub use run::{Outcome, Run};
