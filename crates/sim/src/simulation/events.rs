//! What a scenario changes during a run, when a congestion controller enters a phase.

use aqm::{Framing, Rate};
use link::NEVER;
use link::impair::Loss;

use super::Simulation;
use crate::watch::Entered;

/// Changes of a run, and what they wait for.
#[derive(Clone, Default, Debug)]
pub(crate) struct Events {
    pub(crate) waiting: Vec<Waiting>,
    /// What is due, by when, ns.
    due: Vec<(u64, Change)>,
}

/// A change that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// The flow, the phase that it enters, and which of these entries counts.
    pub(crate) flow: usize,
    pub(crate) phase: String,
    pub(crate) nth: u64,
    /// Time from the entry to the change, ns.
    pub(crate) after: u64,
    pub(crate) change: Change,
}

/// What is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// The rate of a link.
    Rate(usize, Rate, Framing),
    /// The loss of a link.
    Loss(usize, Loss),
    /// The delay of a link, ns.
    Delay(usize, u64),
    /// Time between packets of the flows of a group, ns.
    Gap(usize, u64),
}

impl Events {
    /// A flow has entered a phase at `now` (ns).
    pub(super) fn note(&mut self, now: u64, flow: usize, entered: Entered) {
        let Self { waiting, due } = self;
        waiting.retain(|each| {
            let is_this =
                each.flow == flow && each.phase == entered.phase && each.nth == entered.nth;
            if is_this {
                due.push((now.saturating_add(each.after), each.change));
            }
            !is_this
        });
        due.sort_by_key(|(at, _)| *at);
    }

    /// When the next change is due, ns; [`NEVER`] if none is.
    pub(super) fn next(&self) -> u64 {
        self.due.first().map_or(NEVER, |(at, _)| *at)
    }
}

impl Simulation {
    /// Makes the changes that are due by now.
    pub(super) fn change(&mut self) {
        while self.events.next() <= self.now {
            let (_, change) = self.events.due.remove(0);
            match change {
                Change::Rate(link, rate, framing) => self.network.change_rate(link, rate, framing),
                Change::Loss(link, loss) => {
                    self.network.wire(link).into_iter().for_each(|wire| wire.set_loss(loss));
                }
                Change::Delay(link, delay) => {
                    self.network.wire(link).into_iter().for_each(|wire| wire.set_delay(delay));
                }
                Change::Gap(group, gap) => self.change_gap(group, gap),
            }
        }
    }

    fn change_gap(&mut self, group: usize, gap: u64) {
        for (i, timing) in self.send_timings.iter_mut().enumerate() {
            let flow = &mut self.flows[i];
            if usize::from(flow.seat.group) != group || self.now >= self.groups[group].stop {
                continue;
            }
            if let Some(source) = &mut timing.on_off {
                source.change(self.now, gap);
                flow.seat.app_at = flow.seat.app_at.min(self.now);
                flow.list(i, &mut self.network);
            }
        }
    }
}
