//! Naive models, written from the papers in the simplest possible way (a `Vec` of packets, one step
//! after the other, no closed forms), run side by side with the library on random traffic: each
//! decision and each signal is equal at every step.
//!
//! Both sides draw from equal streams of random numbers. Signals are compared within 10⁻⁹, because
//! the models step where the library computes powers.

use aqm::{AnyQdisc, Cause, Cx, Ecn, Env, FlowKey, Instant, Limit, Meta, Outlet, Qdisc, Rate, Rng};
use proptest::prelude::*;

mod avq;
mod choke;
mod codel;
mod csfq;
mod fair;
mod fred;
mod pi;
mod pie;
mod red_pd;
mod red_penalty_box;
mod rem;
mod sfb;
mod sred;

/// A link of 8 Mbit/s: a mean packet of 1000 bytes takes 1 ms.
const PACKET_NS: f64 = 1e6;
const MEAN: f64 = 1000.0;

#[derive(Clone, Copy, Debug)]
struct Packet {
    id: u32,
    flow: u64,
    len: u32,
    ect: bool,
    marked: bool,
    arrived: u64,
}

/// What a model says to an arriving packet.
enum Verdict {
    Admit,
    /// Mark it if it can be marked, else drop it.
    Signal,
    /// The same for the packet at the head, if there is one.
    SignalHead,
    Drop,
    /// The same, as a penalty.
    Penalise,
    /// Drop it and the packets at these places in the queue, as a penalty.
    DropWith(Vec<usize>),
}

