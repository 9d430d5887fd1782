//! Stochastic Fair RED (Feng02 §IV.A): the bins of SFB with Adaptive RED in each instead of BLUE.
//!
//! Feng02 made it to show that what matters is BLUE: a bin's average has to move through RED's
//! thresholds before anything happens, and max_p reaches 1 under ordinary congestion, which looks
//! like a nonresponsive flow. Bins account for flows as
//! [`stochastic_fair`](super::stochastic_fair) says. What a bin learns is the average of its own
//! length, and a max_p that moves as in [`ared_feng`](super::ared_feng):
//!
//! ```text
//! a packet arrives; for each level, b := its bin there, with q packets queued:
//!     b.avg := (1 − w_q)·b.avg + w_q·q
//!     b.avg rises above max_th:  b.max_p := b.max_p · β        (once for each crossing)
//!     b.avg falls below min_th:  b.max_p := b.max_p / α
//!     p := 0 below min_th, b.max_p·(b.avg − min_th)/(max_th − min_th) below max_th, else 1
//!     b is saturated:  b.max_p = 1 and b.avg > max_th
//! all its bins saturated:  nonresponsive: to the penalty
//! otherwise:               signal with the least p of its bins
//! ```
//!
//! Where the paper is silent (it gives no parameter of SFRED):
//! - Which Adaptive RED: the one it refers to, Feng99, with the bounds of `ared-feng`.
//! - The thresholds are 20 % and 80 % of bin_size, as Feng02 §III.B has them of a buffer.
//! - A bin takes a sample at each of its arrivals and at no other time; it does not age.
//! - Each packet is judged alone: RED's spacing counts packets of one queue, and the least of
//!   several spaced probabilities has no spacing.
//! - A bin that holds more than bin_size drops packets as in SFB; its queue is then full.

use super::ared_feng::{Status, Step};
use super::red::linear;
use super::stochastic_fair::{Account, BinsConfig, StochasticFair};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::Cause;
use crate::param::{ConfigError, params};
use crate::time::Instant;

/// What sfred tells of itself.
pub const ABOUT: About = About {
    name: "sfred",
    family: Family::Flows,
    summary: "Accounts for flows in a few bins, with adaptive RED in each.",
    source: "Feng02 §IV.A",
    rule: "SFRED signals with the least probability of the flow's bins, one on each level, where \
        each bin runs adaptive RED; it limits a flow all of whose bins have max_p = 1 and an \
        average above max_th (Feng02 §IV.A)",
    causes: &[(
        Cause::Penalty,
        "all bins of its flow are saturated, and the penalty allows no packet now",
    )],
    unmarked: Unmarked {
        coin: "so low a coin drops (mark_up_to)",
        rule: "a packet that finds a full bin is dropped",
    },
    signals: &[
        Signal { name: "p_mean", unit: "0 … 1", doc: "mean signalling probability of the bins" },
        Signal { name: "p_max", unit: "0 … 1", doc: "largest of them" },
        Signal {
            name: "saturated",
            unit: "0 … 1",
            doc: "share of bins with max_p = 1 and an average above max_th",
        },
        Signal { name: "hash_age_s", unit: "s", doc: "time since the hash changed" },
    ],
    presets: &[("feng", &[("bin_size", "13p"), ("penalty_rate", "160kbit")])],
    live: &[
        "min_th",
        "max_th",
        "w_q",
        "alpha",
        "beta",
        "bin_size",
        "bin_limit",
        "mark_up_to",
        "penalty_rate",
        "boxtime",
    ],
    ..About::NEW
};

params! {
    /// Parameters of Stochastic Fair RED. Thresholds are shares of a bin's size.
    pub struct SfredConfig {
        /// Average of a bin below which its packets are not signalled, as a share of bin_size.
        min_th: f64 = 0.2, in 0.0..=1.0, "Feng02 §III.B; of a bin: ours";
        /// Average of a bin from which on they all are, as a share of bin_size.
        max_th: f64 = 0.8, in 0.0..=2.0, "Feng02 §III.B; of a bin: ours";
        /// Weight of the present length in a bin's average.
        w_q: f64 = 0.002, in 0.0..=1.0, "Feng02 Table I (R2)";
        /// What a bin's max_p is divided by when its average falls below min_th (α).
        alpha: f64 = 3.0, in 1.0..=1000.0, "Feng99";
        /// What a bin's max_p is multiplied by when its average rises above max_th (β).
        beta: f64 = 2.0, in 1.0..=1000.0, "Feng99";
        /// max_p at the start.
        max_p: f64 = 0.1, in 0.0..=1.0, "value ours";
        /// Least max_p.
        max_p_min: f64 = 0.01, in 0.0..=1.0, "value ours: that of FGS01";
        ..bins: BinsConfig = BinsConfig::default();
    }
}

/// The Stochastic Fair RED policy.
pub type Sfred = StochasticFair<RedBin>;

/// What a bin answers that is saturated: more than any probability.
const SATURATED: f64 = 2.0;

