//! Stories of one connection over a path that the test controls: each round trip everything sent
//! arrives (but what the test drops or marks), and every acknowledgement comes back.

mod ecn;

use aqm::Ecn;

use super::control::Algorithm;
use super::receiver::Receiver;
use super::rtt::RtoBounds;
use super::sender::Sender;
use super::{Options, Variant};
use crate::packet::{Packet, Payload};

const MS: u64 = 1_000_000;
const RTT: u64 = 100 * MS;

pub(super) fn options(variant: Variant) -> Options {
    Options {
        variant,
        control: Algorithm::Reno,
        initial_window: 2.0,
        window: 1000,
        rto: RtoBounds { initial: 1000 * MS, min: 200 * MS, max: 60_000 * MS, granularity: MS },
        limited_transmit: 2,
        rack: false,
        timestamps: false,
        has_model: false,
        looks_closer: false,
        accecn: false,
        stamps: false,
        notes_sending: false,
        count_packets: false,
        rfc8312: false,
        reference_rtt: 25 * MS,
        quick_acks: false,
        whole_packets: false,
        whole_threshold: false,
        restart_after_idle: true,
        delayed_ack: 0,
        handshake: false,
        restart_after_lost_syn: true,
        ecn_fallback: false,
        ecn: true,
        codepoint: Ecn::Ect0,
        exact_echo: false,
        codepoint_again: Ecn::NotEct,
        ecn_timeout: false,
        least_window: 1.0,
        forget_rtt: false,
        past_timeout: 0,
        send_jitter: 0,
        pacing: false,
        send_quantum: 0,
        later: false,
    }
}

struct Path {
    sender: Sender,
    receiver: Receiver,
    o: Options,
    now: u64,
    /// What each packet's last sending said of repairs; an earlier one said 0.
    repairs: std::collections::BTreeMap<u32, u8>,
}

/// What was sent in a round: numbers in order.
type Round = Vec<u32>;

impl Path {
    fn new(o: Options) -> Self {
        let mut sender = Sender::default();
        sender.start(0, &o);
        sender.offer(u32::MAX);
        Self { sender, receiver: Receiver::default(), o, now: 0, repairs: [].into() }
    }

    fn send(&mut self) -> Option<Packet> {
        let mut packet = Packet::default();
        let sent = self.sender.next(self.now, &self.o, &mut packet).then_some(packet)?;
        if let Payload::Data { repairs, .. } = sent.payload {
            self.repairs.insert(sent.seq, repairs);
        }
        Some(sent)
    }

    fn send_all(&mut self) -> Vec<(u32, bool, bool)> {
        std::iter::from_fn(|| self.send())
            .filter_map(|p| match p.payload {
                Payload::Data { cwr, .. } => Some((p.seq, cwr, p.ecn.capable())),
                _ => None,
            })
            .collect()
    }

    /// Delivers `sent` but for `drop`, marking `mark`, half a round trip later; the
    /// acknowledgements another half later. Returns what they made the sender send.
    fn deliver(
        &mut self,
        sent: &[(u32, bool, bool)],
        drop: &[u32],
        mark: &[u32],
    ) -> Vec<(u32, bool, bool)> {
        let mut acks: Vec<Packet> = Vec::new();
        for &(seq, reduced, ecn) in sent {
            if !drop.contains(&seq) {
                let repairs = self.repairs.get(&seq).copied().unwrap_or(0);
                self.receiver.on_timestamp(seq, repairs);
                self.receiver.on_data(seq, ecn && mark.contains(&seq), reduced, false);
                let mut ack = Packet::default();
                self.receiver.acknowledge(self.o.variant == Variant::Sack, &mut ack);
                self.receiver.tell_more(&mut ack, &Options { timestamps: true, ..self.o });
                acks.push(ack);
            }
        }
        self.now += RTT;
        let mut next = Vec::new();
        for ack in acks {
            self.sender.on_ack(self.now, &ack, &self.o);
            next.extend(self.send_all());
        }
        next
    }

