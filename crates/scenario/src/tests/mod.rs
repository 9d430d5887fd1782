//! Scenarios that are allowed, the errors of others, and how a scenario is written again.

mod event;
mod fabric;
mod network;
mod traffic;

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

/// The good scenario with one line replaced.
fn with(old: &str, new: &str) -> ScenarioError {
    assert!(GOOD.contains(old), "{old}");
    fails(&GOOD.replace(old, new))
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
fn a_key_of_another_place_or_program_is_told_where_it_belongs() {
    for (old, new, key, hint) in [
        ("flows = 4", "rtt = \"20ms\"", "traffic[0].rtt", "`access_delay`"),
        ("preset = \"feng\"", "preset = \"feng\"\nrtt = \"20ms\"", "network.rtt", "`access_delay`"),
        ("flows = 4", "buffer = \"10p\"", "traffic[0].buffer", "a key of [[queue]]"),
        ("flows = 4", "access_delay = [\"1ms\"]", "traffic[0].access_delay", "a key of [network]"),
        ("flows = 4", "count = 4", "traffic[0].count", "`flows`"),
        ("flows = 4", "mss = \"1kB\"", "traffic[0].mss", "`packet`"),
        ("flows = 4", "cc = \"cubic\"", "traffic[0].cc", "`transport`"),
        ("\"200kB\"", "\"200kB\"\ntarget = \"5ms\"", "queue[0].target", "pi2, cobalt"),
        ("\"200kB\"", "\"200kB\"\nrate = \"5mbit\"", "queue[0].rate", "a key of [network]"),
        ("buffer = ", "limit = ", "queue[0].limit", "`buffer`"),
        ("aqm = ", "qdisc = ", "queue[0].qdisc", "`aqm`"),
        ("preset = ", "bandwidth = \"1mbit\"\npreset = ", "network.bandwidth", "`rate`"),
        ("warmup", "interval = \"1s\"\nwarmup", "interval", "a key of [measure]"),
        ("warmup", "time = \"1s\"\nwarmup", "time", "`duration`"),
        ("warmup", "warm_up", "warm_up", "`warmup`"),
        ("warmup", "name = \"x\"\nwarmup", "name", "`title`?"),
        ("\"200kB\"", "\"200kB\"\nname = \"x\"", "queue[0].name", "the name of its link"),
        ("aqm = ", "kind = ", "queue[0].kind", "`aqm`?"),
        ("aqm = ", "type = ", "queue[0].type", "`aqm`?"),
        ("\"sack\"", "\"sack\"\ntype = \"tcp\"", "traffic[0].type", "`transport`?"),
        ("\"200kB\"", "\"200kB\"\nw_q = 0.1", "queue[0].w_q", "params = { w_q"),
        ("\"200kB\"", "\"200kB\"\nincrement = 0.1", "queue[0].increment", "of blue, cobalt"),
        ("\"200kB\"", "\"200kB\"\nincrement = 0.1", "queue[0].increment", "not of red"),
    ] {
        let e = with(old, new);
        assert_eq!((e.key.as_str(), e.problem.as_str()), (key, "unknown key"), "{e}");
        assert!(e.hint.contains(hint), "{hint} in: {e}");
    }
}

/// Without a name of a type of this program's language.
#[test]
fn a_value_of_another_type_is_told_in_words() {
    for (old, new, key, allowed) in [
        ("flows = 4", "flows = \"abc\"", "traffic[0].flows", "a whole number"),
        ("flows = 4", "flows = 1.5", "traffic[0].flows", "a whole number"),
        ("flows = 4", "host = \"a\"", "traffic[0].host", "a whole number"),
        ("flows = 4", "ecn = \"yes\"", "traffic[0].ecn", "true or false"),
        ("flows = 4", "ecn = 1", "traffic[0].ecn", "true or false"),
        ("flows = 4", "from = \"n0\"", "traffic[0].from", "a list in brackets"),
        ("flows = 4", "name = 3", "traffic[0].name", "text in quotes"),
        ("\"red\"", "5", "queue[0].aqm", "text in quotes"),
        ("warmup", "seed = \"x\"\nwarmup", "seed", "a whole number"),
        ("{ w_q = 0.02 }", "3", "queue[0].params", "a table, as { key = value }"),
    ] {
        let e = with(old, new);
        assert_eq!((e.key.as_str(), e.allowed.as_str()), (key, allowed), "{e}");
        let ours = ["u32", "u64", "i64", "struct", "invalid", "expected", "field"];
        assert!(!ours.iter().any(|word| e.to_string().contains(word)), "{e}");
    }
}

#[test]
fn what_is_no_toml_is_told_in_words() {
    for (old, new, part) in [
        ("\"10s\"", "10s # long", "duration = \"10s\""),
        ("warmup", "duration = \"3s\"\nwarmup", "the key `duration` stands twice"),
        ("warmup", "quue = quue\nwarmup", "x.toml:3: text without quotes\nhint: quue = \"quue\""),
        ("warmup", "quue\nwarmup", "x.toml:3: a key without a value\nhint: quue = …"),
        ("\"sack\"", "\"sack\"\necn = True", "allowed: true or false, in small letters"),
        (
            "[network]",
            "[[network]]",
            "x.toml:4: network: not allowed; allowed: a table\nhint: there is \
                                     one, in single brackets: [network]",
        ),
        ("[network]", "[[measure]]\n[network]", "in single brackets: [measure]"),
    ] {
        let e = with(old, new);
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
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
        (
            "\"sack\"",
            "\"sack\"\n[measure]\ninterval = \"11s\"",
            "measure.interval",
            "\"11s\": not allowed; allowed: at most the duration of 10s",
        ),
        ("0.02", "2.0", "queue[0].params.w_q", "0 … 1"),
        ("0.02", "\"often\"", "queue[0].params.w_q", "a number"),
        ("\"red\"", "\"rde\"", "queue[0].aqm", "did you mean `red`?"),
        ("\"red\"", "\"RED\"", "queue[0].aqm", "did you mean `red`?"),
        ("\"red\"", "\"FQ_CoDel\"", "queue[0].aqm", "did you mean `fq-codel`?"),
        ("\"red\"", "\"pfifo\"", "queue[0].aqm", "`droptail`"),
        ("w_q = 0.02", "target = 0.02", "queue[0].params.target", "is a parameter of ared, codel"),
        ("\"sack\"", "\"udp\"", "traffic[0].transport", "`cbr`"),
        ("\"sack\"", "\"sac\"", "traffic[0].transport", "sack"),
        ("\"feng\"", "\"fang\"", "network.preset", "feng"),
        ("flows = 4", "flows = 0", "traffic[0].flows", "at least 1"),
        ("flows = 4", "flows = -4", "traffic[0].flows", "whole number, 0 … 4294967295"),
        ("flows = 4", "flows = 4\nto = [\"n0\"]", "traffic[0].to", "to itself"),
        ("flows = 4", "flows = 4\nstart = \"5s..90s\"", "traffic[0].start", "ends by 10s"),
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
        ("\"sack\"", "\"ledbat\"\ntarget = \"101ms\"", "traffic[0].target", "100ms"),
        ("\"sack\"", "\"ledbat\"\ngain = 0.0", "traffic[0].gain", "above 0"),
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

/// A hint names the key that was meant, not only one that is spelt alike.
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
fn what_is_not_toml_is_an_error_with_a_line() {
    for text in ["duration = ", "[[queue]\n", "a = 1\na = 2\n", "\u{0}", "duration = \"1s\""] {
        let e = fails(text);
        assert!(!e.to_string().is_empty());
    }
    assert_eq!(fails("\n\nduration = ").line, Some(3));
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
fn the_schema_knows_every_algorithm_and_parameter() {
    let schema = Scenario::json_schema();
    for entry in CATALOG {
        assert!(schema.contains(&format!("\"{}\"", entry.name)));
        for parameter in (entry.parameters)() {
            assert!(schema.contains(parameter.name));
        }
    }
}

/// A queue can only learn rates if its link has a trace; the key is written and read again.
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

/// A rate that CAKEs share stays, whatever the link has: a queue with one is not told of others, itself or in a class.
#[test]
fn a_queue_with_a_rate_of_its_own_is_told_of_none() {
    let scenario = |queue: &str| {
        let text = format!(
            "duration = \"1s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10mbit\"\n\
             delay = \"1ms\"\nrate_trace = {{ model = \"wifi\" }}\n[[queue]]\nlink = \"a->b\"\naqm = \"cake\"\n\
             buffer = \"10p\"\n{queue}\n[[traffic]]\nflows = 1\ntransport = \"cbr\"\n\
             rate = \"1mbit\"\nfrom = [\"a\"]\nto = [\"b\"]\n"
        );
        Scenario::from_toml(&text, "s.toml")
    };
    let shared = "params = { queues = 4, shared_rate = \"5mbit\" }";
    let class =
        format!("[[queue.class]]\nname = \"a\"\nrate = \"9mbit\"\naqm = \"cake\"\n{shared}");
    for queue in [shared, &class] {
        scenario(queue).unwrap();
        let error = scenario(&format!("told_rate = true\n{queue}")).unwrap_err().to_string();
        assert!(error.contains("shared_rate") && error.contains("none with told_rate"), "{error}");
    }
    assert!(scenario("told_rate = true\nparams = { queues = 4 }").is_ok());
}

/// Parameters that change are of the discipline, are such as may change, and come in the order of their times.
#[test]
fn a_queue_says_which_parameters_may_change() {
    let change = |aqm: &str, changes: &str| {
        let text = format!(
            "duration = \"1s\"\n[network]\npreset = \"dumbbell\"\n[[queue]]\naqm = \"{aqm}\"\n\
             buffer = \"100p\"\nchange = [{changes}]\n[[traffic]]\ntransport = \"sack\"\n"
        );
        Scenario::from_toml(&text, "s.toml")
    };
    let later = "{ at = \"2s\", params = { max_p = 0.2 } }";
    let read = change("red", later).unwrap();
    let again = Scenario::from_toml(&read.to_toml(), "t.toml").unwrap();
    assert_eq!((again.queue[0].change.len(), &again.queue[0].change), (1, &read.queue[0].change));
    for (aqm, changes, key, word) in [
        ("red", "{ at = \"2s\", params = { spacing = \"wait\" } }", "[0].params.spacing", "max_p"),
        ("red", "{ at = \"2s\", params = { max_q = 1 } }", "[0].params.max_q", "max_p"),
        ("droptail", later, "[0].params.max_p", "no parameter"),
        ("red", &format!("{later}, {{ at = \"1s\", params = {{}} }}"), "[1].at", "2s or later"),
    ] {
        let error = change(aqm, changes).unwrap_err().to_string();
        assert!(
            error.contains(&format!("queue[0].change{key}")) && error.contains(word),
            "{error}"
        );
    }
}

/// GOOD with a filter before its queue.
const FILTERED: &str =
    "w_q = 0.02 }\nprefilter = \"red-pd\"\nprefilter_params = { target_rtt = \"20ms\" }";

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
fn a_queue_may_have_a_shaper_behind_it() {
    let shaped = |shaper: &str| format!("w_q = 0.02 }}\nshaper = {{ {shaper} }}");
    let text = GOOD.replace("w_q = 0.02 }", &shaped("rate = \"1mbit\", burst = \"9kB\""));
    let scenario = Scenario::from_toml(&text, "x").unwrap();
    let echo = scenario.to_toml();
    assert!(echo.contains("peakrate = \"none\""), "{echo}");
    assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario);
    for (shaper, key, part) in [
        ("rat = \"1mbit\"", "queue[0].shaper.rat", "tbf has rate"),
        ("rate = \"0\"", "queue[0].shaper.rate", "45mbit"),
        ("rate = \"1mbit\", minburst = \"9kB\"", "queue[0].shaper.minburst", "no effect"),
    ] {
        let e = with("w_q = 0.02 }", &shaped(shaper));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
}

/// GOOD with a tree of classes.
const CLASSES: &str = r#"w_q = 0.02 }
[[queue.class]]
name = "all"
rate = "10mbit"
[[queue.class]]
name = "circuit"
parent = "all"
rate = "1mbit"
ceil = "5mbit"
peer = "0..3"
each = "peer"
[[queue.class]]
name = "rest"
parent = "all"
rate = "2mbit"
dscp = "8"
aqm = "cake"
params = { rtt = "50ms" }
"#;

#[test]
fn a_queue_may_have_a_tree_of_classes() {
    let scenario = Scenario::from_toml(&GOOD.replace("w_q = 0.02 }", CLASSES), "x").unwrap();
    let echo = scenario.to_toml();
    assert!(echo.contains("diffserv = \"diffserv3\""), "defaults are written out: {echo}");
    assert_eq!(Scenario::from_toml(&echo, "echo").unwrap(), scenario);
    let tree =
        crate::classes::expand(&scenario.queue[0].class, |n, key| format!("{n} {key}")).unwrap();
    let parents: Vec<_> = tree.classes.iter().map(|class| class.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0), Some(0), Some(0), Some(0)]);
    assert_eq!(tree.entries, [0, 1, 1, 1, 1, 2]);
    assert_eq!((&tree.names[1][..], &tree.names[4][..]), ("circuit[0]", "circuit[3]"));
    let last = tree.rules.last().unwrap();
    assert_eq!((tree.rules.len(), last.1, last.0.dscp.clone()), (5, 5, Some(8..=8)));
    for (old, new, key, part) in [
        ("parent = \"all\"", "", "queue[0].class[1].parent", "only the first"),
        ("parent = \"all\"", "parent = \"al\"", "queue[0].class[1].parent", "did you mean `all`?"),
        ("name = \"rest\"", "name = \"all\"", "queue[0].class[2].name", "of its own"),
        ("ceil = \"5mbit\"", "ceil = \"5kbit\"", "queue[0].class[1].ceil", "1mbit at least"),
        ("peer = \"0..3\"", "", "queue[0].class[1].peer", "needed by each"),
        ("peer = \"0..3\"", "peer = \"0..8192\"", "queue[0].class[1].peer", "8191"),
        ("peer = \"0..3\"", "peer = \"3..0\"", "queue[0].class[1].peer", "0..999"),
        ("dscp = \"8\"", "dscp = \"64\"", "queue[0].class[2].dscp", "63"),
        ("aqm = \"cake\"", "", "queue[0].class[2].aqm", "needed by its parameters"),
        ("aqm = \"cake\"", "aqm = \"cke\"", "queue[0].class[2].aqm", "did you mean `cake`?"),
        ("rtt = \"50ms\"", "rt = \"50ms\"", "queue[0].class[2].params.rt", "did you mean `rtt`?"),
        ("ceil = \"5mbit\"", "prio = 8", "queue[0].class[1].prio", "0 … 7"),
        ("ceil = \"5mbit\"", "burst = \"2p\"", "queue[0].class[1].burst", "bytes"),
        (
            "ceil = \"5mbit\"",
            "address = [\"::\"]",
            "queue[0].class[1].address",
            "only in the gateway",
        ),
    ] {
        let e = with("w_q = 0.02 }", &CLASSES.replacen(old, new, 1));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(part), "{part} in: {e}");
    }
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

/// So many links in a row, the first with a queue, or all.
fn row_of(links: usize, all: bool, head: &str, flows: u32) -> String {
    let link = |i: usize| {
        let queue = format!(
            "[[queue]]\nlink = \"n{i}->n{}\"\naqm = \"droptail\"\nbuffer = \"10p\"\n",
            i + 1
        );
        format!(
            "[[link]]\nfrom = \"n{i}\"\nto = \"n{}\"\nrate = \"10mbit\"\ndelay = \"1ms\"\n{}",
            i + 1,
            if all || i == 0 { &queue } else { "" }
        )
    };
    let links: String = (0..links).map(link).collect();
    let group = "[[traffic]]\nfrom = [\"n0\"]\nto = [\"n1\"]\ntransport = \"sack\"";
    format!("{head}\n{links}{group}\nflows = {flows}\n")
}

#[test]
fn what_takes_too_long_for_so_many_links_is_refused_with_the_longest_time() {
    let days = |days: u32| format!("duration = \"{}s\"", days * 86_400);
    assert!(Scenario::from_toml(&row_of(500, false, &days(51), 1), "x").is_ok());
    // 1000 links, there and back: events after 52 days would come at wrong times.
    let e = fails(&row_of(500, false, &days(60), 1));
    assert_eq!(e.key, "duration");
    assert!(e.allowed.contains("4503599") && e.allowed.contains("links"), "{e}");
}

#[test]
fn queues_that_count_too_many_flows_are_refused_before_memory_is_taken() {
    let (head, delays) = ("duration = \"1s\"", "duration = \"1s\"\nmeasure = { delays = true }");
    assert!(Scenario::from_toml(&row_of(400, true, head, 4_000_000), "x").is_ok());
    assert!(Scenario::from_toml(&row_of(40, true, delays, 4_000_000), "x").is_ok());
    let e = fails(&row_of(400, true, delays, 4_000_000));
    assert_eq!(e.key, "queue");
    assert!(e.problem.contains("400 queues with 4000000 flows need 1"), "{e}");
    assert!(e.hint.contains("`delays` off"), "{e}");
}
