//! BBR: alone, beside its like, and beside CUBIC, as its drafts and those who measured it say.

use sim::{Outcome, Run, Scenario};

fn run(text: &str) -> Outcome {
    Scenario::from_toml(text, "bbr")
        .and_then(|scenario| Run::new(scenario, text, "bbr"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

/// A bottleneck of 50 Mb/s and 40 ms, whose BDP is 167 packets of 1500 bytes.
fn bottleneck(queue: &str, seconds: [u32; 2], groups: &[(&str, &str)]) -> Outcome {
    let groups: String = groups
        .iter()
        .map(|(transport, keys)| {
            format!(
                "[[traffic]]\ntransport = \"{transport}\"\n\
                 packet = \"1500B\"\ninitial_window = 10\n{keys}\n"
            )
        })
        .collect();
    run(&format!(
        "duration = \"{}s\"\nwarmup = \"{}s\"\n\
         network = {{ preset = \"dumbbell\", rate = \"50mbit\", delay = \"20ms\", \
         access_rate = \"1gbit\", access_delay = \"0s\" }}\n[[queue]]\n{queue}\n{groups}",
        seconds[1], seconds[0]
    ))
}

fn number(outcome: &Outcome, name: &str) -> f64 {
    outcome.summary.number(name, 0).unwrap()
}

/// The throughput in Mb/s of a flow.
fn rate(outcome: &Outcome, flow: usize) -> f64 {
    outcome.flows.number("throughput_bps", flow).unwrap() / 1e6
}

/// A drop-tail queue of so many packets.
fn droptail(packets: u32) -> String {
    format!("aqm = \"droptail\"\nbuffer = \"{packets}p\"")
}

/// One flow: the link is all but full, whatever the buffer, and its queue is not CUBIC's. Version 1 has
/// a queue of its bursts' room, version 3 none but while it probes.
#[test]
fn alone_it_fills_the_link_without_filling_the_buffer() {
    for (transport, least, median) in [("bbr", 0.95, 0.001), ("bbr1", 0.96, 0.005)] {
        for buffer in [167, 2000] {
            let o = bottleneck(&droptail(buffer), [20, 60], &[(transport, "")]);
            let used = number(&o, "utilisation");
            assert!(used > least, "{transport}, {buffer} packets: {used}");
            assert!(number(&o, "delay_p50_s") < median, "{transport}, {buffer} packets");
            // 40 ms is a BDP.
            assert!(number(&o, "delay_p99_s") < 0.04, "{transport}, {buffer} packets");
            assert_eq!(number(&o, "drops"), 0.0, "{transport}, {buffer} packets");
        }
    }
}

/// The times at which so few packets pass in 50 ms that the window is held down, and how many such
/// intervals follow.
fn pauses(transport: &str, most: f64) -> Vec<(f64, usize)> {
    let o = bottleneck(
        &format!("{}\n[measure]\ninterval = \"50ms\"", droptail(1000)),
        [0, 35],
        &[(transport, "")],
    );
    let mut found: Vec<(f64, usize)> = Vec::new();
    let mut last = usize::MAX;
    for i in 0..o.series.real("idle_s").len() {
        let of = |name| o.series.number(name, i).unwrap();
        let (time, passed) = (of("time_s"), of("departures"));
        if time > 2.0 && passed < most {
            match found.last_mut() {
                Some((_, count)) if last + 1 == i => *count += 1,
                _ => found.push((time, 1)),
            }
            last = i;
        }
    }
    found
}

/// ProbeRTT: version 3 each 5 s with half of the BDP, version 1 each 10 s with four packets under way;
/// for 200 ms and a round trip at most. 208 packets pass in 50 ms at the full rate.
#[test]
fn the_round_trip_is_measured_when_the_drafts_say() {
    for (transport, most, each, times) in [("bbr", 160.0, 5.0, 6), ("bbr1", 60.0, 10.0, 3)] {
        let found = pauses(transport, most);
        assert_eq!(found.len(), times, "{transport}: {found:?}");
        for pair in found.windows(2) {
            let apart = pair[1].0 - pair[0].0;
            assert!((each..each + 0.5).contains(&apart), "{transport}: {found:?}");
        }
        assert!(found.iter().all(|&(_, count)| (3..=6).contains(&count)), "{transport}: {found:?}");
    }
}

/// Hock, Bless and Zitterbart (ICNP 2017): in shallow buffers version 1 takes nearly all from CUBIC, in
/// deep ones, where its window of two BDPs holds it, CUBIC has more.
#[test]
fn version_1_takes_from_cubic_what_the_buffer_lets_it() {
    let share = |buffer: u32| {
        let keys = "start = \"0s..1s\"";
        let o = bottleneck(&droptail(buffer), [20, 100], &[("bbr1", keys), ("cubic", keys)]);
        rate(&o, 0) / (rate(&o, 0) + rate(&o, 1))
    };
    let (shallow, bdp, deep) = (share(17), share(167), share(2000));
    assert!(shallow > 0.9, "{shallow}");
    assert!(bdp > 0.6 && bdp < shallow, "{bdp}");
    assert!(deep < 0.5, "{deep}");
}

/// The reason of version 3: CUBIC beside it lives in shallow buffers, too.
#[test]
fn version_3_leaves_cubic_more_than_version_1_does() {
    let of_cubic = |transport: &str| {
        let keys = "start = \"0s..1s\"";
        let o = bottleneck(&droptail(80), [20, 100], &[(transport, keys), ("cubic", keys)]);
        rate(&o, 1)
    };
    let (v3, v1) = (of_cubic("bbr"), of_cubic("bbr1"));
    assert!(v3 > 1.5 * v1, "{v3} and {v1} Mb/s");
}

/// Two that start apart come to the same rate, version 1 as Linux has it (whose pairs at half a BDP have
/// a Jain index of 0.99 and more: `linux_bbr.csv` of the validation); in a shallow buffer it loses packets
/// for it, version 3 stays below its threshold of 2 %.
#[test]
fn two_flows_converge() {
    let keys = "flows = 2\nstart = \"0s..10s\"";
    let of_linux = format!("{keys}\npreset = \"linux\"");
    for (transport, keys) in [("bbr", keys), ("bbr1", &of_linux)] {
        for buffer in [80, 1000] {
            let o = bottleneck(&droptail(buffer), [40, 120], &[(transport, keys)]);
            let (a, b) = (rate(&o, 0), rate(&o, 1));
            let jain = (a + b).powi(2) / (2.0 * (a * a + b * b));
            assert!(jain > 0.97, "{transport}, {buffer} packets: {a} and {b} Mb/s");
            assert!(a + b > 47.0, "{transport}, {buffer} packets: {a} and {b} Mb/s");
            let loss = number(&o, "loss");
            if transport == "bbr" {
                assert!(loss < 0.02, "{buffer} packets: {loss}");
            } else if buffer == 80 {
                assert!(loss > 0.02, "{loss}");
            }
        }
    }
}

/// Losses that are none of its doing: version 1 does not mind some percent. Version 3 loses a share p of
/// its rate each round until it probes anew after 63 (*Design Considerations for Choosing Constant
/// Parameters*): (1 − (1 − p)^63)/(63 p) of it is left in the mean, and far less where a probe finds more
/// than 2 % lost. CUBIC minds them all.
#[test]
fn random_losses_do_not_count_until_the_threshold() {
    let of = |transport: &str, p: f64| {
        let queue = format!("aqm = \"bernoulli\"\nbuffer = \"1000p\"\nparams = {{ p = {p} }}");
        rate(&bottleneck(&queue, [10, 50], &[(transport, "preset = \"modern\"")]), 0)
    };
    for p in [0.01, 0.05, 0.1] {
        let v1 = of("bbr1", p);
        assert!(v1 > 0.8 * 50.0, "{p}: {v1}");
    }
    assert!(of("cubic", 0.01) < 15.0);
    let expected = 50.0 * (1.0 - 0.99f64.powi(63)) / 0.63;
    let (below, above) = (of("bbr", 0.01), of("bbr", 0.05));
    assert!((below / expected - 1.0).abs() < 0.1, "{below} and {expected}");
    assert!(above < below / 5.0, "{above}");
}

/// Where a queue marks, version 3 gives way, and version 1 takes no notice.
#[test]
fn marks_are_congestion_for_version_3_only() {
    let of = |transport: &str| {
        let keys = "ecn = true\nflows = 4\nstart = \"0s..1s\"";
        bottleneck("aqm = \"codel\"\nbuffer = \"1000p\"", [10, 40], &[(transport, keys)])
    };
    let (v3, v1) = (of("bbr"), of("bbr1"));
    let marks = |o: &Outcome| number(o, "mark_rate");
    assert!(marks(&v1) > 5.0 * marks(&v3), "{} {}", marks(&v3), marks(&v1));
    assert!(number(&v3, "delay_p50_s") < number(&v1, "delay_p50_s"));
    assert!(number(&v3, "utilisation") > 0.9);
}

/// A source with pauses: the window survives them, and what it sends in them does not lower the
/// estimate of the bandwidth.
#[test]
fn an_application_with_pauses_keeps_its_estimate() {
    for transport in ["bbr", "bbr1"] {
        let o = bottleneck(
            &droptail(167),
            [10, 60],
            &[(transport, "app = \"exponential\"\non = \"1s\"\noff = \"1s\"")],
        );
        let rate = rate(&o, 0);
        assert!((18.0..32.0).contains(&rate), "{transport}: {rate} Mb/s for half of the time");
    }
}

/// Google's kernel looks at marks only where the route says that they are of low latency, and the round trip is short:
/// elsewhere it takes nearly all from one that gives way to them. (Measured on a testbed of 100 Mb/s and 10 ms:
/// 90 Mb/s beside Prague's 4 in DualPI2, and 93 beside 2 in a FIFO that marks.)
#[test]
fn the_kernels_version_3_ignores_marks_of_long_round_trips() {
    let of_bbr = |queue: &str, keys: &str| {
        let o = run(&format!(
            "duration = \"40s\"\nwarmup = \"10s\"\n\
             network = {{ preset = \"dumbbell\", rate = \"100mbit\", delay = \"5ms\", \
             access_rate = \"100gbit\", access_delay = \"0s\" }}\n[[queue]]\n{queue}\n\
             [[traffic]]\ntransport = \"prague\"\npreset = \"linux\"\necn = true\naccecn = true\n\
             packet = \"1514B\"\nstart = \"0s..1s\"\n\
             [[traffic]]\ntransport = \"bbr\"\npreset = \"linux\"\necn = true\npacket = \"1514B\"\n\
             start = \"0s..1s\"\n{keys}\n"
        ));
        rate(&o, 1)
    };
    let dualpi2 =
        "aqm = \"dualpi2\"\nbuffer = \"10000p\"\nparams = { preset = \"linux\", target = \"5ms\" }";
    let step =
        "aqm = \"codel\"\nbuffer = \"167p\"\nparams = { target = \"1h\", ce_threshold = \"5ms\" }";
    for (queue, least) in [(dualpi2, 85.0), (step, 90.0)] {
        for keys in ["", "accecn = true"] {
            let found = of_bbr(queue, keys);
            assert!(found > least, "{queue} {keys}: {found} Mb/s");
        }
        let losses = of_bbr(queue, "ecn_rule = \"as-losses\"");
        assert!(losses < 70.0, "{queue}, as losses: {losses} Mb/s");
    }
}
