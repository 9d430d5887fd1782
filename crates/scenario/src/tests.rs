use aqm::CATALOG;

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

/// The error of a text. What is wrong stands where that belongs, not behind `allowed:`.
fn fails(text: &str) -> ScenarioError {
    let e = Scenario::from_toml(text, "x.toml").unwrap_err();
    let wrong = ["need", "there is no", "cannot", "missing", "No such"];
    assert!(!wrong.iter().any(|word| e.allowed.contains(word)) && !e.problem.is_empty(), "{e}");
    e
}

/// A preset's own keys are not the user's fault.
#[test]
fn a_preset_gives_way_to_what_is_said_beside_it() {
    let tcp = |more: &str| {
        let text = format!(
            "duration = \"1s\"\nnetwork = {{ preset = \"dumbbell\" }}\n\
             queue = [{{ aqm = \"droptail\", buffer = \"9p\" }}]\n[[traffic]]\n\
             transport = \"cubic\"\npreset = \"linux\"\necn = true\n{more}\n"
        );
        Scenario::from_toml(&text, "x").map(|scenario| scenario.to_toml())
    };
    for (more, gone) in [
        ("delayed_ack = \"0s\"", "quick_acks = false"),
        ("handshake = false", "restart_after_lost_syn = true"),
        ("handshake = false", "ecn_fallback = false"),
        ("ecn_on_retransmit = true", "ecn_fallback = false"),
        ("rack = false", "timestamps = false"),
    ] {
        let echo = tcp(more).unwrap_or_else(|e| panic!("{more}: {e}"));
        assert!(echo.contains(gone), "{more}: {echo}");
    }
    let said = tcp("handshake = false\necn_fallback = true").unwrap_err();
    assert!(said.to_string().contains("ecn_fallback"), "{said}");
}

/// The network of a preset as well.
#[test]
fn the_echo_leaves_nothing_to_be_known() {
    let echo = |network: &str| {
        let text = format!(
            "duration = \"1s\"\nnetwork = {{ {network} }}\nqueue = [{{ aqm = \"droptail\", buffer = \"9p\" }}]\n\
             traffic = [{{ transport = \"reno\" }}]"
        );
        Scenario::from_toml(&text, "x").unwrap().to_toml()
    };
    let whole = "preset = \"dumbbell\"\nrate = \"3mbit\"\ndelay = \"20ms\"\nbottlenecks = 1\n\
                 access_rate = \"1gbit\"\naccess_delay = \"0s\"\nleft = 1\nright = 1\ncross = 0\n";
    let said = echo("preset = \"dumbbell\", rate = \"3mbit\"");
    assert!(said.contains(whole), "{said}");
    let said = echo("preset = \"chain\"");
    assert!(said.contains("bottlenecks = 3") && said.contains("cross_delay = \"2ms\""), "{said}");
}

#[test]
fn what_is_missing_or_cannot_be_read_is_a_problem_and_nothing_is_allowed() {
    for (old, new, key, problem) in [
        ("\"200kB\"", "\"200kB\"\nprefilter_params = { k = 6 }", "queue[0].prefilter", "needed by"),
        ("warmup = \"2s\"", "measure = { groups = true }", "measure.interval", "needed by groups"),
        ("warmup = \"2s\"", "measure = { flows = true }", "measure.interval", "needed by flows"),
        ("preset = \"feng\"", "rate = \"1mbit\"", "network.preset", "there is no network"),
        ("\"sack\"", "\"trace\"\nfile = \"none.pcap\"", "traffic[0].file", ""),
        ("\"sack\"", "\"cbr\"", "traffic[0].rate", "needed by cbr"),
    ] {
        let e = with(old, new);
        assert_eq!(e.key, key, "{e}");
        assert!(e.problem.contains(problem) && e.problem != "not allowed", "{e}");
    }
    let links = GOOD.replace(
        "[network]\npreset = \"feng\"",
        "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1mbit\"\ndelay = \"1ms\"",
    );
    for (text, key) in [
        (links.clone(), "queue[0].link"),
        (links.replace("aqm = ", "link = \"a->b\"\naqm = "), "traffic[0].from"),
    ] {
        let e = fails(&text);
        assert_eq!((e.key.as_str(), e.problem.as_str()), (key, "needed"), "{e}");
        assert!(!e.allowed.is_empty(), "{e}");
    }
}

