//! Lists of slots in one array: a slot is in one list at a time, and holds a value whether it is in one or
//! not.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

const NONE: u32 = u32::MAX;

/// Slots, each with its neighbours in its list. Those of the head and of slots outside a list are not kept up.
#[derive(Clone, Debug)]
pub(super) struct Links<V>(Vec<Slot<V>>);

#[derive(Clone, Copy, Default, Debug)]
struct Slot<V> {
    value: V,
    before: u32,
    behind: u32,
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    head: u32,
    /// Only where there is a head.
    tail: u32,
}

impl Chain {
    pub(super) const EMPTY: Self = Self { head: NONE, tail: NONE };

    /// The first slot.
    #[inline]
    pub(super) fn head(&self) -> Option<usize> {
        (self.head != NONE).then_some(self.head as usize)
    }
}

impl<V> Index<usize> for Links<V> {
    type Output = V;
    #[inline]
    fn index(&self, slot: usize) -> &V {
        &self.0[slot].value
    }
}

impl<V> IndexMut<usize> for Links<V> {
    #[inline]
    fn index_mut(&mut self, slot: usize) -> &mut V {
        &mut self.0[slot].value
    }
}

impl<V: Copy + Default> Links<V> {
    /// What a slot costs in memory, in bytes.
    pub(super) const BYTES: u64 = size_of::<Slot<V>>() as u64;

    /// Slots `0..n`, in no list.
    pub(super) fn new(n: usize) -> Self {
        Self(vec![Slot::default(); n])
    }

    /// No slots, and room for `n`, which is touched as they come.
    pub(super) fn with_room(n: usize) -> Self {
        Self(Vec::with_capacity(n))
    }

    /// One more slot, in no list, if there are fewer than `most`.
    #[cold]
    pub(super) fn fresh(&mut self, most: usize) -> Option<usize> {
        let slot = self.0.len();
        (slot < most).then(|| {
            self.0.push(Slot::default());
            slot
        })
    }

    #[inline]
    pub(super) fn append(&mut self, chain: &mut Chain, slot: usize) {
        let slots = &mut self.0[..];
        (slots[slot].before, slots[slot].behind) = (chain.tail, NONE);
        match chain.head {
            NONE => chain.head = slot as u32,
            _ => slots[chain.tail as usize].behind = slot as u32,
        }
        chain.tail = slot as u32;
    }

    /// Puts a slot at the head of a list.
    pub(super) fn prepend(&mut self, chain: &mut Chain, slot: usize) {
        self.0[slot].behind = chain.head;
        match chain.head {
            NONE => chain.tail = slot as u32,
            head => self.0[head as usize].before = slot as u32,
        }
        chain.head = slot as u32;
    }

    /// Puts a slot at the head of a list from which slots are only ever popped.
    #[inline]
    pub(super) fn stack(&mut self, chain: &mut Chain, slot: usize) {
        self.0[slot].behind = chain.head;
        chain.head = slot as u32;
    }

    /// Takes the slot out that is at the head of a list.
    #[inline]
    pub(super) fn pop(&mut self, chain: &mut Chain) {
        chain.head = self.0[chain.head as usize].behind;
    }

    /// Takes a slot out of its list.
    #[inline]
    pub(super) fn remove(&mut self, chain: &mut Chain, slot: usize) {
        let slots = &mut self.0[..];
        let Slot { before, behind, .. } = slots[slot];
        match chain.head as usize == slot {
            true => chain.head = behind,
            false => slots[before as usize].behind = behind,
        }
        match behind {
            NONE => chain.tail = before,
            _ => slots[behind as usize].before = before,
        }
    }

    /// The slots of a list, from head to tail.
    pub(super) fn slots(&self, chain: &Chain) -> impl Iterator<Item = usize> {
        let next = |at: u32| (at != NONE).then_some(at);
        core::iter::successors(next(chain.head), move |&at| next(self.0[at as usize].behind))
            .map(|slot| slot as usize)
    }

