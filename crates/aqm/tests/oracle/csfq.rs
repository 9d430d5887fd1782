use super::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct CsfqSettings {
    /// In nanoseconds.
    k: u64,
    k_alpha: u64,
    k_c: u64,
    /// In packets or bytes, as the room.
    threshold: u64,
    overflow: f64,
    least: f64,
    only_congested: bool,
}

/// SSZ98 eq. 3; rates in bits a nanosecond.
#[derive(Clone, Copy)]
struct Estimate {
    rate: f64,
    last: u64,
}

impl Estimate {
    fn packet(&mut self, now: u64, len: u32, k: u64) {
        let (t, bits, k) = ((now - self.last) as f64, 8.0 * f64::from(len), k as f64);
        self.rate = match t {
            0.0 => self.rate + bits / k,
            _ => -(-t / k).exp_m1() * bits / t + (-t / k).exp() * self.rate,
        };
        self.last = now;
    }
}

/// SSZ98 Fig. 3 and §2.2.
struct Csfq {
    c: CsfqSettings,
    bytes: bool,
    flows: BTreeMap<u64, Estimate>,
    a: Estimate,
    f: Estimate,
    alpha: f64,
    tmp_alpha: f64,
    floor: f64,
    congested: bool,
    start: u64,
}

/// 8 Mbit/s.
const C: f64 = 0.008;

impl Csfq {
    fn estimate_alpha(&mut self, now: u64, len: u32, label: f64, dropped: bool, queued: u64) {
        self.a.packet(now, len, self.c.k_alpha);
        if !dropped {
            self.f.packet(now, len, self.c.k_alpha);
        }
        if self.a.rate >= C && (self.congested || queued >= self.c.threshold) {
            if !self.congested {
                self.congested = true;
                self.start = now;
            } else if now > self.start + self.c.k_c {
                self.alpha = f64::max(self.alpha * C / self.f.rate, self.floor);
                self.floor = self.c.least * self.alpha;
                self.start = now;
            }
        } else if self.congested {
            self.congested = false;
            self.start = now;
            self.tmp_alpha = 0.0;
        } else if now < self.start + self.c.k_c {
            self.tmp_alpha = f64::max(self.tmp_alpha, label);
        } else {
            self.alpha = f64::max(self.tmp_alpha, label);
            self.floor = self.c.least * self.alpha;
            self.start = now;
            self.tmp_alpha = 0.0;
        }
    }
}

impl Model for Csfq {
    fn start(&mut self, rng: &mut Rng) {
        // The secret of the hash.
        rng.bits();
        rng.bits();
    }
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        let flow = self.flows.entry(pkt.flow).or_insert(Estimate { rate: 0.0, last: now });
        flow.packet(now, pkt.len, self.c.k);
        let label = flow.rate;
        let mut prob = f64::max(0.0, 1.0 - self.alpha / label);
        if self.c.only_congested && !self.congested {
            prob = 0.0;
        }
        let dropped = rng.uniform() < prob;
        let bytes = q.iter().map(|p| u64::from(p.len)).sum();
        let queued = if self.bytes { bytes } else { q.len() as u64 };
        self.estimate_alpha(now, pkt.len, label, dropped, queued);
        if dropped { Verdict::Drop } else { Verdict::Admit }
    }
    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        self.alpha = f64::max(self.alpha * self.c.overflow, self.floor);
        q.len()
    }
    fn signals(&self, _: u64) -> Vec<f64> {
        vec![self.alpha * 1e9, self.a.rate * 1e9, self.f.rate * 1e9]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn csfq_is_its_model(
        (k, k_alpha, k_c) in (100_000..50_000_000u64, 100_000..50_000_000u64, 1_000..20_000_000u64),
        threshold in 0..4u64,
        (overflow, least) in (0.5..=1.0f64, 0.5..=1.0f64),
        only_congested in any::<bool>(),
        room in room(),
        ops in traffic(),
    ) {
        let bytes = matches!(room, Room::Bytes(_));
        let threshold = if bytes { threshold * 700 } else { threshold };
        let settings = [
            ("k", format!("{k}ns")),
            ("k_alpha", format!("{k_alpha}ns")),
            ("k_c", format!("{k_c}ns")),
            ("threshold", amount(threshold, bytes)),
            ("overflow_factor", overflow.to_string()),
            ("least_factor", least.to_string()),
            ("only_congested", only_congested.to_string()),
        ];
        let silent = Estimate { rate: 0.0, last: 0 };
        let model = Csfq {
            c: CsfqSettings { k, k_alpha, k_c, threshold, overflow, least, only_congested },
            bytes,
            flows: BTreeMap::new(),
            a: silent,
            f: silent,
            alpha: C,
            tmp_alpha: 0.0,
            floor: least * C,
            congested: false,
            start: 0,
        };
        compare("csfq", &settings, room, &ops, model)?;
    }
}
