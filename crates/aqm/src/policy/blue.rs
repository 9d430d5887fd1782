//! BLUE: congestion control by loss and idleness instead of queue length (Feng02 Fig. 3, §III.A).
//!
//! One probability `p_m` says how often arriving packets are signalled. It rises when the buffer
//! overflows, because then senders hear too few signals, and falls when the link runs idle, because
//! then they hear too many. After a change it is frozen, until senders have had the time to
//! react to it:
//!
//! ```text
//! a packet arrives that does not fit, or finds more than L queued:
//!     if now − last_update > freeze_time:  p_m := min(p_m + δ1, 1);  last_update := now
//! the transmitter asks and the queue is empty:
//!     if now − last_update > freeze_time:  p_m := max(p_m − δ2, 0);  last_update := now
//! a packet arrives that fits:  signal it with probability p_m
//! ```
//!
//! Where the papers are silent:
//! - `last_update` begins "long ago": the first event acts. p_m begins at `initial`.
//! - L is compared with the queue that the packet finds, itself not counted; the event comes before
//!   the packet's own coin. A packet that does not fit tosses no coin: its loss is the signal.
//! - A packet that is dropped early is not an overflow (but see `legacy_mark_increment`).
//! - In byte mode a packet is signalled with probability `p_m · len / mean_packet`, at most 1, so
//!   that a byte has the same risk in small and in large packets.
//! - `freeze_jitter`: the factor is drawn when a freeze begins, none without jitter.
//! - `freeze = auto`: the BLUE report (§3.2.2) asks for the flows' effective round-trip time.
//!   `freeze_time` is then the part of the path, and what the queue adds to it is measured: the
//!   queueing delay of departing packets, smoothed, is added when a freeze begins.
//! - `update`: the BLUE report (§5) proposes multiplicative changes and a mix. See [`Update`].
//! - `idle_decay = continuous` is computed when p_m is needed, exactly as if a clock had run. The
//!   decrements of one idle period share the freeze that was in force when it began.

use super::{Arrival, Cx, Departure, Env, Policy, Victim, View};
use crate::about::{About, Family, Signal};
use crate::context::Cause;
use crate::packet::Meta;
use crate::param::{ConfigError, Mode, choice, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Size};

/// What blue tells of itself.
pub const ABOUT: About = About {
    name: "blue",
    family: Family::One,
    summary: "Signals with a probability that losses raise and idle times lower.",
    source: "Feng02 Fig. 3",
    rule: "BLUE signals an arriving packet with probability p_m; an overflow raises p_m and an \
        idle link lowers it (Feng02 Fig. 3)",
    signals: &[Signal { name: "p_m", unit: "0 … 1", doc: "marking probability" }],
    live: &[
        "freeze_time",
        "increment",
        "decrement",
        "threshold",
        "increase_factor",
        "decrease_factor",
        "freeze_jitter",
        "delay_weight",
    ],
    ..About::NEW
};

