//! State of the flows that are present: a hash table with room for a fixed number of them.
//!
//! Entries live in an array and stay where they are as long as they live, so that an algorithm can
//! keep an [`Id`] with each packet and comes back to its flow without hashing. Beside it stands the
//! index: open addressing with linear probing under a keyed hash ([`FlowHash`]), at most a third
//! full. Removing an entry moves those behind it forward to where their probing would look for them,
//! so that no tombstones are left to slow down what comes later. Nothing is allocated after
//! construction, and memory that no flow has needed yet is not touched.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use crate::hash::FlowHash;
use crate::packet::FlowKey;
use crate::rng::Rng;

/// The place of a flow in its table, valid until the flow is removed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Id(u32);

impl Id {
    /// The place as a number below the table's capacity, which no other flow that is present has.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The place with this [`index`](Self::index).
    #[inline]
    pub const fn of(index: usize) -> Self {
        Self(index as u32)
    }
}

/// Where the search for a flow begins: its hash, which is computed once a packet.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Home(u32);

#[derive(Clone, Copy, Default, Debug)]
struct Entry<V> {
    flow: FlowKey,
    /// `NOBODY`'s in an unused entry.
    home: Home,
    value: V,
}

/// A `V` for each of at most `capacity` flows.
#[derive(Clone, Debug)]
pub struct FlowTable<V> {
    hash: FlowHash,
    /// Places of entries, from 1, or `EMPTY`.
    index: Box<[u32]>,
    /// Those that were ever used: what looks at all flows costs as much as the most that were ever
    /// present, not as the capacity.
    entries: Vec<Entry<V>>,
    capacity: u32,
    /// Entries that are not used any more; the last is taken first.
    free: Vec<u32>,
}

/// An unused slot of the index. The system's fresh memory is full of them.
const EMPTY: u32 = 0;
const NOBODY: Home = Home(u32::MAX);

impl<V: Copy + Default> FlowTable<V> {
    /// What a flow costs in memory, in bytes, whether it is present or not: its entry, its place in
    /// the list of unused ones, and three slots of the index.
    pub const BYTES_PER_FLOW: u64 = (size_of::<Entry<V>>() + 4 + 12) as u64;

    /// An empty table with room for `capacity` flows, 1 … 2³⁰.
    pub fn new(capacity: u32, rng: &mut Rng) -> Self {
        debug_assert!((1..=1 << 30).contains(&capacity), "room for {capacity} flows");
        Self {
            hash: FlowHash::new(rng),
            // A flow that is not present is found to be missing in 1.6 looks on average.
            index: vec![EMPTY; 3 * capacity as usize].into(),
            entries: Vec::with_capacity(capacity as usize),
            capacity,
            free: Vec::with_capacity(capacity as usize),
        }
    }

    /// Flows present.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether no flow is present.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Room for flows in all.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// The flow at a place.
    #[inline]
    pub(crate) fn flow(&self, id: Id) -> FlowKey {
        self.entries[id.0 as usize].flow
    }

    /// Places from this one on were never used.
    pub(crate) fn reached(&self) -> usize {
        self.entries.len()
    }

    /// Where the search for a flow begins.
    #[inline]
    pub fn home(&self, flow: FlowKey) -> Home {
        Home(self.hash.bin(flow, self.index.len() as u32) as u32)
    }

    /// The place of a flow, if it is present.
    #[inline]
    pub fn find(&self, flow: FlowKey) -> Option<Id> {
        self.find_from(self.home(flow), flow)
    }

    /// [`find`](Self::find) from the flow's [`home`](Self::home), known already.
    #[inline]
    pub fn find_from(&self, home: Home, flow: FlowKey) -> Option<Id> {
        self.probe(flow, home).ok()
    }

    /// The place of a flow, which gets a default value if it was not present. `None` when it was not
    /// and there is no room.
    #[inline]
    pub fn find_or_insert(&mut self, flow: FlowKey) -> Option<Id> {
        self.find_or_insert_from(self.home(flow), flow)
    }

