//! The one timer: a timeout, a loss probe, or the end of the window of reordering.

use super::own::News;
use super::{Core, NEVER, Rack, State};
use crate::transport::tcp::control::{Event, Repair};
use crate::transport::tcp::options::Options;

/// What the deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Timer {
    #[default]
    Timeout,
    /// A loss probe (§7.2).
    Probe,
    /// The window of reordering of the first packet that may be lost ends (§6.2, step 5).
    Reordering,
}

impl Rack {
    /// Sets the deadline after progress, or as something is sent while nothing is under way.
    #[inline(never)]
    pub(super) fn arm(&mut self, core: &mut Core, now: u64, o: &Options) {
        self.probe.take();
        if core.outstanding() == 0 {
            core.deadline = NEVER;
            self.timer = Timer::Timeout;
        } else if self.timer != Timer::Reordering {
            self.restart_timeout(core, now, o);
            self.schedule_probe(core, now, o);
        }
    }

    /// The timeout is a whole one from now on.
    pub(super) fn restart_timeout(&mut self, core: &mut Core, now: u64, o: &Options) {
        core.restart_timer(now, o);
        (self.timer, self.timeout_at) = (Timer::Timeout, core.deadline);
    }

    /// The deadline has come.
    #[inline(never)]
    pub(in super::super) fn on_timer(&mut self, core: &mut Core, now: u64, o: &Options) {
        if core.outstanding() == 0 {
            core.deadline = NEVER;
            return;
        }
        match std::mem::take(&mut self.timer) {
            Timer::Probe => self.probe(core, now, o),
            Timer::Reordering => self.on_reordering_over(core, now, o),
            Timer::Timeout => self.on_timeout(core, now, o),
        }
    }

    /// The window of reordering of some packet ends.
    fn on_reordering_over(&mut self, core: &mut Core, now: u64, o: &Options) {
        let before = core.state;
        self.restart_timeout(core, now, o);
        self.detect_loss(core, now, o);
        if self.own {
            self.follow_own(core, now, News::default(), o);
        } else if self.has_model() {
            self.tell_change(core, now, before);
            self.follow_model(core, now, 0, (0, false), o);
        } else if before < State::Recovery && core.state == State::Recovery {
            self.reduce(core, 0, 0, o);
        }
    }

    fn on_timeout(&mut self, core: &mut Core, now: u64, o: &Options) {
        let (una, state) = (core.una, core.state);
        self.forget_repairs();
        if state != State::Loss {
            self.lost_before_then = self.lost_before;
        }
        // RFC 5681 lowers the threshold once for a packet (§3.1), and again for one that was sent later
        // (§4.3). A repair under way has lowered it already (Linux).
        let is_another = una >= std::mem::replace(&mut self.timed_out, una + 1);
        let lowers = match state {
            State::Loss => is_another,
            _ => state == State::Open || una >= self.recover,
        };
        self.time_out(now, una, self.reordering_window(core));
        self.probe.forget();
        self.start.forget();
        core.counts.timeouts += 1;
        if state < State::Recovery {
            self.begin_repair(core, now);
            if state == State::Reducing && (self.own || self.at_once) {
                self.before_repair = None; // what a mark began is not undone
            }
        }
        if lowers && !self.has_model() {
            if self.at_once && state == State::Loss {
                self.note_windows(core);
            }
            self.reduce_for_loss(core, o);
        }
        core.control.on_event(Event::TimedOut, now);
        core.back_off(o);
        self.recover = core.end;
        core.state = State::Loss;
        if self.own {
            self.tell_own_timeout(core, now, (state == State::Loss, lowers), o);
        } else if self.has_model() {
            self.tell_repair(core, now, Repair::TimedOut);
        } else {
            core.cwnd = 1.0;
        }
        core.restart_timer(now, o);
    }
}
