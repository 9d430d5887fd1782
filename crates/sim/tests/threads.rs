//! One run on several threads: every table and every decision is that of one thread.

use std::collections::BTreeSet;

use aqm::{Duration, Rng};
use sim::results::journal::Selection;
use sim::results::table::Table;
use sim::{Outcome, Run, Scenario};

use crate::fabric::fat_tree;

fn start(text: &str, threads: usize) -> Run {
    Scenario::from_toml(text, "threads")
        .and_then(|scenario| Run::new(scenario, text, "threads"))
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .with_threads(Some(threads))
}

fn finish(mut run: Run) -> (Outcome, Vec<(String, Table)>) {
    run.keep_journal(&Selection::default());
    while run.advance(Duration::from_millis(777)) {}
    let journals = run.drain_journal();
    (run.finish(), journals)
}

/// Runs `text` on one thread and on some. Returns how many parts that made at most.
fn compare(text: &str, threads: &[usize]) -> usize {
    let (whole, journals) = finish(start(text, 1));
    let mut most = 1;
    for &threads in threads {
        let run = start(text, threads);
        most = most.max(run.simulation().count());
        let (divided, its_journals) = finish(run);
        assert_eq!(divided.decision_hash, whole.decision_hash, "{threads} threads: {text}");
        for ((spec, ours), (_, theirs)) in divided.tables().zip(whole.tables()) {
            let [ours, theirs] = [ours, theirs].map(|table| format!("{table:?}"));
            assert_eq!(ours, theirs, "{} on {threads}: {text}", spec.name);
        }
        assert_eq!(format!("{its_journals:?}"), format!("{journals:?}"), "{threads}: {text}");
    }
    most
}

fn chain(measure: &str, traffic: &str) -> String {
    format!(
        r#"
        seed = 11
        duration = "2s"
        warmup = "500ms"
        [network]
        preset = "chain"
        bottlenecks = 8
        rate = "10mbit"
        delay = "2ms"
        cross = 2
        [[queue]]
        link = "*"
        aqm = "codel"
        buffer = "100p"
        [measure]
        {measure}
        {traffic}
        "#
    )
}

const MIXED: &str = r#"
    [[traffic]]
    transport = "cubic"
    flows = 3
    [[traffic]]
    name = "late"
    transport = "sack"
    ecn = true
    delayed_ack = "40ms"
    flows = 2
    from = ["s3.0"]
    to = ["d5.1"]
    start = "0s..1s"
    [[traffic]]
    name = "call"
    transport = "cbr"
    rate = "1mbit"
    from = ["d4.0"]
    to = ["s2.1"]
    [[traffic]]
    name = "on-off"
    transport = "newreno"
    app = "exponential"
    on = "100ms"
    off = "100ms"
    flows = 4
    from = ["s7.0"]
    to = ["d8.0"]
    "#;

#[test]
fn a_chain_of_bottlenecks_is_the_same_on_any_number_of_threads() {
    assert_eq!(compare(&chain("", MIXED), &[2, 3, 8]), 8);
    // Links without a queue are folded.
    let bottlenecks = |measure| chain(measure, MIXED).replace("link = \"*\"\n", "");
    assert!(compare(&bottlenecks(""), &[2, 3, 8]) > 3);
    let all = "delays = true\ngroups = true\nflows = true\ninterval = \"100ms\"";
    assert_eq!(compare(&chain(all, MIXED), &[2, 8]), 8);
    assert!(compare(&bottlenecks(all), &[2]) > 1);
}

#[test]
fn all_that_can_be_divided_is_the_same_on_any_number_of_threads() {
    let group = |(i, transport): (usize, &str)| {
        let (from, to) = (i % 7 + 1, i % 3 + 6);
        format!(
            "[[traffic]]\nname = '{i}'\nflows = 2\nfrom = ['s{from}.0']\nto = ['d{to}.0']\ntransport = {transport}\n"
        )
    };
    let all = [
        "'ledbat'",
        "'tfrc'\necn = true",
        "'scream'\nstop = '1500ms'",
        "'window'\nwindow = 20\nstop = '1s'",
        "'cbr'\necho = true\nrate = '300kbit'",
        "'tfrc'\nstop = '1s'",
        "'scream'\necn = true",
    ];
    let traffic: String = all.into_iter().enumerate().map(group).collect();
    assert_eq!(compare(&chain("", &traffic), &[2, 8]), 8);
    assert_eq!(compare(&chain("delays = true", &traffic), &[3]), 3);
}

