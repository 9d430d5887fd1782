//! Defaults that several keys have.

use aqm::Duration;

use crate::text::Text;

pub(crate) fn one() -> u32 {
    1
}
pub(crate) fn yes() -> bool {
    true
}
pub(crate) fn zero() -> Text<Duration> {
    Text(Duration::ZERO)
}
