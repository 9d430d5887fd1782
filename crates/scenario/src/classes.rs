//! A tree of classes of a queue: what each is sure of, and which packets are its own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use aqm::fair::htb::{Class, Rule};
use aqm::units::TextError;
use aqm::{Label, Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Complaint, meant};
use crate::parameter::Parameter;
use crate::text::{Quantity, Text};

/// A number or a range of numbers: `5`, `0..999` with both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// The first.
    pub from: u16,
    /// The last.
    pub to: u16,
}

impl FromStr for Numbers {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let range = from.trim().parse().ok().zip(to.trim().parse().ok());
        range.filter(|(from, to)| from <= to).map(|(from, to)| Self { from, to }).ok_or(TextError {
            allowed: "a number such as 5 or a range such as 0..999",
            hint: String::new(),
        })
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from == self.to {
            return write!(f, "{}", self.from);
        }
        write!(f, "{}..{}", self.from, self.to)
    }
}

impl Quantity for Numbers {
    const NAME: &'static str = "Numbers";
    const ABOUT: &'static str = "a number such as 5 or a range such as 0..999";
    const PATTERN: &'static str = r"^\d+(\.\.\d+)?$";
    const UNIT: bool = false;
}

/// Addresses that begin with the same bits: `192.0.2.0/24`, `2001:db8::/48`, or one address. Those of IPv4 stand
/// for IPv6 ones as RFC 4291 §2.5.5.2 maps them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Prefix {
    /// The first of them.
    pub first: u128,
    /// The last of them.
    pub last: u128,
}

impl Prefix {
    /// The addresses that have the first `length` bits of 128 in common with `address`.
    pub(crate) fn new(address: u128, length: u32) -> Self {
        let rest = u128::MAX.checked_shr(length).unwrap_or(0);
        Self { first: address & !rest, last: address | rest }
    }
}

impl FromStr for Prefix {
    type Err = TextError;
    fn from_str(text: &str) -> Result<Self, TextError> {
        let wrong = |hint: String| TextError {
            allowed: "an address or a prefix such as 192.0.2.7, 192.0.2.0/24, 2001:db8::/48",
            hint,
        };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| wrong(String::new()))?;
        let (bits, mapped) = match address {
            IpAddr::V4(v4) => (32, v4.to_ipv6_mapped()),
            IpAddr::V6(v6) => (128, v6),
        };
        let length = length.map_or(Some(bits), |length| length.trim().parse().ok());
        let Some(length) = length.filter(|length| *length <= bits) else {
            return Err(wrong(format!("0 … {bits} bits")));
        };
        let prefix = Self::new(mapped.into(), 128 - bits + length);
        if prefix.first != u128::from(mapped) {
            return Err(wrong(format!("{prefix} begins at its first address")));
        }
        Ok(prefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from(self.first);
        let length = (self.first ^ self.last).leading_zeros();
        match address.to_ipv4_mapped().filter(|_| length >= 96) {
            Some(v4) if length == 128 => write!(f, "{v4}"),
            Some(v4) => write!(f, "{v4}/{}", length - 96),
            None if length == 128 => write!(f, "{address}"),
            None => write!(f, "{address}/{length}"),
        }
    }
}

impl Quantity for Prefix {
    const NAME: &'static str = "Prefix";
    const ABOUT: &'static str = "an address or a prefix: 192.0.2.7, 192.0.2.0/24, 2001:db8::/48";
    const PATTERN: &'static str = r"^[0-9a-fA-F:.]+(/\d+)?$";
    const UNIT: bool = false;
}

/// What makes a class one of many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Each {
    /// One class for each sending host.
    Host,
    /// One class for each receiving host.
    Peer,
}

/// A class of a queue's tree. The first is the root; one without classes below it is a leaf, and has a
/// queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassSpec {
    /// Its name.
    pub name: String,
    /// The class above it, which stands before it; the first class has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The rate that it always gets.
    pub rate: Text<Rate>,
    /// The most that it gets, with what it borrows; its `rate` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceil: Option<Text<Rate>>,
    /// What it may send at once by its rate after a pause; 1600 B if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Text<Size>>,
    /// What it may send at once by its ceil; 1600 B if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cburst: Option<Text<Size>>,
    /// Of leaves that borrow, those with lower numbers go first, 0 … 7.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prio: u8,
    /// What it sends in its turn when it borrows. Without it a tenth of what its rate sends in a second,
    /// 1000 … 200 000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<Text<Size>>,
    /// Of a leaf: the sending hosts whose packets are its own, `5` or `0..999`, by `host` of `[[traffic]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Text<Numbers>>,
    /// Of a leaf: the receiving hosts, by `peer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Text<Numbers>>,
    /// Of a leaf: the codepoints, as numbers, by `dscp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Text<Numbers>>,
    /// Of a leaf in the gateway: the addresses of its customer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub address: Vec<Text<Prefix>>,
    /// It stands for many leaves: one for each number of `host` or of `peer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Each>,
    /// Of a leaf: its algorithm; that of the queue if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<String>,
    /// Its parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, Parameter>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(n: &u8) -> bool {
    *n == 0
}

/// Names for people: not all of a thousand.
pub(crate) fn some_of(names: &[&str]) -> String {
    const MOST: usize = 20;
    match names.len() {
        ..=MOST => names.join(", "),
        all => format!("{} and {} more", names[..MOST].join(", "), all - MOST),
    }
}

