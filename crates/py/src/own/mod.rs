//! Algorithms that are classes in Python: their objects asked at each event; congestion controllers
//! that are such are in [`control`], autorate algorithms in [`autorate`].
//!
//! What a class declares is read by `bluewater.own`; here its methods are called, and what they give
//! is checked. A method that raises, or gives what no decision is, ends the run: from then on the
//! queue is a plain one, and [`failure`] says why when the slice of the run is over.

mod autorate;
pub(crate) mod control;
mod program;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use aqm::own::Advice;
use aqm::units::TextError;
use aqm::{Arrival, Cause, Cx, Departure, Env, Instant, Meta, Rng, Victim, View};
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use scenario::error::Complaint;
use scenario::own::{self, Class, Role};
use sim::control::Make;

use program::Program;

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
const MODULE: &str = "bluewater.own";

thread_local! {
    static FAILED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    static STAND_IN: RefCell<Option<Box<dyn StandIn>>> = const { RefCell::new(None) };
    static STREAM: Cell<Option<Rng>> = const { Cell::new(None) };
}

/// What ended a run on this thread, if something did; it is forgotten then.
pub(crate) fn failure() -> Option<PyErr> {
    FAILED.take()
}

/// What stands in place of the objects of classes.
pub(crate) trait StandIn {
    /// In place of one that advises a queue.
    fn advice(&self, class: Class<'_>, env: &Env) -> Box<dyn Advice>;
    /// In place of those that control connections.
    fn maker(&self, class: Class<'_>) -> Arc<dyn Make>;
}

/// Builds with a stand-in for all classes.
pub(crate) fn with_stand_in<T>(one: Box<dyn StandIn>, build: impl FnOnce() -> T) -> T {
    STAND_IN.set(Some(one));
    let built = build();
    STAND_IN.set(None);
    built
}

/// What the stand-in gives, if there is one now.
fn stand_in<T>(ask: impl FnOnce(&dyn StandIn) -> T) -> Option<T> {
    STAND_IN.with_borrow(|one| one.as_deref().map(ask))
}

/// Whether a run on this thread has come to its end by a failure: nobody is asked any more.
fn has_failed() -> bool {
    FAILED.with_borrow(Option::is_some)
}

/// The next uniform number in [0, 1) of the queue whose method is being called.
pub(crate) fn random() -> Option<f64> {
    let mut rng = STREAM.take()?;
    let drawn = rng.uniform();
    STREAM.set(Some(rng));
    Some(drawn)
}

/// Calls a method that may draw from `rng`.
fn with_stream<T>(rng: &mut Rng, call: impl FnOnce() -> T) -> T {
    let before = STREAM.replace(Some(rng.clone()));
    let given = call();
    if let Some(after) = STREAM.replace(before) {
        *rng = after;
    }
    given
}

/// The packet that a method is asked about; during the call alone.
///
/// All numbers are signed, as compiled code computes with them.
#[derive(Clone, Copy, Default)]
#[pyclass(module = "bluewater.aqm", get_all)]
#[repr(C)]
struct Packet {
    /// Length on the wire in bytes.
    len: i64,
    /// The number of its flow; of real packets, 63 bits of its hash.
    flow: i64,
    /// The codepoint of its ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 CE.
    ecn: i64,
    /// When it arrived at the queue, in nanoseconds.
    arrived: i64,
}

impl Packet {
    fn of(meta: &Meta) -> Self {
        Self {
            len: i64::from(meta.len),
            flow: (meta.flow.0 & i64::MAX as u64) as i64,
            ecn: meta.ecn as i64,
            arrived: meta.arrived.as_nanos() as i64,
        }
    }
}

/// The queue as a method sees it, without the packet in question; during the call alone.
#[derive(Clone, Copy)]
#[pyclass(module = "bluewater.aqm", get_all)]
#[repr(C)]
struct Queue {
    /// Packets queued.
    packets: i64,
    /// Bytes queued.
    bytes: i64,
    /// The most packets that it holds.
    limit_packets: i64,
    /// The most bytes that it holds; the largest number if it is limited in packets.
    limit_bytes: i64,
    /// The rate of the link in bit/s.
    rate: i64,
    /// The typical packet in bytes.
    mean_packet: i64,
    /// Whether the packet in question fits.
    fits: bool,
}

impl Queue {
    /// The empty queue of `env`.
    fn of(env: &Env) -> Self {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Self {
            packets: 0,
            bytes: 0,
            limit_packets: i64::from(env.limit.max_packets()),
            limit_bytes: signed(env.limit.max_bytes()),
            rate: signed(env.rate.bits_per_second()),
            mean_packet: i64::from(env.mean_packet),
            fits: true,
        }
    }

    /// As it is at an event; nothing is queued when the link finds it idle.
    fn see(&mut self, event: &Event<'_>) {
        let backlog = event.q.map(View::backlog).unwrap_or_default();
        (self.packets, self.bytes) = (i64::from(backlog.packets), backlog.bytes as i64);
        self.fits = event.q.zip(event.pkt).is_none_or(|(q, pkt)| q.fits(pkt.len));
    }
}

/// The methods that a class may have.
const EVENTS: [&str; 5] = ["on_arrival", "on_departure", "on_overflow", "on_idle", "on_timer"];
const ARRIVAL: usize = 0;
const DEPARTURE: usize = 1;
const OVERFLOW: usize = 2;
const IDLE: usize = 3;
const TIMER: usize = 4;

/// What a method is asked, and which, by its place in [`EVENTS`].
struct Event<'a> {
    kind: usize,
    pkt: Option<&'a Meta>,
    q: Option<&'a View<'a>>,
}

/// One object of a class.
struct Object {
    object: Py<PyAny>,
    /// Its methods, in the order of [`EVENTS`].
    methods: [Option<Py<PyAny>>; EVENTS.len()],
    /// The packet and the queue as its methods get them.
    shown: (Py<Packet>, Py<Queue>),
    queue: Queue,
    /// Names of signals, which are attributes of the object.
    signals: Vec<&'static str>,
    /// In place of the methods, if they are compiled.
    program: Option<Program>,
    /// When the timer comes, ns.
    wake: i64,
    failed: bool,
}

impl Object {
    /// The object at rest.
    fn new(py: Python<'_>, object: Bound<'_, PyAny>, env: &Env) -> PyResult<Self> {
        let mut made = Self::of(py, object, Queue::of(env))?;
        let mut started = || {
            made.object.bind(py).call_method1("start", (env.now.as_nanos(), &made.shown.1))?;
            let timer = made.timer(py)?;
            made.set_timer(timer, env.now, false)
        };
        started().map_err(|error| told(py, error, &made.object, "start", env.now))?;
        let object = made.object.bind(py);
        if object.getattr("compiled")?.is_truthy()? {
            made.program = Some(Program::new(object, &EVENTS)?);
        }
        Ok(made)
    }

