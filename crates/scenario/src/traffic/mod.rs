//! Groups of flows: the keys that all have, and transports and applications with keys of their own.
//!
//! A file says all of it in one table. Which keys may stand there follows from `transport` and `app`:
//! one that would have no effect is an error.

mod app;
mod keys;
mod owner;
#[cfg(test)]
mod pages;
mod sizes;
mod transport;

use std::collections::HashSet;

use aqm::units::Size;
use aqm::{Duration, Label};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use app::{
    App, AppName, Exponential, Finite, Offer, Pareto, Periodic, Schedule, UnsentName, Web,
};
pub(crate) use keys::{Unread, keys_of_traffic, later, read_groups};
pub(crate) use owner::keys_of;
pub use sizes::{Sizes, Spread};
pub use transport::*;

use crate::arrivals::Files;
use crate::defaults::one;
use crate::error::Complaint;
use crate::network::Topology;
use crate::text::{Codepoint, Span, Text};

/// Flows that join in steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Flows in each step.
    pub flows: u32,
    /// Time between steps.
    pub every: Text<Duration>,
}

/// Pairs of nodes. The flows of a group take them one after another, and begin again after the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// A random one of all permutations in which no node sends to itself: each node of `from` sends to
    /// one of `to`, and each of `to` is sent to.
    Permutation,
    /// The group draws one node of `to`, and all nodes of `from` but that send to it, in random order.
    Incast,
}

/// As many flows as there are senders: what `flows` is where a pattern is given and it is not.
const ALL_SENDERS: u32 = u32::MAX;

/// A group of flows that are alike.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TrafficSpec {
    /// What all groups have.
    #[serde(flatten)]
    pub group: GroupSpec,
    /// How its data is carried.
    #[serde(flatten)]
    pub transport: Transport,
    /// What is carried.
    #[serde(flatten)]
    pub app: App,
}

/// What all groups have.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GroupSpec {
    /// The group's name in results.
    #[serde(default = "default_group")]
    pub name: String,
    /// How many flows; for a `trace`, the number in its file.
    #[serde(default = "one")]
    pub flows: u32,
    /// Groups with the same `identity` look like the same flows to a queue: first with first,
    /// second with second. Without it each flow has addresses and ports of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// How often its flows change ports; queues then see new flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rekey: Option<Text<Duration>>,
    /// The DSCP of data packets and of their acknowledgements, such as `EF`, `AF41` or `46`. If not
    /// given: CS0, or for a `trace` that of each flow's first packet. `cake`, `wred`, the classes of a
    /// tree, and `ce_threshold_selector` of CoDel and FQ-CoDel use it; other queues ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Text<Codepoint>>,
    /// The number of the sending host, 0 … 8191, by which `cake` shares among hosts, and for the
    /// classes of a tree. Other queues ignore it, and it does not change the node. If not given: 0, or
    /// for a `trace` a number for each address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<u16>,
    /// As `host`, for the receiving host. It is also the station that receives over `wifi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<u16>,
    /// How data is carried. A TCP congestion controller of your own is `python:FILE:CLASS`, with the
    /// file seen from the scenario's folder, or `rust:NAME`.
    pub transport: TransportChoice,
    /// The application: what the flows send.
    #[serde(default = "infinite")]
    pub app: AppName,
    /// Nodes to send from; each flow draws one. If not given: the left side of the network preset, in a
    /// fabric all hosts. A `*` here and in `to`, as in `s*.0`, stands for the number of a bottleneck:
    /// each bottleneck gets a copy of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Vec<String>>,
    /// Nodes to send to; each flow draws one, but not its sender. If not given: the right side of the
    /// network preset, in a fabric all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// Which node sends to which, in place of a draw by each flow. `flows` is then the number of
    /// senders, unless you give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// When a flow starts: an instant, or a range from which each flow draws. For a `trace`, when
    /// its first packet comes.
    #[serde(default = "at_once")]
    pub start: Text<Span>,
    /// When it stops; by default at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Text<Duration>>,
    /// Flows join in steps: a flow starts at its step plus `start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepSpec>,
    /// Length of data packets on the wire, 40 … 65535 bytes. With a TCP `preset` the default is 1500.
    /// With QUIC it is 1228, which is also the least. For a `trace` it is the mean.
    #[serde(default = "kilobyte")]
    pub packet: Text<Size>,
    /// Whether data packets are ECN-capable. With QUIC they are, unless you set false. With a `trace`,
    /// true also covers packets that are not ECN-capable in its file.
    #[serde(default)]
    pub ecn: bool,
}