/// The classes of a tree as they are built: each, the entry of the file that it comes from, and its name; and the
/// rules.
pub(crate) struct Classes {
    pub(crate) classes: Vec<Class>,
    pub(crate) entries: Vec<usize>,
    pub(crate) names: Vec<String>,
    pub(crate) rules: Vec<(Rule, usize)>,
}

/// The most classes of a tree.
const MOST: usize = 20_000;
/// The longest name of a class, bytes.
const MOST_OF_NAME: usize = 64;

/// What the entries of a queue say; `within` makes the key of a complaint.
pub(crate) fn expand(
    specs: &[ClassSpec],
    within: impl Fn(usize, &str) -> String,
) -> Result<Classes, Complaint> {
    let (mut classes, mut entries) = (Vec::new(), Vec::new());
    let (mut names, mut rules) = (Vec::new(), Vec::new());
    let mut first = Vec::new();
    let parents: HashSet<_> = specs.iter().filter_map(|spec| spec.parent.as_deref()).collect();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let bytes = |n: usize, key: &str, size: Option<Text<Size>>, default: u32| match size {
        None => Ok(default),
        Some(Text(Size::Bytes(bytes @ 1..=1_000_000_000))) => Ok(bytes as u32),
        _ => Err(Complaint::new(within(n, key), "bytes: 1B … 1GB")),
    };
    for (n, spec) in specs.iter().enumerate() {
        let parent = match &spec.parent {
            None if n == 0 => None,
            None => {
                return Err(Complaint::wrong(
                    within(n, "parent"),
                    "missing: only the first has none",
                ));
            }
            Some(name) => match known.get(name.as_str()) {
                Some(&entry) if specs[entry].each.is_some() => {
                    let allowed =
                        "a class without each: one that stands for many leaves has none below it";
                    return Err(Complaint::new(within(n, "parent"), allowed));
                }
                Some(&entry) => Some(first[entry]),
                None => {
                    let before: Vec<&str> = specs[..n].iter().map(|spec| &spec.name[..]).collect();
                    let hint = meant(name, &before);
                    let allowed = format!("a class before it: {}", some_of(&before));
                    return Err(Complaint::new(within(n, "parent"), allowed).hint(hint));
                }
            },
        };
        // Names are printed to terminals.
        let shown = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ';
        if !(1..=MOST_OF_NAME).contains(&spec.name.len()) || !spec.name.chars().all(shown) {
            let allowed =
                format!("letters, digits, ASCII signs and spaces, 1 to {MOST_OF_NAME} bytes");
            return Err(Complaint::new(within(n, "name"), allowed));
        }
        if known.insert(spec.name.as_str(), n).is_some() {
            return Err(Complaint::new(within(n, "name"), "a name of its own"));
        }
        let rate = spec.rate.0;
        let ceil = spec.ceil.map_or(rate, |ceil| ceil.0);
        if ceil < rate {
            return Err(Complaint::new(within(n, "ceil"), format!("its rate of {rate} at least")));
        }
        if spec.prio > 7 {
            return Err(Complaint::new(within(n, "prio"), "0 … 7"));
        }
        let default = Class::new(parent, rate);
        let class = Class {
            ceil,
            burst: bytes(n, "burst", spec.burst, default.burst)?,
            cburst: bytes(n, "cburst", spec.cburst, default.cburst)?,
            prio: spec.prio,
            quantum: bytes(n, "quantum", spec.quantum, default.quantum)?,
            ..default
        };
        let ends = |key: &str, range: Option<Text<Numbers>>, most: u16| match range {
            Some(Text(range)) if range.to >= most => {
                Err(Complaint::new(within(n, key), format!("0 … {}", most - 1)))
            }
            range => Ok(range.map(|Text(range)| range.from..=range.to)),
        };
        let rule = Rule {
            host: ends("host", spec.host, Label::HOSTS)?,
            peer: ends("peer", spec.peer, Label::HOSTS)?,
            dscp: ends("dscp", spec.dscp, Label::CODEPOINTS.into())?
                .map(|range| *range.start() as u8..=*range.end() as u8),
        };
        let ruled = rule != Rule::default();
        let inner = parents.contains(spec.name.as_str());
        for (key, set) in [
            ("host", ruled),
            ("address", !spec.address.is_empty()),
            ("aqm", spec.aqm.is_some()),
            ("params", !spec.params.is_empty()),
        ] {
            if inner && set {
                return Err(Complaint::new(
                    within(n, key),
                    "only with a leaf: this class has others below it",
                ));
            }
        }
        first.push(classes.len());
        let of_each = match spec.each {
            None => vec![(spec.name.clone(), rule)],
            Some(each) => {
                let (key, range) = match each {
                    Each::Host => ("host", rule.host.clone()),
                    Each::Peer => ("peer", rule.peer.clone()),
                };
                let Some(range) = range else {
                    return Err(Complaint::wrong(
                        within(n, key),
                        format!("needed by each = \"{key}\""),
                    ));
                };
                let one = |number| {
                    let rule = match each {
                        Each::Host => Rule { host: Some(number..=number), ..rule.clone() },
                        Each::Peer => Rule { peer: Some(number..=number), ..rule.clone() },
                    };
                    (format!("{}[{number}]", spec.name), rule)
                };
                range.map(one).collect()
            }
        };
        for (name, rule) in of_each {
            if ruled {
                rules.push((rule, classes.len()));
            }
            classes.push(class.clone());
            entries.push(n);
            names.push(name);
        }
        if classes.len() > MOST {
            let key = if spec.each.is_some() { "each" } else { "name" };
            return Err(Complaint::new(within(n, key), format!("{MOST} classes at most")));
        }
    }
    Ok(Classes { classes, entries, names, rules })
}
