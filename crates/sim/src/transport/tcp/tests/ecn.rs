//! What echoes of marks do to the sender, and what the receiver echoes.

use super::*;
use crate::packet::Sack;
use crate::transport::tcp::receiver::AckWhen;

/// With every packet marked the window stays at one packet, one a round trip.
#[test]
fn without_ecn_timeouts_a_marked_sender_sends_one_packet_a_round_trip() {
    let mut p = Path::new(options(Variant::Sack));
    let mut sent = p.send_all();
    for _ in 0..10 {
        let all = numbers(&sent);
        sent = p.deliver(&sent, &[], &all);
    }
    assert_eq!((sent.len(), p.sender.cwnd()), (1, 1.0));
    assert_eq!(p.sender.counts().timeouts, 0);
}

/// With a least window of two, as Linux has it, it stays at two.
#[test]
fn an_echo_leaves_the_least_window() {
    let mut p = Path::new(options(Variant::Sack).with(|o| o.ecn.least_window = 2.0));
    let mut sent = p.send_all();
    for _ in 0..10 {
        let all = numbers(&sent);
        sent = p.deliver(&sent, &[], &all);
    }
    assert_eq!((sent.len(), p.sender.cwnd()), (2, 2.0));
}

/// With ECN timeouts it waits for its timer before each packet, twice as long each time
/// (RFC 3168 §6.1.2, as in ns-2), until one comes through unmarked.
#[test]
fn with_ecn_timeouts_a_marked_sender_waits_longer_and_longer() {
    let mut p = Path::new(options(Variant::Sack).with(|o| o.ecn.waits()));
    let mut sent = p.send_all();
    let mut waits = Vec::new();
    for _ in 0..6 {
        let all = numbers(&sent);
        sent = p.deliver(&sent, &[], &all);
        if sent.is_empty() {
            let before = p.now;
            sent = p.time_out();
            waits.push((p.now - before) / MS);
        }
    }
    assert!(waits.len() >= 3, "{waits:?}");
    // While samples still calm the timeout down it grows by less than twofold.
    assert!(waits.windows(2).all(|w| w[1] * 10 >= w[0] * 16), "{waits:?}");
    assert_eq!(p.sender.counts().timeouts, 0, "waiting is no timeout");
    let next = p.deliver(&sent, &[], &[]);
    assert!(!next.is_empty(), "an unmarked packet ends it");
}

/// The packet that carries CWR is lost with all after it. The first packet after the timeout carries CWR (RFC
/// 3168 §6.1.2: a sender reports a reduction for any reason), so the receiver stops echoing a mark that was
/// answered long ago.
#[test]
fn a_timeout_tells_that_the_window_was_reduced() {
    for control in [TcpName::Reno, TcpName::Cubic] {
        let mut p = Path::new(options(Variant::Sack).with(|o| o.control.name = control));
        let mut sent = p.send_all();
        for _ in 0..3 {
            sent = p.deliver(&sent, &[], &[]);
        }
        let marked = sent[0].0;
        sent = p.deliver(&sent, &[], &[marked]);
        assert!(sent[0].1 && p.sender.counts().ecn_reductions == 1, "CWR is on its way");
        assert!(p.deliver(&sent, &numbers(&sent), &[]).is_empty(), "and is lost");
        let again = p.time_out();
        assert_eq!(again, [(sent[0].0, true, false)], "{control:?}");
        sent = p.deliver(&again, &[], &[]);
        assert!(!p.echoes(), "{control:?}: the receiver has heard of it");
        for _ in 0..8 {
            sent = p.deliver(&sent, &[], &[]);
        }
        assert_eq!(
            (p.sender.counts().ecn_reductions, p.sender.counts().timeouts),
            (1, 1),
            "one mark, one answer"
        );
    }
}

/// Its retransmission by fast retransmit tells it again, as does the one after it.
#[test]
fn a_fast_retransmit_of_the_packet_with_cwr_carries_cwr() {
    for variant in [Variant::Reno, Variant::NewReno, Variant::Sack] {
        let mut p = Path::new(options(variant));
        let mut sent = p.send_all();
        for _ in 0..3 {
            sent = p.deliver(&sent, &[], &[]);
        }
        let marked = sent[0].0;
        sent = p.deliver(&sent, &[], &[marked]);
        let told = sent[0].0;
        assert!(sent[0].1);
        sent = p.deliver(&sent, &[told], &[]);
        assert!(sent.iter().any(|&(n, reduced, _)| n == told && reduced), "{variant:?}: {sent:?}");
        p.deliver(&sent, &[], &[]);
        assert!(!p.echoes(), "{variant:?}");
        assert_eq!(
            (p.sender.counts().ecn_reductions, p.sender.counts().timeouts),
            (1, 0),
            "{variant:?}"
        );
    }
}

