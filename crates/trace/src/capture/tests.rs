use super::*;
use crate::write::{self, Writer};
use aqm::Ecn;

/// 32 bytes of IPv4 and UDP, from 10.0.0.`host`, port 5001 to 443, ECT(0).
fn udp(host: u8) -> Vec<u8> {
    let mut p = vec![0x45, 2, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 192, 0, 2, 1];
    p.extend([0x13, 0x89, 0x01, 0xbb, 0, 12, 0, 0, 1, 2, 3, 4]);
    p
}

/// Everything that is read: packets, what is wrong, packets reordered and unread.
fn all(bytes: &[u8]) -> (Vec<Packet>, Option<Error>, [u64; 2]) {
    let mut packets = Vec::new();
    let mut capture = match Capture::new(bytes, "x") {
        Ok(capture) => capture,
        Err(e) => return (packets, Some(e), [0; 2]),
    };
    let error = loop {
        match capture.next_packet() {
            Ok(Some(packet)) => packets.push(packet),
            Ok(None) => break None,
            Err(e) => break Some(e),
        }
    };
    assert_eq!(capture.next_packet(), Ok(None), "nothing comes after the end");
    (packets, error, [capture.reordered(), capture.unread()])
}

#[test]
fn frames_longer_than_those_of_ethernet_are_counted() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, write::Format::Pcap).unwrap();
    for (time, len) in [(1, 1500), (2, LONGEST_FRAME), (3, LONGEST_FRAME + 1), (4, 65_226)] {
        writer.packet(time, len, &udp(1)[..28]).unwrap();
    }
    writer.end().unwrap();
    let mut capture = Capture::new(&bytes[..], "x").unwrap();
    while capture.next_packet().unwrap().is_some() {}
    assert_eq!(capture.oversized(), 2);
}

fn wrong(bytes: &[u8]) -> String {
    all(bytes).1.map(|e| e.to_string()).unwrap_or_default()
}

fn sample(format: write::Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, format).unwrap();
    for (time, host) in [(5_000_000_007, 1), (6_000_000_000, 2), (6_000_000_001, 1)] {
        writer.packet(time, 1500, &udp(host)[..28]).unwrap();
    }
    writer.end().unwrap();
    bytes
}

/// A block in the byte order `big`.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let word = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
    let length = word(body.len() as u32 + 12);
    [&word(kind)[..], &length, body, &length].concat()
}

/// A section header, and an interface of Ethernet (big endian) in microseconds.
fn big_endian() -> Vec<u8> {
    let section = [&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0xff; 8]].concat();
    let interface = [0, 1, 0, 0, 0, 0, 0, 96];
    [block(true, SECTION, &section), block(true, INTERFACE, &interface)].concat()
}

#[test]
fn what_was_written_is_read() {
    for format in [write::Format::Pcap, write::Format::Pcapng] {
        let (packets, error, _) = all(&sample(format));
        assert_eq!(error, None);
        let seen = packets.iter().map(|p| (p.time, p.len, p.headers.flow.source[15]));
        assert!(seen.eq([(0, 1500, 1), (999_999_993, 1500, 2), (999_999_994, 1500, 1)]));
        assert!(packets.iter().all(|p| p.headers.ecn == Ecn::Ect0));
        assert!(packets.iter().all(|p| p.headers.flow.ports == [5001, 443]), "28 bytes suffice");
    }
}

#[test]
fn a_classic_pcap_of_either_byte_order_and_resolution() {
    for (magic, ns) in [
        ([0xa1, 0xb2, 0xc3, 0xd4], 250_000),
        ([0xd4, 0xc3, 0xb2, 0xa1], 250_000),
        ([0xa1, 0xb2, 0x3c, 0x4d], 250),
        ([0x4d, 0x3c, 0xb2, 0xa1], 250),
    ] {
        let big = magic[0] == 0xa1;
        let word = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
        let mut bytes = magic.to_vec();
        // Version, zone, accuracy, snap length, link type with a note on check sequences.
        for field in [0x0002_0004, 0, 0, 96, 0x1400_0065] {
            bytes.extend(word(field));
        }
        for (part, len) in [(0, 32), (250, 1500)] {
            for field in [7, part, 32, len] {
                bytes.extend(word(field));
            }
            bytes.extend(udp(1));
        }
        let (packets, error, _) = all(&bytes);
        assert_eq!(error, None);
        assert_eq!(
            packets.iter().map(|p| (p.time, p.len)).collect::<Vec<_>>(),
            [(0, 32), (ns, 1500)]
        );
    }
}

