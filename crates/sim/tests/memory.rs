//! What a run takes from the heap: at set-up a fixed amount a flow, then next to nothing, however
//! many packets pass.
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait; this one only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use aqm::{Duration, Qdisc};
use sim::{Run, Scenario};

struct Counting;

thread_local! {
    /// Allocations by this thread and bytes that it holds, so that the test harness's own do not
    /// count.
    static ALLOCATIONS: Cell<i64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as i64);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as i64);
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The common workload of the benchmarks, all statistics on.
fn workload(flows: u32) -> Run {
    let text = format!(
        r#"
        duration = "60s"
        network = {{ preset = "feng-10ms" }}
        queue = [{{ aqm = "red", buffer = "200p" }}]
        traffic = [{{ flows = {flows}, transport = "sack", start = "0s..1s", ecn = true }}]
        "#
    );
    Scenario::from_toml(&text, "workload")
        .and_then(|scenario| Run::new(scenario, &text, "workload"))
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Web sessions, each connection of which loses packets now and then.
fn web() -> Run {
    let text = r#"
        duration = "300s"
        network = { preset = "redpd" }
        queue = [{ aqm = "red", buffer = "50p" }]
        [[traffic]]
        flows = 50
        transport = "sack"
        app = "web"
        size = "24p"
        shape = 1.2
        objects = 3
        off = "1s"
    "#;
    Scenario::from_toml(text, "web")
        .and_then(|scenario| Run::new(scenario, text, "web"))
        .unwrap_or_else(|e| panic!("{e}"))
}

/// Allocations, bytes still held, and packets of the next `seconds`.
fn spent(run: &mut Run, seconds: u64) -> [i64; 3] {
    let departed =
        |run: &Run| run.primary().map_or(0, |q| q.queue().counters().departed.packets as i64);
    let before = [ALLOCATIONS.get(), BYTES.get(), departed(run)];
    run.advance(Duration::from_secs(seconds));
    let after = [ALLOCATIONS.get(), BYTES.get(), departed(run)];
    std::array::from_fn(|i| after[i] - before[i])
}

/// Rings and scoreboards double until they are large enough; packets take nothing.
#[test]
fn allocations_do_not_grow_with_packets() {
    for folding in [true, false] {
        let mut run = workload(100).with_folding(folding);
        spent(&mut run, 20);
        let [allocations, _, packets] = spent(&mut run, 40);
        assert!(packets > 150_000, "{packets} packets");
        assert!(allocations < 20, "{allocations} allocations in {packets} packets");
    }
}

/// One connection after another in the same slots: only scoreboards and rings may still grow.
#[test]
fn connections_take_nothing_either() {
    let mut run = web();
    spent(&mut run, 100);
    let [allocations, _, packets] = spent(&mut run, 200);
    let requests = run.finish().transfers.number("completed", 0).unwrap();
    assert!(requests > 5_000.0 && packets > 150_000, "{requests} requests, {packets} packets");
    assert!(allocations < 100, "{allocations} allocations in {requests} requests");
}

#[test]
fn a_flow_takes_little_from_the_heap() {
    let held = |flows| {
        let before = BYTES.get();
        let mut run = workload(flows);
        let set_up = BYTES.get() - before;
        let [_, running, _] = spent(&mut run, 20);
        [set_up, running]
    };
    let (few, many) = (held(100), held(4100));
    let [set_up, running] = [0, 1].map(|i| (many[i] - few[i]) / 4000);
    println!("bytes a flow: {set_up} at set-up, {running} more at steady state");
    assert!(set_up + running <= 408, "{set_up} + {running} bytes a flow");
}
