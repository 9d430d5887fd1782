//! WRED: RED with thresholds for each class of traffic (weighted RED, as routers of Cisco have it; the
//! dropping precedence of assured forwarding, RFC 2597).
//!
//! One average is kept of the queue, or one of the packets of each class and those above it. Classes differ in where their signals begin and how frequent they
//! get, so that packets of a lower class are signalled first, while those of a higher are let alone:
//!
//! ```text
//! a packet arrives:  avg as in RED, of the whole queue; coupled: of the queued packets of class c and
//!                    higher ones, and the averages of all lower classes are brought up to date as well
//!                    class c of C:  min_th, max_th and max_p on the line from those of the lowest
//!                                   class to those of the highest, at c/(C − 1)
//!                    the rest as in RED, with a count for each class
//! ```
//!
//! | `classes` | C | class |
//! |---|---|---|
//! | `precedence` | 8 | the upper three bits of the codepoint (RFC 2474 §4.2.2) |
//! | `drop-precedence` | 3 | AFx3 lowest, AFx2, AFx1; other codepoints are in the highest (RFC 2597) |
//!
//! The defaults for eight classes are as Cisco's: the minimum of precedence *i* is (9 + *i*)/18 of the
//! maximum. With one class for all it is RED. With `average = "coupled"` it is RIO (Clark and Fang 1998):
//! packets in profile are the highest class, whose average those out of profile do not raise.

use alloc::boxed::Box;

use super::average::Average;
use super::red;
use super::red::{RedConfig, RedCore, RedParams};
use super::{Arrival, Cx, Env, Exit, Policy, Victim, View};
use crate::about::{About, Family, Labels, Signal, joined};
use crate::packet::Meta;
use crate::param::{ConfigError, choice, params};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::{Measure, Size};

/// What wred tells of itself.
pub const ABOUT: About = About {
    name: "wred",
    family: Family::One,
    summary: "RED with thresholds for each class of traffic, by the codepoint of its packets.",
    source: "Cisco WRED; RFC 2597",
    rule: "WRED compares an average queue with the thresholds of the packet's class, so that it \
        signals lower classes earlier and more often (RFC 2597)",
    unmarked: red::ABOUT.unmarked,
    signals: &[
        red::AVG,
        Signal { name: "p_low", unit: "0 … 1", doc: "p_b of the lowest class" },
        Signal { name: "p_high", unit: "0 … 1", doc: "p_b of the highest" },
    ],
    labels: Labels { codepoints: true, ..Labels::NONE },
    live: &joined::<_, 8>(red::LIVE, &["min_th_high", "max_th_high", "max_p_high"]),
    ..About::NEW
};

params! {
    /// Parameters of WRED: those of RED are of the lowest class.
    pub struct WredConfig {
        /// What a packet's class is.
        classes: Classes = Classes::Precedence, "Cisco WRED; RFC 2597";
        /// What the average of a class counts.
        average: Counted = Counted::All, "Clark and Fang 1998 (coupled)";
        /// `min_th` of the highest class.
        min_th_high: Size = Size::OfBuffer(0.44), "Cisco WRED: 16/18 of max_th";
        /// `max_th` of the highest class; `none`: that of the lowest.
        max_th_high: Option<Size> = None, "Cisco WRED";
        /// `max_p` of the highest class; `none`: that of the lowest.
        max_p_high: Option<f64> = None, in 0.0..=1.0, "Cisco WRED";
        ..red: RedConfig = RedConfig {
            min_th: Size::OfBuffer(0.25),
            max_th: Size::OfBuffer(0.5),
            gentle: false,
            ..RedConfig::default()
        };
    }
}

choice! {
    /// What a packet's class is.
    pub enum Classes {
        /// The upper three bits of its codepoint.
        Precedence = "precedence",
        /// The dropping precedence of assured forwarding.
        DropPrecedence = "drop-precedence",
    }
}

choice! {
    /// What the average of a class counts.
    pub enum Counted {
        /// All packets queued.
        All = "all",
        /// Those of the class and of higher ones: RIO.
        Coupled = "coupled",
    }
}

