//! A link: a queue, a transmitter of exact rate, and a wire of constant delay.
//!
//! The queue is managed by an algorithm, or plain: first in, first out, without bound.
//!
//! A managed queue needs no event for its departures: they are caught up when anybody looks (an
//! arrival, an event of the link, a sample), each at its exact time and in order, so a queue sees
//! the same calls as if each departure were an event. At equal times departures come before
//! arrivals. How packets go from link to link: [`crate::network`].

use aqm::{AnyQdisc, Cause, Cx, Instant, Meta, Outlet, Qdisc, Rate, Rng, Visitor};

use crate::engine::{Flight, NO_LANE, source_in_key};
use crate::hash::DecisionHash;
use crate::metrics::queue::{QueueStats, QueueSummary};
use crate::network::{Merge, Wires};
use crate::packet::{Packet, SHORTEST_PACKET};
use crate::ring::Ring;

/// Turns bytes into time on the wire, carrying what is below a nanosecond, so that the long-run
/// rate is exact: to less than 2⁻⁶⁴ ns a packet.
#[derive(Clone, Debug)]
pub struct Serialiser {
    rate: u64,
    /// Time owed, in units of 2⁻⁶⁴ ns.
    carry: u64,
    /// Whole ns and carry (rounded up) of the last length, which is mostly the next one too.
    last: (u32, u64, u64),
}

impl Serialiser {
    /// Nothing owed yet.
    pub fn new(rate: Rate) -> Self {
        Self { rate: rate.bits_per_second(), carry: 0, last: (0, 0, 0) }
    }

    /// How long a packet of `len` bytes takes, ns, but for what is carried.
    pub fn whole(&self, len: u32) -> u64 {
        (u128::from(len) * 8_000_000_000 / u128::from(self.rate)) as u64
    }

    /// How long the next packet, of `len` bytes, takes, ns.
    #[inline]
    pub fn transmission(&mut self, len: u32) -> u64 {
        if self.last.0 != len {
            self.change_length(len);
        }
        let (carry, over) = self.carry.overflowing_add(self.last.2);
        self.carry = carry;
        self.last.1 + u64::from(over)
    }

    #[cold]
    #[inline(never)]
    fn change_length(&mut self, len: u32) {
        let bit_ns = u128::from(len) * 8_000_000_000;
        let rate = u128::from(self.rate);
        let carry = ((bit_ns % rate) << 64).div_ceil(rate);
        self.last = (len, (bit_ns / rate) as u64, carry as u64);
    }
}

/// What queues take for the identity of a flow's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The first of the flows that share it.
    pub flow: u32,
    /// It changes so often, ns; 0 for never.
    pub rekey: u64,
}

impl Identity {
    /// The identity at `now`, without that of the connection; changes are counted modulo 2²⁴.
    fn at(self, now: u64) -> u64 {
        let changes = now.checked_div(self.rekey).unwrap_or(0) & 0xff_ffff;
        u64::from(self.flow) | changes << 32
    }
}

/// No time at all.
const NEVER: u64 = u64::MAX;

/// Where a link's packets are until they come to its far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// In the event list: each arrival is an event.
    Events,
    /// With the link that merges this one with others, until it takes them: its place among merges.
    Merge(usize),
    /// On its own wire: a lazy link, which has to be caught up for its events.
    Own,
}

/// The transmitter and the wire of a link.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    serialiser: Serialiser,
    /// Propagation delay in ns.
    pub(crate) delay: u64,
    /// When the transmitter is free, or was last, ns.
    pub(crate) free_at: u64,
    /// Whether there is a managed queue before it.
    pub(crate) managed: bool,
    /// The merge that it is, if it is one: its place among them.
    pub(crate) merge: Option<usize>,
    pub(crate) exit: Exit,
    /// What it is in the keys at the exit.
    pub(crate) source: u64,
    /// Where its last packet went there.
    pub(crate) lane: u8,
    /// Packets between the transmitter and the far end that are in no lane.
    pub(crate) wire: Ring<Flight>,
    /// A lazy link: what the event list holds for it, ns. It may be earlier than its next event.
    pub(crate) listed: u64,
    /// Over the packets whose path ends with this link.
    pub(crate) delivered: DecisionHash,
}

impl Line {
    fn new(rate: Rate, delay: aqm::Duration, managed: bool) -> Self {
        Self {
            serialiser: Serialiser::new(rate),
            delay: delay.as_nanos(),
            free_at: 0,
            managed,
            merge: None,
            exit: Exit::Own,
            source: 0,
            lane: NO_LANE,
            wire: Ring::new(),
            listed: NEVER,
            delivered: DecisionHash::default(),
        }
    }

