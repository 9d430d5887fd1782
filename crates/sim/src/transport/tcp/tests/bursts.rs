//! How many packets leave together, and what waits to fill a burst.

use super::*;
use crate::transport::tcp::options::Bursts;

const TSO: Bursts = Bursts { quantum: MS, least: 2, most: 43, tso: true };

/// `tcp_tso_autosize`: what a millisecond sends, two packets at least, 64 kB at most; beside that 64 kB at no round
/// trip, half of it at 0.5 ms, and an eighth of a packet at 4 ms.
#[test]
fn a_burst_has_the_size_of_a_millisecond() {
    for (gap, min_rtt, size) in [
        (MS, 40 * MS, 2),
        (MS / 5, 40 * MS, 5),
        (MS / 100, 40 * MS, 43),
        (MS / 5, 0, 5),
        (MS / 5, 512_000, 26),
        (MS / 5, 2 * MS, 10),
        (MS / 5, 4 * MS, 5),
    ] {
        assert_eq!(TSO.size(gap, min_rtt), size, "{gap} {min_rtt}");
    }
    assert_eq!(Bursts { quantum: 0, ..TSO }.size(MS / 5, 0), 1, "each by itself");
    assert_eq!(Bursts { least: 1, ..TSO }.size(MS, 40 * MS), 1, "prague's");
}

/// 64 KB are the most, whatever the packets' length.
#[test]
fn a_burst_is_bounded_in_bytes() {
    for (packet, most) in [("500B", 131), ("1500B", 43), ("9000B", 7), ("65535B", 2)] {
        let text = format!(
            "duration = \"1s\"\nnetwork = {{ preset = \"dumbbell\" }}\n[[queue]]\naqm = \"droptail\"\n\
             buffer = \"9p\"\n[[traffic]]\ntransport = \"bbr\"\npreset = \"linux\"\npacket = \"{packet}\""
        );
        let scenario = crate::Scenario::from_toml(&text, "x").unwrap();
        let o = Options::of(&scenario.traffic[0]).unwrap();
        assert_eq!(o.bursts.size(1, 40 * MS), most, "{packet}");
    }
}

/// A window of 900, a round trip ago: acknowledgements that come together let packets out as often as a burst is full,
/// or a millisecond after the last.
#[test]
fn acknowledgements_fill_a_burst() {
    let o = with_rack().with(|o| (o.window.initial, o.bursts) = (900.0, TSO));
    let mut p = Path::new(o);
    let sent = p.send_all();
    assert_eq!(sent.len(), 900);
    let mut acks = p.receive(&sent, &[], &[]).into_iter();
    p.now += RTT;
    let mut take = |p: &mut Path| p.sender.on_ack(p.now, &acks.next().unwrap(), &p.o);
    take(&mut p);
    assert!(!p.sender.fills_burst(p.now, &p.o), "nothing was sent for long");
    assert_eq!(p.send_all().len(), 2);
    let burst = p.sender.burst(p.now, &p.o);
    assert_eq!(burst, 18, "a window of 901 twice in 100 ms");
    for n in 1..=8 {
        take(&mut p);
        assert!(p.sender.fills_burst(p.now, &p.o), "{n}");
    }
    take(&mut p);
    assert!(!p.sender.fills_burst(p.now, &p.o), "eighteen");
    assert_eq!(p.send_all().len(), 18);
    take(&mut p);
    p.now += MS;
    assert!(p.sender.fills_burst(p.now, &p.o));
    p.now += 1;
    assert!(!p.sender.fills_burst(p.now, &p.o), "a millisecond is over");
}

/// A third of the window goes at once, as does the end of the data.
#[test]
fn a_third_of_the_window_fills_no_burst() {
    for (offered, waits) in [(u32::MAX, true), (13, false)] {
        let o = with_rack().with(|o| {
            (o.window.initial, o.bursts) = (10.0, Bursts { quantum: 1000 * MS, ..TSO });
        });
        let mut p = Path::new(o);
        p.sender = Sender::default();
        p.sender.start(0, &o);
        p.sender.offer(offered);
        let sent = p.send_all();
        let acks = p.receive(&sent, &[], &[]);
        p.now += RTT;
        p.sender.on_ack(p.now, &acks[0], &p.o);
        assert_eq!(p.send_all().len(), 2);
        let found = [1, 2, 3].map(|n| {
            p.sender.on_ack(p.now, &acks[n], &p.o);
            p.sender.fills_burst(p.now, &p.o)
        });
        assert_eq!(found, [waits, waits, false], "{offered}: 2 of 12, 4 of 13, 6 of 14");
    }
}
