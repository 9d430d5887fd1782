use ::link::Impairments;
use aqm::any::BuildError;
use aqm::{CATALOG, Limit, Rate, Rng};

use super::change::MOST_REPLACED;
use super::*;

fn spec(rate: Rate, delay: Duration, aqm: &str) -> Spec {
    Spec { seed: 7, ..Spec::new(rate, delay, Limit::bytes(50_000).unwrap(), aqm) }
}

fn link(rate: Rate, delay: Duration, aqm: &str) -> Link {
    Link::new(&spec(rate, delay, aqm), Layer::Ip, 1500).unwrap()
}

/// A UDP packet whose payload begins with `number`, cut off at `len` ≥ 20 bytes.
fn udp(number: u32, flow: u16, ecn: Ecn, len: usize) -> Vec<u8> {
    let mut p = vec![0; len.max(32)];
    p[0] = 0x45;
    p[1] = ecn as u8;
    p[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    p[9] = 17;
    p[20..22].copy_from_slice(&flow.to_be_bytes());
    p[28..32].copy_from_slice(&number.to_be_bytes());
    p.truncate(len);
    p
}

/// Frames that come out by `now`, each as its number and ECN field.
fn out(link: &mut Link, now: u64) -> Vec<(u32, Ecn)> {
    let mut frames = Vec::new();
    link.deliver(now, |f| {
        frames.push((u32::from_be_bytes([f[28], f[29], f[30], f[31]]), parse(f, Layer::Ip).ecn));
    });
    frames
}

fn change(link: &mut Link, now: u64, spec: &Spec) -> Result<(), SpecError> {
    link.prepare(now, spec).map(|next| link.change(next))
}

#[test]
fn a_burst_leaves_one_transmission_apart() {
    let mut l = link(Rate::from_mbit(8), Duration::from_millis(5), "droptail");
    for n in 0..3 {
        l.arrive(0, &udp(n, 1, Ecn::Ect0, 1000));
    }
    for n in 0..3 {
        let at = 6_000_000 + 1_000_000 * u64::from(n);
        assert_eq!(l.next_event(), at);
        assert_eq!(out(&mut l, at - 1), []);
        assert_eq!(out(&mut l, at), [(n, Ecn::Ect0)]);
    }
    assert_eq!(l.next_event(), u64::MAX);
    assert!(l.check());
}

/// 8 Mb/s behind a burst of three packets: those leave at the link's 80 Mb/s, the others 1 ms apart, and the
/// link says when. The buffer of four is as large as without. With a peak of 16 Mb/s the burst leaves at that.
#[test]
fn a_shaper_lets_a_burst_and_then_its_rate_pass() {
    let bucket =
        |mbit, burst: &str| Bucket { rate: Rate::from_mbit(mbit), burst: burst.parse().unwrap() };
    // The first is sent at once and four wait. Tokens for three are there, each packet takes those of 1 ms.
    let plain = [(100, 0), (200, 1), (300, 2), (1100, 3), (2100, 4)];
    let peaked = [(100, 0), (600, 1), (1100, 2), (1600, 3), (2100, 4)];
    for (peak, expected) in [(None, plain), (Some(bucket(16, "1kB")), peaked)] {
        assert_eq!(shaped(bucket(8, "3kB"), peak), expected);
    }
}

/// When packets leave of which twelve arrive at once, µs.
fn shaped(shaper: Bucket, peak: Option<Bucket>) -> Vec<(u64, u32)> {
    let spec = Spec {
        shaper: Some(shaper),
        peak,
        limit: Limit::packets(4).unwrap(),
        ..spec(Rate::from_mbit(80), Duration::ZERO, "droptail")
    };
    let mut l = Link::new(&spec, Layer::Ip, 1500).unwrap();
    for n in 0..12 {
        l.arrive(0, &udp(n, 1, Ecn::Ect0, 1000));
    }
    let mut at = Vec::new();
    while l.next_event() < u64::MAX {
        let now = l.next_event();
        at.extend(out(&mut l, now).iter().map(|(n, _)| (now / 1000, *n)));
    }
    assert_eq!(l.counters().all_dropped().packets, 7);
    assert!(l.check());
    at
}

/// Of two packets of each codepoint one is sent and one waits; what came before CAKE is not counted.
#[test]
fn what_each_tin_of_cake_carries_is_counted() {
    let mut l = link(Rate::from_mbit(8), Duration::ZERO, "droptail");
    let packet = |dscp: u8| {
        let mut packet = udp(0, u16::from(dscp), Ecn::NotEct, 1000);
        packet[1] = dscp << 2;
        packet
    };
    l.arrive(0, &packet(46));
    assert_eq!(l.tins(), None);
    let cake = Spec {
        limit: Limit::packets(4).unwrap(),
        ..spec(Rate::from_mbit(8), Duration::ZERO, "cake")
    };
    change(&mut l, 0, &cake).unwrap();
    // Expedited forwarding, background, and default forwarding, which has the longest queue.
    for dscp in [46, 8, 0, 0, 0] {
        l.arrive(1, &packet(dscp));
    }
    l.deliver(4_500_000, |_| ());
    let counts = |key: &str| {
        let all = l.tins().unwrap();
        ["best-effort", "background", "latency-sensitive"].map(|tin| all[key][tin].clone())
    };
    assert_eq!(counts("packets"), [2, 1, 1]);
    assert_eq!(counts("bytes"), [2000, 1000, 1000]);
    assert_eq!(counts("drops"), [1, 0, 0]);
    assert_eq!(counts("marks"), [0, 0, 0]);
    let waited: f64 = counts("sojourn_s").iter().map(|s| s.as_f64().unwrap()).sum();
    // Four packets wait for 1, 2, 3 and 4 ms, each less the 1 ns by which it came later.
    assert!((waited - 10e-3 + 4e-9).abs() < 1e-12, "{waited}");
    // Another one begins anew.
    change(
        &mut l,
        5_000_000,
        &Spec { params: vec![("diffserv".into(), "besteffort".into())], ..cake },
    )
    .unwrap();
    assert_eq!(l.tins().unwrap()["packets"], serde_json::json!({"best-effort": 0}));
}

/// However late the caller comes, packets leave as of their time: a second burst that arrives
/// before the first was looked at is sent right behind it.
#[test]
fn lateness_costs_no_rate() {
    let mut l = link(Rate::from_mbit(8), Duration::ZERO, "droptail");
    (0..10).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
    assert_eq!(out(&mut l, 9_700_000).len(), 9);
    (10..20).for_each(|n| _ = l.arrive(9_700_000, &udp(n, 1, Ecn::NotEct, 1000)));
    assert_eq!(out(&mut l, 19_999_999).len(), 10);
    assert_eq!(out(&mut l, 20_000_000).len(), 1);
}

/// The time of the last of many packets of mixed lengths: at 10 and 100 Mb/s within 0.01 % (in
/// fact to the nanosecond) of bits / rate, with a caller that comes when it likes.
#[test]
fn the_long_run_rate_is_exact() {
    for (mbit, odd) in [(10, 0), (100, 0), (10, 3), (100, 7)] {
        let rate = Rate::new(mbit * 1_000_000 + odd).unwrap();
        let mut l = link(rate, Duration::ZERO, "droptail");
        let mut rng = Rng::new(mbit, 1);
        let (mut now, mut bits, mut last) = (0, 0u64, 0);
        for n in 0..50_000 {
            let len = [40, 576, 1000, 1500][rng.below(4)];
            bits += 8 * len as u64;
            // Arrivals keep the transmitter busy and the queue from overflowing.
            while l.queue.backlog().bytes > 40_000 {
                now += rng.below(3_000_000) as u64;
                l.deliver(now, |_| ());
            }
            l.arrive(now, &udp(n, 1, Ecn::NotEct, len));
        }
        while l.next_event() != u64::MAX {
            last = l.next_event();
            l.deliver(last, |_| ());
        }
        let exact = (u128::from(bits) * 1_000_000_000 / u128::from(rate.bits_per_second())) as u64;
        assert_eq!(last, exact, "{mbit} Mb/s");
        assert_eq!(l.counters().all_dropped().packets, 0);
    }
}

#[test]
fn marks_are_written_into_the_headers_of_what_is_capable() {
    let mut s = spec(Rate::from_mbit(8), Duration::ZERO, "bernoulli");
    s.params = [("p", "1"), ("ecn", "true")].map(|(k, v)| (k.into(), v.into())).into();
    let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
    for (n, ecn) in ecn.into_iter().enumerate() {
        l.arrive(0, &udp(n as u32, 1, ecn, 1000));
    }
    assert_eq!(out(&mut l, 1 << 30), [(1, Ecn::Ce), (2, Ecn::Ce), (3, Ecn::Ce)]);
    assert_eq!(l.counters().all_dropped().packets, 1);
    assert!(l.check());
}

/// ARP, LLDP and whatever else comes take their turn and their time, in flows by stations and type.
#[test]
fn every_frame_is_judged_and_takes_its_time() {
    let s = spec(Rate::from_mbit(8), Duration::ZERO, "droptail");
    let mut l = Link::new(&s, Layer::Ethernet, 1514).unwrap();
    let mut flows = Vec::new();
    for kind in [0x0806_u16, 0x88cc, 0x8863, 0x1234] {
        let mut frame = vec![0; 1000];
        frame[12..14].copy_from_slice(&kind.to_be_bytes());
        flows.push(l.arrive(0, &frame).unwrap().0.flow);
        frame[11] = 1; // another sender
        flows.push(l.arrive(0, &frame).unwrap().0.flow);
    }
    for at in 1..=8 {
        let mut n = 0;
        l.deliver(1_000_000 * at - 1, |_| n += 1);
        assert_eq!(n, 0, "each takes a millisecond");
        l.deliver(1_000_000 * at, |_| n += 1);
        assert_eq!(n, 1);
    }
    flows.sort_unstable_by_key(|flow| flow.0);
    flows.dedup();
    assert_eq!(flows.len(), 8);
    assert!(l.check());
}

#[test]
fn a_frame_that_is_too_long_is_refused() {
    let mut l = link(Rate::from_mbit(8), Duration::ZERO, "droptail");
    assert_eq!(l.arrive(0, &udp(0, 1, Ecn::NotEct, 9000)), None);
    assert_eq!(l.beside().refused, 1);
    assert!(l.check());
}

#[test]
fn what_cannot_be_emulated_is_refused() {
    let long = Duration::from_secs(60);
    for s in [
        spec(Rate::new(Spec::MAX_RATE + 1).unwrap(), Duration::ZERO, "droptail"),
        spec(Rate::from_mbit(1), Duration::from_secs(61), "droptail"),
        spec(Rate::from_mbit(1000), long, "droptail"),
    ] {
        assert!(matches!(Link::new(&s, Layer::Ip, 1500), Err(SpecError::Beyond(_))), "{s:?}");
    }
    let unknown = spec(Rate::from_mbit(1), long, "bleu");
    let error = Link::new(&unknown, Layer::Ip, 1500).err();
    assert_eq!(error, Some(SpecError::Queue(BuildError::UnknownAqm)));
}

/// While packets come, the link becomes another one every 200 packets: each packet is accounted
/// for, no handle of memory is lost, and what comes out does so in the order of its arrival.
/// Without an algorithm that drops (the buffers are large) not one is missing.
#[test]
fn a_change_loses_nothing_and_keeps_the_order() {
    let mut s = spec(Rate::from_mbit(10), Duration::from_millis(3), "droptail");
    s.limit = Limit::packets(1000).unwrap();
    let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
    let mut rng = Rng::new(5, 0);
    let (mut now, mut seen) = (0, Vec::new());
    for n in 0..20_000 {
        now += rng.below(2_400_000) as u64;
        seen.extend(out(&mut l, now));
        if n % 200 == 199 {
            match rng.below(4) {
                0 => s.rate = Rate::from_mbit([5, 10, 40][rng.below(3)]),
                1 => s.delay = Duration::from_millis([0, 3, 50][rng.below(3)]),
                2 => s.limit = Limit::packets([1000, 1500][rng.below(2)]).unwrap(),
                _ => s.aqm = ["droptail", "drop-front", "random-drop"][rng.below(3)].into(),
            }
            change(&mut l, now, &s).unwrap();
            assert!(l.check(), "{s:?}");
        }
        l.arrive(now, &udp(n, 1, Ecn::Ect0, 1000));
        assert!(l.check(), "packet {n}");
    }
    seen.extend(out(&mut l, now + 60_000_000_000));
    assert_eq!(l.counters().all_dropped().packets, 0);
    assert!(seen.iter().map(|(n, _)| *n).eq(0..20_000));
    assert_eq!((l.server.log().arena.used(), l.queue.replaced.len()), (0, 0));
}

/// Ten packets wait. BLUE keeps its p_m of 0.5 and the packets, in the same queue, when only its decrement changes,
/// which it then goes by; behind a policer and a shaper, too. What it learned is lost when its buffer changes, when
/// a parameter changes that may not meanwhile, and when it is named.
#[test]
fn a_parameter_that_may_change_leaves_what_was_learned() {
    let learned = |l: &Link, now: u64| {
        let mut found = 0.0;
        l.observe(now, &mut |name, value| found = if name == "p_m" { value } else { found });
        found
    };
    let buckets = [None, Some(Bucket { rate: Rate::from_mbit(8), burst: "1MB".parse().unwrap() })];
    for bucket in buckets {
        let mut s = spec(Rate::from_mbit(8), Duration::ZERO, "blue");
        (s.policer, s.shaper) = (bucket, bucket);
        let param = |name: &str, value: &str| (String::from(name), String::from(value));
        s.params = vec![param("freeze_time", "0s"), param("increment", "0.5")];
        s.limit = Limit::packets(10).unwrap();
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        (0..13).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::Ect0, 1000)));
        let (p_m, dropped) = (learned(&l, 0), l.counters().all_dropped().packets);
        assert!(p_m >= 0.5 && dropped > 0, "{p_m} {dropped}");
        s.params.push(param("decrement", "0.125"));
        s.rate = Rate::from_mbit(80);
        change(&mut l, 0, &s).unwrap();
        assert_eq!((learned(&l, 0), l.queue.changes, l.queue.replaced.len()), (p_m, 0, 0));
        assert_eq!(l.counters().all_dropped().packets, dropped);
        assert!(l.check());
        out(&mut l, 1_000_000_000);
        assert_eq!(learned(&l, 1_000_000_000), p_m - 0.125, "by its new decrement");
        let other = |l: &mut Link, s: &Spec| {
            let before = l.queue.changes;
            change(l, 1_000_000_000, s).unwrap();
            l.queue.changes - before
        };
        assert_eq!(other(&mut l, &s), 0, "nothing changes");
        s.params.push(param("freeze_time", "-1s"));
        assert!(l.prepare(1_000_000_000, &s).is_err());
        s.params.pop();
        s.params.push(param("initial", "0.25"));
        assert_eq!((other(&mut l, &s), learned(&l, 1_000_000_000)), (1, 0.25));
        s.limit = Limit::packets(11).unwrap();
        assert_eq!(other(&mut l, &s), 1);
        s.named += 1;
        assert_eq!(other(&mut l, &s), 1);
        assert!(l.check());
    }
}

