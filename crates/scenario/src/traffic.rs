//! Groups of flows: how data is carried, and what.

use std::sync::Arc;

use aqm::units::Size;
use aqm::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::{Arrivals, Captures};
use crate::error::Complaint;
use crate::network::{LONGEST, Topology};
use crate::text::{Span, Text};
use crate::{yes, zero};

/// How data is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportName {
    /// TCP with fast recovery of one loss a window (RFC 5681).
    Reno,
    /// TCP with partial acknowledgements (RFC 6582).
    NewReno,
    /// TCP with selective acknowledgements (RFC 6675).
    Sack,
    /// TCP with selective acknowledgements and CUBIC congestion control (RFC 9438).
    Cubic,
    /// TCP with selective acknowledgements and DCTCP congestion control (RFC 8257).
    Dctcp,
    /// Datagrams at a constant rate that react to nothing.
    Cbr,
    /// Datagrams at the rate that TCP would have at the same losses (RFC 5348); `infinite` only.
    Tfrc,
    /// The packets of a capture, as datagrams at their own times, with their lengths, flows and ECN
    /// fields.
    Trace,
}

impl TransportName {
    /// The name in files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::NewReno => "newreno",
            Self::Sack => "sack",
            Self::Cubic => "cubic",
            Self::Dctcp => "dctcp",
            Self::Cbr => "cbr",
            Self::Tfrc => "tfrc",
            Self::Trace => "trace",
        }
    }
}

/// What is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AppName {
    /// More than can ever be sent.
    Infinite,
    /// `size` bytes a flow.
    Finite,
    /// On and off periods of Pareto length.
    Pareto,
    /// On and off periods of exponential length.
    Exponential,
    /// `cbr` only: on and off periods of one fixed length.
    Periodic,
    /// Web sessions, each a flow of the group: again and again a page of `objects` objects, each asked
    /// for and sent over a connection of its own, `connections` at a time; then time to think. Requests
    /// have 40 bytes and go against the data.
    Web,
}

/// What becomes of data that was not sent when an on period ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnsentName {
    /// It is withdrawn: while off, nothing is offered.
    Withdraw,
    /// It fills an unbounded send buffer.
    Backlog,
}

/// How the gaps of a datagram source are spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GapsName {
    /// All the same.
    Constant,
    /// Uniform about the mean, as wide as `jitter` says.
    Uniform,
    /// Exponential: a Poisson process.
    Poisson,
}

/// Flows that join in steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Flows in each step.
    pub flows: u32,
    /// Time between steps.
    pub every: Text<Duration>,
}

