//! The receiving half of a TCP connection: what to acknowledge, and when.

use aqm::Ecn;
use scenario::traffic::Conduct;

use super::bits::Bits;
use super::options::{Echo, Options, Variant};
use crate::packet::{DUPLICATE, Packet, Payload, SACK_BLOCKS, SHORTEST_PACKET, Sack};

/// AccECN's counters begin with it (RFC 9768 §3.2).
pub(super) const FIRST_COUNT: u8 = 5;

/// How many acknowledgements are not delayed as a connection begins, and from a first mark on (Linux).
const QUICK_AT_START: u8 = 16;
const QUICK_FROM_MARK: u8 = 2;

/// Of a longer block only the new part is reported, because the rest was before; in packets.
const LONGEST_BLOCK: u32 = u16::MAX as u32;

/// The receiver's state.
#[derive(Clone, Default, Debug)]
pub struct Receiver {
    /// The next number expected: everything below was delivered in order.
    next: u32,
    /// What arrived beyond `next`.
    beyond: Bits,
    /// The last blocks to report, newest first (RFC 2018 §4): what begins them, and how long they are, at
    /// most [`LONGEST_BLOCK`]; 0 and 0 where there is none. An optimistic receiver has none: its first number
    /// counts the packets that it acknowledged though they had not come.
    firsts: [u32; SACK_BLOCKS],
    lengths: [u16; SACK_BLOCKS],
    /// What acknowledgements echo of the sender's timestamps (TS.Recent, RFC 7323 §4.3): the latest of
    /// what had come before, and of the first packet in order that was not acknowledged.
    tick: u32,
    /// Packets in order that are not acknowledged yet.
    unacknowledged: u8,
    /// The next acknowledgements that are not delayed, however few packets they are for.
    quick: u8,
    /// What came last had come before.
    duplicate: bool,
    /// 1: CE was seen and the sender has not answered yet (RFC 3168 §6.1.3), or with AccECN the last
    /// packet was marked. Above that bit, with AccECN: marks, modulo eight.
    echo: u8,
}

/// When the acknowledgement is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckWhen {
    /// At once.
    Now,
    /// Within the delayed-acknowledgement time.
    Later,
}

impl Receiver {
    /// Begins anew for another connection; the memory is kept.
    pub fn renew(&mut self) {
        let mut beyond = std::mem::take(&mut self.beyond);
        beyond.restart();
        *self = Self { beyond, ..Self::default() };
    }

    /// Whether a mark is news: no echo is under way.
    pub fn echoes(&self) -> bool {
        self.echo & 1 > 0
    }

    /// The timestamp of a segment that arrives, before [`Receiver::on_data`].
    #[inline(never)]
    pub fn on_timestamp(&mut self, seq: u32, tick: u32) {
        // RFC 7323 §4.3 (2): SEG.SEQ <= Last.ACK.sent, which what comes again is as well; what was sent
        // before and is late takes nothing back.
        if seq + u32::from(self.unacknowledged) <= self.next && tick >= self.tick {
            self.tick = tick;
        }
    }

    /// A segment arrives.
    #[inline(always)]
    pub fn on_data(&mut self, seq: u32, ce: bool, reduced: bool, delayed_ack: bool) -> AckWhen {
        // CWR first: a packet that carries both reports new congestion.
        let echo = self.echo & u8::from(!reduced) | u8::from(ce);
        let news = echo != self.echo;
        self.echo = echo;
        if seq != self.next {
            if seq > self.next {
                self.beyond.advance(self.next);
                if self.beyond.insert(seq) {
                    self.report(seq);
                } else {
                    self.duplicate = true;
                }
            } else {
                self.duplicate = true;
            }
            return AckWhen::Now;
        }
        self.next += 1;
        let filled = self.beyond.ones() > 0;
        if filled {
            while self.beyond.contains(self.next) {
                self.next += 1;
            }
            self.beyond.advance(self.next);
            self.forget_delivered();
        }
        if !delayed_ack {
            return AckWhen::Now;
        }
        self.unacknowledged += 1;
        // RFC 5681 §4.2: at least every second segment, and at once when a gap is filled. A change of the
        // echo is reported at once, too.
        if filled || news || self.unacknowledged >= 2 || self.quick > 0 {
            AckWhen::Now
        } else {
            AckWhen::Later
        }
    }

