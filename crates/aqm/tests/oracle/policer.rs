use super::*;

/// A token bucket before a queue: what it holds is asked for at each packet, from the start on.
struct Policer {
    rate: u64,
    burst: u64,
    /// When packets passed, and their bytes.
    passed: Vec<(u64, u32)>,
}

/// Bits that a rate gives in 10⁹ of a second, for a byte.
const BYTE: u128 = 8_000_000_000;

impl Policer {
    fn tokens(&self, now: u64) -> u128 {
        let full = u128::from(self.burst) * BYTE;
        let gained = |from: u64, to: u64| u128::from(self.rate) * u128::from(to - from);
        let (mut tokens, mut last) = (full, 0);
        for &(at, len) in &self.passed {
            tokens = full.min(tokens + gained(last, at)) - u128::from(len) * BYTE;
            last = at;
        }
        full.min(tokens + gained(last, now))
    }
}

impl Model for Policer {
    fn arrive(&mut self, now: u64, p: &Packet, _: &[Packet], _: bool, _: &mut Rng) -> Verdict {
        if self.tokens(now) < u128::from(p.len) * BYTE {
            return Verdict::Police;
        }
        self.passed.push((now, p.len));
        Verdict::Admit
    }

    fn signals(&self, now: u64) -> Vec<f64> {
        vec![(self.tokens(now) / BYTE) as f64]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_policer_is_its_model(
        rate in prop::sample::select(vec![1, 999, 333_333, 2_000_000, 8_000_000, 1_000_000_000]),
        burst in 1000..20_000u64, room in room(), ops in traffic(),
    ) {
        let settings = [("rate", format!("{rate}bit")), ("burst", format!("{burst}B"))];
        let model = Policer { rate, burst, passed: Vec::new() };
        let mut naive = Naive { model, room, q: Vec::new(), events: Vec::new() };
        compare_behind(Some(("policer", &settings)), "droptail", &[], room, &ops, &mut naive)?;
    }
}
