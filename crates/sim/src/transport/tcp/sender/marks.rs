//! What AccECN's counter tells the sender (RFC 9768).

use crate::transport::tcp::receiver::FIRST_COUNT;

/// The marks that were told so far, modulo eight (s.cep).
#[derive(Clone, Debug)]
pub(super) struct Marks(u8);

impl Default for Marks {
    fn default() -> Self {
        Self(FIRST_COUNT)
    }
}

impl Marks {
    /// How many marks an acknowledgement with the field `ace` tells of that is the first to acknowledge
    /// `newly` packets.
    ///
    /// Where acknowledgements were lost or thinned out the counter may have come round unseen: then it
    /// has, as often as there were packets for it (§3.2.2.5.2, the safest likely case, by the formula of
    /// appendix A.2.1; that packets have been acknowledged in large numbers for long, or hardly marked,
    /// which may end the suspicion, is not looked at). More marks than packets are believed: one may have
    /// come twice. An acknowledgement of nothing new was overtaken and tells nothing.
    pub(super) fn told(&mut self, ace: u8, newly: u32) -> u32 {
        if newly == 0 {
            return 0;
        }
        let least = u32::from(ace.wrapping_sub(self.0) % 8);
        self.0 = ace;
        newly.checked_sub(least).map_or(least, |unmarked| newly - unmarked % 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