params! {
    /// Parameters of BLUE. The defaults are the configuration B4 of Feng02 Table II, which its
    /// figures 6 to 10 use: p_m takes 5 s from 0 to 1, inside the 5 … 30 s that §III.A advises.
    pub struct BlueConfig {
        /// Least time between two changes of p_m; about one round-trip time of the flows.
        freeze_time: Duration = Duration::from_millis(100), "Feng02 Fig. 3, Table II (B4)";
        /// What p_m rises by when the buffer overflows (δ1).
        increment: f64 = 0.02, in 0.0..=1.0, "Feng02 Fig. 3, Table II (B4)";
        /// What p_m falls by when the link is idle (δ2).
        decrement: f64 = 0.002, in 0.0..=1.0, "Feng02 Fig. 3, Table II (B4)";
        /// p_m at the start.
        initial: f64 = 0.0, in 0.0..=1.0, "not in Feng02; Feng-ns says 1 and sets 0";
        /// A queue longer than this (L) also counts as an overflow; `none`: only a full buffer does.
        threshold: Option<Size> = None, "Feng02 Fig. 3";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "Feng02 §III.B";
        /// Which packet is dropped when the buffer is full: the arriving one or the one at the
        /// head.
        drop: DropAt = DropAt::Tail, "BLUE report App. C (drop_front_)";
        /// Which packet is signalled early: the arriving one or the one at the head. The sender of
        /// the latter hears of it sooner, by the queueing delay. `head` needs `ecn = true`.
        signal: SignalAt = SignalAt::Arriving, "extension";
        /// Whether L counts packets or bytes; with bytes a packet's probability is proportional to
        /// its length.
        mode: Mode = Mode::Packets, "BLUE report App. C (queue_in_bytes_)";
        /// One decrement for each idle event, or one more for each freeze_time that the link stays idle.
        idle_decay: IdleDecay = IdleDecay::Event, "Feng02 Fig. 3; continuous: extension";
        /// Each freeze is drawn uniformly from (1 ± this) · freeze_time.
        freeze_jitter: f64 = 0.0, in 0.0..=1.0, "Feng02 §III.A";
        /// How p_m changes: by steps, by factors, or both.
        update: Update = Update::Additive, "Feng02 Fig. 3; others: BLUE report §5";
        /// What p_m is multiplied by when it rises (multiplicative and mixed).
        increase_factor: f64 = 1.25, in 1.0..=100.0, "BLUE report §5; value ours", with update = "multiplicative" | "mixed";
        /// What p_m is multiplied by when it falls (multiplicative and mixed).
        decrease_factor: f64 = 0.975, in 0.0..=1.0, "BLUE report §5; value ours", with update = "multiplicative" | "mixed";
        /// `auto` adds the smoothed queueing delay to freeze_time.
        freeze: Freeze = Freeze::Fixed, "BLUE report §3.2.2";
        /// Weight of a departing packet's delay in the smoothed queueing delay.
        delay_weight: f64 = 0.002, in 0.0..=1.0, "value ours: RED's w_q", with freeze = "auto";
        /// Each early signal also raises p_m, as in the ns-2 class of the BLUE report; a departure
        /// from the papers.
        legacy_mark_increment: bool = false, "BLUE report App. C";
        /// p_m moves when it does in the ns-2 class of the BLUE report: a decrement begins no freeze,
        /// above L none holds but L alone raises nothing, a packet that is signalled is no overflow.
        legacy_updates: bool = false, "BLUE report App. C", with idle_decay = "event";
    }
}

choice! {
    /// Which packet is dropped when the buffer is full.
    pub enum DropAt {
        /// The arriving packet.
        Tail = "tail",
        /// The packet that has waited longest.
        Front = "front",
    }
}

choice! {
    /// Which packet is signalled early.
    pub enum SignalAt {
        /// The arriving packet.
        Arriving = "arriving",
        /// The packet at the head.
        Head = "head",
    }
}

choice! {
    /// What a long idle period does.
    pub enum IdleDecay {
        /// One decrement each time the transmitter finds the queue empty.
        Event = "event",
        /// A further decrement for each freeze_time that passes idle.
        Continuous = "continuous",
    }
}

choice! {
    /// How p_m changes; g is `increase_factor`, h is `decrease_factor`.
    pub enum Update {
        /// p + δ1 and p − δ2.
        Additive = "additive",
        /// p · g, but at least δ1 (zero could never be left); p · h, and zero once below δ2 (zero
        /// could never be reached).
        Multiplicative = "multiplicative",
        /// p · g + δ1 and p · h − δ2.
        Mixed = "mixed",
    }
}

choice! {
    /// How long p_m is frozen after a change.
    pub enum Freeze {
        /// `freeze_time`.
        Fixed = "fixed",
        /// `freeze_time` plus the smoothed queueing delay.
        Auto = "auto",
    }
}

/// The BLUE policy.
#[derive(Clone, Debug)]
pub struct Blue {
    config: BlueConfig,
    /// L in the measure of `mode`; infinite when there is none.
    threshold: f64,
    /// 1 / mean packet in byte mode.
    per_byte: Option<f64>,
    /// The answer for a packet that is to be signalled.
    signal: Arrival,
    /// Marking probability, [0, 1].
    p_m: f64,
    /// When p_m last changed; `None`: long ago.
    last_update: Option<Instant>,
    /// The freeze in force since `last_update`.
    freeze: Duration,
    /// Smoothed queueing delay in nanoseconds, for `freeze = auto`.
    delay: f64,
    /// Whether the link has been idle since the last event.
    idle: bool,
}

