//! PIE: proportional integral controller, enhanced (RFC 8033).
//!
//! A controller in the manner of process engineering: every `t_update` the drop probability moves by
//! how far the queueing delay is from `target` and by how much it grew. Arriving packets toss a coin.
//!
//! ```text
//! every t_update (RFC 8033 §4.2), delay the present estimate, old the one before:
//!     step := α·(delay − target) + β·(delay − old), in seconds and 1/s
//!     step /= 2048, 512, 128, 32, 8, 2, 1  for p < 10⁻⁶, 10⁻⁵, 10⁻⁴, 10⁻³, 0.01, 0.1, else
//!     p += min(step, 0.02 if p ≥ 0.1)  (§5.5);  p *= 0.98 if delay = old = 0;  p within [0, 1]
//!     burst := max_burst if p = 0 and delay, old < target/2, else burst − t_update  (§4.4)
//! a packet arrives, q bytes wait:
//!     burst > 0, or old < target/2 and p < 0.2, or q ≤ 2 mean packets (or q < `spare`):  admit  (§4.1)
//!     with probability p:  mark it if p < mark_ecnth and it can be marked, else drop it  (§5.1)
//! ```
//!
//! The delay is that of the packet that left last, or (`delay = departure-rate`, §5.2) the queue
//! times the smoothed time that `dq_threshold` bytes took to leave. An empty queue has none.
//!
//! Where the RFC is silent, or speaks twice:
//! - The burst allowance is reset at the update, where both samples are at hand (§4.4's text; the
//!   listing of appendix A does it at arrivals), and is looked at before any random number is drawn.
//! - The controller is always active: appendix B's switching (§5.3) is left out.
//! - In byte mode a packet's probability is p·len/mean packet, at most 1. (Linux's is p·len/1514, at most p:
//!   `full_length`.)
//! - A timer that comes late updates once and does not catch up.

