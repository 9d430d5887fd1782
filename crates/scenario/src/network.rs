//! Networks: presets from the papers, fabrics of data centres, or links of one's own.

use std::collections::{HashMap, HashSet};

use aqm::{Duration, Framing, Rate};
use link::impair::Loss;
use link::{Impairments, Sending};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Files;
use crate::course::{DELAY, LOSS};
use crate::error::{Complaint, did_you_mean};
use crate::limits::{LONGEST, RATES};
use crate::text::Text;
use crate::varies::{Course, Probability, Written, written};

/// Networks of the papers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Feng02 §III (Fig. 4): 5 + 5 nodes, 100 Mb/s access, 45 Mb/s bottleneck. The delays are not
    /// in the text. 20 ms on the access links (base round trip 100 ms) fits its claims on 600 and 800
    /// connections; the experiments spread the delays over 10 … 30 ms.
    Feng,
    /// Feng02 §IV.B: the same with 10 ms on every link (base round trip 60 ms).
    #[serde(rename = "feng-10ms")]
    Feng10ms,
    /// HRC §3: 1 Mb/s bottleneck. The rest of its Fig. 3 is not in the text. Access links must carry
    /// a datagram flow of 40 Mb/s.
    Cmu,
    /// Mahajan01 §7: 10 Mb/s bottleneck.
    Redpd,
    /// The BLUE report, §3.1: 4 + 4 nodes, 25 Mb/s access, 35 Mb/s bottleneck, 10 ms everywhere.
    Report,
    /// One node on each side, 10 Mb/s, 20 ms; made to be overridden.
    Dumbbell,
    /// After Mahajan01 §7.5: three bottlenecks of 10 Mb/s and 5 ms, one node at each end, and a
    /// pair of nodes for cross traffic at each bottleneck.
    Chain,
    /// AFLV08 §3: k pods, each of k/2 edge and k/2 aggregation
    /// switches, (k/2)² core switches and k³/4 hosts; 10 Gb/s and 1 µs everywhere.
    FatTree,
    /// Each leaf is linked to each spine: 4 leaves of 8 hosts at 10 Gb/s, 2 spines at 40 Gb/s, 1 µs
    /// everywhere.
    LeafSpine,
}

impl Preset {
    /// Whether it is a fabric of a data centre.
    pub(crate) fn is_fabric(self) -> bool {
        matches!(self, Self::FatTree | Self::LeafSpine)
    }
}

/// Which route is the shortest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// That with the fewest hops.
    #[default]
    Hops,
    /// That with the least propagation delay; of these that with the fewest hops.
    Delay,
}

/// How traffic is spread over equally short routes (equal-cost multipath, RFC 2992).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ecmp {
    /// Not at all: of equally short routes that whose links come first.
    #[default]
    None,
    /// Each connection has one route each way, drawn by a keyed hash at each switch.
    Flow,
    /// Each packet draws its route.
    Packet,
}

/// Nodes on the left and right, and between them a bottleneck A–B or several in a row, A–B–C …; or a
/// fabric.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The preset; without it `[[link]]` entries make the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// A file of links, as seen from the folder of the scenario's: CSV with the columns `from`, `to`,
    /// `rate`, `delay`, or GraphML. They come behind `[[link]]` entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Rate of the bottleneck, of the links between the switches of a fabric, or of the links of a file
    /// that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Text<Rate>>,
    /// Propagation delay of the links that `rate` is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Text<Duration>>,
    /// Of a `fat-tree`: ports of each switch, an even number 4 … 32; 4 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Of a `leaf-spine`: leaves, 1 … 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves: Option<u32>,
    /// Of a `leaf-spine`: spines, 1 … 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spines: Option<u32>,
    /// Of a `leaf-spine`: hosts of each leaf, 1 … 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// How traffic is spread over equally short routes; `flow` in a fabric, `none` over your own
    /// links if not given. Not for other presets, which have one route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecmp: Option<Ecmp>,
    /// Which route is the shortest, over your own links; `hops` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
    /// How many such bottlenecks there are in a row, 1 … 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottlenecks: Option<u32>,
    /// Rate of the access links: those of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_rate: Option<Text<Rate>>,
    /// Propagation delay of the access links: one for all, or one for each node of a side; in a fabric
    /// one for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_delay: Option<Delays>,
    /// Nodes on the left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    /// Nodes on the right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<u32>,
    /// Pairs of nodes at each bottleneck, for traffic over it alone: `s1.0` before the first one and
    /// `d1.0` after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross: Option<u32>,
    /// Propagation delay of their access links: one for all, or one for each pair of a bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_delay: Option<Delays>,
}

