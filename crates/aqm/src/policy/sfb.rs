//! Stochastic Fair BLUE (Feng02 §IV, Fig. 14).
//!
//! Bins account for flows as [`stochastic_fair`](super::stochastic_fair) says. What a bin learns is
//! BLUE's: a marking probability that overflow of the bin raises and emptiness lowers, whatever the
//! queue as a whole does.
//!
//! ```text
//! a packet arrives:
//!     for each level, b := its bin there:
//!         b holds more than bin_size:  b.p_m := min(b.p_m + δ1, 1);  the packet will be dropped
//!         b is empty:                  b.p_m := max(b.p_m − δ2, 0)
//!     p_min := the least p_m of its bins
//!     p_min = 1:  nonresponsive: to the penalty
//!     otherwise:  signal with probability p_min
//! ```
//!
//! A flow that ignores signals drives p_m to 1 in all its L bins. A responsive flow that shares some
//! of them is safe as long as one of its bins is clean. With M nonresponsive flows the chance that
//! none is, is equation 1: [`misclassification`].
//!
//! Where the papers are silent:
//! - Feng02 has one Δ and no value for it; HRC has δ1 and δ2: the defaults.
//! - Feng02 has no freeze_time; with one (HRC), *more than* it has to pass between two changes of a
//!   bin, and the first acts at once.
//! - What the penalty drops teaches a bin nothing beyond what its length does. In BLUE a lost packet
//!   raises p_m (Feng02 Fig. 3): with `penalty_raises` the penalty's drops do so here, and with
//!   `nonresponsive_from` below 1 one empty bin does not release a flow.
//! - The lengths are those that the packet finds, itself not counted.

use super::stochastic_fair::{Account, BinsConfig, MAX_LEVELS, StochasticFair};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::Cause;
use crate::param::{ConfigError, params};
use crate::time::{Duration, Instant};

/// What sfb tells of itself.
pub const ABOUT: About = About {
    name: "sfb",
    family: Family::Flows,
    summary: "Accounts for flows in a few bins; a BLUE in each limits flows that ignore signals.",
    source: "Feng02 §IV",
    rule: "SFB signals with the least p of the flow's bins, one on each level; it drops what \
        finds a bin with more than bin_limit, and limits a flow all of whose bins have p = 1 \
        (Feng02 Fig. 14)",
    causes: &[(
        Cause::Penalty,
        "p = 1 in all bins of its flow, and the penalty allows no packet now",
    )],
    unmarked: Unmarked {
        coin: "so low a coin drops (mark_up_to)",
        rule: "a packet that finds a full bin is dropped",
    },
    signals: &[
        Signal { name: "p_mean", unit: "0 … 1", doc: "mean marking probability of the bins" },
        Signal { name: "p_max", unit: "0 … 1", doc: "largest of them" },
        Signal { name: "saturated", unit: "0 … 1", doc: "share of bins whose probability is 1" },
        Signal { name: "hash_age_s", unit: "s", doc: "time since the hash changed" },
    ],
    presets: &[
        ("feng", &[("bin_size", "13p"), ("penalty_rate", "160kbit")]),
        ("feng-boxtime", &[("bin_size", "13p"), ("penalty", "boxtime"), ("boxtime", "50ms")]),
        (
            "cmu",
            &[
                ("bin_limit", "150p"),
                ("freeze_time", "1ms"),
                ("hash", "double-buffered"),
                ("hash_interval", "5s"),
                ("penalty", "boxtime"),
                ("boxtime", "50ms"),
            ],
        ),
        (
            "linux",
            &[
                ("levels", "8"),
                ("bins", "16"),
                ("bin_size", "19p"),
                ("bin_limit", "24p"),
                ("overflow", "all"),
                // 33 and 3 of 65535.
                ("increment", "0.000503547722591"),
                ("decrement", "0.0000457770656901"),
                ("mark_up_to", "0.5"),
                ("hash", "double-buffered"),
                ("hash_interval", "600s"),
                ("warm_up", "60s"),
                ("warm_up_by", "length"),
                ("hash_change", "kept"),
                ("full_teaches", "false"),
                ("penalty", "tokens"),
                ("boxtime", "100ms"),
                ("penalty_burst", "19p"),
            ],
        ),
    ],
    live: &[
        "increment",
        "decrement",
        "freeze_time",
        "bin_size",
        "bin_limit",
        "mark_up_to",
        "penalty_rate",
        "boxtime",
    ],
    ..About::NEW
};