/// An algorithm of a paper. `q` is the queue without the packet in question.
trait Model {
    /// The queue is built.
    fn start(&mut self, _: &mut Rng) {}
    fn arrive(&mut self, _: u64, _: &Packet, _q: &[Packet], _fits: bool, _: &mut Rng) -> Verdict {
        Verdict::Admit
    }
    /// Who goes when there is no room: a place in the queue, or `q.len()` for the arriving packet.
    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        q.len()
    }
    fn admitted(&mut self) {}
    /// A packet was marked, or dropped other than as [`Verdict::Penalise`].
    fn heard(&mut self, _: &Packet) {}
    fn sent(&mut self, _delay: u64) {}
    /// Takes the packet to send out of the queue; none: all are gone.
    fn send(&mut self, now: u64, q: &mut Vec<Packet>, _: &mut Vec<Event>) -> Option<Packet> {
        let packet = (!q.is_empty()).then(|| q.remove(0))?;
        self.sent(now - packet.arrived);
        Some(packet)
    }
    fn idle(&mut self, _now: u64, _: &mut Rng) {}
    /// Time has come to `now`.
    fn clock(&mut self, _now: u64, _q: &[Packet]) {}
    fn signals(&self, _now: u64) -> Vec<f64> {
        Vec::new()
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Event {
    Dropped(u32, Cause),
    Marked(u32),
    Sent(u32, bool),
    Idle,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Room {
    Packets(u64),
    Bytes(u64),
}

/// A queue of a model.
struct Naive<M> {
    model: M,
    room: Room,
    q: Vec<Packet>,
    events: Vec<Event>,
}

impl<M: Model> Naive<M> {
    fn fits(&self, len: u32) -> bool {
        match self.room {
            Room::Packets(n) => (self.q.len() as u64) < n,
            Room::Bytes(n) => {
                self.q.iter().map(|p| u64::from(p.len)).sum::<u64>() + u64::from(len) <= n
            }
        }
    }

    fn arrive(&mut self, now: u64, mut packet: Packet, rng: &mut Rng) {
        packet.arrived = now;
        let fits = self.fits(packet.len);
        let mut mark = false;
        match self.model.arrive(now, &packet, &self.q, fits, rng) {
            Verdict::Admit => {}
            Verdict::SignalHead if !self.q.is_empty() => {
                if self.q[0].ect {
                    self.q[0].marked = true;
                    self.marked(self.q[0]);
                } else {
                    let head = self.q.remove(0);
                    self.dropped(head, Cause::Early);
                }
            }
            Verdict::Signal | Verdict::SignalHead if packet.ect => mark = true,
            Verdict::DropWith(mut places) => {
                places.sort_unstable();
                places.dedup();
                for place in places.into_iter().rev() {
                    let victim = self.q.remove(place);
                    self.dropped(victim, Cause::Penalty);
                }
                return self.dropped(packet, Cause::Penalty);
            }
            Verdict::Penalise => {
                return self.events.push(Event::Dropped(packet.id, Cause::Penalty));
            }
            _ => return self.dropped(packet, Cause::Early),
        }
        if matches!(self.room, Room::Bytes(n) if u64::from(packet.len) > n) {
            return self.dropped(packet, Cause::Overflow);
        }
        while !self.fits(packet.len) {
            let victim = self.model.victim(&self.q, rng);
            if victim == self.q.len() {
                return self.dropped(packet, Cause::Overflow);
            }
            let victim = self.q.remove(victim);
            self.dropped(victim, Cause::Overflow);
        }
        if mark {
            packet.marked = true;
            self.marked(packet);
        }
        self.q.push(packet);
        self.model.admitted();
    }

    fn dropped(&mut self, packet: Packet, cause: Cause) {
        self.model.heard(&packet);
        self.events.push(Event::Dropped(packet.id, cause));
    }

    fn marked(&mut self, packet: Packet) {
        self.model.heard(&packet);
        self.events.push(Event::Marked(packet.id));
    }

    fn depart(&mut self, now: u64, rng: &mut Rng) {
        match self.model.send(now, &mut self.q, &mut self.events) {
            Some(p) => self.events.push(Event::Sent(p.id, p.marked)),
            None => {
                self.model.idle(now, rng);
                self.events.push(Event::Idle);
            }
        }
    }
}

/// What is compared with the library: a queue of a model, or several.
trait Side {
    fn start(&mut self, _: &mut Rng);
    fn arrive(&mut self, _now: u64, _: Packet, _: &mut Rng);
    fn depart(&mut self, _now: u64, _: &mut Rng);
    /// Time has come to `now`.
    fn clock(&mut self, _now: u64, _: &mut Rng);
    /// What happened since the last question.
    fn events(&mut self) -> Vec<Event>;
    fn signals(&self, _now: u64) -> Vec<f64>;
}

impl<M: Model> Side for Naive<M> {
    fn start(&mut self, rng: &mut Rng) {
        self.model.start(rng);
    }
    fn arrive(&mut self, now: u64, packet: Packet, rng: &mut Rng) {
        self.arrive(now, packet, rng);
    }
    fn depart(&mut self, now: u64, rng: &mut Rng) {
        self.depart(now, rng);
    }
    fn clock(&mut self, now: u64, _: &mut Rng) {
        self.model.clock(now, &self.q);
    }
    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        self.model.signals(now)
    }
}

// ---------------------------------------------------------------------------------------------
// The models

struct DropTail;
impl Model for DropTail {}

struct DropFront;
impl Model for DropFront {
    fn victim(&mut self, _: &[Packet], _: &mut Rng) -> usize {
        0
    }
}

struct RandomDrop;
impl Model for RandomDrop {
    fn victim(&mut self, q: &[Packet], rng: &mut Rng) -> usize {
        rng.below(q.len() + 1)
    }
}

#[derive(Clone, Debug)]
struct BlueSettings {
    freeze_time: u64,
    up: f64,
    down: f64,
    threshold: Option<u64>,
    ecn: bool,
    front: bool,
    at_head: bool,
    bytes: bool,
    continuous: bool,
    jitter: f64,
    update: &'static str,
    grow: f64,
    shrink: f64,
    auto: bool,
    weight: f64,
    legacy: bool,
}

/// 000 Fig. 3.
struct Blue {
    c: BlueSettings,
    p: f64,
    last_update: Option<u64>,
    freeze: u64,
    delay: f64,
    idle: bool,
}

impl Blue {
    fn new(c: BlueSettings) -> Self {
        Self { p: 0.0, last_update: None, freeze: c.freeze_time, delay: 0.0, idle: false, c }
    }

    fn may_change(&self, now: u64) -> bool {
        self.last_update.is_none_or(|last| now - last > self.freeze)
    }

    fn next_freeze(&mut self, rng: &mut Rng) {
        self.freeze = self.c.freeze_time;
        if self.c.auto {
            self.freeze += self.delay.floor() as u64;
        }
        if self.c.jitter > 0.0 {
            let factor = 1.0 - self.c.jitter + 2.0 * self.c.jitter * rng.uniform();
            self.freeze = (self.freeze as f64 * factor).round() as u64;
        }
    }

    fn overflow(&mut self, now: u64, rng: &mut Rng) {
        if self.may_change(now) {
            self.p = match self.c.update {
                "additive" => self.p + self.c.up,
                "multiplicative" if self.p * self.c.grow < self.c.up => self.c.up,
                "multiplicative" => self.p * self.c.grow,
                _ => self.p * self.c.grow + self.c.up,
            };
            if self.p > 1.0 {
                self.p = 1.0;
            }
            self.last_update = Some(now);
            self.next_freeze(rng);
        }
    }

    fn decrement(c: &BlueSettings, p: f64) -> f64 {
        let p = match c.update {
            "additive" => p - c.down,
            "multiplicative" if p * c.shrink < c.down => 0.0,
            "multiplicative" => p * c.shrink,
            _ => p * c.shrink - c.down,
        };
        if p < 0.0 { 0.0 } else { p }
    }

    /// The clock of an idle link, one decrement after the other: p, its last update, and whether
    /// there was any.
    fn decayed(&self, now: u64) -> (f64, Option<u64>, bool) {
        let (mut p, mut last, mut any) = (self.p, self.last_update, false);
        if self.c.continuous && self.idle {
            let freeze = self.freeze.max(1);
            while let Some(t) = last.filter(|t| now - t > freeze) {
                p = Self::decrement(&self.c, p);
                last = Some(t + freeze);
                any = true;
            }
        }
        (p, last, any)
    }
}

impl Model for Blue {
    fn arrive(
        &mut self,
        now: u64,
        pkt: &Packet,
        q: &[Packet],
        fits: bool,
        rng: &mut Rng,
    ) -> Verdict {
        let (p, last, any) = self.decayed(now);
        (self.p, self.last_update) = (p, last);
        if any {
            self.next_freeze(rng);
        }
        let length =
            if self.c.bytes { q.iter().map(|p| u64::from(p.len)).sum() } else { q.len() as u64 };
        if !fits || self.c.threshold.is_some_and(|l| length > l) {
            self.overflow(now, rng);
        }
        if !fits {
            return Verdict::Admit;
        }
        let p = if self.c.bytes { self.p * f64::from(pkt.len) / MEAN } else { self.p };
        if rng.uniform() >= p {
            return Verdict::Admit;
        }
        if self.c.legacy {
            self.overflow(now, rng);
        }
        match (self.c.ecn, self.c.at_head) {
            (false, _) => Verdict::Drop,
            (true, false) => Verdict::Signal,
            (true, true) => Verdict::SignalHead,
        }
    }
    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        if self.c.front { 0 } else { q.len() }
    }
    fn admitted(&mut self) {
        self.idle = false;
    }
    fn sent(&mut self, delay: u64) {
        self.delay = (1.0 - self.c.weight) * self.delay + self.c.weight * delay as f64;
    }
    fn idle(&mut self, now: u64, rng: &mut Rng) {
        if self.c.continuous && self.idle {
            return; // the clock runs
        }
        self.idle = true;
        if self.may_change(now) {
            self.p = Self::decrement(&self.c, self.p);
            self.last_update = Some(now);
            self.next_freeze(rng);
        }
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        vec![self.decayed(now).0]
    }
}

