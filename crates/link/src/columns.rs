//! The columns of results about a queue, the same in the simulator and in the gateway.

use aqm::Cause;

use crate::stats::QueueSummary;

/// A value in a column.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A real number.
    Real(f64),
}

/// The share of packets that were dropped, or marked, in a window, 0 … 1: of those that `arrived` in it.
/// Where that many did not arrive, since some had waited before the window, of those that left the queue in
/// it, one way or the other.
pub fn share(part: u64, arrived: u64, left: u64) -> f64 {
    let of = if part > arrived { left.max(part) } else { arrived.max(1) };
    part as f64 / of as f64
}

/// What was measured at a queue: the name of each column, with its unit at the end, and its value.
pub fn columns(s: &QueueSummary) -> Vec<(String, Value)> {
    use Value::{Count, Real};
    let (arrived, departed) = (s.counts.arrived, s.counts.departed);
    let (dropped, marked) = (s.counts.all_dropped(), s.counts.all_marked());
    let left = departed.packets + dropped.packets;
    let share = |part: u64| Real(share(part, arrived.packets, left));
    let mut all: Vec<(String, Value)> = Vec::new();
    let mut add = |name: &str, value| all.push((name.into(), value));
    add("arrivals", Count(arrived.packets));
    add("departures", Count(departed.packets));
    add("drops", Count(dropped.packets));
    for cause in Cause::ALL {
        add(&format!("drops_{}", cause.name()), Count(s.counts.dropped[cause as usize].packets));
    }
    add("marks", Count(marked.packets));
    add("arrivals_bytes", Count(arrived.bytes));
    add("departures_bytes", Count(departed.bytes));
    add("drops_bytes", Count(dropped.bytes));
    add("loss", share(dropped.packets));
    add("mark_rate", share(marked.packets));
    add("throughput_bps", Real(departed.bytes as f64 * 8.0 / s.window_s));
    add("utilisation", Real(1.0 - s.idle_fraction));
    add("idle_fraction", Real(s.idle_fraction));
    add("idle_periods", Count(s.idle_periods));
    add("queue_mean_packets", Real(s.mean_packets));
    add("queue_mean_bytes", Real(s.mean_bytes));
    let quantiles = ["p50", "p95", "p99", "max"];
    for (q, packets) in quantiles.iter().zip(s.packets) {
        add(&format!("queue_{q}_packets"), Count(packets));
    }
    add("delay_mean_s", Real(s.delay_mean_s));
    for (q, delay) in quantiles.iter().zip(s.delay_s) {
        add(&format!("delay_{q}_s"), Real(delay));
    }
    all
}

#[cfg(test)]
mod tests {
    use aqm::Counters;

    use super::*;
    use crate::stats::QueueStats;

    fn value(counters: &Counters, name: &str) -> Value {
        let all = columns(&QueueStats::new(0).summary(1, counters));
        all.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    #[test]
    fn where_nothing_arrives_nothing_is_lost() {
        let none = Counters::default();
        assert_eq!(["loss", "mark_rate"].map(|name| value(&none, name)), [Value::Real(0.0); 2]);
    }

    #[test]
    fn a_share_is_one_at_most_whatever_waited_before_the_window() {
        let mut counters = Counters::default();
        counters.arrived.count(1000);
        (0..72).for_each(|_| counters.dropped[Cause::Early as usize].count(1000));
        (0..18).for_each(|_| counters.marked[Cause::Early as usize].count(1000));
        (0..8).for_each(|_| counters.departed.count(1000));
        let found = ["loss", "mark_rate"].map(|name| value(&counters, name));
        assert_eq!(found, [Value::Real(72.0 / 80.0), Value::Real(18.0 / 80.0)]);
    }

    #[test]
    fn drops_stand_at_their_cause() {
        let mut counters = Counters::default();
        for (cause, drops) in Cause::ALL.into_iter().zip(1..) {
            (0..drops).for_each(|_| counters.dropped[cause as usize].count(1000));
        }
        for (cause, drops) in Cause::ALL.into_iter().zip(1..) {
            assert_eq!(value(&counters, &format!("drops_{}", cause.name())), Value::Count(drops));
        }
    }
}
