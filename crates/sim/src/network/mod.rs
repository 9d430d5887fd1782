//! Links joined to a network: packets go from link to link along their paths.
//!
//! In general a link's event is a packet's arrival at its far end. Where it changes nothing that
//! can be seen, links are folded (`fold.rs`) and have no events of their own:
//!
//! - a link *after* another takes its packets when the other sends them: when they leave it is
//!   known already;
//! - a link that *merges* others takes the packets that arrived from them when anybody looks, in
//!   the order of their arrival, as its queue does with departures; without a queue it takes a
//!   packet at once where none can come before it.
//!
//! A wire that impairs packets (`impaired.rs`) is one more element of a path, behind its link, and never
//! folded.
//!
//! Managed and merging links are *lazy*: they have to be woken before anything that they have not
//! done yet shows elsewhere, and that is never sooner than their propagation delay.

mod alone;
mod border;
mod fold;
mod identity;
mod impaired;
mod line;
mod managed;
mod path;
mod stage;
mod wires;

use aqm::{AnyQdisc, Env, Framing, Rate};
use link::{DecisionHash, Impair, NEVER, Sending};

use crate::event::{EventList, Timetable};
use crate::packet::{Packet, SHORTEST_PACKET};
use crate::results::journal::Selection;
use crate::results::table::Table;
pub use alone::Alone;
use border::Border;
pub(crate) use border::{Crossing, Part};
use fold::Fold;
pub use identity::{Identities, Identity};
use impaired::ImpairedWire;
pub use impaired::Passed;
use line::Transit;
pub use managed::{Link, Managed};
pub use path::END;
use path::{BITS, ELSEWHERE, FOLDED, GOES_ON, MERGES, NOT_PLAIN};
pub use stage::{Draw, Pool, Stage};
use wires::{Merge, Wires};

/// Links and paths.
#[derive(Clone)]
pub struct Network {
    /// The managed queues, by link.
    queues: Vec<Option<Box<Managed>>>,
    /// The wires that impair packets, by link.
    impaired: Vec<Option<Box<ImpairedWire>>>,
    /// What the entries behind all links stand for.
    stages: Vec<Stage>,
    /// Buffers that several queues share.
    pools: Vec<Pool>,
    wires: Wires,
    /// Where it ends, if it is a part of another.
    border: Option<Box<Border>>,
}

/// What happens next in a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The packet that was handed over comes to the end of its path.
    End,
    /// The timer of the flow with this number is due.
    Timer(usize),
    /// Timers that may have moved on are to be looked at, from [`Network::begin_timer_check`] on.
    CheckTimers,
    /// Nothing before the time that was given.
    Nothing,
}

impl Network {
    /// An idle network at time 0, folded, with an event list that has room for `flows` flows.
    pub fn new(links: Vec<Link>, paths: Vec<u32>, flows: usize) -> Self {
        let events = EventList::new(links.len(), flows);
        let (mut lines, mut queues, mut impaired) = (Vec::new(), Vec::new(), Vec::new());
        for link in links {
            lines.push(link.line);
            queues.push(link.queue);
            impaired.push(link.impaired);
        }
        let wires = Wires { lines, merges: Vec::new(), paths, events };
        let (stages, pools) = (Vec::new(), Vec::new());
        let mut network = Self { queues, impaired, stages, pools, wires, border: None };
        network.set_folding(true);
        network
    }

    /// What the entries of the table of paths stand for that are numbered behind all links, and the pools of
    /// shared buffers. Only before the first packet.
    pub(crate) fn set_stages(&mut self, stages: Vec<Stage>, pools: Vec<Pool>) {
        (self.stages, self.pools) = (stages, pools);
        self.set_folding(true);
    }

