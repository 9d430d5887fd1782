//! The sending half of a TCP connection.
//!
//! Sequence numbers count packets of one MSS. The sender is a state machine without I/O: it is told
//! what arrives and what time it is, and asked what to send next until it has nothing
//! ([`Sender::next`]).

mod delivery;
mod handshake;
mod hystart;
mod idle;
mod least;
pub(super) mod marks;
mod model;
mod rack;
mod repairs;
mod sack1;
mod scoreboard;

use super::bits::Bits;
use super::control::Control;
use super::control::{AckInfo, Event, Growth, Pace, RoundTrip, Times};
use super::options::{Options, Pacing, Variant};
use super::rtt::{Backoff, RttEstimator};
use crate::packet::{Packet, Payload, tick};
use rack::Rack;
use sack1::{Notes, WAIT_DOUBLED};

/// Three duplicates mean loss (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;
/// No timer is running.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum State {
    /// Not started.
    Closed,
    /// A SYN is on its way.
    SynSent,
    /// No loss is being repaired.
    Open,
    /// The window goes down after an ECN echo, until more than `recover` is acknowledged (with
    /// [`Rack`] only; without it the window goes down at once).
    Reducing,
    /// Fast recovery, until everything below `recover` is acknowledged.
    Recovery,
    /// After a timeout, until everything below `recover` is acknowledged: duplicates mean nothing
    /// (RFC 6582 §4).
    Loss,
}

/// The sender's state, in packets and ns.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Below one packet after an ECN echo that makes the sender wait for its timer (RFC 3168 §6.1.2).
    cwnd: f64,
    ssthresh: f64,
    control: Control,
    rtt: RttEstimator,
    backoff: Backoff,
    /// When the retransmission timer expires.
    deadline: u64,
    /// When the packet `timed_seq` was sent, whose round trip is being measured; [`NEVER`]: none.
    timed_at: u64,
    last_sent: u64,
    sacked: Bits,
    /// With RACK: what it knows.
    rack: Option<Box<Rack>>,
    timed_seq: u32,
    /// The oldest packet that is not acknowledged.
    una: u32,
    /// The next packet to send; goes back to `una` after a timeout.
    next: u32,
    /// Past the highest packet ever sent.
    end: u32,
    /// Past the last packet that the application has given.
    available: u32,
    recover: u32,
    /// `end` at the last reduction: until it is acknowledged there is no second one. With ns-2's recovery
    /// `recover` says that, and this is what it counts under way.
    reduced_at: u32,
    /// SACK: past the highest packet retransmitted in this recovery, and after a timeout past that for which the
    /// timer ran out; with RACK, past the highest ever, but for probes.
    resent: u32,
    duplicates: u32,
    state: State,
    /// The oldest packet has to be sent again, whatever the window.
    force: bool,
    /// The next packet carries CWR. RFC 3168 §6.1.2 and §6.1.5 want it on the first new packet, ns-2
    /// and this on the first of any kind: until then the receiver would echo what is answered already.
    tell_reduced: bool,
    /// The handshake ended without ECN: what is sent is not ECN-capable.
    without_ecn: bool,
    /// The last acknowledgement carried an echo that found the window at one packet.
    echoed_at_one: bool,
    /// That echo has doubled the timeout of the timer that runs; with ns-2's recovery what this remembers.
    notes: Notes,
    /// Packets sent again.
    pub retransmits: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Reductions of the window because of an ECN echo.
    pub ecn_reductions: u32,
}

impl Default for Sender {
    fn default() -> Self {
        Self {
            cwnd: 0.0,
            ssthresh: f64::INFINITY,
            control: Control::default(),
            rtt: RttEstimator::default(),
            backoff: Backoff::default(),
            deadline: NEVER,
            timed_at: NEVER,
            last_sent: 0,
            sacked: Bits::default(),
            rack: None,
            timed_seq: 0,
            una: 0,
            next: 0,
            end: 0,
            available: 0,
            recover: 0,
            reduced_at: 0,
            resent: 0,
            duplicates: 0,
            state: State::Closed,
            force: false,
            tell_reduced: false,
            without_ecn: false,
            echoed_at_one: false,
            notes: Notes::default(),
            retransmits: 0,
            timeouts: 0,
            ecn_reductions: 0,
        }
    }
}

