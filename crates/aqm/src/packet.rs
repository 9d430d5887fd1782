//! What a queue discipline may know of a packet.

use alloc::format;
use alloc::string::String;

use crate::param::{Kind, Value};
use crate::time::Instant;
use crate::units::TextError;

/// The two ECN bits of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: a congestion signal is a drop.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint 01 (L4S, RFC 9331).
    Ect1 = 1,
    /// ECN-capable, codepoint 10.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The codepoint that a sender sets: [`Ecn::Ect0`] on what is ECN-capable.
    pub const fn ect(capable: bool) -> Self {
        if capable { Self::Ect0 } else { Self::NotEct }
    }

    /// Whether a congestion signal can be a mark on this packet.
    pub const fn capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Some values of the DS field, the eight bits of DSCP and ECN: those that have `value` under `mask`. Its text is
/// that of `tc`, `0x1/0x3`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DsField {
    value: u8,
    mask: u8,
}

impl DsField {
    /// Whether a packet is among them.
    pub const fn matches(self, packet: &Meta) -> bool {
        let field = packet.flow.label().dscp << 2 | packet.ecn as u8;
        field & self.mask == self.value
    }
}

impl Value for DsField {
    const KIND: Kind = Kind::DsField;

    fn read(text: &str) -> Result<Self, TextError> {
        let byte = |text: &str| match text.trim().strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => text.trim().parse().ok(),
        };
        let (value, mask) = text
            .split_once('/')
            .and_then(|(value, mask)| byte(value).zip(byte(mask)))
            .filter(|(value, mask)| *mask != 0 && value & mask == *value)
            .ok_or_else(|| TextError {
                allowed: "VALUE/MASK of eight bits, such as 0x1/0x3: MASK not 0, no bit of VALUE outside MASK",
                hint: "0x1/0x3 is ECT(1), 0xb8/0xfc the DSCP EF".into(),
            })?;
        Ok(Self { value, mask })
    }

    fn show(&self) -> String {
        format!("{:#x}/{:#x}", self.value, self.mask)
    }
}

/// Identity of a flow. In the gateway a keyed hash of the 5-tuple, in the simulator the flow's
/// number; algorithms that hash flows use their own secret key on top.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FlowKey(pub u64);

/// What a packet's header tells beside its flow. It stands in the [`FlowKey`], so that disciplines
/// that ask for none of it pay nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Label {
    /// The codepoint of the DiffServ field, 0 … 63 (RFC 2474).
    pub dscp: u8,
    /// The host that sends, 0 … [`Label::HOSTS`] − 1.
    pub host: u16,
    /// The host that it sends to, in the same range.
    pub peer: u16,
}

impl Label {
    /// As many hosts can be told apart on either side.
    pub const HOSTS: u16 = 1 << 13;
    /// As many codepoints there are.
    pub const CODEPOINTS: u8 = 1 << 6;
    /// The bits of a key that tell the codepoint, the sender, its peer.
    pub const FIELDS: [u64; 3] = [0x3f << 58, 0x1fff << 45, 0x1fff << 32];
}

impl FlowKey {
    /// The key of a flow with a label, of which what is out of range is cut off.
    pub const fn labelled(flow: u32, label: Label) -> Self {
        let Label { dscp, host, peer } = label;
        let (host, peer) = (host % Label::HOSTS, peer % Label::HOSTS);
        Self((dscp as u64) << 58 | (host as u64) << 45 | (peer as u64) << 32 | flow as u64)
    }

    /// The label of a key that was made with one.
    pub const fn label(self) -> Label {
        let [dscp, host, peer] = [self.0 >> 58, self.0 >> 45, self.0 >> 32];
        let hosts = Label::HOSTS as u64;
        Label { dscp: dscp as u8, host: (host % hosts) as u16, peer: (peer % hosts) as u16 }
    }

    /// The key without the codepoint, for hashes that keep the packets of a flow together.
    #[must_use]
    pub const fn without_codepoint(self) -> Self {
        Self(self.0 & !Label::FIELDS[0])
    }

    /// As many classes of a tree can be told apart.
    pub const CLASSES: u16 = 1 << 15;
    const CLASS_AT: u32 = 17;

    /// The key of a flow in a class, whose number takes the place of the upper 15 of the flow's 32 bits;
    /// what is out of range is cut off.
    #[must_use]
    pub const fn in_class(self, class: u16) -> Self {
        let field = (Self::CLASSES as u64 - 1) << Self::CLASS_AT;
        Self(self.0 & !field | (class as u64) << Self::CLASS_AT & field)
    }

    /// The class of a key that was made with one.
    pub const fn class(self) -> u16 {
        (self.0 >> Self::CLASS_AT) as u16 % Self::CLASSES
    }
}

/// What a segment of TCP acknowledges, as far as a filter of acknowledgements has to know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Ack {
    number: u32,
    flags: u8,
}

