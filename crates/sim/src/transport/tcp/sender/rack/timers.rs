//! The one timer: a timeout, a loss probe, or the end of the window of reordering.

use crate::transport::tcp::Options;
use crate::transport::tcp::control::Repair;
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
    /// Sets the deadline after progress.
    #[inline(never)]
    pub(super) fn arm(&mut self, now: u64, o: &Options) {
        let outstanding = self.outstanding();
        let state = self.state;
        let sacked = self.sacked.ones();
        if outstanding == 0 {
            self.deadline = NEVER;
            self.rack().timer = Timer::Timeout;
            return;
        }
        let timeout = self.timeout(o);
        let srtt = self.rtt.srtt();
        let min_rto = o.rto.min.max(o.rto.granularity);
        let rack = self.rack();
        if rack.timer == Timer::Reordering {
            return;
        }
        rack.timer = Timer::Timeout;
        self.deadline = now + timeout;
        if state < State::Recovery && sacked == 0 && srtt > 0 {
            // §7.2: a packet alone may be acknowledged late.
            let probe = 2 * srtt + if outstanding == 1 { min_rto } else { 0 };
            if probe < timeout {
                self.deadline = now + probe;
                self.rack().timer = Timer::Probe;
            }
        }
    }

    /// The deadline has come.
    #[inline(never)]
    pub(in super::super) fn on_timer_by_rack(&mut self, now: u64, o: &Options) {
        if self.outstanding() == 0 {
            self.deadline = NEVER;
            return;
        }
        let (una, state) = (self.una, self.state);
        let timeout = self.timeout(o);
        let rack = self.rack();
        match std::mem::take(&mut rack.timer) {
            Timer::Probe => {
                // The timeout counts from when the oldest packet was sent (§7.3).
                let due = (rack.at(una) + timeout).max(now + 1);
                rack.probe = true;
                self.force = true;
                self.deadline = due;
            }
            Timer::Reordering => {
                self.deadline = now + timeout;
                self.detect_loss(now, o);
                if o.has_model {
                    self.tell_change(now, state);
                    self.follow_model(now, 0, false, o);
                } else if state < State::Recovery && self.state == State::Recovery {
                    self.reduce(0, 0);
                }
            }
            Timer::Timeout => {
                // §6.3: all that was not selectively acknowledged is lost.
                rack.before_timeout = rack.last;
                if state != State::Loss {
                    rack.lost_before_then = rack.lost_before;
                }
                rack.lost_before = rack.last + 1;
                self.timeouts += 1;
                if state < State::Recovery {
                    self.begin_repair(now);
                }
                if !o.has_model && (state == State::Open || una >= self.recover) {
                    let left = self.control.after_loss(o.whole(self.cwnd));
                    self.begin_reduction(left, o);
                }
                self.control.on_timeout();
                self.back_off(o);
                self.recover = self.end;
                self.state = State::Loss;
                if o.has_model {
                    self.tell_repair(now, Repair::TimedOut);
                } else {
                    self.cwnd = 1.0;
                }
                self.deadline = now + self.timeout(o);
            }
        }
    }
}
