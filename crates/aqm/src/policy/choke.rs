//! CHOKe: choose and keep for responsive flows, choose and kill for unresponsive ones (Pan,
//! Prabhakar, Psounis 2000, "PPP00"; HRC §2).
//!
//! A flow that fills the queue is found by drawing from the queue: no state of flows is needed. RED
//! ([`red`]) with one question before it, in our words:
//!
//! ```text
//! a packet arrives; avg is RED's:
//!     avg < min_th:  queue it
//!     otherwise:     m times: draw a queued packet, with replacement
//!                    those drawn that are of its flow: drop them, each once, and drop it as well
//!                    none is:  RED's decision at avg, which above max_th takes every packet
//! m := candidates                            CHOKe: 1, M-CHOKe: any
//! m := 2i in the i-th of k equal regions between min_th and max_th, 2k above     (A-CHOKe)
//! ```
//!
//! A flow with the share s of the queue loses about s of its arrivals to the draw, and as many
//! queued packets: its losses go with its share twice, once as an arrival and once as a candidate.
//!
//! Where the papers are silent:
//! - A match is a drop, never a mark: these are flows that ignore signals. Its cause is
//!   [`Cause::Penalty`], for both packets.
//! - RED is not told of packets that are dropped for a match: its count of packets between signals
//!   is of those that it judged.
//! - The packet in transmission is no candidate, and an empty queue has none.
//! - HRC drops every packet above max_th; here RED's `ecn` and `above_max` say whether it is
//!   marked.

use alloc::vec::Vec;

use super::red::{self, RedConfig, RedCore, RedParams, as_red};
use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family, Preset, Signal, joined};
use crate::context::{Cause, State};
use crate::packet::Meta;
use crate::param::{ConfigError, Params, params};
use crate::rng::Rng;
use crate::time::Instant;

const CANDIDATES: Signal = Signal {
    name: "candidates",
    unit: "packets",
    doc: "queued packets that the next one is compared with",
};
/// As HRC has it.
const CMU: Preset =
    ("cmu", &[("min_th", "50p"), ("max_th", "100p"), ("gentle", "false"), ("ecn", "false")]);

/// CHOKe, with one drawn packet.
pub const CHOKE: About = About {
    name: "choke",
    family: Family::Flows,
    summary: "RED that draws a queued packet at each arrival, and drops both if they are of one \
        flow.",
    source: "PPP00; HRC §2",
    rule: "CHOKe compares an arriving packet with one drawn from the queue once avg is above \
        min_th, and drops both if they are of one flow; otherwise RED decides (PPP00)",
    causes: &[(Cause::Penalty, "a queued packet of its flow was drawn, and both are dropped")],
    unmarked: red::ABOUT.unmarked,
    signals: &joined::<_, 5>(red::SIGNALS, &[CANDIDATES]),
    presets: &[
        CMU,
        (
            "linux",
            &[
                ("min_th", "15p"),
                ("max_th", "45p"),
                ("gentle", "false"),
                ("w_q", "0.0625"),
                ("idle", "halvings"),
                ("spacing", "ahead"),
                ("exceed", "true"),
            ],
        ),
    ],
    live: red::LIVE,
    ..About::NEW
};

/// CHOKe with a fixed number of drawn packets.
pub const M_CHOKE: About = About {
    name: "m-choke",
    family: Family::Flows,
    summary: "CHOKe that draws several queued packets.",
    source: "PPP00 §2; HRC §2",
    rule: "M-CHOKe compares an arriving packet with several drawn from the queue once avg is \
        above min_th, and drops it and those of its flow; otherwise RED decides (PPP00 §2)",
    causes: &[(Cause::Penalty, "a queued packet of its flow was drawn, and both are dropped")],
    unmarked: red::ABOUT.unmarked,
    signals: &joined::<_, 5>(red::SIGNALS, &[CANDIDATES]),
    presets: &[CMU],
    live: red::LIVE,
    ..About::NEW
};

