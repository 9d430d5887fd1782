//! Classes of traffic: which codepoints are in which tin, and what share of the link each is sure of.

use crate::param::choice;
use crate::time::{Duration, Instant};
use crate::units::Rate;

choice! {
    /// How packets are sorted into tins by their DSCP.
    pub enum Diffserv {
        /// One tin for all.
        BestEffort = "besteffort",
        /// Background, best effort, latency-sensitive.
        Diffserv3 = "diffserv3",
        /// Background, best effort, streaming, latency-sensitive.
        Diffserv4 = "diffserv4",
        /// Eight kinds of applications.
        Diffserv8 = "diffserv8",
        /// The upper three bits of the codepoint.
        Precedence = "precedence",
    }
}

impl Diffserv {
    /// What the tins are called, in the order of their numbers.
    pub fn tins(self) -> &'static [&'static str] {
        match self {
            Self::BestEffort => &["best-effort"],
            Self::Diffserv3 => &["best-effort", "background", "latency-sensitive"],
            Self::Diffserv4 => &["best-effort", "background", "streaming", "latency-sensitive"],
            Self::Diffserv8 | Self::Precedence => &["0", "1", "2", "3", "4", "5", "6", "7"],
        }
    }

    /// How many tins there are.
    pub(super) fn count(self) -> usize {
        self.tins().len()
    }

    /// The number of a codepoint's tin.
    pub fn tin_of(self, dscp: u8) -> u8 {
        // CSn is 8n, AFxy is 8x + 2y; LE 1, TOS2 2, TOS4 4, VA 44, EF 46.
        match (self, dscp) {
            (Self::BestEffort, _) => 0,
            (Self::Precedence, _) => dscp >> 3,
            (Self::Diffserv3, 1 | 8) => 1,
            (Self::Diffserv3, 4 | 44 | 46 | 48 | 56) => 2,
            (Self::Diffserv3, _) => 0,
            (Self::Diffserv4, 1 | 8) => 1,
            (Self::Diffserv4, 32 | 40 | 44 | 46 | 48 | 56) => 3,
            (Self::Diffserv4, 4 | 16 | 24 | 18..=22 | 26..=30 | 34..=38)
                if dscp.is_multiple_of(2) =>
            {
                2
            }
            (Self::Diffserv4, _) => 0,
            (Self::Diffserv8, 1) => 0,
            (Self::Diffserv8, 2 | 8 | 10 | 12 | 14) => 1,
            (Self::Diffserv8, 4 | 18 | 20 | 22) => 4,
            (Self::Diffserv8, 16) => 5,
            (Self::Diffserv8, 24..=30 | 34..=38) if dscp.is_multiple_of(2) => 3,
            (Self::Diffserv8, 32 | 40 | 44 | 46) => 6,
            (Self::Diffserv8, 48 | 56) => 7,
            (Self::Diffserv8, _) => 2,
        }
    }

    /// The rate up to which a tin goes before those of lower number, as a fraction of the link's.
    fn share(self, tin: usize) -> (u64, u64) {
        let eighths = || (7u64.pow(tin as u32), 8u64.pow(tin as u32));
        match (self, tin) {
            (Self::Diffserv3, 1) | (Self::Diffserv4, 1) => (1, 16),
            (Self::Diffserv3, 2) | (Self::Diffserv4, 3) => (1, 4),
            (Self::Diffserv4, 2) => (1, 2),
            (Self::Diffserv8 | Self::Precedence, _) => eighths(),
            _ => (1, 1),
        }
    }

    /// What a tin may send in a round where there is no rate, bytes.
    pub(super) fn weight(self, tin: usize) -> i64 {
        let (part, whole) = self.share(tin);
        (1024 * part / whole) as i64
    }

    /// A tin's rate, of a link of `rate`.
    pub(super) fn rate(self, tin: usize, rate: Rate) -> Rate {
        let (part, whole) = self.share(tin);
        let bits = u128::from(rate.bits_per_second()) * u128::from(part) / u128::from(whole);
        Rate::new(bits as u64).unwrap_or(Rate::new(1).unwrap_or(rate))
    }
}

