//! FQ as its manual describes it, with flows that are searched one by one.

use std::collections::VecDeque;

use aqm::hash::FlowHash;

use super::fair::bytes;
use super::*;

struct Flow {
    name: u64,
    q: Vec<Packet>,
    credit: i64,
    next: Option<u64>,
    left: u64,
}

struct Fq {
    flow_limit: usize,
    quantum: i64,
    initial: i64,
    refill_delay: u64,
    /// Bits per second.
    maxrate: Option<u64>,
    low_rate: u64,
    ce_threshold: Option<u64>,
    /// Whether a new flow that has run empty takes an old one's turn in any case.
    always_old: bool,
    fast_path: usize,
    room: Room,
    fast: Vec<Packet>,
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// In the order in which they were held.
    held: Vec<usize>,
    events: Vec<Event>,
}

impl Fq {
    fn known(&mut self, name: u64, now: u64) -> usize {
        self.flows.iter().position(|flow| flow.name == name).unwrap_or_else(|| {
            let credit = self.initial;
            self.flows.push(Flow { name, q: Vec::new(), credit, next: None, left: now });
            self.flows.len() - 1
        })
    }

    fn fits(&self, len: u32) -> bool {
        let waiting = |each: fn(&[Packet]) -> u64| {
            each(&self.fast) + self.flows.iter().map(|flow| each(&flow.q)).sum::<u64>()
        };
        match self.room {
            Room::Packets(n) => waiting(|q| q.len() as u64) < n,
            Room::Bytes(n) => waiting(bytes) + u64::from(len) <= n,
        }
    }

    fn waits(&self, flow: usize) -> bool {
        self.new.contains(&flow) || self.old.contains(&flow) || self.held.contains(&flow)
    }

    /// The held flow that is due first, of several the one that was held first.
    fn release(&mut self, now: u64) {
        loop {
            let due = |at: &usize| self.flows[self.held[*at]].next.unwrap();
            let first = (0..self.held.len()).filter(|at| due(at) <= now).min_by_key(due);
            let Some(first) = first else { return };
            self.old.push_back(self.held.remove(first));
        }
    }

    fn send(&mut self, flow: usize, now: u64) {
        let (low, quantum) = (self.low_rate, self.quantum);
        let of = &mut self.flows[flow];
        let packet = of.q.remove(0);
        let mut due = packet.arrived;
        if let Some(next) = of.next {
            due = due.max(next);
        }
        let late = self.ce_threshold.is_some_and(|most| now > due + most);
        if late && packet.ect {
            self.events.push(Event::Marked(packet.id));
        }
        self.events.push(Event::Sent(packet.id, packet.marked || (late && packet.ect)));
        of.credit -= i64::from(packet.len);
        let Some(rate) = self.maxrate else { return };
        let mut counted = i64::from(packet.len);
        if rate <= low {
            of.credit = 0;
        } else if of.credit > 0 {
            return;
        } else {
            counted = counted.max(quantum);
        }
        let mut gap = (counted as f64 * 8e9 / rate as f64).round() as u64;
        if let Some(next) = of.next {
            gap -= (now - next).min(gap / 2);
        }
        of.next = Some(now + gap);
    }
}

impl Side for Fq {
    fn start(&mut self, rng: &mut Rng) {
        FlowHash::new(rng); // the library's secret
    }

    fn arrive(&mut self, now: u64, mut packet: Packet, _: &mut Rng) {
        let flows_wait = self.flows.iter().any(|flow| !flow.q.is_empty());
        if self.maxrate.is_none() && !flows_wait && self.fast.len() < self.fast_path {
            if !self.fits(packet.len) || self.fast.len() == self.flow_limit {
                return self.events.push(Event::Dropped(packet.id, Cause::Overflow));
            }
            return self.fast.push(packet);
        }
        let flow = self.known(packet.flow, now);
        if !self.fits(packet.len) || self.flows[flow].q.len() == self.flow_limit {
            return self.events.push(Event::Dropped(packet.id, Cause::Overflow));
        }
        packet.arrived = now;
        let waits = self.waits(flow);
        let of = &mut self.flows[flow];
        of.q.push(packet);
        if !waits {
            if now - of.left > self.refill_delay {
                of.credit = of.credit.max(self.quantum);
            }
            self.new.push_back(flow);
        }
    }

