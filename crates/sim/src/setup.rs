//! From what a scenario says to what is simulated: links, paths, groups, identities.

mod pairs;
mod paths;

use std::collections::{HashMap, HashSet};

use aqm::units::Size;
use aqm::{Duration, Env, Instant, Label, Rate, Rng};
use link::Impair;
use link::impair::Loss;
use scenario::error::Complaint;
use scenario::event::{self, When};
use scenario::network::{Edge, LinkSpec, Topology};
use scenario::switch::Shared;
use scenario::text::Text;
use scenario::traffic::{
    self as keys, Exponential, Finite, Offer, Pareto, Periodic, Schedule, Sizes, Spread,
    TrafficSpec, UnsentName,
};
use scenario::{QueueSpec, Scenario};

use crate::app::{App, NOTHING, Objects, Periods, Unsent};
use crate::network::{Identity, Link, Stage};
use crate::simulation::events::{Change, Waiting};
use crate::transport::{FlowSetup, Group, Seed, Transport};
use pairs::Pairs;
use paths::{Paths, Way};

/// The streams of random numbers that are made of a scenario's seed, by who draws from them.
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
    /// When the flows of a group begin that come one after another.
    Arrivals = 5,
    /// The size of a flow.
    Size = 6,
    /// The hash by which switches choose among equally short routes, and the routes of a flow's packets.
    Route = 7,
    /// The pairs of nodes of a group with a pattern.
    Pattern = 8,
    /// An algorithm that sets the rates of shapers.
    Autorate = 9,
}

fn seed_of(seed: u64, user: Stream, number: usize) -> Seed {
    Seed { run: seed, stream: (user as u64) << 56 | number as u64 }
}

fn stream(seed: u64, user: Stream, number: usize) -> Rng {
    seed_of(seed, user, number).rng()
}

/// The stream of random numbers of autorate algorithm `number`.
pub(crate) fn autorate_stream(seed: u64, number: usize) -> Rng {
    stream(seed, Stream::Autorate, number)
}

/// What queues take for the identity of each flow, if that is not its number: the k-th flows of all
/// groups of one `identity` share that of the first. They are labelled if a queue asks for that.
pub(crate) fn identities(traffic: &[TrafficSpec], labels: bool) -> Option<Vec<Identity>> {
    if !labels
        && traffic.iter().all(|spec| spec.group.identity.is_none() && spec.group.rekey.is_none())
    {
        return None;
    }
    let mut known: HashMap<(&str, u32), u32> = HashMap::new();
    let mut identities = Vec::new();
    for spec in traffic {
        let rekey = spec.group.rekey.map_or(0, |every| every.0.as_nanos());
        for k in 0..spec.group.flows * u32::from(spec.slots()) {
            let number = identities.len() as u32;
            let flow = match &spec.group.identity {
                Some(name) => *known.entry((name, k)).or_insert(number),
                None => number,
            };
            let asked = matches!(spec.app, keys::App::Web(_));
            let own = || match &spec.transport {
                keys::Transport::Trace(trace) => trace.arrivals.labels[k as usize],
                _ => Label::default(),
            };
            let label = labels.then(|| (spec.group.label(own()), asked));
            identities.push(Identity { flow, rekey, label });
        }
    }
    Some(identities)
}

/// All links, those with a queue at `managed`, of which those that share a buffer are behind a gate; behind
/// them the wires of those that impair packets, and of each link the number of its wire, if it has one.
pub(crate) fn links(
    scenario: &Scenario,
    topology: &Topology,
    managed: &[usize],
    shared: &[Shared],
) -> Result<(Vec<Link>, Vec<Option<u32>>), Complaint> {
    let traffic = &scenario.traffic;
    let flows = traffic.iter().map(|t| t.group.flows as usize * usize::from(t.slots())).sum();
    let mut specs = vec![None; topology.links.len()];
    managed.iter().zip(scenario.queue.iter().enumerate()).for_each(|(&link, spec)| {
        specs[link].get_or_insert(spec);
    });
    let gated: HashSet<usize> = shared.iter().flat_map(|shared| &shared.links).copied().collect();
    let mut links = Vec::with_capacity(specs.len());
    for (link, spec) in specs.into_iter().enumerate() {
        let spec = spec.map(|(i, spec)| Wanted { i, spec, gated: gated.contains(&link) });
        links.push(build_link(scenario, topology, link, spec, flows)?);
    }
    let (impairing, wires) = wires(topology, scenario.seed, links.len());
    links.extend(impairing);
    Ok((links, wires))
}

