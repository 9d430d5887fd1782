//! Recovery as ns-2's `Agent/TCP/Sack1` has it (FF96, and ns-2.35 with its defaults), an option.
//!
//! What is under way in a recovery is not worked out from the scoreboard, as RFC 6675 has it, but counted: from
//! all that is outstanding three are taken off at the third duplicate, one more with each acknowledgement that
//! comes then, two with a partial one, and each packet sent counts one more. What was lost stays counted until
//! acknowledgements of later packets have taken it off, and so does the first repair's room. Beside that:
//!
//! - Nothing goes out together with the first repair; then every hole below the highest packet that arrived is
//!   repaired, once, before anything new. That a repair is lost only the timer finds.
//! - What bars a second reduction is one number, all that had been sent at the last reduction or timeout, for
//!   losses and for echoes alike. It is forgotten when a recovery ends. A timeout lifts it for echoes.
//! - Where three duplicates come below it, nothing is repaired; but if an echo was the last to lower the window,
//!   they are, without a second reduction, until what had been sent at the echo is acknowledged.
//! - Outside of a recovery each acknowledgement of something new forgets what had arrived beyond it.
//! - A timeout lowers the threshold each time, but not where an echo was the last to lower the window; behind it
//!   duplicates count only once something new is acknowledged, and then let packets out as always.
//! - A pause that lasts a timeout from the last acknowledgement on ends the window at one packet.
//! - A SYN that is lost leaves a window of one packet and a threshold of two.
//! - A partial acknowledgement ends the backoff. Round trips are measured over repairs, to the recovery's end.
//!
//! An acknowledgement that was overtaken says nothing here.

use super::super::options::{AfterIdle, LEAST_SSTHRESH, Options};
use super::{Core, DUPLICATES, NEVER, State};
use crate::packet::{Packet, Payload};

/// What these rules remember.
#[derive(Clone, Default, Debug)]
pub(super) struct Ns2 {
    /// `end` at the last reduction or timeout; 0 after a recovery.
    recover: u32,
    /// Past the highest packet retransmitted in this recovery.
    resent: u32,
    /// What counts as under way in a recovery.
    in_flight: i32,
    lowered_by: LoweredBy,
    /// Nothing new was acknowledged since a timeout.
    timed_out: bool,
    /// The first repair goes out alone.
    alone: bool,
}

/// What was the last to lower the window.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum LoweredBy {
    #[default]
    Loss,
    Echo,
    Timeout,
}

impl Ns2 {
    /// An acknowledgement arrives.
    #[inline(never)]
    pub(super) fn on_ack(&mut self, core: &mut Core, now: u64, p: &Packet, o: &Options) {
        let Payload::Ack { ece, sack, .. } = p.payload else { return };
        let (ack, echo) = (p.seq, ece > 0);
        if core.is_stale(ack) {
            return;
        }
        self.alone = false;
        if echo && o.ecn.on {
            self.on_echo(core, ack, o);
        }
        if core.state == State::Recovery {
            self.in_flight -= 1;
            if ack >= self.recover {
                self.recover = 0;
                self.acknowledge(core, now, ack, echo, o);
            } else {
                let partial = ack > core.una;
                core.una = ack;
                core.take_sack(ack, sack);
                if partial {
                    self.in_flight -= 1;
                    core.backoff.end();
                    core.restart_timer(now, o);
                }
            }
        } else if ack > core.una {
            let acked = ack - core.una;
            let window_was_used = core.uses_window(core.next - core.una, o);
            self.acknowledge(core, now, ack, echo, o);
            if !echo {
                core.echoed_at_one = false;
                if window_was_used {
                    core.grow(now, acked, o);
                }
            }
        } else if core.outstanding() > 0 {
            if !self.timed_out && core.take_sack(ack, sack) {
                core.duplicates += 1;
                if core.duplicates == DUPLICATES {
                    self.on_third_duplicate(core, now, o);
                }
            }
        } else {
            core.wait_below_one(now, o);
        }
    }

    /// Everything below `ack` is acknowledged, and no recovery goes on.
    fn acknowledge(&mut self, core: &mut Core, now: u64, ack: u32, echo: bool, o: &Options) {
        if core.end_timing(now, ack, echo, o) {
            core.echoed_at_one = false;
        }
        core.una = ack;
        core.next = core.next.max(ack);
        core.sacked.clear();
        core.duplicates = 0;
        self.timed_out = false;
        core.state = if core.next == core.end { State::Open } else { State::Loss };
        // Also where nothing is under way: the timer then runs out to end a pause.
        core.restart_timer(now, o);
    }