impl Sender {
    /// Opens the connection.
    pub fn start(&mut self, now: u64, o: &Options) {
        debug_assert!(self.state == State::Closed, "started twice");
        self.cwnd = o.window.initial;
        self.control.renew(o);
        if o.timer.rto.tick > 0 {
            self.backoff.tick();
        }
        self.rack = (o.recovery.variant == Variant::Rack).then(|| Box::new(Rack::new(o)));
        if o.control.has_model {
            self.ssthresh = 0.0; // There is no slow start: the model has its own.
        }
        if o.handshake.syn {
            self.state = State::SynSent;
            self.force = true;
            self.timed_at = now;
            self.deadline = now + self.timeout(o);
        } else {
            self.state = State::Open;
        }
    }

    /// Lets its congestion control draw from `rng`.
    pub fn draw_from(&mut self, rng: aqm::Rng, o: &Options) {
        self.control.renew(o);
        self.control.draw_from(rng);
    }

    /// Begins anew, closed, for another connection; the memory and the counts are kept.
    pub fn renew(&mut self) {
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.restart();
        let control = std::mem::take(&mut self.control);
        let &mut Self { retransmits, timeouts, ecn_reductions, .. } = self;
        *self = Self { sacked, control, retransmits, timeouts, ecn_reductions, ..Self::default() };
    }

    /// Whether it has not been started.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The application gives `packets` more to send.
    pub fn offer(&mut self, packets: u32) {
        if self.rack.is_some() {
            self.check_app_limit();
        }
        self.available = self.available.saturating_add(packets);
    }

    /// The application withdraws what was not sent yet.
    pub fn withdraw(&mut self) {
        self.available = self.end;
    }

    /// Whether everything that the application has given was sent.
    #[inline]
    pub fn has_nothing_left(&self) -> bool {
        self.next >= self.available
    }

    /// What may be sent has waited at the host until `now`: it was not idle meanwhile.
    pub fn on_wait_over(&mut self, now: u64) {
        self.last_sent = now;
    }

    /// How many packets are acknowledged, all from the first on.
    pub fn acknowledged(&self) -> u32 {
        self.una
    }

    /// When [`Sender::on_timer`] is due, in ns; `u64::MAX` for never.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// The congestion window in packets.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// How long after a packet a paced sender sends the next, ns: a round trip over what the window
    /// holds, less in slow start, where it is to double, up to half of the threshold; or as the control
    /// says.
    pub fn pace(&self) -> u64 {
        let gain = match self.control.pace(self.rtt.srtt()) {
            Pace::Gap(gap) => return gap,
            Pace::Gain(_) if self.cwnd < self.ssthresh / 2.0 => 2.0,
            Pace::Gain(gain) => gain,
        };
        (self.rtt.srtt() as f64 / (gain * self.cwnd.max(1.0))) as u64
    }

    /// The smoothed round-trip time in ns; 0 before the first sample.
    pub fn srtt(&self) -> u64 {
        self.rtt.srtt()
    }

    /// The round trip that `packet`, which answers this connection and comes at `now`, is a sample of, ns,
    /// as long as it is not handled. With RACK only that of a handshake.
    pub fn sample(&self, now: u64, packet: &Packet) -> Option<u64> {
        let answers = match packet.payload {
            Payload::SynAck { .. } => self.state == State::SynSent,
            Payload::Ack { .. } => {
                let acked = self.timed_seq < packet.seq && packet.seq <= self.end;
                self.rack.is_none() && self.state >= State::Open && acked
            }
            _ => false,
        };
        (answers && self.timed_at != NEVER).then(|| now - self.timed_at)
    }

    /// The sample of the round trip that the last acknowledgement was with RACK, ns; once.
    pub fn take_sample(&mut self) -> Option<u64> {
        self.rack.as_mut()?.sample.take()
    }

    fn times(&self, now: u64) -> Times {
        Times { now, srtt: self.rtt.srtt() }
    }

    fn outstanding(&self) -> u32 {
        self.end - self.una
    }

    /// The window in packets that may be outstanding.
    fn window(&self, o: &Options) -> u32 {
        let mut window = self.cwnd as u32;
        if self.state == State::Open {
            window += self.duplicates.min(o.recovery.limited_transmit);
        }
        window.min(o.window.receiver)
    }

