//! CoDel: controlled delay (RFC 8289).
//!
//! The delay of the packet at the head tells a good queue, which absorbs a burst and drains, from a
//! bad one, which stands. If every packet has waited `target` or more for a whole `interval`, one is
//! signalled, and then others at growing frequency until the delay falls below `target`. After the
//! n-th the next comes interval/√n later, which moves the rate of a TCP flow about linearly.
//!
//! ```text
//! a packet is about to be sent; it waited d, and leaves b bytes behind:
//!     d < target or b ≤ mtu:   first_above := none
//!     first_above is none:     first_above := now + interval
//!     persistent := first_above was there, and now ≥ first_above
//!   dropping, not persistent:  dropping := false;  send
//!   dropping:   now ≥ drop_next:  signal;  count += 1
//!               if a drop:  ask about the next packet, and if still persistent
//!               drop_next := drop_next + interval/√count;  again, or send
//!   otherwise, if persistent:  signal;  dropping := true
//!               delta := count − lastcount
//!               count := delta if delta > 1 and now − drop_next < 16·interval, else 1
//!               lastcount := count;  drop_next := now + interval/√count
//! the queue is empty:          first_above := none;  dropping := false
//! ```
//!
//! Where the RFC is silent:
//! - A mark counts as the signal in place of a drop. The packet is sent, so that there is at most
//!   one mark in a question of the transmitter, and the next is scheduled at once.
//! - `drop_next` may lie in the future when the state is entered anew: as near as can be.
//! - Overflow is a tail drop and leaves the state alone. (Linux's FQ-CoDel counts what the longest queue
//!   then drops at its head as signals: `overflow_counts`.)
//!
//! Linux finds 1/√count by one step of Newton's method a signal, in 16 bits, from what it was before
//! (`root = "newton"`). After the second signal that is 1/2, not 0.71: the third comes sooner. Before the first
//! it is 0, and remains so if overflows have counted: then each signal moves `drop_next` by a unit of 1024 ns
//! only, and every packet that waited too long is signalled.
//!
//! Linux signals after more than an interval (`grace`), and since 7.2 drops 256 packets at once at most
//! (`drops_at_once`).

use super::{Cx, Departure, Env, Policy, Victim, View};
use crate::about::{About, Family, Labels, Signal};
use crate::context::Cause;
use crate::packet::{DsField, Meta};
use crate::param::{ConfigError, choice, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// What codel tells of itself.
pub const ABOUT: About = About {
    name: "codel",
    family: Family::Delay,
    summary: "Signals at departure, ever faster while every packet has waited too long.",
    source: "RFC 8289",
    rule: "CoDel signals at departure once every packet has waited longer than target for an \
        interval, then ever faster: the next after interval/√count (RFC 8289 §5)",
    signals: &[
        Signal { name: "sojourn", unit: "s", doc: "delay of the last packet at the head" },
        Signal { name: "count", unit: "", doc: "the control law's count of signals" },
        Signal { name: "dropping", unit: "", doc: "1 in the dropping state, else 0" },
    ],
    presets: &[("linux", &[("grace", "1ns"), ("drops_at_once", "256")])],
    labels: Labels { codepoints: true, with: "ce_threshold_selector", ..Labels::NONE },
    live: &["target", "interval", "ce_threshold"],
    ..About::NEW
};

params! {
    /// Parameters of CoDel.
    pub struct CodelConfig {
        /// Acceptable standing delay.
        target: Duration = Duration::from_millis(5), in Duration::ZERO..=Duration::from_secs(3600), "RFC 8289 §4.4";
        /// How long the delay may stay at target or above; about the round trip of most flows.
        interval: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), "RFC 8289 §4.3";
        /// Extra time beyond `interval` before the first signal; Linux: 1 ns.
        grace: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(3600), "Linux";
        /// CoDel never signals while at most this many bytes stay queued; `none`: 1514, or the mean packet if
        /// that is longer.
        mtu: Option<u32> = None, in 0..=65_535, "RFC 8289 §5.1; Linux";
        /// Whether CoDel's signals mark ECN-capable packets; `false`: every signal is a drop. `ce_threshold` marks
        /// all the same, as in Linux.
        ecn: bool = true, "RFC 8289 §3";
        /// ECN-capable packets that waited longer are all marked; `none`: no such rule.
        ce_threshold: Option<Duration> = None, in Duration::ZERO..=Duration::from_secs(3600), "RFC 8290 §5.2.7";
        /// The packets that `ce_threshold` is for, by their DS field: `0x1/0x3` is ECT(1), `0xb8/0xfc` EF;
        /// `none`: all.
        ce_threshold_selector: Option<DsField> = None, "Linux", with ce_threshold != "none";
        /// Whether an overflow counts as a signal, so that the next come sooner.
        overflow_counts: bool = false, "Linux sch_fq_codel";
        /// Most packets that CoDel drops in a row. After so many it sends one, and the next signal comes
        /// interval/√count later; `none`: no limit.
        drops_at_once: Option<u32> = None, in 1..=1_000_000, "Linux";
        /// How 1/√count is found.
        root: Root = Root::Exact, "RFC 8289 §5.4; Linux";
    }
}

