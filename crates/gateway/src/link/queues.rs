//! A queue that may be replaced while it holds packets: what is queued leaves before what arrives from
//! then on, by the rules under which it was admitted.

use aqm::told::Rates;
use aqm::{AnyQdisc, Backlog, Counters, Cx, Env, Instant, Meta, Outlet, Qdisc, Rng, State};

use crate::link::arena::Handle;

/// The queue that packets come to, and those that it has replaced.
pub(super) struct Queues {
    /// Draws from the random numbers that it is handed.
    current: AnyQdisc<Handle>,
    /// The oldest first, each with its own random numbers.
    pub(super) replaced: Vec<(AnyQdisc<Handle>, Rng)>,
    /// What happened at queues that were replaced and are empty.
    gone: Counters,
    /// What happened at all of them; up to date once there was a change.
    all: Counters,
    /// How often the queue was replaced.
    pub(super) changes: u64,
}

impl Queues {
    pub(super) fn new(current: AnyQdisc<Handle>) -> Self {
        let none = Counters::default();
        Self { current, replaced: Vec::new(), gone: none, all: none, changes: 0 }
    }

    /// The queue that packets come to.
    pub(super) fn current(&self) -> &AnyQdisc<Handle> {
        &self.current
    }

    /// The queue that packets come to, for other parameters.
    pub(super) fn current_mut(&mut self) -> &mut AnyQdisc<Handle> {
        &mut self.current
    }

    /// Packets come to `queue` from now on; `rng` is what the present one drew from.
    pub(super) fn replace(&mut self, queue: AnyQdisc<Handle>, rng: Rng) {
        let before = std::mem::replace(&mut self.current, queue);
        if before.backlog().packets > 0 {
            self.replaced.push((before, rng));
        } else {
            self.gone = self.gone + *before.counters();
        }
        self.changes += 1;
        self.count();
    }

    /// The link has `rates` from `env.now` on, and that of `env` there.
    pub(super) fn set_rates(&mut self, env: &Env, rates: &Rates) {
        let replaced = self.replaced.iter_mut().map(|(queue, _)| queue);
        replaced.chain([&mut self.current]).for_each(|queue| queue.set_rates(env, rates.clone()));
    }

    /// Adds up what happened, if there is more than one queue to it.
    fn count(&mut self) {
        if self.changes > 0 {
            let replaced = self.replaced.iter().map(|(queue, _)| queue.counters());
            let all = replaced.chain([self.current.counters()]);
            self.all = all.fold(self.gone, |all, each| all + *each);
        }
    }
}

impl Qdisc<Handle> for Queues {
    fn enqueue(
        &mut self,
        meta: Meta,
        packet: Handle,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<Handle>,
    ) {
        self.current.enqueue(meta, packet, cx, out);
        self.count();
    }

    fn dequeue(
        &mut self,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<Handle>,
    ) -> Option<(Meta, Handle)> {
        let mut next = None;
        while let Some((queue, rng)) = self.replaced.first_mut() {
            next = queue.dequeue(&mut Cx { now: cx.now, rng }, out);
            if next.is_some() || queue.backlog().packets > 0 {
                break;
            }
            self.gone = self.gone + *queue.counters();
            self.replaced.remove(0);
        }
        if self.replaced.is_empty() {
            next = self.current.dequeue(cx, out);
        }
        self.count();
        next
    }

    fn ready_at(&self) -> Option<Instant> {
        self.replaced.first().map_or(&self.current, |(queue, _)| queue).ready_at()
    }

    fn backlog(&self) -> Backlog {
        self.replaced.iter().fold(self.current.backlog(), |all, (queue, _)| all + queue.backlog())
    }

    fn counters(&self) -> &Counters {
        if self.changes > 0 { &self.all } else { self.current.counters() }
    }

    fn poll_at(&self) -> Option<Instant> {
        let replaced = self.replaced.iter().map(|(queue, _)| queue);
        replaced.chain([&self.current]).filter_map(Qdisc::poll_at).min()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<Handle>) {
        let now = cx.now;
        let due = |queue: &AnyQdisc<Handle>| queue.poll_at().is_some_and(|at| at <= now);
        for (queue, rng) in self.replaced.iter_mut().filter(|(queue, _)| due(queue)) {
            queue.on_timer(&mut Cx { now, rng }, out);
        }
        if due(&self.current) {
            self.current.on_timer(cx, out);
        }
        self.count();
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.current.observe(now, sink);
    }

    fn state(&self) -> State {
        self.current.state()
    }
}
