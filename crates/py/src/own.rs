//! Algorithms that are classes in Python: their objects asked at each event.
//!
//! What a class declares is read by `bluewater.aqm`; here its methods are called, and what they give
//! is checked. A method that raises, or gives what no decision is, ends the run: from then on the
//! queue is a plain one, and [`failure`] says why when the slice of the run is over.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Mutex;

use aqm::own::Advice;
use aqm::{Arrival, Cause, Cx, Departure, Env, Instant, Meta, Rng, Victim, View};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use scenario::error::Complaint;
use scenario::own::{self, Class};

/// What a method gives for "do nothing": no coin is tossed.
const ADMIT: f64 = -1.0;
/// Drop the packet, whether it can be marked or not.
const DROP: f64 = -2.0;
/// Signal without a coin.
const SIGNAL: f64 = -3.0;
/// Signal on the packet at the head.
const SIGNAL_HEAD: f64 = -4.0;
/// A timer that never comes.
const NEVER: i64 = i64::MAX;

/// The module in Python that reads classes.
const MODULE: &str = "bluewater.aqm";

thread_local! {
    static FAILED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    static STREAM: Cell<Option<Rng>> = const { Cell::new(None) };
}

/// What ended a run on this thread, if something did; it is forgotten then.
pub(crate) fn failure() -> Option<PyErr> {
    FAILED.take()
}

/// The next uniform number in [0, 1) of the queue whose method is being called.
pub(crate) fn random() -> Option<f64> {
    let mut rng = STREAM.take()?;
    let drawn = rng.uniform();
    STREAM.set(Some(rng));
    Some(drawn)
}

/// The packet that a method is asked about; during the call alone.
#[pyclass(module = "bluewater.aqm", get_all)]
struct Packet {
    /// Length on the wire in bytes.
    len: u32,
    /// The number of its flow.
    flow: u64,
    /// The codepoint of its ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 CE.
    ecn: u8,
    /// When it arrived at the queue, in nanoseconds.
    arrived: u64,
}

/// The queue as a method sees it, without the packet in question; during the call alone.
#[derive(Clone, Copy)]
#[pyclass(module = "bluewater.aqm", get_all)]
struct Queue {
    /// Packets queued.
    packets: u32,
    /// Bytes queued.
    bytes: u64,
    /// Whether the packet in question fits.
    fits: bool,
    /// The most packets that it holds.
    limit_packets: u32,
    /// The most bytes that it holds.
    limit_bytes: u64,
    /// The rate of the link in bit/s.
    rate: u64,
    /// The typical packet in bytes.
    mean_packet: u32,
}

/// What a method is asked, and which.
struct Event<'a> {
    name: &'static str,
    method: fn(&Object) -> Option<&Py<PyAny>>,
    pkt: Option<&'a Meta>,
    q: Option<&'a View<'a>>,
}

/// One object of a class.
struct Object {
    object: Py<PyAny>,
    arrival: Option<Py<PyAny>>,
    departure: Option<Py<PyAny>>,
    overflow: Option<Py<PyAny>>,
    idle: Option<Py<PyAny>>,
    timer: Option<Py<PyAny>>,
    packet: Py<Packet>,
    queue: Py<Queue>,
    /// Names of signals, which are attributes of the object.
    signals: Vec<&'static str>,
    /// When the timer comes, ns.
    wake: i64,
    failed: bool,
}

impl Object {
    /// The object at rest.
    fn new(py: Python<'_>, object: Bound<'_, PyAny>, env: &Env) -> PyResult<Self> {
        let queue = Queue {
            packets: 0,
            bytes: 0,
            fits: true,
            limit_packets: env.limit.max_packets(),
            limit_bytes: env.limit.max_bytes(),
            rate: env.rate.bits_per_second(),
            mean_packet: env.mean_packet,
        };
        let mut made = Self::of(py, object, queue)?;
        let mut started = || {
            made.object.bind(py).call_method1("start", (env.now.as_nanos(), &made.queue))?;
            made.read_timer(py, env.now, false)
        };
        started().map_err(|error| told(py, error, &made.object, "start", env.now))?;
        Ok(made)
    }