    /// Whether the receiver's acknowledgements carry an echo.
    fn echoes(&mut self) -> bool {
        let mut ack = Packet::default();
        self.receiver.acknowledge(false, &mut ack);
        ack.echoes()
    }

    /// Lets the timer run out.
    fn time_out(&mut self) -> Vec<(u32, bool, bool)> {
        self.now = self.sender.deadline();
        self.sender.on_timer(self.now, &self.o);
        self.send_all()
    }
}

fn numbers(sent: &[(u32, bool, bool)]) -> Round {
    sent.iter().map(|s| s.0).collect()
}

#[test]
fn slow_start_doubles_each_round_trip() {
    let mut p = Path::new(options(Variant::Sack));
    let mut sent = p.send_all();
    for round in 0..6 {
        assert_eq!(sent.len(), 2 << round);
        sent = p.deliver(&sent, &[], &[]);
    }
}

/// A mark halves the window once; from then on it grows by one packet a round trip.
#[test]
fn a_mark_halves_the_window_and_congestion_avoidance_adds_one_a_round() {
    let mut p = Path::new(options(Variant::Sack));
    let mut sent = p.send_all();
    for _ in 0..4 {
        sent = p.deliver(&sent, &[], &[]);
    }
    assert_eq!(sent.len(), 32);
    let first = sent[0].0;
    // All 32 are marked: one reduction all the same (RFC 3168 §6.1.2).
    let all: Vec<u32> = numbers(&sent);
    sent = p.deliver(&sent, &[], &all);
    assert_eq!((p.sender.ecn_reductions, p.sender.cwnd()), (1, 16.0));
    assert_eq!(sent[0].0, first + 32);
    assert!(sent[0].1, "the next packet carries CWR");
    assert!(sent.iter().skip(1).all(|s| !s.1), "only that one does");
    assert_eq!(sent.len(), 16);
    for rounds in 1..=8 {
        sent = p.deliver(&sent, &[], &[]);
        // cwnd += 1/cwnd an acknowledgement comes to a little less than one a round.
        let expected = 16.0 + f64::from(rounds);
        assert!((expected - 0.6..=expected).contains(&p.sender.cwnd()), "{}", p.sender.cwnd());
    }
}

#[test]
fn three_duplicates_repair_one_loss_without_a_timeout() {
    for variant in [Variant::Reno, Variant::NewReno, Variant::Sack] {
        let mut p = Path::new(options(variant));
        let mut sent = p.send_all();
        for _ in 0..3 {
            sent = p.deliver(&sent, &[], &[]);
        }
        let first = sent[0].0;
        assert_eq!(sent.len(), 16);
        let mut next = p.deliver(&sent, &[first], &[]);
        assert!(numbers(&next).contains(&first), "{variant:?} retransmits");
        assert!(!next.iter().find(|s| s.0 == first).unwrap().2, "not ECN-capable (RFC 3168)");
        for _ in 0..3 {
            next = p.deliver(&next, &[], &[]);
        }
        assert_eq!((p.sender.retransmits, p.sender.timeouts), (1, 0), "{variant:?}");
        // Half of 16 and what limited transmit added, and one a round trip since.
        assert!((8.0..=13.0).contains(&p.sender.cwnd()), "{variant:?}: {}", p.sender.cwnd());
        assert!(p.receiver.delivered() > first + 16);
    }
}

