//! Quantities in scenario files: a text with a unit, in both directions.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::net::IpAddr;
use std::str::FromStr;

use aqm::units::TextError;
use aqm::{Duration, Rate, Size};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Separates what is allowed from the hint in a deserialization error's message.
pub(crate) const HINT: char = '\u{1f}';

/// Two values and no more: for tuples serde leaves out what follows.
struct Pair<A, B>(A, B);

impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Deserialize<'de> for Pair<A, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<A, B>(PhantomData<(A, B)>);

        impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> de::Visitor<'de> for Visitor<A, B> {
            type Value = Pair<A, B>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a pair of two values, each pair in brackets of its own")
            }

            fn visit_seq<S: de::SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
                let first =
                    seq.next_element()?.ok_or_else(|| de::Error::invalid_length(0, &self))?;
                let second =
                    seq.next_element()?.ok_or_else(|| de::Error::invalid_length(1, &self))?;
                match seq.next_element::<de::IgnoredAny>()? {
                    None => Ok(Pair(first, second)),
                    Some(_) => Err(de::Error::invalid_length(3, &self)),
                }
            }
        }
        deserializer.deserialize_seq(Visitor(PhantomData))
    }
}

/// A list of pairs.
pub(crate) fn pairs<'de, D, A, B, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    A: Deserialize<'de>,
    B: Deserialize<'de>,
    T: From<Vec<(A, B)>>,
{
    let all = Vec::<Pair<A, B>>::deserialize(deserializer)?;
    Ok(all.into_iter().map(|Pair(a, b)| (a, b)).collect::<Vec<_>>().into())
}

/// One pair, if there is one.
pub(crate) fn pair<'de, D, A>(deserializer: D) -> Result<Option<[A; 2]>, D::Error>
where
    D: Deserializer<'de>,
    A: Deserialize<'de>,
{
    Pair::<A, A>::deserialize(deserializer).map(|Pair(a, b)| Some([a, b]))
}

/// A quantity that is written as text.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Text<T>(pub T);

/// A quantity's description in a schema.
pub trait Quantity: FromStr<Err = TextError> + Display {
    /// Name in the schema.
    const NAME: &'static str;
    /// In words.
    const ABOUT: &'static str;
    /// Regular expression of what is accepted.
    const PATTERN: &'static str;
    /// Whether it has a unit.
    const UNIT: bool = true;
}

impl Quantity for Rate {
    const NAME: &'static str = "Rate";
    const ABOUT: &'static str = "a rate: 45mbit, 10Mbps, 1.25MB/s";
    const PATTERN: &'static str = r"^\d+(\.\d+)? ?([kKmMgGtT]?bit(/s)?|[KMGT]bps|[kMG]?B/s)$";
}

impl Quantity for Duration {
    const NAME: &'static str = "Duration";
    const ABOUT: &'static str = "a time: 20ms, 1.5s, 100us";
    const PATTERN: &'static str = r"^(0|\d+(\.\d+)? ?(ns|us|µs|usec|ms|msec|s|sec|min|h))$";
}

impl Quantity for Size {
    const NAME: &'static str = "Size";
    const ABOUT: &'static str = "a size: 200kB (1000), 200KiB (1024), 100p (packets), 1.5bdp";
    const PATTERN: &'static str = r"^\d+(\.\d+)? ?([kMG]?B|[KMG]iB|p|packets|%|bdp)$";
}

/// An instant, or a range from which each flow draws its own: `5s`, `0s..1s`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    /// The earliest.
    pub from: Duration,
    /// The latest.
    pub to: Duration,
}

impl FromStr for Span {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let span = Self { from: from.parse()?, to: to.parse()? };
        if span.from <= span.to {
            Ok(span)
        } else {
            Err(TextError {
                allowed: "an instant such as 5s or a range such as 0s..1s",
                hint: "the range ends before it begins".into(),
            })
        }
    }
}

impl Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.from)?;
        if self.to > self.from { write!(f, "..{}", self.to) } else { Ok(()) }
    }
}

impl Quantity for Span {
    const NAME: &'static str = "Span";
    const ABOUT: &'static str = "an instant, 5s, or a range to draw from, 0s..1s";
    const PATTERN: &'static str = r"^[0-9.]+ ?[a-zµ]*(\.\.[0-9.]+ ?[a-zµ]+)?$";
}

