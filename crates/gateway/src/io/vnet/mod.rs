//! Super-packets: the kernel hands over up to 64 kB of one TCP or UDP flow at once, with a header
//! that says how to cut it (virtio specification §5.1.6), and leaves checksums to be filled in. A
//! queue has to judge packets as they would be on the wire, so they are cut here.
//!
//! The virtio header says where the transport header is that has to be repeated, but not which headers stand
//! before it. So these are walked through, from the outside in: IPv4, IPv6 with extension headers, IP in IP,
//! GRE, and in UDP VXLAN, Geneve, GUE or IP itself. Lengths, identifications and checksums of all these
//! headers are computed for each packet, as a host would that sends single packets. The super-packet is
//! refused, never cut on a guess, if the headers do not end at the transport header, or if one of them
//! depends on the packet in an unknown way (AH, GRE with numbers, jumbograms).

mod checksum;
mod way;

use std::ops::Range;

use crc::{CRC_32_ISCSI, Crc};

use crate::frame::{Layer, network};
pub(crate) use checksum::{checksum, sum};
use checksum::{filled, pseudo, put, put_checksum};
use way::{
    GRE, IPV4, IPV6, Ip, MOST_PARTS, Part, SCTP, TCP, UDP, Way, behind, carried, in_gre, in_udp,
    word,
};

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

/// Gives the packets of a frame with a header before it to `each`, all at once. Whether they could be made.
pub fn cut(bytes: &mut [u8], layer: Layer, each: &mut impl FnMut(&[u8])) -> bool {
    let mut cutter = Cutter::default();
    let made = cutter.begin(bytes, layer, each);
    while cutter.goes_on() {
        cutter.go_on(bytes, each);
    }
    made
}

/// Cuts a frame, some packets at a time, so that other work need not wait for all of them.
#[derive(Debug)]
pub struct Cutter {
    /// The next packet; its headers stay.
    packet: Box<[u8]>,
    rest: Option<Rest>,
}

/// What is not cut yet of a super-packet.
#[derive(Debug)]
struct Rest {
    way: Way,
    offload: Offload,
    tcp: bool,
    /// Bytes before the payload.
    headers: usize,
    /// The number of the next packet, and of all of them.
    next: usize,
    count: usize,
}

impl Default for Cutter {
    fn default() -> Self {
        Self { packet: vec![0; LONGEST].into_boxed_slice(), rest: None }
    }
}

