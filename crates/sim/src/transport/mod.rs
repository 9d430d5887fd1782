//! How data is carried: a folder a transport, and a line for each below.
//!
//! A transport is both ends of a flow, [`EndPoints`], and what the flows of a group share, its
//! `Options`. The simulation wakes it (a packet came, a time has come) and hands it a [`Port`], through
//! which it sends packets and says when it wants to be woken. `window/` is the shortest that answers.

pub mod cbr;
pub mod ledbat;
mod port;
pub mod quic;
pub mod scream;
pub mod tcp;
pub mod tfrc;
pub mod trace;
pub mod window;

use std::sync::Arc;

use aqm::Ecn;
use scenario::traffic::{TrafficSpec, Transport as Keys};

use crate::control::Setting;
use crate::packet::Packet;
use crate::results::one_way::OneWay;
use crate::watch::{Look, Values};
pub use port::{FlowSetup, Group, Seed};
pub(crate) use port::{Port, Seat, SendTiming};

/// What a flow has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlowReport {
    /// Packets delivered to the application in order (TCP) or at all (datagrams).
    pub delivered: u32,
    /// Their bytes, where a group's packets differ in length: those of a capture.
    pub delivered_bytes: u64,
    /// Packets sent again.
    pub retransmits: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Window reductions after an ECN echo.
    pub ecn_reductions: u32,
    /// Smoothed round-trip time, ns.
    pub srtt: u64,
}

/// What follows from a packet that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// Nothing more: no time to be woken has come nearer.
    Nothing,
    /// A time to be woken may have come nearer.
    Timer,
    /// As [`Timer`](Self::Timer), and the sender has nothing left that it may send now: its application may
    /// have more.
    Ask,
}

/// What has to be known of connections by those who open them or wait for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connections {
    /// Whether each begins with a handshake.
    pub(crate) handshake: bool,
    /// The first and the largest window, packets.
    pub(crate) windows: [u32; 2],
    /// The first and the longest time after which what is not answered is sent again, ns.
    pub(crate) timeouts: [u64; 2],
    /// What SYNs and their answers carry.
    pub(crate) ecn: [Ecn; 2],
}

/// Both ends of a flow. The times of its [`Seat`] are its own, but for [`Seat::listed`].
pub(crate) trait EndPoints {
    /// What the flows of a group share.
    type Options;

    /// The ends of flow `number` of all `setups`.
    fn new(o: &Self::Options, number: usize, setups: &[FlowSetup]) -> Self;

    /// Whether flow `number` is woken at its start.
    fn begins(_: &Self::Options, _number: usize) -> bool {
        true
    }

    /// Whether an event at one end touches nothing of the other end or of other flows, so that threads may
    /// share the run.
    fn are_apart(o: &Self::Options) -> bool;

