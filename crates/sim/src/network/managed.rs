//! Links, and queues that an algorithm manages.
//!
//! A managed queue needs no event for its departures ([`link::server`]). How packets go from link to
//! link: [`crate::network`].

use std::iter::repeat;

use aqm::fair::htb::{ClassCount, Htb};
use aqm::fair::wifi::{Station, StationCount};
use aqm::{AnyQdisc, Duration, Env, Qdisc, Rate, Rng, Visitor};
use link::{DecisionHash, Impair, QueueStats, QueueSummary, Sending, Server};

use super::identity::Identities;
use super::impaired::ImpairedWire;
use super::line::Line;
use super::wires::{Merge, Wires};
use crate::packet::Packet;
use crate::results::journal::{Journal, Selection};
use crate::results::table::Table;

/// One direction of a connection between two nodes.
#[derive(Clone)]
pub struct Link {
    pub(crate) line: Line,
    /// Without one, packets wait for the transmitter in the order of their arrival.
    pub(crate) queue: Option<Box<Managed>>,
    pub(super) impaired: Option<Box<ImpairedWire>>,
}

impl Link {
    /// An idle link at time 0 with a plain queue.
    pub fn plain(rate: Rate, delay: Duration) -> Self {
        Self { line: Line::new(rate, delay, false), queue: None, impaired: None }
    }

    /// The wire of link number `of`, which impairs packets. In paths it comes directly behind that
    /// link, whose delay is the least that the wire takes.
    pub fn wire(of: usize, impair: Impair) -> Self {
        const AT_ONCE: Rate = Rate::new(u64::MAX).unwrap();
        let impaired = Some(Box::new(ImpairedWire::new(impair, of)));
        Self { line: Line::new(AT_ONCE, Duration::ZERO, true), queue: None, impaired }
    }

    /// This link, sending as `sending` says.
    #[must_use]
    pub fn with(mut self, sending: &Sending) -> Self {
        self.line.transmitter = self.line.transmitter.with(sending);
        self
    }

    /// An idle link at time 0 with a managed queue. `flows` rows of per-flow counts are kept.
    pub fn managed(
        rate: Rate,
        delay: Duration,
        queue: AnyQdisc<Packet>,
        rng: Rng,
        flows: usize,
    ) -> Self {
        let server = Server::new(rng, queue.poll_at().is_some(), flows, ());
        let service = Service { server, identities: None, scratch: Packet::default() };
        let managed =
            Managed { queue, service, journal: None, classes: Vec::new(), stations: Vec::new() };
        Self { line: Line::new(rate, delay, true), queue: Some(Box::new(managed)), impaired: None }
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
    service: Service,
    /// The fate of each packet, if the run records it.
    journal: Option<Box<Journal>>,
    /// The counts of its classes when the window of measurement began; none at time 0.
    classes: Vec<ClassCount>,
    /// Those of its stations.
    stations: Vec<StationCount>,
}

/// What serves a managed queue.
#[derive(Clone)]
struct Service {
    server: Server,
    /// Where a flow's number is not its identity.
    identities: Option<Identities>,
    /// The packet that arrives, in one place.
    scratch: Packet,
}

/// The scratch packet arrives at a managed link.
struct Arrive<'a> {
    service: &'a mut Service,
    wires: &'a mut Wires,
    now: u64,
}

impl Visitor<Packet> for Arrive<'_> {
    #[inline]
    fn visit(self, queue: &mut impl Qdisc<Packet>) {
        let Self { service, wires, now } = self;
        service.server.serve(queue, now, wires);
        service.arrive(queue, now);
        service.server.serve(queue, now, wires);
    }
}

impl Service {
    /// Takes the next packet that has arrived by `until` as the scratch packet. Returns when it did.
    #[inline(never)]
    fn take(&mut self, merge: &mut Merge, until: u64, lines: &mut [Line]) -> Option<u64> {
        self.server.stats().expect(|| merge.coming());
        merge.take(until, &mut self.scratch, lines)
    }

    /// The scratch packet arrives at `now`.
    #[inline(always)]
    fn arrive(&mut self, queue: &mut impl Qdisc<Packet>, now: u64) {
        let packet = &self.scratch;
        let mut meta = packet.meta(now);
        if let Some(identities) = &self.identities {
            meta.flow = identities.key(packet, now);
        }
        self.server.arrive(queue, meta, *packet);
    }
}

impl Managed {
    /// A packet arrives at `now`.
    #[inline]
    pub(crate) fn arrive(&mut self, now: u64, packet: &Packet, wires: &mut Wires) {
        let Self { service, queue, journal, .. } = self;
        service.scratch = *packet;
        let arrival = Arrive { service, wires, now };
        match journal {
            None => queue.visit(arrival),
            Some(journal) => journal.watch(queue, |watched| arrival.visit(watched)),
        }
    }

    /// Does everything that was due up to and including `until`.
    pub(crate) fn catch_up(&mut self, until: u64, link: usize, wires: &mut Wires) {
        if self.journal.is_some() {
            return self.catch_up_watched(until, link, wires);
        }
        let Self { service, queue, .. } = self;
        if let Some(mut merge) = wires.detach(link) {
            while let Some(now) = service.take(&mut merge, until, &mut wires.lines) {
                queue.visit(Arrive { service, wires, now });
            }
            wires.attach(merge);
        }
        // Rarely much: the choice among the disciplines is made at each call.
        service.server.serve(queue, until, wires);
    }

