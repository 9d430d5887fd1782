//! The one place that reads a clock.

use std::time::{Instant, SystemTime};

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

    /// Time 0 in ns since 1970. A calendar that is set anew later changes nothing here.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Nanoseconds since time 0.
    pub fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}
