//! An emulated link: a queue that an algorithm manages, a transmitter of exact rate and a wire of
//! constant delay, as in the simulator (`sim::network`), but for packets with bytes.
//!
//! Time is handed in and virtual: what was due at an instant is done *as of* that instant, however
//! late the caller comes, so lateness of the machine moves arrivals and deliveries but never the
//! rate, nor a decision between them. The caller repeats: [`Link::deliver`] all that has come out by
//! now, [`Link::arrive`] what came in, sleep until [`Link::next_event`].
//!
//! All memory is taken at construction. Every packet that arrives is delivered, dropped or still
//! here; [`Link::check`] says so.

mod change;
mod pace;
mod spec;

use std::collections::VecDeque;

use aqm::{
    AnyQdisc, Backlog, Cause, Counters, Cx, Duration, Ecn, Instant, Limit, Meta, Outlet, Tally,
};
use aqm::{Qdisc, Rng};
use link::transmitter::Serialiser;
use link::{DecisionHash, Histogram, QueueStats, QueueSummary};

use crate::arena::{Arena, Handle};
use crate::capture::{Capture, Fate, Stay};
use crate::flows::{self, Flows};
use crate::frame::{Flow, Hasher, Layer, parse, set_ce, stations};

pub use change::Next;
pub use pace::Pace;
use spec::too_large;
pub use spec::{Spec, SpecError};

/// A packet on the wire.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// When it comes out, ns.
    at: u64,
    meta: Meta,
    handle: Handle,
}

/// One direction between two interfaces. Time 0 is when it was made.
pub struct Link {
    spec: Spec,
    layer: Layer,
    hasher: Hasher,
    arena: Arena,
    queue: AnyQdisc<Handle>,
    rng: Rng,
    /// Queues that `queue` has replaced, the oldest first: what they hold leaves before it.
    replaced: Vec<(AnyQdisc<Handle>, Rng)>,
    /// What happened at queues that were replaced and are empty.
    gone: Counters,
    /// How often the queue was replaced.
    changes: u64,
    serialiser: Serialiser,
    /// When the transmitter is free, or was last, ns.
    free_at: u64,
    /// Whether it sends, or has not yet found the queue empty.
    busy: bool,
    /// Propagation delay, ns.
    delay: u64,
    wire: VecDeque<InFlight>,
    /// The next packet's number.
    seq: u32,
    stats: QueueStats,
    flows: Flows,
    capture: Option<Capture>,
    decided: DecisionHash,
    delivered: DecisionHash,
    count: Beside,
    /// How long after its time each packet was delivered, ns.
    lateness: Histogram,
    pace: Pace,
}

/// What came in and was not judged by the queue, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Beside {
    /// Longer than a slot of memory: lost.
    pub refused: u64,
    /// Delivered by the queue's wire.
    pub delivered: u64,
}

/// Does to the memory what the queue did to the packet.
struct Report<'a> {
    arena: &'a mut Arena,
    hash: &'a mut DecisionHash,
    flows: &'a mut Flows,
    capture: Option<&'a Capture>,
}

impl Outlet<Handle> for Report<'_> {
    fn dropped(&mut self, meta: &Meta, packet: Handle, cause: Cause, now: Instant) {
        self.hash.drop(now.as_nanos(), meta.flow.0 as u32, packet.seq, cause);
        self.flows.dropped(meta.flow);
        if let Some(capture) = self.capture {
            let stay = stay(meta, now.as_nanos(), self.arena.found(packet.slot));
            let frame = self.arena.packet_mut(packet.slot);
            capture.packet(packet.seq, stay, frame, Fate::Dropped(cause));
        }
        self.arena.release(packet.slot);
    }

    fn marked(&mut self, meta: &Meta, packet: &Handle, cause: Cause, now: Instant) {
        self.hash.mark(now.as_nanos(), meta.flow.0 as u32, cause);
        self.flows.marked(meta.flow);
        self.arena.mark(packet.slot, cause);
    }
}

