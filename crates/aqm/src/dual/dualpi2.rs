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
//! The `linux` preset has Linux's gains, its step at 1 ms in place of the ramp (however short the
//! queue), random signals, and its share for the C queue. What still differs there: Linux tests the
//! length of the L queue at arrival, and its credits of the scheduler begin elsewhere.

use super::protection::{Protection, ProtectionConfig};
use super::{Coupling, DualConfig};
use crate::context::{Cause, Cx, Env};
use crate::param::{ConfigError, params};
use crate::policy::Departure;
use crate::policy::pi2::{Coin, Controller, ControllerConfig};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

params! {
    /// Parameters of DualPI2 beside those of its controller.
    pub struct DualPi2Config {
        /// Delay in the L queue from which on packets are marked.
        min_th: Duration = Duration::from_micros(800), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9332 Fig. 2";
        /// Delay beyond `min_th` at which every packet is marked; 0: a step.
        range: Duration = Duration::from_micros(400), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9332 Fig. 2";
        /// Packets in the L queue up to which the ramp does not mark.
        th_len: u32 = 1, in 0..=1_000_000, "RFC 9332 Fig. 2, appendix A.2";
        ..dual: DualConfig = DualConfig::default();
    }
}

/// The algorithms of DualPI2.
#[derive(Clone, Debug)]
pub struct DualPi2 {
    min_th: Duration,
    range: Duration,
    th_len: u32,
    controller: Controller,
    low_latency: Coin,
    classic: Coin,
}

impl Coupling for DualPi2 {
    type Config = ((DualPi2Config, ProtectionConfig), ControllerConfig);
    const PROTECTS: bool = true;

    fn new(config: &Self::Config, env: &Env) -> Result<Self, ConfigError> {
        let ((own, _), controller) = config;
        let coin = Coin::new(controller.signals);
        Ok(Self {
            min_th: own.min_th,
            range: own.range,
            th_len: own.th_len,
            controller: Controller::new(controller, env.now),
            low_latency: coin.clone(),
            classic: coin,
        })
    }

    fn dual(config: &Self::Config) -> &DualConfig {
        &config.0.0.dual
    }

    fn protection(config: &Self::Config, env: &Env, rng: &mut Rng) -> Option<Protection> {
        let ((own, protection), _) = config;
        Protection::new(protection, own.min_th + own.range, env, rng)
    }

    fn native(&self, delay: Duration) -> f64 {
        self.ramp(delay)
    }

    #[inline]
    fn low_latency(
        &mut self,
        delay: Duration,
        [packets, _]: [u32; 2],
        cx: &mut Cx<'_>,
    ) -> Departure {
        let c = &self.controller;
        if c.coupled < 1.0 {
            let native = if packets > self.th_len { self.ramp(delay) } else { 0.0 };
            let p = native.max(c.coupled);
            return match self.low_latency.falls(p, cx.rng) {
                true => Departure::Signal(Cause::Early),
                false => Departure::Send,
            };
        }
        if self.low_latency.falls(c.classic, cx.rng) {
            Departure::Drop(Cause::Early)
        } else if self.low_latency.falls(c.coupled, cx.rng) {
            Departure::Signal(Cause::Early)
        } else {
            Departure::Send
        }
    }

    #[inline]
    fn classic(&mut self, _: Duration, cx: &mut Cx<'_>) -> Departure {
        let c = &self.controller;
        match self.classic.falls(c.classic, cx.rng) {
            true if c.overload() => Departure::Drop(Cause::Early),
            true => Departure::Signal(Cause::Early),
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

impl DualPi2 {
    /// The L queue's own marking probability (RFC 9332 Fig. 5).
    #[inline]
    fn ramp(&self, delay: Duration) -> f64 {
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
