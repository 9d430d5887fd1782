//! A congestion controller in Rust, in a program of its own: `cargo run --example controller`.
//!
//! A crate elsewhere depends on `bluewater-sim` and does the same.

use sim::control::{Ack, Congestion, Controller, Kind, Out, Rng, Start, Undo, register};
use sim::{Run, Scenario, ScenarioError};

/// Reno (RFC 5681, RFC 9002 §7), with what a timeout that was needless gives back (RFC 4015).
#[derive(Clone)]
pub(crate) struct Reno {
    mtu: f64,
    cwnd: f64,
    ssthresh: f64,
    before: (f64, f64),
}

impl Reno {
    pub(crate) fn new(start: &Start) -> Self {
        let [mtu, cwnd] = [start.mtu, start.initial_window].map(|bytes| bytes as f64);
        Self { mtu, cwnd, ssthresh: f64::INFINITY, before: (cwnd, f64::INFINITY) }
    }
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.window_limited && !ack.in_recovery {
            let acked = ack.acked as f64;
            let slow_start = self.cwnd < self.ssthresh;
            self.cwnd += if slow_start { acked } else { self.mtu * acked / self.cwnd };
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        if congestion.new_episode {
            self.before = (self.cwnd, self.ssthresh);
            self.ssthresh = (self.cwnd / 2.0).max(2.0 * self.mtu);
        }
        self.cwnd = if congestion.kind >= Kind::Timeout { self.mtu } else { self.ssthresh };
    }

    fn on_undo(&mut self, _: &Undo) {
        self.cwnd = self.cwnd.max(self.before.0);
        self.ssthresh = self.ssthresh.max(self.before.1);
    }

    fn out(&self) -> Out {
        Out { cwnd: self.cwnd, ssthresh: self.ssthresh, ..Out::default() }
    }
}

const SCENARIO: &str = r#"
duration = "20s"
[network]
preset = "dumbbell"
[[queue]]
aqm = "codel"
buffer = "1bdp"
[[traffic]]
transport = "TRANSPORT"
flows = 10
rack = true
"#;

/// The decision hash with a transport and further keys.
fn decided(transport: &str, keys: &str) -> Result<String, ScenarioError> {
    let text = SCENARIO.replace("TRANSPORT", transport) + keys;
    let scenario = Scenario::from_toml(&text, "example")?;
    Ok(Run::new(scenario, &text, "example")?.finish().decision_hash)
}

fn main() -> Result<(), ScenarioError> {
    register("reno", |start: &Start, _: Rng| Box::new(Reno::new(start)) as Box<dyn Controller>);
    println!("rust:reno {}", decided("rust:reno", "")?);
    println!("sack      {}", decided("sack", "count_packets = true\nrfc9002 = true\n")?);
    Ok(())
}
