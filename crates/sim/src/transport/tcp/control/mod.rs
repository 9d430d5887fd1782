//! Congestion control: how much the window gives way to a signal, and how it grows again. Each control has a
//! file, and a line in `controls!` below.
//!
//! The sender decides *when* the window changes (once a window of data, after a timeout, not while the window is
//! not used); a [`CongestionControl`] decides *by how much*. [`SlowStart`] and [`PathModel`] are for controls that
//! have rules of their own there: a model of the path sets the window itself. Windows are in packets, times in
//! ns. `dctcp.rs` is the shortest example. `own.rs` has the controllers that a user brings along
//! ([`crate::control`]), which the sender tells of everything in bytes.

mod bbr;
mod cubic;
mod dctcp;
mod own;
mod prague;

use aqm::Rng;
use scenario::traffic::TcpName;

use super::Options;
use crate::watch::{Look, Value, Values};

/// The state of one connection's congestion control, and its rules. The defaults are Reno's (RFC 5681).
pub(crate) trait CongestionControl {
    /// The state of a new connection.
    fn new(o: &Options) -> Self
    where
        Self: Sized;

    /// Every acknowledgement, before the sender does anything for it.
    #[inline]
    fn on_ack(&mut self, _ack: &AckInfo) {}

    /// A round trip was measured, ns, once the connection is established. Only with the key `rfc8312`.
    fn on_rtt(&mut self, _now: u64, _rtt: u64) {}

    /// Packets by which an acknowledgement opens the window in congestion avoidance. A control with more to work
    /// out does that out of line.
    #[inline(always)]
    fn growth(&mut self, growth: &Growth) -> f64 {
        growth.counted / growth.whole
    }

    /// The window that a loss leaves of `window`.
    fn after_loss(&mut self, window: f64) -> f64 {
        window / 2.0
    }

    /// The window that an ECN echo leaves of `window`; `None` if it is too early for another reduction. The
    /// sender asks at most once for each window of data.
    #[inline]
    fn after_echo(&mut self, window: f64, _now: u64) -> Option<f64> {
        Some(window / 2.0)
    }

    /// Whether an echo lowers the window at once, and the window grows meanwhile. Other controls lower it in the
    /// time of a round trip (RFC 9937).
    fn grows_while_reduced(&self) -> bool {
        false
    }

    /// Anything else that happens to the window.
    #[inline]
    fn on_event(&mut self, _event: Event, _now: u64) {}

    /// Rules of its own for slow start.
    #[inline]
    fn slow_start(&mut self) -> Option<&mut dyn SlowStart> {
        None
    }

    /// What sets the window instead of all of the above.
    fn model(&mut self) -> Option<&mut dyn PathModel> {
        None
    }

    /// How a paced sender spaces packets.
    fn pace(&self, _times: Times) -> Pace {
        Pace::Gain(1.2)
    }

    /// The source of its random numbers, if it draws any.
    fn rng(&mut self) -> Option<&mut Rng> {
        None
    }

    /// The smoothed share of marks, 0 … 1, for who looks on.
    fn alpha(&self) -> Option<f64> {
        None
    }
}

/// When something happens.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Times {
    /// The time, ns.
    pub now: u64,
    /// The smoothed round trip, ns; 0 before the first sample.
    pub srtt: u64,
}

/// An acknowledgement.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AckInfo {
    /// Packets that it acknowledges.
    pub acked: u32,
    /// Packets that it tells were marked.
    pub marked: u32,
    /// All packets below this number have arrived.
    pub ack: u32,
    /// Past the highest packet that was sent.
    pub end: u32,
    /// When, with the round trip before this acknowledgement.
    pub times: Times,
}

/// An acknowledgement in congestion avoidance.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Growth {
    /// The window in packets.
    pub cwnd: f64,
    /// The part of it that may be under way: with `whole_packets` and `count_packets` its whole packets.
    pub whole: f64,
    /// Packets acknowledged.
    pub acked: u32,
    /// For how many packets this counts: one, or with `count_packets` all of `acked` (RFC 3465).
    pub counted: f64,
    /// When.
    pub times: Times,
}

