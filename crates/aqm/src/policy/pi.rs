//! PI: a proportional–integral controller for the queue (Hollot, Misra, Towsley, Gong 2001, "HMTG01").
//!
//! TCP behind a queue is taken for a linear plant; the controller that holds the queue at a reference
//! is then designed by the book. Sampled every T:
//!
//! ```text
//! p := p + a·(q − q_ref) − b·(q_old − q_ref);  q_old := q;  p stays within [0, 1]
//! an arriving packet is signalled with probability p
//! ```
//!
//! The gains follow from the link and the range of loads for which it has to be stable: C packets a
//! second, at least N flows, round trips of at most R:
//!
//! ```text
//! ω := 2N/(R²·C)                            (the corner of TCP's window, where the loop crosses over)
//! K := ω·√(1 + (ωR)²) · (2N)²/(RC)³         (gain 1 at ω, with the corner of the queue at 1/R)
//! controller K·(1 + s/ω)/s, by the bilinear transform:  a := K/ω + K·T/2;  b := K/ω − K·T/2
//! ```
//!
//! At the paper's C = 3750, N = 60, R = 0.246 s, T = 1/160 s this gives a = 1.853·10⁻⁵ and
//! b = 1.847·10⁻⁵, where the paper rounds on its way and comes to 1.822·10⁻⁵ and 1.816·10⁻⁵ (preset
//! `hollot`).
//!
//! Where the paper is silent:
//! - Lengths are in packets. In byte mode they are bytes in units of the mean packet.
//! - Samples are counted from the start of the queue; a timer that comes late takes one.

use alloc::format;

use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family, Signal};
use crate::packet::Meta;
use crate::param::{ConfigError, Mode, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Size};

/// What pi tells of itself.
pub const ABOUT: About = About {
    name: "pi",
    family: Family::One,
    summary: "Signals with a probability that a PI controller sets to hold the queue at a \
        reference.",
    source: "HMTG01",
    rule: "PI signals with p_m, which its controller moves by the queue's distance from q_ref \
        (HMTG01)",
    signals: &[Signal { name: "p_m", unit: "0 … 1", doc: "marking probability" }],
    presets: &[("hollot", &[("q_ref", "200p"), ("a", "0.00001822"), ("b", "0.00001816")])],
    live: &["q_ref", "a", "b", "interval", "flows", "rtt"],
    ..About::NEW
};

params! {
    /// Parameters of PI.
    pub struct PiConfig {
        /// The queue wanted (q_ref).
        q_ref: Size = Size::OfBuffer(0.25), "HMTG01 §V (200 of 800 packets)";
        /// Gain of the present queue, per packet; `none`: by the design rule.
        a: Option<f64> = None, in 0.0..=1.0, "HMTG01 §IV";
        /// Gain of the queue one sample ago, per packet; `none`: by the design rule.
        b: Option<f64> = None, in 0.0..=1.0, "HMTG01 §IV";
        /// Time between two samples (T).
        interval: Duration = Duration::from_micros(6250), in Duration::from_micros(100)..=Duration::from_secs(3600), "HMTG01 §V (160 Hz)";
        /// Least number of flows, for the design rule (N).
        flows: u32 = 60, in 1..=1_000_000, "HMTG01 §V", with a = "none" or b = "none";
        /// Largest round-trip time, for the design rule (R).
        rtt: Duration = Duration::from_millis(246), in Duration::from_micros(100)..=Duration::from_secs(3600), "HMTG01 §V", with a = "none" or b = "none";
        /// Whether packets or bytes are counted.
        mode: Mode = Mode::Packets, "HMTG01 (packets)";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "HMTG01 §V";
    }
}

impl PiConfig {
    /// The gains a and b.
    fn gains(&self, env: &Env) -> Result<(f64, f64), ConfigError> {
        let packets_per_second = 1e9 / env.packet_time();
        let (a, b) = gains(self.flows, self.rtt, packets_per_second, self.interval);
        let (a, b) = (self.a.unwrap_or(a), self.b.unwrap_or(b));
        if b < 0.0 {
            let rtt = self.rtt.as_secs_f64();
            let most = rtt * rtt * packets_per_second / f64::from(self.flows);
            let most = Duration::from_micros((most * 1e6) as u64);
            return Err(ConfigError {
                key: "interval",
                allowed: format!(
                    "at most {most} (rtt² · packets a second / flows); or set fewer flows, or a longer rtt"
                )
                .into(),
            });
        }
        if a <= b {
            return Err(ConfigError { key: "a", allowed: "more than b".into() });
        }
        Ok((a, b))
    }
}

/// The PI policy.
#[derive(Clone, Debug)]
pub struct Pi {
    config: PiConfig,
    a: f64,
    b: f64,
    measure: Measure,
    /// One packet in `measure`.
    unit: f64,
    /// In packets.
    q_ref: f64,
    /// The answer for a packet that chance picked.
    signal: Arrival,
    p_m: f64,
    /// The queue at the last sample in packets.
    q_old: f64,
    next: Instant,
}

impl Policy for Pi {
    type Config = PiConfig;
    type Tag = ();

