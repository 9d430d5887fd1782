//! From a scenario to its results.

use std::collections::HashMap;

use aqm::units::Size;
use aqm::{Cause, Duration, Env, Instant, Qdisc, Rng, State};

use link::columns::{Value, columns};
use link::stats::{FlowTally, GroupTally, QueueSummary};
use scenario::error::Complaint;
use scenario::network::Topology;
use scenario::{
    AppName, GapsName, QueueSpec, Scenario, ScenarioError, TrafficSpec, TransportName, UnsentName,
};

use crate::app::{App, Objects, Periods, Unsent};
use crate::network::{END, Identity, Link, Managed};
use crate::results::jain;
use crate::results::table::{Column, Table};
use crate::results::transfers::Transfers;
use crate::simulation::{FlowReport, FlowSetup, Gaps, Group, Simulation, Transport};
use crate::tcp::control::Algorithm;
use crate::tcp::rtt::RtoBounds;
use crate::tcp::{Options, Variant};
use crate::tfrc;

/// Who draws from which numbered stream of the scenario's seed.
#[derive(Clone, Copy)]
enum Stream {
    /// The queue of a link.
    Queue = 1,
    /// End points and start of a flow.
    Setup = 2,
    /// The application of a flow.
    App = 3,
    /// The time that a flow waits before it sends.
    Jitter = 4,
}

fn stream(seed: u64, user: Stream, number: usize) -> Rng {
    Rng::new(seed, (user as u64) << 56 | number as u64)
}

