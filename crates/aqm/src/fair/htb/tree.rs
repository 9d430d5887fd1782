//! Which class of a tree sends next, and at whose expense.
//!
//! ```text
//! a class has tokens by its rate and by its ceil, at most burst and cburst:
//!     above neither:  it may send (its own tokens last)
//!     above rate:     it may borrow of its parent
//!     above ceil:     it waits
//! next:   of the classes that may send and have packets below them, the lowest level (leaves first), there
//!         the lowest prio, there by turns;  in it by turns the classes below that borrow, down to a leaf
//! sent:   the leaf and all above it pay by their ceils;  the class that lent and all above it by their rates
//! a turn: deficit := deficit − length on each list of the way;  used up: + quantum, and the next one's turn
//!         each that borrows has one in a round, whenever it comes and goes between its own packets
//! ```
//!
//! Tokens are times: a packet costs what it takes at the class's rate, rounded up to 1 ns, so that no rate
//! is exceeded. They may fall below zero by one packet.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::Class;
use crate::context::Tally;
use crate::fair::links::{Chain, Links};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Priorities, and the most levels of classes.
pub(super) const PRIOS: usize = 8;
pub(super) const LEVELS: usize = 8;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Sends,
    Borrows,
    Waits,
}

#[derive(Clone, Debug)]
struct Bucket {
    per_byte: f64,
    most: i64,
    tokens: i64,
}

impl Bucket {
    fn new(rate: Rate, bytes: u32) -> Self {
        let per_byte = 8e9 / rate.bits_per_second() as f64;
        let most = (f64::from(bytes) * per_byte) as i64;
        Self { per_byte, most, tokens: most }
    }

    /// Has another rate and burst. As many bytes are there or owed as before, no more than the burst.
    fn change(&mut self, rate: Rate, bytes: u32) {
        let new = Self::new(rate, bytes);
        let tokens = (self.tokens as f64 / self.per_byte * new.per_byte) as i64;
        *self = Self { tokens: tokens.min(new.most), ..new };
    }

    #[inline]
    fn fill(&mut self, ns: u64) {
        self.tokens = self.tokens.saturating_add_unsigned(ns).min(self.most);
    }

    #[inline]
    fn pay(&mut self, len: u32) {
        let cost = f64::from(len) * self.per_byte;
        self.tokens -= cost as i64 + i64::from(cost > (cost as i64) as f64);
    }
}

#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    level: u8,
    mode: Mode,
    /// A bit for each priority at which there are packets below it that may be sent on its account.
    active: u8,
    quantum: i64,
    rate: Bucket,
    ceil: Bucket,
    /// When its tokens were filled up to.
    at: Instant,
    /// Its queue gives nothing before.
    held: Instant,
    /// What it sent at the expense of a class above it.
    borrowed: Tally,
}

/// The place of a class in a list: what it may still send in its turn, bytes, and the last round in which
/// it had one.
#[derive(Clone, Copy, Default, Debug)]
struct Place {
    left: i64,
    done: u32,
}

/// The classes that borrow from one: first those that have not had their turn in this round.
#[derive(Clone, Copy, Debug)]
struct Borrowers {
    list: Chain,
    round: u32,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) class: usize,
    prio: u8,
    /// The level of the class at whose expense it is.
    level: u8,
}

/// The tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Box<[Node]>,
    /// For each class and priority its place in a list.
    places: Links<Place>,
    /// For each class and priority the classes below that borrow.
    borrowers: Box<[Borrowers]>,
    /// Those that may send, by level and priority, and which lists are not empty.
    senders: [[Chain; PRIOS]; LEVELS],
    busy: [u8; LEVELS],
    alarms: Alarms,
}

