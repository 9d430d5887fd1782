//! The event list: timers of flows, and packets in the order in which they come to the far ends of
//! their links.

use crate::memory::room_for;
use crate::packet::Packet;
use crate::ring::Ring;
use crate::wheel::Wheel;

/// Sets a key in a winner tree over half as many keys as it has entries, and returns the winner:
/// entry 1. The keys are in the upper half. The size is fixed so that the way to the top is straight
/// code.
#[inline(always)]
fn play<const NODES: usize>(block: &mut [u64; NODES], leaf: usize, mut key: u64) -> u64 {
    let fan = NODES / 2;
    let mut node = fan + leaf % fan;
    block[node] = key;
    for _ in 0..fan.trailing_zeros() {
        key = key.min(block[node ^ 1]);
        node /= 2;
        block[node] = key;
    }
    key
}

/// A winner tree over a fixed number of sources: each has at most one next event. Blocks of
/// `NODES` / 2 keys find the winner of as many sources or blocks below.
///
/// A key packs (time in ns, source), so that events at the same time come in the order of their
/// sources' numbers, and finding the next event is reading the root. Setting a time rewrites the
/// path from leaf to root without branches on data. The lowest `SPARE` bits of a key are 0.
#[derive(Clone, Debug)]
pub(crate) struct WinnerTree<const NODES: usize, const SPARE: u32> {
    /// Its keys are the sources', or the winners of the first blocks below.
    root: [u64; NODES],
    /// The blocks below, level by level: the keys of block `b` are the winners of the blocks
    /// `FAN · (b + 1)` and on, and those of the last level belong to sources.
    blocks: Box<[[u64; NODES]]>,
    /// How many keys there are above those of sources 0 and on.
    first_leaf: usize,
    /// Bits of a key below its time: the source's number, and below that the spare ones.
    low_bits: u32,
    low_mask: u64,
    /// Never: the latest time that a key can hold. Later ones count as it.
    never: u64,
}

impl<const NODES: usize, const SPARE: u32> WinnerTree<NODES, SPARE> {
    /// Keys of a block: a power of two.
    const FAN: usize = NODES / 2;

    pub(crate) fn new(sources: usize) -> Self {
        // Keys are numbered through: the root's are 0 … FAN − 1, those of block b the FAN from
        // FAN·(b + 1) on.
        let (mut first_leaf, mut keys) = (0, Self::FAN);
        while keys < sources {
            first_leaf += keys;
            keys *= Self::FAN;
        }
        let blocks =
            if first_leaf == 0 { 0 } else { (first_leaf + sources).div_ceil(Self::FAN) - 1 };
        let low_bits = sources.next_power_of_two().trailing_zeros().max(1) + SPARE;
        let empty = [u64::MAX; NODES];
        let mut filled = room_for(blocks);
        filled.resize(blocks, empty);
        Self {
            root: empty,
            blocks: filled.into_boxed_slice(),
            first_leaf,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            never: u64::MAX >> low_bits,
        }
    }

    /// The key of `time` and `source`.
    #[inline(always)]
    fn key(&self, time: u64, source: usize) -> u64 {
        time.min(self.never) << self.low_bits | (source as u64) << SPARE
    }

    /// The time of a key.
    #[inline(always)]
    pub(crate) fn time_of(&self, key: u64) -> u64 {
        key >> self.low_bits
    }

    /// The source of a key.
    #[inline(always)]
    pub(crate) fn source_of(&self, key: u64) -> usize {
        ((key & self.low_mask) >> SPARE) as usize
    }

