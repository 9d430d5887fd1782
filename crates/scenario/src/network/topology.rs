//! Nodes and links of a network: made of a preset or of links of one's own, found by name.

use std::collections::{HashMap, HashSet};

use aqm::{Duration, Rate};
use link::{Impairments, Sending};

use super::{Delays, DocsisSpec, Ecmp, LinkSpec, Network, Preset, Routing, Whole, WifiSpec};
use crate::error::{Complaint, did_you_mean};
use crate::limits::{LONGEST, RATES};

/// One direction of a connection between two nodes.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The node that sends.
    pub from: usize,
    /// The node that receives.
    pub to: usize,
    /// Rate, if it does not vary.
    pub rate: Rate,
    /// Propagation delay, if it does not vary.
    pub delay: Duration,
    /// How it sends beside that.
    pub sending: Sending,
    /// The access point that sends, if one does.
    pub wifi: Option<Box<WifiSpec>>,
    /// The cable modem that sends, if one does.
    pub docsis: Option<Box<DocsisSpec>>,
    /// What its wire does to packets.
    pub impairments: Impairments,
    /// The least delay that events give it, if they change its wire.
    pub changes: Option<Duration>,
}

impl Edge {
    /// A plain link there and one back.
    pub(crate) fn both_ways(a: usize, b: usize, rate: Rate, delay: Duration) -> [Self; 2] {
        [(a, b), (b, a)].map(|(from, to)| {
            let (sending, impairments) = (Sending::default(), Impairments::default());
            let (wifi, docsis) = (None, None);
            Self { from, to, rate, delay, sending, wifi, docsis, impairments, changes: None }
        })
    }

    /// Whether its wire does anything but delay, or will.
    pub fn impairs(&self) -> bool {
        self.impairments.any() || self.changes.is_some()
    }

    /// The key of what says how long packets take, in place of a transmitter.
    pub(crate) fn medium(&self) -> Option<&'static str> {
        let wifi = self.wifi.as_ref().map(|_| "wifi");
        self.docsis.as_ref().map(|_| "docsis").or(wifi)
    }

    /// The least delay that it has at any time, ns.
    pub fn least_delay(&self) -> u64 {
        let least = self.impairments.delays(self.delay.as_nanos()).0;
        self.changes.map_or(least, |changed| least.min(changed.as_nanos()))
    }
}

/// Nodes, links, and which of them are the sides and the bottlenecks of a preset.
#[derive(Clone, Debug)]
pub struct Topology {
    nodes: Vec<String>,
    /// The number of each node.
    numbers: HashMap<String, usize>,
    /// Those of a preset's bottlenecks come first, each there and back.
    pub links: Vec<Edge>,
    /// How many bottlenecks a preset has.
    pub bottlenecks: usize,
    /// The links of a queue that names none: the bottlenecks of a preset, the ports of all switches of a
    /// fabric.
    pub(crate) ports: Vec<usize>,
    /// Which route is the shortest.
    pub routing: Routing,
    /// How traffic is spread over equally short routes.
    pub ecmp: Ecmp,
    left: Vec<usize>,
    right: Vec<usize>,
    /// The links out of each node and into each node, in the order of the links.
    pub(crate) out: Vec<Vec<usize>>,
    pub(crate) into: Vec<Vec<usize>>,
    /// Whether each link has one back: what can be reached can answer.
    symmetric: bool,
}

/// As many as a side may have, or all bottlenecks together, and as many bottlenecks.
const MAX_NODES: u32 = 10_000;

/// The name of router `n`: `A` … `Z`, `AA`, `AB` ….
fn router(mut n: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push((b'A' + (n % 26) as u8) as char);
        if n < 26 {
            return letters.into_iter().rev().collect();
        }
        n = n / 26 - 1;
    }
}

impl Topology {
    /// The network of a preset or of links of one's own.
    ///
    /// # Errors
    /// What it cannot be.
    pub fn new(network: &Network, links: &[LinkSpec]) -> Result<Self, Complaint> {
        match (network.preset, links.is_empty()) {
            (Some(preset), true) => {
                network.check_keys()?;
                match preset.is_fabric() {
                    true => Self::fabric(preset, network),
                    false => Self::preset(preset, network),
                }
            }
            (None, false) => {
                network.check_keys()?;
                let graph = Self::graph(links)?;
                Ok(graph
                    .routed(network.routing.unwrap_or_default(), network.ecmp.unwrap_or_default()))
            }
            (Some(_), false) => {
                Err(Complaint::new("link", "either a preset network or links of your own"))
            }
            (None, true) => Err(Complaint::wrong("network.preset", "there is no network")
                .allowed(
                    "feng, feng-10ms, cmu, redpd, report, dumbbell, chain, fat-tree, leaf-spine",
                )
                .hint("add [network] with a preset, or [[link]] entries")),
        }
    }

