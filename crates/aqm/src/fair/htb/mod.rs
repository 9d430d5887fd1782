//! HTB: a hierarchical token bucket (Devera, HTB Linux queuing discipline manual, 2002; tc-htb(8)). Classes
//! form a tree. Each is sure of its `rate`, may borrow up to its `ceil` what its parent has to spare, and a
//! leaf has a queue of any discipline.
//!
//! | file | what it holds |
//! |---|---|
//! | `tree.rs` | tokens, borrowing, whose turn it is |
//! | `rules.rs` | which packet belongs to which leaf |
//!
//! Against Linux:
//! - Siblings that borrow share by `quantum` on each level of the tree. Linux goes on to the next parent when
//!   it has been round the children of the one before.
//! - Lengths are those on the wire ([`Framing`]). Tokens are exact to 1 ns a packet, against the class.
//! - A packet of no leaf goes to the last leaf. Linux sends it unshaped unless there is a `default`.
//! - A leaf that runs empty is asked once more, so that it learns of it. In Linux nobody asks it: there the
//!   average of an empty RED does not age, and a flow that has run empty stays in FQ-CoDel's list.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::context::{Backlog, Cx, Env, State, Tally};
use crate::framing::Framing;
use crate::packet::Meta;
use crate::qdisc::{Counters, Outlet, Qdisc, Through};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use rules::Rules;
use tree::{PRIOS, Tree};

mod rules;
#[cfg(test)]
mod tests;
mod tree;

pub use rules::Rule;

/// A class of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// The number of its parent, which comes before it; the first class has none, and all others have one.
    pub parent: Option<usize>,
    /// The rate that it always gets.
    pub rate: Rate,
    /// What it may have with what it borrows, at least its rate.
    pub ceil: Rate,
    /// What it may send at once by its rate after a pause, bytes.
    pub burst: u32,
    /// What it may send at once by its ceil, bytes.
    pub cburst: u32,
    /// Of leaves that borrow, those with lower numbers go first, 0 … 7.
    pub prio: u8,
    /// What it sends in its turn when it borrows, bytes.
    pub quantum: u32,
}

impl Class {
    /// The class with a `rate` that has the defaults of `tc` otherwise: no more than its rate, bursts of a
    /// packet, a quantum of a tenth of what its rate sends in a second, 1000 … 200 000 bytes.
    pub fn new(parent: Option<usize>, rate: Rate) -> Self {
        let quantum = (rate.bits_per_second() / 8 / 10).clamp(1000, 200_000) as u32;
        Self { parent, rate, ceil: rate, burst: 1600, cburst: 1600, prio: 0, quantum }
    }
}

/// How packets find their leaves.
#[derive(Clone, Copy, Debug)]
pub enum Sorting<'a> {
    /// By the first of the rules, each with its class, that holds for a packet.
    Rules(&'a [(Rule, usize)]),
    /// By the class in each packet's key ([`FlowKey::class`](crate::FlowKey::class)).
    Keys,
}

/// What a class and all below it did so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ClassCount {
    /// What happened to its packets.
    pub counters: Counters,
    /// What waits.
    pub backlog: Backlog,
    /// What it sent at the expense of a class above it.
    pub borrowed: Tally,
}

impl ClassCount {
    /// What happened since `earlier`, a past value of the same class; what waits is what waits now.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let counters = self.counters.since(earlier.counters);
        Self { counters, borrowed: self.borrowed.since(earlier.borrowed), ..self }
    }
}

/// Adds what the leaves of a whole tree did to the classes above them; `parent` is the class above one.
pub fn add_up(counts: &mut [ClassCount], parent: impl Fn(usize) -> Option<usize>) {
    for class in (0..counts.len()).rev() {
        if let Some(parent) = parent(class) {
            counts[parent].counters = counts[parent].counters + counts[class].counters;
            counts[parent].backlog = counts[parent].backlog + counts[class].backlog;
        }
    }
}