    /// Whether nothing can be sent before an acknowledgement or the timer, whatever is given.
    pub fn is_held(&self, o: &Options) -> bool {
        matches!(self.state, State::Open | State::Loss)
            && self.deadline != NEVER
            && self.window(o) <= self.next - self.una
            && !(self.force || o.recovery.variant == Variant::Rack || o.pacing != Pacing::None)
    }

    /// How many new packets may be sent at `now`, if nothing is being repaired: then
    /// [`Sender::next_new`] gives them, and there are no others.
    pub fn room(&mut self, now: u64, o: &Options) -> Option<u32> {
        // What was selectively acknowledged is not under way: a model's window does not count it.
        let has_holes = o.control.has_model && self.sacked.ones() > 0;
        if has_holes { None } else { self.room_without_model(now, o) }
    }

    /// The same where there is no model.
    #[inline]
    pub fn room_without_model(&mut self, now: u64, o: &Options) -> Option<u32> {
        if self.state != State::Open || self.force {
            return None;
        }
        Some(self.room_in_window(now, o))
    }

    /// Sends the next new packet, for which there is [`Sender::room`]. `packet` is addressed as data of
    /// this flow and becomes it.
    #[inline(always)]
    pub fn next_new(&mut self, now: u64, o: &Options, packet: &mut Packet) {
        debug_assert!(self.next == self.end, "sent before, and nothing is being repaired");
        let seq = self.next;
        self.next += 1;
        self.sent(now, seq, false, o, packet);
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
        if self.state == State::SynSent && std::mem::take(&mut self.force) {
            self.send_syn(now, o, packet);
            return true;
        }
        let seq = self.next_otherwise(now, o);
        if let Some(seq) = seq {
            self.sent(now, seq, seq < self.end, o, packet);
        }
        seq.is_some()
    }

    /// The number of the next packet while something is being repaired.
    #[inline(never)]
    fn next_otherwise(&mut self, now: u64, o: &Options) -> Option<u32> {
        match self.state {
            State::Closed | State::SynSent => None,
            _ if o.recovery.variant == Variant::Rack => self.next_by_rack(o),
            _ if self.force => {
                self.force = false;
                self.resent = self.resent.max(self.una + 1);
                Some(self.una)
            }
            State::Recovery if o.recovery.variant == Variant::Ns2 => {
                self.next_in_recovery_as_sack1(o)
            }
            State::Recovery if o.recovery.variant == Variant::Sack => self.next_by_scoreboard(o),
            State::Loss if o.recovery.variant == Variant::Ns2 => {
                (self.room_behind_timeout_as_sack1(o) > 0).then(|| {
                    self.next += 1;
                    self.next - 1
                })
            }
            _ => (self.room_in_window(now, o) > 0).then(|| {
                self.next += 1;
                self.next - 1
            }),
        }
    }

    /// How many new packets the window has room for.
    #[inline(always)]
    fn room_in_window(&mut self, now: u64, o: &Options) -> u32 {
        let given = self.available.saturating_sub(self.next);
        // With nothing outstanding there is room for a packet, before and after.
        if self.outstanding() == 0 && given > 0 {
            self.after_pause(now, o);
        }
        self.window(o).saturating_sub(self.next - self.una).min(given)
    }

    /// Packet `seq` is sent, `again` or not.
    #[inline(always)]
    fn sent(&mut self, now: u64, seq: u32, again: bool, o: &Options, packet: &mut Packet) {
        if again {
            self.retransmits += 1;
            if self.timed_at != NEVER && seq <= self.timed_seq && o.recovery.variant != Variant::Ns2
            {
                self.timed_at = NEVER; // Karn
            }
        } else {
            self.end = seq + 1;
            self.next = self.end;
            if self.timed_at == NEVER {
                (self.timed_at, self.timed_seq) = (now, seq);
            }
        }
        if self.deadline == NEVER {
            self.deadline = now + self.timeout(o);
        }
        self.last_sent = now;
        packet.seq = seq;
        let cwr = std::mem::take(&mut self.tell_reduced);
        packet.payload = Payload::Data { cwr, tick: 0 };
        packet.ecn = if again | self.without_ecn { o.ecn.again } else { o.ecn.codepoint };
        if o.notes_sending {
            self.note_sending(now, seq, again, o, packet);
        }
    }

