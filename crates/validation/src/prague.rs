//! Prague against its authors' own program: `reference/udp_prague.csv`, whole runs of the congestion control of
//! udp_prague over the same link, made by `udp_prague.cpp` beside it.
//!
//! What is not the same: the program grows faster after calm round trips, and its packets become shorter where fewer
//! than two fit into a virtual round trip; it begins at 0.1 Mb/s without slow start, which is over before
//! anything is measured. Kinds `windowed` send as a TCP with a window of whole packets does, and ours does not.

use crate::rows::{Row, by_setting};
use crate::{Allowed, Case, Setting, each};
use sim::{Outcome, ScenarioError};

const ROWS: &str = include_str!("../reference/udp_prague.csv");
const SEEDS: u64 = 3;
/// Each acknowledgement is a sample of the round trip, as in the program.
const RACK: &str = "prague\"\nrack = true\nname = \"prague";
/// As in `udp_prague.cpp`.
const LENGTH: f64 = 1500.0;

/// The flows of a setting as (kind, round trip).
fn flows(row: &Row) -> impl Iterator<Item = (&'static str, &'static str)> {
    row.text("flows").split('+').filter_map(|flow| flow.split_once(':'))
}

fn scenario(row: &Row, seed: u64) -> String {
    let queue = match row.text("queue").split(':').collect::<Vec<_>>()[..] {
        ["codel", target, interval] => {
            format!(
                "aqm = \"codel\"\nparams = {{ target = \"{target}ms\", interval = \"{interval}ms\" }}"
            )
        }
        ["step", ms] => {
            format!("aqm = \"codel\"\nparams = {{ target = \"1h\", ce_threshold = \"{ms}ms\" }}")
        }
        ["coin", p] => format!("aqm = \"bernoulli\"\nparams = {{ p = {p}, ecn = true }}"),
        _ => String::new(),
    };
    let mut rtts: Vec<&str> = flows(row).map(|(_, rtt)| rtt).collect();
    rtts.sort_unstable();
    rtts.dedup();
    let links: String = rtts
        .iter()
        .map(|rtt| {
            let half = rtt.parse::<f64>().unwrap_or(f64::NAN) * 500.0;
            format!("[[link]]\nfrom = \"s{rtt}\"\nto = \"A\"\nrate = \"100gbit\"\ndelay = \"{half}us\"\n")
        })
        .collect();
    let groups: String = flows(row)
        .map(|(kind, rtt)| {
            let transport = if kind == "reno" { "sack" } else { RACK };
            format!(
                "[[traffic]]\nfrom = [\"s{rtt}\"]\nto = [\"B\"]\ntransport = \"{transport}\"\n\
                 start = \"0s..200ms\"\npacket = \"{LENGTH}B\"\necn = true\n"
            )
        })
        .collect();
    format!(
        "seed = {seed}\nduration = \"120s\"\nwarmup = \"20s\"\nmeasure = {{ delays = true }}\n{links}\
         [[link]]\nfrom = \"A\"\nto = \"B\"\nrate = \"50mbit\"\ndelay = \"0s\"\n\
         [[queue]]\nlink = \"A->B\"\nbuffer = \"10000p\"\n{queue}\n{groups}"
    )
}

/// Rate in Mb/s and share of marks of the flows of a row, means, and the packets that wait.
fn measure(row: &Row, o: &Outcome) -> [f64; 3] {
    let of = |name: &str| {
        let wanted = row.text("kind");
        let numbers =
            flows(row).enumerate().filter(|(_, (kind, rtt))| format!("{kind}:{rtt}") == wanted);
        let values: Vec<f64> =
            numbers.map(|(n, _)| o.flows.number(name, n).unwrap_or(f64::NAN)).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let queue = o.summary.number("queue_mean_packets", 0).unwrap_or(f64::NAN);
    [of("throughput_bps") / 1e6, of("marks") / of("arrivals"), queue]
}

/// Rates, marks and the queue. Behind a step marks come in trains, and how long these are, and whom of flows
/// with different round trips they meet, turns on the spacing of packets.
pub fn settings() -> Vec<Setting> {
    let same =
        |a: &Row, b: &Row| ["queue", "flows"].iter().all(|column| a.text(column) == b.text(column));
    let ours = Row::all(ROWS).filter(|row| !row.text("flows").contains("windowed"));
    each(by_setting(ours, same), |rows| compare(rows))
}

fn compare(rows: &[Row]) -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    let step = rows[0].text("queue").starts_with("step");
    let runs: Result<Vec<Outcome>, _> =
        (1..=SEEDS).map(|seed| crate::run(&scenario(&rows[0], seed))).collect();
    let runs = runs?;
    for rows in by_setting(rows.iter().cloned(), |a, b| a.text("kind") == b.text("kind")) {
        let mean = |column: &str| {
            rows.iter().map(|row| row.number(column)).sum::<f64>() / rows.len() as f64
        };
        let measured: Vec<[f64; 3]> = runs.iter().map(|o| measure(&rows[0], o)).collect();
        // Of the link's 50 Mb/s, behind a step.
        let rate = if step { Allowed::Absolute(1.25) } else { Allowed::Share(0.05) };
        let marks = if step { 0.35 } else { 0.1 };
        for (n, (quantity, column, allowed)) in [
            ("rate of a flow, Mb/s", "rate_mbps", rate),
            ("share of marks", "marked", Allowed::Share(marks)),
            ("packets waiting, mean", "queue_packets", Allowed::Factor(1.12, 0.5)),
        ]
        .into_iter()
        .enumerate()
        {
            cases.push(Case {
                group: "Prague of udp_prague",
                setting: format!(
                    "{}; of {}, {}",
                    rows[0].text("kind"),
                    rows[0].text("flows"),
                    rows[0].text("queue")
                ),
                quantity,
                expected: mean(column),
                measured: measured.iter().map(|m| m[n]).sum::<f64>() / measured.len() as f64,
                allowed,
            });
        }
    }
    Ok(cases)
}