    /// [`find_or_insert`](Self::find_or_insert) from the flow's [`home`](Self::home), known already.
    #[inline]
    pub fn find_or_insert_from(&mut self, home: Home, flow: FlowKey) -> Option<Id> {
        match self.probe(flow, home) {
            Ok(id) => Some(id),
            Err(slot) => {
                let entry = Entry { flow, home, value: V::default() };
                let id = match self.free.pop() {
                    Some(id) => {
                        self.entries[id as usize] = entry;
                        id
                    }
                    None => self.append(entry)?,
                };
                self.index[slot] = id + 1;
                Some(Id(id))
            }
        }
    }

    /// The place of an entry that was never used, if there is one.
    fn append(&mut self, entry: Entry<V>) -> Option<u32> {
        let id = self.entries.len() as u32;
        (id < self.capacity).then(|| {
            self.entries.push(entry);
            id
        })
    }

    /// Removes the flow at a place, and gives its value.
    pub fn remove(&mut self, id: Id) -> V {
        let Entry { home, value, .. } = self.entries[id.0 as usize];
        let mut hole = home.0 as usize;
        while self.index[hole] != id.0 + 1 {
            debug_assert!(self.index[hole] != EMPTY, "no flow at {id:?}");
            hole = self.next(hole);
        }
        let mut slot = self.next(hole);
        while self.index[slot] != EMPTY {
            let home = self.entries[self.index[slot] as usize - 1].home.0 as usize;
            if self.distance(home, slot) >= self.distance(hole, slot) {
                self.index[hole] = self.index[slot];
                hole = slot;
            }
            slot = self.next(slot);
        }
        self.index[hole] = EMPTY;
        self.entries[id.0 as usize].home = NOBODY;
        self.free.push(id.0);
        value
    }

    /// Shows each flow present once, in no order of meaning, and removes those that `keep` refuses.
    pub fn retain(&mut self, mut keep: impl FnMut(FlowKey, &mut V) -> bool) {
        for id in 0..self.entries.len() as u32 {
            let entry = &mut self.entries[id as usize];
            if entry.home != NOBODY && !keep(entry.flow, &mut entry.value) {
                self.remove(Id(id));
            }
        }
    }

    /// All flows present, in no order of meaning.
    pub fn iter(&self) -> impl Iterator<Item = (Id, FlowKey, &V)> {
        (0..)
            .zip(&self.entries)
            .filter(|(_, entry)| entry.home != NOBODY)
            .map(|(id, entry)| (Id(id), entry.flow, &entry.value))
    }

    /// Where a flow is, or the slot of the index where it would go.
    #[inline]
    fn probe(&self, flow: FlowKey, home: Home) -> Result<Id, usize> {
        let mut slot = home.0 as usize;
        loop {
            match self.index[slot] {
                EMPTY => return Err(slot),
                at if self.entries[at as usize - 1].flow == flow => return Ok(Id(at - 1)),
                _ => slot = self.next(slot),
            }
        }
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.index.len() { 0 } else { slot + 1 }
    }

    /// Steps of probing from one slot to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.index.len() - from }
    }
}

impl<V> Index<Id> for FlowTable<V> {
    type Output = V;
    #[inline]
    fn index(&self, id: Id) -> &V {
        &self.entries[id.0 as usize].value
    }
}

impl<V> IndexMut<Id> for FlowTable<V> {
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut V {
        &mut self.entries[id.0 as usize].value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Insert(u64),
        Remove(u64),
        Find(u64),
        /// Keeps those with this remainder by 3, and counts their visits.
        Retain(u64),
    }

    fn operations() -> impl Strategy<Value = Vec<Op>> {
        let op = (0..4, 0..20u64).prop_map(|(kind, flow)| match kind {
            0 => Op::Insert(flow),
            1 => Op::Remove(flow),
            3 => Op::Retain(flow % 3),
            _ => Op::Find(flow),
        });
        prop::collection::vec(op, 0..300)
    }

