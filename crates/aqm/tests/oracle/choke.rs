use super::red::{Red, RedSettings, red, red_settings};
use super::*;

/// PPP00 §2 with RED as it is modelled beside.
struct Choke {
    red: Red,
    /// How many packets are drawn, by the average.
    candidates: fn(&Choke, f64) -> usize,
    n: usize,
}

fn plain(_: &Choke, _: f64) -> usize {
    1
}

fn many(choke: &Choke, _: f64) -> usize {
    choke.n
}

fn adaptive(choke: &Choke, avg: f64) -> usize {
    let (min_th, max_th) = (choke.red.c.min_th as f64, choke.red.c.max_th as f64);
    let mut i = 1;
    while i < choke.n && avg >= min_th + (max_th - min_th) * i as f64 / choke.n as f64 {
        i += 1;
    }
    2 * i
}

impl Model for Choke {
    fn arrive(&mut self, now: u64, pkt: &Packet, q: &[Packet], _: bool, rng: &mut Rng) -> Verdict {
        self.red.update_average(now, q);
        if !self.red.below(self.red.avg, self.red.c.min_th as f64) && !q.is_empty() {
            let m = (self.candidates)(self, self.red.avg);
            let mut drawn: Vec<usize> = (0..m).map(|_| rng.below(q.len())).collect();
            drawn.retain(|&i| q[i].flow == pkt.flow);
            if !drawn.is_empty() {
                return Verdict::DropWith(drawn);
            }
        }
        self.red.decide(pkt, q, rng)
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
        let avg = self.red.aged(now);
        let below = self.red.below(avg, self.red.c.min_th as f64);
        let m = if below { 0 } else { (self.candidates)(self, avg) };
        let mut signals = self.red.signals(now);
        signals.push(m as f64);
        signals
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn choke_is_its_model(c in red(), exceed in any::<bool>(), room in room(), ops in traffic()) {
        // The library's thresholds are then the next numbers: a gentle slope ends at 1 less 2⁻⁵².
        let c = RedSettings { gentle: c.gentle && !exceed, ..c };
        let mut settings = red_settings(&c);
        settings.push(("ns2_rules", c.ns2.to_string()));
        settings.push(("exceed", exceed.to_string()));
        let c = RedSettings { exceed, ..c };
        let model = Choke { red: Red::new(c), candidates: plain, n: 1 };
        compare("choke", &settings, room, &ops, model)?;
    }

    #[test]
    fn m_choke_is_its_model(c in red(), n in 1..9usize, room in room(), ops in traffic()) {
        let c = RedSettings { ns2: false, ..c };
        let mut settings = red_settings(&c);
        settings.push(("candidates", n.to_string()));
        let model = Choke { red: Red::new(c), candidates: many, n };
        compare("m-choke", &settings, room, &ops, model)?;
    }

    #[test]
    fn a_choke_is_its_model(c in red(), n in 1..6usize, room in room(), ops in traffic()) {
        let c = RedSettings { ns2: false, ..c };
        let mut settings = red_settings(&c);
        settings.push(("regions", n.to_string()));
        let model = Choke { red: Red::new(c), candidates: adaptive, n };
        compare("a-choke", &settings, room, &ops, model)?;
    }
}
