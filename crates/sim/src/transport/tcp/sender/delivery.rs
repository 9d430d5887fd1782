//! How fast what was sent arrives: delivery-rate samples (draft-ietf-ccwg-bbr, *Delivery Rate
//! Samples*), and the sender of a control with a model of the path, which is told of each.

use super::{Rack, Sender, State};
use crate::transport::tcp::Options;
use crate::transport::tcp::control::{Lost, Repair, Sample};

/// What was known as a packet was sent.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    /// When the packet was sent whose arrival began the interval in which this one was.
    interval_from: u64,
    /// When something had arrived last.
    delivered_at: u64,
    delivered: u32,
    lost: u32,
    in_flight: u32,
    app_limited: bool,
    /// It is sent again.
    again: bool,
    /// Its loss was told.
    told: bool,
}

/// The sampler's state, in packets and ns.
#[derive(Clone, Default, Debug)]
pub(super) struct Delivery {
    /// Of each packet under way: number n at place n modulo the length, a power of two.
    sent: Box<[Sent]>,
    delivered: u32,
    delivered_at: u64,
    interval_from: u64,
    lost: u32,
    /// What was sent before so much was delivered was limited by the application; 0: nothing.
    app_limited: u32,
    min_rtt: u64,
    /// The newest of what this acknowledgement is the first to acknowledge, and when it was sent.
    newest: Option<(Sent, u64)>,
    /// Under way before this acknowledgement, and whether that was all that the window allows.
    prior_in_flight: u32,
    window_limited: bool,
}

impl Delivery {
    fn place(&self, n: u32) -> usize {
        n as usize & (self.sent.len() - 1)
    }

    /// Packet `seq` is sent at `at`; with it `in_flight` are under way, and numbers of `una..end`.
    fn on_sent(&mut self, at: u64, seq: u32, again: bool, in_flight: u32, [una, end]: [u32; 2]) {
        if (end - una) as usize > self.sent.len() {
            self.grow(una, end);
        }
        if in_flight <= 1 {
            (self.interval_from, self.delivered_at) = (at, at);
        }
        let place = self.place(seq);
        self.sent[place] = Sent {
            interval_from: self.interval_from,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            lost: self.lost,
            in_flight,
            app_limited: self.app_limited != 0,
            again,
            told: false,
        };
    }

    #[cold]
    fn grow(&mut self, una: u32, end: u32) {
        let length = ((end - una) as usize).next_power_of_two().max(16);
        let mut larger = vec![Sent::default(); length].into_boxed_slice();
        for n in una..una + self.sent.len() as u32 {
            larger[n as usize & (length - 1)] = self.sent[self.place(n)];
        }
        self.sent = larger;
    }

    /// Packet `n`, sent at `at`, has arrived.
    pub(super) fn on_arrived(&mut self, now: u64, n: u32, at: u64) {
        self.delivered += 1;
        self.delivered_at = now;
        if self.newest.is_none_or(|(_, newest)| at > newest) {
            self.newest = Some((self.sent[self.place(n)], at));
            self.interval_from = self.interval_from.max(at);
        }
    }

    /// The application had nothing more to send.
    fn limit(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// The sample of what [`Delivery::on_arrived`] told since the last.
    fn sample(&mut self, now: u64) -> Sample {
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Some((sent, at)) = self.newest.take() else { return Sample::default() };
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
            rate: if reliable { f64::from(delivered) / interval as f64 } else { 0.0 },
            app_limited: sent.app_limited,
            tx_in_flight: sent.in_flight,
            lost: self.lost - sent.lost,
            ..Sample::default()
        }
    }
}

/// With a model of the path.
impl Sender {
    fn delivery(&mut self) -> Option<&mut Delivery> {
        self.rack.as_deref_mut()?.delivery.as_mut()
    }

    /// Whether the application had nothing more to send: asked before it gives more, and at each
    /// acknowledgement.
    #[inline(never)]
    pub(super) fn check_app_limit(&mut self) {
        if self.delivery().is_none() {
            return;
        }
        let in_flight = self.pipe_by_rack();
        let window_limited = f64::from(in_flight) + 1.0 > self.cwnd;
        let limited = self.has_nothing_left() && !window_limited && !self.has_lost_by_rack();
        if let Some(delivery) = self.delivery() {
            (delivery.prior_in_flight, delivery.window_limited) = (in_flight, window_limited);
            if limited {
                delivery.limit(in_flight);
            }
        }
    }

    /// Packet `seq` is sent at `at`, the first time or `again`.
    pub(super) fn sent_with_model(&mut self, at: u64, seq: u32, again: bool) {
        let in_flight = self.pipe_by_rack();
        let under_way = [self.una, self.end];
        let Some(delivery) = self.delivery() else { return };
        let restarts = in_flight <= 1 && delivery.app_limited != 0;
        let delivered = delivery.delivered;
        delivery.on_sent(at, seq, again, in_flight, under_way);
        if restarts {
            let window = &mut self.cwnd;
            self.control.model(|model| model.on_restart(at, delivered, window));
        }
    }

    /// Tells of the losses that RACK has found since.
    fn tell_losses(&mut self, now: u64) {
        if self.state < State::Recovery {
            return;
        }
        let Some(mut rack) = self.rack.take() else { return };
        for seq in self.una..self.end {
            if let Some(lost) = rack.find_lost(now, seq, self.sacked.contains(seq)) {
                let window = self.cwnd;
                self.control.model(|model| model.on_lost(&lost, window));
            }
        }
        self.rack = Some(rack);
    }

    /// The repair of losses begins or ends.
    pub(super) fn tell_repair(&mut self, now: u64, repair: Repair) {
        let in_flight = self.pipe_by_rack();
        let delivered = self.delivery().map_or(0, |delivery| delivery.delivered);
        let window = &mut self.cwnd;
        self.control.model(|model| model.on_repair(repair, in_flight, delivered, window));
        self.tell_losses(now);
    }

    /// An acknowledgement is dealt with: it was the first to acknowledge `newly` packets.
    pub(super) fn follow_model(&mut self, now: u64, newly: u32, marked: bool, o: &Options) {
        self.tell_losses(now);
        if newly == 0 && !marked {
            return;
        }
        let (in_flight, srtt) = (self.pipe_by_rack(), self.rtt.srtt());
        let Some(delivery) = self.delivery() else { return };
        let sample = Sample {
            now,
            srtt,
            newly,
            total: delivery.delivered,
            prior_in_flight: delivery.prior_in_flight,
            in_flight,
            window_limited: delivery.window_limited,
            marked,
            ..delivery.sample(now)
        };
        let window = &mut self.cwnd;
        let probing = self.control.model(|model| {
            model.on_sample(&sample, window);
            model.is_probing_rtt()
        });
        if probing == Some(true)
            && let Some(delivery) = self.delivery()
        {
            delivery.limit(in_flight);
        }
        self.cwnd = self.cwnd.min(f64::from(o.window) + 1.0);
    }
}

impl Rack {
    /// Packet `seq`, if it is lost and this was not told yet.
    fn find_lost(&mut self, now: u64, seq: u32, sacked: bool) -> Option<Lost> {
        if sacked || !self.is_older(seq) {
            return None;
        }
        let delivery = self.delivery.as_mut()?;
        let place = delivery.place(seq);
        let sent = &mut delivery.sent[place];
        if std::mem::replace(&mut sent.told, true) {
            return None;
        }
        delivery.lost += 1;
        Some(Lost {
            now,
            seq,
            tx_in_flight: sent.in_flight,
            lost: delivery.lost - sent.lost,
            app_limited: sent.app_limited,
            total: delivery.delivered,
        })
    }
}
