//! Frames from anybody, as the kernel hands them over: random bytes that often begin as IP or
//! Ethernet do.

mod hostile;

use proptest::prelude::*;

proptest! {
    /// With a header that asks for checksums or for cutting, mostly with places inside the frame.
    #[test]
    fn any_bytes_go_the_whole_way_without_harm(
        mut frame in prop::collection::vec(any::<u8>(), 0..3000),
        start in prop::sample::select(vec![0x45u8, 0x46, 0x4f, 0x60]),
        flags in prop::sample::select(vec![0u8, 1]),
        kind in prop::sample::select(vec![0u8, 1, 3, 4, 5, 0x81]),
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
}
