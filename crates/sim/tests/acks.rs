//! CAKE's filter of acknowledgements on a slow way back, against arithmetic.

use sim::{Outcome, Run, Scenario};

/// A connection on 50 Mb/s, with 250 kbit/s for its acknowledgements, and with a window that fills the
/// path and loses nothing: acknowledgements with SACK blocks are not filtered.
fn run(filter: &str) -> Outcome {
    run_of(filter, r#"transport = "cubic", preset = "linux""#)
}

/// The same of another sender.
fn run_of(filter: &str, sender: &str) -> Outcome {
    let text = format!(
        r#"
        duration = "20s"
        warmup = "10s"
        link = [
            {{ from = "s", to = "A", rate = "1gbit", delay = "10ms" }},
            {{ from = "A", to = "B", rate = "50mbit", delay = "5ms", duplex = false }},
            {{ from = "B", to = "A", rate = "250kbit", delay = "5ms", duplex = false }},
            {{ from = "B", to = "r", rate = "1gbit", delay = "0s" }},
        ]
        queue = [
            {{ link = "A->B", aqm = "cake", buffer = "1MB" }},
            {{ link = "B->A", aqm = "cake", buffer = "1MB", params = {{ target = "1h", ack_filter = "{filter}" }} }},
        ]
        traffic = [
            {{ {sender}, window = "140p", from = ["s"], to = ["r"] }},
        ]
        "#
    );
    Scenario::from_toml(&text, "acks")
        .and_then(|scenario| Run::new(scenario, &text, "acks"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

/// Every second packet is acknowledged at least. Unless acknowledgements give way, no more pairs of
/// packets arrive than acknowledgements fit on the way back.
#[test]
fn what_gives_way_frees_the_other_direction() {
    for (filter, frees) in [("off", false), ("on", true), ("aggressive", true)] {
        let o = run(filter);
        let number = |name: &str, queue| o.queues.number(name, queue).unwrap();
        let length = number("departures_bytes", 1) / number("departures", 1);
        let pairs = 250e3 / (8.0 * length);
        let held = pairs * 2.0 * 1500.0 * 8.0 / 50e6;
        let used = number("utilisation", 0);
        assert_eq!(number("drops", 1) > 0.0, frees, "{filter}");
        assert_eq!(number("drops_overflow", 1), 0.0, "{filter}");
        match frees {
            false => assert!(used < 1.01 * held && held < 0.4, "{used}, not {held}"),
            true => assert!(used > 1.5 * held, "{filter}: {used}, not above {held}"),
        }
    }
}

/// AccECN's counter begins with its highest bit set (RFC 9768 §3.2.2.2), and an acknowledgement with that
/// flag is not bare: where nothing is marked none gives way, as with Linux and in the gateway.
#[test]
fn acknowledgements_of_accecn_are_kept_while_nothing_is_marked() {
    for (accecn, frees) in [(false, true), (true, false)] {
        let sender =
            format!(r#"transport = "prague", preset = "modern", ecn = true, accecn = {accecn}"#);
        let o = run_of("on", &sender);
        let number = |name: &str, queue| o.queues.number(name, queue).unwrap();
        assert_eq!((number("marks", 0), number("drops_overflow", 1)), (0.0, 0.0));
        assert_eq!(number("drops", 1) > 0.0, frees, "accecn: {accecn}");
    }
}
