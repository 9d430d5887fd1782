//! FRED: flow random early drop (Lin and Morris 1997, "LM97"; HRC §2).
//!
//! RED with a count for each flow that has packets in the queue, and for no other: so the state is
//! bounded by the buffer. Flows with few packets there are safe, those with many are held down, and
//! those that try again and again get no more than the average flow. LM97's algorithm, in our words:
//!
//! ```text
//! state: avg, count as in RED; for each flow present: qlen, its packets here, and its strikes
//! average: avg := (1 − w_q)·avg + w_q·q;  avgcq := max(1, avg / flows present)
//! a packet of a flow arrives (qlen and strikes 0 if the flow is not present):
//!     the link is idle: age avg as RED does
//!     maxq := min_th;  but 2 if many_flow and avg ≥ max_th                  (two-packet mode)
//!     qlen ≥ maxq, or avg ≥ max_th and qlen > 2·avgcq, or qlen ≥ avgcq and strikes > 1:
//!         strikes += 1; drop it                                      (does not adapt, too greedy)
//!     min_th ≤ avg < max_th:  count += 1
//!         qlen ≥ max(min_q, avgcq): signal it with RED's p_a, and then count := 0      (robust)
//!     avg < min_th:  count := −1
//!     avg ≥ max_th:  count := 0;  drop it, unless many_flow
//!     it is queued: take q, without it, into the average
//! a packet departs: take q, without it, into the average; a flow whose last packet it was is
//!     forgotten, strikes and all
//! ```
//!
//! Unlike RED's, the average knows departures, and does not know packets that are dropped, so that
//! one flood of arrivals is not mistaken for a long queue.
//!
//! Where the paper is silent:
//! - min_th is the lesser of a quarter of the buffer and the packets of one round trip, `rtt`.
//! - Idle time is RED's ([`red`](super::red)), not any time at which the queue is empty.
//! - Random drops are marks where they can be; the others are drops: those that count a strike with
//!   [`Cause::Penalty`], the rest with [`Cause::Early`].

use super::average::Average;
use super::red::linear;
use super::spacing::{Spacing, p_a};
use super::{Arrival, Cx, Env, Exit, Policy, View};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::{Cause, State};
use crate::flow_table::{FlowTable, Home, Id};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Measure, Size};

/// What fred tells of itself.
pub const ABOUT: About = About {
    name: "fred",
    family: Family::Flows,
    summary: "RED that counts the packets of each flow in the queue, and is fair to those with \
        few.",
    source: "LM97; HRC §2",
    rule: "FRED drops packets of a flow whose qlen reaches maxq, or avgcq after two strikes, or \
        from max_th on twice avgcq; it signals other flows as RED does, and from max_th on drops \
        every packet (LM97)",
    causes: &[(Cause::Penalty, "its flow has too many packets in the queue")],
    unmarked: Unmarked {
        coin: "from max_th on FRED drops every packet",
        rule: "from max_th on FRED drops every packet",
    },
    signals: &[
        Signal { name: "avg", unit: "packets", doc: "average queue length" },
        Signal { name: "avgcq", unit: "packets", doc: "average queue of a flow that is present" },
        Signal { name: "maxq", unit: "packets", doc: "most packets that a flow may have queued" },
        Signal { name: "flows", unit: "", doc: "flows with packets queued" },
    ],
    presets: &[("cmu", &[("min_q", "2"), ("min_th", "50p"), ("max_th", "100p"), ("ecn", "false")])],
    live: &["min_q", "min_th", "max_th", "max_p", "w_q"],
    ..About::NEW
};

