//! What is lost and what may be, known without a look through the window. Packets stand in the order in
//! which they were sent; two times pass over them, that of the newest that has arrived and the one before
//! which all is lost.
//!
//! ```text
//! flight:  sent after the newest that has arrived
//! doubt:   sent before it, but not so long ago
//! lost:    so long ago
//! ```
//!
//! What has arrived or was sent again stays in its line until a time passes over it, and then is nothing.

use std::collections::VecDeque;
use std::ops::Range;

use super::Rack;
use crate::transport::tcp::bits::Bits;

/// When and which packet was sent.
type Sending = (u64, u32);

/// The scoreboard.
#[derive(Clone, Default, Debug)]
pub(super) struct Board {
    flight: VecDeque<Sending>,
    in_doubt: VecDeque<Sending>,
    doubt: Numbers,
    lost: Numbers,
    /// Of `lost`, the packets whose loss the model of the path still has to learn.
    untold: Numbers,
    /// Of `lost`, those that were sent again since the last timeout.
    repairs: u32,
}

/// A set of packets of the window.
#[derive(Clone, Default, Debug)]
struct Numbers {
    set: Bits,
    /// None is below.
    low: u32,
}

impl Numbers {
    fn insert(&mut self, n: u32) {
        self.low = if self.set.ones() == 0 { n } else { self.low.min(n) };
        self.set.insert(n);
    }

    #[inline]
    fn remove(&mut self, n: u32) -> bool {
        self.set.ones() > 0 && self.set.remove(n)
    }

    fn first(&mut self) -> Option<u32> {
        let first = self.set.next(self.low)?;
        self.low = first;
        Some(first)
    }
}

impl Rack {
    /// Packet `n`, sent at `at`, is in flight. It was not, or was taken out.
    #[inline]
    pub(super) fn takes_off(&mut self, at: u64, n: u32) {
        self.board.flight.push_back((at, n));
        if at < self.lost_before {
            self.pass();
        }
    }

    /// Packet `n`, as it was sent last, has arrived or is to be sent again.
    #[inline]
    pub(super) fn take_out(&mut self, n: u32) {
        if self.board.lost.remove(n) {
            self.board.repairs -= u32::from(self.is_repair(n));
            self.board.untold.remove(n);
        } else {
            self.board.doubt.remove(n);
        }
    }

    /// Whether `n` was sent again since the last timeout.
    fn is_repair(&self, n: u32) -> bool {
        let sent = self.sent_at(n);
        sent.is_again() && sent.time() > self.before_timeout
    }

    /// Whether that is the last sending of a packet, which has not arrived.
    fn is_current(&self, (at, n): Sending) -> bool {
        self.sent_at(n).is_on_its_way_since(at)
    }

    /// Passes over what is in doubt, or lost, since.
    #[inline]
    pub(super) fn pass(&mut self) {
        while let Some(&sending) = self.board.flight.front()
            && sending.0 < self.newest.max(self.lost_before)
        {
            self.board.flight.pop_front();
            if self.is_current(sending) {
                self.doubt(sending);
            }
        }
        while let Some(&sending) = self.board.in_doubt.front()
            && sending.0 < self.lost_before
        {
            self.board.in_doubt.pop_front();
            if self.is_current(sending) {
                self.board.doubt.remove(sending.1);
                self.lose(sending.1);
            }
        }
    }

    fn doubt(&mut self, sending: Sending) {
        if sending.0 < self.lost_before {
            return self.lose(sending.1);
        }
        self.board.in_doubt.push_back(sending);
        self.board.doubt.insert(sending.1);
    }

    fn lose(&mut self, n: u32) {
        self.board.repairs += u32::from(self.is_repair(n));
        self.board.lost.insert(n);
        if self.delivery.is_some() {
            self.board.untold.insert(n);
        }
    }

    /// `lost_before` has moved back: sorts all packets `under_way` into the three sets again.
    #[cold]
    pub(super) fn stand_anew(&mut self, under_way: Range<u32>) {
        let una = under_way.start;
        let mut flight: Vec<Sending> = under_way
            .filter(|&n| !self.sent_at(n).has_arrived())
            .map(|n| (self.sent_at(n).time(), n))
            .collect();
        flight.sort_unstable();
        self.board = Board { flight: flight.into(), ..Board::default() };
        self.board.advance(una);
        self.pass();
    }

    /// Takes out the first lost packet whose loss the model of the path still has to learn.
    #[inline]
    pub(super) fn tell(&mut self) -> Option<u32> {
        let first = self.board.untold.first()?;
        self.board.untold.remove(first);
        Some(first)
    }

    /// The timer has run out: packets sent again so far were sent before this timeout.
    pub(super) fn forget_repairs(&mut self) {
        (self.before_timeout, self.board.repairs) = (self.last, 0);
    }
}

impl Board {
    /// How many are lost.
    #[inline]
    pub(super) fn lost(&self) -> u32 {
        self.lost.set.ones()
    }

    #[inline]
    pub(super) fn is_lost(&self, n: u32) -> bool {
        self.lost.set.contains(n)
    }

    /// The first of those that are lost.
    pub(super) fn first_lost(&mut self) -> Option<u32> {
        self.lost.first()
    }

    /// The first of those that may be.
    pub(super) fn first_in_doubt(&mut self) -> Option<u32> {
        self.doubt.first()
    }

    /// Whether something that was sent again since the last timeout is lost.
    pub(super) fn has_lost_repair(&self) -> bool {
        self.repairs > 0
    }

    /// What is below `una` has arrived.
    #[inline]
    pub(super) fn advance(&mut self, una: u32) {
        self.doubt.set.advance(una);
        self.lost.set.advance(una);
        self.untold.set.advance(una);
    }
}

#[cfg(test)]
mod tests {
    use crate::transport::tcp::sender::{Recovery, Sender, State};

    impl Sender {
        /// Asserts that the scoreboard agrees with a look at each packet of the window, and that a model
        /// knows of the losses. Returns whether some packets are lost, may be lost, and were sent again since
        /// a timeout.
        pub(in crate::transport::tcp) fn check_board(&mut self, has_model: bool) -> [bool; 3] {
            let Self { core, recovery: Recovery::Rack(rack) } = self else { panic!("RACK") };
            let missing: Vec<u32> =
                core.under_way().filter(|&n| !core.sacked.contains(n)).collect();
            let is_lost = |n: &u32| {
                let sent = rack.sent_at(*n);
                sent.time() < rack.lost_before || sent.is_timed_out()
            };
            let may_be =
                |n: &u32| (rack.lost_before..rack.newest).contains(&rack.sent_at(*n).time());
            let lost: Vec<u32> = missing.iter().copied().filter(is_lost).collect();
            let doubt = missing.iter().copied().find(may_be);
            let repair = lost.iter().any(|&n| rack.is_repair(n));
            if has_model && core.state >= State::Recovery {
                let mut delivery = rack.delivery.clone().expect("a model");
                assert!(lost.iter().all(|&n| delivery.on_lost(0, n).is_none()), "was told");
            }
            let counted = if core.state < State::Recovery { 0 } else { lost.len() };
            assert_eq!(rack.pipe(core) as usize, missing.len() - counted);
            assert_eq!(rack.board.has_lost_repair(), repair);
            assert_eq!(rack.first_lost(core), lost.first().copied());
            assert_eq!(rack.board.first_in_doubt(), doubt);
            [!lost.is_empty(), doubt.is_some(), repair]
        }
    }
}
