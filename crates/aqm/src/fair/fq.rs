//! FQ: fair queueing with a rate for each flow (tc-fq(8)), the queue of hosts that pace what they send.
//!
//! Each flow with packets has a queue of its own. Flows take turns by credit, as in FQ-CoDel, and new ones go
//! first. A flow that would exceed its rate leaves the turns until its next packet is due. No algorithm
//! signals in the queues; a packet that waited longer than `ce_threshold` is marked.
//!
//! ```text
//! a packet arrives:  dropped if the buffer is full, or `flow_limit` packets of its flow wait
//!     `fast_path`, no flow has packets:  it goes the fast path, unless so many are there
//!     its flow is in no list:   it goes to the end of the new flows; a flow never seen has a credit of
//!                               `initial_quantum`, one that had no packets for longer than `refill_delay`
//!                               a quantum at least
//! next:  the first on the fast path
//!        the flows whose time has come go to the end of the old ones;  the first of the new, else of the old
//!     its credit is used up:    it gets a quantum more and goes to the end of the old ones
//!     it has no packets, new:   it goes to the end of the old ones, or as `emptied` says
//!     it has no packets:        it leaves the list
//!     its next is due later:    it leaves the list until then
//!     else:                     send a packet;  credit := credit − length
//! pace, after a packet:  maxrate ≤ low_rate_threshold:  credit := 0;  gap := length/maxrate
//!                        else, if the credit is used up:  gap := max(length, quantum)/maxrate
//!                        next := now + gap − min(gap/2, now − next)
//! ```
//!
//! So a flow sends a burst of `initial_quantum`, and then a quantum at a time at `maxrate`. A turn that came
//! late is made up for, by half of a gap at most.
//!
//! Against Linux:
//! - Packets carry no time at which they may leave, which Linux's TCP sets by its pacing. Senders here pace
//!   themselves before the queue, so that `maxrate` alone paces in it, and there is no horizon.
//! - Flows never meet. As many are known as the buffer has packets, or 2048 if that is more; beyond,
//!   the flow without packets for longest is forgotten. Linux knows sockets, and hashes what it forwards
//!   into 1024 flows, and may forget one without packets for 3 s.
//! - `refill_delay` is exact; Linux counts ticks of a timer.
//! - A gap may be longer than a second, which is the longest in Linux.
//! - The buffer has room for all packets together; in Linux since 6.7 those on the fast path do not count.
//! - There is one class of priority. Linux has three, and a queue for what controls the network.
//!
//! Where the manual is silent: flows whose times are the same return in the order in which they left.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use super::drr::MOST_QUEUES;
use super::lines::{ByBytes, Lines};
use super::links::{Chain, Links};
use super::rounds::Emptied;
use super::{Overflow, Plan};
use crate::about::{About, Family, Signal, joined};
use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::flow_table::{FlowTable, Id};
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, params};
use crate::policy::{Departure, Policy, View};
use crate::qdisc::{Counters, Discipline, Outlet, Qdisc, Through, idle_rng};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Limit, Rate};

#[cfg(test)]
mod tests;

/// What fq tells of itself.
pub const ABOUT: About = About {
    name: "fq",
    family: Family::Fair,
    summary: "Gives each flow a queue, sends of each in turn, new ones first, and holds flows to a rate.",
    source: "tc-fq(8)",
    rule: "FQ sends of each flow with packets a quantum in turn, new flows first, and holds back what \
        would exceed a flow's rate; it drops the arriving packet where the buffer is full or too many \
        of its flow wait, and marks what waited longer than ce_threshold (tc-fq(8))",
    causes: &[(Cause::Early, "it waited for longer than ce_threshold")],
    signals: &joined::<_, 3>(
        super::SIGNALS,
        &[Signal { name: "held", unit: "", doc: "flows that wait for their rate" }],
    ),
    presets: &[("linux", &[("emptied", "old"), ("fast_path", "8")])],
    live: &[
        "quantum",
        "initial_quantum",
        "refill_delay",
        "maxrate",
        "low_rate_threshold",
        "ce_threshold",
    ],
    ..About::NEW
};

