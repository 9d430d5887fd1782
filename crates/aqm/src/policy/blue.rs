//! BLUE: congestion control by loss and idleness instead of queue length (Feng02 Fig. 3, §III.A).
//!
//! One probability `p_m` says how often arriving packets are signalled. It rises when the buffer
//! overflows, because then senders are told too rarely, and falls when the link runs idle, because
//! then they are told too often. After a change it is frozen, until senders have had the time to
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
//! - `last_update` begins "long ago": the first event acts.
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
use crate::context::Cause;
use crate::packet::Meta;
use crate::param::{ConfigError, Mode, choice, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Size};

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
        /// A queue longer than this (L) also counts as an overflow; `none`: only a full buffer does.
        threshold: Option<Size> = None, "Feng02 Fig. 3";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "Feng02 §III.B";
        /// Which packet is dropped when the buffer is full: the arriving one or the one at the
        /// head.
        drop: DropAt = DropAt::Tail, "BLUE report App. C (drop_front_)";
        /// Which packet is signalled early: the arriving one or the one at the head, whose sender
        /// learns of it a queueing delay sooner. `head` needs `ecn = true`.
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
        increase_factor: f64 = 1.25, in 1.0..=100.0, "BLUE report §5; value ours";
        /// What p_m is multiplied by when it falls (multiplicative and mixed).
        decrease_factor: f64 = 0.975, in 0.0..=1.0, "BLUE report §5; value ours";
        /// `auto` adds the smoothed queueing delay to freeze_time.
        freeze: Freeze = Freeze::Fixed, "BLUE report §3.2.2";
        /// Weight of a departing packet's delay in the smoothed queueing delay.
        delay_weight: f64 = 0.002, in 0.0..=1.0, "value ours: RED's w_q";
        /// Each early signal also raises p_m, as in the ns-2 class of the BLUE report; a departure
        /// from the papers.
        legacy_mark_increment: bool = false, "BLUE report App. C";
    }
}

choice! {
    /// Who goes when the buffer is full.
    pub enum DropAt {
        /// The arriving packet.
        Tail = "tail",
        /// The packet that has waited longest.
        Front = "front",
    }
}

choice! {
    /// Who is signalled early.
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
                allowed: "more than 0s when idle_decay is continuous",
            });
        }
        let signal = match (config.ecn, config.signal) {
            (true, SignalAt::Arriving) => Arrival::Signal(Cause::Early),
            (true, SignalAt::Head) => Arrival::SignalHead(Cause::Early),
            (false, SignalAt::Arriving) => Arrival::Reject(Cause::Early),
            (false, SignalAt::Head) => {
                return Err(ConfigError { key: "signal", allowed: "head only with ecn = true" });
            }
        };
        Ok(Self {
            threshold,
            per_byte: (measure == Measure::Bytes).then(|| 1.0 / f64::from(env.mean_packet)),
            signal,
            p_m: 0.0,
            last_update: None,
            freeze: config.freeze_time,
            delay: 0.0,
            idle: false,
            config: config.clone(),
        })
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.catch_up(cx);
        let fits = q.fits(pkt.len);
        if !fits || q.size(self.config.mode.into()) > self.threshold {
            self.raise(cx);
        }
        if !fits {
            return Arrival::Admit;
        }
        let p = match self.per_byte {
            None => self.p_m,
            Some(per_byte) => self.p_m * per_byte * f64::from(pkt.len),
        };
        if !cx.rng.chance(p) {
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
            self.start_freeze(cx.now, cx.rng);
        }
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("p_m", lowered_often(self.p_m, self.missed(now), &self.config));
    }
}

impl Blue {
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
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::policy::lab::{Fate, Lab, config, refused};
    use crate::qdisc::Qdisc;
    use std::vec::Vec;

    type Story = Lab<Blue>;

    /// Fills a queue of `n` packets to the brim.
    fn full(n: u64, settings: &[(&str, &str)]) -> Story {
        let mut lab = Story::new(n, settings);
        (0..n).for_each(|_| assert_eq!(lab.arrive(), Fate::Queued));
        lab
    }

    /// Settings with which one loss makes every signal certain and one idle event ends it.
    fn certain(extra: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        let mut settings = std::vec![("increment", "1"), ("decrement", "1")];
        settings.extend(extra);
        settings
    }

