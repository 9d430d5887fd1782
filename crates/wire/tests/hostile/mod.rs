//! What must hold for any bytes; shared by the property test and the fuzz target.

use aqm::Ecn;
use wire::{Layer, parse, set_ce, stations};

/// `bytes` as a frame on each layer: nothing panics, and a mark changes the ECN field and the
/// checksum of what can be marked, and nothing else.
pub fn check_frame(bytes: &[u8]) {
    for layer in [Layer::Ip, Layer::Ethernet] {
        let before = parse(bytes, layer);
        let mut frame = bytes.to_vec();
        let marked = set_ce(&mut frame, layer);
        assert_eq!(marked, before.ecn.capable());
        let after = parse(&frame, layer);
        assert_eq!(after.flow, before.flow);
        assert!(layer == Layer::Ip || stations(&frame) == stations(bytes));
        assert_eq!(after.ecn, if marked { Ecn::Ce } else { Ecn::NotEct });
        let changed = bytes.iter().zip(&frame).filter(|(a, b)| a != b).count();
        assert!(changed <= 3, "{changed} bytes changed");
        let once = frame.clone();
        set_ce(&mut frame, layer);
        assert_eq!(frame, once, "a second mark changes nothing");
    }
}
