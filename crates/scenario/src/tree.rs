//! A tree of classes in a file of its own, for real packets: their addresses name their classes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aqm::fair::htb::{Class, Sorting};
use aqm::units::Size;
use aqm::{About, AnyQdisc, CATALOG, Carried, Env, Rate, Rng, any};
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, Deserializer};

use crate::classes::{ClassSpec, Prefix, some_of};
use crate::error::{Complaint, ScenarioError, meant};
use crate::meant;
use crate::parameter::Parameter;
use crate::queue::{QueueSpec, complaint, pairs, texts};
use crate::text::Text;
use crate::traffic::keys_of;

/// The file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSpec {
    /// The leaf of the packets that have no address of another one.
    #[serde(default)]
    pub default: String,
    /// The classes, as in the queue of a scenario, but with `address` in place of `host`, `peer`, `dscp` and
    /// `each`.
    #[serde(default)]
    pub class: Vec<ClassSpec>,
    #[serde(skip)]
    classes: Vec<Class>,
    #[serde(skip)]
    addresses: Addresses,
    #[serde(skip)]
    source: Source,
}

/// Where a tree was read, for errors alone: trees are the same wherever they come from.
#[derive(Clone, Default, Debug)]
struct Source {
    file: String,
    text: String,
}

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl TreeSpec {
    /// Reads it. `file` names the text in errors.
    ///
    /// # Errors
    /// See [`ScenarioError`].
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let toml = |e| ScenarioError::from_toml(&e, text, file);
        let root = DeTable::parse(text).map_err(toml)?;
        let read = Self::deserialize(Deserializer::from(root)).map_err(toml);
        let mut tree = read.map_err(|error| meant::hinted(error, text, places))?;
        tree.source = Source { file: file.into(), text: text.into() };
        tree.check().map_err(|c| tree.refused(c)).map(|()| tree)
    }

    /// The name and the text that it was read from.
    pub fn source(&self) -> [&str; 2] {
        [&self.source.file, &self.source.text]
    }

    /// A complaint about one of its keys, with its file, line and value.
    pub fn refused(&self, complaint: Complaint) -> ScenarioError {
        ScenarioError::from_complaint(complaint, &self.source.text, &self.source.file)
    }

    /// The file, with the defaults of disciplines.
    pub fn to_toml(&self) -> String {
        // Strings, numbers, and tables with string keys: nothing that TOML could refuse.
        toml::to_string(self).unwrap_or_default()
    }

    /// Checks what the types alone cannot, and writes out the defaults of disciplines.
    fn check(&mut self) -> Result<(), Complaint> {
        if self.class.is_empty() {
            let missing = Complaint::wrong("class", "missing");
            return Err(missing.allowed("[[class]], the root first"));
        }
        for (n, class) in self.class.iter().enumerate() {
            for (key, given) in [
                ("host", class.host.is_some()),
                ("peer", class.peer.is_some()),
                ("dscp", class.dscp.is_some()),
                ("each", class.each.is_some()),
            ] {
                if given {
                    let only = Complaint::wrong(format!("class[{n}].{key}"), "only in a scenario");
                    return Err(only.hint("address = [\"192.0.2.0/24\", \"2001:db8::/48\"]"));
                }
            }
        }
        let mut queue = self.queue("droptail", &[]);
        queue.check(0).map_err(own)?;
        self.classes = queue.classes(0).map_err(own)?.classes;
        self.class = queue.class;
        self.addresses = self.sorted()?;
        Ok(())
    }

    /// The queue with these classes. Leaves without an algorithm have `aqm` with `params`.
    fn queue(&self, aqm: &str, params: &[(String, String)]) -> QueueSpec {
        let text = |(name, text): &(String, String)| (name.clone(), Parameter::Text(text.clone()));
        QueueSpec {
            class: self.class.clone(),
            ..QueueSpec::new(aqm, Text(Size::Packets(1)), params.iter().map(text).collect())
        }
    }

    /// The queue, empty. Each leaf has the room of `env`, and without an algorithm of its own `aqm` with `params`.
    ///
    /// # Errors
    /// See [`ScenarioError`].
    pub fn build<P: Carried>(
        &self,
        aqm: &str,
        params: &[(String, String)],
        env: &Env,
        rng: &mut Rng,
    ) -> Result<AnyQdisc<P>, ScenarioError> {
        let tree = self.queue(aqm, params).tree(0, Some(Sorting::Keys), env, rng);
        tree.map_err(|c| self.refused(own(c)))
    }

    /// Whether each leaf's discipline fits the rate of its class, the ceil or that of the link if it is less; and if
    /// they are `tuned`, whether those of its own have parameters with which they can be built. Leaves without one have
    /// `aqm` with `params`.
    ///
    /// # Errors
    /// See [`ScenarioError`].
    pub fn fits(
        &self,
        aqm: &str,
        params: &[(String, String)],
        env: &Env,
        tuned: bool,
    ) -> Result<(), ScenarioError> {
        let shared: Vec<_> = params.iter().map(|(key, text)| (&key[..], &text[..])).collect();
        // Many have the same plan.
        let (mut plans, mut built) = (BTreeSet::new(), BTreeSet::new());
        let leaves: BTreeSet<&str> = self.leaves().map(|leaf| &leaf.name[..]).collect();
        let all = self.class.iter().zip(&self.classes).enumerate();
        for (n, (class, of)) in all.filter(|(_, (class, _))| leaves.contains(&class.name[..])) {
            let env = Env { rate: of.ceil.min(env.rate), ..*env };
            let own = texts(&class.params);
            if !plans.insert((class.aqm.as_deref(), own.clone(), env.rate)) {
                continue;
            }
            let fits = match class.aqm.as_deref() {
                Some(aqm) if tuned && built.insert((aqm, own.clone())) => {
                    AnyQdisc::<()>::build(aqm, &pairs(&own), &env, &mut Rng::new(0, 0)).map(drop)
                }
                Some(aqm) => any::fits(aqm, &pairs(&own), &env),
                None => any::fits(aqm, &shared, &env),
            };
            fits.map_err(|e| match class.aqm.as_deref() {
                Some(aqm) => complaint(&format!("class[{n}]."), KEYS, aqm, CATALOG, e),
                None => {
                    let Complaint { key, allowed, hint, .. } = complaint("", KEYS, aqm, CATALOG, e);
                    let of = if class.ceil.is_some() { "ceil" } else { "rate" };
                    let allowed = format!("one for which {aqm} has {key}: {allowed}");
                    Complaint::new(format!("class[{n}].{of}"), allowed).hint(hint)
                }
            })
            .map_err(|c| self.refused(c))?;
        }
        Ok(())
    }

    /// The classes as HTB has them.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// The key of the first thing of `other` that is otherwise, beside rates, ceils, bursts, quanta, addresses, and
    /// parameters that may change while a discipline runs.
    pub fn shaped_otherwise(&self, other: &Self) -> Option<String> {
        if self.default != other.default {
            return Some("default".into());
        }
        let differs = |(n, (old, new)): (usize, (&ClassSpec, &ClassSpec))| {
            let ClassSpec { name, parent, prio, aqm, params, .. } = new;
            let keys = [
                ("name", *name != old.name),
                ("parent", *parent != old.parent),
                ("prio", *prio != old.prio),
                ("aqm", *aqm != old.aqm),
                ("params", !tunes(aqm.as_deref(), &old.params, params)),
            ];
            let (key, _) = keys.into_iter().find(|(_, differs)| *differs)?;
            Some(format!("class[{n}].{key}"))
        };
        let mut all = self.class.iter().zip(&other.class).enumerate();
        let (before, now) = (self.class.len(), other.class.len());
        all.find_map(differs)
            .or_else(|| (before != now).then(|| format!("class[{}]", before.min(now))))
    }

    /// The classes whose rate is less than those of the classes right below them together, each with that.
    pub fn overbooked(&self) -> Vec<(&ClassSpec, u64)> {
        let mut below: HashMap<&str, u64> = HashMap::new();
        for class in &self.class {
            if let Some(parent) = &class.parent {
                let sum = below.entry(parent).or_default();
                *sum = sum.saturating_add(class.rate.0.bits_per_second());
            }
        }
        let all = self.class.iter().map(|class| (class, below.get(&*class.name).copied()));
        let more = all.filter_map(|(class, sum)| Some((class, sum?)));
        more.filter(|(class, sum)| *sum > class.rate.0.bits_per_second()).collect()
    }

    /// The classes that have no others below them.
    pub fn leaves(&self) -> impl Iterator<Item = &ClassSpec> {
        let parents: BTreeSet<&str> =
            self.class.iter().filter_map(|class| class.parent.as_deref()).collect();
        self.class.iter().filter(move |class| !parents.contains(class.name.as_str()))
    }

    /// The most that all classes together get.
    pub fn ceil(&self) -> Rate {
        let root = &self.class[0];
        root.ceil.unwrap_or(root.rate).0
    }

    /// The most that the default gets.
    pub fn default_ceil(&self) -> Rate {
        let default = self.class.iter().find(|class| class.name == self.default);
        default.map_or_else(|| self.ceil(), |class| class.ceil.unwrap_or(class.rate).0)
    }

    /// Which class has which addresses.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The addresses in order; refuses a default that is no leaf, and addresses that two classes have.
    fn sorted(&self) -> Result<Addresses, Complaint> {
        let names: Vec<&str> = self.leaves().map(|leaf| leaf.name.as_str()).collect();
        if self.default.is_empty() {
            return Err(Complaint::wrong("default", "missing")
                .allowed("the name of a leaf, for packets without an address of another one")
                .hint(format!("default = \"{}\"", names.last().unwrap_or(&""))));
        }
        if !names.contains(&self.default.as_str()) {
            return Err(Complaint::new("default", format!("a leaf: {}", some_of(&names)))
                .hint(meant(&self.default, &names)));
        }
        let numbered = (0u16..).zip(&self.class);
        let of_default = numbered.clone().find(|(_, class)| class.name == self.default);
        let mut all: Vec<_> = numbered
            .flat_map(|(n, class)| class.address.iter().map(move |Text(prefix)| (*prefix, n)))
            .collect();
        // A prefix comes before those that it contains.
        all.sort_by_key(|(prefix, n)| (prefix.first, u128::MAX - prefix.last, *n));
        if let Some(pair) = all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let [(prefix, first), (_, second)] = [pair[0], pair[1]];
            let owner = &self.class[usize::from(first)].name;
            let key = format!("class[{second}].address");
            return Err(Complaint::new(key, format!("addresses of its own: {owner} has {prefix}")));
        }
        Ok(Addresses::new(&all, of_default.map_or(0, |(n, _)| n)))
    }
}

