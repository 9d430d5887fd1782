//! Which part of a run has which nodes.
//!
//! Links that may be cut have a delay that never changes, impair nothing, and lead to no link that merges
//! them with others ([`crate::network`]).
//! All nodes that other links join stay together, and those that links join which are shorter than the
//! lookahead. Of the lookaheads there are, the longest is taken that leaves no part with much more work than
//! its share. How much work a node has is estimated from its flows: each sends at the least fair share of
//! the links on its way.

use std::collections::VecDeque;
use std::thread::available_parallelism;

use link::NEVER;
use scenario::network::{Edge, Topology};
use scenario::traffic::App;
use scenario::{Scenario, own};

use crate::network::Part;
use crate::simulation::Simulation;

/// By how much of its share a part may have more work, for a longer lookahead.
const UNEVEN: f64 = 0.15;
/// The largest part has at most this share of the work, or there is only one.
const LARGEST: f64 = 0.8;
/// The most parts there are.
const MOST_PARTS: usize = 64;
/// So many packets are forwarded by each part in a lookahead, and by all in the run, where parts pay
/// (docs/fabrics.md).
const WINDOW_PAYS: f64 = 100.0;
const RUN_PAYS: f64 = 1e6;
/// Threads that end and begin again take so many windows' time: they do at each sample.
const SAMPLE_WINDOWS: u64 = 10;
/// The mean length of packets, where it is estimated, bits.
const PACKET_BITS: f64 = 8000.0;
/// The shortest lookahead, ns: below it parts wait for each other more than they work.
const LEAST_LOOKAHEAD: u64 = 1000;

/// What belongs to which part.
#[derive(Clone, Default, Debug)]
pub(crate) struct Division {
    pub(crate) parts: usize,
    /// Of each link, and behind them each wire that impairs: the part of the node that sends over it, and of
    /// the one that it leads to.
    pub(crate) links: Vec<[Part; 2]>,
    /// Of each flow: the part of its source, and of its destination.
    pub(crate) flows: Vec<[Part; 2]>,
    /// What is sent to another part comes there after this time at the earliest, ns.
    pub(crate) lookahead: u64,
}

impl Division {
    /// Makes a whole simulation at time 0 part `own`.
    pub(super) fn give(&self, own: usize, simulation: &mut Simulation) {
        let sources = self.flows.iter().map(|ends| ends[0]);
        simulation.keep(own as Part, self.parts, &self.links, sources);
    }
}

/// Whether everything in a scenario keeps to one node, or one end of a flow.
fn is_divisible(scenario: &Scenario, simulation: &Simulation) -> bool {
    scenario.autorate.is_empty()
        && scenario.event.is_empty()
        && !scenario.measure.control
        && !scenario.measure.calls
        && scenario.queue.iter().all(|queue| own::parts(&queue.aqm).is_none())
        && scenario.traffic.iter().all(|spec| !matches!(spec.app, App::Web(_)))
        && simulation.ends_are_apart()
}

/// Up to `parts` parts of a simulation of `scenario`, or where that takes less time as many as there are
/// processors; `None` if it is better left whole.
pub(crate) fn divide(
    scenario: &Scenario,
    topology: &Topology,
    simulation: &Simulation,
    parts: Option<usize>,
) -> Option<Division> {
    let processors = || available_parallelism().map_or(1, usize::from);
    let (has_to_pay, parts) = (parts.is_none(), parts.unwrap_or_else(processors).min(MOST_PARTS));
    if parts < 2 || !is_divisible(scenario, simulation) {
        return None;
    }
    let uses = simulation.use_of_links();
    let has_queue = |&link: &usize| uses[link][0] && simulation.queue(link).is_some();
    let queues: Vec<usize> = (0..topology.links.len()).filter(has_queue).collect();
    if queues.len() < 2 {
        return None;
    }
    let work = work_of_nodes(topology, simulation);
    // The lookahead up to which a link may be cut, ns.
    let longest = |(link, edge): (usize, &Edge)| match edge {
        _ if !uses[link][0] => NEVER,
        edge if edge.impairs() || uses[link][1] => 0,
        edge => edge.delay.as_nanos(),
    };
    let delays: Vec<u64> = topology.links.iter().enumerate().map(longest).collect();
    let allowed = |delay: &u64| (LEAST_LOOKAHEAD..NEVER).contains(delay);
    let mut lookaheads: Vec<u64> = delays.iter().copied().filter(allowed).collect();
    lookaheads.sort_unstable_by(|a, b| b.cmp(a));
    lookaheads.dedup();
    let share = 1.0 / parts as f64;
    let mut best: Option<(f64, u64, Vec<Part>)> = None;
    for lookahead in lookaheads {
        let of_nodes = spread(topology, &delays, lookahead, &work, parts);
        let mut loads = vec![0.0; parts];
        of_nodes.iter().zip(&work).for_each(|(&part, work)| loads[usize::from(part)] += work);
        let largest = loads.into_iter().fold(0.0, f64::max) / work.iter().sum::<f64>();
        if best.as_ref().is_none_or(|best| largest < best.0 * (1.0 - UNEVEN)) {
            best = Some((largest, lookahead, of_nodes));
        }
        if largest <= share * (1.0 + UNEVEN) {
            break;
        }
    }
    let (_, _, of_nodes) = best.filter(|best| best.0 <= LARGEST)?;
    let ends = |link: usize| {
        let edge = &topology.links[link];
        [edge.from, edge.to].map(|node| of_nodes[node])
    };
    let mut links: Vec<_> = (0..delays.len()).map(ends).collect();
    links.extend(simulation.wires(delays.len()).map(ends));
    // Queues have nearly all to do where other links are folded.
    if queues.iter().all(|&link| links[link][0] == links[queues[0]][0]) {
        return None;
    }
    let of_flow = |i: usize| {
        let [mut out, mut back] = simulation.ways(i);
        let at = |link: Option<usize>| link.map_or(0, |link| ends(link)[0]);
        [at(out.next()), at(back.next())]
    };
    let flows = (0..simulation.flow_count()).map(of_flow).collect();
    let crossed = links.iter().zip(&delays).filter(|([from, to], _)| from != to);
    let lookahead = crossed.map(|(_, delay)| *delay).min().filter(|delay| *delay < NEVER)?;
    let rate = work.iter().sum::<f64>() / PACKET_BITS;
    let divides = !has_to_pay || pays(scenario, rate, lookahead, parts);
    divides.then_some(Division { parts, links, flows, lookahead })
}

