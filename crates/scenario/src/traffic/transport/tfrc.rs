//! TCP-friendly rate control.

use aqm::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Keys;
use crate::defaults::yes;
use crate::error::Complaint;
use crate::text::Text;
use crate::traffic::app::{App, AppName};
use crate::traffic::{GroupSpec, Place};

/// Keys of `tfrc`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "tfrc")]
pub struct Tfrc {
    /// Old losses count less in a long time without one (RFC 5348 §5.5).
    #[serde(default = "yes")]
    pub discounting: bool,
    /// The timeout in the equation; without it four round trips (RFC 5348 §3.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equation_timeout: Option<Text<Duration>>,
    /// The timeout in the equation is that of a TCP whose clock ticks this often; ns-2.35 has 100 ms.
    /// Not with `equation_timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equation_clock: Option<Text<Duration>>,
}

impl Keys for Tfrc {
    const CARRIES: &'static [AppName] = &[];
    const CARRIES_ONLY: &'static str = "infinite: tfrc always has something to send";
    const IS_GREEDY: bool = true;
    const ANSWERS: bool = true;

    fn check(&self, _: &GroupSpec, _: &App, at: &Place) -> Result<(), Complaint> {
        match self.equation_clock {
            Some(clock) if clock.0 == Duration::ZERO => at.refuse("equation_clock", "above 0"),
            Some(_) if self.equation_timeout.is_some() => {
                at.refuse("equation_clock", "without equation_timeout: either gives the timeout")
            }
            _ => Ok(()),
        }
    }
}
