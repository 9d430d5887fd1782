//! Losses, loss events and the loss event rate (RFC 5348 §5).

use aqm::response;

use super::{DUPLICATES, INTERVALS, LEAST_DISCOUNT, LEAST_FIRST_RATE, WEIGHTS};

/// A packet that arrived: its number and when, ns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Arrival {
    seq: u32,
    at: u64,
}

/// What is remembered of losses.
#[derive(Clone, Default, Debug)]
pub struct LossHistory {
    /// Up to this one every packet is known to have arrived or to be lost. Before the first packet,
    /// whose number is 1, it is number 0, at the first arrival.
    settled: Option<Arrival>,
    /// Arrivals beyond a missing one, in the order of their numbers.
    beyond: [Arrival; DUPLICATES],
    waiting: usize,
    /// The highest number that arrived.
    highest: u32,
    /// The first loss of the last event and its time, if there was one.
    event: Option<Arrival>,
    /// Closed intervals in packets, newest first, and how far each is discounted.
    intervals: [f64; INTERVALS],
    discounts: [f64; INTERVALS],
    closed: usize,
}

impl LossHistory {
    /// A packet arrives at `at`, marked or not, when the round trip takes `rtt` (ns; 0 while the sender
    /// knows none) and packets have come at `rate` per second at most. Returns whether a new loss event
    /// begins.
    pub fn arrive(
        &mut self,
        seq: u32,
        at: u64,
        marked: bool,
        rtt: u64,
        rate: f64,
        discounting: bool,
    ) -> bool {
        let arrival = Arrival { seq, at };
        let settled = *self.settled.get_or_insert(Arrival { seq: 0, at });
        let known = self.beyond[..self.waiting].iter().any(|other| other.seq == seq);
        if seq <= settled.seq || known {
            return false;
        }
        self.highest = self.highest.max(seq);
        let mut news = marked && self.lose(arrival, rtt, rate, discounting);
        let place = self.beyond[..self.waiting].iter().take_while(|other| other.seq < seq).count();
        self.beyond.copy_within(place..self.waiting, place + 1);
        self.beyond[place] = arrival;
        self.waiting += 1;
        news |= self.settle(settled, rtt, rate, discounting);
        news
    }

    /// Goes on from the packet that is settled: over those that arrived in order, and over holes
    /// that enough packets came after.
    fn settle(&mut self, mut from: Arrival, rtt: u64, rate: f64, discounting: bool) -> bool {
        let mut news = false;
        while self.waiting > 0 {
            let next = self.beyond[0];
            if next.seq > from.seq + 1 {
                if self.waiting < DUPLICATES {
                    break;
                }
                let numbers = u64::from(next.seq - from.seq);
                // Packets that changed places may have come in another order than their numbers'.
                let time = next.at.saturating_sub(from.at);
                for seq in from.seq + 1..next.seq {
                    // §5.2: the time at which it would have arrived.
                    let share = u128::from(time) * u128::from(seq - from.seq) / u128::from(numbers);
                    let lost = Arrival { seq, at: from.at + share as u64 };
                    news |= self.lose(lost, rtt, rate, discounting);
                }
            }
            from = next;
            self.waiting -= 1;
            self.beyond.copy_within(1..=self.waiting, 0);
        }
        self.settled = Some(from);
        news
    }

    /// A packet is lost: a new event, if it is more than a round trip after the first of the last one
    /// (§5.2).
    fn lose(&mut self, lost: Arrival, rtt: u64, rate: f64, discounting: bool) -> bool {
        let interval = match self.event {
            Some(event) if lost.at <= event.at + rtt || lost.seq <= event.seq => return false,
            Some(event) => f64::from(lost.seq - event.seq),
            // §6.3.1: the most that arrived, half of what was sent, is taken for the right rate.
            None => 1.0 / rate_of_loss((rate * super::seconds(rtt)).max(LEAST_FIRST_RATE)),
        };
        let discount = if discounting { self.discount(interval) } else { 1.0 };
        self.discounts.iter_mut().for_each(|each| *each *= discount);
        self.event = Some(lost);
        self.intervals.copy_within(..INTERVALS - 1, 1);
        self.discounts.copy_within(..INTERVALS - 1, 1);
        (self.intervals[0], self.discounts[0]) = (interval, 1.0);
        self.closed = (self.closed + 1).min(INTERVALS);
        true
    }

