//! Recorded arrivals in the simulator's link.

use std::io::{self, BufRead};

use aqm::any::canonical;
use aqm::{Ack, Cx, Instant, Meta, Qdisc as _};
use link::QueueSummary;
use sim::network::{END, Event, Identities, Link, Network};
use sim::packet::{Packet, Payload};
use sim::results::journal::Selection;
use sim::results::table::Table;

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

/// What a replay may take: a recording of few bytes may ask for minutes and all memory.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Updates of a queue while it is idle, beside [`PER_ARRIVAL`], and turns of a quantum that packets
    /// wait for, beside [`TURNS_PER_ARRIVAL`].
    pub steps: u64,
    /// Packets that a buffer may hold.
    pub buffer: u64,
}

impl Allowed {
    /// For a recording of `bytes`: as many packets as can be in it, or [`SMALL_BUFFER`].
    pub fn of(bytes: u64) -> Self {
        Self { steps: MOST_STEPS, buffer: (bytes / LEAST_ENTRY).max(SMALL_BUFFER) }
    }

    /// Whatever the gateway itself would take: up to 1.5 GB.
    pub fn any_buffer(self) -> Self {
        Self { buffer: Spec::MAX_PACKETS, ..self }
    }
}

/// Receives finished packets in portions: a direction and some rows of its journal
/// ([`sim::results::journal`]).
pub type Listener<'a> = &'a mut dyn FnMut(usize, &Table) -> io::Result<()>;

/// Arrivals between two portions.
const TELL_AFTER: u64 = 1 << 14;

/// Runs a recording through the simulator, as far as it goes, and reports the fate of each packet to `told`,
/// if given.
///
/// # Errors When it is damaged, describes an impossible link, or takes more than is `allowed`; and errors of
/// `told`.
pub fn replay<R: BufRead>(
    recording: &mut Recording<R>,
    allowed: Allowed,
    mut told: Option<Listener<'_>>,
) -> io::Result<Replayed> {
    let most = allowed.steps;
    for spec in &recording.specs {
        let queues = spec.classes.as_ref().map_or(1, |classes| classes.tree.leaves().count());
        let packets = u64::from(spec.limit.max_packets()).saturating_mul(queues as u64);
        if packets > allowed.buffer {
            return Err(broken(&format!(
                "a buffer of {packets} packets: allowed are {}, or one for each {LEAST_ENTRY} bytes \
                 of the recording; --any-buffer takes it",
                allowed.buffer
            )));
        }
    }
    let new = |spec: &Spec| Replay::new(spec).map_err(|e| broken(&e.what));
    let mut replays = [new(&recording.specs[0])?, new(&recording.specs[1])?];
    if told.is_some() {
        replays.iter_mut().for_each(|replay| replay.network.keep_journals(&Selection::default()));
    }
    let (mut arrivals, mut last) = (0, 0);
    let recorded = loop {
        match recording.next_entry()? {
            Some(Entry::Arrival(direction, meta, ack)) => {
                last = meta.arrived.as_nanos();
                arrivals += 1;
                let replay = &mut replays[direction];
                replay.turns += u64::from(meta.len) / replay.quantum;
                replay.check(last, most, arrivals)?;
                replay.arrive(meta, ack);
                if arrivals.is_multiple_of(TELL_AFTER) {
                    tell(&mut replays, &mut told, false)?;
                }
            }
            Some(Entry::End(at, hashes)) => {
                last = at;
                break Some(hashes);
            }
            Some(Entry::Cut) | None => break None,
        }
    };
    replays.iter().try_for_each(|replay| replay.check(last, most, arrivals))?;
    let queues = replays.each_mut().map(|replay| replay.end(last));
    tell(&mut replays, &mut told, true)?;
    Ok(Replayed { queues, recorded, arrivals, last })
}

/// Reports the finished packets, or `all` that are left.
fn tell(replays: &mut [Replay; 2], told: &mut Option<Listener<'_>>, all: bool) -> io::Result<()> {
    let Some(told) = told else { return Ok(()) };
    for (direction, replay) in replays.iter_mut().enumerate() {
        if let Some(rows) = replay.network.drain_journal(0, all) {
            told(direction, &rows)?;
        }
    }
    Ok(())
}

/// One direction of a recording in the simulator.
pub struct Replay {
    network: Network,
    seq: u32,
    /// Time between the updates of an idle queue, ns.
    period: u64,
    /// What a flow may send in a turn, bytes, and turns that packets have to wait for so far.
    quantum: u64,
    turns: u64,
}

