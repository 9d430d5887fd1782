//! Results as dictionaries of lists.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sim::Outcome;
use sim::results::table::{Column, Table};

/// Everything that a run gives.
pub(crate) fn outcome<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (spec, made) in outcome.tables() {
        all.set_item(spec.name, table(py, made)?)?;
    }
    let summary = PyDict::new(py);
    for (name, column) in outcome.summary.columns() {
        summary.set_item(name, list(py, column)?.get_item(0)?)?;
    }
    all.set_item("summary", summary)?;
    let held = outcome.held.iter().map(|held| (held.flow, held.field, held.calls, held.first));
    all.set_item("held", PyList::new(py, held.collect::<Vec<_>>())?)?;
    all.set_item("broken", PyList::new(py, &outcome.broken)?)?;
    all.set_item("scenario", &outcome.scenario)?;
    all.set_item("decision_hash", &outcome.decision_hash)?;
    all.set_item("version", env!("BLUEWATER_VERSION"))?;
    Ok(all)
}

/// A list for each column.
pub(crate) fn table<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, column) in table.columns() {
        columns.set_item(name, list(py, column)?)?;
    }
    Ok(columns)
}

fn list<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyList>> {
    match column {
        Column::Count(values) => PyList::new(py, values),
        Column::Real(values) => PyList::new(py, values),
        Column::Text(values) => PyList::new(py, values),
    }
}
