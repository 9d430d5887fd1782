//! An emulated link: a queue that an algorithm manages, a transmitter of exact rate and a wire of
//! constant delay, as in the simulator (`sim::link`), but for packets with bytes.
//!
//! Time is handed in and virtual: what was due at an instant is done *as of* that instant, however
//! late the caller comes, so lateness of the machine moves arrivals and deliveries but never the
//! rate, nor a decision between them. The caller repeats: [`Link::take`] all that has come out by
//! now, [`Link::arrive`] what came in, sleep until [`Link::next_event`].
//!
//! All memory is taken at construction. Every packet that arrives is delivered, dropped or still
//! here; [`Link::check`] says so.

use std::collections::VecDeque;

use aqm::any::BuildError;
use aqm::{
    AnyQdisc, Backlog, Cause, Counters, Cx, Duration, Ecn, Env, Instant, Limit, Meta, Outlet, Tally,
};
use aqm::{Qdisc, Rate, Rng};
use sim::hash::DecisionHash;
use sim::link::Serialiser;
use sim::metrics::histogram::Histogram;
use sim::metrics::queue::{QueueStats, QueueSummary};
use sim::packet::Packet;

use crate::arena::{Arena, Handle};
use crate::capture::{Capture, Fate};
use crate::flows::{self, Flows};
use crate::frame::{Hasher, Layer, parse, set_ce};

/// What a link is to be like.
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    /// Rate of the transmitter, at most [`Spec::MAX_RATE`].
    pub rate: Rate,
    /// Propagation delay of the wire, at most [`Spec::MAX_DELAY`].
    pub delay: Duration,
    /// Room of the queue, without the packet in transmission.
    pub limit: Limit,
    /// Name of the algorithm.
    pub aqm: String,
    /// Its parameters, as text.
    pub params: Vec<(String, String)>,
    /// Typical length of a packet in bytes, for the algorithm ([`Env::mean_packet`]).
    pub mean_packet: u32,
    /// Seed of the queue's random numbers.
    pub seed: u64,
}

/// Why there can be no such link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpecError {
    /// The queue cannot be built.
    Queue(BuildError),
    /// Rate, delay or buffer are beyond what can be emulated; what is allowed.
    Beyond(String),
}

impl Spec {
    /// No link is faster.
    pub const MAX_RATE: u64 = 100_000_000_000;
    /// No wire is longer.
    pub const MAX_DELAY: Duration = Duration::from_secs(60);
    /// The most packets on the way through one link.
    pub const MAX_PACKETS: u64 = 1 << 22;

    /// The queue at rest at `now`, and its stream of random numbers.
    pub(crate) fn queue<P: Copy + Default>(
        &self,
        now: Instant,
        stream: u64,
    ) -> Result<(AnyQdisc<P>, Rng), BuildError> {
        let mut rng = Rng::new(self.seed, stream);
        let env = Env { now, limit: self.limit, rate: self.rate, mean_packet: self.mean_packet };
        let params: Vec<_> = self.params.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        Ok((AnyQdisc::build(&self.aqm, &params, &env, &mut rng)?, rng))
    }

    /// The most packets on a wire that takes `delay` (ns): the shortest ones, back to back.
    fn on_wire(&self, delay: u64) -> u64 {
        let bits = u128::from(self.rate.bits_per_second()) * u128::from(delay);
        (bits / (8_000_000_000 * u128::from(Limit::MIN_PACKET))) as u64 + 2
    }

    /// Room for packets that such a link needs beside `others`, if it can be emulated; its wire
    /// takes `delay` (ns).
    fn slots(&self, delay: u64, others: u64) -> Result<u32, SpecError> {
        let beyond = |what: String| Err(SpecError::Beyond(what));
        if self.rate.bits_per_second() > Self::MAX_RATE {
            return beyond("a rate of at most 100gbit".into());
        }
        if self.delay > Self::MAX_DELAY {
            return beyond(format!("a delay of at most {}", Self::MAX_DELAY));
        }
        let own = u64::from(self.limit.max_packets()) + 1 + self.on_wire(delay) + MOST_PASSING;
        let slots = own.saturating_add(others);
        if slots > Self::MAX_PACKETS {
            return beyond(format!(
                "a buffer and a wire that hold at most {} packets of {} bytes, not {slots}",
                Self::MAX_PACKETS,
                Limit::MIN_PACKET
            ));
        }
        Ok(slots as u32)
    }
}

