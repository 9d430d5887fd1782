//! Algorithms that advise one FIFO: the trait, and one file for each.

use crate::context::{Backlog, Cause, State};
pub use crate::context::{Cx, Env};
use crate::packet::Meta;
use crate::param::{ConfigError, Params};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::{Limit, Measure};

pub mod ared;
pub mod ared_feng;
mod average;
pub mod avq;
pub mod bernoulli;
pub mod blue;
pub mod choke;
pub mod cobalt;
pub mod codel;
pub mod csfq;
pub mod docsis_pie;
pub mod drop_front;
pub mod drop_tail;
pub mod fred;
pub mod gsp;
#[cfg(test)]
pub(crate) mod lab;
pub mod pi;
pub mod pi2;
pub mod pie;
pub mod random_drop;
pub mod red;
pub mod red_penalty_box;
pub mod rem;
pub mod sfb;
pub mod sfred;
mod spacing;
pub mod sred;
pub mod stochastic_fair;
pub mod wred;

/// What to do with a packet that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// Queue it, if it fits.
    Admit,
    /// Signal congestion: mark it if it is ECN-capable (and queue it, if it fits), else drop it.
    Signal(Cause),
    /// Signal congestion on the packet at the head of the queue, which tells its sender sooner:
    /// mark it if it is ECN-capable, else drop it; then queue the arriving packet, if it fits. On
    /// an empty queue the same as [`Arrival::Signal`].
    SignalHead(Cause),
    /// Drop it.
    Reject(Cause),
    /// Drop it and the queued packets that [`Policy::victim`] names.
    RejectWith(Cause),
}

impl Arrival {
    /// The algorithm's signal: a mark where that is possible, or with `ecn` off always a drop.
    pub(crate) const fn early(ecn: bool) -> Self {
        if ecn { Self::Signal(Cause::Early) } else { Self::Reject(Cause::Early) }
    }
}

/// What to do with a packet that is about to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// Send it.
    Send,
    /// Signal congestion: mark it if it is ECN-capable, else drop it and ask about the next.
    Signal(Cause),
    /// Drop it and ask about the next.
    Drop(Cause),
}

/// Which packet is dropped when one does not fit. Asked again until it fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// The packet that arrives.
    Arriving,
    /// The packet that has waited longest.
    Head,
    /// The queued packet at a position; 0 is the head.
    At(usize),
}

/// How a packet that was admitted left the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It was handed to the transmitter.
    Sent,
    /// It was dropped.
    Dropped,
}

/// A read-only view of the FIFO, without the packet in question and the one on the wire.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) backlog: Backlog,
    pub(crate) limit: Limit,
    pub(crate) ring: &'a [Meta],
    pub(crate) head: usize,
}

impl View<'_> {
    /// What is queued.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Packets queued.
    pub fn len(&self) -> usize {
        self.backlog.packets as usize
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.backlog.packets == 0
    }

    /// The length of the queue in `measure`.
    pub fn size(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Packets => f64::from(self.backlog.packets),
            // A signed number becomes a float in one instruction.
            Measure::Bytes => self.backlog.bytes as i64 as f64,
        }
    }

    /// The room of the buffer.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Whether a packet of `len` bytes fits now.
    pub fn fits(&self, len: u32) -> bool {
        self.backlog.packets < self.limit.max_packets()
            && u64::from(len) <= self.limit.max_bytes() - self.backlog.bytes
    }

    /// The queued packet at a position (0 is the head), if there is one. A queue that shares its
    /// memory with others shows none.
    pub fn peek(&self, position: usize) -> Option<&Meta> {
        (position < self.len().min(self.ring.len()))
            .then(|| &self.ring[(self.head + position) & (self.ring.len() - 1)])
    }
}

/// An algorithm that advises one FIFO and owns no packets. Decisions are values; the FIFO carries
/// them out and counts them.
///
/// For one arriving packet the FIFO calls [`on_arrival`](Policy::on_arrival), then
/// [`on_overflow`](Policy::on_overflow) until it fits, then [`admitted`](Policy::admitted). An
/// algorithm that treats a packet without room as an event of its own asks [`View::fits`].
pub trait Policy: Sized {
    /// Parameters, with their defaults and documentation.
    type Config: Params + Default + Clone;
    /// What the algorithm wants back when a packet leaves (SFB's bins), else `()`.
    type Tag: Copy + Default;
    /// Whether the algorithm may come to rest, as [`rests`](Policy::rests) tells.
    const RESTS: bool = false;

