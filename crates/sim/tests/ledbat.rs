//! LEDBAT against what can be worked out by hand.

use sim::{Outcome, Run, Scenario};

/// 10 Mb/s, 40 ms and what a packet of 1500 bytes takes (1.2 ms); a queue without bound to speak of.
fn run(traffic: &str) -> Outcome {
    run_for([60, 120], traffic)
}

/// Measured from one of two times to the other, s.
fn run_for([from, to]: [u32; 2], traffic: &str) -> Outcome {
    let text = format!(
        "duration = \"{to}s\"\nwarmup = \"{from}s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10mbit\"\n\
         delay = \"20ms\"\n[[queue]]\nlink = \"a->b\"\naqm = \"droptail\"\nbuffer = \"400p\"\n{traffic}"
    );
    Scenario::from_toml(&text, "ledbat")
        .and_then(|scenario| Run::new(scenario, &text, "ledbat"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

fn group(keys: &str) -> String {
    format!("[[traffic]]\nfrom = [\"a\"]\nto = [\"b\"]\npacket = \"1500B\"\n{keys}\n")
}

fn summary(o: &Outcome, name: &str) -> f64 {
    o.summary.number(name, 0).unwrap()
}

fn goodput(o: &Outcome, flow: usize) -> f64 {
    o.flows.number("goodput_bps", flow).unwrap()
}

/// §2.4.2 with BASE_HISTORY of ten minutes: where nobody else empties the queue, the base is the sender's own
/// queue after that, and the target comes on top.
#[test]
fn alone_it_adds_its_target_each_ten_minutes() {
    for (times, ms) in [([60, 600], 100.0), ([700, 1050], 200.0), ([1300, 1650], 300.0)] {
        let o = run_for(times, &group("transport = \"ledbat\""));
        let waits = 1e3 * summary(&o, "delay_mean_s");
        assert!((ms - 3.9..ms + 0.9).contains(&waits), "{times:?} s: {waits}");
    }
}

/// §2.4.2: alone it has the link, and packets wait for the target: what the path holds and the target's worth
/// of packets are under way.
#[test]
fn alone_it_keeps_its_target_in_the_queue() {
    for (target, ms) in [("100ms", 100.0), ("25ms", 25.0), ("5ms", 5.0)] {
        let o = run(&group(&format!("transport = \"ledbat\"\ntarget = \"{target}\"")));
        assert!(summary(&o, "utilisation") > 0.999, "{target}");
        let waits = 1e3 * summary(&o, "delay_mean_s");
        // Whole packets: a window between two sends the lesser.
        assert!((ms - 1.3..ms + 0.3).contains(&waits), "{target}: {waits}");
        assert_eq!(summary(&o, "drops"), 0.0);
    }
}

/// Beside TCP, which fills 480 ms of buffer and never empties it, two packets a round trip are left.
#[test]
fn beside_tcp_it_has_two_packets_a_round_trip() {
    let tcp = group("transport = \"sack\"\nflows = 4\nstart = \"0s..1s\"");
    let o = run(&format!("{tcp}{}", group("transport = \"ledbat\"")));
    let round = 0.0412 + summary(&o, "delay_mean_s");
    let left = 2.0 * 12_000.0 / round;
    assert!((goodput(&o, 4) / left - 1.0).abs() < 0.1, "{} {left}", goodput(&o, 4));
}

/// Two that begin together share alike. One that comes later takes the queue that it finds for the path's
/// delay, and adds a target of its own: it has more than the first.
#[test]
fn a_latecomer_has_the_advantage() {
    let o = run(&group("transport = \"ledbat\"\nflows = 2"));
    let share = goodput(&o, 0) / (goodput(&o, 0) + goodput(&o, 1));
    assert!((0.4..0.6).contains(&share), "{share}");
    let first = group("transport = \"ledbat\"");
    let o = run(&format!("{first}{}", group("transport = \"ledbat\"\nstart = \"20s\"")));
    assert!(goodput(&o, 1) > 3.0 * goodput(&o, 0), "{} {}", goodput(&o, 0), goodput(&o, 1));
    let waits = summary(&o, "delay_mean_s");
    assert!((0.15..0.21).contains(&waits), "{waits}");
}
