//! CSFQ: core-stateless fair queueing (Stoica, Shenker, Zhang, SSZ98; Mahajan01 §2), on one router.
//!
//! Each flow's rate r is measured, and a flow above the fair rate α loses the share of its packets
//! that brings it down to α. α is what makes the accepted traffic fill the link. In our words:
//!
//! ```text
//! rate of a flow, a packet of l bits after a time T:  r := (1 − e^(−T/K))·l/T + e^(−T/K)·r
//! a packet arrives: its flow has r; drop it with probability max(0, 1 − α/r)      (SSZ98 Fig. 3)
//!     A := the same average over all arrivals;  F := over those accepted                (K_α)
//!     A ≥ C, the link's rate:  congested; after each K_c:  α := α·C/F
//!     A < C:                   not congested; after each K_c:  α := the largest r in that time
//! the buffer overflows:        α := 0.99·α;  from one window to the next α loses 25 % at most
//! a link that is not congested stays so while less than a threshold is queued
//! ```
//!
//! In SSZ98 routers at the edge measure r and write it into each packet, and those in the core read
//! it; a router writes α over a larger r. One router alone measures itself, and nobody reads what it
//! would write.
//!
//! Points where the paper leaves a choice:
//! - Fig. 3 judges a flow by the α of the last window also while the link is not congested, so that
//!   one that speeds up loses packets. By the text (§2.1) an uncongested link drops nothing:
//!   `only_congested`.
//! - A flow's first packet counts with T = 0, r = l/K. α begins at C. The r of the packet that ends
//!   an uncongested window belongs to it (else α would be 0 after a silence).
//! - Accepted is what is not dropped by probability, also when the buffer has no room for it.
//! - Rates are kept for a fixed number of flows, in sets of eight under a keyed hash; a new flow takes
//!   the place of the one in its set that has been silent for longest.
//! - Drops are never marks: a mark does not bring a flow's rate down to α.

use alloc::boxed::Box;
use alloc::vec;

use super::{Arrival, Cx, Env, Policy, Victim, View};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::{Cause, State};
use crate::hash::FlowHash;
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Size;

/// What csfq tells of itself.
pub const ABOUT: About = About {
    name: "csfq",
    family: Family::Flows,
    summary: "Drops of each flow what it sends above the fair rate.",
    source: "SSZ98; Mahajan01 §2",
    rule: "CSFQ drops a packet with probability 1 − fair_rate/r, where r is its flow's rate, so \
        that every flow keeps at most the fair rate (SSZ98 Fig. 3)",
    causes: &[(Cause::Early, "its flow sends more than the fair rate")],
    unmarked: Unmarked { coin: "CSFQ never marks", rule: "CSFQ never marks" },
    signals: &[
        Signal { name: "fair_rate", unit: "bit/s", doc: "fair rate of a flow" },
        Signal { name: "arrival_rate", unit: "bit/s", doc: "arriving traffic" },
        Signal { name: "accepted_rate", unit: "bit/s", doc: "traffic not dropped by probability" },
    ],
    live: &["k", "k_alpha", "k_c", "threshold", "overflow_factor", "least_factor"],
    ..About::NEW
};

params! {
    /// Parameters of CSFQ.
    pub struct CsfqConfig {
        /// Averaging time of a flow's rate (K).
        k: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), "SSZ98 §4";
        /// Averaging time of the arriving and of the accepted traffic (K_α).
        k_alpha: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), "SSZ98 §4";
        /// Time between two changes of the fair rate (K_c).
        k_c: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), "SSZ98 §4";
        /// Queue from which on a link can become congested.
        threshold: Size = Size::OfBuffer(0.5), "SSZ98 §2.2";
        /// What the fair rate is multiplied by when the buffer overflows.
        overflow_factor: f64 = 0.99, in 0.0..=1.0, "SSZ98 §2.2";
        /// The least that the fair rate is multiplied by from one change to the next.
        least_factor: f64 = 0.75, in 0.001..=1.0, "SSZ98 §2.2";
        /// Flows whose rate is remembered, rounded up to a multiple of eight.
        flows: u32 = 1024, in 1..=1_000_000, "value ours";
        /// Whether packets are dropped only while the link is congested.
        only_congested: bool = false, "SSZ98 Fig. 3; true: §2.1";
    }
}

/// Flows in a set.
const WAYS: usize = 8;

