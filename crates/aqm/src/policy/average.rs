//! The moving average of RED's family.

use crate::param::choice;
use crate::time::{Duration, Instant};

choice! {
    /// How an average ages while the link is idle.
    pub enum Ageing {
        /// By (1 − w_q)^m, where m packets could have gone: FJ93.
        Power = "power",
        /// Halved again and again, at times from a table of 256 cells: Linux, with the table that its tc makes.
        Halvings = "halvings",
    }
}

/// The moving average of a queue's length, which ages while the link is idle (FJ93 Fig. 2).
#[derive(Clone, Debug)]
pub(super) struct Average {
    /// As of the last sample or ageing.
    pub(super) value: f64,
    w_q: f64,
    /// Transmission time of a mean packet in nanoseconds.
    packet_time: f64,
    /// Idle time counts in whole packets, and the packet that ends it is a sample.
    whole: bool,
    ageing: Ageing,
    /// Up to when idle time has been aged in, while the link is idle.
    idle_since: Option<Instant>,
}

impl Average {
    /// Of an empty queue on an idle link. `packet_time` is in nanoseconds.
    pub(super) fn new(w_q: f64, packet_time: f64, now: Instant) -> Self {
        Self {
            value: 0.0,
            w_q,
            packet_time,
            whole: false,
            ageing: Ageing::Power,
            idle_since: Some(now),
        }
    }

    /// This average, ageing in another way.
    pub(super) fn ageing(self, ageing: Ageing) -> Self {
        Self { ageing, ..self }
    }

    /// This average; if `whole`, idle time counts in whole packets, and the packet that ends it is a
    /// sample.
    pub(super) fn in_whole_packets(self, whole: bool) -> Self {
        Self { whole, ..self }
    }

    /// Takes in a queue's length, or on an idle link the idle time; the new value.
    #[inline]
    pub(super) fn sample(&mut self, length: f64, now: Instant) -> f64 {
        if self.idle_since.is_some() {
            self.wake(length, now);
        } else {
            self.value = (1.0 - self.w_q) * self.value + self.w_q * length;
        }
        self.value
    }

    /// Takes in the idle time, and a queue's length behind it where that counts.
    #[inline(never)]
    fn wake(&mut self, length: f64, now: Instant) {
        self.age(now);
        if self.whole {
            self.value = (1.0 - self.w_q) * self.value + self.w_q * length;
        }
    }

    /// Takes in the idle time, if the link is idle.
    #[inline]
    pub(super) fn age(&mut self, now: Instant) {
        if self.idle_since.is_some() {
            self.value = self.at(now);
            self.idle_since = Some(now);
        }
    }

    /// The average with the idle time until `now`.
    pub(super) fn at(&self, now: Instant) -> f64 {
        let Some(since) = self.idle_since else { return self.value };
        let idle = now.since(since);
        match self.ageing {
            Ageing::Power => {
                let m = idle.as_nanos() as f64 / self.packet_time;
                aged(self.value, self.w_q, if self.whole { libm::floor(m) } else { m })
            }
            Ageing::Halvings => halved(self.value, self.w_q, self.packet_time, idle),
        }
    }

    /// A packet was queued: the link is not idle.
    #[inline]
    pub(super) fn admitted(&mut self) {
        self.idle_since = None;
    }

    /// Another weight, and another transmission time (ns), from `now` on.
    pub(super) fn change(&mut self, w_q: f64, packet_time: f64, now: Instant) {
        self.age(now);
        (self.w_q, self.packet_time) = (w_q, packet_time);
    }

    /// The weight and the transmission time of `with` from `now` on.
    pub(super) fn retune(&mut self, with: &Self, now: Instant) {
        if (self.w_q, self.packet_time) != (with.w_q, with.packet_time) {
            self.change(with.w_q, with.packet_time, now);
        }
    }

    /// The link went idle, or stays so.
    #[inline]
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.idle_since = self.idle_since.or(Some(now));
    }
}

/// The average after an idle time in which `m` packets could have gone (FJ93 §4).
fn aged(avg: f64, w_q: f64, m: f64) -> f64 {
    if avg == 0.0 { 0.0 } else { avg * libm::pow(1.0 - w_q, m) }
}

/// Ticks of 64 ns in a microsecond. The table that tc makes counts a packet's time in ticks, and the kernel
/// reads it by microseconds: averages age more slowly by this factor than by (1 − w_q)^m.
const TICKS: f64 = 15.625;
/// Cells of the table. The last stands for all longer times, and leaves nothing of the average.
const CELLS: u64 = 256;
/// Most halvings of a cell.
const MOST: f64 = 31.0;