fn default_group() -> String {
    "flows".into()
}
fn infinite() -> AppName {
    AppName::Infinite
}
fn at_once() -> Text<Span> {
    Text(Span { from: Duration::ZERO, to: Duration::ZERO })
}
fn kilobyte() -> Text<Size> {
    Text(Size::Bytes(1000))
}

/// More flows than one run may have.
const MAX_FLOWS: u64 = 4_000_000;

/// Where a group stands in the file, for errors.
pub(crate) struct Place(usize);

impl Place {
    fn key(&self, field: &str) -> String {
        format!("traffic[{}].{field}", self.0)
    }

    fn refuse<T>(&self, field: &str, allowed: &str) -> Result<T, Complaint> {
        Err(Complaint::new(self.key(field), allowed))
    }

    /// Refuses the first that is wrong: whether it is, the key, what is allowed.
    fn refuse_first<const N: usize>(&self, keys: [(bool, &str, &str); N]) -> Result<(), Complaint> {
        let wrong = keys.into_iter().find(|(is_wrong, ..)| *is_wrong);
        wrong.map_or(Ok(()), |(_, key, allowed)| self.refuse(key, allowed))
    }
}

/// The groups, checked, and how many flows they have: a group with `*` in the names of its nodes
/// becomes one at each bottleneck.
pub(crate) fn expand_traffic(
    specs: Vec<TrafficSpec>,
    topology: &Topology,
    end: Duration,
    files: &mut dyn Files,
) -> Result<(Vec<TrafficSpec>, u64), Complaint> {
    let mut groups = Vec::new();
    let mut flows = 0;
    for (i, mut spec) in specs.into_iter().enumerate() {
        let at = Place(i);
        if let Transport::Trace(trace) = &mut spec.transport {
            trace.fill(&mut spec.group, end, &at, files)?;
        }
        spec.bring(&at, files)?;
        if let App::Finite(Finite { sizes: Some(Spread::File(sizes)), .. }) = &mut spec.app {
            sizes.read(&at, files)?;
        }
        let mut names = spec.group.from.iter().chain(&spec.group.to).flatten();
        let everywhere = topology.bottlenecks > 0 && names.any(|name| name.contains('*'));
        for hop in 1..=if everywhere { topology.bottlenecks } else { 1 } {
            let mut group = spec.clone();
            if everywhere {
                let names = group.group.from.iter_mut().chain(&mut group.group.to).flatten();
                names.for_each(|name| *name = name.replace('*', &hop.to_string()));
            }
            group.group.fit_pattern(&at, topology)?;
            group.check(&at, topology)?;
            let start = group.group.start.0;
            if start.from < end && start.to > end {
                let allowed = format!("a range that ends by {end}, when the run does");
                return at.refuse("start", &allowed);
            }
            flows += u64::from(group.group.flows) * u64::from(group.slots());
            if flows > MAX_FLOWS {
                let allowed = format!("at most {MAX_FLOWS} flows in all");
                return at.refuse("flows", &allowed);
            }
            groups.push(group);
        }
    }
    // Some may, where a scenario is cut short.
    if !groups.is_empty() && groups.iter().all(|spec| spec.group.start.0.from >= end) {
        return Place(0).refuse("start", &format!("less than {end} for one group at least"));
    }
    Ok((groups, flows))
}

