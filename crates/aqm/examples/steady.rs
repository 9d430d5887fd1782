//! What a packet costs in queue disciplines at steady state, enqueue and dequeue together.
//!
//! ```text
//! steady time partial                            nanoseconds, of all disciplines
//! steady time overload red sfb,levels=8,bins=16  of these, with settings
//! steady time overload:100000 drr                with so many flows, 7 at the least
//! valgrind --tool=callgrind --toggle-collect=steady::counted --dump-after=steady::counted \
//!     steady count partial red                   instructions of 10 000 packets, in a dump for each
//! ```
//!
//! `nothing` is the driving itself, to be subtracted. `signals` in place of `time` tells what was
//! measured, `steady names` what there is. `scripts/bench_gate.py` calls this for all.

#[path = "../benches/steady/mod.rs"]
mod steady;

use std::iter::once;
use std::time::Instant;

use steady::{Load, Steady};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["names"] {
        aqm::CATALOG.iter().for_each(|entry| println!("{}", entry.name));
        return;
    }
    let Some((what, load, flows, cases)) = parse(&args) else {
        eprintln!(
            "usage: steady time|count|signals partial|overload|crowd|crush[:FLOWS] \
            [NAME[,KEY=VALUE]...]..."
        );
        std::process::exit(2);
    };
    for case in cases {
        let mut parts = case.split(',');
        let name = parts.next().unwrap_or_default();
        let settings: Vec<_> = parts.filter_map(|pair| pair.split_once('=')).collect();
        let mut queue = Steady::new(name, &settings, load, flows);
        match what {
            "time" => println!("{case} {:.1}", nanoseconds(&mut queue)),
            "count" => {
                counted(&mut queue);
                println!("{case}");
            }
            _ => println!("{case}: {:?}", queue.signals()),
        }
    }
}

/// What to do, under which load, with how many flows if not the load's, with which queues.
fn parse(args: &[String]) -> Option<(&str, Load, Option<u64>, Vec<&str>)> {
    let [what, load, cases @ ..] = args else { return None };
    let (load, flows) = match load.split_once(':') {
        Some((load, flows)) => (load, Some(flows.parse().ok().filter(|&flows| flows >= 7)?)),
        None => (&load[..], None),
    };
    let (_, load) = Load::ALL.into_iter().find(|(name, _)| *name == load)?;
    let all = || once(Steady::NOTHING).chain(aqm::CATALOG.iter().map(|entry| entry.name));
    let cases = match cases {
        [] => all().collect(),
        some => some.iter().map(|case| &case[..]).collect(),
    };
    ["time", "count", "signals"].contains(&&what[..]).then_some((what, load, flows, cases))
}

/// What is counted.
#[inline(never)]
fn counted(queue: &mut Steady) {
    queue.packets(10_000);
}

/// The time for a packet: the least of many short runs, which others on the machine disturb least.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads a clock")]
fn nanoseconds(queue: &mut Steady) -> f64 {
    let run = |_| {
        let start = Instant::now();
        queue.packets(2000);
        start.elapsed().as_nanos() as f64 / 2000.0
    };
    (0..1000).map(run).fold(f64::INFINITY, f64::min)
}