impl Classes {
    fn count(self) -> usize {
        match self {
            Self::Precedence => 8,
            Self::DropPrecedence => 3,
        }
    }

    /// The class of a codepoint, 0 for the lowest.
    #[inline]
    fn of(self, dscp: u8) -> usize {
        match self {
            Self::Precedence => usize::from(dscp >> 3),
            // AFxy is 8x + 2y, x = 1 … 4.
            Self::DropPrecedence => match (dscp >> 3, dscp & 7) {
                (1..=4, 6) => 0,
                (1..=4, 4) => 1,
                _ => 2,
            },
        }
    }
}

/// The WRED policy.
#[derive(Clone, Debug)]
pub struct Wred {
    classes: Classes,
    /// Of the whole queue.
    avg: Average,
    coupled: Option<Box<Coupled>>,
    /// One for each class; they are given their averages.
    cores: [RedCore; 8],
}

/// Amounts queued of each class, and the average of the class and those above it; the first is not used.
#[derive(Clone, Debug)]
struct Coupled {
    queued: [u64; 8],
    averages: [Average; 8],
}

impl Coupled {
    /// A packet of a class arrives. The average of that class, if it is not the lowest.
    #[inline(never)]
    fn sample(&mut self, class: usize, now: Instant) -> Option<f64> {
        let mut queued: u64 = self.queued.iter().sum();
        for (k, average) in self.averages.iter_mut().enumerate().skip(1) {
            queued -= self.queued[k - 1];
            if k <= class {
                average.sample(queued as f64, now);
            } else {
                average.age(now);
            }
        }
        (class > 0).then(|| self.averages[class].value)
    }
}

impl Wred {
    fn class(&self, pkt: &Meta) -> usize {
        self.classes.of(pkt.flow.label().dscp)
    }

    /// Counts a packet that comes into the queue, or else has left it.
    #[inline(never)]
    fn count(&mut self, pkt: &Meta, comes: bool) {
        let class = self.class(pkt);
        let size = match self.cores[0].params.measure() {
            Measure::Packets => 1,
            Measure::Bytes => u64::from(pkt.len),
        };
        let Some(coupled) = &mut self.coupled else { return };
        if comes {
            coupled.queued[class] += size;
            coupled.averages.iter_mut().for_each(Average::admitted);
        } else {
            coupled.queued[class] -= size;
        }
    }

    /// Every average that is kept.
    fn each_average(&mut self, change: impl FnMut(&mut Average)) {
        let coupled = self.coupled.iter_mut().flat_map(|coupled| &mut coupled.averages);
        coupled.chain([&mut self.avg]).for_each(change);
    }

    /// The average by which a class is judged.
    fn average_of(&self, class: usize, now: Instant) -> f64 {
        let of_class = self.coupled.as_ref().filter(|_| class > 0);
        of_class.map_or(&self.avg, |coupled| &coupled.averages[class]).at(now)
    }
}

impl Policy for Wred {
    type Config = WredConfig;
    type Tag = ();

    fn new(config: &WredConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let params = RedParams::new(&config.red, env)?;
        let of = |key, size: Size| env.resolve(key, size, config.red.mode.into());
        let min_th = [params.min_th, of("min_th_high", config.min_th_high)?];
        let max_high = config.max_th_high.map(|size| of("max_th_high", size)).transpose()?;
        let max_th = [params.max_th, max_high.unwrap_or(params.max_th)];
        let max_p = [config.red.max_p, config.max_p_high.unwrap_or(config.red.max_p)];
        if min_th[1] >= max_th[1] {
            return Err(ConfigError {
                key: "min_th_high",
                allowed: "less than max_th_high".into(),
            });
        }
        let count = config.classes.count();
        let core = |class: usize| {
            let share = (class as f64 / (count - 1) as f64).min(1.0);
            let between = |[low, high]: [f64; 2]| low + share * (high - low);
            let params = params.clone().with_thresholds(between(min_th), between(max_th))?;
            Ok(RedCore::new(params, between(max_p), env.now))
        };
        let cores =
            [core(0)?, core(1)?, core(2)?, core(3)?, core(4)?, core(5)?, core(6)?, core(7)?];
        let avg = cores[0].own_average();
        let averages = core::array::from_fn(|_| avg.clone());
        let coupled = || Box::new(Coupled { queued: [0; 8], averages });
        let coupled = (config.average == Counted::Coupled).then(coupled);
        Ok(Self { classes: config.classes, avg, coupled, cores })
    }

