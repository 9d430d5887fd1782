//! What AccECN's counter tells the sender (RFC 9768).

use crate::transport::tcp::receiver::FIRST_COUNT;

/// Where acknowledgements are for more packets than this in the mean, each counting for so much of it, they
/// are not lost but made so, or thinned out on the way (so in Linux; the appendix says "well below 8").
const THINNED: f32 = 4.0;
const WEIGHT: f32 = 1.0 / 64.0;

/// What the counter has told so far.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// The marks, modulo eight (s.cep).
    told: u8,
    /// How many packets an acknowledgement is the first for, a moving mean. It begins with one (ours): the
    /// first of many packets says nothing yet of those to come.
    mean: f32,
}

impl Default for Marks {
    fn default() -> Self {
        Self { told: FIRST_COUNT, mean: 1.0 }
    }
}

impl Marks {
    /// How many marks an acknowledgement with the field `ace` tells of that is the first to acknowledge
    /// `newly` packets.
    ///
    /// Where acknowledgements were lost the counter may have come round unseen: then it has, as often as
    /// there were packets for it (§3.2.2.5.2, the safest likely case, by the formula of appendix A.2.1),
    /// unless packets are acknowledged in large numbers all the time. That they were hardly marked before,
    /// which may end the suspicion as well, is not looked at. More marks than packets are believed: one may
    /// have come twice. An acknowledgement of nothing new was overtaken and tells nothing.
    pub(super) fn told(&mut self, ace: u8, newly: u32) -> u32 {
        if newly == 0 {
            return 0;
        }
        let least = u32::from(ace.wrapping_sub(self.told) % 8);
        self.told = ace;
        self.mean += (newly as f32 - self.mean) * WEIGHT;
        if newly < least || self.mean > THINNED {
            return least;
        }
        newly - (newly - least) % 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirteen packets an acknowledgement, and no mark: as long as that is new it may have come round, then a
    /// filter thins out. After as many that are for one each a jump counts again.
    #[test]
    fn what_is_thinned_out_for_long_has_not_come_round() {
        let mut marks = Marks::default();
        let told: Vec<u32> = (0..200).map(|_| marks.told(5, 13)).collect();
        assert_eq!((told[0], told[199]), (8, 0));
        let doubted = told.iter().position(|&told| told == 0);
        assert_eq!(doubted, Some(18), "12 (1 − (63/64)ⁿ) > 3 from n = 19 on");
        assert_eq!(marks.told(7, 13), 2, "a mark is told");
        (0..200).for_each(|_| assert_eq!(marks.told(7, 1), 0));
        assert_eq!(marks.told(7, 13), 8);
    }

    /// Nine packets with two marks more are the first example of the appendix, ten the second.
    #[test]
    fn a_counter_that_may_have_come_round_has() {
        for (more, newly, told) in [
            (2, 9, 2),
            (2, 10, 10),
            (0, 7, 0),
            (0, 8, 8),
            (7, 7, 7),
            (1, 40, 33),
            (3, 1, 3),
            (3, 0, 0),
        ] {
            let mut marks = Marks::default();
            assert_eq!(marks.told((5 + more) % 8, newly), told, "{more} more, {newly} packets");
        }
        let mut marks = Marks::default();
        let all: Vec<u32> = [6, 0, 0, 2].map(|ace| marks.told(ace, 4)).into();
        assert_eq!(all, [1, 2, 0, 2], "it wraps");
    }
}