/// A group of flows that are alike.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficSpec {
    /// The group's name in results.
    #[serde(default = "default_group")]
    pub name: String,
    /// How many flows; of a `trace`, those in its file.
    #[serde(default = "one")]
    pub flows: u32,
    /// Addresses and ports under a name: groups that give the same one are the same flows to
    /// queues, the first of each group with the first of the others and so on. Without it each
    /// flow has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Its flows change their ports so often: to queues they are new flows then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rekey: Option<Text<Duration>>,
    /// How data is carried.
    pub transport: TransportName,
    /// What is carried.
    #[serde(default = "infinite")]
    pub app: AppName,
    /// Nodes to send from; each flow draws one. Without it the preset's left side. With `*` for the
    /// number of a bottleneck here and in `to`, as in `s*.0`, there is such a group at each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Vec<String>>,
    /// Nodes to send to; each flow draws one. Without it the preset's right side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Vec<String>>,
    /// When a flow starts: an instant, or a range from which each flow draws. A `trace`: when its
    /// first packet comes.
    #[serde(default = "at_once")]
    pub start: Text<Span>,
    /// When it stops; without it at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Text<Duration>>,
    /// Flows join in steps; `start` counts from the flow's step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepSpec>,
    /// Data packets on the wire, 40 … 65535 bytes; of a `trace`, their mean.
    #[serde(default = "kilobyte")]
    pub packet: Text<Size>,
    /// `finite`: bytes a flow. `web`: the mean of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Text<Size>>,
    /// `pareto`, `exponential`: mean on period. `periodic`: its length; the first begins at `start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Text<Duration>>,
    /// `pareto`, `exponential`: mean off period. `periodic`: its length. `web`: mean time to think,
    /// exponential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Text<Duration>>,
    /// `pareto`: shape, above 1, at most 100. `web`: that of the objects' sizes; without it all are of
    /// one size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
    /// `web`: objects of a page, 1 … 1000; without it 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<u32>,
    /// `web`: the most connections of a session at a time, 1 … 1000; without it 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u16>,
    /// `cbr`: the rate (`periodic`: while on). `pareto`, `exponential`: the rate while on; without it
    /// as fast as TCP can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Text<Rate>>,
    /// `cbr`: other rates from given times of the run on, as `[["50s", "4mbit"], ["250s", "1mbit"]]`;
    /// the gap that has begun is not cut short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<(Text<Duration>, Text<Rate>)>,
    /// `cbr`: how the gaps between packets are spread about their mean.
    #[serde(default = "constant")]
    pub gaps: GapsName,
    /// `cbr` with `gaps = "uniform"`: half the width, as a share of the mean, 0 … 1.
    #[serde(default)]
    pub jitter: f64,
    /// `trace`: the capture (pcap or pcapng), as seen from the working directory. Packets that would
    /// come after the end are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// `trace`: sixteen hexadecimal digits over the packets; filled in. If given, the file has to have
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The packets of the file, once it was read.
    #[serde(skip)]
    pub arrivals: Option<Arc<Arrivals>>,
    /// `pareto`, `exponential`: what becomes of data not sent when an on period ends.
    #[serde(default = "withdraw")]
    pub unsent: UnsentName,
    /// Whether data packets are ECN-capable; of a `trace`, also those that are not in its file.
    #[serde(default)]
    pub ecn: bool,
    /// TCP: an ECN echo with a window of one packet makes the sender wait for its timer.
    #[serde(default)]
    pub ecn_timeout: bool,
    /// TCP: the least window that an ECN echo leaves, 1 … 1000 packets; Linux has 2. With
    /// `ecn_timeout` only 1: the wait takes its place.
    #[serde(default = "one")]
    pub min_window: u32,
    /// TCP: retransmissions are ECN-capable, too (RFC 2481; RFC 3168 forbids it).
    #[serde(default)]
    pub ecn_on_retransmit: bool,
    /// `tfrc`: old losses count less in a long time without one (RFC 5348 §5.5).
    #[serde(default = "yes")]
    pub discounting: bool,
    /// `tfrc`: the timeout in the equation; without it four round trips (RFC 5348 §3.1). ns-2.35 takes
    /// that of a TCP with ticks of 100 ms: 300 ms at round trips up to 150 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equation_timeout: Option<Text<Duration>>,
    /// TCP: connections begin with a SYN, which is not ECN-capable.
    #[serde(default)]
    pub handshake: bool,
    /// TCP: delay of acknowledgements; `0s` acknowledges each packet.
    #[serde(default = "zero")]
    pub delayed_ack: Text<Duration>,
    /// TCP: what may be sent waits for a time that is uniform up to this, and is then sent together, in
    /// order (ns-2's `overhead_`).
    #[serde(default = "zero")]
    pub send_jitter: Text<Duration>,
    /// TCP: initial window in packets, 1 … 1000.
    #[serde(default = "two")]
    pub initial_window: u32,
    /// TCP: the receiver's window, in packets or bytes, 1 … 65 535 packets.
    #[serde(default = "wide")]
    pub window: Text<Size>,
    /// TCP: least retransmission timeout.
    #[serde(default = "min_rto")]
    pub min_rto: Text<Duration>,
    /// TCP: retransmission timeout before the first measurement.
    #[serde(default = "second")]
    pub initial_rto: Text<Duration>,
    /// TCP: largest retransmission timeout.
    #[serde(default = "minute")]
    pub max_rto: Text<Duration>,
    /// TCP: granularity of the retransmission timer (RFC 6298's G).
    #[serde(default = "granularity")]
    pub rto_granularity: Text<Duration>,
    /// TCP: after four doublings of the timeout the next round trip measured begins the average anew
    /// (RFC 6298 §5 allows it, ns-2 does it).
    #[serde(default)]
    pub forget_rtt: bool,
    /// TCP: limited transmit (RFC 3042).
    #[serde(default = "yes")]
    pub limited_transmit: bool,
    /// TCP: a reduction of the window leaves whole packets, as in Linux.
    #[serde(default)]
    pub whole_packets: bool,
    /// TCP: start again from the initial window after an idle timeout (RFC 5681 §4.1).
    #[serde(default = "yes")]
    pub restart_after_idle: bool,
}

fn default_group() -> String {
    "flows".into()
}
fn one() -> u32 {
    1
}
fn two() -> u32 {
    2
}
fn infinite() -> AppName {
    AppName::Infinite
}
fn constant() -> GapsName {
    GapsName::Constant
}
fn withdraw() -> UnsentName {
    UnsentName::Withdraw
}
fn second() -> Text<Duration> {
    Text(Duration::from_secs(1))
}
fn minute() -> Text<Duration> {
    Text(Duration::from_secs(60))
}
fn min_rto() -> Text<Duration> {
    Text(Duration::from_millis(200))
}
fn granularity() -> Text<Duration> {
    Text(Duration::from_millis(1))
}
fn at_once() -> Text<Span> {
    Text(Span { from: Duration::ZERO, to: Duration::ZERO })
}
fn kilobyte() -> Text<Size> {
    Text(Size::Bytes(1000))
}
fn wide() -> Text<Size> {
    Text(Size::Packets(65_535))
}

