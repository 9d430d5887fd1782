//! The reader against another program's: what pcap-parser reads from a file, this crate reads.

use aqm::Duration;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use trace::Capture;
use trace::generate::{Options, Packets};
use trace::write::{Format, Writer};

#[test]
fn another_reader_sees_the_same_packets() {
    let options = Options { duration: Duration::from_secs(1), ..Options::default() };
    for format in [Format::Pcap, Format::Pcapng] {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, format).unwrap();
        for sent in Packets::new(options).unwrap() {
            // Heads of every length: blocks are padded in every way.
            let kept = 28 + sent.len as usize % 13;
            writer.packet(sent.time, sent.len, &sent.head[..kept]).unwrap();
        }
        writer.end().unwrap();
        let theirs = theirs(&bytes);
        let mut capture = Capture::new(&bytes[..], "x").unwrap();
        let mut count = 0;
        while let Some(packet) = capture.next_packet().unwrap() {
            let (time, len, head) = &theirs[count];
            assert_eq!((packet.time, packet.len), (time - theirs[0].0, *len));
            assert_eq!(packet.headers, wire::parse(head, wire::Layer::Ip));
            count += 1;
        }
        assert_eq!(count, theirs.len());
        assert!(count > 500);
    }
}

/// Time (ns), length and head of each packet.
fn theirs(bytes: &[u8]) -> Vec<(u64, u32, Vec<u8>)> {
    let mut reader = create_reader(1 << 20, bytes).unwrap();
    let mut packets = Vec::new();
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                match block {
                    PcapBlockOwned::Legacy(b) => {
                        let time = u64::from(b.ts_sec) * 1_000_000_000 + u64::from(b.ts_usec);
                        packets.push((time, b.origlen, b.data.to_vec()));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(b)) => {
                        let (seconds, part) = b.decode_ts(0, 1_000_000_000);
                        let time = u64::from(seconds) * 1_000_000_000 + u64::from(part);
                        packets.push((time, b.origlen, b.data[..b.caplen as usize].to_vec()));
                    }
                    _ => {}
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return packets,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(e) => panic!("{e:?}"),
        }
    }
}
