//! What every rate and every time of a scenario has to keep to.

use aqm::Duration;

/// The rates in bit/s that a link may have: times of packets stay within what is counted.
pub(crate) const RATES: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000_000;
/// The longest time that a link, a timer or an acknowledgement may take.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);
/// The most packets that a window may have: the numbers of SACK blocks fit in 20 bits.
pub const LARGEST_WINDOW: u32 = (1 << 20) - 1;
/// Samples of a series that fit in memory.
pub(crate) const MAX_SAMPLES: u64 = 10_000_000;

/// Nothing can happen from this time on, ns: an event's key has room for its time beside the number of its
/// source, one of so many links or flows, and two bits more for links.
pub fn horizon(links: u64, flows: u64) -> u64 {
    let beside = |sources: u64| sources.next_power_of_two().trailing_zeros().max(1);
    // All flows together are one more source beside the links.
    u64::MAX >> (beside(links + 1) + 2).max(beside(flows))
}
