//! Prague and DualPI2: what L4S is for, and pacing.

use sim::{Outcome, Run, Scenario};

fn run(text: &str) -> Outcome {
    Scenario::from_toml(text, "l4s")
        .and_then(|scenario| Run::new(scenario, text, "l4s"))
        .unwrap_or_else(|e| panic!("{e}"))
        .finish()
}

/// Flows of both kinds on 50 Mb/s; `rtt` in ms.
fn beside(aqm: &str, rtt: u32, groups: &[(&str, u32)]) -> Outcome {
    let groups: String = groups
        .iter()
        .map(|(transport, flows)| {
            // Prague's window is two packets at least anyway, as Linux's others are.
            let least = if *transport == "prague" { "" } else { "min_window = 2\n" };
            format!(
                "[[traffic]]\nname = \"{transport}\"\ntransport = \"{transport}\"\nflows = {flows}\n\
                 ecn = true\npacket = \"1500B\"\nstart = \"0s..1s\"\n{least}"
            )
        })
        .collect();
    run(&format!(
        "duration = \"40s\"\nwarmup = \"15s\"\n\
         network = {{ preset = \"dumbbell\", rate = \"50mbit\", delay = \"{}ms\", \
         access_rate = \"1gbit\", access_delay = \"0s\" }}\n\
         [[queue]]\naqm = \"{aqm}\"\nbuffer = \"1000p\"\n{groups}",
        rtt / 2
    ))
}

/// The mean throughput in Mb/s of the flows from `first` on, `flows` of them.
fn rate(outcome: &Outcome, first: usize, flows: usize) -> f64 {
    let of = |row| outcome.flows.number("throughput_bps", row).unwrap();
    (first..first + flows).map(of).sum::<f64>() / flows as f64 / 1e6
}

/// RFC 9332 §2.1: coupling gives flows of either kind about the same rate, where the scalable ones are
/// paced by the same round trip (Prague treats those below 25 ms as if they were 25).
#[test]
fn prague_and_cubic_share_a_dual_queue() {
    let o = beside("dualpi2", 40, &[("prague", 2), ("cubic", 2)]);
    let (prague, cubic) = (rate(&o, 0, 2), rate(&o, 2, 2));
    assert!((0.5..2.0).contains(&(prague / cubic)), "{prague} and {cubic} Mb/s");
    assert!(2.0 * (prague + cubic) > 45.0, "{prague} and {cubic} Mb/s fill the link");
}

/// One flow of Prague with these keys on 50 Mb/s with DualPI2, `rtt` in ms: Mb/s, and packets sent again.
fn alone(rtt: u32, link: &str, keys: &str) -> (f64, f64) {
    let o = run(&format!(
        "duration = \"40s\"\nwarmup = \"10s\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"50mbit\"\ndelay = \"{}ms\"\n{link}\n\
         [[queue]]\nlink = \"a->b\"\naqm = \"dualpi2\"\nbuffer = \"2000p\"\n\
         [[traffic]]\ntransport = \"prague\"\nfrom = [\"a\"]\nto = [\"b\"]\n\
         ecn = true\npacket = \"1500B\"\n{keys}\n",
        rtt / 2
    ));
    let of = |column| o.flows.number(column, 0).unwrap();
    (of("throughput_bps") / 1e6, of("retransmits"))
}

/// The first window is paced, too: it makes no queue that marks, on which slow start would end. What is
/// paced twice as fast as its window makes none before half of the BDP, a mark leaves half of that, and it
/// grows by a packet a round trip from there: 46 and 24 Mb/s in these 30 s at least.
#[test]
fn pragues_first_window_does_not_mark_itself() {
    for (rtt, least) in [(80, 46.0), (160, 24.0)] {
        let (rate, _) = alone(rtt, "", "initial_window = 10");
        assert!(rate > least, "{rtt} ms: {rate} Mb/s");
    }
}

/// RFC 9331 §4.3: losses are told in units of time, so that a wire on which packets overtake each other
/// by less than a quarter of the round trip has none.
#[test]
fn prague_may_tell_losses_by_time() {
    for keys in ["rack = true", "preset = \"linux\"", "preset = \"modern\""] {
        let (rate, again) = alone(40, "jitter = \"5ms\"\nreorder = true", keys);
        assert!(again < 20.0, "{keys}: {again}");
        assert!(rate > 40.0, "{keys}: {rate} Mb/s");
        let (rate, _) = alone(40, "", keys);
        assert!(rate > 0.98 * 50.0, "{keys}: {rate} Mb/s");
    }
}

