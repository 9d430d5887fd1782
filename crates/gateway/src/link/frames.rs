//! The bytes of the packets at a link, and the listener that learns their fate.

use aqm::{Backlog, Cause, Instant, Meta, Outlet};

use crate::link::arena::{Arena, Handle};
use crate::link::flows::Flows;
use crate::link::tins::{Event, Tins};
use crate::output::capture::{Capture, Fate, Stay};

/// Does to the memory what the queue did to the packet.
pub(super) struct Frames {
    pub(super) arena: Arena,
    pub(super) flows: Flows,
    pub(super) capture: Option<Capture>,
    /// Drops and marks.
    pub(super) tins: Tins,
}

impl Frames {
    pub(super) fn new(arena: Arena, tins: Tins) -> Self {
        Self { arena, flows: Flows::new(), capture: None, tins }
    }
}

impl Outlet<Handle> for Frames {
    fn dropped(&mut self, meta: &Meta, packet: Handle, cause: Cause, now: Instant) {
        self.flows.dropped(meta.flow);
        self.tins.count(meta, now, Event::Dropped);
        if let Some(capture) = &self.capture {
            let stay = stay(meta, now.as_nanos(), self.arena.found(packet.slot));
            let frame = self.arena.packet_mut(packet.slot);
            capture.packet(packet.seq, stay, frame, Fate::Dropped(cause));
        }
        self.arena.release(packet.slot);
    }

    fn marked(&mut self, meta: &Meta, packet: &Handle, cause: Cause, now: Instant) {
        self.flows.marked(meta.flow);
        self.tins.count(meta, now, Event::Marked);
        self.arena.mark(packet.slot, cause);
    }
}

/// A packet's time here until `until` (ns).
pub(super) fn stay(meta: &Meta, until: u64, found: Backlog) -> Stay {
    Stay { from: meta.arrived.as_nanos(), until, found }
}