    /// The slot at a position, which has to be in the list; 0 is the head. Costs as many steps as it
    /// is away from the nearer end of a list of `len`.
    #[inline]
    pub(super) fn at(&self, chain: &Chain, position: usize, len: usize) -> usize {
        debug_assert!(position < len, "{position} of {len}");
        if position < len.div_ceil(2) {
            (0..position).fold(chain.head, |slot, _| self.0[slot as usize].behind) as usize
        } else {
            (position + 1..len).fold(chain.tail, |slot, _| self.0[slot as usize].before) as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn slots(links: &Links<()>, chain: &Chain, len: usize) -> Vec<usize> {
        (0..len).map(|position| links.at(chain, position, len)).collect()
    }

    fn all(links: &mut Links<()>, n: usize) -> Chain {
        let mut chain = Chain::EMPTY;
        (0..n).for_each(|slot| links.append(&mut chain, slot));
        chain
    }

    #[test]
    fn a_list_keeps_its_order_wherever_a_slot_is_taken_out() {
        for taken in 0..5 {
            let mut links = Links::<()>::new(5);
            let mut chain = all(&mut links, 5);
            assert_eq!(slots(&links, &chain, 5), [0, 1, 2, 3, 4]);
            links.remove(&mut chain, taken);
            let rest: Vec<usize> = (0..5).filter(|s| *s != taken).collect();
            assert_eq!(slots(&links, &chain, 4), rest);
            links.append(&mut chain, taken);
            assert_eq!(slots(&links, &chain, 5), [&rest[..], &[taken]].concat());
        }
    }

    #[test]
    fn a_list_is_taken_from_its_head_and_filled_again() {
        let mut links = Links::<()>::new(3);
        let mut chain = all(&mut links, 3);
        for taken in 0..3 {
            assert_eq!(chain.head(), Some(taken));
            links.pop(&mut chain);
        }
        assert_eq!(chain.head(), None);
        [1, 2, 0].into_iter().for_each(|slot| links.append(&mut chain, slot));
        assert_eq!(slots(&links, &chain, 3), [1, 2, 0]);
        assert_eq!(links.slots(&chain).collect::<Vec<_>>(), [1, 2, 0]);
        links.pop(&mut chain);
        links.remove(&mut chain, 2);
        links.append(&mut chain, 1);
        assert_eq!(slots(&links, &chain, 2), [0, 1]);
        links.remove(&mut chain, 1);
        links.remove(&mut chain, 0);
        assert_eq!(chain.head(), None);
        links.append(&mut chain, 2);
        assert_eq!(links.slots(&chain).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_slot_may_be_put_before_all_others() {
        for taken in 0..4 {
            let mut links = Links::<()>::new(5);
            let mut chain = all(&mut links, 3);
            links.prepend(&mut chain, 4);
            links.prepend(&mut chain, 3);
            assert_eq!(slots(&links, &chain, 5), [3, 4, 0, 1, 2]);
            links.remove(&mut chain, taken);
            let rest: Vec<usize> = [3, 4, 0, 1, 2].into_iter().filter(|s| *s != taken).collect();
            assert_eq!(slots(&links, &chain, 4), rest);
        }
        let (mut links, mut chain) = (Links::<()>::new(2), Chain::EMPTY);
        links.prepend(&mut chain, 1);
        links.append(&mut chain, 0);
        assert_eq!(slots(&links, &chain, 2), [1, 0]);
    }

    #[test]
    fn a_stack_gives_what_came_last() {
        let mut links = Links::<()>::new(3);
        let mut stack = Chain::EMPTY;
        (0..3).for_each(|slot| links.stack(&mut stack, slot));
        assert_eq!(links.slots(&stack).collect::<Vec<_>>(), [2, 1, 0]);
        links.pop(&mut stack);
        links.stack(&mut stack, 2);
        assert_eq!(links.slots(&stack).collect::<Vec<_>>(), [2, 1, 0]);
    }

    #[test]
    fn lists_share_the_array() {
        let mut links = Links::<()>::new(4);
        let (mut even, mut odd) = (Chain::EMPTY, Chain::EMPTY);
        for slot in 0..4 {
            links.append(if slot % 2 == 0 { &mut even } else { &mut odd }, slot);
        }
        assert_eq!(
            (slots(&links, &even, 2), slots(&links, &odd, 2)),
            ([0, 2].into(), [1, 3].into())
        );
        links.remove(&mut even, 0);
        links.remove(&mut even, 2);
        assert_eq!((even.head(), odd.head()), (None, Some(1)));
    }
}
