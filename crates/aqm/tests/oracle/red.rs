//! RED and its self-tuning variants.

use super::*;

#[derive(Clone, Debug)]
pub(super) struct RedSettings {
    /// In packets or bytes.
    pub(super) min_th: u64,
    pub(super) max_th: u64,
    pub(super) max_p: f64,
    pub(super) w_q: f64,
    pub(super) gentle: bool,
    pub(super) bytes: bool,
    pub(super) ecn: bool,
    pub(super) drop_above: bool,
    pub(super) spacing: &'static str,
    pub(super) lengths: &'static str,
    pub(super) ns2: bool,
    /// The average has to exceed the thresholds.
    pub(super) exceed: bool,
    /// An idle link's average is halved by a table.
    pub(super) halvings: bool,
}

/// FJ93 Fig. 2.
pub(super) struct Red {
    pub(super) c: RedSettings,
    pub(super) max_p: f64,
    pub(super) avg: f64,
    pub(super) count: f64,
    pub(super) idle_since: Option<u64>,
    /// Nobody has met avg ≥ min_th since it was last below (ns-2).
    pub(super) crossing: bool,
    /// The number that was drawn for the next signal.
    pub(super) ahead: f64,
}

impl Red {
    pub(super) fn new(c: RedSettings) -> Self {
        Self {
            max_p: c.max_p,
            c,
            avg: 0.0,
            count: -1.0,
            idle_since: Some(0),
            crossing: true,
            ahead: 0.0,
        }
    }

    pub(super) fn aged(&self, now: u64) -> f64 {
        match self.idle_since {
            Some(q_time) if self.c.halvings => halved(self.avg, self.c.w_q, (now - q_time) / 1000),
            Some(q_time) => {
                let m = (now - q_time) as f64 / PACKET_NS;
                let m = if self.c.ns2 { m.floor() } else { m };
                (1.0 - self.c.w_q).powf(m) * self.avg
            }
            None => self.avg,
        }
    }

    pub(super) fn update_average(&mut self, now: u64, q: &[Packet]) {
        let idle = self.idle_since.is_some();
        if idle {
            self.avg = self.aged(now);
            self.idle_since = Some(now);
        }
        if !idle || self.c.ns2 {
            let length = if self.c.bytes {
                q.iter().map(|p| f64::from(p.len)).sum()
            } else {
                q.len() as f64
            };
            self.avg = (1.0 - self.c.w_q) * self.avg + self.c.w_q * length;
        }
    }

    /// Whether an average has not come to a threshold.
    pub(super) fn below(&self, avg: f64, threshold: f64) -> bool {
        avg < threshold || self.c.exceed && avg == threshold
    }

    pub(super) fn p_b(&self, avg: f64) -> f64 {
        let (min_th, max_th) = (self.c.min_th as f64, self.c.max_th as f64);
        if self.below(avg, min_th) {
            0.0
        } else if self.below(avg, max_th) {
            self.max_p * (avg - min_th) / (max_th - min_th)
        } else if self.c.gentle && self.below(avg, 2.0 * max_th) {
            self.max_p + (1.0 - self.max_p) * (avg - max_th) / max_th
        } else {
            1.0
        }
    }

    pub(super) fn p_a(&self, p_b: f64, count: f64) -> f64 {
        let p = match self.c.spacing {
            "geometric" => p_b,
            "ahead" if count < 1.0 => 0.0,
            "ahead" if (count - 1.0) * p_b < 1.0 => p_b / (1.0 - (count - 1.0) * p_b),
            "wait" if count * p_b < 1.0 => 0.0,
            "wait" if count * p_b < 2.0 => p_b / (2.0 - count * p_b),
            "wait" => 1.0,
            _ if count * p_b < 1.0 => p_b / (1.0 - count * p_b),
            _ => 1.0,
        };
        if p > 1.0 { 1.0 } else { p }
    }

    pub(super) fn signalled(&mut self) {
        let before = matches!(self.c.spacing, "uniform-exact" | "ahead");
        self.count = if before { -1.0 } else { 0.0 };
    }

