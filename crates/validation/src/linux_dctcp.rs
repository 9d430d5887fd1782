//! Against DCTCP of Linux 7.2: `reference/linux_dctcp.csv`, measured by `linux_tcp.py --dctcp`. Ten and twenty flows
//! above a step and in `DualPI2`, and there beside as many of CUBIC without ECN.

use crate::linux_bbr::cases;
use crate::rows::{Row, by_setting};
use crate::{Allowed, Case, Setting, each};
use sim::ScenarioError;

const ROWS: &str = include_str!("../reference/linux_dctcp.csv");

/// Our queue for the words of `tc`, and what it is called.
fn queue(row: &Row) -> (&'static str, &'static str) {
    let qdisc = row.text("qdisc");
    if qdisc.starts_with("codel ") {
        return (
            "aqm = \"codel\"\nparams = { target = \"1h\", ce_threshold = \"1ms\" }",
            "step of 1 ms",
        );
    }
    if qdisc.contains(" min_qlen_step 2 ") {
        return (
            "aqm = \"dualpi2\"\n\
             params = { preset = \"linux\", low_latency = \"any-ect\", th_len = 2 }",
            "dualpi2, min_qlen_step 2",
        );
    }
    ("aqm = \"dualpi2\"\nparams = { preset = \"linux\", low_latency = \"any-ect\" }", "dualpi2")
}

fn setting(row: &Row) -> String {
    let of = |column| row.text(column);
    format!(
        "{} {}, {} Mb/s, {} ms, {}",
        of("flows"),
        of("cc"),
        of("rate_mbps"),
        of("rtt_ms"),
        queue(row).1
    )
}

/// Goodput, what DCTCP got beside CUBIC, queue, drops and marks.
pub fn settings() -> Vec<Setting> {
    each(by_setting(Row::all(ROWS), |a, b| setting(a) == setting(b)), |rows| compare(rows))
}

fn compare(rows: &[Row]) -> Result<Vec<Case>, ScenarioError> {
    let row = &rows[0];
    let dctcp = ("DCTCP's goodput, Mb/s", Allowed::Absolute(0.05 * row.number("rate_mbps")));
    cases(rows, "DCTCP of Linux 7.2", &setting(row), queue(row).0, dctcp)
}
