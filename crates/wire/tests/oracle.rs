//! A reader of packets that is not ours, etherparse, beside this one: where both read a frame they
//! read the same, and a mark leaves the header checksum right.

use etherparse::{LinkExtSlice, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use wire::{Flow, Layer, parse, set_ce};

/// What etherparse finds: the flow as far as it tells it, and the ECN field; and whether the header
/// checksum is right.
fn read(frame: &[u8]) -> Option<(Flow, u8, bool)> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    if packet.link_exts.iter().any(|ext| matches!(ext, LinkExtSlice::Macsec(_))) {
        return None;
    }
    let mut flow = Flow::default();
    let net = packet.net.as_ref()?;
    let v6 = matches!(net, NetSlice::Ipv6(_));
    let (ecn, fragment, sound) = match net {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            for (place, address) in [
                (&mut flow.source, header.source_addr()),
                (&mut flow.destination, header.destination_addr()),
            ] {
                *place = address.to_ipv6_mapped().octets();
            }
            let protocol = if header.is_fragmenting_payload() {
                header.protocol()
            } else {
                ip.payload().ip_number
            };
            flow.protocol = protocol.0;
            let sound = header.to_header().calc_header_checksum() == header.header_checksum();
            (header.ecn().value(), header.is_fragmenting_payload(), sound)
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            (flow.source, flow.destination) = (header.source(), header.destination());
            let fragment = ip.is_payload_fragmented();
            flow.protocol = if fragment { 44 } else { ip.payload().ip_number.0 };
            (header.traffic_class() & 3, fragment, true)
        }
        NetSlice::Arp(_) => return None,
    };
    // It stops at an extension header that repeats or is out of order, and does not know them all there.
    if flow.protocol == 51
        || v6 && !fragment && matches!(flow.protocol, 0 | 43 | 44 | 60 | 135 | 139 | 140)
    {
        return None;
    }
    flow.ports = match &packet.transport {
        _ if fragment => [0; 2],
        Some(TransportSlice::Tcp(tcp)) => [tcp.source_port(), tcp.destination_port()],
        Some(TransportSlice::Udp(udp)) => [udp.source_port(), udp.destination_port()],
        // Others stand for ports in our reader alone.
        _ => parse(frame, Layer::Ethernet).flow.ports,
    };
    Some((flow, ecn, sound))
}

/// Whether both read a frame alike, before and after a mark. `false` if etherparse does not read it.
fn agree(frame: &[u8]) -> bool {
    let Some((flow, ecn, sound)) = read(frame) else { return false };
    let ours = parse(frame, Layer::Ethernet);
    assert_eq!((ours.flow, ours.ecn as u8), (flow, ecn), "{frame:x?}");
    let mut marked = frame.to_vec();
    let is_marked = set_ce(&mut marked, Layer::Ethernet);
    let (_, ecn, still) = read(&marked).expect("readable after a mark");
    assert_eq!((is_marked, ecn), if ours.ecn.capable() { (true, 3) } else { (false, 0) });
    assert!(!sound || still, "the mark spoils the checksum of {frame:x?}");
    true
}

#[test]
fn packets_that_etherparse_builds_are_read_alike() {
    let payload = [7; 100];
    for (tags, v4, tcp, ecn) in (0..24).map(|i| (i % 3, i / 3 % 2 == 0, i / 6 % 2 == 0, i % 4)) {
        let link = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let vlan = |id: u16| etherparse::VlanId::try_new(id).unwrap();
        let ip = if v4 {
            let mut header = etherparse::Ipv4Header::new(
                0,
                64,
                etherparse::IpNumber::UDP,
                [10, 0, 0, 1],
                [10, 0, 0, 2],
            )
            .unwrap();
            header.ecn = etherparse::IpEcn::try_new(ecn).unwrap();
            etherparse::IpHeaders::Ipv4(header, Default::default())
        } else {
            let header = etherparse::Ipv6Header {
                traffic_class: ecn,
                source: [1; 16],
                destination: [2; 16],
                ..Default::default()
            };
            etherparse::IpHeaders::Ipv6(header, Default::default())
        };
        let builder = match tags {
            0 => link.ip(ip),
            1 => link.single_vlan(vlan(5)).ip(ip),
            _ => link.double_vlan(vlan(5), vlan(6)).ip(ip),
        };
        let mut frame = Vec::new();
        if tcp {
            builder.tcp(5001, 443, 9, 9).write(&mut frame, &payload).unwrap();
        } else {
            builder.udp(5001, 443).write(&mut frame, &payload).unwrap();
        }
        assert!(agree(&frame));
        assert_eq!(parse(&frame, Layer::Ethernet).flow.ports, [5001, 443]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Random bytes with headers that are right often enough for both to go far.
    #[test]
    fn whatever_both_read_they_read_alike(
        mut frame in prop::collection::vec(any::<u8>(), 54..160),
        tags in 0usize..3,
        v4 in any::<bool>(),
        next in prop::sample::select(vec![0u8, 1, 6, 17, 43, 44, 51, 58, 60, 132]),
        then in prop::sample::select(vec![6u8, 17, 44, 51, 60]),
        length in 0u8..3,
    ) {
        for tag in 0..tags {
            frame[12 + 4 * tag..14 + 4 * tag].copy_from_slice(&[0x81, 0]);
        }
        let at = 14 + 4 * tags;
        frame.resize(frame.len().max(at + 60), 0);
        let carried = (frame.len() - at) as u16;
        frame[at - 2..at].copy_from_slice(if v4 { &[8, 0] } else { &[0x86, 0xdd] });
        let payload = if v4 {
            frame[at] = 0x45;
            frame[at + 2..at + 4].copy_from_slice(&carried.to_be_bytes());
            frame[at + 6] &= 0x40 | (0x20 * (length & 1));
            frame[at + 7] = 0;
            frame[at + 9] = next;
            frame[at + 10..at + 12].fill(0);
            let words = frame[at..at + 20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            let sum: u32 = words.sum();
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
            at + 20
        } else {
            frame[at] = 0x60 | frame[at] & 15;
            frame[at + 4..at + 6].copy_from_slice(&(carried - 40).to_be_bytes());
            frame[at + 6] = next;
            at + 40
        };
        if payload + 6 <= frame.len() {
            frame[payload..payload + 4].copy_from_slice(&[then, length, 0, length & 1]);
        }
        agree(&frame);
    }
}