    /// A segment arrives where acknowledgements tell of it by more than their number; with `cwr` its sender has
    /// reduced the window.
    #[inline(never)]
    pub fn on_watched_data(&mut self, seq: u32, ce: bool, cwr: bool, o: &Options) -> AckWhen {
        let delayed_ack = o.acks.delay > 0;
        let reduced = cwr || o.ecn.echo == Echo::Exact;
        let quick = o.acks.quick;
        if quick && seq == 0 {
            self.quick = QUICK_AT_START;
        }
        // An answer ends the echo, so that a mark beside it is a first one again.
        let first_mark = ce && (cwr || !self.echoes());
        if quick && first_mark && o.ecn.echo == Echo::UntilAnswered {
            self.quick = self.quick.max(QUICK_FROM_MARK);
        }
        let when = if o.acks.plain {
            self.on_data(seq, ce, reduced, delayed_ack)
        } else if o.acks.conduct != Conduct::Honest {
            self.on_cheated_data(seq, ce, reduced, o)
        } else {
            self.on_counted_data(seq, ce, o)
        };
        // The window behind CWR, which AccECN has not, may be a packet (Linux).
        let hurries = quick && delayed_ack && cwr && o.ecn.echo != Echo::Counted;
        if when == AckWhen::Later && !hurries {
            return AckWhen::Later;
        }
        self.quick = self.quick.saturating_sub(1);
        AckWhen::Now
    }

    /// A segment arrives at a receiver that cheats.
    #[cold]
    fn on_cheated_data(&mut self, seq: u32, ce: bool, reduced: bool, o: &Options) -> AckWhen {
        let before = self.next;
        if o.acks.conduct == Conduct::Optimistic && seq > before {
            self.firsts[0] += seq - before;
            self.next = seq;
        }
        let ce = ce && o.acks.conduct != Conduct::NoEcho;
        let when = match o.ecn.echo {
            Echo::Counted => self.on_counted_data(seq, ce, o),
            _ => self.on_data(seq, ce, reduced, o.acks.delay > 0),
        };
        self.duplicate &= o.acks.conduct != Conduct::Optimistic;
        if o.acks.conduct == Conduct::AckDivision && self.next == before + 1 {
            // The timer, due at once, sends the parts: that costs other connections nothing.
            self.unacknowledged = 1;
            return AckWhen::Later;
        }
        when
    }

    /// [`Receiver::on_data`] where marks are counted.
    #[inline(always)]
    fn on_counted_data(&mut self, seq: u32, ce: bool, o: &Options) -> AckWhen {
        // RFC 9768 §3.2.2.5.1: the first of several marks is reported at once. Since two packets are never
        // left unreported, two marks are not. Linux reports the first packet without a mark as well.
        let (changes, marks) = (ce != self.echoes(), (self.echo >> 1) + u8::from(ce));
        let tells = changes && (ce || o.acks.quick);
        self.echo = u8::from(ce != tells);
        let when = self.on_data(seq, ce, true, o.acks.delay > 0);
        self.echo = 2 * (marks % 8) + u8::from(ce);
        when
    }

    /// Puts the block that holds `seq` first, merged with the blocks that it touches.
    fn report(&mut self, seq: u32) {
        let mut block = (seq, seq + 1);
        let mut others = [(0, 0); SACK_BLOCKS];
        let mut kept = 0;
        for (first, end) in self.blocks() {
            if end == block.0 {
                block.0 = first.max(block.1.saturating_sub(LONGEST_BLOCK));
            } else if first == block.1 {
                block.1 = end.min(block.0 + LONGEST_BLOCK);
            } else {
                others[kept] = (first, end);
                kept += 1;
            }
        }
        // A block may touch one that was merged after it was looked at.
        let kept = kept.min(SACK_BLOCKS - 1);
        self.keep(std::iter::once(block).chain(others.into_iter().take(kept)));
    }

