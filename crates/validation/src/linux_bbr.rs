//! Against BBR of Linux 6.1, which is version 1: `reference/linux_bbr.csv`, measured by
//! `linux_tcp.py --bbr`. Alone, two, and beside CUBIC, through drop-tail queues of half a BDP to ten, and
//! alone with random losses.
//!
//! What is not the same: the kernel sends bursts of about a millisecond, ours packets, and its timers for
//! pacing are those of the virtual clock.

use crate::formulas::median;
use crate::linux::{ACK, PAYLOAD, SEGMENT};
use crate::rows::{Row, by_setting};
use crate::{Allowed, Case, Setting, each};
use sim::ScenarioError;

const ROWS: &str = include_str!("../reference/linux_bbr.csv");
/// Seeds over which ours are averaged.
const SEEDS: u64 = 20;

/// The flows of a row through a `queue`.
fn scenario(row: &Row, queue: &str, seed: u64) -> String {
    let rate = row.number("rate_mbps");
    let ns = |bytes: f64| bytes * 8e3 / rate;
    let delay = (row.number("rtt_ms") * 1e6 - ns(SEGMENT) - ns(ACK)) / 2.0;
    let controls: Vec<&str> = row.text("cc").split('+').collect();
    let each = first(row);
    let groups: String = controls
        .iter()
        .map(|cc| {
            let transport = if *cc == "bbr" { "bbr1" } else { cc };
            let ecn = *cc == "dctcp";
            format!(
                "[[traffic]]\nflows = {each}\ntransport = \"{transport}\"\npreset = \"linux\"\n\
                 start = \"0s..1s\"\npacket = \"{SEGMENT}B\"\necn = {ecn}\n"
            )
        })
        .collect();
    format!(
        "seed = {seed}\nduration = \"{}s\"\nwarmup = \"{}s\"\n\
         network = {{ preset = \"dumbbell\", rate = \"{rate}mbit\", delay = \"{delay:.0}ns\", \
         access_rate = \"100gbit\", access_delay = \"0s\" }}\n\
         [[queue]]\nbuffer = \"{}p\"\n{queue}\n{groups}",
        row.number("seconds"),
        row.number("warmup_s"),
        row.text("limit"),
    )
}

fn queue(row: &Row) -> String {
    match lost(row) {
        Some(percent) => format!("aqm = \"bernoulli\"\nparams = {{ p = {} }}", percent / 100.0),
        None => "aqm = \"droptail\"".into(),
    }
}

/// Percent that are lost at random.
fn lost(row: &Row) -> Option<f64> {
    row.text("qdisc").strip_prefix("netem loss ")?.split('%').next()?.parse().ok()
}

fn setting(row: &Row) -> String {
    let (limit, flows, cc) = (row.text("limit"), row.text("flows"), row.text("cc"));
    let queue = lost(row).map_or_else(|| format!("{limit} packets"), |p| format!("{p} % lost"));
    format!("{flows} {cc}, 20 Mb/s, 40 ms, {queue}")
}

/// Goodput, queue, drops, and what BBR got beside CUBIC.
pub fn settings() -> Vec<Setting> {
    each(by_setting(Row::all(ROWS), |a, b| setting(a) == setting(b)), |rows| compare(rows))
}

/// How many flows have the first congestion control.
fn first(row: &Row) -> usize {
    row.number("flows") as usize / row.text("cc").split('+').count()
}

/// Of the flows through a `queue`, seed by seed: all goodput and that of the first congestion control, in Mb/s, packets
/// that wait, drops and marks.
fn measure(row: &Row, queue: &str) -> Result<[Vec<f64>; 5], ScenarioError> {
    let mut measured: [Vec<f64>; 5] = Default::default();
    for seed in 1..=SEEDS {
        let o = crate::run(&scenario(row, queue, seed))?;
        let number = |name: &str| o.summary.number(name, 0).unwrap_or(f64::NAN);
        let goodput = o.flows.real("goodput_bps");
        let sum = |of: &[Option<f64>]| of.iter().flatten().sum::<f64>() / 1e6;
        let each = [
            sum(goodput) * PAYLOAD / SEGMENT,
            sum(&goodput[..first(row)]) * PAYLOAD / SEGMENT,
            number("queue_mean_packets"),
            number("drops"),
            number("marks"),
        ];
        measured.iter_mut().zip(each).for_each(|(m, e)| m.push(e));
    }
    Ok(measured)
}

fn compare(rows: &[Row]) -> Result<Vec<Case>, ScenarioError> {
    let row = &rows[0];
    let bbr = ("BBR's goodput, Mb/s", Allowed::Absolute(2.0));
    let mut cases = cases(rows, "BBR of Linux 6.1", &setting(row), &queue(row), bbr)?;
    if lost(row).is_some() {
        cases.truncate(1); // the losses are no result
    }
    Ok(cases)
}

/// The medians of a setting's seeds compared: goodput of all flows, and of the `first` congestion control beside others,
/// packets that wait, drops and marks; not what is nought in both.
pub(crate) fn cases(
    rows: &[Row],
    group: &'static str,
    setting: &str,
    queue: &str,
    first: (&'static str, Allowed),
) -> Result<Vec<Case>, ScenarioError> {
    let row = &rows[0];
    let quantities = [
        ("TCP's goodput, Mb/s", "tcp_mbps", Allowed::Share(0.02)),
        (first.0, "first_mbps", first.1),
        ("packets waiting, mean", "queue_packets", Allowed::Factor(1.15, 0.5)),
        ("drops", "drops", Allowed::Factor(1.25, 5.0)),
        ("marks", "marks", Allowed::Factor(1.25, 5.0)),
    ];
    let alone = !row.text("cc").contains('+');
    let mut cases = Vec::new();
    for ((quantity, column, allowed), measured) in quantities.into_iter().zip(measure(row, queue)?)
    {
        let expected = median(rows.iter().map(|row| row.number(column)).collect());
        let measured = median(measured);
        let again = column == "first_mbps" && alone;
        if !again && (expected, measured) != (0.0, 0.0) {
            cases.push(Case {
                group,
                setting: setting.into(),
                quantity,
                expected,
                measured,
                allowed,
            });
        }
    }
    Ok(cases)
}