/// Four losses in one window: SACK repairs them in a round trip or two, NewReno one a round trip
/// (RFC 6582), Reno needs its timer.
#[test]
fn many_losses_in_a_window_tell_the_variants_apart() {
    let rounds_to_repair = |variant| {
        let mut p = Path::new(options(variant));
        let mut sent = p.send_all();
        for _ in 0..3 {
            sent = p.deliver(&sent, &[], &[]);
        }
        let first = sent[0].0;
        let lost: Vec<u32> = [0, 2, 4, 6].map(|i| first + i).to_vec();
        sent = p.deliver(&sent, &lost, &[]);
        for round in 1..20 {
            if p.receiver.delivered() >= first + 16 {
                return (round, p.sender.timeouts);
            }
            sent = if sent.is_empty() { p.time_out() } else { p.deliver(&sent, &[], &[]) };
        }
        (20, p.sender.timeouts)
    };
    let (sack, newreno, reno) = (
        rounds_to_repair(Variant::Sack),
        rounds_to_repair(Variant::NewReno),
        rounds_to_repair(Variant::Reno),
    );
    assert!(sack.0 <= 3 && sack.1 == 0, "{sack:?}");
    assert_eq!((newreno.0, newreno.1), (5, 0), "four holes, one a round trip");
    assert!(reno.1 > 0, "{reno:?}");
}

#[test]
fn limited_transmit_sends_new_packets_on_the_first_two_duplicates() {
    for (limited, expected) in [(true, 2), (false, 0)] {
        let mut p = Path::new(Options {
            limited_transmit: if limited { 2 } else { 0 },
            ..options(Variant::NewReno)
        });
        let sent = p.send_all();
        let sent = p.deliver(&sent, &[], &[]);
        assert_eq!(sent.len(), 4);
        // The first is lost and of the other three two come through: two duplicates.
        let next = p.deliver(&sent, &[sent[0].0, sent[3].0], &[]);
        assert_eq!(next.len(), expected, "RFC 3042");
        assert_eq!(p.sender.retransmits, 0);
    }
}

#[test]
fn a_timeout_goes_back_to_the_oldest_packet_and_doubles_each_time() {
    let mut p = Path::new(options(Variant::Sack));
    let mut sent = p.send_all();
    for _ in 0..3 {
        sent = p.deliver(&sent, &[], &[]);
    }
    let first = sent[0].0;
    let start = p.now;
    assert!(p.deliver(&sent, &numbers(&sent), &[]).is_empty(), "the whole window is lost");
    let again = p.time_out();
    // The path's round trip is constant, so the timeout is at its bound or little above.
    let rto = p.now - start;
    assert!((200 * MS..320 * MS).contains(&rto), "{rto}");
    assert_eq!((numbers(&again), p.sender.cwnd()), (vec![first], 1.0));
    let first_timeout = p.now;
    let again = p.time_out();
    assert_eq!(numbers(&again), [first]);
    assert_eq!(p.now - first_timeout, 2 * rto);
    // Slow start from one packet, over what had been sent before, up to half the old window.
    let next = p.deliver(&again, &[], &[]);
    assert_eq!(numbers(&next), [first + 1, first + 2]);
    let next = p.deliver(&next, &[], &[]);
    assert_eq!(next.len(), 4);
    assert_eq!(p.sender.timeouts, 2);
}

/// Four packets behind a timeout's one is lost: RFC 6675 repairs it upon three duplicates, RFC 6582 and ns-2
/// leave the first of them to the timer.
#[test]
fn the_first_packet_past_a_timeout_may_be_left_to_the_timer() {
    for (past_timeout, lost, repairs) in [(0, 0, 1), (1, 0, 0), (0, 1, 1), (1, 1, 1)] {
        let mut p =
            Path::new(Options { past_timeout, initial_window: 7.0, ..options(Variant::Sack) });
        p.send_all();
        let mut sent = p.time_out();
        while !numbers(&sent).contains(&7) {
            sent = p.deliver(&sent, &[], &[]);
        }
        sent.retain(|s| s.0 >= 7);
        assert_eq!(sent.len(), 4);
        let before = p.sender.retransmits;
        let next = p.deliver(&sent, &[7 + lost], &[]);
        p.deliver(&next, &[], &[]);
        assert_eq!(p.sender.retransmits - before, repairs, "past {past_timeout}, {lost} lost");
    }
}