    /// Whether links are folded where that changes nothing. Only before the first packet.
    pub fn set_folding(&mut self, on: bool) {
        let wires = &mut self.wires;
        // Packets that come out when they go in would leave a lane in another order.
        let impaired = &self.impaired;
        let in_order = (0..impaired.len())
            .all(|link| impaired[link].is_some() || wires.lines[link].takes_time());
        wires.merges.clear();
        for (number, line) in wires.lines.iter_mut().enumerate() {
            line.merge = None;
            line.leave_by(if in_order { Transit::Events } else { Transit::Own }, number);
        }
        for entry in wires.paths.iter_mut().filter(|entry| **entry != END) {
            *entry &= !BITS;
        }
        let links = self.queues.len();
        let managed =
            |link: usize| link >= links || self.queues[link].is_some() || impaired[link].is_some();
        let folds = if on && in_order {
            // A queue of a shared buffer is up to date whenever the others look.
            let mut impairs: Vec<bool> = impaired.iter().map(Option::is_some).collect();
            for stage in &self.stages {
                if let Stage::Admit(link, _) = stage {
                    impairs[*link] = true;
                }
            }
            let impairs = |link: usize| impairs[link];
            fold::folds(&wires.paths, managed, impairs, self.queues.len())
        } else {
            vec![Fold::Not; self.queues.len()]
        };
        let mut goes_on = 0;
        for entry in wires.paths.iter_mut().rev() {
            let link = *entry as usize;
            if *entry != END {
                let fold = match folds.get(link) {
                    Some(Fold::After) => FOLDED,
                    Some(Fold::Merges(_)) => MERGES,
                    Some(Fold::Not) | None => 0,
                };
                *entry |= goes_on | fold | if managed(link) { NOT_PLAIN } else { 0 };
            }
            goes_on = if *entry & (FOLDED | MERGES) != 0 { GOES_ON } else { 0 };
        }
        for (link, fold) in folds.into_iter().enumerate() {
            let Fold::Merges(feeders) = fold else { continue };
            let merge = wires.merges.len();
            for (number, &feeder) in feeders.iter().enumerate() {
                wires.lines[feeder as usize].leave_by(Transit::Merge(merge), number);
            }
            wires.lines[link].merge = Some(merge);
            wires.lines[link].leave_by(Transit::Own, link);
            let arrivals = Timetable::new(feeders.len());
            let soonest =
                feeders.iter().map(|&feeder| wires.lines[feeder as usize].soonest()).min();
            let lookahead = soonest.filter(|_| !managed(link));
            wires.merges.push(Some(Box::new(Merge { link, lookahead, feeders, arrivals })));
        }
    }

    /// Events at `end` (ns, at most the horizon) or later do not matter.
    pub fn set_end(&mut self, end: u64) {
        self.wires.events.set_end(end);
    }

    /// Moves the end of the run forward to `end` (ns): no event at this time or later is taken.
    pub(crate) fn end_by(&mut self, end: u64) {
        if end < self.wires.events.end() {
            self.set_end(end);
        }
    }

    /// Moves packets until something happens that the network does not see to, and takes out the
    /// packet of it. Returns when it happens.
    #[inline(always)]
    pub fn next(&mut self, packet: &mut Packet) -> (u64, Event) {
        loop {
            let events = &mut self.wires.events;
            let mut key = events.links.first_in_lanes();
            if key < events.links.other() {
                events.links.take(key, packet);
            } else if let Some(first) = events.first_elsewhere() {
                if events.is_of_flows(first) {
                    let look = events.is_timer_check_due();
                    let event = if look { Event::CheckTimers } else { Event::Timer(events.flow()) };
                    return (events.links.time_of(first), event);
                }
                key = first;
                if !self.deliver(key, packet) {
                    continue;
                }
            } else {
                return (events.time(), Event::Nothing);
            }
            let links = &self.wires.events.links;
            let now = links.time_of(key);
            let entry = self.wires.paths[packet.hop as usize];
            if entry & NOT_PLAIN == 0 {
                self.wires.send::<true>(entry, now, packet);
            } else if entry == END {
                let hash = &mut self.wires.lines[links.source_of(key)].delivered;
                hash.delivery(now, packet.flow, packet.seq);
                return (now, Event::End);
            } else {
                self.enqueue(entry, now, packet);
            }
        }
    }

    /// A packet comes at `now` to the link that its `hop` names.
    #[inline(always)]
    pub fn forward(&mut self, now: u64, packet: &Packet) {
        let entry = self.wires.paths[packet.hop as usize];
        if entry & NOT_PLAIN == 0 {
            self.wires.send::<true>(entry, now, packet);
        } else if entry != END {
            self.enqueue(entry, now, packet);
        }
    }

    /// A packet comes at `now` to the managed queue, or the impairing wire, of an entry in the table of
    /// paths.
    #[inline(never)]
    fn enqueue(&mut self, entry: u32, now: u64, packet: &Packet) {
        let link = (entry & !BITS) as usize;
        if let Some(Some(queue)) = self.queues.get_mut(link) {
            queue.arrive(now, packet, &mut self.wires);
            // It is woken in time for what it had to do before. A queue that held packets back may have to send
            // earlier now.
            let line = &self.wires.lines[link];
            let wake = queue.next_departure().saturating_add(line.transmitter.delay());
            if line.listed == NEVER || wake < line.listed {
                self.list(link);
            }
        } else {
            self.enter_other(link, now, packet);
        }
    }

