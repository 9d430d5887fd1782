//! The tables of a run, declared once: their columns with type, unit and meaning. The simulator makes
//! its tables of it, Python its frames, and the documentation its pages.

mod control;
mod flows;
mod queues;
#[cfg(test)]
mod tests;
mod traces;

use link::QueueSummary;
use link::columns::{Value, values};

pub use control::{AUTORATE, CONTROL, CONTROL_SIGNALS};
pub use flows::{
    CALLS, COMPLETIONS, DELAYS, FLOW_DELAYS, FLOW_SERIES, FLOWS, GROUPS, SLOWDOWNS, TRANSFERS,
};
pub use queues::{CLASSES, LINKS, QUEUES, SERIES, STATIONS, SUMMARY, WALL};
pub use traces::{PERSISTENCE, SKEW};

use super::table::{Column, Table};

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct TableSpec {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Whether a simulation has it; else a generated trace does.
    pub simulated: bool,
    /// The keys of `[measure]` without which it has no rows.
    pub needs: &'static [&'static str],
    /// Its columns; those of a series end with the signals of its queues.
    pub columns: &'static [ColumnSpec],
}

/// Columns of one type, unit and meaning.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// Their names.
    pub names: &'static [&'static str],
    /// Their type.
    pub kind: ColumnKind,
    /// The unit, or the range; empty for none.
    pub unit: &'static str,
    /// What they tell, in Markdown.
    pub doc: &'static str,
}

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Whole numbers from 0.
    Count,
    /// Real numbers; may be empty.
    Real,
    /// Text.
    Text,
}

impl ColumnKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Real => "real",
            Self::Text => "text",
        }
    }

    /// A column of it, without rows.
    fn column(self) -> Column {
        match self {
            Self::Count => Column::Count(Vec::new()),
            Self::Real => Column::Real(Vec::new()),
            Self::Text => Column::Text(Vec::new()),
        }
    }
}

impl TableSpec {
    /// Its columns by name, in order.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, ColumnKind)> {
        self.columns
            .iter()
            .flat_map(|column| column.names.iter().map(move |name| (*name, column.kind)))
    }

    /// The table without rows.
    pub(crate) fn empty(&self) -> Table {
        let mut table = Table::default();
        self.named().for_each(|(name, kind)| table.push(name, kind.column()));
        table
    }
}

/// What was measured at a queue, by the names of the columns.
pub fn measured(summary: &QueueSummary) -> impl Iterator<Item = (&'static str, Value)> {
    let names = QUEUES.named().map(|(name, _)| name).skip_while(|name| *name != "arrivals");
    names.zip(values(summary))
}

const fn count(
    names: &'static [&'static str],
    unit: &'static str,
    doc: &'static str,
) -> ColumnSpec {
    ColumnSpec { names, kind: ColumnKind::Count, unit, doc }
}

const fn real(names: &'static [&'static str], unit: &'static str, doc: &'static str) -> ColumnSpec {
    ColumnSpec { names, kind: ColumnKind::Real, unit, doc }
}

const fn text(names: &'static [&'static str], doc: &'static str) -> ColumnSpec {
    ColumnSpec { names, kind: ColumnKind::Text, unit: "", doc }
}

// Columns of several tables.
const TIME: ColumnSpec = real(&["time_s"], "s", "The instant.");
const QUEUE: ColumnSpec = text(&["queue"], "The link, as `A->B`.");
const GROUP: ColumnSpec = text(&["group"], "The `name` of the `[[traffic]]`.");
const FLOW: ColumnSpec = count(&["flow"], "", "As in the table of flows.");
const GOODPUT: ColumnSpec =
    real(&["goodput_bps"], "bit/s", "As in the table of flows, over this interval.");
const CAUSES: ColumnSpec = count(
    &["drops_overflow", "drops_early", "drops_penalty", "drops_policed"],
    "packets",
    "Drops by cause.",
);

/// Every table that a run may have beside its summary, in order.
pub const TABLES: [&TableSpec; 19] = [
    &QUEUES,
    &CLASSES,
    &STATIONS,
    &FLOWS,
    &SERIES,
    &GROUPS,
    &FLOW_SERIES,
    &CONTROL,
    &CONTROL_SIGNALS,
    &DELAYS,
    &FLOW_DELAYS,
    &TRANSFERS,
    &COMPLETIONS,
    &SLOWDOWNS,
    &CALLS,
    &LINKS,
    &AUTORATE,
    &SKEW,
    &PERSISTENCE,
];
