//! A link that is the air between an access point and its stations, downlink.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use aqm::fair::wifi::{Air, Schedule, Station};
use aqm::{Duration, Label, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::classes::{Numbers, some_of};
use crate::error::{Complaint, did_you_mean};
use crate::text::Text;

/// How stations share the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleName {
    /// One queue for all stations; aggregates as the driver finds packets of a station.
    #[default]
    Fifo,
    /// A queue for each station, which send one aggregate each in turn.
    Turns,
    /// A queue for each station, which get equal airtime.
    Airtime,
}

/// The air between an access point and its stations, which receive at different rates. Packets of one station leave
/// together, as an aggregate (A-MPDU).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WifiSpec {
    /// How stations share the air. With a queue for each station, each has the `aqm` and the `buffer` of the link's
    /// `[[queue]]`.
    pub schedule: ScheduleName,
    /// Of `fifo`: the most packets that the driver holds beside the next aggregate, 1 … 4096; 1 if not given. It takes
    /// them out of the queue when an aggregate begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<u32>,
    /// Of `airtime`: what a station may use in its turn, 10us … 100ms; 300us if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Text<Duration>>,
    /// The time that each aggregate takes beside its bytes and the 58 of its acknowledgement, at most 100ms.
    pub overhead: Text<Duration>,
    /// The most packets of an aggregate, 1 … 1024.
    pub frames: u32,
    /// The most bytes of an aggregate, with headers: 1 … 8388607.
    pub bytes: u32,
    /// The longest that the bytes of an aggregate take, 10us … 100ms. A packet that takes longer is sent alone.
    pub longest: Text<Duration>,
    /// Stations with a rate of their own, for 999 hosts at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub station: Vec<StationSpec>,
}

/// Stations that receive at one rate. Packets of other hosts are those of one more station, at the link's `rate`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationSpec {
    /// Their hosts, each a station: `5` or `1..30`, by `peer` of `[[traffic]]`.
    pub peer: Text<Numbers>,
    /// The rate at which each receives, 1mbit … the link's `rate`.
    pub rate: Text<Rate>,
}

impl Default for WifiSpec {
    fn default() -> Self {
        let Air { overhead, frames, bytes, longest } = Air::default();
        let (overhead, longest) = (Text(overhead), Text(longest));
        let (schedule, driver, quantum) = Default::default();
        Self { schedule, driver, quantum, overhead, frames, bytes, longest, station: Vec::new() }
    }
}

const QUANTUM: Duration = Duration::from_micros(300);
/// The lowest rate of 802.11.
const SLOWEST: Rate = Rate::from_mbit(1);
/// With the station of all other hosts.
const MOST_STATIONS: usize = 1000;

impl WifiSpec {
    /// Checks it, of a link of this `rate`, and fills in what follows from the schedule; `at` is its key.
    pub(crate) fn resolve(&mut self, at: &str, rate: Rate) -> Result<(), Complaint> {
        let key = |field: &str| format!("{at}.{field}");
        let refused = |field: &str, allowed: &str| Err(Complaint::new(key(field), allowed));
        if self.driver.is_some() && self.schedule != ScheduleName::Fifo {
            return refused("driver", "only with schedule = \"fifo\"");
        }
        if self.quantum.is_some() && self.schedule != ScheduleName::Airtime {
            return refused("quantum", "only with schedule = \"airtime\"");
        }
        match self.schedule {
            ScheduleName::Fifo => _ = self.driver.get_or_insert(1),
            ScheduleName::Turns => {}
            ScheduleName::Airtime => _ = self.quantum.get_or_insert(Text(QUANTUM)),
        }
        let (least, most) = (Duration::from_micros(10), Duration::from_millis(100));
        within(key("driver"), self.driver.unwrap_or(1), 1..=4096)?;
        within(key("quantum"), self.quantum.map_or(QUANTUM, |q| q.0), least..=most)?;
        within(key("overhead"), self.overhead.0, Duration::ZERO..=most)?;
        within(key("frames"), self.frames, 1..=1024)?;
        within(key("bytes"), self.bytes, 1..=8_388_607)?;
        within(key("longest"), self.longest.0, least..=most)?;
        let mut taken = vec![false; Label::HOSTS.into()];
        for (n, StationSpec { peer, rate: own }) in self.station.iter().enumerate() {
            let key = |field: &str| format!("{at}.station[{n}].{field}");
            let Text(Numbers { from, to }) = *peer;
            if to >= Label::HOSTS {
                return Err(Complaint::new(key("peer"), format!("0 … {}", Label::HOSTS - 1)));
            }
            let hosts = &mut taken[usize::from(from)..=usize::from(to)];
            if hosts.contains(&true) {
                return Err(Complaint::new(key("peer"), "hosts that no station before it has"));
            }
            hosts.fill(true);
            if !(SLOWEST..=rate).contains(&own.0) {
                let allowed = format!("1mbit … {rate}, the rate of the link");
                return Err(Complaint::new(key("rate"), allowed));
            }
        }
        if self.stations(rate).len() > MOST_STATIONS {
            return refused("station", &format!("{} hosts at most", MOST_STATIONS - 1));
        }
        Ok(())
    }