    /// A packet comes at `now` to an impairing wire, a stage between links, or where this part ends.
    #[inline(never)]
    fn enter_other(&mut self, link: usize, now: u64, packet: &Packet) {
        if link == (ELSEWHERE & !BITS) as usize {
            self.leave(now, packet);
        } else if let Some(stage) = link.checked_sub(self.queues.len()) {
            let hop = self.pass(stage, now, packet);
            self.forward(now, &Packet { hop, ..*packet });
        } else if let Some(impaired) = &mut self.impaired[link]
            && let Some(first) = impaired.enter(now, packet, link, &mut self.wires)
        {
            self.wires.list(link, first);
        }
    }

    /// Where a packet goes on that comes at `now` to a stage.
    fn pass(&mut self, stage: usize, now: u64, packet: &Packet) -> u32 {
        match &mut self.stages[stage] {
            Stage::Draw(draw) => draw.next(),
            &mut Stage::Admit(link, pool) => {
                let Self { pools, queues, wires, .. } = self;
                let admits = pools[pool].admits(link, packet.len.into(), now, queues, wires);
                if let Some(queue) = &mut queues[link] {
                    queue.close(!admits);
                }
                packet.hop + 1
            }
        }
    }

    /// The event of a link with packets on its own wire, or with work to do: takes out the packet
    /// that arrives at its far end, if one does.
    #[inline]
    fn deliver(&mut self, key: u64, packet: &mut Packet) -> bool {
        let Wires { lines, events, .. } = &mut self.wires;
        let link = events.links.source_of(key);
        let line = &mut lines[link];
        // While more is on the wire, what a lazy link has not done yet cannot show.
        if line.wire.len() < 2 {
            return self.deliver_last(link, key, packet);
        }
        let (delivered, next) = line.take(key, packet);
        if let Some(next) = next {
            line.listed = events.links.time_of(next);
            events.links.set_key(next);
        }
        delivered
    }

    #[inline(never)]
    fn deliver_last(&mut self, link: usize, key: u64, packet: &mut Packet) -> bool {
        let lazy = self.wires.lines[link].lazy();
        if lazy {
            self.catch_up(link, self.wires.events.links.time_of(key));
        }
        let (delivered, next) = self.wires.lines[link].take(key, packet);
        let next = match next {
            Some(next) => self.wires.events.links.time_of(next),
            None if lazy => self.next_unsent(link),
            None => NEVER,
        };
        self.wires.list(link, next);
        delivered
    }

    /// Does everything that was due at a lazy link up to and including `now`.
    fn catch_up(&mut self, link: usize, now: u64) {
        if let Some(queue) = &mut self.queues[link] {
            queue.catch_up(now, link, &mut self.wires);
        } else {
            let Some(mut merge) = self.wires.detach(link) else {
                if let Some(impaired) = &mut self.impaired[link] {
                    impaired.catch_up(now, link, &mut self.wires);
                }
                return;
            };
            let mut packet = Packet::default();
            while let Some(at) = merge.take(now, &mut packet, &mut self.wires.lines) {
                self.wires.send_on(at, &packet);
            }
            self.wires.attach(merge);
        }
    }

    /// When a lazy link with nothing on its own wire has to be caught up to if nothing comes to it
    /// meanwhile: the earliest arrival that could come of what it has not sent yet.
    #[inline(never)]
    fn next_unsent(&self, link: usize) -> u64 {
        let departure = self.queues[link].as_ref().map_or(NEVER, |queue| queue.next_departure());
        let sends = departure.min(self.wires.next_merged(link));
        sends.saturating_add(self.wires.lines[link].transmitter.delay())
    }

    /// Makes sure that the list wakes a lazy link no later than its next event.
    #[inline]
    fn list(&mut self, link: usize) {
        let line = &self.wires.lines[link];
        let next = match line.wire.front() {
            Some(flight) => self.wires.events.links.time_of(flight.key),
            None => self.next_unsent(link),
        };
        if next < self.wires.lines[link].listed {
            self.wires.list(link, next);
        }
    }

    /// Does everything at all links up to and including `now`.
    pub fn catch_up_all(&mut self, now: u64) {
        for link in 0..self.queues.len() {
            if self.wires.lines[link].lazy() {
                self.catch_up(link, now);
            }
        }
    }

    /// The latest time that can be simulated, ns.
    pub fn horizon(&self) -> u64 {
        self.wires.events.horizon()
    }