/// The shortest that the first and the longest timeout may be: time has to go on.
const SHORTEST_RTO: Duration = Duration::from_millis(1);
/// More flows than one run may have.
const MAX_FLOWS: u64 = 4_000_000;
/// Bytes or packets that a web object may have in the mean.
const MOST_OBJECT: u64 = 1_000_000_000;

/// The groups, checked, and how many flows they have: a group with `*` in the names of its nodes
/// becomes one at each bottleneck.
pub(crate) fn expand_traffic(
    specs: Vec<TrafficSpec>,
    topology: &Topology,
    end: Duration,
    captures: &mut Captures<'_>,
) -> Result<(Vec<TrafficSpec>, u64), Complaint> {
    let mut groups = Vec::new();
    let mut flows = 0;
    for (i, mut spec) in specs.into_iter().enumerate() {
        if spec.transport == TransportName::Trace {
            spec.read(i, end, captures)?;
        }
        let mut names = spec.from.iter().chain(&spec.to).flatten();
        let everywhere = topology.bottlenecks > 0 && names.any(|name| name.contains('*'));
        for hop in 1..=if everywhere { topology.bottlenecks } else { 1 } {
            let mut group = spec.clone();
            if everywhere {
                let names = group.from.iter_mut().chain(&mut group.to).flatten();
                names.for_each(|name| *name = name.replace('*', &hop.to_string()));
            }
            group.check(i, topology)?;
            flows += u64::from(group.flows) * u64::from(group.slots());
            if flows > MAX_FLOWS {
                let allowed = format!("at most {MAX_FLOWS} flows in all");
                return Err(Complaint::new(format!("traffic[{i}].flows"), allowed));
            }
            groups.push(group);
        }
    }
    Ok((groups, flows))
}

impl TrafficSpec {
    /// Data packets on the wire in bytes, if allowed.
    pub fn packet_bytes(&self) -> Option<u16> {
        match self.packet.0 {
            Size::Bytes(n @ 40..=65_535) => Some(n as u16),
            _ => None,
        }
    }

    /// Flows of the simulation that each flow of the group takes: connections at a time.
    pub fn slots(&self) -> u16 {
        let most = self.connections.unwrap_or(4);
        if self.app == AppName::Web {
            most.min(self.objects.unwrap_or(1).min(u32::from(u16::MAX)) as u16)
        } else {
            1
        }
    }

    /// The receiver's window in packets, if allowed.
    pub fn window_packets(&self) -> Option<u32> {
        let packets = match self.window.0 {
            Size::Packets(n) => n,
            Size::Bytes(n) => n / u64::from(self.packet_bytes()?),
            _ => return None,
        };
        u32::try_from(packets).ok().filter(|n| (1..=65_535).contains(n))
    }

    /// Takes the capture of a trace and fills in what follows from it.
    fn read(
        &mut self,
        i: usize,
        end: Duration,
        captures: &mut Captures<'_>,
    ) -> Result<(), Complaint> {
        let key = |field: &str| format!("traffic[{i}].{field}");
        let Some(file) = &self.file else {
            return Err(Complaint::new(key("file"), "needed by trace: a capture, pcap or pcapng"));
        };
        let Span { from, to } = self.start.0;
        if from != to || self.step.is_some() {
            return Err(Complaint::new(key("start"), "an instant, and no steps, for a trace"));
        }
        let until = self.stop.map_or(end, |stop| stop.0.min(end)).saturating_sub(from);
        let arrivals =
            captures(file, until).map_err(|problem| Complaint::new(key("file"), problem))?;
        if arrivals.packets.is_empty() {
            return Err(Complaint::new(key("file"), "a capture with packets before the end"));
        }
        if self.digest.as_ref().is_some_and(|digest| *digest != arrivals.digest) {
            let allowed = format!("{}: the packets of {file}", arrivals.digest);
            return Err(Complaint::new(key("digest"), allowed)
                .hint("the file is not the one that this was made from"));
        }
        self.flows = u32::try_from(arrivals.starts.len()).unwrap_or(u32::MAX);
        self.packet = Text(Size::Bytes(arrivals.mean_len()));
        self.digest = Some(arrivals.digest.clone());
        self.arrivals = Some(Arc::new(arrivals));
        Ok(())
    }