/// A codepoint of the DiffServ field, 0 … 63: `EF`, `AF41`, `CS1`, `LE`, `VA`, `46`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codepoint(pub u8);

impl FromStr for Codepoint {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let digit = |text: &str| text.parse::<u8>().ok();
        let assured = |digits: u8| (digits / 10, digits % 10);
        let number = match text.split_at_checked(2) {
            Some(("EF", "")) => Some(46),
            Some(("VA", "")) => Some(44),
            Some(("LE", "")) => Some(1),
            Some(("CS", class)) => digit(class).filter(|class| *class < 8).map(|class| 8 * class),
            Some(("AF", digits)) => match digit(digits).map(assured) {
                Some((class @ 1..=4, drop @ 1..=3)) => Some(8 * class + 2 * drop),
                _ => None,
            },
            _ => digit(text),
        };
        number
            .filter(|number| *number < 64)
            .map(Self)
            .ok_or_else(|| TextError { allowed: Self::ABOUT, hint: String::new() })
    }
}

impl Display for Codepoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            46 => f.write_str("EF"),
            44 => f.write_str("VA"),
            1 => f.write_str("LE"),
            n if n % 8 == 0 => write!(f, "CS{}", n / 8),
            n if n % 2 == 0 && (10..=38).contains(&n) => write!(f, "AF{}{}", n / 8, n % 8 / 2),
            n => write!(f, "{n}"),
        }
    }
}

impl Quantity for Codepoint {
    const NAME: &'static str = "Codepoint";
    const ABOUT: &'static str = "a DSCP: EF, AF41, CS1, LE, VA, or its number, 0 … 63, as text";
    const PATTERN: &'static str = r"^(EF|VA|LE|CS[0-7]|AF[1-4][1-3]|[0-9]|[1-5][0-9]|6[0-3])$";
    const UNIT: bool = false;
}

/// The addresses that begin with the same bits: `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether `address` is one of them; IPv4 addresses are mapped into IPv6.
    pub fn has(&self, address: &[u8; 16]) -> bool {
        let (own, bits) = match self.address {
            IpAddr::V4(own) => (own.to_ipv6_mapped(), 96 + self.bits),
            IpAddr::V6(own) => (own, self.bits),
        };
        let differing = own.to_bits() ^ u128::from_be_bytes(*address);
        differing.leading_zeros() >= u32::from(bits)
    }
}

impl FromStr for Network {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let refused = |hint: &str| TextError { allowed: Self::ABOUT, hint: hint.into() };
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.trim().parse().map_err(|_| refused(""))?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(all), |bits| bits.trim().parse().ok());
        let bits = bits.filter(|bits| *bits <= all);
        Ok(Self {
            address, bits: bits.ok_or_else(|| refused("the prefix is 0 … 32, or … 128"))?
        })
    }
}

impl Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Quantity for Network {
    const NAME: &'static str = "Network";
    const ABOUT: &'static str = "a network or an address: 192.0.2.0/24, 2001:db8::/32, 192.0.2.7";
    const PATTERN: &'static str = r"^[0-9a-fA-F.:]+(/[0-9]{1,3})?$";
    const UNIT: bool = false;
}

impl<'de, T: Quantity> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<T: Quantity> de::Visitor<'_> for Visitor<T> {
            type Value = Text<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(T::ABOUT)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
                text.parse()
                    .map(Text)
                    .map_err(|e: TextError| E::custom(format!("{}{HINT}{}", e.allowed, e.hint)))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text<T>, E> {
                self.visit_f64(number as f64)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Text<T>, E> {
                let hint = match T::UNIT {
                    true => "write it as text with its unit".into(),
                    false => format!("in quotes: \"{number}\""),
                };
                Err(E::custom(format!("{}{HINT}{hint}", T::ABOUT)))
            }
        }
        deserializer.deserialize_any(Visitor(std::marker::PhantomData))
    }
}

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<T: Quantity> JsonSchema for Text<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::NAME.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": T::ABOUT, "pattern": T::PATTERN})
    }
}
