//! What is on a wire, in the order in which it comes out.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use aqm::Meta;

use super::arena::Handle;

/// A packet on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    /// When it comes out, ns.
    pub(super) at: u64,
    pub(super) meta: Meta,
    pub(super) handle: Handle,
    /// How often it comes out.
    pub(super) copies: u8,
    /// Which bit of it is wrong, if one is.
    pub(super) damage: Option<u64>,
}

/// Packets that follow each other stand in a line, which costs nothing; those that overtake one of it
/// are in a heap.
#[derive(Debug, Default)]
pub(super) struct Flights {
    line: VecDeque<Numbered>,
    early: BinaryHeap<Reverse<Numbered>>,
    /// How many went in.
    count: u64,
}

/// With its number among all that went in: of two that come out together the first is first.
#[derive(Clone, Copy, Debug)]
struct Numbered(u64, InFlight);

impl Numbered {
    fn key(&self) -> (u64, u64) {
        (self.1.at, self.0)
    }
}

impl Ord for Numbered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Numbered {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Numbered {}

impl Flights {
    /// With memory for `most` packets, all of which may overtake if packets `overtake` at all.
    pub(super) fn new(most: usize, overtake: bool) -> Self {
        let mut flights = Self::default();
        flights.reserve(most, overtake);
        flights
    }

    /// Takes memory for `more` packets beside those that are here.
    pub(super) fn reserve(&mut self, more: usize, overtake: bool) {
        self.line.reserve(more);
        self.early.reserve(if overtake { more } else { 0 });
    }

    /// A packet is put onto the wire.
    #[inline]
    pub(super) fn push(&mut self, flight: InFlight) {
        let next = Numbered(self.count, flight);
        self.count += 1;
        match self.line.back() {
            Some(last) if last.1.at > flight.at => self.early.push(Reverse(next)),
            _ => self.line.push_back(next),
        }
    }

    /// What comes out next.
    #[inline]
    pub(super) fn first(&self) -> Option<&InFlight> {
        let line = self.line.front();
        let first = match self.early.peek() {
            Some(Reverse(early)) if line.is_none_or(|line| early < line) => Some(early),
            _ => line,
        };
        first.map(|flight| &flight.1)
    }

    /// Takes out what comes out next, if it does so up to `now` (ns).
    #[inline]
    pub(super) fn pop_until(&mut self, now: u64) -> Option<InFlight> {
        let line = self.line.front().copied();
        if let Some(&Reverse(early)) = self.early.peek()
            && line.is_none_or(|line| early < line)
        {
            return (early.1.at <= now).then(|| self.early.pop()).flatten().map(|next| next.0.1);
        }
        line.filter(|line| line.1.at <= now)?;
        self.line.pop_front().map(|next| next.1)
    }

    /// When the last of all comes out, ns; 0 if nothing is here.
    #[inline]
    pub(super) fn last_at(&self) -> u64 {
        // A packet of `early` comes before one of the line, which comes out later and is still there.
        self.line.back().map_or(0, |last| last.1.at)
    }

    /// Takes all off the wire, in order.
    fn take_all(&mut self) -> Vec<Numbered> {
        let early = self.early.drain().map(|Reverse(flight)| flight);
        let mut all: Vec<Numbered> = self.line.drain(..).chain(early).collect();
        all.sort_unstable();
        all
    }

    /// Lets each come out at another time, ns, by a rule that keeps their order; all stand in line then.
    pub(super) fn reschedule(&mut self, rule: impl Fn(u64) -> u64) {
        let mut all = self.take_all();
        all.iter_mut().for_each(|flight| flight.1.at = rule(flight.1.at));
        self.line.extend(all);
    }

    /// Takes a packet off the wire; all others stand in line then.
    pub(super) fn remove(&mut self, handle: Handle) -> Option<InFlight> {
        let mut all = self.take_all();
        let place = all.iter().position(|flight| flight.1.handle == handle);
        let found = place.map(|place| all.remove(place).1);
        self.line.extend(all);
        found
    }

    /// All, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.line.iter().map(|f| &f.1).chain(self.early.iter().map(|f| &f.0.1))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.line.len() + self.early.len()
    }

    /// For how many there is memory without taking more.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.line.capacity() + self.early.capacity()
    }
}

#[cfg(test)]
mod tests {
    use aqm::{Ecn, FlowKey, Instant};
    use proptest::prelude::*;

    use super::*;

    fn flight(at: u64, seq: u32) -> InFlight {
        let meta = Meta { len: 100, ecn: Ecn::NotEct, flow: FlowKey(0), arrived: Instant::ZERO };
        InFlight {
            at,
            meta,
            handle: Handle { slot: seq, seq, ..Handle::default() },
            copies: 1,
            damage: None,
        }
    }

    proptest! {
        /// As a list that is sorted by time, in which what comes later stands behind what it equals.
        #[test]
        fn packets_come_out_as_from_a_sorted_list(
            steps in prop::collection::vec((0u64..30, 0u8..4, 0u32..60), 0..200),
        ) {
            let (mut flights, mut list) = (Flights::new(8, true), Vec::<InFlight>::new());
            let mut now = 0;
            for (seq, &(later, kind, other)) in steps.iter().enumerate() {
                let seq = seq as u32;
                match kind {
                    0 | 1 => {
                        let next = flight(now + later, seq);
                        flights.push(next);
                        let place = list.partition_point(|f| f.at <= next.at);
                        list.insert(place, next);
                    }
                    2 => {
                        now += later / 4;
                        while let Some(next) = flights.pop_until(now) {
                            let expected = list.remove(0);
                            prop_assert_eq!(next.handle, expected.handle);
                        }
                        prop_assert!(list.first().is_none_or(|f| f.at > now));
                    }
                    _ => {
                        let handle = Handle { slot: other, seq: other, ..Handle::default() };
                        let place = list.iter().position(|f| f.handle == handle);
                        let expected = place.map(|place| list.remove(place).at);
                        prop_assert_eq!(flights.remove(handle).map(|f| f.at), expected);
                    }
                }
                prop_assert_eq!(flights.len(), list.len());
                prop_assert_eq!(flights.iter().count(), list.len());
                let first = list.first().map(|f| f.handle);
                prop_assert_eq!(flights.first().map(|f| f.handle), first);
                let last = list.last().map_or(0, |f| f.at);
                prop_assert_eq!(flights.last_at(), last);
            }
        }
    }
}
