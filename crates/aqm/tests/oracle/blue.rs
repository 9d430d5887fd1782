use super::*;

#[derive(Clone, Debug)]
struct BlueSettings {
    initial: f64,
    freeze_time: u64,
    up: f64,
    down: f64,
    threshold: Option<u64>,
    ecn: bool,
    front: bool,
    at_head: bool,
    bytes: bool,
    continuous: bool,
    jitter: f64,
    update: &'static str,
    grow: f64,
    shrink: f64,
    auto: bool,
    weight: f64,
    legacy: bool,
}

/// Feng02 Fig. 3.
struct Blue {
    c: BlueSettings,
    p: f64,
    last_update: Option<u64>,
    freeze: u64,
    delay: f64,
    idle: bool,
}

impl Blue {
    fn new(c: BlueSettings) -> Self {
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

    fn decrement(c: &BlueSettings, p: f64) -> f64 {
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
        if !fits || self.c.threshold.is_some_and(|l| length > l) {
            self.overflow(now, rng);
        }
        if !fits {
            return Verdict::Admit;
        }
        let p = if self.c.bytes { self.p * f64::from(pkt.len) / MEAN } else { self.p };
        if rng.uniform() >= p {
            return Verdict::Admit;
        }
        if self.c.legacy {
            self.overflow(now, rng);
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
            self.last_update = Some(now);
            self.next_freeze(rng);
        }
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        vec![self.decayed(now).0]
    }
}

prop_compose! {
    fn blue()(
        (initial, freeze_time, up, down) in (
            prop::sample::select(vec![0.0, 0.0, 0.3, 1.0]),
            prop::sample::select(vec![1, 100, 1_000_000, 5_000_000, 100_000_000]),
            0.0..0.6f64,
            0.0..0.2f64,
        ),
        (threshold, ecn, front, at_head, bytes) in
            (prop::option::of(0..12u64), prop::bool::weighted(0.8), any::<bool>(), any::<bool>(), any::<bool>()),
        (continuous, jitter, auto, weight, legacy) in
            (any::<bool>(), prop::sample::select(vec![0.0, 0.0, 0.5, 1.0]), any::<bool>(), 0.0..1.0f64, any::<bool>()),
        (update, grow, shrink) in
            (pick(&["additive", "multiplicative", "mixed"]), 1.0..2.0f64, 0.5..1.0f64),
    ) -> BlueSettings {
        // A short freeze makes the model step through millions of decrements of an idle link.
        let freeze_time = if continuous { u64::max(freeze_time, 1_000_000) } else { freeze_time };
        let jitter = if continuous { jitter / 2.0 } else { jitter };
        let threshold = threshold.map(|l| if bytes { l * 700 } else { l });
        let at_head = at_head && ecn;
        BlueSettings {
            initial, freeze_time, up, down, threshold, ecn, front, at_head, bytes, continuous, jitter, update,
            grow, shrink, auto, weight, legacy,
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn blue_is_its_model(c in blue(), room in room(), ops in traffic()) {
        let settings = [
            ("initial", c.initial.to_string()),
            ("freeze_time", format!("{}ns", c.freeze_time)),
            ("increment", c.up.to_string()),
            ("decrement", c.down.to_string()),
            ("threshold", c.threshold.map_or("none".into(), |l| amount(l, c.bytes))),
            ("ecn", c.ecn.to_string()),
            ("drop", if c.front { "front" } else { "tail" }.into()),
            ("signal", if c.at_head { "head" } else { "arriving" }.into()),
            ("mode", if c.bytes { "bytes" } else { "packets" }.into()),
            ("idle_decay", if c.continuous { "continuous" } else { "event" }.into()),
            ("freeze_jitter", c.jitter.to_string()),
            ("update", c.update.into()),
            ("increase_factor", c.grow.to_string()),
            ("decrease_factor", c.shrink.to_string()),
            ("freeze", if c.auto { "auto" } else { "fixed" }.into()),
            ("delay_weight", c.weight.to_string()),
            ("legacy_mark_increment", c.legacy.to_string()),
        ];
        compare("blue", &settings, room, &ops, Blue::new(c))?;
    }
}
