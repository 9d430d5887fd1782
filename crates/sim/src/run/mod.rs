//! From a scenario to its results.

mod tables;

use aqm::tuned::Tuned;
use aqm::{AnyQdisc, Duration};
use scenario::error::Complaint;
use scenario::network::Topology;
use scenario::switch;
use scenario::{QueueSpec, Scenario, ScenarioError, TrafficSpec};

use crate::autorate::{self, Autorate};
use crate::control::{Held, Setting};
use crate::network::Pool;
use crate::network::{Identities, Managed};
use crate::packet::Packet;
use crate::parts::Parts;
use crate::parts::division::divide;
use crate::results::journal::Selection;
use crate::results::registry::{self, TableSpec};
use crate::results::table::Table;
use crate::series::{FlowSeries, GroupSeries, Named, Series};
use crate::setup::{Flows, flows, identities, links, waiting};
use crate::simulation::Simulation;
use crate::stack;
use crate::transport::FlowReport;
use crate::watch::Watch;

/// A scenario being run.
pub struct Run {
    scenario: Scenario,
    simulation: Parts,
    queues: Vec<Named>,
    groups: Vec<u16>,
    starts: Vec<u64>,
    /// What each flow had done when the measurement began, if that was after time 0.
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
    /// Of groups whose controllers are brought along.
    settings: Vec<Setting>,
    autorates: Vec<Autorate>,
    /// What their steps saw.
    steps: Table,
}

