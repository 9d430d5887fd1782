//! Losses found by duplicates: Tahoe (Jacobson 1988), Reno (RFC 5681), NewReno (RFC 6582), selective acknowledgements (RFC 6675).

use super::super::control::{AckInfo, Event};
use super::super::options::{Options, Variant};
use super::{Core, DUPLICATES, NEVER, State};
use crate::packet::{Packet, Payload, Sack};

/// What these rules remember.
#[derive(Clone, Default, Debug)]
pub(super) struct Rfc {
    /// A repair ends when everything below is acknowledged.
    recover: u32,
    /// `end` at the last reduction: until it is acknowledged there is no second one.
    reduced_at: u32,
    /// SACK: past the highest packet retransmitted in this recovery, and after a timeout past that for which the
    /// timer ran out.
    resent: u32,
    /// An echo has doubled the timeout of the timer that runs.
    wait_doubled: bool,
}

impl Rfc {
    /// An acknowledgement arrives.
    #[inline(always)]
    pub(super) fn on_ack(&mut self, core: &mut Core, now: u64, p: &Packet, o: &Options) {
        let Payload::Ack { ece, sack, .. } = p.payload else { return };
        let (ack, echo) = (p.seq, ece > 0);
        if core.is_stale(ack) {
            return self.on_stale_ack(core, now, ack, sack, o);
        }
        let acked = ack - core.una;
        if core.control.has_state() {
            let marked = if echo { acked } else { 0 };
            let (end, times) = (core.end, core.times(now));
            core.control.on_ack(&AckInfo { acked, marked, ack, end, times });
        }
        let news = !sack.is_empty() && core.take_sack(ack, sack);
        if echo && o.ecn.on {
            self.on_echo(core, now, ack, o);
        }
        if acked > 0 {
            self.on_progress(core, now, ack, echo, o);
            if news {
                // RFC 6675 §2: it is a duplicate as well.
                self.on_duplicate(core, now, o);
            }
        } else if core.outstanding() > 0 {
            if news || o.recovery.variant != Variant::Sack {
                self.on_duplicate(core, now, o);
            }
        } else {
            core.wait_below_one(now, o);
        }
    }

    /// An acknowledgement of what was acknowledged before, or never sent. Overtaken by one of more, it may tell of
    /// gaps that are news (RFC 6675 §5).
    #[cold]
    fn on_stale_ack(&mut self, core: &mut Core, now: u64, ack: u32, sack: Sack, o: &Options) {
        let tells = ack < core.una && core.state >= State::Open && !sack.is_empty();
        if tells && core.take_sack(ack, sack) {
            self.on_duplicate(core, now, o);
        }
    }

    /// RFC 3168 §6.1.2: at most one reduction a window.
    #[inline(always)]
    fn on_echo(&mut self, core: &mut Core, now: u64, ack: u32, o: &Options) {
        if ack <= self.reduced_at || core.state == State::Recovery {
            return;
        }
        if let Some(doubled) = core.answer_echo(now, o) {
            self.reduced_at = core.end;
            self.wait_doubled |= doubled;
        }
    }

    #[inline(always)]
    fn on_progress(&mut self, core: &mut Core, now: u64, ack: u32, echo: bool, o: &Options) {
        let acked = ack - core.una;
        let window_was_used = core.uses_window(core.next - core.una, o);
        core.end_timing(now, ack, echo, o);
        if !echo {
            (core.echoed_at_one, self.wait_doubled) = (false, false);
        }
        core.una = ack;
        core.sacked.advance(ack);
        core.duplicates = 0;
        if core.state == State::Open || !self.on_progress_of_repair(core, ack, acked, o) {
            if !window_was_used {
                core.control.on_event(Event::Unused, now);
            } else if !echo {
                core.grow(now, acked, o);
            }
        }
        let waits = core.outstanding() > 0 || core.cwnd < 1.0 && o.ecn.waits_at_one;
        core.deadline = if waits { now + core.timeout(o) } else { NEVER };
    }

    /// Progress where something is being repaired; whether that is fast recovery, in which the window does
    /// not grow.
    #[inline(never)]
    fn on_progress_of_repair(
        &mut self,
        core: &mut Core,
        ack: u32,
        acked: u32,
        o: &Options,
    ) -> bool {
        core.next = core.next.max(ack);
        if core.state != State::Recovery {
            if ack + o.recovery.past_timeout >= self.recover {
                core.state = State::Open;
            }
            return false;
        }
        if ack >= self.recover || o.recovery.variant == Variant::Reno {
            self.leave_recovery(core, o);
        } else if o.recovery.variant == Variant::NewReno {
            // RFC 6582 §3.2 step 3: the next hole is lost, too; retransmit, deflate by what left the network, add
            // one back.
            core.force = true;
            core.cwnd = (core.cwnd - f64::from(acked) + 1.0).max(1.0);
        }
        true
    }

    fn leave_recovery(&mut self, core: &mut Core, o: &Options) {
        core.state = State::Open;
        if o.recovery.variant != Variant::Sack {
            self.recover += o.recovery.past_timeout;
            // RFC 6582 §3.2 step 3, option 1: no burst.
            core.cwnd = core.ssthresh.min(f64::from(core.outstanding().max(1)) + 1.0);
        }
    }

