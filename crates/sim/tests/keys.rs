//! Each key of traffic and networks does something in the setting where it belongs, or is refused.

use sim::{Run, Scenario, ScenarioError};

const START: &str = "duration = \"6s\"\n";
const DUMBBELL: &str = "[network]\npreset = \"dumbbell\"\nrate = \"5mbit\"\n";
const LINK: &str = "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"5mbit\"\ndelay = \"20ms\"\n";
/// A queue that tells flows apart, one that marks many packets, and one that marks or drops few.
const QUEUES: [&str; 3] = [
    "aqm = \"sfb\"\nbuffer = \"30p\"\nparams = { bins = 2, increment = 0.05, bin_limit = \"30p\" }\n",
    "aqm = \"bernoulli\"\nbuffer = \"30p\"\nparams = { p = 0.15, ecn = true }\n",
    "aqm = \"bernoulli\"\nbuffer = \"60p\"\nparams = { p = 0.005 }\n",
];

/// Everything of a result but the time it took.
fn outcome(text: &str) -> Result<String, String> {
    quic::register();
    let scenario = Scenario::from_toml(text, "x").map_err(|e| e.to_string())?;
    let done = Run::new(scenario, text, "x").map_err(|e| e.to_string())?.finish();
    Ok(done.decision_hash)
}

fn network(keys: &str, group: &str) -> String {
    format!("{START}{DUMBBELL}{keys}\n[[queue]]\nQUEUE\n[[traffic]]\n{group}\n")
}

fn link(keys: &str) -> String {
    let ends = "from = [\"a\"]\nto = [\"b\"]\ntransport = \"sack\"\nflows = 3";
    format!("{START}{LINK}{keys}\n[[queue]]\nlink = \"a->b\"\nQUEUE\n[[traffic]]\n{ends}\n")
}

const MANY: &str = "transport = \"sack\"\nflows = 12\necn = true";
const CROWD: &str = "transport = \"sack\"\nflows = 60\necn = true";
const WEB: &str =
    "transport = \"sack\"\nflows = 3\napp = \"web\"\nsize = \"20p\"\noff = \"100ms\"\nobjects = 6";
const PARETO: &str = "transport = \"sack\"\nflows = 3\napp = \"pareto\"\non = \"200ms\"\noff = \"900ms\"\nshape = 1.5\nrate = \"3mbit\"";
const EXPONENTIAL: &str = "transport = \"sack\"\nflows = 3\napp = \"exponential\"\non = \"200ms\"\noff = \"900ms\"\nrate = \"3mbit\"";
const SCHEDULE: &str = "transport = \"sack\"\nflows = 3\napp = \"schedule\"\nsteps = [[\"0s\", \"max\"], [\"2s\", \"1mbit\"]]";
const PERIODIC: &str =
    "transport = \"cbr\"\nrate = \"6mbit\"\napp = \"periodic\"\non = \"200ms\"\noff = \"100ms\"";
const BBR: &str = "transport = \"bbr\"\nflows = 3\necn = true";
const MEDIA: &str = "transport = \"scream\"\nflows = 6\nmax_rate = \"3mbit\"";
const TRANSFERS: &str =
    "transport = \"sack\"\napp = \"finite\"\nflows = 60\nsize = \"50kB\"\nsizes = \"pareto 1.5\"";
const CBR: &str = "transport = \"cbr\"\nrate = \"6mbit\"";

