//! What is remembered of flows that are not monitored: their drops in the last M lists.
//!
//! As a list ends, most flows need nothing. Only those are looked at that are identified, and those
//! whose drops of the oldest list are forgotten. Bits tell which; they are met in the order of places
//! in the table, as if all flows were looked at.

use alloc::boxed::Box;
use alloc::vec;

use super::responsive::Count;
use super::rules::{Drops, Found, Rules};
use crate::flow_table::{FlowTable, Id};
use crate::packet::FlowKey;
use crate::rng::Rng;

/// A flow that is not monitored and lost packets in the last M lists.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    drops: Drops,
    /// Its packets in the list at the place `counted`, where
    /// [`UnresponsiveRule::Pairs`](super::UnresponsiveRule::Pairs) asks for them. A flow without drops in M
    /// lists is forgotten, so that no list before can have had this place.
    list: Count,
    counted: u8,
}

impl Known {
    /// Its packets in the list at a place.
    fn list(&mut self, place: usize) -> &mut Count {
        if usize::from(self.counted) != place {
            (self.list, self.counted) = (Count::default(), place as u8);
        }
        &mut self.list
    }
}

/// The flows.
#[derive(Clone, Debug)]
pub(super) struct History {
    flows: FlowTable<Known>,
    /// By the place of a list, a bit for each flow that is to be looked at when its drops in the list are
    /// forgotten: one that has some there, or whose packets weigh nothing.
    in_list: Box<[Bits]>,
    identified: Bits,
}

/// A bit for each flow, by its place in the table.
#[derive(Clone, Debug)]
struct Bits(Box<[u64]>);

impl Bits {
    fn put(&mut self, id: Id, bit: bool) {
        let (word, place) = (id.index() / 64, id.index() % 64);
        self.0[word] = self.0[word] & !(1 << place) | u64::from(bit) << place;
    }
}

/// The places of the bits that are set in a word.
fn places(word: usize, mut bits: u64) -> impl Iterator<Item = Id> {
    core::iter::from_fn(move || {
        let place = (bits != 0).then(|| 64 * word + bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(Id::of(place))
    })
}

impl History {
    /// Room for so many flows, whose drops in `m` lists count.
    pub(super) fn new(capacity: u32, m: u32, rng: &mut Rng) -> Self {
        let bits = Bits(vec![0; capacity.div_ceil(64) as usize].into());
        Self {
            flows: FlowTable::new(capacity, rng),
            in_list: vec![bits.clone(); m as usize].into(),
            identified: bits,
        }
    }

    /// What it takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let bits = (self.in_list.len() + 1) * size_of_val(&*self.identified.0);
        self.flows.capacity() as u64 * FlowTable::<Known>::BYTES_PER_FLOW + bits as u64
    }

    /// A packet of a flow has come, where packets are counted.
    pub(super) fn arrived(&mut self, flow: FlowKey, rules: &Rules) {
        if let Some(id) = self.flows.find(flow) {
            self.flows[id].list(rules.place(rules.list)).arrived += 1;
        }
    }

    /// The queue signalled a packet of a flow.
    pub(super) fn signalled(
        &mut self,
        flow: FlowKey,
        weight: u32,
        rules: &Rules,
        found: &mut Found,
    ) {
        let Some(id) = self.flows.find_or_insert(flow) else { return };
        let place = rules.place(rules.list);
        let known = &mut self.flows[id];
        if rules.c.pairs() {
            known.list(place).lost();
        }
        if let Some(identified) =
            found.change(&mut known.drops, rules, |drops| drops.add(place, weight))
        {
            self.identified.put(id, identified);
        }
        if weight > 0 {
            self.in_list[place].put(id, true);
        } else if known.drops.are_none() {
            // It is forgotten as the list ends.
            self.in_list[rules.place(rules.list + 1)].put(id, true);
        }
    }

    /// A list ends. `monitor` gets each flow that is to be monitored, with its first probability, its drops and
    /// its packets in the list, and tells whether it took it. Flows without drops are forgotten.
    pub(super) fn end_list(
        &mut self,
        average: f64,
        rules: &Rules,
        found: &mut Found,
        mut monitor: impl FnMut(FlowKey, f64, Drops, Count, &mut Found) -> bool,
    ) {
        let (place, next) = (rules.place(rules.list), rules.place(rules.list + 1));
        for word in 0..self.flows.reached().div_ceil(64) {
            let oldest = core::mem::take(&mut self.in_list[next].0[word]);
            for id in places(word, oldest | self.identified.0[word]) {
                let flow = self.flows.flow(id);
                let known = &mut self.flows[id];
                let first = rules.first(&known.drops, average);
                if let Some(identified) =
                    found.change(&mut known.drops, rules, |drops| drops.forget(next))
                {
                    self.identified.put(id, identified);
                }
                let drops = known.drops;
                if first.is_some_and(|p| monitor(flow, p, drops, *known.list(place), found)) {
                    self.remove(id);
                } else if drops.are_none() {
                    self.flows.remove(id);
                }
            }
        }
    }

    /// Forgets the flows with the fewest drops until half of the room is free (§8.1).
    pub(super) fn make_room(&mut self, rules: &Rules, found: &mut Found) {
        let mut few = rules.unit;
        while self.flows.len() > self.flows.capacity() / 2 {
            for word in 0..self.flows.reached().div_ceil(64) {
                for id in places(word, self.in_list.iter().fold(0, |all, bits| all | bits.0[word]))
                {
                    let drops = self.flows[id].drops;
                    if drops.total() <= few {
                        if rules.identified(&drops) {
                            found.without(&drops);
                        }
                        self.remove(id);
                    }
                }
            }
            few *= 2;
        }
    }

    /// Forgets a flow that has drops.
    fn remove(&mut self, id: Id) {
        self.in_list.iter_mut().for_each(|bits| bits.put(id, false));
        self.identified.put(id, false);
        self.flows.remove(id);
    }

    /// The flows with their drops.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (FlowKey, &Drops)> {
        self.flows.iter().map(|(_, flow, known)| (flow, &known.drops))
    }

    /// Whether the bits say of each flow what its drops say, and nothing of places without a flow.
    #[cfg(test)]
    pub(super) fn is_consistent(&self, rules: &Rules) -> bool {
        let mut by_walk = [const { std::vec::Vec::new() }; super::MOST_LISTS + 1];
        for (id, _, known) in self.flows.iter() {
            let of_lists = known.drops.by_place.iter().map(|&drops| drops > 0);
            let all = of_lists.chain([rules.identified(&known.drops)]);
            all.zip(&mut by_walk).for_each(|(bit, list)| list.extend(bit.then_some(id)));
        }
        let ids = |bits: &Bits| {
            let words = bits.0.iter().enumerate();
            words.flat_map(|(word, &bits)| places(word, bits)).collect::<std::vec::Vec<_>>()
        };
        let lists = self.in_list.iter().zip(&by_walk).all(|(bits, list)| ids(bits) == *list);
        lists && ids(&self.identified) == by_walk[super::MOST_LISTS]
    }
}
