//! `HyStart` of Linux, and what a sample of the round trip says in slow start.

use super::Sender;
use crate::transport::tcp::Options;

/// `HyStart` (Ha and Rhee 2011): slow start ends when the round trips of a round are longer by an
/// eighth than the least (4 … 16 ms), or its acknowledgements come in one train for half of it.
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
    /// An acknowledgement in slow start: whether it is the end.
    fn is_end(&mut self, now: u64, rtt: u64, min_rtt: u64) -> bool {
        if now - self.last <= HYSTART_SPACING {
            self.last = now;
            if now - self.began > min_rtt / 2 {
                return true;
            }
        }
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
            self.least = if self.samples == 1 { rtt } else { self.least.min(rtt) };
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
        if start.is_end(now, rtt, min_rtt) && watched {
            self.ssthresh = self.cwnd;
        }
    }
}