    fn find<V: Copy + Default>(table: &FlowTable<V>, flow: u64) -> Option<Id> {
        table.find(FlowKey(flow))
    }

    fn insert<V: Copy + Default>(table: &mut FlowTable<V>, flow: u64) -> Option<Id> {
        table.find_or_insert(FlowKey(flow))
    }

    /// No entry's way from its home to its slot has a hole.
    fn reachable(table: &FlowTable<u64>) -> bool {
        (0..table.index.len()).filter(|&slot| table.index[slot] != EMPTY).all(|slot| {
            let mut at = table.entries[table.index[slot] as usize - 1].home.0 as usize;
            while at != slot && table.index[at] != EMPTY {
                at = table.next(at);
            }
            at == slot
        })
    }

    proptest! {
        /// Twenty flows in tables for 1 … 16: probing collides, wraps around, and finds no room.
        #[test]
        fn it_is_a_map(capacity in 1..16u32, seed in any::<u64>(), ops in operations()) {
            let mut table = FlowTable::<u64>::new(capacity, &mut Rng::new(seed, 0));
            let mut map = BTreeMap::<u64, (Id, u64)>::new();
            for (step, op) in (1u64..).zip(ops) {
                match op {
                    Op::Insert(flow) => {
                        let id = insert(&mut table, flow);
                        if let Some(&(old, _)) = map.get(&flow) {
                            prop_assert_eq!(id, Some(old), "it is where it was");
                        } else if map.len() == capacity as usize {
                            prop_assert_eq!(id, None, "no room");
                        } else {
                            let id = id.unwrap();
                            prop_assert_eq!(table[id], 0, "a fresh value");
                            table[id] = step;
                            map.insert(flow, (id, step));
                        }
                    }
                    Op::Remove(flow) => {
                        if let Some((id, value)) = map.remove(&flow) {
                            prop_assert_eq!(table.remove(id), value);
                        }
                    }
                    Op::Retain(rest) => {
                        let keep = |flow: u64| flow % 3 == rest;
                        table.retain(|flow, value| {
                            *value += 1;
                            keep(flow.0)
                        });
                        map.retain(|&flow, (_, value)| {
                            *value += 1;
                            keep(flow)
                        });
                    }
                    Op::Find(flow) => {
                        prop_assert_eq!(find(&table, flow), map.get(&flow).map(|e| e.0));
                    }
                }
                let mut all: Vec<_> = table.iter().map(|(id, flow, &v)| (flow.0, (id, v))).collect();
                all.sort_by_key(|entry| entry.0);
                prop_assert_eq!(all, map.clone().into_iter().collect::<Vec<_>>());
                prop_assert_eq!(table.len(), map.len());
                prop_assert!(reachable(&table));
            }
        }
    }

    /// Flows come and go a million times in a table that is nearly full. An unsuccessful search at a
    /// load of a = 1/3 takes ½(1 + 1/(1 − a)²) = 1.63 looks on average (Knuth); tombstones would drive
    /// it towards the length of the index.
    #[test]
    fn searches_stay_short_however_many_flows_have_gone() {
        let mut table = FlowTable::<()>::new(1000, &mut Rng::new(3, 0));
        for flow in 0..1_000_000u64 {
            if flow >= 1000 {
                let oldest = find(&table, flow - 1000).unwrap();
                table.remove(oldest);
            }
            insert(&mut table, flow).unwrap();
        }
        let looks: usize = (0..10_000)
            .map(|stranger| {
                let mut slot = table.home(FlowKey(u64::MAX - stranger)).0 as usize;
                let mut looks = 1;
                while table.index[slot] != EMPTY {
                    slot = table.next(slot);
                    looks += 1;
                }
                looks
            })
            .sum();
        let mean = looks as f64 / 1e4;
        assert!((1.5..1.75).contains(&mean), "{mean}");
    }
}
