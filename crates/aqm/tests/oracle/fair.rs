use std::collections::{BTreeMap, VecDeque};

use aqm::hash::FlowHash;

use super::codel::{Codel, codel};
use super::drops::DropTail;
use super::pie::{Pie, pie};
use super::red::{Red, red, red_settings};
use super::*;

/// A buffer for several queues.
pub(super) struct Buffer<M> {
    pub(super) queues: Vec<Naive<M>>,
    room: Room,
    pub(super) events: Vec<Event>,
    /// The longest queue is that with the most packets.
    by_packets: bool,
    /// An arriving packet for which there is no room is dropped, and no queue asked.
    pub(super) arriving: bool,
}

pub(super) fn bytes(q: &[Packet]) -> u64 {
    q.iter().map(|p| u64::from(p.len)).sum()
}

impl<M: Model> Buffer<M> {
    pub(super) fn new(room: Room, of_queue: Room, models: Vec<M>) -> Self {
        let queue = |model| Naive { model, room: of_queue, q: Vec::new(), events: Vec::new() };
        Self {
            queues: models.into_iter().map(queue).collect(),
            room,
            events: Vec::new(),
            by_packets: false,
            arriving: false,
        }
    }

    pub(super) fn too_full(&self) -> bool {
        match self.room {
            Room::Packets(n) => self.queues.iter().map(|q| q.q.len() as u64).sum::<u64>() > n,
            Room::Bytes(n) => self.queues.iter().map(|q| bytes(&q.q)).sum::<u64>() > n,
        }
    }

    pub(super) fn arrive(&mut self, queue: usize, now: u64, packet: Packet, rng: &mut Rng) {
        let all = self.queues.iter().flat_map(|queue| &queue.q);
        let no_room = match self.room {
            Room::Packets(n) => self.arriving && all.count() as u64 >= n,
            Room::Bytes(n) => {
                let waiting: u64 = all.map(|p| u64::from(p.len)).sum();
                (if self.arriving { waiting } else { 0 }) + u64::from(packet.len) > n
            }
        };
        if no_room {
            let Naive { model, q, .. } = &mut self.queues[queue];
            if self.arriving {
                model.victim(q, rng);
            }
            self.events.push(Event::Dropped(packet.id, Cause::Overflow));
        } else {
            self.queues[queue].arrive(now, packet, rng);
            self.events.append(&mut self.queues[queue].events);
        }
    }

    /// The packet that a queue sends: its length.
    pub(super) fn depart(&mut self, queue: usize, now: u64, rng: &mut Rng) -> Option<u32> {
        let lens: BTreeMap<u32, u32> = self.queues[queue].q.iter().map(|p| (p.id, p.len)).collect();
        self.queues[queue].depart(now, rng);
        let mut events = std::mem::take(&mut self.queues[queue].events);
        let sent = match events.last() {
            Some(Event::Sent(id, _)) => Some(lens[id]),
            _ => {
                events.pop();
                None
            }
        };
        self.events.extend(events);
        sent
    }

    pub(super) fn longest(&self) -> usize {
        let mut longest = 0;
        for (i, queue) in self.queues.iter().enumerate() {
            let length = |q: &[Packet]| if self.by_packets { q.len() as u64 } else { bytes(q) };
            if length(&queue.q) > length(&self.queues[longest].q) {
                longest = i;
            }
        }
        longest
    }

    pub(super) fn steal(&mut self, queue: usize, front: bool) {
        self.queues[queue].model.gave_way();
        let q = &mut self.queues[queue].q;
        let victim = if front { q.remove(0) } else { q.pop().unwrap() };
        self.events.push(Event::Dropped(victim.id, Cause::Overflow));
    }

    /// What there is of a queue, which may send so much of its turn and is in a list.
    fn of_queue(&self, now: u64, queue: usize, turn: [f64; 2]) -> Vec<f64> {
        let own = &self.queues[queue];
        let mut all = vec![queue as f64, own.q.len() as f64, bytes(&own.q) as f64];
        all.extend(turn);
        all.extend(own.model.signals(now));
        all.extend(own.model.more());
        all
    }

    fn signals(&self) -> Vec<f64> {
        let busy = self.queues.iter().filter(|q| !q.q.is_empty()).count();
        let most = self.queues.iter().map(|queue| bytes(&queue.q)).max().unwrap();
        vec![busy as f64, most as f64]
    }
}

/// What Linux's FQ-CoDel does otherwise.
#[derive(Clone, Copy, Default, Debug)]
struct Linux {
    /// Half of the bytes is dropped, not of the packets.
    half_bytes: bool,
    /// The backlog is that of all queues.
    all: bool,
    /// With it, until 7.0: an empty queue stays above target.
    stale: bool,
    /// A new queue that is empty leaves if there are no old ones.
    leaves: bool,
    /// FQ-PIE: the arriving packet gives way.
    arriving: bool,
}