/// The group, its key, and the value that is tried. A key that the group has already takes another.
const GROUPS: &[Row] = &[
    (MANY, "flows", "11"),
    (MANY, "rekey", "\"300ms\""),
    (MANY, "transport", "\"cubic\""),
    (MANY, "start", "\"1s\""),
    (MANY, "stop", "\"3s\""),
    (MANY, "step", "{ flows = 2, every = \"200ms\" }"),
    (MANY, "packet", "\"500B\""),
    (MANY, "ecn", "false"),
    (MANY, "preset", "\"linux\""),
    (MANY, "preset", "\"modern\""),
    (MANY, "ecn_timeout", "true"),
    (MANY, "min_window", "3"),
    ("transport = \"sack\"\nflows = 60\necn = true\nrack = true", "min_window", "3"),
    (
        "transport = \"sack\"\nflows = 60\necn = true\npreset = \"linux\"\nrack = false",
        "min_window",
        "1",
    ),
    (CROWD, "ecn_on_retransmit", "true"),
    ("transport = \"dctcp\"\nflows = 60\necn = true\nhandshake = true", "ecn_on_control", "true"),
    ("transport = \"sack\"\nflows = 60\necn = true\nhandshake = true", "ecn_fallback", "true"),
    (MANY, "handshake", "true"),
    (MANY, "delayed_ack", "\"40ms\""),
    (MANY, "send_jitter", "\"1ms\""),
    (MANY, "pacing", "true"),
    ("transport = \"prague\"\necn = true", "pacing", "false"),
    (BBR, "transport", "\"bbr1\""),
    (BBR, "send_quantum", "\"1ms\""),
    (BBR, "ecn_rule", "\"low-latency\""),
    (BBR, "tso", "true"),
    (BBR, "ecn", "false"),
    (MANY, "initial_window", "10"),
    (MANY, "window", "\"4p\""),
    (MANY, "min_rto", "\"1s\""),
    (MANY, "initial_rto", "\"50ms\""),
    (CROWD, "max_rto", "\"1s\""),
    (MANY, "rto_granularity", "\"400ms\""),
    ("transport = \"sack\"\nflows = 60\nmax_rto = \"2s\"", "forget_rtt", "true"),
    ("transport = \"sack\"\nflows = 60", "repair_past_timeout", "true"),
    ("transport = \"sack\"\nflows = 60\nrto_granularity = \"100ms\"", "rtt_ticks", "true"),
    ("transport = \"sack\"\nflows = 60", "recovery", "\"ns-2\""),
    (MANY, "min_rto_above_srtt", "true"),
    (MANY, "rack", "true"),
    ("transport = \"sack\"\nflows = 12\nrack = true\nmin_rto = \"1ms\"", "timestamps", "true"),
    (
        "transport = \"dctcp\"\nflows = 12\necn = true\nrack = true\ndelayed_ack = \"40ms\"",
        "accecn",
        "true",
    ),
    ("transport = \"sack\"\nflows = 12\ndelayed_ack = \"40ms\"", "count_packets", "true"),
    ("transport = \"sack\"\nflows = 12\ndelayed_ack = \"40ms\"", "quick_acks", "true"),
    ("transport = \"cubic\"\nflows = 2", "rfc8312", "true"),
    ("transport = \"sack\"\nflows = 12\nrack = true", "rfc9002", "true"),
    ("transport = \"prague\"\necn = true", "reference_rtt", "\"1s\""),
    ("transport = \"prague\"\necn = true", "reference_after", "500"),
    ("transport = \"prague\"\necn = true", "preset", "\"linux\""),
    ("transport = \"prague\"\necn = true", "preset", "\"modern\""),
    (MANY, "limited_transmit", "false"),
    (MANY, "receiver", "\"ack-division\""),
    (MANY, "receiver", "\"optimistic\""),
    (MANY, "receiver", "\"no-echo\""),
    (MANY, "whole_packets", "true"),
    (CROWD, "whole_threshold", "true"),
    (PARETO, "restart_after_idle", "false"),
    (EXPONENTIAL, "restart_after_idle", "false"),
    (EXPONENTIAL, "decay_after_idle", "true"),
    ("transport = \"sack\"\nflows = 60\nhandshake = true", "restart_after_lost_syn", "false"),
    (CBR, "rate", "\"5.5mbit\""),
    (CBR, "rates", "[[\"3s\", \"1mbit\"]]"),
    (CBR, "gaps", "\"poisson\""),
    (CBR, "echo", "true"),
    ("transport = \"cbr\"\nrate = \"6mbit\"\ngaps = \"uniform\"\njitter = 0.1", "jitter", "0.9"),
    ("transport = \"tfrc\"\nflows = 4", "discounting", "false"),
    ("transport = \"tfrc\"\nflows = 4", "equation_timeout", "\"1s\""),
    ("transport = \"tfrc\"\nflows = 4", "equation_clock", "\"1s\""),
    ("transport = \"quinn\"\nflows = 3", "control", "\"newreno\""),
    ("transport = \"quinn\"\nflows = 3", "transport", "\"noq\""),
    ("transport = \"quinn\"\nflows = 3", "packet", "\"1500B\""),
    ("transport = \"quinn\"\nflows = 3", "ecn", "false"),
    ("transport = \"ledbat\"", "target", "\"20ms\""),
    ("transport = \"ledbat\"", "gain", "0.5"),
    ("transport = \"scream\"\nflows = 40", "min_rate", "\"20kbit\""),
    (MEDIA, "max_rate", "\"600kbit\""),
    (MEDIA, "start_rate", "\"500kbit\""),
    (MEDIA, "frames", "30"),
    (MEDIA, "pause", "[\"2s\", \"3s\"]"),
    (MEDIA, "compete", "false"),
    ("transport = \"window\"\nwindow = 60", "window", "30"),
    ("transport = \"window\"\nwindow = 60", "timeout", "\"20ms\""),
    ("transport = \"sack\"\napp = \"finite\"\nsize = \"900p\"", "size", "\"500p\""),
    (TRANSFERS, "size", "\"20kB\""),
    (TRANSFERS, "sizes", "\"lognormal 1\""),
    (TRANSFERS, "load", "\"1mbit\""),
    (PARETO, "app", "\"exponential\""),
    (PARETO, "on", "\"400ms\""),
    (PARETO, "off", "\"400ms\""),
    (PARETO, "shape", "1.2"),
    (PARETO, "rate", "\"1mbit\""),
    (PARETO, "unsent", "\"backlog\""),
    (EXPONENTIAL, "on", "\"400ms\""),
    (EXPONENTIAL, "off", "\"400ms\""),
    (EXPONENTIAL, "rate", "\"1mbit\""),
    (EXPONENTIAL, "unsent", "\"backlog\""),
    (SCHEDULE, "steps", "[[\"0s\", \"2mbit\"], [\"2s\", \"max\"]]"),
    (PERIODIC, "on", "\"400ms\""),
    (PERIODIC, "off", "\"400ms\""),
    (WEB, "size", "\"10p\""),
    (WEB, "off", "\"900ms\""),
    (WEB, "shape", "1.2"),
    (WEB, "objects", "4"),
    (WEB, "connections", "1"),
];

