//! What a pause in which there is nothing to send leaves of the window.

use super::Sender;
use crate::transport::tcp::control::Event;
use crate::transport::tcp::options::{AfterIdle, Options, Variant};

impl Sender {
    /// There is something to send and nothing under way: behind a pause, or without one.
    #[inline(always)]
    pub(super) fn after_pause(&mut self, now: u64, o: &Options) {
        if o.recovery.variant == Variant::Ns2 {
            return self.end_pause_as_sack1();
        }
        let may_restart = o.window.after_idle != AfterIdle::Keep && self.cwnd > o.window.initial;
        if may_restart || self.control.has_state() {
            self.end_pause(now, o);
        }
    }

    #[inline(never)]
    fn end_pause(&mut self, now: u64, o: &Options) {
        self.control.on_event(Event::Unused, now);
        if o.window.after_idle != AfterIdle::Keep
            && self.cwnd > o.window.initial
            && now - self.last_sent > self.timeout(o)
        {
            self.restart(now, o);
        }
    }

    /// After idleness longer than a timeout: from the initial window (RFC 5681 §4.1), or from what is
    /// left if each timeout halves it, and then up to near where it was in slow start (RFC 2861 §3).
    #[cold]
    fn restart(&mut self, now: u64, o: &Options) {
        let mut left = o.window.initial;
        if o.window.after_idle == AfterIdle::Decay {
            let kept = o.window.whole(self.cwnd / 2.0) + o.window.whole(self.cwnd / 4.0);
            self.ssthresh = self.ssthresh.max(kept);
            left = self.cwnd;
            let mut idle = now - self.last_sent;
            let timeout = self.timeout(o).max(1);
            while idle > timeout && left > o.window.initial {
                left = o.window.whole(left / 2.0);
                idle -= timeout;
            }
        }
        self.cwnd = left.max(o.window.initial);
        self.control.on_event(Event::Restarted, now);
    }
}
