//! SCReAM, self-clocked rate adaptation for multimedia (RFC 8298): an encoder whose rate follows what
//! the network takes, a queue at the sender, and a congestion window that follows delay.
//!
//! ```text
//! encoder: a frame each 1/frames s, of target / frames bits -> queue -> paced, within the window
//! report:  highest number, when it came, which of the 32 before it did not, how many were marked
//! window:  up while the queueing delay is below the target, down above it; × 0.8 at a loss event,
//!          × 0.9 at a mark, once a round trip                                          (§4.1.2)
//! target:  0.1 s, up to 0.4 s where others fill the queue                              (§4.1.2.3)
//! rate:    each 0.2 s, by what is delivered, what waits at the sender, and the trend of the delay
//!                                                                                      (§4.1.3)
//! ```
//!
//! Numbers of sections are the RFC's. `docs/traffic.md` has what is left out, or open there.

mod delay;
mod ends;
mod rate;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use scenario::traffic::{self as keys, TrafficSpec};

pub(crate) use ends::Ends;

/// What all flows of a group of traffic share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Whether packets are ECN-capable.
    pub ecn: bool,
    /// The least and the greatest rate of the encoder, and that at which it starts, bit/s.
    pub rates: [f64; 3],
    /// Time between two frames, ns.
    pub frame: u64,
    /// When there are none, from and to, ns.
    pub pause: [u64; 2],
    /// Whether the delay target makes room beside others that fill the queue (§4.1.2.3).
    pub compete: bool,
}

impl Options {
    pub(crate) fn new(spec: &TrafficSpec, scream: &keys::Scream, _: u32) -> Self {
        let rate = |rate: aqm::Rate| rate.bits_per_second() as f64;
        Self {
            ecn: spec.group.ecn,
            rates: [scream.min_rate.0, scream.max_rate.0, scream.start_rate.0].map(rate),
            frame: 1_000_000_000 / u64::from(scream.frames),
            pause: scream.pause.map_or([0; 2], |times| times.map(|time| time.0.as_nanos())),
            compete: scream.compete,
        }
    }
}

/// Packets before the highest of which a report tells whether they came.
const TOLD: u32 = 32;
/// Length of a report with the headers of UDP and IP, bytes (§4.2.1, Figure 2).
const REPORT: u16 = 72;

/// What the receiver says (§4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    /// The highest number that came.
    pub(crate) highest: u32,
    /// When that came, ns.
    pub(crate) arrived: u64,
    /// Bit k: number `highest` − 1 − k has not come.
    pub(crate) missing: u32,
    /// How many came marked so far; wraps.
    pub(crate) marks: u16,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