    /// The object in the state that it has.
    fn of(py: Python<'_>, object: Bound<'_, PyAny>, queue: Queue) -> PyResult<Self> {
        let method = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            Ok(object.getattr_opt(name)?.map(Bound::unbind))
        };
        let names = object.getattr("signals")?.try_iter()?;
        let names: Vec<String> = names.map(|name| name?.extract()).collect::<PyResult<_>>()?;
        Ok(Self {
            arrival: method("on_arrival")?,
            departure: method("on_departure")?,
            overflow: method("on_overflow")?,
            idle: method("on_idle")?,
            timer: method("on_timer")?,
            packet: Py::new(py, Packet { len: 0, flow: 0, ecn: 0, arrived: 0 })?,
            queue: Py::new(py, queue)?,
            signals: names.into_iter().map(kept).collect(),
            wake: NEVER,
            failed: false,
            object: object.unbind(),
        })
    }

    /// The same, asked nothing any more.
    fn plain(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            arrival: None,
            departure: None,
            overflow: None,
            idle: None,
            timer: None,
            packet: self.packet.clone_ref(py),
            queue: self.queue.clone_ref(py),
            signals: self.signals.clone(),
            wake: NEVER,
            failed: true,
        }
    }

    /// Calls a method and gives what it gave, checked by `read`; `otherwise` if it cannot.
    fn ask<T>(
        &mut self,
        event: &Event<'_>,
        cx: &mut Cx<'_>,
        otherwise: T,
        read: impl FnOnce(f64, &mut Rng) -> Result<T, &'static str>,
    ) -> T {
        if self.failed || (event.method)(self).is_none() {
            return otherwise;
        }
        let asked = Python::attach(|py| {
            let given = self.call(py, event, cx)?;
            let value = if given.is_none() { ADMIT } else { given.extract::<f64>()? };
            self.read_timer(py, cx.now, event.name == "on_timer")?;
            read(value, cx.rng).map_err(|allowed| wrong(&format!("it gave {value}"), allowed))
        });
        asked.unwrap_or_else(|error| {
            self.failed = true;
            self.wake = NEVER;
            Python::attach(|py| fail(py, error, &self.object, event.name, cx.now));
            otherwise
        })
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        event: &Event<'_>,
        cx: &mut Cx<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let &Event { method, pkt, q, .. } = event;
        let Some(method) = method(self) else { return Ok(py.None().into_bound(py)) };
        if let Some(q) = q {
            let mut queue = self.queue.try_borrow_mut(py)?;
            (queue.packets, queue.bytes) = (q.backlog().packets, q.backlog().bytes);
            queue.fits = pkt.is_none_or(|pkt| q.fits(pkt.len));
        }
        let now = cx.now.as_nanos();
        let method = method.bind(py);
        if let Some(pkt) = pkt {
            *self.packet.try_borrow_mut(py)? = Packet {
                len: pkt.len,
                flow: pkt.flow.0,
                ecn: pkt.ecn as u8,
                arrived: pkt.arrived.as_nanos(),
            };
        }
        let before = STREAM.replace(Some(cx.rng.clone()));
        let given = match pkt {
            Some(_) => method.call1((now, &self.packet, &self.queue)),
            None => method.call1((now, &self.queue)),
        };
        if let Some(rng) = STREAM.replace(before) {
            *cx.rng = rng;
        }
        given
    }

    /// What `timer` says, for classes that have one.
    fn read_timer(&mut self, py: Python<'_>, now: Instant, fired: bool) -> PyResult<()> {
        if self.timer.is_none() {
            return Ok(());
        }
        let timer: i64 = self.object.bind(py).getattr(pyo3::intern!(py, "timer"))?.extract()?;
        let now = now.as_nanos() as i64;
        // One that has just come, or was due at this very instant, is another matter.
        let late = if fired { timer <= now } else { timer != self.wake && timer < now };
        if late {
            let allowed = "a time after that of the call, in nanoseconds, or NEVER";
            return Err(wrong(&format!("timer = {timer} at {now}"), allowed));
        }
        self.wake = timer;
        Ok(())
    }
}

