//! A packet in the simulator: a small plain record, copied by value.

use aqm::{Ecn, FlowKey, Instant, Meta};
pub use scenario::arrivals::SHORTEST_PACKET;

/// What a packet is to its end points.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A segment of data.
    #[default]
    Data,
    /// An acknowledgement.
    Ack,
    /// The first packet of a handshake.
    Syn,
    /// Its answer.
    SynAck,
    /// A datagram.
    Datagram,
    /// A request for an object.
    Request,
}

/// The most SACK blocks in one acknowledgement (RFC 2018 §3: three with timestamps in use).
pub const SACK_BLOCKS: usize = 3;

/// ECN echo, a flag of acknowledgements, as in a TCP header.
pub const ECE: u8 = 0x40;

/// Congestion window reduced, a flag of data packets, as in a TCP header.
pub const CWR: u8 = 0x80;

/// A packet, on a wire or in a queue. What links look at comes first, so that the rest is copied as
/// one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// Position in the table of paths: the link that the packet comes to next, or waits at.
    pub hop: u32,
    /// Length on the wire, bytes.
    pub len: u16,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// What it is.
    pub kind: Kind,
    /// The number of its flow.
    pub flow: u32,
    /// Data: its number. Acknowledgement: the next number expected.
    pub seq: u32,
    /// SACK blocks as (first, past the last), counted from `seq`.
    pub sack: [(u16, u16); SACK_BLOCKS],
    /// How many of `sack` are in use.
    pub sack_blocks: u8,
    /// [`ECE`] and [`CWR`].
    pub flags: u8,
    /// The number of its connection, where a flow has one after another; they come round.
    pub connection: u8,
}

const _: () = assert!(size_of::<Packet>() == 32, "a packet stays at half a cache line");

/// The shortest packet, of nobody.
impl Default for Packet {
    fn default() -> Self {
        Self {
            flow: 0,
            hop: 0,
            seq: 0,
            sack: [(0, 0); SACK_BLOCKS],
            len: SHORTEST_PACKET,
            kind: Kind::default(),
            ecn: Ecn::default(),
            sack_blocks: 0,
            flags: 0,
            connection: 0,
        }
    }
}

impl Packet {
    /// Whether it has a flag.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Says a time and something else in the room for SACK blocks.
    pub fn say(&mut self, time: u64, other: u32) {
        let word = |shift: u32| (time >> shift) as u16;
        let rest = (other as u16, (other >> 16) as u16);
        self.sack = [(word(0), word(16)), (word(32), word(48)), rest];
    }

    /// What was said.
    pub fn said(&self) -> (u64, u32) {
        let [(a, b), (c, d), (e, f)] = self.sack;
        let [a, b, c, d] = [a, b, c, d].map(u64::from);
        (a | b << 16 | c << 32 | d << 48, u32::from(e) | u32::from(f) << 16)
    }

    /// The identity of a connection of the flow that is known as `flow`, less than 2⁵⁶.
    #[inline]
    pub fn identity(&self, flow: u64) -> FlowKey {
        FlowKey(flow | u64::from(self.connection) << 56)
    }

    /// What a managed queue sees of the packet as it arrives at `now` (ns).
    #[inline]
    pub fn meta(&self, now: u64) -> Meta {
        Meta {
            arrived: Instant::from_nanos(now),
            flow: self.identity(u64::from(self.flow)),
            len: u32::from(self.len),
            ecn: self.ecn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        for (time, other) in [(0, 0), (u64::MAX, 1), (0x0123_4567_89ab_cdef, 0xfedc_ba98)] {
            let mut packet = Packet::default();
            packet.say(time, other);
            assert_eq!(packet.said(), (time, other));
        }
    }

    #[test]
    fn another_connection_is_another_flow() {
        let packet = |connection| Packet { flow: 7, connection, ..Packet::default() };
        let identities = [0, 1, 255].map(|connection| packet(connection).meta(0).flow);
        assert_eq!(identities.map(|key| key.0 & u64::from(u32::MAX)), [7; 3]);
        assert!(identities[0] != identities[1] && identities[1] != identities[2]);
    }
}
