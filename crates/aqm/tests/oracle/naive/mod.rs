//! The queue of a naive model, and the models that are also run on what arrives in the simulator
//! (`crates/sim/tests/naive.rs`).

use aqm::{Cause, Rng};

pub mod blue;
pub mod sfb;

/// Of packets, bytes.
pub const MEAN: f64 = 1000.0;

#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub id: u32,
    pub flow: u64,
    pub len: u32,
    pub ect: bool,
    /// ECT(1).
    pub l4s: bool,
    pub marked: bool,
    pub arrived: u64,
}

/// What a model says to an arriving packet.
pub enum Verdict {
    Admit,
    /// Mark it if it can be marked, else drop it.
    Signal,
    /// The same for the packet at the head, if there is one.
    SignalHead,
    Drop,
    /// The same, as a penalty.
    Penalise,
    /// Drop it, for a rate that all flows share.
    Police,
    /// Drop it and the packets at these places in the queue, as a penalty.
    DropWith(Vec<usize>),
}

/// An algorithm of a paper. `q` is the queue without the packet in question.
pub trait Model {
    /// The queue is built.
    fn start(&mut self, _: &mut Rng) {}
    fn arrive(&mut self, _: u64, _: &Packet, _q: &[Packet], _fits: bool, _: &mut Rng) -> Verdict {
        Verdict::Admit
    }
    /// Who goes when there is no room: a place in the queue, or `q.len()` for the arriving packet.
    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        q.len()
    }
    /// Of many queues its is the longest, and has to drop a packet that is queued.
    fn gave_way(&mut self) {}
    /// So many bytes are in other queues, and count as its own.
    fn others(&mut self, _bytes: u64, _stale: bool) {}
    fn admitted(&mut self) {}
    /// A packet was marked, or dropped other than as [`Verdict::Penalise`].
    fn heard(&mut self, _: &Packet) {}
    fn sent(&mut self, _delay: u64) {}
    /// Takes the packet to send out of the queue; none: all are gone.
    fn send(
        &mut self,
        now: u64,
        q: &mut Vec<Packet>,
        _: &mut Vec<Event>,
        _: &mut Rng,
    ) -> Option<Packet> {
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
    /// What decides about the next packet beside the signals, if the model tells it.
    fn more(&self) -> Vec<f64> {
        Vec::new()
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    Dropped(u32, Cause),
    Marked(u32),
    Sent(u32, bool),
    Idle,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Room {
    Packets(u64),
    Bytes(u64),
}

/// A queue of a model.
pub struct Naive<M> {
    pub model: M,
    pub room: Room,
    pub q: Vec<Packet>,
    pub events: Vec<Event>,
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

    pub fn arrive(&mut self, now: u64, mut packet: Packet, rng: &mut Rng) {
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
            Verdict::Police => {
                return self.events.push(Event::Dropped(packet.id, Cause::Policed));
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

    pub fn depart(&mut self, now: u64, rng: &mut Rng) {
        match self.model.send(now, &mut self.q, &mut self.events, rng) {
            Some(p) => self.events.push(Event::Sent(p.id, p.marked)),
            None => {
                self.model.idle(now, rng);
                self.events.push(Event::Idle);
            }
        }
    }
}
