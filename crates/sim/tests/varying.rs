//! Links that vary and wires that impair packets, against closed formulas and against themselves.

use aqm::Duration;
use proptest::prelude::*;
use sim::{Outcome, Run, Scenario};

fn run(text: &str, folding: bool) -> Outcome {
    let scenario = Scenario::from_toml(text, "varying").unwrap_or_else(|e| panic!("{e}"));
    let mut run = Run::new(scenario, text, "varying").unwrap().with_folding(folding);
    while run.advance(Duration::from_micros(12_347)) {}
    run.finish()
}

/// A source that always has something to send, over a link with these keys; it stops in time for all
/// to come out.
fn datagrams(keys: &str, rate: &str, stop: &str) -> String {
    format!(
        r#"
        duration = "21s"
        [[link]]
        from = "a"
        to = "b"
        rate = "8mbit"
        delay = "10ms"
        {keys}
        [[queue]]
        link = "a->b"
        aqm = "droptail"
        buffer = "50p"
        [[traffic]]
        transport = "cbr"
        rate = "{rate}"
        packet = "1000B"
        from = ["a"]
        to = ["b"]
        stop = "{stop}"
        "#
    )
}

fn link(outcome: &Outcome, column: &str) -> f64 {
    outcome.links.number(column, 0).unwrap_or_else(|| panic!("no {column}"))
}

/// 4 Mb/s for 300 ms, nothing for 200, 12 Mb/s for 500: a mean of 7.2 Mb/s, of which a queue that is
/// never empty gets all, but for the packet at the end.
#[test]
fn throughput_is_the_mean_of_the_trace() {
    let steps = r#"[["0s", "4mbit"], ["300ms", "0"], ["500ms", "12mbit"], ["1s", "0"]]"#;
    let outcome =
        run(&datagrams(&format!("rate_trace = {{ steps = {steps} }}"), "20mbit", "21s"), true);
    assert_eq!(link(&outcome, "capacity_bps"), 7.2e6);
    let departed = outcome.queues.number("departures", 0).unwrap();
    let expected = 21.0 * 7.2e6 / 8000.0;
    assert!((departed - expected).abs() <= 1.0, "{departed} of {expected}");
}

/// 1000 bytes and 32 of overhead are 22 cells of 53: of 8 Mb/s there are left 8 · 1000 / 1166.
#[test]
fn cells_cost_their_share() {
    let outcome = run(&datagrams("framing = \"bridged-llcsnap\"", "20mbit", "21s"), true);
    let throughput = outcome.queues.number("throughput_bps", 0).unwrap();
    assert!((throughput / (8e6 * 1000.0 / 1166.0) - 1.0).abs() < 1e-4, "{throughput}");
}

/// CAKE is told how the link frames packets, and shares what they take there: with 40 bytes more in ATM
/// cells 60 bytes are 159 and 1500 are 1749, so that eleven small packets go for a large one.
#[test]
fn cake_shares_what_frames_take() {
    let small = "[[traffic]]\ntransport = \"cbr\"\nrate = \"20mbit\"\npacket = \"60B\"\n\
                 from = [\"a\"]\nto = [\"b\"]\n";
    let text = datagrams("framing = \"atm overhead 40\"", "20mbit", "21s")
        .replace("\"droptail\"", "\"cake\"\nparams = { target = \"1h\" }")
        .replace("\"50p\"", "\"2000p\"")
        .replace("\"1000B\"", "\"1500B\"");
    let outcome = run(&(text + small), true);
    let [large, small] = [0, 1].map(|flow| outcome.flows.number("goodput_bps", flow).unwrap());
    let packets = (small / 60.0) / (large / 1500.0);
    assert!((packets / 11.0 - 1.0).abs() < 0.01, "{packets} small packets for a large one");
}

/// What enters a wire is lost or comes out, once or twice; what comes out undamaged is received.
#[test]
fn packets_on_an_impairing_wire_are_conserved() {
    let keys = r#"
        loss = "gemodel 1% 20%"
        duplicate = "3%"
        corrupt = "2%"
        jitter = "30ms"
        reorder = true
    "#;
    for folding in [true, false] {
        let outcome = run(&datagrams(keys, "7mbit", "20s"), folding);
        let [entered, out, lost, twice, damaged, overtaking] =
            ["entered", "came_out", "lost", "duplicated", "corrupted", "reordered"]
                .map(|column| link(&outcome, column));
        assert_eq!(entered, outcome.queues.number("departures", 0).unwrap());
        assert_eq!(entered + twice, out + lost);
        let received = outcome.flows.number("goodput_bps", 0).unwrap() * 21.0 / 8000.0;
        // Copies count once, unless the first one was damaged.
        assert!((received - (out - damaged - twice)).abs() < 3.0 + 0.1 * twice, "{received}");
        assert!((entered - 17_500.0).abs() < 2.0, "{entered}");
        // Shares of 1/21, 3 % and 2 % of about 17 000; 5 σ, of the loss with bursts of 5.
        assert!((lost / entered - 1.0 / 21.0).abs() < 5.0 * 0.0048, "{lost}");
        assert!((twice / (entered - lost) - 0.03).abs() < 5.0 * 0.0013, "{twice}");
        assert!((damaged / out - 0.02).abs() < 5.0 * 0.0012, "{damaged}");
        assert!(overtaking > 0.5 * out, "{overtaking}");
    }
}

