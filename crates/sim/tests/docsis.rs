//! Cable modems, against closed formulas and against themselves.

use aqm::Duration;
use sim::results::table::Column;
use sim::{Outcome, Run, Scenario};

fn run(text: &str, folding: bool, threads: usize) -> Outcome {
    let scenario = Scenario::from_toml(text, "docsis").unwrap_or_else(|e| panic!("{e}"));
    let run = Run::new(scenario, text, "docsis").unwrap().with_folding(folding);
    let mut run = run.with_threads(Some(threads));
    while run.advance(Duration::from_micros(12_347)) {}
    run.finish()
}

/// A modem of 10 Mb/s with these keys before a server, whose queue has these, and its traffic.
fn network(docsis: &str, queue: &str, traffic: &str) -> String {
    format!(
        r#"
        duration = "62s"
        warmup = "2s"
        [[link]]
        from = "home"
        to = "modem"
        rate = "1gbit"
        delay = "1ms"
        [[link]]
        from = "modem"
        to = "net"
        rate = "10mbit"
        delay = "500us"
        duplex = false
        docsis = {{ {docsis} }}
        [[link]]
        from = "net"
        to = "modem"
        rate = "100mbit"
        delay = "500us"
        duplex = false
        [[queue]]
        link = "modem->net"
        {queue}
        {traffic}
        [measure]
        delays = true
        "#
    )
}

fn group(name: &str, keys: &str) -> String {
    format!("[[traffic]]\nname = \"{name}\"\nfrom = [\"home\"]\nto = [\"net\"]\n{keys}\n")
}

const DROPTAIL: &str = "aqm = \"droptail\"\nbuffer = \"200kB\"";
const FLOOD: &str = "transport = \"cbr\"\npacket = \"1500B\"\nrate = \"60mbit\"";

/// A column of the one-way delays of a group, ms.
fn one_way(outcome: &Outcome, group: &str, column: &str) -> f64 {
    let texts = |name: &str| match outcome.delays.column(name) {
        Some(Column::Text(texts)) => texts.clone(),
        _ => panic!("no {name}"),
    };
    let (groups, kinds) = (texts("group"), texts("kind"));
    let row = (0..groups.len()).find(|&row| groups[row] == group && kinds[row] == "one-way");
    outcome.delays.number(column, row.unwrap()).unwrap() * 1000.0
}

/// The mean and greatest one-way delay of a datagram each 7.3 ms on an idle modem beyond the path's, ms.
fn idle(docsis: &str) -> [f64; 2] {
    let ping = group("ping", "transport = \"cbr\"\npacket = \"100B\"\nrate = \"109600bit\"");
    let outcome = run(&network(docsis, DROPTAIL, &ping), true, 1);
    ["delay_mean_s", "delay_max_s"].map(|column| {
        // Two wires, the way to the modem at 1 Gb/s, and 118 bytes in the grant at 100 Mb/s.
        one_way(&outcome, "ping", column) - 1.5 - 800e-6 - 9.44e-3
    })
}

/// A request waits for the next interval, half of one in the mean, and has its grant in the next but one, since it
/// takes 3.5 ms. Without a request half an interval is left.
#[test]
fn an_idle_ping_waits_for_half_an_interval_and_the_turnaround() {
    for (docsis, turnaround, map) in [
        ("", 4.0, 2.0),
        ("map = \"1ms\"", 4.0, 1.0),
        ("lead = \"4ms\"", 6.0, 2.0),
        ("guaranteed = \"1mbit\"", 0.0, 2.0),
    ] {
        let found = idle(docsis);
        let expected = [turnaround + map / 2.0, turnaround + map];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.03, "{docsis}: {found} of {expected} ms");
        }
    }
}

/// The least of the rate and of what MAPs grant, of which 1500 in 1518 bytes are the packet's.
#[test]
fn throughput_is_the_rate_or_what_maps_grant() {
    for (docsis, most) in [
        ("", 10.0),
        ("grant = \"1000B\"", 4.0),
        ("grant = \"2kB\", map = \"4ms\"", 4.0),
        ("grant = \"2kB\", burst = \"1MB\"", 8.0),
        ("lead = \"20ms\"", 10.0),
    ] {
        let outcome = run(&network(docsis, DROPTAIL, &group("flood", FLOOD)), true, 1);
        let found = outcome.queues.number("throughput_bps", 0).unwrap() / 1e6;
        let expected = most * 1500.0 / 1518.0;
        assert!((found / expected - 1.0).abs() < 0.001, "{docsis}: {found} of {expected}");
    }
}

