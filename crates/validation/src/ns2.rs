//! Against ns-2.35: RED with ECN, drop-tail and SFQ on the BLUE paper's network.
//!
//! `reference/ns2_dumbbell_seeds.csv` holds figures measured with ns-2.35, one row a run and several seeds of
//! each setting: 12 nodes, access links of 100 Mb/s and 10 ms, bottleneck 45 Mb/s and 10 ms, packets of 1040
//! bytes on the wire, SACK, no delayed acknowledgements. `ns2_cbr_and_tcp_seeds.csv` has a datagram flow
//! among the connections. `ns2_tfrc.csv` is about TFRC. The scripts that make them lie beside them.
//!
//! The scenarios copy what ns-2 does where it differs from our defaults:
//! - RED signals nothing while at most one packet waits (`ns2_rules`);
//! - drop-tail holds one packet less than its limit;
//! - the first timeout is 3 s, and round trips and timeouts are in ticks of 10 ms (`rtt_ticks`);
//! - retransmissions are ECN-capable;
//! - slow-start thresholds are whole packets;
//! - losses are repaired as ns-2's Sack1 does (`recovery`), and long timeouts forget the round trip
//!   (`forget_rtt`).
//!
//! What stays different: ns-2 draws its own random numbers (coins, start times, pairs), and counts the
//! idle time of RED in whole packets of 1000 bytes.

use crate::formulas::{interval_of_difference, mean};
use crate::rows::{Row, by_setting};
use crate::{Allowed, Case, Setting, each};
use sim::{Outcome, ScenarioError};
use std::ops::{Range, RangeInclusive};

const ROWS: &str = include_str!("../reference/ns2_dumbbell_seeds.csv");
const BETWEEN: &str = include_str!("../reference/ns2_dumbbell_between.csv");
const CBR_ROWS: &str = include_str!("../reference/ns2_cbr_and_tcp_seeds.csv");
const TFRC_ROWS: &str = include_str!("../reference/ns2_tfrc.csv");

/// One run of ns-2.
#[derive(Clone, Debug)]
struct Reference(Row);

impl Reference {
    fn drop_tail(&self) -> bool {
        self.0.text("queue") == "DropTail"
    }

    fn ecn(&self) -> bool {
        !self.drop_tail() && self.0.text("variant") != "noecn"
    }

    /// Whether only the seed and what was measured differ.
    fn is_as(&self, other: &Self) -> bool {
        ["variant", "queue", "w_q", "N", "buf_pkts", "app"]
            .iter()
            .all(|column| self.0.text(column) == other.0.text(column))
    }

    /// What it was, in words.
    fn network(&self) -> String {
        let text = |column| self.0.text(column);
        let weight = if self.drop_tail() { String::new() } else { format!(" {}", text("w_q")) };
        format!(
            "{} {}{weight} N = {}, {} packets, {}",
            text("variant"),
            text("queue"),
            text("N"),
            text("buf_pkts"),
            text("app")
        )
    }

    /// This setting as a scenario, with a seed of ours.
    fn scenario(&self, seed: u32) -> String {
        let buffer = self.0.number("buf_pkts") - f64::from(u8::from(self.drop_tail()));
        let (aqm, params) = if self.drop_tail() {
            ("droptail", String::new())
        } else {
            (
                "red",
                format!(
                    "params = {{ preset = \"feng\", w_q = {}, ns2_rules = true }}",
                    self.0.text("w_q")
                ),
            )
        };
        let on_off = "app = \"pareto\"\non = \"2s\"\noff = \"3s\"\nshape = 1.5";
        let app = match self.0.text("app") {
            "ftponoff" => on_off.into(),
            "pareto" => format!("{on_off}\nrate = \"1mbit\"\nunsent = \"backlog\""),
            _ => String::from("app = \"infinite\""),
        };
        format!(
            r#"
seed = {seed}
duration = "{duration}s"
warmup = "{warmup}s"
[network]
preset = "feng-10ms"
[[queue]]
aqm = "{aqm}"
buffer = "{buffer}p"
{params}
{connections}
"#,
            duration = self.0.text("T_s"),
            warmup = self.0.number("T_s") - self.0.number("tmeas_s"),
            connections = connections(self.0.text("variant"), self.0.text("N"), &app, self.ecn()),
        )
    }

