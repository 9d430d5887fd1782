//! Drop-tail: when the buffer is full, the arriving packet is dropped (the BLUE report, §1).
//!
//! The baseline. It has no parameters but the buffer, signals only by loss, and keeps the buffer
//! full under long-lived TCP (the BLUE report, §1: lock-out and full queues).

use super::{Env, Policy};
use crate::about::{About, Family};
use crate::param::{ConfigError, params};
use crate::rng::Rng;

/// What droptail tells of itself.
pub const ABOUT: About = About {
    name: "droptail",
    family: Family::One,
    summary: "Drops the arriving packet when the buffer is full.",
    source: "BLUE report §1",
    rule: "drop-tail drops the arriving packet if the buffer has no room for it (BLUE report §1)",
    ..About::NEW
};

params! {
    /// Drop-tail has no parameters of its own.
    pub struct DropTailConfig {}
}

/// The drop-tail policy.
#[derive(Clone, Debug)]
pub struct DropTail;

impl Policy for DropTail {
    type Config = DropTailConfig;
    type Tag = ();

    fn new(_: &DropTailConfig, _: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self)
    }
}
