//! Congestion control: how much the window gives way to a signal, and how it grows again. A file a
//! control, and a line for each below.
//!
//! The sender decides *when* (once a window, after a timeout, not while the window is not used);
//! a [`CongestionControl`] decides *by how much*. Windows are in packets, times in ns. `dctcp.rs` is the
//! shortest.

mod cubic;
mod dctcp;
mod prague;

use cubic::Cubic;
use dctcp::Dctcp;
use prague::Prague;

use super::Options;

/// The state of one connection's congestion control, and its rules. What is left out is as Reno's
/// (RFC 5681).
pub(crate) trait CongestionControl {
    /// The state of a new connection.
    fn new(o: &Options) -> Self
    where
        Self: Sized;

    /// By how much a paced sender is faster than the window a round trip, after slow start: as in Linux.
    fn pacing_gain(&self) -> f64 {
        1.2
    }

    /// Whether slow start ends early by round trips, see [`CongestionControl::on_slow_start_round`].
    fn has_hystart(&self) -> bool {
        false
    }

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

        /// The congestion control of one connection. Reno has no state; the others' is aside, so that
        /// the sender stays small.
        #[derive(Clone, Default, Debug)]
        pub struct Control(Option<Box<State>>);

        #[derive(Clone, Debug)]
        enum State {
            $($name($name),)+
        }

        impl Control {
            /// The state of a new connection.
            pub fn new(o: &Options) -> Self {
                Self(match o.control {
                    Algorithm::Reno => None,
                    $(Algorithm::$name => Some(Box::new(State::$name($name::new(o)))),)+
                })
            }

            /// Asks whichever it is. Compiled into each branch, so that nothing is called by pointer.
            #[inline(always)]
            fn ask<T>(&self, question: impl FnOnce(&dyn CongestionControl) -> T) -> T {
                match self.0.as_deref() {
                    None => question(&Reno),
                    $(Some(State::$name(control)) => question(control),)+
                }
            }

            /// The same where it may change.
            #[inline(always)]
            fn tell<T>(&mut self, news: impl FnOnce(&mut dyn CongestionControl) -> T) -> T {
                match self.0.as_deref_mut() {
                    None => news(&mut Reno),
                    $(Some(State::$name(control)) => news(control),)+
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

/// As [`CongestionControl`].
impl Control {
    #[inline]
    pub(super) fn slow_start(&self) -> f64 {
        self.ask(|control| control.slow_start())
    }

    /// By how much a paced sender is faster than the window a round trip: twice in slow start, so that
    /// pacing does not stop the window from doubling.
    pub(super) fn pacing_gain(&self, slow_start: bool) -> f64 {
        if slow_start { 2.0 } else { self.ask(|control| control.pacing_gain()) }
    }

    pub(super) fn has_hystart(&self) -> bool {
        self.ask(|control| control.has_hystart())
    }

    #[inline]
    pub(super) fn on_slow_start_round(&mut self, rtt: u64) -> bool {
        self.tell(|control| control.on_slow_start_round(rtt))
    }

    #[inline(always)]
    pub(super) fn growth(&mut self, cwnd: f64, acked: u32, times: [u64; 2]) -> f64 {
        self.tell(|control| control.growth(cwnd, acked, times))
    }

    pub(super) fn growth_by_packets(
        &mut self,
        windows: [f64; 2],
        acked: u32,
        times: [u64; 2],
    ) -> f64 {
        self.tell(|control| control.growth_by_packets(windows, acked, times))
    }

    pub(super) fn after_loss(&mut self, window: f64) -> f64 {
        self.tell(|control| control.after_loss(window))
    }

    #[inline]
    pub(super) fn may_reduce(&self, now: u64) -> bool {
        self.ask(|control| control.may_reduce(now))
    }

    #[inline]
    pub(super) fn after_echo(&mut self, window: f64, now: u64) -> f64 {
        self.tell(|control| control.after_echo(window, now))
    }

    pub(super) fn on_timeout(&mut self) {
        self.tell(|control| control.on_timeout());
    }

    #[inline]
    pub(super) fn on_ack(&mut self, acked: u32, echo: bool, numbers: [u32; 2], times: [u64; 2]) {
        self.tell(|control| control.on_ack(acked, echo, numbers, times));
    }

    #[inline]
    pub(super) fn unused(&mut self, now: u64) {
        self.tell(|control| control.unused(now));
    }
}
