//! What one packet costs in each queue discipline: enqueue and dequeue together, at steady state.
//!
//! `cargo bench -p bluewater-aqm`. Times are for comparison within one run (as ratios to droptail);
//! the example `steady` counts instructions, which do not vary from machine to machine.

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

fn run(bencher: divan::Bencher<'_, '_>, name: &str, load: Load) {
    let mut queue = Steady::new(name, &[], load);
    bencher
        .counter(ItemsCount::new(PACKETS))
        .bench_local(|| (0..PACKETS).for_each(|_| queue.packet(load)));
}

#[divan::bench(args = names())]
fn partial(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, name, Load::Partial);
}

#[divan::bench(args = names())]
fn overload(bencher: divan::Bencher<'_, '_>, name: &str) {
    run(bencher, name, Load::Overload);
}
