//! What decides about a flow as a list ends: who is identified, and how probabilities move (Mahajan01 §4, §5).

use super::{MOST_LISTS, Monitored, RedPdConfig, equations};
use crate::param::choice;
use crate::time::{Duration, Instant};

choice! {
    /// How flows are identified.
    pub enum Identification {
        /// By drops in at least k of the last m lists.
        MultipleList = "multiple-list",
        /// By at least k drops in the last m lists, as in one long list.
        SingleList = "single-list",
    }
}

choice! {
    /// The drop rate of the queue that increments go by.
    pub enum IncrementRate {
        /// The smoothed one.
        Smoothed = "smoothed",
        /// That of the last list, where it is less.
        Least = "least",
    }
}

choice! {
    /// Where an increment is too much, so that the probability only doubles.
    pub enum IncrementCap {
        /// It is more than the flow loses now: its probability in the filter and the smoothed drop rate
        /// of the queue. The first is at most that drop rate.
        Losses = "losses",
        /// It is more than the probability; the first is at most twice the drop rate, and a half. Where
        /// a probability would pass 1, what the filter lets through is halved.
        Probability = "probability",
    }
}

/// Drop rate of a list up to which the authors' program raises nobody.
const LEAST_LAST: f64 = 0.001;

/// What R is multiplied or divided by where it is varied.
const RTT_STEP: f64 = 1.25;

/// Drops of a flow in each of the last M lists, in packets or bytes; the place of the present one
/// goes round.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Drops {
    pub(super) by_place: [u32; MOST_LISTS],
    /// How many lists have some.
    lists: u8,
}

impl Drops {
    /// A drop in the list at a place.
    pub(super) fn add(&mut self, place: usize, weight: u32) {
        let drops = &mut self.by_place[place];
        self.lists += u8::from(*drops == 0 && weight > 0);
        *drops = drops.saturating_add(weight);
    }

    /// Those in the list at a place no longer count.
    pub(super) fn forget(&mut self, place: usize) {
        self.lists -= u8::from(core::mem::take(&mut self.by_place[place]) > 0);
    }

    /// Whether there are none.
    pub(super) fn are_none(&self) -> bool {
        self.lists == 0
    }

    /// Those in all lists.
    pub(super) fn total(&self) -> u64 {
        self.by_place.iter().map(|&n| u64::from(n)).sum()
    }
}

/// The flows that are identified, kept up with every change of a flow's drops.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Found {
    pub(super) flows: u32,
    drops: u64,
}

impl Found {
    /// As a walk through all flows finds them.
    #[cfg(test)]
    pub(super) fn by_walk<'a>(flows: impl Iterator<Item = &'a Drops>, rules: &Rules) -> Self {
        let found = flows.filter(|drops| rules.identified(drops));
        found.fold(Self::default(), |all, drops| Self {
            flows: all.flows + 1,
            drops: all.drops + drops.total(),
        })
    }

    /// Their drops on average (eq. 5).
    pub(super) fn average(self) -> f64 {
        self.drops as f64 / f64::from(self.flows)
    }

    /// Changes the drops of a flow; whether it is identified then, if it was not before, or the reverse.
    #[inline]
    pub(super) fn change(
        &mut self,
        drops: &mut Drops,
        rules: &Rules,
        change: impl FnOnce(&mut Drops),
    ) -> Option<bool> {
        let before = rules.identified(drops);
        if before {
            self.without(drops);
        }
        change(drops);
        let after = rules.identified(drops);
        if after {
            self.flows += 1;
            self.drops += drops.total();
        }
        (after != before).then_some(after)
    }

    /// A flow that was identified by these drops is there no more.
    pub(super) fn without(&mut self, drops: &Drops) {
        self.flows -= 1;
        self.drops -= drops.total();
    }
}

/// Parameters, and the state of the queue.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) c: RedPdConfig,
    /// What a drop weighs: 1, or the bytes of a mean packet.
    pub(super) unit: u64,
    /// R in seconds.
    pub(super) rtt: f64,
    /// Smoothed drop rate of the queue, [0, 1].
    pub(super) p: f64,
    /// That of the last list in which packets came.
    pub(super) last: f64,
    /// Number of the present list.
    pub(super) list: u64,
}

impl Rules {
    /// The drop rate of the list that ends.
    pub(super) fn dropped(&mut self, rate: f64) {
        self.last = rate;
        self.p += self.c.weight * (rate - self.p);
    }

    /// The drop rate that lists and the target rate go by.
    pub(super) fn floored_p(&self) -> f64 {
        self.p.max(self.c.least_drop_rate)
    }

