//! The one place that reads a clock.

use std::time::{Duration, Instant, SystemTime};

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds since it was made; never goes back, whatever happens to the calendar.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    /// Time 0 in ns since 1970, by the machine's calendar.
    epoch: u64,
}

impl Clock {
    /// Time 0 is now.
    #[expect(clippy::disallowed_methods, reason = "real packets have real times")]
    #[expect(clippy::new_without_default, reason = "making one reads the clock")]
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), epoch: since.as_nanos() as u64 }
    }

    /// The clock of another process of this machine, which described it by [`Clock::told`].
    pub(crate) fn of([start, epoch]: [u64; 2]) -> Option<Self> {
        let since = monotonic().checked_sub(start)?;
        let start = Self::new().start.checked_sub(Duration::from_nanos(since))?;
        Some(Self { start, epoch })
    }

    /// Time 0, by the system's clock that never goes back and in ns since 1970.
    pub(crate) fn told(&self) -> [u64; 2] {
        // In this order a pause in between makes the other clock late, not early.
        let now = self.now();
        [monotonic().saturating_sub(now), self.epoch]
    }

    /// Time 0 in ns since 1970. A calendar that is set anew later changes nothing here.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Nanoseconds since time 0.
    pub fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// The system's clock that never goes back, ns.
fn monotonic() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// A time in ns since 1970 as RFC 3339 has it, in UTC, to the millisecond.
pub(crate) fn time_of_day(ns: u64) -> String {
    let (ms, seconds) = (ns / 1_000_000 % 1000, ns / 1_000_000_000);
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, in eras of 400 years (Howard Hinnant, "chrono-compatible low-level date
    // algorithms").
    let since_era = day + 719_468;
    let (era, of_era) = (since_era / 146_097, since_era % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{of_month:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u -d @SECONDS` says.
    #[test]
    fn times_of_day() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_767_225_599, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(time_of_day(seconds * 1_000_000_000), text);
        }
        assert_eq!(time_of_day(1_234_567_890_987_654_321), "2009-02-13T23:31:30.987Z");
    }
}