/// The average after an idle time by the table that tc makes for Linux. A cell is 2^k µs, with the least k
/// for which 512 cells are longer than 31 halvings take. In cell i the average is halved ⌊i·2^k·l⌋ times,
/// where l = −ln(1 − w_q) per packet time. In the cells where that is 0, it falls in a straight line that
/// would end at 0 after one cell, and stops at half. Without such a k tc makes no table, and nothing ages.
fn halved(avg: f64, w_q: f64, packet_time: f64, idle: Duration) -> f64 {
    let per_us = -libm::log(1.0 - w_q) / (packet_time / 1000.0 * TICKS);
    let Some(k) = (0..32).find(|k| MOST < per_us * (512_u64 << k) as f64) else { return avg };
    let us = idle.as_nanos() / 1000;
    let cell = us >> k;
    if cell >= CELLS - 1 {
        return 0.0;
    }
    let halvings = if cell == 0 { 0.0 } else { libm::floor((cell << k) as f64 * per_us).min(MOST) };
    if halvings > 0.0 {
        libm::ldexp(avg, -(halvings as i32))
    } else {
        avg * (1.0 - us as f64 / (1_u64 << k) as f64).max(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `red_calc_qavg_from_idle_time` of Linux 6.12 makes of an average of 40 000 bytes, with tables
    /// as tc (iproute2 6.1.0) fills them: `bandwidth` in Mb/s, `avpkt`, 1/W, and pairs of idle time (µs)
    /// and average. The kernel rounds down to W bytes and, for its linear part, to whole steps of that.
    #[test]
    fn idle_time_halves_the_average_as_linux_does() {
        for (mbit, avpkt, weight, averages) in [
            (
                10.0,
                1000.0,
                16.0,
                &[
                    (0.5, 40_000.0),
                    (1.0, 39_997.562_5),
                    (100.0, 39_755.875),
                    (2000.0, 35_117.187_5),
                    (8191.0, 20_002.5),
                    (8192.0, 20_000.0),
                    (50_000.0, 20_000.0),
                    (400_000.0, 10_000.0),
                    (1e6, 1250.0),
                    (4e6, 0.0),
                    (1e9, 0.0),
                ][..],
            ),
            (100.0, 1000.0, 16.0, &[(1.0, 39_980.5), (100.0, 38_046.875), (5e4, 1e4), (4e5, 0.0)]),
            (
                1.0,
                500.0,
                2.0,
                &[(2000.0, 30_234.5), (8191.0, 20_000.0), (4e5, 2500.0), (1e6, 19.5)],
            ),
            (1000.0, 1500.0, 512.0, &[(2000.0, 30_234.375), (4e5, 2500.0), (1e6, 39.0625)]),
        ] {
            for &(us, expected) in averages {
                let idle = Duration::from_nanos((us * 1000.0) as u64);
                let value = halved(40_000.0, 1.0 / weight, avpkt * 8000.0 / mbit, idle);
                assert!(
                    (value - expected).abs() < 3.0,
                    "{mbit} Mb/s, {us} µs: {value}, {expected}"
                );
            }
        }
    }

    /// At 10 Mb/s tc (iproute2 6.1.0) says cells of 2¹⁴ µs for packets of 1000 bytes and W = 1/16; the first
    /// of each number of halvings, up to the last cell but one, are at these.
    #[test]
    fn the_table_is_that_of_tc() {
        let firsts = [
            12, 24, 36, 48, 60, 71, 83, 95, 107, 119, 131, 142, 154, 166, 178, 190, 201, 213, 225,
            237, 249,
        ];
        for cell in 1..255_u64 {
            let us = (cell << 14) as f64;
            let halvings = firsts.iter().filter(|&&first| first <= cell).count();
            let idle = Duration::from_micros(us as u64);
            let value = halved(40_000.0, 1.0 / 16.0, 800_000.0, idle);
            assert_eq!(value, 40_000.0 / f64::from(1_u32 << halvings.max(1)), "{cell}");
        }
    }

    #[test]
    fn the_ends_of_the_weight_age_all_or_nothing() {
        let ms = Duration::from_millis(1);
        assert_eq!(halved(8.0, 0.0, 1e6, ms), 8.0);
        assert_eq!(halved(8.0, 1.0, 1e6, ms), 0.0);
        assert_eq!(halved(8.0, 1e-9, 1e12, Duration::from_secs(3600)), 8.0);
        assert_eq!(halved(0.0, 1.0, 1.0, ms), 0.0);
    }

    #[test]
    fn idle_time_ages_the_average_by_the_packets_that_could_have_gone() {
        for (avg, w_q, m, expected) in [
            (8.0, 0.5, 0.0, 8.0),
            (8.0, 0.5, 3.0, 1.0),  // 8/2³
            (8.0, 0.75, 0.5, 4.0), // √¼
            (8.0, 1.0, 1.0, 0.0),
            (0.0, 1.0, 0.0, 0.0),
        ] {
            assert!((aged(avg, w_q, m) - expected).abs() < 1e-12);
        }
    }
}
