use super::drops::DropFront;
use super::red::{Red, RedSettings, red, red_settings};
use super::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Settings {
    /// In milliseconds.
    rtt: u64,
    single: bool,
    k: usize,
    m: usize,
    burst: Option<u64>,
    weight: f64,
    least: f64,
    list_rate: Option<f64>,
    backlog: usize,
    bounds: bool,
    bytes: bool,
    test: bool,
    test_drops: u64,
    test_increase: f64,
    factor: f64,
    always: bool,
    wanted: Option<f64>,
    spaced: bool,
    least_rate: bool,
    authors_cap: bool,
    last_list: bool,
    /// In milliseconds.
    pause: u64,
    pairs: bool,
}

struct Monitored {
    p: f64,
    changed: usize,
    /// When that list ended.
    changed_at: u64,
    /// Packets since the last drop of the filter.
    passed: u64,
    unresponsive: bool,
    /// Packets and losses in the present list.
    list: (u64, u64),
    /// Rate and loss of the lists before raises.
    pairs: Vec<(f64, f64)>,
    /// What the present sample has: first list, time of beginning, packets, losses.
    sample: (usize, u64, u64, u64),
    /// Rate and loss that samples are compared with.
    reference: Option<(f64, f64)>,
}

/// Mahajan01 §4–6, before any model of a queue. All drops of all time are kept.
struct RedPd<M> {
    c: Settings,
    queue: M,
    rtt: f64,
    p: f64,
    /// Drop rate of the last list that packets came in.
    last: f64,
    /// Flow and weight of each drop, for each list since the beginning; the last is the present one.
    lists: Vec<Vec<(u64, u64)>>,
    began: u64,
    ends: u64,
    arrived: u64,
    identified: usize,
    /// Who was found unresponsive last.
    found_last: Option<u64>,
    monitored: BTreeMap<u64, Monitored>,
    /// Packets and losses in the present list of the others, from a loss in the last M lists on.
    known: BTreeMap<u64, (u64, u64)>,
}

impl<M> RedPd<M> {
    fn new(c: Settings, queue: M) -> Self {
        let rtt = c.rtt as f64 / 1e3;
        let mut model = Self {
            c,
            queue,
            rtt,
            p: 0.0,
            last: 0.0,
            lists: vec![Vec::new()],
            began: 0,
            ends: 0,
            arrived: 0,
            identified: 0,
            found_last: None,
            monitored: BTreeMap::new(),
            known: BTreeMap::new(),
        };
        model.ends = (model.interval() * 1e9).round() as u64;
        model
    }

    fn floored(&self) -> f64 {
        if self.p < self.c.least { self.c.least } else { self.p }
    }

    fn interval(&self) -> f64 {
        let k_of_m = self.c.k as f64 / self.c.m as f64;
        let p = self.c.list_rate.unwrap_or(self.floored());
        let interval = k_of_m * (self.rtt / (1.5 * p).sqrt());
        if self.c.bounds { interval.max(2.0 * self.rtt).min(10.0 * self.rtt) } else { interval }
    }

    /// The last M lists.
    fn recent(&self) -> &[Vec<(u64, u64)>] {
        &self.lists[self.lists.len().saturating_sub(self.c.m)..]
    }

    fn drops(&self, flow: u64) -> u64 {
        self.recent().iter().flatten().filter(|d| d.0 == flow).map(|d| d.1).sum()
    }

    fn identified(&self, flow: u64) -> bool {
        let hit = self.recent().iter().filter(|list| list.iter().any(|d| d.0 == flow)).count();
        let drops = self.drops(flow) as f64 / if self.c.bytes { MEAN } else { 1.0 };
        let often = if self.c.single { drops >= self.c.k as f64 } else { hit >= self.c.k };
        often || self.c.burst.is_some_and(|burst| drops >= burst as f64)
    }

    fn judge(&mut self, flow: u64, now: u64) {
        let list = self.lists.len() - 1;
        let f = self.monitored.get_mut(&flow).unwrap();
        f.sample.2 += f.list.0;
        f.sample.3 += f.list.1;
        let (first, since, packets, losses) = f.sample;
        if !self.c.test || self.c.pairs || list + 1 - first < self.c.m || losses < self.c.test_drops
        {
            return;
        }
        let rate = packets as f64 / ((now - since) as f64 / 1e9);
        let loss = losses as f64 / (packets.max(1)) as f64;
        match f.reference {
            None => f.reference = Some((rate, loss)),
            Some((before, lost)) if loss / lost >= self.c.test_increase => {
                if rate > before / (loss / lost).sqrt().sqrt() {
                    f.unresponsive = true;
                } else {
                    f.reference = Some((rate, loss));
                }
            }
            Some((_, lost)) if loss / lost * self.c.test_increase <= 1.0 => {
                f.reference = Some((rate, loss));
            }
            Some(_) => {}
        }
        f.sample = (list + 1, now, 0, 0);
    }

