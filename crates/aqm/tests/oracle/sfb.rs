use std::collections::BTreeSet;

use aqm::FlowHash;
use aqm::hash::Cuts;

use super::*;

/// 1000 flows, of which a set bit each is counted: 4096 bits.
const BITS: f64 = 4096.0;

#[derive(Clone, Debug)]
struct Settings {
    levels: u32,
    bins: u32,
    /// In packets or bytes.
    size: u64,
    limit: Option<u64>,
    all: bool,
    bytes: bool,
    ecn: bool,
    mark_up_to: f64,
    hash: &'static str,
    interval: u64,
    warm_up: Option<u64>,
    penalty: &'static str,
    rate: u64,
    burst: u64,
    boxtime: u64,
    jitter: f64,
    share_interval: u64,
    up: f64,
    down: f64,
    freeze: u64,
}

/// A set of bins. Its lengths are counted anew from the queue each time.
struct Set {
    hash: FlowHash,
    /// Packets that arrived from then on are in its bins.
    from: u64,
    /// By level and bin: p_m and its last change.
    p: Vec<Vec<(f64, Option<u64>)>>,
}

/// 000 Fig. 14 and §IV.D.
struct Sfb {
    c: Settings,
    /// The current set and the next.
    sets: Vec<Set>,
    /// When the current set took over.
    since: u64,
    /// When the token bucket will have been filled again.
    full_at: Option<u64>,
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
    fn new(c: Settings) -> Self {
        Self { c, sets: Vec::new(), since: 0, full_at: None, share: None }
    }

    fn set(&self, from: u64, rng: &mut Rng) -> Set {
        let level = vec![(0.0, None); self.c.bins as usize];
        Set { hash: FlowHash::new(rng), from, p: vec![level; self.c.levels as usize] }
    }

    /// From when on packets enter the set that takes over at `takeover`.
    fn entered_from(&self, takeover: u64) -> u64 {
        takeover - self.c.warm_up.unwrap_or(self.c.interval).min(self.c.interval)
    }

    fn bin(&self, set: &Set, level: usize, flow: u64) -> usize {
        Cuts::new(self.c.bins).of(set.hash.word(FlowKey(flow))).nth(level).unwrap()
    }

    /// Moves the p_m of a flow's bins; p_min, and how many bins are above the limit.
    fn update(&mut self, which: usize, now: u64, flow: u64, q: &[Packet]) -> (f64, u32) {
        let (mut p_min, mut full) = (1.0, 0);
        for level in 0..self.c.levels as usize {
            let set = &self.sets[which];
            let bin = self.bin(set, level, flow);
            let length: u64 = q
                .iter()
                .filter(|p| p.arrived >= set.from && self.bin(set, level, p.flow) == bin)
                .map(|p| if self.c.bytes { u64::from(p.len) } else { 1 })
                .sum();
            let c = &self.c;
            let (p, last) = &mut self.sets[which].p[level][bin];
            let free = c.freeze == 0 || last.is_none_or(|last| now - last > c.freeze);
            if free && length > c.size {
                *p = if *p + c.up > 1.0 { 1.0 } else { *p + c.up };
                *last = Some(now);
            } else if free && length == 0 {
                *p = if *p < c.down { 0.0 } else { *p - c.down };
                *last = Some(now);
            }
            if *p < p_min {
                p_min = *p;
            }
            full += u32::from(length > c.limit.unwrap_or(c.size));
        }
        (p_min, full)
    }

