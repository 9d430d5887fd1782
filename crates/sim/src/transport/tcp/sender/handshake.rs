//! What the answer to a SYN tells.

use super::{NEVER, Sender, State};
use crate::transport::tcp::Options;

impl Sender {
    /// The handshake is answered; the SYN came `marked`, and that is told.
    pub fn on_syn_ack(&mut self, now: u64, marked: bool, o: &Options) {
        if self.state == State::SynSent {
            if self.timed_at != NEVER {
                let rtt = now - self.timed_at;
                self.rtt.sample(rtt, &mut self.backoff);
                self.backoff.end();
                if let Some(rack) = &mut self.rack {
                    rack.measured(now, rtt);
                }
            } else if o.restart_after_lost_syn {
                // RFC 5681 §3.1, RFC 6298 §5.7.
                self.cwnd = self.cwnd.min(1.0);
                self.backoff.begin_slowly();
            }
            if marked {
                self.begin_with_one();
            }
            self.timed_at = NEVER;
            self.deadline = NEVER;
            self.force = false;
            self.state = State::Open;
        }
    }

    /// A mark met its SYN or SYN-ACK: the initial window is one packet (ECN++ §3.2.1.3, §3.2.2.2).
    pub fn begin_with_one(&mut self) {
        self.cwnd = self.cwnd.min(1.0);
        self.ecn_reductions += 1;
    }
}