/// Each parameter that may change does so in every algorithm while packets wait: none is lost by it, and the queue
/// stays.
#[test]
fn whatever_may_change_does_under_load() {
    let (mut rng, mut refused) = (Rng::new(8, 0), Vec::new());
    for about in CATALOG {
        let s = spec(Rate::from_mbit(10), Duration::from_millis(3), about.name);
        // Those that have no effect without others are refused alone.
        let table = (about.parameters)().into_iter().filter(|param| param.with.is_empty());
        for param in table.filter(|param| about.live.contains(&param.name)) {
            let of = format!("{} {}", about.name, param.name);
            let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
            let mut now = 0;
            let mut load = |l: &mut Link, n: u32| {
                now += rng.below(1_400_000) as u64;
                l.deliver(now, |_| ());
                l.arrive(now, &udp(n, rng.below(9) as u16, Ecn::Ect0, 1000));
                assert!(l.check(), "{of}");
                now
            };
            let at = (0..60).map(|n| load(&mut l, n)).last().unwrap();
            let done =
                ["0.01", "1.5", "0.99", "7ms", "12p", "40p", "2kB", "1mbit", "300", "3", "false"]
                    .iter()
                    .filter(|text| {
                        let params = vec![(param.name.to_string(), (**text).to_string())];
                        change(&mut l, at, &Spec { params, ..s.clone() }).is_ok()
                    });
            if done.count() == 0 {
                refused.push(of);
                continue;
            }
            assert_eq!((l.queue.changes, l.counters().arrived.packets), (0, 60), "{of}");
            (60..120).for_each(|n| _ = load(&mut l, n));
            l.deliver(1 << 40, |_| ());
            assert!(l.check(), "{of}");
            assert_eq!(l.server.log().arena.used(), 0, "{of}");
        }
    }
    assert_eq!(refused, ["pi b"], "it goes with `a`");
}

