//! How a link of a scenario varies over time, and what its wire does to packets.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use aqm::units::TextError;
use aqm::{Duration, Framing, Rate};
use link::impair::{Loss, probability};
use link::{DecisionHash, Steps};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::arrivals::{self, Files};
use crate::course::{self, Dimension, Model, RATE};
use crate::error::Complaint;
use crate::limits::LONGEST;
use crate::text::{Quantity, Text, pairs};

/// Values over time: from one of a file, steps, or a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Course {
    /// A file: CSV, TOML, or mahimahi's lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Pairs of a time and a value: `[["0s", "10mbit"], ["5s", "2mbit"], ["20s", "2mbit"]]`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "pairs")]
    pub steps: Option<Vec<(String, String)>>,
    /// A model of a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// Of a model: the mean rate; the link's if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Text<Rate>>,
    /// Of a model: the length of a round; 60s if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Text<Duration>>,
    /// Of a model: its seed; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the trace repeats, with its last time as its end; else the last value holds.
    #[serde(default = "crate::defaults::yes")]
    pub repeat: bool,
    /// Sixteen hexadecimal digits over what the file says. A run fails if it says something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// As a course is written: the name of a file alone will do.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes what is written")]
pub(crate) enum Written {
    /// A file.
    File(String),
    /// More than that.
    Course(Course),
}

/// Reads a course, or the name of its file alone.
pub(crate) fn written<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Course>, D::Error> {
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Course;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the name of a file, or a table with file, steps or model")
        }
        fn visit_str<E: de::Error>(self, file: &str) -> Result<Course, E> {
            Ok(Course::of_file(file, true))
        }
        fn visit_map<M: de::MapAccess<'de>>(self, map: M) -> Result<Course, M::Error> {
            Course::deserialize(de::value::MapAccessDeserializer::new(map))
        }
    }
    from.deserialize_any(Visitor).map(Some)
}

impl Course {
    /// What a file says.
    pub fn of_file(file: &str, repeat: bool) -> Self {
        Self {
            file: Some(file.into()),
            steps: None,
            model: None,
            mean: None,
            length: None,
            seed: None,
            repeat,
            digest: None,
        }
    }

    pub(crate) fn steps<T: Copy>(
        &mut self,
        kind: &Dimension<T>,
        word: fn(T) -> u64,
        key: &str,
        files: &mut dyn Files,
    ) -> Result<Arc<Steps<T>>, Complaint> {
        let steps = match (&self.file, &self.steps) {
            (Some(file), None) => {
                let wrong = |e| Complaint::wrong(format!("{key}.file"), e);
                let arrivals::Text { text, file } = files.text(file).map_err(wrong)?;
                let steps = course::read(kind, &text, self.repeat);
                let steps = steps.map_err(|e| wrong(format!("{file}: {e}")))?;
                self.file = Some(file);
                self.check_digest(&digest(&steps, word), key)?;
                steps
            }
            (None, Some(steps)) => course::course(kind, steps, self.repeat)
                .map_err(|e| Complaint::wrong(format!("{key}.steps"), e))?,
            _ => return Err(Complaint::new(key, "one of file, steps or, of a rate, model")),
        };
        Ok(Arc::new(steps))
    }

    fn check_digest(&mut self, digest: &str, key: &str) -> Result<(), Complaint> {
        if self.digest.as_ref().is_some_and(|known| known != digest) {
            let file = self.file.as_deref().unwrap_or_default();
            return Err(Complaint::new(
                format!("{key}.digest"),
                format!("{digest}: that of {file}"),
            )
            .hint("the file is not the one that this was made from"));
        }
        self.digest = Some(digest.into());
        Ok(())
    }

    pub(crate) fn rates(
        &mut self,
        mean: Rate,
        key: &str,
        files: &mut dyn Files,
    ) -> Result<Arc<Steps<u64>>, Complaint> {
        let of_model = self.mean.is_some() || self.length.is_some() || self.seed.is_some();
        let Some(model) = self.model else {
            if of_model {
                return Err(Complaint::new(key, "mean, length and seed beside a model alone"));
            }
            return self.steps(&RATE, |rate| rate, key, files);
        };
        if self.file.is_some() || self.steps.is_some() || !self.repeat {
            return Err(Complaint::new(key, "beside a model mean, length and seed; it repeats"));
        }
        let mean = self.mean.get_or_insert(Text(mean)).0;
        let length = self.length.get_or_insert(Text(Duration::from_secs(60))).0;
        if !(Duration::from_millis(100)..=LONGEST).contains(&length) {
            return Err(Complaint::new(format!("{key}.length"), format!("100ms … {LONGEST}")));
        }
        Ok(Arc::new(model.make(mean, length, *self.seed.get_or_insert(1))))
    }
}

/// A fingerprint of what a course says.
fn digest<T: Copy>(steps: &Steps<T>, word: fn(T) -> u64) -> String {
    let mut hash = DecisionHash::default();
    for (at, value) in steps.rows() {
        hash.departure(at, 0, (word(value) >> 32) as u32);
        hash.departure(at, 1, word(value) as u32);
    }
    hash.departure(0, 2, u32::from(steps.period().is_some()));
    hash.to_string()
}

/// A probability, written as text.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Probability(pub f64);

impl FromStr for Probability {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        probability(text).map(Self)
    }
}

impl Display for Probability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Quantity for Probability {
    const NAME: &'static str = "Probability";
    const ABOUT: &'static str = "a probability: 0.01, 1%";
    const PATTERN: &'static str = r"^\d*\.?\d+(e-?\d+)? ?%?$";
}

impl Quantity for Loss {
    const NAME: &'static str = "Loss";
    const ABOUT: &'static str = "a probability of loss, 1%, or bursts: gemodel 1% 25% 100% 0% (to bad, to good, lost while bad, lost while good)";
    const PATTERN: &'static str = r"^(gemodel[ ,])?[0-9.e%, -]+$";
}

impl Quantity for Framing {
    const NAME: &'static str = "Framing";
    const ABOUT: &'static str =
        "framing overhead in words of tc cake: pppoe-ptm, docsis, overhead 44 mpu 64 atm";
    const PATTERN: &'static str = r"^[a-z0-9, -]+$";
}
