//! What is wrong with a scenario, as a Python exception.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pyo3::create_exception!(
    bluewater._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run; says where, what is there, and what is allowed."
);

/// The exception for an error; its attributes are `None` where they do not apply.
pub(crate) fn raise(py: Python<'_>, error: sim::ScenarioError) -> PyErr {
    let raised = ScenarioError::new_err(error.to_string());
    let value = raised.value(py);
    let filled = |text: String| (!text.is_empty()).then_some(text);
    let set = || -> PyResult<()> {
        value.setattr("file", error.file)?;
        value.setattr("line", error.line)?;
        value.setattr("key", filled(error.key))?;
        value.setattr("value", filled(error.value))?;
        value.setattr("problem", error.problem)?;
        value.setattr("allowed", filled(error.allowed))?;
        value.setattr("hint", filled(error.hint))
    };
    match set() {
        Ok(()) => raised,
        Err(other) => other,
    }
}
