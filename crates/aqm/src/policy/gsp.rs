//! GSP: global synchronization protection (Lautenschläger and Francini 2015, "LF15").
//!
//! When a buffer overflows, every flow loses a packet in the round trip that it takes the first loss to
//! show, and all halve their windows at once. GSP signals one packet and then waits until that can have
//! had its effect, whatever the queue does. So few signals may be too few: while the queue spends more
//! time above its threshold than below, the wait gets shorter.
//!
//! ```text
//! at each event:        cumul := cumul + α·(time above the threshold) − (time not above it),
//!                       kept within 0 … max_time
//! a packet arrives, the queue is above its threshold, now > expiry:
//!                       signal;  expiry := now + interval/(1 + cumul/τ)
//! ```
//!
//! The queue is its length, or with `by = "delay"` the time that the packet which left last had waited.
//!
//! Where the paper is silent:
//! - Times are exact: they are taken at departures, too, not only at arrivals. An idle queue has no
//!   delay.
//! - The queue is what an arriving packet finds, without itself.
//! - A signal is a mark where that is possible.

use super::{Arrival, Cx, Departure, Env, Policy, View};
use crate::about::{About, Family, Signal};
use crate::context::Cause;
use crate::packet::Meta;
use crate::param::{ConfigError, Mode, choice, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Size};

/// What gsp tells of itself.
pub const ABOUT: About = About {
    name: "gsp",
    family: Family::One,
    summary: "Signals one packet when the queue passes a threshold, then none until that had its \
        effect.",
    source: "LF15",
    rule: "GSP signals one arriving packet that finds the queue above its threshold, then none \
        until a wait is over that gets shorter the longer the queue stays above (LF15)",
    causes: &[(Cause::Early, "the queue is above the threshold, and the last wait is over")],
    signals: &[
        Signal { name: "interval", unit: "s", doc: "wait after a signal that comes now" },
        Signal {
            name: "excess",
            unit: "s",
            doc: "by how much the weighted time above the threshold was longer",
        },
    ],
    live: &["threshold", "target", "interval", "alpha", "tau", "max_time"],
    ..About::NEW
};

params! {
    /// Parameters of GSP.
    pub struct GspConfig {
        /// Queue above which packets are signalled.
        threshold: Size = Size::OfBuffer(0.2), "LF15; value ours", with by = "length";
        /// Delay above which packets are signalled.
        target: Duration = Duration::from_millis(20), in Duration::ZERO..=Duration::from_secs(3600), "LF15; value ours", with by = "delay";
        /// Time after a signal without another, above all round trips; adaptation makes it shorter.
        interval: Duration = Duration::from_millis(200), in Duration::from_micros(1)..=Duration::from_secs(3600), "LF15; 200 ms: the ns-3 module";
        /// Whether the interval adapts to the load.
        adaptive: bool = true, "LF15";
        /// What a second above the threshold counts against one that is not (α).
        alpha: f64 = 2.0, in 0.0..=100.0, "LF15; 2: the ns-3 module", with adaptive = "true";
        /// Excess of time that halves the interval (τ); LF15 takes five intervals.
        tau: Duration = Duration::from_secs(1), in Duration::from_micros(1)..=Duration::from_secs(3600), "LF15", with adaptive = "true";
        /// Most excess that is remembered.
        max_time: Duration = Duration::from_secs(60), in Duration::ZERO..=Duration::from_secs(3600), "LF15; 60 s: the ns-3 module", with adaptive = "true";
        /// What the queue is measured by.
        by: By = By::Length, "LF15";
        /// Whether the threshold counts packets or bytes.
        mode: Mode = Mode::Packets, "LF15", with by = "length";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "ours: LF15 drops";
    }
}

choice! {
    /// What a queue is measured by.
    pub enum By {
        /// What waits in it.
        Length = "length",
        /// How long the packet that left last had waited.
        Delay = "delay",
    }
}

/// What the queue is compared with.
#[derive(Clone, Copy, Debug)]
enum Threshold {
    /// In the measure.
    Length(f64, Measure),
    Delay(Duration),
}

/// The GSP policy.
#[derive(Clone, Debug)]
pub struct Gsp {
    threshold: Threshold,
    /// In nanoseconds.
    interval: f64,
    alpha: f64,
    tau: f64,
    /// 0 without adaptation.
    max_time: f64,
    /// The answer for a packet that is signalled.
    signal: Arrival,
    /// Excess of the time above the threshold, in nanoseconds, up to `counted`.
    cumul: f64,
    counted: Instant,
    /// Up to when nothing is signalled.
    expiry: Instant,
    /// Of the packet that left last.
    delay: Duration,
}

impl Policy for Gsp {
    type Config = GspConfig;
    type Tag = ();

