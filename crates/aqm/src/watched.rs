//! A queue whose every call is watched.
//!
//! [`Watched`] stands around a queue, hands each call on, and tells a [`Watcher`] of it. It says what
//! was queued and what the algorithm's signals were before and after the call, which random numbers the
//! queue drew, and what became of packets. So a program can say why a packet was marked: p_m = 0.031, the coin 0.024. It
//! decides nothing and draws nothing.

use alloc::vec::Vec;

use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::packet::Meta;
use crate::qdisc::{Counters, Outlet, Qdisc, Through, answers_as_behind};
use crate::rng::{Coin, Rng};
use crate::time::Instant;

/// Sees all that a queue does.
pub trait Watcher<P> {
    /// A call is over.
    fn saw(&mut self, sight: &Sight<'_, P>);

    /// The transmitter asks next: the packet that may be looked at first, of which `before` shall tell.
    fn expects(&mut self) -> Option<Meta> {
        None
    }
}

/// What was seen of one call.
#[derive(Clone, Debug)]
pub struct Sight<'a, P> {
    /// When it was.
    pub now: Instant,
    /// What was called.
    pub call: Call<P>,
    /// What was queued before.
    pub backlog: Backlog,
    /// The algorithm's signals before, as [`Qdisc::observe`] tells them; then what else decides about
    /// the packet that arrives, or that [`Watcher::expects`] names ([`Qdisc::observe_flow`]).
    pub before: &'a [(&'static str, f64)],
    /// The algorithm's signals after it; at a departure also what is known of the packet that was sent.
    pub after: &'a [(&'static str, f64)],
    /// The random numbers that were drawn, in their order, and what for.
    pub coins: &'a [Coin],
    /// What was dropped or marked, in its order; the packet of the call or others.
    pub signals: &'a [Signalled<P>],
    /// After the call, what else decides about each of these ([`Qdisc::observe_flow`]), one's behind
    /// the other's.
    pub of_signals: &'a [(&'static str, f64)],
}

impl<P> Sight<'_, P> {
    /// The numbers that were drawn for the packet of a signal, or, if there is none of this number, for
    /// the packet of the call: at an arrival all of them, else those since the packet before was dropped.
    pub fn drawn_for(&self, number: usize) -> &[Coin] {
        if matches!(self.call, Call::Arrival(..)) {
            return self.coins;
        }
        let before = self.signals[..number].iter().rfind(|signal| !signal.marked);
        let from = before.map_or(0, |signal| signal.drawn);
        let to = self.signals.get(number).map_or(self.coins.len(), |signal| signal.drawn);
        &self.coins[from..to]
    }

    /// As `after`, of one of the packets that were dropped or marked.
    pub fn after_signal(&self, number: usize) -> impl Iterator<Item = &(&'static str, f64)> {
        let each = self.of_signals.len() / self.signals.len().max(1);
        let of_packet = !matches!(self.call, Call::Departure(None) | Call::Timer);
        let all = self.after.len() - if of_packet { each } else { 0 };
        self.after[..all].iter().chain(&self.of_signals[each * number..][..each])
    }
}

/// What a queue is called for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call<P> {
    /// A packet arrived, with this said of it.
    Arrival(Meta, P),
    /// The transmitter asked, and this was given.
    Departure(Option<(Meta, P)>),
    /// A timer.
    Timer,
}

/// A packet that was dropped or marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signalled<P> {
    /// Its metadata; if it was marked, with the mark.
    pub meta: Meta,
    /// The packet.
    pub packet: P,
    /// Why.
    pub cause: Cause,
    /// Whether it was marked, not dropped.
    pub marked: bool,
    /// So many of the call's random numbers had been drawn by then.
    pub drawn: usize,
}

/// A queue `Q` whose every call a watcher `W` sees, for as long as both are lent.
#[derive(Debug)]
pub struct Watched<'a, Q, W, P> {
    queue: &'a mut Q,
    watcher: &'a mut W,
    notes: &'a mut Notes<P>,
}