    /// What is noted of a packet that is sent. Apart, so that nothing is prepared for it where nothing is.
    #[inline(never)]
    fn note_sending(&mut self, now: u64, seq: u32, again: bool, o: &Options, packet: &mut Packet) {
        if o.recovery.variant == Variant::Rack {
            self.sent_with_rack(now, seq, again, o);
        }
        if let Payload::Data { cwr, .. } = packet.payload {
            let tick = tick(now);
            packet.payload = match o.stamps {
                true => Payload::Stamped { cwr, tick, sent: now.into() },
                false => Payload::Data { cwr, tick },
            };
        }
    }

    /// An acknowledgement arrives.
    #[inline(always)]
    pub fn on_ack(&mut self, now: u64, p: &Packet, o: &Options) {
        if matches!(o.recovery.variant, Variant::Rack | Variant::Ns2) {
            return self.on_ack_otherwise(now, p, o);
        }
        let Payload::Ack { ece, sack, .. } = p.payload else { return };
        let echo = ece > 0;
        let acked = p.seq.wrapping_sub(self.una);
        if acked > self.outstanding() || self.state < State::Open {
            return; // of what was acknowledged before, or never sent
        }
        if self.control.has_state() {
            let marked = if echo { acked } else { 0 };
            let (end, times) = (self.end, self.times(now));
            self.control.on_ack(&AckInfo { acked, marked, ack: p.seq, end, times });
        }
        let news = sack[0].1 > 0 && self.take_sack(p.seq, sack);
        if echo && o.ecn.on {
            self.on_echo(now, p.seq, o);
        }
        if acked > 0 {
            self.on_progress(now, p.seq, echo, o);
        } else if self.outstanding() > 0 {
            if news || o.recovery.variant != Variant::Sack {
                self.on_duplicate(now, o);
            }
        } else if self.cwnd < 1.0 && self.deadline == NEVER {
            self.deadline = now + self.timeout(o); // It waits, though nothing is on its way.
        }
    }

    /// The same where losses are told otherwise than by duplicates as RFCs have them.
    #[inline(never)]
    fn on_ack_otherwise(&mut self, now: u64, p: &Packet, o: &Options) {
        if o.recovery.variant == Variant::Rack {
            self.on_ack_by_rack(now, p, o)
        } else {
            self.on_ack_as_sack1(now, p, o)
        }
    }

    /// An ECN echo. RFC 3168 §6.1.2: at most one reduction a window.
    #[inline(always)]
    fn on_echo(&mut self, now: u64, ack: u32, o: &Options) {
        if ack <= self.reduced_at || self.state == State::Recovery {
            return;
        }
        let at_one = self.cwnd <= 1.0;
        let Some(left) = self.control.after_echo(o.window.whole(self.cwnd), now) else { return };
        let left = o.window.whole(left);
        self.ssthresh = o.window.threshold(left);
        self.reduced_at = self.end;
        self.tell_reduced = true;
        self.ecn_reductions += 1;
        self.cwnd = if left < o.ecn.least_window { o.ecn.least_window } else { left };
        if self.cwnd < 1.0 && at_one && self.echoed_at_one {
            // Less than a packet is left: the timer slows the sender, and twice as much if the
            // packet that it sent last met congestion as well (as ns-2).
            self.back_off(o);
            self.notes = WAIT_DOUBLED;
        }
        self.echoed_at_one = at_one;
    }

    /// Whether with so many packets `under_way` the window grows: it is full, or will be by what the sender
    /// only holds back to space it (RFC 9002 §7.8).
    #[inline(always)]
    fn uses_window(&self, under_way: u32, o: &Options) -> bool {
        f64::from(under_way) + 1.0 > self.cwnd || self.has_more(o)
    }

    /// Whether there is new data for which the receiver's window has room.
    #[inline(always)]
    fn has_more(&self, o: &Options) -> bool {
        self.next < self.available && self.next - self.una < o.window.receiver
    }