    #[test]
    fn losses_raise_p_once_in_a_freeze_time_and_the_first_acts_at_once() {
        let mut lab = full(3, &[]);
        assert_eq!(lab.signal("p_m"), 0.0);
        assert_eq!(lab.arrive(), Fate::Dropped(Cause::Overflow));
        assert_eq!(lab.signal("p_m"), 0.02, "last_update was long ago");
        lab.wait_ms(50);
        lab.arrive();
        assert_eq!(lab.signal("p_m"), 0.02, "frozen");
        lab.wait_ms(50);
        lab.arrive();
        assert_eq!(lab.signal("p_m"), 0.02, "exactly freeze_time is not more than freeze_time");
        lab.now += Duration::from_nanos(1);
        lab.arrive();
        assert_eq!(lab.signal("p_m"), 0.04);
    }

    #[test]
    fn an_idle_link_lowers_p_and_shares_the_freeze_with_losses() {
        let mut lab = full(1, &[]);
        lab.arrive();
        assert_eq!(lab.depart(), Some(0));
        assert_eq!(lab.depart(), None);
        assert_eq!(lab.signal("p_m"), 0.02, "the loss froze it for the idle event too");
        lab.wait_ms(101);
        assert_eq!(lab.depart(), None);
        assert_eq!(lab.signal("p_m"), 0.02 - 0.002);
        lab.wait_ms(1000);
        assert_eq!(
            lab.signal("p_m"),
            0.02 - 0.002,
            "one decrement for one event, however long it is idle"
        );
    }

    #[test]
    fn p_stays_within_0_and_1() {
        let mut lab =
            full(1, &[("increment", "0.4"), ("decrement", "0.7"), ("freeze_time", "1ms")]);
        for expected in [0.4, 0.8, 1.0, 1.0] {
            lab.arrive();
            assert!((lab.signal("p_m") - expected).abs() < 1e-12);
            lab.wait_ms(2);
        }
        lab.depart();
        for expected in [0.3, 0.0, 0.0] {
            lab.depart();
            assert!((lab.signal("p_m") - expected).abs() < 1e-12);
            lab.wait_ms(2);
        }
    }

    /// At p_m = 1 every packet is signalled; what a signal is depends on `ecn` and the packet.
    #[test]
    fn a_signal_is_a_mark_where_it_can_be() {
        for (ecn, packet, fate) in [
            ("true", Ecn::Ect0, Fate::Marked),
            ("true", Ecn::Ect1, Fate::Marked),
            ("true", Ecn::NotEct, Fate::Dropped(Cause::Early)),
            ("false", Ecn::Ect0, Fate::Dropped(Cause::Early)),
        ] {
            let mut lab = full(1, &certain(&[("ecn", ecn)]));
            lab.arrive();
            lab.depart();
            assert_eq!(lab.arrive_as(1000, packet), fate, "ecn = {ecn}, {packet:?}");
        }
    }

    #[test]
    fn more_than_l_queued_counts_as_an_overflow() {
        let mut lab = Story::new(10, &[("threshold", "2p")]);
        (0..3).for_each(|_| _ = lab.arrive());
        assert_eq!(lab.signal("p_m"), 0.0, "the third packet found 2, which is not more than 2");
        lab.arrive();
        assert_eq!(lab.signal("p_m"), 0.02);
        assert_eq!(lab.dropped(), []);
    }

    #[test]
    fn in_byte_mode_l_counts_bytes_and_small_packets_run_a_small_risk() {
        let mut lab = Story::new(10, &certain(&[("mode", "bytes"), ("threshold", "1500B")]));
        lab.arrive_as(1500, Ecn::Ect0);
        lab.arrive_as(100, Ecn::Ect0);
        assert_eq!(lab.signal("p_m"), 0.0);
        // Now 1600 bytes are queued: p_m becomes 1, and a packet of the mean length is marked.
        assert_eq!(lab.arrive_as(1000, Ecn::Ect0), Fate::Marked);
        // One of 100 bytes is marked with probability 0.1: 1000 tries, σ = √(1000·0.1·0.9) = 9.5.
        let mut marks = 0;
        for _ in 0..1000 {
            marks += u32::from(lab.arrive_as(100, Ecn::Ect0) == Fate::Marked);
            lab.depart();
        }
        assert!((100 - 50..100 + 50).contains(&marks), "{marks}");
    }

