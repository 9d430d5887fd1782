//! Against Linux 6.1's own queue disciplines, and against its TCP.
//!
//! [`tcp_settings`]: `reference/linux_tcp.csv` holds what its TCP and its queue disciplines did together,
//! measured by `linux_tcp.py` beside it; here the same flows have the preset `linux` of TCP.
//!
//! [`settings`]: `reference/linux_udp_and_4tcp.csv` holds what a kernel measured under virtual time (median of three runs):
//! 10 Mb/s, round trip 20 ms, one flow of datagrams with 1000 bytes of payload at 5 Mb/s that is not
//! ECN-capable, and four TCP connections that are, for 20 s.
//!
//! What is the same here: lengths on the wire (1042 and 1514 bytes, of which 1000 and 1448 are
//! payload), CUBIC with an initial window of ten packets and reductions to whole packets, a SYN that is
//! not ECN-capable, a window that grows by packets acknowledged (here one acknowledgement a packet; the
//! kernel delays them, but counts what each acknowledges), and the kernel's parameters (presets
//! `linux`). What is not: its `HyStart` looks at trains of acknowledgements, too; and its round trips
//! are those of a ping, ours 20 ms and the delay that packets meet in the queue.

use crate::formulas::median;
use crate::rows::{Row, by_setting};
use crate::{Allowed, Case, Setting, each};
use sim::ScenarioError;

const ROWS: &str = include_str!("../reference/linux_udp_and_4tcp.csv");
const TCP_ROWS: &str = include_str!("../reference/linux_tcp.csv");

/// The kernel's queue disciplines that we have, and how they were set up.
const SETUPS: [(&str, &str, &str, &str); 7] = [
    ("pfifo", "droptail", "100p", ""),
    ("red", "red", "150kB", "preset = \"linux\""),
    ("choke", "choke", "150p", "preset = \"linux\""),
    ("codel", "codel", "1000p", "preset = \"linux\""),
    ("pie", "pie", "1000p", "preset = \"linux\""),
    ("fq_codel", "fq-codel", "10240p", "preset = \"linux\""),
    ("sfb", "sfb", "1000p", "preset = \"linux\""),
];

/// Seeds over which ours are averaged.
const SEEDS: u64 = 5;
/// Of TCP alone: in some, more connections lose their SYN, and do without ECN.
const TCP_SEEDS: u64 = 20;

fn scenario(aqm: &str, buffer: &str, params: &str, seed: u64) -> String {
    format!(
        r#"
seed = {seed}
duration = "20s"
[network]
preset = "dumbbell"
rate = "10mbit"
delay = "10ms"
[[queue]]
aqm = "{aqm}"
buffer = "{buffer}"
params = {{ {params} }}
[[traffic]]
name = "udp"
transport = "cbr"
rate = "5.21mbit"
packet = "1042B"
[[traffic]]
name = "tcp"
flows = 4
transport = "cubic"
start = "0s..100ms"
packet = "1514B"
ecn = true
handshake = true
initial_window = 10
whole_packets = true
min_window = 2
delayed_ack = "0s"
"#
    )
}

/// Each queue discipline compared.
pub fn settings() -> Vec<Setting> {
    each(Row::all(ROWS).filter(|row| setup(row).is_some()), compare)
}

fn setup(row: &Row) -> Option<&'static (&'static str, &'static str, &'static str, &'static str)> {
    SETUPS.iter().find(|setup| setup.0 == row.text("qdisc"))
}