/// A packet on the wire.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// When it comes out, ns.
    at: u64,
    meta: Meta,
    handle: Handle,
    /// Whether it went by the queue.
    passed: bool,
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

/// When packets were really handed over.
#[derive(Clone, Default, Debug)]
pub struct Pace {
    /// When the first and the last were, ns, and how late that last one was.
    first: u64,
    last: u64,
    late: u64,
    packets: u64,
    /// Bits of all but the first.
    bits: u64,
    gaps: Histogram,
}

impl Pace {
    fn delivered(&mut self, due: u64, now: u64, len: u32) {
        let late = now - due;
        if self.packets == 0 {
            self.first = now;
        } else {
            self.bits += 8 * u64::from(len);
            self.gaps.add(late.abs_diff(self.late), 1);
        }
        (self.last, self.late) = (now, late);
        self.packets += 1;
    }

    /// The rate from the first packet to the last; nothing if there were fewer than two.
    pub fn bits_per_second(&self) -> Option<f64> {
        let ns = self.last - self.first;
        (ns > 0).then(|| self.bits as f64 * 1e9 / ns as f64)
    }

    /// How much each gap between two packets differed from what it should have been, ns.
    pub fn gaps(&self) -> &Histogram {
        &self.gaps
    }

    /// How many packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}

/// What a [`Link`] is to become, and all that has to be made for it.
pub struct Next {
    spec: Spec,
    /// If another one is wanted.
    queue: Option<(AnyQdisc<Handle>, Rng)>,
    slots: u32,
    on_wire: usize,
}

/// What came in and was not judged by the queue, in packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Beside {
    /// ARP, which has the wire's delay and nothing else.
    pub passed: u64,
    /// Of these, not yet delivered.
    pub passing: u64,
    /// Longer than a slot of memory, or ARP in unheard-of numbers: lost.
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
            let frame = self.arena.packet_mut(packet.slot);
            capture.packet(packet.seq, now.as_nanos(), frame, Fate::Dropped(cause));
        }
        self.arena.release(packet.slot);
    }

    fn marked(&mut self, meta: &Meta, packet: &Handle, cause: Cause, now: Instant) {
        self.hash.mark(now.as_nanos(), meta.flow.0 as u32, cause);
        self.flows.marked(meta.flow);
        self.arena.mark(packet.slot, cause);
    }
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
            wire: VecDeque::with_capacity((spec.on_wire(delay) + MOST_PASSING) as usize),
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

    /// What it takes to become a link of `spec` at `now` (ns), up to which everything has been
    /// delivered.
    ///
    /// # Errors
    /// When there can be no such link, or too many changes are under way.
    pub fn prepare(&self, now: u64, spec: &Spec) -> Result<Next, SpecError> {
        let last = self.wire.back().map_or(0, |last| last.at.saturating_sub(now));
        let delay = spec.delay.as_nanos().max(last);
        let slots = spec.slots(delay, self.arena.used() as u64)?;
        Arena::fits(slots, self.arena.longest()).ok_or_else(|| too_large(slots))?;
        let kept = Spec { rate: spec.rate, delay: spec.delay, ..self.spec.clone() };
        let queue = (kept != *spec).then(|| {
            if self.replaced.len() == MOST_REPLACED {
                return Err(SpecError::Beyond(format!(
                    "{MOST_REPLACED} changes at a time; packets from before the first are still \
                     queued"
                )));
            }
            spec.queue(Instant::from_nanos(now), self.changes + 1).map_err(SpecError::Queue)
        });
        let on_wire = (spec.on_wire(delay) + MOST_PASSING) as usize;
        Ok(Next { spec: spec.clone(), queue: queue.transpose()?, slots, on_wire })
    }

    /// Becomes what was prepared. No packet is lost by that, and none overtakes another: what is
    /// queued leaves before what arrives from now on, by the rules under which it was admitted;
    /// what is being sent or on the wire keeps its time. If nothing but rate and delay changes, the
    /// queue discipline stays, with all that it has learnt; else a new one begins.
    pub fn change(&mut self, next: Next) {
        if let Some((queue, rng)) = next.queue {
            let queue = std::mem::replace(&mut self.queue, queue);
            let rng = std::mem::replace(&mut self.rng, rng);
            if queue.backlog().packets > 0 {
                self.replaced.push((queue, rng));
            } else {
                self.gone = sum(&self.gone, queue.counters());
            }
            self.changes += 1;
        }
        self.arena.grow(next.slots);
        self.wire.reserve(next.on_wire);
        if next.spec.rate != self.spec.rate {
            self.serialiser = Serialiser::new(next.spec.rate);
        }
        self.delay = next.spec.delay.as_nanos();
        self.spec = next.spec;
    }

    /// A frame comes in at `now` (ns), up to which everything has been delivered. Returns what the
    /// queue was told of it, if it was asked.
    pub fn arrive(&mut self, now: u64, frame: &[u8]) -> Option<Meta> {
        let headers = parse(frame, self.layer);
        if headers.arp && self.count.passing == MOST_PASSING {
            self.count.refused += 1;
            return None;
        }
        let Some(slot) = self.arena.store(frame) else {
            self.count.refused += 1;
            return None;
        };
        let mut meta = Meta {
            // Nothing is counted as shorter, so that as many as fit by bytes fit in memory.
            len: (frame.len() as u32).max(Limit::MIN_PACKET as u32),
            ecn: headers.ecn,
            flow: self.hasher.key(&headers.flow),
            arrived: Instant::from_nanos(now),
        };
        let handle = Handle { slot, seq: self.seq };
        if headers.arp {
            self.count.passed += 1;
            self.count.passing += 1;
            let at = self.wire.back().map_or(0, |last| last.at).max(now + self.delay);
            meta.ecn = Ecn::NotEct;
            self.wire.push_back(InFlight { at, meta, handle, passed: true });
            return None;
        }
        self.seq = self.seq.wrapping_add(1);
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
                let packet = Packet { len: meta.len as u16, ..Packet::default() };
                self.stats.departure(now, meta.arrived.as_nanos(), &packet);
                self.decided.departure(now, meta.flow.0 as u32, handle.seq);
                self.free_at = self.free_at.max(now) + self.serialiser.transmission(meta.len);
                // After a change to a shorter delay nothing overtakes.
                let at = self.wire.back().map_or(0, |last| last.at).max(self.free_at + self.delay);
                self.wire.push_back(InFlight { at, meta, handle, passed: false });
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
        if flight.passed {
            self.count.passing -= 1;
        } else {
            self.count.delivered += 1;
            self.delivered.delivery(flight.at, flight.meta.flow.0 as u32, flight.handle.seq);
            self.lateness.add(now - flight.at, 1);
            self.pace.delivered(flight.at, now, flight.meta.len);
        }
        let fate = self.arena.marked(flight.handle.slot).map_or(Fate::Delivered, Fate::Marked);
        let frame = self.arena.packet_mut(flight.handle.slot);
        if flight.meta.ecn == Ecn::Ce {
            set_ce(frame, self.layer);
        }
        if let Some(capture) = &self.capture
            && !flight.passed
        {
            capture.packet(flight.handle.seq, flight.at, frame, fate);
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
        let on_wire = self.wire.len() as u64 - self.count.passing;
        c.arrived.packets == c.departed.packets + dropped.packets + u64::from(backlog.packets)
            && c.arrived.bytes == c.departed.bytes + dropped.bytes + backlog.bytes
            && c.departed.packets == self.count.delivered + on_wire
            && self.arena.used() == backlog.packets as usize + self.wire.len()
    }
}

