//! The flows that send most: fixed memory and constant work a packet, however many flows there are.
//!
//! Each flow has one of 256 places by its key; a place keeps the flow that has the most bytes there, found by
//! a vote (Boyer and Moore): bytes of others count against it, and when they are more, the next packet's flow
//! takes over. A flow with more than half of its place's bytes is always found. Counting starts anew every
//! second; reports are of the last full second.

use aqm::FlowKey;

use crate::frame::Flow;

const PLACES: usize = 256;
/// A second, ns.
const WINDOW: u64 = 1_000_000_000;

/// What a flow did within a second.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Whose it is.
    pub flow: Flow,
    key: FlowKey,
    /// Packets that arrived.
    pub packets: u64,
    /// Bytes that arrived.
    pub bytes: u64,
    /// Packets that were dropped.
    pub drops: u64,
    /// Packets that were marked.
    pub marks: u64,
    /// Bytes for it less those against it.
    votes: u64,
}

/// Counts the largest flows.
#[derive(Debug)]
pub(crate) struct Flows {
    now: Box<[Tally]>,
    last: Box<[Tally]>,
    /// When the present second began, ns.
    since: u64,
}

impl Flows {
    pub(crate) fn new() -> Self {
        let places = || vec![Tally::default(); PLACES].into_boxed_slice();
        Self { now: places(), last: places(), since: 0 }
    }

    /// A packet of `len` bytes arrives at `now` (ns).
    pub(crate) fn arrived(&mut self, now: u64, key: FlowKey, flow: &Flow, len: u32) {
        self.turn(now);
        let place = &mut self.now[place(key)];
        let len = u64::from(len);
        if place.key == key && place.packets > 0 {
            place.votes += len;
        } else if place.votes > len {
            place.votes -= len;
            return;
        } else {
            *place = Tally { flow: *flow, key, votes: len, ..Tally::default() };
        }
        place.packets += 1;
        place.bytes += len;
    }

    /// A packet of this flow was dropped.
    pub(crate) fn dropped(&mut self, key: FlowKey) {
        let place = &mut self.now[place(key)];
        place.drops += u64::from(place.key == key);
    }

    /// A packet of this flow was marked.
    pub(crate) fn marked(&mut self, key: FlowKey) {
        let place = &mut self.now[place(key)];
        place.marks += u64::from(place.key == key);
    }

    /// The `count` largest flows of the last full second before `now` (ns), the largest first.
    pub(crate) fn top(&mut self, now: u64, count: usize) -> Vec<Tally> {
        self.turn(now);
        let mut all: Vec<Tally> = self.last.iter().filter(|t| t.packets > 0).copied().collect();
        all.sort_unstable_by_key(|t| (std::cmp::Reverse(t.bytes), t.flow.source, t.flow.ports));
        all.truncate(count);
        all
    }

    /// Begins another second if the present one is over.
    fn turn(&mut self, now: u64) {
        let passed = now.saturating_sub(self.since) / WINDOW;
        if passed == 0 {
            return;
        }
        std::mem::swap(&mut self.now, &mut self.last);
        self.now.fill(Tally::default());
        if passed > 1 {
            self.last.fill(Tally::default());
        }
        self.since += passed * WINDOW;
    }
}

fn place(key: FlowKey) -> usize {
    key.0 as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(number: u16) -> Flow {
        Flow { ports: [number, 0], ..Flow::default() }
    }

    /// Ten elephants with 1 MB each among 10 000 mice of one packet each.
    #[test]
    fn elephants_are_found_among_mice() {
        let mut flows = Flows::new();
        for n in 0..10_000u64 {
            flows.arrived(n * 10_000, FlowKey(1000 + n * 7919), &flow(9999), 100);
            let elephant = n % 10;
            let key = FlowKey(elephant * 25 + 3);
            flows.arrived(n * 10_000, key, &flow(elephant as u16), 1000);
            if n == 5 {
                flows.dropped(key);
                flows.marked(key);
                flows.marked(FlowKey(77));
            }
        }
        assert_eq!(flows.top(999_999_999, 10), [], "the second is not over");
        let top = flows.top(1_000_000_000, 10);
        let ports: Vec<u16> = top.iter().map(|t| t.flow.ports[0]).collect();
        assert_eq!(ports, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(top.iter().all(|t| (t.packets, t.bytes) == (1000, 1_000_000)));
        assert_eq!((top[5].drops, top[5].marks, top[0].marks), (1, 1, 0));
        assert_eq!(flows.top(3_000_000_000, 10), [], "and nothing came in the second before this");
    }

    /// Of two flows at the same place the larger one is reported, whichever came first.
    #[test]
    fn the_larger_of_two_at_a_place_stays() {
        let mut flows = Flows::new();
        for n in 0..100 {
            flows.arrived(n, FlowKey(1), &flow(1), 100);
            flows.arrived(n, FlowKey(1 + PLACES as u64), &flow(2), 1000);
        }
        let top = flows.top(WINDOW, 10);
        assert_eq!(top.len(), 1);
        assert_eq!(top[0].flow, flow(2));
    }
}
