//! What datagrams meet on their way from end to end, and how a telephone call over it would sound.

use std::collections::VecDeque;

use link::Histogram;

use super::distinct::Distinct;

/// Share of the packets that come that a call waits for before it plays.
const PLAYED: f64 = 0.99;
/// Time to fill a packet with sound, ms: the usual 20 ms of G.711.
const FILLING_MS: f64 = 20.0;
/// Age from which a packet that has not come is lost, ns; if the longest delay is longer, that counts. Younger
/// packets may be under way.
const LATE: u64 = 1_000_000_000;
/// How often it is noted what was sent by then, ns.
const NOTED: u64 = LATE / 10;

/// Packets on their way in a window of time, all of one flow or of one group.
#[derive(Clone, Default, Debug)]
pub struct OneWay {
    /// Start of the window, ns.
    since: u64,
    /// Number of the first packet that was sent in it.
    first: Option<u32>,
    /// Number after the last that came.
    next: u32,
    came: Distinct,
    /// Some of the packets that were sent lately, a few in a second, and the last: when (ns), and the number.
    sent: VecDeque<(u64, u32)>,
    /// Packets expected by flows that were added.
    expected: u64,
    received: u64,
    /// Delays in ns.
    delays: Histogram,
    delay_sum: u128,
    /// Delay of the packet before, ns.
    last: Option<u64>,
    /// Differences between delays of packets in succession: their sum in ns, and how many.
    changes: (u128, u64),
}

impl OneWay {
    /// A window that begins at `since` (ns).
    pub fn new(since: u64) -> Self {
        Self { since, ..Self::default() }
    }

    /// Packet `number` is sent at `now` (ns).
    pub fn send(&mut self, number: u32, now: u64) {
        if now < self.since {
            return;
        }
        if self.first.is_none() {
            (self.first, self.came) = (Some(number), Distinct::from(number));
        }
        // The last note moves on until it is far enough from the one before.
        let noted = self.sent.len();
        if noted > 1 && self.sent[noted - 2].0 + NOTED > now {
            self.sent.pop_back();
        }
        self.sent.push_back((now, number));
        let late = self.late();
        while self.sent.get(1).is_some_and(|(at, _)| *at + late <= now) {
            self.sent.pop_front();
        }
    }

    /// How old a packet is that has not come, ns, when it counts as lost.
    fn late(&self) -> u64 {
        LATE.max(self.delays.max())
    }

    /// Packet `number`, sent at `sent`, has come at `now` (ns). Copies do not count.
    pub fn receive(&mut self, number: u32, sent: u64, now: u64) {
        if sent < self.since || self.first.is_none_or(|first| number < first) {
            return;
        }
        if !self.came.take(number) {
            return;
        }
        let delay = now - sent;
        self.next = self.next.max(number + 1);
        self.received += 1;
        self.delays.add(delay, 1);
        self.delay_sum += u128::from(delay);
        if let Some(last) = self.last.replace(delay) {
            self.changes.0 += u128::from(delay.abs_diff(last));
            self.changes.1 += 1;
        }
    }

    /// Adds another flow of the group, as of `now` (ns).
    pub fn add(&mut self, other: &Self, now: u64) {
        self.expected += other.expected(now);
        self.received += other.received;
        self.delays.join(&other.delays);
        self.delay_sum += other.delay_sum;
        self.changes.0 += other.changes.0;
        self.changes.1 += other.changes.1;
    }

    /// How many came.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// How many should have come by `now` (ns): all that were sent up to the last that came, and those after
    /// it that are late.
    pub fn expected(&self, now: u64) -> u64 {
        let late = self.late();
        let noted = self.sent.iter().rev().find(|(at, _)| *at + late <= now);
        let end = noted.map_or(0, |(_, number)| number + 1).max(self.next);
        self.expected + self.first.map_or(0, |first| u64::from(end.saturating_sub(first)))
    }

    /// Share of the expected that did not come, 0 … 1; `None` if none was to come.
    pub fn loss(&self, now: u64) -> Option<f64> {
        let expected = self.expected(now);
        (expected > 0).then(|| expected.saturating_sub(self.received) as f64 / expected as f64)
    }

