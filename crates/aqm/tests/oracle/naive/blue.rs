use aqm::Rng;

use super::{MEAN, Model, Packet, Verdict};

#[derive(Clone, Debug)]
pub struct Settings {
    pub initial: f64,
    pub freeze_time: u64,
    pub up: f64,
    pub down: f64,
    pub threshold: Option<u64>,
    pub ecn: bool,
    pub front: bool,
    pub at_head: bool,
    pub bytes: bool,
    pub continuous: bool,
    pub jitter: f64,
    pub update: &'static str,
    pub grow: f64,
    pub shrink: f64,
    pub auto: bool,
    pub weight: f64,
    pub legacy: bool,
    pub in_class: bool,
}

/// Feng02 Fig. 3.
pub struct Blue {
    c: Settings,
    p: f64,
    last_update: Option<u64>,
    freeze: u64,
    delay: f64,
    idle: bool,
}

impl Blue {
    pub fn new(c: Settings) -> Self {
        Self { p: c.initial, last_update: None, freeze: c.freeze_time, delay: 0.0, idle: false, c }
    }

    fn may_change(&self, now: u64) -> bool {
        self.last_update.is_none_or(|last| now - last > self.freeze)
    }

    fn next_freeze(&mut self, rng: &mut Rng) {
        self.freeze = self.c.freeze_time;
        if self.c.auto {
            self.freeze += self.delay.floor() as u64;
        }
        if self.c.jitter > 0.0 {
            let factor = 1.0 - self.c.jitter + 2.0 * self.c.jitter * rng.uniform();
            self.freeze = (self.freeze as f64 * factor).round() as u64;
        }
    }

    fn overflow(&mut self, now: u64, rng: &mut Rng) {
        if self.may_change(now) {
            self.p = match self.c.update {
                "additive" => self.p + self.c.up,
                "multiplicative" if self.p * self.c.grow < self.c.up => self.c.up,
                "multiplicative" => self.p * self.c.grow,
                _ => self.p * self.c.grow + self.c.up,
            };
            if self.p > 1.0 {
                self.p = 1.0;
            }
            self.last_update = Some(now);
            self.next_freeze(rng);
        }
    }

    fn decrement(c: &Settings, p: f64) -> f64 {
        let p = match c.update {
            "additive" => p - c.down,
            "multiplicative" if p * c.shrink < c.down => 0.0,
            "multiplicative" => p * c.shrink,
            _ => p * c.shrink - c.down,
        };
        if p < 0.0 { 0.0 } else { p }
    }

    /// The clock of an idle link, one decrement after the other: p, its last update, and whether
    /// there was any.
    fn decayed(&self, now: u64) -> (f64, Option<u64>, bool) {
        let (mut p, mut last, mut any) = (self.p, self.last_update, false);
        if self.c.continuous && self.idle {
            let freeze = self.freeze.max(1);
            while let Some(t) = last.filter(|t| now - t > freeze) {
                p = Self::decrement(&self.c, p);
                last = Some(t + freeze);
                any = true;
            }
        }
        (p, last, any)
    }
}

impl Model for Blue {
    fn arrive(
        &mut self,
        now: u64,
        pkt: &Packet,
        q: &[Packet],
        fits: bool,
        rng: &mut Rng,
    ) -> Verdict {
        let (p, last, any) = self.decayed(now);
        (self.p, self.last_update) = (p, last);
        if any {
            self.next_freeze(rng);
        }
        let length =
            if self.c.bytes { q.iter().map(|p| u64::from(p.len)).sum() } else { q.len() as u64 };
        let (above, in_class) = (self.c.threshold.is_some_and(|l| length > l), self.c.in_class);
        if !in_class && (!fits || above) {
            self.overflow(now, rng);
        }
        if !in_class && !fits {
            return Verdict::Admit;
        }
        let p = if self.c.bytes { self.p * f64::from(pkt.len) / MEAN } else { self.p };
        let signalled = rng.uniform() < p;
        if (signalled && self.c.legacy) || (in_class && !signalled && !fits) {
            if in_class && above {
                self.last_update = None;
            }
            self.overflow(now, rng);
        }
        if !signalled {
            return Verdict::Admit;
        }
        match (self.c.ecn, self.c.at_head) {
            (false, _) => Verdict::Drop,
            (true, false) => Verdict::Signal,
            (true, true) => Verdict::SignalHead,
        }
    }
    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        if self.c.front { 0 } else { q.len() }
    }
    fn admitted(&mut self) {
        self.idle = false;
    }
    fn sent(&mut self, delay: u64) {
        self.delay = (1.0 - self.c.weight) * self.delay + self.c.weight * delay as f64;
    }
    fn idle(&mut self, now: u64, rng: &mut Rng) {
        if self.c.continuous && self.idle {
            return; // the clock runs
        }
        self.idle = true;
        if self.may_change(now) {
            self.p = Self::decrement(&self.c, self.p);
            if !self.c.in_class {
                self.last_update = Some(now);
                self.next_freeze(rng);
            }
        }
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        vec![self.decayed(now).0]
    }
}
