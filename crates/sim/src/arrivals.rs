//! The packets of a capture, as a source sends them.

use std::collections::HashMap;
use std::fs::File;

use aqm::Ecn;
use trace::Capture;

use crate::hash::DecisionHash;
use crate::packet::SHORTEST_PACKET;

/// The most packets that are held; 16 bytes each.
pub const MAX_ARRIVALS: usize = 1 << 28;

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When, ns.
    pub time: u64,
    /// Whose: flows are numbered as they first appear.
    pub flow: u32,
    /// Length on the wire, bytes.
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
}

impl Arrivals {
    /// Reads the packets of the file that come before `until` (ns). Those shorter than any packet
    /// here are as long as the shortest.
    ///
    /// # Errors
    /// What is wrong with the file, in words.
    pub fn read(file: &str, until: u64) -> Result<Self, String> {
        let input = File::open(file).map_err(|e| format!("{file}: {e}"))?;
        let mut capture = Capture::new(input, file).map_err(|e| e.to_string())?;
        let mut numbers = HashMap::new();
        let mut packets = Vec::new();
        let mut starts = Vec::new();
        let mut hash = DecisionHash::default();
        while let Some(packet) = capture.next_packet().map_err(|e| e.to_string())? {
            let time = packet.time;
            if time >= until {
                break;
            }
            if packets.len() == MAX_ARRIVALS {
                return Err(format!("{file}: more than {MAX_ARRIVALS} packets"));
            }
            let len = u16::try_from(packet.len).map_err(|_| {
                let len = packet.len;
                format!("{file}: a packet of {len} bytes at {time} ns; 65535 are the most")
            })?;
            let flow = *numbers.entry(packet.headers.flow).or_insert_with(|| {
                starts.push(time);
                starts.len() as u32 - 1
            });
            let (len, ecn) = (len.max(SHORTEST_PACKET), packet.headers.ecn);
            hash.departure(time, flow, u32::from(len) << 2 | ecn as u32);
            packets.push(Arrival { time, flow, len, ecn });
        }
        Ok(Self { packets: packets.into(), starts, digest: hash.to_string() })
    }

    /// Mean length in bytes, rounded; at least the shortest packet's.
    pub fn mean_len(&self) -> u64 {
        let sum: u64 = self.packets.iter().map(|packet| u64::from(packet.len)).sum();
        let n = self.packets.len().max(1) as u64;
        ((sum + n / 2) / n).max(SHORTEST_PACKET.into())
    }
}