    fn new(c: &PiConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let (a, b) = c.gains(env)?;
        let measure = c.mode.into();
        Ok(Self {
            config: c.clone(),
            a,
            b,
            measure,
            unit: env.unit(measure),
            q_ref: env.resolve("q_ref", c.q_ref, Measure::Packets)?,
            signal: Arrival::early(c.ecn),
            p_m: 0.0,
            q_old: 0.0,
            next: env.now + c.interval,
        })
    }

    fn fits(c: &PiConfig, env: &Env) -> Result<(), ConfigError> {
        c.gains(env).map(drop)
    }

    fn retune(&mut self, with: Self, _: Instant) {
        *self = Self { p_m: self.p_m, q_old: self.q_old, next: self.next.min(with.next), ..with };
    }

    #[inline]
    fn on_arrival(&mut self, _: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        if cx.rng.chance(self.p_m) { self.signal } else { Arrival::Admit }
    }

    fn poll_at(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn on_timer(&mut self, q: &View<'_>, cx: &mut Cx<'_>) {
        if cx.now < self.next {
            return;
        }
        self.next = self.next.next_tick(cx.now, self.config.interval);
        let q = q.size(self.measure) / self.unit;
        let change = self.a * (q - self.q_ref) - self.b * (self.q_old - self.q_ref);
        self.p_m = (self.p_m + change).clamp(0.0, 1.0);
        self.q_old = q;
    }

    fn rate_changed(&mut self, env: &Env) {
        // Where the new rate has no such gains, the old ones stay.
        if let Ok(gains) = self.config.gains(env) {
            (self.a, self.b) = gains;
        }
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("p_m", self.p_m);
    }
}

/// The gains a and b for `flows` at least, round trips of `rtt` at most, and a link of `capacity`
/// packets a second (HMTG01 §IV).
fn gains(flows: u32, rtt: Duration, capacity: f64, interval: Duration) -> (f64, f64) {
    let (n, r, t) = (f64::from(flows), rtt.as_secs_f64(), interval.as_secs_f64());
    let rc = r * capacity;
    let omega = 2.0 * n / (r * rc);
    let x = omega * r;
    let gain = omega * libm::sqrt(1.0 + x * x) * 4.0 * n * n / (rc * rc * rc);
    (gain / omega + gain * t / 2.0, gain / omega - gain * t / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::{Fate, Lab, refused};

    /// HMTG01 §V: a = 1.822e-5, b = 1.816e-5, from ω = 0.53 rad/s and K = 9.64e-6. Unrounded:
    /// RC = 922.5, ω = 120/226.935 = 0.52879, √(1 + 0.13008²) = 1.00842,
    /// K = 0.53324·14 400/785 053 266 = 9.781e-6: 1.5 % more. K/ω = 1.84972e-5, K·T/2 = 3.0566e-8.
    #[test]
    fn the_gains_are_those_of_the_paper_but_for_its_rounding() {
        let (a, b) = gains(60, Duration::from_millis(246), 3750.0, Duration::from_micros(6250));
        assert!((a - 1.85278e-5).abs() < 1e-10, "{a:e}");
        assert!((b - 1.84666e-5).abs() < 1e-10, "{b:e}");
        assert!((a / 1.822e-5 - 1.0).abs() < 0.02 && (b / 1.816e-5 - 1.0).abs() < 0.02);
    }

    /// q_ref = 2, a = 0.3, b = 0.1, a sample each millisecond.
    #[test]
    fn p_follows_the_queue_and_its_sum() {
        let settings = [("q_ref", "2p"), ("a", "0.3"), ("b", "0.1"), ("interval", "1ms")];
        let mut lab = Lab::<Pi>::new(100, &settings);
        let mut sample = |arrivals: u32| {
            (0..arrivals).for_each(|_| _ = lab.arrive());
            lab.wait_ms(1);
            lab.tick();
            lab.signal("p_m")
        };
        assert_eq!(sample(0), 0.0, "0.3·(0 − 2) − 0.1·(0 − 2) is below 0");
        assert!((sample(3) - 0.5).abs() < 1e-12); // 0.3·(3 − 2) − 0.1·(0 − 2)
        assert!((sample(0) - 0.7).abs() < 1e-12); // + 0.3 − 0.1
        assert!((sample(0) - 0.9).abs() < 1e-12);
        assert_eq!(sample(0), 1.0);
    }

    #[test]
    fn p_rests_when_the_queue_is_at_its_reference() {
        let settings = [("q_ref", "2p"), ("a", "0.3"), ("b", "0.1"), ("interval", "1ms")];
        let mut lab = Lab::<Pi>::new(100, &settings);
        (0..2).for_each(|_| assert_eq!(lab.arrive(), Fate::Queued));
        for _ in 0..10 {
            lab.wait_ms(1);
            lab.tick();
            // First 0.3·0 − 0.1·(0 − 2), then nothing.
            assert!((lab.signal("p_m") - 0.2).abs() < 1e-12);
        }
    }

    #[test]
    fn gains_that_do_not_control_are_refused() {
        assert_eq!(refused::<Pi>(&[("a", "0.1"), ("b", "0.1")]).key, "a");
        // 2/ω: 1 s·1000 packets/s, one flow: ω = 0.002, and the interval may be up to 1000 s.
        let slow = [("flows", "1"), ("rtt", "1s"), ("interval", "1001s")];
        let error = refused::<Pi>(&slow);
        assert_eq!(error.key, "interval");
        assert!(error.allowed.starts_with("at most 1000s "), "{}", error.allowed);
    }
}
