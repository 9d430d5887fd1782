//! What Tahoe, Reno, NewReno and SACK do about losses.

use super::*;
use crate::packet::Sack;

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
        assert_eq!(
            (p.sender.counts().retransmits, p.sender.counts().timeouts),
            (1, 0),
            "{variant:?}"
        );
        // Half of 16 and what limited transmit added, and one a round trip since.
        assert!((8.0..=13.0).contains(&p.sender.cwnd()), "{variant:?}: {}", p.sender.cwnd());
        assert!(p.receiver.delivered() > first + 16);
    }
}

/// Jacobson 1988: at the third duplicate the window is one packet, the threshold half of what was under way, and
/// everything from the lost packet on is sent again, in slow start. More losses of that window need nothing more.
#[test]
fn tahoe_goes_back_to_the_lost_packet() {
    let o = options(Variant::Tahoe).with(|o| o.recovery.limited_transmit = 0);
    let (mut p, sent) = sixteen(o);
    let n = sent[0].0;
    let again = p.deliver(&sent, &[n, n + 5], &[]);
    assert_eq!(numbers(&again), [n]);
    assert_eq!(p.sender.cwnd(), 1.0);
    // The receiver had the next four, so that they are not sent again.
    let again = p.deliver(&again, &[], &[]);
    assert_eq!(numbers(&again), [n + 5, n + 6]);
    let next = p.deliver(&again, &[], &[]);
    assert_eq!(numbers(&next), [n + 16, n + 17, n + 18], "no packet is sent a third time");
    assert_eq!((p.sender.cwnd(), p.sender.counts().timeouts), (3.0, 0));
    // At the threshold of eight the window stops doubling.
    let mut next = next;
    while p.sender.cwnd() < 8.0 {
        next = p.deliver(&next, &[], &[]);
    }
    p.deliver(&next, &[], &[]);
    assert!((8.0..9.5).contains(&p.sender.cwnd()), "{}", p.sender.cwnd());
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
                return (round, p.sender.counts().timeouts);
            }
            sent = if sent.is_empty() { p.time_out() } else { p.deliver(&sent, &[], &[]) };
        }
        (20, p.sender.counts().timeouts)
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
        let most = if limited { 2 } else { 0 };
        let mut p =
            Path::new(options(Variant::NewReno).with(|o| o.recovery.limited_transmit = most));
        let sent = p.send_all();
        let sent = p.deliver(&sent, &[], &[]);
        assert_eq!(sent.len(), 4);
        // The first is lost and of the other three two come through: two duplicates.
        let next = p.deliver(&sent, &[sent[0].0, sent[3].0], &[]);
        assert_eq!(next.len(), expected, "RFC 3042");
        assert_eq!(p.sender.counts().retransmits, 0);
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
    assert_eq!(p.sender.counts().timeouts, 2);
}

/// RFC 5681 §3.1: the threshold of 8 that a timeout leaves of 16 stays when the timer runs out for the same packet
/// again. If what slow start sends behind its repair is lost, the next timeout is for another packet: two are left
/// of two (§4.3, and Linux), and slow start is over.
#[test]
fn a_timeout_for_another_packet_lowers_the_threshold_again() {
    let all = [Variant::Reno, Variant::NewReno, Variant::Sack].map(options);
    for o in all.into_iter().chain([with_rack(), all[2].with(|o| o.recovery.past_timeout = 1)]) {
        for (another, grown) in [(false, 8.0..9.0), (true, 2.0..4.0)] {
            let (mut p, _) = sixteen(o);
            let time_out = |p: &mut Path, timeouts| loop {
                let sent = p.time_out();
                if p.sender.counts().timeouts == timeouts {
                    return sent;
                }
            };
            let mut sent = time_out(&mut p, 1);
            if another {
                assert_eq!(p.deliver(&sent, &[], &[]).len(), 2);
            }
            sent = time_out(&mut p, 2);
            assert_eq!((sent.len(), p.sender.cwnd()), (1, 1.0));
            for _ in 0..3 {
                sent = p.deliver(&sent, &[], &[]);
            }
            let cwnd = p.sender.cwnd();
            assert!(grown.contains(&cwnd), "{another}: {cwnd}, {:?}", o.recovery.variant);
        }
    }
}

