//! `HyStart` of Linux, and what a sample of the round trip says in slow start.

use super::{Core, Rack};
use crate::transport::tcp::control::RoundTrip;
use crate::transport::tcp::options::{Options, Pacing};

/// `HyStart` (Ha and Rhee 2011): slow start ends when the round trips of a round are longer by an
/// eighth than the least (4 … 16 ms), or its acknowledgements come in one train for half of the least (and of a
/// millisecond), for all of it if packets are paced.
///
/// Below a window of sixteen packets nothing is noted: neither trains nor samples that begin there count.
/// Once an end was found, none is looked for until a timeout; the least round trip, too, is measured anew
/// from a timeout on.
#[derive(Clone, Default, Debug)]
pub(super) struct HyStart {
    /// The round ends when this is acknowledged.
    end: u32,
    began: u64,
    /// The last acknowledgement of the train.
    last: u64,
    least: u64,
    samples: u8,
    /// The end was found.
    found: bool,
    /// The least since a timeout, ns; 0: there was none.
    floor: u64,
}

/// A round trip measured at `now`, and the least of all, ns.
#[derive(Clone, Copy)]
struct Sample {
    now: u64,
    rtt: u64,
    min_rtt: u64,
}

/// No sample has come after a timeout.
const UNKNOWN: u64 = u64::MAX;

/// From this window on, packets; samples a round; spacing in a train, ns.
const HYSTART_WINDOW: f64 = 16.0;
const HYSTART_SAMPLES: u8 = 8;
const HYSTART_SPACING: u64 = 2_000_000;
/// How much later the acknowledgements of a burst may come, ns.
const HYSTART_ACK_DELAY: u64 = 1_000_000;

impl HyStart {
    /// A timeout: an end may be found again, and the least round trip is measured anew.
    pub(super) fn forget(&mut self) {
        (self.found, self.floor) = (false, UNKNOWN);
    }

    /// An acknowledgement in slow start, with a window of `cwnd`: whether the end is found by it.
    fn finds(&mut self, sample: Sample, cwnd: f64, paced: bool) -> bool {
        let least = if self.floor == 0 { sample.min_rtt } else { self.floor.min(sample.rtt) };
        if self.floor > 0 {
            self.floor = least;
        }
        if self.found || cwnd < HYSTART_WINDOW {
            return false;
        }
        self.found = self.is_end(Sample { min_rtt: least, ..sample }, paced);
        self.found
    }

    /// An acknowledgement in slow start: whether it is the end. `paced` packets are spread over a round
    /// trip, so that a train says something when it is as long.
    fn is_end(&mut self, Sample { now, rtt, min_rtt }: Sample, paced: bool) -> bool {
        if now - self.last <= HYSTART_SPACING {
            self.last = now;
            let long = min_rtt + HYSTART_ACK_DELAY;
            if now - self.began > if paced { long } else { long / 2 } {
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

impl Rack {
    /// A sample of the round trip in slow start, ns.
    pub(super) fn follow_slow_start(&mut self, core: &mut Core, now: u64, rtt: u64, o: &Options) {
        let start = &mut self.start;
        let over = core.una > start.end;
        let ends = if !o.control.rfc8312 {
            if over {
                start.end = core.end;
            }
            core.control.ends_slow_start(RoundTrip { rtt, begins: over, only: false })
        } else {
            let begins = over && (!o.control.old_rounds || core.cwnd >= HYSTART_WINDOW);
            if begins && !start.found {
                let HyStart { floor, .. } = *start;
                *start =
                    HyStart { end: core.end, began: now, last: now, floor, ..HyStart::default() };
            }
            let sample = Sample { now, rtt, min_rtt: self.min_rtt };
            let paced = o.pacing == Pacing::Paced;
            core.control.has_slow_start() && start.finds(sample, core.cwnd, paced)
        };
        if ends {
            core.ssthresh = core.cwnd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(now: u64, rtt: u64, min_rtt: u64) -> Sample {
        Sample { now, rtt, min_rtt }
    }

    /// Acknowledgements a millisecond apart are a train: after half a round trip and a millisecond it is the end,
    /// after all of it if they were paced.
    #[test]
    fn a_train_may_be_longer_where_packets_are_paced() {
        for (paced, end) in [(false, 51), (true, 102)] {
            let mut start = HyStart::default();
            let first = (1..200).find(|ms| start.is_end(at(ms * MS, 100 * MS, 100 * MS), paced));
            assert_eq!(first, Some(end));
        }
    }

    /// A ninth sample that is short is one of the round, too.
    #[test]
    fn all_samples_of_a_round_count() {
        let mut start = HyStart::default();
        let apart = 10 * MS;
        for n in 1..=8 {
            assert!(!start.is_end(at(n * apart, 140 * MS, 100 * MS), false));
        }
        assert!(!start.is_end(at(9 * apart, 101 * MS, 100 * MS), false));
        assert!(!start.is_end(at(10 * apart, 140 * MS, 100 * MS), false));
    }
    /// A window of ten, whose acknowledgements come 1.2 ms apart: what came below sixteen is of no train, and the one
    /// at sixteen is too late to belong to what was before. Of a window of twenty all belong together.
    #[test]
    fn no_train_begins_below_a_window_of_sixteen() {
        for (first, end) in [(10, None), (20, Some(9))] {
            let mut start = HyStart::default();
            let found = (1..=10).find(|&n| {
                let cwnd = f64::from(first + n as u32 - 1);
                start.finds(at(n * 6 * MS / 5, 20 * MS, 20 * MS), cwnd, false)
            });
            assert_eq!(found, end, "{first}");
        }
    }

    /// Behind a timeout round trips of 60 ms are no longer than the least, and an end may be found again.
    #[test]
    fn a_timeout_begins_the_least_round_trip_anew() {
        let mut start = HyStart::default();
        let round = |start: &mut HyStart, rtt: u64| {
            (start.began, start.last, start.samples) = (0, 0, 0);
            (1..=10).find(|n| start.finds(at(n * 10 * MS, rtt * MS, 20 * MS), 30.0, false))
        };
        assert_eq!((round(&mut start, 60), round(&mut start, 90)), (Some(9), None));
        start.forget();
        assert_eq!((round(&mut start, 60), round(&mut start, 60)), (None, None));
        assert_eq!(round(&mut start, 90), Some(9));
    }
}
