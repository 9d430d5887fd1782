//! Pinned decision hashes of small, varied scenarios (`tests/golden/*.toml`).
//!
//! A decision hash covers every drop, mark and departure of every managed queue and every packet that
//! comes to the end of its path. One that changes says that
//! the simulator now decides differently: some packet was sent, dropped or marked at another
//! nanosecond. If that is meant, the failing test prints the new hashes: copy them here, and say in
//! the commit's message in a sentence why the behaviour changed. If all of them change at once and
//! the other results do not, the hash itself was redefined; say that instead.

use aqm::Duration;
use sim::{Outcome, Run, Scenario};

/// Scenario and decision hash.
const GOLDEN: [(&str, &str); 21] = [
    ("red-ecn", "b4d47fbe862ce1dd"),
    ("blue-reno", "b1080c18c90eb405"),
    ("droptail-mixed-packets", "5870cec85e39f93b"),
    ("on-off", "7f1b45d6266bc5d6"),
    ("cbr", "c826c4a18cccf178"),
    ("two-way", "8459dade2075426e"),
    ("delayed-ack", "d470bd142adf793a"),
    ("two-bottlenecks", "97b0e4c674901f09"),
    ("blue-on-off", "241ad71c2be1eada"),
    ("both-ways", "b15da7cefd1012ec"),
    ("overload", "3c2eda509adc28f5"),
    ("red-pd", "0b4b344c135fdff3"),
    ("tfrc", "4d67e7791d3dc32d"),
    ("web", "70d0da6985f4447e"),
    ("chain", "28b027f94010e734"),
    ("modern-fair", "ffc42cffc070420e"),
    ("l4s", "ddf88e875541fe7e"),
    ("pie-ledbat", "7e6a0e990bdf4c4a"),
    ("cake-codel", "053b9ba16da38021"),
    ("fat-tree", "99d81313e258e383"),
    ("leaf-spine-packet", "a5de3a276761fc2d"),
];

/// All scenarios, or those that use the discipline or the transport that `BLUEWATER_ONLY` names.
fn wanted() -> Vec<(&'static str, &'static str)> {
    let only = std::env::var("BLUEWATER_ONLY").unwrap_or_default();
    let uses = |name: &str| read(name).1.contains(&format!("= \"{only}\""));
    GOLDEN.into_iter().filter(|(name, _)| only.is_empty() || uses(name)).collect()
}

/// The file of a scenario, and its text.
fn read(name: &str) -> (String, String) {
    let file = format!("{}/tests/golden/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    (file, text)
}

fn run(name: &str) -> Run {
    let (file, text) = read(name);
    Scenario::from_toml(&text, &file)
        .and_then(|s| Run::new(s, &text, &file))
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn decisions_are_as_pinned() {
    let found: Vec<(&str, String)> =
        wanted().iter().map(|&(name, _)| (name, run(name).finish().decision_hash)).collect();
    let pinned: Vec<_> =
        wanted().into_iter().map(|(name, hash)| (name, hash.to_string())).collect();
    assert_eq!(found, pinned, "see the head of this file");
}

/// Folding changes nothing that can be seen, at samples, at the warm-up's end or at the run's end,
/// wherever the run is cut into slices.
#[test]
fn folding_changes_nothing_but_the_count_of_events() {
    for (name, _) in wanted() {
        let every_hop = run(name).with_folding(false).finish();
        let mut folded = run(name);
        while folded.advance(Duration::from_micros(97_531)) {}
        let folded = folded.finish();
        let events = |outcome: &Outcome| outcome.summary.number("events", 0);
        // In these every flow enters by a link with a queue on it: there is nothing to fold.
        let any = !["both-ways", "modern-fair", "pie-ledbat", "fat-tree", "leaf-spine-packet"]
            .contains(&name);
        assert!(!any || events(&folded) < events(&every_hop), "{name}: nothing was folded");
        let results = |outcome: &Outcome| {
            let rest: Vec<_> =
                outcome.summary.columns().filter(|(column, _)| *column != "events").collect();
            format!(
                "{}\n{rest:?}\n{:?}\n{:?}\n{:?}",
                outcome.decision_hash, outcome.queues, outcome.flows, outcome.series
            )
        };
        assert!(results(&folded) == results(&every_hop), "{name}");
    }
}

/// A scenario that drops, marks and delivers nothing would pin nothing.
#[test]
fn every_scenario_puts_its_queues_to_work() {
    for (name, _) in wanted() {
        let Outcome { queues, .. } = run(name).finish();
        for row in 0.. {
            let Some(departures) = queues.number("departures", row) else { break };
            let signals = ["drops", "marks"].map(|c| queues.number(c, row).unwrap_or(0.0));
            assert!(departures > 1000.0, "{name}, queue {row}: {departures} departures");
            assert!(signals[0] + signals[1] > 10.0, "{name}, queue {row}: {signals:?}");
        }
    }
}

/// An acknowledgement comes to a queue at the nanosecond at which another comes to its end behind
/// it: all times here are whole multiples of 320 ms.
#[test]
fn folding_changes_nothing_where_times_coincide() {
    let text = r#"
        duration = "60s"
        [[link]]
        from = "a"
        to = "b"
        rate = "1kbit"
        delay = "0s"
        [[link]]
        from = "b"
        to = "c"
        rate = "1mbit"
        delay = "1ns"
        [[queue]]
        link = "b->a"
        aqm = "droptail"
        buffer = "1000p"
        [[traffic]]
        flows = 12
        transport = "newreno"
        start = "0s..30s"
        packet = "576B"
        from = ["a"]
        to = ["c"]
        handshake = true
    "#;
    let hash = |folding| {
        let scenario = Scenario::from_toml(text, "ties").unwrap();
        let run = Run::new(scenario, text, "ties").unwrap();
        run.with_folding(folding).finish().decision_hash
    };
    assert_eq!(hash(true), hash(false));
}

/// Acknowledgements of the group back end with the link A->B, which merges those of n0 and n1 and
/// takes them at once; nothing else would wake it.
#[test]
fn a_packet_whose_path_ends_with_a_merging_link_arrives() {
    let text = r#"
        seed = 256
        duration = "368ms"
        [network]
        preset = "dumbbell"
        rate = "1mbit"
        access_rate = "10mbit"
        delay = "1ms"
        access_delay = "1ms"
        left = 2
        right = 1
        [[queue]]
        link = "A->n0"
        aqm = "droptail"
        buffer = "100p"
        [[traffic]]
        name = "back"
        transport = "sack"
        from = ["B"]
        to = ["n0"]
        window = "2p"
        [[traffic]]
        name = "out"
        transport = "sack"
        flows = 9
        window = "1p"
        app = "finite"
        size = "1p"
        "#;
    let run = |folding| {
        let scenario = Scenario::from_toml(text, "test").unwrap();
        Run::new(scenario, text, "test").unwrap().with_folding(folding).finish()
    };
    let (folded, every_hop) = (run(true), run(false));
    assert_eq!(folded.decision_hash, every_hop.decision_hash);
    // Two packets a round trip of some 16 ms.
    assert!(folded.flows.number("goodput_bps", 0).unwrap() > 0.5e6);
}
