//! Two queues behind one buffer, for traffic of two kinds, whose algorithms are coupled (RFC 9332).
//!
//! The L queue is for scalable congestion controls, which need frequent marks and little delay; the
//! C queue for classic ones, which need rare signals and a longer queue. Each packet goes by its
//! ECN codepoint. The C queue's probability is coupled to the L queue's marks, so that a flow of
//! either kind gets about the same rate: the queues are two for delay, and one for throughput.
//!
//! ```text
//! a packet arrives:  no room for it in the buffer:  it is dropped
//!                    ECT(1) or CE:  it goes to the L queue;  else:  to the C queue, as do those
//!                                   that queue protection sends there
//! the link is free:  the scheduler chooses a queue;  its head, by the queue's algorithm, is
//!                    sent | marked and sent | dropped, and it is asked again
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`dualpi2`] | a PI controller, squared for C; a ramp for L (appendix A) |
//! | [`protection`] | what keeps flows that build a queue out of L (RFC 9957) |
//! | [`curvy_red`] | a curve over the smoothed delay of C; a step for L (appendix B) |
//!
//! The scheduler `wrr` shares the link by bytes while both queues have packets, and forgets its
//! account when one has none: the first packets after that are L's. `ts-fifo` sends the head that
//! has waited longer, C's less `tshift`.
//!
//! Where the RFC is silent or Linux differs: the buffer's limit is exact (the RFC tests it before
//! the packet is added, and adds a packet of the largest size); the delay that the L queue's
//! algorithm sees is that of the packet that leaves.

use alloc::boxed::Box;

use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::packet::{Ecn, Meta};
use crate::param::{ConfigError, Params, choice, params};
use crate::policy::{Departure, View};
use crate::qdisc::{Counters, Discipline, Outlet, Qdisc, idle_rng};
use crate::ring::{Line as _, Ring};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Limit;
use protection::Protection;

pub mod curvy_red;
pub mod dualpi2;
pub mod protection;
#[cfg(test)]
mod tests;

params! {
    /// Parameters that all coupled dual queues have.
    pub struct DualConfig {
        /// Which packets go to the L queue.
        low_latency: LowLatency = LowLatency::L4s, "RFC 9331 §5.1; tc-dualpi2(8)";
        /// How the link is shared between the queues.
        scheduler: Scheduler = Scheduler::Wrr, "RFC 9332 §4.2.2, appendix A.2";
        /// The C queue's part of the link while both queues have packets; 0: L always goes first.
        classic_share: f64 = 0.0625, in 0.0..=0.999, "RFC 9332 appendix A.2", with scheduler = "wrr" | "wrr-kept";
        /// By how much longer the C queue's head must have waited (`ts-fifo`).
        tshift: Duration = Duration::from_millis(50), in Duration::ZERO..=Duration::from_secs(3600), "RFC 9332 appendix A.2", with scheduler = "ts-fifo";
    }
}

choice! {
    /// Which packets go to the L queue.
    pub enum LowLatency {
        /// ECT(1) and CE.
        L4s = "l4s",
        /// ECT(0), too: for a network of scalable congestion controls that send it, as DCTCP does.
        AnyEct = "any-ect",
    }
}

choice! {
    /// How the link is shared between the queues.
    pub enum Scheduler {
        /// Weighted round robin by bytes.
        Wrr = "wrr",
        /// Weighted round robin by bytes, with an account that is kept while one queue is empty (Linux).
        WrrKept = "wrr-kept",
        /// The head that has waited longest, C's less `tshift`.
        TsFifo = "ts-fifo",
    }
}

/// The algorithms of both queues: what makes one coupled dual queue differ from another.
pub trait Coupling: Sized {
    /// Parameters, with their defaults and documentation.
    type Config: Params + Default + Clone;

    /// The algorithms at rest at `env.now`.
    ///
    /// # Errors
    /// When parameters that are fine alone do not fit together.
    fn new(config: &Self::Config, env: &Env) -> Result<Self, ConfigError>;

    /// Goes on as `with`, the algorithms at rest under other parameters, from what they have learned.
    fn retune(&mut self, with: Self);

    /// The parameters that all have.
    fn dual(config: &Self::Config) -> &DualConfig;

    /// Whether it can have a [`Protection`].
    const PROTECTS: bool = false;

    /// What keeps flows that build a queue out of L, if anything does.
    fn protection(_config: &Self::Config, _env: &Env, _rng: &mut Rng) -> Option<Protection> {
        None
    }

    /// The marking probability that a delay in L has by itself, however short the queue.
    fn native(&self, _delay: Duration) -> f64 {
        1.0
    }

    /// A packet leaves the L queue after `delay`; `packets` were in L, with it, and in C; `left` bytes are
    /// now in both.
    fn low_latency(
        &mut self,
        delay: Duration,
        packets: [u32; 2],
        left: impl Fn() -> u64,
        cx: &mut Cx<'_>,
    ) -> Departure;

