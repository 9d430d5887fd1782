//! The way to a transport header, from the outside in: which headers stand before it, and whether they
//! lead there exactly.

use crate::frame::{Layer, Network, network};

/// Protocol numbers.
pub(super) const HOP_BY_HOP: u8 = 0;
pub(super) const IPV4: u8 = 4;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const IPV6: u8 = 41;
pub(super) const ROUTING: u8 = 43;
pub(super) const GRE: u8 = 47;
pub(super) const DESTINATION: u8 = 60;
pub(super) const SCTP: u8 = 132;

/// A header before the transport header that differs from packet to packet, and where it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    V4(usize),
    V6(usize),
    /// That of a tunnel, with the IP header before it.
    Udp(usize, Ip),
    /// With a checksum.
    Gre(usize),
    /// PPPoE.
    Ppp(usize),
}

/// An IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip {
    pub(super) at: usize,
    pub(super) v4: bool,
}

impl From<Network> for Ip {
    fn from(network: Network) -> Self {
        match network {
            Network::V4(at) => Self { at, v4: true },
            Network::V6(at) => Self { at, v4: false },
        }
    }
}

/// What is before a transport header, from the outside in.
#[derive(Debug)]
pub(super) struct Way {
    parts: [Part; MOST_PARTS],
    count: usize,
    /// The last IP header.
    pub(super) ip: Ip,
}

/// The most headers on a way: two tunnels, one in the other, of any kind.
pub(super) const MOST_PARTS: usize = 6;

impl Way {
    /// The way to the transport header of `protocol` at `end`, if there is one that ends there.
    pub(super) fn new(frame: &[u8], layer: Layer, end: usize, protocol: u8) -> Option<Self> {
        let ip = Ip::from(network(frame, layer)?);
        let mut way = Self { parts: [Part::Gre(0); MOST_PARTS], count: 0, ip };
        if layer == Layer::Ethernet && matches!(word(frame, ip.at - 2)?, 0x0021 | 0x0057) {
            way.add(Part::Ppp(ip.at - 8))?;
        }
        loop {
            way.add(if way.ip.v4 { Part::V4(way.ip.at) } else { Part::V6(way.ip.at) })?;
            let (next, at) = behind(frame, way.ip)?;
            if at >= end {
                return (at == end && next == protocol).then_some(way);
            }
            let outer = way.ip;
            way.ip = match next {
                IPV4 => Ip { at, v4: true },
                IPV6 => Ip { at, v4: false },
                GRE => {
                    if word(frame, at)? & GRE_CHECKSUM != 0 {
                        way.add(Part::Gre(at))?;
                    }
                    in_gre(frame, at)?
                }
                UDP => {
                    way.add(Part::Udp(at, outer))?;
                    in_udp(frame, at + 8)?
                }
                _ => return None,
            };
            // Bytes that only look like a header do not tell how much is left.
            if carried(frame, way.ip)? != frame.len() {
                return None;
            }
        }
    }

    fn add(&mut self, part: Part) -> Option<()> {
        *self.parts.get_mut(self.count)? = part;
        self.count += 1;
        Some(())
    }

    /// From the inside out.
    pub(super) fn back(&self) -> impl Iterator<Item = Part> {
        self.parts[..self.count].iter().rev().copied()
    }

    /// Where the packet ends, by its last IP header, in `frame`.
    pub(super) fn end(&self, frame: &[u8]) -> usize {
        carried(frame, self.ip).unwrap_or_default()
    }
}

