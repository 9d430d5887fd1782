//! From the bytes of a packet to what a queue discipline may know of it, and the mark in its header.
//!
//! Every packet is hostile: all reads are checked, and what cannot be read is left out, never
//! guessed. A flow is the 5-tuple as far as the packet shows it:
//!
//! | packet | what stands for the ports |
//! |---|---|
//! | TCP, UDP, UDP-Lite, DCCP, SCTP | source and destination port |
//! | ESP | the security parameters index (SPI) |
//! | ICMP and ICMPv6 echo and its reply | the identifier |
//! | any fragment, also the first | nothing, so that all fragments of a datagram are one flow |
//! | other protocols, or cut off before the ports | nothing |
//!
//! IPv6 extension headers and AH are passed over to the transport behind them, up to [`MAX_EXTENSIONS`]; the
//! protocol of an IPv6 fragment is 44, since only its first fragment tells the transport for sure (RFC 8200
//! §4.5). All packets that are neither IPv4 nor IPv6, or not sound, are one flow that cannot be marked; on
//! Ethernet [`stations`] tells them apart.
//!
//! Tunnels are judged by their outer header, which is the one that routers mark (RFC 6040). Where IP
//! is carried by something else than IP, its header is looked for behind that:
//!
//! | before the IP header | flow | mark |
//! |---|---|---|
//! | VLAN tags (802.1Q, 802.1ad), up to [`MAX_TAGS`] | that of IP | in the IP header |
//! | PPPoE session (RFC 2516) | that of IP | in the IP header: PPP has no field for it, and a node below IP may reach up to it (RFC 9599 §3.2) |
//! | MPLS, up to [`MAX_LABELS`] | that of IP | none: below labels a mark belongs into the label's TC field, in a code that each network chooses for itself (RFC 5129) |

#![no_std]

#[cfg(test)]
extern crate std;

use aqm::Ecn;

mod acks;
mod datagrams;

pub use acks::acknowledgement;
pub use datagrams::{Likeness, likeness};

/// What the first byte of a frame belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// An IPv4 or IPv6 header, as from a TUN device.
    Ip,
    /// An Ethernet header, and what may come between it and IP.
    Ethernet,
}

/// The most VLAN tags that are passed over.
pub const MAX_TAGS: usize = 4;
/// The most MPLS labels that are passed over.
pub const MAX_LABELS: usize = 8;
/// The most IPv6 extension headers that are passed over.
pub const MAX_EXTENSIONS: usize = 8;

/// Identity of a flow in one direction. IPv4 addresses are mapped into IPv6 (RFC 4291 §2.5.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Flow {
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// Protocol number; 0 for what is not IP.
    pub protocol: u8,
    /// Ports, or what stands for them; 0 where there is nothing.
    pub ports: [u16; 2],
}

/// What was read from a frame.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Headers {
    /// Whose it is.
    pub flow: Flow,
    /// Its ECN field; [`Ecn::NotEct`] for what has none, or where it must not be changed.
    pub ecn: Ecn,
    /// The codepoint of its DiffServ field, 0 … 63; 0 for what has none.
    pub dscp: u8,
}

/// Reads the headers of `frame`.
pub fn parse(frame: &[u8], layer: Layer) -> Headers {
    let Some(Place { network, markable }) = place(frame, layer) else { return Headers::default() };
    let headers = match network {
        Network::V4(at) => ipv4(&frame[at..]),
        Network::V6(at) => ipv6(&frame[at..]),
    };
    let headers = headers.unwrap_or_default();
    Headers { ecn: if markable { headers.ecn } else { Ecn::NotEct }, ..headers }
}

