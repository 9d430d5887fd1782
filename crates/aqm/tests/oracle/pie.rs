use super::*;

#[derive(Clone, Debug)]
pub(super) struct PieSettings {
    target: u64,
    t_update: u64,
    alpha: f64,
    beta: f64,
    max_burst: u64,
    ecn: bool,
    mark_ecnth: f64,
    bytes: bool,
    delay: &'static str,
    dq_threshold: u64,
    derandomise: bool,
    cap: bool,
    by_departure: bool,
    steep_above: u64,
    p_max: f64,
    decay: f64,
    by_departures: bool,
    first_update: u64,
    spare: Option<u64>,
    sum_kept_from: Option<f64>,
    p_past_max: Option<f64>,
    full_length: Option<u32>,
}

impl PieSettings {
    pub(super) fn list(&self) -> Vec<(&'static str, String)> {
        vec![
            ("target", format!("{}ns", self.target)),
            ("t_update", format!("{}ns", self.t_update)),
            ("alpha", self.alpha.to_string()),
            ("beta", self.beta.to_string()),
            ("max_burst", format!("{}ns", self.max_burst)),
            ("ecn", self.ecn.to_string()),
            ("mark_ecnth", self.mark_ecnth.to_string()),
            ("mode", if self.bytes { "bytes" } else { "packets" }.into()),
            ("delay", self.delay.into()),
            ("dq_threshold", self.dq_threshold.to_string()),
            ("derandomise", self.derandomise.to_string()),
            ("cap", self.cap.to_string()),
            ("spared_by", if self.by_departure { "last-departure" } else { "last-update" }.into()),
            ("steep_above", format!("{}ns", self.steep_above)),
            ("p_max", self.p_max.to_string()),
            ("decay", self.decay.to_string()),
            ("burst_runs", if self.by_departures { "departures" } else { "updates" }.into()),
            ("first_update", format!("{}ns", self.first_update)),
            ("sum_kept_from", self.sum_kept_from.map_or("none".into(), |sum| sum.to_string())),
            ("p_past_max", self.p_past_max.map_or("none".into(), |p| p.to_string())),
            ("full_length", self.full_length.map_or("none".into(), |bytes| bytes.to_string())),
            ("spare", self.spare.map_or("none".into(), |bytes| bytes.to_string())),
        ]
    }
}

/// RFC 8033, appendices A and B. Times in nanoseconds, estimates of delay in seconds.
pub(super) struct Pie {
    c: PieSettings,
    updates: u64,
    drop_prob: f64,
    burst_allowance: u64,
    qdelay_old: f64,
    last_sojourn: u64,
    last_departure: Option<u64>,
    accu_prob: f64,
    in_measurement: bool,
    measurement_start: u64,
    dq_count: u64,
    avg_dq_time: u64,
}

fn bytes(q: &[Packet]) -> u64 {
    q.iter().map(|p| u64::from(p.len)).sum()
}

impl Pie {
    pub(super) fn new(c: PieSettings) -> Self {
        Self {
            updates: 0,
            drop_prob: 0.0,
            burst_allowance: c.max_burst,
            qdelay_old: 0.0,
            last_sojourn: 0,
            last_departure: None,
            accu_prob: 0.0,
            in_measurement: false,
            measurement_start: 0,
            dq_count: 0,
            avg_dq_time: 0,
            c,
        }
    }

    fn by_departures(&self) -> bool {
        self.c.delay == "last-departure" && self.c.by_departures
    }

    fn half_target(&self) -> f64 {
        (self.c.target / 2) as f64 / 1e9
    }

    fn drop_early(&mut self, pkt: &Packet, q: &[Packet], full: bool, rng: &mut Rng) -> bool {
        let qdelay =
            if self.c.by_departure { self.last_sojourn as f64 / 1e9 } else { self.qdelay_old };
        if qdelay < self.half_target() && self.drop_prob < 0.2 {
            return false;
        }
        if self.c.spare.is_some_and(|spare| bytes(q) < spare) {
            return false;
        }
        if self.c.spare.is_none() && bytes(q) <= 2 * MEAN as u64 {
            return false;
        }
        let mut p = self.drop_prob;
        if let Some(full) = self.c.full_length
            && self.c.bytes
        {
            p = p * f64::from(pkt.len.min(full)) / f64::from(full);
        } else if self.c.bytes {
            p = f64::min(1.0, p * f64::from(pkt.len) / MEAN);
        }
        if self.c.derandomise {
            if full {
                return false;
            }
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            } else {
                self.accu_prob += p;
            }
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        rng.uniform() < p
    }

    fn calculate_drop_prob(&mut self, q: &[Packet]) {
        let ns = if q.is_empty() {
            0
        } else if self.c.delay == "departure-rate" {
            let share = bytes(q) as f64 / self.c.dq_threshold as f64;
            (self.avg_dq_time as f64 * share).round() as u64
        } else {
            self.last_sojourn
        };
        let current = ns as f64 / 1e9;
        let target = self.c.target as f64 / 1e9;
        let mut p = self.c.alpha * (current - target) + self.c.beta * (current - self.qdelay_old);
        let d = self.drop_prob;
        p /= if d < 0.000_001 {
            2048.0
        } else if d < 0.000_01 {
            512.0
        } else if d < 0.000_1 {
            128.0
        } else if d < 0.001 {
            32.0
        } else if d < 0.01 {
            8.0
        } else if d < 0.1 {
            2.0
        } else {
            1.0
        };
        if self.c.cap && d >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        if self.c.steep_above > 0 && ns > self.c.steep_above {
            p += 0.02;
        }
        let passes = self.drop_prob + p > self.c.p_max;
        self.drop_prob += p;
        let unknown = self.c.delay == "last-departure" && !q.is_empty();
        if current == 0.0 && self.qdelay_old == 0.0 && !unknown {
            self.drop_prob *= self.c.decay;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, self.c.p_max);
        if passes && let Some(past) = self.c.p_past_max {
            self.drop_prob = f64::min(past, self.c.p_max);
        }
        if !self.by_departures() {
            self.burst_allowance = self.burst_allowance.saturating_sub(self.c.t_update);
        }
        let half = self.half_target();
        if self.drop_prob == 0.0 && current < half && self.qdelay_old < half {
            self.burst_allowance = self.c.max_burst;
            self.last_departure = None;
            self.accu_prob = 0.0;
        }
        self.qdelay_old = current;
    }
}

