//! `cake_mq` (Linux 7.0): a CAKE for each transmit queue of an interface, so that several processors can shape.
//! They share one rate without a lock: each looks now and then how many there are to share with.
//!
//! ```text
//! a packet arrives:   the hash of its flow names a queue
//! a queue gets one, or may send by its shaper, and its last look is 200 µs ago or more:
//!     active := 1 + the others that have packets or have sent one since that look
//!     its rate := shared_rate / active
//! next:   the queues whose shapers let them send, in turns
//!     it sent its last packet, and COBALTs there are not at rest:  it looks again after their target
//! ```
//!
//! COBALT keeps what it has by the whole rate. With `unlimited` there is nothing to share.
//!
//! Against Linux:
//! - All queues have one buffer. Where it is too full, the CAKE with the most bytes makes room; in Linux each
//!   has a buffer of that size.
//! - The queue of a flow is a keyed hash of it, but for its codepoint. In Linux the queue can be that of the
//!   processor as well.
//! - The link asks one queue at a time. Where it is no faster than `shared_rate`, it also limits their sum.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{ABOUT, Cake, CakeConfig, Isolation};
use crate::context::{Backlog, Cx, Env, State};
use crate::hash::FlowHash;
use crate::packet::{Carried, FlowKey, Meta};
use crate::param::ConfigError;
use crate::qdisc::{Counters, Discipline, Outlet, Qdisc, Through};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Limit, Rate};

/// How long a look at the others holds at least.
const SYNC: Duration = Duration::from_micros(200);

/// CAKE, or several that share one rate, of packets with payload `P`.
#[derive(Clone, Debug)]
pub struct Cakes<P>(Kind<P>);

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a link has one, and a box would cost each packet a step"
)]
enum Kind<P> {
    One(Cake<P>),
    Many(Many<P>),
}

/// CAKEs that share one rate.
#[derive(Clone, Debug)]
struct Many<P> {
    queues: Box<[Queue<P>]>,
    /// The queue that sent last.
    turn: usize,
    hash: FlowHash,
    /// `none` if they have the link's.
    shared_rate: Option<Rate>,
    /// What they share; `none` without a rate.
    rate: Option<Rate>,
    limit: Limit,
    backlog: Backlog,
    counters: Counters,
}

#[derive(Clone, Debug)]
struct Queue<P> {
    cake: Cake<P>,
    /// When it looked how many are active, and how many there were.
    looked: Option<Instant>,
    active: u64,
    /// When it sent a packet last.
    sent: Option<Instant>,
    /// When it looks again although it has no packets.
    wakes: Option<Instant>,
}

impl<P: Carried> Queue<P> {
    /// It shapes at its part of a rate.
    fn has_its_part(&mut self, rate: Rate) {
        self.cake.shapes_at(Rate::new(rate.bits_per_second() / self.active).unwrap_or(rate));
    }

    /// When it has something to do.
    fn ready_at(&self) -> Option<Instant> {
        self.cake.ready_at().or(self.wakes)
    }
}

impl<P: Carried> Many<P> {
    fn new(count: u32, config: &CakeConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let CakeConfig { shared_rate, unlimited, .. } = *config;
        if unlimited && shared_rate.is_some() {
            return Err(ConfigError { key: "shared_rate", allowed: "none with unlimited".into() });
        }
        let memory = env.memory("memlimit", config.memlimit)?;
        let env = Env { rate: shared_rate.unwrap_or(env.rate), ..*env };
        let queue = |_| {
            let cake = Cake::new(config, true, &env, rng)?;
            Ok(Queue { cake, looked: None, active: 1, sent: None, wakes: None })
        };
        Ok(Self {
            queues: (0..count).map(queue).collect::<Result<_, _>>()?,
            turn: 0,
            hash: FlowHash::new(rng),
            shared_rate,
            rate: (!unlimited).then_some(env.rate),
            limit: env.limit.within(memory),
            backlog: Backlog::default(),
            counters: Counters::default(),
        })
    }

    /// The environment with the rate that they share.
    fn env(&self, env: &Env) -> Env {
        Env { rate: self.shared_rate.unwrap_or(env.rate), ..*env }
    }

