//! For each line of fates on stdin (`validation::fates`), a line with when which packets of a connection come to
//! the queue that gives them their fates: `NS:NUMBER`, apart by blanks; twice as many packets as fates.
//!
//!     bluewater-fates [KEYS]
//!
//! KEYS are keys of TCP beside those of ns-2, as `recovery = "standard"`; without them its recovery is ns-2's.

use std::io::BufRead;
use std::process::ExitCode;

use validation::fates;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let keys = args.first().map_or("recovery = \"ns-2\"", |keys| keys);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match fates::sent(&line, 2 * line.len(), keys) {
            Ok(packets) => {
                let words: Vec<String> =
                    packets.iter().map(|(at, number)| format!("{at}:{number}")).collect();
                println!("{}", words.join(" "));
            }
            Err(e) => {
                eprintln!("{e}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}
