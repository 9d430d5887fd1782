//! The keyed hash of flows, for every discipline that sorts packets by flow.
//!
//! A sender chooses its addresses and ports, and could aim them at the bin of a victim if it could
//! compute the hash. So each hash is SipHash-1-3 (Aumasson, Bernstein 2012) under a secret of 128
//! bits that is drawn when the queue is built. Without it, all that is known of two flows is that
//! they meet in one of `n` bins with chance 1/n. (1-3 rather than 2-4, as in most hash tables: the
//! attacker never sees the hash itself, only who is treated alike.)
//!
//! One word of 64 bits a packet serves several bins. A bin is cut by multiplication, `word · n`:
//! the high half is the bin, the low half is the rest of the word, as good as new but for log₂ n
//! bits of it:
//!
//! ```text
//! bin := ⌊word · n / 2⁶⁴⌋;  word := word · n mod 2⁶⁴
//! ```
//!
//! k bins leave a bias of at most nᵏ/2⁶⁴ (none where n is a power of two). [`Cuts`] keeps that
//! below 2⁻³²: after so many bins that nᵏ would pass 2³² it goes on with another word, which it
//! mixes out of the first. That one needs no key, since nobody knows the first.

use crate::packet::FlowKey;
use crate::rng::{self, Rng};

/// A hash of flows under a secret of its own.
#[derive(Clone, Debug)]
pub struct FlowHash {
    /// SipHash's state under the secret, before the first word.
    start: [u64; 4],
}

impl FlowHash {
    /// A hash with a new secret.
    pub fn new(rng: &mut Rng) -> Self {
        let key = (rng.bits(), rng.bits());
        Self::with_key(key)
    }

    fn with_key((k0, k1): (u64, u64)) -> Self {
        // "somepseudorandomlygeneratedbytes"
        let c = [
            0x736f_6d65_7073_6575,
            0x646f_7261_6e64_6f6d,
            0x6c79_6765_6e65_7261,
            0x7465_6462_7974_6573,
        ];
        Self { start: [k0 ^ c[0], k1 ^ c[1], k0 ^ c[2], k1 ^ c[3]] }
    }

    /// The hash of a flow: 64 bits.
    #[inline]
    pub fn word(&self, flow: FlowKey) -> u64 {
        let mut v = self.start;
        // The message is one word; the word behind it has its length in bytes on top.
        for m in [flow.0, 8 << 56] {
            v[3] ^= m;
            round(&mut v);
            v[0] ^= m;
        }
        v[2] ^= 0xff;
        (0..3).for_each(|_| round(&mut v));
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }

    /// One bin of `n` for a flow, with a bias below n/2⁶⁴. `n` must be positive.
    #[inline]
    pub fn bin(&self, flow: FlowKey, n: u32) -> usize {
        cut(self.word(flow), n).0
    }
}

/// How a word is cut into bins of `n`: one for each level of a table, independent of each other.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    n: u32,
    /// Bins from one word.
    per_word: u32,
}

impl Cuts {
    /// Bins of `n`, 1 … 2¹⁶.
    pub fn new(n: u32) -> Self {
        debug_assert!((1..=1 << 16).contains(&n), "bins of {n}");
        let n = n.clamp(1, 1 << 16);
        // One bin takes no bits of the word.
        let per_word = if n == 1 { u32::MAX } else { (1u64 << 32).ilog(u64::from(n)) };
        Self { n, per_word }
    }

    /// How many bins there are to choose from.
    #[inline]
    pub fn n(self) -> usize {
        self.n as usize
    }

    /// Bins that one word is good for.
    #[inline]
    pub(crate) fn per_word(self) -> usize {
        self.per_word as usize
    }

    /// Cuts a bin off a word.
    #[inline]
    pub(crate) fn cut(self, word: &mut u64) -> usize {
        let (bin, rest) = cut(*word, self.n);
        *word = rest;
        bin
    }

    /// The word to go on with after [`per_word`](Self::per_word) bins of a whole one.
    #[cold]
    pub(crate) fn next_word(word: u64) -> u64 {
        rng::mixed(word)
    }

