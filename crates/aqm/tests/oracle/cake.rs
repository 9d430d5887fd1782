//! CAKE as its paper and manual describe it, with lists that are searched and rounds that are counted
//! one by one.

use std::collections::VecDeque;

use aqm::hash::{Cuts, FlowHash};

use super::cobalt::Cobalt;
use super::fair::{Buffer, bytes};
use super::*;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Set {
    None,
    Sparse,
    SparseWait,
    Bulk,
    Decaying,
}

#[derive(Clone)]
struct Flow {
    tag: u32,
    set: Set,
    host: u64,
    peer: u64,
    deficit: i64,
}

struct Tin {
    /// Bits per second.
    rate: u64,
    next: u64,
    flows: Vec<Flow>,
    sparse: VecDeque<usize>,
    decaying: VecDeque<usize>,
    /// Bulk flows, and those that wait for a packet among them: in which round their turn comes, and
    /// since when they wait.
    bulk: Vec<(u64, u64, usize)>,
    round: u64,
    waits: u64,
    /// Without a rate: bytes that it may still send, and gets in a round.
    credit: i64,
    weight: i64,
    /// What its queues' COBALTs tolerate at least, and the time of a long packet.
    times: [u64; 2],
}

struct Cake {
    buffer: Buffer<Cobalt>,
    hash: Option<FlowHash>,
    sets: u32,
    diffserv: &'static str,
    isolation: &'static str,
    ack_filter: &'static str,
    filtered: u32,
    tins: Vec<Tin>,
    /// Drops count.
    ingress: bool,
    /// There is no rate: the tin whose turn it is.
    unlimited: Option<usize>,
    /// When the next packet may go, and when one may however much is dropped.
    shaper: [u64; 2],
}

/// Shares of the link by tin, in parts of 16 (or 7/8 of the one before).
fn rates(diffserv: &str) -> Vec<u64> {
    let link = 8_000_000u64;
    match diffserv {
        "besteffort" => vec![link],
        "diffserv3" => vec![link, link / 16, link / 4],
        "diffserv4" => vec![link, link / 16, link / 2, link / 4],
        _ => (0..8).map(|n| link * 7u64.pow(n) / 8u64.pow(n)).collect(),
    }
}

/// Of the codepoints that are tried: CS0, CS1, EF, AF41.
fn tin_of(diffserv: &str, dscp: u64) -> usize {
    let column = [0, 8, 46, 34].iter().position(|known| *known == dscp).unwrap();
    let row = match diffserv {
        "besteffort" => [0, 0, 0, 0],
        "diffserv3" => [0, 1, 2, 0],
        "diffserv4" => [0, 1, 3, 2],
        "diffserv8" => [2, 1, 6, 3],
        _ => [0, 1, 5, 4],
    };
    row[column]
}

/// Who sends and who receives.
fn hosts(key: u64) -> [u64; 2] {
    [key >> 45 & 0x1fff, key >> 32 & 0x1fff]
}

fn transmission(bytes: u64, rate: u64) -> u64 {
    ((u128::from(bytes) * 8_000_000_000 + u128::from(rate / 2)) / u128::from(rate)) as u64
}

impl Tin {
    fn quantum(&self) -> i64 {
        let bytes = (self.rate / 8 / 4096).clamp(300, 1514);
        bytes as i64 * 65_536
    }

    /// The load of a flow between two hosts.
    fn host_load(&self, [host, peer]: [u64; 2], isolation: &str) -> i64 {
        let bulk = |same: &dyn Fn(&Flow) -> bool| {
            self.flows.iter().filter(|f| f.set == Set::Bulk && same(f)).count() as i64
        };
        let mut load = 1;
        if ["triple-isolate", "dual-srchost"].contains(&isolation) {
            load = load.max(bulk(&|f| f.host == host));
        }
        if ["triple-isolate", "dual-dsthost"].contains(&isolation) {
            load = load.max(bulk(&|f| f.peer == peer));
        }
        load
    }

    /// What the flow of a queue gets in a round.
    fn share(&self, queue: usize, isolation: &str) -> i64 {
        let Flow { host, peer, .. } = self.flows[queue];
        self.quantum() / self.host_load([host, peer], isolation)
    }

