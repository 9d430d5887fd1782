//! The tables of a run that has ended; their columns are those of [`registry`], in that order.

use aqm::fair::htb::ClassCount;
use aqm::fair::wifi::{Station, StationCount};
use aqm::{Duration, Qdisc as _};
use link::columns::{share, values};
use link::varying::bits;
use scenario::traffic::App;

use super::Run;
use crate::network::{Managed, Passed};
use crate::results::delays::DelayTables;
use crate::results::jain;
use crate::results::one_way::{OneWay, opinion};
use crate::results::registry;
use crate::results::table::Table;
use crate::results::transfers::Transfers;
use crate::series::{Named, delivered_bits, packet_bits};
use crate::setup::stop;

impl Run {
    /// The run as a whole, and its primary queue: the first of `queues`.
    pub(super) fn summary(&self, queues: &Table) -> Table {
        let mut table = registry::SUMMARY.empty();
        let departed = |queue: &Managed| queue.queue().counters().departed.packets;
        let mut row = table.row();
        row.count(self.scenario.seed);
        row.real(Some(self.end as f64 / 1e9));
        row.real(Some(self.measured_s()));
        row.count(self.starts.len() as u64);
        row.count(self.simulation.events_handled());
        row.count(self.primary().map_or(0, departed));
        for (name, column) in queues.columns() {
            table.push(name, column.first());
        }
        table
    }

    /// Length of the window.
    fn measured_s(&self) -> f64 {
        Duration::from_nanos(self.end - self.warmup).as_secs_f64()
    }

    pub(super) fn queue_table(&self, goodput: &[Option<f64>]) -> Table {
        let mut table = registry::QUEUES.empty();
        for named in &self.queues {
            let Some(queue) = self.simulation.queue(named.link) else { continue };
            let state = queue.queue().state();
            let mut row = table.row();
            row.text(&named.name);
            row.text(&named.aqm);
            values(&queue.summary(self.end)).into_iter().for_each(|value| row.value(value));
            row.real(self.fairness(named, goodput));
            row.count(state.queue);
            row.count(state.per_flow);
            row.count(state.flows);
            row.count(state.per_packet);
            row.count(named.parameters_set);
        }
        table
    }

    pub(super) fn class_table(&self) -> Table {
        let mut table = registry::CLASSES.empty();
        for (named, spec) in self.queues.iter().zip(&self.scenario.queue) {
            let Some(queue) = self.simulation.queue(named.link) else { continue };
            for (name, count) in spec.class_names().iter().zip(queue.classes()) {
                let ClassCount { counters, backlog, borrowed } = count;
                let (drops, marks) = (counters.all_dropped(), counters.all_marked());
                let mut row = table.row();
                row.text(&named.name);
                row.text(name);
                let [came, left] = [counters.arrived, counters.departed];
                [came.packets, left.packets, drops.packets, marks.packets]
                    .into_iter()
                    .chain([came.bytes, left.bytes, drops.bytes, borrowed.packets, borrowed.bytes])
                    .chain([backlog.packets.into(), backlog.bytes])
                    .for_each(|number| row.count(number));
                row.real(Some(left.bytes as f64 * 8.0 / self.measured_s()));
            }
        }
        table
    }

    pub(super) fn station_table(&self) -> Table {
        let mut table = registry::STATIONS.empty();
        for named in &self.queues {
            let Some(queue) = self.simulation.queue(named.link) else { continue };
            let stations: Vec<_> = queue.stations().collect();
            let all: u64 = stations.iter().map(|(_, count)| count.airtime).sum();
            for (Station { peer, rate }, count) in stations {
                let StationCount { arrived, departed, aggregates, airtime } = count;
                // The station of all others is there in any case.
                if peer.is_none() && count == StationCount::default() {
                    continue;
                }
                let over = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
                let mut row = table.row();
                row.text(&named.name);
                row.text(&peer.map_or("others".into(), |peer| peer.to_string()));
                row.real(Some(rate.bits_per_second() as f64));
                [arrived.packets, departed.packets, arrived.bytes, departed.bytes, aggregates]
                    .into_iter()
                    .for_each(|number| row.count(number));
                row.real(over(departed.packets, aggregates));
                row.real(Some(airtime as f64 / 1e9));
                row.real(over(airtime, all));
                row.real(Some(departed.bytes as f64 * 8.0 / self.measured_s()));
            }
        }
        table
    }

