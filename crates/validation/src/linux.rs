//! Against Linux 6.1's own queue disciplines.
//!
//! `reference/linux_udp_and_4tcp.csv` holds what a kernel measured under virtual time (median of three runs):
//! 10 Mb/s, round trip 20 ms, one flow of datagrams with 1000 bytes of payload at 5 Mb/s that is not
//! ECN-capable, and four TCP connections that are, for 20 s.
//!
//! What is the same here: lengths on the wire (1042 and 1514 bytes, of which 1000 and 1448 are
//! payload), CUBIC with an initial window of ten packets and reductions to whole packets, a SYN that is
//! not ECN-capable, a window that grows by packets acknowledged (here one acknowledgement a packet; the
//! kernel delays them, but counts what each acknowledges), and the kernel's parameters (presets
//! `linux`). What is not: its `HyStart` looks at trains of acknowledgements, too; and its round trips
//! are those of a ping, ours 20 ms and the delay that packets meet in the queue.

use crate::rows::Row;
use crate::{Allowed, Case};
use sim::ScenarioError;

const ROWS: &str = include_str!("../reference/linux_udp_and_4tcp.csv");

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
///
/// # Errors
/// See [`ScenarioError`].
pub fn cases() -> Result<Vec<Case>, ScenarioError> {
    let mut cases = Vec::new();
    for (name, aqm, buffer, params) in SETUPS {
        let Some(row) = Row::all(ROWS).find(|row| row.text("qdisc") == name) else { continue };
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
            if name == "fq_codel" && column == "ping_median_ms" {
                continue; // A ping has a queue of its own there, and does not wait.
            }
            let expected = row.number(column);
            cases.push(Case {
                group: "Linux 6.1",
                setting: name.into(),
                quantity,
                expected,
                measured,
                allowed,
            });
        }
    }
    Ok(cases)
}