/// The error for what a method gave.
fn wrong(given: &str, allowed: &str) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(format!("{given}; allowed: {allowed}"))
}

/// Keeps why a method failed.
fn fail(py: Python<'_>, error: PyErr, object: &Py<PyAny>, method: &str, now: Instant) {
    let error = told(py, error, object, method, now);
    FAILED.with_borrow_mut(|first| {
        first.get_or_insert(error);
    });
}

/// The error with file, line, method and time.
fn told(py: Python<'_>, error: PyErr, object: &Py<PyAny>, method: &str, now: Instant) -> PyErr {
    let seconds = now.as_nanos() as f64 / 1e9;
    let raised = error.into_value(py);
    let made = py
        .import(MODULE)
        .and_then(|aqm| aqm.call_method1("failure", (raised, object, method, seconds)));
    made.map_or_else(|other| other, PyErr::from_value)
}

/// A name for as long as the process lives; each is kept once.
fn kept(name: String) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(|broken| broken.into_inner());
    if let Some(known) = kept.get(name.as_str()) {
        return known;
    }
    let new: &'static str = Box::leak(name.into_boxed_str());
    kept.insert(new);
    new
}

/// What is allowed of an answer to an arrival.
const ARRIVALS: &str = "a probability of 0 … 1, ADMIT, SIGNAL, SIGNAL_HEAD or DROP";
/// What is allowed of an answer to a departure.
const DEPARTURES: &str = "a probability of 0 … 1, ADMIT, SIGNAL or DROP";
/// What is allowed of an answer to an overflow.
const VICTIMS: &str = "ARRIVING, or the position of a queued packet (HEAD is 0)";

impl Advice for Object {
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let event = Event {
            name: "on_arrival",
            method: |o| o.arrival.as_ref(),
            pkt: Some(pkt),
            q: Some(q),
        };
        self.ask(&event, cx, Arrival::Admit, |answer, rng| {
            Ok(match answer {
                ADMIT => Arrival::Admit,
                DROP => Arrival::Reject(Cause::Early),
                SIGNAL => Arrival::Signal(Cause::Early),
                SIGNAL_HEAD => Arrival::SignalHead(Cause::Early),
                p if !(0.0..=1.0).contains(&p) => return Err(ARRIVALS),
                p if rng.chance(p) => Arrival::Signal(Cause::Early),
                _ => Arrival::Admit,
            })
        })
    }

    fn on_departure(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        let event = Event {
            name: "on_departure",
            method: |o| o.departure.as_ref(),
            pkt: Some(pkt),
            q: Some(q),
        };
        self.ask(&event, cx, Departure::Send, |answer, rng| {
            Ok(match answer {
                ADMIT => Departure::Send,
                DROP => Departure::Drop(Cause::Early),
                SIGNAL => Departure::Signal(Cause::Early),
                p if !(0.0..=1.0).contains(&p) => return Err(DEPARTURES),
                p if rng.chance(p) => Departure::Signal(Cause::Early),
                _ => Departure::Send,
            })
        })
    }

    fn on_overflow(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Victim {
        let len = q.len() as f64;
        let event = Event {
            name: "on_overflow",
            method: |o| o.overflow.as_ref(),
            pkt: Some(pkt),
            q: Some(q),
        };
        self.ask(&event, cx, Victim::Arriving, |answer, _| match answer {
            ADMIT => Ok(Victim::Arriving),
            position if position >= 0.0 && position < len && position.fract() == 0.0 => {
                Ok(Victim::At(position as usize))
            }
            _ => Err(VICTIMS),
        })
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        let event = Event { name: "on_idle", method: |o| o.idle.as_ref(), pkt: None, q: None };
        self.ask(&event, cx, (), |_, _| Ok(()));
    }

    fn poll_at(&self) -> Option<Instant> {
        (self.wake != NEVER).then(|| Instant::from_nanos(self.wake.max(0) as u64))
    }

    fn on_timer(&mut self, q: &View<'_>, cx: &mut Cx<'_>) {
        if self.poll_at().is_none_or(|at| at > cx.now) {
            return; // asked early
        }
        let event = Event { name: "on_timer", method: |o| o.timer.as_ref(), pkt: None, q: Some(q) };
        self.ask(&event, cx, (), |_, _| Ok(()));
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        Python::attach(|py| {
            for name in &self.signals {
                let value = self.object.bind(py).getattr(*name).and_then(|v| v.extract::<f64>());
                sink(
                    name,
                    value.unwrap_or_else(|error| {
                        fail(py, error, &self.object, "signals", now);
                        f64::NAN
                    }),
                );
            }
        });
    }

    fn duplicate(&self) -> Box<dyn Advice> {
        Python::attach(|py| {
            let copy = || -> PyResult<Self> {
                let object = py.import("copy")?.call_method1("deepcopy", (&self.object,))?;
                let queue = *self.queue.try_borrow(py)?;
                Ok(Self { wake: self.wake, failed: self.failed, ..Self::of(py, object, queue)? })
            };
            Box::new(copy().unwrap_or_else(|error| {
                fail(py, error, &self.object, "deepcopy", Instant::ZERO);
                self.plain(py)
            }))
        })
    }
}