    /// A packet counts against its rate.
    fn takes(&mut self, len: u32, now: u64) {
        let time = (f64::from(len) * (8e9 / self.rate as f64)) as u64;
        if self.next < now {
            self.next += time;
        } else if self.next < now + time {
            self.next = now + time;
        }
    }

    fn listed(&self) -> usize {
        self.sparse.len() + self.bulk.len()
    }
}

impl Cake {
    fn start_of(&self, tin: usize) -> usize {
        tin * self.sets as usize * 8
    }

    /// The queue of a tin for a packet, its tag there, and whether its flow has it already.
    fn find(&self, tin: usize, key: u64) -> (usize, u32, bool) {
        let [host, peer] = hosts(key);
        let told = match self.isolation {
            "flowblind" => 0,
            "srchost" => host << 45,
            "dsthost" => peer << 32,
            "hosts" => host << 45 | peer << 32,
            _ => key & 0x03ff_ffff_ffff_ffff,
        };
        let word = self.hash.as_ref().unwrap().word(FlowKey(told));
        let set = Cuts::new(self.sets).of(word).next().unwrap() * 8;
        let rest = (u128::from(word) * u128::from(self.sets)) as u64;
        let direct = set + (rest >> 61) as usize;
        let tag = word as u32;
        let flows = &self.tins[tin].flows;
        let ways: Vec<usize> = (0..8).map(|i| set + (direct + i) % 8).collect();
        let mut found = None;
        for &way in ways.iter().rev() {
            if flows[way].tag == tag {
                found = Some(way);
            }
        }
        // A queue that was given back still has the tag: a living one goes first where it is direct.
        if flows[direct].tag == tag && flows[direct].set != Set::None {
            return (direct, tag, true);
        }
        if let Some(way) = found.filter(|way| flows[*way].set != Set::None) {
            return (way, tag, true);
        }
        let free = ways.iter().copied().find(|way| flows[*way].set == Set::None);
        (found.or(free).unwrap_or(direct), tag, false)
    }

    /// The same, which is the flow's from now on.
    fn queue_of(&mut self, tin: usize, key: u64) -> usize {
        let (queue, tag, its) = self.find(tin, key);
        if !its {
            let [host, peer] = hosts(key);
            let flow = &mut self.tins[tin].flows[queue];
            *flow = Flow { tag, host, peer, ..flow.clone() };
        }
        queue
    }

