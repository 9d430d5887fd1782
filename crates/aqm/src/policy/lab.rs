//! A queue on a bench, for the stories at the foot of each algorithm's file: packets of 1000 bytes
//! unless told otherwise, a link of 8 Mbit/s (1 ms a packet), a clock that the test steps.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::context::{Backlog, Cause};
use crate::fifo::Fifo;
use crate::packet::{Ecn, FlowKey, Meta};
use crate::param::{ConfigError, Params};
use crate::policy::{Cx, Env, Policy};
use crate::qdisc::{Discipline as _, Outlet, Qdisc};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Limit, Rate};

/// What became of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// Queued as it came.
    Queued,
    /// Queued with a mark.
    Marked,
    /// Dropped.
    Dropped(Cause),
}

#[derive(Default)]
struct Log {
    dropped: Vec<(u32, Cause)>,
    marked: u64,
}

impl Outlet<u32> for Log {
    fn dropped(&mut self, _: &Meta, packet: u32, cause: Cause, _: Instant) {
        self.dropped.push((packet, cause));
    }
    fn marked(&mut self, _: &Meta, _: &u32, _: Cause, _: Instant) {
        self.marked += 1;
    }
}

/// One queue under test.
pub(crate) struct Lab<A: Policy> {
    pub(crate) queue: Fifo<A, u32>,
    pub(crate) now: Instant,
    rng: Rng,
    log: Log,
    next: u32,
}

/// The bench's link and a buffer of `packets`.
pub(crate) fn env(packets: u64) -> Env {
    Env::new(Limit::packets(packets).unwrap(), Rate::from_mbit(8))
}

/// The algorithm's parameters with `settings` over its defaults.
pub(crate) fn config<C: Params + Default>(settings: &[(&str, &str)]) -> C {
    let mut config = C::default();
    for &(name, text) in settings {
        config.set(name, text).unwrap();
    }
    config
}

/// The reason why `settings` are refused.
pub(crate) fn refused<A: Policy>(settings: &[(&str, &str)]) -> ConfigError {
    A::new(&config(settings), &env(10), &mut Rng::new(1, 0)).err().expect("accepted")
}

impl<A: Policy> Lab<A> {
    /// A queue with room for `packets`.
    pub(crate) fn new(packets: u64, settings: &[(&str, &str)]) -> Self {
        Self::with(&env(packets), settings)
    }

    pub(crate) fn with(env: &Env, settings: &[(&str, &str)]) -> Self {
        let mut rng = Rng::new(7, 0);
        let queue = Fifo::new(&config(settings), env, &mut rng).unwrap();
        Self { queue, now: env.now, rng, log: Log::default(), next: 0 }
    }

    /// Lets time pass.
    pub(crate) fn wait_ms(&mut self, ms: u64) {
        self.wait(Duration::from_millis(ms));
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// A packet arrives.
    pub(crate) fn arrive_as(&mut self, len: u32, ecn: Ecn) -> Fate {
        let flow = FlowKey(u64::from(self.next % 3));
        self.offer(Meta { len, ecn, flow, ..Meta::default() })
    }

    /// An ECN-capable packet of 1000 bytes arrives from a flow.
    pub(crate) fn arrive_from(&mut self, flow: u64) -> Fate {
        let flow = FlowKey(flow);
        self.offer(Meta { len: 1000, ecn: Ecn::Ect0, flow, ..Meta::default() })
    }

    fn offer(&mut self, meta: Meta) -> Fate {
        let (id, marks) = (self.next, self.log.marked);
        self.next += 1;
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.queue.enqueue(meta, id, &mut cx, &mut self.log);
        match self.log.dropped.last() {
            Some(&(last, cause)) if last == id => Fate::Dropped(cause),
            _ if self.log.marked > marks => Fate::Marked,
            _ => Fate::Queued,
        }
    }

    /// An ECN-capable packet of 1000 bytes arrives.
    pub(crate) fn arrive(&mut self) -> Fate {
        self.arrive_as(1000, Ecn::Ect0)
    }

    /// The transmitter asks for a packet: its number.
    pub(crate) fn depart(&mut self) -> Option<u32> {
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.queue.dequeue(&mut cx, &mut self.log).map(|(_, id)| id)
    }

    /// Runs the queue's timer if it is due.
    pub(crate) fn tick(&mut self) {
        if self.queue.poll_at().is_some_and(|at| at <= self.now) {
            let mut cx = Cx { now: self.now, rng: &mut self.rng };
            self.queue.on_timer(&mut cx, &mut self.log);
        }
    }

    /// What is queued.
    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Packets dropped so far, in order.
    pub(crate) fn dropped(&self) -> Vec<u32> {
        self.log.dropped.iter().map(|&(id, _)| id).collect()
    }

    /// A signal as it stands now.
    pub(crate) fn signal(&self, name: &str) -> f64 {
        let mut all = BTreeMap::<String, f64>::new();
        self.queue.observe(self.now, &mut |name, value| {
            all.insert(name.to_string(), value);
        });
        all[name]
    }
}
