//! A constant window against what can be worked out by hand.

use sim::{Outcome, Run, Scenario};

fn run(window: u32, buffer: u32, more: &str) -> Outcome {
    let text = format!(
        r#"
        duration = "20s"
        warmup = "10s"
        network = {{ preset = "dumbbell" }}
        queue = [{{ aqm = "droptail", buffer = "{buffer}p" }}]
        traffic = [{{ transport = "window", window = {window}, packet = "1000B" {more} }}]
        "#
    );
    Scenario::from_toml(&text, "window")
        .and_then(|scenario| Run::new(scenario, &text, "window"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

/// 10 Mb/s is 0.8 ms a packet. Alone a packet is answered after its round trip R, which one packet
/// tells; a window w sends w packets in R as long as 0.8 w < R, and from there on w − R/0.8 wait or
/// are sent.
#[test]
fn what_the_path_does_not_hold_lies_in_the_queue() {
    let number = |o: &Outcome, name: &str| o.summary.number(name, 0).unwrap();
    let round = 0.0008 / number(&run(1, 100, ""), "utilisation");
    let held = round / 0.0008;
    assert!((20.0..60.0).contains(&held), "{held}");
    for window in [2, 10, 20, 80, 120] {
        let o = run(window, 100, "");
        let share = (f64::from(window) / held).min(1.0);
        assert!((number(&o, "utilisation") - share).abs() < 0.002, "{window}");
        // The packet in transmission is not counted in the queue, but it is in R.
        let waiting = (f64::from(window) - held).max(0.0);
        assert!((number(&o, "queue_mean_packets") - waiting).abs() < 0.02 * held, "{window}");
        assert_eq!(number(&o, "loss"), 0.0);
    }
}

/// A window above what path and buffer hold loses packets, and goes on.
#[test]
fn losses_do_not_end_it() {
    let o = run(200, 50, "");
    assert!(o.summary.number("loss", 0).unwrap() > 0.1);
    assert!(o.summary.number("utilisation", 0).unwrap() > 0.99);
}

/// Four packets of five are lost: now and then both of a window of two, and the timer goes on.
#[test]
fn a_window_that_is_lost_is_sent_anew() {
    let text = r#"
        duration = "100s"
        network = { preset = "dumbbell" }
        queue = [{ aqm = "bernoulli", buffer = "9p", params = { p = 0.8 } }]
        traffic = [{ transport = "window", window = 2, timeout = "200ms" }]
    "#;
    let scenario = Scenario::from_toml(text, "window").unwrap();
    let o = Run::new(scenario, text, "window").unwrap().finish();
    // 0.64 of all windows are lost as a whole: at most 500 timeouts fit, and most of the time is theirs.
    assert!((300.0..500.0).contains(&o.flows.number("timeouts", 0).unwrap()));
    assert!(o.summary.number("packets_delivered", 0).unwrap() > 100.0);
}

#[test]
fn a_stop_ends_it() {
    let o = run(10, 100, ", stop = \"5s\"");
    assert_eq!(o.summary.number("utilisation", 0).unwrap(), 0.0);
    assert_eq!(o.flows.number("timeouts", 0), Some(0.0));
}

/// The path takes longer than the timer: a packet goes each millisecond without an answer, not a window,
/// which would be five million in a second.
#[test]
fn a_timer_shorter_than_the_path_floods_nothing() {
    let text = r#"
        duration = "1s"
        network = { preset = "dumbbell" }
        queue = [{ aqm = "droptail", buffer = "100p" }]
        traffic = [{ transport = "window", window = 5000, timeout = "1ms" }]
    "#;
    let scenario = Scenario::from_toml(text, "window").unwrap();
    let o = Run::new(scenario, text, "window").unwrap().finish();
    let arrivals = o.summary.number("arrivals", 0).unwrap();
    assert!(arrivals < 100_000.0, "{arrivals}");
}
