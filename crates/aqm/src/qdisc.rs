//! What owns packets, and the accounting that every owner shares.

use core::ops::Add;

use crate::context::{Backlog, Cause, Cx, Env, State, Tally};
use crate::packet::{Ecn, Meta};
use crate::param::{ConfigError, Params};
use crate::rng::Rng;
use crate::time::Instant;

/// Everything that happened to packets at a queue since it was built. After every event
/// arrivals = departures + drops + queued, in packets and in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Packets handed to the queue.
    pub arrived: Tally,
    /// Packets handed to the transmitter.
    pub departed: Tally,
    /// Packets dropped, by [`Cause`].
    pub dropped: [Tally; Cause::COUNT],
    /// Packets marked CE by this queue, by [`Cause`].
    pub marked: [Tally; Cause::COUNT],
}

impl Counters {
    /// Drops of all causes.
    pub fn all_dropped(&self) -> Tally {
        Self::sum(&self.dropped)
    }

    /// Marks of all causes.
    pub fn all_marked(&self) -> Tally {
        Self::sum(&self.marked)
    }

    /// Counts and reports a packet that is dropped.
    pub(crate) fn drop<P>(
        &mut self,
        meta: &Meta,
        packet: P,
        cause: Cause,
        cx: &Cx<'_>,
        out: &mut impl Outlet<P>,
    ) {
        self.dropped[cause as usize].count(meta.len);
        out.drawn(cx.rng);
        out.dropped(meta, packet, cause, cx.now);
    }

    /// Marks a packet, counts and reports it: what is known of it then.
    pub(crate) fn mark<P>(
        &mut self,
        meta: Meta,
        packet: &P,
        cause: Cause,
        cx: &Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Meta {
        let meta = Meta { ecn: Ecn::Ce, ..meta };
        self.marked[cause as usize].count(meta.len);
        out.drawn(cx.rng);
        out.marked(&meta, packet, cause, cx.now);
        meta
    }

    /// What happened since `earlier`, past values of the same counters.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.with(earlier, Tally::since)
    }

    fn with(self, other: Self, of: fn(Tally, Tally) -> Tally) -> Self {
        let each = |a: [Tally; Cause::COUNT], b: [Tally; Cause::COUNT]| {
            core::array::from_fn(|cause| of(a[cause], b[cause]))
        };
        Self {
            arrived: of(self.arrived, other.arrived),
            departed: of(self.departed, other.departed),
            dropped: each(self.dropped, other.dropped),
            marked: each(self.marked, other.marked),
        }
    }

    fn sum(by_cause: &[Tally]) -> Tally {
        by_cause.iter().fold(Tally::default(), |all, &one| all + one)
    }
}

/// What happened at two queues together.
impl Add for Counters {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.with(other, Tally::add)
    }
}

/// Where a queue reports what it did to packets. Departures need no report: the caller receives
/// the packet.
pub trait Outlet<P> {
    /// A packet left the queue without being sent, or was never admitted.
    fn dropped(&mut self, meta: &Meta, packet: P, cause: Cause, now: Instant);
    /// A packet was marked CE (its `meta.ecn` already says so).
    fn marked(&mut self, meta: &Meta, packet: &P, cause: Cause, now: Instant);
    /// A packet is about to be dropped or marked: the queue's stream as it stands, for whoever asks
    /// which numbers were drawn for which packet. A wrapper that hands reports on hands this on, too.
    #[inline]
    fn drawn(&mut self, _rng: &Rng) {}
}

/// An outlet behind `dyn`, for whoever wraps a queue or takes a rare path: each type of outlet has all disciplines
/// compiled again, and what wraps a queue can itself be one of the queues that it may wrap. Drops and marks are
/// rare enough.
pub(crate) struct Through<'a, P> {
    out: &'a mut dyn Outlet<P>,
    /// They count what is passed on.
    counters: Option<&'a mut Counters>,
    /// Hears of each packet.
    heard: Option<&'a mut dyn FnMut(&Meta)>,
}

impl<'a, P> Through<'a, P> {
    pub(crate) fn to(out: &'a mut dyn Outlet<P>) -> Self {
        Self { out, counters: None, heard: None }
    }

    pub(crate) fn counted(out: &'a mut dyn Outlet<P>, counters: &'a mut Counters) -> Self {
        Self { counters: Some(counters), ..Self::to(out) }
    }

    pub(crate) fn heard_by(self, heard: &'a mut dyn FnMut(&Meta)) -> Self {
        Self { heard: Some(heard), ..self }
    }
}

impl<P> Outlet<P> for Through<'_, P> {
    fn dropped(&mut self, meta: &Meta, packet: P, cause: Cause, now: Instant) {
        if let Some(heard) = &mut self.heard {
            heard(meta);
        }
        if let Some(counters) = &mut self.counters {
            counters.dropped[cause as usize].count(meta.len);
        }
        self.out.dropped(meta, packet, cause, now);
    }

    fn marked(&mut self, meta: &Meta, packet: &P, cause: Cause, now: Instant) {
        if let Some(heard) = &mut self.heard {
            heard(meta);
        }
        if let Some(counters) = &mut self.counters {
            counters.marked[cause as usize].count(meta.len);
        }
        self.out.marked(meta, packet, cause, now);
    }

    fn drawn(&mut self, rng: &Rng) {
        self.out.drawn(rng);
    }
}

