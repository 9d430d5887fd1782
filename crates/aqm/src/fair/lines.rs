//! Many first-in first-out lines in one pool of packets. Each is a queue as
//! [`Fifo`](crate::Fifo) is, with a policy of its own; they share the buffer and the books.

use alloc::boxed::Box;
use alloc::vec;

use super::Plan;
use super::links::{Chain, Links};
use super::longest::Longest;
use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::fifo::Advised;
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, choice};
use crate::policy::{Policy, View};
use crate::qdisc::{Counters, Outlet};
use crate::ring::Line;
use crate::time::Instant;
use crate::units::{Limit, Measure, Size};

/// The lines.
#[derive(Clone, Debug)]
pub(super) struct Lines<A: Policy, P> {
    lines: Box<[One<A>]>,
    pool: Pool<P, A::Tag>,
    /// The room of all lines together.
    limit: Limit,
    /// The room of one line.
    line_limit: Limit,
    longest: Longest,
    counters: Counters,
    /// When the first of the policies wants its timer.
    timer: Option<Instant>,
}

#[derive(Clone, Debug)]
struct One<A> {
    policy: A,
    chain: Chain,
    backlog: Backlog,
}

impl<A: Policy, P: Copy + Default> Lines<A, P> {
    /// Empty lines; `policy` makes the policy of each for the environment that it will have.
    pub(super) fn new(
        plan: &Plan,
        env: &Env,
        mut policy: impl FnMut(&Env) -> Result<A, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let of_line = Env { limit: plan.queue_limit.unwrap_or(env.limit), ..*env };
        let lines: Result<Box<[_]>, _> = (0..plan.queues)
            .map(|_| {
                let policy = policy(&of_line)?;
                Ok(One { policy, chain: Chain::EMPTY, backlog: Backlog::default() })
            })
            .collect();
        let mut new = Self {
            lines: lines?,
            // A packet is queued before another makes room for it.
            pool: Pool::new(env.limit.max_packets() as usize + 1, plan.backlog),
            limit: env.limit,
            line_limit: plan.queue_limit.unwrap_or(Limit::UNBOUNDED),
            longest: Longest::new(plan.queues),
            counters: Counters::default(),
            timer: None,
        };
        new.set_timer();
        Ok(new)
    }

    /// A packet arrives at a line. It may leave the buffer too full: see [`Lines::excess`].
    #[inline(always)]
    pub(super) fn enqueue(
        &mut self,
        line: usize,
        meta: Meta,
        packet: P,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) {
        if u64::from(meta.len) > self.limit.max_bytes() {
            // Nobody has to make room for what is longer than the buffer.
            self.counters.arrived.count(meta.len);
            return self.counters.drop(&meta, packet, Cause::Overflow, cx, out);
        }
        self.with(line, |advised| advised.enqueue(meta, packet, cx, out));
    }

