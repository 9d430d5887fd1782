//! A packet in the simulator: a small plain record, copied by value.

use aqm::{Ack, Carried, Ecn, FlowKey, Instant, Meta};
use link::Item;
pub use scenario::arrivals::SHORTEST_PACKET;

/// The most SACK blocks in one acknowledgement (RFC 2018 §3: three with timestamps in use).
pub const SACK_BLOCKS: usize = 3;

/// SACK blocks as (first, past the last), counted from the acknowledgement's number, up to
/// [`scenario::LARGEST_WINDOW`], in twelve bytes: three blocks in 16 bits a number, or two in 20 bits, as it takes to hold the first.
/// Then the fifth word has the numbers' upper bits, and the sixth is 0, as in no third block.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sack([u16; 2 * SACK_BLOCKS]);

impl Sack {
    /// Of `blocks`, none empty, those that there is room for.
    pub fn new(blocks: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut told = Self::default();
        let words = told.0.chunks_exact_mut(2);
        let mut high = 0;
        for (i, (words, (first, end))) in words.zip(blocks).enumerate() {
            let upper = (first >> 16 | end >> 16 << 4) as u16;
            if i == SACK_BLOCKS - 1 && (high | upper) > 0 {
                break;
            }
            words.copy_from_slice(&[first as u16, end as u16]);
            if upper > 0 {
                high |= upper << (8 * i);
            }
        }
        if high > 0 {
            told.0[4] = high;
        }
        told
    }

    /// The blocks; (0, 0) from where there are no more.
    #[inline]
    pub fn blocks(self) -> [(u32, u32); SACK_BLOCKS] {
        let [a, b, c, d, e, f] = self.0.map(u32::from);
        if e <= f {
            return [(a, b), (c, d), (e, f)];
        }
        let wide = |low, place: u32| low | (e >> place & 15) << 16;
        [(wide(a, 0), wide(b, 4)), (wide(c, 8), wide(d, 12)), (0, 0)]
    }

    /// Whether there is no block.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0[1] | self.0[4] == 0
    }

    /// Makes place for one block more, of which nobody asks where it lies.
    pub fn make_place(&mut self) {
        let [.., e, f] = &mut self.0;
        if *e < *f {
            (*e, *f) = (0, 0);
        }
    }
}

/// A time in ns below 2⁵⁶, 2.3 years, in seven bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp([u8; 7]);

impl From<u64> for Stamp {
    fn from(ns: u64) -> Self {
        let [a, b, c, d, e, f, g, _] = ns.to_le_bytes();
        Self([a, b, c, d, e, f, g])
    }
}

impl Stamp {
    /// The time, ns.
    pub fn ns(self) -> u64 {
        let [a, b, c, d, e, f, g] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, 0])
    }
}

/// Beside the ECN echo of an acknowledgement: what it answers had come before (D-SACK, RFC 2883). Nobody
/// asks which it was, so that its block is not kept; it takes the place of one.
pub const DUPLICATE: u8 = 1 << 3;

/// The highest bit of AccECN's field ACE, in an acknowledgement's `ece`.
const AE: u8 = 1 << 2;

/// The timestamp of what is sent at `now` (ns): ticks of 2²⁰ ns, about a millisecond, as Linux has them.
/// In an echo's 16 bits 68 seconds fit.
pub fn tick(now: u64) -> u32 {
    (now >> TICK) as u32
}

/// When the last packet may have been sent at the earliest, ns, whose timestamp comes back at `now`.
pub fn sent_at_echo(now: u64, echo: u16) -> u64 {
    let ticks = (tick(now) as u16).wrapping_sub(echo);
    (now >> TICK).saturating_sub(ticks.into()) << TICK
}

const TICK: u32 = 20;

/// Echoes of times so far apart are the same, ns.
pub const ECHOES: u64 = 1 << (TICK + u16::BITS);

