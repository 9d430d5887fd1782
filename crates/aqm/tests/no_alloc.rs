//! No queue discipline takes memory after it is built: 100 000 operations for each algorithm of the
//! catalogue under an allocator that counts.
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait; this one only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use aqm::{
    AnyQdisc, CATALOG, Cx, Duration, Ecn, Env, FlowKey, Instant, Limit, Meta, Qdisc, Rate, Rng,
};

struct Counting;

thread_local! {
    /// Allocations by this thread, so that the test harness's own do not count.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(f: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 1);
}

#[test]
fn no_algorithm_allocates_after_construction() {
    for entry in CATALOG {
        let mut rng = Rng::new(1, 0);
        let mut dice = Rng::new(2, 0);
        let mut now = Instant::ZERO;
        let limit = Limit::packets(50).unwrap();
        let env = Env { now, limit, rate: Rate::from_mbit(8), mean_packet: 1000 };
        let mut q = AnyQdisc::<u32>::build(entry.name, &[], &env, &mut rng).unwrap();
        let mut signals = 0.0;
        let taken = allocations(|| {
            for i in 0..100_000 {
                now += Duration::from_nanos(dice.bits() % 2_000_000);
                let mut cx = Cx { now, rng: &mut rng };
                if q.poll_at().is_some_and(|at| at <= now) {
                    q.on_timer(&mut cx, &mut ());
                }
                // Three arrivals to two departures for a while, then the other way round.
                let arrive = dice.below(5) < if i / 1000 % 2 == 0 { 3 } else { 2 };
                if arrive {
                    let ecn = if dice.chance(0.5) { Ecn::Ect0 } else { Ecn::NotEct };
                    let flow = FlowKey(dice.below(1000) as u64);
                    q.enqueue(Meta { flow, len: 1000, ecn, arrived: now }, i, &mut cx, &mut ());
                } else {
                    black_box(q.dequeue(&mut cx, &mut ()));
                }
                q.observe(now, &mut |_, value| signals += value);
            }
        });
        assert_eq!(taken, 0, "{}", entry.name);
        assert!(q.counters().all_dropped().packets > 0, "{} was not put to work", entry.name);
    }
}