/// One delay for all, or one for each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a time, or a list of times in brackets\u{1f}")]
pub enum Delays {
    /// One for all.
    One(Text<Duration>),
    /// One for each node, the same on both sides.
    Each(Vec<Text<Duration>>),
}

/// A link of one's own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Rate.
    pub rate: Text<Rate>,
    /// Propagation delay.
    pub delay: Text<Duration>,
    /// Whether there is an equal link back. Its wire draws its own random numbers.
    #[serde(default = "crate::defaults::yes")]
    pub duplex: bool,
    /// The rate over time. Queue disciplines that use the rate of their link, and sizes in `bdp`, still go by
    /// `rate`.
    #[serde(default, deserialize_with = "written", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub rate_trace: Option<Course>,
    /// The propagation delay over time, in place of `delay`. A packet has the delay of the time at
    /// which its transmission ends.
    #[serde(default, deserialize_with = "written", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub delay_trace: Option<Course>,
    /// The probability of loss over time, beside `loss`.
    #[serde(default, deserialize_with = "written", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Written>")]
    pub loss_trace: Option<Course>,
    /// Each packet takes longer by a random time, uniform from 0 to this.
    #[serde(default = "crate::defaults::zero", skip_serializing_if = "is_default")]
    pub jitter: Text<Duration>,
    /// Whether packets may overtake others, by `jitter` or when the delay gets shorter.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reorder: bool,
    /// Packets lost on the wire, after the queue: each with a probability, or in bursts (Gilbert–Elliott).
    #[serde(default = "no_loss", skip_serializing_if = "is_default")]
    pub loss: Text<Loss>,
    /// The probability that a packet comes out of the wire twice.
    #[serde(default = "never", skip_serializing_if = "is_default")]
    pub duplicate: Text<Probability>,
    /// The probability that a packet is damaged on the wire. The next node discards it.
    #[serde(default = "never", skip_serializing_if = "is_default")]
    pub corrupt: Text<Probability>,
    /// What a packet takes on the wire beside its own bytes, in words of `tc cake`: `pppoe-ptm`,
    /// `overhead 44 mpu 64 atm`. It counts for the time on the wire, not for the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<Text<Framing>>,
    /// How the transmitter sends, made from the keys above.
    #[serde(skip)]
    pub sending: Sending,
    /// What the wire does to packets, made from the keys above.
    #[serde(skip)]
    pub impairments: Impairments,
    /// The least delay of a wire that events change.
    #[serde(skip)]
    pub changes: Option<Duration>,
}