    /// Sets where packets are on the way to its far end, and its number there.
    pub(crate) fn leave_by(&mut self, exit: Exit, number: usize) {
        self.exit = exit;
        self.source = source_in_key(number);
        self.lane = if exit == Exit::Own { NO_LANE } else { 0 };
    }

    /// How long a packet of `len` bytes takes on this link if nothing is before it, in transmission
    /// and on the wire, ns.
    pub(crate) fn alone(&self, len: u16) -> (u64, u64) {
        (self.serialiser.whole(u32::from(len)), self.delay)
    }

    /// A packet of `len` bytes comes to the transmitter at `now`. Returns when it arrives at the far
    /// end of the wire.
    #[inline]
    pub(crate) fn transmit(&mut self, now: u64, len: u16) -> u64 {
        self.free_at = self.free_at.max(now) + self.serialiser.transmission(u32::from(len));
        self.free_at + self.delay
    }

    /// Whether it has work to do that is not in the event list.
    #[inline(always)]
    pub(crate) fn lazy(&self) -> bool {
        self.managed || self.merge.is_some()
    }

    /// How long the shortest packet takes to the far end at least, ns.
    pub(crate) fn soonest(&self) -> u64 {
        let transmission = u64::from(SHORTEST_PACKET) * 8_000_000_000 / self.serialiser.rate;
        transmission + self.delay
    }

    /// Whether the shortest packet takes at least 1 ns, so that nothing comes out when it goes in.
    pub(crate) fn takes_time(&self) -> bool {
        self.serialiser.rate <= u64::from(SHORTEST_PACKET) * 8_000_000_000
    }

    /// A packet that comes to `hop` next waits on the link's own wire. Returns whether it is the first
    /// there.
    #[inline]
    pub(crate) fn wait(&mut self, key: u64, packet: &Packet, hop: u32) -> bool {
        let first = self.wire.is_empty();
        self.wire.push().set(key, packet, hop);
        first
    }

    /// Takes the packet with this key off the link's own wire, if it is the first. Returns the key
    /// of the next.
    #[inline(always)]
    pub(crate) fn take(&mut self, key: u64, packet: &mut Packet) -> (bool, Option<u64>) {
        let flight = self.wire.front().filter(|flight| flight.key == key);
        let taken = flight.is_some();
        if let Some(flight) = flight {
            *packet = flight.packet;
            self.wire.drop_front();
        }
        (taken, self.wire.front().map(|flight| flight.key))
    }
}

/// One direction of a connection between two nodes.
#[derive(Clone)]
pub struct Link {
    pub(crate) line: Line,
    /// Without one, packets wait for the transmitter in the order of their arrival.
    pub(crate) queue: Option<Box<Managed>>,
}

impl Link {
    /// An idle link at time 0 with a plain queue.
    pub fn plain(rate: Rate, delay: aqm::Duration) -> Self {
        Self { line: Line::new(rate, delay, false), queue: None }
    }

    /// An idle link at time 0 with a managed queue. `flows` rows of per-flow counts are kept.
    pub fn managed(
        rate: Rate,
        delay: aqm::Duration,
        queue: AnyQdisc<Packet>,
        rng: Rng,
        flows: usize,
    ) -> Self {
        let server = Server {
            timed: queue.poll_at().is_some(),
            rng,
            free_at: NEVER,
            identities: None,
            hand: Packet::default(),
            books: Books { stats: QueueStats::new(flows), hash: DecisionHash::default() },
        };
        let managed = Managed { queue, server };
        Self { line: Line::new(rate, delay, true), queue: Some(Box::new(managed)) }
    }

    /// The managed queue, if this link has one.
    pub fn as_managed(&self) -> Option<&Managed> {
        self.queue.as_deref()
    }
}

/// A queue that an algorithm manages, and what is measured at it.
#[derive(Clone)]
pub struct Managed {
    queue: AnyQdisc<Packet>,
    server: Server,
}

/// What serves a managed queue.
#[derive(Clone)]
struct Server {
    rng: Rng,
    /// When the transmitter is free, in ns; [`NEVER`] while it has nothing to send.
    free_at: u64,
    /// Whether the queue has timers at all.
    timed: bool,
    /// Of each flow, where a flow's number is not its identity.
    identities: Option<Box<[Identity]>>,
    /// The packet that arrives: it lies here to be copied as one.
    hand: Packet,
    books: Books,
}

/// What is written down of a managed queue.
#[derive(Clone)]
struct Books {
    stats: QueueStats,
    /// Over all its decisions.
    hash: DecisionHash,
}

impl Outlet<Packet> for Books {
    #[inline(never)]
    fn dropped(&mut self, _: &Meta, packet: Packet, cause: Cause, now: Instant) {
        self.hash.drop(now.as_nanos(), packet.flow, packet.seq, cause);
        self.stats.drop(&packet, cause);
    }

