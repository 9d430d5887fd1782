//! Prague: a scalable congestion control for L4S (draft-briscoe-iccrg-prague-congestion-control;
//! the requirements of RFC 9331 §4). The window gives way by the share of marks as DCTCP's does, and
//! flows with short round trips behave as if theirs were 25 ms.
//!
//! ```text
//! vrtt := max(srtt, 25 ms)
//! each packet acknowledged without a mark:  window += 1/window · (srtt/vrtt)²
//! once a window of data and vrtt:           alpha += (share of marks − alpha)/16
//! an echo, once a window of data and vrtt:  window −= window · alpha/2, to 100 kbit/s at least
//! a loss:                                   window/2
//! paced:                                    window/srtt, 3 % faster in the first half of a vrtt, then slower
//! ```
//!
//! The window has fractions, below a packet as well. The window paces the packets. So that it does not hold
//! back packets that pacing lets go, 3 % and a packet more may be under way (without RACK a packet), and two
//! packets at least. Growth goes on while an echo is answered. Before the first round trip is measured, which
//! a handshake would do, packets are paced as for the reference of 25 ms (ours): a burst of ten that is not
//! marks itself at 50 Mb/s, and ends slow start.
//!
//! With `reference_after` vrtt is srtt for so many round trips, and an echo that comes too early for a reduction
//! keeps the next away for a window of data, as in Linux's Prague of 2024, which does not count round trips in slow
//! start.
//!
//! The numbers are those of the authors' open implementation over UDP (L4STeam/udp_prague). It
//! begins with alpha = 0 there, which lets the first slow start run into a full queue; here it
//! begins with 1 as DCTCP's and Linux's does. Left out: the draft's faster growth after seven calm rounds, its
//! reaction to classic queues, packets that become shorter below two in a virtual round trip, and that the rate and
//! not the window stays where the round trip changes at less than a packet or 2 ms.

use super::{AckInfo, CongestionControl, Growth, Pace, Times};
use crate::transport::tcp::options::{Control, Options};

/// The gain of the average.
const GAIN: f64 = 1.0 / 16.0;
/// By how much it sends faster, and then slower.
const OFFSET: f64 = 1.03;

/// Prague's state.
#[derive(Clone, Debug)]
pub struct Prague {
    /// The round trip that shorter ones are treated as, ns.
    reference: u64,
    /// But so many round trips before count as they are.
    reference_after: u32,
    /// Round trips observed until then.
    rounds: u32,
    /// The smoothed share of marked packets, 0 … 1.
    alpha: f64,
    acked: u32,
    marked: u32,
    /// The observation goes on until this number is acknowledged, and a virtual round trip is over.
    window_end: u32,
    observed_since: u64,
    /// The last reduction after an echo, ns.
    reduced_at: Option<u64>,
    /// What was acknowledged last, and sent last.
    at: (u32, u32),
    /// No echo is answered until this number is acknowledged.
    deaf_until: u32,
    /// The smoothed round trip at the last acknowledgement, ns.
    srtt: u64,
    /// Between the packets of the first window, ns.
    first_gap: u64,
    /// What marks leave, packets a ns.
    least_rate: f64,
}

impl Prague {
    fn with_reference(reference: u64) -> Self {
        Self {
            reference,
            reference_after: 0,
            rounds: 0,
            alpha: 1.0,
            acked: 0,
            marked: 0,
            window_end: 0,
            observed_since: 0,
            reduced_at: None,
            at: (0, 0),
            deaf_until: 0,
            srtt: 0,
            first_gap: 0,
            least_rate: 0.0,
        }
    }

    fn virtual_rtt(&self) -> u64 {
        let reference = if self.rounds < self.reference_after { 0 } else { self.reference };
        self.srtt.max(reference).max(1)
    }
}

impl CongestionControl for Prague {
    fn new(o: &Options) -> Self {
        // As fast as slow start is at that round trip.
        let first_gap = (o.control.reference_rtt as f64 / (2.0 * o.window.initial)) as u64;
        let Control { least_rate, reference_after, .. } = o.control;
        Self {
            first_gap,
            least_rate,
            reference_after,
            ..Self::with_reference(o.control.reference_rtt)
        }
    }

    fn pace(&self, times: Times) -> Pace {
        if times.srtt == 0 {
            return Pace::Gap(self.first_gap);
        }
        let first_half = times.now - self.observed_since < self.virtual_rtt() / 2;
        Pace::Gain(if first_half { OFFSET } else { 1.0 / OFFSET })
    }

    fn grows_while_reduced(&self) -> bool {
        true
    }

    fn on_ack(&mut self, &AckInfo { acked, marked, ack, end, times }: &AckInfo) {
        self.srtt = times.srtt;
        self.at = (ack, end);
        self.acked += acked;
        self.marked += marked;
        let over = times.now - self.observed_since >= self.virtual_rtt();
        if ack > self.window_end && self.acked > 0 && over {
            let share = f64::from(self.marked.min(self.acked)) / f64::from(self.acked);
            self.alpha += GAIN * (share - self.alpha);
            (self.acked, self.marked, self.window_end) = (0, 0, end);
            self.observed_since = times.now;
            self.rounds = self.reference_after.min(self.rounds + 1);
        }
    }