    /// Refuses stations for which there is no traffic; `hosts` are those of all groups. A mistyped host would be one
    /// of all others.
    pub(crate) fn check_hosts(&self, at: &str, hosts: &BTreeSet<u16>) -> Result<(), Complaint> {
        for (n, StationSpec { peer: Text(Numbers { from, to }), .. }) in (0..).zip(&self.station) {
            if hosts.range(from..=to).next().is_none() {
                let names: Vec<_> = hosts.iter().map(u16::to_string).collect();
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                let hint = did_you_mean(&from.to_string(), names.iter().copied());
                let key = format!("{at}.station[{n}].peer");
                let problem = Complaint::wrong(key, "no [[traffic]] has such a peer or host");
                return Err(problem.allowed(some_of(&names)).hint(hint));
            }
        }
        Ok(())
    }

    /// All stations, over a link of this `rate`; the last one is that of all other hosts.
    pub(crate) fn stations(&self, rate: Rate) -> Vec<Station> {
        let of = |spec: &StationSpec| {
            let (Text(Numbers { from, to }), Text(rate)) = (spec.peer, spec.rate);
            (from..=to).map(move |peer| Station { peer: Some(peer), rate })
        };
        self.station.iter().flat_map(of).chain([Station { peer: None, rate }]).collect()
    }

    /// How many queues there are, over a link of this `rate`.
    pub(crate) fn queues(&self, rate: Rate) -> u64 {
        if self.schedule == ScheduleName::Fifo { 1 } else { self.stations(rate).len() as u64 }
    }

    /// How it sends.
    pub(crate) fn air(&self) -> Air {
        Air {
            overhead: self.overhead.0,
            frames: self.frames,
            bytes: self.bytes,
            longest: self.longest.0,
        }
    }

    /// How stations share that.
    pub(crate) fn schedule(&self) -> Schedule {
        match self.schedule {
            ScheduleName::Fifo => Schedule::Fifo(self.driver.unwrap_or(1)),
            ScheduleName::Turns => Schedule::Turns,
            ScheduleName::Airtime => Schedule::Airtime(self.quantum.map_or(QUANTUM, |q| q.0)),
        }
    }
}

