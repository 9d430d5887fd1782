//! Serves a queue: a transmitter asks it for packets, and the books note each event.
//!
//! Departures and timers need no event of their own: they are made up for at the next look at the queue (an
//! arrival, a sample, a late caller), each at its exact time and in order, so a queue sees the same calls as
//! if each were an event. At equal times departures come before timers, and both before arrivals.

use aqm::{Aggregate, Cause, Counters, Cx, Instant, Meta, Outlet, Qdisc, Rng};

use crate::NEVER;
use crate::hash::DecisionHash;
use crate::stats::{QueueStats, QueueSummary};
use crate::varying::FAR;

/// What is written down of a packet beside what its queue knows of it.
pub trait Item: Copy {
    /// The number of its flow.
    fn flow(&self, meta: &Meta) -> u32;
    /// Its own number.
    fn seq(&self) -> u32;
}

/// Where packets go that the transmitter takes.
pub trait Exit<P> {
    /// The transmitter takes a packet at `now` (ns), with what its queue made of it. Returns when it
    /// is free again.
    fn send(&mut self, now: u64, meta: &Meta, packet: &mut P) -> u64;
}

/// Serves a queue and keeps its books. `L` also hears of each drop and mark.
#[derive(Clone)]
pub struct Server<L = ()> {
    rng: Rng,
    /// When the transmitter asks next, ns: when it is free, or its queue lets a packet go; [`NEVER`] while it
    /// has nothing to send.
    free_at: u64,
    /// Whether the queue has timers at all.
    timed: bool,
    books: Books<L>,
}

/// What is written down of a queue.
#[derive(Clone)]
struct Books<L> {
    stats: QueueStats,
    /// Over all its decisions.
    hash: DecisionHash,
    log: L,
}

impl<P: Item, L: Outlet<P>> Outlet<P> for Books<L> {
    #[inline(never)]
    fn dropped(&mut self, meta: &Meta, packet: P, cause: Cause, now: Instant) {
        let flow = packet.flow(meta);
        self.hash.drop(now.as_nanos(), flow, packet.seq(), cause);
        self.stats.drop(flow, meta.len, cause);
        self.log.dropped(meta, packet, cause, now);
    }

    #[inline(never)]
    fn marked(&mut self, meta: &Meta, packet: &P, cause: Cause, now: Instant) {
        let flow = packet.flow(meta);
        self.hash.mark(now.as_nanos(), flow, cause);
        self.stats.mark(flow);
        self.log.marked(meta, packet, cause, now);
    }
}

impl<L> Server<L> {
    /// Serves an empty queue from time 0 on, which draws from `rng` and has timers if it is `timed`. There is
    /// a row of counts for each of `flows` flows; `log` hears of drops and marks.
    pub fn new(rng: Rng, timed: bool, flows: usize, log: L) -> Self {
        let books = Books { stats: QueueStats::new(flows), hash: DecisionHash::default(), log };
        Self { rng, free_at: NEVER, timed, books }
    }

    /// As [`QueueStats::reserve`].
    #[must_use]
    pub fn reserved(mut self) -> Self {
        self.books.stats.reserve();
        self
    }

    /// A packet arrives.
    #[inline(always)]
    pub fn arrive<P: Item>(&mut self, queue: &mut impl Qdisc<P>, meta: Meta, packet: P)
    where
        L: Outlet<P>,
    {
        self.books.stats.arrival(packet.flow(&meta), meta.len);
        let mut cx = Cx { now: meta.arrived, rng: &mut self.rng };
        let now = meta.arrived.as_nanos();
        queue.enqueue(meta, packet, &mut cx, &mut self.books);
        let backlog = queue.backlog();
        self.books.stats.change(now, backlog);
        if self.books.stats.is_idle() && backlog.packets > 0 {
            self.free_at = now;
        }
    }

    /// Does everything that is due up to and including `now` (ns).
    #[inline(always)]
    pub fn serve<P: Item>(&mut self, queue: &mut impl Qdisc<P>, now: u64, exit: &mut impl Exit<P>)
    where
        L: Outlet<P>,
    {
        if self.timed {
            self.serve_with_timers(queue, now, exit);
        }
        while self.free_at <= now {
            self.send_next(queue, exit);
        }
    }

