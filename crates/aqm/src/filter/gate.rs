//! A filter that its owner closes for a packet: where several queues share a buffer, who manages that decides
//! what is admitted, and the books of the queue count what is not as any overflow.

use super::Filter;
use crate::context::{Cause, Cx, Env, State};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::Instant;

params! {
    /// A gate has no parameters.
    pub struct GateConfig {}
}

/// A gate, open unless it was closed for the next packet.
#[derive(Clone, Default, Debug)]
pub struct Gate {
    closed: bool,
}

impl Gate {
    /// Whether the next packet is dropped; those behind it are not.
    pub fn close(&mut self, closed: bool) {
        self.closed = closed;
    }
}

impl Filter for Gate {
    type Config = GateConfig;
    const CAUSE: Cause = Cause::Overflow;

    fn new(_: &GateConfig, _: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self::default())
    }

    fn drops(&mut self, _: &Meta, _: impl FnOnce(u32) -> bool, _: &mut Cx<'_>) -> bool {
        core::mem::take(&mut self.closed)
    }

    fn state(&self) -> State {
        State::of::<Self>(0)
    }

    fn observe(&self, _: Instant, _: &mut dyn FnMut(&'static str, f64)) {}
}
