//! Accounting bins: what Stochastic Fair BLUE and Stochastic Fair RED share (000 §IV).
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
//! Moving hash (000 §IV.D): each `hash_interval` the secret changes and the bins start afresh, so
//! that no flow shares all its bins with a nonresponsive one for long. Double-buffered, a second set
//! of bins with the next secret learns beforehand, from nonresponsive packets only.
//!
//! Where the papers are silent:
//! - A packet without room changes its bins like any other, but neither tosses a coin nor takes from
//!   the penalty's allowance; so does one that is dropped because of a full bin.
//! - A packet leaves the bins that it entered. Bins that start afresh count only what enters them
//!   from then on; packets that are still queued from before are in no bin.
//! - The hash changes at the first arrival at or after a multiple of its interval.
//! - A packet that passes the penalty is not signalled.
//! - In the second set, a nonresponsive packet takes its bins for too full (`warm_up_by = length`: by
//!   what they hold, which the penalty keeps small).
//! - The fair share: linear counts (WVT90) over each `share_interval`, of all flows and of nonresponsive
//!   ones, where z of b bits left at zero say b·ln(b/z) flows; the limit is that share of the link.

use alloc::boxed::Box;
use alloc::vec;

use super::{Arrival, Cx, Env, Exit, Policy, View};
use crate::hash::{Cuts, FlowHash};
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, Mode, Params, choice, params};
use crate::qdisc::{Cause, State};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Rate, Size};

params! {
    /// Parameters of the bins, of the hash that moves, and of the penalty.
    pub struct BinsConfig {
        /// Levels (L), each with a hash of its own.
        levels: u32 = 2, in 1..=MAX_LEVELS, "000 §IV.B";
        /// Bins in a level (N).
        bins: u32 = 23, in 1..=4096, "000 §IV.B";
        /// A bin that holds more than this is too full; `none`: 1.5/N of the buffer.
        bin_size: Option<Size> = None, "000 Fig. 14, §IV.B; 002 §3";
        /// A packet whose bin holds more than this is dropped; `none`: bin_size.
        bin_limit: Option<Size> = None, "000 Fig. 14; apart from bin_size: Linux";
        /// Whether one bin above bin_limit drops a packet or only all its bins together.
        overflow: Overflow = Overflow::Any, "000 Fig. 14; all: Linux";
        /// Whether bins count packets or bytes.
        mode: Mode = Mode::Packets, "000 §IV.B";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "000 Fig. 14";
        /// Beyond this probability a share of the signals are drops for all packets, which grows from
        /// 0 here to 1 at probability 1.
        mark_up_to: f64 = 1.0, in 0.0..=1.0, "000 Fig. 14; less: Linux";
        /// How the hash changes.
        hash: Hash = Hash::Static, "000 §IV.D";
        /// How long a hash is used, if it moves.
        hash_interval: Duration = Duration::from_secs(2), in Duration::from_millis(1)..=Duration::from_secs(86_400), "000 §IV.D";
        /// How long before its turn the second set of bins learns; `none`: all the time.
        warm_up: Option<Duration> = None, "000 §IV.D; less: Linux";
        /// What a nonresponsive packet teaches the second set.
        warm_up_by: WarmUpBy = WarmUpBy::Verdict, "000 §IV.D; length: Linux";
        /// What limits nonresponsive flows, all together.
        penalty: Penalty = Penalty::Rate, "000 §IV.B; others: 002 §5";
        /// Rate that they may have together (`rate`; `fair-share` until it has an estimate).
        penalty_rate: Rate = PENALTY_RATE, "000 §IV.B";
        /// What may pass at once after a pause, beyond one packet (`rate`, `fair-share`).
        penalty_burst: Size = Size::Bytes(0), "value ours";
        /// Time after a nonresponsive packet in which no other passes (`boxtime`, `boxtime-random`).
        boxtime: Duration = Duration::from_millis(50), "002 §3";
        /// Each Boxtime is drawn uniformly from (1 ± this) · boxtime (`boxtime-random`).
        boxtime_jitter: f64 = 0.5, in 0.0..=1.0, "002 §5; value ours";
        /// How long flows are counted for an estimate (`fair-share`).
        share_interval: Duration = Duration::from_secs(1), in Duration::from_millis(1)..=Duration::from_secs(3600), "value ours";
    }
}

/// More levels than any table needs.
pub const MAX_LEVELS: u32 = 16;
const PENALTY_RATE: Rate = Rate::new(160_000).unwrap();

choice! {
    /// When full bins drop a packet.
    pub enum Overflow {
        /// One of its bins is above bin_limit.
        Any = "any",
        /// All of its bins are.
        All = "all",
    }
}

