//! The fair share of nonresponsive flows, from an estimate of how many flows there are (WVT90).

use super::BinsConfig;
use crate::hash::FlowHash;
use crate::packet::FlowKey;
use crate::policy::Env;
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Estimates how much of the link is due to the nonresponsive flows.
#[derive(Clone, Debug)]
pub(super) struct Share {
    link: Rate,
    interval: Duration,
    hash: FlowHash,
    /// When this interval ends.
    end: Instant,
    all: Count,
    nonresponsive: Count,
}

impl Share {
    pub(super) fn new(c: &BinsConfig, env: &Env, rng: &mut Rng) -> Self {
        Self {
            link: env.rate,
            interval: c.share_interval,
            hash: FlowHash::new(rng),
            end: env.now + c.share_interval,
            all: Count::ZERO,
            nonresponsive: Count::ZERO,
        }
    }

    /// The estimate, if the interval is over; then the next one begins.
    pub(super) fn estimate(&mut self, now: Instant) -> Option<Rate> {
        if now < self.end {
            return None;
        }
        let rate = fair_rate(self.link, self.nonresponsive.flows(), self.all.flows());
        self.end = now + self.interval;
        (self.all, self.nonresponsive) = (Count::ZERO, Count::ZERO);
        Some(rate)
    }

    /// The link has another rate.
    pub(super) fn rate_changed(&mut self, env: &Env) {
        self.link = env.rate;
    }

    /// A packet of a flow arrives.
    pub(super) fn count(&mut self, flow: FlowKey, nonresponsive: bool) {
        let word = self.hash.word(flow);
        self.all.add(word);
        if nonresponsive {
            self.nonresponsive.add(word);
        }
    }
}

/// A linear count of flows: a bit for each that came by, if no other had taken it.
#[derive(Clone, Debug)]
struct Count([u64; 64]);

impl Count {
    const ZERO: Self = Self([0; 64]);
    const BITS: u32 = 64 * 64;

    fn add(&mut self, word: u64) {
        // The highest bits of the word choose one of 64 words, the next one of 64 bits.
        self.0[(word >> 58) as usize] |= 1 << (word >> 52 & 63);
    }

    /// The number of flows; one bit is taken as zero when none is.
    fn flows(&self) -> f64 {
        let zeros: u32 = self.0.iter().map(|word| word.count_zeros()).sum();
        let b = f64::from(Self::BITS);
        b * libm::log(b / f64::from(zeros.max(1)))
    }
}

/// The rate due to `nonresponsive` of `all` flows; at least one flow's.
fn fair_rate(link: Rate, nonresponsive: f64, all: f64) -> Rate {
    let m = nonresponsive.max(1.0);
    let bits = link.bits_per_second() as f64 * m / all.max(m);
    Rate::new(bits as u64).unwrap_or(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For b = 4096 bits and n flows the standard error of the estimate is √(b·(e^t − t − 1))/n at
    /// t = n/b: 1.2 % at 1000, 1.1 % at 4000; the band is 5 of it.
    #[test]
    fn flows_are_counted_to_a_few_per_cent() {
        let hash = FlowHash::new(&mut Rng::new(1, 0));
        for (n, band) in [(0, 0.0), (1, 0.001), (10, 0.02), (1000, 0.06), (4000, 0.06)] {
            let mut count = Count::ZERO;
            (0..2 * n).for_each(|flow| count.add(hash.word(FlowKey(flow % n))));
            let error = (count.flows() - n as f64).abs();
            assert!(error <= band * n as f64, "{n}: off by {error}");
        }
        assert!((Count([u64::MAX; 64]).flows() - 4096.0 * libm::log(4096.0)).abs() < 1e-6);
    }

    #[test]
    fn a_fair_share_is_that_of_so_many_flows() {
        let link = Rate::from_mbit(45);
        for (m, n, mbit) in [(1.0, 9.0, 5.0), (4.0, 9.0, 20.0), (0.0, 9.0, 5.0), (0.0, 0.0, 45.0)] {
            let rate = fair_rate(link, m, n).bits_per_second();
            assert_eq!(rate, (mbit * 1e6) as u64, "{m} of {n}");
        }
    }
}
