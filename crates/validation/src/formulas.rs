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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_hand() {
        assert!((md1_waiting(0.8) - 1.6).abs() < 1e-12);
        // p = 0.1: x = 0.9 + √2.61 = 2.5155, and 2.5155²/2 = 0.9·3.5155.
        assert!((dctcp_window(0.1) - 25.155).abs() < 0.001);
    }
}
