//! Timers that mostly move on before they come, as those for retransmission do with every
//! acknowledgement: kept to the slot of time in which they were due when they were last looked at.

/// A slot is 2²¹ ns = 2.1 ms.
const SLOT_BITS: u32 = 21;
/// Events that are due later than all slots, 2.1 s, are looked at when the last slot begins.
const SLOTS: usize = 1024;
/// Ends a slot's list of timers.
const NONE: u32 = u32::MAX;
/// In place of the next timer in the list: this one is in none.
const NOT_HERE: u32 = u32::MAX - 1;

/// Timers of a fixed number of flows, each in one slot at most. Putting one in and taking it out is a
/// few instructions, however many there are.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    /// The first timer of each slot.
    first: Box<[u32; SLOTS]>,
    /// The timer after each flow's in its slot.
    next: Box<[u32]>,
    /// A bit for each slot that has timers.
    used: [u64; SLOTS / 64],
    /// The number of the first slot that has not begun; they are numbered from time 0 on.
    from: u64,
    /// When the first slot with timers begins, ns; `u64::MAX` if none has any.
    begins: u64,
}

impl Wheel {
    /// Empty, at time 0.
    pub(crate) fn new(flows: usize) -> Self {
        let mut next = link::memory::room_for(flows);
        next.resize(flows, NOT_HERE);
        Self {
            first: Box::new([NONE; SLOTS]),
            next: next.into_boxed_slice(),
            used: [0; SLOTS / 64],
            from: 0,
            begins: u64::MAX,
        }
    }

    /// When the first slot with timers begins, ns; `u64::MAX` if none has any.
    #[inline(always)]
    pub(crate) fn begins(&self) -> u64 {
        self.begins
    }

    /// Puts in the timer of a flow, due at `time` (ns). False if that cannot be: its slot has begun,
    /// or the flow's timer is in another one.
    #[inline]
    pub(crate) fn put(&mut self, flow: usize, time: u64) -> bool {
        let number = (time >> SLOT_BITS).min(self.from + SLOTS as u64 - 1);
        if number < self.from || self.next[flow] != NOT_HERE {
            return false;
        }
        let slot = number as usize % SLOTS;
        self.next[flow] = std::mem::replace(&mut self.first[slot], flow as u32);
        self.used[slot / 64] |= 1 << (slot % 64);
        self.begins = self.begins.min(number << SLOT_BITS);
        true
    }

    /// Begins the first slot with timers, which there is. Returns its first timer.
    #[inline]
    pub(crate) fn begin(&mut self) -> Option<usize> {
        let number = self.begins >> SLOT_BITS;
        let slot = number as usize % SLOTS;
        let first = std::mem::replace(&mut self.first[slot], NONE);
        self.used[slot / 64] &= !(1 << (slot % 64));
        self.from = number + 1;
        self.begins = self.next_used().map_or(u64::MAX, |number| number << SLOT_BITS);
        Self::some(first)
    }

    /// Takes out the timer of a flow, of a slot that has begun. Returns the one after it.
    #[inline(always)]
    pub(crate) fn take(&mut self, flow: usize) -> Option<usize> {
        Self::some(std::mem::replace(&mut self.next[flow], NOT_HERE))
    }

    #[inline(always)]
    fn some(flow: u32) -> Option<usize> {
        (flow != NONE).then_some(flow as usize)
    }

    /// The number of the first slot that has timers, none of which has begun.
    #[inline]
    fn next_used(&self) -> Option<u64> {
        let start = self.from as usize % SLOTS;
        let (mut word, mut bits) = (start / 64, self.used[start / 64] & u64::MAX << (start % 64));
        // The word where it starts is looked at twice: its upper bits first, the others last.
        for _ in 0..SLOTS / 64 {
            if bits != 0 {
                break;
            }
            word = (word + 1) % (SLOTS / 64);
            bits = self.used[word];
        }
        let slot = word * 64 + bits.trailing_zeros() as usize;
        (bits != 0).then(|| self.from + (slot.wrapping_sub(start) % SLOTS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Timers come in the slot that holds their time, or in the last one there was, and all of them.
    #[test]
    fn every_timer_comes_in_its_slot() {
        const FLOWS: usize = 300;
        let mut rng = aqm::Rng::new(1, 0);
        let mut wheel = Wheel::new(FLOWS);
        let mut naive: BTreeMap<usize, u64> = BTreeMap::new();
        let mut now = 0;
        for round in 0..3_000 {
            // Few timers in some rounds, so that the next slot is far away.
            for _ in 0..rng.below(if round % 100 < 50 { 2 } else { 40 }) {
                let (flow, after) = (rng.below(FLOWS), rng.below(4 << 31) as u64);
                let time = now + if rng.below(3) == 0 { after % (1 << 24) } else { after };
                let here = naive.contains_key(&flow);
                assert_eq!(wheel.put(flow, time), !here && time >> SLOT_BITS >= wheel.from);
                if !here && time >> SLOT_BITS >= wheel.from {
                    naive.insert(flow, (time >> SLOT_BITS).min(wheel.from + 1023) << SLOT_BITS);
                }
            }
            let begins = naive.values().min().copied();
            assert_eq!(wheel.begins(), begins.unwrap_or(u64::MAX));
            let Some(begins) = begins else { continue };
            now = begins + rng.below(1 << SLOT_BITS) as u64;
            let mut came = Vec::new();
            let mut next = wheel.begin();
            while let Some(flow) = next {
                came.push(flow);
                next = wheel.take(flow);
            }
            came.sort_unstable();
            let due = naive.iter().filter(|(_, time)| **time == begins).map(|(&flow, _)| flow);
            assert_eq!(came, due.collect::<Vec<_>>());
            naive.retain(|_, time| *time != begins);
        }
    }
}