const NETWORK: &[(&str, &str)] = &[
    ("rate", "\"4mbit\""),
    ("delay", "\"30ms\""),
    ("bottlenecks", "2"),
    ("access_rate", "\"10mbit\""),
    ("access_delay", "\"3ms\""),
    ("left", "3"),
    ("right", "3"),
];

const LINKS: &[(&str, &str)] = &[
    ("rate", "\"4mbit\""),
    ("delay", "\"30ms\""),
    ("rate_trace", "{ steps = [[\"0s\", \"5mbit\"], [\"1s\", \"1mbit\"], [\"5s\", \"5mbit\"]] }"),
    ("delay_trace", "{ steps = [[\"0s\", \"20ms\"], [\"1s\", \"40ms\"], [\"5s\", \"20ms\"]] }"),
    ("loss_trace", "{ steps = [[\"0s\", \"0%\"], [\"1s\", \"5%\"], [\"5s\", \"0%\"]] }"),
    ("jitter", "\"5ms\""),
    ("loss", "\"1%\""),
    ("duplicate", "\"5%\""),
    ("corrupt", "\"2%\""),
    ("framing", "\"atm overhead 44\""),
];

/// `group` with a key, in place of what it says of that key.
fn changed(group: &str, key: &str, value: &str) -> String {
    let other = |line: &&str| !line.starts_with(&format!("{key} ="));
    let mut lines: Vec<&str> = group.lines().filter(other).collect();
    let own = format!("{key} = {value}");
    let rest = |line: &&str| !(key == "app" && line.starts_with("shape ="));
    lines.retain(rest);
    lines.push(&own);
    lines.join("\n")
}

/// Whether the two scenarios give the same, whatever the queue.
fn same(what: &str, plain: &str, other: &str) -> bool {
    QUEUES.iter().all(|queue| {
        let [plain, other] = [plain, other].map(|text| {
            outcome(&text.replace("QUEUE\n", queue)).unwrap_or_else(|e| panic!("{what}: {e}"))
        });
        plain == other
    })
}