    /// Catches up to `until` (ns) while a journal is kept.
    #[cold]
    fn catch_up_watched(&mut self, until: u64, link: usize, wires: &mut Wires) {
        let Self { service, queue, journal: Some(journal), .. } = self else { return };
        journal.watch(queue, |watched| {
            if let Some(mut merge) = wires.detach(link) {
                while let Some(now) = service.take(&mut merge, until, &mut wires.lines) {
                    Arrive { service, wires, now }.visit(watched);
                }
                wires.attach(merge);
            }
            service.server.serve(watched, until, wires);
        });
    }

    /// Keeps a journal of the packets that `selection` names. Only before the first packet.
    pub(crate) fn keep_journal(&mut self, selection: Selection) {
        self.journal = Some(Box::new(Journal::new(selection, &self.queue)));
    }

    /// The rows of its journal that are ready, or all if nothing more will happen.
    pub(crate) fn drain_journal(&mut self, all: bool) -> Option<Table> {
        self.journal.as_mut()?.drain(all)
    }

    /// Whether the next packet is dropped, as if there was no room.
    pub(super) fn close(&mut self, closed: bool) {
        self.queue.close(closed);
    }

    /// The link has another rate, which the queue hears of.
    pub(super) fn rate_changed(&mut self, env: &Env) {
        self.queue.rate_changed(env);
    }

    /// When the next packet is sent if none arrives meanwhile, ns.
    #[inline]
    pub(crate) fn next_departure(&self) -> u64 {
        self.service.server.next_departure()
    }

    /// Begins a new window of measurement at `now`.
    pub(crate) fn restart_measurement(&mut self, now: u64) {
        self.service.server.restart_measurement(now, self.queue.counters());
        self.classes = self.queue.as_tree().map(Htb::counts).unwrap_or_default();
        self.stations = self.queue.as_wifi().map(|wifi| wifi.counts().to_vec()).unwrap_or_default();
    }

    /// The hash over its decisions.
    pub(crate) fn decision_hash(&self) -> DecisionHash {
        self.service.server.decision_hash()
    }

    /// The queue, to look at.
    pub fn queue(&self) -> &AnyQdisc<Packet> {
        &self.queue
    }

    pub(super) fn queue_mut(&mut self) -> &mut AnyQdisc<Packet> {
        &mut self.queue
    }

    /// What its classes did in the window, if it is a tree of them, in their order in the scenario.
    pub fn classes(&self) -> impl Iterator<Item = ClassCount> {
        let now = self.queue.as_tree().map(Htb::counts).unwrap_or_default();
        let before = self.classes.iter().copied().chain(repeat(ClassCount::default()));
        now.into_iter().zip(before).map(|(now, before)| now.since(before))
    }

    /// Its stations, if it is an access point, and what each got in the window.
    pub fn stations(&self) -> impl Iterator<Item = (Station, StationCount)> {
        let wifi = self.queue.as_wifi().into_iter();
        let now = wifi.flat_map(|wifi| wifi.stations().iter().copied().zip(wifi.counts()));
        let before = self.stations.iter().copied().chain(repeat(StationCount::default()));
        now.zip(before).map(|((station, now), before)| (station, now.since(before)))
    }

    /// Counts by group, too; `of` gives the group of each flow. Only before the first packet.
    pub(crate) fn count_groups(&mut self, of: Vec<u16>) {
        self.service.server.count_groups(of);
    }

    /// Measures the delays of each of `flows` flows, too. Only before the first packet.
    pub(crate) fn measure_delays(&mut self, flows: usize) {
        self.service.server.measure_delays(flows);
    }

    /// Sets what the queue takes for each flow's identity. Only before the first packet.
    pub(crate) fn identify(&mut self, identities: &Identities) {
        self.service.identities = Some(identities.clone());
    }

    /// The statistics, up to the last change.
    pub fn stats(&self) -> &QueueStats {
        self.service.server.stats()
    }

    /// How long the link has been idle since time 0, in ns.
    pub fn idle(&self, now: u64) -> u64 {
        self.stats().idle_until(now)
    }

    /// The summary of the window that ends at `now`, which must be caught up to.
    pub fn summary(&self, now: u64) -> QueueSummary {
        self.service.server.summary(now, self.queue.counters())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{END, Event, Network};
    use aqm::Limit;

    /// Later than anything happens.
    const LATE: u64 = u64::MAX >> 8;

    /// A network of one link.
    fn network(link: Link) -> Network {
        Network::new(vec![link], vec![0, END], 0)
    }

    fn link(rate: Rate, delay: Duration, packets: u64) -> Network {
        let mut rng = Rng::new(1, 0);
        let limit = Limit::packets(packets).unwrap();
        let env = Env::new(limit, rate);
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
    fn a_packet_that_arrives_as_another_departs_finds_room() {
        let mut l = link(Rate::from_mbit(8), Duration::ZERO, 1);
        [0, 0, 1_000_000].into_iter().for_each(|now| l.forward(now, &packet(1000)));
        assert_eq!(l.queue(0).unwrap().queue().counters().all_dropped().packets, 0);
    }
}
