//! Repairs told by duplicates (RFC 5681, RFC 6582, RFC 6675).

use super::{DUPLICATES, Sender, State};
use crate::transport::tcp::options::{Options, Variant};

impl Sender {
    pub(super) fn on_duplicate(&mut self, now: u64, o: &Options) {
        self.duplicates += 1;
        match self.state {
            // RFC 6582 §3.2 step 2: duplicates of what was sent before a timeout or a repair mean nothing.
            State::Open
                if self.una >= self.recover
                    && (self.duplicates >= DUPLICATES || self.loss_edge() > self.una) =>
            {
                self.enter_recovery(now, o);
            }
            State::Recovery if o.recovery.variant != Variant::Sack => self.cwnd += 1.0,
            _ => {}
        }
    }

    fn enter_recovery(&mut self, now: u64, o: &Options) {
        // The window gave way for this window of data already if an echo came first.
        if self.una >= self.reduced_at {
            self.cwnd = self.lower_threshold(o);
            self.tell_reduced = o.ecn.on;
        } else {
            self.ssthresh = o.window.threshold(self.cwnd);
        }
        self.reduced_at = self.end;
        if o.recovery.variant != Variant::Sack {
            self.cwnd += f64::from(DUPLICATES);
        }
        self.state = State::Recovery;
        self.recover = self.end;
        self.resent = self.una;
        self.force = true;
        // The retransmission gets a whole timeout, as in ns-2 and Linux: RFC 6298 §5 alone would
        // let the timer of the lost packet run out meanwhile.
        self.deadline = now + self.timeout(o);
    }

    /// The same where something is being repaired; whether that is fast recovery, where the window does
    /// not grow.
    #[inline(never)]
    pub(super) fn on_progress_of_recovery(&mut self, ack: u32, acked: u32, o: &Options) -> bool {
        self.next = self.next.max(ack);
        if self.state != State::Recovery {
            if ack + o.recovery.past_timeout >= self.recover {
                self.state = State::Open;
            }
            return false;
        }
        if ack >= self.recover || o.recovery.variant == Variant::Reno {
            self.leave_recovery(o);
        } else {
            self.on_partial(acked, o);
        }
        true
    }

    /// A partial acknowledgement: the next hole is lost, too.
    fn on_partial(&mut self, acked: u32, o: &Options) {
        if o.recovery.variant == Variant::NewReno {
            // RFC 6582 §3.2 step 3: retransmit, deflate by what left the network, add one back.
            self.force = true;
            self.cwnd = (self.cwnd - f64::from(acked) + 1.0).max(1.0);
        }
    }

    fn leave_recovery(&mut self, o: &Options) {
        self.state = State::Open;
        if o.recovery.variant != Variant::Sack {
            self.recover += o.recovery.past_timeout; // ns-2's Sack1 asks for it after a timeout only.
            // RFC 6582 §3.2 step 3, option 1: no burst.
            self.cwnd = self.ssthresh.min(f64::from(self.outstanding().max(1)) + 1.0);
        }
    }

    /// To a share of what is in the network (RFC 5681 eq. 4: half). Returns the window that it leaves.
    pub(super) fn lower_threshold(&mut self, o: &Options) -> f64 {
        let flight = f64::from(self.outstanding()).min(self.cwnd);
        let left = o.window.whole(self.control.after_loss(flight));
        self.ssthresh = o.window.threshold(left);
        if o.window.whole_threshold { left.max(1.0) } else { self.ssthresh }
    }
}
