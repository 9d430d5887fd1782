//! Stochastic fair queueing (McKenney, McK90; with RED in each queue: Feng02 §IV.B).
//!
//! A hash sorts flows into a fixed number of queues, which take turns. Flows that meet in a queue
//! share its turn; so that they do not do so for ever, the hash's secret may change.
//!
//! ```text
//! a packet arrives:  queue := hash of its flow;  the queue's policy admits, marks or drops it
//!                    while the buffer is too full:  drop a packet of the longest queue
//! next:              the queue whose turn it is sends a packet, or `quantum` bytes
//! every `perturb`:   another hash
//! ```
//!
//! Two ways to divide the buffer: shared, as McKenney has it, where the longest queue has to give
//! way (`queue_limit = none`); or in parts, as Feng02 has it, where each queue has its own.
//!
//! Where the paper is silent:
//! - The longest queue is the one with the most bytes (in Linux packets: `longest_by`); of several, the
//!   first. It loses the packet at its tail (or head: `drop`), which may be the one that has just arrived.
//! - Packets that are queued when the hash changes stay where they are: a flow's next packets may
//!   overtake them. `perturb` should be far above the queueing delay.
//! - A queue stays in its place until its turn finds it empty; only then does a RED in it learn
//!   that it is idle. In Linux it leaves as its last packet does (`leaves`): a packet that comes before that
//!   turn goes to the end. Its idle time counts packets as if the queue had the whole link.

use super::lines::{self, End};
use super::{Plan, Scheme, Turn};
use crate::about::{About, Family};
use crate::context::{Cx, Env};
use crate::hash::FlowHash;
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, Mode, choice, params};
use crate::policy::red;
use crate::policy::red::{Red, RedConfig};
use crate::policy::{Arrival, Policy, Victim, View};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Size};

/// What sfq tells of itself.
pub const ABOUT: About = About {
    name: "sfq",
    family: Family::Fair,
    summary: "Sorts flows into queues by a hash and sends a packet of each in turn.",
    source: "McK90; Feng02 §IV.B",
    rule: "SFQ sends a packet of each queue in turn; where the buffer is full the longest queue \
        loses a packet, and a policy in each queue may signal as well (McK90)",
    unmarked: red::ABOUT.unmarked,
    signals: super::SIGNALS,
    presets: &[
        (
            "feng",
            &[
                ("queues", "46"),
                ("queue_limit", "9kB"),
                ("aqm", "red"),
                ("mode", "bytes"),
                ("min_th", "2kB"),
                ("max_th", "8kB"),
            ],
        ),
        (
            "linux",
            &[
                ("queues", "1024"),
                ("quantum", "1514"),
                ("queue_limit", "127p"),
                ("longest_by", "packets"),
                ("leaves", "at-once"),
            ],
        ),
    ],
    live: red::LIVE,
    ..About::NEW
};

params! {
    /// Parameters of SFQ. Those of RED count where `aqm` says so.
    pub struct SfqConfig {
        /// Number of queues.
        queues: u32 = 128, in 1..=65_536, "McK90; 46: Feng02 §IV.B";
        /// Room of each queue; `none`: all share the buffer, and the longest gives way.
        queue_limit: Option<Size> = None, "Feng02 §IV.B";
        /// Time between two changes of the hash; 0: never.
        perturb: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(3600), "McK90";
        /// Bytes that a queue sends in its turn; `none`: one packet.
        quantum: Option<u32> = None, in 1..=1_048_576, "Linux sch_sfq";
        /// What the longest queue has most of, which gives way when the buffer is full.
        longest_by: Mode = Mode::Bytes, "ours; packets: Linux";
        /// When a queue without packets leaves its place.
        leaves: Leaves = Leaves::InTurn, "ours; at-once: Linux";
        /// Which packet of the longest queue is dropped when the buffer is full.
        drop: DropEnd = DropEnd::Tail, "McK90";
        /// What decides about the packets of each queue.
        aqm: Aqm = Aqm::DropTail, "Feng02 §IV.B";
        ..red: RedConfig = RedConfig::feng(), by "Feng02 Table I (R2)", with aqm = "red";
    }
}

choice! {
    /// When a queue without packets leaves its place.
    pub enum Leaves {
        /// When its turn finds it empty: a packet that comes before gets that turn.
        InTurn = "in-turn",
        /// As its last packet leaves: the next one waits for all other queues.
        AtOnce = "at-once",
    }
}