#[derive(Clone, Debug)]
struct RedSettings {
    /// In packets or bytes.
    min_th: u64,
    max_th: u64,
    max_p: f64,
    w_q: f64,
    gentle: bool,
    bytes: bool,
    ecn: bool,
    drop_above: bool,
    spacing: &'static str,
    lengths: &'static str,
    ns2: bool,
}

/// FJ93 Fig. 2.
struct Red {
    c: RedSettings,
    max_p: f64,
    avg: f64,
    count: f64,
    idle_since: Option<u64>,
    /// Nobody has met avg ≥ min_th since it was last below (ns-2).
    crossing: bool,
}

impl Red {
    fn new(c: RedSettings) -> Self {
        Self { max_p: c.max_p, c, avg: 0.0, count: -1.0, idle_since: Some(0), crossing: true }
    }

    fn aged(&self, now: u64) -> f64 {
        match self.idle_since {
            Some(q_time) => {
                let m = (now - q_time) as f64 / PACKET_NS;
                (1.0 - self.c.w_q).powf(m) * self.avg
            }
            None => self.avg,
        }
    }

    fn update_average(&mut self, now: u64, q: &[Packet]) {
        if self.idle_since.is_some() {
            self.avg = self.aged(now);
            self.idle_since = Some(now);
        } else {
            let length = if self.c.bytes {
                q.iter().map(|p| f64::from(p.len)).sum()
            } else {
                q.len() as f64
            };
            self.avg = (1.0 - self.c.w_q) * self.avg + self.c.w_q * length;
        }
    }

