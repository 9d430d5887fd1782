use std::collections::{BTreeMap, BTreeSet};

use aqm::hash::Cuts;
use aqm::{FlowHash, FlowKey, Rng};

use super::{MEAN, Model, Packet, Verdict};

/// 1000 flows, of which a set bit each is counted: 4096 bits.
const BITS: f64 = 4096.0;

#[derive(Clone, Debug)]
pub struct Settings {
    pub levels: u32,
    pub bins: u32,
    /// In packets or bytes.
    pub size: u64,
    pub limit: Option<u64>,
    pub all: bool,
    pub bytes: bool,
    pub ecn: bool,
    pub mark_up_to: f64,
    pub distinct: bool,
    pub hash: &'static str,
    pub interval: u64,
    pub warm_up: Option<u64>,
    pub by_length: bool,
    pub kept: bool,
    pub full_teaches: bool,
    pub penalty: &'static str,
    pub rate: u64,
    pub burst: u64,
    pub boxtime: u64,
    pub jitter: f64,
    pub share_interval: u64,
    pub rule: Rule,
}

/// How bins learn.
#[derive(Clone, Debug)]
pub enum Rule {
    /// Feng02 Fig. 14.
    Blue { up: f64, down: f64, freeze: u64, penalty_raises: bool, from: f64 },
    /// Feng02 §IV.A with Feng99. Thresholds are shares of the bin's size.
    Red { min_th: f64, max_th: f64, w_q: f64, alpha: f64, beta: f64, max_p: f64 },
}

/// What a bin has learnt.
#[derive(Clone, Debug)]
struct Bin {
    p: f64,
    saturated: bool,
    /// BLUE: the last change.
    last: Option<u64>,
    /// RED.
    avg: f64,
    max_p: f64,
    status: &'static str,
}

impl Bin {
    fn thawed(&self, freeze: u64, now: u64) -> bool {
        freeze == 0 || self.last.is_none_or(|last| now - last > freeze)
    }

    fn raise(&mut self, rule: &Rule, now: u64) {
        let Rule::Blue { up, freeze, from, .. } = *rule else { return };
        if self.thawed(freeze, now) {
            self.p = if self.p + up > 1.0 { 1.0 } else { self.p + up };
            self.last = Some(now);
            self.saturated = self.p >= from;
        }
    }

    fn learn(&mut self, rule: &Rule, size: u64, length: u64, now: u64) {
        match *rule {
            Rule::Blue { down, freeze, from, .. } => {
                if length > size {
                    self.raise(rule, now);
                } else if length == 0 && self.thawed(freeze, now) {
                    self.p = if self.p < down { 0.0 } else { self.p - down };
                    self.last = Some(now);
                }
                self.saturated = self.p >= from;
            }
            Rule::Red { min_th, max_th, w_q, alpha, beta, .. } => {
                let (min_th, max_th) = (min_th * size as f64, max_th * size as f64);
                self.avg = (1.0 - w_q) * self.avg + w_q * length as f64;
                if min_th < self.avg && self.avg < max_th {
                    self.status = "between";
                }
                if self.avg < min_th && self.status != "below" {
                    self.status = "below";
                    self.max_p /= alpha;
                }
                if self.avg > max_th && self.status != "above" {
                    self.status = "above";
                    self.max_p *= beta;
                }
                self.max_p = self.max_p.clamp(0.01, 1.0);
                self.p = if self.avg < min_th {
                    0.0
                } else if self.avg < max_th {
                    self.max_p * (self.avg - min_th) / (max_th - min_th)
                } else {
                    1.0
                };
                self.saturated = self.max_p == 1.0 && self.avg > max_th;
            }
        }
    }
}

/// A set of bins. Its lengths are counted anew from the queue each time.
struct Set {
    /// By which packets remember it.
    id: u32,
    hash: FlowHash,
    /// The bucket of each flow number, modulo their count, if no two flows are to meet.
    order: Option<Vec<usize>>,
    /// By level and bin.
    bins: Vec<Vec<Bin>>,
}

/// Feng02 §IV.
pub struct Sfb {
    c: Settings,
    /// The current set and the next.
    sets: Vec<Set>,
    /// When the current set took over.
    since: u64,
    /// How many there have been.
    made: u32,
    /// The sets that a packet entered, and its bin there on each level.
    entered: BTreeMap<u32, Vec<(u32, Vec<usize>)>>,
    /// When the token bucket will have been filled again.
    full_at: Option<u64>,
    /// Linux: the tokens that are left, and when they were counted.
    tokens: u64,
    counted: u64,
    share: Option<Share>,
}

