//! Captures as traffic: what is in the file arrives at the queue, at its time, and nothing else
//! does.

use std::path::PathBuf;

use sim::results::table::{Column, Table};
use sim::{Outcome, Run, ScenarioError, capture};
use trace::generate::{self, Options, Packets};
use trace::write::{Format, Writer};

/// A capture in a file of its own; gives its path.
fn file(name: &str, packets: impl IntoIterator<Item = (u64, u32, Vec<u8>)>) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, Format::Pcapng).unwrap();
    for (time, len, head) in packets {
        writer.packet(time, len, &head).unwrap();
    }
    writer.end().unwrap();
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().into()
}

/// 2 s of generated packets, and what they are: time, length, flow.
fn generated(name: &str, ecn: f64) -> (String, Vec<generate::Sent>) {
    let duration = aqm::Duration::from_secs(2);
    let sent: Vec<_> =
        Packets::new(Options { duration, ecn, ..Options::default() }).unwrap().collect();
    (file(name, sent.iter().map(|s| (s.time, s.len, s.head.to_vec()))), sent)
}

fn scenario(file: &str, more: &str) -> String {
    format!(
        r#"
        duration = "10s"
        [[link]]
        from = "a"
        to = "b"
        rate = "12mbit"
        delay = "5ms"
        [[queue]]
        link = "a->b"
        aqm = "droptail"
        buffer = "10000p"
        [[traffic]]
        name = "captured"
        transport = "trace"
        file = "{file}"
        from = ["a"]
        to = ["b"]
        {more}
        "#
    )
}

fn run(text: &str) -> Outcome {
    let scenario = capture::scenario(text, "x.toml").unwrap();
    Run::new(scenario, text, "x.toml").unwrap().finish()
}

fn refused(text: &str) -> ScenarioError {
    capture::scenario(text, "x.toml").unwrap_err()
}

fn counts<'a>(table: &'a Table, name: &str) -> &'a [u64] {
    match table.column(name) {
        Some(Column::Count(values)) => values,
        other => panic!("{name}: {other:?}"),
    }
}

/// Against Lindley's recursion over the file: a packet waits until the one before it was sent,
/// which takes its length × 8 / 12 Mbit/s, or not at all.
#[test]
fn each_packet_arrives_at_its_time_with_its_length() {
    let (file, sent) = generated("lindley.pcapng", 0.0);
    let outcome = run(&scenario(&file, ""));
    let bytes: u64 = sent.iter().map(|s| u64::from(s.len)).sum();
    assert_eq!(counts(&outcome.queues, "arrivals"), [sent.len() as u64]);
    assert_eq!(counts(&outcome.queues, "departures_bytes"), [bytes]);
    let (mut free, mut waited, mut longest) = (0.0f64, 0.0, 0.0f64);
    for s in &sent {
        let arrives = (s.time - sent[0].time) as f64 / 1e9;
        let wait = (free - arrives).max(0.0);
        free = arrives + wait + f64::from(s.len) * 8.0 / 12e6;
        waited += wait;
        longest = longest.max(wait);
    }
    let mean = outcome.queues.number("delay_mean_s", 0).unwrap();
    let expected = waited / sent.len() as f64;
    assert!(expected > 1e-4 && (mean / expected - 1.0).abs() < 1e-4, "{mean} {expected}");
    let max = outcome.queues.number("delay_max_s", 0).unwrap();
    assert!((max / longest - 1.0).abs() < 1e-6, "{max} {longest}");
}

