//! A queue whose parameters change at given times, as an operator changes them.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::context::{Backlog, Cx, Env, State};
use crate::packet::Meta;
use crate::qdisc::{Counters, Outlet, Qdisc, Through, answers_as_behind};
use crate::time::Instant;
use crate::units::Rate;

/// Parameters of an algorithm, as pairs of name and text; the others have their defaults.
pub type Settings = Vec<(String, String)>;

/// A queue whose parameters can change while it runs.
pub trait Tunable {
    /// Why they cannot.
    type Error;

    /// The queue of the algorithm `name` has these `settings` over its defaults from `env.now` on. Only parameters
    /// of [`About::live`](crate::About::live) may differ from those that it has. Packets stay, and so does what
    /// the algorithm has learned.
    ///
    /// # Errors
    /// Parameters that do not exist or do not fit; nothing has changed then.
    fn retune(
        &mut self,
        name: &str,
        settings: &[(&str, &str)],
        env: &Env,
    ) -> Result<(), Self::Error>;
}

/// A queue `Q` that has other parameters from given instants on. A change comes before all else that happens at its
/// instant.
#[derive(Clone, Debug)]
pub struct Tuned<Q> {
    queue: Q,
    name: String,
    env: Env,
    /// Those to come, the next first.
    changes: VecDeque<(Instant, Settings)>,
    /// What did not fit the rate of the link when its time came.
    waiting: Option<Settings>,
}

impl<Q: Tunable + Clone> Tuned<Q> {
    /// A `queue` of the algorithm `name` that was built with `env`, and its `changes`, in order.
    ///
    /// # Errors
    /// The number of a change that is not possible, and why.
    pub fn new(
        queue: Q,
        name: &str,
        env: &Env,
        changes: Vec<(Instant, Settings)>,
    ) -> Result<Self, (usize, Q::Error)> {
        let tuned =
            Self { queue, name: name.into(), env: *env, changes: changes.into(), waiting: None };
        let mut tried = tuned.clone();
        for n in 0..tuned.changes.len() {
            tried.change().map_err(|error| (n, error))?;
        }
        Ok(tuned)
    }
}

impl<Q: Tunable> Tuned<Q> {
    /// It has these `settings` from `at` on, which is not before its other changes. One at the same instant has no
    /// effect.
    pub fn change_at(&mut self, at: Instant, settings: Settings) {
        if self.changes.back().is_some_and(|(last, _)| *last == at) {
            self.changes.pop_back();
        }
        self.changes.push_back((at, settings));
    }

    /// The rate of its link, as far as it knows.
    pub fn rate(&self) -> Rate {
        self.env.rate
    }

    /// Makes the next change.
    fn change(&mut self) -> Result<(), Q::Error> {
        let Some((now, settings)) = self.changes.pop_front() else { return Ok(()) };
        self.change_to(settings, now)
    }

    fn change_to(&mut self, settings: Settings, now: Instant) -> Result<(), Q::Error> {
        let pairs: Vec<_> = settings.iter().map(|(key, text)| (&key[..], &text[..])).collect();
        let changed = self.queue.retune(&self.name, &pairs, &Env { now, ..self.env });
        self.waiting = changed.is_err().then_some(settings);
        changed
    }

    /// Makes the changes up to `now`. One that does not fit the rate of the link waits for the next rate or change.
    fn catch_up(&mut self, now: Instant) {
        while self.changes.front().is_some_and(|(at, _)| *at <= now) {
            _ = self.change();
        }
    }
}