/// Two sections, the second in the other byte order and with its own interfaces; and every kind
/// of block that holds a packet.
#[test]
fn sections_and_kinds_of_blocks() {
    let frame = [&[0; 12][..], &[8, 0], &udp(1)].concat(); // 46 bytes
    let padded = [&frame[..], &[0; 2]].concat();
    // Interface 0, time 2³² + 16 µs, captured 46, on the wire 60.
    let enhanced =
        [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0, 46, 0, 0, 0, 60][..], &padded].concat();
    let old = [&[0, 0, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 17, 0, 0, 0, 46, 0, 0, 0, 60][..], &padded]
        .concat();
    // On the wire 46; the snap length of 96 does not cut it.
    let simple = [&[0, 0, 0, 46][..], &padded].concat();
    let bytes = [
        big_endian(),
        block(true, PACKET, &enhanced),
        block(true, 5, &[1; 100_000]), // statistics, and more of them than any buffer holds
        block(true, OLD_PACKET, &old),
        block(true, SIMPLE_PACKET, &simple),
        sample(write::Format::Pcapng),
    ]
    .concat();
    let (packets, error, odd) = all(&bytes);
    assert_eq!(error, None);
    let seen: Vec<_> = packets.iter().map(|p| (p.time, p.len)).collect();
    assert_eq!(seen[..3], [(0, 60), (1000, 60), (1000, 46)]);
    // The first section began 4294.967312 s after 1970, the other 5 s after: the clock was set back.
    assert_eq!(seen[3..], [(1000, 1500), (1_000_000_993, 1500), (1_000_000_994, 1500)]);
    assert_eq!(odd, [1, 0]);
    assert!(packets.iter().all(|p| p.headers.flow.protocol == 17));
}

#[test]
fn time_never_runs_back() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, write::Format::Pcapng).unwrap();
    for time in [50, 40, 70, 60, 80] {
        writer.packet(time, 32, &udp(1)).unwrap();
    }
    let (packets, _, odd) = all(&bytes);
    assert_eq!(packets.iter().map(|p| p.time).collect::<Vec<_>>(), [0, 0, 20, 20, 30]);
    assert_eq!(odd, [2, 0]);
}

/// The same packet on every link layer, as classic pcap; and of one that is not known.
#[test]
fn link_layers() {
    let packet = udp(9);
    let vlan = [&[0, 42, 8, 0][..], &packet].concat();
    for (number, frame) in [
        (0u32, [&[2, 0, 0, 0][..], &packet].concat()),
        (1, [&[0; 12][..], &[8, 0], &packet].concat()),
        (1, [&[0; 12][..], &[0x81, 0], &vlan].concat()),
        (12, packet.clone()),
        (101, packet.clone()),
        (108, [&[0, 0, 0, 2][..], &packet].concat()),
        (113, [&[0; 14][..], &[8, 0], &packet].concat()),
        (113, [&[0; 14][..], &[0x81, 0], &vlan].concat()),
        (228, packet.clone()),
        (276, [&[8, 0][..], &[0; 18], &packet].concat()),
        (276, [&[0x81, 0][..], &[0; 18], &vlan].concat()),
    ] {
        let head = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, number];
        let record = [1, 0, frame.len() as u32, frame.len() as u32];
        let mut bytes: Vec<u8> = head.iter().chain(&record).flat_map(|w| w.to_le_bytes()).collect();
        bytes.extend(&frame);
        let (packets, error, _) = all(&bytes);
        assert_eq!(error, None);
        let headers = packets[0].headers;
        assert_eq!(
            (headers.flow.source[15], headers.flow.ports, headers.ecn),
            (9, [5001, 443], Ecn::Ect0),
            "{number}"
        );
        // Cut off anywhere it is read as far as it goes.
        for kept in 0..frame.len() {
            let mut cut = bytes[..40 + kept].to_vec();
            cut[32..36].copy_from_slice(&(kept as u32).to_le_bytes());
            assert_eq!(all(&cut).0[0].len, frame.len() as u32);
        }
    }
    let head = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 147];
    let bytes: Vec<u8> = head.iter().flat_map(|w| w.to_le_bytes()).collect();
    assert!(wrong(&bytes).starts_with("x: byte 0: packets of link type 147; those"));
    // In pcapng, other interfaces may be read.
    let mut bytes = sample(write::Format::Pcapng);
    bytes[36] = 147;
    assert_eq!(all(&bytes), (vec![], None, [0, 3]));
}

