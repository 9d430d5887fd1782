//! Scenario files: one run as TOML, read once into types. An error names file, line, key, value, what is
//! allowed, and a hint.

pub mod arrivals;
pub mod autorate;
pub mod classes;
pub mod course;
mod defaults;
pub mod elsewhere;
pub mod error;
pub mod event;
mod fabric;
mod graph;
mod limits;
pub mod meant;
pub mod network;
pub mod own;
mod parameter;
mod queue;
pub mod routes;
mod schema;
pub mod switch;
pub mod text;
pub mod traffic;
pub mod tree;
pub mod varies;

use aqm::{Duration, Limit};
use link::histogram::Times;
use link::stats::FlowTally;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, Deserializer};

use arrivals::Files;
use autorate::AutorateSpec;
use defaults::zero;
use error::Complaint;
pub use error::ScenarioError;
use event::EventSpec;
use limits::MAX_SAMPLES;
pub use limits::{LARGEST_WINDOW, horizon};
use network::{DocsisSpec, Edge, LinkSpec, Network, StationSpec, Topology, WifiSpec};
pub use parameter::Parameter;
pub use queue::QueueSpec;
use queue::expand_queues;
use switch::SwitchSpec;
use text::Text;
pub use traffic::TrafficSpec;
use traffic::{Unread, expand_traffic, keys_of, keys_of_traffic, later, read_groups};

/// One run: network, queues, traffic, measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about; free text.
    #[serde(default)]
    pub title: String,
    /// All random numbers follow from it.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Simulated time: less than 9 years with 10 links, 9.7 hours with 100 000. No flow may have the time to
    /// send 2³² packets, as in 516 s at 100 Gb/s with 1500 bytes each.
    pub duration: Text<Duration>,
    /// Measurement begins here and lasts to the end.
    #[serde(default = "zero")]
    pub warmup: Text<Duration>,
    /// A preset network, with overrides; or empty, with your own links.
    #[serde(default)]
    pub network: Network,
    /// Your own links, in place of a preset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkSpec>,
    /// Managed queues. All other links have a queue without bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueueSpec>,
    /// Switches whose ports share a buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switch: Vec<SwitchSpec>,
    /// Groups of flows.
    #[serde(default, deserialize_with = "later", skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficSpec>,
    /// What changes when a congestion controller enters a phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventSpec>,
    /// What sets the rates of shapers during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub autorate: Vec<AutorateSpec>,
    /// What is sampled.
    #[serde(default)]
    pub measure: Measure,
}

/// What is sampled over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Time between samples of the managed queues, at most the duration; without it there is no series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Text<Duration>>,
    /// Whether each group of flows is sampled, too: its queue, what arrived, drops, goodput.
    #[serde(default)]
    pub groups: bool,
    /// Whether each flow is sampled, too: its congestion window, round trip and delivery rate.
    #[serde(default)]
    pub flows: bool,
    /// Whether delays are measured for each flow and each group of flows: in the queues, from end to end,
    /// and round trips.
    #[serde(default)]
    pub delays: bool,
    /// Whether what the datagrams of each group of `cbr` or `scream` meet on their way from end to end is measured:
    /// delay, jitter, loss, and how a call would sound.
    #[serde(default)]
    pub calls: bool,
    /// Whether the congestion control of each flow over TCP is recorded: its phases, round trips and losses,
    /// with the values that it goes by.
    #[serde(default)]
    pub control: bool,
}

fn default_seed() -> u64 {
    1
}

/// The tables of a file with their keys.
fn places() -> meant::Places {
    vec![
        ("[network]", keys_of::<Network>().0),
        ("[[queue]]", keys_of::<QueueSpec>().0),
        ("[[switch]]", keys_of::<SwitchSpec>().0),
        ("[[traffic]]", keys_of_traffic()),
        ("[[event]]", keys_of::<EventSpec>().0),
        ("[[autorate]]", keys_of::<AutorateSpec>().0),
        ("[measure]", keys_of::<Measure>().0),
        ("[[link]]", keys_of::<LinkSpec>().0),
        ("[link.docsis]", keys_of::<DocsisSpec>().0),
        ("[link.wifi]", keys_of::<WifiSpec>().0),
        ("[[link.wifi.station]]", keys_of::<StationSpec>().0),
        ("the file, before the first [table]", keys_of::<Scenario>().0),
    ]
}

