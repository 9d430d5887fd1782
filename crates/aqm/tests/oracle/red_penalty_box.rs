use super::red::{Red, RedSettings, red, red_settings};
use super::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct BoxSettings {
    log: usize,
    /// In milliseconds.
    rtt: u64,
    boxes: usize,
    per_flow: bool,
    /// In kbit/s.
    rate: u64,
    /// In milliseconds.
    release: Option<u64>,
}

#[derive(Clone, Copy)]
struct Boxed {
    last: Option<(u64, u32)>,
    since: u64,
    bytes: u64,
}

/// FF97 and Feng02 §V.A, beside RED as it is modelled above.
struct RedPenaltyBox {
    c: BoxSettings,
    red: Red,
    log: Vec<u64>,
    since: u64,
    packets: u64,
    bytes: u64,
    friendly: f64,
    boxed: BTreeMap<u64, Boxed>,
    /// Time and length of the last packet within the common limit.
    last: Option<(u64, u32)>,
}

impl RedPenaltyBox {
    fn past_release(&self, flow: &Boxed, now: u64) -> bool {
        self.c.release.is_some_and(|release| now - flow.since >= release * 1_000_000)
    }

    fn reformed(&self, flow: &Boxed, now: u64) -> bool {
        let seconds = (now - flow.since) as f64 / 1e9;
        self.past_release(flow, now) && flow.bytes as f64 * 8.0 <= self.friendly * seconds
    }

    fn within_limit(&mut self, flow: u64, len: u32, now: u64) -> bool {
        let last = if self.c.per_flow { self.boxed[&flow].last } else { self.last };
        if let Some((at, len)) = last
            && (now - at) as f64 * (self.c.rate as f64) < f64::from(len) * 8e6
        {
            return false;
        }
        self.boxed.get_mut(&flow).unwrap().last = Some((now, len));
        self.last = Some((now, len));
        true
    }

    fn test(&mut self, now: u64) {
        let seconds = (now - self.since) as f64 / 1e9;
        if now > self.since {
            let n = self.log.len() as f64;
            let p = n / self.packets as f64;
            // Rounded as there: a flow may send just what is friendly.
            self.friendly = 8.0 * MEAN * ((1.5 / p).sqrt() / (self.c.rtt as f64 / 1e3));
            let mut flows: Vec<u64> = self.log.clone();
            flows.sort_unstable();
            flows.dedup();
            for flow in flows {
                let k = self.log.iter().filter(|&&f| f == flow).count() as f64;
                if k / n * self.bytes as f64 * 8.0 / seconds <= self.friendly {
                    continue;
                }
                if self.boxed.len() == self.c.boxes {
                    let silent = self.boxed.iter().filter(|(_, b)| self.reformed(b, now));
                    let oldest = silent.min_by_key(|(flow, b)| (b.since, **flow));
                    match oldest.map(|(flow, _)| *flow) {
                        Some(oldest) => _ = self.boxed.remove(&oldest),
                        None => continue,
                    }
                }
                self.boxed.insert(flow, Boxed { last: None, since: now, bytes: 0 });
            }
        }
        self.log.clear();
        (self.since, self.packets, self.bytes) = (now, 0, 0);
    }
}

impl Model for RedPenaltyBox {
    fn start(&mut self, rng: &mut Rng) {
        // The secret of the hash.
        rng.bits();
        rng.bits();
    }
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        if let Some(&flow) = self.boxed.get(&pkt.flow) {
            if self.reformed(&flow, now) {
                self.boxed.remove(&pkt.flow);
            } else {
                let past = self.past_release(&flow, now);
                let flow = self.boxed.get_mut(&pkt.flow).unwrap();
                if past {
                    (flow.since, flow.bytes) = (now, 0);
                }
                flow.bytes += u64::from(pkt.len);
                if !self.within_limit(pkt.flow, pkt.len, now) {
                    return Verdict::Penalise;
                }
            }
        }
        self.red.update_average(now, q);
        let verdict = self.red.decide(pkt, q, rng);
        if !self.boxed.contains_key(&pkt.flow) {
            self.packets += 1;
            self.bytes += u64::from(pkt.len);
            if !matches!(verdict, Verdict::Admit) {
                self.log.push(pkt.flow);
                if self.log.len() == self.c.log {
                    self.test(now);
                }
            }
        }
        verdict
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
        let mut signals = self.red.signals(now);
        signals.extend([self.boxed.len() as f64, self.friendly]);
        signals
    }
}

prop_compose! {
    fn boxes()(
        (log, rtt, boxes) in (1..8usize, 1..60u64, 1..3usize),
        per_flow in any::<bool>(),
        rate in prop::sample::select(vec![80, 160, 1000]),
        release in prop::option::of(0..100u64),
    ) -> BoxSettings {
        BoxSettings { log, rtt, boxes, per_flow, rate, release }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn red_penalty_box_is_its_model(b in boxes(), c in red(), room in room(), ops in traffic()) {
        let c = RedSettings { ns2: false, ..c };
        let mut settings = red_settings(&c);
        settings.extend([
            ("log", b.log.to_string()),
            ("rtt", format!("{}ms", b.rtt)),
            ("boxes", b.boxes.to_string()),
            ("penalty", if b.per_flow { "per-flow" } else { "common" }.into()),
            ("penalty_rate", format!("{}kbit", b.rate)),
            ("release", b.release.map_or("none".into(), |ms| format!("{ms}ms"))),
        ]);
        let model = RedPenaltyBox {
            c: b,
            red: Red::new(c),
            log: vec![],
            since: 0,
            packets: 0,
            bytes: 0,
            friendly: 0.0,
            boxed: BTreeMap::new(),
            last: None,
        };
        compare("red-penalty-box", &settings, room, &ops, model)?;
    }
}
