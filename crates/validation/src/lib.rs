//! The simulator against what others know: closed forms, and an independent simulator.
//!
//! Each [`Case`] is a scenario, a quantity measured in it, the value expected, and how far the two
//! may lie apart. `bluewater-validate` measures them all and prints the documentation's [`table`]; the tests
//! measure some anew, and assert what the pages say of the table.

pub mod fates;
pub mod formulas;
pub mod linux;
pub mod linux_accecn;
pub mod linux_bbr;
pub mod linux_cake;
pub mod linux_dctcp;
pub mod linux_packets;
pub mod ns2;
pub mod ns2_steps;
pub mod packetdrill;
pub mod parts;
pub mod prague;
pub mod red_pd;
mod rows;
pub mod table;
pub mod testbed;

use aqm::response;
use sim::{Outcome, Run, Scenario, ScenarioError};

/// A quantity measured and expected.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// What is compared with what.
    pub group: &'static str,
    /// The setting.
    pub setting: String,
    /// The quantity and its unit.
    pub quantity: &'static str,
    /// The value expected.
    pub expected: f64,
    /// The value measured.
    pub measured: f64,
    /// How far they may lie apart.
    pub allowed: Allowed,
}

/// How far a measured value may lie from the expected one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Allowed {
    /// By this share of the expected value.
    Share(f64),
    /// By this much.
    Absolute(f64),
    /// By this factor up or down, or this much (for what varies by factors).
    Factor(f64, f64),
}

impl Case {
    /// Whether the measured value is near enough.
    pub fn holds(&self) -> bool {
        let off = (self.measured - self.expected).abs();
        match self.allowed {
            Allowed::Share(share) => off <= share * self.expected.abs(),
            Allowed::Absolute(most) => off <= most,
            Allowed::Factor(factor, floor) => {
                off <= floor
                    || (self.measured <= self.expected * factor
                        && self.measured >= self.expected / factor)
            }
        }
    }
}

/// What compares one setting, when it is called.
pub type Setting = Box<dyn Fn() -> Result<Vec<Case>, ScenarioError> + Send + Sync>;

/// A setting for each of `items`.
fn each<T: Send + Sync + 'static>(
    items: impl IntoIterator<Item = T>,
    compare: impl Fn(&T) -> Result<Vec<Case>, ScenarioError> + Copy + Send + Sync + 'static,
) -> Vec<Setting> {
    items.into_iter().map(|item| -> Setting { Box::new(move || compare(&item)) }).collect()
}

/// Runs a scenario from its text.
///
/// # Errors
/// See [`ScenarioError`].
pub fn run(text: &str) -> Result<Outcome, ScenarioError> {
    let scenario = Scenario::from_toml(text, "validation")?;
    Ok(Run::new(scenario, text, "validation")?.finish())
}

fn mean_goodput(outcome: &Outcome) -> f64 {
    let goodput: Vec<f64> = outcome.flows.real("goodput_bps").iter().flatten().copied().collect();
    goodput.iter().sum::<f64>() / goodput.len() as f64
}

/// Flows over a link that signals packets independently, as `params` of `bernoulli` say, far below its
/// rate and with a round trip of 100 ms; the first 20 s do not count.
///
/// # Errors
/// See [`ScenarioError`].
pub fn lossy(duration: &str, params: &str, traffic: &str) -> Result<Outcome, ScenarioError> {
    lossy_of("1", duration, params, traffic)
}

/// [`lossy`] with a seed.
fn lossy_of(
    seed: &str,
    duration: &str,
    params: &str,
    traffic: &str,
) -> Result<Outcome, ScenarioError> {
    run(&format!(
        r#"
        seed = {seed}
        duration = "{duration}"
        warmup = "20s"
        [network]
        preset = "dumbbell"
        rate = "100gbit"
        access_rate = "100gbit"
        delay = "50ms"
        [[queue]]
        aqm = "bernoulli"
        buffer = "10000p"
        params = {{ {params} }}
        [[traffic]]
        start = "0s..1s"
        {traffic}
        "#
    ))
}

/// TCP under Bernoulli loss: 100 connections, each far below the link's rate, round trip 100 ms.
///
/// Below 1 % the square-root law has to hold; from 0.1 % to 10 % the formula with timeouts. Both
/// take one acknowledgement a packet.
fn tcp_response(&(variant, p): &(&str, f64)) -> Result<Vec<Case>, ScenarioError> {
    let traffic = format!("flows = 100\ntransport = \"{variant}\"");
    let outcome = lossy("320s", &format!("p = {p}"), &traffic)?;
    let measured = mean_goodput(&outcome) / 8000.0;
    let (rtt, rto) = (0.1, 0.2);
    let case = |quantity, expected, share| Case {
        group: "TCP under Bernoulli loss",
        setting: format!("{variant}, p = {} %", p * 100.0),
        quantity,
        expected,
        measured,
        allowed: Allowed::Share(share),
    };
    let mut cases = Vec::new();
    if p < 0.01 {
        cases.push(case("packets/s against √(1.5/p)/R", response::square_root(p, rtt), 0.12));
    }
    cases.push(case("packets/s against PFTK", response::pftk(p, rtt, rto), 0.25));
    Ok(cases)
}