    /// How long a list lasts.
    pub(super) fn interval(&self) -> Duration {
        let p = self.c.list_drop_rate.unwrap_or(self.floored_p());
        let interval = equations::list_interval(self.c.k, self.c.m, self.rtt, p);
        let (low, high) = if self.c.interval_bounds {
            (2.0 * self.rtt, 10.0 * self.rtt)
        } else {
            (0.0, f64::MAX)
        };
        Duration::from_secs_f64(interval.clamp(low, high))
    }

    /// Where drops of a list are counted.
    pub(super) fn place(&self, list: u64) -> usize {
        (list % u64::from(self.c.m)) as usize
    }

    /// Whether its drops in the last M lists show that a flow sends too much.
    #[inline]
    pub(super) fn identified(&self, drops: &Drops) -> bool {
        let c = &self.c;
        let at_least = |n: u32| drops.total() >= u64::from(n) * self.unit;
        let regularly = match c.identification {
            Identification::MultipleList => u32::from(drops.lists) >= c.k,
            Identification::SingleList => at_least(c.k),
        };
        regularly || c.burst.is_some_and(at_least)
    }

    /// Whether the last list lets a flow be raised, which `lost` a packet in it or not.
    fn lately(&self, lost: bool) -> bool {
        !self.c.last_list || (lost && self.last > LEAST_LAST)
    }

    /// The probability that a flow gets which is not monitored yet, if it is to be.
    pub(super) fn first(&self, drops: &Drops, average: f64) -> Option<f64> {
        let lately = self.lately(drops.by_place[self.place(self.list)] > 0);
        (lately && self.identified(drops)).then(|| self.quantum(0.0, drops, average))
    }

    /// Whether it is time to change a monitored flow's probability, `lists` after the last change.
    fn due(&self, flow: &Monitored, lists: u32, now: Instant) -> bool {
        self.list - flow.changed >= u64::from(lists)
            && now.since(flow.changed_at) >= self.c.least_pause
    }

    /// Whether a monitored flow's probability goes up.
    pub(super) fn rises(&self, flow: &Monitored, now: Instant) -> bool {
        self.lately(flow.record.lost_in_list())
            && self.due(flow, self.c.m - 1, now)
            && self.identified(&flow.drops)
    }

    /// By how much a probability goes up (eq. 5); what is too much doubles it.
    fn quantum(&self, p: f64, drops: &Drops, average: f64) -> f64 {
        let rate = match self.c.increment_rate {
            IncrementRate::Smoothed => self.p,
            IncrementRate::Least => self.p.min(self.last),
        };
        let quantum = equations::increment(drops.total() as f64, average, rate);
        let (most, doubled) = match self.c.increment_cap {
            IncrementCap::Losses if p > 0.0 => (p + self.p, p),
            IncrementCap::Losses => (self.p, self.p),
            IncrementCap::Probability if p > 0.0 => (p, p),
            IncrementCap::Probability => ((2.0 * rate).min(0.5), (2.0 * rate).min(0.5)),
        };
        if quantum > most { doubled } else { quantum }
    }

    /// Moves the probability of a monitored flow; whether it stays monitored.
    pub(super) fn move_p(
        &self,
        flow: &mut Monitored,
        rises: bool,
        average: f64,
        now: Instant,
    ) -> bool {
        let c = &self.c;
        let (factor, beta, p_d, p_min, l) = if flow.record.unresponsive {
            let (beta, p_d) = (c.unresponsive_beta, c.unresponsive_p_d);
            (c.unresponsive_increase, beta, p_d, c.unresponsive_p_min, c.unresponsive_l)
        } else {
            (1.0, c.beta, c.p_d, c.p_min, c.l)
        };
        if rises {
            let raised = flow.p + factor * self.quantum(flow.p, &flow.drops, average);
            flow.p = match c.increment_cap {
                IncrementCap::Probability if raised > 1.0 => 1.0 - (1.0 - flow.p) / (1.0 + factor),
                _ => raised.min(1.0),
            };
        } else if flow.drops.are_none() && self.due(flow, l, now) {
            flow.p = equations::decreased(flow.p, beta, p_d);
            if flow.p < p_min {
                return false;
            }
        } else {
            return true;
        }
        (flow.changed, flow.changed_at) = (self.list, now);
        true
    }

    /// Raises R while the queue drops too much, lowers it when that is over or state runs short.
    pub(super) fn vary_rtt(&mut self, room: bool) {
        let Some(wanted) = self.c.wanted_drop_rate else { return };
        if room && self.p > wanted {
            self.rtt = (self.rtt * RTT_STEP).min(self.c.max_rtt.as_secs_f64());
        } else if !room || self.p < wanted / 2.0 {
            self.rtt = (self.rtt / RTT_STEP).max(self.c.target_rtt.as_secs_f64());
        }
    }
}