    fn growth(&mut self, &Growth { cwnd, acked, .. }: &Growth) -> f64 {
        let scale = self.srtt as f64 / self.virtual_rtt() as f64;
        f64::from(acked) / cwnd * scale * scale
    }

    /// Once a virtual round trip.
    fn after_echo(&mut self, window: f64, now: u64) -> Option<f64> {
        let (ack, end) = self.at;
        if self.reference_after > 0 && ack <= self.deaf_until && self.reduced_at.is_some() {
            return None;
        }
        self.deaf_until = end;
        if self.reduced_at.is_some_and(|at| now - at < self.virtual_rtt()) {
            return None;
        }
        self.reduced_at = Some(now);
        let least = self.least_rate * self.srtt as f64;
        Some((window * (1.0 - self.alpha / 2.0)).max(least.min(window)))
    }

    fn alpha(&self) -> Option<f64> {
        Some(self.alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::tcp::options::REFERENCE_RTT;

    const MS: u64 = 1_000_000;
    const OF_TEN: Growth = Growth {
        cwnd: 10.0,
        whole: 10.0,
        acked: 1,
        counted: 1.0,
        times: Times { now: 0, srtt: 0 },
    };

    /// The acknowledgement of `acked` packets up to `ack`, with ten under way.
    fn ten(acked: u32, ack: u32, times: Times) -> AckInfo {
        AckInfo { acked, marked: 0, ack, end: ack + 10, times }
    }

    /// A round trip of 5 ms is a fifth of the reference: a window of acknowledgements adds 1/25 packet.
    #[test]
    fn short_round_trips_grow_as_if_they_were_25_ms() {
        for (srtt, gain) in [(5, 0.04), (25, 1.0), (80, 1.0)] {
            let mut prague = Prague::with_reference(REFERENCE_RTT);
            prague.on_ack(&ten(1, 1, Times { now: MS, srtt: srtt * MS }));
            let window = (0..10).map(|_| prague.growth(&OF_TEN)).sum::<f64>();
            assert!((window - gain).abs() < 1e-12, "{srtt}: {window}");
        }
    }

    /// Without a reference a window of acknowledgements adds a packet at any round trip.
    #[test]
    fn without_a_reference_each_round_trip_counts_as_it_is() {
        for srtt in [5, 25, 80] {
            let mut prague = Prague::with_reference(0);
            prague.on_ack(&ten(1, 1, Times { now: MS, srtt: srtt * MS }));
            let window = (0..10).map(|_| prague.growth(&OF_TEN)).sum::<f64>();
            assert!((window - 1.0).abs() < 1e-12, "{srtt}: {window}");
        }
    }

    /// Two round trips of 5 ms count as they are, then the window grows as at 25 ms. Of marks all the time one is heard
    /// every 10 ms, once what was under way is acknowledged; that after 20 ms comes too early, that after 30 is answered.
    #[test]
    fn a_reference_may_hold_from_a_round_trip_on() {
        let mut prague = Prague { reference_after: 2, ..Prague::with_reference(REFERENCE_RTT) };
        let (mut gains, mut answered) = (Vec::new(), Vec::new());
        for n in 1..=17u32 {
            let now = u64::from(n) * 5 * MS;
            prague.on_ack(&ten(10, 10 * n, Times { now, srtt: 5 * MS }));
            gains.push(10.0 * prague.growth(&OF_TEN));
            if prague.after_echo(100.0, now + MS).is_some() {
                answered.push(n);
            }
        }
        assert_eq!(gains[0], 1.0);
        assert!(gains[2..].iter().all(|gain| (gain - 0.04).abs() < 1e-12), "{gains:?}");
        assert_eq!(answered, [1, 7, 13]);
    }

    /// Round trips of 5 ms: the average moves once in 25 ms, and so does the window.
    #[test]
    fn averages_and_reductions_wait_for_a_virtual_round_trip() {
        let mut prague = Prague::with_reference(REFERENCE_RTT);
        let mut alphas = Vec::new();
        for n in 1..=50u32 {
            // An acknowledgement of ten packets every 5 ms; nothing is marked.
            let times = Times { now: u64::from(n) * 5 * MS, srtt: 5 * MS };
            prague.on_ack(&ten(10, 10 * n, times));
            alphas.push(prague.alpha);
        }
        alphas.dedup();
        assert_eq!(alphas.len() - 1, 10, "250 ms are ten virtual round trips");
        assert!((alphas[10] - (15.0f64 / 16.0).powi(10)).abs() < 1e-12);
        let left = 100.0 * (1.0 - alphas[10] / 2.0);
        let echoes = [300, 324, 325].map(|ms| prague.after_echo(100.0, ms * MS));
        assert_eq!(echoes, [Some(left), None, Some(left)]);
    }
}
