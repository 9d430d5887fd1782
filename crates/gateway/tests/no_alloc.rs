//! A link takes no memory after it is built, whatever its queue discipline: packets under an
//! allocator that counts.
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait; this one only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use aqm::{CATALOG, Duration, Limit, Rate, Rng};
use gateway::frame::Layer;
use gateway::link::{Link, Spec};

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

#[test]
fn no_packet_takes_memory() {
    for entry in CATALOG {
        let spec = Spec {
            rate: Rate::from_mbit(10),
            delay: Duration::from_millis(3),
            limit: Limit::bytes(30_000).unwrap(),
            aqm: entry.name.into(),
            params: Vec::new(),
            mean_packet: 1000,
            seed: 1,
        };
        let mut link = Link::new(&spec, Layer::Ip, 1500).unwrap();
        let mut rng = Rng::new(2, 0);
        let mut frame = [0; 1500];
        frame[0] = 0x45;
        frame[9] = 17;
        let before = ALLOCATIONS.get();
        let (mut now, mut sent) = (0, 0);
        for i in 0..30_000 {
            now += rng.below([200_000, 2_000_000][i / 3000 % 2]) as u64;
            let len = [28, 40, 1000, 1500][rng.below(4)];
            frame[1] = rng.below(4) as u8;
            frame[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            frame[21] = rng.below(50) as u8;
            link.deliver(now, |_| sent += 1);
            link.arrive(now, &frame[..len]);
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{}", entry.name);
        assert!(sent > 1000 && link.counters().all_dropped().packets > 0, "{}", entry.name);
    }
}
