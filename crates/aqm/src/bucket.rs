//! A token bucket, which counts exactly: in bits per 10⁹ of a second.

use alloc::format;

use crate::context::Env;
use crate::param::ConfigError;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Rate, Size};

/// Units of tokens in a byte.
const BYTE: u64 = 8_000_000_000;

/// A bucket of tokens, full at first.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Bits a second.
    rate: u64,
    /// What it holds at most and now.
    size: u64,
    tokens: u64,
    /// When that was.
    at: Instant,
}

impl Bucket {
    /// A bucket of a parameter's `size`, which is `least` bytes at the least, those of what follows.
    ///
    /// # Errors
    /// About that parameter.
    pub(crate) fn new(
        (key, size): (&'static str, Size),
        rate: Rate,
        (least, of): (u32, &str),
        env: &Env,
    ) -> Result<Self, ConfigError> {
        let size = env.resolve(key, size, Measure::Bytes)?;
        if !(f64::from(least)..=1e9).contains(&size) {
            let allowed = format!("{of} at least, and at most 1GB").into();
            return Err(ConfigError { key, allowed });
        }
        let size = size as u64 * BYTE;
        Ok(Self { rate: rate.bits_per_second(), size, tokens: size, at: env.now })
    }

    /// Whether it has room for the tokens of `len` bytes.
    pub(crate) fn may_hold(&self, len: u32) -> bool {
        u64::from(len) * BYTE <= self.size
    }

    fn tokens_at(&self, now: Instant) -> u64 {
        let gained = u128::from(self.rate) * u128::from(now.since(self.at).as_nanos());
        (u128::from(self.tokens) + gained).min(self.size.into()) as u64
    }

    /// The whole bytes that it holds tokens for at `now`.
    pub(crate) fn bytes_at(&self, now: Instant) -> u64 {
        self.tokens_at(now) / BYTE
    }

    /// Time has gone on.
    pub(crate) fn fill(&mut self, now: Instant) {
        (self.tokens, self.at) = (self.tokens_at(now), now);
    }

    /// When it holds the tokens of `len` bytes, if none are taken.
    pub(crate) fn holds_at(&self, len: u32) -> Instant {
        let missing = (u64::from(len) * BYTE).saturating_sub(self.tokens);
        self.at + Duration::from_nanos(missing.div_ceil(self.rate))
    }

    /// Takes the tokens of `len` bytes, if it holds them; whether it did.
    pub(crate) fn take(&mut self, len: u32) -> bool {
        let left = self.tokens.checked_sub(u64::from(len) * BYTE);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}
