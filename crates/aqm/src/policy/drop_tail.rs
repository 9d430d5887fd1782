//! Drop-tail: when the buffer is full, the arriving packet is dropped (the BLUE report, §1).
//!
//! The baseline. It has no parameters but the buffer, signals only by loss, and keeps the buffer
//! full under long-lived TCP (the BLUE report, §1: lock-out and full queues).

use super::{Env, Policy};
use crate::param::{ConfigError, params};
use crate::rng::Rng;

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