    fn end_list(&mut self, now: u64) {
        let list = self.lists.len() - 1;
        if self.arrived > 0 {
            let rate = (self.lists[list].len() as f64 / self.arrived as f64).min(1.0);
            self.p += self.c.weight * (rate - self.p);
            self.last = rate;
        }
        self.arrived = 0;
        let mut flows: Vec<u64> = self.recent().iter().flatten().map(|d| d.0).collect();
        flows.sort_unstable();
        flows.dedup();
        flows.retain(|&flow| self.identified(flow));
        self.identified = flows.len();
        let sum: u64 = flows.iter().map(|&flow| self.drops(flow)).sum();
        let average = sum as f64 / flows.len() as f64;
        flows.retain(|&flow| self.rises(flow, list, now));
        let known: Vec<u64> = self.monitored.keys().copied().collect();
        self.judge_all(&known, &flows, now);
        for &flow in &flows {
            self.raise(flow, average, list, now);
        }
        for flow in known {
            self.lower(flow, list, now);
        }
        self.adapt(list);
        self.lists.push(Vec::new());
        self.known.clear();
        self.began = now;
    }

    fn pause(&self) -> u64 {
        self.c.pause * 1_000_000
    }

    /// Whether the probability of a flow that was identified rises.
    fn rises(&self, flow: u64, list: usize, now: u64) -> bool {
        let hit = self.lists[list].iter().any(|d| d.0 == flow);
        let lost = self.monitored.get(&flow).map_or(hit, |f| f.list.1 > 0);
        let lately = lost && self.last > 0.001 || !self.c.last_list;
        let Some(f) = self.monitored.get(&flow) else { return lately };
        lately && list - f.changed >= self.c.m - 1 && now - f.changed_at >= self.pause()
    }

    /// Whether those that are monitored respond.
    fn judge_all(&mut self, known: &[u64], rising: &[u64], now: u64) {
        let mut highest = -1.0;
        for &flow in known {
            let before = self.monitored[&flow].unresponsive;
            self.judge(flow, now);
            if rising.contains(&flow) {
                self.judge_pairs(flow, now);
            }
            let f = self.monitored.get_mut(&flow).unwrap();
            f.list = (0, 0);
            if f.unresponsive && !before && f.p > highest {
                (highest, self.found_last) = (f.p, Some(flow));
            }
        }
    }

    fn raise(&mut self, flow: u64, average: f64, list: usize, now: u64) {
        let rate = if self.c.least_rate && self.last < self.p { self.last } else { self.p };
        let drops = self.drops(flow);
        let (p, unresponsive) =
            self.monitored.get(&flow).map_or((0.0, false), |f| (f.p, f.unresponsive));
        let new = p == 0.0;
        let delta = drops as f64 / average * rate;
        let mut more = match (self.c.authors_cap, new) {
            (false, false) if delta > p + self.p => p,
            (false, true) if delta > self.p => self.p,
            (true, false) if delta > p => p,
            (true, true) => [delta, 2.0 * rate, 0.5].into_iter().fold(1.0, f64::min),
            _ => delta,
        };
        if unresponsive {
            more *= self.c.factor;
        }
        let mut fresh = Monitored {
            p: 0.0,
            changed: 0,
            changed_at: 0,
            passed: 0,
            unresponsive: false,
            list: (0, 0),
            pairs: Vec::new(),
            sample: (list + 1, now, 0, 0),
            reference: None,
        };
        if new && self.c.test && self.c.pairs {
            let (packets, losses) = self.known.get(&flow).copied().unwrap_or((0, 0));
            fresh.pairs.extend(self.pair(packets, losses, now));
        }
        let f = self.monitored.entry(flow).or_insert(fresh);
        f.p = match p + more {
            sum if sum <= 1.0 => sum,
            _ if !self.c.authors_cap => 1.0,
            _ if unresponsive => 1.0 - (1.0 - p) / (1.0 + self.c.factor),
            _ => 1.0 - (1.0 - p) / 2.0,
        };
        (f.changed, f.changed_at) = (list, now);
    }

    /// Lowers the probability of a flow without losses, in the end to nothing.
    fn lower(&mut self, flow: u64, list: usize, now: u64) {
        let quiet = self.drops(flow) == 0;
        let pause = self.pause();
        let f = self.monitored.get_mut(&flow).unwrap();
        let (beta, p_min, l) = if f.unresponsive { (1.5, 0.0025, 5) } else { (2.0, 0.005, 3) };
        if quiet && list - f.changed >= l && now - f.changed_at >= pause {
            f.p = if f.p - f.p / beta > 0.05 { f.p - 0.05 } else { f.p / beta };
            (f.changed, f.changed_at) = (list, now);
            if f.p < p_min {
                self.monitored.remove(&flow);
            }
        }
    }

