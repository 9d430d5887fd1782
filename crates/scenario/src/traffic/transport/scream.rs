//! Self-clocked rate adaptation for multimedia.

use aqm::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Keys;
use crate::defaults::yes;
use crate::error::Complaint;
use crate::text::{Text, pair};
use crate::traffic::app::{App, AppName};
use crate::traffic::{GroupSpec, Place};

/// Keys of `scream`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "scream")]
pub struct Scream {
    /// The least rate of the encoder (TARGET_BITRATE_MIN).
    #[serde(default = "least_media")]
    pub min_rate: Text<Rate>,
    /// Its greatest rate (TARGET_BITRATE_MAX), at most 1 Gb/s.
    #[serde(default = "greatest_media")]
    pub max_rate: Text<Rate>,
    /// The rate at which it starts.
    #[serde(default = "first_media")]
    pub start_rate: Text<Rate>,
    /// Frames a second, 1 … 1000.
    #[serde(default = "frames")]
    pub frames: u32,
    /// Between these two times of the run, as `["40s", "60s"]`, no frame is made; what waits at the sender
    /// still goes. The encoder then goes on at the rate that it had.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "pair")]
    pub pause: Option<[Text<Duration>; 2]>,
    /// The delay target goes up where others fill the queue (RFC 8298 §4.1.2.3).
    #[serde(default = "yes")]
    pub compete: bool,
}

fn least_media() -> Text<Rate> {
    const RATE: Rate = Rate::new(150_000).unwrap();
    Text(RATE)
}

fn greatest_media() -> Text<Rate> {
    const RATE: Rate = Rate::new(1_500_000).unwrap();
    Text(RATE)
}

fn first_media() -> Text<Rate> {
    const RATE: Rate = Rate::new(300_000).unwrap();
    Text(RATE)
}

fn frames() -> u32 {
    25
}

impl Keys for Scream {
    const CARRIES: &'static [AppName] = &[];
    const CARRIES_ONLY: &'static str = "infinite: its encoder always has something to send";
    const IS_GREEDY: bool = false;
    const ANSWERS: bool = true;

    fn check(&self, group: &GroupSpec, _: &App, at: &Place) -> Result<(), Complaint> {
        let [least, first, greatest] =
            [self.min_rate, self.start_rate, self.max_rate].map(|rate| rate.0.bits_per_second());
        if greatest > 1_000_000_000 {
            return at.refuse("max_rate", "at most 1gbit");
        }
        if least > greatest {
            return at
                .refuse("min_rate", &format!("at most {}, which is max_rate", self.max_rate.0));
        }
        if !(least..=greatest).contains(&first) {
            let allowed = format!("{} … {}", self.min_rate.0, self.max_rate.0);
            return at.refuse("start_rate", &allowed);
        }
        if !(1..=1000).contains(&self.frames) {
            return at.refuse("frames", "1 … 1000");
        }
        if let Some([from, to]) = &self.pause {
            if from.0 >= to.0 {
                return at.refuse("pause", "two times, the second after the first");
            }
            if let Some(stop) = group.stop.filter(|stop| from.0 >= stop.0) {
                let allowed = format!("from before {} on, when the group stops", stop.0);
                return at.refuse("pause", &allowed);
            }
        }
        Ok(())
    }
}
