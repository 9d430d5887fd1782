//! RED: random early detection (Floyd and Jacobson 1993, "FJ93"; Feng02 §III.B with Fig. 7).
//!
//! A moving average of the queue length decides how often arriving packets are signalled: never
//! below `min_th`, always from `max_th` on, and in between with a probability that grows linearly.
//! FJ93 Fig. 2, in our words:
//!
//! ```text
//! avg := 0; count := −1
//! a packet arrives:
//!     the queue q is not empty, or the link busy:  avg := (1 − w_q)·avg + w_q·q
//!     the link was idle, m packets could have gone:  avg := (1 − w_q)^m · avg
//!     avg < min_th:  count := −1
//!     avg < max_th:  count += 1;  p_b := max_p·(avg − min_th)/(max_th − min_th)
//!                    p_a := p_b/(1 − count·p_b);  with probability p_a: signal, count := 0
//!     otherwise:     signal, count := 0
//! ```
//!
//! The growing p_a spaces signals evenly. FJ93 §7 wants the gap uniform on 1 … 1/p_b, with `count`
//! the *unsignalled* packets since the last signal. Fig. 2 increments before it decides, so that
//! the packet behind a signal already has count = 1, and the gap is uniform on 1 … 1/p_b − 1: at
//! p_b ≥ ½ every packet is signalled. ns-2, in which the papers ran it, codes Fig. 2: the default;
//! `spacing = uniform-exact` is §7.
//!
//! Other points:
//! - m is the idle time over the transmission time of a mean packet, not rounded; with `ns2_rules` it
//!   is rounded down, and the arriving packet is a sample of its own behind it. Idle time runs from
//!   when the transmitter finds the queue empty until a packet is admitted.
//! - `avg` includes packets that find the buffer full. Those take part like all others.
//! - In byte mode p_b is multiplied by len / mean_packet (FJ93 §4 divides by the largest packet), and
//!   `count` still counts packets. So a long packet behind a signal meets both its length and the count,
//!   and gets more than its share. `lengths` has the readings of ns-2 and Linux.
//! - `gentle` (Floyd00): from max_th to 2·max_th, p_b goes on from max_p to 1.
//! - From max_th on, ECN-capable packets are marked (Feng02) or dropped (`above_max`).

mod family;

pub use super::average::Ageing;
pub use super::spacing::Spacing;

use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family, Signal, Unmarked};
use crate::packet::Meta;
use crate::param::{ConfigError, Mode, choice, params};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::Size;
pub(super) use family::{RedCore, RedParams, as_red, linear};

/// RED's average, which others report as well.
pub(crate) const AVG: Signal = Signal {
    name: "avg",
    unit: "packets or bytes",
    doc: "average queue length, in the measure of mode",
};
/// What RED and those that build on it report.
pub(crate) const SIGNALS: &[Signal] = &[
    AVG,
    Signal { name: "p_b", unit: "0 … 1", doc: "probability by the average" },
    Signal { name: "p_a", unit: "0 … 1", doc: "probability with spacing, next packet" },
    Signal { name: "max_p", unit: "0 … 1", doc: "p_b at max_th" },
];

/// The parameters of RED that may change while it runs.
pub(crate) const LIVE: &[&str] = &["min_th", "max_th", "max_p", "w_q", "gentle"];

/// What red tells of itself.
pub const ABOUT: About = About {
    name: "red",
    family: Family::One,
    summary: "Signals with a probability that grows with the average queue length.",
    source: "FJ93; Feng02 §III.B",
    rule: "RED's probability follows the average queue: p_b = max_p · (avg − min_th)/(max_th − \
        min_th), spaced to p_a = p_b/(1 − count · p_b); from max_th on, or with gentle from twice \
        max_th on, it signals every packet (FJ93 Fig. 2)",
    unmarked: Unmarked {
        coin: "",
        rule: "with above_max = drop a packet is dropped wherever every packet is signalled",
    },
    signals: SIGNALS,
    presets: &[
        ("feng", &[("min_th", "20%"), ("max_th", "80%"), ("max_p", "1"), ("gentle", "false")]),
        (
            "linux",
            &[
                ("mode", "bytes"),
                ("lengths", "average"),
                ("min_th", "10%"),
                ("max_th", "30%"),
                ("gentle", "false"),
                ("w_q", "0.0625"),
                ("idle", "halvings"),
                ("spacing", "ahead"),
            ],
        ),
    ],
    live: LIVE,
    ..About::NEW
};