/// A file is found beside the scenario, and has to stay what it was.
#[test]
fn a_file_is_read_from_the_folder_of_the_scenario() {
    let folder = std::env::temp_dir().join(format!("bluewater-varying-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("rate.csv"), "time_s,rate_mbps\n0,4\n1,12\n2,0\n").unwrap();
    let origin = folder.join("x.toml").display().to_string();
    let text = datagrams("rate_trace = \"rate.csv\"", "20mbit", "21s");
    let scenario = sim::capture::scenario(&text, &origin).unwrap();
    let canonical = scenario.to_toml();
    assert_eq!(sim::capture::scenario(&canonical, &origin).unwrap(), scenario);
    std::fs::write(folder.join("rate.csv"), "time_s,rate_mbps\n0,4\n1,13\n2,0\n").unwrap();
    let error = sim::capture::scenario(&canonical, &origin).unwrap_err();
    assert_eq!(error.key, "link[0].rate_trace.digest", "{error}");
    let error = sim::capture::scenario(&text.replace("rate.csv", "none.csv"), &origin).unwrap_err();
    assert!(
        error.key == "link[0].rate_trace.file" && error.problem.contains("none.csv"),
        "{error}"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

/// TCP over a chain of links of which any may vary and impair.
fn chain(seed: u64, keys: [&str; 3], transport: &str) -> String {
    let [first, second, third] = keys;
    format!(
        r#"
        seed = {seed}
        duration = "4s"
        [[link]]
        from = "a"
        to = "b"
        rate = "50mbit"
        delay = "2ms"
        {first}
        [[link]]
        from = "b"
        to = "c"
        rate = "6mbit"
        delay = "5ms"
        {second}
        [[link]]
        from = "c"
        to = "d"
        rate = "40mbit"
        delay = "1ms"
        {third}
        [[queue]]
        link = "b->c"
        aqm = "codel"
        buffer = "60p"
        [[traffic]]
        transport = "{transport}"
        flows = 4
        start = "0s..500ms"
        from = ["a"]
        to = ["d"]
        "#
    )
}

const KEYS: [&str; 7] = [
    "",
    "rate_trace = { model = \"cellular\" }",
    "rate_trace = { model = \"wifi\" }\njitter = \"3ms\"",
    "delay_trace = { steps = [[\"0s\", \"20ms\"], [\"1s\", \"3ms\"], [\"2s\", \"9ms\"]] }\nreorder = true",
    "loss = \"1%\"\nduplicate = \"2%\"",
    "corrupt = \"2%\"\nframing = \"pppoe-ptm\"\njitter = \"20ms\"\nreorder = true",
    "loss_trace = { steps = [[\"0s\", \"0\"], [\"300ms\", \"20%\"], [\"400ms\", \"0\"]] }",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Folding, and where a run is cut, change nothing; every wire accounts for its packets.
    #[test]
    fn folding_changes_nothing_where_links_vary(
        seed: u64,
        which in [0usize..7, 0..7, 0..7],
        transport in prop::sample::select(vec!["sack", "reno", "cubic", "tfrc"]),
    ) {
        let text = chain(seed, which.map(|i| KEYS[i]), transport);
        let (folded, every_hop) = (run(&text, true), run(&text, false));
        prop_assert_eq!(&folded.decision_hash, &every_hop.decision_hash);
        prop_assert_eq!(&folded.links, &every_hop.links);
        prop_assert_eq!(&folded.flows, &every_hop.flows);
        let rows = folded.links.real("entered").len();
        for row in 0..rows {
            let number = |column| folded.links.number(column, row);
            let Some(entered) = number("entered") else { continue };
            let under_way = entered + number("duplicated").unwrap()
                - number("lost").unwrap() - number("came_out").unwrap();
            prop_assert!((0.0..500.0).contains(&under_way), "{} under way", under_way);
        }
        prop_assert!(folded.queues.number("departures", 0).unwrap() > 10.0);
    }
}
