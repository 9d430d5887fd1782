//! The one place that reads a clock.

use std::time::Instant;

/// Nanoseconds since it was made; never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Time 0 is now.
    #[expect(clippy::disallowed_methods, reason = "real packets have real times")]
    #[expect(clippy::new_without_default, reason = "making one reads the clock")]
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since time 0.
    pub fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}