/// The good scenario with one line replaced.
fn with(old: &str, new: &str) -> ScenarioError {
    assert!(GOOD.contains(old), "{old}");
    fails(&GOOD.replace(old, new))
}

/// What the queue could be told has to be there; then it is written and read again.
#[test]
fn a_queue_is_told_only_of_a_rate_that_varies() {
    let scenario = |link: &str, queue: &str| {
        let text = format!(
            "duration = \"1s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1mbit\"\n\
             delay = \"1ms\"\n{link}\n[[queue]]\nlink = \"a->b\"\naqm = \"csfq\"\n\
             buffer = \"10p\"\n{queue}\n[[traffic]]\nflows = 1\ntransport = \"cbr\"\n\
             rate = \"1mbit\"\nfrom = [\"a\"]\nto = [\"b\"]\n"
        );
        Scenario::from_toml(&text, "s.toml")
    };
    let trace = "rate_trace = { model = \"wifi\" }";
    let error = scenario("", "told_rate = true").unwrap_err().to_string();
    assert!(error.contains("queue[0].told_rate") && error.contains("rate_trace"), "{error}");
    for told in [false, true] {
        let read = scenario(trace, &format!("told_rate = {told}")).unwrap();
        assert_eq!(read.to_toml().contains("told_rate"), told);
        let again = Scenario::from_toml(&read.to_toml(), "t.toml").unwrap();
        assert_eq!(again.queue[0].told_rate, told);
    }
}

