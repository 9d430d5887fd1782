//! FQ-CoDel: flow queueing with CoDel in each queue (RFC 8290).
//!
//! A hash sorts flows into queues that take turns by bytes, and each queue is a
//! [CoDel](crate::policy::codel) of its own. Queues that have just got a packet go before those that
//! had some all the time, once: a flow that sends less than a quantum in a round never waits.
//!
//! ```text
//! a packet arrives (§4.1):  queue := hash of its flow
//!     the queue is in no list:  it goes to the end of the new queues with a credit of `quantum`
//!     the buffer is too full:   the queue with the most bytes drops half its packets from its head,
//!                               `drop_batch` at most
//! next (§4.2):  the first of the new queues, else of the old
//!     its credit is used up:    it gets a quantum more and goes to the end of the old queues
//!     CoDel gives a packet:     its length is taken from the credit
//!     nothing is left, new:     the queue goes to the end of the old queues
//!     nothing is left, old:     the queue leaves the list
//! ```
//!
//! Where the RFC is silent: of several longest queues the first has to drop; half is rounded up; if
//! that does not make room (one long packet for many short ones) it is done again; CoDel is not told
//! of such drops.

use super::{End, Plan, Scheme, Turn};
use crate::context::Env;
use crate::hash::FlowHash;
use crate::packet::FlowKey;
use crate::param::{ConfigError, params};
use crate::policy::Policy as _;
use crate::policy::codel::{Codel, CodelConfig};
use crate::rng::Rng;

params! {
    /// Parameters of FQ-CoDel.
    pub struct FqCodelConfig {
        /// Number of queues.
        queues: u32 = 1024, in 1..=65_536, "RFC 8290 §5.2.5";
        /// Bytes that a queue sends in its turn.
        quantum: u32 = 1514, in 1..=1_048_576, "RFC 8290 §5.2.4";
        /// Most packets that the longest queue drops at once when the buffer is full.
        drop_batch: u32 = 64, in 1..=65_536, "RFC 8290 §4.1";
        ..codel: CodelConfig = CodelConfig::default();
    }
}

/// How FQ-CoDel sorts.
#[derive(Clone, Debug)]
pub struct FqCodel {
    hash: FlowHash,
    queues: u32,
}

impl Scheme for FqCodel {
    type Config = FqCodelConfig;
    type Policy = Codel;

    fn new(config: &FqCodelConfig, _: &Env, rng: &mut Rng) -> Result<(Self, Plan), ConfigError> {
        let plan = Plan {
            queues: config.queues as usize,
            queue_limit: None,
            turn: Turn::Credit(config.quantum),
            prefer_new: true,
            drop: End::Head,
            drop_batch: config.drop_batch,
        };
        Ok((Self { hash: FlowHash::new(rng), queues: config.queues }, plan))
    }

    fn policy(config: &FqCodelConfig, env: &Env, rng: &mut Rng) -> Result<Codel, ConfigError> {
        Codel::new(&config.codel, env, rng)
    }

    #[inline]
    fn queue_of(&mut self, flow: FlowKey) -> usize {
        self.hash.bin(flow, self.queues)
    }
}