/// A rate, averaged over time.
#[derive(Clone, Copy, Debug)]
struct Average {
    /// In bit/s.
    rate: f64,
    last: Instant,
}

impl Average {
    /// A packet of `len` bytes, where `rule` averages.
    #[inline]
    fn count(&mut self, len: u32, now: Instant, rule: Averaging) {
        self.count_weighed(len, now, rule, rule.weight(now.since(self.last)));
    }

    /// A packet of `len` bytes, where the rule's weight for the time since the last is known.
    #[inline]
    fn count_weighed(&mut self, len: u32, now: Instant, rule: Averaging, weight: f64) {
        let t = now.since(self.last).as_secs_f64();
        self.rate = rule.averaged(self.rate, 8.0 * f64::from(len), t, weight);
        self.last = now;
    }

    /// Whether there was a packet.
    #[inline]
    fn is_seen(&self) -> bool {
        self.rate > 0.0
    }
}

/// An averaging time in seconds.
#[derive(Clone, Copy, Debug)]
struct Averaging(f64);

impl Averaging {
    /// What new bits weigh that come `t` behind the last.
    #[inline]
    fn weight(self, t: Duration) -> f64 {
        if t > Duration::ZERO { -libm::expm1(-t.as_secs_f64() / self.0) } else { 0.0 }
    }

    /// A rate after `bits` that came `t` seconds behind the last (SSZ98 eq. 3).
    #[inline]
    fn averaged(self, rate: f64, bits: f64, t: f64, weight: f64) -> f64 {
        if t > 0.0 { weight * bits / t + (1.0 - weight) * rate } else { rate + bits / self.0 }
    }
}

/// Flows that were seen, and unused places, whose rate is 0.
#[derive(Clone, Debug)]
struct Set {
    keys: [FlowKey; WAYS],
    arrivals: [Average; WAYS],
}

impl Set {
    /// The place of a flow, if it was seen.
    #[inline]
    fn find(&self, flow: FlowKey) -> Option<usize> {
        (0..WAYS).find(|&way| self.keys[way] == flow && self.arrivals[way].is_seen())
    }

    /// The place of a flow that was not seen: an unused one, or that of the flow that has been silent for longest.
    #[inline]
    fn take(&mut self, flow: FlowKey, now: Instant) -> usize {
        let (mut way, mut least) = (0, u64::MAX);
        for (at, arrivals) in self.arrivals.iter().enumerate() {
            // One number, since two would be compared by jumps that nobody can foresee.
            let rank = arrivals.last.as_nanos() | u64::from(arrivals.is_seen()) << 63;
            (way, least) = if rank < least { (at, rank) } else { (way, least) };
        }
        self.keys[way] = flow;
        self.arrivals[way] = Average { rate: 0.0, last: now };
        way
    }
}

/// The CSFQ policy.
#[derive(Clone, Debug)]
pub struct Csfq {
    config: CsfqConfig,
    /// The link's rate in bit/s (C).
    capacity: f64,
    /// In the measure of the buffer.
    threshold: f64,
    hash: FlowHash,
    flows: Box<[Set]>,
    /// The averaging times of flows and of all traffic (K, K_α).
    k: Averaging,
    k_alpha: Averaging,
    /// Traffic that arrives (A) and that is accepted (F).
    arriving: Average,
    accepted: Average,
    /// The fair rate in bit/s (α).
    fair: f64,
    /// What `fair` may fall to before its next change.
    floor: f64,
    congested: bool,
    /// Start of the window.
    start: Instant,
    /// The largest rate of a flow in a window without congestion.
    largest: f64,
}

impl Csfq {
    /// A packet of a flow arrives: its rate in bit/s.
    #[inline]
    fn rate(&mut self, pkt: &Meta, now: Instant) -> f64 {
        let set = &mut self.flows[self.hash.bin(pkt.flow, self.flows.len() as u32)];
        let way = set.find(pkt.flow).unwrap_or_else(|| set.take(pkt.flow, now));
        let arrivals = &mut set.arrivals[way];
        arrivals.count(pkt.len, now, self.k);
        arrivals.rate
    }