    /// Ours, of each seed.
    fn ours(&self) -> Result<Vec<Outcome>, ScenarioError> {
        OUR_SEEDS.map(|seed| crate::run(&self.scenario(seed))).collect()
    }
}

/// Our mean compared with theirs. They may lie as far apart as `allowed`, or as far as chance moves them:
/// half of the 95 % interval of their difference.
fn compared(
    group: &'static str,
    setting: String,
    quantity: &'static str,
    theirs: &[f64],
    ours: &[f64],
    allowed: Allowed,
) -> Case {
    let case =
        Case { group, setting, quantity, expected: mean(theirs), measured: mean(ours), allowed };
    let by_chance = Allowed::Absolute(interval_of_difference(theirs, ours));
    let wider = Case { allowed: by_chance, ..case.clone() };
    if !case.holds() && wider.holds() { wider } else { case }
}

/// Connections as those of a variant of the runs; in those that end in `_pre` they are established
/// before.
fn connections(variant: &str, flows: &str, app: &str, ecn: bool) -> String {
    let established = variant.ends_with("_pre");
    format!(
        r#"
[[traffic]]
flows = {flows}
transport = "sack"
{app}
packet = "1040B"
start = "{start}"
ecn = {ecn}
ecn_timeout = {ecn_timeout}
ecn_on_retransmit = {ecn}
handshake = {handshake}
restart_after_lost_syn = {established}
initial_window = {initial_window}
initial_rto = "{initial_rto}"
rto_granularity = "10ms"
whole_threshold = true
recovery = "ns-2"
forget_rtt = true
rtt_ticks = true
"#,
        start = if established { "1s..2s" } else { "0s..1s" },
        ecn_timeout = ecn && !variant.starts_with("noecnto"),
        handshake = !established,
        // Behind a SYN two packets are sent; who sent one packet and then nothing for a timeout begins
        // with one, and has measured the round trip.
        initial_window = if established { 1 } else { 2 },
        initial_rto = if established { "200ms" } else { "3s" },
    )
}

/// Our seeds: mostly more than ns-2's, for the less chance is left in our mean, the smaller a difference
/// is seen.
const OUR_SEEDS: RangeInclusive<u32> = 1..=10;

