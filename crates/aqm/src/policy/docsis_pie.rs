//! DOCSIS-PIE: the variant of PIE that cable modems run (RFC 8034).
//!
//! ```text
//! every 16 ms:  delay := what is queued, with its framing/rate of the link
//!     burst > 0:  p := 0;  burst −= 16 ms
//!     else:       step := alpha (delay − target) + beta (delay − delay before), divided as by p's size
//!                 p ≥ 0.1:  step at most 0.02
//!                 p += step
//!                 both delays below 5 ms:  p *= 0.98;  delay above 200 ms:  p += 0.02
//!                 p stays within [0, 0.85 · 1024/64]
//!     quiet := both delays < target/2, p = 0, burst = 0
//!     active, quiet:     quiescent
//!     quiescent, quiet for more than 1 s:  inactive
//! a packet of len bytes arrives:
//!     no room:  sum := 0, tail drop
//!     burst > 0:  admit;  p = 0:  sum := 0
//!     inactive:  a queue below a third of the buffer:  admit;  else:  quiescent
//!     p1 := min(p · len/1024, 0.85);  sum += p1
//!     delay before < target/2 and p < 0.2, or at most 2048 bytes queued:  admit
//!     sum < 0.85:  admit;  sum ≥ 8.5 or with probability p1:  drop, sum := 0
//!         quiescent:  active, burst := 142 ms
//! ```
//!
//! A modem shapes with two token buckets and knows the tokens left; a link here has one rate, so
//! the peak rate and the sustained rate are the link's and there are no tokens. There is no ECN
//! (§4.7).

use super::{Arrival, Policy, Victim, View, pie};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::{Cause, Cx, Env};
use crate::framing::Framing;
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Rate};

/// What docsis-pie tells of itself.
pub const ABOUT: About = About {
    name: "docsis-pie",
    family: Family::Delay,
    summary: "PIE as cable modems have it: by bytes, with protection of a burst after the first \
        drop.",
    source: "RFC 8034",
    rule: "DOCSIS-PIE drops an arriving packet with a probability that grows with its bytes; a \
        controller moves it as in PIE, and a burst that follows the first drop is spared (RFC \
        8034)",
    unmarked: Unmarked { coin: "DOCSIS-PIE never marks", rule: "DOCSIS-PIE never marks" },
    signals: &[
        Signal {
            name: "drop_prob",
            unit: "0 … 13.6",
            doc: "drop probability of a packet of 1024 bytes",
        },
        Signal { name: "delay", unit: "s", doc: "queueing delay at the last update" },
        Signal { name: "burst", unit: "s", doc: "protection of a burst left" },
        Signal { name: "active", unit: "", doc: "0 inactive, 0.5 quiescent, 1 active" },
    ],
    live: &["target", "t_update", "alpha", "beta", "max_burst", "burst_reset"],
    ..About::NEW
};

/// Bytes of the mean and of the smallest packet (§A.1.2).
const MEAN: f64 = 1024.0;
const LEAST: f64 = 64.0;
/// Below the first sum of probabilities nothing is dropped, from the second on surely (§A.1.2).
const PROB: (f64, f64) = (0.85, 8.5);
/// Delays in seconds below which p decays, and above which it climbs faster (§A.1.2).
const LATENCY: (f64, f64) = (0.005, 0.2);

