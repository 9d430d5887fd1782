//! What a sender says of itself, as Linux does in `tcp_info`.

use super::super::options::Pacing;
use super::{DUPLICATES, Options, Recovery, Sender, State};
use crate::watch::{Look, Repairing, Values};

/// The state of congestion, numbered as Linux's `tcpi_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// Nothing is known to be lost or late.
    Open,
    /// Some packets were selectively acknowledged, none is known to be lost.
    Disorder,
    /// The window goes down after an ECN echo.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// A sender's state, in packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Info {
    /// The congestion window.
    pub cwnd: u32,
    /// The slow-start threshold; `None` before the first reduction.
    pub ssthresh: Option<u32>,
    /// The state of congestion.
    pub congestion: Congestion,
    /// Packets sent and not acknowledged, lost ones too.
    pub unacked: u32,
    /// Of these, packets selectively acknowledged; without selective acknowledgements the duplicates.
    pub sacked: u32,
    /// Of these, packets counted as lost, whether sent again or not.
    pub lost: u32,
    /// Of these, packets sent again.
    pub resent: u32,
    /// By how many packets some have come late at most, three at least.
    pub reordering: u32,
}

impl Sender {
    /// Writes what the sender does into `look`; `false` before it has begun.
    pub(crate) fn look(&mut self, now: u64, o: &Options, look: &mut Look) -> bool {
        if self.core.state < State::Open {
            return false;
        }
        look.phases.clear();
        look.gap = (o.pacing == Pacing::Paced).then(|| self.pace(now));
        let core = &mut self.core;
        if core.control.model(|model| model.look(look)).is_none() {
            (look.round, look.restarting) = (None, false);
            look.phases.push(match core.state {
                State::Reducing => "reduction",
                State::Recovery => "recovery",
                State::Loss => "timeout",
                _ if core.cwnd < core.ssthresh => "slow-start",
                _ => "congestion-avoidance",
            });
        }
        look.under_way = (core.una, core.end);
        look.repair = match core.state {
            State::Recovery => Repairing::Losses,
            State::Loss => Repairing::Timeout,
            _ => Repairing::Nothing,
        };
        look.cwnd = core.cwnd;
        (look.in_flight, look.undone) = match &self.recovery {
            Recovery::Rack(rack) => (rack.pipe(core), rack.undone),
            _ => (core.outstanding().saturating_sub(core.duplicates), 0),
        };
        true
    }

    /// Gives the values by which the congestion control decides, by name.
    pub(crate) fn values(&mut self, values: Values<'_>) {
        let Self { core, recovery } = self;
        let window = core.cwnd;
        if core.control.model(|model| model.values(window, values)).is_none() {
            core.control.values(core.ssthresh, values);
        }
        if let Recovery::Rack(rack) = recovery {
            rack.values(values);
        }
    }

    /// The state, for comparison with other senders. The call looks at each packet under way, so it is too
    /// slow to be made at each acknowledgement.
    pub fn info(&self) -> Info {
        let core = &self.core;
        let ((lost, resent), reordering) = match &self.recovery {
            Recovery::Rack(rack) => (rack.lost_and_resent(core), rack.reordering),
            _ => ((0, 0), 0),
        };
        Info {
            cwnd: core.cwnd as u32,
            ssthresh: core.ssthresh.is_finite().then_some(core.ssthresh as u32),
            congestion: match core.state {
                State::Recovery => Congestion::Recovery,
                State::Loss => Congestion::Loss,
                State::Reducing => Congestion::Reduced,
                _ if core.duplicates > 0 => Congestion::Disorder,
                _ => Congestion::Open,
            },
            unacked: core.outstanding(),
            sacked: core.duplicates,
            lost,
            resent,
            reordering: reordering.max(DUPLICATES),
        }
    }
}
