//! QUIC of others: what lies between their code and the network.

use sim::results::table::Table;
use sim::{Outcome, Run, Scenario};

/// Seconds, rate, queue, groups.
fn run(queue: &str, groups: &str) -> Outcome {
    quic::register();
    let text = format!(
        "seed = 3\nduration = \"20s\"\nwarmup = \"5s\"\nmeasure = {{ delays = true }}\n[network]\n\
         preset = \"dumbbell\"\nrate = \"10mbit\"\n[[queue]]\n{queue}\n{groups}"
    );
    let scenario = Scenario::from_toml(&text, "quic").unwrap_or_else(|e| panic!("{e}"));
    Run::new(scenario, &text, "quic").unwrap_or_else(|e| panic!("{e}")).finish()
}

const CODEL: &str = "aqm = \"codel\"\nbuffer = \"200p\"\nparams = { ecn = true }";
const DROPTAIL: &str = "aqm = \"droptail\"\nbuffer = \"100p\"";

fn group(keys: &str) -> String {
    format!("[[traffic]]\n{keys}\n")
}

/// Of the first flow.
fn first(flows: &Table, name: &str) -> f64 {
    flows.number(name, 0).unwrap_or_else(|| panic!("no {name}"))
}

/// As in `crates/sim/tests/golden.rs`. The stacks' CUBIC takes the cube root of the platform.
#[test]
fn decisions_are_as_pinned() {
    let apps = [
        "flows = 2",
        "flows = 3\napp = \"exponential\"\non = \"500ms\"\noff = \"300ms\"\nrate = \"2mbit\"\nstop = \"15s\"",
        "flows = 20\napp = \"finite\"\nsize = \"100kB\"\nstart = \"1s..10s\"",
    ];
    let found = ["quinn", "noq"].map(|stack| {
        ["cubic", "newreno"].map(|control| {
            let keys = |app: &&str| {
                group(&format!("transport = \"{stack}\"\ncontrol = \"{control}\"\n{app}"))
            };
            run(CODEL, &apps.iter().map(keys).collect::<String>()).decision_hash
        })
    });
    assert_eq!(
        found,
        [["4765c48b6633841e", "727bcbc60610a03f"], ["5b611fbc07963ec5", "aa5223d31361c24e"]],
        "see the head of crates/sim/tests/golden.rs"
    );
}

/// The longest datagram is longer than the stacks' initial window.
#[test]
fn any_length_of_a_packet_is_sent() {
    for stack in ["quinn", "noq"] {
        for packet in [1500, 12_100, 65_535] {
            let keys = format!("transport = \"{stack}\"\npacket = \"{packet}B\"");
            let goodput = first(&run(DROPTAIL, &group(&keys)).flows, "goodput_bps");
            assert!(goodput > 5e6, "half of the link: {stack}, {packet} bytes, {goodput} b/s");
        }
    }
}

/// All but the headers of a full link is goodput, as with TCP; a loss or a mark lowers the window.
#[test]
fn a_flow_fills_a_link() {
    for stack in ["quinn", "noq"] {
        for (queue, ecn) in [(DROPTAIL, false), (CODEL, false), (CODEL, true)] {
            let keys = format!("transport = \"{stack}\"\necn = {ecn}");
            let Outcome { flows, delays, .. } = run(queue, &group(&keys));
            let of = |name| first(&flows, name);
            let goodput = of("goodput_bps") / 1e7;
            assert!((0.9..1.0).contains(&goodput), "{keys}: {goodput}");
            let [lost, dropped, marked, reduced] =
                ["retransmits", "drops", "marks", "ecn_reductions"].map(of);
            assert!((dropped - lost).abs() <= dropped / 10.0 + 2.0, "{keys}: {lost} of {dropped}");
            assert_eq!((marked > 0.0, reduced > 0.0), (ecn, ecn), "{keys}: {marked} {reduced}");
            assert!((0.04..0.3).contains(&of("srtt_s")), "{keys}: {}", of("srtt_s"));
            let kinds = delays.column("kind");
            assert!(format!("{kinds:?}").contains("round-trip"), "{kinds:?}");
        }
    }
}

