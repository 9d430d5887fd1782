//! A link: a queue, a transmitter of exact rate, and a wire of constant delay.
//!
//! The queue is managed by an algorithm, or plain: first in, first out, without bound.
//!
//! A link needs one event a packet: its arrival at the far end. Departures from the queue are
//! caught up when anybody looks (an arrival, an event of the link, a sample), each at its exact
//! time and in order, so a queue sees the same calls as if each departure were an event. At equal
//! times departures come before arrivals.

use std::collections::VecDeque;

use aqm::{AnyQdisc, Cause, Cx, Instant, Meta, Outlet, Qdisc, Rate, Rng};

use crate::hash::DecisionHash;
use crate::metrics::queue::{QueueStats, QueueSummary};
use crate::packet::Packet;

/// A packet on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// When it arrives at the far end, in ns.
    pub arrives: u64,
    /// Its metadata.
    pub meta: Meta,
    /// The rest of it.
    pub packet: Packet,
}

/// Turns bytes into time on the wire, carrying what is below a nanosecond, so that the long-run
/// rate is exact.
#[derive(Clone, Debug)]
struct Serialiser {
    rate: u64,
    /// Time owed, in units of 1/rate ns.
    carry: u64,
    /// Whole ns and carry of the last length, which is mostly the next one too.
    last: (u32, u64, u64),
}

impl Serialiser {
    fn new(rate: Rate) -> Self {
        Self { rate: rate.bits_per_second(), carry: 0, last: (0, 0, 0) }
    }

    #[inline]
    fn transmission(&mut self, len: u32) -> u64 {
        if self.last.0 != len {
            let bit_ns = u128::from(len) * 8_000_000_000;
            let rate = u128::from(self.rate);
            self.last = (len, (bit_ns / rate) as u64, (bit_ns % rate) as u64);
        }
        self.carry += self.last.2;
        let over = u64::from(self.carry >= self.rate);
        self.carry -= self.rate * over;
        self.last.1 + over
    }
}

/// Counts what the queue reports.
struct Report<'a> {
    stats: &'a mut QueueStats,
    hash: &'a mut DecisionHash,
}

impl Outlet<Packet> for Report<'_> {
    fn dropped(&mut self, meta: &Meta, packet: Packet, cause: Cause, now: Instant) {
        self.hash.drop(now.as_nanos(), meta.flow.0, packet.seq, cause);
        if let Some(flow) = self.stats.flows.get_mut(meta.flow.0 as usize) {
            flow.dropped += 1;
            flow.dropped_bytes += u64::from(meta.len);
        }
    }

    fn marked(&mut self, meta: &Meta, cause: Cause, now: Instant) {
        self.hash.mark(now.as_nanos(), meta.flow.0, cause);
        if let Some(flow) = self.stats.flows.get_mut(meta.flow.0 as usize) {
            flow.marked += 1;
        }
    }
}

/// What waits behind a plain link's transmitter: nothing that decides, so that the time of a
/// packet's departure is known when it arrives.
#[derive(Clone, Copy, Default, Debug)]
pub struct Plain {
    /// When the transmitter is free, ns.
    free_at: u64,
    /// The longest that a packet has waited for the transmitter, ns.
    pub longest_wait: u64,
    /// Packets sent.
    pub packets: u64,
}

/// A queue that an algorithm manages, and what is measured at it.
#[derive(Clone)]
pub struct Managed {
    queue: AnyQdisc<Packet>,
    rng: Rng,
    /// When the transmitter is free, in ns, if it is sending.
    free_at: Option<u64>,
    /// Whether the queue has timers at all.
    timed: bool,
    stats: QueueStats,
}

#[derive(Clone)]
enum Queue {
    Plain(Plain),
    Managed(Box<Managed>),
}

/// One direction of a connection between two nodes.
#[derive(Clone)]
pub struct Link {
    queue: Queue,
    line: Line,
}

/// The transmitter and the wire.
#[derive(Clone)]
struct Line {
    serialiser: Serialiser,
    /// Propagation delay in ns.
    delay: u64,
    wire: VecDeque<Flight>,
    hash: DecisionHash,
}

impl Line {
    /// Begins to send a packet at `now`; returns when the transmitter is free again.
    #[inline]
    fn send(&mut self, now: u64, meta: Meta, packet: Packet) -> u64 {
        self.hash.departure(now, meta.flow.0, packet.seq);
        let free_at = now + self.serialiser.transmission(meta.len);
        self.wire.push_back(Flight { arrives: free_at + self.delay, meta, packet });
        free_at
    }
}

impl Link {
    /// An idle link at time 0 with a plain queue.
    pub fn plain(rate: Rate, delay: aqm::Duration) -> Self {
        Self { queue: Queue::Plain(Plain::default()), line: Line::new(rate, delay) }
    }

    /// An idle link at time 0 with a managed queue. `flows` rows of per-flow counts are kept.
    pub fn managed(
        rate: Rate,
        delay: aqm::Duration,
        queue: AnyQdisc<Packet>,
        rng: Rng,
        flows: usize,
    ) -> Self {
        let managed = Managed {
            timed: queue.poll_at().is_some(),
            queue,
            rng,
            free_at: None,
            stats: QueueStats::new(flows),
        };
        Self { queue: Queue::Managed(Box::new(managed)), line: Line::new(rate, delay) }
    }