params! {
    /// Parameters of RED. The defaults are its authors' constants (FJ93, Floyd97, Floyd00), the
    /// thresholds as shares of the buffer: at twice max_th, where everything is signalled, a tenth of it
    /// is left for bursts (ours). Feng02's are the preset `feng`.
    pub struct RedConfig {
        /// Average below which nothing is signalled.
        min_th: Size = Size::OfBuffer(0.15), "ours";
        /// Average from which on every packet is signalled; with `gentle`, from twice this on. Equal to
        /// `min_th`, with `gentle = false` and `w_q = 1`, it is the step that DCTCP wants.
        max_th: Size = Size::OfBuffer(0.45), "Floyd97: three times min_th";
        /// Signalling probability as the average reaches max_th.
        max_p: f64 = 0.1, in 0.0..=1.0, "Floyd97";
        /// Weight of the present queue length in the average.
        w_q: f64 = 0.002, in 0.0..=1.0, "FJ93 §6; Feng02 Table I (R2)";
        /// Above max_th the probability goes on from max_p to 1 at twice max_th.
        gentle: bool = true, "Floyd00";
        /// Whether the average counts packets or bytes.
        mode: Mode = Mode::Packets, "FJ93 §4";
        /// In byte mode: how a packet's length changes its probability.
        lengths: Lengths = Lengths::Chance, "FJ93 §4; ns-2.35 red.cc; Linux", with mode = "bytes";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "Feng02 §III.B";
        /// What happens to ECN-capable packets where every packet is signalled.
        above_max: AboveMax = AboveMax::Mark, "Feng02 §III.B; drop: RFC 3168 §7", with ecn = "true";
        /// How the average ages while the link is idle: by the packets that could have gone, or in halvings
        /// as with Linux and its tc.
        idle: Ageing = Ageing::Power, "FJ93 §4; Linux and tc";
        /// How signals are spaced.
        spacing: Spacing = Spacing::Uniform, "FJ93 Fig. 2, §7";
        /// As ns-2: no signal while fewer than two packets wait, nor for the first packet after the
        /// average crosses min_th; an overflow restarts the spacing; idle time counts in whole
        /// packets, and the packet that ends it is averaged in.
        ns2_rules: bool = false, "ns-2.35 red.cc";
    }
}

impl RedConfig {
    /// The preset `feng`: Feng02 §III.B, configuration R2.
    pub(crate) fn feng() -> Self {
        Self {
            min_th: Size::OfBuffer(0.2),
            max_th: Size::OfBuffer(0.8),
            max_p: 1.0,
            gentle: false,
            ..Self::default()
        }
    }
}

choice! {
    /// What happens to ECN-capable packets where every packet is signalled.
    pub enum AboveMax {
        /// They are marked.
        Mark = "mark",
        /// They are dropped.
        Drop = "drop",
    }
}

choice! {
    /// What the length of a packet does in byte mode, beside its share of the average.
    pub enum Lengths {
        /// p_b goes with it, while the spacing counts packets: FJ93 §4.
        Chance = "chance",
        /// p_a goes with it, and the spacing counts bytes: ns-2. With `uniform-exact`, signals are
        /// uniform over bytes.
        ChanceAndCount = "chance-and-count",
        /// Nothing more: Linux.
        Average = "average",
    }
}

/// The RED policy.
#[derive(Clone, Debug)]
pub struct Red(RedCore);

impl Policy for Red {
    type Config = RedConfig;
    type Tag = ();

