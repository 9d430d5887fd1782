//! Losses told by time: RACK-TLP (RFC 8985), with proportional rate reduction (RFC 9937).
//!
//! A packet is lost if one that was sent later by more than the window of reordering has arrived. That window
//! is a quarter of the least round trip; until packets were seen to overtake each other it is zero from three
//! selective acknowledgements on. Retransmissions are lost by the same rule. A probe finds losses at the end
//! of the data. The window goes down in proportion to the packets that arrive, after losses and after ECN
//! echoes. Every acknowledgement is a sample of the round trip, if it is certain which sending it answers
//! (Karn, RFC 6298 §3): the only sending of a packet, or with timestamps the sending that the echo names (RFC
//! 7323 §4). Only the time of a packet's last sending is kept; for an earlier one the echo itself gives the
//! time, to a tick. A backoff of the timeout ends with a sample, not before.
//!
//! With timestamps a repair ends as if it had never begun, once an acknowledgement echoes that what
//! moved it was sent before: nothing had been lost (RFC 3522, RFC 4015; Linux). If what arrived first was
//! acknowledged in vain, the echo is that of the second sending, which is no proof.
//!
//! With `rfc9002` the window goes down at once, and a controller that is brought along sets it itself
//! (`own.rs`).
//!
//! Left out: nothing but an echo tells that a repair was needless (no F-RTO, no D-SACK).

mod board;
mod bursts;
mod delivery;
mod firsts;
mod hystart;
mod least;
mod losses;
pub(super) mod marks;
mod model;
mod own;
mod probes;
mod repairs;
mod timers;
mod usage;
mod widening;

use std::ops::Range;

use scenario::traffic::TcpName;

use super::{Core, DUPLICATES, NEVER, State};
use crate::packet::{DUPLICATE, Packet, Payload, SACK_BLOCKS, Sack, sent_at_echo, tick};
use crate::transport::tcp::control::{AckInfo, Event};
use crate::transport::tcp::options::{Echo, Options};
use board::Board;
use delivery::Delivery;
use firsts::Firsts;
use hystart::HyStart;
use least::Least;
use marks::Marks;
use own::{Aside, News};
use probes::Probe;
use repairs::{Reduction, Windows};
use timers::Timer;
use usage::Usage;
use widening::Widening;

/// When a packet was sent last, ns, and in the highest bits what else is known of it: there is one for each packet
/// under way.
#[derive(Clone, Copy, Default, Debug)]
struct SentAt(u64);

impl SentAt {
    /// It had been sent before.
    const AGAIN: u64 = 1 << 63;
    /// The timer ran out for it. Only the oldest packet has this, until it is sent again.
    const TIMED_OUT: u64 = 1 << 62;
    const ARRIVED: u64 = 1 << 61;
    const TIME: u64 = Self::ARRIVED - 1;

    fn new(time: u64, again: bool) -> Self {
        Self(time | if again { Self::AGAIN } else { 0 })
    }

    fn time(self) -> u64 {
        self.0 & Self::TIME
    }

    fn is_again(self) -> bool {
        self.0 & Self::AGAIN != 0
    }

    fn is_timed_out(self) -> bool {
        self.0 & Self::TIMED_OUT != 0
    }

    fn has_arrived(self) -> bool {
        self.0 & Self::ARRIVED != 0
    }

    /// Whether it was sent last at `time`, and has not arrived.
    fn is_on_its_way_since(self, time: u64) -> bool {
        self.0 & (Self::ARRIVED | Self::TIME) == time
    }
}

