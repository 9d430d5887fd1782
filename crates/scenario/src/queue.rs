//! Managed queues: the algorithm by name, its parameters, its room.

use std::collections::BTreeMap;
use std::iter;

use aqm::any::{BuildError, FILTERS, SHAPER, canonical, canonical_filter, canonical_shaper};
use aqm::docsis::Docsis;
use aqm::fair::htb::{Htb, Sorting, TreeError};
use aqm::fair::wifi::Wifi;
use aqm::tuned::Settings;
use aqm::units::Size;
use aqm::{
    About, AnyQdisc, CATALOG, Carried, Duration, Env, Instant, Label, Limit, Qdisc as _, Rng,
};
use link::Sending;
use link::varying::{LEAST_TOLD, told};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Files;
use crate::classes::{ClassSpec, Classes, expand};
use crate::elsewhere;
use crate::error::{Complaint, meant, meant_parameter};
use crate::network::{Edge, ScheduleName, Topology, WifiSpec};
use crate::own::{Class, Role, parts, provider, resolve};
use crate::parameter::Parameter;
use crate::text::Text;

/// A managed queue on one direction of a link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// The link, as `A->B`; without it the bottleneck of the preset, and if it has several, each; in a
    /// fabric each port of each switch. A `*` stands for any text, so that `c*->*` is each link from a
    /// node whose name begins with `c`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The algorithm; `bluewater list` names them. Your own class in Python is `python:FILE:CLASS`, from
    /// the scenario's folder.
    pub aqm: String,
    /// The text of that file, in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Room: bytes (`200kB`), packets (`100p`), or bandwidth–delay products (`1.5bdp`).
    pub buffer: Text<Size>,
    /// The algorithm's parameters; `bluewater explain AQM` lists them.
    #[serde(default)]
    pub params: BTreeMap<String, Parameter>,
    /// A filter before the queue; `policer` is a token bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefilter: Option<String>,
    /// The filter's parameters; `bluewater explain policer` lists them, and `red-pd` those before RED's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prefilter_params: BTreeMap<String, Parameter>,
    /// Whether the codepoints (DSCP) of packets are cleared behind the queue, as by `wash` of `tc cake`:
    /// queues that come after it see none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wash: bool,
    /// Hosts that are behind an address translator, whose address all their packets have in this queue:
    /// those that send (`host`) on the way out, those that receive (`peer`) on the way in. It is as
    /// `tc cake` without `nat`. Otherwise the queue sees each host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translated: Option<Translated>,
    /// A token bucket behind the queue, which holds packets back: `{ rate = "10mbit", burst = "30kB" }`.
    /// `bluewater explain tbf` lists its parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shaper: BTreeMap<String, Parameter>,
    /// A tree of classes (HTB), of which each leaf has a queue with this `aqm` and `buffer`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class: Vec<ClassSpec>,
    /// Whether the algorithm knows each new rate of a link with `rate_trace`; otherwise it only sees its
    /// departures, as in reality.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_rate: bool,
    /// Parameters that change during the run, as by `tc qdisc change`. Packets stay in the queue, and the
    /// algorithm goes on from what it has learned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub change: Vec<ChangeSpec>,
}

/// Parameters that a queue has from a time on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// When, from the start of the run. It comes before all else that happens then.
    pub at: Text<Duration>,
    /// Their values; `bluewater explain AQM` lists which may change.
    pub params: BTreeMap<String, Parameter>,
}

/// The hosts behind an address translator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Translated {
    /// Those that send.
    Host,
    /// Those that receive.
    Peer,
}