    fn p_b(&self, avg: f64) -> f64 {
        let (min_th, max_th) = (self.c.min_th as f64, self.c.max_th as f64);
        if avg < min_th {
            0.0
        } else if avg < max_th {
            self.max_p * (avg - min_th) / (max_th - min_th)
        } else if self.c.gentle && avg < 2.0 * max_th {
            self.max_p + (1.0 - self.max_p) * (avg - max_th) / max_th
        } else {
            1.0
        }
    }

    fn p_a(&self, p_b: f64, count: f64) -> f64 {
        let p = match self.c.spacing {
            "geometric" => p_b,
            "wait" if count * p_b < 1.0 => 0.0,
            "wait" if count * p_b < 2.0 => p_b / (2.0 - count * p_b),
            "wait" => 1.0,
            _ if count * p_b < 1.0 => p_b / (1.0 - count * p_b),
            _ => 1.0,
        };
        if p > 1.0 { 1.0 } else { p }
    }

    fn signalled(&mut self) {
        self.count = if self.c.spacing == "uniform-exact" { -1.0 } else { 0.0 };
    }

    fn decide(&mut self, pkt: &Packet, q: &[Packet], rng: &mut Rng) -> Verdict {
        let (min_th, max_th) = (self.c.min_th as f64, self.c.max_th as f64);
        let top = if self.c.gentle { 2.0 * max_th } else { max_th };
        if self.avg < min_th {
            self.count = -1.0;
            self.crossing = true;
            Verdict::Admit
        } else if self.c.ns2 && q.len() <= 1 {
            self.count = 1.0;
            self.crossing = true;
            Verdict::Admit
        } else if self.c.ns2 && self.crossing {
            self.count = 1.0;
            self.crossing = false;
            Verdict::Admit
        } else if self.avg < top {
            let p_b = self.p_b(self.avg);
            let length = f64::from(pkt.len) / MEAN;
            let p = match self.c.lengths {
                "chance-and-count" if self.c.bytes => {
                    let first = self.count == -1.0;
                    if self.c.spacing == "uniform-exact" {
                        let unsignalled = if first { 0.0 } else { self.count };
                        self.count = unsignalled + length;
                        length * self.p_a(p_b, unsignalled)
                    } else {
                        self.count = if first { 0.0 } else { self.count + length };
                        length * self.p_a(p_b, self.count)
                    }
                }
                "chance" if self.c.bytes => {
                    self.count += 1.0;
                    self.p_a((p_b * length).min(1.0), self.count)
                }
                _ => {
                    self.count += 1.0;
                    self.p_a(p_b, self.count)
                }
            };
            if rng.uniform() >= p {
                return Verdict::Admit;
            }
            self.signalled();
            if self.c.ecn { Verdict::Signal } else { Verdict::Drop }
        } else {
            self.signalled();
            if self.c.ecn && !self.c.drop_above { Verdict::Signal } else { Verdict::Drop }
        }
    }
}

