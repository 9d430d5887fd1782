//! What can be named in a scenario, as dictionaries.

use aqm::any::{FILTERS, SHAPER};
use aqm::param::Kind;
use aqm::{About, CATALOG};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use scenario::traffic::{Carrier, TransportName};
use serde_json::Value;
use sim::Scenario;
use sim::results::kind::PacketKind;
use sim::results::registry::{SUMMARY, TABLES, WALL};

/// Queue disciplines with parameters, signals and presets; transports, applications and preset networks.
pub(crate) fn catalog(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap_or_default();
    let all = PyDict::new(py);
    all.set_item("aqms", aqms(py, CATALOG)?)?;
    all.set_item("filters", aqms(py, &[FILTERS, &[SHAPER]].concat())?)?;
    all.set_item("transports", transports(py, &schema["$defs"]["TransportName"]["oneOf"])?)?;
    for (key, kind) in [("apps", "AppName"), ("presets", "Preset")] {
        all.set_item(key, words(py, &schema["$defs"][kind]["oneOf"])?)?;
    }
    Ok(all)
}

/// The tables of a run, the summary first: name, what a row is, whether a simulation has it, columns.
pub(crate) fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for spec in std::iter::once(&SUMMARY).chain(TABLES) {
        let columns = PyList::empty(py);
        let beside = (spec.name == SUMMARY.name).then_some(&WALL);
        for column in spec.columns.iter().chain(beside) {
            let made = strings(
                py,
                &[("kind", column.kind.name()), ("unit", column.unit), ("doc", column.doc)],
            )?;
            made.set_item("names", column.names)?;
            columns.append(made)?;
        }
        let table = strings(py, &[("name", spec.name), ("row", spec.row)])?;
        table.set_item("simulated", spec.simulated)?;
        table.set_item("needs", spec.needs)?;
        table.set_item("columns", columns)?;
        list.append(table)?;
    }
    Ok(list)
}

/// The kinds of packets: name, what they are for, whether they are TCP's.
pub(crate) fn packet_kinds(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for kind in PacketKind::ALL {
        let made = strings(py, &[("name", kind.name()), ("role", kind.role().name())])?;
        made.set_item("tcp", kind.tcp())?;
        list.append(made)?;
    }
    Ok(list)
}

fn aqms<'py>(py: Python<'py>, entries: &[About]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for entry in entries {
        let parameters = PyList::empty(py);
        for parameter in (entry.parameters)() {
            parameters.append(strings(
                py,
                &[
                    ("name", parameter.name),
                    ("kind", parameter.kind.name()),
                    ("unit", unit(parameter.kind)),
                    ("default", &parameter.default),
                    ("allowed", &parameter.allowed),
                    ("doc", parameter.doc),
                    ("source", parameter.source),
                ],
            )?)?;
        }
        let signals = PyList::empty(py);
        for signal in entry.signals {
            signals.append(strings(
                py,
                &[("name", signal.name), ("unit", signal.unit), ("doc", signal.doc)],
            )?)?;
        }
        let presets = PyList::empty(py);
        for (name, settings) in entry.presets {
            let settings: Vec<_> = settings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
            presets.append(strings(py, &[("name", name), ("settings", &settings.join(", "))])?)?;
        }
        let aqm = strings(
            py,
            &[
                ("name", entry.name),
                ("family", entry.family.title()),
                ("summary", entry.summary),
                ("source", entry.source),
                ("rule", entry.rule),
            ],
        )?;
        aqm.set_item("parameters", parameters)?;
        aqm.set_item("signals", signals)?;
        aqm.set_item("presets", presets)?;
        let causes: Vec<_> =
            entry.causes.iter().map(|(cause, text)| (cause.name(), *text)).collect();
        aqm.set_item("causes", strings(py, &causes)?)?;
        let unmarked = [("coin", entry.unmarked.coin), ("rule", entry.unmarked.rule)];
        aqm.set_item("unmarked", strings(py, &unmarked)?)?;
        // What else than packets' flows it decides by.
        let labels = [("codepoints", entry.labels.codepoints), ("hosts", entry.labels.hosts)];
        let read = labels.into_iter().filter(|(_, read)| *read);
        aqm.set_item("live", entry.live.to_vec())?;
        aqm.set_item("labels_with", entry.labels.with)?;
        aqm.set_item("labels", read.map(|(what, _)| what).collect::<Vec<_>>())?;
        list.append(aqm)?;
    }
    Ok(list)
}

/// How a value's unit is written.
fn unit(kind: Kind) -> &'static str {
    match kind {
        Kind::Duration => "s, ms, us",
        Kind::Rate => "mbit, kbit",
        Kind::Size => "p, B, kB, %",
        Kind::Number | Kind::Integer | Kind::Flag | Kind::DsField | Kind::Choice(_) => "",
    }
}

/// The transports, and of each whether it is TCP, or QUIC, and whether what becomes of its packets changes
/// what it sends.
fn transports<'py>(py: Python<'py>, one_of: &Value) -> PyResult<Bound<'py, PyList>> {
    let list = words(py, one_of)?;
    for (entry, name) in list.iter().zip(TransportName::ALL) {
        entry.set_item("tcp", matches!(name.kind(), Carrier::Tcp(_)))?;
        entry.set_item("quic", matches!(name.kind(), Carrier::Quic))?;
        entry.set_item("answers", name.kind().answers())?;
    }
    Ok(list)
}

/// The words of an enumeration of the schema, each with its description.
fn words<'py>(py: Python<'py>, one_of: &Value) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for word in one_of.as_array().into_iter().flatten() {
        let text = |key: &str| word[key].as_str().unwrap_or_default();
        list.append(strings(
            py,
            &[("name", text("const")), ("summary", &text("description").replace('\n', " "))],
        )?)?;
    }
    Ok(list)
}

fn strings<'py>(py: Python<'py>, pairs: &[(&str, &str)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in pairs {
        dict.set_item(key, value)?;
    }
    Ok(dict)
}
