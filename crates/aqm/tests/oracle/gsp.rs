use super::*;

/// LF15's adaptive algorithm, with the state of the queue since the last event kept.
struct Gsp {
    threshold: u64,
    bytes: bool,
    /// In place of the threshold.
    target: Option<u64>,
    interval: f64,
    adaptive: bool,
    alpha: f64,
    tau: f64,
    max_time: f64,
    ecn: bool,
    time_above_minus_below: f64,
    last: u64,
    timeout: u64,
    delay: u64,
}

impl Gsp {
    fn above(&self, q: &[Packet]) -> bool {
        let queue = if self.bytes {
            q.iter().map(|p| u64::from(p.len)).sum::<u64>()
        } else {
            q.len() as u64
        };
        self.target.map_or(queue > self.threshold, |target| self.delay > target)
    }

    fn pass(&mut self, now: u64, q: &[Packet]) {
        let time = (now - self.last) as f64;
        if self.above(q) {
            self.time_above_minus_below += self.alpha * time;
        } else {
            self.time_above_minus_below -= time;
        }
        if self.time_above_minus_below > self.max_time {
            self.time_above_minus_below = self.max_time;
        }
        if self.time_above_minus_below < 0.0 {
            self.time_above_minus_below = 0.0;
        }
        self.last = now;
    }

    fn present(&self) -> f64 {
        if self.adaptive {
            self.interval / (1.0 + self.time_above_minus_below / self.tau)
        } else {
            self.interval
        }
    }
}

impl Model for Gsp {
    fn arrive(&mut self, now: u64, _: &Packet, q: &[Packet], _: bool, _: &mut Rng) -> Verdict {
        self.pass(now, q);
        if self.above(q) && now > self.timeout {
            self.timeout = now + self.present() as u64;
            return if self.ecn { Verdict::Signal } else { Verdict::Drop };
        }
        Verdict::Admit
    }

    fn send(
        &mut self,
        now: u64,
        q: &mut Vec<Packet>,
        _: &mut Vec<Event>,
        _: &mut Rng,
    ) -> Option<Packet> {
        self.pass(now, q);
        let packet = (!q.is_empty()).then(|| q.remove(0));
        self.delay = packet.map_or(0, |packet| now - packet.arrived);
        packet
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        let excess = if self.adaptive { self.time_above_minus_below / 1e9 } else { 0.0 };
        vec![self.present() / 1e9, excess]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn gsp_is_its_model(
        (threshold, bytes, ecn) in (0..6u64, any::<bool>(), prop::bool::weighted(0.7)),
        target in prop::option::of(0..8_000_000u64),
        interval in prop::sample::select(vec![1_000u64, 3_000_000, 50_000_000]),
        (adaptive, alpha) in (prop::bool::weighted(0.8), 0.0..4.0f64),
        tau in prop::sample::select(vec![1_000u64, 5_000_000, 1_000_000_000]),
        max_time in prop::sample::select(vec![0u64, 20_000_000, 60_000_000_000]),
        room in room(), ops in traffic(),
    ) {
        let threshold = threshold * if bytes { 900 } else { 1 };
        let settings = [
            ("threshold", amount(threshold, bytes)),
            ("target", format!("{}ns", target.unwrap_or(20_000_000))),
            ("by", if target.is_some() { "delay" } else { "length" }.to_string()),
            ("interval", format!("{interval}ns")),
            ("adaptive", adaptive.to_string()),
            ("alpha", alpha.to_string()),
            ("tau", format!("{tau}ns")),
            ("max_time", format!("{max_time}ns")),
            ("mode", if bytes { "bytes" } else { "packets" }.to_string()),
            ("ecn", ecn.to_string()),
        ];
        let model = Gsp {
            threshold, bytes, target, interval: interval as f64, adaptive, alpha, tau: tau as f64,
            max_time: max_time as f64, ecn, time_above_minus_below: 0.0, last: 0, timeout: 0, delay: 0,
        };
        compare("gsp", &settings, room, &ops, model)?;
    }
}
