//! How a connection begins.

use super::*;
use crate::packet::tick;

#[test]
fn a_handshake_comes_before_data_and_is_repeated() {
    let mut p = Path::new(options(Variant::Sack).with(|o| o.handshake.syn = true));
    assert_eq!(p.send().map(|p| p.payload), Some(Payload::Syn { tick: tick(p.now) as u16 }));
    assert!(p.send().is_none());
    p.now = p.sender.deadline();
    assert_eq!(p.now, 1000 * MS);
    p.sender.on_timer(p.now, &p.o);
    assert_eq!(p.send().map(|p| p.payload), Some(Payload::Syn { tick: tick(p.now) as u16 }));
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
        let mut o = options(Variant::Sack).with(|o| {
            o.handshake.syn = true;
            o.window.initial = 10.0;
        });
        o.timer.rto.initial = first * MS;
        o.handshake.restart_after_loss = restart_after_lost_syn;
        let mut p = Path::new(o);
        p.send();
        for _ in 0..lost {
            p.now = p.sender.deadline();
            p.sender.on_timer(p.now, &p.o);
            assert_eq!(
                p.send().map(|p| p.payload),
                Some(Payload::Syn { tick: tick(p.now) as u16 })
            );
        }
        p.now += RTT;
        p.sender.on_syn_ack(p.now, 0, false, &p.o);
        let sent = p.send_all();
        assert_eq!((sent.len(), p.sender.deadline() - p.now), (packets, timeout * MS), "{lost}");
        if packets == 1 {
            // The first sample ends it.
            assert_eq!(p.deliver(&sent, &[], &[]).len(), 2);
            assert_eq!(p.sender.deadline() - p.now, 300 * MS);
        }
    }
}

/// Timestamps tell which SYN is answered, so that the round trip is known whichever was lost: the timeout is that
/// of a round trip, not the backed-off one of the SYN. So in Linux, which begins with one packet from the second
/// lost SYN on.
#[test]
fn timestamps_measure_the_round_trip_of_a_syn_that_was_sent_again() {
    for (lost, answered, rtt, packets) in
        [(0, 0, 100, 10), (1, 1, 100, 10), (2, 2, 100, 1), (1, 0, 1100, 10), (4, 4, 100, 1)]
    {
        let mut o = with_rack().with(|o| {
            o.handshake.syn = true;
            o.window.initial = 10.0;
        });
        (o.recovery.timestamps, o.handshake.restart_after_loss) = (true, false);
        let mut p = Path::new(o);
        let mut ticks = Vec::new();
        for n in 0..=lost {
            if n > 0 {
                p.now = p.sender.deadline();
                p.sender.on_timer(p.now, &p.o);
            }
            let Some(Payload::Syn { tick }) = p.send().map(|p| p.payload) else { panic!("{n}") };
            ticks.push(tick);
        }
        p.now += RTT;
        p.sender.on_syn_ack(p.now, ticks[answered], false, &p.o);
        let srtt = p.sender.srtt() / MS;
        assert!((rtt..=rtt + 1).contains(&srtt), "{lost} lost, {answered} answered: {srtt}");
        assert_eq!(p.sender.timeout(&p.o) / MS / 10, 3 * srtt / 10, "{lost}");
        assert_eq!(p.send_all().len(), packets, "{lost}");
        let probe = if packets > 1 { 2 * p.sender.srtt() } else { u64::MAX };
        assert_eq!(p.sender.deadline() - p.now, probe.min(p.sender.timeout(&p.o)), "{lost}");
    }
}

/// RFC 3168 §6.1.1.1: the network may have dropped the SYN because it asked for ECN.
#[test]
fn after_a_lost_syn_a_connection_does_without_ecn_if_it_falls_back() {
    for (lost, ecn_fallback, capable) in
        [(0, true, true), (1, true, false), (2, true, false), (1, false, true)]
    {
        let mut p = Path::new(options(Variant::Sack).with(|o| {
            o.handshake.syn = true;
            o.handshake.ecn_fallback = ecn_fallback;
        }));
        p.send();
        for _ in 0..lost {
            p.now = p.sender.deadline();
            p.sender.on_timer(p.now, &p.o);
            p.send();
        }
        p.now += RTT;
        p.sender.on_syn_ack(p.now, 0, false, &p.o);
        let sent = p.send_all();
        assert!(!sent.is_empty() && sent.iter().all(|(_, _, ecn)| *ecn == capable), "{lost}");
    }
}

/// ECN++ §3.2.1.3: a SYN that was marked leaves one packet, and slow start goes on from there.
#[test]
fn a_marked_syn_leaves_one_packet() {
    for (marked, packets) in [(false, 10), (true, 1)] {
        let o = options(Variant::Sack).with(|o| {
            o.handshake.syn = true;
            o.window.initial = 10.0;
        });
        let mut p = Path::new(o);
        p.send();
        p.now += RTT;
        p.sender.on_syn_ack(p.now, 0, marked, &p.o);
        let sent = p.send_all();
        assert_eq!((sent.len(), p.sender.counts().ecn_reductions), (packets, u32::from(marked)));
        assert_eq!(p.sender.deadline() - p.now, 300 * MS, "the SYN is a sample all the same");
        assert_eq!(p.deliver(&sent, &[], &[]).len(), 2 * packets);
    }
}
