//! Fixed memory for packets: slots of one size, taken and given back in O(1).
//!
//! The memory is reserved when the arena is made and touched as slots are first used, so that room for
//! millions takes no time. The slot that was given back last is taken first, so that a short queue stays
//! in the cache.

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

/// What is known of the packet in a slot.
#[derive(Clone, Copy, Default, Debug)]
struct Kept {
    length: u32,
    /// Why it was marked here.
    marked: Option<Cause>,
    /// The backlog when it arrived, if it was noted.
    found: Backlog,
}

/// Memory for a fixed number of packets.
#[derive(Debug)]
pub(crate) struct Arena {
    /// How many slots there may be.
    slots: usize,
    slot_size: usize,
    /// Of the slots that were ever used.
    bytes: Vec<u8>,
    kept: Vec<Kept>,
    /// Slots that were given back.
    free: Vec<u32>,
}

impl Arena {
    /// Room for `slots` packets of at most `longest` bytes.
    pub(crate) fn new(slots: u32, longest: usize) -> Self {
        let slot_size = longest.next_multiple_of(64); // a cache line
        let mut arena =
            Self { slots: 0, slot_size, bytes: Vec::new(), kept: Vec::new(), free: Vec::new() };
        arena.grow(slots);
        arena
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
        self.slots = self.slots.max(slots as usize);
        // The contents are not copied where the system can move them (`mremap`).
        self.bytes.reserve_exact((self.slots - self.kept.len()) * self.slot_size);
        self.kept.reserve_exact(self.slots - self.kept.len());
        self.free.reserve_exact(self.slots - self.free.len());
    }

    /// A copy of `packet`, or nothing if there is no room or it is too long.
    pub(crate) fn store(&mut self, packet: &[u8]) -> Option<u32> {
        if packet.len() > self.slot_size {
            return None;
        }
        let slot = self.free.pop().or_else(|| self.fresh())?;
        self.kept[slot as usize] = Kept { length: packet.len() as u32, ..Kept::default() };
        self.packet_mut(slot).copy_from_slice(packet);
        Some(slot)
    }

    /// A slot that was never used, if there is one.
    #[cold]
    fn fresh(&mut self) -> Option<u32> {
        let slot = self.kept.len();
        (slot < self.slots).then(|| {
            self.kept.push(Kept::default());
            self.bytes.resize((slot + 1) * self.slot_size, 0);
            slot as u32
        })
    }

    /// The packet in `slot`.
    pub(crate) fn packet_mut(&mut self, slot: u32) -> &mut [u8] {
        let at = slot as usize * self.slot_size;
        &mut self.bytes[at..at + self.kept[slot as usize].length as usize]
    }

    /// Notes what was queued when the packet in `slot` arrived.
    pub(crate) fn find(&mut self, slot: u32, queued: Backlog) {
        self.kept[slot as usize].found = queued;
    }

    /// The backlog when the packet in `slot` arrived, if it was noted.
    pub(crate) fn found(&self, slot: u32) -> Backlog {
        self.kept[slot as usize].found
    }

    /// Notes why the packet in `slot` was marked.
    pub(crate) fn mark(&mut self, slot: u32, cause: Cause) {
        self.kept[slot as usize].marked = Some(cause);
    }

    /// Why the packet in `slot` was marked, if it was.
    pub(crate) fn marked(&self, slot: u32) -> Option<Cause> {
        self.kept[slot as usize].marked
    }

    /// Gives a slot back.
    pub(crate) fn release(&mut self, slot: u32) {
        debug_assert!(!self.free.contains(&slot), "slot {slot} is given back twice");
        self.free.push(slot);
    }

    /// Slots in use.
    pub(crate) fn used(&self) -> usize {
        self.kept.len() - self.free.len()
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
