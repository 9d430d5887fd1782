//! Congestion controllers that are classes in Python.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use aqm::{Instant, Rng};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::False;
use pyo3::types::PyString;
use pyo3::{PyClass, intern};
use scenario::error::Complaint;
use scenario::own::Class;
use sim::control::{self, Controller, Make, Out, Provider};

use super::program::Program;
use super::{Classes, MODULE, arguments, complaint, fail, has_failed, told, with_stream, wrong};

/// The methods that a class may have.
const EVENTS: [&str; 8] = [
    "on_send",
    "on_lost",
    "on_congestion",
    "on_recovered",
    "on_undo",
    "on_ack",
    "on_restart",
    "on_timer",
];
const SEND: usize = 0;
const LOST: usize = 1;
const CONGESTION: usize = 2;
const RECOVERED: usize = 3;
const UNDO: usize = 4;
const ACK: usize = 5;
const RESTART: usize = 6;
const TIMER: usize = 7;

/// What a method gives for `None`.
const NOTHING: f64 = -1.0;
/// The largest tag: whole numbers are exact up to here.
const LARGEST_TAG: f64 = (1_u64 << 53) as f64;
/// A timer that never comes.
const NEVER: i64 = i64::MAX;

/// The outputs, in the order in which `bluewater.control` declares them.
const CWND: usize = 0;
const SSTHRESH: usize = 1;
const PACING: usize = 2;
const BURST: usize = 3;
const APP_LIMITED: usize = 5;

/// The fields of what each method is given, with their forms in memory.
pub(crate) type Forms = BTreeMap<&'static str, Vec<(&'static str, &'static str)>>;

/// Declares what methods are given: a class in Python, of which compiled methods see the memory. All
/// numbers are signed, as compiled code computes with them.
macro_rules! shown {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ident,)+ })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Default)]
            #[pyclass(module = "bluewater.control", get_all)]
            #[repr(C)]
            pub(crate) struct $name { $($field: $kind,)+ }

            impl From<&control::$name> for $name {
                fn from(event: &control::$name) -> Self {
                    Self { $($field: shown!(of $kind, event.$field),)+ }
                }
            }

            impl $name {
                fn form() -> Vec<(&'static str, &'static str)> {
                    vec![$((stringify!($field), shown!(form $kind)),)+]
                }
            }
        )+
    };
    (of i64, $value:expr) => { $value as i64 };
    (of $kind:ident, $value:expr) => { $value };
    (form i64) => { "i8" };
    (form f64) => { "f8" };
    (form bool) => { "?" };
}

shown! {
    /// A connection is about to send its first packet.
    Start { now: i64, mtu: i64, initial_window: i64, min_window: i64, }
    /// A packet leaves.
    Sent {
        now: i64, number: i64, bytes: i64, in_flight: i64, app_limited: bool, retransmission: bool,
    }
    /// A packet is lost.
    Lost {
        now: i64, number: i64, bytes: i64, sent_at: i64, tag: i64, tx_in_flight: i64,
        lost_since_sent: i64, app_limited: bool, new_range: bool,
    }
    /// The network is congested.
    Congestion {
        now: i64, kind: i64, in_flight: i64, lost: i64, ce: i64, recovery_point: i64,
        new_episode: bool,
    }
    /// An episode was needless.
    Undo { now: i64, kind: i64, }
    /// An acknowledgement.
    Ack {
        now: i64, acked: i64, ce_packets: i64, largest: i64, sent_at: i64, tag: i64, rtt: i64,
        srtt: i64, rttvar: i64, min_rtt: i64, prior_in_flight: i64, in_flight: i64, delivered: i64,
        prior_delivered: i64, lost: i64, tx_in_flight: i64, interval: i64, rate: f64,
        app_limited: bool, round_start: bool, window_limited: bool, in_recovery: bool,
    }
}

/// What each method is given that is given more than the time, `start` too.
pub(crate) fn forms() -> Forms {
    BTreeMap::from([
        ("start", Start::form()),
        (EVENTS[SEND], Sent::form()),
        (EVENTS[LOST], Lost::form()),
        (EVENTS[CONGESTION], Congestion::form()),
        (EVENTS[UNDO], Undo::form()),
        (EVENTS[ACK], Ack::form()),
    ])
}

