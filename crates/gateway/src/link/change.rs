//! Changes while a link runs: another rate, delay, buffer or queue discipline.

use aqm::{AnyQdisc, Instant, Rng};
use link::Impair;

use super::spec::too_large;
use super::{Link, Spec, SpecError, Wire};
use crate::link::arena::{Arena, Handle};

/// What a [`Link`] is to become, and all that has to be made for it.
pub struct Next {
    spec: Spec,
    /// If another one is wanted.
    queue: Option<(AnyQdisc<Handle>, Rng)>,
    slots: u32,
    on_wire: usize,
    /// If the wire is the first to impair packets.
    impair: Option<Box<Impair>>,
}

impl Link {
    /// What it takes to become a link of `spec` at `now` (ns), up to which everything has been
    /// delivered.
    ///
    /// # Errors
    /// When there can be no such link, or too many changes are under way.
    pub fn prepare(&self, now: u64, spec: &Spec) -> Result<Next, SpecError> {
        let last = self.wire.flights.back().map_or(0, |last| last.at.saturating_sub(now));
        let delay = spec.longest().as_nanos().max(last);
        let slots = spec.slots(delay, self.server.log().arena.used() as u64)?;
        Arena::fits(slots, self.server.log().arena.longest()).ok_or_else(|| too_large(slots))?;
        let kept = Spec {
            rate: spec.rate,
            delay: spec.delay,
            sending: spec.sending.clone(),
            impairments: spec.impairments.clone(),
            ..self.spec.clone()
        };
        let queue = (kept != *spec).then(|| {
            if self.queue.replaced.len() == MOST_REPLACED {
                return Err(SpecError::Beyond(format!(
                    "{MOST_REPLACED} changes at a time; packets from before the first are still \
                     queued"
                )));
            }
            spec.queue(Instant::from_nanos(now), self.queue.changes + 1).map_err(SpecError::Queue)
        });
        let on_wire = spec.on_wire(delay) as usize;
        let impair = spec.impair().filter(|_| self.wire.impair.is_none()).map(Box::new);
        Ok(Next { spec: spec.clone(), queue: queue.transpose()?, slots, on_wire, impair })
    }

    /// Becomes what was prepared. No packet is lost by that, and none overtakes another: what is
    /// queued leaves before what arrives from now on, by the rules under which it was admitted;
    /// what is being sent or on the wire keeps its time. If nothing but rate, delay, framing and the
    /// wire's impairments changes, the
    /// queue discipline stays, with all that it has learnt; else a new one begins.
    pub fn change(&mut self, next: Next) {
        if let Some((queue, rng)) = next.queue {
            let before = self.server.draw_from(rng);
            self.queue.replace(queue, before);
        }
        self.server.log_mut().arena.grow(next.slots);
        self.wire.flights.reserve(next.on_wire);
        let Wire { transmitter, flights, impair } = &mut self.wire;
        if next.spec.rate != self.spec.rate || next.spec.sending != self.spec.sending {
            transmitter.change_rate(next.spec.rate, &next.spec.sending);
        }
        transmitter.change_delay(next.spec.shortest());
        if let Some(impair) = impair {
            impair.change(&next.spec.impairments, next.spec.delay.as_nanos());
        } else {
            *impair = next.impair;
        }
        if let (Some(impair), Some(last)) = (impair, flights.back()) {
            impair.follow(last.at);
        }
        self.spec = next.spec;
    }
}

/// The most replaced queues that still hold packets.
pub(super) const MOST_REPLACED: usize = 8;