    #[test]
    fn the_victim_of_a_full_buffer_is_chosen_by_drop() {
        for (drop, gone) in [("tail", [3, 4]), ("front", [0, 1])] {
            let mut lab = full(3, &[("drop", drop)]);
            (0..2).for_each(|_| _ = lab.arrive());
            assert_eq!(lab.dropped(), gone);
            assert_eq!(lab.signal("p_m"), 0.02, "either is a loss");
        }
    }

    #[test]
    fn a_signal_at_the_head_spares_the_arriving_packet() {
        let mut lab = Story::new(2, &certain(&[("signal", "head")]));
        lab.arrive_as(1000, Ecn::NotEct);
        lab.arrive();
        lab.arrive(); // lost: p_m = 1
        assert_eq!(lab.depart(), Some(0));
        lab.arrive_as(1000, Ecn::NotEct); // marks packet 1 at the head
        assert_eq!((lab.dropped(), lab.queue.counters().all_marked().packets), ([2].into(), 1));
    }

    /// δ2 = 0.1, freeze 10 ms. Idle from 100 ms: decrements at 100, 110, 120 … ms.
    #[test]
    fn a_long_idle_period_decays_by_the_clock_when_asked_to() {
        let mut lab = full(
            1,
            &[
                ("increment", "1"),
                ("decrement", "0.1"),
                ("idle_decay", "continuous"),
                ("freeze_time", "10ms"),
            ],
        );
        lab.arrive(); // lost: p_m = 1
        lab.depart();
        lab.wait_ms(100);
        lab.depart();
        let mut seen = Vec::new();
        for _ in 0..3 {
            lab.now += Duration::from_nanos(1);
            seen.push(lab.signal("p_m"));
            lab.now += Duration::from_nanos(9_999_999);
            seen.push(lab.signal("p_m")); // the end of the freeze itself is not yet more than it
        }
        for (seen, expected) in seen.iter().zip([0.9, 0.9, 0.8, 0.8, 0.7, 0.7]) {
            assert!((seen - expected).abs() < 1e-12, "{seen:?}");
        }
        // The signal is a pure look: what an arrival finds is the same, and it ends the decay.
        lab.wait_ms(15); // 145 ms: 0.9 at 100, then 110, 120, 130, 140
        assert!((lab.signal("p_m") - 0.5).abs() < 1e-12);
        while lab.arrive_as(100, Ecn::NotEct) != Fate::Queued {}
        lab.wait_ms(10_000);
        assert!((lab.signal("p_m") - 0.5).abs() < 1e-12, "a packet waits: the link is not idle");
    }

    #[test]
    fn asking_again_while_idle_changes_nothing_under_continuous_decay() {
        let settings = [("idle_decay", "continuous"), ("increment", "1"), ("decrement", "0.01")];
        let (mut asked, mut left_alone) = (full(1, &settings), full(1, &settings));
        for lab in [&mut asked, &mut left_alone] {
            lab.arrive();
            lab.depart();
            lab.depart();
        }
        for _ in 0..40 {
            asked.wait_ms(37);
            left_alone.wait_ms(37);
            asked.depart();
            assert_eq!(asked.signal("p_m"), left_alone.signal("p_m"));
        }
        assert!(asked.signal("p_m") < 0.9);
    }

    /// 1000 freezes of (1 ± 0.5) · 10 ms, looked at every 0.1 ms.
    #[test]
    fn jitter_spreads_the_freezes_evenly() {
        let mut lab =
            full(1, &[("freeze_time", "10ms"), ("freeze_jitter", "0.5"), ("increment", "0.0001")]);
        let (mut gaps, mut since, mut p) = (Vec::new(), 0u32, 0.0);
        while gaps.len() < 1000 {
            lab.now += Duration::from_micros(100);
            since += 1;
            lab.arrive();
            if lab.signal("p_m") > p {
                p = lab.signal("p_m");
                gaps.push(since);
                since = 0;
            }
        }
        let gaps = &gaps[1..];
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        // Uniform on 50 … 150 ticks: σ of the mean = 28.9/√1000 = 0.9; rounding up adds ½.
        assert!((mean - 100.5).abs() < 5.0, "{mean}");
        assert!(gaps.iter().all(|g| (50..=151).contains(g)));
        assert!(gaps.iter().any(|&g| g < 60) && gaps.iter().any(|&g| g > 140));
    }