    fn on_echo(&mut self, core: &mut Core, ack: u32, o: &Options) {
        if ack <= self.recover && self.lowered_by != LoweredBy::Timeout {
            return;
        }
        self.recover = core.end;
        self.lowered_by = LoweredBy::Echo;
        let at_one = core.cwnd <= 1.0;
        halve(core, o);
        core.note_echo(at_one, o);
    }

    fn on_third_duplicate(&mut self, core: &mut Core, now: u64, o: &Options) {
        let reduces = core.una > self.recover || core.una == 0;
        if !reduces && self.lowered_by != LoweredBy::Echo {
            return;
        }
        if reduces {
            self.recover = core.end;
            halve(core, o);
        }
        self.in_flight = core.outstanding() as i32 - DUPLICATES as i32;
        self.resent = core.una + 1;
        (self.lowered_by, self.timed_out, self.alone) = (LoweredBy::Loss, false, true);
        core.state = State::Recovery;
        core.force = true;
        core.timed_at = NEVER;
        core.restart_timer(now, o);
    }

    /// The number of the next packet while something is being repaired.
    pub(super) fn next(&mut self, core: &mut Core, o: &Options) -> Option<u32> {
        if std::mem::take(&mut core.force) {
            self.resent = self.resent.max(core.una + 1);
            return Some(core.una);
        }
        if core.state == State::Recovery {
            return self.next_in_recovery(core, o);
        }
        let window = core.cwnd as u32 + core.duplicates.min(o.recovery.limited_transmit);
        let room = window.min(o.window.receiver).saturating_sub(core.next - core.una);
        let room = room.min(core.given());
        (room > 0).then(|| core.take_next())
    }

    fn next_in_recovery(&mut self, core: &mut Core, o: &Options) -> Option<u32> {
        if self.alone || self.in_flight >= core.cwnd as i32 {
            return None;
        }
        let highest = core.sacked.nth_highest(1).unwrap_or(core.una);
        let hole = core.sacked.next_missing(self.resent.max(core.una));
        let seq = if hole < highest {
            self.resent = hole + 1;
            hole
        } else {
            core.next
        };
        // After a timeout ns-2 sends packets again even if a recovery has acknowledged them.
        if seq >= core.available || seq >= core.una + o.window.receiver {
            return None;
        }
        core.next = core.next.max(seq + 1);
        self.in_flight += 1;
        Some(seq)
    }

    /// The timer has run out for a SYN, whose answer then begins with one packet.
    #[cold]
    pub(super) fn lose_syn(&mut self, core: &mut Core, o: &Options) {
        (core.cwnd, core.ssthresh) = (1.0, LEAST_SSTHRESH);
        if o.ecn.on {
            // That the answer says that there is ECN counts as an echo at one packet.
            self.lowered_by = LoweredBy::Echo;
            (core.echoed_at_one, core.tell_reduced) = (true, true);
        }
    }

    /// The timer has run out.
    pub(super) fn on_timer(&mut self, core: &mut Core, now: u64, o: &Options) {
        core.timed_at = NEVER;
        let lost = core.outstanding() > 0;
        if !lost && core.cwnd >= 1.0 && o.window.after_idle == AfterIdle::Keep {
            core.deadline = NEVER;
            return;
        }
        core.cwnd = core.cwnd.max(1.0);
        if lost {
            core.counts.timeouts += 1;
            if self.lowered_by != LoweredBy::Echo {
                halve(core, o);
            }
            core.back_off(o);
        }
        core.go_back(o);
        self.recover = core.end;
        self.lowered_by = LoweredBy::Timeout;
        (self.timed_out, self.alone) = (true, false);
        core.state = if lost { State::Loss } else { State::Open };
        core.deadline = if lost { now + core.timeout(o) } else { NEVER };
    }
}

/// A packet is about to be sent while nothing is under way: it gets a whole timeout.
#[cold]
pub(super) fn end_pause(core: &mut Core) {
    if core.cwnd >= 1.0 {
        core.deadline = NEVER;
    }
}

/// The window and the threshold are half of what the window was, however much of it is used.
fn halve(core: &mut Core, o: &Options) {
    let left = o.window.whole(core.cwnd.min(f64::from(o.window.receiver)) / 2.0);
    core.ssthresh = o.window.threshold(left);
    core.cwnd = left;
    core.tell_reduced = o.ecn.on;
}
