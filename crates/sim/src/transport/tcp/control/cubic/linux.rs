//! CUBIC's window as Linux counts it: whole packets.
//!
//! ```text
//! target := w_max − ⌊C (K − t)³⌋  before K,  w_max + ⌊C (t − K)³⌋  behind it;  t from the epoch on, a round trip ahead
//! n := ⌊W/(target − W)⌋ acknowledged packets add one, 100 W where the target is no higher;  at least 2
//! before the first loss:  n at most 20
//! Reno's share:  a packet for ⌊15 W/8⌋ acknowledged;  n at most ⌊W/(share − W)⌋ where it is higher
//! n is found anew when W has changed, and each 1/32 s
//! ```
//!
//! On the way back to `w_max` the target is up to a packet above the curve, and what was acknowledged while it was
//! reached counts once it is not: a small window is ahead of the curve.

use super::{C, Times};

/// What a reduction leaves: 0.7 in units of 1/1024, as of which rounding down makes no packet less where 0.7 of
/// the window is whole.
const LEFT: f64 = 717.0 / 1024.0;
/// The share of the last window that is aimed at when the one before was not reached (RFC 8312 §4.6).
const LESS: f64 = (1.0 + LEFT) / 2.0;
/// Acknowledged packets for one more before the first loss, at most; and where the target is reached, of the window.
const MOST_AT_FIRST: f64 = 20.0;
const AT_REST: f64 = 100.0;
/// Never more than half of what is acknowledged.
const LEAST: f64 = 2.0;
/// How long n stays, ns.
const STAYS: u64 = 1_000_000_000 / 32;

/// The state; windows are whole packets, times in ns.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Whole {
    /// The window before the last reduction, less if that came early; 0: none yet, or a timeout since.
    last_max: f64,
    origin: f64,
    /// s from the epoch's start to the origin.
    k: f64,
    /// Reno's share, and what was acknowledged since it grew.
    share: f64,
    acked: f64,
    /// Acknowledged since the window grew.
    credit: f64,
    /// So many acknowledged packets add one, which was found for this window and then.
    n: f64,
    found: (f64, u64),
    pub(super) epoch: Option<u64>,
    pub(super) last: u64,
}

impl Whole {
    fn begin(&mut self, window: f64, acked: f64, now: u64) -> u64 {
        (self.origin, self.k) = if self.last_max <= window {
            (window, 0.0)
        } else {
            (self.last_max, libm::cbrt((self.last_max - window) / C))
        };
        (self.share, self.acked) = (window, acked);
        self.epoch = Some(now);
        now
    }

    fn target(&self, t: f64) -> f64 {
        let from = t - self.k;
        let volume = (C * (from * from * from).abs()).floor();
        if from < 0.0 { self.origin - volume } else { self.origin + volume }
    }

    /// What `acked` packets add to `window`.
    pub(super) fn grow(&mut self, window: f64, acked: u32, times: Times) -> f64 {
        let acked = f64::from(acked);
        self.acked += acked;
        self.last = times.now;
        if window != self.found.0 || times.now - self.found.1 > STAYS {
            self.n = self.find(window, acked, times);
            self.found = (window, times.now);
        }
        self.opened(acked)
    }

    fn find(&mut self, window: f64, acked: f64, Times { now, srtt }: Times) -> f64 {
        let epoch = self.epoch.unwrap_or_else(|| self.begin(window, acked, now));
        let above = |aim: f64| (window / (aim - window)).floor();
        let target = self.target((now - epoch + srtt) as f64 / 1e9);
        let mut n = if target > window { above(target) } else { AT_REST * window };
        if self.last_max == 0.0 {
            n = n.min(MOST_AT_FIRST);
        }
        let each = (window * 15.0 / 8.0).floor();
        while self.acked > each {
            self.acked -= each;
            self.share += 1.0;
        }
        if self.share > window {
            n = n.min(above(self.share));
        }
        n.max(LEAST)
    }

    /// Packets by which `acked` more open the window. What was acknowledged while that took more of them
    /// opens it by one, once.
    fn opened(&mut self, acked: f64) -> f64 {
        let at_once = self.credit >= self.n;
        self.credit = acked + if at_once { 0.0 } else { self.credit };
        let opened = (self.credit / self.n).floor();
        self.credit -= opened * self.n;
        opened + f64::from(u8::from(at_once))
    }