/// Forgets all reports.
impl<P> Outlet<P> for () {
    fn dropped(&mut self, _: &Meta, _: P, _: Cause, _: Instant) {}
    fn marked(&mut self, _: &Meta, _: &P, _: Cause, _: Instant) {}
}

/// A queue discipline: owns packets between arrival and departure.
///
/// Calls come in order of time (`cx.now` never goes back). `P` is a small handle or record.
pub trait Qdisc<P: Copy> {
    /// A packet arrives. It is queued, marked and queued, or dropped (possibly with others).
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>);

    /// The transmitter is free and asks for a packet. `None` means that the link goes idle: the
    /// caller asks again only after an arrival, or at [`Qdisc::ready_at`].
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)>;

    /// When [`Qdisc::dequeue`] is worth another call if it gave nothing although packets are queued: a
    /// shaper holds them back. An earlier call is harmless, and gives nothing again.
    fn ready_at(&self) -> Option<Instant> {
        None
    }

    /// The aggregate that the packet belongs to which [`Qdisc::dequeue`] gave last, if the queue puts packets
    /// together. It says then how long they take, in place of the transmitter.
    fn aggregate(&self) -> Option<Aggregate> {
        None
    }

    /// What is queued now.
    fn backlog(&self) -> Backlog;

    /// Whether there is congestion at `now`, see [`Policy::congested`](crate::Policy::congested).
    fn congested(&self, _now: Instant) -> bool {
        self.backlog().packets > 0
    }

    /// What happened so far.
    fn counters(&self) -> &Counters;

    /// When [`Qdisc::on_timer`] wants to be called; polling early is harmless, late is not correct.
    fn poll_at(&self) -> Option<Instant>;

    /// The time given by [`Qdisc::poll_at`] has come.
    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>);

    /// The link has another rate, see [`Policy::rate_changed`](crate::Policy::rate_changed).
    fn rate_changed(&mut self, _env: &Env) {}

    /// Reports the algorithm's signals (p_m, averages …) as they stand at `now`, by name, in the
    /// order of the algorithm's declaration.
    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64));

    /// Reports what decides about a packet at `now` beside the signals, by name: what the algorithm
    /// knows of its flow, or of the queue that its flow has, and counters. Always as much and in one
    /// order; what there is on each of several levels comes under one name again and again.
    fn observe_flow(
        &self,
        _packet: &Meta,
        _now: Instant,
        _sink: &mut dyn FnMut(&'static str, f64),
    ) {
    }

    /// What the algorithm remembers.
    fn state(&self) -> State;
}

/// Packets that leave together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aggregate {
    /// When all of them have been sent.
    pub until: Instant,
    /// Whether there are more, which leave at the same instant.
    pub more: bool,
}

/// A queue discipline that can be made from parameters, as the catalogue does.
pub trait Discipline<P: Copy>: Qdisc<P> + Sized {
    /// Parameters, with their defaults and documentation.
    type Config: Params + Default + Clone;

    /// An empty queue at rest at `env.now`.
    ///
    /// # Errors
    /// When parameters that are fine alone do not fit together or with the buffer.
    fn new(config: &Self::Config, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError>;

    /// Whether there is such a queue at the rate of `env` too, if there is one at another rate; for what changes the
    /// rate while the queue runs.
    ///
    /// # Errors
    /// Those of [`Discipline::new`] that another rate can bring.
    fn fits(_config: &Self::Config, _env: &Env) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Has other parameters from `env.now` on, of which only those of [`About::live`](crate::About::live) differ.
    /// Packets stay where they are, and so does what the algorithm has learned.
    ///
    /// # Errors
    /// As for [`Discipline::new`]; nothing has changed then.
    fn retune(&mut self, config: &Self::Config, env: &Env) -> Result<(), ConfigError>;
}

/// What a discipline around a `queue` leaves to it: all that changes nothing but for when a timer is due.
macro_rules! answers_as_behind {
    () => {
        fn ready_at(&self) -> Option<Instant> {
            self.queue.ready_at()
        }

        fn aggregate(&self) -> Option<crate::qdisc::Aggregate> {
            self.queue.aggregate()
        }

        fn backlog(&self) -> Backlog {
            self.queue.backlog()
        }

        fn congested(&self, now: Instant) -> bool {
            self.queue.congested(now)
        }

        fn counters(&self) -> &Counters {
            self.queue.counters()
        }

        fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
            self.queue.observe(now, sink);
        }

        fn observe_flow(
            &self,
            packet: &Meta,
            now: Instant,
            sink: &mut dyn FnMut(&'static str, f64),
        ) {
            self.queue.observe_flow(packet, now, sink);
        }

        fn state(&self) -> State {
            self.queue.state()
        }
    };
}
pub(crate) use answers_as_behind;

/// Draws for what is made only for its parameters.
pub(crate) fn idle_rng() -> Rng {
    Rng::new(0, 0)
}
