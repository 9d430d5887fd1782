//! QUIC, by stacks of others.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::Keys;
use crate::error::{Complaint, did_you_mean};
use crate::text::HINT;
use crate::traffic::app::{App, AppName};
use crate::traffic::{GroupSpec, Place};

/// Keys of `quinn` and `noq`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "quic")]
pub struct Quic {
    /// The stack's congestion controller.
    #[serde(default)]
    pub control: QuicControl,
}

/// Headers of IPv4 and UDP, bytes.
const HEADERS: u16 = 28;
/// The least that every path carries (RFC 9000 §14), bytes.
const LEAST_DATAGRAM: u16 = 1200;
/// What a datagram needs at least besides what it carries, bytes: flags, connection id, packet number and tag
/// (RFC 9000 §17.3.1), type and stream of a frame (§19.8).
const LEAST_OVERHEAD: u16 = 1 + 8 + 1 + 16 + 2;

impl Quic {
    /// The longest datagram in packets of so many bytes, without the headers of IP and UDP.
    pub fn datagram(packet: u16) -> u16 {
        packet - HEADERS
    }

    /// The packet that carries a datagram of so many bytes.
    pub fn packet(datagram: u16) -> u16 {
        datagram + HEADERS
    }

    /// The most that a packet of so many bytes carries of a stream.
    pub fn payload(packet: u16) -> u16 {
        packet - HEADERS - LEAST_OVERHEAD
    }
}

/// A controller that both stacks have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuicControl {
    /// CUBIC, the default of both.
    #[default]
    Cubic,
    /// NewReno (RFC 9002 §7).
    NewReno,
}

impl QuicControl {
    const ALL: [(&str, Self); 2] = [("cubic", Self::Cubic), ("newreno", Self::NewReno)];
}

/// Says why others are not among them.
impl<'de> Deserialize<'de> for QuicControl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        if let Some((_, control)) = Self::ALL.iter().find(|(name, _)| *name == word) {
            return Ok(*control);
        }
        let names = Self::ALL.map(|(name, _)| name);
        let hint = match word.as_str() {
            "bbr" => {
                "quinn has a `bbr`, but ignores its pacing rate: its results would not be BBR's"
                    .into()
            }
            "bbr3" => {
                "noq has a `bbr3`, but draws its probes from the system: no run could be repeated"
                    .into()
            }
            _ => did_you_mean(&word, names),
        };
        Err(serde::de::Error::custom(format!("{}{HINT}{hint}", names.join(", "))))
    }
}

impl Keys for Quic {
    const CARRIES: &'static [AppName] =
        &[AppName::Finite, AppName::Pareto, AppName::Exponential, AppName::Schedule];
    const CARRIES_ONLY: &'static str = "infinite, finite, pareto, exponential or schedule";
    const IS_GREEDY: bool = true;
    const ANSWERS: bool = true;
    // The least packet, which the stacks begin with; they ask for ECN themselves.
    const DEFAULTS: &'static str = "packet = \"1228B\"\necn = true\n";

    fn check(&self, group: &GroupSpec, _: &App, at: &Place) -> Result<(), Complaint> {
        let least = Self::packet(LEAST_DATAGRAM);
        if group.packet_bytes().is_some_and(|bytes| bytes < least) {
            let allowed =
                format!("{least}B … 65535B: QUIC sends datagrams of {LEAST_DATAGRAM} bytes");
            return at.refuse("packet", &allowed);
        }
        Ok(())
    }
}