/// The most ARP packets under way.
const MOST_PASSING: u64 = 64;
/// The most replaced queues that still hold packets.
const MOST_REPLACED: usize = 8;

fn too_large(slots: u32) -> SpecError {
    SpecError::Beyond(format!("memory for the {slots} packets that buffer and wire can hold"))
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
mod tests {
    use super::*;
    use aqm::CATALOG;

    fn spec(rate: Rate, delay: Duration, aqm: &str) -> Spec {
        Spec {
            rate,
            delay,
            limit: Limit::bytes(50_000).unwrap(),
            aqm: aqm.into(),
            params: Vec::new(),
            mean_packet: 1000,
            seed: 7,
        }
    }

    fn link(rate: Rate, delay: Duration, aqm: &str) -> Link {
        Link::new(&spec(rate, delay, aqm), Layer::Ip, 1500).unwrap()
    }

    /// A UDP packet whose payload begins with `number`, cut off at `len` ≥ 20 bytes.
    fn udp(number: u32, flow: u16, ecn: Ecn, len: usize) -> Vec<u8> {
        let mut p = vec![0; len.max(32)];
        p[0] = 0x45;
        p[1] = ecn as u8;
        p[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        p[9] = 17;
        p[20..22].copy_from_slice(&flow.to_be_bytes());
        p[28..32].copy_from_slice(&number.to_be_bytes());
        p.truncate(len);
        p
    }

    /// Frames that come out by `now`, each as its number and ECN field.
    fn out(link: &mut Link, now: u64) -> Vec<(u32, Ecn)> {
        let mut frames = Vec::new();
        link.deliver(now, |f| {
            frames
                .push((u32::from_be_bytes([f[28], f[29], f[30], f[31]]), parse(f, Layer::Ip).ecn));
        });
        frames
    }

    fn change(link: &mut Link, now: u64, spec: &Spec) -> Result<(), SpecError> {
        link.prepare(now, spec).map(|next| link.change(next))
    }

    #[test]
    fn a_burst_leaves_one_transmission_apart() {
        let mut l = link(Rate::from_mbit(8), Duration::from_millis(5), "droptail");
        for n in 0..3 {
            l.arrive(0, &udp(n, 1, Ecn::Ect0, 1000));
        }
        for n in 0..3 {
            let at = 6_000_000 + 1_000_000 * u64::from(n);
            assert_eq!(l.next_event(), at);
            assert_eq!(out(&mut l, at - 1), []);
            assert_eq!(out(&mut l, at), [(n, Ecn::Ect0)]);
        }
        assert_eq!(l.next_event(), u64::MAX);
        assert!(l.check());
    }

    /// However late the caller comes, packets leave as of their time: a second burst that arrives
    /// before the first was looked at is sent right behind it.
    #[test]
    fn lateness_costs_no_rate() {
        let mut l = link(Rate::from_mbit(8), Duration::ZERO, "droptail");
        (0..10).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
        assert_eq!(out(&mut l, 9_700_000).len(), 9);
        (10..20).for_each(|n| _ = l.arrive(9_700_000, &udp(n, 1, Ecn::NotEct, 1000)));
        assert_eq!(out(&mut l, 19_999_999).len(), 10);
        assert_eq!(out(&mut l, 20_000_000).len(), 1);
    }

    /// The time of the last of many packets of mixed lengths: at 10 and 100 Mb/s within 0.01 % (in
    /// fact to the nanosecond) of bits / rate, with a caller that comes when it likes.
    #[test]
    fn the_long_run_rate_is_exact() {
        for (mbit, odd) in [(10, 0), (100, 0), (10, 3), (100, 7)] {
            let rate = Rate::new(mbit * 1_000_000 + odd).unwrap();
            let mut l = link(rate, Duration::ZERO, "droptail");
            let mut rng = Rng::new(mbit, 1);
            let (mut now, mut bits, mut last) = (0, 0u64, 0);
            for n in 0..50_000 {
                let len = [40, 576, 1000, 1500][rng.below(4)];
                bits += 8 * len as u64;
                // Arrivals keep the transmitter busy and the queue from overflowing.
                while l.queue.backlog().bytes > 40_000 {
                    now += rng.below(3_000_000) as u64;
                    l.deliver(now, |_| ());
                }
                l.arrive(now, &udp(n, 1, Ecn::NotEct, len));
            }
            while l.next_event() != u64::MAX {
                last = l.next_event();
                l.deliver(last, |_| ());
            }
            let exact =
                (u128::from(bits) * 1_000_000_000 / u128::from(rate.bits_per_second())) as u64;
            assert_eq!(last, exact, "{mbit} Mb/s");
            assert_eq!(l.counters().all_dropped().packets, 0);
        }
    }

    #[test]
    fn marks_are_written_into_the_headers_of_what_is_capable() {
        let mut s = spec(Rate::from_mbit(8), Duration::ZERO, "bernoulli");
        s.params = [("p", "1"), ("ecn", "true")].map(|(k, v)| (k.into(), v.into())).into();
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        for (n, ecn) in ecn.into_iter().enumerate() {
            l.arrive(0, &udp(n as u32, 1, ecn, 1000));
        }
        assert_eq!(out(&mut l, 1 << 30), [(1, Ecn::Ce), (2, Ecn::Ce), (3, Ecn::Ce)]);
        assert_eq!(l.counters().all_dropped().packets, 1);
        assert!(l.check());
    }

    #[test]
    fn arp_goes_by_the_queue_in_numbers_that_are_bounded() {
        let mut s = spec(Rate::from_mbit(8), Duration::from_millis(1), "bernoulli");
        s.params = vec![("p".into(), "1".into())];
        let mut l = Link::new(&s, Layer::Ethernet, 1514).unwrap();
        let mut arp = vec![0; 42];
        arp[12..14].copy_from_slice(&[8, 6]);
        (0..100).for_each(|_| _ = l.arrive(0, &arp));
        assert_eq!((l.beside().passed, l.beside().refused), (64, 36));
        let mut n = 0;
        l.deliver(999_999, |_| n += 1);
        assert_eq!(n, 0);
        l.deliver(1_000_000, |_| n += 1);
        assert_eq!((n, l.beside().passing), (64, 0));
        assert!(l.check());
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused() {
        let mut l = link(Rate::from_mbit(8), Duration::ZERO, "droptail");
        assert_eq!(l.arrive(0, &udp(0, 1, Ecn::NotEct, 9000)), None);
        assert_eq!(l.beside().refused, 1);
        assert!(l.check());
    }

    #[test]
    fn what_cannot_be_emulated_is_refused() {
        let long = Duration::from_secs(60);
        for s in [
            spec(Rate::new(Spec::MAX_RATE + 1).unwrap(), Duration::ZERO, "droptail"),
            spec(Rate::from_mbit(1), Duration::from_secs(61), "droptail"),
            spec(Rate::from_mbit(1000), long, "droptail"),
        ] {
            assert!(matches!(Link::new(&s, Layer::Ip, 1500), Err(SpecError::Beyond(_))), "{s:?}");
        }
        let unknown = spec(Rate::from_mbit(1), long, "bleu");
        let error = Link::new(&unknown, Layer::Ip, 1500).err();
        assert_eq!(error, Some(SpecError::Queue(BuildError::UnknownAqm)));
    }

    /// While packets come, the link becomes another one every 200 packets: each packet is accounted
    /// for, no handle of memory is lost, and what comes out does so in the order of its arrival.
    /// Without an algorithm that drops (the buffers are large) not one is missing.
    #[test]
    fn a_change_loses_nothing_and_keeps_the_order() {
        let mut s = spec(Rate::from_mbit(10), Duration::from_millis(3), "droptail");
        s.limit = Limit::packets(1000).unwrap();
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        let mut rng = Rng::new(5, 0);
        let (mut now, mut seen) = (0, Vec::new());
        for n in 0..20_000 {
            now += rng.below(2_400_000) as u64;
            seen.extend(out(&mut l, now));
            if n % 200 == 199 {
                match rng.below(4) {
                    0 => s.rate = Rate::from_mbit([5, 10, 40][rng.below(3)]),
                    1 => s.delay = Duration::from_millis([0, 3, 50][rng.below(3)]),
                    2 => s.limit = Limit::packets([1000, 1500][rng.below(2)]).unwrap(),
                    _ => s.aqm = ["droptail", "drop-front", "random-drop"][rng.below(3)].into(),
                }
                change(&mut l, now, &s).unwrap();
                assert!(l.check(), "{s:?}");
            }
            l.arrive(now, &udp(n, 1, Ecn::Ect0, 1000));
            assert!(l.check(), "packet {n}");
        }
        seen.extend(out(&mut l, now + 60_000_000_000));
        assert_eq!(l.counters().all_dropped().packets, 0);
        assert!(seen.iter().map(|(n, _)| *n).eq(0..20_000));
        assert_eq!((l.arena.used(), l.replaced.len()), (0, 0));
    }

    /// From every algorithm to every other under load.
    #[test]
    fn any_algorithm_takes_over_from_any_other() {
        let mut rng = Rng::new(6, 0);
        let mut s = spec(Rate::from_mbit(10), Duration::from_millis(3), "droptail");
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        let (mut now, mut n) = (0, 0);
        for from in CATALOG {
            for to in CATALOG {
                for name in [from.name, to.name] {
                    s.aqm = name.into();
                    change(&mut l, now, &s).unwrap();
                    for _ in 0..60 {
                        now += rng.below(1_400_000) as u64;
                        l.deliver(now, |_| ());
                        let ecn = [Ecn::NotEct, Ecn::Ect0][rng.below(2)];
                        l.arrive(now, &udp(n, rng.below(9) as u16, ecn, 1000));
                        n += 1;
                        assert!(l.check(), "{name} at packet {n}");
                    }
                }
            }
        }
        l.deliver(now + 60_000_000_000, |_| ());
        assert!(l.check());
        assert_eq!(l.arena.used(), 0);
    }

    /// Packets due every 1 ms are handed over 0, 200, 50 and 50 µs late: gaps are 200, 150 and 0 µs
    /// off, and 24 000 bits take 3.05 ms.
    #[test]
    fn lateness_is_in_the_gaps_and_not_in_the_rate() {
        let mut l = link(Rate::from_mbit(8), Duration::ZERO, "droptail");
        (0..4).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
        for now in [1_000_000, 2_200_000, 3_050_000, 4_050_000] {
            assert_eq!(out(&mut l, now).len(), 1);
        }
        let pace = l.pace();
        assert_eq!(pace.packets(), 4);
        assert!((pace.bits_per_second().unwrap() - 24_000.0 / 3.05e-3).abs() < 1e-3);
        let near = |q, ns: f64| (pace.gaps().quantile(q) as f64 / ns - 1.0).abs() < 1.0 / 31.0;
        assert!(near(0.5, 150_000.0) && near(1.0, 200_000.0));
    }

    /// 8 packets of 1 ms each are queued and one is being sent as the rate doubles: that one keeps
    /// its time, the others take 0.5 ms.
    #[test]
    fn a_new_rate_holds_from_the_next_packet_on() {
        let mut s = spec(Rate::from_mbit(8), Duration::ZERO, "droptail");
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        (0..9).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
        s.rate = Rate::from_mbit(16);
        change(&mut l, 500_000, &s).unwrap();
        assert_eq!(out(&mut l, 999_999), []);
        assert_eq!(out(&mut l, 1_000_000).len(), 1);
        assert_eq!(out(&mut l, 4_999_999).len(), 7);
        assert_eq!(out(&mut l, 5_000_000).len(), 1);
        // The queue discipline is the same one: nothing was replaced.
        assert_eq!(l.changes, 0);
    }

    #[test]
    fn a_change_to_what_cannot_be_changes_nothing() {
        let s = spec(Rate::from_mbit(8), Duration::ZERO, "droptail");
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        for wrong in [
            Spec { aqm: "bleu".into(), ..s.clone() },
            Spec { delay: Duration::from_secs(61), ..s.clone() },
        ] {
            assert!(change(&mut l, 0, &wrong).is_err());
            assert_eq!(l.spec(), &s);
        }
        // Only so many queues that still hold packets may wait for their turn.
        l.arrive(0, &udp(0, 1, Ecn::NotEct, 1000));
        let changed = (0..20).filter(|&n| {
            l.arrive(1, &udp(n, 1, Ecn::NotEct, 1000));
            let limit = Limit::packets(30 + u64::from(n)).unwrap();
            change(&mut l, 1, &Spec { limit, ..s.clone() }).is_ok()
        });
        assert_eq!(changed.count(), MOST_REPLACED);
        assert!(l.check());
    }

    /// Random traffic through every algorithm, and a caller that comes at random times: after every
    /// call each packet is accounted for, and the memory is as it was reserved.
    #[test]
    fn packets_are_conserved_under_every_algorithm() {
        for (i, entry) in CATALOG.iter().enumerate() {
            let mut l = link(Rate::from_mbit(10), Duration::from_millis(3), entry.name);
            let room = l.wire.capacity();
            let mut rng = Rng::new(3, i as u64);
            let mut now = 0;
            for n in 0..20_000 {
                now += rng.below([100_000, 2_000_000][n as usize / 5_000 % 2]) as u64;
                l.deliver(now, |_| ());
                assert!(l.check(), "{} after {n} packets", entry.name);
                let ecn = [Ecn::NotEct, Ecn::Ect0][rng.below(2)];
                let len = [20, 28, 40, 1000, 1500][rng.below(5)];
                l.arrive(now, &udp(n, rng.below(20) as u16, ecn, len));
                assert!(l.check(), "{} at packet {n}", entry.name);
            }
            l.deliver(now + 10_000_000_000, |_| ());
            assert!(l.check());
            assert_eq!((l.arena.used(), l.wire.capacity()), (0, room), "{}", entry.name);
            assert!(l.counters().all_dropped().packets > 0, "{} was not tried", entry.name);
        }
    }
}