    /// Does something with each CAKE as if it had the whole rate.
    fn each(&mut self, act: impl Fn(&mut Cake<P>)) {
        for queue in &mut self.queues {
            self.rate.iter().for_each(|rate| queue.cake.shapes_at(*rate));
            act(&mut queue.cake);
            self.rate.iter().for_each(|rate| queue.has_its_part(*rate));
        }
    }

    fn retune(&mut self, config: &CakeConfig, env: &Env) {
        let env = self.env(env);
        self.each(|cake| cake.retune(config, &env));
    }

    /// The queue of a flow.
    fn queue_of(&self, flow: FlowKey) -> usize {
        let flow = FlowKey(flow.0 & Isolation::Flows.mask());
        self.hash.bin(flow, self.queues.len() as u32)
    }

    /// A queue looks how many share the rate, if its last look is long ago.
    fn look(&mut self, number: usize, now: Instant) {
        let Some(rate) = self.rate else { return };
        let looked = self.queues[number].looked;
        if looked.is_some_and(|looked| now.since(looked) < SYNC) {
            return;
        }
        let is_active = |(other, queue): &(usize, &Queue<P>)| {
            *other != number && (queue.cake.backlog().packets > 0 || queue.sent > looked)
        };
        let active = 1 + self.queues.iter().enumerate().filter(is_active).count() as u64;
        let queue = &mut self.queues[number];
        queue.looked = Some(now);
        if active != queue.active {
            queue.active = active;
            queue.has_its_part(rate);
        }
    }

    /// Does something with a queue that may change what waits there.
    fn with<R>(
        &mut self,
        number: usize,
        out: &mut impl Outlet<P>,
        act: impl FnOnce(&mut Cake<P>, &mut Through<'_, P>) -> R,
    ) -> R {
        let cake = &mut self.queues[number].cake;
        let before = cake.backlog();
        let done = act(cake, &mut Through::counted(out, &mut self.counters));
        let after = cake.backlog();
        self.backlog.packets = self.backlog.packets - before.packets + after.packets;
        self.backlog.bytes = self.backlog.bytes - before.bytes + after.bytes;
        done
    }
}

impl<P: Carried> Qdisc<P> for Many<P> {
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.counters.arrived.count(meta.len);
        let number = self.queue_of(meta.flow);
        self.with(number, out, |cake, tap| cake.enqueue(meta, packet, cx, tap));
        self.look(number, cx.now);
        let queue = &mut self.queues[number];
        // In Linux one timer does both: what the shaper holds back takes it.
        queue.wakes = queue.wakes.filter(|_| queue.cake.ready_at().is_none_or(|at| at <= cx.now));
        while self.backlog.packets > self.limit.max_packets()
            || self.backlog.bytes > self.limit.max_bytes()
        {
            let bytes = |number: &usize| self.queues[*number].cake.backlog().bytes;
            let Some(fullest) = (0..self.queues.len()).max_by_key(bytes) else { return };
            self.with(fullest, out, |cake, tap| cake.drop_longest(cx, tap));
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        let count = self.queues.len();
        for number in (self.turn + 1..=self.turn + count).map(|number| number % count) {
            if self.queues[number].ready_at().is_none_or(|at| at > cx.now) {
                continue;
            }
            self.look(number, cx.now);
            let wakes = self.queues[number].wakes.take().filter(|at| *at > cx.now);
            let sent = self.with(number, out, |cake, tap| cake.dequeue(cx, tap));
            if let Some((meta, _)) = &sent {
                self.turn = number;
                let queue = &mut self.queues[number];
                queue.sent = Some(cx.now);
                if queue.cake.backlog().packets == 0 {
                    queue.wakes = queue.cake.rests_at(cx.now).or(wakes);
                }
                self.counters.departed.count(meta.len);
                return sent;
            }
        }
        None
    }

    fn ready_at(&self) -> Option<Instant> {
        self.queues.iter().filter_map(Queue::ready_at).min()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }

