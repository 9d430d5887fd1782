//! What a link carried under each of its settings, where they changed.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::link::{Link, Spec};

/// How many of the last settings are reported: a slider makes hundreds.
const MOST: usize = 8;

/// The settings before the present ones in a window, and since when these hold.
#[derive(Default, Debug)]
pub(super) struct Eras {
    before: VecDeque<Value>,
    /// How many older ones are left out.
    forgotten: u64,
    /// Since when, ns.
    since: u64,
    /// Bytes that had left by then.
    left: u64,
}

impl Eras {
    /// A new window begins at `now` (ns).
    pub(super) fn begin(&mut self, link: &Link, now: u64) {
        *self = Self { since: now, left: departed(link), ..Self::default() };
    }

    /// The settings of `link` end at `now` (ns).
    pub(super) fn end(&mut self, link: &Link, now: u64) {
        if self.before.len() == MOST {
            self.before.pop_front();
            self.forgotten += 1;
        }
        self.before.push_back(self.last(link, now));
        (self.since, self.left) = (now, departed(link));
    }

    /// All settings of the window up to `now` (ns), if there was more than one, and how many were
    /// before.
    pub(super) fn told(&self, link: &Link, now: u64) -> Option<(Vec<Value>, u64)> {
        let all = || self.before.iter().cloned().chain([self.last(link, now)]).collect();
        (!self.before.is_empty()).then(|| (all(), self.forgotten))
    }

    fn last(&self, link: &Link, now: u64) -> Value {
        let Spec { rate, delay, aqm, .. } = link.spec();
        let seconds = now.saturating_sub(self.since) as f64 / 1e9;
        let bits = 8.0 * (departed(link) - self.left) as f64;
        json!({
            "from_s": self.since as f64 / 1e9, "until_s": now as f64 / 1e9,
            "rate": rate.to_string(), "delay": delay.to_string(), "aqm": aqm,
            "throughput_bps": if seconds > 0.0 { bits / seconds } else { 0.0 },
        })
    }
}

fn departed(link: &Link) -> u64 {
    link.counters().departed.bytes
}
