//! What the congestion control of a flow is doing, for who looks on: its phases, rounds and losses become
//! the table `control`, and events of a scenario wait for its phases. It is looked at after each event of its flow, from outside, so that a run without this
//! has nothing to ask.

use std::collections::BTreeMap;

use crate::results::registry;
use crate::results::table::Table;

/// What a sender tells when it is looked at.
#[derive(Clone, Default, Debug)]
pub(crate) struct Look {
    /// The phases that were entered since the last look, in order; or the one that goes on.
    pub(crate) phases: Vec<&'static str>,
    /// Round trips counted by packets, where the control counts them.
    pub(crate) round: Option<u32>,
    /// The oldest packet that is not acknowledged, and past the last that was sent.
    pub(crate) under_way: (u32, u32),
    /// What is being repaired.
    pub(crate) repair: Repairing,
    /// Repairs that were undone so far.
    pub(crate) undone: u32,
    /// It sends again after a time with nothing under way, and nothing has arrived since.
    pub(crate) restarting: bool,
    /// The window and what is in the network, packets.
    pub(crate) cwnd: f64,
    pub(crate) in_flight: u32,
    /// Time between two packets that a paced sender sends, ns.
    pub(crate) gap: Option<u64>,
}

/// What a sender repairs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Repairing {
    /// Nothing.
    #[default]
    Nothing,
    /// Losses that acknowledgements told of.
    Losses,
    /// What a timeout told of.
    Timeout,
}

/// A value that a congestion control goes by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value {
    /// Packets, a number, or whether something is so; infinite: none.
    Number(f64),
    /// Packets a ns; infinite: none.
    Rate(f64),
    /// ns; the greatest: none.
    Time(u64),
    /// What a controller that is brought along calls so, in a unit of its own.
    Signal(f64),
}

impl Value {
    pub(crate) fn flag(is_so: bool) -> Self {
        Self::Number(f64::from(u8::from(is_so)))
    }

    /// In the unit of the table: packets, bit/s, s.
    fn shown(self, packet_bits: f64) -> Option<f64> {
        let value = match self {
            Self::Number(value) | Self::Signal(value) => value,
            Self::Rate(rate) => rate * packet_bits * 1e9,
            Self::Time(u64::MAX) => f64::INFINITY,
            Self::Time(ns) => ns as f64 / 1e9,
        };
        value.is_finite().then_some(value)
    }
}

/// Takes the values of a congestion control by their names.
pub(crate) type Values<'a> = &'a mut dyn FnMut(&'static str, Value);

/// What was seen of a flow last.
#[derive(Clone, Debug)]
struct Last {
    group: usize,
    phase: &'static str,
    /// How often each phase was entered.
    entered: BTreeMap<&'static str, u64>,
    /// When the phase began, ns, and in which round.
    since: u64,
    since_round: u32,
    round: u32,
    /// Where the control counts no rounds: the present one ends once this is acknowledged.
    round_ends: u32,
    repair: Repairing,
    undone: u32,
    restarting: bool,
}

/// A flow has entered a phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entered {
    pub(crate) phase: &'static str,
    /// The number of this entry into the phase, from 1.
    pub(crate) nth: u64,
}

/// Looks on at all flows.
#[derive(Clone)]
pub(crate) struct Watch {
    /// Name and bits of a packet of each group.
    groups: Vec<(String, f64)>,
    flows: Vec<Last>,
    /// The tables, if they are kept: what controls do, and signals of controllers that are brought along.
    tables: Option<[Table; 2]>,
    pub(crate) look: Look,
    entered: Vec<Entered>,
}

impl Watch {
    /// Of groups with this name and so many bits a packet, and flows of these groups. `keeps`: the table is
    /// kept.
    pub(crate) fn new(groups: Vec<(String, f64)>, of: &[u16], keeps: bool) -> Self {
        let last = |group: &u16| Last {
            group: usize::from(*group),
            phase: "",
            entered: BTreeMap::new(),
            since: 0,
            since_round: 0,
            round: 0,
            round_ends: 0,
            repair: Repairing::Nothing,
            undone: 0,
            restarting: false,
        };
        Self {
            groups,
            flows: of.iter().map(last).collect(),
            tables: keeps.then(Self::empty),
            look: Look::default(),
            entered: Vec::new(),
        }
    }

    /// The tables without a row.
    pub(crate) fn empty() -> [Table; 2] {
        [registry::CONTROL.empty(), registry::CONTROL_SIGNALS.empty()]
    }

