//! The phases, and how fast and how much they send (the table of *Summary of Control Behavior in the
//! State Machine*).

use Phase::{Cruise, Down, Drain, Refill, Startup, Up};

/// The least gain that doubles the rate each round, with a window of twice the BDP.
pub(super) const STARTUP_GAIN: f64 = 2.77;

/// What it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// In the order of [`Phase`].
pub(super) const NAMES: [&str; 7] =
    ["startup", "drain", "down", "cruise", "refill", "up", "probe-rtt"];

impl Phase {
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Startup => STARTUP_GAIN,
            Drain => 0.5,
            Down => 0.9,
            Cruise | Refill | Self::ProbeRtt => 1.0,
            Up => 1.25,
        }
    }

    pub(super) fn window_gain(self) -> f64 {
        match self {
            Startup | Drain | Down | Cruise | Refill => 2.0,
            Up => 2.25,
            Self::ProbeRtt => 0.5,
        }
    }

    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Down | Cruise | Refill | Up)
    }

    /// Whether it sends more than is known to fit.
    pub(super) fn accelerates(self) -> bool {
        matches!(self, Startup | Refill | Up)
    }
}

/// What the acknowledgements that come in are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Acks {
    Calm,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}
