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
//!         P += min(drops/average drops of all such flows · p, P + p)                      (eq. 5)
//!     for each monitored flow with drops in none of them, at most every l lists:
//!         P := max(P/β, P − p_d);  P < P_min: monitor it no longer
//! ```
//!
//! A flow that does not yield is punished (§6.2): when its losses have grown by a factor x and its
//! rate has not fallen to x^(−¼), half-way to the x^(−½) of equation 1, other constants hold for it.
//!
//! Where the paper is silent or leaves a choice:
//! - Drops include marks. Only what reaches the queue counts as its arrivals. A list without arrivals
//!   tells nothing of p; below `least_drop_rate` lists get no longer.
//! - "Existing drop rate" in eq. 5's cap is P + p. The average is over all flows with drops in K
//!   lists, also those that are not raised yet: rounds of different flows need not coincide.
//! - §6.2 names no numbers. A sample is at least M lists and `test_drops` losses; each is compared
//!   with the first since monitoring began or since the flow proved responsive.
//! - Memory is fixed. A list that is more than half full when it ends forgets the flows with the
//!   fewest drops (§8.1); a full table of monitored flows gives up that of the lowest P, one a list.

use super::Filter;
use crate::context::{Cx, Env, State};
use crate::flow_table::FlowTable;
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, Mode, choice, params};
use crate::response;
use crate::rng::Rng;
use crate::time::{Duration, Instant};

pub mod equations;

/// The most lists that can be looked back on.
const MOST_LISTS: usize = 8;

/// What R is multiplied or divided by where it is varied.
const RTT_STEP: f64 = 1.25;

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
        /// Keeps lists between 2 and 10 target_rtt, as the authors' program does.
        interval_bounds: bool = false, "ns-2.35 red-pd";
        /// Whether drops are weighed by packets or by bytes.
        mode: Mode = Mode::Packets, "Mahajan01 §6.4";
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
        /// Losses in a sample of the test.
        test_drops: u32 = 16, in 1..=10_000, "ours (Mahajan01 §6.2: several epochs)";
        /// Factor by which losses have to grow between two samples for the test to decide.
        test_increase: f64 = 3.0, in 1.1..=100.0, "ours (Mahajan01 §6.2: substantially)";
        /// Factor on increments for unresponsive flows.
        unresponsive_increase: f64 = 2.0, in 1.0..=100.0, "ours (Mahajan01 §6.2: bigger quanta)";
        /// beta for unresponsive flows.
        unresponsive_beta: f64 = 1.5, in 1.01..=1000.0, "Mahajan01 §5.2";
        /// p_d for unresponsive flows.
        unresponsive_p_d: f64 = 0.05, in 0.0001..=1.0, "Mahajan01 §5.2";
        /// p_min for unresponsive flows.
        unresponsive_p_min: f64 = 0.0025, in 0.000001..=1.0, "Mahajan01 §5.2";
        /// l for unresponsive flows.
        unresponsive_l: u32 = 5, in 1..=100, "Mahajan01 §5.2";
        /// Drops packets of unresponsive flows even while the queue is not congested.
        unresponsive_always: bool = false, "ns-2.35 red-pd";
        /// Drop rate above which R is raised, while there is room for monitored flows; `none`: R is target_rtt.
        wanted_drop_rate: Option<f64> = None, in 0.0001..=1.0, "Mahajan01 §8.2, ours";
        /// The largest R where it is varied.
        max_rtt: Duration = Duration::from_millis(500), in Duration::from_millis(1)..=Duration::from_secs(60), "Mahajan01 §8.2, ours";
        /// Most flows whose drops are remembered, besides monitored ones.
        history: u32 = 4096, in 1..=65_536, "Mahajan01 §8.1";
        /// Most flows that are monitored.
        monitored: u32 = 2048, in 1..=65_536, "Mahajan01 §8.1";
    }
}

choice! {
    /// How flows are identified.
    pub enum Identification {
        /// By drops in at least k of the last m lists.
        MultipleList = "multiple-list",
        /// By at least k drops in the last m lists, as in one long list.
        SingleList = "single-list",
    }
}

