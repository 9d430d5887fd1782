//! Access points, against closed formulas and against themselves.

use aqm::Duration;
use aqm::fair::wifi::Air;
use sim::results::table::Column;
use sim::{Outcome, Run, Scenario};

fn run(text: &str, folding: bool, threads: usize) -> Outcome {
    let scenario = Scenario::from_toml(text, "wifi").unwrap_or_else(|e| panic!("{e}"));
    let run = Run::new(scenario, text, "wifi").unwrap().with_folding(folding);
    let mut run = run.with_threads(Some(threads));
    while run.advance(Duration::from_micros(12_347)) {}
    run.finish()
}

/// A server behind an access point with these keys, whose queue has these, and its traffic.
fn network(wifi: &str, queue: &str, traffic: &str) -> String {
    format!(
        r#"
        duration = "62s"
        warmup = "2s"
        [[link]]
        from = "server"
        to = "ap"
        rate = "1gbit"
        delay = "5ms"
        [[link]]
        from = "ap"
        to = "home"
        rate = "144.4mbit"
        delay = "0s"
        duplex = false
        wifi = {{ {wifi}, station = [{{ peer = "1", rate = "7.2mbit" }}, {{ peer = "2..3", rate = "144.4mbit" }}] }}
        [[link]]
        from = "home"
        to = "ap"
        rate = "100mbit"
        delay = "0s"
        duplex = false
        [[queue]]
        link = "ap->home"
        {queue}
        {traffic}
        "#
    )
}

fn group(peer: usize, keys: &str) -> String {
    format!(
        "[[traffic]]\nname = \"g{peer}\"\nfrom = [\"server\"]\nto = [\"home\"]\npacket = \"1500B\"\n\
         peer = {peer}\n{keys}\n"
    )
}

/// Datagrams for each of the three stations, more than they get.
fn saturated(wifi: &str) -> Outcome {
    let datagrams = "transport = \"cbr\"\nrate = \"60mbit\"\ngaps = \"poisson\"";
    let traffic: String = [1, 2, 3].map(|peer| group(peer, datagrams)).concat();
    run(&network(wifi, "aqm = \"droptail\"\nbuffer = \"200p\"", &traffic), true, 1)
}

/// A column of the table of stations, for stations 1, 2, 3.
fn of(outcome: &Outcome, column: &str) -> [f64; 3] {
    [0, 1, 2].map(|row| outcome.stations.number(column, row).unwrap())
}

const RATES: [f64; 3] = [7.2e6, 144.4e6, 144.4e6];
/// Frames of 1500 bytes in an aggregate at these rates: 4 ms, and 65 535 bytes.
const MOST: [f64; 3] = [2.0, 42.0, 42.0];

/// What an aggregate of no frames takes at each rate, and what each frame of 1500 bytes adds, s.
fn costs() -> [(f64, f64); 3] {
    RATES.map(|rate| {
        let around = Air::default().overhead.as_secs_f64() + 58.0 * 8.0 / rate;
        (around, f64::from(Air::framed(1500)) * 8.0 / rate)
    })
}

fn close(what: &str, found: [f64; 3], expected: [f64; 3], within: f64) {
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < within, "{what}: {found} of {expected}");
    }
}

/// In rounds each station sends its longest aggregate. A window of 60 s has 5000 rounds, of which the first and the
/// last may be cut: 0.04 %.
#[test]
fn turns_give_each_station_its_longest_aggregate() {
    let outcome = saturated("schedule = \"turns\"");
    let time: [f64; 3] = std::array::from_fn(|i| costs()[i].0 + MOST[i] * costs()[i].1);
    let round: f64 = time.iter().sum();
    assert_eq!(of(&outcome, "aggregate_mean"), MOST);
    close("rate", of(&outcome, "throughput_bps"), MOST.map(|n| n * 12_000.0 / round), 0.001);
    close("airtime", of(&outcome, "airtime_share"), time.map(|t| t / round), 0.001);
}