impl Model for Red {
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        self.update_average(now, q);
        self.decide(pkt, q, rng)
    }
    fn admitted(&mut self) {
        self.idle_since = None;
    }
    fn idle(&mut self, now: u64, _: &mut Rng) {
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        let avg = self.aged(now);
        let p_b = self.p_b(avg);
        let count = if avg < self.c.min_th as f64 { 0.0 } else { self.count + 1.0 };
        vec![avg, p_b, self.p_a(p_b, count), self.max_p]
    }
}

/// Feng 1999.
struct AredFeng {
    red: Red,
    alpha: f64,
    beta: f64,
    status: &'static str,
}

impl Model for AredFeng {
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        self.red.update_average(now, q);
        let (avg, min_th, max_th) =
            (self.red.avg, self.red.c.min_th as f64, self.red.c.max_th as f64);
        if min_th < avg && avg < max_th {
            self.status = "between";
        }
        if avg < min_th && self.status != "below" {
            self.status = "below";
            self.red.max_p /= self.alpha;
        }
        if avg > max_th && self.status != "above" {
            self.status = "above";
            self.red.max_p *= self.beta;
        }
        self.red.max_p = self.red.max_p.clamp(0.01, 1.0);
        self.red.decide(pkt, q, rng)
    }
    fn admitted(&mut self) {
        self.red.admitted();
    }
    fn idle(&mut self, now: u64, rng: &mut Rng) {
        self.red.idle(now, rng);
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        self.red.signals(now)
    }
}

/// FGS01 Fig. 1.
struct Ared {
    red: Red,
    interval: u64,
    /// Intervals that have ended.
    ended: u64,
}

impl Model for Ared {
    fn clock(&mut self, now: u64, _: &[Packet]) {
        while (self.ended + 1) * self.interval <= now {
            self.ended += 1;
            let avg = self.red.aged(self.ended * self.interval);
            let (min_th, max_th) = (self.red.c.min_th as f64, self.red.c.max_th as f64);
            let max_p = &mut self.red.max_p;
            if avg > min_th + 0.6 * (max_th - min_th) && *max_p <= 0.5 {
                *max_p += f64::min(0.01, *max_p / 4.0);
            } else if avg < min_th + 0.4 * (max_th - min_th) && *max_p >= 0.01 {
                *max_p *= 0.9;
            }
            *max_p = max_p.clamp(0.01, 0.5);
        }
    }
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], f: bool, rng: &mut Rng) -> Verdict {
        self.red.arrive(now, pkt, q, f, rng)
    }
    fn admitted(&mut self) {
        self.red.admitted();
    }
    fn idle(&mut self, now: u64, rng: &mut Rng) {
        self.red.idle(now, rng);
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        self.red.signals(now)
    }
}

// ---------------------------------------------------------------------------------------------
// Side by side

#[derive(Clone, Copy, Debug)]
enum Op {
    Arrive { len: u32, ect: bool, flow: u64 },
    Depart,
    Wait(u64),
}

/// Records what the library did, in the model's terms.
#[derive(Default)]
struct Log(Vec<Event>);

