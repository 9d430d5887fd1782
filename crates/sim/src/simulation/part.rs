//! A simulation that is one part of a run.

use link::{DecisionHash, NEVER};

use super::Simulation;
use crate::network::{Crossing, Part};

impl Simulation {
    /// Becomes part `own` of so many. `links` has, of each link, the part that sends over it and the one that it
    /// leads to; `sources` has the part of the source of each flow. Only at time 0.
    pub(crate) fn keep(
        &mut self,
        own: Part,
        parts: usize,
        links: &[[Part; 2]],
        sources: impl Iterator<Item = Part>,
    ) {
        debug_assert!(self.now == 0, "packets are under way");
        self.network.keep(own, links, parts);
        for (i, source) in sources.enumerate() {
            if source != own {
                // Its source is in another part.
                let seat = &mut self.flows[i].seat;
                (seat.app_at, seat.listed) = (NEVER, NEVER);
                self.network.set_timer(i, NEVER);
            }
        }
    }

    /// Handles all events before `end` (ns). Returns when the next of this part happens, before `until`, or of
    /// what it has sent to others.
    pub(crate) fn handle_until(&mut self, end: u64, until: u64) -> u64 {
        self.network.set_end(end.min(self.horizon()));
        if self.end_to_end.is_some() {
            self.handle::<true>();
        } else {
            self.handle::<false>();
        }
        self.network.set_end(until.min(self.horizon()));
        self.network.next_event()
    }

    /// After all events before `until` (ns): brings every link up to it.
    pub(crate) fn settle(&mut self, until: u64) {
        self.now = until;
        self.network.catch_up_all(until.saturating_sub(1));
    }

    /// What left to another part since it was asked last, in the place of what `taken` has.
    pub(crate) fn take_left(&mut self, part: usize, taken: &mut Vec<Crossing>) {
        self.network.take_left(part, taken);
    }

    /// A packet comes from another part.
    pub(crate) fn enter(&mut self, crossing: &Crossing) {
        self.network.enter(crossing);
    }

    /// The links of the ways of flow `i`, out and back.
    pub(crate) fn ways(&self, i: usize) -> [impl Iterator<Item = usize>; 2] {
        let seat = &self.flows[i].seat;
        [seat.out, seat.back].map(|path| self.network.any_links_of(path))
    }

    /// Of each link, whether any path has it, and whether the next one on some path merges its packets with others.
    pub(crate) fn use_of_links(&self) -> Vec<[bool; 2]> {
        self.network.use_of_links()
    }

    /// Whether no event at one end of a flow touches its other end or other flows.
    pub(crate) fn ends_are_apart(&self) -> bool {
        self.groups.iter().all(|group| group.transport.ends_are_apart())
    }

    /// Of each wire that impairs packets the link; links come before.
    pub(crate) fn wires(&self, links: usize) -> impl Iterator<Item = usize> {
        (links..).map_while(|number| self.network.wire_of(number))
    }

    /// The links, and what comes last of each: the wire that impairs its packets, or itself.
    pub(crate) fn last_of_links(&self) -> impl Iterator<Item = (usize, usize)> {
        self.network.last_of_links()
    }

    /// The hash over the decisions of the queue of a link, if it has one.
    pub(crate) fn decided(&self, link: usize) -> DecisionHash {
        self.network.decided(link)
    }

    /// The hash over what came over a link to the end of its path.
    pub(crate) fn delivered(&self, link: usize) -> DecisionHash {
        self.network.delivered(link)
    }
}
