use super::pi2::{Controller, pi};
use super::*;
use aqm::hash::{Cuts, FlowHash};

/// RFC 9957 §4.2.
struct Protection {
    hash: Option<FlowHash>,
    /// Whose, and when its score is over; the dregs are the last.
    buckets: Vec<(u64, u64)>,
    /// ns a byte.
    aging: f64,
    max_score: u64,
    critical: (u64, u64),
    ramp: (u64, u64),
}

impl Protection {
    fn pick_bucket(&self, flow: u64, now: u64) -> usize {
        let n = self.buckets.len() - 1;
        let word = self.hash.as_ref().unwrap().word(FlowKey(flow));
        let mut saved = n;
        for place in Cuts::new(n as u32).of(word).take(2) {
            if self.buckets[place].0 == flow {
                return place;
            }
            if saved == n && self.buckets[place].1 <= now {
                saved = place;
            }
        }
        saved
    }

    /// Whether the packet is sanctioned.
    fn qprotect(&mut self, now: u64, packet: &Packet, lq: &[Packet]) -> bool {
        let qdelay = lq.iter().map(|p| u64::from(p.len) * 1000).sum::<u64>();
        let (min_th, range) = self.ramp;
        let native = if qdelay < min_th {
            0.0
        } else if qdelay - min_th >= range {
            1.0
        } else {
            (qdelay - min_th) as f64 / range as f64
        };
        let bucket = self.pick_bucket(packet.flow, now);
        let mut over = self.buckets[bucket].1;
        if over < now {
            over = now;
        }
        over += (native * f64::from(packet.len) * self.aging) as u64;
        if over > now + self.max_score {
            over = now + self.max_score;
        }
        self.buckets[bucket] = (packet.flow, over);
        let (delay, score) = self.critical;
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        qdelay > delay && product(qdelay, over - now) > product(delay, score)
    }
}

/// Two queues, RFC 9332: enqueueing as in Fig. 3 (with our exact limit), a scheduler, and what to do
/// with a packet that leaves.
struct Dual<A> {
    aqm: A,
    room: Room,
    lq: Vec<Packet>,
    cq: Vec<Packet>,
    any_ect: bool,
    /// The time shift, or the classic share and what L may send.
    scheduler: Result<u64, f64>,
    /// What L may send is kept while a queue is empty; in whole millionths of a byte.
    kept: bool,
    whole: i64,
    credit: f64,
    protection: Option<Protection>,
    events: Vec<Event>,
}

#[derive(PartialEq)]
enum Fate {
    Send,
    Mark,
    Drop,
}

trait Aqm {
    /// `lq` holds the packet, too.
    fn l4s(&mut self, qdelay: u64, lq: usize, cq: usize, left: u64, rng: &mut Rng) -> Fate;
    fn classic(&mut self, qdelay: u64, pkt: &Packet, left: u64, rng: &mut Rng) -> Fate;
    fn arrives(&mut self, _l4s: bool, _pkt: &Packet, _waiting: u64, _rng: &mut Rng) -> Fate {
        Fate::Send
    }
    fn clock(&mut self, _now: u64, _curq: impl Fn(u64) -> u64) {}
    fn signals(&self) -> Vec<f64>;
}

impl<A: Aqm> Dual<A> {
    fn new(aqm: A, room: Room, any_ect: bool, scheduler: Result<u64, f64>) -> Self {
        let credit = (1.0 - scheduler.err().unwrap_or(0.0)) * MEAN;
        let (lq, cq, events) = (Vec::new(), Vec::new(), Vec::new());
        let (kept, whole) = (false, 0);
        Self {
            aqm,
            room,
            lq,
            cq,
            any_ect,
            scheduler,
            kept,
            whole,
            credit,
            protection: None,
            events,
        }
    }

    /// The same with an account that is kept, where there is one.
    fn keeping(self, kept: bool) -> Self {
        let parts = self.scheduler.map_or_else(|share| (share * 1e6).round() as i64, |_| 0);
        Self { kept, whole: 1514 * (1_000_000 - 2 * parts), ..self }
    }

    fn bytes(&self) -> u64 {
        self.lq.iter().chain(&self.cq).map(|p| u64::from(p.len)).sum()
    }

    fn takes_l4s(&self) -> bool {
        match (self.lq.first(), self.cq.first()) {
            (None, _) => false,
            (_, None) => true,
            (Some(l), Some(c)) => match self.scheduler {
                Ok(tshift) => l.arrived <= c.arrived + tshift,
                Err(_) if self.kept => self.whole >= 0,
                Err(_) => self.credit > 0.0,
            },
        }
    }
}