    /// The tables, if they are kept.
    pub(crate) fn into_tables(self) -> Option<[Table; 2]> {
        self.tables
    }

    /// Takes in what `self.look` has of flow `i` at `now` (ns); `values` gives the control's values. Returns
    /// the phases that it has entered.
    pub(crate) fn note(
        &mut self,
        now: u64,
        i: usize,
        values: impl FnOnce(Values<'_>),
    ) -> &[Entered] {
        self.entered.clear();
        let Self { groups, flows, tables, look, entered } = self;
        let last = &mut flows[i];
        let (una, end) = look.under_way;
        let another_round = match look.round {
            Some(round) => std::mem::replace(&mut last.round, round) != round,
            None => {
                let ends = una >= last.round_ends && una < end;
                if ends {
                    last.round_ends = end;
                    last.round += 1;
                }
                ends
            }
        };
        let repair = std::mem::replace(&mut last.repair, look.repair);
        let undone = std::mem::replace(&mut last.undone, look.undone) != look.undone;
        let restarts = !std::mem::replace(&mut last.restarting, look.restarting) && look.restarting;
        let events = [
            (undone, "undo"),
            (
                !undone && repair != Repairing::Nothing && look.repair == Repairing::Nothing,
                "recovered",
            ),
            (repair != look.repair && look.repair == Repairing::Losses, "loss"),
            (repair != look.repair && look.repair == Repairing::Timeout, "timeout"),
            (restarts, "restart"),
            (another_round, "round"),
        ];
        let is_calm = events.iter().all(|(happens, _)| !happens);
        if is_calm && look.phases.iter().all(|phase| *phase == last.phase) {
            return &self.entered;
        }
        let (mut known, mut signals) = (BTreeMap::new(), Vec::new());
        if tables.is_some() {
            values(&mut |name, value| match value {
                Value::Signal(value) => signals.push((name, value)),
                _ => {
                    known.insert(name, value);
                }
            });
        }
        let (name, bits) = &groups[last.group];
        let tables = tables.as_mut();
        let mut rows = Rows { tables, known, signals, now, flow: i, look, name, bits: *bits };
        for &phase in &look.phases {
            if phase == last.phase {
                continue;
            }
            let before = std::mem::replace(&mut last.phase, phase);
            if before.is_empty() {
                (last.since, last.since_round) = (now, last.round);
            }
            let nth = last.entered.entry(phase).or_default();
            *nth += 1;
            entered.push(Entered { phase, nth: *nth });
            rows.add("phase", before, last);
            (last.since, last.since_round) = (now, last.round);
        }
        for (_, event) in events.into_iter().filter(|(happens, _)| *happens) {
            rows.add(event, "", last);
        }
        &self.entered
    }
}

/// Adds rows of one event.
struct Rows<'a> {
    tables: Option<&'a mut [Table; 2]>,
    known: BTreeMap<&'static str, Value>,
    signals: Vec<(&'static str, f64)>,
    now: u64,
    flow: usize,
    look: &'a Look,
    name: &'a str,
    bits: f64,
}

impl Rows<'_> {
    fn add(&mut self, event: &str, before: &str, last: &Last) {
        let Some([table, signals]) = &mut self.tables else { return };
        let (look, bits, time_s) = (self.look, self.bits, self.now as f64 / 1e9);
        for &(name, value) in &self.signals {
            let mut row = signals.row();
            row.real(Some(time_s));
            row.count(self.flow as u64);
            row.text(self.name);
            row.text(event);
            row.text(name);
            row.real(Some(value).filter(|value| value.is_finite()));
        }
        let mut row = table.row();
        row.real(Some(time_s));
        row.count(self.flow as u64);
        row.text(self.name);
        row.text(event);
        row.text(last.phase);
        row.text(before);
        row.count(last.entered.get(last.phase).copied().unwrap_or(0));
        row.real(Some((self.now - last.since) as f64 / 1e9));
        row.count((last.round - last.since_round).into());
        row.real(Some(look.cwnd));
        row.count(look.in_flight.into());
        row.real(look.gap.filter(|gap| *gap > 0).map(|gap| bits * 1e9 / gap as f64));
        let names = registry::CONTROL.named().map(|(name, _)| name);
        for name in names.skip_while(|name| *name != "ssthresh") {
            row.real(self.known.get(name).and_then(|value| value.shown(bits)));
        }
    }
}
