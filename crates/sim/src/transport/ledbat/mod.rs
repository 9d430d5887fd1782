//! LEDBAT: low extra delay background transport (RFC 6817). A window that aims at a queueing delay, so that whoever
//! fills the queue has the link for itself.
//!
//! ```text
//! an answer:   delay := when the packet came − when it was sent
//!              base := the least delay of the last ten minutes;  current := the least of the last four
//!              off := (target − (current − base)) / target
//!              window += gain · off / window;  at most a packet more than was under way;  at least 2
//! a loss or a mark, once a round trip:  window/2, at least 2
//! no answer for a timeout (RFC 6298):   window := 1, and the timeout doubles
//! ```
//!
//! §2.4.2. The receiver answers each packet. A packet is lost if one that was sent three or more later has come;
//! nothing is sent again. A mark counts as a loss (ours). There is no slow start, which the RFC leaves free, no
//! pacing and no skew of clocks. Both ends have the same clock, which changes nothing: delays are only subtracted.

mod delay;
mod ends;
mod sender;
#[cfg(test)]
mod tests;

use scenario::traffic::{self as keys, TrafficSpec};

pub(crate) use ends::Ends;

/// What the flows of a group share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// How long packets are to wait, ns.
    pub target: f64,
    /// Packets by which the window grows in a round trip without a queue.
    pub gain: f64,
    /// Whether packets are ECN-capable.
    pub ecn: bool,
}

impl Options {
    pub(crate) fn new(spec: &TrafficSpec, ledbat: &keys::Ledbat, _: u32) -> Self {
        let target = ledbat.target.0.as_nanos() as f64;
        Self { target, gain: ledbat.gain, ecn: spec.group.ecn }
    }
}
