//! RED-PD: RED with preferential dropping (Mahajan01), as a filter before a queue.
//!
//! What the queue drops tells who sends most. Time is cut into lists of K/M congestion epochs of a
//! TCP with round-trip time R; a flow with drops in K of the last M lists sends more than that TCP. It
//! becomes *monitored*: the filter drops its packets with a probability P of its own. In our words,
//! with p the drop rate of the queue behind the filter (Mahajan01 §4, §5):
//!
//! ```text
//! a packet arrives: its flow is monitored and the queue congested: with probability P drop it
//! the queue drops or marks a packet: count it for its flow in the present list
//! a list ends, after K/M · R/√(1.5 p):                                                    (eq. 3)
//!     p := (1 − w)·p + w·(drops / arrivals of the queue in this list)
//!     for each flow with drops in at least K of the last M lists, at most every M − 1 lists:
//!         δ := drops/average drops of all such flows · p                                  (eq. 5)
//!         P := P + δ;  or, if δ > P + p, 2 P  (p, if the flow was not monitored before)
//!     for each monitored flow with drops in none of them, at most every l lists:
//!         P := max(P/β, P − p_d);  P < P_min: monitor it no longer
//! ```
//!
//! For a flow that does not yield (§6.2, `responsive`) other constants hold.
//!
//! Where the paper is silent or leaves a choice:
//! - Drops include marks. Only what reaches the queue counts as its arrivals. A list without arrivals
//!   tells nothing of p; below `least_drop_rate` lists get no longer.
//! - Where eq. 5 asks for more than a flow's existing drop rate, P + p, its probability "just" doubles
//!   (§5.1). Twice nothing would never begin: a flow's first probability is at most p, which doubles
//!   what it loses. The average is over all flows with drops in K lists, also those that are not
//!   raised yet: rounds of different flows need not coincide.
//! - The coin of the filter is independent of those before: §5 wants no more than to look up a
//!   probability and to drop. `filter_spacing = uniform-exact` is the coin of the authors' program.
//! - Memory is fixed. A list that is more than half full when it ends forgets the flows with the
//!   fewest drops (§8.1); a full table of monitored flows gives up that of the lowest P, one a list.

use super::Filter;
use crate::about::{About, Family, Signal, joined};
use crate::context::{Cause, Cx, Env, State};
use crate::flow_table::{FlowTable, Id};
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, Mode, choice, params};
use crate::policy::red;
use crate::response;
use crate::rng::Rng;
use crate::time::{Duration, Instant};

pub mod equations;
mod history;
mod responsive;
mod rules;
#[cfg(test)]
mod tests;

use history::History;
use responsive::Record;
pub use responsive::UnresponsiveRule;
use rules::{Drops, Found, Rules};
pub use rules::{Identification, IncrementCap, IncrementRate};

/// What red-pd tells of itself.
pub const ABOUT: About = About {
    name: "red-pd",
    family: Family::Filter,
    summary: "RED behind a filter that drops packets of the flows that RED dropped most often.",
    source: "Mahajan01",
    rule: "RED-PD drops packets of a monitored flow with its flow_p before they come to the \
        queue, where RED decides (Mahajan01)",
    causes: &[(Cause::Penalty, "RED-PD monitors its flow, and the filter's coin chose it")],
    unmarked: red::ABOUT.unmarked,
    signals: &joined::<_, 12>(
        &[
            Signal {
                name: "identified",
                unit: "",
                doc: "flows with drops in enough lists when the last one ended",
            },
            Signal { name: "monitored", unit: "", doc: "flows with a probability in the filter" },
            Signal { name: "unresponsive", unit: "", doc: "of these, found not to respond" },
            Signal {
                name: "found_last",
                unit: "",
                doc: "number of the flow that was found so last, -1 for none",
            },
            Signal {
                name: "p_ambient",
                unit: "0 … 1",
                doc: "smoothed drop rate of the queue behind the filter",
            },
            Signal { name: "target_rtt", unit: "s", doc: "R" },
            Signal { name: "target_rate", unit: "packets/s", doc: "f(R, p)" },
            Signal { name: "list_interval", unit: "s", doc: "length of the next list" },
        ],
        red::SIGNALS,
    ),
    presets: &[(
        "authors",
        &[
            ("interval_bounds", "true"),
            ("filter_spacing", "uniform-exact"),
            ("increment_rate", "least"),
            ("increment_cap", "probability"),
            ("last_list", "true"),
            ("least_pause", "400ms"),
            ("least_backlog", "2"),
            ("unresponsive_rule", "pairs"),
            ("unresponsive_always", "true"),
            ("ns2_rules", "true"),
            ("min_th", "20%"),
            ("max_th", "66%"),
            ("max_p", "0.1"),
            ("gentle", "true"),
        ],
    )],
    live: red::LIVE,
    ..About::NEW
};