    /// A packet leaves the C queue after `delay`; `left` bytes are now in both.
    fn classic(&mut self, delay: Duration, left: impl Fn() -> u64, cx: &mut Cx<'_>) -> Departure;

    /// Whether [`Coupling::arrived`] is asked.
    fn decides_at_arrival(&self) -> bool {
        false
    }

    /// A packet arrives at one of the queues; `waiting` bytes are in both.
    fn arrived(&mut self, _low_latency: bool, _waiting: u64, _cx: &mut Cx<'_>) -> Departure {
        Departure::Send
    }

    /// When the algorithm wants [`Coupling::on_timer`].
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// The time given by [`Coupling::poll_at`] has come; `longest` is the longest time that a head
    /// has waited, zero if both queues are empty.
    fn on_timer(&mut self, _longest: Duration, _now: Instant) {}

    /// Reports each signal by name, always all of them and in one order.
    fn observe(&self, sink: &mut dyn FnMut(&'static str, f64));

    /// Reports what else decides about a packet, as [`Qdisc::observe_flow`].
    fn observe_more(&self, _sink: &mut dyn FnMut(&'static str, f64)) {}
}

/// Two coupled queues of packets with payload `P`, advised by `A`.
///
/// All memory is taken at construction.
#[derive(Clone, Debug)]
pub struct Dual<A, P> {
    coupling: A,
    low_latency: Ring<P, ()>,
    classic: Ring<P, ()>,
    limit: Limit,
    any_ect: bool,
    protection: Option<Box<Protection>>,
    /// Whether a packet may be judged when it arrives.
    judged: bool,
    share: Share,
    counters: Counters,
}

/// In whole numbers a part of the link is of this many.
const WHOLE: i64 = 1_000_000;

/// The longest packet, of which [`Share::Kept`] begins with a part.
const LONGEST: i64 = 1514;

/// Whose turn it is while both queues have packets.
#[derive(Clone, Debug)]
enum Share {
    /// The L queue's while `credit` is positive: each byte of L takes `classic` from it, each of C
    /// gives the rest of 1. At rest the credit is what a mean packet of C gives.
    Wrr { classic: f64, credit: f64, rest: f64 },
    /// As `Wrr`, in whole millionths of a byte; at rest again when the link finds both empty. L's turn is
    /// also at 0.
    Kept { classic: i64, credit: i64, rest: i64 },
    /// See [`Scheduler::TsFifo`].
    TsFifo { tshift: Duration },
}

impl Share {
    /// Whether the L queue goes before the C queue, whose heads came at these times.
    #[inline]
    fn low_latency_first(&self, low_latency: Instant, classic: Instant) -> bool {
        match *self {
            Self::Wrr { credit, .. } => credit > 0.0,
            Self::Kept { credit, .. } => credit >= 0,
            Self::TsFifo { tshift } => low_latency <= classic + tshift,
        }
    }

    /// `len` bytes of one of the queues are sent; `shared`: the other had packets, too.
    #[inline]
    fn sent(&mut self, is_low_latency: bool, len: u32, shared: bool) {
        match self {
            Self::Wrr { classic, credit, rest } => {
                *credit = match (shared, is_low_latency) {
                    (false, _) => *rest,
                    (true, true) => *credit - *classic * f64::from(len),
                    (true, false) => *credit + (1.0 - *classic) * f64::from(len),
                };
            }
            Self::Kept { classic, credit, .. } if shared => {
                let len = i64::from(len);
                *credit += if is_low_latency { -*classic } else { WHOLE - *classic } * len;
            }
            _ => {}
        }
    }

    /// The link finds no packet.
    #[cold]
    #[inline(never)]
    fn found_none(&mut self) {
        if let Self::Kept { credit, rest, .. } = self {
            *credit = *rest;
        }
    }
}

impl<A: Coupling, P: Copy + Default> Dual<A, P> {
    /// A packet arrives where there is protection, or where the controller decides about it now. Those of
    /// all other queues do not come by here.
    #[cold]
    #[inline(never)]
    fn enqueue_judged(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.admit::<true>(meta, packet, cx, out);
    }

    /// Whether protection sends a packet that comes to L to C.
    fn sanctions(&mut self, meta: &Meta) -> bool {
        let Self { coupling, protection, low_latency, .. } = self;
        protection.as_mut().is_some_and(|protection| {
            let queued = low_latency.backlog;
            protection.sanctions(meta, queued, meta.arrived, |delay| coupling.native(delay))
        })
    }

    /// A packet arrives, with protection and a controller that decides about it if `JUDGED`.
    #[inline(always)]
    fn admit<const JUDGED: bool>(
        &mut self,
        meta: Meta,
        packet: P,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) {
        let mut meta = Meta { arrived: cx.now, ..meta };
        self.counters.arrived.count(meta.len);
        let both = View { backlog: self.backlog(), limit: self.limit, ring: &[], head: 0 };
        if !both.fits(meta.len) {
            return self.counters.drop(&meta, packet, Cause::Overflow, cx, out);
        }
        let low_latency = match meta.ecn {
            Ecn::Ect1 | Ecn::Ce => true,
            Ecn::Ect0 => self.any_ect,
            Ecn::NotEct => false,
        };
        let low_latency = low_latency && !(JUDGED && self.sanctions(&meta));
        if JUDGED && self.coupling.decides_at_arrival() {
            match self.coupling.arrived(low_latency, both.backlog.bytes, cx) {
                Departure::Send => {}
                Departure::Signal(cause) if meta.ecn.capable() => {
                    meta = self.counters.mark(meta, &packet, cause, cx, out);
                }
                Departure::Signal(cause) | Departure::Drop(cause) => {
                    return self.counters.drop(&meta, packet, cause, cx, out);
                }
            }
        }
        let ring = if low_latency { &mut self.low_latency } else { &mut self.classic };
        ring.push(meta, packet, ());
    }

    /// How long a queue's head has waited at `now`; zero when there is none.
    fn age(ring: &Ring<P, ()>, now: Instant) -> Duration {
        ring.view().peek(0).map_or(Duration::ZERO, |head| now.since(head.arrived))
    }
}

impl<A: Coupling, P: Copy + Default> Discipline<P> for Dual<A, P> {
    type Config = A::Config;

    fn new(config: &A::Config, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let dual = A::dual(config);
        let coupling = A::new(config, env)?;
        let protection = A::protection(config, env, rng).map(Box::new);
        Ok(Self {
            judged: protection.is_some() || coupling.decides_at_arrival(),
            coupling,
            low_latency: Ring::new(env.limit),
            classic: Ring::new(env.limit),
            limit: env.limit,
            any_ect: dual.low_latency == LowLatency::AnyEct,
            protection,
            share: match dual.scheduler {
                Scheduler::Wrr => {
                    let classic = dual.classic_share;
                    let rest = (1.0 - classic) * f64::from(env.mean_packet);
                    Share::Wrr { classic, credit: rest, rest }
                }
                Scheduler::WrrKept => {
                    let classic = libm::round(dual.classic_share * WHOLE as f64) as i64;
                    let rest = LONGEST * (WHOLE - 2 * classic);
                    Share::Kept { classic, credit: rest, rest }
                }
                Scheduler::TsFifo => Share::TsFifo { tshift: dual.tshift },
            },
            counters: Counters::default(),
        })
    }

    fn retune(&mut self, config: &A::Config, env: &Env) -> Result<(), ConfigError> {
        self.coupling.retune(A::new(config, env)?);
        if let Some(protection) = &mut self.protection {
            let with = A::protection(config, env, &mut idle_rng());
            with.iter().for_each(|with| protection.retune(with));
        }
        Ok(())
    }
}

impl<A: Coupling, P: Copy + Default> Qdisc<P> for Dual<A, P> {
    #[inline]
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        if A::PROTECTS && self.judged {
            return self.enqueue_judged(meta, packet, cx, out);
        }
        self.admit::<false>(meta, packet, cx, out);
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        loop {
            let (l, c) = (self.low_latency.view(), self.classic.view());
            let packets = [l, c].map(|queue| queue.backlog().packets);
            let (is_low_latency, shared) = match (l.peek(0), c.peek(0)) {
                (Some(l), Some(c)) => (self.share.low_latency_first(l.arrived, c.arrived), true),
                (l, _) => (l.is_some(), false),
            };
            let ring = if is_low_latency { &mut self.low_latency } else { &mut self.classic };
            let Some((mut meta, packet, ())) = ring.pop() else {
                self.share.found_none();
                return None;
            };
            let delay = cx.now.since(meta.arrived);
            let left = || self.low_latency.backlog.bytes + self.classic.backlog.bytes;
            let advice = match is_low_latency {
                true => self.coupling.low_latency(delay, packets, left, cx),
                false => self.coupling.classic(delay, left, cx),
            };
            match advice {
                Departure::Send => {}
                Departure::Signal(cause) if meta.ecn.capable() => {
                    meta = self.counters.mark(meta, &packet, cause, cx, out);
                }
                Departure::Signal(cause) | Departure::Drop(cause) => {
                    self.counters.drop(&meta, packet, cause, cx, out);
                    continue;
                }
            }
            self.share.sent(is_low_latency, meta.len, shared);
            self.counters.departed.count(meta.len);
            return Some((meta, packet));
        }
    }

    fn backlog(&self) -> Backlog {
        self.low_latency.backlog + self.classic.backlog
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_at(&self) -> Option<Instant> {
        self.coupling.poll_at()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, _: &mut impl Outlet<P>) {
        let ages = [&self.low_latency, &self.classic].map(|ring| Self::age(ring, cx.now));
        self.coupling.on_timer(ages[0].max(ages[1]), cx.now);
    }

    fn rate_changed(&mut self, env: &Env) {
        if let Some(protection) = &mut self.protection {
            protection.rate_changed(env);
        }
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.coupling.observe(sink);
        sink("l_queue", f64::from(self.low_latency.backlog.packets));
        sink("c_queue", f64::from(self.classic.backlog.packets));
    }

    fn observe_flow(&self, _: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.coupling.observe_more(sink);
    }

    fn state(&self) -> State {
        let protection = self.protection.as_ref();
        State::of::<Self>(protection.map_or(0, |table| size_of::<Protection>() + table.heap()))
    }
}
