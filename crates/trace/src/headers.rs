//! The headers of packets that nobody captured: IPv4 with TCP or UDP.

use aqm::Ecn;
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, UdpHeader};

/// The source and the destination of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The sender's address.
    pub source: [u8; 4],
    /// The receiver's address.
    pub destination: [u8; 4],
    /// The ports of both.
    pub ports: [u16; 2],
}

/// What a segment of TCP says in its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Number of its first byte.
    pub seq: u32,
    /// The next byte that is expected, if it acknowledges any.
    pub ack: Option<u32>,
    /// Whether it asks for a connection.
    pub syn: bool,
}

/// Bytes of the headers of a segment of TCP.
pub const TCP: usize = Ipv4Header::MIN_LEN + TcpHeader::MIN_LEN;
/// Bytes of the headers of a datagram.
pub const UDP: usize = Ipv4Header::MIN_LEN + UdpHeader::LEN;

/// The headers of a segment of `len` bytes, of which these are the first 40. Its checksum is 0, since
/// nobody knows its data.
pub fn tcp(ends: &Ends, ecn: Ecn, len: u16, segment: &Segment) -> [u8; TCP] {
    let [from, to] = ends.ports;
    let mut tcp = TcpHeader::new(from, to, segment.seq, u16::MAX);
    tcp.syn = segment.syn;
    tcp.ack = segment.ack.is_some();
    tcp.acknowledgment_number = segment.ack.unwrap_or_default();
    let mut bytes = [0; TCP];
    bytes[..Ipv4Header::MIN_LEN].copy_from_slice(&ip(ends, ecn, len, IpNumber::TCP));
    bytes[Ipv4Header::MIN_LEN..].copy_from_slice(&tcp.to_bytes());
    bytes
}

/// The headers of a datagram of `len` bytes, of which these are the first 28. It has no checksum.
pub fn udp(ends: &Ends, ecn: Ecn, len: u16) -> [u8; UDP] {
    let [source_port, destination_port] = ends.ports;
    let length = len.saturating_sub(Ipv4Header::MIN_LEN_U16);
    let udp = UdpHeader { source_port, destination_port, length, checksum: 0 };
    let mut bytes = [0; UDP];
    bytes[..Ipv4Header::MIN_LEN].copy_from_slice(&ip(ends, ecn, len, IpNumber::UDP));
    bytes[Ipv4Header::MIN_LEN..].copy_from_slice(&udp.to_bytes());
    bytes
}

fn ip(ends: &Ends, ecn: Ecn, len: u16, protocol: IpNumber) -> [u8; Ipv4Header::MIN_LEN] {
    let mut ip = Ipv4Header {
        ecn: match ecn {
            Ecn::NotEct => IpEcn::NotEct,
            Ecn::Ect1 => IpEcn::Ect1,
            Ecn::Ect0 => IpEcn::Ect0,
            Ecn::Ce => IpEcn::CongestionExperienced,
        },
        total_len: len,
        dont_fragment: true,
        time_to_live: 64,
        protocol,
        source: ends.source,
        destination: ends.destination,
        ..Ipv4Header::default()
    };
    ip.header_checksum = ip.calc_header_checksum();
    let bytes = ip.to_bytes();
    std::array::from_fn(|i| bytes[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Layer;

    #[test]
    fn our_own_parser_reads_them() {
        let ends =
            Ends { source: [10, 1, 2, 3], destination: [198, 18, 0, 1], ports: [1024, 65_535] };
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            let segment = Segment { seq: 7, ack: Some(u32::MAX), syn: true };
            let (tcp, udp) = (tcp(&ends, ecn, 1500, &segment), udp(&ends, ecn, 28));
            for (bytes, protocol) in [(&tcp[..], 6), (&udp[..], 17)] {
                let read = wire::parse(bytes, Layer::Ip);
                assert_eq!((read.ecn, read.flow.ports), (ecn, ends.ports), "{protocol}");
                assert_eq!(read.flow.protocol, protocol);
                assert_eq!(read.flow.source[12..], ends.source);
                assert_eq!(read.flow.destination[12..], ends.destination);
            }
            // Sequence number, acknowledgement, words of the header and flags SYN and ACK.
            assert_eq!(tcp[24..34], [0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0x50, 0x12]);
            assert_eq!(udp[24..28], [0, 8, 0, 0], "its length and no checksum");
        }
    }
}
