//! Loss probes (RFC 8985 §7).

use super::timers::Timer;
use crate::transport::tcp::Options;
use crate::transport::tcp::sender::{Sender, State};

/// The probe that is due, or under way.
#[derive(Clone, Default, Debug)]
pub(super) struct Probe {
    /// Past the number of the probe under way (TLP.end_seq); 0: there is none.
    end: u32,
    /// That was sent before (TLP.is_retrans).
    again: bool,
    /// One is due, whatever the window.
    due: bool,
    /// A round trip was measured since the last one, or the start of the connection: without that probes
    /// would keep a round trip that has grown from being measured (§7.3), and there is no time for one.
    measured: bool,
}

impl Probe {
    /// A round trip was measured, that of the handshake or another.
    pub(super) fn measured(&mut self) {
        self.measured = true;
    }

    /// Whether one is due, which it then is no more.
    pub(super) fn take(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// None is under way nor due (§7.1).
    pub(super) fn forget(&mut self) {
        (self.end, self.due) = (0, false);
    }
}

impl Sender {
    /// §7.2: a probe instead of the timeout, at the latest when that would be. Where §7.3 would not send
    /// it none is scheduled, so that the timeout is not put off. What a packet alone may be acknowledged
    /// later is the least timeout (Linux).
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: u64, o: &Options) {
        let (is_alone, srtt) = (self.outstanding() == 1, self.rtt.srtt());
        let repairs = self.state >= State::Recovery || self.sacked.ones() > 0;
        let rack = self.rack();
        let may = rack.probe.end == 0 && rack.probe.measured;
        if repairs || rack.timer == Timer::Reordering || !may {
            return;
        }
        let delayed = if is_alone { o.timer.rto.min.max(o.timer.rto.granularity) } else { 0 };
        rack.timer = Timer::Probe;
        self.deadline = rack.timeout_at.min(now + 2 * srtt + delayed);
    }

    /// A probe is due.
    pub(super) fn probe(&mut self, now: u64, o: &Options) {
        self.rack().probe.due = true;
        self.force = true;
        self.restart_timeout(now, o);
    }

    /// §7.3: new data, or the last packet once more.
    pub(super) fn send_probe(&mut self, new: bool) -> Option<u32> {
        self.next += u32::from(new);
        let last = if new { self.next } else { self.end }.checked_sub(1)?;
        if last < self.una {
            return None;
        }
        self.rack().probe = Probe { end: last + 1, again: !new, due: false, measured: false };
        Some(last)
    }

    /// §7.4.2: what `ack` and that a `duplicate` came say of the probe; whether that answers it. A model of
    /// the path is not told of a loss that the probe repaired: which it was is not known.
    pub(super) fn end_probe(&mut self, ack: u32, duplicate: bool, o: &Options) -> bool {
        let probe = &mut self.rack().probe;
        if probe.end == 0 || ack < probe.end {
            return false;
        }
        let needless = probe.again && duplicate;
        let repaired = probe.again && !duplicate && ack > probe.end;
        if needless || repaired || !probe.again {
            probe.end = 0;
        }
        // In a reduction that goes on the window gives way already.
        if repaired && self.state == State::Open && !o.control.has_model {
            let left = self.control.after_loss(o.window.whole(self.cwnd));
            self.begin_reduction(left, o);
            self.leave_reduction();
        }
        needless
    }
}
