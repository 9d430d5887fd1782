//! An access point that sends to stations of different rates: packets of one station leave as aggregates.
//!
//! HKTHB17: Høiland-Jørgensen, Kazior, Täht, Hurtig, Brunstrom, Ending the Anomaly: Achieving Low Latency and
//! Airtime Fairness in WiFi, USENIX ATC 2017.
//!
//! | file | what it holds |
//! |---|---|
//! | `air.rs` | the time that an aggregate takes, and its limits |
//! | `turns.rs` | which station sends next |
//!
//! There is one queue for all stations or one for each. With one, a driver takes packets out of it, as many as it
//! has room for, and serves their stations in turns. So an aggregate goes as far as the driver sees.
//!
//! An aggregate is put together when the air is free. Its packets leave the queue then, all at once, and are sent
//! until it ends ([`Qdisc::aggregate`]).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::context::{Backlog, Cx, Env, State, Tally};
use crate::packet::{Label, Meta};
use crate::qdisc::{Aggregate, Counters, Outlet, Qdisc, Through};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use turns::Turns;

mod air;
#[cfg(test)]
mod tests;
mod turns;

pub use air::Air;

/// How stations share the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// One queue for all, of which the driver holds so many packets beside an aggregate, 1 at least.
    Fifo(u32),
    /// A queue for each, and one aggregate in each turn.
    Turns,
    /// A queue for each, and as much airtime: in each turn this much, and what it lacks is owed.
    Airtime(Duration),
}

/// A station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Station {
    /// Its host, which packets have as [`Label::peer`]; without one it is all that are no other station's.
    pub peer: Option<u16>,
    /// The rate at which it receives.
    pub rate: Rate,
}

/// What a station got so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StationCount {
    /// Packets for it that arrived at the queue.
    pub arrived: Tally,
    /// Packets that were sent to it.
    pub departed: Tally,
    /// Aggregates.
    pub aggregates: u64,
    /// The time that they took, ns.
    pub airtime: u64,
}

impl StationCount {
    /// What happened since `earlier`, a past value of the same station.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            arrived: self.arrived.since(earlier.arrived),
            departed: self.departed.since(earlier.departed),
            aggregates: self.aggregates - earlier.aggregates,
            airtime: self.airtime - earlier.airtime,
        }
    }
}

/// An access point with queues `Q`.
#[derive(Clone, Debug)]
pub struct Wifi<Q, P> {
    air: Air,
    stations: Box<[Station]>,
    /// The number of the station of each host.
    of_peer: Box<[u16]>,
    /// One for all, or one for each station.
    queues: Box<[Q]>,
    turns: Turns,
    /// With one queue: how many packets the driver takes out of it.
    driver: Option<u32>,
    /// Packets out of the queue that are in no aggregate yet, by station.
    held: Box<[VecDeque<(Meta, P)>]>,
    holds: u32,
    /// Stations whose queues hold packets back.
    waiting: Vec<u16>,
    /// The packets of the aggregate that have not left yet, and when it ends.
    leaving: VecDeque<(Meta, P)>,
    until: Instant,
    counts: Box<[StationCount]>,
    backlog: Backlog,
    counters: Counters,
    /// When the first of the queues wants its timer.
    timer: Option<Instant>,
}

