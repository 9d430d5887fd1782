//! PI2: a PI controller of the delay, whose output is squared for classic traffic (De Schepper,
//! Bondarenko, Tsang, Briscoe, PI2, CoNEXT 2016; RFC 9332 appendix A).
//!
//! A classic flow's rate falls with the square root of its signals, so the square of a linear
//! controller's output controls it at any load: PIE's table of gains is not needed. A scalable
//! flow's rate falls with the number of its signals; multiplied by the coupling factor k, not
//! squared, the output gives it about the rate of a classic flow in the same queue.
//!
//! ```text
//! every t_update:  delay := how long the head has waited, 0 for an empty queue
//!                  p' := p' + alpha (delay − target) + beta (delay − delay before), within [0, 1]
//! a packet leaves:  ECT(1) or CE, and not overload:  signal it with k p'
//!                   any other:                       signal it with p_C = p'²
//! ```
//!
//! Overload is p_C ≥ min(1/k², 1), where k p' would pass 1: from there on every signal is a drop
//! with p_C, and what is ECT(1) or CE and not dropped is marked. [`DualPi2`](crate::dual::dualpi2)
//! gives each kind of traffic a queue of its own. With `signals = random-twice` there is overload only where
//! k p' > 1, as in Linux: with k = 1 never.
//!
//! Where the sources differ: the paper decides at arrival, the RFC at departure, which tells
//! senders a queue's delay sooner; the RFC's way is taken. `signals = recur` spaces signals as the
//! RFC's DualPI2 does, `random` draws as the paper and Linux do.

use super::{Departure, Policy, View};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::{Cause, Cx, Env};
use crate::packet::{Ecn, Meta};
use crate::param::{ConfigError, choice, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// The parameters of the controller that may change while it runs.
pub(crate) const LIVE: &[&str] = &["target", "rtt_max", "t_update", "alpha", "beta", "k"];

/// What pi2 tells of itself.
pub const ABOUT: About = About {
    name: "pi2",
    family: Family::Delay,
    summary: "Signals classic packets with the square of a controller's output, scalable ones \
        with its double.",
    source: "DBTB16; RFC 9332",
    rule: "PI2 signals with the square of its controller's output, and scalable flows with the \
        coupled output itself (RFC 9332); without a coin (signals = recur) probabilities add up, \
        and each time that they pass 1 a packet is signalled",
    unmarked: Unmarked {
        coin: "in overload every signal is a drop: p_c is not below 1/k²",
        rule: "in overload every signal is a drop: p_c is not below 1/k²",
    },
    signals: &[
        Signal { name: "p", unit: "0 … 1", doc: "base probability, the controller's output" },
        Signal { name: "p_c", unit: "0 … 1", doc: "probability of a classic signal" },
        Signal { name: "p_cl", unit: "0 … 1", doc: "probability of a scalable mark by coupling" },
        Signal { name: "delay", unit: "s", doc: "queueing delay at the last update" },
    ],
    presets: &[(
        "linux",
        &[("t_update", "16ms"), ("alpha", "0.16"), ("beta", "3.2"), ("signals", "random")],
    )],
    live: LIVE,
    ..About::NEW
};

params! {
    /// Parameters of the controller.
    pub struct ControllerConfig {
        /// Delay to which the controller steers the queue.
        target: Duration = Duration::from_millis(15), in Duration::from_micros(1)..=Duration::from_secs(3600), "RFC 9332 Fig. 2";
        /// Longest round-trip time for which the controller is to be stable.
        rtt_max: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), "RFC 9332 Fig. 2", with t_update = "none" or alpha = "none" or beta = "none";
        /// Time between updates; none: the lesser of `target` and a third of `rtt_max`.
        t_update: Option<Duration> = None, in Duration::from_micros(1)..=Duration::from_secs(3600), "RFC 9332 Fig. 2";
        /// Integral gain, in Hz; none: 0.1 t_update/rtt_max².
        alpha: Option<f64> = None, in 0.0..=10_000.0, "RFC 9332 Fig. 2";
        /// Proportional gain, in Hz; none: 0.3/rtt_max.
        beta: Option<f64> = None, in 0.0..=10_000.0, "RFC 9332 Fig. 2";
        /// Coupling factor: a scalable packet's probability is k p', a classic one's p'².
        k: f64 = 2.0, in 0.1..=100.0, "RFC 9332 Fig. 2, appendix C", with ecn = "true";
        /// How a probability becomes signals.
        signals: Signals = Signals::Recur, "RFC 9332 Fig. 4";
    }
}

