//! SRED: stabilized RED (Ott, Lakshman, Wong 1999, "OLW99"; Feng02 §V.B).
//!
//! SRED estimates the number of flows without a table of them. It keeps a list of packets that came
//! lately, the zombies, and compares each arriving packet with one of them drawn at random: how often
//! are both of one flow? n equal flows hit once in n times. In our words:
//!
//! ```text
//! a packet arrives, the list is not full:  add its flow to the list; there is no hit
//! a packet arrives, the list is full:
//!     draw a zombie; it is of the same flow:  a hit, H := 1
//!     else H := 0, and with probability `overwrite` the zombie becomes the packet's flow
//!     P := (1 − α)·P + α·H                              (1/P estimates the number of flows)
//! p_sred := p_max if q ≥ B/3;  p_max/4 if B/6 ≤ q < B/3;  0 if q < B/6
//! p_zap := p_sred · min(1, 1/(256·P)²)                                          (simple SRED)
//! p_zap := p_sred · min(1, 1/(256·P)²) · (1 + H/P)                                (full SRED)
//! signal the packet with probability p_zap
//! ```
//!
//! q is the queue and B the buffer. Loss grows with the square of the number of flows up to 256,
//! which keeps the queue of TCP flows where it is; beyond 256 it is p_sred. The factor 1 + H/P
//! signals flows that hit often, which are those with more than their share.
//!
//! Points where the paper leaves a choice:
//! - α is overwrite/M for a list of M: the time in which the list forgets.
//! - While P = 0 nothing is known of the flows, and there are taken to be many: p_zap = p_sred.
//! - The list and P know all packets that arrive, also those that find no room.
//! - The paper's zombies carry a count of hits and a time besides, with which one might look for
//!   flows that misbehave. No decision of SRED needs them, and they are left out.

use alloc::vec::Vec;

use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family, Signal};
use crate::context::State;
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, Mode, choice, params};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::Measure;

/// What sred tells of itself.
pub const ABOUT: About = About {
    name: "sred",
    family: Family::Flows,
    summary: "Signals by the queue and by an estimate of the number of flows.",
    source: "OLW99; Feng02 §V.B",
    rule: "SRED signals with p_zap, which grows with the queue in three steps and with the square \
        of the estimated number of flows, 1/hits (OLW99)",
    signals: &[
        Signal {
            name: "hits",
            unit: "0 … 1",
            doc: "frequency of hits among the zombies; 1/hits estimates the number of flows",
        },
        Signal {
            name: "p_zap",
            unit: "0 … 1",
            doc: "signalling probability of a packet that does not hit",
        },
    ],
    live: &["overwrite", "alpha", "max_p"],
    ..About::NEW
};

params! {
    /// Parameters of SRED.
    pub struct SredConfig {
        /// Length of the list of zombies (M).
        zombies: u32 = 1000, in 1..=1_000_000, "OLW99 §2";
        /// Probability that a zombie which was not hit is overwritten (p).
        overwrite: f64 = 0.25, in 0.001..=1.0, "OLW99 §2";
        /// Weight of an arrival in the frequency of hits (α); `none`: overwrite/zombies.
        alpha: Option<f64> = None, in 1e-9..=1.0, "OLW99 §2";
        /// Signalling probability with a third of the buffer queued and many flows.
        max_p: f64 = 0.15, in 0.0..=1.0, "OLW99 §3";
        /// Whether a packet that hits runs a larger risk.
        variant: Variant = Variant::Full, "OLW99 §3, §4";
        /// Whether the queue is counted in packets or bytes.
        mode: Mode = Mode::Packets, "OLW99 (not given)";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "Feng02 §III.B";
    }
}

choice! {
    /// Whether a packet that hits runs a larger risk.
    pub enum Variant {
        /// It does.
        Full = "full",
        /// It does not.
        Simple = "simple",
    }
}

/// The SRED policy.
#[derive(Clone, Debug)]
pub struct Sred {
    config: SredConfig,
    alpha: f64,
    measure: Measure,
    /// The buffer in `measure`.
    buffer: f64,
    /// The answer for a packet that chance picked.
    signal: Arrival,
    /// Grows to its capacity, and stays.
    zombies: Vec<FlowKey>,
    /// Frequency of hits (P), [0, 1].
    hits: f64,
    /// p_sred at the last arrival.
    p_sred: f64,
}

impl Sred {
    /// Compares a packet with a zombie: whether it hits.
    #[inline]
    fn meet(&mut self, flow: FlowKey, rng: &mut Rng) -> bool {
        if self.zombies.len() < self.config.zombies as usize {
            self.zombies.push(flow);
            return false;
        }
        let zombie = &mut self.zombies[rng.below(self.config.zombies as usize)];
        let hit = *zombie == flow;
        if !hit && rng.chance(self.config.overwrite) {
            *zombie = flow;
        }
        self.hits += self.alpha * (f64::from(u8::from(hit)) - self.hits);
        hit
    }
}

impl Policy for Sred {
    type Config = SredConfig;
    type Tag = ();

