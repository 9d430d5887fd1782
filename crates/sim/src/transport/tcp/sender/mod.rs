//! The sending half of a TCP connection.
//!
//! Sequence numbers count packets of one MSS. The sender is a state machine without I/O: its caller hands in
//! what arrives and the time, and asks for the next packet until there is none ([`Sender::next`]).
//!
//! A connection finds and repairs losses by one of three sets of rules, each with a state of its own, which is
//! chosen as it begins: duplicates as RFCs have them (`rfc.rs`), time (`rack/`), and what ns-2 does (`ns2.rs`).
//! What they share is in `core.rs`.

mod core;
mod handshake;
mod info;
mod ns2;
mod rack;
mod rfc;

use std::sync::Arc;

use scenario::traffic::TcpName;

use super::control::Pace;
use super::options::{Options, Pacing, Variant};
use crate::control::Setting;
use crate::packet::{Packet, Payload, tick};
use core::Core;
pub use info::{Congestion, Info};
use ns2::Ns2;
use rack::Rack;
#[cfg(test)]
pub(super) use rack::marks::Marks;
use rfc::Rfc;

/// Three duplicates mean loss (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;
/// No timer is running.
const NEVER: u64 = u64::MAX;
/// No packet.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum State {
    /// Not started.
    Closed,
    /// A SYN is on its way.
    SynSent,
    /// No loss is being repaired.
    Open,
    /// The window goes down after an ECN echo (with RACK only; otherwise it goes down at once).
    Reducing,
    /// Fast recovery.
    Recovery,
    /// After a timeout, until what had been sent by then is acknowledged.
    Loss,
}

/// The sender's state.
#[derive(Clone, Default, Debug)]
pub struct Sender {
    core: Core,
    recovery: Recovery,
}

/// How losses are found and repaired. Larger or rarer parts are boxed, so that the sender stays small.
#[derive(Clone, Debug)]
enum Recovery {
    Rfc(Rfc),
    Rack(Box<Rack>),
    Ns2(Box<Ns2>),
}

impl Default for Recovery {
    fn default() -> Self {
        Self::Rfc(Rfc::default())
    }
}

impl Recovery {
    fn new(o: &Options) -> Self {
        match o.recovery.variant {
            Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Sack => Self::default(),
            Variant::Rack => Self::Rack(Box::new(Rack::new(o))),
            Variant::Ns2 => Self::Ns2(Box::default()),
        }
    }
}

/// What a sender has counted.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Packets sent again.
    pub retransmits: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Reductions of the window because of an ECN echo.
    pub ecn_reductions: u32,
}

/// *A connection's life.*
impl Sender {
    /// Opens the connection.
    pub fn start(&mut self, now: u64, o: &Options) {
        debug_assert!(self.is_closed(), "started twice");
        self.core.cwnd = o.window.initial;
        self.core.control.renew(o);
        if o.timer.rto.tick > 0 {
            self.core.backoff.tick();
        }
        self.recovery = Recovery::new(o);
        if o.control.has_model && o.control.name != TcpName::Own {
            self.core.ssthresh = 0.0; // There is no slow start: the model has its own.
        }
        if o.handshake.syn {
            self.begin_with_syn(now, o);
        } else {
            self.core.state = State::Open;
        }
    }

    /// Lets its congestion control draw from `rng`.
    pub fn draw_from(&mut self, rng: aqm::Rng, o: &Options) {
        self.core.control.renew(o);
        self.core.control.draw_from(rng);
    }

    /// Begins anew, closed, for another connection; the memory and the counts are kept.
    pub fn renew(&mut self) {
        let Core { sacked, control, counts, .. } = std::mem::take(&mut self.core);
        *self =
            Self { core: Core { sacked, control, counts, ..Core::default() }, ..Self::default() };
        self.core.sacked.clear();
    }

    /// Whether it has not been started.
    pub fn is_closed(&self) -> bool {
        self.core.state == State::Closed
    }

    /// The application gives `packets` more to send.
    pub fn offer(&mut self, packets: u32) {
        if let Recovery::Rack(rack) = &mut self.recovery {
            rack.check_app_limit(&self.core);
        }
        if self.core.has_nothing_left() {
            self.core.paused_at = self.core.next;
        }
        self.core.available = self.core.available.saturating_add(packets);
    }

    /// The application withdraws what was not sent yet.
    pub fn withdraw(&mut self) {
        self.core.available = self.core.end;
    }
}

/// *What it tells.*
impl Sender {
    /// Whether everything that the application has given was sent.
    #[inline]
    pub fn has_nothing_left(&self) -> bool {
        self.core.has_nothing_left()
    }

    /// How many packets are acknowledged, all from the first on.
    pub fn acknowledged(&self) -> u32 {
        self.core.una
    }

    /// When [`Sender::on_timer`] is due, in ns; `u64::MAX` for never.
    pub fn deadline(&self) -> u64 {
        self.core.deadline
    }

