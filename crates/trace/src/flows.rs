//! Counts packets and bytes by flow.
//!
//! Memory is bounded: when a table is full, the smaller half of its flows (by bytes) is merged into
//! [`Others`]. A flow that sends again after that counts as a new one, and lacks what was merged:
//! at most [`Others::largest`] bytes each time. Hashes are keyed by a secret, so that nobody can
//! fill one slot; what is counted does not depend on it.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use wire::Flow;

use crate::Packet;

/// What a flow sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Which flow.
    pub flow: Flow,
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Time of its first packet, ns.
    pub first: u64,
    /// Time of its last packet, ns.
    pub last: u64,
}

/// Flows of which only the sum is known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Others {
    /// How many; a flow that was merged and came back counts again.
    pub flows: u64,
    /// Their packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest: u64,
}

/// The flows of a time.
#[derive(Clone, Debug)]
pub struct FlowTable {
    /// In the order of their first packets.
    records: Vec<Record>,
    /// Positions of the flows that go on.
    index: HashTable<u32>,
    keys: RandomState,
    /// After this silence (ns) a flow has ended; if it sends again, it is another.
    timeout: u64,
    most: usize,
    others: Others,
}

impl FlowTable {
    /// An empty table of at most `most` flows, which is at least 2 and at most 2³² − 1.
    pub fn new(keys: RandomState, timeout: u64, most: usize) -> Self {
        let most = most.clamp(2, u32::MAX as usize);
        let index = HashTable::new();
        Self { records: Vec::new(), index, keys, timeout, most, others: Others::default() }
    }

    /// Counts a packet; `hash` is [`FlowTable::hash`] of its flow.
    pub fn add(&mut self, hash: u64, packet: &Packet) {
        let flow = &packet.headers.flow;
        let Self { records, index, .. } = self;
        let known = index.find(hash, |&i| records[i as usize].flow == *flow).copied();
        match known.map(|i| &mut records[i as usize]) {
            Some(record) if packet.time.saturating_sub(record.last) <= self.timeout => {
                record.packets += 1;
                record.bytes += u64::from(packet.len);
                record.last = packet.time;
            }
            _ => self.begin(hash, packet),
        }
    }

    /// The hash of a flow, which every table with the same keys has in common.
    pub fn hash(&self, flow: &Flow) -> u64 {
        self.keys.hash_one(flow)
    }

    /// Whether nothing has been counted.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The bytes of a flow that is in the table; 0 for others.
    pub fn bytes(&self, flow: &Flow) -> u64 {
        let at = self.index.find(self.hash(flow), |&i| self.records[i as usize].flow == *flow);
        at.map_or(0, |&i| self.records[i as usize].bytes)
    }

    /// The bytes of all flows, also of those that are not told apart.
    pub fn total_bytes(&self) -> u64 {
        self.records.iter().map(|record| record.bytes).sum::<u64>() + self.others.bytes
    }

    /// All flows, the one with the most bytes first (of equals, the one that began first), and
    /// what became of those that the table had no room for.
    pub fn into_sorted(mut self) -> (Vec<Record>, Others) {
        self.records.sort_by_key(|record| std::cmp::Reverse(record.bytes));
        (self.records, self.others)
    }

    fn begin(&mut self, hash: u64, packet: &Packet) {
        if self.records.len() == self.most {
            self.merge();
        }
        let flow = packet.headers.flow;
        let bytes = u64::from(packet.len);
        let at = self.records.len() as u32;
        self.records.push(Record {
            flow,
            packets: 1,
            bytes,
            first: packet.time,
            last: packet.time,
        });
        self.point(hash, at);
    }

    /// Lets the index point to the record at `at`, in place of an earlier one of the same flow.
    fn point(&mut self, hash: u64, at: u32) {
        let Self { records, index, keys, .. } = self;
        let flow = records[at as usize].flow;
        let same = |&i: &u32| records[i as usize].flow == flow;
        let again = |&i: &u32| keys.hash_one(records[i as usize].flow);
        *index.entry(hash, same, again).or_insert(at).get_mut() = at;
    }