/// Runs classes of Python.
struct Classes;

/// From now on scenarios may have algorithms in Python.
pub(crate) fn provide() {
    own::provide(&Classes);
}

impl own::Own for Classes {
    fn canonical(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, Complaint> {
        Python::attach(|py| {
            let call = || -> PyResult<Vec<(String, String)>> {
                let args = (class.code, class.file, class.name, dict(py, settings)?);
                py.import(MODULE)?.call_method1("canonical", args)?.extract()
            };
            call().map_err(|error| complaint(py, &error))
        })
    }

    fn build(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
        env: &Env,
    ) -> Result<Box<dyn Advice>, Complaint> {
        Python::attach(|py| {
            let call = || -> PyResult<Box<dyn Advice>> {
                let args = (class.code, class.file, class.name, dict(py, settings)?);
                let object = py.import(MODULE)?.call_method1("made", args)?;
                Ok(Box::new(Object::new(py, object, env)?))
            };
            call().map_err(|error| complaint(py, &error))
        })
    }
}

fn dict<'py>(py: Python<'py>, settings: &[(&str, &str)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, text) in settings {
        dict.set_item(name, text)?;
    }
    Ok(dict)
}

/// An error of `bluewater.aqm`, whose attributes say where, or of the user's own code.
fn complaint(py: Python<'_>, error: &PyErr) -> Complaint {
    let value = error.value(py);
    let text = |name: &str| -> Option<String> {
        value.getattr(name).ok()?.cast::<PyString>().ok().map(|text| text.to_string())
    };
    match text("problem") {
        None => Complaint::wrong("aqm", error.to_string()),
        Some(problem) => Complaint::wrong(text("key").unwrap_or_else(|| "aqm".into()), problem)
            .allowed(text("allowed").unwrap_or_default())
            .hint(text("hint").unwrap_or_default()),
    }
}

/// A duration in nanoseconds or a rate in bit/s, and its canonical text.
pub(crate) fn quantity(kind: &str, text: &str) -> PyResult<(u64, String)> {
    let wrong = |e: aqm::units::TextError| wrong(text, e.allowed);
    if kind == "rate" {
        let rate: aqm::Rate = text.parse().map_err(wrong)?;
        return Ok((rate.bits_per_second(), rate.to_string()));
    }
    let duration: aqm::Duration = text.parse().map_err(wrong)?;
    Ok((duration.as_nanos(), duration.to_string()))
}
