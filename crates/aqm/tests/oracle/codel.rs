use super::*;

#[derive(Clone, Debug)]
pub(super) struct CodelSettings {
    target: u64,
    interval: u64,
    mtu: u64,
    ecn: bool,
    ce_threshold: Option<u64>,
    /// Value and mask.
    selector: Option<(u8, u8)>,
    overflow_counts: bool,
    grace: u64,
    drops_at_once: Option<u64>,
}

impl CodelSettings {
    pub(super) fn list(&self) -> Vec<(&'static str, String)> {
        vec![
            ("target", format!("{}ns", self.target)),
            ("interval", format!("{}ns", self.interval)),
            ("mtu", self.mtu.to_string()),
            ("ecn", self.ecn.to_string()),
            ("overflow_counts", self.overflow_counts.to_string()),
            ("grace", format!("{}ns", self.grace)),
            ("ce_threshold_selector", self.selected()),
            ("drops_at_once", self.drops_at_once.map_or("none".into(), |n| n.to_string())),
            ("ce_threshold", self.ce_threshold.map_or("none".into(), |t| format!("{t}ns"))),
        ]
    }

    fn selected(&self) -> String {
        let selector = self.selector.filter(|_| self.ce_threshold.is_some());
        selector.map_or("none".into(), |(value, mask)| format!("{value}/{mask}"))
    }
}

/// DSCP and ECN of a packet that is ECN-capable.
fn ds_field(p: &Packet) -> u8 {
    (p.flow >> 58) as u8 * 4 + if p.l4s { 1 } else { 2 }
}

/// RFC 8289 §5, with its inner loop.
pub(super) struct Codel {
    c: CodelSettings,
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
    sojourn: u64,
    /// Bytes in other queues, where these count.
    others: u64,
    /// An empty queue stays above target.
    stale: bool,
}

impl Codel {
    pub(super) fn new(c: CodelSettings) -> Self {
        Self {
            c,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            sojourn: 0,
            others: 0,
            stale: false,
        }
    }

    fn control_law(&self, t: u64) -> u64 {
        t + (self.c.interval as f64 / (self.count as f64).sqrt()).floor() as u64
    }

    /// The next packet, and whether it may be dropped.
    fn dodequeue(&mut self, now: u64, q: &mut Vec<Packet>) -> (Option<Packet>, bool) {
        if q.is_empty() {
            self.first_above_time = 0;
            return (None, false);
        }
        let p = q.remove(0);
        self.sojourn = now - p.arrived;
        let bytes = self.others + q.iter().map(|p| u64::from(p.len)).sum::<u64>();
        let mut ok_to_drop = false;
        if self.sojourn < self.c.target || bytes <= self.c.mtu {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.c.interval + self.c.grace;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    fn mark(p: &mut Packet, events: &mut Vec<Event>) {
        p.marked = true;
        events.push(Event::Marked(p.id));
    }
}

impl Model for Codel {
    fn victim(&mut self, q: &[Packet], _: &mut Rng) -> usize {
        self.gave_way();
        q.len()
    }

    fn gave_way(&mut self) {
        self.count += u64::from(self.c.overflow_counts);
    }

    fn others(&mut self, bytes: u64, stale: bool) {
        (self.others, self.stale) = (bytes, stale);
    }

    fn send(
        &mut self,
        now: u64,
        q: &mut Vec<Packet>,
        events: &mut Vec<Event>,
        _: &mut Rng,
    ) -> Option<Packet> {
        let ecn = self.c.ecn;
        let marks = |p: Option<Packet>| ecn && p.is_some_and(|p| p.ect);
        let dropped = |p: Option<Packet>| Event::Dropped(p.unwrap().id, Cause::Early);
        if q.is_empty() {
            if self.others == 0 || !self.stale {
                self.first_above_time = 0;
            }
            self.dropping = false;
            return None;
        }
        let (mut p, mut ok_to_drop) = self.dodequeue(now, q);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            let mut drops = 0;
            while self.dropping && now >= self.drop_next {
                drops += 1;
                if self.c.drops_at_once.is_some_and(|most| drops > most) {
                    self.drop_next = self.control_law(now);
                    break;
                }
                self.count += 1;
                if marks(p) {
                    Self::mark(p.as_mut().unwrap(), events);
                    self.drop_next = self.control_law(self.drop_next);
                    return p;
                }
                events.push(dropped(p));
                (p, ok_to_drop) = self.dodequeue(now, q);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let marked = marks(p);
            if marked {
                Self::mark(p.as_mut().unwrap(), events);
            } else {
                events.push(dropped(p));
                (p, _) = self.dodequeue(now, q);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            // Times before and after drop_next count as near alike.
            if delta > 1 && (now as i128 - self.drop_next as i128) < 16 * self.c.interval as i128 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.lastcount = self.count;
            if marked {
                return p;
            }
        }
        if let Some(p) = &mut p
            && p.ect
            && self.c.selector.is_none_or(|(value, mask)| ds_field(p) & mask == value)
            && self.c.ce_threshold.is_some_and(|t| self.sojourn > t)
        {
            Self::mark(p, events);
        }
        p
    }

    fn signals(&self, _: u64) -> Vec<f64> {
        // The listing leaves the state at the next question if the packet behind its first drop did
        // not wait too long; the library at once.
        let dropping = self.dropping && self.first_above_time != 0;
        vec![self.sojourn as f64 / 1e9, self.count as f64, f64::from(u8::from(dropping))]
    }

    fn more(&self) -> Vec<f64> {
        let drop_next = if self.signals(0)[2] == 1.0 { self.drop_next } else { 0 };
        vec![self.first_above_time as f64 / 1e9, drop_next as f64 / 1e9, self.lastcount as f64]
    }
}

prop_compose! {
    pub(super) fn codel()(
        target in prop::sample::select(vec![0, 1_000_000, 2_000_000, 5_000_000, 20_000_000]),
        interval in prop::sample::select(vec![1_000, 1_000_000, 3_000_000, 10_000_000]),
        mtu in prop::sample::select(vec![0, 500, 1500, 3000]),
        ecn in prop::bool::weighted(0.7),
        ce_threshold in prop::option::weighted(0.3, 0..10_000_000u64),
        overflow_counts in any::<bool>(),
        selector in prop::option::of(prop::sample::select(vec![(1, 3), (2, 2), (0xb8, 0xfc), (0, 0xfd)])),
        grace in prop::sample::select(vec![0, 1, 1_000_000]),
        drops_at_once in prop::option::of(1..4u64),
    ) -> CodelSettings {
        CodelSettings {
            target, interval, mtu, ecn, ce_threshold, selector, overflow_counts, grace, drops_at_once,
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn codel_is_its_model(c in codel(), room in room(), ops in traffic()) {
        compare("codel", &c.list(), room, &labelled(ops, &[0, 46]), Codel::new(c))?;
    }
}
