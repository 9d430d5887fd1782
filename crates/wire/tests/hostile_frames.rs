//! Frames from anybody: random bytes that often begin as IP or Ethernet do.

use proptest::prelude::*;

use crate::hostile;

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(
        mut frame in prop::collection::vec(any::<u8>(), 0..200),
        start in prop::sample::select(vec![0x45u8, 0x46, 0x4f, 0x60, 0x6f, 0x00]),
        kind in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x0806, 0x8864, 0x8847]),
        next in prop::sample::select(vec![0u8, 6, 43, 44, 51, 60]),
        ethernet in any::<bool>(),
    ) {
        let at = if ethernet { 14 } else { 0 };
        if ethernet && frame.len() > 13 {
            frame[12..14].copy_from_slice(&kind.to_be_bytes());
        }
        for (place, byte) in [(at, start), (at + 6, next)] {
            if let Some(there) = frame.get_mut(place) {
                *there = byte;
            }
        }
        hostile::check_frame(&frame);
    }
}
