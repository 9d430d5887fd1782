//! How much of the window is used (RFC 7661 §4, as Linux has it).

use std::ops::Range;

/// Whether packets under way have filled the window since it began, which lasts for the window's data, and how many
/// there were at most.
#[derive(Clone, Default, Debug)]
pub(super) struct Usage {
    full: bool,
    most: u32,
    /// The next window begins once this is acknowledged.
    end: u32,
}

impl Usage {
    /// Before an acknowledgement: those packets were sent, which fill the window or not.
    #[inline]
    pub(super) fn note(&mut self, under_way: Range<u32>, full: bool) {
        let Range { start: una, end } = under_way;
        let most = end - una;
        if una >= self.end || full || !self.full && most > self.most {
            *self = Self { full, most, end };
        }
    }

    /// Whether the window may grow: it was filled, or in slow start is less than twice what was under way.
    #[inline]
    pub(super) fn lets_grow(&self, cwnd: f64, slow_start: bool) -> bool {
        self.full || slow_start && cwnd < f64::from(2 * self.most)
    }
}