/// A connection without ECN says nothing of it.
#[test]
fn without_ecn_there_is_no_cwr() {
    for variant in [Variant::Reno, Variant::NewReno, Variant::Sack] {
        let mut p = Path::new(options(variant).with(|o| o.ecn.on = false));
        let mut all = p.send_all();
        let mut sent = all.clone();
        for round in 0..40 {
            let lost = if round % 5 == 4 { numbers(&sent) } else { vec![] };
            let lost = if round % 10 == 4 { lost[..1].to_vec() } else { lost };
            sent = p.deliver(&sent, &lost, &[]);
            if sent.is_empty() {
                sent = p.time_out();
            }
            all.extend(&sent);
        }
        assert!(
            p.sender.counts().timeouts > 0
                && p.sender.counts().retransmits > p.sender.counts().timeouts
        );
        assert!(all.iter().all(|s| !s.1), "{variant:?}");
    }
}

/// The timer that a sender waits for knows the round trip that the echoing acknowledgement measured:
/// 100 ms, with a deviation of 50, are 300 ms, not the 1 s before there was any.
#[test]
fn the_wait_after_an_echo_knows_the_acknowledgement_that_began_it() {
    let o = options(Variant::Sack).with(|o| {
        o.ecn.waits();
        o.window.initial = 1.0;
    });
    let mut p = Path::new(o);
    let sent = p.send_all();
    assert!(p.deliver(&sent, &[], &[0]).is_empty(), "it waits");
    assert_eq!(p.sender.deadline() - p.now, 300 * MS);
}

/// With packets under way, the timer that a sender waits for after an echo is their retransmission
/// timer as well: what was lost is sent again when it expires, not a timeout later.
#[test]
fn the_wait_after_an_echo_ends_with_what_was_lost() {
    let o = options(Variant::Sack).with(|o| {
        o.ecn.waits();
        o.window.initial = 3.0;
    });
    let mut p = Path::new(o);
    let sent = p.send_all();
    // 0 is marked: 1.5 are left of 3. Of the two others one is marked, too, one is lost.
    let next = p.deliver(&sent, &[2], &[0]);
    assert!(next.is_empty() && p.sender.cwnd() == 1.5, "{}", p.sender.cwnd());
    let again = p.time_out();
    assert_eq!(again, [(2, true, false)], "sent again, with CWR");
}

/// An echo of marks that packets met before a timeout tells nothing of the repair, where
/// retransmissions are not ECN-capable: the window gave way already.
#[test]
fn an_echo_of_old_marks_during_a_repair_counts_once() {
    for (codepoint_again, reductions) in [(Ecn::NotEct, 0), (Ecn::Ect0, 1)] {
        let mut p = Path::new(options(Variant::Sack).with(|o| o.ecn.again = codepoint_again));
        let sent = p.send_all();
        let sent = p.deliver(&sent, &[], &[]);
        assert_eq!(sent.len(), 4);
        p.time_out();
        // The first of the old packets was late, not lost, and marked.
        let payload = Payload::Ack { ece: 1, echo: 0, sack: Sack::default() };
        let ack = Packet { seq: 3, payload, ..Packet::default() };
        p.sender.on_ack(p.now, &ack, &p.o);
        assert_eq!(p.sender.counts().ecn_reductions, reductions, "{codepoint_again:?}");
    }
}

/// With a window of one packet the second echo in a row doubles the timeout. If what is under way is
/// lost, the timer that it set doubles it no further.
#[test]
fn a_wait_doubles_the_timeout_once() {
    let mut p = Path::new(options(Variant::Sack).with(|o| o.ecn.waits()));
    p.o.ecn.again = Ecn::Ect0;
    let sent = p.send_all();
    p.deliver(&sent, &[], &[]);
    p.time_out();
    let echo = |seq| Packet {
        seq,
        payload: Payload::Ack { ece: 1, echo: 0, sack: Sack::default() },
        ..Packet::default()
    };
    // Four packets were under way; echoes of the retransmissions find the window at one packet.
    p.sender.on_ack(p.now, &echo(3), &p.o);
    assert!(p.sender.cwnd() < 1.0);
    let wait = p.sender.deadline() - p.now;
    p.now = p.sender.deadline();
    p.sender.on_timer(p.now, &p.o);
    assert_eq!(p.sender.deadline() - p.now, 2 * wait, "the first echo had not doubled it");
    p.sender.on_ack(p.now, &echo(4), &p.o);
    let wait = p.sender.deadline() - p.now;
    p.now = p.sender.deadline();
    p.sender.on_timer(p.now, &p.o);
    assert_eq!(p.sender.deadline() - p.now, wait, "the second had");
}