params! {
    /// Parameters of Stochastic Fair BLUE. The defaults are those of Feng02 §IV.B, with the steps
    /// of HRC.
    pub struct SfbConfig {
        /// What a bin's p_m rises by when a packet finds it too full (δ1).
        increment: f64 = 0.005, in 0.0..=1.0, "Feng02 Fig. 14; value: HRC §3";
        /// What a bin's p_m falls by when a packet finds it empty (δ2).
        decrement: f64 = 0.001, in 0.0..=1.0, "Feng02 Fig. 14; value: HRC §3";
        /// Least time between two changes of a bin's p_m; `0s`: none.
        freeze_time: Duration = Duration::ZERO, "Feng02 Fig. 14; 1 ms: HRC §3";
        /// Whether a packet that the penalty drops raises p_m of its bins, too.
        penalty_raises: bool = false, "Feng02 Fig. 14; `true`: ours, after Feng02 Fig. 3", with nonresponsive_from != "1" or freeze_time != "0s";
        /// The least p_min that counts as 1.
        nonresponsive_from: f64 = 1.0, in 0.5..=1.0, "Feng02 Fig. 14; less: ours";
        ..bins: BinsConfig = BinsConfig::default();
    }
}

/// The Stochastic Fair BLUE policy.
pub type Sfb = StochasticFair<BlueBin>;

/// What BLUE keeps of a bin.
#[derive(Clone, Debug)]
pub struct BlueBin {
    /// Marking probability, [0, 1].
    p_m: f64,
    /// From when on it may change.
    free: Instant,
}

/// How the bins of a queue learn.
#[derive(Clone, Debug)]
pub struct BlueRule {
    bin_size: u64,
    increment: f64,
    decrement: f64,
    /// From a change to the first instant at which another is allowed.
    freeze: Duration,
    penalty_raises: bool,
    nonresponsive_from: f64,
}

impl Account for BlueBin {
    type Config = SfbConfig;
    type Rule = BlueRule;

    fn bins(config: &SfbConfig) -> &BinsConfig {
        &config.bins
    }

    fn rule(c: &SfbConfig, bin_size: f64) -> Result<BlueRule, ConfigError> {
        let strictly_more = Duration::from_nanos(u64::from(c.freeze_time > Duration::ZERO));
        Ok(BlueRule {
            bin_size: bin_size as u64,
            increment: c.increment,
            decrement: c.decrement,
            freeze: c.freeze_time + strictly_more,
            penalty_raises: c.penalty_raises,
            nonresponsive_from: c.nonresponsive_from,
        })
    }

    fn fresh(_: &BlueRule) -> Self {
        Self { p_m: 0.0, free: Instant::ZERO }
    }

    #[inline]
    fn learn(&mut self, rule: &BlueRule, len: u64, now: Instant) {
        if len > rule.bin_size {
            self.raise(rule, now);
        } else if len == 0 {
            self.change((self.p_m - rule.decrement).max(0.0), rule, now);
        }
    }

    fn penalised(&mut self, rule: &BlueRule, now: Instant) {
        if rule.penalty_raises {
            self.raise(rule, now);
        }
    }

    #[inline]
    fn p(&self, _: &BlueRule) -> f64 {
        self.p_m
    }

    #[inline]
    fn nonresponsive_from(rule: &BlueRule) -> f64 {
        rule.nonresponsive_from
    }
}

impl BlueBin {
    fn raise(&mut self, rule: &BlueRule, now: Instant) {
        self.change((self.p_m + rule.increment).min(1.0), rule, now);
    }

    /// Gives p_m another value, unless it is frozen. Seldom, and kept apart from what each packet does.
    #[inline(never)]
    fn change(&mut self, p_m: f64, rule: &BlueRule, now: Instant) {
        if now >= self.free {
            self.p_m = p_m;
            self.free = now + rule.freeze;
        }
    }
}

/// The chance that a responsive flow shares a bin with one of `nonresponsive` flows on each of
/// `levels` levels of `bins` bins (Feng02 eq. 1), [0, 1].
///
/// # Panics
/// When there is no bin.
pub fn misclassification(levels: u32, bins: u32, nonresponsive: u32) -> f64 {
    assert!(bins > 0, "a level has bins");
    let clean = libm::pow(1.0 - 1.0 / f64::from(bins), f64::from(nonresponsive));
    libm::pow(1.0 - clean, f64::from(levels))
}

