//! The simulation of a run: one, or several that are parts of it and run on a thread each.
//!
//! The nodes are divided among the parts ([`division`]). A link belongs to the part of the node that sends
//! over it, each end of a flow to that of its node. What is sent over a link to another part comes there
//! after the link's delay at the earliest. So all parts can run for as long as the least of these delays
//! without a word from each other; then they exchange what crossed. Every decision is the same as in one
//! part, since a part handles its events in the order in which one would, and parts share nothing else.

mod barrier;
pub(crate) mod division;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use link::{DecisionHash, NEVER};

use crate::network::{Crossing, Managed, Passed, combined};
use crate::results::delays::EndToEnd;
use crate::results::journal::Selection;
use crate::results::one_way::OneWay;
use crate::results::table::Table;
use crate::results::transfers::Transfers;
use crate::simulation::Simulation;
use crate::transport::FlowReport;
use barrier::Barrier;
use division::Division;

/// The parts of a simulation.
pub struct Parts {
    parts: Vec<Simulation>,
    /// Of each link and flow, where there is more than one part.
    division: Division,
    now: u64,
}

impl Parts {
    /// A simulation of one part.
    pub(crate) fn one(simulation: Simulation) -> Self {
        Self { parts: vec![simulation], division: Division::default(), now: 0 }
    }

    /// Divides one part as `division` says. `again` makes the same simulation once more. Only at time 0.
    pub(crate) fn divide<E>(
        &mut self,
        division: Division,
        again: impl Fn() -> Result<Simulation, E>,
    ) -> Result<(), E> {
        for own in 1..division.parts {
            let mut part = again()?;
            division.give(own, &mut part);
            self.parts.push(part);
        }
        division.give(0, &mut self.parts[0]);
        self.division = division;
        Ok(())
    }

    /// How many parts there are.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// The only part.
    pub(crate) fn whole(&mut self) -> &mut Simulation {
        debug_assert!(self.parts.len() == 1, "the first of several parts");
        &mut self.parts[0]
    }

    /// Handles all events before `until` (ns), then brings every link up to it: what is observed
    /// is the state just before `until`.
    pub fn advance(&mut self, until: u64) {
        let from = std::mem::replace(&mut self.now, until);
        match &mut self.parts[..] {
            [whole] => whole.advance(until),
            parts => advance(parts, from, until, self.division.lookahead),
        }
    }

    /// The numbers of the part that sends over a link, and of the one that it leads to.
    fn ends_of_link(&self, link: usize) -> [usize; 2] {
        self.division.links.get(link).map_or([0, 0], |ends| ends.map(usize::from))
    }

    /// The part that sends over a link.
    fn source(&self, link: usize) -> &Simulation {
        &self.parts[self.ends_of_link(link)[0]]
    }

    /// The parts of both ends of a flow.
    fn ends(&self, flow: usize) -> [&Simulation; 2] {
        let ends = self.division.flows.get(flow).copied().unwrap_or_default();
        ends.map(|part| &self.parts[usize::from(part)])
    }

    /// The managed queue of a link, if it has one.
    pub fn queue(&self, link: usize) -> Option<&Managed> {
        self.source(link).queue(link)
    }

    /// All managed queues, in no order.
    pub fn queues(&self) -> impl Iterator<Item = &Managed> {
        self.parts.iter().flat_map(Simulation::queues)
    }

    /// What the wire of a link did to packets in the window of measurement, if it impairs them.
    pub fn passed(&self, link: usize) -> Option<Passed> {
        self.source(link).passed(link)
    }

    /// What the journal of a link's queue has ready, or all of it if nothing more will happen.
    pub(crate) fn drain_journal(&mut self, link: usize, all: bool) -> Option<Table> {
        let [part, _] = self.ends_of_link(link);
        self.parts[part].drain_journal(link, all)
    }

    /// Keeps a journal of packets at all managed queues. Only at time 0.
    pub(crate) fn keep_journals(&mut self, selection: &Selection) {
        self.parts.iter_mut().for_each(|part| part.keep_journals(selection));
    }

    /// Begins a new window of measurement.
    pub(crate) fn restart_measurement(&mut self) {
        self.parts.iter_mut().for_each(Simulation::restart_measurement);
    }

    /// From now on what datagrams meet on their way is measured.
    pub(crate) fn measure_one_way(&mut self) {
        self.parts.iter_mut().for_each(Simulation::measure_one_way);
    }

    /// What was measured of the datagrams of flow `i`.
    pub(crate) fn one_way(&self, i: usize) -> Option<&OneWay> {
        self.ends(i)[1].one_way(i)
    }

