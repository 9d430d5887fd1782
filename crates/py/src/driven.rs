//! A queue that a class advises, driven by hand from Python: what the laws are tried on.

use aqm::own::Own;
use aqm::{Cause, Cx, Ecn, Env, Fifo, FlowKey, Instant, Limit, Meta, Outlet, Qdisc, Rate, Rng};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::own::{Class, Role};

use crate::own;

/// What became of packets during an operation: a word and the packet's number, in order.
type Events = Vec<(&'static str, u32)>;

#[derive(Default)]
struct Log(Events);

impl Outlet<u32> for Log {
    fn dropped(&mut self, _: &Meta, id: u32, _: Cause, _: Instant) {
        self.0.push(("dropped", id));
    }

    fn marked(&mut self, _: &Meta, id: &u32, _: Cause, _: Instant) {
        self.0.push(("marked", *id));
    }
}

/// A queue and its link's clock, in nanoseconds. Packets are numbered as they arrive, from 0.
#[pyclass(module = "bluewater._core", unsendable)]
pub(crate) struct Driven {
    queue: Fifo<Own, u32>,
    rng: Rng,
    arrived: u32,
}

#[pymethods]
impl Driven {
    /// An empty queue for `packets` packets at `now` (ns), before a link of `rate` bit/s. The class
    /// is the one called `name` of the text `code`, with `settings` as texts.
    #[new]
    fn new(
        class: (String, String, String),
        settings: Vec<(String, String)>,
        packets: u32,
        rate: u64,
        now: u64,
    ) -> PyResult<Self> {
        let wrong = || PyValueError::new_err("no such queue");
        let limit = Limit::packets(u64::from(packets)).ok_or_else(wrong)?;
        let rate = Rate::new(rate).ok_or_else(wrong)?;
        let env = Env { now: Instant::from_nanos(now), ..Env::new(limit, rate) };
        let (code, file, name) = &class;
        let settings: Vec<_> = settings.iter().map(|(key, text)| (&key[..], &text[..])).collect();
        let advice = own::object(Class { role: Role::Aqm, file, name, code }, &settings, &env)?;
        let queue = Fifo::advised_by(Own(advice), env.limit);
        Ok(Self { queue, rng: Rng::new(11, 0), arrived: 0 })
    }

    /// A packet of `size` bytes arrives; `ecn` is its codepoint.
    fn arrive(&mut self, now: u64, size: u32, flow: u64, ecn: u8) -> PyResult<Events> {
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn % 4)];
        let meta = Meta { len: size, flow: FlowKey(flow), ecn, ..Meta::default() };
        let id = self.arrived;
        self.arrived += 1;
        self.at(now, |queue, cx, log| queue.enqueue(meta, id, cx, log)).map(|((), events)| events)
    }

    /// The link is free: the packet that is sent, if any.
    fn depart(&mut self, now: u64) -> PyResult<(Option<u32>, Events)> {
        self.at(now, |queue, cx, log| queue.dequeue(cx, log).map(|(_, id)| id))
    }

    /// Timers that come until `until`, a hundred at most.
    fn wait(&mut self, until: u64) -> PyResult<Events> {
        let mut events = Vec::new();
        for _ in 0..100 {
            let due = self.queue.poll_at().map(Instant::as_nanos).filter(|at| *at <= until);
            let Some(at) = due else { break };
            events.extend(self.at(at, |queue, cx, log| queue.on_timer(cx, log))?.1);
        }
        Ok(events)
    }

    /// The signals as they stand.
    fn signals(&self, now: u64) -> PyResult<Vec<(&'static str, f64)>> {
        let mut signals = Vec::new();
        let now = Instant::from_nanos(now);
        self.queue.observe(now, &mut |name, value| signals.push((name, value)));
        own::failure().map_or(Ok(signals), Err)
    }

    /// Packets and bytes that arrived, departed, were dropped, are queued.
    fn books(&self) -> [(u64, u64); 4] {
        let (counters, queued) = (self.queue.counters(), self.queue.backlog());
        let dropped = counters.all_dropped();
        let [arrived, departed] = [counters.arrived, counters.departed];
        let queued = (u64::from(queued.packets), queued.bytes);
        let [a, b, c] = [arrived, departed, dropped].map(|tally| (tally.packets, tally.bytes));
        [a, b, c, queued]
    }

    /// Another one in the same state, that goes its own way from now on.
    fn copy(&self) -> PyResult<Self> {
        let (queue, rng) = (self.queue.clone(), self.rng.clone());
        own::failure().map_or(Ok(Self { queue, rng, arrived: self.arrived }), Err)
    }
}

impl Driven {
    /// Something happens at `now`; what came of it, or why the class failed.
    fn at<T>(
        &mut self,
        now: u64,
        act: impl FnOnce(&mut Fifo<Own, u32>, &mut Cx<'_>, &mut Log) -> T,
    ) -> PyResult<(T, Events)> {
        let mut log = Log::default();
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut self.rng };
        let given = act(&mut self.queue, &mut cx, &mut log);
        own::failure().map_or(Ok((given, log.0)), Err)
    }
}
