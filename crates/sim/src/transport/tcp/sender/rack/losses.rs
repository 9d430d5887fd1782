//! What is lost (RFC 8985 §6.2).

use super::timers::Timer;
use super::{Rack, TIMED_OUT};
use crate::transport::tcp::Options;
use crate::transport::tcp::sender::{DUPLICATES, Sender, State};

impl Rack {
    /// Whether the timer ran out for `n`, and it was not sent again yet.
    pub(super) fn is_timed_out(&self, n: u32) -> bool {
        self.sent_at[self.place(n)] & TIMED_OUT != 0
    }

    /// §6.3: after a timeout the oldest packet is lost, and what was sent a round trip and the `window` of
    /// reordering ago.
    pub(super) fn time_out(&mut self, now: u64, oldest: u32, window: u64) {
        let at = self.place(oldest);
        self.sent_at[at] |= TIMED_OUT;
        self.lost_before = self.lost_before.max(self.overdue(now, window));
        self.pass();
    }

    /// What was sent before this was sent a round trip and `window` ago.
    fn overdue(&self, now: u64, window: u64) -> u64 {
        (now + 1).saturating_sub(self.rtt + window)
    }

    /// §6.2, step 4: how long after something that was sent later a packet may arrive.
    fn reordering_window(&self, repairing: bool, sacked: u32, srtt: u64) -> u64 {
        if self.reordering == 0 && (repairing || sacked >= DUPLICATES) {
            return 0;
        }
        (self.min_rtt / 4 * self.widening.quarters()).min(srtt)
    }

    /// §6.2, step 5: with no `window` what was sent before something that has arrived is lost.
    fn find_losses(&mut self, now: u64, window: u64) {
        let late = if window == 0 { u64::MAX } else { self.overdue(now, window) };
        self.lost_before = self.lost_before.max(self.newest.min(late));
        self.pass();
    }
}

impl Sender {
    /// Whether the timer ran out for the oldest packet, which is neither acknowledged nor sent again yet.
    pub(in super::super) fn oldest_timed_out(&self) -> bool {
        let rack = self.rack.as_deref().filter(|_| self.una < self.end);
        rack.is_some_and(|rack| rack.is_timed_out(self.una)) && !self.sacked.contains(self.una)
    }

    /// The first packet that is lost.
    pub(super) fn first_lost(&mut self) -> Option<u32> {
        if self.oldest_timed_out() { Some(self.una) } else { self.rack().board.first_lost() }
    }

    /// Packets in the network: neither acknowledged nor lost.
    pub(in super::super) fn pipe_by_rack(&self) -> u32 {
        let unsacked = self.outstanding() - self.sacked.ones();
        if self.state < State::Recovery {
            return unsacked;
        }
        let Some(rack) = &self.rack else { return unsacked };
        let oldest = self.oldest_timed_out() && !rack.board.is_lost(self.una);
        unsacked - rack.board.lost() - u32::from(oldest)
    }

    /// How many packets are lost, sent again or not, and how many were sent again.
    pub(in super::super) fn lost_and_resent(&self) -> (u32, u32) {
        let Some(rack) = &self.rack else { return (0, 0) };
        let missing = (self.una..self.end).filter(|&n| !self.sacked.contains(n));
        let told = self.state >= State::Recovery;
        missing.fold((0, 0), |(lost, resent), n| {
            let is_resent = rack.is_again(n) && !rack.board.is_lost(n) && !rack.is_timed_out(n);
            let is_lost = told && (rack.board.is_lost(n) || rack.is_timed_out(n) || is_resent);
            (lost + u32::from(is_lost), resent + u32::from(is_resent))
        })
    }

    /// Whether a packet is lost and not sent again yet.
    pub(in super::super) fn has_lost_by_rack(&self) -> bool {
        self.pipe_by_rack() < self.outstanding() - self.sacked.ones()
    }

    /// §6.2, step 5: finds what is lost, has it repaired, and waits for what may be. As long as one that
    /// was sent again has not arrived, the next repair follows upon the last (RFC 6675 §5, step 2; Linux).
    /// One that is lost after a timeout begins a repair as well, or a window that opens again would do so
    /// whatever is lost (Linux).
    pub(super) fn detect_loss(&mut self, now: u64, o: &Options) {
        let sacked = self.sacked.ones();
        let open = self.state < State::Recovery;
        let tells = !open || sacked > 0;
        let mut window = self.reordering_window();
        if tells {
            self.rack().find_losses(now, window);
        } else {
            self.rack().pass();
        }
        let begins = match self.state {
            State::Loss => self.rack().board.has_lost_repair(),
            State::Recovery => false,
            _ => self.una < self.resent || sacked > 0 && self.first_lost().is_some(),
        };
        if begins {
            self.enter_recovery_by_rack(now, o);
            self.restart_timeout(now, o);
            window = self.reordering_window();
            self.rack().find_losses(now, window);
        }
        let due = (tells || begins).then(|| self.first_due(window)).flatten();
        if let Some(due) = due {
            self.deadline = due.max(now + 1);
            self.rack().timer = Timer::Reordering;
        } else if self.rack().timer == Timer::Reordering {
            self.restart_timeout(now, o);
        }
    }

    pub(super) fn reordering_window(&self) -> u64 {
        let (repairing, sacked) = (self.state >= State::Recovery, self.sacked.ones());
        let rack = self.rack.as_deref();
        rack.map_or(0, |rack| rack.reordering_window(repairing, sacked, self.rtt.srtt()))
    }

    /// When the first packet that may be lost is. The RFC waits for the last of them; an acknowledgement
    /// that came meanwhile would tell of each by itself, and so does this.
    fn first_due(&mut self, window: u64) -> Option<u64> {
        let rack = self.rack.as_deref_mut().filter(|_| window > 0)?;
        let first = rack.board.first_in_doubt()?;
        Some(rack.at(first) + rack.rtt + window)
    }
}