/// A leaf: which class it is, and its queue.
#[derive(Clone, Debug)]
struct Leaf<Q> {
    class: usize,
    prio: u8,
    /// What its queue knows of its rate.
    rate: Rate,
    queue: Q,
}

/// A tree of classes with queues `Q`: one discipline with one set of books.
#[derive(Clone, Debug)]
pub struct Htb<Q> {
    tree: Tree,
    leaves: Box<[Leaf<Q>]>,
    /// The leaf of each class that is one.
    leaf_of: Box<[u32]>,
    /// Without rules the keys of packets tell their classes.
    rules: Option<Rules>,
    framing: Framing,
    backlog: Backlog,
    counters: Counters,
    /// When the first of the queues wants its timer.
    timer: Option<Instant>,
}

/// Why there can be no such tree: which class, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeError {
    /// The number of the class.
    pub class: usize,
    /// What is wrong there.
    pub key: &'static str,
    /// What is allowed.
    pub allowed: &'static str,
}

impl<Q> Htb<Q> {
    /// A tree of `classes`; `queue` makes the queue of each that has no children, for the environment
    /// that it will have. A packet that finds no leaf by its `sorting` goes to the last one.
    ///
    /// # Errors
    /// Classes that make no tree, or whose settings do not fit, as `wrong` tells it; those of `queue`.
    pub fn new<E>(
        classes: &[Class],
        sorting: Sorting<'_>,
        env: &Env,
        wrong: impl Fn(TreeError) -> E,
        mut queue: impl FnMut(usize, &Env) -> Result<Q, E>,
    ) -> Result<Self, E> {
        check(classes).map_err(&wrong)?;
        let mut leaves = Vec::new();
        let mut leaf_of = vec![u32::MAX; classes.len()];
        let mut inner = vec![false; classes.len()];
        classes.iter().filter_map(|class| class.parent).for_each(|parent| inner[parent] = true);
        for (number, class) in classes.iter().enumerate().filter(|(number, _)| !inner[*number]) {
            leaf_of[number] = leaves.len() as u32;
            let env = Env { rate: class.ceil.min(env.rate), ..*env };
            let queue = queue(number, &env)?;
            leaves.push(Leaf { class: number, prio: class.prio, rate: env.rate, queue });
        }
        let of = |(rule, class): &(Rule, usize)| match leaf_of.get(*class) {
            Some(&leaf) if leaf != u32::MAX => Ok((rule.clone(), leaf)),
            _ => Err(wrong(TreeError {
                class: *class,
                key: "rule",
                allowed: "only with classes that have no children",
            })),
        };
        let rules = match sorting {
            Sorting::Rules(all) => Some(Rules::new(all.iter().map(of).collect::<Result<_, _>>()?)),
            Sorting::Keys => None,
        };
        let deep = |class| TreeError { class, key: "parent", allowed: "eight levels at most" };
        Ok(Self {
            tree: Tree::new(classes, env.now).map_err(|class| wrong(deep(class)))?,
            leaves: leaves.into(),
            leaf_of: leaf_of.into(),
            rules,
            framing: env.framing,
            backlog: Backlog::default(),
            counters: Counters::default(),
            timer: None,
        })
    }

    /// This tree, with the timers of its queues.
    #[must_use]
    pub fn with_timers<P: Copy>(mut self) -> Self
    where
        Q: Qdisc<P>,
    {
        self.set_timer();
        self
    }

    /// Other rates, ceils, bursts and quanta from `env.now` on, of classes that are the same otherwise. Packets
    /// stay, and queues learn their new rates.
    pub fn retune<P: Copy>(&mut self, classes: &[Class], env: &Env)
    where
        Q: Qdisc<P>,
    {
        for leaf in &mut self.leaves {
            let ceil = classes[leaf.class].ceil;
            if !self.tree.has_ceil(leaf.class, ceil) {
                leaf.rate = ceil.min(env.rate);
                leaf.queue.rate_changed(&Env { rate: leaf.rate, ..*env });
            }
        }
        for (number, class) in classes.iter().enumerate() {
            self.tree.change(number, class, env.now);
        }
    }

