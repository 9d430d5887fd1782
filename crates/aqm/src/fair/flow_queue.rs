//! Flow queueing: many queues that take turns by bytes, each with an algorithm of its own. With
//! [CoDel](crate::policy::codel) it is FQ-CoDel (RFC 8290), with [PIE](crate::policy::pie) FQ-PIE as
//! Linux has it.
//!
//! A hash sorts flows into queues, whatever the codepoints of their packets. Queues that have just got a packet go before those that had some
//! all the time, once: a flow that sends less than a quantum in a round never waits.
//!
//! With `ways`, as in ns-3, the hash names a set of queues. A flow gets the first one that is its own or
//! idle, and shares one only where others have them all.
//!
//! ```text
//! a packet arrives (§4.1):  queue := hash of its flow
//!     the queue is in no list:  it goes to the end of the new queues with a credit of `quantum`
//!     the buffer is too full:   the queue with the most bytes drops half its packets from its head,
//!                               `drop_batch` at most
//! next (§4.2):  the first of the new queues, else of the old
//!     its credit is used up:    it gets a quantum more and goes to the end of the old queues
//!     its algorithm gives a packet:  its length is taken from the credit
//!     nothing is left, new:     the queue goes to the end of the old queues
//!     nothing is left, old:     the queue leaves the list
//! ```
//!
//! Where the RFC is silent: of several longest queues the first has to drop, and half is rounded up. If
//! that does not make room (one long packet for many short ones) it is done again. The algorithm does
//! not count such drops, and what it knows of the backlog is that of its queue. Linux's `fq_codel` drops half
//! of the bytes (`drop_half`), counts these drops as signals (`overflow_counts`), compares an MTU with the
//! backlog of all queues (`backlog`), and has a queue that runs empty while no other is old come back as a
//! new one (`emptied`). Until Linux 7.0 (815980fe6dbb) a queue that ran empty stayed above target
//! (`all-stale`), so that a sparse flow on a slow link lost every other packet that came an interval
//! later: preset `linux-6.1`, which has no limit of 256 drops at once (`drops_at_once`) either. Linux's `fq_pie` drops the arriving packet when the buffer is full
//! (`overflow`), which lets a flood shut others out.

use alloc::boxed::Box;
use alloc::vec;
use core::marker::PhantomData;

use super::{ByBytes, Emptied, End, Half, Overflow, Plan, Scheme, Turn, Waiting};
use crate::about::{About, Family, joined};
use crate::context::Env;
use crate::hash::FlowHash;
use crate::packet::FlowKey;
use crate::param::{ConfigError, params};
use crate::policy::{Policy, codel, pie};
use crate::rng::Rng;
use crate::units::Size;

/// In which all versions of Linux's `fq_codel` differ from the RFC.
const LINUX: [(&str, &str); 4] = [
    ("emptied", "old-if-any"),
    ("drop_half", "bytes"),
    ("overflow_counts", "true"),
    ("grace", "1ns"),
];

/// Flow queueing with CoDel.
pub const FQ_CODEL: About = About {
    name: "fq-codel",
    family: Family::Fair,
    summary: "Sorts flows into queues with a CoDel each and sends of each in turn, new ones first.",
    source: "RFC 8290",
    rule: "FQ-CoDel sends of each queue with packets a quantum in turn, new queues first; a CoDel \
        in each signals at departure once every packet there has waited longer than target for an \
        interval, then ever faster; where the buffer is full the longest queue loses packets from \
        its head (RFC 8290 §4)",
    signals: super::SIGNALS,
    labels: codel::ABOUT.labels,
    presets: &[
        ("linux", &joined::<_, 6>(&LINUX, &[("backlog", "all"), ("drops_at_once", "256")])),
        ("linux-6.1", &joined::<_, 5>(&LINUX, &[("backlog", "all-stale")])),
    ],
    live: &joined::<_, 4>(codel::ABOUT.live, &["quantum"]),
    ..About::NEW
};

/// Flow queueing with PIE.
pub const FQ_PIE: About = About {
    name: "fq-pie",
    family: Family::Fair,
    summary: "Sorts flows into queues with a PIE each and sends of each in turn, new ones first.",
    source: "RFC 8290; RFC 8033",
    rule: "FQ-PIE sends of each queue with packets a quantum in turn, new queues first; a PIE in \
        each signals at arrival with its own p_d; where the buffer is full the longest queue \
        loses packets from its head, or with overflow = arriving the arriving packet is dropped \
        (RFC 8290 §4, RFC 8033 §4)",
    unmarked: pie::ABOUT.unmarked,
    signals: super::SIGNALS,
    presets: &[(
        "linux",
        &joined::<_, 13>(pie::LINUX, &[("emptied", "old-if-any"), ("overflow", "arriving")]),
    )],
    live: &["target", "alpha", "beta", "max_burst", "mark_ecnth", "quantum"],
    ..About::NEW
};

