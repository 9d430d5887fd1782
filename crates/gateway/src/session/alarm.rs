//! When to say that packets are lost before they can be read.

/// What was lost so far, and what was said of it.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// As many as were told of, up and down.
    told: [u64; 2],
    /// When it may be said again, ns.
    again: u64,
}

/// It is said at once, and then no more often, ns.
const BETWEEN: u64 = 60_000_000_000;

impl Alarm {
    /// How many of `lost` packets were not told of yet, if at `now` (ns) it is time to.
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
