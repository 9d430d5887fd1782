//! The time that an aggregate of frames (A-MPDU) takes on the air, as by the model of HKTHB17 §4.1.

use crate::time::Duration;
use crate::units::Rate;

/// Bytes of a frame beside its packet: delimiter 4, header 34 (26 of QoS data, 8 of CCMP), checksum 4
/// (IEEE 802.11-2016 §9.7.1, §9.2.4, §12.5.3.2; the model has them, too).
const AROUND: u32 = 4 + 34 + 4;
/// Frames begin at multiples of so many bytes (IEEE 802.11-2016 §9.7.1).
const ALIGNED: u32 = 4;
/// Bytes of a block acknowledgement, which is sent at the station's rate (the model's number).
const BLOCK_ACK: u32 = 58;

/// How a radio sends aggregates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Air {
    /// The time that an aggregate takes beside its bytes and those of its acknowledgement.
    pub overhead: Duration,
    /// The most frames of an aggregate.
    pub frames: u32,
    /// Its most bytes, with headers.
    pub bytes: u32,
    /// The longest that its bytes may take. A frame that alone takes longer is sent alone.
    pub longest: Duration,
}

impl Default for Air {
    /// 802.11n. The overhead is that of the model: DIFS 34 µs, the mean backoff of 7.5 slots of 9 µs (CWmin 15),
    /// a preamble of 32 µs, SIFS 16 µs before the acknowledgement, and 16 µs more that the model has for it.
    /// The limits are those of the block acknowledgement's window and of the length field, and 4 ms as of the
    /// driver in the paper.
    fn default() -> Self {
        Self {
            overhead: Duration::from_nanos(165_500),
            frames: 64,
            bytes: 65_535,
            longest: Duration::from_millis(4),
        }
    }
}

impl Air {
    /// Bytes that a packet of `len` takes in an aggregate.
    pub fn framed(len: u32) -> u32 {
        len.saturating_add(AROUND).div_ceil(ALIGNED).saturating_mul(ALIGNED)
    }

    /// The time of an aggregate of so many bytes at a `rate`, to the nanosecond, rounded up.
    pub fn airtime(&self, bytes: u32, rate: Rate) -> Duration {
        self.overhead + Self::time(u64::from(bytes) + u64::from(BLOCK_ACK), rate)
    }

    /// Whether a frame of `next` bytes fits behind `frames` others of `bytes`.
    pub(super) fn fits(&self, frames: u32, bytes: u32, next: u32, rate: Rate) -> bool {
        let all = u64::from(bytes) + u64::from(next);
        frames == 0
            || frames < self.frames
                && all <= u64::from(self.bytes)
                && Self::time(all, rate) <= self.longest
    }

    fn time(bytes: u64, rate: Rate) -> Duration {
        let ns = (u128::from(bytes) * 8_000_000_000).div_ceil(rate.bits_per_second().into());
        Duration::from_nanos(ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The base rates of HKTHB17 table 1, from its sizes of aggregates in bytes with headers. Its backoff is 68 µs,
    /// and its sizes are means, so that frames are no whole number.
    #[test]
    fn the_papers_base_rates() {
        for (size, rate, expected) in [
            (6892, 144_400_000, 97.3),
            (7833, 144_400_000, 101.1),
            (28_434, 144_400_000, 126.7),
            (28_557, 144_400_000, 126.8),
            (2914, 7_200_000, 6.5),
        ] {
            let air = Air { overhead: Duration::from_nanos(166_000), ..Air::default() };
            let time = air.airtime(size, Rate::new(rate).unwrap()).as_secs_f64();
            let packets = f64::from(size) / f64::from(Air::framed(1500));
            let base = packets * 1500.0 * 8.0 / time / 1e6;
            assert!((base / expected - 1.0).abs() < 0.005, "{size}: {base} {expected}");
        }
    }

    #[test]
    fn the_first_limit_that_is_reached_ends_an_aggregate() {
        let most = |air: Air, rate, len| {
            let next = Air::framed(len);
            (0..).find(|n| !air.fits(*n, n * next, next, Rate::new(rate).unwrap())).unwrap()
        };
        let air = Air::default();
        assert_eq!(most(air, 144_400_000, 1500), 42, "65 535 bytes");
        assert_eq!(most(air, 144_400_000, 100), 64, "frames");
        assert_eq!(most(air, 7_200_000, 1500), 2, "4 ms");
        assert_eq!(most(air, 1_000_000, 1500), 1, "one at least");
        assert_eq!([1500, 1498, 40].map(Air::framed), [1544, 1540, 84]);
    }
}