    /// The packet that a line sends next, if its policy leaves it any.
    #[inline]
    pub(super) fn dequeue(
        &mut self,
        line: usize,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Option<(Meta, P)> {
        let one = &mut self.lines[line];
        if one.backlog.packets == 0 {
            if self.pool.shows_all && self.pool.backlog.packets > 0 {
                one.policy.on_turn(cx);
            } else {
                one.policy.on_idle(cx);
            }
            return None;
        }
        self.with(line, |advised| advised.dequeue(cx, out))
    }

    /// Drops a packet of a line for want of room.
    pub(super) fn drop_at(
        &mut self,
        line: usize,
        end: End,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) {
        let position = match end {
            End::Head => 0,
            End::Tail => self.lines[line].backlog.packets as usize - 1,
        };
        self.drop_queued(line, position, Cause::Overflow, cx, out);
    }

    /// Drops the packet at a position of a line; 0 is the head.
    pub(super) fn drop_queued(
        &mut self,
        line: usize,
        position: usize,
        cause: Cause,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) {
        self.with(line, |advised| advised.drop_queued(position, cause, cx, out));
    }

    /// The packets of a line, from head to tail.
    pub(super) fn packets(&self, line: usize) -> impl Iterator<Item = (FlowKey, &P)> {
        let slots = self.pool.links.slots(&self.lines[line].chain);
        slots.map(|slot| (self.pool.metas[slot].flow, &self.pool.rest[slot].0))
    }

    /// Tells a line's policy that it has to drop the packet at its head, if it has one, for want of room.
    pub(super) fn give_way(&mut self, line: usize, cx: &mut Cx<'_>) {
        let One { policy, chain, backlog } = &mut self.lines[line];
        if let Some(slot) = chain.head() {
            let view = self.pool.view(*backlog, self.line_limit);
            policy.gave_way(&self.pool.metas[slot], &view, cx);
        }
    }

    /// The policy of a line.
    #[inline]
    pub(super) fn policy(&self, line: usize) -> &A {
        &self.lines[line].policy
    }

    /// The policies of all lines, in order.
    pub(super) fn policies(&mut self) -> impl Iterator<Item = &mut A> {
        self.lines.iter_mut().map(|one| &mut one.policy)
    }

    /// The link has another rate.
    pub(super) fn rate_changed(&mut self, env: &Env) {
        let limit = if self.line_limit == Limit::UNBOUNDED { env.limit } else { self.line_limit };
        let env = Env { limit, ..*env };
        self.lines.iter_mut().for_each(|line| line.policy.rate_changed(&env));
        self.set_timer();
    }

    /// Whether there is more than the buffer has room for.
    #[inline]
    pub(super) fn excess(&self) -> bool {
        self.pool.backlog.packets > self.limit.max_packets()
            || self.pool.backlog.bytes > self.limit.max_bytes()
    }

    /// The line with the most bytes; the least number of several.
    pub(super) fn longest(&mut self) -> usize {
        self.longest.find(|line| self.lines[line].backlog.bytes)
    }

    /// What is queued in a line.
    #[inline]
    pub(super) fn backlog_of(&self, line: usize) -> Backlog {
        self.lines[line].backlog
    }

    /// The length of the packet at the head of a line.
    #[inline]
    pub(super) fn next_len(&self, line: usize) -> Option<u32> {
        self.lines[line].chain.head().map(|slot| self.pool.metas[slot].len)
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.pool.backlog
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        self.timer
    }

    /// Runs the timers that are due.
    pub(super) fn on_timer(&mut self, cx: &mut Cx<'_>) {
        if self.timer.is_none_or(|at| cx.now < at) {
            return;
        }
        for one in &mut self.lines {
            let view = self.pool.view(one.backlog, self.line_limit);
            one.policy.on_timer(&view, cx);
        }
        self.set_timer();
    }

    fn set_timer(&mut self) {
        self.timer = self.lines.iter().filter_map(|one| one.policy.poll_at()).min();
    }

    /// Reports lines with packets, and the bytes in the longest.
    pub(super) fn observe(&self, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("queues", f64::from(self.pool.busy));
        sink("longest", self.longest.length(|line| self.lines[line].backlog.bytes) as f64);
    }

    /// What is remembered, where the discipline itself takes `per_line` bytes a line besides.
    pub(super) fn state(&self, per_line: u64) -> State {
        State {
            queue: size_of::<Self>() as u64,
            per_flow: size_of::<One<A>>() as u64 + per_line,
            flows: self.lines.len() as u64,
            per_packet: size_of::<A::Tag>() as u64 + Links::BYTES + 4,
        }
    }

    /// Does something with a line that may change its length.
    #[inline]
    fn with<R>(
        &mut self,
        line: usize,
        f: impl FnOnce(&mut Advised<'_, A, Place<'_, P, A::Tag>>) -> R,
    ) -> R {
        let One { policy, chain, backlog } = &mut self.lines[line];
        let place = &mut Place { pool: &mut self.pool, chain, backlog, limit: self.line_limit };
        self.longest.changed(line);
        f(&mut Advised { policy, line: place, counters: &mut self.counters })
    }
}

choice! {
    /// What the algorithm of a queue is told to be waiting.
    pub enum Waiting {
        /// What waits in its queue.
        Queue = "queue",
        /// What waits in all queues together.
        All = "all",
    }
}

/// Which end of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The packet that has waited longest.
    Head,
    /// The packet that came last.
    Tail,
}

