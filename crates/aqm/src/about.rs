//! What an algorithm tells of itself: one constant beside its code, from which command line, Python,
//! documentation, results and `bluewater why` take names, signals, presets and rules.

use alloc::string::String;
use alloc::vec::Vec;

use crate::context::Cause;
use crate::param::Param;

/// An algorithm's entry in the [catalogue](crate::CATALOG).
#[derive(Clone, Copy)]
pub struct About {
    /// The name in configurations.
    pub name: &'static str,
    /// What it belongs to.
    pub family: Family,
    /// What it is, in a sentence.
    pub summary: &'static str,
    /// The paper or standard that defines it.
    pub source: &'static str,
    /// The rule by which it decides, in a sentence with its source.
    pub rule: &'static str,
    /// What a drop or a mark of a cause means here, if it means more than the cause's name.
    pub causes: &'static [(Cause, &'static str)],
    /// Why it may drop an ECN-capable packet where a mark would be expected.
    pub unmarked: Unmarked,
    /// The signals that it reports while it runs, in the order of its reports.
    pub signals: &'static [Signal],
    /// Named sets of parameters.
    pub presets: &'static [Preset],
    /// What of a packet's [`Label`](crate::Label) it reads.
    pub labels: Labels,
    /// The parameters that may change while it runs ([`Discipline::retune`](crate::Discipline::retune)).
    pub live: &'static [&'static str],
    /// The parameters with defaults, ranges, docs. The catalogue fills it in from the algorithm's type.
    pub parameters: Table,
}

impl About {
    /// One that says nothing, to fill in.
    pub const NEW: Self = Self {
        name: "",
        family: Family::One,
        summary: "",
        source: "",
        rule: "",
        causes: &[],
        unmarked: Unmarked { coin: "", rule: "" },
        signals: &[],
        presets: &[],
        labels: Labels::NONE,
        live: &[],
        parameters: Vec::new,
    };

    /// Whether it reads packets' labels, if `given` has a parameter's text.
    pub fn reads_labels(&self, given: impl FnOnce(&str) -> Option<String>) -> bool {
        let Labels { codepoints, hosts, with } = self.labels;
        let valued = || given(with).is_some_and(|text| text.trim() != "none");
        (codepoints || hosts) && (with.is_empty() || valued())
    }
}

/// What algorithms have in common: how the documentation groups them, in its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// One queue without state of flows.
    One,
    /// Decides by the time that packets wait.
    Delay,
    /// Two coupled queues.
    Dual,
    /// One queue with state of flows.
    Flows,
    /// A queue for each flow.
    Fair,
    /// Stands before a queue.
    Filter,
}

impl Family {
    /// The heading in the documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Self::One => "One queue, no flow state",
            Self::Delay => "Delay-based",
            Self::Dual => "Two coupled queues (L4S)",
            Self::Flows => "One queue, flow state",
            Self::Fair => "Fair queues",
            Self::Filter => "Filters before a queue",
        }
    }
}

/// Why an ECN-capable packet is dropped where a mark would be expected; empty where that does not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unmarked {
    /// A coin decided.
    pub coin: &'static str,
    /// A rule decided without one.
    pub rule: &'static str,
}

/// What of a packet's [`Label`](crate::Label) means something to an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Labels {
    /// Its codepoint (DSCP).
    pub codepoints: bool,
    /// Its hosts.
    pub hosts: bool,
    /// The parameter without a value of which it reads none of both; empty: it always does.
    pub with: &'static str,
}

impl Labels {
    /// Nothing.
    pub const NONE: Self = Self { codepoints: false, hosts: false, with: "" };
}

/// A number that an algorithm reports while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// Its name.
    pub name: &'static str,
    /// The unit, or the range of a probability or share; empty for a number.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// Gives the table of an algorithm's parameters.
pub type Table = fn() -> Vec<Param>;

/// A named set of parameters, as pairs of name and text, chosen by the setting `preset`; settings beside
/// it go before it.
pub type Preset = (&'static str, &'static [(&'static str, &'static str)]);

/// What stands in both lists, `N` in all.
pub(crate) const fn joined<T: Copy, const N: usize>(first: &[T], second: &[T]) -> [T; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [first[0]; N];
    let mut i = 1;
    while i < N {
        all[i] = if i < first.len() { first[i] } else { second[i - first.len()] };
        i += 1;
    }
    all
}