/// Who an Ethernet frame without IP is from and to: a flow by stations and the type behind any VLAN
/// tags (0x0806 is ARP), which stands for the first port. Ethernet addresses are written as IPv6 ones
/// (fe80::/64 and modified EUI-64, RFC 4291 appendix A).
pub fn stations(frame: &[u8]) -> Flow {
    let address = |at: usize| {
        let mut address = [0; 16];
        if let Some(&[a, b, c, d, e, f]) = frame.get(at..at + 6) {
            address[..2].copy_from_slice(&[0xfe, 0x80]);
            address[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
        }
        address
    };
    let kind = ethertype(frame).map_or(0, |(kind, _)| kind);
    Flow { source: address(6), destination: address(0), protocol: 0, ports: [kind, 0] }
}

/// Writes "congestion experienced" into the IP header of an ECN-capable packet, and mends the
/// checksum of IPv4. Returns whether the packet now carries CE; without an ECN-capable header it is
/// not touched.
pub fn set_ce(frame: &mut [u8], layer: Layer) -> bool {
    match parse(frame, layer).ecn {
        Ecn::NotEct => return false,
        Ecn::Ce => return true,
        Ecn::Ect0 | Ecn::Ect1 => {}
    }
    match network(frame, layer) {
        Some(Network::V4(at)) => {
            let header = &mut frame[at..];
            let before = u16_at(header, 0).unwrap_or_default();
            header[1] |= Ecn::Ce as u8;
            let after = u16_at(header, 0).unwrap_or_default();
            let checksum = u16_at(header, 10).unwrap_or_default();
            header[10..12].copy_from_slice(&updated(checksum, before, after).to_be_bytes());
            true
        }
        Some(Network::V6(at)) => {
            frame[at + 1] |= (Ecn::Ce as u8) << 4;
            true
        }
        None => false,
    }
}

/// Clears the codepoint of the DiffServ field, but not the ECN field, and mends the checksum of IPv4. What
/// has no IP header, or one below labels, is not touched.
pub fn clear_dscp(frame: &mut [u8], layer: Layer) {
    let Some(Place { network, markable: true }) = place(frame, layer) else { return };
    match network {
        Network::V4(at) if ipv4(&frame[at..]).is_some() => {
            let header = &mut frame[at..];
            let before = u16_at(header, 0).unwrap_or_default();
            header[1] &= 0b11;
            let after = u16_at(header, 0).unwrap_or_default();
            let checksum = u16_at(header, 10).unwrap_or_default();
            header[10..12].copy_from_slice(&updated(checksum, before, after).to_be_bytes());
        }
        Network::V6(at) if ipv6(&frame[at..]).is_some() => {
            frame[at] &= 0xf0;
            frame[at + 1] &= 0x3f;
        }
        _ => {}
    }
}

/// A checksum after one word of what it covers changed. RFC 1624 eq. 3: HC' = ~(~HC + ~m + m').
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// The network header and where it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Network {
    /// IPv4, at this offset.
    V4(usize),
    /// IPv6, at this offset.
    V6(usize),
}

/// Finds the network header of `frame`, of which at least the first byte is there.
pub fn network(frame: &[u8], layer: Layer) -> Option<Network> {
    place(frame, layer).map(|place| place.network)
}

/// The network header, and whether its ECN field may be changed here.
struct Place {
    network: Network,
    markable: bool,
}

fn place(frame: &[u8], layer: Layer) -> Option<Place> {
    let (at, markable) = match layer {
        Layer::Ip => (0, true),
        Layer::Ethernet => match ethertype(frame)? {
            (0x0800 | 0x86dd, at) => (at, true),
            (0x8864, at) => (ppp(frame, at)?, true),
            (0x8847 | 0x8848, at) => (below_labels(frame, at)?, false),
            _ => return None,
        },
    };
    let network = match frame.get(at)? >> 4 {
        4 => Network::V4(at),
        6 => Network::V6(at),
        _ => return None,
    };
    Some(Place { network, markable })
}

/// The type of an Ethernet frame behind its VLAN tags, and where what it tells of begins.
fn ethertype(frame: &[u8]) -> Option<(u16, usize)> {
    let tagged = |kind| matches!(kind, 0x8100 | 0x88a8 | 0x9100);
    let mut at = 12;
    while tagged(u16_at(frame, at)?) && at < 12 + 4 * MAX_TAGS {
        at += 4;
    }
    Some((u16_at(frame, at)?, at + 2))
}

