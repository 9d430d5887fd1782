//! RED-PD against the program of its authors, in ns-2.35 (Mahajan01 Figs. 13 to 15).
//!
//! `reference/ns2_redpd.csv` was made by the scripts beside it: the filter of ns-2 and the authors'
//! program in Tcl that moves its probabilities, on our networks. Here it is `preset = "authors"`. ns-2
//! starts flows elsewhere in the same 10 s, and its program is the one that starts after 10.1 s. The rows
//! of the other figures stand behind bounds and verdicts of the experiments in `redpd`.

use crate::rows::Row;
use crate::{Allowed, Case, Setting, each};
use sim::ScenarioError;

const ROWS: &str = include_str!("../reference/ns2_redpd.csv");

/// Constant rates in Mb/s of Fig. 14, and round-trip times in ms and constant rates of Fig. 15.
const FIG_14: [&str; 11] = ["0.1", "0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5"];
const FIG_15: [(&str, &str); 3] = [("30", "5"), ("50", "3"), ("70", "1")];

/// One run of ns-2.
struct Reference(Row);

/// The runs of Figs. 14 and 15, and what one flow gets behind a fixed drop rate (Fig. 13).
pub fn settings() -> Vec<Setting> {
    let runs = Row::all(ROWS).filter(|r| matches!(r.text("figure"), "14" | "15"));
    let mut settings = each(runs.map(Reference), Reference::compare);
    let rates = ["0.01", "0.05", "0.1"].into_iter().flat_map(|p| [(p, 1.0), (p, 8.0)]);
    settings.extend(each(rates, fixed_drop_rate));
    settings
}

impl Reference {
    fn fig_14(&self) -> bool {
        self.0.text("figure") == "14"
    }

    fn setting(&self) -> String {
        let r = &self.0;
        let test = if r.text("test") == "1" { ", test" } else { "" };
        format!("Fig. {}, {}{test}, seed {}", r.text("figure"), r.text("queue"), r.text("seed"))
    }

    /// What a flow got in ns-2, Mb/s.
    fn mbps(&self) -> Vec<f64> {
        self.0.text("mbps").split(' ').map(|x| x.parse().unwrap_or(f64::NAN)).collect()
    }

    fn scenario(&self) -> String {
        let queue = if self.0.text("queue") == "RED" {
            "aqm = \"red\"\nparams = { min_th = \"20%\", max_th = \"66%\", max_p = 0.1, gentle = true, ns2_rules = true }".into()
        } else {
            let test = self.0.text("test") == "1";
            format!(
                "aqm = \"red-pd\"\nparams = {{ preset = \"authors\", unresponsive_test = {test} }}"
            )
        };
        let cbr = |rate: &str, from: usize, to: usize| {
            format!(
                "[[traffic]]\ntransport = \"cbr\"\nrate = \"{rate}mbit\"\nfrom = [\"n{from}\"]\nto = [\"n{to}\"]\nstart = \"0s..10s\"\n"
            )
        };
        let (network, traffic): (_, String) = if self.fig_14() {
            ("", FIG_14.iter().map(|rate| cbr(rate, 0, 3)).collect())
        } else {
            let tcp = (0..3).map(|i| {
                format!("[[traffic]]\nflows = 3\ntransport = \"sack\"\nfrom = [\"n{i}\"]\nto = [\"n{}\"]\nwindow = \"50p\"\nstart = \"0s..10s\"\ninitial_rto = \"3s\"\nrto_granularity = \"10ms\"\nrecovery = \"ns-2\"\nforget_rtt = true\n", i + 3)
            });
            let udp = FIG_15.iter().enumerate().map(|(i, (_, rate))| cbr(rate, i, i + 3));
            let network = "delay = \"10ms\"\naccess_delay = [\"2.5ms\", \"7.5ms\", \"12.5ms\"]";
            (network, tcp.chain(udp).collect())
        };
        format!(
            "seed = {}\nduration = \"390s\"\nwarmup = \"190s\"\n[network]\npreset = \"redpd\"\n{network}\n[[queue]]\nbuffer = \"50p\"\n{queue}\n{traffic}",
            self.0.text("seed")
        )
    }

