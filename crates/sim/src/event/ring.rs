//! A ring: first in, first out, in one block of memory that doubles when it is full.
//!
//! Each hop of a packet looks at two slots; that they are there is not checked each time, which is
//! 2 % of all instructions of a simulation.

#![expect(unsafe_code, reason = "a slot's number is below their number by construction")]

/// A queue of plain records.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// Their number is a power of two.
    slots: Box<[T]>,
    /// Their number less 1.
    mask: usize,
    /// How many were ever taken out and put in.
    taken: usize,
    put: usize,
    /// Below so many put in there is room for another.
    room: usize,
}

const FIRST_SLOTS: usize = 4;

impl<T: Copy + Default> Ring<T> {
    pub(crate) fn new() -> Self {
        let slots = vec![T::default(); FIRST_SLOTS].into_boxed_slice();
        Self { slots, mask: FIRST_SLOTS - 1, taken: 0, put: 0, room: FIRST_SLOTS }
    }

    /// The slot of the packet that was or will be put in as the one with this number.
    #[inline(always)]
    fn slot(&self, number: usize) -> &T {
        // SAFETY: `mask` is one less than the number of slots, which is never 0.
        unsafe { self.slots.get_unchecked(number & self.mask) }
    }

    #[inline(always)]
    fn slot_mut(&mut self, number: usize) -> &mut T {
        // SAFETY: as above.
        unsafe { self.slots.get_unchecked_mut(number & self.mask) }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.put - self.taken
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.put
    }

    /// How many were ever taken out.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// The oldest.
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { Some(self.slot(self.taken)) }
    }

    /// The one that comes so many after the oldest.
    #[inline(always)]
    pub(crate) fn peek(&self, after: usize) -> Option<&T> {
        (after < self.len()).then(|| self.slot(self.taken + after))
    }

    /// Puts one in, to be filled: what is there is of old.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> &mut T {
        if self.put == self.room {
            self.make_room();
        }
        self.put += 1;
        self.slot_mut(self.put - 1)
    }

    /// Takes out the oldest, which is there.
    #[inline(always)]
    pub(crate) fn drop_front(&mut self) {
        debug_assert!(!self.is_empty());
        self.taken += 1;
    }

    /// Takes out the oldest, which is there, after `see` has seen it. The next one.
    #[inline(always)]
    pub(crate) fn take(&mut self, see: impl FnOnce(&T)) -> Option<&T> {
        see(self.slot(self.taken));
        self.drop_front();
        self.front()
    }

    /// Counts the room that was left meanwhile, and doubles it if there is none.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        self.room = self.taken + self.slots.len();
    }

    fn grow(&mut self) {
        let mask = 2 * self.slots.len() - 1;
        let mut larger = vec![T::default(); mask + 1].into_boxed_slice();
        for number in self.taken..self.put {
            larger[number & mask] = *self.slot(number);
        }
        (self.slots, self.mask) = (larger, mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn behaves_as_a_queue() {
        let mut rng = aqm::Rng::new(5, 0);
        let (mut ring, mut naive) = (Ring::new(), VecDeque::new());
        for i in 0..10_000u32 {
            // Grows for a while, then shrinks.
            if rng.below(5) < if i / 1000 % 2 == 0 { 3 } else { 2 } {
                *ring.push() = i;
                naive.push_back(i);
            } else {
                assert_eq!(ring.front(), naive.front());
                if naive.pop_front().is_some() {
                    ring.drop_front();
                }
            }
            assert_eq!((ring.front(), ring.len()), (naive.front(), naive.len()));
        }
    }
}
