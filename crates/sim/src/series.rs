//! What is sampled over time, of queues and of groups.

use aqm::{Instant, Qdisc as _};
use link::stats::GroupTally;
use scenario::traffic::{TrafficSpec, Transport};

use crate::network::Link;
use crate::parts::Parts;
use crate::results::registry;
use crate::results::table::{Column, Table};
use crate::transport::FlowReport;

/// A managed queue in a run.
pub(crate) struct Named {
    pub(crate) link: usize,
    pub(crate) name: String,
    pub(crate) aqm: String,
    pub(crate) parameters_set: u64,
}

/// Bits of a data packet on the wire, where all have the same.
pub(crate) fn packet_bits(spec: &TrafficSpec) -> Option<u64> {
    let same = !matches!(spec.transport, Transport::Trace(_));
    spec.group.packet_bytes().filter(|_| same).map(|bytes| u64::from(bytes) * 8)
}

/// Bits that were delivered, in packets of so many or of different lengths.
pub(crate) fn delivered_bits(report: &FlowReport, packet: Option<u64>) -> u64 {
    match packet {
        Some(bits) => u64::from(report.delivered) * bits,
        None => report.delivered_bytes * 8,
    }
}

/// The sampled series of all managed queues.
pub(crate) struct Series {
    pub(crate) table: Table,
    signals: Vec<&'static str>,
    last: Vec<Last>,
}

/// A queue's totals at its last sample.
#[derive(Clone, Copy, Default)]
struct Last {
    arrived: u64,
    departed: u64,
    dropped: u64,
    marked: u64,
    idle: u64,
}

impl Series {
    pub(crate) fn new(queues: &[Named], links: &[Link]) -> Self {
        let mut signals: Vec<&'static str> = Vec::new();
        for m in queues {
            let Some(managed) = links[m.link].as_managed() else { continue };
            managed.queue().observe(Instant::ZERO, &mut |name, _| {
                if !signals.contains(&name) {
                    signals.push(name);
                }
            });
        }
        let mut table = registry::SERIES.empty();
        for name in &signals {
            table.push(name, Column::Real(Vec::new()));
        }
        Self { table, signals, last: vec![Last::default(); queues.len()] }
    }

    pub(crate) fn sample(&mut self, now: u64, queues: &[Named], simulation: &Parts) {
        for (m, last) in queues.iter().zip(&mut self.last) {
            let Some(link) = simulation.queue(m.link) else { continue };
            let (backlog, counters) = (link.queue().backlog(), link.queue().counters());
            let next = Last {
                arrived: counters.arrived.packets,
                departed: counters.departed.packets,
                dropped: counters.all_dropped().packets,
                marked: counters.all_marked().packets,
                idle: link.idle(now),
            };
            let mut signals = vec![None; self.signals.len()];
            link.queue().observe(Instant::from_nanos(now), &mut |name, value| {
                if let Some(i) = self.signals.iter().position(|s| *s == name) {
                    signals[i] = Some(value);
                }
            });
            let mut row = self.table.row();
            row.real(Some(now as f64 / 1e9));
            row.text(&m.name);
            row.count(u64::from(backlog.packets));
            row.count(backlog.bytes);
            row.count(next.arrived - last.arrived);
            row.count(next.departed - last.departed);
            row.count(next.dropped - last.dropped);
            row.count(next.marked - last.marked);
            row.real(Some((next.idle - last.idle) as f64 / 1e9));
            signals.into_iter().for_each(|s| row.real(s));
            *last = next;
        }
    }
}

/// The sampled series of all flows.
pub(crate) struct FlowSeries {
    pub(crate) table: Table,
    /// Name of each group and bits of its packets.
    groups: Vec<(String, Option<u64>)>,
    /// Bits delivered until the last sample, by flow.
    delivered: Vec<u64>,
    /// When that was, ns.
    at: u64,
}

impl FlowSeries {
    pub(crate) fn new(traffic: &[TrafficSpec], flows: usize) -> Self {
        let (groups, delivered) = (named(traffic), vec![0; flows]);
        Self { table: registry::FLOW_SERIES.empty(), groups, delivered, at: 0 }
    }

    /// `of` gives the group of each flow.
    pub(crate) fn sample(&mut self, now: u64, of: &[u16], simulation: &Parts) {
        let seconds = (now - std::mem::replace(&mut self.at, now)) as f64 / 1e9;
        for (i, (&group, last)) in of.iter().zip(&mut self.delivered).enumerate() {
            let (name, packet) = &self.groups[usize::from(group)];
            let report = simulation.flow(i);
            let delivered = delivered_bits(&report, *packet);
            let bits = delivered - std::mem::replace(last, delivered);
            let mut row = self.table.row();
            row.real(Some(now as f64 / 1e9));
            row.count(i as u64);
            row.text(name);
            row.real(simulation.window(i));
            row.real((report.srtt > 0).then_some(report.srtt as f64 / 1e9));
            row.real(Some(bits as f64 / seconds));
        }
    }
}

/// The name of each group and the bits of its packets.
fn named(traffic: &[TrafficSpec]) -> Vec<(String, Option<u64>)> {
    traffic.iter().map(|spec| (spec.group.name.clone(), packet_bits(spec))).collect()
}

/// The sampled series of all groups at all managed queues.
pub(crate) struct GroupSeries {
    pub(crate) table: Table,
    /// Name of each group and bits of its packets.
    groups: Vec<(String, Option<u64>)>,
    /// Totals at the last sample, by queue and group.
    last: Vec<Vec<GroupTally>>,
    /// Bits delivered until the last sample, by group.
    delivered: Vec<u64>,
    /// When that was, ns.
    at: u64,
}

impl GroupSeries {
    pub(crate) fn new(traffic: &[TrafficSpec], queues: usize) -> Self {
        Self {
            table: registry::GROUPS.empty(),
            groups: named(traffic),
            last: vec![vec![GroupTally::default(); traffic.len()]; queues],
            delivered: vec![0; traffic.len()],
            at: 0,
        }
    }

    /// `of` gives the group of each flow.
    pub(crate) fn sample(&mut self, now: u64, queues: &[Named], of: &[u16], simulation: &Parts) {
        let seconds = (now - std::mem::replace(&mut self.at, now)) as f64 / 1e9;
        let mut delivered = vec![0; self.groups.len()];
        for (i, &group) in of.iter().enumerate() {
            let group = usize::from(group);
            delivered[group] += delivered_bits(&simulation.flow(i), self.groups[group].1);
        }
        for (m, last) in queues.iter().zip(&mut self.last) {
            let Some(link) = simulation.queue(m.link) else { continue };
            for (g, (tally, last)) in link.stats().groups().iter().zip(last).enumerate() {
                let (name, _) = &self.groups[g];
                let queued = tally.queued();
                let (departed, dropped) =
                    (tally.departed.since(last.departed), tally.dropped.since(last.dropped));
                let mut row = self.table.row();
                row.real(Some(now as f64 / 1e9));
                row.text(&m.name);
                row.text(name);
                row.count(queued.packets);
                row.count(queued.bytes);
                row.real(Some(tally.average));
                row.count(tally.arrived.since(last.arrived).packets);
                row.count(departed.packets);
                row.count(dropped.packets);
                row.count(dropped.bytes);
                row.real(Some(departed.bytes as f64 * 8.0 / seconds));
                row.real(Some((delivered[g] - self.delivered[g]) as f64 / seconds));
                *last = *tally;
            }
        }
        self.delivered = delivered;
    }
}
