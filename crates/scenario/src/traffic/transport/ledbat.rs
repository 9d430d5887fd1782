//! Low extra delay background transport.

use aqm::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Keys;
use crate::error::Complaint;
use crate::text::Text;
use crate::traffic::app::{App, AppName};
use crate::traffic::{GroupSpec, Place};

/// Keys of `ledbat`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ledbat")]
pub struct Ledbat {
    /// How long packets are to wait in queues (TARGET), 1 µs … 100 ms (RFC 6817 §2.5).
    #[serde(default = "target")]
    pub target: Text<Duration>,
    /// Packets by which the window grows in a round trip without a queue (GAIN), above 0 … 1000. By RFC 6817
    /// §2.5 it must be 1 or less, which is no faster than TCP; RFC 7928 §5.4 tests queues with 10.
    #[serde(default = "gain")]
    pub gain: f64,
}

const LONGEST_TARGET: Duration = Duration::from_millis(100);
const SHORTEST_TARGET: Duration = Duration::from_micros(1);

fn target() -> Text<Duration> {
    Text(LONGEST_TARGET)
}

fn gain() -> f64 {
    1.0
}

impl Keys for Ledbat {
    const CARRIES: &'static [AppName] = &[];
    const CARRIES_ONLY: &'static str = "infinite: ledbat always has something to send";
    // Giving way is what it is for: what it gets is not to be compared with what others get.
    const IS_GREEDY: bool = false;
    const ANSWERS: bool = true;

    fn check(&self, _: &GroupSpec, _: &App, at: &Place) -> Result<(), Complaint> {
        if !(SHORTEST_TARGET..=LONGEST_TARGET).contains(&self.target.0) {
            return at.refuse("target", &format!("{SHORTEST_TARGET} … {LONGEST_TARGET}"));
        }
        if !(self.gain > 0.0 && self.gain <= 1000.0) {
            return at.refuse("gain", "above 0 … 1000");
        }
        Ok(())
    }
}
