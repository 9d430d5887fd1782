//! The equations of Mahajan01 §4 and §5, in the paper's letters: K hits in M lists, target
//! round-trip time R in seconds, ambient drop rate p, and a flow that sends γ times the target rate
//! f(R, p). Equations 1 and 2 are in [`response`].

use crate::response;

/// Length of a drop-list interval in seconds: K/M of a congestion epoch (eq. 3).
pub fn list_interval(k: u32, m: u32, rtt: f64, p: f64) -> f64 {
    f64::from(k) / f64::from(m) * response::congestion_epoch(p, rtt)
}

/// Probability that a flow of constant rate γ·f(R, p), each of whose packets is dropped with
/// probability p, is identified in one round: that at least K of M lists have a drop of it (eq. 4).
pub fn identification(gamma: f64, p: f64, k: u32, m: u32) -> f64 {
    let packets = gamma * f64::from(k) / (f64::from(m) * p);
    let none = libm::pow(1.0 - p, packets);
    let mut choices = 1.0; // C(M, j)
    let mut sum = 0.0;
    for j in 0..=m {
        if j >= k {
            let (with, without) = (f64::from(j), f64::from(m - j));
            sum += choices * libm::pow(1.0 - none, with) * libm::pow(none, without);
        }
        choices *= f64::from(m - j) / f64::from(j + 1);
    }
    sum
}

/// By how much a flow's probability is raised that had `drops` where the flows identified with it
/// had `average` (eq. 5).
pub fn increment(drops: f64, average: f64, p: f64) -> f64 {
    drops / average * p
}

/// A flow's probability after it was lowered by a factor β or by p_d, whichever is less (§5.1).
pub fn decreased(probability: f64, beta: f64, p_d: f64) -> f64 {
    (probability / beta).max(probability - p_d)
}

/// Seconds until a flow that rose to γ·f(R, p) is cut down to α·f(R, p) before the queue, if it is
/// identified in every round of M − 1 lists and alone (eq. 6).
pub fn cut_down_time(gamma: f64, alpha: f64, rtt: f64, p: f64, k: u32, m: u32) -> f64 {
    (gamma - alpha) / (gamma * p) * f64::from(m - 1) * list_interval(k, m, rtt, p)
}

/// The rounds in which a flow that is not identified any more goes from `probability` to below
/// `p_min`: n by p_d, then m by the factor β (§5.2). Both are rounded up: of 0.75 to 0.005 the paper
/// has n = 13 (0.75/0.05 − 2 exactly) and m = 5 (log₂ 20 = 4.3).
pub fn release_rounds(probability: f64, beta: f64, p_d: f64, p_min: f64) -> (u32, u32) {
    // A quotient that should be whole may come out a little above.
    let up = |x: f64| libm::ceil(x - 1e-9).max(0.0) as u32;
    let n = up(probability / p_d - 2.0);
    let left = probability - f64::from(n) * p_d;
    (n, up(libm::log(left / p_min) / libm::log(beta)))
}

/// Seconds until a flow that is not identified any more is released, after `rounds` decrements that
/// lie `l` lists apart (eq. 7).
pub fn release_time(rounds: u32, l: u32, rtt: f64, p: f64, k: u32, m: u32) -> f64 {
    f64::from(rounds) * f64::from(l) * list_interval(k, m, rtt, p)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} for {b}");
    }

    #[test]
    fn a_list_lasts_k_of_m_congestion_epochs() {
        // 3/5 · 0.04/√0.015 = 0.19596 s.
        close(list_interval(3, 5, 0.04, 0.01), 0.195_96, 1e-5);
    }

    /// Mahajan01 Fig. 9, whose lines by hand: γ = 1, p = 10 % sends 6 packets a list, P(1) = 1 −
    /// 0.9⁶ = 0.4686, and P = 10·P³·Q² + 5·P⁴·Q + P⁵ = 0.4412; at γ = 2 0.7176 and 0.8594.
    #[test]
    fn identification_by_hand() {
        close(identification(1.0, 0.1, 3, 5), 0.441_2, 1e-4);
        close(identification(2.0, 0.1, 3, 5), 0.859_4, 1e-4);
        // M = K = 1: one drop in 1/p packets.
        close(identification(1.0, 0.5, 1, 1), 0.75, 1e-12);
        close(identification(0.0, 0.01, 3, 5), 0.0, 0.0);
        close(identification(1.0, 1.0, 3, 5), 1.0, 0.0);
    }

    #[test]
    fn a_flow_with_twice_the_drops_is_raised_twice_as_much() {
        close(increment(8.0, 4.0, 0.02), 0.04, 1e-15);
        close(increment(3.0, 3.0, 0.02), 0.02, 1e-15);
    }

    #[test]
    fn a_probability_is_halved_but_not_by_more_than_the_bound() {
        close(decreased(0.75, 2.0, 0.05), 0.70, 1e-15);
        close(decreased(0.1, 2.0, 0.05), 0.05, 1e-15);
        close(decreased(0.06, 2.0, 0.05), 0.03, 1e-15);
        close(decreased(0.06, 1.5, 0.05), 0.04, 1e-15);
    }

    /// §5.2's example: from 4 f(R, p) at R = 40 ms, p = 1 %. To α = 1.5: 2.5/(4·0.01) = 62.5 rounds
    /// of 4 lists of 0.19596 s, 49 s.
    #[test]
    fn the_paper_s_flow_is_cut_down_in_49_s_and_released_in_10_58_s() {
        close(cut_down_time(4.0, 1.5, 0.04, 0.01, 3, 5), 48.99, 0.01);
        let (n, m) = release_rounds(0.75, 2.0, 0.05, 0.005);
        assert_eq!((n, m), (13, 5));
        close(release_time(n + m, 3, 0.04, 0.01, 3, 5), 10.58, 0.005);
    }

    /// The rounds of §5.2 are those of the decrements themselves.
    #[test]
    fn rounds_are_counted_as_they_come() {
        for (probability, beta, p_d, p_min) in
            [(0.75, 2.0, 0.05, 0.005), (0.08, 2.0, 0.05, 0.005), (0.5, 2.0, 0.04, 0.01)]
        {
            let (n, m) = release_rounds(probability, beta, p_d, p_min);
            let (mut left, mut rounds) = (probability, 0);
            while left > p_min {
                left = decreased(left, beta, p_d);
                rounds += 1;
            }
            assert_eq!(n + m, rounds, "from {probability}");
        }
    }
}