fn within<T: PartialOrd + Display>(
    key: String,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), Complaint> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(Complaint::new(key, format!("{} … {}", range.start(), range.end()))),
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    const FILE: &str = r#"
duration = "1s"
[[link]]
from = "ap"
to = "home"
rate = "100mbit"
delay = "1ms"
duplex = false
wifi = { schedule = "airtime", station = [{ peer = "1", rate = "6mbit" }, { peer = "2..9", rate = "50mbit" }] }
[[link]]
from = "home"
to = "ap"
rate = "100mbit"
delay = "1ms"
duplex = false
[[queue]]
link = "ap->home"
aqm = "fq-codel"
buffer = "100p"
[[traffic]]
name = "call"
from = ["ap"]
to = ["home"]
transport = "cubic"
peer = 1
[[traffic]]
from = ["home"]
to = ["ap"]
transport = "cubic"
host = 3
"#;

    #[test]
    fn what_is_wrong_is_told_with_its_key() {
        let scenario = Scenario::from_toml(FILE, "x").unwrap();
        assert!(scenario.to_toml().contains("quantum = \"300us\""), "{}", scenario.to_toml());
        let fifo = FILE.replacen("\"airtime\"", "\"fifo\"", 1);
        let fifo = Scenario::from_toml(&fifo, "x").unwrap().to_toml();
        assert!(fifo.contains("driver = 1") && !fifo.contains("300us"), "{fifo}");
        assert_eq!(Scenario::from_toml(&scenario.to_toml(), "x").unwrap(), scenario);
        let event = "[[event]]\nwhen = { flow = \"call\", enters = \"recovery\" }\n\
                     set = { \"link.0.rate\" = \"20mbit\" }\n[[traffic]]";
        let switch = "[[switch]]\nname = \"ap\"\nbuffer = \"1MB\"\n[[traffic]]";
        let class = "[[queue.class]]\nname = \"all\"\nrate = \"5mbit\"\n[[traffic]]";
        for (old, new, told) in [
            ("duplex = false\nwifi", "wifi", "link[0].duplex: not allowed"),
            ("wifi =", "framing = \"ethernet\"\nwifi =", "link[0].framing = \"ethernet\": not"),
            ("wifi =", "rate_trace = { model = \"leo\", mean = \"9mbit\" }\nwifi =", "rate_trace"),
            ("\"airtime\"", "\"fair\"", "allowed: fifo, turns, airtime"),
            ("\"airtime\"", "\"airtime\", driver = 2", "only with schedule = \"fifo\""),
            ("\"airtime\"", "\"fifo\", quantum = \"1ms\"", "only with schedule = \"airtime\""),
            ("\"airtime\"", "\"fifo\", driver = 0", "1 … 4096"),
            ("\"airtime\"", "\"airtime\", quantum = \"1us\"", "10us … 100ms"),
            ("\"airtime\"", "\"airtime\", overhead = \"1s\"", "0s … 100ms"),
            ("\"airtime\"", "\"airtime\", frames = 0", "1 … 1024"),
            ("\"airtime\"", "\"airtime\", bytes = 0", "1 … 8388607"),
            ("\"airtime\"", "\"airtime\", longest = \"1s\"", "10us … 100ms"),
            ("\"airtime\"", "\"airtime\", frame = 1", "did you mean `frames`?"),
            (
                "\"2..9\"",
                "\"11\"",
                "link[0].wifi.station[1].peer = \"11\": no [[traffic]] has such a peer or host; \
                 allowed: 0, 1, 3\nhint: did you mean `1`?",
            ),
            ("\"1\"", "1", "0..999\nhint: in quotes: \"1\""),
            ("\"airtime\"", "\"fifo\", driver = \"2\"", "allowed: a whole number"),
            ("\"2..9\"", "\"1..9\"", "link[0].wifi.station[1].peer"),
            ("\"2..9\"", "\"2..9000\"", "0 … 8191"),
            ("\"2..9\"", "\"2..2000\"", "999 hosts at most"),
            ("\"50mbit\"", "\"101mbit\"", "1mbit … 100mbit, the rate of the link"),
            ("\"6mbit\"", "\"900kbit\"", "1mbit … 100mbit, the rate of the link"),
            ("ap->home", "home->ap", "ap->home has wifi and no queue\nhint: [[queue]] with link"),
            ("buffer =", "translated = \"peer\"\nbuffer =", "queue[0].translated"),
            ("buffer =", "told_rate = true\nbuffer =", "queue[0].told_rate"),
            ("[[traffic]]", class, "queue[0].class"),
            ("[[traffic]]", switch, "a node without wifi on a link out\nhint: ap->home has wifi"),
            ("[[traffic]]", event, "the rate of a link without wifi"),
        ] {
            let text = FILE.replacen(old, new, 1);
            assert_ne!(text, FILE);
            let error = Scenario::from_toml(&text, "x").unwrap_err().to_string();
            assert!(error.contains(told), "{told}\nin: {error}");
        }
    }
}