    #[inline(never)]
    fn marked(&mut self, _: &Meta, packet: &Packet, cause: Cause, now: Instant) {
        self.hash.mark(now.as_nanos(), packet.flow, cause);
        self.stats.mark(packet);
    }
}

/// The packet in hand arrives at a managed link.
struct Arrive<'a> {
    server: &'a mut Server,
    wires: &'a mut Wires,
    now: u64,
}

impl Visitor<Packet> for Arrive<'_> {
    #[inline]
    fn visit(self, queue: &mut impl Qdisc<Packet>) {
        let Self { server, wires, now } = self;
        server.serve(queue, now, wires);
        server.arrive(queue, now);
        server.serve(queue, now, wires);
    }
}

impl Server {
    /// Takes the next packet that has arrived by `until` in hand. Returns when it did.
    #[inline(never)]
    fn take(&mut self, merge: &mut Merge, until: u64, lines: &mut [Line]) -> Option<u64> {
        self.books.stats.expect(|| merge.coming());
        merge.take(until, &mut self.hand, lines)
    }

    /// The packet in hand arrives at `now`.
    #[inline(always)]
    fn arrive(&mut self, queue: &mut impl Qdisc<Packet>, now: u64) {
        let packet = &self.hand;
        self.books.stats.arrival(packet);
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut self.rng };
        let mut meta = packet.meta(now);
        if let Some(identities) = &self.identities {
            meta.flow = packet.identity(identities[packet.flow as usize].at(now));
        }
        queue.enqueue(meta, *packet, &mut cx, &mut self.books);
        let backlog = queue.backlog();
        self.books.stats.change(now, backlog);
        if self.free_at == NEVER && backlog.packets > 0 {
            self.free_at = now;
        }
    }

    /// Sends everything that is due up to and including `now`.
    #[inline(always)]
    fn serve(&mut self, queue: &mut impl Qdisc<Packet>, now: u64, wires: &mut Wires) {
        if self.timed {
            self.serve_with_timers(queue, now, wires);
        }
        while self.free_at <= now {
            self.send_next(queue, wires);
        }
    }

    /// Sends everything that is due up to and including `now`, and does what the queue's timers have
    /// to do meanwhile.
    #[inline(never)]
    fn serve_with_timers(&mut self, queue: &mut impl Qdisc<Packet>, now: u64, wires: &mut Wires) {
        self.run_timers(queue, now);
        while self.free_at <= now {
            self.send_next(queue, wires);
            self.run_timers(queue, now);
        }
    }

    /// Does what the queue's timers have to do up to `now` before the transmitter is free.
    fn run_timers(&mut self, queue: &mut impl Qdisc<Packet>, now: u64) {
        loop {
            let timer = queue.poll_at().map_or(NEVER, Instant::as_nanos);
            if timer > now || self.free_at <= timer {
                return;
            }
            let mut cx = Cx { now: Instant::from_nanos(timer), rng: &mut self.rng };
            queue.on_timer(&mut cx, &mut self.books);
            self.books.stats.change(timer, queue.backlog());
        }
    }

    /// The transmitter is free: asks the queue for a packet and sends it.
    #[inline(never)]
    fn send_next(&mut self, queue: &mut impl Qdisc<Packet>, wires: &mut Wires) {
        let now = self.free_at;
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut self.rng };
        let mut next = queue.dequeue(&mut cx, &mut self.books);
        let Books { stats, hash } = &mut self.books;
        if let Some((meta, packet)) = &mut next {
            packet.ecn = meta.ecn;
            stats.busy(now);
            stats.departure(now, meta.arrived.as_nanos(), packet);
            hash.departure(now, packet.flow, packet.seq);
            self.free_at = wires.send_on(now, packet);
        } else {
            stats.idle(now);
            self.free_at = NEVER;
        }
        stats.change(now, queue.backlog());
    }
}

impl Managed {
    /// A packet arrives at `now`.
    #[inline]
    pub(crate) fn arrive(&mut self, now: u64, packet: &Packet, wires: &mut Wires) {
        let Self { server, queue } = self;
        server.hand = *packet;
        queue.visit(Arrive { server, wires, now });
    }

    /// Does everything that was due up to and including `until`.
    pub(crate) fn catch_up(&mut self, until: u64, link: usize, wires: &mut Wires) {
        let Self { server, queue } = self;
        if let Some(mut merge) = wires.detach(link) {
            while let Some(now) = server.take(&mut merge, until, &mut wires.lines) {
                queue.visit(Arrive { server, wires, now });
            }
            wires.attach(merge);
        }
        // Rarely much: the choice among the disciplines is made at each call.
        server.serve(queue, until, wires);
    }

