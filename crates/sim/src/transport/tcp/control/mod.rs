//! Congestion control: how much the window gives way to a signal, and how it grows again. A file a
//! control, and a line for each below.
//!
//! The sender decides *when* (once a window, after a timeout, not while the window is not used);
//! a [`CongestionControl`] decides *by how much*. Windows are in packets, times in ns. `dctcp.rs` is the
//! shortest. A control with a model of the path ([`PathModel`]) sets the window itself.

mod bbr;
mod cubic;
mod dctcp;
mod prague;

use aqm::Rng;
use bbr::{Bbr, Bbr1};
use cubic::Cubic;
use dctcp::Dctcp;
use prague::Prague;
pub(super) use prague::REFERENCE_RTT;

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

    /// Whether slow start ends early by round trips, see [`CongestionControl::on_slow_start_sample`].
    fn has_hystart(&self) -> bool {
        false
    }

    /// What an acknowledgement in slow start adds to the window.
    #[inline]
    fn slow_start(&self) -> f64 {
        1.0
    }

    /// A round trip was measured in slow start, in ns, the first of a round or not, and the `only` one in
    /// it or not: whether it is time to leave slow start.
    #[inline]
    fn on_slow_start_sample(&mut self, _rtt: u64, _begins: bool, _only: bool) -> bool {
        false
    }

    /// A round trip was measured, ns, once the connection is established. The sender tells it with
    /// [`Options::rfc8312`] only.
    fn on_rtt(&mut self, _now: u64, _rtt: u64) {}

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

    /// Whether an echo takes its share at once, and the window grows meanwhile, where others go down in
    /// the time of a round trip (RFC 6937).
    fn grows_while_reduced(&self) -> bool {
        false
    }

    /// The window begins anew after a timeout.
    fn on_timeout(&mut self) {}

    /// Every acknowledgement, before anything else: it acknowledges `acked` packets, of which `marked`
    /// were marked, all up to `ack`, while packets up to `end` have been sent; `srtt` is the smoothed
    /// round trip.
    #[inline]
    fn on_ack(
        &mut self,
        [_acked, _marked]: [u32; 2],
        [_ack, _end]: [u32; 2],
        [_now, _srtt]: [u64; 2],
    ) {
    }

    /// Up to now the application did not fill the window, which an acknowledgement left as it is, or had
    /// nothing at all.
    #[inline]
    fn unused(&mut self, _now: u64) {}

    /// The window begins anew after idleness (RFC 5681 §4.1).
    fn on_restart(&mut self) {}

    /// A repair of losses begins, before any other word of it.
    fn before_repair(&mut self) {}

    /// That repair was needless.
    fn undo_repair(&mut self) {}

    /// What sets the window instead of all of this, if it does.
    fn model(&mut self) -> Option<&mut dyn PathModel> {
        None
    }

    /// How long after a packet the next is sent, ns, if the window does not say it; `srtt` is the
    /// smoothed round trip, 0 before there is one.
    fn pace(&self, _srtt: u64) -> Option<u64> {
        None
    }

    /// Who draws for it, if it draws.
    fn rng(&mut self) -> Option<&mut Rng> {
        None
    }
}

/// A control that estimates what the path bears from samples of what was delivered, and sets the window
/// from that. It goes with RACK. Volumes are in packets, times in ns, rates in packets a ns.
pub(crate) trait PathModel {
    /// A packet is about to be sent after a time in which the application had nothing and nothing was
    /// under way; `delivered` packets were.
    fn on_restart(&mut self, now: u64, delivered: u32, window: &mut f64);

    /// A packet is found to be lost.
    fn on_lost(&mut self, lost: &Lost, window: f64);

    /// The sender begins or ends to repair losses, with `in_flight` packets under way and `delivered`
    /// there.
    fn on_repair(&mut self, repair: Repair, in_flight: u32, delivered: u32, window: &mut f64);

    /// Something has arrived, or was marked; after [`PathModel::on_lost`] and [`PathModel::on_repair`]
    /// for the same acknowledgement.
    fn on_sample(&mut self, sample: &Sample, window: &mut f64);

    /// It sends little on purpose: what arrives says nothing of the bandwidth.
    fn is_probing_rtt(&self) -> bool;
}

/// What happens to the repair of losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Repair {
    /// Fast recovery begins.
    Begins,
    /// The retransmission timer has expired.
    TimedOut,
    /// All that was lost has arrived.
    Ends,
}

