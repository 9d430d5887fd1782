//! Networks: presets from the papers, fabrics of data centres, or links of one's own.

mod docsis;
mod link;
mod topology;
mod wifi;

use aqm::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::link::LinkSpec;
pub use docsis::DocsisSpec;
pub(crate) use topology::check_link;
pub use topology::{Edge, Topology};
pub use wifi::{ScheduleName, StationSpec, WifiSpec};

use crate::error::Complaint;
use crate::text::Text;

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
