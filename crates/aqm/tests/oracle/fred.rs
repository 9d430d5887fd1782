use super::*;

#[derive(Clone, Debug)]
struct FredSettings {
    min_q: u64,
    min_th: u64,
    max_th: u64,
    max_p: f64,
    w_q: f64,
    many_flow: bool,
    ecn: bool,
}

/// LM97, one variable of its pseudo-code after the other. Queues of flows are counted anew.
struct Fred {
    c: FredSettings,
    avg: f64,
    avgcq: f64,
    count: f64,
    strikes: std::collections::BTreeMap<u64, u64>,
    idle_since: Option<u64>,
    /// Flows with packets queued.
    active: usize,
    /// When the packet arrived, the queue that it found, and how many flows there are with it.
    arriving: (u64, usize, usize),
}

impl Fred {
    fn aged(&self, now: u64) -> f64 {
        match self.idle_since {
            Some(q_time) => (1.0 - self.c.w_q).powf((now - q_time) as f64 / PACKET_NS) * self.avg,
            None => self.avg,
        }
    }

    fn average(&mut self, now: u64, q: usize) {
        if self.idle_since.is_some() {
            self.avg = self.aged(now);
            self.idle_since = Some(now);
        } else {
            self.avg = (1.0 - self.c.w_q) * self.avg + self.c.w_q * q as f64;
        }
        self.avgcq = if self.active > 0 { self.avg / self.active as f64 } else { self.avg };
        if self.avgcq < 1.0 {
            self.avgcq = 1.0;
        }
    }

    fn maxq(&self, avg: f64) -> f64 {
        if self.c.many_flow && avg >= self.c.max_th as f64 { 2.0 } else { self.c.min_th as f64 }
    }
}

impl Model for Fred {
    fn start(&mut self, rng: &mut Rng) {
        // The secret of the hash.
        rng.bits();
        rng.bits();
    }

    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        let (min_th, max_th) = (self.c.min_th as f64, self.c.max_th as f64);
        let qlen = q.iter().filter(|p| p.flow == pkt.flow).count() as f64;
        self.arriving = (now, q.len(), self.active + usize::from(qlen == 0.0));
        let strikes = self.strikes.get(&pkt.flow).copied().unwrap_or(0);
        if self.idle_since.is_some() {
            self.average(now, 0);
        }
        if qlen >= self.maxq(self.avg)
            || self.avg >= max_th && qlen > 2.0 * self.avgcq
            || qlen >= self.avgcq && strikes > 1
        {
            self.strikes.insert(pkt.flow, strikes + 1);
            return Verdict::Penalise;
        }
        if min_th <= self.avg && self.avg < max_th {
            self.count += 1.0;
            if qlen >= f64::max(self.c.min_q as f64, self.avgcq) {
                let p_b = self.c.max_p * (self.avg - min_th) / (max_th - min_th);
                let spaced = 1.0 - self.count * p_b;
                let p_a = if spaced > 0.0 { p_b / spaced } else { 1.0 };
                if rng.uniform() < p_a {
                    self.count = 0.0;
                    return if self.c.ecn { Verdict::Signal } else { Verdict::Drop };
                }
            }
        } else if self.avg < min_th {
            self.count = -1.0;
        } else {
            self.count = 0.0;
            if !self.c.many_flow {
                return Verdict::Drop;
            }
        }
        Verdict::Admit
    }

    fn admitted(&mut self) {
        let (now, q, active) = self.arriving;
        self.active = active;
        self.average(now, q);
        self.idle_since = None;
    }

    fn send(
        &mut self,
        now: u64,
        q: &mut Vec<Packet>,
        _: &mut Vec<Event>,
        _: &mut Rng,
    ) -> Option<Packet> {
        let packet = (!q.is_empty()).then(|| q.remove(0))?;
        self.average(now, q.len());
        if q.iter().all(|p| p.flow != packet.flow) {
            self.active -= 1;
            self.strikes.remove(&packet.flow);
        }
        Some(packet)
    }

    fn idle(&mut self, now: u64, _: &mut Rng) {
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
    }

    fn signals(&self, now: u64) -> Vec<f64> {
        let avg = self.aged(now);
        let avgcq = if self.idle_since.is_some() { avg.max(1.0) } else { self.avgcq };
        vec![avg, avgcq, self.maxq(avg), self.active as f64]
    }
}

prop_compose! {
    fn fred()(
        (min_q, min_th, room) in (0..4u64, 1..5u64, 1..6u64),
        max_p in 0.0..=1.0f64,
        w_q in prop::sample::select(vec![0.002, 0.1, 0.5, 1.0]),
        (many_flow, ecn) in (any::<bool>(), any::<bool>()),
    ) -> FredSettings {
        FredSettings { min_q, min_th, max_th: min_th + room, max_p, w_q, many_flow, ecn }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fred_is_its_model(c in fred(), room in room(), ops in traffic()) {
        let settings = [
            ("min_q", c.min_q.to_string()),
            ("min_th", amount(c.min_th, false)),
            ("max_th", amount(c.max_th, false)),
            ("max_p", c.max_p.to_string()),
            ("w_q", c.w_q.to_string()),
            ("many_flow", c.many_flow.to_string()),
            ("ecn", c.ecn.to_string()),
        ];
        let model = Fred {
            c,
            avg: 0.0,
            avgcq: 1.0,
            count: -1.0,
            strikes: std::collections::BTreeMap::new(),
            idle_since: Some(0),
            active: 0,
            arriving: (0, 0, 0),
        };
        compare("fred", &settings, room, &ops, model)?;
    }
}
