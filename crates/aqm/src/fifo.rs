//! The one FIFO: a ring of packets with limits, accounting, marking and victims, advised by a
//! [`Policy`].

use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::packet::Meta;
use crate::param::ConfigError;
use crate::policy::{Arrival, Departure, Exit, Policy, Victim};
use crate::qdisc::{Counters, Discipline, Outlet, Qdisc, idle_rng};
use crate::ring::{Line, Ring};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::Limit;

/// A first-in first-out queue advised by `A`, of packets with payload `P`.
///
/// All memory is taken at construction, for the most packets that [`Limit`] allows.
#[derive(Clone, Debug)]
pub struct Fifo<A: Policy, P> {
    policy: A,
    ring: Ring<P, A::Tag>,
    counters: Counters,
}

impl<A: Policy, P: Copy + Default> Fifo<A, P> {
    /// An empty queue with a policy that is there already.
    pub fn advised_by(policy: A, limit: Limit) -> Self {
        Self { policy, ring: Ring::new(limit), counters: Counters::default() }
    }

    /// The policy, to look at its state.
    pub fn policy(&self) -> &A {
        &self.policy
    }

    #[inline]
    fn advised(&mut self) -> Advised<'_, A, Ring<P, A::Tag>> {
        Advised { policy: &mut self.policy, line: &mut self.ring, counters: &mut self.counters }
    }
}

impl<A: Policy, P: Copy + Default> Discipline<P> for Fifo<A, P> {
    type Config = A::Config;

    fn new(config: &A::Config, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        A::new(config, env, rng).map(|policy| Self::advised_by(policy, env.limit))
    }

    fn fits(config: &A::Config, env: &Env) -> Result<(), ConfigError> {
        A::fits(config, env)
    }

    fn retune(&mut self, config: &A::Config, env: &Env) -> Result<(), ConfigError> {
        let mut config = config.clone();
        A::going_on(&mut config);
        let with = A::new(&config, env, &mut idle_rng())?;
        self.policy.retune(with, env.now);
        Ok(())
    }
}

impl<A: Policy, P: Copy + Default> Qdisc<P> for Fifo<A, P> {
    #[inline(always)]
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.advised().enqueue(meta, packet, cx, out);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        self.advised().dequeue(cx, out)
    }

    fn backlog(&self) -> Backlog {
        self.ring.backlog
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn congested(&self, now: Instant) -> bool {
        self.policy.congested(&self.ring.view(), now)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.policy.poll_at()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, _: &mut impl Outlet<P>) {
        self.policy.on_timer(&self.ring.view(), cx);
    }

    fn rate_changed(&mut self, env: &Env) {
        self.policy.rate_changed(env);
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.policy.observe(now, sink);
    }

    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.policy.observe_flow(packet, now, sink);
    }

    fn state(&self) -> State {
        State { per_packet: size_of::<A::Tag>() as u64, ..self.policy.state() }
    }
}

/// A line and the policy that advises it: carries out decisions and counts them.
pub(crate) struct Advised<'a, A, L> {
    pub(crate) policy: &'a mut A,
    pub(crate) line: &'a mut L,
    pub(crate) counters: &'a mut Counters,
}