/// Whether these parameters of the algorithm differ in those alone that may change while it runs.
fn tunes(
    aqm: Option<&str>,
    old: &BTreeMap<String, Parameter>,
    new: &BTreeMap<String, Parameter>,
) -> bool {
    let live = aqm.and_then(About::of).map_or(&[][..], |about| about.live);
    // Defaults are written out.
    let differs = |name: &&String| old.get(*name) != new.get(*name);
    old.keys().chain(new.keys()).filter(differs).all(|name| live.contains(&&name[..]))
}

/// The keys of a discipline and of its parameters.
const KEYS: [&str; 2] = ["aqm", "params"];

/// The tables of a file with their keys.
fn places() -> meant::Places {
    vec![
        ("[[class]]", keys_of::<ClassSpec>().0),
        ("the file, before the first [[class]]", vec!["default".into()]),
    ]
}

/// A complaint about the file, from one about its queue.
fn own(mut complaint: Complaint) -> Complaint {
    if let Some(key) = complaint.key.strip_prefix("queue[0].") {
        complaint.key = key.into();
    }
    complaint
}

/// Classes by their addresses, of which the longest prefix counts.
#[derive(Clone, PartialEq, Debug)]
pub struct Addresses {
    /// The first address of each range, in order, from 0 on.
    starts: Box<[u128]>,
    /// The class of each.
    classes: Box<[u16]>,
    default: u16,
}

