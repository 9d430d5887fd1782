//! Finite transfers and web sessions, counted and timed.

use std::fs;

use sim::{Outcome, Run, Scenario, capture};

fn run(text: &str) -> Outcome {
    Scenario::from_toml(text, "transfers")
        .and_then(|scenario| Run::new(scenario, text, "transfers"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

/// A network with a long buffer and one group.
fn alone(network: &str, group: &str) -> Outcome {
    run(&format!(
        r#"
        duration = "100s"
        [network]
        {network}
        [[queue]]
        aqm = "droptail"
        buffer = "100000p"
        [[traffic]]
        {group}
        "#
    ))
}

fn number(outcome: &Outcome, name: &str, row: usize) -> f64 {
    outcome.transfers.number(name, row).unwrap_or_else(|| panic!("no {name}"))
}

/// What a transfer takes alone is known in closed form: its slowdown is 1, but for what rates carry
/// below the nanosecond.
#[test]
fn a_transfer_that_is_alone_is_not_slowed_down() {
    let networks = [
        "preset = \"dumbbell\"",
        "preset = \"feng\"",
        "preset = \"report\"", // its access links are the slowest
        "preset = \"chain\"\nbottlenecks = 4",
    ];
    for network in networks {
        for packets in [1, 2, 3, 30, 31, 1000, 20_000] {
            for options in [
                "",
                "handshake = true",
                "initial_window = 10\nwindow = \"50p\"",
                "packet = \"40B\"",
            ] {
                let group = format!(
                    "transport = \"newreno\"\napp = \"finite\"\nsize = \"{packets}p\"\n{options}"
                );
                let outcome = alone(network, &group);
                let slowdown = number(&outcome, "slowdown_mean", 0);
                let case = format!("{packets} packets, {options}, {network}: {slowdown}");
                assert!((slowdown - 1.0).abs() < 1e-5, "{case}");
                assert_eq!(number(&outcome, "completed", 0), 1.0);
            }
        }
    }
}

/// A link of 10 Mb/s and 10 ms each way takes 0.8 ms for 1000 bytes, 0.032 ms for a request.
const PLAIN: &str = r#"
    duration = "60s"
    warmup = "5s"
    [measure]
    calls = true
    [[link]]
    from = "a"
    to = "b"
    rate = "10mbit"
    delay = "10ms"
    [[queue]]
    link = "a->b"
    aqm = "droptail"
    buffer = "10p"
"#;

/// Requests of a packet on an idle path: a minute holds 60 s / (2 · 10 + 0.8 + 0.032 ms) of them.
#[test]
fn an_idle_path_is_as_responsive_as_its_round_trip() {
    let probes = "[[traffic]]\nname = \"probe\"\nfrom = [\"a\"]\nto = [\"b\"]\ntransport = \"sack\"\n\
                  app = \"web\"\nsize = \"1p\"\nobjects = 1\noff = \"100ms\"";
    let outcome = run(&format!("{PLAIN}{probes}"));
    let rpm = number(&outcome, "rpm", 0);
    assert!((rpm - 60.0 / 0.020_832).abs() < 0.01, "{rpm}");
    let sizes = ["packets_least", "packets_most", "slowdown_mean"];
    let [least, most, mean] = sizes.map(|name| outcome.slowdowns.number(name, 0).unwrap());
    assert!((least, most) == (1.0, 1.0) && (mean - 1.0).abs() < 1e-5, "{least} {most} {mean}");
}

/// 12 Mb/s over 10 Mb/s with room for ten packets: a packet waits for ten others and itself, 11 · 0.8 +
/// 10 ms, and a sixth is lost. Half of that load loses nothing and never waits.
#[test]
fn a_call_tells_what_its_packets_met() {
    let of = |rate: &str| {
        let call =
            "[[traffic]]\nname = \"call\"\nfrom = [\"a\"]\nto = [\"b\"]\ntransport = \"cbr\"\n";
        let outcome = run(&format!("{PLAIN}{call}rate = \"{rate}\""));
        let value = |name: &str| outcome.calls.number(name, 0).unwrap_or_else(|| panic!("{name}"));
        [value("loss"), value("delay_max_s"), value("jitter_s"), value("r_factor"), value("mos")]
    };
    let [loss, delay, jitter, rating, mos] = of("5mbit");
    assert!(
        loss == 0.0 && (delay - 0.0108).abs() < 1e-9 && jitter < 1e-9,
        "{loss} {delay} {jitter}"
    );
    // 93.2 − 0.024 · (10.8 + 20)
    assert!((rating - 92.4608).abs() < 0.01 && mos > 4.39, "{rating} {mos}");
    let [loss, delay, _, rating, mos] = of("12mbit");
    assert!((loss - 1.0 / 6.0).abs() < 1e-3 && (delay - 0.0188).abs() < 1e-5, "{loss} {delay}");
    // 93.2 − 0.024 · 38.8 − 95 · 16.67 / 41.77
    assert!((rating - 54.36).abs() < 0.5 && mos < 3.0, "{rating} {mos}");
}

/// Transfers that have no time to end are begun, not completed; nor are those cut off by `stop`.
#[test]
fn what_is_not_completed_is_told() {
    let group = r#"
        transport = "sack"
        app = "finite"
        size = "500kB"
        flows = 10
        step = { flows = 1, every = "10s" }
    "#;
    // 500 kB take 0.4 s of the link: the eight that begin from 20 s on.
    let outcome = alone("preset = \"dumbbell\"", &format!("{group}\nstop = \"95s\""));
    assert_eq!((number(&outcome, "began", 0), number(&outcome, "completed", 0)), (10.0, 10.0));
    let outcome = alone("preset = \"dumbbell\"", &format!("{group}\nstop = \"90200ms\""));
    assert_eq!((number(&outcome, "began", 0), number(&outcome, "completed", 0)), (10.0, 9.0));
    let shares = outcome.completions.real("share");
    assert_eq!(shares.last(), Some(&Some(0.9)), "of all that began");
    assert!(shares.is_sorted());
}

#[test]
fn a_web_session_alone_takes_what_its_parts_take() {
    for handshake in [false, true] {
        let group = format!(
            r#"
            transport = "sack"
            app = "web"
            size = "24p"
            off = "1s"
            handshake = {handshake}
            "#
        );
        let outcome = alone("preset = \"dumbbell\"", &group);
        for name in ["began", "completed"] {
            assert_eq!(number(&outcome, name, 0), number(&outcome, name, 1), "one object a page");
        }
        let [requests, slowdown] =
            ["completed", "slowdown_max"].map(|name| number(&outcome, name, 0));
        assert!(slowdown < 1.002, "{slowdown}");
        // 20 ms each way, 0.8 ms a packet: the request, 2, 4, 8 and 10 packets: 40·4 + 9·0.8 ms.
        let handshake_s = if handshake { 0.040_064 } else { 0.0 };
        let time = number(&outcome, "time_mean_s", 0) - handshake_s;
        assert!((time - 0.170_4).abs() < 0.001, "{time}");
        // 100 s of thinking 1 s and waiting: five σ of a Poisson count are 45.
        let expected = 100.0 / (1.0 + time + handshake_s);
        assert!((requests - expected).abs() < 45.0, "{requests} for {expected}");
        let delivered = outcome.flows.number("goodput_bps", 0).unwrap() * 100.0 / 8000.0;
        let rest = delivered - requests * 24.0;
        assert!((0.0..=24.0).contains(&rest), "{delivered} packets for {requests} requests");
    }
}

/// Five objects over two connections come two at a time.
#[test]
fn a_page_takes_as_long_as_its_rounds_of_objects() {
    let page = |connections: u32| {
        let group = format!(
            r#"
            transport = "sack"
            app = "web"
            size = "1p"
            objects = 5
            connections = {connections}
            off = "1s"
            "#
        );
        let outcome = alone("preset = \"dumbbell\"", &group);
        let slots = outcome.summary.number("flows", 0).unwrap();
        assert_eq!(slots, f64::from(connections));
        assert!(number(&outcome, "began", 0) > 5.0 * number(&outcome, "completed", 1) - 1.0);
        number(&outcome, "time_mean_s", 1)
    };
    // A request for one packet takes 40.8 ms.
    for (connections, rounds) in [(1, 5.0), (2, 3.0), (5, 1.0)] {
        let time = page(connections);
        assert!((time / (rounds * 0.0408) - 1.0).abs() < 0.08, "{connections}: {time}");
    }
}

/// Every second packet towards the server is lost: requests, their SYNs and acknowledgements.
#[test]
fn lost_requests_are_repeated() {
    for handshake in [false, true] {
        let outcome = run(&format!(
            r#"
            duration = "400s"
            [network]
            preset = "dumbbell"
            [[queue]]
            link = "B->A"
            aqm = "bernoulli"
            buffer = "1000p"
            params = {{ p = 0.5 }}
            [[traffic]]
            flows = 20
            transport = "sack"
            app = "web"
            size = "1p"
            off = "1s"
            handshake = {handshake}
            "#
        ));
        let (began, completed) = (number(&outcome, "began", 0), number(&outcome, "completed", 0));
        assert!(completed > 900.0 && began - completed <= 20.0, "{completed} of {began}");
        // Half of the requests need a second attempt, 1 s after the first; with a handshake one
        // in four has neither message repeated.
        let median = number(&outcome, "time_p50_s", 0);
        let at_once = outcome
            .completions
            .real("time_s")
            .iter()
            .flatten()
            .zip(outcome.completions.real("share").iter().flatten());
        let quick = at_once.filter(|(time, _)| **time < 0.5).map(|(_, share)| *share);
        let quick = quick.fold(0.0, f64::max);
        let expected = if handshake { 0.25 } else { 0.5 };
        assert!((quick - expected).abs() < 0.05, "{quick} within half a second; median {median}");
    }
}

/// Acknowledgements of one connection after another, which a fair queue on their way keeps apart and
/// so may turn round: none is taken for one of the connection after it, also where it goes ahead of
/// another because echoes are exact. The simulator itself asserts it.
#[test]
fn a_late_acknowledgement_is_of_its_own_connection() {
    let outcome = run(r#"
        duration = "20s"
        [network]
        preset = "dumbbell"
        rate = "1mbit"
        [[queue]]
        aqm = "bernoulli"
        buffer = "10000p"
        params = { p = 0.3, ecn = true }
        [[queue]]
        link = "B->A"
        aqm = "drr"
        buffer = "10000p"
        [[traffic]]
        flows = 40
        transport = "dctcp"
        ecn = true
        app = "web"
        packet = "40B"
        size = "8p"
        objects = 4
        off = "1ms"
        delayed_ack = "40ms"
        [[traffic]]
        flows = 10
        transport = "cbr"
        from = ["B"]
        to = ["A"]
        rate = "40kbit"
        packet = "40B"
    "#);
    assert!(number(&outcome, "completed", 0) > 1000.0);
}

/// Before each packet of a window of one its sender waits 5 ms on average, and the packets of a large
/// window come in order.
#[test]
fn sending_may_take_a_random_time() {
    let group = |options: &str| format!("transport = \"sack\"\n{options}");
    let goodput = |options| {
        let outcome = alone("preset = \"dumbbell\"", &group(options));
        assert_eq!(outcome.flows.number("retransmits", 0), Some(0.0), "in order");
        outcome.flows.number("goodput_bps", 0).unwrap()
    };
    let round = |options| 8000.0 / goodput(options);
    let more = round("window = \"1p\"\nsend_jitter = \"10ms\"") - round("window = \"1p\"");
    // Of 2000 draws the mean is known within 0.065 ms (σ); the band is 5 σ.
    assert!((more - 0.005).abs() < 0.000_33, "{more}");
    assert!(goodput("window = \"20p\"\nsend_jitter = \"10ms\"") > 2e6);
}

/// Events in 20 s of so many flows on an overloaded link.
fn events_of(flows: u32, app: &str) -> f64 {
    let outcome = run(&format!(
        r#"
        duration = "20s"
        [network]
        preset = "dumbbell"
        [[queue]]
        aqm = "red"
        buffer = "100p"
        [[traffic]]
        flows = {flows}
        transport = "sack"
        ecn = true
        {app}
        "#
    ));
    outcome.summary.number("events", 0).unwrap()
}

/// A hundred sources of ten times the link's rate, which keep what they could not send, take no more
/// events than infinite ones; each alone would give 1250 packets a second.
#[test]
fn a_source_that_never_idles_costs_no_event_per_packet_offered() {
    let backlog = "app = \"pareto\"\non = \"2s\"\noff = \"1s\"\nshape = 1.5\nrate = \"10mbit\"\n\
                   unsent = \"backlog\"";
    let (infinite, backlog) = (events_of(100, "app = \"infinite\""), events_of(100, backlog));
    assert!(backlog < 1.1 * infinite, "{backlog} for {infinite}");
}

/// Two thousand sources go on and off 800 000 times; nearly all wait for an acknowledgement or a timer,
/// and what they do meanwhile is made up for then.
#[test]
fn a_source_that_cannot_send_costs_no_event_per_period() {
    let brief = "app = \"exponential\"\non = \"50ms\"\noff = \"50ms\"";
    let (infinite, brief) = (events_of(2000, "app = \"infinite\""), events_of(2000, brief));
    assert!(brief < 1.5 * infinite, "{brief} for {infinite}");
}

/// How many of 4000 flows are of at most so many packets (of 1000 bytes) is what the distribution says,
/// and when the last one begins what the load does: both within 4 σ.
#[test]
fn sizes_and_arrivals_are_as_asked_for() {
    let flows = 4000.0_f64;
    // By hand. Web search: 31 kB are 3437/17 308 of the way from 27 563 (0.3) to 44 871 (0.427 869); the
    // mean is that of the lines. Pareto of shape 1.5 and mean 30 kB begins at 10 kB: 1 − (10/31)^1.5.
    // Log-normal: Φ((ln 3 − ln 30 + 2)/2). The file: a quarter have a packet, the others 3 to 5 kB.
    let folder = std::env::temp_dir().join(format!("bluewater-sizes-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("sizes.csv"), "bytes,share\n1000,0.25\n3000,0.25\n5000,1\n").unwrap();
    let file = folder.join("x.toml").display().to_string();
    for (sizes, packets, expected, mean) in [
        ("sizes = \"web-search\"", 31.0, 0.325_392, 1_490_033.0),
        ("size = \"30kB\"\nsizes = \"pareto 1.5\"", 31.0, 0.816_784, 30_000.0),
        ("size = \"30kB\"\nsizes = \"lognormal 2\"", 3.0, 0.439_873, 30_000.0),
        ("sizes = { file = \"sizes.csv\" }", 1.0, 0.25, 3250.0),
    ] {
        let text = format!(
            r#"
            duration = "20000s"
            [network]
            preset = "dumbbell"
            rate = "10gbit"
            [[queue]]
            aqm = "droptail"
            buffer = "100000p"
            [[traffic]]
            transport = "sack"
            app = "finite"
            flows = {flows}
            load = "4mbit"
            {sizes}
            "#
        );
        let scenario = capture::scenario(&text, &file).unwrap_or_else(|e| panic!("{e}"));
        let outcome = Run::new(scenario, &text, &file).unwrap().finish();
        let table = &outcome.slowdowns;
        let of = |name: &str, row: usize| table.number(name, row).unwrap();
        let rows = 0..table.real("slowdown_mean").len();
        assert_eq!(rows.clone().map(|row| of("completed", row)).sum::<f64>(), flows, "{sizes}");
        let few = rows.filter(|&row| of("packets_most", row) <= packets);
        let share = few.map(|row| of("completed", row)).sum::<f64>() / flows;
        let sigma = (expected * (1.0 - expected) / flows).sqrt();
        assert!((share - expected).abs() < 4.0 * sigma, "{share} for {expected}, {sizes}");
        let last = outcome.flows.real("start_s").last().copied().flatten().unwrap();
        let times = last / (flows * mean * 8.0 / 4e6);
        assert!((times - 1.0).abs() < 4.0 / flows.sqrt(), "{times} times the time, {sizes}");
    }
}

/// What is wrong with it is said with the key, the file, the line and the value; and another file in its
/// place is not taken for it.
#[test]
fn a_file_of_sizes_is_checked() {
    let folder = std::env::temp_dir().join(format!("bluewater-spread-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("x.toml").display().to_string();
    let text = |sizes: &str| {
        format!(
            "duration = \"9s\"\nnetwork = {{ preset = \"dumbbell\" }}\n\
             queue = [{{ aqm = \"droptail\", buffer = \"9p\" }}]\n\
             traffic = [{{ transport = \"sack\", app = \"finite\", sizes = {sizes} }}]\n"
        )
    };
    let read = |text: &str| capture::scenario(text, &file);
    let of_file = text("{ file = \"spread.csv\" }");
    let write = |points: &str| fs::write(folder.join("spread.csv"), points).unwrap();
    write("0,0\n1000,0.5\n900,1\n");
    let error = read(&of_file).unwrap_err().to_string();
    for part in ["x.toml:4: traffic[0].sizes.file", "spread.csv: line 3: 900 is less"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    write("0,0\n1000,1\n");
    let canonical = read(&of_file).unwrap().to_toml();
    assert_eq!(capture::scenario(&canonical, "elsewhere").unwrap().to_toml(), canonical);
    write("0,0\n2000,1\n");
    let error = capture::scenario(&canonical, "elsewhere").unwrap_err().to_string();
    assert!(error.contains("sizes.digest") && error.contains("spread.csv"), "{error}");
    for (sizes, part) in [
        ("{ file = \"none.csv\" }", "none.csv"),
        ("{ file = \"/dev/zero\" }", "/dev/zero: it is no regular file"),
        ("{ file = \".\" }", "it is no regular file"),
        ("{ path = \"x\" }", "path"),
        ("7", "web-search"),
        ("\"zipf\"", "web-search"),
    ] {
        let error = read(&text(sizes)).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("traffic[0].sizes"), "{error}");
    }
    let error = Scenario::from_toml(&of_file, "x").unwrap_err().to_string();
    assert!(error.contains("not read here"), "{error}");
}