    /// The earliest key, with the time [`WinnerTree::never`] if no source has one.
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.root[1]
    }

    /// The earliest time, [`WinnerTree::never`] if no source has one.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.time_of(self.first())
    }

    /// The source of the earliest time.
    #[inline]
    pub(crate) fn source(&self) -> usize {
        self.source_of(self.first())
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: u64) {
        self.set_key(self.key(time, source));
    }

    /// Sets the time of a source, given as their key.
    #[inline]
    pub(crate) fn set_key(&mut self, key: u64) {
        let (mut winner, mut leaf) = (key, self.source_of(key));
        if self.first_leaf > 0 {
            (winner, leaf) = self.play_below(leaf, winner);
        }
        play(&mut self.root, leaf, winner);
    }

    /// Plays in the blocks below the root; the winner and its place in the root.
    #[inline(never)]
    fn play_below(&mut self, source: usize, key: u64) -> (u64, usize) {
        let (mut place, mut winner) = (self.first_leaf + source, key);
        while place >= Self::FAN {
            let block = place / Self::FAN - 1;
            winner = play(&mut self.blocks[block], place, winner);
            place = block;
        }
        (winner, place)
    }
}

/// A packet on its way over a wire.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Flight {
    /// When it arrives at the far end, and of which source it is, as a key of the timetable.
    pub(crate) key: u64,
    pub(crate) packet: Packet,
}

impl Flight {
    /// Writes a packet that comes to `hop` next, in place.
    #[inline(always)]
    pub(crate) fn set(&mut self, key: u64, packet: &Packet, hop: u32) {
        self.key = key;
        self.packet = *packet;
        self.packet.hop = hop;
    }
}

/// What comes next of several sources, of which each sends its packets in the order in which they
/// arrive, and may have another event beside.
///
/// Packets of all sources lie in a few *lanes*, each in order: wires of equal delay lead to one
/// order, so a packet nearly always goes to the end of a lane, and the next one is at the head of a
/// lane. What fits at the end of no lane waits on its source's own wire, whose first packet is in
/// the winner tree with the other events.
#[derive(Clone, Debug)]
pub(crate) struct Timetable<const NODES: usize, const LANES: usize> {
    /// Of each lane: the key of its first flight with the lane's number in the spare bits, or
    /// `u64::MAX` if it is empty.
    heads: [u64; LANES],
    /// Of each lane: the key of the last flight that went in.
    tails: [u64; LANES],
    lanes: [Ring<Flight>; LANES],
    tree: WinnerTree<NODES, LANE_BITS>,
    /// The key of what else there is, beside the sources.
    beside: u64,
    /// Nothing from this key on is asked for.
    end: u64,
    /// The first of the tree's keys, `beside` and `end`.
    other: u64,
}

/// So many packets before it comes, what a packet needs is fetched from memory.
const AHEAD: usize = 8;

/// Bits that number a lane.
const LANE_BITS: u32 = 2;

/// In place of a lane's number for what has to wait elsewhere.
pub(crate) const NO_LANE: u8 = u8::MAX;

/// A source as it is in the keys of a [`Timetable`].
pub(crate) fn source_in_key(source: usize) -> u64 {
    (source as u64) << LANE_BITS
}

impl<const NODES: usize, const LANES: usize> Timetable<NODES, LANES> {
    pub(crate) fn new(sources: usize) -> Self {
        const { assert!(LANES <= 1 << LANE_BITS) };
        Self {
            heads: [u64::MAX; LANES],
            tails: [0; LANES],
            lanes: std::array::from_fn(|_| Ring::new()),
            tree: WinnerTree::new(sources),
            beside: u64::MAX,
            end: u64::MAX,
            other: u64::MAX,
        }
    }

    /// The key of `time` (ns) and of a source that is given as [`source_in_key`].
    #[inline(always)]
    pub(crate) fn key(&self, time: u64, source_in_key: u64) -> u64 {
        self.tree.key(time, 0) | source_in_key
    }

    /// The key of `time` (ns) and `source`.
    #[inline]
    pub(crate) fn key_of(&self, time: u64, source: usize) -> u64 {
        self.tree.key(time, source)
    }

    /// The time of a key, ns.
    #[inline(always)]
    pub(crate) fn time_of(&self, key: u64) -> u64 {
        self.tree.time_of(key)
    }

    /// The source of a key.
    #[inline(always)]
    pub(crate) fn source_of(&self, key: u64) -> usize {
        self.tree.source_of(key)
    }

    /// The first key of all lanes, with the lane's number in the spare bits.
    #[inline(always)]
    pub(crate) fn first_in_lanes(&self) -> u64 {
        self.heads.iter().fold(u64::MAX, |first, &head| first.min(head))
    }