/// The most lists that can be looked back on.
const MOST_LISTS: usize = 8;

params! {
    /// Parameters of RED-PD.
    pub struct RedPdConfig {
        /// Round-trip time R of the reference TCP: flows that send more than it are held down.
        target_rtt: Duration = Duration::from_millis(40), in Duration::from_millis(1)..=Duration::from_secs(60), "Mahajan01 §4.1, §7.2";
        /// How flows are identified by their drops in the last m lists.
        identification: Identification = Identification::MultipleList, "Mahajan01 §4.3";
        /// Lists (or drops) that identify a flow; also the congestion epochs that m lists last.
        k: u32 = 3, in 1..=8, "Mahajan01 §4.2";
        /// Number of past lists that count.
        m: u32 = 5, in 1..=8, "Mahajan01 §4.2";
        /// Drops in the last m lists that identify a flow however they are spread; `none`: a flow
        /// whose drops are in fewer than k lists is not identified.
        burst: Option<u32> = None, in 1..=1_000_000, "Mahajan01 §6.3";
        /// Weight of the last list in the smoothed drop rate.
        weight: f64 = 0.5, in 0.0..=1.0, "Mahajan01 §4.2, Fig. 16";
        /// Drop rate below which lists get no longer and the target rate no higher.
        least_drop_rate: f64 = 0.0001, in 0.000001..=1.0, "ours";
        /// The drop rate that lists go by (equation 3) where it is known; `none`: the smoothed one.
        list_drop_rate: Option<f64> = None, in 0.000001..=1.0, "Mahajan01 §7.1; ns-2.35 red-pd";
        /// Keeps lists between 2 and 10 target_rtt, as the authors' program does.
        interval_bounds: bool = false, "ns-2.35 red-pd";
        /// Whether drops are weighed by packets or by bytes.
        mode: Mode = Mode::Packets, "Mahajan01 §6.4";
        /// How drops of the filter are spaced.
        filter_spacing: FilterSpacing = FilterSpacing::Geometric, "Mahajan01 §5.1; ns-2.35 red-pd.cc";
        /// Packets that wait at the least when the filter drops one.
        least_backlog: u32 = 0, in 0..=1_000_000, "ns-2.35 red-pd.cc";
        /// The drop rate of the queue in equation 5.
        increment_rate: IncrementRate = IncrementRate::Smoothed, "Mahajan01 §5.1; ns-2.35 red-pd";
        /// From where on a probability only doubles.
        increment_cap: IncrementCap = IncrementCap::Losses, "Mahajan01 §5.1; ns-2.35 red-pd";
        /// Raises only flows that lost a packet in the last list, in the filter or behind it, and only
        /// if the queue dropped more than 0.1 % in it.
        last_list: bool = false, "ns-2.35 red-pd";
        /// Least time between two changes of a flow's probability.
        least_pause: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(60), "ns-2.35 red-pd";
        /// Factor by which a probability is lowered (β).
        beta: f64 = 2.0, in 1.01..=1000.0, "Mahajan01 §5.2";
        /// Most by which a probability is lowered at once.
        p_d: f64 = 0.05, in 0.0001..=1.0, "Mahajan01 §5.2";
        /// Probability below which a flow is monitored no longer.
        p_min: f64 = 0.005, in 0.000001..=1.0, "Mahajan01 §5.2";
        /// Lists between two decrements.
        l: u32 = 3, in 1..=100, "Mahajan01 §5.2";
        /// Whether monitored flows are tested for whether they respond.
        unresponsive_test: bool = true, "Mahajan01 §6.2";
        /// How the test is made.
        unresponsive_rule: UnresponsiveRule = UnresponsiveRule::Growth, "ours (Mahajan01 §6.2); pairs: ns-2.35 red-pd", with unresponsive_test = "true";
        /// Losses in a sample of the test by growth.
        test_drops: u32 = 16, in 1..=10_000, "ours (Mahajan01 §6.2: several epochs)", with unresponsive_test = "true", with unresponsive_rule = "growth";
        /// Factor by which losses have to grow between two samples for the test by growth to decide.
        test_increase: f64 = 3.0, in 1.1..=100.0, "ours (Mahajan01 §6.2: substantially)", with unresponsive_test = "true", with unresponsive_rule = "growth";
        /// Factor on increments for unresponsive flows.
        unresponsive_increase: f64 = 2.0, in 1.0..=100.0, "ours (Mahajan01 §6.2: bigger quanta)", with unresponsive_test = "true";
        /// beta for unresponsive flows.
        unresponsive_beta: f64 = 1.5, in 1.01..=1000.0, "Mahajan01 §5.2", with unresponsive_test = "true";
        /// p_d for unresponsive flows.
        unresponsive_p_d: f64 = 0.05, in 0.0001..=1.0, "Mahajan01 §5.2", with unresponsive_test = "true";
        /// p_min for unresponsive flows.
        unresponsive_p_min: f64 = 0.0025, in 0.000001..=1.0, "Mahajan01 §5.2", with unresponsive_test = "true";
        /// l for unresponsive flows.
        unresponsive_l: u32 = 5, in 1..=100, "Mahajan01 §5.2", with unresponsive_test = "true";
        /// Drops packets of unresponsive flows even while the queue is not congested.
        unresponsive_always: bool = false, "ns-2.35 red-pd", with unresponsive_test = "true";
        /// Drop rate above which R is raised, while there is room for monitored flows; `none`: R is target_rtt.
        wanted_drop_rate: Option<f64> = None, in 0.0001..=1.0, "Mahajan01 §8.2, ours";
        /// The largest R where it is varied.
        max_rtt: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(60), "Mahajan01 §8.2, ours", with wanted_drop_rate != "none";
        /// Most flows whose drops are remembered, besides monitored ones.
        history: u32 = 4096, in 1..=65_536, "Mahajan01 §8.1";
        /// Most flows that are monitored.
        monitored: u32 = 2048, in 1..=65_536, "Mahajan01 §8.1";
    }
}