impl Tree {
    /// Classes at rest; parents come before children. The error is the first class below eight levels.
    pub(super) fn new(classes: &[Class], now: Instant) -> Result<Self, usize> {
        let mut above = vec![0; classes.len()];
        for (number, class) in classes.iter().enumerate() {
            above[number] = class.parent.map_or(0, |parent| above[parent] + 1);
            if above[number] >= LEVELS {
                return Err(number);
            }
        }
        let mut levels = vec![0u8; classes.len()];
        for (number, class) in classes.iter().enumerate().rev() {
            if let Some(parent) = class.parent {
                levels[parent] = levels[parent].max(levels[number] + 1);
            }
        }
        let node = |(class, level): (&Class, &u8)| Node {
            parent: class.parent.map_or(NONE, |parent| parent as u32),
            level: *level,
            mode: Mode::Sends,
            active: 0,
            quantum: class.quantum.into(),
            rate: Bucket::new(class.rate, class.burst),
            ceil: Bucket::new(class.ceil, class.cburst),
            at: now,
            held: now,
            borrowed: Tally::default(),
        };
        let slots = classes.len() * PRIOS;
        let mut places = Links::new(slots);
        for (number, class) in classes.iter().enumerate() {
            let place = Place { left: class.quantum.into(), done: 0 };
            (0..PRIOS).for_each(|prio| places[number * PRIOS + prio] = place);
        }
        Ok(Self {
            nodes: classes.iter().zip(&levels).map(node).collect(),
            places,
            borrowers: vec![Borrowers { list: Chain::EMPTY, round: 1 }; slots].into(),
            senders: [[Chain::EMPTY; PRIOS]; LEVELS],
            busy: [0; LEVELS],
            alarms: Alarms::new(classes.len()),
        })
    }

    /// A class has another rate, ceil, bursts and quantum from `now` on.
    pub(super) fn change(&mut self, number: usize, class: &Class, now: Instant) {
        let node = &mut self.nodes[number];
        let ns = now.since(node.at).as_nanos();
        node.at = now;
        node.rate.fill(ns);
        node.ceil.fill(ns);
        node.rate.change(class.rate, class.burst);
        node.ceil.change(class.ceil, class.cburst);
        node.quantum = class.quantum.into();
        if node.active != 0 {
            self.alarms.set(number, now);
        }
    }

    /// Whether this is the most that a class gets.
    pub(super) fn has_ceil(&self, class: usize, ceil: Rate) -> bool {
        self.nodes[class].ceil.per_byte == Bucket::new(ceil, 0).per_byte
    }

    /// What a class costs in memory, in bytes.
    pub(super) const BYTES_PER_CLASS: u64 = size_of::<Node>() as u64
        + PRIOS as u64 * (Links::<Place>::BYTES + size_of::<Borrowers>() as u64)
        + Alarms::BYTES;

    /// A leaf has packets.
    #[inline]
    pub(super) fn came(&mut self, leaf: usize, prio: u8, now: Instant) {
        if self.nodes[leaf].active == 0 {
            self.demand(leaf, prio, now);
        }
    }

    /// The leaf to send from at `now`.
    #[inline]
    pub(super) fn next(&mut self, now: Instant) -> Option<Turn> {
        while let Some(class) = self.alarms.due(now) {
            self.look(class, now);
        }
        let level = self.busy.iter().position(|prios| *prios != 0)?;
        let prio = self.busy[level].trailing_zeros() as usize;
        let mut list = &self.senders[level][prio];
        loop {
            let class = list.head()? / PRIOS;
            if self.nodes[class].level == 0 {
                return Some(Turn { class, prio: prio as u8, level: level as u8 });
            }
            list = &self.borrowers[class * PRIOS + prio].list;
        }
    }

    /// A packet of `bytes`, `len` on the wire, was sent in a turn. `last`: the leaf has no more.
    pub(super) fn sent(&mut self, turn: Turn, bytes: u32, len: u32, last: bool, now: Instant) {
        let mut class = turn.class;
        loop {
            let level = self.nodes[class].level;
            self.pass_turn(class, turn, len);
            if level == turn.level {
                break;
            }
            class = self.nodes[class].parent as usize;
        }
        if last {
            self.ran_empty(turn.class, turn.prio);
        }
        let mut class = turn.class as u32;
        while class != NONE {
            let node = &mut self.nodes[class as usize];
            let ns = now.since(node.at).as_nanos();
            node.at = now;
            node.rate.fill(ns);
            node.ceil.fill(ns);
            if node.level >= turn.level {
                node.rate.pay(len);
            } else {
                node.borrowed.count(bytes);
            }
            node.ceil.pay(len);
            let next = node.parent;
            self.look(class as usize, now);
            class = next;
        }
    }

