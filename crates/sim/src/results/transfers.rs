//! Transfers of a group: how many there were, how long they took, and how much longer than alone.

use link::Histogram;

/// Transfers that began in a window of time.
#[derive(Clone, Default, Debug)]
pub struct Transfers {
    /// Start of the window, ns.
    since: u64,
    began: u64,
    completed: u64,
    /// Times in ns.
    times: Histogram,
    /// Their sums by bucket: each time has itself for a weight.
    sums: Histogram,
    time_sum: u128,
    /// Times over those of the same transfers alone, in thousandths.
    slowdowns: Histogram,
    slowdown_sum: f64,
    /// How many have a slowdown.
    compared: u64,
    /// Times by size: of transfers of 1, 2 … 3, 4 … 7 packets and so on.
    by_size: Vec<BySize>,
}

/// Slowdowns of transfers of about one size.
#[derive(Clone, Default, Debug)]
struct BySize {
    slowdowns: Histogram,
    sum: f64,
    count: u64,
}

/// What they come to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TransferSummary {
    /// Transfers that began.
    pub began: u64,
    /// Those of them that were completed.
    pub completed: u64,
    /// Mean, quantiles (0.5, 0.95, 0.99) and maximum of their times, s; `None` without one.
    pub times_s: [Option<f64>; 5],
    /// Mean of the shortest 95 % of the times, s (a one-sided trimmed mean).
    pub trimmed_s: Option<f64>,
    /// Mean, quantiles (0.5, 0.95, 0.99) and maximum of the slowdowns: times over those of the same transfers
    /// alone.
    pub slowdowns: [Option<f64>; 5],
}

impl TransferSummary {
    /// How many transfers of the trimmed mean would follow one another in a minute; `None` where they
    /// took no time, as over a link so fast that a packet takes less than half a nanosecond.
    pub fn per_minute(&self) -> Option<f64> {
        self.trimmed_s.filter(|mean| *mean > 0.0).map(|mean| 60.0 / mean)
    }
}

const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];
/// What a trimmed mean keeps.
const KEPT: f64 = 0.95;

impl Transfers {
    /// A transfer begins.
    pub fn begin(&mut self) {
        self.began += 1;
    }

    /// A transfer that began at `began` is completed at `now` (ns). Its size in packets and the time
    /// that it takes alone are given where they are known.
    pub fn complete(&mut self, began: u64, now: u64, alone: Option<(u32, u64)>) {
        if began < self.since {
            return;
        }
        let time = now - began;
        self.completed += 1;
        self.times.add(time, 1);
        self.sums.add(time, time);
        self.time_sum += u128::from(time);
        if let Some((packets, alone)) = alone {
            let slowdown = time as f64 / alone.max(1) as f64;
            self.compared += 1;
            self.slowdowns.add((slowdown * 1000.0) as u64, 1);
            self.slowdown_sum += slowdown;
            let size = packets.max(1).ilog2() as usize;
            if self.by_size.len() <= size {
                self.by_size.resize_with(size + 1, BySize::default);
            }
            let of_size = &mut self.by_size[size];
            of_size.slowdowns.add((slowdown * 1000.0) as u64, 1);
            of_size.sum += slowdown;
            of_size.count += 1;
        }
    }

    /// For each size that occurs, as (fewest packets, most packets, transfers): mean and quantiles
    /// (0.5, 0.95, 0.99) of the slowdowns.
    pub fn slowdowns_by_size(&self) -> impl Iterator<Item = ([u64; 3], [f64; 4])> {
        let there = self.by_size.iter().enumerate().filter(|(_, all)| all.count > 0);
        there.map(|(size, all)| {
            let [low, middle, high] = QUANTILES.map(|q| all.slowdowns.quantile(q) as f64 / 1e3);
            let sizes = [1 << size, (2 << size) - 1, all.count];
            (sizes, [all.sum / all.count as f64, low, middle, high])
        })
    }

    /// Begins a new window at `now`: transfers that began before do not count.
    pub fn restart(&mut self, now: u64) {
        *self = Self { since: now, ..Self::default() };
    }