    fn on_timer(&mut self, _: &mut Cx<'_>, _: &mut impl Outlet<P>) {}

    fn rate_changed(&mut self, env: &Env) {
        let env = self.env(env);
        self.rate = self.rate.map(|_| env.rate);
        self.each(|cake| cake.rate_changed(&env));
    }

    /// Sums over the queues.
    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let mut sums = ABOUT.signals.iter().map(|signal| (signal.name, 0.0)).collect::<Vec<_>>();
        for queue in &self.queues {
            let mut next = sums.iter_mut();
            queue
                .cake
                .observe(now, &mut |_, value| next.by_ref().take(1).for_each(|s| s.1 += value));
        }
        sums.into_iter().for_each(|(name, sum)| sink(name, sum));
    }

    /// The number of its flow's queue, among how many that one divides the rate, and what its CAKE reports.
    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let number = self.queue_of(packet.flow);
        let Queue { cake, active, .. } = &self.queues[number];
        sink("flow_transmit_queue", number as f64);
        sink("flow_active_queues", *active as f64);
        cake.observe_flow(packet, now, sink);
    }

    fn state(&self) -> State {
        let all = State { queue: size_of::<Self>() as u64, ..State::default() };
        self.queues.iter().fold(all, |all, queue| {
            let own = queue.cake.state();
            State { queue: all.queue + own.queue, flows: all.flows + own.flows, ..own }
        })
    }
}

/// Refuses a shared rate at which nothing would move, or which the link does not have.
fn shared(count: u32, config: &CakeConfig, env: &Env) -> Result<(), ConfigError> {
    let least = Rate::new(u64::from(count) * LEAST).unwrap_or(env.rate);
    if config.shared_rate.is_none_or(|rate| (least..=env.rate).contains(&rate)) {
        return Ok(());
    }
    let allowed =
        format!("{least}, 1kbit for each queue, … {}, the rate of its link or class", env.rate);
    Err(ConfigError { key: "shared_rate", allowed: allowed.into() })
}

/// What each queue has at least of a shared rate, bit/s.
const LEAST: u64 = 1000;

/// What is done with one CAKE or with several, `act`.
macro_rules! each {
    ($kind:expr, $q:ident => $act:expr) => {
        match $kind {
            Kind::One($q) => $act,
            Kind::Many($q) => $act,
        }
    };
}

impl<P: Carried> Discipline<P> for Cakes<P> {
    type Config = CakeConfig;

    fn new(config: &CakeConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self(match config.queues {
            1 => Kind::One(Cake::new(config, false, env, rng)?),
            count => {
                shared(count, config, env)?;
                Kind::Many(Many::new(count, config, env, rng)?)
            }
        }))
    }

    fn fits(config: &CakeConfig, env: &Env) -> Result<(), ConfigError> {
        if config.queues > 1 { shared(config.queues, config, env) } else { Ok(()) }
    }

    fn retune(&mut self, config: &CakeConfig, env: &Env) -> Result<(), ConfigError> {
        each!(&mut self.0, q => q.retune(config, env));
        Ok(())
    }
}

impl<P: Carried> Qdisc<P> for Cakes<P> {
    #[inline]
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        each!(&mut self.0, q => q.enqueue(meta, packet, cx, out));
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        each!(&mut self.0, q => q.dequeue(cx, out))
    }

    fn ready_at(&self) -> Option<Instant> {
        each!(&self.0, q => q.ready_at())
    }

    fn backlog(&self) -> Backlog {
        each!(&self.0, q => q.backlog())
    }

    fn counters(&self) -> &Counters {
        each!(&self.0, q => q.counters())
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }

    fn on_timer(&mut self, _: &mut Cx<'_>, _: &mut impl Outlet<P>) {}

    fn rate_changed(&mut self, env: &Env) {
        each!(&mut self.0, q => q.rate_changed(env));
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        each!(&self.0, q => q.observe(now, sink));
    }

    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        each!(&self.0, q => q.observe_flow(packet, now, sink));
    }

    fn state(&self) -> State {
        each!(&self.0, q => q.state())
    }
}

#[cfg(test)]
mod tests;