impl LinkSpec {
    /// Fills in what follows from files, steps and models. `at` is the link's key.
    pub(crate) fn resolve(&mut self, at: &str, files: &mut dyn Files) -> Result<(), Complaint> {
        let key = |field: &str| format!("{at}.{field}");
        let rate = self.rate.0;
        let rates = self.rate_trace.as_mut();
        let rates =
            rates.map(|course| course.rates(rate, &key("rate_trace"), files)).transpose()?;
        let delay = self.delay_trace.as_mut();
        let delay = delay
            .map(|course| course.steps(&DELAY, |ns| ns, &key("delay_trace"), files))
            .transpose()?;
        let losses = self.loss_trace.as_mut();
        let losses = losses
            .map(|course| course.steps(&LOSS, f64::to_bits, &key("loss_trace"), files))
            .transpose()?;
        if self.jitter.0 > LONGEST {
            return Err(Complaint::new(key("jitter"), format!("at most {LONGEST}")));
        }
        let framing = self.framing.map_or_else(Framing::default, |framing| framing.0);
        self.sending = Sending { rates, framing };
        self.impairments = Impairments {
            delay,
            jitter: self.jitter.0.as_nanos(),
            reorder: self.reorder,
            loss: self.loss.0,
            losses,
            duplicate: self.duplicate.0.0,
            corrupt: self.corrupt.0.0,
        };
        if self.reorder && !self.impairments.delays_vary() {
            return Err(Complaint::new(key("reorder"), "only with jitter or delay_trace")
                .hint("packets overtake others because some take longer"));
        }
        Ok(())
    }
}

impl LinkSpec {
    /// A link that does not vary.
    pub(crate) fn plain(
        from: String,
        to: String,
        rate: Rate,
        delay: Duration,
        duplex: bool,
    ) -> Self {
        Self {
            from,
            to,
            rate: Text(rate),
            delay: Text(delay),
            duplex,
            rate_trace: None,
            delay_trace: None,
            loss_trace: None,
            jitter: crate::defaults::zero(),
            reorder: false,
            loss: no_loss(),
            duplicate: never(),
            corrupt: never(),
            framing: None,
            sending: Sending::default(),
            impairments: Impairments::default(),
            changes: None,
        }
    }

    /// An event changes the wire, which may then take `delay`.
    pub(crate) fn may_take(&mut self, delay: Duration) {
        self.changes = Some(self.changes.map_or(delay, |least| least.min(delay)));
    }
}

fn no_loss() -> Text<Loss> {
    Text(Loss::None)
}

fn never() -> Text<Probability> {
    Text(Probability(0.0))
}

/// Whether a value does nothing, so that it need not be written.
fn is_default<T: PartialEq + Default>(value: &T) -> bool {
    *value == T::default()
}

impl Delays {
    /// One for each of `n` nodes.
    fn expand(&self, n: usize, key: &str) -> Result<Vec<Duration>, Complaint> {
        match self {
            Self::One(d) => Ok(vec![d.0; n]),
            Self::Each(each) if each.len() == n => Ok(each.iter().map(|d| d.0).collect()),
            Self::Each(_) => Err(Complaint::new(key, format!("one delay, or {n} (one a node)"))),
        }
    }
}

/// A preset network with the scenario's overrides.
struct Whole {
    rate: Rate,
    delay: Duration,
    bottlenecks: u32,
    access_rate: Rate,
    access_delay: Delays,
    left: u32,
    right: u32,
    cross: u32,
    cross_delay: Delays,
}

impl Network {
    /// The preset's values, where the scenario does not override them.
    fn whole(&self, preset: Preset) -> Whole {
        let (nodes, rate, delay_ms, access_rate, access_delay_ms) = match preset {
            Preset::Feng => (5, 45, 10, 100, 20),
            Preset::Feng10ms => (5, 45, 10, 100, 10),
            Preset::Cmu => (5, 1, 10, 100, 5),
            Preset::Redpd => (3, 10, 20, 100, 2),
            Preset::Report => (4, 35, 10, 25, 10),
            Preset::Dumbbell => (1, 10, 20, 1000, 0),
            Preset::Chain | Preset::FatTree | Preset::LeafSpine => (1, 10, 5, 100, 2),
        };
        let (bottlenecks, cross) = if preset == Preset::Chain { (3, 1) } else { (1, 0) };
        let rate_of =
            |given: Option<Text<Rate>>, mbit| given.map_or(Rate::from_mbit(mbit), |r| r.0);
        let access = |given: &Option<Delays>| {
            given.clone().unwrap_or(Delays::One(Text(Duration::from_millis(access_delay_ms))))
        };
        Whole {
            rate: rate_of(self.rate, rate),
            delay: self.delay.map_or(Duration::from_millis(delay_ms), |d| d.0),
            bottlenecks: self.bottlenecks.unwrap_or(bottlenecks),
            access_rate: rate_of(self.access_rate, access_rate),
            access_delay: access(&self.access_delay),
            left: self.left.unwrap_or(nodes),
            right: self.right.unwrap_or(nodes),
            cross: self.cross.unwrap_or(cross),
            cross_delay: access(&self.cross_delay),
        }
    }