impl<P: Copy, Q: Qdisc<P> + Tunable> Qdisc<P> for Tuned<Q> {
    #[inline(never)]
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.catch_up(cx.now);
        self.queue.enqueue(meta, packet, cx, &mut Through::to(out));
    }

    #[inline(never)]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        self.catch_up(cx.now);
        self.queue.dequeue(cx, &mut Through::to(out))
    }

    answers_as_behind!();

    fn poll_at(&self) -> Option<Instant> {
        let next = self.changes.front().map(|(at, _)| *at);
        next.into_iter().chain(self.queue.poll_at()).min()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.catch_up(cx.now);
        if self.queue.poll_at().is_some_and(|at| at <= cx.now) {
            self.queue.on_timer(cx, &mut Through::to(out));
        }
    }

    fn rate_changed(&mut self, env: &Env) {
        self.catch_up(env.now);
        self.env = *env;
        self.queue.rate_changed(env);
        if let Some(settings) = self.waiting.take() {
            _ = self.change_to(settings, env.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fifo;
    use crate::any::{BuildError, configure};
    use crate::packet::Ecn;
    use crate::policy::lab::env;
    use crate::policy::{Policy, ared, ared_feng, bernoulli, blue, pi, pie, red};
    use crate::qdisc::Discipline;
    use crate::rng::Rng;
    use crate::time::Duration;
    use std::vec;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn set(name: &str, value: &str) -> Settings {
        vec![(name.into(), value.into())]
    }

    /// As a queue of any type does it, without all of them compiled for these tests.
    impl<A: Policy> Tunable for Fifo<A, ()> {
        type Error = BuildError;

        fn retune(
            &mut self,
            _: &str,
            settings: &[(&str, &str)],
            env: &Env,
        ) -> Result<(), BuildError> {
            let config = configure(&[], settings)?;
            Discipline::retune(self, &config, env).map_err(BuildError::Config)
        }
    }

    fn tuned<A: Policy + Clone>(
        settings: &[(&str, &str)],
        changes: Vec<(Instant, Settings)>,
    ) -> Result<Tuned<Fifo<A, ()>>, (usize, BuildError)> {
        let config = configure(&[], settings).unwrap();
        let queue = Fifo::new(&config, &env(100), &mut Rng::new(1, 0)).unwrap();
        Tuned::new(queue, "", &env(100), changes)
    }

    /// Whether the queue, which is emptied, takes a packet of each millisecond.
    fn takes(queue: &mut impl Qdisc<()>, times: core::ops::Range<u64>) -> Vec<bool> {
        let mut rng = Rng::new(1, 0);
        let one = |ms| {
            let cx = &mut Cx { now: at(ms), rng: &mut rng };
            let meta = Meta { len: 1000, ecn: Ecn::NotEct, ..Meta::default() };
            queue.enqueue(meta, (), cx, &mut ());
            queue.dequeue(cx, &mut ()).is_some()
        };
        times.map(one).collect()
    }

    /// BLUE's p_m behind each question of an idle link, one a millisecond.
    fn idle(queue: &mut impl Qdisc<()>, times: core::ops::Range<u64>) -> Vec<f64> {
        let mut seen = Vec::new();
        for ms in times {
            let mut rng = Rng::new(1, 0);
            assert!(queue.dequeue(&mut Cx { now: at(ms), rng: &mut rng }, &mut ()).is_none());
            queue.observe(at(ms), &mut |_, value| seen.push(value));
        }
        seen
    }

    #[test]
    fn a_change_comes_before_what_happens_at_its_instant() {
        let changes = vec![(at(2), set("p", "1")), (at(4), set("p", "0"))];
        let mut queue = tuned::<bernoulli::Bernoulli>(&[("p", "0")], changes).unwrap();
        assert_eq!(takes(&mut queue, 0..6), [true, true, false, false, true, true]);
    }

    /// BLUE's p_m stays what losses made it, and then falls by the new decrement.
    #[test]
    fn what_was_learned_stays() {
        let fast = [("freeze_time", "0s"), ("decrement", "0"), ("initial", "0.5")];
        let changed = vec![
            ("freeze_time".into(), "0s".into()),
            ("decrement".into(), "0.125".into()),
            ("initial".into(), "0.5".into()),
        ];
        let mut queue = tuned::<blue::Blue>(&fast, vec![(at(5), changed)]).unwrap();
        assert_eq!(idle(&mut queue, 0..8), [0.5, 0.5, 0.5, 0.5, 0.5, 0.375, 0.25, 0.125]);
    }

    #[test]
    fn a_change_that_cannot_be_is_named() {
        let error = |changes| tuned::<red::Red>(&[], changes).err().unwrap();
        let fits = (at(1), set("max_th", "50p"));
        let (n, e) = error(vec![fits.clone(), (at(2), set("max_th", "0.1p"))]);
        assert_eq!(n, 1);
        assert!(matches!(e, BuildError::Parameter(name, _) if name == "max_th"));
        let (n, e) = error(vec![fits, (at(2), set("min_th", "90p"))]);
        assert_eq!((n, matches!(e, BuildError::Config(_))), (1, true));
    }

    /// PI's gains for a thousand flows do not fit a low rate: the change is made once they do.
    #[test]
    fn a_change_that_does_not_fit_the_rate_waits_for_one_that_it_fits() {
        let change = vec![("q_ref".into(), "5p".into()), ("flows".into(), "1000".into())];
        let mut tuned = tuned::<pi::Pi>(&[], vec![(at(3), change)]).unwrap();
        let slow = Env { rate: Rate::new(10_000).unwrap(), ..env(100) };
        tuned.rate_changed(&Env { now: at(2), ..slow });
        tuned.catch_up(at(3));
        assert!(tuned.waiting.is_some());
        tuned.rate_changed(&Env { now: at(4), ..env(100) });
        assert!(tuned.waiting.is_none() && tuned.changes.is_empty());
    }

    /// BLUE's freeze in force, a timer and bounds of what is adapted follow their parameters.
    #[test]
    fn what_runs_is_within_the_new_parameters() {
        let long = [("freeze_time", "10s"), ("initial", "0.5"), ("decrement", "0.125")];
        let mut short: Settings = Vec::new();
        short.extend(long.iter().map(|(name, value)| (String::from(*name), String::from(*value))));
        short[0].1 = "1ms".into();
        let mut queue = tuned::<blue::Blue>(&long, vec![(at(5), short)]).unwrap();
        assert_eq!(
            idle(&mut queue, 0..9),
            [0.375, 0.375, 0.375, 0.375, 0.375, 0.25, 0.25, 0.125, 0.125]
        );

        let changes = vec![(at(5), set("t_update", "10ms"))];
        let mut queue = tuned::<pie::Pie>(&[("t_update", "3600s")], changes).unwrap();
        assert_eq!(queue.poll_at(), Some(at(5)));
        queue.on_timer(&mut Cx { now: at(5), rng: &mut Rng::new(1, 0) }, &mut ());
        assert_eq!(queue.poll_at(), Some(at(15)));

        bounds_of_what_is_adapted::<ared::Ared>();
        bounds_of_what_is_adapted::<ared_feng::AredFeng>();
    }

    fn bounds_of_what_is_adapted<A: Policy + Clone>() {
        let changes = vec![(at(5), set("max_p_max", "0.05")), (at(6), set("max_p_min", "0.2"))];
        let mut queue = tuned::<A>(&[], changes).unwrap();
        let mut max_p = |ms| {
            queue.dequeue(&mut Cx { now: at(ms), rng: &mut Rng::new(1, 0) }, &mut ());
            let mut found = 0.0;
            queue.observe(at(ms), &mut |name, value| {
                found = if name == "max_p" { value } else { found };
            });
            found
        };
        assert_eq!([4, 5, 6].map(&mut max_p), [0.1, 0.05, 0.2], "{}", core::any::type_name::<A>());
    }
}
