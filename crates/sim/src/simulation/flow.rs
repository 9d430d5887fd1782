//! A flow in the event list.

use link::NEVER;

use crate::network::Network;
use crate::transport::{Ends, FlowSetup, Seat};

/// A flow: both its ends and its place.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Flow {
    pub(super) ends: Ends,
    pub(super) seat: Seat,
}

const _: () = assert!(size_of::<Flow>() <= 256, "an active connection takes at most 256 bytes");

impl Flow {
    /// A flow that is woken at `start` (ns).
    pub(super) fn new(ends: Ends, setup: &FlowSetup, start: u64) -> Self {
        let seat = Seat {
            listed: start,
            app_at: start,
            ack_at: NEVER,
            send_at: NEVER,
            out: setup.out,
            back: setup.back,
            group: setup.group,
            connection: 0,
        };
        Self { ends, seat }
    }

    /// The time of its next event, ns.
    #[inline]
    pub(super) fn next_event(&self) -> u64 {
        self.fixed().min(self.ends.deadline())
    }

    /// The time of its next event that does not move on, ns.
    #[inline(always)]
    fn fixed(&self) -> u64 {
        self.seat.app_at.min(self.seat.ack_at).min(self.seat.send_at)
    }

    /// Makes sure that the list wakes this flow, number `i`, no later than its next event.
    #[inline(never)]
    pub(super) fn list(&mut self, i: usize, network: &mut Network) {
        if self.next_event() < self.seat.listed {
            self.list_anew(i, network);
        }
    }

    /// Lists the next event of this flow, number `i`.
    #[inline(always)]
    pub(super) fn list_anew(&mut self, i: usize, network: &mut Network) {
        let (fixed, timer) = (self.fixed(), self.ends.deadline());
        // A transport's timer moves on with each acknowledgement.
        if timer < fixed {
            self.seat.listed = timer;
            network.set_moving_timer(i, timer);
        } else {
            self.seat.listed = fixed;
            network.set_timer(i, fixed);
        }
    }
}