    /// Mean, quantiles (0.5, 0.95, 0.99) and maximum of the delays, s; `None` if none came.
    pub fn delays_s(&self) -> [Option<f64>; 5] {
        let [low, middle, high] = [0.5, 0.95, 0.99].map(|q| self.delays.quantile(q) as f64);
        let mean = self.delay_sum as f64 / self.received as f64;
        [mean, low, middle, high, self.delays.max() as f64]
            .map(|ns| (self.received > 0).then_some(ns / 1e9))
    }

    /// Mean of |D| of RFC 3550 §6.4.1, s: by how much delays of packets in succession differ.
    pub fn jitter_s(&self) -> Option<f64> {
        let (sum, count) = self.changes;
        (count > 0).then(|| sum as f64 / count as f64 / 1e9)
    }

    /// The rating R of a call, 0 … 93.2, if a packet was to come: packets are played as late as 99 % of those
    /// that come keep to, and what comes later is lost too. If none comes it is 0.
    pub fn rating(&self, now: u64) -> Option<f64> {
        // Of a bucket all packets are in time or none.
        let wanted = self.delays.quantile(PLAYED);
        let uppers = || self.delays.buckets().map(|(upper, _)| upper);
        let playout = uppers().find(|upper| *upper >= wanted).unwrap_or(wanted);
        let in_time: u64 =
            self.delays.buckets().filter(|(upper, _)| *upper <= playout).map(|(_, n)| n).sum();
        let expected = self.expected(now);
        (expected > 0).then(|| match in_time {
            0 => 0.0,
            _ => rating(playout as f64 / 1e6 + FILLING_MS, 1.0 - in_time as f64 / expected as f64),
        })
    }
}

/// The rating of ITU-T G.107 with its defaults (R₀ − I_s = 93.2) for G.711 with concealment of losses
/// that come at random (G.113 appendix I: I_e = 0, B_pl = 25.1), from mouth to ear in `delay` ms, with
/// a share `loss` of the packets lost. The delay's part is the fit of Cole and Rosenbluth (Voice over IP
/// performance monitoring, CCR 31(2), 2001), I_d = 0.024 d + 0.11 (d − 177.3) H(d − 177.3).
pub fn rating(delay: f64, loss: f64) -> f64 {
    let of_delay = 0.024 * delay + 0.11 * (delay - 177.3).max(0.0);
    let percent = 100.0 * loss;
    let of_loss = 95.0 * percent / (percent + 25.1);
    (93.2 - of_delay - of_loss).max(0.0)
}