#[test]
fn the_echo_is_canonical_and_reads_back_to_itself() {
    let scenario = Scenario::from_toml(GOOD, "x").unwrap();
    let echo = scenario.to_toml();
    for line in ["link = \"A->B\"", "w_q = 0.02", "min_th = \"15%\"", "packet = \"1kB\""] {
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
        ("flows = 4", "flows = 4\napp = \"pareto\"", "traffic[0].on", "needed by pareto"),
        ("flows = 4", "flows = 4\napp = \"periodic\"", "traffic[0].app", "cbr only"),
        ("\"sack\"", "\"tfrc\"\napp = \"finite\"", "traffic[0].app", "infinite"),
        ("\"sack\"", "\"scream\"\nmin_rate = \"2mbit\"", "traffic[0].min_rate", "at most 1500kbit"),
        (
            "\"sack\"",
            "\"scream\"\nstart_rate = \"2mbit\"",
            "traffic[0].start_rate",
            "150kbit … 1500kbit",
        ),
        ("\"sack\"", "\"scream\"\nframes = 0", "traffic[0].frames", "1 … 1000"),
        ("\"sack\"", "\"scream\"\npause = [\"4s\", \"4s\"]", "traffic[0].pause", "after the first"),
        (
            "\"sack\"",
            "\"scream\"\nstop = \"4s\"\npause = [\"4s\", \"5s\"]",
            "traffic[0].pause",
            "from before 4s on",
        ),
        ("\"sack\"", "\"scream\"\nmax_rate = \"2gbit\"", "traffic[0].max_rate", "at most 1gbit"),
        ("\"sack\"", "\"sack\"\napp = \"web\"", "traffic[0].size", "needed by web"),
        (
            "flows = 4",
            "flows = 4\napp = \"web\"\nsize = \"9kB\"",
            "traffic[0].off",
            "needed by web",
        ),
        ("flows = 4", "flows = 4\ndscp = \"AF44\"", "traffic[0].dscp", "a DSCP: EF"),
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

/// GOOD with a filter before its queue.
const FILTERED: &str =
    "w_q = 0.02 }\nprefilter = \"red-pd\"\nprefilter_params = { target_rtt = \"20ms\" }";

/// A key that would have no effect is an error that says whose it is.
#[test]
fn idle_keys_are_refused() {
    let shared = "on = \"1s\"\noff = \"1s\"";
    for (transport, more, key, part) in [
        ("sack", "load = \"1mbit\"", "load", "for finite only"),
        ("sack", "shape = 1.5", "shape", "for pareto, web only"),
        ("sack", "jitter = 0.5", "jitter", "for cbr only"),
        ("sack", "objects = 3", "objects", "for web only"),
        ("sack", "rate = \"1mbit\"", "rate", "for cbr, pareto, exponential only"),
        ("sack", "rates = []", "rates", "for cbr only"),
        ("sack", "discounting = false", "discounting", "for tfrc only"),
        ("sack", "frames = 30", "frames", "for scream only"),
        ("scream", "discounting = false", "discounting", "for tfrc only"),
        ("sack", "file = \"x.pcap\"", "file", "for trace only"),
        ("cbr", "rate = \"1mbit\"\nhandshake = true", "handshake", "for TCP only"),
        ("cbr", "rate = \"1mbit\"\njitter = 0.5", "jitter", "uniform"),
        ("tfrc", "window = \"9p\"", "window", "for TCP, window only"),
        ("sack", &format!("app = \"exponential\"\n{shared}\nshape = 1.5"), "shape", "pareto"),
        ("cbr", &format!("rate = \"1mbit\"\n{shared}"), "on", "for pareto, exponential, periodic"),
        ("sack", "ecn = false\necn_timeout = true", "ecn_timeout", "with ecn = true only"),
        ("sack", "ecn = false\necn_on_retransmit = true", "ecn_on_retransmit", "with ecn = true"),
        (
            "sack",
            "ecn = false\nhandshake = true\necn_on_control = true",
            "ecn_on_control",
            "with ecn = true",
        ),
        ("dctcp", "ecn = false\necn_on_control = true", "ecn", "true: dctcp"),
        ("sack", "ecn = true\necn_on_control = true", "ecn_on_control", "handshake = true"),
        (
            "sack",
            "ecn = true\nhandshake = true\necn_on_control = true\necn_fallback = true",
            "ecn_fallback",
            "more than new data",
        ),
        ("sack", "ecn = false\nmin_window = 2", "min_window", "with ecn = true only"),
        ("sack", "ecn = true\nrack = true\nmin_window = 2", "min_window", "1: with rack"),
        ("dctcp", "ecn = true\npreset = \"linux\"\nmin_window = 2", "min_window", "1: with rack"),
        ("bbr1", "limited_transmit = false", "limited_transmit", "true: bbr"),
        ("reno", "rack = true", "rack", "transport = \"sack\""),
        ("newreno", "preset = \"linux\"", "preset", "sack"),
        ("sack", "timestamps = true", "timestamps", "rack = true"),
        ("cubic", "rack = true\naccecn = true", "accecn", "prague"),
        ("dctcp", "accecn = true\necn = true", "accecn", "rack = true"),
        ("sack", "rack = true\nrepair_past_timeout = true", "repair_past_timeout", "false"),
        ("sack", "rfc8312 = true", "rfc8312", "cubic"),
        ("cubic", "reference_rtt = \"25ms\"", "reference_rtt", "prague"),
        ("sack", "quick_acks = true", "quick_acks", "delayed_ack"),
        ("cbr", "rate = \"1mbit\"\npreset = \"linux\"", "preset", "for TCP only"),
        (
            "sack",
            &format!("app = \"exponential\"\n{shared}\nunsent = \"backlog\""),
            "unsent",
            "a rate beside it",
        ),
    ] {
        let e = with("\"sack\"", &format!("\"{transport}\"\n{more}"));
        assert_eq!(e.key, format!("traffic[0].{key}"), "{e}");
        assert!(e.allowed.contains(part), "{part} in: {e}");
        assert!(e.line.is_some_and(|line| line > 12), "{e}");
    }
    let e = with("\"sack\"", "\"sack\"\nobjects = 3");
    assert!(e.hint.contains("app = \"infinite\""), "{e}");
}

/// What was meant is said, not only what is spelt alike.
#[test]
fn hints_say_what_was_meant() {
    let e = with("\"sack\"", "\"bbr3\"");
    assert!(e.hint.contains("`bbr` is version 3"), "{e}");
    let e = with("\"sack\"", "\"sack\"\nfrom = \"S\"");
    assert!(e.hint.contains("[\"S\"]"), "{e}");
    let e = with("[[queue]]", "[sweep]\n\"queue.0.aqm\" = [\"red\"]\n[[queue]]");
    assert!(e.hint.contains("bluewater sweep"), "{e}");
    let e = with("[[queue]]", "[queue]");
    assert!(e.hint.contains("[[queue]]"), "{e}");
}

#[test]
fn sizes_of_transfers_are_one_thing_or_the_other() {
    for (more, key, part) in [
        ("", "size", "needed by finite"),
        ("size = \"9kB\"\nsizes = \"web-search\"", "size", "leave it out"),
        ("size = \"9p\"\nsizes = \"pareto 1.2\"", "size", "in bytes"),
        ("sizes = \"pareto 1.2\"", "size", "needed by finite"),
        ("size = \"9kB\"\nsizes = \"zipf\"", "sizes", "web-search, data-mining"),
        ("size = \"9kB\"\nload = \"0bit\"", "load", "a rate"),
        ("size = \"100B\"\nload = \"801mbit\"", "load", "each 1us at most"),
        ("size = \"9kB\"\nload = \"1mbit\"\nstart = \"0s..1s\"", "start", "an instant"),
        (
            "size = \"9kB\"\nload = \"1mbit\"\nstep = { flows = 1, every = \"1s\" }",
            "step",
            "without load",
        ),
    ] {
        let e = with("\"sack\"", &format!("\"sack\"\napp = \"finite\"\n{more}"));
        assert_eq!(e.key, format!("traffic[0].{key}"), "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
    for sizes in ["web-search", "data-mining"] {
        let text =
            GOOD.replace("\"sack\"", &format!("\"sack\"\napp = \"finite\"\nsizes = \"{sizes}\""));
        let scenario = Scenario::from_toml(&text, "x").unwrap();
        assert_eq!(Scenario::from_toml(&scenario.to_toml(), "echo").unwrap(), scenario);
    }
}

/// A run that did nothing but begin and end periods would take for ever.
#[test]
fn periods_have_a_mean_of_a_microsecond() {
    for (app, on, off, key, part) in [
        ("app = \"exponential\"", "1ns", "1s", "on", "a mean of 1us or more"),
        ("app = \"exponential\"", "1us", "999ns", "off", "a mean of 1us or more"),
        ("app = \"pareto\"\nshape = 1.5", "0s", "1s", "on", "a mean of 1us or more"),
        ("app = \"pareto\"\nshape = 1.001", "1s", "90us", "off", "far shorter than the mean"),
    ] {
        let more = format!("{app}\non = \"{on}\"\noff = \"{off}\"");
        let e = with("\"sack\"", &format!("\"sack\"\n{more}"));
        assert_eq!(e.key, format!("traffic[0].{key}"), "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
    let shortest = "app = \"exponential\"\non = \"1us\"\noff = \"1us\"";
    let text = GOOD.replace("\"sack\"", &format!("\"sack\"\n{shortest}"));
    assert!(Scenario::from_toml(&text, "x").is_ok());
}

#[test]
fn what_would_have_no_effect_on_a_group_is_refused() {
    let web = "app = \"web\"\nsize = \"9kB\"\noff = \"1s\"\n";
    for (more, key, part) in [
        ("step = { flows = 1, every = \"0s\" }".into(), "step.every", "all begin at once"),
        (format!("{web}objects = 3\nconnections = 4"), "connections", "1 … 3, the objects"),
        (format!("{web}connections = 2"), "connections", "1 … 1, the objects"),
        (format!("{web}objects = 3\nconnections = 0"), "connections", "1 … 3, the objects"),
    ] {
        let e = with("\"sack\"", &format!("\"sack\"\n{more}"));
        assert_eq!(e.key, format!("traffic[0].{key}"), "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
    for (objects, slots) in [(1, 1), (3, 3), (9, 4)] {
        let web = format!("\"sack\"\n{web}objects = {objects}");
        let scenario = Scenario::from_toml(&GOOD.replace("\"sack\"", &web), "x").unwrap();
        assert_eq!(scenario.traffic[0].slots(), slots, "{objects}");
    }
}

#[test]
fn a_group_that_never_sends_is_refused() {
    for (more, key) in [
        ("stop = \"0s\"", "stop"),
        ("start = \"1h\"", "start"),
        ("start = \"2s..3s\"\nstop = \"2s\"", "start"),
    ] {
        let e = with("\"sack\"", &format!("\"sack\"\n{more}"));
        assert_eq!(e.key, format!("traffic[0].{key}"), "{e}");
    }
}

/// Every key has one place, and the schema says which.
#[test]
fn the_schema_says_whose_each_key_of_traffic_is() {
    let schema: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let keys = |name: &str| -> Vec<&String> {
        let of = schema["$defs"][name]["properties"].as_object();
        of.unwrap_or_else(|| panic!("{name}")).keys().collect()
    };
    let common = keys("TrafficSpec");
    for (name, key) in [
        ("tcp", "min_rto"),
        ("cbr", "gaps"),
        ("tfrc", "discounting"),
        ("scream", "frames"),
        ("trace", "digest"),
        ("window", "timeout"),
        ("finite", "size"),
        ("pareto", "shape"),
        ("exponential", "unsent"),
        ("periodic", "off"),
        ("web", "objects"),
    ] {
        assert!(keys(name).iter().any(|own| *own == key), "{key} of {name}");
        assert!(keys(name).iter().all(|own| !common.contains(own)), "{name}");
    }
    // All that go together, TCP or cbr and an application, have no key twice.
    for (transport, app) in [("tcp", "web"), ("tcp", "pareto"), ("cbr", "periodic")] {
        assert!(keys(transport).iter().all(|key| !keys(app).contains(key)), "{transport}, {app}");
    }
}

#[test]
fn a_queue_may_have_a_filter_before_it() {
    for aqm in ["red", "droptail", "blue", "sfb", "red-pd", "fq-codel"] {
        let text = GOOD.replace("w_q = 0.02 }", FILTERED).replace("\"red\"", &format!("\"{aqm}\""));
        let text = if aqm == "red" { text } else { text.replace("w_q = 0.02", "") };
        let scenario = Scenario::from_toml(&text, "x").unwrap();
        let echo = scenario.to_toml();
        assert!(echo.contains("target_rtt = \"20ms\"") && echo.contains("p_min = 0.005"), "{echo}");
        let again = Scenario::from_toml(&echo, "echo").unwrap();
        assert_eq!((&again, again.to_toml()), (&scenario, echo));
    }
    for (old, new, key, part) in [
        ("\"red-pd\"", "\"red-dp\"", "queue[0].prefilter", "did you mean `red-pd`?"),
        ("target_rtt", "target_rt", "queue[0].prefilter_params.target_rt", "target_rtt"),
        ("target_rtt", "w_q", "queue[0].prefilter_params.w_q", "red-pd has"),
        ("\"20ms\"", "\"0s\"", "queue[0].prefilter_params.target_rtt", "1ms"),
        ("prefilter = \"red-pd\"", "", "queue[0].prefilter", "needed"),
    ] {
        let e = with("w_q = 0.02 }", &FILTERED.replace(old, new));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
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
    assert!(e.problem.contains("no route from b to a"), "{e}");
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

/// Two bottlenecks with two pairs of nodes at each.
const CHAIN: &str = r#"
duration = "2s"
[network]
preset = "chain"
bottlenecks = 2
cross = 2
cross_delay = ["1ms", "4ms"]
[[queue]]
aqm = "droptail"
buffer = "1bdp"
[[traffic]]
name = "long"
transport = "cbr"
rate = "1mbit"
[[traffic]]
name = "cross"
flows = 3
transport = "cbr"
rate = "1mbit"
from = ["s*.1"]
to = ["d*.1"]
"#;

#[test]
fn a_chain_has_a_queue_and_cross_traffic_at_each_bottleneck() {
    let scenario = Scenario::from_toml(CHAIN, "x").unwrap();
    let echo = scenario.to_toml();
    assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario);
    let links: Vec<&str> = scenario.queue.iter().flat_map(|q| q.link.as_deref()).collect();
    assert_eq!(links, ["A->B", "B->C"]);
    let from: Vec<_> =
        scenario.traffic.iter().flat_map(|t| t.group.from.iter().flatten()).collect();
    assert_eq!(from, ["s1.1", "s2.1"]);
    let topology = scenario.topology().unwrap();
    let node = |name: &str| topology.ends(Some(&[name.into()]), true, "").unwrap()[0];
    let route = |from, to| -> Vec<String> {
        let links = topology.route(node(from), node(to)).unwrap();
        links.iter().map(|&link| topology.link_name(link as usize)).collect()
    };
    assert_eq!(route("n0", "n1"), ["n0->A", "A->B", "B->C", "C->n1"]);
    assert_eq!(route("s2.1", "d2.1"), ["s2.1->B", "B->C", "C->d2.1"]);
    assert_eq!(
        topology.links[topology.route(node("s2.1"), node("B")).unwrap()[0] as usize].delay,
        Duration::from_millis(4)
    );
    // From end to end: 2·(2 + 2·5 + 2) ms.
    assert_eq!(topology.base_rtt(), Some(Duration::from_millis(28)));
}

#[test]
fn what_a_chain_cannot_be_is_said() {
    for (old, new, key, part) in [
        ("bottlenecks = 2", "bottlenecks = 0", "network.bottlenecks", "1 … 25"),
        ("bottlenecks = 2", "bottlenecks = 26", "network.bottlenecks", "1 … 25"),
        ("cross = 2", "cross = 500", "network.cross", "0 … 400"),
        ("cross = 2", "cross = 3", "network.cross_delay", "one delay, or 3"),
        ("\"4ms\"", "\"5000000h\"", "network.cross_delay", "3600s"),
        ("s*.1", "s*.2", "traffic[1].from", "did you mean `s1."),
        ("d*.1", "s*.1", "traffic[1].to", "no route"),
        ("aqm = \"droptail\"", "aqm = \"drptail\"", "queue[0].aqm", "did you mean `droptail`?"),
    ] {
        assert!(CHAIN.contains(old), "{old}");
        let e = fails(&CHAIN.replace(old, new));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
    let e =
        fails(&format!("{CHAIN}\n[[queue]]\nlink = \"B->C\"\naqm = \"red\"\nbuffer = \"9p\"\n"));
    assert!(e.key == "queue[1].link" && e.hint.contains("B->C"), "{e}");
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

#[test]
fn rates_of_given_times_are_checked() {
    let text = r#"
        duration = "3s"
        [network]
        preset = "dumbbell"
        [[queue]]
        aqm = "droptail"
        buffer = "10p"
        [[traffic]]
        transport = "cbr"
        rate = "800kbit"
        rates = [["1s", "8mbit"], ["2s", "800kbit"]]
        "#;
    let scenario = Scenario::from_toml(text, "x").unwrap();
    let echo = scenario.to_toml();
    assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario);
    for (old, new, part) in
        [("\"2s\", \"800kbit\"", "\"1s\", \"1mbit\"", "ascending"), ("\"2s\"", "2", "unit")]
    {
        let e = fails(&text.replace(old, new));
        assert!(e.to_string().contains(part) && e.key.contains("rates"), "{part} in: {e}");
    }
}

/// A preset of TCP stands for its keys, those of CUBIC and of ECN where they apply; a key that is given
/// wins; and the echo, which names them all, reads back to itself.
#[test]
fn a_preset_of_tcp_is_its_keys() {
    let tcp = |lines: &str| {
        let scenario =
            Scenario::from_toml(&GOOD.replace("transport = \"sack\"", lines), "x").unwrap();
        let echo = scenario.to_toml();
        assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario, "{echo}");
        match &scenario.traffic[0].transport {
            traffic::Transport::Tcp(tcp) => tcp.clone(),
            other => panic!("{other:?}"),
        }
    };
    let reno = tcp("transport = \"sack\"\npreset = \"linux\"");
    assert!(reno.rack && reno.count_packets && reno.quick_acks && reno.handshake);
    assert_eq!((reno.initial_window, reno.min_window, reno.rfc8312), (10, 1, false));
    let cubic = tcp("transport = \"cubic\"\necn = true\npreset = \"linux\"\ninitial_window = 3");
    assert_eq!((cubic.initial_window, cubic.min_window, cubic.rfc8312), (3, 1, true));
    // RACK has two packets at least; a preset without it says so.
    let cubic = tcp("transport = \"cubic\"\necn = true\npreset = \"linux\"\nrack = false");
    assert_eq!((cubic.min_window, cubic.timestamps), (2, false));
    let cubic = tcp("transport = \"cubic\"\necn = true\npreset = \"linux\"\nmin_window = 3");
    assert_eq!(cubic.min_window, 3);
    let modern = tcp("transport = \"cubic\"\npreset = \"modern\"");
    assert_eq!((modern.pacing, modern.rack, modern.rfc8312), (Some(true), true, false));
}