    /// When the next packet is sent if none arrives meanwhile, ns.
    #[inline]
    pub(crate) fn next_departure(&self) -> u64 {
        let Server { free_at, books, .. } = &self.server;
        if books.stats.backlog().packets > 0 { *free_at } else { NEVER }
    }

    /// Begins a new window of measurement at `now`.
    pub(crate) fn restart_measurement(&mut self, now: u64) {
        self.server.books.stats.restart(now, self.queue.counters());
    }

    /// The hash over its decisions.
    pub(crate) fn decision_hash(&self) -> DecisionHash {
        self.server.books.hash
    }

    /// The queue, to look at.
    pub fn queue(&self) -> &AnyQdisc<Packet> {
        &self.queue
    }

    /// Counts by group, too; `of` gives the group of each flow. Only before the first packet.
    pub(crate) fn count_groups(&mut self, of: Vec<u16>) {
        self.server.books.stats.count_groups(of);
    }

    /// Sets what the queue takes for each flow's identity. Only before the first packet.
    pub(crate) fn identify(&mut self, identities: &[Identity]) {
        self.server.identities = Some(identities.into());
    }

    /// The statistics, up to the last change.
    pub fn stats(&self) -> &QueueStats {
        &self.server.books.stats
    }

    /// How long the link has been idle since time 0, in ns.
    pub fn idle(&self, now: u64) -> u64 {
        self.stats().idle_until(now)
    }

    /// The summary of the window that ends at `now`, which must be caught up to.
    pub fn summary(&self, now: u64) -> QueueSummary {
        self.stats().summary(now, self.queue.counters())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{END, Event, Network};
    use aqm::policy::Env;
    use aqm::{Duration, Limit};

    /// Later than anything happens.
    const LATE: u64 = u64::MAX >> 8;

    /// A network of one link.
    fn network(link: Link) -> Network {
        Network::new(vec![link], vec![0, END], 0)
    }

    fn link(rate: Rate, delay: Duration, packets: u64) -> Network {
        let mut rng = Rng::new(1, 0);
        let limit = Limit::packets(packets).unwrap();
        let env = Env { now: Instant::ZERO, limit, rate, mean_packet: 1000 };
        let queue = AnyQdisc::build("droptail", &[], &env, &mut rng).unwrap();
        network(Link::managed(rate, delay, queue, rng, 1))
    }

    fn packet(len: u16) -> Packet {
        Packet { len, ..Packet::default() }
    }

    /// The time of the next arrival at the far end, which is taken out.
    fn next_delivery(net: &mut Network, until: u64) -> Option<u64> {
        net.set_end(until);
        let (at, event) = net.next(&mut packet(40));
        (event == Event::End).then_some(at)
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
        (0..3).for_each(|_| l.forward(0, &packet(1000)));
        for expected in [6_000_000, 7_000_000, 8_000_000] {
            assert_eq!(next_delivery(&mut l, LATE), Some(expected));
        }
        assert_eq!(next_delivery(&mut l, LATE), None);
        let s = l.queue(0).unwrap().summary(10_000_000);
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
        let mut links = [network(Link::plain(rate, delay)), link(rate, delay, 10_000)];
        let mut rng = Rng::new(8, 0);
        let arrivals: Vec<(u64, u16)> = (0..3000)
            .scan(0, |now, _| {
                *now += rng.below(2_000_000) as u64;
                Some((*now, 40 + rng.below(1460) as u16))
            })
            .collect();
        let delivered = links.each_mut().map(|l| {
            let mut times = Vec::new();
            for &(now, len) in &arrivals {
                while let Some(at) = next_delivery(l, now + 1) {
                    times.push(at);
                }
                l.forward(now, &packet(len));
            }
            while let Some(at) = next_delivery(l, LATE) {
                times.push(at);
            }
            times
        });
        assert_eq!(delivered[0].len(), 3000);
        assert_eq!(delivered[0], delivered[1]);
    }

    #[test]
    fn an_identity_changes_when_its_time_is_over() {
        let fixed = Identity { flow: 7, rekey: 0 };
        assert_eq!([0, u64::MAX].map(|now| fixed.at(now)), [7; 2]);
        let moving = Identity { flow: 7, rekey: 100 };
        assert_eq!([99, 100, 199].map(|now| moving.at(now) >> 32), [0, 1, 1]);
        assert_ne!(moving.at(100), Identity { flow: 8, rekey: 100 }.at(100));
    }

    #[test]
    fn a_packet_that_arrives_as_another_departs_finds_room() {
        let mut l = link(Rate::from_mbit(8), Duration::ZERO, 1);
        [0, 0, 1_000_000].into_iter().for_each(|now| l.forward(now, &packet(1000)));
        assert_eq!(l.queue(0).unwrap().queue().counters().all_dropped().packets, 0);
    }
}