/// A queue that is to be built: its number in the scenario, and whether it is behind a gate.
struct Wanted<'a> {
    i: usize,
    spec: &'a QueueSpec,
    gated: bool,
}

/// The first queue counts the packets of each of `flows` flows: the table of flows has them.
fn build_link(
    scenario: &Scenario,
    topology: &Topology,
    link: usize,
    queue: Option<Wanted<'_>>,
    flows: usize,
) -> Result<Link, Complaint> {
    let edge = &topology.links[link];
    let delay = Duration::from_nanos(edge.least_delay());
    let Some(Wanted { i, spec, gated }) = queue else {
        return Ok(Link::plain(edge.rate, delay).with(&edge.sending));
    };
    let env = env(scenario, topology, link, i, spec)?;
    let mut rng = stream(scenario.seed, Stream::Queue, link);
    let queue = spec.build_over(i, &env, edge, &mut rng)?;
    let queue = if gated { queue.gated() } else { queue };
    let counted = if i == 0 { flows } else { 0 };
    Ok(Link::managed(edge.rate, delay, queue, rng, counted).with(&edge.sending))
}

/// [`env_of`] for queue number `i` of the scenario.
fn env(
    scenario: &Scenario,
    topology: &Topology,
    link: usize,
    i: usize,
    spec: &QueueSpec,
) -> Result<Env, Complaint> {
    let limit = spec
        .limit(topology, link)
        .map_err(|allowed| Complaint::new(format!("queue[{i}].buffer"), allowed))?;
    let edge = &topology.links[link];
    let first = scenario.traffic.first().and_then(|spec| spec.group.packet_bytes());
    Ok(Env {
        now: Instant::ZERO,
        limit,
        rate: edge.rate,
        mean_packet: first.unwrap_or(1000).into(),
        framing: edge.sending.framing,
    })
}

/// What the queue on `link` knows when it is built.
pub(crate) fn env_of(
    scenario: &Scenario,
    topology: &Topology,
    link: usize,
) -> Result<Env, Complaint> {
    let managed = scenario.managed(topology)?;
    let none = || Complaint::new("queue", format!("one on {}", topology.link_name(link)));
    let i = managed.iter().position(|&other| other == link).ok_or_else(none)?;
    env(scenario, topology, link, i, &scenario.queue[i])
}

/// The wires of all links that impair packets, as further links, numbered from `from` on; and of each
/// link the number of its own.
fn wires(topology: &Topology, seed: u64, from: usize) -> (Vec<Link>, Vec<Option<u32>>) {
    let mut wires = Vec::new();
    let numbers = topology.links.iter().enumerate().map(|(link, edge)| {
        edge.impairs().then(|| {
            let delay = edge.delay.as_nanos();
            let mut impair = Impair::new(&edge.impairments, delay, seed, link as u64);
            if edge.changes.is_some() {
                impair = impair.with_least(edge.least_delay(), delay);
            }
            wires.push(Link::wire(link, impair));
            (from + wires.len() - 1) as u32
        })
    });
    let numbers = numbers.collect();
    (wires, numbers)
}

