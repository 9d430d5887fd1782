//! How the window of reordering grows (RFC 8985 §6.2, step 4).

use std::ops::Range;

/// The number of repairs without a duplicate after which the window narrows again (RACK.reo_wnd_persist).
const REPAIRS: u8 = 16;

/// Each round trip in which the receiver reports a duplicate (a packet sent again for nothing) widens the
/// window by a quarter of the least round trip. As in Linux, duplicates of probes do not count, nor more
/// duplicates than packets were sent again: a network may have copied the rest.
#[derive(Clone, Default, Debug)]
pub(super) struct Widening {
    /// Until this is acknowledged no more is added (RACK.dsack_round); 0: the next duplicate adds.
    round: u32,
    /// Quarters beside the first (RACK.reo_wnd_mult).
    more: u8,
    /// Repairs until they are taken back.
    repairs: u8,
    /// Packets sent again, and duplicates reported.
    again: u32,
    told: u32,
}

impl Widening {
    /// A packet is sent.
    #[inline]
    pub(super) fn sent(&mut self, again: bool) {
        self.again += u32::from(again);
    }

    /// Follows an acknowledgement that may report a `duplicate` and may end a repair; `under_way`: the
    /// packets after it.
    #[inline]
    pub(super) fn follow(&mut self, duplicate: bool, repaired: bool, under_way: Range<u32>) {
        if under_way.start >= self.round {
            self.round = 0;
        }
        if duplicate {
            self.told += 1;
        }
        if duplicate && self.round == 0 && self.told <= self.again {
            (self.round, self.repairs) = (under_way.end, REPAIRS);
            self.more = self.more.saturating_add(1);
        } else if repaired {
            self.repairs = self.repairs.saturating_sub(1);
            if self.repairs == 0 {
                self.more = 0;
            }
        }
    }

    /// How many quarters of the least round trip the window has.
    pub(super) fn quarters(&self) -> u64 {
        1 + u64::from(self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_with_duplicates_adds_a_quarter_and_sixteen_repairs_without_take_all_back() {
        let mut w = Widening::default();
        w.follow(true, false, 5..9);
        assert_eq!(w.quarters(), 1, "nothing was sent again");
        (0..9).for_each(|_| w.sent(true));
        for (una, quarters) in [(5, 2), (8, 2), (9, 3), (12, 3), (13, 4)] {
            w.follow(true, false, una..una + 4);
            assert_eq!(w.quarters(), quarters, "{una}");
        }
        (0..15).for_each(|_| w.follow(false, true, 30..40));
        assert_eq!(w.quarters(), 4);
        w.follow(false, true, 30..40);
        assert_eq!(w.quarters(), 1);
    }
}