    /// A leaf has no packets any more.
    pub(super) fn ran_empty(&mut self, leaf: usize, prio: u8) {
        if self.nodes[leaf].active != 0 {
            self.nodes[leaf].active = 0;
            self.leave(leaf, prio.into());
        }
    }

    /// The queue of a leaf gives nothing before `until`, though it has packets.
    pub(super) fn hold(&mut self, leaf: usize, until: Instant, now: Instant) {
        self.nodes[leaf].held = until;
        self.look(leaf, now);
    }

    /// Whether the queue of a leaf holds its packets back.
    #[inline]
    pub(super) fn is_held(&self, leaf: usize, now: Instant) -> bool {
        self.nodes[leaf].held > now
    }

    /// When a class that waits may send, at the earliest.
    pub(super) fn ready_at(&self) -> Option<Instant> {
        self.alarms.first()
    }

    /// Whether a class with packets waits for its ceil.
    pub(super) fn waits(&self, class: usize) -> bool {
        self.nodes[class].mode == Mode::Waits
    }

    /// What a class sent at the expense of one above it.
    pub(super) fn borrowed(&self, class: usize) -> Tally {
        self.nodes[class].borrowed
    }

    /// The class above a class.
    pub(super) fn parent(&self, class: usize) -> Option<usize> {
        Some(self.nodes[class].parent)
            .filter(|parent| *parent != NONE)
            .map(|parent| parent as usize)
    }

    /// A class has sent from the list in which it stands. Of those that may send each has a packet at a time,
    /// of those that borrow its quantum.
    fn pass_turn(&mut self, class: usize, turn: Turn, len: u32) {
        let prio = usize::from(turn.prio);
        let place = class * PRIOS + prio;
        let Node { level, quantum, parent, .. } = self.nodes[class];
        if level == turn.level {
            let list = &mut self.senders[usize::from(level)][prio];
            self.places.remove(list, place);
            return self.places.append(list, place);
        }
        let Borrowers { list, round } = &mut self.borrowers[parent as usize * PRIOS + prio];
        let Place { left, done } = &mut self.places[place];
        // All that are there have had their turn, so that another round begins.
        if done == round {
            *round = round.wrapping_add(1);
        }
        *left -= i64::from(len);
        if *left > 0 {
            return;
        }
        while *left <= 0 {
            *left += quantum;
        }
        *done = *round;
        self.places.remove(list, place);
        self.places.append(list, place);
    }

    /// There are packets below a class, of this priority.
    fn demand(&mut self, class: usize, prio: u8, now: Instant) {
        let idle = self.nodes[class].active == 0;
        self.nodes[class].active |= 1 << prio;
        if idle {
            self.nodes[class].mode = self.mode(class, now);
        }
        self.join(class, prio.into(), now);
    }

    /// A class may be in another mode.
    fn look(&mut self, class: usize, now: Instant) {
        if self.nodes[class].active == 0 {
            return;
        }
        let mode = self.mode(class, now);
        let Node { mode: before, active, .. } = self.nodes[class];
        if mode == before {
            return;
        }
        for prio in (0..PRIOS).filter(|prio| active >> prio & 1 == 1) {
            self.leave(class, prio);
        }
        self.nodes[class].mode = mode;
        for prio in (0..PRIOS).filter(|prio| active >> prio & 1 == 1) {
            self.join(class, prio, now);
        }
    }

    /// The mode of a class. If it may change by time alone, an alarm is set.
    fn mode(&mut self, class: usize, now: Instant) -> Mode {
        let node = &mut self.nodes[class];
        let ns = now.since(node.at).as_nanos();
        node.at = now;
        node.rate.fill(ns);
        node.ceil.fill(ns);
        let after = |tokens: i64| now + Duration::from_nanos(tokens.unsigned_abs());
        let (mode, until) = if node.held > now {
            (Mode::Waits, node.held)
        } else if node.ceil.tokens < 0 {
            (Mode::Waits, after(node.ceil.tokens))
        } else if node.rate.tokens < 0 {
            (Mode::Borrows, after(node.rate.tokens))
        } else {
            return Mode::Sends;
        };
        self.alarms.set(class, until);
        mode
    }