impl<P: Copy, Q: Qdisc<P>> Wifi<Q, P> {
    /// An access point that serves `stations`, of which one has no host. `queue` makes each queue, for the
    /// environment that it has.
    ///
    /// # Errors
    /// Those of `queue`.
    pub fn new<E>(
        air: Air,
        schedule: Schedule,
        stations: &[Station],
        env: &Env,
        queue: impl FnMut(Env) -> Result<Q, E>,
    ) -> Result<Self, E> {
        let (quantum, driver) = match schedule {
            Schedule::Fifo(driver) => (None, Some(driver.max(1))),
            Schedule::Turns => (None, None),
            Schedule::Airtime(quantum) => (Some(quantum.as_nanos().max(1) as i64), None),
        };
        let rates = stations.iter().map(|station| station.rate);
        let rates = if driver.is_some() { vec![env.rate] } else { rates.collect() };
        let queues = rates.into_iter().map(|rate| Env { rate, ..*env }).map(queue);
        let rest = stations.iter().position(|station| station.peer.is_none()).unwrap_or(0);
        let mut of_peer = vec![rest as u16; Label::HOSTS.into()];
        for (number, station) in (0..).zip(stations) {
            station.peer.iter().for_each(|&peer| of_peer[usize::from(peer)] = number);
        }
        let mut all = Self {
            air,
            stations: stations.into(),
            of_peer: of_peer.into(),
            queues: queues.collect::<Result<_, _>>()?,
            turns: Turns::new(stations.len(), quantum),
            driver,
            held: vec![VecDeque::with_capacity(1); stations.len()].into(),
            holds: 0,
            waiting: Vec::with_capacity(stations.len()),
            leaving: VecDeque::with_capacity(air.frames as usize),
            until: env.now,
            counts: vec![StationCount::default(); stations.len()].into(),
            backlog: Backlog::default(),
            counters: Counters::default(),
            timer: None,
        };
        all.set_timer();
        Ok(all)
    }

    /// What each station got so far, in their order.
    pub fn counts(&self) -> &[StationCount] {
        &self.counts
    }

    /// The stations, in their order.
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// The queue that all stations share, if they do.
    pub fn shared(&self) -> Option<&Q> {
        self.driver.and(self.queues.first())
    }

    fn set_timer(&mut self) {
        self.timer = self.queues.iter().filter_map(Qdisc::poll_at).min();
    }

    fn station(&self, meta: &Meta) -> u16 {
        self.of_peer[usize::from(meta.flow.label().peer)]
    }

    /// The queue of a station.
    fn queue_of(&self, station: u16) -> usize {
        if self.driver.is_some() { 0 } else { station.into() }
    }

