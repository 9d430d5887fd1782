//! What one packet costs in each queue discipline: enqueue and dequeue together, at steady state.
//!
//! `cargo bench -p bluewater-aqm`. Times are for comparison within one run (as ratios to droptail);
//! the example `steady` counts instructions, which do not vary from machine to machine.

#[expect(dead_code, reason = "only the example looks at signals")]
mod steady;

use divan::counter::ItemsCount;
use steady::{Load, Steady};

const PACKETS: usize = 10_000;

fn main() {
    divan::main();
}

fn names() -> impl Iterator<Item = &'static str> {
    aqm::CATALOG.iter().map(|entry| entry.name)
}

fn run(bencher: divan::Bencher<'_, '_>, name: &str, settings: &[(&str, &str)], load: Load) {
    let mut queue = Steady::new(name, settings, load);
    bencher
        .counter(ItemsCount::new(PACKETS))
        .bench_local(|| (0..PACKETS).for_each(|_| queue.packet(load)));
}

#[divan::bench(args = names())]
fn partial(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, name, &[], Load::Partial);
}

#[divan::bench(args = names())]
fn overload(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, name, &[], Load::Overload);
}

/// RED-PD monitors all of a thousand flows.
#[divan::bench]
fn crowd(bencher: divan::Bencher<'_, '_>) {
    run(bencher, "red-pd", &[("target_rtt", "1s"), ("least_drop_rate", "0.1")], Load::Crowd);
}