#[test]
fn resolutions() {
    let time = |resolution, offset, ticks| {
        Interface { link: None, snaplen: 0, resolution, offset }.time(ticks)
    };
    assert_eq!(time(6, 0, 3), 3000);
    assert_eq!(time(9, 0, 3), 3);
    assert_eq!(time(0, 0, 3), 3_000_000_000);
    assert_eq!(time(12, 0, 3999), 3);
    assert_eq!(time(127, 0, u64::MAX), 0); // no digit is left
    assert_eq!(time(0x80 | 10, 0, 512), 500_000_000); // 512 / 2¹⁰ s
    assert_eq!(time(0xff, 0, u64::MAX), 0);
    assert_eq!(time(9, 2, 3), 2_000_000_003);
    assert_eq!(time(9, -2, 3), 0);
    assert_eq!(time(0, i64::MAX, u64::MAX), u64::MAX);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let with = |at: usize, byte: u8| {
        let mut bytes = sample(write::Format::Pcapng);
        bytes[at] = byte;
        wrong(&bytes)
    };
    // 28 bytes of section, 32 of interface: the first packet's block begins at 60.
    assert_eq!(with(64, 61), "x: byte 60: a block of 61 bytes, where it is 12, 16 …");
    assert_eq!(with(64, 8), "x: byte 60: a block of 8 bytes, where it is 12, 16 …");
    assert_eq!(with(64, 64), "x: byte 60: a block of 64 bytes by its begin and of 6 by its end");
    assert_eq!(with(68, 1), "x: byte 60: a packet from interface 1 in a section that has 1");
    assert_eq!(with(80, 29), "x: byte 60: a block that is shorter than what it claims to hold");
    assert_eq!(with(8, 0), "x: byte 0: a section without byte order");
    assert_eq!(with(12, 2), "x: byte 0: pcapng of version 2; 1 is read");
    assert_eq!(with(0, 0), "x: byte 0: this is neither pcap nor pcapng");
    assert_eq!(wrong(&[]), "x: byte 0: the file is empty");
    assert!(wrong(&[0x1f, 0x8b, 8, 0]).contains("gzip"));
    assert!(wrong(&[0x28, 0xb5, 0x2f, 0xfd]).contains("zstd"));
    let mut classic = sample(write::Format::Pcap);
    classic[34] = 5; // captured bytes: 28 + 5·2¹⁶
    assert_eq!(wrong(&classic), "x: byte 24: a packet of 327708 bytes, where 262144 are the most");
}

/// From a file that ends anywhere, exactly the whole packets are read.
#[test]
fn a_cut_file_gives_what_was_whole() {
    for (format, head, record) in [(write::Format::Pcap, 24, 44), (write::Format::Pcapng, 60, 60)] {
        let bytes = sample(format);
        assert_eq!(bytes.len(), head + 3 * record);
        let whole = all(&bytes).0;
        for end in head..bytes.len() {
            let (packets, error, _) = all(&bytes[..end]);
            let number = (end - head) / record;
            assert_eq!(packets, whole[..number]);
            let begun = head + number * record;
            assert_eq!(error.map(|e| e.offset), (end > begun).then_some(begun as u64));
        }
    }
}

#[test]
fn an_endless_list_of_interfaces_is_refused() {
    let interface = block(true, INTERFACE, &[0, 1, 0, 0, 0, 0, 0, 96]);
    let bytes = [big_endian(), interface.repeat(MAX_INTERFACES)].concat();
    assert!(wrong(&bytes).ends_with("more than 65536 interfaces"));
}