    fn new(config: &GspConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let measure = config.mode.into();
        let threshold = match config.by {
            By::Length => {
                Threshold::Length(env.resolve("threshold", config.threshold, measure)?, measure)
            }
            By::Delay => Threshold::Delay(config.target),
        };
        Ok(Self {
            threshold,
            interval: config.interval.as_nanos() as f64,
            alpha: config.alpha,
            tau: config.tau.as_nanos() as f64,
            max_time: if config.adaptive { config.max_time.as_nanos() as f64 } else { 0.0 },
            signal: Arrival::early(config.ecn),
            cumul: 0.0,
            counted: env.now,
            expiry: env.now,
            delay: Duration::ZERO,
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        *self = Self {
            cumul: self.cumul,
            counted: self.counted,
            expiry: self.expiry,
            delay: self.delay,
            ..with
        };
    }

    #[inline]
    fn on_arrival(&mut self, _: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let above = match self.threshold {
            Threshold::Length(threshold, measure) => q.size(measure) > threshold,
            Threshold::Delay(target) => self.delay > target,
        };
        self.count(above, cx.now);
        if !above || cx.now <= self.expiry {
            return Arrival::Admit;
        }
        self.expiry = cx.now + Duration::from_nanos(self.present_interval() as u64);
        self.signal
    }

    #[inline]
    fn on_departure(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        let above = match self.threshold {
            Threshold::Length(threshold, Measure::Packets) => {
                q.size(Measure::Packets) + 1.0 > threshold
            }
            Threshold::Length(threshold, Measure::Bytes) => {
                q.size(Measure::Bytes) + f64::from(pkt.len) > threshold
            }
            Threshold::Delay(target) => self.delay > target,
        };
        self.count(above, cx.now);
        self.delay = cx.now.since(pkt.arrived);
        Departure::Send
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        let above = matches!(self.threshold, Threshold::Delay(target) if self.delay > target);
        self.count(above, cx.now);
        self.delay = Duration::ZERO;
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("interval", self.present_interval() / 1e9);
        sink("excess", self.cumul / 1e9);
    }
}

impl Gsp {
    /// The time since the last event counts as above the threshold, or not.
    #[inline]
    fn count(&mut self, above: bool, now: Instant) {
        let time = now.since(self.counted).as_nanos() as f64;
        let change = if above { self.alpha * time } else { -time };
        self.cumul = (self.cumul + change).clamp(0.0, self.max_time);
        self.counted = now;
    }

    /// The wait after a signal that comes now, in nanoseconds.
    fn present_interval(&self) -> f64 {
        self.interval / (1.0 + self.cumul / self.tau)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Cause;
    use crate::packet::Ecn;
    use crate::policy::lab::{Fate, Lab, refused};

    /// A threshold of 3 packets: the fifth finds four. Then nothing for 10 ms, and one more.
    #[test]
    fn one_signal_an_interval() {
        let settings = [("threshold", "3p"), ("interval", "10ms"), ("adaptive", "false")];
        let mut lab = Lab::<Gsp>::new(50, &settings);
        lab.wait_ms(1);
        (0..4).for_each(|_| assert_eq!(lab.arrive(), Fate::Queued));
        assert_eq!(lab.arrive(), Fate::Marked);
        lab.wait_ms(10);
        assert_eq!(lab.arrive(), Fate::Queued, "not before the interval is over");
        lab.wait(Duration::from_nanos(1));
        assert_eq!(lab.arrive_as(1000, Ecn::NotEct), Fate::Dropped(Cause::Early));
        assert_eq!(lab.arrive(), Fate::Queued);
    }

    /// 100 ms above count double, 50 ms below once: 150 ms of excess, and with τ = 150 ms the interval
    /// is half as long.
    #[test]
    fn time_above_the_threshold_makes_the_interval_shorter() {
        let settings = [("threshold", "1p"), ("interval", "80ms"), ("tau", "150ms")];
        let mut lab = Lab::<Gsp>::new(50, &settings);
        (0..2).for_each(|_| _ = lab.arrive());
        lab.wait_ms(100);
        lab.depart();
        assert!((lab.signal("excess") - 0.2).abs() < 1e-12, "{}", lab.signal("excess"));
        lab.wait_ms(50);
        lab.depart();
        assert!((lab.signal("excess") - 0.15).abs() < 1e-12);
        assert!((lab.signal("interval") - 0.04).abs() < 1e-12);
        lab.depart();
        lab.wait_ms(1000);
        lab.arrive();
        assert_eq!(lab.signal("interval"), 0.08, "an idle link brings it back");
    }

    #[test]
    fn the_delay_of_the_packet_that_left_last_counts_until_the_link_is_idle() {
        let settings = [("by", "delay"), ("target", "5ms"), ("interval", "1ms")];
        let mut lab = Lab::<Gsp>::new(50, &settings);
        (0..3).for_each(|_| _ = lab.arrive());
        lab.wait_ms(6);
        assert_eq!(lab.arrive(), Fate::Queued, "nothing has left");
        lab.depart();
        assert_eq!(lab.arrive(), Fate::Marked);
        lab.wait_ms(2);
        while lab.depart().is_some() {}
        assert_eq!(lab.arrive(), Fate::Queued);
    }

    #[test]
    fn a_threshold_needs_a_measure() {
        assert_eq!(refused::<Gsp>(&[("threshold", "1bdp")]).key, "threshold");
    }

    #[test]
    fn a_delay_of_just_the_target_is_not_above_it() {
        let settings = [("by", "delay"), ("target", "5ms"), ("interval", "1ms")];
        for (more, fate) in [(0, Fate::Queued), (1, Fate::Marked)] {
            let mut lab = Lab::<Gsp>::new(50, &settings);
            (0..3).for_each(|_| _ = lab.arrive());
            lab.wait(Duration::from_nanos(5_000_000 + more));
            lab.depart();
            assert_eq!(lab.arrive(), fate, "{more} ns more");
        }
    }
}
