//! The values of results about a queue, the same in the simulator and in the gateway.

use crate::stats::QueueSummary;

/// A value in a column.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A real number.
    Real(f64),
}

/// The share of the packets that `arrived` in a window which were dropped (or marked), 0 … 1. Some had waited
/// since before the window: if more were dropped than arrived, the share is that of the packets that left the
/// queue in the window, sent or dropped.
pub fn share(part: u64, arrived: u64, left: u64) -> f64 {
    let of = if part > arrived { left.max(part) } else { arrived.max(1) };
    part as f64 / of as f64
}

/// What was measured at a queue, in the order of the columns of results, which name it.
pub fn values(s: &QueueSummary) -> Vec<Value> {
    use Value::{Count, Real};
    let (arrived, departed) = (s.counts.arrived, s.counts.departed);
    let (dropped, marked) = (s.counts.all_dropped(), s.counts.all_marked());
    let share = |part: u64| share(part, arrived.packets, departed.packets + dropped.packets);
    let mut all = [arrived, departed, dropped].map(|tally| Count(tally.packets)).to_vec();
    all.extend(s.counts.dropped.map(|of_cause| Count(of_cause.packets)));
    all.push(Count(marked.packets));
    all.extend([arrived, departed, dropped].map(|tally| Count(tally.bytes)));
    all.extend([dropped, marked].map(|part| Real(share(part.packets))));
    all.push(Real(departed.bytes as f64 * 8.0 / s.window_s));
    all.extend([1.0 - s.idle_fraction, s.idle_fraction].map(Real));
    all.push(Count(s.idle_periods));
    all.extend([s.mean_packets, s.mean_bytes].map(Real));
    all.extend(s.packets.map(Count));
    all.push(Real(s.delay_mean_s));
    all.extend(s.delay_s.map(Real));
    all
}