/// The changes that a scenario says wait for phases. `groups` has the group of each flow.
pub(crate) fn waiting(scenario: &Scenario, topology: &Topology, groups: &[u16]) -> Vec<Waiting> {
    let mut waiting = Vec::new();
    // Each entry is a link or two of the topology.
    let of = |entry: usize| {
        let ways = |spec: &LinkSpec| 1 + usize::from(spec.duplex);
        let first = scenario.link[..entry].iter().map(ways).sum();
        first..first + ways(&scenario.link[entry])
    };
    for event in &scenario.event {
        let When { flow, enters, nth, after } = &event.when;
        let Some(group) = scenario.traffic.iter().position(|spec| spec.group.name == *flow) else {
            continue;
        };
        let Some(flow) = groups.iter().position(|of| usize::from(*of) == group) else { continue };
        let mut add = |change| {
            let (nth, after) = (u64::from(*nth), after.0.as_nanos());
            waiting.push(Waiting { flow, phase: enters.clone(), nth, after, change });
        };
        for change in &event.changes {
            match *change {
                event::Change::Rate(entry, rate) => of(entry).for_each(|link| {
                    add(Change::Rate(link, rate, topology.links[link].sending.framing));
                }),
                event::Change::Loss(entry, loss) => {
                    of(entry).for_each(|link| add(Change::Loss(link, Loss::Independent(loss))));
                }
                event::Change::Delay(entry, delay) => {
                    of(entry).for_each(|link| add(Change::Delay(link, delay.as_nanos())));
                }
                event::Change::Offer(group, offer) => {
                    let packet = scenario.traffic[group].group.packet_bytes().unwrap_or(1000);
                    add(Change::Gap(group, gap(offer, packet)));
                }
            }
        }
    }
    waiting
}

/// All traffic, ready to start.
pub(crate) struct Flows {
    pub(crate) groups: Vec<Group>,
    pub(crate) setups: Vec<FlowSetup>,
    /// The table of paths.
    pub(crate) paths: Vec<u32>,
    /// What stands between the links of paths.
    pub(crate) stages: Vec<Stage>,
}

/// The flows of all groups, over links with these `wires`, some of which share buffers.
pub(crate) fn flows(
    scenario: &Scenario,
    topology: &Topology,
    wires: Vec<Option<u32>>,
    shared: &[Shared],
) -> Result<Flows, Complaint> {
    let (seed, end) = (scenario.seed, scenario.duration.0.as_nanos());
    let mut paths = Paths::new(scenario, topology, wires, shared);
    let identities = identities(&scenario.traffic, false);
    let (mut groups, mut setups) = (Vec::new(), Vec::new());
    for (g, spec) in scenario.traffic.iter().enumerate() {
        groups.push(group(spec, end, setups.len() as u32));
        let from = topology.ends(spec.group.from.as_deref(), true, "traffic.from")?;
        let to = topology.ends(spec.group.to.as_deref(), false, "traffic.to")?;
        let pairs = Pairs::new(spec.group.pattern, from, to, stream(seed, Stream::Pattern, g));
        let packet = spec.group.packet_bytes().unwrap_or(1000);
        let mut arrivals = Arrivals::of(spec, packet, stream(seed, Stream::Arrivals, g));
        let mut highest = 0;
        setups.reserve_exact(spec.group.flows as usize * usize::from(spec.slots()));
        for k in 0..spec.group.flows {
            let number = setups.len();
            if let keys::App::Finite(Finite { sizes: Some(sizes), size, .. }) = &spec.app {
                let bytes = draw(sizes, *size, &mut stream(seed, Stream::Size, number));
                groups[g].sizes.push(packets_of(bytes, packet));
            }
            let mut rng = stream(seed, Stream::Setup, number);
            let (a, b) = pairs.of(k, &mut rng);
            let start = start(spec, k, rng.uniform()).as_nanos();
            let start = start.saturating_add(arrivals.as_mut().map_or(0, Arrivals::next));
            let app = seed_of(seed, Stream::App, number);
            for slot in number..number + usize::from(spec.slots()) {
                let flow = identities.as_ref().map_or(slot as u32, |all| all[slot].flow);
                let (out, rate) = paths.of([a, b], flow, Way::Out)?;
                let (back, _) = paths.of([b, a], flow, Way::Back)?;
                highest = highest.max(rate);
                let jitter = seed_of(seed, Stream::Jitter, slot);
                setups.push(FlowSetup { group: g as u16, out, back, start, seed: app, jitter });
            }
        }
        check_numbers(spec, g, highest, end)?;
    }
    Ok(Flows { groups, setups, paths: paths.table, stages: paths.stages })
}

