//! Against Linux 6.1's CAKE: what each flow gets, `reference/linux_cake.csv`, measured under virtual time
//! by `linux_cake.py` beside it.
//!
//! Flows of datagrams with 1000 bytes of payload, 1042 on the wire, which ignore every signal, from hosts
//! and with codepoints of their own, over 8 Mb/s. The kernel's CAKE has its own shaper and counts the
//! memory of packets: 4 MiB, which is 1820 of these.

use std::fmt::Write as _;

use crate::linux::DATAGRAM;
use crate::rows::{Row, by_setting};
use crate::{Allowed, Case, Setting, each};
use sim::ScenarioError;

const ROWS: &str = include_str!("../reference/linux_cake.csv");

fn scenario(rows: &[Row]) -> String {
    let row = &rows[0];
    let mut words = row.text("qdisc").split(' ').skip(3);
    let (diffserv, isolation) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let mut text = format!(
        r#"
duration = "{}s"
warmup = "{}s"
[network]
preset = "dumbbell"
rate = "{}mbit"
access_rate = "100gbit"
delay = "1ms"
[[queue]]
aqm = "cake"
buffer = "1820p"
params = {{ diffserv = "{diffserv}", isolation = "{isolation}" }}
"#,
        row.text("seconds"),
        row.text("warmup_s"),
        row.text("rate_mbps"),
    );
    for (n, row) in rows.iter().enumerate() {
        let rate = row.number("offered_mbps") * DATAGRAM / 1000.0;
        // Begun one after another within the time between two of a flow's packets.
        let start = 8e6 / row.number("offered_mbps") * n as f64 / rows.len() as f64;
        let _ = write!(
            text,
            "[[traffic]]\nname = \"f{n}\"\ntransport = \"cbr\"\nrate = \"{rate}mbit\"\n\
             packet = \"{DATAGRAM}B\"\nstart = \"{start:.0}ns\"\ndscp = \"{}\"\nhost = {}\npeer = {}\n",
            row.text("dscp"),
            row.text("host"),
            row.text("peer"),
        );
    }
    text
}

/// What a flow is called in its setting.
fn name(row: &Row) -> String {
    let of = |column| row.text(column);
    format!("{}; host {} to {}, DSCP {}", of("setting"), of("host"), of("peer"), of("dscp"))
}

/// What each flow gets.
pub fn settings() -> Vec<Setting> {
    each(by_setting(Row::all(ROWS), |a, b| a.text("setting") == b.text("setting")), |rows| {
        compare(rows)
    })
}

fn compare(rows: &[Row]) -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    let outcome = crate::run(&scenario(rows))?;
    let goodput = outcome.flows.real("goodput_bps");
    let measured = goodput.iter().map(|g| g.unwrap_or(f64::NAN) / 1e6 * 1000.0 / DATAGRAM);
    // How those of one queue share it is chance.
    let one_queue = |a: &Row, b: &Row| {
        a.text("qdisc").contains(" srchost ") && a.text("host") == b.text("host")
    };
    let each: Vec<(&Row, f64)> = rows.iter().zip(measured).collect();
    for (n, (row, _)) in each.iter().enumerate() {
        let mine = each.iter().enumerate().filter(|(m, other)| *m == n || one_queue(row, other.0));
        let mine: Vec<(usize, &(&Row, f64))> = mine.collect();
        if mine[0].0 < n {
            continue;
        }
        cases.push(Case {
            group: "CAKE of Linux 6.1",
            setting: name(row),
            quantity: "datagrams' goodput, Mb/s",
            expected: mine.iter().map(|(_, other)| other.0.number("got_mbps")).sum(),
            measured: mine.iter().map(|(_, other)| other.1).sum(),
            allowed: Allowed::Share(0.02),
        });
    }
    Ok(cases)
}