/// From every algorithm to every other under load.
#[test]
fn any_algorithm_takes_over_from_any_other() {
    let mut rng = Rng::new(6, 0);
    let mut s = spec(Rate::from_mbit(10), Duration::from_millis(3), "droptail");
    let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
    let (mut now, mut n) = (0, 0);
    for from in CATALOG {
        for to in CATALOG {
            for name in [from.name, to.name] {
                s.aqm = name.into();
                change(&mut l, now, &s).unwrap();
                for _ in 0..60 {
                    now += rng.below(1_400_000) as u64;
                    l.deliver(now, |_| ());
                    let ecn = [Ecn::NotEct, Ecn::Ect0][rng.below(2)];
                    l.arrive(now, &udp(n, rng.below(9) as u16, ecn, 1000));
                    n += 1;
                    assert!(l.check(), "{name} at packet {n}");
                }
            }
        }
    }
    l.deliver(now + 60_000_000_000, |_| ());
    assert!(l.check());
    assert_eq!(l.server.log().arena.used(), 0);
}

/// Packets due every 1 ms are handed over 0, 200, 50 and 50 µs late: gaps are 200, 150 and 0 µs
/// off, and 24 000 bits take 3.05 ms.
#[test]
fn lateness_is_in_the_gaps_and_not_in_the_rate() {
    let mut l = link(Rate::from_mbit(8), Duration::ZERO, "droptail");
    (0..4).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
    for now in [1_000_000, 2_200_000, 3_050_000, 4_050_000] {
        assert_eq!(out(&mut l, now).len(), 1);
    }
    let pace = l.pace();
    assert_eq!(pace.packets(), 4);
    assert!((pace.bits_per_second().unwrap() - 24_000.0 / 3.05e-3).abs() < 1e-3);
    let near = |q, ns: f64| (pace.gaps().quantile(q) as f64 / ns - 1.0).abs() < 1.0 / 31.0;
    assert!(near(0.5, 150_000.0) && near(1.0, 200_000.0));
}

