//! The queue disciplines of `aqm` for programs in C: one opaque queue, whose packets are cookies.
//!
//! The interface is documented in `include/bluewater_aqm.h`, which is written by hand. A test compares its
//! declarations with those of [`ffi`].

pub mod ffi;
mod queue;

pub use queue::{Packet, Queue, Stats};
