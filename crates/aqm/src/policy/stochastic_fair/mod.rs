//! Accounting bins: what Stochastic Fair BLUE and Stochastic Fair RED share (Feng02 §IV).
//!
//! One FIFO, and beside it L levels of N bins. A hash of its own for each level puts a flow into one
//! bin of each. A bin counts its packets in the queue and learns a probability from that count; what
//! it learns, and how, is an [`Account`]. A flow is judged by the mildest of its L bins, so that it
//! suffers with others only if they fill a bin of it on every level:
//!
//! ```text
//! a packet arrives:  in each level, its bin learns from the packets that it holds
//!     too many packets in its bins:  drop
//!     all its bins are saturated:    its flow is nonresponsive: drop unless the penalty lets it pass
//!     otherwise:                     signal with the least probability of its bins
//! ```
//!
//! Moving hash (Feng02 §IV.D): each `hash_interval` the secret changes and the bins start afresh,
//! so that no flow shares all its bins with a nonresponsive one for long. Double-buffered, a second
//! set of bins with the next secret learns beforehand, from nonresponsive packets only.
//!
//! Where the papers are silent:
//! - A packet without room changes its bins like any other (`full_teaches`), but neither tosses a coin
//!   nor takes from the penalty's allowance; so does one that is dropped because of a full bin.
//! - A packet leaves the bins that it entered. Bins that start afresh count only what enters them
//!   from then on; packets that are still queued from before are in no bin.
//! - The hash changes at the first arrival at or after a multiple of its interval.
//! - A packet that passes the penalty is not signalled.
//! - In the second set, a nonresponsive packet takes its bins for too full.
//!
//! Linux's SFB counts only nonresponsive packets in the second set, which judges them by their number
//! (`warm_up_by = length`), keeps the bins when the hash changes (`hash_change`), learns nothing from a
//! full buffer (`full_teaches`), and gives the penalty's tokens a clock of its own (`penalty = tokens`).
//! - The fair share: linear counts (WVT90) over each `share_interval`, of all flows and of nonresponsive
//!   ones, where z of b bits left at zero say b·ln(b/z) flows; the limit is that share of the link.

use super::{Arrival, Cx, Env, Exit, Policy, View};
use crate::context::{Cause, State};
use crate::packet::Meta;
use crate::param::ConfigError;
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::Measure;
use bins::Set;
use penalty::Limiter;

mod bins;
mod config;
mod penalty;
mod share;
#[cfg(test)]
mod tests;

pub use bins::Account;
pub use config::{
    Assignment, BinsConfig, Hash, HashChange, MAX_LEVELS, Overflow, Penalty, WarmUpBy,
};

/// A policy that keeps accounts of bins.
#[derive(Clone, Debug)]
pub struct StochasticFair<A: Account> {
    config: BinsConfig,
    rule: A::Rule,
    measure: Measure,
    /// A bin that holds more is too full.
    bin_size: u64,
    /// A bin that holds more drops its packets.
    bin_limit: u64,
    /// The bins that judge.
    current: Set<A>,
    /// The bins that learn for their turn, if the hash is double-buffered.
    next: Option<Set<A>>,
    /// How often the hash has changed.
    epoch: u32,
    /// When the current bins took over.
    since: Instant,
    /// The hash of the flow of the packet that arrives, in the current set and if it enters the next
    /// in that.
    arriving: (u64, Option<u64>),
    limiter: Limiter,
}

/// Which bins a packet entered.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tag {
    /// The flow's hash in the current set and in the next.
    word: u64,
    next: u64,
    /// The epoch of the current set, and the last in which a set that the packet entered is the
    /// current one: this or the next.
    epoch: u32,
    last: u32,
}

impl Tag {
    /// Whether the packet entered the next set too.
    #[inline]
    fn in_next(self) -> bool {
        self.last != self.epoch
    }
}

impl<A: Account> Policy for StochasticFair<A> {
    type Config = A::Config;
    type Tag = Tag;