/// The room that a size gives to a line of a buffer.
pub(super) fn line_limit(
    key: &'static str,
    size: Option<Size>,
    env: &Env,
) -> Result<Option<Limit>, ConfigError> {
    let Some(size) = size else { return Ok(None) };
    let measure = match size {
        Size::Bytes(_) => Measure::Bytes,
        Size::Packets(_) => Measure::Packets,
        Size::OfBuffer(_) | Size::Bdp(_) => env.limit.measure(),
    };
    let amount = env.resolve(key, size, measure)? as u64;
    let limit = match measure {
        Measure::Packets => Limit::packets(amount),
        Measure::Bytes => Limit::bytes(amount),
    };
    limit.map(Some).ok_or(ConfigError { key, allowed: "room for a packet at least" })
}

/// The packets of all lines.
#[derive(Clone, Debug)]
struct Pool<P, T> {
    metas: Box<[Meta]>,
    rest: Box<[(P, T)]>,
    links: Links,
    /// Slots, of which the first `unused` hold no packet.
    free: Box<[u32]>,
    unused: usize,
    backlog: Backlog,
    /// Lines with packets.
    busy: u32,
    /// Whether a policy is shown the backlog of all lines, in place of its own, but at arrivals.
    shows_all: bool,
}

impl<P: Copy + Default, T: Copy + Default> Pool<P, T> {
    fn new(slots: usize, shown: Waiting) -> Self {
        Self {
            metas: vec![Meta::default(); slots].into(),
            rest: vec![<(P, T)>::default(); slots].into(),
            links: Links::new(slots),
            free: (0..slots as u32).collect(),
            unused: slots,
            backlog: Backlog::default(),
            busy: 0,
            shows_all: shown == Waiting::All,
        }
    }

    /// What the policy of a line is shown that has `own` and room for `limit`.
    #[inline(always)]
    fn view(&self, own: Backlog, limit: Limit) -> View<'_> {
        let backlog = if self.shows_all { self.backlog } else { own };
        View { backlog, limit, ring: &[], head: 0 }
    }
}

/// One line's place in the pool.
struct Place<'a, P, T> {
    pool: &'a mut Pool<P, T>,
    chain: &'a mut Chain,
    backlog: &'a mut Backlog,
    limit: Limit,
}

impl<P: Copy + Default, T: Copy + Default> Line<P, T> for Place<'_, P, T> {
    #[inline]
    fn view(&self) -> View<'_> {
        View { backlog: *self.backlog, limit: self.limit, ring: &[], head: 0 }
    }

    #[inline]
    fn left_behind(&self) -> View<'_> {
        self.pool.view(*self.backlog, self.limit)
    }

    fn head(&mut self) -> Option<(&mut Meta, &P)> {
        self.chain.head().map(|slot| (&mut self.pool.metas[slot], &self.pool.rest[slot].0))
    }

    #[inline(always)]
    fn push(&mut self, meta: Meta, packet: P, tag: T) {
        let pool = &mut *self.pool;
        pool.unused -= 1;
        let slot = pool.free[pool.unused] as usize;
        pool.links.append(self.chain, slot);
        pool.metas[slot] = meta;
        pool.rest[slot] = (packet, tag);
        pool.busy += u32::from(self.backlog.packets == 0);
        pool.backlog.add(meta.len);
        self.backlog.add(meta.len);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(Meta, P, T)> {
        self.chain.head().map(|slot| self.remove(slot))
    }

    fn remove(&mut self, position: usize) -> Option<(Meta, P, T)> {
        let len = self.backlog.packets as usize;
        (position < len).then(|| self.remove(self.pool.links.at(self.chain, position, len)))
    }
}

impl<P: Copy + Default, T: Copy + Default> Place<'_, P, T> {
    #[inline(always)]
    fn remove(&mut self, slot: usize) -> (Meta, P, T) {
        let pool = &mut *self.pool;
        pool.links.remove(self.chain, slot);
        pool.free[pool.unused] = slot as u32;
        pool.unused += 1;
        let (meta, (packet, tag)) = (pool.metas[slot], pool.rest[slot]);
        pool.backlog.remove(meta.len);
        self.backlog.remove(meta.len);
        pool.busy -= u32::from(self.backlog.packets == 0);
        (meta, packet, tag)
    }
}
