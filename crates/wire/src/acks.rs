//! What a frame acknowledges, for queues that filter acknowledgements.

use aqm::Ack;

use crate::{Layer, Network, TCP, network, u16_at};

const FIN_SYN_RST_PSH_URG: u8 = 0x2f;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// What a segment of TCP acknowledges; [`Ack::NONE`] for all else, fragments, what is cut off, and TCP
/// behind extension headers of IPv6. *Bare* is one without data, with no other flag than ACK, ECE and
/// CWR, and with no other option than timestamps.
pub fn acknowledgement(frame: &[u8], layer: Layer) -> Ack {
    let segment = match network(frame, layer) {
        Some(Network::V4(at)) => in_ipv4(&frame[at..]),
        Some(Network::V6(at)) => in_ipv6(&frame[at..]),
        None => None,
    };
    segment.and_then(read).unwrap_or(Ack::NONE)
}

fn in_ipv4(packet: &[u8]) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 15) * 4;
    let total = usize::from(u16_at(packet, 2)?);
    let whole = u16_at(packet, 6)? & 0x3fff == 0 && *packet.get(9)? == TCP && header >= 20;
    packet.get(header..total).filter(|_| whole)
}

fn in_ipv6(packet: &[u8]) -> Option<&[u8]> {
    let length = usize::from(u16_at(packet, 4)?);
    packet.get(40..40 + length).filter(|_| packet[6] == TCP)
}

fn read(segment: &[u8]) -> Option<Ack> {
    let header = usize::from(segment.get(12)? >> 4) * 4;
    let (reserved, flags) = (segment[12] & 0x0f, *segment.get(13)?);
    let options = segment.get(20..header)?;
    let number = u32::from_be_bytes(segment[8..12].try_into().ok()?);
    let bare = segment.len() == header
        && reserved == 0
        && flags & FIN_SYN_RST_PSH_URG == 0
        && only_timestamps(options);
    (flags & (ACK | SYN) == ACK)
        .then(|| Ack::new(number, [flags & ECE != 0, flags & CWR != 0], bare))
}

/// Whether options (RFC 9293 §3.1) are nothing but timestamps (RFC 7323 §3) and padding.
fn only_timestamps(mut options: &[u8]) -> bool {
    loop {
        options = match options {
            [] | [0, ..] => return true,
            [1, rest @ ..] => rest,
            [8, 10, rest @ ..] if rest.len() >= 8 => &rest[8..],
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, TcpOptionElement as Tcp};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A segment as another program builds it.
    fn segment(v6: bool, number: u32, flags: &str, options: &[Tcp], data: &[u8]) -> Vec<u8> {
        let mut tcp = match v6 {
            true => PacketBuilder::ipv6([1; 16], [2; 16], 64),
            false => PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
        }
        .tcp(80, 5001, 7, 1000);
        for flag in flags.chars() {
            tcp = match flag {
                'A' => tcp.ack(number),
                'S' => tcp.syn(),
                'F' => tcp.fin(),
                'P' => tcp.psh(),
                'R' => tcp.rst(),
                'E' => tcp.ece(),
                'C' => tcp.cwr(),
                _ => tcp.ns(),
            };
        }
        let tcp = tcp.options(options).unwrap();
        let mut frame = Vec::new();
        tcp.write(&mut frame, data).unwrap();
        frame
    }

    #[test]
    fn a_bare_acknowledgement_is_told_from_one_that_says_more() {
        let stamps = [Tcp::Noop, Tcp::Noop, Tcp::Timestamp(5, 6)];
        let sack = [Tcp::SelectiveAcknowledgement((1, 2), [None; 3])];
        for v6 in [false, true] {
            let ack = |flags, options: &[Tcp], data: &[u8]| {
                acknowledgement(&segment(v6, 77, flags, options, data), Layer::Ip)
            };
            for (flags, ecn) in [("A", [false; 2]), ("AE", [true, false]), ("AC", [false, true])] {
                assert_eq!(ack(flags, &[], b""), Ack::new(77, ecn, true));
                assert_eq!(ack(flags, &stamps, b""), Ack::new(77, ecn, true));
            }
            let more = Ack::new(77, [false; 2], false);
            assert_eq!(ack("A", &sack, b""), more);
            assert_eq!(ack("A", &[Tcp::MaximumSegmentSize(9)], b""), more);
            assert_eq!(ack("A", &[], b"x"), more);
            for flags in ["AF", "AP", "AR", "AN"] {
                assert_eq!(ack(flags, &[], b""), more, "{flags}");
            }
            for flags in ["", "S", "SA", "F"] {
                assert_eq!(ack(flags, &[], b""), Ack::NONE, "{flags}");
            }
            let whole = segment(v6, 77, "A", &[], b"");
            for cut in 0..whole.len() {
                assert_eq!(acknowledgement(&whole[..cut], Layer::Ip), Ack::NONE, "{cut} bytes");
            }
        }
        let mut fragment = segment(false, 77, "A", &[], b"");
        fragment[6] = 0x20;
        assert_eq!(acknowledgement(&fragment, Layer::Ip), Ack::NONE);
    }

    proptest! {
        #[test]
        fn anything_can_be_read(
            mut frame in proptest::collection::vec(any::<u8>(), 0..120), start in 0_usize..3,
        ) {
            if let Some(byte) = frame.first_mut() {
                *byte = [*byte, 0x45, 0x60][start];
            }
            if let Some(byte) = frame.get_mut(if start == 1 { 9 } else { 6 }) {
                *byte = TCP;
            }
            for layer in [Layer::Ip, Layer::Ethernet] {
                acknowledgement(&frame, layer);
            }
        }
    }
}