params! {
    /// Parameters of FQ.
    pub struct FqConfig {
        /// Most packets of a flow that wait.
        flow_limit: u32 = 100, in 1..=1_048_576, "tc-fq(8)";
        /// Bytes that a flow sends in its turn.
        quantum: u32 = 3028, in 1..=1_048_576, "tc-fq(8): two packets";
        /// Bytes that a new flow sends in its first turn.
        initial_quantum: u32 = 15_140, in 0..=1_048_576, "tc-fq(8): ten packets";
        /// A flow that had no packets for longer comes back with a quantum at least.
        refill_delay: Duration = Duration::from_millis(40), in Duration::ZERO..=Duration::from_secs(3600), "Linux sch_fq";
        /// The rate of each flow; `none`: that of the link.
        maxrate: Option<Rate> = None, "tc-fq(8)";
        /// Up to this rate flows are paced packet by packet, above it by quanta.
        low_rate_threshold: Rate = LOW_RATE, "Linux sch_fq", with maxrate != "none";
        /// ECN-capable packets that waited longer are all marked; the wait for `maxrate` does not
        /// count. `none`: no such rule.
        ce_threshold: Option<Duration> = None, in Duration::ZERO..=Duration::from_secs(3600), "tc-fq(8)";
        /// Where a new flow goes that has run empty.
        emptied: Emptied = Emptied::OldIfAny, "Linux sch_fq";
        /// Packets that wait in one queue, ahead of all flows and never marked, if they come while no
        /// flow has packets.
        fast_path: u32 = 0, in 0..=1024, "Linux sch_fq", with maxrate = "none";
    }
}

const LOW_RATE: Rate = Rate::new(550_000).unwrap();

/// So many flows are known at least, however small the buffer. Linux forgets none below.
const KNOWN: u32 = 2048;

/// What is known of a flow, which advises its queue.
#[derive(Clone, Debug)]
struct Flow {
    ce_threshold: Option<Duration>,
    /// What it may still send in its turn, bytes.
    credit: i64,
    /// When its next packet may leave, if its rate has delayed one yet.
    next: Option<Instant>,
    /// When it left the turns.
    left: Instant,
}

impl Policy for Flow {
    type Config = FqConfig;
    type Tag = ();

    fn new(config: &FqConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let ce_threshold = config.ce_threshold;
        Ok(Self { ce_threshold, credit: 0, next: None, left: env.now })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        self.ce_threshold = with.ce_threshold;
    }

    #[inline]
    fn on_departure(&mut self, pkt: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        let ready = self.next.map_or(pkt.arrived, |next| next.max(pkt.arrived));
        let late = self.ce_threshold.is_some_and(|most| cx.now.since(ready) > most);
        if late && pkt.ecn.capable() { Departure::Signal(Cause::Early) } else { Departure::Send }
    }
}

impl Flow {
    /// It has sent a packet of `len` bytes.
    #[inline]
    fn sent(&mut self, len: u32, config: &FqConfig, now: Instant) {
        self.credit -= i64::from(len);
        if let Some(rate) = config.maxrate {
            self.pace(len, rate, config, now);
        }
    }

    fn pace(&mut self, len: u32, rate: Rate, config: &FqConfig, now: Instant) {
        let bytes = if rate <= config.low_rate_threshold {
            self.credit = 0;
            len
        } else if self.credit > 0 {
            return;
        } else {
            len.max(config.quantum)
        };
        let gap = rate.transmission(bytes.into());
        let late = self.next.map_or(Duration::ZERO, |next| now.since(next));
        let made_up = late.min(Duration::from_nanos(gap.as_nanos() / 2));
        self.next = Some(now + gap.saturating_sub(made_up));
    }
}

/// Where a flow is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Place {
    /// In no list.
    #[default]
    Idle,
    New,
    Old,
    /// It waits until its next packet is due.
    Held,
}

/// FQ, of packets with payload `P`.
///
/// All memory is taken at construction.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    config: FqConfig,
    known: FlowTable<()>,
    /// One for each known flow, and the fast path.
    lines: Lines<Flow, P>,
    places: Links<Place>,
    new: Chain,
    old: Chain,
    /// Known flows without packets; the first has had none for longest.
    empty: Chain,
    empties: Links<()>,
    /// Flows that are held, by the time until which, and in which order they came.
    held: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    holds: u64,
}

