//! DualPI2: [PI2](crate::policy::pi2) with a queue for each kind of traffic, and a ramp for the L
//! queue (RFC 9332 appendix A, with the edge cases of A.2).
//!
//! ```text
//! every t_update:  p', p_C := p'² and p_CL := k p' as in PI2; the delay is the longer time that
//!                  one of the two heads has waited
//! a packet leaves L, p_CL < 1:  mark it with max(ramp(its delay), p_CL)
//!                    otherwise:  drop it with p_C, else mark it with p_CL (it is overload)
//! a packet leaves C:  signal it with p_C;  from p_C = min(1/k², 1) on drop it instead
//! ramp(d):  0 up to min_th or while no more than th_len packets are queued in L, this one with
//!           them;  1 from min_th + range on
//! ```
//!
//! With `signals = recur` the two tests of an L packet in overload share one sum, as in the RFC. One
//! thing is not as in its pseudo-code: p_CL ends at 1, or the sum would grow during overload by more
//! than a signal takes from it, and marks would go on for long after.
//!
//! With `random-twice` there is overload only where k p' > 1, as in Linux: with k = 1 never.
//!
//! The `linux` preset has Linux's gains, its step above 1 ms in place of the ramp (however short the
//! queue), random signals, and its share for the C queue. What still differs there: Linux tests the
//! length of the L queue at arrival.

use super::protection::{Protection, ProtectionConfig};
use super::{Coupling, DualConfig};
use crate::about::{About, Family, Signal, Unmarked, joined};
use crate::context::{Cause, Cx, Env};
use crate::param::{ConfigError, choice, params};
use crate::policy::Departure;
use crate::policy::pi2::{self, Coin, Controller, ControllerConfig};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// What dualpi2 tells of itself.
pub const ABOUT: About = About {
    name: "dualpi2",
    family: Family::Dual,
    summary: "PI2 with a queue of little delay for scalable traffic beside the classic one.",
    source: "RFC 9332 appendix A",
    rule: "DualPI2 signals classic packets with p_c, the square of its controller's p, and \
        packets of the L queue with p_cl or by their own queue, whichever is larger (RFC 9332); \
        without a coin (signals = recur) probabilities add up, and each time that they pass 1 a \
        packet is signalled",
    unmarked: Unmarked {
        coin: "in overload every signal is a drop: p_c is not below 1/k²",
        rule: "in overload every signal is a drop: p_c is not below 1/k²",
    },
    signals: &[
        Signal { name: "p", unit: "0 … 1", doc: "base probability, the controller's output" },
        Signal { name: "p_c", unit: "0 … 1", doc: "probability of a classic signal" },
        Signal { name: "p_cl", unit: "0 … 1", doc: "probability of a mark in L by coupling" },
        Signal {
            name: "delay",
            unit: "s",
            doc: "longer delay of the two heads at the last update",
        },
        Signal { name: "l_queue", unit: "packets", doc: "length of the L queue" },
        Signal { name: "c_queue", unit: "packets", doc: "length of the C queue" },
    ],
    presets: &[(
        "linux",
        &[
            ("t_update", "16ms"),
            ("alpha", "0.160071067511"),
            ("beta", "3.197783371434"),
            ("signals", "random-twice"),
            ("spare", "3028"),
            // It marks above 1 ms, and times are whole nanoseconds.
            ("min_th", "1000001ns"),
            ("range", "0s"),
            ("th_len", "0"),
            ("scheduler", "wrr-kept"),
            ("classic_share", "0.1"),
        ],
    )],
    live: &joined::<_, 8>(pi2::LIVE, &["min_th", "range"]),
    ..About::NEW
};

params! {
    /// Parameters of DualPI2 beside those of its controller.
    pub struct DualPi2Config {
        /// Delay in the L queue from which on packets are marked.
        min_th: Duration = Duration::from_micros(800), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9332 Fig. 2";
        /// Delay beyond `min_th` at which every packet is marked; 0: a step.
        range: Duration = Duration::from_micros(400), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9332 Fig. 2";
        /// Packets in the L queue up to which the ramp does not mark.
        th_len: u32 = 1, in 0..=1_000_000, "RFC 9332 Fig. 2, appendix A.2";
        /// What is done when p_CL would pass 1.
        overload: Overload = Overload::Drop, "RFC 9332 §4.2.3; tc-dualpi2(8)";
        /// Bytes left behind in both queues below which only the ramp signals (Linux: two packets of 1514).
        spare: u32 = 0, in 0..=1_000_000, "Linux", with signals = "random-twice";
        /// When the controller's signals are decided; the ramp's always when a packet leaves.
        decided: Decided = Decided::AtDeparture, "tc-dualpi2(8)", with signals = "random-twice";
        ..dual: DualConfig = DualConfig::default();
    }
}

choice! {
    /// What is done when p_CL would pass 1.
    pub enum Overload {
        /// All signals are drops, with p_C; what is not dropped of L is marked.
        Drop = "drop",
        /// Nothing: p' ends at 1/k, and the buffer fills until it drops.
        Overflow = "overflow",
    }
}

choice! {
    /// When the controller's signals are decided.
    pub enum Decided {
        /// When a packet leaves.
        AtDeparture = "departure",
        /// When it arrives: what was decided then is known a queue's delay later.
        AtArrival = "arrival",
    }
}