/// A packet's time here until `until` (ns).
fn stay(meta: &Meta, until: u64, found: Backlog) -> Stay {
    Stay { from: meta.arrived.as_nanos(), until, found }
}

macro_rules! report {
    ($link:ident) => {
        &mut Report {
            arena: &mut $link.arena,
            hash: &mut $link.decided,
            flows: &mut $link.flows,
            capture: $link.capture.as_ref(),
        }
    };
}

/// What a queue is called with at `now`, borrowing only what it needs.
macro_rules! context {
    ($link:ident, $now:expr) => {
        (&mut Cx { now: Instant::from_nanos($now), rng: &mut $link.rng }, report!($link))
    };
}

impl Link {
    /// An idle link at time 0 for frames that begin with `layer`, of at most `longest` bytes.
    ///
    /// # Errors
    /// When there can be no such link.
    pub fn new(spec: &Spec, layer: Layer, longest: usize) -> Result<Self, SpecError> {
        let delay = spec.delay.as_nanos();
        let slots = spec.slots(delay, 0)?;
        Arena::fits(slots, longest).ok_or_else(|| too_large(slots))?;
        let (queue, rng) = spec.queue(Instant::ZERO, 0).map_err(SpecError::Queue)?;
        Ok(Self {
            spec: spec.clone(),
            layer,
            hasher: Hasher::default(),
            arena: Arena::new(slots, longest),
            queue,
            rng,
            replaced: Vec::new(),
            gone: Counters::default(),
            changes: 0,
            serialiser: Serialiser::new(spec.rate),
            free_at: 0,
            busy: false,
            delay,
            wire: VecDeque::with_capacity(spec.on_wire(delay) as usize),
            seq: 0,
            stats: QueueStats::new(0),
            flows: Flows::new(),
            capture: None,
            decided: DecisionHash::default(),
            delivered: DecisionHash::default(),
            count: Beside::default(),
            lateness: Histogram::default(),
            pace: Pace::default(),
        })
    }

    /// Writes packets and what becomes of them to `capture` from now on.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// What it is like.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// A frame comes in at `now` (ns), up to which everything has been delivered. Returns what the
    /// queue was told of it, if it was asked.
    pub fn arrive(&mut self, now: u64, frame: &[u8]) -> Option<Meta> {
        let mut headers = parse(frame, self.layer);
        if headers.flow == Flow::default() && self.layer == Layer::Ethernet {
            headers.flow = stations(frame);
        }
        let Some(slot) = self.arena.store(frame) else {
            self.count.refused += 1;
            return None;
        };
        let meta = Meta {
            // Nothing is counted as shorter, so that as many as fit by bytes fit in memory.
            len: (frame.len() as u32).max(Limit::MIN_PACKET as u32),
            ecn: headers.ecn,
            flow: self.hasher.key(&headers.flow),
            arrived: Instant::from_nanos(now),
        };
        let handle = Handle { slot, seq: self.seq };
        self.seq = self.seq.wrapping_add(1);
        if self.capture.is_some() {
            self.arena.find(slot, self.backlog());
        }
        self.flows.arrived(now, meta.flow, &headers.flow, meta.len);
        let (cx, report) = context!(self, now);
        self.queue.enqueue(meta, handle, cx, report);
        if !self.busy && self.queue.backlog().packets > 0 {
            self.send_next(now);
        } else {
            self.stats.change(now, self.backlog());
        }
        Some(meta)
    }

    /// Does everything that was due up to and including `now` (ns), and gives each frame that has
    /// come out to `send`, in order.
    pub fn deliver(&mut self, now: u64, mut send: impl FnMut(&[u8])) {
        loop {
            let departure = if self.busy { self.free_at } else { u64::MAX };
            let timer = self.timer();
            let due = departure.min(timer);
            if let Some(&head) = self.wire.front()
                && head.at <= due.min(now)
            {
                self.wire.pop_front();
                send(self.come_out(&head, now));
                self.arena.release(head.handle.slot);
            } else if due > now {
                return;
            } else if departure <= timer {
                self.send_next(departure);
            } else {
                self.on_timer(timer);
            }
        }
    }

