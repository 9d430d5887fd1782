//! Prague: a scalable congestion control for L4S (draft-briscoe-iccrg-prague-congestion-control;
//! the requirements of RFC 9331 §4). The window gives way by the share of marks as DCTCP's does, and
//! flows with short round trips behave as if theirs were 25 ms.
//!
//! ```text
//! vrtt := max(srtt, 25 ms)
//! each acknowledgement without an echo:  window += acked/window · (srtt/vrtt)²
//! once a window of data and vrtt:        alpha += (share of marks − alpha)/16
//! an echo, once a window of data and vrtt:  window −= window · alpha/2
//! a loss:                                window/2
//! ```
//!
//! Growth goes on while an echo is answered. Before the first round trip is measured, which a handshake
//! would do, packets are paced as if it were the reference (ours): a burst of ten that is not marks itself
//! at 50 Mb/s, and ends slow start.
//!
//! The numbers are those of the authors' open implementation over UDP (L4STeam/udp_prague). It
//! begins with alpha = 0 there, which lets the first slow start run into a full queue; here it
//! begins with 1 as DCTCP's and Linux's does. The draft's faster growth after seven calm rounds and its
//! reaction to classic queues are left out.

use super::CongestionControl;
use crate::transport::tcp::Options;

/// The round trip that shorter ones are treated as, ns, if nothing else is asked for.
pub(in crate::transport::tcp) const REFERENCE_RTT: u64 = 25_000_000;
/// The gain of the average.
const GAIN: f64 = 1.0 / 16.0;

/// Prague's state.
#[derive(Clone, Debug)]
pub struct Prague {
    /// The round trip that shorter ones are treated as, ns.
    reference: u64,
    /// The smoothed share of marked packets, 0 … 1.
    alpha: f64,
    acked: u32,
    marked: u32,
    /// The observation goes on until this number is acknowledged, and a virtual round trip is over.
    window_end: u32,
    observed_since: u64,
    /// The last reduction after an echo, ns.
    reduced_at: Option<u64>,
    /// The smoothed round trip at the last acknowledgement, ns.
    srtt: u64,
    /// Between the packets of the first window, ns.
    first_gap: u64,
}

impl Prague {
    fn with_reference(reference: u64) -> Self {
        let (acked, marked, window_end, observed_since, reduced_at) = (0, 0, 0, 0, None);
        Self {
            reference,
            alpha: 1.0,
            acked,
            marked,
            window_end,
            observed_since,
            reduced_at,
            srtt: 0,
            first_gap: 0,
        }
    }

    fn virtual_rtt(&self) -> u64 {
        self.srtt.max(self.reference).max(1)
    }
}

impl CongestionControl for Prague {
    fn new(o: &Options) -> Self {
        // As fast as slow start is at that round trip.
        let first_gap = (o.reference_rtt as f64 / (2.0 * o.initial_window)) as u64;
        Self { first_gap, ..Self::with_reference(o.reference_rtt) }
    }

    fn pace(&self, srtt: u64) -> Option<u64> {
        (srtt == 0).then_some(self.first_gap)
    }

    fn grows_while_reduced(&self) -> bool {
        true
    }

    fn pacing_gain(&self) -> f64 {
        1.03
    }

    fn on_ack(&mut self, [acked, marked]: [u32; 2], [ack, end]: [u32; 2], [now, srtt]: [u64; 2]) {
        self.srtt = srtt;
        self.acked += acked;
        self.marked += marked;
        let over = now - self.observed_since >= self.virtual_rtt();
        if ack > self.window_end && self.acked > 0 && over {
            let share = f64::from(self.marked.min(self.acked)) / f64::from(self.acked);
            self.alpha += GAIN * (share - self.alpha);
            (self.acked, self.marked, self.window_end) = (0, 0, end);
            self.observed_since = now;
        }
    }

    /// Whether a virtual round trip is over since the last reduction.
    fn may_reduce(&self, now: u64) -> bool {
        self.reduced_at.is_none_or(|at| now - at >= self.virtual_rtt())
    }

    fn growth(&mut self, cwnd: f64, acked: u32, _times: [u64; 2]) -> f64 {
        let scale = self.srtt as f64 / self.virtual_rtt() as f64;
        f64::from(acked) / cwnd * scale * scale
    }

    fn growth_by_packets(&mut self, [cwnd, _]: [f64; 2], acked: u32, times: [u64; 2]) -> f64 {
        self.growth(cwnd, acked, times)
    }

    fn after_echo(&mut self, window: f64, now: u64) -> f64 {
        self.reduced_at = Some(now);
        window * (1.0 - self.alpha / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A round trip of 5 ms is a fifth of the reference: a window of acknowledgements adds 1/25 packet.
    #[test]
    fn short_round_trips_grow_as_if_they_were_25_ms() {
        for (srtt, gain) in [(5, 0.04), (25, 1.0), (80, 1.0)] {
            let mut prague = Prague::with_reference(REFERENCE_RTT);
            prague.on_ack([1, 0], [1, 10], [MS, srtt * MS]);
            let window = (0..10).map(|_| prague.growth(10.0, 1, [0; 2])).sum::<f64>();
            assert!((window - gain).abs() < 1e-12, "{srtt}: {window}");
        }
    }

    /// Without a reference a window of acknowledgements adds a packet at any round trip.
    #[test]
    fn without_a_reference_each_round_trip_counts_as_it_is() {
        for srtt in [5, 25, 80] {
            let mut prague = Prague::with_reference(0);
            prague.on_ack([1, 0], [1, 10], [MS, srtt * MS]);
            let window = (0..10).map(|_| prague.growth(10.0, 1, [0; 2])).sum::<f64>();
            assert!((window - 1.0).abs() < 1e-12, "{srtt}: {window}");
        }
    }

    /// Round trips of 5 ms: the average moves once in 25 ms, and so does the window.
    #[test]
    fn averages_and_reductions_wait_for_a_virtual_round_trip() {
        let mut prague = Prague::with_reference(REFERENCE_RTT);
        let mut alphas = Vec::new();
        for n in 1..=50u32 {
            // An acknowledgement of ten packets every 5 ms; nothing is marked.
            prague.on_ack([10, 0], [10 * n, 10 * n + 10], [u64::from(n) * 5 * MS, 5 * MS]);
            alphas.push(prague.alpha);
        }
        alphas.dedup();
        assert_eq!(alphas.len() - 1, 10, "250 ms are ten virtual round trips");
        assert!((alphas[10] - (15.0f64 / 16.0).powi(10)).abs() < 1e-12);
        assert_eq!(prague.after_echo(100.0, 300 * MS), 100.0 * (1.0 - alphas[10] / 2.0));
        assert!(!prague.may_reduce(324 * MS) && prague.may_reduce(325 * MS));
    }
}