    /// The congestion window in packets.
    pub fn cwnd(&self) -> f64 {
        self.core.cwnd
    }

    /// The counts since the sender was created.
    pub fn counts(&self) -> Counts {
        self.core.counts
    }

    /// The gap between two packets of a paced sender, ns: the round trip divided by the packets in the
    /// window. It is half as long in slow start up to half of the threshold, since the window doubles there.
    /// A control may set it instead.
    pub fn pace(&self, now: u64) -> u64 {
        let Core { cwnd, ssthresh, ref control, .. } = self.core;
        let times = self.core.times(now);
        let gain = match control.pace(times) {
            Pace::Gap(gap) => return gap,
            Pace::Gain(_) if cwnd < ssthresh / 2.0 => 2.0,
            Pace::Gain(gain) => gain,
        };
        (times.srtt as f64 / (gain * cwnd)) as u64
    }

    /// How many packets leave together at `now`.
    pub fn burst(&self, now: u64, o: &Options) -> u64 {
        let min_rtt = if let Recovery::Rack(rack) = &self.recovery { rack.min_rtt } else { 0 };
        o.bursts.size(self.pace(now), min_rtt)
    }

    /// Whether the host waits for further acknowledgements so that more can leave together (Linux,
    /// `tcp_tso_should_defer`).
    pub fn fills_burst(&self, now: u64, o: &Options) -> bool {
        let Recovery::Rack(rack) = &self.recovery else { return false };
        rack.fills_burst(&self.core, now, self.burst(now, o), o)
    }

    /// The smoothed round-trip time in ns; 0 before the first sample.
    pub fn srtt(&self) -> u64 {
        self.core.rtt.srtt()
    }

    /// The controllers of this connection and those after it are brought along.
    pub(crate) fn bring(&mut self, setting: &Arc<Setting>) {
        if let Some(own) = self.core.control.own() {
            own.bring(setting);
        }
    }

    /// Packets that go together, and when the controller wants to be woken (ns), if it is brought along.
    pub(crate) fn own_burst_and_timer(&mut self) -> Option<(u64, u64)> {
        self.core.control.own().map(|own| (own.burst(), own.timer()))
    }

    /// The time that a controller which is brought along has asked for may have come.
    pub(crate) fn on_own_timer(&mut self, now: u64, o: &Options) {
        if let Recovery::Rack(rack) = &self.recovery {
            rack.on_own_timer(&mut self.core, now, o);
        }
    }

    /// The retransmission timeout, ns.
    #[cfg(test)]
    pub(super) fn timeout(&self, o: &Options) -> u64 {
        self.core.timeout(o)
    }

    /// The round trip, ns, that `packet` samples, an answer to this connection that arrives at `now`. To be
    /// called before the packet is handled. With RACK only the handshake gives a sample here.
    pub fn sample(&self, now: u64, packet: &Packet) -> Option<u64> {
        let core = &self.core;
        let answers = match packet.payload {
            Payload::SynAck { .. } => core.state == State::SynSent,
            Payload::Ack { .. } => {
                let acked = core.timed_seq < packet.seq && packet.seq <= core.end;
                !matches!(self.recovery, Recovery::Rack(_)) && core.state >= State::Open && acked
            }
            _ => false,
        };
        (answers && core.timed_at != NEVER).then(|| now - core.timed_at)
    }

    /// The sample of the round trip that the last acknowledgement was with RACK, ns; once.
    pub fn take_sample(&mut self) -> Option<u64> {
        if let Recovery::Rack(rack) = &mut self.recovery { rack.sample.take() } else { None }
    }

    /// Whether nothing can be sent before an acknowledgement or the timer, whatever is given.
    pub fn is_held(&self, o: &Options) -> bool {
        let core = &self.core;
        matches!(core.state, State::Open | State::Loss)
            && core.deadline != NEVER
            && core.window(o) <= core.next - core.una
            && !core.force
            && !matches!(self.recovery, Recovery::Rack(_))
            && o.pacing == Pacing::None
    }
}

/// *What it sends.*
impl Sender {
    /// How many new packets may be sent at `now`, if nothing is being repaired: then
    /// [`Sender::next_new`] gives them, and there are no others.
    pub fn room(&mut self, now: u64, o: &Options) -> Option<u32> {
        // What was selectively acknowledged is not under way: a model's window does not count it.
        let has_holes = o.control.has_model && !self.core.sacked.is_empty();
        if has_holes {
            return None;
        }
        let given = self.given_while_open(now, o)?;
        Some(self.core.room(given, o))
    }

    /// [`Sender::room`] of a sender that is not paced.
    #[inline]
    pub fn unpaced_room(&mut self, now: u64, o: &Options) -> Option<u32> {
        let given = self.given_while_open(now, o)?;
        Some(self.core.room_within(self.core.window(o), given))
    }