    pub(super) fn decide(&mut self, pkt: &Packet, q: &[Packet], rng: &mut Rng) -> Verdict {
        let (min_th, max_th) = (self.c.min_th as f64, self.c.max_th as f64);
        let top = if self.c.gentle { 2.0 * max_th } else { max_th };
        if self.below(self.avg, min_th) {
            self.count = -1.0;
            self.crossing = true;
            Verdict::Admit
        } else if self.c.ns2 && q.len() <= 1 {
            self.count = 1.0;
            self.crossing = true;
            Verdict::Admit
        } else if self.c.ns2 && self.crossing {
            self.count = 1.0;
            self.crossing = false;
            Verdict::Admit
        } else if self.below(self.avg, top) && self.c.spacing == "ahead" {
            let chance = self.c.bytes && self.c.lengths == "chance";
            let length = if chance { f64::from(pkt.len) / MEAN } else { 1.0 };
            self.count += 1.0;
            let signal =
                self.count >= 1.0 && self.p_b(self.avg) * length * self.count >= self.ahead;
            if signal || self.count == 0.0 {
                self.ahead = rng.uniform();
                self.count = 0.0;
            }
            match signal {
                false => Verdict::Admit,
                true if self.c.ecn => Verdict::Signal,
                true => Verdict::Drop,
            }
        } else if self.below(self.avg, top) {
            let p_b = self.p_b(self.avg);
            let length = f64::from(pkt.len) / MEAN;
            let p = match self.c.lengths {
                "chance-and-count" if self.c.bytes => {
                    let first = self.count == -1.0;
                    if self.c.spacing == "uniform-exact" {
                        let unsignalled = if first { 0.0 } else { self.count };
                        self.count = unsignalled + length;
                        length * self.p_a(p_b, unsignalled)
                    } else {
                        self.count = if first { 0.0 } else { self.count + length };
                        length * self.p_a(p_b, self.count)
                    }
                }
                "chance" if self.c.bytes => {
                    self.count += 1.0;
                    self.p_a((p_b * length).min(1.0), self.count)
                }
                _ => {
                    self.count += 1.0;
                    self.p_a(p_b, self.count)
                }
            };
            if rng.uniform() >= p {
                return Verdict::Admit;
            }
            self.signalled();
            if self.c.ecn { Verdict::Signal } else { Verdict::Drop }
        } else {
            self.signalled();
            if self.c.ecn && !self.c.drop_above { Verdict::Signal } else { Verdict::Drop }
        }
    }
}

/// The average after an idle time in µs, by a table of 256 cells that is filled each time anew.
fn halved(avg: f64, w_q: f64, us: u64) -> f64 {
    let per_us = -(1.0 - w_q).ln() / (PACKET_NS / 64.0);
    let mut cell_us = 1_u64;
    while 31.0 / per_us >= 512.0 * cell_us as f64 {
        cell_us *= 2;
    }
    let mut table: Vec<i32> = (0..255).map(|i| ((i * cell_us) as f64 * per_us) as i32).collect();
    table.iter_mut().for_each(|halvings| *halvings = (*halvings).min(31));
    match table.get((us / cell_us) as usize) {
        None => 0.0,
        Some(0) => avg - avg * (us as f64 / cell_us as f64).min(0.5),
        Some(halvings) => avg / 2_f64.powi(*halvings),
    }
}

impl Model for Red {
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        self.update_average(now, q);
        self.decide(pkt, q, rng)
    }
    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        if self.c.ns2 {
            self.signalled();
        }
        q.len()
    }
    fn admitted(&mut self) {
        self.idle_since = None;
    }
    fn idle(&mut self, now: u64, _: &mut Rng) {
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        let avg = self.aged(now);
        let p_b = self.p_b(avg);
        let count = if self.below(avg, self.c.min_th as f64) { 0.0 } else { self.count + 1.0 };
        vec![avg, p_b, self.p_a(p_b, count), self.max_p]
    }
}

/// Feng99.
struct AredFeng {
    red: Red,
    alpha: f64,
    beta: f64,
    status: &'static str,
}

impl Model for AredFeng {
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        self.red.update_average(now, q);
        let (avg, min_th, max_th) =
            (self.red.avg, self.red.c.min_th as f64, self.red.c.max_th as f64);
        if min_th < avg && avg < max_th {
            self.status = "between";
        }
        if avg < min_th && self.status != "below" {
            self.status = "below";
            self.red.max_p /= self.alpha;
        }
        if avg > max_th && self.status != "above" {
            self.status = "above";
            self.red.max_p *= self.beta;
        }
        self.red.max_p = self.red.max_p.clamp(0.01, 1.0);
        self.red.decide(pkt, q, rng)
    }
    fn victim(&mut self, q: &[Packet], rng: &mut Rng) -> usize {
        self.red.victim(q, rng)
    }
    fn admitted(&mut self) {
        self.red.admitted();
    }
    fn idle(&mut self, now: u64, rng: &mut Rng) {
        self.red.idle(now, rng);
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        self.red.signals(now)
    }
}