    fn new(config: &RedConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self(RedCore::new(RedParams::new(config, env)?, config.max_p, env.now)))
    }

    fn retune(&mut self, with: Self, now: Instant) {
        self.0.retune(with.0, now);
    }

    #[inline(always)]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.0.average(q, cx.now);
        self.0.judge(pkt, q, cx)
    }

    as_red!(0);

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.0.observe(now, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::family::gentle;
    use super::*;
    use crate::context::{Backlog, Cause};
    use crate::packet::Ecn;
    use crate::policy::lab::{Fate, Lab, config, env, refused};
    use crate::time::Duration;
    use std::vec;
    use std::vec::Vec;

    type Story = Lab<Red>;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn p_b_is_linear_between_the_thresholds() {
        // (avg − 20)/(80 − 20): 50 is the middle, 35 a quarter.
        for (avg, max_p, p_b) in [(20.0, 1.0, 0.0), (35.0, 1.0, 0.25), (50.0, 0.1, 0.05)] {
            assert!(close(linear(avg, 20.0, 80.0, max_p), p_b));
        }
    }

    #[test]
    fn p_b_goes_on_from_max_p_to_1_in_gentle_mode() {
        // max_th 80: 80 → max_p, 160 → 1, 120 half-way between.
        for (avg, p_b) in [(80.0, 0.1), (120.0, 0.55), (160.0, 1.0)] {
            assert!(close(gentle(avg, 80.0, 0.1), p_b));
        }
    }

    /// FJ93 §6: at w_q = 0.001 a queue that grows from 0 to 100 packets brings the average to 4.88
    /// (eq. 2: 101 + (0.999¹⁰¹ − 1)/0.001 = 4.887); and w_q ≤ 0.0042 is what keeps a burst of 50 at
    /// an average of 5 (eq. 3; exactly: 51 + (0.9958⁵¹ − 1)/0.0042 = 5.006).
    #[test]
    fn the_average_of_a_burst_is_that_of_the_paper() {
        let burst = |w_q: &str, packets: usize| {
            let mut lab = Story::new(200, &[("w_q", w_q)]);
            // The n-th packet finds n − 1.
            (0..=packets).for_each(|_| assert_eq!(lab.arrive(), Fate::Queued));
            lab.signal("avg")
        };
        assert!((burst("0.001", 100) - 4.887).abs() < 0.001);
        assert!((burst("0.0042", 50) - 5.006).abs() < 0.001);
    }

    /// The gaps between marks at an average held at 20: with min_th = 10, max_th = 110 and
    /// max_p = 1, p_b is 0.1.
    fn gaps(spacing: &str, n: usize) -> Vec<u32> {
        let mut lab = Story::new(
            200,
            &[
                ("w_q", "1"),
                ("min_th", "10p"),
                ("max_th", "110p"),
                ("max_p", "1"),
                ("spacing", spacing),
            ],
        );
        (0..20).for_each(|_| _ = lab.arrive());
        let (mut gaps, mut gap) = (Vec::new(), 0);
        while gaps.len() <= n {
            gap += 1;
            if lab.arrive() == Fate::Marked {
                gaps.push(gap);
                gap = 0;
            }
            lab.depart();
        }
        gaps.split_off(1)
    }

    /// χ² of counts that should be equal.
    fn chi_squared(gaps: &[u32], values: core::ops::RangeInclusive<u32>) -> f64 {
        let expected = gaps.len() as f64 / values.clone().count() as f64;
        values
            .map(|v| gaps.iter().filter(|&&g| g == v).count() as f64 - expected)
            .map(|d| d * d / expected)
            .sum()
    }

    /// Ten values have nine degrees of freedom: χ² > 27.9 in one of 1000 seeds. Band: 40.
    #[test]
    fn gaps_between_signals_are_distributed_as_their_spacing_says() {
        for (spacing, values) in [("uniform", 1..=9), ("uniform-exact", 1..=10), ("wait", 10..=19)]
        {
            let gaps = gaps(spacing, 10_000);
            assert!(gaps.iter().all(|g| values.contains(g)), "{spacing}: outside {values:?}");
            let x = chi_squared(&gaps, values);
            assert!(x < 40.0, "{spacing}: χ² {x}");
        }
        let gaps = gaps("geometric", 10_000);
        assert!(chi_squared(&gaps, 1..=10) > 1000.0, "these are far from uniform");
        let mean = f64::from(gaps.iter().sum::<u32>()) / 1e4;
        // σ of the mean of a geometric: √0.9/0.1/√10000 = 0.095.
        assert!((mean - 10.0).abs() < 0.5, "{mean}");
    }

    #[test]
    fn nothing_is_signalled_below_min_th_and_everything_from_max_th_on() {
        let settings = [("w_q", "1"), ("min_th", "3p"), ("max_th", "5p"), ("gentle", "false")];
        let mut lab = Story::new(10, &settings);
        let fates: Vec<Fate> = (0..9).map(|_| lab.arrive()).collect();
        // Packet n finds n: up to 3 that is p_b = 0, at 4 it is max_p/2, from 5 on 1.
        assert_eq!(fates[..4], [Fate::Queued; 4]);
        assert_eq!(fates[5..], [Fate::Marked; 4]);
    }

    #[test]
    fn above_max_th_marking_can_give_way_to_dropping() {
        for (settings, packet, fate) in [
            (&[][..], Ecn::Ect0, Fate::Marked),
            (&[], Ecn::NotEct, Fate::Dropped(Cause::Early)),
            (&[("above_max", "drop")], Ecn::Ect0, Fate::Dropped(Cause::Early)),
            (&[("ecn", "false")], Ecn::Ect0, Fate::Dropped(Cause::Early)),
        ] {
            let mut all = vec![("w_q", "1"), ("min_th", "0p"), ("max_th", "1p"), ("max_p", "0")];
            all.push(("gentle", "false"));
            all.extend(settings);
            let mut lab = Story::new(10, &all);
            assert_eq!(lab.arrive_as(1000, packet), Fate::Queued);
            assert_eq!(lab.arrive_as(1000, packet), fate, "{settings:?} {packet:?}");
        }
    }

    /// w_q = ½ at 1 ms a packet: an average of a queue that is gone halves each idle millisecond.
    #[test]
    fn the_average_ages_while_the_link_is_idle_and_only_then() {
        let mut lab = Story::new(100, &[("w_q", "0.5"), ("min_th", "50p"), ("max_th", "60p")]);
        (0..3).for_each(|_| _ = lab.arrive());
        // The averages: 0 (idle link), ½·0 + ½·1 = 0.5, ½·0.5 + ½·2 = 1.25.
        assert_eq!(lab.signal("avg"), 1.25);
        (0..3).for_each(|_| _ = lab.depart());
        lab.wait_ms(5);
        assert_eq!(lab.signal("avg"), 1.25, "the last packet is on the wire");
        lab.depart();
        lab.wait_ms(2);
        assert!(close(lab.signal("avg"), 1.25 / 4.0));
        lab.depart();
        lab.wait_ms(1);
        assert!(close(lab.signal("avg"), 1.25 / 8.0), "asking again does not restart the clock");
        lab.arrive();
        assert!(close(lab.signal("avg"), 1.25 / 8.0), "the arrival is no sample of its own (FJ93)");
        lab.wait_ms(50);
        assert!(close(lab.signal("avg"), 1.25 / 8.0), "a packet waits: the link is busy");
    }

    /// With ns-2's rules, an average of 1.25 and 2.9 ms of idleness: two packets could have gone, and the
    /// arriving one finds nothing: 1.25/2³.
    #[test]
    fn idle_time_counts_whole_packets_and_the_arriving_one_in_ns2() {
        let settings =
            [("ns2_rules", "true"), ("w_q", "0.5"), ("min_th", "50p"), ("max_th", "60p")];
        let mut lab = Story::new(100, &settings);
        (0..3).for_each(|_| _ = lab.arrive());
        (0..3).for_each(|_| _ = lab.depart());
        lab.wait_ms(5);
        lab.depart();
        lab.wait(Duration::from_micros(2900));
        assert!(close(lab.signal("avg"), 1.25 / 4.0), "{}", lab.signal("avg"));
        lab.arrive();
        assert!(close(lab.signal("avg"), 1.25 / 8.0), "{}", lab.signal("avg"));
    }

    /// Every packet is dropped: the link stays idle, and the average ages on to let one in.
    #[test]
    fn an_average_above_max_th_cannot_lock_the_queue() {
        let mut lab =
            Story::new(10, &[("w_q", "0.5"), ("min_th", "1p"), ("max_th", "2p"), ("ecn", "false")]);
        (0..10).for_each(|_| _ = lab.arrive());
        while lab.depart().is_some() {}
        lab.wait_ms(4);
        assert_eq!(lab.arrive(), Fate::Queued);
    }

    /// At an average of 20 kB p_b is 0.1 for 1000 bytes: 0.01 for 100, 0.5 for 5000, 1 for 20 000.
    /// Shares signalled of 20 000 packets of each length, in turn, at p_b = 0.1 for a mean packet.
    fn signalled(settings: &[(&str, &str)], lengths: &[u32]) -> Vec<f64> {
        let env = env(200);
        let bytes = [("mode", "bytes"), ("min_th", "10kB"), ("max_th", "110kB")];
        let c = config(&[&bytes, settings].concat());
        let mut core = RedCore::new(RedParams::new(&c, &env).unwrap(), 1.0, env.now);
        core.set_average(20_000.0);
        let backlog = Backlog { packets: 20, bytes: 20_000 };
        let q = View { backlog, limit: env.limit, ring: &[], head: 0 };
        let mut rng = Rng::new(3, 0);
        let mut signals = vec![0; lengths.len()];
        for i in 0..20_000 * lengths.len() {
            let meta = Meta { len: lengths[i % lengths.len()], ..Meta::default() };
            let mut cx = Cx { now: env.now, rng: &mut rng };
            let signal = core.judge(&meta, &q, &mut cx) != Arrival::Admit;
            signals[i % lengths.len()] += u32::from(signal);
        }
        signals.into_iter().map(|n| f64::from(n) / 20_000.0).collect()
    }

    #[test]
    fn in_byte_mode_large_packets_run_a_larger_risk() {
        // σ of the shares: √(p(1 − p)/20 000) = 0.0007, 0.0035, 0; the band is 6 σ.
        for (len, p, band) in [(100, 0.01, 0.005), (5000, 0.5, 0.022), (20_000, 1.0, 1e-9)] {
            let share = signalled(&[("spacing", "geometric")], &[len])[0];
            assert!((share - p).abs() < band, "{len}: {share}");
        }
    }

    /// A packet four times as long as the next one, both as often. FJ93 as written signals it nine
    /// times as often; by bytes it is four times, but for Fig. 2's counting of the packet itself.
    #[test]
    fn what_lengths_do_can_be_chosen() {
        for (lengths, spacing, expected) in [
            ("chance", "uniform-exact", 8.8),
            ("chance-and-count", "uniform", 5.15),
            ("chance-and-count", "uniform-exact", 4.0),
            ("average", "uniform", 1.0),
        ] {
            let shares = signalled(&[("lengths", lengths), ("spacing", spacing)], &[1600, 400]);
            let ratio = shares[0] / shares[1];
            assert!((ratio / expected - 1.0).abs() < 0.1, "{lengths}, {spacing}: {ratio}");
        }
    }

    #[test]
    fn the_rules_of_ns2_spare_short_queues_and_the_first_packet() {
        let fates = |ns2: &str| -> Vec<Fate> {
            let thresholds = [("min_th", "0p"), ("max_th", "4p"), ("max_p", "1")];
            let settings = [&[("ns2_rules", ns2), ("w_q", "1")], &thresholds[..]].concat();
            let mut lab = Story::new(10, &settings);
            (0..4).map(|_| lab.arrive()).collect()
        };
        // Packet n finds n: p_b = 0, ¼, ½, ¾. In ns-2 n ≤ 1 is spared, n = 2 is the first after
        // the crossing and sets count = 1, n = 3 has count = 2 and 2·¾ ≥ 1.
        use Fate::{Marked, Queued};
        assert_eq!(fates("true"), [Queued, Queued, Queued, Marked]);
        assert_eq!(fates("false")[2..], [Marked, Marked], "2·½ ≥ 1, 1·¾ or more");
    }

    /// Twelve packets come to a full buffer of two, at an average of 2, where p_b is a quarter of
    /// max_p: ten find no room. In ns-2 each of these begins the count anew, as a signal would; else
    /// the next is the eleventh.
    #[test]
    fn a_loss_at_a_full_buffer_begins_the_count_anew_in_ns2() {
        for (ns2, next) in [("true", 1.0), ("false", 11.0)] {
            let thresholds = [("min_th", "1p"), ("max_th", "5p"), ("max_p", "0.0001")];
            let settings = [&[("ns2_rules", ns2), ("w_q", "1")], &thresholds[..]].concat();
            let mut lab = Story::new(2, &settings);
            (0..12).for_each(|_| _ = lab.arrive());
            let p_b = lab.signal("p_b");
            let count = (1.0 - p_b / lab.signal("p_a")) / p_b;
            assert!((count - next).abs() < 0.01, "{ns2}: {count}");
        }
    }

    #[test]
    fn thresholds_need_room_between_them() {
        assert_eq!(refused::<Red>(&[("min_th", "6p"), ("max_th", "5p")]).key, "max_th");
        assert_eq!(refused::<Red>(&[("min_th", "1bdp")]).key, "min_th");
    }
}
