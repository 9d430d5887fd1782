//! The decision hash: a fingerprint of every drop, mark and departure of the managed queues and of
//! every packet that comes to the end of its path, in order. Plain links in between decide nothing.

use aqm::Cause;

/// A running hash. Equal hashes mean, but for a chance of 2⁻⁶⁴, that every queue took the same
/// decisions at the same nanosecond. It guards against accidents, not against an adversary.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DecisionHash(u64);

impl DecisionHash {
    #[inline]
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    /// A packet departs at `now` (ns).
    #[inline]
    pub fn departure(&mut self, now: u64, flow: u32, seq: u32) {
        self.mix(now);
        self.mix(u64::from(flow) << 34 | u64::from(seq) << 2);
    }

    /// A packet comes to the end of its path at `now` (ns).
    #[inline]
    pub fn delivery(&mut self, now: u64, flow: u32, seq: u32) {
        self.mix(now);
        self.mix(u64::from(flow) << 34 | u64::from(seq) << 2 | 3);
    }

    /// A packet is dropped.
    pub fn drop(&mut self, now: u64, flow: u32, seq: u32, cause: Cause) {
        self.mix(now ^ (1 + cause as u64) << 56);
        self.mix(u64::from(flow) << 34 | u64::from(seq) << 2 | 1);
    }

    /// A packet is marked.
    pub fn mark(&mut self, now: u64, flow: u32, cause: Cause) {
        self.mix(now ^ (1 + cause as u64) << 56);
        self.mix(u64::from(flow) << 34 | 2);
    }

    /// Adds another hash, as that of the next queue.
    pub fn combine(&mut self, other: Self) {
        self.mix(other.0);
    }
}

/// Sixteen hexadecimal digits.
impl std::fmt::Display for DecisionHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_time_kind_and_cause_all_count() {
        let of = |f: &dyn Fn(&mut DecisionHash)| {
            let mut h = DecisionHash::default();
            f(&mut h);
            h
        };
        let all = [
            of(&|h| h.departure(1, 2, 3)),
            of(&|h| h.departure(2, 2, 3)),
            of(&|h| h.departure(1, 3, 3)),
            of(&|h| h.departure(1, 2, 4)),
            of(&|h| h.delivery(1, 2, 3)),
            of(&|h| h.drop(1, 2, 3, Cause::Overflow)),
            of(&|h| h.drop(1, 2, 3, Cause::Early)),
            of(&|h| h.mark(1, 2, Cause::Early)),
            of(&|h| {
                h.departure(1, 2, 3);
                h.departure(2, 2, 3);
            }),
            of(&|h| {
                h.departure(2, 2, 3);
                h.departure(1, 2, 3);
            }),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "case {i} collides");
        }
    }

    /// h ← ((h rotated left by 26) ⊕ word)·0x9e37…7c15 mod 2⁶⁴, of the words by hand.
    #[test]
    fn each_field_has_its_place() {
        let mut h = DecisionHash::default();
        h.departure(7, 2, 3);
        h.delivery(8, 2, 3);
        h.drop(9, 2, 4, Cause::Overflow);
        h.mark(10, 2, Cause::Early);
        let mut next = DecisionHash::default();
        next.departure(7, 1, 3);
        h.combine(next);
        assert_eq!(h.to_string(), "b149804c5e531c8e");
    }
}