    /// A class takes its place.
    fn join(&mut self, class: usize, prio: usize, now: Instant) {
        let Node { mode, level, parent, .. } = self.nodes[class];
        let place = class * PRIOS + prio;
        if mode == Mode::Sends {
            let level = usize::from(level);
            self.places.append(&mut self.senders[level][prio], place);
            self.busy[level] |= 1 << prio;
        } else if mode == Mode::Borrows && parent != NONE {
            let Borrowers { list, round } = &mut self.borrowers[parent as usize * PRIOS + prio];
            let first = list.head().is_none();
            // A class that only sent at its own rate meanwhile keeps its turn.
            if self.places[place].done == *round {
                self.places.append(list, place);
            } else {
                self.places.prepend(list, place);
            }
            if first {
                self.demand(parent as usize, prio as u8, now);
            }
        }
    }

    /// A class leaves its place.
    fn leave(&mut self, class: usize, prio: usize) {
        let Node { mode, level, parent, .. } = self.nodes[class];
        let place = class * PRIOS + prio;
        if mode == Mode::Sends {
            let list = &mut self.senders[usize::from(level)][prio];
            self.places.remove(list, place);
            if list.head().is_none() {
                self.busy[usize::from(level)] &= !(1 << prio);
            }
        } else if mode == Mode::Borrows && parent != NONE {
            let list = &mut self.borrowers[parent as usize * PRIOS + prio].list;
            self.places.remove(list, place);
            if list.head().is_none() {
                self.nodes[parent as usize].active &= !(1 << prio);
                self.leave(parent as usize, prio);
            }
        }
    }
}

/// One time for each class at most, the earliest first: a binary heap in which each knows its place.
#[derive(Clone, Debug)]
struct Alarms {
    heap: Vec<(Instant, u32)>,
    places: Box<[u32]>,
}

impl Alarms {
    const BYTES: u64 = (size_of::<(Instant, u32)>() + size_of::<u32>()) as u64;

    fn new(classes: usize) -> Self {
        Self { heap: Vec::with_capacity(classes), places: vec![NONE; classes].into() }
    }

    fn first(&self) -> Option<Instant> {
        self.heap.first().map(|first| first.0)
    }

    /// A class whose time has come, which has none any more.
    fn due(&mut self, now: Instant) -> Option<usize> {
        let &(at, class) = self.heap.first()?;
        if at > now {
            return None;
        }
        self.heap.swap_remove(0);
        self.places[class as usize] = NONE;
        if let Some(&(_, moved)) = self.heap.first() {
            self.places[moved as usize] = 0;
            self.sink(0);
        }
        Some(class as usize)
    }

    /// The time of a class, in place of another.
    fn set(&mut self, class: usize, at: Instant) {
        let place = match self.places[class] {
            NONE => {
                self.heap.push((at, class as u32));
                self.places[class] = self.heap.len() as u32 - 1;
                self.heap.len() - 1
            }
            place => place as usize,
        };
        self.heap[place].0 = at;
        self.rise(place);
        self.sink(self.places[class] as usize);
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.heap[place].0 < self.heap[(place - 1) / 2].0 {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..self.heap.len().min(2 * place + 3);
            let Some(least) = children.min_by_key(|child| self.heap[*child].0) else { return };
            if self.heap[place].0 <= self.heap[least].0 {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            self.places[self.heap[place].1 as usize] = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Against a list that is searched.
    #[test]
    fn alarms_come_in_order_and_move() {
        let (mut alarms, mut rng, mut all) = (Alarms::new(20), Rng::new(1, 0), [None; 20]);
        for now in 0..20_000u64 {
            let (class, at) = (rng.below(20), now + rng.below(30) as u64);
            if rng.chance(0.4) {
                alarms.set(class, Instant::from_nanos(at));
                all[class] = Some(at);
            }
            let first = all.iter().flatten().min().copied();
            assert_eq!(alarms.first().map(Instant::as_nanos), first);
            while let Some(class) = alarms.due(Instant::from_nanos(now)) {
                assert!(all[class].take().is_some_and(|at| at <= now), "{class} at {now}");
            }
            assert!(all.iter().flatten().all(|at| *at > now));
        }
    }
}
