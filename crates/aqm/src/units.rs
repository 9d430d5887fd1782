//! Quantities with units, and the one parser and printer of their text forms.
//!
//! | quantity | accepted | canonical |
//! |---|---|---|
//! | [`Rate`] | `45mbit`, `10Mbps`, `10Mbit/s`, `1.25MB/s` | `45mbit` |
//! | [`Duration`] | `20ms`, `1.5s`, `100us`, `7ns`, `2min`, `1h` | `20ms` |
//! | [`Size`] | `200kB` (1000), `200KiB` (1024), `1500B`, `100p` (packets), `20%` (of the buffer), `1.5bdp` | `200kB` |
//!
//! What means different things in different tools is refused with a hint: `kb` (1000 or 1024
//! bytes, or bits), all-lowercase `mbps` (`tc` reads it as bytes per second), bare numbers.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use crate::time::Duration;

/// A link's rate in bits per second, 1 bit/s … 18 Ebit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(u64);

impl Rate {
    /// More than any link has.
    pub(crate) const MAX: Self = Self(u64::MAX);

    /// `bits` bits per second; `None` for zero, which no link can have.
    pub const fn new(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// `mbit` megabits (10⁶) per second.
    ///
    /// # Panics
    /// When `mbit` is zero.
    pub const fn from_mbit(mbit: u64) -> Self {
        assert!(mbit > 0, "a rate is positive");
        Self(mbit * 1_000_000)
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Time to serialise `bytes`, rounded to the nearest nanosecond. (Links carry the remainder;
    /// algorithms use this.)
    pub fn transmission(self, bytes: u64) -> Duration {
        let ns = (u128::from(bytes) * 8_000_000_000 + u128::from(self.0 / 2)) / u128::from(self.0);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// An amount of queue, as it is written in a configuration.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// Packets of any length.
    Packets(u64),
    /// A fraction of the buffer; 0.2 is `20%`.
    OfBuffer(f64),
    /// Multiples of the bandwidth–delay product (rate × base round-trip time).
    Bdp(f64),
}

/// What a queue's length is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Measure {
    /// Packets, whatever their length.
    #[default]
    Packets,
    /// Bytes.
    Bytes,
}

/// The room of a buffer: packets and bytes, whichever is reached first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limit {
    packets: u32,
    bytes: u64,
}

impl Limit {
    /// No packet on a wire is shorter (an IPv4 header with eight bytes behind it): it bounds how
    /// many slots a byte-limited buffer needs.
    pub const MIN_PACKET: u64 = 28;
    /// More packets than any buffer holds.
    pub const MAX_PACKETS: u32 = 1 << 24;

    /// Room for more than any buffer holds.
    pub(crate) const UNBOUNDED: Self = Self { packets: u32::MAX, bytes: u64::MAX };

    /// Room for nothing.
    pub(crate) const NONE: Self = Self { packets: 0, bytes: 0 };

    /// Room for `packets` packets of any length. `None` outside 1 … 2²⁴.
    pub fn packets(packets: u64) -> Option<Self> {
        match u32::try_from(packets) {
            Ok(packets @ 1..=Self::MAX_PACKETS) => Some(Self { packets, bytes: u64::MAX }),
            _ => None,
        }
    }

    /// Room for `bytes` bytes. `None` when not even the shortest packet fits, or past 2²⁴ of them.
    pub fn bytes(bytes: u64) -> Option<Self> {
        Some(Self { bytes, ..Self::packets(bytes / Self::MIN_PACKET)? })
    }

    /// This room, and of that `bytes` at most.
    pub(crate) fn within(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.min(bytes), ..self }
    }

    /// The most packets that the buffer can hold.
    pub const fn max_packets(self) -> u32 {
        self.packets
    }

    /// The most bytes that the buffer can hold; `u64::MAX` when it is limited in packets.
    pub const fn max_bytes(self) -> u64 {
        self.bytes
    }

    /// What the buffer was limited in.
    pub const fn measure(self) -> Measure {
        if self.bytes == u64::MAX { Measure::Packets } else { Measure::Bytes }
    }

    /// The room in `measure`, translating between bytes and packets with `mean_packet` bytes.
    pub fn in_measure(self, measure: Measure, mean_packet: u32) -> f64 {
        match (self.measure(), measure) {
            (Measure::Packets, Measure::Packets) => f64::from(self.packets),
            (Measure::Packets, Measure::Bytes) => f64::from(self.packets) * f64::from(mean_packet),
            (Measure::Bytes, Measure::Bytes) => self.bytes as f64,
            (Measure::Bytes, Measure::Packets) => self.bytes as f64 / f64::from(mean_packet),
        }
    }
}

impl Size {
    /// The amount in `measure`, translating with `mean_packet` bytes a packet; `None` for
    /// [`Size::Bdp`], which needs a network to have a meaning.
    pub fn in_measure(self, measure: Measure, limit: Limit, mean_packet: u32) -> Option<f64> {
        let mean = f64::from(mean_packet);
        Some(match (self, measure) {
            (Self::Bytes(n), Measure::Bytes) => n as f64,
            (Self::Bytes(n), Measure::Packets) => n as f64 / mean,
            (Self::Packets(n), Measure::Packets) => n as f64,
            (Self::Packets(n), Measure::Bytes) => n as f64 * mean,
            (Self::OfBuffer(share), _) => share * limit.in_measure(measure, mean_packet),
            (Self::Bdp(_), _) => return None,
        })
    }
}

/// Why a text is not the quantity that was wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    /// What would have been right.
    pub allowed: &'static str,
    /// What to write instead, where it can be guessed; may be empty.
    pub hint: String,
}

