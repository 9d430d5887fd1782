//! Changes while a link runs: another rate, delay, buffer or queue discipline.

use aqm::filter::policer::Policer;
use aqm::tuned::Tunable as _;
use aqm::{AnyQdisc, Env, Instant, Qdisc as _, Rng};
use link::{Impair, NEVER};

use super::refused::too_large;
use super::tins::Tins;
use super::{Link, Spec, SpecError, Wire};
use crate::link::arena::{Arena, Handle};
use crate::trouble::Trouble;

/// The next state of a [`Link`], with all parts that it needs.
pub struct Next {
    now: u64,
    spec: Spec,
    /// If another one is wanted.
    queue: Option<(AnyQdisc<Handle>, Rng)>,
    /// If the queue stays, with other parameters, its own or those of leaves.
    tuned: bool,
    slots: u32,
    on_wire: usize,
    /// If it is another one than before, and nothing else of the queue is.
    policer: Option<Policer>,
    /// If the wire is the first to impair packets.
    impair: Option<Box<Impair>>,
}

impl Link {
    /// Makes all parts for a change to `spec` at `now` (ns), up to which everything has been delivered.
    ///
    /// # Errors
    /// When there can be no such link, or too many changes are under way.
    pub fn prepare(&self, now: u64, spec: &Spec) -> Result<Next, SpecError> {
        let delay = spec.longest().as_nanos().max(self.wire.longest(now));
        let slots = spec.slots(delay, self.server.log().arena.used() as u64)?;
        Arena::fits(slots, self.server.log().arena.longest()).ok_or_else(|| too_large(slots))?;
        let mut kept = Spec {
            rate: spec.rate,
            delay: spec.delay,
            sending: spec.sending.clone(),
            impairments: spec.impairments.clone(),
            ..self.spec.clone()
        };
        if kept.policer.is_some() && spec.policer.is_some() {
            kept.policer = spec.policer;
        }
        let (mut stays, mut leaves) = (None, false);
        if let (Some(old), Some(new)) = (&kept.classes, &spec.classes) {
            stays = old.stays(new);
            leaves = old.tunes_to(new);
            if stays.is_none() {
                kept.classes.clone_from(&spec.classes);
            }
        }
        let params = kept != *spec;
        let anew = params && !kept.tunes_to(spec);
        let queue = anew.then(|| {
            if self.queue.replaced.len() == MOST_REPLACED {
                return Err(SpecError::Beyond(format!(
                    "{MOST_REPLACED} changes at a time; packets from before the first are still \
                     queued"
                )));
            }
            if self.spec.classes.is_some() || spec.classes.is_some() {
                let what = stays.map(|what| format!("{what}: ")).unwrap_or_default();
                return Err(SpecError::Classes(Trouble::new(
                    format!(
                        "{what}no other queue while the link has classes: what is queued would leave before \
                         all that comes, whatever its class"
                    ),
                    "start the gateway anew; rate, delay, the wire's impairments, the rate and burst of its \
                     policer, parameters that may change while a discipline runs, and by SIGHUP rates and \
                     addresses of its classes may change",
                )));
            }
            spec.queue(Instant::from_nanos(now), self.queue.changes + 1)
        });
        let queue = queue.transpose()?;
        let tuned = !anew && (params || leaves);
        let moved = self.spec.rate != spec.rate
            || self.spec.sending != spec.sending
            || self.spec.classes != spec.classes;
        if !anew && (tuned || moved) {
            spec.fits(Instant::from_nanos(now), tuned)?;
        }
        let other = queue.is_none() && spec.policer != self.spec.policer;
        let policer = if other { spec.policer(Instant::from_nanos(now))? } else { None };
        let on_wire = spec.on_wire(delay) as usize;
        let impair = spec.impair().filter(|_| self.wire.impair.is_none()).map(Box::new);
        Ok(Next { now, spec: spec.clone(), queue, tuned, slots, on_wire, policer, impair })
    }