impl Outlet<u32> for Log {
    fn dropped(&mut self, _: &Meta, id: u32, cause: Cause, _: Instant) {
        self.0.push(Event::Dropped(id, cause));
    }
    fn marked(&mut self, _: &Meta, id: &u32, _: Cause, _: Instant) {
        self.0.push(Event::Marked(*id));
    }
}

fn pairs<'a>(settings: &'a [(&str, String)]) -> Vec<(&'a str, &'a str)> {
    settings.iter().map(|(name, text)| (*name, &text[..])).collect()
}

fn compare<M: Model>(
    name: &str,
    settings: &[(&str, String)],
    room: Room,
    ops: &[Op],
    model: M,
) -> Result<(), TestCaseError> {
    let naive = Naive { model, room, q: Vec::new(), events: Vec::new() };
    compare_with(name, settings, room, ops, naive)
}

fn compare_with(
    name: &str,
    settings: &[(&str, String)],
    room: Room,
    ops: &[Op],
    naive: impl Side,
) -> Result<(), TestCaseError> {
    compare_behind(None, name, settings, room, ops, naive)
}

/// The same for an algorithm behind a filter.
fn compare_behind(
    filter: Option<(&str, &[(&str, String)])>,
    name: &str,
    settings: &[(&str, String)],
    room: Room,
    ops: &[Op],
    mut naive: impl Side,
) -> Result<(), TestCaseError> {
    let limit = match room {
        Room::Packets(n) => Limit::packets(n),
        Room::Bytes(n) => Limit::bytes(n),
    };
    let env = Env {
        now: Instant::ZERO,
        limit: limit.unwrap(),
        rate: Rate::from_mbit(8),
        mean_packet: MEAN as u32,
    };
    let settings = pairs(settings);
    let (mut ours, mut theirs) = (Rng::new(5, 1), Rng::new(5, 1));
    let mut q = AnyQdisc::<u32>::build(name, &settings, &env, &mut ours).unwrap();
    if let Some((filter, settings)) = filter {
        q = q.filtered(filter, &pairs(settings), &env, &mut ours).unwrap();
    }
    naive.start(&mut theirs);
    let (mut now, mut id, mut log) = (0, 0, Log::default());
    for (step, op) in ops.iter().enumerate() {
        let at = Instant::from_nanos(now);
        match *op {
            Op::Wait(ns) => {
                now += ns;
                while let Some(due) = q.poll_at().filter(|t| t.as_nanos() <= now) {
                    q.on_timer(&mut Cx { now: due, rng: &mut ours }, &mut log);
                }
                naive.clock(now, &mut theirs);
            }
            Op::Arrive { len, ect, flow } => {
                let ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
                let meta = Meta { len, ecn, flow: FlowKey(flow), arrived: at };
                q.enqueue(meta, id, &mut Cx { now: at, rng: &mut ours }, &mut log);
                let packet = Packet { id, flow, len, ect, marked: false, arrived: 0 };
                naive.arrive(now, packet, &mut theirs);
                id += 1;
            }
            Op::Depart => {
                let sent = q.dequeue(&mut Cx { now: at, rng: &mut ours }, &mut log);
                log.0.push(match sent {
                    Some((meta, id)) => Event::Sent(id, meta.ecn == Ecn::Ce),
                    None => Event::Idle,
                });
                naive.depart(now, &mut theirs);
            }
        }
        prop_assert_eq!(&log.0, &naive.events(), "step {}: {:?}", step, op);
        log.0.clear();
        let mut signals = Vec::new();
        q.observe(Instant::from_nanos(now), &mut |name, value| signals.push((name, value)));
        let expected = naive.signals(now);
        prop_assert_eq!(signals.len(), expected.len());
        for ((name, value), expected) in signals.into_iter().zip(expected) {
            let close = (value - expected).abs() <= 1e-9 * expected.abs().max(1.0);
            prop_assert!(close, "step {step}: {name} is {value}, the model's {expected}");
        }
    }
    prop_assert_eq!(ours.bits(), theirs.bits(), "as many random numbers were drawn");
    Ok(())
}

