//! The table `control`: what congestion controls do.

use sim::results::table::{Column, Table};
use sim::{Outcome, Run, Scenario};

/// One flow over 50 Mb/s and 100 ms, whose BDP is 417 packets, with a buffer of so many packets.
fn run(transport: &str, buffer: u32, seconds: u32, more: &str) -> Outcome {
    let text = format!(
        "duration = \"{seconds}s\"\nnetwork = {{ preset = \"dumbbell\", rate = \"50mbit\", delay = \"50ms\", \
         access_rate = \"1gbit\", access_delay = \"0s\" }}\n\
         [[queue]]\naqm = \"droptail\"\nbuffer = \"{buffer}p\"\n\
         [[traffic]]\nname = \"f\"\ntransport = \"{transport}\"\npreset = \"modern\"\n{more}\n\
         [measure]\ncontrol = true\n"
    );
    Scenario::from_toml(&text, "x")
        .and_then(|scenario| Run::new(scenario, &text, "x"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

fn texts<'a>(table: &'a Table, name: &str) -> Vec<&'a str> {
    let Some(Column::Text(texts)) = table.column(name) else { panic!("no text {name}") };
    texts.iter().map(String::as_str).collect()
}

/// The rows of an event: their numbers.
fn of(table: &Table, event: &str) -> Vec<usize> {
    let events = texts(table, "event");
    (0..events.len()).filter(|&row| events[row] == event).collect()
}

fn phases(table: &Table) -> Vec<&str> {
    let phases = texts(table, "phase");
    of(table, "phase").into_iter().map(|row| phases[row]).collect()
}

#[test]
fn a_row_a_change_of_phase_of_bbr() {
    let table = run("bbr", 3336, 12, "").control;
    let seen = phases(&table);
    assert_eq!(seen[..6], ["startup", "drain", "down", "cruise", "refill", "up"]);
    assert!(seen.contains(&"probe-rtt"), "after 5 s: {seen:?}");
    let changes = of(&table, "phase");
    let (startup, drain) = (changes[0], changes[1]);
    let value = |row: usize, name: &str| table.number(name, row).unwrap();
    assert_eq!(texts(&table, "ended")[drain], "startup");
    assert_eq!((value(startup, "nth"), value(startup, "since_s")), (1.0, 0.0));
    assert_eq!(value(drain, "since_s"), value(drain, "time_s") - value(startup, "time_s"));
    assert_eq!((value(drain, "pacing_gain"), value(drain, "full_bw_count")), (0.5, 3.0));
    assert!((value(drain, "max_bw") / 50e6 - 1.0).abs() < 0.02, "{}", value(drain, "max_bw"));
    let paced = value(drain, "pacing_bps") / value(drain, "bw") / 0.99;
    assert!((paced - 0.5).abs() < 1e-3, "{paced}");
    assert_eq!(table.number("inflight_longterm", drain), None, "it is infinite");
}

/// Rounds are those that the control counts, each once.
#[test]
fn a_row_a_round() {
    let table = run("bbr", 3336, 3, "").control;
    let counts: Vec<f64> = of(&table, "round")
        .into_iter()
        .map(|row| table.number("round_count", row).unwrap())
        .collect();
    let ascending: Vec<f64> = (1..=counts.len()).map(|n| n as f64).collect();
    assert_eq!(counts, ascending);
    assert!((20..31).contains(&counts.len()), "100 ms and a queue in 3 s: {}", counts.len());
}

/// A buffer of a quarter of the BDP loses packets.
#[test]
fn episodes_begin_and_end_for_windows() {
    for transport in ["cubic", "sack"] {
        let table = run(transport, 104, 20, "").control;
        let seen = phases(&table);
        assert_eq!(seen[0], "slow-start", "{transport}");
        assert!(seen.contains(&"recovery") && seen.contains(&"congestion-avoidance"), "{seen:?}");
        let (losses, ends) = (of(&table, "loss").len(), of(&table, "recovered").len());
        assert!(losses > 0 && ends > 0 && ends <= losses + of(&table, "timeout").len(), "{ends}");
        let rounds = of(&table, "round").len();
        assert!((80..240).contains(&rounds), "{transport}: {rounds} round trips of 100 ms in 20 s");
    }
}

#[test]
fn version_1_has_its_own_phases() {
    let table = run("bbr1", 3336, 12, "").control;
    let seen = phases(&table);
    assert_eq!(seen[..3], ["startup", "drain", "probe-bw"]);
    assert!(seen.contains(&"probe-rtt"), "after 10 s: {seen:?}");
}

/// Marks: the window goes down in a reduction, and alpha is there.
#[test]
fn marks_have_their_phase() {
    let red = "aqm = \"red\"\nbuffer = \"500p\"";
    let text = format!(
        "duration = \"5s\"\nnetwork = {{ preset = \"dumbbell\", rate = \"10mbit\" }}\n[[queue]]\n{red}\n\
         [[traffic]]\ntransport = \"dctcp\"\nrack = true\necn = true\n[measure]\ncontrol = true\n"
    );
    let scenario = Scenario::from_toml(&text, "x").unwrap();
    let table = Run::new(scenario, &text, "x").unwrap().finish().control;
    assert!(phases(&table).contains(&"reduction"));
    let last = texts(&table, "event").len() - 1;
    let alpha = table.number("alpha", last).unwrap();
    assert!(alpha > 0.0 && alpha < 1.0, "{alpha}");
}

#[test]
fn looking_on_changes_no_decision() {
    for transport in ["bbr", "bbr1", "cubic"] {
        let with = run(transport, 104, 8, "");
        let text = with.scenario.replace("control = true", "control = false");
        let scenario = Scenario::from_toml(&text, "x").unwrap();
        let without = Run::new(scenario, &text, "x").unwrap().finish();
        assert_eq!(with.decision_hash, without.decision_hash, "{transport}");
        assert!(texts(&without.control, "event").is_empty());
    }
}