    fn penalty(&mut self, now: u64, len: u32, rng: &mut Rng) -> bool {
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
        let first = self.set(0, rng);
        self.sets.push(first);
        if self.c.hash == "double-buffered" {
            let next = self.set(self.entered_from(self.c.interval), rng);
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
        let mut changes = 0;
        while self.c.hash != "static" && now >= self.since + self.c.interval {
            self.since += self.c.interval;
            changes += 1;
        }
        for change in (0..changes).rev().take(2).collect::<Vec<_>>().into_iter().rev() {
            // The last change is number `changes - 1`, at `since`.
            let at = self.since - (changes - 1 - change) * self.c.interval;
            self.sets.remove(0);
            let from =
                if self.sets.is_empty() { at } else { self.entered_from(at + self.c.interval) };
            let fresh = self.set(from, rng);
            self.sets.push(fresh);
        }
        let (p_min, full) = self.update(0, now, pkt.flow, q);
        if p_min == 1.0
            && self.sets.len() == 2
            && now >= self.entered_from(self.since + self.c.interval)
        {
            self.update(1, now, pkt.flow, q);
        }
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
            if p_min == 1.0 {
                share.bad.insert(bit);
            }
        }
        if !fits {
            return Verdict::Admit;
        }
        if full >= if self.c.all { self.c.levels } else { 1 } {
            return Verdict::Drop;
        }
        if p_min == 1.0 {
            let passes = self.penalty(now, pkt.len, rng);
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
        let p: Vec<f64> = self.sets[0].p.iter().flatten().map(|(p, _)| *p).collect();
        let n = p.len() as f64;
        vec![
            p.iter().sum::<f64>() / n,
            p.iter().copied().fold(0.0, f64::max),
            p.iter().filter(|p| **p == 1.0).count() as f64 / n,
            (now - self.since) as f64 / 1e9,
        ]
    }
}

prop_compose! {
    fn settings()(
        (levels, bins, size, limit, all) in
            (1..4u32, 1..5u32, 0..4u64, prop::option::of(0..6u64), any::<bool>()),
        (bytes, ecn, mark_up_to) in
            (any::<bool>(), prop::bool::weighted(0.8), prop::sample::select(vec![0.0, 0.5, 1.0])),
        (hash, ms, warm_up) in
            (pick(&["static", "moving", "double-buffered"]), 1..300u64, prop::option::of(0..200u64)),
        (penalty, rate, burst, boxtime, jitter, share_ms) in (
            pick(&["rate", "boxtime", "boxtime-random", "fair-share"]),
            100_000..8_000_000u64,
            0..4u64,
            0..9_000_000u64,
            0.0..=1.0f64,
            1..100u64,
        ),
        (up, down, freeze) in
            (0.0..=1.0f64, 0.0..0.5f64, prop::sample::select(vec![0, 0, 1, 1_000_000])),
    ) -> Settings {
        let unit = if bytes { 700 } else { 1 };
        Settings {
            levels, bins, size: size * unit, limit: limit.map(|l| l * unit), all, bytes, ecn,
            mark_up_to, hash, interval: ms * 1_000_000, warm_up: warm_up.map(|ms| ms * 1_000_000),
            penalty, rate, burst: burst * 500, boxtime, jitter,
            share_interval: share_ms * 1_000_000, up, down, freeze,
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn sfb_is_its_model(c in settings(), room in room(), ops in traffic()) {
        let settings = [
            ("levels", c.levels.to_string()),
            ("bins", c.bins.to_string()),
            ("bin_size", amount(c.size, c.bytes)),
            ("bin_limit", c.limit.map_or("none".into(), |l| amount(l, c.bytes))),
            ("overflow", if c.all { "all" } else { "any" }.into()),
            ("mode", if c.bytes { "bytes" } else { "packets" }.into()),
            ("ecn", c.ecn.to_string()),
            ("mark_up_to", c.mark_up_to.to_string()),
            ("hash", c.hash.into()),
            ("hash_interval", format!("{}ns", c.interval)),
            ("warm_up", c.warm_up.map_or("none".into(), |ns| format!("{ns}ns"))),
            ("penalty", c.penalty.into()),
            ("penalty_rate", format!("{}bit", c.rate)),
            ("penalty_burst", amount(c.burst, true)),
            ("boxtime", format!("{}ns", c.boxtime)),
            ("boxtime_jitter", c.jitter.to_string()),
            ("share_interval", format!("{}ns", c.share_interval)),
            ("increment", c.up.to_string()),
            ("decrement", c.down.to_string()),
            ("freeze_time", format!("{}ns", c.freeze)),
        ];
        compare("sfb", &settings, room, &ops, Sfb::new(c))?;
    }
}
