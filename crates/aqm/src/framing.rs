//! What a packet takes on the wire beside its own bytes: headers of the layers below, padding, cells.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use crate::units::TextError;

/// Bytes beside a packet's own, which count for its time on the wire. The words and the numbers
/// of the presets are those of `tc cake`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Framing {
    /// Bytes beside those of the IP packet, −64 … 256; without it (`raw`) a packet counts as its
    /// interface counts it.
    pub overhead: Option<i32>,
    /// The least that is sent, bytes with the overhead, 0 … 256.
    pub mpu: u32,
    /// How that is cut.
    pub cells: Cells,
}

/// How frames are cut on a wire.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Cells {
    /// Not at all.
    #[default]
    None,
    /// Into ATM cells of 53 bytes with 48 of payload, the last one padded.
    Atm,
    /// One byte for every 64 begun (64b/65b of VDSL2).
    Ptm,
}

/// Name, overhead, least length and cells of each preset (tc-cake(8), "Overhead compensation").
const PRESETS: [(&str, i32, u32, Cells); 13] = [
    ("conservative", 48, 0, Cells::Atm),
    ("ipoa-vcmux", 8, 0, Cells::Atm),
    ("ipoa-llcsnap", 16, 0, Cells::Atm),
    ("bridged-vcmux", 24, 0, Cells::Atm),
    ("bridged-llcsnap", 32, 0, Cells::Atm),
    ("pppoa-vcmux", 10, 0, Cells::Atm),
    ("pppoa-llc", 14, 0, Cells::Atm),
    ("pppoe-vcmux", 32, 0, Cells::Atm),
    ("pppoe-llcsnap", 40, 0, Cells::Atm),
    ("pppoe-ptm", 30, 0, Cells::Ptm),
    ("bridged-ptm", 22, 0, Cells::Ptm),
    ("docsis", 18, 64, Cells::None),
    ("ethernet", 38, 84, Cells::None),
];

impl Framing {
    /// Bytes that a packet of `len` bytes takes on the wire: at least one.
    #[inline]
    pub fn on_wire(self, len: u32) -> u32 {
        let framed = len.saturating_add_signed(self.overhead.unwrap_or(0)).max(self.mpu).max(1);
        match self.cells {
            Cells::None => framed,
            Cells::Atm => framed.div_ceil(48) * 53,
            Cells::Ptm => framed + framed.div_ceil(64),
        }
    }
}

/// The range of `overhead`, as of `tc cake` (tc-cake(8)).
const OVERHEADS: RangeInclusive<i32> = -64..=256;

const ALLOWED: &str = "words of tc cake: a preset such as pppoe-ptm, bridged-llcsnap, docsis or \
                       ethernet, raw, overhead BYTES (-64 … 256), mpu BYTES (0 … 256), ether-vlan, \
                       atm, ptm, noatm";

impl FromStr for Framing {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let wrong = |hint: String| TextError { allowed: ALLOWED, hint };
        let mut new = Self::default();
        let mut words = text.split([' ', ',']).filter(|word| !word.is_empty()).peekable();
        if words.peek().is_none() {
            return Err(wrong(String::new()));
        }
        let number = |word: Option<&str>, range: RangeInclusive<i32>| {
            let number = word.and_then(|word| word.parse().ok()).filter(|n| range.contains(n));
            number
                .ok_or_else(|| wrong(format!("a number from {} to {}", range.start(), range.end())))
        };
        while let Some(word) = words.next() {
            if let Some(&(_, overhead, mpu, cells)) = PRESETS.iter().find(|p| p.0 == word) {
                new = Self { overhead: Some(overhead), mpu, cells };
                continue;
            }
            match word {
                "raw" => new = Self::default(),
                "overhead" => new.overhead = Some(number(words.next(), OVERHEADS)?),
                "mpu" => new.mpu = number(words.next(), 0..=256)?.unsigned_abs(),
                "ether-vlan" => new.overhead = Some(new.overhead.unwrap_or(0) + 4),
                "atm" => new.cells = Cells::Atm,
                "ptm" => new.cells = Cells::Ptm,
                "noatm" => new.cells = Cells::None,
                _ if word.parse::<i32>().is_ok() => {
                    new.overhead = Some(number(Some(word), OVERHEADS)?);
                }
                _ => {
                    let names: Vec<_> = PRESETS.iter().map(|p| p.0).collect();
                    return Err(wrong(format!("presets are {}", names.join(", "))));
                }
            }
        }
        if let Some(overhead) = new.overhead.filter(|overhead| !OVERHEADS.contains(overhead)) {
            return Err(wrong(format!("they make an overhead of {overhead} bytes")));
        }
        Ok(new)
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = match self.cells {
            Cells::None => "noatm",
            Cells::Atm => "atm",
            Cells::Ptm => "ptm",
        };
        if let Some(overhead) = self.overhead {
            write!(f, "overhead {overhead} ")?;
        }
        write!(f, "mpu {} {cells}", self.mpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn framing(text: &str) -> Framing {
        text.parse().unwrap()
    }

    /// 1500 bytes over PPPoE with LLC/SNAP are 1540, in 33 cells; with VC-MUX 1532 in 32. 48 bytes of
    /// payload fill a cell, one more begins another.
    #[test]
    fn cells_are_padded() {
        assert_eq!(framing("pppoe-llcsnap").on_wire(1500), 33 * 53);
        assert_eq!(framing("pppoe-vcmux").on_wire(1500), 32 * 53);
        let plain = framing("atm");
        assert_eq!([48, 49, 96].map(|len| plain.on_wire(len)), [53, 106, 106]);
    }

    #[test]
    fn ethernet_is_padded_and_vdsl_coded() {
        assert_eq!(framing("ethernet").on_wire(1500), 1538);
        assert_eq!(framing("ethernet").on_wire(40), 84);
        assert_eq!(framing("ethernet ether-vlan").on_wire(1500), 1542);
        assert_eq!(framing("docsis").on_wire(40), 64);
        assert_eq!(framing("pppoe-ptm").on_wire(1492), 1522 + 24);
    }

    #[test]
    fn words_are_read_and_written() {
        assert_eq!(framing("44"), framing("overhead 44 noatm"));
        assert_eq!(framing("overhead 44,mpu 64, ptm").to_string(), "overhead 44 mpu 64 ptm");
        assert_eq!(framing("docsis raw"), Framing::default());
        assert_eq!(framing("overhead -14").on_wire(100), 86);
        assert_eq!(framing("overhead -64").on_wire(40), 1, "else packets without end in no time");
        // As of tc cake, an overhead of 0 is one on IP packets; `raw`, `mpu` and cells alone are not.
        assert_ne!(framing("overhead 0"), framing("raw"));
        assert_eq!(framing("mpu 64 atm"), framing("docsis raw mpu 64 atm"));
        for text in PRESETS.iter().map(|p| p.0).chain(["raw", "0", "mpu 64 atm"]) {
            let new = framing(text);
            assert_eq!(new.to_string().parse(), Ok(new));
        }
        for wrong in [
            "",
            "pppoe",
            "overhead",
            "overhead 257",
            "overhead 256 ether-vlan",
            "overhead -65",
            "-65",
            "mpu -1",
            "1e3",
        ] {
            assert!(wrong.parse::<Framing>().is_err(), "{wrong}");
        }
    }
}