    fn preset(preset: Preset, network: &Network) -> Result<Self, Complaint> {
        let whole = network.whole(preset);
        let Whole { rate, delay, access_rate, .. } = whole;
        let count = |field: &str, n: u32, least: u32, most: u32| {
            if (least..=most).contains(&n) {
                Ok(n as usize)
            } else {
                Err(Complaint::new(format!("network.{field}"), format!("{least} … {most}")))
            }
        };
        let left = count("left", whole.left, 1, MAX_NODES)?;
        let right = count("right", whole.right, 1, MAX_NODES)?;
        let n = count("bottlenecks", whole.bottlenecks, 1, MAX_NODES)?;
        let cross = count("cross", whole.cross, 0, (MAX_NODES / n as u32).min(400))?;
        let delays = |delays: &Delays, nodes: usize, key: &str| {
            let delays = delays.expand(nodes, key)?;
            for &each in &delays {
                check_link(access_rate, each, "network.access_rate", key)?;
            }
            Ok(delays)
        };
        check_link(rate, delay, "network.rate", "network.delay")?;
        let access = delays(&whole.access_delay, left.max(right), "network.access_delay")?;
        if cross == 0 && network.cross_delay.is_some() {
            return Err(Complaint::new("network.cross_delay", "only with cross")
                .hint("without pairs of nodes for cross traffic it would have no effect"));
        }
        let cross_access = delays(&whole.cross_delay, cross, "network.cross_delay")?;

        let mut nodes: Vec<String> = (0..=n).map(router).collect();
        let mut links = Vec::new();
        let mut join =
            |a: usize, b: usize, rate, delay| links.extend(Edge::both_ways(a, b, rate, delay));
        (0..n).for_each(|router| join(router, router + 1, rate, delay));
        let mut attach = |name: String, router: usize, delay: Duration| {
            nodes.push(name);
            join(nodes.len() - 1, router, access_rate, delay);
        };
        (0..left).for_each(|i| attach(format!("n{i}"), 0, access[i]));
        (0..right).for_each(|i| attach(format!("n{}", left + i), n, access[i]));
        for hop in 1..=n {
            for (i, &delay) in cross_access.iter().take(cross).enumerate() {
                attach(format!("s{hop}.{i}"), hop - 1, delay);
                attach(format!("d{hop}.{i}"), hop, delay);
            }
        }
        let first = n + 1;
        let sides =
            ((first..first + left).collect(), (first + left..first + left + right).collect());
        Ok(Self::of(nodes, links, n, sides))
    }

    pub(crate) fn of(
        nodes: Vec<String>,
        links: Vec<Edge>,
        bottlenecks: usize,
        (left, right): (Vec<usize>, Vec<usize>),
    ) -> Self {
        let mut out = vec![Vec::new(); nodes.len()];
        let mut into = out.clone();
        for (i, link) in links.iter().enumerate() {
            out[link.from].push(i);
            into[link.to].push(i);
        }
        let numbers = nodes.iter().cloned().zip(0..).collect();
        let ways: HashSet<_> = links.iter().map(|link| (link.from, link.to)).collect();
        let symmetric = ways.iter().all(|&(from, to)| ways.contains(&(to, from)));
        let ports = (0..bottlenecks).map(|bottleneck| 2 * bottleneck).collect();
        let (routing, ecmp) = (Routing::default(), Ecmp::default());
        Self {
            nodes,
            numbers,
            links,
            bottlenecks,
            ports,
            routing,
            ecmp,
            left,
            right,
            out,
            into,
            symmetric,
        }
    }

    /// This network with such routes.
    pub(crate) fn routed(self, routing: Routing, ecmp: Ecmp) -> Self {
        Self { routing, ecmp, ..self }
    }

