//! What holds packets back: a shaper at the link's rate that counts dropped packets, too (`ingress`), or at
//! a rate that follows what arrives (`autorate_ingress`).
//!
//! ```text
//! a packet comes to an empty buffer, next < now:  next := failsafe := now
//! a packet of len bytes is sent:     next += len/rate;  failsafe += 1.5 · len/rate
//! one is dropped, with ingress:      next += len/rate
//! a packet may go:                   now ≥ next, or now ≥ failsafe
//! ```
//!
//! So of the rate two thirds are sent at least, however much is dropped. Lengths are those on the wire.
//!
//! The measured rate is that of trains of packets, cut where a gap is longer than usual:
//!
//! ```text
//! a packet of len bytes arrives:  bytes += len;  gap := time since the one before, 1 s at most
//!     usual moves towards gap, by 1/4 of the way up or 1/256 down
//!     gap > usual:  peak moves towards bytes / time of the train, by 1/4 up or 1/256 down;  a new train
//!                   the rate is older than 250 ms:  rate := 15/16 · peak
//! ```

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The lowest rate that a measurement sets, bit/s.
const LEAST: u64 = 512;
/// How long a measured rate holds at least.
const HOLDS: Duration = Duration::from_millis(250);

#[derive(Clone, Debug)]
pub(super) struct Shaper {
    /// Nanoseconds a byte; 0 without a rate.
    per_byte: f64,
    next: Instant,
    failsafe: Instant,
}

impl Shaper {
    /// Without a rate it holds nothing back.
    pub(super) fn new(rate: Option<Rate>, now: Instant) -> Self {
        let mut new = Self { per_byte: 0.0, next: now, failsafe: now };
        new.set_rate(rate);
        new
    }

    pub(super) fn set_rate(&mut self, rate: Option<Rate>) {
        self.per_byte = rate.map_or(0.0, |rate| 8e9 / rate.bits_per_second() as f64);
    }

    /// When a packet may go.
    pub(super) fn ready_at(&self) -> Instant {
        self.next.min(self.failsafe)
    }

    /// A packet comes to an empty buffer: what was not used is lost.
    pub(super) fn wake(&mut self, now: Instant) {
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
        }
    }

    pub(super) fn sent(&mut self, len: u32) {
        let time = self.time(len);
        self.next += time;
        self.failsafe += time + time / 2;
    }

    pub(super) fn dropped(&mut self, len: u32) {
        self.next += self.time(len);
    }

    fn time(&self, len: u32) -> Duration {
        Duration::from_nanos((f64::from(len) * self.per_byte) as u64)
    }
}

/// The rate at which packets arrive.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// When the last packet arrived, and the usual gap, ns.
    last: Instant,
    usual: u64,
    /// The present train: its bytes, and when it began.
    bytes: u64,
    began: Instant,
    /// Bytes a second.
    peak: u64,
    /// When the rate was set last.
    set: Instant,
}

impl Measured {
    /// With a first guess.
    pub(super) fn new(guess: Option<Rate>, now: Instant) -> Self {
        let peak = guess.map_or(0, |rate| rate.bits_per_second() / 8);
        Self { last: now, usual: 0, bytes: 0, began: now, peak, set: now }
    }

    /// A packet arrives; the new rate, if it is time for one.
    pub(super) fn arrived(&mut self, len: u32, now: Instant) -> Option<Rate> {
        self.bytes += u64::from(len);
        let gap = now.since(self.last).as_nanos().min(1_000_000_000);
        self.last = now;
        self.usual = towards(self.usual, gap);
        let time = now.since(self.began).as_nanos();
        if gap <= self.usual || time == 0 {
            return None;
        }
        let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(time);
        self.peak = towards(self.peak, u64::try_from(rate).unwrap_or(u64::MAX));
        (self.bytes, self.began) = (0, now);
        if now.since(self.set) <= HOLDS {
            return None;
        }
        self.set = now;
        Rate::new((u128::from(self.peak) * 8 * 15 / 16).clamp(LEAST.into(), u64::MAX.into()) as u64)
    }
}

/// A mean that rises fast and falls slowly.
fn towards(mean: u64, new: u64) -> u64 {
    let shift = if new > mean { 2 } else { 8 };
    mean - (mean >> shift) + (new >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(n)
    }

    /// 8 Mb/s is 1 µs a byte. Of 1000 bytes each, one is sent for every three that are dropped: two thirds
    /// of the rate are kept for what is sent.
    #[test]
    fn drops_take_time_but_a_third_of_the_rate_at_most() {
        let mut shaper = Shaper::new(Rate::new(8_000_000), us(0));
        shaper.wake(us(0));
        shaper.dropped(500);
        assert_eq!(shaper.ready_at(), us(0), "nothing was sent");
        shaper.sent(1000);
        assert_eq!(shaper.ready_at(), us(1500));
        (0..3).for_each(|_| shaper.dropped(1000));
        assert_eq!(shaper.ready_at(), us(1500), "1.5 times as long as without drops");
        shaper.wake(us(10_000));
        assert_eq!(shaper.ready_at(), us(10_000), "nothing is saved up");
    }

    /// A steady train of 1000 bytes a millisecond with a longer gap now and then: 8 Mb/s less what the gaps
    /// take, and of that 15/16.
    #[test]
    fn the_rate_is_a_little_less_than_what_arrives() {
        let mut measured = Measured::new(None, us(0));
        let mut rates = std::vec::Vec::new();
        for n in 1..=5000u64 {
            let late = if n % 50 == 0 { 50 } else { 0 };
            rates.extend(measured.arrived(1000, us(1000 * n + late)).map(|r| (n, r)));
        }
        let (_, last) = rates.last().unwrap();
        let share = last.bits_per_second() as f64 / 8e6;
        assert!((share - 15.0 / 16.0).abs() < 0.02, "{share}");
        let gaps = rates.windows(2).map(|pair| pair[1].0 - pair[0].0);
        assert!(gaps.min().unwrap() >= 250, "{rates:?}");
    }
}