choice! {
    /// How the hash changes.
    pub enum Hash {
        /// Never.
        Static = "static",
        /// Each hash_interval; the bins start afresh.
        Moving = "moving",
        /// Each hash_interval; the bins have learnt from nonresponsive packets beforehand.
        DoubleBuffered = "double-buffered",
    }
}

choice! {
    /// What a nonresponsive packet teaches the second set of bins.
    pub enum WarmUpBy {
        /// What it would if it found them too full, whatever they hold.
        Verdict = "verdict",
        /// What it would if they judged it.
        Length = "length",
    }
}

choice! {
    /// What limits nonresponsive flows, all together.
    pub enum Penalty {
        /// A rate.
        Rate = "rate",
        /// One packet in more than a Boxtime.
        Boxtime = "boxtime",
        /// The same with a Boxtime drawn anew for each packet: fairer among them.
        BoxtimeRandom = "boxtime-random",
        /// As many fair shares of the link as there are nonresponsive flows.
        FairShare = "fair-share",
    }
}

/// What a bin keeps besides the length of its queue, and how it learns.
pub trait Account: Clone {
    /// Parameters, with those of the bins among them.
    type Config: Params;
    /// What is the same for all bins.
    type Rule: Clone;

    /// The parameters of the bins.
    fn bins(config: &Self::Config) -> &BinsConfig;

    /// The rule for bins of `bin_size`, which is in packets or bytes as the bins count.
    ///
    /// # Errors
    /// When parameters do not fit together.
    fn rule(config: &Self::Config, bin_size: f64) -> Result<Self::Rule, ConfigError>;

    /// What a bin knows at the start.
    fn fresh(rule: &Self::Rule) -> Self;

    /// A packet arrives and finds `len` in its bin, itself not counted.
    fn learn(&mut self, rule: &Self::Rule, len: u64, now: Instant);

    /// How likely a packet is signalled if it is up to this bin, [0, 1].
    fn p(&self, rule: &Self::Rule) -> f64;

    /// Whether signals have no effect on what fills this bin.
    fn saturated(&self, rule: &Self::Rule) -> bool;
}

/// A policy that keeps accounts of bins.
#[derive(Clone, Debug)]
pub struct StochasticFair<A: Account> {
    config: BinsConfig,
    rule: A::Rule,
    measure: Measure,
    cuts: Cuts,
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
    /// What the packet that arrives is to be handed.
    arriving: Tag,
    limiter: Limiter,
}

/// A bin: its packets in the queue, in the measure of `mode`, and what it has learnt.
#[derive(Clone, Debug)]
struct Bin<A> {
    len: u64,
    account: A,
}

/// All levels of bins, one after the other, with the secret that says which are a flow's.
#[derive(Clone, Debug)]
struct Set<A> {
    hash: FlowHash,
    bins: Box<[Bin<A>]>,
}

