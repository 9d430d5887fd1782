//! From a scenario to its results.

use aqm::About;
use aqm::{Cause, Duration, Qdisc as _, State};
use link::columns::{Value, columns, share};
use link::stats::{FlowTally, QueueSummary};
use link::varying::bits;
use scenario::error::Complaint;
use scenario::traffic::App;
use scenario::{QueueSpec, Scenario, ScenarioError};

use crate::control::Setting;
use crate::network::{Identities, Managed, Passed};
use crate::results::delays::DelayTables;
use crate::results::jain;
use crate::results::journal::Selection;
use crate::results::one_way::{OneWay, opinion};
use crate::results::registry::{self, TableSpec};
use crate::results::table::{Column, Table};
use crate::results::transfers::Transfers;
use crate::series::{FlowSeries, GroupSeries, Named, Series, delivered_bits, packet_bits};
use crate::setup::{Flows, flows, identities, links, queue_links, stop};
use crate::simulation::Simulation;
use crate::transport::FlowReport;

/// A scenario being run.
pub struct Run {
    scenario: Scenario,
    simulation: Simulation,
    queues: Vec<Named>,
    groups: Vec<u16>,
    starts: Vec<u64>,
    before: Vec<FlowReport>,
    warmup: u64,
    end: u64,
    interval: Option<u64>,
    samples: u64,
    now: u64,
    measuring: bool,
    series: Series,
    by_group: GroupSeries,
    by_flow: FlowSeries,
}

/// Everything that a run gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One row.
    pub summary: Table,
    /// A row a managed queue, the first queue of the scenario first.
    pub queues: Table,
    /// A row a flow.
    pub flows: Table,
    /// A row a sample and managed queue.
    pub series: Table,
    /// A row a sample, managed queue and group, if groups are measured.
    pub groups: Table,
    /// A row a sample and flow, if flows are measured.
    pub flow_series: Table,
    /// A row a group and kind of delay, and managed queue where it is of one, if delays are measured.
    pub delays: Table,
    /// The same by flow.
    pub flow_delays: Table,
    /// A row a group with transfers and kind of them.
    pub transfers: Table,
    /// How long they took: a row a group, kind and length of time.
    pub completions: Table,
    /// How much longer than alone: a row a group, kind and range of sizes.
    pub slowdowns: Table,
    /// A row a group of datagrams, if calls are measured.
    pub calls: Table,
    /// A row a link that varies or impairs packets.
    pub links: Table,
    /// The scenario with all defaults.
    pub scenario: String,
    /// The hash over all decisions, sixteen hexadecimal digits.
    pub decision_hash: String,
}

impl Outcome {
    /// Every table with what is declared of it, the summary first.
    pub fn tables(&self) -> impl Iterator<Item = (&'static TableSpec, &Table)> {
        [
            (&registry::SUMMARY, &self.summary),
            (&registry::QUEUES, &self.queues),
            (&registry::FLOWS, &self.flows),
            (&registry::SERIES, &self.series),
            (&registry::GROUPS, &self.groups),
            (&registry::FLOW_SERIES, &self.flow_series),
            (&registry::DELAYS, &self.delays),
            (&registry::FLOW_DELAYS, &self.flow_delays),
            (&registry::TRANSFERS, &self.transfers),
            (&registry::COMPLETIONS, &self.completions),
            (&registry::SLOWDOWNS, &self.slowdowns),
            (&registry::CALLS, &self.calls),
            (&registry::LINKS, &self.links),
        ]
        .into_iter()
    }
}

impl Run {
    /// Sets up a checked scenario. `file` and `text` say where it came from, for errors.
    ///
    /// # Errors
    /// Parameters that do not fit together or with their buffer.
    pub fn new(scenario: Scenario, text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::build(scenario).map_err(|c| ScenarioError::from_complaint(c, text, file))
    }

