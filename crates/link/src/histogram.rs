//! Histograms: recording is a few instructions, and allocates only for a value larger than any before.

/// Values below have a weight each, which takes no search for a bucket.
const SMALL: usize = 1024;

/// A log-linear histogram of whole numbers with weights. Exact below 1024; above, each power of two has
/// 2 to the power of `BITS` buckets.
#[derive(Clone, Debug)]
pub struct LogLinear<const BITS: u32> {
    /// Of the values below 1024, and of the other buckets. A large network has many histograms: they have room up to
    /// the last that was needed.
    small: Vec<u64>,
    large: Vec<u64>,
    /// The least and the largest of the other values.
    min: u64,
    max: u64,
}

/// A bucket is at most 1/32 = 3.1 % wide.
pub type Histogram = LogLinear<5>;

/// Of times whose quantiles are compared: a bucket is at most 1/256 = 0.4 % wide.
pub type Fine = LogLinear<8>;

impl<const BITS: u32> Default for LogLinear<BITS> {
    fn default() -> Self {
        Self { small: Vec::new(), large: Vec::new(), min: u64::MAX, max: 0 }
    }
}

impl<const BITS: u32> LogLinear<BITS> {
    const SUB: u64 = 1 << BITS;
    /// The bucket of the first value that is not small, and how many there are from there on.
    const FIRST: usize = Self::bucket(SMALL as u64);
    const LARGE: usize = (((64 - BITS + 1) as usize) << BITS) - Self::FIRST;

    #[inline]
    const fn bucket(value: u64) -> usize {
        let shift = (value | Self::SUB).ilog2() - BITS;
        (((shift as u64) << BITS) + (value >> shift)) as usize
    }

    /// The largest value of a bucket.
    fn upper(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < 2 * Self::SUB {
            return bucket;
        }
        let shift = (bucket >> BITS) - 1;
        // Of the last bucket what is shifted out is the whole of it.
        (((bucket & (Self::SUB - 1)) + Self::SUB + 1) << shift).wrapping_sub(1)
    }

    /// Adds `weight` observations of `value`.
    #[inline]
    pub fn add(&mut self, value: u64, weight: u64) {
        if let Some(sum) = self.small.get_mut(value as usize) {
            *sum += weight;
            return;
        }
        match self.large.get_mut(Self::bucket(value).wrapping_sub(Self::FIRST)) {
            Some(sum) => *sum += weight,
            None => return self.add_beyond(value, weight),
        }
        if value > self.max {
            self.max = value;
        }
        if value < self.min {
            self.min = value;
        }
    }

    /// Takes the room for every value, so that none takes memory later.
    pub fn reserve(&mut self) {
        self.small.resize(SMALL, 0);
        self.large.resize(Self::LARGE, 0);
    }

    /// This one, with [`LogLinear::reserve`].
    #[must_use]
    pub fn reserved(mut self) -> Self {
        self.reserve();
        self
    }

    /// Adds a value that there is no room for yet.
    #[cold]
    #[inline(never)]
    fn add_beyond(&mut self, value: u64, weight: u64) {
        let (weights, at) = match Self::bucket(value).checked_sub(Self::FIRST) {
            Some(bucket) => (&mut self.large, bucket),
            None => (&mut self.small, value as usize),
        };
        let room = (at + 1).next_multiple_of(Self::SUB as usize);
        weights.reserve_exact(room - weights.len());
        weights.resize(room, 0);
        self.add(value, weight);
    }

    /// The largest value added; 0 if there was none.
    pub fn max(&self) -> u64 {
        let small = || self.small.iter().rposition(|&weight| weight > 0).unwrap_or(0) as u64;
        if self.max > 0 { self.max } else { small() }
    }

    /// The quantile `q` (0 … 1): the smallest value that at least that share of the weight does not
    /// exceed. Exact below 1024; above, the weight of a bucket counts as spread evenly over its width,
    /// between the least and the largest value, so that equal values are each quantile. The result is
    /// off by less than a bucket's width. 0 for an empty histogram.
    pub fn quantile(&self, q: f64) -> u64 {
        let total = self.parts().map(|part| part.2).sum();
        Self::quantile_of(self.parts(), total, [self.min, self.max()], q)
    }

