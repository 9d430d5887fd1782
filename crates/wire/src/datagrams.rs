//! What tells a UDP datagram from others at both ends of a path.

use crate::{Layer, Network, UDP, network, u16_at};

/// The bytes of the payload that count.
const PAYLOAD: usize = 32;
/// Identification and length, and the payload's first bytes.
pub type Likeness = [u8; 4 + PAYLOAD];

/// What a UDP datagram has at both ends of a path, also behind a translation of addresses and ports: IPv4's
/// identification (0 in IPv6), its length, and the first 32 bytes of its payload. None for anything else, for
/// fragments, for UDP behind extension headers, and for what is cut off within these bytes.
pub fn likeness(frame: &[u8], layer: Layer) -> Option<Likeness> {
    let (number, datagram) = match network(frame, layer)? {
        Network::V4(at) => {
            let packet = &frame[at..];
            let header = usize::from(packet[0] & 15) * 4;
            let whole = header >= 20 && u16_at(packet, 6)? & 0x3fff == 0;
            (u16_at(packet, 4)?, packet.get(header..).filter(|_| whole && packet[9] == UDP)?)
        }
        Network::V6(at) => {
            let packet = &frame[at..];
            (0, packet.get(40..).filter(|_| packet[6] == UDP)?)
        }
    };
    let length = u16_at(datagram, 4)?;
    // What a short frame is padded with does not count.
    let kept = usize::from(length).checked_sub(8)?.min(PAYLOAD);
    let mut all = [0; 4 + PAYLOAD];
    all[..2].copy_from_slice(&number.to_be_bytes());
    all[2..4].copy_from_slice(&length.to_be_bytes());
    all[4..4 + kept].copy_from_slice(datagram.get(8..8 + kept)?);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn built(v6: bool, ports: [u16; 2], data: &[u8]) -> Vec<u8> {
        let packet = match v6 {
            true => PacketBuilder::ipv6([1; 16], [2; 16], 64),
            false => PacketBuilder::ipv4([10, 0, 0, ports[0] as u8], [10, 0, 0, 2], 64),
        };
        let mut bytes = Vec::new();
        packet.udp(ports[0], ports[1]).write(&mut bytes, data).unwrap();
        bytes
    }

    proptest! {
        /// Addresses and ports do not count, nor does what is behind the datagram; all else does.
        #[test]
        fn a_datagram_is_like_itself_alone(
            v6: bool,
            data in prop::collection::vec(any::<u8>(), 0..60),
            other in prop::collection::vec(any::<u8>(), 0..60),
            ports: [u16; 2],
            padding in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let of = |bytes: &[u8]| likeness(bytes, Layer::Ip);
            let one = of(&built(v6, [1, 2], &data));
            prop_assert!(one.is_some());
            prop_assert_eq!(one, of(&[built(v6, ports, &data), padding].concat()));
            let counts = |data: &[u8]| (data.len(), data[..data.len().min(PAYLOAD)].to_vec());
            let same = counts(&data) == counts(&other);
            prop_assert_eq!(one == of(&built(v6, [1, 2], &other)), same);
        }

        /// Whatever the bytes are, nothing breaks; of a part there is the same, or nothing.
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..120), cut in 0..120_usize) {
            for layer in [Layer::Ip, Layer::Ethernet] {
                likeness(&bytes, layer);
            }
            let whole = built(bytes.len() % 2 == 0, [1, 2], &bytes);
            let part = likeness(&whole[..cut.min(whole.len())], Layer::Ip);
            prop_assert!(part.is_none() || part == likeness(&whole, Layer::Ip));
        }
    }

    #[test]
    fn fragments_and_others_have_none() {
        let mut packet = built(false, [1, 2], b"data");
        packet[6] |= 0x20;
        assert_eq!(likeness(&packet, Layer::Ip), None);
        packet[6] = 0;
        packet[9] = 6;
        assert_eq!(likeness(&packet, Layer::Ip), None);
    }
}