    /// When [`Link::deliver`] has something to deliver, ns; earlier is harmless.
    pub fn next_event(&self) -> u64 {
        match self.wire.front() {
            Some(head) => head.at,
            None if self.backlog().packets > 0 => self.free_at + self.delay,
            None => u64::MAX,
        }
    }

    /// The transmitter is free at `now`: asks the queue for a packet and sends it.
    fn send_next(&mut self, now: u64) {
        match self.take(now) {
            Some((meta, handle)) => {
                if !self.busy {
                    self.stats.busy(now);
                }
                self.busy = true;
                self.stats.departure(now, meta.arrived.as_nanos(), 0, meta.len);
                self.decided.departure(now, meta.flow.0 as u32, handle.seq);
                self.free_at = self.free_at.max(now) + self.serialiser.transmission(meta.len);
                // After a change to a shorter delay nothing overtakes.
                let at = self.wire.back().map_or(0, |last| last.at).max(self.free_at + self.delay);
                self.wire.push_back(InFlight { at, meta, handle });
            }
            None if self.busy => {
                self.busy = false;
                self.stats.idle(now);
            }
            None => {}
        }
        self.stats.change(now, self.backlog());
    }

    /// The packet to send next, if there is one.
    fn take(&mut self, now: u64) -> Option<(Meta, Handle)> {
        while let Some((queue, rng)) = self.replaced.first_mut() {
            let cx = &mut Cx { now: Instant::from_nanos(now), rng };
            let report = report!(self);
            if let Some(next) = queue.dequeue(cx, report) {
                return Some(next);
            }
            self.gone = sum(&self.gone, queue.counters());
            self.replaced.remove(0);
        }
        let (cx, report) = context!(self, now);
        self.queue.dequeue(cx, report)
    }

    /// When a queue wants to be woken, ns.
    fn timer(&self) -> u64 {
        let replaced = self.replaced.iter().map(|(queue, _)| queue);
        let times = replaced.chain([&self.queue]).filter_map(Qdisc::poll_at);
        times.min().map_or(u64::MAX, Instant::as_nanos)
    }

    /// Wakes the queues that wanted to be at `now`.
    fn on_timer(&mut self, now: u64) {
        let queues = self.replaced.iter_mut().map(|(queue, rng)| (queue, rng));
        for (queue, rng) in queues.chain([(&mut self.queue, &mut self.rng)]) {
            if queue.poll_at().is_some_and(|at| at.as_nanos() <= now) {
                let cx = &mut Cx { now: Instant::from_nanos(now), rng };
                let report = report!(self);
                queue.on_timer(cx, report);
            }
        }
        self.stats.change(now, self.backlog());
    }

    /// The frame of a packet that comes out of the wire, with its mark.
    fn come_out(&mut self, flight: &InFlight, now: u64) -> &[u8] {
        self.count.delivered += 1;
        self.delivered.delivery(flight.at, flight.meta.flow.0 as u32, flight.handle.seq);
        self.lateness.add(now - flight.at, 1);
        self.pace.delivered(flight.at, now, flight.meta.len);
        let fate = self.arena.marked(flight.handle.slot).map_or(Fate::Delivered, Fate::Marked);
        let found = self.arena.found(flight.handle.slot);
        let frame = self.arena.packet_mut(flight.handle.slot);
        if flight.meta.ecn == Ecn::Ce {
            set_ce(frame, self.layer);
        }
        if let Some(capture) = &self.capture {
            capture.packet(flight.handle.seq, stay(&flight.meta, flight.at, found), frame, fate);
        }
        frame
    }