    fn check(&self, i: usize, topology: &Topology) -> Result<(), Complaint> {
        let key = |field: &str| format!("traffic[{i}].{field}");
        let complain = |field: &str, allowed: &str| Err(Complaint::new(key(field), allowed));
        if self.flows == 0 {
            return complain("flows", "at least 1");
        }
        if self.packet_bytes().is_none() {
            return complain("packet", "40B … 65535B");
        }
        if self.window_packets().is_none() {
            return complain("window", "1p … 65535p");
        }
        if !(1..=1000).contains(&self.initial_window) {
            return complain("initial_window", "1 … 1000 packets");
        }
        if !(1..=if self.ecn_timeout { 1 } else { 1000 }).contains(&self.min_window) {
            return complain("min_window", "1 … 1000 packets; with ecn_timeout 1");
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return complain("jitter", "0 … 1");
        }
        if self.step.as_ref().is_some_and(|s| s.flows == 0) {
            return complain("step.flows", "at least 1");
        }
        for (field, time, least) in [
            ("initial_rto", self.initial_rto, SHORTEST_RTO),
            ("max_rto", self.max_rto, SHORTEST_RTO),
            ("rto_granularity", self.rto_granularity, Duration::ZERO),
            ("delayed_ack", self.delayed_ack, Duration::ZERO),
            ("send_jitter", self.send_jitter, Duration::ZERO),
        ] {
            if !(least..=LONGEST).contains(&time.0) {
                return complain(field, &format!("{least} … {LONGEST}"));
            }
        }
        if self.min_rto.0 > self.max_rto.0 {
            return complain("min_rto", "at most max_rto");
        }
        if self.rekey == Some(Text(Duration::ZERO)) {
            return complain("rekey", "more than 0s");
        }
        if self.file.is_some() && self.transport != TransportName::Trace {
            return complain("file", "for trace only");
        }
        if self.transport == TransportName::Dctcp && !self.ecn {
            return complain("ecn", "true: dctcp follows marks");
        }
        if self.transport == TransportName::Tfrc && self.app != AppName::Infinite {
            return complain("app", "infinite: tfrc always has something to send");
        }
        let tcp = !matches!(self.transport, TransportName::Cbr | TransportName::Trace);
        match (self.app, tcp) {
            (AppName::Infinite, _) if self.transport == TransportName::Trace => {}
            _ if self.transport == TransportName::Trace => {
                return complain("app", "none: a trace tells what is sent");
            }
            (AppName::Finite | AppName::Pareto | AppName::Exponential | AppName::Web, false) => {
                return complain("app", "infinite or periodic: cbr sends whatever happens");
            }
            (AppName::Periodic, true) => {
                return complain("app", "for cbr only; TCP has pareto and exponential");
            }
            (_, false) if self.rate.is_none() => return complain("rate", "needed by cbr"),
            (_, true) if !self.rates.is_empty() => return complain("rates", "for cbr only"),
            (_, false) if !self.rates.is_sorted_by(|a, b| a.0.0 < b.0.0) => {
                return complain("rates", "pairs of a time and a rate, times ascending");
            }
            (AppName::Periodic, false) => {
                for (field, value) in [("on", self.on), ("off", self.off)] {
                    if !value.is_some_and(|v| (Duration::from_nanos(1)..=LONGEST).contains(&v.0)) {
                        return complain(field, &format!("needed by periodic: 1ns … {LONGEST}"));
                    }
                }
            }
            (AppName::Finite, _) => match self.size {
                Some(Text(Size::Bytes(1..) | Size::Packets(1..=0x7fff_ffff))) => {}
                _ => return complain("size", "needed by finite: 1B and more"),
            },
            (AppName::Web, _) => {
                match self.size {
                    Some(Text(Size::Bytes(1..=MOST_OBJECT) | Size::Packets(1..=MOST_OBJECT))) => {}
                    _ => return complain("size", "needed by web: the mean of an object"),
                }
                if self.off.is_none_or(|v| v.0 == Duration::ZERO) {
                    return complain("off", "needed by web: a mean time to think above 0s");
                }
                if !self.shape.is_none_or(|s| s > 1.0 && s <= 100.0) {
                    return complain("shape", "above 1 (else there is no mean), at most 100");
                }
                for (field, value) in
                    [("objects", self.objects), ("connections", self.connections.map(u32::from))]
                {
                    if value.is_some_and(|v| !(1..=1000).contains(&v)) {
                        return complain(field, "1 … 1000");
                    }
                }
            }
            (AppName::Pareto | AppName::Exponential, _) => {
                for (field, value) in [("on", self.on), ("off", self.off)] {
                    if value.is_none_or(|v| v.0 == Duration::ZERO) {
                        return complain(field, "a mean above 0s is needed by on/off sources");
                    }
                }
                if self.app == AppName::Pareto && !self.shape.is_some_and(|s| s > 1.0 && s <= 100.0)
                {
                    return complain("shape", "above 1 (else there is no mean), at most 100");
                }
            }
            _ => {}
        }
        topology.ends(self.from.as_deref(), true, &key("from"))?;
        topology.ends(self.to.as_deref(), false, &key("to"))?;
        topology.check_routes(self.from.as_deref(), self.to.as_deref(), &key("to"))
    }
}
