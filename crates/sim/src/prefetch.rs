//! A hint to the processor, for simulations that do not fit into its caches.

#![expect(unsafe_code, reason = "the processor's instruction is only to be had by a pointer")]

/// Begins to fetch `item` from memory. Nothing can be seen of it but time.
#[inline(always)]
pub(crate) fn prefetch<T>(item: &T) {
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