choice! {
    /// How CoDel finds 1/√count.
    pub enum Root {
        /// Exactly.
        Exact = "exact",
        /// By a step of Newton's method a signal, as Linux does.
        Newton = "newton",
    }
}

/// The CoDel policy.
#[derive(Clone, Debug)]
pub struct Codel {
    config: CodelConfig,
    /// A queue of so many bytes is never signalled.
    mtu: u32,
    /// Until when the delay has to stay at target or above to be persistent.
    first_above: Option<Instant>,
    /// When the next signal is due, while `dropping`.
    drop_next: Instant,
    /// Signals in this dropping state, and what it began with.
    count: u32,
    lastcount: u32,
    /// 1/√count as Linux has it, in 1/65536.
    root: u16,
    dropping: bool,
    /// Whether `drop_next` waits for what the packet behind a drop says.
    unscheduled: bool,
    /// Packets dropped since one was sent, while `dropping`.
    drops: u32,
    /// Delay of the last packet asked about.
    sojourn: Duration,
}

impl Policy for Codel {
    type Config = CodelConfig;
    type Tag = ();

    fn new(config: &CodelConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self {
            config: config.clone(),
            mtu: env.longest(config.mtu),
            first_above: None,
            drop_next: env.now,
            count: 0,
            lastcount: 0,
            root: 0,
            dropping: false,
            unscheduled: false,
            drops: 0,
            sojourn: Duration::ZERO,
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        *self = Self {
            first_above: self.first_above,
            drop_next: self.drop_next,
            count: self.count,
            lastcount: self.lastcount,
            root: self.root,
            dropping: self.dropping,
            unscheduled: self.unscheduled,
            drops: self.drops,
            sojourn: self.sojourn,
            ..with
        };
    }

    #[inline(always)]
    fn on_departure(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        self.sojourn = cx.now.since(pkt.arrived);
        let persistent = self.persistent(q.backlog().bytes, cx.now);
        let signal = self.signal_is_due(persistent, cx.now);
        let capable = pkt.ecn.capable();
        if signal && self.config.ecn && capable {
            self.schedule();
            self.drops = 0;
            Departure::Signal(Cause::Early)
        } else if signal {
            Departure::Drop(Cause::Early)
        } else if capable
            && self.config.ce_threshold.is_some_and(|t| self.sojourn > t)
            && self.config.ce_threshold_selector.is_none_or(|field| field.matches(pkt))
        {
            Departure::Signal(Cause::Early)
        } else {
            Departure::Send
        }
    }

    fn on_overflow(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> Victim {
        self.count = self.count.saturating_add(u32::from(self.config.overflow_counts));
        Victim::Arriving
    }

    fn on_idle(&mut self, _: &mut Cx<'_>) {
        self.first_above = None;
        self.leave();
    }

    /// With `backlog = all-stale` an empty queue does not end its being above target.
    fn on_turn(&mut self, _: &mut Cx<'_>) {
        self.leave();
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("sojourn", self.sojourn.as_secs_f64());
        sink("count", f64::from(self.count));
        sink("dropping", f64::from(u8::from(self.dropping)));
    }

    fn observe_flow(&self, _: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        // As in the RFC's code 0 stands for no such time.
        sink("first_above_s", self.first_above.map_or(0.0, seconds));
        sink("drop_next_s", if self.dropping { seconds(self.drop_next) } else { 0.0 });
        sink("lastcount", f64::from(self.lastcount));
    }
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

impl Codel {
    /// Whether the delay has been at target or above for an interval, when a packet leaves `behind`
    /// bytes.
    #[inline]
    fn persistent(&mut self, behind: u64, now: Instant) -> bool {
        if self.sojourn < self.config.target || behind <= u64::from(self.mtu) {
            self.first_above = None;
        } else if let Some(first_above) = self.first_above {
            return now >= first_above;
        } else {
            self.first_above = Some(now + self.config.interval + self.config.grace);
        }
        false
    }

    #[inline]
    fn signal_is_due(&mut self, persistent: bool, now: Instant) -> bool {
        if !persistent {
            self.leave();
            return false;
        }
        if !self.dropping {
            self.enter(now);
            return true;
        }
        self.schedule();
        if now < self.drop_next {
            self.drops = 0;
            return false;
        }
        if self.config.drops_at_once == Some(self.drops) {
            self.drops = 0;
            self.drop_next = self.after(now);
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.root = newton(self.root, self.count);
        self.drops = self.drops.saturating_add(1);
        self.unscheduled = true;
        true
    }

    /// The first signal. The frequency of the last dropping state, if that was recent, is a good one
    /// to begin with.
    #[inline(never)]
    fn enter(&mut self, now: Instant) {
        let delta = self.count - self.lastcount;
        let recent = now.since(self.drop_next) < self.config.interval * 16;
        if delta > 1 && recent {
            self.count = delta;
            self.root = newton(self.root, delta);
        } else {
            self.count = 1;
            self.root = u16::MAX;
        }
        self.lastcount = self.count;
        self.dropping = true;
        self.drop_next = self.after(now);
    }

    fn leave(&mut self) {
        self.dropping = false;
        self.unscheduled = false;
        self.drops = 0;
    }

    #[inline]
    fn schedule(&mut self) {
        if self.unscheduled {
            self.drop_next = self.after(self.drop_next);
        }
        self.unscheduled = false;
    }

    /// When the signal after the one at `t` is due.
    fn after(&self, t: Instant) -> Instant {
        match self.config.root {
            Root::Exact => control_law(t, self.config.interval, self.count),
            Root::Newton => linux_law(t, self.config.interval, self.root),
        }
    }
}

/// When the signal after the one at `t` is due, the `count`-th (RFC 8289 §5.4).
fn control_law(t: Instant, interval: Duration, count: u32) -> Instant {
    let gap = interval.as_nanos() as f64 / libm::sqrt(f64::from(count));
    t + Duration::from_nanos((gap as u64).max(1))
}

/// When the signal after the one at `t` is due by Linux's root, in its units of 1024 ns, of which it is one at
/// least.
fn linux_law(t: Instant, interval: Duration, root: u16) -> Instant {
    let units = ((interval.as_nanos() >> 10) * u64::from(root)) >> 16;
    t + Duration::from_nanos(units.max(1) << 10)
}

/// A step from `root` towards 1/√count, `root`·(3 − count·`root`²)/2, in 1/65536.
fn newton(root: u16, count: u32) -> u16 {
    let root = u64::from(root) << 16;
    let square = (root * root) >> 32;
    // Where count is much too great for the root, it wraps, as there.
    let step = (3u64 << 32).wrapping_sub(u64::from(count) * square) >> 2;
    (step.wrapping_mul(root) >> 47) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::policy::lab::{Fate, Lab};
    use crate::qdisc::Qdisc as _;
    use std::vec::Vec;

    type Story = Lab<Codel>;

    /// Sends a packet a millisecond for `ms`, replacing what goes with packets of `ecn`; when
    /// signals came, in milliseconds of the clock.
    fn signals(lab: &mut Story, ms: u64, ecn: Ecn) -> Vec<u64> {
        let count = |lab: &Story| {
            let c = lab.queue.counters();
            c.all_dropped().packets + c.all_marked().packets
        };
        let (mut times, standing) = (Vec::new(), lab.backlog().packets);
        for _ in 0..ms {
            let before = count(lab);
            lab.depart();
            times.extend((before..count(lab)).map(|_| lab.now.as_nanos() / 1_000_000));
            while lab.backlog().packets < standing {
                lab.arrive_as(1000, ecn);
            }
            lab.wait_ms(1);
        }
        times
    }

    /// 1; 1·(3 − 2)/2 = 0.5; 0.5·(3 − 3/4)/2 = 0.5625; 0.5625·(3 − 4·0.3164)/2 = 0.4878. So the
    /// signals behind the first, at 105 ms, come 100, 50, 56.25 and 48.78 ms after one another, at 360.03
    /// the last, and are met by the next whole millisecond.
    #[test]
    fn newton_s_roots_by_hand() {
        let mut root = u16::MAX;
        for (count, expected) in [(2, 0.5), (3, 0.5625), (4, 0.487_8)] {
            root = newton(root, count);
            assert!((f64::from(root) / 65_536.0 - expected).abs() < 1e-4, "{count}: {root}");
        }
        let mut lab = forty(&[("root", "newton")], Ecn::NotEct);
        assert_eq!(signals(&mut lab, 380, Ecn::NotEct), [105, 205, 255, 312, 361]);
    }

    /// Marks at 105 and 205 ms, and a drop at 255, which leaves no more than the MTU and so ends the dropping
    /// state: the root is 0.5625 then, whatever comes. Taken up again 101 ms later with count = 3 − 1 it is
    /// 0.5625·(3 − 2·0.3164)/2 = 0.6658, so that the next signal comes 66.6 ms after that.
    #[test]
    fn a_signal_that_ends_the_dropping_state_moves_newton_s_root() {
        let mut lab = forty(&[("root", "newton"), ("mtu", "38500")], Ecn::Ect0);
        assert_eq!(signals(&mut lab, 210, Ecn::Ect0), [105, 205]);
        assert_eq!(signals(&mut lab, 46, Ecn::NotEct), [255]);
        assert_eq!((lab.signal("count"), lab.signal("dropping")), (3.0, 0.0));
        assert_eq!(signals(&mut lab, 200, Ecn::Ect0), [356, 423]);
    }

    /// An interval of less than a unit of Linux's time counts as one, 1.024 µs, or all packets that wait would be
    /// due at once. One that leaves 10 µs after the first drop owes nine: at 1.024 µs, …, 9.216 µs.
    #[test]
    fn newton_s_gap_is_a_unit_of_time_at_least() {
        let mut lab = forty(&[("root", "newton"), ("interval", "1us")], Ecn::NotEct);
        lab.wait_ms(6);
        lab.depart();
        lab.wait_ms(1);
        assert!(lab.depart().is_some());
        assert_eq!(lab.dropped().len(), 1);
        lab.wait(Duration::from_micros(10));
        assert!(lab.depart().is_some());
        assert_eq!(lab.dropped().len(), 1 + 9);
    }

    /// The first packet that waited 5 ms leaves at 5 ms, the next exactly an interval later: Linux wants more.
    #[test]
    fn linux_signals_after_more_than_an_interval() {
        for (settings, late, signals) in
            [(&[][..], 0, 1.0), (ABOUT.presets[0].1, 0, 0.0), (ABOUT.presets[0].1, 1, 1.0)]
        {
            let mut lab = forty(settings, Ecn::Ect0);
            lab.wait_ms(5);
            lab.depart();
            lab.wait(Duration::from_millis(100) + Duration::from_nanos(late));
            lab.depart();
            assert_eq!(lab.signal("dropping"), signals, "{late}");
        }
    }

    /// A link that stood still for 8 s owes more signals than its 1000 packets. Linux drops 256 of them, sends
    /// one, and begins anew: the next is due 100/√257 = 6.2 ms later, by the RFC until two are left.
    #[test]
    fn linux_drops_256_packets_at_once_at_most() {
        for (settings, at_once, later) in
            [(&[][..], 998, [0, 0]), (ABOUT.presets[0].1, 256, [0, 1])]
        {
            let mut lab = Story::new(1000, settings);
            let fill = |lab: &mut Story| {
                while lab.backlog().packets < 1000 {
                    lab.arrive_as(1000, Ecn::NotEct);
                }
            };
            fill(&mut lab);
            signals(&mut lab, 107, Ecn::NotEct);
            assert_eq!((lab.signal("dropping"), lab.dropped().len()), (1.0, 1));
            lab.wait_ms(8000);
            let dropped = |lab: &mut Story| {
                let before = lab.dropped().len();
                lab.depart();
                lab.dropped().len() - before
            };
            assert_eq!(dropped(&mut lab), at_once);
            for (ms, expected) in [6, 1].into_iter().zip(later) {
                lab.wait_ms(ms);
                assert_eq!(dropped(&mut lab), expected, "{ms} ms later");
            }
        }
    }

    /// Ten overflows make the second signal come 100/√(1 + 10 …) ms after the first: a dropping state that
    /// begins counts from what was counted before.
    #[test]
    fn overflows_count_as_signals_if_asked() {
        for (counts, gap) in [("false", 100), ("true", 32)] {
            let mut lab = Story::new(40, &[("overflow_counts", counts)]);
            (0..50).for_each(|_| _ = lab.arrive_as(1000, Ecn::NotEct));
            assert_eq!(lab.dropped().len(), 10);
            let times = signals(&mut lab, 210, Ecn::NotEct);
            assert_eq!(times[1] - times[0], gap, "{times:?}");
        }
    }

    /// A queue of 40 packets, 40 ms, that arrived at once.
    fn forty(settings: &[(&str, &str)], ecn: Ecn) -> Story {
        let mut lab = Story::new(1000, settings);
        (0..40).for_each(|_| assert_eq!(lab.arrive_as(1000, ecn), Fate::Queued));
        lab
    }

    /// 100/√n: 100, 70.711, 57.735, 50, 10 ms.
    #[test]
    fn the_control_law_by_hand() {
        for (count, us) in [(1, 100_000), (2, 70_710), (3, 57_735), (4, 50_000), (100, 10_000)] {
            let next = control_law(Instant::ZERO, Duration::from_millis(100), count);
            assert_eq!(next.as_nanos() / 1000, us, "{count}");
        }
    }

    /// Forty packets stand for 40 ms each. The first packet that waited 5 ms or more leaves at 5 ms,
    /// the first signal is an interval later, 105 ms. Then drop_next runs through 105 + 100 = 205,
    /// + 100/√2 = 275.71, + 100/√3 = 333.45, + 50 = 383.45, + 44.72 = 428.17, + 40.82 = 468.99,
    /// + 37.80 = 506.79; each is met by the next whole millisecond.
    #[test]
    fn signals_come_at_the_times_of_the_control_law() {
        for ecn in [Ecn::NotEct, Ecn::Ect0] {
            let mut lab = forty(&[], ecn);
            let times = signals(&mut lab, 510, ecn);
            assert_eq!(times, [105, 205, 276, 334, 384, 429, 469, 507], "{ecn:?}");
        }
    }

    #[test]
    fn a_burst_that_drains_within_an_interval_is_not_signalled() {
        let mut lab = Story::new(1000, &[]);
        (0..99).for_each(|_| _ = lab.arrive());
        while lab.depart().is_some() {
            lab.wait_ms(1);
        }
        assert!(lab.dropped().is_empty());
        assert_eq!(lab.signal("sojourn"), 0.098);
    }

    #[test]
    fn a_queue_of_one_packet_is_let_alone_however_slow_the_link() {
        let mut lab = Story::new(10, &[]);
        lab.arrive();
        lab.arrive();
        for _ in 0..50 {
            lab.wait_ms(100);
            lab.depart();
            assert_eq!(lab.arrive(), Fate::Queued);
        }
        assert_eq!(lab.signal("dropping"), 0.0);
        // With three there is always more than a packet behind.
        lab.arrive();
        for _ in 0..5 {
            lab.wait_ms(100);
            lab.depart();
            lab.arrive();
        }
        assert_eq!(lab.signal("dropping"), 1.0);
    }

    /// As above up to 384 ms with count = 5. The queue runs empty, fills again at once and is above
    /// target from 5 ms after that on; a warm start has count = 5 − 1 = 4, and its second signal
    /// comes 100/√4 = 50 ms after the first. Sixteen intervals later it is a cold start: 100 ms.
    #[test]
    fn a_recent_dropping_state_is_taken_up_where_it_was() {
        for (pause, gap) in [(0, 50), (1600, 100)] {
            let mut lab = forty(&[], Ecn::NotEct);
            assert_eq!(signals(&mut lab, 400, Ecn::NotEct).len(), 5);
            assert_eq!(lab.signal("count"), 5.0);
            while lab.depart().is_some() {}
            assert_eq!(lab.signal("dropping"), 0.0);
            lab.wait_ms(pause);
            (0..40).for_each(|_| _ = lab.arrive_as(1000, Ecn::NotEct));
            let times = signals(&mut lab, 210, Ecn::NotEct);
            assert_eq!(times[1] - times[0], gap, "{times:?}");
        }
    }

    /// A link that stood still for long owes several drops at once.
    #[test]
    fn a_large_backlog_may_lose_several_packets_in_a_row() {
        let mut lab = forty(&[("ecn", "false")], Ecn::Ect0);
        signals(&mut lab, 106, Ecn::Ect0);
        let before = lab.dropped().len();
        lab.wait_ms(300);
        lab.depart();
        // At 406 ms: those of 205, 275.7, 333.4, 383.4 ms.
        assert_eq!(lab.dropped().len() - before, 4);
    }

    #[test]
    fn above_ce_threshold_every_capable_packet_is_marked_and_no_other_is_lost() {
        // Whatever `ecn` is, which is about CoDel's own signals.
        for own in ["true", "false"] {
            let mut lab = Story::new(100, &[("ce_threshold", "2ms"), ("ecn", own)]);
            for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1] {
                lab.arrive_as(1000, ecn);
            }
            let marked: Vec<u64> = (0..5)
                .map(|_| {
                    assert!(lab.depart().is_some());
                    lab.wait_ms(1);
                    lab.queue.counters().all_marked().packets
                })
                .collect();
            // They waited 0 … 4 ms; the last is ECN-capable and waited more than 2.
            assert_eq!(marked, [0, 0, 0, 0, 1]);
        }
    }

    /// Each of three packets waits longer than the threshold.
    #[test]
    fn ce_threshold_may_be_for_some_values_of_the_ds_field() {
        for (selector, marks) in [("none", 2), ("0x1/0x3", 1), ("2/2", 1), ("0xb8/0xfc", 0)] {
            let settings = [("ce_threshold", "2ms"), ("ce_threshold_selector", selector)];
            let mut lab = Story::new(100, &settings);
            for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::NotEct] {
                lab.arrive_as(1000, ecn);
            }
            lab.wait_ms(3);
            while lab.depart().is_some() {}
            assert_eq!(lab.queue.counters().all_marked().packets, marks, "{selector}");
        }
    }
}