    /// As [`Self::quantile`], of parts (least value, largest value, weight), ascending.
    fn quantile_of(
        parts: impl Iterator<Item = (u64, u64, u64)>,
        total: u64,
        [min, max]: [u64; 2],
        q: f64,
    ) -> u64 {
        let wanted = (total as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (least, most, weight) in parts {
            if seen + weight >= wanted && wanted < total {
                let least = if min <= most { least.max(min) } else { least };
                let most = most.min(max);
                let place = ((wanted - seen) as f64 - 0.5) / weight as f64;
                return least + ((most - least) as f64 * place).round() as u64;
            }
            seen += weight;
        }
        max
    }

    /// Each small value, then each bucket: least value, largest value, weight.
    fn parts(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let small = (0..).zip(self.small.iter()).map(|(value, &weight)| (value, value, weight));
        let large = (Self::FIRST..).zip(&self.large);
        small.chain(large.map(|(bucket, &weight)| Self::part(bucket, weight)))
    }

    fn part(bucket: usize, weight: u64) -> (u64, u64, u64) {
        let least = bucket.checked_sub(1).map_or(0, |before| Self::upper(before) + 1);
        (least, Self::upper(bucket), weight)
    }

    /// The parts in use, as (largest value, weight), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let max = self.max();
        let used = self.parts().filter(|part| part.2 > 0);
        used.map(move |(_, most, weight)| (most.min(max), weight))
    }