/// 8 packets of 1 ms each are queued and one is being sent as the rate doubles: that one keeps
/// its time, the others take 0.5 ms.
#[test]
fn a_new_rate_holds_from_the_next_packet_on() {
    let mut s = spec(Rate::from_mbit(8), Duration::ZERO, "droptail");
    let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
    (0..9).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
    s.rate = Rate::from_mbit(16);
    change(&mut l, 500_000, &s).unwrap();
    assert_eq!(out(&mut l, 999_999), []);
    assert_eq!(out(&mut l, 1_000_000).len(), 1);
    assert_eq!(out(&mut l, 4_999_999).len(), 7);
    assert_eq!(out(&mut l, 5_000_000).len(), 1);
    // The queue discipline is the same one: nothing was replaced.
    assert_eq!(l.queue.changes, 0);
}

#[test]
fn a_change_to_what_cannot_be_changes_nothing() {
    let s = spec(Rate::from_mbit(8), Duration::ZERO, "droptail");
    let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
    for wrong in [
        Spec { aqm: "bleu".into(), ..s.clone() },
        Spec { delay: Duration::from_secs(61), ..s.clone() },
    ] {
        assert!(change(&mut l, 0, &wrong).is_err());
        assert_eq!(l.spec(), &s);
    }
    // Only so many queues that still hold packets may wait for their turn.
    l.arrive(0, &udp(0, 1, Ecn::NotEct, 1000));
    let changed = (0..20).filter(|&n| {
        l.arrive(1, &udp(n, 1, Ecn::NotEct, 1000));
        let limit = Limit::packets(30 + u64::from(n)).unwrap();
        change(&mut l, 1, &Spec { limit, ..s.clone() }).is_ok()
    });
    assert_eq!(changed.count(), MOST_REPLACED);
    assert!(l.check());
}

