//! A set of packet numbers in a sliding window, as a ring of bits.

/// Numbers in `base .. base + capacity`, one bit each. Memory is taken when a number is first put
/// in, and doubles when the window outgrows it; a flow that never loses a packet takes none.
#[derive(Clone, Default, Debug)]
pub struct Bits {
    words: Box<[u64]>,
    ones: u32,
    base: u32,
}

const FIRST_WORDS: usize = 1;

impl Bits {
    fn capacity(&self) -> u32 {
        self.words.len() as u32 * 64
    }

    fn place(&self, n: u32) -> (usize, u64) {
        let bit = n & (self.capacity() - 1);
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    /// How many numbers are in the set.
    pub fn ones(&self) -> u32 {
        self.ones
    }

    /// Whether `n` is in the set.
    pub fn contains(&self, n: u32) -> bool {
        if n.wrapping_sub(self.base) >= self.capacity() {
            return false;
        }
        let (word, bit) = self.place(n);
        self.words[word] & bit != 0
    }

    /// Puts `n` in; false if it was there or lies below the window.
    pub fn insert(&mut self, n: u32) -> bool {
        if n < self.base {
            return false;
        }
        while n - self.base >= self.capacity() {
            self.grow();
        }
        let (word, bit) = self.place(n);
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.ones += u32::from(new);
        new
    }

    /// Takes `n` out; whether it was there.
    pub fn remove(&mut self, n: u32) -> bool {
        let there = self.contains(n);
        if there {
            let (word, bit) = self.place(n);
            self.words[word] &= !bit;
            self.ones -= 1;
        }
        there
    }

    /// The lowest number from `from` on that is in the set, or is `not`.
    fn first(&self, from: u32, not: bool) -> Option<u32> {
        let (mut n, end) = (from.max(self.base), self.base + self.capacity());
        while n < end {
            let (word, _) = self.place(n);
            let bits = if not { !self.words[word] } else { self.words[word] };
            let here = bits >> (n % 64);
            if here > 0 {
                // Beyond the end the ring begins again.
                return Some(n + here.trailing_zeros()).filter(|&n| n < end);
            }
            n += 64 - n % 64;
        }
        None
    }

    /// The lowest number in the set from `from` on.
    pub fn next(&self, from: u32) -> Option<u32> {
        if self.ones == 0 { None } else { self.first(from, false) }
    }

    /// The lowest number that is not in the set, from `from` on, which is in the window or beyond.
    pub fn next_missing(&self, from: u32) -> u32 {
        let end = self.base + self.capacity();
        self.first(from, true).unwrap_or(from.max(end))
    }

    fn grow(&mut self) {
        let words = (self.words.len() * 2).max(FIRST_WORDS);
        let mut larger =
            Self { words: vec![0; words].into_boxed_slice(), ones: 0, base: self.base };
        for n in self.base..self.base + self.capacity() {
            if self.contains(n) {
                larger.insert(n);
            }
        }
        *self = larger;
    }

    /// Moves the window's start up to `base` and takes out what lies below.
    #[inline]
    pub fn advance(&mut self, base: u32) {
        if self.ones > 0 {
            for n in self.base..base.min(self.base + self.capacity()) {
                let (word, bit) = self.place(n);
                self.ones -= u32::from(self.words[word] & bit != 0);
                self.words[word] &= !bit;
            }
        }
        self.base = self.base.max(base);
    }

    /// Takes out everything.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.ones = 0;
    }

    /// Takes out everything and begins again at 0; the memory is kept.
    pub fn restart(&mut self) {
        self.clear();
        self.base = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn behaves_as_a_naive_set() {
        let mut rng = aqm::Rng::new(4, 0);
        let mut bits = Bits::default();
        let mut naive = BTreeSet::new();
        let mut base = 0;
        for step in 0..20_000 {
            match rng.below(10) {
                0 => {
                    base += rng.below(40) as u32;
                    bits.advance(base);
                    naive = naive.split_off(&base);
                }
                1 if step % 50 == 0 => {
                    bits.clear();
                    naive.clear();
                }
                _ => {
                    let n = base + rng.below(300) as u32;
                    assert_eq!(bits.insert(n), naive.insert(n));
                }
            }
            assert_eq!(bits.ones() as usize, naive.len());
            let (from, to) = (base + rng.below(300) as u32, base + rng.below(400) as u32);
            assert_eq!(bits.contains(from), naive.contains(&from));
            assert_eq!(bits.next(from), naive.range(from..).next().copied());
            let missing = (from..).find(|n| !naive.contains(n));
            assert_eq!(Some(bits.next_missing(from)), missing);
            if step % 3 == 0 {
                assert_eq!(bits.remove(to), naive.remove(&to));
            }
        }
    }
}