impl<P: Copy + Default> Fq<P> {
    /// The queue of a flow, which is known from now on.
    #[inline]
    fn queue_of(&mut self, flow: FlowKey, now: Instant) -> usize {
        let home = self.known.home(flow);
        match self.known.find_from(home, flow) {
            Some(id) => id.index(),
            None => self.know(flow, now),
        }
    }

    #[inline(never)]
    fn know(&mut self, flow: FlowKey, now: Instant) -> usize {
        if self.known.len() == self.known.capacity()
            && let Some(oldest) = self.empty.head()
        {
            self.empties.remove(&mut self.empty, oldest);
            self.leave(oldest);
            self.known.remove(Id::of(oldest));
        }
        // Where all have packets, those beyond the most share the first queue.
        let Some(id) = self.known.find_or_insert(flow) else { return 0 };
        self.empties.append(&mut self.empty, id.index());
        let known = self.lines.policy_mut(id.index());
        (known.credit, known.next, known.left) = (self.config.initial_quantum.into(), None, now);
        id.index()
    }

    /// The line of the fast path.
    fn fast(&self) -> usize {
        self.known.capacity()
    }

    /// Packets on the fast path are not marked.
    fn spare_fast(&mut self) {
        self.lines.policy_mut(self.fast()).ce_threshold = None;
    }

    /// Whether a packet that comes goes the fast path.
    fn is_fast(&self) -> bool {
        let fast = self.lines.backlog_of(self.fast()).packets;
        self.config.maxrate.is_none()
            && fast < self.config.fast_path
            && fast == self.lines.backlog().packets
    }

    /// With an outlet of its own type, so that what all other packets need is still compiled inline.
    #[cold]
    fn enqueue_fast(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.lines.enqueue(self.fast(), meta, packet, cx, &mut Through::to(out));
    }

    #[cold]
    fn dequeue_fast(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        self.lines.dequeue(self.fast(), cx, &mut Through::to(out))
    }

    /// A flow leaves the turns, if it takes them.
    fn leave(&mut self, queue: usize) {
        let list = match self.places[queue] {
            Place::New => &mut self.new,
            Place::Old => &mut self.old,
            Place::Idle | Place::Held => return,
        };
        self.places.remove(list, queue);
        self.places[queue] = Place::Idle;
    }

    /// A flow without packets got one.
    #[inline]
    fn came(&mut self, queue: usize, now: Instant) {
        self.empties.remove(&mut self.empty, queue);
        if self.places[queue] == Place::Idle {
            let flow = self.lines.policy_mut(queue);
            if now.since(flow.left) > self.config.refill_delay {
                flow.credit = flow.credit.max(self.config.quantum.into());
            }
            self.places[queue] = Place::New;
            self.places.append(&mut self.new, queue);
        }
    }

    /// The flow whose turn it is leaves its list.
    #[inline]
    fn take(&mut self, queue: usize, place: Place) {
        let new = self.places[queue] == Place::New;
        self.places.pop(if new { &mut self.new } else { &mut self.old });
        self.places[queue] = place;
        if place == Place::Old {
            self.places.append(&mut self.old, queue);
        }
    }

    /// The flow whose turn it is has no packets.
    fn found_empty(&mut self, queue: usize, now: Instant) {
        let stays = self.config.emptied == Emptied::Old || self.old.head().is_some();
        if self.places[queue] == Place::New && stays {
            self.take(queue, Place::Old);
        } else {
            self.take(queue, Place::Idle);
            self.lines.policy_mut(queue).left = now;
        }
    }

    /// The flow whose turn it is waits until `next`.
    fn hold(&mut self, queue: usize, next: Instant) {
        self.take(queue, Place::Held);
        self.holds += 1;
        self.held.push(Reverse((next, self.holds, queue as u32)));
    }

    /// Flows whose time has come take turns again.
    #[inline]
    fn release(&mut self, now: Instant) {
        while let Some(&Reverse((next, _, queue))) = self.held.peek()
            && next <= now
        {
            self.held.pop();
            self.places[queue as usize] = Place::Old;
            self.places.append(&mut self.old, queue as usize);
        }
    }
}

impl<P: Copy + Default> Discipline<P> for Fq<P> {
    type Config = FqConfig;