/// A managed queue in a run.
struct Named {
    link: usize,
    name: String,
    aqm: String,
    parameters_set: u64,
}

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
    /// A row a group with transfers and kind of them.
    pub transfers: Table,
    /// How long they took: a row a group, kind and length of time.
    pub completions: Table,
    /// The scenario with all defaults.
    pub scenario: String,
    /// The hash over all decisions, sixteen hexadecimal digits.
    pub decision_hash: String,
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
        let flows =
            scenario.traffic.iter().map(|t| t.flows as usize * usize::from(t.slots())).sum();
        let mean_packet =
            scenario.traffic.first().and_then(TrafficSpec::packet_bytes).unwrap_or(1000).into();
        let mut specs: HashMap<usize, (usize, &QueueSpec)> = HashMap::new();
        let mut queues = Vec::new();
        for (i, spec) in scenario.queue.iter().enumerate() {
            let link = topology.find_link(spec.link.as_deref(), &format!("queue[{i}].link"))?;
            specs.insert(link, (i, spec));
            queues.push(Named {
                link,
                name: topology.link_name(link),
                aqm: spec.aqm.clone(),
                parameters_set: spec.parameters_set(),
            });
        }
        let links = (0..topology.links.len())
            .map(|link| {
                let seed = scenario.seed;
                build_link(&topology, link, specs.get(&link).copied(), seed, mean_packet, flows)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let end = scenario.duration.0.as_nanos();
        let mut paths = Paths { topology: &topology, table: Vec::new(), known: HashMap::new() };
        let mut groups = Vec::new();
        let mut setups = Vec::new();
        for (g, spec) in scenario.traffic.iter().enumerate() {
            groups.push(group(spec, end, setups.len() as u32));
            let from = topology.ends(spec.from.as_deref(), true, "traffic.from")?;
            let to = topology.ends(spec.to.as_deref(), false, "traffic.to")?;
            for k in 0..spec.flows {
                let number = setups.len();
                let mut rng = stream(scenario.seed, Stream::Setup, number);
                let (a, b) = (from[rng.below(from.len())], to[rng.below(to.len())]);
                let (first, last) = (spec.start.0.from, spec.start.0.to);
                let step = spec
                    .step
                    .as_ref()
                    .map_or(Duration::ZERO, |s| s.every.0 * u64::from(k / s.flows));
                let traced = spec.arrivals.as_ref().and_then(|all| all.starts.get(k as usize));
                let start = step + first + (last - first).mul_f64(rng.uniform());
                let start = start + Duration::from_nanos(traced.copied().unwrap_or(0));
                for _ in 0..spec.slots() {
                    setups.push(FlowSetup {
                        group: g as u16,
                        out: paths.of(a, b)?,
                        back: paths.of(b, a)?,
                        start: start.as_nanos(),
                        rng: stream(scenario.seed, Stream::App, number),
                        jitter: stream(scenario.seed, Stream::Jitter, setups.len()),
                    });
                }
            }
        }
        let (group_of, starts) = setups.iter().map(|s| (s.group, s.start)).unzip();
        let series = Series::new(&queues, &links);
        let mut simulation = Simulation::new(links, paths.table, groups, setups);
        let by_group = GroupSeries::new(&scenario.traffic, queues.len());
        if scenario.measure.groups {
            simulation.count_groups();
        }
        if let Some(identities) = identities(&scenario.traffic) {
            simulation.identify(&identities);
        }
        Ok(Self {
            warmup: scenario.warmup.0.as_nanos(),
            interval: scenario.measure.interval.map(|i| i.0.as_nanos()),
            before: vec![FlowReport::default(); simulation.flow_count()],
            groups: group_of,
            starts,
            simulation,
            queues,
            end,
            samples: 0,
            now: 0,
            measuring: false,
            series,
            by_group,
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

    /// How much of the simulated time is done, 0 … 1.
    pub fn progress(&self) -> f64 {
        self.now as f64 / self.end as f64
    }

    /// Simulates up to `slice` more, or to the end. True while something is left to do.
    pub fn advance(&mut self, slice: Duration) -> bool {
        let target = self.now.saturating_add(slice.as_nanos()).min(self.end);
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
            }
        }
        self.now < self.end
    }

    fn start_measurement(&mut self) {
        self.measuring = true;
        self.simulation.restart_measurement();
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
        let (transfers, completions) = self.transfer_tables();
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
            transfers,
            completions,
            scenario: self.scenario.to_toml(),
            decision_hash: self.simulation.decision_hash().to_string(),
        }
    }

    /// Packets that reached their receiver in the whole run: departures of the first managed queue.
    fn delivered(&self) -> u64 {
        self.primary().map_or(0, |queue| queue.queue().counters().departed.packets)
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
        let count = |f: &dyn Fn(usize) -> u32| -> Column {
            Column::Count((0..n).map(|i| u64::from(f(i))).collect())
        };
        let goodput = |i: usize| {
            let bits = |report| delivered_bits(report, packet_bits(spec(i)));
            (bits(&reports[i]) - bits(&self.before[i])) as f64 / measured
        };
        let mut t = Table::default();
        t.push("flow", Column::Count((0..n as u64).collect()));
        t.push("group", Column::Text((0..n).map(|i| spec(i).name.clone()).collect()));
        t.push(
            "transport",
            Column::Text((0..n).map(|i| spec(i).transport.name().into()).collect()),
        );
        t.push(
            "start_s",
            Column::Real(self.starts.iter().map(|&s| Some(s as f64 / 1e9)).collect()),
        );
        t.push("goodput_bps", Column::Real((0..n).map(|i| Some(goodput(i))).collect()));
        let bytes = |f: &dyn Fn(&FlowTally) -> u64| Column::Count(tallies.iter().map(f).collect());
        let share = |t: &FlowTally| f64::from(t.all_dropped()) / f64::from(t.arrived.max(1));
        let rate = |t: &FlowTally| t.departed_bytes as f64 * 8.0 / measured;
        t.push("throughput_bps", Column::Real(tallies.iter().map(|t| Some(rate(t))).collect()));
        t.push("loss", Column::Real(tallies.iter().map(|t| Some(share(t))).collect()));
        t.push("arrivals", count(&|i| tallies[i].arrived));
        t.push("drops", count(&|i| tallies[i].all_dropped()));
        for cause in Cause::ALL {
            let name = format!("drops_{}", cause.name());
            t.push(&name, count(&|i| tallies[i].dropped[cause as usize]));
        }
        t.push("marks", count(&|i| tallies[i].marked));
        t.push("arrivals_bytes", bytes(&|t| t.arrived_bytes));
        t.push("drops_bytes", bytes(&|t| t.dropped_bytes));
        let lost = |t: &FlowTally| t.dropped_bytes as f64 * 8.0 / measured;
        t.push("drops_bps", Column::Real(tallies.iter().map(|t| Some(lost(t))).collect()));
        t.push("retransmits", count(&|i| reports[i].retransmits - self.before[i].retransmits));
        t.push("timeouts", count(&|i| reports[i].timeouts - self.before[i].timeouts));
        t.push(
            "ecn_reductions",
            count(&|i| reports[i].ecn_reductions - self.before[i].ecn_reductions),
        );
        t.push(
            "srtt_s",
            Column::Real(
                reports.iter().map(|r| (r.srtt > 0).then(|| r.srtt as f64 / 1e9)).collect(),
            ),
        );
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
                all.push((spec.name.as_str(), "request", requests.clone()));
                all.push((spec.name.as_str(), "page", pages.clone()));
            } else if spec.app == AppName::Finite {
                all.push((spec.name.as_str(), "flow", self.finite(g)));
            }
        }
        all
    }

    /// The transfers of a group of finite flows.
    fn finite(&self, group: usize) -> Transfers {
        let spec = &self.scenario.traffic[group];
        let (packets, stop) = (finite_packets(spec), stop(spec, self.end));
        let mut transfers = Transfers::default();
        for (i, &start) in self.starts.iter().enumerate() {
            if usize::from(self.groups[i]) == group && (self.warmup..stop).contains(&start) {
                transfers.begin();
                if let Some(at) = self.simulation.completed(i) {
                    transfers.complete(start, at, self.simulation.alone(i, packets));
                }
            }
        }
        transfers
    }

    fn transfer_tables(&self) -> (Table, Table) {
        const STATISTICS: [&str; 5] = ["mean", "p50", "p95", "p99", "max"];
        let (mut table, mut completions) = (Table::default(), Table::default());
        for each in [&mut table, &mut completions] {
            each.push("group", Column::Text(Vec::new()));
            each.push("kind", Column::Text(Vec::new()));
        }
        table.push("began", Column::Count(Vec::new()));
        table.push("completed", Column::Count(Vec::new()));
        for name in STATISTICS {
            table.push(&format!("time_{name}_s"), Column::Real(Vec::new()));
        }
        for name in STATISTICS {
            table.push(&format!("slowdown_{name}"), Column::Real(Vec::new()));
        }
        completions.push("time_s", Column::Real(Vec::new()));
        completions.push("completed", Column::Count(Vec::new()));
        completions.push("share", Column::Real(Vec::new()));
        for (group, kind, transfers) in self.transfers() {
            let summary = transfers.summary();
            let mut row = table.row();
            row.text(group);
            row.text(kind);
            row.count(summary.began);
            row.count(summary.completed);
            let values = summary.times_s.into_iter().chain(summary.slowdowns);
            values.for_each(|value| row.real(value));
            for (time, completed) in transfers.distribution() {
                let mut row = completions.row();
                row.text(group);
                row.text(kind);
                row.real(Some(time));
                row.count(completed);
                row.real(Some(completed as f64 / summary.began as f64));
            }
        }
        (table, completions)
    }

    fn queue_table(&self, summaries: &[QueueSummary], flows: &Table) -> Table {
        let goodput = flows.real("goodput_bps");
        let index = jain(goodput.iter().flatten().copied());
        let mut t = Table::default();
        let text = |f: &dyn Fn(&Named) -> String| Column::Text(self.queues.iter().map(f).collect());
        t.push("queue", text(&|m| m.name.clone()));
        t.push("aqm", text(&|m| m.aqm.clone()));
        let rows: Vec<_> = summaries.iter().map(columns).collect();
        for (i, (name, value)) in rows.first().into_iter().flatten().enumerate() {
            let values = rows.iter().map(|row| row[i].1);
            t.push(name, Column::of(values, matches!(value, Value::Count(_))));
        }
        t.push("jain", Column::Real(vec![Some(index); rows.len()]));
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

/// What queues take for the identity of each flow, if that is not its number: the k-th flows of all
/// groups of one `identity` share that of the first.
fn identities(traffic: &[TrafficSpec]) -> Option<Vec<Identity>> {
    if traffic.iter().all(|spec| spec.identity.is_none() && spec.rekey.is_none()) {
        return None;
    }
    let mut known: HashMap<(&str, u32), u32> = HashMap::new();
    let mut identities = Vec::new();
    for spec in traffic {
        let rekey = spec.rekey.map_or(0, |every| every.0.as_nanos());
        for k in 0..spec.flows * u32::from(spec.slots()) {
            let number = identities.len() as u32;
            let flow = match &spec.identity {
                Some(name) => *known.entry((name, k)).or_insert(number),
                None => number,
            };
            identities.push(Identity { flow, rekey });
        }
    }
    Some(identities)
}

/// Bits of a data packet on the wire, where all have the same.
fn packet_bits(spec: &TrafficSpec) -> Option<u64> {
    let same = spec.transport != TransportName::Trace;
    spec.packet_bytes().filter(|_| same).map(|bytes| u64::from(bytes) * 8)
}

/// Bits that were delivered, in packets of so many or of different lengths.
fn delivered_bits(report: &FlowReport, packet: Option<u64>) -> u64 {
    match packet {
        Some(bits) => u64::from(report.delivered) * bits,
        None => report.delivered_bytes * 8,
    }
}

fn build_link(
    topology: &Topology,
    link: usize,
    spec: Option<(usize, &QueueSpec)>,
    seed: u64,
    mean_packet: u32,
    flows: usize,
) -> Result<Link, Complaint> {
    let edge = &topology.links[link];
    let Some((i, spec)) = spec else { return Ok(Link::plain(edge.rate, edge.delay)) };
    let limit = spec
        .limit(topology, link)
        .map_err(|allowed| Complaint::new(format!("queue[{i}].buffer"), allowed))?;
    let env = Env { now: Instant::ZERO, limit, rate: edge.rate, mean_packet };
    let mut rng = stream(seed, Stream::Queue, link);
    let queue = spec.build(i, &env, &mut rng)?;
    Ok(Link::managed(edge.rate, edge.delay, queue, rng, flows))
}

/// The table of paths, each pair of nodes once.
struct Paths<'a> {
    topology: &'a Topology,
    table: Vec<u32>,
    known: HashMap<(usize, usize), u32>,
}