    /// A packet arrives at `now` (ns). Returns the link's next event if it has changed.
    #[inline]
    pub fn arrive(&mut self, now: u64, meta: Meta, packet: Packet) -> Option<u64> {
        let was_empty = self.line.wire.is_empty();
        match &mut self.queue {
            Queue::Plain(plain) => {
                let start = plain.free_at.max(now);
                plain.longest_wait = plain.longest_wait.max(start - now);
                plain.packets += 1;
                plain.free_at = self.line.send(start, meta, packet);
            }
            Queue::Managed(managed) => managed.arrive(now, meta, packet, &mut self.line),
        }
        if was_empty { self.line.wire.front().map(|f| f.arrives) } else { None }
    }

    /// The packet at the head of the wire arrives: the link's event.
    #[inline]
    pub fn deliver(&mut self, now: u64) -> Option<Flight> {
        self.catch_up(now);
        let wire = &mut self.line.wire;
        debug_assert!(wire.front().is_none_or(|f| f.arrives == now), "an event out of time");
        wire.pop_front()
    }

    /// Time of the next event in ns: the next arrival at the far end; `u64::MAX` for none. While
    /// the queue holds anything there is a packet on the wire, so nothing waits unseen.
    #[inline]
    pub fn next_event(&self) -> u64 {
        self.line.wire.front().map_or(u64::MAX, |f| f.arrives)
    }

    /// Does everything that was due up to and including `now` (ns).
    #[inline]
    pub fn catch_up(&mut self, now: u64) {
        if let Queue::Managed(managed) = &mut self.queue {
            managed.catch_up(now, &mut self.line);
        }
    }

    /// The managed queue, if this link has one.
    pub fn as_managed(&self) -> Option<&Managed> {
        match &self.queue {
            Queue::Managed(managed) => Some(managed),
            Queue::Plain(_) => None,
        }
    }

    /// The plain queue, if this link has one.
    pub fn as_plain(&self) -> Option<&Plain> {
        match &self.queue {
            Queue::Plain(plain) => Some(plain),
            Queue::Managed(_) => None,
        }
    }

    /// Begins a new window of measurement at `now`.
    pub fn restart_measurement(&mut self, now: u64) {
        if let Queue::Managed(managed) = &mut self.queue {
            managed.stats.restart(now, managed.queue.counters());
        }
    }

    /// The hash over all decisions so far.
    pub fn hash(&self) -> DecisionHash {
        self.line.hash
    }
}

impl Line {
    fn new(rate: Rate, delay: aqm::Duration) -> Self {
        Self {
            serialiser: Serialiser::new(rate),
            delay: delay.as_nanos(),
            wire: VecDeque::new(),
            hash: DecisionHash::default(),
        }
    }
}