impl Policy for Blue {
    type Config = BlueConfig;
    type Tag = ();

    fn new(config: &BlueConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let measure = config.mode.into();
        let threshold = match config.threshold {
            Some(size) => env.resolve("threshold", size, measure)?,
            None => f64::INFINITY,
        };
        if config.idle_decay == IdleDecay::Continuous && config.freeze_time == Duration::ZERO {
            return Err(ConfigError {
                key: "freeze_time",
                allowed: "more than 0s when idle_decay is continuous".into(),
            });
        }
        let signal = match (config.ecn, config.signal) {
            (true, SignalAt::Arriving) => Arrival::Signal(Cause::Early),
            (true, SignalAt::Head) => Arrival::SignalHead(Cause::Early),
            (false, SignalAt::Arriving) => Arrival::Reject(Cause::Early),
            (false, SignalAt::Head) => {
                return Err(ConfigError {
                    key: "signal",
                    allowed: "head only with ecn = true".into(),
                });
            }
        };
        Ok(Self {
            threshold,
            per_byte: (measure == Measure::Bytes).then(|| 1.0 / f64::from(env.mean_packet)),
            signal,
            p_m: config.initial,
            last_update: None,
            freeze: config.freeze_time,
            delay: 0.0,
            idle: false,
            config: config.clone(),
        })
    }

    /// Another freeze time holds for the freeze in force, too.
    fn retune(&mut self, with: Self, _: Instant) {
        let Self { p_m, last_update, delay, idle, .. } = *self;
        let freeze_time = with.config.freeze_time;
        let freeze = if freeze_time == self.config.freeze_time { self.freeze } else { freeze_time };
        *self = Self { p_m, last_update, freeze, delay, idle, ..with };
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.catch_up(cx);
        let fits = q.fits(pkt.len);
        if self.config.legacy_updates {
            let above = q.size(self.config.mode.into()) > self.threshold;
            return self.arrival_in_class(pkt.len, fits, above, cx);
        }
        if !fits || q.size(self.config.mode.into()) > self.threshold {
            self.raise(cx);
        }
        if !fits || !cx.rng.chance(self.risk(pkt.len)) {
            return Arrival::Admit;
        }
        if self.config.legacy_mark_increment {
            self.raise(cx);
        }
        self.signal
    }

    fn on_overflow(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Victim {
        match self.config.drop {
            DropAt::Tail => Victim::Arriving,
            DropAt::Front => Victim::Head,
        }
    }

    #[inline]
    fn admitted(&mut self, _: &Meta, _: &mut Cx<'_>) {
        self.idle = false;
    }

    #[inline]
    fn on_departure(&mut self, pkt: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        if self.config.freeze == Freeze::Auto {
            let delay = cx.now.since(pkt.arrived).as_nanos() as f64;
            self.delay += self.config.delay_weight * (delay - self.delay);
        }
        Departure::Send
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        // An arrival that was not admitted leaves the link idle: with continuous decay the clock
        // that began with the first question goes on.
        if self.idle && self.config.idle_decay == IdleDecay::Continuous {
            return;
        }
        self.idle = true;
        if !self.frozen(cx.now) {
            self.p_m = lowered(self.p_m, &self.config);
            if !self.config.legacy_updates {
                self.start_freeze(cx.now, cx.rng);
            }
        }
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("p_m", lowered_often(self.p_m, self.missed(now), &self.config));
    }
}

impl Blue {
    /// The probability with which a packet of `len` bytes is signalled.
    #[inline]
    fn risk(&self, len: u32) -> f64 {
        match self.per_byte {
            None => self.p_m,
            Some(per_byte) => self.p_m * per_byte * f64::from(len),
        }
    }

    /// An arrival in the BLUE report's class: every packet tosses its coin, and first.
    #[inline(never)]
    fn arrival_in_class(&mut self, len: u32, fits: bool, above: bool, cx: &mut Cx<'_>) -> Arrival {
        let signalled = cx.rng.chance(self.risk(len));
        let raises = if signalled { self.config.legacy_mark_increment } else { !fits };
        if raises {
            if above {
                self.last_update = None;
            }
            self.raise(cx);
        }
        if signalled { self.signal } else { Arrival::Admit }
    }

