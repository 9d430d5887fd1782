//! What is carried: each application with its keys, their defaults, ranges and documentation.

use std::fmt;
use std::str::FromStr;

use aqm::units::{Size, TextError};
use aqm::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GroupSpec, Place, Spread};
use crate::error::Complaint;
use crate::limits::LONGEST;
use crate::text::{Quantity, Text, pairs};

/// What is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AppName {
    /// Always has data.
    Infinite,
    /// `size` bytes a flow.
    Finite,
    /// On and off periods of Pareto length.
    Pareto,
    /// On and off periods of exponential length.
    Exponential,
    /// `cbr` only: on and off periods of one fixed length.
    Periodic,
    /// Data at rates that change at given times.
    Schedule,
    /// Web sessions, one for each flow of the group. A session fetches a page of `objects` objects,
    /// then thinks, and so on. Each object has a connection of its own, `connections` at a time.
    /// Requests have 40 bytes and go the opposite way to the data.
    Web,
}

impl AppName {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Infinite => "infinite",
            Self::Finite => "finite",
            Self::Pareto => "pareto",
            Self::Exponential => "exponential",
            Self::Periodic => "periodic",
            Self::Schedule => "schedule",
            Self::Web => "web",
        }
    }
}

/// The keys of an application.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum App {
    /// More than can ever be sent.
    Infinite {},
    /// A transfer a flow.
    Finite(Finite),
    /// On and off periods of Pareto length.
    Pareto(Pareto),
    /// On and off periods of exponential length.
    Exponential(Exponential),
    /// On and off periods of one fixed length.
    Periodic(Periodic),
    /// At rates that change at given times.
    Schedule(Schedule),
    /// Web sessions.
    Web(Web),
}

/// Keys of `finite`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "finite")]
pub struct Finite {
    /// Bytes or packets of each flow; with `pareto` or `lognormal` of `sizes` their mean, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Text<Size>>,
    /// The distribution of sizes, by name or from a file, `{ file = "sizes.csv" }`. Each flow draws its
    /// own size; without this key all have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Spread>,
    /// The load that the flows offer on average. They begin as a Poisson process, from `start` on;
    /// flows due after the run's end do not begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Text<Rate>>,
}

/// Keys of `pareto`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "pareto")]
pub struct Pareto {
    /// Mean on period.
    pub on: Text<Duration>,
    /// Mean off period.
    pub off: Text<Duration>,
    /// Shape of the periods' lengths, above 1, at most 100.
    pub shape: f64,
    /// The rate while on; without it as fast as TCP can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Text<Rate>>,
    /// What becomes of data that is unsent when an on period ends.
    #[serde(default)]
    pub unsent: UnsentName,
}

/// Keys of `exponential`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "exponential")]
pub struct Exponential {
    /// Mean on period.
    pub on: Text<Duration>,
    /// Mean off period.
    pub off: Text<Duration>,
    /// The rate while on; without it as fast as TCP can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Text<Rate>>,
    /// What becomes of data that is unsent when an on period ends.
    #[serde(default)]
    pub unsent: UnsentName,
}

/// What becomes of data that was not sent when an on period ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnsentName {
    /// It is withdrawn: while off, nothing is offered.
    #[default]
    Withdraw,
    /// It fills an unbounded send buffer.
    Backlog,
}

/// Keys of `periodic`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "periodic")]
pub struct Periodic {
    /// Length of an on period; the first begins at `start`.
    pub on: Text<Duration>,
    /// Length of an off period.
    pub off: Text<Duration>,
}

/// Keys of `schedule`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "schedule")]
pub struct Schedule {
    /// Times since the flow's start, ascending from `0s`, and what is offered from each on: a rate, or `max`
    /// for as much as TCP can send. The next step withdraws data that is still unsent.
    #[serde(deserialize_with = "pairs")]
    pub steps: Vec<(Text<Duration>, Text<Offer>)>,
}

/// What an application offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// As much as can be sent.
    Max,
    /// A rate; `None` for nothing.
    Rate(Option<Rate>),
}