/// The mean opinion score, 1 … 4.5, that goes with a rating up to 100 (ITU-T G.107 annex B).
pub fn opinion(rating: f64) -> f64 {
    let bend = rating * (rating - 60.0) * (100.0 - rating) * 7e-6;
    (1.0 + 0.035 * rating + bend).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn near(got: f64, expected: f64, within: f64) {
        assert!((got - expected).abs() <= within, "{got} for {expected}");
    }

    /// Worked out by hand: 100 ms cost 2.4, 277.3 ms cost 6.6552 + 11; 1 % lost costs 95 / 26.1.
    #[test]
    fn ratings_are_those_of_the_formula() {
        near(rating(0.0, 0.0), 93.2, 1e-9);
        near(rating(100.0, 0.0), 90.8, 1e-9);
        near(rating(277.3, 0.0), 93.2 - 6.6552 - 11.0, 1e-9);
        near(rating(0.0, 0.01), 93.2 - 3.639_846_7, 1e-6);
        near(rating(2000.0, 0.0), 0.0, 0.0);
        // G.107 has 4.41 for its defaults; at R = 60 the bend is none.
        near(opinion(93.2), 4.41, 0.005);
        near(opinion(60.0), 3.1, 1e-9);
        near(opinion(0.0), 1.0, 0.0);
    }

    /// A call of 50 packets a second from 100 ms on, of which those arrive that `comes` says, 30 ms later.
    fn call(packets: u64, comes: impl Fn(u64) -> bool) -> OneWay {
        let mut call = OneWay::new(100 * MS);
        for k in 0..packets {
            let sent = (100 + 20 * k) * MS;
            call.send(k as u32, sent);
            if comes(k) {
                call.receive(k as u32, sent, sent + 30 * MS);
            }
        }
        call
    }

    /// Ten packets from 3 on, of which number 7 is lost; what was sent before does not count, nor do
    /// those that are still under way.
    #[test]
    fn a_gap_is_a_loss() {
        let (mut all, now) = (OneWay::new(100 * MS), 330 * MS);
        assert_eq!((all.loss(now), all.rating(now), all.jitter_s()), (None, None, None));
        all.receive(2, 99 * MS, 130 * MS);
        for k in 0..12 {
            let sent = (100 + 20 * k) * MS;
            all.send(3 + k as u32, sent);
            if k < 10 && k != 4 {
                all.receive(3 + k as u32, sent, sent + (30 + 10 * (k % 2)) * MS);
            }
        }
        assert_eq!((all.expected(now), all.received()), (10, 9));
        near(all.loss(now).unwrap(), 0.1, 1e-9);
        // 30, 40, 30, 40, (lost), 40, 30, 40, 30, 40: seven of the eight changes are by 10 ms.
        near(all.jitter_s().unwrap(), 0.00875, 1e-9);
        let [mean, low, .., greatest] = all.delays_s().map(Option::unwrap);
        near(mean, (4.0 * 0.030 + 5.0 * 0.040) / 9.0, 1e-9);
        assert!((low / 0.040 - 1.0).abs() < 1.0 / 32.0 && greatest == 0.040, "{low} {greatest}");
        near(all.rating(now).unwrap(), rating(60.0, 0.1), 0.05);
    }

    /// 3000 packets in 60 s, of which none comes from number 1500 on, or none at all: what is a second old at the
    /// end is lost.
    #[test]
    fn a_dead_call_is_lost() {
        let end = 60_100 * MS;
        let half = call(3000, |k| k < 1500);
        near(half.expected(end) as f64, 2950.0, 5.0);
        near(half.loss(end).unwrap(), 1450.0 / 2950.0, 0.002);
        let none = call(3000, |_| false);
        near(none.expected(end) as f64, 2950.0, 5.0);
        assert_eq!((none.loss(end), none.rating(end)), (Some(1.0), Some(0.0)));
        // One that stopped long ago, or lost its first packets.
        assert_eq!(call(1000, |k| k < 900).expected(end), 1000);
        assert_eq!(call(1000, |k| k >= 100).loss(end), Some(0.1));
        let all = call(3000, |_| true);
        assert_eq!((all.expected(end), all.loss(end)), (3000, Some(0.0)));
    }

    /// Copies are no packets, and hide no losses.
    #[test]
    fn copies_do_not_count() {
        let (mut copied, end) = (call(1000, |k| k % 5 > 0), 60_000 * MS);
        for k in 0..1000 {
            if k % 5 > 1 {
                copied.receive(k as u32, (100 + 20 * k) * MS, (140 + 20 * k) * MS);
            }
        }
        near(copied.loss(end).unwrap(), 0.2, 1e-9);
        let other = call(1000, |k| k % 5 > 0);
        assert_eq!(copied.rating(end), other.rating(end));
    }

    #[test]
    fn flows_of_a_group_add_up() {
        let (mut one, mut other) = (OneWay::new(0), OneWay::new(0));
        (0..6).for_each(|k| [&mut one, &mut other].into_iter().for_each(|flow| flow.send(k, 0)));
        (0..4).for_each(|k| one.receive(k, 0, 10 * MS));
        [0, 5].into_iter().for_each(|k| other.receive(k, 0, 20 * MS));
        let mut both = OneWay::default();
        both.add(&one, 20 * MS);
        both.add(&other, 20 * MS);
        assert_eq!((both.expected(20 * MS), both.received()), (10, 6));
        near(both.delays_s()[0].unwrap(), 0.08 / 6.0, 1e-9);
    }
}
