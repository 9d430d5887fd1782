//! For each line of fates on stdin (`validation::fates`), a line with when which packets of a connection come to
//! the queue that gives them their fates: `NS:NUMBER`, apart by blanks.
//!
//!     bluewater-fates SECONDS [KEYS]
//!
//! KEYS are keys of TCP beside those of ns-2, as `recovery = "standard"`; without them its recovery is ns-2's.

use std::io::BufRead;
use std::process::ExitCode;

use validation::fates;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(seconds) = args.first().and_then(|text| text.parse().ok()) else {
        eprintln!("usage: bluewater-fates SECONDS [KEYS]");
        return ExitCode::from(2);
    };
    let keys = args.get(1).map_or("recovery = \"ns-2\"", |keys| keys);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match fates::sent(&line, seconds, keys) {
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