#[test]
fn each_flow_has_what_it_sent() {
    let (file, sent) = generated("flows.pcapng", 0.0);
    let outcome = run(&scenario(&file, ""));
    // Flows are numbered as they first appear.
    let mut known = Vec::new();
    let (mut packets, mut bytes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    for s in &sent {
        let flow = wire::parse(&s.head, wire::Layer::Ip).flow;
        let at = known.iter().position(|f| *f == flow).unwrap_or_else(|| {
            known.push(flow);
            packets.push(0);
            bytes.push(0);
            starts.push(Some((s.time - sent[0].time) as f64 / 1e9));
            known.len() - 1
        });
        packets[at] += 1;
        bytes[at] += u64::from(s.len);
    }
    assert_eq!(counts(&outcome.summary, "flows"), [known.len() as u64]);
    assert_eq!(counts(&outcome.flows, "arrivals"), packets);
    assert_eq!(counts(&outcome.flows, "arrivals_bytes"), bytes);
    assert_eq!(outcome.flows.real("start_s"), starts);
    let goodput: f64 = outcome.flows.real("goodput_bps").iter().flatten().sum();
    let all: u64 = bytes.iter().sum();
    assert!((goodput / (all as f64 * 8.0 / 10.0) - 1.0).abs() < 1e-9, "{goodput}");
}

/// Beside other traffic, whose flows come first; groups are counted apart.
#[test]
fn other_traffic_goes_beside_it() {
    let (file, sent) = generated("beside.pcapng", 0.0);
    let text = scenario(&file, "").replacen(
        "[[traffic]]",
        "[measure]\ninterval = \"1s\"\ngroups = true\n[[traffic]]\ntransport = \"cbr\"\nflows = 3\n\
         rate = \"1mbit\"\nfrom = [\"a\"]\nto = [\"b\"]\n[[traffic]]",
        1,
    );
    let outcome = run(&text);
    let arrivals = counts(&outcome.flows, "arrivals");
    assert_eq!(arrivals[3..].iter().sum::<u64>(), sent.len() as u64);
    assert_eq!(arrivals[..3], [1250; 3]);
    let Some(Column::Text(groups)) = outcome.groups.column("group") else { panic!() };
    let goodput = outcome.groups.real("goodput_bps").iter().zip(groups);
    let bits: f64 = goodput.filter(|(_, g)| *g == "captured").filter_map(|(bps, _)| *bps).sum();
    let all: u64 = sent.iter().map(|s| u64::from(s.len)).sum();
    assert!((bits / (all as f64 * 8.0) - 1.0).abs() < 1e-9, "{bits}");
}

/// From 3 s on and until 4 s: the first second of the file.
#[test]
fn start_shifts_and_stop_cuts() {
    let (file, sent) = generated("start.pcapng", 0.0);
    let outcome = run(&scenario(&file, "start = \"3s\"\nstop = \"4s\""));
    let within = sent.iter().filter(|s| s.time - sent[0].time < 1_000_000_000).count();
    assert_eq!(counts(&outcome.queues, "arrivals"), [within as u64]);
    assert_eq!(outcome.flows.real("start_s")[0], Some(3.0));
}

/// A queue that marks every packet it can: the ECN-capable ones of the file; or all.
#[test]
fn ecn_fields_are_those_of_the_file() {
    let (file, sent) = generated("ecn.pcapng", 0.3);
    let capable = sent.iter().filter(|s| s.head[1] != 0).count() as u64;
    assert!(capable > 0 && capable < sent.len() as u64);
    for (more, expected) in [("", capable), ("ecn = true", sent.len() as u64)] {
        let text = scenario(&file, more)
            .replace("\"droptail\"", "\"bernoulli\"\nparams = { p = 1, ecn = true }");
        let outcome = run(&text);
        assert_eq!(counts(&outcome.queues, "marks"), [expected]);
        assert_eq!(counts(&outcome.queues, "drops"), [sent.len() as u64 - expected]);
    }
}

/// Packets of one instant keep the order of the file: the buffer has room for one, so that of three
/// at 5 ms the first is sent, the second waits and the third is dropped, whatever their flows'
/// numbers.
#[test]
fn order_within_an_instant() {
    let head = |flow: u8| {
        let mut head = vec![0x45, 0, 0, 100, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, flow];
        head.extend([192, 0, 2, 1, 0, 7, 0, 7]);
        head
    };
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let numbered = [0, 1, 2].map(|flow| (u64::from(flow) * 1_000_000, 100, head(flow)));
        let burst = order.map(|flow| (5_000_000, 100, head(flow)));
        let file = file("order.pcapng", numbered.into_iter().chain(burst));
        let outcome = run(&scenario(&file, "").replace("10000p", "1p"));
        let mut expected = [0; 3];
        expected[usize::from(order[2])] = 1;
        assert_eq!(counts(&outcome.flows, "drops"), expected);
    }
}

#[test]
fn the_canonical_scenario_knows_the_file() {
    let (path, sent) = generated("digest.pcapng", 0.0);
    let text = scenario(&path, "");
    let canonical = capture::scenario(&text, "x").unwrap().to_toml();
    assert!(canonical.contains("digest = \""), "{canonical}");
    let again = capture::scenario(&canonical, "x").unwrap();
    assert_eq!(again.to_toml(), canonical);
    assert_eq!(run(&canonical).decision_hash, run(&text).decision_hash);
    // One packet is 1 ns later.
    let later = sent.iter().enumerate();
    file(
        "digest.pcapng",
        later.map(|(i, s)| (s.time + u64::from(i == 50), s.len, s.head.to_vec())),
    );
    let e = refused(&canonical);
    assert_eq!(e.key, "traffic[0].digest", "{e}");
    assert!(e.hint.contains("not the one"), "{e}");
}

