//! A link: a queue, a transmitter of exact rate, and a wire of constant delay.
//!
//! A link needs one event a packet: its arrival at the far end. Departures from the queue are
//! caught up when anybody looks (an arrival, an event of the link, a sample), each at its exact
//! time and in order, so a queue sees the same calls as if each departure were an event. At equal
//! times departures come before arrivals.

use std::collections::VecDeque;

use aqm::{AnyQdisc, Cause, Cx, Instant, Meta, Outlet, Qdisc, Rate, Rng};

use crate::hash::DecisionHash;
use crate::metrics::queue::QueueStats;
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

/// One direction of a connection between two nodes.
#[derive(Clone)]
pub struct Link {
    queue: AnyQdisc<Packet>,
    rng: Rng,
    serialiser: Serialiser,
    /// Propagation delay in ns.
    delay: u64,
    /// When the transmitter is free, in ns, if it is sending.
    free_at: Option<u64>,
    /// Whether the queue has timers at all.
    timed: bool,
    wire: VecDeque<Flight>,
    stats: QueueStats,
    hash: DecisionHash,
}

impl Link {
    /// An idle link at time 0. `flows` rows of per-flow counts are kept (0 for none).
    pub fn new(
        rate: Rate,
        delay: aqm::Duration,
        queue: AnyQdisc<Packet>,
        rng: Rng,
        flows: usize,
    ) -> Self {
        Self {
            timed: queue.poll_at().is_some(),
            queue,
            rng,
            serialiser: Serialiser::new(rate),
            delay: delay.as_nanos(),
            free_at: None,
            wire: VecDeque::new(),
            stats: QueueStats::new(flows),
            hash: DecisionHash::default(),
        }
    }

    /// A packet arrives at `now` (ns). Returns the link's next event if it has changed.
    #[inline]
    pub fn arrive(&mut self, now: u64, meta: Meta, packet: Packet) -> Option<u64> {
        self.catch_up(now);
        self.stats.arrival(&meta);
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut self.rng };
        let mut report = Report { stats: &mut self.stats, hash: &mut self.hash };
        self.queue.enqueue(meta, packet, &mut cx, &mut report);
        if self.free_at.is_some() {
            self.stats.change(now, self.queue.backlog());
            return None;
        }
        if self.queue.backlog().packets == 0 {
            return None; // dropped
        }
        let was_empty = self.wire.is_empty();
        self.send_next(now);
        self.stats.change(now, self.queue.backlog());
        if was_empty { self.wire.front().map(|f| f.arrives) } else { None }
    }

    /// The packet at the head of the wire arrives: the link's event.
    #[inline]
    pub fn deliver(&mut self, now: u64) -> Option<Flight> {
        self.catch_up(now);
        debug_assert!(self.wire.front().is_none_or(|f| f.arrives == now), "an event out of time");
        self.wire.pop_front()
    }

    /// Time of the next event in ns: the next arrival at the far end; `u64::MAX` for none. While
    /// the queue holds anything there is a packet on the wire, so nothing waits unseen.
    #[inline]
    pub fn next_event(&self) -> u64 {
        self.wire.front().map_or(u64::MAX, |f| f.arrives)
    }

    /// Does everything that was due up to and including `now` (ns).
    #[inline]
    pub fn catch_up(&mut self, now: u64) {
        if self.timed {
            return self.catch_up_with_timers(now);
        }
        while let Some(at) = self.free_at
            && at <= now
        {
            self.next_departure(at);
        }
    }

    fn catch_up_with_timers(&mut self, now: u64) {
        loop {
            let free = self.free_at.unwrap_or(u64::MAX);
            let timer = self.queue.poll_at().map_or(u64::MAX, Instant::as_nanos);
            if free.min(timer) > now {
                return;
            }
            if free <= timer {
                self.next_departure(free);
            } else {
                let mut cx = Cx { now: Instant::from_nanos(timer), rng: &mut self.rng };
                let mut report = Report { stats: &mut self.stats, hash: &mut self.hash };
                self.queue.on_timer(&mut cx, &mut report);
            }
        }
    }

    /// The transmitter is free at `at`.
    #[inline]
    fn next_departure(&mut self, at: u64) {
        self.send_next(at);
        self.stats.change(at, self.queue.backlog());
    }

    /// Asks the queue for a packet and puts it on the wire.
    #[inline]
    fn send_next(&mut self, now: u64) {
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut self.rng };
        let mut report = Report { stats: &mut self.stats, hash: &mut self.hash };
        let was_busy = self.free_at.is_some();
        match self.queue.dequeue(&mut cx, &mut report) {
            Some((meta, packet)) => {
                self.stats.departure(now, &meta);
                self.hash.departure(now, meta.flow.0, packet.seq);
                if !was_busy {
                    self.stats.busy(now);
                }
                let free_at = now + self.serialiser.transmission(meta.len);
                self.free_at = Some(free_at);
                self.wire.push_back(Flight { arrives: free_at + self.delay, meta, packet });
            }
            None => {
                self.free_at = None;
                if was_busy {
                    self.stats.idle(now);
                }
            }
        }
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
    pub fn summary(&mut self, now: u64) -> crate::metrics::queue::QueueSummary {
        self.stats.summary(now, self.queue.counters())
    }

    /// Begins a new window of measurement at `now`.
    pub fn restart_measurement(&mut self, now: u64) {
        self.catch_up(now);
        self.stats.restart(now, self.queue.counters());
    }

    /// The hash over all decisions so far.
    pub fn hash(&self) -> &DecisionHash {
        &self.hash
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
        Link::new(rate, delay, queue, rng, 1)
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
        let s = l.summary(10_000_000);
        assert_eq!(s.counts.departed.packets, 3);
        // Queue: 2 packets for 1 ms, 1 for 1 ms, of 10 ms.
        assert!((s.mean_packets - 0.3).abs() < 1e-12, "{}", s.mean_packets);
        assert!((s.idle_fraction - 0.7).abs() < 1e-12);
        assert!((s.delay_mean_s - 0.001).abs() < 1e-12);
    }

    #[test]
    fn a_packet_that_arrives_as_another_departs_finds_room() {
        let mut l = link(Rate::from_mbit(8), Duration::ZERO, 1);
        l.arrive(0, meta(1000), Packet::default());
        l.arrive(0, meta(1000), Packet::default());
        l.arrive(1_000_000, meta(1000), Packet::default());
        assert_eq!(l.queue().counters().all_dropped().packets, 0);
    }
}