impl Paths<'_> {
    fn of(&mut self, from: usize, to: usize) -> Result<u32, Complaint> {
        if let Some(&at) = self.known.get(&(from, to)) {
            return Ok(at);
        }
        let route = self
            .topology
            .route(from, to)
            .ok_or_else(|| Complaint::new("traffic", "nodes with a route between them"))?;
        let at = self.table.len() as u32;
        self.table.extend(route);
        self.table.push(END);
        self.known.insert((from, to), at);
        Ok(at)
    }
}

fn group(spec: &TrafficSpec, end: u64, first: u32) -> Group {
    let packet = spec.packet_bytes().unwrap_or(1000);
    let variant = match spec.transport {
        TransportName::Reno => Variant::Reno,
        TransportName::NewReno => Variant::NewReno,
        _ => Variant::Sack,
    };
    let control = match spec.transport {
        TransportName::Cubic => Algorithm::Cubic,
        TransportName::Dctcp => Algorithm::Dctcp,
        _ => Algorithm::Reno,
    };
    let transport = match (spec.transport, spec.rate) {
        (TransportName::Trace, _) => Transport::Trace {
            arrivals: spec.arrivals.clone().unwrap_or_default(),
            start: spec.start.0.from.as_nanos(),
            first,
            ecn: spec.ecn,
        },
        (TransportName::Cbr, Some(rate)) => {
            let gaps = match spec.gaps {
                GapsName::Constant => Gaps::Constant,
                GapsName::Uniform => Gaps::Uniform(spec.jitter),
                GapsName::Poisson => Gaps::Exponential,
            };
            let rates = spec.rates.iter().map(|(at, r)| (at.0.as_nanos(), r.0.bits_per_second()));
            let rates = [(0, rate.0.bits_per_second())].into_iter().chain(rates).collect();
            Transport::Cbr { rates, gaps, ecn: spec.ecn }
        }
        (TransportName::Tfrc, _) => Transport::Tfrc(tfrc::Options {
            ecn: spec.ecn,
            discounting: spec.discounting,
            timeout: spec.equation_timeout.as_ref().map(|t| t.0.as_nanos()),
        }),
        _ => Transport::Tcp(Options {
            variant,
            control,
            initial_window: f64::from(spec.initial_window),
            window: spec.window_packets().unwrap_or(u32::from(u16::MAX)),
            rto: RtoBounds {
                initial: spec.initial_rto.0.as_nanos(),
                min: spec.min_rto.0.as_nanos(),
                max: spec.max_rto.0.as_nanos(),
                granularity: spec.rto_granularity.0.as_nanos(),
            },
            limited_transmit: spec.limited_transmit,
            whole_packets: spec.whole_packets,
            restart_after_idle: spec.restart_after_idle,
            delayed_ack: spec.delayed_ack.0.as_nanos(),
            handshake: spec.handshake && spec.app != AppName::Web,
            ecn: spec.ecn,
            ecn_on_retransmit: spec.ecn_on_retransmit,
            ecn_timeout: spec.ecn_timeout,
            least_window: f64::from(spec.min_window),
            forget_rtt: spec.forget_rtt,
        }),
    };
    let periods = |periods| App::OnOff {
        periods,
        on: spec.on.map_or(1, |d| d.0.as_nanos()),
        off: spec.off.map_or(1, |d| d.0.as_nanos()),
        gap: spec.rate.map_or(0, |r| r.0.transmission(u64::from(packet)).as_nanos()),
        unsent: match spec.unsent {
            UnsentName::Withdraw => Unsent::Withdraw,
            UnsentName::Backlog => Unsent::Backlog,
        },
    };
    let app = match spec.app {
        AppName::Infinite => App::Infinite,
        AppName::Finite => App::Finite { packets: finite_packets(spec) },
        AppName::Web => App::Web(Objects {
            number: spec.objects.unwrap_or(1),
            connections: spec.slots(),
            packets: match spec.size.map(|s| s.0) {
                Some(Size::Packets(n)) => n * 1000,
                Some(Size::Bytes(n)) => n * 1000 / u64::from(packet),
                _ => 1000,
            },
            shape: spec.shape,
            think: spec.off.map_or(1, |d| d.0.as_nanos()),
            handshake: spec.handshake,
        }),
        AppName::Pareto => periods(Periods::Pareto(spec.shape.unwrap_or(1.5))),
        AppName::Exponential => periods(Periods::Exponential),
        AppName::Periodic => App::Periodic {
            on: spec.on.map_or(1, |d| d.0.as_nanos()),
            off: spec.off.map_or(1, |d| d.0.as_nanos()),
        },
    };
    Group {
        transport,
        app,
        packet,
        stop: stop(spec, end),
        send_jitter: spec.send_jitter.0.as_nanos(),
    }
}