/// A transfer takes a handshake of a round trip more than its data, and no other packets than its own.
#[test]
fn transfers_are_completed_in_their_time() {
    for stack in ["quinn", "noq"] {
        let keys = format!(
            "transport = \"{stack}\"\nflows = 3\napp = \"finite\"\nsize = \"100kB\"\nstart = \"6s..18s\""
        );
        let Outcome { flows, .. } = run(DROPTAIL, &group(&keys));
        for row in 0..3 {
            let of = |name| flows.number(name, row).unwrap();
            let took = of("completed_s") - of("start_s");
            // Of 40 ms each: one for the handshake, four for 9, 18, 36 and the rest of 82 packets.
            assert!((0.15..0.35).contains(&took), "{stack}: {took}");
            assert_eq!(of("retransmits"), 0.0);
            assert!((84.0..100.0).contains(&of("arrivals")), "{stack}: {}", of("arrivals"));
        }
    }
}

/// What an application offers at a rate arrives at this rate; nothing is sent once it has stopped.
#[test]
fn an_application_that_offers_little_gets_it_through() {
    for stack in ["quinn", "noq"] {
        let steps = "app = \"schedule\"\nsteps = [[\"0s\", \"1mbit\"], [\"12s\", \"0bit\"]]";
        for (app, expected) in [
            (steps, 7.0 / 15.0),
            ("app = \"schedule\"\nsteps = [[\"0s\", \"1mbit\"]]\nstop = \"8s\"", 3.0 / 15.0),
        ] {
            let Outcome { flows, .. } =
                run(DROPTAIL, &group(&format!("transport = \"{stack}\"\n{app}")));
            let goodput = first(&flows, "goodput_bps") / 1e6;
            assert!((goodput / expected - 1.0).abs() < 0.02, "{stack}: {goodput} for {expected}");
        }
    }
}

/// The stacks begin with a round trip of 333 ms, which nobody has measured.
#[test]
fn a_round_trip_is_one_that_was_measured() {
    quic::register();
    for stack in ["quinn", "noq"] {
        let text = format!(
            "duration = \"100ms\"\nnetwork = {{ preset = \"dumbbell\", delay = \"1s\" }}\n[[queue]]\n{CODEL}\n\
             [[traffic]]\ntransport = \"{stack}\""
        );
        let scenario = Scenario::from_toml(&text, "quic").unwrap();
        let Outcome { flows, .. } = Run::new(scenario, &text, "quic").unwrap().finish();
        assert_eq!(flows.number("srtt_s", 0), None, "{stack}");
    }
}

/// Two runs in two processes: this one, and this test's program for the other.
#[test]
fn two_processes_decide_alike() {
    const CHILD: &str = "BLUEWATER_QUIC_CHILD";
    let hash = || {
        let groups =
            ["quinn", "noq"].map(|stack| group(&format!("transport = \"{stack}\"\nflows = 2")));
        run(CODEL, &groups.concat()).decision_hash
    };
    if std::env::var_os(CHILD).is_some() {
        println!("hash {}", hash());
        return;
    }
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "two_processes_decide_alike", "--nocapture"];
    let child =
        std::process::Command::new(program).args(arguments).env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(said.contains(&format!("hash {}", hash())), "{said}");
}

/// A receiver with more than 1024 gaps in its stream closes the connection (`connection/assembler.rs` of both).
/// Slow start makes as many where it loses every other packet of a large window.
#[test]
fn too_many_gaps_end_a_connection() {
    for stack in ["quinn", "noq"] {
        let goodput = |rate: &str, buffer: &str| {
            quic::register();
            let text = format!(
                "duration = \"8s\"\nwarmup = \"4s\"\n[network]\npreset = \"dumbbell\"\n\
                 rate = \"{rate}\"\ndelay = \"75ms\"\n[[queue]]\naqm = \"droptail\"\n\
                 buffer = \"{buffer}\"\n[[traffic]]\ntransport = \"{stack}\"\npacket = \"1500B\""
            );
            let scenario = Scenario::from_toml(&text, "quic").unwrap_or_else(|e| panic!("{e}"));
            let run = Run::new(scenario, &text, "quic").unwrap_or_else(|e| panic!("{e}"));
            let outcome = run.finish();
            (first(&outcome.flows, "goodput_bps"), outcome.broken)
        };
        let (none, broken) = goodput("100mbit", "1333p");
        assert_eq!((none, broken.len()), (0.0, 1), "{stack}: {broken:?}");
        assert!(broken[0].2.contains("too many gaps"), "{stack}: {broken:?}");
        let (all, broken) = goodput("10mbit", "133p");
        assert!(all > 8e6 && broken.is_empty(), "{stack}: {broken:?}");
    }
}