    /// Does something with a queue that may change what waits there.
    fn with<R>(
        &mut self,
        queue: usize,
        out: &mut impl Outlet<P>,
        act: impl FnOnce(&mut Q, &mut Through<'_, P>) -> R,
    ) -> R {
        let queue = &mut self.queues[queue];
        let before = queue.backlog();
        let done = act(queue, &mut Through::counted(out, &mut self.counters));
        let after = queue.backlog();
        self.backlog.packets = self.backlog.packets - before.packets + after.packets;
        self.backlog.bytes = self.backlog.bytes - before.bytes + after.bytes;
        done
    }

    /// Takes a packet out of a queue. It still waits here.
    fn take(
        &mut self,
        queue: usize,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Option<(Meta, P)> {
        let (meta, packet) = self.with(queue, out, |queue, tap| queue.dequeue(cx, tap))?;
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(meta.len);
        Some((meta, packet))
    }

    /// The driver takes a packet out of the queue that all share, if it has room for it. Returns it if its station
    /// is `wanted`.
    fn drive(
        &mut self,
        wanted: Option<u16>,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Option<(Meta, P)> {
        while self.driver.is_some_and(|room| self.holds < room) {
            let (meta, packet) = self.take(0, cx, out)?;
            let station = self.station(&meta);
            if wanted == Some(station) {
                return Some((meta, packet));
            }
            self.held[usize::from(station)].push_back((meta, packet));
            self.holds += 1;
            self.turns.came(station);
        }
        None
    }

    /// The next packet of a station.
    fn next_of(
        &mut self,
        station: u16,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Option<(Meta, P)> {
        if let Some(held) = self.held[usize::from(station)].pop_front() {
            self.holds -= 1;
            return Some(held);
        }
        match self.driver {
            Some(_) => self.drive(Some(station), cx, out),
            None => self.take(station.into(), cx, out),
        }
    }

    /// The air is free: puts the next aggregate together, if there is one.
    fn aggregate_next(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.drive(None, cx, out);
        self.wake(cx.now);
        while let Some(station) = self.turns.next() {
            let number = usize::from(station);
            let rate = self.stations[number].rate;
            let (mut frames, mut bytes) = (0, 0);
            while let Some((meta, packet)) = self.next_of(station, cx, out) {
                let next = Air::framed(meta.len);
                if !self.air.fits(frames, bytes, next, rate) {
                    self.held[number].push_front((meta, packet));
                    self.holds += 1;
                    break;
                }
                (frames, bytes) = (frames + 1, bytes + next);
                self.leaving.push_back((meta, packet));
            }
            if frames > 0 {
                let airtime = self.air.airtime(bytes, rate);
                self.until = cx.now + airtime;
                self.turns.sent(station, airtime.as_nanos());
                self.counts[number].aggregates += 1;
                self.counts[number].airtime += airtime.as_nanos();
                return;
            }
            self.turns.had_nothing(station);
            let waits = self.queues[self.queue_of(station)].backlog().packets > 0;
            if waits && self.driver.is_none() && !self.waiting.contains(&station) {
                self.waiting.push(station);
            }
        }
    }

    /// Stations whose queues held packets back until now have their turns again.
    fn wake(&mut self, now: Instant) {
        let Self { waiting, queues, turns, .. } = self;
        waiting.retain(|&station| {
            let ready = queues[usize::from(station)].ready_at().is_none_or(|at| at <= now);
            if ready {
                turns.came(station);
            }
            !ready
        });
    }
}

impl<P: Copy, Q: Qdisc<P>> Qdisc<P> for Wifi<Q, P> {
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        self.counters.arrived.count(meta.len);
        let station = self.station(&meta);
        self.counts[usize::from(station)].arrived.count(meta.len);
        let queue = self.queue_of(station);
        self.with(queue, out, |queue, tap| queue.enqueue(meta, packet, cx, tap));
        if self.driver.is_none() && self.queues[queue].backlog().packets > 0 {
            self.turns.came(station);
        }
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        if self.leaving.is_empty() {
            self.aggregate_next(cx, out);
        }
        let (meta, packet) = self.leaving.pop_front()?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(meta.len);
        self.counters.departed.count(meta.len);
        let station = self.station(&meta);
        self.counts[usize::from(station)].departed.count(meta.len);
        Some((meta, packet))
    }

    fn aggregate(&self) -> Option<Aggregate> {
        Some(Aggregate { until: self.until, more: !self.leaving.is_empty() })
    }

    fn ready_at(&self) -> Option<Instant> {
        match self.shared() {
            Some(queue) => queue.ready_at(),
            None => {
                let queue = |station: &u16| &self.queues[usize::from(*station)];
                self.waiting.iter().filter_map(|station| queue(station).ready_at()).min()
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn poll_at(&self) -> Option<Instant> {
        self.timer
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        for queue in 0..self.queues.len() {
            if self.queues[queue].poll_at().is_some_and(|at| at <= cx.now) {
                self.with(queue, out, |queue, tap| queue.on_timer(cx, tap));
            }
        }
        self.set_timer();
    }

    /// The signals of the queue that all share, or how many stations have packets.
    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        match self.shared() {
            Some(queue) => queue.observe(now, sink),
            None => {
                let busy = self.queues.iter().filter(|queue| queue.backlog().packets > 0).count();
                sink("active_stations", busy as f64);
            }
        }
    }

    /// How many packets the driver holds, which are out of the queue and in no aggregate, and how many of them are
    /// for its station; or the signals of its station's queue. And what the queue reports.
    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let station = self.station(packet);
        let queue = &self.queues[self.queue_of(station)];
        if self.driver.is_some() {
            sink("flow_driver_packets", f64::from(self.holds));
            sink("flow_driver_own", self.held[usize::from(station)].len() as f64);
        } else {
            queue.observe(now, sink);
        }
        queue.observe_flow(packet, now, sink);
    }

    fn state(&self) -> State {
        let mut all = State { queue: size_of::<Self>() as u64, ..State::default() };
        all.queue += size_of_val(&*self.of_peer) as u64;
        all.queue += (self.stations.len() * size_of::<(Station, StationCount, i64)>()) as u64;
        for queue in &self.queues {
            let own = queue.state();
            all.queue += own.queue;
            all.flows += own.flows;
            all.per_flow = all.per_flow.max(own.per_flow);
            all.per_packet = all.per_packet.max(own.per_packet);
        }
        all
    }
}