impl<A: Aqm> Side for Dual<A> {
    fn start(&mut self, rng: &mut Rng) {
        if let Some(protection) = &mut self.protection {
            protection.hash = Some(FlowHash::new(rng));
        }
    }

    fn arrive(&mut self, now: u64, mut packet: Packet, rng: &mut Rng) {
        packet.arrived = now;
        let all = self.lq.iter().chain(&self.cq);
        let full = match self.room {
            Room::Packets(n) => all.count() as u64 >= n,
            Room::Bytes(n) => {
                all.map(|p| u64::from(p.len)).sum::<u64>() + u64::from(packet.len) > n
            }
        };
        if full {
            self.events.push(Event::Dropped(packet.id, Cause::Overflow));
            return;
        }
        let l4s = packet.l4s || (self.any_ect && packet.ect);
        let lq = &self.lq;
        let sanctioned = |protection: &mut Protection| l4s && protection.qprotect(now, &packet, lq);
        let l4s = l4s && !self.protection.as_mut().is_some_and(sanctioned);
        match self.aqm.arrives(l4s, &packet, self.bytes(), rng) {
            Fate::Drop => return self.events.push(Event::Dropped(packet.id, Cause::Early)),
            Fate::Mark => {
                packet.marked = true;
                self.events.push(Event::Marked(packet.id));
            }
            Fate::Send => {}
        }
        if l4s {
            self.lq.push(packet);
        } else {
            self.cq.push(packet);
        }
    }

    fn depart(&mut self, now: u64, rng: &mut Rng) {
        while self.lq.len() + self.cq.len() > 0 {
            let both = !self.lq.is_empty() && !self.cq.is_empty();
            let l4s = self.takes_l4s();
            let mut packet;
            let fate = if l4s {
                let (l, c) = (self.lq.len(), self.cq.len());
                packet = self.lq.remove(0);
                let left = self.bytes();
                self.aqm.l4s(now - packet.arrived, l, c, left, rng)
            } else {
                packet = self.cq.remove(0);
                let left = self.bytes();
                self.aqm.classic(now - packet.arrived, &packet, left, rng)
            };
            if fate == Fate::Drop {
                self.events.push(Event::Dropped(packet.id, Cause::Early));
                continue;
            }
            if fate == Fate::Mark {
                packet.marked = true;
                self.events.push(Event::Marked(packet.id));
            }
            if let Err(share) = self.scheduler
                && self.kept
                && both
            {
                let parts = (share * 1e6).round() as i64;
                let takes = if l4s { -parts } else { 1_000_000 - parts };
                self.whole += takes * i64::from(packet.len);
            } else if let Err(share) = self.scheduler {
                let len = f64::from(packet.len);
                if !both {
                    self.credit = (1.0 - share) * MEAN;
                } else if l4s {
                    self.credit -= share * len;
                } else {
                    self.credit += (1.0 - share) * len;
                }
            }
            return self.events.push(Event::Sent(packet.id, packet.marked));
        }
        if let Err(share) = self.scheduler {
            self.whole = 1514 * (1_000_000 - 2 * (share * 1e6).round() as i64);
        }
        self.events.push(Event::Idle);
    }

    fn clock(&mut self, now: u64, _: &mut Rng) {
        let age = |q: &[Packet], at: u64| q.first().map_or(0, |head| at - head.arrived);
        self.aqm.clock(now, |at| age(&self.lq, at).max(age(&self.cq, at)));
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        let mut signals = self.aqm.signals();
        signals.extend([self.lq.len() as f64, self.cq.len() as f64]);
        signals
    }
}

/// RFC 9332, Figures 5, 7 and 8.
struct DualPi2 {
    controller: Controller,
    min_th: u64,
    range: u64,
    th_len: usize,
    l_count: f64,
    c_count: f64,
    /// Linux: bytes below which the controller spares, and whether arrivals decide.
    spare: u64,
    early: bool,
}

impl DualPi2 {
    /// Whether the controller is silent about a packet that leaves `left` bytes behind.
    fn silent(&self, left: u64) -> bool {
        self.controller.c.signals == "random-twice" && (self.early || left < self.spare)
    }
}

