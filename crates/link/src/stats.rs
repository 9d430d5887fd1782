//! What is measured at a queue, beside the counters that the queue keeps itself.

use aqm::{Backlog, Cause, Counters, Tally};

use crate::histogram::{Fine, Histogram, LogLinear, Times};
use crate::memory::{fetch_ahead, room_for};

/// What one flow did at one queue since the start, in packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowTally {
    /// Bytes that arrived.
    pub arrived_bytes: u64,
    /// Bytes that departed.
    pub departed_bytes: u64,
    /// Bytes that were dropped.
    pub dropped_bytes: u64,
    /// Packets that arrived.
    pub arrived: u32,
    /// Packets that departed.
    pub departed: u32,
    /// Packets that were dropped, by cause.
    pub dropped: [u32; Cause::COUNT],
    /// Packets that were marked.
    pub marked: u32,
}

impl FlowTally {
    /// Packets dropped for any cause.
    pub fn all_dropped(&self) -> u32 {
        self.dropped.iter().sum()
    }
}

/// Weight of a group's average queue, per arriving packet (HRC §3).
const WEIGHT: f64 = 0.002;

/// What the flows of one group did at one queue since the start.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct GroupTally {
    /// What arrived.
    pub arrived: Tally,
    /// What departed.
    pub departed: Tally,
    /// What was dropped.
    pub dropped: Tally,
    /// Its queue in packets, averaged over the arrivals of all groups with weight 0.002.
    pub average: f64,
}

impl GroupTally {
    /// What is queued now.
    pub fn queued(&self) -> Tally {
        self.arrived.since(self.departed).since(self.dropped)
    }
}

/// The groups at a queue, to which of them each flow belongs, and how long each flow's departed packets had
/// been in the queue, ns. A table that the run does not need is empty.
#[derive(Clone, Default, Debug)]
struct Groups {
    of: Vec<u16>,
    tallies: Vec<GroupTally>,
    delays: Vec<Times>,
}

impl Groups {
    fn group(&mut self, flow: u32) -> Option<&mut GroupTally> {
        let group = *self.of.get(flow as usize)?;
        self.tallies.get_mut(usize::from(group))
    }

    #[inline(never)]
    fn arrival(&mut self, flow: u32, len: u32) {
        for group in &mut self.tallies {
            group.average += WEIGHT * (group.queued().packets as f64 - group.average);
        }
        if let Some(group) = self.group(flow) {
            group.arrived.count(len);
        }
    }

    #[inline(never)]
    fn departure(&mut self, flow: u32, len: u32, delay: u64) {
        if let Some(group) = self.group(flow) {
            group.departed.count(len);
        }
        if let Some(delays) = self.delays.get_mut(flow as usize) {
            delays.add(delay);
        }
    }

    /// How many there are.
    fn count(&self) -> usize {
        self.of.iter().max().map_or(0, |&last| usize::from(last) + 1)
    }
}

/// Time-weighted statistics of a queue in a window of time.
#[derive(Clone, Debug)]
pub struct QueueStats {
    /// Start of the window in ns.
    since: u64,
    /// Counters at the start of the window.
    before: Counters,
    /// Time of the last change of the backlog, and the backlog since then.
    changed: u64,
    backlog: Backlog,
    packet_ns: u128,
    byte_ns: u128,
    /// Nanoseconds at each length in packets.
    lengths: Histogram,
    /// Packets by time in the queue, in ns.
    delays: Fine,
    delay_sum: u128,
    /// Idle time since time 0, at the window's start, and when the present idle period began, if
    /// there is one.
    idle_ns: u64,
    idle_before: u64,
    idle_since: Option<u64>,
    idle_periods: u64,
    /// A row a flow; empty where flows are not counted.
    flows: Vec<FlowTally>,
    flows_before: Vec<FlowTally>,
    /// Only if the run measures groups.
    groups: Option<Box<Groups>>,
}

