//! A journal of packets changes no decision, and what it says adds up.

use std::collections::HashMap;

use sim::results::journal::Selection;
use sim::results::table::{Column, Table};
use sim::{Outcome, Run, Scenario};

use aqm::Duration;

const ALGORITHMS: &[&str] = &[
    "droptail",
    "drop-front",
    "random-drop",
    "red",
    "blue",
    "sfb",
    "fred",
    "choke",
    "red-pd",
    "codel",
    "fq-codel",
    "pie",
    "dualpi2",
    "cake",
    "sfq",
];

fn scenario(aqm: &str) -> String {
    format!(
        "duration = \"4s\"\nnetwork = {{ preset = \"dumbbell\", rate = \"10mbit\", delay = \"10ms\" }}\n\
         [[queue]]\naqm = \"{aqm}\"\nbuffer = \"40p\"\n\
         [[traffic]]\nname = \"tcp\"\nflows = 10\ntransport = \"sack\"\nstart = \"0s..1s\"\necn = true\n\
         [[traffic]]\nname = \"udp\"\ntransport = \"cbr\"\nrate = \"2mbit\"\n"
    )
}

/// Runs it in pieces with a journal of `selection`; without one if there is none.
fn run(aqm: &str, selection: Option<&Selection>) -> (Outcome, Vec<Table>) {
    let text = scenario(aqm);
    let mut run = Scenario::from_toml(&text, aqm)
        .and_then(|scenario| Run::new(scenario, &text, aqm))
        .unwrap_or_else(|e| panic!("{e}"));
    if let Some(selection) = selection {
        run.keep_journal(selection);
    }
    let mut tables = Vec::new();
    while run.advance(Duration::from_millis(50)) {
        tables.extend(run.drain_journal().into_iter().map(|(_, table)| table));
    }
    tables.extend(run.drain_journal().into_iter().map(|(_, table)| table));
    (run.finish(), tables)
}

/// All values of a column as text.
fn column(tables: &[Table], name: &str) -> Vec<String> {
    let of = |table: &Table| match table.columns().find(|(n, _)| *n == name).unwrap().1.clone() {
        Column::Count(all) => all.iter().map(ToString::to_string).collect(),
        Column::Real(all) => {
            all.iter().map(|v| v.map_or(String::new(), |v| v.to_string())).collect()
        }
        Column::Text(all) => all,
    };
    tables.iter().flat_map(|table| -> Vec<String> { of(table) }).collect()
}

#[test]
fn rows_add_up_to_the_counters_and_nothing_changes() {
    for aqm in ALGORITHMS {
        let (plain, _) = run(aqm, None);
        let (watched, tables) = run(aqm, Some(&Selection::default()));
        assert_eq!(plain.decision_hash, watched.decision_hash, "{aqm}");
        let numbers = column(&tables, "n");
        assert!(numbers.iter().enumerate().all(|(i, n)| *n == i.to_string()), "{aqm}: in order");
        let count = |name: &str| plain.summary.number(name, 0).unwrap() as usize;
        assert_eq!(numbers.len(), count("arrivals"), "{aqm}");
        let mut fates: HashMap<String, usize> = HashMap::new();
        column(&tables, "fate").into_iter().for_each(|fate| *fates.entry(fate).or_default() += 1);
        let fate = |name: &str| fates.get(name).copied().unwrap_or(0);
        assert_eq!(fate("dropped"), count("drops"), "{aqm}");
        assert_eq!(fate("sent"), count("departures"), "{aqm}");
        assert_eq!(fate("sent") + fate("dropped") + fate("queued"), numbers.len(), "{aqm}");
        for cause in ["overflow", "early", "penalty"] {
            let rows = column(&tables, "dropped").iter().filter(|of| *of == cause).count();
            assert_eq!(rows, count(&format!("drops_{cause}")), "{aqm}: {cause}");
        }
        let marked = column(&tables, "marked").iter().filter(|cause| !cause.is_empty()).count();
        assert_eq!(marked, count("marks"), "{aqm}");
    }
}

/// Of algorithms that throw a coin for each packet as it arrives.
#[test]
fn who_was_signalled_had_a_coin_below_the_probability() {
    for aqm in ["red", "blue", "pie"] {
        let (_, tables) = run(aqm, Some(&Selection::default()));
        let [p, coin, marked, dropped] =
            ["p", "coin", "marked", "dropped"].map(|name| column(&tables, name));
        let mut hits = 0;
        for i in 0..p.len() {
            let (Ok(p), Ok(coin)) = (p[i].parse::<f64>(), coin[i].parse::<f64>()) else { continue };
            let hit = marked[i] == "early" || dropped[i] == "early";
            if dropped[i] != "overflow" {
                assert_eq!(hit, coin < p, "{aqm}, packet {i}: p {p}, coin {coin}");
                hits += usize::from(hit);
            }
        }
        assert!(hits > 20, "{aqm}: {hits}");
    }
}

#[test]
fn a_selection_keeps_a_journal_small() {
    let all = run("red", Some(&Selection::default())).1;
    let some = Selection {
        flows: vec![0..=1, 10..=10],
        time: 1_000_000_000..=2_000_000_000,
        every: 3,
        columns: ["left_ns", "n", "turn_avg"].map(str::to_owned).to_vec(),
    };
    let few = run("red", Some(&some)).1;
    let [n, flow, at] = ["n", "flow", "arrived_ns"].map(|name| column(&all, name));
    let expected: Vec<String> = (0..n.len())
        .filter(|&i| i % 3 == 0 && ["0", "1", "10"].contains(&&flow[i][..]))
        .filter(|&i| (1_000_000_000..=2_000_000_000).contains(&at[i].parse::<u64>().unwrap()))
        .map(|i| n[i].clone())
        .collect();
    assert!(expected.len() > 50);
    assert_eq!(column(&few, "n"), expected);
    assert!(column(&few, "turn_avg").iter().any(|value| !value.is_empty()));
    for table in &few {
        let names: Vec<_> = table.columns().map(|(name, _)| name).collect();
        assert_eq!(names, ["n", "left_ns", "turn_avg"]);
    }
}