/// The IP header in a PPPoE session's frame (RFC 2516 §4): version and type 1, code 0, session,
/// length, PPP protocol.
fn ppp(frame: &[u8], at: usize) -> Option<usize> {
    let is_data = u16_at(frame, at)? == 0x1100;
    let is_ip = matches!(u16_at(frame, at + 6)?, 0x0021 | 0x0057);
    (is_data && is_ip).then_some(at + 8)
}

/// What the last of a stack of labels (RFC 3032 §2.1) is before. That it is IP its first bits have
/// to tell (RFC 4928 §3).
fn below_labels(frame: &[u8], at: usize) -> Option<usize> {
    let last = (0..MAX_LABELS).map(|i| at + 4 * i);
    last.into_iter().find(|at| frame.get(at + 2).is_some_and(|b| b & 1 == 1)).map(|at| at + 4)
}

fn ipv4(packet: &[u8]) -> Option<Headers> {
    let header = usize::from(packet.first()? & 15) * 4;
    // What is longer than 64 kB, or has yet to be cut up, has no length (TSO, BIG TCP): all of it counts.
    let total = match usize::from(u16_at(packet, 2)?) {
        0 => packet.len(),
        total => total,
    };
    if header < 20 || total < header || packet.len() < header {
        return None;
    }
    let fragment = u16_at(packet, 6)? & 0x3fff != 0; // more fragments, or an offset
    let protocol = packet[9];
    let payload = &packet[header..total.min(packet.len())];
    let (protocol, ports) =
        if fragment { (protocol, [0; 2]) } else { transport(protocol, payload, false) };
    let flow =
        Flow { source: mapped(packet, 12), destination: mapped(packet, 16), protocol, ports };
    Some(Headers { flow, ecn: ecn(packet[1]), dscp: packet[1] >> 2 })
}

fn ipv6(packet: &[u8]) -> Option<Headers> {
    let (header, rest) = packet.split_at_checked(40)?;
    // 0 is a jumbogram's length (RFC 2675).
    let payload = match usize::from(u16_at(header, 4)?) {
        0 => rest,
        length => &rest[..length.min(rest.len())],
    };
    let (protocol, ports) = transport(header[6], payload, true);
    let flow = Flow {
        source: header[8..24].try_into().ok()?,
        destination: header[24..40].try_into().ok()?,
        protocol,
        ports,
    };
    let class = header[0] << 4 | header[1] >> 4;
    Some(Headers { flow, ecn: ecn(class), dscp: class >> 2 })
}

/// The transport protocol behind any extension headers, and its ports. Of these IPv4 has AH alone.
fn transport(mut protocol: u8, mut payload: &[u8], v6: bool) -> (u8, [u16; 2]) {
    for _ in 0..MAX_EXTENSIONS {
        let (Some(&next), Some(&length)) = (payload.first(), payload.get(1)) else { break };
        let length = match protocol {
            FRAGMENT if v6 => match u16_at(payload, 2) {
                // An atomic fragment is whole (RFC 6946).
                Some(offset) if offset & 0xfff9 == 0 => 8,
                _ => return (FRAGMENT, [0; 2]),
            },
            AUTHENTICATION => (usize::from(length) + 2) * 4,
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HIP | SHIM6 if v6 => {
                (usize::from(length) + 1) * 8
            }
            _ => break,
        };
        protocol = next;
        payload = payload.get(length..).unwrap_or_default();
    }
    (protocol, ports(protocol, payload).unwrap_or_default())
}

fn ports(protocol: u8, payload: &[u8]) -> Option<[u16; 2]> {
    match protocol {
        TCP | UDP | DCCP | SCTP | UDP_LITE | ESP => {
            Some([u16_at(payload, 0)?, u16_at(payload, 2)?])
        }
        ICMP if matches!(payload.first()?, 0 | 8) => Some([u16_at(payload, 4)?, 0]),
        ICMPV6 if matches!(payload.first()?, 128 | 129) => Some([u16_at(payload, 4)?, 0]),
        _ => None,
    }
}

const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const AUTHENTICATION: u8 = 51;
const ICMPV6: u8 = 58;
const DESTINATION: u8 = 60;
const SCTP: u8 = 132;
const MOBILITY: u8 = 135;
const UDP_LITE: u8 = 136;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