    /// The object in the state that it has.
    fn of(py: Python<'_>, object: Bound<'_, PyAny>, queue: Queue) -> PyResult<Self> {
        let method = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            Ok(object.getattr_opt(name)?.map(Bound::unbind))
        };
        let [arrival, departure, overflow, idle, timer] = EVENTS.map(method);
        Ok(Self {
            methods: [arrival?, departure?, overflow?, idle?, timer?],
            shown: (Py::new(py, Packet::default())?, Py::new(py, queue)?),
            queue,
            signals: signals(&object)?,
            program: None,
            wake: NEVER,
            failed: false,
            object: object.unbind(),
        })
    }

    /// A copy that only holds the object: nothing is asked of it.
    fn plain(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            methods: [const { None }; EVENTS.len()],
            shown: (self.shown.0.clone_ref(py), self.shown.1.clone_ref(py)),
            queue: self.queue,
            signals: self.signals.clone(),
            program: None,
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
        if self.failed || self.methods[event.kind].is_none() || has_failed() {
            return otherwise;
        }
        self.queue.see(event);
        let asked = self.answer(event, cx).and_then(|(value, timer)| {
            self.set_timer(timer, cx.now, event.kind == TIMER)?;
            read(value, cx.rng).map_err(|allowed| wrong(&format!("it gave {value}"), allowed))
        });
        asked.unwrap_or_else(|error| {
            self.failed = true;
            self.wake = NEVER;
            Python::attach(|py| fail(py, error, &self.object, EVENTS[event.kind], cx.now));
            otherwise
        })
    }

