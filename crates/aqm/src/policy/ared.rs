//! Adaptive RED (Floyd, Gummadi, Shenker 2001, "FGS01").
//!
//! RED ([`red`]) with two changes. Its parameters follow from the link and from the
//! delay that the operator wants. And twice a second `max_p` moves a little, up by a step or down by
//! a factor, so that the average settles in the middle of the thresholds whatever the load:
//!
//! ```text
//! C := packets of mean length that the link sends in a second
//! w_q := 1 − exp(−1/C)                    (a time constant of one second, FGS01 §5.2)
//! min_th := max(5 packets, target·C/2);  max_th := 3·min_th        (FGS01 §5.1, §5.3)
//! each 0.5 s (FGS01 Fig. 1):
//!     avg > min_th + 0.6·(max_th − min_th):  max_p += min(0.01, max_p/4)
//!     avg < min_th + 0.4·(max_th − min_th):  max_p *= 0.9
//!     max_p stays within [0.01, 0.5]
//! ```
//!
//! The middle of the thresholds is 2·min_th, the queue of `target`. RED is gentle here.
//!
//! Where the paper is silent:
//! - A step that would leave [0.01, 0.5] ends on its edge.
//! - The average that is compared is that of the moment: an idle link's average ages by the clock,
//!   not only at the next arrival.
//! - The half seconds are counted from the start of the queue, whatever the traffic. A timer that
//!   comes late adapts once and does not catch up.

use super::red::{self, RedConfig, RedCore, RedParams, as_red};
use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Size;

/// What ared tells of itself.
pub const ABOUT: About = About {
    name: "ared",
    family: Family::One,
    summary: "RED whose max_p keeps the average at the middle of its thresholds.",
    source: "FGS01",
    rule: "RED decides by the average queue; twice a second max_p moves so that the average \
        settles in the middle between min_th and max_th (FGS01 Fig. 1)",
    unmarked: red::ABOUT.unmarked,
    signals: red::SIGNALS,
    live: &[
        "target",
        "min_th",
        "max_th",
        "w_q",
        "interval",
        "alpha",
        "beta",
        "max_p_min",
        "max_p_max",
    ],
    ..About::NEW
};

params! {
    /// Parameters of Adaptive RED.
    pub struct AredConfig {
        /// Wanted queueing delay; sets the thresholds.
        target: Duration = Duration::from_millis(5), "FGS01 §5.3", with min_th = "none";
        /// Average below which nothing is signalled; `none`: from target.
        min_th: Option<Size> = None, "FGS01 §5.3";
        /// Average at which the probability is max_p; `none`: three times min_th.
        max_th: Option<Size> = None, "FGS01 §5.1";
        /// Weight of the present queue length in the average; `none`: from the link's rate.
        w_q: Option<f64> = None, in 0.0..=1.0, "FGS01 §5.2";
        /// Time between two adaptations of max_p.
        interval: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(3600), "FGS01 Fig. 1";
        /// Largest step up of max_p; a quarter of max_p where that is less (α).
        alpha: f64 = 0.01, in 0.0..=1.0, "FGS01 Fig. 1";
        /// What max_p is multiplied by on the way down (β).
        beta: f64 = 0.9, in 0.0..=1.0, "FGS01 Fig. 1";
        /// max_p at the start.
        max_p: f64 = 0.1, in 0.0..=1.0, "ns-2.35 (linterm_ 10)";
        /// Least max_p.
        max_p_min: f64 = 0.01, in 0.0..=1.0, "FGS01 Fig. 1";
        /// Largest max_p.
        max_p_max: f64 = 0.5, in 0.0..=1.0, "FGS01 Fig. 1";
        ..red: RedConfig = RedConfig { gentle: true, ..RedConfig::feng() }, by "Feng02 Table I (R2)";
    }
}

