//! How fast what was sent arrives: delivery-rate samples (draft-ietf-ccwg-bbr, *Delivery Rate
//! Samples*).

use std::ops::Range;

use crate::transport::tcp::control::{Lost, Sample};

/// The state as a packet was sent.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    /// When the packet was sent whose arrival began the interval in which this one was.
    interval_from: u64,
    /// When something had arrived last.
    delivered_at: u64,
    delivered: u32,
    marked: u32,
    lost: u32,
    in_flight: u32,
    app_limited: bool,
    /// It was sent again.
    again: bool,
    /// The model knows that it was lost.
    told: bool,
}

/// The sampler's state, in packets and ns.
#[derive(Clone, Default, Debug)]
pub(super) struct Delivery {
    /// Of each packet under way: number n at place n modulo the length, a power of two.
    sent: Box<[Sent]>,
    pub(super) delivered: u32,
    /// Of that, marked.
    pub(super) marked: u32,
    delivered_at: u64,
    interval_from: u64,
    pub(super) lost: u32,
    /// Until `delivered` reaches this, samples count as limited by the application; 0: none do.
    pub(super) app_limited: u32,
    min_rtt: u64,
    /// The newest of what this acknowledgement is the first to acknowledge, when it was sent, and its
    /// number.
    newest: Option<(Sent, u64, u32)>,
    /// Under way before this acknowledgement.
    pub(super) prior_in_flight: u32,
    /// The window was full since the last sample: before an acknowledgement, as more leave only behind one.
    pub(super) window_filled: bool,
}

impl Delivery {
    fn place(&self, n: u32) -> usize {
        n as usize & (self.sent.len() - 1)
    }

    /// Packet `seq` is sent at `at`; with it `in_flight` are in the network, of the numbers `under_way`.
    pub(super) fn on_sent(
        &mut self,
        at: u64,
        seq: u32,
        again: bool,
        in_flight: u32,
        under_way: &Range<u32>,
    ) {
        if under_way.len() > self.sent.len() {
            self.grow(under_way);
        }
        if in_flight <= 1 {
            (self.interval_from, self.delivered_at) = (at, at);
        }
        let place = self.place(seq);
        self.sent[place] = Sent {
            interval_from: self.interval_from,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            marked: self.marked,
            lost: self.lost,
            in_flight,
            app_limited: self.app_limited != 0,
            again,
            told: false,
        };
    }

    #[cold]
    fn grow(&mut self, under_way: &Range<u32>) {
        let length = under_way.len().next_power_of_two().max(16);
        let mut larger = vec![Sent::default(); length].into_boxed_slice();
        for n in under_way.start..under_way.start + self.sent.len() as u32 {
            larger[n as usize & (length - 1)] = self.sent[self.place(n)];
        }
        self.sent = larger;
    }

    /// Packet `n`, sent at `at`, has arrived.
    pub(super) fn on_arrived(&mut self, now: u64, n: u32, at: u64) {
        self.delivered += 1;
        self.delivered_at = now;
        if self.newest.is_none_or(|(_, newest, _)| at > newest) {
            self.newest = Some((self.sent[self.place(n)], at, n));
            self.interval_from = self.interval_from.max(at);
        }
    }

    /// The application had nothing more to send.
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// The newest packet of the next sample: its number, and when it was sent.
    pub(super) fn newest(&self) -> Option<(u32, u64)> {
        self.newest.as_ref().map(|&(_, at, n)| (n, at))
    }

    /// The sample over the arrivals that [`Delivery::on_arrived`] has noted since the last sample.
    pub(super) fn sample(&mut self, now: u64) -> Sample {
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Some((sent, at, _)) = self.newest.take() else { return Sample::default() };
        let rtt = (!sent.again).then(|| now.saturating_sub(at).max(1));
        if let Some(rtt) = rtt
            && (self.min_rtt == 0 || rtt < self.min_rtt)
        {
            self.min_rtt = rtt;
        }
        let delivered = self.delivered - sent.delivered;
        let interval =
            (at.saturating_sub(sent.interval_from)).max(now - sent.delivered_at.min(now));
        let reliable = interval > 0 && interval >= self.min_rtt;
        Sample {
            rtt,
            prior_delivered: sent.delivered,
            delivered,
            interval: if reliable { interval } else { 0 },
            rate: if reliable { f64::from(delivered) / interval as f64 } else { 0.0 },
            app_limited: sent.app_limited,
            tx_in_flight: sent.in_flight,
            lost: self.lost - sent.lost,
            marked_since: self.marked - sent.marked,
            ..Sample::default()
        }
    }

    /// The loss of packet `seq`, found at `now`, if the model does not know of it yet.
    pub(super) fn on_lost(&mut self, now: u64, seq: u32) -> Option<Lost> {
        let place = self.place(seq);
        let sent = &mut self.sent[place];
        if std::mem::replace(&mut sent.told, true) {
            return None;
        }
        self.lost += 1;
        Some(Lost {
            now,
            seq,
            tx_in_flight: sent.in_flight,
            lost: self.lost - sent.lost,
            app_limited: sent.app_limited,
            total: self.delivered,
        })
    }
}
