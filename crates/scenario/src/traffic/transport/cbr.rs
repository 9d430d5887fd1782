//! Datagrams at a constant rate.

use aqm::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Keys;
use crate::error::Complaint;
use crate::text::{Text, pairs};
use crate::traffic::app::{App, AppName};
use crate::traffic::{GroupSpec, Place};

/// Keys of `cbr`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "cbr")]
pub struct Cbr {
    /// The rate; with `periodic` that of an on period.
    pub rate: Text<Rate>,
    /// Other rates from given times of the run on, as `[["50s", "4mbit"], ["250s", "1mbit"]]`; the gap
    /// that has begun is not cut short.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "pairs")]
    pub rates: Vec<(Text<Duration>, Text<Rate>)>,
    /// How the gaps between packets are spread about their mean.
    #[serde(default = "constant")]
    pub gaps: GapsName,
    /// With `gaps = "uniform"`: half the width, as a share of the mean, 0 … 1.
    #[serde(default)]
    pub jitter: f64,
    /// Whether the far end sends each datagram back at once, as for a ping.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub echo: bool,
}

/// How the gaps of a datagram source are spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GapsName {
    /// All the same.
    Constant,
    /// Uniform about the mean, as wide as `jitter` says.
    Uniform,
    /// Exponential: a Poisson process.
    Poisson,
}

fn constant() -> GapsName {
    GapsName::Constant
}

impl Keys for Cbr {
    const CARRIES: &'static [AppName] = &[AppName::Periodic];
    const CARRIES_ONLY: &'static str = "infinite or periodic: cbr sends whatever happens";
    const IS_GREEDY: bool = false;
    const ANSWERS: bool = false;

    fn check(&self, group: &GroupSpec, _: &App, at: &Place) -> Result<(), Complaint> {
        if !(0.0..=1.0).contains(&self.jitter) {
            return at.refuse("jitter", "0 … 1");
        }
        if self.jitter > 0.0 && self.gaps != GapsName::Uniform {
            return at.refuse("jitter", "0: it is the width of gaps = \"uniform\"");
        }
        if self.jitter == 0.0 && self.gaps == GapsName::Uniform {
            let complaint = Complaint::new(at.key("gaps"), "with a jitter above 0");
            return Err(complaint.hint("uniform gaps without a width are constant"));
        }
        if !self.rates.is_sorted_by(|a, b| a.0.0 < b.0.0) {
            return at.refuse("rates", "pairs of a time and a rate, times ascending");
        }
        let most = u64::from(group.packet_bytes().unwrap_or(u16::MAX)) * 8_000_000_000;
        let rates = [&self.rate].into_iter().chain(self.rates.iter().map(|(_, rate)| rate));
        if rates.map(|rate| rate.0.bits_per_second()).max() > Some(most) {
            let most = Rate::new(most).map(|rate| format!("at most {rate}, a packet a nanosecond"));
            return at.refuse("rate", &most.unwrap_or_default());
        }
        if let (Some(stop), Some((last, _))) = (group.stop, self.rates.last())
            && last.0 >= stop.0
        {
            return at.refuse("rates", &format!("times before {}, when the group stops", stop.0));
        }
        Ok(())
    }
}
