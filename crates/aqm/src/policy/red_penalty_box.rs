//! RED with a penalty box (Floyd and Fall 1997, "FF97"; Feng02 §V.A).
//!
//! RED signals a flow by its share of the traffic, so a log of RED's signals tells who sends how
//! much without a table of all flows. A flow that sends more than TCP would at that rate of signals
//! goes into the box, where it gets a fixed rate. In our words:
//!
//! ```text
//! a packet arrives:
//!     its flow is in the box:  drop it if the flow (or the box) is beyond penalty_rate
//!     RED decides (red.rs);  a signal to a flow outside the box is logged
//! the log is full; k of its n signals are a flow's; N packets with b bytes came in its time T:
//!     p := n/N                                  the rate of signals
//!     r := k/n · 8b/T                           what the flow sent, in bit/s
//!     r > 8·B·√(1.5/p)/R:  into the box         more than a TCP with packets of B and round trips R
//!     empty the log
//! ```
//!
//! Points where the sources leave a choice:
//! - All flows of the log are tested, not only the one with most signals. R is `rtt`, B the mean
//!   packet. Nothing is tested when no time has passed.
//! - The log holds RED's signals, drops and marks. Packets for which the buffer had no room are not
//!   logged: they are no sample of the traffic.
//! - A packet of the box that is within the rate is RED's like any other, but not logged or counted.
//!   One that is beyond it has not come as far as RED, and its average does not know it.
//! - The limit is a packet in the time that it takes at `penalty_rate`, without bursts.
//! - Feng02 says that flows stay in the box. `release` lets one out at its first packet after such
//!   a time in which it sent no more than was TCP-friendly at the last test. To make room in a full
//!   box it also lets out one that is silent. In a full box with no such flow there is no room for another.
//! - FF97's other tests (unresponsive, high bandwidth) are not made.

use alloc::vec::Vec;

use super::red::{self, RedConfig, RedCore, RedParams, as_red};
use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family, Signal, joined};
use crate::context::{Cause, State};
use crate::flow_table::{FlowTable, Id};
use crate::packet::{FlowKey, Meta};
use crate::param::{ConfigError, choice, params};
use crate::response;
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// What red-penalty-box tells of itself.
pub const ABOUT: About = About {
    name: "red-penalty-box",
    family: Family::Flows,
    summary: "RED that limits flows which send more than TCP would, found in a log of its signals.",
    source: "FF97; Feng02 §V.A",
    rule: "RED decides by the average queue; flows with more signals in its log than a TCP would \
        have go into the box, where each packet above penalty_rate is dropped (FF97)",
    causes: &[(Cause::Penalty, "its flow is in the penalty box and sends above penalty_rate")],
    unmarked: red::ABOUT.unmarked,
    signals: &joined::<_, 6>(
        red::SIGNALS,
        &[
            Signal { name: "boxed", unit: "", doc: "flows in the box" },
            Signal { name: "friendly", unit: "bit/s", doc: "TCP-friendly rate at the last test" },
        ],
    ),
    live: &joined::<_, 7>(red::LIVE, &["rtt", "penalty_rate"]),
    ..About::NEW
};

params! {
    /// Parameters of RED with a penalty box.
    pub struct RedPenaltyBoxConfig {
        /// Signals in the log; when it is full, flows are tested.
        log: u32 = 100, in 1..=100_000, "Feng02 §V.A (value ours)";
        /// Round-trip time of the TCP that flows are compared with (R).
        rtt: Duration = Duration::from_millis(40), in Duration::from_micros(1)..=Duration::from_secs(3600), "FF97 §3.1 (value of Mahajan01 §6)";
        /// Flows that the box has room for.
        boxes: u32 = 100, in 1..=1_000_000, "value ours";
        /// Whether the flows in the box have one limit together, or one each.
        penalty: Penalty = Penalty::Common, "Feng02 §V.A";
        /// The rate to which they are limited.
        penalty_rate: Rate = PENALTY_RATE, "Feng02 §IV.B, for SFB";
        /// A flow leaves the box after so long a time in which it was TCP-friendly; `none`: it
        /// stays.
        release: Option<Duration> = None, "Feng02 §V.A";
        ..red: RedConfig = RedConfig::feng(), by "Feng02 Table I (R2)";
    }
}

const PENALTY_RATE: Rate = Rate::new(160_000).unwrap();

choice! {
    /// Whether the flows in the box have one limit together, or one each.
    pub enum Penalty {
        /// Together.
        Common = "common",
        /// One each.
        PerFlow = "per-flow",
    }
}

/// A flow in the box.
#[derive(Clone, Copy, Default, Debug)]
struct Boxed {
    /// When its next packet is within the limit.
    free: Instant,
    /// Start of the time after which it may be released.
    since: Instant,
    /// Bytes that arrived since then.
    bytes: u64,
}

