//! Losses told by time: RACK-TLP (RFC 8985), with proportional rate reduction (RFC 6937).
//!
//! A packet is lost if one that was sent later has arrived, the window of reordering ago: a quarter of
//! the least round trip, and until packets were seen to overtake each other none from three selective
//! acknowledgements on. So are retransmissions. A probe tells of losses at the end of what was sent.
//! The window goes down in proportion to what arrives, after losses and after ECN echoes.
//! Every acknowledgement is a sample of the round trip, as timestamps (RFC 7323) allow.
//!
//! With timestamps a repair ends as if it had never begun, once an acknowledgement echoes that what
//! moved it was sent before: nothing had been lost (RFC 3522, RFC 4015; Linux).
//!
//! Left out: the window of reordering does not grow with duplicate SACKs (§6.2, step 4), and nothing
//! but an echo tells that a repair was needless (no F-RTO, no duplicate SACK).

use super::delivery::Delivery;
use super::marks::Marks;
use super::{DUPLICATES, LEAST_SSTHRESH, NEVER, Sender, State};
use crate::packet::{Packet, Payload};
use crate::transport::tcp::Options;
use crate::transport::tcp::control::Repair;

/// What the deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Timer {
    #[default]
    Timeout,
    /// A loss probe (§7.2).
    Probe,
    /// The window of reordering of the first packet that may be lost ends (§6.2, step 5).
    Reordering,
}

/// Beside the time at which a packet was sent: it had been sent before.
const AGAIN: u64 = 1 << 63;

/// What RACK knows of a connection, in packets and ns.
#[derive(Clone, Default, Debug)]
pub(super) struct Rack {
    /// When each packet was sent last, and with [`AGAIN`] whether not for the first time: number n at
    /// place n modulo the length, a power of two. What is sent at one time is a nanosecond apart, so
    /// that times are in the order of sending.
    sent_at: Box<[u64]>,
    last: u64,
    /// When the last sent of what has arrived was sent.
    newest: u64,
    /// The round trip of that one.
    rtt: u64,
    min_rtt: u64,
    /// With AccECN.
    marks: Marks,
    /// The last sample of the round trip, for who measures.
    pub(super) sample: Option<u64>,
    /// What was sent before this and has not arrived is lost.
    lost_before: u64,
    /// Past the highest packet that has arrived (RACK.fack), and whether one that was sent once has come
    /// after a higher one.
    highest: u32,
    reordering: bool,
    timer: Timer,
    /// The last packet before the last timeout was sent then.
    before_timeout: u64,
    /// `lost_before` then.
    lost_before_then: u64,
    /// The window and the slow-start threshold before the repair that goes on.
    before_repair: Option<[f64; 2]>,
    /// With timestamps: how many repairs have begun; wraps.
    repairs: u8,
    /// A probe is due, whatever the window.
    probe: bool,
    /// RFC 6937: delivered and sent since the reduction began, and the window then.
    delivered: u32,
    out: u32,
    before: u32,
    /// Packets lost, as they were counted last.
    lost: u32,
    start: HyStart,
    /// What a model of the path is told.
    pub(super) delivery: Option<Delivery>,
}

impl Rack {
    /// That of a new connection.
    pub(super) fn new(o: &Options) -> Self {
        Self { delivery: o.has_model.then(Delivery::default), ..Self::default() }
    }

    /// Packet `seq` is sent; those of `una..end` are under way.
    fn sent(&mut self, now: u64, seq: u32, again: bool, [una, end]: [u32; 2]) {
        if (end - una) as usize > self.sent_at.len() {
            self.grow(una, end);
        }
        let at = self.place(seq);
        self.last = now.max(self.last + 1);
        self.sent_at[at] = self.last | if again { AGAIN } else { 0 };
        self.out += 1;
    }

    #[cold]
    fn grow(&mut self, una: u32, end: u32) {
        let length = ((end - una) as usize).next_power_of_two().max(16);
        let mut larger = vec![0; length].into_boxed_slice();
        for n in una..una + self.sent_at.len() as u32 {
            larger[n as usize & (length - 1)] = self.sent_at[self.place(n)];
        }
        self.sent_at = larger;
    }

    fn place(&self, n: u32) -> usize {
        n as usize & (self.sent_at.len() - 1)
    }

    fn at(&self, n: u32) -> u64 {
        self.sent_at[self.place(n)] & !AGAIN
    }