impl AredConfig {
    /// RED's parameters, of which those that are not given follow from the link's rate.
    fn derived(&self, env: &Env) -> Result<RedParams, ConfigError> {
        let packets = env.rate.bits_per_second() as f64 / (8.0 * f64::from(env.mean_packet));
        let measure = self.red.mode.into();
        let unit = env.unit(measure);
        let min_th = match self.min_th {
            Some(size) => env.resolve("min_th", size, measure)?,
            None => unit * automatic_min_th(self.target, packets),
        };
        let max_th = match self.max_th {
            Some(size) => env.resolve("max_th", size, measure)?,
            None => 3.0 * min_th,
        };
        let red = RedConfig {
            w_q: self.w_q.unwrap_or_else(|| automatic_w_q(packets)),
            ..self.red.clone()
        };
        RedParams::new(&red, env)?.with_thresholds(min_th, max_th)
    }
}

/// The Adaptive RED policy.
#[derive(Clone, Debug)]
pub struct Ared {
    core: RedCore,
    config: AredConfig,
    /// When max_p is adapted next.
    next: Instant,
}

impl Policy for Ared {
    type Config = AredConfig;
    type Tag = ();

    fn new(c: &AredConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        if !(c.max_p_min..=c.max_p_max).contains(&c.max_p) {
            return Err(ConfigError {
                key: "max_p",
                allowed: "between max_p_min and max_p_max".into(),
            });
        }
        Ok(Self {
            core: RedCore::new(c.derived(env)?, c.max_p, env.now),
            config: c.clone(),
            next: env.now + c.interval,
        })
    }

    fn fits(c: &AredConfig, env: &Env) -> Result<(), ConfigError> {
        c.derived(env).map(drop)
    }

    fn going_on(config: &mut AredConfig) {
        config.max_p = config.max_p.max(config.max_p_min).min(config.max_p_max);
    }

    fn retune(&mut self, with: Self, now: Instant) {
        let max_p = self.core.max_p.clamp(with.config.max_p_min, with.config.max_p_max);
        self.core.retune(with.core, now);
        self.core.max_p = max_p;
        self.config = with.config;
        self.next = self.next.min(with.next);
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.core.average(q, cx.now);
        self.core.judge(pkt, q, cx)
    }

    as_red!(core but rate);

    fn rate_changed(&mut self, env: &Env) {
        // Where thresholds that are given leave no room at the new rate, the old ones stay.
        let params = self.config.derived(env).unwrap_or_else(|_| self.core.params.at_rate(env));
        self.core.rate_changed(params, env);
    }

