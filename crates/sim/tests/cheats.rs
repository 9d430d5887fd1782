//! Receivers that cheat (Savage et al., *TCP Congestion Control with a Misbehaving Receiver*, 1999): what
//! their flows take from honest ones beside them, and what protects these.

use sim::{Run, Scenario};

/// The throughput of a flow whose receiver is as said, by that of an honest one of its kind beside it.
fn takes(receiver: &str, keys: &str, queue: &str) -> f64 {
    let group = |name: &str, receiver: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\ntransport = \"sack\"\nreceiver = \"{receiver}\"\n{keys}\n"
        )
    };
    let text = format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n[network]\npreset = \"dumbbell\"\nrate = \"10mbit\"\n\
         [[queue]]\n{queue}\n{}{}",
        group("cheat", receiver),
        group("honest", "honest")
    );
    let scenario = Scenario::from_toml(&text, "cheats").unwrap_or_else(|e| panic!("{e}"));
    let done = Run::new(scenario, &text, "cheats").unwrap_or_else(|e| panic!("{e}")).finish();
    let [cheat, honest] = [0, 1].map(|flow| done.flows.number("throughput_bps", flow).unwrap());
    cheat / honest
}

const FIFO: &str = "aqm = \"droptail\"\nbuffer = \"60p\"";
const MARKS: &str = "aqm = \"codel\"\nbuffer = \"200p\"";

#[test]
fn two_honest_receivers_share() {
    for (keys, queue) in [("", FIFO), ("rack = true", FIFO), ("ecn = true", MARKS)] {
        let share = takes("honest", keys, queue);
        assert!((0.6..1.6).contains(&share), "{keys}: {share}");
    }
}

/// A window that grows by acknowledgements grows ten times as fast; one that counts packets does not
/// (RFC 3465).
#[test]
fn acknowledgements_in_parts_open_a_window_that_counts_acknowledgements() {
    let share = takes("ack-division", "", FIFO);
    assert!(share > 2.0, "{share}");
    let share = takes("ack-division", "count_packets = true\nrack = true", FIFO);
    assert!((0.6..1.6).contains(&share), "{share}");
}

#[test]
fn who_never_hears_of_losses_takes_the_link() {
    for keys in ["", "rack = true\ntimestamps = true"] {
        let share = takes("optimistic", keys, FIFO);
        assert!(share > 5.0, "{keys}: {share}");
    }
}

#[test]
fn who_never_hears_of_marks_takes_the_link() {
    for keys in ["ecn = true", "ecn = true\nrack = true"] {
        let share = takes("no-echo", keys, MARKS);
        assert!(share > 5.0, "{keys}: {share}");
    }
}