#[test]
fn each_key_does_something() {
    let mut idle = Vec::new();
    let mut differ = |what: String, plain: &str, other: &str| {
        if same(&what, plain, other) {
            idle.push(what);
        }
    };
    for (group, key, value) in GROUPS {
        let other = network("", &changed(group, key, value));
        differ(format!("{key} = {value}"), &network("", group), &other);
    }
    for (key, value) in NETWORK {
        let plain = network("", MANY);
        let own = format!("{key} = {value}\n");
        let other = if *key == "rate" {
            plain.replacen("rate = \"5mbit\"\n", &own, 1)
        } else {
            plain.replacen("preset = \"dumbbell\"\n", &format!("preset = \"dumbbell\"\n{own}"), 1)
        };
        differ(format!("network.{key}"), &plain, &other);
    }
    for (key, value) in LINKS {
        let plain = link("");
        let own = format!("\n{key} = {value}\n");
        let given = plain.lines().find(|line| line.starts_with(&format!("{key} = ")));
        let other = match given {
            Some(line) => plain.replacen(&format!("\n{line}\n"), &own, 1),
            None => link(own.trim()),
        };
        differ(format!("link.{key}"), &plain, &other);
    }
    let jitter = "jitter = \"20ms\"";
    differ("link.reorder".into(), &link(jitter), &link(&format!("{jitter}\nreorder = true")));
    let [two, one] = ["", "identity = \"shared\"\n"]
        .map(|more| network("", &format!("{MANY}\n{more}[[traffic]]\n{MANY}\n{more}")));
    differ("identity".into(), &two, &one);
    // What packets tell beside their flow, where a queue asks for it.
    for (key, isolation) in [
        ("dscp = \"EF\"", "triple-isolate"),
        ("host = 1", "dual-srchost"),
        ("peer = 1", "dual-dsthost"),
    ] {
        let cake = format!(
            "aqm = \"cake\"\nbuffer = \"300p\"\nparams = {{ isolation = \"{isolation}\" }}\n"
        );
        let [plain, other] = ["", key].map(|more| {
            let groups = format!("{MANY}\n{more}\n[[traffic]]\n{CROWD}\n");
            network("", &groups).replace("QUEUE\n", &cake)
        });
        differ(key.into(), &plain, &other);
    }
    let [plain, other] = ["", "translated = \"host\""].map(|more| {
        let cake = format!(
            "aqm = \"cake\"\nbuffer = \"300p\"\nparams = {{ isolation = \"dual-srchost\" }}\n{more}\n"
        );
        let groups = format!("{MANY}\nhost = 1\n[[traffic]]\n{CROWD}\n");
        network("", &groups).replace("QUEUE\n", &cake)
    });
    differ("translated".into(), &plain, &other);
    let [plain, other] = ["", "[[queue.change]]\nat = \"2s\"\nparams = { p = 0.3 }\n"]
        .map(|more| network("", MANY).replace("QUEUE\n", &format!("{}{more}", QUEUES[1])));
    differ("change".into(), &plain, &other);
    assert!(idle.is_empty(), "without effect: {idle:?}");
}

type Row = (&'static str, &'static str, &'static str);

fn keys_of<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'static str> {
    rows.map(|(_, key, _)| *key).collect()
}

