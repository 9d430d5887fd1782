//! Fixed histograms: recording is a few instructions and never allocates.

/// Sub-buckets of each power of two: 32, so that a quantile is at most 1/32 = 3.1 % too high.
const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS + 1) as usize) << SUB_BITS;
/// Values below have a weight each until somebody asks, which takes no search for a bucket.
const SMALL: usize = 1024;

/// A log-linear histogram of whole numbers with weights. Exact below 32, then in buckets of
/// relative width 1/32.
#[derive(Clone, Debug)]
pub struct Histogram {
    small: Box<[u64; SMALL]>,
    /// Of the other values, by bucket.
    weights: Box<[u64; BUCKETS]>,
    /// The largest of the other values.
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { small: Box::new([0; SMALL]), weights: Box::new([0; BUCKETS]), max: 0 }
    }
}

impl Histogram {
    #[inline]
    fn bucket(value: u64) -> usize {
        if value < SUB {
            return value as usize;
        }
        let shift = value.ilog2() - SUB_BITS;
        ((u64::from(shift) << SUB_BITS) + (value >> shift)) as usize
    }

    /// The largest value of a bucket.
    fn upper(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < 2 * SUB {
            return bucket;
        }
        let shift = (bucket >> SUB_BITS) - 1;
        (((bucket & (SUB - 1)) + SUB + 1) << shift) - 1
    }

    /// Adds `weight` observations of `value`.
    #[inline]
    pub fn add(&mut self, value: u64, weight: u64) {
        if value < SMALL as u64 {
            self.small[value as usize] += weight;
            return;
        }
        self.weights[Self::bucket(value)] += weight;
        if value > self.max {
            self.max = value;
        }
    }

    /// The largest value added; 0 if there was none.
    pub fn max(&self) -> u64 {
        let small = || self.small.iter().rposition(|&weight| weight > 0).unwrap_or(0) as u64;
        if self.max > 0 { self.max } else { small() }
    }

    /// Weights by bucket.
    fn by_bucket(&self) -> [u64; BUCKETS] {
        let mut weights = *self.weights;
        for (value, weight) in (0..).zip(self.small.iter()) {
            weights[Self::bucket(value)] += weight;
        }
        weights
    }

    /// The smallest value that at least the share `q` (0 … 1) of the weight does not exceed, never
    /// too low and at most 1/32 too high; 0 for an empty histogram.
    pub fn quantile(&self, q: f64) -> u64 {
        let weights = self.by_bucket();
        let total: u64 = weights.iter().sum();
        let wanted = (total as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        let max = self.max();
        for (bucket, weight) in weights.into_iter().enumerate() {
            seen += weight;
            if seen >= wanted && weight > 0 {
                return Self::upper(bucket).min(max);
            }
        }
        max
    }

    /// The buckets in use, as (largest value, weight), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let max = self.max();
        let used = self.by_bucket().into_iter().enumerate().filter(|(_, weight)| *weight > 0);
        used.map(move |(bucket, weight)| (Self::upper(bucket).min(max), weight))
    }

    /// Adds what another one has.
    pub fn join(&mut self, other: &Self) {
        let add = |to: &mut [u64], from: &[u64]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        };
        add(&mut self.small[..], &other.small[..]);
        add(&mut self.weights[..], &other.weights[..]);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.small.fill(0);
        self.weights.fill(0);
        self.max = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_monotone_and_hold_their_values() {
        let mut last = 0;
        for value in (0..200_000u64).chain((18..39).map(|s| (1u64 << s) + 12345)) {
            let bucket = Histogram::bucket(value);
            assert!(bucket >= last && Histogram::upper(bucket) >= value, "{value}");
            assert!(bucket == 0 || Histogram::upper(bucket - 1) < value, "{value}");
            last = bucket;
        }
    }

    #[test]
    fn quantiles_are_within_a_thirty_second() {
        let mut h = Histogram::default();
        (1..=100_000u64).for_each(|v| h.add(v, 1));
        for (q, exact) in [(0.5, 50_000.0), (0.95, 95_000.0), (0.99, 99_000.0)] {
            let error = h.quantile(q) as f64 / exact - 1.0;
            assert!((0.0..1.0 / 32.0).contains(&error), "{q}: {error}");
        }
        assert_eq!((h.quantile(1.0), h.max()), (100_000, 100_000));
        let mut joined = Histogram::default();
        (1..=10u64).for_each(|v| joined.add(v, 1));
        joined.join(&h);
        assert_eq!((joined.quantile(20.0 / 100_010.0), joined.max()), (10, 100_000));
    }

    #[test]
    fn empty_and_huge_values_are_no_trouble() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile(0.5), 0);
        h.add(u64::MAX, 3);
        assert_eq!(h.max(), u64::MAX);
    }
}