    /// Whether a path crosses a link.
    pub fn crosses(&self, path: u32, link: usize) -> bool {
        let crosses = |path| self.links_of(path).any(|other| other == link);
        match self.drawn_at(path) {
            Some(draw) => draw.paths().any(crosses),
            None => crosses(path),
        }
    }

    /// What draws the path of each packet, if a path is one of those.
    fn drawn_at(&self, path: u32) -> Option<&Draw> {
        let first = (self.table()[path as usize] & !BITS) as usize;
        match self.stages.get(first.checked_sub(self.queues.len())?)? {
            Stage::Draw(draw) => Some(draw),
            Stage::Admit(..) => None,
        }
    }

    /// What a connection with data packets of `len` bytes finds on its paths `out` and `back` if it
    /// is alone.
    pub fn alone(&self, out: u32, back: u32, len: u16) -> Alone {
        // Paths that packets draw are equally short.
        let times = |path: u32, len: u16| {
            self.any_links_of(path).map(move |link| {
                let (sent, wire) = self.wires.lines[link].transmitter.alone(len.into());
                (sent, wire + self.delay_beyond(link))
            })
        };
        let time = |path, len| -> u64 { times(path, len).map(|(sent, wire)| sent + wire).sum() };
        Alone {
            out: time(out, len),
            small_out: time(out, SHORTEST_PACKET),
            back: time(back, SHORTEST_PACKET),
            gap: times(out, len).map(|(sent, _)| sent).max().unwrap_or(0),
        }
    }

    /// Sets when the timer of a flow is due, ns; `u64::MAX` for never.
    #[inline]
    pub fn set_timer(&mut self, flow: usize, time: u64) {
        self.wires.events.set_flow(flow, time);
    }

    /// Sets a flow's timer that is likely to move on before `time` (ns). It never fires: whoever set it
    /// looks at it shortly before, and sets it again.
    #[inline]
    pub fn set_moving_timer(&mut self, flow: usize, time: u64) {
        self.wires.events.set_moving(flow, time);
    }

    /// The first flow to look at.
    #[inline]
    pub fn begin_timer_check(&mut self) -> Option<usize> {
        self.wires.events.begin_timer_check()
    }

    /// A flow is looked at: the next one, and whether this one's timer is set already.
    #[inline]
    pub fn check_timer(&mut self, flow: usize) -> (Option<usize>, bool) {
        self.wires.events.check_timer(flow)
    }

    /// The flow of a packet that comes soon, if it is known.
    #[inline]
    pub fn coming(&self) -> Option<usize> {
        self.wires.events.links.ahead().map(|packet| packet.flow as usize)
    }

    /// The flow whose timer comes first.
    #[inline]
    pub fn next_timer(&self) -> usize {
        self.wires.events.flow()
    }

    /// Packets that came to the far end of a link that is not folded, in this part.
    pub fn arrivals(&self) -> usize {
        let Wires { lines, events, .. } = &self.wires;
        let own = lines.iter().filter(|line| !matches!(line.exit, Transit::Merge(_)));
        let taken = own.map(|line| line.wire.taken()).sum::<usize>();
        events.links.taken_from_lanes() + taken - self.crossed()
    }

    /// The managed queue of a link, if it has one.
    pub fn queue(&self, link: usize) -> Option<&Managed> {
        self.queues[link].as_deref()
    }

