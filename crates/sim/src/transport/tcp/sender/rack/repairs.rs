//! Repairs of what is lost, and how the window goes down meanwhile (RFC 6937).

use crate::transport::tcp::control::Event;
use crate::transport::tcp::options::{LEAST_SSTHRESH, Options};
use crate::transport::tcp::sender::{Sender, State};

impl Sender {
    /// While the window goes down after an echo it goes on doing so to the end of that reduction, as in
    /// Linux.
    pub(super) fn enter_recovery_by_rack(&mut self, now: u64, o: &Options) {
        let reducing = self.state == State::Reducing;
        self.begin_repair(now);
        self.state = State::Recovery;
        self.rack().probe.forget();
        if reducing {
            self.rack().before_repair = None;
            return;
        }
        self.recover = self.end;
        if o.control.has_model {
            self.tell_reduced = o.ecn.on;
        } else {
            let left = self.control.after_loss(o.window.whole(self.cwnd));
            self.begin_reduction(left, o);
        }
    }

    /// A repair begins: what was sent before now had not been sent again, unless something that was in the
    /// last repair is still to arrive, which is no answer to what was sent first.
    pub(super) fn begin_repair(&mut self, now: u64) {
        let before = [self.cwnd, self.ssthresh];
        self.control.on_event(Event::RepairBegins, now);
        let new = self.state < State::Recovery && self.una >= self.resent;
        let rack = self.rack();
        rack.before_repair = Some(before);
        if new {
            rack.repaired_since = now;
        }
    }

    /// A reduction or a repair ends once what was sent before it has arrived.
    #[inline]
    pub(super) fn end_repair(&mut self, ack: u32, o: &Options) {
        match self.state {
            State::Recovery | State::Loss if ack >= self.recover && o.control.has_model => {
                self.state = State::Open;
            }
            State::Reducing if ack > self.recover => self.leave_reduction(),
            State::Recovery if ack >= self.recover => self.leave_reduction(),
            State::Loss if ack >= self.recover => self.state = State::Open,
            _ => {}
        }
    }

    /// What was repaired had not been lost: the window and the slow-start threshold are what they
    /// were. A repair without a timeout waits until nothing that it sent again is under way.
    #[cold]
    pub(super) fn undo_repair(&mut self, now: u64, o: &Options) {
        let under_way = self.una < self.resent;
        if self.state == State::Recovery && under_way {
            return;
        }
        let Some([cwnd, ssthresh]) = self.rack().before_repair.take() else { return };
        if self.state == State::Loss {
            let [una, end] = [self.una, self.end];
            let rack = self.rack();
            rack.lost_before = rack.lost_before_then;
            rack.stand_anew(una, end);
            self.resent = self.una;
        }
        self.state = State::Open;
        self.tell_reduced = false;
        if !o.control.has_model {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
            self.control.on_event(Event::RepairUndone, now);
        }
    }

    /// Answers an ECN echo; whether it is one for the model of the path, once a round trip.
    #[inline]
    pub(super) fn answer_echo(&mut self, now: u64, ack: u32, echo: bool, o: &Options) -> bool {
        if !echo || !o.ecn.on {
            return false;
        }
        if o.control.has_model {
            let marked = ack > self.reduced_at;
            if marked {
                self.reduced_at = self.end;
                self.tell_reduced = true;
            }
            return marked;
        }
        if self.state != State::Open {
            return false;
        }
        if self.control.grows_while_reduced() {
            self.on_echo(now, ack, o);
        } else if let Some(left) = self.control.after_echo(o.window.whole(self.cwnd), now) {
            self.ecn_reductions += 1;
            self.begin_reduction(left.max(o.ecn.least_window), o);
            self.state = State::Reducing;
            self.recover = self.end;
        }
        false
    }

    /// The window is to go down to `left` packets.
    pub(super) fn begin_reduction(&mut self, left: f64, o: &Options) {
        self.ssthresh = o.window.whole(left).max(LEAST_SSTHRESH);
        self.tell_reduced = o.ecn.on;
        let before = (self.cwnd as u32).max(1);
        let rack = self.rack();
        (rack.delivered, rack.out, rack.before, rack.lost) = (0, 0, before, 0);
    }

    pub(super) fn leave_reduction(&mut self) {
        self.state = State::Open;
        self.cwnd = self.ssthresh;
    }

    /// RFC 6937 §3, with slow start bounded by what arrived while nothing more is lost.
    pub(super) fn reduce(&mut self, acked: u32, newly: u32) {
        let pipe = self.pipe_by_rack();
        let lost = self.outstanding() - self.sacked.ones() - pipe;
        let least = self.ssthresh as u32;
        let recovery = self.state == State::Recovery;
        let rack = self.rack();
        rack.delivered += newly;
        let more = lost > std::mem::replace(&mut rack.lost, lost);
        let send = if pipe > least {
            let whole =
                (u64::from(rack.delivered) * u64::from(least)).div_ceil(u64::from(rack.before));
            (whole as u32).saturating_sub(rack.out)
        } else if acked > 0 && !more {
            (least - pipe).min(rack.delivered.saturating_sub(rack.out).max(newly) + 1)
        } else {
            (least - pipe).min(newly)
        };
        let send = if recovery && rack.out == 0 { send.max(1) } else { send };
        // With nothing under way no window at all would wait for the timer, if one runs.
        self.cwnd = f64::from((pipe + send).max(1));
    }
}