    fn new(config: &FqConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let queues = (env.limit.max_packets() + 1).clamp(KNOWN, MOST_QUEUES);
        let plan = Plan {
            queue_limit: Limit::packets(config.flow_limit.into()),
            overflow: Overflow::Arriving,
            ..Plan::of(queues as usize + 1)
        };
        let mut new = Self {
            known: FlowTable::new(queues, rng),
            lines: Lines::new(&plan, env, ByBytes, |env| Flow::new(config, env, rng))?,
            places: Links::new(plan.queues),
            new: Chain::EMPTY,
            old: Chain::EMPTY,
            empty: Chain::EMPTY,
            empties: Links::new(plan.queues),
            held: BinaryHeap::with_capacity(plan.queues),
            holds: 0,
            config: config.clone(),
        };
        new.spare_fast();
        Ok(new)
    }

    fn retune(&mut self, config: &FqConfig, env: &Env) -> Result<(), ConfigError> {
        self.lines.retune(env, |env| Flow::new(config, env, &mut idle_rng()))?;
        self.spare_fast();
        self.config = config.clone();
        Ok(())
    }
}

impl<P: Copy + Default> Qdisc<P> for Fq<P> {
    #[inline]
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        if self.config.fast_path > 0 && self.is_fast() {
            return self.enqueue_fast(meta, packet, cx, out);
        }
        let queue = self.queue_of(meta.flow, cx.now);
        let empty = !self.lines.has_packets(queue);
        self.lines.enqueue(queue, meta, packet, cx, out);
        if empty && self.lines.has_packets(queue) {
            self.came(queue, cx.now);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        if self.lines.backlog().packets == 0 {
            return None;
        }
        if self.config.fast_path > 0 && self.lines.has_packets(self.fast()) {
            return self.dequeue_fast(cx, out);
        }
        self.release(cx.now);
        loop {
            let queue = self.new.head().or(self.old.head())?;
            let flow = self.lines.policy_mut(queue);
            let next = flow.next.filter(|next| *next > cx.now);
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum);
                self.take(queue, Place::Old);
            } else if !self.lines.has_packets(queue) {
                self.found_empty(queue, cx.now);
            } else if let Some(next) = next {
                self.hold(queue, next);
            } else {
                let (meta, packet) = self.lines.dequeue(queue, cx, out)?;
                self.lines.policy_mut(queue).sent(meta.len, &self.config, cx.now);
                if !self.lines.has_packets(queue) {
                    self.empties.append(&mut self.empty, queue);
                }
                return Some((meta, packet));
            }
        }
    }

    /// When the first of the held flows may send, unless there are others.
    fn ready_at(&self) -> Option<Instant> {
        let turns = self.new.head().or(self.old.head()).is_some();
        self.held.peek().filter(|_| !turns).map(|Reverse((next, ..))| *next)
    }

    fn backlog(&self) -> Backlog {
        self.lines.backlog()
    }

    fn counters(&self) -> &Counters {
        self.lines.counters()
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }

    fn on_timer(&mut self, _: &mut Cx<'_>, _: &mut impl Outlet<P>) {}

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.lines.observe(sink);
        sink("held", self.held.len() as f64);
    }

    /// The queue of its flow (−1 if it has none): its number, what waits there, what it may still send in its
    /// turn, its list (0 none, 1 new, 2 old, 3 held), and for how long its rate holds it back from now.
    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let found = self.known.find(packet.flow).map(Id::index);
        let backlog = found.map(|queue| self.lines.backlog_of(queue)).unwrap_or_default();
        let flow = found.map(|queue| (self.lines.policy(queue), self.places[queue]));
        let wait =
            flow.and_then(|(flow, _)| flow.next).map_or(0.0, |next| next.since(now).as_secs_f64());
        sink("flow_queue", found.map_or(-1.0, |queue| queue as f64));
        sink("flow_packets", f64::from(backlog.packets));
        sink("flow_bytes", backlog.bytes as f64);
        sink("flow_credit", flow.map_or(0.0, |(flow, _)| flow.credit as f64));
        sink("flow_list", flow.map_or(0.0, |(_, place)| f64::from(place as u8)));
        sink("flow_wait", wait);
    }

    fn state(&self) -> State {
        let held = size_of::<Reverse<(Instant, u64, u32)>>() as u64;
        let lists = Links::<Place>::BYTES + Links::<()>::BYTES;
        let lines = self.lines.state(FlowTable::<()>::BYTES_PER_FLOW + lists + held);
        State { queue: size_of::<Self>() as u64, ..lines }
    }
}
