//! What sorts packets into many queues and serves them in turn, so that no flow can take more than
//! its share by sending more.
//!
//! | module | what it holds |
//! |---|---|
//! | `lines` | many first-in first-out lines in one pool of packets, each advised by a policy |
//! | `rounds` | who is served next: round robin by packet, credit or deficit |
//! | `longest` | which of many queues is the longest |
//! | `links` | lists of slot numbers in one array |
//! | [`sfq`], [`drr`], [`flow_queue`] | the schemes: how packets are sorted, and what is put together |
//! | [`fq`] | a queue for each flow, with a rate for each |
//! | [`htb`] | a tree of classes with a queue of any discipline each |
//! | [`wifi`] | an access point: one queue or one a station, aggregates, airtime |
//! | [`cake`] | CAKE, which sorts by class, host and flow, and has rounds of its own |

use crate::about::Signal;
use crate::context::{Backlog, Cx, Env, State};
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, Params, choice};
use crate::policy::Policy;
use crate::qdisc::{Counters, Discipline, Outlet, Qdisc, idle_rng};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Limit;
use lines::Lines;
use rounds::Rounds;

pub mod cake;
pub mod drr;
pub mod flow_queue;
pub mod fq;
pub mod htb;
mod lines;
mod links;
mod longest;
mod rounds;
pub mod sfq;
#[cfg(test)]
mod tests;
pub mod wifi;

pub use lines::{ByBytes, End, Length, Waiting};
pub use rounds::{Emptied, Turn};

/// What fair queues report.
const SIGNALS: &[Signal] = &[
    Signal { name: "queues", unit: "", doc: "queues with packets" },
    Signal { name: "longest", unit: "bytes", doc: "length of the longest queue" },
];

choice! {
    /// Half of what the longest queue drops when the buffer is full.
    pub enum Half {
        /// Of its packets, rounded up.
        Packets = "packets",
        /// Of its bytes: packets until that is reached, one at least.
        Bytes = "bytes",
    }
}

choice! {
    /// Which packets are dropped when the buffer is full: those of the longest queue or the
    /// arriving one.
    pub enum Overflow {
        /// The longest queue.
        Longest = "longest",
        /// The arriving packet, which its queue's algorithm is not asked about: a flood shuts others out.
        Arriving = "arriving",
    }
}

/// What makes one fair queue differ from another.
pub trait Scheme: Sized {
    /// Parameters, with their defaults and documentation.
    type Config: Params + Default + Clone;
    /// What advises each queue.
    type Policy: Policy;
    /// What the longest queue has most of: [`ByBytes`], or a [`Measure`](crate::Measure).
    type Length: Length;
    /// Whether a queue without packets is forgotten at once. If not, it keeps its place until its
    /// turn finds it empty.
    const FORGETS: bool = false;

    /// The scheme, and what it is made for.
    ///
    /// # Errors
    /// When parameters that are fine alone do not fit together or with the buffer.
    fn new(config: &Self::Config, env: &Env, rng: &mut Rng) -> Result<(Self, Plan), ConfigError>;

    /// The policy of a queue. `env.limit` is the queue's room.
    ///
    /// # Errors
    /// As for [`Scheme::new`].
    fn policy(config: &Self::Config, env: &Env, rng: &mut Rng)
    -> Result<Self::Policy, ConfigError>;

    /// The queue of a flow, below [`Plan::queues`]. `idle` tells which queues have no place in the turns.
    fn queue_of(&mut self, flow: FlowKey, idle: impl Fn(usize) -> bool) -> usize;

    /// The queue of a flow that sends nothing now, as [`Scheme::queue_of`] would name it; `None` if it has none.
    fn find(&self, flow: FlowKey, idle: impl Fn(usize) -> bool) -> Option<usize>;

    /// What the longest queue has most of.
    fn longest_by(&self) -> Self::Length;

    /// Whether a packet that comes to a queue without packets finds the queue's place lost.
    fn leaves_at_once(&self) -> bool {
        false
    }

    /// A queue has no packets any more ([`Scheme::FORGETS`]).
    fn forget(&mut self, _queue: usize) {}

    /// How often the scheme wants [`Scheme::on_period`].
    fn period(&self) -> Option<Duration> {
        None
    }

    /// A period is over.
    fn on_period(&mut self, _cx: &mut Cx<'_>) {}

    /// What the scheme remembers for each queue, in bytes.
    fn bytes_per_queue(&self) -> u64 {
        0
    }
}

/// How a fair queue is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of queues.
    pub queues: usize,
    /// The room of each; `None`: whatever the buffer has, and the longest gives way.
    pub queue_limit: Option<Limit>,
    /// Most bytes of all of them, beside the buffer's room.
    pub memory: u64,
    /// How long a queue's turn is.
    pub turn: Turn,
    /// Whether queues that had no packets go before others, once.
    pub prefer_new: bool,
    /// Which end of the longest queue is dropped when the buffer is full.
    pub drop: End,
    /// How many packets at once; half the queue at most.
    pub drop_batch: u32,
    /// Half of what.
    pub drop_half: Half,
    /// Which packet gives way.
    pub overflow: Overflow,
    /// What policies take for waiting.
    pub backlog: Waiting,
    /// Where a new queue goes that has run empty.
    pub emptied: Emptied,
}

