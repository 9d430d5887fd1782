//! Losses that are found by time, probes, and needless repairs.

use super::*;
use crate::packet::Sack;

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
        assert_eq!(p.sender.counts().timeouts, 0);
        assert_eq!(p.receiver.delivered() > first + 16, repaired);
    }
}

/// Before anything has arrived there is no round trip by which something is overdue: the window of a timeout is one
/// packet all the same, and sends it once.
#[test]
fn a_timeout_before_the_first_round_trip_sends_one_packet() {
    let mut p = Path::new(with_rack());
    assert_eq!(numbers(&p.send_all()), [0, 1]);
    for _ in 0..3 {
        p.now = p.sender.deadline();
        p.sender.on_timer(p.now, &p.o);
        assert_eq!(numbers(&p.send_all()), [0]);
    }
}

/// RFC 9937: while a window of 16 goes down to 8, every second packet that arrives lets one out; the
/// window does not grow meanwhile, and grows again afterwards.
#[test]
fn an_echo_lets_half_of_the_window_out_while_it_is_answered() {
    let (mut p, sent) = sixteen(with_rack());
    let all = numbers(&sent);
    let next = p.deliver(&sent, &[], &all);
    assert_eq!((next.len(), p.sender.counts().ecn_reductions), (8, 1));
    assert!(next[0].1, "the next packet carries CWR");
    let next = p.deliver(&next, &[], &[]);
    assert!((8.0..9.0).contains(&p.sender.cwnd()), "{}", p.sender.cwnd());
    assert_eq!(p.sender.counts().ecn_reductions, 1);
    p.deliver(&next, &[], &[]);
    assert!(p.sender.cwnd() > 9.0);
}

/// A window that goes down is set by what arrives: an acknowledgement of nothing new, as of a packet that
/// came twice, leaves it alone. With nothing under way it would be none, for ever.
#[test]
fn an_acknowledgement_of_nothing_new_leaves_a_window_that_goes_down() {
    let all = numbers(&sixteen(with_rack()).1);
    for marked in [&all[..], &all[15..]] {
        let (mut p, sent) = sixteen(with_rack());
        let acks = p.receive(&sent, &[], marked);
        for ack in acks.iter().chain(acks.last()) {
            p.sender.on_ack(p.now, ack, &p.o);
        }
        assert!(!p.send_all().is_empty(), "a window of {}", p.sender.cwnd());
    }
}

/// RFC 9937 §6.2: once what is under way is below the threshold, what was delivered and not sent for may go out,
/// also with an acknowledgement that tells of losses. Of a window of 40 the packets 0 and 10 … 30 are lost. The
/// first nine acknowledgements let out seven; the tenth tells of 21 losses and makes up for it: 10 − 6.
#[test]
fn what_was_delivered_is_sent_for_when_losses_are_told() {
    let mut p = Path::new(with_rack().with(|o| o.window.initial = 40.0));
    let sent = p.send_all();
    let lost: Vec<u32> = [0].into_iter().chain(10..=30).collect();
    let rounds = p.deliver_each(&sent, &lost, &[]);
    let counts: Vec<usize> = rounds.iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 1, 1, 0, 1, 0, 1, 0, 1, 4, 1, 1, 1, 1, 1, 1, 1, 1]);
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
    assert_eq!((p.sender.counts().retransmits, p.sender.counts().timeouts), (4, 0));
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
    assert_eq!((p.sender.counts().retransmits, p.sender.counts().timeouts), (3, 0));
    // Once down, it is more than half of the sixteen; three rounds have opened it by three at most.
    assert!(p.sender.cwnd() < 16.0 / 4.0 + 3.0, "{}", p.sender.cwnd());
}

/// As a repair ends, the oldest packet is one that was sent again and is under way: a loss after it is found
/// all the same (RFC 8985 §6.2, step 5).
#[test]
fn a_loss_behind_a_retransmission_is_told_before_that_arrives() {
    let (mut p, sent) = sixteen(with_rack());
    let first = sent[0].0;
    let mut next = p.deliver(&sent, &[first], &[]);
    let second = next.iter().map(|s| s.0).find(|&n| n > first + 18).unwrap();
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
    let rto = options(Variant::Sack).timer.rto.above_srtt(200 * MS);
    let (mut p, sent) = sixteen(with_rack().with(|o| o.timer.rto = rto));
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
    assert_eq!(p.sender.counts().timeouts, 0);
    assert!(p.receiver.delivered() > first + 16);
}

