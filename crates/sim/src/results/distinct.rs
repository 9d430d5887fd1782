//! Which datagrams of a flow came, each counted once however many copies the network made of it.

/// Gaps that are remembered: a packet of an older one that comes late counts as a copy.
const MOST_GAPS: usize = 4096;

/// Numbers that came.
#[derive(Clone, Default, Debug)]
pub(crate) struct Distinct {
    /// How many.
    count: u32,
    /// Past the highest.
    next: u32,
    /// Numbers below that have not come, in order: the first, and past the last.
    #[expect(
        clippy::box_collection,
        reason = "most flows have none, and the state is to be small"
    )]
    gaps: Option<Box<Vec<(u32, u32)>>>,
}

impl Distinct {
    /// None came, and the first will be `first`.
    pub(crate) fn from(first: u32) -> Self {
        Self { next: first, ..Self::default() }
    }

    /// How many came.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Takes a number; whether it is no copy of one that came before.
    #[inline]
    pub(crate) fn take(&mut self, number: u32) -> bool {
        let is_new = number == self.next || self.take_other(number);
        self.next = self.next.max(number + 1);
        self.count += u32::from(is_new);
        is_new
    }

    /// A number that is not the next.
    #[cold]
    fn take_other(&mut self, number: u32) -> bool {
        if number > self.next {
            let gaps = self.gaps.get_or_insert_default();
            if gaps.len() == MOST_GAPS {
                gaps.drain(..MOST_GAPS / 2);
            }
            gaps.push((self.next, number));
            return true;
        }
        let Some(gaps) = &mut self.gaps else { return false };
        let place = gaps.partition_point(|(_, end)| *end <= number);
        let Some(&(from, end)) = gaps.get(place).filter(|(from, _)| *from <= number) else {
            return false;
        };
        let left = [(from, number), (number + 1, end)];
        gaps.splice(place..=place, left.into_iter().filter(|(from, end)| from < end));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn is_a_set(first in 0..3u32, numbers in proptest::collection::vec(0..60u32, 0..200)) {
            let (mut distinct, mut set) = (Distinct::from(first), BTreeSet::new());
            for number in numbers.into_iter().map(|n| n + first) {
                prop_assert_eq!(distinct.take(number), set.insert(number));
                prop_assert_eq!(distinct.count() as usize, set.len());
            }
        }
    }

    #[test]
    fn old_gaps_are_forgotten() {
        let mut distinct = Distinct::default();
        assert!((0..3 * MOST_GAPS as u32).all(|n| distinct.take(2 * n)));
        assert!(distinct.gaps.as_ref().unwrap().len() <= MOST_GAPS);
        assert!(!distinct.take(1), "taken for a copy");
        assert!(distinct.take(6 * MOST_GAPS as u32 - 3));
    }
}
