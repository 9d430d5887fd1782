//! Hints about memory, for simulations that do not fit into a processor's caches. Nothing can be seen
//! of them but time.

#![cfg_attr(
    any(target_arch = "x86_64", target_os = "linux"),
    expect(unsafe_code, reason = "these hints are only to be given by a pointer")
)]

/// From this many flows on, their state does not fit into the nearer caches.
const MANY_FLOWS: usize = 8192;

/// Begins to fetch the state of the flow that `coming` names from memory. With few `flows`, `coming` is not
/// called.
#[inline(always)]
pub fn fetch_ahead<T>(flows: &[T], coming: impl FnOnce() -> Option<usize>) {
    if flows.len() >= MANY_FLOWS
        && let Some(flow) = coming().and_then(|flow| flows.get(flow))
    {
        prefetch(flow);
    }
}

#[inline(always)]
fn prefetch<T>(item: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let first = std::ptr::from_ref(item).cast::<i8>();
        for offset in (0..size_of::<T>()).step_by(LINE) {
            // SAFETY: `offset` is within `item`, and the instruction reads and writes nothing that
            // the program could see.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.add(offset)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}

/// An empty vector with room for `n` items, on large pages if it is large and the system has them: with small
/// ones, each access out of order would miss the processor's cache of page addresses.
pub fn room_for<T>(n: usize) -> Vec<T> {
    let room: Vec<T> = Vec::with_capacity(n);
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        const LARGE_PAGE: usize = 2 << 20;
        let bytes = n * size_of::<T>();
        if bytes >= 2 * LARGE_PAGE {
            let inside = room.as_ptr().cast::<u8>().align_offset(PAGE);
            let whole = (bytes - inside) / PAGE * PAGE;
            // SAFETY: whole pages of memory that is this vector's. The advice changes how the system
            // holds them, not what is in them; that it is not taken does no harm.
            unsafe {
                let start = room.as_ptr().cast::<u8>().add(inside).cast_mut().cast();
                libc::madvise(start, whole, libc::MADV_HUGEPAGE);
            }
        }
    }
    room
}