impl Plan {
    /// So many queues that share the buffer and take turns packet by packet. The longest drops the packet at
    /// its tail when the buffer is full.
    pub const fn of(queues: usize) -> Self {
        Self {
            queues,
            queue_limit: None,
            memory: u64::MAX,
            turn: Turn::Packet,
            prefer_new: false,
            drop: End::Tail,
            drop_batch: 1,
            drop_half: Half::Packets,
            overflow: Overflow::Longest,
            backlog: Waiting::Queue,
            emptied: Emptied::Old,
        }
    }
}

/// Many queues that take turns, sorted by `S`, of packets with payload `P`.
///
/// All memory is taken at construction.
#[derive(Clone)]
pub struct Fair<S: Scheme, P> {
    scheme: S,
    plan: Plan,
    lines: Lines<S::Policy, P, S::Length>,
    rounds: Rounds,
    next_period: Option<Instant>,
}

impl<S: Scheme, P: Copy + Default> Fair<S, P> {
    /// The longest queue gives way until the buffer is no longer too full.
    #[inline(never)]
    fn make_room(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        while self.plan.overflow == Overflow::Longest && self.lines.excess() {
            let longest = self.lines.longest();
            let whole = self.lines.backlog_of(longest);
            for n in 0..self.plan.drop_batch {
                let left = self.lines.backlog_of(longest);
                let reached = match self.plan.drop_half {
                    Half::Packets => n >= whole.packets.div_ceil(2),
                    Half::Bytes => n > 0 && whole.bytes - left.bytes >= whole.bytes / 2,
                };
                if reached {
                    break;
                }
                self.lines.give_way(longest, cx);
                self.lines.drop_at(longest, self.plan.drop, cx, out);
            }
            self.forget_if_empty(longest);
        }
    }

    #[inline]
    fn forget_if_empty(&mut self, queue: usize) {
        if S::FORGETS && !self.lines.has_packets(queue) {
            self.rounds.remove(queue);
            self.scheme.forget(queue);
        }
    }
}

impl<S: Scheme, P: Copy + Default> Discipline<P> for Fair<S, P> {
    type Config = S::Config;

    fn new(config: &S::Config, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let (scheme, plan) = S::new(config, env, rng)?;
        Ok(Self {
            lines: Lines::new(&plan, env, scheme.longest_by(), |env| S::policy(config, env, rng))?,
            rounds: Rounds::new(&plan),
            next_period: scheme.period().map(|period| env.now + period),
            plan,
            scheme,
        })
    }

    fn retune(&mut self, config: &S::Config, env: &Env) -> Result<(), ConfigError> {
        let (_, plan) = S::new(config, env, &mut idle_rng())?;
        self.lines.retune(env, |env| S::policy(config, env, &mut idle_rng()))?;
        self.rounds.retune(&plan);
        Ok(())
    }
}

impl<S: Scheme, P: Copy + Default> Qdisc<P> for Fair<S, P> {
    #[inline(always)]
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        let queue = self.scheme.queue_of(meta.flow, |queue| self.rounds.is_idle(queue));
        if self.scheme.leaves_at_once() && !self.lines.has_packets(queue) {
            self.rounds.remove(queue);
        }
        self.lines.enqueue(queue, meta, packet, cx, out);
        if self.lines.has_packets(queue) {
            self.rounds.came(queue);
            if self.lines.excess() {
                self.make_room(cx, out);
            }
        } else {
            self.forget_if_empty(queue);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        loop {
            let queue = self.rounds.next(|queue| self.lines.next_len(queue))?;
            if let Some((meta, packet)) = self.lines.dequeue(queue, cx, out) {
                self.rounds.sent(queue, meta.len);
                self.forget_if_empty(queue);
                return Some((meta, packet));
            }
            self.rounds.found_empty(queue);
        }
    }

    fn backlog(&self) -> Backlog {
        self.lines.backlog()
    }

    fn counters(&self) -> &Counters {
        self.lines.counters()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.next_period.into_iter().chain(self.lines.poll_at()).min()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, _: &mut impl Outlet<P>) {
        self.lines.on_timer(cx);
        if let (Some(next), Some(period)) = (self.next_period, self.scheme.period())
            && cx.now >= next
        {
            self.next_period = Some(next.next_tick(cx.now, period));
            self.scheme.on_period(cx);
        }
    }

    fn rate_changed(&mut self, env: &Env) {
        self.lines.rate_changed(env);
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.lines.observe(sink);
    }

    /// The queue of its flow (−1 if it has none): its number, what waits there, what it may still
    /// send in its turn, its list (0 none, 1 new, 2 old), and all that its policy reports.
    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let found = self.scheme.find(packet.flow, |queue| self.rounds.is_idle(queue));
        let backlog = found.map(|queue| self.lines.backlog_of(queue)).unwrap_or_default();
        let (credit, list) = found.map(|queue| self.rounds.place_of(queue)).unwrap_or_default();
        sink("flow_queue", found.map_or(-1.0, |queue| queue as f64));
        sink("flow_packets", f64::from(backlog.packets));
        sink("flow_bytes", backlog.bytes as f64);
        sink("flow_credit", credit as f64);
        sink("flow_list", f64::from(list));
        let policy = self.lines.policy(found.unwrap_or_default());
        policy.observe(now, sink);
        policy.observe_flow(packet, now, sink);
    }

    fn state(&self) -> State {
        self.lines.state(self.scheme.bytes_per_queue() + Rounds::BYTES_PER_QUEUE)
    }
}
