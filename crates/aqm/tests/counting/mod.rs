//! An allocator that counts, for every test that no memory is taken.
#![expect(unsafe_code, reason = "a global allocator is an unsafe trait; this one only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Allocations by this thread, so that the test harness's own do not count.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// SAFETY: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        BYTES.with(|n| n.set(n.get().wrapping_add(layout.size() as u64)));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        BYTES.with(|n| n.set(n.get().wrapping_sub(layout.size() as u64)));
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What `f` makes, how often it takes memory, and the bytes that are still taken after it.
pub(crate) fn counted<T>(f: impl FnOnce() -> T) -> (T, [u64; 2]) {
    let before = [ALLOCATIONS.get(), BYTES.get()];
    let made = f();
    (made, [ALLOCATIONS.get() - before[0], BYTES.get().wrapping_sub(before[1])])
}