    fn graph(specs: &[LinkSpec]) -> Result<Self, Complaint> {
        let (mut nodes, mut numbers) = (Vec::new(), HashMap::new());
        let mut number = |name: &String| {
            *numbers.entry(name.clone()).or_insert_with(|| {
                nodes.push(name.clone());
                nodes.len() - 1
            })
        };
        let (mut links, mut taken) = (Vec::new(), HashSet::new());
        for (i, spec) in specs.iter().enumerate() {
            let key = |field: &str| format!("link[{i}].{field}");
            check_link(spec.rate.0, spec.delay.0, &key("rate"), &key("delay"))?;
            for (field, name) in [("from", &spec.from), ("to", &spec.to)] {
                if name.is_empty() || name.contains("->") {
                    return Err(Complaint::new(
                        key(field),
                        "a name without `->`, which queues are named by",
                    ));
                }
            }
            let (from, to) = (number(&spec.from), number(&spec.to));
            if from == to {
                return Err(Complaint::new(key("to"), "another node than `from`"));
            }
            let ways = [(from, to), (to, from)];
            if !ways[..=usize::from(spec.duplex)].iter().all(|&way| taken.insert(way)) {
                return Err(Complaint::new(key("to"), "nodes that are not linked that way yet")
                    .hint("a link goes both ways unless it has duplex = false"));
            }
            let (sending, impairments) = (spec.sending.clone(), spec.impairments.clone());
            let (rate, delay, changes) = (spec.rate.0, spec.delay.0, spec.changes);
            let wifi = spec.wifi.clone().map(Box::new);
            let docsis = spec.docsis.map(Box::new);
            let edge = Edge { from, to, rate, delay, sending, wifi, docsis, impairments, changes };
            links.push(edge.clone());
            if spec.duplex {
                links.push(Edge { from: to, to: from, ..edge });
            }
        }
        Ok(Self::of(nodes, links, 0, (Vec::new(), Vec::new())))
    }

    /// A link's name, as `A->B`.
    pub fn link_name(&self, i: usize) -> String {
        let link = &self.links[i];
        format!("{}->{}", self.nodes[link.from], self.nodes[link.to])
    }

    /// The links of a name, in which a `*` stands for any text; without one those that a queue is for that
    /// names none.
    ///
    /// # Errors
    /// About `key`: there is no such link.
    pub(crate) fn find_links(
        &self,
        name: Option<&str>,
        key: &str,
    ) -> Result<Vec<usize>, Complaint> {
        match name {
            None if self.ports.is_empty() => {
                Err(Complaint::wrong(key, "needed").allowed("a link such as A->B"))
            }
            None => Ok(self.ports.clone()),
            Some(pattern) if pattern.contains('*') => {
                let meant = |&link: &usize| matches(pattern, &self.link_name(link));
                let links: Vec<usize> = (0..self.links.len()).filter(meant).collect();
                // A node may have such a name.
                if links.is_empty() { Ok(vec![self.find_link(pattern, key)?]) } else { Ok(links) }
            }
            Some(name) => Ok(vec![self.find_link(name, key)?]),
        }
    }

    /// The link of a name.
    ///
    /// # Errors
    /// About `key`: there is no such link.
    pub fn find_link(&self, name: &str, key: &str) -> Result<usize, Complaint> {
        let there = name.split_once("->").and_then(|(from, to)| {
            let (&from, &to) = (self.numbers.get(from)?, self.numbers.get(to)?);
            self.out[from].iter().copied().find(|&link| self.links[link].to == to)
        });
        there.ok_or_else(|| {
            let names: Vec<String> = (0..self.links.len()).map(|i| self.link_name(i)).collect();
            let hint = did_you_mean(name, names.iter().map(String::as_str));
            Complaint::new(key, names[..names.len().min(20)].join(", ")).hint(hint)
        })
    }

    /// The nodes of a name, in which a `*` stands for any text; without one all switches of a fabric.
    pub(crate) fn find_nodes(
        &self,
        name: Option<&str>,
        key: &str,
    ) -> Result<Vec<usize>, Complaint> {
        let Some(pattern) = name else {
            let mut found: Vec<usize> = match self.bottlenecks {
                0 => self.ports.iter().map(|&port| self.links[port].from).collect(),
                _ => Vec::new(),
            };
            found.sort_unstable();
            found.dedup();
            return match found.is_empty() {
                true => Err(Complaint::wrong(key, "needed").allowed("the name of a node")),
                false => Ok(found),
            };
        };
        let meant = |&node: &usize| matches(pattern, &self.nodes[node]);
        let found: Vec<usize> = (0..self.nodes.len()).filter(meant).collect();
        match found.is_empty() {
            true => self.ends(Some(&[pattern.into()]), true, key),
            false => Ok(found),
        }
    }