    fn poll_at(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn on_timer(&mut self, _: &View<'_>, cx: &mut Cx<'_>) {
        if cx.now < self.next {
            return;
        }
        self.next = self.next.next_tick(cx.now, self.config.interval);
        let RedParams { min_th, max_th, .. } = self.core.params;
        let avg = self.core.average_at(cx.now);
        self.core.max_p = adapted(self.core.max_p, avg, min_th, max_th, &self.config);
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.core.observe(now, sink);
    }
}

/// w_q for a link of `packets` a second: one second is the time constant (FGS01 §5.2).
fn automatic_w_q(packets: f64) -> f64 {
    -libm::expm1(-1.0 / packets)
}

/// min_th in packets for a link of `packets` a second (FGS01 §5.3).
fn automatic_min_th(target: Duration, packets: f64) -> f64 {
    (target.as_secs_f64() * packets / 2.0).max(5.0)
}

/// max_p after an interval that ended with the average `avg` (FGS01 Fig. 1).
fn adapted(max_p: f64, avg: f64, min_th: f64, max_th: f64, c: &AredConfig) -> f64 {
    let room = max_th - min_th;
    if avg > min_th + 0.6 * room && max_p < c.max_p_max {
        (max_p + c.alpha.min(max_p / 4.0)).min(c.max_p_max)
    } else if avg < min_th + 0.4 * room && max_p > c.max_p_min {
        (max_p * c.beta).max(c.max_p_min)
    } else {
        max_p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Mode;
    use crate::policy::lab::{Lab, env, refused};
    use crate::units::Rate;

    #[test]
    fn parameters_follow_from_the_link() {
        // 45 Mbit/s in packets of 1000 bytes: 5625 a second; 1 − e^(−1/5625) = 1.77762e-4.
        assert!((automatic_w_q(5625.0) - 1.777_62e-4).abs() < 1e-9);
        // 20 ms · 5625 / 2 = 56.25; 1 ms would be 2.8, five packets are the least.
        assert!((automatic_min_th(Duration::from_millis(20), 5625.0) - 56.25).abs() < 1e-9);
        assert_eq!(automatic_min_th(Duration::from_millis(1), 5625.0), 5.0);
    }

    #[test]
    fn max_p_by_hand() {
        let c = AredConfig::default();
        // Thresholds 10 and 30: the target is 18 … 22.
        for (max_p, avg, expected) in [
            (0.1, 23.0, 0.11),   // + 0.01
            (0.02, 23.0, 0.025), // + max_p/4
            (0.1, 17.0, 0.09),   // · 0.9
            (0.1, 18.0, 0.1),    // inside the target
            (0.1, 22.0, 0.1),
            (0.495, 29.0, 0.5), // no farther than the edge
            (0.5, 29.0, 0.5),
            (0.0105, 0.0, 0.01),
            (0.01, 0.0, 0.01),
        ] {
            let got = adapted(max_p, avg, 10.0, 30.0, &c);
            assert!((got - expected).abs() < 1e-12, "{max_p} at {avg}: {got}");
        }
    }

    #[test]
    fn a_queue_above_the_target_raises_max_p_twice_a_second_and_an_idle_one_lowers_it() {
        let mut lab = Lab::<Ared>::new(100, &[("min_th", "10p"), ("max_th", "30p"), ("w_q", "1")]);
        (0..26).for_each(|_| _ = lab.arrive());
        for (ms, expected) in [(499, 0.1), (1, 0.11), (499, 0.11), (1, 0.12)] {
            lab.wait_ms(ms);
            lab.tick();
            assert!((lab.signal("max_p") - expected).abs() < 1e-12);
        }
        while lab.depart().is_some() {}
        lab.wait_ms(500);
        lab.tick();
        assert!((lab.signal("max_p") - 0.108).abs() < 1e-12, "the average aged while it was idle");
        lab.wait_ms(500_000);
        lab.tick();
        assert!((lab.signal("max_p") - 0.0972).abs() < 1e-12, "late: once");
    }

    /// Under a fixed load that ECN cannot move, max_p climbs until the average leaves for the target
    /// or max_p is at its edge; here the queue is held at 28, so it ends on the edge.
    #[test]
    fn max_p_ends_on_its_edge_when_signals_do_not_help() {
        let mut lab = Lab::<Ared>::new(100, &[("min_th", "10p"), ("max_th", "30p"), ("w_q", "1")]);
        (0..28).for_each(|_| _ = lab.arrive());
        for _ in 0..100 {
            lab.arrive();
            lab.depart();
            lab.wait_ms(500);
            lab.tick();
        }
        assert_eq!(lab.signal("max_p"), 0.5);
    }

    #[test]
    fn a_fast_link_gets_thresholds_of_its_delay() {
        // 800 Mbit/s: 100 packets a millisecond; 5 ms are 500 packets, min_th 250, max_th 750.
        let env = Env { rate: Rate::from_mbit(800), ..env(2000) };
        let ared = Ared::new(&AredConfig::default(), &env, &mut Rng::new(1, 0)).unwrap();
        assert!((ared.core.params.min_th - 250.0).abs() < 1e-9);
        assert!((ared.core.params.max_th - 750.0).abs() < 1e-9);
        let red = RedConfig { mode: Mode::Bytes, ..RedConfig::default() };
        let bytes = AredConfig { red, ..AredConfig::default() };
        let ared = Ared::new(&bytes, &env, &mut Rng::new(1, 0)).unwrap();
        assert!((ared.core.params.min_th - 250_000.0).abs() < 1e-6);
    }

    #[test]
    fn settings_that_do_not_fit_together_are_refused() {
        assert_eq!(refused::<Ared>(&[("min_th", "50p"), ("max_th", "20p")]).key, "max_th");
        assert_eq!(refused::<Ared>(&[("max_p", "0.6")]).key, "max_p");
    }
}