/// A third of the airtime each, of which each gets what it would get alone. A deficit is at most a quantum and an
/// aggregate, 4.4 ms of 20 s: 0.02 % at either end.
#[test]
fn fairness_in_airtime_gives_each_station_a_third_of_what_it_had_alone() {
    let outcome = saturated("schedule = \"airtime\"");
    let alone = |i: usize| MOST[i] * 12_000.0 / (costs()[i].0 + MOST[i] * costs()[i].1);
    assert_eq!(of(&outcome, "aggregate_mean"), MOST);
    close("airtime", of(&outcome, "airtime_share"), [1.0 / 3.0; 3], 0.001);
    let rates = [0, 1, 2].map(|i| alone(i) / 3.0);
    close("rate", of(&outcome, "throughput_bps"), rates, 0.001);
}

/// In one queue stations follow each other at random, so that runs of one are geometric: q = 1/3 goes on. A run is
/// cut into aggregates of n, so that there are (1 − q) / (1 − qⁿ) of them a packet. All get as many packets. Of
/// 80 000 packets a third is 3 standard deviations more or less by 3·√(2 / 80 000) = 1.5 %.
#[test]
fn one_queue_gives_all_stations_the_rate_of_the_slowest() {
    let outcome = saturated("schedule = \"fifo\"");
    let q: f64 = 1.0 / 3.0;
    let per_packet = MOST.map(|n| (1.0 - q) / (1.0 - q.powf(n)));
    let time: [f64; 3] = std::array::from_fn(|i| per_packet[i] * costs()[i].0 + costs()[i].1);
    let three: f64 = time.iter().sum();
    close("aggregates", of(&outcome, "aggregate_mean"), per_packet.map(|n| 1.0 / n), 0.015);
    close("rate", of(&outcome, "throughput_bps"), [12_000.0 / three; 3], 0.015);
    close("airtime", of(&outcome, "airtime_share"), time.map(|t| t / three), 0.015);
}

/// Every packet is accounted for, however it is simulated, and the queue's counts are those of its stations.
#[test]
fn nothing_is_lost_and_nothing_depends_on_how_it_is_simulated() {
    let wires = ["", "jitter = \"3ms\"\n        reorder = true\n        loss = \"1%\""];
    for schedule in ["\"fifo\"", "\"fifo\", driver = 40", "\"turns\"", "\"airtime\""] {
        for (aqm, wire) in [("fq-codel", wires[0]), ("pie", wires[1]), ("fq", wires[0])] {
            let traffic = group(1, "transport = \"cubic\"\nflows = 2")
                + &group(3, "transport = \"cubic\"\nflows = 3")
                + &group(7, "transport = \"cbr\"\nrate = \"2mbit\"\necho = true");
            let queue = format!("aqm = \"{aqm}\"\nbuffer = \"100p\"");
            let text = network(&format!("schedule = {schedule}"), &queue, &traffic)
                .replace("62s", "6s")
                .replace(
                    "delay = \"0s\"\n        duplex = false\n        wifi",
                    &format!(
                        "delay = \"1ms\"\n        duplex = false\n        {wire}\n        wifi"
                    ),
                );
            let [whole, plain, threads] = [(true, 1), (false, 1), (true, 2)]
                .map(|(folding, threads)| run(&text, folding, threads));
            assert_eq!(whole.decision_hash, plain.decision_hash, "{schedule} {aqm}");
            assert_eq!(whole.decision_hash, threads.decision_hash, "{schedule} {aqm}");
            assert_eq!(whole.stations, plain.stations);
            let queue = |column: &str| whole.queues.number(column, 0).unwrap();
            for column in ["arrivals", "departures"] {
                let number = |row| whole.stations.number(column, row).unwrap();
                let all: f64 = (0..4).map(number).sum();
                assert_eq!(all, queue(column), "{schedule} {aqm} {column}");
                assert!(all > 1000.0);
            }
            let Some(Column::Text(names)) = whole.stations.column("station") else { panic!() };
            assert_eq!(names[..], ["1", "2", "3", "others"].map(String::from));
        }
    }
}

