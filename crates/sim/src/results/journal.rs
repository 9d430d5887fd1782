//! What became of each packet at a managed queue, and why: what it found, the random number that was
//! drawn for it and the probability that this was compared with, and how it ended.
//!
//! A row is given once its packet and all that came before it have left, so that rows are in the order
//! of arrivals, and no more of them are kept than packets wait.

use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;

use aqm::watched::{Call, Notes, Sight, Signalled, Watched, Watcher};
use aqm::{AnyQdisc, Cause, Coin, Ecn, Instant, Meta, Qdisc};

use super::table::{Column, Table};
use crate::packet::Packet;

/// The packets that are written down.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Those of these flows; of all if there is none.
    pub flows: Vec<RangeInclusive<u32>>,
    /// Those that arrive in this time, ns.
    pub time: RangeInclusive<u64>,
    /// Of all arrivals at a queue those whose number is a multiple of this; at least 1.
    pub every: u64,
    /// The columns of the table; all if none is named.
    pub columns: Vec<String>,
}

impl Default for Selection {
    fn default() -> Self {
        Self { flows: Vec::new(), time: 0..=u64::MAX, every: 1, columns: Vec::new() }
    }
}

impl Selection {
    fn has(&self, n: u64, now: u64, flow: u32) -> bool {
        n.is_multiple_of(self.every)
            && self.time.contains(&now)
            && (self.flows.is_empty() || self.flows.iter().any(|flows| flows.contains(&flow)))
    }

    fn has_column(&self, name: &str) -> bool {
        self.columns.is_empty() || self.columns.iter().any(|each| each == name)
    }
}

/// How a packet ended.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Queued,
    Sent,
    Dropped(Cause),
}

/// What is written down of a packet.
#[derive(Clone, Debug)]
struct Row {
    n: u64,
    now: u64,
    flow: u32,
    connection: u8,
    seq: u32,
    kind: &'static str,
    meta: Meta,
    packets_found: u32,
    bytes_found: u64,
    /// The signals as it arrived, and after that; before the call at a departure in which it was the
    /// first to be looked at, and after the call in which it ended, if that was later.
    signals: [Vec<f64>; 4],
    drawn: Drawn,
    marked: Option<(u64, Cause)>,
    fate: Fate,
    /// When it ended.
    left: u64,
    /// The other packet of the call in which it was dropped: the one that arrived, or of that the first
    /// one that was dropped with it.
    with: Option<u64>,
}

/// What was drawn for a packet: as it was signalled, or where that draws for each, as it left, or else
/// as it arrived.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    now: u64,
    /// The last that was for a probability.
    coin: Option<Coin>,
    coins: usize,
}

impl Drawn {
    fn new(now: u64, coins: &[Coin]) -> Self {
        let coin = coins.iter().rfind(|coin| coin.p.is_some()).copied();
        Self { now, coin, coins: coins.len() }
    }
}

/// Of two packets with the same key either may be taken for the other.
type Key = (u32, u32, u8, &'static str, Instant);

/// Fewer rows wait for more: a table costs its reader more than ten rows.
const BATCH: usize = 10_000;

/// Writes down what happens at one queue.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    selection: Selection,
    /// Names of the signals; none if no column has one.
    names: Vec<String>,
    /// So many have arrived.
    arrived: u64,
    rows: VecDeque<Row>,
    /// The numbers of those that wait.
    waiting: HashMap<Key, VecDeque<u64>>,
    /// All rows before this one have ended.
    oldest: u64,
    /// The packet to which the state before a departure belongs.
    expected: Option<u64>,
    notes: Notes<Packet>,
}

impl Journal {
    /// That of an empty `queue`.
    pub(crate) fn new(selection: Selection, queue: &AnyQdisc<Packet>) -> Self {
        let mut names = names(queue);
        if !signals(&names).any(|(column, ..)| selection.has_column(&column)) {
            names.clear();
        }
        Self {
            selection,
            names,
            arrived: 0,
            rows: VecDeque::new(),
            waiting: HashMap::new(),
            oldest: 0,
            expected: None,
            notes: Notes::default(),
        }
    }