    /// Whether `n` was sent more than once.
    fn is_again(&self, n: u32) -> bool {
        self.sent_at[self.place(n)] & AGAIN != 0
    }

    /// Packet `n` has arrived, `highest` is of the acknowledgements before; `first` is the first round
    /// trip of this acknowledgement.
    #[inline]
    fn arrived(&mut self, now: u64, n: u32, was_late: bool, first: &mut Option<u64>) {
        let at = self.at(n);
        let rtt = now.saturating_sub(at);
        // §6.2, step 3.
        self.reordering |= n < self.highest && !self.is_again(n);
        if let Some(delivery) = &mut self.delivery {
            delivery.on_arrived(now, n, at);
        }
        // What came so soon after it was sent again is what was sent before, as an echo may tell
        // (§6.2, step 2).
        if (was_late || rtt < self.min_rtt) && self.is_again(n) {
            return;
        }
        first.get_or_insert(rtt);
        if at > self.newest {
            (self.newest, self.rtt) = (at, rtt);
        }
    }

    /// Whether `n`, which has not arrived, is lost.
    pub(super) fn is_lost(&self, n: u32) -> bool {
        self.at(n) < self.lost_before
    }

    /// §6.2, step 4: how long after something that was sent later a packet may arrive.
    fn reordering_window(&self, repairing: bool, sacked: u32, srtt: u64) -> u64 {
        if !self.reordering && (repairing || sacked >= DUPLICATES) {
            return 0;
        }
        (self.min_rtt / 4).min(srtt)
    }

    /// §6.2, step 5: with no `window` what was sent before something that has arrived is lost.
    fn find_losses(&mut self, now: u64, window: u64) {
        let late = if window == 0 { u64::MAX } else { (now + 1).saturating_sub(self.rtt + window) };
        self.lost_before = self.lost_before.max(self.newest.min(late));
    }
}

/// `HyStart` (Ha and Rhee 2011): slow start ends when the round trips of a round are longer by an
/// eighth than the least (4 … 16 ms), or its acknowledgements come in one train for half of it.
#[derive(Clone, Default, Debug)]
struct HyStart {
    /// The round ends when this is acknowledged.
    end: u32,
    began: u64,
    /// The last acknowledgement of the train.
    last: u64,
    least: u64,
    samples: u8,
}

/// From this window on, packets; samples a round; spacing in a train, ns.
const HYSTART_WINDOW: f64 = 16.0;
const HYSTART_SAMPLES: u8 = 8;
const HYSTART_SPACING: u64 = 2_000_000;

impl HyStart {
    /// An acknowledgement in slow start: whether it is the end.
    fn is_end(&mut self, now: u64, rtt: u64, min_rtt: u64) -> bool {
        if now - self.last <= HYSTART_SPACING {
            self.last = now;
            if now - self.began > min_rtt / 2 {
                return true;
            }
        }
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
            self.least = if self.samples == 1 { rtt } else { self.least.min(rtt) };
            return false;
        }
        self.least > min_rtt + (min_rtt / 8).clamp(4_000_000, 16_000_000)
    }
}

impl Sender {
    fn rack(&mut self) -> &mut Rack {
        self.rack.get_or_insert_default()
    }

    /// The first packet that is lost.
    fn first_lost(&self) -> Option<u32> {
        let rack = self.rack.as_deref()?;
        (self.una..self.end).find(|&n| !self.sacked.contains(n) && rack.is_lost(n))
    }

    /// Packets in the network: neither acknowledged nor lost.
    pub(super) fn pipe_by_rack(&self) -> u32 {
        let unsacked = self.outstanding() - self.sacked.ones();
        if self.state < State::Recovery {
            return unsacked;
        }
        let Some(rack) = &self.rack else { return unsacked };
        let lost = |n: &u32| !self.sacked.contains(*n) && rack.is_lost(*n);
        unsacked - (self.una..self.end).filter(lost).count() as u32
    }

    /// Whether a packet is lost and not sent again yet.
    pub(super) fn has_lost_by_rack(&self) -> bool {
        self.pipe_by_rack() < self.outstanding() - self.sacked.ones()
    }