/// One setting, with several seeds in ns-2 and here, and the group of its comparisons.
struct Seeds(Vec<Reference>, &'static str);

/// Means over seeds.
pub fn means() -> Vec<Setting> {
    Seeds::settings(ROWS, "ns-2.35, means over seeds")
}

/// Settings with loads between those, which were measured when the scenarios had been settled.
pub fn between() -> Vec<Setting> {
    Seeds::settings(BETWEEN, "ns-2.35, loads between")
}

impl Seeds {
    fn settings(rows: &'static str, group: &'static str) -> Vec<Setting> {
        let settings = by_setting(Row::all(rows).map(Reference), Reference::is_as);
        each(settings.into_iter().map(|rows| Self(rows, group)), Self::compare)
    }

    fn compare(&self) -> Result<Vec<Case>, ScenarioError> {
        let first = &self.0[0];
        let outcomes = first.ours()?;
        let setting = format!("{}, {} seeds", first.network(), self.0.len());
        let case = |(quantity, column, name, allowed): (_, &str, &str, Allowed)| {
            let theirs: Vec<f64> = self.0.iter().map(|row| row.0.number(column)).collect();
            let ours: Vec<f64> =
                outcomes.iter().filter_map(|o| o.summary.number(name, 0)).collect();
            // Sources that pause have no index here.
            (!ours.is_empty())
                .then(|| compared(self.1, setting.clone(), quantity, &theirs, &ours, allowed))
        };
        let quantities = [
            ("utilisation", "util_frac", "utilisation", Allowed::Absolute(0.01)),
            ("mean queue, packets", "qmean_pkts", "queue_mean_packets", Allowed::Share(0.05)),
            ("loss", "loss_frac", "loss", Allowed::Factor(1.15, 0.005)),
            ("Jain's index", "jain", "jain", Allowed::Absolute(0.02)),
        ];
        Ok(quantities.into_iter().filter_map(case).collect())
    }
}

/// A datagram flow of 2 Mb/s, which is not ECN-capable, among 400 connections (Feng02 Table III):
/// RED, drop-tail, and ns-2's stochastic fair queueing. One setting, with several seeds.
struct CbrReference(Vec<Row>);

/// A datagram flow among connections.
pub fn datagrams() -> Vec<Setting> {
    let settings = by_setting(Row::all(CBR_ROWS), |a, b| cbr_setting(a) == cbr_setting(b));
    each(settings.into_iter().map(CbrReference), CbrReference::compare)
}

/// The name of a weight of RED's in the paper, and the weight.
const WEIGHTS: [(&str, &str); 4] =
    [("R1", "0.0002"), ("R2", "0.002"), ("R3", "0.02"), ("R4", "0.2")];

impl CbrReference {
    fn setting(&self) -> String {
        format!("{}, 2 Mb/s CBR, {} seeds", cbr_setting(&self.0[0]), self.0.len())
    }

    fn scenario(&self, seed: u32) -> String {
        let r = &self.0[0];
        let (variant, buffer) = (r.text("variant"), r.number("buf_pkts"));
        let ecn = r.text("queue") == "RED" && variant != "noecn";
        let (aqm, buffer, params) = match r.text("queue") {
            "RED" => {
                let w_q = r.text("w_q");
                ("red", buffer, format!("preset = \"feng\", w_q = {w_q}, ns2_rules = true"))
            }
            // Its hash adds the numbers of the two nodes: of 5 + 5 nodes there are nine sums.
            "SFQ" => ("sfq", buffer, "queues = 9".into()),
            _ => ("droptail", buffer - 1.0, String::new()),
        };
        format!(
            r#"
seed = {seed}
duration = "{duration}s"
[network]
preset = "feng-10ms"
[[queue]]
aqm = "{aqm}"
buffer = "{buffer}p"
params = {{ {params} }}
[[traffic]]
transport = "cbr"
rate = "2mbit"
packet = "1000B"
start = "0s..1s"
{connections}
"#,
            duration = r.text("T_s"),
            connections = connections(variant, "400", "", ecn),
        )
    }

    /// The run compared with our mean.
    fn compare(&self) -> Result<Vec<Case>, ScenarioError> {
        let runs = OUR_SEEDS.map(|seed| crate::run(&self.scenario(seed)));
        let outcomes = runs.collect::<Result<Vec<_>, _>>()?;
        let mbit = |o: &Outcome, column: &str, flows: Range<usize>| {
            let bits = |flow| o.flows.number(column, flow).unwrap_or(f64::NAN) * 8.0;
            flows.map(bits).sum::<f64>() / self.0[0].number("T_s") / 1e6
        };
        let sent = |o: &Outcome, flows: Range<usize>| {
            mbit(o, "arrivals_bytes", flows.clone()) - mbit(o, "drops_bytes", flows)
        };
        let case = |quantity, column: &str, of: &dyn Fn(&Outcome) -> f64, allowed| {
            let ours: Vec<f64> = outcomes.iter().map(of).collect();
            let group = "ns-2.35, datagrams among connections";
            let theirs: Vec<f64> = self.0.iter().map(|row| row.number(column)).collect();
            compared(group, self.setting(), quantity, &theirs, &ours, allowed)
        };
        let lost = |o: &Outcome| mbit(o, "drops_bytes", 1..401);
        Ok(vec![
            case("datagrams, Mb/s", "udp_thr_mbps", &|o| sent(o, 0..1), Allowed::Absolute(0.1)),
            case("connections, Mb/s", "tcp_thr_mbps", &|o| sent(o, 1..401), Allowed::Share(0.015)),
            case("connections' loss, Mb/s", "tcp_loss_mbps", &lost, Allowed::Factor(1.3, 0.25)),
        ])
    }
}

/// What a row's queue and connections are.
fn cbr_setting(row: &Row) -> String {
    let weight = WEIGHTS.iter().find(|(_, w_q)| *w_q == row.text("w_q"));
    let configuration = weight.map_or("-", |(name, _)| name);
    format!("{} {configuration} {}", row.text("queue"), row.text("variant"))
}

/// TFRC alone under independent loss, or eight flows of it beside eight of TCP.
struct TfrcReference(Row);

/// TFRC.
pub fn tfrc() -> Vec<Setting> {
    each(Row::all(TFRC_ROWS).map(TfrcReference), TfrcReference::compare)
}

impl TfrcReference {
    /// The run compared.
    fn compare(&self) -> Result<Vec<Case>, ScenarioError> {
        if self.0.text("queue") == "lossy" { self.alone() } else { self.beside_tcp() }
    }

    fn case(&self, setting: &str, quantity: &'static str, column: &str, measured: f64) -> Case {
        let share = match column {
            "tcp_loss" | "tfrc_loss" => 0.15,
            _ => 0.1,
        };
        Case {
            group: "ns-2.35, TFRC",
            setting: format!("{setting}, seed {}", self.0.text("seed")),
            quantity,
            expected: self.0.number(column),
            measured,
            allowed: Allowed::Share(share),
        }
    }

    fn alone(&self) -> Result<Vec<Case>, ScenarioError> {
        let p = self.0.number("load");
        let outcome = crate::lossy_of(
            self.0.text("seed"),
            "320s",
            &format!("p = {p}"),
            "flows = 20\ntransport = \"tfrc\"",
        )?;
        let sent = crate::mean_goodput(&outcome) / 8000.0 / (1.0 - p);
        let setting = format!("loss of {} %", p * 100.0);
        Ok(vec![self.case(&setting, "sent, packets/s", "tfrc_pps", sent)])
    }

    fn beside_tcp(&self) -> Result<Vec<Case>, ScenarioError> {
        let (queue, load) = (self.0.text("queue"), self.0.number("load"));
        let (aqm, params) = match queue {
            "RED" => {
                let params = "min_th = \"20%\", max_th = \"66%\", max_p = 0.1, w_q = 0.002, \
                              gentle = true, ns2_rules = true";
                ("red", params)
            }
            _ => ("droptail", ""),
        };
        let datagrams = if load > 0.0 {
            format!(
                "[[traffic]]\ntransport = \"cbr\"\npacket = \"100B\"\nrate = \"{}bit\"\n\
                 gaps = \"poisson\"",
                load * 800.0
            )
        } else {
            String::new()
        };
        let outcome = crate::run(&format!(
            r#"
seed = {seed}
duration = "320s"
warmup = "20s"
[network]
preset = "redpd"
[[queue]]
aqm = "{aqm}"
buffer = "50p"
params = {{ {params} }}
[[traffic]]
flows = 8
transport = "sack"
start = "0s..10s"
initial_rto = "3s"
rto_granularity = "10ms"
recovery = "ns-2"
forget_rtt = true
[[traffic]]
flows = 8
transport = "tfrc"
start = "0s..10s"
{datagrams}
"#,
            seed = self.0.text("seed"),
        ))?;
        let sum = |name: &str, rows: std::ops::Range<usize>| {
            rows.map(|row| outcome.flows.number(name, row).unwrap_or(f64::NAN)).sum::<f64>()
        };
        let setting = format!("{queue}, {load} datagrams/s");
        Ok([("TCP", "tcp_pps", "tcp_loss", 0..8), ("TFRC", "tfrc_pps", "tfrc_loss", 8..16)]
            .into_iter()
            .flat_map(|(kind, pps, loss, rows)| {
                let goodput = sum("goodput_bps", rows.clone()) / 8.0 / 8000.0;
                let lost = sum("drops", rows.clone()) / sum("arrivals", rows);
                let setting = format!("{setting}, {kind}");
                [
                    self.case(&setting, "packets/s of a flow", pps, goodput),
                    self.case(&setting, "loss", loss, lost),
                ]
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page says in how many rows a connection got nothing through.
    #[test]
    fn the_page_has_the_number_of_rows_with_starved_connections() {
        let starved: Vec<f64> = Row::all(ROWS).map(|row| row.number("starved")).collect();
        let most = starved.iter().copied().fold(0.0, f64::max);
        let with = starved.iter().filter(|n| **n > 0.0).count();
        let text = format!(
            "{with} of the {} rows have such connections (`starved`), at most {most}",
            starved.len()
        );
        assert!(include_str!("../../../docs/validation-ns2.md").contains(&text), "{text}");
    }
}