/// What is written down during a call; kept from call to call, for its room.
#[derive(Clone, Debug)]
pub struct Notes<P> {
    before: Vec<(&'static str, f64)>,
    after: Vec<(&'static str, f64)>,
    coins: Vec<Coin>,
    signals: Vec<Signalled<P>>,
    of_signals: Vec<(&'static str, f64)>,
}

impl<P> Default for Notes<P> {
    fn default() -> Self {
        let (before, after, of_signals) = (Vec::new(), Vec::new(), Vec::new());
        Self { before, after, coins: Vec::new(), signals: Vec::new(), of_signals }
    }
}

impl<'a, Q, W, P> Watched<'a, Q, W, P> {
    /// `watcher` sees what `queue` does.
    pub const fn new(queue: &'a mut Q, watcher: &'a mut W, notes: &'a mut Notes<P>) -> Self {
        Self { queue, watcher, notes }
    }
}

impl<P: Copy, Q: Qdisc<P>, W: Watcher<P>> Watched<'_, Q, W, P> {
    /// Does `act` with the queue and tells of it; `call` says from its answer what it was. `packet`
    /// arrives, or is expected to be looked at.
    fn watch<R>(
        &mut self,
        cx: &mut Cx<'_>,
        packet: Option<&Meta>,
        act: impl FnOnce(&mut Q, &mut Cx<'_>, &mut Heard<'_, P>) -> R,
        call: impl FnOnce(&R) -> Call<P>,
    ) -> R {
        let Self { queue, watcher, notes } = self;
        let Notes { before, after, coins, signals, of_signals } = notes;
        before.clear();
        after.clear();
        coins.clear();
        signals.clear();
        of_signals.clear();
        let backlog = queue.backlog();
        observe(&**queue, packet, cx.now, before);
        let mut heard = Heard { state: cx.rng.listen(), coins, signals };
        let answer = act(queue, cx, &mut heard);
        cx.rng.heard_since(heard.state, coins);
        let call = call(&answer);
        let own = match &call {
            Call::Arrival(meta, _) | Call::Departure(Some((meta, _))) => Some(meta),
            Call::Departure(None) | Call::Timer => None,
        };
        observe(&**queue, own, cx.now, after);
        for signal in signals.iter() {
            observe_flow(&**queue, &signal.meta, cx.now, of_signals);
        }
        let now = cx.now;
        watcher.saw(&Sight { now, call, backlog, before, after, coins, signals, of_signals });
        answer
    }
}

/// Writes down a queue's signals, and what else decides about a packet, if there is one.
fn observe<P: Copy, Q: Qdisc<P>>(
    queue: &Q,
    packet: Option<&Meta>,
    now: Instant,
    into: &mut Vec<(&'static str, f64)>,
) {
    queue.observe(now, &mut |name, value| into.push((name, value)));
    if let Some(packet) = packet {
        observe_flow(queue, packet, now, into);
    }
}

/// Writes down what else decides about a packet.
fn observe_flow<P: Copy, Q: Qdisc<P>>(
    queue: &Q,
    packet: &Meta,
    now: Instant,
    into: &mut Vec<(&'static str, f64)>,
) {
    queue.observe_flow(packet, now, &mut |name, value| into.push((name, value)));
}

/// What is heard during a call.
struct Heard<'a, P> {
    /// The queue's stream as it was when it was last asked.
    state: Rng,
    coins: &'a mut Vec<Coin>,
    signals: &'a mut Vec<Signalled<P>>,
}

impl<P> Heard<'_, P> {
    fn signal(&mut self, meta: &Meta, packet: P, cause: Cause, marked: bool) {
        let drawn = self.coins.len();
        self.signals.push(Signalled { meta: *meta, packet, cause, marked, drawn });
    }
}

/// Writes down what is reported and hands it on.
struct Noting<'a, 'b, P>(&'a mut dyn Outlet<P>, &'a mut Heard<'b, P>);

impl<P: Copy> Outlet<P> for Noting<'_, '_, P> {
    fn dropped(&mut self, meta: &Meta, packet: P, cause: Cause, now: Instant) {
        self.1.signal(meta, packet, cause, false);
        self.0.dropped(meta, packet, cause, now);
    }

    fn marked(&mut self, meta: &Meta, packet: &P, cause: Cause, now: Instant) {
        self.1.signal(meta, *packet, cause, true);
        self.0.marked(meta, packet, cause, now);
    }

    fn drawn(&mut self, rng: &Rng) {
        rng.drawn_since(&mut self.1.state, self.1.coins);
        self.0.drawn(rng);
    }
}

impl<P: Copy, Q: Qdisc<P>, W: Watcher<P>> Qdisc<P> for Watched<'_, Q, W, P> {
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.watch(
            cx,
            Some(&meta),
            |queue, cx, notes| {
                queue.enqueue(meta, packet, cx, &mut Through::to(&mut Noting(out, notes)))
            },
            |()| Call::Arrival(meta, packet),
        );
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        let expected = self.watcher.expects();
        self.watch(
            cx,
            expected.as_ref(),
            |queue, cx, notes| queue.dequeue(cx, &mut Through::to(&mut Noting(out, notes))),
            |&given| Call::Departure(given),
        )
    }

    answers_as_behind!();

    fn poll_at(&self) -> Option<Instant> {
        self.queue.poll_at()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.watch(
            cx,
            None,
            |queue, cx, notes| queue.on_timer(cx, &mut Through::to(&mut Noting(out, notes))),
            |()| Call::Timer,
        );
    }

    fn rate_changed(&mut self, env: &Env) {
        self.queue.rate_changed(env);
    }
}