    /// Becomes what was prepared. No packet is lost by that, and none overtakes another: what is
    /// queued leaves before what arrives from now on, by the rules under which it was admitted;
    /// what is on the wire keeps its time, or comes out as much sooner as the delay is shorter. What is being sent begins again at a rate that is set, if it is
    /// sent sooner by that: it may wait for the end of an outage, or take hours at 1 bit/s. If nothing but
    /// rate, delay, framing, the wire's impairments, the policer's rate and burst, rates and addresses of classes, and
    /// parameters of [`About::live`](aqm::About::live) changes, the queue discipline stays, with all that it has learnt;
    /// else a new one begins.
    pub fn change(&mut self, next: Next) {
        if next.queue.is_some() || next.tuned {
            self.known = next.spec.rate_at(Instant::from_nanos(next.now));
        }
        if let Some((queue, rng)) = next.queue {
            let before = self.server.draw_from(rng);
            self.queue.replace(queue, before);
            let tins = || Tins::new(&next.spec, Instant::from_nanos(next.now));
            (self.wire.tins, self.server.log_mut().tins) = (tins(), tins());
        }
        if let (Some(new), Some(policer)) = (&next.policer, self.queue.current_mut().policer_mut())
        {
            policer.clone_from(new);
        }
        if let Some(classes) = &next.spec.classes
            && next.spec.classes != self.spec.classes
            && let Some(tree) = self.queue.current_mut().tree_mut()
        {
            let now = Instant::from_nanos(next.now);
            tree.retune(classes.tree.classes(), &next.spec.env(now, next.spec.rate_at(now)));
            // A class for which the transmitter waits may send sooner or later.
            if self.server.free_at() < NEVER {
                self.server.free_from(self.wire.transmitter.free_at().max(next.now));
            }
        }
        if next.tuned {
            self.tune(&next.spec, Instant::from_nanos(next.now));
        }
        self.server.log_mut().arena.grow(next.slots);
        self.wire.flights.reserve(next.on_wire, next.spec.impairments.reorder);
        let changes = next.spec.rate != self.spec.rate || next.spec.sending != self.spec.sending;
        let Wire { transmitter, flights, impair, sending, .. } = &mut self.wire;
        if changes {
            transmitter.change_rate(next.spec.rate, &next.spec.counted());
            if next.spec.told_rate {
                let now = Instant::from_nanos(next.now);
                let env = next.spec.env(now, next.spec.rate_at(now));
                self.queue.set_rates(&env, &next.spec.rates());
            } else if next.spec.sending.framing != self.spec.sending.framing {
                let env = next.spec.env(Instant::from_nanos(next.now), self.known);
                self.queue.current_mut().rate_changed(&env);
            }
        }
        if changes
            && next.spec.sending.rates.is_none()
            && transmitter.free_at() > next.now
            && let Some(mut flight) = flights.remove(*sending)
        {
            let sooner = transmitter.send_again(next.now, flight.meta.len);
            flight.at = flight.at.saturating_sub(sooner);
            if !self.spec.impairments.reorder {
                flight.at = flight.at.max(flights.last_at());
            }
            flights.push(flight);
            self.server.free_from(transmitter.free_at());
        }
        transmitter.change_delay(next.spec.shortest());
        // What waits on the wire waits no longer than what follows it: of a delay by mistake nothing is left.
        let sooner = self.spec.delay.as_nanos().saturating_sub(next.spec.delay.as_nanos());
        let latest = transmitter.free_at().max(next.now) + next.spec.longest().as_nanos();
        if sooner > 0 || flights.last_at() > latest {
            flights.reschedule(|at| at.saturating_sub(sooner).max(next.now.min(at)).min(latest));
        }
        if let Some(impair) = impair {
            impair.change(&next.spec.impairments, next.spec.delay.as_nanos());
        } else {
            *impair = next.impair;
        }
        if let Some(impair) = impair
            && flights.len() > 0
        {
            impair.follow(flights.last_at());
        }
        self.labels = next.spec.asks_for_labels();
        self.acks = next.spec.asks_for_acks();
        self.spec = next.spec;
    }
}

impl Link {
    /// Its queue, or each leaf of its classes, has the parameters of `next` from `now` on.
    fn tune(&mut self, next: &Spec, now: Instant) {
        let env = next.env(now, next.rate_at(now));
        let set = |queue: &mut AnyQdisc<Handle>, aqm: &str, params: &[(&str, &str)], env: &Env| {
            let tuned = queue.retune(aqm, params, env);
            debug_assert_eq!(tuned, Ok(()));
        };
        let Some(tree) = self.queue.current_mut().tree_mut() else {
            return set(self.queue.current_mut(), &next.aqm, &next.settings(), &env);
        };
        let [old, new] = [&self.spec, next].map(Spec::disciplines);
        tree.tune(|n, rate, leaf| {
            let (aqm, params) = &new[n];
            if old[n].1 != *params {
                let params: Vec<_> = params.iter().map(|(key, text)| (*key, &text[..])).collect();
                set(leaf, aqm, &params, &Env { rate, ..env });
            }
        });
    }
}

/// The most replaced queues that still hold packets.
pub(super) const MOST_REPLACED: usize = 8;