    /// The bins of a word, without end: take one for each level.
    pub fn of(self, word: u64) -> impl Iterator<Item = usize> {
        let words = core::iter::successors(Some(word), |&word| Some(Self::next_word(word)));
        words.flat_map(move |mut word| (0..self.per_word).map(move |_| self.cut(&mut word)))
    }
}

/// A SipRound.
#[inline(always)]
fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32).wrapping_add(v[3]);
    v[2] = v[2].wrapping_add(v[1]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

/// A bin of `n`, and what is left of the word.
#[inline]
fn cut(word: u64, n: u32) -> (usize, u64) {
    let product = u128::from(word) * u128::from(n);
    ((product >> 64) as usize, product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::vec;
    use std::vec::Vec;

    /// A value that another implementation gives: CPython hashes bytes with SipHash-1-3 and, under
    /// PYTHONHASHSEED=0, a key of zeros; `hash(bytes(range(8)))`.
    #[test]
    fn the_hash_is_siphash_1_3() {
        let word = FlowHash::with_key((0, 0)).word(FlowKey(0x0706_0504_0302_0100));
        assert_eq!(word, 0xead4_11e6_7ebe_2eea);
    }

    #[test]
    fn a_word_is_cut_by_hand() {
        // 2⁶³ is one half: of 23 bins the 11th (11.5), and one half is left; of 16 the 8th and
        // nothing is left.
        assert_eq!(cut(1 << 63, 23), (11, 1 << 63));
        assert_eq!(cut(1 << 63, 16), (8, 0));
        assert_eq!(cut(u64::MAX, 23).0, 22);
        assert_eq!(cut(0, 23).0, 0);
        // 16 bins a level are the hexadecimal digits from the left.
        let digits: Vec<usize> = Cuts::new(16).of(0x1234_5678_9abc_def0).take(8).collect();
        assert_eq!(digits, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_word_serves_as_many_levels_as_32_bits_have_room_for() {
        // 2³² is 16⁸, (2¹⁶)², 23^7.07, 900^3.26.
        for (n, per_word) in [(2, 32), (16, 8), (23, 7), (900, 3), (1 << 16, 2), (1, u32::MAX)] {
            assert_eq!(Cuts::new(n).per_word, per_word, "{n}");
        }
    }

    /// χ² of `counts` against equal shares.
    fn chi_squared(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum()
    }

    /// Flows numbered 0, 1, 2 … as in the simulator fall evenly into the bins of every level, and
    /// into the pairs of bins of every two levels. χ² with k degrees of freedom has mean k and
    /// σ = √2k: the band is 6 σ.
    #[test]
    fn levels_are_uniform_and_independent_in_pairs() {
        for (n, levels) in [(23, 9), (16, 16), (7, 13), (900, 4)] {
            let hash = FlowHash::new(&mut Rng::new(5, 0));
            let flows = if n == 900 { 1_000_000 } else { 200_000 };
            let all: Vec<Vec<usize>> = (0..flows)
                .map(|f| Cuts::new(n).of(hash.word(FlowKey(f))).take(levels).collect())
                .collect();
            let n = n as usize;
            let check = |counts: &[u32], what: &str| {
                let k = counts.len() as f64 - 1.0;
                let x = chi_squared(counts);
                assert!((x - k).abs() < 6.0 * (2.0 * k).sqrt(), "{n}: {what}: χ² {x} for {k}");
            };
            for a in 0..levels {
                let mut counts = vec![0; n];
                all.iter().for_each(|bins| counts[bins[a]] += 1);
                check(&counts, "one level");
                for b in 0..a {
                    if n < 100 {
                        let mut counts = vec![0; n * n];
                        all.iter().for_each(|bins| counts[bins[a] * n + bins[b]] += 1);
                        check(&counts, "two levels");
                    }
                }
            }
        }
    }

    #[test]
    fn another_secret_is_another_hash() {
        let mut rng = Rng::new(1, 0);
        let words: BTreeSet<u64> =
            (0..100).map(|_| FlowHash::new(&mut rng).word(FlowKey(7))).collect();
        assert_eq!(words.len(), 100);
    }

    #[test]
    fn one_bin_is_bin_0() {
        assert!(Cuts::new(1).of(u64::MAX).take(100).all(|bin| bin == 0));
    }
}
