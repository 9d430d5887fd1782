use super::way::{DESTINATION, HOP_BY_HOP};
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
    let total = words(addresses) + words(&p[at..]) + u64::from(protocol) + (p.len() - at) as u64;
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

/// The same in every tunnel that the kernel makes, and of SCTP: there 0 stands in its place.
#[test]
fn a_checksum_in_a_tunnel_is_completed_without_being_asked_for() {
    for (v4, tcp) in [(true, true), (false, true), (true, false), (false, false)] {
        let right = packet(v4, tcp, &[0xa5; 301]);
        let mut unfilled = right.clone();
        let (start, offset) = (if v4 { 20 } else { 40 }, if tcp { 16 } else { 6 });
        let addresses = if v4 { &right[12..20] } else { &right[8..40] };
        let length = (right.len() - start) as u64;
        let pseudo = !checksum(sum(length + if tcp { 6 } else { 17 }, addresses));
        unfilled[start + offset..start + offset + 2].copy_from_slice(&pseudo.to_be_bytes());
        let mut right = unfilled.clone();
        let value = filled(sum(0, &right[start..]));
        right[start + offset..start + offset + 2].copy_from_slice(&value.to_be_bytes());
        for ((what, expected, _), (_, mut left, _)) in
            tunnels(v4, &right).into_iter().zip(tunnels(v4, &unfilled))
        {
            assert_ne!(left, expected);
            assert_eq!(complete_unsaid(&mut left, Layer::Ip), Some(()), "{what} {v4} {tcp}");
            assert_eq!(left, expected, "{what} {v4} {tcp}");
            assert_eq!(complete_unsaid(&mut left, Layer::Ip), None, "{what}: it is right");
        }
    }
    let chunk = [0x13, 0x89, 0x12, 0xb5, 0, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 8, 0, 0, 0, 0];
    let mut sctp = ip(true, SCTP, &chunk);
    assert_eq!(complete_unsaid(&mut sctp, Layer::Ip), Some(()));
    assert_eq!(sctp[28..32], CRC.checksum(&chunk).to_le_bytes());
    assert_eq!(complete_unsaid(&mut sctp, Layer::Ip), None, "it is right");
    // What only looks like a tunnel: its length is not what is left.
    let mut inner = packet(true, true, &[1; 50]);
    let pseudo = !checksum(sum(70 + 6, &inner[12..20]));
    inner[36..38].copy_from_slice(&pseudo.to_be_bytes());
    inner.extend([0; 4]);
    let mut whole = ip(true, UDP, &udp(true, &[], &inner));
    assert_eq!(complete_unsaid(&mut whole, Layer::Ip), None);
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
    for (at, value) in [(6, 0x20), (7, 1), (9, 50), (3, 200), (0, 0x4f)] {
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

/// Headers that depend on the packet in an unknown way, or only look like a tunnel: refused, not guessed.
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

/// A call of a sender becomes no more packets than Linux would ever make of one of its own, and those are
/// made some at a time.
#[test]
fn a_super_packet_is_a_bounded_number_of_packets() {
    for (tcp, kind, most) in [(true, TCP_V4, MOST_TCP), (false, UDP_L4, MOST_UDP)] {
        for size in [1, 2, 64, 88, 536, 1460] {
            for count in [most / 2 + 1, most, most + 1] {
                let payload = count * size - size / 2;
                if payload > 65_000 {
                    continue;
                }
                let mut bytes = header(1, kind, size as u16, 20, if tcp { 16 } else { 6 });
                bytes.extend(packet(true, tcp, &vec![7; payload]));
                let (mut cutter, mut made) = (Cutter::default(), 0);
                let begun = cutter.begin(&mut bytes, Layer::Ip, &mut |_| made += 1);
                assert_eq!(begun, count <= most, "{count} of {size}");
                assert!(made <= PIECES);
                while cutter.goes_on() {
                    let before = made;
                    cutter.go_on(&bytes, &mut |p| {
                        assert_eq!(verify(p), 0xffff);
                        made += 1;
                    });
                    assert!((1..=PIECES).contains(&(made - before)));
                }
                assert_eq!(made, if begun { count } else { 0 });
            }
        }
    }
}

/// At any MTU: a segment may be as long as a frame.
#[test]
fn long_packets_are_cut() {
    for size in [9000, 16_384, 19_960, 32_000, 60_000] {
        let mut bytes = header(1, TCP_V4, size, 20, 16);
        let whole = packet(true, true, &vec![7; 63_000]);
        bytes.extend(&whole);
        let mut lengths = Vec::new();
        assert!(cut(&mut bytes, Layer::Ip, &mut |p| lengths.push(p.len())), "{size}");
        assert_eq!(lengths[0], 40 + usize::from(size));
    }
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
