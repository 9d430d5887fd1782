//! The sender of a control with a model of the path, which is told of what is sent, what arrives and
//! what is lost.

use super::delivery::Delivery;
use super::{Sender, State};
use crate::transport::tcp::Options;
use crate::transport::tcp::control::{Repair, Sample};

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
        let mut next = self.oldest_timed_out().then_some(self.una);
        while let Some(seq) = next.take().or_else(|| self.rack.as_deref_mut()?.tell()) {
            if let Some(lost) = self.delivery().and_then(|told| told.on_lost(now, seq)) {
                let window = self.cwnd;
                self.control.model(|model| model.on_lost(&lost, window));
            }
        }
    }

    /// An acknowledgement may have begun or ended a repair. One that ends a repair and begins the next
    /// has done neither, as in Linux.
    pub(super) fn tell_change(&mut self, now: u64, before: State) {
        if self.state == State::Recovery && before != State::Recovery {
            self.tell_repair(now, Repair::Begins);
        } else if before >= State::Recovery && self.state < State::Recovery {
            self.tell_repair(now, Repair::Ends);
        }
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
        self.cwnd = self.cwnd.min(o.window.most());
    }
}