    /// The first key that is not in lanes, or where nothing more is asked for.
    #[inline(always)]
    pub(crate) fn other(&self) -> u64 {
        self.other
    }

    /// The first key of all, but for spare bits.
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.first_in_lanes().min(self.tree.first())
    }

    /// Whether there is nothing at all.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.time_of(self.first()) == self.tree.never
    }

    /// Sets the time of a source that is not in lanes, given as their key.
    #[inline(always)]
    pub(crate) fn set_key(&mut self, key: u64) {
        self.tree.set_key(key);
        self.look();
    }

    /// Sets the key of what else there is.
    #[inline(always)]
    fn set_beside(&mut self, key: u64) {
        self.beside = key;
        self.look();
    }

    #[inline(always)]
    fn look(&mut self) {
        self.other = self.tree.first().min(self.beside).min(self.end);
    }

    /// Puts in a packet, at the end of the lane that `hint` names if that keeps the order; it is
    /// corrected if another one was better. Returns whether nothing was before it there, or `None` if
    /// it keeps the order nowhere, or the hint is [`NO_LANE`], and it has to wait elsewhere.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        key: u64,
        packet: &Packet,
        hop: u32,
        hint: &mut u8,
    ) -> Option<bool> {
        let mut lane = usize::from(*hint);
        if lane >= LANES {
            return None;
        }
        if self.tails[lane] > key {
            lane = self.best_lane(key)?;
            *hint = lane as u8;
        }
        self.tails[lane] = key;
        self.lanes[lane].push().set(key, packet, hop);
        let first = self.heads[lane] == u64::MAX;
        if first {
            self.heads[lane] = key | lane as u64;
        }
        Some(first)
    }

    /// The fullest lane to the end of which `key` can go.
    #[inline(never)]
    fn best_lane(&self, key: u64) -> Option<usize> {
        (0..LANES).filter(|&lane| self.tails[lane] <= key).max_by_key(|&lane| self.tails[lane])
    }

    /// Packets that were ever taken from the lanes.
    pub(crate) fn taken_from_lanes(&self) -> usize {
        self.lanes.iter().map(Ring::taken).sum()
    }

    /// The packet that comes some time after the first of the lanes, behind it in its lane.
    #[inline]
    pub(crate) fn ahead(&self) -> Option<&Packet> {
        let lane = (self.first_in_lanes() % (1 << LANE_BITS)) as usize % LANES;
        self.lanes[lane].peek(AHEAD).map(|flight| &flight.packet)
    }

    /// Takes out the first packet of the lanes, which is there: its key was `first`.
    #[inline(always)]
    pub(crate) fn take(&mut self, first: u64, packet: &mut Packet) {
        let lane = (first % (1 << LANE_BITS)) as usize % LANES;
        let ring = &mut self.lanes[lane];
        let next = ring.take(|flight| *packet = flight.packet);
        self.heads[lane] = next.map_or(u64::MAX, |flight| flight.key | lane as u64);
    }
}

/// The event list of a simulation: links, whose events are packets arriving at their far end, and
/// flows, whose events are timers. The flows have a tree of their own, so that the few busy links
/// have a short path.
#[derive(Clone, Debug)]
pub(crate) struct EventList {
    /// What comes first of the flows is beside the links, after all of them.
    pub(crate) links: Timetable<64, 4>,
    /// Events of flows at their times.
    flows: WinnerTree<64, 0>,
    /// Whether a flow has one there.
    timed: Box<[bool]>,
    /// Events of flows that mostly move on before they come.
    moving: Wheel,
    link_count: usize,
}

impl EventList {
    /// An empty list for `links` links and `flows` flows.
    pub(crate) fn new(links: usize, flows: usize) -> Self {
        Self {
            links: Timetable::new(links + 1),
            flows: WinnerTree::new(flows),
            timed: vec![false; flows].into(),
            moving: Wheel::new(flows),
            link_count: links,
        }
    }

    /// The end of time in ns: what is scheduled then or later never comes.
    pub(crate) fn horizon(&self) -> u64 {
        self.links.tree.never.min(self.flows.never)
    }

