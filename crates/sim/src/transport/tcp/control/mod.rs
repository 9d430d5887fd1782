//! Congestion control: how much the window gives way to a signal, and how it grows again. A file a
//! control, and a line for each below.
//!
//! The sender decides *when* (once a window, after a timeout, not while the window is not used);
//! a [`CongestionControl`] decides *by how much*. Windows are in packets, times in ns. `dctcp.rs` is the
//! shortest.

mod cubic;
mod dctcp;
mod prague;

use aqm::Ecn;
use cubic::Cubic;
use dctcp::Dctcp;
use prague::Prague;

use super::Options;

/// What a congestion control asks of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// The window follows the share of marks: an acknowledgement has to echo just the marks of what it
    /// acknowledges (RFC 8257 §3.2, RFC 9331 §4.2), not one until the sender has answered.
    pub(crate) exact_echo: bool,
    /// What data packets carry, where ECN is on.
    pub(crate) codepoint: Ecn,
    /// Retransmissions carry it, too.
    pub(crate) ecn_on_retransmit: bool,
    /// It is paced, unless `pacing` says no.
    pub(crate) paced: bool,
    /// The least window that an echo leaves, in packets.
    pub(crate) least_window: f64,
}

/// The state of one connection's congestion control, and its rules. What is left out is as Reno's
/// (RFC 5681).
pub(crate) trait CongestionControl {
    /// What it asks of the connection.
    const NEEDS: Needs = Needs {
        exact_echo: false,
        codepoint: Ecn::Ect0,
        ecn_on_retransmit: false,
        paced: false,
        least_window: 0.0,
    };
    /// By how much a paced sender is faster than the window a round trip, after slow start: as in Linux.
    const PACING_GAIN: f64 = 1.2;
    /// Slow start ends early by round trips, see [`CongestionControl::on_slow_start_round`].
    const HYSTART: bool = false;

    /// The state of a new connection.
    fn new(o: &Options) -> Self;

    /// What an acknowledgement in slow start adds to the window.
    #[inline]
    fn slow_start(&self) -> f64 {
        1.0
    }

    /// A round trip of slow start was measured, in ns: whether it is time to leave slow start.
    #[inline]
    fn on_slow_start_round(&mut self, _rtt: u64) -> bool {
        false
    }

    /// What an acknowledgement in congestion avoidance adds to the window `cwnd`; `srtt` is the
    /// smoothed round trip. Those that have more to work out do it out of line.
    #[inline(always)]
    fn growth(&mut self, cwnd: f64, _acked: u32, [_now, _srtt]: [u64; 2]) -> f64 {
        1.0 / cwnd
    }

    /// The same where it counts as an acknowledgement for each of the packets; of the window `cwnd`
    /// `whole` packets are used.
    fn growth_by_packets(
        &mut self,
        [_cwnd, whole]: [f64; 2],
        acked: u32,
        [_now, _srtt]: [u64; 2],
    ) -> f64 {
        f64::from(acked) / whole
    }

    /// The window that is left of `window` after a loss.
    fn after_loss(&mut self, window: f64) -> f64 {
        window / 2.0
    }

    /// Whether an ECN echo may reduce the window, a window of data after the last reduction.
    #[inline]
    fn may_reduce(&self, _now: u64) -> bool {
        true
    }

    /// The window that is left of `window` after an ECN echo.
    #[inline]
    fn after_echo(&mut self, window: f64, _now: u64) -> f64 {
        window / 2.0
    }

    /// The window begins anew after a timeout.
    fn on_timeout(&mut self) {}

    /// Every acknowledgement, before anything else: it acknowledges `acked` packets up to `ack`,
    /// with or without an echo, while packets up to `end` have been sent; `srtt` is the smoothed round
    /// trip.
    #[inline]
    fn on_ack(
        &mut self,
        _acked: u32,
        _echo: bool,
        [_ack, _end]: [u32; 2],
        [_now, _srtt]: [u64; 2],
    ) {
    }

    /// An acknowledgement left the window as it is, because the application did not fill it.
    #[inline]
    fn unused(&mut self, _now: u64) {}
}

/// Half, and a packet a round trip (RFC 5681).
struct Reno;

impl CongestionControl for Reno {
    fn new(_: &Options) -> Self {
        Self
    }
}