fn ecn(bits: u8) -> Ecn {
    match bits & 3 {
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        3 => Ecn::Ce,
        _ => Ecn::NotEct,
    }
}

/// The IPv4 address at `at`, which the caller has checked to be there.
fn mapped(packet: &[u8], at: usize) -> [u8; 16] {
    let mut address = [0; 16];
    address[10..12].fill(0xff);
    address[12..].copy_from_slice(&packet[at..at + 4]);
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [192, 0, 2, 7];

    /// The checksum of an IPv4 header, computed in full (RFC 1071).
    fn full_checksum(header: &[u8]) -> u16 {
        let words = header.chunks_exact(2).enumerate().filter(|&(i, _)| i != 5);
        let sum: u32 = words.map(|(_, w)| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    fn v4(protocol: u8, tos: u8, fragment: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let header = 20 + options.len();
        let mut p = vec![0; header];
        p[0] = 0x40 | (header / 4) as u8;
        p[1] = tos;
        p[2..4].copy_from_slice(&((header + payload.len()) as u16).to_be_bytes());
        p[4..6].copy_from_slice(&0xbeef_u16.to_be_bytes());
        p[6..8].copy_from_slice(&fragment.to_be_bytes());
        p[8] = 64;
        p[9] = protocol;
        p[12..16].copy_from_slice(&A);
        p[16..20].copy_from_slice(&B);
        p[20..].copy_from_slice(options);
        let checksum = full_checksum(&p);
        p[10..12].copy_from_slice(&checksum.to_be_bytes());
        p.extend_from_slice(payload);
        p
    }

    fn v6(next: u8, class: u8, payload: &[u8]) -> Vec<u8> {
        let mut p = vec![0; 40];
        p[0] = 0x60 | class >> 4;
        p[1] = class << 4 | 0xa; // the flow label's first bits
        p[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        p[6] = next;
        p[7] = 64;
        p[8] = 0xfd;
        p[24] = 0xfe;
        p.extend_from_slice(payload);
        p
    }

    fn ethernet(kinds: &[u16], packet: &[u8]) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for (i, kind) in kinds.iter().enumerate() {
            if i > 0 {
                f.extend([0, 42]); // the tag's VLAN
            }
            f.extend(kind.to_be_bytes());
        }
        f.extend_from_slice(packet);
        f
    }

    /// Ports 5001 and 443, then the rest of a header.
    const PORTS: [u8; 20] =
        [0x13, 0x89, 0x01, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6];

    #[test]
    fn flows_of_hand_built_packets() {
        let echo = |kind| [kind, 0, 0xab, 0xcd, 0x12, 0x34, 0, 1];
        // Next header, length, and padding: 8 bytes; the second of 16 (length 1).
        let hop = |next| [next, 0, 1, 4, 0, 0, 0, 0];
        let chain = [&hop(60)[..], &[6, 1], &[0; 14], &PORTS].concat();
        let atomic = [&[17, 0, 0, 0, 9, 9, 9, 9][..], &PORTS].concat();
        let first = [&[17, 0, 0, 1, 9, 9, 9, 9][..], &PORTS].concat();
        let later = [&[17, 0, 5, 0xa8, 9, 9, 9, 9][..], &PORTS].concat();
        // An AH of 24 bytes: length 4 counts words beyond the first two.
        let ah = [&[6, 4], &[0; 22][..], &PORTS].concat();
        let endless = [hop(0); 40].concat();
        for (what, packet, protocol, ports) in [
            ("TCP", v4(6, 0, 0, &[], &PORTS), 6, [5001, 443]),
            ("UDP, don't fragment", v4(17, 0, 0x4000, &[], &PORTS), 17, [5001, 443]),
            ("TCP behind options", v4(6, 0, 0, &[1; 8], &PORTS), 6, [5001, 443]),
            ("first fragment", v4(17, 0, 0x2000, &[], &PORTS), 17, [0, 0]),
            ("later fragment", v4(17, 0, 185, &[], &PORTS), 17, [0, 0]),
            ("ping", v4(1, 0, 0, &[], &echo(8)), 1, [0x1234, 0]),
            ("its reply", v4(1, 0, 0, &[], &echo(0)), 1, [0x1234, 0]),
            ("ICMP unreachable", v4(1, 0, 0, &[], &echo(3)), 1, [0, 0]),
            ("ESP", v4(50, 0, 0, &[], &PORTS), 50, [5001, 443]),
            ("AH before TCP", v4(51, 0, 0, &[], &ah), 6, [5001, 443]),
            ("GRE", v4(47, 0, 0, &[], &PORTS), 47, [0, 0]),
            ("no extension header of IPv4", v4(60, 0, 0, &[], &chain[8..]), 60, [0, 0]),
            ("cut off in the ports", v4(6, 0, 0, &[], &PORTS[..3]), 6, [0, 0]),
            ("TCP over IPv6", v6(6, 0, &PORTS), 6, [5001, 443]),
            ("two extension headers", v6(0, 0, &chain), 6, [5001, 443]),
            ("IPv6 atomic fragment", v6(44, 0, &atomic), 17, [5001, 443]),
            ("IPv6 first fragment", v6(44, 0, &first), 44, [0, 0]),
            ("IPv6 later fragment", v6(44, 0, &later), 44, [0, 0]),
            ("ping over IPv6", v6(58, 0, &echo(128)), 58, [0x1234, 0]),
            ("neighbour solicitation", v6(58, 0, &echo(135)), 58, [0, 0]),
            ("no next header", v6(59, 0, &[]), 59, [0, 0]),
            ("extensions without end", v6(0, 0, &endless), 0, [0, 0]),
            ("an extension that ends too late", v6(0, 0, &[6, 200, 0, 0, 0, 0, 0, 0]), 6, [0, 0]),
        ] {
            let kind = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
            for (frame, layer) in [
                (packet.clone(), Layer::Ip),
                (ethernet(&[kind], &packet), Layer::Ethernet),
                (ethernet(&[0x8100, kind], &packet), Layer::Ethernet),
                (ethernet(&[0x88a8, 0x8100, kind], &packet), Layer::Ethernet),
            ] {
                let read = parse(&frame, layer);
                assert_eq!((read.flow.protocol, read.flow.ports), (protocol, ports), "{what}");
                assert_ne!(read.flow.source, read.flow.destination, "{what}");
            }
        }
    }

    #[test]
    fn addresses_are_read_from_their_places() {
        let four = parse(&v4(6, 0, 0, &[], &PORTS), Layer::Ip).flow;
        assert_eq!((&four.source[12..], &four.destination[12..]), (&A[..], &B[..]));
        let six = parse(&v6(6, 0, &PORTS), Layer::Ip).flow;
        assert_eq!((six.source[0], six.destination[0]), (0xfd, 0xfe));
    }

    /// Bytes behind the end that the IP header tells are padding of the frame, not ports.
    #[test]
    fn padding_is_not_read() {
        let mut frame = ethernet(&[0x0800], &v4(6, 0, 0, &[], &[]));
        frame.extend([0x55; 26]);
        assert_eq!(parse(&frame, Layer::Ethernet).flow.ports, [0, 0]);
    }

    #[test]
    fn what_is_not_sound_ip_is_one_flow_that_cannot_be_marked() {
        let good = v4(6, 2, 0, &[], &PORTS);
        let with = |at: usize, byte: u8| {
            let mut p = good.clone();
            p[at] = byte;
            p
        };
        let six = v6(6, 2, &PORTS);
        for bad in [
            vec![],
            vec![0x45],
            with(0, 0x44), // a header of 16 bytes
            with(0, 0x4f), // a header of 60 bytes in 40
            with(0, 0x55), // version 5
            with(3, 19),   // a total length shorter than the header
            good[..19].into(),
            six[..39].into(),
        ] {
            let mut copy = bad.clone();
            assert_eq!(parse(&bad, Layer::Ip), Headers::default(), "{bad:x?}");
            assert!(!set_ce(&mut copy, Layer::Ip));
            assert_eq!(copy, bad);
        }
        for kind in [0x88cc, 0x0806, 0x8863] {
            let other = ethernet(&[kind], &[0x45; 40]);
            assert_eq!(parse(&other, Layer::Ethernet), Headers::default(), "{kind:#x}");
        }
        let tags = ethernet(&[0x8100, 0x8100, 0x8100, 0x8100, 0x8100, 0x0800], &good);
        assert_eq!(parse(&tags, Layer::Ethernet), Headers::default());
    }

    /// PPPoE: a session's data. MPLS: two labels, the last with the bit that says so.
    fn carried(kind: u16, packet: &[u8]) -> Vec<u8> {
        let before: &[u8] = match (kind, packet[0] >> 4) {
            (0x8864, 4) => &[0x11, 0, 0, 7, 0, 42, 0, 0x21],
            (0x8864, _) => &[0x11, 0, 0, 7, 0, 62, 0, 0x57],
            _ => &[0, 0x06, 0x40, 64, 0, 0x06, 0x51, 64],
        };
        ethernet(&[0x8100, kind], &[before, packet].concat())
    }

    #[test]
    fn ip_is_found_behind_pppoe_and_mpls_and_marked_where_it_may_be() {
        for packet in [v4(6, 2, 0, &[], &PORTS), v6(6, 2, &PORTS)] {
            let plain = parse(&packet, Layer::Ip);
            for (kind, markable) in [(0x8864, true), (0x8847, false), (0x8848, false)] {
                let mut frame = carried(kind, &packet);
                let read = parse(&frame, Layer::Ethernet);
                assert_eq!(read.flow, plain.flow, "{kind:#x}");
                assert_eq!(read.ecn, if markable { plain.ecn } else { Ecn::NotEct });
                let before = frame.clone();
                assert_eq!(set_ce(&mut frame, Layer::Ethernet), markable);
                assert_eq!(frame != before, markable);
                assert_eq!(frame[..26], before[..26], "what is before IP stays");
            }
        }
        // Of PPPoE: not a session's data, another version, LCP.
        for (at, byte) in [(19, 9), (18, 0x21), (24, 0xc0)] {
            let mut frame = carried(0x8864, &v4(6, 2, 0, &[], &PORTS));
            frame[at] = byte;
            assert_eq!(parse(&frame, Layer::Ethernet), Headers::default(), "byte {at}");
        }
        // Of MPLS: labels without end, a control word.
        let labels = [&[0, 0x06, 0x40, 64].repeat(MAX_LABELS)[..], &[0, 0x06, 0x51, 64]].concat();
        for below in [[&labels[..], &v4(6, 2, 0, &[], &PORTS)].concat(), vec![0, 0x06, 0x51, 64, 0]]
        {
            let frame = ethernet(&[0x8847], &below);
            assert_eq!(parse(&frame, Layer::Ethernet), Headers::default());
        }
    }

    #[test]
    fn frames_without_ip_are_told_apart_by_stations_and_type() {
        let arp = stations(&ethernet(&[0x0806], &[0; 28]));
        assert_eq!(arp.ports, [0x0806, 0]);
        // 02:00:00:00:00:02, and fe80::ff:fe00:2 of it.
        let expected = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 2];
        assert_eq!(arp.source, expected);
        assert_ne!(arp.source, arp.destination);
        assert_eq!(stations(&ethernet(&[0x8100, 0x0806], &[0; 28])), arp);
        assert_ne!(stations(&ethernet(&[0x88cc], &[0; 28])), arp);
        assert_eq!(stations(&[1, 2, 3]), Flow::default());
    }

    /// VXLAN: the outer header alone tells the flow and takes the mark (RFC 6040).
    #[test]
    fn a_tunnel_is_marked_in_its_outer_header_alone() {
        let inner = ethernet(&[0x0800], &v4(6, 2, 0, &[], &PORTS));
        let vxlan = [&[0x13, 0x89, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 1, 0][..], &inner];
        for before in [v4(17, 2, 0, &[], &vxlan.concat()), v6(17, 2, &vxlan.concat())] {
            let headers = if before[0] >> 4 == 4 { 20 } else { 40 };
            assert_eq!(parse(&before, Layer::Ip).flow.ports, [5001, 4789]);
            let mut after = before.clone();
            assert!(set_ce(&mut after, Layer::Ip));
            assert_eq!(parse(&after, Layer::Ip).ecn, Ecn::Ce);
            assert_eq!(after[headers..], before[headers..], "what is inside stays");
        }
        // An outer header that cannot be marked is not, whatever is inside.
        assert!(!set_ce(&mut v4(17, 0, 0, &[], &vxlan.concat()), Layer::Ip));
    }

    #[test]
    fn marks_only_what_is_capable_and_touches_nothing_else() {
        let codepoints = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        for dscp in [0u8, 46 << 2, 0xfc] {
            for ecn in codepoints {
                let tos = dscp | ecn as u8;
                for before in [v4(6, tos, 0, &[7; 4], &PORTS), v6(6, tos, &PORTS)] {
                    assert_eq!(parse(&before, Layer::Ip).ecn, ecn);
                    assert_eq!(parse(&before, Layer::Ip).dscp, dscp >> 2);
                    let mut after = before.clone();
                    assert_eq!(set_ce(&mut after, Layer::Ip), ecn != Ecn::NotEct);
                    let expected = if ecn == Ecn::NotEct { ecn } else { Ecn::Ce };
                    assert_eq!(parse(&after, Layer::Ip).ecn, expected);
                    let mut rebuilt = match before[0] >> 4 {
                        4 => v4(6, dscp | expected as u8, 0, &[7; 4], &PORTS),
                        _ => v6(6, dscp | expected as u8, &PORTS),
                    };
                    assert_eq!(after, rebuilt, "DSCP {dscp:#x}, {ecn:?}");
                    set_ce(&mut rebuilt, Layer::Ip);
                    assert_eq!(after, rebuilt, "a second mark changes nothing");
                }
            }
        }
    }

    /// The codepoint goes, the ECN field and a correct checksum stay, in both versions of IP.
    #[test]
    fn a_codepoint_is_cleared() {
        let mut v4 =
            vec![0x45, 46 << 2 | 2, 0, 20, 1, 2, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let checksum = full_checksum(&v4);
        v4[10..12].copy_from_slice(&checksum.to_be_bytes());
        clear_dscp(&mut v4, Layer::Ip);
        let headers = parse(&v4, Layer::Ip);
        assert_eq!((headers.dscp, headers.ecn), (0, Ecn::Ect0));
        let mended = [v4[10], v4[11]];
        v4[10..12].fill(0);
        assert_eq!(mended, full_checksum(&v4).to_be_bytes());
        let mut v6 = vec![0; 40];
        v6[..2].copy_from_slice(&[0x6b, 0xaf]);
        assert_eq!(parse(&v6, Layer::Ip).dscp, 46);
        clear_dscp(&mut v6, Layer::Ip);
        assert_eq!(v6[..2], [0x60, 0x2f]);
        let mut short = [0x45, 0xb8];
        clear_dscp(&mut short, Layer::Ip);
        assert_eq!(short, [0x45, 0xb8], "no header");
    }

    /// The example of RFC 1624 §4: checksum 0xdd2f, a word from 0x5555 to 0x3285, gives 0x0000.
    #[test]
    fn the_checksum_of_the_rfc_s_example() {
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        /// A correct checksum stays correct, whatever the header holds.
        #[test]
        fn the_incremental_checksum_is_the_full_one(
            mut packet in prop::collection::vec(any::<u8>(), 20..60), words in 5u8..=15,
        ) {
            let header = usize::from(words) * 4;
            packet.resize(header.max(packet.len()), 0);
            packet[0] = 0x40 | words;
            packet[1] |= 2;
            packet[2..4].copy_from_slice(&0xffffu16.to_be_bytes());
            let checksum = full_checksum(&packet[..header]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            prop_assert!(set_ce(&mut packet, Layer::Ip));
            let written = u16::from_be_bytes([packet[10], packet[11]]);
            let full = full_checksum(&packet[..header]);
            prop_assert_eq!(written, full);
        }
    }
}
