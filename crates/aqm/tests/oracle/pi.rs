use super::*;

/// HMTG01 §V.
struct Pi {
    a: f64,
    b: f64,
    q_ref: f64,
    bytes: bool,
    ecn: bool,
    interval: u64,
    samples: u64,
    p: f64,
    q_old: f64,
}

impl Model for Pi {
    fn clock(&mut self, now: u64, q: &[Packet]) {
        while (self.samples + 1) * self.interval <= now {
            self.samples += 1;
            let bytes: f64 = q.iter().map(|p| f64::from(p.len)).sum();
            let q = if self.bytes { bytes / MEAN } else { q.len() as f64 };
            self.p += self.a * (q - self.q_ref) - self.b * (self.q_old - self.q_ref);
            self.p = self.p.clamp(0.0, 1.0);
            self.q_old = q;
        }
    }
    fn arrive(&mut self, _: u64, _: &Packet, _: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        match (rng.uniform() < self.p, self.ecn) {
            (false, _) => Verdict::Admit,
            (true, true) => Verdict::Signal,
            (true, false) => Verdict::Drop,
        }
    }
    fn signals(&self, _: u64) -> Vec<f64> {
        vec![self.p]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn pi_is_its_model(
        (a, share) in (0.001..=1.0f64, 0.0..0.99f64),
        q_ref in 0..8u64,
        us in 100..50_000u64,
        (bytes, ecn) in (any::<bool>(), any::<bool>()),
        room in room(),
        ops in traffic(),
    ) {
        let settings = [
            ("a", a.to_string()),
            ("b", (a * share).to_string()),
            ("q_ref", format!("{q_ref}p")),
            ("interval", format!("{us}us")),
            ("mode", if bytes { "bytes" } else { "packets" }.into()),
            ("ecn", ecn.to_string()),
        ];
        let model = Pi {
            a,
            b: a * share,
            q_ref: q_ref as f64,
            bytes,
            ecn,
            interval: us * 1000,
            samples: 0,
            p: 0.0,
            q_old: 0.0,
        };
        compare("pi", &settings, room, &ops, model)?;
    }
}