/// Everything that a run gives.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One row.
    pub summary: Table,
    /// A row a managed queue, the first queue of the scenario first.
    pub queues: Table,
    /// A row a class of a managed queue that is a tree of them.
    pub classes: Table,
    /// A row a station of a link with an access point.
    pub stations: Table,
    /// A row a flow.
    pub flows: Table,
    /// A row a sample and managed queue.
    pub series: Table,
    /// A row a sample, managed queue and group, if groups are measured.
    pub groups: Table,
    /// A row a sample and flow, if flows are measured.
    pub flow_series: Table,
    /// A row a flow and change of phase, round or loss, if congestion controls are measured.
    pub control: Table,
    /// A row for each of these and signal of a controller that is brought along.
    pub control_signals: Table,
    /// A row a group and kind of delay, and managed queue where it is of one, if delays are measured.
    pub delays: Table,
    /// A row a flow and kind of delay, and managed queue where it is of one, if delays are measured.
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
    /// A row a step and shaper of an autorate.
    pub autorate: Table,
    /// What controllers that are brought along decided out of bounds, in the whole run.
    pub held: Vec<Held>,
    /// Connections that ended before their data did: flow, when (ns), why.
    pub broken: Vec<(usize, u64, String)>,
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
            (&registry::CLASSES, &self.classes),
            (&registry::STATIONS, &self.stations),
            (&registry::FLOWS, &self.flows),
            (&registry::SERIES, &self.series),
            (&registry::GROUPS, &self.groups),
            (&registry::FLOW_SERIES, &self.flow_series),
            (&registry::CONTROL, &self.control),
            (&registry::CONTROL_SIGNALS, &self.control_signals),
            (&registry::DELAYS, &self.delays),
            (&registry::FLOW_DELAYS, &self.flow_delays),
            (&registry::TRANSFERS, &self.transfers),
            (&registry::COMPLETIONS, &self.completions),
            (&registry::SLOWDOWNS, &self.slowdowns),
            (&registry::CALLS, &self.calls),
            (&registry::LINKS, &self.links),
            (&registry::AUTORATE, &self.autorate),
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
        let Built { mut simulation, settings, queues, groups, starts, series } =
            Built::new(&scenario, &topology)?;
        let by_group = GroupSeries::new(&scenario.traffic, queues.len());
        let by_flow = FlowSeries::new(&scenario.traffic, simulation.flow_count());
        if scenario.measure.control || !scenario.event.is_empty() {
            let named = |spec: &TrafficSpec| {
                let bytes = spec.group.packet_bytes().unwrap_or(1000);
                (spec.group.name.clone(), f64::from(bytes) * 8.0)
            };
            let names = scenario.traffic.iter().map(named).collect();
            let watch = Watch::new(names, &groups, scenario.measure.control);
            simulation.watch(watch, waiting(&scenario, &topology, &groups));
        }
        let autorates = Autorate::all(&scenario, &topology, &groups, &mut simulation)?;
        if !autorates.is_empty() {
            // What is known of a packet as it enters a folded link would not hold.
            simulation.set_folding(false);
        }
        Ok(Self {
            warmup: scenario.warmup.0.as_nanos(),
            interval: scenario.measure.interval.map(|i| i.0.as_nanos()),
            before: Vec::new(),
            groups,
            starts,
            simulation: Parts::one(simulation),
            queues,
            end: scenario.duration.0.as_nanos(),
            samples: 0,
            now: 0,
            measuring: false,
            series,
            by_group,
            by_flow,
            settings,
            autorates,
            steps: autorate::rows(),
            scenario,
        })
    }

    /// On up to so many threads, as far as the network can be divided ([`crate::parts`]), or without a number on
    /// one for each processor where that is estimated to take less time. Every decision, and so
    /// every table, is the same. Only before the first [`Run::advance`].
    #[must_use]
    pub fn with_threads(mut self, threads: Option<usize>) -> Self {
        let Self { scenario, simulation, .. } = &mut self;
        // What was built once can be built again.
        let _: Result<(), Complaint> = scenario.topology().and_then(|topology| {
            let again = || Built::new(scenario, &topology).map(|built| built.simulation);
            let division = divide(scenario, &topology, simulation.whole(), threads);
            division.map_or(Ok(()), |division| simulation.divide(division, again))
        });
        self
    }

    /// Whether links are folded where that changes nothing but the count of events and the time it
    /// takes ([`crate::network`]); they are unless told otherwise. Only before the first
    /// [`Run::advance`].
    #[must_use]
    pub fn with_folding(mut self, on: bool) -> Self {
        self.simulation.whole().set_folding(on);
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

    /// The simulated time, ns.
    pub fn now(&self) -> u64 {
        self.now
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
            let step = self.autorates.iter().map(|autorate| autorate.next).min();
            let next = target.min(sample).min(warmup).min(step.unwrap_or(u64::MAX));
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
            for autorate in self.autorates.iter_mut().filter(|autorate| autorate.next == next) {
                autorate.step(next, self.simulation.whole(), &mut self.steps);
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
        if self.now > 0 {
            let flows = 0..self.simulation.flow_count();
            self.before = flows.map(|i| self.simulation.flow(i)).collect();
        }
    }

    /// The first queue of the scenario.
    pub fn primary(&self) -> Option<&Managed> {
        self.simulation.queue(self.queues.first()?.link)
    }

    /// The link of the first queue with a discipline of this name, as in files.
    pub fn link_of(&self, aqm: &str) -> Option<usize> {
        self.queues.iter().find(|queue| queue.aqm == aqm).map(|queue| queue.link)
    }

    /// The queue on a link whose parameters change. Only in a run on one thread.
    pub fn tuned_mut(&mut self, link: usize) -> Option<&mut Tuned<AnyQdisc<Packet>>> {
        self.simulation.whole().queue_mut(link)?.tuned_mut()
    }

    /// The simulation, to look at.
    pub fn simulation(&self) -> &Parts {
        &self.simulation
    }

    /// Simulates to the end and gives the results.
    pub fn finish(mut self) -> Outcome {
        while self.advance(Duration::MAX) {}
        let flows = self.flow_table();
        let queues = self.queue_table(flows.real("goodput_bps"));
        let summary = self.summary(&queues);
        let (transfers, completions, slowdowns) = self.transfer_tables();
        let (calls, links) = (self.call_table(), self.link_table());
        let (delays, flow_delays) = self.delay_tables();
        let [control, control_signals] = self.simulation.take_control();
        Outcome {
            summary,
            queues,
            classes: self.class_table(),
            stations: self.station_table(),
            flows,
            series: self.series.table,
            groups: self.by_group.table,
            flow_series: self.by_flow.table,
            control,
            control_signals,
            delays,
            flow_delays,
            transfers,
            completions,
            slowdowns,
            calls,
            links,
            autorate: self.steps,
            held: self.settings.iter().flat_map(Setting::held).collect(),
            broken: self.simulation.broken(),
            scenario: self.scenario.to_toml(),
            decision_hash: self.simulation.decision_hash().to_string(),
        }
    }
}

/// What follows from a scenario at time 0.
struct Built {
    simulation: Simulation,
    settings: Vec<Setting>,
    queues: Vec<Named>,
    /// The group of each flow.
    groups: Vec<u16>,
    /// When each flow starts, ns.
    starts: Vec<u64>,
    series: Series,
}

impl Built {
    fn new(scenario: &Scenario, topology: &Topology) -> Result<Self, Complaint> {
        let managed = scenario.managed(topology)?;
        let shared = switch::shared(&scenario.switch, topology, &managed)?;
        for (group, spec) in scenario.traffic.iter().enumerate() {
            stack::check(spec, group)?;
        }
        let (links, wires) = links(scenario, topology, &managed, &shared)?;
        let Flows { groups, setups, paths, stages } = flows(scenario, topology, wires, &shared)?;
        let named = |(spec, &link): (&QueueSpec, &usize)| Named {
            link,
            name: topology.link_name(link),
            aqm: spec.aqm.clone(),
            parameters_set: spec.parameters_set(),
        };
        let queues: Vec<Named> = scenario.queue.iter().zip(&managed).map(named).collect();
        let (group_of, starts) = setups.iter().map(|s| (s.group, s.start)).unzip();
        let queue_of = |link| scenario.queue.iter().zip(&managed).find(|(_, at)| **at == link);
        let wifi = topology.links.iter().any(|edge| edge.wifi.is_some());
        let labels = wifi || scenario.queue.iter().any(QueueSpec::asks_for_labels);
        let seen = match labels {
            true => Identities::seen(
                &paths,
                |link| queue_of(link).is_some_and(|(queue, _)| queue.wash),
                |link| queue_of(link).map_or(0, |(queue, _)| queue.hidden()),
            ),
            false => Box::default(),
        };
        let series = Series::new(&queues, &links);
        let mut simulation = Simulation::new(links, paths, groups, setups);
        if !stages.is_empty() {
            simulation.set_stages(stages, shared.into_iter().map(Pool::new).collect());
        }
        let mut settings = Vec::new();
        for (group, spec) in scenario.traffic.iter().enumerate() {
            if let Some(setting) = Setting::of(spec, group)? {
                simulation.bring(group, &setting);
                settings.push(setting);
            }
        }
        if scenario.measure.groups {
            simulation.count_groups();
        }
        if scenario.measure.delays {
            simulation.measure_delays();
        }
        if let Some(identities) = identities(&scenario.traffic, labels) {
            simulation.identify(&Identities::Flows(identities.into(), seen));
        }
        Ok(Self { simulation, settings, queues, groups: group_of, starts, series })
    }
}
