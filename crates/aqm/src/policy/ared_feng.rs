//! Self-configuring RED (Feng99; the Adaptive RED that Feng02 refers to).
//!
//! RED ([`red`]) whose `max_p` learns how many flows share the link. An average below
//! min_th says that RED is too aggressive, above max_th that it is too timid. Each *crossing* moves
//! max_p once, by a factor:
//!
//! ```text
//! each time a packet has updated avg:
//!     min_th < avg < max_th:                  status := between
//!     avg < min_th and status is not below:   status := below;  max_p := max_p / α
//!     avg > max_th and status is not above:   status := above;  max_p := max_p · β
//! then as RED
//! ```
//!
//! Where the paper is silent:
//! - The status begins as below, since the queue begins empty: the first crossing is upward.
//! - max_p starts at 0.1 and stays within `max_p_min` and `max_p_max`: unbounded factors would leave
//!   [0, 1], and a max_p near zero takes many crossings to come back.
//! - An average on a threshold leaves the status as it is, as the strict signs say.

use super::red::{self, RedConfig, RedCore, RedParams, as_red};
use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::Instant;

/// What ared-feng tells of itself.
pub const ABOUT: About = About {
    name: "ared-feng",
    family: Family::One,
    summary: "RED whose max_p moves by a factor when the average crosses a threshold.",
    source: "Feng99",
    rule: "RED decides by the average queue; each time that the average rises above max_th, max_p \
        grows by a factor, and each time that it falls below min_th, max_p shrinks by one (Feng99)",
    unmarked: red::ABOUT.unmarked,
    signals: red::SIGNALS,
    live: &["min_th", "max_th", "w_q", "gentle", "alpha", "beta", "max_p_min", "max_p_max"],
    ..About::NEW
};

params! {
    /// Parameters of self-configuring RED: those of RED, and how max_p moves.
    pub struct AredFengConfig {
        /// What max_p is divided by when the average falls below min_th (α).
        alpha: f64 = 3.0, in 1.0..=1000.0, "Feng99";
        /// What max_p is multiplied by when the average rises above max_th (β).
        beta: f64 = 2.0, in 1.0..=1000.0, "Feng99";
        /// Least max_p.
        max_p_min: f64 = 0.01, in 0.0..=1.0, "value ours: that of FGS01";
        /// Largest max_p.
        max_p_max: f64 = 1.0, in 0.0..=1.0, "value ours: Feng02's max_p";
        /// max_p at the start.
        max_p: f64 = 0.1, in 0.0..=1.0, "value ours";
        ..red: RedConfig = RedConfig::feng(), by "Feng02 Table I (R2)";
    }
}

/// Where the average was last seen off the thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    Below,
    Between,
    Above,
}

/// The self-configuring RED policy.
#[derive(Clone, Debug)]
pub struct AredFeng {
    core: RedCore,
    step: Step,
    status: Status,
}

impl Policy for AredFeng {
    type Config = AredFengConfig;
    type Tag = ();

    fn new(c: &AredFengConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        if !(c.max_p_min..=c.max_p_max).contains(&c.max_p) {
            return Err(ConfigError {
                key: "max_p",
                allowed: "between max_p_min and max_p_max".into(),
            });
        }
        Ok(Self {
            core: RedCore::new(RedParams::new(&c.red, env)?, c.max_p, env.now),
            step: Step { alpha: c.alpha, beta: c.beta, min: c.max_p_min, max: c.max_p_max },
            status: Status::Below,
        })
    }

    fn going_on(config: &mut AredFengConfig) {
        config.max_p = config.max_p.max(config.max_p_min).min(config.max_p_max);
    }

    fn retune(&mut self, with: Self, now: Instant) {
        let max_p = self.core.max_p.clamp(with.step.min, with.step.max);
        self.core.retune(with.core, now);
        self.core.max_p = max_p;
        self.step = with.step;
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let avg = self.core.average(q, cx.now);
        let (min_th, max_th) = (self.core.params.min_th, self.core.params.max_th);
        self.step.at_crossing(&mut self.status, &mut self.core.max_p, avg, min_th, max_th);
        self.core.judge(pkt, q, cx)
    }

    as_red!(core);

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.core.observe(now, sink);
    }
}

/// How far a crossing moves max_p, and its bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Step {
    /// Moves max_p if the average has crossed a threshold.
    #[inline]
    pub(super) fn at_crossing(
        &self,
        status: &mut Status,
        max_p: &mut f64,
        avg: f64,
        min_th: f64,
        max_th: f64,
    ) {
        if avg < min_th {
            if *status != Status::Below {
                *status = Status::Below;
                *max_p = (*max_p / self.alpha).max(self.min);
            }
        } else if avg > max_th {
            if *status != Status::Above {
                *status = Status::Above;
                *max_p = (*max_p * self.beta).min(self.max);
            }
        } else if min_th < avg && avg < max_th {
            *status = Status::Between;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::{Lab, refused};

    /// Thresholds 2 and 5, w_q = 1: the average is the queue that the last packet found.
    fn lab() -> Lab<AredFeng> {
        Lab::new(20, &[("w_q", "1"), ("min_th", "2p"), ("max_th", "5p")])
    }

    /// Brings the average to `n` by an arrival that finds n packets.
    fn bring_to(lab: &mut Lab<AredFeng>, n: u32) {
        while lab.backlog().packets > n {
            lab.depart();
        }
        while lab.backlog().packets < n {
            lab.arrive();
        }
        lab.arrive();
    }

    fn max_p(lab: &mut Lab<AredFeng>, n: u32) -> f64 {
        bring_to(lab, n);
        assert_eq!(lab.signal("avg"), f64::from(n));
        (lab.signal("max_p") * 1e6).round() / 1e6
    }

    #[test]
    fn each_crossing_moves_max_p_once() {
        let mut lab = lab();
        assert_eq!(max_p(&mut lab, 3), 0.1);
        assert_eq!(max_p(&mut lab, 6), 0.2, "above: · 2");
        assert_eq!(max_p(&mut lab, 8), 0.2, "still above");
        assert_eq!(max_p(&mut lab, 5), 0.2, "on the threshold: as it was");
        assert_eq!(max_p(&mut lab, 6), 0.2, "so this is no new crossing");
        assert_eq!(max_p(&mut lab, 4), 0.2, "between");
        assert_eq!(max_p(&mut lab, 6), 0.4, "above again");
        assert_eq!(max_p(&mut lab, 1), 0.133_333, "below: / 3, even from above at once");
        assert_eq!(max_p(&mut lab, 1), 0.133_333);
    }

    #[test]
    fn max_p_stays_within_its_bounds() {
        let mut lab = lab();
        for _ in 0..20 {
            bring_to(&mut lab, 6);
            bring_to(&mut lab, 3);
        }
        assert_eq!(lab.signal("max_p"), 1.0);
        for _ in 0..20 {
            bring_to(&mut lab, 1);
            bring_to(&mut lab, 3);
        }
        assert_eq!(lab.signal("max_p"), 0.01);
    }

    #[test]
    fn the_start_must_lie_within_the_bounds() {
        assert_eq!(refused::<AredFeng>(&[("max_p", "0.5"), ("max_p_max", "0.3")]).key, "max_p");
    }
}
