//! Super-packets: the kernel hands over up to 64 kB of one TCP or UDP flow at once, with a header
//! that says how to cut it (virtio specification §5.1.6), and leaves checksums to be filled in. A
//! queue has to judge packets as they would be on the wire, so they are cut here.
//!
//! The header tells where the transport header is that is to be repeated, not what is before it. So
//! that is walked through, from the outside in: IPv4, IPv6 with extension headers, IP in IP, GRE, and
//! in UDP VXLAN, Geneve, GUE or IP itself. Of each packet all lengths, identifications and checksums
//! on that way are made anew, as on a host that had sent it so. Where the way does not end at the
//! transport header exactly, or holds what depends on the packet in ways that cannot be told from
//! outside (AH, GRE with numbers, jumbograms), the super-packet is refused: it is never cut on a
//! guess.

use crc::{CRC_32_ISCSI, Crc};

use crate::frame::{Layer, Network, network};

/// Length of the header before each frame.
pub const HEADER: usize = 10;

/// What the header says.
#[derive(Clone, Copy, Debug)]
struct Offload {
    needs_checksum: bool,
    kind: u8,
    /// Whether CWR is a signal of its own, which goes with the first packet alone (RFC 3168), and no
    /// part of a counter, which goes with all of them (RFC 9768).
    classic_ecn: bool,
    /// Bytes of payload in each packet.
    size: usize,
    /// Where the checksummed part, the transport header, begins, and its checksum in that.
    start: usize,
    offset: usize,
}

const NEEDS_CHECKSUM: u8 = 1;
const WHOLE: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP_L4: u8 = 5;
/// Flags of the kind: CWR is set by the rules of RFC 3168, or by those of RFC 9768. Linux sets the
/// first for its own packets by RFC 3168, the second (or, where it does not know it, none) for others.
const ECN: u8 = 0x80;
const ACCURATE_ECN: u8 = 0x10;

const CWR: u8 = 0x80;
const FIN_PSH: u8 = 0x09;

/// Gives the packets of a frame with a header before it to `each`. Whether they could be made.
pub fn cut(bytes: &mut [u8], layer: Layer, each: &mut impl FnMut(&[u8])) -> bool {
    let Some((header, frame)) = bytes.split_at_mut_checked(HEADER) else { return false };
    let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
    let offload = Offload {
        needs_checksum: header[0] & NEEDS_CHECKSUM != 0,
        kind: header[1] & !(ECN | ACCURATE_ECN),
        classic_ecn: header[1] & (ECN | ACCURATE_ECN) == ECN,
        size: word(4),
        start: word(6),
        offset: word(8),
    };
    match offload.kind {
        WHOLE => {
            if offload.needs_checksum && !complete(frame, &offload, layer) {
                return false;
            }
            each(frame);
            true
        }
        TCP_V4 | TCP_V6 | UDP_L4 => segments(frame, &offload, layer, each).is_some(),
        _ => false,
    }
}

/// Puts a VLAN tag that the kernel has taken out of a frame back into it. Before the frame there is a
/// header, before that as much room as a tag takes, and the frame is at least 12 bytes.
pub fn put_tag(bytes: &mut [u8], tag: [u8; TAG]) {
    bytes.copy_within(TAG..TAG + HEADER + 12, 0);
    bytes[HEADER + 12..HEADER + 12 + TAG].copy_from_slice(&tag);
    if bytes[0] & NEEDS_CHECKSUM != 0 {
        let start = u16::from_ne_bytes([bytes[6], bytes[7]]).saturating_add(TAG as u16);
        bytes[6..8].copy_from_slice(&start.to_ne_bytes());
    }
}

/// Bytes of a VLAN tag.
pub const TAG: usize = 4;