/// A wait that an echo has doubled is over when its packet is sent: if that is lost, its timer doubles the
/// timeout again (RFC 6298 §5.5).
#[test]
fn what_is_lost_behind_a_wait_doubles_the_timeout() {
    let mut p = Path::new(options(Variant::Sack).with(|o| o.ecn.waits()));
    let mut sent = p.send_all();
    // Until the window is one packet, and the wait behind its mark doubled.
    for _ in 0..3 {
        while !sent.is_empty() {
            let all = numbers(&sent);
            sent = p.deliver(&sent, &[], &all);
        }
        sent = p.time_out();
    }
    assert_eq!((sent.len(), p.sender.counts().timeouts), (1, 0));
    let wait = p.sender.deadline() - p.now;
    p.time_out();
    assert_eq!((p.sender.deadline() - p.now, p.sender.counts().timeouts), (2 * wait, 1));
}

/// The same mark leaves Reno half of the window and CUBIC 0.7. DCTCP's share of marks is still near
/// its initial 1 after five windows without a mark: α = (15/16)⁵ = 0.724, 1 − α/2 = 0.638 is left.
#[test]
fn what_a_mark_leaves_depends_on_the_control() {
    for (control, left) in [(TcpName::Reno, 0.5), (TcpName::Cubic, 0.7), (TcpName::Dctcp, 0.638)] {
        let mut p = Path::new(options(Variant::Sack).with(|o| o.control.name = control));
        let mut sent = p.send_all();
        for _ in 0..4 {
            sent = p.deliver(&sent, &[], &[]);
        }
        assert_eq!(sent.len(), 32);
        p.deliver(&sent, &[], &[sent[31].0]);
        // 31 acknowledgements without a mark made 63 packets of 32.
        let share = p.sender.cwnd() / 63.0;
        assert!((share - left).abs() < 0.001, "{control:?}: {share}");
    }
}

/// Linux counts whole packets: 0.7 of 7 are 4.
#[test]
fn a_reduction_may_leave_whole_packets() {
    for (whole_packets, left) in [(false, 4.9), (true, 4.0)] {
        let control = TcpName::Cubic;
        let o = options(Variant::Sack).with(|o| {
            o.control.name = control;
            o.window.whole_packets = whole_packets;
            o.window.initial = 7.0;
        });
        let mut p = Path::new(o);
        let sent = p.send_all();
        p.deliver(&sent[..1], &[], &[0]);
        assert!((p.sender.cwnd() - left).abs() < 1e-9, "{}", p.sender.cwnd());
    }
}

/// With exact echoes a mark is reported once, however long the sender takes to answer.
#[test]
fn exact_echoes_follow_the_marks() {
    let mut r = Receiver::default();
    let mut ack = Packet::default();
    r.on_data(0, true, true, true);
    assert!(r.owes_ack() && !r.owes_other_echo(true) && r.owes_other_echo(false));
    r.acknowledge(false, &mut ack);
    assert!(ack.echoes());
    r.on_data(1, false, true, false);
    r.acknowledge(false, &mut ack);
    assert!(!ack.echoes());
}

fn with_accecn(accecn: bool) -> Options {
    let control = TcpName::Dctcp;
    with_rack().with(|o| {
        o.control.name = control;
        o.window.initial = 40.0;
        if accecn {
            (o.ecn.echo, o.acks.plain) = (Echo::Counted, false);
        }
        o.acks.look_closer = true;
    })
}

/// All acknowledgements of a window are lost but the last: an echo of just what that one acknowledges
/// says nothing of the marks before it, a counter does. Up to seven packets it is exact; from eight on it
/// may have come round, and has: RFC 9768 §3.2.2.5.2.
#[test]
fn a_counter_tells_of_marks_whose_acknowledgements_were_lost() {
    let reductions = |accecn, packets: u32, marked: u32| {
        let mut p = Path::new(with_accecn(accecn));
        p.send_all();
        let mut ack = Packet::default();
        for seq in 0..packets {
            p.receiver.on_watched_data(seq, seq < marked, true, &p.o);
            p.receiver.acknowledge(true, &mut ack);
            p.receiver.tell_more(&mut ack, &p.o);
        }
        p.sender.on_ack(RTT, &ack, &p.o);
        p.sender.counts().ecn_reductions
    };
    for (packets, marked, told) in
        [(7, 0, 0), (7, 1, 1), (7, 6, 1), (16, 8, 1), (40, 20, 1), (8, 0, 1)]
    {
        assert_eq!(reductions(false, packets, marked), 0, "an echo, {marked} of {packets}");
        assert_eq!(reductions(true, packets, marked), told, "a counter, {marked} of {packets}");
    }
}

