//! Which of many queues is the longest: asked only when the buffer is full, kept up to date for
//! next to nothing.
//!
//! The queues are divided into up to 64 blocks. A change of a queue's length sets the bit of its
//! block; the question looks through blocks with their bit set, and compares what is known of the
//! others.

/// The blocks.
#[derive(Clone, Debug)]
pub(super) struct Longest {
    /// How many queues there are.
    queues: usize,
    /// Queues in a block are 2 to the power of this.
    shift: u32,
    /// Blocks in which a length has changed.
    stale: u64,
    /// The longest queue of each block, and its length.
    best: [(u64, u32); 64],
}

impl Longest {
    /// All `queues` have length 0.
    pub(super) fn new(queues: usize) -> Self {
        let shift = queues.div_ceil(64).next_power_of_two().ilog2();
        Self { queues, shift, stale: 0, best: [(0, 0); 64] }
    }

    /// The length of a queue has changed.
    #[inline]
    pub(super) fn changed(&mut self, queue: usize) {
        self.stale |= 1 << (queue >> self.shift);
    }

    /// The longest queue; of several the one with the least number.
    pub(super) fn find(&mut self, len: impl Fn(usize) -> u64) -> usize {
        while self.stale != 0 {
            let block = self.stale.trailing_zeros() as usize;
            self.stale &= self.stale - 1;
            self.best[block] = self.look_through(block, &len);
        }
        longer(self.best.into_iter()).1 as usize
    }

    /// The length of the longest queue.
    pub(super) fn length(&self, len: impl Fn(usize) -> u64) -> u64 {
        let best = (0..64).map(|block| match self.stale >> block & 1 {
            0 => self.best[block],
            _ => self.look_through(block, &len),
        });
        longer(best).0
    }

    fn look_through(&self, block: usize, len: impl Fn(usize) -> u64) -> (u64, u32) {
        let end = ((block + 1) << self.shift).min(self.queues);
        longer((block << self.shift..end).map(|queue| (len(queue), queue as u32)))
    }
}

fn longer(all: impl Iterator<Item = (u64, u32)>) -> (u64, u32) {
    all.fold((0, 0), |a, b| if b.0 > a.0 { b } else { a })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::vec;

    /// Random changes, a question now and then, for numbers of queues around those of the blocks.
    #[test]
    fn the_longest_is_found_after_any_changes() {
        let mut rng = Rng::new(1, 0);
        for queues in [1, 2, 46, 63, 64, 65, 127, 128, 1000, 1024] {
            let mut lens = vec![0u64; queues];
            let mut longest = Longest::new(queues);
            for step in 0..3000 {
                let queue = rng.below(queues);
                lens[queue] = rng.below(50) as u64;
                longest.changed(queue);
                if step % 7 == 0 {
                    let most = *lens.iter().max().unwrap();
                    let first = lens.iter().position(|l| *l == most).unwrap();
                    assert_eq!(longest.length(|q| lens[q]), most);
                    assert_eq!(longest.find(|q| lens[q]), first, "{queues} queues, step {step}");
                }
            }
        }
    }
}
