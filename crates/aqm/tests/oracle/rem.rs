use super::*;

/// ALLY01.
struct Rem {
    gamma: f64,
    alpha: f64,
    phi: f64,
    target: f64,
    bytes: bool,
    ecn: bool,
    interval: u64,
    updates: u64,
    price: f64,
    arrived: f64,
}

impl Rem {
    fn p(&self) -> f64 {
        1.0 - self.phi.powf(-self.price)
    }
}

impl Model for Rem {
    fn clock(&mut self, now: u64, q: &[Packet]) {
        while (self.updates + 1) * self.interval <= now {
            self.updates += 1;
            let bytes: f64 = q.iter().map(|p| f64::from(p.len)).sum();
            let backlog = if self.bytes { bytes / MEAN } else { q.len() as f64 };
            let capacity = self.interval as f64 / PACKET_NS;
            let mismatch = self.alpha * (backlog - self.target) + self.arrived - capacity;
            self.price = f64::max(0.0, self.price + self.gamma * mismatch);
            self.arrived = 0.0;
        }
    }
    fn arrive(&mut self, _: u64, pkt: &Packet, _: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        self.arrived += if self.bytes { f64::from(pkt.len) / MEAN } else { 1.0 };
        match (rng.uniform() < self.p(), self.ecn) {
            (false, _) => Verdict::Admit,
            (true, true) => Verdict::Signal,
            (true, false) => Verdict::Drop,
        }
    }
    fn signals(&self, _: u64) -> Vec<f64> {
        vec![self.price, self.p()]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn rem_is_its_model(
        (gamma, alpha, phi) in (0.0..=1.0f64, 0.0..=2.0f64, 1.0..=3.0f64),
        target in 0..8u64,
        us in 100..50_000u64,
        (bytes, ecn) in (any::<bool>(), any::<bool>()),
        room in room(),
        ops in traffic(),
    ) {
        let settings = [
            ("gamma", gamma.to_string()),
            ("alpha", alpha.to_string()),
            ("phi", phi.to_string()),
            ("target", format!("{target}p")),
            ("interval", format!("{us}us")),
            ("mode", if bytes { "bytes" } else { "packets" }.into()),
            ("ecn", ecn.to_string()),
        ];
        let model = Rem {
            gamma,
            alpha,
            phi,
            target: target as f64,
            bytes,
            ecn,
            interval: us * 1000,
            updates: 0,
            price: 0.0,
            arrived: 0.0,
        };
        compare("rem", &settings, room, &ops, model)?;
    }
}