    fn build(scenario: Scenario) -> Result<Self, Complaint> {
        let topology = scenario.topology()?;
        let managed = queue_links(&scenario, &topology)?;
        let (links, wires) = links(&scenario, &topology, &managed)?;
        let Flows { groups, setups, paths } = flows(&scenario, &topology, wires)?;
        let named = |(spec, &link): (&QueueSpec, &usize)| Named {
            link,
            name: topology.link_name(link),
            aqm: spec.aqm.clone(),
            parameters_set: spec.parameters_set(),
        };
        let queues: Vec<Named> = scenario.queue.iter().zip(&managed).map(named).collect();
        let (group_of, starts) = setups.iter().map(|s| (s.group, s.start)).unzip();
        let series = Series::new(&queues, &links);
        let mut simulation = Simulation::new(links, paths, groups, setups);
        for (group, spec) in scenario.traffic.iter().enumerate() {
            if let Some(setting) = Setting::of(spec, group)? {
                simulation.bring(group, &setting);
            }
        }
        let by_group = GroupSeries::new(&scenario.traffic, queues.len());
        let by_flow = FlowSeries::new(&scenario.traffic, simulation.flow_count());
        if scenario.measure.groups {
            simulation.count_groups();
        }
        if scenario.measure.delays {
            simulation.measure_delays();
        }
        let labels = scenario
            .queue
            .iter()
            .filter_map(|queue| About::of(&queue.aqm))
            .any(|about| about.labels.codepoints);
        if let Some(identities) = identities(&scenario.traffic, labels) {
            simulation.identify(&Identities::Flows(identities.into()));
        }
        Ok(Self {
            warmup: scenario.warmup.0.as_nanos(),
            interval: scenario.measure.interval.map(|i| i.0.as_nanos()),
            before: vec![FlowReport::default(); simulation.flow_count()],
            groups: group_of,
            starts,
            simulation,
            queues,
            end: scenario.duration.0.as_nanos(),
            samples: 0,
            now: 0,
            measuring: false,
            series,
            by_group,
            by_flow,
            scenario,
        })
    }

    /// Whether links are folded where that changes nothing but the count of events and the time it
    /// takes ([`crate::network`]); they are unless told otherwise. Only before the first
    /// [`Run::advance`].
    #[must_use]
    pub fn with_folding(mut self, on: bool) -> Self {
        self.simulation.set_folding(on);
        self
    }

    /// Keeps a journal of each packet that `selection` names at each managed queue; see
    /// [`Run::drain_journal`]. No decision changes. Only before the first [`Run::advance`].
    pub fn keep_journal(&mut self, selection: &Selection) {
        self.simulation.keep_journals(selection);
    }

    /// The packets of the journal that are through since it was asked last, by the queue's name: a
    /// row a packet, in the order of arrivals; after the end those that still wait, too.
    pub fn drain_journal(&mut self) -> Vec<(String, Table)> {
        let all = self.now == self.end;
        let Self { queues, simulation, .. } = self;
        let journal =
            |queue: &Named| Some((queue.name.clone(), simulation.drain_journal(queue.link, all)?));
        queues.iter().filter_map(journal).collect()
    }

    /// How much of the simulated time is done, 0 … 1.
    pub fn progress(&self) -> f64 {
        self.now as f64 / self.end as f64
    }

    /// Simulates up to `slice` more, a nanosecond at least, or to the end. True while something is left
    /// to do: who calls it until nothing is left comes to an end, also with a share of a short run that
    /// is no nanosecond.
    pub fn advance(&mut self, slice: Duration) -> bool {
        let target = self.now.saturating_add(slice.as_nanos().max(1)).min(self.end);
        while self.now < target {
            let sample = self.interval.map_or(u64::MAX, |i| (self.samples + 1).saturating_mul(i));
            let warmup = if self.measuring { u64::MAX } else { self.warmup };
            let next = target.min(sample).min(warmup);
            self.simulation.advance(next);
            self.now = next;
            if next == warmup {
                self.start_measurement();
            }
            if next == sample {
                self.samples += 1;
                self.series.sample(next, &self.queues, &self.simulation);
                if self.scenario.measure.groups {
                    self.by_group.sample(next, &self.queues, &self.groups, &self.simulation);
                }
                if self.scenario.measure.flows {
                    self.by_flow.sample(next, &self.groups, &self.simulation);
                }
            }
        }
        self.now < self.end
    }

    fn start_measurement(&mut self) {
        self.measuring = true;
        self.simulation.restart_measurement();
        if self.scenario.measure.calls {
            self.simulation.measure_one_way();
        }
        for (i, before) in self.before.iter_mut().enumerate() {
            *before = self.simulation.flow(i);
        }
    }

    /// The first queue of the scenario.
    pub fn primary(&self) -> Option<&Managed> {
        self.simulation.queue(self.queues.first()?.link)
    }

