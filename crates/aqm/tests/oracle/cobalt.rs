use super::*;

/// CAKE's queue management as its paper describes it, one flow.
pub(super) struct Cobalt {
    target: u64,
    interval: u64,
    ecn: bool,
    /// The time of four packets.
    pub(super) four: u64,
    increment: f64,
    decrement: f64,
    count: u64,
    drop_next: i128,
    dropping: bool,
    p_drop: f64,
    blue_timer: u64,
    sojourn: u64,
    now: u64,
}

impl Cobalt {
    pub(super) fn new(target: u64, interval: u64, ecn: bool, four: u64, steps: [f64; 2]) -> Self {
        let [increment, decrement] = steps;
        Self {
            target,
            interval,
            ecn,
            four,
            increment,
            decrement,
            count: 0,
            drop_next: 0,
            dropping: false,
            p_drop: 0.0,
            blue_timer: 0,
            sojourn: 0,
            now: 0,
        }
    }

    /// Nothing of it matters any more.
    pub(super) fn at_rest(&self, now: u64) -> bool {
        self.p_drop == 0.0 && self.count == 0 && self.drop_next <= i128::from(now)
    }

    fn control(&self, t: i128) -> i128 {
        let n = if self.count == 0 { 1 } else { self.count };
        t + i128::from((self.interval as f64 / (n as f64).sqrt()) as u64)
    }

    fn next_due(&self, now: u64) -> bool {
        self.count > 0 && i128::from(now) - self.drop_next >= 0
    }

    pub(super) fn queue_full(&mut self, now: u64) {
        if now - self.blue_timer > self.target {
            self.p_drop = f64::min(self.p_drop + self.increment, 1.0);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = i128::from(now);
        if self.count == 0 {
            self.count = 1;
        }
    }

    fn queue_empty(&mut self, now: u64) {
        if self.p_drop > 0.0 && now - self.blue_timer > self.target {
            self.p_drop = f64::max(self.p_drop - self.decrement, 0.0);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.next_due(now) {
            self.count -= 1;
            self.drop_next = self.control(self.drop_next);
        }
    }

    /// Whether the packet is to be dropped; it may be marked.
    pub(super) fn should_drop(&mut self, now: u64, packet: &mut Packet, rng: &mut Rng) -> bool {
        self.sojourn = now - packet.arrived;
        let next_due = self.next_due(now);
        let over_target = self.sojourn > self.target && self.sojourn > self.four;
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control(i128::from(now));
            }
            if self.count == 0 {
                self.count = 1;
            }
        } else if self.dropping {
            self.dropping = false;
        }
        let mut drop = false;
        if next_due && self.dropping {
            if self.ecn && packet.ect {
                packet.marked = true;
            } else {
                drop = true;
            }
            self.count += 1;
            self.drop_next = self.control(self.drop_next);
        } else {
            let mut next_due = next_due;
            while next_due {
                self.count -= 1;
                self.drop_next = self.control(self.drop_next);
                next_due = self.next_due(now);
            }
        }
        if self.p_drop > 0.0 {
            drop |= rng.uniform() < self.p_drop;
        }
        if self.count == 0 {
            self.drop_next = i128::from(now + self.interval);
        } else if i128::from(now) > self.drop_next && !drop {
            self.drop_next = i128::from(now);
        }
        drop
    }
}

impl Model for Cobalt {
    fn arrive(&mut self, now: u64, _: &Packet, _: &[Packet], _: bool, _: &mut Rng) -> Verdict {
        self.now = now;
        Verdict::Admit
    }

    fn victim(&mut self, _: &[Packet], _: &mut Rng) -> usize {
        self.queue_full(self.now);
        0
    }

    fn send(
        &mut self,
        now: u64,
        q: &mut Vec<Packet>,
        events: &mut Vec<Event>,
        rng: &mut Rng,
    ) -> Option<Packet> {
        while !q.is_empty() {
            let mut packet = q.remove(0);
            let already = packet.marked;
            let drop = self.should_drop(now, &mut packet, rng);
            if drop && !q.is_empty() {
                events.push(Event::Dropped(packet.id, Cause::Early));
                continue;
            }
            if packet.marked && !already {
                events.push(Event::Marked(packet.id));
            }
            return Some(packet);
        }
        None
    }

    fn idle(&mut self, now: u64, _: &mut Rng) {
        self.queue_empty(now);
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        let dropping = f64::from(u8::from(self.dropping));
        vec![self.sojourn as f64 / 1e9, self.count as f64, dropping, self.p_drop]
    }

    fn more(&self) -> Vec<f64> {
        vec![self.drop_next as f64 / 1e9]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn cobalt_is_its_model(
        target in prop::sample::select(vec![0u64, 1_000_000, 5_000_000]),
        interval in prop::sample::select(vec![1_000u64, 2_000_000, 100_000_000]),
        ecn in prop::bool::weighted(0.7), mtu in prop::sample::select(vec![0u64, 300, 1514]),
        increment in prop::sample::select(vec![0.0, 1.0 / 256.0, 0.4]),
        decrement in prop::sample::select(vec![0.0, 1.0 / 4096.0, 0.1]),
        room in room(), ops in traffic(),
    ) {
        let settings = [
            ("target", format!("{target}ns")),
            ("interval", format!("{interval}ns")),
            ("ecn", ecn.to_string()),
            ("mtu", mtu.to_string()),
            ("increment", increment.to_string()),
            ("decrement", decrement.to_string()),
        ];
        // 8 Mbit/s: a microsecond a byte.
        let model = Cobalt::new(target, interval, ecn, 4 * mtu * 1000, [increment, decrement]);
        compare("cobalt", &settings, room, &ops, model)?;
    }
}
