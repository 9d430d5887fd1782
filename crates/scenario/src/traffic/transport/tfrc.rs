//! TCP-friendly rate control.

use aqm::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::defaults::yes;
use crate::text::Text;

/// Keys of `tfrc`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "tfrc")]
pub struct Tfrc {
    /// Old losses count less in a long time without one (RFC 5348 §5.5).
    #[serde(default = "yes")]
    pub discounting: bool,
    /// The timeout in the equation; without it four round trips (RFC 5348 §3.1). ns-2.35 takes that of
    /// a TCP with ticks of 100 ms: 300 ms at round trips up to 150 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equation_timeout: Option<Text<Duration>>,
}