    fn new(c: &SredConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let measure = c.mode.into();
        Ok(Self {
            alpha: c.alpha.unwrap_or(c.overwrite / f64::from(c.zombies)),
            measure,
            buffer: env.limit.in_measure(measure, env.mean_packet),
            signal: Arrival::early(c.ecn),
            zombies: Vec::with_capacity(c.zombies as usize),
            hits: 0.0,
            p_sred: 0.0,
            config: c.clone(),
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        let zombies = core::mem::take(&mut self.zombies);
        *self = Self { zombies, hits: self.hits, p_sred: self.p_sred, ..with };
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let hit = self.meet(pkt.flow, cx.rng) && self.config.variant == Variant::Full;
        self.p_sred = p_sred(q.size(self.measure), self.buffer, self.config.max_p);
        if cx.rng.chance(p_zap(self.p_sred, self.hits, hit)) { self.signal } else { Arrival::Admit }
    }

    fn state(&self) -> State {
        State::of::<Self>(self.zombies.capacity() * size_of::<FlowKey>())
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("hits", self.hits);
        sink("p_zap", p_zap(self.p_sred, self.hits, false));
    }
}

/// The part of the probability that goes with the queue (OLW99 §3).
#[inline]
fn p_sred(queue: f64, buffer: f64, max_p: f64) -> f64 {
    if queue >= buffer / 3.0 {
        max_p
    } else if queue >= buffer / 6.0 {
        max_p / 4.0
    } else {
        0.0
    }
}

/// The probability of a packet, with a frequency of `hits` and for a `hit` of its own (OLW99 §3, §4).
#[inline]
fn p_zap(p_sred: f64, hits: f64, hit: bool) -> f64 {
    let many = 256.0 * hits;
    let p = if many > 1.0 { p_sred / (many * many) } else { p_sred };
    if hit { (p * (1.0 + 1.0 / hits)).min(1.0) } else { p }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Cause;
    use crate::policy::lab::{Fate, Lab};

    #[test]
    fn p_sred_by_hand() {
        for (q, expected) in [(0.0, 0.0), (9.0, 0.0), (10.0, 0.05), (19.0, 0.05), (20.0, 0.2)] {
            assert!((p_sred(q, 60.0, 0.2) - expected).abs() < 1e-12, "{q}");
        }
    }

    #[test]
    fn p_zap_by_hand() {
        for (hits, hit, expected) in [
            (0.0, false, 0.16),         // nothing known: many flows
            (1.0 / 512.0, false, 0.16), // 512 flows: more than 256 are as 256
            (1.0 / 256.0, false, 0.16),
            (1.0 / 128.0, false, 0.04),        // (128/256)²
            (1.0 / 16.0, false, 0.16 / 256.0), // (16/256)²
            (1.0 / 16.0, true, 0.16 / 256.0 * 17.0),
            (1.0 / 512.0, true, 1.0), // 0.16·513
        ] {
            assert!((p_zap(0.16, hits, hit) - expected).abs() < 1e-12, "{hits} {hit}");
        }
    }

    /// A link that is never busy, so that nothing is signalled, and packets of `flow(i)`.
    fn frequency(packets: u64, flow: impl Fn(u64) -> u64) -> f64 {
        let mut lab = Lab::<Sred>::new(100, &[]);
        for i in 0..packets {
            assert_eq!(lab.arrive_from(flow(i)), Fate::Queued);
            lab.depart();
        }
        lab.signal("hits")
    }

    /// 1/P is the number of flows: with packets in turn each zombie is any of n flows. P is an
    /// average over about 4000 arrivals, so its σ is about √(P/8000): at n = 20, 0.0025 of 0.05. The
    /// band is 4 σ.
    #[test]
    fn hits_tell_how_many_flows_there_are() {
        assert_eq!(frequency(1000, |_| 7), 0.0, "the list fills");
        assert!((frequency(40_000, |_| 7) - 1.0).abs() < 0.001);
        assert!((frequency(40_000, |i| i % 20) - 0.05).abs() < 0.01);
    }

    /// One flow sends half of the packets, 100 others the rest: P is ½² + 100·(1/200)² = 0.2525, of
    /// which nearly all is the large flow's. σ as above: 0.0056; 4 σ.
    #[test]
    fn a_large_flow_makes_the_hits() {
        let hits = frequency(40_000, |i| if i % 2 == 0 { 1000 } else { i / 2 % 100 });
        assert!((hits - 0.2525).abs() < 0.023, "{hits}");
    }

    #[test]
    fn nothing_is_signalled_below_a_sixth_of_the_buffer() {
        let settings = [("max_p", "1"), ("ecn", "false"), ("zombies", "1")];
        let mut lab = Lab::<Sred>::new(12, &settings);
        // Each packet is of a flow of its own: P = 0.
        (0..2).for_each(|flow| assert_eq!(lab.arrive_from(flow), Fate::Queued));
        let fates: std::vec::Vec<Fate> = (2..200).map(|flow| lab.arrive_from(flow)).collect();
        // From 2 of 12 on a quarter of them is dropped, and at 4 of 12 all.
        assert_eq!(lab.backlog().packets, 4);
        assert!(fates[10..].iter().all(|&fate| fate == Fate::Dropped(Cause::Early)));
    }
}
