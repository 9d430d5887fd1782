//! Memory that is shared with the kernel, and the rings in it.
//!
//! A ring is an array of a power of two of entries, and two counters that wrap: how many entries were ever
//! put in and taken out. Each has one writer. The side that puts in writes the entries first and the counter
//! after them (release); the side that takes out reads them in the other order (acquire).
#![expect(unsafe_code, reason = "memory is shared with the kernel")]

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use crate::sys;

/// Memory from the kernel, page by page, that is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Memory {
    at: NonNull<u8>,
    length: usize,
}

// SAFETY: nothing in it belongs to a thread; it is reached through this one owner alone.
unsafe impl Send for Memory {}

const ACCESS: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

impl Memory {
    /// `length` bytes of 0.
    pub(super) fn new(length: usize) -> io::Result<Self> {
        let size = NonZeroUsize::new(length).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_POPULATE;
        // SAFETY: a new mapping at a place that the kernel chooses touches no other memory.
        let at = unsafe { mmap_anonymous(None, size, ACCESS, flags) }?;
        Ok(Self { at: at.cast(), length })
    }

    /// `length` bytes of what `fd` has at `offset`.
    fn of(fd: BorrowedFd<'_>, offset: libc::off_t, length: usize) -> io::Result<Self> {
        let size = NonZeroUsize::new(length).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_POPULATE;
        // SAFETY: as above.
        let at = unsafe { mmap(None, size, ACCESS, flags, fd, offset) }?;
        Ok(Self { at: at.cast(), length })
    }

    /// Makes it the memory of the frames of `socket`, in chunks of `chunk` bytes. The kernel holds
    /// the pages themselves, as long as it needs them.
    pub(super) fn register(&self, socket: &OwnedFd, chunk: usize) -> io::Result<()> {
        let memory = libc::xdp_umem_reg {
            addr: self.at.as_ptr() as u64,
            len: self.length as u64,
            chunk_size: chunk as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        // SAFETY: this is an anonymous mapping, of which `frame` lends only what the kernel does not
        // have, by the rings' rules.
        unsafe { sys::xdp_register(socket, &memory) }
    }

    /// `length` bytes from `at` on, if they are inside. For frames that the kernel does not use now.
    pub(super) fn frame(&mut self, at: usize, length: usize) -> Option<&mut [u8]> {
        if at.checked_add(length)? > self.length {
            return None;
        }
        // SAFETY: inside the mapping, which lives as long as `self`, and borrowed from it alone. By
        // the rings' rules the kernel does not touch a frame between handing it over and getting it
        // back; any bytes are a `u8`.
        Some(unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr().add(at), length) })
    }

    /// Whether `count` values of `T` are inside at `at`, in the right place.
    fn holds<T>(&self, at: usize, count: usize) -> bool {
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(at));
        at.is_multiple_of(align_of::<T>()) && end.is_some_and(|end| end <= self.length)
    }

    /// The counter at `at`.
    fn counter(&self, at: usize) -> &AtomicU32 {
        assert!(self.holds::<AtomicU32>(at, 1), "a counter outside its memory");
        // SAFETY: inside the mapping (just checked) and aligned, since mappings begin with a page;
        // the kernel, too, reads and writes it as a whole.
        unsafe { self.at.add(at).cast().as_ref() }
    }

    /// The `count` words at `at`.
    fn words(&self, at: usize, count: usize) -> &[AtomicU64] {
        assert!(self.holds::<AtomicU64>(at, count), "entries outside their memory");
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.at.add(at).cast().as_ptr(), count) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, whole, and nothing borrows from it any more.
        _ = unsafe { munmap(self.at.cast(), self.length) };
    }
}

/// A ring whose entries are `N` words.
#[derive(Debug)]
pub(super) struct Ring<const N: usize> {
    memory: Memory,
    /// Where its parts are, bytes.
    producer: usize,
    consumer: usize,
    entries: usize,
    /// A power of two.
    size: u32,
}