/// The levels and the bins in each that make [`misclassification`] least with at most `total` bins in
/// all, up to 16 levels; the fewest levels where several do as well.
///
/// # Panics
/// When there is no bin.
pub fn best_shape(total: u32, nonresponsive: u32) -> (u32, u32) {
    shapes(total)
        .min_by(|a, b| {
            let p = |&(levels, bins): &(u32, u32)| misclassification(levels, bins, nonresponsive);
            p(a).total_cmp(&p(b))
        })
        .expect("one level is always there")
}

/// The shapes that at most `total` bins can have: for each number of levels, as many bins as fit.
///
/// # Panics
/// When there is no bin.
pub fn shapes(total: u32) -> impl Iterator<Item = (u32, u32)> {
    assert!(total > 0, "a level has bins");
    (1..=MAX_LEVELS.min(total)).map(move |levels| (levels, total / levels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Cause;
    use crate::policy::lab::{Fate, Lab};
    use std::vec::Vec;

    type Story = Lab<Sfb>;

    const EARLY: Fate = Fate::Dropped(Cause::Early);
    const PENALTY: Fate = Fate::Dropped(Cause::Penalty);

    /// Its probabilities are whole parts of 65535, and `tc` rounds 1/2000 and 1/20000 to these.
    #[test]
    fn linux_s_steps_are_33_and_3_of_65535() {
        let linux = ABOUT.presets.iter().find(|(name, _)| *name == "linux").unwrap().1;
        for (key, parts) in [("increment", 33.0), ("decrement", 3.0)] {
            let (_, text) = linux.iter().find(|(name, _)| *name == key).unwrap();
            assert!((text.parse::<f64>().unwrap() * 65_535.0 - parts).abs() < 1e-9, "{key}");
        }
    }

    /// Feng02 §IV.C: 2 × 23 bins and 8 nonresponsive flows: 1 − (22/23)⁸ = 0.29926, squared
    /// 0.08955; one level of 46: 1 − (45/46)⁸ = 0.16124. The paper says 8.96 % and 16.12 %.
    #[test]
    fn misclassification_is_equation_1() {
        for (levels, bins, nonresponsive, p) in [
            (2, 23, 8, 0.089_555),
            (1, 46, 8, 0.161_240),
            (2, 23, 0, 0.0),
            (2, 23, 1, 1.0 / 529.0), // one of 23² virtual buckets
            (3, 2, 2, 27.0 / 64.0),  // (1 − ¼)³
            (5, 1, 1, 1.0),
            (5, 1, 0, 0.0),
        ] {
            let got = misclassification(levels, bins, nonresponsive);
            assert!((got - p).abs() < 1e-6, "{levels} × {bins}, {nonresponsive}: {got}");
        }
    }

    /// One level and two of half the bins are as good where y = (1 − 1/C)^M, nearly e^(−M/C), obeys
    /// 1 − y = (1 − y²)², so y² + y = 1: y is 0.618 and M is 0.481·C. "Half the bins" (Feng02
    /// §IV.C) is a little later; from there on one level is best.
    #[test]
    fn one_level_is_best_from_nearly_half_as_many_flows_as_bins_on() {
        assert_eq!(best_shape(900, 432), (2, 450));
        assert_eq!(best_shape(900, 434), (1, 900));
        assert!((450..5000).all(|m| best_shape(900, m) == (1, 900)));
        assert!((1..=432).all(|m| best_shape(900, m).0 > 1));
        // In between, twice the flows leave room for half the levels.
        assert_eq!([40, 80, 160, 320].map(|m| best_shape(900, m).0), [15, 8, 4, 2]);
    }

    #[test]
    fn as_many_bins_as_fit_are_divided_among_the_levels() {
        let all: Vec<_> = shapes(7).collect();
        assert_eq!(all, [(1, 7), (2, 3), (3, 2), (4, 1), (5, 1), (6, 1), (7, 1)]);
        assert_eq!(shapes(900).count(), 16);
    }

    /// A flow alone: its bins are too full when they hold more than 3, and p_m climbs by ½ at each
    /// packet that finds that.
    #[test]
    fn a_full_bin_drops_the_packet_and_raises_p() {
        let mut lab = Story::new(100, &[("bin_size", "3p"), ("increment", "0.5")]);
        (0..4).for_each(|_| assert_eq!(lab.arrive_from(1), Fate::Queued));
        assert_eq!(lab.signal("p_max"), 0.0, "a bin of exactly its size is not too full");
        assert_eq!(lab.arrive_from(1), EARLY);
        assert_eq!(lab.signal("p_max"), 0.5);
        assert_eq!(lab.arrive_from(1), EARLY, "full, though nonresponsive by now");
        assert_eq!(lab.signal("saturated"), 2.0 / 46.0, "one bin in each of two levels of 23");
        assert_eq!(lab.signal("p_mean"), 2.0 / 46.0);
    }

    #[test]
    fn an_empty_bin_lowers_p_at_each_arrival() {
        let mut lab = Story::new(100, &[("bin_size", "0p"), ("increment", "1"), ("ecn", "false")]);
        lab.arrive_from(1);
        assert_eq!(lab.arrive_from(1), EARLY);
        lab.depart();
        // p = 0.999, 0.998 …: a coin shows tails at last, and a packet is in.
        let mut tries = 0;
        while lab.backlog().packets == 0 {
            lab.arrive_from(1);
            tries += 1;
        }
        assert!((lab.signal("p_max") - (1.0 - f64::from(tries) * 0.001)).abs() < 1e-9);
    }

    /// A packet that finds its bin empty lowers a p_m of 0: that freezes it as any change does.
    #[test]
    fn more_than_the_freeze_time_lies_between_two_changes_of_a_bin() {
        let settings = [("bin_size", "0p"), ("increment", "0.25"), ("freeze_time", "5ms")];
        let mut lab = Story::new(100, &settings);
        lab.arrive_from(1);
        for (ms, p) in [(5, 0.0), (1, 0.25), (5, 0.25), (1, 0.5), (10, 0.75)] {
            lab.wait_ms(ms);
            lab.arrive_from(1);
            assert_eq!(lab.signal("p_max"), p);
        }
    }

    /// A convicted flow whose packets find their bins empty: each lowers p_m by 0.06 of 1. The
    /// penalty lets the first pass. Unless the loss of the second raises p_m, the third is at 0.82.
    #[test]
    fn a_packet_that_the_penalty_drops_may_raise_p() {
        for (raises, second, third) in [("true", 1.0, PENALTY), ("false", 0.88, EARLY)] {
            let settings = [
                ("bin_size", "1p"),
                ("increment", "0.5"),
                ("decrement", "0.06"),
                ("ecn", "false"),
                ("penalty", "boxtime"),
                ("boxtime", "10s"),
                ("penalty_raises", raises),
                ("nonresponsive_from", "0.85"),
            ];
            let mut lab = Story::new(100, &settings);
            (0..4).for_each(|_| _ = lab.arrive_from(1));
            while lab.depart().is_some() {}
            assert_eq!(lab.signal("p_max"), 1.0);
            assert_eq!(lab.arrive_from(1), Fate::Queued, "0.94 counts as 1; the penalty's first");
            lab.depart();
            assert_eq!(lab.arrive_from(1), PENALTY);
            assert!((lab.signal("p_max") - second).abs() < 1e-9);
            let fate = lab.arrive_from(1);
            assert!(fate == third || (raises == "false" && fate == Fate::Queued), "{fate:?}");
        }
    }

    #[test]
    fn nonresponsive_flows_share_one_rate() {
        // 80 kbit/s: one packet of 1000 bytes in 100 ms.
        let settings = [
            ("bin_size", "2p"),
            ("increment", "1"),
            ("decrement", "0"),
            ("penalty_rate", "80kbit"),
        ];
        let mut lab = Story::new(100, &settings);
        let mut passed = [0; 2];
        for flow in [0, 1] {
            (0..4).for_each(|_| _ = lab.arrive_from(flow));
        }
        while lab.depart().is_some() {}
        assert_eq!(lab.signal("saturated"), 4.0 / 46.0, "both are known");
        for ms in 0..1000 {
            let flow = ms % 2;
            match lab.arrive_from(flow) {
                Fate::Queued => passed[flow as usize] += 1,
                fate => assert_eq!(fate, PENALTY),
            }
            lab.depart();
            lab.wait_ms(1);
        }
        assert_eq!(passed[0] + passed[1], 10);
    }
}
