//! Data Center TCP (RFC 8257), with the numbers of its text or, where reductions leave whole packets,
//! with Linux's: α has ten bits, of a reduction the whole packets count, so that below a packet there is
//! none, and an observation ends once all that was under way is acknowledged, not a packet later.

use super::{AckInfo, CongestionControl};
use crate::transport::tcp::Options;

/// DCTCP's estimation gain g (RFC 8257 §4.2).
const GAIN: f64 = 1.0 / 16.0;
/// g as a shift, and the bits of α, in Linux.
const SHIFT: u32 = 4;
const BITS: u32 = 10;

/// Data Center TCP: the window gives way by the share of marks.
#[derive(Clone, Debug)]
pub struct Dctcp {
    /// The smoothed share of marked packets, 0 … 1; begins with the worst (RFC 8257 §3.3).
    alpha: f64,
    /// Whether it counts as Linux does.
    whole: bool,
    acked: u32,
    marked: u32,
    /// The observation window goes on until this number is acknowledged.
    window_end: u32,
}

impl Default for Dctcp {
    fn default() -> Self {
        Self { alpha: 1.0, whole: false, acked: 0, marked: 0, window_end: 0 }
    }
}

impl CongestionControl for Dctcp {
    fn new(o: &Options) -> Self {
        Self { whole: o.window.whole_packets, ..Self::default() }
    }

    /// Equation 9.
    fn after_echo(&mut self, window: f64, _now: u64) -> Option<f64> {
        let reduction = window * self.alpha / 2.0;
        Some(window - if self.whole { reduction.floor() } else { reduction })
    }

    /// RFC 8257 §3.3, steps 1–7.
    fn on_ack(&mut self, &AckInfo { acked, marked, ack, end, .. }: &AckInfo) {
        self.acked += acked;
        self.marked += marked;
        let ends = ack > self.window_end || self.whole && ack == self.window_end;
        if ends && self.acked > 0 {
            self.alpha = if self.whole { self.whole_alpha() } else { self.next_alpha() };
            (self.acked, self.marked, self.window_end) = (0, 0, end);
        }
    }

    fn alpha(&self) -> Option<f64> {
        Some(self.alpha)
    }
}

impl Dctcp {
    /// Equation 8.
    fn next_alpha(&self) -> f64 {
        let share = f64::from(self.marked.min(self.acked)) / f64::from(self.acked);
        self.alpha * (1.0 - GAIN) + GAIN * share
    }

    /// Equation 8 in units of 2⁻¹⁰, as Linux rounds it: less than a unit takes all of a small α on the way
    /// down, and adds nothing on the way up.
    fn whole_alpha(&self) -> f64 {
        let one = f64::from(1 << BITS);
        let alpha = (self.alpha * one) as u32;
        let down = if alpha >> SHIFT == 0 { alpha } else { alpha >> SHIFT };
        let up = (u64::from(self.marked.min(self.acked)) << (BITS - SHIFT)) / u64::from(self.acked);
        (f64::from(alpha - down) + up as f64).min(one) / one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The acknowledgement of packet `n`, with a window of so many packets under way.
    fn one(n: u32, marked: bool, window: u32) -> AckInfo {
        AckInfo { acked: 1, marked: marked.into(), ack: n, end: n + window, ..AckInfo::default() }
    }

    /// α is an average with g = 1/16: without a mark it falls to (15/16)ⁿ in n windows.
    #[test]
    fn dctcp_gives_way_by_the_share_of_marks() {
        let mut dctcp = Dctcp::default();
        assert_eq!(dctcp.after_echo(100.0, 0), Some(50.0), "the first mark finds α = 1");
        for window in 0..16 {
            for n in 1..=10 {
                dctcp.on_ack(&one(10 * window + n, false, 10));
            }
        }
        // 160 packets in windows that end when what was sent at their start is acknowledged.
        let windows = (dctcp.alpha.ln() / (1.0f64 - GAIN).ln()).round() as i32;
        assert!((14..=17).contains(&windows), "{windows}");
        assert!((dctcp.alpha - (1.0 - GAIN).powi(windows)).abs() < 1e-12);
        // Half of the packets marked for long: α = ½, a quarter of the window is given up.
        let mut dctcp = Dctcp::default();
        for n in 1..=10_000 {
            dctcp.on_ack(&one(n, n % 2 == 0, 10));
        }
        assert!((dctcp.after_echo(100.0, 0).unwrap() - 75.0).abs() < 0.5);
        assert_eq!(dctcp.after_loss(100.0), 50.0, "a loss counts as for anybody");
    }

    /// Linux: a share of marks below 1/64 moves nothing, one of 2 % holds α between 1/64 and 2/64, and a
    /// window of 100 gives up none of it or one packet.
    #[test]
    fn whole_packets_have_small_shares_of_marks_forgotten() {
        let at = |each: u32| {
            let mut dctcp = Dctcp { whole: true, ..Dctcp::default() };
            for n in 1..=20_000 {
                dctcp.on_ack(&one(n, n % each == 0, 100));
            }
            dctcp
        };
        let mut rare = at(100);
        assert_eq!(rare.alpha, 0.0);
        assert_eq!(rare.after_echo(100.0, 0), Some(100.0));
        let mut some = at(50);
        assert!((16.0..=31.0).contains(&(some.alpha * 1024.0)), "{}", some.alpha);
        assert!(some.after_echo(100.0, 0).unwrap() >= 99.0);
        assert_eq!(at(2).after_echo(100.0, 0), Some(75.0), "half marked: α = 512/1024");
        assert_eq!(at(3).after_echo(100.0, 0), Some(83.0), "a third: α = 351/1024, 17.1 are 17");
    }

    /// Where all that was under way is acknowledged Linux's observation ends; that of RFC 8257 §3.3, step 3, with
    /// what was sent behind it.
    #[test]
    fn an_observation_of_linux_ends_with_the_window() {
        for (whole, after) in [(true, 4), (false, 5)] {
            let mut dctcp = Dctcp { whole, ..Dctcp::default() };
            dctcp.on_ack(&one(1, false, 3));
            let first = dctcp.alpha;
            let ends = (2..).find(|&n| {
                dctcp.on_ack(&one(n, false, 3));
                dctcp.alpha < first
            });
            assert_eq!(ends, Some(after), "{whole}");
        }
    }
}
