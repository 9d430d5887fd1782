//! How RED's family spaces its signals: from a probability p_b by the queue alone to p_a, which also
//! knows how many packets have come since the last signal.

use crate::param::choice;

choice! {
    /// How the gap between two signals is distributed, by the probability p_b.
    pub enum Spacing {
        /// Uniform on 1 … 1/p_b − 1: FJ93 Fig. 2 as it is coded.
        Uniform = "uniform",
        /// Uniform on 1 … 1/p_b: FJ93 §7 as it is meant.
        UniformExact = "uniform-exact",
        /// Uniform on 1/p_b … 2/p_b − 1: ns-2's default (`wait_`).
        Wait = "wait",
        /// Uniform on 1 … 1/p_b, of one random number a signal, which is drawn ahead: FJ93 Fig. 17, Linux.
        Ahead = "ahead",
        /// Geometric with mean 1/p_b: each packet alone, p_a = p_b (FJ93 §7, method 1).
        Geometric = "geometric",
    }
}

/// p_a: the probability of the `count`-th packet since the last signal (FJ93 §7). A p_b above 1, as
/// of a long packet in byte mode, is as good as 1.
#[inline]
pub(super) fn p_a(spacing: Spacing, p_b: f64, count: f64) -> f64 {
    let x = count * p_b;
    match spacing {
        Spacing::Uniform | Spacing::UniformExact if x < 1.0 => (p_b / (1.0 - x)).min(1.0),
        // Of who does not know the number that was drawn.
        Spacing::Ahead if count < 1.0 => 0.0,
        Spacing::Ahead if x - p_b < 1.0 => (p_b / (1.0 - (x - p_b))).min(1.0),
        Spacing::Geometric => p_b.min(1.0),
        Spacing::Wait if x < 1.0 => 0.0,
        Spacing::Wait if x < 2.0 => (p_b / (2.0 - x)).min(1.0),
        _ => 1.0,
    }
}

/// Whether a coin in [0, 1) is below p_a. For uniform spacing coin < p_b/(1 − count·p_b) is put as
/// coin < p_b·(1 + count·coin), which holds wherever p_a is 1 as well and waits for no division.
/// By rounding the two differ for about one coin in 2⁵².
#[inline]
pub(super) fn picks(coin: f64, spacing: Spacing, p_b: f64, count: f64) -> bool {
    match spacing {
        Spacing::Uniform | Spacing::UniformExact => coin < p_b * (1.0 + count * coin),
        Spacing::Geometric | Spacing::Wait | Spacing::Ahead => coin < p_a(spacing, p_b, count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_a_by_hand() {
        use Spacing::{Ahead, Geometric, Uniform, UniformExact, Wait};
        for (spacing, p_b, count, expected) in [
            (Uniform, 0.1, 0, 0.1),
            (Uniform, 0.1, 1, 1.0 / 9.0), // 0.1/0.9
            (Uniform, 0.1, 5, 0.2),       // 0.1/0.5
            (Uniform, 0.1, 10, 1.0),      // 1 − 10·0.1 = 0
            (Uniform, 0.1, 99, 1.0),
            (Uniform, 0.0, 1_000_000, 0.0),
            (Uniform, 0.5, 1, 1.0), // 0.5/0.5: every packet behind a signal is signalled
            (UniformExact, 0.5, 0, 0.5),
            (Wait, 0.1, 9, 0.0),
            (Wait, 0.1, 10, 0.1), // 0.1/(2 − 1)
            (Wait, 0.1, 15, 0.2), // 0.1/(2 − 1.5)
            (Wait, 0.1, 20, 1.0),
            (Ahead, 0.1, 0, 0.0), // below min_th until now
            (Ahead, 0.1, 1, 0.1),
            (Ahead, 0.1, 6, 0.2), // 0.1/0.5
            (Ahead, 0.1, 11, 1.0),
            (Geometric, 0.1, 50, 0.1),
        ] {
            assert!(
                (p_a(spacing, p_b, f64::from(count)) - expected).abs() < 1e-12,
                "{spacing:?} {p_b} {count}"
            );
        }
    }

    /// Coins on both sides of p_a, for each case of it.
    #[test]
    fn a_coin_picks_below_p_a() {
        use Spacing::{Geometric, Uniform, UniformExact, Wait};
        for spacing in [Uniform, UniformExact, Wait, Geometric] {
            for p_b in [0.0, 1e-9, 0.01, 0.3, 0.5, 1.0, 2.0] {
                for count in [0.0, 1.0, 2.0, 7.5, 99.0, 1e9] {
                    let p = p_a(spacing, p_b, count);
                    for coin in [0.0, p * 0.999_999, p * 1.000_001, 0.999_999] {
                        if coin < 1.0 {
                            let picked = picks(coin, spacing, p_b, count);
                            assert_eq!(picked, coin < p, "{spacing:?} {p_b} {count} {coin}");
                        }
                    }
                }
            }
        }
    }
}
