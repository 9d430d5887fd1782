//! What is sampled of each flow, against what can be worked out by hand.

use sim::{Run, Scenario};

/// 50 ms each way, 1 Gb/s: a slow start doubles its window each 100 ms until the receiver's window of
/// 64 packets, and then delivers 64 packets of 8000 bits a round trip.
#[test]
fn a_slow_start_is_seen_round_by_round() {
    let text = r#"
        duration = "3050ms"
        [measure]
        interval = "50ms"
        flows = true
        [[link]]
        from = "a"
        to = "b"
        rate = "1gbit"
        delay = "50ms"
        [[queue]]
        link = "a->b"
        aqm = "droptail"
        buffer = "1000p"
        [[traffic]]
        name = "tcp"
        from = ["a"]
        to = ["b"]
        transport = "newreno"
        packet = "1000B"
        window = "64p"
        [[traffic]]
        name = "cbr"
        from = ["a"]
        to = ["b"]
        transport = "cbr"
        rate = "8mbit"
        packet = "1000B"
    "#;
    let scenario = Scenario::from_toml(text, "series").unwrap();
    let outcome = Run::new(scenario, text, "series").unwrap().finish();
    let series = &outcome.flow_series;
    // A row a flow each 50 ms.
    let at = |name: &str, sample: usize, flow: usize| series.number(name, 2 * sample + flow);
    for (round, window) in [2.0, 4.0, 8.0, 16.0, 32.0].into_iter().enumerate() {
        let sample = 2 * round;
        let time = at("time_s", sample, 0).unwrap();
        assert!((time - 0.05 - 0.1 * round as f64).abs() < 1e-9, "{time}");
        assert_eq!(at("cwnd_packets", sample, 0), Some(window), "round {round}");
    }
    assert_eq!((at("srtt_s", 0, 0), at("cwnd_packets", 0, 1)), (None, None));
    let srtt = at("srtt_s", 40, 0).unwrap();
    assert!((srtt - 0.1).abs() < 0.001, "{srtt}");
    // What is delivered in all is what the intervals have.
    for flow in 0..2 {
        let sum: f64 = (0..61).map(|sample| at("goodput_bps", sample, flow).unwrap()).sum();
        let all = outcome.flows.number("goodput_bps", flow).unwrap();
        assert!((sum / 61.0 - all).abs() < 1.0, "{sum} {all}");
    }
    let full: f64 =
        (40..60).map(|sample| at("goodput_bps", sample, 0).unwrap()).sum::<f64>() / 20.0;
    assert!((full / (64.0 * 8000.0 / srtt) - 1.0).abs() < 0.01, "{full}");
}
