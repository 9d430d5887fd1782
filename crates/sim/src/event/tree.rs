//! A winner tree: the first of the next events of many sources.

use link::memory::room_for;

/// Sets a key in a winner tree over half as many keys as it has entries, and returns the winner:
/// entry 1. The keys are in the upper half. The size is fixed so that the way to the top is straight
/// code.
#[inline(always)]
fn play<const NODES: usize>(block: &mut [u64; NODES], leaf: usize, mut key: u64) -> u64 {
    let fan = NODES / 2;
    let mut node = fan + leaf % fan;
    block[node] = key;
    for _ in 0..fan.trailing_zeros() {
        key = key.min(block[node ^ 1]);
        node /= 2;
        block[node] = key;
    }
    key
}

/// A winner tree over a fixed number of sources: each has at most one next event. Blocks of
/// `NODES` / 2 keys find the winner of as many sources or blocks below.
///
/// A key packs (time in ns, source), so that events at the same time come in the order of their
/// sources' numbers, and finding the next event is reading the root. Setting a time rewrites the
/// path from leaf to root without branches on data. The lowest `SPARE` bits of a key are 0.
#[derive(Clone, Debug)]
pub(crate) struct WinnerTree<const NODES: usize, const SPARE: u32> {
    /// Its keys are the sources', or the winners of the first blocks below.
    root: [u64; NODES],
    /// The blocks below, level by level: the keys of block `b` are the winners of the blocks
    /// `FAN · (b + 1)` and on, and those of the last level belong to sources.
    blocks: Box<[[u64; NODES]]>,
    /// How many keys there are above those of sources 0 and on.
    first_leaf: usize,
    /// Bits of a key below its time: the source's number, and below that the spare ones.
    low_bits: u32,
    low_mask: u64,
    /// Never: the latest time that a key can hold. Later ones count as it.
    pub(super) never: u64,
}

impl<const NODES: usize, const SPARE: u32> WinnerTree<NODES, SPARE> {
    /// Keys of a block: a power of two.
    const FAN: usize = NODES / 2;

    pub(crate) fn new(sources: usize) -> Self {
        // Keys are numbered through: the root's are 0 … FAN − 1, those of block b the FAN from
        // FAN·(b + 1) on.
        let (mut first_leaf, mut keys) = (0, Self::FAN);
        while keys < sources {
            first_leaf += keys;
            keys *= Self::FAN;
        }
        let blocks =
            if first_leaf == 0 { 0 } else { (first_leaf + sources).div_ceil(Self::FAN) - 1 };
        let low_bits = sources.next_power_of_two().trailing_zeros().max(1) + SPARE;
        let empty = [u64::MAX; NODES];
        let mut filled = room_for(blocks);
        filled.resize(blocks, empty);
        Self {
            root: empty,
            blocks: filled.into_boxed_slice(),
            first_leaf,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            never: u64::MAX >> low_bits,
        }
    }

    /// The key of `time` and `source`.
    #[inline(always)]
    pub(super) fn key(&self, time: u64, source: usize) -> u64 {
        time.min(self.never) << self.low_bits | (source as u64) << SPARE
    }

    /// The time of a key.
    #[inline(always)]
    pub(crate) fn time_of(&self, key: u64) -> u64 {
        key >> self.low_bits
    }

    /// The source of a key.
    #[inline(always)]
    pub(crate) fn source_of(&self, key: u64) -> usize {
        ((key & self.low_mask) >> SPARE) as usize
    }

    /// The earliest key, with the time [`WinnerTree::never`] if no source has one.
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.root[1]
    }

    /// The earliest time, [`WinnerTree::never`] if no source has one.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.time_of(self.first())
    }

    /// The source of the earliest time.
    #[inline]
    pub(crate) fn source(&self) -> usize {
        self.source_of(self.first())
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: u64) {
        self.set_key(self.key(time, source));
    }

    /// Sets the time of a source, given as their key.
    #[inline]
    pub(crate) fn set_key(&mut self, key: u64) {
        let (mut winner, mut leaf) = (key, self.source_of(key));
        if self.first_leaf > 0 {
            (winner, leaf) = self.play_below(leaf, winner);
        }
        play(&mut self.root, leaf, winner);
    }

    /// Plays in the blocks below the root; the winner and its place in the root.
    #[inline(never)]
    fn play_below(&mut self, source: usize, key: u64) -> (u64, usize) {
        let (mut place, mut winner) = (self.first_leaf + source, key);
        while place >= Self::FAN {
            let block = place / Self::FAN - 1;
            winner = play(&mut self.blocks[block], place, winner);
            place = block;
        }
        (winner, place)
    }
}