    /// Packets since the last event began: the interval that is open.
    fn open(&self) -> f64 {
        self.event.map_or(0.0, |event| f64::from((self.highest + 1).saturating_sub(event.seq)))
    }

    /// Weighted sum of the closed intervals from the newest on, and of their weights; the newest has
    /// the weight number `first`.
    fn sums(&self, first: usize, discount: f64) -> (f64, f64) {
        let closed = self.intervals.iter().zip(&self.discounts).take(self.closed - first);
        closed.zip(&WEIGHTS[first..]).fold((0.0, 0.0), |(sum, all), ((interval, old), weight)| {
            let weight = weight * old * discount;
            (sum + interval * weight, all + weight)
        })
    }

    /// How far the closed intervals are discounted by the one of `open` packets after them, DF (§5.5).
    fn discount(&self, open: f64) -> f64 {
        if self.closed == 0 {
            return 1.0;
        }
        let (sum, weights) = self.sums(0, 1.0);
        let mean = sum / weights;
        if open > 2.0 * mean { (2.0 * mean / open).max(LEAST_DISCOUNT) } else { 1.0 }
    }

    /// The loss event rate p, 0 … 1 (§5.4, §5.5).
    pub fn rate(&self, discounting: bool) -> f64 {
        if self.closed == 0 {
            return 0.0;
        }
        let open = self.open();
        let discount = if discounting { self.discount(open) } else { 1.0 };
        let (closed, weights) = self.sums(0, 1.0);
        let (older, older_weights) = self.sums(1, discount);
        let with_open = (open * WEIGHTS[0] + older) / (WEIGHTS[0] + older_weights);
        (1.0 / with_open.max(closed / weights)).min(1.0)
    }
}

