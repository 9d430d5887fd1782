//! TCP of today where a link loses much, or changes.

use sim::{Run, Scenario};

/// The slow start of two flows takes FQ-PIE's probability to three in four. Who then sends again as fast
/// as before what is lost keeps it there: 5790 packets in these ten seconds, 38 000 in two minutes.
#[test]
fn losses_after_a_timeout_slow_a_sender_down() {
    let flow = |name: &str| {
        format!(
            r#"
            [[link]]
            from = "{name}"
            to = "router"
            rate = "1gbit"
            delay = "50ms"
            [[traffic]]
            name = "{name}"
            from = ["{name}"]
            to = ["sink"]
            start = "0s..5s"
            transport = "cubic"
            preset = "linux"
            packet = "1500B"
            ecn = true
            "#
        )
    };
    let text = format!(
        r#"
        seed = 3
        duration = "10s"
        [[link]]
        from = "router"
        to = "sink"
        rate = "10mbit"
        delay = "0s"
        [[queue]]
        link = "router->sink"
        aqm = "fq-pie"
        buffer = "250p"
        {}{}"#,
        flow("one"),
        flow("two")
    );
    let scenario = Scenario::from_toml(&text, "x").unwrap();
    let flows = Run::new(scenario, &text, "x").unwrap().finish().flows;
    let again = [0, 1].map(|row| flows.number("retransmits", row).unwrap());
    // The link carries 8300 packets.
    assert!(again[0] + again[1] < 830.0, "{again:?}");
}
