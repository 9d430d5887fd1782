//! Congestion control: how much the window gives way to a signal, and how it grows again.
//!
//! The sender decides *when* (once a window, after a timeout, not while the window is not used);
//! a [`Control`] decides *by how much*. Windows are in packets, times in ns.

mod cubic;
mod dctcp;
pub(crate) mod prague;

use cubic::Cubic;
use dctcp::Dctcp;
use prague::Prague;

/// A choice of congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Half, and a packet a round trip (RFC 5681).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// Data Center TCP (RFC 8257).
    Dctcp,
    /// Prague, for L4S (RFC 9331).
    Prague,
}

impl Algorithm {
    /// Whether the window follows the share of marks: an acknowledgement has to echo just the marks of
    /// what it acknowledges (RFC 8257 §3.2, RFC 9331 §4.2).
    pub fn is_scalable(self) -> bool {
        matches!(self, Self::Dctcp | Self::Prague)
    }
}

/// The congestion control of one connection. Reno has no state; the others' is aside, so that the
/// sender stays small.
#[derive(Clone, Default, Debug)]
pub enum Control {
    /// See [`Algorithm::Reno`].
    #[default]
    Reno,
    /// See [`Algorithm::Cubic`].
    Cubic(Box<Cubic>),
    /// See [`Algorithm::Dctcp`].
    Dctcp(Box<Dctcp>),
    /// See [`Algorithm::Prague`].
    Prague(Box<Prague>),
}

impl From<Algorithm> for Control {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Reno => Self::Reno,
            Algorithm::Cubic => Self::Cubic(Box::default()),
            Algorithm::Dctcp => Self::Dctcp(Box::default()),
            Algorithm::Prague => Self::Prague(Box::default()),
        }
    }
}

impl Control {
    /// What an acknowledgement in slow start adds to the window.
    #[inline]
    pub fn slow_start(&self) -> f64 {
        match self {
            Self::Cubic(cubic) => cubic.slow_start(),
            _ => 1.0,
        }
    }

    /// By how much a paced sender is faster than the window a round trip: twice in slow start, so
    /// that pacing does not stop the window from doubling; else as Linux and, for Prague, its authors
    /// have it.
    pub fn pacing_gain(&self, slow_start: bool) -> f64 {
        match self {
            _ if slow_start => 2.0,
            Self::Prague(_) => 1.03,
            Self::Reno | Self::Cubic(_) | Self::Dctcp(_) => 1.2,
        }
    }

    /// A round trip of slow start was measured, in ns: whether it is time to leave slow start.
    #[inline]
    pub fn on_slow_start_round(&mut self, rtt: u64) -> bool {
        match self {
            Self::Cubic(cubic) => cubic.on_round(rtt),
            _ => false,
        }
    }

    /// What an acknowledgement in congestion avoidance adds to the window `cwnd`; `srtt` is the
    /// smoothed round trip. Those that have more to work out do it out of line.
    #[inline(always)]
    pub fn growth(&mut self, cwnd: f64, acked: u32, now: u64, srtt: u64) -> f64 {
        match self {
            Self::Reno | Self::Dctcp(_) => 1.0 / cwnd,
            Self::Cubic(cubic) => cubic.growth(cwnd, acked, now, srtt),
            Self::Prague(prague) => prague.growth(cwnd, acked),
        }
    }

    /// The window that is left of `window` after a loss.
    pub fn after_loss(&mut self, window: f64) -> f64 {
        match self {
            // RFC 8257 §3.5: a loss counts as for anybody.
            Self::Reno | Self::Dctcp(_) | Self::Prague(_) => window / 2.0,
            Self::Cubic(cubic) => cubic.reduce(window),
        }
    }

    /// Whether an ECN echo may reduce the window, a window of data after the last reduction.
    #[inline]
    pub fn may_reduce(&self, now: u64) -> bool {
        match self {
            Self::Prague(prague) => prague.may_reduce(now),
            _ => true,
        }
    }

    /// The window that is left of `window` after an ECN echo.
    #[inline]
    pub fn after_echo(&mut self, window: f64, now: u64) -> f64 {
        match self {
            Self::Reno => window / 2.0,
            Self::Cubic(cubic) => cubic.reduce(window),
            Self::Dctcp(dctcp) => dctcp.after_echo(window),
            Self::Prague(prague) => prague.after_echo(window, now),
        }
    }

    /// The window begins anew after a timeout.
    pub fn on_timeout(&mut self) {
        if let Self::Cubic(cubic) = self {
            cubic.on_timeout();
        }
    }

    /// Every acknowledgement, before anything else: it acknowledges `acked` packets up to `ack`,
    /// with or without an echo, while packets up to `end` have been sent; `srtt` is the smoothed round
    /// trip.
    #[inline]
    pub fn on_ack(&mut self, acked: u32, echo: bool, [ack, end]: [u32; 2], [now, srtt]: [u64; 2]) {
        match self {
            Self::Dctcp(dctcp) => dctcp.on_ack(acked, echo, ack, end),
            Self::Prague(prague) => prague.on_ack(acked, echo, [ack, end], [now, srtt]),
            Self::Reno | Self::Cubic(_) => {}
        }
    }

    /// An acknowledgement left the window as it is, because the application did not fill it.
    #[inline]
    pub fn unused(&mut self, now: u64) {
        if let Self::Cubic(cubic) = self {
            cubic.unused(now);
        }
    }
}
