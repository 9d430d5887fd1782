//! BBR: a model of the path, its bandwidth and its round trip, says how fast to send and how much may
//! be under way. [`v3`] is that of draft-ietf-ccwg-bbr (August 2026), [`v1`] that of
//! draft-cardwell-iccrg-bbr-congestion-control-00, which Linux ships. Here is what both estimate by.
//!
//! Rates are in packets a ns, volumes in packets, times in ns. Where a sender makes bursts for the
//! hardware to cut up, the window has room for three of them; the room is that of the drafts also where
//! every packet is sent by itself, so that the windows are theirs.

mod v1;
mod v3;

pub use v1::Bbr1;
pub use v3::Bbr;

use std::collections::VecDeque;

use super::Sample;
use crate::transport::tcp::options::most_in_a_burst;
use crate::watch::{Value, Values};

/// A window has at least so many packets, so that delayed acknowledgements go on.
const LEAST_WINDOW: f64 = 4.0;
/// The share of the estimated bandwidth that is used: 1 % below, so that queues go.
const MARGIN: f64 = 0.99;
/// How long the window is held down to measure the round trip, ns.
const PROBE_RTT_FOR: u64 = 200_000_000;
/// The round trip before there is a sample, ns.
const NOMINAL_RTT: u64 = 1_000_000;
/// A burst is what a millisecond sends, ns.
const BURST: f64 = 1e6;

/// The largest value of the last `length` slots of some virtual time.
#[derive(Clone, Default, Debug)]
struct MaxFilter {
    /// Slots ascending, values descending.
    values: VecDeque<(u32, f64)>,
}

impl MaxFilter {
    fn update(&mut self, slot: u32, value: f64, length: u32) {
        while self.values.back().is_some_and(|&(_, old)| old <= value) {
            self.values.pop_back();
        }
        self.values.push_back((slot, value));
        while self.values.front().is_some_and(|&(old, _)| slot - old >= length) {
            self.values.pop_front();
        }
    }

    /// 0 before the first value.
    fn max(&self) -> f64 {
        self.values.front().map_or(0.0, |&(_, value)| value)
    }
}

/// Round trips counted by packets: one ends when something arrives that was sent after it began.
#[derive(Clone, Default, Debug)]
struct Rounds {
    count: u32,
    /// The last acknowledgement began one.
    started: bool,
    next: u32,
}

impl Rounds {
    fn update(&mut self, sample: &Sample) {
        self.started = sample.prior_delivered >= self.next;
        if self.started {
            self.count += 1;
            self.begin(sample.total);
        }
    }

    /// Another begins, with `delivered` packets.
    fn begin(&mut self, delivered: u32) {
        self.next = delivered;
    }

    fn values(&self, values: Values<'_>) {
        values("round_count", Value::Number(self.count.into()));
    }
}

/// Whether more speed brings no more: three rounds in which the rate grew by less than a quarter.
#[derive(Clone, Default, Debug)]
struct FullPipe {
    /// Ever.
    reached: bool,
    /// Since it was asked last.
    now: bool,
    rate: f64,
    rounds: u8,
}

impl FullPipe {
    /// A round ends, with `rate`.
    fn update(&mut self, rate: f64) {
        if rate >= self.rate * 1.25 {
            return self.restart(rate);
        }
        self.rounds += 1;
        self.now = self.rounds >= 3;
        self.reached |= self.now;
    }

    fn restart(&mut self, rate: f64) {
        (self.now, self.rate, self.rounds) = (false, rate, 0);
    }

    fn values(&self, values: Values<'_>) {
        values("full_bw", Value::Rate(self.rate));
        values("full_bw_count", Value::Number(self.rounds.into()));
        values("full_bw_now", Value::flag(self.now));
        values("full_bw_reached", Value::flag(self.reached));
    }
}

/// By how much acknowledgements run ahead of the estimated bandwidth when they come in bursts.
#[derive(Clone, Default, Debug)]
struct Aggregation {
    since: u64,
    acked: f64,
    most: MaxFilter,
}

impl Aggregation {
    fn update(&mut self, sample: &Sample, window: f64, bw: f64, round: u32, length: u32) {
        let mut expected = bw * (sample.now - self.since) as f64;
        if self.acked <= expected {
            self.restart(sample.now);
            expected = 0.0;
        }
        self.acked += f64::from(sample.newly);
        self.most.update(round, (self.acked - expected).min(window), length);
    }

    /// The interval begins anew. The draft's HandleRestartFromIdle() sets only its begin: what was acknowledged before
    /// the pause would then count as come at once, up to a whole window for ten rounds. Here it is forgotten (ours).
    fn restart(&mut self, now: u64) {
        (self.acked, self.since) = (0.0, now);
    }
}

/// The stay in which the round trip is measured, with little under way.
#[derive(Clone, Default, Debug)]
struct ProbeRtt {
    /// When it may end; 0: more is under way.
    until: u64,
    round_done: bool,
}

impl ProbeRtt {
    /// An acknowledgement: whether it may end. It takes [`PROBE_RTT_FOR`] and a round from when no more
    /// than `most` was under way.
    fn is_over(&mut self, sample: &Sample, rounds: &mut Rounds, most: f64) -> bool {
        if self.until == 0 {
            if f64::from(sample.in_flight) <= most {
                *self = Self { until: sample.now + PROBE_RTT_FOR, round_done: false };
                rounds.begin(sample.total);
            }
            return false;
        }
        self.round_done |= rounds.started;
        self.round_done && self.time_is_over(sample.now)
    }

    fn time_is_over(&self, now: u64) -> bool {
        self.until != 0 && now > self.until
    }
}

/// The phases that were entered since somebody looked, the last one lowest: four bits each, so that of more
/// than eight the first are forgotten.
#[derive(Clone, Copy, Default, Debug)]
struct Trail(u32);

impl Trail {
    fn enter(&mut self, phase: u8) {
        self.0 = self.0 << 4 | (u32::from(phase) + 1);
    }

    /// In order; none is left.
    fn take(&mut self) -> impl Iterator<Item = u8> {
        let trail = std::mem::take(&mut self.0);
        let each = (0..8).rev().map(move |place| trail >> (4 * place) & 0xf);
        each.filter(|phase| *phase > 0).map(|phase| phase as u8 - 1)
    }
}

/// The pacing rate: it grows only, until the pipe was full once.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    /// Packets a ns.
    rate: f64,
    /// Bytes of a packet.
    packet: f64,
}

impl Pacing {
    fn new(packet: f64) -> Self {
        Self { rate: 0.0, packet }
    }

    fn set(&mut self, rate: f64, full: bool) {
        if full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// ns to the next packet; never more than a round trip, so that a low estimate can be mended (ours).
    fn gap(self, initial: f64, srtt: u64) -> u64 {
        let rtt = if srtt == 0 { NOMINAL_RTT } else { srtt };
        let rate = if self.rate > 0.0 { self.rate } else { initial / rtt as f64 };
        ((1.0 / rate).round() as u64).min(rtt)
    }

    /// Packets of a burst, at least `least`, at most 64 KB.
    fn burst(self, least: f64) -> f64 {
        (self.rate * BURST).min(most_in_a_burst(self.packet)).max(least)
    }
}

#[cfg(test)]
mod tests;