/// What a window of time at a queue comes to.
#[derive(Clone, Copy, Debug)]
pub struct QueueSummary {
    /// Length of the window in s.
    pub window_s: f64,
    /// Counts within the window.
    pub counts: Counters,
    /// Share of the time that the link sent nothing.
    pub idle_fraction: f64,
    /// How often the link went idle.
    pub idle_periods: u64,
    /// Time-weighted mean of the queue in packets, without the packet in transmission.
    pub mean_packets: f64,
    /// Time-weighted mean of the queue in bytes, without the packet in transmission.
    pub mean_bytes: f64,
    /// Time-weighted quantiles (0.5, 0.95, 0.99) and maximum of the queue in packets.
    pub packets: [u64; 4],
    /// Mean time in the queue of the packets that departed, in s.
    pub delay_mean_s: f64,
    /// Quantiles (0.5, 0.95, 0.99) and maximum of the same in s.
    pub delay_s: [f64; 4],
}

impl QueueStats {
    /// Statistics from time 0 of an idle link, with a row for each of `flows` flows.
    pub fn new(flows: usize) -> Self {
        let mut rows = room_for(flows);
        rows.resize(flows, FlowTally::default());
        Self {
            since: 0,
            before: Counters::default(),
            changed: 0,
            backlog: Backlog::default(),
            packet_ns: 0,
            byte_ns: 0,
            lengths: Histogram::default(),
            delays: Fine::default(),
            delay_sum: 0,
            idle_ns: 0,
            idle_before: 0,
            idle_since: Some(0),
            idle_periods: 1,
            flows: rows,
            flows_before: Vec::new(),
            groups: None,
        }
    }

    /// Takes the room for whatever is measured, so that no packet takes memory later.
    pub fn reserve(&mut self) {
        self.lengths.reserve();
        self.delays.reserve();
    }

    /// Counts by group, too; `of` gives the group of each flow. Only before the first packet.
    pub fn count_groups(&mut self, of: Vec<u16>) {
        let groups = self.groups.get_or_insert_default();
        groups.of = of;
        groups.tallies = vec![GroupTally::default(); groups.count()];
    }

    /// A row a group since the start; none if they are not counted.
    pub fn groups(&self) -> &[GroupTally] {
        self.groups.as_ref().map_or(&[], |groups| &groups.tallies)
    }

    /// Measures the delays of each of `flows` flows, too. Only before the first packet.
    pub fn measure_delays(&mut self, flows: usize) {
        self.groups.get_or_insert_default().delays = vec![Times::default(); flows];
    }

    /// How long the packets of each flow that departed in the window had been in the queue, ns; none if
    /// that is not measured.
    pub fn flow_delays(&self) -> &[Times] {
        self.groups.as_ref().map_or(&[], |groups| &groups.delays)
    }

    /// The backlog changes to `backlog` at `now`.
    #[inline]
    pub fn change(&mut self, now: u64, backlog: Backlog) {
        let ns = now - self.changed;
        if ns > 0 {
            self.packet_ns += u128::from(self.backlog.packets) * u128::from(ns);
            self.byte_ns += u128::from(self.backlog.bytes) * u128::from(ns);
            self.lengths.add(u64::from(self.backlog.packets), ns);
            self.changed = now;
        }
        self.backlog = backlog;
    }

    /// The backlog since the last change.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// A packet of `len` bytes that came at `arrived` leaves the queue at `now` (ns) for the transmitter.
    #[inline]
    pub fn departure(&mut self, now: u64, arrived: u64, flow: u32, len: u32) {
        let delay = now - arrived;
        self.delays.add(delay, 1);
        self.delay_sum += u128::from(delay);
        if let Some(row) = self.flows.get_mut(flow as usize) {
            row.departed += 1;
            row.departed_bytes += u64::from(len);
        }
        if let Some(groups) = &mut self.groups {
            groups.departure(flow, len, delay);
        }
    }

    /// A packet of the flow that `coming` names arrives soon: begins to fetch its row from memory.
    #[inline]
    pub fn expect(&self, coming: impl FnOnce() -> Option<usize>) {
        fetch_ahead(&self.flows, coming);
    }

    /// A packet of `len` bytes arrives.
    #[inline]
    pub fn arrival(&mut self, flow: u32, len: u32) {
        if let Some(row) = self.flows.get_mut(flow as usize) {
            row.arrived += 1;
            row.arrived_bytes += u64::from(len);
        }
        if let Some(groups) = &mut self.groups {
            groups.arrival(flow, len);
        }
    }

    /// A packet of `len` bytes is dropped, on arrival or later.
    pub fn drop(&mut self, flow: u32, len: u32, cause: Cause) {
        if let Some(row) = self.flows.get_mut(flow as usize) {
            row.dropped[cause as usize] += 1;
            row.dropped_bytes += u64::from(len);
        }
        if let Some(groups) = &mut self.groups
            && let Some(group) = groups.group(flow)
        {
            group.dropped.count(len);
        }
    }

