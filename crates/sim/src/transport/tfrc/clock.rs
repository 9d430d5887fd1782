//! The timeout of a TCP with a coarse clock, after Jacobson (*Congestion Avoidance and Control*, 1988,
//! appendix A): whole ticks, gains of 1/8 and 1/4, mean + 4 deviations.

/// Mean and deviation of round trips, as that algorithm scales them.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Clock {
    /// The mean in eighths of a tick; 0 before the first sample.
    mean: u32,
    /// The mean deviation in quarters of a tick.
    deviation: u32,
}

/// The longest sample, in ticks: nothing overflows.
const LONGEST: u64 = 1 << 24;

impl Clock {
    /// A round trip of `sample` ns, told in ticks of `tick` ns: the nearest number of them, 1 at least.
    pub(super) fn sample(&mut self, sample: u64, tick: u64) {
        let ticks = (sample.saturating_add(tick / 2) / tick).clamp(1, LONGEST) as u32;
        if self.mean == 0 {
            (self.mean, self.deviation) = (8 * ticks, 2 * ticks);
            return;
        }
        let (mean, deviation) = (self.mean / 8, self.deviation / 4);
        self.mean = (self.mean + ticks - mean).max(1);
        self.deviation = (self.deviation + ticks.abs_diff(mean) - deviation).max(1);
    }

    /// The timeout, s; nothing before the first sample.
    pub(super) fn timeout(self, tick: u64) -> Option<f64> {
        let ticks = (8 * self.deviation + self.mean) / 8;
        (self.mean > 0).then(|| super::seconds(u64::from(ticks) * tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TICK: u64 = 100 * MS;

    /// Milliseconds of the timeout after each of these round trips, in ms.
    fn timeouts(samples: &[u64]) -> Vec<u64> {
        let mut clock = Clock::default();
        let after = |ms: &u64| {
            clock.sample(ms * MS, TICK);
            (clock.timeout(TICK).unwrap_or_default() * 1e3).round() as u64
        };
        samples.iter().map(after).collect()
    }

    /// One tick is the least: a mean of 8/8 and a deviation of 2/4 stay, 1 + 4/2 = 3 ticks.
    #[test]
    fn round_trips_up_to_a_tick_and_a_half_give_three_ticks() {
        assert_eq!(timeouts(&[57, 57, 120, 149, 1]), [300; 5]);
        assert!(Clock::default().timeout(TICK).is_none());
    }

    /// By hand: mean 8, 9, 10, 11, 12 eighths; deviation 2, 3, 4, 4, 4 quarters.
    #[test]
    fn at_the_edge_of_two_ticks_it_is_five() {
        assert_eq!(timeouts(&[149, 151, 151, 151, 151]), [300, 400, 500, 500, 500]);
    }

    /// Two ticks from the first on: 16/8 and 4/4, which falls to 3/4, as a quarter of 3 is nothing.
    #[test]
    fn two_ticks_alone_give_five() {
        assert_eq!(timeouts(&[160, 160, 160]), [600, 500, 500]);
    }
}
