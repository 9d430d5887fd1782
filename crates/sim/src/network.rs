//! Links joined to a network: packets go from link to link along their paths.
//!
//! In general a link's event is a packet's arrival at its far end. Where it changes nothing that
//! can be seen, links are folded ([`crate::fold`]) and have no events of their own:
//!
//! - a link *after* another takes its packets when the other sends them: when they leave it is
//!   known already;
//! - a link that *merges* others takes the packets that arrived from them when anybody looks, in
//!   the order of their arrival, as its queue does with departures.
//!
//! Managed and merging links are *lazy*: they have to be woken before anything that they have not
//! done yet shows elsewhere, and that is never sooner than their propagation delay.

use crate::engine::{EventList, WinnerTree};
use crate::fold::{self, Fold};
use crate::hash::DecisionHash;
use crate::link::{Flight, Identity, Line, Link, Managed};
use crate::packet::{Packet, SHORTEST_PACKET};
use crate::tcp::alone::Alone;

/// Ends a path in the table of paths.
pub const END: u32 = FOLDED - 1;
/// A bit of an entry in the table of paths: the link is folded after the one before it.
const FOLDED: u32 = 1 << 31;
/// No event is due.
const NEVER: u64 = u64::MAX;

/// Links and paths.
#[derive(Clone)]
pub struct Network {
    /// The managed queues, by link.
    queues: Vec<Option<Box<Managed>>>,
    wires: Wires,
}

/// Transmitters and wires of all links, and the events at their ends.
#[derive(Clone)]
pub(crate) struct Wires {
    pub(crate) lines: Vec<Line>,
    roles: Vec<Role>,
    /// Paths as runs of link numbers, each ended by [`END`].
    paths: Vec<u32>,
    events: EventList,
}

/// How packets come out of a link.
#[derive(Clone, Debug)]
enum Role {
    /// By an event for each.
    Plain,
    /// They are taken by the link that merges this one with others, where it has this number.
    Feeds { link: usize, number: usize },
    /// By events, to which the link must be caught up. It may merge others.
    Lazy(Option<Box<Merge>>),
}

/// Links that lead to one other link only, and which of them has the next packet for it.
#[derive(Clone, Debug)]
struct Merge {
    feeders: Vec<u32>,
    next: WinnerTree<16>,
}

impl Network {
    /// An idle network at time 0, folded, with an event list that has room for `flows` flows.
    pub fn new(links: Vec<Link>, paths: Vec<u32>, flows: usize) -> Self {
        let events = EventList::new(links.len(), flows);
        let (lines, queues) = links.into_iter().map(|link| (link.line, link.queue)).unzip();
        let mut network = Self { queues, wires: Wires { lines, roles: Vec::new(), paths, events } };
        network.set_folding(true);
        network
    }

    /// Whether links are folded where that changes nothing. Only before the first packet.
    pub fn set_folding(&mut self, on: bool) {
        let Self { queues, wires } = self;
        let managed = |link: usize| queues[link].is_some();
        wires.roles = (0..queues.len())
            .map(|link| if managed(link) { Role::Lazy(None) } else { Role::Plain })
            .collect();
        wires.lines.iter_mut().for_each(|line| line.prompt = !line.managed);
        wires.paths.iter_mut().for_each(|link| *link &= !FOLDED);
        if !on || !wires.lines.iter().all(Line::takes_time) {
            return;
        }
        let folds = fold::folds(&wires.paths, managed, queues.len());
        for link in &mut wires.paths {
            if *link != END && folds[*link as usize] == Fold::After {
                *link |= FOLDED;
            }
        }
        for (link, fold) in folds.into_iter().enumerate() {
            let Fold::Merges(feeders) = fold else { continue };
            for (number, &feeder) in feeders.iter().enumerate() {
                wires.roles[feeder as usize] = Role::Feeds { link, number };
            }
            let next = WinnerTree::new(feeders.len());
            wires.lines[link].prompt = false;
            wires.roles[link] = Role::Lazy(Some(Box::new(Merge { feeders, next })));
        }
    }

    /// A packet comes at `now` to the link that its `hop` names.
    #[inline(always)]
    pub fn forward(&mut self, now: u64, packet: &mut Packet) {
        let link = self.wires.paths[packet.hop as usize] as usize;
        if self.wires.lines[link].managed {
            self.enqueue(link, now, packet);
        } else {
            self.wires.send(link, now, packet);
        }
    }

