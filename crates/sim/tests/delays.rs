//! Delays in queues, from end to end and round trips, against arithmetic.

use std::fs;
use std::path::Path;

use sim::results::table::{Column, Table};
use sim::{Outcome, Run, Scenario};

/// A link of 8 Mb/s, on which a byte takes a microsecond, and 10 ms each way.
fn run(buffer: &str, times: &str, groups: &str) -> Outcome {
    let text = format!(
        "{times}\nmeasure = {{ delays = true }}\n\
         link = [{{ from = \"a\", to = \"b\", rate = \"8mbit\", delay = \"10ms\" }}]\n\
         queue = [{{ link = \"a->b\", aqm = \"droptail\", buffer = \"{buffer}\" }}]\n{groups}"
    );
    Scenario::from_toml(&text, "delays")
        .and_then(|scenario| Run::new(scenario, &text, "delays"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

fn group(name: &str, keys: &str) -> String {
    format!("[[traffic]]\nname = \"{name}\"\nfrom = [\"a\"]\nto = [\"b\"]\n{keys}\n")
}

/// Samples, mean, p50, p90, p95, p99 and maximum (s) of a group's delays of a kind.
fn of_group(outcome: &Outcome, name: &str, kind: &str) -> Option<[f64; 7]> {
    let column = |name: &str| match outcome.delays.column(name) {
        Some(Column::Text(values)) => values.clone(),
        other => panic!("{other:?}"),
    };
    let row = column("group")
        .into_iter()
        .zip(column("kind"))
        .position(|at| at == (name.into(), kind.into()))?;
    Some(figures(&outcome.delays, row))
}

fn figures(table: &Table, row: usize) -> [f64; 7] {
    let times = ["mean", "p50", "p90", "p95", "p99", "max"].map(|name| format!("delay_{name}_s"));
    let number = |name: &str| table.number(name, row).unwrap_or_else(|| panic!("no {name}"));
    let [mean, p50, p90, p95, p99, max] = times.each_ref().map(|name| number(name));
    [number("samples"), mean, p50, p90, p95, p99, max]
}

#[track_caller]
fn all_are(found: Option<[f64; 7]>, expected: f64) {
    let found = found.expect("no such row");
    let near = |time: &f64| (time - expected).abs() < 2e-9;
    assert!(found[0] > 10.0 && found[1..].iter().all(near), "{found:?}, not {expected}");
}

/// 1000 bytes take 1 ms, an acknowledgement of 40 takes 40 µs: 11 ms one way, 21.04 ms both.
#[test]
fn on_an_empty_link_delays_are_transmission_and_propagation() {
    let web = "app = \"web\"\nobjects = 1\nconnections = 1\nsize = \"1p\"\noff = \"50ms\"";
    for (keys, has_round_trip) in [
        ("transport = \"newreno\"\nwindow = \"1p\"", true),
        ("transport = \"sack\"\nwindow = \"1p\"", true),
        ("transport = \"sack\"\nwindow = \"1p\"\nrack = true", true),
        ("transport = \"bbr\"\nwindow = \"1p\"", true),
        (&format!("transport = \"sack\"\n{web}"), true),
        ("transport = \"cbr\"\nrate = \"80kbit\"", false),
        ("transport = \"window\"\nwindow = 1", false),
    ] {
        println!("{keys}");
        let outcome = run("9p", "duration = \"9s\"\nwarmup = \"4s\"", &group("one", keys));
        all_are(of_group(&outcome, "one", "one-way"), 0.011);
        all_are(of_group(&outcome, "one", "queueing"), 0.0);
        match of_group(&outcome, "one", "round-trip") {
            Some(found) if has_round_trip => all_are(Some(found), 0.02104),
            found => assert!(found.is_none() && !has_round_trip, "{found:?}"),
        }
    }
}

/// The handshake's round trip is a sample, too: 40 bytes there and back. What is before the window is
/// left out.
#[test]
fn the_window_of_measurement_begins_with_the_warmup() {
    let keys = group("one", "transport = \"sack\"\nwindow = \"1p\"\nhandshake = true");
    let whole = run("9p", "duration = \"9s\"", &keys);
    let [samples, mean, .., max] = of_group(&whole, "one", "round-trip").unwrap();
    assert!((max - 0.02104).abs() < 2e-9);
    assert!(((0.02104 - mean) * samples - 960e-6).abs() < 1e-9, "{mean} of {samples}");
    let rest = run("9p", "duration = \"9s\"\nwarmup = \"5s\"", &keys);
    for kind in ["one-way", "round-trip", "queueing"] {
        let [samples, ..] = of_group(&rest, "one", kind).unwrap();
        assert!((samples - 4.0 / 0.02104).abs() <= 1.0, "{kind}: {samples}");
    }
}

/// What is lost has no delay, and what is sent again a time of its own: on an empty link that is 11 ms
/// all the same.
#[test]
fn what_is_sent_again_has_a_time_of_its_own() {
    let text = "duration = \"60s\"\nmeasure = { delays = true }\n\
        link = [{ from = \"a\", to = \"b\", rate = \"8mbit\", delay = \"10ms\", loss = \"10%\" }]\n\
        queue = [{ link = \"a->b\", aqm = \"droptail\", buffer = \"9p\" }]\n\
        traffic = [{ transport = \"sack\", window = \"1p\", from = [\"a\"], to = [\"b\"] }]\n";
    let run = Scenario::from_toml(text, "x").and_then(|scenario| Run::new(scenario, text, "x"));
    let outcome = run.unwrap().finish();
    assert!(outcome.flows.number("retransmits", 0).unwrap() > 20.0);
    all_are(of_group(&outcome, "flows", "one-way"), 0.011);
    all_are(of_group(&outcome, "flows", "round-trip"), 0.02104);
}

/// Two transfers share a long queue, and nothing is lost: each packet's way is its time in the queue and
/// 11 ms, and with RACK each acknowledgement is a sample, 10.04 ms more. Flows add up to groups.
#[test]
fn in_a_queue_the_way_is_the_time_there_and_a_constant() {
    let keys = "transport = \"sack\"\nrack = true\napp = \"finite\"\nsize = \"2000p\"\nflows = 2\n\
                initial_window = 20\nwindow = \"60p\"\nmin_rto = \"5s\"\nstart = \"0s..1s\"";
    let groups = group("one", keys) + &group("other", &keys.replace("2000p", "500p"));
    let outcome = run("9999p", "duration = \"30s\"", &groups);
    let mut packets = 0.0;
    for name in ["one", "other"] {
        let [queueing, way, round] = ["queueing", "one-way", "round-trip"]
            .map(|kind| of_group(&outcome, name, kind).unwrap());
        let sent = if name == "one" { 4000.0 } else { 1000.0 };
        assert_eq!([queueing[0], way[0], round[0]], [sent; 3], "{name}");
        assert!(queueing[1] > 0.05, "{queueing:?}");
        for (more, less, constant) in [(way, queueing, 0.011), (round, way, 0.01004)] {
            // Mean and maximum are exact; a quantile is at most 1/32 off.
            for (i, share) in [(1, 0.0), (6, 0.0), (2, 0.04), (5, 0.04)] {
                let error = more[i] - less[i] - constant;
                assert!(error.abs() < share * more[i] + 1e-6, "{name}, {i}: {error}");
            }
        }
        packets += sent;
    }
    let rows = (0..12).map(|row| figures(&outcome.flow_delays, row)[0]);
    assert_eq!(rows.sum::<f64>(), 3.0 * packets);
    assert_eq!(outcome.flow_delays.number("flow", 11), Some(3.0));
    assert_eq!(outcome.flow_delays.number("flow", 12), None);
}

/// Who looks on changes nothing.
#[test]
fn no_decision_changes() {
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let hash = |delays| {
            let mut scenario = Scenario::from_toml(&text, "golden").unwrap();
            scenario.measure.delays = delays;
            Run::new(scenario, &text, "golden").unwrap().finish().decision_hash
        };
        assert_eq!(hash(true), hash(false), "{}", path.display());
    }
}