/// The highest rate of each link at any time, bit/s.
fn highest_rates(scenario: &Scenario, topology: &Topology) -> Vec<u64> {
    let changes = scenario.event.iter().flat_map(|event| &event.changes);
    let changed = changes.map(|change| match change {
        event::Change::Rate(_, rate) => rate.bits_per_second(),
        _ => 0,
    });
    let changed = changed.max().unwrap_or(0);
    let highest = |edge: &Edge| match &edge.sending.rates {
        Some(rates) => rates.steps().iter().map(|step| step.1).max().unwrap_or(0),
        None => edge.rate.bits_per_second(),
    };
    let mut rates: Vec<u64> =
        topology.links.iter().map(|edge| highest(edge).max(changed)).collect();
    for shaper in scenario.autorate.iter().flat_map(|autorate| autorate.shapers()).flatten() {
        if let Ok(link) = topology.find_link(&shaper.link, "") {
            rates[link] = rates[link].max(shaper.most.0.bits_per_second());
        }
    }
    rates
}

/// Refuses group `g` if a flow of it could send more packets until `end` (ns) than have numbers, over paths
/// that never carry more than `rate` (bit/s).
fn check_numbers(spec: &TrafficSpec, g: usize, rate: u64, end: u64) -> Result<(), Complaint> {
    let rate = match (&spec.transport, &spec.app) {
        (keys::Transport::Trace(_), _) | (_, keys::App::Finite(_)) => return Ok(()),
        (keys::Transport::Cbr(cbr), _) => {
            let later = cbr.rates.iter().map(|(_, rate)| rate.0);
            later.fold(cbr.rate.0, Rate::max).bits_per_second()
        }
        _ => rate,
    };
    let packet = spec.group.packet_bytes().unwrap_or(1000);
    let time = stop(spec, end).min(end).saturating_sub(spec.group.start.0.from.as_nanos());
    let packets = u128::from(rate) * u128::from(time) / 8_000_000_000 / u128::from(packet);
    if packets < u128::from(u32::MAX) {
        return Ok(());
    }
    let problem = format!("a flow of traffic[{g}] could send {packets} packets of {packet} bytes");
    let allowed = format!("fewer than {} a flow, as packets have 32-bit numbers", u32::MAX);
    let hint = "a shorter duration, or `stop` in the group, or a larger `packet`";
    Err(Complaint::wrong("duration", problem).allowed(allowed).hint(hint))
}

/// Flows that come one after another, as a Poisson process.
struct Arrivals {
    rng: Rng,
    /// Mean time between two, ns.
    gap: u64,
    /// When the last one came, ns.
    last: u64,
}

impl Arrivals {
    fn of(spec: &TrafficSpec, packet: u16, rng: Rng) -> Option<Self> {
        let keys::App::Finite(finite) = &spec.app else { return None };
        let load = finite.load?.0.bits_per_second();
        let gap = (finite.mean(packet) * 8e9 / load as f64) as u64;
        Some(Self { rng, gap, last: 0 })
    }

    fn next(&mut self) -> u64 {
        let gap = Periods::Exponential.draw(self.gap, &mut self.rng);
        self.last = self.last.saturating_add(gap);
        self.last
    }
}

/// A size in bytes; `mean` is that of a distribution that has none of its own.
fn draw(sizes: &Spread, mean: Option<Text<Size>>, rng: &mut Rng) -> f64 {
    let mean = match mean {
        Some(Text(Size::Bytes(n))) => n as f64,
        _ => 0.0,
    };
    let u = rng.uniform();
    match *sizes {
        Spread::Named(Text(Sizes::Pareto(shape))) => {
            mean * (shape - 1.0) / shape * libm::pow(1.0 - u, -1.0 / shape)
        }
        Spread::Named(Text(Sizes::LogNormal(sigma))) => {
            // Box and Muller; the mean of exp(m + σz) is exp(m + σ²/2).
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - u));
            let z = radius * libm::cos(std::f64::consts::TAU * rng.uniform());
            mean * libm::exp(sigma * z - sigma * sigma / 2.0)
        }
        _ => at_share(sizes.points().unwrap_or(&[]), u),
    }
}