    /// Serves a queue that has timers up to and including `now` (ns).
    #[inline(never)]
    fn serve_with_timers<P: Item>(
        &mut self,
        queue: &mut impl Qdisc<P>,
        now: u64,
        exit: &mut impl Exit<P>,
    ) where
        L: Outlet<P>,
    {
        while self.due(queue) <= now {
            self.step(queue, exit);
        }
    }

    /// When something is due, ns: a departure, or one of the queue's timers.
    #[inline]
    pub fn due<P: Item>(&self, queue: &impl Qdisc<P>) -> u64 {
        self.free_at.min(queue.poll_at().map_or(NEVER, Instant::as_nanos))
    }

    /// Does what is due first.
    #[inline]
    pub fn step<P: Item>(&mut self, queue: &mut impl Qdisc<P>, exit: &mut impl Exit<P>)
    where
        L: Outlet<P>,
    {
        let timer = queue.poll_at().map_or(NEVER, Instant::as_nanos);
        if self.free_at <= timer {
            self.send_next(queue, exit);
        } else {
            let mut cx = Cx { now: Instant::from_nanos(timer), rng: &mut self.rng };
            queue.on_timer(&mut cx, &mut self.books);
            self.books.stats.change(timer, queue.backlog());
        }
    }

    /// The transmitter is free: asks the queue for a packet and sends it.
    #[inline(never)]
    fn send_next<P: Item>(&mut self, queue: &mut impl Qdisc<P>, exit: &mut impl Exit<P>)
    where
        L: Outlet<P>,
    {
        let now = self.free_at;
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut self.rng };
        let mut next = queue.dequeue(&mut cx, &mut self.books);
        let Books { stats, hash, .. } = &mut self.books;
        if let Some((meta, packet)) = &mut next {
            let flow = packet.flow(meta);
            stats.busy(now);
            stats.departure(now, meta.arrived.as_nanos(), flow, meta.len);
            hash.departure(now, flow, packet.seq());
            self.free_at = match queue.aggregate() {
                None => exit.send(now, meta, packet),
                Some(Aggregate { until, more }) => {
                    // All its packets come out of the transmitter when it ends.
                    let free_at = exit.send(until.as_nanos(), meta, packet);
                    if more { now } else { free_at }
                }
            };
        } else {
            stats.idle(now);
            self.free_at = queue.ready_at().map_or(NEVER, |at| at.as_nanos().max(now + 1));
        }
        stats.change(now, queue.backlog());
    }

    /// When the transmitter asks for a packet next, ns; [`NEVER`] while there is none.
    #[inline]
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// From `now` (ns) on another one uses the transmitter, until [`Server::free_from`] says how long.
    pub fn hold(&mut self, now: u64) {
        self.books.stats.busy(now);
        self.free_at = FAR;
    }

    /// What is being sent takes until `at` (ns), since the transmitter has changed.
    pub fn free_from(&mut self, at: u64) {
        self.free_at = at;
    }

    /// When the next packet is sent if none arrives meanwhile, ns.
    #[inline]
    pub fn next_departure(&self) -> u64 {
        if self.books.stats.backlog().packets > 0 { self.free_at } else { NEVER }
    }

    /// The queue draws from `rng` from now on. Returns what it drew from before.
    pub fn draw_from(&mut self, rng: Rng) -> Rng {
        std::mem::replace(&mut self.rng, rng)
    }

    /// The hash over all decisions of the queue.
    pub fn decision_hash(&self) -> DecisionHash {
        self.books.hash
    }

    /// The statistics, up to the last change.
    #[inline]
    pub fn stats(&self) -> &QueueStats {
        &self.books.stats
    }

    /// Counts by group, too; `of` gives the group of each flow. Only before the first packet.
    pub fn count_groups(&mut self, of: Vec<u16>) {
        self.books.stats.count_groups(of);
    }

    /// Measures the delays of each of `flows` flows, too. Only before the first packet.
    pub fn measure_delays(&mut self, flows: usize) {
        self.books.stats.measure_delays(flows);
    }

    /// The log of drops and marks.
    #[inline]
    pub fn log(&self) -> &L {
        &self.books.log
    }

    /// The log of drops and marks, mutably.
    #[inline]
    pub fn log_mut(&mut self) -> &mut L {
        &mut self.books.log
    }

    /// Begins a new window of measurement at `now` (ns), with what the queue counted until then.
    pub fn restart_measurement(&mut self, now: u64, counters: &Counters) {
        self.books.stats.restart(now, counters);
    }

    /// The summary of the window that ends at `now` (ns), up to which everything was done.
    pub fn summary(&self, now: u64, counters: &Counters) -> QueueSummary {
        self.books.stats.summary(now, counters)
    }
}