    fn came(&mut self, tin: usize, queue: usize) {
        let t = &mut self.tins[tin];
        match t.flows[queue].set {
            Set::None | Set::Decaying => {
                t.decaying.retain(|q| *q != queue);
                t.sparse.push_back(queue);
                t.flows[queue].set = Set::Sparse;
                t.flows[queue].deficit = t.share(queue, self.isolation);
            }
            Set::SparseWait => t.flows[queue].set = Set::Bulk,
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// The tin to serve.
    fn best_tin(&self, now: u64) -> Option<usize> {
        let busy: Vec<usize> =
            (0..self.tins.len()).filter(|t| self.tins[*t].listed() > 0).collect();
        let in_time = busy.iter().copied().filter(|t| self.tins[*t].next <= now).max();
        // The last of those that are as soon.
        in_time.or(busy.into_iter().rev().min_by_key(|t| self.tins[*t].next))
    }

    fn turn(&mut self, tin: usize, first: bool) -> Option<usize> {
        let start = self.start_of(tin);
        let t = &mut self.tins[tin];
        if first && let Some(queue) = t.decaying.front() {
            return Some(*queue);
        }
        loop {
            let queue = match t.sparse.front() {
                Some(queue) => *queue,
                None => {
                    let Some(&(round, _, queue)) = t.bulk.iter().min() else {
                        return t.decaying.front().copied();
                    };
                    t.round = round;
                    queue
                }
            };
            if t.flows[queue].deficit > 0 {
                return Some(queue);
            }
            t.sparse.retain(|q| *q != queue);
            t.bulk.retain(|(_, _, q)| *q != queue);
            if t.flows[queue].set == Set::Sparse {
                let packets = self.buffer.queues[start + queue].q.len();
                t.flows[queue].set = if packets > 0 { Set::Bulk } else { Set::SparseWait };
            }
            let share = t.share(queue, self.isolation);
            let mut round = t.round;
            while t.flows[queue].deficit <= 0 && round < t.round + 63 {
                t.flows[queue].deficit += share;
                round += 1;
            }
            t.waits += 1;
            t.bulk.push((round, t.waits, queue));
        }
    }

    fn found_empty(&mut self, tin: usize, queue: usize, now: u64) {
        let start = self.start_of(tin);
        let t = &mut self.tins[tin];
        t.sparse.retain(|q| *q != queue);
        t.bulk.retain(|(_, _, q)| *q != queue);
        t.decaying.retain(|q| *q != queue);
        t.flows[queue].set = Set::None;
        if !self.buffer.queues[start + queue].model.at_rest(now) {
            t.flows[queue].set = Set::Decaying;
            t.decaying.push_back(queue);
        }
    }

    /// The acknowledgement at the end of a queue may make one before it needless.
    fn filter_acks(&mut self, line: usize) {
        let q = &mut self.buffer.queues[line].q;
        let new = *q.last().unwrap();
        let Some(told) = acknowledged(new.id) else { return };
        // Its flow's acknowledgements before it: where they stand, ECE, and whether they are needless.
        let mut before = Vec::new();
        for (place, packet) in
            q[..q.len() - 1].iter().enumerate().filter(|(_, p)| p.flow == new.flow)
        {
            if let Some(ack) = acknowledged(packet.id) {
                before.push((place, ack.ece, ack.bare && ack.number < told.number));
            }
        }
        // Stretches of equal ECE; the first two needless ones of a stretch.
        let stretches: Vec<Vec<usize>> = before
            .chunk_by(|a, b| a.1 == b.1)
            .map(|stretch| {
                stretch.iter().filter(|(.., needless)| *needless).map(|(p, ..)| *p).collect()
            })
            .collect();
        let mut victim = stretches.iter().find(|needless| needless.len() > 1).map(|two| two[0]);
        if victim.is_none()
            && self.ack_filter == "aggressive"
            && let Some(&(place, ece, true)) = before.last()
            && place + 2 == q.len()
            && ece == told.ece
        {
            victim = Some(place);
        }
        if let Some(place) = victim {
            let gone = q.remove(place);
            self.buffer.events.push(Event::Dropped(gone.id, Cause::Early));
            self.filtered += 1;
            self.lost(line / (8 * self.sets as usize), gone.len, new.arrived);
        }
    }

    /// A packet of a tin was dropped without its turn.
    fn lost(&mut self, tin: usize, len: u32, now: u64) {
        if self.ingress {
            self.tins[tin].takes(len, now);
            self.shaper[0] += self.on_link(len);
        }
    }

    /// How long a packet takes at the shaper's rate, 8 Mbit/s.
    fn on_link(&self, len: u32) -> u64 {
        if self.unlimited.is_some() { 0 } else { 1000 * u64::from(len) }
    }

    fn next_tin(&mut self, now: u64) -> Option<usize> {
        let Some(mut turn) = self.unlimited else { return self.best_tin(now) };
        if self.tins.iter().all(|tin| tin.listed() == 0) {
            return None;
        }
        while self.tins[turn].listed() == 0 || self.tins[turn].credit < 0 {
            let tin = &mut self.tins[turn];
            tin.credit += if tin.credit <= 0 { tin.weight } else { 0 };
            turn = if turn + 1 < self.tins.len() { turn + 1 } else { 0 };
        }
        self.unlimited = Some(turn);
        Some(turn)
    }

    /// The shaper holds all packets back.
    fn is_held(&self, now: u64) -> bool {
        self.ingress && self.shaper.iter().all(|at| *at > now)
    }

    /// With `ingress` or `unlimited`, where each packet is a step of its own: whether one is sent.
    fn step_by_step(&mut self, now: u64, rng: &mut Rng) -> bool {
        let waiting = |cake: &Self| (0..cake.tins.len()).any(|tin| cake.packets(tin) > 0);
        if !waiting(self) || self.is_held(now) {
            return false;
        }
        let Some(mut tin) = self.next_tin(now) else { return false };
        let mut first = true;
        while waiting(self) {
            let queue = self.turn(tin, std::mem::take(&mut first)).unwrap();
            let line = self.start_of(tin) + queue;
            let bulk = self.tins[tin].flows.iter().filter(|f| f.set == Set::Bulk).count() as u64;
            let Naive { model, q, .. } = &mut self.buffer.queues[line];
            if q.is_empty() {
                model.idle(now, rng);
                self.found_empty(tin, queue, now);
                if self.is_held(now) {
                    return false;
                }
                if waiting(self) {
                    tin = self.next_tin(now).unwrap();
                }
                continue;
            }
            let [least, packet] = self.tins[tin].times;
            if self.ingress {
                model.four = least.max(2 * bulk * packet);
            }
            let mut head = q.remove(0);
            let drop = model.should_drop(now, &mut head, rng) && !q.is_empty();
            if drop {
                self.buffer.events.push(Event::Dropped(head.id, Cause::Early));
            } else {
                let marked = head.marked;
                self.buffer.events.extend(marked.then_some(Event::Marked(head.id)));
                self.buffer.events.push(Event::Sent(head.id, marked));
            }
            if self.ingress || !drop {
                self.tins[tin].flows[queue].deficit -= i64::from(head.len) * 65_536;
                self.tins[tin].credit -= i64::from(head.len);
                self.tins[tin].takes(head.len, now);
                self.shaper[0] += self.on_link(head.len);
            }
            if !drop {
                self.shaper[1] += self.on_link(head.len) * 3 / 2;
                return true;
            }
        }
        false
    }

    fn packets(&self, tin: usize) -> usize {
        let queues = self.sets as usize * 8;
        self.buffer.queues[self.start_of(tin)..][..queues].iter().map(|q| q.q.len()).sum()
    }
}

impl Side for Cake {
    fn start(&mut self, rng: &mut Rng) {
        self.hash = Some(FlowHash::new(rng));
    }

    fn arrive(&mut self, now: u64, packet: Packet, rng: &mut Rng) {
        let tin = tin_of(self.diffserv, packet.flow >> 58);
        let queue = self.queue_of(tin, packet.flow);
        let line = self.start_of(tin) + queue;
        let (before, empty) = (self.buffer.queues[line].q.len(), self.packets(tin) == 0);
        let alone = (0..self.tins.len()).all(|tin| self.packets(tin) == 0);
        self.buffer.arrive(line, now, packet, rng);
        if self.buffer.queues[line].q.len() == before {
            return;
        }
        if empty && self.tins[tin].next < now {
            self.tins[tin].next = now;
        }
        self.came(tin, queue);
        if alone && self.shaper[0] < now {
            self.shaper = [now; 2];
        }
        if self.ack_filter != "off" {
            self.filter_acks(line);
        }
        while self.buffer.too_full() {
            let longest = self.buffer.longest();
            self.buffer.queues[longest].model.queue_full(now);
            let len = self.buffer.queues[longest].q[0].len;
            self.buffer.steal(longest, true);
            self.lost(longest / (8 * self.sets as usize), len, now);
        }
    }

    fn depart(&mut self, now: u64, rng: &mut Rng) {
        if self.ingress || self.unlimited.is_some() {
            if !self.step_by_step(now, rng) {
                self.buffer.events.push(Event::Idle);
            }
            return;
        }
        let mut first = true;
        while (0..self.tins.len()).any(|tin| self.packets(tin) > 0) {
            let tin = self.best_tin(now).unwrap();
            let queue = self.turn(tin, first).unwrap();
            first = false;
            let line = self.start_of(tin) + queue;
            let Some(len) = self.buffer.depart(line, now, rng) else {
                self.found_empty(tin, queue, now);
                continue;
            };
            let t = &mut self.tins[tin];
            t.flows[queue].deficit -= i64::from(len) * 65_536;
            t.takes(len, now);
            return;
        }
        self.buffer.events.push(Event::Idle);
    }

    fn clock(&mut self, _: u64, _: &mut Rng) {}

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.buffer.events)
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        let count = |sets: &[Set]| {
            let flows = self.tins.iter().flat_map(|t| &t.flows);
            flows.filter(|f| sets.contains(&f.set)).count() as f64
        };
        let mut all = vec![count(&[Set::Sparse, Set::SparseWait]), count(&[Set::Bulk])];
        all.extend([count(&[Set::Decaying]), self.filtered.into()]);
        all
    }

