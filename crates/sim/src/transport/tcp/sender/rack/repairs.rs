//! Repairs of what is lost, and how the window goes down meanwhile (RFC 9937).

use super::{Core, Rack, State};
use crate::control::Kind;
use crate::transport::tcp::control::Event;
use crate::transport::tcp::options::{LEAST_SSTHRESH, Options};

/// The window and the slow-start threshold, in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    cwnd: f64,
    ssthresh: f64,
}

/// How far a reduction has come (RFC 9937), in packets.
#[derive(Clone, Default, Debug)]
pub(super) struct Reduction {
    /// Delivered and sent since it began, and the window then.
    delivered: u32,
    pub(super) out: u32,
    before: u32,
    /// Lost, as they were counted last.
    lost: u32,
}

impl Rack {
    /// A reduction after an echo goes on to its end, also when a repair begins meanwhile, as in Linux.
    pub(super) fn enter_recovery(&mut self, core: &mut Core, now: u64, o: &Options) {
        let reducing = core.state == State::Reducing;
        self.begin_repair(core, now);
        core.state = State::Recovery;
        self.probe.forget();
        if reducing {
            self.before_repair = None;
            if self.own {
                self.aside.episode.get_or_insert((Kind::Loss, false));
            }
            return;
        }
        self.recover = core.end;
        if self.has_model() {
            core.tell_reduced = o.ecn.on;
            self.aside.episode = Some((Kind::Loss, true));
        } else {
            self.reduce_for_loss(core, o);
        }
    }

    /// A repair begins: what was sent before now had not been sent again, unless something that was in the
    /// last repair is still to arrive, which is no answer to what was sent first.
    pub(super) fn begin_repair(&mut self, core: &mut Core, now: u64) {
        core.control.on_event(Event::RepairBegins, now);
        self.note_windows(core);
        if core.state < State::Recovery && core.una >= self.resent {
            self.repaired_since = now;
        }
    }

    /// The windows that an undo gives back.
    pub(super) fn note_windows(&mut self, core: &Core) {
        self.before_repair = Some(Windows { cwnd: core.cwnd, ssthresh: core.ssthresh });
    }

    /// A reduction or a repair ends once what was sent before it has arrived.
    #[inline]
    pub(super) fn end_repair(&self, core: &mut Core, ack: u32) {
        match core.state {
            State::Recovery | State::Loss if ack >= self.recover && self.has_model() => {
                core.state = State::Open;
            }
            State::Reducing if ack > self.recover && self.own => core.state = State::Open,
            State::Reducing if ack > self.recover => leave_reduction(core),
            State::Recovery if ack >= self.recover => leave_reduction(core),
            State::Loss if ack >= self.recover => core.state = State::Open,
            _ => {}
        }
    }

    /// What was repaired had not been lost: the window and the slow-start threshold are what they
    /// were. A repair without a timeout waits until nothing that it sent again is under way.
    #[cold]
    pub(super) fn undo_repair(&mut self, core: &mut Core, now: u64, o: &Options) {
        if core.state == State::Recovery && core.una < self.resent {
            return;
        }
        let Some(before) = self.before_repair.take() else { return };
        let timed_out = core.state == State::Loss;
        if timed_out {
            self.lost_before = self.lost_before_then;
            self.stand_anew(core.under_way());
            self.resent = core.una;
        }
        core.state = State::Open;
        core.tell_reduced = false;
        self.undone += 1;
        if self.own {
            self.tell_own_undo(core, now, timed_out, o);
        } else if let Some(delivery) = &self.delivery {
            let window = &mut core.cwnd;
            core.control.model(|model| model.on_undo(delivery.delivered, window));
        } else {
            core.cwnd = core.cwnd.max(before.cwnd);
            core.ssthresh = core.ssthresh.max(before.ssthresh);
            core.control.on_event(Event::RepairUndone, now);
        }
    }

    /// Answers an ECN echo; whether it is one for the model of the path, once a round trip.
    #[inline]
    pub(super) fn answer_echo(
        &mut self,
        core: &mut Core,
        now: u64,
        ack: u32,
        echo: bool,
        o: &Options,
    ) -> bool {
        if !echo || !o.ecn.on {
            return false;
        }
        if self.own {
            if core.state == State::Open {
                core.state = State::Reducing;
                self.recover = core.end;
                core.tell_reduced = true;
                core.counts.ecn_reductions += 1;
                self.aside.episode = Some((Kind::Ecn, true));
            }
            return false;
        }
        if self.has_model() {
            let news = ack > self.echoed_at;
            if news {
                self.echoed_at = core.end;
                core.tell_reduced = true;
            }
            return news;
        }
        if core.state != State::Open {
            return false;
        }
        if core.control.grows_while_reduced() {
            if ack > self.echoed_at && core.answer_echo(now, o).is_some() {
                self.echoed_at = core.end;
            }
        } else if let Some(left) = core.control.after_echo(o.window.whole(core.cwnd), now) {
            core.counts.ecn_reductions += 1;
            self.begin_reduction(core, left.max(o.ecn.least_window), o);
            core.state = State::Reducing;
            self.recover = core.end;
        }
        false
    }

    /// A packet was lost: the window is to go down by what the control says.
    pub(super) fn reduce_for_loss(&mut self, core: &mut Core, o: &Options) {
        let left = core.control.after_loss(o.window.whole(core.cwnd));
        self.begin_reduction(core, left, o);
    }

    /// The window is to go down to `left` packets.
    fn begin_reduction(&mut self, core: &mut Core, left: f64, o: &Options) {
        core.ssthresh = o.window.whole(left).max(LEAST_SSTHRESH);
        core.tell_reduced = o.ecn.on;
        self.reduction = Reduction { before: (core.cwnd as u32).max(1), ..Reduction::default() };
        if self.at_once {
            core.cwnd = core.ssthresh;
        }
    }

    /// RFC 9937 §6.2, with slow start bounded by what arrived while nothing more is lost.
    pub(super) fn reduce(&mut self, core: &mut Core, acked: u32, newly: u32, o: &Options) {
        if self.at_once {
            return;
        }
        let pipe = self.pipe(core);
        let lost = core.missing() - pipe;
        let least = core.ssthresh as u32;
        let Reduction { delivered, out, before, lost: lost_before } = &mut self.reduction;
        *delivered += newly;
        let more = lost > std::mem::replace(lost_before, lost);
        let send = if pipe > least {
            let whole = (u64::from(*delivered) * u64::from(least)).div_ceil(u64::from(*before));
            (whole as u32).saturating_sub(*out)
        } else {
            let safe = u32::from(acked > 0 && !more);
            (least - pipe).min(delivered.saturating_sub(*out).max(newly) + safe)
        };
        // A repair begins at once; in Linux so does what follows an echo.
        let at_once = core.state == State::Recovery || o.window.whole_packets;
        let send = if at_once && *out == 0 { send.max(1) } else { send };
        // With nothing under way no window at all would wait for the timer, if one runs.
        core.cwnd = f64::from((pipe + send).max(1));
    }
}

/// A reduction is over.
pub(super) fn leave_reduction(core: &mut Core) {
    core.state = State::Open;
    core.cwnd = core.ssthresh;
}