/// Half of seven is 3.5: behind a timeout slow start ends at 3 or beyond it, and what a lost packet leaves is
/// 3.5 in either case.
#[test]
fn a_slow_start_threshold_may_be_whole() {
    for (whole_threshold, grown) in [(false, 4.0), (true, 3.0 + 1.0 / 3.0)] {
        let o = Options { whole_threshold, initial_window: 7.0, ..options(Variant::Sack) };
        let mut p = Path::new(o);
        p.send_all();
        let mut sent = p.time_out();
        for _ in 0..2 {
            sent = p.deliver(&sent, &[], &[]);
        }
        assert!((p.sender.cwnd() - grown).abs() < 1e-9, "{}", p.sender.cwnd());
        let mut p =
            Path::new(Options { whole_threshold, initial_window: 7.0, ..options(Variant::Sack) });
        let sent = p.send_all();
        p.deliver(&sent, &[0], &[]);
        assert!((p.sender.cwnd() - 3.5).abs() < 1e-9, "{}", p.sender.cwnd());
    }
}

#[test]
fn an_idle_connection_starts_again_from_its_initial_window() {
    for (restart, expected) in [(true, 2), (false, 33)] {
        let mut p = Path::new(Options { restart_after_idle: restart, ..options(Variant::Sack) });
        let mut sent = p.send_all();
        for _ in 0..4 {
            sent = p.deliver(&sent, &[], &[]);
        }
        p.sender.withdraw();
        assert!(
            p.deliver(&sent, &[], &[]).is_empty()
                && p.sender.acknowledged() == sent[sent.len() - 1].0 + 1
        );
        p.now += 10_000 * MS;
        p.sender.offer(u32::MAX);
        // While idle the window had grown by the last acknowledgement that used it.
        let burst = p.send_all().len();
        assert!(if restart { burst == expected } else { burst >= expected - 1 }, "{burst}");
    }
}

#[test]
fn a_handshake_comes_before_data_and_is_repeated() {
    let mut p = Path::new(Options { handshake: true, ..options(Variant::Sack) });
    assert_eq!(p.send().map(|p| p.payload), Some(Payload::Syn));
    assert!(p.send().is_none());
    p.now = p.sender.deadline();
    assert_eq!(p.now, 1000 * MS);
    p.sender.on_timer(p.now, &p.o);
    assert_eq!(p.send().map(|p| p.payload), Some(Payload::Syn));
    assert_eq!(p.sender.deadline(), 3000 * MS, "backed off");
}

/// RFC 5681 §3.1: one segment after a SYN that was lost; RFC 6298 §5.7: and a timeout of 3 s, not
/// doubled, until a round trip is measured. Without a loss: the initial window, and the SYN's sample.
#[test]
fn a_lost_syn_leaves_one_packet_and_three_seconds() {
    for (lost, first, restart_after_lost_syn, packets, timeout) in [
        (0, 1000, true, 10, 300),
        (1, 1000, true, 1, 3000),
        (3, 1000, true, 1, 3000),
        (1, 5000, true, 1, 5000),
        (1, 1000, false, 10, 2000),
    ] {
        let mut o = Options { handshake: true, initial_window: 10.0, ..options(Variant::Sack) };
        o.rto.initial = first * MS;
        o.restart_after_lost_syn = restart_after_lost_syn;
        let mut p = Path::new(o);
        p.send();
        for _ in 0..lost {
            p.now = p.sender.deadline();
            p.sender.on_timer(p.now, &p.o);
            assert_eq!(p.send().map(|p| p.payload), Some(Payload::Syn));
        }
        p.now += RTT;
        p.sender.on_syn_ack(p.now, &p.o);
        let sent = p.send_all();
        assert_eq!((sent.len(), p.sender.deadline() - p.now), (packets, timeout * MS), "{lost}");
        if packets == 1 {
            // The first sample ends it.
            assert_eq!(p.deliver(&sent, &[], &[]).len(), 2);
            assert_eq!(p.sender.deadline() - p.now, 300 * MS);
        }
    }
}