/// §7.2: a probe waits for no more than the timeout. §7.3: behind it the timeout is a whole one again.
#[test]
fn a_probe_comes_before_the_timeout_however_short_that_is() {
    let mut p = Path::new(with_rack().with(|o| o.window.receiver = 1));
    let mut sent = p.send_all();
    for _ in 0..20 {
        sent = p.deliver(&sent, &[], &[]);
    }
    let start = p.now;
    let probe = p.time_out();
    assert_eq!((numbers(&probe), p.sender.counts().timeouts), (numbers(&sent), 0));
    let wait = p.now - start;
    assert!(wait < 2 * p.sender.srtt() + 200 * MS, "{wait}");
    assert_eq!(p.time_out().len(), 1);
    assert_eq!((p.now - start, p.sender.counts().timeouts), (2 * wait, 1));
}

/// A probe is due, and an acknowledgement comes before it may be sent, as of a paced sender: what that
/// tells of is not sent again, and the packets under way are those that it leaves.
#[test]
fn a_probe_that_waits_gives_way_to_news() {
    let (mut p, sent) = sixteen(with_rack());
    p.sender.withdraw();
    p.now = p.sender.deadline();
    p.sender.on_timer(p.now, &p.o);
    for ack in p.receive(&sent[15..], &[], &[]) {
        p.sender.on_ack(p.now, &ack, &p.o);
    }
    assert!(!numbers(&p.send_all()).contains(&sent[15].0));
}

/// The last of a window is lost, or late, and sent again as a probe: what is sent after it arrives as if
/// nothing had been, but if the first sending was lost the window gives way (§7.4.2).
#[test]
fn a_loss_that_a_probe_repairs_costs_as_much_as_another() {
    for lost in [true, false] {
        let (mut p, sent) = sixteen(with_rack());
        p.sender.withdraw();
        let last = sent[15];
        p.deliver(&sent[..15], &[], &[]);
        let probe = p.time_out();
        assert_eq!(numbers(&probe), [last.0]);
        let dropped = [last.0];
        p.deliver(&[last], &dropped[..usize::from(lost)], &[]);
        p.deliver(&probe, &[], &[]);
        let before = p.sender.cwnd();
        p.sender.offer(2);
        let next = p.send_all();
        p.deliver(&next, &[], &[]);
        let cwnd = p.sender.cwnd();
        assert_eq!(cwnd <= before / 2.0 + 2.0, lost, "{before} {cwnd}");
        assert_eq!((p.sender.counts().retransmits, p.sender.counts().timeouts), (1, 0));
    }
}