    /// The simulation, to look at.
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// Simulates to the end and gives the results.
    pub fn finish(mut self) -> Outcome {
        while self.advance(Duration::MAX) {}
        let end = self.end;
        let summaries: Vec<QueueSummary> = self
            .queues
            .iter()
            .filter_map(|m| self.simulation.queue(m.link))
            .map(|queue| queue.summary(end))
            .collect();
        let flows = self.flow_table();
        let (transfers, completions, slowdowns) = self.transfer_tables();
        let calls = self.call_table();
        let links = self.link_table();
        let (delays, flow_delays) = self.delay_tables();
        let table = self.queue_table(&summaries, &flows);
        let mut summary = Table::default();
        let measured = Duration::from_nanos(self.end - self.warmup).as_secs_f64();
        summary.push("seed", Column::Count(vec![self.scenario.seed]));
        summary.push("duration_s", Column::Real(vec![Some(end as f64 / 1e9)]));
        summary.push("measured_s", Column::Real(vec![Some(measured)]));
        summary.push("flows", Column::Count(vec![self.starts.len() as u64]));
        summary.push("events", Column::Count(vec![self.simulation.events_handled()]));
        summary.push("packets_delivered", Column::Count(vec![self.delivered()]));
        for (name, column) in table.columns() {
            summary.push(name, column.first());
        }
        Outcome {
            summary,
            queues: table,
            flows,
            series: self.series.table,
            groups: self.by_group.table,
            flow_series: self.by_flow.table,
            delays,
            flow_delays,
            transfers,
            completions,
            slowdowns,
            calls,
            links,
            scenario: self.scenario.to_toml(),
            decision_hash: self.simulation.decision_hash().to_string(),
        }
    }

    /// Departures of the primary queue in the whole run.
    fn delivered(&self) -> u64 {
        self.primary().map_or(0, |queue| queue.queue().counters().departed.packets)
    }

    /// What was measured of delays, by group and by flow.
    fn delay_tables(&self) -> (Table, Table) {
        let names = self.scenario.traffic.iter().map(|spec| spec.group.name.as_str()).collect();
        let mut tables = DelayTables::new(&self.groups, names);
        for named in &self.queues {
            if let Some(queue) = self.simulation.queue(named.link) {
                tables.add("queueing", &named.name, queue.stats().flow_delays());
            }
        }
        if let Some(ends) = self.simulation.end_to_end() {
            tables.add("one-way", "", &ends.one_way);
            tables.add("round-trip", "", &ends.round_trip);
        }
        (tables.by_group, tables.by_flow)
    }

    fn flow_table(&self) -> Table {
        let n = self.starts.len();
        let measured = Duration::from_nanos(self.end - self.warmup).as_secs_f64();
        let specs = &self.scenario.traffic;
        let spec = |i: usize| &specs[usize::from(self.groups[i])];
        let reports: Vec<FlowReport> = (0..n).map(|i| self.simulation.flow(i)).collect();
        let tallies: Vec<FlowTally> = (0..n)
            .map(|i| self.primary().map(|queue| queue.stats().flow(i)).unwrap_or_default())
            .collect();
        let goodput = |i: usize| {
            let bits = |report| delivered_bits(report, packet_bits(spec(i)));
            (bits(&reports[i]) - bits(&self.before[i])) as f64 / measured
        };
        let mut t = Table::default();
        t.push("flow", Column::Count((0..n as u64).collect()));
        t.push("group", Column::Text((0..n).map(|i| spec(i).group.name.clone()).collect()));
        t.push(
            "transport",
            Column::Text((0..n).map(|i| spec(i).group.transport.name().into()).collect()),
        );
        t.push(
            "start_s",
            Column::Real(self.starts.iter().map(|&s| Some(s as f64 / 1e9)).collect()),
        );
        t.push("goodput_bps", Column::Real((0..n).map(|i| Some(goodput(i))).collect()));
        push_tallies(&mut t, &tallies, measured);
        push_reports(&mut t, &reports, &self.before);
        t.push(
            "completed_s",
            Column::Real(
                (0..n).map(|i| self.simulation.completed(i).map(|ns| ns as f64 / 1e9)).collect(),
            ),
        );
        t
    }

    /// The transfers of each group that has some, with their kind.
    fn transfers(&self) -> Vec<(&str, &'static str, Transfers)> {
        let mut all = Vec::new();
        for (g, spec) in self.scenario.traffic.iter().enumerate() {
            if let Some([requests, pages]) = self.simulation.web(g) {
                all.push((spec.group.name.as_str(), "request", requests.clone()));
                all.push((spec.group.name.as_str(), "page", pages.clone()));
            } else if let App::Finite(_) = &spec.app {
                all.push((spec.group.name.as_str(), "flow", self.finite(g)));
            }
        }
        all
    }

