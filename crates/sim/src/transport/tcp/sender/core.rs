//! What all ways of repairing losses share: the window, the round trip, the numbers, the timer, ECN.

use std::ops::Range;

use super::super::control::{Control, Event, Growth, RoundTrip, Times};
use super::super::options::{AfterIdle, Options, Variant};
use super::super::rtt::{Backoff, RttEstimator};
use super::super::runs::Runs;
use super::{Counts, NEVER, NONE, State};
use crate::packet::{Packet, Payload, Sack};

/// A loose window is larger by this share where each acknowledgement is a sample of the round trip, and by a packet
/// (udp_prague).
const LOOSE: f64 = 0.03;

/// The state that all ways of repairing losses share, in packets and ns.
#[derive(Clone, Debug)]
pub(super) struct Core {
    /// Below one packet after an ECN echo that makes the sender wait for its timer (RFC 3168 §6.1.2).
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    pub(super) control: Control,
    pub(super) rtt: RttEstimator,
    pub(super) backoff: Backoff,
    /// When the retransmission timer expires.
    pub(super) deadline: u64,
    /// When the packet `timed_seq` was sent, whose round trip is being measured; [`NEVER`]: none. RACK measures
    /// all packets, and this way only the handshake.
    pub(super) timed_at: u64,
    pub(super) timed_seq: u32,
    pub(super) last_sent: u64,
    /// The packets that are selectively acknowledged.
    pub(super) sacked: Runs,
    /// The oldest packet that is not acknowledged.
    pub(super) una: u32,
    /// The next packet to send; goes back to `una` after a timeout.
    pub(super) next: u32,
    /// Past the highest packet ever sent.
    pub(super) end: u32,
    /// Past the last packet that the application has given.
    pub(super) available: u32,
    /// The packet that was next when the application had nothing to send; [`NONE`] once it is known what that pause
    /// left of the window.
    pub(super) paused_at: u32,
    /// Packets that have arrived beyond `una`: a duplicate for each, or with RACK those selectively acknowledged.
    pub(super) duplicates: u32,
    pub(super) state: State,
    /// The oldest packet has to be sent again, whatever the window.
    pub(super) force: bool,
    /// The next packet carries CWR. RFC 3168 §6.1.2 and §6.1.5 want it on the first new packet, ns-2
    /// and this on the first of any kind: until then the receiver would echo what is answered already.
    pub(super) tell_reduced: bool,
    /// The handshake ended without ECN: what is sent is not ECN-capable.
    pub(super) without_ecn: bool,
    /// The last acknowledgement carried an echo that found the window at one packet.
    pub(super) echoed_at_one: bool,
    pub(super) counts: Counts,
}

impl Default for Core {
    fn default() -> Self {
        Self {
            cwnd: 0.0,
            ssthresh: f64::INFINITY,
            control: Control::default(),
            rtt: RttEstimator::default(),
            backoff: Backoff::default(),
            deadline: NEVER,
            timed_at: NEVER,
            timed_seq: 0,
            last_sent: 0,
            sacked: Runs::default(),
            una: 0,
            next: 0,
            end: 0,
            available: 0,
            paused_at: 0,
            duplicates: 0,
            state: State::Closed,
            force: false,
            tell_reduced: false,
            without_ecn: false,
            echoed_at_one: false,
            counts: Counts::default(),
        }
    }
}

/// *Numbers.*
impl Core {
    pub(super) fn outstanding(&self) -> u32 {
        self.end - self.una
    }

    /// The numbers of what is outstanding.
    pub(super) fn under_way(&self) -> Range<u32> {
        self.una..self.end
    }

    /// Packets that are outstanding and not selectively acknowledged.
    pub(super) fn missing(&self) -> u32 {
        self.outstanding() - self.sacked.ones()
    }

    /// Whether an acknowledgement up to `ack` says nothing: it was overtaken, or is of what was never sent.
    #[inline(always)]
    pub(super) fn is_stale(&self, ack: u32) -> bool {
        ack.wrapping_sub(self.una) > self.outstanding() || self.state < State::Open
    }

    /// Whether everything that the application has given was sent.
    #[inline]
    pub(super) fn has_nothing_left(&self) -> bool {
        self.next >= self.available
    }