params! {
    /// Parameters of flow queueing, beside those of the algorithm of each queue.
    pub struct FlowQueueConfig {
        /// Number of queues.
        queues: u32 = 1024, in 1..=65_536, "RFC 8290 §5.2.5";
        /// Queues of a set, of which a flow gets the first that is its own or idle; 1: its hash names one queue.
        ways: u32 = 1, in 1..=1024, "RFC 8290 §4.1; 8: ns-3";
        /// Bytes that a queue sends in its turn.
        quantum: u32 = 1514, in 1..=1_048_576, "RFC 8290 §5.2.4";
        /// Most packets that the longest queue drops at once when the buffer is full.
        drop_batch: u32 = 64, in 1..=65_536, "RFC 8290 §4.1", with overflow = "longest";
        /// Which half of the longest queue an overflow drops: half of its packets or half of its
        /// bytes.
        drop_half: Half = Half::Packets, "RFC 8290 §4.1; Linux", with overflow = "longest";
        /// Which packets are dropped when the buffer is full: those of the longest queue or the
        /// arriving one.
        overflow: Overflow = Overflow::Longest, "RFC 8290 §4.1; Linux's fq_pie";
        /// Which backlog the algorithm of a queue sees, when a packet leaves or its timer comes: its own
        /// queue's or that of all queues. With `all-stale` an empty queue also stays above target.
        backlog: Waiting = Waiting::Queue, "RFC 8290 §4; Linux";
        /// Most bytes that wait, beside the buffer's own bound; `none`: no other.
        memory_limit: Option<Size> = None, "Linux memory_limit";
        /// Where a new queue goes that has run empty.
        emptied: Emptied = Emptied::Old, "RFC 8290 §4.2; Linux";
    }
}

/// How flow queueing sorts.
#[derive(Clone, Debug)]
pub struct FlowQueue<A> {
    hash: FlowHash,
    queues: u32,
    ways: u32,
    /// The hash of the flow that each queue was given to last, where a flow may have several queues.
    owners: Box<[u64]>,
    advised_by: PhantomData<A>,
}

impl<A: Policy> Scheme for FlowQueue<A> {
    type Config = (FlowQueueConfig, A::Config);
    type Policy = A;
    type Length = ByBytes;

    fn new((own, _): &Self::Config, env: &Env, rng: &mut Rng) -> Result<(Self, Plan), ConfigError> {
        if !own.queues.is_multiple_of(own.ways) {
            return Err(ConfigError { key: "ways", allowed: "a divisor of queues".into() });
        }
        let plan = Plan {
            turn: Turn::Credit(own.quantum),
            memory: env.memory("memory_limit", own.memory_limit)?,
            prefer_new: true,
            drop: End::Head,
            drop_batch: own.drop_batch,
            drop_half: own.drop_half,
            overflow: own.overflow,
            backlog: own.backlog,
            emptied: own.emptied,
            ..Plan::of(own.queues as usize)
        };
        let owners = vec![0; if own.ways > 1 { own.queues as usize } else { 0 }].into();
        let scheme = Self {
            hash: FlowHash::new(rng),
            queues: own.queues,
            ways: own.ways,
            owners,
            advised_by: PhantomData,
        };
        Ok((scheme, plan))
    }

    fn policy((_, of_queue): &Self::Config, env: &Env, rng: &mut Rng) -> Result<A, ConfigError> {
        A::new(of_queue, env, rng)
    }

    #[inline(always)]
    fn queue_of(&mut self, flow: FlowKey, idle: impl Fn(usize) -> bool) -> usize {
        let flow = flow.without_codepoint();
        match self.ways {
            1 => self.hash.bin(flow, self.queues),
            _ => self.queue_in_set(flow, idle),
        }
    }

    fn find(&self, flow: FlowKey, idle: impl Fn(usize) -> bool) -> Option<usize> {
        Some(self.in_set(flow.without_codepoint(), idle))
    }

    fn longest_by(&self) -> ByBytes {
        ByBytes
    }

    fn bytes_per_queue(&self) -> u64 {
        (size_of_val(&*self.owners) / self.queues as usize) as u64
    }
}

impl<A> FlowQueue<A> {
    /// The queue of a flow's set that it gets, and is known by from now on.
    #[inline(never)]
    fn queue_in_set(&mut self, flow: FlowKey, idle: impl Fn(usize) -> bool) -> usize {
        let queue = self.in_set(flow, idle);
        self.owners[queue] = self.hash.word(flow);
        queue
    }

    /// The first queue of the flow's set that is its own or idle. Where others have them all, it shares the
    /// first of the set.
    fn in_set(&self, flow: FlowKey, idle: impl Fn(usize) -> bool) -> usize {
        let (word, ways) = (self.hash.word(flow), self.ways as usize);
        let first = self.hash.bin(flow, self.queues / self.ways) * ways;
        let owned = |queue: &usize| self.owners.get(*queue) == Some(&word);
        (first..first + ways).find(|queue| owned(queue) || idle(*queue)).unwrap_or(first)
    }
}
