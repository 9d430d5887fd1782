//! The one timer: a timeout, a loss probe, or the end of the window of reordering.

use crate::transport::tcp::Options;
use crate::transport::tcp::control::{Event, Repair};
use crate::transport::tcp::sender::{NEVER, Sender, State};

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

impl Sender {
    /// Sets the deadline after progress, or as something is sent while nothing is under way.
    #[inline(never)]
    pub(super) fn arm(&mut self, now: u64, o: &Options) {
        self.rack().probe.take();
        if self.outstanding() == 0 {
            self.deadline = NEVER;
            self.rack().timer = Timer::Timeout;
        } else if self.rack().timer != Timer::Reordering {
            self.restart_timeout(now, o);
            self.schedule_probe(now, o);
        }
    }

    /// The timeout is a whole one from now on.
    pub(super) fn restart_timeout(&mut self, now: u64, o: &Options) {
        let at = now + self.timeout(o);
        self.deadline = at;
        let rack = self.rack();
        (rack.timer, rack.timeout_at) = (Timer::Timeout, at);
    }

    /// The deadline has come.
    #[inline(never)]
    pub(in super::super) fn on_timer_by_rack(&mut self, now: u64, o: &Options) {
        if self.outstanding() == 0 {
            self.deadline = NEVER;
            return;
        }
        let (una, state) = (self.una, self.state);
        let (window, repaired) = (self.reordering_window(), una >= self.recover);
        let rack = self.rack();
        match std::mem::take(&mut rack.timer) {
            Timer::Probe => self.probe(now, o),
            Timer::Reordering => {
                self.restart_timeout(now, o);
                self.detect_loss(now, o);
                if o.control.has_model {
                    self.tell_change(now, state);
                    self.follow_model(now, 0, false, o);
                } else if state < State::Recovery && self.state == State::Recovery {
                    self.reduce(0, 0);
                }
            }
            Timer::Timeout => {
                rack.forget_repairs();
                if state != State::Loss {
                    rack.lost_before_then = rack.lost_before;
                }
                // RFC 5681 §3.1: not for the same packet twice; §4.3: for another, which was sent
                // since, again. A repair that goes on has lowered it (Linux).
                let is_another = una >= std::mem::replace(&mut rack.timed_out, una + 1);
                let lowers = match state {
                    State::Loss => is_another,
                    _ => state == State::Open || repaired,
                };
                rack.time_out(now, una, window);
                rack.probe.forget();
                rack.start.forget();
                self.timeouts += 1;
                if state < State::Recovery {
                    self.begin_repair(now);
                }
                if lowers && !o.control.has_model {
                    let left = self.control.after_loss(o.window.whole(self.cwnd));
                    self.begin_reduction(left, o);
                }
                self.control.on_event(Event::TimedOut, now);
                self.back_off(o);
                self.recover = self.end;
                self.state = State::Loss;
                if o.control.has_model {
                    self.tell_repair(now, Repair::TimedOut);
                } else {
                    self.cwnd = 1.0;
                }
                self.deadline = now + self.timeout(o);
            }
        }
    }
}