/// What a packet is to its end points, and what it tells them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Payload {
    /// A segment of TCP.
    Data {
        /// Congestion window reduced (RFC 3168 §6.1.2).
        cwr: bool,
        /// Its timestamp (RFC 7323 §3), in [`tick`]s.
        tick: u32,
    },
    /// A segment of TCP with its time of sending, for measured delays; receivers treat it as data.
    Stamped {
        /// As of data.
        cwr: bool,
        /// As of data.
        tick: u32,
        /// When it was sent.
        sent: Stamp,
    },
    /// An acknowledgement of TCP.
    Ack {
        /// An ECN echo (RFC 3168 §6.1.3), 1 or 0; with AccECN the field ACE (RFC 9768 §3.2.2), whose
        /// lowest bit is the flag ECE, whose next is CWR and whose highest is AE. [`DUPLICATE`] beside it.
        ece: u8,
        /// The timestamp of what let the acknowledgement's number grow (RFC 7323 §4.3); wraps.
        echo: u16,
        /// What came beyond it.
        sack: Sack,
    },
    /// The first packet of a handshake.
    Syn {
        /// Its timestamp, as far as an echo has it.
        tick: u16,
    },
    /// Its answer.
    SynAck {
        /// The timestamp of what it answers.
        echo: u16,
        /// It came marked (with AccECN, RFC 9768 §3.1.1).
        marked: bool,
    },
    /// A request for an object.
    Request {
        /// The answer to the SYN came marked.
        marked: bool,
    },
    /// A datagram.
    Datagram {
        /// When it was sent.
        sent: Stamp,
    },
    /// What a receiver says of a datagram.
    Answer,
    /// A datagram of TFRC (RFC 5348 §3.2.1).
    Paced {
        /// When it was sent.
        sent: Stamp,
        /// The sender's round-trip time, µs; 0 while it knows none.
        rtt: u32,
    },
    /// What a receiver of TFRC says (RFC 5348 §3.2.2).
    Feedback {
        /// When the last packet was sent, plus the time that it waited for this answer.
        echo: Stamp,
        /// The loss event rate, 0 … 1.
        p: f32,
        /// Packets per second that arrive.
        rate: f32,
    },
    /// What a receiver of SCReAM says (RFC 8298 §4.2.1) beside the highest number that came, or one of LEDBAT
    /// of the packet that came.
    Report {
        /// When that came.
        arrived: Stamp,
        /// Bit k: the number 1 + k before it has not come.
        missing: u32,
        /// How many came marked; wraps.
        marks: u16,
    },
    /// A packet of a recording of the gateway.
    Recorded {
        /// What it tells beside its flow, the upper half of a [`FlowKey`].
        label: u32,
        /// What it acknowledges.
        ack: Ack,
    },
    /// An acknowledgement of a part of the packet with its number, by a receiver of TCP that cheats.
    Part,
}

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
    /// The number of its connection, where a flow has one after another; wraps.
    pub connection: u8,
    /// The number of its flow.
    pub flow: u32,
    /// Data: its number. Acknowledgement of TCP: the next number expected.
    pub seq: u32,
    /// What it says.
    pub payload: Payload,
}

const _: () = assert!(size_of::<Packet>() == 32, "a packet stays at half a cache line");

/// A placeholder: the shortest packet, a segment of flow 0.
impl Default for Packet {
    fn default() -> Self {
        Self {
            hop: 0,
            len: SHORTEST_PACKET,
            ecn: Ecn::default(),
            connection: 0,
            flow: 0,
            seq: 0,
            payload: Payload::Data { cwr: false, tick: 0 },
        }
    }
}

impl Payload {
    /// When data was sent, ns, if it says it.
    pub fn sent(&self) -> Option<u64> {
        match self {
            Self::Stamped { sent, .. } | Self::Datagram { sent } | Self::Paced { sent, .. } => {
                Some(sent.ns())
            }
            _ => None,
        }
    }