    /// Nothing from `end` (ns) on is asked for.
    pub(crate) fn set_end(&mut self, end: u64) {
        self.links.end = self.links.key_of(end, 0);
        self.links.look();
    }

    /// Nothing comes before it, ns.
    #[inline(always)]
    pub(crate) fn time(&self) -> u64 {
        self.links.time_of(self.links.first_in_lanes().min(self.links.other))
    }

    /// The first of what is in no lane: its key, or `None` if nothing more is asked for.
    #[inline(always)]
    pub(crate) fn first_elsewhere(&self) -> Option<u64> {
        Some(self.links.other).filter(|&key| key < self.links.end)
    }

    /// Whether a key is that of what comes first of the flows.
    #[inline(always)]
    pub(crate) fn is_of_flows(&self, key: u64) -> bool {
        key == self.links.beside
    }

    /// Whether what comes first of the flows is the time to look for events that have moved on.
    #[inline(always)]
    pub(crate) fn is_to_look(&self) -> bool {
        self.moving.begins() <= self.flows.time()
    }

    /// Begins to look at what may have moved on: the first of the flows to look at.
    #[inline]
    pub(crate) fn begin_look(&mut self) -> Option<usize> {
        let first = self.moving.begin();
        self.list_flows();
        first
    }

    /// A flow is looked at: the next one, and whether this one waits for a time already. If it does
    /// not its event has to be set anew.
    #[inline(always)]
    pub(crate) fn look_at(&mut self, flow: usize) -> (Option<usize>, bool) {
        (self.moving.take(flow), self.timed[flow])
    }

    /// Sets the next event of a link, in ns; `u64::MAX` for none.
    #[inline]
    pub(crate) fn set_link(&mut self, link: usize, time: u64) {
        self.links.set_key(self.links.key_of(time, link));
    }

    /// Sets the next event of a flow, in ns; `u64::MAX` for none.
    #[inline]
    pub(crate) fn set_flow(&mut self, flow: usize, time: u64) {
        self.timed[flow] = time < u64::MAX;
        self.flows.set(flow, time);
        self.list_flows();
    }

    /// Sets the next event of a flow, in ns, which is likely to move on before it comes. Then it is
    /// not an event, but looked at ([`EventList::look_at`]) not long before.
    #[inline]
    pub(crate) fn set_moving(&mut self, flow: usize, time: u64) {
        let before = self.moving.begins();
        if !self.moving.put(flow, time) {
            self.set_flow(flow, time);
        } else if self.timed[flow] {
            self.set_flow(flow, u64::MAX);
        } else if self.moving.begins() < before {
            self.list_flows();
        }
    }

    #[inline]
    fn list_flows(&mut self) {
        let first = self.flows.time().min(self.moving.begins());
        self.links.set_beside(self.links.key_of(first, self.link_count));
    }

