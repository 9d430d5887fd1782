//! Many first-in first-out lines in one pool of packets. Each is a queue as
//! [`Fifo`](crate::Fifo) is, with a policy of its own; they share the buffer and the books.

use alloc::boxed::Box;
use alloc::vec;

use super::links::{Chain, Links};
use super::longest::Longest;
use super::{Overflow, Plan};
use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::fifo::Advised;
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, choice};
use crate::policy::{Policy, View};
use crate::qdisc::{Counters, Outlet};
use crate::ring::Line;
use crate::time::Instant;
use crate::units::{Limit, Measure, Size};

/// What the longest line has most of.
pub trait Length: Copy {
    /// The length of a line.
    fn of(self, backlog: Backlog) -> u64;
}

/// Bytes, so that nobody asks.
#[derive(Clone, Copy, Debug)]
pub struct ByBytes;

impl Length for ByBytes {
    #[inline]
    fn of(self, backlog: Backlog) -> u64 {
        backlog.bytes
    }
}

/// Bytes or packets.
impl Length for Measure {
    #[inline]
    fn of(self, backlog: Backlog) -> u64 {
        match self {
            Self::Packets => u64::from(backlog.packets),
            Self::Bytes => backlog.bytes,
        }
    }
}

/// The lines.
#[derive(Clone, Debug)]
pub(super) struct Lines<A: Policy, P, L = ByBytes> {
    lines: Box<[One<A>]>,
    pool: Pool<P, A::Tag>,
    /// Beyond this the longest line has to give way. There is none if arriving packets give way: then each
    /// has to fit.
    limit: Limit,
    /// The room of one line.
    line_limit: Limit,
    /// The room of all lines together.
    room: Limit,
    longest: Longest,
    longest_by: L,
    counters: Counters,
    /// When the first of the policies wants its timer.
    timer: Option<Instant>,
    /// A bit for each line whose timer is not passed over, where policies come to rest. The first always is
    /// such a line: it tells when timers are due.
    awake: Box<[u64]>,
}

#[derive(Clone, Debug)]
struct One<A> {
    policy: A,
    chain: Chain,
    backlog: Backlog,
}

impl<A: Policy> One<A> {
    fn on_timer<P: Copy + Default>(
        &mut self,
        pool: &Pool<P, A::Tag>,
        limit: Limit,
        cx: &mut Cx<'_>,
    ) {
        self.policy.on_timer(&pool.view(self.backlog, limit), cx);
    }
}

impl<A: Policy, P: Copy + Default, L: Length> Lines<A, P, L> {
    /// Empty lines; `policy` makes the policy of each for the environment that it will have.
    pub(super) fn new(
        plan: &Plan,
        env: &Env,
        longest_by: L,
        mut policy: impl FnMut(&Env) -> Result<A, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let env = &Env { limit: env.limit.within(plan.memory), ..*env };
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
            limit: match plan.overflow {
                Overflow::Longest => env.limit,
                Overflow::Arriving => Limit::NONE,
            },
            room: env.limit,
            line_limit: plan.queue_limit.unwrap_or(Limit::UNBOUNDED),
            longest: Longest::new(plan.queues),
            longest_by,
            counters: Counters::default(),
            timer: None,
            awake: vec![u64::MAX; if A::RESTS { plan.queues.div_ceil(64) } else { 0 }].into(),
        };
        new.timer = new.lines.iter().filter_map(|one| one.policy.poll_at()).min();
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
        let len = u64::from(meta.len);
        if len > self.limit.max_bytes() {
            // Nobody makes room for what is longer than the buffer, nor for any where arriving packets
            // give way.
            let waiting = self.pool.backlog;
            if waiting.packets >= self.room.max_packets()
                || waiting.bytes + len > self.room.max_bytes()
            {
                self.counters.arrived.count(meta.len);
                if self.limit == Limit::NONE {
                    let One { policy, backlog, .. } = &mut self.lines[line];
                    policy.on_overflow(&meta, &self.pool.view(*backlog, self.line_limit), cx);
                }
                return self.counters.drop(&meta, packet, Cause::Overflow, cx, out);
            }
        }
        if A::RESTS {
            self.wake(line);
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
        if !self.has_packets(line) {
            self.idle(line, cx);
            return None;
        }
        self.with(line, |advised| advised.dequeue(cx, out))
    }