    /// Jain's index at a queue, of the goodputs of the flows that can be compared there: those that
    /// cross it and had data to send from the window's start to its end.
    fn fairness(&self, queue: &Named, goodput: &[Option<f64>]) -> Option<f64> {
        let greedy = |i: usize| {
            let spec = &self.scenario.traffic[usize::from(self.groups[i])];
            let throughout = self.starts[i] <= self.warmup && stop(spec, self.end) >= self.end;
            spec.always_has_data() && throughout
        };
        let crossing = |i: &usize| greedy(*i) && self.simulation.crosses(*i, queue.link);
        jain((0..self.starts.len()).filter(crossing).filter_map(|i| goodput[i]))
    }

    pub(super) fn flow_table(&self) -> Table {
        let measured = self.measured_s();
        let mut table = registry::FLOWS.empty();
        for (i, (&group, &start)) in self.groups.iter().zip(&self.starts).enumerate() {
            let spec = &self.scenario.traffic[usize::from(group)];
            let (now, before) =
                (self.simulation.flow(i), self.before.get(i).copied().unwrap_or_default());
            let tally = self.primary().map(|queue| queue.stats().flow(i)).unwrap_or_default();
            let delivered = |report| delivered_bits(report, packet_bits(spec));
            let [dropped, arrived, departed] =
                [tally.all_dropped(), tally.arrived, tally.departed].map(u64::from);
            let mut row = table.row();
            row.count(i as u64);
            row.text(&spec.group.name);
            row.text(spec.group.transport.name());
            row.real(Some(start as f64 / 1e9));
            row.real(Some((delivered(&now) - delivered(&before)) as f64 / measured));
            row.real(Some(tally.departed_bytes as f64 * 8.0 / measured));
            row.real(Some(share(dropped, arrived, departed + dropped)));
            row.count(arrived);
            row.count(dropped);
            tally.dropped.into_iter().for_each(|of_cause| row.count(of_cause.into()));
            row.count(tally.marked.into());
            row.count(tally.arrived_bytes);
            row.count(tally.dropped_bytes);
            row.real(Some(tally.dropped_bytes as f64 * 8.0 / measured));
            row.count((now.retransmits - before.retransmits).into());
            row.count((now.timeouts - before.timeouts).into());
            row.count((now.ecn_reductions - before.ecn_reductions).into());
            row.real((now.srtt > 0).then_some(now.srtt as f64 / 1e9));
            row.real(self.simulation.completed(i).map(|ns| ns as f64 / 1e9));
        }
        table
    }

    /// What was measured of delays, by group and by flow.
    pub(super) fn delay_tables(&self) -> (Table, Table) {
        let names = self.scenario.traffic.iter().map(|spec| spec.group.name.as_str()).collect();
        let mut tables = DelayTables::new(&self.groups, names);
        for named in &self.queues {
            if let Some(queue) = self.simulation.queue(named.link) {
                tables.add("queueing", &named.name, queue.stats().flow_delays());
            }
        }
        if let Some(ends) = self.simulation.end_to_end() {
            tables.add("one-way", "", &ends.one_way);
            tables.add("round-trip", "", &ends.round_trip);
        }
        (tables.by_group, tables.by_flow)
    }

    /// The transfers of each group that has some, with their kind.
    fn transfers(&self) -> Vec<(&str, &'static str, Transfers)> {
        let mut all = Vec::new();
        for (g, spec) in self.scenario.traffic.iter().enumerate() {
            if let Some([requests, pages]) = self.simulation.web(g) {
                all.push((spec.group.name.as_str(), "request", requests.clone()));
                all.push((spec.group.name.as_str(), "page", pages.clone()));
            } else if let App::Finite(_) = &spec.app {
                all.push((spec.group.name.as_str(), "flow", self.finite(g)));
            }
        }
        all
    }

