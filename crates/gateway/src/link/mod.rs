//! An emulated link: a queue that an algorithm manages, a transmitter of exact rate and a wire,
//! which may vary and impair packets, served by the same code as the simulator's ([`link::server`]), but for packets with
//! bytes.
//!
//! Time is handed in and virtual: each event happens *as of* the instant at which it was due, however late
//! the caller comes. So lateness of the machine moves arrivals and deliveries, but never the rate nor a
//! decision between them. The caller repeats: [`Link::deliver`] all that has come out by now,
//! [`Link::arrive`] what came in, sleep until [`Link::next_event`].
//!
//! All memory is taken at construction. Every packet that arrives is delivered, dropped or still
//! here; [`Link::check`] says so.

pub(crate) mod arena;
mod change;
pub(crate) mod classes;
mod flights;
pub(crate) mod flows;
mod frames;
mod hold;
mod pace;
mod queues;
mod refused;
mod spec;
mod tins;

use aqm::{Ack, Backlog, Counters, Duration, Ecn, Instant, Limit, Meta, Qdisc, Rate};
use link::impair::Fate;
use link::{
    DecisionHash, Exit, Fine, Histogram, Impair, Impaired, Item, NEVER, QueueSummary, Server,
    Transmitter,
};

use crate::frame::{Flow, Hasher, Layer, acknowledgement, clear_dscp, parse, set_ce, stations};
use crate::output::capture::{self, Capture};
use ::link::varying::FAR;
use arena::{Arena, Handle};

pub use change::Next;
pub use classes::Classes;
use flights::{Flights, InFlight};
use frames::{Frames, stay};
pub use pace::Pace;
use queues::Queues;
pub use refused::SpecError;
use refused::too_large;
pub use spec::{Bucket, Spec};
use tins::Tins;

/// One direction between two interfaces. Time 0 is when it was made.
pub struct Link {
    spec: Spec,
    layer: Layer,
    hasher: Hasher,
    /// Whether the queue asks for codepoints and hosts.
    labels: bool,
    /// Whether it asks for what packets acknowledge.
    acks: bool,
    queue: Queues,
    /// The rate that it knows, if it is not told others.
    known: Rate,
    server: Server<Frames>,
    wire: Wire,
    /// The next packet's number.
    seq: u32,
    delivered: DecisionHash,
    count: Beside,
    /// How long after its time each packet was delivered, ns.
    lateness: Histogram,
    pace: Pace,
    /// What is due after this time waits on the wire, ns.
    shut_from: u64,
}

/// What came in and was not judged by the queue, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Beside {
    /// Longer than a slot of memory: lost.
    pub refused: u64,
    /// Delivered by the queue's wire, with copies.
    pub delivered: u64,
    /// Copies that were delivered.
    pub copied: u64,
    /// Lost on the wire.
    pub lost: u64,
}

/// The transmitter and what is on the wire behind it, in order.
struct Wire {
    transmitter: Transmitter,
    flights: Flights,
    impair: Option<Box<Impair>>,
    /// What was sent last.
    sending: Handle,
    /// What was sent.
    tins: Tins,
}

impl Exit<Handle> for Wire {
    fn send(&mut self, now: u64, meta: &Meta, handle: &mut Handle) -> u64 {
        self.tins.count(meta, Instant::from_nanos(now), tins::Event::Sent);
        let soonest = self.transmitter.send(now, meta.len);
        self.sending = *handle;
        // After a change to a shorter delay nothing overtakes.
        let last = self.flights.last_at();
        let flight = InFlight {
            at: soonest.max(last),
            meta: *meta,
            handle: *handle,
            copies: 1,
            damage: None,
        };
        if self.impair.is_some() {
            self.send_impaired(soonest, flight);
        } else {
            self.flights.push(flight);
        }
        self.transmitter.free_at()
    }
}

