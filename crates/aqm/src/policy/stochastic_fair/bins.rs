//! The bins: what each keeps, how it learns, and where a flow finds its own.

use alloc::boxed::Box;
use alloc::vec;

use super::{Assignment, BinsConfig};
use crate::hash::{Cuts, FlowHash};
use crate::packet::FlowKey;
use crate::param::{ConfigError, Params};
use crate::rng::Rng;
use crate::time::Instant;

/// What a bin keeps besides the length of its queue, and how it learns.
pub trait Account: Clone {
    /// Parameters, with those of the bins among them.
    type Config: Params + Default + Clone;
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

    /// The penalty drops a packet of this bin's.
    fn penalised(&mut self, _rule: &Self::Rule, _now: Instant) {}

    /// How likely a packet is signalled if it is up to this bin, [0, 1], or more if signals have no
    /// effect on what fills it.
    fn p(&self, rule: &Self::Rule) -> f64;

    /// From which [`p`](Self::p) on a flow is nonresponsive.
    fn nonresponsive_from(rule: &Self::Rule) -> f64;
}

/// A bin: its packets in the queue, in the measure of `mode`, and what it has learnt.
#[derive(Clone, Debug)]
pub(super) struct Bin<A> {
    pub(super) len: u64,
    pub(super) account: A,
}

/// All levels of bins, one after the other, with the secret that says which are a flow's.
#[derive(Clone, Debug)]
pub(super) struct Set<A> {
    hash: FlowHash,
    /// In place of the hash, a word for each bucket, in an order by chance.
    buckets: Option<Box<[u64]>>,
    cuts: Cuts,
    pub(super) bins: Box<[Bin<A>]>,
}

impl<A: Account> Set<A> {
    /// Bins that know nothing, with a new secret.
    ///
    /// # Errors
    /// When there are too many buckets for a table.
    pub(super) fn new(c: &BinsConfig, rule: &A::Rule, rng: &mut Rng) -> Result<Self, ConfigError> {
        let bins = c.levels as usize * c.bins as usize;
        let buckets = c.bins.checked_pow(c.levels).filter(|n| *n <= MAX_BUCKETS);
        let mut set = Self {
            hash: FlowHash::new(rng),
            buckets: (c.assignment == Assignment::Distinct).then(|| words(buckets)).transpose()?,
            cuts: Cuts::new(c.bins),
            bins: vec![Bin::fresh(rule); bins].into_boxed_slice(),
        };
        set.shuffle(rng);
        Ok(set)
    }

    /// Forgets everything, the secret too.
    pub(super) fn start_afresh(&mut self, rule: &A::Rule, rng: &mut Rng) {
        self.rehash(rng);
        self.bins.fill(Bin::fresh(rule));
    }

    /// Forgets the secret alone.
    pub(super) fn rehash(&mut self, rng: &mut Rng) {
        self.hash = FlowHash::new(rng);
        self.shuffle(rng);
    }

    /// Puts the buckets, if they have a table, into another order.
    fn shuffle(&mut self, rng: &mut Rng) {
        if let Some(buckets) = &mut self.buckets {
            (1..buckets.len()).rev().for_each(|i| buckets.swap(i, rng.below(i + 1)));
        }
    }

    /// The hash of a flow, which says which bins are its.
    #[inline]
    pub(super) fn word(&self, flow: FlowKey) -> u64 {
        match &self.buckets {
            None => self.hash.word(flow),
            Some(words) => words[(flow.0 % words.len() as u64) as usize],
        }
    }

    /// What it remembers, in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.bins) + self.buckets.as_ref().map_or(0, |words| size_of_val(&**words))
    }

    /// Does something to the bin of `word` in each level.
    #[inline(always)]
    pub(super) fn each(&mut self, mut word: u64, mut f: impl FnMut(&mut Bin<A>)) {
        let (mut level, end) = (0, self.bins.len());
        let of_a_word = self.cuts.per_word() * self.cuts.n();
        loop {
            let (mut rest, stop) = (word, end.min(level + of_a_word));
            // `chunks_exact_mut` would divide.
            while level < stop {
                f(&mut self.bins[level + self.cuts.cut(&mut rest)]);
                level += self.cuts.n();
            }
            if level == end {
                return;
            }
            word = Cuts::next_word(word);
        }
    }

    /// The bins of a flow, by level.
    pub(super) fn of(&self, flow: FlowKey) -> impl Iterator<Item = usize> {
        let levels = self.bins.len() / self.cuts.n();
        self.cuts.of(self.word(flow)).take(levels)
    }
}

/// The most buckets that a table may have.
const MAX_BUCKETS: u32 = 1 << 16;

/// For each of so many buckets a word from which [`Cuts`] cuts its bins: just above a multiple of
/// 2⁶⁴ by their number.
fn words(buckets: Option<u32>) -> Result<Box<[u64]>, ConfigError> {
    let n = buckets.ok_or(ConfigError {
        key: "assignment",
        allowed: "`distinct` with at most 65536 buckets (bins to the power of levels)".into(),
    })?;
    Ok((0..n).map(|i| ((u128::from(i) << 64) / u128::from(n)) as u64 + 1).collect())
}

impl<A: Account> Bin<A> {
    fn fresh(rule: &A::Rule) -> Self {
        Self { len: 0, account: A::fresh(rule) }
    }
}