/// A classic pcap of link type `link`; each packet with its time in s and ms.
fn classic(link: u32, packets: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0xa1, 0xb2, 0xc3, 0xd4];
    for field in [0x0002_0004, 0, 0, 4096, link] {
        bytes.extend(field.to_be_bytes());
    }
    for (seconds, ms, packet) in packets {
        for field in [*seconds, ms * 1000, packet.len() as u32, packet.len() as u32] {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}

/// At 10 s the clock goes back by 5 s; one packet is stamped a year ahead, one by 30 s. Gaps stay 100 ms, but
/// across the steps, and a packet that is 20 ms early is out of order as ever.
#[test]
fn a_clock_that_is_set_leaves_the_gaps_as_recorded() {
    let at = |seconds, ms| (seconds, ms, udp(1));
    let year = 365 * 86_400;
    for (recorded, expected, steps) in [
        (
            vec![at(10, 0), at(10, 100), at(5, 0), at(5, 100), at(5, 200)],
            [0, 100, 100, 200, 300],
            1,
        ),
        (
            vec![at(10, 0), at(10, 100), at(year, 0), at(10, 200), at(10, 300)],
            [0, 100, 100, 200, 300],
            1,
        ),
        (
            vec![at(10, 0), at(10, 100), at(40, 0), at(10, 200), at(10, 300)],
            [0, 100, 100, 200, 300],
            1,
        ),
        (
            vec![at(10, 0), at(10, 100), at(year, 0), at(year, 100), at(year, 200)],
            [0, 100, 100, 200, 300],
            1,
        ),
        (
            vec![at(10, 0), at(10, 100), at(10, 80), at(10, 200), at(10, 300)],
            [0, 100, 100, 200, 300],
            1,
        ),
    ] {
        let (packets, error, [reordered, _]) = all(&classic(101, &recorded));
        assert_eq!((error, reordered), (None, steps));
        assert_eq!(packets.iter().map(|p| p.time / 1_000_000).collect::<Vec<_>>(), expected);
    }
}

/// Silence is kept as recorded, and told. What is behind it may as well be damaged.
#[test]
fn the_longest_silence_is_told() {
    let bytes = classic(101, &[(10, 0, udp(1)), (10, 100, udp(1)), (70, 100, udp(1))]);
    let mut capture = Capture::new(&bytes[..], "x").unwrap();
    let mut times = Vec::new();
    while let Some(packet) = capture.next_packet().unwrap() {
        times.push(packet.time / 1_000_000);
    }
    assert_eq!(times, [0, 100, 60_100]);
    let silence = capture.silence();
    assert_eq!((silence.from, silence.lasts), (100_000_000, 60_000_000_000));
    let (packets, error, _) = all(&bytes[..bytes.len() - 1]);
    assert_eq!((packets.len(), error.is_some()), (2, true));
    let more = [&bytes[..], &[0; 7]].concat();
    let (packets, error, _) = all(&more);
    assert_eq!((packets.len(), error.map(|e| e.offset)), (3, Some(bytes.len() as u64)));
}

/// Records with eight bytes more, as Kuznetzov's libpcap wrote them.
#[test]
fn a_modified_pcap_is_read() {
    for big in [true, false] {
        let word = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
        let mut bytes = word(0xa1b2_cd34).to_vec();
        for field in [if big { 0x0002_0004 } else { 0x0004_0002 }, 0, 0, 96, 101] {
            bytes.extend(word(field));
        }
        for part in [0, 250] {
            for field in [7, part, 32, 32] {
                bytes.extend(word(field));
            }
            bytes.extend([9; 8]);
            bytes.extend(udp(1));
        }
        let (packets, error, _) = all(&bytes);
        assert_eq!(error, None);
        assert_eq!(packets.iter().map(|p| p.time).collect::<Vec<_>>(), [0, 250_000]);
        assert!(packets.iter().all(|p| p.headers.flow.ports == [5001, 443]));
    }
}

#[test]
fn ip_is_found_behind_ppp_nflog_and_radiotap() {
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let radiotap = [0, 0, 8, 0, 0, 0, 0, 0];
    let frame = |control: u8, flags: u8, more: usize| {
        [&[control, flags][..], &vec![0; 22 + more], &snap, &udp(1)].concat()
    };
    let prefix = [6, 0, 10, 0, b'x', b'\n', 0, 0];
    let packet = (udp(1).len() + 4) as u16;
    let log = |attributes: &[u8]| [&[2, 0, 0, 5][..], &prefix, attributes, &udp(1)].concat();
    for (link, bytes) in [
        (9, [&[0xff, 3, 0, 0x21][..], &udp(1)].concat()),
        (50, [&[0, 0x21][..], &udp(1)].concat()),
        (9, [&[0x21][..], &udp(1)].concat()),
        (239, log(&[&packet.to_le_bytes()[..], &[9, 0]].concat())),
        (105, frame(0x08, 1, 0)),
        (127, [&radiotap[..], &frame(0x88, 1, 2)].concat()),
        (127, [&radiotap[..], &frame(0x88, 3, 8)].concat()),
        // The card filled up the head to 28 bytes; in the second the flags stand behind a time.
        (127, [&[0, 0, 9, 0, 2, 0, 0, 0, 0x20][..], &frame(0x88, 1, 4)].concat()),
        (127, [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[7; 8], &[0x20], &frame(0x88, 1, 4)].concat()),
    ] {
        let (packets, error, _) = all(&classic(link, &[(7, 0, bytes)]));
        assert_eq!(error, None);
        assert_eq!(packets[0].headers.flow.ports, [5001, 443], "link type {link}");
    }
    for (link, bytes) in [
        (9, vec![0xc0, 0x21, 1]),
        (239, vec![2, 0, 0, 5, 0, 0]),
        (127, vec![0, 0, 255, 255]),
        (105, frame(0x08, 0x41, 0)), // encrypted
        (105, frame(0x80, 0, 0)),    // a beacon
    ] {
        let (packets, error, _) = all(&classic(link, &[(7, 0, bytes)]));
        assert_eq!(error, None);
        assert_eq!(packets[0].headers.flow.protocol, 0, "link type {link}");
    }
}

/// A segment that has yet to be cut up: its total length is 0.
#[test]
fn a_packet_without_a_length_is_as_long_as_the_frame() {
    let mut packet = udp(1);
    packet[2..4].fill(0);
    let (packets, ..) = all(&classic(101, &[(7, 0, packet)]));
    assert_eq!(packets[0].headers.flow.ports, [5001, 443]);
    assert_eq!(packets[0].headers.ecn, Ecn::Ect0);
}