    /// Takes a packet of a flow with this rate into the estimate of the fair rate (SSZ98 Fig. 3).
    fn estimate(&mut self, rate: f64, pkt: &Meta, accepted: bool, q: &View<'_>, now: Instant) {
        let (k, last) = (self.k_alpha, self.arriving.last);
        let weight = k.weight(now.since(last));
        self.arriving.count_weighed(pkt.len, now, k, weight);
        if accepted && self.accepted.last == last {
            self.accepted.count_weighed(pkt.len, now, k, weight);
        } else if accepted {
            self.accepted.count(pkt.len, now, k);
        }
        let long = self.congested || q.size(q.limit().measure()) >= self.threshold;
        let window = now.since(self.start);
        if self.arriving.rate >= self.capacity && long {
            if !self.congested {
                self.congested = true;
                self.start = now;
            } else if window > self.config.k_c && self.accepted.rate > 0.0 {
                let fair = self.fair * self.capacity / self.accepted.rate;
                self.change(fair.max(self.floor), now);
            }
        } else if self.congested {
            self.congested = false;
            self.start = now;
            self.largest = 0.0;
        } else {
            self.largest = self.largest.max(rate);
            if window >= self.config.k_c {
                self.change(self.largest, now);
            }
        }
    }

    /// Sets the fair rate at the end of a window.
    fn change(&mut self, fair: f64, now: Instant) {
        self.fair = fair;
        self.floor = self.config.least_factor * fair;
        self.start = now;
        self.largest = 0.0;
    }
}

impl Policy for Csfq {
    type Config = CsfqConfig;
    type Tag = ();

