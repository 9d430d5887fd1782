//! What every rate and every time of a scenario has to keep to.

use aqm::Duration;

/// The rates in bit/s that a link may have: times of packets stay within what is counted.
pub(crate) const RATES: std::ops::RangeInclusive<u64> = 1_000..=100_000_000_000_000;
/// The longest time that a link, a timer or an acknowledgement may take.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);