    fn retune(&mut self, with: Self, now: Instant) {
        self.avg.retune(&with.avg, now);
        if let (Some(own), Some(with)) = (&mut self.coupled, &with.coupled) {
            own.averages
                .iter_mut()
                .zip(&with.averages)
                .for_each(|(own, with)| own.retune(with, now));
        }
        self.cores.iter_mut().zip(with.cores).for_each(|(own, with)| own.retune(with, now));
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let class = self.class(pkt);
        let core = &mut self.cores[class];
        let mut avg = self.avg.sample(q.size(core.params.measure()), cx.now);
        if let Some(coupled) = &mut self.coupled {
            avg = coupled.sample(class, cx.now).unwrap_or(avg);
        }
        core.set_average(avg);
        core.judge(pkt, q, cx)
    }

    fn on_overflow(&mut self, pkt: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Victim {
        // All classes have the same rules; only by these does it matter whose packet is lost.
        if self.cores[0].params.ns2_rules {
            self.cores[self.class(pkt)].overflowed();
        }
        Victim::Arriving
    }

    fn gave_way(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) {}

    #[inline]
    fn admitted(&mut self, pkt: &Meta, _: &mut Cx<'_>) {
        self.avg.admitted();
        if self.coupled.is_some() {
            self.count(pkt, true);
        }
    }

    #[inline]
    fn left(&mut self, pkt: &Meta, (): (), _: Exit, _: &mut Cx<'_>) {
        if self.coupled.is_some() {
            self.count(pkt, false);
        }
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        self.each_average(|average| average.on_idle(cx.now));
    }

    fn congested(&self, _: &View<'_>, now: Instant) -> bool {
        self.avg.at(now) >= self.cores[0].params.min_th
    }

    fn rate_changed(&mut self, env: &Env) {
        let core = self.cores[0].clone();
        self.each_average(|average| core.retime(average, env));
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let avg = self.avg.at(now);
        let highest = self.classes.count() - 1;
        sink("avg", avg);
        sink("p_low", self.cores[0].p_b(avg));
        sink("p_high", self.cores[highest].p_b(self.average_of(highest, now)));
    }

    fn observe_flow(&self, pkt: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let class = self.class(pkt);
        let core = &self.cores[class];
        sink("class_p_b", core.p_b(self.average_of(class, now)));
        core.observe_count(pkt.len, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{FlowKey, Label};
    use crate::policy::lab::{Fate, Lab, refused};
    use crate::qdisc::Qdisc;

    fn key(dscp: u8) -> u64 {
        FlowKey::labelled(1, Label { dscp, ..Label::default() }).0
    }

    /// The average is the queue. From 4 packets on class 0 is signalled, from 11 on class 7, in between
    /// the others, a packet apart.
    #[test]
    fn lower_classes_are_signalled_first() {
        let settings = [
            ("w_q", "1"),
            ("min_th", "3p"),
            ("max_th", "4p"),
            ("min_th_high", "10p"),
            ("max_th_high", "11p"),
        ];
        for precedence in 0..8u8 {
            let mut lab = Lab::<Wred>::new(50, &settings);
            for _ in 0..4 + precedence {
                assert_eq!(lab.arrive_from(key(63)), Fate::Queued);
            }
            assert_eq!(lab.arrive_from(key(precedence << 3)), Fate::Marked, "{precedence}");
            assert_eq!(lab.arrive_from(key(63)) == Fate::Marked, precedence >= 6);
        }
    }

    /// A queue of which the average is the length, with room between the thresholds of both ends.
    fn wide() -> Lab<Wred> {
        let high = [("min_th_high", "20p"), ("max_th_high", "30p")];
        Lab::new(50, &[&[("w_q", "1"), ("min_th", "3p"), ("max_th", "8p")][..], &high].concat())
    }

    /// AFxy is 8x + 2y, x and y from 1 on; all others have no dropping precedence: best effort, codepoints
    /// beside it, those of classes, and VA and EF, which would be AF52 and AF53.
    #[test]
    fn dropping_precedence_is_the_second_digit() {
        let assured = (1..=4).flat_map(|x| [(8 * x + 2, 2), (8 * x + 4, 1), (8 * x + 6, 0)]);
        let others = [0, 2, 4, 6, 8, 13, 15, 32, 44, 46, 52, 54].map(|dscp| (dscp, 2));
        for (dscp, class) in assured.chain(others) {
            assert_eq!(Classes::DropPrecedence.of(dscp), class, "{dscp}");
        }
    }

    /// A filter before the queue works from where the first class can be signalled.
    #[test]
    fn the_lowest_class_says_from_where_on_there_is_congestion() {
        let mut lab = wide();
        let congested = [(); 5].map(|()| {
            lab.arrive_from(key(63));
            Qdisc::<u32>::congested(&lab.queue, lab.now)
        });
        assert_eq!(congested, [false, false, false, true, true]);
    }

    /// The average that an arrival found last is 5 of 3 … 8; on an idle link it is soon none.
    #[test]
    fn what_is_told_of_a_flow_ages_on_an_idle_link() {
        let mut lab = wide();
        (0..6).for_each(|_| assert_eq!(lab.arrive_from(key(63)), Fate::Queued));
        let of_lowest = |lab: &Lab<Wred>| {
            let mut p_b = None;
            let packet = Meta { flow: FlowKey(key(0)), ..Meta::default() };
            Qdisc::<u32>::observe_flow(&lab.queue, &packet, lab.now, &mut |name, value| {
                p_b = p_b.or((name == "class_p_b").then_some(value));
            });
            p_b.unwrap()
        };
        assert!((of_lowest(&lab) - 0.1 * 2.0 / 5.0).abs() < 1e-12, "{}", of_lowest(&lab));
        while lab.depart().is_some() {}
        lab.wait_ms(5);
        assert_eq!(of_lowest(&lab), 0.0);
    }

    /// RIO's point: packets out of profile that fill the queue do not raise the average of those in profile.
    #[test]
    fn a_coupled_average_counts_no_lower_class() {
        let fates = |average| {
            let settings = [("average", average), ("w_q", "1"), ("min_th", "3p"), ("max_th", "4p")];
            let mut lab = Lab::<Wred>::new(
                50,
                &[&settings[..], &[("min_th_high", "5p"), ("max_th_high", "6p")]].concat(),
            );
            let mut last = |dscp, packets: usize| {
                (0..packets).fold(Fate::Queued, |_, _| lab.arrive_from(key(dscp)))
            };
            // Lowest class until it is signalled at 4, and on; then the highest finds 10, of its own none, then 6.
            [last(0, 4), last(0, 6), last(63, 1), last(63, 6)]
        };
        assert_eq!(fates("all"), [Fate::Queued, Fate::Marked, Fate::Marked, Fate::Marked]);
        assert_eq!(fates("coupled"), [Fate::Queued, Fate::Marked, Fate::Queued, Fate::Marked]);
    }

    #[test]
    fn thresholds_leave_room_in_every_class() {
        assert_eq!(refused::<Wred>(&[("min_th", "60%")]).key, "max_th");
        assert_eq!(refused::<Wred>(&[("min_th_high", "50%")]).key, "min_th_high");
        assert_eq!(refused::<Wred>(&[("max_th_high", "1bdp")]).key, "max_th_high");
    }
}
