//! What a scenario says is what runs.

use sim::results::table::Table;
use sim::{Run, Scenario};

/// What does not fit together is found when the queue is built.
#[test]
fn parameters_that_do_not_fit_together_are_named() {
    let text = r#"
        duration = "1s"
        [network]
        preset = "dumbbell"
        [[queue]]
        aqm = "red"
        buffer = "200kB"
        prefilter = "red-pd"
        prefilter_params = { k = 6 }
        [[traffic]]
        transport = "sack"
    "#;
    let scenario = Scenario::from_toml(text, "x").unwrap();
    let e = Run::new(scenario, text, "x").err().unwrap();
    assert_eq!(e.key, "queue[0].prefilter_params.k", "{e}");
}

/// 2 s of 125 datagrams a second and flow: the long one crosses both queues, three cross each.
#[test]
fn each_bottleneck_of_a_chain_has_its_cross_traffic() {
    let text = r#"
        duration = "2s"
        [network]
        preset = "chain"
        bottlenecks = 2
        cross = 2
        [[queue]]
        aqm = "droptail"
        buffer = "100p"
        [[traffic]]
        name = "long"
        transport = "cbr"
        rate = "1mbit"
        [[traffic]]
        name = "cross"
        flows = 3
        transport = "cbr"
        rate = "1mbit"
        from = ["s*.1"]
        to = ["d*.1"]
        "#;
    let scenario = Scenario::from_toml(text, "x").unwrap();
    let queues = Run::new(scenario, text, "x").unwrap().finish().queues;
    for row in [0, 1] {
        let arrivals = queues.number("arrivals", row).unwrap();
        assert!((990.0..=1000.0).contains(&arrivals), "{arrivals} at queue {row}");
    }
}

/// Mahajan01 §7.4: ten connections, two each of 20, 40, 60, 80 and 100 ms.
#[test]
fn each_group_may_have_its_own_round_trip() {
    let text = r#"
        duration = "1s"
        [network]
        preset = "redpd"
        delay = "5ms"
        left = 5
        right = 5
        access_delay = ["2.5ms", "7.5ms", "12.5ms", "17.5ms", "22.5ms"]
        [[queue]]
        aqm = "droptail"
        buffer = "100p"
        [[traffic]]
        flows = 2
        transport = "sack"
        from = ["n4"]
        to = ["n9"]
        window = "1p"
    "#;
    let scenario = Scenario::from_toml(text, "x").unwrap();
    let flows = Run::new(scenario, text, "x").unwrap().finish().flows;
    // 100 ms and the time to send 1000 + 40 bytes, over 10 Mb/s and twice 100 Mb/s: 0.998 ms.
    let srtt = flows.number("srtt_s", 0).unwrap();
    assert!((0.100_99..0.102).contains(&srtt), "{srtt}");
}

/// 100 packets in the first second, 1000 in the next, 100 in the last.
#[test]
fn a_constant_rate_may_change_at_given_times() {
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
    let outcome = Run::new(scenario, text, "x").unwrap().finish();
    let packets = outcome.summary.number("arrivals", 0).unwrap();
    assert!((1199.0..=1201.0).contains(&packets), "{packets}");
}

/// CoDel drops what waits: of a flow that has ended before the window, more than arrives in it.
#[test]
fn a_loss_is_one_at_most_whatever_waited_before_the_window() {
    let text = r#"
        duration = "3s"
        warmup = "2s"
        [network]
        preset = "dumbbell"
        rate = "1mbit"
        [[queue]]
        aqm = "codel"
        buffer = "1000p"
        [[traffic]]
        name = "gone"
        transport = "cbr"
        rate = "2mbit"
        stop = "2s"
        [[traffic]]
        name = "thin"
        transport = "cbr"
        rate = "8kbit"
    "#;
    let scenario = Scenario::from_toml(text, "x").unwrap();
    let outcome = Run::new(scenario, text, "x").unwrap().finish();
    let of = |table: &Table, name: &str| table.number(name, 0).unwrap();
    for table in [&outcome.queues, &outcome.flows] {
        assert!(of(table, "drops") > of(table, "arrivals") + 50.0);
    }
    // The link carries 125 packets a second; the other flow has one of them.
    let (dropped, departed) = (of(&outcome.queues, "drops"), of(&outcome.queues, "departures"));
    assert!((70.0..=90.0).contains(&departed));
    assert_eq!(of(&outcome.queues, "loss"), dropped / (dropped + departed));
    let share = of(&outcome.flows, "loss");
    assert!((share - dropped / (dropped + departed)).abs() < 0.01, "{share}");
}