impl Model for Pie {
    fn clock(&mut self, now: u64, q: &[Packet]) {
        let first = if self.c.first_update > 0 { self.c.first_update } else { self.c.t_update };
        while first + self.updates * self.c.t_update <= now {
            self.updates += 1;
            self.calculate_drop_prob(q);
        }
    }

    fn arrive(&mut self, _: u64, pkt: &Packet, q: &[Packet], fits: bool, rng: &mut Rng) -> Verdict {
        if self.burst_allowance > 0 || !self.drop_early(pkt, q, !fits, rng) {
            return Verdict::Admit;
        }
        let kept = self.c.sum_kept_from.is_some_and(|from| self.accu_prob >= from);
        if self.c.ecn && self.drop_prob < self.c.mark_ecnth {
            if !pkt.ect || !kept {
                self.accu_prob = 0.0;
            }
            Verdict::Signal
        } else {
            self.accu_prob = 0.0;
            Verdict::Drop
        }
    }

    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        self.accu_prob = 0.0;
        q.len()
    }

    fn send(
        &mut self,
        now: u64,
        q: &mut Vec<Packet>,
        _: &mut Vec<Event>,
        _: &mut Rng,
    ) -> Option<Packet> {
        let packet = (!q.is_empty()).then(|| q.remove(0))?;
        self.last_sojourn = now - packet.arrived;
        if self.c.delay == "last-departure" && q.is_empty() {
            self.last_sojourn = 0;
        }
        if self.by_departures() {
            let before = self.last_departure.replace(now).unwrap_or(now);
            self.burst_allowance = self.burst_allowance.saturating_sub(now - before);
        }
        if self.in_measurement {
            self.dq_count += u64::from(packet.len);
            if self.dq_count >= self.c.dq_threshold {
                let dq_time = now - self.measurement_start;
                if self.avg_dq_time == 0 {
                    self.avg_dq_time = dq_time;
                } else {
                    let weight = f64::min(1.0, self.c.dq_threshold as f64 / 65_536.0);
                    self.avg_dq_time = (dq_time as f64 * weight).round() as u64
                        + (self.avg_dq_time as f64 * (1.0 - weight)).round() as u64;
                }
                self.in_measurement = false;
            }
        }
        if !self.in_measurement && bytes(q) >= self.c.dq_threshold {
            self.in_measurement = true;
            self.measurement_start = now;
            self.dq_count = 0;
        }
        Some(packet)
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        vec![self.drop_prob.min(1.0), self.qdelay_old, self.burst_allowance as f64 / 1e9]
    }

    fn more(&self) -> Vec<f64> {
        vec![self.accu_prob]
    }
}

prop_compose! {
    pub(super) fn pie()(
        (target, t_update, max_burst) in (
            prop::sample::select(vec![0, 1_000_000, 2_000_000, 15_000_000]),
            prop::sample::select(vec![1_000_000, 3_000_000, 15_000_000]),
            prop::sample::select(vec![0, 0, 2_000_000, 20_000_000, 150_000_000]),
        ),
        (alpha, beta) in (prop::sample::select(vec![0.125, 5.0, 100.0]), prop::sample::select(vec![0.0, 1.25, 50.0])),
        (ecn, mark_ecnth, bytes, derandomise, cap) in
            (prop::bool::weighted(0.7), 0.0..=1.0f64, any::<bool>(), any::<bool>(), any::<bool>()),
        (delay, decay, by_departures) in (
            prop::sample::select(vec!["timestamps", "departure-rate", "last-departure", "last-departure"]),
            prop::sample::select(vec![0.0, 0.98, 0.984_375, 1.0]),
            any::<bool>(),
        ),
        (by_departure, steep_above, p_max) in (
            any::<bool>(),
            prop::sample::select(vec![0, 0, 1, 5_000_000, 250_000_000]),
            prop::sample::select(vec![1.0, 0.5, 256.0]),
        ),
        dq_threshold in prop::sample::select(vec![1, 2000, 5000, 16_384, 1_048_576]),
        first_update in prop::sample::select(vec![0, 0, 1, 1_000_000, 20_000_000]),
        sum_kept_from in prop::sample::select(vec![None, None, Some(8.5), Some(1.0)]),
        p_past_max in prop::sample::select(vec![None, None, Some(0.0), Some(1.0)]),
        full_length in prop::sample::select(vec![None, None, Some(576), Some(1514)]),
        spare in prop::sample::select(vec![None, None, Some(0), Some(1000), Some(5000)]),
    ) -> PieSettings {
        PieSettings {
            target, t_update, alpha, beta, max_burst, ecn, mark_ecnth, bytes, delay, dq_threshold,
            derandomise, cap, by_departure, steep_above, p_max, decay, by_departures,
            first_update, spare, sum_kept_from, p_past_max, full_length,
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pie_is_its_model(c in pie(), room in room(), ops in traffic()) {
        compare("pie", &c.list(), room, &ops, Pie::new(c))?;
    }
}