    /// Gives the queues of its leaves other parameters: `tune` has them in their order, each with the rate that it
    /// knows.
    pub fn tune<P: Copy>(&mut self, mut tune: impl FnMut(usize, Rate, &mut Q))
    where
        Q: Qdisc<P>,
    {
        for (n, leaf) in self.leaves.iter_mut().enumerate() {
            tune(n, leaf.rate, &mut leaf.queue);
        }
        self.set_timer();
    }

    fn set_timer<P: Copy>(&mut self)
    where
        Q: Qdisc<P>,
    {
        self.timer = self.leaves.iter().filter_map(|leaf| leaf.queue.poll_at()).min();
    }
}

/// Whether classes make a tree.
fn check(classes: &[Class]) -> Result<(), TreeError> {
    let wrong = |class, key, allowed| Err(TreeError { class, key, allowed });
    if classes.is_empty() {
        return wrong(0, "class", "one class at least");
    }
    for (number, class) in classes.iter().enumerate() {
        match class.parent {
            None if number > 0 => return wrong(number, "parent", "one class without a parent"),
            Some(parent) if parent >= number => {
                return wrong(number, "parent", "a class that comes before");
            }
            _ => {}
        }
        if class.ceil < class.rate {
            return wrong(number, "ceil", "the class's rate at least");
        }
        if usize::from(class.prio) >= PRIOS {
            return wrong(number, "prio", "0 … 7");
        }
        if class.quantum == 0 {
            return wrong(number, "quantum", "1 byte at least");
        }
    }
    Ok(())
}

impl<Q> Htb<Q> {
    /// The leaf of a packet.
    #[inline]
    fn leaf(&self, meta: &Meta) -> usize {
        let found = match &self.rules {
            Some(rules) => rules.find(meta.flow),
            None => {
                let leaf = self.leaf_of.get(usize::from(meta.flow.class()));
                leaf.filter(|leaf| **leaf != u32::MAX).map(|leaf| *leaf as usize)
            }
        };
        found.unwrap_or(self.leaves.len() - 1)
    }

    /// What each class did so far, in the order in which they were given.
    pub fn counts<P: Copy>(&self) -> Vec<ClassCount>
    where
        Q: Qdisc<P>,
    {
        let mut all: Vec<_> = self.own_counts(0..self.leaf_of.len()).collect();
        add_up(&mut all, |class| self.tree.parent(class));
        all
    }

    /// What some of the classes did so far, without the classes below them: then [`add_up`].
    pub fn own_counts<P: Copy>(&self, classes: Range<usize>) -> impl Iterator<Item = ClassCount>
    where
        Q: Qdisc<P>,
    {
        classes.map(|class| {
            let borrowed = self.tree.borrowed(class);
            match self.leaves.get(self.leaf_of[class] as usize) {
                None => ClassCount { borrowed, ..ClassCount::default() },
                Some(Leaf { queue, .. }) => {
                    ClassCount { counters: *queue.counters(), backlog: queue.backlog(), borrowed }
                }
            }
        })
    }

