//! Autorate: an algorithm that sets the rates of shapers by what it measures of the line behind them.

use std::collections::BTreeMap;

use aqm::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Files;
use crate::error::{Complaint, did_you_mean};
use crate::limits::{LONGEST, MAX_SAMPLES, RATES};
use crate::network::Topology;
use crate::own::{Class, Role, parts, provider, resolve};
use crate::parameter::Parameter;
use crate::queue::{FOLLOWS, QueueSpec, pairs, texts, typed};
use crate::text::Text;
use crate::traffic::{TrafficSpec, Transport};

/// An algorithm that sets the rates of shapers during the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AutorateSpec {
    /// The algorithm by its name, such as `aimd`, or your own class in Python: `python:FILE:CLASS`, from the
    /// scenario's folder.
    pub algorithm: String,
    /// The text of that file, in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The algorithm's parameters.
    #[serde(default)]
    pub params: BTreeMap<String, Parameter>,
    /// Time between two steps of the algorithm, 1ms … 1h.
    #[serde(default = "period")]
    pub period: Text<Duration>,
    /// The `name` of the group of `[[traffic]]` whose round trips it sees: `cbr` with `echo = true`.
    pub probes: String,
    /// The shaper of the way down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<ShaperSpec>,
    /// The shaper of the way up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<ShaperSpec>,
}

/// A shaper whose rate changes: a link with a managed queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShaperSpec {
    /// The link, as `A->B`. Its `rate` is the base rate, with which the run begins.
    pub link: String,
    /// The lowest rate.
    pub least: Text<Rate>,
    /// The highest rate.
    pub most: Text<Rate>,
}

fn period() -> Text<Duration> {
    Text(Duration::from_millis(100))
}

impl AutorateSpec {
    /// Its shapers, down and up.
    pub fn shapers(&self) -> [Option<&ShaperSpec>; 2] {
        [self.down.as_ref(), self.up.as_ref()]
    }

    /// The class.
    pub fn class(&self) -> Option<Class<'_>> {
        let (file, name) = parts(&self.algorithm)?;
        Some(Class { role: Role::Autorate, file, name, code: self.code.as_deref()? })
    }

    /// Its parameters, as canonical text.
    pub fn settings(&self) -> Vec<(&str, String)> {
        texts(&self.params)
    }

    /// The number of the group of its probes.
    pub fn group(&self, traffic: &[TrafficSpec]) -> Option<usize> {
        traffic.iter().position(|spec| spec.group.name == self.probes)
    }

    /// Reads the text of its class, of entry number `i`.
    pub(crate) fn resolve(&mut self, i: usize, files: &mut dyn Files) -> Result<(), Complaint> {
        let at = format!("autorate[{i}]");
        if resolve(Role::Autorate, &at, &mut self.algorithm, &mut self.code, files)? {
            return Ok(());
        }
        let own = provider(Role::Autorate).map_err(|c| within(i, c))?;
        let (name, code) = own.built_in(&self.algorithm).map_err(|c| within(i, c))?;
        (self.algorithm, self.code) = (name, Some(code));
        Ok(())
    }

    /// Checks entry number `i`, and writes out the defaults of its parameters. `governed` has the links that
    /// have an algorithm.
    pub(crate) fn check(
        &mut self,
        i: usize,
        duration: Duration,
        (topology, queues, traffic): (&Topology, &[QueueSpec], &[TrafficSpec]),
        governed: &mut Vec<usize>,
    ) -> Result<(), Complaint> {
        let key = |field: &str| format!("autorate[{i}].{field}");
        let least = Duration::from_nanos(duration.as_nanos().div_ceil(MAX_SAMPLES));
        let least = least.max(Duration::from_millis(1));
        if !(least..=LONGEST).contains(&self.period.0) {
            return Err(Complaint::new(key("period"), format!("{least} … {LONGEST}")));
        }
        let echoes = |spec: &&TrafficSpec| matches!(&spec.transport, Transport::Cbr(c) if c.echo);
        let names: Vec<&str> =
            traffic.iter().filter(echoes).map(|spec| spec.group.name.as_str()).collect();
        if !names.contains(&self.probes.as_str()) {
            let hint = match names.is_empty() {
                true => "[[traffic]] with name, transport = \"cbr\" and echo = true".into(),
                false => did_you_mean(&self.probes, names.iter().copied()),
            };
            let allowed = "the name of a group of cbr with echo = true";
            return Err(Complaint::new(key("probes"), allowed).hint(hint));
        }
        if self.shapers() == [None, None] {
            let hint = "down = { link = \"box->home\", least = \"1mbit\", most = \"100mbit\" }";
            return Err(Complaint::new(key("down"), "down, up or both").hint(hint));
        }
        for (way, shaper) in ["down", "up"].into_iter().zip(self.shapers()) {
            let Some(shaper) = shaper else { continue };
            let link = shaper.check(&key(way), topology, queues)?;
            if governed.contains(&link) {
                let allowed = "a link that no other autorate changes";
                return Err(Complaint::new(format!("{}.link", key(way)), allowed));
            }
            governed.push(link);
        }
        let Some(class) = self.class() else { return Ok(()) };
        let all = provider(Role::Autorate)
            .and_then(|own| own.canonical(class, &pairs(&self.settings())))
            .map_err(|c| within(i, c))?;
        self.params = all.into_iter().map(|(name, text)| (name, typed(text))).collect();
        Ok(())
    }
}

impl ShaperSpec {
    /// Checks it; the number of its link.
    fn check(
        &self,
        key: &str,
        topology: &Topology,
        queues: &[QueueSpec],
    ) -> Result<usize, Complaint> {
        let at = format!("{key}.link");
        let link = topology.find_link(&self.link, &at)?;
        let edge = &topology.links[link];
        let Some(queue) = queues.iter().find(|queue| queue.link.as_ref() == Some(&self.link))
        else {
            return Err(Complaint::new(at, "a link with a [[queue]]"));
        };
        if queue.has_a_rate_of_its_own() {
            return Err(Complaint::new(at, "a link whose queue has no shared_rate").hint(FOLLOWS));
        }
        if edge.sending.rates.is_some() {
            let hint = "the line varies; the shaper is a link of its own before or behind it";
            return Err(Complaint::new(at, "a link without rate_trace").hint(hint));
        }
        if let Some(medium) = edge.medium() {
            return Err(Complaint::new(at, format!("a link without {medium}")));
        }
        let base = edge.rate;
        let (least, most) = (self.least.0, self.most.0);
        if least > base || least.bits_per_second() < *RATES.start() {
            let allowed = format!("1kbit … {base}, the rate of the link");
            return Err(Complaint::new(format!("{key}.least"), allowed));
        }
        if most < base || most.bits_per_second() > *RATES.end() {
            let allowed = format!("{base}, the rate of the link, … 100tbit");
            return Err(Complaint::new(format!("{key}.most"), allowed));
        }
        Ok(link)
    }
}

/// A complaint about entry `i`.
pub fn within(i: usize, complaint: Complaint) -> Complaint {
    Complaint { key: format!("autorate[{i}].{}", complaint.key), ..complaint }
}