/// What RACK knows of a connection, in packets and ns.
#[derive(Clone, Default, Debug)]
pub(super) struct Rack {
    /// For number n at place n modulo the length, a power of two. Packets sent at the same time are noted a
    /// nanosecond apart, so that times are in the order of sending.
    sent_at: Box<[SentAt]>,
    last: u64,
    board: Board,
    firsts: Firsts,
    /// When the last sent of what has arrived was sent.
    newest: u64,
    /// The round trip of the last packet that an acknowledgement reported (RACK.rtt): of those below its
    /// number, or else of those in its selective blocks, as in Linux.
    rtt: u64,
    least: Least,
    /// The least round trip, of `least`; 0 before the first sample.
    pub(super) min_rtt: u64,
    /// With AccECN.
    marks: Marks,
    /// The last sample of the round trip, for measurements.
    pub(super) sample: Option<u64>,
    /// Packets sent before this that have not arrived are lost.
    lost_before: u64,
    /// Past the highest packet that has arrived (RACK.fack), and by how many packets one that was sent once came after
    /// a higher one at most.
    highest: u32,
    pub(super) reordering: u32,
    usage: Usage,
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
    /// A reduction or a repair ends when everything below is acknowledged.
    recover: u32,
    /// `end` at the last echo that was answered at once, or handed to a model.
    echoed_at: u32,
    /// Past the highest packet that was ever sent again, but for probes.
    resent: u32,
    /// The windows before the present repair.
    before_repair: Option<Windows>,
    /// When the last repair began, or the first of those that follow upon each other.
    repaired_since: u64,
    /// Repairs that were undone.
    pub(super) undone: u32,
    reduction: Reduction,
    start: HyStart,
    /// The samples for a model of the path.
    delivery: Option<Delivery>,
    /// Whether the control is the user's own, and what such a control learns besides.
    own: bool,
    aside: Aside,
    /// A reduction lowers the window at once.
    at_once: bool,
}

/// Whether a packet sent at `sent` (known to a tick) was sent before `at`. Two sendings within one tick count
/// as simultaneous.
fn is_before(sent: u64, at: u64) -> bool {
    tick(sent) < tick(at)
}

impl Rack {
    /// That of a new connection.
    pub(super) fn new(o: &Options) -> Self {
        Self {
            delivery: o.control.has_model.then(Delivery::default),
            own: o.control.name == TcpName::Own,
            at_once: o.recovery.at_once,
            ..Self::default()
        }
    }

    /// Whether the control has a model of the path.
    fn has_model(&self) -> bool {
        self.delivery.is_some()
    }

    /// Packet `seq` is sent.
    #[inline]
    pub(super) fn sent(&mut self, core: &mut Core, now: u64, seq: u32, again: bool, o: &Options) {
        self.note_sending(now, seq, again, core.under_way());
        if self.has_model() {
            self.tell_sending(core, now, seq, again, o);
        }
        if core.outstanding() == 1 && !again {
            self.arm(core, now, o);
        } else if !again {
            self.schedule_probe(core, now, o);
        }
    }

    /// Packet `seq` is sent, one of those `under_way`.
    fn note_sending(&mut self, now: u64, seq: u32, again: bool, under_way: Range<u32>) {
        if under_way.len() > self.sent_at.len() {
            self.grow(&under_way);
        }
        if again {
            self.take_out(seq);
        }
        let at = self.place(seq);
        if again {
            self.firsts.note(seq, under_way, self.sent_at[at].time());
        }
        self.last = now.max(self.last + 1);
        self.sent_at[at] = SentAt::new(self.last, again);
        self.takes_off(self.last, seq);
        self.reduction.out += 1;
        self.widening.sent(again);
    }

    #[cold]
    fn grow(&mut self, under_way: &Range<u32>) {
        let length = under_way.len().next_power_of_two().max(16);
        let mut larger = vec![SentAt::default(); length].into_boxed_slice();
        for n in under_way.start..under_way.start + self.sent_at.len() as u32 {
            larger[n as usize & (length - 1)] = self.sent_at[self.place(n)];
        }
        self.sent_at = larger;
    }

    fn place(&self, n: u32) -> usize {
        n as usize & (self.sent_at.len() - 1)
    }

    fn sent_at(&self, n: u32) -> SentAt {
        self.sent_at[self.place(n)]
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
        let sent = self.sent_at(n);
        let (at, is_again) = (sent.time(), sent.is_again());
        self.take_out(n);
        let place = self.place(n);
        self.sent_at[place].0 |= SentAt::ARRIVED;
        let rtt = now.saturating_sub(at);
        // §6.2, step 3.
        if n < self.highest && !is_again {
            self.reordering = self.reordering.max(self.highest - n);
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.on_arrived(now, n, at);
        }
        // What came so soon after it was sent again is what was sent before, as an echo may tell
        // (§6.2, step 2).
        if (late || rtt < self.min_rtt) && is_again {
            return None;
        }
        self.rtt = rtt;
        self.newest = self.newest.max(at);
        Some(rtt)
    }
}

