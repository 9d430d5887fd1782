//! From what a scenario says to what is simulated: links, paths, groups, identities.

use std::collections::HashMap;

use aqm::units::Size;
use aqm::{Duration, Env, Instant, Rate, Rng};
use link::Impair;
use scenario::QueueSpec;
use scenario::error::Complaint;
use scenario::network::Topology;
use scenario::text::Text;
use scenario::traffic::{
    self as keys, Exponential, Finite, Pareto, Periodic, TrafficSpec, UnsentName,
};

use crate::app::{App, Objects, Periods, Unsent};
use crate::network::{END, Identity, Link};
use crate::transport::{Group, Transport};

/// Who draws from which numbered stream of the scenario's seed.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    /// The queue of a link.
    Queue = 1,
    /// End points and start of a flow.
    Setup = 2,
    /// The application of a flow.
    App = 3,
    /// The time that a flow waits before it sends.
    Jitter = 4,
}

pub(crate) fn stream(seed: u64, user: Stream, number: usize) -> Rng {
    Rng::new(seed, (user as u64) << 56 | number as u64)
}

/// What queues take for the identity of each flow, if that is not its number: the k-th flows of all
/// groups of one `identity` share that of the first.
pub(crate) fn identities(traffic: &[TrafficSpec]) -> Option<Vec<Identity>> {
    if traffic.iter().all(|spec| spec.group.identity.is_none() && spec.group.rekey.is_none()) {
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
            identities.push(Identity { flow, rekey });
        }
    }
    Some(identities)
}

pub(crate) fn build_link(
    topology: &Topology,
    link: usize,
    spec: Option<(usize, &QueueSpec)>,
    seed: u64,
    mean_packet: u32,
    flows: usize,
) -> Result<Link, Complaint> {
    let edge = &topology.links[link];
    let delay = Duration::from_nanos(edge.impairments.delays(edge.delay.as_nanos()).0);
    let Some((i, spec)) = spec else {
        return Ok(Link::plain(edge.rate, delay).with(&edge.sending));
    };
    let limit = spec
        .limit(topology, link)
        .map_err(|allowed| Complaint::new(format!("queue[{i}].buffer"), allowed))?;
    let env = Env { now: Instant::ZERO, limit, rate: edge.rate, mean_packet };
    let mut rng = stream(seed, Stream::Queue, link);
    let queue = spec.build(i, &env, &edge.sending, &mut rng)?;
    Ok(Link::managed(edge.rate, delay, queue, rng, flows).with(&edge.sending))
}

/// The wires of all links that impair packets, as further links, numbered from `from` on; and of each
/// link the number of its own.
pub(crate) fn wires(topology: &Topology, seed: u64, from: usize) -> (Vec<Link>, Vec<Option<u32>>) {
    let mut wires = Vec::new();
    let numbers = topology.links.iter().enumerate().map(|(link, edge)| {
        edge.impairments.any().then(|| {
            let delay = edge.delay.as_nanos();
            let impair = Impair::new(&edge.impairments, delay, seed, link as u64);
            wires.push(Link::wire(link, impair));
            (from + wires.len() - 1) as u32
        })
    });
    let numbers = numbers.collect();
    (wires, numbers)
}

/// The table of paths, each pair of nodes once.
pub(crate) struct Paths<'a> {
    pub(crate) topology: &'a Topology,
    /// The number of each link's wire, if that impairs packets.
    pub(crate) wires: Vec<Option<u32>>,
    pub(crate) table: Vec<u32>,
    pub(crate) known: HashMap<(usize, usize), u32>,
}

impl Paths<'_> {
    pub(crate) fn of(&mut self, from: usize, to: usize) -> Result<u32, Complaint> {
        if let Some(&at) = self.known.get(&(from, to)) {
            return Ok(at);
        }
        let route = self
            .topology
            .route(from, to)
            .ok_or_else(|| Complaint::new("traffic", "nodes with a route between them"))?;
        let at = self.table.len() as u32;
        for link in route {
            self.table.push(link);
            self.table.extend(self.wires[link as usize]);
        }
        self.table.push(END);
        self.known.insert((from, to), at);
        Ok(at)
    }
}

/// What the flows of a group share; the first of them is number `first`, and the run ends at `end`
/// (ns).
pub(crate) fn group(spec: &TrafficSpec, end: u64, first: u32) -> Group {
    let packet = spec.group.packet_bytes().unwrap_or(1000);
    Group {
        transport: Transport::new(spec, first),
        app: app(spec, packet),
        packet,
        stop: stop(spec, end),
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
            handshake: matches!(&spec.transport, keys::Transport::Tcp(tcp) if tcp.handshake),
        }),
    }
}

/// When a group's sending ends, ns.
pub(crate) fn stop(spec: &TrafficSpec, end: u64) -> u64 {
    spec.group.stop.map_or(end, |s| s.0.as_nanos())
}

/// Packets of `packet` bytes of each of a group's finite flows.
pub(crate) fn finite_packets(finite: &Finite, packet: u16) -> u32 {
    match finite.size.0 {
        Size::Packets(n) => n as u32,
        Size::Bytes(n) => u32::try_from(n.div_ceil(packet.into())).unwrap_or(u32::MAX),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use scenario::Scenario;

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