/// A call of a method, for who checks laws: the connection, the method, the time, window, rate and
/// timer then, and a detail.
pub(crate) type Call = (u32, &'static str, i64, f64, f64, i64, i64);

thread_local! {
    /// The calls so far and the number of connections, while they are kept.
    static CALLS: RefCell<Option<(u32, Vec<Call>)>> = const { RefCell::new(None) };
}

/// While it lives, calls are kept.
pub(crate) struct Traced;

impl Traced {
    pub(crate) fn begin() -> Self {
        CALLS.set(Some((0, Vec::new())));
        Self
    }

    /// The calls that were kept.
    #[expect(clippy::unused_self, reason = "there are none but while it lives")]
    pub(crate) fn calls(&self) -> Vec<Call> {
        CALLS.take().map(|(_, calls)| calls).unwrap_or_default()
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        CALLS.set(None);
    }
}

/// What methods get, made once.
struct Given {
    sent: Py<Sent>,
    lost: Py<Lost>,
    congestion: Py<Congestion>,
    undo: Py<Undo>,
    ack: Py<Ack>,
}

/// Which of them a method gets; none if it gets the time alone.
type Shown<E> = fn(&Given) -> Option<&Py<E>>;

impl Given {
    fn new(py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            sent: Py::new(py, Sent::default())?,
            lost: Py::new(py, Lost::default())?,
            congestion: Py::new(py, Congestion::default())?,
            undo: Py::new(py, Undo::default())?,
            ack: Py::new(py, Ack::default())?,
        })
    }
}

/// One object of a class.
struct Object {
    object: Py<PyAny>,
    /// Its methods, in the order of [`EVENTS`].
    methods: Methods,
    given: Arc<Given>,
    /// Names of signals, which are attributes of the object.
    signals: Vec<&'static str>,
    /// When it was called last, ns.
    now: u64,
    /// In place of the methods, if they are compiled.
    program: Option<Program>,
    rng: Rng,
    out: Out,
    /// `timer` as it was read last, ns.
    timer: i64,
    /// Its number, if its calls are kept.
    traced: Option<u32>,
    failed: bool,
}

impl Object {
    /// The object of a connection that begins.
    fn new(
        py: Python<'_>,
        object: Bound<'_, PyAny>,
        start: &control::Start,
        rng: Rng,
    ) -> PyResult<Self> {
        let methods = methods(&object)?;
        let traced = CALLS.with_borrow_mut(|kept| {
            let (connections, _) = kept.as_mut()?;
            *connections += 1;
            Some(*connections - 1)
        });
        let mut made = Self {
            methods,
            signals: super::signals(&object)?,
            now: start.now,
            given: Arc::new(Given::new(py)?),
            program: None,
            rng,
            out: Out::default(),
            timer: NEVER,
            traced,
            failed: false,
            object: object.unbind(),
        };
        let mut started = || {
            let object = made.object.bind(py);
            object.setattr("cwnd", start.initial_window as f64)?;
            let given = Py::new(py, Start::from(start))?;
            with_stream(&mut made.rng, || object.call_method1("start", (given,)))?;
            made.take_plain(py, start.now as i64, false)
        };
        started().map_err(|error| {
            told(py, error, &made.object, "start", Instant::from_nanos(start.now))
        })?;
        let object = made.object.bind(py);
        if object.getattr("compiled")?.is_truthy()? {
            made.program = Some(Program::new(object, &EVENTS)?);
        }
        Ok(made)
    }

    /// Calls a method with an event, and takes what the object decides then. What it gave; [`NOTHING`]
    /// if there is no such method, or nothing was given.
    fn ask<E: PyClass<Frozen = False> + Copy>(
        &mut self,
        kind: usize,
        event: &E,
        shown: Shown<E>,
        now: u64,
    ) -> f64 {
        self.now = now;
        if self.failed || self.methods[kind].is_none() || has_failed() {
            return NOTHING;
        }
        let time = now as i64;
        let asked = self.answer(kind, event, shown, time);
        let answer = asked.and_then(|given| match given {
            NOTHING => Ok(given),
            tag if kind == SEND && tag.fract() == 0.0 && (0.0..=LARGEST_TAG).contains(&tag) => {
                Ok(given)
            }
            _ => Err(wrong(&format!("it gave {given}"), allowed(kind))),
        });
        answer.unwrap_or_else(|error| {
            self.failed = true;
            let now = Instant::from_nanos(now);
            Python::attach(|py| fail(py, error, &self.object, EVENTS[kind], now));
            NOTHING
        })
    }

    fn answer<E: PyClass<Frozen = False> + Copy>(
        &mut self,
        kind: usize,
        event: &E,
        shown: Shown<E>,
        now: i64,
    ) -> PyResult<f64> {
        let fired = kind == TIMER;
        if let Some(program) = &mut self.program {
            if let Some(value) = program.call(kind, event, None, now, &mut self.rng) {
                self.take_compiled(now, fired)?;
                return Ok(value);
            }
            Python::attach(|py| program.restore(self.object.bind(py)))?;
        }
        let answer = Python::attach(|py| {
            let value = self.call(py, kind, event, shown, now)?;
            self.take_plain(py, now, fired)?;
            Ok(value)
        });
        match self.program {
            Some(_) if answer.is_ok() => {
                Err(PyRuntimeError::new_err("compiled it raised, and plain it does not"))
            }
            _ => answer,
        }
    }

