//! The Internet checksum (RFC 1071), and where it is written.

use super::way::Ip;

pub(super) fn put(packet: &mut [u8], at: usize, value: u16) {
    packet[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of the pseudo-header of what begins at `start`.
pub(super) fn pseudo(packet: &[u8], ip: Ip, protocol: u8, start: usize) -> u64 {
    let addresses = if ip.v4 { ip.at + 12..ip.at + 20 } else { ip.at + 8..ip.at + 40 };
    sum(u64::from(protocol) + (packet.len() - start) as u64, &packet[addresses])
}

/// Writes the checksum of everything from `start` on, and of `pseudo`, to `place`.
pub(super) fn put_checksum(packet: &mut [u8], start: usize, place: usize, pseudo: u64) {
    put(packet, place, 0);
    let value = filled(sum(pseudo, &packet[start..]));
    put(packet, place, value);
}

/// The checksum as it is sent: 0 would mean to UDP that there is none, and 0xffff is the same number.
pub(super) fn filled(sum: u64) -> u16 {
    match checksum(sum) {
        0 => 0xffff,
        value => value,
    }
}

/// Adds 16-bit words, big-endian, the last filled up with 0.
pub(crate) fn sum(start: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(4);
    let rest = match *words.remainder() {
        [a] => u64::from(a) << 8,
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [a, b, c] => u64::from(u16::from_be_bytes([a, b])) + (u64::from(c) << 8),
        _ => 0,
    };
    words.fold(start + rest, |sum, w| sum + u64::from(u32::from_be_bytes([w[0], w[1], w[2], w[3]])))
}

/// The Internet checksum (RFC 1071) of what was added.
pub(crate) fn checksum(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
