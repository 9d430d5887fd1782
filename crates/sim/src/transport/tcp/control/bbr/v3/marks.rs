//! Marks of low latency, as Google's kernel has them (google/bbr, branch v3).
//!
//! They count once a round trip of 5 ms or less was seen. Each round alpha moves by 1/16 towards the share of packets
//! that were marked. A round with a mark in which it does not probe leaves 1 − alpha/3 of what may be under way;
//! a probe ends when more than half of the packets are marked, and Startup after two such rounds. In a cycle with
//! marks and without losses the next probe begins as soon as marks have ceased. Retransmissions and acknowledgements
//! are ECN-capable, too.

use crate::transport::tcp::control::Sample;
use crate::transport::tcp::options::MarkRule;

/// Only paths with a round trip up to this have shallow marks, ns.
const MAX_RTT: u64 = 5_000_000;
const GAIN: f64 = 1.0 / 16.0;
const FACTOR: f64 = 1.0 / 3.0;
/// The share of marks that says that a probe went too far, and in how many rounds of Startup.
const THRESH: f64 = 0.5;
const STARTUP_ROUNDS: u32 = 2;

/// What marks have told.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    pub(super) rule: MarkRule,
    /// A round trip that is short enough was seen.
    eligible: bool,
    alpha: f64,
    /// Delivered and marked when alpha was moved last.
    delivered: u32,
    marked: u32,
    /// Rounds in a row with too many marks.
    high_rounds: u32,
    in_round: bool,
    in_cycle: bool,
    pub(super) lossy_cycle: bool,
}

impl Marks {
    pub(super) fn new(rule: MarkRule) -> Self {
        Self {
            rule,
            eligible: false,
            alpha: 1.0,
            delivered: 0,
            marked: 0,
            high_rounds: 0,
            in_round: false,
            in_cycle: false,
            lossy_cycle: false,
        }
    }

    /// A sample that begins a round if it `started`; whether this ends Startup.
    pub(super) fn update(&mut self, s: &Sample, started: bool, min_rtt: u64) -> bool {
        if self.rule != MarkRule::LowLatency {
            return false;
        }
        if started {
            self.begin_round(s, min_rtt);
        }
        self.in_round |= self.eligible && s.marks > 0;
        started && self.high_rounds >= STARTUP_ROUNDS
    }

    fn begin_round(&mut self, s: &Sample, min_rtt: u64) {
        self.eligible |= min_rtt <= MAX_RTT;
        let delivered = s.total - self.delivered;
        if !self.eligible || delivered == 0 {
            return;
        }
        let share = f64::from(s.total_marks - self.marked) / f64::from(delivered);
        self.alpha += GAIN * (share.min(1.0) - self.alpha);
        (self.delivered, self.marked) = (s.total, s.total_marks);
        self.high_rounds = if share >= THRESH { self.high_rounds + 1 } else { 0 };
    }

    /// A sample is dealt with.
    pub(super) fn note(&mut self, s: &Sample) {
        self.in_cycle |= s.marked_since > 0;
        self.lossy_cycle |= s.lost > 0;
    }

    /// What the round that ends leaves of so much under way, if something was marked in it.
    pub(super) fn end_round(&mut self, inflight: f64) -> Option<f64> {
        let marked = std::mem::take(&mut self.in_round);
        marked.then_some(inflight * (1.0 - FACTOR * self.alpha))
    }

    /// A cycle begins.
    pub(super) fn restart(&mut self) {
        (self.in_round, self.in_cycle, self.lossy_cycle) = (false, false, false);
    }

    /// Whether so many of what was delivered were marked that too much is under way.
    pub(super) fn are_many(&self, s: &Sample) -> bool {
        self.eligible && f64::from(s.marked_since) > THRESH * f64::from(s.delivered)
    }

    /// Whether this cycle had marks and no losses, and no mark was reported for a round trip.
    pub(super) fn have_ceased(&self, s: &Sample) -> bool {
        self.eligible && self.in_cycle && !self.lossy_cycle && s.calm
    }
}
