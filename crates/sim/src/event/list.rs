//! The event list: timers of flows, and packets in the order in which they come to the far ends of
//! their links.

use super::lanes::Timetable;
use super::tree::WinnerTree;
use super::wheel::Wheel;

/// The event list of a simulation: links, whose events are packets arriving at their far end, and
/// flows, whose events are timers. The flows have a tree of their own, so that the few busy links
/// have a short path.
#[derive(Clone, Debug)]
pub(crate) struct EventList {
    /// The next event of each link. The place behind the last link holds the earliest event of all
    /// flows, which so comes after those of links at the same time.
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

    /// Events from `end` (ns) on do not matter.
    pub(crate) fn set_end(&mut self, end: u64) {
        self.links.end = self.links.key_of(end, 0);
        self.links.look();
    }

    /// The end of the run, ns: no event at this time or later is taken.
    pub(crate) fn end(&self) -> u64 {
        self.links.time_of(self.links.end)
    }

    /// Nothing comes before it, ns.
    #[inline(always)]
    pub(crate) fn time(&self) -> u64 {
        self.links.time_of(self.links.first_in_lanes().min(self.links.other()))
    }

    /// The key of the first event outside the lanes; `None` if it is past the end.
    #[inline(always)]
    pub(crate) fn first_elsewhere(&self) -> Option<u64> {
        Some(self.links.other()).filter(|&key| key < self.links.end)
    }

    /// Whether a key is that of what comes first of the flows.
    #[inline(always)]
    pub(crate) fn is_of_flows(&self, key: u64) -> bool {
        key == self.links.beside
    }

    /// Whether what comes first of the flows is the time to look for events that have moved on.
    #[inline(always)]
    pub(crate) fn is_timer_check_due(&self) -> bool {
        self.moving.begins() <= self.flows.time()
    }

    /// Begins to look at what may have moved on: the first of the flows to look at.
    #[inline]
    pub(crate) fn begin_timer_check(&mut self) -> Option<usize> {
        let first = self.moving.begin();
        self.list_flows();
        first
    }

    /// A flow is looked at: the next one, and whether this one waits for a time already. If it does
    /// not its event has to be set anew.
    #[inline(always)]
    pub(crate) fn check_timer(&mut self, flow: usize) -> (Option<usize>, bool) {
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
    /// not an event, but looked at ([`EventList::check_timer`]) not long before.
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

    /// A scenario that is longer would lose events without a word.
    #[test]
    fn the_horizon_is_the_one_that_scenarios_are_checked_against() {
        for links in [1, 2, 3, 4, 7, 8, 30, 1000, 1023, 1024, 10_000] {
            for flows in [1, 2, 3, 100, 4096, 4097, 100_000] {
                let promised = scenario::horizon(links, flows);
                let list = EventList::new(links as usize, flows as usize);
                assert_eq!(list.horizon(), promised, "{links} links, {flows} flows");
            }
        }
    }

    #[test]
    fn a_million_flows_leave_hours_of_time() {
        let list = EventList::new(30, 1_000_000);
        assert!(list.horizon() > 4 * 3_600 * 1_000_000_000);
    }
}