    fn depart(&mut self, now: u64, _: &mut Rng) {
        if !self.fast.is_empty() {
            let packet = self.fast.remove(0);
            return self.events.push(Event::Sent(packet.id, packet.marked));
        }
        if self.flows.iter().all(|flow| flow.q.is_empty()) {
            return self.events.push(Event::Idle);
        }
        self.release(now);
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(flow) = list.pop_front() else { return self.events.push(Event::Idle) };
            let of = &mut self.flows[flow];
            if of.credit <= 0 {
                of.credit += self.quantum;
                self.old.push_back(flow);
            } else if of.q.is_empty() {
                if from_new && (self.always_old || !self.old.is_empty()) {
                    self.old.push_back(flow);
                } else {
                    of.left = now;
                }
            } else if of.next.is_some_and(|next| next > now) {
                self.held.push(flow);
            } else {
                list.push_front(flow);
                return self.send(flow, now);
            }
        }
    }

    fn clock(&mut self, _: u64, _: &mut Rng) {}

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        let queues = || self.flows.iter().map(|flow| &flow.q).chain([&self.fast]);
        let busy = queues().filter(|q| !q.is_empty()).count();
        let most = queues().map(|q| bytes(q)).max().unwrap_or(0);
        vec![busy as f64, most as f64, self.held.len() as f64]
    }

    fn of_flow(&self, now: u64, name: u64) -> Vec<f64> {
        let Some(number) = self.flows.iter().position(|flow| flow.name == name) else {
            return vec![-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]; // it took the fast path
        };
        let flow = &self.flows[number];
        let lists = [
            &self.new.contains(&number),
            &self.old.contains(&number),
            &self.held.contains(&number),
        ];
        let list = lists.iter().position(|here| **here).map_or(0, |list| list + 1);
        let wait = flow.next.unwrap_or(0).saturating_sub(now);
        vec![
            number as f64,
            flow.q.len() as f64,
            bytes(&flow.q) as f64,
            flow.credit as f64,
            list as f64,
            wait as f64 / 1e9,
        ]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fq_is_its_model(
        ops in traffic(),
        room in room(),
        flow_limit in 1..8usize,
        quantum in prop::sample::select(vec![100u32, 1500, 3028]),
        initial in prop::sample::select(vec![0u32, 1000, 5000]),
        refill_ms in prop::sample::select(vec![0u64, 1, 40]),
        maxrate in prop::sample::select(vec![None, Some(300_000u64), Some(3_000_000), Some(20_000_000)]),
        low_rate in prop::sample::select(vec![550_000u64, 10_000_000]),
        ce_threshold_ms in prop::option::of(0..5u64),
        always_old in any::<bool>(),
        fast_path in prop::sample::select(vec![0usize, 2, 8]),
    ) {
        let maxrate_text = maxrate.map_or("none".into(), |rate| format!("{rate}bit"));
        let threshold_text = ce_threshold_ms.map_or("none".into(), |ms| format!("{ms}ms"));
        let settings = [
            ("flow_limit", flow_limit.to_string()),
            ("quantum", quantum.to_string()),
            ("initial_quantum", initial.to_string()),
            ("refill_delay", format!("{refill_ms}ms")),
            ("maxrate", maxrate_text),
            ("low_rate_threshold", format!("{low_rate}bit")),
            ("ce_threshold", threshold_text),
            ("emptied", if always_old { "old" } else { "old-if-any" }.into()),
            ("fast_path", if maxrate.is_some() { 0 } else { fast_path }.to_string()),
        ];
        let side = Fq {
            flow_limit,
            quantum: quantum.into(),
            initial: initial.into(),
            refill_delay: refill_ms * 1_000_000,
            maxrate,
            low_rate,
            ce_threshold: ce_threshold_ms.map(|ms| ms * 1_000_000),
            always_old,
            fast_path,
            room,
            fast: Vec::new(),
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            held: Vec::new(),
            events: Vec::new(),
        };
        compare_with("fq", &settings, room, &ops, side)?;
    }
}
