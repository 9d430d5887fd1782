//! What a sender holds back for a while, its window had room for all the same (RFC 9002 §7.8).

use sim::{Run, Scenario};

/// The window each 100 ms, a round trip, of one flow with these keys alone on a path of this rate and buffer.
fn windows(duration: &str, [rate, buffer]: [&str; 2], flow: &str) -> Vec<f64> {
    let text = format!(
        r#"
        duration = "{duration}"
        measure = {{ interval = "100ms", flows = true }}
        [[link]]
        from = "a"
        to = "b"
        rate = "{rate}"
        delay = "50ms"
        [[queue]]
        link = "a->b"
        aqm = "droptail"
        buffer = "{buffer}"
        [[traffic]]
        from = ["a"]
        to = ["b"]
        {flow}
        "#
    );
    let scenario = Scenario::from_toml(&text, "x").unwrap();
    let series = Run::new(scenario, &text, "x").unwrap().finish().flow_series;
    (0..).map_while(|row| series.number("cwnd_packets", row)).collect()
}

/// A window of 10 doubles each round trip (RFC 5681 §3.1, RFC 6928): in ten of them to 10 240, with two
/// of room for the handshake and for what is sent last.
#[test]
fn slow_start_doubles() {
    for flow in [
        "transport = \"sack\"\npreset = \"modern\"",
        "transport = \"cubic\"\npreset = \"modern\"",
        "transport = \"prague\"\npreset = \"modern\"\necn = true",
        "transport = \"sack\"\npreset = \"linux\"\npacing = true",
        "transport = \"sack\"\ninitial_window = 10\nsend_jitter = \"5ms\"",
    ] {
        let found = windows("1s", ["10gbit", "20000p"], &format!("{flow}\ndelayed_ack = \"0s\""));
        let least = 10.0 * f64::from(1 << (found.len() - 3));
        assert!(found.last().unwrap() > &least, "{flow}: {found:?}");
    }
}

/// In congestion avoidance a packet a round trip, whatever the delays of sending. ns-2's Sack1 with
/// `overhead_` of 5 ms has 0.965.
#[test]
fn congestion_avoidance_adds_a_packet_a_round_trip() {
    for flow in ["send_jitter = \"1ms\"", "send_jitter = \"5ms\"", "rack = true\npacing = true"] {
        let keys = format!("transport = \"sack\"\n{flow}");
        // The first loss halves a window of 1000; the path holds 830.
        let found = windows("12s", ["100mbit", "200p"], &keys);
        let growth = (found[110] - found[40]) / 70.0;
        assert!((0.9..1.01).contains(&growth), "{flow}: {growth}");
    }
}

/// A needless timeout leaves a window of a packet, and so a gap of a round trip to the next: longer than the timeout,
/// once all that was under way is acknowledged. The sender has data all the while, which is no idleness.
#[test]
fn a_gap_longer_than_the_timeout_is_not_idleness() {
    let text = r#"
        duration = "10s"
        seed = 2
        measure = { interval = "10ms", flows = true }
        [[link]]
        from = "s"
        to = "a"
        rate = "10gbit"
        delay = "1ms"
        [[link]]
        from = "a"
        to = "b"
        rate = "10mbit"
        delay = "90ms"
        duplex = false
        delay_trace = { repeat = false, steps = [["0s", "90ms"], ["3s", "400ms"], ["5s", "90ms"], ["7s", "400ms"], ["8s", "90ms"]] }
        [[link]]
        from = "b"
        to = "a"
        rate = "1gbit"
        delay = "90ms"
        duplex = false
        [[queue]]
        link = "a->b"
        aqm = "droptail"
        buffer = "1000p"
        [[traffic]]
        transport = "sack"
        rack = true
        count_packets = true
        pacing = true
        delayed_ack = "0s"
        start = "0s..1s"
        from = ["s"]
        to = ["b"]
        rfc9002 = true
        "#;
    let scenario = Scenario::from_toml(text, "x").unwrap();
    let series = Run::new(scenario, text, "x").unwrap().finish().flow_series;
    let at = |second: f64| series.number("cwnd_packets", (second * 100.0) as usize).unwrap();
    let windows = (850..900).map(|row| at(f64::from(row) / 100.0));
    assert!(windows.fold(f64::INFINITY, f64::min) > 100.0, "{} packets at 8.55 s", at(8.55));
}
