//! A class whose methods are compiled: C functions of the addresses of its state and of what they are
//! given. `bluewater.compiled` makes them, and lays out memory as told here.
#![expect(unsafe_code, reason = "C functions that are made while the program runs")]

use std::ffi::c_void;
use std::ptr::{from_ref, null};
use std::sync::Arc;

use aqm::Rng;
use pyo3::prelude::*;

use super::{Queue, kept, random, with_stream};

/// What a method gives that raised.
const FAILED: f64 = -9.0;

/// A method, of the state, a packet or another event, the queue and the time. It does not look at what
/// it is not about.
type Method = unsafe extern "C" fn(*mut u64, *const c_void, *const Queue, i64) -> f64;

/// The state of an object, and what its methods do to it.
pub(super) struct Program {
    state: Box<[u64]>,
    /// The state before the last call, for [`restore`](Self::restore).
    before: Box<[u64]>,
    methods: Box<[Option<Method>]>,
    /// Where `timer` is, in words.
    timer: Option<usize>,
    /// Each signal and output, where it is in bytes, and of what kind.
    read: Vec<(&'static str, usize, char)>,
    /// Whether a method may draw random numbers.
    draws: bool,
    /// What has the code in memory.
    code: Arc<Py<PyAny>>,
}

/// A random number for a compiled method; no number at all where there is no queue.
extern "C" fn draw() -> f64 {
    random().unwrap_or(f64::NAN)
}

impl Program {
    /// Compiles an object that is started; its methods are called by their places in `events`.
    pub(super) fn new(object: &Bound<'_, PyAny>, events: &[&str]) -> PyResult<Self> {
        let module = object.py().import("bluewater.compiled")?;
        let made = module.call_method1("program", (object, draw as *const () as usize))?;
        let state: Vec<u8> = made.getattr("state")?.extract()?;
        let state: Box<[u64]> = state.chunks(8).map(word).collect();
        let methods = made.getattr("methods")?;
        let method = |name: &str| -> PyResult<Option<Method>> {
            let address: Option<usize> = methods.call_method1("get", (name,))?.extract()?;
            // SAFETY: Numba gives the address of a C function of this signature, which lives as long
            // as `code`.
            Ok(address.map(|address| unsafe { std::mem::transmute::<usize, Method>(address) }))
        };
        let methods = events.iter().map(|name| method(name)).collect::<PyResult<_>>()?;
        let read: Vec<(String, usize, char)> = made.getattr("read")?.extract()?;
        let timer_at: Option<usize> = made.getattr("timer")?.extract()?;
        Ok(Self {
            before: state.clone(),
            state,
            methods,
            timer: timer_at.map(|at| at / 8),
            read: read.into_iter().map(|(name, at, kind)| (kept(name), at, kind)).collect(),
            draws: made.getattr("draws")?.extract()?,
            code: Arc::new(made.unbind()),
        })
    }

    /// What method number `kind` gives for an event, of the form that it was compiled for; `None` if it
    /// raised, and then `rng` is as it was.
    pub(super) fn call<E>(
        &mut self,
        kind: usize,
        event: &E,
        queue: Option<&Queue>,
        now: i64,
        rng: &mut Rng,
    ) -> Option<f64> {
        let method = self.methods[kind]?;
        self.before.copy_from_slice(&self.state);
        let state = self.state.as_mut_ptr();
        let event: *const c_void = from_ref(event).cast();
        let queue = queue.map_or(null(), from_ref);
        // SAFETY: the method was compiled for this state, and what it is given is laid out as it takes
        // it, or not looked at; it keeps no address.
        let call = || unsafe { method(state, event, queue, now) };
        if !self.draws {
            return Some(call()).filter(|&given| given != FAILED);
        }
        let mut drawn = rng.clone();
        let given = with_stream(&mut drawn, call);
        (given != FAILED).then(|| {
            *rng = drawn;
            given
        })
    }

    /// The value of `timer`, ns.
    pub(super) fn timer(&self) -> Option<i64> {
        self.timer.map(|at| self.state[at] as i64)
    }

    /// Reports each signal and output.
    pub(super) fn observe(&self, sink: &mut dyn FnMut(&'static str, f64)) {
        for &(name, at, kind) in &self.read {
            sink(name, self.value(at, kind));
        }
    }

    /// The value of output number `i`.
    pub(super) fn output(&self, i: usize) -> f64 {
        let (_, at, kind) = self.read[i];
        self.value(at, kind)
    }

    fn value(&self, at: usize, kind: char) -> f64 {
        let word = self.state[at / 8];
        match kind {
            'f' => f64::from_bits(word),
            'i' => word as i64 as f64,
            _ => f64::from(word.to_ne_bytes()[at % 8]),
        }
    }

    /// Gives the object in Python the state before the last call.
    pub(super) fn restore(&self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let state: Vec<u8> = self.before.iter().flat_map(|word| word.to_ne_bytes()).collect();
        object.py().import("bluewater.compiled")?.call_method1("restore", (object, state))?;
        Ok(())
    }

    /// Another one in the same state.
    pub(super) fn duplicate(&self) -> Self {
        Self {
            state: self.state.clone(),
            before: self.before.clone(),
            methods: self.methods.clone(),
            timer: self.timer,
            read: self.read.clone(),
            draws: self.draws,
            code: Arc::clone(&self.code),
        }
    }
}

/// Up to eight bytes as a word, as they are in memory.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}