/// A packet that is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// The time.
    pub now: u64,
    /// Its number.
    pub seq: u32,
    /// Packets under way when it was sent, with it.
    pub tx_in_flight: u32,
    /// Packets lost since it was sent, with it.
    pub lost: u32,
    /// The application had nothing more then.
    pub app_limited: bool,
    /// Packets delivered in all.
    pub total: u32,
}

/// What an acknowledgement tells of the path (draft-ietf-ccwg-bbr, *Delivery Rate Samples*): of the
/// packet sent last among those that it is the first to acknowledge.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sample {
    /// The time.
    pub now: u64,
    /// The round trip, if that packet was sent once.
    pub rtt: Option<u64>,
    /// The smoothed one, 0 before there is one.
    pub srtt: u64,
    /// Packets that had been delivered when it was sent.
    pub prior_delivered: u32,
    /// Packets delivered since.
    pub delivered: u32,
    /// At what rate; 0: the sample is too short.
    pub rate: f64,
    /// The application had nothing more when it was sent.
    pub app_limited: bool,
    /// Packets under way when it was sent, with it.
    pub tx_in_flight: u32,
    /// Packets lost since it was sent.
    pub lost: u32,
    /// Packets that this acknowledgement is the first to acknowledge.
    pub newly: u32,
    /// Packets delivered in all.
    pub total: u32,
    /// Packets under way before and after.
    pub prior_in_flight: u32,
    /// After.
    pub in_flight: u32,
    /// The window was used up before.
    pub window_limited: bool,
    /// It carries an ECN echo, the first in a round trip.
    pub marked: bool,
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
    /// BBR version 3 (draft-ietf-ccwg-bbr).
    Bbr;
    /// BBR version 1.
    Bbr1;
    /// CUBIC (RFC 9438).
    Cubic;
    /// Data Center TCP (RFC 8257).
    Dctcp;
    /// Prague, for L4S (RFC 9331).
    Prague;
}

impl Control {
    /// Whether it is another than Reno, which has nothing to be told.
    #[inline(always)]
    pub(super) fn has_state(&self) -> bool {
        self.0.is_some()
    }

    /// It begins anew, for another connection; who draws goes on.
    pub(super) fn renew(&mut self, o: &Options) {
        let draws = self.tell(|control| control.rng().cloned());
        *self = Self::new(o);
        if let Some(rng) = draws {
            self.draw_from(rng);
        }
    }

    /// Lets it draw from `rng`, if it draws.
    pub(super) fn draw_from(&mut self, rng: Rng) {
        self.tell(|control| control.rng().map(|own| *own = rng));
    }

    /// Asks its model of the path, if it has one.
    pub(super) fn model<T>(&mut self, news: impl FnOnce(&mut dyn PathModel) -> T) -> Option<T> {
        self.tell(|control| control.model().map(news))
    }
}

/// As [`CongestionControl`].
impl Control {
    pub(super) fn pace(&self, srtt: u64) -> Option<u64> {
        self.ask(|control| control.pace(srtt))
    }

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
    pub(super) fn on_slow_start_sample(&mut self, rtt: u64, begins: bool, only: bool) -> bool {
        self.tell(|control| control.on_slow_start_sample(rtt, begins, only))
    }

    pub(super) fn on_rtt(&mut self, now: u64, rtt: u64) {
        self.tell(|control| control.on_rtt(now, rtt));
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

    pub(super) fn grows_while_reduced(&self) -> bool {
        self.ask(|control| control.grows_while_reduced())
    }

    pub(super) fn on_timeout(&mut self) {
        self.tell(|control| control.on_timeout());
    }

    #[inline]
    pub(super) fn on_ack(&mut self, packets: [u32; 2], numbers: [u32; 2], times: [u64; 2]) {
        self.tell(|control| control.on_ack(packets, numbers, times));
    }

    #[inline]
    pub(super) fn unused(&mut self, now: u64) {
        self.tell(|control| control.unused(now));
    }

    pub(super) fn on_restart(&mut self) {
        self.tell(|control| control.on_restart());
    }

    pub(super) fn before_repair(&mut self) {
        self.tell(|control| control.before_repair());
    }

    pub(super) fn undo_repair(&mut self) {
        self.tell(|control| control.undo_repair());
    }
}