    /// The nodes of the given names; without them the preset's left or right side.
    ///
    /// # Errors
    /// About `key`: a name of no node, or none at all.
    pub fn ends(
        &self,
        names: Option<&[String]>,
        left: bool,
        key: &str,
    ) -> Result<Vec<usize>, Complaint> {
        let Some(names) = names else {
            let side = if left { &self.left } else { &self.right };
            return if side.is_empty() {
                Err(Complaint::wrong(key, "needed").allowed("names of nodes"))
            } else {
                Ok(side.clone())
            };
        };
        if names.is_empty() {
            return Err(Complaint::new(key, "at least one node"));
        }
        names
            .iter()
            .map(|name| {
                self.numbers.get(name).copied().ok_or_else(|| {
                    let nodes = self.nodes.iter().map(String::as_str);
                    let near = did_you_mean(name, nodes);
                    let hint = match near.is_empty() {
                        true => format!("there is no node `{name}`"),
                        false => near,
                    };
                    Complaint::new(key, self.nodes[..self.nodes.len().min(20)].join(", "))
                        .hint(hint)
                })
            })
            .collect()
    }

    /// Checks that every pair has a way out and back, and each node of `from` another one to send to.
    pub(crate) fn check_routes(
        &self,
        from: Option<&[String]>,
        to: Option<&[String]>,
        key: &str,
    ) -> Result<(), Complaint> {
        let (from, to) = (self.ends(from, true, key)?, self.ends(to, false, key)?);
        let first = to[0];
        if to.iter().all(|&node| node == first) && from.contains(&first) {
            let problem = format!("there is no route from {} to itself", self.nodes[first]);
            return Err(Complaint::wrong(key, problem).hint("`from` and `to` name different nodes"));
        }
        let missing = |from: usize, to: usize| {
            let (from, to) = (&self.nodes[from], &self.nodes[to]);
            Complaint::wrong(key, format!("there is no route from {from} to {to}"))
                .hint("connect the nodes with [[link]], in both directions")
        };
        if self.symmetric {
            // What one of them reaches, each of them reaches, and is reached from.
            let reached = self.reached(from[0], true);
            let apart = |side: &[usize]| side.iter().copied().find(|&node| !reached[node]);
            return match (apart(&to), apart(&from)) {
                (Some(other), _) => Err(missing(from[0], other)),
                (None, Some(other)) => Err(missing(other, first)),
                (None, None) => Ok(()),
            };
        }
        let swapped = from.len() > to.len();
        let (few, many) = if swapped { (to, from) } else { (from, to) };
        for &a in &few {
            let (there, back) = (self.reached(a, true), self.reached(a, false));
            for &b in many.iter().filter(|&&b| b != a) {
                let ways = if swapped {
                    [(b, a, &back), (a, b, &there)]
                } else {
                    [(a, b, &there), (b, a, &back)]
                };
                for (from, to, reached) in ways {
                    if !reached[b] {
                        return Err(missing(from, to));
                    }
                }
            }
        }
        Ok(())
    }

    /// Which nodes a packet from `node` can reach; or, backwards, from which it can be reached.
    fn reached(&self, node: usize, forwards: bool) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        reached[node] = true;
        let mut left = vec![node];
        while let Some(node) = left.pop() {
            for &i in if forwards { &self.out[node] } else { &self.into[node] } {
                let next = if forwards { self.links[i].to } else { self.links[i].from };
                if !std::mem::replace(&mut reached[next], true) {
                    left.push(next);
                }
            }
        }
        reached
    }

    /// Mean propagation time there and back between the sides of a preset.
    pub fn base_rtt(&self) -> Option<Duration> {
        if self.bottlenecks == 0 {
            return None;
        }
        // A path is a link of the left side, the bottlenecks, and a link of the right side, and the
        // links back have the same delays: the mean over pairs is the sum of the sides' means.
        let sum = |side: &[usize]| -> u128 {
            let delays = side.iter().flat_map(|&n| self.out[n].first());
            delays.map(|&i| u128::from(self.links[i].delay.as_nanos())).sum()
        };
        let (l, r) = (self.left.len() as u128, self.right.len() as u128);
        let middle = self.bottlenecks as u128 * u128::from(self.links.first()?.delay.as_nanos());
        let all = 2 * (sum(&self.left) * r + sum(&self.right) * l + middle * l * r);
        all.checked_div(l * r).map(|ns| Duration::from_nanos(ns as u64))
    }
}

/// Whether a name is as a pattern has it, in which a `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

pub(crate) fn check_link(
    rate: Rate,
    delay: Duration,
    rate_key: &str,
    delay_key: &str,
) -> Result<(), Complaint> {
    if !RATES.contains(&rate.bits_per_second()) {
        return Err(Complaint::new(rate_key, "1kbit … 100tbit"));
    }
    if delay > LONGEST {
        return Err(Complaint::new(delay_key, format!("at most {LONGEST}")));
    }
    Ok(())
}
