//! TFRC, TCP-friendly rate control (RFC 5348): a sender paces its packets at the rate that TCP would
//! have at the *loss event rate* that the receiver measures.
//!
//! ```text
//! data:     sequence number, time of sending, the sender's round-trip time R           (§3.2.1)
//! feedback, once a round trip and at each new loss event:                              (§6.2)
//!           the time that it answers to, loss event rate p, receive rate X_recv        (§3.2.2)
//!
//! receiver: losses within a round trip are one event; p = 1 / weighted mean of the packets
//!           between the last eight events                                              (§5)
//! sender:   p = 0: X doubles once a round trip, up to 2·X_recv
//!           p > 0: X = min(equation(p, R), 2·X_recv)                                   (§4.3)
//!           no feedback for max(4 R, two packets' time): about half of that            (§4.4)
//! ```
//!
//! Packets are paced at the rate X, and more slowly while the round trip takes longer than usual (§4.5).
//! Rates are in packets per second: all packets of a flow have one length. What there is to send has
//! no end, so that no interval is data-limited. Timers are exact, so that none is made up for (§4.6).
//! `docs/traffic.md` has what is otherwise, or open in the RFC, section by section.

mod clock;
mod ends;
pub mod loss;
pub mod receiver;
pub mod sender;

use scenario::traffic::{self as keys, TrafficSpec};

pub(crate) use ends::Ends;

/// What all flows of a group of traffic share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Whether data packets are ECN-capable; a mark counts as a loss (§3.2.1).
    pub ecn: bool,
    /// Whether old intervals count less in a long one without loss (§5.5).
    pub discounting: bool,
    /// The timeout in the sender's equation (§3.1).
    pub timeout: Timeout,
}

/// The timeout in the sender's equation (§3.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Timeout {
    /// Four round trips, as recommended.
    RoundTrips,
    /// So many ns.
    Fixed(u64),
    /// That of a TCP whose clock ticks each so many ns.
    Clock(u64),
}

impl Options {
    pub(crate) fn new(spec: &TrafficSpec, tfrc: &keys::Tfrc, _: u32) -> Self {
        let timeout = match (tfrc.equation_clock, tfrc.equation_timeout) {
            (Some(tick), _) => Timeout::Clock(tick.0.as_nanos()),
            (None, Some(fixed)) => Timeout::Fixed(fixed.0.as_nanos()),
            (None, None) => Timeout::RoundTrips,
        };
        Self { ecn: spec.group.ecn, discounting: tfrc.discounting, timeout }
    }
}

/// Three packets after a missing one mean loss (§5.1).
const DUPLICATES: usize = 3;
/// Intervals that are averaged, and their weights (§5.4).
const INTERVALS: usize = 8;
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// The least that older intervals are discounted to (§5.5).
const LEAST_DISCOUNT: f64 = 0.25;
/// The least rate after the first loss event, packets per round trip (§6.3.1).
const LEAST_FIRST_RATE: f64 = 0.5;
/// The longest time between two packets, s: t_mbi (§4.3).
const LONGEST_GAP: f64 = 64.0;
/// Time to wait for the first feedback, ns (§4.2).
const FIRST_WAIT: u64 = 2_000_000_000;
/// Weight of the past in the round-trip time, q (§4.3).
const RTT_WEIGHT: f64 = 0.9;

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn nanoseconds(s: f64) -> u64 {
    (s * 1e9) as u64
}
