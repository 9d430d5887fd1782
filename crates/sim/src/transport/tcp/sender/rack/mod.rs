//! Losses told by time: RACK-TLP (RFC 8985), with proportional rate reduction (RFC 6937).
//!
//! A packet is lost if one that was sent later has arrived, the window of reordering ago: a quarter of
//! the least round trip, and until packets were seen to overtake each other none from three selective
//! acknowledgements on. So are retransmissions. A probe tells of losses at the end of what was sent.
//! The window goes down in proportion to what arrives, after losses and after ECN echoes.
//! Every acknowledgement is a sample of the round trip, if it is certain which sending it answers (Karn,
//! RFC 6298 §3): that of a packet that was sent once, or with timestamps the one that the echo tells
//! (RFC 7323 §4). Of each packet only the last sending's time is kept: of one before, the echo itself
//! gives the time, to a tick. A backoff of the timeout ends with a sample, not before.
//!
//! With timestamps a repair ends as if it had never begun, once an acknowledgement echoes that what
//! moved it was sent before: nothing had been lost (RFC 3522, RFC 4015; Linux). If what arrived first was
//! acknowledged in vain, the echo is that of the second sending, which is no proof.
//!
//! Left out: nothing but an echo tells that a repair was needless (no F-RTO, no D-SACK).

mod board;
mod firsts;
mod losses;
mod probes;
mod repairs;
mod timers;
mod widening;

use super::delivery::Delivery;
use super::hystart::HyStart;
use super::least::Least;
use super::marks::Marks;
use super::{NEVER, Sender, State};
use crate::packet::{DUPLICATE, Packet, Payload, SACK_BLOCKS, sent_at_echo, tick};
use crate::transport::tcp::control::{AckInfo, Event};
use crate::transport::tcp::options::{Echo, Options};
use board::Board;
use firsts::Firsts;
use probes::Probe;
use timers::Timer;
use widening::Widening;

/// Beside the time at which a packet was sent: it had been sent before.
const AGAIN: u64 = 1 << 63;
/// As well: the timer ran out for it. Only the oldest has this, until it is sent again.
const TIMED_OUT: u64 = 1 << 62;
/// It has arrived.
const ARRIVED: u64 = 1 << 61;
const FLAGS: u64 = AGAIN | TIMED_OUT | ARRIVED;

/// What RACK knows of a connection, in packets and ns.
#[derive(Clone, Default, Debug)]
pub(super) struct Rack {
    /// When each packet was sent last, with [`FLAGS`]: number n at place n modulo the
    /// length, a power of two. What is sent at one time is a nanosecond apart, so
    /// that times are in the order of sending.
    sent_at: Box<[u64]>,
    last: u64,
    board: Board,
    firsts: Firsts,
    /// When the last sent of what has arrived was sent.
    newest: u64,
    /// The round trip of that one.
    rtt: u64,
    least: Least,
    /// The least round trip, of `least`; 0 before the first sample.
    pub(super) min_rtt: u64,
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
    widening: Widening,
    timer: Timer,
    /// When the timeout is, had nothing else come before.
    timeout_at: u64,
    probe: Probe,
    /// The last packet before the last timeout was sent then.
    before_timeout: u64,
    /// Past the packet for which it ran out.
    timed_out: u32,
    /// `lost_before` then.
    lost_before_then: u64,
    /// The window and the slow-start threshold before the repair that goes on.
    before_repair: Option<[f64; 2]>,
    /// When the last repair began, or the first of those that follow upon each other.
    repaired_since: u64,
    /// RFC 6937: delivered and sent since the reduction began, and the window then.
    delivered: u32,
    out: u32,
    before: u32,
    /// Packets lost, as they were counted last.
    lost: u32,
    pub(super) start: HyStart,
    /// What a model of the path is told.
    pub(super) delivery: Option<Delivery>,
}

/// Whether what was sent at `sent`, to a tick, was sent before `at`. Two sendings of one tick are not told
/// apart.
fn is_before(sent: u64, at: u64) -> bool {
    tick(sent) < tick(at)
}

impl Rack {
    /// That of a new connection.
    pub(super) fn new(o: &Options) -> Self {
        Self { delivery: o.control.has_model.then(Delivery::default), ..Self::default() }
    }