/// Fills in the checksum of a packet. That of SCTP covers the packet alone; of others, the sum of the
/// pseudo-header stands in its place now.
fn complete(frame: &mut [u8], offload: &Offload, layer: Layer) -> bool {
    let at = offload.start + offload.offset;
    if at + 2 > frame.len() {
        return false;
    }
    if offload.offset == SCTP_CHECKSUM
        && let Some(way) = Way::new(frame, layer, offload.start, SCTP)
        && let Some(packet) = frame.get_mut(offload.start..way.end(frame))
        && packet.len() >= SCTP_CHECKSUM + 4
    {
        let place = SCTP_CHECKSUM..SCTP_CHECKSUM + 4;
        packet[place.clone()].fill(0);
        let value = CRC.checksum(packet);
        packet[place].copy_from_slice(&value.to_le_bytes());
        return true;
    }
    let sum = filled(sum(0, &frame[offload.start..]));
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// SCTP's checksum, and where it stands (RFC 9260 §3.1, appendix A).
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
const SCTP_CHECKSUM: usize = 8;

/// Fills in the checksum of a whole TCP or UDP packet if what stands in its place is the sum of the
/// pseudo-header, which is what the kernel leaves there, and the packet is not right as it is. Not
/// behind IPv6 extension headers.
pub fn complete_unsaid(frame: &mut [u8], layer: Layer) -> Option<()> {
    let network = network(frame, layer)?;
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let (protocol, start, end, addresses) = match network {
        Network::V4(ip) => {
            // A fragment has no checksum of its own.
            if word(ip + 6)? & 0x3fff != 0 {
                return None;
            }
            let header = usize::from(frame[ip] & 15) * 4;
            let end = ip + usize::from(word(ip + 2)?);
            (*frame.get(ip + 9)?, ip + header, end, ip + 12..ip + 20)
        }
        Network::V6(ip) => {
            let end = ip + 40 + usize::from(word(ip + 4)?);
            (*frame.get(ip + 6)?, ip + 40, end, ip + 8..ip + 40)
        }
    };
    let at = start + if protocol == TCP { 16 } else { 6 };
    let packet = frame.get(start..end)?;
    let pseudo = sum(u64::from(protocol) + packet.len() as u64, frame.get(addresses)?);
    let left = protocol == TCP || protocol == UDP;
    if !left || at + 2 > end || word(at)? != !checksum(pseudo) {
        return None;
    }
    // A packet that is right has this there, too, once in 65536.
    if checksum(sum(pseudo, packet)) == 0 {
        return None;
    }
    let sum = sum(0, packet);
    let value = if protocol == UDP { filled(sum) } else { checksum(sum) };
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    Some(())
}

/// Protocol numbers.
const HOP_BY_HOP: u8 = 0;
const IPV4: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const GRE: u8 = 47;
const DESTINATION: u8 = 60;
const SCTP: u8 = 132;

/// A header before the transport header that differs from packet to packet, and where it is.
#[derive(Clone, Copy, Debug)]
enum Part {
    V4(usize),
    V6(usize),
    /// That of a tunnel, with the IP header before it.
    Udp(usize, Ip),
    /// With a checksum.
    Gre(usize),
    /// PPPoE.
    Ppp(usize),
}

/// An IP header.
#[derive(Clone, Copy, Debug)]
struct Ip {
    at: usize,
    v4: bool,
}

impl From<Network> for Ip {
    fn from(network: Network) -> Self {
        match network {
            Network::V4(at) => Self { at, v4: true },
            Network::V6(at) => Self { at, v4: false },
        }
    }
}

/// What is before a transport header, from the outside in.
#[derive(Debug)]
struct Way {
    parts: [Part; MOST_PARTS],
    count: usize,
    /// The last IP header.
    ip: Ip,
}

/// The most headers on a way: two tunnels, one in the other, of any kind.
const MOST_PARTS: usize = 6;

impl Way {
    /// The way to the transport header of `protocol` at `end`, if there is one that ends there.
    fn new(frame: &[u8], layer: Layer, end: usize, protocol: u8) -> Option<Self> {
        let ip = Ip::from(network(frame, layer)?);
        let mut way = Self { parts: [Part::Gre(0); MOST_PARTS], count: 0, ip };
        if layer == Layer::Ethernet && matches!(word(frame, ip.at - 2)?, 0x0021 | 0x0057) {
            way.add(Part::Ppp(ip.at - 8))?;
        }
        loop {
            way.add(if way.ip.v4 { Part::V4(way.ip.at) } else { Part::V6(way.ip.at) })?;
            let (next, at) = behind(frame, way.ip)?;
            if at >= end {
                return (at == end && next == protocol).then_some(way);
            }
            let outer = way.ip;
            way.ip = match next {
                IPV4 => Ip { at, v4: true },
                IPV6 => Ip { at, v4: false },
                GRE => {
                    if word(frame, at)? & GRE_CHECKSUM != 0 {
                        way.add(Part::Gre(at))?;
                    }
                    in_gre(frame, at)?
                }
                UDP => {
                    way.add(Part::Udp(at, outer))?;
                    in_udp(frame, at + 8)?
                }
                _ => return None,
            };
            // Bytes that only look like a header do not tell how much is left.
            if carried(frame, way.ip)? != frame.len() {
                return None;
            }
        }
    }

    fn add(&mut self, part: Part) -> Option<()> {
        *self.parts.get_mut(self.count)? = part;
        self.count += 1;
        Some(())
    }

    /// From the inside out.
    fn back(&self) -> impl Iterator<Item = Part> {
        self.parts[..self.count].iter().rev().copied()
    }

    /// Where the packet ends, by its last IP header, in `frame`.
    fn end(&self, frame: &[u8]) -> usize {
        carried(frame, self.ip).unwrap_or_default()
    }
}

fn word(frame: &[u8], at: usize) -> Option<u16> {
    let two = frame.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

/// Where a packet ends by its IP header.
fn carried(frame: &[u8], ip: Ip) -> Option<usize> {
    Some(match ip.v4 {
        true => ip.at + usize::from(word(frame, ip.at + 2)?),
        false => ip.at + 40 + usize::from(word(frame, ip.at + 4)?),
    })
}

/// The protocol behind an IP header and its extensions, and where that begins. Nothing of fragments
/// and where that cannot be told.
fn behind(frame: &[u8], ip: Ip) -> Option<(u8, usize)> {
    let version = *frame.get(ip.at)? >> 4;
    if ip.v4 {
        let header = usize::from(frame[ip.at] & 15) * 4;
        let whole = word(frame, ip.at + 6)? & 0x3fff == 0;
        let sound = version == 4 && header >= 20 && whole;
        return sound.then_some((*frame.get(ip.at + 9)?, ip.at + header));
    }
    let (mut next, mut at) = (*frame.get(ip.at + 6)?, ip.at + 40);
    for _ in 0..crate::frame::MAX_EXTENSIONS {
        if !matches!(next, HOP_BY_HOP | ROUTING | DESTINATION) {
            break;
        }
        // A jumbogram's length stands there, too (RFC 2675).
        if next == HOP_BY_HOP && *frame.get(at + 2)? == 0xc2 {
            return None;
        }
        next = *frame.get(at)?;
        at += (usize::from(*frame.get(at + 1)?) + 1) * 8;
    }
    (version == 6).then_some((next, at))
}

/// What GRE carries (RFC 2784, RFC 2890): IP, or Ethernet with IP. Without sequence numbers, which
/// would have to go on from one packet to the next.
fn in_gre(frame: &[u8], at: usize) -> Option<Ip> {
    let (flags, kind) = (word(frame, at)?, word(frame, at + 2)?);
    if flags & !(GRE_CHECKSUM | GRE_KEY) != 0 {
        return None;
    }
    let optional = [GRE_CHECKSUM, GRE_KEY].into_iter().filter(|flag| flags & flag != 0);
    of_type(frame, kind, at + 4 + 4 * optional.count())
}

const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;

/// What a tunnel in UDP carries: VXLAN (RFC 7348), Geneve (RFC 8926), GUE (`draft-ietf-intarea-gue`)
/// or IP itself; they are told apart by their first bytes, since ports are a matter of configuration.
fn in_udp(frame: &[u8], at: usize) -> Option<Ip> {
    let (first, second) = (*frame.get(at)?, *frame.get(at + 1)?);
    match (first >> 4, second, word(frame, at + 2)?) {
        (4 | 6, ..) => Some(Ip { at, v4: first >> 4 == 4 }),
        (0..4, _, kind @ (TRANSPARENT_ETHERNET | 0x0800 | 0x86dd)) => {
            of_type(frame, kind, at + 8 + 4 * usize::from(first & 0x3f))
        }
        (0 | 1, IPV4 | IPV6, _) => {
            let inner = at + 4 + 4 * usize::from(first & 0x1f);
            Some(Ip { at: inner, v4: second == IPV4 })
        }
        _ if first & 0x08 != 0 => of_type(frame, TRANSPARENT_ETHERNET, at + 8),
        _ => None,
    }
}

const TRANSPARENT_ETHERNET: u16 = 0x6558;

/// What begins at `at` by its Ethernet type: IP, or Ethernet with IP.
fn of_type(frame: &[u8], kind: u16, at: usize) -> Option<Ip> {
    match kind {
        0x0800 | 0x86dd => Some(Ip { at, v4: kind == 0x0800 }),
        TRANSPARENT_ETHERNET => {
            let inner = Ip::from(network(frame.get(at..)?, Layer::Ethernet)?);
            let found = Ip { at: at + inner.at, ..inner };
            // Not behind PPPoE or labels.
            matches!(word(frame, found.at - 2)?, 0x0800 | 0x86dd).then_some(found)
        }
        _ => None,
    }
}

/// Cuts a super-packet; nothing if its headers do not fit together.
fn segments(
    frame: &mut [u8],
    offload: &Offload,
    layer: Layer,
    each: &mut impl FnMut(&[u8]),
) -> Option<()> {
    let start = offload.start;
    let (protocol, v4) = match offload.kind {
        TCP_V4 => (TCP, Some(true)),
        TCP_V6 => (TCP, Some(false)),
        _ => (UDP, None),
    };
    let way = Way::new(frame, layer, start, protocol)?;
    let tcp = protocol == TCP;
    let length = if tcp { usize::from(*frame.get(start + 12)? >> 4) * 4 } else { 8 };
    let headers = start + length;
    let unlike = v4.is_some_and(|v4| v4 != way.ip.v4) || length < if tcp { 20 } else { 8 };
    if unlike || offload.size == 0 || frame.len() <= headers {
        return None;
    }
    let mut packet = [0; LONGEST];
    if headers + offload.size > packet.len() {
        return None;
    }
    packet[..headers].copy_from_slice(&frame[..headers]);
    let payload = &frame[headers..];
    let count = payload.len().div_ceil(offload.size);
    for (i, part) in payload.chunks(offload.size).enumerate() {
        let packet = &mut packet[..headers + part.len()];
        packet[headers..].copy_from_slice(part);
        if tcp {
            let number = &frame[start + 4..start + 8];
            let number = u32::from_be_bytes([number[0], number[1], number[2], number[3]])
                .wrapping_add((i * offload.size) as u32);
            packet[start + 4..start + 8].copy_from_slice(&number.to_be_bytes());
            let mut flags = frame[start + 13];
            if i > 0 && offload.classic_ecn {
                flags &= !CWR;
            }
            if i + 1 < count {
                flags &= !FIN_PSH;
            }
            packet[start + 13] = flags;
        } else {
            let length = packet.len() - start;
            put(packet, start + 4, length as u16);
        }
        let pseudo = pseudo(packet, way.ip, protocol, start);
        put_checksum(packet, start, start + if tcp { 16 } else { 6 }, pseudo);
        for part in way.back() {
            renew(packet, frame, part, i as u16);
        }
        each(packet);
    }
    Some(())
}

/// Length, identification and checksum of a header of packet number `i`, whose inside is right.
fn renew(packet: &mut [u8], frame: &[u8], part: Part, i: u16) {
    let end = packet.len();
    let rest = |at: usize| (end - at) as u16;
    match part {
        Part::V4(at) => {
            let id = u16::from_be_bytes([frame[at + 4], frame[at + 5]]).wrapping_add(i);
            put(packet, at + 2, rest(at));
            put(packet, at + 4, id);
            put(packet, at + 10, 0);
            let header = usize::from(packet[at] & 15) * 4;
            let value = checksum(sum(0, &packet[at..at + header]));
            put(packet, at + 10, value);
        }
        Part::V6(at) => put(packet, at + 4, rest(at + 40)),
        Part::Udp(at, ip) => {
            put(packet, at + 4, rest(at));
            // 0 means that there is none.
            if packet[at + 6..at + 8] != [0; 2] {
                let pseudo = pseudo(packet, ip, UDP, at);
                put_checksum(packet, at, at + 6, pseudo);
            }
        }
        Part::Gre(at) => put_checksum(packet, at, at + 4, 0),
        Part::Ppp(at) => put(packet, at + 4, rest(at + 6)),
    }
}

fn put(packet: &mut [u8], at: usize, value: u16) {
    packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of the pseudo-header of what begins at `start`.
fn pseudo(packet: &[u8], ip: Ip, protocol: u8, start: usize) -> u64 {
    let addresses = if ip.v4 { ip.at + 12..ip.at + 20 } else { ip.at + 8..ip.at + 40 };
    sum(u64::from(protocol) + (packet.len() - start) as u64, &packet[addresses])
}

/// Writes the checksum of everything from `start` on, and of `pseudo`, to `place`.
fn put_checksum(packet: &mut [u8], start: usize, place: usize, pseudo: u64) {
    put(packet, place, 0);
    let value = filled(sum(pseudo, &packet[start..]));
    put(packet, place, value);
}

/// The checksum as it is sent: 0 would mean to UDP that there is none, and 0xffff is the same number.
fn filled(sum: u64) -> u16 {
    match checksum(sum) {
        0 => 0xffff,
        value => value,
    }
}

/// Longest packet that super-packets are cut to.
const LONGEST: usize = 1 << 14;

/// Adds 16-bit words, big-endian, the last filled up with 0.
pub(crate) fn sum(start: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    let rest = match *words.remainder() {
        [a] => u64::from(a) << 8,
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [a, b, c] => u64::from(u16::from_be_bytes([a, b])) + (u64::from(c) << 8),
        _ => 0,
    };
    words.fold(start + rest, |sum, w| sum + u64::from(u32::from_be_bytes([w[0], w[1], w[2], w[3]])))
}

/// The Internet checksum (RFC 1071) of what was added.
pub(crate) fn checksum(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(flags: u8, kind: u8, size: u16, start: u16, offset: u16) -> Vec<u8> {
        let mut h = vec![flags, kind];
        for word in [0, size, start, offset] {
            h.extend(word.to_ne_bytes());
        }
        h
    }

    /// An IPv4 or IPv6 packet of TCP (20 bytes of header) or UDP with a payload.
    fn packet(v4: bool, tcp: bool, payload: &[u8]) -> Vec<u8> {
        let transport = if tcp { 20 } else { 8 };
        let mut p = if v4 { vec![0; 20] } else { vec![0; 40] };
        let protocol = if tcp { 6 } else { 17 };
        let length = (transport + payload.len()) as u16;
        if v4 {
            p[0] = 0x45;
            p[2..4].copy_from_slice(&(length + 20).to_be_bytes());
            p[4..6].copy_from_slice(&0xffff_u16.to_be_bytes());
            p[9] = protocol;
            p[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            p[0] = 0x60;
            p[4..6].copy_from_slice(&length.to_be_bytes());
            p[6] = protocol;
            p[8] = 0xfd;
            p[24] = 0xfe;
        }
        let at = p.len();
        p.resize(at + transport, 0);
        p[at..at + 4].copy_from_slice(&[1, 2, 3, 4]);
        if tcp {
            p[at + 4..at + 8].copy_from_slice(&0xffff_fc00_u32.to_be_bytes());
            p[at + 12] = 5 << 4;
            p[at + 13] = 0x10 | CWR | FIN_PSH;
        }
        p.extend_from_slice(payload);
        p
    }

    /// The one's complement sum over everything that a transport checksum covers: 0xffff if right.
    fn verify(p: &[u8]) -> u16 {
        let (at, addresses, protocol) = match p[0] >> 4 {
            4 => (20, &p[12..20], p[9]),
            _ => (40, &p[8..40], p[6]),
        };
        let words = |bytes: &[u8]| -> u64 {
            let word = |c: &[u8]| u64::from(c[0]) << 8 | u64::from(*c.get(1).unwrap_or(&0));
            bytes.chunks(2).map(word).sum()
        };
        let total =
            words(addresses) + words(&p[at..]) + u64::from(protocol) + (p.len() - at) as u64;
        !checksum(total)
    }

    #[test]
    fn super_packets_become_the_packets_of_the_wire() {
        let payload: Vec<u8> = (0..3500u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for (v4, tcp) in [(true, true), (false, true), (true, false), (false, false)] {
            let whole = packet(v4, tcp, &payload);
            let start = if v4 { 20 } else { 40 };
            let length = if tcp { 20 } else { 8 };
            let kind = match (v4, tcp) {
                (true, true) => TCP_V4 | ECN,
                (false, true) => TCP_V6 | ECN,
                _ => UDP_L4,
            };
            let offset = if tcp { 16 } else { 6 };
            let mut bytes = header(NEEDS_CHECKSUM, kind, 1000, start as u16, offset);
            bytes.extend(&whole);
            let mut parts: Vec<Vec<u8>> = Vec::new();
            assert!(cut(&mut bytes, Layer::Ip, &mut |p| parts.push(p.to_vec())));
            let lengths: Vec<usize> = parts.iter().map(|p| p.len() - start - length).collect();
            assert_eq!(lengths, [1000, 1000, 1000, 500]);
            let joined: Vec<u8> = parts.iter().flat_map(|p| p[start + length..].to_vec()).collect();
            assert_eq!(joined, payload);
            for (i, p) in parts.iter().enumerate() {
                assert_eq!(verify(p), 0xffff, "packet {i}");
                if v4 {
                    assert_eq!(checksum(sum(0, &p[..20])), 0, "header of packet {i}");
                    assert_eq!(p[4..6], (0xffff_u16.wrapping_add(i as u16)).to_be_bytes());
                    assert_eq!(p[2..4], (p.len() as u16).to_be_bytes());
                } else {
                    assert_eq!(p[4..6], ((p.len() - 40) as u16).to_be_bytes());
                }
                if tcp {
                    let number = 0xffff_fc00_u32.wrapping_add(1000 * i as u32);
                    assert_eq!(p[start + 4..start + 8], number.to_be_bytes());
                    let flags = [0x10 | CWR, 0x10, 0x10, 0x10 | FIN_PSH][i];
                    assert_eq!(p[start + 13], flags, "packet {i}");
                }
            }
        }
    }

    /// What the kernel leaves in the checksum's place is the sum of the pseudo-header.
    #[test]
    fn a_checksum_is_completed() {
        for (v4, tcp, odd) in [(true, true, 0), (false, false, 1), (true, false, 1)] {
            let mut p = packet(v4, tcp, &vec![0xa5; 101 + odd]);
            let start = if v4 { 20 } else { 40 };
            let offset = if tcp { 16 } else { 6 };
            let addresses = if v4 { &p[12..20] } else { &p[8..40] };
            let length = (p.len() - start) as u64;
            let pseudo = !checksum(sum(length + if tcp { 6 } else { 17 }, addresses));
            p[start + offset..start + offset + 2].copy_from_slice(&pseudo.to_be_bytes());
            let mut bytes = header(NEEDS_CHECKSUM, WHOLE, 0, start as u16, offset as u16);
            bytes.extend(&p);
            let mut out = Vec::new();
            assert!(cut(&mut bytes, Layer::Ip, &mut |p| out.push(p.to_vec())));
            assert_eq!((out.len(), verify(&out[0])), (1, 0xffff));
        }
    }

    /// What AF_XDP hands over of a sender on the same machine: the same packet with the sum of the
    /// pseudo-header in the checksum's place, and bytes behind its end. Of 65536 packets that are
    /// right about one has that sum there, too, and is left alone.
    #[test]
    fn a_checksum_is_completed_without_being_asked_for() {
        for (v4, tcp) in [(true, true), (false, true), (true, false), (false, false)] {
            let (start, offset) = (if v4 { 20 } else { 40 }, if tcp { 16 } else { 6 });
            let mut left_alone = 0;
            for number in 0..=u16::MAX {
                let mut right = packet(v4, tcp, &[0xa5; 3]);
                let addresses = if v4 { &right[12..20] } else { &right[8..40] };
                let length = (right.len() - start) as u64;
                let pseudo = !checksum(sum(length + if tcp { 6 } else { 17 }, addresses));
                right[start..start + 2].copy_from_slice(&number.to_be_bytes());
                let mut unfilled = right.clone();
                let at = start + offset..start + offset + 2;
                unfilled[at.clone()].copy_from_slice(&pseudo.to_be_bytes());
                let value = match checksum(sum(pseudo.into(), &right[start..])) {
                    0 if !tcp => 0xffff,
                    value => value,
                };
                right[at].copy_from_slice(&value.to_be_bytes());
                left_alone += u32::from(unfilled == right);
                unfilled.extend([7; 5]);
                complete_unsaid(&mut unfilled, Layer::Ip);
                assert_eq!(unfilled[..right.len()], right, "{v4} {tcp} {number}");
                assert_eq!(unfilled[right.len()..], [7; 5]);
                let before = right.clone();
                assert_eq!(complete_unsaid(&mut right, Layer::Ip), None);
                assert_eq!(right, before);
            }
            assert!(left_alone > 0, "{v4} {tcp}");
        }
    }

    /// In a fragment, and of a protocol without such a checksum, the same bytes mean something else.
    #[test]
    fn what_has_no_checksum_of_its_own_is_left_alone() {
        let unfilled = || {
            let mut p = packet(true, true, &[1; 100]);
            let pseudo = !checksum(sum(126, &p[12..20]));
            p[36..38].copy_from_slice(&pseudo.to_be_bytes());
            p
        };
        assert_eq!(complete_unsaid(&mut unfilled(), Layer::Ip), Some(()));
        for (at, value) in [(6, 0x20), (7, 1), (9, 132), (3, 200), (0, 0x4f)] {
            let mut p = unfilled();
            p[at] = value;
            let before = p.clone();
            assert_eq!(complete_unsaid(&mut p, Layer::Ip), None, "byte {at}");
            assert_eq!(p, before);
        }
    }

    /// Of the rules for CWR: that of RFC 3168 in the first packet alone, where the header says that
    /// it is one; else it is part of a counter, and in all of them.
    #[test]
    fn cwr_is_kept_where_it_is_part_of_a_counter() {
        let whole = packet(true, true, &[1; 3000]);
        for (kind, expected) in [
            (TCP_V4 | ECN, [true, false, false]),
            (TCP_V4, [true; 3]),
            (TCP_V4 | ACCURATE_ECN, [true; 3]),
            (TCP_V4 | ECN | ACCURATE_ECN, [true; 3]),
        ] {
            let mut bytes = header(NEEDS_CHECKSUM, kind, 1000, 20, 16);
            bytes.extend(&whole);
            let mut found = Vec::new();
            assert!(cut(&mut bytes, Layer::Ip, &mut |p| found.push(p[33] & CWR != 0)));
            assert_eq!(found, expected, "{kind:#x}");
        }
    }

    /// `inside` behind an IP header of `protocol`, with a right header checksum.
    fn ip(v4: bool, protocol: u8, inside: &[u8]) -> Vec<u8> {
        let mut p = packet(v4, false, &[]);
        p.truncate(if v4 { 20 } else { 40 });
        p[if v4 { 9 } else { 6 }] = protocol;
        let length = inside.len() as u16;
        if v4 {
            p[2..4].copy_from_slice(&(length + 20).to_be_bytes());
        } else {
            p[4..6].copy_from_slice(&length.to_be_bytes());
        }
        [&p, inside].concat()
    }

    fn ethernet(kind: u16, inside: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        frame.extend(kind.to_be_bytes());
        frame.extend(inside);
        frame
    }

    /// A UDP header, `checked` or without a checksum, then `tunnel` and `inside`.
    fn udp(checked: bool, tunnel: &[u8], inside: &[u8]) -> Vec<u8> {
        let length = (8 + tunnel.len() + inside.len()) as u16;
        let mut p = vec![0x13, 0x88, 0x12, 0xb5];
        p.extend(length.to_be_bytes());
        p.extend([0, u8::from(checked)]);
        [&p, tunnel, inside].concat()
    }

    const VXLAN: [u8; 8] = [8, 0, 0, 0, 0, 0, 42, 0];

    /// An inner packet (of the IP header's version) in all ways that it may be carried: the name, the
    /// packet, and where the inner one begins.
    fn tunnels(v4: bool, inner: &[u8]) -> Vec<(&'static str, Vec<u8>, usize)> {
        let kind = if v4 { 0x0800 } else { 0x86dd };
        let number = if v4 { IPV4 } else { IPV6 };
        let [high, low] = u16::to_be_bytes(kind);
        let framed = ethernet(kind, inner);
        let tagged = ethernet(0x8100, &[&[0, 5, high, low], inner].concat());
        let mut all = Vec::new();
        for outer in [true, false] {
            let mut add = |what, protocol, carried: Vec<u8>| {
                let whole = ip(outer, protocol, &carried);
                let at = whole.len() - inner.len();
                all.push((what, whole, at));
            };
            add("IP in IP", number, inner.to_vec());
            add("GRE", GRE, [&[0, 0, high, low], inner].concat());
            add(
                "GRE with a key and a checksum",
                GRE,
                [&[0xa0, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 7], inner].concat(),
            );
            add("Ethernet in GRE", GRE, [&[0, 0, 0x65, 0x58], &framed[..]].concat());
            add("VXLAN", UDP, udp(false, &VXLAN, &framed));
            add("VXLAN with a checksum", UDP, udp(true, &VXLAN, &framed));
            add("a tag in VXLAN", UDP, udp(true, &VXLAN, &tagged));
            add(
                "Geneve with options",
                UDP,
                udp(true, &[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0], &framed),
            );
            add("IP in Geneve", UDP, udp(true, &[0, 0, high, low, 0, 0, 7, 0], inner));
            add("GUE", UDP, udp(true, &[0, number, 0, 0], inner));
            add("IP in UDP", UDP, udp(true, &[], inner));
            add("VXLAN in IP in IP", IPV4, ip(true, UDP, &udp(true, &VXLAN, &framed)));
            // Behind an extension header of destination options.
            if !outer {
                let options = [UDP, 0, 1, 4, 0, 0, 0, 0];
                add(
                    "VXLAN behind an extension",
                    DESTINATION,
                    [&options[..], &udp(true, &VXLAN, &framed)].concat(),
                );
            }
        }
        all
    }

    /// Checks a packet on every layer with a reader that is not ours; how many layers there were.
    /// `frame` begins with IP.
    fn verified(frame: &[u8]) -> usize {
        use etherparse::{IpNumber, IpSlice, TcpSlice, UdpSlice};
        let (ip, rest) = (IpSlice::from_slice(frame).unwrap(), frame);
        let payload = ip.payload();
        assert_eq!(payload.payload.as_ptr_range().end, rest.as_ptr_range().end, "lengths");
        if let IpSlice::Ipv4(v4) = &ip {
            let header = v4.header().to_header();
            assert_eq!(header.calc_header_checksum(), v4.header().header_checksum());
        }
        let inside = payload.payload;
        let (source, destination) = (ip.source_addr(), ip.destination_addr());
        let pseudo = |protocol: u8| {
            let octets = |a: std::net::IpAddr| match a {
                std::net::IpAddr::V4(a) => a.octets().to_vec(),
                std::net::IpAddr::V6(a) => a.octets().to_vec(),
            };
            let mut bytes = octets(source);
            bytes.extend(octets(destination));
            bytes.extend([0, protocol]);
            bytes.extend((inside.len() as u32).to_be_bytes());
            bytes
        };
        let right = |bytes: &[u8]| {
            let word = |c: &[u8]| u64::from(c[0]) << 8 | u64::from(*c.get(1).unwrap_or(&0));
            let mut all: u64 = bytes.chunks(2).map(word).sum();
            while all > 0xffff {
                all = (all & 0xffff) + (all >> 16);
            }
            all == 0xffff
        };
        let inner = |at: usize, kind: u16| match kind {
            0x6558 => {
                let read = etherparse::SlicedPacket::from_ethernet(&inside[at..]).unwrap();
                let header = 14 + 4 * read.link_exts.len();
                verified(&inside[at + header..])
            }
            _ => verified(&inside[at..]),
        };
        1 + match payload.ip_number {
            IpNumber::TCP => {
                assert!(TcpSlice::from_slice(inside).is_ok());
                assert!(right(&[pseudo(TCP), inside.to_vec()].concat()), "TCP's checksum");
                0
            }
            IpNumber::UDP => {
                let udp = UdpSlice::from_slice(inside).unwrap();
                assert_eq!(usize::from(udp.length()), inside.len());
                let unchecked = udp.checksum() == 0;
                assert!(unchecked || right(&[pseudo(UDP), inside.to_vec()].concat()), "UDP's");
                match (udp.destination_port(), inside.get(8..12)) {
                    (0x12b5, Some(&[8, 0, 0, 0])) => inner(16, 0x6558),
                    (0x12b5, Some(&[1, 0, 0x65, 0x58])) => inner(20, 0x6558),
                    (0x12b5, Some(&[0, 0, 8 | 0x86, _])) => inner(16, 0x0800),
                    (0x12b5, Some(&[0, 4 | 41, ..])) => inner(12, 0x0800),
                    (0x12b5, Some(&[0x45 | 0x60, ..])) => inner(8, 0x0800),
                    _ => 0,
                }
            }
            IpNumber(GRE) => {
                let kind = u16::from_be_bytes([inside[2], inside[3]]);
                let checked = inside[0] & 0x80 != 0;
                assert!(!checked || right(inside), "GRE's checksum");
                inner(if checked { 12 } else { 4 }, kind)
            }
            IpNumber(IPV4 | IPV6) => inner(0, 0x0800),
            other => panic!("{other:?}"),
        }
    }

    /// Super-packets of TCP and UDP in every tunnel, read by another parser: each packet is right on
    /// each layer, and together they carry what was sent.
    #[test]
    fn tunnelled_super_packets_are_cut_on_every_layer() {
        let payload: Vec<u8> = (0..3300u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for (v4, tcp) in [(true, true), (false, true), (true, false), (false, false)] {
            let inner = packet(v4, tcp, &payload);
            let offset = if tcp { 16 } else { 6 };
            let kind = match (v4, tcp) {
                (true, true) => TCP_V4,
                (false, true) => TCP_V6,
                _ => UDP_L4,
            };
            for (what, whole, at) in tunnels(v4, &inner) {
                for layer in [Layer::Ip, Layer::Ethernet] {
                    let outer = if whole[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
                    let (frame, ahead) = match layer {
                        Layer::Ip => (whole.clone(), 0),
                        Layer::Ethernet => (ethernet(outer, &whole), 14),
                    };
                    let start = ahead + at + if v4 { 20 } else { 40 };
                    let head = start + if tcp { 20 } else { 8 };
                    let mut bytes = header(NEEDS_CHECKSUM, kind, 1000, start as u16, offset);
                    bytes.extend(&frame);
                    let mut carried = Vec::new();
                    let mut each = |p: &[u8]| {
                        assert!(verified(&p[ahead..]) >= 2, "{what}");
                        carried.extend_from_slice(&p[head..]);
                    };
                    assert!(cut(&mut bytes, layer, &mut each), "{what} {v4} {tcp}");
                    assert_eq!(carried, payload, "{what}");
                }
            }
        }
    }

    #[test]
    fn a_pppoe_session_s_length_is_that_of_each_packet() {
        let inner = packet(true, true, &[1; 3000]);
        let mut frame = ethernet(0x8864, &[0x11, 0, 0, 7]);
        frame.extend((inner.len() as u16 + 2).to_be_bytes());
        frame.extend([0, 0x21]);
        let start = frame.len() + 20;
        frame.extend(&inner);
        let mut bytes = header(NEEDS_CHECKSUM, TCP_V4, 1000, start as u16, 16);
        bytes.extend(&frame);
        let mut count = 0;
        assert!(cut(&mut bytes, Layer::Ethernet, &mut |p| {
            assert_eq!(usize::from(word(p, 18).unwrap()), p.len() - 20);
            verified(&p[22..]);
            count += 1;
        }));
        assert_eq!(count, 3);
    }

    /// What depends on the packet in ways that cannot be told from outside, or only looks like a
    /// tunnel: refused, not guessed.
    #[test]
    fn tunnels_that_cannot_be_cut_are_refused() {
        let inner = packet(true, true, &[1; 3000]);
        let framed = ethernet(0x0800, &inner);
        let refused = |whole: &[u8]| {
            let start = (whole.len() - 3000 - 20) as u16;
            let mut bytes = header(NEEDS_CHECKSUM, TCP_V4, 1000, start, 16);
            bytes.extend(whole);
            !cut(&mut bytes, Layer::Ip, &mut |_| ())
        };
        let numbered = [&[0x10, 0, 8, 0, 0, 0, 0, 1][..], &inner].concat();
        let ah = [&[4, 4][..], &[0; 22], &inner].concat();
        let jumbo = [&[IPV4, 0, 0xc2, 4, 0, 1, 0, 0][..], &inner].concat();
        let mut short = framed.clone();
        short[16..18].copy_from_slice(&100u16.to_be_bytes());
        let mut first = ip(true, UDP, &udp(false, &VXLAN, &framed));
        first[6] = 0x20;
        let deep = |n: usize| (0..n).fold(inner.clone(), |p, _| ip(true, IPV4, &p));
        for (what, whole) in [
            ("GRE with numbers", ip(true, GRE, &numbered)),
            ("GRE of another version", ip(true, GRE, &[&[0, 1, 8, 0][..], &inner].concat())),
            ("AH", ip(true, 51, &ah)),
            ("a jumbogram", ip(false, HOP_BY_HOP, &jumbo)),
            ("a length that is not what is left", ip(true, UDP, &udp(false, &VXLAN, &short))),
            ("no tunnel that is known", ip(true, UDP, &udp(false, &[1; 20], &inner))),
            ("a fragment", first),
            ("too many tunnels", deep(MOST_PARTS)),
        ] {
            assert!(refused(&whole), "{what}");
        }
        assert!(!refused(&deep(MOST_PARTS - 1)));
        // TCP over IPv4 is what the header says.
        let mut bytes = header(NEEDS_CHECKSUM, TCP_V6, 1000, 40, 16);
        bytes.extend(ip(true, IPV4, &inner));
        assert!(!cut(&mut bytes, Layer::Ip, &mut |_| ()));
    }

    /// Once in 65536 the checksum comes out as 0, which UDP sends as 0xffff: over IPv6 the packet
    /// would be thrown away, over IPv4 it would go on unprotected.
    #[test]
    fn a_udp_checksum_is_never_written_as_zero() {
        for v4 in [true, false] {
            let start = if v4 { 20 } else { 40 };
            let mut p = packet(v4, false, &[0; 2]);
            let addresses = if v4 { &p[12..20] } else { &p[8..40] };
            let pseudo = !checksum(sum((p.len() - start) as u64 + 17, addresses));
            p[start + 6..start + 8].copy_from_slice(&pseudo.to_be_bytes());
            // The payload that makes the sum 0xffff.
            let missing = checksum(sum(0, &p[start..]));
            p[start + 8..start + 10].copy_from_slice(&missing.to_be_bytes());
            let mut bytes = header(NEEDS_CHECKSUM, WHOLE, 0, start as u16, 6);
            bytes.extend(&p);
            let mut found = None;
            assert!(cut(&mut bytes, Layer::Ip, &mut |p| found = word(p, start + 6)));
            assert_eq!(found, Some(0xffff), "{v4}");
        }
    }

    /// The kernel leaves SCTP's checksum to be filled in by the same header, which cannot say that it
    /// is another one (RFC 9260 appendix A). "123456789" has the CRC 0xe3069283.
    #[test]
    fn the_checksum_of_sctp_is_its_own() {
        assert_eq!(CRC.checksum(b"123456789"), 0xe306_9283);
        let chunk = [0x13, 0x89, 0x12, 0xb5, 0, 0, 0, 1, 9, 9, 9, 9, 3, 0, 0, 8, 0, 0, 0, 0];
        for (v4, padding) in [(true, 0), (false, 0), (true, 6)] {
            let whole = ip(v4, SCTP, &chunk);
            let start = whole.len() - chunk.len();
            let mut bytes = header(NEEDS_CHECKSUM, WHOLE, 0, start as u16, 8);
            bytes.extend(&whole);
            bytes.extend(vec![7; padding]);
            let mut found = Vec::new();
            assert!(cut(&mut bytes, Layer::Ip, &mut |p| found = p[start..].to_vec()));
            let mut zero = chunk;
            zero[8..12].fill(0);
            assert_eq!(found[8..12], CRC.checksum(&zero).to_le_bytes());
            assert_eq!((&found[..8], &found[12..20]), (&chunk[..8], &chunk[12..]));
        }
    }

    /// A tag goes behind the addresses, and the place of the checksum with what it belongs to.
    #[test]
    fn a_tag_is_put_back() {
        let inner = packet(true, true, &[1; 100]);
        let frame = ethernet(0x0800, &inner);
        let tag = [0x81, 0, 0x60, 42];
        for needs in [0, NEEDS_CHECKSUM] {
            let start = if needs == 0 { 0 } else { 34 };
            let mut bytes = vec![0; TAG];
            bytes.extend(header(needs, WHOLE, 0, start, if needs == 0 { 0 } else { 16 }));
            bytes.extend(&frame);
            put_tag(&mut bytes, tag);
            let moved = if needs == 0 { 0 } else { start + TAG as u16 };
            assert_eq!(bytes[6..8], moved.to_ne_bytes());
            let tagged = [&frame[..12], &tag, &frame[12..]].concat();
            assert_eq!(bytes[HEADER..], tagged);
        }
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let whole = packet(true, true, &[1; 3000]);
        let refused = |head: Vec<u8>, frame: &[u8]| {
            let mut bytes = head;
            bytes.extend(frame);
            !cut(&mut bytes, Layer::Ip, &mut |_| ())
        };
        assert!(refused(vec![0; 9], &[]), "no header");
        assert!(refused(header(1, TCP_V4, 0, 20, 16), &whole), "no size");
        assert!(refused(header(1, TCP_V4, 1000, 10, 16), &whole), "transport inside IP");
        assert!(refused(header(1, TCP_V4, 1000, 5000, 16), &whole), "transport behind the end");
        let mut short = whole.clone();
        short[32] = 4 << 4;
        assert!(refused(header(1, TCP_V4, 1000, 20, 16), &short), "a TCP header of 16 bytes");
        assert!(refused(header(1, 3, 1000, 20, 16), &whole), "IP fragments");
        assert!(refused(header(1, WHOLE, 0, 5000, 16), &whole), "checksum behind the end");
    }

    proptest! {
        #[test]
        fn any_bytes_are_cut_without_harm(
            mut bytes in prop::collection::vec(any::<u8>(), 0..400),
            kind in prop::sample::select(vec![WHOLE, TCP_V4, TCP_V6, UDP_L4, 3]),
            start in 0u8..80,
            version in prop::sample::select(vec![0x45u8, 0x60]),
        ) {
            if bytes.len() > HEADER {
                let head = header(1, kind, bytes[4].into(), start.into(), 16);
                bytes[..HEADER].copy_from_slice(&head);
                bytes[HEADER] = version;
            }
            let payload = bytes.len();
            let mut sent = 0;
            cut(&mut bytes, Layer::Ip, &mut |p| sent += p.len());
            // A header of up to 80 + 60 bytes for each byte of payload.
            prop_assert!(sent <= payload * 141, "{sent}");
        }
    }
}