impl<const N: usize> Ring<N> {
    /// The ring of `size` entries that the socket `fd` has at `place`.
    pub(super) fn open(
        fd: BorrowedFd<'_>,
        place: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        let bytes = N * size_of::<u64>() * size as usize;
        let length = bytes.checked_add(offsets.desc as usize).ok_or(io::ErrorKind::InvalidData)?;
        Self::new(Memory::of(fd, place, length)?, offsets, size)
    }

    fn new(memory: Memory, offsets: &libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        let [producer, consumer, entries] =
            [offsets.producer, offsets.consumer, offsets.desc].map(|at| at as usize);
        let sound = size.is_power_of_two()
            && memory.holds::<AtomicU32>(producer, 1)
            && memory.holds::<AtomicU32>(consumer, 1)
            && memory.holds::<AtomicU64>(entries, N * size as usize);
        if !sound {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { memory, producer, consumer, entries, size })
    }

    /// The entry with a number.
    fn entry(&self, number: u32) -> &[AtomicU64] {
        let at = N * (number & (self.size - 1)) as usize;
        &self.memory.words(self.entries, N * self.size as usize)[at..at + N]
    }

    fn read(&self, number: u32) -> [u64; N] {
        let entry = self.entry(number);
        std::array::from_fn(|i| entry[i].load(Ordering::Relaxed))
    }

    fn write(&self, number: u32, value: [u64; N]) {
        for (word, value) in self.entry(number).iter().zip(value) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn put(&self) -> &AtomicU32 {
        self.memory.counter(self.producer)
    }

    fn taken(&self) -> &AtomicU32 {
        self.memory.counter(self.consumer)
    }
}

/// A ring that the kernel takes from.
#[derive(Debug)]
pub(super) struct Giving<const N: usize> {
    ring: Ring<N>,
    /// Entries written so far, of which the kernel knows once they are published, and those that it
    /// has taken, as far as we know.
    put: u32,
    taken: u32,
}

impl<const N: usize> Giving<N> {
    /// A ring that nothing was put into.
    pub(super) fn new(ring: Ring<N>) -> Self {
        Self { ring, put: 0, taken: 0 }
    }

    /// Writes an entry; whether there was room.
    pub(super) fn push(&mut self, value: [u64; N]) -> bool {
        if self.put.wrapping_sub(self.taken) >= self.ring.size {
            self.learn_taken();
        }
        if self.put.wrapping_sub(self.taken) >= self.ring.size {
            return false;
        }
        self.ring.write(self.put, value);
        self.put = self.put.wrapping_add(1);
        true
    }

    /// Tells the kernel of what was written.
    pub(super) fn publish(&self) {
        self.ring.put().store(self.put, Ordering::Release);
    }

    /// How many entries the kernel has not taken.
    pub(super) fn waiting(&mut self) -> u32 {
        self.learn_taken();
        self.put.wrapping_sub(self.taken)
    }

    /// Changes the last `count` entries, which the kernel must not be about to take.
    pub(super) fn change_last(&mut self, count: u32, mut change: impl FnMut([u64; N]) -> [u64; N]) {
        for back in 1..=count {
            let number = self.put.wrapping_sub(back);
            self.ring.write(number, change(self.ring.read(number)));
        }
    }

    /// Reads how many the kernel has taken. It cannot have taken what was not there.
    fn learn_taken(&mut self) {
        let taken = self.ring.taken().load(Ordering::Acquire);
        if self.put.wrapping_sub(taken) <= self.put.wrapping_sub(self.taken) {
            self.taken = taken;
        }
    }
}

/// A ring that the kernel puts into.
#[derive(Debug)]
pub(super) struct Taking<const N: usize> {
    ring: Ring<N>,
    /// Entries that are there, as far as we know, and those read so far, of which the kernel knows
    /// once they are published.
    put: u32,
    taken: u32,
}

impl<const N: usize> Taking<N> {
    /// A ring that nothing was put into.
    pub(super) fn new(ring: Ring<N>) -> Self {
        Self { ring, put: 0, taken: 0 }
    }

