//! What is lost (RFC 8985 §6.2).

use super::timers::Timer;
use super::{Core, Rack, SentAt, State};
use crate::transport::tcp::options::Options;
use crate::transport::tcp::sender::DUPLICATES;

impl Rack {
    /// §6.3: after a timeout the oldest packet is lost, and what was sent a round trip and the `window` of
    /// reordering ago.
    pub(super) fn time_out(&mut self, now: u64, oldest: u32, window: u64) {
        let at = self.place(oldest);
        self.sent_at[at].0 |= SentAt::TIMED_OUT;
        self.lost_before = self.lost_before.max(self.overdue(now, window));
        self.pass();
    }

    /// The time a round trip and `window` ago: packets sent before it are overdue. A packet that is sent now
    /// is not, even before the first round trip.
    fn overdue(&self, now: u64, window: u64) -> u64 {
        (now + 1).saturating_sub((self.rtt + window).max(1))
    }

    /// §6.2, step 4: how long after something that was sent later a packet may arrive.
    pub(super) fn reordering_window(&self, core: &Core) -> u64 {
        let repairing = core.state >= State::Recovery;
        if self.reordering == 0 && (repairing || core.sacked.ones() >= DUPLICATES) {
            return 0;
        }
        (self.min_rtt / 4 * self.widening.quarters()).min(core.rtt.srtt())
    }

    /// §6.2, step 5: with no `window` what was sent before something that has arrived is lost.
    fn find_losses(&mut self, now: u64, window: u64) {
        let late = if window == 0 { u64::MAX } else { self.overdue(now, window) };
        self.lost_before = self.lost_before.max(self.newest.min(late));
        self.pass();
    }

    /// Whether the timer ran out for the oldest packet, which is neither acknowledged nor sent again yet.
    pub(super) fn oldest_timed_out(&self, core: &Core) -> bool {
        core.una < core.end
            && self.sent_at(core.una).is_timed_out()
            && !core.sacked.contains(core.una)
    }

    /// The first packet that is lost.
    pub(super) fn first_lost(&mut self, core: &Core) -> Option<u32> {
        if self.oldest_timed_out(core) { Some(core.una) } else { self.board.first_lost() }
    }

    /// Packets in the network: neither acknowledged nor lost.
    pub(in super::super) fn pipe(&self, core: &Core) -> u32 {
        let missing = core.missing();
        if core.state < State::Recovery {
            return missing;
        }
        let oldest = self.oldest_timed_out(core) && !self.board.is_lost(core.una);
        missing - self.board.lost() - u32::from(oldest)
    }

    /// How many packets are lost, sent again or not, and how many were sent again.
    pub(in super::super) fn lost_and_resent(&self, core: &Core) -> (u32, u32) {
        let missing = core.under_way().filter(|&n| !core.sacked.contains(n));
        let told = core.state >= State::Recovery;
        missing.fold((0, 0), |(lost, resent), n| {
            let waits = self.board.is_lost(n) || self.sent_at(n).is_timed_out();
            let is_resent = self.sent_at(n).is_again() && !waits;
            (lost + u32::from(told && (waits || is_resent)), resent + u32::from(is_resent))
        })
    }

    /// §6.2, step 5: finds what is lost, has it repaired, and waits for what may be. As long as one that
    /// was sent again has not arrived, the next repair follows upon the last (RFC 6675 §5, step 2; Linux).
    /// One that is lost after a timeout begins a repair as well, or a window that opens again would do so
    /// whatever is lost (Linux).
    pub(super) fn detect_loss(&mut self, core: &mut Core, now: u64, o: &Options) {
        let sacked = core.sacked.ones();
        let open = core.state < State::Recovery;
        let tells = !open || sacked > 0;
        let mut window = self.reordering_window(core);
        if tells {
            self.find_losses(now, window);
        } else {
            self.pass();
        }
        let begins = match core.state {
            State::Loss => self.board.has_lost_repair(),
            State::Recovery => false,
            _ => core.una < self.resent || sacked > 0 && self.first_lost(core).is_some(),
        };
        if begins {
            self.enter_recovery(core, now, o);
            self.restart_timeout(core, now, o);
            window = self.reordering_window(core);
            self.find_losses(now, window);
        }
        let due = (tells || begins).then(|| self.first_due(window)).flatten();
        if let Some(due) = due {
            core.deadline = due.max(now + 1);
            self.timer = Timer::Reordering;
        } else if self.timer == Timer::Reordering {
            self.restart_timeout(core, now, o);
        }
    }

    /// When the first packet that may be lost is. The RFC waits for the last of them; an acknowledgement
    /// that came meanwhile would tell of each by itself, and so does this.
    fn first_due(&mut self, window: u64) -> Option<u64> {
        if window == 0 {
            return None;
        }
        let first = self.board.first_in_doubt()?;
        Some(self.sent_at(first).time() + self.rtt + window)
    }
}