    /// What happened at the queue so far.
    pub fn counters(&self) -> Counters {
        let replaced = self.replaced.iter().map(|(queue, _)| queue.counters());
        replaced.chain([self.queue.counters()]).fold(self.gone, |all, each| sum(&all, each))
    }

    /// What is queued.
    pub fn backlog(&self) -> Backlog {
        self.replaced.iter().fold(self.queue.backlog(), |all, (queue, _)| {
            let one = queue.backlog();
            Backlog { packets: all.packets + one.packets, bytes: all.bytes + one.bytes }
        })
    }

    /// How long what is queued at `now` (ns) takes to be sent at this rate: the delay of a packet that
    /// would be admitted behind it.
    pub fn queued_time(&self, now: u64) -> Duration {
        let bits = u128::from(self.backlog().bytes) * 8_000_000_000;
        let queued = (bits / u128::from(self.spec.rate.bits_per_second())) as u64;
        Duration::from_nanos(if self.busy { self.free_at.saturating_sub(now) + queued } else { 0 })
    }

    /// The `count` flows that sent most in the last full second before `now` (ns).
    pub fn top(&mut self, now: u64, count: usize) -> Vec<flows::Tally> {
        self.flows.top(now, count)
    }

    /// What happened beside the queue.
    pub fn beside(&self) -> Beside {
        self.count
    }

    /// What was measured at the queue since [`Link::restart_measurement`] or time 0, up to `now`
    /// (ns).
    pub fn summary(&self, now: u64) -> QueueSummary {
        self.stats.summary(now, &self.counters())
    }

    /// How long packets that were sent had been in the queue, ns, and the sum of that.
    pub fn sojourn(&self) -> (&Histogram, u128) {
        self.stats.delays()
    }

    /// How long after its time a packet was delivered, ns: the lateness of this machine.
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// When packets were really handed over in this window.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Begins a new window of measurement at `now` (ns).
    pub fn restart_measurement(&mut self, now: u64) {
        self.stats.restart(now, &self.counters());
        self.lateness.clear();
        self.pace = Pace::default();
    }

    /// The algorithm's signals at `now` (ns).
    pub fn observe(&self, now: u64, sink: &mut dyn FnMut(&'static str, f64)) {
        self.queue.observe(Instant::from_nanos(now), sink);
    }

    /// Over all decisions and deliveries, as [`sim::network::Network::decision_hash`] of a network
    /// of one link.
    pub fn decision_hash(&self) -> DecisionHash {
        let mut hash = DecisionHash::default();
        hash.combine(self.decided);
        hash.combine(self.delivered);
        hash
    }

    /// Whether every packet is accounted for: arrived = departed + dropped + queued, departed =
    /// delivered + on the wire, and each packet that is here has its memory.
    pub fn check(&self) -> bool {
        let (c, backlog) = (self.counters(), self.backlog());
        let dropped = c.all_dropped();
        let on_wire = self.wire.len() as u64;
        c.arrived.packets == c.departed.packets + dropped.packets + u64::from(backlog.packets)
            && c.arrived.bytes == c.departed.bytes + dropped.bytes + backlog.bytes
            && c.departed.packets == self.count.delivered + on_wire
            && self.arena.used() == backlog.packets as usize + self.wire.len()
    }
}

/// What happened at two queues together.
fn sum(one: &Counters, other: &Counters) -> Counters {
    let both =
        |a: Tally, b: Tally| Tally { packets: a.packets + b.packets, bytes: a.bytes + b.bytes };
    let each = |a: &[Tally; Cause::COUNT], b: &[Tally; Cause::COUNT]| {
        std::array::from_fn(|cause| both(a[cause], b[cause]))
    };
    Counters {
        arrived: both(one.arrived, other.arrived),
        departed: both(one.departed, other.departed),
        dropped: each(&one.dropped, &other.dropped),
        marked: each(&one.marked, &other.marked),
    }
}

#[cfg(test)]
mod tests;