/// Which bins a packet entered.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tag {
    /// The flow's hash in the current set and, if it entered that too, in the next.
    word: u64,
    next: Option<u64>,
    /// The epoch of the current set.
    epoch: u32,
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
        let mut set = || Set {
            hash: FlowHash::new(rng),
            bins: vec![
                Bin { len: 0, account: A::fresh(&rule) };
                c.levels as usize * c.bins as usize
            ]
            .into_boxed_slice(),
        };
        Ok(Self {
            measure,
            cuts: Cuts::new(c.bins),
            bin_size: bin_size as u64,
            bin_limit: bin_limit as u64,
            current: set(),
            next: (c.hash == Hash::DoubleBuffered).then(&mut set),
            epoch: 0,
            since: env.now,
            arriving: Tag::default(),
            limiter: Limiter::new(c, env, rng)?,
            config: c.clone(),
            rule,
        })
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.move_hash(cx);
        let word = self.current.hash.word(pkt.flow);
        let warm = match &self.next {
            Some(next) if self.warming(cx.now) => Some(next.hash.word(pkt.flow)),
            _ => None,
        };
        self.arriving = Tag { word, next: warm, epoch: self.epoch };

        let (rule, bin_limit) = (&self.rule, self.bin_limit);
        let (mut p, mut saturated, mut full) = (1.0f64, true, 0);
        self.current.each(self.cuts, word, |bin| {
            bin.account.learn(rule, bin.len, cx.now);
            let own = bin.account.p(rule);
            p = if own < p { own } else { p };
            saturated &= bin.account.saturated(rule);
            full += u32::from(bin.len > bin_limit);
        });
        if saturated && let (Some(next), Some(word)) = (&mut self.next, warm) {
            let least = match self.config.warm_up_by {
                WarmUpBy::Verdict => self.bin_size + 1,
                WarmUpBy::Length => 0,
            };
            next.each(self.cuts, word, |bin| {
                bin.account.learn(rule, bin.len.max(least), cx.now);
            });
        }
        if self.limiter.share.is_some() {
            self.limiter.count(pkt.flow, saturated, cx.now);
        }

        let too_many = match self.config.overflow {
            Overflow::Any => 1,
            Overflow::All => self.config.levels,
        };
        if !q.fits(pkt.len) {
            Arrival::Admit
        } else if full >= too_many {
            Arrival::Reject(Cause::Early)
        } else if saturated {
            if self.limiter.passes(pkt.len, cx) {
                Arrival::Admit
            } else {
                Arrival::Reject(Cause::Penalty)
            }
        } else {
            let coin = cx.rng.uniform();
            if coin >= p {
                Arrival::Admit
            } else if self.config.ecn && coin >= certain_drop(p, self.config.mark_up_to) {
                Arrival::Signal(Cause::Early)
            } else {
                Arrival::Reject(Cause::Early)
            }
        }
    }

    #[inline]
    fn admitted(&mut self, pkt: &Meta, _: &mut Cx<'_>) -> Tag {
        let (tag, amount) = (self.arriving, self.amount(pkt));
        self.current.each(self.cuts, tag.word, |bin| bin.len += amount);
        if let (Some(next), Some(word)) = (&mut self.next, tag.next) {
            next.each(self.cuts, word, |bin| bin.len += amount);
        }
        tag
    }

    #[inline]
    fn left(&mut self, pkt: &Meta, tag: Tag, _: Exit, _: &mut Cx<'_>) {
        let amount = self.amount(pkt);
        let leave = |set: &mut Set<A>, word| {
            set.each(self.cuts, word, |bin| bin.len -= amount);
        };
        if tag.epoch == self.epoch {
            leave(&mut self.current, tag.word);
            if let (Some(next), Some(word)) = (&mut self.next, tag.next) {
                leave(next, word);
            }
        } else if let Some(word) = tag.next
            && tag.epoch.wrapping_add(1) == self.epoch
        {
            leave(&mut self.current, word);
        }
    }

    fn state(&self) -> State {
        let sets = 1 + u64::from(self.next.is_some());
        let bins = size_of_val(&*self.current.bins) as u64;
        let queue = size_of::<Self>() as u64 + sets * bins + self.limiter.memory();
        State { queue, ..State::default() }
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let (mut sum, mut max, mut saturated) = (0.0, 0.0f64, 0u32);
        for bin in &self.current.bins {
            let p = bin.account.p(&self.rule);
            sum += p;
            max = max.max(p);
            saturated += u32::from(bin.account.saturated(&self.rule));
        }
        let bins = self.current.bins.len() as f64;
        sink("p_mean", sum / bins);
        sink("p_max", max);
        sink("saturated", f64::from(saturated) / bins);
        sink("hash_age_s", now.since(self.since).as_secs_f64());
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

    /// Whether the second set is learning.
    fn warming(&self, now: Instant) -> bool {
        let interval = self.config.hash_interval;
        self.config.warm_up.is_none_or(|warm_up| now.since(self.since) >= interval - warm_up)
    }

    /// Changes the hash as often as its time has come.
    #[inline]
    fn move_hash(&mut self, cx: &mut Cx<'_>) {
        let interval = self.config.hash_interval;
        let age = cx.now.since(self.since);
        if self.config.hash == Hash::Static || age < interval {
            return;
        }
        let times = age.as_nanos() / interval.as_nanos();
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
            stale.hash = FlowHash::new(cx.rng);
            stale.bins.fill(Bin { len: 0, account: A::fresh(&self.rule) });
        }
    }
}

impl<A> Set<A> {
    /// Does something to the bin of `word` in each level.
    #[inline]
    fn each(&mut self, cuts: Cuts, word: u64, mut f: impl FnMut(&mut Bin<A>)) {
        let mut bins = cuts.of(word);
        let mut level = 0;
        // `chunks_exact_mut` would divide.
        while level < self.bins.len() {
            f(&mut self.bins[level + bins.next_bin()]);
            level += cuts.n();
        }
    }
}

/// The penalty: a limit for all nonresponsive flows together.
#[derive(Clone, Debug)]
struct Limiter {
    penalty: Penalty,
    rate: Rate,
    boxtime: Duration,
    jitter: f64,
    /// How far ahead of its rate the limiter may run.
    burst: Duration,
    /// Up to when what has passed keeps it busy; `None`: long ago.
    busy_until: Option<Instant>,
    share: Option<Box<Share>>,
}