/// A single queue of RFC 3168 marks both alike: the scalable flow hardly gives way, and takes nearly all.
#[test]
fn in_one_queue_prague_starves_cubic() {
    let o = beside("pie", 40, &[("prague", 1), ("cubic", 1)]);
    let (prague, cubic) = (rate(&o, 0, 1), rate(&o, 1, 1));
    assert!(prague > 5.0 * cubic, "{prague} and {cubic} Mb/s");
}

/// Prague alone: the link is full and the queue's delay below the step of a millisecond or two.
#[test]
fn prague_alone_fills_the_link_with_a_millisecond_of_queue() {
    for rtt in [10, 40] {
        let o = beside("dualpi2", rtt, &[("prague", 4)]);
        let number = |name| o.summary.number(name, 0).unwrap();
        assert!(number("utilisation") > 0.95, "{rtt} ms: {}", number("utilisation"));
        assert!(number("delay_p99_s") < 0.004, "{rtt} ms: {}", number("delay_p99_s"));
        assert_eq!(number("loss"), 0.0);
    }
}

/// After each pause of a source whose window of 40 packets has survived it, unpaced packets come in a
/// burst at the rate of the access link, and nearly all of them wait at 10 Mb/s; paced over the round
/// trip of 100 ms, at 5.8 Mb/s, none has to.
#[test]
fn pacing_spreads_a_window() {
    let longest = |pacing: bool| {
        let o = run(&format!(
            "duration = \"60s\"\nwarmup = \"20s\"\n\
             network = {{ preset = \"dumbbell\", rate = \"10mbit\", delay = \"50ms\", \
             access_rate = \"1gbit\", access_delay = \"0s\" }}\n\
             queue = [{{ aqm = \"droptail\", buffer = \"100p\" }}]\n\
             traffic = [{{ transport = \"sack\", packet = \"1500B\", window = \"40p\", initial_window = 40, \
             restart_after_idle = false, app = \"exponential\", on = \"1s\", off = \"1s\", pacing = {pacing} }}]"
        ));
        o.summary.number("queue_max_packets", 0).unwrap()
    };
    let (bursts, paced) = (longest(false), longest(true));
    assert!(bursts > 30.0 && paced < 3.0, "{bursts} and {paced} packets");
}

/// Windows in packets, at a share of marks and a round trip in ms, of the authors' own congestion control (class
/// PragueCC of L4STeam/udp_prague, commit e8e3435), fed with acknowledgements of a path of constant delay that
/// marks at random: means over five seeds of 200 s, which lie 2 % about them.
const UDP_PRAGUE: [(f64, u32, f64); 6] = [
    (0.005, 5, 108.4),
    (0.01, 5, 54.3),
    (0.05, 5, 10.4),
    (0.005, 50, 529.4),
    (0.01, 50, 269.3),
    (0.05, 50, 52.3),
];

/// The last 50 s of one seed have a quarter of their marks, and so twice their spread. At 5 ms the window grows
/// by eight packets a second: it is waited for. What is sent is half a packet less here, as a fraction of the
/// window sends none.
#[test]
fn prague_has_the_window_of_its_authors_program() {
    for (share, rtt, expected) in UDP_PRAGUE {
        let text = format!(
            r#"
            duration = "100s"
            [measure]
            interval = "100ms"
            flows = true
            [[link]]
            from = "a"
            to = "b"
            rate = "10gbit"
            delay = "{}us"
            [[queue]]
            link = "a->b"
            aqm = "bernoulli"
            buffer = "10000p"
            params = {{ p = {share}, ecn = true }}
            [[traffic]]
            transport = "prague"
            from = ["a"]
            to = ["b"]
            packet = "1500B"
            ecn = true
            count_packets = true
            initial_window = 10
            "#,
            500 * rtt
        );
        let series = run(&text).flow_series;
        let windows: Vec<f64> =
            (500..).map_while(|row| series.number("cwnd_packets", row)).collect();
        assert_eq!(windows.len(), 500);
        let mean = windows.iter().sum::<f64>() / 500.0;
        assert!((mean / expected - 1.0).abs() < 0.05, "{share}, {rtt} ms: {mean} for {expected}");
    }
}

