//! A packet in the simulator: a small plain record, copied by value.

use aqm::{Ecn, FlowKey, Instant, Meta};

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

/// No packet is shorter on the wire, bytes: the length of an acknowledgement or handshake packet.
pub const SHORTEST_PACKET: u16 = 40;

/// The most SACK blocks in one acknowledgement (RFC 2018 §3: three with timestamps in use).
pub const SACK_BLOCKS: usize = 3;

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
    /// Acknowledgement: ECN echo (ECE).
    pub echo: bool,
    /// Data: congestion window reduced (CWR).
    pub reduced: bool,
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
            echo: false,
            reduced: false,
            connection: 0,
        }
    }
}

impl Packet {
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