    /// The blocks to report, as (first, past the last).
    fn blocks(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let blocks = self.firsts.into_iter().zip(self.lengths);
        blocks.take_while(|block| block.1 > 0).map(|(n, length)| (n, n + u32::from(length)))
    }

    /// Has `blocks` reported, no more than there is room for.
    fn keep(&mut self, blocks: impl Iterator<Item = (u32, u32)>) {
        let (mut firsts, mut lengths) = ([0; SACK_BLOCKS], [0; SACK_BLOCKS]);
        for (i, (first, end)) in blocks.enumerate() {
            (firsts[i], lengths[i]) = (first, (end - first) as u16);
        }
        (self.firsts, self.lengths) = (firsts, lengths);
    }

    fn forget_delivered(&mut self) {
        let next = self.next;
        self.keep(self.blocks().filter(|block| block.0 >= next));
    }

    /// Makes `packet` the acknowledgement of everything so far; its address is its own.
    #[inline]
    pub fn acknowledge(&mut self, sack: bool, packet: &mut Packet) {
        self.unacknowledged = 0;
        let payload = Payload::Ack { ece: self.echo, echo: 0, sack: Sack::default() };
        (packet.len, packet.ecn) = (SHORTEST_PACKET, Ecn::default());
        (packet.seq, packet.payload) = (self.next, payload);
        if sack && self.lengths[0] > 0 {
            packet.payload = self.with_blocks();
        }
    }

    #[inline(never)]
    fn with_blocks(&self) -> Payload {
        let sack =
            Sack::new(self.blocks().map(|(first, end)| (first - self.next, end - self.next)));
        Payload::Ack { ece: self.echo, echo: 0, sack }
    }

    /// Has an acknowledgement tell what else it is to: the echo of a timestamp, AccECN's counter, a
    /// duplicate; and be ECN-capable.
    pub fn tell_more(&mut self, packet: &mut Packet, o: &Options) {
        packet.ecn = o.ecn.control;
        if let Payload::Ack { ece, echo, sack } = &mut packet.payload {
            *echo = if o.recovery.timestamps { self.tick as u16 } else { 0 };
            if o.ecn.echo == Echo::Counted {
                *ece = ((self.echo >> 1) + FIRST_COUNT) % 8;
            }
            if std::mem::take(&mut self.duplicate) && o.recovery.variant == Variant::Rack {
                *ece |= DUPLICATE;
                sack.make_place();
            }
        }
    }

    /// Whether a delayed acknowledgement is owed.
    pub fn owes_ack(&self) -> bool {
        self.unacknowledged > 0
    }

    /// Whether a delayed acknowledgement is owed whose echo differs from the mark of the packet that
    /// arrives: where echoes are exact it has to go first (RFC 8257 §3.2).
    pub fn owes_other_echo(&self, ce: bool) -> bool {
        self.owes_ack() && self.echoes() != ce
    }

    /// Packets delivered in order so far; what a receiver that cheats never got does not count.
    pub fn delivered(&self) -> u32 {
        let concealed = if self.lengths[0] == 0 { self.firsts[0] } else { 0 };
        self.next - concealed
    }

    /// The next number expected.
    pub fn expected(&self) -> u32 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tcp::tests::options;

    fn acknowledgement(r: &mut Receiver) -> Packet {
        let mut packet = Packet::default();
        r.acknowledge(true, &mut packet);
        packet
    }

    fn blocks(r: &mut Receiver) -> Vec<(u32, u32)> {
        let ack = acknowledgement(r);
        let Payload::Ack { sack, .. } = ack.payload else { panic!("{ack:?}") };
        let told = sack.blocks().into_iter().take_while(|block| block.1 > 0);
        told.map(|(a, b)| (ack.seq + a, ack.seq + b)).collect()
    }