    /// Merges the smaller half into the others; of equals, those that began later.
    fn merge(&mut self) {
        let mut order: Vec<u32> = (0..self.records.len() as u32).collect();
        let rank = |&i: &u32| (std::cmp::Reverse(self.records[i as usize].bytes), i);
        let (_, _, smaller) = order.select_nth_unstable_by_key(self.most / 2 - 1, rank);
        for &mut i in smaller {
            let record = &mut self.records[i as usize];
            self.others.flows += 1;
            self.others.packets += record.packets;
            self.others.bytes += record.bytes;
            self.others.largest = self.others.largest.max(record.bytes);
            record.packets = 0;
        }
        self.records.retain(|record| record.packets > 0);
        self.index.clear();
        for at in 0..self.records.len() {
            let hash = self.hash(&self.records[at].flow);
            self.point(hash, at as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use wire::Headers;

    fn packet(time: u64, flow: u8, len: u32) -> Packet {
        let flow = Flow { source: [flow; 16], protocol: 6, ..Flow::default() };
        Packet { time, len, headers: Headers { flow, ..Headers::default() }, likeness: None }
    }

    fn table(timeout: u64, most: usize, packets: &[Packet]) -> (Vec<Record>, Others) {
        let mut table = FlowTable::new(RandomState::new(), timeout, most);
        for packet in packets {
            table.add(table.hash(&packet.headers.flow), packet);
        }
        table.into_sorted()
    }

    /// Silent for 10 it goes on, for 11 it is another.
    #[test]
    fn silence_ends_a_flow() {
        let packets = [packet(0, 1, 40), packet(10, 1, 40), packet(21, 1, 60), packet(22, 1, 60)];
        let (flows, _) = table(10, 9, &packets);
        let seen: Vec<_> = flows.iter().map(|f| (f.first, f.last, f.packets, f.bytes)).collect();
        assert_eq!(seen, [(21, 22, 2, 120), (0, 10, 2, 80)]);
    }

    /// Four places: with the fifth flow the smaller two, 2 and 4, are merged; flow 2 comes back as
    /// another.
    #[test]
    fn a_full_table_merges_the_smaller_half() {
        let sizes = [(1, 500), (2, 100), (3, 400), (4, 200), (5, 50), (2, 10), (1, 1)];
        let packets: Vec<_> =
            sizes.iter().zip(0..).map(|(&(flow, len), time)| packet(time, flow, len)).collect();
        let (flows, others) = table(u64::MAX, 4, &packets);
        let seen: Vec<_> = flows.iter().map(|f| (f.flow.source[0], f.bytes)).collect();
        assert_eq!(seen, [(1, 501), (3, 400), (5, 50), (2, 10)]);
        assert_eq!(others, Others { flows: 2, packets: 2, bytes: 300, largest: 200 });
    }

    proptest! {
        /// Against a map that knows no bound: what is told apart is right to within what was
        /// merged, and nothing is lost.
        #[test]
        fn a_bounded_table_is_near_an_unbounded_one(
            sends in prop::collection::vec((0u8..40, 40u32..1500), 0..400), most in 2usize..60,
        ) {
            let packets: Vec<_> =
                sends.iter().zip(0..).map(|(&(flow, len), time)| packet(time, flow, len)).collect();
            let mut naive = BTreeMap::<u8, u64>::new();
            for (flow, len) in &sends {
                *naive.entry(*flow).or_default() += u64::from(*len);
            }
            let (flows, others) = table(u64::MAX, most, &packets);
            prop_assert!(flows.len() <= most);
            let told: u64 = flows.iter().map(|f| f.bytes).sum();
            prop_assert_eq!(told + others.bytes, naive.values().sum::<u64>());
            for flow in &flows {
                prop_assert!(flow.bytes <= naive[&flow.flow.source[0]]);
            }
            if most >= naive.len() {
                prop_assert_eq!(others, Others::default());
                prop_assert_eq!(flows.len(), naive.len());
                for flow in &flows {
                    prop_assert_eq!(flow.bytes, naive[&flow.flow.source[0]]);
                }
            }
        }
    }
}
