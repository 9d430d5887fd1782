//! A scenario that is read, checked and built once, and then run.

use std::sync::{Mutex, PoisonError};

use aqm::Duration;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::traffic::Transport;
use sim::results::journal::Selection;
use sim::{Run, Scenario};

use crate::{convert, error, own};

/// Slices of a run; between two of them Python's signals are looked at.
const SLICES: u64 = 500;

/// A scenario, given as TOML, with its simulation.
#[pyclass(module = "bluewater._core", frozen)]
pub(crate) struct Prepared {
    /// Until it is run.
    run: Mutex<Option<Run>>,
    canonical: String,
    captures: Vec<Odd>,
    slice: Duration,
    /// A class in Python is asked at each packet: the interpreter stays at hand.
    attached: bool,
}

#[pymethods]
impl Prepared {
    /// Reads, checks and builds it; some parameters only show that they do not fit when the queue is
    /// built.
    #[new]
    #[pyo3(signature = (text, origin = "<string>"))]
    fn new(py: Python<'_>, text: &str, origin: &str) -> PyResult<Self> {
        drop(own::failure());
        // What stopped a class that is no error of it, as Ctrl-C, comes first.
        let checked = |e| own::failure().unwrap_or_else(|| error::raise(py, e));
        let scenario = sim::capture::scenario(text, origin).map_err(checked)?;
        let canonical = scenario.to_toml();
        let captures = captures(&scenario);
        let slice = scenario.duration.0 / SLICES;
        let attached = scenario.queue.iter().any(|queue| queue.code.is_some())
            || scenario.traffic.iter().any(|group| group.class().is_some())
            || !scenario.autorate.is_empty();
        let run = py.detach(|| Run::new(scenario, text, origin)).map_err(checked)?;
        Ok(Self { run: Mutex::new(Some(run)), canonical, captures, slice, attached })
    }

    /// The scenario with all defaults, in canonical units.
    #[getter]
    fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The captures among its traffic, and what is odd about the packets that were read.
    #[getter]
    fn captures(&self) -> Vec<Odd> {
        self.captures.clone()
    }

    /// It will run on up to so many threads, as far as its network can be divided; with None on one for
    /// each processor where that takes less time. The result is the same. Returns on how many.
    fn divide(&self, py: Python<'_>, threads: Option<usize>) -> usize {
        let mut built = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        *built = built.take().map(|run| py.detach(|| run.with_threads(threads)));
        built.as_ref().map_or(1, |run| run.simulation().count())
    }

    /// Runs it, which can be done once; `progress` is called with the fraction done. `journal` is
    /// called again and again with a queue's name and a table of packets that are through: those of
    /// `flows` (first and last; none: all) that arrive within `time` (ns) and whose number is a
    /// multiple of `every`. The table has these `columns`; with none all.
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    #[pyo3(signature = (
        progress = None, journal = None, flows = vec![], time = (0, u64::MAX), every = 1, columns = vec![]
    ))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Bound<'py, PyAny>>,
        journal: Option<Bound<'py, PyAny>>,
        flows: Vec<(u32, u32)>,
        time: (u64, u64),
        every: u64,
        columns: Vec<String>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let built = self.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut run = built.ok_or_else(|| PyValueError::new_err("it has been run"))?;
        drop(own::failure());
        if journal.is_some() {
            let flows = flows.into_iter().map(|(first, last)| first..=last).collect();
            let time = time.0..=time.1;
            run.keep_journal(&Selection { flows, time, every: every.max(1), columns });
        }
        let advance = |run: &mut Run| {
            if self.attached {
                run.advance(self.slice)
            } else {
                py.detach(|| run.advance(self.slice))
            }
        };
        let tell = |run: &mut Run| match &journal {
            None => Ok(()),
            Some(journal) => run.drain_journal().into_iter().try_for_each(|(queue, rows)| {
                journal.call1((queue, convert::table(py, &rows)?)).map(drop)
            }),
        };
        loop {
            let more = advance(&mut run);
            own::failure().map_or(Ok(()), Err)?;
            tell(&mut run)?;
            if !more {
                break;
            }
            py.check_signals()?;
            if let Some(progress) = &progress {
                progress.call1((run.progress(),))?;
            }
        }
        let outcome = py.detach(|| run.finish());
        own::failure().map_or(Ok(()), Err)?;
        convert::outcome(py, &outcome)
    }
}

/// A capture's file, packets that are reordered and oversized, and the longest silence: when and how long.
type Odd = (String, u64, u64, u64, u64);

/// The captures among the traffic, each once.
fn captures(scenario: &Scenario) -> Vec<Odd> {
    let mut found: Vec<Odd> = Vec::new();
    for group in &scenario.traffic {
        if let Transport::Trace(trace) = &group.transport
            && let one = &*trace.arrivals
            && found.iter().all(|(file, ..)| *file != one.file)
        {
            let [from, lasts] = one.silence;
            found.push((one.file.clone(), one.reordered, one.oversized, from, lasts));
        }
    }
    found
}