    /// The next number is sent.
    pub(super) fn take_next(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Packet `seq` is sent, `again` or not.
    #[inline(always)]
    pub(super) fn sent(
        &mut self,
        now: u64,
        seq: u32,
        again: bool,
        o: &Options,
        packet: &mut Packet,
    ) {
        if again {
            self.counts.retransmits += 1;
        } else {
            self.end = seq + 1;
            self.next = self.end;
            if self.timed_at == NEVER {
                (self.timed_at, self.timed_seq) = (now, seq);
            }
        }
        if self.deadline == NEVER {
            self.restart_timer(now, o);
        }
        self.last_sent = now;
        packet.seq = seq;
        let cwr = std::mem::take(&mut self.tell_reduced);
        packet.payload = Payload::Data { cwr, tick: 0 };
        packet.ecn = if again | self.without_ecn { o.ecn.again } else { o.ecn.codepoint };
    }

    /// Puts the blocks of `sack` into the scoreboard; true if they tell anything new.
    pub(super) fn take_sack(&mut self, ack: u32, sack: Sack) -> bool {
        self.sacked.advance(self.una.max(ack));
        let mut news = false;
        for block in sack.blocks() {
            self.sacked.insert(self.reported(ack, block), |_| news = true);
        }
        news
    }

    /// The numbers that a block of an acknowledgement up to `ack` reports, of what is outstanding.
    pub(super) fn reported(&self, ack: u32, (first, end): (u32, u32)) -> Range<u32> {
        (ack + first).max(self.una)..(ack + end).min(self.end)
    }
}

/// *The window.*
impl Core {
    /// The window in packets that may be outstanding.
    pub(super) fn window(&self, o: &Options) -> u32 {
        let mut window = self.cwnd as u32;
        if self.state == State::Open {
            window += self.duplicates.min(o.recovery.limited_transmit);
        }
        window.min(o.window.receiver)
    }

    /// How many packets the application has given that are still to be sent.
    #[inline(always)]
    pub(super) fn given(&self) -> u32 {
        self.available.saturating_sub(self.next)
    }

    /// The window of a paced Prague, above `cwnd`: pacing bounds how fast it sends, and the window only
    /// bounds how much is under way while no acknowledgement comes.
    #[inline(never)]
    fn loose_window(&self, o: &Options) -> u32 {
        let held = self.duplicates.min(o.recovery.limited_transmit);
        let more = if self.state == State::Open { held } else { 0 };
        // With one sample in a round trip its average comes late where a queue builds up: the window holds then.
        let share = if o.recovery.variant == Variant::Rack { LOOSE } else { 0.0 };
        let window = ((1.0 + share) * self.cwnd) as u32 + 1;
        (window.max(2) + more).min(o.window.receiver)
    }

    /// How many packets the window has room for, of those `given`.
    #[inline]
    pub(super) fn room(&self, given: u32, o: &Options) -> u32 {
        let window = if o.window.loose { self.loose_window(o) } else { self.window(o) };
        self.room_within(window, given)
    }

    #[inline(always)]
    pub(super) fn room_within(&self, window: u32, given: u32) -> u32 {
        window.saturating_sub(self.next - self.una).min(given)
    }

    /// Whether the window may grow with so many packets `under_way`: it is full, or would be if the sender
    /// did not space its packets (RFC 9002 §7.8). It does not grow where the receiver's window is the smaller
    /// one.
    #[inline(always)]
    pub(super) fn uses_window(&self, under_way: u32, o: &Options) -> bool {
        f64::from(under_way) + 1.0 > self.cwnd
            || self.has_more(o) && self.cwnd <= f64::from(o.window.receiver)
    }

    /// Whether there is new data for which the receiver's window has room.
    #[inline(always)]
    pub(super) fn has_more(&self, o: &Options) -> bool {
        self.next < self.available && self.next - self.una < o.window.receiver
    }

    pub(super) fn times(&self, now: u64) -> Times {
        Times { now, srtt: self.rtt.srtt() }
    }

    /// Slow start and congestion avoidance, one acknowledgement (RFC 5681 §3.1).
    #[inline(always)]
    pub(super) fn grow(&mut self, now: u64, acked: u32, o: &Options) {
        if o.window.count_packets {
            return self.grow_by_packets(now, acked, o);
        }
        self.cwnd += if self.cwnd < self.ssthresh {
            self.control.slow_start()
        } else {
            let (cwnd, times) = (self.cwnd, self.times(now));
            self.control.growth(Growth { cwnd, whole: cwnd, acked, counted: 1.0, times })
        };
    }

    /// [`Core::grow`] where an acknowledgement counts for all that it acknowledges (RFC 3465), and, as in
    /// Linux, for the whole packets of a window.
    #[inline(never)]
    fn grow_by_packets(&mut self, now: u64, acked: u32, o: &Options) {
        let counted = f64::from(acked);
        self.cwnd += if self.cwnd < self.ssthresh {
            counted * self.control.slow_start()
        } else {
            let (cwnd, times) = (self.cwnd, self.times(now));
            let whole = o.window.whole(cwnd);
            self.control.growth(Growth { cwnd, whole, acked, counted, times })
        };
    }