/// CHOKe whose number of drawn packets follows the average queue.
pub const A_CHOKE: About = About {
    name: "a-choke",
    family: Family::Flows,
    summary: "CHOKe that draws more packets, the longer the average queue.",
    source: "PPP00 §2; HRC §2",
    rule: "A-CHOKe compares an arriving packet with packets drawn from the queue, the more the \
        longer the average queue, and drops it and those of its flow; otherwise RED decides \
        (PPP00 §2)",
    causes: &[(Cause::Penalty, "a queued packet of its flow was drawn, and both are dropped")],
    unmarked: red::ABOUT.unmarked,
    signals: &joined::<_, 5>(red::SIGNALS, &[CANDIDATES]),
    presets: &[CMU],
    live: red::LIVE,
    ..About::NEW
};

params! {
    /// Parameters of CHOKe.
    pub struct ChokeConfig {
        /// Whether the average has to exceed `min_th` and `max_th`, or only to reach them.
        exceed: bool = false, "PPP00 §2; `true`: Linux";
        ..red: RedConfig = RedConfig::default();
    }
}

params! {
    /// Parameters of M-CHOKe.
    pub struct MChokeConfig {
        /// Queued packets that an arriving one is compared with.
        candidates: u32 = 2, in 1..=64, "PPP00 §2; HRC Fig. 13";
        ..red: RedConfig = RedConfig::default();
    }
}

params! {
    /// Parameters of A-CHOKe.
    pub struct AChokeConfig {
        /// Regions between the thresholds; an arriving packet is compared with 2i queued ones in the i-th.
        regions: u32 = 5, in 1..=32, "PPP00 §2; HRC §3";
        ..red: RedConfig = RedConfig::default();
    }
}

/// How many queued packets an arriving one is compared with: what the variants differ in.
pub trait Candidates: Params + Default + Clone {
    /// RED's parameters.
    fn red(&self) -> &RedConfig;
    /// Whether the average has to exceed the thresholds.
    fn exceed(&self) -> bool {
        false
    }
    /// The most.
    fn most(&self) -> u32;
    /// When the average has come `depth` of the way from min_th (0) to max_th (1), or beyond.
    fn at(&self, depth: f64) -> u32;
}

impl Candidates for ChokeConfig {
    fn red(&self) -> &RedConfig {
        &self.red
    }
    fn exceed(&self) -> bool {
        self.exceed
    }
    fn most(&self) -> u32 {
        1
    }
    #[inline]
    fn at(&self, _: f64) -> u32 {
        1
    }
}

impl Candidates for MChokeConfig {
    fn red(&self) -> &RedConfig {
        &self.red
    }
    fn most(&self) -> u32 {
        self.candidates
    }
    #[inline]
    fn at(&self, _: f64) -> u32 {
        self.candidates
    }
}

impl Candidates for AChokeConfig {
    fn red(&self) -> &RedConfig {
        &self.red
    }
    fn most(&self) -> u32 {
        2 * self.regions
    }
    #[inline]
    fn at(&self, depth: f64) -> u32 {
        let region = (depth * f64::from(self.regions)) as u32 + 1;
        2 * region.min(self.regions)
    }
}

/// The CHOKe policies: `Choke<ChokeConfig>` is CHOKe, `Choke<MChokeConfig>` M-CHOKe,
/// `Choke<AChokeConfig>` A-CHOKe.
#[derive(Clone, Debug)]
pub struct Choke<C> {
    core: RedCore,
    variant: C,
    /// Positions of the candidates that match, from the head on, each once. Empty between arrivals.
    matches: Vec<usize>,
}

impl<C: Candidates> Choke<C> {
    /// How many candidates there are at an average.
    #[inline]
    fn candidates(&self, avg: f64) -> u32 {
        let RedParams { min_th, max_th, .. } = self.core.params;
        if avg < min_th {
            0
        } else if avg < max_th {
            self.variant.at((avg - min_th) / (max_th - min_th))
        } else {
            self.variant.at(1.0)
        }
    }
}

impl<C: Candidates> Policy for Choke<C> {
    type Config = C;
    type Tag = ();