    fn new(c: &CsfqConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let capacity = env.rate.bits_per_second() as f64;
        let silent = Average { rate: 0.0, last: env.now };
        let unused = Set { keys: [FlowKey::default(); WAYS], arrivals: [silent; WAYS] };
        Ok(Self {
            config: c.clone(),
            capacity,
            threshold: env.resolve("threshold", c.threshold, env.limit.measure())?,
            hash: FlowHash::new(rng),
            flows: vec![unused; (c.flows as usize).div_ceil(WAYS)].into_boxed_slice(),
            k: Averaging(c.k.as_secs_f64()),
            k_alpha: Averaging(c.k_alpha.as_secs_f64()),
            arriving: silent,
            accepted: silent,
            fair: capacity,
            floor: c.least_factor * capacity,
            congested: false,
            start: env.now,
            largest: 0.0,
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        (self.config, self.threshold) = (with.config, with.threshold);
        (self.k, self.k_alpha) = (with.k, with.k_alpha);
    }

    fn rate_changed(&mut self, env: &Env) {
        self.capacity = env.rate.bits_per_second() as f64;
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let rate = self.rate(pkt, cx.now);
        let spared = self.config.only_congested && !self.congested;
        let p = if spared { 0.0 } else { 1.0 - self.fair / rate };
        let dropped = cx.rng.chance(p);
        self.estimate(rate, pkt, !dropped, q, cx.now);
        if dropped { Arrival::Reject(Cause::Early) } else { Arrival::Admit }
    }

    fn on_overflow(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Victim {
        self.fair = (self.fair * self.config.overflow_factor).max(self.floor);
        Victim::Arriving
    }

    fn congested(&self, _: &View<'_>, _: Instant) -> bool {
        self.congested
    }

    fn state(&self) -> State {
        State {
            per_flow: (size_of::<Set>() / WAYS) as u64,
            flows: (self.flows.len() * WAYS) as u64,
            ..State::of::<Self>(0)
        }
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("fair_rate", self.fair);
        sink("arrival_rate", self.arriving.rate);
        sink("accepted_rate", self.accepted.rate);
    }

    fn observe_flow(&self, pkt: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let set = &self.flows[self.hash.bin(pkt.flow, self.flows.len() as u32)];
        let way = (0..WAYS).find(|&way| set.keys[way] == pkt.flow);
        sink("flow_rate", way.map_or(0.0, |way| set.arrivals[way].rate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::{Fate, Lab, env};

    type Story = Lab<Csfq>;

    #[test]
    fn rates_by_hand() {
        for (rate, bits, t, expected) in [
            (0.0, 8000.0, 0.0, 80_000.0), // 8000/0.1
            (80_000.0, 8000.0, 0.0, 160_000.0),
            (0.0, 8000.0, 0.1, 50_569.64),     // (1 − 1/e)·80 000
            (80_000.0, 8000.0, 0.1, 80_000.0), // a steady rate stays
            (80_000.0, 0.0, 0.1, 29_430.36),   // 80 000/e
            (0.0, 8000.0, 1e-9, 80_000.0),     // t → 0 has a limit
        ] {
            let k = Averaging(0.1);
            let got = k.averaged(rate, bits, t, k.weight(Duration::from_secs_f64(t)));
            assert!((got - expected).abs() < 0.01, "{rate} {bits} {t}: {got}");
        }
    }

    /// 8 Mbit/s: a packet a millisecond. Flow 1 sends `per_ms` packets each millisecond, flow 2 one
    /// each 4 ms. How many of each are sent in the last second of three.
    fn shares(per_ms: u64, settings: &[(&str, &str)]) -> [u32; 2] {
        let mut lab = Story::new(64, settings);
        let (mut flows, mut sent) = (std::vec![], [0, 0]);
        for ms in 0..3000 {
            lab.wait_ms(1);
            for i in 0..=per_ms {
                if i < per_ms || ms % 4 == 0 {
                    let flow = 1 + i / per_ms;
                    flows.push(flow);
                    lab.arrive_from(flow);
                }
            }
            if let Some(id) = lab.depart()
                && ms >= 2000
            {
                sent[flows[id as usize] as usize - 1] += 1;
            }
        }
        sent
    }

    /// Flow 2 sends 2 Mbit/s, less than its share: flow 1 gets the other 6, as 8 or as 24 Mbit/s. The
    /// band is the difference of what waits at both ends of the second: up to a quarter of 64.
    #[test]
    fn a_large_flow_gets_what_others_leave() {
        for per_ms in [1, 3] {
            let [large, small] = shares(per_ms, &[]);
            assert!((234..=266).contains(&small), "{per_ms}: {small}");
            assert!((734..=766).contains(&large), "{per_ms}: {large}");
        }
    }

    /// Fig. 3 as it stands drops from a flow that speeds up; the text does not. 1 packet in 4 ms, then
    /// in 2 ms: the link is never busy for longer than half of the time.
    #[test]
    fn a_flow_that_speeds_up_is_spared_only_if_the_link_counts() {
        for (only_congested, dropped) in [("false", true), ("true", false)] {
            let mut lab = Story::new(64, &[("only_congested", only_congested)]);
            for gap in [4, 2] {
                for _ in 0..500 {
                    lab.wait_ms(gap);
                    lab.arrive_from(1);
                    lab.depart();
                }
            }
            assert_eq!(!lab.dropped().is_empty(), dropped);
        }
    }

    #[test]
    fn overflow_lowers_the_fair_rate_but_not_without_end() {
        let mut lab = Story::new(2, &[("threshold", "100%")]);
        (0..2).for_each(|_| assert_eq!(lab.arrive_from(1), Fate::Queued));
        assert_eq!(lab.signal("fair_rate"), 8e6);
        assert_eq!(lab.arrive_from(2), Fate::Dropped(Cause::Overflow));
        assert!((lab.signal("fair_rate") - 7.92e6).abs() < 1e-3);
        (0..40).for_each(|flow| _ = lab.arrive_from(flow));
        assert_eq!(lab.signal("fair_rate"), 6e6, "0.99³⁰ is less than 0.75");
    }

    #[test]
    fn a_silence_does_not_leave_a_fair_rate_of_nothing() {
        let mut lab = Story::new(10, &[]);
        assert_eq!(lab.arrive_from(1), Fate::Queued);
        lab.depart();
        lab.wait_ms(10_000);
        assert_eq!(lab.arrive_from(1), Fate::Queued);
        assert!(lab.signal("fair_rate") > 0.0);
    }

    /// Room for eight flows: the ninth takes the place of the one that has been silent for longest.
    #[test]
    fn a_new_flow_takes_the_place_of_the_most_silent() {
        let config = CsfqConfig { flows: 8, ..CsfqConfig::default() };
        let mut csfq = Csfq::new(&config, &env(10), &mut Rng::new(1, 0)).unwrap();
        let mut rate = |flow, ms: u64| {
            let pkt = Meta { flow: FlowKey(flow), len: 1000, ..Meta::default() };
            csfq.rate(&pkt, Instant::ZERO + Duration::from_millis(ms))
        };
        let fresh = 80_000.0; // 8000 bit in 0.1 s
        (0..8).for_each(|flow| assert_eq!(rate(flow, flow), fresh));
        assert!(rate(0, 8) > fresh, "it is remembered, and no longer the most silent");
        assert_eq!(rate(99, 9), fresh);
        assert!(rate(0, 10) > fresh && rate(2, 10) > fresh);
        assert_eq!(rate(1, 10), fresh, "it had to go");
    }
}
