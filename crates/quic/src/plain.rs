//! Connections without secrets: what stands in place of TLS, and of random keys.
//!
//! Packets and messages are as long as with TLS 1.3 and AES-GCM: a tag has 16 bytes, a hello the size that
//! rustls sends for one small certificate. Tags are checked; nothing is hidden.

use aqm::Rng;

/// Length of a packet's tag, bytes.
pub const TAG: usize = 16;
/// Packets that one key may protect, and packets that may fail with it (AES-GCM, RFC 9001 §6.6).
pub const LIMITS: [u64; 2] = [1 << 23, 1 << 52];

/// The tag of a packet: a sum over its number and all its bytes.
pub fn tag(path: u64, number: u64, header: &[u8], payload: &[u8]) -> [u8; TAG] {
    let sum = fold(fold(fold(path, &number.to_le_bytes()), header), payload);
    let mut tag = [0; TAG];
    tag[..8].copy_from_slice(&sum.to_le_bytes());
    tag[8..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    tag
}

/// Whether `payload` ends with the right tag; its length without.
pub fn untagged(path: u64, number: u64, header: &[u8], payload: &[u8]) -> Option<usize> {
    let (payload, found) = payload.split_last_chunk::<TAG>()?;
    (*found == tag(path, number, header, payload)).then_some(payload.len())
}

/// A sum over bytes in which each of them, and its place, counts.
fn fold(sum: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    let word = |word: &[u8]| word.try_into().map_or(0, u64::from_le_bytes);
    let step =
        |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    step(words.map(word).fold(sum, step), u64::from_le_bytes(rest))
}

/// Signs `data` with a key of stateless resets.
pub fn sign(key: u64, data: &[u8], signature: &mut [u8]) {
    for (i, part) in signature.chunks_mut(8).enumerate() {
        let word = fold(key.wrapping_add(i as u64), data).wrapping_mul(0xd134_2543_de82_ef95);
        part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
    }
}

/// A seed of a stack's own generator.
pub fn seed(rng: &mut Rng) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&rng.bits().to_le_bytes()));
    seed
}

/// The messages of a handshake, bytes: hello (client, Initial), hello (server, Initial), the server's flight
/// and the client's end of it (Handshake).
const HELLOS: [usize; 2] = [260, 90];
const FLIGHT: usize = 700;
const END: usize = 52;

/// One end of a handshake. A message begins with its length and that of the transport parameters in it, in two
/// bytes each.
pub struct Handshake {
    is_client: bool,
    parameters: Vec<u8>,
    inbox: Vec<u8>,
    read: u8,
    written: u8,
}

impl Handshake {
    /// An end with these transport parameters.
    pub fn new(is_client: bool, parameters: Vec<u8>) -> Self {
        Self { is_client, parameters, inbox: Vec::new(), read: 0, written: 0 }
    }

    /// Whether messages are still to come.
    pub fn goes_on(&self) -> bool {
        self.read < 2
    }

    /// Bytes come. The other end's parameters, if they are among them.
    pub fn read(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.inbox.extend_from_slice(bytes);
        let mut parameters = None;
        while let Some(&[a, b, c, d]) = self.inbox.first_chunk() {
            let [length, own] = [[a, b], [c, d]].map(|word| usize::from(u16::from_be_bytes(word)));
            if self.inbox.len() < length {
                break;
            }
            let message: Vec<u8> = self.inbox.drain(..length).collect();
            parameters =
                message.get(4..4 + own).filter(|own| !own.is_empty()).map(Vec::from).or(parameters);
            self.read += 1;
        }
        parameters
    }

    /// Writes the next message, if it is its turn; whether keys for the next packets come with it.
    pub fn write(&mut self, out: &mut Vec<u8>) -> bool {
        let (length, has_parameters, has_keys) = match (self.is_client, self.written, self.read) {
            (true, 0, _) => (HELLOS[0], true, false),
            (true, 1, 1..) => (0, false, true),
            (true, 2, 2..) => (END, false, true),
            (false, 0, 1..) => (HELLOS[1], false, true),
            (false, 1, _) => (FLIGHT, true, true),
            _ => return false,
        };
        self.written += 1;
        if length > 0 {
            let own: &[u8] = if has_parameters { &self.parameters } else { &[] };
            let (end, length) = (out.len(), length.max(4 + own.len()));
            out.extend((length as u16).to_be_bytes());
            out.extend((own.len() as u16).to_be_bytes());
            out.extend(own);
            out.resize(end + length, 0);
        }
        has_keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_counts() {
        let packet = |payload: &[u8]| [payload, &tag(0, 7, b"head", payload)].concat();
        let good = packet(b"a payload of some bytes");
        assert_eq!(untagged(0, 7, b"head", &good), Some(23));
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(untagged(0, 7, b"head", &bad), None, "{bit}");
        }
        for (number, header) in [(8, &b"head"[..]), (7, b"heads"), (7, b"heaD")] {
            assert_eq!(untagged(0, number, header, &good), None, "{number}");
        }
        assert_eq!(untagged(0, 7, b"head", &good[..15]), None);
    }

    /// Messages come in pieces, and in order.
    #[test]
    fn a_handshake_has_four_messages() {
        let [mut client, mut server] =
            [(true, "one"), (false, "two")].map(|(c, own)| Handshake::new(c, own.into()));
        let mut pass = |writes: bool, keys: bool, length: usize| {
            let (from, to) =
                if writes { (&mut client, &mut server) } else { (&mut server, &mut client) };
            let mut message = Vec::new();
            assert_eq!((from.write(&mut message), message.len()), (keys, length));
            let (first, rest) = message.split_at(length / 2);
            to.read(first).or(to.read(rest))
        };
        assert_eq!(pass(true, false, 260), Some("one".into()));
        assert_eq!(pass(false, true, 90), None);
        assert_eq!(pass(false, true, 700), Some("two".into()));
        assert_eq!(pass(true, true, 0), None);
        assert_eq!(pass(true, true, 52), None);
        assert_eq!(pass(true, false, 0), None);
        assert!(!client.goes_on() && !server.goes_on() || server.read == 2);
    }
}