impl Wire {
    /// A packet that would come out at `soonest` at the least delay takes its place on the wire.
    #[inline(never)]
    fn send_impaired(&mut self, soonest: u64, mut flight: InFlight) {
        if let Some(impair) = &mut self.impair {
            let Fate { at, copies, damage } = impair.pass(soonest, flight.meta.len);
            flight = InFlight { at, copies, damage, ..flight };
        }
        self.flights.push(flight);
    }

    /// How long after `now` (ns) those that are sent from then on may have to wait on the wire for what
    /// is there already, ns. Until one that is being sent has been, nothing follows it.
    fn longest(&self, now: u64) -> u64 {
        let free = self.transmitter.free_at().max(now);
        let waits = |flight: &InFlight| {
            let from = if flight.handle == self.sending { free } else { now };
            flight.at.saturating_sub(from)
        };
        self.flights.iter().map(waits).max().unwrap_or(0)
    }

    /// When the next packet comes out if none is sent before `departure`, ns; earlier is harmless.
    fn next_event(&self, departure: u64) -> u64 {
        let unsent = departure.saturating_add(self.transmitter.delay());
        match self.flights.first() {
            Some(head) if self.impair.is_some() => head.at.min(unsent),
            Some(head) => head.at,
            None => unsent,
        }
    }
}

impl Item for Handle {
    fn flow(&self, meta: &Meta) -> u32 {
        meta.flow.0 as u32
    }

    fn seq(&self) -> u32 {
        self.seq
    }
}

impl Link {
    /// An idle link at time 0 for frames that begin with `layer`, of at most `longest` bytes.
    ///
    /// # Errors
    /// When there can be no such link.
    pub fn new(spec: &Spec, layer: Layer, longest: usize) -> Result<Self, SpecError> {
        Self::begin(spec, layer, longest, Instant::ZERO)
    }

    fn begin(spec: &Spec, layer: Layer, longest: usize, now: Instant) -> Result<Self, SpecError> {
        let delay = spec.longest().as_nanos();
        let slots = spec.slots(delay, 0)?;
        Arena::fits(slots, longest).ok_or_else(|| too_large(slots))?;
        let (queue, rng) = spec.queue(now, 0)?;
        let tins = || Tins::new(spec, now);
        let frames = Frames::new(Arena::new(slots, longest), tins());
        Ok(Self {
            spec: spec.clone(),
            layer,
            hasher: Hasher::default(),
            labels: spec.asks_for_labels(),
            acks: spec.asks_for_acks(),
            queue: Queues::new(queue),
            known: spec.rate_at(now),
            server: Server::new(rng, true, 0, frames).reserved(),
            wire: Wire {
                transmitter: spec.transmitter(),
                flights: Flights::new(spec.on_wire(delay) as usize, spec.impairments.reorder),
                impair: spec.impair().map(Box::new),
                sending: Handle::default(),
                tins: tins(),
            },
            seq: 0,
            delivered: DecisionHash::default(),
            count: Beside::default(),
            lateness: Histogram::default().reserved(),
            pace: Pace::reserved(),
            shut_from: NEVER,
        })
    }

    /// Writes packets and what becomes of them to `capture` from now on.
    pub fn capture(&mut self, capture: Capture) {
        self.server.log_mut().capture = Some(capture);
    }

