//! Bytes to time on the wire.

use aqm::{Duration, Rate};

/// Turns bytes into time on the wire, carrying what is below a nanosecond, so that the long-run
/// rate is exact: to less than 2⁻⁶⁴ ns a packet.
#[derive(Clone, Debug)]
pub struct Serialiser {
    rate: u64,
    /// Time owed, in units of 2⁻⁶⁴ ns.
    carry: u64,
    /// Whole ns and carry (rounded up) of the last length, which is mostly the next one too.
    last: (u32, u64, u64),
}

impl Serialiser {
    /// Nothing owed yet.
    pub fn new(rate: Rate) -> Self {
        Self { rate: rate.bits_per_second(), carry: 0, last: (0, 0, 0) }
    }

    /// How long a packet of `len` bytes takes, ns, but for what is carried.
    pub fn whole(&self, len: u32) -> u64 {
        (u128::from(len) * 8_000_000_000 / u128::from(self.rate)) as u64
    }

    /// How long the next packet, of `len` bytes, takes, ns.
    #[inline]
    pub fn transmission(&mut self, len: u32) -> u64 {
        if self.last.0 != len {
            self.change_length(len);
        }
        let (carry, over) = self.carry.overflowing_add(self.last.2);
        self.carry = carry;
        self.last.1 + u64::from(over)
    }

    #[cold]
    #[inline(never)]
    fn change_length(&mut self, len: u32) {
        let bit_ns = u128::from(len) * 8_000_000_000;
        let rate = u128::from(self.rate);
        let carry = ((bit_ns % rate) << 64).div_ceil(rate);
        self.last = (len, (bit_ns / rate) as u64, carry as u64);
    }
}

/// A transmitter and the wire behind it.
#[derive(Clone, Debug)]
pub struct Transmitter {
    serialiser: Serialiser,
    /// Propagation delay, ns.
    delay: u64,
    /// When it is free, or was last, ns.
    free_at: u64,
}

impl Transmitter {
    /// Free at time 0.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self { serialiser: Serialiser::new(rate), delay: delay.as_nanos(), free_at: 0 }
    }

    /// A packet of `len` bytes comes to it at `now`. Returns when it arrives at the far end of the
    /// wire.
    #[inline]
    pub fn send(&mut self, now: u64, len: u32) -> u64 {
        self.free_at = self.free_at.max(now) + self.serialiser.transmission(len);
        self.free_at + self.delay
    }

    /// When it is free, or was last, ns.
    #[inline]
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// Propagation delay, ns.
    #[inline]
    pub fn delay(&self) -> u64 {
        self.delay
    }

    /// How long a packet of `len` bytes takes if nothing is before it, in transmission and on the
    /// wire, ns.
    pub fn alone(&self, len: u32) -> (u64, u64) {
        (self.serialiser.whole(len), self.delay)
    }

    /// Another rate and delay from now on; what is being sent keeps its time.
    pub fn change(&mut self, rate: Rate, delay: Duration) {
        if rate.bits_per_second() != self.serialiser.rate {
            self.serialiser = Serialiser::new(rate);
        }
        self.delay = delay.as_nanos();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 45 Mb/s: 1000 bytes take 177 777.7… ns; 45 000 packets take 8 s to the nanosecond.
    #[test]
    fn the_long_run_rate_is_exact() {
        let mut s = Serialiser::new(Rate::from_mbit(45));
        let total: u64 = (0..45_000).map(|_| s.transmission(1000)).sum();
        assert_eq!(total, 8_000_000_000);
    }

    #[test]
    fn packets_of_mixed_lengths_keep_the_rate_too() {
        let mut s = Serialiser::new(Rate::new(7_000_003).unwrap());
        let total: u64 = (0..70_000).map(|i| s.transmission([40, 1000, 1500][i % 3])).sum();
        let bits = (0..70_000u64).map(|i| [320, 8000, 12_000][(i % 3) as usize]).sum::<u64>();
        assert_eq!(total, (u128::from(bits) * 1_000_000_000 / 7_000_003) as u64);
    }

    #[test]
    fn a_change_moves_what_comes_and_not_what_was_sent() {
        let mut t = Transmitter::new(Rate::from_mbit(8), Duration::from_millis(1));
        assert_eq!(t.send(0, 1000), 2_000_000);
        t.change(Rate::from_mbit(80), Duration::ZERO);
        assert_eq!((t.free_at(), t.send(0, 1000)), (1_000_000, 1_100_000));
    }
}