fn compare(row: &Row) -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    if let Some((name, aqm, buffer, params)) = setup(row) {
        let mut measured = [0.0; 5];
        for seed in 1..=SEEDS {
            let o = crate::run(&scenario(aqm, buffer, params, seed))?;
            let number = |name: &str| o.summary.number(name, 0).unwrap_or(f64::NAN);
            // The kernel's figure is what was offered less its loss, in all rows: datagrams that
            // were queued when the sending ended still arrived.
            let of_udp = |name: &str| o.flows.number(name, 0).unwrap_or(f64::NAN);
            let tcp = o.flows.real("goodput_bps")[1..].iter().flatten().sum::<f64>();
            let each = [
                (of_udp("arrivals") - of_udp("drops")) * 8000.0 / 20e6,
                tcp / 1e6 * 1448.0 / 1514.0,
                number("drops"),
                number("marks"),
                20.0 + 1e3 * number("delay_p50_s"),
            ];
            measured.iter_mut().zip(each).for_each(|(m, e)| *m += e / SEEDS as f64);
        }
        let quantities = [
            ("datagrams' goodput, Mb/s", "udp_goodput_mbps", Allowed::Absolute(0.25)),
            ("TCP's goodput, Mb/s", "tcp_sum_mbps", Allowed::Share(0.1)),
            ("drops", "drops", Allowed::Factor(1.5, 50.0)),
            ("marks", "ce_marks", Allowed::Factor(2.0, 50.0)),
            ("round trip, median, ms", "ping_median_ms", Allowed::Absolute(5.0)),
        ];
        for ((quantity, column, allowed), measured) in quantities.into_iter().zip(measured) {
            if *name == "fq_codel" && column == "ping_median_ms" {
                continue; // A ping has a queue of its own there, and does not wait.
            }
            let expected = row.number(column);
            cases.push(Case {
                group: "Linux 6.1",
                setting: (*name).into(),
                quantity,
                expected,
                measured,
                allowed,
            });
        }
    }
    Ok(cases)
}

/// Lengths on the wire, of which a segment's payload; an acknowledgement here. Bytes.
pub(crate) const SEGMENT: f64 = 1514.0;
pub(crate) const PAYLOAD: f64 = 1448.0;
pub(crate) const ACK: f64 = 40.0;
pub(crate) const DATAGRAM: f64 = 1042.0;

/// What stands behind a word of `tc`.
fn after(qdisc: &str, word: &str) -> f64 {
    let mut words = qdisc.split(' ').skip_while(|&w| w != word);
    words.nth(1).and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
}

/// RED's weight as `tc` finds it: the largest power of two at which a burst of packets after idleness
/// lets the average get no further than `min`.
fn weight(min: f64, burst: f64) -> f64 {
    let room = burst + 1.0 - min / 1000.0;
    let holds = |w: &f64| room <= (1.0 - (1.0 - w).powf(burst)) / w;
    (1..32).map(|log| 2f64.powi(-log)).find(holds).unwrap_or(f64::NAN)
}

/// The queue discipline, its buffer and its parameters, as those that the kernel had.
fn queue(row: &Row) -> (&'static str, String, String) {
    let qdisc = row.text("qdisc");
    let ecn = format!("preset = \"linux\", ecn = {}", row.text("ecn") == "1");
    let limit = after(qdisc, "limit");
    match qdisc.split(' ').next().unwrap_or_default() {
        "pfifo" => ("droptail", format!("{limit}p"), String::new()),
        "red" => {
            let (min, max) = (after(qdisc, "min"), after(qdisc, "max"));
            let w_q = weight(min, after(qdisc, "burst"));
            let thresholds = format!("min_th = \"{min}B\", max_th = \"{max}B\", w_q = {w_q}");
            ("red", format!("{limit}B"), format!("{ecn}, {thresholds}"))
        }
        // The preset has the rows' thresholds and the weight that `tc` finds for them.
        "choke" => ("choke", format!("{limit}p"), ecn),
        "codel" => ("codel", format!("{limit}p"), ecn),
        // That kernel has ticks of 10 ms, rounds up to two of them, and its timers come one late. It makes
        // the queue 0.1 s before it starts the senders.
        "pie" => {
            let times = ", t_update = \"30ms\", first_update = \"410ms\"";
            ("pie", format!("{limit}p"), ecn + times)
        }
        other => unreachable!("no queue discipline {other} here"),
    }
}

fn tcp_scenario(row: &Row, seed: u64) -> String {
    let (aqm, buffer, params) = queue(row);
    let rate = row.number("rate_mbps");
    // The kernel's class sends a packet at once if the last has had its time; here it takes its time.
    let ns = |bytes: f64| bytes * 8e3 / rate;
    let delay = (row.number("rtt_ms") * 1e6 - ns(SEGMENT) - ns(ACK)) / 2.0;
    let transport = if row.text("cc") == "cubic" { "cubic" } else { "sack" };
    let udp = row.number("udp_mbps");
    let datagrams = if udp > 0.0 {
        let rate = udp * DATAGRAM / 1000.0;
        format!(
            "[[traffic]]\ntransport = \"cbr\"\nrate = \"{rate}mbit\"\npacket = \"{DATAGRAM}B\"\n\
             start = \"100ms\""
        )
    } else {
        String::new()
    };
    // The script starts its clock 0.1 s after each sender that it starts, TCP's first.
    let before = if udp > 0.0 { 0.2 } else { 0.1 };
    format!(
        r#"
seed = {seed}
duration = "{}s"
warmup = "{}s"
[network]
preset = "dumbbell"
rate = "{rate}mbit"
access_rate = "100gbit"
access_delay = "0s"
delay = "{delay:.0}ns"
[[queue]]
aqm = "{aqm}"
buffer = "{buffer}"
params = {{ {params} }}
[[traffic]]
flows = {}
transport = "{transport}"
preset = "linux"
start = "0s..1s"
packet = "{SEGMENT}B"
ecn = {}
{datagrams}
"#,
        row.number("seconds") + before,
        row.number("warmup_s") + before,
        row.text("flows"),
        row.text("ecn") == "1",
    )
}