    /// What was measured from end to end, if it was.
    pub(crate) fn end_to_end(&self) -> Option<Cow<'_, EndToEnd>> {
        let all: Vec<_> = self.parts.iter().map(Simulation::end_to_end).collect::<Option<_>>()?;
        if let [one] = all[..] {
            return Some(Cow::Borrowed(one));
        }
        let each = |at: usize| {
            let parts = self.division.flows.iter().map(move |ends| usize::from(ends[at]));
            parts.enumerate().map(|(i, part)| (i, all[part]))
        };
        let round_trip = each(0).map(|(i, ends)| ends.round_trip[i].clone()).collect();
        let one_way = each(1).map(|(i, ends)| ends.one_way[i].clone()).collect();
        Some(Cow::Owned(EndToEnd { one_way, round_trip }))
    }

    /// What was written down of congestion controls, if it was.
    pub(crate) fn take_control(&mut self) -> [Table; 2] {
        self.parts[0].take_control()
    }

    /// The connections that ended before their data did: flow, when (ns), why.
    pub fn broken(&self) -> Vec<(usize, u64, String)> {
        let mut all: Vec<_> = self.parts.iter().flat_map(Simulation::broken).collect();
        all.sort_unstable_by_key(|(flow, ..)| *flow);
        all
    }

    /// How many flows there are.
    pub fn flow_count(&self) -> usize {
        self.parts[0].flow_count()
    }

    /// What a flow has done so far.
    pub fn flow(&self, i: usize) -> FlowReport {
        let [source, destination] = self.ends(i);
        let mut report = source.flow(i);
        if !std::ptr::eq(source, destination) {
            let there = destination.flow(i);
            (report.delivered, report.delivered_bytes) = (there.delivered, there.delivered_bytes);
        }
        report
    }

    /// The congestion window of flow `i`, packets, if it has one.
    pub fn window(&self, i: usize) -> Option<f64> {
        self.ends(i)[0].window(i)
    }

    /// When a finite flow was completed (ns), if it was.
    pub fn completed(&self, i: usize) -> Option<u64> {
        self.ends(i)[0].completed(i)
    }

    /// Packets that flow `i` has to send, if that is a finite number.
    pub fn finite(&self, i: usize) -> Option<u32> {
        self.parts[0].finite(i)
    }

    /// Whether what flow `i` sends crosses a link.
    pub fn crosses(&self, i: usize, link: usize) -> bool {
        self.parts[0].crosses(i, link)
    }

    /// [`Simulation::alone`].
    pub fn alone(&self, i: usize, packets: u32) -> Option<u64> {
        self.parts[0].alone(i, packets)
    }

    /// [`Simulation::web`].
    pub(crate) fn web(&self, group: usize) -> Option<[&Transfers; 2]> {
        self.parts[0].web(group)
    }

    /// Events handled so far: packets arriving at the end of a link that is not folded, and timers.
    pub fn events_handled(&self) -> u64 {
        self.parts.iter().map(Simulation::events_handled).sum()
    }

    /// The hash over all decisions of all queues, in the order of the links.
    pub fn decision_hash(&self) -> DecisionHash {
        let of_links = self.parts[0].last_of_links();
        combined(of_links.map(|(link, last)| {
            let [_, leads_to] = self.ends_of_link(last);
            [self.source(link).decided(link), self.parts[leads_to].delivered(last)]
        }))
    }
}

/// What crosses between two parts: each window's is read in the next.
type Mail = [Vec<Mutex<Vec<Crossing>>>; 2];

fn open(mail: &Mutex<Vec<Crossing>>) -> MutexGuard<'_, Vec<Crossing>> {
    mail.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All parts, from `from` to `until` (ns), each on a thread.
fn advance(parts: &mut [Simulation], from: u64, until: u64, lookahead: u64) {
    let count = parts.len();
    let boxes = || (0..count * count).map(|_| Mutex::default()).collect();
    let mail: Mail = [boxes(), boxes()];
    let next: [Vec<AtomicU64>; 2] =
        [(); 2].map(|()| (0..count).map(|_| AtomicU64::new(NEVER)).collect());
    let barrier = Barrier::new(count);
    let one = |own: usize, part: &mut Simulation| {
        let member = barrier.member();
        let (mut at, mut side) = (from, 0);
        while at < until {
            let end = at.saturating_add(lookahead).min(until);
            let first = part.handle_until(end, until);
            for to in (0..count).filter(|to| *to != own) {
                part.take_left(to, &mut open(&mail[side][own * count + to]));
            }
            next[side][own].store(first, Ordering::Release);
            member.wait();
            let of_all = next[side].iter().map(|next| next.load(Ordering::Acquire));
            // Nothing happens before it anywhere.
            at = of_all.fold(until, u64::min).max(end);
            for of in (0..count).filter(|of| *of != own) {
                let mut came = open(&mail[side][of * count + own]);
                came.drain(..).for_each(|crossing| part.enter(&crossing));
            }
            side = 1 - side;
        }
        part.settle(until);
    };
    std::thread::scope(|scope| {
        let one = &one;
        let mut threads = parts.iter_mut().enumerate();
        let first = threads.next();
        threads.for_each(|(own, part)| drop(scope.spawn(move || one(own, part))));
        first.into_iter().for_each(|(own, part)| one(own, part));
    });
}
