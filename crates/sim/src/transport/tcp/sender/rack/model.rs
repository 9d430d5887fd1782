//! What a control with a model of the path learns: which packets are sent, arrive and are lost.

use super::{Core, Rack, State};
use crate::transport::tcp::control::{Repair, RepairChange, Sample};
use crate::transport::tcp::options::Options;
use crate::watch::{Value, Values};

impl Rack {
    /// Whether the application had nothing more to send: asked before it gives more, and at each
    /// acknowledgement.
    #[inline(never)]
    pub(in super::super) fn check_app_limit(&mut self, core: &Core) {
        if !self.has_model() {
            return;
        }
        let in_flight = self.pipe(core);
        let fills_window = f64::from(in_flight) + 1.0 > core.cwnd;
        let has_lost = in_flight < core.missing();
        let limited = core.has_nothing_left() && !fills_window && !has_lost;
        if let Some(delivery) = &mut self.delivery {
            delivery.prior_in_flight = in_flight;
            delivery.window_filled |= fills_window;
            if limited {
                delivery.limit(in_flight);
            }
        }
    }

    /// Packet `seq` is sent, the first time or `again`.
    pub(super) fn tell_sending(
        &mut self,
        core: &mut Core,
        now: u64,
        seq: u32,
        again: bool,
        o: &Options,
    ) {
        let at = self.last;
        let in_flight = self.pipe(core);
        let Some(delivery) = &mut self.delivery else { return };
        let restarts = in_flight <= 1 && delivery.app_limited != 0;
        let delivered = delivery.delivered;
        delivery.on_sent(at, seq, again, in_flight, &core.under_way());
        if self.own {
            return self.tell_own_sending(core, now, (seq, again), (in_flight, restarts), o);
        }
        if restarts {
            let window = &mut core.cwnd;
            core.control.model(|model| model.on_restart(at, delivered, window));
        }
    }

    /// What the sampler has counted, for who looks on.
    pub(in super::super) fn values(&self, values: Values<'_>) {
        let Some(delivery) = &self.delivery else { return };
        values("delivered", Value::Number(delivery.delivered.into()));
        values("lost", Value::Number(delivery.lost.into()));
        values("app_limited", Value::flag(delivery.app_limited != 0));
    }

    /// Tells of the losses that were found since.
    fn tell_losses(&mut self, core: &mut Core, now: u64) {
        if core.state < State::Recovery {
            return;
        }
        let mut next = self.oldest_timed_out(core).then_some(core.una);
        while let Some(seq) = next.take().or_else(|| self.tell()) {
            let Some(delivery) = &mut self.delivery else { return };
            if let Some(lost) = delivery.on_lost(now, seq) {
                let window = core.cwnd;
                core.control.model(|model| model.on_lost(&lost, window));
            }
        }
    }

    /// An acknowledgement may have begun or ended a repair. One that ends a repair and begins the next
    /// has done neither, as in Linux.
    pub(super) fn tell_change(&mut self, core: &mut Core, now: u64, before: State) {
        if core.state == State::Recovery && before != State::Recovery {
            self.tell_repair(core, now, Repair::Begins);
        } else if before >= State::Recovery && core.state < State::Recovery {
            self.tell_repair(core, now, Repair::Ends);
        }
    }

    /// The repair of losses begins or ends.
    pub(super) fn tell_repair(&mut self, core: &mut Core, now: u64, repair: Repair) {
        let in_flight = self.pipe(core);
        let delivered = self.delivery.as_ref().map_or(0, |delivery| delivery.delivered);
        let change = RepairChange { repair, in_flight, delivered };
        let window = &mut core.cwnd;
        core.control.model(|model| model.on_repair(&change, window));
        self.tell_losses(core, now);
    }

    /// An acknowledgement is dealt with: it was the first to acknowledge `newly` packets, and tells of so many
    /// `marks`; `marked`: it is the first in a round trip that tells of any.
    pub(super) fn follow_model(
        &mut self,
        core: &mut Core,
        now: u64,
        newly: u32,
        (marks, marked): (u32, bool),
        o: &Options,
    ) {
        self.tell_losses(core, now);
        if newly == 0 && !marked {
            return;
        }
        let in_flight = self.pipe(core);
        let calm = core.state == State::Open && core.una > self.echoed_at;
        let Some(delivery) = &mut self.delivery else { return };
        delivery.marked += marks;
        let sample = Sample {
            now,
            srtt: core.rtt.srtt(),
            newly,
            total: delivery.delivered,
            prior_in_flight: delivery.prior_in_flight,
            in_flight,
            window_filled: std::mem::take(&mut delivery.window_filled),
            marked,
            marks,
            total_marks: delivery.marked,
            calm,
            ..delivery.sample(now)
        };
        let window = &mut core.cwnd;
        let probing = core.control.model(|model| {
            model.on_sample(&sample, window);
            model.is_probing_rtt()
        });
        if probing == Some(true) {
            delivery.limit(in_flight);
        }
        core.cwnd = core.cwnd.min(o.window.most());
    }
}
