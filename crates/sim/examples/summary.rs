//! Runs a scenario file and prints its queues: `cargo run --example summary -- FILE`.

use sim::{Run, Scenario};

fn main() {
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let outcome = Scenario::from_toml(&text, &file)
            .and_then(|s| Run::new(s, &text, &file))
            .map(Run::finish);
        match outcome {
            Ok(outcome) => {
                for (name, column) in outcome.summary.columns() {
                    println!("{name}: {column:?}");
                }
                for name in ["retransmits", "timeouts", "ecn_reductions"] {
                    let sum: f64 = (0..).map_while(|i| outcome.flows.number(name, i)).sum();
                    println!("{name}: {sum}");
                }
                println!("decision_hash: {}", outcome.decision_hash);
            }
            Err(e) => eprintln!("{e}"),
        }
    }
}