impl<A: Policy, L> Advised<'_, A, L> {
    #[inline(always)]
    pub(crate) fn enqueue<P: Copy>(
        &mut self,
        meta: Meta,
        packet: P,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) where
        L: Line<P, A::Tag>,
    {
        // New values in place of changes: a word that is read after a part of it was written makes
        // a processor wait.
        let meta = Meta { arrived: cx.now, ..meta };
        self.counters.arrived.count(meta.len);
        // What is usual first: a jump by the answer's number is longer.
        let mark = match self.policy.on_arrival(&meta, &self.line.view(), cx) {
            Arrival::Admit => None,
            Arrival::Signal(cause) if meta.ecn.capable() => Some(cause),
            answer => match self.carry_out(answer, &meta, cx, out) {
                Ok(mark) => mark,
                Err(cause) => return self.counters.drop(&meta, packet, cause, cx, out),
            },
        };
        if !self.line.view().fits(meta.len) && !self.make_room(&meta, packet, cx, out) {
            return;
        }
        // A packet that is dropped for want of room was not marked.
        let meta = match mark {
            Some(cause) => self.counters.mark(meta, &packet, cause, cx, out),
            None => meta,
        };
        let tag = self.policy.admitted(&meta, cx);
        self.line.push(meta, packet, tag);
    }

    /// The rarer answers to an arrival: why the packet is marked, or dropped.
    #[inline]
    fn carry_out<P>(
        &mut self,
        answer: Arrival,
        meta: &Meta,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Result<Option<Cause>, Cause>
    where
        L: Line<P, A::Tag>,
    {
        match answer {
            Arrival::Admit => Ok(None),
            Arrival::SignalHead(cause) if !self.line.view().is_empty() => {
                self.signal_head(cause, cx, out);
                Ok(None)
            }
            Arrival::SignalHead(cause) if meta.ecn.capable() => Ok(Some(cause)),
            Arrival::Signal(cause) | Arrival::SignalHead(cause) | Arrival::Reject(cause) => {
                Err(cause)
            }
            Arrival::RejectWith(cause) => {
                self.drop_victims(cause, cx, out);
                Err(cause)
            }
        }
    }

    /// Marks the packet at the head of a line that is not empty, or drops it.
    #[inline(never)]
    fn signal_head<P>(&mut self, cause: Cause, cx: &mut Cx<'_>, out: &mut impl Outlet<P>)
    where
        L: Line<P, A::Tag>,
    {
        match self.line.head() {
            Some((head, packet)) if head.ecn.capable() => {
                *head = self.counters.mark(*head, packet, cause, cx, out);
            }
            _ => self.drop_queued(0, cause, cx, out),
        }
    }

    /// Drops the packets that the policy names.
    #[inline(never)]
    fn drop_victims<P>(&mut self, cause: Cause, cx: &mut Cx<'_>, out: &mut impl Outlet<P>)
    where
        L: Line<P, A::Tag>,
    {
        while let Some(position) = self.policy.victim() {
            self.drop_queued(position, cause, cx, out);
        }
    }

    /// Drops what the policy names until a packet fits. If that is the packet itself, it is dropped:
    /// `false`.
    #[inline]
    fn make_room<P: Copy>(
        &mut self,
        meta: &Meta,
        packet: P,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> bool
    where
        L: Line<P, A::Tag>,
    {
        while !self.line.view().fits(meta.len) {
            // No victim makes room for a packet that is longer than the buffer.
            let hopeless = u64::from(meta.len) > self.line.view().limit().max_bytes();
            let victim = match hopeless {
                true => Victim::Arriving,
                false => self.policy.on_overflow(meta, &self.line.view(), cx),
            };
            let position = match victim {
                Victim::Head => 0,
                Victim::At(position) => position,
                Victim::Arriving => usize::MAX,
            };
            if position >= self.line.view().len() {
                self.counters.drop(meta, packet, Cause::Overflow, cx, out);
                return false;
            }
            self.drop_queued(position, Cause::Overflow, cx, out);
        }
        true
    }

    #[inline]
    pub(crate) fn dequeue<P>(
        &mut self,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Option<(Meta, P)>
    where
        L: Line<P, A::Tag>,
    {
        while let Some(head) = self.line.pop() {
            let sent = self.judge(head, cx, out);
            if sent.is_some() {
                return sent;
            }
        }
        self.policy.on_idle(cx);
        None
    }

    /// The packet at the head, which is not there any more, if the policy lets it go; else it was dropped.
    #[inline(always)]
    pub(crate) fn judge<P>(
        &mut self,
        (mut meta, packet, tag): (Meta, P, A::Tag),
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Option<(Meta, P)>
    where
        L: Line<P, A::Tag>,
    {
        let cause = match self.policy.on_departure(&meta, &self.line.left_behind(), cx) {
            Departure::Send => None,
            Departure::Signal(cause) if meta.ecn.capable() => {
                meta = self.counters.mark(meta, &packet, cause, cx, out);
                None
            }
            Departure::Signal(cause) | Departure::Drop(cause) => Some(cause),
        };
        if let Some(cause) = cause {
            self.policy.left(&meta, tag, Exit::Dropped, cx);
            self.counters.drop(&meta, packet, cause, cx, out);
            return None;
        }
        self.policy.left(&meta, tag, Exit::Sent, cx);
        self.counters.departed.count(meta.len);
        Some((meta, packet))
    }

    /// Drops a packet that had been queued.
    #[inline(never)]
    pub(crate) fn drop_queued<P>(
        &mut self,
        position: usize,
        cause: Cause,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) where
        L: Line<P, A::Tag>,
    {
        let victim = self.line.remove(position);
        debug_assert!(victim.is_some(), "no victim at {position}");
        if let Some((meta, packet, tag)) = victim {
            self.policy.left(&meta, tag, Exit::Dropped, cx);
            self.counters.drop(&meta, packet, cause, cx, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowKey};
    use crate::param::params;
    use crate::policy::View;
    use crate::units::Rate;
    use std::{vec, vec::Vec};

    params! {
        /// None.
        pub(super) struct NoConfig {}
    }

    /// A policy that gives prepared answers.
    struct Scripted {
        arrival: Arrival,
        departure: Departure,
        victim: Victim,
        /// From the head towards the tail.
        matches: Vec<usize>,
    }

    impl Policy for Scripted {
        type Config = NoConfig;
        type Tag = ();
        fn new(_: &NoConfig, _: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
            Ok(Self {
                arrival: Arrival::Admit,
                departure: Departure::Send,
                victim: Victim::Arriving,
                matches: Vec::new(),
            })
        }
        fn on_arrival(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Arrival {
            self.arrival
        }
        fn victim(&mut self) -> Option<usize> {
            self.matches.pop()
        }
        fn on_departure(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Departure {
            self.departure
        }
        fn on_overflow(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Victim {
            self.victim
        }
    }

    struct Log(Vec<(u32, Cause)>);

    impl Outlet<u32> for Log {
        fn dropped(&mut self, _: &Meta, packet: u32, cause: Cause, _: Instant) {
            self.0.push((packet, cause));
        }
        fn marked(&mut self, _: &Meta, _: &u32, _: Cause, _: Instant) {}
    }

    struct Bench {
        q: Fifo<Scripted, u32>,
        rng: Rng,
        log: Log,
        next: u32,
    }

    impl Bench {
        fn new(limit: Limit) -> Self {
            let mut rng = Rng::new(1, 0);
            let env = Env::new(limit, Rate::from_mbit(10));
            let q = Fifo::new(&NoConfig {}, &env, &mut rng).unwrap();
            Self { q, rng, log: Log(Vec::new()), next: 0 }
        }

        fn arrive(&mut self, len: u32, ecn: Ecn) {
            let meta = Meta { len, ecn, flow: FlowKey(7), arrived: Instant::ZERO };
            let mut cx = Cx { now: Instant::ZERO, rng: &mut self.rng };
            self.q.enqueue(meta, self.next, &mut cx, &mut self.log);
            self.next += 1;
        }

        fn depart(&mut self) -> Option<(u32, Ecn)> {
            let mut cx = Cx { now: Instant::ZERO, rng: &mut self.rng };
            self.q.dequeue(&mut cx, &mut self.log).map(|(meta, packet)| (packet, meta.ecn))
        }
    }

    fn packets(n: u64) -> Limit {
        Limit::packets(n).unwrap()
    }

    #[test]
    fn order_is_kept_across_the_ring_s_end() {
        let mut b = Bench::new(packets(3));
        for round in 0..5 {
            b.arrive(100, Ecn::NotEct);
            b.arrive(100, Ecn::NotEct);
            assert_eq!(b.depart().unwrap().0, 2 * round);
            assert_eq!(b.depart().unwrap().0, 2 * round + 1);
            assert_eq!(b.depart(), None);
        }
    }

    #[test]
    fn each_victim_leaves_and_the_rest_keep_their_order() {
        for (victim, gone, left) in [
            (Victim::Arriving, 3, [0, 1, 2]),
            (Victim::Head, 0, [1, 2, 3]),
            (Victim::At(1), 1, [0, 2, 3]),
            (Victim::At(2), 2, [0, 1, 3]),
        ] {
            let mut b = Bench::new(packets(3));
            b.q.policy.victim = victim;
            (0..4).for_each(|_| b.arrive(100, Ecn::NotEct));
            assert_eq!(b.log.0, [(gone, Cause::Overflow)]);
            let order: Vec<u32> = (0..3).map(|_| b.depart().unwrap().0).collect();
            assert_eq!(order, left, "{victim:?}");
        }
    }

    #[test]
    fn a_large_packet_pushes_out_as_many_as_it_needs() {
        let mut b = Bench::new(Limit::bytes(1000).unwrap());
        b.q.policy.victim = Victim::Head;
        (0..4).for_each(|_| b.arrive(250, Ecn::NotEct));
        b.arrive(600, Ecn::NotEct);
        assert_eq!(b.q.backlog(), Backlog { packets: 2, bytes: 850 });
        assert_eq!(b.log.0.len(), 3);
    }

    #[test]
    fn a_packet_longer_than_the_buffer_pushes_nobody_out() {
        let mut b = Bench::new(Limit::bytes(1000).unwrap());
        b.q.policy.victim = Victim::Head;
        b.arrive(250, Ecn::NotEct);
        b.arrive(1001, Ecn::Ect0);
        assert_eq!(b.log.0, [(1, Cause::Overflow)]);
        assert_eq!(b.q.backlog(), Backlog { packets: 1, bytes: 250 });
    }

    #[test]
    fn a_signal_marks_only_what_can_be_marked() {
        let mut b = Bench::new(packets(2));
        b.q.policy.arrival = Arrival::Signal(Cause::Early);
        b.arrive(100, Ecn::NotEct);
        assert_eq!(b.log.0, [(0, Cause::Early)]);
        b.arrive(100, Ecn::Ect0);
        assert_eq!(b.depart(), Some((1, Ecn::Ce)));
    }

    #[test]
    fn a_packet_without_room_is_dropped_not_marked() {
        let mut b = Bench::new(packets(1));
        b.q.policy.arrival = Arrival::Signal(Cause::Early);
        b.arrive(100, Ecn::Ect0);
        b.arrive(100, Ecn::Ect0);
        let c = b.q.counters();
        assert_eq!((c.all_marked().packets, c.all_dropped().packets), (1, 1));
    }

    #[test]
    fn a_signal_at_the_head_spares_the_arriving_packet() {
        let mut b = Bench::new(packets(3));
        b.arrive(100, Ecn::NotEct);
        b.arrive(100, Ecn::Ect0);
        b.q.policy.arrival = Arrival::SignalHead(Cause::Early);
        b.arrive(100, Ecn::NotEct);
        assert_eq!(b.log.0, [(0, Cause::Early)]);
        b.arrive(100, Ecn::NotEct);
        assert_eq!(b.depart(), Some((1, Ecn::Ce)));
        assert_eq!(b.depart(), Some((2, Ecn::NotEct)));
    }

    #[test]
    fn decisions_at_departure_mark_or_go_on_to_the_next() {
        let mut b = Bench::new(packets(3));
        b.arrive(100, Ecn::NotEct);
        b.arrive(100, Ecn::Ect0);
        b.q.policy.departure = Departure::Signal(Cause::Early);
        assert_eq!(b.depart(), Some((1, Ecn::Ce)));
        b.arrive(100, Ecn::Ect0);
        b.q.policy.departure = Departure::Drop(Cause::Early);
        assert_eq!(b.depart(), None);
        assert_eq!(b.log.0, [(0, Cause::Early), (2, Cause::Early)]);
    }

    #[test]
    fn a_packet_goes_with_its_matches() {
        for (matches, gone, left) in [
            (vec![], vec![], vec![0, 1, 2, 3]),
            (vec![1], vec![1], vec![0, 2, 3]),
            (vec![0, 1, 3], vec![3, 1, 0], vec![2]),
        ] {
            let mut b = Bench::new(packets(4));
            (0..4).for_each(|_| b.arrive(100, Ecn::NotEct));
            b.q.policy.arrival = Arrival::RejectWith(Cause::Penalty);
            b.q.policy.matches = matches;
            b.arrive(100, Ecn::Ect0);
            let dropped = gone.into_iter().chain([4]).map(|id| (id, Cause::Penalty));
            assert_eq!(b.log.0, dropped.collect::<Vec<_>>());
            let order: Vec<u32> = core::iter::from_fn(|| b.depart().map(|(id, _)| id)).collect();
            assert_eq!(order, left);
        }
    }
}
