//! Whether a monitored flow responds to its losses (Mahajan01 §6.2).
//!
//! The paper compares arrival rates at different loss rates by equation 1, and gives no numbers.
//! - [`UnresponsiveRule::Growth`], ours: samples of at least M lists and `test_drops` losses, each
//!   compared with the first since monitoring began or since the flow proved responsive.
//! - [`UnresponsiveRule::Pairs`], the authors' program for ns-2: the last list before the flow was
//!   monitored, and before each raise, is a sample. Of the last five all pairs are compared whose
//!   losses differ, by less than a factor of ten. A rate above what equation 1 asks for is a strike,
//!   any other an answer: unresponsive is who has three strikes at least, and four for each answer.
//!   (Rates are of packets, there of bytes. Packets are counted from the first loss on that is
//!   remembered; a flow that is identified by its first list alone, which `k` = 1, `burst` and
//!   single lists allow, has its earlier ones missing.)

use super::RedPdConfig;
use crate::param::choice;
use crate::time::Instant;

choice! {
    /// How a flow is found not to respond.
    pub enum UnresponsiveRule {
        /// Its losses have grown by `test_increase`, and its rate has not fallen half-way.
        Growth = "growth",
        /// Of its last five samples pairs speak against it, four to one.
        Pairs = "pairs",
    }
}

impl RedPdConfig {
    /// Whether flows are tested by pairs.
    #[inline]
    pub(super) fn pairs(&self) -> bool {
        self.unresponsive_test && self.unresponsive_rule == UnresponsiveRule::Pairs
    }
}

/// Samples that pairs are made of.
const SAMPLES: usize = 5;

/// What a monitored flow did in a while.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Sample {
    /// Packets per second, before the filter.
    rate: f64,
    /// Share lost to filter and queue.
    loss: f64,
}

/// Packets of a flow.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Count {
    pub(super) arrived: u64,
    lost: u32,
}

impl Count {
    /// A packet that the queue signalled, of a flow that is not monitored. The first has not been
    /// counted as it came.
    pub(super) fn lost(&mut self) {
        self.arrived = self.arrived.max(1);
        self.lost += 1;
    }

    /// These packets as a sample that began at `since`.
    fn sample(self, since: Instant, now: Instant) -> Sample {
        let arrived = self.arrived as f64;
        Sample {
            rate: arrived / now.since(since).as_secs_f64(),
            loss: f64::from(self.lost) / arrived.max(1.0),
        }
    }
}

/// What is remembered of a monitored flow to judge it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Record {
    /// Of the present list.
    list: Count,
    /// Of the growing sample, its lists and its beginning.
    growing: Count,
    lists: u32,
    since: Instant,
    /// Samples, the oldest first; the rule of growth has one, which the others are compared with.
    samples: [Sample; SAMPLES],
    held: usize,
    /// What was found.
    pub(super) unresponsive: bool,
}

impl Record {
    /// Of a flow that is monitored from now on; `list` are its packets in the list that ends, which
    /// began at `began`.
    pub(super) fn new(c: &RedPdConfig, list: Count, began: Instant, now: Instant) -> Self {
        let mut new = Self { since: now, ..Self::default() };
        if c.pairs() {
            new.keep_list(list, began, now);
        }
        new
    }

    #[inline]
    pub(super) fn arrived(&mut self) {
        self.list.arrived += 1;
    }

    /// In the filter or behind it.
    #[inline]
    pub(super) fn lost(&mut self) {
        self.list.lost += 1;
    }

    /// Whether the present list has a loss.
    pub(super) fn lost_in_list(&self) -> bool {
        self.list.lost > 0
    }

    /// A list that began at `began` ends; `rises`: the flow's probability goes up now.
    pub(super) fn end_list(&mut self, c: &RedPdConfig, began: Instant, now: Instant, rises: bool) {
        let list = core::mem::take(&mut self.list);
        if !c.unresponsive_test {
            return;
        }
        match c.unresponsive_rule {
            UnresponsiveRule::Growth => {
                self.growing.arrived += list.arrived;
                self.growing.lost += list.lost;
                self.lists += 1;
                if self.lists >= c.m && self.growing.lost >= c.test_drops {
                    self.compare(self.growing.sample(self.since, now), c.test_increase);
                    (self.growing, self.lists, self.since) = (Count::default(), 0, now);
                }
            }
            UnresponsiveRule::Pairs => {
                if rises {
                    self.unresponsive |= unresponsive(&self.samples[..self.held]);
                    self.keep_list(list, began, now);
                }
            }
        }
    }

    /// The rule of growth for a sample that is complete.
    fn compare(&mut self, sample: Sample, increase: f64) {
        let reference = self.samples[0];
        let grown = sample.loss / reference.loss;
        if grown >= increase && reference.loss > 0.0 {
            if responded(grown, reference.rate, sample.rate) {
                self.samples[0] = sample;
            } else {
                self.unresponsive = true;
            }
        } else if reference.loss == 0.0 || grown * increase <= 1.0 {
            self.samples[0] = sample;
        }
    }