    /// The window that is left of `window`.
    pub(super) fn reduce(&mut self, window: f64) -> f64 {
        self.last_max = if window < self.last_max { (window * LESS).floor() } else { window };
        (self.epoch, self.credit) = (None, 0.0);
        (window * LEFT).floor()
    }

    pub(super) fn on_timeout(&mut self) {
        (self.last_max, self.epoch, self.credit) = (0.0, None, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// When the window, of which each packet is acknowledged once in `rtt` ms, has each further packet, ms.
    fn times(curve: &mut Whole, window: f64, rtt: u64, until: u64) -> Vec<(u64, f64)> {
        let (mut now, mut window, mut grown) = (0, window, Vec::new());
        while now < until * MS {
            let more = curve.grow(window, 1, Times { now, srtt: rtt * MS });
            if more > 0.0 {
                window += more;
                grown.push((now / MS, window));
            }
            now += rtt * MS / window as u64;
        }
        grown
    }

    /// Of 20 packets 14 are left, K = ∛(6/0.4) = 2.466 s. A round trip of 100 ms ahead the target is 15 until 45 ms
    /// have passed (0.4 (K − t − 0.1)³ = 5), then 16, which the next look at it, after 71 ms, makes a packet at
    /// once; the next two take a round trip each. The target is at 18, 19 and 20 at 0.41, 0.66 and 1.01 s; by then
    /// enough is acknowledged for the window to follow. The curve is at 19 after 1.01 s only.
    #[test]
    fn a_small_window_is_ahead_of_its_curve() {
        let mut curve = Whole::default();
        curve.reduce(20.0);
        let grown = times(&mut curve, 14.0, 100, 1100);
        let expected =
            [(71, 15.0), (164, 16.0), (264, 17.0), (409, 18.0), (656, 19.0), (1009, 20.0)];
        assert_eq!(grown.len(), expected.len(), "{grown:?}");
        for (found, expected) in grown.iter().zip(expected) {
            assert_eq!(found.1, expected.1, "{grown:?}");
            assert!((expected.0 - 3..expected.0 + 35).contains(&found.0), "{grown:?}");
        }
    }

    /// More than 26 acknowledged packets (15·14/8) add one to Reno's share of 14, and the window follows at once.
    #[test]
    fn reno_s_share_is_counted_in_whole_packets() {
        let mut curve = Whole::default();
        curve.reduce(20.0);
        curve.begin(14.0, 0.0, 0);
        curve.k = 100.0; // The curve stays where it is.
        let opened =
            (1..=27).map(|n| curve.grow(14.0, 1, Times { now: n * 32 * MS, srtt: 10 * MS }));
        let opened: Vec<f64> = opened.collect();
        assert!(opened[..26].iter().all(|&more| more == 0.0) && opened[26] == 1.0, "{opened:?}");
    }

    /// Before a loss was seen 100 packets acknowledged open five, though the curve has just begun.
    #[test]
    fn before_the_first_loss_a_round_trip_opens_a_twentieth() {
        let mut curve = Whole::default();
        let opened = |curve: &mut Whole, from: u64| -> f64 {
            (from..from + 100)
                .map(|n| curve.grow(100.0, 1, Times { now: n * MS, srtt: 100 * MS }))
                .sum()
        };
        assert_eq!(opened(&mut curve, 0), 5.0);
        curve.reduce(100.0);
        assert_eq!(opened(&mut curve, 1000), 0.0, "at rest");
        curve.on_timeout();
        assert_eq!(opened(&mut curve, 2000), 5.0, "a timeout forgets it");
    }

    /// 85 of 100 packets are the aim of the next time if the window was not back at 101, rounded down.
    #[test]
    fn who_did_not_get_back_aims_lower() {
        let mut curve = Whole::default();
        curve.reduce(101.0);
        curve.reduce(101.0);
        assert_eq!(curve.last_max, 101.0);
        curve.reduce(99.0);
        assert_eq!(curve.last_max, 84.0, "84.15");
    }
}