/// When a group's sending ends, ns.
fn stop(spec: &TrafficSpec, end: u64) -> u64 {
    spec.stop.map_or(end, |s| s.0.as_nanos())
}

/// Packets of each of a group's finite flows.
fn finite_packets(spec: &TrafficSpec) -> u32 {
    let packet = u64::from(spec.packet_bytes().unwrap_or(1000));
    match spec.size.map(|s| s.0) {
        Some(Size::Packets(n)) => n as u32,
        Some(Size::Bytes(n)) => u32::try_from(n.div_ceil(packet)).unwrap_or(u32::MAX),
        _ => 1,
    }
}

/// The sampled series of all managed queues.
struct Series {
    table: Table,
    signals: Vec<&'static str>,
    last: Vec<Last>,
}

/// A queue's totals at its last sample.
#[derive(Clone, Copy, Default)]
struct Last {
    arrived: u64,
    departed: u64,
    dropped: u64,
    marked: u64,
    idle: u64,
}

impl Series {
    fn new(queues: &[Named], links: &[Link]) -> Self {
        let mut signals: Vec<&'static str> = Vec::new();
        for m in queues {
            let Some(managed) = links[m.link].as_managed() else { continue };
            managed.queue().observe(Instant::ZERO, &mut |name, _| {
                if !signals.contains(&name) {
                    signals.push(name);
                }
            });
        }
        let mut table = Table::default();
        table.push("time_s", Column::Real(Vec::new()));
        table.push("queue", Column::Text(Vec::new()));
        for name in ["backlog_packets", "backlog_bytes", "arrivals", "departures", "drops", "marks"]
        {
            table.push(name, Column::Count(Vec::new()));
        }
        table.push("idle_s", Column::Real(Vec::new()));
        for name in &signals {
            table.push(name, Column::Real(Vec::new()));
        }
        Self { table, signals, last: vec![Last::default(); queues.len()] }
    }