choice! {
    /// How a probability becomes signals.
    pub enum Signals {
        /// Probabilities add up, and each whole number that is passed is a signal.
        Recur = "recur",
        /// A random number is drawn for each packet.
        Random = "random",
        /// A random number is drawn for each L4S packet and two for a classic one, both of which have to be below
        /// p': its square (DBTB16; Linux).
        RandomTwice = "random-twice",
    }
}

params! {
    /// Parameters of PI2.
    pub struct Pi2Config {
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "RFC 9332 Fig. 4";
    }
}

/// The controller, and the probabilities that follow from its output p'.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    target: f64,
    t_update: Duration,
    alpha: f64,
    beta: f64,
    k: f64,
    /// Base probability p', [0, 1].
    base: f64,
    /// Delay at the last update, in seconds.
    old: f64,
    /// The probability of a classic signal, p'².
    pub(crate) classic: f64,
    /// The probability of a scalable mark, k p', at most 1.
    pub(crate) coupled: f64,
    /// The classic probability from which on there is overload; `None`: there is where k p' would pass 1, as in
    /// Linux.
    limit: Option<f64>,
    /// Where p' and k p' end.
    ends: [f64; 2],
    /// When the next update is due.
    next: Instant,
}

impl Controller {
    pub(crate) fn new(c: &ControllerConfig, now: Instant) -> Self {
        let t_update = c.t_update.unwrap_or_else(|| c.target.min(c.rtt_max / 3));
        let rtt = c.rtt_max.as_secs_f64();
        Self {
            target: c.target.as_secs_f64(),
            t_update,
            alpha: c.alpha.unwrap_or(0.1 * t_update.as_secs_f64() / (rtt * rtt)),
            beta: c.beta.unwrap_or(0.3 / rtt),
            k: c.k,
            base: 0.0,
            old: 0.0,
            classic: 0.0,
            coupled: 0.0,
            limit: (c.signals != Signals::RandomTwice).then(|| (1.0 / (c.k * c.k)).min(1.0)),
            ends: [1.0, 1.0],
            next: now + t_update,
        }
    }

    /// Goes on as `with` from what it knows.
    pub(crate) fn retune(&mut self, with: Self) {
        let Self { base, old, classic, coupled, .. } = *self;
        let next = self.next.min(with.next);
        *self = Self { base, old, classic, coupled, next, ..with };
    }

    /// Whether classic signals are so many that ECN is no longer enough.
    #[inline]
    pub(crate) fn overload(&self) -> bool {
        self.limit.map_or(self.k * self.base > 1.0, |limit| self.classic >= limit)
    }

    /// Whether packets of L, too, meet overload.
    #[inline]
    pub(crate) fn overload_of_l(&self) -> bool {
        self.limit.map_or(self.k * self.base > 1.0, |_| self.coupled >= 1.0)
    }

    /// This ramp without overload: k p' ends just below 1, p' where it does.
    pub(crate) fn without_overload(self) -> Self {
        let ends = [(1.0 / self.k).min(1.0), 1.0 - f64::EPSILON];
        Self { ends, limit: self.limit.map(|_| f64::INFINITY), ..self }
    }

    /// Whether two random numbers are below p'.
    pub(crate) fn falls_twice(&self, rng: &mut Rng) -> bool {
        rng.chance(self.base) && rng.chance(self.base)
    }

    pub(crate) fn poll_at(&self) -> Instant {
        self.next
    }

