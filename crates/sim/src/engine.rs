//! The event list. It holds sources of events (links and flows), never packets.

/// The index of an event source.
pub type Source = u32;

/// A winner tree over a fixed number of sources: each has at most one next event.
///
/// A key packs (time in ns, source), so that events at the same time come in the order of their
/// sources' numbers, and finding the next event is reading the root. Setting a key rewrites the
/// path from leaf to root without branches on data.
#[derive(Clone, Debug)]
struct WinnerTree {
    /// `nodes[1]` is the winner; the leaves start at `nodes.len() / 2`.
    nodes: Box<[u64]>,
}

impl WinnerTree {
    fn new(sources: usize) -> Self {
        let leaves = sources.next_power_of_two().max(2);
        Self { nodes: vec![u64::MAX; 2 * leaves].into_boxed_slice() }
    }

    fn winner(&self) -> u64 {
        self.nodes[1]
    }

    fn set(&mut self, source: usize, key: u64) {
        let mut node = self.nodes.len() / 2 + source;
        let mut best = key;
        self.nodes[node] = key;
        while node > 1 {
            best = best.min(self.nodes[node ^ 1]);
            node >>= 1;
            self.nodes[node] = best;
        }
    }
}

/// The event list of a simulation: links, whose events are packets arriving at their far end, and
/// flows, whose events are timers. Two trees, so that the few busy links have a short path.
#[derive(Clone, Debug)]
pub struct EventList {
    links: WinnerTree,
    flows: WinnerTree,
    /// Bits of a key that number the source; the rest is time.
    source_bits: u32,
    first_flow: Source,
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
        let sources = (links + flows).max(2) as u64;
        Self {
            links: WinnerTree::new(links),
            flows: WinnerTree::new(flows),
            source_bits: u64::BITS - (sources - 1).leading_zeros(),
            first_flow: links as Source,
        }
    }

    /// The latest time in ns that can be scheduled; later events count as never.
    pub fn horizon(&self) -> u64 {
        (u64::MAX >> self.source_bits) - 1
    }

    fn key(&self, time: u64, source: Source) -> u64 {
        if time > self.horizon() { u64::MAX } else { time << self.source_bits | u64::from(source) }
    }

    /// Sets the next event of a link, in ns; `u64::MAX` for none.
    pub fn set_link(&mut self, link: usize, time: u64) {
        let key = self.key(time, link as Source);
        self.links.set(link, key);
    }

    /// Sets the next event of a flow, in ns; `u64::MAX` for none.
    pub fn set_flow(&mut self, flow: usize, time: u64) {
        let key = self.key(time, self.first_flow + flow as Source);
        self.flows.set(flow, key);
    }

    /// The next event before `until` (in ns), with its time. It stays in the list until its source
    /// sets another.
    pub fn next_before(&self, until: u64) -> Option<(u64, Event)> {
        let key = self.links.winner().min(self.flows.winner());
        let time = key >> self.source_bits;
        if key == u64::MAX || time >= until {
            return None;
        }
        let source = (key & ((1 << self.source_bits) - 1)) as Source;
        Some(if source < self.first_flow {
            (time, Event::Link(source as usize))
        } else {
            (time, Event::Flow((source - self.first_flow) as usize))
        })
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
        while let Some((time, event)) = list.next_before(100) {
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
    fn the_bound_is_exclusive() {
        let mut list = EventList::new(1, 1);
        list.set_link(0, 5);
        assert_eq!(list.next_before(5), None);
        assert_eq!(list.next_before(6), Some((5, Event::Link(0))));
    }

    #[test]
    fn a_naive_list_gives_the_same_order() {
        let mut rng = aqm::Rng::new(1, 0);
        let (links, flows) = (7, 37);
        let mut list = EventList::new(links, flows);
        let mut naive = vec![u64::MAX; links + flows];
        for _ in 0..20_000 {
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
            assert_eq!(list.next_before(u64::MAX), Some((naive[best], event)));
        }
    }

    #[test]
    fn a_million_flows_leave_hours_of_time() {
        let list = EventList::new(30, 1_000_000);
        assert!(list.horizon() > 4 * 3_600 * 1_000_000_000);
    }
}