/// The queues, checked, each with its link: one that names none is meant for every bottleneck.
pub(crate) fn expand_queues(
    specs: Vec<QueueSpec>,
    topology: &Topology,
) -> Result<Vec<QueueSpec>, Complaint> {
    let mut managed = vec![false; topology.links.len()];
    let mut queues = Vec::new();
    for (i, mut queue) in specs.into_iter().enumerate() {
        let key = |field: &str| format!("queue[{i}].{field}");
        if let Some(n) = queue.class.iter().position(|class| !class.address.is_empty()) {
            let only = Complaint::wrong(key(&format!("class[{n}].address")), "only in the gateway");
            return Err(only.hint("host and peer are the numbers of hosts in [[traffic]]"));
        }
        queue.check(i)?;
        for link in topology.find_links(queue.link.as_deref(), &key("link"))? {
            if std::mem::replace(&mut managed[link], true) {
                let allowed = "one queue on each direction of a link";
                return Err(Complaint::new(key("link"), allowed)
                    .hint(format!("{} has a queue already", topology.link_name(link))));
            }
            if queue.told_rate && queue.has_a_rate_of_its_own() {
                let allowed = "none with told_rate";
                return Err(Complaint::new(key("params.shared_rate"), allowed).hint(FOLLOWS));
            }
            if let Some(wifi) = &topology.links[link].wifi {
                queue.check_wifi(i, wifi)?;
            }
            if topology.links[link].docsis.is_some() {
                queue.check_docsis(i)?;
            }
            match &topology.links[link].sending.rates {
                None if queue.told_rate => {
                    let name = topology.link_name(link);
                    return Err(Complaint::new(key("told_rate"), "only on a link with rate_trace")
                        .hint(format!(
                            "the rate of {name} does not vary, and its queue knows it"
                        )));
                }
                Some(rates) if queue.told_rate && rates.least_gap() < LEAST_TOLD => {
                    let allowed = "only of rates that hold for at least 1ms";
                    return Err(Complaint::new(key("told_rate"), allowed));
                }
                _ => {}
            }
            queue.link = Some(topology.link_name(link));
            queue
                .limit(topology, link)
                .map_err(|allowed| Complaint::new(key("buffer"), allowed))?;
            queues.push(queue.clone());
        }
    }
    let bare =
        |link: usize| topology.links[link].medium().filter(|_| !managed[link]).zip(Some(link));
    if let Some((medium, link)) = (0..managed.len()).find_map(bare) {
        let name = topology.link_name(link);
        let problem = format!("{name} has {medium} and no queue");
        return Err(
            Complaint::wrong("queue", problem).hint(format!("[[queue]] with link = \"{name}\""))
        );
    }
    Ok(queues)
}

/// Why a queue cannot have a rate of its own where it learns that of its link.
pub(crate) const FOLLOWS: &str =
    "without shared_rate the transmit queues share the link's rate, and follow it";

/// Parameters as an algorithm takes them.
pub(crate) fn texts(params: &BTreeMap<String, Parameter>) -> Vec<(&str, String)> {
    params.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect()
}

pub(crate) fn pairs<'a>(texts: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    texts.iter().map(|(name, text)| (*name, text.as_str())).collect()
}

impl QueueSpec {
    /// Reads the file of an algorithm in Python, and keeps its text.
    pub(crate) fn resolve(&mut self, i: usize, files: &mut dyn Files) -> Result<(), Complaint> {
        resolve(Role::Aqm, &format!("queue[{i}]"), &mut self.aqm, &mut self.code, files)?;
        Ok(())
    }

    /// Whether it shapes at a rate that does not follow that of its link.
    pub(crate) fn has_a_rate_of_its_own(&self) -> bool {
        let mut all = iter::once(&self.params).chain(self.class.iter().map(|class| &class.params));
        let given = |params: &BTreeMap<String, Parameter>| params.get("shared_rate").cloned();
        all.any(|params| given(params).is_some_and(|rate| rate.to_string() != "none"))
    }