/// RFC 3168 §6.1.1.1: the network may have dropped the SYN because it asked for ECN.
#[test]
fn after_a_lost_syn_a_connection_does_without_ecn_if_it_falls_back() {
    for (lost, ecn_fallback, capable) in
        [(0, true, true), (1, true, false), (2, true, false), (1, false, true)]
    {
        let mut p = Path::new(Options { handshake: true, ecn_fallback, ..options(Variant::Sack) });
        p.send();
        for _ in 0..lost {
            p.now = p.sender.deadline();
            p.sender.on_timer(p.now, &p.o);
            p.send();
        }
        p.now += RTT;
        p.sender.on_syn_ack(p.now, &p.o);
        let sent = p.send_all();
        assert!(!sent.is_empty() && sent.iter().all(|(_, _, ecn)| *ecn == capable), "{lost}");
    }
}

/// What waited for the hosts' own time was not idle.
#[test]
fn a_wait_before_sending_is_not_idleness() {
    let mut p = Path::new(options(Variant::Sack));
    let mut sent = p.send_all();
    for _ in 0..3 {
        sent = p.deliver(&sent, &[], &[]);
    }
    let acks = sent.len();
    assert_eq!(acks, 16);
    let ack = Packet {
        seq: 30,
        payload: Payload::Ack { ece: 0, blocks: 0, repairs: 0, sack: [(0, 0); 3] },
        ..Packet::default()
    };
    p.now += RTT;
    p.sender.on_ack(p.now, &ack, &p.o);
    p.now += 5000 * MS;
    p.sender.on_wait_over(p.now);
    assert!(p.send_all().len() > 10);
}

#[test]
fn acknowledgements_from_nowhere_are_ignored() {
    let mut p = Path::new(options(Variant::Sack));
    let sent = p.send_all();
    let before = p.sender.cwnd();
    let blocks = [(7, 3), (60_000, 65_535), (0, 65_535)];
    for seq in [3, 1000, u32::MAX] {
        let payload = Payload::Ack { ece: 1, blocks: 3, repairs: 0, sack: blocks };
        let ack = Packet { seq, payload, ..Packet::default() };
        p.sender.on_ack(RTT, &ack, &p.o);
    }
    assert_eq!((p.sender.cwnd(), p.sender.ecn_reductions), (before, 0));
    assert_eq!(p.deliver(&sent, &[], &[]).len(), 4);
}

/// RFC 9438 §5.1: CUBIC's mean window at a round trip of 100 ms when one packet in 1/p is lost:
/// ⁴√(C·3.7/1.2)·∜(R/p)³ = 1.054·(R/p)^¾, or Reno's window where that is larger: 38 packets at
/// p = 10⁻³ (both), 187 at 10⁻⁴.
#[test]
fn cubic_has_the_window_of_its_response_function() {
    for (every, expected) in [(1_000, 38.0), (10_000, 187.0)] {
        let control = Algorithm::Cubic;
        let mut p = Path::new(Options { control, window: 10_000, ..options(Variant::Sack) });
        let mut sent = p.send_all();
        let (mut next_loss, mut rounds, mut delivered) = (every, 0u32, 0);
        while delivered < 100 * every {
            let lost: Vec<u32> = numbers(&sent).into_iter().filter(|&n| n == next_loss).collect();
            next_loss += if lost.is_empty() { 0 } else { every };
            sent = p.deliver(&sent, &lost, &[]);
            rounds += 1;
            delivered = p.receiver.delivered();
        }
        let window = f64::from(delivered) / f64::from(rounds);
        assert!((window / expected - 1.0).abs() < 0.1, "p = 1/{every}: {window}");
        assert_eq!(p.sender.timeouts, 0);
    }
}

fn with_rack() -> Options {
    Options { rack: true, notes_sending: true, count_packets: true, ..options(Variant::Sack) }
}

/// A path on which a window of 16 packets has just been sent.
fn sixteen(o: Options) -> (Path, Vec<(u32, bool, bool)>) {
    let mut p = Path::new(o);
    let mut sent = p.send_all();
    for _ in 0..3 {
        sent = p.deliver(&sent, &[], &[]);
    }
    assert_eq!(sent.len(), 16);
    (p, sent)
}