/// Drops of a flow in each of the last M lists, in packets or bytes; the place of the present one
/// goes round.
type Drops = [u32; MOST_LISTS];

/// What a monitored flow did in a while.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Sample {
    /// Packets per second, before the filter.
    rate: f64,
    /// Share lost to filter and queue.
    loss: f64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Monitored {
    /// Probability in the filter, [0, 1].
    p: f64,
    /// The sample being taken: packets arrived and lost, its first list and its beginning.
    arrived: u64,
    lost: u32,
    first_list: u64,
    since: Instant,
    drops: Drops,
    /// The list in which p was changed last.
    changed: u64,
    /// What samples are compared with; a loss of 0: nothing yet.
    reference: Sample,
    unresponsive: bool,
}

/// The RED-PD filter.
#[derive(Clone, Debug)]
pub struct RedPd {
    rules: Rules,
    /// Packets that came to the queue in the present list, and were dropped or marked by it.
    arrived: u64,
    signalled: u64,
    /// When the present list ends.
    ends: Instant,
    history: FlowTable<Drops>,
    monitored: FlowTable<Monitored>,
    unresponsive: u32,
    /// Flows that were identified as the last list ended.
    identified: u32,
}

impl Filter for RedPd {
    type Config = RedPdConfig;

    fn new(c: &RedPdConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        if c.k > c.m {
            return Err(ConfigError { key: "k", allowed: "at most m" });
        }
        if c.wanted_drop_rate.is_some() && c.max_rtt < c.target_rtt {
            return Err(ConfigError { key: "max_rtt", allowed: "at least target_rtt" });
        }
        let rules = Rules {
            unit: if c.mode == Mode::Bytes { u64::from(env.mean_packet) } else { 1 },
            rtt: c.target_rtt.as_secs_f64(),
            p: 0.0,
            list: 0,
            c: c.clone(),
        };
        Ok(Self {
            ends: env.now + rules.interval(),
            rules,
            arrived: 0,
            signalled: 0,
            history: FlowTable::new(c.history, rng),
            monitored: FlowTable::new(c.monitored, rng),
            unresponsive: 0,
            identified: 0,
        })
    }

    #[inline]
    fn drops(&mut self, pkt: &Meta, congested: impl FnOnce() -> bool, cx: &mut Cx<'_>) -> bool {
        if !self.monitored.is_empty()
            && let Some(id) = self.monitored.find(pkt.flow)
        {
            let flow = &mut self.monitored[id];
            flow.arrived += 1;
            let active = (flow.unresponsive && self.rules.c.unresponsive_always) || congested();
            if active && cx.rng.chance(flow.p) {
                flow.lost += 1;
                return true;
            }
        }
        self.arrived += 1;
        false
    }

    fn signalled(&mut self, pkt: &Meta) {
        self.signalled += 1;
        let drops = if let Some(id) = self.monitored.find(pkt.flow) {
            let flow = &mut self.monitored[id];
            flow.lost += 1;
            &mut flow.drops
        } else if let Some(id) = self.history.find_or_insert(pkt.flow) {
            &mut self.history[id]
        } else {
            return;
        };
        let weight = if self.rules.c.mode == Mode::Bytes { pkt.len } else { 1 };
        let drops = &mut drops[self.rules.place(self.rules.list)];
        *drops = drops.saturating_add(weight);
    }

    fn poll_at(&self) -> Option<Instant> {
        Some(self.ends)
    }

    /// A timer that comes late ends one list; the next begins then.
    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.ends {
            self.end_list(cx.now);
            self.ends = cx.now + self.rules.interval();
        }
    }

    fn state(&self) -> State {
        let history = self.history.capacity() as u64 * FlowTable::<Drops>::BYTES_PER_FLOW;
        State {
            queue: size_of::<Self>() as u64 + history,
            per_flow: FlowTable::<Monitored>::BYTES_PER_FLOW,
            flows: self.monitored.capacity() as u64,
            per_packet: 0,
        }
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("identified", f64::from(self.identified));
        sink("monitored", self.monitored.len() as f64);
        sink("unresponsive", f64::from(self.unresponsive));
        sink("p_ambient", self.rules.p);
        sink("target_rtt", self.rules.rtt);
        sink("target_rate", response::square_root(self.rules.floored_p(), self.rules.rtt));
        sink("list_interval", self.rules.interval().as_secs_f64());
    }
}

