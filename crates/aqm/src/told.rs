//! A queue that learns the rate of its link whenever that changes.
//!
//! A queue discipline learns of another rate by its departures, as in reality. Where whoever changes
//! the rate also configures the queue (a shaper, a modem), it may know it: [`Told`] hands each new
//! rate on ([`Qdisc::rate_changed`]), at the instant at which it holds.

use alloc::sync::Arc;

use crate::context::{Backlog, Cx, Env, State};
use crate::packet::Meta;
use crate::qdisc::{Counters, Outlet, Qdisc, Through, answers_as_behind};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// When a link has which rate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rates {
    /// When a rate begins, ascending from 0 on, and the rate; an outage has none and is not handed on.
    pub steps: Arc<[(Duration, Option<Rate>)]>,
    /// After which all of it begins again, if it does; at least the time of the last step.
    pub period: Option<Duration>,
}

/// A queue `Q` that learns each rate.
#[derive(Clone, Debug)]
pub struct Told<Q> {
    queue: Q,
    env: Env,
    rates: Rates,
    /// The step that comes next, and the beginning of its round; none if nothing changes any more.
    next: Option<(usize, Instant)>,
}

impl<Q> Told<Q> {
    /// The queue behind, as it is.
    pub fn behind(&self) -> &Q {
        &self.queue
    }

    /// The queue behind.
    pub fn behind_mut(&mut self) -> &mut Q {
        &mut self.queue
    }

    /// A `queue` that was built with `env`, over a link whose first round of `rates` begins at time 0.
    pub fn new(queue: Q, env: &Env, rates: Rates) -> Self {
        let mut told = Self { queue, env: *env, rates, next: None };
        told.begin(env.now);
        told
    }

    /// Goes to the first step from `now` on.
    fn begin(&mut self, now: Instant) {
        let rounds = self.rates.period.map_or(0, |p| now.as_nanos() / p.as_nanos().max(1));
        let passed = self.rates.period.unwrap_or_default().as_nanos() * rounds;
        self.next = Some((0, Instant::from_nanos(passed)));
        while self.next_at().is_some_and(|at| at < now) {
            self.advance();
        }
    }

    /// When the next step begins.
    fn next_at(&self) -> Option<Instant> {
        self.next.map(|(step, round)| round + self.rates.steps[step].0)
    }

    /// Goes on to the step behind that.
    fn advance(&mut self) {
        self.next = self.next.and_then(|(step, round)| {
            if step + 1 < self.rates.steps.len() {
                return Some((step + 1, round));
            }
            self.rates.period.filter(|&p| p > Duration::ZERO).map(|period| (0, round + period))
        });
    }

    /// The link has other rates from `env.now` on, where it has that of `env`.
    pub fn follow<P: Copy>(&mut self, env: &Env, rates: Rates)
    where
        Q: Qdisc<P>,
    {
        self.rates = rates;
        self.begin(env.now);
        self.env = *env;
        self.queue.rate_changed(env);
    }
}

impl<P: Copy, Q: Qdisc<P>> Qdisc<P> for Told<Q> {
    #[inline(never)]
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.queue.enqueue(meta, packet, cx, &mut Through::to(out));
    }

    #[inline(never)]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        self.queue.dequeue(cx, &mut Through::to(out))
    }

    answers_as_behind!();

    fn poll_at(&self) -> Option<Instant> {
        self.next_at().into_iter().chain(self.queue.poll_at()).min()
    }

    /// At one instant the new rate comes before the queue's own timers.
    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        while let Some(at) = self.next_at().filter(|&at| at <= cx.now) {
            let (step, _) = self.next.unwrap_or_default();
            if let Some(rate) = self.rates.steps[step].1
                && rate != self.env.rate
            {
                self.env = Env { now: at, rate, ..self.env };
                self.queue.rate_changed(&self.env);
            }
            self.advance();
        }
        if self.queue.poll_at().is_some_and(|at| at <= cx.now) {
            self.queue.on_timer(cx, &mut Through::to(out));
        }
    }

    fn rate_changed(&mut self, env: &Env) {
        self.env = *env;
        self.queue.rate_changed(env);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::drop_tail::DropTail;
    use crate::policy::lab::env;
    use crate::rng::Rng;
    use crate::{Discipline, Fifo};

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn each_rate_is_told_at_its_time_and_again_in_each_round() {
        let mut rng = Rng::new(1, 0);
        let env = env(100);
        let queue = Fifo::<DropTail, ()>::new(&Default::default(), &env, &mut rng).unwrap();
        let steps = [(Duration::ZERO, Rate::new(1_000)), (ms(2), None), (ms(5), Rate::new(2_000))];
        let mut told = Told::new(queue, &env, Rates { steps: steps.into(), period: Some(ms(10)) });
        let mut seen = std::vec::Vec::new();
        while let Some(at) = told.poll_at().filter(|&at| at < Instant::ZERO + ms(18)) {
            told.on_timer(&mut Cx { now: at, rng: &mut rng }, &mut ());
            seen.push((at.as_nanos() / 1_000_000, told.env.rate.bits_per_second()));
        }
        assert_eq!(
            seen,
            [(0, 1000), (2, 1000), (5, 2000), (10, 1000), (12, 1000), (15, 2000)],
            "nothing is told of an outage"
        );
    }

    #[test]
    fn what_does_not_repeat_ends() {
        let mut rng = Rng::new(1, 0);
        let env = env(100);
        let queue = Fifo::<DropTail, ()>::new(&Default::default(), &env, &mut rng).unwrap();
        let steps = [(Duration::ZERO, Rate::new(1_000))].into();
        let mut told = Told::new(queue, &env, Rates { steps, period: None });
        told.on_timer(&mut Cx { now: Instant::ZERO, rng: &mut rng }, &mut ());
        assert_eq!((told.poll_at(), told.env.rate), (None, Rate::new(1_000).unwrap()));
    }
}
