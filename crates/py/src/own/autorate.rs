//! Autorate algorithms that are classes in Python.

use aqm::{Instant, Rng};
use pyo3::prelude::*;
use scenario::error::Complaint;
use scenario::own::Class;
use sim::autorate::{Algorithm, Bounds, Provider, Seen, Start, Way};

use super::{Classes, complaint, fail, has_failed, told, with_stream};

/// The module in Python that shows an object what it measures, and checks what it decides.
const MODULE: &str = "bluewater.autorate";

/// An object of a class.
struct Object {
    /// Shows it what was measured.
    driver: Py<PyAny>,
    object: Py<PyAny>,
    rng: Rng,
    failed: bool,
}

impl Algorithm for Object {
    fn step(&mut self, seen: &Seen) -> [Option<u64>; 2] {
        if self.failed || has_failed() {
            return [None; 2];
        }
        let up_first = seen.up_first;
        let echo = |echo: &sim::autorate::Echo| {
            let [out, back] = [echo.turned - echo.sent, echo.back - echo.turned];
            if up_first { (echo.sent, out, back) } else { (echo.sent, back, out) }
        };
        let echoes: Vec<(u64, u64, u64)> = seen.echoes.iter().map(echo).collect();
        let ways = seen.ways.map(|way| {
            way.map(|Way { rate, sent, arrived, backlog }| (rate, sent, arrived, backlog))
        });
        let (driver, rng) = (&self.driver, &mut self.rng);
        let lost = &seen.lost[..];
        Python::attach(|py| {
            let ask = || -> PyResult<(Option<f64>, Option<f64>)> {
                let given = (seen.now, echoes, lost, seen.oldest, ways[0], ways[1]);
                with_stream(rng, || driver.call_method1(py, "step", given))?.extract(py)
            };
            match ask() {
                Ok((down, up)) => [down, up].map(|rate| rate.map(|rate| rate as u64)),
                Err(error) => {
                    self.failed = true;
                    fail(py, error, &self.object, "step", Instant::from_nanos(seen.now));
                    [None; 2]
                }
            }
        })
    }
}

impl Provider for Classes {
    fn algorithm(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
        start: &Start,
        mut rng: Rng,
    ) -> Result<Box<dyn Algorithm>, Complaint> {
        Python::attach(|py| {
            let mut call = || -> PyResult<Object> {
                let args = super::arguments(py, class, settings)?;
                let object = py.import(super::MODULE)?.call_method1("made", args)?.call0()?;
                let bounds = |way: Option<Bounds>| way.map(|b| (b.base, b.least, b.most));
                let [down, up] = start.ways.map(bounds);
                let make = py.import(MODULE)?.getattr("Driver")?;
                let driver = make.call1((&object, start.period, down, up))?;
                with_stream(&mut rng, || driver.call_method0("start"))
                    .map_err(|e| told(py, e, &object.clone().unbind(), "start", Instant::ZERO))?;
                let (driver, object) = (driver.unbind(), object.unbind());
                Ok(Object { driver, object, rng: rng.clone(), failed: false })
            };
            call()
                .map(|object| Box::new(object) as Box<dyn Algorithm>)
                .map_err(|error| complaint(py, &error, class.role))
        })
    }
}
