//! Which of many queues is the longest, asked packet after packet: a heap of the queues that have any,
//! kept from a question on for as long as questions may follow, and not at all before.

use alloc::boxed::Box;
use alloc::vec;

/// Changes after the last question for which the heap is kept.
const KEPT_FOR: u32 = 1 << 16;

const NONE: u32 = u32::MAX;

/// The heap.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    /// Length and number of queues, each before those of its children, which stand at twice its place
    /// + 1 and + 2.
    entries: Box<[(u64, u32)]>,
    len: usize,
    /// The place of each queue among them.
    places: Box<[u32]>,
    /// Changes for which it is still kept; 0: it is not.
    kept: u32,
}

/// Whether a queue goes before another: it is longer, or as long with a lower number.
fn before(a: (u64, u32), b: (u64, u32)) -> bool {
    a.0 > b.0 || (a.0 == b.0 && a.1 < b.1)
}

impl Heap {
    /// What a queue costs in memory, in bytes.
    pub(super) const BYTES_PER_QUEUE: u64 = (size_of::<(u64, u32)>() + size_of::<u32>()) as u64;

    /// All `queues` are empty.
    pub(super) fn new(queues: usize) -> Self {
        let places = vec![NONE; queues].into();
        Self { entries: vec![(0, 0); queues].into(), len: 0, places, kept: 0 }
    }

    /// A queue has now `bytes`.
    #[inline]
    pub(super) fn changed(&mut self, queue: usize, bytes: u64) {
        if self.kept > 0 {
            self.kept -= 1;
            self.set(queue, bytes);
        }
    }

    /// The longest queue; of several the one with the least number, 0 if all are empty. `bytes` tells
    /// the length of each.
    pub(super) fn longest(&mut self, bytes: impl Fn(usize) -> u64) -> usize {
        if self.kept == 0 {
            self.places.fill(NONE);
            self.len = 0;
            for queue in 0..self.places.len() {
                self.set(queue, bytes(queue));
            }
        }
        self.kept = KEPT_FOR;
        self.entries.first().map_or(0, |first| if self.len == 0 { 0 } else { first.1 as usize })
    }

    fn set(&mut self, queue: usize, bytes: u64) {
        let entry = (bytes, queue as u32);
        match (self.places[queue], bytes) {
            (NONE, 0) => {}
            (NONE, _) => {
                self.len += 1;
                self.rise(self.len - 1, entry);
            }
            (place, 0) => {
                self.places[queue] = NONE;
                self.len -= 1;
                if place as usize != self.len {
                    self.settle(place as usize, self.entries[self.len]);
                }
            }
            (place, _) => self.settle(place as usize, entry),
        }
    }

    /// Puts an entry in a free place, and from there where it belongs.
    fn settle(&mut self, place: usize, entry: (u64, u32)) {
        if place > 0 && before(entry, self.entries[(place - 1) / 2]) {
            self.rise(place, entry);
        } else {
            self.sink(place, entry);
        }
    }

    fn rise(&mut self, mut place: usize, entry: (u64, u32)) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if !before(entry, self.entries[parent]) {
                break;
            }
            self.put(place, self.entries[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize, entry: (u64, u32)) {
        loop {
            let mut child = 2 * place + 1;
            if child >= self.len {
                break;
            }
            if child + 1 < self.len && before(self.entries[child + 1], self.entries[child]) {
                child += 1;
            }
            if !before(self.entries[child], entry) {
                break;
            }
            self.put(place, self.entries[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (u64, u32)) {
        self.entries[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Random changes, with questions so rare that the heap is given up, and so frequent that it is not.
    #[test]
    fn the_longest_is_found_after_any_changes() {
        let mut rng = Rng::new(1, 0);
        for (queues, pause) in [(1, 3), (2, 1), (7, 5), (100, 4), (1000, 11), (5, 70_000)] {
            let mut lens = vec![0u64; queues];
            let mut heap = Heap::new(queues);
            for step in 0..(pause * 5).max(5000) {
                let queue = rng.below(queues);
                lens[queue] = rng.below(30) as u64;
                heap.changed(queue, lens[queue]);
                if step % pause == 0 {
                    let most = *lens.iter().max().unwrap();
                    let first = lens.iter().position(|l| *l == most).unwrap();
                    let found = heap.longest(|q| lens[q]);
                    assert!(most == 0 || found == first, "{queues} queues, step {step}");
                }
            }
        }
    }
}