/// RFC 8985: what was sent later has arrived, also if it is a retransmission that is lost.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    for (o, repaired) in [(with_rack(), true), (options(Variant::Sack), false)] {
        let (mut p, sent) = sixteen(o);
        let first = sent[0].0;
        let mut next = p.deliver(&sent, &[first], &[]);
        assert!(numbers(&next).contains(&first));
        next = p.deliver(&next, &[first], &[]);
        for _ in 0..4 {
            next = p.deliver(&next, &[], &[]);
        }
        assert_eq!(p.sender.timeouts, 0);
        assert_eq!(p.receiver.delivered() > first + 16, repaired);
    }
}

/// RFC 6937: while a window of 16 goes down to 8, every second packet that arrives lets one out; the
/// window does not grow meanwhile, and grows again afterwards.
#[test]
fn an_echo_lets_half_of_the_window_out_while_it_is_answered() {
    let (mut p, sent) = sixteen(with_rack());
    let all = numbers(&sent);
    let next = p.deliver(&sent, &[], &all);
    assert_eq!((next.len(), p.sender.ecn_reductions), (8, 1));
    assert!(next[0].1, "the next packet carries CWR");
    let next = p.deliver(&next, &[], &[]);
    assert!((8.0..9.0).contains(&p.sender.cwnd()), "{}", p.sender.cwnd());
    assert_eq!(p.sender.ecn_reductions, 1);
    p.deliver(&next, &[], &[]);
    assert!(p.sender.cwnd() > 9.0);
}

/// Losses of a window: the one that half of the packets tell of is repaired in the time of a round trip.
#[test]
fn many_losses_are_repaired_in_proportion() {
    let (mut p, sent) = sixteen(with_rack());
    let first = sent[0].0;
    let lost: Vec<u32> = [0, 2, 4, 6].map(|i| first + i).to_vec();
    let mut next = p.deliver(&sent, &lost, &[]);
    for _ in 0..3 {
        next = p.deliver(&next, &[], &[]);
    }
    assert_eq!((p.sender.retransmits, p.sender.timeouts), (4, 0));
    assert!(p.receiver.delivered() > first + 16);
}

/// A packet of the window after the one that is repaired is lost as well, and sent again in that repair:
/// as long as it has not arrived, the next repair follows, and the window goes down once more (RFC 6675
/// §5, step 2).
#[test]
fn a_repair_that_leaves_a_packet_under_way_is_followed_by_the_next() {
    let (mut p, sent) = sixteen(with_rack());
    let first = sent[0].0;
    let mut next = p.deliver(&sent, &[first], &[]);
    // The retransmission is lost, and something new after it; both are sent again.
    let second = next.iter().map(|s| s.0).find(|&n| n > first + 20).unwrap();
    next = p.deliver(&next, &[first, second], &[]);
    let repairs: Round = numbers(&next).into_iter().filter(|&n| n <= second).collect();
    assert_eq!(repairs, [first, second]);
    for _ in 0..3 {
        next = p.deliver(&next, &[], &[]);
    }
    assert_eq!((p.sender.retransmits, p.sender.timeouts), (3, 0));
    // Once down, it is more than half of the sixteen; three rounds have opened it by three at most.
    assert!(p.sender.cwnd() < 16.0 / 4.0 + 3.0, "{}", p.sender.cwnd());
}

/// As a repair ends, the oldest packet is one that was sent again and is under way: a loss behind it is
/// told all the same (RFC 8985 §6.2, step 5).
#[test]
fn a_loss_behind_a_retransmission_is_told_before_that_arrives() {
    let (mut p, sent) = sixteen(with_rack());
    let first = sent[0].0;
    let mut next = p.deliver(&sent, &[first], &[]);
    let second = next.iter().map(|s| s.0).find(|&n| n > first + 20).unwrap();
    // So is the last, of which nothing tells yet.
    let last = next.last().unwrap().0;
    next = p.deliver(&next, &[first, second, last], &[]);
    let arrived = next.iter().position(|s| s.0 == first).unwrap();
    assert!(!numbers(&next).contains(&last));
    // The first was sent again after the last was sent, and before the second was sent again.
    let next = p.deliver(&next[arrived..=arrived], &[], &[]);
    assert!(numbers(&next).contains(&last), "{last}: {next:?}");
}