    /// Does something with the queue of a leaf that may change what waits there; says what waits then.
    #[inline]
    fn with<P: Copy, R>(
        &mut self,
        leaf: usize,
        out: &mut impl Outlet<P>,
        act: impl FnOnce(&mut Q, &mut Through<'_, P>) -> R,
    ) -> (R, Backlog)
    where
        Q: Qdisc<P>,
    {
        let queue = &mut self.leaves[leaf].queue;
        let before = queue.backlog();
        let done = act(queue, &mut Through::counted(out, &mut self.counters));
        let after = queue.backlog();
        self.backlog.packets = self.backlog.packets - before.packets + after.packets;
        self.backlog.bytes = self.backlog.bytes - before.bytes + after.bytes;
        (done, after)
    }
}

impl<P: Copy, Q: Qdisc<P>> Qdisc<P> for Htb<Q> {
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.counters.arrived.count(meta.len);
        let leaf = self.leaf(&meta);
        let ((), after) = self.with(leaf, out, |queue, tap| queue.enqueue(meta, packet, cx, tap));
        if after.packets > 0 {
            let Leaf { class, prio, .. } = self.leaves[leaf];
            self.tree.came(class, prio, cx.now);
            let ready = |queue: &Q| queue.ready_at().is_none_or(|at| at <= cx.now);
            if self.tree.is_held(class, cx.now) && ready(&self.leaves[leaf].queue) {
                self.tree.hold(class, cx.now, cx.now);
            }
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        loop {
            let turn = self.tree.next(cx.now)?;
            let leaf = self.leaf_of[turn.class] as usize;
            let (sent, after) = self.with(leaf, out, |queue, tap| queue.dequeue(cx, tap));
            let last = after.packets == 0;
            if let Some((meta, _)) = &sent {
                self.counters.departed.count(meta.len);
                let len = self.framing.on_wire(meta.len);
                self.tree.sent(turn, meta.len, len, last, cx.now);
                if last {
                    // It is asked again only once a packet has come, and learns by this that it is idle.
                    self.with(leaf, out, |queue, tap| queue.dequeue(cx, tap));
                }
                return sent;
            }
            if last {
                self.tree.ran_empty(turn.class, self.leaves[leaf].prio);
            } else {
                let soon = cx.now + Duration::from_nanos(1);
                let until = self.leaves[leaf].queue.ready_at().map_or(soon, |at| at.max(soon));
                self.tree.hold(turn.class, until, cx.now);
            }
        }
    }

    fn ready_at(&self) -> Option<Instant> {
        if self.backlog.packets > 0 { self.tree.ready_at() } else { None }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_at(&self) -> Option<Instant> {
        self.timer
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        for leaf in 0..self.leaves.len() {
            if self.leaves[leaf].queue.poll_at().is_some_and(|at| at <= cx.now) {
                let ((), after) = self.with(leaf, out, |queue, tap| queue.on_timer(cx, tap));
                if after.packets == 0 {
                    self.tree.ran_empty(self.leaves[leaf].class, self.leaves[leaf].prio);
                }
            }
        }
        self.set_timer();
    }

    /// Rates of classes stay, and so does what their queues know of them.
    fn rate_changed(&mut self, env: &Env) {
        if self.framing != env.framing {
            self.framing = env.framing;
            for leaf in &mut self.leaves {
                leaf.queue.rate_changed(&Env { rate: leaf.rate, ..*env });
            }
        }
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let busy = || self.leaves.iter().filter(|leaf| leaf.queue.backlog().packets > 0);
        sink("active", busy().count() as f64);
        sink("waiting", busy().filter(|leaf| self.tree.waits(leaf.class)).count() as f64);
    }

    /// The number of its leaf, and what waits there.
    fn observe_flow(&self, packet: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let leaf = self.leaf(packet);
        let backlog = self.leaves[leaf].queue.backlog();
        sink("flow_leaf", leaf as f64);
        sink("flow_packets", f64::from(backlog.packets));
        sink("flow_bytes", backlog.bytes as f64);
    }

    fn state(&self) -> State {
        let mut all = State { queue: size_of::<Self>() as u64, ..State::default() };
        all.queue += self.leaf_of.len() as u64 * (Tree::BYTES_PER_CLASS + 4);
        for leaf in &self.leaves {
            let own = leaf.queue.state();
            all.queue += own.queue;
            all.flows += own.flows;
            all.per_flow = all.per_flow.max(own.per_flow);
            all.per_packet = all.per_packet.max(own.per_packet);
        }
        all
    }
}