    /// Whether it goes to where the group's data comes from; `asked`: a client there asks for the data,
    /// and begins.
    #[inline]
    pub fn goes_back(&self, asked: bool) -> bool {
        match self {
            Self::Data { .. }
            | Self::Stamped { .. }
            | Self::Datagram { .. }
            | Self::Paced { .. }
            | Self::Recorded { .. } => false,
            Self::Ack { .. }
            | Self::Part
            | Self::Answer
            | Self::Feedback { .. }
            | Self::Report { .. }
            | Self::Request { .. } => true,
            Self::Syn { .. } => asked,
            Self::SynAck { .. } => !asked,
        }
    }
}

impl Packet {
    /// Whether it is an acknowledgement with an ECN echo.
    pub fn echoes(&self) -> bool {
        matches!(self.payload, Payload::Ack { ece, .. } if ece & !DUPLICATE == 1)
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

impl Item for Packet {
    #[inline(always)]
    fn flow(&self, _: &Meta) -> u32 {
        self.flow
    }

    #[inline(always)]
    fn seq(&self) -> u32 {
        self.seq
    }
}

impl Carried for Packet {
    fn ack(&self) -> Ack {
        match self.payload {
            Payload::Ack { ece, sack, .. } => {
                // As in a header, where AE is beyond the flags that every TCP knows, and where what
                // came twice has a block.
                let bare = sack.is_empty() && ece & (AE | DUPLICATE) == 0;
                Ack::new(self.seq, [ece & 1 > 0, ece & 2 > 0], bare)
            }
            Payload::Recorded { ack, .. } => ack,
            _ => Ack::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_holds_two_years() {
        for ns in [0, 1, 0x0012_3456_789a_bcde, (1 << 56) - 1] {
            assert_eq!(Stamp::from(ns).ns(), ns);
        }
    }

    /// A filter may take what the gateway would find bare in a frame, and nothing else.
    #[test]
    fn an_acknowledgement_that_says_more_is_not_bare() {
        let ack = |seq, ece, block| {
            let payload = Payload::Ack { ece, echo: 0, sack: Sack::new(block) };
            Packet { seq, payload, ..Packet::default() }.ack()
        };
        let later = ack(9, 0, None);
        for ece in 0..16 {
            let (told, ecn) = (ack(8, ece, None).is_told_by(later), ece & 3);
            assert_eq!(told, ece < AE, "{ece}");
            assert!(ack(8, ece, None).same_ecn(ack(9, ecn, None)), "{ece}");
        }
        assert!(!ack(8, 0, Some((1, 2))).is_told_by(later));
    }

    #[test]
    fn blocks_are_told_as_far_as_there_is_room() {
        let all = scenario::LARGEST_WINDOW;
        let cases: [(&[(u32, u32)], usize); 9] = [
            (&[], 0),
            (&[(1, 2)], 1),
            (&[(9, 65_535), (5, 8), (1, 2), (20, 30)], 3),
            (&[(9, 65_536)], 1),
            (&[(65_536, 65_537), (1, 2), (4, 5)], 2),
            (&[(1, 65_536), (65_537, 65_538)], 2),
            (&[(4, 5), (1, 2), (65_536, 131_072)], 2),
            (&[(4, 5), (131_072, 131_073), (1, 2)], 2),
            (&[(all - 1, all), (1, all - 2)], 2),
        ];
        for (blocks, room) in cases {
            let mut sack = Sack::new(blocks.iter().copied());
            let mut expected = blocks[..room].to_vec();
            expected.resize(SACK_BLOCKS, (0, 0));
            assert_eq!((sack.blocks().to_vec(), sack.is_empty()), (expected.clone(), room == 0));
            sack.make_place();
            expected[SACK_BLOCKS - 1] = (0, 0);
            assert_eq!(sack.blocks().to_vec(), expected);
        }
    }

    /// An echo is of the last tick that it may be of, and wraps.
    #[test]
    fn an_echo_gives_the_time_of_sending_to_a_tick() {
        const MS: u64 = 1_000_000;
        for (sent, took) in [(0, 0), (3, 40 * MS), (70_000 * MS, 68_000 * MS), (1 << 20, 1)] {
            let echo = tick(sent) as u16;
            let found = sent_at_echo(sent + took, echo);
            assert!(found <= sent && sent - found < 1 << 20, "{sent} {took}: {found}");
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
