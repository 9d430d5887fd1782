//! A constant window.

use aqm::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Keys, SHORTEST_RTO, second};
use crate::error::Complaint;
use crate::limits::{LARGEST_WINDOW, LONGEST};
use crate::text::Text;
use crate::traffic::app::{App, AppName};
use crate::traffic::{GroupSpec, Place};

/// Keys of `window`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "window")]
pub struct Window {
    /// Packets in flight, 1 … 1 048 575.
    pub window: u32,
    /// After this time without an answer, all packets in flight are taken for lost and one is sent. The
    /// rest of the window follows its answer.
    #[serde(default = "second")]
    pub timeout: Text<Duration>,
}

impl Keys for Window {
    const CARRIES: &'static [AppName] = &[];
    const CARRIES_ONLY: &'static str = "infinite: a window always has something to send";
    const IS_GREEDY: bool = true;
    const ANSWERS: bool = true;

    fn check(&self, _: &GroupSpec, _: &App, at: &Place) -> Result<(), Complaint> {
        if !(1..=LARGEST_WINDOW).contains(&self.window) {
            return at.refuse("window", &format!("1 … {LARGEST_WINDOW}"));
        }
        if !(SHORTEST_RTO..=LONGEST).contains(&self.timeout.0) {
            return at.refuse("timeout", &format!("{SHORTEST_RTO} … {LONGEST}"));
        }
        Ok(())
    }
}
