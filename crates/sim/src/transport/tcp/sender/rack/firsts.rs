//! When packets that were sent again were first sent.
//!
//! Echoes of timestamps repeat after [`ECHOES`]. If an echo comes later than that after a packet's first
//! sending, it may belong to another sending than it seems, so it is not used.

use std::ops::Range;

use crate::packet::ECHOES;

/// For packets that were sent again: the number past the last of a window of them, and a time no later than
/// the first sending of them. Packets beyond the first such window are in the second.
#[derive(Clone, Default, Debug)]
pub(super) struct Firsts([(u32, u64); 2]);

impl Firsts {
    /// Packet `seq` of those `under_way` is sent again; it was sent at `before`.
    pub(super) fn note(&mut self, seq: u32, under_way: Range<u32>, before: u64) {
        let Self([near, beyond]) = self;
        let Range { start: una, end } = under_way;
        if una >= near.0 {
            *near = std::mem::take(beyond);
        }
        if una >= near.0 {
            *near = (end, before);
        } else if seq < near.0 {
            near.1 = near.1.min(before);
        } else if una < beyond.0 {
            *beyond = (end, beyond.1.min(before));
        } else {
            *beyond = (end, before);
        }
    }

    /// Whether an echo that comes at `now` may be of several times at which `una`, the oldest, was sent.
    pub(super) fn confuse(&self, now: u64, una: u32) -> bool {
        let among = self.0.iter().find(|&&(end, _)| una < end);
        // What is sent at one time is a nanosecond apart: some of it a little later than now.
        among.is_some_and(|&(_, since)| now.saturating_sub(since) >= ECHOES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn an_echo_is_certain_for_68_seconds_after_the_first_sending() {
        let mut firsts = Firsts::default();
        assert!(!firsts.confuse(1000 * S, 0), "nothing was sent again");
        firsts.note(5, 3..10, 100 * S);
        firsts.note(5, 3..10, 160 * S);
        assert!(!firsts.confuse(168 * S, 3) && firsts.confuse(169 * S, 3));
        assert!(!firsts.confuse(169 * S, 10));
    }

    /// Of a thousand packets that are sent at one time the last was sent a microsecond after it.
    #[test]
    fn what_was_sent_a_moment_later_than_now_is_certain() {
        let mut firsts = Firsts::default();
        firsts.note(5, 3..10, 100 * S + 1000);
        assert!(!firsts.confuse(100 * S, 3));
    }

    /// Repairs that follow upon each other for minutes do not add up.
    #[test]
    fn the_oldest_that_is_under_way_counts() {
        let mut firsts = Firsts::default();
        for n in 0..1000 {
            // A window of ten a second, of which the first is sent again two seconds later.
            let (now, una) = (u64::from(n) * S, 10 * n);
            assert!(!firsts.confuse(now, una), "{n}");
            firsts.note(una, una..una + 20, now.saturating_sub(2 * S));
        }
        assert!(firsts.confuse(1100 * S, 9991));
    }
}
