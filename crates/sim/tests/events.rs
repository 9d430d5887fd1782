//! What changes when a congestion controller enters a phase, and applications with a schedule.

use sim::results::table::{Column, Table};
use sim::{Outcome, Run, Scenario};

/// A flow of BBR over 50 Mb/s and 100 ms.
fn run(app: &str, wire: &str, events: &str) -> Outcome {
    let text = format!(
        "duration = \"12s\"\n\
         link = [{{ from = \"s\", to = \"R\", rate = \"1gbit\", delay = \"0s\" }}, \
         {{ from = \"R\", to = \"b\", rate = \"50mbit\", delay = \"50ms\", {wire} }}]\n\
         queue = [{{ link = \"R->b\", aqm = \"droptail\", buffer = \"3336p\" }}]\n\
         [[traffic]]\nname = \"f\"\ntransport = \"bbr\"\npreset = \"modern\"\nfrom = [\"s\"]\nto = [\"b\"]\n\
         {app}\n{events}\n\
         [measure]\ncontrol = true\ninterval = \"100ms\"\nflows = true\n"
    );
    Scenario::from_toml(&text, "x")
        .and_then(|scenario| Run::new(scenario, &text, "x"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

const MAX: &str = "app = \"schedule\"\nsteps = [[\"0s\", \"max\"]]";

fn event(enters: &str, more: &str, set: &str) -> String {
    format!(
        "[[event]]\nwhen = {{ flow = \"f\", enters = \"{enters}\"{more} }}\nset = {{ {set} }}\n"
    )
}

/// When the flow enters a phase for the first time, s.
fn enters(table: &Table, phase: &str) -> f64 {
    let column = |name| match table.column(name) {
        Some(Column::Text(texts)) => texts,
        _ => panic!("no text {name}"),
    };
    let (events, phases) = (column("event"), column("phase"));
    let row = (0..events.len()).find(|&row| events[row] == "phase" && phases[row] == phase);
    table.number("time_s", row.unwrap()).unwrap()
}

/// Packets in flight and bandwidth of every row before `until` (s).
fn before(table: &Table, until: f64) -> Vec<[Option<f64>; 4]> {
    let times = table.real("time_s");
    let rows = (0..times.len()).filter(|&row| times[row].unwrap() < until);
    let names = ["time_s", "cwnd_packets", "inflight_packets", "max_bw"];
    rows.map(|row| names.map(|name| table.number(name, row))).collect()
}

/// Goodput in Mb/s between two times.
fn goodput(outcome: &Outcome, [from, to]: [f64; 2]) -> f64 {
    let series = &outcome.flow_series;
    let of = |row: usize| {
        let time = series.number("time_s", row).unwrap();
        (time > from + 1e-9 && time <= to + 1e-9)
            .then(|| series.number("goodput_bps", row).unwrap())
    };
    let values: Vec<f64> = (0..series.real("time_s").len()).filter_map(of).collect();
    values.iter().sum::<f64>() / values.len() as f64 / 1e6
}

/// The run is the same up to the change, to the nanosecond, and after it the link has the other rate.
#[test]
fn a_rate_changes_as_a_phase_begins() {
    let plain = run(MAX, "", "");
    let changed = run(MAX, "", &event("cruise", "", "\"link.1.rate\" = \"20mbit\""));
    let at = enters(&changed.control, "cruise");
    assert_eq!(at, enters(&plain.control, "cruise"));
    assert_eq!(before(&changed.control, at), before(&plain.control, at));
    assert_ne!(before(&changed.control, 12.0), before(&plain.control, 12.0));
    let rate = goodput(&changed, [at + 0.2, at + 1.2]);
    assert!((rate - 20.0).abs() < 0.2, "{rate} Mb/s");
    // Once: entered again, it goes by the second event.
    let twice = format!(
        "{}{}",
        event("cruise", "", "\"link.1.rate\" = \"20mbit\""),
        event("cruise", ", after = \"1500ms\"", "\"link.1.rate\" = \"50mbit\"")
    );
    let back = run(MAX, "", &twice);
    let rate = goodput(&back, [at + 3.0, 12.0]);
    assert!(rate > 40.0, "{rate} Mb/s");
}

/// As `rate_trace` has it at the same time, written by hand.
#[test]
fn a_change_is_that_of_a_course_with_the_same_time() {
    let changed = run(MAX, "", &event("cruise", "", "\"link.1.rate\" = \"20mbit\""));
    let ns = (enters(&changed.control, "cruise") * 1e9).round();
    let course = format!(
        "rate_trace = {{ steps = [[\"0s\", \"50mbit\"], [\"{ns}ns\", \"20mbit\"]], repeat = false }}"
    );
    let written = run(MAX, &course, "");
    let at = ns / 1e9;
    assert_eq!(before(&changed.control, at).len(), before(&written.control, at).len());
    let [a, b] = [&changed, &written].map(|outcome| goodput(outcome, [at, 12.0]));
    assert!((a - b).abs() < 0.01 * b, "{a} and {b} Mb/s");
}

#[test]
fn loss_and_delay_change_on_the_wire() {
    let lossy = format!(
        "{}{}",
        event("cruise", "", "\"link.1.loss\" = \"10%\""),
        event("cruise", ", after = \"100ms\"", "\"link.1.loss\" = \"0\"")
    );
    let lossy = run(MAX, "", &lossy);
    // 4167 packets a second for 100 ms, and as many acknowledgements of two on the way back.
    let lost = lossy.links.number("lost", 0).unwrap();
    assert!((20.0..70.0).contains(&lost), "{lost} of 417");

    let far = run(MAX, "", &event("cruise", "", "\"link.1.delay\" = \"80ms\""));
    let last = far.flow_series.real("srtt_s").last().copied().flatten().unwrap();
    assert!((0.16..0.2).contains(&last), "{last} s");
    let near = run(MAX, "", &event("cruise", "", "\"link.1.delay\" = \"20ms\""));
    let last = near.flow_series.real("srtt_s").last().copied().flatten().unwrap();
    assert!((0.04..0.06).contains(&last), "{last} s");
}

#[test]
fn an_application_has_its_schedule() {
    let steps =
        "app = \"schedule\"\nsteps = [[\"0s\", \"max\"], [\"4s\", \"4mbit\"], [\"8s\", \"0bit\"]]";
    let outcome = run(steps, "", "");
    assert!(goodput(&outcome, [2.0, 4.0]) > 45.0);
    let rate = goodput(&outcome, [5.0, 8.0]);
    assert!((rate - 4.0).abs() < 0.04, "{rate} Mb/s");
    assert_eq!(goodput(&outcome, [9.0, 12.0]), 0.0);
    let slower = event("cruise", "", "\"traffic.0.rate\" = \"4mbit\"");
    let outcome = run(MAX, "", &slower);
    let rate = goodput(&outcome, [5.0, 12.0]);
    assert!((rate - 4.0).abs() < 0.04, "{rate} Mb/s");
}

/// Two runs are one.
#[test]
fn events_are_repeatable() {
    let events = event("up", "", "\"link.1.loss\" = \"4%\"");
    let [a, b] = [0, 1].map(|_| run(MAX, "", &events));
    assert_eq!((a.decision_hash, a.control), (b.decision_hash, b.control));
}