/// Each key has an effect beside the others.
#[test]
fn each_key_does_something() {
    let traffic: String = [1, 2, 5]
        .map(|peer| group(peer, "transport = \"cbr\"\nrate = \"60mbit\"\ngaps = \"poisson\""))
        .concat();
    let hash = |wifi: &str| {
        let text = network(wifi, "aqm = \"droptail\"\nbuffer = \"100p\"", &traffic);
        run(&text.replace("62s", "3s"), true, 1).decision_hash
    };
    let mut keys = vec!["station"];
    for (key, plain, other) in [
        ("schedule", "schedule = \"turns\"", "schedule = \"airtime\""),
        ("schedule", "schedule = \"turns\"", "schedule = \"fifo\""),
        ("driver", "schedule = \"fifo\"", "driver = 64"),
        ("quantum", "schedule = \"airtime\"", "schedule = \"airtime\", quantum = \"4ms\""),
        ("overhead", "schedule = \"turns\"", "schedule = \"turns\", overhead = \"100us\""),
        ("frames", "schedule = \"turns\"", "schedule = \"turns\", frames = 32"),
        ("bytes", "schedule = \"turns\"", "schedule = \"turns\", bytes = 8000"),
        ("longest", "schedule = \"turns\"", "schedule = \"turns\", longest = \"2ms\""),
    ] {
        assert_ne!(hash(plain), hash(other), "{key}");
        keys.push(key);
    }
    let schema: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let all = schema["$defs"]["WifiSpec"]["properties"].as_object().unwrap();
    assert!(all.keys().all(|key| keys.contains(&key.as_str())), "{all:?}");
}

/// A ping to a station beside downloads; its median time there less the path's 5 ms, ms.
fn ping(peer: usize, wifi: &str, aqm: &str) -> f64 {
    let bulk = "transport = \"cubic\"\npreset = \"linux\"\nflows = 2";
    let bulk: String = [1, 2, 3].map(|peer| group(peer, bulk)).concat();
    let ping = group(peer, "transport = \"cbr\"\necho = true\nrate = \"8kbit\"")
        .replace("1500B", "100B")
        .replace("\"g", "\"ping");
    let queue = format!("aqm = \"{aqm}\"\nbuffer = \"1000p\"");
    let text = network(wifi, &queue, &(bulk + &ping)).replace("62s", "32s");
    let outcome = run(&(text + "[measure]\ndelays = true\n"), true, 1);
    let Some(Column::Text(groups)) = outcome.delays.column("group") else { panic!("no groups") };
    let Some(Column::Text(kinds)) = outcome.delays.column("kind") else { panic!("no kinds") };
    let is_ping = |row: &usize| groups[*row].starts_with("ping") && kinds[*row] == "one-way";
    let row = (0..groups.len()).find(is_ping).unwrap();
    outcome.delays.number("delay_p50_s", row).unwrap() * 1000.0 - 5.0
}

/// A FIFO of 1000 packets takes 0.7 s at 16.6 Mb/s, once TCP has filled it. FQ-CoDel before a driver of 64 packets
/// leaves those, nearly all of them the slow station's: 32 turns of 3.6 ms, and 0.4 ms for each of the others. With a
/// queue for each station a ping waits for the aggregate on the air and the turns of two others, 3.7 ms each.
#[test]
fn a_ping_waits_for_the_queue_the_driver_or_the_turns_of_others() {
    let driver = "schedule = \"fifo\", driver = 64";
    for (peer, wifi, aqm, expected) in [
        (1, driver, "droptail", 300.0..800.0),
        (1, driver, "fq-codel", 80.0..200.0),
        (1, "schedule = \"airtime\"", "fq-codel", 1.0..15.0),
        (2, "schedule = \"airtime\"", "fq-codel", 1.0..15.0),
    ] {
        let found = ping(peer, wifi, aqm);
        assert!(expected.contains(&found), "{peer} {wifi} {aqm}: {found}");
    }
}
