//! Changes while a link runs: another rate, delay, buffer or queue discipline.

use aqm::{AnyQdisc, Instant, Qdisc, Rng};
use link::transmitter::Serialiser;

use super::spec::too_large;
use super::{Link, Spec, SpecError, sum};
use crate::arena::{Arena, Handle};

/// What a [`Link`] is to become, and all that has to be made for it.
pub struct Next {
    spec: Spec,
    /// If another one is wanted.
    queue: Option<(AnyQdisc<Handle>, Rng)>,
    slots: u32,
    on_wire: usize,
}

impl Link {
    /// What it takes to become a link of `spec` at `now` (ns), up to which everything has been
    /// delivered.
    ///
    /// # Errors
    /// When there can be no such link, or too many changes are under way.
    pub fn prepare(&self, now: u64, spec: &Spec) -> Result<Next, SpecError> {
        let last = self.wire.back().map_or(0, |last| last.at.saturating_sub(now));
        let delay = spec.delay.as_nanos().max(last);
        let slots = spec.slots(delay, self.arena.used() as u64)?;
        Arena::fits(slots, self.arena.longest()).ok_or_else(|| too_large(slots))?;
        let kept = Spec { rate: spec.rate, delay: spec.delay, ..self.spec.clone() };
        let queue = (kept != *spec).then(|| {
            if self.replaced.len() == MOST_REPLACED {
                return Err(SpecError::Beyond(format!(
                    "{MOST_REPLACED} changes at a time; packets from before the first are still \
                     queued"
                )));
            }
            spec.queue(Instant::from_nanos(now), self.changes + 1).map_err(SpecError::Queue)
        });
        let on_wire = spec.on_wire(delay) as usize;
        Ok(Next { spec: spec.clone(), queue: queue.transpose()?, slots, on_wire })
    }

    /// Becomes what was prepared. No packet is lost by that, and none overtakes another: what is
    /// queued leaves before what arrives from now on, by the rules under which it was admitted;
    /// what is being sent or on the wire keeps its time. If nothing but rate and delay changes, the
    /// queue discipline stays, with all that it has learnt; else a new one begins.
    pub fn change(&mut self, next: Next) {
        if let Some((queue, rng)) = next.queue {
            let queue = std::mem::replace(&mut self.queue, queue);
            let rng = std::mem::replace(&mut self.rng, rng);
            if queue.backlog().packets > 0 {
                self.replaced.push((queue, rng));
            } else {
                self.gone = sum(&self.gone, queue.counters());
            }
            self.changes += 1;
        }
        self.arena.grow(next.slots);
        self.wire.reserve(next.on_wire);
        if next.spec.rate != self.spec.rate {
            self.serialiser = Serialiser::new(next.spec.rate);
        }
        self.delay = next.spec.delay.as_nanos();
        self.spec = next.spec;
    }
}

/// The most replaced queues that still hold packets.
pub(super) const MOST_REPLACED: usize = 8;