    #[inline(always)]
    fn on_progress(&mut self, now: u64, ack: u32, echo: bool, o: &Options) {
        let acked = ack - self.una;
        let window_was_used = self.uses_window(self.next - self.una, o);
        if self.timed_at != NEVER && self.timed_seq < ack {
            self.rtt.sample_at(now, self.timed_at, o.timer.rto.tick, &mut self.backoff);
            if self.cwnd < self.ssthresh
                && self.control.ends_slow_start(RoundTrip {
                    rtt: now - self.timed_at,
                    begins: true,
                    only: true,
                })
            {
                self.ssthresh = self.cwnd;
            }
            self.timed_at = NEVER;
            // The backoff of ECN waits at one packet goes on as long as the echoes do.
            if !(o.ecn.waits_at_one() && echo && self.echoed_at_one) {
                self.backoff.end();
            }
        }
        if !echo {
            (self.echoed_at_one, self.notes) = (false, Notes::default());
        }
        self.una = ack;
        if self.sacked.ones() > 0 {
            self.sacked.advance(ack);
        }
        self.duplicates = 0;
        if self.state == State::Open || !self.on_progress_of_recovery(ack, acked, o) {
            if !window_was_used {
                self.control.on_event(Event::Unused, now);
            } else if !echo {
                self.grow(now, acked, o);
            }
        }
        let waits = self.outstanding() > 0 || self.cwnd < 1.0;
        self.deadline = if waits { now + self.timeout(o) } else { NEVER };
    }

    /// Slow start and congestion avoidance, one acknowledgement (RFC 5681 §3.1).
    #[inline(always)]
    fn grow(&mut self, now: u64, acked: u32, o: &Options) {
        if o.window.count_packets {
            return self.grow_by_packets(now, acked, o);
        }
        self.cwnd += if self.cwnd < self.ssthresh {
            self.control.slow_start()
        } else {
            let (cwnd, times) = (self.cwnd, self.times(now));
            self.control.growth(&Growth { cwnd, whole: cwnd, acked, counted: 1.0, times })
        };
        self.cwnd = self.cwnd.min(o.window.most());
    }

    /// The same, where an acknowledgement counts for all that it acknowledges (RFC 3465), and, as in
    /// Linux, for the whole packets of a window.
    #[inline(never)]
    fn grow_by_packets(&mut self, now: u64, acked: u32, o: &Options) {
        self.cwnd += if self.cwnd < self.ssthresh {
            f64::from(acked) * self.control.slow_start()
        } else {
            let (cwnd, times) = (self.cwnd, self.times(now));
            let (whole, counted) = (o.window.whole(cwnd), f64::from(acked));
            self.control.growth(&Growth { cwnd, whole, acked, counted, times })
        };
        self.cwnd = self.cwnd.min(o.window.most());
    }

    /// The retransmission timeout, ns.
    #[inline(always)]
    pub(super) fn timeout(&self, o: &Options) -> u64 {
        self.rtt.rto(self.backoff, &o.timer.rto)
    }

    fn back_off(&mut self, o: &Options) {
        self.backoff.double(o.timer.forget_rtt);
    }

    /// The time given by [`Sender::deadline`] has come.
    pub fn on_timer(&mut self, now: u64, o: &Options) {
        if o.recovery.variant == Variant::Rack && self.state >= State::Open {
            return self.on_timer_by_rack(now, o);
        }
        self.timed_at = NEVER;
        if self.state == State::SynSent {
            self.back_off(o);
            self.timeouts += 1;
            self.without_ecn = o.handshake.ecn_fallback;
            if o.recovery.variant == Variant::Ns2 {
                self.lose_syn_as_sack1(o);
            }
            self.force = true;
            self.deadline = now + self.timeout(o);
            return;
        }
        if o.recovery.variant == Variant::Ns2 {
            return self.on_timer_as_sack1(now, o);
        }
        if self.outstanding() == 0 {
            // The wait after an echo is over.
            self.notes = Notes::default();
            self.cwnd = 1.0;
            self.deadline = NEVER;
            return;
        }
        // RFC 5681 §3.1, RFC 6298 §5.4–5.6: back to the oldest packet, one at a time.
        self.timeouts += 1;
        // Not twice for the same packet; for another, which was sent since, again (§4.3).
        if self.state != State::Loss || self.una >= self.resent {
            self.lower_threshold(o);
        }
        self.resent = self.una + 1;
        self.control.on_event(Event::TimedOut, now);
        if std::mem::take(&mut self.notes) != WAIT_DOUBLED {
            self.back_off(o);
        }
        self.cwnd = 1.0;
        self.tell_reduced = o.ecn.on;
        self.next = self.una;
        self.recover = self.end + o.recovery.past_timeout;
        // An echo of what was sent before says nothing new; of retransmissions it does, if they can
        // be marked.
        self.reduced_at = if o.ecn.again.capable() { self.una } else { self.end };
        self.sacked.clear();
        self.duplicates = 0;
        self.force = false;
        self.state = State::Loss;
        self.deadline = now + self.timeout(o);
    }
}
