//! Closed forms that simulations are checked against.

/// Throughput of TCP in packets per second under periodic loss `p` and round-trip time `rtt` in s:
/// √(1.5/p)/R (003 eq. 1).
pub fn square_root(p: f64, rtt: f64) -> f64 {
    (1.5 / p).sqrt() / rtt
}

/// Throughput of TCP in packets per second with independent loss `p`, round-trip time `rtt` and
/// retransmission timeout `rto` in s (Padhye, Firoiu, Towsley, Kurose 1998; 003 eq. 2).
pub fn pftk(p: f64, rtt: f64, rto: f64) -> f64 {
    let timeouts = (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    1.0 / (rtt * (2.0 * p / 3.0).sqrt() + rto * timeouts)
}

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
        // √(1.5/0.015) = 10 packets a round trip.
        assert!((square_root(0.015, 0.1) - 100.0).abs() < 1e-9);
        assert!((md1_waiting(0.8) - 1.6).abs() < 1e-12);
        // p = 0.015, R = 0.1, RTO = 0.4: 0.1·0.1 + 0.4·(3·0.075)·0.015·1.0072 = 0.011359.
        assert!((pftk(0.015, 0.1, 0.4) - 88.032).abs() < 0.01, "{}", pftk(0.015, 0.1, 0.4));
    }
}
