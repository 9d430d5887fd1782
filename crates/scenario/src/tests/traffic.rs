//! Groups of flows: keys, their transports and applications, presets.

use super::*;
use crate::text::Network;
use crate::traffic::Transport;

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
        ("sack", "steps = []", "steps", "for schedule only"),
        ("sack", "app = \"schedule\"\nsteps = []", "steps", "times that ascend from 0s"),
        ("sack", "app = \"schedule\"\nsteps = [[\"1s\", \"max\"]]", "steps", "from 0s"),
        (
            "sack",
            "app = \"schedule\"\nsteps = [[\"0s\", \"max\", \"5s\", \"1mbit\"]]",
            "steps[0]",
            "two values",
        ),
        (
            "cbr",
            "rate = \"1mbit\"\nrates = [[\"1s\", \"2mbit\", \"5s\", \"1mbit\"]]",
            "rates[0]",
            "two values",
        ),
        ("cbr", "rate = \"400gbit\"\npacket = \"40B\"", "rate", "at most 320gbit"),
        ("scream", "pause = [\"1s\", \"2s\", \"3s\"]", "pause", "two values"),
        ("rust:x", "params = { n = [1] }", "params.n", "text in quotes, a number"),
        ("rust:x", "tso = true", "tso", "controller of your own"),
        ("rust:x", "pacing = true\nsend_quantum = \"1ms\"", "send_quantum", "own"),
        ("cbr", "rate = \"1mbit\"\napp = \"schedule\"", "app", "periodic"),
        ("window", "window = 9\ngain = 2.0", "gain", "for ledbat only"),
        ("scream", "discounting = false", "discounting", "for tfrc only"),
        ("cbr", "rate = \"1mbit\"\nhandshake = true", "handshake", "for TCP only"),
        ("cbr", "rate = \"1mbit\"\njitter = 0.5", "jitter", "uniform"),
        ("tfrc", "window = \"9p\"", "window", "for TCP, window only"),
        ("tfrc", "equation_clock = \"0ms\"", "equation_clock", "above 0"),
        (
            "tfrc",
            "equation_clock = \"1ms\"\nequation_timeout = \"1ms\"",
            "equation_clock",
            "without equation_timeout",
        ),
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
        ("sack", "rack = true\nrtt_ticks = true", "rtt_ticks", "false"),
        ("sack", "rack = true\nrecovery = \"ns-2\"", "recovery", "without rack"),
        ("cubic", "recovery = \"ns-2\"", "recovery", "transport = \"sack\""),
        (
            "sack",
            "recovery = \"ns-2\"\nrepair_past_timeout = true",
            "repair_past_timeout",
            "has it anyway",
        ),
        ("sack", "rfc8312 = true", "rfc8312", "cubic"),
        ("bbr1", "ecn = true\naccecn = true", "accecn", "\"bbr\""),
        ("bbr", "ecn = false\naccecn = true", "accecn", "with ecn = true only"),
        ("bbr", "ecn = false\necn_rule = \"low-latency\"", "ecn_rule", "with ecn = true only"),
        ("bbr1", "ecn = true\necn_rule = \"low-latency\"", "ecn_rule", "\"bbr\" only"),
        ("sack", "ecn = false\nreceiver = \"no-echo\"", "receiver", "with ecn = true only"),
        (
            "sack",
            "app = \"web\"\nsize = \"9p\"\noff = \"1s\"\nreceiver = \"optimistic\"",
            "receiver",
            "all its packets",
        ),
        ("cbr", "rate = \"1mbit\"\nreceiver = \"optimistic\"", "receiver", "for TCP only"),
        ("sack", "tso = true", "tso", "rack = true"),
        ("sack", "rack = true\ntso = true\nsend_jitter = \"1ms\"", "send_jitter", "tso = false"),
        ("prague", "ecn = true\necn_timeout = true", "ecn_timeout", "paced below"),
        ("prague", "ecn = true\npacing = false\nmin_window = 2", "min_window", "two packets"),
        ("cubic", "reference_rtt = \"25ms\"", "reference_rtt", "prague"),
        ("cubic", "reference_after = 500", "reference_after", "prague"),
        ("prague", "ecn = true\nreference_after = 1000001", "reference_after", "0 … 1000000"),
        (
            "prague",
            "ecn = true\nreference_rtt = \"0s\"\nreference_after = 500",
            "reference_after",
            "above 0s",
        ),
        ("sack", "quick_acks = true", "quick_acks", "delayed_ack"),
        ("cubic", "control = \"cubic\"", "control", "for QUIC only"),
        ("noq", "window = \"9p\"", "window", "for TCP, window only"),
        ("quinn", "packet = \"1000B\"", "packet", "1228B … 65535B"),
        ("quinn", "app = \"web\"", "app", "infinite, finite"),
        ("noq", "control = \"bbr\"", "control", "cubic, newreno"),
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