/// The algorithms of DualPI2.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    ramp: Ramp,
    /// Fewer bytes left behind, and a packet that leaves is spared; all are where arrivals decide.
    spare: u64,
    /// Fewer bytes in the queue, and an arriving packet is spared; `None`: departures decide.
    at_arrival: Option<u64>,
    controller: Controller,
    low_latency: Coin,
    classic: Coin,
}

/// The L queue's own marking.
#[derive(Clone, Debug)]
struct Ramp {
    min_th: Duration,
    range: Duration,
    th_len: u32,
}

impl Coupling for DualPi2 {
    type Config = ((DualPi2Config, ProtectionConfig), ControllerConfig);
    const PROTECTS: bool = true;

    fn new(config: &Self::Config, env: &Env) -> Result<Self, ConfigError> {
        let ((own, _), controller) = config;
        let coin = Coin::new(controller.signals);
        let (spare, at_arrival) = (u64::from(own.spare), own.decided == Decided::AtArrival);
        Ok(Self {
            ramp: Ramp { min_th: own.min_th, range: own.range, th_len: own.th_len },
            spare: if at_arrival { u64::MAX } else { spare },
            at_arrival: at_arrival.then_some(spare),
            controller: match (Controller::new(controller, env.now), own.overload) {
                (controller, Overload::Drop) => controller,
                (controller, Overload::Overflow) => controller.without_overload(),
            },
            low_latency: coin.clone(),
            classic: coin,
        })
    }

    fn retune(&mut self, with: Self) {
        self.ramp = with.ramp;
        self.controller.retune(with.controller);
    }

    fn dual(config: &Self::Config) -> &DualConfig {
        &config.0.0.dual
    }

    fn protection(config: &Self::Config, env: &Env, rng: &mut Rng) -> Option<Protection> {
        let ((own, protection), _) = config;
        Protection::new(protection, own.min_th + own.range, env, rng)
    }

    fn native(&self, delay: Duration) -> f64 {
        self.ramp.at(delay)
    }

    #[inline]
    fn low_latency(
        &mut self,
        delay: Duration,
        [packets, _]: [u32; 2],
        left: impl Fn() -> u64,
        cx: &mut Cx<'_>,
    ) -> Departure {
        let Self { ramp, spare, controller: c, low_latency, .. } = self;
        let native = || if packets > ramp.th_len { ramp.at(delay) } else { 0.0 };
        let spared = || left() < *spare;
        if !c.overload_of_l() {
            let p = native().max(c.coupled);
            let signal = low_latency.falls_or(p, cx.rng, |rng| match spared() {
                true => native() >= 1.0 || native() > 0.0 && rng.chance(native()),
                false => rng.chance(p),
            });
            return match signal {
                true => Departure::Signal(Cause::Early),
                false => Departure::Send,
            };
        }
        if low_latency.falls_or(c.classic, cx.rng, |rng| !spared() && c.falls_twice(rng)) {
            Departure::Drop(Cause::Early)
        } else if low_latency.falls_or(c.coupled, cx.rng, |_| !spared() || native() >= 1.0) {
            Departure::Signal(Cause::Early)
        } else {
            Departure::Send
        }
    }

    #[inline]
    fn classic(&mut self, _: Duration, left: impl Fn() -> u64, cx: &mut Cx<'_>) -> Departure {
        let Self { spare, controller: c, classic, .. } = self;
        let twice = |rng: &mut Rng| left() >= *spare && c.falls_twice(rng);
        match classic.falls_or(c.classic, cx.rng, twice) {
            true if c.overload() => Departure::Drop(Cause::Early),
            true => Departure::Signal(Cause::Early),
            false => Departure::Send,
        }
    }

    fn decides_at_arrival(&self) -> bool {
        self.at_arrival.is_some()
    }

    fn arrived(&mut self, low_latency: bool, waiting: u64, cx: &mut Cx<'_>) -> Departure {
        let (c, rng) = (&self.controller, &mut *cx.rng);
        if self.at_arrival.is_none_or(|spare| waiting < spare) {
            return Departure::Send;
        }
        if low_latency && !c.overload_of_l() {
            return match rng.chance(c.coupled) {
                true => Departure::Signal(Cause::Early),
                false => Departure::Send,
            };
        }
        match c.falls_twice(rng) {
            true if low_latency || c.overload() => Departure::Drop(Cause::Early),
            true => Departure::Signal(Cause::Early),
            false if low_latency => Departure::Signal(Cause::Early),
            false => Departure::Send,
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        Some(self.controller.poll_at())
    }

    fn on_timer(&mut self, longest: Duration, now: Instant) {
        self.controller.on_timer(longest, now);
    }

    fn observe(&self, sink: &mut dyn FnMut(&'static str, f64)) {
        self.controller.observe(sink);
    }

    fn observe_more(&self, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("sum_l", self.low_latency.count);
        sink("sum_c", self.classic.count);
    }
}

impl Ramp {
    /// The probability at a delay (RFC 9332 Fig. 5).
    #[inline]
    fn at(&self, delay: Duration) -> f64 {
        let above = delay.saturating_sub(self.min_th);
        if delay < self.min_th {
            0.0
        } else if above >= self.range {
            1.0
        } else {
            above.as_nanos() as f64 / self.range.as_nanos() as f64
        }
    }
}