    /// Updates p' if that is due; the queue's delay is `delay`.
    pub(crate) fn on_timer(&mut self, delay: Duration, now: Instant) {
        if now < self.next {
            return;
        }
        self.next = self.next.next_tick(now, self.t_update);
        let delay = delay.as_secs_f64();
        let step = self.alpha * (delay - self.target) + self.beta * (delay - self.old);
        self.base = (self.base + step).clamp(0.0, self.ends[0]);
        self.old = delay;
        self.classic = self.base * self.base;
        self.coupled = (self.k * self.base).min(self.ends[1]);
    }

    /// Reports p', p_C, p_CL and the delay at the last update.
    pub(crate) fn observe(&self, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("p", self.base);
        sink("p_c", self.classic);
        sink("p_cl", self.coupled);
        sink("delay", self.old);
    }
}

/// Turns probabilities into signals.
#[derive(Clone, Debug)]
pub(crate) struct Coin {
    signals: Signals,
    /// Probabilities since the last signal, added up ([`Signals::Recur`]).
    pub(crate) count: f64,
}

impl Coin {
    pub(crate) fn new(signals: Signals) -> Self {
        Self { signals, count: 0.0 }
    }

    /// Whether there is a signal with probability `p` (RFC 9332 Fig. 4, `recur`).
    #[inline]
    pub(crate) fn falls(&mut self, p: f64, rng: &mut Rng) -> bool {
        self.falls_or(p, rng, |rng| rng.chance(p))
    }

    /// As [`Coin::falls`], or as `twice` says with [`Signals::RandomTwice`].
    #[inline]
    pub(crate) fn falls_or(
        &mut self,
        p: f64,
        rng: &mut Rng,
        twice: impl FnOnce(&mut Rng) -> bool,
    ) -> bool {
        match self.signals {
            Signals::Recur => {
                self.count += p;
                let due = self.count > 1.0;
                self.count -= f64::from(u8::from(due));
                due
            }
            Signals::Random => rng.chance(p),
            Signals::RandomTwice => twice(rng),
        }
    }
}

/// The PI2 policy.
#[derive(Clone, Debug)]
pub struct Pi2 {
    controller: Controller,
    ecn: bool,
    /// For scalable and for classic packets.
    coins: [Coin; 2],
}

impl Policy for Pi2 {
    type Config = (Pi2Config, ControllerConfig);
    type Tag = ();

    fn new(config: &Self::Config, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let (own, controller) = config;
        let coin = Coin::new(controller.signals);
        Ok(Self {
            controller: Controller::new(controller, env.now),
            ecn: own.ecn,
            coins: [coin.clone(), coin],
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        self.controller.retune(with.controller);
    }

    #[inline]
    fn on_departure(&mut self, pkt: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        let c = &self.controller;
        let scalable = self.ecn && matches!(pkt.ecn, Ecn::Ect1 | Ecn::Ce);
        let [of_scalable, of_classic] = &mut self.coins;
        match (scalable, c.overload()) {
            (true, false) if of_scalable.falls(c.coupled, cx.rng) => {
                Departure::Signal(Cause::Early)
            }
            (true, false) => Departure::Send,
            _ if of_classic.falls_or(c.classic, cx.rng, |rng| c.falls_twice(rng)) => {
                match self.ecn && !c.overload() {
                    true => Departure::Signal(Cause::Early),
                    false => Departure::Drop(Cause::Early),
                }
            }
            (true, true) => Departure::Signal(Cause::Early),
            (false, _) => Departure::Send,
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        Some(self.controller.poll_at())
    }

    fn on_timer(&mut self, q: &View<'_>, cx: &mut Cx<'_>) {
        let delay = q.peek(0).map_or(Duration::ZERO, |head| cx.now.since(head.arrived));
        self.controller.on_timer(delay, cx.now);
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.controller.observe(sink);
    }

    fn observe_flow(&self, _: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let [of_scalable, of_classic] = &self.coins;
        sink("sum_scalable", of_scalable.count);
        sink("sum_classic", of_classic.count);
    }
}