    /// The next entry, if there is one.
    pub(super) fn pop(&mut self) -> Option<[u64; N]> {
        if self.put == self.taken {
            let put = self.ring.put().load(Ordering::Acquire);
            // More than there is room for cannot be there.
            if put.wrapping_sub(self.taken) > self.ring.size {
                return None;
            }
            self.put = put;
        }
        if self.put == self.taken {
            return None;
        }
        let value = self.ring.read(self.taken);
        self.taken = self.taken.wrapping_add(1);
        Some(value)
    }

    /// Tells the kernel of what was read.
    pub(super) fn publish(&self) {
        self.ring.taken().store(self.taken, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OFFSETS: libc::xdp_ring_offset =
        libc::xdp_ring_offset { producer: 0, consumer: 64, desc: 128, flags: 192 };

    fn ring<const N: usize>(size: u32) -> Ring<N> {
        Ring::new(Memory::new(4096).unwrap(), &OFFSETS, size).unwrap()
    }

    /// The kernel's part is played by writing its counter.
    #[test]
    fn entries_come_in_order_and_no_more_than_there_is_room_for() {
        let mut giving = Giving { ring: ring::<1>(4), put: u32::MAX - 1, taken: u32::MAX - 1 };
        giving.ring.taken().store(u32::MAX - 1, Ordering::Relaxed);
        assert!((0..4).all(|i| giving.push([i])), "across the end of the counter");
        assert!(!giving.push([4]), "full");
        giving.publish();
        assert_eq!(giving.ring.put().load(Ordering::Relaxed), 2);
        giving.ring.taken().store(u32::MAX, Ordering::Relaxed);
        assert!(giving.push([4]) && !giving.push([5]), "one was taken");
        assert_eq!(giving.waiting(), 4);
        giving.change_last(2, |[n]| [10 * n]);
        let entries = [u32::MAX, 0, 1, 2].map(|number| giving.ring.read(number)[0]);
        assert_eq!(entries, [1, 2, 30, 40]);

        let mut taking = Taking::new(ring::<2>(4));
        assert_eq!(taking.pop(), None);
        taking.ring.write(0, [1, 2]);
        taking.ring.put().store(1, Ordering::Relaxed);
        assert_eq!((taking.pop(), taking.pop()), (Some([1, 2]), None));
        assert_eq!(taking.ring.taken().load(Ordering::Relaxed), 0);
        taking.publish();
        assert_eq!(taking.ring.taken().load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_ring_that_does_not_fit_is_refused() {
        let offsets = |desc| libc::xdp_ring_offset { desc, ..OFFSETS };
        for (offsets, size) in
            [(offsets(128), 3), (offsets(128), 512), (offsets(u64::MAX), 4), (offsets(100), 4)]
        {
            assert!(Ring::<1>::new(Memory::new(4096).unwrap(), &offsets, size).is_err());
        }
    }

    proptest! {
        /// Whatever the kernel's counter says, no more comes than fits, and nothing is overwritten
        /// that was not taken.
        #[test]
        fn counters_are_not_believed(counters in prop::collection::vec(any::<u32>(), 1..20)) {
            let mut taking = Taking::new(ring::<1>(8));
            let mut giving = Giving::new(ring::<1>(8));
            for counter in counters {
                taking.ring.put().store(counter, Ordering::Relaxed);
                let there = counter.wrapping_sub(taking.taken);
                let popped = std::iter::from_fn(|| taking.pop()).count();
                prop_assert_eq!(popped, if there <= 8 { there as usize } else { 0 });

                giving.ring.taken().store(counter, Ordering::Relaxed);
                let pushed = (0..20).filter(|_| giving.push([1])).count();
                prop_assert!(pushed <= 8 && giving.put.wrapping_sub(giving.taken) <= 8);
            }
        }
    }
}
