use super::*;

#[derive(Clone, Debug)]
struct SredSettings {
    zombies: usize,
    overwrite: f64,
    alpha: Option<f64>,
    max_p: f64,
    full: bool,
    bytes: bool,
    ecn: bool,
}

/// OLW99.
struct Sred {
    c: SredSettings,
    buffer: f64,
    list: Vec<u64>,
    p: f64,
    p_sred: f64,
}

impl Model for Sred {
    fn arrive(&mut self, _: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        let mut hit = 0.0;
        if self.list.len() < self.c.zombies {
            self.list.push(pkt.flow);
        } else {
            let zombie = rng.below(self.c.zombies);
            if self.list[zombie] == pkt.flow {
                hit = 1.0;
            } else if rng.uniform() < self.c.overwrite {
                self.list[zombie] = pkt.flow;
            }
            let alpha = self.c.alpha.unwrap_or(self.c.overwrite / self.c.zombies as f64);
            self.p = (1.0 - alpha) * self.p + alpha * hit;
        }
        let length: f64 =
            if self.c.bytes { q.iter().map(|p| f64::from(p.len)).sum() } else { q.len() as f64 };
        self.p_sred = match length {
            q if 3.0 * q >= self.buffer => self.c.max_p,
            q if 6.0 * q >= self.buffer => self.c.max_p / 4.0,
            _ => 0.0,
        };
        let mut p_zap = self.p_sred * f64::min(1.0, 1.0 / (256.0 * self.p).powi(2));
        if self.c.full && hit == 1.0 {
            p_zap *= 1.0 + 1.0 / self.p;
        }
        match rng.uniform() < p_zap {
            false => Verdict::Admit,
            true if self.c.ecn => Verdict::Signal,
            true => Verdict::Drop,
        }
    }
    fn signals(&self, _: u64) -> Vec<f64> {
        vec![self.p, self.p_sred * f64::min(1.0, 1.0 / (256.0 * self.p).powi(2))]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn sred_is_its_model(
        zombies in 1..20usize,
        overwrite in 0.001..=1.0f64,
        alpha in prop::option::of(0.0001..=1.0f64),
        max_p in 0.0..=1.0f64,
        (full, bytes, ecn) in (any::<bool>(), any::<bool>(), any::<bool>()),
        room in room(),
        ops in traffic(),
    ) {
        let settings = [
            ("zombies", zombies.to_string()),
            ("overwrite", overwrite.to_string()),
            ("alpha", alpha.map_or("none".into(), |a| a.to_string())),
            ("max_p", max_p.to_string()),
            ("variant", if full { "full" } else { "simple" }.into()),
            ("mode", if bytes { "bytes" } else { "packets" }.into()),
            ("ecn", ecn.to_string()),
        ];
        let buffer = match (room, bytes) {
            (Room::Packets(n), true) => n as f64 * MEAN,
            (Room::Bytes(n), false) => n as f64 / MEAN,
            (Room::Packets(n) | Room::Bytes(n), _) => n as f64,
        };
        let c = SredSettings { zombies, overwrite, alpha, max_p, full, bytes, ecn };
        compare("sred", &settings, room, &ops, Sred { c, buffer, list: vec![], p: 0.0, p_sred: 0.0 })?;
    }
}
