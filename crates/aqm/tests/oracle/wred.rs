use super::red::{Red, RedSettings, red, red_settings};
use super::*;

/// A RED for each class, which share one average, or have one each of the packets of no lower class.
struct Wred {
    avg: Red,
    classes: Vec<Red>,
    by_precedence: bool,
    coupled: bool,
    /// That of the packet that arrived last.
    last: usize,
}

impl Wred {
    fn class(&self, packet: &Packet) -> usize {
        let dscp = packet.flow >> 58;
        if self.by_precedence {
            return (dscp / 8) as usize;
        }
        let assured = (1..5).contains(&(dscp / 8));
        match dscp % 8 {
            6 if assured => 0,
            4 if assured => 1,
            _ => 2,
        }
    }
}

impl Model for Wred {
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        self.avg.update_average(now, q);
        let class = self.class(pkt);
        self.last = class;
        if self.coupled {
            for k in 0..self.classes.len() {
                let counted: Vec<Packet> =
                    q.iter().filter(|other| self.class(other) >= k).cloned().collect();
                let red = &mut self.classes[k];
                if k <= class {
                    red.update_average(now, &counted);
                } else if red.idle_since.is_some() {
                    red.avg = red.aged(now);
                    red.idle_since = Some(now);
                }
            }
        } else {
            self.classes[class].avg = self.avg.avg;
        }
        self.classes[class].decide(pkt, q, rng)
    }
    fn victim(&mut self, q: &[Packet], rng: &mut Rng) -> usize {
        self.classes[self.last].victim(q, rng)
    }
    fn admitted(&mut self) {
        self.avg.admitted();
        self.classes.iter_mut().for_each(Red::admitted);
    }
    fn idle(&mut self, now: u64, rng: &mut Rng) {
        self.avg.idle(now, rng);
        self.classes.iter_mut().for_each(|class| class.idle(now, rng));
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        let avg = self.avg.aged(now);
        let last = self.classes.last().unwrap();
        let of_last = if self.coupled { last.aged(now) } else { avg };
        vec![avg, self.classes[0].p_b(avg), last.p_b(of_last)]
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn wred_is_its_model(
        c in red(), (min_above, max_above) in (0..4u64, 4..8u64), max_p_high in 0.0..=1.0f64,
        [by_precedence, coupled] in any::<[bool; 2]>(), room in room(), ops in traffic(),
    ) {
        let classes = if by_precedence { 8 } else { 3 };
        let step = (classes - 1) * if c.bytes { 100 } else { 1 };
        let c = RedSettings {
            // So that thresholds between are whole.
            max_th: c.max_th * (classes - 1), min_th: c.min_th * (classes - 1), ..c
        };
        let high = (c.min_th + min_above * step, c.max_th + max_above * step);
        let mut settings = red_settings(&c);
        settings.extend([
            ("ns2_rules", c.ns2.to_string()),
            ("classes", if by_precedence { "precedence" } else { "drop-precedence" }.into()),
            ("average", if coupled { "coupled" } else { "all" }.into()),
            ("min_th_high", amount(high.0, c.bytes)),
            ("max_th_high", amount(high.1, c.bytes)),
            ("max_p_high", max_p_high.to_string()),
        ]);
        prop_assume!(high.0 < high.1);
        let of = |class: u64| {
            let part = |low: u64, high: u64| low + (high - low) / (classes - 1) * class;
            let share = class as f64 / (classes - 1) as f64;
            Red::new(RedSettings {
                min_th: part(c.min_th, high.0),
                max_th: part(c.max_th, high.1),
                max_p: c.max_p + share * (max_p_high - c.max_p),
                ..c.clone()
            })
        };
        let all = (0..classes).map(of).collect();
        let model = Wred { avg: of(0), classes: all, by_precedence, coupled, last: 0 };
        let ops = labelled(ops, &[0, 8, 12, 14, 20, 22, 34, 46, 56, 27]);
        compare("wred", &settings, room, &ops, model)?;
    }
}
