//! How data is carried: each transport with its keys, their defaults, ranges and documentation.

mod cbr;
mod scream;
mod tcp;
mod tfrc;
mod trace;
mod window;

use aqm::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cbr::{Cbr, GapsName};
pub use scream::Scream;
pub use tcp::{Needs, Tcp, TcpName, TcpPreset};
pub use tfrc::Tfrc;
pub use trace::Trace;
pub use window::Window;

use super::app::{App, AppName};
use super::{Group, GroupSpec};
use crate::error::Complaint;
use crate::text::Text;

/// Declares the names of all transports: name in files, and whose keys it takes.
macro_rules! names {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal: $kind:expr;)+) => {
        /// How data is carried.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
        pub enum TransportName {
            $($(#[doc = $doc])+ #[serde(rename = $text)] $name,)+
        }

        impl TransportName {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name in files and results.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// Whose keys it takes.
            pub const fn kind(self) -> Kind {
                match self { $(Self::$name => $kind,)+ }
            }
        }
    };
}

names! {
    /// TCP with fast recovery of one loss a window (RFC 5681).
    Reno = "reno": Kind::Tcp(TcpName::Reno);
    /// TCP with partial acknowledgements (RFC 6582).
    NewReno = "newreno": Kind::Tcp(TcpName::NewReno);
    /// TCP with selective acknowledgements (RFC 6675).
    Sack = "sack": Kind::Tcp(TcpName::Sack);
    /// TCP with selective acknowledgements and CUBIC congestion control (RFC 9438).
    Cubic = "cubic": Kind::Tcp(TcpName::Cubic);
    /// TCP with selective acknowledgements and DCTCP congestion control (RFC 8257).
    Dctcp = "dctcp": Kind::Tcp(TcpName::Dctcp);
    /// TCP with selective acknowledgements and Prague congestion control for L4S: ECT(1), paced, exact
    /// echoes (RFC 9331).
    Prague = "prague": Kind::Tcp(TcpName::Prague);
    /// TCP with selective acknowledgements, RACK-TLP and BBR congestion control, version 3
    /// (draft-ietf-ccwg-bbr).
    Bbr = "bbr": Kind::Tcp(TcpName::Bbr);
    /// The same with BBR version 1, as Linux has it.
    Bbr1 = "bbr1": Kind::Tcp(TcpName::Bbr1);
    /// Datagrams at a constant rate that react to nothing.
    Cbr = "cbr": Kind::Cbr;
    /// Datagrams at the rate that TCP would have at the same losses (RFC 5348); `infinite` only.
    Tfrc = "tfrc": Kind::Tfrc;
    /// Media whose encoder follows what the network takes: SCReAM (RFC 8298); `infinite` only.
    Scream = "scream": Kind::Scream;
    /// The packets of a capture, as datagrams at their own times, with their lengths, flows and ECN
    /// fields.
    Trace = "trace": Kind::Trace;
    /// Datagrams, always the same number under way, whatever happens to them; `infinite` only.
    Window = "window": Kind::Window;
}

/// What shares keys: one for each variant of [`Transport`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// TCP, and which.
    Tcp(TcpName),
    /// Datagrams at a constant rate.
    Cbr,
    /// TCP-friendly rate control.
    Tfrc,
    /// Self-clocked rate adaptation for multimedia.
    Scream,
    /// The packets of a capture.
    Trace,
    /// A constant window.
    Window,
}

/// The keys of a transport.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Transport {
    /// TCP, of any variant.
    Tcp(Tcp),
    /// Datagrams at a constant rate.
    Cbr(Cbr),
    /// TCP-friendly rate control.
    Tfrc(Tfrc),
    /// Self-clocked rate adaptation for multimedia.
    Scream(Scream),
    /// The packets of a capture.
    Trace(Trace),
    /// A constant window.
    Window(Window),
}

impl Transport {
    /// Whether it can carry an application; what is wrong if not.
    pub(super) fn carries(name: TransportName, app: AppName) -> Result<(), &'static str> {
        use AppName::{Exponential, Finite, Infinite, Pareto, Periodic, Web};
        match (name.kind(), app) {
            (_, Infinite)
            | (Kind::Cbr, Periodic)
            | (Kind::Tcp(_), Finite | Pareto | Exponential | Web) => Ok(()),
            (Kind::Tcp(_), Periodic) => Err("for cbr only; TCP has pareto and exponential"),
            (Kind::Trace, _) => Err("none: a trace tells what is sent"),
            (Kind::Tfrc, _) => Err("infinite: tfrc always has something to send"),
            (Kind::Scream, _) => Err("infinite: its encoder always has something to send"),
            (Kind::Window, _) => Err("infinite: a window always has something to send"),
            (Kind::Cbr, _) => Err("infinite or periodic: cbr sends whatever happens"),
        }
    }

    /// Whether a connection begins with a handshake.
    pub fn has_handshake(&self) -> bool {
        matches!(self, Self::Tcp(tcp) if tcp.handshake)
    }

    /// Checks what the types alone cannot.
    pub(super) fn check(&self, group: &GroupSpec, app: &App, at: &Group) -> Result<(), Complaint> {
        match self {
            Self::Tcp(tcp) => {
                tcp.check(group, at)?;
                tcp.check_idle(group, app, at)
            }
            Self::Cbr(cbr) => cbr.check(group, at),
            Self::Scream(scream) => scream.check(at),
            Self::Tfrc(_) | Self::Trace(_) => Ok(()),
            Self::Window(window) => window.check(at),
        }
    }
}

/// The shortest that the first and the longest timeout may be: time has to go on.
const SHORTEST_RTO: Duration = Duration::from_millis(1);

fn second() -> Text<Duration> {
    Text(Duration::from_secs(1))
}
