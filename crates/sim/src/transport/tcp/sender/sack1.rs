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

use super::{DUPLICATES, NEVER, Sender, State};
use crate::packet::{Packet, Payload};
use crate::transport::tcp::options::{AfterIdle, LEAST_SSTHRESH, Options};

/// What is remembered, in a byte, as a sender is small; without this recovery [`WAIT_DOUBLED`] alone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Notes(u8);

/// An echo has doubled the timeout of the timer that runs.
pub(super) const WAIT_DOUBLED: Notes = Notes(1);
/// An echo was the last to lower the window.
const BY_ECHO: Notes = Notes(2);
/// A timeout was.
const BY_TIMEOUT: Notes = Notes(4);
/// Nothing new was acknowledged since a timeout.
const TIMED_OUT: Notes = Notes(8);
/// The first repair goes out alone.
const ALONE: Notes = Notes(16);

impl Notes {
    const fn has(self, note: Self) -> bool {
        self.0 & note.0 != 0
    }

    const fn with(self, note: Self) -> Self {
        Self(self.0 | note.0)
    }

    const fn without(self, note: Self) -> Self {
        Self(self.0 & !note.0)
    }
}

impl Sender {
    /// An acknowledgement arrives.
    #[inline(never)]
    pub(super) fn on_ack_as_sack1(&mut self, now: u64, p: &Packet, o: &Options) {
        let Payload::Ack { ece, sack, .. } = p.payload else { return };
        let (ack, echo) = (p.seq, ece > 0);
        if ack < self.una || ack > self.end || self.state < State::Open {
            return; // of what was acknowledged before, or never sent
        }
        self.notes = self.notes.without(ALONE);
        if echo && o.ecn.on {
            self.on_echo_as_sack1(ack, o);
        }
        if self.state == State::Recovery {
            self.count(-1);
            if ack >= self.recover {
                self.recover = 0;
                self.acknowledge_as_sack1(now, ack, echo, o);
            } else {
                let partial = ack > self.una;
                self.una = ack;
                self.take_sack(ack, sack);
                if partial {
                    self.count(-1);
                    self.backoff.end();
                    self.deadline = now + self.timeout(o);
                }
            }
        } else if ack > self.una {
            let acked = ack - self.una;
            let window_was_used = self.uses_window(self.next - self.una, o);
            self.acknowledge_as_sack1(now, ack, echo, o);
            if !echo {
                self.echoed_at_one = false;
                if window_was_used {
                    self.grow(now, acked, o);
                }
            }
        } else if self.outstanding() > 0 {
            if !self.notes.has(TIMED_OUT) && self.take_sack(ack, sack) {
                self.duplicates += 1;
                if self.duplicates == DUPLICATES {
                    self.on_third_duplicate(now, o);
                }
            }
        } else if self.cwnd < 1.0 && self.deadline == NEVER {
            self.deadline = now + self.timeout(o); // It waits, though nothing is on its way.
        }
    }

    /// Everything below `ack` is acknowledged, and no recovery goes on.
    fn acknowledge_as_sack1(&mut self, now: u64, ack: u32, echo: bool, o: &Options) {
        if self.timed_at != NEVER && self.timed_seq < ack {
            self.rtt.sample_at(now, self.timed_at, o.timer.rto.tick, &mut self.backoff);
            self.timed_at = NEVER;
            // The backoff of ECN waits at one packet goes on as long as the echoes do.
            if !(o.ecn.waits_at_one() && echo && self.echoed_at_one) {
                self.backoff.end();
                self.echoed_at_one = false;
            }
        }
        self.una = ack;
        self.next = self.next.max(ack);
        self.sacked.clear();
        self.sacked.advance(ack);
        self.duplicates = 0;
        self.notes = self.notes.without(TIMED_OUT);
        self.state = if self.next == self.end { State::Open } else { State::Loss };
        // Also where nothing is under way: what it then runs out for is a pause.
        self.deadline = now + self.timeout(o);
    }

    fn on_echo_as_sack1(&mut self, ack: u32, o: &Options) {
        if ack <= self.recover && !self.notes.has(BY_TIMEOUT) {
            return;
        }
        self.recover = self.end;
        self.notes = self.notes.without(BY_TIMEOUT).with(BY_ECHO);
        let at_one = self.cwnd <= 1.0;
        self.halve(o);
        self.cwnd = self.cwnd.max(o.ecn.least_window);
        self.ecn_reductions += 1;
        if self.cwnd < 1.0 && at_one && self.echoed_at_one {
            self.back_off(o);
        }
        self.echoed_at_one = at_one;
    }