impl RedPd {
    /// The present list ends: the drop rate is updated, probabilities move, flows are monitored and
    /// released, and the next list begins.
    fn end_list(&mut self, now: Instant) {
        let Self { rules, history, monitored, .. } = self;
        if self.arrived > 0 {
            let rate = (self.signalled as f64 / self.arrived as f64).min(1.0);
            rules.p += rules.c.weight * (rate - rules.p);
        }
        (self.arrived, self.signalled) = (0, 0);

        let all = monitored.iter().map(|(.., flow)| &flow.drops);
        let found = all.chain(history.iter().map(|(.., d)| d)).filter(|d| rules.identified(d));
        let (count, sum) = found.fold((0, 0), |(n, sum), drops| (n + 1u32, sum + total(drops)));
        self.identified = count;
        let average = sum as f64 / f64::from(count);

        let next = rules.place(rules.list + 1);
        let mut lowest: Option<(f64, FlowKey)> = None;
        self.unresponsive = 0;
        monitored.retain(|key, flow| {
            rules.test(flow, now);
            let stays = rules.move_p(flow, average);
            flow.drops[next] = 0;
            if stays {
                self.unresponsive += u32::from(flow.unresponsive);
                if lowest.is_none_or(|(p, _)| flow.p < p) {
                    lowest = Some((flow.p, key));
                }
            }
            stays
        });
        history.retain(|key, drops| {
            let identified = rules.identified(drops);
            let p = if identified { rules.quantum(0.0, drops, average) } else { 0.0 };
            drops[next] = 0;
            if identified {
                if monitored.len() == monitored.capacity()
                    && let Some((_, other)) = lowest.take_if(|(lowest, _)| *lowest <= p)
                    && let Some(id) = monitored.find(other)
                {
                    monitored.remove(id);
                }
                if let Some(id) = monitored.find_or_insert(key) {
                    monitored[id] = Monitored {
                        p,
                        drops: *drops,
                        changed: rules.list,
                        first_list: rules.list + 1,
                        since: now,
                        ..Monitored::default()
                    };
                    return false;
                }
            }
            total(drops) > 0
        });
        let mut few = rules.unit;
        while history.len() > history.capacity() / 2 {
            history.retain(|_, drops| total(drops) > few);
            few *= 2;
        }
        if rules.list.is_multiple_of(u64::from(rules.c.m)) {
            let room = monitored.len() < monitored.capacity() / 10 * 9;
            rules.vary_rtt(room);
        }
        rules.list += 1;
    }
}

/// What decides about a flow: parameters, and the state of the queue.
#[derive(Clone, Debug)]
struct Rules {
    c: RedPdConfig,
    /// What a drop weighs: 1, or the bytes of a mean packet.
    unit: u64,
    /// R in seconds.
    rtt: f64,
    /// Smoothed drop rate of the queue, [0, 1].
    p: f64,
    /// Number of the present list.
    list: u64,
}

impl Rules {
    /// The drop rate that lists and the target rate go by.
    fn floored_p(&self) -> f64 {
        self.p.max(self.c.least_drop_rate)
    }

    /// How long a list lasts.
    fn interval(&self) -> Duration {
        let interval = equations::list_interval(self.c.k, self.c.m, self.rtt, self.floored_p());
        let (low, high) = if self.c.interval_bounds {
            (2.0 * self.rtt, 10.0 * self.rtt)
        } else {
            (0.0, f64::MAX)
        };
        Duration::from_secs_f64(interval.clamp(low, high))
    }

    /// Where drops of a list are counted.
    fn place(&self, list: u64) -> usize {
        (list % u64::from(self.c.m)) as usize
    }