/// When the packet was sent that moved an acknowledgement, by the timestamp that it echoes.
#[derive(Clone, Copy)]
struct MovedBy {
    /// About when it was sent, if that is certain.
    sent: Option<u64>,
    /// It was sent before the present repair.
    late: bool,
}

impl Rack {
    /// The next packet while something is being repaired.
    #[inline(never)]
    pub(super) fn next(&mut self, core: &mut Core, o: &Options) -> Option<u32> {
        core.force = false;
        let new = core.has_more(o);
        // A probe that had to wait may be needless by now: it is for a tail of which nothing is heard (§7.2).
        if self.probe.take() && core.sacked.is_empty() {
            return self.send_probe(core, new);
        }
        // What the timer ran out for goes whatever is under way.
        let repairs = core.state >= State::Recovery;
        let timed_out = repairs && self.sent_at(core.una).is_timed_out();
        if !timed_out && f64::from(self.pipe(core)) + 1.0 > core.cwnd {
            return None;
        }
        if repairs && let Some(hole) = self.first_lost(core) {
            self.resent = self.resent.max(hole + 1);
            return Some(hole);
        }
        new.then(|| core.take_next())
    }

    /// An acknowledgement arrives.
    #[inline(never)]
    pub(super) fn on_ack(&mut self, core: &mut Core, now: u64, p: &Packet, o: &Options) {
        let Payload::Ack { ece, echo, sack } = p.payload else { return };
        let (ack, duplicate, ece) = (p.seq, ece & DUPLICATE > 0, ece & !DUPLICATE);
        if core.is_stale(ack) {
            return self.on_stale_ack(core, now, ack, sack, o);
        }
        let times = core.times(now);
        self.check_app_limit(core);
        let (state_before, acked) = (core.state, ack - core.una);
        let moved_by = self.moved_by(core, now, acked, echo, o);
        self.usage.note(core.under_way(), core.uses_window(self.pipe(core), o));
        let before = core.missing();
        let rtt = self.take_arrived(core, now, ack, sack.blocks(), moved_by);
        let newly = before - core.missing();
        let (told, marks) = match o.ecn.echo {
            Echo::Counted => (newly, self.marks.told(ece, newly)),
            _ => (acked, if ece > 0 { acked } else { 0 }),
        };
        let echo = if o.ecn.echo == Echo::Counted { marks > 0 } else { ece > 0 };
        core.control.on_ack(&AckInfo { acked: told, marked: marks, ack, end: core.end, times });
        if let Some(rtt) = rtt {
            self.take_rtt(core, now, rtt, o);
        }
        if moved_by.late {
            self.undo_repair(core, now, o);
        }
        let state_repairing = core.state;
        self.end_repair(core, ack);
        if self.own {
            self.tell_own_end(core, now, state_repairing);
        }
        let of_probe = self.end_probe(core, now, (ack, duplicate), o);
        let repaired = state_before >= State::Recovery && core.state < State::Recovery;
        self.widening.follow(duplicate && !of_probe, repaired, core.under_way());
        let marked = self.answer_echo(core, now, ack, echo, o);
        self.detect_loss(core, now, o);
        // What selective acknowledgements alone tell lets new packets out (RFC 3042), which is not for a window that
        // grows as well (RFC 5681 §3.1) unless packets overtake each other by far (Linux).
        let in_order = acked > 0 || self.reordering > DUPLICATES || self.at_once;
        let used = self.usage.lets_grow(core.cwnd, core.cwnd < core.ssthresh);
        match core.state {
            _ if self.own => {
                let news = News { newly, marked: marks, echo, rtt, used };
                self.follow_own(core, now, news, o);
            }
            _ if self.has_model() => {
                self.tell_change(core, now, state_before);
                self.follow_model(core, now, newly, (marks, marked), o);
            }
            // What brings nothing new lets nothing out: with nothing under way that would be a window of none.
            State::Reducing if newly > 0 => self.reduce(core, acked, newly, o),
            State::Recovery if newly > 0 || state_before != State::Recovery => {
                self.reduce(core, acked, newly, o);
            }
            _ if newly > 0 && used && in_order && !echo => core.grow(now, newly, o),
            // Prague: the others of what is acknowledged with a mark.
            _ if marks < newly && used && in_order && core.control.grows_while_reduced() => {
                core.grow(now, newly - marks, o);
            }
            _ if newly > 0 && !used => core.control.on_event(Event::Unused, now),
            _ => {}
        }
        if acked > 0 || core.deadline == NEVER {
            self.arm(core, now, o);
        }
    }