/// What happens to the window besides acknowledgements, losses and echoes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The application did not fill the window, or had nothing to send, up to now.
    Unused,
    /// The window starts again after idleness (RFC 5681 §4.1).
    Restarted,
    /// The retransmission timer expired.
    TimedOut,
    /// A repair of losses begins; the reduction for it comes next.
    RepairBegins,
    /// The last repair was needless: nothing had been lost.
    RepairUndone,
}

/// How a paced sender spaces packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Pace {
    /// This many windows a round trip; in slow start twice a window.
    Gain(f64),
    /// A packet every so many ns.
    Gap(u64),
}

/// Rules of slow start. Without them the window opens by each packet acknowledged, up to the threshold.
pub(crate) trait SlowStart {
    /// Packets by which each packet that counts opens the window.
    fn growth(&self) -> f64;

    /// A sample of the round trip; whether slow start ends here.
    fn on_sample(&mut self, sample: RoundTrip) -> bool;
}

/// A sample of the round trip in slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    /// How long it took, ns.
    pub rtt: u64,
    /// The first sample of a round.
    pub begins: bool,
    /// The only sample of a round.
    pub only: bool,
}

/// A control that estimates what the path bears from samples of what was delivered, and sets the window
/// from that. It goes with RACK. Volumes are in packets, times in ns, rates in packets a ns.
pub(crate) trait PathModel {
    /// A packet is about to be sent after a time in which the application had nothing and nothing was
    /// under way; `delivered` packets were.
    fn on_restart(&mut self, now: u64, delivered: u32, window: &mut f64);

    /// A packet is found to be lost.
    fn on_lost(&mut self, lost: &Lost, window: f64);

    /// The sender begins or ends to repair losses.
    fn on_repair(&mut self, change: &RepairChange, window: &mut f64);

    /// Something has arrived, or was marked; after [`PathModel::on_lost`] and [`PathModel::on_repair`]
    /// for the same acknowledgement.
    fn on_sample(&mut self, sample: &Sample, window: &mut f64);

    /// The repair that goes on was needless: nothing had been lost. `delivered` packets were.
    /// [`Repair::Ends`] follows.
    fn on_undo(&mut self, _delivered: u32, _window: &mut f64) {}

    /// It sends little on purpose: what arrives says nothing of the bandwidth.
    fn is_probing_rtt(&self) -> bool;

    /// For who looks on: the phases that were entered since, the round, whether it restarts.
    fn look(&mut self, look: &mut Look);

    /// What it goes by, by the draft's names, with a window of `window` packets.
    fn values(&self, window: f64, values: Values<'_>);
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

/// A repair of losses begins or ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepairChange {
    /// Which of them.
    pub repair: Repair,
    /// Packets under way.
    pub in_flight: u32,
    /// Packets delivered in all.
    pub delivered: u32,
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
    /// In how long, and at what rate; 0: the sample is too short.
    pub interval: u64,
    /// That rate.
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
    /// The window was full at some point since the last sample.
    pub window_filled: bool,
    /// It carries an ECN echo, the first in a round trip.
    pub marked: bool,
    /// Packets that it tells were marked.
    pub marks: u32,
    /// Packets that were marked in all.
    pub total_marks: u32,
    /// Packets marked since that packet was sent.
    pub marked_since: u32,
    /// Nothing is being repaired, and no mark was reported for a round trip.
    pub calm: bool,
}

/// Half, and a packet a round trip (RFC 5681).
struct Reno;

impl CongestionControl for Reno {
    fn new(_: &Options) -> Self {
        Self
    }
}

/// The choice among all controls: each by its name in scenario files, and the file that holds it.
macro_rules! controls {
    ($($name:ident in $file:ident;)+) => {
        $(use $file::$name;)+

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
                Self(match o.control.name {
                    TcpName::Tahoe | TcpName::Reno | TcpName::NewReno | TcpName::Sack => None,
                    $(TcpName::$name => Some(Box::new(State::$name($name::new(o)))),)+
                })
            }

            /// The controller that is brought along, if it is one.
            #[inline]
            pub(super) fn own(&mut self) -> Option<&mut Own> {
                match self.0.as_deref_mut() {
                    Some(State::Own(own)) => Some(own),
                    _ => None,
                }
            }

            /// Asks whichever it is. Compiled into each branch, so that nothing is called by pointer.
            #[inline(always)]
            fn tell<T>(&mut self, news: impl FnOnce(&mut dyn CongestionControl) -> T) -> T {
                match self.0.as_deref_mut() {
                    None => news(&mut Reno),
                    $(Some(State::$name(control)) => news(control),)+
                }
            }

            /// As [`Control::tell`], where nothing changes.
            #[inline(always)]
            fn ask<T>(&self, question: impl FnOnce(&dyn CongestionControl) -> T) -> T {
                match self.0.as_deref() {
                    None => question(&Reno),
                    $(Some(State::$name(control)) => question(control),)+
                }
            }
        }
    };
}

