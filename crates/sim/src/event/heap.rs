//! What the event list does, said as plainly as can be: a binary heap. The list itself is compared
//! with it, here and nowhere else.
//!
//! Events come in the order of their times; at one time, packets before timers, and each in the order
//! of their links' and flows' numbers. The packets of a link leave it one after another, never two at a
//! time. A flow has one timer, and setting it again forgets the one before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::{EventList, Flight, Ring};
use crate::packet::Packet;

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A packet comes to the far end of a link: the link, and the packet's number.
    Packet(usize, u32),
    /// The timer of a flow.
    Timer(usize),
}

/// The specification.
struct Heap {
    events: BinaryHeap<Reverse<(u64, Event)>>,
    /// When each flow's timer is due.
    timers: Vec<u64>,
}

impl Heap {
    fn push(&mut self, at: u64, link: usize, seq: u32) {
        self.events.push(Reverse((at, Event::Packet(link, seq))));
    }

    fn set_timer(&mut self, flow: usize, at: u64) {
        self.timers[flow] = at;
        self.events.push(Reverse((at, Event::Timer(flow))));
    }

    /// The first event before `end`, which is over.
    fn next(&mut self, end: u64) -> Option<(u64, Event)> {
        while self.events.peek().is_some_and(|Reverse((at, _))| *at < end) {
            let Reverse((at, event)) = self.events.pop()?;
            match event {
                Event::Timer(flow) if self.timers[flow] != at => {} // set again meanwhile
                Event::Timer(flow) => {
                    self.timers[flow] = u64::MAX;
                    return Some((at, event));
                }
                Event::Packet(..) => return Some((at, event)),
            }
        }
        None
    }
}

/// The event list, used as the network uses it.
struct List {
    list: EventList,
    /// Packets that found no lane, by link.
    wires: Vec<Ring<Flight>>,
    lanes: Vec<u8>,
    timers: Vec<u64>,
}

impl List {
    fn push(&mut self, at: u64, link: usize, seq: u32) {
        let packet = Packet { seq, ..Packet::default() };
        let links = &mut self.list.links;
        let key = links.key_of(at, link);
        if links.push(key, &packet, 0, &mut self.lanes[link]).is_none() {
            if self.wires[link].is_empty() {
                links.set_key(key);
            }
            self.wires[link].push().set(key, &packet, 0);
        }
    }

    /// Half the flows' timers mostly move on.
    fn set_timer(&mut self, flow: usize, at: u64) {
        self.timers[flow] = at;
        if flow.is_multiple_of(2) {
            self.list.set_moving(flow, at);
        } else {
            self.list.set_flow(flow, at);
        }
    }

    fn look(&mut self) {
        let mut next = self.list.begin_timer_check();
        while let Some(flow) = next {
            let (after, is_set) = self.list.check_timer(flow);
            if !is_set {
                self.list.set_moving(flow, self.timers[flow]);
            }
            next = after;
        }
    }

    fn next(&mut self, end: u64) -> Option<(u64, Event)> {
        self.list.set_end(end);
        loop {
            let mut packet = Packet::default();
            let first = self.list.links.first_in_lanes();
            let key = if first < self.list.links.other() {
                self.list.links.take(first, &mut packet);
                first
            } else {
                let key = self.list.first_elsewhere()?;
                if self.list.is_of_flows(key) {
                    if self.list.is_timer_check_due() {
                        self.look();
                        continue;
                    }
                    let flow = self.list.flow();
                    self.timers[flow] = u64::MAX;
                    self.list.set_flow(flow, u64::MAX);
                    return Some((self.list.links.time_of(key), Event::Timer(flow)));
                }
                let link = self.list.links.source_of(key);
                let next = self.wires[link].take(|flight| packet = flight.packet);
                let next = next.map_or(self.list.links.key_of(u64::MAX, link), |flight| flight.key);
                self.list.links.set_key(next);
                key
            };
            let links = &self.list.links;
            return Some((links.time_of(key), Event::Packet(links.source_of(key), packet.seq)));
        }
    }
}

/// Something is put in, so long after the present, or time goes on.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push(usize, u64),
    Timer(usize, u64),
    Run(u64),
}

fn step() -> impl Strategy<Value = Step> {
    // Few different times, so that many are equal; some beyond a slot of the wheel, or all slots.
    let after = prop_oneof![6 => (0u64..40).prop_map(|n| n * 50), 2 => (0u64..9).prop_map(|n| n << 20), 1 => (0u64..4).prop_map(|n| n << 31)];
    prop_oneof![
        4 => (any::<usize>(), after.clone()).prop_map(|(link, after)| Step::Push(link, after)),
        3 => (any::<usize>(), after.clone()).prop_map(|(flow, after)| Step::Timer(flow, after)),
        2 => after.prop_map(Step::Run),
    ]
}

proptest! {
    #[test]
    fn the_event_list_is_a_heap(
        links in 1usize..40, flows in prop_oneof![1usize..80, 1000usize..1100], steps in prop::collection::vec(step(), 1..400)
    ) {
        let timers = vec![u64::MAX; flows];
        let mut heap = Heap { events: BinaryHeap::new(), timers: timers.clone() };
        let mut list = List {
            list: EventList::new(links, flows),
            wires: vec![Ring::new(); links],
            lanes: vec![0; links],
            timers,
        };
        let mut last = vec![0; links];
        let mut now = 0;
        for (seq, step) in (0..).zip(steps.into_iter().chain([Step::Run(1 << 40)])) {
            match step {
                Step::Push(link, after) => {
                    let link = link % links;
                    last[link] = (now + after).max(last[link] + 1);
                    heap.push(last[link], link, seq);
                    list.push(last[link], link, seq);
                }
                Step::Timer(flow, after) => {
                    heap.set_timer(flow % flows, now + after);
                    list.set_timer(flow % flows, now + after);
                }
                Step::Run(after) => {
                    now += after;
                    loop {
                        let (expected, found) = (heap.next(now), list.next(now));
                        prop_assert_eq!(found, expected);
                        if expected.is_none() {
                            break;
                        }
                    }
                }
            }
        }
        prop_assert!(heap.events.is_empty());
    }
}