/// Estimates how much of the link is due to the nonresponsive flows.
#[derive(Clone, Debug)]
struct Share {
    link: Rate,
    /// In bytes.
    burst: u64,
    interval: Duration,
    hash: FlowHash,
    /// When this interval ends.
    end: Instant,
    all: Count,
    nonresponsive: Count,
}

/// A linear count of flows: a bit for each that came by, if no other had taken it.
#[derive(Clone, Debug)]
struct Count([u64; 64]);

impl Count {
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

/// How likely a signal is a drop whatever the packet, of probability `p` in all.
#[inline]
fn certain_drop(p: f64, mark_up_to: f64) -> f64 {
    if p > mark_up_to { (p - mark_up_to) / (1.0 - mark_up_to) } else { 0.0 }
}

impl Limiter {
    fn new(c: &BinsConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let burst = env.resolve("penalty_burst", c.penalty_burst, Measure::Bytes)? as u64;
        Ok(Self {
            penalty: c.penalty,
            rate: c.penalty_rate,
            boxtime: c.boxtime,
            jitter: c.boxtime_jitter,
            burst: match c.penalty {
                Penalty::Rate | Penalty::FairShare => c.penalty_rate.transmission(burst),
                Penalty::Boxtime | Penalty::BoxtimeRandom => Duration::ZERO,
            },
            busy_until: None,
            share: (c.penalty == Penalty::FairShare).then(|| {
                Box::new(Share {
                    link: env.rate,
                    burst,
                    interval: c.share_interval,
                    hash: FlowHash::new(rng),
                    end: env.now + c.share_interval,
                    all: Count([0; 64]),
                    nonresponsive: Count([0; 64]),
                })
            }),
        })
    }

    /// Takes a packet into the estimate, whatever becomes of it.
    fn count(&mut self, flow: FlowKey, nonresponsive: bool, now: Instant) {
        let Some(share) = &mut self.share else { return };
        if now >= share.end {
            let old = self.rate.bits_per_second() as f64;
            self.rate = fair_rate(share.link, share.nonresponsive.flows(), share.all.flows());
            self.burst = self.rate.transmission(share.burst);
            // What is owed stays the same in bytes.
            if let Some(busy) = &mut self.busy_until
                && *busy > now
            {
                let factor = old / self.rate.bits_per_second() as f64;
                *busy = now + busy.since(now).mul_f64(factor);
            }
            share.end = now + share.interval;
            (share.all, share.nonresponsive) = (Count([0; 64]), Count([0; 64]));
        }
        let word = share.hash.word(flow);
        share.all.add(word);
        if nonresponsive {
            share.nonresponsive.add(word);
        }
    }

    /// Whether a packet of a nonresponsive flow may enter; if so, it is charged for.
    fn passes(&mut self, len: u32, cx: &mut Cx<'_>) -> bool {
        let start = match self.busy_until {
            Some(busy) if busy >= cx.now + self.burst => return false,
            Some(busy) => busy.max(cx.now),
            None => cx.now,
        };
        let cost = match self.penalty {
            Penalty::Rate | Penalty::FairShare => self.rate.transmission(u64::from(len)),
            Penalty::Boxtime => self.boxtime,
            Penalty::BoxtimeRandom => {
                self.boxtime.mul_f64(1.0 + self.jitter * (2.0 * cx.rng.uniform() - 1.0))
            }
        };
        self.busy_until = Some(start + cost);
        true
    }