    /// The discipline on a link.
    pub fn queue_mut(&mut self, link: usize) -> Option<&mut AnyQdisc<Packet>> {
        Some(self.queues[link].as_deref_mut()?.queue_mut())
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

    /// Measures the delays of each of `flows` flows at all managed queues. Only before the first packet.
    pub fn measure_delays(&mut self, flows: usize) {
        self.queues.iter_mut().flatten().for_each(|queue| queue.measure_delays(flows));
    }

    /// Keeps a journal at all managed queues. Only before the first packet.
    pub fn keep_journals(&mut self, selection: &Selection) {
        self.queues.iter_mut().flatten().for_each(|queue| queue.keep_journal(selection.clone()));
    }

    /// What the journal of a link's queue has ready, or all of it if nothing more will happen.
    pub fn drain_journal(&mut self, link: usize, all: bool) -> Option<Table> {
        self.queues[link].as_mut()?.drain_journal(all)
    }

    /// Sets what all managed queues take for each flow's identity. Only before the first packet.
    pub fn identify(&mut self, identities: &Identities) {
        self.queues.iter_mut().flatten().for_each(|queue| queue.identify(identities));
    }

    /// Begins a new window of measurement at `now`.
    pub fn restart_measurement(&mut self, now: u64) {
        self.queues.iter_mut().flatten().for_each(|queue| queue.restart_measurement(now));
        self.impaired.iter_mut().flatten().for_each(|impaired| impaired.restart_measurement());
    }

    /// A link sends at another rate from now on; what is being sent keeps its time. Only if links are not
    /// folded.
    pub(crate) fn change_rate(&mut self, link: usize, rate: Rate, framing: Framing) {
        let sending = Sending { framing, ..Sending::default() };
        self.wires.lines[link].transmitter.change_rate(rate, &sending);
    }

    /// A link with a managed queue sends at the rate of `env` from now on, and its queue knows it. Only if links
    /// are not folded.
    pub(crate) fn shape(&mut self, link: usize, env: &Env) {
        self.change_rate(link, env.rate, env.framing);
        self.queues[link].iter_mut().for_each(|queue| queue.rate_changed(env));
    }

    /// The links of a path, in order, without the stages between them.
    pub(crate) fn links_of(&self, path: u32) -> impl Iterator<Item = usize> {
        let links = self.table()[path as usize..].iter().take_while(|link| **link != END);
        links.map(|entry| (entry & !BITS) as usize).filter(|&link| link < self.queues.len())
    }

    /// The links of a path, or of one of those that its packets draw.
    pub(crate) fn any_links_of(&self, path: u32) -> impl Iterator<Item = usize> {
        self.links_of(self.drawn_at(path).and_then(|draw| draw.paths().next()).unwrap_or(path))
    }

    /// Of each link, whether any path has it, and whether its packets come to a link that merges them with others,
    /// behind it or behind links that are folded after it.
    pub(crate) fn use_of_links(&self) -> Vec<[bool; 2]> {
        let mut uses = vec![[false; 2]; self.queues.len()];
        for (i, entry) in self.wires.paths.iter().enumerate() {
            if let Some([used, merged]) = uses.get_mut((entry & !BITS) as usize) {
                *used = true;
                let waits = self.wires.paths[i + 1..].iter().find(|entry| **entry & FOLDED == 0);
                *merged |= waits.is_some_and(|entry| entry & MERGES != 0);
            }
        }
        uses
    }

    /// The link whose packets a wire impairs, if this is such a wire.
    pub(crate) fn wire_of(&self, number: usize) -> Option<usize> {
        self.impaired.get(number)?.as_ref().map(|impaired| impaired.of)
    }

    /// The wire of a link, if it may change.
    pub(crate) fn wire(&mut self, link: usize) -> Option<&mut Impair> {
        let mut wires = self.impaired.iter_mut().flatten();
        wires.find(|impaired| impaired.of == link).map(|impaired| impaired.wire())
    }

    /// What the wire of a link did to packets in the window of measurement, if it impairs them.
    pub fn passed(&self, link: usize) -> Option<Passed> {
        let impaired = self.impaired.iter().flatten().find(|impaired| impaired.of == link);
        impaired.map(|impaired| impaired.passed())
    }

    /// The hash over all decisions of all queues, in the order of the links.
    pub fn decision_hash(&self) -> DecisionHash {
        let of_links = self.last_of_links();
        combined(of_links.map(|(link, last)| [self.decided(link), self.delivered(last)]))
    }

    /// The hash over the decisions of the queue of a link, if it has one.
    pub(crate) fn decided(&self, link: usize) -> DecisionHash {
        self.queues[link].as_ref().map_or_else(DecisionHash::default, |queue| queue.decision_hash())
    }

    /// The hash over what came over a link to the end of its path.
    pub(crate) fn delivered(&self, link: usize) -> DecisionHash {
        self.wires.lines[link].delivered
    }

    /// The links, and what comes last of each: the wire that impairs its packets, or itself.
    pub(crate) fn last_of_links(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut last: Vec<usize> = (0..self.queues.len()).collect();
        for (number, impaired) in self.impaired.iter().enumerate() {
            impaired.iter().for_each(|impaired| last[impaired.of] = number);
        }
        last.into_iter().enumerate().filter(|(link, _)| self.impaired[*link].is_none())
    }
}

/// The hash of a network, of what the queue of each link decided and what came over it to the end of its path.
pub(crate) fn combined(links: impl Iterator<Item = [DecisionHash; 2]>) -> DecisionHash {
    let mut hash = DecisionHash::default();
    links.flatten().for_each(|of_link| hash.combine(of_link));
    hash
}