    /// An acknowledgement of what was acknowledged before, or never sent. Overtaken by one of more, it may tell of
    /// gaps that are news (RFC 6675 §5).
    #[cold]
    fn on_stale_ack(&mut self, core: &mut Core, now: u64, ack: u32, sack: Sack, o: &Options) {
        let una = core.una;
        let above = |n: u32| ack.saturating_add(n).saturating_sub(una);
        let blocks = sack.blocks().map(|(from, end)| (above(from), above(end)));
        let tells = ack < una && blocks.iter().any(|(from, end)| from < end);
        if !tells || core.state < State::Open {
            return;
        }
        let (state_before, before) = (core.state, core.missing());
        self.take_arrived(core, now, una, blocks, MovedBy { sent: None, late: false });
        let newly = before - core.missing();
        self.detect_loss(core, now, o);
        if self.own {
            self.follow_own(core, now, News { newly, ..News::default() }, o);
        } else if self.has_model() {
            self.tell_change(core, now, state_before);
        }
    }

    /// Reads the `echo` of a timestamp, if it is certain to which sending it belongs.
    #[inline]
    fn moved_by(&self, core: &Core, now: u64, acked: u32, echo: u16, o: &Options) -> MovedBy {
        let certain = o.recovery.timestamps && acked > 0 && !self.firsts.confuse(now, core.una);
        let sent = certain.then(|| sent_at_echo(now, echo));
        let late = core.state >= State::Recovery
            && sent.is_some_and(|sent| is_before(sent, self.repaired_since));
        MovedBy { sent, late }
    }

    /// Notes what `ack` and the `blocks` above it say has arrived. Returns a sample of the round trip, ns.
    #[inline]
    fn take_arrived(
        &mut self,
        core: &mut Core,
        now: u64,
        ack: u32,
        blocks: [(u32, u32); SACK_BLOCKS],
        moved_by: MovedBy,
    ) -> Option<u64> {
        let (mut sample, una) = (None, core.una);
        let mut is_first = true;
        for n in una..ack {
            if core.sacked.contains(n) {
                continue;
            }
            // The first packet moved the acknowledgement, unless earlier acknowledgements were lost.
            let late = match moved_by.sent {
                Some(sent) if is_first => is_before(sent, self.sent_at(n).time()),
                _ => moved_by.late,
            };
            let rtt = self.arrived(now, n, late);
            if std::mem::take(&mut is_first) {
                sample = match moved_by.sent {
                    _ if !self.sent_at(n).is_again() => rtt,
                    Some(sent) => rtt.or(late.then(|| now - sent)),
                    None => None,
                };
            }
        }
        let below = (!is_first).then_some(self.rtt);
        let from = una.max(ack);
        core.sacked.advance(from);
        self.board.advance(from);
        for block in blocks {
            core.sacked.insert(core.reported(ack, block), |n| {
                // The echo does not belong to packets beyond a gap.
                let rtt = self.arrived(now, n, false);
                sample = sample.or(rtt.filter(|_| !self.sent_at(n).is_again()));
            });
        }
        self.rtt = below.unwrap_or(self.rtt);
        // Packets that one acknowledgement reports together are in no known order.
        let ends = blocks.iter().map(|&(_, end)| (ack + end).min(core.end));
        self.highest = ends.fold(self.highest.max(ack), u32::max);
        core.una = ack;
        core.next = core.next.max(ack);
        core.duplicates = core.sacked.ones();
        sample
    }

    /// A sample of the round trip, ns.
    #[inline]
    fn take_rtt(&mut self, core: &mut Core, now: u64, rtt: u64, o: &Options) {
        core.rtt.sample(rtt, &mut core.backoff);
        core.backoff.end();
        self.sample = Some(rtt);
        self.measured(now, rtt);
        if o.control.rfc8312 {
            core.control.on_rtt(now, rtt);
        }
        if core.cwnd < core.ssthresh && core.state == State::Open {
            self.follow_slow_start(core, now, rtt, o);
        }
    }
}