    /// What its frames begin with.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// The specification that holds now.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// A frame comes in at `now` (ns), up to which everything has been delivered. Returns what the queue
    /// learned of it, unless the frame did not reach the queue.
    pub fn arrive(&mut self, now: u64, frame: &[u8]) -> Option<(Meta, Ack)> {
        let mut headers = parse(frame, self.layer);
        let class = self.spec.classes.as_ref().map(|classes| classes.class(&headers.flow));
        if headers.flow == Flow::default() && self.layer == Layer::Ethernet {
            headers.flow = stations(frame);
        }
        let frames = self.server.log_mut();
        let Some(slot) = frames.arena.store(frame) else {
            self.count.refused += 1;
            return None;
        };
        let flow = match self.labels {
            true => self.hasher.labelled(&headers),
            false => self.hasher.key(&headers.flow),
        };
        let meta = Meta {
            // Nothing is counted as shorter, so that as many as fit by bytes fit in memory.
            len: (frame.len() as u32).max(Limit::MIN_PACKET as u32),
            ecn: headers.ecn,
            flow: class.map_or(flow, |class| flow.in_class(class)),
            arrived: Instant::from_nanos(now),
        };
        let ack = if self.acks { acknowledgement(frame, self.layer) } else { Ack::NONE };
        let handle = Handle { slot, seq: self.seq, ack };
        self.seq = self.seq.wrapping_add(1);
        if frames.capture.is_some() {
            frames.arena.find(slot, self.queue.backlog());
        }
        frames.flows.arrived(now, meta.flow, &headers.flow, meta.len);
        self.server.arrive(&mut self.queue, meta, handle);
        while self.server.due(&self.queue) <= now {
            self.server.step(&mut self.queue, &mut self.wire);
        }
        Some((meta, ack))
    }

    /// Does everything that was due up to and including `now` (ns), and gives each frame that has
    /// come out to `send`, in order.
    pub fn deliver(&mut self, now: u64, mut send: impl FnMut(&[u8])) {
        let out = now.min(self.shut_from);
        loop {
            let due = self.server.due(&self.queue);
            if let Some(head) = self.wire.flights.pop_until(due.min(out)) {
                for copy in 0..head.copies {
                    send(self.come_out(&head, now, copy));
                }
                if head.copies == 0 {
                    self.lose(&head);
                }
                self.server.log_mut().arena.release(head.handle.slot);
            } else if due > now {
                return;
            } else {
                self.server.step(&mut self.queue, &mut self.wire);
            }
        }
    }

    /// When [`Link::deliver`] has something to deliver, ns; earlier is harmless.
    pub fn next_event(&self) -> u64 {
        if self.shut_from == 0 {
            return NEVER;
        }
        self.wire.next_event(self.server.next_departure())
    }

    /// A packet is lost on the wire.
    #[cold]
    fn lose(&mut self, flight: &InFlight) {
        self.count.lost += 1;
        let Frames { arena, capture, .. } = self.server.log_mut();
        let found = arena.found(flight.handle.slot);
        let frame = arena.packet_mut(flight.handle.slot);
        if let Some(capture) = capture {
            let stay = stay(&flight.meta, flight.at, found);
            capture.packet(flight.handle.seq, stay, frame, capture::Fate::Lost);
        }
    }

    /// The frame of a packet that comes out of the wire, with its mark; once more if `copy` is not 0.
    fn come_out(&mut self, flight: &InFlight, now: u64, copy: u8) -> &[u8] {
        self.count.delivered += 1;
        self.count.copied += u64::from(copy > 0);
        self.delivered.delivery(flight.at, flight.meta.flow.0 as u32, flight.handle.seq);
        self.lateness.add(now - flight.at, 1);
        self.pace.delivered(flight.at, now, flight.meta.len);
        let Frames { arena, capture, .. } = self.server.log_mut();
        let marked = arena.marked(flight.handle.slot);
        let fate = marked.map_or(capture::Fate::Delivered, capture::Fate::Marked);
        let found = arena.found(flight.handle.slot);
        let frame = arena.packet_mut(flight.handle.slot);
        if copy > 0 {
            return frame;
        }
        if flight.meta.ecn == Ecn::Ce {
            set_ce(frame, self.layer);
        }
        if self.spec.wash {
            clear_dscp(frame, self.layer);
        }
        if let Some(word) = flight.damage {
            flip(frame, word, self.layer);
        }
        if let Some(capture) = capture {
            capture.packet(flight.handle.seq, stay(&flight.meta, flight.at, found), frame, fate);
        }
        frame
    }