    /// Whether its drops in the last M lists show that a flow sends too much.
    fn identified(&self, drops: &Drops) -> bool {
        let at_least = |n: u32| total(drops) >= u64::from(n) * self.unit;
        let regularly = match self.c.identification {
            Identification::MultipleList => {
                drops.iter().filter(|&&n| n > 0).count() >= self.c.k as usize
            }
            Identification::SingleList => at_least(self.c.k),
        };
        regularly || self.c.burst.is_some_and(at_least)
    }

    /// Whether a monitored flow's probability goes up.
    fn rises(&self, flow: &Monitored) -> bool {
        self.list - flow.changed >= u64::from(self.c.m - 1) && self.identified(&flow.drops)
    }

    /// By how much a probability goes up (eq. 5): the flow's losses at most double.
    fn quantum(&self, p: f64, drops: &Drops, average: f64) -> f64 {
        equations::increment(total(drops) as f64, average, self.p).min(p + self.p)
    }

    /// Moves the probability of a monitored flow, if it is time to; whether it stays monitored.
    fn move_p(&self, flow: &mut Monitored, average: f64) -> bool {
        let c = &self.c;
        let (factor, beta, p_d, p_min, l) = if flow.unresponsive {
            let (beta, p_d) = (c.unresponsive_beta, c.unresponsive_p_d);
            (c.unresponsive_increase, beta, p_d, c.unresponsive_p_min, c.unresponsive_l)
        } else {
            (1.0, c.beta, c.p_d, c.p_min, c.l)
        };
        if self.rises(flow) {
            flow.p = (flow.p + factor * self.quantum(flow.p, &flow.drops, average)).min(1.0);
            flow.changed = self.list;
        } else if total(&flow.drops) == 0 && self.list - flow.changed >= u64::from(l) {
            flow.p = equations::decreased(flow.p, beta, p_d);
            flow.changed = self.list;
            return flow.p >= p_min;
        }
        true
    }

    /// Ends a flow's sample if it is complete, and judges it.
    fn test(&self, flow: &mut Monitored, now: Instant) {
        let lists = self.list + 1 - flow.first_list;
        let c = &self.c;
        if !c.unresponsive_test || lists < u64::from(c.m) || flow.lost < c.test_drops {
            return;
        }
        let arrived = flow.arrived as f64;
        let sample = Sample {
            rate: arrived / now.since(flow.since).as_secs_f64(),
            loss: f64::from(flow.lost) / arrived.max(1.0),
        };
        let grown = sample.loss / flow.reference.loss;
        if grown >= c.test_increase && flow.reference.loss > 0.0 {
            if responded(grown, flow.reference.rate, sample.rate) {
                flow.reference = sample;
            } else {
                flow.unresponsive = true;
            }
        } else if flow.reference.loss == 0.0 || grown * c.test_increase <= 1.0 {
            flow.reference = sample;
        }
        (flow.arrived, flow.lost, flow.first_list, flow.since) = (0, 0, self.list + 1, now);
    }

    /// Raises R while the queue drops too much, lowers it when that is over or state runs short.
    fn vary_rtt(&mut self, room: bool) {
        let Some(wanted) = self.c.wanted_drop_rate else { return };
        if room && self.p > wanted {
            self.rtt = (self.rtt * RTT_STEP).min(self.c.max_rtt.as_secs_f64());
        } else if !room || self.p < wanted / 2.0 {
            self.rtt = (self.rtt / RTT_STEP).max(self.c.target_rtt.as_secs_f64());
        }
    }
}

/// Whether a flow responded whose losses have grown by the factor `loss` and whose rate went from
/// `before` to `after`. Equation 1 asks for a factor of loss^(−½); half of that, in logarithms, is
/// taken for an answer. Who has sent nothing has responded.
fn responded(loss: f64, before: f64, after: f64) -> bool {
    after <= before / libm::sqrt(libm::sqrt(loss))
}