    /// The transfers of a group of finite flows.
    fn finite(&self, group: usize) -> Transfers {
        let stop = stop(&self.scenario.traffic[group], self.end).min(self.end);
        let mut transfers = Transfers::default();
        for (i, &start) in self.starts.iter().enumerate() {
            if usize::from(self.groups[i]) == group && (self.warmup..stop).contains(&start) {
                transfers.begin();
                if let (Some(at), Some(packets)) =
                    (self.simulation.completed(i), self.simulation.finite(i))
                {
                    let alone = self.simulation.alone(i, packets);
                    transfers.complete(start, at, alone.map(|alone| (packets, alone)));
                }
            }
        }
        transfers
    }

    /// What the datagrams of each group met on their way.
    fn call_table(&self) -> Table {
        let mut table = registry::CALLS.empty();
        for (g, spec) in self.scenario.traffic.iter().enumerate() {
            let mine = (0..self.groups.len()).filter(|&i| usize::from(self.groups[i]) == g);
            let mut flows = mine.filter_map(|i| self.simulation.one_way(i)).peekable();
            if flows.peek().is_none() {
                continue;
            }
            let (mut all, mut ratings) = (OneWay::default(), Vec::new());
            for flow in flows {
                all.add(flow);
                ratings.extend(flow.rating());
            }
            let rating =
                (!ratings.is_empty()).then(|| ratings.iter().sum::<f64>() / ratings.len() as f64);
            let mut row = table.row();
            row.text(&spec.group.name);
            row.count(all.expected());
            row.count(all.received());
            row.real(all.loss());
            all.delays_s().into_iter().for_each(|delay| row.real(delay));
            row.real(all.jitter_s());
            row.real(rating);
            row.real(rating.map(opinion));
        }
        table
    }

    fn transfer_tables(&self) -> (Table, Table, Table) {
        let (mut table, mut completions) =
            (registry::TRANSFERS.empty(), registry::COMPLETIONS.empty());
        let mut slowdowns = registry::SLOWDOWNS.empty();
        for (group, kind, transfers) in self.transfers() {
            let summary = transfers.summary();
            let mut row = table.row();
            row.text(group);
            row.text(kind);
            row.count(summary.began);
            row.count(summary.completed);
            let values = summary.times_s.into_iter().chain(summary.slowdowns);
            values.for_each(|value| row.real(value));
            row.real(summary.per_minute());
            for (time, completed) in transfers.distribution() {
                let mut row = completions.row();
                row.text(group);
                row.text(kind);
                row.real(Some(time));
                row.count(completed);
                row.real(Some(completed as f64 / summary.began as f64));
            }
            for (sizes, values) in transfers.slowdowns_by_size() {
                let mut row = slowdowns.row();
                row.text(group);
                row.text(kind);
                sizes.into_iter().for_each(|count| row.count(count));
                values.into_iter().for_each(|value| row.real(Some(value)));
            }
        }
        (table, completions, slowdowns)
    }

    /// What the links that vary could carry in the window, and what became of packets on their wires.
    fn link_table(&self) -> Table {
        let mut t = registry::LINKS.empty();
        // It was built from the same.
        let Ok(topology) = self.scenario.topology() else { return t };
        for (link, edge) in topology.links.iter().enumerate() {
            let (rates, passed) = (&edge.sending.rates, self.simulation.passed(link));
            if rates.is_none() && passed.is_none() {
                continue;
            }
            let window = (self.end - self.warmup) as f64 / 1e9;
            let capacity = match rates {
                Some(rates) => bits(rates, self.warmup, self.end) / window,
                None => edge.rate.bits_per_second() as f64,
            };
            let mut row = t.row();
            row.text(&topology.link_name(link));
            row.real(Some(capacity));
            let count = |f: fn(&Passed) -> u64| passed.as_ref().map(|passed| f(passed) as f64);
            row.real(count(|p| p.entered));
            row.real(count(|p| p.came_out));
            row.real(count(|p| p.impaired.lost.packets));
            row.real(count(|p| p.impaired.duplicated.packets));
            row.real(count(|p| p.impaired.corrupted.packets));
            row.real(count(|p| p.impaired.reordered.packets));
        }
        t
    }