    /// Has `act` done with `queue` while it is written down.
    pub(crate) fn watch(
        &mut self,
        queue: &mut AnyQdisc<Packet>,
        act: impl FnOnce(&mut Watched<'_, AnyQdisc<Packet>, Self, Packet>),
    ) {
        let mut notes = std::mem::take(&mut self.notes);
        act(&mut Watched::new(queue, self, &mut notes));
        self.notes = notes;
    }

    /// The rows that are ready, `None` while they are few; or all if nothing more will happen. They
    /// are not given again.
    pub(crate) fn drain(&mut self, all: bool) -> Option<Table> {
        let open = |row: &Row| row.fate == Fate::Queued;
        let ready = match all {
            true => self.rows.len(),
            false if self.rows.len() < BATCH => 0,
            false => self.rows.iter().position(open).unwrap_or(self.rows.len()),
        };
        let rows = self.rows.drain(..ready).collect::<Vec<_>>();
        (all || ready > 0).then(|| table(&rows, &self.names, &self.selection))
    }

    /// Values of the signals, if they are written down.
    fn values<'a>(&self, signals: impl IntoIterator<Item = &'a (&'static str, f64)>) -> Vec<f64> {
        signals.into_iter().take(self.names.len()).map(|&(_, value)| value).collect()
    }

    fn row(&mut self, n: u64) -> Option<&mut Row> {
        let at = self.rows.binary_search_by_key(&n, |row| row.n).ok()?;
        self.rows.get_mut(at)
    }

    /// The number of a packet that waits; `ends`: no more.
    fn number(&mut self, meta: &Meta, packet: &Packet, ends: bool) -> Option<u64> {
        let key = key(meta, packet);
        let numbers = self.waiting.get_mut(&key)?;
        if !ends {
            return numbers.front().copied();
        }
        let number = numbers.pop_front();
        if numbers.is_empty() {
            self.waiting.remove(&key);
        }
        number
    }

    fn arrival(&mut self, sight: &Sight<'_, Packet>, meta: &Meta, packet: &Packet) {
        let (n, now) = (self.arrived, sight.now.as_nanos());
        self.arrived += 1;
        if !self.selection.has(n, now, packet.flow) {
            return;
        }
        self.waiting.entry(key(meta, packet)).or_default().push_back(n);
        self.rows.push_back(Row {
            n,
            now,
            flow: packet.flow,
            connection: packet.connection,
            seq: packet.seq,
            kind: packet.payload.kind().name(),
            meta: *meta,
            packets_found: sight.backlog.packets,
            bytes_found: sight.backlog.bytes,
            signals: [self.values(sight.before), self.values(sight.after), Vec::new(), Vec::new()],
            drawn: Drawn::new(now, sight.coins),
            marked: None,
            fate: Fate::Queued,
            left: now,
            with: None,
        });
    }

    /// Packet `n` is dropped as the newest arrives: if it is another, each is written down with the
    /// other.
    fn dropped_with(&mut self, n: u64) {
        let newest = self.arrived - 1;
        if n == newest {
            return;
        }
        if let Some(row) = self.row(n) {
            row.with = Some(newest);
        }
        if let Some(row) = self.row(newest) {
            row.with.get_or_insert(n);
        }
    }

    /// Packet `n` is that of signal `number` of a call, or, if there is none of this number, was sent by
    /// it: if no packet was dropped before it, what was seen before the call holds for it.
    fn looked_at(&mut self, sight: &Sight<'_, Packet>, number: usize, n: u64) {
        if matches!(sight.call, Call::Departure(_))
            && self.expected == Some(n)
            && sight.signals[..number].iter().all(|signal| signal.marked)
        {
            let before = self.values(sight.before);
            if let Some(row) = self.row(n) {
                row.signals[2] = before;
            }
        }
    }

    fn signalled(&mut self, sight: &Sight<'_, Packet>, number: usize, signal: &Signalled<Packet>) {
        let Some(n) = self.number(&signal.meta, &signal.packet, !signal.marked) else { return };
        let (now, arrival) = (sight.now.as_nanos(), matches!(sight.call, Call::Arrival(..)));
        if !signal.marked && arrival {
            self.dropped_with(n);
        }
        self.looked_at(sight, number, n);
        let after = self.values(sight.after_signal(number));
        let Some(row) = self.row(n) else { return };
        if now > row.now || !arrival {
            row.signals[3] = after;
        }
        // A packet that another one drives out keeps what was drawn for it.
        if !arrival || signal.cause == Cause::Early {
            row.drawn = Drawn::new(now, sight.drawn_for(number));
        }
        if signal.marked {
            row.marked = Some((now, signal.cause));
        } else {
            (row.fate, row.left) = (Fate::Dropped(signal.cause), now);
        }
    }
}

/// The names of a queue's signals, and of what it knows of a flow: with numbers from 1 where one comes
/// again and again.
fn names(queue: &AnyQdisc<Packet>) -> Vec<String> {
    let (mut all, mut own) = (Vec::new(), Vec::new());
    queue.observe(Instant::ZERO, &mut |name, _| all.push(name.to_owned()));
    let nobody = Packet::default().meta(0);
    queue.observe_flow(&nobody, Instant::ZERO, &mut |name, _| own.push(name));
    for (i, &name) in own.iter().enumerate() {
        let count = |among: &[&str]| among.iter().filter(|&&each| each == name).count();
        all.push(match count(&own) {
            1 => name.to_owned(),
            _ => format!("{name}_{}", count(&own[..=i])),
        });
    }
    all
}

impl Watcher<Packet> for Journal {
    fn saw(&mut self, sight: &Sight<'_, Packet>) {
        if let Call::Arrival(meta, packet) = &sight.call {
            self.arrival(sight, meta, packet);
        }
        for (number, signal) in sight.signals.iter().enumerate() {
            self.signalled(sight, number, signal);
        }
        if let Call::Departure(Some((meta, packet))) = &sight.call
            && let Some(n) = self.number(meta, packet, true)
        {
            self.looked_at(sight, sight.signals.len(), n);
            let after = self.values(sight.after);
            let Some(row) = self.row(n) else { return };
            (row.fate, row.left) = (Fate::Sent, sight.now.as_nanos());
            row.signals[3] = after;
            let coins = sight.drawn_for(sight.signals.len());
            if !coins.is_empty() {
                row.drawn = Drawn::new(row.left, coins);
            }
        }
    }

