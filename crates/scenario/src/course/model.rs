//! Courses of rates that are made.

use aqm::{Duration, Rate, Rng};
use link::Steps;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MS;
use crate::limits::RATES;

/// A course of rates that is made: what is typical of a kind of link, not a measurement of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// A Markov chain over eight rates, each 1.6 times the one before, and an outage: each 100 ms it
    /// goes a step up (0.25), a step down (0.25) or stays; from the lowest a step down is the outage.
    Cellular,
    /// A new rate each 15 s, 0.5 … 1.5 of the mean, with 100 ms of outage at each handover.
    Leo,
    /// Bursts of 1 … 8 ms at one rate and silence of 1 ms and more, exponential with mean 6 ms.
    Wifi,
    /// Away and back: the rate falls with time t as (1 + 10 t / half the length)⁻², and rises again
    /// as it fell; in steps of 100 ms.
    Fade,
    /// Others share the link: each second one more comes with probability 1/4, and each goes with 1/8. With n
    /// of them the rate is 2 / (1 + n) of that without any, at most all of it.
    Shared,
}

impl Model {
    /// All of them.
    pub(super) const ALL: [Self; 5] =
        [Self::Cellular, Self::Leo, Self::Wifi, Self::Fade, Self::Shared];

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cellular => "cellular",
            Self::Leo => "leo",
            Self::Wifi => "wifi",
            Self::Fade => "fade",
            Self::Shared => "shared",
        }
    }

    /// Rates (bit/s) with a mean of `mean` over a round of `length`, 100 ms or more, the same on
    /// every machine.
    pub fn make(self, mean: Rate, length: Duration, seed: u64) -> Steps<u64> {
        let end = length.as_nanos().max(100 * MS);
        let mut rows = scaled(self.weights(end, seed), mean, end);
        if rows.iter().all(|row| row.1 == 0) {
            rows[0].1 = mean.bits_per_second().clamp(*RATES.start(), *RATES.end());
        }
        rows.push((end, 0));
        Steps::new(&rows, true).unwrap_or_else(|| Steps::constant(mean.bits_per_second()))
    }

    /// The steps of a round of `end` (ns), their rates in a unit of the model's own.
    fn weights(self, end: u64, seed: u64) -> Vec<(u64, u64)> {
        let mut rng = Rng::new(seed, 0x30 << 56 | self as u64);
        let mut weights: Vec<(u64, u64)> = Vec::new();
        let (mut at, mut level) = (0, if self == Self::Shared { 2 } else { 5usize });
        while at < end {
            let (lasts, weight) = match self {
                Self::Cellular => {
                    level = match rng.below(4) {
                        0 => (level + 1).min(8),
                        1 => level.saturating_sub(1),
                        _ => level,
                    };
                    // 1.6 = 8/5, to whole numbers.
                    let weight = 8u64.pow(level as u32) * 5u64.pow(8 - level as u32);
                    (100 * MS, if level == 0 { 0 } else { weight })
                }
                Self::Leo => {
                    weights.push((at, 0));
                    at += 100 * MS;
                    (14_900 * MS, 500_000 + rng.below(1_000_001) as u64)
                }
                Self::Wifi => {
                    let burst = MS + rng.below(7_000_001) as u64;
                    weights.push((at, 1_000_000));
                    at += burst;
                    let silence = -libm::log(1.0 - rng.uniform()) * 5.0;
                    (MS + (silence * MS as f64) as u64, 0)
                }
                Self::Shared => {
                    level -= (0..level).filter(|_| rng.below(8) == 0).count();
                    level += usize::from(rng.below(4) == 0);
                    (1000 * MS, 2_000_000 / (1 + level.max(1) as u64))
                }
                Self::Fade => {
                    let half = end as f64 / 2.0;
                    let away = half - libm::fabs(half - at as f64);
                    (100 * MS, (1e12 * libm::pow(1.0 + 10.0 * away / half, -2.0)) as u64)
                }
            };
            if at < end {
                weights.push((at, weight));
            }
            at += lasts;
        }
        weights.retain(|step| step.0 < end);
        weights.dedup_by(|next, step| next.1 == step.1);
        weights
    }
}

/// The steps of `weights` with the same proportions and a mean of `mean` over a round of `end` (ns).
fn scaled(weights: Vec<(u64, u64)>, mean: Rate, end: u64) -> Vec<(u64, u64)> {
    let ends = weights.iter().skip(1).map(|step| step.0).chain([end]);
    let done: u128 = weights
        .iter()
        .zip(ends)
        .map(|(&(from, weight), to)| u128::from(weight) * u128::from(to - from))
        .sum();
    // Below 1 kbit/s there is nothing to speak of, and a packet would take minutes.
    let scale = |weight: u64| {
        let rate =
            u128::from(weight) * u128::from(mean.bits_per_second()) * u128::from(end) / done.max(1);
        if rate < 1000 { 0 } else { u64::try_from(rate).unwrap_or(u64::MAX).min(*RATES.end()) }
    };
    weights.into_iter().map(|(at, weight)| (at, scale(weight))).collect()
}
