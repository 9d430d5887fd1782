//! Jain's index of a queue: over the flows that can be compared there, and no others.

use sim::{Outcome, Run, Scenario};

fn run(text: &str) -> Outcome {
    Scenario::from_toml(text, "fairness")
        .and_then(|scenario| Run::new(scenario, text, "fairness"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

/// A fair queue with these groups.
fn beside(groups: &str) -> Option<f64> {
    let outcome = run(&format!(
        r#"
        duration = "40s"
        warmup = "10s"
        [network]
        preset = "dumbbell"
        rate = "20mbit"
        delay = "20ms"
        [[queue]]
        aqm = "fq-codel"
        buffer = "1000p"
        {groups}
        "#
    ));
    assert_eq!(outcome.summary.real("jain"), &outcome.queues.real("jain")[..1]);
    outcome.queues.real("jain")[0]
}

const LONG: &str = "[[traffic]]\nname = \"long\"\ntransport = \"cubic\"\nflows = 4\n";

/// Four flows that share evenly do so whatever small, finite, late or early traffic is beside them.
#[test]
fn what_cannot_be_compared_is_left_out() {
    let alone = beside(LONG).unwrap();
    assert!(alone > 0.99, "{alone}");
    for other in [
        "transport = \"cbr\"\nrate = \"64kbit\"\nflows = 2",
        "transport = \"cubic\"\napp = \"finite\"\nsize = \"100kB\"\nflows = 20\nstart = \"10s..35s\"",
        "transport = \"cubic\"\napp = \"web\"\nsize = \"20kB\"\noff = \"1s\"\nflows = 5",
        "transport = \"cubic\"\napp = \"exponential\"\non = \"1s\"\noff = \"1s\"",
        "transport = \"scream\"\nmax_rate = \"500kbit\"",
        "transport = \"cubic\"\nstart = \"30s\"",
        "transport = \"cubic\"\nstop = \"15s\"",
    ] {
        let mixed = beside(&format!("{LONG}[[traffic]]\nname = \"other\"\n{other}")).unwrap();
        assert!(mixed > 0.99, "{mixed} beside {other}");
    }
    // Of what always has data to send, every kind counts.
    let windows = beside(&format!(
        "{LONG}[[traffic]]\nname = \"window\"\ntransport = \"window\"\nwindow = 2\nflows = 4"
    ));
    assert!(windows.is_some_and(|index| index < 0.9), "{windows:?}");
}

#[test]
fn fewer_than_two_have_no_index() {
    assert_eq!(beside("[[traffic]]\ntransport = \"cubic\""), None);
    assert_eq!(beside("[[traffic]]\ntransport = \"cbr\"\nrate = \"1mbit\"\nflows = 5"), None);
    assert_eq!(beside("[[traffic]]\ntransport = \"cubic\"\nflows = 2\nstart = \"10001ms\""), None);
    assert!(beside("[[traffic]]\ntransport = \"cubic\"\nflows = 2\nstart = \"10s\"").is_some());
}

/// Of a chain each queue has the index of the flows that cross it: the first that of one long flow
/// and one beside it, the second that of a long flow alone; what goes back has none.
#[test]
fn each_queue_has_its_own_flows() {
    let outcome = run(r#"
        duration = "40s"
        warmup = "10s"
        [network]
        preset = "chain"
        bottlenecks = 2
        rate = "20mbit"
        cross = 1
        [[queue]]
        link = "A->B"
        aqm = "fq-codel"
        buffer = "1000p"
        [[queue]]
        link = "B->C"
        aqm = "fq-codel"
        buffer = "1000p"
        [[queue]]
        link = "B->A"
        aqm = "droptail"
        buffer = "1000p"
        [[traffic]]
        name = "long"
        transport = "cubic"
        [[traffic]]
        name = "cross"
        transport = "cubic"
        from = ["s1.0"]
        to = ["d1.0"]
    "#);
    let goodput = |i: usize| outcome.flows.real("goodput_bps")[i].unwrap();
    let (long, cross) = (goodput(0), goodput(1));
    let both = (long + cross).powi(2) / (2.0 * (long * long + cross * cross));
    let [first, second, back] = outcome.queues.real("jain")[..] else { panic!("three queues") };
    assert!(first.is_some_and(|index| (index - both).abs() < 1e-12), "{first:?} for {both}");
    assert_eq!([second, back], [None, None]);
}

/// The share that a host of a home with eight flows gets of a line, beside a host with one.
fn busy_host_gets(way: [&str; 2], number: &str, queue: &str) -> f64 {
    let [from, to] = way;
    let group = |flows, host| {
        format!(
            "[[traffic]]\ntransport = \"cubic\"\nflows = {flows}\n{number} = {host}\n\
             from = [\"{from}\"]\nto = [\"{to}\"]\n"
        )
    };
    let outcome = run(&format!(
        r#"
        duration = "30s"
        warmup = "10s"
        link = [{{ from = "home", to = "net", rate = "10mbit", delay = "10ms" }}]
        [[queue]]
        link = "{from}->{to}"
        aqm = "cake"
        buffer = "500p"
        {queue}
        {}{}
        "#,
        group(8, 1),
        group(1, 2),
    ));
    let goodput: Vec<f64> = outcome.flows.real("goodput_bps").iter().flatten().copied().collect();
    goodput[..8].iter().sum::<f64>() / goodput.iter().sum::<f64>()
}

/// Both hosts share equally where CAKE tells them apart. With one address for both, flows do: 8/9.
#[test]
fn hosts_behind_a_translator_share_equally_where_cake_knows_them() {
    for (way, number, isolation) in
        [(["home", "net"], "host", "dual-srchost"), (["net", "home"], "peer", "dual-dsthost")]
    {
        let share = |translated: &str| {
            let queue = format!("params = {{ isolation = \"{isolation}\" }}\n{translated}");
            busy_host_gets(way, number, &queue)
        };
        let known = share("");
        assert!((known - 0.5).abs() < 0.05, "{isolation}: {known}");
        let hidden = share(&format!("translated = \"{number}\""));
        assert!((hidden - 8.0 / 9.0).abs() < 0.05, "{isolation}: {hidden}");
        // The address of the other side says nothing of them.
        let other = if number == "host" { "peer" } else { "host" };
        assert_eq!(share(&format!("translated = \"{other}\"")), known);
    }
}

/// Whatever the link has, each flow gets its rate and no more, whether it responds to losses or not.
#[test]
fn fq_holds_each_flow_to_its_rate() {
    let outcome = run(r#"
        duration = "20s"
        warmup = "5s"
        [network]
        preset = "dumbbell"
        rate = "20mbit"
        delay = "10ms"
        [[queue]]
        aqm = "fq"
        buffer = "10000p"
        params = { maxrate = "2mbit" }
        [[traffic]]
        transport = "cubic"
        flows = 3
        [[traffic]]
        transport = "cbr"
        rate = "5mbit"
        "#);
    for goodput in outcome.flows.real("goodput_bps").iter().flatten() {
        assert!((goodput / 2e6 - 1.0).abs() < 0.01, "{goodput}");
    }
    let used = outcome.summary.real("utilisation")[0].unwrap();
    assert!((used - 0.4).abs() < 0.01, "{used}");
}