    fn new(config: &A::Config, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let c = A::bins(config);
        let measure = c.mode.into();
        let bin_size = match c.bin_size {
            Some(size) => env.resolve("bin_size", size, measure)?,
            None => 1.5 / f64::from(c.bins) * env.limit.in_measure(measure, env.mean_packet),
        };
        let bin_limit = match c.bin_limit {
            Some(size) => env.resolve("bin_limit", size, measure)?,
            None => bin_size,
        };
        let rule = A::rule(config, bin_size)?;
        let current = Set::new(c, &rule, rng)?;
        let next = match c.hash {
            Hash::DoubleBuffered => Some(Set::new(c, &rule, rng)?),
            Hash::Static | Hash::Moving => None,
        };
        Ok(Self {
            measure,
            bin_size: bin_size as u64,
            bin_limit: bin_limit as u64,
            current,
            next,
            epoch: 0,
            since: env.now,
            arriving: (0, None),
            limiter: Limiter::new(c, env, rng)?,
            config: c.clone(),
            rule,
        })
    }

    fn retune(&mut self, with: Self, now: Instant) {
        (self.config, self.rule) = (with.config, with.rule);
        (self.bin_size, self.bin_limit) = (with.bin_size, with.bin_limit);
        self.limiter.retune(&with.limiter, now);
    }

    #[inline(always)]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        if !self.config.full_teaches && !q.fits(pkt.len) {
            return Arrival::Admit;
        }
        if self.config.hash != Hash::Static && cx.now.since(self.since) >= self.config.hash_interval
        {
            self.move_hash(cx);
        }
        let word = self.current.word(pkt.flow);
        self.arriving = (word, None);

        let (rule, bin_limit) = (&self.rule, self.bin_limit);
        let (mut p, mut full) = (f64::INFINITY, 0);
        self.current.each(word, |bin| {
            bin.account.learn(rule, bin.len, cx.now);
            let own = bin.account.p(rule);
            p = if own < p { own } else { p };
            full += u32::from(bin.len > bin_limit);
        });
        let saturated = p >= A::nonresponsive_from(rule);
        let too_many = match self.config.overflow {
            Overflow::Any => 1,
            Overflow::All => self.config.levels,
        };
        if self.next.is_some() {
            self.warm_up(pkt, saturated, full >= too_many, cx.now);
        }
        self.limiter.count(pkt.flow, saturated, cx.now);

        if !q.fits(pkt.len) {
            Arrival::Admit
        } else if full >= too_many {
            Arrival::Reject(Cause::Early)
        } else if saturated {
            if self.limiter.passes(pkt.len, cx) {
                Arrival::Admit
            } else {
                let rule = &self.rule;
                self.current.each(word, |bin| bin.account.penalised(rule, cx.now));
                Arrival::Reject(Cause::Penalty)
            }
        } else {
            let coin = cx.rng.uniform();
            cx.rng.drawn_for(coin, || p);
            if coin >= p {
                Arrival::Admit
            } else if self.config.ecn && coin >= certain_drop(p, self.config.mark_up_to) {
                Arrival::Signal(Cause::Early)
            } else {
                Arrival::Reject(Cause::Early)
            }
        }
    }

    #[inline(always)]
    fn admitted(&mut self, pkt: &Meta, _: &mut Cx<'_>) -> Tag {
        let ((word, in_next), amount) = (self.arriving, self.amount(pkt));
        self.current.each(word, |bin| bin.len += amount);
        let mut tag = Tag { word, next: 0, epoch: self.epoch, last: self.epoch };
        if let (Some(word), Some(next)) = (in_next, &mut self.next) {
            next.each(word, |bin| bin.len += amount);
            tag = Tag { next: word, last: self.epoch.wrapping_add(1), ..tag };
        }
        tag
    }

    #[inline(always)]
    fn left(&mut self, pkt: &Meta, tag: Tag, _: Exit, _: &mut Cx<'_>) {
        let amount = self.amount(pkt);
        let leave = |set: &mut Set<A>, word| set.each(word, |bin| bin.len -= amount);
        let kept = self.config.hash_change == HashChange::Kept;
        let changes = self.epoch.wrapping_sub(tag.epoch);
        if changes == 0 || kept && changes.is_multiple_of(2) {
            leave(&mut self.current, tag.word);
            if let Some(next) = self.next.as_mut().filter(|_| tag.in_next()) {
                leave(next, tag.next);
            }
        } else {
            if let Some(next) = self.next.as_mut().filter(|_| kept) {
                leave(next, tag.word);
            }
            if tag.in_next() && (kept || tag.last == self.epoch) {
                leave(&mut self.current, tag.next);
            }
        }
    }

    fn rate_changed(&mut self, env: &Env) {
        self.limiter.rate_changed(env);
    }

    fn state(&self) -> State {
        let sets = [Some(&self.current), self.next.as_ref()];
        let bins: usize = sets.into_iter().flatten().map(Set::memory).sum();
        State::of::<Self>(bins + self.limiter.memory())
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let (mut sum, mut max, mut saturated) = (0.0, 0.0f64, 0u32);
        for bin in &self.current.bins {
            let p = bin.account.p(&self.rule);
            sum += p.min(1.0);
            max = max.max(p.min(1.0));
            saturated += u32::from(p >= A::nonresponsive_from(&self.rule));
        }
        let bins = self.current.bins.len() as f64;
        sink("p_mean", sum / bins);
        sink("p_max", max);
        sink("saturated", f64::from(saturated) / bins);
        sink("hash_age_s", now.since(self.since).as_secs_f64());
    }

    fn observe_flow(&self, pkt: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let levels = self.current.bins.chunks(self.config.bins as usize);
        for (level, number) in levels.zip(self.current.of(pkt.flow)) {
            sink("bin", number as f64);
            sink("bin_p", level[number].account.p(&self.rule));
            sink("bin_length", level[number].len as f64);
        }
        sink("bin_limit", self.bin_limit as f64);
    }
}