/// The keys that `rows` try in groups whose transport or application is `chosen`, as the schema says it.
fn tried(chosen: &serde_json::Value, rows: &'static [Row]) -> Vec<&'static str> {
    let (choice, words) = chosen["properties"].as_object().unwrap().iter().next().unwrap();
    let words: Vec<_> = words["enum"].as_array().into_iter().flatten().collect();
    keys_of(rows.iter().filter(|(group, ..)| {
        let line = group.lines().find_map(|line| line.strip_prefix(&format!("{choice} = ")));
        line.is_some_and(|word| {
            words.iter().any(|known| known.as_str() == Some(word.trim_matches('"')))
        })
    }))
}

/// A key that is new has its place in the tables above, in a group of its owner.
#[test]
fn no_key_is_forgotten() {
    let schema: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let keys = |name: &str| {
        let all = schema["$defs"][name]["properties"].as_object();
        all.unwrap_or_else(|| panic!("no {name}")).keys().cloned().collect::<Vec<_>>()
    };
    // Names of nodes and groups, what a preset needs, and what tests of its own have.
    let elsewhere = [
        "name",
        "from",
        "to",
        "preset",
        "file",
        "digest",
        "senders",
        "duplex",
        "cross",
        "cross_delay",
        "reorder",
        "identity",
        "dscp",
        "host",
        "peer",
        "code",
        "params",
        // Of access points: `wifi.rs`.
        "wifi",
        // Of cable modems: `docsis.rs`.
        "docsis",
        // Of networks with a choice of routes: `fabric.rs`.
        "k",
        "leaves",
        "spines",
        "hosts",
        "routing",
        "ecmp",
        "pattern",
    ];
    let missing = |name: &str, table: &[&str]| {
        let known =
            |key: &&String| !table.contains(&key.as_str()) && !elsewhere.contains(&key.as_str());
        keys(name).iter().filter(known).cloned().collect::<Vec<_>>()
    };
    let owners = schema["$defs"]["TrafficSpec"]["allOf"].as_array().unwrap();
    // Controllers that are brought along have the keys of TCP.
    let named =
        |owner: &&serde_json::Value| owner.pointer("/if/properties/transport/pattern").is_none();
    for owner in owners.iter().filter(named) {
        let name = owner["then"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        assert_eq!(missing(name, &tried(&owner["if"], GROUPS)), [""; 0], "{name}");
    }
    assert_eq!(missing("TrafficSpec", &keys_of(GROUPS.iter())), [""; 0]);
    let [network, links] =
        [NETWORK, LINKS].map(|table| table.iter().map(|(key, _)| *key).collect::<Vec<_>>());
    assert_eq!(missing("Network", &network), [""; 0]);
    assert_eq!(missing("LinkSpec", &links), [""; 0]);
}

/// Transports and applications have keys of the same name: a row is about its own group's alone.
#[test]
fn a_key_of_another_owner_does_not_count() {
    let web = serde_json::json!({"properties": {"app": {"enum": ["web"]}}});
    assert_eq!(tried(&web, &[(PARETO, "on", "1"), (WEB, "off", "1")]), ["off"]);
    let timed = serde_json::json!({"properties": {"transport": {"enum": ["window", "tfrc"]}}});
    assert_eq!(
        tried(&timed, &[(CBR, "rate", "1"), ("transport = \"tfrc\"", "rate", "1")]),
        ["rate"]
    );
    assert_eq!(tried(&timed, &[(CBR, "rate", "1")]), [""; 0]);
}

fn refused(text: &str) -> ScenarioError {
    Scenario::from_toml(&text.replace("QUEUE\n", QUEUES[0]), "x").unwrap_err()
}

/// They are the load's, as its rate is: a queue that looks at them and one that does not can be
/// compared on one load.
#[test]
fn what_packets_tell_changes_nothing_where_no_queue_asks() {
    let plain = network("", MANY);
    for key in ["dscp = \"EF\"", "host = 1", "peer = 3"] {
        assert!(same(key, &plain, &network("", &format!("{MANY}\n{key}"))), "{key}");
    }
}

/// What has no effect beside the group's other keys, or the network's, is refused.
#[test]
fn what_would_do_nothing_is_refused() {
    for (group, line, key, part) in [
        (MANY, "restart_after_idle = false", "restart_after_idle", "pareto"),
        (WEB, "restart_after_idle = false", "restart_after_idle", "pareto"),
        (MANY, "decay_after_idle = true", "decay_after_idle", "pareto"),
        (
            PARETO,
            "restart_after_idle = false\ndecay_after_idle = true",
            "decay_after_idle",
            "survives",
        ),
        (MANY, "initial_rto = \"30s\"\nmax_rto = \"2s\"", "initial_rto", "at most max_rto"),
        (MANY, "step = { flows = 13, every = \"1s\" }", "step.flows", "1 … 12"),
        (
            "transport = \"prague\"\necn = true",
            "ecn_on_retransmit = true",
            "ecn_on_retransmit",
            "anyway",
        ),
        ("transport = \"prague\"\necn = true", "ecn_timeout = true", "ecn_timeout", "prague"),
        (BBR, "rack = false", "rack", "true"),
        (BBR, "pacing = false", "pacing", "rate"),
        (BBR, "min_window = 2", "min_window", "4"),
        (BBR, "limited_transmit = false", "limited_transmit", "each packet that arrives"),
        ("transport = \"dctcp\"\necn = true\nrack = true", "min_window = 2", "min_window", "rack"),
        (BBR, "count_packets = true", "count_packets", "model"),
        (BBR, "whole_packets = true", "whole_packets", "model"),
        (
            "transport = \"prague\"\necn = true\npacing = false",
            "min_window = 2",
            "min_window",
            "prague",
        ),
        (BBR, "ecn_timeout = true", "ecn_timeout", "rack"),
        (BBR, "restart_after_idle = false", "restart_after_idle", "survives"),
        (CBR, "gaps = \"uniform\"", "gaps", "jitter above 0"),
        (CBR, "stop = \"2s\"\nrates = [[\"3s\", \"1mbit\"]]", "rates", "before 2s"),
    ] {
        let e = refused(&network("", &format!("{group}\n{line}")));
        assert_eq!(e.key, format!("traffic[0].{key}"), "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
    for (keys, key) in [
        ("cross_delay = \"5ms\"", "network.cross_delay"),
        ("access_delay = [\"1ms\", \"2ms\"]", "network.access_delay"),
    ] {
        let e = refused(&network(keys, MANY));
        assert_eq!(e.key, key, "{e}");
    }
}

/// A queue whose parameters change before the first packet decides as one that was built with them, and a change
/// to the parameters that it has changes nothing.
#[test]
fn a_change_gives_a_queue_its_parameters() {
    let run = |queue: &str| outcome(&network("", MANY).replace("QUEUE\n", queue)).unwrap();
    for (aqm, param, [one, other]) in [
        ("red", "max_p", ["0.02", "0.5"]),
        ("blue", "increment", ["0.001", "0.2"]),
        ("codel", "target", ["\"1ms\"", "\"40ms\""]),
        ("pie", "target", ["\"1ms\"", "\"40ms\""]),
        ("fq-codel", "quantum", ["300", "9000"]),
        ("fq-pie", "target", ["\"1ms\"", "\"40ms\""]),
        ("dualpi2", "alpha", ["0.01", "2"]),
        ("cake", "rtt", ["\"10ms\"", "\"300ms\""]),
        ("sfb", "increment", ["0.001", "0.2"]),
        ("red-pd", "max_p", ["0.02", "0.5"]),
    ] {
        let queue = |value: &str| {
            format!("aqm = \"{aqm}\"\nbuffer = \"60p\"\nparams = {{ {param} = {value} }}\n")
        };
        let change = |at: &str, value: &str| {
            format!("[[queue.change]]\nat = \"{at}\"\nparams = {{ {param} = {value} }}\n")
        };
        let [plain, built] = [one, other].map(|value| run(&queue(value)));
        assert_ne!(plain, built, "{aqm}: {param} has an effect");
        let changed = |at, value| run(&format!("{}{}", queue(one), change(at, value)));
        assert_eq!(changed("0s", other), built, "{aqm}");
        assert_eq!(changed("3s", one), plain, "{aqm}");
        assert!(![plain, built].contains(&changed("3s", other)), "{aqm}");
    }
}

/// Queues at rest, too, get parameters by which they are not at rest.
#[test]
fn a_change_reaches_queues_at_rest() {
    let run = |queue: &str| {
        let group = format!("{MANY}\nstart = \"3s\"");
        outcome(&network("", &group).replace("QUEUE\n", queue)).unwrap()
    };
    let queue = |burst: &str| {
        format!("aqm = \"fq-pie\"\nbuffer = \"60p\"\nparams = {{ max_burst = \"{burst}\" }}\n")
    };
    let change = "[[queue.change]]\nat = \"1s\"\nparams = { max_burst = \"0s\" }\n";
    assert_ne!(run(&queue("2s")), run(&queue("0s")));
    assert_eq!(run(&format!("{}{change}", queue("2s"))), run(&queue("0s")));
}
