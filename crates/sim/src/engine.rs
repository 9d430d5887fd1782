//! The event list. It holds sources of events (links and flows), never packets.

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
/// path from leaf to root without branches on data.
#[derive(Clone, Debug)]
pub(crate) struct WinnerTree<const NODES: usize> {
    /// Its keys are the sources', or the winners of the first blocks below.
    root: [u64; NODES],
    /// The blocks below, level by level: the keys of block `b` are the winners of the blocks
    /// `FAN · (b + 1)` and on, and those of the last level belong to sources.
    blocks: Box<[[u64; NODES]]>,
    /// How many keys there are above those of sources 0 and on.
    first_leaf: usize,
    /// Bits of a key that number the source; the rest is time.
    source_bits: u32,
    source_mask: u64,
    /// Never: the latest time that a key can hold. Later ones count as it.
    never: u64,
}

impl<const NODES: usize> WinnerTree<NODES> {
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
        let source_bits = sources.next_power_of_two().trailing_zeros().max(1);
        let empty = [u64::MAX; NODES];
        Self {
            root: empty,
            blocks: vec![empty; blocks].into_boxed_slice(),
            first_leaf,
            source_bits,
            source_mask: (1 << source_bits) - 1,
            never: u64::MAX >> source_bits,
        }
    }

    /// The earliest time, [`WinnerTree::never`] if no source has one.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.root[1] >> self.source_bits
    }

    /// The source of the earliest time.
    #[inline]
    pub(crate) fn source(&self) -> usize {
        (self.root[1] & self.source_mask) as usize
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: u64) {
        let mut winner = time.min(self.never) << self.source_bits | source as u64;
        let mut leaf = source;
        if self.first_leaf > 0 {
            (winner, leaf) = self.play_below(source, winner);
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

/// The event list of a simulation: links, whose events are packets arriving at their far end, and
/// flows, whose events are timers. Two trees, so that the few busy links have a short path: the
/// flows' winner is the last source of the links' tree.
#[derive(Clone, Debug)]
pub struct EventList {
    links: WinnerTree<64>,
    flows: WinnerTree<64>,
    link_count: usize,
}

/// The source of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The link with this number.
    Link(usize),
    /// The flow with this number.
    Flow(usize),
}

impl EventList {
    /// An empty list for `links` links and `flows` flows.
    pub fn new(links: usize, flows: usize) -> Self {
        let (link_count, links) = (links, WinnerTree::new(links + 1));
        Self { links, flows: WinnerTree::new(flows), link_count }
    }

    /// The end of time in ns: what is scheduled then or later never comes.
    pub fn horizon(&self) -> u64 {
        self.links.never.min(self.flows.never)
    }

    /// Sets the next event of a link, in ns; `u64::MAX` for none.
    #[inline]
    pub fn set_link(&mut self, link: usize, time: u64) {
        self.links.set(link, time);
    }

    /// Sets the next event of a flow, in ns; `u64::MAX` for none.
    #[inline]
    pub fn set_flow(&mut self, flow: usize, time: u64) {
        let before = self.flows.time();
        self.flows.set(flow, time);
        let first = self.flows.time();
        if first != before {
            self.links.set(self.link_count, first);
        }
    }

    /// The time of the next event in ns, at least [`EventList::horizon`] if there is none.
    #[inline]
    pub fn time(&self) -> u64 {
        self.links.time()
    }

    /// The next event; at equal times links come first. It stays in the list until its source sets
    /// another.
    #[inline]
    pub fn next(&self) -> Event {
        let source = self.links.source();
        if source < self.link_count {
            Event::Link(source)
        } else {
            Event::Flow(self.flows.source())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_ties_in_order_of_source() {
        let mut list = EventList::new(3, 5);
        list.set_flow(4, 10);
        list.set_flow(2, 10);
        list.set_link(1, 10);
        list.set_link(2, 7);
        let mut seen = Vec::new();
        while list.time() < list.horizon() {
            let (time, event) = (list.time(), list.next());
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
        assert_eq!((list.time(), list.next()), (horizon - 1, Event::Flow(0)));
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
            let time = rng.below(1000) as u64;
            naive[source] = time;
            if source < links {
                list.set_link(source, time);
            } else {
                list.set_flow(source - links, time);
            }
            let best = (0..naive.len()).min_by_key(|&i| (naive[i], i)).unwrap();
            let event = if best < links { Event::Link(best) } else { Event::Flow(best - links) };
            assert_eq!((list.time(), list.next()), (naive[best], event));
        }
    }

    #[test]
    fn a_million_flows_leave_hours_of_time() {
        let list = EventList::new(30, 1_000_000);
        assert!(list.horizon() > 4 * 3_600 * 1_000_000_000);
    }
}