    /// Packet `seq` is sent; those of `una..end` are under way.
    fn sent(&mut self, now: u64, seq: u32, again: bool, [una, end]: [u32; 2]) {
        if (end - una) as usize > self.sent_at.len() {
            self.grow(una, end);
        }
        if again {
            self.take_out(seq);
        }
        let at = self.place(seq);
        if again {
            self.firsts.note([seq, una, end], self.at(seq));
        }
        self.last = now.max(self.last + 1);
        self.sent_at[at] = self.last | if again { AGAIN } else { 0 };
        self.takes_off(self.last, seq);
        self.out += 1;
        self.widening.sent(again);
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
        self.sent_at[self.place(n)] & !FLAGS
    }

    /// Whether `n` was sent more than once.
    fn is_again(&self, n: u32) -> bool {
        self.sent_at[self.place(n)] & AGAIN != 0
    }

    /// A sample of the round trip, ns.
    pub(super) fn measured(&mut self, now: u64, rtt: u64) {
        self.probe.measured();
        self.least.take(now, rtt);
        self.min_rtt = self.least.ns();
    }

    /// Packet `n` has arrived, `highest` is of the acknowledgements before; `late`: it is known that what
    /// came is no answer to the last sending. The round trip of that one otherwise.
    #[inline]
    fn arrived(&mut self, now: u64, n: u32, late: bool) -> Option<u64> {
        let at = self.at(n);
        self.take_out(n);
        let place = self.place(n);
        self.sent_at[place] |= ARRIVED;
        let rtt = now.saturating_sub(at);
        // §6.2, step 3.
        self.reordering |= n < self.highest && !self.is_again(n);
        if let Some(delivery) = &mut self.delivery {
            delivery.on_arrived(now, n, at);
        }
        // What came so soon after it was sent again is what was sent before, as an echo may tell
        // (§6.2, step 2).
        if (late || rtt < self.min_rtt) && self.is_again(n) {
            return None;
        }
        if at > self.newest {
            (self.newest, self.rtt) = (at, rtt);
        }
        Some(rtt)
    }
}

impl Sender {
    fn rack(&mut self) -> &mut Rack {
        self.rack.get_or_insert_default()
    }

    /// Packet `seq` is sent.
    #[inline]
    pub(super) fn sent_with_rack(&mut self, now: u64, seq: u32, again: bool, o: &Options) {
        let under_way = [self.una, self.end];
        let rack = self.rack();
        rack.sent(now, seq, again, under_way);
        if o.control.has_model {
            let at = rack.last;
            self.sent_with_model(at, seq, again);
        }
        if self.outstanding() == 1 && !again {
            self.arm(now, o);
        } else if !again {
            self.schedule_probe(now, o);
        }
    }

