//! DRR: deficit round robin with longest-queue drop (Shreedhar and Varghese, SV95; Mahajan01 §2).
//!
//! Each flow with packets has a queue of its own. The queues take turns, and each sends what it may
//! within its quantum; what it could not use, since its next packet is longer, it keeps for the next
//! turn. So long and short packets get equal shares in bytes, at the same cost for any number of
//! flows. When the buffer is full, the flow with the longest queue loses a packet.
//!
//! ```text
//! a packet arrives:  it goes to its flow's queue; a new one goes to the end of the list, deficit 0
//!                    while the buffer is too full:  drop a packet of the longest queue
//! the turn of a queue:  deficit += quantum
//!                       while the next packet is not longer than deficit:
//!                           send it;  deficit −= its length
//!                       empty:  forget the queue;  else:  it goes to the end of the list
//! ```
//!
//! The paper hashes flows into queues and leaves it open how many; here flows never meet. There is
//! a queue for each packet that the buffer holds, so there is one for each flow that can have any.
//! Where the paper is silent: the longest queue is the one with the most bytes; of several, the
//! first in the table. It loses the packet at its tail (or head: `drop`), which may be the one that
//! has just arrived.

use super::sfq::DropEnd;
use super::{ByBytes, Plan, Scheme, Turn};
use crate::about::{About, Family};
use crate::context::Env;
use crate::flow_table::{FlowTable, Id};
use crate::packet::FlowKey;
use crate::param::{ConfigError, params};
use crate::policy::Policy as _;
use crate::policy::drop_tail::{DropTail, DropTailConfig};
use crate::rng::Rng;

/// What drr tells of itself.
pub const ABOUT: About = About {
    name: "drr",
    family: Family::Fair,
    summary: "Gives each flow a queue and sends a quantum of each in turn.",
    source: "SV95; Mahajan01 §2",
    rule: "DRR sends a quantum of bytes of each flow's queue in turn; where the buffer is full \
        the longest queue loses a packet (SV95)",
    signals: super::SIGNALS,
    live: &["quantum"],
    ..About::NEW
};

params! {
    /// Parameters of DRR.
    pub struct DrrConfig {
        /// Bytes that are added to a flow's deficit in each turn; below the longest packet a flow
        /// may need several turns to send one.
        quantum: u32 = 1500, in 1..=1_048_576, "SV95 §3";
        /// Which packet of the longest queue is dropped when the buffer is full.
        drop: DropEnd = DropEnd::Tail, "SV95 §3; McK90";
    }
}

/// Most flows that have a queue each at a time, however large the buffer: 80 MB for them all.
pub(super) const MOST_QUEUES: u32 = 1 << 20;

/// How deficit round robin sorts.
#[derive(Clone, Debug)]
pub struct Drr(FlowTable<()>);

impl Scheme for Drr {
    type Config = DrrConfig;
    type Policy = DropTail;
    type Length = ByBytes;
    const FORGETS: bool = true;

    fn new(config: &DrrConfig, env: &Env, rng: &mut Rng) -> Result<(Self, Plan), ConfigError> {
        // The arriving packet has a queue before another packet makes room for it.
        let queues = (env.limit.max_packets() + 1).min(MOST_QUEUES);
        let plan = Plan {
            turn: Turn::Deficit(config.quantum),
            drop: config.drop.into(),
            ..Plan::of(queues as usize)
        };
        Ok((Self(FlowTable::new(queues, rng)), plan))
    }

    fn policy(_: &DrrConfig, env: &Env, rng: &mut Rng) -> Result<DropTail, ConfigError> {
        DropTail::new(&DropTailConfig {}, env, rng)
    }

    #[inline]
    fn queue_of(&mut self, flow: FlowKey, _: impl Fn(usize) -> bool) -> usize {
        // Flows beyond the most share the first queue.
        self.0.find_or_insert(flow).unwrap_or_default().index()
    }

    fn find(&self, flow: FlowKey, _: impl Fn(usize) -> bool) -> Option<usize> {
        self.0.find(flow).map(Id::index)
    }

    fn longest_by(&self) -> ByBytes {
        ByBytes
    }

    fn forget(&mut self, queue: usize) {
        self.0.remove(Id::of(queue));
    }

    fn bytes_per_queue(&self) -> u64 {
        FlowTable::<()>::BYTES_PER_FLOW
    }
}
