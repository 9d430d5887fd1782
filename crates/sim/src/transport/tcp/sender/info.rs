//! What a sender says of itself, as Linux does in `tcp_info`.

use super::{DUPLICATES, Recovery, Sender, State};

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