    /// The transfers of a group of finite flows.
    fn finite(&self, group: usize) -> Transfers {
        let stop = stop(&self.scenario.traffic[group], self.end).min(self.end);
        let mut transfers = Transfers::default();
        for (i, &start) in self.starts.iter().enumerate() {
            if usize::from(self.groups[i]) == group && (self.warmup..stop).contains(&start) {
                transfers.begin();
                if let (Some(at), Some(packets)) =
                    (self.simulation.completed(i), self.simulation.finite(i))
                {
                    let alone = self.simulation.alone(i, packets);
                    transfers.complete(start, at, alone.map(|alone| (packets, alone)));
                }
            }
        }
        transfers
    }

    /// What the datagrams of each group met on their way.
    pub(super) fn call_table(&self) -> Table {
        let mut table = registry::CALLS.empty();
        for (g, spec) in self.scenario.traffic.iter().enumerate() {
            let mine = (0..self.groups.len()).filter(|&i| usize::from(self.groups[i]) == g);
            let mut flows = mine.filter_map(|i| self.simulation.one_way(i)).peekable();
            if flows.peek().is_none() {
                continue;
            }
            let (mut all, mut ratings) = (OneWay::default(), Vec::new());
            for flow in flows {
                all.add(flow, self.now);
                ratings.extend(flow.rating(self.now));
            }
            let rating =
                (!ratings.is_empty()).then(|| ratings.iter().sum::<f64>() / ratings.len() as f64);
            let mut row = table.row();
            row.text(&spec.group.name);
            row.count(all.expected(self.now));
            row.count(all.received());
            row.real(all.loss(self.now));
            all.delays_s().into_iter().for_each(|delay| row.real(delay));
            row.real(all.jitter_s());
            row.real(rating);
            row.real(rating.map(opinion));
        }
        table
    }

    pub(super) fn transfer_tables(&self) -> (Table, Table, Table) {
        let (mut table, mut completions) =
            (registry::TRANSFERS.empty(), registry::COMPLETIONS.empty());
        let mut slowdowns = registry::SLOWDOWNS.empty();
        for (group, kind, transfers) in self.transfers() {
            let summary = transfers.summary();
            let mut row = table.row();
            row.text(group);
            row.text(kind);
            row.count(summary.began);
            row.count(summary.completed);
            let values = summary.times_s.into_iter().chain(summary.slowdowns);
            values.for_each(|value| row.real(value));
            row.real(summary.per_minute());
            for (time, completed) in transfers.distribution() {
                let mut row = completions.row();
                row.text(group);
                row.text(kind);
                row.real(Some(time));
                row.count(completed);
                row.real(Some(completed as f64 / summary.began as f64));
            }
            for (sizes, values) in transfers.slowdowns_by_size() {
                let mut row = slowdowns.row();
                row.text(group);
                row.text(kind);
                sizes.into_iter().for_each(|count| row.count(count));
                values.into_iter().for_each(|value| row.real(Some(value)));
            }
        }
        (table, completions, slowdowns)
    }

    /// What the links that vary could carry in the window, and what became of packets on their wires.
    pub(super) fn link_table(&self) -> Table {
        let mut t = registry::LINKS.empty();
        // It was built from the same.
        let Ok(topology) = self.scenario.topology() else { return t };
        for (link, edge) in topology.links.iter().enumerate() {
            let (rates, passed) = (&edge.sending.rates, self.simulation.passed(link));
            if rates.is_none() && passed.is_none() {
                continue;
            }
            let window = (self.end - self.warmup) as f64 / 1e9;
            let capacity = match rates {
                Some(rates) => bits(rates, self.warmup, self.end) / window,
                None => edge.rate.bits_per_second() as f64,
            };
            let mut row = t.row();
            row.text(&topology.link_name(link));
            row.real(Some(capacity));
            let count = |f: fn(&Passed) -> u64| passed.as_ref().map(|passed| f(passed) as f64);
            row.real(count(|p| p.entered));
            row.real(count(|p| p.came_out));
            row.real(count(|p| p.impaired.lost.packets));
            row.real(count(|p| p.impaired.duplicated.packets));
            row.real(count(|p| p.impaired.corrupted.packets));
            row.real(count(|p| p.impaired.reordered.packets));
        }
        t
    }
}