    /// Adds what another one has.
    pub fn join(&mut self, other: &Self) {
        let add = |to: &mut Vec<u64>, from: &[u64]| {
            to.resize(to.len().max(from.len()), 0);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        };
        add(&mut self.small, &other.small);
        add(&mut self.large, &other.large);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything; the room is kept.
    pub fn clear(&mut self) {
        self.small.fill(0);
        self.large.fill(0);
        (self.min, self.max) = (u64::MAX, 0);
    }
}

/// Times in the buckets of a [`Histogram`], of which there may be one for each flow: only the range
/// that is in use takes room, four bytes a bucket.
#[derive(Clone, Default, Debug)]
pub struct Times {
    /// The first bucket of the range.
    first: usize,
    weights: Vec<u32>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Times {
    /// Adds one.
    pub fn add(&mut self, value: u64) {
        *self.bucket(Histogram::bucket(value)) += 1;
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// The weight of a bucket, for which the range grows if need be.
    fn bucket(&mut self, bucket: usize) -> &mut u32 {
        if self.weights.is_empty() {
            self.first = bucket;
        }
        if let Some(missing @ 1..) = self.first.checked_sub(bucket) {
            self.weights.splice(..0, std::iter::repeat_n(0, missing));
            self.first = bucket;
        }
        let at = bucket - self.first;
        if at >= self.weights.len() {
            self.weights.resize(at + 1, 0);
        }
        &mut self.weights[at]
    }

    /// Adds what another one has.
    pub fn join(&mut self, other: &Self) {
        for (bucket, weight) in (other.first..).zip(&other.weights) {
            if *weight > 0 {
                *self.bucket(bucket) += weight;
            }
        }
        if self.count == 0 || other.count > 0 && other.min < self.min {
            self.min = other.min;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, if there are any.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// As [`Histogram::quantile`].
    pub fn quantile(&self, q: f64) -> u64 {
        let buckets = (self.first..).zip(&self.weights);
        let parts = buckets.map(|(bucket, &weight)| Histogram::part(bucket, weight.into()));
        Histogram::quantile_of(parts, self.count, [self.min, self.max], q)
    }

    /// The largest; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Forgets all; the room is kept.
    pub fn clear(&mut self) {
        self.weights.clear();
        (self.count, self.sum, self.max) = (0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of three packets are two.
    #[test]
    fn a_share_is_made_of_whole_weights() {
        let mut h = Histogram::default();
        (1..=3).for_each(|value| h.add(value, 1));
        assert_eq!([0.0, 0.3, 0.5, 0.7, 1.0].map(|q| h.quantile(q)), [1, 1, 2, 3, 3]);
    }

    /// However they come, and joined from several.
    #[test]
    fn times_have_the_quantiles_of_a_histogram() {
        let values =
            [90_000u64, 7, 1_000_000, 31, 32, 65_000, 64_999, 1024, 1025, 2_000_000_000, 5];
        let (mut all, mut one, mut other) =
            (Histogram::default(), Times::default(), Times::default());
        for (n, &value) in values.iter().cycle().take(100).enumerate() {
            all.add(value, 1);
            if n % 3 == 0 { &mut one } else { &mut other }.add(value);
        }
        one.join(&other);
        for q in [0.0, 0.01, 0.3, 0.5, 0.9, 0.95, 0.99, 1.0] {
            assert_eq!(one.quantile(q), all.quantile(q), "{q}");
        }
        let sum: u64 = values.iter().cycle().take(100).sum();
        assert_eq!(
            (one.count(), one.max(), one.mean()),
            (100, all.max(), Some(sum as f64 / 100.0))
        );
        one.clear();
        one.add(3);
        assert_eq!((one.quantile(0.5), one.max(), one.mean()), (3, 3, Some(3.0)));
        assert_eq!((Times::default().quantile(0.5), Times::default().mean()), (0, None));
    }

    #[test]
    fn buckets_are_monotone_and_hold_their_values() {
        let mut last = 0;
        for value in (0..200_000u64).chain((18..39).map(|s| (1u64 << s) + 12345)) {
            let bucket = Fine::bucket(value);
            assert!(bucket >= last && Fine::upper(bucket) >= value, "{value}");
            assert!(bucket == 0 || Fine::upper(bucket - 1) < value, "{value}");
            last = bucket;
        }
    }

    /// Also within a bucket: equal values have their own value as quantile. Two samples whose quantiles share
    /// a bucket differ all the same; otherwise an interval over seeds could have no width.
    #[test]
    fn quantiles_are_interpolated() {
        let mut h = Histogram::default();
        (1..=100_000u64).for_each(|v| h.add(v, 1));
        for q in [0.001, 0.0101, 0.5, 0.7, 0.95, 0.99, 0.999] {
            let exact = 1e5 * q;
            assert!((h.quantile(q) as f64 - exact).abs() <= 1.0, "{q}: {}", h.quantile(q));
        }
        assert_eq!((h.quantile(1.0), h.max()), (100_000, 100_000));
        let mut joined = Histogram::default();
        (1..=10u64).for_each(|v| joined.add(v, 1));
        joined.join(&h);
        assert_eq!((joined.quantile(20.0 / 100_010.0), joined.max()), (10, 100_000));
        let of = |low: u64| {
            let mut h = Histogram::default();
            (0..1000).for_each(|v| h.add(low + v, 1));
            h.quantile(0.99)
        };
        assert!(of(100_000) < of(100_010));
    }

    /// Also where all values are a few, as multiples of the time of a packet.
    #[test]
    fn fine_quantiles_are_close() {
        let mut h = Fine::default();
        (1..=50u64).for_each(|packets| h.add(808_000 * packets, packets));
        for (q, exact) in [(0.5, 36), (0.95, 49), (0.99, 50)] {
            let error = h.quantile(q) as f64 / (808_000 * exact) as f64 - 1.0;
            assert!(error.abs() < 1.0 / 256.0, "{q}: {error}");
        }
    }

    #[test]
    fn whole_numbers_below_1024_are_exact() {
        let mut h = Histogram::default();
        (500..=1023).for_each(|v| h.add(v, 1));
        assert_eq!([0.25, 0.5, 0.75].map(|q| h.quantile(q)), [630, 761, 892]);
    }

    #[test]
    fn empty_and_huge_values_are_no_trouble() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile(0.5), 0);
        h.add(u64::MAX, 3);
        assert_eq!(h.max(), u64::MAX);
        let mut joined = Histogram::default();
        joined.add(2000, 1);
        joined.join(&h);
        assert_eq!(joined.max(), u64::MAX);
        assert!((2000..2048).contains(&joined.quantile(0.25)));
    }

    /// In steps of 32 buckets; 5000 is in the 72nd above those of small values.
    #[test]
    fn there_is_room_up_to_the_largest_value_or_for_all() {
        let room = |h: &Histogram| (h.small.len(), h.large.len());
        let mut h = Histogram::default();
        [3, 5000].into_iter().for_each(|value| h.add(value, 1));
        assert_eq!(room(&h), (32, 96));
        let mut h = h.reserved();
        let all = room(&h);
        [1023, u64::MAX].into_iter().for_each(|value| h.add(value, 1));
        assert_eq!((room(&h), h.max(), h.quantile(0.5)), (all, u64::MAX, 1023));
    }

    #[test]
    fn nothing_is_left_of_what_is_forgotten() {
        let mut h = Histogram::default();
        for value in [3, 5_000_000] {
            h.add(value, 2);
        }
        h.clear();
        assert_eq!((h.max(), h.quantile(0.5), h.buckets().count()), (0, 0, 0));
    }
}