    /// The algorithm at rest at `env.now`.
    ///
    /// # Errors
    /// When parameters that are fine alone do not fit together or with the buffer.
    fn new(config: &Self::Config, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError>;

    /// As [`Discipline::fits`](crate::Discipline::fits).
    ///
    /// # Errors
    /// Those of [`Policy::new`] that another rate can bring.
    fn fits(_config: &Self::Config, _env: &Env) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Brings what counts only at the start within bounds that change while the algorithm runs.
    fn going_on(_config: &mut Self::Config) {}

    /// Goes on as `with`, the algorithm at rest under other parameters, from what it has learned. Only those of
    /// [`About::live`](crate::About::live) differ. An algorithm that learns nothing is `with` from now on.
    fn retune(&mut self, with: Self, _now: Instant) {
        *self = with;
    }

    /// A packet arrives; `q` does not hold it.
    fn on_arrival(&mut self, _pkt: &Meta, _q: &View<'_>, _cx: &mut Cx<'_>) -> Arrival {
        Arrival::Admit
    }

    /// After [`Arrival::RejectWith`]: the position (0 is the head) of the next queued packet to
    /// drop, until `None`. Positions go towards the head: dropping one moves none of those to come.
    fn victim(&mut self) -> Option<usize> {
        None
    }

    /// A packet is about to be sent; `q` does not hold it. Repeated after a drop.
    fn on_departure(&mut self, _pkt: &Meta, _q: &View<'_>, _cx: &mut Cx<'_>) -> Departure {
        Departure::Send
    }

    /// An arriving packet does not fit now. Not asked about one that is longer than the whole
    /// buffer: it is dropped.
    fn on_overflow(&mut self, _pkt: &Meta, _q: &View<'_>, _cx: &mut Cx<'_>) -> Victim {
        Victim::Arriving
    }

    /// Of many queues this one is the longest, and a packet of it, which `q` holds, has to go for want of
    /// room. `pkt` is the one at its head.
    fn gave_way(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) {
        _ = self.on_overflow(pkt, q, cx);
    }

    /// A packet was queued. Exactly one [`left`](Policy::left) follows for it.
    fn admitted(&mut self, _pkt: &Meta, _cx: &mut Cx<'_>) -> Self::Tag {
        Self::Tag::default()
    }

    /// A packet that had been queued is gone.
    fn left(&mut self, _pkt: &Meta, _tag: Self::Tag, _exit: Exit, _cx: &mut Cx<'_>) {}

    /// The transmitter asked for a packet and the queue was empty.
    fn on_idle(&mut self, _cx: &mut Cx<'_>) {}

    /// Of many queues it was this one's turn, and it was empty, but others are not, whose backlog it is shown.
    fn on_turn(&mut self, cx: &mut Cx<'_>) {
        self.on_idle(cx);
    }

    /// Whether there is congestion at `now`, so that a filter before the queue may drop packets and
    /// the link still has enough to send. Unless the algorithm knows better: whether packets wait.
    fn congested(&self, q: &View<'_>, _now: Instant) -> bool {
        !q.is_empty()
    }

    /// When the algorithm wants [`on_timer`](Policy::on_timer).
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// The time given by [`poll_at`](Policy::poll_at) has come.
    fn on_timer(&mut self, _q: &View<'_>, _cx: &mut Cx<'_>) {}

    /// Whether, as long as the queue is empty, its timer will change nothing but when it is due next: of many
    /// queues those at rest are passed over.
    fn rests(&self) -> bool {
        false
    }

    /// A packet comes to one that was passed over. Its timer is due when that of the others is, at `timer`.
    fn wake(&mut self, _timer: Instant) {}

    /// The link has another rate from `env.now` on, and the queue learns it
    /// ([`Told`](crate::told::Told)); all else of `env` is as at construction. Whatever was derived of
    /// the rate is derived anew, what was learnt of the traffic stays.
    fn rate_changed(&mut self, _env: &Env) {}

    /// What the algorithm remembers, without [`Tag`](Policy::Tag)s.
    fn state(&self) -> State {
        State::of::<Self>(0)
    }

    /// Reports each signal by name as it stands at `now`, always all of them and in one order.
    fn observe(&self, _now: Instant, _sink: &mut dyn FnMut(&'static str, f64)) {}

    /// Reports what decides about `pkt` beside the signals, as
    /// [`Qdisc::observe_flow`](crate::Qdisc::observe_flow) does.
    fn observe_flow(&self, _pkt: &Meta, _now: Instant, _sink: &mut dyn FnMut(&'static str, f64)) {}
}
