//! What the answer to a SYN tells.

use super::{NEVER, Sender, State};
use crate::packet::{Packet, Payload, SHORTEST_PACKET, sent_at_echo, tick};
use crate::transport::tcp::Options;

impl Sender {
    /// `packet` becomes the SYN.
    pub(super) fn send_syn(&mut self, now: u64, o: &Options, packet: &mut Packet) {
        self.last_sent = now;
        (packet.payload, packet.seq) = (Payload::Syn { tick: tick(now) as u16 }, 0);
        (packet.len, packet.ecn) = (SHORTEST_PACKET, o.ecn.control);
    }

    /// The handshake is answered, as its `echo` says the SYN that was sent then, which came `marked`, and that
    /// is told.
    pub fn on_syn_ack(&mut self, now: u64, echo: u16, marked: bool, o: &Options) {
        if self.state == State::SynSent {
            let as_linux = o.recovery.timestamps && !o.handshake.restart_after_loss;
            let rtt = match self.timed_at {
                NEVER => as_linux.then(|| self.answered_after(now, echo)),
                sent => Some(now - sent),
            };
            if as_linux && self.backoff.doublings() > 1 {
                self.cwnd = self.cwnd.min(1.0);
            }
            if let Some(rtt) = rtt {
                self.rtt.sample_at(now, now - rtt, o.timer.rto.tick, &mut self.backoff);
                self.backoff.end();
                if let Some(rack) = &mut self.rack {
                    rack.measured(now, rtt);
                }
            } else if o.handshake.restart_after_loss {
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

    /// How long ago that SYN was sent, of which an `echo` tells; of the last exactly, else to a tick.
    fn answered_after(&self, now: u64, echo: u16) -> u64 {
        let is_last = tick(self.last_sent) as u16 == echo;
        now - if is_last { self.last_sent } else { sent_at_echo(now, echo) }
    }

    /// A mark met its SYN or SYN-ACK: the initial window is one packet (ECN++ §3.2.1.3, §3.2.2.2).
    pub fn begin_with_one(&mut self) {
        self.cwnd = self.cwnd.min(1.0);
        self.ecn_reductions += 1;
    }
}
