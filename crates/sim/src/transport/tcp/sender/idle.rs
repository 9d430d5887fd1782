//! What a pause in which there is nothing to send leaves of the window.

use super::Sender;
use crate::transport::tcp::Options;

impl Sender {
    /// There is something to send and nothing under way: behind a pause, or without one.
    #[inline(always)]
    pub(super) fn after_pause(&mut self, now: u64, o: &Options) {
        if o.sack1 {
            return self.end_pause_as_sack1();
        }
        let may_restart = o.restart_after_idle && self.cwnd > o.initial_window;
        if may_restart || self.control.has_state() {
            self.end_pause(now, o);
        }
    }

    #[inline(never)]
    fn end_pause(&mut self, now: u64, o: &Options) {
        self.control.unused(now);
        if o.restart_after_idle
            && self.cwnd > o.initial_window
            && now - self.last_sent > self.timeout(o)
        {
            self.restart(now, o);
        }
    }

    /// After idleness longer than a timeout: from the initial window (RFC 5681 §4.1), or from what is
    /// left if each timeout halves it, and then up to near where it was in slow start (RFC 2861 §3).
    #[cold]
    fn restart(&mut self, now: u64, o: &Options) {
        let mut left = o.initial_window;
        if o.decay_after_idle {
            let kept = o.whole(self.cwnd / 2.0) + o.whole(self.cwnd / 4.0);
            self.ssthresh = self.ssthresh.max(kept);
            left = self.cwnd;
            let mut idle = now - self.last_sent;
            let timeout = self.timeout(o).max(1);
            while idle > timeout && left > o.initial_window {
                left = o.whole(left / 2.0);
                idle -= timeout;
            }
        }
        self.cwnd = left.max(o.initial_window);
        self.control.on_restart();
    }
}
