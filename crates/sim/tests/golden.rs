//! Pinned decision hashes of small, varied scenarios (`tests/golden/*.toml`).
//!
//! A decision hash covers every drop, mark and departure of every link. One that changes says that
//! the simulator now decides differently: some packet was sent, dropped or marked at another
//! nanosecond. If that is meant, the failing test prints the new hashes: copy them here, and say in
//! the commit's message in a sentence why the behaviour changed. If all of them change at once and
//! the other results do not, the hash itself was redefined; say that instead.

use sim::{Outcome, Run, Scenario};

/// Scenario and decision hash.
const GOLDEN: [(&str, &str); 8] = [
    ("red-ecn", "b79f8fbcb9bdec82"),
    ("blue-reno", "8cf7caa4b15c44f0"),
    ("droptail-mixed-packets", "d52c8f8341f5f658"),
    ("on-off", "7485b3bc49dba86b"),
    ("cbr", "857697c046ac1bb6"),
    ("two-way", "e06f109c4f880620"),
    ("delayed-ack", "a4a3606bf927e5da"),
    ("two-bottlenecks", "e44089692aaf6508"),
];

fn run(name: &str) -> Run {
    let file = format!("{}/tests/golden/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    Scenario::from_toml(&text, &file)
        .and_then(|s| Run::new(s, &text, &file))
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn decisions_are_as_pinned() {
    let found: Vec<(&str, String)> =
        GOLDEN.iter().map(|&(name, _)| (name, run(name).finish().decision_hash)).collect();
    let pinned = GOLDEN.map(|(name, hash)| (name, hash.to_string()));
    assert_eq!(found, pinned, "see the head of this file");
}

/// A scenario that drops, marks and delivers nothing would pin nothing.
#[test]
fn every_scenario_puts_its_queues_to_work() {
    for (name, _) in GOLDEN {
        let Outcome { queues, .. } = run(name).finish();
        for row in 0.. {
            let Some(departures) = queues.number("departures", row) else { break };
            let signals = ["drops", "marks"].map(|c| queues.number(c, row).unwrap_or(0.0));
            assert!(departures > 1000.0, "{name}, queue {row}: {departures} departures");
            assert!(signals[0] + signals[1] > 10.0, "{name}, queue {row}: {signals:?}");
        }
    }
}