impl Aqm for DualPi2 {
    fn l4s(&mut self, qdelay: u64, lq: usize, _: usize, left: u64, rng: &mut Rng) -> Fate {
        let c = &self.controller;
        let mut native = 0.0;
        if lq > self.th_len {
            if qdelay >= self.min_th + self.range {
                native = 1.0;
            } else if qdelay > self.min_th {
                native = (qdelay - self.min_th) as f64 / self.range as f64;
            }
        }
        if self.silent(left) {
            let overload = c.overload_of_l();
            let drawn = native > 0.0 && native < 1.0 && !overload && rng.uniform() < native;
            return if native == 1.0 || drawn { Fate::Mark } else { Fate::Send };
        }
        if !c.overload_of_l() {
            let p_l = f64::max(native, c.p_cl());
            if c.recur(&mut self.l_count, p_l, rng) {
                return Fate::Mark;
            }
        } else {
            if c.squared(&mut self.l_count, rng) {
                return Fate::Drop;
            }
            if c.c.signals == "random-twice" || c.recur(&mut self.l_count, c.p_cl(), rng) {
                return Fate::Mark;
            }
        }
        Fate::Send
    }

    fn classic(&mut self, _: u64, pkt: &Packet, left: u64, rng: &mut Rng) -> Fate {
        let c = &self.controller;
        if !self.silent(left) && c.squared(&mut self.c_count, rng) {
            if !pkt.ect || c.overload() {
                return Fate::Drop;
            }
            return Fate::Mark;
        }
        Fate::Send
    }

    fn arrives(&mut self, l4s: bool, pkt: &Packet, waiting: u64, rng: &mut Rng) -> Fate {
        let c = &self.controller;
        if !self.early || waiting < self.spare {
            return Fate::Send;
        }
        if l4s && !c.overload_of_l() {
            return if rng.uniform() < c.p_cl() { Fate::Mark } else { Fate::Send };
        }
        let square = rng.uniform() < c.p && rng.uniform() < c.p;
        match (square, l4s) {
            (true, true) => Fate::Drop,
            (true, false) if c.overload() || !pkt.ect => Fate::Drop,
            (true, false) | (false, true) => Fate::Mark,
            (false, false) => Fate::Send,
        }
    }

    fn clock(&mut self, now: u64, curq: impl Fn(u64) -> u64) {
        self.controller.run(now, curq);
    }

    fn signals(&self) -> Vec<f64> {
        self.controller.signals()
    }
}

/// RFC 9332, Fig. 10, with the overload of A.2 and a smoothed delay that forgets a queue that is gone.
struct CurvyRed {
    min_th: f64,
    range_c: f64,
    gamma: f64,
    k: f64,
    step: u64,
    u: usize,
    q_c: f64,
}

impl CurvyRed {
    fn sqrt_p_c(&self) -> f64 {
        ((self.q_c - self.min_th) / self.range_c).clamp(0.0, 1.0)
    }

    fn p_cl(&self) -> f64 {
        f64::min(self.k * self.sqrt_p_c(), 1.0)
    }
}

fn maxrand(u: usize, rng: &mut Rng) -> f64 {
    let mut maxr = 0.0;
    for _ in 0..u {
        maxr = f64::max(maxr, rng.uniform());
    }
    maxr
}

impl Aqm for CurvyRed {
    fn l4s(&mut self, qdelay: u64, _: usize, cq: usize, _: u64, rng: &mut Rng) -> Fate {
        if cq == 0 {
            self.q_c -= self.gamma * self.q_c;
        }
        if self.p_cl() >= 1.0 && self.sqrt_p_c() > maxrand(2 * self.u, rng) {
            return Fate::Drop;
        }
        if qdelay > self.step || self.p_cl() > maxrand(self.u, rng) {
            return Fate::Mark;
        }
        Fate::Send
    }

    fn classic(&mut self, qdelay: u64, pkt: &Packet, _: u64, rng: &mut Rng) -> Fate {
        self.q_c += self.gamma * (qdelay as f64 / 1e9 - self.q_c);
        if self.sqrt_p_c() > maxrand(2 * self.u, rng) {
            if !pkt.ect || self.p_cl() >= 1.0 {
                return Fate::Drop;
            }
            return Fate::Mark;
        }
        Fate::Send
    }

    fn signals(&self) -> Vec<f64> {
        let u = self.u as i32;
        vec![self.q_c, self.sqrt_p_c().powi(2 * u), self.p_cl().powi(u)]
    }
}

fn scheduler() -> impl Strategy<Value = Result<u64, f64>> {
    prop_oneof![
        prop::sample::select(vec![0, 1_000_000, 50_000_000]).prop_map(Ok),
        prop::sample::select(vec![0.0, 0.001, 0.0625, 0.5, 0.999]).prop_map(Err),
    ]
}