    /// A packet comes at `now` to a managed queue.
    #[inline(never)]
    fn enqueue(&mut self, link: usize, now: u64, packet: &mut Packet) {
        if let Some(queue) = &mut self.queues[link] {
            queue.arrive(now, packet, link, &mut self.wires);
            self.list(link);
        }
    }

    /// The event of a link: takes out the packet that arrives at its far end, if one does.
    #[inline(always)]
    pub fn deliver(&mut self, link: usize, now: u64, packet: &mut Packet) -> bool {
        let line = &mut self.wires.lines[link];
        // While more is on the wire, what a lazy link has not done yet cannot show.
        if !line.prompt && line.wire.len() < 2 {
            return self.deliver_lazily(link, now, packet);
        }
        let delivered = line.take(now, packet);
        let next = line.next_arrival();
        line.listed = next;
        self.wires.events.set_link(link, next);
        delivered
    }

    #[inline(never)]
    fn deliver_lazily(&mut self, link: usize, now: u64, packet: &mut Packet) -> bool {
        self.catch_up(link, now, packet);
        let delivered = self.wires.lines[link].take(now, packet);
        let next = self.next_event(link);
        self.wires.list(link, next);
        delivered
    }

    /// Does everything that was due at a lazy link up to and including `now`.
    fn catch_up(&mut self, link: usize, now: u64, hand: &mut Packet) {
        if let Some(queue) = &mut self.queues[link] {
            queue.catch_up(now, hand, link, &mut self.wires);
        } else {
            while let Some(at) = self.wires.take_merged(link, now, hand) {
                self.wires.send(link, at, hand);
            }
        }
    }

    /// When a lazy link has to be caught up to if nothing comes to it meanwhile: the next arrival at
    /// its far end, or while nothing is on its wire the earliest that could come of what it has not
    /// sent yet.
    #[inline]
    fn next_event(&self, link: usize) -> u64 {
        let line = &self.wires.lines[link];
        line.wire.front().map_or_else(|| self.next_unsent(link), |flight| flight.arrives)
    }

    #[inline(never)]
    fn next_unsent(&self, link: usize) -> u64 {
        let departure = self.queues[link].as_ref().map_or(NEVER, |queue| queue.next_departure());
        let sends = departure.min(self.wires.next_merged(link));
        sends.saturating_add(self.wires.lines[link].delay)
    }

    /// Makes sure that the list wakes a lazy link no later than its next event.
    #[inline]
    fn list(&mut self, link: usize) {
        let next = self.next_event(link);
        if next < self.wires.lines[link].listed {
            self.wires.list(link, next);
        }
    }

    /// Does everything at all links up to and including `now`.
    pub fn catch_up_all(&mut self, now: u64) {
        let hand = &mut Packet::default();
        for link in 0..self.queues.len() {
            if matches!(self.wires.roles[link], Role::Lazy(_)) {
                self.catch_up(link, now, hand);
            }
        }
    }

    /// Whether a packet that `link` delivered at `now` is at the end of its path.
    #[inline]
    pub fn ends(&mut self, link: usize, now: u64, packet: &Packet) -> bool {
        let ends = self.wires.paths[packet.hop as usize] == END;
        if ends {
            let hash = &mut self.wires.lines[link].delivered;
            hash.delivery(now, packet.flow, packet.seq);
        }
        ends
    }

    /// What a connection with data packets of `len` bytes finds on its paths `out` and `back` if it
    /// is alone.
    pub fn alone(&self, out: u32, back: u32, len: u16) -> Alone {
        let Wires { lines, paths, .. } = &self.wires;
        let links = |path: u32| {
            let links = paths[path as usize..].iter().take_while(|link| **link != END);
            links.map(|link| &lines[(link & !FOLDED) as usize])
        };
        let time = |path: u32, len: u16| -> u64 {
            links(path).map(|line| line.alone(len)).map(|(sent, wire)| sent + wire).sum()
        };
        Alone {
            out: time(out, len),
            small_out: time(out, SHORTEST_PACKET),
            back: time(back, SHORTEST_PACKET),
            gap: links(out).map(|line| line.alone(len).0).max().unwrap_or(0),
        }
    }

