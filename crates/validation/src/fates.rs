//! One connection whose packets have scripted fates, which ns-2 gives the same: `reference/ns2_fates.tcl`.
//!
//! Where the first packet leaves at another time, a rule of TCP is another one.

use aqm::own::Advice;
use aqm::{Arrival, Cause, Cx, Duration, Env, Meta, View};
use scenario::error::Complaint;
use scenario::own::{Class, Own, provide};
use sim::results::journal::Selection;
use sim::results::table::Column;
use sim::{Run, Scenario, ScenarioError};

/// A queue that gives its k-th packet the k-th fate of a list of letters, and sends what comes behind them.
#[derive(Clone, Debug)]
struct Scripted {
    fates: Vec<u8>,
    seen: usize,
}

impl Advice for Scripted {
    fn on_arrival(&mut self, packet: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Arrival {
        let fate = self.fates.get(self.seen);
        self.seen += 1;
        match fate {
            Some(b'd') => Arrival::Reject(Cause::Early),
            Some(b'm') if packet.ecn.capable() => Arrival::Signal(Cause::Early),
            _ => Arrival::Admit,
        }
    }

    fn duplicate(&self) -> Box<dyn Advice> {
        Box::new(self.clone())
    }
}

/// Makes queues of the letters that stand where the text of a class would.
struct Script;

impl Own for Script {
    fn canonical(
        &self,
        _: Class<'_>,
        _: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, Complaint> {
        Ok(Vec::new())
    }

    fn build(
        &self,
        class: Class<'_>,
        _: &[(&str, &str)],
        _: &Env,
    ) -> Result<Box<dyn Advice>, Complaint> {
        Ok(Box::new(Scripted { fates: class.code.as_bytes().to_vec(), seen: 0 }))
    }
}

/// When which packets come to the queue that gives them `fates`, ns, so `many` of them, but none after a minute;
/// numbers as in ns-2, where the SYN is 0. `tcp` are keys of the traffic beside those that copy ns-2.
///
/// # Errors
/// See [`ScenarioError`].
pub fn sent(fates: &str, many: usize, tcp: &str) -> Result<Vec<(u64, u32)>, ScenarioError> {
    provide(&Script);
    let text = format!(
        r#"
duration = "60s"
[network]
preset = "feng-10ms"
[[queue]]
aqm = "python:fates:Scripted"
code = "{fates}"
buffer = "100000p"
[[traffic]]
transport = "sack"
packet = "1040B"
start = "1003ms"
ecn = true
ecn_timeout = true
ecn_on_retransmit = true
handshake = true
restart_after_lost_syn = false
initial_rto = "3s"
rto_granularity = "10ms"
whole_threshold = true
forget_rtt = true
rtt_ticks = true
{tcp}
"#
    );
    let mut run = Run::new(Scenario::from_toml(&text, "fates")?, &text, "fates")?;
    run.keep_journal(&Selection::default());
    let mut packets = Vec::new();
    loop {
        let goes_on = run.advance(Duration::from_secs(1));
        for (_, table) in run.drain_journal() {
            let column = |name: &str| table.columns().find(|(n, _)| *n == name).map(|(_, c)| c);
            if let (
                Some(Column::Count(times)),
                Some(Column::Count(numbers)),
                Some(Column::Text(kinds)),
            ) = (column("arrived_ns"), column("seq"), column("kind"))
            {
                for ((time, seq), kind) in times.iter().zip(numbers).zip(kinds) {
                    packets.push((*time, if kind == "syn" { 0 } else { *seq as u32 + 1 }));
                }
            }
        }
        if !goes_on || packets.len() >= many {
            packets.truncate(many);
            return Ok(packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Row;

    const ROWS: &str = include_str!("../reference/ns2_fates.csv");
    /// Acknowledgements are longer in ns-2 by what they tell beyond the gaps, ns.
    const APART: u64 = 800_000;

    /// The place of the first packet that is another one than in ns-2, or comes at another time.
    fn first_apart(row: &Row, tcp: &str) -> Option<usize> {
        let theirs: Vec<(u64, u32)> = row
            .text("sent")
            .split(' ')
            .map(|word| word.split_once(':').unwrap())
            .map(|(at, seq)| ((at.parse::<f64>().unwrap() * 1e9) as u64, seq.parse().unwrap()))
            .collect();
        let ours = sent(row.text("fates"), theirs.len(), tcp).unwrap();
        assert!(ours.len() == theirs.len() && ours.len() > 10);
        theirs.iter().zip(&ours).position(|(a, b)| a.1 != b.1 || a.0.abs_diff(b.0) > APART)
    }

    #[test]
    fn each_packet_is_that_of_ns2_at_its_time() {
        for row in Row::all(ROWS) {
            let apart = first_apart(&row, "recovery = \"ns-2\"");
            assert_eq!(apart, None, "case {}", row.text("case"));
        }
    }

    /// The cases tell ns-2's recovery from that of RFC 6675.
    #[test]
    fn without_its_recovery_packets_are_other_ones() {
        let apart = Row::all(ROWS)
            .filter(|row| first_apart(row, "repair_past_timeout = true").is_some())
            .count();
        assert_eq!(apart, 7, "of ten");
    }
}
