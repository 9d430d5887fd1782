//! Against ns-2.35: RED under the steps of Feng02's Fig. 9, 200 connections more every 20 s, with ECN timeouts.
//!
//! `reference/ns2_red_steps.csv` has it with ns-2's RED, and with a RED of ns-2 that signals packets also where
//! fewer than two wait (`RED/Short`), which is that of the paper's experiments here: without `ns2_rules`.
//! TCP is ns-2's, as in [`crate::ns2`].

use crate::formulas::mean;
use crate::rows::{Row, by_setting};
use crate::{Allowed, Case, Setting, each};
use sim::ScenarioError;

const ROWS: &str = include_str!("../reference/ns2_red_steps.csv");
const SETTING: [&str; 5] = ["access_ms", "buffer", "max_th", "min_rto", "queue"];

fn scenario(row: &Row, seed: u32) -> String {
    let access = match row.text("access_ms") {
        "mixed" => String::from("[\"10ms\", \"15ms\", \"20ms\", \"25ms\", \"30ms\"]"),
        each => format!("\"{each}ms\""),
    };
    format!(
        r#"
seed = {seed}
duration = "100s"
[network]
preset = "feng"
access_delay = {access}
[[queue]]
aqm = "red"
buffer = "{buffer}p"
params = {{ preset = "feng", w_q = 0.002, min_th = "{min_th}%", max_th = "{max_th}%", ns2_rules = {ns2_rules} }}
[[traffic]]
flows = 1000
step = {{ flows = 200, every = "20s" }}
transport = "sack"
app = "infinite"
packet = "1040B"
start = "0s..1s"
ecn = true
ecn_timeout = true
ecn_on_retransmit = true
initial_window = 4
initial_rto = "{min_rto}s"
min_rto = "{min_rto}s"
rto_granularity = "10ms"
whole_threshold = true
recovery = "ns-2"
forget_rtt = true
"#,
        buffer = row.text("buffer"),
        min_th = row.number("max_th") / 4.0,
        max_th = row.text("max_th"),
        ns2_rules = row.text("queue") == "RED",
        min_rto = row.text("min_rto"),
    )
}

/// Each setting compared: means over ns-2's seeds, one or three, and three of ours.
pub fn settings() -> Vec<Setting> {
    let same = |a: &Row, b: &Row| SETTING.iter().all(|name| a.text(name) == b.text(name));
    each(by_setting(Row::all(ROWS), same), |rows| compare(rows))
}

fn compare(rows: &[Row]) -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    let setting = SETTING.map(|name| rows[0].text(name));
    let outcomes =
        (1..=3).map(|seed| crate::run(&scenario(&rows[0], seed))).collect::<Result<Vec<_>, _>>()?;
    let [access, buffer, max_th, min_rto, queue] = setting;
    for (quantity, allowed) in
        [("utilisation", Allowed::Absolute(0.015)), ("loss", Allowed::Factor(1.3, 0.005))]
    {
        let theirs: Vec<f64> = rows.iter().map(|row| row.number(quantity)).collect();
        let ours: Vec<f64> =
            outcomes.iter().filter_map(|o| o.summary.number(quantity, 0)).collect();
        cases.push(Case {
                group: "ns-2.35, RED under steps",
                setting: format!(
                    "{queue}, {buffer} packets, max_th {max_th} %, access {access} ms, least timeout {min_rto} s"
                ),
                quantity,
                expected: mean(&theirs),
                measured: mean(&ours),
                allowed,
            });
    }
    Ok(cases)
}