fn dual(any_ect: bool, scheduler: Result<u64, f64>, kept: bool) -> Vec<(&'static str, String)> {
    let mut settings = vec![("low_latency", if any_ect { "any-ect" } else { "l4s" }.into())];
    settings.extend(match scheduler {
        Ok(tshift) => [("scheduler", "ts-fifo".into()), ("tshift", format!("{tshift}ns"))],
        Err(share) => [
            ("scheduler", if kept { "wrr-kept" } else { "wrr" }.into()),
            ("classic_share", share.to_string()),
        ],
    });
    settings
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn dualpi2_is_its_model(
        c in pi(), any_ect in any::<bool>(), scheduler in scheduler(),
        min_th in prop::sample::select(vec![0u64, 800_000, 3_000_000]),
        range in prop::sample::select(vec![0u64, 400_000, 20_000_000]),
        th_len in 0..4usize, room in room(), ops in traffic(),
        protection in prop::bool::weighted(0.6),
        aging in prop::sample::select(vec![1_000_000u64, 8_000_000, 400_000_000]),
        critical_delay in prop::option::of(0..5_000_000u64),
        critical_score in prop::sample::select(vec![0u64, 1_000_000, 4_000_000]),
        (max_score, buckets, kept) in
            (prop::sample::select(vec![0u64, 5_000_000, 5_000_000_000]), 1..4u32, any::<bool>()),
        (spare, early, overflows) in
            (prop::sample::select(vec![0u64, 3028, 10_000]), any::<bool>(), prop::bool::weighted(0.3)),
    ) {
        let mut settings = dual(any_ect, scheduler, kept);
        settings.extend(c.list());
        settings.extend([
            ("min_th", format!("{min_th}ns")),
            ("range", format!("{range}ns")),
            ("th_len", th_len.to_string()),
        ]);
        let twice = c.signals == "random-twice";
        settings.push(("overload", if overflows { "overflow" } else { "drop" }.into()));
        if twice {
            settings.push(("spare", spare.to_string()));
            settings.push(("decided", if early { "arrival" } else { "departure" }.into()));
        }
        let mut controller = Controller::new(c);
        controller.overflows = overflows;
        let (l_count, c_count, early) = (0.0, 0.0, early && twice);
        let aqm = DualPi2 { controller, min_th, range, th_len, l_count, c_count, spare, early };
        settings.extend([
            ("protection", if protection { "queue" } else { "none" }.into()),
            ("aging", format!("{aging}bit")),
            ("critical_delay", critical_delay.map_or("none".into(), |ns| format!("{ns}ns"))),
            ("critical_score", format!("{critical_score}ns")),
            ("max_score", format!("{max_score}ns")),
            ("buckets", buckets.to_string()),
        ]);
        let mut model = Dual::new(aqm, room, any_ect, scheduler).keeping(kept);
        model.protection = protection.then(|| Protection {
            hash: None,
            buckets: vec![(0, 0); buckets as usize + 1],
            aging: 8e9 / aging as f64,
            max_score,
            critical: (critical_delay.unwrap_or(min_th + range), critical_score),
            ramp: (min_th, range),
        });
        compare_with("dualpi2", &settings, room, &ops, model)?;
    }

    #[test]
    fn curvy_red_is_its_model(
        any_ect in any::<bool>(), scheduler in scheduler(),
        min_th in prop::sample::select(vec![0u64, 500_000, 3_000_000]),
        range_c in prop::sample::select(vec![1_000u64, 5_000_000, 50_000_000, 500_000_000]),
        gamma in prop::sample::select(vec![0.03125, 0.3, 1.0]),
        k in prop::sample::select(vec![0.5, 1.0, 2.0, 4.0]),
        step in prop::sample::select(vec![0u64, 1_000_000, 30_000_000]),
        u in 1..4usize, room in room(), ops in traffic(), kept in any::<bool>(),
    ) {
        let mut settings = dual(any_ect, scheduler, kept);
        settings.extend([
            ("min_th", format!("{min_th}ns")),
            ("range_c", format!("{range_c}ns")),
            ("gamma", gamma.to_string()),
            ("k", k.to_string()),
            ("step", format!("{step}ns")),
            ("u", u.to_string()),
        ]);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (min_th, range_c) = (seconds(min_th), seconds(range_c));
        let aqm = CurvyRed { min_th, range_c, gamma, k, step, u, q_c: 0.0 };
        let model = Dual::new(aqm, room, any_ect, scheduler).keeping(kept);
        compare_with("curvy-red", &settings, room, &ops, model)?;
    }
}