/// SFQ and FQ-CoDel: RFC 8290 §4 with or without new queues, by bytes or by packets.
struct Hashed<M> {
    buffer: Buffer<M>,
    hash: Option<FlowHash>,
    /// Queues of a set, and the flow that each was given to last.
    ways: usize,
    owners: BTreeMap<usize, u64>,
    perturb: u64,
    changes: u64,
    quantum: Option<u32>,
    prefer_new: bool,
    front: bool,
    batch: usize,
    linux: Linux,
    /// A packet that comes to an empty queue goes to the end.
    at_once: bool,
    credit: Vec<i64>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

impl<M: Model> Hashed<M> {
    fn new(buffer: Buffer<M>) -> Self {
        Self {
            hash: None,
            ways: 1,
            owners: BTreeMap::new(),
            perturb: 0,
            changes: 0,
            quantum: None,
            prefer_new: false,
            front: false,
            batch: 1,
            linux: Linux::default(),
            at_once: false,
            credit: vec![0; buffer.queues.len()],
            new: VecDeque::new(),
            old: VecDeque::new(),
            buffer,
        }
    }
}

impl<M: Model> Hashed<M> {
    /// The queue of a flow: of its set the first that has its name or is in no list, else the first.
    fn queue_of(&self, flow: u64) -> usize {
        let sets = self.buffer.queues.len() / self.ways;
        let first = self.hash.as_ref().unwrap().bin(FlowKey(flow), sets as u32) * self.ways;
        for queue in first..first + self.ways {
            let listed = self.new.contains(&queue) || self.old.contains(&queue);
            if !listed || self.owners[&queue] == flow {
                return queue;
            }
        }
        first
    }
}

impl<M: Model> Side for Hashed<M> {
    fn start(&mut self, rng: &mut Rng) {
        self.hash = Some(FlowHash::new(rng));
    }

    fn arrive(&mut self, now: u64, packet: Packet, rng: &mut Rng) {
        let queue = self.queue_of(packet.flow);
        self.owners.insert(queue, packet.flow);
        if self.at_once && self.buffer.queues[queue].q.is_empty() {
            self.old.retain(|q| *q != queue);
        }
        self.buffer.arrive(queue, now, packet, rng);
        let listed = self.new.contains(&queue) || self.old.contains(&queue);
        if !listed && !self.buffer.queues[queue].q.is_empty() {
            self.credit[queue] = i64::from(self.quantum.unwrap_or(1));
            if self.prefer_new {
                self.new.push_back(queue);
            } else {
                self.old.push_back(queue);
            }
        }
        while self.buffer.too_full() {
            let longest = self.buffer.longest();
            let whole = &self.buffer.queues[longest].q;
            let (half, half_bytes) = (whole.len().div_ceil(2), bytes(whole) / 2);
            let mut dropped = (0, 0);
            while dropped.0 < self.batch {
                let q = &self.buffer.queues[longest].q;
                dropped.1 += u64::from(if self.front { q[0] } else { q[q.len() - 1] }.len);
                dropped.0 += 1;
                self.buffer.steal(longest, self.front);
                let enough = dropped.1 >= half_bytes;
                if if self.linux.half_bytes { enough } else { dropped.0 >= half } {
                    break;
                }
            }
        }
    }

    fn depart(&mut self, now: u64, rng: &mut Rng) {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(queue) = list.pop_front() else {
                return self.buffer.events.push(Event::Idle);
            };
            if self.credit[queue] <= 0 {
                self.credit[queue] += i64::from(self.quantum.unwrap_or(1));
                self.old.push_back(queue);
                continue;
            }
            if self.linux.all {
                let all: u64 = self.buffer.queues.iter().map(|q| bytes(&q.q)).sum();
                let own = &mut self.buffer.queues[queue];
                own.model.others(all - bytes(&own.q), self.linux.stale);
            }
            if let Some(len) = self.buffer.depart(queue, now, rng) {
                self.credit[queue] -= if self.quantum.is_some() { i64::from(len) } else { 1 };
                let list = if from_new { &mut self.new } else { &mut self.old };
                return list.push_front(queue);
            }
            if from_new && !(self.linux.leaves && self.old.is_empty()) {
                self.old.push_back(queue);
            }
        }
    }

