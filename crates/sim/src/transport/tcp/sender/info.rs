//! What a sender says of itself, as Linux does in `tcp_info`.

use super::{DUPLICATES, Sender, State};

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
    /// The state for who compares this sender with others. It looks at each packet under way: not for each
    /// acknowledgement.
    pub fn info(&self) -> Info {
        let sacked = if self.rack.is_some() { self.sacked.ones() } else { self.duplicates };
        let (lost, resent) = self.lost_and_resent();
        Info {
            cwnd: self.cwnd as u32,
            ssthresh: self.ssthresh.is_finite().then_some(self.ssthresh as u32),
            congestion: match self.state {
                State::Recovery => Congestion::Recovery,
                State::Loss => Congestion::Loss,
                State::Reducing => Congestion::Reduced,
                _ if sacked > 0 => Congestion::Disorder,
                _ => Congestion::Open,
            },
            unacked: self.outstanding(),
            sacked,
            lost,
            resent,
            reordering: self.rack.as_ref().map_or(0, |rack| rack.reordering).max(DUPLICATES),
        }
    }
}