controls! {
    Bbr in bbr;
    Bbr1 in bbr;
    Cubic in cubic;
    Dctcp in dctcp;
    Own in own;
    Prague in prague;
}

impl Control {
    /// Whether it needs events: all controls but Reno do.
    #[inline(always)]
    pub(super) fn has_state(&self) -> bool {
        self.0.is_some()
    }

    /// It begins anew, for another connection; the source of its random numbers goes on.
    pub(super) fn renew(&mut self, o: &Options) {
        if let Some(own) = self.own() {
            return own.end();
        }
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

    /// Whether it has rules of its own for slow start.
    pub(super) fn has_slow_start(&mut self) -> bool {
        self.tell(|control| control.slow_start().is_some())
    }

    /// Packets by which each packet that counts opens the window in slow start.
    #[inline]
    pub(super) fn slow_start(&mut self) -> f64 {
        self.tell(|control| control.slow_start().map_or(1.0, |start| start.growth()))
    }

    /// A sample of the round trip in slow start; whether slow start ends here.
    #[inline]
    pub(super) fn ends_slow_start(&mut self, sample: RoundTrip) -> bool {
        self.tell(|control| control.slow_start().is_some_and(|start| start.on_sample(sample)))
    }

    #[inline]
    pub(super) fn on_ack(&mut self, ack: &AckInfo) {
        self.tell(|control| control.on_ack(ack));
    }

    pub(super) fn on_rtt(&mut self, now: u64, rtt: u64) {
        self.tell(|control| control.on_rtt(now, rtt));
    }

    /// By value, so that Reno's branch keeps it in registers.
    #[inline(always)]
    pub(super) fn growth(&mut self, growth: Growth) -> f64 {
        self.tell(|control| control.growth(&Growth { ..growth }))
    }

    pub(super) fn after_loss(&mut self, window: f64) -> f64 {
        self.tell(|control| control.after_loss(window))
    }

    #[inline]
    pub(super) fn after_echo(&mut self, window: f64, now: u64) -> Option<f64> {
        self.tell(|control| control.after_echo(window, now))
    }

    pub(super) fn grows_while_reduced(&self) -> bool {
        self.ask(|control| control.grows_while_reduced())
    }

    #[inline]
    pub(super) fn on_event(&mut self, event: Event, now: u64) {
        self.tell(|control| control.on_event(event, now));
    }

    /// Bytes of a packet, for a controller that is brought along.
    pub(super) fn packet_bytes(&self) -> u64 {
        match self.0.as_deref() {
            Some(State::Own(own)) => own.mtu() as u64,
            _ => 1,
        }
    }

    pub(super) fn pace(&self, times: Times) -> Pace {
        self.ask(|control| control.pace(times))
    }

    /// The values of one without a model of the path, for who looks on.
    pub(super) fn values(&self, ssthresh: f64, values: Values<'_>) {
        values("ssthresh", Value::Number(ssthresh));
        if let Some(alpha) = self.ask(|control| control.alpha()) {
            values("alpha", Value::Number(alpha));
        }
        if let Some(State::Own(own)) = self.0.as_deref() {
            own.observe(&mut |name, value| values(name, Value::Signal(value)));
        }
    }
}