impl Default for Addresses {
    fn default() -> Self {
        Self::new(&[], 0)
    }
}

impl Addresses {
    /// From prefixes in their order, of which one contains the other or they have nothing in common; all other
    /// addresses are `default`'s.
    fn new(prefixes: &[(Prefix, u16)], default: u16) -> Self {
        let mut ranges: Vec<(u128, u16)> = vec![(0, default)];
        let mut from = |start: u128, class: u16| match ranges.last_mut() {
            Some(last) if last.0 == start => last.1 = class,
            _ => ranges.push((start, class)),
        };
        let mut around: Vec<(u128, u16)> = Vec::new();
        for next in prefixes.iter().map(Some).chain([None]) {
            while let Some(&(last, _)) = around.last()
                && next.is_none_or(|(prefix, _)| last < prefix.first)
            {
                around.pop();
                let outer = around.last().map_or(default, |outer| outer.1);
                last.checked_add(1).into_iter().for_each(|start| from(start, outer));
            }
            if let Some(&(prefix, class)) = next {
                from(prefix.first, class);
                around.push((prefix.last, class));
            }
        }
        let (starts, classes): (Vec<_>, Vec<_>) = ranges.into_iter().unzip();
        Self { starts: starts.into(), classes: classes.into(), default }
    }

    /// The class of an address; that of IPv4 is mapped into IPv6.
    #[inline]
    pub fn class(&self, address: [u8; 16]) -> u16 {
        let address = u128::from_be_bytes(address);
        self.classes[self.starts.partition_point(|start| *start <= address) - 1]
    }

