//! The transmitter and the wire of a link, and where its packets are meanwhile.

use aqm::{Duration, Rate};
use link::{DecisionHash, NEVER, Transmitter};

use crate::event::{Flight, NO_LANE, Ring, source_in_key};
use crate::packet::{Packet, SHORTEST_PACKET};

/// Where a link's packets are until they come to its far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transit {
    /// In the event list: each arrival is an event.
    Events,
    /// With the link that merges this one with others, until it takes them: its place among merges.
    Merge(usize),
    /// On its own wire: a lazy link, which has to be caught up for its events.
    Own,
}

/// The transmitter and the wire of a link.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) transmitter: Transmitter,
    /// Whether there is a managed queue before it, or it impairs packets.
    pub(crate) managed: bool,
    /// The merge that it is, if it is one: its place among them.
    pub(crate) merge: Option<usize>,
    pub(crate) exit: Transit,
    /// What it is in the keys at the exit.
    pub(crate) source: u64,
    /// Where its last packet went there.
    pub(crate) lane: u8,
    /// Packets between the transmitter and the far end that are in no lane.
    pub(crate) wire: Ring<Flight>,
    /// A lazy link: what the event list holds for it, ns. It may be earlier than its next event.
    pub(crate) listed: u64,
    /// Over the packets whose path ends with this link.
    pub(crate) delivered: DecisionHash,
}

impl Line {
    pub(crate) fn new(rate: Rate, delay: Duration, managed: bool) -> Self {
        Self {
            transmitter: Transmitter::new(rate, delay),
            managed,
            merge: None,
            exit: Transit::Own,
            source: 0,
            lane: NO_LANE,
            wire: Ring::new(),
            listed: NEVER,
            delivered: DecisionHash::default(),
        }
    }

    /// Sets where packets are on the way to its far end, and its number there.
    pub(crate) fn leave_by(&mut self, exit: Transit, number: usize) {
        self.exit = exit;
        self.source = source_in_key(number);
        self.lane = if exit == Transit::Own { NO_LANE } else { 0 };
    }

    /// Whether it has work to do that is not in the event list.
    #[inline(always)]
    pub(crate) fn lazy(&self) -> bool {
        self.managed || self.merge.is_some()
    }

    /// How long the shortest packet takes to the far end at least, ns.
    pub(crate) fn soonest(&self) -> u64 {
        let (transmission, wire) = self.transmitter.alone(SHORTEST_PACKET.into());
        transmission + wire
    }

    /// Whether the shortest packet takes at least 1 ns, so that nothing comes out when it goes in.
    pub(crate) fn takes_time(&self) -> bool {
        self.transmitter.alone(SHORTEST_PACKET.into()).0 > 0
    }

    /// A packet that comes to `hop` next waits on the link's own wire. Returns whether it is the first
    /// there.
    #[inline]
    pub(crate) fn wait(&mut self, key: u64, packet: &Packet, hop: u32) -> bool {
        let first = self.wire.is_empty();
        self.wire.push().set(key, packet, hop);
        first
    }

    /// Takes the packet with this key off the link's own wire, if it is the first. Returns the key
    /// of the next.
    #[inline(always)]
    pub(crate) fn take(&mut self, key: u64, packet: &mut Packet) -> (bool, Option<u64>) {
        let flight = self.wire.front().filter(|flight| flight.key == key);
        let taken = flight.is_some();
        if let Some(flight) = flight {
            *packet = flight.packet;
            self.wire.drop_front();
        }
        (taken, self.wire.front().map(|flight| flight.key))
    }
}
