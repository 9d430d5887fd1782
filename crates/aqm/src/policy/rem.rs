//! REM: random exponential marking (Athuraliya, Li, Low, Yin 2001, "ALLY01").
//!
//! A link has a price, which says how much more than it can carry is asked of it. It rises while
//! more arrives than departs or the queue is longer than wanted, and falls otherwise. So it
//! rests only where arrivals match the link and the queue is at its target, however many flows there
//! are. Signals go with its exponential, so that the share of unsignalled packets on a path of many
//! links tells the sum of their prices:
//!
//! ```text
//! each interval, with b queued, x arrived in it and c that the link could send:
//!     price := max(0, price + γ·(α·(b − b*) + x − c))
//! an arriving packet is signalled with probability 1 − φ^(−price)
//! ```
//!
//! Where the paper is silent:
//! - Quantities are in packets. In byte mode bytes are counted, in units of the mean packet.
//! - Intervals are counted from the start of the queue. A timer that comes late updates once, with
//!   what arrived and what the link could send since the last update.

use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family, Signal};
use crate::packet::Meta;
use crate::param::{ConfigError, Mode, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Size};

/// What rem tells of itself.
pub const ABOUT: About = About {
    name: "rem",
    family: Family::One,
    summary: "Signals with the exponential of a price that asks for the link's rate and a short \
        queue.",
    source: "ALLY01",
    rule: "REM signals an arriving packet with probability 1 − φ^(−price); the price rises while \
        more arrives than the link carries or the queue is longer than its target (ALLY01)",
    signals: &[
        Signal { name: "price", unit: "", doc: "price of the link" },
        Signal { name: "p_m", unit: "0 … 1", doc: "marking probability" },
    ],
    live: &["gamma", "alpha", "phi", "target", "interval"],
    ..About::NEW
};

params! {
    /// Parameters of REM.
    pub struct RemConfig {
        /// Step of the price (γ), per packet.
        gamma: f64 = 0.001, in 0.0..=1.0, "ALLY01";
        /// Weight of the queue against the rates (α).
        alpha: f64 = 0.1, in 0.0..=10.0, "ALLY01";
        /// Base of the signalling probability (φ).
        phi: f64 = 1.001, in 1.0..=10.0, "ALLY01";
        /// The queue wanted (b*).
        target: Size = Size::Packets(20), "ALLY01";
        /// Time between two changes of the price.
        interval: Duration = Duration::from_millis(10), in Duration::from_micros(100)..=Duration::from_secs(3600), "value ours";
        /// Whether packets or bytes are counted.
        mode: Mode = Mode::Packets, "ALLY01 (packets)";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "ALLY01";
    }
}

/// The REM policy.
#[derive(Clone, Debug)]
pub struct Rem {
    config: RemConfig,
    measure: Measure,
    /// One packet in `measure`.
    unit: f64,
    /// In packets.
    target: f64,
    /// Transmission time of a mean packet in nanoseconds.
    packet_time: f64,
    /// The answer for a packet that chance picked.
    signal: Arrival,
    price: f64,
    /// The signalling probability of the price.
    p_m: f64,
    /// What arrived since `updated`, in `measure`.
    arrived: u64,
    updated: Instant,
    next: Instant,
}

impl Policy for Rem {
    type Config = RemConfig;
    type Tag = ();