impl TextError {
    fn new(allowed: &'static str) -> Self {
        Self { allowed, hint: String::new() }
    }

    /// For a text that is no number with a unit.
    fn unread(allowed: &'static str, text: &str) -> Self {
        let negative = text.trim_start().starts_with(['-', '−']);
        Self::hint(allowed, if negative { "it cannot be negative" } else { "" })
    }

    fn hint(allowed: &'static str, hint: &str) -> Self {
        Self { allowed, hint: hint.into() }
    }

    /// For a unit that there is not: the same number with the one that it stands for elsewhere.
    fn meant<T: FromStr>(
        allowed: &'static str,
        text: &str,
        unit: &str,
        known: &[(&str, &[&str])],
    ) -> Self {
        let number = text.trim().strip_suffix(unit).unwrap_or(text).trim_end();
        known
            .iter()
            .filter(|(ours, others)| {
                [ours].into_iter().chain(*others).any(|other| other.eq_ignore_ascii_case(unit))
            })
            .map(|(ours, _)| *ours)
            .filter(|ours| *ours != unit) // what is wrong with it is the number
            .map(|ours| format!("{number}{ours}"))
            .find(|meant| meant.parse::<T>().is_ok())
            .map_or_else(|| Self::new(allowed), |meant| Self::hint(allowed, &format!("{meant}?")))
    }
}

const RATE: &str = "a rate such as 45mbit, 10Mbps, 1.25MB/s";
const DURATION: &str = "a time such as 20ms, 1.5s, 100us";
const SIZE: &str =
    "a size such as 200kB, 200KiB, 1500B, 100p (packets), 20% (of the buffer), 1.5bdp";