    /// The event list, which holds the flows' events, too.
    pub fn events(&mut self) -> &mut EventList {
        &mut self.wires.events
    }

    /// The managed queue of a link, if it has one.
    pub fn queue(&self, link: usize) -> Option<&Managed> {
        self.queues[link].as_deref()
    }

    /// All managed queues, in the order of their links.
    pub fn queues(&self) -> impl Iterator<Item = &Managed> {
        self.queues.iter().flatten().map(Box::as_ref)
    }

    /// Counts by group at all managed queues; `of` gives the group of each flow. Only before the
    /// first packet.
    pub fn count_groups(&mut self, of: &[u16]) {
        self.queues.iter_mut().flatten().for_each(|queue| queue.count_groups(of.to_vec()));
    }

    /// Sets what all managed queues take for each flow's identity. Only before the first packet.
    pub fn identify(&mut self, identities: &[Identity]) {
        self.queues.iter_mut().flatten().for_each(|queue| queue.identify(identities));
    }

    /// Begins a new window of measurement at `now`.
    pub fn restart_measurement(&mut self, now: u64) {
        self.queues.iter_mut().flatten().for_each(|queue| queue.restart_measurement(now));
    }

    /// The hash over all decisions of all queues, in the order of the links.
    pub fn decision_hash(&self) -> DecisionHash {
        let mut hash = DecisionHash::default();
        for (line, queue) in self.wires.lines.iter().zip(&self.queues) {
            hash.combine(queue.as_ref().map_or_else(DecisionHash::default, |q| q.decision_hash()));
            hash.combine(line.delivered);
        }
        hash
    }
}

impl Wires {
    /// The transmitter of a link takes a packet at `now`, and so do those of the links that are
    /// folded after it. Returns when the transmitter is free again.
    #[inline(always)]
    pub(crate) fn send(&mut self, link: usize, now: u64, packet: &Packet) -> u64 {
        let mut line = &mut self.lines[link];
        let mut at = line.transmit(now, packet.len);
        let free_at = line.free_at;
        let (mut last, mut hop) = (link, packet.hop + 1);
        while self.paths[hop as usize] & FOLDED != 0 {
            last = (self.paths[hop as usize] & !FOLDED) as usize;
            line = &mut self.lines[last];
            at = line.transmit(at, packet.len);
            hop += 1;
        }
        let first = line.wire.is_empty();
        let sent = line.wire.push(&Flight { arrives: at, packet: *packet });
        sent.packet.hop = hop;
        if first {
            self.announce(last, at);
        }
        free_at
    }

    /// A packet is the first on the wire of `link`, at whose far end it arrives at `at`.
    #[inline(never)]
    fn announce(&mut self, link: usize, at: u64) {
        match &self.roles[link] {
            Role::Plain => self.events.set_link(link, at),
            &Role::Feeds { link: to, number } => {
                if let Role::Lazy(Some(merge)) = &mut self.roles[to] {
                    merge.next.set(number, at);
                }
                let wake = at.saturating_add(self.lines[to].delay);
                if wake < self.lines[to].listed {
                    self.list(to, wake);
                }
            }
            // Whoever made it send lists it afterwards.
            Role::Lazy(_) => {}
        }
    }

    /// Sets the event of a lazy link.
    #[inline]
    fn list(&mut self, link: usize, at: u64) {
        self.lines[link].listed = at;
        self.events.set_link(link, at);
    }

    /// When the next packet of the links that `link` merges arrives, ns.
    #[inline]
    fn next_merged(&self, link: usize) -> u64 {
        match &self.roles[link] {
            Role::Lazy(Some(merge)) => merge.next.time(),
            _ => NEVER,
        }
    }

    /// Takes the next packet of the links that `link` merges, if it has arrived by `now`. Returns
    /// when it did.
    #[inline(always)]
    pub(crate) fn take_merged(
        &mut self,
        link: usize,
        now: u64,
        packet: &mut Packet,
    ) -> Option<u64> {
        let Role::Lazy(Some(merge)) = &mut self.roles[link] else { return None };
        let (at, number) = (merge.next.time(), merge.next.source());
        if at > now {
            return None;
        }
        let line = &mut self.lines[merge.feeders[number] as usize];
        line.take(at, packet);
        merge.next.set(number, line.next_arrival());
        Some(at)
    }
}
