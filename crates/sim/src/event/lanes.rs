//! Packets in the order in which they come to the far ends of their links.

use super::ring::Ring;
use super::tree::WinnerTree;
use crate::packet::Packet;

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
    pub(super) tree: WinnerTree<NODES, LANE_BITS>,
    /// The key of what else there is, beside the sources.
    pub(super) beside: u64,
    /// The end: keys from here on do not matter.
    pub(super) end: u64,
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

    /// The first key outside the lanes, or the end.
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
    #[inline(never)]
    pub(crate) fn set_key(&mut self, key: u64) {
        self.tree.set_key(key);
        self.look();
    }

    /// Sets the key of what else there is.
    #[inline(always)]
    pub(super) fn set_beside(&mut self, key: u64) {
        self.beside = key;
        self.look();
    }

    #[inline(always)]
    pub(super) fn look(&mut self) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