/// Units of other programs, and what is not written as here; capitals do not count.
const RATES: [(&str, &[&str]); 9] = [
    ("bit", &["b", "b/s", "bits", "bits/s", "bit/sec"]),
    ("kbit", &["k", "kb", "kb/s", "kbits", "kbits/s", "kbit/sec"]),
    ("mbit", &["m", "mb", "mb/s", "mbits", "mbits/s", "mbit/sec"]),
    ("gbit", &["g", "gb", "gb/s", "gbits", "gbits/s", "gbit/sec"]),
    ("tbit", &["t", "tb", "tb/s", "tbits", "tbits/s", "tbit/sec"]),
    ("kB/s", &["kbyte/s", "kbytes/s", "kbyte", "kbytes"]),
    ("MB/s", &["mbyte/s", "mbytes/s", "mbyte", "mbytes"]),
    ("GB/s", &["gbyte/s", "gbytes/s", "gbyte", "gbytes"]),
    ("B/s", &["byte/s", "bytes/s"]),
];
const DURATIONS: [(&str, &[&str]); 6] = [
    ("ns", &["nsec", "nsecs", "nanoseconds"]),
    ("us", &["u", "usecs", "microseconds"]),
    ("ms", &["m", "msecs", "millis", "milliseconds"]),
    ("s", &["secs", "second", "seconds"]),
    ("min", &["mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
];
const SIZES: [(&str, &[&str]); 8] = [
    ("p", &["pkt", "pkts", "packet", "packets"]),
    ("bdp", &["bdps"]),
    ("B", &["byte", "bytes"]),
    ("KiB", &["ki"]),
    ("MiB", &["mi"]),
    ("kB", &["kbyte", "kbytes"]),
    ("MB", &["mbyte", "mbytes"]),
    ("GB", &["g", "gbyte", "gbytes"]),
];

/// Splits `45.5mbit` into an exact decimal (digits, decimals) and its unit.
fn split(text: &str) -> Option<(u128, u32, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.len() > 24 || fraction.contains('.') {
        return None;
    }
    let mut digits: u128 = 0;
    for b in whole.bytes().chain(fraction.bytes()) {
        digits = digits * 10 + u128::from(b - b'0');
    }
    Some((digits, fraction.len() as u32, unit.trim()))
}

/// digits · 10^-decimals · numerator / denominator, rounded to the nearest integer.
fn scaled(digits: u128, decimals: u32, numerator: u128, denominator: u128) -> Option<u64> {
    let below = 10u128.checked_pow(decimals)?.checked_mul(denominator)?;
    let above = digits.checked_mul(numerator)?;
    u64::try_from(above.checked_add(below / 2)? / below).ok()
}

fn real(digits: u128, decimals: u32) -> f64 {
    digits as f64 / libm::pow(10.0, f64::from(decimals))
}

impl FromStr for Rate {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let err = || TextError::unread(RATE, text);
        let (digits, decimals, unit) = split(text).ok_or_else(err)?;
        let multiple: u128 = match unit {
            "bit" | "bit/s" => 1,
            "kbit" | "kbit/s" | "Kbit" | "Kbit/s" | "Kbps" => 1_000,
            "mbit" | "mbit/s" | "Mbit" | "Mbit/s" | "Mbps" => 1_000_000,
            "gbit" | "gbit/s" | "Gbit" | "Gbit/s" | "Gbps" => 1_000_000_000,
            "tbit" | "tbit/s" | "Tbit" | "Tbit/s" | "Tbps" => 1_000_000_000_000,
            "B/s" => 8,
            "kB/s" => 8_000,
            "MB/s" => 8_000_000,
            "GB/s" => 8_000_000_000,
            "bps" | "kbps" | "mbps" | "gbps" | "tbps" => {
                return Err(TextError::hint(
                    RATE,
                    "tc reads a lowercase bps as bytes per second: write mbit for bits, MB/s for bytes",
                ));
            }
            "" => return Err(TextError::hint(RATE, "add the unit, for example 45mbit")),
            // Bytes by its capital, and bits by what most who write it mean: an eighth, or not.
            "KB" | "MB" | "GB" | "kB" | "B" => {
                let number = text.trim().strip_suffix(unit).unwrap_or(text).trim_end();
                let prefix = unit.trim_end_matches('B').to_ascii_lowercase();
                let bytes = if unit == "KB" { "kB" } else { unit };
                let hint = format!("{number}{prefix}bit for bits, or {number}{bytes}/s for bytes?");
                return Err(TextError::hint(RATE, &hint));
            }
            _ => return Err(TextError::meant::<Self>(RATE, text, unit, &RATES)),
        };
        scaled(digits, decimals, multiple, 1)
            .and_then(Self::new)
            .ok_or_else(|| TextError::hint(RATE, "a rate is at least 1bit"))
    }
}

impl FromStr for Duration {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let err = || TextError::unread(DURATION, text);
        let (digits, decimals, unit) = split(text).ok_or_else(err)?;
        let ns: u128 = match unit {
            "ns" => 1,
            "us" | "µs" | "usec" => 1_000,
            "ms" | "msec" => 1_000_000,
            "s" | "sec" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if digits == 0 => 1,
            "" => return Err(TextError::hint(DURATION, "add the unit, for example 20ms")),
            _ => return Err(TextError::meant::<Self>(DURATION, text, unit, &DURATIONS)),
        };
        scaled(digits, decimals, ns, 1)
            .map(Self::from_nanos)
            .ok_or_else(|| TextError::hint(DURATION, "a time is below 585 years"))
    }
}

impl FromStr for Size {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let err = || TextError::unread(SIZE, text);
        let (digits, decimals, unit) = split(text).ok_or_else(err)?;
        let bytes: u128 = match unit {
            "p" | "packets" if decimals == 0 => {
                return u64::try_from(digits).map(Self::Packets).map_err(|_| err());
            }
            "%" => return Ok(Self::OfBuffer(real(digits, decimals) / 100.0)),
            "bdp" => return Ok(Self::Bdp(real(digits, decimals))),
            "B" => 1,
            "kB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "b" | "k" | "kb" | "m" | "mb" | "K" | "KB" | "Kb" | "Mb" => {
                return Err(TextError::hint(
                    SIZE,
                    "tools disagree on this unit: write kB for 1000 bytes, KiB for 1024 (and mbit for bits)",
                ));
            }
            "" => return Err(TextError::hint(SIZE, "add the unit, for example 200kB or 100p")),
            _ => return Err(TextError::meant::<Self>(SIZE, text, unit, &SIZES)),
        };
        scaled(digits, decimals, bytes, 1).map(Self::Bytes).ok_or_else(err)
    }
}

