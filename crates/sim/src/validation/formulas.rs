//! Closed forms that simulations are checked against, beside [`aqm::response`].

/// Mean number of packets that wait in an M/D/1 queue at load `rho`, without the one in service:
/// ρ²/(2(1 − ρ)) (Pollaczek–Khinchine).
pub fn md1_waiting(rho: f64) -> f64 {
    rho * rho / (2.0 * (1.0 - rho))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_hand() {
        assert!((md1_waiting(0.8) - 1.6).abs() < 1e-12);
    }
}