/// §6.2: with fewer than three selective acknowledgements a quarter of a round trip decides.
#[test]
fn a_loss_in_a_small_window_is_told_by_a_quarter_of_a_round_trip() {
    let mut p = Path::new(with_rack().with(|o| o.window.receiver = 2));
    let mut sent = p.send_all();
    for _ in 0..3 {
        sent = p.deliver(&sent, &[], &[]);
    }
    let first = sent[0].0;
    assert!(p.deliver(&sent, &[first], &[]).is_empty());
    let told = p.now;
    assert_eq!(numbers(&p.time_out()), [first]);
    assert!((p.now - told).abs_diff(RTT / 4) < 10, "{}", p.now - told);
    assert_eq!(p.sender.counts().timeouts, 0);
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
    while p.sender.counts().timeouts == 0 {
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
    while p.sender.counts().timeouts == 0 {
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
    assert_eq!(p.sender.counts().timeouts, 1);
}

/// A window is late, not lost: the timer runs out. What arrives says that it was sent before (RFC 3522),
/// and nothing else is sent again; the window is what it was. What was sent again after the timeout
/// and arrives says that as well.
#[test]
fn a_needless_timeout_is_undone() {
    for (timestamps, late, undone) in
        [(true, true, true), (true, false, false), (false, true, false)]
    {
        let (mut p, sent) = sixteen(with_rack().with(|o| o.recovery.timestamps = timestamps));
        p.late = late;
        while p.sender.counts().timeouts == 0 {
            p.time_out();
        }
        assert_eq!(p.sender.cwnd(), 1.0);
        let before = p.sender.counts().retransmits;
        p.now += RTT;
        let srtt = p.sender.srtt();
        let next = p.deliver(&sent[..1], &[], &[]);
        assert_eq!(p.sender.cwnd() >= 16.0, undone, "{}", p.sender.cwnd());
        assert_eq!(numbers(&next).contains(&sent[1].0), !undone, "{next:?}");
        p.deliver(&sent[1..], &[], &[]);
        assert_eq!(p.sender.counts().retransmits == before, undone);
        // A round trip from the second sending to the first arrival is none.
        assert!(!undone || p.sender.srtt() >= srtt);
    }
}

/// One packet is overtaken by the rest, and sent again in a repair; then it comes.
#[test]
fn a_needless_repair_is_undone() {
    for late in [true, false] {
        let (mut p, sent) = sixteen(with_rack().with(|o| o.recovery.timestamps = true));
        p.late = late;
        let again = p.deliver(&sent, &[sent[0].0], &[]);
        assert!(numbers(&again).contains(&sent[0].0));
        let one: Vec<_> = again.into_iter().filter(|s| s.0 == sent[0].0).collect();
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
    while p.sender.counts().timeouts == 0 {
        p.time_out();
    }
    p.now -= RTT - MS;
    let again = p.deliver(&sent, &[first], &[]);
    assert!(!numbers(&again).contains(&first), "{again:?}");
    assert!(p.sender.srtt() >= RTT);
}

/// RFC 7323 §4.3 (2): packets arrive, and what acknowledges them is lost: that of the duplicate echoes the
/// duplicate, and a round trip is one, not the time since the first sending.
#[test]
fn lost_acknowledgements_do_not_lengthen_the_round_trip() {
    let mut p = Path::new(with_rack().with(|o| {
        o.window.receiver = 1;
        o.recovery.timestamps = true;
    }));
    let mut sent = p.send_all();
    for _ in 0..4 {
        sent = p.deliver(&sent, &[], &[]);
    }
    let before = p.sender.srtt();
    p.receive(&sent, &[], &[]);
    while p.sender.counts().timeouts < 2 {
        sent = p.time_out();
        assert_eq!(sent.len(), 1);
        if p.sender.counts().timeouts < 2 {
            p.receive(&sent, &[], &[]);
        }
    }
    p.deliver(&sent, &[], &[]);
    assert!(p.sender.srtt().abs_diff(before) < 2 * MS, "{before} {}", p.sender.srtt());
}

/// RFC 8985 §6.3: one packet and its repairs are lost until the timer runs out, all else arrives: of what
/// is under way, sent less than a round trip ago, nothing is lost.
#[test]
fn a_timeout_has_what_was_sent_just_now_for_no_loss() {
    for control in [TcpName::Reno, TcpName::Bbr] {
        let has_model = control == TcpName::Bbr;
        let rto = RtoBounds { min: 250 * MS, ..with_rack().timer.rto };
        let mut p = Path::new(with_rack().with(|o| {
            o.control.name = control;
            o.control.has_model = has_model;
            o.timer.rto = rto;
        }));
        let mut sent = p.send_all();
        for _ in 0..3 {
            sent = p.deliver(&sent, &[], &[]);
        }
        let first = sent[0].0;
        while p.sender.deadline() > p.now + RTT {
            sent = p.deliver(&sent, &[first], &[]);
        }
        let (sent_at, again) = (p.now, p.sender.counts().retransmits);
        sent.retain(|s| s.0 != first);
        assert!(sent.len() > 2, "{sent:?}");
        let repair = p.time_out();
        assert_eq!((numbers(&repair), p.sender.counts().timeouts), (vec![first], 1), "{control:?}");
        p.now = sent_at;
        p.deliver(&sent, &[], &[]);
        p.now = sent_at + RTT;
        p.deliver(&repair, &[], &[]);
        assert_eq!(p.sender.counts().retransmits, again + 1, "{control:?}");
        assert!(p.receiver.delivered() > sent.last().unwrap().0, "{control:?}");
    }
}

/// A timestamp of 16 bits comes round after 68.7 s: that of a packet which was sent first 70 s ago seems to be of
/// 1.3 s ago, and so of the last sending, 19 s ago, which it is no sample of.
#[test]
fn an_echo_that_has_come_round_is_no_sample() {
    for (late, measures) in [(60_000, true), (70_000, false)] {
        let o = with_rack().with(|o| o.recovery.timestamps = true);
        let (mut p, sent) = sixteen(o);
        let before = p.sender.srtt();
        p.sender.take_sample();
        let acks = p.receive(&sent, &[], &[]);
        let start = p.now;
        while p.sender.deadline() < start + late * MS {
            p.time_out();
        }
        p.now = start + late * MS;
        p.sender.on_ack(p.now, &acks[0], &p.o);
        let found = p.sender.take_sample().map(|ns| ns / MS);
        assert_eq!(found.is_some(), measures, "{late}: {found:?}");
        if measures {
            assert!(found.is_some_and(|ms| ms.abs_diff(late) <= 1), "{found:?}");
        } else {
            assert_eq!(p.sender.srtt(), before);
        }
    }
}

/// The first of ten packets is lost: selective acknowledgements let a packet out each (RFC 3042), and the window does
/// not grow by them as well (RFC 5681 §3.1).
#[test]
fn selective_acknowledgements_let_as_much_out_as_has_arrived() {
    let mut p = Path::new(with_rack().with(|o| o.window.initial = 10.0));
    let sent = p.send_all();
    let next = p.deliver(&sent, &[0], &[]);
    assert_eq!(numbers(&next)[..3], [10, 11, 0]);
}

/// As many packets as the first window has, and six of ten: slow start goes on to twice what was under way (RFC 7661;
/// Linux), for five it does not begin.
#[test]
fn slow_start_goes_on_to_twice_what_the_application_sends() {
    for (given, windows) in [
        (10, [12.0, 14.0, 16.0, 18.0, 20.0]),
        (6, [12.0, 12.0, 12.0, 12.0, 12.0]),
        (5, [10.0, 10.0, 10.0, 10.0, 10.0]),
    ] {
        let mut p = Path::new(with_rack().with(|o| o.window.initial = 10.0));
        p.sender.withdraw();
        p.sender.offer(given);
        let sent = p.send_all();
        let acks = p.receive(&sent, &[], &[]);
        let mut found = Vec::new();
        for (n, ack) in acks.iter().enumerate() {
            if n % 2 == 1 || n + 1 == acks.len() {
                p.sender.on_ack(p.now + RTT, ack, &p.o);
                found.push(p.sender.cwnd());
            }
        }
        assert_eq!(found[..], windows[..found.len()], "{given}");
    }
}

/// An acknowledgement that was overtaken tells what had arrived as it was sent (RFC 6675 §5): two packets more are not
/// under way, and two are sent for them.
#[test]
fn an_overtaken_acknowledgement_tells_of_gaps() {
    for o in [with_rack(), options(Variant::Sack)] {
        let mut p = Path::new(o.with(|o| o.window.initial = 10.0));
        let sent = p.send_all();
        // The second is lost; the acknowledgement of the last comes before that of the two before.
        let acks = p.receive(&sent[..2], &[1], &[]);
        let more = p.receive(&sent[2..5], &[], &[]);
        p.now += RTT;
        p.sender.on_ack(p.now, &acks[0], &p.o);
        p.send_all();
        let mut behind = more[1];
        behind.seq = 0; // As if it had been sent before the first came.
        if let Payload::Ack { sack, .. } = &mut behind.payload {
            let [(first, end), ..] = sack.blocks();
            *sack = Sack::new([(first + 1, end + 1)]);
        }
        p.sender.on_ack(p.now, &behind, &p.o);
        let is_rack = p.o.recovery.variant == Variant::Rack;
        assert_eq!(p.sender.info().sacked, if is_rack { 2 } else { 1 }, "rack: {is_rack}");
    }
}
