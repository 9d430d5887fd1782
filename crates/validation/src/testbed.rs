//! Against a testbed of real hosts: `reference/testbed.csv`, rates and round trips that Sarpkaya, Fund and Panwar
//! measured (PAM 2025), read from what they publish by `testbed.py`. Linux senders with Prague, CUBIC and BBR
//! version 3 share 100 Mb/s through a FIFO, a FIFO that marks what waited, and DualPI2.
//!
//! Here the same flows have the preset `linux`, four seeds. Prague counts round trips as they are for its
//! first 500, as that of the kernel does. What is not the same: that has two packets under way at least; hosts and the emulated delay take time.

use crate::linux::{ACK, PAYLOAD, SEGMENT};
use crate::rows::Row;
use crate::{Allowed, Case, Setting, each};
use sim::ScenarioError;

const ROWS: &str = include_str!("../reference/testbed.csv");
const SEEDS: u64 = 4;
const MBPS: f64 = 100.0;

fn scenario(row: &Row, seed: u64) -> String {
    let rtt = row.number("rtt_ms");
    let bdp = row.number("bdps") * MBPS * rtt * 125.0;
    let packets = (bdp / 1500.0) as u32 + 1;
    let queue = match row.text("queue") {
        "fifo" => format!("aqm = \"droptail\"\nbuffer = \"{bdp}B\""),
        "step" => format!(
            "aqm = \"codel\"\nbuffer = \"{packets}p\"\n\
             params = {{ target = \"1h\", ce_threshold = \"{}ms\" }}",
            rtt / 2.0
        ),
        _ => format!(
            "aqm = \"dualpi2\"\nbuffer = \"10000p\"\nparams = {{ preset = \"linux\", target = \"{}ms\" }}",
            rtt / 2.0
        ),
    };
    let (name, how) = row.text("second").split_once('+').unwrap_or((row.text("second"), ""));
    let second = match how {
        "ecn" => "ecn = true",
        "low" => "ecn = true\naccecn = true",
        _ => "",
    };
    let groups: String = [
        ("prague", "flows", "ecn = true\naccecn = true\nreference_after = 500"),
        (name, "others", second),
    ]
    .into_iter()
    .map(|(transport, flows, keys)| {
        format!(
            "[[traffic]]\nname = \"{flows}\"\nflows = {}\ntransport = \"{transport}\"\n\
                 preset = \"linux\"\nstart = \"0s..200ms\"\npacket = \"{SEGMENT}B\"\n{keys}\n",
            row.text(flows)
        )
    })
    .collect();
    let ns = |bytes: f64| bytes * 8e3 / MBPS;
    let delay = (rtt * 1e6 - ns(SEGMENT) - ns(ACK)) / 2.0;
    format!(
        "seed = {seed}\nduration = \"60s\"\n\
         network = {{ preset = \"dumbbell\", rate = \"100mbit\", delay = \"{delay:.0}ns\", \
         access_rate = \"100gbit\", access_delay = \"0s\" }}\n\
         [[queue]]\n{queue}\n{groups}"
    )
}

fn setting(row: &Row) -> String {
    let [queue, bdps, rtt, second, flows, others] =
        ["queue", "bdps", "rtt_ms", "second", "flows", "others"].map(|column| row.text(column));
    format!("{queue}, {bdps} BDP, {rtt} ms: {flows} prague, {others} {second}")
}

/// Rates of both kinds, and their round trips.
pub fn settings() -> Vec<Setting> {
    each(Row::all(ROWS), compare)
}

fn compare(row: &Row) -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    let flows = row.number("flows") as usize;
    let mut sums = [0.0; 4];
    for seed in 1..=SEEDS {
        let o = crate::run(&scenario(row, seed))?;
        let of = |column: &str| -> Vec<f64> {
            o.flows.real(column).iter().map(|value| value.unwrap_or(f64::NAN)).collect()
        };
        let (rates, rtts) = (of("goodput_bps"), of("srtt_s"));
        let sum = |rates: &[f64]| rates.iter().sum::<f64>() / 1e6 * PAYLOAD / SEGMENT;
        let mean = |rtts: &[f64]| 1e3 * rtts.iter().sum::<f64>() / rtts.len() as f64;
        let each = [
            sum(&rates[..flows]),
            sum(&rates[flows..]),
            mean(&rtts[..flows]),
            mean(&rtts[flows..]),
        ];
        sums.iter_mut().zip(each).for_each(|(sum, value)| *sum += value / SEEDS as f64);
    }
    for ((quantity, column, allowed), measured) in [
        ("Prague's goodput, Mb/s", "first_mbps", Allowed::Absolute(0.05 * MBPS)),
        ("the others' goodput, Mb/s", "second_mbps", Allowed::Absolute(0.05 * MBPS)),
        ("Prague's round trip, ms", "first_ms", Allowed::Share(0.15)),
        ("the others' round trip, ms", "second_ms", Allowed::Share(0.15)),
    ]
    .into_iter()
    .zip(sums)
    {
        cases.push(Case {
            group: "A testbed of Linux hosts",
            setting: setting(row),
            quantity,
            expected: row.number(column),
            measured,
            allowed,
        });
    }
    Ok(cases)
}