/// Drops in all lists.
fn total(drops: &Drops) -> u64 {
    drops.iter().map(|&n| u64::from(n)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::{config, env};
    use std::vec::Vec;

    /// The filter before a queue that the test plays.
    struct Desk {
        filter: RedPd,
        now: Instant,
        rng: Rng,
    }

    fn packet(flow: u64, len: u32) -> Meta {
        Meta { flow: FlowKey(flow), len, ..Meta::default() }
    }

    impl Desk {
        fn new(settings: &[(&str, &str)]) -> Self {
            let mut rng = Rng::new(5, 0);
            let filter = RedPd::new(&config(settings), &env(100), &mut rng).unwrap();
            Self { filter, now: Instant::ZERO, rng }
        }

        /// A packet arrives before a congested queue: whether the filter drops it.
        fn arrive(&mut self, flow: u64) -> bool {
            let mut cx = Cx { now: self.now, rng: &mut self.rng };
            self.filter.drops(&packet(flow, 1000), || true, &mut cx)
        }

        /// The queue drops a packet of each of these flows.
        fn signal(&mut self, flows: &[u64]) {
            flows.iter().for_each(|&flow| self.filter.signalled(&packet(flow, 1000)));
        }

        /// A list in which the queue drops 2 % of 1000 packets, those of `flows` among them.
        fn list(&mut self, flows: &[u64]) {
            self.signal(flows);
            self.filter.arrived = 1000;
            self.filter.signalled = 20;
            self.end_list();
        }

        fn end_list(&mut self) {
            self.now = self.filter.ends;
            self.filter.on_timer(&mut Cx { now: self.now, rng: &mut self.rng });
        }

        /// The probability of a flow, if it is monitored.
        fn p(&self, flow: u64) -> Option<f64> {
            let table = &self.filter.monitored;
            table.find(FlowKey(flow)).map(|id| table[id].p)
        }

        /// What is remembered of flow 1, which is monitored.
        fn flow_1(&mut self) -> &mut Monitored {
            let table = &mut self.filter.monitored;
            let id = table.find(FlowKey(1)).unwrap();
            &mut table[id]
        }

        fn monitored(&self) -> Vec<u64> {
            let mut all: Vec<u64> = self.filter.monitored.iter().map(|(_, key, _)| key.0).collect();
            all.sort_unstable();
            all
        }
    }

    /// The smoothed drop rate is 2 % from the first list on.
    const STEADY: (&str, &str) = ("weight", "1");
    const PATIENT: (&str, &str) = ("unresponsive_test", "false");

    fn close(got: Option<f64>, expected: f64) {
        assert!(got.is_some_and(|got| (got - expected).abs() < 1e-12), "{got:?} for {expected}");
    }

    #[test]
    fn drops_in_three_of_five_lists_identify_a_flow() {
        let mut desk = Desk::new(&[STEADY]);
        // Flow 1 in lists 0, 2 and 4, flow 2 in 0, 1 and 5, flow 3 ten times in list 4.
        for flows in [&[1, 2][..], &[2], &[1], &[], &[1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]] {
            assert_eq!(desk.monitored(), []);
            desk.list(flows);
        }
        desk.list(&[2]);
        assert_eq!(desk.monitored(), [1]);
    }

    #[test]
    fn a_single_list_counts_drops_however_they_come() {
        let mut desk = Desk::new(&[STEADY, ("identification", "single-list")]);
        desk.list(&[1, 1, 1, 2, 2]);
        assert_eq!(desk.monitored(), [1]);
        (0..4).for_each(|_| desk.list(&[]));
        desk.list(&[2]);
        assert_eq!(desk.monitored(), [1], "the first list is forgotten");
    }

    #[test]
    fn a_burst_evades_unless_it_is_looked_for() {
        let burst = |settings: &[(&str, &str)]| {
            let mut desk = Desk::new(settings);
            desk.list(&[1; 12]);
            desk.monitored()
        };
        assert_eq!(burst(&[STEADY]), []);
        assert_eq!(burst(&[STEADY, ("burst", "13")]), []);
        assert_eq!(burst(&[STEADY, ("burst", "12")]), [1]);
    }

    /// Each list is K/M · R/√(1.5 p) for the p at its beginning (eq. 3), 0.6 · 0.04 s here: at 10⁻⁴
    /// over 0.012247 (1.9596 s), at 2 % over 0.173205, at (2 + 6)/2 % over 0.244949.
    #[test]
    fn lists_get_shorter_with_more_drops() {
        let mut desk = Desk::new(&[]);
        let length = |desk: &Desk| desk.filter.ends.since(desk.now).as_secs_f64();
        assert!((length(&desk) - 1.9596).abs() < 1e-4);
        for (signalled, p) in [(40, 0.02), (60, 0.04)] {
            desk.filter.arrived = 1000;
            desk.filter.signalled = signalled;
            desk.end_list();
            assert!((desk.filter.rules.p - p).abs() < 1e-12);
            assert!((length(&desk) - 0.024 / (1.5 * p).sqrt()).abs() < 1e-9);
        }
        let before = desk.filter.rules.p;
        desk.end_list();
        assert_eq!(desk.filter.rules.p, before, "no arrivals tell nothing");
        let bounded = Desk::new(&[("interval_bounds", "true")]);
        assert!((length(&bounded) - 0.4).abs() < 1e-9, "10 R");
    }

    /// Alone a flow is raised by p = 2 % (eq. 5) every four lists.
    #[test]
    fn a_probability_rises_every_m_minus_1_lists() {
        let mut desk = Desk::new(&[STEADY, PATIENT]);
        let mut seen = Vec::new();
        for _ in 0..11 {
            desk.list(&[1]);
            seen.push(desk.p(1).map_or(0, |p| (p * 1000.0).round() as u32));
        }
        assert_eq!(seen, [0, 0, 20, 20, 20, 20, 40, 40, 40, 40, 60]);
    }

    /// Two flows of 9 and 3 drops: their average is 6, eq. 5 gives 3 % and 1 %, but a flow that lost
    /// 2 % gets no more than 2 % on top. Next time 15 and 5 drops, average 10: again 3 % and 1 %.
    #[test]
    fn increments_go_by_drops_and_at_most_double_the_losses() {
        let mut desk = Desk::new(&[STEADY, PATIENT]);
        for _ in 0..3 {
            desk.list(&[1, 1, 1, 2]);
        }
        close(desk.p(1), 0.02);
        close(desk.p(2), 0.01);
        for _ in 0..4 {
            desk.list(&[1, 1, 1, 2]);
        }
        close(desk.p(1), 0.05);
        close(desk.p(2), 0.02);
    }

    /// Mahajan01 §5.2: from 0.75 thirteen steps of 0.05, then 0.05, 0.025 … below 0.005: 18 rounds
    /// of three lists. The first comes when the last drop is five lists old.
    #[test]
    fn a_quiet_flow_is_released_as_equation_7_says() {
        let mut desk = Desk::new(&[STEADY, PATIENT]);
        (0..3).for_each(|_| desk.list(&[1]));
        desk.flow_1().p = 0.75;
        (0..4).for_each(|_| desk.list(&[]));
        close(desk.p(1), 0.75);
        desk.list(&[]);
        close(desk.p(1), 0.70);
        let began = desk.now;
        (0..17 * 3 - 1).for_each(|_| desk.list(&[]));
        close(desk.p(1), 0.1 / 16.0);
        desk.list(&[]);
        assert_eq!(desk.p(1), None);
        let took = desk.now.since(began).as_secs_f64();
        assert!((took - equations::release_time(17, 3, 0.04, 0.02, 3, 5)).abs() < 1e-6);
    }

    #[test]
    fn a_probability_rests_while_a_flow_has_some_drops() {
        let mut desk = Desk::new(&[STEADY, PATIENT]);
        (0..3).for_each(|_| desk.list(&[1]));
        for i in 0..20 {
            desk.list(if i % 5 == 4 { &[1] } else { &[] });
            close(desk.p(1), 0.02);
        }
    }

    #[test]
    fn only_monitored_flows_are_dropped_and_only_in_congestion() {
        let mut desk = Desk::new(&[STEADY]);
        (0..3).for_each(|_| desk.list(&[1]));
        desk.flow_1().p = 1.0;
        assert!(desk.arrive(1) && !desk.arrive(2));
        let mut cx = Cx { now: desk.now, rng: &mut desk.rng };
        assert!(!desk.filter.drops(&packet(1, 1000), || false, &mut cx));
        assert_eq!(desk.filter.arrived, 2, "what the filter drops does not reach the queue");
    }

    /// Losses of a hundredth grow to 8 %: equation 1 asks for 1/√8 = 0.35 of the rate, 8^(−¼) = 0.59
    /// is where an answer begins.
    #[test]
    fn a_response_by_hand() {
        let rate = |after| responded(8.0, 1.0, after);
        assert!(rate(0.35) && rate(0.59) && !rate(0.6));
        assert!(responded(1.0, 1.0, 1.0) && responded(8.0, 0.0, 0.0));
    }

    /// A monitored flow sends `packets[i]` a list of which it loses `lost[i]`, 5 lists each.
    fn tested(desk: &mut Desk, packets: [u32; 2], lost: [u32; 2]) -> bool {
        (0..3).for_each(|_| desk.list(&[1]));
        for (packets, lost) in packets.into_iter().zip(lost) {
            for _ in 0..5 {
                desk.flow_1().arrived += u64::from(packets);
                desk.flow_1().lost += lost - 1;
                desk.list(&[1]);
            }
        }
        desk.filter.unresponsive == 1
    }

    #[test]
    fn who_sends_on_as_losses_grow_is_unresponsive() {
        let test = |packets, lost| tested(&mut Desk::new(&[STEADY]), packets, lost);
        assert!(test([100, 100], [4, 12]), "three times the losses, the same rate");
        assert!(!test([100, 75], [4, 9]), "3^(−¼) = 0.76");
        assert!(!test([100, 100], [4, 11]), "less than three times");
        assert!(!test([100, 100], [1, 3]), "the first sample has 5 losses: it goes on");
        let mut desk = Desk::new(&[STEADY, PATIENT]);
        assert!(!tested(&mut desk, [100, 100], [4, 12]), "nobody asked");
    }

    /// Raised by twice the quantum, lowered by 1.5 every five lists down to 0.0025.
    #[test]
    fn the_unresponsive_are_cut_sooner_and_released_later() {
        let mut desk = Desk::new(&[STEADY]);
        assert!(tested(&mut desk, [100, 100], [4, 12]));
        let before = desk.p(1).unwrap();
        while desk.p(1) == Some(before) {
            desk.list(&[1]);
        }
        close(desk.p(1), before + 2.0 * 0.02);
        desk.flow_1().p = 0.06;
        (0..5).for_each(|_| desk.list(&[]));
        close(desk.p(1), 0.04);
        let mut lists = 0;
        while desk.p(1).is_some() {
            desk.list(&[]);
            lists += 1;
        }
        // 0.04/1.5⁶ = 0.0035, 0.04/1.5⁷ = 0.0023.
        assert_eq!(lists, 7 * 5);
        assert_eq!(desk.filter.unresponsive, 0);
    }

    #[test]
    fn in_byte_mode_drops_weigh_their_bytes() {
        let mut desk = Desk::new(&[STEADY, PATIENT, ("mode", "bytes")]);
        for _ in 0..3 {
            for (flow, len) in [(1, 500), (2, 1500)] {
                desk.filter.signalled(&packet(flow, len));
            }
            desk.list(&[]);
        }
        // 1500 and 4500 bytes, 3000 on average.
        close(desk.p(1), 0.01);
        close(desk.p(2), 0.02);
    }

    #[test]
    fn a_full_history_forgets_the_flows_with_the_fewest_drops() {
        let mut desk = Desk::new(&[STEADY, ("history", "10")]);
        desk.list(&[1, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9]);
        let mut left: Vec<u64> = desk.filter.history.iter().map(|(_, key, _)| key.0).collect();
        left.sort_unstable();
        assert_eq!(left, [1, 2]);
    }

    #[test]
    fn a_full_table_gives_up_the_monitored_flow_with_the_lowest_probability() {
        let mut desk = Desk::new(&[STEADY, PATIENT, ("monitored", "2")]);
        (0..3).for_each(|_| desk.list(&[1, 1, 2]));
        assert_eq!(desk.monitored(), [1, 2]);
        for _ in 0..3 {
            desk.list(&[3, 4]);
        }
        // Flow 2 has 1/75, flow 1 and the newcomers 2 %: one newcomer a list.
        assert_eq!(desk.monitored().len(), 2);
        assert!(desk.p(2).is_none() && desk.p(1).is_some());
    }

    #[test]
    fn r_follows_the_drop_rate_between_its_bounds_while_there_is_room() {
        let settings = [STEADY, ("wanted_drop_rate", "0.01"), ("max_rtt", "60ms")];
        let mut desk = Desk::new(&settings);
        let mut seen = Vec::new();
        for list in 0..30 {
            if list < 15 {
                desk.list(&[])
            } else {
                desk.end_list()
            }
            if list == 14 {
                desk.filter.rules.p = 0.0;
            }
            if list % 5 == 0 {
                seen.push((desk.filter.rules.rtt * 1e4).round());
            }
        }
        // 40 · 1.25, · 1.25 = 62.5, then down again.
        assert_eq!(seen, [500.0, 600.0, 600.0, 480.0, 400.0, 400.0]);
        let mut full = Desk::new(&[&settings[..], &[("monitored", "1")]].concat());
        (0..10).for_each(|_| full.list(&[1]));
        assert_eq!(full.filter.rules.rtt, 0.04, "no room");
    }

    /// Ten million flows with a drop each, among them a flow that is monitored already and one that
    /// becomes so: both stay, memory is what it was, and the list's end costs as much as the tables.
    #[test]
    fn a_flood_of_flows_takes_nothing_from_the_monitored() {
        let mut desk = Desk::new(&[PATIENT]);
        (0..3).for_each(|_| desk.list(&[1]));
        let state = desk.filter.state();
        let mut spoofed = 1000;
        for _ in 0..100 {
            for i in 0..100_000 {
                spoofed += 1;
                desk.signal(&[spoofed]);
                // The two heavy flows have a drop in a thousand each.
                match i % 1000 {
                    7 => desk.signal(&[1]),
                    8 => desk.signal(&[2]),
                    _ => {}
                }
            }
            desk.filter.arrived = 1_000_000;
            desk.end_list();
        }
        assert_eq!(desk.monitored(), [1, 2]);
        assert!(desk.filter.history.len() <= 2048);
        assert_eq!(desk.filter.state(), state);
    }

    /// A flow of γ·f(R, p) packets, each dropped with probability p: the share of M lists in which it
    /// is identified. Windows overlap; σ is taken as if every fifth counted: √(0.25·5/50 000) = 0.005.
    #[test]
    fn identification_meets_equation_4() {
        let desk = Desk::new(&[]);
        let mut rules = desk.filter.rules.clone();
        let mut rng = Rng::new(8, 0);
        for p in [0.01, 0.05, 0.1] {
            for gamma in [0.5, 1.0, 1.5, 2.0, 3.0] {
                let packets = gamma * 0.6 / p;
                let (mut drops, mut owed, mut identified) = (Drops::default(), 0.0, 0);
                for list in 0..50_000 {
                    rules.list = list;
                    owed += packets;
                    let sent = f64::floor(owed);
                    owed -= sent;
                    drops[rules.place(list)] =
                        (0..sent as u32).map(|_| u32::from(rng.chance(p))).sum();
                    identified += u32::from(rules.identified(&drops));
                }
                let share = f64::from(identified) / 5e4;
                let expected = equations::identification(gamma, p, 3, 5);
                assert!(
                    (share - expected).abs() < 0.02,
                    "γ {gamma} at {p}: {share} for {expected}"
                );
            }
        }
    }

    #[test]
    fn settings_that_do_not_fit_together_are_refused() {
        let refused = |settings: &[(&str, &str)]| {
            RedPd::new(&config(settings), &env(10), &mut Rng::new(1, 0)).err().map(|e| e.key)
        };
        assert_eq!(refused(&[("k", "4"), ("m", "3")]), Some("k"));
        assert_eq!(refused(&[("wanted_drop_rate", "0.01"), ("max_rtt", "39ms")]), Some("max_rtt"));
        assert_eq!(refused(&[("max_rtt", "39ms")]), None);
    }
}