    /// What the window comes to so far.
    pub fn summary(&self) -> TransferSummary {
        let of = |histogram: &Histogram, unit: f64, sum: f64, count: u64| {
            let [low, middle, high] = QUANTILES.map(|q| histogram.quantile(q) as f64 / unit);
            let values =
                [sum / (count as f64 * unit), low, middle, high, histogram.max() as f64 / unit];
            values.map(|value| (count > 0).then_some(value))
        };
        TransferSummary {
            began: self.began,
            completed: self.completed,
            times_s: of(&self.times, 1e9, self.time_sum as f64, self.completed),
            trimmed_s: self.trimmed(),
            slowdowns: of(&self.slowdowns, 1e3, self.slowdown_sum * 1e3, self.compared),
        }
    }

    /// The mean of the shortest 95 %; where they end within a bucket it counts as its own mean.
    fn trimmed(&self) -> Option<f64> {
        let wanted = KEPT * self.completed as f64;
        let (mut kept, mut total) = (0.0, 0.0);
        for ((_, count), (_, sum)) in self.times.buckets().zip(self.sums.buckets()) {
            let taken = (count as f64).min(wanted - kept);
            kept += taken;
            total += taken * sum as f64 / count as f64;
        }
        (self.completed > 0).then(|| total / wanted / 1e9)
    }

    /// The distribution of times, as (upper end in s, transfers not longer), ascending.
    pub fn distribution(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        self.times.buckets().map(move |(upper, count)| {
            sum += count;
            (upper as f64 / 1e9, sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn times_are_counted_and_compared() {
        let mut all = Transfers::default();
        (0..5).for_each(|_| all.begin());
        for ms in [100, 200, 300, 400] {
            all.complete(10 * MS, (10 + ms) * MS, Some((5, 100 * MS)));
        }
        let summary = all.summary();
        assert_eq!((summary.began, summary.completed), (5, 4));
        // Quantiles are at most 1/32 off: the second and the fourth of four.
        let near = |got: Option<f64>, expected: f64| {
            let got = got.unwrap();
            assert!((got / expected - 1.0).abs() <= 1.0 / 32.0, "{got} for {expected}");
        };
        for (k, (time, slowdown)) in
            [(0.25, 2.5), (0.2, 2.0), (0.4, 4.0), (0.4, 4.0), (0.4, 4.0)].into_iter().enumerate()
        {
            near(summary.times_s[k], time);
            near(summary.slowdowns[k], slowdown);
        }
        let last = all.distribution().last().unwrap();
        assert!(last.1 == 4 && last.0 >= 0.4, "{last:?}");
    }

    /// Of a hundred times the five longest do not count, and a part of one counts as a part.
    #[test]
    fn a_trimmed_mean_leaves_out_the_longest() {
        let mut all = Transfers::default();
        assert_eq!(all.summary().trimmed_s, None);
        (0..95).for_each(|k| all.complete(0, (100 + k) * MS, None));
        (0..5).for_each(|_| all.complete(0, 3000 * MS, None));
        assert!((all.summary().trimmed_s.unwrap() - 0.147).abs() < 1e-9);
        let mut same = Transfers::default();
        (0..29).for_each(|_| same.complete(0, 1000 * MS, None));
        assert!((same.summary().trimmed_s.unwrap() - 1.0).abs() < 1e-9);
        assert!((same.summary().per_minute().unwrap() - 60.0).abs() < 1e-7);
        let mut timeless = Transfers::default();
        timeless.complete(0, 0, None);
        let summary = timeless.summary();
        assert_eq!((summary.trimmed_s, summary.per_minute()), (Some(0.0), None));
    }

    #[test]
    fn sizes_are_told_apart() {
        let mut all = Transfers::default();
        for (packets, ms) in [(1, 150), (4, 100), (7, 300), (8, 200)] {
            all.complete(0, ms * MS, Some((packets, 100 * MS)));
        }
        let [one, four, eight] = all.slowdowns_by_size().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!([one.0, four.0, eight.0], [[1, 1, 1], [4, 7, 2], [8, 15, 1]]);
        assert_eq!([one.1[0], four.1[0], eight.1[0]], [1.5, 2.0, 2.0]);
    }

    #[test]
    fn what_began_before_the_window_does_not_count() {
        let mut all = Transfers::default();
        all.begin();
        all.restart(50);
        all.complete(40, 60, None);
        let nothing = all.summary();
        assert_eq!((nothing.began, nothing.completed, nothing.times_s[0]), (0, 0, None));
        all.begin();
        all.complete(50, 60, None);
        let one = all.summary();
        assert_eq!((one.began, one.completed, one.slowdowns[0]), (1, 1, None));
        assert_eq!(one.times_s[0], Some(10e-9));
    }
}
