//! What changes during a run when a congestion controller enters a phase.

use std::collections::BTreeMap;

use aqm::{Duration, Rate};
use link::impair::probability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Complaint, did_you_mean};
use crate::limits::{LONGEST, RATES};
use crate::network::LinkSpec;
use crate::text::Text;
use crate::traffic::{App, Offer, TcpName, TrafficSpec, Transport};

/// A change during the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// When it happens.
    pub when: When,
    /// What is changed, and to what: `"link.N.rate"`, `"link.N.loss"` or `"link.N.delay"` of entry N of
    /// `[[link]]`, from 0, both ways; `"traffic.N.rate"` of the flows of a `schedule`, up to its next step.
    pub set: BTreeMap<String, String>,
    /// The parsed changes of `set`.
    #[serde(skip)]
    pub changes: Vec<Change>,
}

/// When a change happens.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The `name` of a group of `[[traffic]]`, of which the first flow counts.
    pub flow: String,
    /// The phase that its congestion controller enters, as in the table `control`.
    pub enters: String,
    /// Which of its entries into the phase counts, from 1.
    #[serde(default = "crate::defaults::one")]
    pub nth: u32,
    /// Time from the entry to the change.
    #[serde(default = "crate::defaults::zero")]
    pub after: Text<Duration>,
}

/// A value that is changed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Change {
    /// The rate of an entry of `[[link]]`.
    Rate(usize, Rate),
    /// Its probability of loss, in place of `loss`.
    Loss(usize, f64),
    /// Its propagation delay.
    Delay(usize, Duration),
    /// What the flows of an entry of `[[traffic]]` offer.
    Offer(usize, Offer),
}

/// The phases of a transport over TCP.
const fn phases(name: TcpName) -> &'static [&'static str] {
    match name {
        TcpName::Bbr => &["startup", "drain", "down", "cruise", "refill", "up", "probe-rtt"],
        TcpName::Bbr1 => &["startup", "drain", "probe-bw", "probe-rtt"],
        _ => &["slow-start", "congestion-avoidance", "reduction", "recovery", "timeout"],
    }
}

impl EventSpec {
    /// Reads and checks event number `i`. Marks the `links` that it changes.
    pub(crate) fn resolve(
        &mut self,
        i: usize,
        links: &mut [LinkSpec],
        traffic: &[TrafficSpec],
    ) -> Result<(), Complaint> {
        let key = |field: &str| format!("event[{i}].{field}");
        let When { flow, enters, nth, after } = &self.when;
        let names: Vec<&str> = traffic.iter().map(|spec| spec.group.name.as_str()).collect();
        let Some(group) = traffic.iter().find(|spec| spec.group.name == *flow) else {
            let hint = did_you_mean(flow, names.iter().copied());
            return Err(Complaint::new(key("when.flow"), names.join(", ")).hint(hint));
        };
        let Transport::Tcp(tcp) = &group.transport else {
            return Err(Complaint::new(key("when.flow"), "the name of a group over TCP"));
        };
        if matches!(group.app, App::Web(_)) {
            return Err(Complaint::new(key("when.flow"), "a group that is not of app = \"web\"")
                .hint("its connections come and go, so that none is the first flow"));
        }
        let phases = phases(tcp.name);
        if !phases.contains(&enters.as_str()) {
            let hint = did_you_mean(enters, phases.iter().copied());
            return Err(Complaint::new(key("when.enters"), phases.join(", ")).hint(hint));
        }
        if *nth == 0 {
            return Err(Complaint::new(key("when.nth"), "1 or more"));
        }
        if after.0 > LONGEST {
            return Err(Complaint::new(key("when.after"), format!("at most {LONGEST}")));
        }
        if self.set.is_empty() {
            return Err(Complaint::new(key("set"), "at least one change").hint(EXAMPLE));
        }
        self.changes = Vec::new();
        for (what, to) in &self.set {
            let at = format!("event[{i}].set.\"{what}\"");
            let change = change(what, to, &at, links, traffic)?;
            match change {
                Change::Loss(link, _) => links[link].may_take(links[link].delay.0),
                Change::Delay(link, delay) => links[link].may_take(delay),
                Change::Rate(..) | Change::Offer(..) => {}
            }
            self.changes.push(change);
        }
        Ok(())
    }
}

const EXAMPLE: &str = "set = { \"link.0.rate\" = \"20mbit\" }";

/// What a key and its value say.
fn change(
    what: &str,
    to: &str,
    at: &str,
    links: &[LinkSpec],
    traffic: &[TrafficSpec],
) -> Result<Change, Complaint> {
    let refused = |allowed: String| Complaint::new(at, allowed);
    let parts: Vec<&str> = what.split('.').collect();
    let [list, number, field] = parts[..] else {
        return Err(refused("link.N.rate, link.N.loss, link.N.delay or traffic.N.rate".into())
            .hint(EXAMPLE));
    };
    let there = if list == "traffic" { traffic.len() } else { links.len() };
    let plain = |n: &usize| *n < there && n.to_string() == number;
    let number = number.parse::<usize>().ok().filter(plain);
    let number = number.ok_or_else(|| match there {
        0 => refused("with [[link]] only".into()),
        _ => refused(format!("{list}.0 … {list}.{}", there - 1)),
    })?;
    match (list, field) {
        ("link", "rate") => {
            if let Some(medium) = links[number].medium() {
                return Err(refused(format!("the rate of a link without {medium}")));
            }
            let rate = to.parse::<Rate>().ok();
            let rate = rate.filter(|rate| RATES.contains(&rate.bits_per_second()));
            rate.map(|rate| Change::Rate(number, rate))
                .ok_or_else(|| refused("a rate, 1kbit … 100tbit".into()))
        }
        ("link", "loss") => probability(to)
            .map(|loss| Change::Loss(number, loss))
            .map_err(|_| refused("a probability: 0.01, 1%".into())),
        ("link", "delay") => {
            let delay = to.parse::<Duration>().ok().filter(|delay| *delay <= LONGEST);
            delay
                .map(|delay| Change::Delay(number, delay))
                .ok_or_else(|| refused(format!("a time up to {LONGEST}")))
        }
        ("traffic", "rate") => {
            if !matches!(traffic[number].app, App::Schedule(_)) {
                return Err(refused("the rate of a group with app = \"schedule\"".into()));
            }
            to.parse()
                .map(|offer| Change::Offer(number, offer))
                .map_err(|_| refused("a rate, 4mbit, 0bit for nothing, or max".into()))
        }
        _ => Err(refused("link.N.rate, link.N.loss, link.N.delay or traffic.N.rate".into())),
    }
}
