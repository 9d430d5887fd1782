//! Bytes to time on the wire at a rate that varies.

use std::sync::Arc;

use aqm::told::Rates;
use aqm::{Duration, Rate};

use crate::steps::Steps;

/// Later than anything happens, ns; far enough from the end of time that delays can be added.
pub const FAR: u64 = 1 << 62;

/// Work in units of 10⁻⁹ bits: what one bit per second does in a nanosecond.
type Work = u128;

/// Turns bytes into time at a rate that varies, exactly: a packet takes until the integral of the
/// rate has reached its length. Departures are whole nanoseconds, rounded down; what was missing of a
/// packet then is owed by the next one.
#[derive(Clone, Debug)]
pub struct Varying {
    rates: Arc<Steps<u64>>,
    /// Of each step: done in its round before it.
    before: Arc<[Work]>,
    /// Done in a whole round; nothing if there are no rounds.
    round: Work,
    /// Less than what is done in a nanosecond.
    owed: Work,
}

impl Varying {
    /// At rates in bit/s. A rate of 0 is an outage; what is being sent then waits. What never gets
    /// through arrives at [`FAR`].
    pub fn new(rates: Arc<Steps<u64>>) -> Self {
        let done = |sum: &mut Work, (&(from, rate), to): (&(u64, u64), u64)| {
            let before = *sum;
            *sum += Work::from(rate) * Work::from(to - from);
            Some(before)
        };
        let steps = rates.steps();
        let ends = steps.iter().skip(1).map(|step| step.0).chain([FAR]);
        let before = steps.iter().zip(ends).scan(0, done).collect();
        let round = work_of_round(&rates);
        Self { rates, before, round, owed: 0 }
    }

    /// When a packet of `len` bytes is sent that begins at `start` (ns).
    pub fn finish(&mut self, start: u64, len: impl Into<u64>) -> u64 {
        let work = Work::from(len.into()) * 8_000_000_000 + self.owed;
        let steps = self.rates.steps();
        let (step, began) = self.rates.locate(start);
        let (from, rate) = steps[step];
        let done = self.before[step] + Work::from(rate) * Work::from(start - began - from);
        let mut until = done + work;
        let mut began = Work::from(began);
        if let Some(period) = self.rates.period()
            && until > self.round
        {
            let Some(rounds) = (until - 1).checked_div(self.round) else { return FAR };
            until -= rounds * self.round;
            began = began.saturating_add(rounds.saturating_mul(period.into()));
        }
        // The work in this step is less than that, and enough together with the next step.
        let step = self.before.partition_point(|&before| before < until).saturating_sub(1);
        let (from, rate) = steps[step];
        let left = until - self.before[step];
        if work == 0 {
            return start;
        }
        let Some(takes) = left.checked_div(rate.into()) else { return FAR };
        self.owed = left % Work::from(rate);
        u64::try_from(began + Work::from(from) + takes).unwrap_or(FAR).min(FAR)
    }
}

/// Done in a whole round; nothing if there are no rounds.
fn work_of_round(rates: &Steps<u64>) -> Work {
    let Some(period) = rates.period() else { return 0 };
    let steps = rates.steps();
    let ends = steps.iter().skip(1).map(|step| step.0).chain([period]);
    steps.iter().zip(ends).map(|(&(from, rate), to)| Work::from(rate) * Work::from(to - from)).sum()
}

/// Bits that rates in bit/s carry from `from` to `to` (ns).
pub fn bits(rates: &Steps<u64>, from: u64, to: u64) -> f64 {
    let (mut step, mut began) = rates.locate(from);
    let (mut at, mut work) = (from, 0);
    while at < to {
        let end = rates.end(step, began).unwrap_or(to).min(to);
        work += Work::from(rates.steps()[step].1) * Work::from(end - at);
        at = end;
        (step, began) = rates.locate(at);
    }
    work as f64 / 1e9
}

/// The mean of rates in bit/s: over a round, or what holds at last.
pub fn mean(rates: &Steps<u64>) -> f64 {
    match rates.period() {
        Some(period) => work_of_round(rates) as f64 / period as f64,
        None => rates.steps().last().map_or(0.0, |step| step.1 as f64),
    }
}

/// The shortest time, ns, for which a rate may hold if queues hear of each new rate, since each notice takes
/// time.
pub const LEAST_TOLD: u64 = 1_000_000;

/// The last rate up to `now` (ns) that is not an outage, if there was one.
pub fn told_at(rates: &Steps<u64>, now: u64) -> Option<Rate> {
    let (step, _) = rates.locate(now);
    let before = rates.period().filter(|&period| now >= period).map(|_| rates.steps());
    let steps = before.unwrap_or_default().iter().chain(&rates.steps()[..=step]);
    steps.rev().find_map(|&(_, rate)| Rate::new(rate))
}