/// Whether parts take less time than one, if `rate` packets are forwarded in a second.
fn pays(scenario: &Scenario, rate: f64, lookahead: u64, parts: usize) -> bool {
    let sampled = scenario.measure.interval.map_or(NEVER, |interval| interval.0.as_nanos());
    let window = lookahead.min(sampled / SAMPLE_WINDOWS);
    let packets = |time: u64| rate * time as f64 / 1e9;
    packets(window) / parts as f64 >= WINDOW_PAYS
        && packets(scenario.duration.0.as_nanos()) >= RUN_PAYS
}

/// How much each node has to do, as bit/s that it forwards.
fn work_of_nodes(topology: &Topology, simulation: &Simulation) -> Vec<f64> {
    let links = &topology.links;
    let real = |link: &usize| *link < links.len();
    let mut flows = vec![0_u32; links.len()];
    let ways = |i| simulation.ways(i).map(|way| way.filter(real).collect::<Vec<_>>());
    let all: Vec<_> = (0..simulation.flow_count()).map(ways).collect();
    all.iter().flatten().flatten().for_each(|&link| flows[link] += 1);
    let share = |&link: &usize| {
        let fixed = links[link].rate.bits_per_second();
        let rate = links[link].sending.rates.as_ref().map_or(fixed, |rates| rates.steps()[0].1);
        rate as f64 / f64::from(flows[link])
    };
    let mut nodes =
        vec![0.0; links.iter().map(|edge| edge.from.max(edge.to) + 1).max().unwrap_or(0)];
    for [out, back] in &all {
        let rate = out.iter().map(share).fold(f64::INFINITY, f64::min);
        for &link in out.iter().chain(back) {
            nodes[links[link].from] += rate;
        }
        let ends = [out.last(), back.last()].into_iter().flatten();
        ends.for_each(|&link| nodes[links[link].to] += rate);
    }
    nodes
}

/// The part of each node, if links of at least `lookahead` (ns) may be cut.
fn spread(
    topology: &Topology,
    delays: &[u64],
    lookahead: u64,
    work: &[f64],
    parts: usize,
) -> Vec<Part> {
    let count = work.len();
    // Whom each node stays with: the first of them.
    let mut with: Vec<usize> = (0..count).collect();
    fn first(with: &mut [usize], mut node: usize) -> usize {
        while with[node] != node {
            with[node] = with[with[node]];
            node = with[node];
        }
        node
    }
    let mut neighbours = vec![Vec::new(); count];
    for (edge, &delay) in topology.links.iter().zip(delays) {
        if delay < lookahead {
            let [a, b] = [edge.from, edge.to].map(|node| first(&mut with, node));
            with[a.max(b)] = a.min(b);
        }
    }
    for edge in &topology.links {
        let [a, b] = [edge.from, edge.to].map(|node| first(&mut with, node));
        if a != b {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
    }
    let mut loads = vec![0.0; count];
    for node in 0..count {
        loads[first(&mut with, node)] += work[node];
    }
    // Along the network from one of its ends, so that few links are cut.
    let order = |from: usize| {
        let mut seen = vec![false; count];
        let mut order = Vec::new();
        for start in (from..count).chain(0..from) {
            let mut next = VecDeque::from([start]);
            while let Some(node) = next.pop_front() {
                if with[node] == node && !std::mem::replace(&mut seen[node], true) {
                    order.push(node);
                    next.extend(&neighbours[node]);
                }
            }
        }
        order
    };
    let reached = order(0);
    let order = order(reached.last().copied().unwrap_or(0));
    let (total, mut before) = (loads.iter().sum::<f64>(), 0.0);
    let mut of = vec![0; count];
    for node in order {
        let middle = before + loads[node] / 2.0;
        before += loads[node];
        of[node] = ((middle / total * parts as f64) as usize).min(parts - 1) as Part;
    }
    (0..count).map(|node| of[first(&mut with, node)]).collect()
}
