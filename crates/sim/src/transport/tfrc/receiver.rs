//! The receiving half: measures the loss event rate, and tells it once a round trip (RFC 5348 §6).

use super::loss::LossHistory;
use super::{Options, seconds};
use crate::results::distinct::Distinct;

/// What a data packet says beside its number (§3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// Its number.
    pub seq: u32,
    /// When it was sent, ns.
    pub sent: u64,
    /// The sender's round-trip time, ns; 0 while it knows none.
    pub rtt: u64,
    /// Whether it is marked.
    pub marked: bool,
}

/// What the receiver says (§3.2.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// When the last packet was sent, plus the time it waited for this answer, ns.
    pub echo: u64,
    /// The loss event rate, 0 … 1.
    pub p: f32,
    /// Packets per second that arrive.
    pub rate: f32,
}

/// Packets that arrived in a span of time.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    packets: u32,
    since: u64,
}

/// The receiver's state.
#[derive(Clone, Default, Debug)]
pub struct Receiver {
    /// Packets that arrived.
    pub(crate) received: Distinct,
    losses: LossHistory,
    /// The last packet, and when it arrived.
    last: Option<(Data, u64)>,
    /// Since the last feedback, and between that and the one before.
    now: Count,
    before: Count,
    /// The greatest rate reported so far, packets per second.
    most: f64,
    /// There was nothing to tell when the timer came last.
    silent: bool,
}

impl Receiver {
    /// A packet arrives. Returns whether feedback is due at once.
    pub fn on_data(&mut self, now: u64, data: Data, o: &Options) -> bool {
        self.received.take(data.seq);
        self.now.packets += 1;
        let first = self.last.is_none();
        if first {
            (self.now.since, self.before.since) = (now, now);
        }
        // Out of order it says nothing new of sender and path.
        if self.last.is_none_or(|(last, _)| data.seq > last.seq) {
            self.last = Some((data, now));
        }
        let most = self.most.max(self.rate(now, data.rtt));
        let event = self.losses.arrive(data.seq, now, data.marked, data.rtt, most, o.discounting);
        // §6.3: without a round-trip time each packet is answered.
        first || data.rtt == 0 || event || self.silent
    }

    /// Packets per second in the last round trip, or somewhat more (§6.2); 0 while none is known.
    fn rate(&self, now: u64, rtt: u64) -> f64 {
        if rtt == 0 {
            return 0.0;
        }
        let Count { packets, since } = self.now;
        let (packets, time) = if now - since >= rtt {
            (packets, now - since)
        } else {
            (packets + self.before.packets, now - self.before.since)
        };
        f64::from(packets) / seconds(time.max(rtt))
    }

    /// The feedback, if there is something to tell, and when the next is due at the latest (§6.2).
    pub fn feedback(&mut self, now: u64, o: &Options) -> (Option<Feedback>, u64) {
        let Some((data, arrived)) = self.last else { return (None, u64::MAX) };
        let next = now.saturating_add(data.rtt.max(1));
        self.silent = self.now.packets == 0;
        if self.silent {
            return (None, u64::MAX); // the next packet is answered at once
        }
        let p = self.losses.rate(o.discounting);
        let rate = self.rate(now, data.rtt);
        self.most = self.most.max(rate);
        self.before = self.now;
        self.now = Count { packets: 0, since: now };
        let echo = data.sent + (now - arrived);
        (Some(Feedback { echo, p: p as f32, rate: rate as f32 }), next)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Timeout;
    use super::*;

    const MS: u64 = 1_000_000;
    const O: Options = Options { ecn: false, discounting: true, timeout: Timeout::RoundTrips };

    fn data(seq: u32, rtt: u64) -> Data {
        Data { seq, sent: u64::from(seq) * 10 * MS, rtt, marked: false }
    }

    #[test]
    fn feedback_comes_at_first_then_once_a_round_trip() {
        let mut r = Receiver::default();
        assert!(r.on_data(50 * MS, data(1, 0), &O));
        let (Some(feedback), next) = r.feedback(53 * MS, &O) else { panic!("no feedback") };
        assert_eq!((feedback.echo, next), (13 * MS, 53 * MS + 1), "3 ms after it came");
        assert_eq!((feedback.p, feedback.rate), (0.0, 0.0));
        assert!(r.on_data(60 * MS, data(2, 0), &O), "it knows no round trip yet");
        r.feedback(60 * MS, &O);
        for seq in 3..13 {
            assert!(!r.on_data(60 * MS + u64::from(seq - 2) * 10 * MS, data(seq, 100 * MS), &O));
        }
        // Ten packets in 100 ms.
        let (Some(feedback), next) = r.feedback(160 * MS, &O) else { panic!("no feedback") };
        assert_eq!((feedback.rate, next), (100.0, 260 * MS));
        // Nothing came: no feedback, but the next packet is answered at once.
        assert_eq!(r.feedback(260 * MS, &O), (None, u64::MAX));
        assert!(r.on_data(400 * MS, data(13, 100 * MS), &O));
    }

    #[test]
    fn a_loss_event_is_told_at_once_with_the_rate_of_a_round_trip() {
        let mut r = Receiver::default();
        for seq in 1..40 {
            r.on_data(u64::from(seq) * 10 * MS, data(seq, 100 * MS), &O);
            if seq % 10 == 0 {
                r.feedback(u64::from(seq) * 10 * MS, &O);
            }
        }
        // 40 is lost; the third packet after it tells.
        let losses: Vec<bool> =
            (41..44).map(|n| r.on_data(u64::from(n) * 10 * MS, data(n, 100 * MS), &O)).collect();
        assert_eq!(losses, [false, false, true]);
        let (Some(feedback), _) = r.feedback(430 * MS, &O) else { panic!("no feedback") };
        // 12 packets of the 130 ms since 300 ms.
        assert!((feedback.rate - 92.3).abs() < 0.1, "{}", feedback.rate);
        assert!(feedback.p > 0.0);
    }
}