    /// What a method gives, and `timer` after that.
    fn answer(&mut self, event: &Event<'_>, cx: &mut Cx<'_>) -> PyResult<(f64, i64)> {
        if let Some(program) = &mut self.program {
            let packet = event.pkt.map(Packet::of).unwrap_or_default();
            let now = cx.now.as_nanos() as i64;
            let queue = Some(&self.queue);
            if let Some(value) = program.call(event.kind, &packet, queue, now, cx.rng) {
                return Ok((value, program.timer().unwrap_or(NEVER)));
            }
            Python::attach(|py| program.restore(self.object.bind(py)))?;
        }
        let answer = Python::attach(|py| {
            let given = self.call(py, event, cx)?;
            let value = if given.is_none() {
                ADMIT
            } else {
                let not = |_| wrong(&format!("it gave {given:?}"), ALLOWED[event.kind]);
                given.extract::<f64>().map_err(not)?
            };
            Ok((value, self.timer(py)?))
        });
        match self.program {
            Some(_) if answer.is_ok() => {
                Err(PyRuntimeError::new_err("compiled it raised, and plain it does not"))
            }
            _ => answer,
        }
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        event: &Event<'_>,
        cx: &mut Cx<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (packet, queue) = &self.shown;
        *queue.try_borrow_mut(py)? = self.queue;
        let now = cx.now.as_nanos();
        let Some(method) = &self.methods[event.kind] else { return Ok(py.None().into_bound(py)) };
        let method = method.bind(py);
        if let Some(pkt) = event.pkt {
            *packet.try_borrow_mut(py)? = Packet::of(pkt);
        }
        with_stream(cx.rng, || match event.pkt {
            Some(_) => method.call1((now, packet, queue)),
            None => method.call1((now, queue)),
        })
    }

    /// What `timer` says, for classes that have one.
    fn timer(&self, py: Python<'_>) -> PyResult<i64> {
        if self.methods[TIMER].is_none() {
            return Ok(NEVER);
        }
        self.object.bind(py).getattr(pyo3::intern!(py, "timer"))?.extract()
    }