    /// Packet `seq` is sent. Returns how many repairs have begun.
    #[inline(never)]
    pub(super) fn sent_with_rack(&mut self, now: u64, seq: u32, again: bool, o: &Options) -> u8 {
        let under_way = [self.una, self.end];
        let rack = self.rack();
        rack.sent(now, seq, again, under_way);
        if o.has_model {
            let at = rack.last;
            self.sent_with_model(at, seq, again);
        }
        if self.outstanding() == 1 {
            self.arm(now, o);
        }
        self.rack().repairs
    }

    /// What is sent while something is being repaired.
    #[inline(never)]
    pub(super) fn next_by_rack(&mut self, o: &Options) -> Option<u32> {
        self.force = false;
        let new = self.next < self.available && self.next - self.una < o.window;
        if std::mem::take(&mut self.rack().probe) {
            // §7.3: new data, or the last packet once more.
            return if new {
                self.next += 1;
                Some(self.next - 1)
            } else {
                self.end.checked_sub(1).filter(|&last| last >= self.una)
            };
        }
        if f64::from(self.pipe_by_rack()) + 1.0 > self.cwnd {
            return None;
        }
        if self.state >= State::Recovery
            && let Some(hole) = self.first_lost()
        {
            self.resent = self.resent.max(hole + 1);
            return Some(hole);
        }
        new.then(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// An acknowledgement arrives.
    #[inline(never)]
    pub(super) fn on_ack_by_rack(&mut self, now: u64, p: &Packet, o: &Options) {
        let Payload::Ack { ece, blocks, repairs, ref sack } = p.payload else { return };
        let (ack, blocks) = (p.seq, &sack[..usize::from(blocks)]);
        if ack < self.una || ack > self.end || self.state < State::Open {
            return;
        }
        let times = [now, self.rtt.srtt()];
        if o.has_model {
            self.check_app_limit();
        }
        let Some(mut rack) = self.rack.take() else { return };
        let state_before = self.state;
        let was_late = ack > self.una && repairs != rack.repairs && state_before >= State::Recovery;
        let acked = ack - self.una;
        let used = f64::from(self.outstanding()) + 1.0 > self.cwnd;
        let before = self.outstanding() - self.sacked.ones();
        let rtt = self.take_arrived(now, ack, blocks, was_late, &mut rack);
        let newly = before - (self.outstanding() - self.sacked.ones());
        let (told, marks) = match o.accecn {
            true => (newly, rack.marks.told(ece, newly)),
            false => (acked, if ece > 0 { acked } else { 0 }),
        };
        let echo = if o.accecn { marks > 0 } else { ece > 0 };
        self.control.on_ack([told, marks], [ack, self.end], times);
        if let Some(rtt) = rtt {
            self.take_rtt(now, rtt, &mut rack, o);
        }
        if acked > 0 {
            self.backoff.end();
        }
        self.rack = Some(rack);

        if was_late {
            self.undo_repair(o);
        }
        self.end_repair(ack, o);
        let marked = self.answer_echo(now, ack, echo, o);
        self.detect_loss(now, o);
        match self.state {
            _ if o.has_model => {
                self.tell_change(now, state_before);
                self.follow_model(now, newly, marked, o);
            }
            State::Reducing | State::Recovery => self.reduce(acked, newly),
            _ if newly > 0 && used && !echo => self.grow(now, newly, o),
            _ if newly > 0 && !used => self.control.unused(now),
            _ => {}
        }
        if acked > 0 || self.deadline == NEVER {
            self.arm(now, o);
        }
    }

    /// Notes what `ack` and the `blocks` above it say has arrived; the round trip of the first of it
    /// that gives one, ns.
    #[inline]
    fn take_arrived(
        &mut self,
        now: u64,
        ack: u32,
        blocks: &[(u16, u16)],
        was_late: bool,
        rack: &mut Rack,
    ) -> Option<u64> {
        let mut first = None;
        for n in self.una..ack {
            if self.sacked.ones() == 0 || !self.sacked.contains(n) {
                rack.arrived(now, n, was_late, &mut first);
            }
        }
        self.sacked.advance(self.una.max(ack));
        for &(from, end) in blocks {
            for n in ack + u32::from(from)..(ack + u32::from(end)).min(self.end) {
                if self.sacked.insert(n) {
                    rack.arrived(now, n, false, &mut first);
                }
            }
        }
        // What the same acknowledgement tells first says nothing of the order.
        let ends = blocks.iter().map(|&(_, end)| (ack + u32::from(end)).min(self.end));
        rack.highest = ends.fold(rack.highest.max(ack), u32::max);
        self.una = ack;
        self.next = self.next.max(ack);
        self.duplicates = self.sacked.ones();
        first
    }

    /// A sample of the round trip, ns.
    #[inline]
    fn take_rtt(&mut self, now: u64, rtt: u64, rack: &mut Rack, o: &Options) {
        self.rtt.sample(rtt, &mut self.backoff);
        rack.sample = Some(rtt);
        if rack.min_rtt == 0 || rtt < rack.min_rtt {
            rack.min_rtt = rtt;
        }
        if self.cwnd < self.ssthresh && self.state == State::Open {
            self.slow_start_round(now, rtt, rack, o);
        }
    }

    /// What was repaired had not been lost: the window and the slow-start threshold are what they
    /// were. A repair without a timeout waits until nothing that it sent again is under way.
    #[cold]
    fn undo_repair(&mut self, o: &Options) {
        let under_way = self.una < self.resent;
        if self.state == State::Recovery && under_way {
            return;
        }
        let Some([cwnd, ssthresh]) = self.rack().before_repair.take() else { return };
        if self.state == State::Loss {
            let rack = self.rack();
            rack.lost_before = rack.lost_before_then;
            self.resent = self.una;
        }
        self.state = State::Open;
        self.tell_reduced = false;
        if !o.has_model {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    /// A repair begins; what is sent from now on says so, unless something that was sent again in the
    /// last one is still to arrive, which is no answer to what was sent first.
    fn begin_repair(&mut self, o: &Options) {
        let before = [self.cwnd, self.ssthresh];
        let new = self.state < State::Recovery && self.una >= self.resent;
        let rack = self.rack();
        rack.before_repair = Some(before);
        rack.repairs = rack.repairs.wrapping_add(u8::from(new && o.timestamps));
    }

    /// A reduction or a repair ends once what was sent before it has arrived.
    #[inline]
    fn end_repair(&mut self, ack: u32, o: &Options) {
        match self.state {
            State::Recovery | State::Loss if ack >= self.recover && o.has_model => {
                self.state = State::Open;
            }
            State::Reducing if ack > self.recover => self.leave_reduction(),
            State::Recovery if ack >= self.recover => self.leave_reduction(),
            State::Loss if ack >= self.recover => self.state = State::Open,
            _ => {}
        }
    }

    /// Answers an ECN echo; whether it is one for the model of the path, once a round trip.
    #[inline]
    fn answer_echo(&mut self, now: u64, ack: u32, echo: bool, o: &Options) -> bool {
        if !echo || !o.ecn {
            return false;
        }
        if o.has_model {
            let marked = ack > self.reduced_at;
            if marked {
                self.reduced_at = self.end;
                self.tell_reduced = true;
            }
            return marked;
        }
        if self.state != State::Open || !self.control.may_reduce(now) {
            return false;
        }
        if self.control.grows_while_reduced() {
            self.on_echo(now, ack, o);
        } else {
            let left = self.control.after_echo(o.whole(self.cwnd), now);
            self.ecn_reductions += 1;
            self.begin_reduction(left.max(o.least_window), o);
            self.state = State::Reducing;
            self.recover = self.end;
        }
        false
    }

    /// A sample of the round trip in slow start.
    fn slow_start_round(&mut self, now: u64, rtt: u64, rack: &mut Rack, o: &Options) {
        let start = &mut rack.start;
        let over = self.una > start.end;
        if !o.rfc8312 {
            if over {
                start.end = self.end;
            }
            if self.control.on_slow_start_sample(rtt, over, false) {
                self.ssthresh = self.cwnd;
            }
            return;
        }
        if over {
            *start = HyStart { end: self.end, began: now, last: now, ..HyStart::default() };
        }
        let watched = self.control.has_hystart() && self.cwnd >= HYSTART_WINDOW;
        if start.is_end(now, rtt, rack.min_rtt) && watched {
            self.ssthresh = self.cwnd;
        }
    }

    /// The window is to go down to `left` packets.
    fn begin_reduction(&mut self, left: f64, o: &Options) {
        self.ssthresh = o.whole(left).max(LEAST_SSTHRESH);
        self.tell_reduced = o.ecn;
        let before = (self.cwnd as u32).max(1);
        let rack = self.rack();
        (rack.delivered, rack.out, rack.before, rack.lost) = (0, 0, before, 0);
    }

    fn leave_reduction(&mut self) {
        self.state = State::Open;
        self.cwnd = self.ssthresh;
    }

    /// RFC 6937 §3, with slow start bounded by what arrived while nothing more is lost.
    fn reduce(&mut self, acked: u32, newly: u32) {
        let pipe = self.pipe_by_rack();
        let lost = self.outstanding() - self.sacked.ones() - pipe;
        let least = self.ssthresh as u32;
        let recovery = self.state == State::Recovery;
        let rack = self.rack();
        rack.delivered += newly;
        let more = lost > std::mem::replace(&mut rack.lost, lost);
        let send = if pipe > least {
            let whole =
                (u64::from(rack.delivered) * u64::from(least)).div_ceil(u64::from(rack.before));
            (whole as u32).saturating_sub(rack.out)
        } else if acked > 0 && !more {
            (least - pipe).min(rack.delivered.saturating_sub(rack.out).max(newly) + 1)
        } else {
            (least - pipe).min(newly)
        };
        let send = if recovery && rack.out == 0 { send.max(1) } else { send };
        self.cwnd = f64::from(pipe + send);
    }

    /// §6.2, step 5: finds what is lost, has it repaired, and waits for what may be. As long as one that
    /// was sent again has not arrived, the next repair follows upon the last (RFC 6675 §5, step 2; Linux).
    /// One that is lost after a timeout begins a repair as well, or a window that opens again would do so
    /// whatever is lost (Linux).
    fn detect_loss(&mut self, now: u64, o: &Options) {
        let sacked = self.sacked.ones();
        let open = self.state < State::Recovery;
        let tells = !open || sacked > 0;
        let mut window = self.reordering_window();
        if tells {
            self.rack().find_losses(now, window);
        }
        let begins = match self.state {
            State::Loss => self.has_lost_repair(),
            State::Recovery => false,
            _ => self.una < self.resent || sacked > 0 && self.first_lost().is_some(),
        };
        if begins {
            self.enter_recovery_by_rack(o);
            self.deadline = now + self.timeout(o);
            self.rack().timer = Timer::Timeout;
            window = self.reordering_window();
            self.rack().find_losses(now, window);
        }
        let due = (tells || begins).then(|| self.first_due(window)).flatten();
        if let Some(due) = due {
            self.deadline = due.max(now + 1);
            self.rack().timer = Timer::Reordering;
        } else if self.rack().timer == Timer::Reordering {
            self.deadline = now + self.timeout(o);
            self.rack().timer = Timer::Timeout;
        }
    }

    fn reordering_window(&self) -> u64 {
        let (repairing, sacked) = (self.state >= State::Recovery, self.sacked.ones());
        let rack = self.rack.as_deref();
        rack.map_or(0, |rack| rack.reordering_window(repairing, sacked, self.rtt.srtt()))
    }

    /// When the first packet that may be lost is. The RFC waits for the last of them; an acknowledgement
    /// that came meanwhile would tell of each by itself, and so does this.
    fn first_due(&self, window: u64) -> Option<u64> {
        let rack = self.rack.as_deref().filter(|_| window > 0)?;
        (self.una..self.end)
            .find(|&n| {
                let at = rack.at(n);
                (rack.lost_before..rack.newest).contains(&at) && !self.sacked.contains(n)
            })
            .map(|n| rack.at(n) + rack.rtt + window)
    }

    /// Whether something that was sent again after the timeout is lost, too.
    fn has_lost_repair(&self) -> bool {
        let Some(rack) = &self.rack else { return false };
        (self.una..self.end).any(|n| {
            let sent_since = rack.at(n) > rack.before_timeout;
            sent_since && rack.is_again(n) && rack.is_lost(n) && !self.sacked.contains(n)
        })
    }

    /// While the window goes down after an echo it goes on doing so to the end of that reduction, as in
    /// Linux.
    fn enter_recovery_by_rack(&mut self, o: &Options) {
        let reducing = self.state == State::Reducing;
        self.begin_repair(o);
        self.state = State::Recovery;
        if reducing {
            self.rack().before_repair = None;
            return;
        }
        self.recover = self.end;
        if o.has_model {
            self.tell_reduced = o.ecn;
        } else {
            let left = self.control.after_loss(o.whole(self.cwnd));
            self.begin_reduction(left, o);
        }
    }

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
    pub(super) fn on_timer_by_rack(&mut self, now: u64, o: &Options) {
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
                    self.begin_repair(o);
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
