//! Frames from anybody, as the kernel hands them over: random bytes that often begin as IP or
//! Ethernet do.

use proptest::prelude::*;

use crate::hostile;

proptest! {
    /// With a header that asks for checksums or for cutting, mostly with places inside the frame.
    #[test]
    fn any_bytes_go_the_whole_way_without_harm(
        mut frame in prop::collection::vec(any::<u8>(), 0..3000),
        start in prop::sample::select(vec![0x45u8, 0x46, 0x4f, 0x60]),
        flags in prop::sample::select(vec![0u8, 1]),
        kind in prop::sample::select(vec![0u8, 1, 3, 4, 5, 0x11, 0x81]),
        size in 0u16..2000,
        checksum in (0u16..80, 0u16..40),
        ethernet in any::<bool>(),
    ) {
        let at = if ethernet { 14 } else { 0 };
        let mut bytes = vec![flags, kind];
        bytes.extend((40u16).to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(checksum.0.to_ne_bytes());
        bytes.extend(checksum.1.to_ne_bytes());
        if let Some(there) = frame.get_mut(at) {
            *there = start;
        }
        if ethernet && frame.len() > 13 {
            frame[12..14].copy_from_slice(&if start == 0x60 { [0x86, 0xdd] } else { [8, 0] });
        }
        bytes.extend(frame);
        hostile::check_path(&bytes);
    }

    /// Super-packets whose headers fit, in tunnels of any depth, with bytes here and there that do not.
    #[test]
    fn tunnels_that_nearly_fit_go_the_whole_way_without_harm(
        payload in prop::collection::vec(any::<u8>(), 0..4000),
        tunnels in prop::collection::vec((0u8..7, any::<bool>()), 0..4),
        (v4, tcp, ethernet) in any::<(bool, bool, bool)>(),
        size in 1u16..1500,
        faults in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let transport: &[u8] = if tcp {
            &[0x13, 0x89, 1, 0xbb, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x90, 1, 0, 0, 0, 0, 0]
        } else {
            &[0x13, 0x89, 1, 0xbb, 0, 0, 0, 0]
        };
        let mut v4_now = v4;
        let inner = [transport, &payload].concat();
        let mut packet = ip(v4, if tcp { 6 } else { 17 }, &inner);
        for (kind, outer_v4) in tunnels {
            let [high, low] = if v4_now { [8, 0] } else { [0x86, 0xdd] };
            let framed = [&[2; 12][..], &[high, low], &packet].concat();
            let udp = |tunnel: &[u8], inside: &[u8]| {
                let length = ((8 + tunnel.len() + inside.len()) as u16).to_be_bytes();
                [&[0x13, 0x89, 0x12, 0xb5][..], &length, &[0, kind & 1], tunnel, inside].concat()
            };
            let (protocol, carried) = match kind {
                0 => (if v4_now { 4 } else { 41 }, packet.clone()),
                1 => (47, [&[0, 0, high, low], &packet[..]].concat()),
                2 => (47, [&[0xa0, 0, 0x65, 0x58, 0, 0, 0, 0, 0, 0, 0, 7], &framed[..]].concat()),
                3 | 4 => (17, udp(&[8, 0, 0, 0, 0, 0, 42, 0], &framed)),
                5 => (17, udp(&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0], &framed)),
                _ => (17, udp(&[], &packet)),
            };
            packet = ip(outer_v4, protocol, &carried);
            v4_now = outer_v4;
        }
        let ahead: &[u8] = match (ethernet, v4_now) {
            (false, _) => &[],
            (true, true) => &[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8, 0],
            (true, false) => &[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0x86, 0xdd],
        };
        let start = (ahead.len() + packet.len() - inner.len()) as u16;
        let mut bytes = vec![1, if !tcp { 5 } else if v4 { 1 } else { 4 }];
        for word in [0, size, start, if tcp { 16 } else { 6 }] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend([ahead, &packet].concat());
        for (place, byte) in faults {
            let place = place.index(bytes.len().min(200));
            bytes[place] = byte;
        }
        hostile::check_path(&bytes);
    }
}

/// `inside` behind an IP header of `protocol`.
fn ip(v4: bool, protocol: u8, inside: &[u8]) -> Vec<u8> {
    let length = inside.len() as u16;
    let mut header = vec![0; if v4 { 20 } else { 40 }];
    if v4 {
        (header[0], header[9]) = (0x45, protocol);
        header[2..4].copy_from_slice(&(length + 20).to_be_bytes());
    } else {
        (header[0], header[6]) = (0x60, protocol);
        header[4..6].copy_from_slice(&length.to_be_bytes());
    }
    [header, inside.to_vec()].concat()
}
