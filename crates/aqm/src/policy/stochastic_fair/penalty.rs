//! The penalty: what limits nonresponsive flows, all together.

use alloc::boxed::Box;

use super::share::Share;
use super::{BinsConfig, Penalty};
use crate::packet::FlowKey;
use crate::param::ConfigError;
use crate::policy::{Cx, Env};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Rate};

/// A limit for all nonresponsive flows together.
#[derive(Clone, Debug)]
pub(super) struct Limiter {
    penalty: Penalty,
    rate: Rate,
    boxtime: Duration,
    jitter: f64,
    /// How far ahead of its rate the limiter may run, and in bytes.
    burst: Duration,
    burst_bytes: u64,
    /// Up to when what has passed keeps it busy; `None`: long ago.
    busy_until: Option<Instant>,
    /// Packets that may still pass, the most of them, and when they were last counted (`tokens`).
    tokens: u64,
    most_tokens: u64,
    counted: Instant,
    share: Option<Box<Share>>,
}

impl Limiter {
    /// With nothing passed yet.
    ///
    /// # Errors
    /// When the burst is no number of bytes.
    pub(super) fn new(c: &BinsConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let burst = |measure| env.resolve("penalty_burst", c.penalty_burst, measure);
        let burst_bytes = burst(Measure::Bytes)? as u64;
        let most_tokens = burst(Measure::Packets)? as u64 + 1;
        Ok(Self {
            penalty: c.penalty,
            rate: c.penalty_rate,
            boxtime: c.boxtime,
            jitter: c.boxtime_jitter,
            burst: match c.penalty {
                Penalty::Rate | Penalty::FairShare => c.penalty_rate.transmission(burst_bytes),
                Penalty::Tokens | Penalty::Boxtime | Penalty::BoxtimeRandom => Duration::ZERO,
            },
            burst_bytes,
            busy_until: None,
            tokens: most_tokens,
            most_tokens,
            counted: env.now,
            share: (c.penalty == Penalty::FairShare).then(|| Box::new(Share::new(c, env, rng))),
        })
    }

    /// Takes a packet into the estimate of the fair share, if that is the limit, whatever becomes of
    /// the packet.
    #[inline]
    pub(super) fn count(&mut self, flow: FlowKey, nonresponsive: bool, now: Instant) {
        if self.share.is_some() {
            self.count_for_share(flow, nonresponsive, now);
        }
    }

    #[inline(never)]
    fn count_for_share(&mut self, flow: FlowKey, nonresponsive: bool, now: Instant) {
        let Some(share) = &mut self.share else { return };
        let estimate = share.estimate(now);
        share.count(flow, nonresponsive);
        if let Some(rate) = estimate {
            self.change_rate(rate, now);
        }
    }

    /// The link has another rate.
    pub(super) fn rate_changed(&mut self, env: &Env) {
        if let Some(share) = &mut self.share {
            share.rate_changed(env);
        }
    }

    /// Has the rate and the Boxtime of `with` from `now` on; an estimated rate stays.
    pub(super) fn retune(&mut self, with: &Self, now: Instant) {
        self.boxtime = with.boxtime;
        if self.share.is_none() && self.rate != with.rate {
            self.change_rate(with.rate, now);
        }
    }

    fn change_rate(&mut self, rate: Rate, now: Instant) {
        // What is owed stays the same in bytes.
        if let Some(busy) = &mut self.busy_until
            && *busy > now
        {
            let factor = self.rate.bits_per_second() as f64 / rate.bits_per_second() as f64;
            *busy = now + busy.since(now).mul_f64(factor);
        }
        self.burst = rate.transmission(self.burst_bytes);
        self.rate = rate;
    }

    /// Whether a packet of a nonresponsive flow may enter; if so, it is charged for.
    #[inline(never)]
    pub(super) fn passes(&mut self, len: u32, cx: &mut Cx<'_>) -> bool {
        if self.penalty == Penalty::Tokens {
            return self.takes_token(cx.now);
        }
        let start = match self.busy_until {
            Some(busy) if busy >= cx.now + self.burst => return false,
            Some(busy) => busy.max(cx.now),
            None => cx.now,
        };
        let cost = match self.penalty {
            Penalty::Rate | Penalty::FairShare => self.rate.transmission(u64::from(len)),
            Penalty::Boxtime | Penalty::Tokens => self.boxtime,
            Penalty::BoxtimeRandom => {
                self.boxtime.mul_f64(1.0 + self.jitter * (2.0 * cx.rng.uniform() - 1.0))
            }
        };
        self.busy_until = Some(start + cost);
        true
    }

    /// Whether there is a token. The time since the last count is over with the next, whatever it gave.
    fn takes_token(&mut self, now: Instant) -> bool {
        if self.tokens == 0 {
            let came = now.since(self.counted).as_nanos().checked_div(self.boxtime.as_nanos());
            self.tokens = came.map_or(self.most_tokens, |came| came.min(self.most_tokens));
            self.counted = now;
        }
        let passes = self.tokens > 0;
        self.tokens -= u64::from(passes);
        passes
    }

    /// What it remembers beyond itself, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.share.as_ref().map_or(0, |share| size_of_val(&**share))
    }
}