    /// How many packets there are to send, if nothing is being repaired.
    #[inline(always)]
    fn given_while_open(&mut self, now: u64, o: &Options) -> Option<u32> {
        let core = &mut self.core;
        if core.state != State::Open || core.force {
            return None;
        }
        let given = core.given();
        // With nothing outstanding there is room for a packet, before and after.
        if core.outstanding() == 0 && given > 0 {
            match &self.recovery {
                Recovery::Ns2(_) => ns2::end_pause(core),
                _ => core.end_pause(now, o),
            }
        }
        Some(given)
    }

    /// Sends the next new packet, for which there is [`Sender::room`]. `packet` is addressed as data of
    /// this flow and becomes it.
    #[inline(always)]
    pub fn next_new(&mut self, now: u64, o: &Options, packet: &mut Packet) {
        debug_assert!(
            self.core.next == self.core.end,
            "sent before, and nothing is being repaired"
        );
        let seq = self.core.take_next();
        self.send(now, seq, false, o, packet);
    }

    /// Whether there is something to send at `now`: ask until there is nothing. `packet` is addressed as
    /// data of this flow and becomes the one to send.
    pub fn next(&mut self, now: u64, o: &Options, packet: &mut Packet) -> bool {
        if let Some(room) = self.room(now, o) {
            if room > 0 {
                self.next_new(now, o, packet);
            }
            return room > 0;
        }
        if self.core.state == State::SynSent && std::mem::take(&mut self.core.force) {
            self.send_syn(now, o, packet);
            return true;
        }
        let seq = self.next_in_repair(o);
        if let Some(seq) = seq {
            self.send(now, seq, seq < self.core.end, o, packet);
        }
        seq.is_some()
    }

    /// The number of the next packet while something is being repaired.
    #[inline(never)]
    fn next_in_repair(&mut self, o: &Options) -> Option<u32> {
        let core = &mut self.core;
        if core.state < State::Open {
            return None;
        }
        match &mut self.recovery {
            Recovery::Rfc(rfc) => rfc.next(core, o),
            Recovery::Rack(rack) => rack.next(core, o),
            Recovery::Ns2(ns2) => ns2.next(core, o),
        }
    }

    /// Packet `seq` is sent, `again` or not.
    #[inline(always)]
    fn send(&mut self, now: u64, seq: u32, again: bool, o: &Options, packet: &mut Packet) {
        self.core.sent(now, seq, again, o, packet);
        if o.notes_sending {
            self.note_sending(now, seq, again, o, packet);
        }
    }

    /// Notes a packet that is sent. Apart, so that the common case prepares nothing for it.
    #[inline(never)]
    fn note_sending(&mut self, now: u64, seq: u32, again: bool, o: &Options, packet: &mut Packet) {
        if let Recovery::Rack(rack) = &mut self.recovery {
            rack.sent(&mut self.core, now, seq, again, o);
        }
        if let Payload::Data { cwr, .. } = packet.payload {
            let tick = tick(now);
            packet.payload = match o.stamps {
                true => Payload::Stamped { cwr, tick, sent: now.into() },
                false => Payload::Data { cwr, tick },
            };
        }
    }
}

/// *What happens to it.*
impl Sender {
    /// An acknowledgement arrives.
    #[inline(always)]
    pub fn on_ack(&mut self, now: u64, p: &Packet, o: &Options) {
        match &mut self.recovery {
            Recovery::Rfc(rfc) => rfc.on_ack(&mut self.core, now, p, o),
            Recovery::Rack(rack) => rack.on_ack(&mut self.core, now, p, o),
            Recovery::Ns2(ns2) => ns2.on_ack(&mut self.core, now, p, o),
        }
    }

    /// A part of packet `seq` is acknowledged. That is no whole packet: only a window that grows by
    /// acknowledgements takes it for one (Savage et al., 1999, §2.1; RFC 3465 counts what is acknowledged).
    #[cold]
    pub(super) fn on_part(&mut self, now: u64, seq: u32, o: &Options) {
        let core = &mut self.core;
        let counts = !o.window.count_packets && !o.control.has_model;
        let is_oldest = seq == core.una && core.outstanding() > 0 && core.state == State::Open;
        if counts && is_oldest && core.uses_window(core.next - core.una, o) {
            core.grow(now, 0, o);
        }
    }

    /// The time given by [`Sender::deadline`] has come.
    pub fn on_timer(&mut self, now: u64, o: &Options) {
        if self.core.state == State::SynSent {
            return self.lose_syn(now, o);
        }
        match &mut self.recovery {
            Recovery::Rfc(rfc) => rfc.on_timer(&mut self.core, now, o),
            Recovery::Rack(rack) => rack.on_timer(&mut self.core, now, o),
            Recovery::Ns2(ns2) => ns2.on_timer(&mut self.core, now, o),
        }
    }
}