    /// The packet that has waited longest: with a single queue, the next to leave.
    fn expects(&mut self) -> Option<Meta> {
        let from = self.rows.partition_point(|row| row.n < self.oldest);
        let found = self.rows.range(from..).find(|row| row.fate == Fate::Queued);
        self.expected = found.map(|row| row.n);
        self.oldest = self.expected.unwrap_or(self.arrived);
        found.map(|row| row.meta)
    }
}

fn key(meta: &Meta, packet: &Packet) -> Key {
    (packet.flow, packet.seq, packet.connection, packet.payload.kind().name(), meta.arrived)
}

/// The columns of signals: when each was seen, as its place in [`Row::signals`], and which it is.
fn signals(names: &[String]) -> impl Iterator<Item = (String, usize, usize)> {
    ["found", "then", "turn", "left"].into_iter().enumerate().flat_map(move |(when, prefix)| {
        names.iter().enumerate().map(move |(i, name)| (format!("{prefix}_{name}"), when, i))
    })
}

fn table(rows: &[Row], names: &[String], selection: &Selection) -> Table {
    let count = |f: &dyn Fn(&Row) -> u64| Column::Count(rows.iter().map(f).collect());
    let real = |f: &dyn Fn(&Row) -> Option<f64>| Column::Real(rows.iter().map(f).collect());
    let text = |f: &dyn Fn(&Row) -> &'static str| {
        Column::Text(rows.iter().map(|row| f(row).into()).collect())
    };
    let ended = |row: &Row| (row.fate != Fate::Queued).then_some(row.left);
    let mut t = Table::default();
    let mut push = |name: &str, column: &dyn Fn() -> Column| {
        if selection.has_column(name) {
            t.push(name, column());
        }
    };
    push("n", &|| count(&|row| row.n));
    push("arrived_ns", &|| count(&|row| row.now));
    push("flow", &|| count(&|row| row.flow.into()));
    push("connection", &|| count(&|row| row.connection.into()));
    push("seq", &|| count(&|row| row.seq.into()));
    push("kind", &|| text(&|row| row.kind));
    push("bytes", &|| count(&|row| row.meta.len.into()));
    push("ecn", &|| text(&|row| codepoint(row.meta.ecn)));
    push("found_packets", &|| count(&|row| row.packets_found.into()));
    push("found_bytes", &|| count(&|row| row.bytes_found));
    push("p", &|| real(&|row| row.drawn.coin?.p));
    push("coin", &|| real(&|row| Some(row.drawn.coin?.drawn)));
    push("coin_ns", &|| real(&|row| row.drawn.coin.map(|_| row.drawn.now as f64)));
    push("coins", &|| count(&|row| row.drawn.coins as u64));
    push("marked", &|| text(&|row| row.marked.map_or("", |(_, cause)| cause.name())));
    push("marked_ns", &|| real(&|row| row.marked.map(|(at, _)| at as f64)));
    push("fate", &|| {
        text(&|row| match row.fate {
            Fate::Queued => "queued",
            Fate::Sent => "sent",
            Fate::Dropped(_) => "dropped",
        })
    });
    push("dropped", &|| {
        text(&|row| if let Fate::Dropped(cause) = row.fate { cause.name() } else { "" })
    });
    push("with", &|| real(&|row| row.with.map(|n| n as f64)));
    push("left_ns", &|| real(&|row| ended(row).map(|at| at as f64)));
    push("delay_s", &|| real(&|row| ended(row).map(|at| (at - row.now) as f64 / 1e9)));
    for (name, when, i) in signals(names) {
        push(&name, &|| real(&|row| row.signals[when].get(i).copied()));
    }
    t
}

fn codepoint(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not-ect",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}
