//! The least round trip of late (RFC 8985 §6.2, step 1).

/// The least of the samples of the last 150 to 300 s; Linux keeps those of 300 s.
#[derive(Clone, Default, Debug)]
pub(super) struct Least {
    /// That of the present stretch of time and of the one before, ns; 0: there was none.
    halves: [u64; 2],
    /// When the present one began.
    since: u64,
}

const HALF: u64 = 150_000_000_000;

impl Least {
    /// A sample, at `now`.
    pub(super) fn take(&mut self, now: u64, rtt: u64) {
        let age = now - self.since;
        if age >= HALF {
            let before = if age < 2 * HALF { self.halves[0] } else { 0 };
            (self.halves, self.since) = ([0, before], now);
        }
        if self.halves[0] == 0 || rtt < self.halves[0] {
            self.halves[0] = rtt;
        }
    }

    /// It, ns; 0 before the first sample.
    pub(super) fn ns(&self) -> u64 {
        match self.halves {
            [now, 0] => now,
            [now, before] => now.min(before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_five_minutes_old_is_forgotten() {
        const S: u64 = 1_000_000_000;
        let mut least = Least::default();
        for (at, rtt, ns) in [
            (1, 50, 50),
            (2, 40, 40),
            (149, 90, 40),
            (151, 90, 40),
            (300, 80, 40),
            (302, 85, 80),
            (460, 95, 85),
            (800, 200, 200),
        ] {
            least.take(at * S, rtt);
            assert_eq!(least.ns(), ns, "{at} s");
        }
    }
}
