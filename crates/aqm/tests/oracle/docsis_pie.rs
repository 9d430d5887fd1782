use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Inactive,
    Quiescent,
    Active,
}

/// RFC 8034, appendix A, with no tokens and one rate of 8 Mbit/s: a byte is a microsecond.
struct DocsisPie {
    target: f64,
    interval: u64,
    a: f64,
    b: f64,
    max_burst: u64,
    burst_reset_timeout: u64,
    room: Room,
    updates: u64,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: f64,
    burst_allowance: u64,
    burst_reset: u64,
    state: State,
}

fn bytes(q: &[Packet]) -> u64 {
    q.iter().map(|p| u64::from(p.len)).sum()
}

impl DocsisPie {
    fn calculate_drop_prob(&mut self, q: &[Packet]) {
        let qdelay = bytes(q) as f64 / 1e6;
        if self.burst_allowance > 0 {
            self.drop_prob = 0.0;
            self.burst_allowance = self.burst_allowance.saturating_sub(self.interval);
        } else {
            let mut p = self.a * (qdelay - self.target) + self.b * (qdelay - self.qdelay_old);
            if self.drop_prob < 0.000001 {
                p /= 2048.0;
            } else if self.drop_prob < 0.00001 {
                p /= 512.0;
            } else if self.drop_prob < 0.0001 {
                p /= 128.0;
            } else if self.drop_prob < 0.001 {
                p /= 32.0;
            } else if self.drop_prob < 0.01 {
                p /= 8.0;
            } else if self.drop_prob < 0.1 {
                p /= 2.0;
            } else if self.drop_prob < 1.0 {
                p /= 0.5;
            } else if self.drop_prob < 10.0 {
                p /= 0.125;
            } else {
                p /= 0.03125;
            }
            if self.drop_prob >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            self.drop_prob += p;
            if qdelay < 0.005 && self.qdelay_old < 0.005 {
                self.drop_prob *= 0.98;
            } else if qdelay > 0.2 {
                self.drop_prob += 0.02;
            }
            self.drop_prob = f64::max(0.0, self.drop_prob);
            self.drop_prob = f64::min(self.drop_prob, 0.85 * 1024.0 / 64.0);
        }
        let quiet = qdelay < 0.5 * self.target
            && self.qdelay_old < 0.5 * self.target
            && self.drop_prob == 0.0
            && self.burst_allowance == 0;
        if self.state == State::Active && quiet {
            self.state = State::Quiescent;
            self.burst_reset = 0;
        } else if self.state == State::Quiescent {
            if quiet {
                self.burst_reset += self.interval;
                if self.burst_reset > self.burst_reset_timeout {
                    self.burst_reset = 0;
                    self.state = State::Inactive;
                }
            } else {
                self.burst_reset = 0;
            }
        }
        self.qdelay_old = qdelay;
    }

    fn drop_early(&mut self, pkt: &Packet, q: &[Packet], rng: &mut Rng) -> bool {
        if self.burst_allowance > 0 {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        if self.state == State::Inactive {
            let (queued, buffer) = match self.room {
                Room::Packets(n) => (q.len() as u64, n),
                Room::Bytes(n) => (bytes(q), n),
            };
            if queued * 3 < buffer {
                return false;
            }
            self.state = State::Quiescent;
        }
        let p1 = f64::min(self.drop_prob * f64::from(pkt.len) / 1024.0, 0.85);
        self.accu_prob += p1;
        if (self.qdelay_old < 0.5 * self.target && self.drop_prob < 0.2) || bytes(q) <= 2 * 1024 {
            return false;
        }
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob < 8.5 && rng.uniform() >= p1 {
            return false;
        }
        self.accu_prob = 0.0;
        if self.state == State::Quiescent {
            self.state = State::Active;
            self.burst_allowance = self.max_burst;
        }
        true
    }
}

impl Model for DocsisPie {
    fn clock(&mut self, now: u64, q: &[Packet]) {
        while (self.updates + 1) * self.interval <= now {
            self.updates += 1;
            self.calculate_drop_prob(q);
        }
    }

    fn arrive(&mut self, _: u64, p: &Packet, q: &[Packet], fits: bool, rng: &mut Rng) -> Verdict {
        // A packet longer than the buffer is dropped without a word to the algorithm.
        if fits && self.drop_early(p, q, rng) { Verdict::Drop } else { Verdict::Admit }
    }

    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        self.accu_prob = 0.0;
        q.len()
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        let active = match self.state {
            State::Inactive => 0.0,
            State::Quiescent => 0.5,
            State::Active => 1.0,
        };
        vec![self.drop_prob, self.qdelay_old, self.burst_allowance as f64 / 1e9, active]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn docsis_pie_is_its_model(
        target in prop::sample::select(vec![0u64, 1_000_000, 10_000_000]),
        interval in prop::sample::select(vec![1_000_000u64, 3_000_000, 16_000_000]),
        (a, b) in prop::sample::select(vec![(0.25, 2.5), (50.0, 50.0), (2000.0, 0.0)]),
        max_burst in prop::sample::select(vec![0u64, 2_000_000, 142_000_000]),
        reset in prop::sample::select(vec![0u64, 20_000_000, 1_000_000_000]),
        room in room(), ops in traffic(),
    ) {
        let settings = [
            ("target", format!("{target}ns")),
            ("t_update", format!("{interval}ns")),
            ("alpha", a.to_string()),
            ("beta", b.to_string()),
            ("max_burst", format!("{max_burst}ns")),
            ("burst_reset", format!("{reset}ns")),
        ];
        let model = DocsisPie {
            target: target as f64 / 1e9, interval, a, b, max_burst, burst_reset_timeout: reset,
            room, updates: 0, drop_prob: 0.0, accu_prob: 0.0, qdelay_old: 0.0,
            burst_allowance: 0, burst_reset: 0, state: State::Inactive,
        };
        compare("docsis-pie", &settings, room, &ops, model)?;
    }
}
