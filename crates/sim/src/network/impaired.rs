//! Wires that impair packets: each is an element of its own behind its link, so that links without
//! one have nothing to ask.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use link::{Impair, Impaired};

use super::line::Line;
use super::wires::Wires;
use crate::packet::Packet;

/// A wire that impairs packets, and those that are on it. The next to come out is on its line's wire,
/// where the event list finds it.
#[derive(Clone)]
pub(crate) struct ImpairedWire {
    impair: Impair,
    /// The link that it belongs to.
    pub(crate) of: usize,
    /// Place in the order and damage of the one on the line's wire.
    front: (u64, u64, bool),
    others: BinaryHeap<Reverse<Waiting>>,
    /// Packets that ever went in.
    put: u64,
    came_out: u64,
    before: Passed,
}

/// What came to a wire, and what became of it, in packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Passed {
    /// Went in.
    pub entered: u64,
    /// Came out, with copies and damaged ones.
    pub came_out: u64,
    /// Whatever else.
    pub impaired: Impaired,
}

/// Ordered by when it comes out, then by when it went in.
#[derive(Clone, Copy)]
struct Waiting {
    at: u64,
    number: u64,
    damaged: bool,
    packet: Packet,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl ImpairedWire {
    pub(crate) fn new(impair: Impair, of: usize) -> Self {
        Self {
            impair,
            of,
            front: (0, 0, false),
            others: BinaryHeap::new(),
            put: 0,
            came_out: 0,
            before: Passed::default(),
        }
    }

    /// A packet comes to it, link number `link`, at `now` (ns). Returns whether the first to come out
    /// is another one now, and when.
    pub(super) fn enter(
        &mut self,
        now: u64,
        packet: &Packet,
        link: usize,
        wires: &mut Wires,
    ) -> Option<u64> {
        let fate = self.impair.pass(now, packet.len.into());
        let mut first = None;
        for _ in 0..fate.copies {
            let number = self.put;
            self.put += 1;
            let mut new =
                Waiting { at: fate.at, number, damaged: fate.damage.is_some(), packet: *packet };
            new.packet.hop += 1;
            let line = &mut wires.lines[link];
            if let Some(flight) = line.wire.front() {
                let (at, number, damaged) = self.front;
                if at <= new.at {
                    self.others.push(Reverse(new));
                    continue;
                }
                self.others.push(Reverse(Waiting { at, number, damaged, packet: flight.packet }));
                line.wire.drop_front();
            }
            self.lay(&new, line, wires.events.links.key_of(new.at, link));
            first = Some(new.at);
        }
        first
    }

    /// Does what is due up to and including `until` (ns): what is damaged is discarded behind the
    /// wire, and the next to come out is made ready.
    pub(super) fn catch_up(&mut self, until: u64, link: usize, wires: &mut Wires) {
        while self.front.0 <= until && wires.lines[link].wire.len() == 1 {
            let line = &mut wires.lines[link];
            self.came_out += 1;
            let damaged = self.front.2;
            if damaged && let Some(flight) = line.wire.front() {
                line.delivered.delivery(self.front.0, flight.packet.flow, flight.packet.seq);
                line.wire.drop_front();
            }
            if let Some(Reverse(next)) = self.others.pop() {
                self.lay(&next, line, wires.events.links.key_of(next.at, link));
            }
            if !damaged {
                break;
            }
        }
    }

    fn lay(&mut self, next: &Waiting, line: &mut Line, key: u64) {
        self.front = (next.at, next.number, next.damaged);
        line.wire.push().set(key, &next.packet, next.packet.hop);
    }

    fn all(&self) -> Passed {
        let impaired = self.impair.count();
        Passed {
            entered: self.put + impaired.lost.packets - impaired.duplicated.packets,
            came_out: self.came_out,
            impaired,
        }
    }

    /// The wire, to change it.
    pub(super) fn wire(&mut self) -> &mut Impair {
        &mut self.impair
    }

    /// What happened in the window of measurement.
    pub(crate) fn passed(&self) -> Passed {
        let (all, before) = (self.all(), self.before);
        Passed {
            entered: all.entered - before.entered,
            came_out: all.came_out - before.came_out,
            impaired: all.impaired.since(&before.impaired),
        }
    }

    pub(crate) fn restart_measurement(&mut self) {
        self.before = self.all();
    }
}