#[cfg(test)]
mod tests {
    use aqm::filter::Prefilter;
    use aqm::filter::red_pd::RedPd;
    use aqm::policy::{blue::Blue, codel::Codel, drop_tail::DropTail, pie::Pie, red::Red};
    use aqm::shaper::{Shaped, ShaperConfig};
    use aqm::{Discipline, Duration, Ecn, Env, Fifo, FlowKey, Limit, Rate, Size};

    use super::*;
    use crate::transmitter::Transmitter;

    const MS: u64 = 1_000_000;

    #[derive(Clone, Copy, Default, Debug)]
    struct Numbered(u32);

    impl aqm::Carried for Numbered {}

    impl Item for Numbered {
        fn flow(&self, meta: &Meta) -> u32 {
            meta.flow.0 as u32
        }
        fn seq(&self) -> u32 {
            self.0
        }
    }

    /// A wire that notes when each packet comes out.
    struct Wire(Transmitter, Vec<(u64, u32)>);

    impl Exit<Numbered> for Wire {
        fn send(&mut self, now: u64, meta: &Meta, packet: &mut Numbered) -> u64 {
            self.1.push((self.0.send(now, meta.len), packet.0));
            self.0.free_at()
        }
    }

    /// The drops and marks that it heard of.
    #[derive(Default)]
    struct Log(Vec<u32>);

    impl Outlet<Numbered> for Log {
        fn dropped(&mut self, _: &Meta, packet: Numbered, _: Cause, _: Instant) {
            self.0.push(packet.0);
        }
        fn marked(&mut self, _: &Meta, _: &Numbered, _: Cause, _: Instant) {}
    }

    /// A queue of one type, because one of any type would have all of them compiled.
    fn link<Q: Discipline<Numbered>>(packets: u64) -> (Q, Server<Log>, Wire) {
        let rate = Rate::from_mbit(8);
        let mut rng = Rng::new(1, 0);
        let limit = Limit::packets(packets).unwrap();
        let env = Env::new(limit, rate);
        let queue = Q::new(&Q::Config::default(), &env, &mut rng).unwrap();
        let server = Server::new(rng, queue.poll_at().is_some(), 1, Log::default());
        (queue, server, Wire(Transmitter::new(rate, Duration::from_millis(5)), Vec::new()))
    }

    fn meta(now: u64) -> Meta {
        let arrived = Instant::from_nanos(now);
        Meta { arrived, flow: FlowKey(0), len: 1000, ecn: Ecn::NotEct }
    }

    #[test]
    fn a_burst_leaves_one_transmission_apart_and_is_written_down() {
        let (mut queue, mut server, mut wire) = link::<Fifo<DropTail, _>>(2);
        for seq in 0..4 {
            server.serve(&mut queue, 0, &mut wire);
            server.arrive(&mut queue, meta(0), Numbered(seq));
            server.serve(&mut queue, 0, &mut wire);
        }
        server.serve(&mut queue, 10 * MS, &mut wire);
        assert_eq!(wire.1, [(6 * MS, 0), (7 * MS, 1), (8 * MS, 2)]);
        assert_eq!(server.log().0, [3], "one in transmission, two queued");
        assert_eq!(server.free_at(), NEVER);
        let s = server.summary(10 * MS, queue.counters());
        assert_eq!((s.counts.departed.packets, s.counts.all_dropped().packets), (3, 1));
        // 2 packets for 1 ms and 1 for 1 ms, of 10 ms.
        assert!((s.mean_packets - 0.3).abs() < 1e-12, "{}", s.mean_packets);
        assert!((s.idle_fraction - 0.7).abs() < 1e-12);
        assert_eq!(server.stats().flow(0).all_dropped(), 1);
    }

