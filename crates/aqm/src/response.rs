//! What TCP sends at a given loss: the response functions that disciplines and validations measure
//! flows against. `p` is the share of packets lost (or marked), in (0, 1], times are in seconds,
//! rates in packets per second.

/// Throughput of TCP under periodic loss: √(1.5/p)/R (Mahajan01 eq. 1).
pub fn square_root(p: f64, rtt: f64) -> f64 {
    libm::sqrt(1.5 / p) / rtt
}

/// Throughput of TCP with independent losses and retransmission timeouts of `rto` (Padhye, Firoiu,
/// Towsley, Kurose 1998; Mahajan01 eq. 2, which leaves out that no more than all windows time out).
pub fn pftk(p: f64, rtt: f64, rto: f64) -> f64 {
    with_timeouts(p, rtt, rto, 1.0)
}

/// TFRC's throughput equation (RFC 5348 §3.1): as [`pftk`] with a timeout of four round trips, and no bound on
/// the share of windows that time out, which counts above a loss of 30 %.
pub fn tfrc(p: f64, rtt: f64) -> f64 {
    tfrc_with(p, rtt, 4.0 * rtt)
}

/// TFRC's throughput equation with a timeout of `rto` (RFC 5348 §3.1).
pub fn tfrc_with(p: f64, rtt: f64, rto: f64) -> f64 {
    with_timeouts(p, rtt, rto, f64::INFINITY)
}

/// At most the share `most` of all windows times out.
fn with_timeouts(p: f64, rtt: f64, rto: f64, most: f64) -> f64 {
    let timeouts = (3.0 * libm::sqrt(3.0 * p / 8.0)).min(most) * p * (1.0 + 32.0 * p * p);
    1.0 / (rtt * libm::sqrt(2.0 * p / 3.0) + rto * timeouts)
}

/// Length of a congestion epoch of TCP in seconds, the time in which it sends 1/p packets and loses
/// one: R/√(1.5 p) (Mahajan01 §4.1, CL).
pub fn congestion_epoch(p: f64, rtt: f64) -> f64 {
    rtt / libm::sqrt(1.5 * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_hand() {
        // √(1.5/0.015) = 10 packets a round trip.
        assert!((square_root(0.015, 0.1) - 100.0).abs() < 1e-9);
        // p = 0.015, R = 0.1, RTO = 0.4: 0.1·0.1 + 0.4·(3·0.075)·0.015·1.0072 = 0.011359.
        assert!((pftk(0.015, 0.1, 0.4) - 88.032).abs() < 0.01, "{}", pftk(0.015, 0.1, 0.4));
    }

    /// RFC 5348 §3.1 by hand: R = 0.1, p = 0.01: 0.1·0.081650 + 0.4·0.183712·0.01·1.0032 = 0.0089022;
    /// p = 0.5: 0.1·0.57735 + 0.4·1.29904·0.5·9 = 2.39600.
    #[test]
    fn tfrc_by_hand() {
        for (p, expected) in [(0.01, 112.332), (0.5, 0.417_362)] {
            assert!((tfrc(p, 0.1) / expected - 1.0).abs() < 1e-4, "{}", tfrc(p, 0.1));
        }
        assert!((tfrc(0.2, 0.1) / pftk(0.2, 0.1, 0.4) - 1.0).abs() < 1e-12, "equal below 30 %");
    }

    /// Mahajan01 §4.1: "for low to moderate levels of congestion" both "give similar results".
    #[test]
    fn without_timeouts_the_two_agree() {
        assert!((pftk(0.01, 0.04, 0.0) / square_root(0.01, 0.04) - 1.0).abs() < 1e-12);
        assert!(pftk(0.2, 0.04, 0.16) < 0.3 * square_root(0.2, 0.04), "not so at high ones");
    }

    /// By hand for Mahajan01 Fig. 7: R = 40 ms, p = 1 %: 0.04/√0.015 = 0.3266 s.
    #[test]
    fn an_epoch_is_a_packet_in_p_at_the_rate_of_eq_1() {
        assert!((congestion_epoch(0.01, 0.04) - 0.3266).abs() < 1e-4);
        for (p, rtt) in [(0.001, 0.01), (0.05, 0.2), (1.0, 1.0)] {
            assert!((congestion_epoch(p, rtt) * square_root(p, rtt) * p - 1.0).abs() < 1e-12);
        }
    }
}
