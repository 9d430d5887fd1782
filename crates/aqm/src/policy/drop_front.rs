//! Drop-front: when the buffer is full, the packet that has waited longest is dropped, and the
//! arriving packet is queued (the BLUE report, §1: "drop front on full").
//!
//! The sender of the packet at the head learns of the loss a full queueing delay sooner than that
//! of the arriving packet would. It cures lock-out (nobody keeps others from getting room) but not
//! full queues: it signals only by loss, like drop-tail.
//!
//! ```text
//! a packet arrives:  while it does not fit, drop the head;  queue it
//! ```
//!
//! The packet on the wire is no longer in the queue and is never a victim.

use super::{Cx, Env, Policy, Victim, View};
use crate::about::{About, Family};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;

/// What drop-front tells of itself.
pub const ABOUT: About = About {
    name: "drop-front",
    family: Family::One,
    summary: "Drops the packet at the head when the buffer is full.",
    source: "BLUE report §1",
    rule: "if the arriving packet does not fit, drop-front drops the packet that has waited \
        longest (BLUE report §1)",
    ..About::NEW
};

params! {
    /// Drop-front has no parameters of its own.
    pub struct DropFrontConfig {}
}

/// The drop-front policy.
#[derive(Clone, Debug)]
pub struct DropFront;

impl Policy for DropFront {
    type Config = DropFrontConfig;
    type Tag = ();

    fn new(_: &DropFrontConfig, _: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self)
    }

    fn on_overflow(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Victim {
        Victim::Head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::policy::lab::{Fate, Lab, env};
    use crate::units::Limit;

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let mut lab = Lab::<DropFront>::new(3, &[]);
        (0..5).for_each(|_| assert_eq!(lab.arrive(), Fate::Queued));
        assert_eq!(lab.dropped(), [0, 1]);
        assert_eq!(lab.depart(), Some(2));
    }

    #[test]
    fn a_long_packet_pushes_out_as_many_short_ones_as_it_needs() {
        let mut lab =
            Lab::<DropFront>::with(&Env { limit: Limit::bytes(1000).unwrap(), ..env(1) }, &[]);
        (0..10).for_each(|_| _ = lab.arrive_as(100, Ecn::NotEct));
        assert_eq!(lab.arrive_as(250, Ecn::NotEct), Fate::Queued);
        assert_eq!(lab.dropped(), [0, 1, 2]);
    }
}