    fn new(config: &C, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let red = config.red();
        let mut params = RedParams::new(red, env)?;
        if config.exceed() {
            // What exceeds a threshold reaches the next number.
            params.min_th = params.min_th.next_up();
            params.max_th = params.max_th.next_up();
        }
        Ok(Self {
            core: RedCore::new(params, red.max_p, env.now),
            variant: config.clone(),
            matches: Vec::with_capacity(config.most() as usize),
        })
    }

    fn retune(&mut self, with: Self, now: Instant) {
        self.core.retune(with.core, now);
        self.variant = with.variant;
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let avg = self.core.average(q, cx.now);
        if !q.is_empty() {
            for _ in 0..self.candidates(avg) {
                let position = cx.rng.below(q.len());
                if q.peek(position).is_some_and(|candidate| candidate.flow == pkt.flow)
                    && let Err(place) = self.matches.binary_search(&position)
                {
                    self.matches.insert(place, position);
                }
            }
        }
        if self.matches.is_empty() {
            self.core.judge(pkt, q, cx)
        } else {
            Arrival::RejectWith(Cause::Penalty)
        }
    }

    fn victim(&mut self) -> Option<usize> {
        self.matches.pop()
    }

    as_red!(core);

    fn state(&self) -> State {
        State::of::<Self>(self.matches.capacity() * size_of::<usize>())
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.core.observe(now, sink);
        sink("candidates", f64::from(self.candidates(self.core.average_at(now))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::{Fate, Lab, refused};

    const KILLED: Fate = Fate::Dropped(Cause::Penalty);

    /// Settings under which the average is the queue, CHOKe compares from the first packet on, and
    /// RED leaves all in peace.
    const WATCH: [(&str, &str); 4] =
        [("w_q", "1"), ("min_th", "0p"), ("max_th", "1000p"), ("max_p", "0")];

    #[test]
    fn candidates_by_hand() {
        let c = AChokeConfig { regions: 5, ..AChokeConfig::default() };
        // Regions of a fifth each: 2, 4, 6, 8, 10; above max_th 10.
        for (depth, m) in
            [(0.0, 2), (0.19, 2), (0.2, 4), (0.59, 6), (0.6, 8), (0.8, 10), (1.0, 10), (40.0, 10)]
        {
            assert_eq!(c.at(depth), m, "{depth}");
        }
        assert_eq!(MChokeConfig::default().at(0.0), 2);
        assert_eq!(ChokeConfig::default().at(3.0), 1);
    }

    #[test]
    fn a_match_takes_both_and_a_stranger_stays() {
        let mut lab = Lab::<Choke<ChokeConfig>>::new(10, &WATCH);
        assert_eq!(lab.arrive_from(1), Fate::Queued, "nobody to be compared with");
        assert_eq!(lab.arrive_from(2), Fate::Queued, "the only candidate is of flow 1");
        assert_eq!(lab.depart(), Some(0));
        assert_eq!(lab.arrive_from(2), KILLED, "the only candidate is of flow 2");
        assert_eq!(lab.dropped(), [1, 2], "the candidate and the arriving packet");
        assert_eq!(lab.backlog().packets, 0);
    }

    #[test]
    fn below_min_th_nobody_is_compared() {
        let mut lab = Lab::<Choke<ChokeConfig>>::new(10, &[("w_q", "1"), ("min_th", "3p")]);
        (0..3).for_each(|_| assert_eq!(lab.arrive_from(1), Fate::Queued));
        assert_eq!(lab.signal("candidates"), 0.0, "of the average as the last packet found it");
        assert_eq!(lab.arrive_from(1), KILLED, "three wait, all of this flow");
    }

    /// Linux: at an average of exactly min_th nobody is compared, and at exactly max_th RED's chance
    /// decides, not yet everybody's loss.
    #[test]
    fn linux_s_average_has_to_exceed_the_thresholds() {
        let (_, linux) = CHOKE.presets.iter().find(|(name, _)| *name == "linux").unwrap();
        for (settings, at_min, at_max) in
            [(&[][..], KILLED, Fate::Marked), (linux, Fate::Queued, Fate::Queued)]
        {
            let own = [("w_q", "1"), ("min_th", "3p"), ("gentle", "false"), ("max_p", "0")];
            let mut settings = [settings, &own].concat();
            settings.push(("max_th", "5p"));
            let mut lab = Lab::<Choke<ChokeConfig>>::new(10, &settings);
            (0..3).for_each(|_| assert_eq!(lab.arrive_from(1), Fate::Queued));
            assert_eq!(lab.arrive_from(1), at_min);
            let mut lab = Lab::<Choke<ChokeConfig>>::new(10, &settings);
            (0..5).for_each(|flow| assert_eq!(lab.arrive_from(flow), Fate::Queued));
            assert_eq!(lab.arrive_from(5), at_max);
            assert_eq!(lab.arrive_from(6), Fate::Marked, "six wait");
        }
    }

    /// Draws all of a short queue: of 64 draws each hits a given one of three but with
    /// (2/3)⁶⁴ = 5e-12.
    fn thorough(min_th: &str, max_th: &str) -> Lab<Choke<MChokeConfig>> {
        let thresholds = [("min_th", min_th), ("max_th", max_th)];
        let settings = [
            &[("candidates", "64"), ("w_q", "1"), ("gentle", "false"), ("ecn", "false")],
            &thresholds[..],
        ];
        Lab::new(10, &settings.concat())
    }

    #[test]
    fn every_match_goes_and_each_goes_once() {
        let mut lab = thorough("4p", "9p");
        [1, 2, 1, 1].into_iter().for_each(|flow| assert_eq!(lab.arrive_from(flow), Fate::Queued));
        assert_eq!(lab.arrive_from(1), KILLED);
        assert_eq!(lab.dropped(), [3, 2, 0, 4]);
        assert_eq!(lab.depart(), Some(1));
    }

    #[test]
    fn above_max_th_matches_still_take_queued_packets() {
        let mut lab = thorough("2p", "3p");
        [1, 1, 2].into_iter().for_each(|flow| assert_eq!(lab.arrive_from(flow), Fate::Queued));
        assert_eq!(lab.arrive_from(3), Fate::Dropped(Cause::Early), "alone");
        assert_eq!(lab.backlog().packets, 3);
        assert_eq!(lab.arrive_from(1), KILLED);
        assert_eq!(lab.backlog().packets, 1);
    }

    /// A tenth of the queue is flow 1's: it loses a tenth of its arrivals to the draw. σ of the
    /// share of 10 000: √(0.1·0.9/10 000) = 0.003; the band is 5 σ. The queue
    /// is filled anew each time.
    #[test]
    fn a_flow_is_killed_by_its_share_of_the_queue() {
        let mut lab = Lab::<Choke<ChokeConfig>>::new(
            200,
            &[("w_q", "1"), ("min_th", "100p"), ("max_th", "1000p"), ("max_p", "0")],
        );
        let fill = |lab: &mut Lab<_>| {
            while lab.depart().is_some() {}
            (0..100)
                .for_each(|i| assert_eq!(lab.arrive_from(u64::from(i % 10 == 0)), Fate::Queued));
        };
        let mut killed = 0;
        for _ in 0..10_000 {
            fill(&mut lab);
            killed += u32::from(lab.arrive_from(1) == KILLED);
        }
        assert!((f64::from(killed) / 1e4 - 0.1).abs() < 0.015, "{killed}");
    }

    #[test]
    fn candidates_follow_the_average() {
        let mut lab = Lab::<Choke<AChokeConfig>>::new(
            100,
            &[("w_q", "1"), ("min_th", "10p"), ("max_th", "20p"), ("max_p", "0")],
        );
        let mut seen = std::vec![];
        for flow in 0..23 {
            lab.arrive_from(flow);
            seen.push(lab.signal("candidates"));
        }
        // The n-th packet finds n: regions of two packets each, from 10 on.
        assert_eq!(seen[..10], [0.0; 10]);
        assert_eq!(seen[10..20], [2.0, 2.0, 4.0, 4.0, 6.0, 6.0, 8.0, 8.0, 10.0, 10.0]);
        assert_eq!(seen[20..], [10.0; 3]);
    }

    #[test]
    fn thresholds_need_room_between_them() {
        assert_eq!(refused::<Choke<AChokeConfig>>(&[("min_th", "90%")]).key, "max_th");
    }
}