// ---------------------------------------------------------------------------------------------
// What traffic and settings are tried

fn operation() -> impl Strategy<Value = Op> {
    let len = prop::sample::select(vec![40u32, 576, 1000, 1500, 3000]);
    prop_oneof![
        8 => (len, any::<bool>(), 0..4u64)
            .prop_map(|(len, ect, flow)| Op::Arrive { len, ect, flow }),
        5 => Just(Op::Depart),
        3 => (0..2_000_000u64).prop_map(Op::Wait),
        1 => prop::sample::select(vec![0, 1, 1_000_000, 5_000_000, 10_000_000]).prop_map(Op::Wait),
        1 => (0..300_000_000u64).prop_map(Op::Wait),
    ]
}

fn traffic() -> impl Strategy<Value = Vec<Op>> {
    // Runs of the same operation, so that queues fill and links go idle.
    prop::collection::vec((operation(), 1..6usize), 1..120)
        .prop_map(|runs| runs.into_iter().flat_map(|(op, n)| std::iter::repeat_n(op, n)).collect())
}

fn room() -> impl Strategy<Value = Room> {
    prop_oneof![
        4 => (1..15u64).prop_map(Room::Packets),
        2 => (1_000..12_000u64).prop_map(Room::Bytes),
        1 => (28..1_000u64).prop_map(Room::Bytes),
    ]
}

fn amount(n: u64, bytes: bool) -> String {
    if bytes { format!("{n}B") } else { format!("{n}p") }
}

