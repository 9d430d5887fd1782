//! The packets of a capture, as a source sends them: handed in by whoever may open files.

use aqm::{Duration, Ecn};

/// No packet is shorter on the wire, bytes: the length of an acknowledgement or handshake packet.
pub const SHORTEST_PACKET: u16 = 40;

/// Gives the packets of a named file that come before a time counted from the first of them, or says
/// in words what is wrong with it.
pub type Captures<'a> = dyn FnMut(&str, Duration) -> Result<Arrivals, String> + 'a;

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
    /// Sixteen hexadecimal digits over all packets.
    pub digest: String,
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