    /// [`Seat::app_at`] has come, the first time the start, and the group has not stopped.
    fn on_app(&mut self, port: &mut Port<'_>, o: &Self::Options);

    /// A packet has come to the end of its path.
    fn on_packet(&mut self, port: &mut Port<'_>, packet: &Packet, o: &Self::Options) -> After;

    /// [`Seat::ack_at`], [`Seat::send_at`] or [`EndPoints::deadline`] may have come.
    fn on_timers(&mut self, _port: &mut Port<'_>, _: &Self::Options) {}

    /// When its connection ended before its data did, ns, and why.
    fn broken(&self) -> Option<(u64, &str)> {
        None
    }

    /// The controllers of its connections are brought along.
    fn bring(&mut self, _: &Arc<Setting>) {}

    /// Sends what may be sent, where data is given from outside.
    fn send(&mut self, _port: &mut Port<'_>, _: &Self::Options) {}

    /// Nothing new is sent from now on.
    fn stop(&mut self) {}

    /// Whether what may be sent is sent later: flows have a [`SendTiming`].
    fn sends_later(_: &Self::Options) -> bool {
        false
    }

    /// A time to be woken that mostly moves on before it comes, ns; `u64::MAX` for none.
    fn deadline(&self) -> u64 {
        u64::MAX
    }

    /// From now on what datagrams meet on their way is measured, where there are such.
    fn measure_from(&mut self, _now: u64) {}

    /// What was measured of them.
    fn one_way(&self) -> Option<&OneWay> {
        None
    }

    /// What is known of datagrams that the far end sends back, where it does.
    fn echoes(&mut self) -> Option<&mut cbr::Echoes> {
        None
    }

    /// The congestion window, packets, where there is one.
    fn window(&self, _: &Self::Options) -> Option<f64> {
        None
    }

    /// What the flow has done.
    fn report(&self) -> FlowReport;

    /// How connections begin, where there are such: web sessions open one after another over a flow.
    fn connections(_: &Self::Options) -> Option<Connections> {
        None
    }

    /// Another connection is opened in place of the one that there was.
    fn renew(&mut self) {}

    /// A request for `packets` of a new connection, from a client whose SYN-ACK came `marked`. Returns
    /// whether there are any to send now.
    fn serve(&mut self, _now: u64, _packets: u32, _marked: bool, _: &Self::Options) -> bool {
        false
    }

    /// How many packets are known at the source to have come, all from the first on.
    fn acknowledged(&self) -> Option<u32> {
        None
    }

    /// Each data packet is to say when it was sent, where not all do.
    fn stamp(_: &mut Self::Options) {}

    /// The round trip that `packet` is a sample of (ns), which comes at `now` and is not handled yet.
    fn round_trip(&self, _now: u64, _packet: &Packet) -> Option<u64> {
        None
    }

    /// The round trip that the packet was a sample of which has just been handled, ns; once.
    fn last_round_trip(&mut self) -> Option<u64> {
        None
    }

    /// What its congestion control is doing at `now` (ns), for who looks on; `false` where there is none, or
    /// not yet.
    fn look(&mut self, _now: u64, _: &Self::Options, _: &mut Look) -> bool {
        false
    }

    /// The values that it goes by.
    fn values(&mut self, _: Values<'_>) {}
}

/// The enums over all transports. `Name: module` stands for the keys `Name` of a scenario, and for
/// `Ends` and `Options` in the module.
macro_rules! transports {
    ($(#[$first_doc:meta])* $first:ident: $first_module:ident;
     $($(#[$doc:meta])* $name:ident: $module:ident;)*) => {
        transports! { enums $(#[$first_doc])* $first: $first_module; $($(#[$doc])* $name: $module;)* }

        impl Ends {
            /// Nearly all packets are of the first transport: it is asked apart from the others, and
            /// what it does is part of the loop. Its port is its own, so that it stays in registers.
            #[inline(always)]
            pub(crate) fn on_packet(&mut self, mut port: Port<'_>, packet: &Packet) -> After {
                let group = port.group;
                match (&mut *self, &group.transport) {
                    (Self::$first(ends), Transport::$first(o)) => {
                        ends.on_packet(&mut port, packet, o)
                    }
                    _ => {
                        let mut port = port;
                        self.on_any(&mut port, packet)
                    }
                }
            }
        }
    };
    (enums $($(#[$doc:meta])* $name:ident: $module:ident;)*) => {
        /// How the flows of a group carry their data.
        #[derive(Clone, Debug)]
        pub enum Transport {
            $($(#[$doc])* $name($module::Options),)*
        }

        impl Transport {
            /// What a scenario says; the group's first flow is number `first`.
            pub(crate) fn new(spec: &TrafficSpec, first: u32) -> Self {
                match &spec.transport {
                    $(Keys::$name(keys) => Self::$name($module::Options::new(spec, keys, first)),)*
                }
            }

            /// The ends of flow `number` of all `setups`.
            pub(crate) fn ends(&self, number: usize, setups: &[FlowSetup]) -> Ends {
                match self {
                    $(Self::$name(o) => Ends::$name(EndPoints::new(o, number, setups)),)*
                }
            }

            /// Whether flow `number` is woken at its start.
            pub(crate) fn begins(&self, number: usize) -> bool {
                match self {
                    $(Self::$name(o) => <$module::Ends as EndPoints>::begins(o, number),)*
                }
            }

            /// Whether an event at one end touches nothing of the other end or of other flows.
            pub(crate) fn ends_are_apart(&self) -> bool {
                match self {
                    $(Self::$name(o) => <$module::Ends as EndPoints>::are_apart(o),)*
                }
            }

            /// Whether what may be sent is sent later.
            pub(crate) fn sends_later(&self) -> bool {
                match self {
                    $(Self::$name(o) => <$module::Ends as EndPoints>::sends_later(o),)*
                }
            }

            /// How connections begin, where there are such.
            pub(crate) fn connections(&self) -> Option<Connections> {
                match self {
                    $(Self::$name(o) => <$module::Ends as EndPoints>::connections(o),)*
                }
            }

            /// Each data packet is to say when it was sent.
            pub(crate) fn stamp(&mut self) {
                match self {
                    $(Self::$name(o) => <$module::Ends as EndPoints>::stamp(o),)*
                }
            }
        }

        /// Both ends of a flow, of its group's transport.
        #[derive(Debug)]
        pub(crate) enum Ends {
            $($(#[$doc])* $name($module::Ends),)*
        }

        /// As [`EndPoints`]; the options are those of the port's group.
        impl Ends {
            pub(crate) fn on_app(&mut self, port: &mut Port<'_>) {
                match (self, &port.group.transport) {
                    $((Self::$name(ends), Transport::$name(o)) => ends.on_app(port, o),)*
                    _ => {}
                }
            }

            /// A packet has come, of whatever transport.
            #[inline(never)]
            pub(crate) fn on_any(&mut self, port: &mut Port<'_>, packet: &Packet) -> After {
                match (self, &port.group.transport) {
                    $((Self::$name(ends), Transport::$name(o)) => ends.on_packet(port, packet, o),)*
                    _ => After::Nothing,
                }
            }

            pub(crate) fn on_timers(&mut self, port: &mut Port<'_>) {
                match (self, &port.group.transport) {
                    $((Self::$name(ends), Transport::$name(o)) => ends.on_timers(port, o),)*
                    _ => {}
                }
            }

            pub(crate) fn broken(&self) -> Option<(u64, &str)> {
                match self { $(Self::$name(ends) => ends.broken(),)* }
            }

            pub(crate) fn bring(&mut self, setting: &Arc<Setting>) {
                match self { $(Self::$name(ends) => ends.bring(setting),)* }
            }

            pub(crate) fn send(&mut self, port: &mut Port<'_>) {
                match (self, &port.group.transport) {
                    $((Self::$name(ends), Transport::$name(o)) => ends.send(port, o),)*
                    _ => {}
                }
            }

            pub(crate) fn stop(&mut self) {
                match self { $(Self::$name(ends) => ends.stop(),)* }
            }

            #[inline(always)]
            pub(crate) fn deadline(&self) -> u64 {
                match self { $(Self::$name(ends) => ends.deadline(),)* }
            }

            pub(crate) fn measure_from(&mut self, now: u64) {
                match self { $(Self::$name(ends) => ends.measure_from(now),)* }
            }

            pub(crate) fn one_way(&self) -> Option<&OneWay> {
                match self { $(Self::$name(ends) => ends.one_way(),)* }
            }

            pub(crate) fn echoes(&mut self) -> Option<&mut cbr::Echoes> {
                match self { $(Self::$name(ends) => ends.echoes(),)* }
            }

            pub(crate) fn window(&self, transport: &Transport) -> Option<f64> {
                match (self, transport) {
                    $((Self::$name(ends), Transport::$name(o)) => ends.window(o),)*
                    _ => None,
                }
            }

            pub(crate) fn report(&self) -> FlowReport {
                match self { $(Self::$name(ends) => ends.report(),)* }
            }

            pub(crate) fn renew(&mut self) {
                match self { $(Self::$name(ends) => ends.renew(),)* }
            }

            pub(crate) fn serve(
                &mut self,
                now: u64,
                packets: u32,
                marked: bool,
                transport: &Transport,
            ) -> bool {
                match (self, transport) {
                    $((Self::$name(ends), Transport::$name(o)) => {
                        ends.serve(now, packets, marked, o)
                    })*
                    _ => false,
                }
            }

            pub(crate) fn acknowledged(&self) -> Option<u32> {
                match self { $(Self::$name(ends) => ends.acknowledged(),)* }
            }

            pub(crate) fn round_trip(&self, now: u64, packet: &Packet) -> Option<u64> {
                match self { $(Self::$name(ends) => ends.round_trip(now, packet),)* }
            }

            pub(crate) fn last_round_trip(&mut self) -> Option<u64> {
                match self { $(Self::$name(ends) => ends.last_round_trip(),)* }
            }

            pub(crate) fn look(&mut self, now: u64, o: &Transport, look: &mut Look) -> bool {
                match (self, o) {
                    $((Self::$name(ends), Transport::$name(o)) => ends.look(now, o, look),)*
                    _ => false,
                }
            }

            pub(crate) fn values(&mut self, values: Values<'_>) {
                match self { $(Self::$name(ends) => ends.values(values),)* }
            }
        }
    };
}

transports! {
    /// TCP.
    Tcp: tcp;
    /// TCP-friendly rate control, always with something to send.
    Tfrc: tfrc;
    /// Low extra delay background transport, always with something to send.
    Ledbat: ledbat;
    /// QUIC, by a stack of others.
    Quic: quic;
    /// Media whose encoder follows what the network takes.
    Scream: scream;
    /// Datagrams at a constant rate, whatever happens to them.
    Cbr: cbr;
    /// The packets of a capture, as datagrams.
    Trace: trace;
    /// A constant number of packets under way.
    Window: window;
}