    /// What happened at the queue so far.
    pub fn counters(&self) -> Counters {
        *self.queue.counters()
    }

    /// What is queued.
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// How long what is queued at `now` (ns) takes to be sent, over a rate that varies, too: the delay of
    /// a packet that would be admitted behind it. `None` if it never will be.
    pub fn queued_time(&self, now: u64) -> Option<Duration> {
        let Backlog { packets, bytes, .. } = self.backlog();
        match self.server.free_at() {
            NEVER => Some(Duration::ZERO),
            _ => {
                let sent = self.wire.transmitter.sent(now, packets, bytes);
                (sent < FAR).then(|| Duration::from_nanos(sent - now))
            }
        }
    }

    /// The rate at `now` (ns), bit/s, if it varies.
    pub fn rate_now(&self, now: u64) -> Option<u64> {
        self.spec.sending.rates.as_ref().map(|rates| rates.at(now))
    }

    /// The `count` flows that sent most in the last full second before `now` (ns).
    pub fn top(&mut self, now: u64, count: usize) -> Vec<flows::Tally> {
        self.server.log_mut().flows.top(now, count)
    }

    /// What the wire did to packets that were sent, if it impairs them.
    pub fn impaired(&self) -> Option<Impaired> {
        self.wire.impair.as_ref().map(|impair| impair.count())
    }

    /// What each tin carried since the queue discipline began, if it is CAKE.
    pub fn tins(&self) -> Option<serde_json::Value> {
        self.wire.tins.told(&self.server.log().tins)
    }

    /// What happened beside the queue.
    pub fn beside(&self) -> Beside {
        self.count
    }

    /// What was measured at the queue since [`Link::restart_measurement`] or time 0, up to `now`
    /// (ns).
    pub fn summary(&self, now: u64) -> QueueSummary {
        self.server.summary(now, self.queue.counters())
    }

    /// How long packets that were sent had been in the queue, ns, and the sum of that.
    pub fn sojourn(&self) -> (&Fine, u128) {
        self.server.stats().delays()
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
        self.server.restart_measurement(now, self.queue.counters());
        self.lateness.clear();
        self.pace = Pace::reserved();
    }

    /// The algorithm's signals at `now` (ns).
    pub fn observe(&self, now: u64, sink: &mut dyn FnMut(&'static str, f64)) {
        self.queue.observe(Instant::from_nanos(now), sink);
    }

    /// Over all decisions and deliveries, as [`sim::network::Network::decision_hash`] of a network
    /// of one link.
    pub fn decision_hash(&self) -> DecisionHash {
        let mut hash = DecisionHash::default();
        hash.combine(self.server.decision_hash());
        hash.combine(self.delivered);
        hash
    }

    /// Whether every packet is accounted for: arrived = departed + dropped + queued, departed =
    /// delivered + on the wire, and each packet that is here has its memory.
    pub fn check(&self) -> bool {
        let (c, backlog) = (self.counters(), self.backlog());
        let dropped = c.all_dropped();
        let on_wire = self.wire.flights.len() as u64;
        c.arrived.packets == c.departed.packets + dropped.packets + u64::from(backlog.packets)
            && c.arrived.bytes == c.departed.bytes + dropped.bytes + backlog.bytes
            && c.departed.packets + self.count.copied
                == self.count.delivered + self.count.lost + on_wire
            && self.server.log().arena.used() == backlog.packets as usize + self.wire.flights.len()
    }
}

/// Flips a bit of a frame behind the header of its `layer`, so that it comes where it was sent.
fn flip(frame: &mut [u8], word: u64, layer: Layer) {
    let header = if layer == Layer::Ethernet { 14 } else { 0 };
    let bits = 8 * frame.len().saturating_sub(header) as u64;
    let bit = ((u128::from(word) * u128::from(bits)) >> 64) as usize;
    if let Some(byte) = frame.get_mut(header + bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests;