/// The policy of RED with a penalty box.
#[derive(Clone, Debug)]
pub struct RedPenaltyBox {
    core: RedCore,
    config: RedPenaltyBoxConfig,
    mean_packet: u32,
    /// Flows of the signals since `since`; grows to its capacity.
    log: Vec<FlowKey>,
    since: Instant,
    /// Packets and bytes of flows outside the box since `since`.
    packets: u64,
    bytes: u64,
    /// What was TCP-friendly at the last test, in bit/s.
    friendly: f64,
    boxed: FlowTable<Boxed>,
    /// When the next packet of any flow in the box is within the common limit.
    free: Instant,
}

impl RedPenaltyBox {
    /// Whether a flow may leave the box.
    fn reformed(&self, flow: &Boxed, now: Instant) -> bool {
        let elapsed = now.since(flow.since);
        self.config.release.is_some_and(|release| elapsed >= release)
            && flow.bytes as f64 * 8.0 <= self.friendly * elapsed.as_secs_f64()
    }

    /// A packet of a flow in the box arrives: whether its flow is released.
    fn released(&mut self, id: Id, len: u32, now: Instant) -> bool {
        if self.reformed(&self.boxed[id], now) {
            self.boxed.remove(id);
            return true;
        }
        let flow = &mut self.boxed[id];
        if self.config.release.is_some_and(|release| now.since(flow.since) >= release) {
            (flow.since, flow.bytes) = (now, 0);
        }
        flow.bytes += u64::from(len);
        false
    }

    /// Whether a packet of the box is within the limit.
    fn within_limit(&mut self, id: Id, len: u32, now: Instant) -> bool {
        let free = match self.config.penalty {
            Penalty::Common => &mut self.free,
            Penalty::PerFlow => &mut self.boxed[id].free,
        };
        let within = *free <= now;
        if within {
            *free = now + self.config.penalty_rate.transmission(u64::from(len));
        }
        within
    }

    fn signalled(&mut self, flow: FlowKey, now: Instant) {
        self.log.push(flow);
        if self.log.len() < self.config.log as usize {
            return;
        }
        let elapsed = now.since(self.since).as_secs_f64();
        if elapsed > 0.0 {
            let signals = self.log.len() as f64;
            let p = signals / self.packets as f64;
            self.friendly = friendly(self.mean_packet, self.config.rtt, p);
            self.log.sort_unstable();
            let mut rest = 0;
            while rest < self.log.len() {
                let flow = self.log[rest];
                let mine = self.log[rest..].iter().take_while(|&&other| other == flow).count();
                if mine as f64 / signals * self.bytes as f64 * 8.0 / elapsed > self.friendly {
                    self.punish(flow, now);
                }
                rest += mine;
            }
        }
        self.log.clear();
        (self.since, self.packets, self.bytes) = (now, 0, 0);
    }

    /// Puts a flow into the box, if there is room.
    fn punish(&mut self, flow: FlowKey, now: Instant) {
        if self.boxed.len() == self.boxed.capacity() {
            let silent = self.boxed.iter().filter(|(_, _, boxed)| self.reformed(boxed, now));
            match silent.min_by_key(|(_, flow, boxed)| (boxed.since, *flow)) {
                Some((id, ..)) => _ = self.boxed.remove(id),
                None => return,
            }
        }
        if let Some(id) = self.boxed.find_or_insert(flow) {
            self.boxed[id] = Boxed { free: now, since: now, bytes: 0 };
        }
    }
}

impl Policy for RedPenaltyBox {
    type Config = RedPenaltyBoxConfig;
    type Tag = ();

    fn new(c: &RedPenaltyBoxConfig, env: &Env, rng: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self {
            core: RedCore::new(RedParams::new(&c.red, env)?, c.red.max_p, env.now),
            config: c.clone(),
            mean_packet: env.mean_packet,
            log: Vec::with_capacity(c.log as usize),
            since: env.now,
            packets: 0,
            bytes: 0,
            friendly: 0.0,
            boxed: FlowTable::new(c.boxes, rng),
            free: env.now,
        })
    }

    fn retune(&mut self, with: Self, now: Instant) {
        self.core.retune(with.core, now);
        self.config = with.config;
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let mut boxed = false;
        if !self.boxed.is_empty()
            && let Some(id) = self.boxed.find(pkt.flow)
        {
            boxed = !self.released(id, pkt.len, cx.now);
            if boxed && !self.within_limit(id, pkt.len, cx.now) {
                return Arrival::Reject(Cause::Penalty);
            }
        }
        self.core.average(q, cx.now);
        let answer = self.core.judge(pkt, q, cx);
        if !boxed {
            self.packets += 1;
            self.bytes += u64::from(pkt.len);
            if answer != Arrival::Admit {
                self.signalled(pkt.flow, cx.now);
            }
        }
        answer
    }

    as_red!(core);

    fn state(&self) -> State {
        State {
            per_flow: FlowTable::<Boxed>::BYTES_PER_FLOW,
            flows: self.boxed.capacity() as u64,
            ..State::of::<Self>(self.log.capacity() * size_of::<FlowKey>())
        }
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        self.core.observe(now, sink);
        sink("boxed", self.boxed.len() as f64);
        sink("friendly", self.friendly);
    }
}