    /// 8 Mb/s with a burst of two packets before a wire of 80: the third waits for its tokens, and the
    /// server says when it is sent.
    #[test]
    fn a_queue_that_holds_packets_back_is_asked_when_it_lets_one_go() {
        let env = Env::new(Limit::packets(9).unwrap(), Rate::from_mbit(80));
        let mut rng = Rng::new(1, 0);
        let fifo = Fifo::<DropTail, _>::new(&Default::default(), &env, &mut rng).unwrap();
        let mut config = ShaperConfig::default();
        (config.rate, config.burst) = (Some(Rate::from_mbit(8)), Size::Bytes(2000));
        let mut queue = Shaped::around(fifo, &config, &env).unwrap();
        let mut server = Server::new(rng, false, 1, Log::default());
        let transmitter = Transmitter::new(Rate::from_mbit(80), Duration::from_millis(5));
        let mut wire = Wire(transmitter, Vec::new());
        (0..4).for_each(|seq| server.arrive(&mut queue, meta(0), Numbered(seq)));
        server.serve(&mut queue, 300_000, &mut wire);
        assert_eq!((wire.1.len(), server.next_departure()), (2, MS));
        server.serve(&mut queue, 10 * MS, &mut wire);
        assert_eq!(wire.1[2..], [(6_100_000, 2), (7_100_000, 3)]);
        assert_eq!(server.next_departure(), NEVER);
    }

    /// The second of two packets can be sent when PIE's timer is due.
    #[test]
    fn at_equal_times_departures_come_before_timers() {
        let (mut queue, mut server, mut wire) = link::<Fifo<Pie, _>>(20);
        let timer = queue.poll_at().unwrap().as_nanos();
        (0..2).for_each(|seq| server.arrive(&mut queue, meta(timer - MS), Numbered(seq)));
        server.step(&mut queue, &mut wire);
        assert_eq!((server.free_at(), wire.1.len()), (timer, 1));
        server.step(&mut queue, &mut wire);
        assert_eq!((queue.poll_at().map(Instant::as_nanos), wire.1.len()), (Some(timer), 2));
    }

    /// A look at each instant at which something is due and one late look give the same decisions, with
    /// timers and without.
    #[test]
    fn when_anybody_looks_does_not_matter() {
        looked_at_early_and_late::<Fifo<Pie, _>>(true);
        looked_at_early_and_late::<Fifo<Codel, _>>(true);
        looked_at_early_and_late::<Fifo<Blue, _>>(true);
        looked_at_early_and_late::<Fifo<DropTail, _>>(true);
        looked_at_early_and_late::<Prefilter<RedPd, Fifo<Red, _>>>(false);
    }

    fn looked_at_early_and_late<Q: Discipline<Numbered>>(drops: bool) {
        let run = |late: bool| {
            let (mut queue, mut server, mut wire) = link::<Q>(20);
            for seq in 0..4000u32 {
                // Ten bursts above the rate, with silence between them.
                let now = u64::from(seq / 400) * 900 * MS + u64::from(seq % 400) * 8 * MS / 10;
                if late {
                    server.serve(&mut queue, now, &mut wire);
                } else {
                    while server.due(&queue) <= now {
                        server.step(&mut queue, &mut wire);
                    }
                }
                server.arrive(&mut queue, meta(now), Numbered(seq));
            }
            server.serve(&mut queue, 10_000 * MS, &mut wire);
            (server.decision_hash(), wire.1, server.log().0.len())
        };
        let (late, prompt) = (run(true), run(false));
        assert!(late.2 > 0 || !drops, "nothing was dropped");
        assert_eq!(late, prompt);
    }
}
