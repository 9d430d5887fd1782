//! How the window grows and gives way to marks.

use super::*;
use crate::packet::Sack;

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
    assert_eq!((p.sender.counts().ecn_reductions, p.sender.cwnd()), (1, 16.0));
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

/// Half of seven is 3.5: behind a timeout slow start ends at 3 or beyond it, and what a lost packet leaves is
/// 3.5 in either case.
#[test]
fn a_slow_start_threshold_may_be_whole() {
    for (whole_threshold, grown) in [(false, 4.0), (true, 3.0 + 1.0 / 3.0)] {
        let o = options(Variant::Sack).with(|o| {
            o.window.whole_threshold = whole_threshold;
            o.window.initial = 7.0;
        });
        let mut p = Path::new(o);
        p.send_all();
        let mut sent = p.time_out();
        for _ in 0..2 {
            sent = p.deliver(&sent, &[], &[]);
        }
        assert!((p.sender.cwnd() - grown).abs() < 1e-9, "{}", p.sender.cwnd());
        let mut p = Path::new(options(Variant::Sack).with(|o| {
            o.window.whole_threshold = whole_threshold;
            o.window.initial = 7.0;
        }));
        let sent = p.send_all();
        p.deliver(&sent, &[0], &[]);
        assert!((p.sender.cwnd() - 3.5).abs() < 1e-9, "{}", p.sender.cwnd());
    }
}