    /// The class of packets that have no address.
    pub fn default_class(&self) -> u16 {
        self.default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"default = "rest"
[[class]]
name = "line"
rate = "100mbit"
[[class]]
name = "anna"
parent = "line"
rate = "20mbit"
address = ["192.0.2.0/24", "2001:db8:1::/48"]
[[class]]
name = "bela"
parent = "line"
rate = "20mbit"
ceil = "80mbit"
address = ["192.0.2.128/25", "198.51.100.7"]
aqm = "cake"
params = { rtt = "50ms" }
[[class]]
name = "rest"
parent = "line"
rate = "5mbit"
"#;

    fn class(tree: &TreeSpec, address: &str) -> u16 {
        let address: Text<Prefix> = Text(address.parse().unwrap());
        tree.addresses().class(address.0.first.to_be_bytes())
    }

    #[test]
    fn the_longest_prefix_names_the_class() {
        let tree = TreeSpec::from_toml(FILE, "x").unwrap();
        for (address, expected) in [
            ("192.0.1.255", 3),
            ("192.0.2.0", 1),
            ("192.0.2.127", 1),
            ("192.0.2.128", 2),
            ("192.0.2.255", 2),
            ("192.0.3.0", 3),
            ("198.51.100.6", 3),
            ("198.51.100.7", 2),
            ("198.51.100.8", 3),
            ("2001:db8:1::5", 1),
            ("2001:db8:2::", 3),
            ("::", 3),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 3),
        ] {
            assert_eq!(class(&tree, address), expected, "{address}");
        }
        assert_eq!(tree.leaves().count(), 3);
        assert_eq!(TreeSpec::from_toml(&tree.to_toml(), "x").unwrap(), tree);
    }

    /// Five megabits for four CAKEs need a class that gets five, and PI's gains a rate that is not too low. The rate
    /// of the link bounds that of the class.
    #[test]
    fn leaves_fit_the_rates_of_their_classes() {
        let own = "aqm = \"cake\"\nparams = { rtt = \"50ms\" }";
        let shared = "aqm = \"cake\"\nparams = { queues = 4, shared_rate = \"50mbit\" }";
        let tree = TreeSpec::from_toml(&FILE.replace(own, shared), "x").unwrap();
        let pi = [("interval".to_string(), "50ms".to_string())];
        let limit = aqm::Limit::packets(10).unwrap();
        let told = |tree: &TreeSpec, link: u64| {
            let env = Env::new(limit, Rate::from_mbit(link));
            tree.fits("pi", &pi, &env, false).map_err(|e| e.to_string())
        };
        assert_eq!(told(&tree, 1000), Ok(()));
        let text = FILE.replace(own, shared).replace("80mbit", "40mbit");
        let less = TreeSpec::from_toml(&text, "x").unwrap();
        for (tree, link) in [(&less, 1000), (&tree, 40)] {
            let error = told(tree, link).unwrap_err();
            assert!(error.starts_with("x:17: class[2].params.shared_rate = "), "{error}");
            assert!(error.contains("4kbit, 1kbit for each queue, … 40mbit"), "{error}");
        }
        let text = FILE.replace(own, shared).replace("5mbit", "100kbit");
        let slow = TreeSpec::from_toml(&text, "x").unwrap();
        let error = told(&slow, 1000).unwrap_err();
        assert!(error.starts_with("x:21: class[3].rate = \"100kbit\""), "{error}");
        assert!(error.contains("one for which pi has params.interval: at most"), "{error}");
    }