pub(super) fn word(frame: &[u8], at: usize) -> Option<u16> {
    let two = frame.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

/// Where a packet ends by its IP header.
pub(super) fn carried(frame: &[u8], ip: Ip) -> Option<usize> {
    Some(match ip.v4 {
        true => ip.at + usize::from(word(frame, ip.at + 2)?),
        false => ip.at + 40 + usize::from(word(frame, ip.at + 4)?),
    })
}

/// The protocol after an IP header and its extensions, and where it begins. Nothing for fragments, and where
/// it is unknown.
pub(super) fn behind(frame: &[u8], ip: Ip) -> Option<(u8, usize)> {
    let version = *frame.get(ip.at)? >> 4;
    if ip.v4 {
        let header = usize::from(frame[ip.at] & 15) * 4;
        let whole = word(frame, ip.at + 6)? & 0x3fff == 0;
        let sound = version == 4 && header >= 20 && whole;
        return sound.then_some((*frame.get(ip.at + 9)?, ip.at + header));
    }
    let (mut next, mut at) = (*frame.get(ip.at + 6)?, ip.at + 40);
    for _ in 0..crate::frame::MAX_EXTENSIONS {
        if !matches!(next, HOP_BY_HOP | ROUTING | DESTINATION) {
            break;
        }
        // A jumbogram's length stands there, too (RFC 2675).
        if next == HOP_BY_HOP && *frame.get(at + 2)? == 0xc2 {
            return None;
        }
        next = *frame.get(at)?;
        at += (usize::from(*frame.get(at + 1)?) + 1) * 8;
    }
    (version == 6).then_some((next, at))
}

/// What GRE carries (RFC 2784, RFC 2890): IP, or Ethernet with IP. Without sequence numbers, which
/// would have to go on from one packet to the next.
pub(super) fn in_gre(frame: &[u8], at: usize) -> Option<Ip> {
    let (flags, kind) = (word(frame, at)?, word(frame, at + 2)?);
    if flags & !(GRE_CHECKSUM | GRE_KEY) != 0 {
        return None;
    }
    let optional = [GRE_CHECKSUM, GRE_KEY].into_iter().filter(|flag| flags & flag != 0);
    of_type(frame, kind, at + 4 + 4 * optional.count())
}

pub(super) const GRE_CHECKSUM: u16 = 0x8000;
pub(super) const GRE_KEY: u16 = 0x2000;

/// What a tunnel in UDP carries: VXLAN (RFC 7348), Geneve (RFC 8926), GUE (`draft-ietf-intarea-gue`)
/// or IP itself; they are told apart by their first bytes, since ports are a matter of configuration.
pub(super) fn in_udp(frame: &[u8], at: usize) -> Option<Ip> {
    let (first, second) = (*frame.get(at)?, *frame.get(at + 1)?);
    match (first >> 4, second, word(frame, at + 2)?) {
        (4 | 6, ..) => Some(Ip { at, v4: first >> 4 == 4 }),
        (0..4, _, kind @ (TRANSPARENT_ETHERNET | 0x0800 | 0x86dd)) => {
            of_type(frame, kind, at + 8 + 4 * usize::from(first & 0x3f))
        }
        (0 | 1, IPV4 | IPV6, _) => {
            let inner = at + 4 + 4 * usize::from(first & 0x1f);
            Some(Ip { at: inner, v4: second == IPV4 })
        }
        _ if first & 0x08 != 0 => of_type(frame, TRANSPARENT_ETHERNET, at + 8),
        _ => None,
    }
}

pub(super) const TRANSPARENT_ETHERNET: u16 = 0x6558;

/// What begins at `at` by its Ethernet type: IP, or Ethernet with IP.
pub(super) fn of_type(frame: &[u8], kind: u16, at: usize) -> Option<Ip> {
    match kind {
        0x0800 | 0x86dd => Some(Ip { at, v4: kind == 0x0800 }),
        TRANSPARENT_ETHERNET => {
            let inner = Ip::from(network(frame.get(at..)?, Layer::Ethernet)?);
            let found = Ip { at: at + inner.at, ..inner };
            // Not behind PPPoE or labels.
            matches!(word(frame, found.at - 2)?, 0x0800 | 0x86dd).then_some(found)
        }
        _ => None,
    }
}