/// TCP under Bernoulli loss with delayed acknowledgements, one for every second packet: the window
/// grows by half a packet a round trip, as if twice as many were lost.
fn delayed_ack_response(&p: &f64) -> Result<Vec<Case>, ScenarioError> {
    let traffic = "flows = 100\ntransport = \"sack\"\ndelayed_ack = \"100ms\"";
    let outcome = lossy("320s", &format!("p = {p}"), traffic)?;
    Ok(vec![Case {
        group: "TCP under Bernoulli loss, delayed acknowledgements",
        setting: format!("sack, p = {} %", p * 100.0),
        quantity: "packets/s against √(0.75/p)/R",
        expected: response::square_root(2.0 * p, 0.1),
        measured: mean_goodput(&outcome) / 8000.0,
        allowed: Allowed::Share(0.12),
    }])
}

/// DCTCP under Bernoulli marks: 20 connections, each far below the link's rate, against
/// [`formulas::dctcp_window`].
fn dctcp_response(&p: &f64) -> Result<Vec<Case>, ScenarioError> {
    let outcome = lossy(
        "120s",
        &format!("p = {p}, ecn = true"),
        "flows = 20\ntransport = \"dctcp\"\necn = true",
    )?;
    Ok(vec![Case {
        group: "DCTCP under Bernoulli marks",
        setting: format!("p = {} %", p * 100.0),
        quantity: "window, packets, where growth and reductions balance",
        expected: formulas::dctcp_window(p),
        measured: mean_goodput(&outcome) / 8000.0 * 0.1,
        allowed: Allowed::Share(0.15),
    }])
}

/// Datagrams of 1000 bytes at the share `rho` of 10 Mb/s into a queue of `buffer` packets.
fn datagrams(rho: f64, gaps: &str, buffer: u32) -> Result<Outcome, ScenarioError> {
    run(&format!(
        r#"
        duration = "1000s"
        warmup = "10s"
        [network]
        preset = "dumbbell"
        access_rate = "100gbit"
        [[queue]]
        aqm = "droptail"
        buffer = "{buffer}p"
        [[traffic]]
        transport = "cbr"
        rate = "{}bit"
        gaps = "{gaps}"
        "#,
        (rho * 10e6) as u64
    ))
}

/// Queues of datagrams with known answers: M/D/1 and D/D/1.
fn queues(&(): &()) -> Result<Vec<Case>, ScenarioError> {
    use Allowed::{Absolute, Share};
    let mut cases = Vec::new();
    let mut compare = |group, o: &Outcome, setting: &str, rows: &[Row]| {
        cases.extend(rows.iter().map(|&(quantity, column, expected, allowed)| Case {
            group,
            setting: setting.to_string(),
            quantity,
            expected,
            measured: o.summary.number(column, 0).unwrap_or(f64::NAN),
            allowed,
        }));
    };
    for rho in [0.3, 0.5, 0.8, 0.9] {
        let waiting = formulas::md1_waiting(rho);
        // Little: W = Lq/λ; a packet takes 0.8 ms.
        let delay = waiting * 0.0008 / rho;
        let rows = [
            ("packets waiting, mean", "queue_mean_packets", waiting, Share(0.03)),
            ("delay in the queue, s", "delay_mean_s", delay, Share(0.03)),
            ("utilisation", "utilisation", rho, Absolute(0.005)),
        ];
        compare("M/D/1", &datagrams(rho, "poisson", 100_000)?, &format!("ρ = {rho}"), &rows);
    }
    let rows = [
        ("delay in the queue, max, s", "delay_max_s", 0.0, Absolute(0.0)),
        ("utilisation", "utilisation", 0.9, Absolute(1e-6)),
    ];
    compare("D/D/1", &datagrams(0.9, "constant", 10)?, "ρ = 0.9", &rows);
    let over = datagrams(1.25, "constant", 10)?;
    let loss = ("loss = 1 − 1/ρ", "loss", 0.2, Absolute(1e-5));
    compare("D/D/1", &over, "ρ = 1.25", &[loss]);
    let waiting = ("packets waiting, max", "queue_max_packets", 10.0, Absolute(0.0));
    compare("D/D/1", &over, "ρ = 1.25, buffer 10 packets", &[waiting]);
    Ok(cases)
}

/// A quantity and its unit, its column in the summary, what is expected, how far apart they may lie.
type Row = (&'static str, &'static str, f64, Allowed);
