//! Loss probes (RFC 8985 §7).

use super::repairs::leave_reduction;
use super::timers::Timer;
use super::{Core, Rack, State};
use crate::transport::tcp::options::Options;

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

impl Rack {
    /// §7.2: a probe instead of the timeout, at the latest when that would be. Where §7.3 would not send
    /// it none is scheduled, so that the timeout is not put off. What a packet alone may be acknowledged
    /// later is the least timeout (Linux).
    #[inline]
    pub(super) fn schedule_probe(&mut self, core: &mut Core, now: u64, o: &Options) {
        let repairs = core.state >= State::Recovery || !core.sacked.is_empty();
        let may = self.probe.end == 0 && self.probe.measured;
        if repairs || self.timer == Timer::Reordering || !may {
            return;
        }
        let is_alone = core.outstanding() == 1;
        let bounds = &o.timer.rto;
        let delayed = if is_alone { bounds.min.max(bounds.granularity) } else { 0 };
        self.timer = Timer::Probe;
        core.deadline = self.timeout_at.min(now + 2 * core.rtt.srtt() + delayed);
    }

    /// A probe is due.
    pub(super) fn probe(&mut self, core: &mut Core, now: u64, o: &Options) {
        self.probe.due = true;
        core.force = true;
        self.restart_timeout(core, now, o);
    }

    /// §7.3: new data, or the last packet once more.
    pub(super) fn send_probe(&mut self, core: &mut Core, new: bool) -> Option<u32> {
        core.next += u32::from(new);
        let last = if new { core.next } else { core.end }.checked_sub(1)?;
        if last < core.una {
            return None;
        }
        self.probe = Probe { end: last + 1, again: !new, due: false, measured: false };
        Some(last)
    }

    /// §7.4.2: draws conclusions about the probe from `ack` and from a `duplicate`; returns whether the probe
    /// is answered. A model of the path does not learn of a loss that the probe repaired, since it is unknown
    /// which packet was lost.
    pub(super) fn end_probe(
        &mut self,
        core: &mut Core,
        now: u64,
        (ack, duplicate): (u32, bool),
        o: &Options,
    ) -> bool {
        let probe = &mut self.probe;
        if probe.end == 0 || ack < probe.end {
            return false;
        }
        let needless = probe.again && duplicate;
        let repaired = probe.again && !duplicate && ack > probe.end;
        if needless || repaired || !probe.again {
            probe.end = 0;
        }
        // During a reduction the window goes down already.
        if repaired && core.state == State::Open {
            if self.own {
                self.tell_probed_loss(core, now, o);
            } else if !self.has_model() {
                self.reduce_for_loss(core, o);
                leave_reduction(core);
            }
        }
        needless
    }
}