/// Random traffic through every algorithm, and a caller that comes at random times: after every
/// call each packet is accounted for, and the memory is as it was reserved.
#[test]
fn packets_are_conserved_under_every_algorithm() {
    for (i, entry) in CATALOG.iter().enumerate() {
        let mut l = link(Rate::from_mbit(10), Duration::from_millis(3), entry.name);
        let room = l.wire.flights.capacity();
        let mut rng = Rng::new(3, i as u64);
        let mut now = 0;
        for n in 0..20_000 {
            now += rng.below([100_000, 2_000_000][n as usize / 5_000 % 2]) as u64;
            l.deliver(now, |_| ());
            assert!(l.check(), "{} after {n} packets", entry.name);
            let ecn = [Ecn::NotEct, Ecn::Ect0][rng.below(2)];
            let len = [20, 28, 40, 1000, 1500][rng.below(5)];
            l.arrive(now, &udp(n, rng.below(20) as u16, ecn, len));
            assert!(l.check(), "{} at packet {n}", entry.name);
        }
        l.deliver(now + 10_000_000_000, |_| ());
        assert!(l.check());
        assert_eq!(
            (l.server.log().arena.used(), l.wire.flights.capacity()),
            (0, room),
            "{}",
            entry.name
        );
        assert!(l.counters().all_dropped().packets > 0, "{} was not tried", entry.name);
    }
}

