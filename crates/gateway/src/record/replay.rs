//! Recorded arrivals in the simulator's link.

use std::io::{self, BufRead};

use aqm::any::BuildError;
use aqm::{Cx, Instant, Meta, Qdisc as _};
use link::QueueSummary;
use sim::network::{END, Event, Link, Network};
use sim::packet::Packet;

use super::format::broken;
use super::recording::{Entry, Recording};
use crate::link::{Spec, SpecError};
use crate::options::explain;
use crate::trouble::Trouble;

/// How a replay ended.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Of each direction: the hash over its decisions, and what was measured.
    pub queues: [(String, Option<QueueSummary>); 2],
    /// The hashes that were recorded; nothing if the recording breaks off.
    pub recorded: Option<[String; 2]>,
    /// Arrivals in it.
    pub arrivals: u64,
    /// The last instant in it, ns.
    pub last: u64,
}

/// Runs a recording through the simulator, as far as it goes.
///
/// # Errors
/// When it is damaged, no link can be as it says, or its queues would be updated more than `most`
/// times, usually [`MOST_UPDATES`], and [`PER_ARRIVAL`] times an arrival.
pub fn replay<R: BufRead>(recording: &mut Recording<R>, most: u64) -> io::Result<Replayed> {
    let new = |spec: &Spec| Replay::new(spec).map_err(|e| broken(&e.what));
    let mut replays = [new(&recording.specs[0])?, new(&recording.specs[1])?];
    let (mut arrivals, mut last) = (0, 0);
    let recorded = loop {
        match recording.next_entry()? {
            Some(Entry::Arrival(direction, meta)) => {
                last = meta.arrived.as_nanos();
                arrivals += 1;
                replays[direction].check(last, most, arrivals)?;
                replays[direction].arrive(meta);
            }
            Some(Entry::End(at, hashes)) => {
                last = at;
                break Some(hashes);
            }
            Some(Entry::Cut) | None => break None,
        }
    };
    replays.iter().try_for_each(|replay| replay.check(last, most, arrivals))?;
    Ok(Replayed { queues: replays.map(|replay| replay.end(last)), recorded, arrivals, last })
}

/// One direction of a recording in the simulator.
pub struct Replay {
    network: Network,
    seq: u32,
    /// Time between the updates of an idle queue, ns.
    period: u64,
}

/// The most updates of a queue in a replay, beside [`PER_ARRIVAL`]: a timer of 15 ms for three days, or
/// seconds of computing. More would be a file of few bytes that takes minutes.
pub const MOST_UPDATES: u64 = 20_000_000;
/// Updates for each arrival.
pub const PER_ARRIVAL: u64 = 1000;

impl Replay {
    /// The simulator's link for `spec`.
    ///
    /// # Errors
    /// When there is no such link.
    pub fn new(spec: &Spec) -> Result<Self, Trouble> {
        spec.possible().map_err(|e| explain(&spec.aqm, e))?;
        let failed = |e| explain(&spec.aqm, SpecError::Queue(e));
        let (queue, rng) = spec.queue(Instant::ZERO, 0).map_err(failed)?;
        let period = period(spec).map_err(failed)?;
        let link = Link::managed(spec.rate, spec.delay, queue, rng, 0);
        Ok(Self { network: Network::new(vec![link], vec![0, END], 0), seq: 0, period })
    }

    /// Whether it is worth going on to `now` (ns) after so many `arrivals`.
    fn check(&self, now: u64, most: u64, arrivals: u64) -> io::Result<()> {
        let allowed = most.saturating_add(arrivals.saturating_mul(PER_ARRIVAL));
        if now / self.period <= allowed {
            return Ok(());
        }
        let (seconds, updates) = (now as f64 / 1e9, now / self.period);
        Err(broken(&format!(
            "time jumps to {seconds:.0} s, which takes {updates} updates of its queue: allowed are \
             {allowed}"
        )))
    }

    /// A packet arrives at `meta.arrived`.
    pub fn arrive(&mut self, meta: Meta) {
        let now = meta.arrived.as_nanos();
        self.deliver(now);
        let packet = Packet {
            flow: meta.flow.0 as u32,
            seq: self.seq,
            len: meta.len as u16,
            ecn: meta.ecn,
            ..Packet::default()
        };
        self.seq = self.seq.wrapping_add(1);
        self.network.forward(now, &packet);
    }

    /// The decision hash and the summary of everything up to and including `now` (ns).
    pub fn end(mut self, now: u64) -> (String, Option<QueueSummary>) {
        self.deliver(now);
        self.network.catch_up_all(now);
        let summary = self.network.queue(0).map(|queue| queue.summary(now));
        (self.network.decision_hash().to_string(), summary)
    }

    fn deliver(&mut self, now: u64) {
        let mut packet = Packet::default();
        self.network.set_end(now + 1);
        while self.network.next(&mut packet).1 == Event::End {}
    }
}

/// Time between the updates of such a queue while it is idle, ns.
fn period(spec: &Spec) -> Result<u64, BuildError> {
    let (mut queue, mut rng) = spec.queue::<()>(Instant::ZERO, 0)?;
    let Some(first) = queue.poll_at() else { return Ok(u64::MAX) };
    queue.on_timer(&mut Cx { now: first, rng: &mut rng }, &mut ());
    let next = queue.poll_at().map_or(u64::MAX, Instant::as_nanos);
    Ok(next.saturating_sub(first.as_nanos()).max(1))
}