    /// Calls a method as it is written.
    fn call<E: PyClass<Frozen = False> + Copy>(
        &mut self,
        py: Python<'_>,
        kind: usize,
        event: &E,
        shown: Shown<E>,
        now: i64,
    ) -> PyResult<f64> {
        let Some(method) = &self.methods[kind] else { return Ok(NOTHING) };
        let method = method.bind(py);
        let answer = match shown(&self.given) {
            Some(shown) => {
                *shown.try_borrow_mut(py)? = *event;
                with_stream(&mut self.rng, || method.call1((shown,)))?
            }
            None => with_stream(&mut self.rng, || method.call1((now,)))?,
        };
        if answer.is_none() {
            return Ok(NOTHING);
        }
        let not = |_| wrong(&format!("it gave {answer:?}"), allowed(kind));
        answer.extract::<f64>().map_err(not)
    }

    /// What the object in Python decides.
    fn take_plain(&mut self, py: Python<'_>, now: i64, fired: bool) -> PyResult<()> {
        let object = self.object.bind(py);
        let number = |name: &Bound<'_, PyString>| -> PyResult<f64> {
            let value = object.getattr(name)?;
            value.extract::<f64>().map_err(|_| wrong(&format!("{name} = {value:?}"), "a number"))
        };
        let timer = object.getattr(intern!(py, "timer"))?;
        let whole = "a whole number of nanoseconds";
        let timer =
            timer.extract::<i64>().map_err(|_| wrong(&format!("timer = {timer:?}"), whole))?;
        let out = Out {
            cwnd: number(intern!(py, "cwnd"))?,
            ssthresh: number(intern!(py, "ssthresh"))?,
            pacing: number(intern!(py, "pacing"))?,
            burst: number(intern!(py, "burst"))?,
            timer: 0,
            app_limited: object.getattr(intern!(py, "app_limited"))?.is_truthy()?,
        };
        self.take(out, timer, now, fired)
    }

    /// What the compiled object decides.
    fn take_compiled(&mut self, now: i64, fired: bool) -> PyResult<()> {
        let Some(program) = &self.program else { return Ok(()) };
        let out = Out {
            cwnd: program.output(CWND),
            ssthresh: program.output(SSTHRESH),
            pacing: program.output(PACING),
            burst: program.output(BURST),
            timer: 0,
            app_limited: program.output(APP_LIMITED) != 0.0,
        };
        let timer = program.timer().unwrap_or(NEVER);
        self.take(out, timer, now, fired)
    }

    /// Takes what was decided, if it can be.
    fn take(&mut self, out: Out, timer: i64, now: i64, fired: bool) -> PyResult<()> {
        if out.cwnd.is_nan() {
            return Err(wrong("cwnd = NaN", "a number of bytes"));
        }
        let bytes = "a number of bytes from 0 on";
        for (name, value, allowed) in [
            ("ssthresh", out.ssthresh, bytes),
            ("pacing", out.pacing, "bytes a second, or 0 for none"),
            ("burst", out.burst, bytes),
        ] {
            if value.is_nan() || value < 0.0 {
                return Err(wrong(&format!("{name} = {value}"), allowed));
            }
        }
        // The one that was set may be due at this very instant.
        if timer <= now && (fired || timer != self.timer) {
            let allowed = "a time after that of the call, in nanoseconds, or NEVER";
            return Err(wrong(&format!("timer = {timer} at {now}"), allowed));
        }
        self.timer = timer;
        let timer = if timer == NEVER { control::NEVER } else { timer.max(0) as u64 };
        self.out = Out { timer, ..out };
        Ok(())
    }

    /// Keeps a call that was made, if calls are kept.
    fn note(&self, kind: usize, now: u64, detail: i64) {
        let Some(connection) = self.traced else { return };
        let Out { cwnd, pacing, .. } = self.out;
        let call = (connection, EVENTS[kind], now as i64, cwnd, pacing, self.timer, detail);
        CALLS.with_borrow_mut(|kept| {
            if let Some((_, calls)) = kept {
                calls.push(call);
            }
        });
    }

    /// Calls a method with the time.
    fn at(&mut self, kind: usize, now: u64) {
        self.ask::<Undo>(kind, &Undo::default(), |_| None, now);
        self.note(kind, now, 0);
    }
}

/// The methods of an object, in the order of [`EVENTS`].
fn methods(object: &Bound<'_, PyAny>) -> PyResult<Methods> {
    let mut found = [const { None }; EVENTS.len()];
    for (place, name) in found.iter_mut().zip(EVENTS) {
        *place = object.getattr_opt(name)?.map(Bound::unbind);
    }
    Ok(found)
}

/// What a method may give.
fn allowed(kind: usize) -> &'static str {
    match kind {
        SEND => "a tag, a whole number from 0 to 2⁵³, or nothing",
        _ => super::NOTHING,
    }
}