/// The loss event rate at which the equation gives `rate` packets per round trip.
fn rate_of_loss(rate: f64) -> f64 {
    let (mut low, mut high) = (1e-10, 1.0);
    for _ in 0..60 {
        let middle = libm::sqrt(low * high);
        let side = if response::tfrc(middle, 1.0) > rate { &mut low } else { &mut high };
        *side = middle;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RTT: u64 = 100 * MS;

    /// Packets 10 ms apart, but for those that are lost.
    fn history(packets: u32, lost: &[u32], discounting: bool) -> LossHistory {
        let mut history = LossHistory::default();
        for seq in (1..packets).filter(|seq| !lost.contains(seq)) {
            history.arrive(seq, u64::from(seq) * 10 * MS, false, RTT, 100.0, discounting);
        }
        history
    }

    #[test]
    fn three_packets_after_a_hole_make_a_loss() {
        assert_eq!(history(53, &[50], false).event, None);
        let event = history(54, &[50], false).event;
        assert_eq!(event, Some(Arrival { seq: 50, at: 500 * MS }), "at its own time");
    }

    #[test]
    fn packets_that_change_places_are_no_loss() {
        let mut history = LossHistory::default();
        for (k, seq) in [1, 4, 3, 2, 5, 5, 1, 6].into_iter().enumerate() {
            assert!(!history.arrive(seq, k as u64 * MS, false, RTT, 100.0, false));
        }
        assert_eq!((history.settled.unwrap().seq, history.waiting), (6, 0));
        // 9 comes before 8, and the loss between 8 and 12 is known by 14.
        for (k, seq) in [9, 8, 7, 12, 13, 10, 14].into_iter().enumerate() {
            let news = history.arrive(seq, (20 + k as u64) * MS, false, RTT, 100.0, false);
            assert_eq!(news, seq == 14, "{seq}");
        }
        assert_eq!(history.event.map(|event| event.seq), Some(11));
    }

    /// 50 and 60 are within 100 ms, 61 is the next event, 71 belongs to it, and so on.
    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let history = history(100, &[50, 51, 55, 60, 61, 71, 72, 80], false);
        assert_eq!(history.closed, 3);
        assert_eq!(history.intervals[..2], [11.0, 11.0], "72 − 61, 61 − 50");
    }

    /// Many packets in a row: 20 losses 10 ms apart are two events.
    #[test]
    fn a_long_hole_may_hold_several_events() {
        let lost: Vec<u32> = (50..70).collect();
        let history = history(100, &lost, false);
        assert_eq!((history.closed, history.intervals[0]), (2, 11.0));
    }

    #[test]
    fn a_mark_is_a_loss_at_once() {
        let mut history = history(50, &[], false);
        assert!(history.arrive(50, 500 * MS, true, RTT, 100.0, false));
        assert!(!history.arrive(51, 510 * MS, true, RTT, 100.0, false));
        assert_eq!(history.event.map(|event| event.seq), Some(50));
    }

    /// §6.3.1: 100 packets a second at 100 ms are the equation's at p = 0.00965; after that event the
    /// receiver tells this p.
    #[test]
    fn the_first_interval_is_made_from_the_rate() {
        let p = history(54, &[50], false).rate(false);
        assert!((response::tfrc(p, 0.1) / 100.0 - 1.0).abs() < 1e-6, "{p}");
        assert!((0.009..0.015).contains(&p), "{p}");
    }

    /// §6.3.1: at least half a packet a round trip, p = 0.2064 by the equation; without a round-trip
    /// time, too, which nobody knows when the first packet is marked.
    #[test]
    fn the_first_packet_may_be_marked_or_lost() {
        for rtt in [0, RTT] {
            let mut marked = LossHistory::default();
            assert!(marked.arrive(1, 0, true, rtt, 0.0, false));
            let p = marked.rate(false);
            assert!((response::tfrc(p, 1.0) - 0.5).abs() < 1e-6, "{p}");
        }
        let mut lost = LossHistory::default();
        let news: Vec<bool> = (2..6)
            .map(|seq| lost.arrive(seq, u64::from(seq) * MS, false, RTT, 20.0, false))
            .collect();
        assert_eq!(news, [false, false, true, false], "the third after it tells");
        assert_eq!(lost.event, Some(Arrival { seq: 1, at: 2 * MS }));
        assert!((response::tfrc(lost.rate(false), 1.0) - 2.0).abs() < 1e-6);
    }

    fn with(intervals: &[f64], open: u32) -> LossHistory {
        let mut history = LossHistory {
            event: Some(Arrival { seq: 1000, at: 0 }),
            highest: 999 + open,
            closed: intervals.len(),
            discounts: [1.0; INTERVALS],
            ..LossHistory::default()
        };
        history.intervals[..intervals.len()].copy_from_slice(intervals);
        history
    }

    /// §5.4 by hand. Eight of 100 and an open one: weights 6 in all.
    #[test]
    fn intervals_are_weighted() {
        for (intervals, open, mean) in [
            (&[100.0; 8][..], 10, 100.0), // the open one would lower it: left out
            (&[100.0; 8], 100, 100.0),
            (&[100.0; 8], 160, 110.0), // 160 + 100·5 over 6
            (&[10.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0], 1, 85.0), // 10 + 500 over 6
            (&[100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 700.0], 1, 120.0), // 580 + 140
            (&[40.0], 20, 40.0),
            (&[40.0], 60, 60.0),
            (&[40.0, 60.0], 80, 60.0), // 80 and 40
            (&[40.0, 60.0, 100.0, 100.0, 100.0], 1, 360.0 / 4.8 + 80.0 / 4.8 - 60.0 / 4.8),
        ] {
            let p = with(intervals, open).rate(false);
            assert!((p * mean - 1.0).abs() < 1e-9, "{intervals:?}, {open}: {} for {mean}", 1.0 / p);
        }
    }

    /// §5.5 by hand: an open interval of 400 is four times the mean: DF = 0.5, and
    /// (400 + 0.5·500)/(1 + 0.5·5) = 185.7 in place of 150.
    #[test]
    fn a_long_time_without_loss_discounts_the_past() {
        let history = with(&[100.0; 8], 400);
        assert!((history.rate(false) * 150.0 - 1.0).abs() < 1e-9);
        assert!((history.rate(true) * (650.0 / 3.5) - 1.0).abs() < 1e-9, "{}", history.rate(true));
        // Not below a quarter: (10 000 + 0.25·500)/(1 + 0.25·5).
        let p = with(&[100.0; 8], 10_000).rate(true);
        assert!((p * (10_125.0 / 2.25) - 1.0).abs() < 1e-9);
        // What was discounted once stays so: 400, and eight at half weight; the last falls out.
        let mut history = with(&[100.0; 8], 400);
        assert!(history.lose(Arrival { seq: 1400, at: 2 * RTT }, RTT, 1.0, true));
        let mean = (400.0 + 0.5 * 500.0) / (1.0 + 0.5 * 5.0);
        assert!((history.rate(true) * mean - 1.0).abs() < 1e-9);
    }
}
