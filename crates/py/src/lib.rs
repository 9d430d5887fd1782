//! The simulator, and captures, as the Python module `bluewater._core`: conversion and errors only.

mod captures;
mod catalog;
mod convert;
mod driven;
mod episodes;
mod error;
mod explain;
mod own;
mod prepared;

use pyo3::prelude::*;

/// The compiled core of Bluewater.
#[pymodule]
mod _core {
    use std::num::NonZeroU32;
    use std::path::PathBuf;

    use aqm::Duration;
    use aqm::units::TextError;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::types::{PyDict, PyList, PyString};
    use scenario::course::{self, Model};
    use sim::Scenario;

    #[pymodule_export]
    use crate::error::ScenarioError;

    #[pymodule_export]
    use crate::driven::Driven;

    #[pymodule_export]
    use crate::episodes::Episodes;

    #[pymodule_export]
    use crate::prepared::Prepared;

    use sim::Run;

    use crate::{captures, error, explain, own};

    /// The JSON Schema of scenario files.
    #[pyfunction]
    fn schema() -> String {
        Scenario::json_schema()
    }

    /// Everything that can be named in a scenario, with its documentation.
    #[pyfunction]
    fn catalog(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        crate::catalog::catalog(py)
    }

    /// The tables of a run, the summary first, with their columns.
    #[pyfunction]
    fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        crate::catalog::tables(py)
    }

    /// The kinds of packets that files of packets name: what they are for (`data`, `answer`,
    /// `opening`), and whether they are TCP's.
    #[pyfunction]
    fn packet_kinds(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        crate::catalog::packet_kinds(py)
    }

    /// A hint for a word that is none of `names`, but has a meaning in other programs.
    #[pyfunction]
    fn elsewhere(word: &str, names: Vec<String>) -> Option<String> {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        scenario::elsewhere::hint(word, &names)
    }

    /// What a queue discipline remembers with a buffer such as `100p` or `200kB`, in bytes.
    #[pyfunction]
    #[pyo3(signature = (aqm, buffer = "100p"))]
    fn state<'py>(py: Python<'py>, aqm: &str, buffer: &str) -> PyResult<Bound<'py, PyDict>> {
        explain::state(py, aqm, buffer)
    }

    /// Shapes that SFB's bins can have, as levels, bins in each and the probability that a
    /// responsive flow is misclassified among `nonresponsive` ones; and the best levels and bins.
    #[pyfunction]
    fn sfb_shapes(bins: NonZeroU32, nonresponsive: u32) -> explain::Shapes {
        explain::shapes(bins, nonresponsive)
    }

    /// What packets take on the wire in the words of `tc cake`: overhead and least length in bytes, and
    /// how frames are cut (`none`, `atm`, `ptm`).
    #[pyfunction]
    fn framing(text: &str) -> PyResult<(i32, u32, &'static str)> {
        let framing = read_framing(text)?;
        let cells = match framing.cells {
            aqm::framing::Cells::None => "none",
            aqm::framing::Cells::Atm => "atm",
            aqm::framing::Cells::Ptm => "ptm",
        };
        Ok((framing.overhead.unwrap_or(0), framing.mpu, cells))
    }

    /// Bytes that an IP packet of `length` takes on the wire, by the words of [`framing`].
    #[pyfunction]
    fn on_wire(text: &str, length: u32) -> PyResult<u32> {
        Ok(read_framing(text)?.on_wire(length))
    }

    fn read_framing(text: &str) -> PyResult<aqm::Framing> {
        text.parse().map_err(|e: TextError| {
            let allowed = format!("allowed: {}; {}", e.allowed, e.hint);
            PyValueError::new_err(format!("framing {text:?}: not allowed; {allowed}"))
        })
    }

    /// The chance that a responsive flow shares a bin with one of `nonresponsive` flows on each of
    /// `levels` levels of `bins` bins (Feng02 eq. 1).
    #[pyfunction]
    fn misclassification(levels: u32, bins: NonZeroU32, nonresponsive: u32) -> f64 {
        aqm::policy::sfb::misclassification(levels, bins.get(), nonresponsive)
    }

    /// Measures the capture at `path`, or of stdin, as tables. `top` flows are listed; `progress` is
    /// called with the fraction done.
    #[pyfunction]
    #[pyo3(signature = (path, windows, timeout, most_flows, top, progress = None))]
    fn measure_trace<'py>(
        py: Python<'py>,
        path: Option<PathBuf>,
        windows: Vec<String>,
        timeout: &str,
        most_flows: usize,
        top: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let options = captures::measures(&windows, timeout, most_flows)?;
        captures::measure(py, path.as_deref(), &options, top, progress.as_ref())
    }

    /// The UDP datagrams of the capture at `path`: time (ns since the first packet), bytes, ECN field, what it
    /// has at both ends of a path, source, destination and ports of each.
    #[pyfunction]
    fn datagrams<'py>(
        py: Python<'py>,
        path: PathBuf,
        most: usize,
    ) -> PyResult<Vec<captures::Datagram<'py>>> {
        captures::datagrams(py, &path, most)
    }

    /// Measures a generated trace without writing it.
    #[pyfunction]
    #[pyo3(signature = (windows, timeout, progress = None, **options))]
    fn measure_generated<'py>(
        py: Python<'py>,
        windows: Vec<String>,
        timeout: &str,
        progress: Option<Bound<'py, PyAny>>,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let measures = captures::measures(&windows, timeout, u32::MAX as usize)?;
        let mut packets = captures::generator(options.as_ref())?;
        captures::analyse(py, &mut packets, &measures, 0, progress.as_ref())
    }

    /// Checks what [`measure_generated`] is given.
    #[pyfunction]
    #[pyo3(signature = (windows, timeout, **options))]
    fn check_generated(
        windows: Vec<String>,
        timeout: &str,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        captures::measures(&windows, timeout, u32::MAX as usize)?;
        captures::generator(options.as_ref()).map(drop)
    }

    /// Generates a trace into a file; gives its packets and bytes.
    #[pyfunction]
    #[pyo3(signature = (path, progress = None, **options))]
    fn generate_trace(
        py: Python<'_>,
        path: PathBuf,
        progress: Option<Bound<'_, PyAny>>,
        options: Option<Bound<'_, PyDict>>,
    ) -> PyResult<(u64, u64)> {
        captures::write(py, captures::generator(options.as_ref())?, &path, progress.as_ref())
    }

    /// Writes packets of a simulation with comments to a file, as pcapng; a row each: arrival (ns),
    /// bytes, ECN field; addresses (from, to), ports; of TCP number, acknowledgement and whether it
    /// is a SYN; the comment.
    #[pyfunction]
    fn write_commented(path: PathBuf, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        captures::write_commented(&path, rows)
    }

    /// Rates over time as `csv` or `mahimahi`, with their mean (bit/s) and the length of a round (s).
    #[pyfunction]
    fn convert_rates(text: &str, form: &str) -> PyResult<(String, f64, f64)> {
        let rates = course::read(&course::RATE, text, true).map_err(PyValueError::new_err)?;
        let length = rates.period().unwrap_or_default();
        let text = match form {
            "mahimahi" => course::to_mahimahi(&rates, length),
            _ => course::to_csv(&rates),
        };
        Ok((text, link::varying::mean(&rates), length as f64 / 1e9))
    }

    /// Rates that a model makes, as CSV.
    #[pyfunction]
    fn model_rates(model: &str, mean: &str, length: &str, seed: u64) -> PyResult<String> {
        let wrong = |e: TextError| PyValueError::new_err(format!("{}; {}", e.allowed, e.hint));
        let model = Model::named(model).ok_or_else(|| PyValueError::new_err("no such model"))?;
        let length: Duration = length.parse().map_err(wrong)?;
        if !(Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&length) {
            return Err(PyValueError::new_err("a length of 100ms … 1h"));
        }
        Ok(course::to_csv(&model.make(mean.parse().map_err(wrong)?, length, seed)))
    }

    /// The next uniform number in [0, 1) of the object whose method is being called.
    #[pyfunction]
    fn random() -> PyResult<f64> {
        let only = "only in a method of an AQM or a controller";
        own::random().ok_or_else(|| PyValueError::new_err(only))
    }

    /// What each method of a controller is given, as fields with their forms in memory; those that are
    /// given the time alone are left out.
    #[pyfunction]
    fn events() -> own::control::Forms {
        own::control::forms()
    }

    /// Runs one scenario, given as TOML: its decision hash, and each call of its controllers in Python:
    /// the connection, the method, the time (ns), what it decided then (window, rate, timer), and for
    /// `on_ack` whether the window was used, for `on_congestion` the kind.
    #[pyfunction]
    #[pyo3(signature = (text, origin = "<string>"))]
    fn controlled(
        py: Python<'_>,
        text: &str,
        origin: &str,
    ) -> PyResult<(String, Vec<own::control::Call>)> {
        let checked = |e| error::raise(py, e);
        let scenario = sim::capture::scenario(text, origin).map_err(checked)?;
        drop(own::failure());
        let traced = own::control::Traced::begin();
        let mut run = Run::new(scenario, text, origin).map_err(checked)?;
        while run.advance(Duration::from_millis(100)) {
            own::failure().map_or(Ok(()), Err)?;
            py.check_signals()?;
        }
        let hash = run.finish().decision_hash;
        own::failure().map_or(Ok(()), Err)?;
        Ok((hash, traced.calls()))
    }

    /// A `duration` in nanoseconds, a `rate` in bit/s or a `size` in bytes, and its canonical text.
    #[pyfunction]
    fn quantity(py: Python<'_>, kind: &str, text: &str) -> PyResult<(u64, String)> {
        own::quantity(py, kind, text)
    }

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        own::provide();
        #[cfg(feature = "quic")]
        quic::register();
        Ok(())
    }

    /// The version, with a hash over what results are made by.
    #[pyfunction]
    fn version(py: Python<'_>) -> Bound<'_, PyString> {
        PyString::new(py, env!("BLUEWATER_VERSION"))
    }
}
