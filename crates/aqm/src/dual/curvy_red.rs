//! Curvy RED: the longer classic packets wait, the more signals, on a curve (RFC 9332 appendix B).
//!
//! ```text
//! a packet leaves C:  Q_C := Q_C + gamma (its delay − Q_C)
//!                     signal it if (Q_C − min_th)/range_c is more than each of 2U random numbers
//! a packet leaves L:  mark it if its delay is more than step,
//!                     or if k (Q_C − min_th)/range_c is more than each of U random numbers
//! ```
//!
//! Where the RFC leaves it open or errs, decided here:
//! - `min_th` is 500 ms in its Fig. 9, which its own buffer of 250 ms can never hold; 0.5 ms is the
//!   default here.
//! - Overload is treated as in DualPI2, as the RFC asks: from 1/k² on (where L's marks reach 1)
//!   classic signals are drops, and L packets are dropped like classic ones, else marked.
//! - Q_C moves only when a packet leaves C, in the RFC. Then a classic flow that has ended would mark
//!   L for ever: an L packet that leaves while C is empty moves Q_C, too, with a delay of 0.

use super::{Coupling, DualConfig};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::{Cause, Cx, Env};
use crate::param::{ConfigError, params};
use crate::policy::Departure;
use crate::rng::Rng;
use crate::time::Duration;

/// What curvy-red tells of itself.
pub const ABOUT: About = About {
    name: "curvy-red",
    family: Family::Dual,
    summary: "Signals on a curve over the smoothed delay of a classic queue, with one of little \
        delay beside it.",
    source: "RFC 9332 appendix B",
    rule: "Curvy RED signals a classic packet if the smoothed delay of the C queue exceeds each \
        of several random numbers, and marks an L packet by half as many of them or if it waited \
        longer than step (RFC 9332 appendix B)",
    unmarked: Unmarked {
        coin: "in overload every signal is a drop: p_cl is 1",
        rule: "in overload every signal is a drop: p_cl is 1",
    },
    signals: &[
        Signal { name: "q_c", unit: "s", doc: "smoothed delay of the C queue" },
        Signal { name: "p_c", unit: "0 … 1", doc: "probability of a classic signal" },
        Signal { name: "p_cl", unit: "0 … 1", doc: "probability of a mark in L by coupling" },
        Signal { name: "l_queue", unit: "packets", doc: "length of the L queue" },
        Signal { name: "c_queue", unit: "packets", doc: "length of the C queue" },
    ],
    live: &["min_th", "range_c", "gamma", "k", "step"],
    ..About::NEW
};

params! {
    /// Parameters of coupled Curvy RED.
    pub struct CurvyRedConfig {
        /// Smoothed delay of the C queue up to which nothing is signalled.
        min_th: Duration = Duration::from_micros(500), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9332 Fig. 9, see above";
        /// Smoothed delay beyond `min_th` at which every classic packet is signalled.
        range_c: Duration = Duration::from_millis(500), in Duration::from_micros(1)..=Duration::from_secs(3600), "RFC 9332 Fig. 9";
        /// Weight of a delay in the smoothed delay.
        gamma: f64 = 0.03125, in 0.000_001..=1.0, "RFC 9332 Fig. 9";
        /// Coupling factor.
        k: f64 = 2.0, in 0.1..=100.0, "RFC 9332 Fig. 9";
        /// Delay in the L queue above which every packet is marked.
        step: Duration = Duration::from_millis(1), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9332 Fig. 9";
        /// Curviness U: random numbers that L's probability has to exceed; C's twice as many.
        u: u32 = 1, in 1..=8, "RFC 9332 appendix B.1";
        ..dual: DualConfig = DualConfig { scheduler: super::Scheduler::TsFifo, ..DualConfig::default() }, by "RFC 9332 appendix B";
    }
}

/// The algorithms of coupled Curvy RED.
#[derive(Clone, Debug)]
pub struct CurvyRed {
    config: CurvyRedConfig,
    /// Smoothed delay of the C queue, in seconds.
    smoothed: f64,
}

impl Coupling for CurvyRed {
    type Config = CurvyRedConfig;

    fn new(config: &CurvyRedConfig, _: &Env) -> Result<Self, ConfigError> {
        Ok(Self { config: config.clone(), smoothed: 0.0 })
    }

    fn retune(&mut self, with: Self) {
        self.config = with.config;
    }

    fn dual(config: &CurvyRedConfig) -> &DualConfig {
        &config.dual
    }

    #[inline]
    fn low_latency(
        &mut self,
        delay: Duration,
        [_, classic]: [u32; 2],
        _: impl Fn() -> u64,
        cx: &mut Cx<'_>,
    ) -> Departure {
        if classic == 0 {
            self.smooth(Duration::ZERO);
        }
        if self.overload() && self.root() > greatest(2 * self.config.u, cx.rng) {
            Departure::Drop(Cause::Early)
        } else if delay > self.config.step || self.coupled() > greatest(self.config.u, cx.rng) {
            Departure::Signal(Cause::Early)
        } else {
            Departure::Send
        }
    }

    #[inline]
    fn classic(&mut self, delay: Duration, _: impl Fn() -> u64, cx: &mut Cx<'_>) -> Departure {
        self.smooth(delay);
        match self.root() > greatest(2 * self.config.u, cx.rng) {
            true if self.overload() => Departure::Drop(Cause::Early),
            true => Departure::Signal(Cause::Early),
            false => Departure::Send,
        }
    }

    fn observe(&self, sink: &mut dyn FnMut(&'static str, f64)) {
        let power = |p: f64, n: u32| (0..n).fold(1.0, |product, _| product * p);
        sink("q_c", self.smoothed);
        sink("p_c", power(self.root(), 2 * self.config.u));
        sink("p_cl", power(self.coupled(), self.config.u));
    }
}

impl CurvyRed {
    fn smooth(&mut self, delay: Duration) {
        self.smoothed += self.config.gamma * (delay.as_secs_f64() - self.smoothed);
    }

    /// The square root of the classic probability (for U = 1), [0, 1].
    fn root(&self) -> f64 {
        let above = self.smoothed - self.config.min_th.as_secs_f64();
        (above / self.config.range_c.as_secs_f64()).clamp(0.0, 1.0)
    }

    /// The probability that is coupled to the L queue (for U = 1), [0, 1].
    fn coupled(&self) -> f64 {
        (self.config.k * self.root()).min(1.0)
    }

    fn overload(&self) -> bool {
        self.coupled() >= 1.0
    }
}

/// The greatest of `n` random numbers in [0, 1).
fn greatest(n: u32, rng: &mut Rng) -> f64 {
    (0..n).fold(0.0, |greatest, _| rng.uniform().max(greatest))
}