/// Mb/s of the same program (commit e8e3435 as well) at 10 ms, where marks leave it few packets or less than one: with
/// a window that is rounded down, or of two packets at least, it has 10.6, 4.1 and 2.4.
#[test]
fn prague_has_the_rate_of_its_authors_program_with_few_packets() {
    for (share, expected) in [(0.1, 11.9), (0.2, 5.2), (0.5, 1.37)] {
        let text = format!(
            "duration = \"120s\"\nwarmup = \"20s\"\n\
             [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10gbit\"\ndelay = \"5ms\"\n\
             [[queue]]\nlink = \"a->b\"\naqm = \"bernoulli\"\nbuffer = \"10000p\"\n\
             params = {{ p = {share}, ecn = true }}\n\
             [[traffic]]\ntransport = \"prague\"\nfrom = [\"a\"]\nto = [\"b\"]\npacket = \"1500B\"\n\
             ecn = true\n"
        );
        for keys in ["", "rack = true\naccecn = true", "preset = \"linux\"\naccecn = true"] {
            let o = run(&format!("{text}{keys}\n"));
            let found = rate(&o, 0, 1);
            assert!(
                (found / expected - 1.0).abs() < 0.08,
                "{share} {keys}: {found} for {expected}"
            );
        }
    }
}

/// The least rate is 100 kbit/s: where each packet is marked nothing grows.
#[test]
fn marks_on_every_packet_leave_prague_its_least_rate() {
    let o = run("duration = \"120s\"\nwarmup = \"20s\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10gbit\"\ndelay = \"5ms\"\n\
         [[queue]]\nlink = \"a->b\"\naqm = \"bernoulli\"\nbuffer = \"10000p\"\n\
         params = { p = 1.0, ecn = true }\n\
         [[traffic]]\ntransport = \"prague\"\nfrom = [\"a\"]\nto = [\"b\"]\npacket = \"1500B\"\n\
         ecn = true\nrack = true\naccecn = true\n");
    let found = rate(&o, 0, 1);
    assert!((0.09..0.11).contains(&found), "{found} Mb/s");
    assert_eq!(o.flows.number("timeouts", 0), Some(0.0));
}

/// Prague beside CUBIC, with the preset `linux`, on 100 Mb/s and 10 ms.
fn beside_cubic(queue: &str, cubic: &str) -> Outcome {
    run(&format!(
        "duration = \"40s\"\nwarmup = \"10s\"\n\
         network = {{ preset = \"dumbbell\", rate = \"100mbit\", delay = \"5ms\", \
         access_rate = \"100gbit\", access_delay = \"0s\" }}\n[[queue]]\n{queue}\n\
         [[traffic]]\ntransport = \"prague\"\npreset = \"linux\"\necn = true\naccecn = true\n\
         packet = \"1514B\"\nstart = \"0s..1s\"\n\
         [[traffic]]\ntransport = \"cubic\"\npreset = \"linux\"\npacket = \"1514B\"\n\
         start = \"0s..1s\"\n{cubic}\n"
    ))
}

/// A FIFO that CUBIC fills and that marks all of Prague's packets: their round trips are the same, though Prague's
/// packets come one by one. (Measured on a testbed: 24.9 and 25.0 ms.)
#[test]
fn pragues_single_packets_do_not_wait_for_a_timer() {
    let o = beside_cubic(
        "aqm = \"codel\"\nbuffer = \"167p\"\nparams = { target = \"1h\", ce_threshold = \"5ms\" }",
        "",
    );
    let srtt = |flow| 1e3 * o.flows.number("srtt_s", flow).unwrap();
    assert!((srtt(0) / srtt(1) - 1.0).abs() < 0.15, "{} and {} ms", srtt(0), srtt(1));
}

/// Half a BDP of buffer: bursts of CUBIC's host overflow it, and leave more to Prague, whose packets are spaced.
#[test]
fn bursts_cost_cubic_in_a_shallow_buffer() {
    let of_prague =
        |cubic| rate(&beside_cubic("aqm = \"droptail\"\nbuffer = \"62500B\"", cubic), 0, 1);
    let (single, bursts) = (of_prague(""), of_prague("tso = true"));
    assert!(bursts > 1.2 * single, "{single} and {bursts} Mb/s");
}