fn pick(words: &[&'static str]) -> impl Strategy<Value = &'static str> + use<> {
    prop::sample::select(words.to_vec())
}

prop_compose! {
    fn blue()(
        (freeze_time, up, down) in (
            prop::sample::select(vec![1, 100, 1_000_000, 5_000_000, 100_000_000]),
            0.0..0.6f64,
            0.0..0.2f64,
        ),
        (threshold, ecn, front, at_head, bytes) in
            (prop::option::of(0..12u64), prop::bool::weighted(0.8), any::<bool>(), any::<bool>(), any::<bool>()),
        (continuous, jitter, auto, weight, legacy) in
            (any::<bool>(), prop::sample::select(vec![0.0, 0.0, 0.5, 1.0]), any::<bool>(), 0.0..1.0f64, any::<bool>()),
        (update, grow, shrink) in
            (pick(&["additive", "multiplicative", "mixed"]), 1.0..2.0f64, 0.5..1.0f64),
    ) -> BlueSettings {
        // A short freeze makes the model step through millions of decrements of an idle link.
        let freeze_time = if continuous { u64::max(freeze_time, 1_000_000) } else { freeze_time };
        let jitter = if continuous { jitter / 2.0 } else { jitter };
        let threshold = threshold.map(|l| if bytes { l * 700 } else { l });
        let at_head = at_head && ecn;
        BlueSettings {
            freeze_time, up, down, threshold, ecn, front, at_head, bytes, continuous, jitter, update,
            grow, shrink, auto, weight, legacy,
        }
    }
}

prop_compose! {
    fn red()(
        (min_th, room, max_p, w_q) in
            (0..6u64, 1..9u64, 0.0..=1.0f64, prop::sample::select(vec![0.002, 0.1, 0.5, 0.9, 1.0])),
        (gentle, bytes, ecn, drop_above, ns2) in
            (any::<bool>(), any::<bool>(), prop::bool::weighted(0.8), any::<bool>(), any::<bool>()),
        spacing in pick(&["uniform", "uniform-exact", "wait", "geometric"]),
        lengths in pick(&["chance", "chance-and-count", "average"]),
    ) -> RedSettings {
        let unit = if bytes { 900 } else { 1 };
        RedSettings {
            min_th: min_th * unit, max_th: (min_th + room) * unit, max_p, w_q, gentle, bytes, ecn,
            drop_above, spacing, lengths, ns2,
        }
    }
}

/// The settings that all of the RED family have.
fn red_settings(c: &RedSettings) -> Vec<(&'static str, String)> {
    vec![
        ("min_th", amount(c.min_th, c.bytes)),
        ("max_th", amount(c.max_th, c.bytes)),
        ("max_p", c.max_p.to_string()),
        ("w_q", c.w_q.to_string()),
        ("gentle", c.gentle.to_string()),
        ("mode", if c.bytes { "bytes" } else { "packets" }.into()),
        ("ecn", c.ecn.to_string()),
        ("above_max", if c.drop_above { "drop" } else { "mark" }.into()),
        ("spacing", c.spacing.into()),
        ("lengths", c.lengths.into()),
    ]
}

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    // PROPTEST_CASES asks for more.
    ProptestConfig { cases: default.cases.max(400), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn droptail_is_its_model(room in room(), ops in traffic()) {
        compare("droptail", &[], room, &ops, DropTail)?;
    }

    #[test]
    fn drop_front_is_its_model(room in room(), ops in traffic()) {
        compare("drop-front", &[], room, &ops, DropFront)?;
    }

    #[test]
    fn random_drop_is_its_model(room in room(), ops in traffic()) {
        compare("random-drop", &[], room, &ops, RandomDrop)?;
    }

    #[test]
    fn blue_is_its_model(c in blue(), room in room(), ops in traffic()) {
        let settings = [
            ("freeze_time", format!("{}ns", c.freeze_time)),
            ("increment", c.up.to_string()),
            ("decrement", c.down.to_string()),
            ("threshold", c.threshold.map_or("none".into(), |l| amount(l, c.bytes))),
            ("ecn", c.ecn.to_string()),
            ("drop", if c.front { "front" } else { "tail" }.into()),
            ("signal", if c.at_head { "head" } else { "arriving" }.into()),
            ("mode", if c.bytes { "bytes" } else { "packets" }.into()),
            ("idle_decay", if c.continuous { "continuous" } else { "event" }.into()),
            ("freeze_jitter", c.jitter.to_string()),
            ("update", c.update.into()),
            ("increase_factor", c.grow.to_string()),
            ("decrease_factor", c.shrink.to_string()),
            ("freeze", if c.auto { "auto" } else { "fixed" }.into()),
            ("delay_weight", c.weight.to_string()),
            ("legacy_mark_increment", c.legacy.to_string()),
        ];
        compare("blue", &settings, room, &ops, Blue::new(c))?;
    }

    #[test]
    fn red_is_its_model(c in red(), room in room(), ops in traffic()) {
        let mut settings = red_settings(&c);
        settings.push(("ns2_rules", c.ns2.to_string()));
        compare("red", &settings, room, &ops, Red::new(c))?;
    }

    #[test]
    fn ared_feng_is_its_model(
        c in red(), alpha in 1.0..4.0f64, beta in 1.0..4.0f64, room in room(), ops in traffic(),
    ) {
        let c = RedSettings { max_p: c.max_p.max(0.01), ns2: false, ..c };
        let mut settings = red_settings(&c);
        settings.extend([("alpha", alpha.to_string()), ("beta", beta.to_string())]);
        let model = AredFeng { red: Red::new(c), alpha, beta, status: "below" };
        compare("ared-feng", &settings, room, &ops, model)?;
    }

    #[test]
    fn ared_is_its_model(c in red(), ms in 1..600u64, room in room(), ops in traffic()) {
        let c = RedSettings { max_p: c.max_p.clamp(0.01, 0.5), ns2: false, ..c };
        let mut settings = red_settings(&c);
        settings.push(("interval", format!("{ms}ms")));
        let model = Ared { red: Red::new(c), interval: ms * 1_000_000, ended: 0 };
        compare("ared", &settings, room, &ops, model)?;
    }
}