impl GroupSpec {
    /// What its packets tell beside their flow, where `other` is what they tell otherwise.
    pub fn label(&self, other: Label) -> Label {
        Label {
            dscp: self.dscp.map_or(other.dscp, |dscp| dscp.0.0),
            host: self.host.unwrap_or(other.host),
            peer: self.peer.unwrap_or(other.peer),
        }
    }

    /// Checks the nodes of a pattern, and fills in how many flows follow from it.
    fn fit_pattern(&mut self, at: &Place, topology: &Topology) -> Result<(), Complaint> {
        let Some(pattern) = self.pattern else { return Ok(()) };
        let from = topology.ends(self.from.as_deref(), true, &at.key("from"))?;
        let to = topology.ends(self.to.as_deref(), false, &at.key("to"))?;
        for (key, nodes) in [("from", &from), ("to", &to)] {
            if nodes.iter().collect::<HashSet<_>>().len() < nodes.len() {
                return at.refuse(key, "each node once, with a pattern");
            }
        }
        let senders = match pattern {
            Pattern::Permutation if from.len() != to.len() => {
                let allowed =
                    format!("as many nodes as in `from`, {}, in a permutation", from.len());
                return at.refuse("to", &allowed);
            }
            Pattern::Permutation => from.len(),
            // The receiver does not send.
            Pattern::Incast => from.len() - usize::from(to.iter().all(|node| from.contains(node))),
        };
        if self.flows == ALL_SENDERS {
            self.flows = senders as u32;
        }
        Ok(())
    }

    /// Data packets on the wire in bytes, if allowed.
    pub fn packet_bytes(&self) -> Option<u16> {
        match self.packet.0 {
            Size::Bytes(n @ 40..=65_535) => Some(n as u16),
            _ => None,
        }
    }
}

impl TrafficSpec {
    /// Flows of the simulation that each flow of the group takes: connections at a time.
    pub fn slots(&self) -> u16 {
        match &self.app {
            App::Web(web) => web.most_connections(),
            _ => 1,
        }
    }

    /// Whether its flows have more to send than the network takes, at any time: what they get is then
    /// what the network gives them.
    pub fn always_has_data(&self) -> bool {
        self.group.transport.kind().is_greedy() && matches!(self.app, App::Infinite {})
    }

    fn check(&self, at: &Place, topology: &Topology) -> Result<(), Complaint> {
        let group = &self.group;
        if let Some(Text(stop)) = group.stop {
            if stop == Duration::ZERO {
                return at.refuse("stop", "more than 0s: until then nothing is sent");
            }
            if group.start.0.from >= stop {
                return at.refuse("start", &format!("less than {stop}, when the group stops"));
            }
        }
        if group.flows == 0 {
            return at.refuse("flows", "at least 1");
        }
        if group.packet_bytes().is_none() {
            return at.refuse("packet", "40B … 65535B");
        }
        if let Some(step) = &group.step {
            if !(1..=group.flows).contains(&step.flows) {
                return at.refuse("step.flows", &format!("1 … {}, the group's flows", group.flows));
            }
            if step.every.0 == Duration::ZERO {
                let refused = Complaint::new(at.key("step.every"), "more than 0s");
                return Err(refused.hint("without step all begin at once"));
            }
        }
        if group.rekey == Some(Text(Duration::ZERO)) {
            return at.refuse("rekey", "more than 0s");
        }
        for (key, host) in [("host", group.host), ("peer", group.peer)] {
            if host.is_some_and(|host| host >= Label::HOSTS) {
                return at.refuse(key, &format!("0 … {}", Label::HOSTS - 1));
            }
        }
        self.transport.check(group, &self.app, at)?;
        self.app.check(group, at)?;
        topology.ends(group.from.as_deref(), true, &at.key("from"))?;
        topology.ends(group.to.as_deref(), false, &at.key("to"))?;
        topology.check_routes(group.from.as_deref(), group.to.as_deref(), &at.key("to"))
    }
}
