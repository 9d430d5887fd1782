//! How long a transfer takes when nothing else is under way.

/// A path there and back that nobody else uses, for packets of one length. Times in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alone {
    /// A data packet, from its sending to its arrival.
    pub out: u64,
    /// A packet of 40 bytes on the same way.
    pub small_out: u64,
    /// An acknowledgement (40 bytes) on the way back.
    pub back: u64,
    /// A data packet on the slowest link.
    pub gap: u64,
}

impl Alone {
    /// When the last of `packets` arrives, counted from the sending of the first, with an
    /// acknowledgement for each packet and no loss.
    ///
    /// Slow start sends windows of w, 2w, 4w … packets (up to `window`), each a round trip after the
    /// one before; once a window fills the round trip, packets arrive `gap` apart without a pause.
    pub fn delivery(&self, packets: u32, [initial_window, window]: [u32; 2]) -> u64 {
        let round = self.out + self.back;
        let (mut left, mut size) =
            (u64::from(packets).max(1), u64::from(initial_window.min(window)));
        let mut began = 0;
        while left > size && size * self.gap < round {
            let grown = (2 * size).min(u64::from(window));
            // From the largest window on all rounds are alike.
            let rounds = if grown == size { (left - 1) / size } else { 1 };
            left -= rounds * size;
            began += rounds * round;
            size = grown;
        }
        began + self.out + (left - 1) * self.gap
    }

    /// A handshake, from the SYN to the arrival of its answer.
    pub fn handshake(&self) -> u64 {
        self.small_out + self.back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip of 100, and 10 packets fill it.
    const PATH: Alone = Alone { out: 60, small_out: 45, back: 40, gap: 10 };

    #[test]
    fn windows_double_until_they_fill_the_round_trip() {
        for (packets, expected) in [
            (1, 60),
            (2, 70),
            (3, 160), // the second round
            (6, 190), // its fourth packet
            (7, 260), // the third round has 8
            (14, 330),
            (15, 360), // the fourth has 16: no pause from here on
            (31, 520),
            (100, 360 + 85 * 10),
        ] {
            assert_eq!(PATH.delivery(packets, [2, 1000]), expected, "{packets} packets");
        }
    }

    #[test]
    fn a_small_window_leaves_pauses_to_the_end() {
        assert_eq!(PATH.delivery(1001, [4, 4]), 60 + 250 * 100);
        assert_eq!(PATH.delivery(1000, [4, 4]), 60 + 249 * 100 + 30);
        assert_eq!(PATH.delivery(7, [2, 3]), 260 + 10, "2, 3 and the second of 3");
    }

    #[test]
    fn a_window_that_fills_the_round_trip_at_once_is_all_there_is() {
        assert_eq!(PATH.delivery(50, [10, 1000]), 60 + 490);
        assert_eq!(PATH.handshake(), 85);
    }
}