/// The size that a share `u` (0 … 1) of the flows does not exceed; that of the first point where it has
/// as large a share.
fn at_share(points: &[(f64, f64)], u: f64) -> f64 {
    let past = points.partition_point(|(_, share)| *share <= u);
    let Some(&(high, to)) = points.get(past) else { return 0.0 };
    let Some(&(low, from)) = points.get(past.wrapping_sub(1)) else { return high };
    low + (high - low) * (u - from) / (to - from)
}

/// Packets of `packet` bytes for so many bytes, at least one.
fn packets_of(bytes: f64, packet: u16) -> u32 {
    (libm::ceil(bytes / f64::from(packet)) as u32).clamp(1, MOST_PACKETS)
}

/// The most packets that a transfer may have.
const MOST_PACKETS: u32 = 0x7fff_ffff;

/// When flow `k` of a group starts, `drawn` (0 … 1) of the way from the earliest time to the latest.
fn start(spec: &TrafficSpec, k: u32, drawn: f64) -> Duration {
    let (first, last) = (spec.group.start.0.from, spec.group.start.0.to);
    let step = spec.group.step.as_ref();
    let step = step.map_or(Duration::ZERO, |s| s.every.0 * u64::from(k / s.flows));
    let traced = match &spec.transport {
        keys::Transport::Trace(trace) => trace.arrivals.starts.get(k as usize),
        _ => None,
    };
    let traced = Duration::from_nanos(traced.copied().unwrap_or(0));
    step + first + (last - first).mul_f64(drawn) + traced
}

/// What the flows of a group share; the first of them is number `first`, and the run ends at `end`
/// (ns).
fn group(spec: &TrafficSpec, end: u64, first: u32) -> Group {
    let packet = spec.group.packet_bytes().unwrap_or(1000);
    Group {
        transport: Transport::new(spec, first),
        app: app(spec, packet),
        packet,
        stop: stop(spec, end),
        first,
        sizes: Vec::new(),
    }
}

/// What is carried in data packets of `packet` bytes.
fn app(spec: &TrafficSpec, packet: u16) -> App {
    let periods =
        |periods, on: Text<Duration>, off: Text<Duration>, rate: Option<Text<Rate>>, unsent| {
            let gap = rate.map_or(0, |r| r.0.transmission(u64::from(packet)).as_nanos());
            let unsent = match unsent {
                UnsentName::Withdraw => Unsent::Withdraw,
                UnsentName::Backlog => Unsent::Backlog,
            };
            App::OnOff { periods, on: on.0.as_nanos(), off: off.0.as_nanos(), gap, unsent }
        };
    match &spec.app {
        keys::App::Infinite {} => App::Infinite,
        keys::App::Finite(finite) => App::Finite { packets: finite_packets(finite, packet) },
        keys::App::Pareto(Pareto { on, off, shape, rate, unsent }) => {
            periods(Periods::Pareto(*shape), *on, *off, *rate, *unsent)
        }
        keys::App::Exponential(Exponential { on, off, rate, unsent }) => {
            periods(Periods::Exponential, *on, *off, *rate, *unsent)
        }
        keys::App::Periodic(Periodic { on, off }) => {
            App::Periodic { on: on.0.as_nanos(), off: off.0.as_nanos() }
        }
        keys::App::Schedule(Schedule { steps }) => {
            let step = |&(at, offer): &(Text<Duration>, Text<Offer>)| {
                (at.0.as_nanos(), gap(offer.0, packet))
            };
            App::Schedule(steps.iter().map(step).collect())
        }
        keys::App::Web(web) => App::Web(Objects {
            number: web.objects,
            connections: spec.slots(),
            packets: match web.size.0 {
                Size::Packets(n) => n * 1000,
                Size::Bytes(n) => n * 1000 / u64::from(packet),
                _ => 1000,
            },
            shape: web.shape,
            think: web.off.0.as_nanos(),
            handshake: spec.transport.has_handshake(),
        }),
    }
}