/// 500 Mb of datagrams over a wire that does everything: what comes out is what is counted, each
/// damaged one differs from what went in by one bit, and its address is right.
#[test]
fn an_impairing_wire_accounts_for_its_packets() {
    let impairments = Impairments {
        jitter: 4_000_000,
        reorder: true,
        loss: "gemodel 1% 20%".parse().unwrap(),
        duplicate: 0.02,
        corrupt: 0.03,
        ..Impairments::default()
    };
    let spec =
        Spec { impairments, ..spec(Rate::from_mbit(10), Duration::from_millis(3), "droptail") };
    let mut l = Link::new(&spec, Layer::Ethernet, 1514).unwrap();
    let room = l.wire.flights.capacity();
    let mut sent = [0xa5; 514];
    sent[12..14].copy_from_slice(&[0x08, 0x00]);
    let (mut out, mut damaged) = (0u64, 0u64);
    for n in 0..40_000u64 {
        l.deliver(n * 500_000, |frame| {
            let wrong: u32 = frame.iter().zip(&sent).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert!(frame.len() == 514 && frame[..14] == sent[..14] && wrong <= 1);
            (out, damaged) = (out + 1, damaged + u64::from(wrong));
        });
        l.arrive(n * 500_000, &sent);
        assert!(l.check(), "at packet {n}");
    }
    l.deliver(u64::MAX >> 2, |_| out += 1);
    let count = l.impaired().unwrap();
    assert!(l.check() && l.wire.flights.capacity() == room);
    assert_eq!(out + count.lost.packets, 40_000 + count.duplicated.packets);
    assert_eq!(l.beside().lost, count.lost.packets);
    assert!(damaged > 500 && count.reordered.packets > 1000, "{damaged} {count:?}");
    assert!(count.corrupted.packets - damaged < 20, "those that came out last are not looked at");
}

/// In an outage, one without an end, too, links change; a rate that is set ends it, and what waited is sent
/// at once, in order. Without that change the outage counts in the reported delay.
#[test]
fn a_rate_that_is_set_ends_an_outage() {
    let steps = |rows: &[(u64, u64)]| ::link::Steps::new(rows, false).map(std::sync::Arc::new);
    for (end, jitter) in [(None, 0), (Some(60_000_000_000), 0), (None, 1000)] {
        let mut rows = vec![(0, 8_000_000), (1_500_000, 0)];
        rows.extend(end.map(|end| (end, 8_000_000)));
        let mut s = spec(Rate::from_mbit(100), Duration::from_millis(5), "droptail");
        s.sending.rates = steps(&rows);
        s.impairments.jitter = jitter;
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        (0..10).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
        assert_eq!(out(&mut l, 20_000_000).len(), 1);
        let queued = l.queued_time(20_000_000).map(Duration::as_nanos);
        assert_eq!(queued, end.map(|end| end + 8_500_000 - 20_000_000));
        let slower = Spec { delay: Duration::from_millis(6), ..s.clone() };
        change(&mut l, 20_000_000, &slower).unwrap();
        let mut constant = slower.clone();
        constant.rate = Rate::from_mbit(8);
        constant.sending.rates = None;
        change(&mut l, 20_000_000, &constant).unwrap();
        l.arrive(20_000_000, &udp(10, 1, Ecn::NotEct, 1000));
        assert_eq!(l.queued_time(20_000_000), Some(Duration::from_millis(10)));
        let all = out(&mut l, 36_000_000 + jitter);
        assert_eq!(
            all.iter().map(|frame| frame.0).collect::<Vec<_>>(),
            (1..11).collect::<Vec<_>>()
        );
        assert!(l.check());
    }
}