    /// The class, if the algorithm is one in Python.
    fn class(&self) -> Option<Class<'_>> {
        let (file, name) = parts(&self.aqm)?;
        Some(Class { role: Role::Aqm, file, name, code: self.code.as_deref()? })
    }

    /// All parameters with `settings` over the defaults, of an algorithm of either kind.
    fn canonical(
        &self,
        i: usize,
        settings: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, Complaint> {
        match self.class() {
            Some(class) => {
                let own = provider(Role::Aqm);
                own.and_then(|own| own.canonical(class, settings)).map_err(|c| within(i, c))
            }
            None => canonical(&self.aqm, settings)
                .map(|all| all.into_iter().map(|(name, text)| (name.into(), text)).collect())
                .map_err(|e| self.complaint(i, e)),
        }
    }

    /// Whether it asks for codepoints and hosts of packets.
    pub fn asks_for_labels(&self) -> bool {
        let given = |name: &str| self.params.get(name).map(Parameter::to_string);
        let asks = || About::of(&self.aqm).is_some_and(|about| about.reads_labels(given));
        !self.class.is_empty() || asks()
    }

    /// The bits of a packet's key that it does not see.
    pub fn hidden(&self) -> u64 {
        let [_, host, peer] = Label::FIELDS;
        match self.translated {
            None => 0,
            Some(Translated::Host) => host,
            Some(Translated::Peer) => peer,
        }
    }

    /// The classes of its tree.
    pub(crate) fn classes(&self, i: usize) -> Result<Classes, Complaint> {
        expand(&self.class, |n, key| format!("queue[{i}].class[{n}].{key}"))
    }

    /// A queue and nothing else.
    pub(crate) fn new(aqm: &str, buffer: Text<Size>, params: BTreeMap<String, Parameter>) -> Self {
        Self {
            link: None,
            aqm: aqm.into(),
            code: None,
            buffer,
            params,
            prefilter: None,
            prefilter_params: BTreeMap::new(),
            wash: false,
            translated: None,
            shaper: BTreeMap::new(),
            class: Vec::new(),
            told_rate: false,
            change: Vec::new(),
        }
    }

    /// The names of the classes of its tree; one of many has its number behind the name, as in `circuit[7]`.
    pub fn class_names(&self) -> Vec<String> {
        self.classes(0).map(|classes| classes.names).unwrap_or_default()
    }

    /// An entry of its classes, as a queue.
    fn of_class(&self, entry: usize) -> Self {
        let class = &self.class[entry];
        let (aqm, params) = match &class.aqm {
            Some(aqm) => (aqm.clone(), class.params.clone()),
            None => (self.aqm.clone(), self.params.clone()),
        };
        Self { code: self.code.clone(), ..Self::new(&aqm, self.buffer, params) }
    }

    /// Checks the algorithm and its parameters, and those of a filter, and writes out their defaults.
    pub(crate) fn check(&mut self, i: usize) -> Result<(), Complaint> {
        if !self.class.is_empty() {
            self.classes(i)?;
        }
        for entry in 0..self.class.len() {
            let key = format!("queue[{i}].class[{entry}].");
            if self.class[entry].aqm.is_some() {
                let mut leaf = self.of_class(entry);
                leaf.check(i).map_err(|c| renamed(c, i, &key))?;
                self.class[entry].params = leaf.params;
            } else if !self.class[entry].params.is_empty() {
                return Err(Complaint::wrong(format!("{key}aqm"), "needed by its parameters"));
            }
        }
        if let Some(class) = self
            .class
            .iter()
            .position(|class| class.aqm.as_ref().is_some_and(|aqm| parts(aqm).is_some()))
        {
            let key = format!("queue[{i}].class[{class}].aqm");
            return Err(Complaint::new(key, "a discipline of the library, not a class in Python"));
        }
        let own = |all: Vec<(&str, String)>| {
            all.into_iter().map(|(name, text)| (name.to_string(), typed(text))).collect()
        };
        let all = self.canonical(i, &pairs(&texts(&self.params)))?;
        self.params = all.into_iter().map(|(name, text)| (name, typed(text))).collect();
        if let Some(filter) = &self.prefilter {
            self.prefilter_params =
                canonical_filter(filter, &pairs(&texts(&self.prefilter_params)))
                    .map(own)
                    .map_err(|e| self.filter_complaint(i, e))?;
        } else if !self.prefilter_params.is_empty() {
            let key = format!("queue[{i}].prefilter");
            return Err(Complaint::wrong(key, "needed by its parameters"));
        }
        if !self.shaper.is_empty() {
            self.shaper = canonical_shaper(&pairs(&texts(&self.shaper)))
                .map(own)
                .map_err(|e| shaper_complaint(i, e))?;
        }
        self.check_changes(i)
    }

    /// Checks the times of changes, and that the algorithm can make them while it runs.
    fn check_changes(&self, i: usize) -> Result<(), Complaint> {
        if self.change.is_empty() {
            return Ok(());
        }
        let Some(about) = About::of(&self.aqm).filter(|_| self.class.is_empty()) else {
            let allowed = "only for a discipline of the library without classes";
            return Err(Complaint::new(format!("queue[{i}].change"), allowed));
        };
        let allowed = match about.live {
            [] => format!("{} has no parameter that changes during a run", about.name),
            live => format!("during a run, of {} only {}", about.name, live.join(", ")),
        };
        let mut last = Duration::ZERO;
        for (n, change) in self.change.iter().enumerate() {
            if change.at.0 < last {
                let key = format!("queue[{i}].change[{n}].at");
                return Err(Complaint::new(key, format!("{last} or later: changes are in order")));
            }
            last = change.at.0;
            if change.params.is_empty() {
                let key = format!("queue[{i}].change[{n}].params");
                return Err(Complaint::new(key, "at least one parameter"));
            }
            if let Some(fixed) = change.params.keys().find(|name| !about.live.contains(&&name[..]))
            {
                let key = format!("queue[{i}].change[{n}].params.{fixed}");
                return Err(Complaint::new(key, allowed).hint(meant(fixed, about.live)));
            }
        }
        Ok(())
    }

    /// All parameters from each change on.
    fn changes(&self) -> Vec<(Instant, Settings)> {
        let mut params = self.params.clone();
        let after = |change: &ChangeSpec| {
            params.extend(change.params.clone());
            let all = params.iter().map(|(name, value)| (name.clone(), value.to_string()));
            (Instant::ZERO + change.at.0, all.collect())
        };
        self.change.iter().map(after).collect()
    }

    /// The queue, empty, over a link that sends as `sending` says; `i` is its number in the file.
    ///
    /// # Errors
    /// Parameters that do not fit together or with the buffer.
    pub fn build<P: Carried>(
        &self,
        i: usize,
        env: &Env,
        sending: &Sending,
        rng: &mut Rng,
    ) -> Result<AnyQdisc<P>, Complaint> {
        let mut queue = if self.class.is_empty() {
            self.alone(i, env, rng)?
        } else {
            self.tree(i, None, env, rng)?
        };
        if !self.change.is_empty() {
            queue = queue.tuned(&self.aqm, env, self.changes()).map_err(|(n, e)| {
                let key = format!("queue[{i}].change[{n}].");
                complaint(&key, ["aqm", "params"], &self.aqm, CATALOG, e)
            })?;
        }
        if let Some(filter) = &self.prefilter {
            queue = queue
                .filtered(filter, &pairs(&texts(&self.prefilter_params)), env, rng)
                .map_err(|e| self.filter_complaint(i, e))?;
        }
        if !self.shaper.is_empty() {
            queue = queue
                .shaped(&pairs(&texts(&self.shaper)), env)
                .map_err(|e| shaper_complaint(i, e))?;
        }
        Ok(match &sending.rates {
            Some(rates) if self.told_rate => queue.with_rates(env, told(rates)),
            _ => queue,
        })
    }

    /// As [`QueueSpec::build`], of an access point or a cable modem if one sends over the link.
    ///
    /// # Errors
    /// As there.
    pub fn build_over<P: Carried>(
        &self,
        i: usize,
        env: &Env,
        edge: &Edge,
        rng: &mut Rng,
    ) -> Result<AnyQdisc<P>, Complaint> {
        let mut queue = |env: Env| self.build(i, &env, &edge.sending, rng);
        if let Some(docsis) = &edge.docsis {
            let modem = Docsis::around(queue(*env)?, docsis.upstream(edge.delay), env);
            let modem = modem.map_err(|e| {
                Complaint::new(format!("docsis.{}", e.key), e.allowed).hint("of the queue's link")
            })?;
            return Ok(AnyQdisc::Docsis(Box::new(modem)));
        }
        let Some(wifi) = &edge.wifi else { return queue(*env) };
        let stations = wifi.stations(edge.rate);
        let wifi = Wifi::new(wifi.air(), wifi.schedule(), &stations, env, queue)?;
        Ok(AnyQdisc::Wifi(Box::new(wifi)))
    }

    /// Refuses what the queue of an access point cannot be.
    fn check_wifi(&self, i: usize, wifi: &WifiSpec) -> Result<(), Complaint> {
        let refused = |field: &str, allowed: &str| {
            Err(Complaint::new(format!("queue[{i}].{field}"), allowed))
        };
        if self.translated.is_some() {
            return refused("translated", "not on a link with wifi, which knows stations by hosts");
        }
        if !self.class.is_empty() && wifi.schedule != ScheduleName::Fifo {
            return refused("class", "on a link with wifi, only with schedule = \"fifo\"");
        }
        Ok(())
    }

    /// Refuses what holds back packets that a cable modem has requested.
    fn check_docsis(&self, i: usize) -> Result<(), Complaint> {
        for (field, given) in
            [("shaper", !self.shaper.is_empty()), ("class", !self.class.is_empty())]
        {
            if given {
                let problem =
                    Complaint::new(format!("queue[{i}].{field}"), "not on a link with docsis");
                return Err(problem.hint("the link's `rate` is the modem's"));
            }
        }
        Ok(())
    }

    /// A queue with its algorithm.
    fn alone<P: Carried>(
        &self,
        i: usize,
        env: &Env,
        rng: &mut Rng,
    ) -> Result<AnyQdisc<P>, Complaint> {
        let given = texts(&self.params);
        match self.class() {
            Some(class) => provider(Role::Aqm)
                .and_then(|own| own.build(class, &pairs(&given), env))
                .map(|advice| AnyQdisc::own(advice, env))
                .map_err(|c| within(i, c)),
            None => AnyQdisc::build(&self.aqm, &pairs(&given), env, rng)
                .map_err(|e| self.complaint(i, e)),
        }
    }

    /// A tree of classes, each of whose leaves has such a queue; packets are sorted by the rules of the
    /// classes if nothing else is wanted.
    pub(crate) fn tree<P: Carried>(
        &self,
        i: usize,
        sorting: Option<Sorting<'_>>,
        env: &Env,
        rng: &mut Rng,
    ) -> Result<AnyQdisc<P>, Complaint> {
        let Classes { classes, entries, rules, .. } = self.classes(i)?;
        let key = |class: usize| format!("queue[{i}].class[{}].", entries[class]);
        let mut bytes = 0u64;
        let queue = |class: usize, env: &Env| {
            let leaf = self.of_class(entries[class]);
            let queue: AnyQdisc<P> = leaf.alone(i, env, rng).map_err(|c| {
                if self.class[entries[class]].aqm.is_some() {
                    renamed(c, i, &key(class))
                } else {
                    c
                }
            })?;
            let state = queue.state();
            let flows = state.flows.saturating_mul(state.per_flow);
            bytes = bytes.saturating_add(state.queue).saturating_add(flows);
            if bytes > MOST_OF_CLASSES {
                let problem = format!(
                    "the disciplines of classes need more than {} GB",
                    MOST_OF_CLASSES >> 30
                );
                let hint = "fewer classes, or disciplines with fewer queues";
                return Err(Complaint::wrong(format!("queue[{i}].class"), problem).hint(hint));
            }
            Ok(queue)
        };
        let wrong = |e: TreeError| {
            let name = &self.class[entries[e.class]].name;
            let of = format!("this is the class {name}");
            Complaint::new(format!("{}{}", key(e.class), e.key), e.allowed).hint(of)
        };
        let sorting = sorting.unwrap_or(Sorting::Rules(&rules));
        Htb::new(&classes, sorting, env, wrong, queue).map(AnyQdisc::tree)
    }

    /// How many parameters are not at their defaults, with those of a filter.
    pub fn parameters_set(&self) -> u64 {
        let set = |name: &str, default: &str, params: &BTreeMap<String, Parameter>| {
            params.get(name).is_some_and(|value| value.to_string() != *default)
        };
        let own = self.canonical(0, &[]).unwrap_or_default();
        let filter = self.prefilter.as_deref().map(|name| canonical_filter(name, &[]));
        let filter = filter.and_then(Result::ok).unwrap_or_default();
        let shaper = canonical_shaper(&[]).unwrap_or_default();
        let shaped = shaper.iter().filter(|(name, text)| set(name, text, &self.shaper)).count();
        let changed = shaped
            + own.iter().filter(|(name, text)| set(name, text, &self.params)).count()
            + filter.iter().filter(|(name, text)| set(name, text, &self.prefilter_params)).count();
        changed as u64
    }

    /// An error of the algorithm, as a complaint about the key that caused it.
    fn complaint(&self, i: usize, error: BuildError) -> Complaint {
        complaint(&format!("queue[{i}]."), ["aqm", "params"], &self.aqm, CATALOG, error)
    }

    /// An error of the filter, in the same way.
    fn filter_complaint(&self, i: usize, error: BuildError) -> Complaint {
        let name = self.prefilter.as_deref().unwrap_or_default();
        let keys = ["prefilter", "prefilter_params"];
        complaint(&format!("queue[{i}]."), keys, name, FILTERS, error)
    }

    /// The buffer of the queue on `link`, in packets or bytes.
    ///
    /// # Errors
    /// What is allowed, in words.
    pub fn limit(&self, topology: &Topology, link: usize) -> Result<Limit, String> {
        let bytes = match self.buffer.0 {
            Size::Packets(n) => {
                return Limit::packets(n).ok_or_else(|| format!("1p … {}p", Limit::MAX_PACKETS));
            }
            Size::Bytes(n) => n,
            Size::Bdp(multiple) => {
                let rtt = topology
                    .base_rtt()
                    .ok_or("bytes or packets: bdp is of a dumbbell or a chain")?;
                if rtt == Duration::ZERO {
                    return Err("bytes or packets: the base round trip is 0s".into());
                }
                let rate = topology.links[link].rate.bits_per_second() as f64;
                (multiple * rate / 8.0 * rtt.as_secs_f64()) as u64
            }
            Size::OfBuffer(_) => {
                return Err("bytes (200kB), packets (100p) or 1.5bdp".into());
            }
        };
        Limit::bytes(bytes).ok_or_else(|| {
            format!(
                "{}B (one packet) … {}B",
                Limit::MIN_PACKET,
                Limit::MIN_PACKET * u64::from(Limit::MAX_PACKETS)
            )
        })
    }
}

