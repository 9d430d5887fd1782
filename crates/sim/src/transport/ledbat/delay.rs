//! The queueing delay (§2.4.2, §3.4): the least delay of late, less the least of the last ten minutes.

const MINUTE: u64 = 60_000_000_000;
const BASE_HISTORY: usize = 10;
const CURRENT_FILTER: usize = 4;

/// Delays so far, ns; what there was not yet is infinite.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    minutes: [u64; BASE_HISTORY],
    /// The minute of the first of them.
    minute: u64,
    last: [u64; CURRENT_FILTER],
    next: usize,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            minutes: [u64::MAX; BASE_HISTORY],
            minute: 0,
            last: [u64::MAX; CURRENT_FILTER],
            next: 0,
        }
    }
}

impl Delays {
    pub(super) fn take(&mut self, now: u64, delay: u64) {
        let minute = now / MINUTE;
        if minute != self.minute {
            self.minutes.rotate_right(1);
            (self.minute, self.minutes[0]) = (minute, u64::MAX);
        }
        self.minutes[0] = self.minutes[0].min(delay);
        self.last[self.next] = delay;
        self.next = (self.next + 1) % CURRENT_FILTER;
    }

    /// In queues, after the first delay was taken.
    pub(super) fn queueing(&self) -> u64 {
        let least = |of: &[u64]| of.iter().copied().min().unwrap_or(u64::MAX);
        least(&self.last).saturating_sub(least(&self.minutes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_least_of_four_is_above_the_least_of_ten_minutes() {
        let mut delays = Delays::default();
        for (delay, queueing) in [(50, 0), (70, 0), (90, 0), (80, 0), (75, 20), (95, 25)] {
            delays.take(MINUTE, delay * MS);
            assert_eq!(delays.queueing(), queueing * MS, "{delay}");
        }
    }

    /// A delay of the first minute counts in the tenth, and not in the eleventh.
    #[test]
    fn a_base_is_forgotten_after_ten_minutes() {
        let mut delays = Delays::default();
        delays.take(0, 40 * MS);
        for (minute, queueing) in [(1, 20), (5, 20), (6, 20), (7, 20), (8, 20)] {
            for _ in 0..4 {
                delays.take(minute * MINUTE, 60 * MS);
            }
            assert_eq!(delays.queueing(), queueing * MS, "{minute}");
        }
        for minute in 9..14 {
            delays.take(minute * MINUTE, 60 * MS);
        }
        assert_eq!(delays.queueing(), 0);
    }
}