impl Ack {
    /// What is no acknowledgement.
    pub const NONE: Self = Self { number: 0, flags: 0 };
    const ACK: u8 = 1;
    const BARE: u8 = 2;
    const ECN: u8 = 12;

    /// A segment that acknowledges all before `number`. `ecn`: its flags ECE and CWR. `bare`: nothing
    /// else would be lost with it, neither data nor other flags nor SACK blocks.
    pub const fn new(number: u32, ecn: [bool; 2], bare: bool) -> Self {
        let bare = if bare { Self::BARE } else { 0 };
        Self { number, flags: Self::ACK | bare | (ecn[0] as u8) << 2 | (ecn[1] as u8) << 3 }
    }

    /// As it is written into a recording.
    pub const fn to_bytes(self) -> [u8; 5] {
        let [a, b, c, d] = self.number.to_le_bytes();
        [a, b, c, d, self.flags]
    }

    /// What [`Ack::to_bytes`] wrote.
    pub const fn from_bytes([a, b, c, d, flags]: [u8; 5]) -> Self {
        Self { number: u32::from_le_bytes([a, b, c, d]), flags }
    }

    /// Whether it is one.
    pub const fn is_some(self) -> bool {
        self.flags & Self::ACK != 0
    }

    /// Whether `later`, which came behind it in the same flow, says all that it says but for ECN. One
    /// with the same number does not: the sender counts duplicates. Nor does one with a lower number,
    /// which was overtaken on its way. Numbers wrap (RFC 9293 §3.4).
    pub const fn is_told_by(self, later: Self) -> bool {
        let further = later.number.wrapping_sub(self.number) as i32;
        later.is_some() && self.flags & Self::BARE != 0 && further > 0
    }

    /// Whether both say the same of ECN.
    pub const fn same_ecn(self, other: Self) -> bool {
        (self.flags ^ other.flags) & Self::ECN == 0
    }
}

/// A packet as a queue sees it. The payload stays opaque.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Meta {
    /// When it arrived at this queue. Set by the queue.
    pub arrived: Instant,
    /// The flow that it belongs to.
    pub flow: FlowKey,
    /// Length on the wire in bytes.
    pub len: u32,
    /// ECN codepoint; a queue that marks sets [`Ecn::Ce`].
    pub ecn: Ecn,
}

/// What a queue carries for its user: a small handle or record.
pub trait Carried: Copy + Default {
    /// What the packet acknowledges, for queues that filter acknowledgements.
    fn ack(&self) -> Ack {
        Ack::NONE
    }
}

impl Carried for () {}
impl Carried for u32 {}
impl Carried for u64 {}
impl Carried for usize {}

const _: () = assert!(size_of::<Meta>() == 24, "a packet's metadata stays at three words");

#[cfg(test)]
mod tests {
    use super::*;

    /// ECT(1); EF, DSCP 46, with any ECN; EF with ECT(0); any ECT(0) or CE.
    #[test]
    fn a_ds_field_has_the_codepoint_above_the_ecn_bits() {
        let packet = |dscp, ecn| {
            let label = Label { dscp, host: 5, peer: 7 };
            Meta { flow: FlowKey::labelled(9, label), ecn, ..Meta::default() }
        };
        let packets = [(0, Ecn::Ect1), (46, Ecn::Ect1), (46, Ecn::Ect0), (1, Ecn::Ce)];
        for (text, matches) in [
            ("0x1/0x3", [true, true, false, false]),
            ("0xb8/0xfc", [false, true, true, false]),
            ("186/255", [false, false, true, false]),
            (" 2 / 0x2", [false, false, true, true]),
        ] {
            let field = DsField::read(text).unwrap();
            assert_eq!(
                packets.map(|(dscp, ecn)| field.matches(&packet(dscp, ecn))),
                matches,
                "{text}"
            );
            assert_eq!(DsField::read(&field.show()).unwrap(), field);
        }
        for wrong in ["", "1", "1/", "0x1/0x2", "0/0", "256/256", "0x1/0x3/0x3", "-1/3", "0x/0x3"] {
            assert!(DsField::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_label_stands_in_the_key_beside_the_flow() {
        let last = Label { dscp: 63, host: Label::HOSTS - 1, peer: Label::HOSTS - 1 };
        for label in [
            Label::default(),
            Label { dscp: 46, ..Label::default() },
            Label { host: 8191, ..Label::default() },
            Label { peer: 4097, ..Label::default() },
            last,
        ] {
            let key = FlowKey::labelled(u32::MAX, label);
            assert_eq!((key.label(), key.0 as u32), (label, u32::MAX));
        }
        assert_eq!(FlowKey(7).label(), Label::default());
        for class in [0, 1, FlowKey::CLASSES - 1] {
            let key = FlowKey::labelled(u32::MAX, last).in_class(class);
            assert_eq!((key.label(), key.class(), key.0 as u32 & 0x1ffff), (last, class, 0x1ffff));
        }
        assert_eq!(Label::FIELDS.iter().sum::<u64>(), FlowKey::labelled(0, last).0);
    }
}
