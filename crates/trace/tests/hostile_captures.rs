//! Captures from anybody: valid ones that were cut, in which bits were flipped, words replaced,
//! pieces repeated; and files without end.

use std::io::{self, Cursor, Read};

use aqm::Duration;
use proptest::prelude::*;
use trace::Capture;
use trace::generate::{Options, Packets};
use trace::write::{Format, Writer};

use crate::hostile;

/// About 40 packets.
fn sample(format: Format) -> Vec<u8> {
    let options = Options { duration: Duration::from_millis(200), ..Options::default() };
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, format).unwrap();
    for sent in Packets::new(options).unwrap().take(40) {
        writer.packet(sent.time, sent.len, &sent.head).unwrap();
    }
    writer.end().unwrap();
    bytes
}

proptest! {
    #[test]
    fn damaged_captures_are_read_without_harm(
        pcapng in any::<bool>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 0..20),
        words in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::sample::select(vec![0, 1, 3, 12, u32::MAX, 1 << 31])),
            0..4,
        ),
        again in any::<(prop::sample::Index, prop::sample::Index)>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = sample(if pcapng { Format::Pcapng } else { Format::Pcap });
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        for (at, word) in words {
            let at = at.index(bytes.len() / 4) * 4;
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
        }
        let (from, to) = (again.0.index(bytes.len()), again.1.index(bytes.len()));
        bytes.extend_from_within(from.min(to)..from.max(to));
        bytes.truncate(cut.index(2 * bytes.len()).max(30));
        hostile::check_capture(&bytes);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        hostile::check_capture(&bytes);
    }
}

/// A block that claims 4 GiB is passed over as far as the file goes, in no more memory than any
/// other.
#[test]
fn a_block_without_end() {
    let mut bytes = sample(Format::Pcapng);
    let begun = bytes.len() as u64;
    bytes.extend([5, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff]);
    let endless = Cursor::new(bytes).chain(io::repeat(0).take(1 << 28));
    let mut capture = Capture::new(endless, "x").unwrap();
    for _ in 0..40 {
        assert!(capture.next_packet().unwrap().is_some());
    }
    assert_eq!(capture.next_packet().unwrap_err().offset, begun);
}

/// A file that goes on for ever gives packets for as long as one asks.
#[test]
fn a_capture_without_end() {
    struct Endless(Vec<u8>, usize);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let piece = &self.0[self.1..];
            let n = piece.len().min(buffer.len());
            buffer[..n].copy_from_slice(&piece[..n]);
            self.1 = (self.1 + n) % self.0.len();
            Ok(n)
        }
    }
    let mut capture = Capture::new(Endless(sample(Format::Pcapng), 0), "x").unwrap();
    for _ in 0..100_000 {
        assert!(capture.next_packet().unwrap().is_some());
    }
    assert!(capture.offset() > 100_000 * 72);
}
