//! Lists of slot numbers in one array: a slot is in one list at a time.

use alloc::boxed::Box;
use alloc::vec;

const NONE: u32 = u32::MAX;

/// The neighbours of each slot in its list.
#[derive(Clone, Debug)]
pub(super) struct Links(Box<[Link]>);

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    behind: u32,
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    head: u32,
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

impl Links {
    /// What a slot costs in memory, in bytes.
    pub(super) const BYTES: u64 = size_of::<Link>() as u64;

    /// Slots `0..n`, in no list.
    pub(super) fn new(n: usize) -> Self {
        Self(vec![Link { before: NONE, behind: NONE }; n].into())
    }

    #[inline]
    pub(super) fn append(&mut self, chain: &mut Chain, slot: usize) {
        self.0[slot] = Link { before: chain.tail, behind: NONE };
        match chain.tail {
            NONE => chain.head = slot as u32,
            tail => self.0[tail as usize].behind = slot as u32,
        }
        chain.tail = slot as u32;
    }

    /// Takes a slot out of its list.
    #[inline]
    pub(super) fn remove(&mut self, chain: &mut Chain, slot: usize) {
        let Link { before, behind } = self.0[slot];
        match before {
            NONE => chain.head = behind,
            before => self.0[before as usize].behind = behind,
        }
        match behind {
            NONE => chain.tail = before,
            behind => self.0[behind as usize].before = before,
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

    fn slots(links: &Links, chain: &Chain, len: usize) -> Vec<usize> {
        (0..len).map(|position| links.at(chain, position, len)).collect()
    }

    fn all(links: &mut Links, n: usize) -> Chain {
        let mut chain = Chain::EMPTY;
        (0..n).for_each(|slot| links.append(&mut chain, slot));
        chain
    }

    #[test]
    fn a_list_keeps_its_order_wherever_a_slot_is_taken_out() {
        for taken in 0..5 {
            let mut links = Links::new(5);
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
    fn lists_share_the_array() {
        let mut links = Links::new(4);
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
