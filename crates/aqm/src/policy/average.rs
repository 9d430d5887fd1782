//! The moving average of RED's family.

use crate::time::Instant;

/// The moving average of a queue's length, which ages while the link is idle (FJ93 Fig. 2).
#[derive(Clone, Debug)]
pub(super) struct Average {
    /// As of the last sample or ageing.
    pub(super) value: f64,
    w_q: f64,
    /// Transmission time of a mean packet in nanoseconds.
    packet_time: f64,
    /// Idle time counts in whole packets, and the packet that ends it is a sample.
    whole: bool,
    /// Up to when idle time has been aged in, while the link is idle.
    idle_since: Option<Instant>,
}

impl Average {
    /// Of an empty queue on an idle link. `packet_time` is in nanoseconds.
    pub(super) fn new(w_q: f64, packet_time: f64, now: Instant) -> Self {
        Self { value: 0.0, w_q, packet_time, whole: false, idle_since: Some(now) }
    }

    /// This average; if `whole`, idle time counts in whole packets, and the packet that ends it is a
    /// sample.
    pub(super) fn in_whole_packets(self, whole: bool) -> Self {
        Self { whole, ..self }
    }

    /// Takes in a queue's length, or on an idle link the idle time; the new value.
    #[inline]
    pub(super) fn sample(&mut self, length: f64, now: Instant) -> f64 {
        if self.idle_since.is_some() {
            self.wake(length, now);
        } else {
            self.value = (1.0 - self.w_q) * self.value + self.w_q * length;
        }
        self.value
    }

    /// Takes in the idle time, and a queue's length behind it where that counts.
    #[inline(never)]
    fn wake(&mut self, length: f64, now: Instant) {
        self.age(now);
        if self.whole {
            self.value = (1.0 - self.w_q) * self.value + self.w_q * length;
        }
    }

    /// Takes in the idle time, if the link is idle.
    #[inline]
    pub(super) fn age(&mut self, now: Instant) {
        if self.idle_since.is_some() {
            self.value = self.at(now);
            self.idle_since = Some(now);
        }
    }

    /// The average with the idle time until `now`.
    pub(super) fn at(&self, now: Instant) -> f64 {
        match self.idle_since {
            Some(since) => {
                let m = now.since(since).as_nanos() as f64 / self.packet_time;
                aged(self.value, self.w_q, if self.whole { libm::floor(m) } else { m })
            }
            None => self.value,
        }
    }

    /// A packet was queued: the link is not idle.
    #[inline]
    pub(super) fn admitted(&mut self) {
        self.idle_since = None;
    }

    /// Another weight, and another transmission time (ns), from `now` on.
    pub(super) fn change(&mut self, w_q: f64, packet_time: f64, now: Instant) {
        self.age(now);
        (self.w_q, self.packet_time) = (w_q, packet_time);
    }

    /// The link went idle, or stays so.
    #[inline]
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.idle_since = self.idle_since.or(Some(now));
    }
}

/// The average after an idle time in which `m` packets could have gone (FJ93 §4).
fn aged(avg: f64, w_q: f64, m: f64) -> f64 {
    if avg == 0.0 { 0.0 } else { avg * libm::pow(1.0 - w_q, m) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_ages_the_average_by_the_packets_that_could_have_gone() {
        for (avg, w_q, m, expected) in [
            (8.0, 0.5, 0.0, 8.0),
            (8.0, 0.5, 3.0, 1.0),  // 8/2³
            (8.0, 0.75, 0.5, 4.0), // √¼
            (8.0, 1.0, 1.0, 0.0),
            (0.0, 1.0, 0.0, 0.0),
        ] {
            assert!((aged(avg, w_q, m) - expected).abs() < 1e-12);
        }
    }
}