    /// The length of the packet at the head of a line that has some, in bytes, and the packet, if its policy
    /// lets it go; else it was dropped.
    pub(super) fn judge_head(
        &mut self,
        line: usize,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Option<(u32, Option<(Meta, P)>)> {
        self.with(line, |advised| {
            let head = advised.line.pop()?;
            Some((head.0.len, advised.judge(head, cx, out)))
        })
    }

    /// It was the turn of a line without packets.
    #[inline]
    pub(super) fn idle(&mut self, line: usize, cx: &mut Cx<'_>) {
        let policy = &mut self.lines[line].policy;
        if self.pool.stale && self.pool.backlog.packets > 0 {
            policy.on_turn(cx);
        } else {
            policy.on_idle(cx);
        }
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
        let slots = self.pool.packets.slots(&self.lines[line].chain);
        slots.map(|slot| {
            let (meta, packet, _) = &self.pool.packets[slot];
            (meta.flow, packet)
        })
    }

    /// Tells a line's policy that it has to drop the packet at its head, if it has one, for want of room.
    pub(super) fn give_way(&mut self, line: usize, cx: &mut Cx<'_>) {
        let One { policy, chain, backlog } = &mut self.lines[line];
        if let Some(slot) = chain.head() {
            let view = self.pool.view(*backlog, self.line_limit);
            policy.gave_way(&self.pool.packets[slot].0, &view, cx);
        }
    }

    /// The policy of a line.
    #[inline]
    pub(super) fn policy(&self, line: usize) -> &A {
        &self.lines[line].policy
    }

    /// The policy of a line, mutably.
    pub(super) fn policy_mut(&mut self, line: usize) -> &mut A {
        &mut self.lines[line].policy
    }

    /// The policies of all lines, in order.
    pub(super) fn policies(&mut self) -> impl Iterator<Item = &mut A> {
        self.lines.iter_mut().map(|one| &mut one.policy)
    }

    /// The policy of each line goes on as one that `policy` makes, with the line's room in its environment.
    pub(super) fn retune(
        &mut self,
        env: &Env,
        mut policy: impl FnMut(&Env) -> Result<A, ConfigError>,
    ) -> Result<(), ConfigError> {
        let env = self.env_of_lines(env);
        policy(&env)?;
        for line in 0..self.lines.len() {
            if A::RESTS {
                self.wake(line); // it may not be at rest under other parameters
            }
            self.lines[line].policy.retune(policy(&env)?, env.now);
        }
        Ok(())
    }

    /// With a line's room.
    fn env_of_lines(&self, env: &Env) -> Env {
        let limit = if self.line_limit == Limit::UNBOUNDED { env.limit } else { self.line_limit };
        Env { limit, ..*env }
    }

    /// The link has another rate.
    pub(super) fn rate_changed(&mut self, env: &Env) {
        let env = self.env_of_lines(env);
        self.lines.iter_mut().for_each(|line| line.policy.rate_changed(&env));
        self.set_timer();
    }

    /// Whether there is more than the buffer has room for.
    #[inline]
    pub(super) fn excess(&self) -> bool {
        self.pool.backlog.packets > self.limit.max_packets()
            || self.pool.backlog.bytes > self.limit.max_bytes()
    }

    /// The line that has most of what counts; the least number of several.
    pub(super) fn longest(&mut self) -> usize {
        self.longest.find(|line| self.longest_by.of(self.lines[line].backlog))
    }

    /// What is queued in a line.
    #[inline]
    pub(super) fn backlog_of(&self, line: usize) -> Backlog {
        self.lines[line].backlog
    }

    /// Whether anything is queued in a line.
    #[inline]
    pub(super) fn has_packets(&self, line: usize) -> bool {
        self.lines[line].backlog.packets > 0
    }

    /// The length of the packet at the head of a line.
    #[inline]
    pub(super) fn next_len(&self, line: usize) -> Option<u32> {
        self.lines[line].chain.head().map(|slot| self.pool.packets[slot].0.len)
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
        match A::RESTS {
            true => self.run_awake(cx),
            false => {
                self.lines.iter_mut().for_each(|one| one.on_timer(&self.pool, self.line_limit, cx))
            }
        }
        self.set_timer();
    }

    /// Runs the timers of the lines that are awake. Those that are at rest are passed over from now on.
    fn run_awake(&mut self, cx: &mut Cx<'_>) {
        for (of_word, word) in self.awake.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let line = 64 * of_word + left.trailing_zeros() as usize;
                left &= left - 1;
                let Some(one) = self.lines.get_mut(line) else { break };
                // What waits elsewhere is no business of a line at rest.
                let empty = one.backlog.packets == 0 && !self.pool.shows_all;
                if empty && line > 0 && one.policy.rests() {
                    *word &= !(1 << (line % 64));
                } else {
                    one.on_timer(&self.pool, self.line_limit, cx);
                }
            }
        }
    }

    #[inline]
    fn wake(&mut self, line: usize) {
        let (word, bit) = (&mut self.awake[line / 64], 1 << (line % 64));
        if *word & bit == 0 {
            *word |= bit;
            if let Some(timer) = self.timer {
                self.lines[line].policy.wake(timer);
            }
        }
    }

    fn set_timer(&mut self) {
        let all = if A::RESTS { 1 } else { self.lines.len() };
        self.timer = self.lines[..all].iter().filter_map(|one| one.policy.poll_at()).min();
    }

    /// Reports lines with packets, and the bytes in the longest.
    pub(super) fn observe(&self, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("queues", f64::from(self.pool.busy));
        let longest = self.lines.iter().map(|line| line.backlog.bytes).max().unwrap_or(0);
        sink("longest", longest as f64);
    }

    /// What is remembered, where the discipline itself takes `per_line` bytes a line besides.
    pub(super) fn state(&self, per_line: u64) -> State {
        State {
            queue: size_of::<Self>() as u64,
            per_flow: size_of::<One<A>>() as u64 + self.longest.bytes_per_queue() + per_line,
            flows: self.lines.len() as u64,
            per_packet: size_of::<A::Tag>() as u64 + Links::<()>::BYTES,
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
        let done = f(&mut Advised { policy, line: place, counters: &mut self.counters });
        self.longest.changed(line, || self.longest_by.of(*backlog));
        done
    }
}

