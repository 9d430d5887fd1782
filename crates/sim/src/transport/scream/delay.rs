//! The queueing delay: its base, its trend, and the target that it is held against.

use super::seconds;

/// QDELAY_TARGET_LO and QDELAY_TARGET_HI, s.
pub(super) const TARGETS: [f64; 2] = [0.1, 0.4];
/// QDELAY_WEIGHT.
const WEIGHT: f64 = 0.1;
/// Time between samples of the trend, ns (§4.1.2).
const SAMPLE: u64 = 50_000_000;
/// Samples of which the trend is made.
const TREND: usize = 20;
/// Reports that tell how the delay varies, and that make its mean (§4.1.2.3).
const VARIANCE: usize = 200;
const MEAN: usize = 50;
/// Losses in more than this share of the round trips are taken for others' doing.
const LOSSY: f64 = 0.002;
/// Weight of a round trip in the share of those with losses: ours.
const LOSS_WEIGHT: f64 = 0.01;
/// The least delay counts for this many minutes (RFC 6817 §4.2, BASE_HISTORY).
const MINUTES: usize = 10;
const MINUTE: u64 = 60_000_000_000;

/// What is known of the delay.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    /// The least one-way delay of each of the last minutes, ns, and the number of the last one.
    bases: [u64; MINUTES],
    minute: u64,
    /// The queueing delay of the last report, s.
    pub(super) now: f64,
    /// What it is to stay below, s.
    pub(super) target: f64,
    /// When the next sample of the trend is due, ns.
    sample_at: u64,
    fraction: f64,
    fractions: [f64; TREND],
    /// 0 … 1: how much it looks like congestion; and how much it did.
    pub(super) trend: f64,
    pub(super) trend_memory: f64,
    /// Delays by the lower target, of the last reports, in a ring.
    history: Vec<f64>,
    at: usize,
    /// Share of the round trips with losses.
    pub(super) losses: f64,
}

impl Default for Delay {
    fn default() -> Self {
        Self {
            bases: [u64::MAX; MINUTES],
            minute: 0,
            now: 0.0,
            target: TARGETS[0],
            sample_at: 0,
            fraction: 0.0,
            fractions: [0.0; TREND],
            trend: 0.0,
            trend_memory: 0.0,
            history: vec![0.0; VARIANCE],
            at: 0,
            losses: 0.0,
        }
    }
}

impl Delay {
    /// A report at `now` says that a packet was `way` under way (ns).
    pub(super) fn measure(&mut self, now: u64, way: u64) {
        while self.minute < now / MINUTE {
            self.minute += 1;
            self.bases[self.minute as usize % MINUTES] = u64::MAX;
        }
        let base = &mut self.bases[self.minute as usize % MINUTES];
        *base = way.min(*base);
        let least = self.bases.iter().copied().min().unwrap_or(way);
        self.now = seconds(way - least);
        if self.sample_at <= now {
            self.sample_at = now + SAMPLE;
            self.sample();
        }
    }

    /// update_variables of §4.1.2.
    fn sample(&mut self) {
        let fraction = self.now / self.target;
        self.fraction += WEIGHT * (fraction - self.fraction);
        self.fractions.rotate_left(1);
        self.fractions[TREND - 1] = fraction;
        let slope = correlation(&self.fractions);
        self.trend = (slope * self.fraction).clamp(0.0, 1.0);
        self.trend_memory = self.trend.max(0.99 * self.trend_memory);
    }

    /// A round trip is over, with losses or without.
    pub(super) fn round(&mut self, lossy: bool) {
        self.losses += LOSS_WEIGHT * (f64::from(u8::from(lossy)) - self.losses);
    }

    /// adjust_qdelay_target of §4.1.2.3.
    pub(super) fn adjust_target(&mut self) {
        self.history[self.at] = self.now / TARGETS[0];
        self.at = (self.at + 1) % VARIANCE;
        let mean = |values: &mut dyn Iterator<Item = f64>, n: usize| values.sum::<f64>() / n as f64;
        let all = mean(&mut self.history.iter().copied(), VARIANCE);
        let variance = mean(&mut self.history.iter().map(|x| (x - all) * (x - all)), VARIANCE);
        let last = (1..=MEAN).map(|k| self.history[(self.at + VARIANCE - k) % VARIANCE]);
        let room = TARGETS[0] * (mean(&mut { last }, MEAN) + libm::sqrt(variance));
        self.target = if self.losses > LOSSY {
            1.5 * room
        } else if variance < 0.2 {
            room
        } else if room < TARGETS[0] {
            (0.5 * self.target).max(room)
        } else {
            0.9 * self.target
        };
        self.target = self.target.clamp(TARGETS[0], TARGETS[1]);
    }
}

/// R(x, 1) / R(x, 0) of the values less their mean; 0 if they are all the same.
fn correlation(values: &[f64; TREND]) -> f64 {
    let mean = values.iter().sum::<f64>() / TREND as f64;
    let product = |lag: usize| -> f64 {
        values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let all = product(0);
    if all > 0.0 { product(1) / all } else { 0.0 }
}