    fn sample(&mut self, now: u64, queues: &[Named], simulation: &Simulation) {
        for (m, last) in queues.iter().zip(&mut self.last) {
            let Some(link) = simulation.queue(m.link) else { continue };
            let (backlog, counters) = (link.queue().backlog(), link.queue().counters());
            let next = Last {
                arrived: counters.arrived.packets,
                departed: counters.departed.packets,
                dropped: counters.all_dropped().packets,
                marked: counters.all_marked().packets,
                idle: link.idle(now),
            };
            let mut signals = vec![None; self.signals.len()];
            link.queue().observe(Instant::from_nanos(now), &mut |name, value| {
                if let Some(i) = self.signals.iter().position(|s| *s == name) {
                    signals[i] = Some(value);
                }
            });
            let mut row = self.table.row();
            row.real(Some(now as f64 / 1e9));
            row.text(&m.name);
            row.count(u64::from(backlog.packets));
            row.count(backlog.bytes);
            row.count(next.arrived - last.arrived);
            row.count(next.departed - last.departed);
            row.count(next.dropped - last.dropped);
            row.count(next.marked - last.marked);
            row.real(Some((next.idle - last.idle) as f64 / 1e9));
            signals.into_iter().for_each(|s| row.real(s));
            *last = next;
        }
    }
}