/// Writes `n` with the largest decimal prefix that leaves an integer.
fn with_prefix(f: &mut fmt::Formatter<'_>, n: u64, units: [&str; 4]) -> fmt::Result {
    match n {
        0 => write!(f, "0{}", units[0]),
        n if n % 1_000_000_000 == 0 => write!(f, "{}{}", n / 1_000_000_000, units[3]),
        n if n % 1_000_000 == 0 => write!(f, "{}{}", n / 1_000_000, units[2]),
        n if n % 1_000 == 0 => write!(f, "{}{}", n / 1_000, units[1]),
        n => write!(f, "{n}{}", units[0]),
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_prefix(f, self.0, ["bit", "kbit", "mbit", "gbit"])
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(n) => with_prefix(f, n, ["B", "kB", "MB", "GB"]),
            Self::Packets(n) => write!(f, "{n}p"),
            Self::OfBuffer(share) => {
                // A hundredfold may pick up noise in the last digit: 0.07 · 100 = 7.000000000000001.
                let percent = libm::round(share * 1e8) / 1e6;
                write!(f, "{percent}%")
            }
            Self::Bdp(multiple) => write!(f, "{multiple}bdp"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn rates() {
        for (text, bits) in [
            ("45mbit", 45_000_000),
            ("10Mbps", 10_000_000),
            ("10 Mbit/s", 10_000_000),
            ("1.25MB/s", 10_000_000),
            ("0.16mbit", 160_000),
            ("100gbit", 100_000_000_000),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().bits_per_second(), bits, "{text}");
        }
        for text in ["", "mbit", "-1mbit", "0mbit", "1e3mbit", "nan", "1.2.3mbit", "45"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        assert!("10mbps".parse::<Rate>().unwrap_err().hint.contains("bytes per second"));
        assert_eq!(Rate::from_mbit(45).to_string(), "45mbit");
    }

    #[test]
    fn sizes() {
        assert_eq!("200kB".parse(), Ok(Size::Bytes(200_000)));
        assert_eq!("200KiB".parse(), Ok(Size::Bytes(204_800)));
        assert_eq!("100p".parse(), Ok(Size::Packets(100)));
        assert_eq!("20%".parse(), Ok(Size::OfBuffer(0.2)));
        assert_eq!("1.5bdp".parse(), Ok(Size::Bdp(1.5)));
        assert!("200kb".parse::<Size>().unwrap_err().hint.contains("KiB"));
        assert!("1.5p".parse::<Size>().is_err());
        for text in ["200kB", "1500B", "100p", "20%", "7%", "1.5bdp"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn durations() {
        assert_eq!("1.5s".parse(), Ok(Duration::from_millis(1500)));
        assert_eq!("100us".parse(), Ok(Duration::from_micros(100)));
        assert_eq!("0".parse(), Ok(Duration::ZERO));
        assert!("20".parse::<Duration>().unwrap_err().hint.contains("20ms"));
        assert!("99999999999999h".parse::<Duration>().is_err());
    }

    #[test]
    fn units_of_other_programs_get_what_was_probably_meant() {
        fn hint<T: FromStr<Err = TextError>>(text: &str) -> String {
            text.parse::<T>().err().unwrap().hint
        }
        for (text, meant) in [
            ("10mb", "10mbit?"),
            ("10m", "10mbit?"),
            ("10 Mb/s", "10mbit?"),
            ("10MB", "10mbit for bits, or 10MB/s for bytes?"),
            ("1.5 KB", "1.5kbit for bits, or 1.5kB/s for bytes?"),
            ("1.5 gb", "1.5gbit?"),
            ("10000kb", "10000kbit?"),
            ("10MBytes/s", "10MB/s?"),
            ("10Mbyte", "10MB/s?"),
            ("10MBIT", "10mbit?"),
            ("10apples", ""),
            ("0mb", ""),
        ] {
            assert_eq!(hint::<Rate>(text), meant, "{text}");
        }
        for (text, meant) in
            [("10 seconds", "10s?"), ("10MS", "10ms?"), ("5mins", "5min?"), ("10x", "")]
        {
            assert_eq!(hint::<Duration>(text), meant, "{text}");
        }
        for (text, meant) in [("100pkts", "100p?"), ("100PACKETS", "100p?")] {
            assert_eq!(hint::<Size>(text), meant, "{text}");
        }
        assert_eq!(hint::<Size>("64kbytes"), "64kB?");
        for text in ["1.5p", "1.5 PKTS"] {
            assert_eq!(hint::<Size>(text), "", "{text}");
        }
    }

    #[test]
    fn transmission_rounds_to_the_nearest_nanosecond() {
        // 8000 bit / 45 Mbit/s = 177 777.8 ns
        assert_eq!(Rate::from_mbit(45).transmission(1000).as_nanos(), 177_778);
    }

    #[test]
    fn a_buffer_holds_at_least_one_packet_and_a_bounded_number() {
        assert!(Limit::packets(0).is_none());
        assert!(Limit::bytes(27).is_none());
        assert!(Limit::packets(1 << 25).is_none());
        assert_eq!(Limit::bytes(100_000).unwrap().max_packets(), 3571);
    }
}