    /// A packet is marked.
    pub fn mark(&mut self, flow: u32) {
        if let Some(row) = self.flows.get_mut(flow as usize) {
            row.marked += 1;
        }
    }

    /// The link has nothing to send at `now`.
    #[inline]
    pub fn idle(&mut self, now: u64) {
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
            self.idle_periods += 1;
        }
    }

    /// The link sends at `now`.
    #[inline]
    pub fn busy(&mut self, now: u64) {
        if let Some(since) = self.idle_since {
            self.idle_ns += now - since;
            self.idle_since = None;
        }
    }

    /// Whether the link sends nothing.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.idle_since.is_some()
    }

    /// Idle time from time 0 to `now`, in ns.
    pub fn idle_until(&self, now: u64) -> u64 {
        self.idle_ns + self.idle_since.map_or(0, |since| now - since)
    }

    /// Begins a new window at `now`.
    pub fn restart(&mut self, now: u64, counters: &Counters) {
        self.change(now, self.backlog);
        self.since = now;
        self.before = *counters;
        self.packet_ns = 0;
        self.byte_ns = 0;
        self.lengths.clear();
        self.delays.clear();
        self.delay_sum = 0;
        if let Some(groups) = &mut self.groups {
            groups.delays.iter_mut().for_each(Times::clear);
        }
        self.idle_before = self.idle_until(now);
        self.idle_periods = u64::from(self.idle_since.is_some());
        // From time 0 on there is nothing to take away.
        self.flows_before = if now > 0 { self.flows.clone() } else { Vec::new() };
    }

    /// What each flow did since time 0; empty where flows are not counted.
    pub fn flows(&self) -> &[FlowTally] {
        &self.flows
    }

    /// What flow `i` did since the window's start.
    pub fn flow(&self, i: usize) -> FlowTally {
        let (Some(&now), before) = (self.flows.get(i), self.flows_before.get(i)) else {
            return FlowTally::default();
        };
        let before = before.copied().unwrap_or_default();
        FlowTally {
            arrived_bytes: now.arrived_bytes - before.arrived_bytes,
            departed_bytes: now.departed_bytes - before.departed_bytes,
            dropped_bytes: now.dropped_bytes - before.dropped_bytes,
            arrived: now.arrived - before.arrived,
            departed: now.departed - before.departed,
            dropped: std::array::from_fn(|i| now.dropped[i] - before.dropped[i]),
            marked: now.marked - before.marked,
        }
    }

    /// How long packets that departed in the window had been in the queue, ns, and the sum of that.
    pub fn delays(&self) -> (&Fine, u128) {
        (&self.delays, self.delay_sum)
    }

    /// The window's summary up to `now`.
    pub fn summary(&self, now: u64, counters: &Counters) -> QueueSummary {
        let mut this = self.clone();
        this.change(now, this.backlog);
        this.summarise(now, counters)
    }

    fn summarise(&self, now: u64, counters: &Counters) -> QueueSummary {
        let ns = (now - self.since).max(1) as f64;
        let counts = Counters {
            arrived: counters.arrived.since(self.before.arrived),
            departed: counters.departed.since(self.before.departed),
            dropped: std::array::from_fn(|i| counters.dropped[i].since(self.before.dropped[i])),
            marked: std::array::from_fn(|i| counters.marked[i].since(self.before.marked[i])),
        };
        fn four<const BITS: u32>(h: &LogLinear<BITS>) -> [u64; 4] {
            [h.quantile(0.5), h.quantile(0.95), h.quantile(0.99), h.max()]
        }
        QueueSummary {
            window_s: ns / 1e9,
            counts,
            idle_fraction: (self.idle_until(now) - self.idle_before) as f64 / ns,
            idle_periods: self.idle_periods,
            mean_packets: self.packet_ns as f64 / ns,
            mean_bytes: self.byte_ns as f64 / ns,
            packets: four(&self.lengths),
            delay_mean_s: self.delay_sum as f64 / 1e9 / counts.departed.packets.max(1) as f64,
            delay_s: four(&self.delays).map(|ns| ns as f64 / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An idle period in which a window begins is the window's; one that ended before is not.
    #[test]
    fn a_window_may_begin_in_an_idle_period() {
        let (mut stats, counters) = (QueueStats::new(0), Counters::default());
        let idle = |stats: &QueueStats, now| {
            let found = stats.summary(now, &counters);
            (found.idle_fraction, found.idle_periods)
        };
        stats.restart(5, &counters);
        assert_eq!(idle(&stats, 10), (1.0, 1));
        stats.busy(10);
        stats.restart(20, &counters);
        assert_eq!(idle(&stats, 30), (0.0, 0));
    }

    /// One flow waits 10 ms and 30 ms, another not at all; what was before the window is gone.
    #[test]
    fn each_flow_has_its_own_delays() {
        const MS: u64 = 1_000_000;
        let mut stats = QueueStats::new(2);
        stats.measure_delays(2);
        stats.departure(90 * MS, 0, 0, 1000);
        stats.restart(90 * MS, &Counters::default());
        for (now, arrived, flow) in [(100, 90, 0), (110, 110, 1), (140, 110, 0)] {
            stats.departure(now * MS, arrived * MS, flow, 1000);
        }
        let [waits, none] = stats.flow_delays() else { panic!("two flows") };
        assert_eq!((none.count(), none.mean(), none.max()), (1, Some(0.0), 0));
        assert_eq!((waits.count(), waits.mean()), (2, Some(20e6)));
        assert_eq!(waits.max(), 30 * MS);
        assert!((10 * MS..11 * MS).contains(&waits.quantile(0.5)));
    }

    /// Flow 0 is group 1 and flow 1 group 0. The average moves at each arrival, of whatever group,
    /// to what that packet finds: after arrivals that find 0, 1 and 2 packets of flow 0 it is
    /// 0.002·1·0.998 + 0.002·2.
    #[test]
    fn a_group_is_averaged_at_every_arrival() {
        let mut stats = QueueStats::new(2);
        stats.count_groups(vec![1, 0]);
        for flow in [0, 0, 1] {
            stats.arrival(flow, 1000);
        }
        let average = |stats: &QueueStats| stats.groups().iter().map(|g| g.average).collect();
        let averages: Vec<f64> = average(&stats);
        assert!((averages[1] - 0.005_996).abs() < 1e-12, "{averages:?}");
        assert_eq!(averages[0], 0.0);
        stats.departure(0, 0, 0, 1000);
        stats.drop(0, 1000, Cause::Early);
        assert_eq!(stats.groups()[1].queued(), Tally::default());
        assert_eq!(stats.groups()[0].queued(), Tally { packets: 1, bytes: 1000 });
    }

    /// Two packets of 1000 bytes for 3 s, then none for 2 s, of a window of 5 s that begins at 1 s; the link
    /// sends in those 3 s. What lasts for no time is not seen.
    #[test]
    fn a_window_s_figures_by_hand() {
        const S: u64 = 1_000_000_000;
        let mut counters = Counters::default();
        let mut stats = QueueStats::new(1);
        stats.mark(0);
        stats.busy(S);
        stats.restart(S, &counters);
        stats.change(S, Backlog { packets: 100_000, bytes: 2000 });
        stats.change(S, Backlog { packets: 2, bytes: 2000 });
        (0..2).for_each(|_| stats.mark(0));
        stats.departure(2 * S, S, 0, 1000);
        stats.departure(4 * S, S, 0, 1000);
        (0..2).for_each(|_| counters.departed.count(1000));
        stats.change(4 * S, Backlog::default());
        stats.idle(4 * S);
        stats.busy(5 * S);
        stats.idle(5 * S);
        let found = stats.summary(6 * S, &counters);
        assert_eq!((found.window_s, found.idle_fraction, found.idle_periods), (5.0, 0.4, 2));
        assert_eq!((found.mean_packets, found.mean_bytes), (1.2, 1200.0));
        assert_eq!((found.packets[0], found.packets[3]), (2, 2));
        assert_eq!((found.delay_mean_s, found.delay_s[3]), (2.0, 3.0));
        assert_eq!((stats.flow(0).marked, stats.flows()[0].marked), (2, 3));
        let values = crate::columns::values(&found);
        // Its throughput and utilisation.
        let both = [3200.0, 0.6].map(crate::columns::Value::Real);
        assert!(values.windows(2).any(|each| each == both), "{values:?}");
    }
}
