//! Which of many queues is the longest: a tree, kept from a question on for as long as questions may
//! follow, and not at all before.
//!
//! A queue that grows rises in it; one that shrinks stays where it is until a question finds it in first
//! place. Most have grown again by then to what they were.

use alloc::boxed::Box;
use alloc::vec;

/// Children of a node. With two there would be twice as many levels.
const CHILDREN: usize = 4;

/// The tree.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    /// The keys of each node's children, each the greatest of its own children. The children of a node are
    /// the nodes from one behind four times its place on; those of the last level are the queues.
    nodes: Box<[[u64; CHILDREN]]>,
    queues: usize,
    /// The first node of the last level.
    first: usize,
    /// Bits of a key for the queue's number, and the greatest that they have room for.
    number: u32,
    last: u64,
    /// Changes for which it is still kept; 0: it is not.
    kept: u32,
}

impl Longest {
    /// All `queues` are empty.
    pub(super) fn new(queues: usize) -> Self {
        let (mut level, mut first) = (1, 0);
        while level * CHILDREN < queues {
            first += level;
            level *= CHILDREN;
        }
        let nodes = vec![[0; CHILDREN]; first + queues.div_ceil(CHILDREN)].into();
        let number = usize::BITS - (queues - 1).leading_zeros();
        Self { nodes, queues, first, number, last: (1 << number) - 1, kept: 0 }
    }

    /// What a queue costs in memory, in bytes.
    pub(super) fn bytes_per_queue(&self) -> u64 {
        (size_of_val(&*self.nodes) / self.queues) as u64
    }

    /// Of two queues the longer has the greater key; of two as long as each other that with the lower
    /// number. The most queues that there can be (2²⁴, of [`Drr`](super::drr::Drr)) leave room for 2³⁹.
    #[inline]
    fn key(&self, queue: usize, length: u64) -> u64 {
        debug_assert!(length <= u64::MAX >> self.number, "{length}");
        length << self.number | (self.last - queue as u64)
    }

    /// A queue has another `length` now.
    #[inline]
    pub(super) fn changed(&mut self, queue: usize, length: impl FnOnce() -> u64) {
        if self.kept > 0 {
            self.kept -= 1;
            let key = self.key(queue, length());
            if self.nodes[self.first + queue / CHILDREN][queue % CHILDREN] < key {
                self.rise(queue, key);
            }
        }
    }

    #[inline(never)]
    fn rise(&mut self, queue: usize, key: u64) {
        let (mut node, mut child) = (self.first + queue / CHILDREN, queue % CHILDREN);
        let nodes = &mut self.nodes[..];
        while nodes[node][child] < key {
            nodes[node][child] = key;
            if node == 0 {
                break;
            }
            (node, child) = ((node - 1) / CHILDREN, (node - 1) % CHILDREN);
        }
    }

    /// The longest queue; of several the one with the least number. `length` tells that of each.
    #[inline]
    pub(super) fn find(&mut self, length: impl Fn(usize) -> u64) -> usize {
        if self.kept == 0 {
            self.build(&length);
        }
        // To keep it for so long costs about as much as to build it anew.
        self.kept = self.queues as u32;
        loop {
            let first = greatest(self.nodes[0]);
            let queue = (self.last - (first & self.last)) as usize;
            let key = self.key(queue, length(queue));
            if key == first {
                return queue;
            }
            self.sink(queue, key);
        }
    }

    /// The queue that stands first is shorter than it was.
    #[inline(never)]
    fn sink(&mut self, queue: usize, key: u64) {
        let mut node = self.first + queue / CHILDREN;
        let nodes = &mut self.nodes[..];
        nodes[node][queue % CHILDREN] = key;
        while node > 0 {
            let (above, child) = ((node - 1) / CHILDREN, (node - 1) % CHILDREN);
            nodes[above][child] = greatest(nodes[node]);
            node = above;
        }
    }

    #[inline(never)]
    fn build(&mut self, length: &impl Fn(usize) -> u64) {
        for queue in 0..self.queues {
            let key = self.key(queue, length(queue));
            self.nodes[self.first + queue / CHILDREN][queue % CHILDREN] = key;
        }
        for node in (1..self.nodes.len()).rev() {
            let (above, child) = ((node - 1) / CHILDREN, (node - 1) % CHILDREN);
            self.nodes[above][child] = greatest(self.nodes[node]);
        }
    }
}

#[inline(always)]
fn greatest(keys: [u64; CHILDREN]) -> u64 {
    let [a, b, c, d] = keys;
    a.max(b).max(c.max(d))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::vec;

    /// Random changes, with questions so rare that the tree is given up, and so frequent that it is not.
    #[test]
    fn the_longest_is_found_after_any_changes() {
        let mut rng = Rng::new(1, 0);
        for queues in [1, 2, 3, 4, 5, 16, 17, 46, 64, 65, 100, 1000, 1024, 65_536] {
            for pause in [1, 3, 7, queues, queues + 1] {
                let mut lens = vec![0u64; queues];
                let mut longest = Longest::new(queues);
                for step in 0..(pause * 3).max(if queues > 2000 { 100 } else { 2000 }) {
                    let queue = rng.below(queues);
                    lens[queue] = rng.below(30) as u64;
                    longest.changed(queue, || lens[queue]);
                    if step % pause == 0 {
                        let most = *lens.iter().max().unwrap();
                        let first = lens.iter().position(|l| *l == most).unwrap();
                        let found = longest.find(|q| lens[q]);
                        assert_eq!(found, first, "{queues} queues, step {step} of {pause}");
                    }
                }
            }
        }
    }
}