    /// Sets when the timer comes, which `fired` if it has just come.
    fn set_timer(&mut self, timer: i64, now: Instant, fired: bool) -> PyResult<()> {
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
    PyValueError::new_err(format!("{given}; allowed: {allowed}"))
}

/// Keeps why a method failed.
fn fail(py: Python<'_>, error: PyErr, object: &Py<PyAny>, method: &str, now: Instant) {
    keep(told(py, error, object, method, now));
}

/// Keeps an error, if it is the first, until the slice of the run is over.
fn keep(error: PyErr) {
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
        .and_then(|own| own.call_method1("failure", (raised, object, method, seconds)));
    made.map_or_else(|other| other, PyErr::from_value)
}

/// The names of an object's signals.
fn signals(object: &Bound<'_, PyAny>) -> PyResult<Vec<&'static str>> {
    let names = object.getattr("signals")?.try_iter()?;
    names.map(|name| Ok(kept(name?.extract()?))).collect()
}

/// Reports signals that are attributes of an object.
fn observe(
    object: &Py<PyAny>,
    signals: &[&'static str],
    now: Instant,
    sink: &mut dyn FnMut(&'static str, f64),
) {
    Python::attach(|py| {
        for name in signals {
            let value = object.bind(py).getattr(*name).and_then(|v| v.extract::<f64>());
            let value = value.unwrap_or_else(|error| {
                fail(py, error, object, "signals", now);
                f64::NAN
            });
            sink(name, value);
        }
    });
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
/// What is allowed of an answer, by the kind of event.
const ALLOWED: [&str; EVENTS.len()] = [ARRIVALS, DEPARTURES, VICTIMS, NOTHING, NOTHING];
const NOTHING: &str = "nothing: no `return` with a value";

impl Advice for Object {
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let event = Event { kind: ARRIVAL, pkt: Some(pkt), q: Some(q) };
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
        let event = Event { kind: DEPARTURE, pkt: Some(pkt), q: Some(q) };
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
        let event = Event { kind: OVERFLOW, pkt: Some(pkt), q: Some(q) };
        self.ask(&event, cx, Victim::Arriving, |answer, _| match answer {
            ADMIT => Ok(Victim::Arriving),
            position if position >= 0.0 && position < len && position.fract() == 0.0 => {
                Ok(Victim::At(position as usize))
            }
            _ => Err(VICTIMS),
        })
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        self.ask(&Event { kind: IDLE, pkt: None, q: None }, cx, (), |_, _| Ok(()));
    }

    fn poll_at(&self) -> Option<Instant> {
        (self.wake != NEVER).then(|| Instant::from_nanos(self.wake.max(0) as u64))
    }

    fn on_timer(&mut self, q: &View<'_>, cx: &mut Cx<'_>) {
        if self.poll_at().is_none_or(|at| at > cx.now) {
            return; // asked early
        }
        self.ask(&Event { kind: TIMER, pkt: None, q: Some(q) }, cx, (), |_, _| Ok(()));
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        if let Some(program) = &self.program {
            return program.observe(sink);
        }
        observe(&self.object, &self.signals, now, sink);
    }

    fn duplicate(&self) -> Box<dyn Advice> {
        Python::attach(|py| {
            let copy = || -> PyResult<Self> {
                let object = py.import("copy")?.call_method1("deepcopy", (&self.object,))?;
                let mut other = Self::of(py, object, self.queue)?;
                (other.wake, other.failed) = (self.wake, self.failed);
                other.program = self.program.as_ref().map(Program::duplicate);
                Ok(other)
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

/// From now on scenarios may have algorithms and controllers in Python.
pub(crate) fn provide() {
    own::provide(&Classes);
    sim::control::provide(&Classes);
    sim::autorate::provide(&Classes);
}

impl own::Own for Classes {
    fn canonical(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, Complaint> {
        Python::attach(|py| {
            let call = || -> PyResult<Vec<(String, String)>> {
                let args = arguments(py, class, settings)?;
                py.import(MODULE)?.call_method1("canonical", args)?.extract()
            };
            call().map_err(|error| complaint(py, &error, class.role))
        })
    }

    fn built_in(&self, name: &str) -> Result<(String, String), Complaint> {
        Python::attach(|py| {
            let call = || -> PyResult<(String, String)> {
                py.import(MODULE)?.call_method1("built_in", (name,))?.extract()
            };
            call().map_err(|error| complaint(py, &error, Role::Autorate))
        })
    }

    fn build(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
        env: &Env,
    ) -> Result<Box<dyn Advice>, Complaint> {
        if let Some(advice) = stand_in(|one| one.advice(class, env)) {
            return Ok(advice);
        }
        object(class, settings, env)
            .map_err(|error| Python::attach(|py| complaint(py, &error, class.role)))
    }
}

/// An object of a class, at rest.
pub(crate) fn object(
    class: Class<'_>,
    settings: &[(&str, &str)],
    env: &Env,
) -> PyResult<Box<dyn Advice>> {
    Python::attach(|py| {
        let args = arguments(py, class, settings)?;
        let object = py.import(MODULE)?.call_method1("made", args)?.call0()?;
        Ok(Box::new(Object::new(py, object, env)?) as Box<dyn Advice>)
    })
}

/// What the functions of [`MODULE`] take: text, file and name of a class, its parameters, its role.
fn arguments<'a, 'py>(
    py: Python<'py>,
    class: Class<'a>,
    settings: &[(&str, &str)],
) -> PyResult<(&'a str, &'a str, &'a str, Bound<'py, PyDict>, &'static str)> {
    let dict = PyDict::new(py);
    for (name, text) in settings {
        dict.set_item(name, text)?;
    }
    Ok((class.code, class.file, class.name, dict, class.role.key()))
}

/// An error of `bluewater.own`, whose attributes say where, or of the user's own code. An
/// exception that is no error, as Ctrl-C, is kept, and raised in place of the complaint.
fn complaint(py: Python<'_>, error: &PyErr, role: Role) -> Complaint {
    if !error.is_instance_of::<PyException>(py) {
        keep(error.clone_ref(py));
    }
    let value = error.value(py);
    let text = |name: &str| -> Option<String> {
        value.getattr(name).ok()?.cast::<PyString>().ok().map(|text| text.to_string())
    };
    match text("problem") {
        None => Complaint::wrong(role.key(), error.to_string()),
        Some(problem) => {
            Complaint::wrong(text("key").unwrap_or_else(|| role.key().into()), problem)
                .allowed(text("allowed").unwrap_or_default())
                .hint(text("hint").unwrap_or_default())
        }
    }
}

/// A duration in nanoseconds, a rate in bit/s or a size in bytes, and its canonical text.
pub(crate) fn quantity(py: Python<'_>, kind: &str, text: &str) -> PyResult<(u64, String)> {
    fn read<T: FromStr<Err = TextError> + ToString>(
        text: &str,
        number: impl Fn(&T) -> Option<u64>,
    ) -> Result<(u64, String), TextError> {
        let value: T = text.parse()?;
        let none = || TextError { allowed: "a size in bytes such as 200kB", hint: String::new() };
        Ok((number(&value).ok_or_else(none)?, value.to_string()))
    }
    let found = match kind {
        "rate" => read(text, |rate: &aqm::Rate| Some(rate.bits_per_second())),
        "size" => read(text, |size: &aqm::Size| match size {
            aqm::Size::Bytes(bytes) => Some(*bytes),
            _ => None,
        }),
        _ => read(text, |duration: &aqm::Duration| Some(duration.as_nanos())),
    };
    found.map_err(|TextError { allowed, hint }| {
        let error = sim::ScenarioError {
            file: String::new(),
            line: None,
            key: String::new(),
            value: text.into(),
            problem: format!("not a {kind}"),
            allowed: allowed.into(),
            hint,
        };
        crate::error::raise(py, error)
    })
}