params! {
    /// Parameters of FRED. All lengths are in packets.
    pub struct FredConfig {
        /// Packets that a flow may have queued without running a risk below max_th: 2 for small buffers, 4 for large ones.
        min_q: u32 = 2, in 0..=1_000_000, "LM97; HRC §3";
        /// Average below which no packet is dropped at random, and the most that one flow may have queued; `none`: from buffer and rtt.
        min_th: Option<Size> = None, "LM97";
        /// Average from which on every packet is dropped; `none`: twice min_th.
        max_th: Option<Size> = None, "LM97";
        /// Round-trip time: the packets that the link sends in it bound min_th.
        rtt: Duration = Duration::from_millis(100), "LM97 (no value given)", with min_th = "none";
        /// Random drop probability as the average reaches max_th.
        max_p: f64 = 0.02, in 0.0..=1.0, "LM97; HRC §3";
        /// Weight of the present queue length in the average.
        w_q: f64 = 0.002, in 0.0..=1.0, "LM97; HRC §3";
        /// Above max_th, let each flow have two packets queued instead of dropping all that arrive.
        many_flow: bool = false, "LM97, support for many flows; off: HRC Fig. 6";
        /// Whether random drops are marks on ECN-capable packets.
        ecn: bool = true, "Feng02 §III.B";
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Flow {
    /// Packets queued.
    qlen: u32,
    /// How often it was held down since it came.
    strikes: u32,
}

/// The FRED policy.
#[derive(Clone, Debug)]
pub struct Fred {
    config: FredConfig,
    min_q: f64,
    min_th: f64,
    max_th: f64,
    /// The answer for a packet that chance picked.
    signal: Arrival,
    avg: Average,
    /// Average queue of a flow that is present, at least 1.
    avgcq: f64,
    /// As in RED: packets since the last random drop; −1: the next one counts as the first.
    count: i64,
    /// Packets queued.
    queued: u32,
    flows: FlowTable<Flow>,
    /// Of the arriving packet.
    home: Home,
}

impl FredConfig {
    /// min_th and max_th in packets.
    fn thresholds(&self, env: &Env) -> Result<(f64, f64), ConfigError> {
        let min_th = match self.min_th {
            Some(size) => env.resolve("min_th", size, Measure::Packets)?,
            None => automatic_min_th(env, self.rtt),
        };
        let max_th = match self.max_th {
            Some(size) => env.resolve("max_th", size, Measure::Packets)?,
            None => 2.0 * min_th,
        };
        if min_th <= 0.0 {
            return Err(ConfigError { key: "min_th", allowed: "more than nothing".into() });
        }
        if min_th >= max_th {
            return Err(ConfigError { key: "max_th", allowed: "more than min_th".into() });
        }
        Ok((min_th, max_th))
    }
}

impl Fred {
    /// The most packets that a flow may have queued.
    fn maxq(&self, avg: f64) -> f64 {
        if self.config.many_flow && avg >= self.max_th { 2.0 } else { self.min_th }
    }

    fn average(&mut self, now: Instant) {
        let avg = self.avg.sample(f64::from(self.queued), now);
        self.avgcq = per_flow(avg, self.flows.len());
    }
}

impl Policy for Fred {
    type Config = FredConfig;
    type Tag = Id;

    fn new(c: &FredConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        let (min_th, max_th) = c.thresholds(env)?;
        Ok(Self {
            config: c.clone(),
            min_q: f64::from(c.min_q),
            min_th,
            max_th,
            signal: Arrival::early(c.ecn),
            avg: Average::new(c.w_q, env.packet_time(), env.now),
            avgcq: 1.0,
            count: -1,
            queued: 0,
            flows: FlowTable::new(env.limit.max_packets(), rng),
            home: Home::default(),
        })
    }

    fn fits(c: &FredConfig, env: &Env) -> Result<(), ConfigError> {
        c.thresholds(env).map(drop)
    }

    fn retune(&mut self, with: Self, now: Instant) {
        self.avg.retune(&with.avg, now);
        self.config = with.config;
        (self.min_q, self.min_th, self.max_th) = (with.min_q, with.min_th, with.max_th);
    }

    #[inline(always)]
    fn on_arrival(&mut self, pkt: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        self.home = self.flows.home(pkt.flow);
        let present = self.flows.find_from(self.home, pkt.flow);
        let Flow { qlen, strikes } = present.map_or(Flow::default(), |id| self.flows[id]);
        let qlen = f64::from(qlen);
        if self.flows.is_empty() {
            self.avg.age(cx.now);
            self.avgcq = per_flow(self.avg.value, 0);
        }
        let avg = self.avg.value;
        if qlen >= self.maxq(avg)
            || (avg >= self.max_th && qlen > 2.0 * self.avgcq)
            || (qlen >= self.avgcq && strikes > 1)
        {
            if let Some(id) = present {
                self.flows[id].strikes = strikes.saturating_add(1);
            }
            return Arrival::Reject(Cause::Penalty);
        }
        if avg < self.min_th {
            self.count = -1;
        } else if avg < self.max_th {
            self.count += 1;
            if qlen >= self.avgcq.max(self.min_q) {
                let p_b = linear(avg, self.min_th, self.max_th, self.config.max_p);
                if cx.rng.chance(p_a(Spacing::Uniform, p_b, self.count as f64)) {
                    self.count = 0;
                    return self.signal;
                }
            }
        } else {
            self.count = 0;
            if !self.config.many_flow {
                return Arrival::Reject(Cause::Early);
            }
        }
        Arrival::Admit
    }

    #[inline]
    fn admitted(&mut self, pkt: &Meta, cx: &mut Cx<'_>) -> Id {
        // There is room for as many flows as packets.
        let id = self.flows.find_or_insert_from(self.home, pkt.flow).unwrap_or_default();
        self.average(cx.now);
        self.flows[id].qlen += 1;
        self.queued += 1;
        self.avg.admitted();
        id
    }

    #[inline]
    fn left(&mut self, _: &Meta, id: Id, exit: Exit, cx: &mut Cx<'_>) {
        self.queued -= 1;
        if exit == Exit::Sent {
            self.average(cx.now);
        }
        self.flows[id].qlen -= 1;
        if self.flows[id].qlen == 0 {
            self.flows.remove(id);
        }
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        self.avg.on_idle(cx.now);
    }

    fn rate_changed(&mut self, env: &Env) {
        self.avg.change(self.config.w_q, env.packet_time(), env.now);
        // Where a threshold that is given leaves no room at the new rate, the old ones stay.
        if let Ok(thresholds) = self.config.thresholds(env) {
            (self.min_th, self.max_th) = thresholds;
        }
    }

    fn congested(&self, _: &View<'_>, now: Instant) -> bool {
        self.avg.at(now) >= self.min_th
    }

    fn state(&self) -> State {
        State {
            per_flow: FlowTable::<Flow>::BYTES_PER_FLOW,
            flows: self.flows.capacity() as u64,
            ..State::of::<Self>(0)
        }
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let avg = self.avg.at(now);
        sink("avg", avg);
        sink("avgcq", if self.flows.is_empty() { per_flow(avg, 0) } else { self.avgcq });
        sink("maxq", self.maxq(avg));
        sink("flows", self.flows.len() as f64);
    }

    fn observe_flow(&self, pkt: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let flow = self.flows.find(pkt.flow).map_or(Flow::default(), |id| self.flows[id]);
        sink("flow_qlen", f64::from(flow.qlen));
        sink("flow_strikes", f64::from(flow.strikes));
        let avg = self.avg.at(now);
        let between = avg >= self.min_th && avg < self.max_th;
        let p_b = linear(avg, self.min_th, self.max_th, self.config.max_p);
        sink("p_b", if between { p_b } else { f64::from(u8::from(avg >= self.max_th)) });
        sink("count", (self.count + 1) as f64);
    }
}

/// The lesser of a quarter of the buffer and what the link sends in a round trip, in packets.
fn automatic_min_th(env: &Env, rtt: Duration) -> f64 {
    let buffer = env.limit.in_measure(Measure::Packets, env.mean_packet);
    (buffer / 4.0).min(rtt.as_nanos() as f64 / env.packet_time())
}

/// avgcq: the average queue of one of `flows`.
#[inline]
fn per_flow(avg: f64, flows: usize) -> f64 {
    (avg / flows.max(1) as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::{Fate, Lab, env, refused};
    use crate::units::Rate;

    type Story = Lab<Fred>;

    const HELD: Fate = Fate::Dropped(Cause::Penalty);

    /// Queues a packet of each flow, in order.
    fn queue(lab: &mut Story, flows: impl IntoIterator<Item = u64>) {
        for flow in flows {
            assert_eq!(lab.arrive_from(flow), Fate::Queued, "of flow {flow}");
        }
    }

    #[test]
    fn min_th_is_a_quarter_of_the_buffer_or_a_round_trip() {
        // 8 Mbit/s in packets of 1000 bytes: 1 a millisecond.
        for (buffer, ms, expected) in [(40, 100, 10.0), (4000, 100, 100.0), (4000, 20, 20.0)] {
            let min_th = automatic_min_th(&env(buffer), Duration::from_millis(ms));
            assert!((min_th - expected).abs() < 1e-9);
        }
        let fast = Env { rate: Rate::from_mbit(80), ..env(4000) };
        assert!((automatic_min_th(&fast, Duration::from_millis(20)) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn avgcq_by_hand() {
        for (avg, flows, expected) in [(12.0, 4, 3.0), (3.0, 4, 1.0), (3.0, 0, 3.0), (0.0, 0, 1.0)]
        {
            assert_eq!(per_flow(avg, flows), expected);
        }
    }

    #[test]
    fn a_flow_never_has_more_than_min_th_queued() {
        let mut lab = Story::new(100, &[("min_th", "3p")]);
        queue(&mut lab, [1; 3]);
        assert_eq!(lab.arrive_from(1), HELD);
        queue(&mut lab, [2; 3]);
        assert_eq!(lab.signal("flows"), 2.0);
    }

    /// Two strikes, and a flow may have no more queued than the average flow: here one packet, since
    /// the average is near 0 at the default weight.
    #[test]
    fn a_flow_with_strikes_gets_no_more_than_the_average_flow() {
        let mut lab = Story::new(100, &[("min_th", "3p")]);
        queue(&mut lab, [1, 1, 1, 2]);
        (0..2).for_each(|_| assert_eq!(lab.arrive_from(1), HELD));
        assert_eq!(lab.depart(), Some(0));
        assert_eq!(lab.arrive_from(1), HELD, "two queued, one is its share");
        queue(&mut lab, [2, 2]);
        assert_eq!(lab.depart(), Some(1));
        assert_eq!(lab.arrive_from(1), HELD);
        assert_eq!(lab.depart(), Some(2));
        queue(&mut lab, [1, 1, 1]);
        assert_eq!(lab.arrive_from(1), HELD, "forgotten while it was away: three again");
    }

    /// w_q = 1: the average is the queue before the last arrival, or after the last departure.
    #[test]
    fn only_robust_flows_are_dropped_at_random() {
        let settings =
            [("min_th", "4p"), ("max_th", "10p"), ("w_q", "1"), ("max_p", "1"), ("min_q", "2")];
        let mut lab = Story::new(100, &settings);
        queue(&mut lab, [1, 1, 1, 2, 3, 4, 5, 6]);
        // The average is 7, of six flows: avgcq is 7/6. Since it passed 4, three packets came, with
        // count = 0, 1, 2. The next two meet count = 3 at p_b = (7 − 4)/6 = ½ and count = 4 at ⅔:
        // a random drop is certain, for flows with two packets or more.
        assert_eq!((lab.signal("avg"), lab.signal("flows")), (7.0, 6.0));
        assert!((lab.signal("avgcq") - 7.0 / 6.0).abs() < 1e-12);
        assert_eq!(lab.arrive_from(2), Fate::Queued, "one queued, two are safe");
        assert_eq!(lab.arrive_from(1), Fate::Marked, "three queued");
    }

    #[test]
    fn above_max_th_all_are_dropped_but_in_two_packet_mode_two_may_stay() {
        let settings = [("min_th", "4p"), ("max_th", "5p"), ("w_q", "1"), ("max_p", "0")];
        let mut lab = Story::new(100, &settings);
        queue(&mut lab, 1..=6);
        assert_eq!(lab.arrive_from(7), Fate::Dropped(Cause::Early));
        let mut lab = Story::new(100, &[&settings[..], &[("many_flow", "true")]].concat());
        queue(&mut lab, 1..=6);
        assert_eq!(lab.signal("maxq"), 2.0);
        queue(&mut lab, (1..=6).chain([7]));
        assert_eq!(lab.arrive_from(1), HELD);
    }

    /// w_q = ½.
    #[test]
    fn the_average_knows_departures_and_not_drops() {
        let mut lab = Story::new(100, &[("min_th", "2p"), ("max_th", "9p"), ("w_q", "0.5")]);
        queue(&mut lab, [1, 1]);
        // The idle link gave 0; then ½·0 + ½·1.
        assert_eq!(lab.signal("avg"), 0.5);
        (0..5).for_each(|_| assert_eq!(lab.arrive_from(1), HELD));
        assert_eq!(lab.signal("avg"), 0.5);
        lab.depart();
        assert_eq!(lab.signal("avg"), 0.75, "one is left");
        lab.depart();
        assert_eq!(lab.signal("avg"), 0.375);
        lab.depart();
        lab.wait_ms(2);
        assert!((lab.signal("avg") - 0.375 / 4.0).abs() < 1e-12, "idle time halves it each packet");
    }

    #[test]
    fn settings_that_do_not_fit_together_are_refused() {
        assert_eq!(refused::<Fred>(&[("min_th", "0p")]).key, "min_th");
        assert_eq!(refused::<Fred>(&[("min_th", "5p"), ("max_th", "5p")]).key, "max_th");
    }
}