#[test]
fn an_idle_connection_starts_again_from_its_initial_window() {
    for (restart, expected) in [(true, 2), (false, 33)] {
        let mut p = Path::new(options(Variant::Sack).with(|o| {
            o.window.after_idle = if restart { AfterIdle::Restart } else { AfterIdle::Keep }
        }));
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

/// RFC 2861 §3: of 64 packets 32, 16 and 8 are left after one, two and three timeouts of idleness, and never
/// less than the initial window; slow start goes on to 48, three quarters of what the window was.
#[test]
fn each_timeout_of_idleness_halves_the_window() {
    for (timeouts, left) in [(0.9, 64), (1.1, 32), (2.1, 16), (3.1, 8), (9.1, 2)] {
        let o = options(Variant::Sack).with(|o| {
            o.window.after_idle = AfterIdle::Decay;
            o.window.whole_packets = true;
        });
        let (mut p, mut sent) = sixteen(o);
        for _ in 0..2 {
            sent = p.deliver(&sent, &[], &[]);
        }
        // A mark, so that there is a slow-start threshold, of 32; slow start is over.
        let first = sent[0].0;
        sent = p.deliver(&sent, &[], &[first]);
        while p.sender.cwnd() < 64.0 {
            sent = p.deliver(&sent, &[], &[]);
        }
        p.sender.withdraw();
        assert!(p.deliver(&sent, &[], &[]).is_empty());
        let window = p.sender.cwnd();
        assert!((64.0..65.0).contains(&window), "{window}");
        // The last packet was sent a round trip ago.
        let timeout = p.sender.timeout(&p.o) as f64;
        p.now += (timeouts * timeout) as u64 - RTT;
        p.sender.offer(u32::MAX);
        sent = p.send_all();
        assert_eq!(sent.len(), left, "{timeouts}");
        let mut windows = vec![left];
        for _ in 0..5 {
            sent = p.deliver(&sent, &[], &[]);
            windows.push(p.sender.cwnd() as usize);
        }
        let grown: Vec<usize> = match left {
            64 => vec![64, 65, 66, 67, 68, 69],
            _ => {
                let mut grows = vec![left];
                while grows.len() < 6 {
                    let last = grows[grows.len() - 1];
                    grows.push(if last < 48 { (2 * last).min(48) } else { last + 1 });
                }
                grows
            }
        };
        for (found, expected) in windows.iter().zip(&grown) {
            assert!(found.abs_diff(*expected) <= 1, "{timeouts}: {windows:?}, not {grown:?}");
        }
    }
}

/// As in Linux: so that the end of slow start does not come with a burst of twice the rate.
#[test]
fn pacing_slows_down_half_way_to_the_threshold() {
    let (mut p, _) = sixteen(options(Variant::Sack));
    let mut sent = p.time_out();
    for (window, gain) in [(2.0, 2.0), (4.0, 1.2), (8.0, 1.2)] {
        sent = p.deliver(&sent, &[], &[]);
        let found = p.sender.srtt() as f64 / p.sender.pace(p.now) as f64 / window;
        assert!((found - gain).abs() < 0.01, "{window}: {found}");
    }
}

/// RFC 9438 §4.2: a pause in which there was nothing to send is no time that CUBIC's window grows by, though
/// the acknowledgements on either side of it find the window used.
#[test]
fn a_pause_is_no_time_of_cubic() {
    let control = TcpName::Cubic;
    let grown = [0, 20_000].map(|pause| {
        let o = options(Variant::Sack).with(|o| {
            o.control.name = control;
            o.window.after_idle = AfterIdle::Keep;
        });
        let mut p = Path::new(o);
        let mut sent = p.send_all();
        for round in 0..20 {
            let lost = if round == 6 { vec![sent[0].0] } else { vec![] };
            sent = p.deliver(&sent, &lost, &[]);
        }
        p.sender.withdraw();
        assert!(p.deliver(&sent, &[], &[]).is_empty());
        p.now += pause * MS;
        p.sender.offer(u32::MAX);
        let before = p.sender.cwnd();
        sent = p.send_all();
        for _ in 0..5 {
            sent = p.deliver(&sent, &[], &[]);
        }
        p.sender.cwnd() / before
    });
    assert!((grown[0] - grown[1]).abs() < 1e-9, "{grown:?}");
}

/// RFC 9438 §4.2: behind a pause slow start goes up to the threshold that a loss had left, and the next stage of
/// congestion avoidance begins there, not where the last one was: a loss left some 90 packets, which had become 200
/// before the pause. A round trip opens the 90 by less than a twentieth.
#[test]
fn behind_a_pause_cubic_begins_another_stage() {
    for count_packets in [false, true] {
        let control = TcpName::Cubic;
        let mut p = Path::new(options(Variant::Sack).with(|o| {
            o.control.name = control;
            o.window.count_packets = count_packets;
        }));
        let mut sent = p.send_all();
        let mut round = 0;
        while round < 8 || p.sender.cwnd() < 200.0 {
            let lost = if round == 6 { vec![sent[0].0] } else { vec![] };
            sent = p.deliver(&sent, &lost, &[]);
            round += 1;
        }
        p.sender.withdraw();
        assert!(p.deliver(&sent, &[], &[]).is_empty());
        p.now += 2000 * MS;
        p.sender.offer(u32::MAX);
        sent = p.send_all();
        let mut windows = vec![p.sender.cwnd()];
        for _ in 0..9 {
            sent = p.deliver(&sent, &[], &[]);
            windows.push(p.sender.cwnd());
        }
        assert_eq!(windows[..6], [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        for two in windows[6..].windows(2) {
            assert!(two[0] > 80.0 && two[1] < 1.05 * two[0], "{windows:?}");
        }
    }
}

/// A sender that has data and waits, for its pacing or for the host's own time, is not idle.
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
        payload: Payload::Ack { ece: 0, echo: 0, sack: Sack::default() },
        ..Packet::default()
    };
    p.now += RTT;
    p.sender.on_ack(p.now, &ack, &p.o);
    p.now += 5000 * MS;
    assert!(p.send_all().len() > 10);
}

/// Neither is one that waits with what the application has given it after a short pause.
#[test]
fn a_wait_after_a_pause_is_not_idleness() {
    for (pause, wait, restarts) in [(100, 5000, false), (5000, 100, true)] {
        let (mut p, sent) = sixteen(options(Variant::Sack));
        p.sender.withdraw();
        assert!(p.deliver(&sent, &[], &[]).is_empty());
        p.now += pause * MS;
        p.sender.offer(u32::MAX);
        assert!(p.sender.room(p.now, &p.o) > Some(0));
        p.now += wait * MS;
        assert_eq!(p.send_all().len() == 2, restarts, "{pause} ms idle, {wait} ms of waiting");
    }
}

/// RFC 9438 §5.1: CUBIC's mean window at a round trip of 100 ms when one packet in 1/p is lost:
/// ⁴√(C·3.7/1.2)·∜(R/p)³ = 1.054·(R/p)^¾, or Reno's window where that is larger: 38 packets at
/// p = 10⁻³ (both), 187 at 10⁻⁴.
#[test]
fn cubic_has_the_window_of_its_response_function() {
    for (every, expected) in [(1_000, 38.0), (10_000, 187.0)] {
        let control = TcpName::Cubic;
        let mut p = Path::new(options(Variant::Sack).with(|o| {
            o.control.name = control;
            o.window.receiver = 10_000;
        }));
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
        assert_eq!(p.sender.counts().timeouts, 0);
    }
}

/// RFC 3465: one acknowledgement of 16 packets opens the window by 16 in slow start.
#[test]
fn an_acknowledgement_counts_for_all_that_it_acknowledges() {
    for (count_packets, window) in [(true, 32.0), (false, 17.0)] {
        let (mut p, sent) =
            sixteen(options(Variant::Sack).with(|o| o.window.count_packets = count_packets));
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
    let (mut p, sent) = sixteen(with_rack().with(|o| o.control.name = TcpName::Cubic));
    p.now += RTT + 20 * MS;
    for one in sent.chunks(1) {
        // One after another; a shorter one would be a false alarm.
        p.now -= RTT - MS / 1000;
        p.deliver(one, &[], &[]);
    }
    assert_eq!(p.sender.cwnd(), 16.0 + 7.0 + 9.0 / 4.0);
}

/// A receiver's window of 20 packets bounds what is sent, not the window, as long as that is used.
#[test]
fn the_receiver_s_window_does_not_bound_the_window() {
    let mut p = Path::new(with_rack().with(|o| (o.window.initial, o.window.receiver) = (20.0, 20)));
    let sent = p.send_all();
    let next = p.deliver(&sent, &[], &[]);
    assert_eq!(next.len(), 20);
    assert!(p.sender.cwnd() > 30.0, "{}", p.sender.cwnd());
}

/// The receiver reports blocks beyond 65 535 packets: two packets of a window of 200 000 are missed and repaired
/// in one round trip.
#[test]
fn a_window_of_more_than_16_bits_is_repaired_in_a_round_trip() {
    for o in [with_rack(), options(Variant::Sack)] {
        let (window, lost) = (200_000, [1, 150_000]);
        let mut p =
            Path::new(o.with(|o| (o.window.initial, o.window.receiver) = (window.into(), window)));
        let sent = p.send_all();
        let next = p.deliver(&sent, &lost, &[]);
        let again: Vec<u32> = numbers(&next).into_iter().filter(|&n| n < window).collect();
        assert_eq!(again, lost);
        p.deliver(&next, &[], &[]);
        assert_eq!(p.receiver.delivered(), window + next.len() as u32 - 2);
        assert_eq!((p.sender.counts().retransmits, p.sender.counts().timeouts), (2, 0));
    }
}