impl Controller for Object {
    fn on_send(&mut self, sent: &control::Sent) -> u64 {
        let given = self.ask(SEND, &Sent::from(sent), |given| Some(&given.sent), sent.now);
        self.note(SEND, sent.now, 0);
        given.max(0.0) as u64
    }

    fn on_lost(&mut self, lost: &control::Lost) {
        self.ask(LOST, &Lost::from(lost), |given| Some(&given.lost), lost.now);
        self.note(LOST, lost.now, 0);
    }

    fn on_congestion(&mut self, congestion: &control::Congestion) {
        let event = Congestion::from(congestion);
        self.ask(CONGESTION, &event, |given| Some(&given.congestion), congestion.now);
        self.note(CONGESTION, congestion.now, event.kind);
    }

    fn on_recovered(&mut self, now: u64) {
        self.at(RECOVERED, now);
    }

    fn on_undo(&mut self, undo: &control::Undo) {
        self.ask(UNDO, &Undo::from(undo), |given| Some(&given.undo), undo.now);
        self.note(UNDO, undo.now, 0);
    }

    fn on_ack(&mut self, ack: &control::Ack) {
        self.ask(ACK, &Ack::from(ack), |given| Some(&given.ack), ack.now);
        self.note(ACK, ack.now, i64::from(ack.window_limited));
    }

    fn on_restart(&mut self, now: u64) {
        self.at(RESTART, now);
    }

    fn on_timer(&mut self, now: u64) {
        self.at(TIMER, now);
    }

    fn out(&self) -> Out {
        self.out
    }

    fn observe(&self, sink: &mut dyn FnMut(&'static str, f64)) {
        if let Some(program) = &self.program {
            let mut declared = |name, value| {
                if self.signals.contains(&name) {
                    sink(name, value);
                }
            };
            return program.observe(&mut declared);
        }
        super::observe(&self.object, &self.signals, Instant::from_nanos(self.now), sink);
    }
}

/// The methods of a class, by event; none where it leaves one out.
type Methods = [Option<Py<PyAny>>; EVENTS.len()];

impl Clone for Object {
    fn clone(&self) -> Self {
        Python::attach(|py| {
            let copy = || -> PyResult<(Py<PyAny>, Methods)> {
                let object = py.import("copy")?.call_method1("deepcopy", (&self.object,))?;
                let methods = methods(&object)?;
                Ok((object.unbind(), methods))
            };
            let (object, methods, failed) = match copy() {
                Ok((object, methods)) => (object, methods, self.failed),
                Err(error) => {
                    fail(py, error, &self.object, "deepcopy", Instant::ZERO);
                    (self.object.clone_ref(py), [const { None }; EVENTS.len()], true)
                }
            };
            Self {
                object,
                methods,
                given: Arc::clone(&self.given),
                signals: self.signals.clone(),
                program: self.program.as_ref().map(Program::duplicate),
                rng: self.rng.clone(),
                failed,
                ..*self
            }
        })
    }
}

/// What controls a connection whose object could not be made, until the run ends for that.
#[derive(Clone)]
struct Inert(Out);

impl Controller for Inert {
    fn on_congestion(&mut self, _: &control::Congestion) {}

    fn on_ack(&mut self, _: &control::Ack) {}

    fn out(&self) -> Out {
        self.0
    }
}

/// Makes the objects of a class.
struct Maker(Py<PyAny>);

impl Make for Maker {
    fn make(&self, start: &control::Start, rng: Rng) -> Box<dyn Controller> {
        Python::attach(|py| {
            let made = self.0.bind(py).call0();
            match made.and_then(|object| Object::new(py, object, start, rng)) {
                Ok(object) => Box::new(object) as Box<dyn Controller>,
                Err(error) => {
                    super::keep(error);
                    Box::new(Inert(Out { cwnd: start.initial_window as f64, ..Out::default() }))
                }
            }
        })
    }
}

impl Provider for Classes {
    fn maker(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
        start: &control::Start,
    ) -> Result<Arc<dyn Make>, Complaint> {
        if let Some(maker) = super::stand_in(|one| one.maker(class)) {
            return Ok(maker);
        }
        Python::attach(|py| {
            let call = || -> PyResult<Maker> {
                let args = arguments(py, class, settings)?;
                let make = py.import(MODULE)?.call_method1("made", args)?;
                // Errors in its start and in compilation come before the run.
                let calls = CALLS.take();
                Object::new(py, make.call0()?, start, Rng::new(0, 0))?;
                CALLS.set(calls);
                Ok(Maker(make.unbind()))
            };
            call()
                .map(|maker| Arc::new(maker) as Arc<dyn Make>)
                .map_err(|error| complaint(py, &error, class.role))
        })
    }
}