    /// Every packet waits 30 ms, and the weight is 1: the freeze is 10 + 30 ms.
    #[test]
    fn the_automatic_freeze_adds_the_queueing_delay() {
        let mut lab = full(
            1,
            &[("freeze", "auto"), ("freeze_time", "10ms"), ("delay_weight", "1"), ("ecn", "true")],
        );
        lab.wait_ms(30);
        lab.depart();
        lab.arrive_as(1000, Ecn::Ect0);
        lab.arrive(); // lost
        assert_eq!(lab.signal("p_m"), 0.02);
        lab.wait_ms(40);
        lab.arrive();
        assert_eq!(lab.signal("p_m"), 0.02, "40 ms are not more than 40 ms");
        lab.wait_ms(1);
        lab.arrive();
        assert_eq!(lab.signal("p_m"), 0.04);
    }

    #[test]
    fn marks_raise_p_only_in_the_legacy_mode() {
        for (legacy, expected) in [("false", 0.5), ("true", 1.0)] {
            let mut lab = full(
                1,
                &[("increment", "0.5"), ("legacy_mark_increment", legacy), ("mode", "bytes")],
            );
            lab.arrive();
            lab.depart();
            lab.wait_ms(101);
            // Twice the mean length: signalled with probability 0.5 · 2 = 1.
            assert_eq!(lab.arrive_as(2000, Ecn::Ect0), Fate::Marked);
            assert_eq!(lab.signal("p_m"), expected);
        }
    }

    #[test]
    fn steps_of_each_update_mode() {
        let c = |update| {
            config::<BlueConfig>(&[
                ("update", update),
                ("increment", "0.02"),
                ("decrement", "0.002"),
                ("increase_factor", "1.25"),
                ("decrease_factor", "0.975"),
            ])
        };
        for (update, p, up, down) in [
            ("additive", 0.4, 0.42, 0.398),
            ("additive", 0.001, 0.021, 0.0),
            ("additive", 0.99, 1.0, 0.988),
            ("multiplicative", 0.4, 0.5, 0.39), // 0.4·1.25, 0.4·0.975
            ("multiplicative", 0.0, 0.02, 0.0), // leaves zero by δ1
            ("multiplicative", 0.002, 0.02, 0.0), // 0.00195 < δ2
            ("multiplicative", 0.9, 1.0, 0.8775),
            ("mixed", 0.4, 0.52, 0.388), // 0.5 + 0.02, 0.39 − 0.002
            ("mixed", 0.0, 0.02, 0.0),
        ] {
            let c = c(update);
            assert!((raised(p, &c) - up).abs() < 1e-12, "{update} {p} up");
            assert!((lowered(p, &c) - down).abs() < 1e-12, "{update} {p} down");
        }
    }

    #[test]
    fn many_decrements_at_once_equal_as_many_single_ones() {
        for update in ["additive", "multiplicative", "mixed"] {
            for factor in ["0.975", "1", "0"] {
                let c = config::<BlueConfig>(&[("update", update), ("decrease_factor", factor)]);
                let mut p = 0.9;
                for n in 0..600 {
                    let closed = lowered_often(0.9, n, &c);
                    assert!((closed - p).abs() < 1e-9, "{update} {factor} {n}: {closed} {p}");
                    p = lowered(p, &c);
                }
            }
            let c = config::<BlueConfig>(&[("update", update)]);
            assert_eq!(lowered_often(1.0, u64::MAX, &c), 0.0, "{update}");
        }
    }

    #[test]
    fn settings_that_do_not_fit_together_are_refused() {
        for (settings, key) in [
            (&[("threshold", "1.5bdp")][..], "threshold"),
            (&[("idle_decay", "continuous"), ("freeze_time", "0s")], "freeze_time"),
            (&[("signal", "head"), ("ecn", "false")], "signal"),
        ] {
            assert_eq!(refused::<Blue>(settings).key, key);
        }
    }
}