impl<A: Account> StochasticFair<A> {
    /// What a packet adds to a bin.
    #[inline]
    fn amount(&self, pkt: &Meta) -> u64 {
        match self.measure {
            Measure::Packets => 1,
            Measure::Bytes => u64::from(pkt.len),
        }
    }

    /// A packet arrives while there is a second set: if that is learning, it learns from a packet
    /// that is nonresponsive. Full bins drop what is `shut` out.
    #[inline(never)]
    fn warm_up(&mut self, pkt: &Meta, saturated: bool, shut: bool, now: Instant) {
        let enters = self.config.warm_up_by == WarmUpBy::Verdict || saturated && !shut;
        let warming = enters && self.warming(now);
        let Some(next) = self.next.as_mut().filter(|_| warming) else { return };
        let word = next.word(pkt.flow);
        self.arriving.1 = Some(word);
        if saturated {
            let least = match self.config.warm_up_by {
                WarmUpBy::Verdict => self.bin_size + 1,
                WarmUpBy::Length => 0,
            };
            let rule = &self.rule;
            next.each(word, |bin| bin.account.learn(rule, bin.len.max(least), now));
        }
    }

    /// Whether the second set is learning.
    fn warming(&self, now: Instant) -> bool {
        let interval = self.config.hash_interval;
        self.config.warm_up.is_none_or(|warm_up| now.since(self.since) >= interval - warm_up)
    }

    /// Changes the hash as often as its time has come.
    #[inline(never)]
    fn move_hash(&mut self, cx: &mut Cx<'_>) {
        if let (HashChange::Kept, Some(next)) = (self.config.hash_change, &mut self.next) {
            self.since = cx.now;
            self.epoch = self.epoch.wrapping_add(1);
            core::mem::swap(&mut self.current, next);
            return next.rehash(cx.rng);
        }
        let interval = self.config.hash_interval;
        let times = cx.now.since(self.since).as_nanos() / interval.as_nanos();
        self.since += interval * times;
        // A second change forgets what the first brought in; a third has nothing to forget.
        for _ in 0..times.min(2) {
            self.epoch = self.epoch.wrapping_add(1);
            let stale = match &mut self.next {
                Some(next) => {
                    core::mem::swap(&mut self.current, next);
                    next
                }
                None => &mut self.current,
            };
            stale.start_afresh(&self.rule, cx.rng);
        }
    }
}

/// How likely a signal is a drop whatever the packet, of probability `p` in all.
#[inline]
fn certain_drop(p: f64, mark_up_to: f64) -> f64 {
    if p > mark_up_to { (p - mark_up_to) / (1.0 - mark_up_to) } else { 0.0 }
}
