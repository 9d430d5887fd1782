//! Data Center TCP (RFC 8257).

use super::CongestionControl;
use crate::transport::tcp::Options;

/// DCTCP's estimation gain g (RFC 8257 §4.2).
const GAIN: f64 = 1.0 / 16.0;

/// Data Center TCP: the window gives way by the share of marks.
#[derive(Clone, Debug)]
pub struct Dctcp {
    /// The smoothed share of marked packets, 0 … 1; begins with the worst (RFC 8257 §3.3).
    alpha: f64,
    acked: u32,
    marked: u32,
    /// The observation window goes on until this number is acknowledged.
    window_end: u32,
}

impl Default for Dctcp {
    fn default() -> Self {
        Self { alpha: 1.0, acked: 0, marked: 0, window_end: 0 }
    }
}

impl CongestionControl for Dctcp {
    fn new(_: &Options) -> Self {
        Self::default()
    }

    /// Equation 9.
    fn after_echo(&mut self, window: f64, _now: u64) -> f64 {
        window * (1.0 - self.alpha / 2.0)
    }

    /// RFC 8257 §3.3, steps 1–7.
    fn on_ack(&mut self, acked: u32, echo: bool, [ack, end]: [u32; 2], _times: [u64; 2]) {
        self.acked += acked;
        self.marked += if echo { acked } else { 0 };
        if ack > self.window_end && self.acked > 0 {
            let share = f64::from(self.marked) / f64::from(self.acked);
            self.alpha = self.alpha * (1.0 - GAIN) + GAIN * share; // eq. 8
            (self.acked, self.marked, self.window_end) = (0, 0, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// α is an average with g = 1/16: without a mark it falls to (15/16)ⁿ in n windows.
    #[test]
    fn dctcp_gives_way_by_the_share_of_marks() {
        let mut dctcp = Dctcp::default();
        assert_eq!(dctcp.after_echo(100.0, 0), 50.0, "the first mark finds α = 1");
        for window in 0..16 {
            for n in 1..=10 {
                dctcp.on_ack(1, false, [10 * window + n, 10 * window + 10 + n], [0; 2]);
            }
        }
        // 160 packets in windows that end when what was sent at their start is acknowledged.
        let windows = (dctcp.alpha.ln() / (1.0f64 - GAIN).ln()).round() as i32;
        assert!((14..=17).contains(&windows), "{windows}");
        assert!((dctcp.alpha - (1.0 - GAIN).powi(windows)).abs() < 1e-12);
        // Half of the packets marked for long: α = ½, a quarter of the window is given up.
        let mut dctcp = Dctcp::default();
        for n in 1..=10_000 {
            dctcp.on_ack(1, n % 2 == 0, [n, n + 10], [0; 2]);
        }
        assert!((dctcp.after_echo(100.0, 0) - 75.0).abs() < 0.5);
        assert_eq!(dctcp.after_loss(100.0), 50.0, "a loss counts as for anybody");
    }
}