    fn memory(&self) -> u64 {
        self.share.as_ref().map_or(0, |share| size_of_val(&**share) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sfb::{BlueBin, Sfb};
    use super::*;
    use crate::policy::lab::{Fate, Lab, config, env};
    use crate::qdisc::Backlog;
    use std::collections::VecDeque;
    use std::vec::Vec;

    type Story = Lab<Sfb>;

    const EARLY: Fate = Fate::Dropped(Cause::Early);
    const PENALTY: Fate = Fate::Dropped(Cause::Penalty);

    /// Settings with which two packets of a flow are too many, and each that comes on top brings its
    /// bins to saturation for good.
    fn strict<'a>(extra: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mut settings = vec![("bin_size", "1p"), ("increment", "1"), ("decrement", "0")];
        settings.extend(extra);
        settings.to_vec()
    }

    /// Makes a flow known as nonresponsive and empties the queue.
    fn convict(lab: &mut Story, flow: u64) {
        (0..3).for_each(|_| _ = lab.arrive_from(flow));
        while lab.depart().is_some() {}
    }

    /// The bins of a flow in the current set, by level.
    fn bins(sfb: &Sfb, flow: u64) -> Vec<usize> {
        let word = sfb.current.hash.word(FlowKey(flow));
        sfb.cuts.of(word).take(sfb.config.levels as usize).collect()
    }

    /// The flows that share all bins with flow 0.
    fn twins(sfb: &Sfb) -> Vec<u64> {
        (1..1000).filter(|&flow| bins(sfb, flow) == bins(sfb, 0)).collect()
    }

    #[test]
    fn a_flow_is_nonresponsive_if_all_its_bins_are() {
        let settings =
            strict(&[("bins", "2"), ("levels", "3"), ("penalty", "boxtime"), ("boxtime", "10s")]);
        let mut lab = Story::new(100, &settings);
        convict(&mut lab, 0);
        lab.arrive_from(0); // takes the Boxtime
        lab.depart();
        let twins = twins(lab.queue.policy());
        // One in 2³ of 999: 124.9, σ = 10.5; the band is 5 σ.
        assert!((72..178).contains(&twins.len()), "{}", twins.len());
        for flow in 1..1000 {
            let expected = if twins.contains(&flow) { PENALTY } else { Fate::Queued };
            assert_eq!(lab.arrive_from(flow), expected, "{flow}");
            lab.depart();
        }
    }

    #[test]
    fn full_bins_drop_one_by_one_or_all_together() {
        // Flow 0 fills its bins; another flow shares one of two.
        for (overflow, fate) in [("any", EARLY), ("all", Fate::Queued)] {
            let settings =
                [("bins", "2"), ("bin_size", "2p"), ("overflow", overflow), ("increment", "0")];
            let mut lab = Story::new(100, &settings);
            let sfb = lab.queue.policy();
            let half = (1..100)
                .find(|&f| bins(sfb, f)[0] == bins(sfb, 0)[0] && bins(sfb, f)[1] != bins(sfb, 0)[1])
                .unwrap();
            (0..3).for_each(|_| assert_eq!(lab.arrive_from(0), Fate::Queued));
            assert_eq!(lab.arrive_from(0), EARLY, "3 > 2 on both levels");
            assert_eq!(lab.arrive_from(half), fate, "{overflow}");
        }
    }

    #[test]
    fn a_limit_above_the_size_lets_p_rise_before_packets_are_dropped() {
        let settings =
            [("bin_size", "1p"), ("bin_limit", "3p"), ("increment", "0.25"), ("ecn", "true")];
        let mut lab = Story::new(100, &settings);
        let fates: Vec<bool> = (0..5).map(|_| lab.arrive_from(0) != EARLY).collect();
        assert_eq!(fates, [true, true, true, true, false], "the fifth finds 4");
        assert_eq!(lab.signal("p_max"), 0.75, "the third to fifth find more than 1");
    }

    #[test]
    fn beyond_mark_up_to_a_growing_share_of_signals_are_drops() {
        for (p, up_to, expected) in [
            (0.3, 0.5, 0.0),
            (0.5, 0.5, 0.0),
            (0.75, 0.5, 0.5), // half-way from ½ to 1: of 75 % signals 50 % are drops
            (1.0, 0.5, 1.0),
            (1.0, 1.0, 0.0), // never
            (0.4, 0.0, 0.4), // always
        ] {
            assert!((certain_drop(p, up_to) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn a_moving_hash_sets_everybody_on_parole() {
        let settings = strict(&[
            ("hash", "moving"),
            ("hash_interval", "100ms"),
            ("penalty", "boxtime"),
            ("boxtime", "10s"),
        ]);
        let mut lab = Story::new(100, &settings);
        convict(&mut lab, 0);
        lab.arrive_from(0);
        lab.wait_ms(99);
        assert_eq!(lab.arrive_from(0), PENALTY);
        let before = bins(lab.queue.policy(), 0);
        lab.wait_ms(1);
        assert_eq!(lab.arrive_from(0), Fate::Queued, "the interval is over: on parole");
        assert_ne!(bins(lab.queue.policy(), 0), before, "one in 529 seeds would fail here");
        assert_eq!((lab.signal("hash_age_s"), lab.signal("saturated")), (0.0, 0.0));
        // Bins count from the change on: the packet from before is not among them.
        assert_eq!(lab.arrive_from(0), Fate::Queued);
        assert_eq!(lab.arrive_from(0), EARLY);
        lab.wait_ms(250);
        lab.arrive_from(1);
        assert_eq!(lab.signal("hash_age_s"), 0.05, "changes at multiples of the interval");
    }

    #[test]
    fn a_double_buffered_hash_knows_whom_the_last_one_knew() {
        for (warm_up, seen_at, fate) in
            [("none", 50, PENALTY), ("20ms", 80, PENALTY), ("20ms", 79, Fate::Queued)]
        {
            let settings = strict(&[
                ("hash", "double-buffered"),
                ("hash_interval", "100ms"),
                ("warm_up", warm_up),
                ("penalty", "boxtime"),
                ("boxtime", "10s"),
            ]);
            let mut lab = Story::new(100, &settings);
            lab.wait_ms(seen_at);
            convict(&mut lab, 0);
            assert_eq!(lab.arrive_from(0), Fate::Queued, "takes the Boxtime");
            lab.depart();
            lab.wait_ms(100 - seen_at);
            assert_eq!(lab.arrive_from(0), fate, "{warm_up} {seen_at}");
            assert_eq!(lab.arrive_from(1), Fate::Queued, "a stranger");
        }
    }

    /// Drives a policy with arrivals, departures, and drops from anywhere, and holds each bin's
    /// length against a count that is kept beside it.
    fn lengths_are_those_of_packets_that_entered(settings: &[(&str, &str)], steps: u32) {
        let mut rng = Rng::new(3, 0);
        let mut dice = Rng::new(4, 0);
        let env = env(12);
        let mut sfb = Sfb::new(&config(settings), &env, &mut rng).unwrap();
        let mut now = env.now;
        let mut queue: Vec<(Meta, Tag, u32)> = Vec::new();
        // By the epoch in which a set judges: the amount in each of its bins.
        let mut books: VecDeque<Vec<u64>> = vec![vec![0; 15]; 2].into();
        let mut first = 0;
        let mut amounts: Vec<(u32, u32, Vec<usize>, u64)> = Vec::new();
        let (mut id, mut changes) = (0, 0);
        for _ in 0..steps {
            now += Duration::from_nanos(dice.bits() % 200_000);
            let gone = match dice.below(20) {
                0..10 => {
                    let flow = FlowKey(dice.below(30) as u64);
                    let meta = Meta { flow, len: 40 + dice.below(1000) as u32, ..Meta::default() };
                    let backlog = Backlog {
                        packets: queue.len() as u32,
                        bytes: queue.iter().map(|(m, ..)| u64::from(m.len)).sum(),
                    };
                    let q = View { backlog, limit: env.limit, ring: &[], head: 0 };
                    let mut cx = Cx { now, rng: &mut rng };
                    let verdict = sfb.on_arrival(&meta, &q, &mut cx);
                    while first < sfb.epoch {
                        first += 1;
                        changes += 1;
                        books.pop_front();
                        books.push_back(vec![0; 15]);
                    }
                    let enters = matches!(verdict, Arrival::Admit | Arrival::Signal(_));
                    if enters && queue.len() < 12 {
                        let amount =
                            if sfb.measure == Measure::Bytes { u64::from(meta.len) } else { 1 };
                        let tag = sfb.admitted(&meta, &mut cx);
                        let sets =
                            [Some(&sfb.current), sfb.next.as_ref().filter(|_| sfb.warming(now))];
                        for (age, set) in (0..).zip(sets) {
                            let Some(set) = set else { continue };
                            let word = set.hash.word(flow);
                            let entered: Vec<usize> = sfb
                                .cuts
                                .of(word)
                                .take(3)
                                .enumerate()
                                .map(|(l, b)| l * 5 + b)
                                .collect();
                            entered.iter().for_each(|&b| books[age as usize][b] += amount);
                            amounts.push((id, first + age, entered, amount));
                        }
                        queue.push((meta, tag, id));
                        id += 1;
                    }
                    None
                }
                10..17 if !queue.is_empty() => Some((0, Exit::Sent)),
                17.. if !queue.is_empty() => Some((dice.below(queue.len()), Exit::Dropped)),
                _ => None,
            };
            if let Some((position, exit)) = gone {
                let (meta, tag, gone) = queue.remove(position);
                sfb.left(&meta, tag, exit, &mut Cx { now, rng: &mut rng });
                amounts.retain(|(id, epoch, entered, amount)| {
                    if *id == gone && *epoch >= first {
                        let book = &mut books[(epoch - first) as usize];
                        entered.iter().for_each(|&b| book[b] -= amount);
                    }
                    *id != gone
                });
            }
            let lens = |set: &Set<BlueBin>| set.bins.iter().map(|b| b.len).collect::<Vec<_>>();
            assert_eq!(lens(&sfb.current), books[0]);
            if let Some(next) = &sfb.next {
                assert_eq!(lens(next), books[1]);
            }
        }
        assert!(id > steps / 10, "packets entered");
        assert_eq!(
            changes > 100,
            sfb.config.hash != Hash::Static,
            "the hash changed {changes} times"
        );
    }

    #[test]
    fn each_bin_counts_the_queued_packets_that_entered_it() {
        for mode in ["packets", "bytes"] {
            for (hash, warm_up) in [
                ("static", "none"),
                ("moving", "none"),
                ("double-buffered", "none"),
                ("double-buffered", "1ms"),
            ] {
                let settings = [
                    ("levels", "3"),
                    ("bins", "5"),
                    ("hash", hash),
                    ("warm_up", warm_up),
                    ("hash_interval", "2ms"),
                    ("mode", mode),
                    ("increment", "0.3"),
                    ("decrement", "0.1"),
                    ("bin_size", "2p"),
                ];
                lengths_are_those_of_packets_that_entered(&settings, 500_000);
            }
        }
    }

    /// Packets of one nonresponsive flow that pass in 1000 ms, one offered in each.
    fn passing(settings: &[(&str, &str)]) -> Vec<u64> {
        let mut lab = Story::new(100, &strict(settings));
        convict(&mut lab, 0);
        (0..1000)
            .filter(|_| {
                let fate = lab.arrive_from(0);
                lab.depart();
                lab.wait_ms(1);
                assert!([Fate::Queued, PENALTY].contains(&fate));
                fate == Fate::Queued
            })
            .collect()
    }

    #[test]
    fn a_boxtime_has_to_be_exceeded() {
        // More than 50 ms: the packet of the 51st millisecond.
        let at = passing(&[("penalty", "boxtime"), ("boxtime", "50ms")]);
        assert_eq!(at, (0..1000).step_by(51).collect::<Vec<_>>());
    }

    #[test]
    fn a_penalty_rate_is_kept_and_may_be_overdrawn_by_its_burst() {
        // 80 kbit/s: 100 ms a packet. Served on the clock, 1 ns late: the packets of 0, 101, 201 … ms.
        let at = passing(&[("penalty_rate", "80kbit")]);
        assert_eq!(at.len(), 10, "{at:?}");
        let at = passing(&[("penalty_rate", "80kbit"), ("penalty_burst", "3p")]);
        assert_eq!(at[..4], [0, 1, 2, 3], "one, and three at once");
        assert_eq!(at.len(), 13);
    }

    /// Boxtimes are uniform on 25 … 75 ms, rounded up to the next packet: 50.5 ms on average with
    /// σ = 14.4; of 1000 ms that is 20 packets, σ = 1.3.
    #[test]
    fn a_random_boxtime_has_the_same_mean() {
        let at = passing(&[("penalty", "boxtime-random")]);
        assert!((14..=26).contains(&at.len()), "{}", at.len());
        let gaps: Vec<u64> = at.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.iter().all(|gap| (25..=76).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().max().unwrap() - gaps.iter().min().unwrap() > 20, "they vary");
    }

    /// For b = 4096 bits and n flows the standard error of the estimate is √(b·(e^t − t − 1))/n at
    /// t = n/b: 1.2 % at 1000, 1.1 % at 4000; the band is 5 of it.
    #[test]
    fn flows_are_counted_to_a_few_per_cent() {
        let hash = FlowHash::new(&mut Rng::new(1, 0));
        for (n, band) in [(0, 0.0), (1, 0.001), (10, 0.02), (1000, 0.06), (4000, 0.06)] {
            let mut count = Count([0; 64]);
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

    /// One nonresponsive flow among ten, on a link of 8 Mbit/s or 1000 packets a second: after the
    /// first interval it passes at a tenth of that.
    #[test]
    fn the_penalty_follows_the_estimated_fair_share() {
        let settings = [
            ("penalty", "fair-share"),
            ("share_interval", "500ms"),
            ("penalty_rate", "8kbit"),
            ("bins", "1000"),
        ];
        let mut lab = Story::new(100, &strict(&settings));
        convict(&mut lab, 0);
        let mut passed = [0; 4];
        for ms in 0..2000 {
            lab.arrive_from(1 + ms % 9);
            lab.depart();
            passed[ms as usize / 500] += u32::from(lab.arrive_from(0) == Fate::Queued);
            lab.depart();
            lab.wait_ms(1);
        }
        assert_eq!(passed[0], 1, "one packet a second until there is an estimate");
        // 10.01 flows are counted: 10.01 ms a packet, on a clock of 1 ms that is 11 for most.
        assert!(passed[1..].iter().all(|n| (44..=50).contains(n)), "{passed:?}");
    }

    /// A queue with 64 virtual buckets, under the `seed`-th secret.
    fn small(seed: u64) -> Sfb {
        let settings = [("levels", "2"), ("bins", "8")];
        Sfb::new(&config(&settings), &env(100), &mut Rng::new(seed, 0)).unwrap()
    }

    /// How many of `flows` share all bins with flow `victim`.
    fn hits(sfb: &Sfb, victim: u64, flows: &[u64]) -> u32 {
        flows.iter().filter(|&&f| f != victim && bins(sfb, f) == bins(sfb, victim)).count() as u32
    }

    /// 500 secrets with 64 tries each meet a victim in one of 64 cases: 500, σ = √(500·63/64) = 22;
    /// the band is 5 σ.
    fn assert_chance(what: &str, attack: impl Fn(u64, &mut Sfb) -> (u64, Vec<u64>)) {
        let met: u32 = (0..500)
            .map(|seed| {
                let mut sfb = small(seed);
                let (victim, flows) = attack(seed, &mut sfb);
                assert_eq!(flows.len(), 64);
                hits(&sfb, victim, &flows)
            })
            .sum();
        assert!((390..=610).contains(&met), "{what}: {met} of 500");
    }

    /// Whoever knows the algorithm, the victim and all of its own past successes, but not the secret,
    /// meets the victim's bins no more often than by chance.
    #[test]
    fn without_the_secret_no_sender_aims_better_than_chance() {
        let flips = |flow: u64| (0..64).map(|bit| flow ^ 1 << bit).collect::<Vec<_>>();
        let next = |flow: u64| (1..=64).map(|i| flow.wrapping_add(i)).collect::<Vec<_>>();
        let success = |sfb: &Sfb| (1000..).find(|&flow| hits(sfb, 7, &[flow]) == 1).unwrap();
        assert_chance("counting", |_, _| (7, next(7)));
        assert_chance("one bit off", |_, _| (7, flips(7)));
        assert_chance("one bit off, at any flow", |seed, _| {
            let flow = Rng::new(seed, 9).bits();
            (flow, flips(flow))
        });
        assert_chance("what works under a secret of one's own", |seed, _| {
            let own = small(seed + 1000);
            (7, (1000..).filter(|&flow| hits(&own, 7, &[flow]) == 1).take(64).collect())
        });
        assert_chance("next to a success", |_, sfb| (7, next(success(sfb))));
        assert_chance("one bit off a success", |_, sfb| (7, flips(success(sfb))));
        assert_chance("the difference of a success, again", |_, sfb| {
            let difference = success(sfb) ^ 7;
            (7, (1..=64).map(|i| 7 ^ difference.wrapping_mul(2 * i + 1)).collect())
        });
        assert_chance("what worked under the last secret", |seed, sfb| {
            let worked = (1000..).filter(|&flow| hits(sfb, 7, &[flow]) == 1).take(64).collect();
            sfb.current.hash = FlowHash::new(&mut Rng::new(seed, 1));
            (7, worked)
        });
    }

    /// With the secret it takes some 64 tries on paper, and the victim is shut out. More than 20 times
    /// as many are needed once in 10⁹ cases.
    #[test]
    fn with_the_secret_anybody_can_be_shut_out() {
        let settings =
            strict(&[("bins", "8"), ("penalty", "boxtime"), ("boxtime", "10s"), ("levels", "2")]);
        let mut lab = Story::new(100, &settings);
        let attacker =
            (1000..2280).find(|&flow| hits(lab.queue.policy(), 7, &[flow]) == 1).expect("found");
        assert_eq!(lab.arrive_from(7), Fate::Queued);
        convict(&mut lab, attacker);
        lab.arrive_from(attacker);
        assert_eq!(lab.arrive_from(7), PENALTY);
    }

    #[test]
    fn shares_of_the_buffer_are_the_default_sizes() {
        let sfb = |settings: &[(&str, &str)], env: &Env| {
            Sfb::new(&config(settings), env, &mut Rng::new(1, 0)).unwrap().bin_limit
        };
        assert_eq!(sfb(&[], &env(200)), 13, "000 §IV.B: 1.5/23 of 200 packets is 13.04");
        let bytes = Env { limit: crate::units::Limit::bytes(200_000).unwrap(), ..env(1) };
        assert_eq!(sfb(&[], &bytes), 13, "200 kB");
        assert_eq!(sfb(&[("mode", "bytes")], &bytes), 13_043);
    }

    #[test]
    fn state_is_the_bins_and_a_tag_a_packet() {
        let state = |hash| Story::new(10, &[("hash", hash)]).queue;
        let (one, two) = (state("static"), state("double-buffered"));
        use crate::qdisc::Qdisc;
        let per_set = 46 * size_of::<Bin<BlueBin>>() as u64;
        assert_eq!(two.state().queue - one.state().queue, per_set);
        assert_eq!(one.state().per_flow, 0);
        assert_eq!(one.state().per_packet, 32);
    }
}
