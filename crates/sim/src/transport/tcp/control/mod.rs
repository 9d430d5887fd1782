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
pub struct Control(Option<Box<State>>);

#[derive(Clone, Debug)]
enum State {
    Cubic(Cubic),
    Dctcp(Dctcp),
    Prague(Prague),
}

impl Control {
    /// The state of a new connection; `rfc8312` chooses the CUBIC.
    pub fn new(algorithm: Algorithm, rfc8312: bool) -> Self {
        Self(
            match algorithm {
                Algorithm::Reno => None,
                Algorithm::Cubic => Some(State::Cubic(Cubic::new(rfc8312))),
                Algorithm::Dctcp => Some(State::Dctcp(Dctcp::default())),
                Algorithm::Prague => Some(State::Prague(Prague::default())),
            }
            .map(Box::new),
        )
    }

    /// What an acknowledgement in slow start adds to the window.
    #[inline]
    pub fn slow_start(&self) -> f64 {
        match self.0.as_deref() {
            Some(State::Cubic(cubic)) => cubic.slow_start(),
            _ => 1.0,
        }
    }

    /// By how much a paced sender is faster than the window a round trip: twice in slow start, so
    /// that pacing does not stop the window from doubling; else as Linux and, for Prague, its authors
    /// have it.
    pub fn pacing_gain(&self, slow_start: bool) -> f64 {
        match self.0.as_deref() {
            _ if slow_start => 2.0,
            Some(State::Prague(_)) => 1.03,
            None | Some(State::Cubic(_) | State::Dctcp(_)) => 1.2,
        }
    }

    /// Whether slow start ends early by round trips.
    pub fn has_hystart(&self) -> bool {
        matches!(self.0.as_deref(), Some(State::Cubic(_)))
    }

    /// A round trip of slow start was measured, in ns: whether it is time to leave slow start.
    #[inline]
    pub fn on_slow_start_round(&mut self, rtt: u64) -> bool {
        match self.0.as_deref_mut() {
            Some(State::Cubic(cubic)) => cubic.on_round(rtt),
            _ => false,
        }
    }

    /// What an acknowledgement in congestion avoidance adds to the window `cwnd`; `srtt` is the
    /// smoothed round trip. Those that have more to work out do it out of line.
    #[inline(always)]
    pub fn growth(&mut self, cwnd: f64, acked: u32, now: u64, srtt: u64) -> f64 {
        match self.0.as_deref_mut() {
            None | Some(State::Dctcp(_)) => 1.0 / cwnd,
            Some(State::Cubic(cubic)) => cubic.growth(cwnd, acked, 1.0, [now, srtt]),
            Some(State::Prague(prague)) => prague.growth(cwnd, acked),
        }
    }

    /// The same where it counts as an acknowledgement for each of the packets; of the window `cwnd`
    /// `whole` packets are used.
    pub fn growth_by_packets(
        &mut self,
        [cwnd, whole]: [f64; 2],
        acked: u32,
        now: u64,
        srtt: u64,
    ) -> f64 {
        let counted = f64::from(acked);
        match self.0.as_deref_mut() {
            None | Some(State::Dctcp(_)) => counted / whole,
            Some(State::Cubic(cubic)) => cubic.growth(cwnd, acked, counted, [now, srtt]),
            Some(State::Prague(prague)) => prague.growth(cwnd, acked),
        }
    }

    /// The window that is left of `window` after a loss.
    pub fn after_loss(&mut self, window: f64) -> f64 {
        match self.0.as_deref_mut() {
            // RFC 8257 §3.5: a loss counts as for anybody.
            None | Some(State::Dctcp(_) | State::Prague(_)) => window / 2.0,
            Some(State::Cubic(cubic)) => cubic.reduce(window),
        }
    }

    /// Whether an ECN echo may reduce the window, a window of data after the last reduction.
    #[inline]
    pub fn may_reduce(&self, now: u64) -> bool {
        match self.0.as_deref() {
            Some(State::Prague(prague)) => prague.may_reduce(now),
            _ => true,
        }
    }

    /// The window that is left of `window` after an ECN echo.
    #[inline]
    pub fn after_echo(&mut self, window: f64, now: u64) -> f64 {
        match self.0.as_deref_mut() {
            None => window / 2.0,
            Some(State::Cubic(cubic)) => cubic.reduce(window),
            Some(State::Dctcp(dctcp)) => dctcp.after_echo(window),
            Some(State::Prague(prague)) => prague.after_echo(window, now),
        }
    }

    /// The window begins anew after a timeout.
    pub fn on_timeout(&mut self) {
        if let Some(State::Cubic(cubic)) = self.0.as_deref_mut() {
            cubic.on_timeout();
        }
    }

    /// Every acknowledgement, before anything else: it acknowledges `acked` packets up to `ack`,
    /// with or without an echo, while packets up to `end` have been sent; `srtt` is the smoothed round
    /// trip.
    #[inline]
    pub fn on_ack(&mut self, acked: u32, echo: bool, [ack, end]: [u32; 2], [now, srtt]: [u64; 2]) {
        match self.0.as_deref_mut() {
            Some(State::Dctcp(dctcp)) => dctcp.on_ack(acked, echo, ack, end),
            Some(State::Prague(prague)) => prague.on_ack(acked, echo, [ack, end], [now, srtt]),
            None | Some(State::Cubic(_)) => {}
        }
    }

    /// An acknowledgement left the window as it is, because the application did not fill it.
    #[inline]
    pub fn unused(&mut self, now: u64) {
        if let Some(State::Cubic(cubic)) = self.0.as_deref_mut() {
            cubic.unused(now);
        }
    }
}