/// What RED keeps of a bin.
#[derive(Clone, Debug)]
pub struct RedBin {
    /// Average length, in packets or bytes.
    avg: f64,
    max_p: f64,
    status: Status,
}

/// How the bins of a queue learn. Thresholds are in packets or bytes.
#[derive(Clone, Debug)]
pub struct RedRule {
    min_th: f64,
    max_th: f64,
    w_q: f64,
    /// max_p at the start.
    max_p: f64,
    step: Step,
}

impl Account for RedBin {
    type Config = SfredConfig;
    type Rule = RedRule;

    fn bins(config: &SfredConfig) -> &BinsConfig {
        &config.bins
    }

    fn rule(c: &SfredConfig, bin_size: f64) -> Result<RedRule, ConfigError> {
        if c.min_th >= c.max_th {
            return Err(ConfigError { key: "max_th", allowed: "more than min_th".into() });
        }
        if c.max_p < c.max_p_min {
            return Err(ConfigError { key: "max_p", allowed: "at least max_p_min".into() });
        }
        Ok(RedRule {
            min_th: c.min_th * bin_size,
            max_th: c.max_th * bin_size,
            w_q: c.w_q,
            max_p: c.max_p,
            step: Step { alpha: c.alpha, beta: c.beta, min: c.max_p_min, max: 1.0 },
        })
    }

    fn fresh(rule: &RedRule) -> Self {
        Self { avg: 0.0, max_p: rule.max_p, status: Status::Below }
    }

    #[inline]
    fn learn(&mut self, rule: &RedRule, len: u64, _: Instant) {
        self.avg += rule.w_q * (len as f64 - self.avg);
        let Self { avg, max_p, status } = self;
        rule.step.at_crossing(status, max_p, *avg, rule.min_th, rule.max_th);
    }

    #[inline]
    fn p(&self, rule: &RedRule) -> f64 {
        if self.avg < rule.min_th {
            0.0
        } else if self.avg < rule.max_th {
            linear(self.avg, rule.min_th, rule.max_th, self.max_p)
        } else if self.max_p >= 1.0 && self.avg > rule.max_th {
            SATURATED
        } else {
            1.0
        }
    }

    #[inline]
    fn nonresponsive_from(_: &RedRule) -> f64 {
        SATURATED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Cause;
    use crate::policy::lab::{Fate, Lab, refused};

    type Story = Lab<Sfred>;

    /// Bins of ten packets: thresholds 2 and 8. w_q = 1: the average is what the packet found.
    fn lab(extra: &[(&str, &str)]) -> Story {
        let mut settings = std::vec![("bin_size", "10p"), ("w_q", "1")];
        settings.extend(extra);
        Story::new(100, &settings)
    }

    /// Brings the average of flow 0 to `n` by an arrival that finds n packets of it.
    fn find(lab: &mut Story, n: u32) -> Fate {
        while lab.backlog().packets > n {
            lab.depart();
        }
        while lab.backlog().packets < n {
            lab.arrive_from(0);
        }
        lab.arrive_from(0)
    }

    /// max_p 0.1: p at 5 of 2 … 8 is 0.05; after a crossing upward 0.1.
    #[test]
    fn a_bin_is_a_red_whose_max_p_moves_at_crossings() {
        let mut lab = lab(&[]);
        for (n, p) in [
            (2, 0.0),
            (5, 0.05),
            (9, 1.0), // above: max_p 0.2
            (5, 0.1),
            (1, 0.0), // below: max_p 0.2/3
            (5, 0.1 / 3.0),
        ] {
            find(&mut lab, n);
            assert!((lab.signal("p_max") - p).abs() < 1e-12, "{n}: {}", lab.signal("p_max"));
        }
    }

    /// From 0.1 it takes four crossings upward to 1: 0.2, 0.4, 0.8, 1.
    #[test]
    fn a_flow_is_nonresponsive_when_max_p_is_1_and_its_bins_are_full() {
        let mut lab = lab(&[("penalty", "boxtime"), ("boxtime", "10s")]);
        for crossing in 1..=4 {
            find(&mut lab, 5);
            let fate = find(&mut lab, 9);
            let expected = if crossing < 4 { Fate::Marked } else { Fate::Queued };
            assert_eq!(fate, expected, "crossing {crossing}: marked, or passed by the penalty");
            let saturated = if crossing < 4 { 0.0 } else { 2.0 / 46.0 };
            assert_eq!(lab.signal("saturated"), saturated);
        }
        lab.depart();
        assert_eq!(lab.arrive_from(0), Fate::Dropped(Cause::Penalty));
        find(&mut lab, 7);
        assert_eq!(
            lab.signal("saturated"),
            0.0,
            "max_p is still 1, the average is not above max_th"
        );
    }

    #[test]
    fn settings_that_do_not_fit_together_are_refused() {
        assert_eq!(refused::<Sfred>(&[("min_th", "0.8")]).key, "max_th");
        assert_eq!(refused::<Sfred>(&[("max_p_min", "0.5")]).key, "max_p");
    }
}