    /// Writes out what its preset says.
    pub(crate) fn fill_in(&mut self) {
        let Some(preset) = self.preset else { return };
        if preset.is_fabric() {
            return self.fill_in_fabric(preset);
        }
        let whole = self.whole(preset);
        *self = Self {
            preset: self.preset,
            rate: Some(Text(whole.rate)),
            delay: Some(Text(whole.delay)),
            bottlenecks: Some(whole.bottlenecks),
            access_rate: Some(Text(whole.access_rate)),
            access_delay: Some(whole.access_delay),
            left: Some(whole.left),
            right: Some(whole.right),
            cross: Some(whole.cross),
            // Without cross traffic it would have no effect.
            cross_delay: (whole.cross > 0).then_some(whole.cross_delay),
            ..Self::default()
        };
    }

    /// Refuses keys that would have no effect.
    fn check_keys(&self) -> Result<(), Complaint> {
        use Preset::{FatTree, LeafSpine};
        let sides = || "networks with sides: dumbbells and chains".to_string();
        let [fabric, fat_tree, leaf_spine] = [
            self.preset.is_some_and(Preset::is_fabric),
            self.preset == Some(FatTree),
            self.preset == Some(LeafSpine),
        ];
        let (side, own) = (self.preset.is_some() && !fabric, self.preset.is_none());
        for (key, given, fits, whose) in [
            ("rate", self.rate.is_some(), !own, "presets".into()),
            ("delay", self.delay.is_some(), !own, "presets".into()),
            ("k", self.k.is_some(), fat_tree, "fat-tree".into()),
            ("leaves", self.leaves.is_some(), leaf_spine, "leaf-spine".into()),
            ("spines", self.spines.is_some(), leaf_spine, "leaf-spine".into()),
            ("hosts", self.hosts.is_some(), leaf_spine, "leaf-spine".into()),
            (
                "ecmp",
                self.ecmp.is_some(),
                !side,
                "fat-tree, leaf-spine and links of your own".into(),
            ),
            ("routing", self.routing.is_some(), own, "links of your own".into()),
            ("bottlenecks", self.bottlenecks.is_some(), side, sides()),
            ("access_rate", self.access_rate.is_some(), !own, "presets".into()),
            ("access_delay", self.access_delay.is_some(), !own, "presets".into()),
            ("left", self.left.is_some(), side, sides()),
            ("right", self.right.is_some(), side, sides()),
            ("cross", self.cross.is_some(), side, sides()),
            ("cross_delay", self.cross_delay.is_some(), side, sides()),
        ] {
            if given && !fits {
                let hint = match key {
                    "rate" | "delay" => {
                        format!("in a network of links `{key}` is a key of [[link]]")
                    }
                    _ => "in this network it would have no effect: leave it out".into(),
                };
                return Err(Complaint::new(format!("network.{key}"), format!("for {whose} only"))
                    .hint(hint));
            }
        }
        Ok(())
    }
}

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
            Self { from, to, rate, delay, sending, impairments, changes: None }
        })
    }

    /// Whether its wire does anything but delay, or will.
    pub fn impairs(&self) -> bool {
        self.impairments.any() || self.changes.is_some()
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
            let edge = Edge { from, to, rate, delay, sending, impairments, changes };
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