    /// The run compared.
    fn compare(&self) -> Result<Vec<Case>, ScenarioError> {
        let outcome = crate::run(&self.scenario())?;
        let got = |flow| outcome.flows.number("throughput_bps", flow).unwrap_or(f64::NAN) / 1e6;
        let expected = self.mbps();
        let case = |quantity, who: &str, expected: f64, measured: f64, allowed| Case {
            group: "ns-2.35, RED-PD",
            setting: format!("{}{who}", self.setting()),
            quantity,
            expected,
            measured,
            allowed,
        };
        let mean = |flows: std::ops::Range<usize>, of: &dyn Fn(usize) -> f64| {
            let n = flows.len() as f64;
            flows.map(of).sum::<f64>() / n
        };
        let flows = |who: &str, flows: std::ops::Range<usize>, share| {
            let ns2 = mean(flows.clone(), &|i| expected[i]);
            case("a flow, Mb/s", who, ns2, mean(flows, &got), Allowed::Share(share))
        };
        let summary = |name| outcome.summary.number(name, 0).unwrap_or(f64::NAN);
        let filtered = summary("drops_penalty");
        let ambient = (summary("drops") - filtered) / (summary("arrivals") - filtered);
        let mut cases = vec![case(
            "drop rate of the queue",
            "",
            self.0.number("ambient"),
            ambient,
            Allowed::Share(if self.0.text("test") == "1" { 0.25 } else { 0.15 }),
        )];
        if self.fig_14() {
            for (i, rate) in FIG_14.iter().enumerate().take(3) {
                cases.push(flows(&format!(", {rate} Mb/s"), i..i + 1, 0.1));
            }
            cases.push(flows(", 1.5 to 5 Mb/s", 3..11, 0.05));
        } else {
            for (i, (rtt, rate)) in FIG_15.iter().enumerate() {
                cases.push(flows(&format!(", TCP {rtt} ms"), 3 * i..3 * i + 3, 0.15));
                cases.push(flows(&format!(", {rate} Mb/s"), 9 + i..10 + i, 0.2));
            }
        }
        Ok(cases)
    }
}

/// What one flow of `gamma` times f(R, p) gets behind a fixed drop rate `p`, in f(R, p) (Fig. 13): the
/// mean over the seeds of ns-2, and over three of ours.
fn fixed_drop_rate(&(rate, gamma): &(&str, f64)) -> Result<Vec<Case>, ScenarioError> {
    let p: f64 = rate.parse().unwrap_or(f64::NAN);
    let target = 8000.0 * (1.5_f64 / p).sqrt() / 0.04;
    let number = format!("{gamma}@{rate}");
    let of = |r: &Row| r.text("figure") == "13" && r.text("number") == number;
    let ns2: Vec<f64> = Row::all(ROWS).filter(of).map(|r| r.number("mbps")).collect();
    let mut sum = 0.0;
    for seed in 1..=3 {
        let outcome = crate::run(&fixed(seed, p, (gamma * target).round()))?;
        sum += outcome.flows.number("throughput_bps", 0).unwrap_or(f64::NAN);
    }
    Ok(vec![Case {
        group: "ns-2.35, RED-PD",
        setting: format!("Fig. 13, p = {p}, {gamma} f(R, p), mean of {} seeds", ns2.len()),
        quantity: "a flow, f(R, p)",
        expected: ns2.iter().sum::<f64>() / ns2.len() as f64 * 1e6 / target,
        measured: sum / 3.0 / target,
        allowed: Allowed::Share(0.1),
    }])
}

fn fixed(seed: u64, p: f64, rate: f64) -> String {
    format!(
        r#"seed = {seed}
duration = "400s"
warmup = "200s"
[network]
preset = "dumbbell"
rate = "200mbit"
[[queue]]
aqm = "bernoulli"
buffer = "1000p"
params = {{ p = {p} }}
prefilter = "red-pd"
[queue.prefilter_params]
list_drop_rate = {p}
interval_bounds = true
filter_spacing = "uniform-exact"
increment_rate = "least"
increment_cap = "probability"
last_list = true
least_pause = "400ms"
unresponsive_test = false
[[traffic]]
transport = "cbr"
rate = "{rate}bit"
start = "0s..10ms"
"#
    )
}
