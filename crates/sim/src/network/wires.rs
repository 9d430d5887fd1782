//! Transmitters and wires of all links: how a packet goes on from one to the next.

use aqm::Meta;
use link::{Exit, NEVER};

use super::line::{Line, Transit};
use super::path::{BITS, FOLDED, GOES_ON};
use crate::event::{EventList, Timetable};
use crate::packet::Packet;

/// Transmitters and wires of all links, and the events at their ends.
#[derive(Clone)]
pub(crate) struct Wires {
    pub(crate) lines: Vec<Line>,
    /// For each link that merges several wires, its merge; `None` while that is being worked on.
    pub(super) merges: Vec<Option<Box<Merge>>>,
    /// Paths as runs of link numbers, each ended by [`super::END`].
    pub(super) paths: Vec<u32>,
    pub(super) events: EventList,
}

/// A link that is entered only after others, whose packets it takes in the order of their arrival.
#[derive(Clone, Debug)]
pub(crate) struct Merge {
    pub(super) link: usize,
    /// How much later what comes to the feeders is at this link at the earliest, ns; of no use where
    /// the link is managed.
    pub(super) lookahead: Option<u64>,
    pub(super) feeders: Vec<u32>,
    pub(super) arrivals: Timetable<16, 2>,
}

impl Wires {
    /// The transmitter of a link takes a packet at `now`, and so do those of the links that are
    /// folded after it. Only what comes from an end point (`FED`) can come to a link that merges.
    /// `entry` is the link's in the table of paths. Returns when the transmitter is free again.
    #[inline(always)]
    pub(super) fn send<const FED: bool>(
        &mut self,
        mut entry: u32,
        now: u64,
        packet: &Packet,
    ) -> u64 {
        let mut line = &mut self.lines[(entry & !BITS) as usize];
        let mut at = line.transmitter.send(now, packet.len.into());
        let free_at = line.transmitter.free_at();
        let mut hop = packet.hop + 1;
        while entry & GOES_ON != 0 {
            entry = self.paths[hop as usize];
            debug_assert!(FED || entry & FOLDED != 0, "a merge of what comes from a queue");
            if !FED || entry & FOLDED != 0 {
                line = &mut self.lines[(entry & !BITS) as usize];
            } else if let Transit::Merge(number) = line.exit
                && let Some(merge) = &mut self.merges[number]
            {
                if !merge.is_next(at, &self.events) {
                    let key = merge.arrivals.key(at, line.source);
                    let pushed = merge.arrivals.push(key, packet, hop, &mut line.lane);
                    let first = pushed.unwrap_or_else(|| {
                        let first = line.wait(key, packet, hop);
                        if first {
                            merge.arrivals.set_key(key);
                        }
                        first
                    });
                    if first {
                        let link = merge.link;
                        self.wake(link, at);
                    }
                    return free_at;
                }
                line = &mut self.lines[merge.link];
            } else {
                break;
            }
            at = line.transmitter.send(at, packet.len.into());
            hop += 1;
        }
        let events = &mut self.events.links;
        let key = events.key(at, line.source);
        if events.push(key, packet, hop, &mut line.lane).is_some() {
            return free_at;
        }
        let (first, lazy) = (line.wait(key, packet, hop), line.lazy());
        if first && !lazy {
            events.set_key(key);
        } else if FED && lazy && at < line.listed {
            // A merge that took the packet at once. All other callers that make a lazy link send list it
            // afterwards.
            let link = events.source_of(line.source);
            self.list(link, at);
        }
        free_at
    }

    /// The transmitter of a managed or merging link takes a packet at `now`. Returns when it is free
    /// again.
    #[inline(always)]
    pub(crate) fn send_on(&mut self, now: u64, packet: &Packet) -> u64 {
        self.send::<false>(self.paths[packet.hop as usize], now, packet)
    }

    /// The next packet for a link that merges others arrives at `at`.
    #[inline(never)]
    fn wake(&mut self, link: usize, at: u64) {
        let wake = at.saturating_add(self.lines[link].transmitter.delay());
        if wake < self.lines[link].listed {
            self.list(link, wake);
        }
    }

    /// Sets the event of a link.
    #[inline]
    pub(super) fn list(&mut self, link: usize, at: u64) {
        self.lines[link].listed = at;
        self.events.set_link(link, at);
    }

    /// When the next packet of the links that `link` merges arrives, ns.
    pub(super) fn next_merged(&self, link: usize) -> u64 {
        match self.lines[link].merge {
            Some(merge) => self.merges[merge].as_ref().map_or(NEVER, |merge| {
                let arrivals = &merge.arrivals;
                arrivals.time_of(arrivals.first())
            }),
            None => NEVER,
        }
    }

    /// The links that `link` merges, if it does, to work with them.
    #[inline]
    pub(crate) fn detach(&mut self, link: usize) -> Option<Box<Merge>> {
        self.lines[link].merge.and_then(|merge| self.merges[merge].take())
    }

    /// Puts back what was detached.
    #[inline]
    pub(crate) fn attach(&mut self, merge: Box<Merge>) {
        if let Some(number) = self.lines[merge.link].merge {
            self.merges[number] = Some(merge);
        }
    }
}

impl Merge {
    /// Whether a packet that arrives at `at` is the next for sure, and the link can take it now: none
    /// is waiting, and of what has not happened yet, nothing can arrive as soon.
    #[inline(always)]
    fn is_next(&self, at: u64, events: &EventList) -> bool {
        self.lookahead.is_some_and(|soonest| at < events.time() + soonest)
            && self.arrivals.is_empty()
    }

    /// The flow of a packet that arrives soon, if it is known.
    #[inline]
    pub(crate) fn coming(&self) -> Option<usize> {
        self.arrivals.ahead().map(|packet| packet.flow as usize)
    }

    /// Takes the next packet, if it has arrived by `until`. Returns when it did.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        until: u64,
        packet: &mut Packet,
        lines: &mut [Line],
    ) -> Option<u64> {
        let Self { feeders, arrivals, .. } = self;
        let (first, other) = (arrivals.first_in_lanes(), arrivals.other());
        let key = first.min(other);
        let at = arrivals.time_of(key);
        if at > until {
            return None;
        }
        if first < other {
            arrivals.take(first, packet);
        } else {
            let number = arrivals.source_of(key);
            let (_, next) = lines[feeders[number] as usize].take(key, packet);
            arrivals.set_key(next.unwrap_or_else(|| arrivals.key_of(NEVER, number)));
        }
        Some(at)
    }
}

impl Exit<Packet> for Wires {
    #[inline(always)]
    fn send(&mut self, now: u64, meta: &Meta, packet: &mut Packet) -> u64 {
        packet.ecn = meta.ecn;
        self.send_on(now, packet)
    }
}