params! {
    /// Parameters of DOCSIS-PIE.
    pub struct DocsisPieConfig {
        /// Delay to which the controller steers the queue.
        target: Duration = Duration::from_millis(10), in Duration::ZERO..=Duration::from_secs(3600), "RFC 8034 §4.1";
        /// Time between updates.
        t_update: Duration = Duration::from_millis(16), in Duration::from_micros(1)..=Duration::from_secs(3600), "RFC 8034 §A.1.2";
        /// Weight of the delay above target, per second.
        alpha: f64 = 0.25, in 0.0..=10_000.0, "RFC 8034 §A.1.2";
        /// Weight of the growth of the delay, per second.
        beta: f64 = 2.5, in 0.0..=10_000.0, "RFC 8034 §A.1.2";
        /// How long a burst passes unharmed after the first drop.
        max_burst: Duration = Duration::from_millis(142), in Duration::ZERO..=Duration::from_secs(3600), "RFC 8034 §A.1.2";
        /// How long all has to be quiet until the algorithm rests.
        burst_reset: Duration = Duration::from_secs(1), in Duration::ZERO..=Duration::from_secs(3600), "RFC 8034 §A.1.2";
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Activity {
    /// The queue has stayed below a third of the buffer: no early drops.
    Inactive,
    /// The next early drop begins the protection of a burst.
    Quiescent,
    Active,
}

/// The DOCSIS-PIE policy.
#[derive(Clone, Debug)]
pub struct DocsisPie {
    config: DocsisPieConfig,
    rate: Rate,
    framing: Framing,
    /// A third of the buffer, as the buffer counts.
    third: (f64, Measure),
    /// Drop probability of a packet of [`MEAN`] bytes; above 1 it is that of smaller ones that counts.
    p: f64,
    /// Probabilities of the packets since the last drop, added up.
    sum: f64,
    /// Delay at the last update, in seconds.
    old: f64,
    burst: Duration,
    quiet_for: Duration,
    activity: Activity,
    next: Instant,
}

impl Policy for DocsisPie {
    type Config = DocsisPieConfig;
    type Tag = ();

    fn new(config: &DocsisPieConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let measure = env.limit.measure();
        Ok(Self {
            config: config.clone(),
            rate: env.rate,
            framing: env.framing,
            third: (env.limit.in_measure(measure, env.mean_packet) / 3.0, measure),
            p: 0.0,
            sum: 0.0,
            old: 0.0,
            burst: Duration::ZERO,
            quiet_for: Duration::ZERO,
            activity: Activity::Inactive,
            next: env.now + config.t_update,
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        *self = Self {
            p: self.p,
            sum: self.sum,
            old: self.old,
            burst: self.burst,
            quiet_for: self.quiet_for,
            activity: self.activity,
            next: self.next.min(with.next),
            ..with
        };
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        if !q.fits(pkt.len) || !self.chosen(pkt.len, q, cx.rng) {
            return Arrival::Admit;
        }
        self.sum = 0.0;
        if self.activity == Activity::Quiescent {
            self.activity = Activity::Active;
            self.burst = self.config.max_burst;
        }
        Arrival::Reject(Cause::Early)
    }

    fn on_overflow(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Victim {
        self.sum = 0.0;
        Victim::Arriving
    }

    fn rate_changed(&mut self, env: &Env) {
        (self.rate, self.framing) = (env.rate, env.framing);
    }

    fn poll_at(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn on_timer(&mut self, q: &View<'_>, cx: &mut Cx<'_>) {
        if cx.now < self.next {
            return;
        }
        self.next = self.next.next_tick(cx.now, self.config.t_update);
        let on_wire = q.backlog().on_wire(self.framing);
        let delay = on_wire as f64 * 8.0 / self.rate.bits_per_second() as f64;
        if self.burst > Duration::ZERO {
            self.p = 0.0;
            self.burst = self.burst.saturating_sub(self.config.t_update);
        } else {
            self.p = self.updated(delay);
        }
        let half = self.config.target.as_secs_f64() / 2.0;
        let calm = delay < half && self.old < half;
        self.rest(calm && self.p == 0.0 && self.burst == Duration::ZERO);
        self.old = delay;
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("drop_prob", self.p);
        sink("delay", self.old);
        sink("burst", self.burst.as_secs_f64());
        sink("active", f64::from(self.activity as u8) / 2.0);
    }

    fn observe_flow(&self, _: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("accumulated", self.sum);
    }
}

impl DocsisPie {
    /// Whether a packet that has room is to be dropped (§A.3, `drop_early`).
    #[inline]
    fn chosen(&mut self, len: u32, q: &View<'_>, rng: &mut Rng) -> bool {
        if self.burst > Duration::ZERO {
            return false;
        }
        if self.p == 0.0 {
            self.sum = 0.0;
        }
        if self.activity == Activity::Inactive {
            if q.size(self.third.1) < self.third.0 {
                return false;
            }
            self.activity = Activity::Quiescent;
        }
        let p1 = (self.p * f64::from(len) / MEAN).min(PROB.0);
        self.sum += p1;
        let calm = self.old < self.config.target.as_secs_f64() / 2.0 && self.p < 0.2;
        if calm || q.size(Measure::Bytes) <= 2.0 * MEAN || self.sum < PROB.0 {
            return false;
        }
        self.sum >= PROB.1 || rng.chance(p1)
    }

    /// The drop probability after an update that sees `delay` seconds (§A.2).
    fn updated(&self, delay: f64) -> f64 {
        let above = delay - self.config.target.as_secs_f64();
        let step = self.config.alpha * above + self.config.beta * (delay - self.old);
        let step = step / damping(self.p);
        let p = self.p + if self.p >= 0.1 { step.min(0.02) } else { step };
        let p = if delay < LATENCY.0 && self.old < LATENCY.0 {
            p * 0.98
        } else if delay > LATENCY.1 {
            p + 0.02
        } else {
            p
        };
        p.clamp(0.0, PROB.0 * MEAN / LEAST)
    }

    /// An update is over; `quiet`: there was nothing to do.
    fn rest(&mut self, quiet: bool) {
        match self.activity {
            Activity::Active if quiet => {
                self.activity = Activity::Quiescent;
                self.quiet_for = Duration::ZERO;
            }
            Activity::Quiescent if quiet => {
                self.quiet_for += self.config.t_update;
                if self.quiet_for > self.config.burst_reset {
                    self.quiet_for = Duration::ZERO;
                    self.activity = Activity::Inactive;
                }
            }
            Activity::Quiescent => self.quiet_for = Duration::ZERO,
            _ => {}
        }
    }
}

/// By what a step is divided at a drop probability `p` (§4.4, §A.2): as in PIE below 0.1.
fn damping(p: f64) -> f64 {
    match p {
        p if p < 0.1 => pie::damping(p),
        p if p < 1.0 => 0.5,
        p if p < 10.0 => 0.125,
        _ => 0.03125,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Discipline as _, Fifo, Qdisc as _};

    /// §A.2: a bound belongs to the range above it.
    #[test]
    fn steps_are_divided_by_less_where_p_is_greater() {
        for (p, by) in
            [(0.09, 2.0), (0.1, 0.5), (0.99, 0.5), (1.0, 0.125), (9.9, 0.125), (10.0, 0.03125)]
        {
            assert_eq!(damping(p), by, "{p}");
        }
    }

    /// §A.2: what is above 200 ms raises it by 0.02 beside the step.
    #[test]
    fn a_very_long_delay_adds_two_hundredths() {
        let lab = crate::policy::lab::Lab::<DocsisPie>::new(50, &[]);
        let [just, beyond] = [0.2, 0.2 + 1e-9].map(|delay| lab.queue.policy().updated(delay));
        assert!((beyond - just - 0.02).abs() < 1e-6, "{just} {beyond}");
    }

    /// Ten packets of 1000 bytes at a byte a microsecond: with 250 bytes of framing they take 12.5 ms, not 10.
    #[test]
    fn what_frames_take_is_delay() {
        for (framing, delay) in [("overhead 0", 0.010), ("overhead 250", 0.0125)] {
            let mut env = crate::policy::lab::env(1000);
            env.framing = framing.parse().unwrap();
            let mut rng = Rng::new(1, 0);
            let mut q =
                Fifo::<DocsisPie, ()>::new(&DocsisPieConfig::default(), &env, &mut rng).unwrap();
            let mut cx = Cx { now: env.now, rng: &mut rng };
            (0..10).for_each(|_| {
                q.enqueue(Meta { len: 1000, ..Meta::default() }, (), &mut cx, &mut ());
            });
            let now = q.poll_at().unwrap();
            q.on_timer(&mut Cx { now, rng: &mut rng }, &mut ());
            let mut seen = 0.0;
            q.observe(now, &mut |name, value| {
                if name == "delay" {
                    seen = value;
                }
            });
            assert!((seen - delay).abs() < 1e-9, "{framing}: {seen}");
        }
    }
}