/// The most that the disciplines of a tree's leaves may remember, bytes.
const MOST_OF_CLASSES: u64 = 2 << 30;

/// A complaint about queue `i`, about a class of it.
fn renamed(complaint: Complaint, i: usize, class: &str) -> Complaint {
    let key = complaint.key.replace(&format!("queue[{i}]."), class);
    Complaint { key, ..complaint }
}

/// An error of the shaper of queue `i`.
fn shaper_complaint(i: usize, error: BuildError) -> Complaint {
    complaint(&format!("queue[{i}]."), ["shaper", "shaper"], SHAPER.name, &[SHAPER], error)
}

/// A complaint about queue `i` of the file.
fn within(i: usize, complaint: Complaint) -> Complaint {
    Complaint { key: format!("queue[{i}].{}", complaint.key), ..complaint }
}

/// An error of the algorithm `name`, one of `all`, that is chosen by the first of the `keys` behind
/// `queue` and has its parameters in the second.
pub(crate) fn complaint(
    queue: &str,
    [choice, params]: [&str; 2],
    name: &str,
    all: &[About],
    error: BuildError,
) -> Complaint {
    let parameter = |name: &str| format!("{queue}{params}.{name}");
    match error {
        BuildError::UnknownAqm => {
            let names: Vec<_> = all.iter().map(|about| about.name).collect();
            let hint = elsewhere::class(name).unwrap_or_else(|| meant(name, &names));
            Complaint::new(format!("{queue}{choice}"), names.join(", ")).hint(hint)
        }
        BuildError::UnknownParameter(unknown) => {
            let table = |about: &About| (about.parameters)();
            let own = all.iter().find(|about| about.name == name).map_or(vec![], table);
            let names: Vec<_> = own.iter().map(|p| p.name).collect();
            let allowed = if names.is_empty() {
                format!("{name} has no parameters")
            } else {
                format!("{name} has {}", names.join(", "))
            };
            let others = all.iter().filter(|about| table(about).iter().any(|p| p.name == unknown));
            let others: Vec<_> = others.map(|about| about.name).collect();
            let hint = match (elsewhere::hint(&unknown, &names), &others[..]) {
                (Some(hint), _) => hint,
                (None, []) => meant_parameter(&unknown, &names),
                (None, others) => format!("`{unknown}` is a parameter of {}", others.join(", ")),
            };
            Complaint::new(parameter(&unknown), allowed).hint(hint)
        }
        BuildError::Parameter(name, e) => Complaint::new(parameter(&name), e.allowed).hint(e.hint),
        BuildError::Config(e) => Complaint::new(parameter(e.key), e.allowed),
    }
}

/// Canonical text back to the kind of value that it looks like, so that numbers stay numbers.
pub(crate) fn typed(text: String) -> Parameter {
    if let Ok(flag) = text.parse() {
        Parameter::Flag(flag)
    } else if let Ok(n) = text.parse() {
        Parameter::Integer(n)
    } else if let Ok(x) = text.parse() {
        Parameter::Number(x)
    } else {
        Parameter::Text(text)
    }
}