/// FGS01 Fig. 1.
struct Ared {
    red: Red,
    interval: u64,
    /// Intervals that have ended.
    ended: u64,
}

impl Model for Ared {
    fn clock(&mut self, now: u64, _: &[Packet]) {
        while (self.ended + 1) * self.interval <= now {
            self.ended += 1;
            let avg = self.red.aged(self.ended * self.interval);
            let (min_th, max_th) = (self.red.c.min_th as f64, self.red.c.max_th as f64);
            let max_p = &mut self.red.max_p;
            if avg > min_th + 0.6 * (max_th - min_th) && *max_p <= 0.5 {
                *max_p += f64::min(0.01, *max_p / 4.0);
            } else if avg < min_th + 0.4 * (max_th - min_th) && *max_p >= 0.01 {
                *max_p *= 0.9;
            }
            *max_p = max_p.clamp(0.01, 0.5);
        }
    }
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], f: bool, rng: &mut Rng) -> Verdict {
        self.red.arrive(now, pkt, q, f, rng)
    }
    fn victim(&mut self, q: &[Packet], rng: &mut Rng) -> usize {
        self.red.victim(q, rng)
    }
    fn admitted(&mut self) {
        self.red.admitted();
    }
    fn idle(&mut self, now: u64, rng: &mut Rng) {
        self.red.idle(now, rng);
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        self.red.signals(now)
    }
}

prop_compose! {
    pub(super) fn red()(
        (min_th, room, max_p, w_q) in
            (0..6u64, 1..9u64, 0.0..=1.0f64, prop::sample::select(vec![0.002, 0.1, 0.5, 0.9, 1.0])),
        (gentle, bytes, ecn, drop_above, ns2) in
            (any::<bool>(), any::<bool>(), prop::bool::weighted(0.8), any::<bool>(), any::<bool>()),
        halvings in prop::bool::weighted(0.3),
        spacing in pick(&["uniform", "uniform-exact", "wait", "geometric", "ahead"]),
        lengths in pick(&["chance", "chance-and-count", "average"]),
    ) -> RedSettings {
        let unit = if bytes { 900 } else { 1 };
        RedSettings {
            min_th: min_th * unit, max_th: (min_th + room) * unit, max_p, w_q, gentle, bytes, ecn,
            drop_above, spacing, lengths, ns2, exceed: false, halvings,
        }
    }
}

/// The settings that all of the RED family have.
pub(super) fn red_settings(c: &RedSettings) -> Vec<(&'static str, String)> {
    vec![
        ("min_th", amount(c.min_th, c.bytes)),
        ("max_th", amount(c.max_th, c.bytes)),
        ("max_p", c.max_p.to_string()),
        ("w_q", c.w_q.to_string()),
        ("gentle", c.gentle.to_string()),
        ("mode", if c.bytes { "bytes" } else { "packets" }.into()),
        ("ecn", c.ecn.to_string()),
        ("above_max", if c.drop_above { "drop" } else { "mark" }.into()),
        ("spacing", c.spacing.into()),
        ("lengths", c.lengths.into()),
        ("idle", if c.halvings { "halvings" } else { "power" }.into()),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn red_is_its_model(c in red(), room in room(), ops in traffic()) {
        let mut settings = red_settings(&c);
        settings.push(("ns2_rules", c.ns2.to_string()));
        compare("red", &settings, room, &ops, Red::new(c))?;
    }

    #[test]
    fn ared_feng_is_its_model(
        c in red(), alpha in 1.0..4.0f64, beta in 1.0..4.0f64, room in room(), ops in traffic(),
    ) {
        let c = RedSettings { max_p: c.max_p.max(0.01), ns2: false, ..c };
        let mut settings = red_settings(&c);
        settings.extend([("alpha", alpha.to_string()), ("beta", beta.to_string())]);
        let model = AredFeng { red: Red::new(c), alpha, beta, status: "below" };
        compare("ared-feng", &settings, room, &ops, model)?;
    }

    #[test]
    fn ared_is_its_model(c in red(), ms in 1..600u64, room in room(), ops in traffic()) {
        let c = RedSettings { max_p: c.max_p.clamp(0.01, 0.5), ns2: false, ..c };
        let mut settings = red_settings(&c);
        settings.push(("interval", format!("{ms}ms")));
        let model = Ared { red: Red::new(c), interval: ms * 1_000_000, ended: 0 };
        compare("ared", &settings, room, &ops, model)?;
    }
}