    fn of_flow(&self, now: u64, flow: u64) -> Vec<f64> {
        let tin = tin_of(self.diffserv, flow >> 58);
        let (queue, ..) = self.find(tin, flow);
        let t = &self.tins[tin];
        let share = t.quantum() / t.host_load(hosts(flow), self.isolation);
        let own = &self.buffer.queues[self.start_of(tin) + queue];
        let mut all = vec![tin as f64, queue as f64, own.q.len() as f64, bytes(&own.q) as f64];
        all.extend([t.flows[queue].deficit as f64 / 65_536.0, share as f64 / 65_536.0]);
        all.push(f64::from(t.flows[queue].set as u8));
        all.extend(own.model.signals(now));
        all.extend(own.model.more());
        all
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn cake_is_its_model(
        diffserv in pick(&["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"]),
        isolation in pick(&["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost",
                            "dual-dsthost", "triple-isolate"]),
        rtt in prop::sample::select(vec![1_000u64, 2_000_000, 100_000_000]),
        target in prop::option::of(0..4_000_000u64),
        (sets, mtu, ecn) in
            (1..4u32, prop::sample::select(vec![0u64, 300, 1514]), prop::bool::weighted(0.7)),
        ack_filter in pick(&["off", "on", "aggressive"]),
        (ingress, unlimited) in (prop::bool::weighted(0.3), prop::bool::weighted(0.2)),
        memlimit in prop::option::weighted(0.2, 40..20_000u64),
        room in room(), ops in traffic(),
    ) {
        let settings = [
            ("diffserv", diffserv.to_string()),
            ("isolation", isolation.to_string()),
            ("rtt", format!("{rtt}ns")),
            ("target", target.map_or("none".to_string(), |target| format!("{target}ns"))),
            ("sets", sets.to_string()),
            ("mtu", mtu.to_string()),
            ("ecn", ecn.to_string()),
            ("ack_filter", ack_filter.to_string()),
            ("ingress", ingress.to_string()),
            ("unlimited", unlimited.to_string()),
            ("memlimit", memlimit.map_or("none".to_string(), |bytes| format!("{bytes}B"))),
        ];
        // Where all flows have one queue the library is not told of the sets, and has its own.
        let sets = if isolation == "flowblind" { 128 } else { sets };
        let queues = sets as usize * 8;
        let free = Flow { tag: 0, set: Set::None, host: 0, peer: 0, deficit: 0 };
        let tin = |rate: u64| Tin {
            credit: 0, weight: (1024 * u128::from(rate) / 8_000_000) as i64, times: [0; 2],
            rate, next: 0, flows: vec![free.clone(); queues], sparse: VecDeque::new(),
            decaying: VecDeque::new(), bulk: Vec::new(), round: 0, waits: 0,
        };
        let mut tins: Vec<Tin> = rates(diffserv).into_iter().map(tin).collect();
        if unlimited {
            tins.iter_mut().for_each(|tin| tin.rate = u64::MAX);
        }
        let cobalts = tins.iter_mut().flat_map(|t| {
            let wanted = target.unwrap_or(rtt / 20);
            let target = wanted.max(transmission(mtu * 3 / 2, t.rate));
            let interval = (rtt + target - wanted).max(2 * target);
            let four = transmission(4 * mtu, t.rate);
            t.times = [four, transmission(mtu, t.rate)];
            let steps = [1.0 / 256.0, 1.0 / 4096.0];
            (0..queues).map(move |_| Cobalt::new(target, interval, ecn, four, steps))
        });
        // A bound of memory beside a buffer with room is as that bound alone.
        let (own, room) = match memlimit {
            Some(bytes) => (Room::Bytes(bytes), Room::Packets(100_000)),
            None => (room, room),
        };
        let buffer = Buffer::new(own, Room::Packets(u64::MAX), cobalts.collect());
        let model = Cake { buffer, hash: None, sets, diffserv, isolation, ack_filter, filtered: 0, tins, ingress, unlimited: unlimited.then_some(0), shaper: [0; 2] };
        compare_with("cake", &settings, room, &labelled(ops, &[0, 8, 46, 34, 0]), model)?;
    }
}