    /// Takes the list that ends as a sample, if a packet came in it.
    fn keep_list(&mut self, list: Count, began: Instant, now: Instant) {
        if list.arrived > 0 {
            self.keep(list.sample(began, now));
        }
    }

    /// Takes a sample in place of the oldest of five.
    fn keep(&mut self, sample: Sample) {
        if self.held == SAMPLES {
            self.samples.copy_within(1.., 0);
            self.held -= 1;
        }
        self.samples[self.held] = sample;
        self.held += 1;
    }
}

/// Whether a flow responded whose losses have grown by the factor `loss` and whose rate went from
/// `before` to `after`. Equation 1 asks for a factor of loss^(−½); half of that, in logarithms, is
/// taken for an answer. A flow that has sent nothing has responded.
fn responded(loss: f64, before: f64, after: f64) -> bool {
    after <= before / libm::sqrt(libm::sqrt(loss))
}

/// The rule of pairs.
fn unresponsive(samples: &[Sample]) -> bool {
    let (mut strikes, mut answers) = (0, 0);
    for less in samples {
        for more in samples {
            if less.loss < more.loss && less.loss > more.loss / 10.0 {
                // Equation 1 asks for a factor of √(less/more).
                let kept = more.rate > less.rate * libm::sqrt(less.loss / more.loss);
                *(if kept { &mut strikes } else { &mut answers }) += 1;
            }
        }
    }
    strikes >= 3.max(4 * answers)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Losses of a hundredth grow to 8 %: equation 1 asks for 1/√8 = 0.35 of the rate, 8^(−¼) = 0.59
    /// is where an answer begins.
    #[test]
    fn a_response_by_hand() {
        let rate = |after| responded(8.0, 1.0, after);
        assert!(rate(0.35) && rate(0.59) && !rate(0.6));
        assert!(responded(1.0, 1.0, 1.0) && responded(8.0, 0.0, 0.0));
    }

    /// Losses of 1, 2 and 4 % make three pairs, in which equation 1 asks for 0.71, 0.71 and 0.5 of
    /// the rate. Four samples make six: one answer needs four strikes, two need eight.
    #[test]
    fn pairs_by_hand() {
        let judge = |samples: &[(f64, f64)]| {
            let samples: Vec<Sample> =
                samples.iter().map(|&(loss, rate)| Sample { rate, loss }).collect();
            unresponsive(&samples)
        };
        assert!(judge(&[(0.01, 100.0), (0.02, 100.0), (0.04, 100.0)]));
        assert!(judge(&[(0.04, 51.0), (0.02, 71.5), (0.01, 100.0)]), "in any order");
        assert!(!judge(&[(0.01, 100.0), (0.02, 70.0), (0.04, 100.0)]), "two strikes, one answer");
        assert!(!judge(&[(0.01, 100.0), (0.02, 100.0)]), "one pair");
        assert!(!judge(&[(0.01, 100.0), (0.02, 100.0), (0.2, 100.0)]), "0.01 to 0.2 is no pair");
        let one_answer = [(0.01, 100.0), (0.02, 70.0), (0.04, 100.0), (0.08, 100.0)];
        assert!(judge(&one_answer), "five strikes");
        let two = [(0.01, 100.0), (0.02, 70.0), (0.04, 49.0), (0.08, 100.0)];
        assert!(!judge(&two), "three answers, three strikes");
        assert!(!judge(&[]));
    }

    #[test]
    fn a_list_without_a_packet_is_no_sample() {
        let c =
            RedPdConfig { unresponsive_rule: UnresponsiveRule::Pairs, ..RedPdConfig::default() };
        let mut record = Record::default();
        let end = Instant::from_nanos(1_000_000);
        record.end_list(&c, Instant::ZERO, end, true);
        assert_eq!(record.held, 0);
        record.arrived();
        record.end_list(&c, Instant::ZERO, end, true);
        assert_eq!((record.held, record.samples[0].rate), (1, 1000.0));
    }

    /// As in the authors' program; 4 packets and a loss in a millisecond.
    #[test]
    fn the_list_before_a_flow_is_monitored_is_a_sample_of_pairs() {
        let list = Count { arrived: 4, lost: 1 };
        let end = Instant::from_nanos(1_000_000);
        for (unresponsive_rule, held) in
            [(UnresponsiveRule::Pairs, 1), (UnresponsiveRule::Growth, 0)]
        {
            let c = RedPdConfig { unresponsive_rule, ..RedPdConfig::default() };
            let record = Record::new(&c, list, Instant::ZERO, end);
            assert_eq!(record.held, held);
            assert_eq!(
                record.samples[0],
                [Sample::default(), Sample { rate: 4000.0, loss: 0.25 }][held]
            );
        }
    }

    #[test]
    fn five_samples_are_kept() {
        let mut record = Record::default();
        for n in 1..=7 {
            record.keep(Sample { rate: f64::from(n), loss: 0.0 });
        }
        assert_eq!(record.samples.map(|s| s.rate), [3.0, 4.0, 5.0, 6.0, 7.0]);
    }
}