/// RFC 8985 §7: a probe, two round trips after a window that is lost as a whole, tells of the loss.
#[test]
fn a_probe_tells_of_a_lost_tail_before_the_timeout() {
    let rto = options(Variant::Sack).rto.above_srtt(200 * MS);
    let (mut p, sent) = sixteen(Options { rto, ..with_rack() });
    let first = sent[0].0;
    let start = p.now;
    assert!(p.deliver(&sent, &numbers(&sent), &[]).is_empty());
    let probe = p.time_out();
    assert_eq!((p.now - start, numbers(&probe)), (2 * p.sender.srtt(), vec![first + 16]));
    let mut next = p.deliver(&probe, &[], &[]);
    assert_eq!(numbers(&next)[0], first);
    for _ in 0..8 {
        next = p.deliver(&next, &[], &[]);
    }
    assert_eq!(p.sender.timeouts, 0);
    assert!(p.receiver.delivered() > first + 16);
}

/// §6.2: with fewer than three selective acknowledgements a quarter of a round trip decides.
#[test]
fn a_loss_in_a_small_window_is_told_by_a_quarter_of_a_round_trip() {
    let mut p = Path::new(Options { window: 2, ..with_rack() });
    let mut sent = p.send_all();
    for _ in 0..3 {
        sent = p.deliver(&sent, &[], &[]);
    }
    let first = sent[0].0;
    assert!(p.deliver(&sent, &[first], &[]).is_empty());
    let told = p.now;
    assert_eq!(numbers(&p.time_out()), [first]);
    assert!((p.now - told).abs_diff(RTT / 4) < 10, "{}", p.now - told);
    assert_eq!(p.sender.timeouts, 0);
}

/// §6.3: after a timeout what was selectively acknowledged is not sent again.
#[test]
fn a_timeout_with_rack_spares_what_has_arrived() {
    let (mut p, sent) = sixteen(with_rack());
    let first = sent[0].0;
    let lost: Vec<u32> = (first..first + 14).collect();
    p.deliver(&sent, &lost, &[]);
    // The retransmissions are lost as well, and so is the probe.
    let mut rounds = 0;
    while p.sender.timeouts == 0 {
        p.time_out();
        rounds += 1;
        assert!(rounds < 5);
    }
    let mut next = vec![(first, false, false)];
    for _ in 0..8 {
        next = p.deliver(&next, &[], &[]);
        assert!(!numbers(&next).contains(&(first + 14)), "{next:?}");
    }
    assert!(p.receiver.delivered() > first + 16);
}

/// After a timeout the window opens with what arrives; once something sent again is lost, too, it gives
/// way, as it does in Linux.
#[test]
fn a_loss_of_what_is_sent_again_after_a_timeout_is_a_loss() {
    let (mut p, _) = sixteen(with_rack());
    let mut sent = p.time_out();
    while p.sender.timeouts == 0 {
        sent = p.time_out();
    }
    for packets in [1, 2, 4] {
        assert_eq!(sent.len(), packets);
        sent = p.deliver(&sent, &[], &[]);
    }
    assert_eq!(sent.len(), 8);
    let lost = sent[0].0;
    let next = p.deliver(&sent, &[lost], &[]);
    assert!(numbers(&next).contains(&lost));
    assert!(next.len() <= 5, "half of eight, and the repair at once: {next:?}");
    p.deliver(&next, &[], &[]);
    assert!(p.sender.cwnd() < 6.0, "{}", p.sender.cwnd());
    assert_eq!(p.sender.timeouts, 1);
}