/// What a buffer holds, if not what the path does.
fn buffer(row: &Row) -> String {
    let path = (row.number("rate_mbps") * row.number("rtt_ms") / 8.0 / 1.514).round().max(20.0);
    let limit = row.number("limit");
    if limit == path { String::new() } else { format!(" of {limit} packets") }
}

/// How a row is called.
fn setting(row: &Row) -> String {
    let ecn = if row.text("ecn") == "1" { ", ECN" } else { "" };
    let udp = row.text("udp_mbps");
    let beside =
        if udp == "0" { String::new() } else { format!(" beside {udp} Mb/s of datagrams") };
    let whole = if row.text("warmup_s") == "0" { ", from the start" } else { "" };
    format!(
        "{}{}, {} Mb/s, {} ms, {} {}{ecn}{beside}{whole}",
        row.text("qdisc").split(' ').next().unwrap_or_default(),
        buffer(row),
        row.text("rate_mbps"),
        row.text("rtt_ms"),
        row.text("flows"),
        row.text("cc"),
    )
}

/// TCP through each queue discipline, at each rate and number of flows: the kernel's and ours.
pub fn tcp_settings() -> Vec<Setting> {
    each(by_setting(Row::all(TCP_ROWS), |a, b| setting(a) == setting(b)), |rows| compare_tcp(rows))
}

fn compare_tcp(rows: &[Row]) -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    let row = &rows[0];
    let flows = row.number("flows") as usize;
    let beside = row.number("udp_mbps") > 0.0;
    let mut measured: [Vec<f64>; 6] = Default::default();
    for seed in 1..=TCP_SEEDS {
        let o = crate::run(&tcp_scenario(row, seed))?;
        let number = |name: &str| o.summary.number(name, 0).unwrap_or(f64::NAN);
        let goodput = o.flows.real("goodput_bps");
        let sum = |of: &[Option<f64>]| of.iter().flatten().sum::<f64>() / 1e6;
        let each = [
            sum(&goodput[..flows]) * PAYLOAD / SEGMENT,
            number("queue_mean_packets"),
            number("drops"),
            number("marks"),
            sum(&goodput[flows..]) * 1000.0 / DATAGRAM,
            1e3 * number("delay_p95_s"),
        ];
        measured.iter_mut().zip(each).for_each(|(m, e)| m.push(e));
    }
    let goodput = if beside {
        Allowed::Absolute(0.02 * row.number("rate_mbps")) // what TCP gets there is no share
    } else {
        Allowed::Share(0.02)
    };
    let quantities = [
        ("TCP's goodput, Mb/s", "tcp_mbps", goodput),
        ("packets waiting, mean", "queue_packets", Allowed::Factor(1.15, 0.5)),
        ("drops", "drops", Allowed::Factor(1.25, 5.0)),
        ("marks", "marks", Allowed::Factor(1.25, 5.0)),
        ("datagrams' goodput, Mb/s", "udp_goodput_mbps", Allowed::Share(0.05)),
        ("delay in the queue, 95 %, ms", "delay_p95_ms", Allowed::Share(0.15)),
    ];
    for ((quantity, column, allowed), measured) in quantities.into_iter().zip(measured) {
        let expected = median(rows.iter().map(|row| row.number(column)).collect());
        let measured = median(measured);
        let of_datagrams = ["udp_goodput_mbps", "delay_p95_ms"].contains(&column);
        if (of_datagrams && !beside) || (expected == 0.0 && measured == 0.0) {
            continue;
        }
        cases.push(Case {
            group: "TCP of Linux 6.1",
            setting: setting(row),
            quantity,
            expected,
            measured,
            allowed,
        });
    }
    Ok(cases)
}