/// The sampled series of all groups at all managed queues.
struct GroupSeries {
    table: Table,
    /// Name of each group and bits of its packets.
    groups: Vec<(String, Option<u64>)>,
    /// Totals at the last sample, by queue and group.
    last: Vec<Vec<GroupTally>>,
    /// Bits delivered until the last sample, by group.
    delivered: Vec<u64>,
    /// When that was, ns.
    at: u64,
}

impl GroupSeries {
    fn new(traffic: &[TrafficSpec], queues: usize) -> Self {
        let mut table = Table::default();
        table.push("time_s", Column::Real(Vec::new()));
        table.push("queue", Column::Text(Vec::new()));
        table.push("group", Column::Text(Vec::new()));
        table.push("backlog_packets", Column::Count(Vec::new()));
        table.push("backlog_bytes", Column::Count(Vec::new()));
        table.push("average_packets", Column::Real(Vec::new()));
        for name in ["arrivals", "departures", "drops", "drops_bytes"] {
            table.push(name, Column::Count(Vec::new()));
        }
        table.push("throughput_bps", Column::Real(Vec::new()));
        table.push("goodput_bps", Column::Real(Vec::new()));
        Self {
            table,
            groups: traffic.iter().map(|spec| (spec.name.clone(), packet_bits(spec))).collect(),
            last: vec![vec![GroupTally::default(); traffic.len()]; queues],
            delivered: vec![0; traffic.len()],
            at: 0,
        }
    }

    /// `of` gives the group of each flow.
    fn sample(&mut self, now: u64, queues: &[Named], of: &[u16], simulation: &Simulation) {
        let seconds = (now - std::mem::replace(&mut self.at, now)) as f64 / 1e9;
        let mut delivered = vec![0; self.groups.len()];
        for (i, &group) in of.iter().enumerate() {
            let group = usize::from(group);
            delivered[group] += delivered_bits(&simulation.flow(i), self.groups[group].1);
        }
        for (m, last) in queues.iter().zip(&mut self.last) {
            let Some(link) = simulation.queue(m.link) else { continue };
            for (g, (tally, last)) in link.stats().groups().iter().zip(last).enumerate() {
                let (name, _) = &self.groups[g];
                let queued = tally.queued();
                let (departed, dropped) =
                    (tally.departed.since(last.departed), tally.dropped.since(last.dropped));
                let mut row = self.table.row();
                row.real(Some(now as f64 / 1e9));
                row.text(&m.name);
                row.text(name);
                row.count(queued.packets);
                row.count(queued.bytes);
                row.real(Some(tally.average));
                row.count(tally.arrived.since(last.arrived).packets);
                row.count(departed.packets);
                row.count(dropped.packets);
                row.count(dropped.bytes);
                row.real(Some(departed.bytes as f64 * 8.0 / seconds));
                row.real(Some((delivered[g] - self.delivered[g]) as f64 / seconds));
                *last = *tally;
            }
        }
        self.delivered = delivered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_one_identity_are_the_same_flows_to_queues() {
        let text = r#"
            duration = "1s"
            network = { preset = "dumbbell" }
            queue = [{ aqm = "droptail", buffer = "10p" }]
            traffic = [
                { transport = "sack" },
                { transport = "sack", flows = 2, identity = "x" },
                { transport = "sack", flows = 3, identity = "x", rekey = "5ms" },
            ]
        "#;
        let traffic = Scenario::from_toml(text, "x").map(|scenario| scenario.traffic).unwrap();
        let identities = identities(&traffic).unwrap();
        let flows: Vec<u32> = identities.iter().map(|identity| identity.flow).collect();
        assert_eq!(flows, [0, 1, 2, 1, 2, 5]);
        let rekeys: Vec<u64> = identities.iter().map(|identity| identity.rekey).collect();
        assert_eq!(rekeys, [0, 0, 0, 5_000_000, 5_000_000, 5_000_000]);
        assert_eq!(super::identities(&traffic[..1]), None);
    }
}
