//! Randomness is handed in: one named, portable generator (PCG64, `Lcg128Xsl64`), with a numbered
//! stream for every user, so that a new user does not shift another's draws.

use alloc::vec::Vec;
use rand_core::Rng as _;
use rand_pcg::Pcg64;

/// A stream of random numbers. The same `(seed, stream)` gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Rng {
    pcg: Pcg64,
    /// The last number that was drawn for a probability, and that; written down without asking whether
    /// somebody wants to know, since that would cost more.
    thrown: (f64, f64),
    /// Whether it is also written down where the probability is not known without effort.
    heard: bool,
}

/// Whether the same numbers follow.
impl PartialEq for Rng {
    fn eq(&self, other: &Self) -> bool {
        self.pcg == other.pcg
    }
}

/// A number that was drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Coin {
    /// The number, in [0, 1).
    pub drawn: f64,
    /// The probability that it was drawn for, within [0, 1], if it was for one ([`Rng::chance`]) and
    /// no other number was for another before somebody asked.
    pub p: Option<f64>,
}

/// No number is drawn for this.
const NOTHING: (f64, f64) = (f64::NAN, f64::NAN);

impl Rng {
    /// The `stream`-th stream of a seed. Streams are independent for any practical use: seed and
    /// stream are mixed by SplitMix64 before they become state and increment.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mix = SplitMix(seed ^ stream.wrapping_mul(0xD134_2543_DE82_EF95));
        let state = (u128::from(mix.next()) << 64) | u128::from(mix.next());
        let increment = (u128::from(mix.next()) << 64) | u128::from(stream);
        Self { pcg: Pcg64::new(state, increment), thrown: NOTHING, heard: false }
    }

    /// A uniform 64-bit word.
    pub fn bits(&mut self) -> u64 {
        self.pcg.next_u64()
    }

    /// Uniform in [0, 1) with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`: never at `p <= 0`, always at `p >= 1`. Draws one number in every
    /// case, so that a change of `p` does not shift later draws.
    pub fn chance(&mut self, p: f64) -> bool {
        let drawn = self.uniform();
        self.thrown = (drawn, p);
        drawn < p
    }

    /// `drawn` was for something of probability `p`, which is computed only if somebody listens.
    pub(crate) fn drawn_for(&mut self, drawn: f64, p: impl FnOnce() -> f64) {
        if self.heard {
            self.thrown = (drawn, p());
        }
    }

    /// Uniform in `0..n` (Lemire's multiplication; bias below 2⁻³² for `n` < 2³²). `n` must be
    /// positive.
    pub fn below(&mut self, n: usize) -> usize {
        debug_assert!(n > 0, "below(0) has no value to give");
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Returns the stream's state, with which one can ask later what was drawn from here on. No draw changes.
    pub fn listen(&mut self) -> Self {
        (self.thrown, self.heard) = (NOTHING, true);
        self.clone()
    }

    /// Appends what was drawn since `before` was returned, in its order; nobody listens any more.
    pub fn heard_since(&mut self, mut before: Self, coins: &mut Vec<Coin>) {
        self.heard = false;
        self.drawn_since(&mut before, coins);
    }

    /// Appends what was drawn since `before` was returned, or since the last such question.
    pub(crate) fn drawn_since(&self, before: &mut Self, coins: &mut Vec<Coin>) {
        let first = coins.len();
        while before != self {
            coins.push(Coin { drawn: before.uniform(), p: None });
        }
        let (drawn, p) = self.thrown;
        if let Some(coin) = coins[first..].iter_mut().rfind(|coin| coin.drawn == drawn) {
            coin.p = Some(p.clamp(0.0, 1.0));
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014), used to spread seeds and to stretch hashes.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        let mixed = mixed(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed
    }
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// One step of SplitMix64: a word that looks unrelated to `word`, different for different ones.
pub(crate) fn mixed(word: u64) -> u64 {
    let mut z = word.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pinned so that a new version of the generator's crate cannot change results unseen.
    #[test]
    fn first_words_are_pinned() {
        let mut r = Rng::new(1, 2);
        let words = [r.bits(), r.bits(), r.bits()];
        assert_eq!(
            words,
            [14_011_682_809_037_996_225, 5_182_588_843_946_161_203, 328_945_002_422_133_817]
        );
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = |seed, stream| Rng::new(seed, stream).bits();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_eq!(first(7, 3), first(7, 3));
    }

    #[test]
    fn chance_is_exact_at_the_ends() {
        let mut r = Rng::new(5, 0);
        assert!((0..10_000).all(|_| !r.chance(0.0)));
        assert!((0..10_000).all(|_| r.chance(1.0)));
    }

    /// 100 000 draws: mean of a uniform is 0.5 with σ = 0.29/√n = 0.0009; the band is 5 σ.
    #[test]
    fn uniform_has_the_right_mean() {
        let mut r = Rng::new(9, 0);
        let mean = (0..100_000).map(|_| r.uniform()).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.0046, "{mean}");
    }

    #[test]
    fn below_covers_its_range() {
        let mut r = Rng::new(3, 0);
        let mut seen = [0u32; 7];
        (0..7_000).for_each(|_| seen[r.below(7)] += 1);
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
