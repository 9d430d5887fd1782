//! Which packet belongs to which leaf.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::packet::{FlowKey, Label};

/// What packets of a leaf have in common; what is `None` does not matter.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rule {
    /// Hosts that send.
    pub host: Option<RangeInclusive<u16>>,
    /// Hosts that receive.
    pub peer: Option<RangeInclusive<u16>>,
    /// Codepoints.
    pub dscp: Option<RangeInclusive<u8>>,
}

impl Rule {
    fn holds(&self, label: Label) -> bool {
        self.host.as_ref().is_none_or(|range| range.contains(&label.host))
            && self.peer.as_ref().is_none_or(|range| range.contains(&label.peer))
            && self.dscp.as_ref().is_none_or(|range| range.contains(&label.dscp))
    }
}

/// Rules in their order: the first that holds counts. They are found by host, so that a thousand of them
/// cost no more than one.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Each with its leaf.
    rules: Box<[(Rule, u32)]>,
    /// Where the rules of each receiving, of each sending host and the others begin among the `found`.
    starts: [Box<[u32]>; 2],
    found: [Box<[u32]>; 2],
    others: Box<[u32]>,
}

impl Rules {
    pub(super) fn new(rules: Vec<(Rule, u32)>) -> Self {
        let numbered = || rules.iter().enumerate().map(|(number, (rule, _))| (number as u32, rule));
        let of = |side: usize| {
            let range = |rule: &Rule| match side {
                0 => rule.peer.clone(),
                _ => rule.host.clone().filter(|_| rule.peer.is_none()),
            };
            let (mut starts, mut found) = (vec![0], Vec::new());
            let any = numbered().any(|(_, rule)| range(rule).is_some());
            for host in 0..if any { Label::HOSTS } else { 0 } {
                let its = numbered().filter(|(_, r)| range(r).is_some_and(|r| r.contains(&host)));
                found.extend(its.map(|(number, _)| number));
                starts.push(found.len() as u32);
            }
            (starts.into_boxed_slice(), found.into_boxed_slice())
        };
        let [(peers, by_peer), (hosts, by_host)] = [of(0), of(1)];
        let others = numbered().filter(|(_, rule)| rule.peer.is_none() && rule.host.is_none());
        let others = others.map(|(number, _)| number).collect();
        Self { starts: [peers, hosts], found: [by_peer, by_host], others, rules: rules.into() }
    }

    /// The leaf of a packet, if any rule holds.
    #[inline]
    pub(super) fn find(&self, flow: FlowKey) -> Option<usize> {
        let label = flow.label();
        let of = |side: usize, host: u16| {
            let starts = self.starts[side].get(usize::from(host)..usize::from(host) + 2);
            starts.map_or(&[][..], |s| &self.found[side][s[0] as usize..s[1] as usize])
        };
        let holds = |number: &&u32| self.rules[**number as usize].0.holds(label);
        let lists = [of(0, label.peer), of(1, label.host), &self.others];
        let first = lists.iter().filter_map(|list| list.iter().find(holds)).min()?;
        Some(self.rules[*first as usize].1 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Random rules, against a search through all of them.
    #[test]
    fn the_first_rule_that_holds_counts() {
        let mut rng = Rng::new(1, 0);
        for _ in 0..30 {
            let mut range = |most: usize| {
                rng.chance(0.5).then(|| {
                    let from = rng.below(most) as u16;
                    from..=from + rng.below(3) as u16
                })
            };
            let rules: Vec<_> = (0..8)
                .map(|leaf| {
                    let dscp = range(8).map(|r| *r.start() as u8..=*r.end() as u8);
                    (Rule { host: range(6), peer: range(6), dscp }, leaf)
                })
                .collect();
            let index = Rules::new(rules.clone());
            for n in 0..400u16 {
                let label = Label { dscp: n as u8 % 9, host: n / 9 % 7, peer: n / 63 };
                let expected = rules.iter().find(|(rule, _)| rule.holds(label));
                let found = index.find(FlowKey::labelled(3, label));
                assert_eq!(found, expected.map(|(_, leaf)| *leaf as usize), "{label:?} {rules:?}");
            }
        }
    }
}