choice! {
    /// Which packet of a queue is dropped when the buffer is full.
    pub enum DropEnd {
        /// The one that came last.
        Tail = "tail",
        /// The one that has waited longest.
        Front = "front",
    }
}

choice! {
    /// What decides about the packets of each queue.
    pub enum Aqm {
        /// Nothing but its room.
        DropTail = "droptail",
        /// RED, whose thresholds are shares of the queue's room.
        Red = "red",
    }
}

impl From<DropEnd> for End {
    fn from(end: DropEnd) -> Self {
        match end {
            DropEnd::Tail => Self::Tail,
            DropEnd::Front => Self::Head,
        }
    }
}

/// How stochastic fair queueing sorts.
#[derive(Clone, Debug)]
pub struct Sfq {
    hash: FlowHash,
    queues: u32,
    perturb: Duration,
    longest_by: Measure,
    leaves_at_once: bool,
}

impl Scheme for Sfq {
    type Config = SfqConfig;
    type Policy = Inner;
    type Length = Measure;

    fn new(config: &SfqConfig, env: &Env, rng: &mut Rng) -> Result<(Self, Plan), ConfigError> {
        let plan = Plan {
            queue_limit: lines::line_limit("queue_limit", config.queue_limit, env)?,
            turn: config.quantum.map_or(Turn::Packet, Turn::Credit),
            drop: config.drop.into(),
            ..Plan::of(config.queues as usize)
        };
        let (queues, perturb) = (config.queues, config.perturb);
        let scheme = Self {
            hash: FlowHash::new(rng),
            queues,
            perturb,
            longest_by: config.longest_by.into(),
            leaves_at_once: config.leaves == Leaves::AtOnce,
        };
        Ok((scheme, plan))
    }

    fn policy(config: &SfqConfig, env: &Env, rng: &mut Rng) -> Result<Inner, ConfigError> {
        Inner::new(config, env, rng)
    }

    #[inline]
    fn queue_of(&mut self, flow: FlowKey, _: impl Fn(usize) -> bool) -> usize {
        self.hash.bin(flow, self.queues)
    }

    fn find(&self, flow: FlowKey, _: impl Fn(usize) -> bool) -> Option<usize> {
        Some(self.hash.bin(flow, self.queues))
    }

    fn longest_by(&self) -> Measure {
        self.longest_by
    }

    #[inline]
    fn leaves_at_once(&self) -> bool {
        self.leaves_at_once
    }

    fn period(&self) -> Option<Duration> {
        (self.perturb > Duration::ZERO).then_some(self.perturb)
    }

    fn on_period(&mut self, cx: &mut Cx<'_>) {
        self.hash = FlowHash::new(cx.rng);
    }
}

/// The policy of a queue: RED, or nothing but its room.
#[derive(Clone, Debug)]
pub struct Inner(Option<Red>);

impl Policy for Inner {
    type Config = SfqConfig;
    type Tag = ();

    fn new(config: &SfqConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        match config.aqm {
            Aqm::DropTail => Ok(Self(None)),
            Aqm::Red => Red::new(&config.red, env, rng).map(|red| Self(Some(red))),
        }
    }

    fn retune(&mut self, with: Self, now: Instant) {
        if let (Some(red), Some(with)) = (&mut self.0, with.0) {
            red.retune(with, now);
        }
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.0.as_mut().map_or(Arrival::Admit, |red| red.on_arrival(pkt, q, cx))
    }

    fn on_overflow(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Victim {
        self.0.as_mut().map_or(Victim::Arriving, |red| red.on_overflow(pkt, q, cx))
    }

    fn gave_way(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) {
        if let Some(red) = &mut self.0 {
            red.gave_way(pkt, q, cx);
        }
    }

    #[inline]
    fn admitted(&mut self, pkt: &Meta, cx: &mut Cx<'_>) {
        if let Some(red) = &mut self.0 {
            red.admitted(pkt, cx);
        }
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        if let Some(red) = &mut self.0 {
            red.on_idle(cx);
        }
    }

    fn rate_changed(&mut self, env: &Env) {
        if let Some(red) = &mut self.0 {
            red.rate_changed(env);
        }
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        if let Some(red) = &self.0 {
            red.observe(now, sink);
        }
    }

    fn observe_flow(&self, pkt: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        if let Some(red) = &self.0 {
            red.observe_flow(pkt, now, sink);
        }
    }
}