impl FromStr for Offer {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let number =
            text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '/').trim_end();
        if text == "max" {
            Ok(Self::Max)
        } else if !number.is_empty() && number.chars().all(|c| c == '0' || c == '.') {
            Ok(Self::Rate(None))
        } else {
            let refused = |e| TextError { allowed: Self::ABOUT, ..e };
            text.parse().map(|rate| Self::Rate(Some(rate))).map_err(refused)
        }
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Rate(None) => f.write_str("0bit"),
            Self::Rate(Some(rate)) => rate.fmt(f),
        }
    }
}

impl Quantity for Offer {
    const NAME: &'static str = "Offer";
    const ABOUT: &'static str = "a rate, 4mbit, 0bit for nothing, or max";
    const PATTERN: &'static str = r"^(max|\d+(\.\d+)? ?([kKmMgGtT]?bit(/s)?|[KMGT]bps|[kMG]?B/s))$";
}

/// Keys of `web`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "web")]
pub struct Web {
    /// The mean of an object.
    pub size: Text<Size>,
    /// Mean time to think, exponential.
    pub off: Text<Duration>,
    /// Shape of the objects' sizes, above 1, at most 100; without it all are of one size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
    /// Objects of a page, 1 … 1000.
    #[serde(default = "crate::defaults::one")]
    pub objects: u32,
    /// The most connections of a session at a time, 1 … `objects`. If not given: 4, or `objects` if
    /// that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u16>,
}

/// Bytes or packets that a web object may have in the mean.
const MOST_OBJECT: u64 = 1_000_000_000;

impl App {
    /// Checks what the types alone cannot.
    pub(super) fn check(&self, group: &GroupSpec, at: &Place) -> Result<(), Complaint> {
        match self {
            Self::Infinite {} => Ok(()),
            Self::Finite(finite) => finite.check(group, at),
            Self::Pareto(Pareto { on, off, shape, rate, unsent }) => {
                check_means(*on, *off, at)?;
                check_unsent(*unsent, *rate, at)?;
                check_shape(*shape, at)?;
                check_shortest([("on", *on), ("off", *off)], *shape, at)
            }
            Self::Exponential(Exponential { on, off, rate, unsent }) => {
                check_means(*on, *off, at)?;
                check_unsent(*unsent, *rate, at)
            }
            Self::Periodic(Periodic { on, off }) => {
                for (key, value) in [("on", on), ("off", off)] {
                    if !(Duration::from_nanos(1)..=LONGEST).contains(&value.0) {
                        return at.refuse(key, &format!("1ns … {LONGEST}"));
                    }
                }
                Ok(())
            }
            Self::Schedule(Schedule { steps }) => {
                let begins = steps.first().is_some_and(|step| step.0.0 == Duration::ZERO);
                let ascends = steps.is_sorted_by(|a, b| a.0.0 < b.0.0);
                let ends = steps.last().is_some_and(|step| step.0.0 <= LONGEST);
                if !(begins && ascends && ends) {
                    return at
                        .refuse("steps", &format!("times that ascend from 0s, up to {LONGEST}"));
                }
                Ok(())
            }
            Self::Web(web) => web.check(at),
        }
    }
}

impl Finite {
    /// The mean size in bytes, of flows in packets of `packet` bytes.
    pub fn mean(&self, packet: u16) -> f64 {
        match (self.sizes.as_ref().and_then(Spread::mean), self.size) {
            (Some(mean), _) => mean,
            (None, Some(Text(Size::Packets(n)))) => n as f64 * f64::from(packet),
            (None, Some(Text(Size::Bytes(n)))) => n as f64,
            _ => 0.0,
        }
    }

