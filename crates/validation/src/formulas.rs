//! Closed forms that simulations are checked against, beside [`aqm::response`].

/// Mean number of packets that wait in an M/D/1 queue at load `rho`, without the one in service:
/// ρ²/(2(1 − ρ)) (Pollaczek–Khinchine).
pub fn md1_waiting(rho: f64) -> f64 {
    rho * rho / (2.0 * (1.0 - rho))
}

/// Mean window W of DCTCP in packets where each packet is marked with probability `p`.
///
/// A round trip adds 1 − p packets, since an acknowledgement with an echo adds nothing. A reduction
/// takes pW/2, as α comes to p; the next one may follow after W packets, and then waits for a mark,
/// 1/p packets on average: every 1 + 1/(pW) round trips. With x = pW the two balance where
/// x²/2 = (1 − p)(x + 1).
pub fn dctcp_window(p: f64) -> f64 {
    let a = 1.0 - p;
    (a + (a * a + 2.0 * a).sqrt()) / p
}

/// Half the 95 % interval of the difference of two samples' means, with as many degrees of freedom as
/// the smaller one has (less than Welch's, so never too narrow).
///
/// # Panics
/// Unless each has 2 … 11 values.
pub fn interval_of_difference(a: &[f64], b: &[f64]) -> f64 {
    /// Student's t at 97.5 %, from one degree of freedom on.
    const T: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let variance = |sample: &[f64]| {
        let squares = sample.iter().map(|x| (x - mean(sample)) * (x - mean(sample)));
        squares.sum::<f64>() / (sample.len() as f64 - 1.0)
    };
    let of_means = variance(a) / a.len() as f64 + variance(b) / b.len() as f64;
    T[a.len().min(b.len()) - 2] * of_means.sqrt()
}

/// The mean.
pub fn mean(sample: &[f64]) -> f64 {
    sample.iter().sum::<f64>() / sample.len() as f64
}

/// The median of a sample that is not empty.
pub fn median(mut sample: Vec<f64>) -> f64 {
    sample.sort_by(f64::total_cmp);
    let middle = |n: usize| sample[n / 2];
    (middle(sample.len()) + middle(sample.len() - 1)) / 2.0
}

/// Sign test, both tails: how probable it is that of so many figures above and below their references
/// the fewer are so few, or fewer, if each falls to either side by the toss of a coin.
pub fn sign_test(above: u32, below: u32) -> f64 {
    let n = above + below;
    let (mut ways, mut tail) = (1.0, 0.0);
    for k in 0..=above.min(below) {
        tail += ways;
        ways *= f64::from(n - k) / f64::from(k + 1);
    }
    (2.0 * tail * 0.5f64.powi(n.cast_signed())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variances of the means 1/3 each; t is 4.303 at two degrees of freedom.
    #[test]
    fn an_interval_by_hand() {
        let half = interval_of_difference(&[1.0, 2.0, 3.0], &[5.0, 6.0, 7.0, 6.0]);
        assert!((half - 4.303 * (1.0f64 / 3.0 + 1.0 / 6.0).sqrt()).abs() < 1e-9, "{half}");
    }

    #[test]
    fn values_by_hand() {
        assert!((md1_waiting(0.8) - 1.6).abs() < 1e-12);
        // p = 0.1: x = 0.9 + √2.61 = 2.5155, and 2.5155²/2 = 0.9·3.5155.
        assert!((dctcp_window(0.1) - 25.155).abs() < 0.001);
        // 1 + 10 + 45 of 2¹⁰ on either side.
        assert!((sign_test(2, 8) - 0.109_375).abs() < 1e-12);
        assert!((sign_test(8, 2) - 0.109_375).abs() < 1e-12);
        assert_eq!(sign_test(5, 5), 1.0);
    }
}