    /// An overflow event.
    #[inline(never)]
    fn raise(&mut self, cx: &mut Cx<'_>) {
        if !self.frozen(cx.now) {
            self.p_m = raised(self.p_m, &self.config);
            self.start_freeze(cx.now, cx.rng);
        }
    }

    /// Fig. 3: a change is allowed when *more than* the freeze has passed.
    fn frozen(&self, now: Instant) -> bool {
        self.last_update.is_some_and(|last| now.since(last) <= self.freeze)
    }

    fn start_freeze(&mut self, now: Instant, rng: &mut Rng) {
        self.last_update = Some(now);
        let mut freeze = self.config.freeze_time;
        if self.config.freeze == Freeze::Auto {
            freeze += Duration::from_nanos(self.delay as u64);
        }
        if self.config.freeze_jitter > 0.0 {
            freeze = freeze.mul_f64(1.0 + self.config.freeze_jitter * (2.0 * rng.uniform() - 1.0));
        }
        self.freeze = freeze;
    }

    /// Makes the decrements that continuous decay owes for the time that the link has been idle.
    #[inline]
    fn catch_up(&mut self, cx: &mut Cx<'_>) {
        let n = self.missed(cx.now);
        if n > 0 {
            self.decay(n, cx);
        }
    }

    /// Makes `n` decrements of which the first was due a freeze after the last change.
    #[inline(never)]
    fn decay(&mut self, n: u64, cx: &mut Cx<'_>) {
        if let Some(last) = self.last_update {
            self.p_m = lowered_often(self.p_m, n, &self.config);
            self.start_freeze(last + self.period() * n, cx.rng);
        }
    }

    /// How many decrements continuous decay owes at `now`: one at each end of a freeze that lies
    /// before `now`, the end itself not counted, because *more* than the freeze has to pass.
    #[inline]
    fn missed(&self, now: Instant) -> u64 {
        match self.last_update {
            Some(last) if self.idle && self.config.idle_decay == IdleDecay::Continuous => {
                now.since(last).as_nanos().saturating_sub(1) / self.period().as_nanos()
            }
            _ => 0,
        }
    }

    /// The time between two decrements of an idle link: the freeze, which jitter must not bring
    /// down to nothing.
    fn period(&self) -> Duration {
        self.freeze.max(Duration::from_nanos(1))
    }
}

/// `p` after an overflow event.
fn raised(p: f64, c: &BlueConfig) -> f64 {
    let raised = match c.update {
        Update::Additive => p + c.increment,
        Update::Multiplicative => (p * c.increase_factor).max(c.increment),
        Update::Mixed => p * c.increase_factor + c.increment,
    };
    raised.min(1.0)
}

/// `p` after an idle event.
fn lowered(p: f64, c: &BlueConfig) -> f64 {
    match c.update {
        Update::Additive => (p - c.decrement).max(0.0),
        Update::Multiplicative => zero_below(p * c.decrease_factor, c.decrement),
        Update::Mixed => (p * c.decrease_factor - c.decrement).max(0.0),
    }
}

/// `p` after `n` idle events: [`lowered`] in closed form, since an idle night has many.
fn lowered_often(p: f64, n: u64, c: &BlueConfig) -> f64 {
    if n <= 1 {
        return if n == 0 { p } else { lowered(p, c) };
    }
    let (n, h) = (n as f64, c.decrease_factor);
    match c.update {
        Update::Multiplicative => zero_below(p * libm::pow(h, n), c.decrement),
        // p ↦ h·p − δ2 has the fixed point −δ2/(1 − h); the distance to it shrinks by h a step.
        Update::Mixed if h < 1.0 => {
            let fixed = c.decrement / (1.0 - h);
            (libm::pow(h, n) * (p + fixed) - fixed).max(0.0)
        }
        Update::Additive | Update::Mixed => (p - n * c.decrement).max(0.0),
    }
}

fn zero_below(p: f64, least: f64) -> f64 {
    if p < least { 0.0 } else { p }
}

#[cfg(test)]
mod tests;
