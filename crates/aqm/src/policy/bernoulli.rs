//! Bernoulli signals: every arriving packet is signalled with one fixed probability, whatever the
//! queue does (Mahajan01 §5.2 checks its formulas against a queue "with a fixed configured loss
//! rate").
//!
//! Not a way to manage a queue: a lossy link, and the known input to which formulas for the
//! throughput of TCP apply.

use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family};
use crate::context::Cause;
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::Instant;

/// What bernoulli tells of itself.
pub const ABOUT: About = About {
    name: "bernoulli",
    family: Family::One,
    summary: "Signals every packet with one fixed probability: a lossy link.",
    source: "Mahajan01 §5.2",
    rule: "every arriving packet is signalled with the same probability p (Mahajan01 §5.2)",
    causes: &[(Cause::Early, "the coin chose it")],
    live: &["p"],
    ..About::NEW
};

params! {
    /// Parameters of Bernoulli signals.
    pub struct BernoulliConfig {
        /// Probability that a packet is signalled.
        p: f64 = 0.01, in 0.0..=1.0, "Mahajan01 §5.2";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = false, "RFC 3168";
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Bernoulli(BernoulliConfig);

impl Policy for Bernoulli {
    type Config = BernoulliConfig;
    type Tag = ();

    fn new(config: &BernoulliConfig, _: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self(config.clone()))
    }

    fn on_arrival(&mut self, _: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        match (cx.rng.chance(self.0.p), self.0.ecn) {
            (false, _) => Arrival::Admit,
            (true, true) => Arrival::Signal(Cause::Early),
            (true, false) => Arrival::Reject(Cause::Early),
        }
    }

    /// Always: the losses of such a link are there whatever its load.
    fn congested(&self, _: &View<'_>, _: Instant) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::Lab;

    /// 100 000 packets at p = 0.05: σ = 69; the band is 5 σ.
    #[test]
    fn the_share_dropped_is_p() {
        let mut lab = Lab::<Bernoulli>::new(10, &[("p", "0.05")]);
        for _ in 0..100_000 {
            lab.arrive();
            lab.depart();
        }
        let dropped = lab.dropped().len();
        assert!((4650..5350).contains(&dropped), "{dropped}");
    }
}