/// Four packets behind a timeout's one is lost: RFC 6675 repairs it upon three duplicates, RFC 6582 and ns-2
/// leave the first of them to the timer.
#[test]
fn the_first_packet_past_a_timeout_may_be_left_to_the_timer() {
    for (past_timeout, lost, repairs) in [(0, 0, 1), (1, 0, 0), (0, 1, 1), (1, 1, 1)] {
        let o = options(Variant::Sack).with(|o| o.recovery.past_timeout = past_timeout);
        assert_eq!(repairs_past_a_timeout(o, lost), repairs, "past {past_timeout}, {lost} lost");
    }
}

/// The same behind a fast recovery, of which RFC 6582 asks as well, and ns-2's Reno and Newreno; its Sack1
/// does not.
#[test]
fn the_first_packet_past_a_fast_recovery_may_be_left_to_the_timer() {
    for (variant, past_timeout, repairs) in [
        (Variant::NewReno, 0, 1),
        (Variant::NewReno, 1, 0),
        (Variant::Reno, 0, 1),
        (Variant::Reno, 1, 0),
        (Variant::Sack, 1, 1),
    ] {
        let (mut p, sent) =
            sixteen(options(variant).with(|o| o.recovery.past_timeout = past_timeout));
        let first = sent[0].0;
        let next = p.deliver(&sent, &[first], &[]);
        // Two went out on the first two duplicates; the repair ends with them.
        let past = first + 18;
        let behind = numbers(&next).iter().filter(|&&n| n > past).count();
        assert!(numbers(&next).contains(&past) && behind > 3, "{next:?}");
        let next = p.deliver(&next, &[past], &[]);
        p.deliver(&next, &[], &[]);
        let repaired = p.sender.counts().retransmits - 1;
        assert_eq!(repaired, repairs, "{variant:?}, past {past_timeout}");
        if repairs == 0 {
            assert_eq!(numbers(&p.time_out())[0], past);
        }
    }
}

#[test]
fn acknowledgements_from_nowhere_are_ignored() {
    let mut p = Path::new(options(Variant::Sack));
    let sent = p.send_all();
    let before = p.sender.cwnd();
    let blocks = [(7, 3), (60_000, 65_535), (0, 65_535)];
    for seq in [3, 1000, u32::MAX] {
        let payload = Payload::Ack { ece: 1, echo: 0, sack: Sack::new(blocks) };
        let ack = Packet { seq, payload, ..Packet::default() };
        p.sender.on_ack(RTT, &ack, &p.o);
    }
    assert_eq!((p.sender.cwnd(), p.sender.counts().ecn_reductions), (before, 0));
    assert_eq!(p.deliver(&sent, &[], &[]).len(), 4);
}

/// RFC 6675 §2: what acknowledges and tells of a gap that is news is a duplicate. The first packet comes late, with two
/// gaps told by the acknowledgements before: two more, of which one moves the acknowledgement, begin the repair.
#[test]
fn an_acknowledgement_that_moves_and_tells_of_a_gap_is_a_duplicate() {
    let mut p = Path::new(options(Variant::Sack).with(|o| o.window.initial = 10.0));
    let sent = p.send_all();
    // 1 is lost; one acknowledgement tells of 0 and 2 together, two more of 3 and 4.
    let acks = p.receive(&sent[..5], &[1], &[]);
    p.now += RTT;
    for ack in &acks[1..] {
        p.sender.on_ack(p.now, ack, &p.o);
    }
    assert_eq!(p.sender.counts().retransmits, 0);
    assert!(numbers(&p.send_all()).contains(&1));
}

/// RFC 6582 §3.2 step 2 is `newreno`'s by default; `reno` and `sack` have their own rules.
#[test]
fn newreno_asks_for_more_than_was_sent_before_a_timeout() {
    let past = |keys: &str| {
        let text = format!(
            "duration = \"1s\"\n[network]\npreset = \"dumbbell\"\n[[queue]]\naqm = \"droptail\"\n\
             buffer = \"9p\"\n[[traffic]]\n{keys}"
        );
        let scenario = crate::Scenario::from_toml(&text, "test").unwrap();
        Options::of(&scenario.traffic[0]).unwrap().recovery.past_timeout
    };
    let keys = ["newreno", "reno", "sack"].map(|name| format!("transport = \"{name}\""));
    assert_eq!(keys.map(|keys| past(&keys)), [1, 0, 0]);
    assert_eq!(past("transport = \"newreno\"\nrepair_past_timeout = false"), 0);
}
