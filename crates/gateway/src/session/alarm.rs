//! When to say that packets are lost before they can be read.

/// When packets were lost before they could be read, and how many of them were reported.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// Packets reported so far, up and down.
    told: [u64; 2],
    /// Time of the next report at the earliest, ns.
    again: u64,
}

/// The first loss is reported at once; the shortest time between further reports, ns.
const BETWEEN: u64 = 60_000_000_000;

impl Alarm {
    /// How many of the `lost` packets are not reported yet, if at `now` (ns) a report is due.
    pub(super) fn raised(&mut self, now: u64, lost: [u64; 2]) -> Option<[u64; 2]> {
        if now < self.again || lost == self.told {
            return None;
        }
        let fresh = std::array::from_fn(|way| lost[way].saturating_sub(self.told[way]));
        (self.told, self.again) = (lost, now + BETWEEN);
        Some(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_said_at_once_and_those_that_follow_together() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.raised(0, [0, 0]), None);
        assert_eq!(alarm.raised(5, [3, 0]), Some([3, 0]));
        assert_eq!(alarm.raised(5 + BETWEEN / 2, [4, 7]), None);
        assert_eq!(alarm.raised(5 + BETWEEN, [5, 7]), Some([2, 7]));
        assert_eq!(alarm.raised(5 + 3 * BETWEEN, [5, 7]), None);
    }
}