    /// What is sent while something is being repaired.
    #[inline(never)]
    pub(super) fn next_by_rack(&mut self, o: &Options) -> Option<u32> {
        self.force = false;
        let new = self.has_more(o);
        // One that had to wait may have had its answer (§7.2: it is for a tail of which nothing is heard).
        if self.rack().probe.take() && self.sacked.ones() == 0 {
            return self.send_probe(new);
        }
        // What the timer ran out for goes whatever is under way.
        let (una, repairs) = (self.una, self.state >= State::Recovery);
        let timed_out = repairs && self.rack().is_timed_out(una);
        if !timed_out && f64::from(self.pipe_by_rack()) + 1.0 > self.cwnd {
            return None;
        }
        if repairs && let Some(hole) = self.first_lost() {
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
        let Payload::Ack { ece, echo, sack } = p.payload else { return };
        let (ack, duplicate, ece) = (p.seq, ece & DUPLICATE > 0, ece & !DUPLICATE);
        if ack < self.una || ack > self.end || self.state < State::Open {
            return;
        }
        let times = self.times(now);
        if o.control.has_model {
            self.check_app_limit();
        }
        let Some(mut rack) = self.rack.take() else { return };
        let state_before = self.state;
        let certain =
            o.recovery.timestamps && ack > self.una && !rack.firsts.confuse(now, self.una);
        let moved_by = certain.then(|| sent_at_echo(now, echo));
        let was_late = state_before >= State::Recovery
            && moved_by.is_some_and(|sent| is_before(sent, rack.repaired_since));
        let acked = ack - self.una;
        let used = self.uses_window(self.outstanding(), o);
        let before = self.outstanding() - self.sacked.ones();
        let rtt = self.take_arrived(now, ack, sack, (moved_by, was_late), &mut rack);
        let newly = before - (self.outstanding() - self.sacked.ones());
        let (told, marked) = match o.ecn.echo == Echo::Counted {
            true => (newly, rack.marks.told(ece, newly)),
            false => (acked, if ece > 0 { acked } else { 0 }),
        };
        let echo = if o.ecn.echo == Echo::Counted { marked > 0 } else { ece > 0 };
        self.control.on_ack(&AckInfo { acked: told, marked, ack, end: self.end, times });
        if let Some(rtt) = rtt {
            self.take_rtt(now, rtt, &mut rack, o);
        }
        self.rack = Some(rack);

        if was_late {
            self.undo_repair(now, o);
        }
        self.end_repair(ack, o);
        let of_probe = self.end_probe(ack, duplicate, o);
        let repaired = state_before >= State::Recovery && self.state < State::Recovery;
        let [una, end] = [self.una, self.end];
        self.rack().widening.follow(duplicate && !of_probe, repaired, [una, end]);
        let marked = self.answer_echo(now, ack, echo, o);
        self.detect_loss(now, o);
        match self.state {
            _ if o.control.has_model => {
                self.tell_change(now, state_before);
                self.follow_model(now, newly, marked, o);
            }
            // What brings nothing new lets nothing out: with nothing under way that would be a window of none.
            State::Reducing if newly > 0 => self.reduce(acked, newly),
            State::Recovery if newly > 0 || state_before != State::Recovery => {
                self.reduce(acked, newly)
            }
            _ if newly > 0 && used && !echo => self.grow(now, newly, o),
            _ if newly > 0 && !used => self.control.on_event(Event::Unused, now),
            _ => {}
        }
        if acked > 0 || self.deadline == NEVER {
            self.arm(now, o);
        }
    }

    /// Notes what `ack` and the `blocks` above it say has arrived. What moved `ack` was sent about
    /// `moved_by`, if that is known, and `was_late` if before the repair. Returns a sample of the round
    /// trip, ns.
    #[inline]
    fn take_arrived(
        &mut self,
        now: u64,
        ack: u32,
        blocks: [(u16, u16); SACK_BLOCKS],
        (moved_by, was_late): (Option<u64>, bool),
        rack: &mut Rack,
    ) -> Option<u64> {
        let (mut sample, una) = (None, self.una);
        let mut is_first = true;
        for n in una..ack {
            if self.sacked.ones() > 0 && self.sacked.contains(n) {
                continue;
            }
            // The first of it moved the acknowledgement, unless others were lost that told more.
            let late = match moved_by {
                Some(sent) if is_first => is_before(sent, rack.at(n)),
                _ => was_late,
            };
            let rtt = rack.arrived(now, n, late);
            if std::mem::take(&mut is_first) {
                sample = match moved_by {
                    _ if !rack.is_again(n) => rtt,
                    Some(sent) => rtt.or(late.then(|| now - sent)),
                    None => None,
                };
            }
        }
        self.sacked.advance(una.max(ack));
        rack.board.advance(una.max(ack));
        for (from, end) in blocks {
            let end = (ack + u32::from(end)).min(self.end);
            let mut n = self.sacked.next_missing(ack + u32::from(from));
            while n < end {
                self.sacked.insert(n);
                // The echo tells nothing of what is beyond a gap.
                let rtt = rack.arrived(now, n, false);
                sample = sample.or(rtt.filter(|_| !rack.is_again(n)));
                n = self.sacked.next_missing(n + 1);
            }
        }
        // What the same acknowledgement tells first says nothing of the order.
        let ends = blocks.iter().map(|&(_, end)| (ack + u32::from(end)).min(self.end));
        rack.highest = ends.fold(rack.highest.max(ack), u32::max);
        self.una = ack;
        self.next = self.next.max(ack);
        self.duplicates = self.sacked.ones();
        sample
    }

    /// A sample of the round trip, ns.
    #[inline]
    fn take_rtt(&mut self, now: u64, rtt: u64, rack: &mut Rack, o: &Options) {
        self.rtt.sample(rtt, &mut self.backoff);
        self.backoff.end();
        rack.sample = Some(rtt);
        rack.measured(now, rtt);
        if self.cwnd < self.ssthresh && self.state == State::Open {
            self.slow_start_round(now, [rtt, rack.min_rtt], &mut rack.start, o);
        }
    }
}