struct Share {
    hash: FlowHash,
    end: u64,
    all: BTreeSet<u64>,
    bad: BTreeSet<u64>,
    rate: u64,
}

impl Sfb {
    pub fn new(c: Settings) -> Self {
        Self {
            sets: Vec::new(),
            since: 0,
            made: 0,
            entered: BTreeMap::new(),
            full_at: None,
            tokens: c.burst / MEAN as u64 + 1,
            counted: 0,
            share: None,
            c,
        }
    }

    /// A set with another secret, which knows nothing or what the stale one knew.
    fn set(&mut self, stale: Option<Set>, rng: &mut Rng) -> Set {
        let max_p = if let Rule::Red { max_p, .. } = self.c.rule { max_p } else { 0.0 };
        let bin = Bin { p: 0.0, saturated: false, last: None, avg: 0.0, max_p, status: "below" };
        let level = vec![bin; self.c.bins as usize];
        let hash = FlowHash::new(rng);
        self.made += 1;
        let (mut id, mut bins) = (self.made, vec![level; self.c.levels as usize]);
        let mut old_order = None;
        if let Some(stale) = stale {
            old_order = stale.order;
            if self.c.kept && self.c.hash == "double-buffered" {
                (id, bins) = (stale.id, stale.bins);
            }
        }
        let order = self.c.distinct.then(|| {
            let buckets = (self.c.bins as usize).pow(self.c.levels);
            // Shuffled anew from what it was.
            let mut order = old_order.unwrap_or((0..buckets).collect());
            for i in (1..order.len()).rev() {
                order.swap(i, rng.below(i + 1));
            }
            order
        });
        Set { id, hash, order, bins }
    }

    /// Whether the next set learns.
    fn warming(&self, now: u64) -> bool {
        let warm_up = self.c.warm_up.unwrap_or(self.c.interval).min(self.c.interval);
        self.sets.len() == 2 && now >= self.since + self.c.interval - warm_up
    }

    fn bin(&self, set: &Set, level: usize, flow: u64) -> usize {
        if let Some(order) = &set.order {
            // The digits of the bucket's number, the first level's most significant.
            let (n, bucket) = (self.c.bins as usize, order[flow as usize % order.len()]);
            return bucket / n.pow(self.c.levels - 1 - level as u32) % n;
        }
        Cuts::new(self.c.bins).of(set.hash.word(FlowKey(flow))).nth(level).unwrap()
    }

    /// Has a flow's bins learn; their least p, whether all are saturated, how many are too full.
    fn update(&mut self, which: usize, now: u64, flow: u64, q: &[Packet]) -> (f64, bool, u32) {
        let (mut p_min, mut saturated, mut full) = (1.0, true, 0);
        for level in 0..self.c.levels as usize {
            let set = &self.sets[which];
            let at = self.bin(set, level, flow);
            let length: u64 = q
                .iter()
                .filter(|p| {
                    self.entered[&p.id].iter().any(|(id, bins)| *id == set.id && bins[level] == at)
                })
                .map(|p| if self.c.bytes { u64::from(p.len) } else { 1 })
                .sum();
            let known = which == 1 && !self.c.by_length;
            let taught = if known { length.max(self.c.size + 1) } else { length };
            let bin = &mut self.sets[which].bins[level][at];
            bin.learn(&self.c.rule, self.c.size, taught, now);
            if bin.p < p_min {
                p_min = bin.p;
            }
            saturated = saturated && bin.saturated;
            full += u32::from(length > self.c.limit.unwrap_or(self.c.size));
        }
        (p_min, saturated, full)
    }

    /// Linux's clock: it begins anew with each count of tokens.
    fn token(&mut self, now: u64) -> bool {
        if self.tokens == 0 {
            let most = self.c.burst / MEAN as u64 + 1;
            let came = (now - self.counted).checked_div(self.c.boxtime).unwrap_or(most);
            self.tokens = if came > most { most } else { came };
            self.counted = now;
        }
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
    }

    fn penalty(&mut self, now: u64, len: u32, rng: &mut Rng) -> bool {
        if self.c.penalty == "tokens" {
            return self.token(now);
        }
        let bits = |bytes: u64, rate: u64| (bytes as f64 * 8e9 / rate as f64).round() as u64;
        let rate = self.share.as_ref().map_or(self.c.rate, |share| share.rate);
        let by_rate = matches!(self.c.penalty, "rate" | "fair-share");
        let burst = if by_rate { bits(self.c.burst, rate) } else { 0 };
        if self.full_at.is_some_and(|full| full >= now + burst) {
            return false;
        }
        let cost = match self.c.penalty {
            "boxtime" => self.c.boxtime,
            "boxtime-random" => {
                let factor = 1.0 - self.c.jitter + 2.0 * self.c.jitter * rng.uniform();
                (self.c.boxtime as f64 * factor).round() as u64
            }
            _ => bits(u64::from(len), rate),
        };
        self.full_at = Some(self.full_at.map_or(now, |full| full.max(now)) + cost);
        true
    }
}

