//! A packet in the simulator: a small plain record, copied by value.

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
}

/// No packet is shorter on the wire, bytes: the length of an acknowledgement or handshake packet.
pub const SHORTEST_PACKET: u32 = 40;

/// The most SACK blocks in one acknowledgement (RFC 2018 §3: three with timestamps in use).
pub const SACK_BLOCKS: usize = 3;

/// The payload that queues carry beside the metadata.
#[derive(Clone, Copy, Default, Debug)]
pub struct Packet {
    /// Position in the table of paths: the link that the packet comes to next, or waits at.
    pub hop: u32,
    /// Data: its number. Acknowledgement: the next number expected.
    pub seq: u32,
    /// SACK blocks as (first, past the last), counted from `seq`.
    pub sack: [(u16, u16); SACK_BLOCKS],
    /// What it is.
    pub kind: Kind,
    /// How many of `sack` are in use.
    pub sack_blocks: u8,
    /// Acknowledgement: ECN echo (ECE).
    pub echo: bool,
    /// Data: congestion window reduced (CWR).
    pub reduced: bool,
}

const _: () = assert!(size_of::<Packet>() == 24, "a packet stays at three words");