/// Without a number of threads a run is divided where there is much to do between two exchanges, and in all.
#[test]
fn a_run_is_divided_by_itself_where_that_pays() {
    let parts = |text: &str| {
        let run = Scenario::from_toml(text, "threads").and_then(|s| Run::new(s, text, "threads"));
        run.unwrap_or_else(|e| panic!("{e}")).with_threads(None).simulation().count()
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let flows = "[[traffic]]\ntransport = \"cubic\"\nflows = 3";
    let large = chain("", flows).replace("10mbit", "10gbit").replace("\"2s\"", "\"20s\"");
    assert_eq!(parts(&large), processors.min(8));
    for (from, to) in [
        ("10gbit", "10mbit"),
        ("delay = \"2ms\"", "delay = \"2us\""),
        ("[measure]", "[measure]\ninterval = \"2us\""),
        ("duration = \"20s\"\n        warmup = \"500ms\"", "duration = \"2ms\""),
    ] {
        let small = large.replace(from, to);
        assert_ne!(small, large);
        assert_eq!(parts(&small), 1, "{to}");
    }
}

#[test]
fn a_fabric_is_the_same_on_any_number_of_threads() {
    let traffic = r#"
        transport = "dctcp"
        ecn = true
        min_rto = "5ms"
        pattern = "permutation"
        [[traffic]]
        name = "short"
        transport = "cubic"
        preset = "linux"
        app = "finite"
        sizes = "web-search"
        load = "200mbit"
        flows = 100
        "#;
    for (ecmp, more) in [("flow", ""), ("packet", ""), ("flow", "[[switch]]\nbuffer = \"200kB\"")] {
        let text = fat_tree(ecmp, &format!("{traffic}{more}"));
        let text = text.replace("120ms", "5ms").replace("20ms", "1ms");
        assert_eq!(compare(&text, &[2, 3]), 3, "{ecmp} {more}");
    }
}

/// Any graph, with impairing, varying and short links among others.
#[test]
fn any_network_is_the_same_on_any_number_of_threads() {
    let mut rng = Rng::new(2026, 0);
    let mut divided = 0;
    for seed in 0..40 {
        let nodes = 3 + rng.below(8);
        let mut text = format!("seed = {seed}\nduration = \"1s\"\nwarmup = \"300ms\"\n");
        let mut linked = BTreeSet::new();
        let mut link = |a: usize, b: usize, rng: &mut Rng| {
            if !linked.insert((a.min(b), a.max(b))) {
                return;
            }
            let delay = ["1ms", "2ms", "5ms", "300us", "0s", "20ms"][rng.below(6)];
            let rate = ["2mbit", "5mbit", "20mbit", "1gbit"][rng.below(4)];
            let more = match rng.below(10) {
                0 => "loss = \"1%\"\n",
                1 => "jitter = \"2ms\"\nreorder = true\n",
                _ => "",
            };
            text += &format!(
                "[[link]]\nfrom = \"v{a}\"\nto = \"v{b}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n{more}"
            );
        };
        for node in 1..nodes {
            link(rng.below(node), node, &mut rng);
        }
        link(0, nodes - 1, &mut rng);
        let aqm = ["droptail", "red", "pie", "fq-codel", "cake", "sfb"][rng.below(6)];
        let mut queue = |link: &str| {
            text += &format!("[[queue]]\nlink = \"{link}\"\naqm = \"{aqm}\"\nbuffer = \"30p\"\n");
        };
        // Links without a queue are folded.
        match seed % 3 {
            0 => queue("*"),
            _ => linked
                .iter()
                .take(1 + rng.below(3))
                .for_each(|(a, b)| queue(&format!("v{a}->v{b}"))),
        }
        for group in 0..1 + rng.below(4) {
            let (a, b) = (rng.below(nodes), rng.below(nodes));
            if a == b {
                continue;
            }
            let transport = [
                "'cubic'",
                "'sack'\necn = true\ndelayed_ack = '40ms'",
                "'bbr'",
                "'prague'\necn = true\nrack = true\naccecn = true",
                "'cbr'\nrate = '500kbit'",
                "'reno'\nhandshake = true\napp = 'finite'\nsize = '50p'",
                "'ledbat'",
                "'tfrc'",
                "'scream'",
                "'window'\nwindow = 20",
                "'cbr'\necho = true\nrate = '300kbit'",
            ][rng.below(11)];
            text += &format!(
                "[[traffic]]\nname = \"g{group}\"\nflows = 2\nfrom = [\"v{a}\"]\nto = [\"v{b}\"]\ntransport = {transport}\n"
            );
        }
        if text.contains("[[traffic]]") {
            divided += usize::from(compare(&text, &[2, 4]) > 1);
        }
    }
    assert!(divided > 5, "{divided}");
}

/// A folded link leads to one that merges packets of senders: what comes to it from another part must not be
/// merged.
#[test]
fn a_chain_with_traffic_both_ways_is_the_same_on_any_number_of_threads() {
    let mut rng = Rng::new(7, 0);
    for seed in 0..24 {
        let mut queues = String::new();
        for [from, to] in [["A", "B"], ["B", "C"], ["C", "D"], ["B", "A"], ["C", "B"], ["D", "C"]] {
            if rng.chance(0.4) {
                queues += &format!(
                    "[[queue]]\nlink = '{from}->{to}'\naqm = 'fq-codel'\nbuffer = '50p'\n"
                );
            }
        }
        let group = |(n, rng): (usize, &mut Rng)| {
            let hosts =
                ["n0", "s1.0", "s1.1", "s2.0", "s3.0", "d1.0", "d2.0", "d2.1", "d3.0", "d3.1"];
            let (a, b) = (rng.below(hosts.len()), rng.below(hosts.len() - 1));
            let (from, to) = (hosts[a], hosts[if b < a { b } else { b + 1 }]);
            let transport =
                ["'cubic'", "'cbr'\nrate = '3mbit'\necho = true", "'bbr'"][rng.below(3)];
            format!(
                "[[traffic]]\nname = '{n}'\nfrom = ['{from}']\nto = ['{to}']\ntransport = {transport}\n"
            )
        };
        let traffic: String = (0..4).map(|n| group((n, &mut rng))).collect();
        let text = format!(
            "seed = {seed}\nduration = '500ms'\n[network]\npreset = 'chain'\nbottlenecks = 3\nrate = '10mbit'\ncross = 2\n{queues}{traffic}"
        );
        if !queues.is_empty() {
            compare(&text, &[2, 3]);
        }
    }
}

/// A queue whose link leads to one of each receiver, and to nothing else, in another part.
#[test]
fn a_bottleneck_is_the_same_apart_from_its_receivers() {
    let flows = "[[traffic]]\ntransport = \"sack\"\nflows = 20\necn = true";
    let text = chain("", flows).replace("cross = 2", "left = 5\nright = 5").replace("= 8", "= 1");
    assert_eq!(compare(&text, &[2]), 2);
}

/// Packets of one class wait for its rate as those of another come, which may leave at once: these are not late,
/// whether anybody looks meanwhile or not.
#[test]
fn a_tree_of_classes_is_woken_for_what_may_leave_at_once() {
    let class = r#"
        class = [
            { name = "root", rate = "9mbit" },
            { name = "slow", parent = "root", rate = "100kbit", dscp = "8" },
            { name = "rest", parent = "root", rate = "8mbit" },
        ]
        "#;
    let traffic = r#"
        [[traffic]]
        transport = "cbr"
        dscp = "8"
        rate = "150kbit"
        [[traffic]]
        name = "rest"
        transport = "cubic"
        flows = 3
        "#;
    let text =
        |measure: &str| chain(measure, traffic).replace("[measure]", &format!("{class}[measure]"));
    let hash = |text: &str| start(text, 1).finish().decision_hash;
    let alone = hash(&text(""));
    for interval in ["300us", "7ms"] {
        assert_eq!(hash(&text(&format!("interval = \"{interval}\""))), alone, "{interval}");
    }
    assert!(compare(&text(""), &[2, 3]) > 1);
}

/// What keeps all parts together is run on one thread.
#[test]
fn what_cannot_be_divided_is_left_whole() {
    let web = "[[traffic]]\ntransport = \"sack\"\napp = \"web\"\nsize = \"10p\"\noff = \"1s\"\nfrom = [\"s1.0\"]\nto = [\"d8.0\"]";
    assert_eq!(compare(&chain("", web), &[2]), 1);
    assert_eq!(compare(&chain("control = true", MIXED), &[2]), 1);
    assert_eq!(compare(&chain("calls = true", MIXED), &[2]), 1);
    let flows = "[[traffic]]\ntransport = \"sack\"\nflows = 20";
    let dumbbell = chain("", flows).replace("cross = 2", "").replace("= 8", "= 1");
    assert_eq!(compare(&dumbbell.replace("link = \"*\"\n", ""), &[2]), 1);
}