    fn data(r: &mut Receiver, seq: u32) {
        assert_eq!(r.on_data(seq, false, false, false), AckWhen::Now);
    }

    /// The example of RFC 2018 §4, case 3, with packets for segments: every second is lost.
    #[test]
    fn the_newest_block_comes_first() {
        let mut r = Receiver::default();
        for seq in [1, 3, 5, 7] {
            data(&mut r, seq);
        }
        assert_eq!(blocks(&mut r), [(7, 8), (5, 6), (3, 4)]);
        data(&mut r, 4);
        assert_eq!(blocks(&mut r), [(3, 6), (7, 8)]);
        data(&mut r, 0);
        assert_eq!(r.delivered(), 2);
        data(&mut r, 2);
        assert_eq!((r.delivered(), blocks(&mut r)), (6, vec![(7, 8)]));
        data(&mut r, 6);
        assert_eq!((r.delivered(), blocks(&mut r)), (8, vec![]));
    }

    /// Whatever is missing, blocks tell of what came and of nothing else, and of the newest first; also as a
    /// repair fills the gap before a long block.
    #[test]
    fn blocks_of_a_large_window_tell_what_came() {
        for missing in [&[0][..], &[0, 70_000], &[0, 10, 66_000], &[0, 65_535, 65_537, 140_000]] {
            let (mut r, mut came) = (Receiver::default(), vec![false; 200_000]);
            let first = (0..200_000).filter(|n| !missing.contains(n));
            for (count, n) in first.chain(missing.iter().rev().copied()).enumerate() {
                data(&mut r, n);
                came[n as usize] = true;
                if count % 997 == 0 || missing.contains(&n) {
                    let told = blocks(&mut r);
                    assert!(n < r.delivered() || told[0].0 <= n && n < told[0].1, "{n}: {told:?}");
                    assert!(
                        told.iter().all(|b| came[b.0 as usize..b.1 as usize].iter().all(|&c| c))
                    );
                }
            }
            assert_eq!(r.delivered(), 200_000);
        }
    }

    #[test]
    fn old_and_repeated_packets_are_acknowledged_at_once_and_change_nothing() {
        let mut r = Receiver::default();
        data(&mut r, 0);
        data(&mut r, 0);
        data(&mut r, 2);
        data(&mut r, 2);
        assert_eq!((r.delivered(), blocks(&mut r)), (1, vec![(2, 3)]));
    }

    #[test]
    fn every_second_packet_is_acknowledged_when_acknowledgements_are_delayed() {
        let mut r = Receiver::default();
        assert_eq!(r.on_data(0, false, false, true), AckWhen::Later);
        assert!(r.owes_ack());
        assert_eq!(r.on_data(1, false, false, true), AckWhen::Now);
        acknowledgement(&mut r);
        assert!(!r.owes_ack());
        assert_eq!(r.on_data(3, false, false, true), AckWhen::Now, "out of order");
        assert_eq!(r.on_data(2, false, false, true), AckWhen::Now, "fills the gap");
    }

    #[test]
    fn the_echo_lasts_until_the_sender_answers() {
        let mut r = Receiver::default();
        r.on_data(0, true, false, false);
        assert!(acknowledgement(&mut r).echoes());
        r.on_data(1, false, false, false);
        assert!(acknowledgement(&mut r).echoes());
        r.on_data(2, false, true, false);
        assert!(!acknowledgement(&mut r).echoes());
        r.on_data(3, true, true, false);
        assert!(acknowledgement(&mut r).echoes(), "CWR and CE in one packet is new congestion");
    }

    /// RFC 2883: in order or beyond a gap, once, and in the place of a block.
    #[test]
    fn what_comes_again_is_told() {
        let mut r = Receiver::default();
        let o = options(Variant::Sack).with(|o| o.recovery.variant = Variant::Rack);
        let mut told = |seq| {
            data(&mut r, seq);
            let mut ack = acknowledgement(&mut r);
            r.tell_more(&mut ack, &o);
            let Payload::Ack { ece, sack, .. } = ack.payload else { panic!("{ack:?}") };
            (ece, sack.blocks().iter().filter(|block| block.1 > 0).count())
        };
        for seq in [0, 2, 4] {
            assert_eq!(told(seq).0, 0, "{seq}");
        }
        assert_eq!((told(6), told(4), told(0)), ((0, 3), (DUPLICATE, 2), (DUPLICATE, 2)));
        assert_eq!(told(1), (0, 2));
    }