choice! {
    /// How drops of the filter are spaced.
    pub enum FilterSpacing {
        /// Not at all: every packet meets the same probability.
        Geometric = "geometric",
        /// The gap is uniform on 1 … 1/P, as RED's (FJ93 §7): nearly twice as many drops, 2P/(1 + P).
        UniformExact = "uniform-exact",
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Monitored {
    /// Probability in the filter, [0, 1].
    p: f64,
    /// Packets since the filter dropped one.
    passed: u32,
    drops: Drops,
    /// The list in which p was changed last, and when it ended.
    changed: u64,
    changed_at: Instant,
    record: Record,
}

/// The RED-PD filter.
#[derive(Clone, Debug)]
pub struct RedPd {
    rules: Rules,
    /// Packets that came to the queue in the present list, and were dropped or marked by it.
    arrived: u64,
    signalled: u64,
    /// When the present list began and ends.
    began: Instant,
    ends: Instant,
    history: History,
    monitored: FlowTable<Monitored>,
    /// Flows of both that are identified by their drops up to now.
    found: Found,
    unresponsive: u32,
    /// The flow found unresponsive last; of several at once the one with the highest probability.
    found_last: Option<FlowKey>,
    /// Flows that were identified as the last list ended.
    identified: u32,
}

impl Filter for RedPd {
    type Config = RedPdConfig;

    fn new(c: &RedPdConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        if c.k > c.m {
            return Err(ConfigError { key: "k", allowed: "at most m".into() });
        }
        if c.wanted_drop_rate.is_some() && c.max_rtt < c.target_rtt {
            return Err(ConfigError { key: "max_rtt", allowed: "at least target_rtt".into() });
        }
        let rules = Rules {
            unit: if c.mode == Mode::Bytes { u64::from(env.mean_packet) } else { 1 },
            rtt: c.target_rtt.as_secs_f64(),
            p: 0.0,
            last: 0.0,
            list: 0,
            c: c.clone(),
        };
        Ok(Self {
            began: env.now,
            ends: env.now + rules.interval(),
            rules,
            arrived: 0,
            signalled: 0,
            history: History::new(c.history, c.m, rng),
            monitored: FlowTable::new(c.monitored, rng),
            found: Found::default(),
            unresponsive: 0,
            found_last: None,
            identified: 0,
        })
    }

    #[inline]
    fn drops(&mut self, pkt: &Meta, congested: impl FnOnce(u32) -> bool, cx: &mut Cx<'_>) -> bool {
        if let Some(id) = self.monitored_at(pkt.flow) {
            let flow = &mut self.monitored[id];
            flow.record.arrived();
            let always = flow.record.unresponsive && self.rules.c.unresponsive_always;
            let congested = || congested(self.rules.c.least_backlog);
            if (always || congested()) && cx.rng.chance(flow.chance(self.rules.c.filter_spacing)) {
                flow.passed = 0;
                flow.record.lost();
                return true;
            }
            flow.passed = flow.passed.saturating_add(1);
        } else if self.rules.c.pairs() {
            self.history.arrived(pkt.flow, &self.rules);
        }
        self.arrived += 1;
        false
    }

    fn signalled(&mut self, pkt: &Meta) {
        self.signalled += 1;
        let weight = if self.rules.c.mode == Mode::Bytes { pkt.len } else { 1 };
        if let Some(id) = self.monitored_at(pkt.flow) {
            let flow = &mut self.monitored[id];
            flow.record.lost();
            let place = self.rules.place(self.rules.list);
            self.found.change(&mut flow.drops, &self.rules, |drops| drops.add(place, weight));
        } else {
            self.history.signalled(pkt.flow, weight, &self.rules, &mut self.found);
        }
    }

    fn poll_at(&self) -> Option<Instant> {
        Some(self.ends)
    }

    /// A timer that comes late ends one list; the next begins then.
    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.ends {
            self.end_list(cx.now);
            (self.began, self.ends) = (cx.now, cx.now + self.rules.interval());
        }
    }

    fn state(&self) -> State {
        State {
            queue: size_of::<Self>() as u64 + self.history.bytes(),
            per_flow: FlowTable::<Monitored>::BYTES_PER_FLOW,
            flows: self.monitored.capacity() as u64,
            per_packet: 0,
        }
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("identified", f64::from(self.identified));
        sink("monitored", self.monitored.len() as f64);
        sink("unresponsive", f64::from(self.unresponsive));
        sink("found_last", self.found_last.map_or(-1.0, |flow| f64::from(flow.0 as u32)));
        sink("p_ambient", self.rules.p);
        sink("target_rtt", self.rules.rtt);
        sink("target_rate", response::square_root(self.rules.floored_p(), self.rules.rtt));
        sink("list_interval", self.rules.interval().as_secs_f64());
    }

    fn observe_flow(&self, pkt: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let flow = self.monitored.find(pkt.flow).map(|id| &self.monitored[id]);
        sink("flow_monitored", f64::from(u8::from(flow.is_some())));
        sink("flow_p", flow.map_or(0.0, |flow| flow.chance(self.rules.c.filter_spacing)));
    }
}

impl Monitored {
    /// The probability that the next packet meets.
    #[inline]
    fn chance(&self, spacing: FilterSpacing) -> f64 {
        match spacing {
            FilterSpacing::Geometric => self.p,
            FilterSpacing::UniformExact => {
                let left = 1.0 - f64::from(self.passed) * self.p;
                if left > 0.0 { self.p / left } else { 1.0 }
            }
        }
    }
}

impl RedPd {
    /// The place of a flow that is monitored.
    #[inline]
    fn monitored_at(&self, flow: FlowKey) -> Option<Id> {
        if self.monitored.is_empty() { None } else { self.monitored.find(flow) }
    }

    /// The present list ends: the drop rate is updated, probabilities move, flows are monitored and
    /// released, and the next list begins.
    fn end_list(&mut self, now: Instant) {
        if self.arrived > 0 {
            self.rules.dropped((self.signalled as f64 / self.arrived as f64).min(1.0));
        }
        (self.arrived, self.signalled) = (0, 0);
        self.identified = self.found.flows;
        let average = self.found.average();
        let lowest = self.move_monitored(average, now);
        self.monitor_more(average, lowest, now);
        self.history.make_room(&self.rules, &mut self.found);
        if self.rules.list.is_multiple_of(u64::from(self.rules.c.m)) {
            let room = self.monitored.len() < self.monitored.capacity() / 10 * 9;
            self.rules.vary_rtt(room);
        }
        self.rules.list += 1;
    }

    /// Moves the probabilities of monitored flows and releases those that need none; the flow of the
    /// lowest, if any stays.
    fn move_monitored(&mut self, average: f64, now: Instant) -> Option<(f64, FlowKey)> {
        let Self { rules, monitored, found, .. } = self;
        let next = rules.place(rules.list + 1);
        let mut lowest: Option<(f64, FlowKey)> = None;
        self.unresponsive = 0;
        let mut found_last: Option<(f64, FlowKey)> = None;
        monitored.retain(|key, flow| {
            let rises = rules.rises(flow, now);
            let known = flow.record.unresponsive;
            flow.record.end_list(&rules.c, self.began, now, rises);
            let more = |(p, other): (f64, FlowKey)| (flow.p, other.0) > (p, key.0);
            if flow.record.unresponsive && !known && found_last.is_none_or(more) {
                found_last = Some((flow.p, key));
            }
            let stays = rules.move_p(flow, rises, average, now);
            found.change(&mut flow.drops, rules, |drops| drops.forget(next));
            if stays {
                self.unresponsive += u32::from(flow.record.unresponsive);
                if lowest.is_none_or(|(p, _)| flow.p < p) {
                    lowest = Some((flow.p, key));
                }
            }
            stays
        });
        self.found_last = found_last.map(|(_, flow)| flow).or(self.found_last);
        lowest
    }

    /// Monitors the flows of the history that are identified. One of them may take the place of the
    /// flow of the `lowest` probability; the history forgets flows without drops.
    fn monitor_more(&mut self, average: f64, mut lowest: Option<(f64, FlowKey)>, now: Instant) {
        let Self { rules, history, monitored, found, .. } = self;
        history.end_list(average, rules, found, |key, p, drops, list, found| {
            if monitored.len() == monitored.capacity()
                && let Some((_, other)) = lowest.take_if(|(lowest, _)| *lowest <= p)
                && let Some(id) = monitored.find(other)
            {
                let drops = monitored.remove(id).drops;
                if rules.identified(&drops) {
                    found.without(&drops);
                }
            }
            let Some(id) = monitored.find_or_insert(key) else { return false };
            monitored[id] = Monitored {
                p,
                drops,
                changed: rules.list,
                changed_at: now,
                record: Record::new(&rules.c, list, self.began, now),
                ..Monitored::default()
            };
            true
        });
    }
}