#[test]
fn quic_has_the_defaults_of_its_stacks() {
    for (more, packet, ecn) in [("", 1228, true), ("packet = \"1500B\"\necn = false", 1500, false)]
    {
        let text = GOOD.replace("\"sack\"", &format!("\"quinn\"\n{more}"));
        let scenario = Scenario::from_toml(&text, "x").unwrap_or_else(|e| panic!("{e}"));
        let group = &scenario.traffic[0].group;
        assert_eq!((group.packet_bytes(), group.ecn), (Some(packet), ecn));
    }
}

/// They exist, but not in a form that would be theirs, or could be repeated.
#[test]
fn a_controller_that_is_left_out_says_why() {
    for (control, part) in
        [("bbr", "pacing rate"), ("bbr3", "no run could be repeated"), ("newrenoo", "`newreno`")]
    {
        let e = with("\"sack\"", &format!("\"noq\"\ncontrol = \"{control}\""));
        assert_eq!((&e.key[..], &e.allowed[..]), ("traffic[0].control", "cubic, newreno"), "{e}");
        assert!(e.hint.contains(part), "{part} in: {e}");
    }
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
    let owners = schema["$defs"]["TrafficSpec"]["allOf"].as_array().unwrap();
    let name = |owner: &serde_json::Value| {
        owner["then"]["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_string()
    };
    for owner in owners {
        let own = keys(&name(owner));
        assert!(!own.is_empty() && own.iter().all(|key| !common.contains(key)), "{owner}");
    }
    // Beside `sack`, which has no application with keys here, those of other owners have no effect.
    let tcp = keys("tcp");
    for owner in owners.iter().map(name).filter(|owner| owner != "tcp") {
        for key in keys(&owner).into_iter().filter(|key| !tcp.contains(key)) {
            let e = with("\"sack\"", &format!("\"sack\"\n{key} = 0"));
            assert_eq!(e.key, format!("traffic[0].{key}"), "{e}");
            assert!(e.to_string().contains(" only"), "{e}");
        }
    }
    // All that go together, TCP or cbr and an application, have no key twice.
    for (transport, app) in [("tcp", "web"), ("tcp", "pareto"), ("cbr", "periodic")] {
        assert!(keys(transport).iter().all(|key| !keys(app).contains(key)), "{transport}, {app}");
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

/// Packets of a preset fill an Ethernet frame by default.
#[test]
fn packets_of_a_preset_are_of_1500_bytes() {
    let packet = |keys: &str| {
        let text = format!(
            "duration = \"1s\"\nnetwork = {{ preset = \"dumbbell\" }}\n\
             [[queue]]\naqm = \"droptail\"\nbuffer = \"9p\"\n[[traffic]]\n\
             transport = \"cubic\"\n{keys}\n"
        );
        Scenario::from_toml(&text, "x").unwrap().traffic[0].group.packet_bytes()
    };
    assert_eq!(packet(""), Some(1000));
    assert_eq!(packet("preset = \"linux\""), Some(1500));
    assert_eq!(packet("preset = \"modern\"\npacket = \"600B\""), Some(600));
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
            Transport::Tcp(tcp) => tcp.clone(),
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

/// The first bits decide; addresses of IPv4 are mapped into IPv6, as the reader of captures has them.
#[test]
fn a_network_has_the_addresses_with_its_first_bits() {
    let mapped = |address: [u8; 4]| {
        let mut bytes = [0; 16];
        bytes[10..12].fill(0xff);
        bytes[12..].copy_from_slice(&address);
        bytes
    };
    let has = |network: &str, address| network.parse::<Network>().unwrap().has(&address);
    assert!(has("192.0.2.0/24", mapped([192, 0, 2, 7])));
    assert!(!has("192.0.2.0/24", mapped([192, 0, 3, 7])));
    assert!(has("192.0.2.7", mapped([192, 0, 2, 7])));
    assert!(!has("192.0.2.7", mapped([192, 0, 2, 6])));
    assert!(has("0.0.0.0/0", mapped([9, 9, 9, 9])));
    assert!(!has("0.0.0.0/0", [0x20; 16]));
    assert!(has(
        "2001:db8::/32",
        [[0x20, 1, 0x0d, 0xb8].as_slice(), &[7; 12]].concat().try_into().unwrap()
    ));
    for wrong in ["", "lan", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0/8", "10.0.0.0/-1"] {
        assert!(wrong.parse::<Network>().is_err(), "{wrong}");
    }
}
