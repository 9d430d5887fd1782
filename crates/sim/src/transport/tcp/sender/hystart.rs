//! `HyStart` of Linux, and what a sample of the round trip says in slow start.

use super::Sender;
use crate::transport::tcp::Options;

/// `HyStart` (Ha and Rhee 2011): slow start ends when the round trips of a round are longer by an
/// eighth than the least (4 … 16 ms), or its acknowledgements come in one train for half of the least, for all of it if packets are paced.
#[derive(Clone, Default, Debug)]
pub(super) struct HyStart {
    /// The round ends when this is acknowledged.
    end: u32,
    began: u64,
    /// The last acknowledgement of the train.
    last: u64,
    least: u64,
    samples: u8,
}

/// From this window on, packets; samples a round; spacing in a train, ns.
const HYSTART_WINDOW: f64 = 16.0;
const HYSTART_SAMPLES: u8 = 8;
const HYSTART_SPACING: u64 = 2_000_000;

impl HyStart {
    /// An acknowledgement in slow start: whether it is the end. `paced` packets are spread over a round
    /// trip, so that a train says something when it is as long.
    fn is_end(&mut self, now: u64, rtt: u64, min_rtt: u64, paced: bool) -> bool {
        if now - self.last <= HYSTART_SPACING {
            self.last = now;
            if now - self.began > if paced { min_rtt } else { min_rtt / 2 } {
                return true;
            }
        }
        self.least = if self.samples == 0 { rtt } else { self.least.min(rtt) };
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.least > min_rtt + (min_rtt / 8).clamp(4_000_000, 16_000_000)
    }
}

impl Sender {
    /// A sample of the round trip in slow start, and the least of all, ns.
    pub(super) fn slow_start_round(
        &mut self,
        now: u64,
        [rtt, min_rtt]: [u64; 2],
        start: &mut HyStart,
        o: &Options,
    ) {
        let over = self.una > start.end;
        if !o.rfc8312 {
            if over {
                start.end = self.end;
            }
            if self.control.on_slow_start_sample(rtt, over, false) {
                self.ssthresh = self.cwnd;
            }
            return;
        }
        if over {
            *start = HyStart { end: self.end, began: now, last: now, ..HyStart::default() };
        }
        let watched = self.control.has_hystart() && self.cwnd >= HYSTART_WINDOW;
        if start.is_end(now, rtt, min_rtt, o.pacing) && watched {
            self.ssthresh = self.cwnd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Acknowledgements a millisecond apart are a train: after half a round trip it is the end, after a
    /// whole one if they were paced.
    #[test]
    fn a_train_may_be_longer_where_packets_are_paced() {
        for (paced, end) in [(false, 51), (true, 101)] {
            let mut start = HyStart::default();
            let first = (1..200).find(|ms| start.is_end(ms * MS, 100 * MS, 100 * MS, paced));
            assert_eq!(first, Some(end));
        }
    }

    /// A ninth sample that is short is one of the round, too.
    #[test]
    fn all_samples_of_a_round_count() {
        let mut start = HyStart::default();
        let apart = 10 * MS;
        for n in 1..=8 {
            assert!(!start.is_end(n * apart, 140 * MS, 100 * MS, false));
        }
        assert!(!start.is_end(9 * apart, 101 * MS, 100 * MS, false));
        assert!(!start.is_end(10 * apart, 140 * MS, 100 * MS, false));
    }
}