/// The most updates of a queue in a replay, beside [`PER_ARRIVAL`]: a timer of 15 ms for three days, or
/// seconds of computing. More would be a file of few bytes that takes minutes.
const MOST_STEPS: u64 = 20_000_000;
/// A buffer that needs no recording of its size, packets: 60 MB at most, for both ways.
const SMALL_BUFFER: u64 = 1 << 18;
/// Bytes of the shortest entry.
const LEAST_ENTRY: u64 = 6;
/// Turns of a quantum for each arrival: more than packets of 1500 B wait for with a quantum of 1.
const TURNS_PER_ARRIVAL: u64 = 2000;
/// Updates for each arrival.
const PER_ARRIVAL: u64 = 1000;

impl Replay {
    /// The simulator's link for `spec`.
    ///
    /// # Errors
    /// When there is no such link.
    pub fn new(spec: &Spec) -> Result<Self, Trouble> {
        spec.possible().map_err(|e| explain(spec, e))?;
        let failed = |e| explain(spec, e);
        let (queue, rng) = spec.queue(Instant::ZERO, 0).map_err(failed)?;
        let period = period(spec).map_err(failed)?;
        let link = Link::managed(spec.rate, spec.shortest(), queue, rng, 0).with(&spec.counted());
        let (mut links, mut path) = (vec![link], vec![0]);
        if let Some(impair) = spec.impair() {
            links.push(Link::wire(0, impair));
            path.push(1);
        }
        path.push(END);
        let mut network = Network::new(links, path, 0);
        network.identify(&Identities::Recorded);
        Ok(Self { network, seq: 0, period, quantum: quantum(spec), turns: 0 })
    }

    /// Refuses to go on to `now` (ns) if that is too much work for this many `arrivals`.
    fn check(&self, now: u64, most: u64, arrivals: u64) -> io::Result<()> {
        let allowed = most.saturating_add(arrivals.saturating_mul(PER_ARRIVAL));
        let turns = most.saturating_add(arrivals.saturating_mul(TURNS_PER_ARRIVAL));
        if self.turns > turns {
            let (quantum, waited) = (self.quantum, self.turns);
            return Err(broken(&format!(
                "with a quantum of {quantum} B its packets wait for {waited} turns: allowed are {turns}"
            )));
        }
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
    pub fn arrive(&mut self, meta: Meta, ack: Ack) {
        let now = meta.arrived.as_nanos();
        self.deliver(now);
        let packet = Packet {
            flow: meta.flow.0 as u32,
            seq: self.seq,
            len: meta.len as u16,
            ecn: meta.ecn,
            payload: Payload::Recorded { label: (meta.flow.0 >> 32) as u32, ack },
            ..Packet::default()
        };
        self.seq = self.seq.wrapping_add(1);
        self.network.forward(now, &packet);
    }

    /// The decision hash and the summary of everything up to and including `now` (ns).
    pub fn end(&mut self, now: u64) -> (String, Option<QueueSummary>) {
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

/// What a flow may send in a turn, bytes.
fn quantum(spec: &Spec) -> u64 {
    let all = spec.disciplines();
    let each = all.iter().filter_map(|discipline| parameter(discipline, "quantum"));
    each.min().unwrap_or(u64::MAX).max(1)
}

/// A parameter of a discipline that is a whole number.
fn parameter((aqm, given): &(&str, Vec<(&str, String)>), name: &str) -> Option<u64> {
    let given: Vec<_> = given.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let all = canonical(aqm, &given).unwrap_or_default();
    all.into_iter().find(|(known, _)| *known == name).and_then(|(_, text)| text.parse().ok())
}

/// Updating this many queues takes as long as updating a single one.
const QUEUES: u64 = 16;

/// Time between the updates of such a queue while it is idle, ns.
fn period(spec: &Spec) -> Result<u64, SpecError> {
    let rates = spec.sending.rates.as_ref().filter(|_| spec.told_rate);
    let told = rates.map_or(u64::MAX, |rates| rates.least_gap());
    let untold = Spec { told_rate: false, ..spec.clone() };
    // CAKE has at most 64 of them for each of its sets.
    let of = |discipline| {
        let sets = parameter(discipline, "sets").unwrap_or(0).saturating_mul(64);
        parameter(discipline, "queues").unwrap_or(1).max(sets)
    };
    let queues = spec.disciplines().iter().map(of).fold(0, u64::saturating_add);
    let queues = queues.div_ceil(QUEUES).max(1);
    Ok((own_period(&untold)?.min(told) / queues).max(1))
}

/// The shortest period of a queue's own timers, ns, without news of the rate.
fn own_period(spec: &Spec) -> Result<u64, SpecError> {
    let (mut queue, mut rng) = spec.queue::<()>(Instant::ZERO, 0)?;
    let Some(first) = queue.poll_at() else { return Ok(u64::MAX) };
    queue.on_timer(&mut Cx { now: first, rng: &mut rng }, &mut ());
    let next = queue.poll_at().map_or(u64::MAX, Instant::as_nanos);
    Ok(next.saturating_sub(first.as_nanos()).max(1))
}
