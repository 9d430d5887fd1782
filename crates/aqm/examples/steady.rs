//! Runs one queue discipline at steady state, to count instructions:
//!
//! ```text
//! cargo build --release -p bluewater-aqm --example steady
//! valgrind --tool=callgrind target/release/examples/steady red partial 100000
//! ```
//!
//! The cost of a packet is the difference between two counts over the difference of packets, which
//! leaves out the start of the program.

#[path = "../benches/steady/mod.rs"]
mod steady;

use steady::{Load, Steady};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, load, packets, settings @ ..] = &args[..] else {
        eprintln!("usage: steady NAME partial|overload PACKETS [KEY=VALUE ...]");
        std::process::exit(2);
    };
    let settings: Vec<_> = settings.iter().filter_map(|pair| pair.split_once('=')).collect();
    let load = if load == "overload" { Load::Overload } else { Load::Partial };
    let packets: u64 = packets.parse().expect("a number of packets");
    let mut queue = Steady::new(name, &settings, load);
    (0..packets).for_each(|_| queue.packet(load));
    println!("{name}: {} packets queued", queue.backlog().packets);
}