/// Whether a tin keeps within its rate.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) rate: Rate,
    /// Nanoseconds a byte.
    per_byte: f64,
    /// When its next packet keeps within.
    pub(super) next: Instant,
}

impl Schedule {
    pub(super) fn new(rate: Rate, now: Instant) -> Self {
        let per_byte = 8e9 / rate.bits_per_second() as f64;
        Self { rate, per_byte, next: now }
    }

    /// A packet comes to an empty tin: what was not used is lost.
    #[inline]
    pub(super) fn wake(&mut self, now: Instant) {
        self.next = self.next.max(now);
    }

    /// A packet of `len` bytes was sent.
    #[inline]
    pub(super) fn sent(&mut self, len: u32, now: Instant) {
        let time = Duration::from_nanos((f64::from(len) * self.per_byte) as u64);
        if self.next < now {
            self.next += time;
        } else {
            self.next = self.next.max(now + time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Named codepoints by RFC 4594's service classes, and the tins that tc-cake(8) has for them.
    #[test]
    fn codepoints_by_name() {
        use Diffserv::{Diffserv3, Diffserv4, Diffserv8, Precedence};
        for (name, dscp, three, four, eight) in [
            ("CS0", 0, 0, 0, 2),
            ("LE", 1, 1, 1, 0),
            ("TOS2", 2, 0, 0, 1),
            ("TOS4", 4, 2, 2, 4),
            ("CS1", 8, 1, 1, 1),
            ("AF11", 10, 0, 0, 1),
            ("AF12", 12, 0, 0, 1),
            ("AF13", 14, 0, 0, 1),
            ("CS2", 16, 0, 2, 5),
            ("AF21", 18, 0, 2, 4),
            ("AF22", 20, 0, 2, 4),
            ("AF23", 22, 0, 2, 4),
            ("CS3", 24, 0, 2, 3),
            ("AF31", 26, 0, 2, 3),
            ("AF32", 28, 0, 2, 3),
            ("AF33", 30, 0, 2, 3),
            ("CS4", 32, 0, 3, 6),
            ("AF41", 34, 0, 2, 3),
            ("AF42", 36, 0, 2, 3),
            ("AF43", 38, 0, 2, 3),
            ("CS5", 40, 0, 3, 6),
            ("VA", 44, 2, 3, 6),
            ("EF", 46, 2, 3, 6),
            ("CS6", 48, 2, 3, 7),
            ("CS7", 56, 2, 3, 7),
            ("odd", 27, 0, 0, 2),
            ("last", 63, 0, 0, 2),
        ] {
            let tins = [Diffserv3, Diffserv4, Diffserv8, Precedence].map(|d| d.tin_of(dscp));
            assert_eq!(tins, [three, four, eight, dscp >> 3], "{name}");
        }
    }

    #[test]
    fn every_codepoint_has_a_tin() {
        use Diffserv::{BestEffort, Diffserv3, Diffserv4, Diffserv8, Precedence};
        for sorting in [BestEffort, Diffserv3, Diffserv4, Diffserv8, Precedence] {
            let tins = (0..64).map(|dscp| usize::from(sorting.tin_of(dscp)));
            assert_eq!(tins.max(), Some(sorting.count() - 1));
        }
    }

    /// Of 64 Mbit/s: 64, 4, 16; 64, 4, 32, 16; and 64·(7/8)ⁿ.
    #[test]
    fn shares_by_hand() {
        let rates = |sorting: Diffserv| {
            let rate = |tin| sorting.rate(tin, Rate::from_mbit(64)).bits_per_second() / 1_000_000;
            (0..sorting.count()).map(rate).collect::<std::vec::Vec<_>>()
        };
        assert_eq!(rates(Diffserv::BestEffort), [64]);
        assert_eq!(rates(Diffserv::Diffserv3), [64, 4, 16]);
        assert_eq!(rates(Diffserv::Diffserv4), [64, 4, 32, 16]);
        assert_eq!(rates(Diffserv::Diffserv8), [64, 56, 49, 42, 37, 32, 28, 25]);
    }
}