    fn on_duplicate(&mut self, core: &mut Core, now: u64, o: &Options) {
        core.duplicates += 1;
        match core.state {
            // RFC 6582 §3.2 step 2: duplicates of what was sent before a timeout or a repair mean nothing.
            State::Open
                if core.una >= self.recover
                    && (core.duplicates >= DUPLICATES || loss_edge(core) > core.una) =>
            {
                self.enter_recovery(core, now, o);
            }
            State::Recovery if o.recovery.variant != Variant::Sack => core.cwnd += 1.0,
            _ => {}
        }
    }

    fn enter_recovery(&mut self, core: &mut Core, now: u64, o: &Options) {
        // The window gave way for this window of data already if an echo came first.
        if core.una >= self.reduced_at {
            core.cwnd = lower_threshold(core, o);
            core.tell_reduced = o.ecn.on;
        } else {
            core.ssthresh = o.window.threshold(core.cwnd);
        }
        (self.reduced_at, self.recover, self.resent) = (core.end, core.end, core.una);
        if o.recovery.variant == Variant::Tahoe {
            core.timed_at = NEVER;
            core.go_back(o);
            self.recover += o.recovery.past_timeout;
            core.state = State::Loss;
        } else {
            if o.recovery.variant != Variant::Sack {
                core.cwnd += f64::from(DUPLICATES);
            }
            core.state = State::Recovery;
            core.force = true;
        }
        // The retransmission gets a whole timeout, as in ns-2 and Linux: RFC 6298 §5 alone would
        // let the timer of the lost packet run out meanwhile.
        core.restart_timer(now, o);
    }

    /// The timer has run out.
    pub(super) fn on_timer(&mut self, core: &mut Core, now: u64, o: &Options) {
        core.timed_at = NEVER;
        let doubled = std::mem::take(&mut self.wait_doubled);
        if core.outstanding() == 0 {
            // The wait after an echo is over.
            core.cwnd = 1.0;
            core.deadline = NEVER;
            return;
        }
        // RFC 5681 §3.1, RFC 6298 §5.4–5.6: back to the oldest packet, one at a time.
        core.counts.timeouts += 1;
        // Not twice for the same packet; for another, which was sent since, again (§4.3).
        if core.state != State::Loss || core.una >= self.resent {
            lower_threshold(core, o);
        }
        self.resent = core.una + 1;
        core.control.on_event(Event::TimedOut, now);
        if !doubled {
            core.back_off(o);
        }
        core.go_back(o);
        self.recover = core.end + o.recovery.past_timeout;
        // An echo of what was sent before says nothing new; of retransmissions it does, if they can
        // be marked.
        self.reduced_at = if o.ecn.again.capable() { core.una } else { core.end };
        core.state = State::Loss;
        core.restart_timer(now, o);
    }

    /// The number of the next packet while something is being repaired.
    pub(super) fn next(&mut self, core: &mut Core, o: &Options) -> Option<u32> {
        let seq = if std::mem::take(&mut core.force) {
            self.resent = self.resent.max(core.una + 1);
            core.una
        } else if core.state == State::Recovery && o.recovery.variant == Variant::Sack {
            self.next_by_scoreboard(core, o)?
        } else {
            (core.room(core.given(), o) > 0).then(|| core.take_next())?
        };
        if seq < core.end && core.timed_at != NEVER && seq <= core.timed_seq {
            core.timed_at = NEVER; // Karn
        }
        Some(seq)
    }

    /// RFC 6675 §4, NextSeg: rules 1, 2 and 3.
    fn next_by_scoreboard(&mut self, core: &mut Core, o: &Options) -> Option<u32> {
        let highest = core.sacked.nth_highest(1).unwrap_or(core.una);
        let lost = loss_edge(core);
        if f64::from(self.pipe(core, lost)) + 1.0 > core.cwnd {
            return None;
        }
        let hole = core.sacked.next_missing(self.resent.max(core.una));
        let hole = (hole < highest).then_some(hole);
        if hole.is_none_or(|seq| seq >= lost) && core.has_more(o) {
            return Some(core.take_next());
        }
        self.resent = hole? + 1;
        hole
    }

    /// Packets in the network (RFC 6675 §4, SetPipe): neither SACKed nor `lost`, and sent again.
    fn pipe(&self, core: &Core, lost: u32) -> u32 {
        // The highest three that are SACKed are those not below `lost`.
        let above = core.end - lost - core.sacked.ones().min(DUPLICATES);
        let again = self.resent.saturating_sub(core.una);
        if again == 0 { above } else { above + again - core.sacked.below(self.resent) }
    }
}

/// Packets below this number that are not SACKed count as lost: three above them are SACKed
/// (RFC 6675 §4, IsLost).
fn loss_edge(core: &Core) -> u32 {
    core.sacked.nth_highest(DUPLICATES).unwrap_or(core.una)
}

/// Lowers the threshold to a share of what is in the network (RFC 5681 eq. 4: half). Returns the window that this
/// leaves.
fn lower_threshold(core: &mut Core, o: &Options) -> f64 {
    let flight = f64::from(core.outstanding()).min(core.cwnd);
    let left = o.window.whole(core.control.after_loss(flight));
    core.ssthresh = o.window.threshold(left);
    if o.window.whole_threshold { left.max(1.0) } else { core.ssthresh }
}