    fn clock(&mut self, now: u64, rng: &mut Rng) {
        while self.perturb > 0 && (self.changes + 1) * self.perturb <= now {
            self.changes += 1;
            self.hash = Some(FlowHash::new(rng));
        }
        for queue in &mut self.buffer.queues {
            queue.model.clock(now, &queue.q);
        }
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.buffer.events)
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        self.buffer.signals()
    }

    fn of_flow(&self, now: u64, flow: u64) -> Vec<f64> {
        let queue = self.queue_of(flow);
        let turn = match (self.new.contains(&queue), self.old.contains(&queue)) {
            (true, _) => [self.credit[queue] as f64, 1.0],
            (_, true) => [self.credit[queue] as f64, 2.0],
            _ => [0.0, 0.0],
        };
        self.buffer.of_queue(now, queue, turn)
    }
}

/// SV95 Fig. 2.
struct Drr {
    buffer: Buffer<DropTail>,
    quantum: u32,
    front: bool,
    /// The queue of each flow that has packets. Queues that are free: the last is taken first.
    of_flow: BTreeMap<u64, usize>,
    free: Vec<usize>,
    deficit: Vec<u32>,
    active: VecDeque<usize>,
    turn: Option<usize>,
}

impl Drr {
    fn new(room: Room, quantum: u32, front: bool) -> Self {
        let queues = match room {
            Room::Packets(n) => n + 1,
            Room::Bytes(n) => n / 28 + 1,
        } as usize;
        let models = (0..queues).map(|_| DropTail).collect();
        Self {
            buffer: Buffer::new(room, Room::Packets(u64::MAX), models),
            quantum,
            front,
            of_flow: BTreeMap::new(),
            free: (0..queues).rev().collect(),
            deficit: vec![0; queues],
            active: VecDeque::new(),
            turn: None,
        }
    }

    fn forget_if_empty(&mut self, queue: usize) {
        if self.buffer.queues[queue].q.is_empty() {
            self.of_flow.retain(|_, q| *q != queue);
            self.free.push(queue);
            self.active.retain(|q| *q != queue);
            self.turn = self.turn.filter(|q| *q != queue);
        }
    }
}

impl Side for Drr {
    fn start(&mut self, rng: &mut Rng) {
        FlowHash::new(rng); // the library's secret
    }

    fn arrive(&mut self, now: u64, packet: Packet, rng: &mut Rng) {
        let queue = *self.of_flow.entry(packet.flow).or_insert_with(|| self.free.pop().unwrap());
        self.buffer.arrive(queue, now, packet, rng);
        if self.buffer.queues[queue].q.is_empty() {
            return self.forget_if_empty(queue);
        }
        if self.turn != Some(queue) && !self.active.contains(&queue) {
            self.active.push_back(queue);
            self.deficit[queue] = 0;
        }
        while self.buffer.too_full() {
            let longest = self.buffer.longest();
            self.buffer.steal(longest, self.front);
            self.forget_if_empty(longest);
        }
    }

    fn depart(&mut self, now: u64, rng: &mut Rng) {
        loop {
            let queue = match self.turn {
                Some(queue) => queue,
                None => {
                    let Some(queue) = self.active.pop_front() else {
                        return self.buffer.events.push(Event::Idle);
                    };
                    self.deficit[queue] += self.quantum;
                    self.turn = Some(queue);
                    queue
                }
            };
            let len = self.buffer.queues[queue].q[0].len;
            if len <= self.deficit[queue] {
                self.deficit[queue] -= len;
                self.buffer.depart(queue, now, rng);
                return self.forget_if_empty(queue);
            }
            self.active.push_back(queue);
            self.turn = None;
        }
    }

    fn clock(&mut self, _: u64, _: &mut Rng) {}

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.buffer.events)
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        self.buffer.signals()
    }

    fn of_flow(&self, now: u64, flow: u64) -> Vec<f64> {
        let Some(&queue) = self.of_flow.get(&flow) else { return vec![-1.0, 0.0, 0.0, 0.0, 0.0] };
        // The library adds the quantum as a turn ends, SV95 as the next one begins.
        let next = if self.turn == Some(queue) { 0 } else { self.quantum };
        self.buffer.of_queue(now, queue, [f64::from(self.deficit[queue] + next), 2.0])
    }
}