impl Managed {
    #[inline]
    fn arrive(&mut self, now: u64, meta: Meta, packet: Packet, line: &mut Line) {
        self.catch_up(now, line);
        self.stats.arrival(&meta);
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut self.rng };
        let mut report = Report { stats: &mut self.stats, hash: &mut line.hash };
        self.queue.enqueue(meta, packet, &mut cx, &mut report);
        if self.free_at.is_none() && self.queue.backlog().packets > 0 {
            self.send_next(now, line);
        }
        self.stats.change(now, self.queue.backlog());
    }

    #[inline]
    fn catch_up(&mut self, now: u64, line: &mut Line) {
        if self.timed {
            return self.catch_up_with_timers(now, line);
        }
        while let Some(at) = self.free_at
            && at <= now
        {
            self.send_next(at, line);
        }
    }

    fn catch_up_with_timers(&mut self, now: u64, line: &mut Line) {
        loop {
            let free = self.free_at.unwrap_or(u64::MAX);
            let timer = self.queue.poll_at().map_or(u64::MAX, Instant::as_nanos);
            if free.min(timer) > now {
                return;
            }
            if free <= timer {
                self.send_next(free, line);
            } else {
                let mut cx = Cx { now: Instant::from_nanos(timer), rng: &mut self.rng };
                let mut report = Report { stats: &mut self.stats, hash: &mut line.hash };
                self.queue.on_timer(&mut cx, &mut report);
                self.stats.change(timer, self.queue.backlog());
            }
        }
    }

    /// The transmitter is free: asks the queue for a packet and puts it on the wire.
    #[inline]
    fn send_next(&mut self, now: u64, line: &mut Line) {
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut self.rng };
        let mut report = Report { stats: &mut self.stats, hash: &mut line.hash };
        let next = self.queue.dequeue(&mut cx, &mut report);
        match (next, self.free_at) {
            (Some((meta, packet)), before) => {
                if before.is_none() {
                    self.stats.busy(now);
                }
                self.stats.departure(now, &meta);
                self.free_at = Some(line.send(now, meta, packet));
            }
            (None, Some(_)) => {
                self.free_at = None;
                self.stats.idle(now);
            }
            (None, None) => {}
        }
        self.stats.change(now, self.queue.backlog());
    }

    /// The queue, to look at.
    pub fn queue(&self) -> &AnyQdisc<Packet> {
        &self.queue
    }

    /// The statistics, up to the last change.
    pub fn stats(&self) -> &QueueStats {
        &self.stats
    }

    /// How long the link has been idle since time 0, in ns.
    pub fn idle(&self, now: u64) -> u64 {
        self.stats.idle_until(now)
    }

    /// The summary of the window that ends at `now`, which must be caught up to.
    pub fn summary(&self, now: u64) -> QueueSummary {
        self.stats.summary(now, self.queue.counters())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqm::policy::Env;
    use aqm::{Duration, Ecn, FlowKey, Limit};

    fn link(rate: Rate, delay: Duration, packets: u64) -> Link {
        let mut rng = Rng::new(1, 0);
        let limit = Limit::packets(packets).unwrap();
        let env = Env { now: Instant::ZERO, limit, rate, mean_packet: 1000 };
        let queue = AnyQdisc::build("droptail", &[], &env, &mut rng).unwrap();
        Link::managed(rate, delay, queue, rng, 1)
    }

    fn meta(len: u32) -> Meta {
        Meta { len, flow: FlowKey(0), ecn: Ecn::NotEct, arrived: Instant::ZERO }
    }

    /// 45 Mb/s: 1000 bytes take 177 777.7… ns; 45 000 packets take 8 s to the nanosecond.
    #[test]
    fn the_long_run_rate_is_exact() {
        let mut s = Serialiser::new(Rate::from_mbit(45));
        let total: u64 = (0..45_000).map(|_| s.transmission(1000)).sum();
        assert_eq!(total, 8_000_000_000);
    }

    #[test]
    fn packets_of_mixed_lengths_keep_the_rate_too() {
        let mut s = Serialiser::new(Rate::new(7_000_003).unwrap());
        let total: u64 = (0..70_000).map(|i| s.transmission([40, 1000, 1500][i % 3])).sum();
        let bits = (0..70_000u64).map(|i| [320, 8000, 12_000][(i % 3) as usize]).sum::<u64>();
        assert_eq!(total, (u128::from(bits) * 1_000_000_000 / 7_000_003) as u64);
    }

    #[test]
    fn a_burst_leaves_one_transmission_apart() {
        let mut l = link(Rate::from_mbit(8), Duration::from_millis(5), 10);
        assert_eq!(l.arrive(0, meta(1000), Packet::default()), Some(6_000_000));
        (0..2).for_each(|_| assert_eq!(l.arrive(0, meta(1000), Packet::default()), None));
        for expected in [6_000_000, 7_000_000, 8_000_000] {
            assert_eq!(l.next_event(), expected);
            assert_eq!(l.deliver(expected).unwrap().arrives, expected);
        }
        assert_eq!(l.next_event(), u64::MAX);
        let s = l.as_managed().unwrap().summary(10_000_000);
        assert_eq!(s.counts.departed.packets, 3);
        // Queue: 2 packets for 1 ms, 1 for 1 ms, of 10 ms.
        assert!((s.mean_packets - 0.3).abs() < 1e-12, "{}", s.mean_packets);
        assert!((s.idle_fraction - 0.7).abs() < 1e-12);
        assert!((s.delay_mean_s - 0.001).abs() < 1e-12);
    }

    /// A plain link and a managed drop-tail link with room deliver at the same times.
    #[test]
    fn a_plain_link_is_a_drop_tail_link_without_bound() {
        let rate = Rate::new(7_000_003).unwrap();
        let delay = Duration::from_micros(10);
        let mut links = [Link::plain(rate, delay), link(rate, delay, 10_000)];
        let mut rng = Rng::new(8, 0);
        let arrivals: Vec<(u64, u32)> = (0..3000)
            .scan(0, |now, _| {
                *now += rng.below(2_000_000) as u64;
                Some((*now, 40 + rng.below(1460) as u32))
            })
            .collect();
        let delivered = links.each_mut().map(|l| {
            let mut times = Vec::new();
            for &(now, len) in &arrivals {
                while l.next_event() <= now {
                    times.push(l.next_event());
                    l.deliver(l.next_event());
                }
                l.arrive(now, meta(len), Packet::default());
            }
            while l.next_event() < u64::MAX {
                times.push(l.next_event());
                l.deliver(l.next_event());
            }
            times
        });
        assert_eq!(delivered[0].len(), 3000);
        assert_eq!(delivered[0], delivered[1]);
        assert_eq!(links[0].hash(), links[1].hash());
    }

    #[test]
    fn a_packet_that_arrives_as_another_departs_finds_room() {
        let mut l = link(Rate::from_mbit(8), Duration::ZERO, 1);
        l.arrive(0, meta(1000), Packet::default());
        l.arrive(0, meta(1000), Packet::default());
        l.arrive(1_000_000, meta(1000), Packet::default());
        assert_eq!(l.as_managed().unwrap().queue().counters().all_dropped().packets, 0);
    }
}
