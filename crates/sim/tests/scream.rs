//! SCReAM: alone, with a link that changes, beside its like and beside TCP.

use sim::{Outcome, Run, Scenario};

/// A bottleneck of `rate` with 50 ms each way, drop-tail of 300 ms unless `queue` says otherwise.
fn run(link: &str, queue: &str, traffic: &str) -> Outcome {
    let text = format!(
        "duration = \"100s\"\nwarmup = \"20s\"\n[measure]\ninterval = \"1s\"\ngroups = true\n\
         delays = true\ncalls = true\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"50ms\"\n{link}\n\
         [[queue]]\nlink = \"a->b\"\n{queue}\n{traffic}"
    );
    Scenario::from_toml(&text, "scream")
        .and_then(|scenario| Run::new(scenario, &text, "scream"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

const DROPTAIL: &str = "aqm = \"droptail\"\nbuffer = \"300kB\"";

fn group(name: &str, keys: &str) -> String {
    format!("[[traffic]]\nname = \"{name}\"\nfrom = [\"a\"]\nto = [\"b\"]\n{keys}\n")
}

fn media(keys: &str) -> String {
    group("media", &format!("transport = \"scream\"\npacket = \"1200B\"\n{keys}"))
}

/// Goodput of each flow in the window, bit/s.
fn goodputs(outcome: &Outcome, flows: usize) -> Vec<f64> {
    (0..flows).map(|i| outcome.flows.number("goodput_bps", i).unwrap()).collect()
}

/// RFC 8298 §4.1.3: from 300 kb/s on by a half each second up to 400 kb/s, then by 200 kb/s: 6.2 s to
/// 1.5 Mb/s, and the encoder's greatest rate from then on; nothing waits anywhere.
#[test]
fn with_room_it_ramps_up_to_its_greatest_rate() {
    let outcome = run("rate = \"10mbit\"", DROPTAIL, &media(""));
    let at = |second: usize| outcome.groups.number("goodput_bps", second).unwrap();
    assert!(at(4) < 1.3e6, "{}", at(4));
    assert!(at(8) > 1.45e6, "{}", at(8));
    let [rate] = goodputs(&outcome, 1)[..] else { panic!() };
    assert!((rate - 1.5e6).abs() < 0.01e6, "{rate}");
    let value = |name: &str| outcome.calls.number(name, 0).unwrap();
    // 50 ms, a packet's 0.96 ms, and what a frame takes at the pace of the window.
    let late = value("delay_p99_s");
    assert!(value("loss") == 0.0 && late < 0.09, "{late}");
}

/// In a pause nothing comes; after it the rate of before does, as the encoder and the window keep it (RFC 8836,
/// requirement 5), where a start takes six seconds.
#[test]
fn after_a_pause_it_goes_on_at_its_rate() {
    let outcome = run("rate = \"10mbit\"", DROPTAIL, &media("pause = [\"40s\", \"60s\"]"));
    let at = |second: usize| outcome.groups.number("goodput_bps", second).unwrap();
    assert!((42..59).all(|second| at(second) == 0.0));
    for second in [38, 62] {
        assert!(at(second) > 1.45e6, "{second}: {}", at(second));
    }
}

/// The queue stays about the target of 0.1 s. Where the target may go up it does so for a queue of its
/// own making, which the RFC warns of (§4.1.2.3), up to 0.4 s.
#[test]
fn alone_it_fills_a_link_to_its_target() {
    for rate in [500, 1000, 2000, 5000] {
        let of = |compete: bool| {
            let keys = format!("max_rate = \"8mbit\"\ncompete = {compete}");
            let outcome = run(&format!("rate = \"{rate}kbit\""), DROPTAIL, &media(&keys));
            let [goodput] = goodputs(&outcome, 1)[..] else { panic!() };
            assert!(goodput > 0.95e3 * f64::from(rate), "{rate} kb/s: {goodput}");
            ["delay_mean_s", "delay_p95_s"].map(|name| outcome.delays.number(name, 0).unwrap())
        };
        let [mean, late] = of(false);
        assert!(mean < 0.11 && late < 0.15, "{rate} kb/s: {mean} {late}");
        let [more, late] = of(true);
        assert!(more > mean && late < 0.45, "{rate} kb/s: {more} {late}");
    }
}

/// From 2 Mb/s to 500 kb/s after 50 s: the link stays full, and ten seconds later the queue is short.
#[test]
fn it_follows_a_link_that_gets_slower() {
    let link = "rate = \"2mbit\"\n\
                rate_trace = { steps = [[\"0s\", \"2mbit\"], [\"50s\", \"500kbit\"]], repeat = false }";
    let outcome = run(link, DROPTAIL, &media("max_rate = \"2500kbit\"\ncompete = false"));
    let backlog = |second: usize| outcome.series.number("backlog_bytes", second).unwrap();
    let after = (60..100).map(backlog).sum::<f64>() / 40.0;
    // 0.1 s of 500 kb/s are 6250 bytes.
    assert!(after < 2.0 * 6250.0, "{after}");
    let sent: f64 =
        (53..60).map(|second| outcome.groups.number("goodput_bps", second).unwrap()).sum();
    assert!((0.9..=1.01).contains(&(sent / 7.0 / 500e3)), "{sent}");
}

/// Two flows of the same round trip share; a long TCP flow leaves it something, whatever the buffer.
#[test]
fn it_shares_with_its_like_and_lives_beside_tcp() {
    let keys = "flows = 2\nstart = \"0s..10s\"\nmax_rate = \"2500kbit\"";
    let outcome = run("rate = \"2mbit\"", DROPTAIL, &media(keys));
    let [one, two] = goodputs(&outcome, 2)[..] else { panic!() };
    assert!(one.min(two) > 0.3 * one.max(two), "{one} {two}");
    let tcp = group("tcp", "transport = \"sack\"");
    for buffer in ["25kB", "75kB"] {
        let queue = format!("aqm = \"droptail\"\nbuffer = \"{buffer}\"");
        let both = media("max_rate = \"2500kbit\"") + &tcp;
        let outcome = run("rate = \"2mbit\"", &queue, &both);
        let [media, tcp] = goodputs(&outcome, 2)[..] else { panic!() };
        assert!(media > 0.1e6 && tcp > 0.1e6, "{buffer}: {media} {tcp}");
    }
}