    /// The target R by the drop rate that is wanted.
    fn adapt(&mut self, list: usize) {
        if let Some(wanted) = self.c.wanted
            && list.is_multiple_of(self.c.m)
        {
            if self.p > wanted {
                self.rtt = (self.rtt * 1.25).min(0.5);
            } else if self.p < wanted / 2.0 {
                self.rtt = (self.rtt / 1.25).max(self.c.rtt as f64 / 1e3);
            }
        }
    }

    /// The authors' test, before a raise.
    fn judge_pairs(&mut self, flow: u64, now: u64) {
        let f = self.monitored.get_mut(&flow).unwrap();
        if !self.c.test || !self.c.pairs {
            return;
        }
        let (mut strikes, mut answers) = (0, 0);
        let five = &f.pairs[f.pairs.len().saturating_sub(5)..];
        for (i, a) in five.iter().enumerate() {
            for b in &five[..i] {
                let (less, more) = if a.1 < b.1 { (a, b) } else { (b, a) };
                if less.1 == more.1 || less.1 <= more.1 / 10.0 {
                    continue;
                }
                match more.0 > less.0 * (less.1 / more.1).sqrt() {
                    true => strikes += 1,
                    false => answers += 1,
                }
            }
        }
        f.unresponsive |= strikes >= if answers == 0 { 3 } else { 4 * answers };
        let (packets, losses) = f.list;
        let pair = self.pair(packets, losses, now);
        self.monitored.get_mut(&flow).unwrap().pairs.extend(pair);
    }

    /// Rate and loss in the list that ends, if there is a packet.
    fn pair(&self, packets: u64, losses: u64, now: u64) -> Option<(f64, f64)> {
        let took = (now - self.began) as f64 / 1e9;
        (packets > 0).then(|| (packets as f64 / took, losses as f64 / packets as f64))
    }
}

impl<M: Model + Congested> Model for RedPd<M> {
    fn start(&mut self, rng: &mut Rng) {
        self.queue.start(rng);
        // The secrets of two hashes.
        (0..4).for_each(|_| _ = rng.bits());
    }
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], f: bool, rng: &mut Rng) -> Verdict {
        if let Some(flow) = self.monitored.get_mut(&pkt.flow) {
            flow.list.0 += 1;
            let congested = q.len() >= self.c.backlog && self.queue.congested(now, q);
            let active = self.c.always && flow.unresponsive || congested;
            let left = 1.0 - flow.passed as f64 * flow.p;
            let chance = match self.c.spaced {
                true if left > 0.0 => flow.p / left,
                true => 1.0,
                false => flow.p,
            };
            if active && rng.uniform() < chance {
                flow.list.1 += 1;
                flow.passed = 0;
                return Verdict::Penalise;
            }
            flow.passed += 1;
        } else if self.drops(pkt.flow) > 0 {
            self.known.entry(pkt.flow).or_default().0 += 1;
        }
        self.arrived += 1;
        self.queue.arrive(now, pkt, q, f, rng)
    }
    fn heard(&mut self, pkt: &Packet) {
        let weight = if self.c.bytes { u64::from(pkt.len) } else { 1 };
        self.lists.last_mut().unwrap().push((pkt.flow, weight));
        if let Some(flow) = self.monitored.get_mut(&pkt.flow) {
            flow.list.1 += 1;
        } else {
            let (packets, losses) = self.known.entry(pkt.flow).or_default();
            (*packets, *losses) = ((*packets).max(1), *losses + 1);
        }
    }
    fn victim(&mut self, q: &[Packet], rng: &mut Rng) -> usize {
        self.queue.victim(q, rng)
    }
    fn admitted(&mut self) {
        self.queue.admitted();
    }
    fn idle(&mut self, now: u64, rng: &mut Rng) {
        self.queue.idle(now, rng);
    }
    fn clock(&mut self, now: u64, _: &[Packet]) {
        while self.ends <= now {
            self.end_list(self.ends);
            self.ends += (self.interval() * 1e9).round() as u64;
        }
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        let unresponsive = self.monitored.values().filter(|f| f.unresponsive).count();
        let target = (1.5 / self.floored()).sqrt() / self.rtt;
        let (all, interval) = (self.monitored.len() as f64, self.interval());
        // The model's clock counts whole nanoseconds.
        let interval = (interval * 1e9).round() / 1e9;
        let found = self.identified as f64;
        let last = self.found_last.map_or(-1.0, |flow| flow as f64);
        let mut signals =
            vec![found, all, unresponsive as f64, last, self.p, self.rtt, target, interval];
        signals.extend(self.queue.signals(now));
        signals
    }
}

