#![doc = include_str!("../README.md")]
//!
//! # A packet's way through the crate
//!
//! ```text
//! arrive -> Qdisc::enqueue -> Policy::on_arrival -> (mark | drop | admit) -> ring
//!   ring -> Qdisc::dequeue -> Policy::on_departure -> (send | mark | drop) -> transmitter
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`time`], [`units`], [`rng`], [`packet`] | the vocabulary: instants, rates, sizes, probabilities, random streams, packet metadata |
//! | [`hash`] | the keyed hash of flows, cut into bins |
//! | [`flow_table`] | state of the flows that are present, in a table of fixed size |
//! | [`param`] | how an algorithm declares its parameters once: defaults, ranges, docs, sources |
//! | [`framing`] | what a packet takes on the wire beside its own bytes |
//! | [`context`] | what algorithms and queues both speak of: events, surroundings, causes |
//! | [`policy`] | the trait of an algorithm that advises one FIFO, and one file for each algorithm |
//! | [`fifo`] | the one FIFO: limits, accounting, marking, victims |
//! | [`fair`] | many queues that take turns, each advised by a policy |
//! | [`dual`] | two queues for two kinds of traffic, whose algorithms are coupled |
//! | [`filter`] | the trait of an algorithm that stands before a queue, and one file for each |
//! | [`docsis`] | a cable modem around a queue: requests, grants, fragments |
//! | [`told`] | a queue that learns each rate of its link |
//! | [`tuned`] | a queue whose parameters change at given times |
//! | [`watched`] | a queue whose every call a watcher sees |
//! | [`own`] | an algorithm that is brought along while the program runs |
//! | [`qdisc`] | the trait of whatever owns packets, and the accounting that all share |
//! | [`response`] | what TCP sends at a given loss |
//! | [`any`] | choice by name: the list of all algorithms |
//!
//! To add an algorithm, write one file in `policy/`, and its name there, in the `use` of [`any`] and in its
//! list.
#![no_std]

#[doc(hidden)]
pub extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod about;
pub mod any;
mod bucket;
pub mod context;
pub mod docsis;
pub mod dual;
pub mod fair;
pub mod fifo;
pub mod filter;
pub mod flow_table;
pub mod framing;
pub mod hash;
pub mod own;
pub mod packet;
pub mod param;
pub mod policy;
pub mod qdisc;
pub mod response;
mod ring;
pub mod rng;
pub mod shaper;
pub mod time;
pub mod told;
pub mod tuned;
pub mod units;
pub mod watched;

pub use about::{About, Signal};
pub use any::{AnyQdisc, CATALOG, Visitor};
pub use context::{Backlog, Cause, Cx, Env, State, Tally};
pub use fifo::Fifo;
pub use framing::Framing;
pub use hash::FlowHash;
pub use packet::{Ack, Carried, DsField, Ecn, FlowKey, Label, Meta};
pub use policy::{Arrival, Departure, Policy, Victim, View};
pub use qdisc::{Aggregate, Counters, Discipline, Outlet, Qdisc};
pub use rng::{Coin, Rng};
pub use time::{Duration, Instant};
pub use units::{Limit, Measure, Rate, Size};