/// RFC 8290 with a model for each queue.
fn flow_queues<M: Model>(
    name: &str,
    of_queue: impl IntoIterator<Item = (&'static str, String)>,
    models: Vec<M>,
    (ways, quantum, batch, linux): (usize, u32, usize, Linux),
    room: Room,
    ops: &[Op],
) -> Result<(), TestCaseError> {
    let word = |linux: bool, words: [&str; 2]| words[usize::from(linux)].to_string();
    let mut settings = vec![
        ("queues", models.len().to_string()),
        ("ways", ways.to_string()),
        ("quantum", quantum.to_string()),
        ("drop_batch", batch.to_string()),
        ("drop_half", word(linux.half_bytes, ["packets", "bytes"])),
        ("backlog", word(linux.all, ["queue", word(linux.stale, ["all", "all-stale"]).as_str()])),
        ("emptied", word(linux.leaves, ["old", "old-if-any"])),
        ("overflow", word(linux.arriving, ["longest", "arriving"])),
    ];
    settings.extend(of_queue);
    let buffer = Buffer::new(room, Room::Packets(u64::MAX), models);
    let buffer = Buffer { arriving: linux.arriving, ..buffer };
    let side = Hashed {
        ways,
        quantum: Some(quantum),
        prefer_new: true,
        front: true,
        batch,
        linux,
        ..Hashed::new(buffer)
    };
    compare_with(name, &settings, room, ops, side)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn sfq_is_its_model(
        (n, quantum, perturb, front) in (
            1..6u32,
            prop::option::of(prop::sample::select(vec![1u32, 700, 1514, 5000])),
            prop::sample::select(vec![0, 0, 3_000_000, 50_000_000]),
            any::<bool>(),
        ),
        (by_packets, at_once) in any::<(bool, bool)>(),
        of_queue in prop::option::of(room()), red in prop::option::of(red()),
        room in room(), ops in traffic(),
    ) {
        let mut settings = vec![
            ("queues", n.to_string()),
            ("quantum", quantum.map_or("none".into(), |q| q.to_string())),
            ("perturb", format!("{perturb}ns")),
            ("longest_by", if by_packets { "packets" } else { "bytes" }.into()),
            ("leaves", if at_once { "at-once" } else { "in-turn" }.into()),
            ("drop", if front { "front" } else { "tail" }.into()),
            ("queue_limit", match of_queue {
                None => "none".into(),
                Some(Room::Packets(n)) => amount(n, false),
                Some(Room::Bytes(n)) => amount(n, true),
            }),
            ("aqm", if red.is_some() { "red" } else { "droptail" }.into()),
        ];
        let of_queue = of_queue.unwrap_or(Room::Packets(u64::MAX));
        match red {
            None => {
                let models = (0..n).map(|_| DropTail).collect();
                let buffer = Buffer { by_packets, ..Buffer::new(room, of_queue, models) };
                let side = Hashed { quantum, perturb, front, at_once, ..Hashed::new(buffer) };
                compare_with("sfq", &settings, room, &ops, side)?;
            }
            Some(c) => {
                settings.extend(red_settings(&c));
                settings.push(("ns2_rules", c.ns2.to_string()));
                let models = (0..n).map(|_| Red::new(c.clone())).collect();
                let buffer = Buffer { by_packets, ..Buffer::new(room, of_queue, models) };
                let side = Hashed { quantum, perturb, front, at_once, ..Hashed::new(buffer) };
                compare_with("sfq", &settings, room, &ops, side)?;
            }
        }
    }

    #[test]
    fn fq_codel_is_its_model(
        c in codel(), n in 1..6usize, ways in 1..4usize, quantum in prop::sample::select(vec![1u32, 300, 1514, 5000]),
        batch in 1..5usize,
        (half_bytes, all, stale, leaves, arriving) in any::<(bool, bool, bool, bool, bool)>(),
        room in room(), ops in traffic(),
    ) {
        let models = (0..n * ways).map(|_| Codel::new(c.clone())).collect();
        let linux = Linux { half_bytes, all, stale, leaves, arriving };
        flow_queues("fq-codel", c.list(), models, (ways, quantum, batch, linux), room, &ops)?;
    }

    #[test]
    fn fq_pie_is_its_model(
        c in pie(), n in 1..6usize, ways in 1..4usize, quantum in prop::sample::select(vec![1u32, 300, 1514, 5000]),
        batch in 1..5usize, (half_bytes, leaves, arriving) in any::<(bool, bool, bool)>(),
        room in room(), ops in traffic(),
    ) {
        let models = (0..n * ways).map(|_| Pie::new(c.clone())).collect();
        let linux = Linux { half_bytes, leaves, arriving, ..Linux::default() };
        flow_queues("fq-pie", c.list(), models, (ways, quantum, batch, linux), room, &ops)?;
    }

    #[test]
    fn drr_is_its_model(
        quantum in prop::sample::select(vec![1u32, 40, 700, 1500, 9000]), front in any::<bool>(),
        room in room(), ops in traffic(),
    ) {
        let settings = [
            ("quantum", quantum.to_string()),
            ("drop", if front { "front" } else { "tail" }.into()),
        ];
        compare_with("drr", &settings, room, &ops, Drr::new(room, quantum, front))?;
    }
}
