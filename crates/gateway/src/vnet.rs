//! Super-packets: the kernel hands over up to 64 kB of one TCP or UDP flow at once, with a header
//! that says how to cut it (virtio specification §5.1.6), and leaves checksums to be filled in. A
//! queue has to judge packets as they would be on the wire, so they are cut here.

use crate::frame::{Layer, Network, network};

/// Length of the header before each frame.
pub const HEADER: usize = 10;

/// What the header says.
#[derive(Clone, Copy, Debug)]
struct Offload {
    needs_checksum: bool,
    kind: u8,
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
const UDP: u8 = 5;
/// A flag of the kind: the first packet has CWR set.
const ECN: u8 = 0x80;

const CWR: u8 = 0x80;
const FIN_PSH: u8 = 0x09;

/// Gives the packets of a frame with a header before it to `each`. Whether they could be made.
pub fn cut(bytes: &mut [u8], layer: Layer, each: &mut impl FnMut(&[u8])) -> bool {
    let Some((header, frame)) = bytes.split_at_mut_checked(HEADER) else { return false };
    let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
    let offload = Offload {
        needs_checksum: header[0] & NEEDS_CHECKSUM != 0,
        kind: header[1] & !ECN,
        size: word(4),
        start: word(6),
        offset: word(8),
    };
    match offload.kind {
        WHOLE => {
            if offload.needs_checksum && !complete(frame, &offload) {
                return false;
            }
            each(frame);
            true
        }
        TCP_V4 | TCP_V6 | UDP => segments(frame, &offload, layer, each).is_some(),
        _ => false,
    }
}

/// Fills in the checksum of a packet, where the sum of the pseudo-header stands now.
fn complete(frame: &mut [u8], offload: &Offload) -> bool {
    let at = offload.start + offload.offset;
    if at + 2 > frame.len() {
        return false;
    }
    let sum = checksum(sum(0, &frame[offload.start..]));
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

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
        Network::Arp => return None,
    };
    let at = start + if protocol == TCP { 16 } else { 6 };
    let packet = frame.get(start..end)?;
    let pseudo = sum(u64::from(protocol) + packet.len() as u64, frame.get(addresses)?);
    let left = protocol == TCP || protocol == UDP_PROTOCOL;
    if !left || at + 2 > end || word(at)? != !checksum(pseudo) {
        return None;
    }
    // A packet that is right has this there, too, once in 65536.
    if checksum(sum(pseudo, packet)) == 0 {
        return None;
    }
    let value = match checksum(sum(0, packet)) {
        0 if protocol == UDP_PROTOCOL => 0xffff,
        value => value,
    };
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    Some(())
}

/// Protocol numbers.
const TCP: u8 = 6;
const UDP_PROTOCOL: u8 = 17;

/// Cuts a super-packet; nothing if its headers do not fit together.
fn segments(
    frame: &mut [u8],
    offload: &Offload,
    layer: Layer,
    each: &mut impl FnMut(&[u8]),
) -> Option<()> {
    let (v4, ip) = match network(frame, layer)? {
        Network::V4(at) => (true, at),
        Network::V6(at) => (false, at),
        Network::Arp => return None,
    };
    let start = offload.start;
    let tcp = offload.kind != UDP;
    let length = if tcp { usize::from(*frame.get(start + 12)? >> 4) * 4 } else { 8 };
    let headers = start + length;
    let least = (if v4 { 20 } else { 40 }, if tcp { 20 } else { 8 });
    if offload.size == 0 || start < ip + least.0 || length < least.1 || frame.len() <= headers {
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
        let end = headers + part.len();
        let packet = &mut packet[..end];
        packet[headers..].copy_from_slice(part);
        let carried = (end - start) as u16;
        if v4 {
            let id = u16::from_be_bytes([frame[ip + 4], frame[ip + 5]]).wrapping_add(i as u16);
            packet[ip + 2..ip + 4].copy_from_slice(&((end - ip) as u16).to_be_bytes());
            packet[ip + 4..ip + 6].copy_from_slice(&id.to_be_bytes());
            packet[ip + 10..ip + 12].fill(0);
            let sum = checksum(sum(0, &packet[ip..start]));
            packet[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
        } else {
            packet[ip + 4..ip + 6].copy_from_slice(&((end - ip - 40) as u16).to_be_bytes());
        }
        let at = if tcp {
            let number = &frame[start + 4..start + 8];
            let number = u32::from_be_bytes([number[0], number[1], number[2], number[3]])
                .wrapping_add((i * offload.size) as u32);
            packet[start + 4..start + 8].copy_from_slice(&number.to_be_bytes());
            let mut flags = frame[start + 13];
            if i > 0 {
                flags &= !CWR;
            }
            if i + 1 < count {
                flags &= !FIN_PSH;
            }
            packet[start + 13] = flags;
            start + 16
        } else {
            packet[start + 4..start + 6].copy_from_slice(&carried.to_be_bytes());
            start + 6
        };
        packet[at..at + 2].fill(0);
        let addresses = if v4 { &packet[ip + 12..ip + 20] } else { &packet[ip + 8..ip + 40] };
        let pseudo = u64::from(carried) + if tcp { 6 } else { 17 };
        let value = match checksum(sum(sum(pseudo, addresses), &packet[start..])) {
            // For UDP, 0 would mean that there is none.
            0 if !tcp => 0xffff,
            value => value,
        };
        packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
        each(packet);
    }
    Some(())
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
                _ => UDP,
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
            kind in prop::sample::select(vec![WHOLE, TCP_V4, TCP_V6, UDP, 3]),
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
