use super::*;

#[derive(Clone, Debug)]
pub(super) struct PiSettings {
    target: u64,
    rtt_max: u64,
    t_update: Option<u64>,
    alpha: Option<f64>,
    beta: Option<f64>,
    pub(super) k: f64,
    pub(super) signals: &'static str,
}

impl PiSettings {
    pub(super) fn list(&self) -> Vec<(&'static str, String)> {
        let word = |v: Option<String>| v.unwrap_or("none".into());
        vec![
            ("target", format!("{}ns", self.target)),
            ("rtt_max", format!("{}ns", self.rtt_max)),
            ("t_update", word(self.t_update.map(|t| format!("{t}ns")))),
            ("alpha", word(self.alpha.map(|a| a.to_string()))),
            ("beta", word(self.beta.map(|b| b.to_string()))),
            ("k", self.k.to_string()),
            ("signals", self.signals.into()),
        ]
    }
}

/// RFC 9332, Figures 2, 6 and 8.
pub(super) struct Controller {
    pub(super) c: PiSettings,
    updates: u64,
    pub(super) p: f64,
    prevq: f64,
    /// k p' ends just below 1.
    pub(super) overflows: bool,
}

impl Controller {
    pub(super) fn new(c: PiSettings) -> Self {
        Self { c, updates: 0, p: 0.0, prevq: 0.0, overflows: false }
    }

    fn t_update(&self) -> u64 {
        self.c.t_update.unwrap_or(self.c.target.min(self.c.rtt_max / 3))
    }

    /// Runs the updates until `now`; `curq` gives the delay at an instant.
    pub(super) fn run(&mut self, now: u64, curq: impl Fn(u64) -> u64) {
        let (t_update, rtt_max) = (self.t_update(), self.c.rtt_max as f64 / 1e9);
        let alpha = self.c.alpha.unwrap_or(0.1 * (t_update as f64 / 1e9) / (rtt_max * rtt_max));
        let beta = self.c.beta.unwrap_or(0.3 / rtt_max);
        while (self.updates + 1) * t_update <= now {
            self.updates += 1;
            let curq = curq(self.updates * t_update) as f64 / 1e9;
            let target = self.c.target as f64 / 1e9;
            self.p += alpha * (curq - target) + beta * (curq - self.prevq);
            let end = if self.overflows { f64::min(1.0 / self.c.k, 1.0) } else { 1.0 };
            self.p = self.p.clamp(0.0, end);
            self.prevq = curq;
        }
    }

    pub(super) fn p_cl(&self) -> f64 {
        let end = if self.overflows { 1.0 - f64::EPSILON } else { 1.0 };
        f64::min(self.p * self.c.k, end)
    }

    pub(super) fn p_c(&self) -> f64 {
        self.p * self.p
    }

    pub(super) fn overload(&self) -> bool {
        if self.c.signals == "random-twice" {
            return self.p * self.c.k > 1.0;
        }
        !self.overflows && self.p_c() >= f64::min(1.0 / (self.c.k * self.c.k), 1.0)
    }

    /// Whether marks with p_CL are not enough for L.
    pub(super) fn overload_of_l(&self) -> bool {
        if self.c.signals == "random-twice" { self.overload() } else { self.p_cl() >= 1.0 }
    }

    /// RFC 9332, Fig. 4, lines 23 to 30.
    pub(super) fn recur(&self, count: &mut f64, likelihood: f64, rng: &mut Rng) -> bool {
        if self.c.signals != "recur" {
            return rng.uniform() < likelihood;
        }
        *count += likelihood;
        if *count > 1.0 {
            *count -= 1.0;
            return true;
        }
        false
    }

    /// The same with probability p_C.
    pub(super) fn squared(&self, count: &mut f64, rng: &mut Rng) -> bool {
        if self.c.signals == "random-twice" {
            return rng.uniform() < self.p && rng.uniform() < self.p;
        }
        self.recur(count, self.p_c(), rng)
    }

    pub(super) fn signals(&self) -> Vec<f64> {
        vec![self.p, self.p_c(), self.p_cl(), self.prevq]
    }
}

/// PI2 in one queue.
struct Pi2 {
    controller: Controller,
    ecn: bool,
    scalable: f64,
    classic: f64,
}

impl Model for Pi2 {
    fn clock(&mut self, now: u64, q: &[Packet]) {
        self.controller.run(now, |at| q.first().map_or(0, |head| at - head.arrived));
    }

    fn send(
        &mut self,
        _: u64,
        q: &mut Vec<Packet>,
        events: &mut Vec<Event>,
        rng: &mut Rng,
    ) -> Option<Packet> {
        let c = &self.controller;
        while !q.is_empty() {
            let mut packet = q.remove(0);
            let mark;
            let mut drop = false;
            if self.ecn && packet.l4s && !c.overload() {
                mark = c.recur(&mut self.scalable, c.p_cl(), rng);
            } else if c.squared(&mut self.classic, rng) {
                mark = self.ecn && packet.ect && !c.overload();
                drop = !mark;
            } else {
                mark = self.ecn && packet.l4s;
            }
            if drop {
                events.push(Event::Dropped(packet.id, Cause::Early));
                continue;
            }
            if mark {
                packet.marked = true;
                events.push(Event::Marked(packet.id));
            }
            return Some(packet);
        }
        None
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        self.controller.signals()
    }
}

pub(super) fn pi() -> impl Strategy<Value = PiSettings> {
    let ms =
        |of: &[u64]| prop::sample::select(of.iter().map(|ms| ms * 1_000_000).collect::<Vec<_>>());
    (
        (ms(&[1, 5, 15]), ms(&[3, 30, 100]), prop::option::of(ms(&[1, 2, 16]))),
        prop::option::of(prop::sample::select(vec![0.0, 0.16, 50.0])),
        prop::option::of(prop::sample::select(vec![0.0, 3.2, 50.0])),
        prop::sample::select(vec![0.5, 1.0, 2.0, 4.0]),
        prop::sample::select(vec!["recur", "random", "random-twice"]),
    )
        .prop_map(|((target, rtt_max, t_update), alpha, beta, k, signals)| PiSettings {
            target,
            rtt_max,
            t_update,
            alpha,
            beta,
            k,
            signals,
        })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pi2_is_its_model(c in pi(), ecn in prop::bool::weighted(0.8), room in room(), ops in traffic()) {
        // Without ECN nothing is coupled, and k is refused.
        let c = PiSettings { k: if ecn { c.k } else { 2.0 }, ..c };
        let mut settings = vec![("ecn", ecn.to_string())];
        settings.extend(c.list());
        let model = Pi2 {
            controller: Controller::new(c), ecn, scalable: 0.0, classic: 0.0,
        };
        compare("pi2", &settings, room, &ops, model)?;
    }
}