    /// The flow whose event comes first.
    #[inline]
    pub(crate) fn flow(&self) -> usize {
        self.flows.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Event {
        Link(usize),
        Flow(usize),
    }

    /// The first event and its time.
    fn first(list: &EventList) -> (u64, Event) {
        let key = list.links.other();
        let event = if list.is_of_flows(key) {
            Event::Flow(list.flow())
        } else {
            Event::Link(list.links.source_of(key))
        };
        (list.time(), event)
    }

    #[test]
    fn events_come_in_order_of_time_and_ties_in_order_of_source() {
        let mut list = EventList::new(3, 5);
        list.set_flow(4, 10);
        list.set_flow(2, 10);
        list.set_link(1, 10);
        list.set_link(2, 7);
        let mut seen = Vec::new();
        while list.time() < list.horizon() {
            let (time, event) = first(&list);
            seen.push((time, event));
            match event {
                Event::Link(i) => list.set_link(i, u64::MAX),
                Event::Flow(i) => list.set_flow(i, u64::MAX),
            }
        }
        let expected =
            [(7, Event::Link(2)), (10, Event::Link(1)), (10, Event::Flow(2)), (10, Event::Flow(4))];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_comes_at_the_horizon_never_comes() {
        let mut list = EventList::new(1, 1);
        let horizon = list.horizon();
        list.set_flow(0, horizon - 1);
        list.set_link(0, horizon);
        assert_eq!(first(&list), (horizon - 1, Event::Flow(0)));
        list.set_flow(0, u64::MAX);
        assert_eq!(list.time(), horizon);
    }

    #[test]
    fn a_naive_list_gives_the_same_order() {
        let mut rng = aqm::Rng::new(1, 0);
        for (links, flows) in [(0, 1), (7, 32), (33, 37), (40, 1025)] {
            compare_with_a_naive_list(links, flows, &mut rng);
        }
    }

    fn compare_with_a_naive_list(links: usize, flows: usize, rng: &mut aqm::Rng) {
        let mut list = EventList::new(links, flows);
        let mut naive = vec![u64::MAX; links + flows];
        for _ in 0..5_000 {
            let source = rng.below(links + flows);
            // Over some slots of the wheel.
            let time = (rng.below(1000) as u64) << 15;
            naive[source] = time;
            if source < links {
                list.set_link(source, time);
            } else if rng.below(2) == 0 {
                list.set_flow(source - links, time);
            } else {
                list.set_moving(source - links, time);
            }
            while list.is_of_flows(list.links.other()) && list.is_to_look() {
                let mut next = list.begin_look();
                while let Some(flow) = next {
                    let (after, is_set) = list.look_at(flow);
                    if !is_set {
                        list.set_moving(flow, naive[links + flow]);
                    }
                    next = after;
                }
            }
            let best = (0..naive.len()).min_by_key(|&i| (naive[i], i)).unwrap();
            let event = if best < links { Event::Link(best) } else { Event::Flow(best - links) };
            assert_eq!(first(&list), (naive[best], event));
        }
    }

    /// Wires of 1, 2 … times 100 ns, more of them than there are lanes, and a backlog before some.
    #[test]
    fn packets_of_many_wires_come_in_order_through_lanes_and_past_them() {
        const SOURCES: usize = 9;
        let mut rng = aqm::Rng::new(3, 0);
        let mut table = Timetable::<16, 4>::new(SOURCES);
        let mut own: Vec<Ring<Flight>> = vec![Ring::new(); SOURCES];
        let (mut hints, mut last) = ([0; SOURCES], [0; SOURCES]);
        let (mut naive, mut past_the_lanes) = (std::collections::BTreeMap::new(), 0);
        for seq in 0..20_000 {
            let (source, now) = (rng.below(SOURCES), u64::from(seq) * 10);
            let at = (now + source as u64 * 100).max(last[source]) + 1 + rng.below(30) as u64;
            last[source] = at;
            naive.insert((at, source), seq);
            let packet = Packet { seq, ..Packet::default() };
            let key = table.key_of(at, source);
            if table.push(key, &packet, 7, &mut hints[source]).is_none() {
                if own[source].is_empty() {
                    table.set_key(key);
                }
                own[source].push().set(key, &packet, 7);
            }
            while table.time_of(table.first()) <= now {
                let (in_lanes, in_tree) = (table.first_in_lanes(), table.other());
                let key = in_lanes.min(in_tree);
                let (at, source) = (table.time_of(key), table.source_of(key));
                let mut packet = Packet::default();
                if in_lanes < in_tree {
                    table.take(in_lanes, &mut packet);
                } else {
                    past_the_lanes += 1;
                    let next = own[source].take(|flight| packet = flight.packet);
                    let next = next.map(|flight| flight.key);
                    table.set_key(next.unwrap_or(table.key_of(u64::MAX, source)));
                }
                assert_eq!((packet.seq, packet.hop), (naive[&(at, source)], 7));
                assert_eq!(naive.pop_first().map(|(key, _)| key), Some((at, source)));
            }
        }
        assert!((100..10_000).contains(&past_the_lanes), "{past_the_lanes}");
    }

    #[test]
    fn a_million_flows_leave_hours_of_time() {
        let list = EventList::new(30, 1_000_000);
        assert!(list.horizon() > 4 * 3_600 * 1_000_000_000);
    }
}