choice! {
    /// What the algorithm of a queue takes for waiting.
    pub enum Waiting {
        /// What waits in its queue.
        Queue = "queue",
        /// What waits in all queues together.
        All = "all",
        /// That, and a queue that runs empty while others wait keeps the time by which it has been above
        /// target too long: its next packet may be signalled without having waited for an interval.
        AllStale = "all-stale",
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
    limit.map(Some).ok_or(ConfigError { key, allowed: "room for a packet at least".into() })
}

/// The packets of all lines.
#[derive(Clone, Debug)]
struct Pool<P, T> {
    packets: Links<(Meta, P, T)>,
    /// How many slots there may be.
    most: usize,
    /// Slots that held a packet and hold none.
    free: Chain,
    backlog: Backlog,
    /// Lines with packets.
    busy: u32,
    /// Whether a policy is shown the backlog of all lines, in place of its own, but at arrivals.
    shows_all: bool,
    /// Whether a policy without packets is not idle as long as other lines have some.
    stale: bool,
}

impl<P: Copy + Default, T: Copy + Default> Pool<P, T> {
    fn new(slots: usize, shown: Waiting) -> Self {
        Self {
            packets: Links::with_room(slots),
            most: slots,
            free: Chain::EMPTY,
            backlog: Backlog::default(),
            busy: 0,
            shows_all: shown != Waiting::Queue,
            stale: shown == Waiting::AllStale,
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
        let (meta, packet, _) = &mut self.pool.packets[self.chain.head()?];
        Some((meta, packet))
    }

    #[inline(always)]
    fn push(&mut self, meta: Meta, packet: P, tag: T) {
        let pool = &mut *self.pool;
        let slot = if let Some(slot) = pool.free.head() {
            pool.packets.pop(&mut pool.free);
            slot
        } else {
            let Some(slot) = pool.packets.fresh(pool.most) else {
                return debug_assert!(false, "no room");
            };
            slot
        };
        pool.packets[slot] = (meta, packet, tag);
        pool.packets.append(self.chain, slot);
        pool.busy += u32::from(self.backlog.packets == 0);
        pool.backlog.add(meta.len);
        self.backlog.add(meta.len);
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(Meta, P, T)> {
        let slot = self.chain.head()?;
        self.pool.packets.pop(self.chain);
        Some(self.free(slot))
    }

    fn remove(&mut self, position: usize) -> Option<(Meta, P, T)> {
        if position == 0 {
            return self.pop();
        }
        let len = self.backlog.packets as usize;
        (position < len).then(|| {
            let slot = self.pool.packets.at(self.chain, position, len);
            self.pool.packets.remove(self.chain, slot);
            self.free(slot)
        })
    }
}

impl<P: Copy + Default, T: Copy + Default> Place<'_, P, T> {
    /// The packet in a slot that was taken out of the line.
    #[inline(always)]
    fn free(&mut self, slot: usize) -> (Meta, P, T) {
        let pool = &mut *self.pool;
        pool.packets.stack(&mut pool.free, slot);
        let packet = pool.packets[slot];
        let len = packet.0.len;
        pool.backlog.remove(len);
        self.backlog.remove(len);
        pool.busy -= u32::from(self.backlog.packets == 0);
        packet
    }
}
