//! What one packet costs in each queue discipline: enqueue and dequeue together, at steady state.
//!
//! `cargo bench -p bluewater-aqm`. Times are for comparison within one run; `nothing` is the driving
//! itself. The example `steady` counts instructions, which do not vary from machine to machine.

#[expect(dead_code, reason = "only the example looks at signals and reads loads")]
mod steady;

use divan::counter::ItemsCount;
use steady::{Load, Steady};

const PACKETS: u64 = 10_000;

fn main() {
    divan::main();
}

fn names() -> impl Iterator<Item = &'static str> {
    [Steady::NOTHING].into_iter().chain(aqm::CATALOG.iter().map(|entry| entry.name))
}

fn run(bencher: divan::Bencher<'_, '_>, name: &str, settings: &[(&str, &str)], load: Load) {
    let mut queue = Steady::new(name, settings, load, None);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| queue.packets(PACKETS));
}

#[divan::bench(args = names())]
fn partial(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, name, &[], Load::Partial);
}

#[divan::bench(args = names())]
fn overload(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, name, &[], Load::Overload);
}

/// As many bins as Linux has.
#[divan::bench]
fn sfb_8x16(bencher: divan::Bencher<'_, '_>) {
    run(bencher, "sfb", &[("levels", "8"), ("bins", "16")], Load::Partial);
}

/// RED-PD monitors all of a thousand flows.
#[divan::bench]
fn crowd(bencher: divan::Bencher<'_, '_>) {
    run(bencher, "red-pd", &[("target_rtt", "1s"), ("least_drop_rate", "0.1")], Load::Crowd);
}
