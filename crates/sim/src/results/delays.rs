//! Delays of each flow, and so of each group: in the queues, from end to end, and round trips.

use link::histogram::Times;

use super::registry;
use super::table::Table;

/// What was measured from end to end, ns; a row a flow.
#[derive(Clone, Debug)]
pub struct EndToEnd {
    /// From when a data packet was sent, for the first time or again, to when it came.
    pub one_way: Vec<Times>,
    /// Samples of the round trip, as TCP takes them.
    pub round_trip: Vec<Times>,
}

impl EndToEnd {
    /// Nothing yet, of so many flows.
    pub fn new(flows: usize) -> Self {
        let none = vec![Times::default(); flows];
        Self { one_way: none.clone(), round_trip: none }
    }

    /// Begins a new window of measurement.
    pub fn restart(&mut self) {
        self.one_way.iter_mut().chain(&mut self.round_trip).for_each(Times::clear);
    }
}

/// The tables of delays, by group and by flow.
pub(crate) struct DelayTables<'a> {
    /// The number of each flow's group.
    groups: &'a [u16],
    /// The groups' names.
    names: Vec<&'a str>,
    pub(crate) by_group: Table,
    pub(crate) by_flow: Table,
}

impl<'a> DelayTables<'a> {
    /// Without rows.
    pub(crate) fn new(groups: &'a [u16], names: Vec<&'a str>) -> Self {
        let (by_group, by_flow) = (registry::DELAYS.empty(), registry::FLOW_DELAYS.empty());
        Self { groups, names, by_group, by_flow }
    }

    /// A row for each group and each flow that has any. `queue` is empty where it is of none.
    pub(crate) fn add(&mut self, kind: &str, queue: &str, flows: &[Times]) {
        let mut sums = vec![Times::default(); self.names.len()];
        for (flow, (times, &group)) in flows.iter().zip(self.groups).enumerate() {
            let group = usize::from(group);
            sums[group].join(times);
            if times.count() > 0 {
                let mut row = self.by_flow.row();
                row.count(flow as u64);
                [self.names[group], kind, queue].iter().for_each(|text| row.text(text));
                figures(&mut row, times);
            }
        }
        for (name, times) in self.names.iter().zip(&sums).filter(|(_, times)| times.count() > 0) {
            let mut row = self.by_group.row();
            [queue, name, kind].iter().for_each(|text| row.text(text));
            figures(&mut row, times);
        }
    }
}

/// What both tables tell of them.
fn figures(row: &mut super::table::Row<'_>, times: &Times) {
    let seconds = |ns: f64| Some(ns / 1e9);
    row.count(times.count());
    row.real(times.mean().and_then(seconds));
    for share in [0.5, 0.9, 0.95, 0.99] {
        row.real(seconds(times.quantile(share) as f64));
    }
    row.real(seconds(times.max() as f64));
}
