//! Random drop: when the buffer is full, one packet of all that are queued and the arriving one is
//! dropped, each with the same probability (the BLUE report, §1: "random drop on full").
//!
//! The victim belongs to a flow with a probability that goes with the flow's share of the buffer,
//! so that few flows cannot keep others out (lock-out). Queues stay as full as under drop-tail.
//!
//! ```text
//! a packet arrives and does not fit:  k uniform in 0 … n  (n packets are queued)
//!     k = n: drop the arriving packet;  else drop the k-th queued packet and look again
//! ```
//!
//! With a buffer in bytes a long packet may need several victims: each is drawn anew, and the
//! arriving packet runs the risk each time. The packet on the wire is never a victim.

use super::{Cx, Env, Policy, Victim, View};
use crate::about::{About, Family};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;

/// What random-drop tells of itself.
pub const ABOUT: About = About {
    name: "random-drop",
    family: Family::One,
    summary: "Drops a random packet, queued or arriving, when the buffer is full.",
    source: "BLUE report §1",
    rule: "if the arriving packet does not fit, random drop draws one of the queued packets and \
        the arriving one, each with the same probability, and drops it (BLUE report §1)",
    ..About::NEW
};

params! {
    /// Random drop has no parameters of its own.
    pub struct RandomDropConfig {}
}

/// The random-drop policy.
#[derive(Clone, Debug)]
pub struct RandomDrop;

impl Policy for RandomDrop {
    type Config = RandomDropConfig;
    type Tag = ();

    fn new(_: &RandomDropConfig, _: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self)
    }

    fn on_overflow(&mut self, _: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Victim {
        let k = cx.rng.below(q.len() + 1);
        if k == q.len() { Victim::Arriving } else { Victim::At(k) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::Lab;
    use std::collections::VecDeque;

    /// Nine queued and one arriving: each place is hit by a tenth of 10 000 drops. χ² with nine
    /// degrees of freedom exceeds 27.9 for one of 1000 seeds; the band is 40.
    #[test]
    fn every_place_and_the_arriving_packet_run_the_same_risk() {
        let mut lab = Lab::<RandomDrop>::new(9, &[]);
        let mut model = VecDeque::new();
        let mut hits = [0u32; 10];
        for id in 0..10_009 {
            let before = lab.dropped().len();
            lab.arrive();
            model.push_back(id);
            for gone in lab.dropped().split_off(before) {
                let place = model.iter().position(|&p| p == gone).unwrap();
                hits[place] += 1;
                model.remove(place);
            }
        }
        let x: f64 = hits.iter().map(|&h| (f64::from(h) - 1000.0).powi(2) / 1000.0).sum();
        assert!(x < 40.0, "χ² {x}: {hits:?}");
        assert_eq!(hits.iter().sum::<u32>(), 10_000, "one victim for one packet too many");
        // What is left departs in the order of arrival.
        model.iter().for_each(|&id| assert_eq!(lab.depart(), Some(id)));
    }
}