impl Cutter {
    /// Gives the first packets of a frame with a header before it to `each`. Whether they can be made.
    pub fn begin(&mut self, bytes: &mut [u8], layer: Layer, each: &mut impl FnMut(&[u8])) -> bool {
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
            TCP_V4 | TCP_V6 | UDP_L4 => {
                self.rest = Rest::new(frame, offload, layer, &mut self.packet);
                let made = self.goes_on();
                self.go_on(bytes, each);
                made
            }
            _ => false,
        }
    }

    /// Whether there is more of the frame.
    pub fn goes_on(&self) -> bool {
        self.rest.is_some()
    }

    /// Gives the next packets of the frame, [`PIECES`] at most, to `each`.
    pub fn go_on(&mut self, bytes: &[u8], each: &mut impl FnMut(&[u8])) {
        let (Some(rest), Some(frame)) = (&mut self.rest, bytes.get(HEADER..)) else { return };
        let end = rest.count.min(rest.next + PIECES);
        while rest.next < end {
            each(rest.piece(frame, &mut self.packet));
            rest.next += 1;
        }
        if end == rest.count {
            self.rest = None;
        }
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
        && complete_sctp(packet).is_some()
    {
        return true;
    }
    let sum = filled(sum(0, &frame[offload.start..]));
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// The checksum of an SCTP packet; nothing if it is too short for one.
fn complete_sctp(packet: &mut [u8]) -> Option<()> {
    let place = SCTP_CHECKSUM..SCTP_CHECKSUM + 4;
    packet.get_mut(place.clone())?.fill(0);
    let value = CRC.checksum(packet);
    packet[place].copy_from_slice(&value.to_le_bytes());
    Some(())
}

/// SCTP's checksum, and where it stands (RFC 9260 §3.1, appendix A).
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
const SCTP_CHECKSUM: usize = 8;

/// Fills in a checksum that the sender's kernel has left unfilled in a whole packet, without a virtio header
/// that says so. For TCP and UDP it is unfilled if it holds the sum of the pseudo-header and is not right as
/// it is; for SCTP, if it holds 0. So also in tunnels, whose own checksums the kernel has computed for the
/// filled packet.
pub fn complete_unsaid(frame: &mut [u8], layer: Layer) -> Option<()> {
    let mut ip = Ip::from(network(frame, layer)?);
    let mut outer = None;
    for _ in 0..MOST_PARTS {
        let (protocol, at) = behind(frame, ip)?;
        let end = carried(frame, ip)?;
        // Bytes in a tunnel that only look like a header.
        if end > frame.len() || at > end || outer.is_some_and(|outer| outer != end) {
            return None;
        }
        outer = Some(end);
        ip = match protocol {
            TCP => return complete_left(frame, ip, TCP, at..end),
            UDP => {
                if complete_left(frame, ip, UDP, at..end).is_some() {
                    return Some(());
                }
                in_udp(frame, at + 8)?
            }
            SCTP => {
                let packet = frame.get_mut(at..end)?;
                let left = packet.get(SCTP_CHECKSUM..SCTP_CHECKSUM + 4)? == [0; 4];
                return left.then_some(()).and_then(|()| complete_sctp(packet));
            }
            GRE => in_gre(frame, at)?,
            IPV4 => Ip { at, v4: true },
            IPV6 => Ip { at, v4: false },
            _ => return None,
        };
    }
    None
}

/// The checksum of TCP or UDP at `range`, if it was left unfilled.
fn complete_left(frame: &mut [u8], ip: Ip, protocol: u8, range: Range<usize>) -> Option<()> {
    let (start, end) = (range.start, range.end);
    let at = start + if protocol == TCP { 16 } else { 6 };
    let packet = frame.get(range)?;
    let pseudo = pseudo(frame.get(..end)?, ip, protocol, start);
    if at + 2 > end || word(frame, at)? != !checksum(pseudo) {
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

impl Rest {
    /// A super-packet, whose headers go into `packet`; nothing if they do not fit together.
    fn new(frame: &[u8], offload: Offload, layer: Layer, packet: &mut [u8]) -> Option<Self> {
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
        let count = (frame.len() - headers).div_ceil(offload.size);
        if headers + offload.size > packet.len() || count > if tcp { MOST_TCP } else { MOST_UDP } {
            return None;
        }
        packet[..headers].copy_from_slice(&frame[..headers]);
        Some(Self { way, offload, tcp, headers, next: 0, count })
    }

    /// The next packet of `frame`, in `packet`.
    fn piece<'a>(&self, frame: &[u8], packet: &'a mut [u8]) -> &'a [u8] {
        let Self { way, offload, tcp, headers, next: i, count } = self;
        let (start, tcp) = (offload.start, *tcp);
        let from = headers + i * offload.size;
        let part = &frame[from..frame.len().min(from + offload.size)];
        let packet = &mut packet[..headers + part.len()];
        packet[*headers..].copy_from_slice(part);
        if tcp {
            let number = &frame[start + 4..start + 8];
            let number = u32::from_be_bytes([number[0], number[1], number[2], number[3]])
                .wrapping_add((i * offload.size) as u32);
            packet[start + 4..start + 8].copy_from_slice(&number.to_be_bytes());
            let mut flags = frame[start + 13];
            if *i > 0 && offload.classic_ecn {
                flags &= !CWR;
            }
            if i + 1 < *count {
                flags &= !FIN_PSH;
            }
            packet[start + 13] = flags;
        } else {
            let length = packet.len() - start;
            put(packet, start + 4, length as u16);
        }
        let protocol = if tcp { TCP } else { UDP };
        let pseudo = pseudo(packet, way.ip, protocol, start);
        put_checksum(packet, start, start + if tcp { 16 } else { 6 }, pseudo);
        for part in way.back() {
            renew(packet, frame, part, *i as u16);
        }
        packet
    }
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

/// Longest packet that super-packets are cut to: as long as a frame may be.
const LONGEST: usize = u16::MAX as usize;

/// The most packets of one super-packet that are cut at a time.
pub const PIECES: usize = 64;

/// The most packets of a super-packet. A segment of TCP has 64 bytes or more of 64 kB then (Linux' own never
/// fewer than 88, `TCP_MIN_MSS`, but for the last); a sender of datagrams may ask its kernel for so many
/// (`UDP_MAX_SEGMENTS`). One call of a hostile sender could mean 64 000 packets of a byte each.
const MOST_TCP: usize = 1024;
const MOST_UDP: usize = 128;

#[cfg(test)]
mod tests;