/// What a TCP sends at most with packets of `packet` bytes, in bit/s (FF97 §3.1, eq. 1, which writes
/// √1.5 as 1.22).
fn friendly(packet: u32, rtt: Duration, p: f64) -> f64 {
    8.0 * f64::from(packet) * response::square_root(p, rtt.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::{Fate, Lab};

    const KILLED: Fate = Fate::Dropped(Cause::Penalty);

    #[test]
    fn the_tcp_friendly_rate_by_hand() {
        // 8·1000·√150/0.1 = 979.8 kbit/s; a quarter of the signals doubles it.
        for (ms, p, expected) in [(100, 0.01, 979.8), (100, 0.0025, 1959.6), (50, 0.01, 1959.6)] {
            let rate = friendly(1000, Duration::from_millis(ms), p) / 1e3;
            assert!((rate - expected).abs() < 0.1, "{rate}");
        }
    }

    /// RED that marks everything that finds a queue, 1 ms between packets, a round trip of 20 ms. In a
    /// log of 20 signals, 20 ms long, 21 packets arrive: p = 20/21, 8000·√(1.5/p)/0.02 = 502 kbit/s
    /// are friendly, 8.4 Mbit/s arrive. A flow with two signals sends 840 kbit/s, one with one 420.
    fn story(settings: &[(&str, &str)]) -> Lab<RedPenaltyBox> {
        let red = [("w_q", "1"), ("min_th", "0p"), ("max_th", "0.0001%"), ("max_p", "1")];
        let ours = [("log", "20"), ("rtt", "20ms"), ("penalty_rate", "800kbit")];
        Lab::new(100, &[&red[..], &ours, settings].concat())
    }

    /// A packet of the flow after a millisecond; one leaves.
    fn next(lab: &mut Lab<RedPenaltyBox>, flow: u64) -> Fate {
        lab.wait_ms(1);
        let fate = lab.arrive_from(flow);
        lab.depart();
        fate
    }

    /// Fills the log: flow 1 sends six packets, flow 2 two, and twelve others one each.
    fn fill_log(lab: &mut Lab<RedPenaltyBox>) {
        lab.arrive_from(0);
        for flow in [1, 1, 1, 1, 1, 1, 2, 2].into_iter().chain(10..22) {
            assert_eq!(next(lab, flow), Fate::Marked, "flow {flow}");
        }
    }

    #[test]
    fn flows_that_send_more_than_tcp_go_into_the_box_and_no_other() {
        let mut lab = story(&[]);
        fill_log(&mut lab);
        assert_eq!(lab.signal("boxed"), 2.0);
        assert!((lab.signal("friendly") - 501_996.0).abs() < 1.0);
        // 800 kbit/s are a packet each 10 ms, for both together.
        for i in 0..11 {
            assert_eq!(next(&mut lab, 1 + i % 2) == KILLED, i % 10 != 0, "{i}");
        }
        assert_ne!(next(&mut lab, 10), KILLED, "outside");
    }

    #[test]
    fn each_flow_may_have_a_limit_of_its_own() {
        let mut lab = story(&[("penalty", "per-flow")]);
        fill_log(&mut lab);
        let killed = [1, 2, 1, 2].map(|flow| next(&mut lab, flow) == KILLED);
        assert_eq!(killed, [false, false, true, true]);
    }

    #[test]
    fn a_flow_stays_in_the_box_unless_there_is_a_release() {
        for (release, boxed) in [("none", 2.0), ("100ms", 1.0)] {
            let mut lab = story(&[("release", release)]);
            fill_log(&mut lab);
            lab.wait_ms(100);
            lab.arrive_from(1);
            assert_eq!(lab.signal("boxed"), boxed);
        }
    }

    /// 502 kbit/s are 6.3 packets in 100 ms: ten are too many, and the time begins anew.
    #[test]
    fn a_flow_is_released_after_a_time_in_which_it_was_friendly() {
        let mut lab = story(&[("release", "100ms")]);
        fill_log(&mut lab);
        for (packets, boxed) in [(10, 2.0), (10, 2.0), (5, 2.0), (1, 1.0)] {
            (0..packets).for_each(|_| _ = lab.arrive_from(1));
            assert_eq!(lab.signal("boxed"), boxed);
            lab.wait_ms(100);
        }
    }

    #[test]
    fn a_full_box_has_room_only_in_place_of_a_silent_flow() {
        for (release, killed) in [("none", false), ("50ms", true)] {
            let mut lab = story(&[("boxes", "1"), ("release", release)]);
            fill_log(&mut lab);
            assert_eq!(lab.signal("boxed"), 1.0);
            lab.wait_ms(100);
            for flow in [3, 3, 3, 3, 3, 3, 3, 3].into_iter().chain(10..22) {
                next(&mut lab, flow);
            }
            assert_eq!(lab.signal("boxed"), 1.0);
            next(&mut lab, 3);
            assert_eq!(next(&mut lab, 3) == KILLED, killed, "{release}");
        }
    }
}