/// Every packet is accounted for, in order, with every discipline, however it is simulated.
#[test]
fn nothing_is_lost_and_nothing_depends_on_how_it_is_simulated() {
    for aqm in aqm::CATALOG.iter().map(|about| about.name) {
        let traffic =
            group("bulk", "transport = \"cubic\"\npacket = \"1500B\"\nflows = 3\necn = true")
                + &group(
                    "ping",
                    "transport = \"cbr\"\npacket = \"100B\"\nrate = \"80kbit\"\necho = true",
                );
        let queue = format!("aqm = \"{aqm}\"\nbuffer = \"100p\"");
        let text =
            network("backoff = 4, guaranteed = \"1mbit\", peak = \"30mbit\"", &queue, &traffic);
        let text = text.replace("62s", "6s");
        let [whole, plain, threads] = [(true, 1), (false, 1), (true, 2)]
            .map(|(folding, threads)| run(&text, folding, threads));
        assert_eq!(whole.decision_hash, plain.decision_hash, "{aqm}");
        assert_eq!(whole.decision_hash, threads.decision_hash, "{aqm}");
        let found = whole.queues.number("throughput_bps", 0).unwrap();
        let without = text.lines().filter(|line| !line.contains("docsis =")).collect::<Vec<_>>();
        let expected =
            run(&without.join("\n"), true, 1).queues.number("throughput_bps", 0).unwrap();
        assert!(found > 0.7 * expected && found < 10e6, "{aqm}: {found} of {expected}");
    }
}

/// Each key has an effect beside the others.
#[test]
fn each_key_does_something() {
    let keys_of_traffic =
        "transport = \"cbr\"\npacket = \"1500B\"\nrate = \"9mbit\"\ngaps = \"poisson\"";
    let hash = |docsis: &str| {
        let text = network(docsis, DROPTAIL, &group("some", keys_of_traffic));
        run(&text.replace("62s", "5s"), true, 1).decision_hash
    };
    let plain = hash("");
    let keys = [
        ("channel", "50mbit"),
        ("map", "3ms"),
        ("lead", "6ms"),
        ("grant", "3kB"),
        ("burst", "30kB"),
        ("peak", "12mbit"),
        ("guaranteed", "2mbit"),
    ];
    for (key, value) in keys {
        assert_ne!(hash(&format!("{key} = \"{value}\"")), plain, "{key}");
    }
    assert_ne!(hash("backoff = 8"), plain, "backoff");
    let schema: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let all = schema["$defs"]["DocsisSpec"]["properties"].as_object().unwrap();
    let known = |key: &&String| keys.iter().any(|(name, _)| name == key) || *key == "backoff";
    assert!(all.keys().all(|key| known(&key)), "{all:?}");
}

/// The 95th percentile of a ping's time beside uploads, less that of the path, ms.
fn loaded(queue: &str, uploads: &str, ping: &str) -> f64 {
    let ping = format!("transport = \"cbr\"\npacket = \"100B\"\nrate = \"80kbit\"\n{ping}");
    let traffic = group("bulk", uploads) + &group("ping", &ping);
    let outcome = run(&network("", queue, &traffic).replace("62s", "32s"), true, 1);
    one_way(&outcome, "ping", "delay_p95_s") - 1.5
}

/// 200 kB take 162 ms at 10 Mb/s. DOCSIS-PIE aims at 10 ms, with the wait for grants in it. A ping in DualPI2's L queue
/// takes the next grant, which was requested for the other queue: an interval at most, and the packet that is cut.
#[test]
fn a_queue_before_the_modem_is_managed_as_any() {
    let cubic = "transport = \"cubic\"\npreset = \"linux\"\nflows = 2";
    let tail = loaded(DROPTAIL, cubic, "");
    assert!((140.0..175.0).contains(&tail), "{tail}");
    let pie = loaded("aqm = \"docsis-pie\"\nbuffer = \"200kB\"", cubic, "");
    assert!((10.0..60.0).contains(&pie), "{pie}");
    let two = "aqm = \"dualpi2\"\nbuffer = \"200kB\"\nparams = { low_latency = \"any-ect\" }";
    let dual = loaded(two, cubic, "ecn = true");
    assert!((1.0..3.0).contains(&dual), "{dual}");
}
