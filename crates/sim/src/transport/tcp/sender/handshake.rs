//! Sends the SYN and handles its answer.

use super::super::options::Options;
use super::{NEVER, Recovery, Sender, State};
use crate::packet::{Packet, Payload, SHORTEST_PACKET, sent_at_echo, tick};

impl Sender {
    /// A connection that begins with a SYN waits for its answer.
    pub(super) fn begin_with_syn(&mut self, now: u64, o: &Options) {
        let core = &mut self.core;
        core.state = State::SynSent;
        core.force = true;
        core.timed_at = now;
        core.restart_timer(now, o);
    }

    /// `packet` becomes the SYN.
    pub(super) fn send_syn(&mut self, now: u64, o: &Options, packet: &mut Packet) {
        self.core.last_sent = now;
        (packet.payload, packet.seq) = (Payload::Syn { tick: tick(now) as u16 }, 0);
        (packet.len, packet.ecn) = (SHORTEST_PACKET, o.ecn.control);
    }

    /// The timer has run out for a SYN: it is sent again.
    pub(super) fn lose_syn(&mut self, now: u64, o: &Options) {
        let core = &mut self.core;
        core.timed_at = NEVER;
        core.back_off(o);
        core.counts.timeouts += 1;
        core.without_ecn = o.handshake.ecn_fallback;
        if let Recovery::Ns2(ns2) = &mut self.recovery {
            ns2.lose_syn(core, o);
        }
        core.force = true;
        core.restart_timer(now, o);
    }

    /// The SYN ACK arrives at `now`. Its timestamp `echo` tells which SYN it answers; `marked`: that SYN had
    /// arrived with a mark.
    pub fn on_syn_ack(&mut self, now: u64, echo: u16, marked: bool, o: &Options) {
        let core = &mut self.core;
        if core.state != State::SynSent {
            return;
        }
        let as_linux = o.recovery.timestamps && !o.handshake.restart_after_loss;
        let rtt = match core.timed_at {
            NEVER => as_linux.then(|| answered_after(core.last_sent, now, echo)),
            sent => Some(now - sent),
        };
        if as_linux && core.backoff.doublings() > 1 {
            core.cwnd = core.cwnd.min(1.0);
        }
        if let Some(rtt) = rtt {
            core.rtt.sample_at(now, now - rtt, o.timer.rto.tick, &mut core.backoff);
            core.backoff.end();
            if let Recovery::Rack(rack) = &mut self.recovery {
                rack.measured(now, rtt);
            }
        } else if o.handshake.restart_after_loss {
            // RFC 5681 §3.1, RFC 6298 §5.7.
            core.cwnd = core.cwnd.min(1.0);
            core.backoff.begin_slowly();
        }
        core.timed_at = NEVER;
        core.deadline = NEVER;
        core.force = false;
        core.state = State::Open;
        if marked {
            self.begin_with_one();
        }
    }

    /// A mark met its SYN or SYN-ACK: the initial window is one packet (ECN++ §3.2.1.3, §3.2.2.2).
    pub fn begin_with_one(&mut self) {
        self.core.cwnd = self.core.cwnd.min(1.0);
        self.core.counts.ecn_reductions += 1;
    }
}

/// How long ago the SYN was sent whose `echo` comes: exactly if it is the `last` one, else to a tick.
fn answered_after(last: u64, now: u64, echo: u16) -> u64 {
    let is_last = tick(last) as u16 == echo;
    now - if is_last { last } else { sent_at_echo(now, echo) }
}
