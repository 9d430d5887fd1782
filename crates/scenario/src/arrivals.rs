//! Files that a scenario names, handed in by a caller that may open them, and the packets of a capture, as a
//! source sends them.

use aqm::{Duration, Ecn, Label};

use crate::text::{self, Network};

/// No packet is shorter on the wire, bytes: the length of an acknowledgement or handshake packet.
pub const SHORTEST_PACKET: u16 = 40;

/// Hands in the files that a scenario names.
pub trait Files {
    /// The packets of a capture that come before a time counted from the first of them, and are sent by
    /// one of some networks, if any is named.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn capture(
        &mut self,
        file: &str,
        until: Duration,
        senders: &[text::Text<Network>],
    ) -> Result<Arrivals, String>;

    /// The text of a file: how a link varies.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    fn text(&mut self, file: &str) -> Result<Text, String>;

    /// The links of a graph (GraphML), and the file, so named that it is found from any folder.
    ///
    /// # Errors
    /// What is wrong with it, in words, with its line.
    fn graph(&mut self, file: &str) -> Result<(Vec<Cable>, String), String>;
}

/// The text of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// What is in it.
    pub text: String,
    /// The file, so named that it is found from any folder.
    pub file: String,
}

/// A link as a file has it, before anything is checked.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Cable {
    /// The line of the file, from 1.
    pub line: usize,
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// Rate, with its unit; empty where the file has none.
    pub rate: String,
    /// Propagation delay, with its unit; empty where the file has none.
    pub delay: String,
    /// Whether it goes one way only.
    pub one_way: bool,
}

/// No files at all.
impl Files for () {
    fn capture(
        &mut self,
        file: &str,
        _: Duration,
        _: &[text::Text<Network>],
    ) -> Result<Arrivals, String> {
        Err(format!("{file}: captures are not read here"))
    }

    fn text(&mut self, file: &str) -> Result<Text, String> {
        Err(format!("{file}: files are not read here"))
    }

    fn graph(&mut self, file: &str) -> Result<(Vec<Cable>, String), String> {
        Err(format!("{file}: files are not read here"))
    }
}

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When, ns.
    pub time: u64,
    /// Whose: flows are numbered as they first appear.
    pub flow: u32,
    /// Length on the wire, bytes, [`SHORTEST_PACKET`] or more.
    pub len: u16,
    /// ECN codepoint.
    pub ecn: Ecn,
}

const _: () = assert!(size_of::<Arrival>() == 16);

/// All packets of a capture up to a time.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Arrivals {
    /// In the order of the file, times from that of its first packet on.
    pub packets: Box<[Arrival]>,
    /// When each flow's first packet comes, ns.
    pub starts: Vec<u64>,
    /// What each flow's first packet tells beside its flow; hosts are numbered as they first appear, modulo
    /// [`Label::HOSTS`].
    pub labels: Vec<Label>,
    /// Sixteen hexadecimal digits over all packets.
    pub digest: String,
    /// How many packets up to that time do not come at their recorded time, from all senders.
    pub reordered: u64,
    /// How many of these are longer than a frame of Ethernet.
    pub oversized: u64,
    /// The longest time without a packet, from all senders: when it begins and how long it lasts, ns.
    pub silence: [u64; 2],
    /// The file, so named that it is found from any folder.
    pub file: String,
}

impl Arrivals {
    /// Mean length in bytes, rounded; at least the shortest packet's.
    pub fn mean_len(&self) -> u64 {
        let sum: u64 = self.packets.iter().map(|packet| u64::from(packet.len)).sum();
        let n = self.packets.len().max(1) as u64;
        ((sum + n / 2) / n).max(SHORTEST_PACKET.into())
    }
}
