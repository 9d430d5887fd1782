//! Runs one queue discipline at steady state, to count instructions:
//!
//! ```text
//! cargo build --release -p bluewater-aqm --example steady
//! valgrind --tool=callgrind --toggle-collect='*counted*' \
//!     target/release/examples/steady red partial 10000
//! ```
//!
//! counts those of 10 000 packets, without the start of the program; `nothing` in place of `red`
//! counts the driving itself. Settings follow as `key=value`. The signals at the end say what was
//! measured. `scripts/bench_gate.py` does this for the disciplines that it watches.

#[path = "../benches/steady/mod.rs"]
mod steady;

use steady::{Load, Steady};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match &args[..] {
        [name, load, packets, settings @ ..] => Load::ALL
            .into_iter()
            .find(|(known, _)| known == load)
            .zip(packets.parse().ok())
            .map(|((_, load), packets)| (name, load, packets, settings)),
        _ => None,
    };
    let Some((name, load, packets, settings)) = parsed else {
        eprintln!("usage: steady NAME partial|overload|crowd PACKETS [KEY=VALUE ...]");
        std::process::exit(2);
    };
    let settings: Vec<_> = settings.iter().filter_map(|pair| pair.split_once('=')).collect();
    let mut queue = Steady::new(name, &settings, load);
    counted(&mut queue, packets);
    println!("{name}: {:?}", queue.signals());
}

/// What is counted.
#[inline(never)]
fn counted(queue: &mut Steady, packets: u64) {
    queue.packets(packets);
}