    fn on_third_duplicate(&mut self, now: u64, o: &Options) {
        let reduces = self.una > self.recover || self.una == 0;
        if !reduces && !self.notes.has(BY_ECHO) {
            return;
        }
        if reduces {
            self.recover = self.end;
            self.halve(o);
        }
        self.reduced_at = self.outstanding().wrapping_sub(DUPLICATES);
        self.notes = ALONE;
        self.state = State::Recovery;
        self.force = true;
        self.resent = self.una + 1;
        self.timed_at = NEVER;
        self.deadline = now + self.timeout(o);
    }

    /// The window and the threshold are half of what the window was, however much of it is used.
    fn halve(&mut self, o: &Options) {
        let left = o.window.whole(self.cwnd.min(f64::from(o.window.receiver)) / 2.0);
        self.ssthresh = o.window.threshold(left);
        self.cwnd = left;
        self.tell_reduced = o.ecn.on;
    }

    /// Counts what is under way in a recovery.
    fn count(&mut self, more: i32) {
        self.reduced_at = self.reduced_at.wrapping_add_signed(more);
    }

    /// The number of the next packet in a recovery.
    pub(super) fn next_in_recovery_as_sack1(&mut self, o: &Options) -> Option<u32> {
        if self.notes.has(ALONE) || self.reduced_at as i32 >= self.cwnd as i32 {
            return None;
        }
        let highest = self.sacked.nth_highest(1, self.end).unwrap_or(self.una);
        let hole = self.sacked.next_missing(self.resent.max(self.una));
        let seq = if hole < highest {
            self.resent = hole + 1;
            hole
        } else {
            self.next
        };
        // Behind a timeout what is acknowledged in a recovery is sent all the same, as in ns-2.
        if seq >= self.available || seq >= self.una + o.window.receiver {
            return None;
        }
        self.next = self.next.max(seq + 1);
        self.count(1);
        Some(seq)
    }

    /// How many packets may be sent again, or new, behind a timeout.
    pub(super) fn room_behind_timeout_as_sack1(&self, o: &Options) -> u32 {
        let window = self.cwnd as u32 + self.duplicates.min(o.recovery.limited_transmit);
        let given = self.available.saturating_sub(self.next);
        window.min(o.window.receiver).saturating_sub(self.next - self.una).min(given)
    }

    /// A packet is about to be sent while nothing is under way: it gets a whole timeout.
    #[cold]
    pub(super) fn end_pause_as_sack1(&mut self) {
        if self.cwnd >= 1.0 {
            self.deadline = NEVER;
        }
    }

    /// The timer has run out for a SYN, whose answer then begins with one packet.
    #[cold]
    pub(super) fn lose_syn_as_sack1(&mut self, o: &Options) {
        (self.cwnd, self.ssthresh) = (1.0, LEAST_SSTHRESH);
        if o.ecn.on {
            // That the answer says that there is ECN counts as an echo at one packet.
            (self.notes, self.echoed_at_one, self.tell_reduced) = (BY_ECHO, true, true);
        }
    }

    /// The timer has run out.
    pub(super) fn on_timer_as_sack1(&mut self, now: u64, o: &Options) {
        let lost = self.outstanding() > 0;
        if !lost && self.cwnd >= 1.0 && o.window.after_idle == AfterIdle::Keep {
            self.deadline = NEVER;
            return;
        }
        self.cwnd = self.cwnd.max(1.0);
        if lost {
            self.timeouts += 1;
            if !self.notes.has(BY_ECHO) {
                self.halve(o);
            }
            self.back_off(o);
        }
        self.cwnd = 1.0;
        self.tell_reduced = o.ecn.on;
        self.next = self.una;
        self.recover = self.end;
        self.sacked.clear();
        self.duplicates = 0;
        self.force = false;
        self.notes = BY_TIMEOUT.with(TIMED_OUT);
        self.state = if lost { State::Loss } else { State::Open };
        self.deadline = if lost { now + self.timeout(o) } else { NEVER };
    }
}