/// Rates in bit/s as a queue hears of them.
pub fn told(rates: &Steps<u64>) -> Rates {
    let steps = rates.steps().iter();
    Rates {
        steps: steps.map(|&(at, rate)| (Duration::from_nanos(at), Rate::new(rate))).collect(),
        period: rates.period().map(Duration::from_nanos),
    }
}

#[cfg(test)]
mod tests {
    use aqm::Rng;

    use super::*;
    use crate::transmitter::Serialiser;

    const MS: u64 = 1_000_000;

    fn varying(rows: &[(u64, u64)], repeat: bool) -> Varying {
        Varying::new(Arc::new(Steps::new(rows, repeat).unwrap()))
    }

    /// 1000 bytes begin 0.5 ms before 8 Mb/s become 16: 4000 bits go at the one and 4000 at the
    /// other rate, 0.25 ms.
    #[test]
    fn a_packet_over_a_change_takes_the_integral() {
        let mut v = varying(&[(0, 8_000_000), (MS, 16_000_000)], false);
        assert_eq!(v.finish(MS / 2, 1000u32), MS + MS / 4);
        assert_eq!(v.finish(MS + MS / 4, 1000u32), MS + 3 * MS / 4);
    }

    #[test]
    fn an_outage_is_waited_for() {
        let mut v = varying(&[(0, 8_000_000), (MS, 0), (11 * MS, 8_000_000)], false);
        assert_eq!(v.finish(MS / 2, 1000u32), 11 * MS + MS / 2);
        assert_eq!(varying(&[(0, 0), (5 * MS, 8_000_000)], false).finish(2 * MS, 1000u32), 6 * MS);
        assert_eq!(varying(&[(0, 8_000_000), (MS, 0)], false).finish(MS / 2, 1000u32), FAR);
    }

    /// Rounds of 10 ms that begin with an outage: during it the queue's last news is from the round before.
    #[test]
    fn a_queue_is_told_of_no_outage() {
        let rates = Steps::new(&[(0, 0), (5 * MS, 8_000_000), (10 * MS, 0)], true).unwrap();
        let told = [0, 6, 12, 17].map(|ms| told_at(&rates, ms * MS));
        let rate = Some(Rate::from_mbit(8));
        assert_eq!(told, [None, rate, rate, rate]);
    }

    /// One bit per round of an hour: 8000 rounds are passed over, not walked through.
    #[test]
    fn rounds_that_do_not_suffice_are_passed_over() {
        const HOUR: u64 = 3_600_000 * MS;
        let mut v = varying(&[(0, 1000), (MS, 0), (HOUR, 0)], true);
        assert_eq!(v.finish(0, 1000u32), 7999 * HOUR + MS);
        assert_eq!(v.finish(FAR / 2, 10_000_000u32), FAR);
        assert_eq!(v.finish(FAR, 1000u32), FAR);
        assert_eq!(varying(&[(0, 0), (MS, 0)], true).finish(5, 1000u32), FAR);
    }

    /// Work takes the same time in any pieces, that of the integral: 70 Mb in a round of 7 ms of 10, 0 and 20
    /// Mb/s.
    #[test]
    fn the_long_run_rate_is_exact() {
        let rows = [(0, 10_000_000), (3 * MS, 0), (5 * MS, 20_000_000), (7 * MS, 0)];
        let mut v = varying(&rows, true);
        let mut rng = Rng::new(3, 0);
        let (mut at, mut bits) = (0, 0u64);
        for _ in 0..100_000 {
            let len = 40 + rng.below(1460) as u32;
            at = v.finish(at, len);
            bits += 8 * u64::from(len);
        }
        let (rounds, rest) = (bits / 70_000, bits % 70_000);
        let of_round = if rest <= 30_000 { rest * 100 } else { 5 * MS + (rest - 30_000) * 50 };
        assert_eq!(at, rounds * 7 * MS + of_round);
        let rates = Steps::new(&rows, true).unwrap();
        assert_eq!(mean(&rates), 1e7);
        assert_eq!(super::bits(&rates, MS, 8 * MS), 70_000.0);
        assert_eq!(super::bits(&rates, 4 * MS, 6 * MS), 20_000.0);
    }

    /// A rate that does not vary gives the times of the exact serialiser, with gaps between packets
    /// and without.
    #[test]
    fn a_constant_rate_is_that_of_the_serialiser() {
        for rate in [1_000, 7_000_003, 45_000_000, 99_999_999_977] {
            let mut exact = Serialiser::new(Rate::new(rate).unwrap());
            let mut once = varying(&[(0, rate)], false);
            let mut again = varying(&[(0, rate), (12_345, rate), (777_777, 0)], true);
            let mut rng = Rng::new(rate, 0);
            let mut at = 0;
            for _ in 0..20_000 {
                at += rng.below(3) as u64 * rng.below(100_000) as u64;
                let len = 28 + rng.below(1500) as u32;
                let expected = at + exact.transmission(at, len);
                assert_eq!([once.finish(at, len), again.finish(at, len)], [expected; 2]);
                at = expected;
            }
        }
    }
}