use super::{Arrival, Cx, Departure, Env, Policy, Victim, View};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::Cause;
use crate::packet::Meta;
use crate::param::{ConfigError, Mode, choice, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// As Linux has it.
pub(crate) const LINUX: &[(&str, &str)] = &[
    ("delay", "last-departure"),
    ("burst_runs", "departures"),
    ("derandomise", "true"),
    ("spared_by", "last-departure"),
    ("steep_above", "250ms"),
    ("p_max", "256"),
    ("decay", "0.984375"),
    ("spare", "3028"),
    ("sum_kept_from", "8.5"),
    ("p_past_max", "1"),
    ("full_length", "1514"),
];

/// What pie tells of itself.
pub const ABOUT: About = About {
    name: "pie",
    family: Family::Delay,
    summary: "Signals with a probability that a controller moves by delay and its growth.",
    source: "RFC 8033",
    rule: "PIE signals an arriving packet with probability p_d; a controller moves p_d by the \
        delay's distance from target and by the delay's growth (RFC 8033 §4.2)",
    unmarked: Unmarked {
        coin: "p_d is not below mark_ecnth: from there on every signal is a drop",
        rule: "p_d is not below mark_ecnth: from there on every signal is a drop",
    },
    signals: &[
        Signal { name: "p_d", unit: "0 … 1", doc: "drop probability" },
        Signal { name: "delay", unit: "s", doc: "queueing delay at the last update" },
        Signal { name: "burst", unit: "s", doc: "burst allowance left" },
    ],
    presets: &[("linux", LINUX)],
    live: &["target", "t_update", "alpha", "beta", "max_burst", "mark_ecnth"],
    ..About::NEW
};

params! {
    /// Parameters of PIE.
    pub struct PieConfig {
        /// Wanted queueing delay (QDELAY_REF).
        target: Duration = Duration::from_millis(15), in Duration::ZERO..=Duration::from_secs(3600), "RFC 8033 §4.2";
        /// Time between two updates of the drop probability (T_UPDATE).
        t_update: Duration = Duration::from_millis(15), in Duration::from_millis(1)..=Duration::from_secs(3600), "RFC 8033 §4.2";
        /// How long after PIE is made the first update comes; zero: `t_update` (Linux: 500 ms).
        first_update: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(3600), "Linux";
        /// Weight of the distance from target, per second.
        alpha: f64 = 0.125, in 0.0..=1000.0, "RFC 8033 §4.2";
        /// Weight of the growth of the delay, per second.
        beta: f64 = 1.25, in 0.0..=1000.0, "RFC 8033 §4.2";
        /// How long a burst passes unharmed (MAX_BURST).
        max_burst: Duration = Duration::from_millis(150), in Duration::ZERO..=Duration::from_secs(3600), "RFC 8033 §4.4";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "RFC 8033 §5.1";
        /// Drop probability from which on ECN-capable packets are dropped like others.
        mark_ecnth: f64 = 0.1, in 0.0..=1.0, "RFC 8033 §5.1", with ecn = "true";
        /// Whether a packet's probability is proportional to its length.
        mode: Mode = Mode::Packets, "RFC 8033 appendix B";
        /// Length at which a packet's probability is p, longer ones having p as well (Linux: 1514); `none`: the mean
        /// packet, longer ones having more.
        full_length: Option<u32> = None, in 1..=65_535, "Linux", with mode = "bytes";
        /// How the queueing delay is measured.
        delay: Delay = Delay::Timestamps, "RFC 8033 §4.3, §5.2";
        /// Which delay spares arriving packets where it is below half the target and the drop probability below 0.2.
        spared_by: SparedBy = SparedBy::LastUpdate, "RFC 8033 §4.1";
        /// A packet is spared if it finds fewer bytes waiting (Linux: two packets of 1514); `none`: if it finds two
        /// mean packets or less.
        spare: Option<u32> = None, in 0..=1_000_000, "RFC 8033 §4.1; Linux";
        /// Bytes in a measurement of the departure rate; no shorter queue is measured.
        dq_threshold: u32 = 16_384, in 1..=1_048_576, "RFC 8033 §5.2", with delay = "departure-rate";
        /// Whether signals are spaced: none before the probabilities of the packets since the last add up to 0.85, one at 8.5.
        derandomise: bool = false, "RFC 8033 §5.4";
        /// Sum of these probabilities from which on a mark leaves it as it is, so that packet after packet is marked
        /// until one is dropped (Linux: 8.5); `none`: each signal begins a new sum.
        sum_kept_from: Option<f64> = None, in 0.0..=8.5, "Linux", with derandomise = "true";
        /// Delay above which each step is larger by 0.02; zero: none is (Linux: 250 ms).
        steep_above: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(3600), "Linux";
        /// Where the drop probability ends; beyond 1 it only takes longer to come down (Linux: 256).
        p_max: f64 = 1.0, in 0.0..=256.0, "RFC 8033 §4.2";
        /// What a drop probability that would pass `p_max` becomes (Linux: 1); `none`: `p_max`.
        p_past_max: Option<f64> = None, in 0.0..=1.0, "Linux";
        /// Whether a step up is at most 0.02 where the probability is 0.1 or more.
        cap: bool = true, "RFC 8033 §5.5";
        /// What is left of the probability at an update after two without delay (Linux: 63/64).
        decay: f64 = 0.98, in 0.0..=1.0, "RFC 8033 §4.2";
        /// How the burst allowance is used up.
        burst_runs: BurstRuns = BurstRuns::ByUpdates, "RFC 8033 §4.4; Linux", with delay = "last-departure";
    }
}

choice! {
    /// How the queueing delay is measured.
    pub enum Delay {
        /// From the packet that left last.
        Timestamps = "timestamps",
        /// From the length of the queue and the departure rate.
        DepartureRate = "departure-rate",
        /// That of the packet that left last, none if it left nothing behind: Linux.
        LastDeparture = "last-departure",
    }
}

choice! {
    /// How the burst allowance is used up.
    pub enum BurstRuns {
        /// At each update by `t_update`.
        ByUpdates = "updates",
        /// At each departure by the time since the one before, as in Linux.
        ByDepartures = "departures",
    }
}

choice! {
    /// Which delay, if it is short, spares arriving packets.
    pub enum SparedBy {
        /// That of the last update.
        LastUpdate = "last-update",
        /// That of the packet that left last, as in Linux.
        LastDeparture = "last-departure",
    }
}

/// The PIE policy.
#[derive(Clone, Debug)]
pub struct Pie {
    config: PieConfig,
    /// Fewer bytes waiting, and an arriving packet is spared.
    spare: u64,
    /// Each packet has the same probability, and no signal is spaced.
    plain: bool,
    mean_packet: u32,
    /// Drop probability, [0, 1].
    p: f64,
    /// Delay at the last update.
    old: Duration,
    /// Delay of the packet that left last.
    sojourn: Duration,
    departures: DepartureRate,
    burst: Duration,
    /// The last departure since the allowance was whole (`burst_runs`); before one, far ahead.
    departed: Instant,
    /// Probabilities of the packets since the last signal, added up (`derandomise`).
    accumulated: f64,
    /// When the next update is due.
    next: Instant,
}

/// When nothing has departed yet: since then no time has gone.
const NONE_YET: Instant = Instant::from_nanos(u64::MAX);

impl Policy for Pie {
    type Config = PieConfig;
    type Tag = ();
    const RESTS: bool = true;

    fn new(config: &PieConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let first = if config.first_update == Duration::ZERO {
            config.t_update
        } else {
            config.first_update
        };
        Ok(Self {
            config: config.clone(),
            plain: config.mode == Mode::Packets && !config.derandomise,
            spare: config.spare.map_or(2 * u64::from(env.mean_packet) + 1, u64::from),
            mean_packet: env.mean_packet,
            p: 0.0,
            old: Duration::ZERO,
            sojourn: Duration::ZERO,
            departures: DepartureRate::default(),
            burst: config.max_burst,
            departed: NONE_YET,
            accumulated: 0.0,
            next: env.now + first,
        })
    }

    fn retune(&mut self, with: Self, now: Instant) {
        let sooner = with.config.t_update < self.config.t_update;
        let next = if sooner { self.next.min(now + with.config.t_update) } else { self.next };
        *self = Self {
            p: self.p,
            old: self.old,
            sojourn: self.sojourn,
            departures: self.departures.clone(),
            burst: self.burst,
            departed: self.departed,
            accumulated: self.accumulated,
            next,
            ..with
        };
    }

    #[inline(always)]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        if !self.chosen(pkt, q, cx.rng) {
            return Arrival::Admit;
        }
        let marks = self.config.ecn && self.p < self.config.mark_ecnth;
        if !self.plain {
            self.begin_sum(marks && pkt.ecn.capable());
        }
        if marks { Arrival::Signal(Cause::Early) } else { Arrival::Reject(Cause::Early) }
    }

    #[inline]
    fn on_departure(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        self.sojourn = cx.now.since(pkt.arrived);
        if self.config.delay == Delay::Timestamps {
            return Departure::Send;
        }
        self.measure(pkt, q, cx.now)
    }

    fn on_overflow(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Victim {
        self.accumulated = 0.0;
        Victim::Arriving
    }

    fn gave_way(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) {}

    fn poll_at(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn on_timer(&mut self, q: &View<'_>, cx: &mut Cx<'_>) {
        if cx.now < self.next {
            return;
        }
        self.next = self.next.next_tick(cx.now, self.config.t_update);
        let delay = self.estimate(q);
        // Of many queues most are empty: there a step down from 0 leads to 0.
        if self.p > 0.0 || delay > Duration::ZERO {
            let rests = self.config.delay != Delay::LastDeparture || q.is_empty();
            self.p = updated(self.p, delay, self.old, rests, &self.config);
        }
        self.burst = self.burst_after(delay);
        if self.is_calm(delay) {
            self.departed = NONE_YET;
            self.accumulated = 0.0;
        }
        self.old = delay;
    }

    fn rests(&self) -> bool {
        self.p == 0.0
            && self.old == Duration::ZERO
            && self.burst == self.burst_after(Duration::ZERO)
            && self.departed == NONE_YET
            && self.accumulated == 0.0
    }

    fn wake(&mut self, timer: Instant) {
        self.next = timer;
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("p_d", self.p.min(1.0));
        sink("delay", self.old.as_secs_f64());
        sink("burst", self.burst.as_secs_f64());
    }

    fn observe_flow(&self, _: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("accumulated", self.accumulated);
    }
}

impl Pie {
    /// Whether an arriving packet is to be signalled (RFC 8033 §4.1, §5.4).
    #[inline(always)]
    fn chosen(&mut self, pkt: &Meta, q: &View<'_>, rng: &mut Rng) -> bool {
        let delay = match self.config.spared_by {
            SparedBy::LastUpdate => self.old,
            SparedBy::LastDeparture => self.sojourn,
        };
        let calm = delay < self.config.target / 2 && self.p < 0.2;
        let short = q.backlog().bytes < self.spare;
        if self.burst > Duration::ZERO || calm || short {
            return false;
        }
        if self.plain { rng.chance(self.p) } else { self.chosen_otherwise(pkt, q, rng) }
    }

    /// Whether chance picks a packet in byte mode, or where signals keep their distance.
    #[inline(never)]
    fn chosen_otherwise(&mut self, pkt: &Meta, q: &View<'_>, rng: &mut Rng) -> bool {
        let p = match (self.config.mode, self.config.full_length) {
            (Mode::Packets, _) => self.p,
            (Mode::Bytes, None) => {
                (self.p * f64::from(pkt.len) / f64::from(self.mean_packet)).min(1.0)
            }
            (Mode::Bytes, Some(full)) => self.p * f64::from(pkt.len.min(full)) / f64::from(full),
        };
        if self.config.derandomise { self.derandomised(pkt, p, q, rng) } else { rng.chance(p) }
    }

    /// A packet was signalled, and perhaps `marked`: the sum of probabilities begins anew, unless
    /// `sum_kept_from` keeps it.
    #[inline(never)]
    fn begin_sum(&mut self, marked: bool) {
        let kept = self.config.sum_kept_from.is_some_and(|sum| self.accumulated >= sum);
        if !(marked && kept) {
            self.accumulated = 0.0;
        }
    }

    /// Whether the allowance is whole again after an update (RFC 8033 §4.4).
    fn is_calm(&self, delay: Duration) -> bool {
        let calm = |d: Duration| d < self.config.target / 2;
        self.p == 0.0 && calm(delay) && calm(self.old)
    }

    /// The allowance after an update.
    fn burst_after(&self, delay: Duration) -> Duration {
        match self.config.burst_runs {
            _ if self.is_calm(delay) => self.config.max_burst,
            BurstRuns::ByUpdates => self.burst.saturating_sub(self.config.t_update),
            BurstRuns::ByDepartures => self.burst,
        }
    }

    /// Whether a packet is signalled with probability `p`, where signals keep their distance (RFC 8033 §5.4).
    #[inline]
    fn derandomised(&mut self, pkt: &Meta, p: f64, q: &View<'_>, rng: &mut Rng) -> bool {
        if !q.fits(pkt.len) {
            return false; // what the full buffer drops adds nothing, and draws nothing
        }
        self.accumulated = if self.p == 0.0 { 0.0 } else { self.accumulated + p };
        if self.accumulated < 0.85 {
            return false;
        }
        self.accumulated >= 8.5 || rng.chance(p)
    }

    /// A packet has left, and its time stamp alone does not tell the delay.
    #[inline]
    fn measure(&mut self, pkt: &Meta, q: &View<'_>, now: Instant) -> Departure {
        let (left, threshold) = (q.backlog().bytes, u64::from(self.config.dq_threshold));
        if self.config.delay == Delay::DepartureRate {
            self.departures.departed(u64::from(pkt.len), left, threshold, now);
            return Departure::Send;
        }
        if left == 0 {
            self.sojourn = Duration::ZERO;
        }
        if self.config.burst_runs == BurstRuns::ByDepartures {
            self.burst = self.burst.saturating_sub(now.since(self.departed));
            self.departed = now;
        }
        Departure::Send
    }

    /// The queueing delay now.
    fn estimate(&self, q: &View<'_>) -> Duration {
        match self.config.delay {
            _ if q.is_empty() => Duration::ZERO,
            Delay::Timestamps | Delay::LastDeparture => self.sojourn,
            Delay::DepartureRate => {
                let thresholds = q.backlog().bytes as f64 / f64::from(self.config.dq_threshold);
                self.departures.average.mul_f64(thresholds)
            }
        }
    }
}

/// The drop probability after an update (RFC 8033 §4.2, §5.5); it decays only if the queue `rests`.
fn updated(p: f64, delay: Duration, old: Duration, rests: bool, c: &PieConfig) -> f64 {
    let steep = c.steep_above > Duration::ZERO && delay > c.steep_above;
    let [delay, old, target] = [delay, old, c.target].map(Duration::as_secs_f64);
    let step = (c.alpha * (delay - target) + c.beta * (delay - old)) / damping(p);
    let step = if c.cap && p >= 0.1 { step.min(0.02) } else { step };
    let step = if steep { step + 0.02 } else { step };
    let decay = if delay == 0.0 && old == 0.0 && rests { c.decay } else { 1.0 };
    if p + step > c.p_max {
        return c.p_past_max.map_or(c.p_max, |past| past.min(c.p_max));
    }
    ((p + step) * decay).max(0.0)
}

/// By what a step is divided at a drop probability `p` (auto-tuning, RFC 8033 §4.2).
pub(super) fn damping(p: f64) -> f64 {
    const TABLE: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (0.01, 8.0), (0.1, 2.0)];
    TABLE.iter().find(|(below, _)| p < *below).map_or(1.0, |(_, damping)| *damping)
}

/// How long a given number of bytes takes to leave, measured while the queue holds that many
/// (RFC 8033 §5.2).
#[derive(Clone, Default, Debug)]
struct DepartureRate {
    /// Smoothed time; zero before the first measurement.
    average: Duration,
    /// Start of the present measurement, and what has left since.
    measuring: Option<(Instant, u64)>,
}

impl DepartureRate {
    /// `len` bytes leave `behind` bytes in the queue.
    fn departed(&mut self, len: u64, behind: u64, threshold: u64, now: Instant) {
        if let Some((start, left)) = &mut self.measuring {
            *left += len;
            if *left >= threshold {
                self.average = smoothed(self.average, now.since(*start), threshold);
                self.measuring = None;
            }
        }
        if self.measuring.is_none() && behind >= threshold {
            self.measuring = Some((now, 0));
        }
    }
}

/// Exponential average with weight threshold/2¹⁶; the first sample counts alone.
fn smoothed(average: Duration, sample: Duration, threshold: u64) -> Duration {
    if average == Duration::ZERO {
        return sample;
    }
    let weight = (threshold as f64 / 65_536.0).min(1.0);
    average.mul_f64(1.0 - weight) + sample.mul_f64(weight)
}

#[cfg(test)]
mod tests;