    /// Jain's index at each queue, of the goodputs of the flows that can be compared there: those that
    /// cross it and had data to send from the window's start to its end.
    fn fairness(&self, goodput: &[Option<f64>]) -> Vec<Option<f64>> {
        let greedy = |i: usize| {
            let spec = &self.scenario.traffic[usize::from(self.groups[i])];
            let throughout = self.starts[i] <= self.warmup && stop(spec, self.end) >= self.end;
            spec.always_has_data() && throughout
        };
        let greedy: Vec<usize> = (0..self.starts.len()).filter(|&i| greedy(i)).collect();
        let index = |queue: &Named| {
            let crossing = greedy.iter().filter(|&&i| self.simulation.crosses(i, queue.link));
            jain(crossing.filter_map(|&i| goodput[i]))
        };
        self.queues.iter().map(index).collect()
    }

    fn queue_table(&self, summaries: &[QueueSummary], flows: &Table) -> Table {
        let mut t = Table::default();
        let text = |f: &dyn Fn(&Named) -> String| Column::Text(self.queues.iter().map(f).collect());
        t.push("queue", text(&|m| m.name.clone()));
        t.push("aqm", text(&|m| m.aqm.clone()));
        let rows: Vec<_> = summaries.iter().map(columns).collect();
        for (i, (name, value)) in rows.first().into_iter().flatten().enumerate() {
            let values = rows.iter().map(|row| row[i].1);
            t.push(name, Column::of(values, matches!(value, Value::Count(_))));
        }
        t.push("jain", Column::Real(self.fairness(flows.real("goodput_bps"))));
        let states: Vec<State> = self
            .queues
            .iter()
            .filter_map(|m| self.simulation.queue(m.link))
            .map(|queue| queue.queue().state())
            .collect();
        let state = |f: fn(&State) -> u64| Column::Count(states.iter().map(f).collect());
        t.push("state_bytes", state(|s| s.queue));
        t.push("state_flow_bytes", state(|s| s.per_flow));
        t.push("state_flows", state(|s| s.flows));
        t.push("state_packet_bytes", state(|s| s.per_packet));
        let set = self.queues.iter().map(|m| m.parameters_set).collect();
        t.push("parameters_set", Column::Count(set));
        t
    }
}

/// What the first queue counted of each flow, with rates over `measured` seconds.
fn push_tallies(t: &mut Table, tallies: &[FlowTally], measured: f64) {
    let count = |f: &dyn Fn(&FlowTally) -> u32| {
        Column::Count(tallies.iter().map(|tally| u64::from(f(tally))).collect())
    };
    let bytes = |f: &dyn Fn(&FlowTally) -> u64| Column::Count(tallies.iter().map(f).collect());
    let real = |f: &dyn Fn(&FlowTally) -> f64| {
        Column::Real(tallies.iter().map(|tally| Some(f(tally))).collect())
    };
    t.push("throughput_bps", real(&|t| t.departed_bytes as f64 * 8.0 / measured));
    let loss = |t: &FlowTally| {
        let [dropped, arrived, departed] = [t.all_dropped(), t.arrived, t.departed].map(u64::from);
        share(dropped, arrived, departed + dropped)
    };
    t.push("loss", real(&loss));
    t.push("arrivals", count(&|t| t.arrived));
    t.push("drops", count(&|t| t.all_dropped()));
    for cause in Cause::ALL {
        t.push(&format!("drops_{}", cause.name()), count(&|t| t.dropped[cause as usize]));
    }
    t.push("marks", count(&|t| t.marked));
    t.push("arrivals_bytes", bytes(&|t| t.arrived_bytes));
    t.push("drops_bytes", bytes(&|t| t.dropped_bytes));
    t.push("drops_bps", real(&|t| t.dropped_bytes as f64 * 8.0 / measured));
}

/// What the ends of each flow did since `before`.
fn push_reports(t: &mut Table, reports: &[FlowReport], before: &[FlowReport]) {
    let since = |f: fn(&FlowReport) -> u32| {
        let both = reports.iter().zip(before);
        Column::Count(both.map(|(now, before)| u64::from(f(now) - f(before))).collect())
    };
    t.push("retransmits", since(|r| r.retransmits));
    t.push("timeouts", since(|r| r.timeouts));
    t.push("ecn_reductions", since(|r| r.ecn_reductions));
    let srtt = |r: &FlowReport| (r.srtt > 0).then(|| r.srtt as f64 / 1e9);
    t.push("srtt_s", Column::Real(reports.iter().map(srtt).collect()));
}