    /// What a pause leaves of the window, if this is one.
    #[inline(always)]
    pub(super) fn end_pause(&mut self, now: u64, o: &Options) {
        let may_restart = o.window.after_idle != AfterIdle::Keep && self.cwnd > o.window.initial;
        if may_restart || self.control.has_state() {
            self.end_long_pause(now, may_restart, o);
        }
    }

    /// A sender is idle as long as the application gives it nothing; what waits for its pacing or for the host is no
    /// pause (RFC 5681 §4.1, RFC 9002 §7.8).
    #[inline(never)]
    fn end_long_pause(&mut self, now: u64, may_restart: bool, o: &Options) {
        if std::mem::replace(&mut self.paused_at, NONE) != self.next {
            return;
        }
        self.control.on_event(Event::Unused, now);
        if may_restart && now - self.last_sent > self.timeout(o) {
            self.restart(now, o);
        }
    }

    /// After an idle period longer than a timeout, the window starts from the initial window (RFC 5681 §4.1);
    /// or it is halved for each timeout of the period, and slow start takes it back to near the old window
    /// (RFC 2861 §3).
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

/// *Round trips and the timer.*
impl Core {
    /// The retransmission timeout, ns.
    #[inline(always)]
    pub(super) fn timeout(&self, o: &Options) -> u64 {
        self.rtt.rto(self.backoff, &o.timer.rto)
    }

    /// Gives the timer a whole timeout from `now` on.
    #[inline(always)]
    pub(super) fn restart_timer(&mut self, now: u64, o: &Options) {
        self.deadline = now + self.timeout(o);
    }

    pub(super) fn back_off(&mut self, o: &Options) {
        self.backoff.double(o.timer.forget_rtt);
    }

    /// An acknowledgement up to `ack`, with an `echo` or not, ends the measurement of the round trip if it
    /// covers the packet that is timed. True if that ends the backoff.
    #[inline(always)]
    pub(super) fn end_timing(&mut self, now: u64, ack: u32, echo: bool, o: &Options) -> bool {
        if self.timed_at == NEVER || self.timed_seq >= ack {
            return false;
        }
        self.rtt.sample_at(now, self.timed_at, o.timer.rto.tick, &mut self.backoff);
        if o.control.rfc8312 {
            self.control.on_rtt(now, now - self.timed_at);
        }
        if self.cwnd < self.ssthresh {
            let rtt = now - self.timed_at;
            if self.control.ends_slow_start(RoundTrip { rtt, begins: true, only: true }) {
                self.ssthresh = self.cwnd;
            }
        }
        self.timed_at = NEVER;
        // The backoff of ECN waits at one packet goes on as long as the echoes do.
        let ends = !(echo && self.echoed_at_one && o.ecn.waits_at_one);
        if ends {
            self.backoff.end();
        }
        ends
    }

    /// An acknowledgement finds nothing outstanding. After an echo that left less than a packet the sender waits
    /// for its timer, though nothing is on its way.
    #[inline(always)]
    pub(super) fn wait_below_one(&mut self, now: u64, o: &Options) {
        if self.cwnd < 1.0 && self.deadline == NEVER && o.ecn.waits_at_one {
            self.restart_timer(now, o);
        }
    }
}

/// *Timeouts and ECN.*
impl Core {
    /// The timer has run out: a window of one packet, from the oldest on.
    pub(super) fn go_back(&mut self, o: &Options) {
        self.cwnd = 1.0;
        self.tell_reduced = o.ecn.on;
        self.next = self.una;
        self.sacked.clear();
        self.duplicates = 0;
        self.force = false;
    }

    /// Answers an ECN echo at once (RFC 3168 §6.1.2). `None` if it is too early for the control, otherwise whether
    /// the timeout was doubled.
    #[inline(always)]
    pub(super) fn answer_echo(&mut self, now: u64, o: &Options) -> Option<bool> {
        let at_one = self.cwnd <= 1.0;
        let left = self.control.after_echo(o.window.whole(self.cwnd), now)?;
        let left = o.window.whole(left);
        self.ssthresh = o.window.threshold(left);
        self.tell_reduced = true;
        self.cwnd = left;
        Some(self.note_echo(at_one, o))
    }

    /// An echo has lowered the window, which was `at_one` packet or not. Where less than a packet is left the
    /// timer slows the sender, and twice as much if the packet that it sent last met congestion as well (as ns-2).
    /// Whether it did.
    #[inline(always)]
    pub(super) fn note_echo(&mut self, at_one: bool, o: &Options) -> bool {
        self.counts.ecn_reductions += 1;
        if self.cwnd < o.ecn.least_window {
            self.cwnd = o.ecn.least_window;
        }
        let doubles = self.cwnd < 1.0 && at_one && self.echoed_at_one && o.ecn.waits_at_one;
        if doubles {
            self.back_off(o);
        }
        self.echoed_at_one = at_one;
        doubles
    }
}
