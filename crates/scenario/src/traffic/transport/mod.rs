//! How data is carried: each transport with its keys, their defaults, ranges and documentation.

mod cbr;
mod ledbat;
mod own;
mod quic;
mod scream;
mod tcp;
mod tfrc;
mod trace;
mod window;

use aqm::Duration;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::de::Error;

pub use cbr::{Cbr, GapsName};
pub use ledbat::Ledbat;
pub use own::TransportChoice;
pub(in crate::traffic) use own::pattern;
pub use quic::{Quic, QuicControl};
pub use scream::Scream;
pub use tcp::{Conduct, EcnRule, Needs, Recovery, Tcp, TcpPreset};
pub use tfrc::Tfrc;
pub use trace::Trace;
pub use window::Window;

use super::app::{App, AppName};
use super::owner::{Owner, Table, read};
use super::{GroupSpec, Place};
use crate::error::Complaint;
use crate::text::Text;

/// Declares the names of all transports: name in files, of TCP each variant, of others whose keys they take.
macro_rules! names {
    (tcp { $($(#[doc = $tcp_doc:literal])+ $tcp:ident = $tcp_text:literal;)+ }
     $($(#[doc = $doc:literal])+ $name:ident = $text:literal: $kind:ident;)+) => {
        /// How data is carried.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
        pub enum TransportName {
            $($(#[doc = $tcp_doc])+ #[serde(rename = $tcp_text)] $tcp,)+
            $($(#[doc = $doc])+ #[serde(rename = $text)] $name,)+
        }

        impl TransportName {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$tcp,)+ $(Self::$name),+];

            /// The name in files and results.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$tcp => $tcp_text,)+ $(Self::$name => $text,)+ }
            }

            /// Whose keys it takes.
            pub const fn kind(self) -> Carrier {
                match self {
                    $(Self::$tcp => Carrier::Tcp(TcpName::$tcp),)+
                    $(Self::$name => Carrier::$kind,)+
                }
            }
        }

        /// The variants of TCP: how losses are repaired, and the congestion control.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum TcpName {
            $($(#[doc = $tcp_doc])+ $tcp,)+
            /// TCP with selective acknowledgements and a controller of the user's own.
            Own,
        }

        impl Default for TcpName {
            fn default() -> Self {
                Self::Sack
            }
        }
    };
}

names! {
    tcp {
        /// TCP without fast recovery: after three duplicates the window is one packet, and everything
        /// from the lost packet on is sent again (Jacobson 1988; ns-2's `Agent/TCP`).
        Tahoe = "tahoe";
        /// TCP with fast recovery, which repairs one loss per window (RFC 5681).
        Reno = "reno";
        /// TCP with fast recovery that repairs one loss per round trip, by partial acknowledgements
        /// (RFC 6582).
        NewReno = "newreno";
        /// TCP with selective acknowledgements (RFC 6675).
        Sack = "sack";
        /// TCP with selective acknowledgements and CUBIC congestion control (RFC 9438).
        Cubic = "cubic";
        /// TCP with selective acknowledgements and DCTCP congestion control (RFC 8257).
        Dctcp = "dctcp";
        /// TCP with selective acknowledgements and Prague congestion control for L4S: ECT(1), paced, exact
        /// echoes (RFC 9331).
        Prague = "prague";
        /// TCP with selective acknowledgements, RACK-TLP and BBR congestion control, version 3
        /// (draft-ietf-ccwg-bbr).
        Bbr = "bbr";
        /// TCP with selective acknowledgements, RACK-TLP and BBR congestion control, version 1 as in Linux.
        Bbr1 = "bbr1";
    }
    /// QUIC of the library quinn: its own code for losses, pacing and congestion control.
    Quinn = "quinn": Quic;
    /// QUIC of the library noq: its own code for losses, pacing and congestion control.
    Noq = "noq": Quic;
    /// Datagrams at a constant rate, whatever happens to them.
    Cbr = "cbr": Cbr;
    /// Datagrams at the rate that TCP would have at the same losses (RFC 5348); `infinite` only.
    Tfrc = "tfrc": Tfrc;
    /// Datagrams that keep the queueing delay small and yield to TCP: LEDBAT (RFC 6817); `infinite` only.
    Ledbat = "ledbat": Ledbat;
    /// Media whose encoder follows what the network takes: SCReAM (RFC 8298); `infinite` only.
    Scream = "scream": Scream;
    /// The packets of a capture, as datagrams at their own times, with their lengths, flows and ECN
    /// fields.
    Trace = "trace": Trace;
    /// Datagrams with a constant number in flight, whatever happens to them; `infinite` only.
    Window = "window": Window;
}

/// The facts about a transport's keys, and how they are read and checked; the compiler demands all from each
/// transport.
pub(in crate::traffic) trait Keys: DeserializeOwned {
    /// The applications that it carries besides `infinite`.
    const CARRIES: &'static [AppName];
    /// For messages about another application: what is allowed instead.
    const CARRIES_ONLY: &'static str;
    /// Whether `infinite` flows have more to send than the network takes, at any time.
    const IS_GREEDY: bool;
    /// Whether what becomes of its packets changes what it sends.
    const ANSWERS: bool;
    /// Keys of all groups with other defaults, as in files.
    const DEFAULTS: &'static str = "";

    /// From a table; whether the group gives `flows` and `packet`.
    fn read(table: Table<'_>, _given: [bool; 2]) -> Result<Self, Error> {
        read(table)
    }

    /// Checks what the types alone cannot.
    fn check(&self, group: &GroupSpec, app: &App, at: &Place) -> Result<(), Complaint>;
}

/// Declares what shares keys, beside TCP, whose variants do: the structs of the keys.
macro_rules! kinds {
    ($(#[doc = $doc:literal] $name:ident;)+) => {
        /// What shares keys: one for each variant of [`Transport`].
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Carrier {
            /// TCP, and which.
            Tcp(TcpName),
            $(#[doc = $doc] $name,)+
        }

        /// The keys of a transport.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(untagged)]
        pub enum Transport {
            /// TCP, of any variant.
            Tcp(Tcp),
            $(#[doc = $doc] $name($name),)+
        }

        impl Carrier {
            /// Whether it can carry an application; what is allowed if not.
            pub(super) fn carries(self, app: AppName) -> Result<(), &'static str> {
                let (carries, only) = match self {
                    Self::Tcp(_) => (Tcp::CARRIES, Tcp::CARRIES_ONLY),
                    $(Self::$name => ($name::CARRIES, $name::CARRIES_ONLY),)+
                };
                if app == AppName::Infinite || carries.contains(&app) { Ok(()) } else { Err(only) }
            }

            /// Keys of all groups with other defaults, as in files.
            pub(super) const fn defaults(self) -> &'static str {
                match self { Self::Tcp(_) => Tcp::DEFAULTS, $(Self::$name => $name::DEFAULTS,)+ }
            }

            /// Whether `infinite` flows have more to send than the network takes, at any time.
            pub(super) const fn is_greedy(self) -> bool {
                match self { Self::Tcp(_) => Tcp::IS_GREEDY, $(Self::$name => $name::IS_GREEDY,)+ }
            }

            /// Whether what becomes of its packets changes what it sends.
            pub const fn answers(self) -> bool {
                match self { Self::Tcp(_) => Tcp::ANSWERS, $(Self::$name => $name::ANSWERS,)+ }
            }
        }

        impl Transport {
            /// Whose keys are whose.
            pub(super) fn owners() -> Vec<Owner> {
                let words = |is: fn(Carrier) -> bool| {
                    let names = TransportName::ALL.iter().filter(|name| is(name.kind()));
                    names.map(|name| name.name()).collect::<Vec<_>>()
                };
                let mut owners = vec![Owner::transport::<Tcp>(words(|k| matches!(k, Carrier::Tcp(_))))];
                $(owners.push(Owner::transport::<$name>(words(|k| matches!(k, Carrier::$name))));)+
                owners
            }

            /// From the transport's part of a group's table.
            pub(super) fn read(
                table: Table<'_>,
                group: &GroupSpec,
                given: [bool; 2],
            ) -> Result<Self, Error> {
                Ok(match group.transport.kind() {
                    Carrier::Tcp(name) => Self::Tcp(Tcp::read_as(table, name, group)?),
                    $(Carrier::$name => Self::$name(<$name as Keys>::read(table, given)?),)+
                })
            }

            /// Checks what the types alone cannot.
            pub(super) fn check(
                &self,
                group: &GroupSpec,
                app: &App,
                at: &Place,
            ) -> Result<(), Complaint> {
                match self {
                    Self::Tcp(tcp) => tcp.check(group, app, at),
                    $(Self::$name(keys) => keys.check(group, app, at),)+
                }
            }
        }
    };
}

kinds! {
    /// QUIC, by a stack of others.
    Quic;
    /// Datagrams at a constant rate.
    Cbr;
    /// TCP-friendly rate control.
    Tfrc;
    /// Low extra delay background transport.
    Ledbat;
    /// Self-clocked rate adaptation for multimedia.
    Scream;
    /// The packets of a capture.
    Trace;
    /// A constant window.
    Window;
}

impl Transport {
    /// Whether a connection begins with a handshake.
    pub fn has_handshake(&self) -> bool {
        matches!(self, Self::Tcp(tcp) if tcp.handshake)
    }
}

/// The shortest that the first and the longest timeout may be: time has to go on.
const SHORTEST_RTO: Duration = Duration::from_millis(1);

fn second() -> Text<Duration> {
    Text(Duration::from_secs(1))
}