/// Time between packets of `packet` bytes, ns, as in [`App::Schedule`].
pub(crate) fn gap(offer: Offer, packet: u16) -> u64 {
    match offer {
        Offer::Max => 0,
        Offer::Rate(None) => NOTHING,
        Offer::Rate(Some(rate)) => rate.transmission(u64::from(packet)).as_nanos().max(1),
    }
}

/// When a group's sending ends, ns.
pub(crate) fn stop(spec: &TrafficSpec, end: u64) -> u64 {
    spec.group.stop.map_or(end, |s| s.0.as_nanos())
}

/// Packets of `packet` bytes of each of a group's finite flows, if all have as many.
fn finite_packets(finite: &Finite, packet: u16) -> u32 {
    match finite.size {
        Some(Text(Size::Packets(n))) => n as u32,
        Some(Text(Size::Bytes(n))) => u32::try_from(n.div_ceil(packet.into())).unwrap_or(u32::MAX),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use scenario::Scenario;

    use super::*;

    /// The complaint about a flow that sends at 100 Gb/s for `duration`, with these keys of its group.
    fn refused(duration: &str, group: &str) -> Option<String> {
        let text = format!(
            r#"
            duration = "{duration}"
            [[link]]
            from = "a"
            to = "R"
            rate = "400gbit"
            delay = "1ms"
            [[link]]
            from = "R"
            to = "b"
            rate = "100gbit"
            delay = "1ms"
            [[queue]]
            link = "R->b"
            aqm = "droptail"
            buffer = "100p"
            [[traffic]]
            from = ["a"]
            to = ["b"]
            flows = 1
            packet = "1500B"
            {group}
            "#
        );
        let scenario = Scenario::from_toml(&text, "x").unwrap();
        let topology = scenario.topology().unwrap();
        let wires = vec![None; topology.links.len()];
        let complaint = flows(&scenario, &topology, wires, &[]).err()?;
        assert_eq!(complaint.key, "duration");
        Some(complaint.problem)
    }

    #[test]
    fn a_flow_of_more_packets_than_have_numbers_is_refused() {
        assert_eq!(refused("515s", "transport = \"cubic\""), None);
        let problem = refused("516s", "transport = \"cubic\"").unwrap();
        assert!(problem.contains("4300000000 packets of 1500 bytes"), "{problem}");
        assert_eq!(refused("516s", "transport = \"cubic\"\nstart = \"1s\""), None);
        assert_eq!(refused("516s", "transport = \"cubic\"\nstop = \"500s\""), None);
        let finite = "transport = \"cubic\"\napp = \"finite\"\nsize = \"1MB\"";
        assert_eq!(refused("600s", finite), None);
        assert_eq!(refused("600s", "transport = \"cbr\"\nrate = \"80gbit\""), None);
        assert!(refused("600s", "transport = \"cbr\"\nrate = \"90gbit\"").is_some());
        let later = "transport = \"cbr\"\nrate = \"1gbit\"\nrates = [[\"1s\", \"90gbit\"]]";
        assert!(refused("600s", later).is_some());
    }

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
        let identities = identities(&traffic, false).unwrap();
        let flows: Vec<u32> = identities.iter().map(|identity| identity.flow).collect();
        assert_eq!(flows, [0, 1, 2, 1, 2, 5]);
        let rekeys: Vec<u64> = identities.iter().map(|identity| identity.rekey).collect();
        assert_eq!(rekeys, [0, 0, 0, 5_000_000, 5_000_000, 5_000_000]);
        assert_eq!(super::identities(&traffic[..1], false), None);
        let labelled = super::identities(&traffic[..1], true).unwrap();
        assert_eq!(labelled[0].label, Some((aqm::Label::default(), false)));
    }
}
