//! Fabrics of data centres: hosts, and switches between which there are several equally short routes.
//!
//! Hosts come first among the nodes, and their links first among the links, each there and back. Names are
//! a letter and a number from 0: hosts `h`; in a fat-tree edge switches `e`, aggregation switches `a` and
//! core switches `c`; in a leaf-spine leaves `l` and spines `s`.

use aqm::{Duration, Rate};

use crate::error::Complaint;
use crate::network::{Delays, Ecmp, Edge, Network, Preset, Routing, Topology, check_link};
use crate::text::Text;

/// The most leaves, spines, hosts of a leaf.
const MOST: u32 = 10_000;
/// The most hosts of a leaf-spine, and links between its switches one way.
const MOST_IN_ALL: u32 = 100_000;

/// A fabric with the scenario's values, where it gives some.
struct Fabric {
    rate: Rate,
    delay: Duration,
    access_rate: Rate,
    access_delay: Duration,
    shape: Shape,
}

#[derive(Clone, Copy)]
enum Shape {
    FatTree { k: u32 },
    LeafSpine { leaves: u32, spines: u32, hosts: u32 },
}

impl Network {
    fn as_fabric(&self, preset: Preset) -> Fabric {
        let gigabits = |n: u64| Rate::from_mbit(1000 * n);
        let (rate, shape) = match preset {
            Preset::LeafSpine => {
                let shape = Shape::LeafSpine {
                    leaves: self.leaves.unwrap_or(4),
                    spines: self.spines.unwrap_or(2),
                    hosts: self.hosts.unwrap_or(8),
                };
                (gigabits(40), shape)
            }
            _ => (gigabits(10), Shape::FatTree { k: self.k.unwrap_or(4) }),
        };
        let rate_of = |given: Option<Text<Rate>>, rate| given.map_or(rate, |given| given.0);
        let delay = self.delay.map_or(Duration::from_micros(1), |given| given.0);
        let rate = rate_of(self.rate, rate);
        let access = if preset == Preset::FatTree { rate } else { gigabits(10) };
        let access_delay = match self.access_delay {
            Some(Delays::One(Text(delay))) => delay,
            _ => delay,
        };
        Fabric { rate, delay, access_rate: rate_of(self.access_rate, access), access_delay, shape }
    }

    /// Writes out what a fabric is made of.
    pub(crate) fn fill_in_fabric(&mut self, preset: Preset) {
        let Fabric { rate, delay, access_rate, access_delay, shape } = self.as_fabric(preset);
        let sized = match shape {
            Shape::FatTree { k } => Self { k: Some(k), ..Self::default() },
            Shape::LeafSpine { leaves, spines, hosts } => Self {
                leaves: Some(leaves),
                spines: Some(spines),
                hosts: Some(hosts),
                ..Self::default()
            },
        };
        *self = Self {
            preset: self.preset,
            rate: Some(Text(rate)),
            delay: Some(Text(delay)),
            access_rate: Some(Text(access_rate)),
            access_delay: Some(Delays::One(Text(access_delay))),
            ecmp: Some(self.ecmp.unwrap_or(Ecmp::Flow)),
            ..sized
        };
    }
}

impl Topology {
    /// The network of a preset that is a fabric.
    pub(crate) fn fabric(preset: Preset, network: &Network) -> Result<Self, Complaint> {
        if let Some(Delays::Each(_)) = network.access_delay {
            return Err(Complaint::new("network.access_delay", "one delay for all hosts"));
        }
        let fabric = network.as_fabric(preset);
        let Fabric { rate, delay, access_rate, access_delay, shape } = fabric;
        check_link(rate, delay, "network.rate", "network.delay")?;
        check_link(access_rate, access_delay, "network.access_rate", "network.access_delay")?;
        let plan = match shape {
            Shape::FatTree { k } => Plan::fat_tree(k)?,
            Shape::LeafSpine { leaves, spines, hosts } => Plan::leaf_spine(leaves, spines, hosts)?,
        };
        let hosts = plan.hosts.len();
        let mut links = Vec::with_capacity(2 * (hosts + plan.cables.len()));
        for (host, &switch) in plan.hosts.iter().enumerate() {
            links.extend(Edge::both_ways(host, hosts + switch, access_rate, access_delay));
        }
        for &(low, high) in &plan.cables {
            links.extend(Edge::both_ways(hosts + low, hosts + high, rate, delay));
        }
        let nodes = (0..hosts).map(|host| format!("h{host}")).chain(plan.switches).collect();
        let ports = (0..links.len()).filter(|&link| links[link].from >= hosts).collect();
        let sides = ((0..hosts).collect(), (0..hosts).collect());
        let ecmp = network.ecmp.unwrap_or(Ecmp::Flow);
        let mut whole = Self::of(nodes, links, 0, sides).routed(Routing::Hops, ecmp);
        whole.ports = ports;
        Ok(whole)
    }
}

/// Which switches there are, and what is plugged into what; switches are counted from 0.
struct Plan {
    switches: Vec<String>,
    /// The switch of each host.
    hosts: Vec<usize>,
    cables: Vec<(usize, usize)>,
}

impl Plan {
    /// Pods one after another. Aggregation switch j of each pod is linked to core switches j·k/2 up to
    /// (j + 1)·k/2 (AFLV08 §3).
    fn fat_tree(k: u32) -> Result<Self, Complaint> {
        if !(4..=32).contains(&k) || k % 2 == 1 {
            return Err(Complaint::new("network.k", "an even number, 4 … 32"));
        }
        let k = k as usize;
        let half = k / 2;
        let tier = k * half;
        let named = |letter: char, n: usize| (0..n).map(move |i| format!("{letter}{i}"));
        let switches = named('e', tier).chain(named('a', tier)).chain(named('c', half * half));
        let pairs = |pod: usize| {
            let edge_to_aggregation = (0..half).flat_map(move |edge| {
                (0..half).map(move |up| (pod * half + edge, tier + pod * half + up))
            });
            let aggregation_to_core = (0..half).flat_map(move |up| {
                (0..half).map(move |core| (tier + pod * half + up, 2 * tier + up * half + core))
            });
            edge_to_aggregation.chain(aggregation_to_core)
        };
        Ok(Self {
            switches: switches.collect(),
            hosts: (0..tier * half).map(|host| host / half).collect(),
            cables: (0..k).flat_map(pairs).collect(),
        })
    }

    fn leaf_spine(leaves: u32, spines: u32, hosts: u32) -> Result<Self, Complaint> {
        for (key, n) in [("leaves", leaves), ("spines", spines), ("hosts", hosts)] {
            if !(1..=MOST).contains(&n) {
                return Err(Complaint::new(format!("network.{key}"), format!("1 … {MOST}")));
            }
        }
        for (key, n, of) in [("hosts", hosts, "hosts"), ("spines", spines, "links up")] {
            if leaves * n > MOST_IN_ALL {
                let problem = format!("{leaves} leaves with {n} {of} each");
                return Err(Complaint::wrong(format!("network.{key}"), problem)
                    .allowed(format!("at most {MOST_IN_ALL} in all")));
            }
        }
        let [leaves, spines, hosts] = [leaves, spines, hosts].map(|n| n as usize);
        let switches =
            (0..leaves).map(|i| format!("l{i}")).chain((0..spines).map(|i| format!("s{i}")));
        let ups = |leaf: usize| (0..spines).map(move |spine| (leaf, leaves + spine));
        Ok(Self {
            switches: switches.collect(),
            hosts: (0..leaves * hosts).map(|host| host / hosts).collect(),
            cables: (0..leaves).flat_map(ups).collect(),
        })
    }
}
