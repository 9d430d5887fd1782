//! A ring: first in, first out, in one block of memory that doubles when it is full.

/// A queue of plain records.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// Their number is a power of two.
    slots: Box<[T]>,
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
        Self { slots, taken: 0, put: 0, room: FIRST_SLOTS }
    }

    #[inline(always)]
    fn slot(&self, count: usize) -> usize {
        count & (self.slots.len() - 1)
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
        if self.is_empty() { None } else { Some(&self.slots[self.slot(self.taken)]) }
    }

    /// The one that comes so many after the oldest.
    #[inline(always)]
    pub(crate) fn peek(&self, after: usize) -> Option<&T> {
        (after < self.len()).then(|| &self.slots[self.slot(self.taken + after)])
    }

    /// Puts one in, to be filled: what is there is of old.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> &mut T {
        if self.put == self.room {
            self.make_room();
        }
        let slot = self.slot(self.put);
        self.put += 1;
        &mut self.slots[slot]
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
        see(&self.slots[self.slot(self.taken)]);
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
        let mut larger = vec![T::default(); 2 * self.slots.len()].into_boxed_slice();
        for count in self.taken..self.put {
            larger[count & (2 * self.slots.len() - 1)] = self.slots[self.slot(count)];
        }
        self.slots = larger;
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