impl Model for Sfb {
    fn start(&mut self, rng: &mut Rng) {
        let first = self.set(None, rng);
        self.sets.push(first);
        if self.c.hash == "double-buffered" {
            let next = self.set(None, rng);
            self.sets.push(next);
        }
        if self.c.penalty == "fair-share" {
            self.share = Some(Share {
                hash: FlowHash::new(rng),
                end: self.c.share_interval,
                all: BTreeSet::new(),
                bad: BTreeSet::new(),
                rate: self.c.rate,
            });
        }
    }

    fn arrive(
        &mut self,
        now: u64,
        pkt: &Packet,
        q: &[Packet],
        fits: bool,
        rng: &mut Rng,
    ) -> Verdict {
        if !fits && !self.c.full_teaches {
            return Verdict::Admit;
        }
        let kept = self.c.kept && self.sets.len() == 2;
        if kept && now >= self.since + self.c.interval {
            self.since = now;
            let stale = self.sets.remove(0);
            let next = self.set(Some(stale), rng);
            self.sets.push(next);
        }
        let mut changes = 0;
        while self.c.hash != "static" && now >= self.since + self.c.interval {
            self.since += self.c.interval;
            changes += 1;
        }
        // A third change has nothing to forget.
        for _ in 0..changes.min(2) {
            let stale = self.sets.remove(0);
            let fresh = self.set(Some(stale), rng);
            self.sets.push(fresh);
        }
        let (p_min, nonresponsive, full) = self.update(0, now, pkt.flow, q);
        let shut = full >= if self.c.all { self.c.levels } else { 1 };
        let mut enters = vec![0];
        if self.warming(now) && (!self.c.by_length || nonresponsive && !shut) {
            enters.push(1);
            if nonresponsive {
                self.update(1, now, pkt.flow, q);
            }
        }
        let bins = enters.into_iter().map(|which| {
            let set = &self.sets[which];
            let levels = 0..self.c.levels as usize;
            (set.id, levels.map(|level| self.bin(set, level, pkt.flow)).collect())
        });
        self.entered.insert(pkt.id, bins.collect());
        if let Some(share) = &mut self.share {
            if now >= share.end {
                let flows = |seen: &BTreeSet<u64>| -BITS * ((BITS - seen.len() as f64) / BITS).ln();
                let bad = flows(&share.bad).max(1.0);
                let all = flows(&share.all).max(bad);
                let old = share.rate;
                share.rate = (8_000_000.0 * bad / all).floor() as u64;
                if let Some(full) = self.full_at.filter(|full| *full > now) {
                    let owed = (full - now) as f64 * (old as f64 / share.rate as f64);
                    self.full_at = Some(now + owed.round() as u64);
                }
                share.end = now + self.c.share_interval;
                share.all.clear();
                share.bad.clear();
            }
            let bit = share.hash.word(FlowKey(pkt.flow)) >> 52;
            share.all.insert(bit);
            if nonresponsive {
                share.bad.insert(bit);
            }
        }
        if !fits {
            return Verdict::Admit;
        }
        if shut {
            return Verdict::Drop;
        }
        if nonresponsive {
            let passes = self.penalty(now, pkt.len, rng);
            if !passes && matches!(self.c.rule, Rule::Blue { penalty_raises: true, .. }) {
                for level in 0..self.c.levels as usize {
                    let at = self.bin(&self.sets[0], level, pkt.flow);
                    self.sets[0].bins[level][at].raise(&self.c.rule, now);
                }
            }
            return if passes { Verdict::Admit } else { Verdict::DropWith(Vec::new()) };
        }
        let coin = rng.uniform();
        let t = self.c.mark_up_to;
        if coin >= p_min {
            Verdict::Admit
        } else if !self.c.ecn || p_min > t && coin < (p_min - t) / (1.0 - t) {
            Verdict::Drop
        } else {
            Verdict::Signal
        }
    }

    fn signals(&self, now: u64) -> Vec<f64> {
        let bins: Vec<&Bin> = self.sets[0].bins.iter().flatten().collect();
        let n = bins.len() as f64;
        vec![
            bins.iter().map(|b| b.p).sum::<f64>() / n,
            bins.iter().map(|b| b.p).fold(0.0, f64::max),
            bins.iter().filter(|b| b.saturated).count() as f64 / n,
            (now - self.since) as f64 / 1e9,
        ]
    }
}