impl Scenario {
    /// Reads a scenario that names no files. `file` names the text in errors.
    ///
    /// # Errors
    /// See [`ScenarioError`].
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Self::with_files(text, file, &mut ())
    }

    /// Reads a scenario; `files` hands in what it names.
    ///
    /// # Errors
    /// See [`ScenarioError`].
    pub fn with_files(
        text: &str,
        file: &str,
        files: &mut dyn Files,
    ) -> Result<Self, ScenarioError> {
        Self::read(text, file, files).map_err(|error| meant::hinted(error, text, places))
    }

    fn read(text: &str, file: &str, files: &mut dyn Files) -> Result<Self, ScenarioError> {
        let toml = |e| ScenarioError::from_toml(&e, text, file);
        let root = DeTable::parse(text).map_err(toml)?;
        let traffic = read_groups(root.get_ref());
        // An error outside the groups is reported first.
        let mut scenario = Self::deserialize(Deserializer::from(root)).map_err(toml)?;
        scenario.traffic = traffic.map_err(|unread| match unread {
            Unread::Toml(e) => toml(e),
            Unread::Key(complaint) => ScenarioError::from_complaint(complaint, text, file),
        })?;
        scenario.check(files).map_err(|c| ScenarioError::from_complaint(c, text, file))
    }

    /// The scenario with every default written out, as TOML.
    pub fn to_toml(&self) -> String {
        // Strings, numbers, and tables with string keys: nothing that TOML could refuse.
        toml::to_string(self).unwrap_or_default()
    }

    /// The network's nodes and links.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn topology(&self) -> Result<Topology, Complaint> {
        Topology::new(&self.network, &self.link)
    }

    /// Of each queue, the number of its link; each names one since the scenario was checked.
    ///
    /// # Errors
    /// A link that is not there.
    pub fn managed(&self, topology: &Topology) -> Result<Vec<usize>, Complaint> {
        let link = |(i, spec): (usize, &QueueSpec)| {
            topology
                .find_link(spec.link.as_deref().unwrap_or_default(), &format!("queue[{i}].link"))
        };
        self.queue.iter().enumerate().map(link).collect()
    }

    /// Checks what the types alone cannot, and fills in what follows from the rest.
    fn check(mut self, files: &mut dyn Files) -> Result<Self, Complaint> {
        if self.duration.0 == Duration::ZERO {
            return Err(Complaint::new("duration", "more than 0s"));
        }
        if self.warmup.0 >= self.duration.0 {
            let allowed = format!("less than the duration of {}", self.duration.0);
            return Err(Complaint::new("warmup", allowed));
        }
        if let Some(Text(interval)) = self.measure.interval {
            let least = self.duration.0.as_nanos().div_ceil(MAX_SAMPLES);
            if interval.as_nanos() < least.max(1) {
                let allowed = format!("at least {}", Duration::from_nanos(least.max(1)));
                return Err(Complaint::new("measure.interval", allowed));
            }
            if interval > self.duration.0 {
                let allowed = format!("at most the duration of {}", self.duration.0);
                return Err(Complaint::new("measure.interval", allowed));
            }
        } else if self.measure.groups || self.measure.flows {
            let by = if self.measure.groups { "groups" } else { "flows" };
            let needed = Complaint::wrong("measure.interval", format!("needed by {by}"));
            return Err(needed.allowed("time between samples"));
        }
        self.network.resolve(&mut self.link, files)?;
        for (i, link) in self.link.iter_mut().enumerate() {
            link.resolve(&format!("link[{i}]"), files)?;
        }
        for (i, queue) in self.queue.iter_mut().enumerate() {
            queue.resolve(i, files)?;
        }
        for (i, event) in self.event.iter_mut().enumerate() {
            event.resolve(i, &mut self.link, &self.traffic)?;
        }
        for (i, autorate) in self.autorate.iter_mut().enumerate() {
            autorate.resolve(i, files)?;
        }
        let topology = self.topology()?;
        self.network.fill_in();
        self.queue = expand_queues(self.queue, &topology)?;
        switch::shared(&self.switch, &topology, &self.managed(&topology)?)?;
        let (groups, flows) = expand_traffic(self.traffic, &topology, self.duration.0, files)?;
        self.traffic = groups;
        let hosts = self.traffic.iter().flat_map(|all| [all.group.host, all.group.peer]);
        let hosts = hosts.map(Option::unwrap_or_default).collect();
        for (i, wifi) in
            (0..).zip(&self.link).filter_map(|(i, link)| Some((i, link.wifi.as_ref()?)))
        {
            wifi.check_hosts(&format!("link[{i}].wifi"), &hosts)?;
        }
        if self.traffic.len() > usize::from(u16::MAX) {
            return Err(Complaint::new("traffic", "at most 65535 groups"));
        }
        let mut governed = Vec::new();
        for (i, autorate) in self.autorate.iter_mut().enumerate() {
            let parts = (&topology, &self.queue[..], &self.traffic[..]);
            autorate.check(i, self.duration.0, parts, &mut governed)?;
        }
        if self.queue.is_empty() {
            return Err(Complaint::new("queue", "at least one managed queue").hint(
                "add [[queue]] with aqm = \"droptail\" and a buffer to look at a plain link",
            ));
        }
        let wires = topology.links.iter().filter(|link| link.impairs()).count();
        let horizon = horizon((topology.links.len() + wires) as u64, flows);
        if self.duration.0.as_nanos() >= horizon {
            let end = Duration::from_nanos(horizon);
            let allowed = format!("less than {end} for so many links and flows");
            return Err(Complaint::new("duration", allowed));
        }
        self.check_memory(flows, &topology)?;
        Ok(self)
    }

    /// Refuses what a large machine has no memory for: room for the packets of each queue, and what is counted.
    fn check_memory(&self, flows: u64, topology: &Topology) -> Result<(), Complaint> {
        const MOST: u64 = 64 << 30;
        /// A packet in a queue, with what the queue knows of it.
        const PACKET: u64 = 64;
        /// Histograms and counters of a queue.
        const QUEUE: u64 = 40_000;
        let queues = self.queue.len() as u64;
        let mut room = 0;
        for (spec, link) in self.queue.iter().zip(self.managed(topology)?) {
            let slots =
                spec.limit(topology, link).map_or(0, |limit| u64::from(limit.max_packets()));
            let Edge { rate, wifi, .. } = &topology.links[link];
            let each = wifi.as_ref().map_or(1, |wifi| wifi.queues(*rate));
            room += QUEUE + each.saturating_mul(PACKET * slots.next_power_of_two());
        }
        // The first queue counts the packets of each flow, and once more if there is a warm-up.
        let counted = if self.warmup.0 == Duration::ZERO { 1 } else { 2 };
        let counts = flows * counted * size_of::<FlowTally>() as u64;
        let delays =
            if self.measure.delays { queues * flows * size_of::<Times>() as u64 } else { 0 };
        let bytes = room + counts + delays;
        if bytes <= MOST {
            return Ok(());
        }
        let problem =
            format!("{queues} queues with {flows} flows need {} GB of memory", bytes >> 30);
        let hint = match delays > room {
            true => "fewer flows, `delays` off, or [[queue]] only for the links that are looked at"
                .into(),
            false => format!(
                "a smaller buffer: one in bytes has room for a packet in each {} of them, one in \
                 packets (100p) for so many",
                Limit::MIN_PACKET
            ),
        };
        Err(Complaint::wrong("queue", problem).allowed(format!("{} GB", MOST >> 30)).hint(hint))
    }
}

#[cfg(test)]
mod tests;
