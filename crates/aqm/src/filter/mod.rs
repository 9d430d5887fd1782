//! Stages in front of a queue: a filter sees each packet first and may drop it, hands the others on
//! to the queue, and hears what the queue drops and marks.
//!
//! ```text
//! arrive -> Filter::drops -> (drop: Filter::CAUSE) | Qdisc::enqueue -> ...
//!           Filter::signalled <- what the queue drops and marks, whenever it does
//! ```
//!
//! [`Prefilter`] makes one queue discipline of a filter and any queue; `AnyQdisc::filtered` puts one
//! before a queue that was chosen by name.

use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::packet::Meta;
use crate::param::{ConfigError, Params};
use crate::qdisc::{Counters, Discipline, Outlet, Qdisc, Through};
use crate::rng::Rng;
use crate::time::Instant;

pub mod gate;
pub mod policer;
pub mod red_pd;

/// An algorithm that stands before a queue.
pub trait Filter: Sized {
    /// Parameters, with their defaults and documentation.
    type Config: Params + Default + Clone;
    /// Why it drops.
    const CAUSE: Cause = Cause::Penalty;

    /// The filter at rest at `env.now`, before a queue of `env`.
    ///
    /// # Errors
    /// When parameters that are fine alone do not fit together.
    fn new(config: &Self::Config, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError>;

    /// Whether an arriving packet is dropped; else the queue has it next. `congested` asks the queue
    /// whether so many packets wait, at the least, and there is congestion
    /// ([`Policy::congested`](crate::Policy::congested)).
    fn drops(&mut self, pkt: &Meta, congested: impl FnOnce(u32) -> bool, cx: &mut Cx<'_>) -> bool;

    /// The queue dropped or marked a packet.
    fn signalled(&mut self, _pkt: &Meta) {}

    /// When the filter wants [`on_timer`](Filter::on_timer).
    fn poll_at(&self) -> Option<Instant> {
        None
    }

    /// The time given by [`poll_at`](Filter::poll_at) has come; early calls are harmless.
    fn on_timer(&mut self, _cx: &mut Cx<'_>) {}

    /// What the filter remembers.
    fn state(&self) -> State;

    /// Reports each signal by name as it stands at `now`, always all of them and in one order.
    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64));

    /// Reports what is known of the flow of `pkt`, as [`Qdisc::observe_flow`] does.
    fn observe_flow(&self, _pkt: &Meta, _now: Instant, _sink: &mut dyn FnMut(&'static str, f64)) {}
}

/// A queue `Q` behind a filter `F`: one discipline with one set of books.
#[derive(Clone, Debug)]
pub struct Prefilter<F, Q> {
    filter: F,
    queue: Q,
    counters: Counters,
}

impl<F: Filter, Q> Prefilter<F, Q> {
    /// A filter before `queue`, which must be empty.
    ///
    /// # Errors
    /// When the filter's parameters do not fit together.
    pub fn before(
        queue: Q,
        config: &F::Config,
        env: &Env,
        rng: &mut Rng,
    ) -> Result<Self, ConfigError> {
        Ok(Self { filter: F::new(config, env, rng)?, queue, counters: Counters::default() })
    }

    /// The queue behind, as it is.
    pub fn behind(&self) -> &Q {
        &self.queue
    }

    /// The queue behind.
    pub fn behind_mut(&mut self) -> &mut Q {
        &mut self.queue
    }

    /// The filter.
    pub fn filter_mut(&mut self) -> &mut F {
        &mut self.filter
    }
}

impl<P: Copy, F: Filter, Q: Qdisc<P>> Qdisc<P> for Prefilter<F, Q> {
    #[inline]
    fn enqueue(&mut self, mut meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        let (Self { filter, queue, counters }, now) = (self, cx.now);
        meta.arrived = now;
        counters.arrived.count(meta.len);
        let congested = |least| queue.backlog().packets >= least && queue.congested(now);
        if filter.drops(&meta, congested, cx) {
            counters.dropped[F::CAUSE as usize].count(meta.len);
            out.drawn(cx.rng);
            return out.dropped(&meta, packet, F::CAUSE, now);
        }
        let heard = &mut |meta: &Meta| filter.signalled(meta);
        queue.enqueue(meta, packet, cx, &mut Through::counted(out, counters).heard_by(heard));
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        let Self { filter, queue, counters } = self;
        let heard = &mut |meta: &Meta| filter.signalled(meta);
        let sent = queue.dequeue(cx, &mut Through::counted(out, counters).heard_by(heard));
        if let Some((meta, _)) = &sent {
            counters.departed.count(meta.len);
        }
        sent
    }

    fn ready_at(&self) -> Option<Instant> {
        self.queue.ready_at()
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn congested(&self, now: Instant) -> bool {
        self.queue.congested(now)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_at(&self) -> Option<Instant> {
        let (filter, queue) = (self.filter.poll_at(), self.queue.poll_at());
        filter.into_iter().chain(queue).min()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        let Self { filter, queue, counters } = self;
        filter.on_timer(cx);
        let heard = &mut |meta: &Meta| filter.signalled(meta);
        queue.on_timer(cx, &mut Through::counted(out, counters).heard_by(heard));
    }

    fn rate_changed(&mut self, env: &Env) {
        self.queue.rate_changed(env);
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.filter.observe(now, sink);
        self.queue.observe(now, sink);
    }

    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.filter.observe_flow(packet, now, sink);
        self.queue.observe_flow(packet, now, sink);
    }

    /// With flows told apart by both, the bytes for one are the sum and the number is the larger.
    fn state(&self) -> State {
        let (filter, queue) = (self.filter.state(), self.queue.state());
        State {
            queue: filter.queue + queue.queue,
            per_flow: filter.per_flow + queue.per_flow,
            flows: filter.flows.max(queue.flows),
            per_packet: filter.per_packet + queue.per_packet,
        }
    }
}

/// The parameters are those of both; one that both have is set for both.
impl<P: Copy, F: Filter, Q: Discipline<P>> Discipline<P> for Prefilter<F, Q> {
    type Config = (F::Config, Q::Config);

    fn new((filter, queue): &Self::Config, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        Self::before(Q::new(queue, env, rng)?, filter, env, rng)
    }

    fn retune(&mut self, (_, queue): &Self::Config, env: &Env) -> Result<(), ConfigError> {
        self.queue.retune(queue, env)
    }
}

impl<Q> Prefilter<gate::Gate, Q> {
    /// An open gate before `queue`, which must be empty.
    pub fn open(queue: Q) -> Self {
        Self { filter: gate::Gate::default(), queue, counters: Counters::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::Fifo;
    use crate::packet::{Ecn, FlowKey};
    use crate::param::{Value as _, params};
    use crate::policy::ared::Ared;
    use crate::policy::fred::Fred;
    use crate::policy::lab::{config, env};
    use crate::policy::red::Red;
    use crate::time::Duration;
    use std::vec;
    use std::vec::Vec;

    params! {
        /// None.
        pub(super) struct NoConfig {}
    }

    /// Drops packets of flow 9 in congestion, and notes the flows of which it hears.
    #[derive(Default)]
    struct Nine {
        heard: Vec<u64>,
        ticks: Vec<Instant>,
    }

    impl Filter for Nine {
        type Config = NoConfig;
        fn new(_: &NoConfig, _: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
            Ok(Self::default())
        }
        fn drops(
            &mut self,
            pkt: &Meta,
            congested: impl FnOnce(u32) -> bool,
            _: &mut Cx<'_>,
        ) -> bool {
            pkt.flow == FlowKey(9) && congested(0)
        }
        fn signalled(&mut self, pkt: &Meta) {
            self.heard.push(pkt.flow.0);
        }
        fn poll_at(&self) -> Option<Instant> {
            self.ticks.is_empty().then(|| Instant::ZERO + Duration::from_millis(700))
        }
        fn on_timer(&mut self, cx: &mut Cx<'_>) {
            if self.poll_at().is_some_and(|at| at <= cx.now) {
                self.ticks.push(cx.now);
            }
        }
        fn state(&self) -> State {
            State::default()
        }
        fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
            sink("nines", self.heard.len() as f64);
        }
    }

    /// Which packets were dropped, and marked.
    #[derive(Default)]
    struct Log(Vec<(u32, Cause)>, Vec<u32>);

    impl Outlet<u32> for Log {
        fn dropped(&mut self, _: &Meta, packet: u32, cause: Cause, _: Instant) {
            self.0.push((packet, cause));
        }
        fn marked(&mut self, _: &Meta, packet: &u32, _: Cause, _: Instant) {
            self.1.push(*packet);
        }
    }

    /// A RED whose average is the queue: congestion from three packets on, signals from five on.
    const RED: [(&str, &str); 5] =
        [("w_q", "1"), ("min_th", "3p"), ("max_th", "5p"), ("max_p", "0"), ("gentle", "false")];

    #[test]
    fn the_filter_is_at_rest_below_min_th_and_hears_of_drops_and_marks() {
        let mut rng = Rng::new(1, 0);
        let both = (NoConfig {}, config(&RED));
        let mut q = Prefilter::<Nine, Fifo<Red, u32>>::new(&both, &env(7), &mut rng).unwrap();
        let mut log = Log::default();
        // Each finds as many as came before: the fourth is the first in congestion.
        for (id, flow) in [9, 9, 9, 9, 1, 9].into_iter().enumerate() {
            let meta = Meta { flow: FlowKey(flow), len: 1000, ..Meta::default() };
            let mut cx = Cx { now: Instant::ZERO, rng: &mut rng };
            q.enqueue(meta, id as u32, &mut cx, &mut log);
        }
        assert_eq!(log.0, [(5, Cause::Penalty)], "the average is of the last arrival at the queue");
        // Five wait.
        for (id, ecn) in [(6, Ecn::Ect0), (7, Ecn::NotEct), (8, Ecn::Ect0), (9, Ecn::Ect0)] {
            let meta = Meta { flow: FlowKey(10 * id), len: 1000, ecn, ..Meta::default() };
            let mut cx = Cx { now: Instant::ZERO, rng: &mut rng };
            q.enqueue(meta, id as u32, &mut cx, &mut log);
        }
        assert_eq!(log.1, [6, 8]);
        assert_eq!(log.0[1..], [(7, Cause::Early), (9, Cause::Overflow)]);
        assert_eq!(q.filter.heard, [60, 70, 80, 90]);
        let c = q.counters();
        assert_eq!((c.arrived.packets, q.backlog().packets), (10, 7));
        assert_eq!(c.dropped.map(|t| t.packets), [1, 1, 1, 0]);
        assert_eq!(c.all_marked().packets, 2);
        let mut cx = Cx { now: Instant::ZERO, rng: &mut rng };
        assert!(q.dequeue(&mut cx, &mut log).is_some());
        assert_eq!(q.counters().departed.packets, 1);
    }

    #[test]
    fn both_have_their_timers_and_signals() {
        let mut rng = Rng::new(1, 0);
        let both = (NoConfig {}, config(&[]));
        let mut q = Prefilter::<Nine, Fifo<Ared, u32>>::new(&both, &env(7), &mut rng).unwrap();
        let mut at = Vec::new();
        for _ in 0..3 {
            let now = q.poll_at().unwrap();
            at.push(now.as_nanos() / 1_000_000);
            q.on_timer(&mut Cx { now, rng: &mut rng }, &mut ());
        }
        assert_eq!(at, [500, 700, 1000]);
        assert_eq!(q.filter.ticks.len(), 1);
        let mut names = vec![];
        q.observe(Instant::ZERO, &mut |name, _| names.push(name));
        assert_eq!(names, ["nines", "avg", "p_b", "p_a", "max_p"]);
    }

    #[test]
    fn a_parameter_of_both_is_one_parameter() {
        let mut both: (red_pd::RedPdConfig, crate::policy::red::RedConfig) = config(&[]);
        both.set("mode", "bytes").unwrap();
        assert_eq!(both.0.mode.show(), both.1.mode.show());
        assert_eq!(both.get("mode").as_deref(), Some("bytes"));
        assert!(both.set("mode", "bits").unwrap_err().is_some());
        assert!(both.set("mood", "bytes").unwrap_err().is_none());
        both.set("w_q", "0.5").unwrap();
        let names: Vec<_> = <(red_pd::RedPdConfig, crate::policy::red::RedConfig)>::table();
        assert_eq!(names.iter().filter(|p| p.name == "mode").count(), 1);
    }

    /// FRED remembers something for each flow and each packet, RED-PD for more flows.
    #[test]
    fn what_is_remembered_is_that_of_both() {
        let (env, mut rng) = (env(100), Rng::new(1, 0));
        let red_pd = red_pd::RedPd::new(&config(&[]), &env, &mut rng).unwrap().state();
        let fred = || Fifo::<Fred, ()>::new(&config(&[]), &env, &mut Rng::new(1, 0)).unwrap();
        let of_fred = fred().state();
        let both = Prefilter::<red_pd::RedPd, _>::before(fred(), &config(&[]), &env, &mut rng);
        let both = both.unwrap().state();
        assert_eq!(both.queue - red_pd.queue, of_fred.queue);
        assert_eq!(both.per_flow - red_pd.per_flow, of_fred.per_flow);
        assert_eq!((both.flows, both.per_packet), (2048, of_fred.per_packet));
        assert!(of_fred.per_flow > 0 && of_fred.per_packet > 0);
    }
}