/// RFC 9768 §3.2.2.5.1, with delayed acknowledgements: the first mark after none is reported at once, the
/// next with the second packet, and packets after marks wait again.
#[test]
fn the_first_of_several_marks_is_told_at_once() {
    let o = with_accecn(true).with(|o| o.acks.delay = 40 * MS);
    let (mut r, mut ack) = (Receiver::default(), Packet::default());
    let mut told = Vec::new();
    for (seq, ce) in (0..).zip([false, true, true, true, false, true, false]) {
        if r.on_watched_data(seq, ce, true, &o) == AckWhen::Now {
            r.acknowledge(true, &mut ack);
            r.tell_more(&mut ack, &o);
            let Payload::Ack { ece, .. } = ack.payload else { panic!("{ack:?}") };
            told.push((seq, ece));
        }
    }
    assert_eq!(told, [(1, 6), (3, 0), (5, 1)]);
}

/// What of packets marked as in `marks`, those of `cwr` with CWR, is acknowledged at once, of a receiver that does as
/// Linux, once the first packets are over.
fn quick(echo: Echo, marks: &[bool], cwr: &[usize]) -> Vec<usize> {
    let o = options(Variant::Sack).with(|o| {
        o.ecn.echo = echo;
        (o.acks.delay, o.acks.quick, o.acks.look_closer) = (40 * MS, true, true);
        o.acks.plain = echo != Echo::Counted;
    });
    let (mut r, mut ack) = (Receiver::default(), Packet::default());
    let mut at_once = |seq, ce, cwr| {
        let when = r.on_watched_data(seq, ce, cwr, &o);
        if when == AckWhen::Now {
            r.acknowledge(true, &mut ack);
        }
        when == AckWhen::Now
    };
    let first = (0..18).filter(|&seq| at_once(seq, false, false)).count() as u32;
    assert_eq!(first, 17, "sixteen at the start, then every second one");
    let marks = marks.iter().enumerate();
    marks.filter(|&(n, &ce)| at_once(18 + n as u32, ce, cwr.contains(&n))).map(|(n, _)| n).collect()
}

/// Linux acknowledges a first mark and the packet behind it at once only where echoes last until they are answered (RFC
/// 3168). A receiver of DCTCP or AccECN tells of the change, and delays acknowledgements as before.
#[test]
fn marks_hurry_only_echoes_that_last() {
    let marks = [false, false, true, true, true, true, true, true];
    assert_eq!(quick(Echo::UntilAnswered, &marks, &[]), [1, 2, 3, 5, 7]);
    assert_eq!(quick(Echo::Exact, &marks, &[]), [1, 2, 4, 6]);
    assert_eq!(quick(Echo::Counted, &marks, &[]), [1, 2, 4, 6]);
}

/// Linux acknowledges what carries CWR at once, since the window behind it may be a packet.
#[test]
fn what_tells_of_a_reduction_is_acknowledged_at_once() {
    for echo in [Echo::UntilAnswered, Echo::Exact] {
        assert_eq!(quick(echo, &[false; 5], &[2]), [1, 2, 4], "{echo:?}");
    }
}

/// A window of three goes down to two. Linux sends a packet for the first acknowledgement all the same, and none for the
/// second.
#[test]
fn a_reduction_of_linux_begins_with_a_packet() {
    for (whole, sent) in [(true, [1, 0, 1]), (false, [0, 1, 1])] {
        let mut p = Path::new(with_rack().with(|o| {
            (o.window.initial, o.window.whole_packets) = (3.0, whole);
        }));
        let packets = p.send_all();
        let acks = p.receive(&packets, &[], &[0]);
        p.now += RTT;
        let found: Vec<usize> = acks
            .iter()
            .map(|ack| {
                p.sender.on_ack(p.now, ack, &p.o);
                p.send_all().len()
            })
            .collect();
        assert_eq!(found, sent, "{whole}");
    }
}
