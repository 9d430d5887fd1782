//! The encoder's rate (§4.1.3).

use super::delay::Delay;
use super::{Options, seconds};

/// RATE_ADJUST_INTERVAL, ns.
const INTERVAL: u64 = 200_000_000;
/// RAMP_UP_SPEED, bit/s each second.
const RAMP_UP: f64 = 200_000.0;
/// PRE_CONGESTION_GUARD, TX_QUEUE_SIZE_FACTOR, RTP_QDELAY_TH in s, TARGET_RATE_SCALE_RTP_QDELAY.
const GUARD: f64 = 0.1;
const QUEUE_FACTOR: f64 = 1.0;
const QUEUE_LIMIT: f64 = 0.02;
const QUEUE_SCALE: f64 = 0.95;
/// Intervals in the ten seconds of which the encoder's median rate is taken.
const MEDIAN: usize = 50;

/// The encoder's rate, and the rates by which it goes.
#[derive(Clone, Debug)]
pub(super) struct MediaRate {
    /// target_bitrate, bit/s.
    pub(super) target: f64,
    /// The target when congestion was seen last.
    last_max: f64,
    /// When the interval began, ns; bits encoded, sent and acknowledged in it.
    since: u64,
    pub(super) encoded: f64,
    pub(super) sent: f64,
    pub(super) acknowledged: f64,
    /// What the encoder gave in the last intervals, bit/s.
    media: Vec<f64>,
}

impl MediaRate {
    pub(super) fn new(now: u64, o: &Options) -> Self {
        Self {
            target: o.rates[2],
            last_max: 1.0,
            since: now,
            encoded: 0.0,
            sent: 0.0,
            acknowledged: 0.0,
            media: Vec::new(),
        }
    }

    /// A loss event or a mark: the rate goes down at once, by `factor`.
    pub(super) fn congestion(&mut self, factor: f64, o: &Options) {
        self.last_max = self.target;
        self.target = (factor * self.target).max(o.rates[0]);
    }

    /// At each event: the rate is adjusted if an interval is over. `queued` bits wait at the sender.
    pub(super) fn adjust(&mut self, now: u64, queued: f64, rising: bool, d: &Delay, o: &Options) {
        if now < self.since + INTERVAL {
            return;
        }
        let time = seconds(now - self.since);
        let current = self.sent.max(self.acknowledged) / time;
        if self.media.len() == MEDIAN {
            self.media.remove(0);
        }
        let media = self.encoded / time;
        self.media.push(media);
        (self.since, self.encoded, self.sent, self.acknowledged) = (now, 0.0, 0.0, 0.0);
        self.step(seconds(INTERVAL), current, queued, rising, d);
        let mut sorted = self.media.clone();
        sorted.sort_by(f64::total_cmp);
        let limit = current.max(media).max(sorted[sorted.len() / 2]) * (2.0 - d.trend_memory);
        let [least, greatest, _] = o.rates;
        self.target = self.target.min(limit).clamp(least, greatest);
    }

    /// The change in an interval without losses; `rising` in fast increase.
    fn step(&mut self, interval: f64, current: f64, queued: f64, rising: bool, d: &Delay) {
        let ramp_up = RAMP_UP.min(self.target / 2.0) * interval;
        let distance = 4.0 * (self.target - self.last_max) / self.last_max;
        let scale = (distance * distance).clamp(0.2, 1.0);
        if rising {
            self.target += scale * ramp_up;
            return;
        }
        let mut change = current * (1.0 - GUARD * d.trend) - QUEUE_FACTOR * queued;
        if change > 0.0 {
            change = (scale * change).min(ramp_up);
        }
        // The RFC raises the rate first, by up to 40 kb/s: below 760 kb/s that is more than the 5 % by
        // which it then goes down, and the queue at the sender would grow to a second.
        if queued > QUEUE_LIMIT * current {
            self.target = QUEUE_SCALE * (self.target + change.min(0.0));
        } else {
            self.target += change;
        }
    }
}
