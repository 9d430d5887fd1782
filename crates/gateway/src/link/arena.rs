//! Fixed memory for packets: slots of one size, taken and given back in O(1).
//!
//! The memory is reserved when the arena is made; the system provides it as slots are first used,
//! and the slot that was given back last is taken first, so that a short queue stays in the cache.

use aqm::{Ack, Backlog, Carried, Cause};

/// A packet in an [`Arena`], and its number in the order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Handle {
    pub(crate) slot: u32,
    pub(crate) seq: u32,
    /// What it acknowledges, if the queue asks for that.
    pub(crate) ack: Ack,
}

impl Carried for Handle {
    fn ack(&self) -> Ack {
        self.ack
    }
}

/// The known facts of the packet in each slot. All start as 0, so the system provides the memory at first
/// use, as for the packets: room for millions takes no time.
#[derive(Debug)]
struct Kept {
    length: Box<[u32]>,
    /// Why it was marked here: a number of [`Cause::ALL`] and 1, or 0.
    marked: Box<[u8]>,
    /// What was queued when it arrived, if that was noted: packets and bytes.
    found: [Box<[u64]>; 2],
}

impl Kept {
    fn new(slots: usize) -> Self {
        let zeros = || vec![0; slots].into_boxed_slice();
        Self {
            length: vec![0; slots].into_boxed_slice(),
            marked: vec![0; slots].into_boxed_slice(),
            found: [zeros(), zeros()],
        }
    }

    /// Room for `slots`; of those that are there the first `used` stay.
    fn grow(&mut self, slots: usize, used: usize) {
        let mut new = Self::new(slots);
        new.length[..used].copy_from_slice(&self.length[..used]);
        new.marked[..used].copy_from_slice(&self.marked[..used]);
        for (new, old) in new.found.iter_mut().zip(&self.found) {
            new[..used].copy_from_slice(&old[..used]);
        }
        *self = new;
    }
}

/// Memory for a fixed number of packets.
#[derive(Debug)]
pub(crate) struct Arena {
    bytes: Box<[u8]>,
    slot_size: usize,
    kept: Kept,
    /// Slots from here on were never used.
    fresh: u32,
    /// Slots that were given back.
    free: Vec<u32>,
}

impl Arena {
    /// Room for `slots` packets of at most `longest` bytes.
    pub(crate) fn new(slots: u32, longest: usize) -> Self {
        let slot_size = longest.next_multiple_of(64); // a cache line
        let count = slots as usize;
        Self {
            bytes: vec![0; count * slot_size].into_boxed_slice(),
            slot_size,
            kept: Kept::new(count),
            fresh: 0,
            free: Vec::with_capacity(count),
        }
    }

    /// Whether the system gives so much memory.
    pub(crate) fn fits(slots: u32, longest: usize) -> Option<()> {
        let bytes = (slots as usize).checked_mul(longest.next_multiple_of(64))?;
        Vec::<u8>::new().try_reserve_exact(bytes).ok()
    }

    /// The longest packet.
    pub(crate) fn longest(&self) -> usize {
        self.slot_size
    }

    /// Makes room for at least `slots` packets; those that are there keep their places.
    pub(crate) fn grow(&mut self, slots: u32) {
        let count = slots as usize;
        if count <= self.kept.length.len() {
            return;
        }
        // Only what was ever used is copied; the rest is taken from the system as it is needed.
        let mut bytes = vec![0; count * self.slot_size].into_boxed_slice();
        let used = self.fresh as usize;
        bytes[..used * self.slot_size].copy_from_slice(&self.bytes[..used * self.slot_size]);
        self.bytes = bytes;
        self.kept.grow(count, used);
        self.free.reserve(count - self.free.len());
    }

    /// A copy of `packet`, or nothing if there is no room or it is too long.
    pub(crate) fn store(&mut self, packet: &[u8]) -> Option<u32> {
        if packet.len() > self.slot_size {
            return None;
        }
        let slot = self.free.pop().or_else(|| {
            let fresh = (self.fresh as usize) < self.kept.length.len();
            fresh.then(|| {
                self.fresh += 1;
                self.fresh - 1
            })
        })?;
        let place = slot as usize;
        self.kept.length[place] = packet.len() as u32;
        self.kept.marked[place] = 0;
        self.packet_mut(slot).copy_from_slice(packet);
        Some(slot)
    }

    /// The packet in `slot`.
    pub(crate) fn packet_mut(&mut self, slot: u32) -> &mut [u8] {
        let at = slot as usize * self.slot_size;
        &mut self.bytes[at..at + self.kept.length[slot as usize] as usize]
    }

    /// Notes what was queued when the packet in `slot` arrived.
    pub(crate) fn find(&mut self, slot: u32, queued: Backlog) {
        let [packets, bytes] = &mut self.kept.found;
        packets[slot as usize] = queued.packets.into();
        bytes[slot as usize] = queued.bytes;
    }

    /// The backlog when the packet in `slot` arrived, if it was noted.
    pub(crate) fn found(&self, slot: u32) -> Backlog {
        let [packets, bytes] = self.kept.found.each_ref().map(|found| found[slot as usize]);
        Backlog { packets: packets as u32, bytes }
    }

    /// Notes why the packet in `slot` was marked.
    pub(crate) fn mark(&mut self, slot: u32, cause: Cause) {
        self.kept.marked[slot as usize] = cause as u8 + 1;
    }

    /// Why the packet in `slot` was marked, if it was.
    pub(crate) fn marked(&self, slot: u32) -> Option<Cause> {
        let number = self.kept.marked[slot as usize].checked_sub(1)?;
        Cause::ALL.get(usize::from(number)).copied()
    }

    /// Gives a slot back.
    pub(crate) fn release(&mut self, slot: u32) {
        debug_assert!(!self.free.contains(&slot), "slot {slot} is given back twice");
        self.free.push(slot);
    }

    /// Slots in use.
    pub(crate) fn used(&self) -> usize {
        self.fresh as usize - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_hold_their_packets() {
        let mut arena = Arena::new(3, 100);
        let slots: Vec<u32> =
            (1..=3).filter_map(|n| arena.store(&vec![n; 40 * n as usize / 2])).collect();
        assert_eq!(slots, [0, 1, 2]);
        assert_eq!(arena.store(&[9]), None, "full");
        arena.release(1);
        assert_eq!((arena.store(&[7; 5]), arena.used()), (Some(1), 3));
        assert_eq!(arena.packet_mut(0), [1; 20]);
        assert_eq!(arena.packet_mut(1), [7; 5]);
        assert_eq!(arena.packet_mut(2), [3; 60]);
        arena.release(0);
        assert_eq!(arena.store(&[0; 129]), None, "too long");
        arena.grow(4);
        assert_eq!(
            (arena.store(&[4; 4]), arena.store(&[5; 5]), arena.used()),
            (Some(0), Some(3), 4)
        );
        assert_eq!(arena.packet_mut(1), [7; 5]);
        assert_eq!(arena.store(&[6; 6]), None, "full again");
    }
}
