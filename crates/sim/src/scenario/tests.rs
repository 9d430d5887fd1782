use super::*;

const GOOD: &str = r#"
duration = "10s"
warmup = "2s"
[network]
preset = "feng"
[[queue]]
aqm = "red"
buffer = "200kB"
params = { w_q = 0.02 }
[[traffic]]
flows = 4
transport = "sack"
"#;

fn fails(text: &str) -> ScenarioError {
    Scenario::from_toml(text, "x.toml").unwrap_err()
}

/// The good scenario with one line replaced.
fn with(old: &str, new: &str) -> ScenarioError {
    assert!(GOOD.contains(old), "{old}");
    fails(&GOOD.replace(old, new))
}

#[test]
fn the_echo_is_canonical_and_reads_back_to_itself() {
    let scenario = Scenario::from_toml(GOOD, "x").unwrap();
    let echo = scenario.to_toml();
    for line in ["link = \"A->B\"", "w_q = 0.02", "min_th = \"20%\"", "packet = \"1kB\""] {
        assert!(echo.contains(line), "{line} in\n{echo}");
    }
    let again = Scenario::from_toml(&echo, "echo").unwrap();
    assert_eq!((&again, again.to_toml()), (&scenario, echo));
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_key() {
    let e = with("flows = 4", "flow = 4");
    assert_eq!((e.line, e.key.as_str()), (Some(11), "traffic[0].flow"), "{e}");
    assert_eq!(e.hint, "did you mean `flows`?");
    let e = with("w_q", "wq");
    assert_eq!((e.line, e.key.as_str()), (Some(9), "queue[0].params.wq"), "{e}");
    assert!(e.hint.contains("w_q") && e.allowed.contains("max_p"), "{e}");
}

#[test]
fn a_wrong_value_is_shown_with_what_is_allowed() {
    for (old, new, key, part) in [
        ("\"200kB\"", "\"200kb\"", "queue[0].buffer", "KiB"),
        ("\"200kB\"", "\"0B\"", "queue[0].buffer", "one packet"),
        ("\"200kB\"", "200", "queue[0].buffer", "unit"),
        ("\"10s\"", "\"10\"", "duration", "20ms"),
        ("\"10s\"", "\"-1s\"", "duration", "a time"),
        ("\"2s\"", "\"10s\"", "warmup", "less than"),
        ("0.02", "2.0", "queue[0].params.w_q", "0 … 1"),
        ("0.02", "\"often\"", "queue[0].params.w_q", "a number"),
        ("\"red\"", "\"rde\"", "queue[0].aqm", "did you mean `red`?"),
        ("\"sack\"", "\"sac\"", "traffic[0].transport", "sack"),
        ("\"feng\"", "\"fang\"", "network.preset", "feng"),
        ("flows = 4", "flows = 0", "traffic[0].flows", "at least 1"),
        ("flows = 4", "flows = -4", "traffic[0].flows", "u32"),
        ("flows = 4", "flows = 4\nto = [\"n0\"]", "traffic[0].to", "no route"),
        ("flows = 4", "flows = 4\nto = [\"n77\"]", "traffic[0].to", "n7"),
        ("flows = 4", "flows = 4\napp = \"pareto\"", "traffic[0].on", "mean"),
        ("flows = 4", "flows = 4\napp = \"periodic\"", "traffic[0].app", "cbr only"),
        ("flows = 4", "flows = 4\nrekey = \"0s\"", "traffic[0].rekey", "more than"),
        ("flows = 4", "flows = 4\nstart = \"2s..1s\"", "traffic[0].start", "ends before"),
        ("flows = 4", "flows = 4\nmax_rto = \"0s\"\nmin_rto = \"0s\"", "traffic[0].max_rto", "1ms"),
        ("flows = 4", "flows = 4\ninitial_rto = \"0s\"", "traffic[0].initial_rto", "1ms"),
        ("flows = 4", "flows = 4\ndelayed_ack = \"5000000h\"", "traffic[0].delayed_ack", "3600s"),
        ("\"feng\"", "\"feng\"\ndelay = \"5000000h\"", "network.delay", "3600s"),
        ("\"feng\"", "\"feng\"\naccess_rate = \"1bit\"", "network.access_rate", "1kbit"),
        ("aqm = ", "link = \"B->C\"\naqm = ", "queue[0].link", "did you mean `B->A`?"),
    ] {
        let e = with(old, new);
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
        assert!(e.to_string().starts_with("x.toml:"), "{e}");
    }
}

#[test]
fn a_network_without_a_way_back_is_refused() {
    let e = fails(
        r#"
        duration = "1s"
        [[link]]
        from = "a"
        to = "b"
        rate = "1mbit"
        delay = "1ms"
        duplex = false
        [[traffic]]
        transport = "sack"
        from = ["a"]
        to = ["b"]
        "#,
    );
    assert!(e.allowed.contains("no route from b to a"), "{e}");
}

#[test]
fn two_queues_on_one_link_are_refused() {
    let e = fails(&format!("{GOOD}\n[[queue]]\naqm = \"blue\"\nbuffer = \"10p\"\n"));
    assert_eq!(e.key, "queue[1].link");
    assert!(e.hint.contains("A->B"), "{e}");
}

#[test]
fn a_scenario_without_a_queue_has_nothing_to_say() {
    let e = fails("duration = \"1s\"\n[network]\npreset = \"feng\"\n");
    assert!(e.key == "queue" && e.hint.contains("droptail"), "{e}");
}

/// Routes are looked for from each node of one side, not for each pair.
#[test]
fn thousands_of_nodes_are_soon_checked() {
    let text = GOOD.replace("\"feng\"", "\"feng\"\nleft = 500\nright = 500");
    assert!(Scenario::from_toml(&text, "x").is_ok());
    let text = text.replace("500", "1000").replace("200kB", "1bdp");
    let topology = Scenario::from_toml(&text, "x").unwrap().topology().unwrap();
    assert_eq!(topology.base_rtt(), Some(Duration::from_millis(100)));
}

#[test]
fn base_rtt_is_the_mean_over_pairs() {
    let delays = r#""feng"
        left = 2
        right = 3
        access_delay = ["1ms", "2ms", "6ms"]"#;
    let text = GOOD.replace("\"feng\"", delays);
    let topology = Scenario::from_toml(&text, "x").unwrap().topology().unwrap();
    // 2·((1 + 2)/2 + 10 + (1 + 2 + 6)/3) = 29 ms.
    assert_eq!(topology.base_rtt(), Some(Duration::from_millis(29)));
}

#[test]
fn what_is_not_toml_is_an_error_with_a_line() {
    for text in ["duration = ", "[[queue]\n", "a = 1\na = 2\n", "\u{0}", "duration = \"1s\""] {
        let e = fails(text);
        assert!(!e.to_string().is_empty());
    }
    assert_eq!(fails("\n\nduration = ").line, Some(3));
}

#[test]
fn bdp_is_rate_times_base_round_trip() {
    let text = GOOD.replace("200kB", "1bdp");
    let scenario = Scenario::from_toml(&text, "x").unwrap();
    let topology = scenario.topology().unwrap();
    // 45 Mb/s · 100 ms = 562 500 bytes.
    let limit = scenario.queue[0].limit(&topology, 0).unwrap();
    assert_eq!(limit.max_bytes(), 562_500);
}

#[test]
fn the_schema_knows_every_algorithm_and_parameter() {
    let schema = Scenario::json_schema();
    for entry in CATALOG {
        assert!(schema.contains(&format!("\"{}\"", entry.name)));
        for parameter in (entry.parameters)() {
            assert!(schema.contains(parameter.name));
        }
    }
}