/// A packet that would take hours at a rate that was set by mistake does not: a rate that is set holds for it, too,
/// if it is sent sooner by that.
#[test]
fn a_rate_that_is_set_ends_a_mistake() {
    let s = spec(Rate::from_mbit(8), Duration::ZERO, "droptail");
    let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
    change(&mut l, 0, &Spec { rate: Rate::new(1).unwrap(), ..s.clone() }).unwrap();
    (0..3).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
    assert!(out(&mut l, 5_000_000).is_empty());
    change(&mut l, 5_000_000, &s).unwrap();
    let sent = out(&mut l, 8_000_000);
    assert_eq!(sent.iter().map(|frame| frame.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(l.check());
}

/// A minute of delay by mistake is over when it is taken back: what is on the wire comes out as if the delay had
/// been the new one, in order; so after a jitter.
#[test]
fn a_shorter_delay_holds_for_what_is_on_the_wire() {
    const MS: u64 = 1_000_000;
    let rate = Rate::from_mbit(8);
    let with = |delay, jitter, reorder| {
        let impairments = Impairments { jitter: jitter * MS, reorder, ..Impairments::default() };
        Spec { impairments, ..spec(rate, Duration::from_millis(delay), "droptail") }
    };
    for (before, after, came) in [
        (with(60_000, 0, false), with(10, 0, false), 4),
        (with(60_000, 0, false), with(0, 0, false), 6),
        (with(40_000, 15_000, false), with(10, 0, false), 0),
        (with(60_000, 0, false), with(5, 5, false), 4),
        (with(10, 40_000, true), with(10, 0, false), 0),
    ] {
        let mut l = Link::new(&with(10, 0, false), Layer::Ip, 1500).unwrap();
        change(&mut l, 0, &before).unwrap();
        for n in 0..6 {
            assert_eq!(out(&mut l, u64::from(n) * 4 * MS), []);
            l.arrive(u64::from(n) * 4 * MS, &udp(n, 1, Ecn::Ect0, 1000));
        }
        let now = 23 * MS;
        assert_eq!(out(&mut l, now), []);
        change(&mut l, now, &after).unwrap();
        let first = out(&mut l, now).len();
        assert!(first >= came, "{first} of {after:?}");
        l.arrive(now, &udp(6, 1, Ecn::Ect0, 1000));
        let mut all = first as u32;
        let within = now + after.longest().as_nanos() + 2 * MS;
        let late = out(&mut l, within);
        all += late.len() as u32;
        assert_eq!(all, 7, "{after:?}");
        assert_eq!(late.last().map(|last| last.0), Some(6), "none overtakes another");
        assert!(l.check());
    }
    // A longer one keeps what is there as it is.
    let mut l = link(rate, Duration::from_millis(10), "droptail");
    l.arrive(0, &udp(0, 1, Ecn::Ect0, 1000));
    change(&mut l, MS, &with(500, 0, false)).unwrap();
    assert_eq!(out(&mut l, 11 * MS).len(), 1);
}

/// DOCSIS-PIE knows the delay of its queue by the rate. When 8 Mb/s become 4, by a trace or by a change, the
/// same backlog is twice the delay to it, if it learns of the change.
#[test]
fn a_queue_is_told_of_rates_if_it_is_to_be() {
    let seen = |told_rate: bool, by_trace: bool| {
        let mut s = spec(Rate::from_mbit(8), Duration::ZERO, "docsis-pie");
        s.told_rate = told_rate;
        if by_trace {
            let rows = [(0, 8_000_000), (10_000_000, 4_000_000)];
            s.sending.rates = ::link::Steps::new(&rows, false).map(std::sync::Arc::new);
        }
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        (0..40).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
        if !by_trace {
            l.deliver(10_000_000, |_| ());
            change(&mut l, 10_000_000, &Spec { rate: Rate::from_mbit(4), ..s.clone() }).unwrap();
        }
        l.deliver(20_000_000, |_| ());
        let mut delay = 0.0;
        l.observe(20_000_000, &mut |name, value| {
            if name == "delay" {
                delay = value;
            }
        });
        (delay * 1e3).round()
    };
    // At its update at 16 ms ten were sent in the first 10 ms, three since, and one is being sent.
    for by_trace in [true, false] {
        assert_eq!([seen(false, by_trace), seen(true, by_trace)], [26.0, 52.0], "{by_trace}");
    }
}

/// What a queue cannot be at the start it cannot become: several CAKEs that share 5 Mb/s, on a link of 1 Mb/s; PI
/// whose gains there are not; a bucket that holds no packet with its overhead. The link goes on as it was.
#[test]
fn a_rate_or_framing_that_the_queue_does_not_fit_is_refused() {
    let param = |name: &str, value: &str| (String::from(name), String::from(value));
    let mut shaped = spec(Rate::from_mbit(10), Duration::ZERO, "droptail");
    shaped.shaper = Some(Bucket { rate: Rate::from_mbit(8), burst: "1100B".parse().unwrap() });
    let mut shares = spec(Rate::from_mbit(10), Duration::ZERO, "cake");
    shares.params = vec![param("queues", "4"), param("shared_rate", "5mbit")];
    let mut pi = spec(Rate::from_mbit(10), Duration::ZERO, "pi");
    pi.params = vec![param("flows", "60"), param("interval", "50ms")];
    let at = |s: &Spec, rate: u64| Spec { rate: Rate::new(rate).unwrap(), ..s.clone() };
    let mut framed = shaped.clone();
    framed.sending.framing.overhead = Some(101);
    for (s, next, key) in [
        (&shares, at(&shares, 1_000_000), "shared_rate"),
        (&shares, at(&shares, 3_999), "shared_rate"),
        (&pi, at(&pi, 100_000), "interval"),
        (&shaped, framed, "shaper-burst"),
    ] {
        let mut l = Link::new(s, Layer::Ip, 1500).unwrap();
        let Err(SpecError::Queue(BuildError::Config(e))) = change(&mut l, 0, &next) else {
            panic!("{key}: {next:?}")
        };
        assert_eq!(e.key, key);
        assert_eq!(
            Link::new(&next, Layer::Ip, 1500).err(),
            Some(SpecError::Queue(BuildError::Config(e)))
        );
        assert_eq!(l.spec(), s);
        change(&mut l, 0, &at(s, 6_000_000)).unwrap();
        assert_eq!(l.queue.changes, 0);
    }
    // One that learns each rate could not follow it.
    let told = Spec { told_rate: true, ..shares };
    assert!(Link::new(&told, Layer::Ip, 1500).is_err());
}

/// A shaper of 8 Mb/s sends a packet of 1000 bytes each millisecond, and one each two from when the overhead is a
/// thousand bytes more, whether it learns rates or not; so does the rate of a class.
#[test]
fn an_overhead_that_is_set_counts_in_shapers_and_classes_too() {
    let tree = "default = \"all\"\nclass = [{ name = \"all\", rate = \"8mbit\" }]";
    let tree = scenario::tree::TreeSpec::from_toml(tree, "x").unwrap();
    let classes = Some(std::sync::Arc::new(Classes { tree, down: false }));
    let shaper = Some(Bucket { rate: Rate::from_mbit(8), burst: "2kB".parse().unwrap() });
    let bare = spec(Rate::from_mbit(800), Duration::ZERO, "droptail");
    for s in [
        Spec { shaper, ..bare.clone() },
        Spec { shaper, told_rate: true, ..bare.clone() },
        Spec { classes, ..bare },
    ] {
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        (0..40).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
        out(&mut l, 9_900_000);
        assert_eq!(out(&mut l, 19_900_000).len(), 10);
        let mut framed = s.clone();
        framed.sending.framing.overhead = Some(1000);
        change(&mut l, 19_900_000, &framed).unwrap();
        out(&mut l, 29_900_000);
        assert_eq!(out(&mut l, 39_900_000).len(), 5, "{s:?}");
        assert!(l.check());
    }
}

/// A queue that is made anew while the rate varies knows the rate of its time, and in an outage the one
/// before; so does one that stays. Rates that hold for less than a millisecond are not told.
#[test]
fn what_is_told_is_the_rate_of_its_time() {
    let mut s = spec(Rate::from_mbit(100), Duration::ZERO, "avq");
    s.told_rate = true;
    let rows = [(0, 8_000_000), (1_000_000_000, 0), (60_000_000_000, 0)];
    s.sending.rates = ::link::Steps::new(&rows, false).map(std::sync::Arc::new);
    let rate = |l: &Link, now: u64| {
        let mut rate = 0.0;
        l.observe(now, &mut |name, value| {
            if name == "virtual_rate" {
                rate = value;
            }
        });
        rate
    };
    for now in [500_000_000, 2_000_000_000] {
        let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
        l.deliver(now, |_| ());
        assert_eq!(rate(&l, now), 8e6);
        let mut smaller = s.clone();
        smaller.limit = Limit::packets(20).unwrap();
        change(&mut l, now, &smaller).unwrap();
        assert_eq!(rate(&l, now), 8e6, "made anew");
        smaller.sending.framing.mpu = 64;
        change(&mut l, now, &smaller).unwrap();
        l.arrive(now, &udp(1, 1, Ecn::NotEct, 1000));
        l.deliver(now + 1, |_| ());
        assert!(rate(&l, now) <= 8e6, "it stays");
    }
    let rows = [(0, 8_000_000), (999_999, 9_000_000), (9_000_000, 0)];
    s.sending.rates = ::link::Steps::new(&rows, true).map(std::sync::Arc::new);
    assert!(matches!(Link::new(&s, Layer::Ip, 1500), Err(SpecError::Beyond(_))));
    s.told_rate = false;
    assert!(Link::new(&s, Layer::Ip, 1500).is_ok());
}

/// Impairments that begin while packets are on the wire keep their order; a rate that is set takes
/// the place of one that varies.
#[test]
fn impairments_begin_and_end_while_it_runs() {
    let s = spec(Rate::from_mbit(8), Duration::from_millis(20), "droptail");
    let mut l = Link::new(&s, Layer::Ip, 1500).unwrap();
    (0..10).for_each(|n| _ = l.arrive(0, &udp(n, 1, Ecn::NotEct, 1000)));
    assert_eq!(out(&mut l, 5_000_000), []);
    let impairments = Impairments { jitter: 1_000_000, ..Impairments::default() };
    let jittery = Spec { delay: Duration::ZERO, impairments, ..s.clone() };
    change(&mut l, 5_000_000, &jittery).unwrap();
    (10..20).for_each(|n| _ = l.arrive(5_000_000, &udp(n, 1, Ecn::NotEct, 1000)));
    let mut all = out(&mut l, 12_000_000);
    change(&mut l, 12_000_000, &s).unwrap();
    (20..30).for_each(|n| _ = l.arrive(12_000_000, &udp(n, 1, Ecn::NotEct, 1000)));
    all.extend(out(&mut l, 1 << 40));
    let numbers: Vec<u32> = all.iter().map(|frame| frame.0).collect();
    assert_eq!(numbers, (0..30).collect::<Vec<_>>());
    assert!(l.check());
}