/// The choice among all controls.
macro_rules! controls {
    ($($(#[$doc:meta])+ $name:ident;)+) => {
        /// A choice of congestion control.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Algorithm {
            /// Half, and a packet a round trip (RFC 5681).
            Reno,
            $($(#[$doc])+ $name,)+
        }

        impl Algorithm {
            /// What it asks of the connection.
            pub(crate) const fn needs(self) -> Needs {
                match self { Self::Reno => Reno::NEEDS, $(Self::$name => $name::NEEDS,)+ }
            }
        }

        /// The congestion control of one connection. Reno has no state; the others' is aside, so that
        /// the sender stays small.
        #[derive(Clone, Default, Debug)]
        pub struct Control(Option<Box<State>>);

        #[derive(Clone, Debug)]
        enum State {
            $($name($name),)+
        }

        /// As [`CongestionControl`].
        impl Control {
            /// The state of a new connection.
            pub fn new(o: &Options) -> Self {
                Self(match o.control {
                    Algorithm::Reno => None,
                    $(Algorithm::$name => Some(Box::new(State::$name($name::new(o)))),)+
                })
            }

            #[inline]
            pub(super) fn slow_start(&self) -> f64 {
                match self.0.as_deref() {
                    None => Reno.slow_start(),
                    $(Some(State::$name(control)) => control.slow_start(),)+
                }
            }

            /// By how much a paced sender is faster than the window a round trip: twice in slow start,
            /// so that pacing does not stop the window from doubling.
            pub(super) fn pacing_gain(&self, slow_start: bool) -> f64 {
                match self.0.as_deref() {
                    _ if slow_start => 2.0,
                    None => Reno::PACING_GAIN,
                    $(Some(State::$name(_)) => $name::PACING_GAIN,)+
                }
            }

            /// Whether slow start ends early by round trips.
            pub(super) fn has_hystart(&self) -> bool {
                match self.0.as_deref() {
                    None => Reno::HYSTART,
                    $(Some(State::$name(_)) => $name::HYSTART,)+
                }
            }

            #[inline]
            pub(super) fn on_slow_start_round(&mut self, rtt: u64) -> bool {
                match self.0.as_deref_mut() {
                    None => Reno.on_slow_start_round(rtt),
                    $(Some(State::$name(control)) => control.on_slow_start_round(rtt),)+
                }
            }

            #[inline(always)]
            pub(super) fn growth(&mut self, cwnd: f64, acked: u32, times: [u64; 2]) -> f64 {
                match self.0.as_deref_mut() {
                    None => Reno.growth(cwnd, acked, times),
                    $(Some(State::$name(control)) => control.growth(cwnd, acked, times),)+
                }
            }

            pub(super) fn growth_by_packets(
                &mut self,
                windows: [f64; 2],
                acked: u32,
                times: [u64; 2],
            ) -> f64 {
                match self.0.as_deref_mut() {
                    None => Reno.growth_by_packets(windows, acked, times),
                    $(Some(State::$name(control)) => {
                        control.growth_by_packets(windows, acked, times)
                    })+
                }
            }

            pub(super) fn after_loss(&mut self, window: f64) -> f64 {
                match self.0.as_deref_mut() {
                    None => Reno.after_loss(window),
                    $(Some(State::$name(control)) => control.after_loss(window),)+
                }
            }

            #[inline]
            pub(super) fn may_reduce(&self, now: u64) -> bool {
                match self.0.as_deref() {
                    None => Reno.may_reduce(now),
                    $(Some(State::$name(control)) => control.may_reduce(now),)+
                }
            }

            #[inline]
            pub(super) fn after_echo(&mut self, window: f64, now: u64) -> f64 {
                match self.0.as_deref_mut() {
                    None => Reno.after_echo(window, now),
                    $(Some(State::$name(control)) => control.after_echo(window, now),)+
                }
            }

            pub(super) fn on_timeout(&mut self) {
                match self.0.as_deref_mut() {
                    None => Reno.on_timeout(),
                    $(Some(State::$name(control)) => control.on_timeout(),)+
                }
            }

            #[inline]
            pub(super) fn on_ack(
                &mut self,
                acked: u32,
                echo: bool,
                numbers: [u32; 2],
                times: [u64; 2],
            ) {
                match self.0.as_deref_mut() {
                    None => Reno.on_ack(acked, echo, numbers, times),
                    $(Some(State::$name(control)) => control.on_ack(acked, echo, numbers, times),)+
                }
            }

            #[inline]
            pub(super) fn unused(&mut self, now: u64) {
                match self.0.as_deref_mut() {
                    None => Reno.unused(now),
                    $(Some(State::$name(control)) => control.unused(now),)+
                }
            }
        }
    };
}

controls! {
    /// CUBIC (RFC 9438).
    Cubic;
    /// Data Center TCP (RFC 8257).
    Dctcp;
    /// Prague, for L4S (RFC 9331).
    Prague;
}