    fn new(c: &RemConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let measure = c.mode.into();
        Ok(Self {
            measure,
            unit: env.unit(measure),
            target: env.resolve("target", c.target, Measure::Packets)?,
            packet_time: env.packet_time(),
            signal: Arrival::early(c.ecn),
            price: 0.0,
            p_m: 0.0,
            arrived: 0,
            updated: env.now,
            next: env.now + c.interval,
            config: c.clone(),
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        *self = Self {
            price: self.price,
            p_m: self.p_m,
            arrived: self.arrived,
            updated: self.updated,
            next: self.next.min(with.next),
            ..with
        };
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.arrived += match self.measure {
            Measure::Packets => 1,
            Measure::Bytes => u64::from(pkt.len),
        };
        if cx.rng.chance(self.p_m) { self.signal } else { Arrival::Admit }
    }

    fn rate_changed(&mut self, env: &Env) {
        self.packet_time = env.packet_time();
    }

    fn poll_at(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn on_timer(&mut self, q: &View<'_>, cx: &mut Cx<'_>) {
        if cx.now < self.next {
            return;
        }
        self.next = self.next.next_tick(cx.now, self.config.interval);
        let backlog = q.size(self.measure) / self.unit - self.target;
        let capacity = cx.now.since(self.updated).as_nanos() as f64 / self.packet_time;
        let excess = self.arrived as f64 / self.unit - capacity;
        self.price = price(self.price, backlog, excess, &self.config);
        self.p_m = probability(self.price, self.config.phi);
        (self.arrived, self.updated) = (0, cx.now);
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("price", self.price);
        sink("p_m", self.p_m);
    }
}

/// The price after an interval that ended with `backlog` packets above the target and brought
/// `excess` packets more than the link could send (ALLY01 eq. 1).
fn price(price: f64, backlog: f64, excess: f64, c: &RemConfig) -> f64 {
    (price + c.gamma * (c.alpha * backlog + excess)).max(0.0)
}

/// The signalling probability of a price (ALLY01 eq. 2).
fn probability(price: f64, phi: f64) -> f64 {
    -libm::expm1(-price * libm::log(phi))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Cause;
    use crate::policy::lab::{Fate, Lab};

    #[test]
    fn the_price_by_hand() {
        let c = RemConfig::default();
        for (before, backlog, excess, after) in [
            (1.0, 0.0, 0.0, 1.0),    // at rest
            (1.0, 30.0, 0.0, 1.003), // 0.001·0.1·30
            (1.0, 0.0, 50.0, 1.05),
            (1.0, 30.0, -3.0, 1.0), // the queue drains as it should
            (0.001, -20.0, 0.0, 0.0),
        ] {
            assert!((price(before, backlog, excess, &c) - after).abs() < 1e-12);
        }
    }

    #[test]
    fn the_probability_by_hand() {
        // 1 − 2⁻³ = 0.875; 1 − 1.001⁻¹⁰⁰⁰ = 1 − e^(−0.9995) = 0.63194.
        for (price, phi, p) in [(0.0, 1.001, 0.0), (3.0, 2.0, 0.875), (1000.0, 1.001, 0.631_936)] {
            assert!((probability(price, phi) - p).abs() < 1e-5, "{price} {phi}");
        }
    }

    /// What a path of two links leaves unsignalled is what one link of the prices' sum would.
    #[test]
    fn prices_of_a_path_add_up() {
        let unsignalled = |price| 1.0 - probability(price, 1.1);
        assert!((unsignalled(2.0) * unsignalled(5.0) - unsignalled(7.0)).abs() < 1e-12);
    }

    /// 20 packets stand, as many arrive as the link can send: nothing moves. Twice as many: ten
    /// packets too many in an interval.
    #[test]
    fn the_price_rests_at_the_target_and_rises_with_arrivals() {
        let mut lab = Lab::<Rem>::new(1000, &[]);
        let mut interval = |arrivals: u32| {
            for ms in 0..10 {
                lab.wait_ms(1);
                (0..arrivals / 10 + u32::from(ms < arrivals % 10)).for_each(|_| _ = lab.arrive());
                lab.depart();
            }
            lab.tick();
            lab.signal("price")
        };
        // α·(30 − 20 − 10) with ten sent, and 30 − 10: 20 thousandths.
        assert!((interval(30) - 0.02).abs() < 1e-12);
        assert!((interval(10) - 0.02).abs() < 1e-12);
        assert!((interval(20) - 0.031).abs() < 1e-12, "ten more queued, ten more arrived");
        assert!((interval(0) - 0.021).abs() < 1e-12);
    }

    #[test]
    fn a_late_timer_counts_what_the_link_could_send_meanwhile() {
        let mut lab = Lab::<Rem>::new(1000, &[("alpha", "0")]);
        (0..100).for_each(|_| _ = lab.arrive());
        lab.wait_ms(95);
        lab.tick();
        assert!((lab.signal("price") - 0.005).abs() < 1e-12, "100 came, 95 could have gone");
        lab.wait_ms(5);
        lab.tick();
        assert_eq!(lab.signal("price"), 0.0, "intervals are counted from the start");
    }

    #[test]
    fn without_ecn_signals_are_drops() {
        for (ecn, fate) in [("true", Fate::Marked), ("false", Fate::Dropped(Cause::Early))] {
            let settings = [("gamma", "1"), ("phi", "10"), ("target", "0p"), ("ecn", ecn)];
            let mut lab = Lab::<Rem>::new(1000, &settings);
            (0..100).for_each(|_| assert_eq!(lab.arrive(), Fate::Queued));
            lab.wait_ms(10);
            lab.tick();
            // The price is 0.1·100 + 100 − 10: all but 10⁻¹⁰⁰ of the packets.
            assert_eq!(lab.arrive(), fate);
        }
    }
}
