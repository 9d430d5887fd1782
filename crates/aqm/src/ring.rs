//! A line in which packets wait, and the ring that is one.

use alloc::vec::Vec;

use crate::context::Backlog;
use crate::packet::Meta;
use crate::policy::View;
use crate::units::Limit;

/// Where packets wait in line: a ring of their own, or a list in memory that lines share.
pub(crate) trait Line<P, T> {
    /// What a policy may see.
    fn view(&self) -> View<'_>;
    /// What a policy may see when a packet leaves.
    #[inline]
    fn left_behind(&self) -> View<'_> {
        self.view()
    }
    /// The packet at the head.
    fn head(&mut self) -> Option<(&mut Meta, &P)>;
    /// Appends a packet; the caller has seen to it that there is room.
    fn push(&mut self, meta: Meta, packet: P, tag: T);
    /// Takes out the packet at the head.
    fn pop(&mut self) -> Option<(Meta, P, T)>;
    /// Takes out the packet at a position; 0 is the head.
    fn remove(&mut self, position: usize) -> Option<(Meta, P, T)>;
}

/// Slots that a ring has at once.
const FIRST_SLOTS: usize = 8;

/// The packets of one queue, in a ring whose length is a power of two. It doubles as soon as it is full,
/// within the memory that it takes at construction: a huge buffer costs only what it is used for.
#[derive(Clone, Debug)]
pub(crate) struct Ring<P, T> {
    limit: Limit,
    pub(crate) backlog: Backlog,
    /// Slot of the oldest packet.
    head: usize,
    metas: Vec<Meta>,
    rest: Vec<(P, T)>,
}

impl<P: Copy + Default, T: Copy + Default> Ring<P, T> {
    pub(crate) fn new(limit: Limit) -> Self {
        let slots = (limit.max_packets() as usize + 1).next_power_of_two(); // never full
        let mut ring = Self {
            limit,
            backlog: Backlog::default(),
            head: 0,
            metas: Vec::with_capacity(slots),
            rest: Vec::with_capacity(slots),
        };
        ring.resize(slots.min(FIRST_SLOTS));
        ring
    }

    fn resize(&mut self, slots: usize) {
        self.metas.resize(slots, Meta::default());
        self.rest.resize(slots, Default::default());
    }

    /// Doubles a full ring. The packets before `head`, which came last, go behind the others.
    #[cold]
    #[inline(never)]
    fn double(&mut self) {
        let slots = self.metas.len();
        self.resize(2 * slots);
        self.metas.copy_within(..self.head, slots);
        self.rest.copy_within(..self.head, slots);
    }

    fn slot(&self, position: usize) -> usize {
        (self.head + position) & (self.metas.len() - 1)
    }
}

impl<P: Copy + Default, T: Copy + Default> Line<P, T> for Ring<P, T> {
    #[inline]
    fn view(&self) -> View<'_> {
        View { backlog: self.backlog, limit: self.limit, ring: &self.metas, head: self.head }
    }

    fn head(&mut self) -> Option<(&mut Meta, &P)> {
        (self.backlog.packets > 0).then(|| (&mut self.metas[self.head], &self.rest[self.head].0))
    }

    #[inline]
    fn push(&mut self, meta: Meta, packet: P, tag: T) {
        let slot = self.slot(self.backlog.packets as usize);
        self.metas[slot] = meta;
        self.rest[slot] = (packet, tag);
        self.backlog.add(meta.len);
        if self.backlog.packets as usize == self.metas.len() {
            self.double();
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<(Meta, P, T)> {
        if self.backlog.packets == 0 {
            return None;
        }
        let slot = self.head;
        self.head = self.slot(1);
        let meta = self.metas[slot];
        let (packet, tag) = self.rest[slot];
        self.backlog.remove(meta.len);
        Some((meta, packet, tag))
    }

    /// Those before it move back by one slot.
    fn remove(&mut self, position: usize) -> Option<(Meta, P, T)> {
        if position >= self.backlog.packets as usize {
            return None;
        }
        if position > 0 {
            let slot = self.slot(position);
            move_to_head(&mut self.metas, self.head, slot);
            move_to_head(&mut self.rest, self.head, slot);
        }
        self.pop()
    }
}

/// Moves the entry at `slot` of a ring to `head`, and those between back by one: in blocks, since a
/// victim has half the queue before it on average.
fn move_to_head<T: Copy>(ring: &mut [T], head: usize, slot: usize) {
    let (entry, last) = (ring[slot], ring.len() - 1);
    if head <= slot {
        ring.copy_within(head..slot, head + 1);
    } else {
        // They reach across the end of the ring.
        ring.copy_within(..slot, 1);
        ring[0] = ring[last];
        ring.copy_within(head..last, head + 1);
    }
    ring[head] = entry;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets come and go until the ring has been full with its head at each place, and has doubled there.
    #[test]
    fn a_full_ring_doubles_and_keeps_the_order_wherever_its_head_is() {
        for head in 0..FIRST_SLOTS as u32 {
            let mut ring = Ring::<u32, ()>::new(Limit::packets(1000).unwrap());
            let room = [ring.metas.capacity(), ring.rest.capacity()];
            for n in 0..head {
                ring.push(Meta::default(), n, ());
                assert_eq!(ring.pop().unwrap().1, n);
            }
            (0..1000).for_each(|n| ring.push(Meta { len: n, ..Meta::default() }, n, ()));
            assert_eq!([ring.metas.capacity(), ring.rest.capacity()], room);
            let seen: Vec<_> = (0..1000).map(|n| ring.view().peek(n).unwrap().len).collect();
            assert_eq!(seen, (0..1000).collect::<Vec<_>>());
            (0..1000).for_each(|n| assert_eq!(ring.pop().map(|(_, packet, ())| packet), Some(n)));
        }
    }

    /// The largest buffer there is: its slots are not touched before packets come.
    #[test]
    fn a_huge_buffer_starts_with_few_slots() {
        let limit = Limit::packets(u64::from(Limit::MAX_PACKETS)).unwrap();
        assert_eq!(Ring::<u32, ()>::new(limit).metas.len(), FIRST_SLOTS);
    }

    /// Four entries in a ring of five slots, from each head on, each taken out once.
    #[test]
    fn an_entry_moves_to_the_head_from_anywhere() {
        for head in 0..5 {
            for position in 0..4 {
                let slot = |p: usize| (head + p) % 5;
                let mut ring = [9; 5];
                (0..4).for_each(|p| ring[slot(p)] = p);
                move_to_head(&mut ring, head, slot(position));
                let order: Vec<usize> = (0..4).map(|p| ring[slot(p)]).collect();
                let rest = (0..4).filter(|&p| p != position);
                assert_eq!(order, [position].into_iter().chain(rest).collect::<Vec<_>>());
                assert_eq!(ring[slot(4)], 9, "the free slot is left alone");
            }
        }
    }
}