/// A window is late, not lost: the timer runs out. What arrives says that it was sent before (RFC 3522),
/// and nothing else is sent again; the window is what it was. What was sent again after the timeout
/// and arrives says that as well.
#[test]
fn a_needless_timeout_is_undone() {
    for (timestamps, late, undone) in
        [(true, true, true), (true, false, false), (false, true, false)]
    {
        let (mut p, sent) = sixteen(Options { timestamps, ..with_rack() });
        while p.sender.timeouts == 0 {
            p.time_out();
        }
        assert_eq!(p.sender.cwnd(), 1.0);
        let before = p.sender.retransmits;
        if late {
            p.repairs.clear();
        }
        p.now += RTT;
        let srtt = p.sender.srtt();
        let next = p.deliver(&sent[..1], &[], &[]);
        assert_eq!(p.sender.cwnd() >= 16.0, undone, "{}", p.sender.cwnd());
        assert_eq!(numbers(&next).contains(&sent[1].0), !undone, "{next:?}");
        p.deliver(&sent[1..], &[], &[]);
        assert_eq!(p.sender.retransmits == before, undone);
        // A round trip from the second sending to the first arrival is none.
        assert!(!undone || p.sender.srtt() >= srtt);
    }
}

/// One packet is overtaken by the rest, and sent again in a repair; then it comes.
#[test]
fn a_needless_repair_is_undone() {
    for late in [true, false] {
        let (mut p, sent) = sixteen(Options { timestamps: true, ..with_rack() });
        let again = p.deliver(&sent, &[sent[0].0], &[]);
        assert!(numbers(&again).contains(&sent[0].0));
        let one: Vec<_> = again.into_iter().filter(|s| s.0 == sent[0].0).collect();
        if late {
            p.repairs.clear();
        }
        p.deliver(&one, &[], &[]);
        let cwnd = p.sender.cwnd();
        assert!(if late { cwnd >= 16.0 } else { cwnd < 11.0 }, "{late}: {cwnd}");
    }
}

/// §6.2, step 2: what arrives a moment after it was sent again is what was sent before, and says
/// nothing of what was sent between the two.
#[test]
fn acknowledgements_that_are_late_do_not_have_all_sent_again() {
    let (mut p, sent) = sixteen(with_rack());
    let first = sent[0].0;
    while p.sender.timeouts == 0 {
        p.time_out();
    }
    p.now -= RTT - MS;
    let again = p.deliver(&sent, &[first], &[]);
    assert!(!numbers(&again).contains(&first), "{again:?}");
    assert!(p.sender.srtt() >= RTT);
}

/// RFC 3465: one acknowledgement of 16 packets opens the window by 16 in slow start.
#[test]
fn an_acknowledgement_counts_for_all_that_it_acknowledges() {
    for (count_packets, window) in [(true, 32.0), (false, 17.0)] {
        let (mut p, sent) = sixteen(Options { count_packets, ..options(Variant::Sack) });
        for (seq, ..) in sent {
            p.receiver.on_data(seq, false, false, true);
        }
        let mut ack = Packet::default();
        p.receiver.acknowledge(true, &mut ack);
        p.sender.on_ack(p.now + RTT, &ack, &p.o);
        assert_eq!(p.sender.cwnd(), window);
    }
}

/// RFC 9406 §4.2: of 16 acknowledgements with a longer round trip the eighth ends the doubling, and those
/// from it on count for a quarter of a packet.
#[test]
fn a_longer_round_trip_slows_slow_start_down_within_the_round() {
    let (mut p, sent) = sixteen(Options { control: Algorithm::Cubic, ..with_rack() });
    p.now += RTT + 20 * MS;
    for one in sent.chunks(1) {
        // One after another; a shorter one would be a false alarm.
        p.now -= RTT - MS / 1000;
        p.deliver(one, &[], &[]);
    }
    assert_eq!(p.sender.cwnd(), 16.0 + 7.0 + 9.0 / 4.0);
}