    fn check(&self, group: &GroupSpec, at: &Place) -> Result<(), Complaint> {
        let own_mean = self.sizes.as_ref().is_some_and(|sizes| sizes.mean().is_some());
        match self.size.map(|size| size.0) {
            None if own_mean => {}
            None => return Err(Complaint::wrong(at.key("size"), "needed by finite")),
            Some(_) if own_mean => {
                let refused = Complaint::new(at.key("size"), "without such sizes only");
                return Err(refused.hint("these sizes have a mean of their own: leave it out"));
            }
            Some(Size::Packets(_)) if self.sizes.is_some() => {
                return at.refuse("size", "a mean in bytes, beside sizes");
            }
            Some(Size::Bytes(1..) | Size::Packets(1..=0x7fff_ffff)) => {}
            Some(_) => return at.refuse("size", "1B and more, or 1p and more"),
        }
        let Some(Text(load)) = self.load else { return Ok(()) };
        let mean = self.mean(group.packet_bytes().unwrap_or(1));
        // The mean time between two flows is kept in whole nanoseconds.
        if mean * 8e9 / (load.bits_per_second() as f64) < LEAST_MEAN.as_nanos() as f64 {
            let allowed = format!("a load of which a flow begins each {LEAST_MEAN} at most");
            return Err(Complaint::new(at.key("load"), allowed).hint("larger sizes, or less load"));
        }
        if group.start.0.from != group.start.0.to {
            return at.refuse("start", "an instant: load says when flows begin");
        }
        if group.step.is_some() {
            return at.refuse("step", "without load only, which says when flows begin");
        }
        Ok(())
    }
}

impl Web {
    /// The most connections of a session at a time.
    pub fn most_connections(&self) -> u16 {
        self.connections.unwrap_or(4).min(self.objects.try_into().unwrap_or(u16::MAX))
    }

    fn check(&self, at: &Place) -> Result<(), Complaint> {
        if !matches!(self.size.0, Size::Bytes(1..=MOST_OBJECT) | Size::Packets(1..=MOST_OBJECT)) {
            return at.refuse("size", "the mean of an object, 1B … 1GB");
        }
        if self.off.0 == Duration::ZERO {
            return at.refuse("off", "a mean time to think above 0s");
        }
        self.shape.map_or(Ok(()), |shape| check_shape(shape, at))?;
        if !(1..=1000).contains(&self.objects) {
            return at.refuse("objects", "1 … 1000");
        }
        if self.connections.is_some_and(|n| !(1..=self.objects).contains(&n.into())) {
            return at
                .refuse("connections", &format!("1 … {}, the objects of a page", self.objects));
        }
        Ok(())
    }
}

/// The least mean of a period: below it a run would do nothing but begin and end periods.
const LEAST_MEAN: Duration = Duration::from_micros(1);

fn check_means(on: Text<Duration>, off: Text<Duration>, at: &Place) -> Result<(), Complaint> {
    for (key, value) in [("on", on), ("off", off)] {
        if value.0 < LEAST_MEAN {
            return at.refuse(key, &format!("a mean of {LEAST_MEAN} or more"));
        }
    }
    Ok(())
}

/// Most periods of a Pareto distribution are near the shortest, however long the mean.
fn check_shortest(
    means: [(&str, Text<Duration>); 2],
    shape: f64,
    at: &Place,
) -> Result<(), Complaint> {
    for (key, mean) in means {
        let least = LEAST_MEAN.as_nanos() as f64 / 10.0 * shape / (shape - 1.0);
        if (mean.0.as_nanos() as f64) < least {
            let least = Duration::from_nanos(least.ceil() as u64);
            let allowed = format!("a mean of {least} or more");
            let hint = format!("at shape {shape} most periods are far shorter than the mean");
            return Err(Complaint::new(at.key(key), allowed).hint(hint));
        }
    }
    Ok(())
}

/// Without a rate all that TCP can send is offered: there would be no end to what is kept.
fn check_unsent(unsent: UnsentName, rate: Option<Text<Rate>>, at: &Place) -> Result<(), Complaint> {
    if unsent == UnsentName::Backlog && rate.is_none() {
        let complaint = Complaint::new(at.key("unsent"), "\"withdraw\", or a rate beside it");
        return Err(complaint.hint("without a rate a source never runs out: nothing can be kept"));
    }
    Ok(())
}

fn check_shape(shape: f64, at: &Place) -> Result<(), Complaint> {
    if shape > 1.0 && shape <= 100.0 {
        Ok(())
    } else {
        at.refuse("shape", "above 1 (else there is no mean), at most 100")
    }
}