    /// RFC 7323 §4.3: of packets that are acknowledged together the first counts, of those that fill
    /// a gap the one that does, of those that come again the last, and none beyond a gap.
    #[test]
    fn the_echo_of_a_timestamp_is_that_of_what_moves_the_acknowledgement() {
        let mut r = Receiver::default();
        let o = options(Variant::Sack).with(|o| o.recovery.timestamps = true);
        let mut echo = |seq, tick, acknowledges: bool| {
            r.on_timestamp(seq, tick);
            r.on_data(seq, false, false, true);
            acknowledges.then(|| {
                let mut ack = acknowledgement(&mut r);
                r.tell_more(&mut ack, &o);
                let Payload::Ack { echo, .. } = ack.payload else { panic!("{ack:?}") };
                echo
            })
        };
        assert_eq!(echo(0, 0, true), Some(0));
        assert_eq!((echo(1, 1, false), echo(2, 2, true)), (None, Some(1)), "the earlier of two");
        assert_eq!(echo(4, 3, true), Some(1), "beyond a gap");
        assert_eq!(echo(3, 4, true), Some(4), "fills it");
        assert_eq!(echo(3, 5, true), Some(5), "had come before");
        assert_eq!(echo(5, 3, true), Some(5), "older");
        assert_eq!(echo(6, 0x1_0001, true), Some(1), "its lower half");
        assert_eq!(echo(7, 0xffff, true), Some(1), "older");
        assert_eq!((echo(8, 0x1_0002, false), echo(7, 0x1_0003, true)), (None, Some(3)));
    }

    fn cheats(conduct: Conduct) -> Options {
        options(Variant::Sack).with(|o| (o.acks.conduct, o.acks.plain) = (conduct, false))
    }

    #[test]
    fn a_packet_in_order_waits_for_its_parts() {
        let mut r = Receiver::default();
        let o = cheats(Conduct::AckDivision);
        let told = [AckWhen::Later, AckWhen::Now, AckWhen::Now, AckWhen::Later];
        for (seq, when) in [0, 2, 1, 3].into_iter().zip(told) {
            assert_eq!(r.on_watched_data(seq, false, false, &o), when, "{seq}");
            assert_eq!(r.owes_ack(), when == AckWhen::Later, "{seq}");
            acknowledgement(&mut r);
        }
    }

    /// Packets 1, 2 and 4 are lost; 2 comes late, and is not counted.
    #[test]
    fn what_was_lost_is_acknowledged_and_not_counted() {
        let mut r = Receiver::default();
        let o = cheats(Conduct::Optimistic);
        for (seq, expected, delivered) in [(0, 1, 1), (3, 4, 2), (2, 4, 2), (5, 6, 3)] {
            r.on_watched_data(seq, false, false, &o);
            assert_eq!((r.expected(), r.delivered()), (expected, delivered), "{seq}");
            assert!(blocks(&mut r).is_empty());
        }
    }

    #[test]
    fn marks_are_concealed_counted_or_not() {
        for echo in [Echo::UntilAnswered, Echo::Counted] {
            let mut r = Receiver::default();
            let o = cheats(Conduct::NoEcho).with(|o| o.ecn.echo = echo);
            for seq in 0..4 {
                r.on_watched_data(seq, true, false, &o);
            }
            let mut ack = acknowledgement(&mut r);
            r.tell_more(&mut ack, &o);
            let Payload::Ack { ece, .. } = ack.payload else { panic!("{ack:?}") };
            assert_eq!(ece, if echo == Echo::Counted { FIRST_COUNT } else { 0 });
        }
    }
}