    /// Random prefixes, against a search through all of them.
    #[test]
    fn addresses_are_found_as_by_a_search() {
        let mut rng = Rng::new(1, 0);
        for _ in 0..300 {
            let mut all: Vec<(Prefix, u16)> = Vec::new();
            for n in 0..8 {
                let length = [0, 1, 2, 3, 126, 127, 128][rng.below(7)];
                let address = (rng.below(8) as u128) << 125 | rng.below(8) as u128;
                let prefix = Prefix::new(address, length);
                if all.iter().all(|(other, _)| *other != prefix) {
                    all.push((prefix, n));
                }
            }
            all.sort_by_key(|(prefix, n)| (prefix.first, u128::MAX - prefix.last, *n));
            let found = Addresses::new(&all, 99);
            for high in 0..8u128 {
                for low in 0..9 {
                    let address = high << 125 | low;
                    let inside = |(prefix, _): &&(Prefix, u16)| {
                        (prefix.first..=prefix.last).contains(&address)
                    };
                    let longest = all.iter().filter(inside).min_by_key(|(p, _)| p.last - p.first);
                    let expected = longest.map_or(99, |(_, n)| *n);
                    assert_eq!(found.class(address.to_be_bytes()), expected, "{all:?} {address}");
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_key() {
        for (old, new, told) in [
            ("default = \"rest\"\n", "", "default: missing; allowed: the name of a leaf"),
            (
                "\"rest\"\n[",
                "\"line\"\n[",
                "x:1: default = \"line\": not allowed; allowed: a leaf: anna, bela",
            ),
            ("\"rest\"\n[", "\"ana\"\n[", "did you mean `anna`?"),
            (
                "192.0.2.128/25",
                "192.0.2.0/24",
                "class[2].address = [\"192.0.2.0/24\", \"198.51.100.7\"]: not allowed; allowed: addresses of its own: anna has 192.0.2.0/24",
            ),
            ("192.0.2.128/25", "192.0.2.1/25", "192.0.2.0/25 begins at its first address"),
            ("192.0.2.128/25", "192.0.2.0/33", "0 … 32 bits"),
            ("192.0.2.128/25", "anna", "allowed: an address or a prefix such as 192.0.2.7"),
            (
                "name = \"line\"",
                "name = \"line\"\naddress = [\"::/0\"]",
                "class[0].address = [\"::/0\"]: not allowed; allowed: only with a leaf",
            ),
            (
                "ceil = \"80mbit\"",
                "peer = \"3\"",
                "class[2].peer = \"3\": only in a scenario\nhint: address = [",
            ),
            ("ceil = \"80mbit\"", "ciel = \"80mbit\"", "class[2].ciel = \"80mbit\": unknown key"),
            ("ceil = \"80mbit\"", "ciel = \"80mbit\"", "did you mean `ceil`?"),
            (
                "ceil = \"80mbit\"",
                "ceil = \"8mbit\"",
                "class[2].ceil = \"8mbit\": not allowed; allowed: its rate of 20mbit at least",
            ),
            ("aqm = \"cake\"", "aqm = \"cke\"", "class[2].aqm = \"cke\": not allowed"),
            ("rtt", "rt", "class[2].params.rt"),
            ("parent = \"line\"", "parent = \"lin\"", "did you mean `line`?"),
            (
                "name = \"bela\"",
                "name = \"anna\"",
                "class[2].name = \"anna\": not allowed; allowed: a name of its own",
            ),
            ("rate = \"5mbit\"", "rate = \"5\"", "class[3].rate = \"5\""),
            (
                "address = [\"192.0.2.0/24\", \"2001:db8:1::/48\"]",
                "address = \"192.0.2.0/24\"",
                "a list is in brackets",
            ),
        ] {
            let text = FILE.replacen(old, new, 1);
            let told_here = TreeSpec::from_toml(&text, "x").unwrap_err().to_string();
            assert!(told_here.contains(told), "{told}\nin: {told_here}");
        }
        let empty = TreeSpec::from_toml("default = \"x\"", "x").unwrap_err().to_string();
        assert_eq!(empty, "x: class: missing; allowed: [[class]], the root first");
    }

    #[test]
    fn only_rates_and_addresses_leave_a_tree_its_shape() {
        let tree = TreeSpec::from_toml(FILE, "x").unwrap();
        for (old, new, expected) in [
            ("x", "x", None),
            ("20mbit", "10mbit", None),
            ("ceil = \"80mbit\"", "burst = \"5kB\"\ncburst = \"5kB\"\nquantum = \"2kB\"", None),
            ("192.0.2.0/24", "192.0.3.0/24", None),
            ("ceil = \"80mbit\"", "prio = 1", Some("class[2].prio")),
            ("50ms", "60ms", None),
            ("rtt = \"50ms\"", "sets = 64", Some("class[2].params")),
            (
                "aqm = \"cake\"\nparams = { rtt = \"50ms\" }",
                "aqm = \"cobalt\"",
                Some("class[2].aqm"),
            ),
            ("name = \"bela\"", "name = \"bea\"", Some("class[2].name")),
            ("default = \"rest\"", "default = \"anna\"", Some("default")),
        ] {
            let text = FILE.replacen(old, new, 1);
            let other = TreeSpec::from_toml(&text, "x").unwrap();
            assert_eq!(tree.shaped_otherwise(&other).as_deref(), expected, "{new}");
        }
        let more = format!("{FILE}[[class]]\nname = \"x\"\nparent = \"line\"\nrate = \"1mbit\"\n");
        let more = TreeSpec::from_toml(&more, "x").unwrap();
        assert_eq!(tree.shaped_otherwise(&more).unwrap(), "class[4]");
    }

    #[test]
    fn classes_whose_rate_is_promised_twice_are_found() {
        let found = |text: &str| {
            let tree = TreeSpec::from_toml(text, "x").unwrap();
            let all = tree.overbooked().into_iter();
            all.map(|(class, sum)| (class.name.clone(), sum / 1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(found(FILE), []);
        // 20 + 20 + 5 of 45, and of 44 Mb/s.
        assert_eq!(found(&FILE.replace("100mbit", "45mbit")), []);
        assert_eq!(found(&FILE.replace("100mbit", "44mbit")), [("line".into(), 45)]);
    }

    #[test]
    fn a_class_that_is_too_deep_is_named() {
        let class = |n: usize| match n {
            0 => "[[class]]\nname = \"c0\"\nrate = \"1mbit\"\n".into(),
            n => format!("[[class]]\nname = \"c{n}\"\nparent = \"c{}\"\nrate = \"1mbit\"\n", n - 1),
        };
        let text = format!("default = \"c9\"\n{}", (0..10).map(class).collect::<String>());
        let tree = TreeSpec::from_toml(&text, "x").unwrap();
        let env = Env::new(aqm::Limit::packets(10).unwrap(), Rate::from_mbit(1000));
        let built = tree.build::<()>("droptail", &[], &env, &mut Rng::new(1, 0));
        let Err(error) = built else { panic!("built") };
        assert_eq!((&*error.key, &*error.hint), ("class[8].parent", "this is the class c8"));
        assert_eq!((&*error.file, error.line, &*error.value), ("x", Some(35), "\"c7\""));
    }

    /// 20 000 classes are read and built in a time that nobody waits for.
    #[test]
    fn many_classes_are_no_trouble() {
        let mut text =
            String::from("default = \"c0\"\n[[class]]\nname = \"line\"\nrate = \"1gbit\"\n");
        for n in 0..19_999u32 {
            let [high, low] = [n / 256, n % 256];
            text += &format!(
                "[[class]]\nname = \"c{n}\"\nparent = \"line\"\nrate = \"1mbit\"\n\
                 address = [\"10.0.{high}.{low}\"]\n"
            );
        }
        let tree = TreeSpec::from_toml(&text, "x").unwrap();
        assert_eq!(class(&tree, "10.0.77.7"), 1 + 77 * 256 + 7);
        let env = Env::new(aqm::Limit::packets(10).unwrap(), Rate::from_mbit(1000));
        let queue = tree.build::<()>("droptail", &[], &env, &mut Rng::new(1, 0)).unwrap();
        assert_eq!(queue.as_tree().unwrap().counts().len(), 20_000);
        let more = text + "[[class]]\nname = \"x\"\nparent = \"line\"\nrate = \"1mbit\"\n";
        let told = TreeSpec::from_toml(&more, "x").unwrap_err().to_string();
        assert!(
            told.contains("class[20000].name") && told.contains("20000 classes at most"),
            "{told}"
        );
    }

    /// Names are printed to terminals.
    #[test]
    fn names_are_short_and_can_be_printed() {
        let named = |name: &str| FILE.replace("\"line\"", &format!("\"{name}\""));
        let long = "x".repeat(65);
        for wrong in ["", "a\\nb", "a\\tb", "\\u001b[31m", "\\u202eanna", "\\u0000", &long] {
            let told = TreeSpec::from_toml(&named(wrong), "x").unwrap_err().to_string();
            assert!(
                told.contains("class[0].name") && told.contains("letters"),
                "{wrong:?}: {told}"
            );
        }
        for right in ["a b", "Müller & Söhne", "c[7]", "'"] {
            assert!(TreeSpec::from_toml(&named(right), "x").is_ok(), "{right}");
        }
    }
}
