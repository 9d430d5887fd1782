use super::*;

/// KS01 Fig. 1; bytes and nanoseconds.
struct Avq {
    gamma: f64,
    /// Per second.
    alpha: f64,
    b: f64,
    ecn: bool,
    /// Only packets that are not dropped move the rate, as in the code of the paper's author.
    accepted: bool,
    vq: f64,
    /// In bytes a second.
    c_tilde: f64,
    s: u64,
    /// When the rate was last moved.
    moved: u64,
}

/// 8 Mbit/s, in bytes a second.
const C: f64 = 1e6;

impl Model for Avq {
    fn arrive(&mut self, t: u64, pkt: &Packet, _: &[Packet], room: bool, _: &mut Rng) -> Verdict {
        let (seconds, b) = ((t - self.s) as f64 / 1e9, f64::from(pkt.len));
        self.vq = f64::max(self.vq - self.c_tilde * seconds, 0.0);
        let fits = self.vq + b <= self.b;
        if fits {
            self.vq += b;
        }
        self.s = t;
        if !self.accepted || room && (fits || self.ecn && pkt.ect) {
            let seconds = (t - self.moved) as f64 / 1e9;
            self.c_tilde = f64::max(
                f64::min(self.c_tilde + self.alpha * self.gamma * C * seconds, C) - self.alpha * b,
                0.0,
            );
            self.moved = t;
        }
        match (fits, self.ecn) {
            (true, _) => Verdict::Admit,
            (false, true) => Verdict::Signal,
            (false, false) => Verdict::Drop,
        }
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        let seconds = (now - self.s) as f64 / 1e9;
        vec![8.0 * self.c_tilde, f64::max(self.vq - self.c_tilde * seconds, 0.0)]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn avq_is_its_model(
        (gamma, alpha) in (0.0..=1.0f64, 0.0..=10.0f64),
        b in 0..20_000u64,
        (ecn, accepted) in any::<(bool, bool)>(),
        room in room(),
        ops in traffic(),
    ) {
        let settings = [
            ("gamma", gamma.to_string()),
            ("alpha", alpha.to_string()),
            ("virtual_buffer", format!("{b}B")),
            ("ecn", ecn.to_string()),
            ("adapts", if accepted { "accepted" } else { "arrivals" }.into()),
        ];
        let model = Avq { gamma, alpha, b: b as f64, ecn, accepted, vq: 0.0, c_tilde: C, s: 0, moved: 0 };
        compare("avq", &settings, room, &ops, model)?;
    }
}