/// Whether a queue is congested.
trait Congested {
    fn congested(&self, now: u64, q: &[Packet]) -> bool;
}

impl Congested for Red {
    fn congested(&self, now: u64, _: &[Packet]) -> bool {
        self.aged(now) >= self.c.min_th as f64
    }
}

impl Congested for DropFront {
    fn congested(&self, _: u64, q: &[Packet]) -> bool {
        !q.is_empty()
    }
}

prop_compose! {
    fn settings()(
        (rtt, single, k, more, burst) in (
            prop::sample::select(vec![1u64, 10, 40, 500]), any::<bool>(), 1..4usize, 0..4usize,
            prop::option::of(1..6u64),
        ),
        (weight, least, list_rate, bounds, bytes) in (
            0.0..=1.0f64, pick_f(&[0.01, 0.3]), prop::option::weighted(0.2, 0.001..=1.0f64),
            prop::bool::weighted(0.2), any::<bool>(),
        ),
        (test, test_drops, test_increase, factor, always) in
            (any::<bool>(), 1..4u64, 1.2..3.0f64, 1.0..3.0f64, any::<bool>()),
        (spaced, least_rate, authors_cap, last_list, pairs) in any::<(bool, bool, bool, bool, bool)>(),
        (pause, backlog) in (prop::sample::select(vec![0u64, 5, 400]), 0..4usize),
        wanted in prop::option::of(0.01..0.5f64),
    ) -> Settings {
        Settings {
            rtt, single, k, m: k + more, burst, weight, least, list_rate, bounds, bytes, test, test_drops,
            test_increase, factor, always, wanted, spaced, least_rate, authors_cap, last_list,
            pause, pairs, backlog,
        }
    }
}

fn pick_f(values: &[f64]) -> impl Strategy<Value = f64> + use<> {
    prop::sample::select(values.to_vec())
}

/// Parameters of the filter; `mode` is set apart.
fn red_pd_settings(c: &Settings) -> Vec<(&'static str, String)> {
    let identification = if c.single { "single-list" } else { "multiple-list" };
    let none = || "none".to_string();
    let choose = |other: bool, names: [&str; 2]| names[usize::from(other)].to_string();
    vec![
        ("target_rtt", format!("{}ms", c.rtt)),
        ("identification", identification.into()),
        ("k", c.k.to_string()),
        ("m", c.m.to_string()),
        ("burst", c.burst.map_or_else(none, |n| n.to_string())),
        ("weight", c.weight.to_string()),
        ("least_drop_rate", c.least.to_string()),
        ("list_drop_rate", c.list_rate.map_or_else(none, |p| p.to_string())),
        ("least_backlog", c.backlog.to_string()),
        ("interval_bounds", c.bounds.to_string()),
        ("filter_spacing", choose(c.spaced, ["geometric", "uniform-exact"])),
        ("increment_rate", choose(c.least_rate, ["smoothed", "least"])),
        ("increment_cap", choose(c.authors_cap, ["losses", "probability"])),
        ("last_list", c.last_list.to_string()),
        ("least_pause", format!("{}ms", c.pause)),
        ("unresponsive_rule", choose(c.pairs, ["growth", "pairs"])),
        ("unresponsive_test", c.test.to_string()),
        ("test_drops", c.test_drops.to_string()),
        ("test_increase", c.test_increase.to_string()),
        ("unresponsive_increase", c.factor.to_string()),
        ("unresponsive_always", c.always.to_string()),
        ("wanted_drop_rate", c.wanted.map_or_else(none, |p| p.to_string())),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn red_pd_is_its_model(c in settings(), red in red(), room in room(), ops in traffic()) {
        let red = RedSettings { bytes: c.bytes, ..red };
        let red = if red.bytes { RedSettings { max_th: red.max_th + 1000, ..red } } else { red };
        let mut settings = red_pd_settings(&c);
        settings.extend(red_settings(&red));
        settings.push(("ns2_rules", red.ns2.to_string()));
        compare("red-pd", &settings, room, &ops, RedPd::new(c, Red::new(red)))?;
    }

    /// Before a queue whose drops are of other packets than those that arrive.
    #[test]
    fn a_filter_before_drop_front_is_its_model(c in settings(), room in room(), ops in traffic()) {
        let mut settings = red_pd_settings(&c);
        settings.push(("mode", if c.bytes { "bytes" } else { "packets" }.into()));
        let model = RedPd::new(c, DropFront);
        let mut naive = Naive { model, room, q: Vec::new(), events: Vec::new() };
        compare_behind(Some(("red-pd", &settings)), "drop-front", &[], room, &ops, &mut naive)?;
    }
}