/// Wherever the command was called, a capture is where the scenario says; what is kept of the
/// scenario finds it from anywhere.
#[test]
fn a_capture_lies_beside_its_scenario() {
    let (path, _) = generated("beside.pcapng", 0.0);
    let beside = PathBuf::from(&path).with_file_name("my.toml");
    let text = scenario("beside.pcapng", "");
    let read = capture::scenario(&text, beside.to_str().unwrap()).unwrap();
    let canonical = read.to_toml();
    assert!(canonical.contains(&path), "{canonical}");
    assert_eq!(capture::scenario(&canonical, "<kept>").unwrap().to_toml(), canonical);
    assert_eq!(refused(&text).key, "traffic[0].file");
}

#[test]
fn what_is_wrong_with_a_trace_is_said() {
    let (path, sent) = generated("wrong.pcapng", 0.0);
    let good = scenario(&path, "");
    let line = format!("file = \"{path}\"");
    for (old, new, key, says) in [
        (line.as_str(), "", "traffic[0].file", "needed by trace"),
        (&line, "file = \"none.pcap\"", "traffic[0].file", "none.pcap: No such file"),
        (&line, "file = \"Cargo.toml\"", "traffic[0].file", "byte 0: this is neither pcap nor"),
        ("to = [\"b\"]", "to = [\"b\"]\nstart = \"0s..1s\"", "traffic[0].start", "an instant"),
        ("to = [\"b\"]", "to = [\"b\"]\nstart = \"10s\"", "traffic[0].file", "before the end"),
        ("to = [\"b\"]", "to = [\"b\"]\napp = \"pareto\"", "traffic[0].app", "a trace tells"),
        ("to = [\"b\"]", "to = [\"b\"]\nflows = 1", "traffic[0].flows", "those of the file"),
        ("to = [\"b\"]", "to = [\"b\"]\npacket = \"1000B\"", "traffic[0].packet", "in the mean"),
        ("transport = \"trace\"", "transport = \"sack\"", "traffic[0].file", "for trace only"),
    ] {
        assert!(good.contains(old), "{old}");
        let e = refused(&good.replace(old, new));
        assert_eq!(e.key, key, "{e}");
        assert!(e.to_string().contains(says), "{says}: {e}");
    }
    let long = file("long.pcapng", [(0, 65_536, sent[0].head.to_vec())]);
    assert!(refused(&scenario(&long, "")).to_string().contains("65536 bytes at 0 ns"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(refused(&good).to_string().contains("ends in the middle"));
}

/// Three flows of one rate, whose packets tell that they are best effort, a call and background: CAKE shares by
/// that, as among groups with a `dscp`, unless the group has another.
#[test]
fn a_capture_s_codepoints_and_hosts_are_its_own() {
    let dscps = [0, 46, 8];
    let head = |host: u8, dscp: u8| {
        let mut head = vec![0; 28];
        (head[0], head[1], head[3], head[8], head[9]) = (0x45, dscp << 2, 250, 64, 17);
        head[12..20].copy_from_slice(&[192, 0, 2, host, 198, 51, 100, 1]);
        head[20..28].copy_from_slice(&[0, host, 0, 9, 0, 230, 0, 0]);
        head
    };
    let packet = |k: u64| (k * 333_333, 250, head((k % 3) as u8, dscps[(k % 3) as usize]));
    let file = file("codepoints.pcapng", (0..24_000).map(packet));
    let goodput = |more: &str| {
        let text = scenario(&file, more).replace("12mbit", "3mbit");
        let cake = "\"cake\"\nparams = { diffserv = \"diffserv4\" }";
        let outcome = run(&text.replace("10s", "8s").replace("\"droptail\"", cake));
        [0, 1, 2].map(|i| outcome.flows.number("goodput_bps", i).unwrap() / 1e6)
    };
    let [plain, call, background] = goodput("");
    // A quarter of the link is the calls', a sixteenth the background's, and the rest has what is left.
    assert!(plain > 1.9 && (0.7..0.9).contains(&call), "{plain} {call}");
    assert!((0.15..0.25).contains(&background), "{background}");
    let all = goodput("dscp = \"CS0\"");
    assert!(all.iter().all(|rate| (rate - 1.0).abs() < 0.05), "{all:?}");
}
