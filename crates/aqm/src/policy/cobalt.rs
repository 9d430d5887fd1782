//! COBALT: CoDel and BLUE side by side (Høiland-Jørgensen, Täht, Morton, Piece of CAKE, LANMAN 2018,
//! the queue management of Linux's CAKE).
//!
//! CoDel handles flows that respond. Against flows that do not it is helpless, since its signals
//! come faster only with the square root of their number. There a [BLUE](super::blue) takes over,
//! whose probability grows at each overflow and falls when the queue runs empty.
//!
//! ```text
//! a packet leaves after `sojourn`:
//!     due := count > 0 and now ≥ drop_next
//!     sojourn > target and > 4 packet times:  if not dropping:  dropping := true
//!                                                               drop_next := now + interval/√count
//!                                             count := max(count, 1)
//!     else:  dropping := false
//!     due, dropping:      signal;  count += 1;  drop_next += interval/√count
//!     due, not dropping:  until it is no longer due:  count −= 1;  drop_next += interval/√count
//!     with probability p_drop:  drop it, whatever CoDel says
//!     count = 0:  drop_next := now + interval
//!     else past drop_next and not dropped:  drop_next := now
//! overflow:  dropping := true;  drop_next := now;  count := max(count, 1)
//!            more than target since p_drop last moved:  p_drop += increment
//! the queue runs empty:  dropping := false;  due:  count −= 1;  drop_next += interval/√count
//!            more than target since p_drop last moved:  p_drop −= decrement
//! ```
//!
//! Against CoDel (RFC 8289): count is not reset but falls at the pace at which it grew, and the
//! delay need not have lasted an interval before the first signal that a running count allows.
//! √0 stands for 1. Linux finds 1/√count in a table up to 15 and by a step of Newton's method a signal from
//! there on. That of 6.1 (`root = "newton"`) has been made by such steps, too, and says 0.70671 of 2, that of 7.2
//! (`root = "newton-from-16"`) is exact. Of a queue whose count has never changed it is 0, so that its first signal
//! comes with the second packet above target, not an interval later. So does that of a queue whose count is back at
//! 0, after a pause of more than an interval: Linux asks whether now is past `drop_next` before the first packet above
//! target moves it. BLUE drops ECN-capable packets, too: what it is for does not listen. The last
//! packet in a queue is never dropped at departure. On overflow the packet at the head has to go.

use super::{Departure, Policy, Victim, View};
use crate::about::{About, Family, Signal, Unmarked};
use crate::context::{Cause, Cx, Env};
use crate::packet::Meta;
use crate::param::{ConfigError, choice, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// What cobalt tells of itself.
pub const ABOUT: About = About {
    name: "cobalt",
    family: Family::Delay,
    summary: "CoDel for flows that respond, and a BLUE beside it for those that do not.",
    source: "HTM18",
    rule: "two algorithms decide at departure: CoDel signals after an interval above target \
        without a coin, and BLUE drops with p_drop, which overflows raise and an empty queue \
        lowers (HTM18)",
    unmarked: Unmarked {
        coin: "BLUE acts against flows that do not answer: it drops whatever it meets",
        rule: "a later acknowledgement says all that it says",
    },
    signals: &[
        Signal { name: "sojourn", unit: "s", doc: "delay of the packet that left last" },
        Signal { name: "count", unit: "", doc: "signals that the present frequency stands for" },
        Signal { name: "dropping", unit: "", doc: "1 in the dropping state, else 0" },
        Signal { name: "p_drop", unit: "0 … 1", doc: "drop probability of BLUE" },
    ],
    live: &["target", "interval", "increment", "decrement"],
    ..About::NEW
};

params! {
    /// Parameters of COBALT.
    pub struct CobaltConfig {
        /// Tolerated queueing delay.
        target: Duration = Duration::from_millis(5), in Duration::ZERO..=Duration::from_secs(3600), "RFC 8289 §4.4; tc-cake(8)";
        /// About the round-trip time of the slowest flows.
        interval: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), "RFC 8289 §4.3; tc-cake(8)";
        /// Whether CoDel's signals mark ECN-capable packets; `false`: every signal is a drop.
        ecn: bool = true, "RFC 8289 §3";
        /// Longest packet in bytes: four of them may always wait; `none`: 1514, or the mean packet if it is
        /// longer.
        mtu: Option<u32> = None, in 0..=1_048_576, "Linux sch_cake";
        /// How 1/√count is found.
        root: Root = Root::Exact, "RFC 8289 §5.4; Linux";
        /// What an overflow adds to the probability of BLUE.
        increment: f64 = 0.003_906_25, in 0.0..=1.0, "Linux sch_cake: 1/256";
        /// What an empty queue takes from the probability of BLUE.
        decrement: f64 = 0.000_244_140_625, in 0.0..=1.0, "Linux sch_cake: 1/4096";
    }
}

choice! {
    /// How COBALT finds 1/√count.
    pub enum Root {
        /// Exactly.
        Exact = "exact",
        /// By steps of Newton's method, as Linux up to 6.1: up to 15 four each, from the one before.
        Newton = "newton",
        /// Rounded down up to 15, and by a step of Newton's method a signal from there on, as Linux 7.2.
        NewtonFrom16 = "newton-from-16",
    }
}

/// The COBALT policy.
#[derive(Clone, Debug)]
pub struct Cobalt {
    config: CobaltConfig,
    /// Delay above which the queue is too long.
    tolerated: Duration,
    /// Signals that CoDel's frequency stands for.
    count: u32,
    /// 1/√count as Linux has it, in units of 2⁻³²; 0 until count has first moved.
    root: u32,
    /// When the next is due.
    drop_next: Instant,
    dropping: bool,
    /// The probability of BLUE, and when it last moved.
    p_drop: f64,
    moved: Instant,
    /// Delay of the packet that left last.
    sojourn: Duration,
}

impl Policy for Cobalt {
    type Config = CobaltConfig;
    type Tag = ();

    fn new(config: &CobaltConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        Ok(Self {
            tolerated: tolerated(config, env),
            config: config.clone(),
            count: 0,
            root: 0,
            drop_next: env.now,
            dropping: false,
            p_drop: 0.0,
            moved: env.now,
            sojourn: Duration::ZERO,
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        *self = Self {
            count: self.count,
            root: self.root,
            drop_next: self.drop_next,
            dropping: self.dropping,
            p_drop: self.p_drop,
            moved: self.moved,
            sojourn: self.sojourn,
            ..with
        };
    }

    fn rate_changed(&mut self, env: &Env) {
        self.tolerated = tolerated(&self.config, env);
    }

    #[inline]
    fn on_departure(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        self.sojourn = cx.now.since(pkt.arrived);
        let due = self.due(cx.now);
        let mut late = cx.now > self.drop_next;
        if self.sojourn > self.tolerated {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.next_after(cx.now);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let signal = due && self.dropping;
        if signal {
            self.move_to(self.count.saturating_add(1));
        } else if due {
            while self.due(cx.now) {
                self.move_to(self.count - 1);
            }
        }
        // Linux asks again only after a signal more or less.
        if due || self.config.root == Root::Exact {
            late = cx.now > self.drop_next;
        }
        let blue = self.p_drop > 0.0 && cx.rng.chance(self.p_drop);
        let marks = self.config.ecn && pkt.ecn.capable();
        let drop = blue || (signal && !marks);
        if self.count == 0 {
            self.drop_next = cx.now + self.config.interval;
        } else if late && !drop {
            self.drop_next = cx.now;
        }
        match (drop && !q.is_empty(), signal && marks) {
            (true, _) => Departure::Drop(Cause::Early),
            (false, true) => Departure::Signal(Cause::Early),
            (false, false) => Departure::Send,
        }
    }

    fn on_overflow(&mut self, _: &Meta, _: &View<'_>, cx: &mut Cx<'_>) -> Victim {
        if self.may_move(cx.now) {
            self.p_drop = (self.p_drop + self.config.increment).min(1.0);
            self.moved = cx.now;
        }
        self.dropping = true;
        self.drop_next = cx.now;
        self.count = self.count.max(1);
        Victim::Head
    }

    fn on_idle(&mut self, cx: &mut Cx<'_>) {
        if self.p_drop > 0.0 && self.may_move(cx.now) {
            self.p_drop = (self.p_drop - self.config.decrement).max(0.0);
            self.moved = cx.now;
        }
        self.dropping = false;
        if self.due(cx.now) {
            self.move_to(self.count - 1);
        }
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("sojourn", self.sojourn.as_secs_f64());
        sink("count", f64::from(self.count));
        sink("dropping", f64::from(u8::from(self.dropping)));
        sink("p_drop", self.p_drop);
    }

    fn observe_flow(&self, _: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("drop_next_s", self.drop_next.as_nanos() as f64 / 1e9);
    }
}

impl Cobalt {
    /// It has other parameters, and the link another rate.
    pub(crate) fn reconfigure(&mut self, config: CobaltConfig, env: &Env) {
        self.tolerated = tolerated(&config, env);
        self.config = config;
    }

    /// Delays up to this one are tolerated from now on, whatever the target is.
    pub(crate) fn tolerate(&mut self, delay: Duration) {
        self.tolerated = delay;
    }

    /// Whether an empty queue need not remember anything of it.
    #[inline]
    pub(crate) fn at_rest(&self, now: Instant) -> bool {
        self.p_drop == 0.0 && self.count == 0 && now >= self.drop_next
    }

    fn due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// One more or one fewer signal a round, from the signal on that was due.
    fn move_to(&mut self, count: u32) {
        self.count = count;
        let known = if self.config.root == Root::Newton { &NEWTON_S } else { &ROOTS };
        self.root = linux_root(known, self.root, count);
        self.drop_next = self.next_after(self.drop_next);
    }

    /// When the signal after the one at `t` is due (RFC 8289 §5.4).
    fn next_after(&self, t: Instant) -> Instant {
        let interval = self.config.interval.as_nanos();
        let gap = match self.config.root {
            Root::Exact if self.count <= 1 => interval,
            Root::Exact => (interval as f64 / libm::sqrt(f64::from(self.count))) as u64,
            Root::Newton | Root::NewtonFrom16 => {
                ((u128::from(interval) * u128::from(self.root)) >> 32) as u64
            }
        };
        t + Duration::from_nanos(gap)
    }

    /// Whether the probability of BLUE may move, which it does once a `target`.
    fn may_move(&self, now: Instant) -> bool {
        now.since(self.moved) > self.config.target
    }
}

/// The delay above which the queue is too long: the target, or that of four long packets.
pub(crate) fn tolerated(config: &CobaltConfig, env: &Env) -> Duration {
    config.target.max(env.rate.transmission(4 * u64::from(env.longest(config.mtu))))
}

/// Linux's 1/√count, from what it was before: in a table up to 15, and from there on a step of Newton's method.
fn linux_root(known: &[u32; 16], root: u32, count: u32) -> u32 {
    match known.get(count as usize) {
        Some(known) => *known,
        None => newton(root, count),
    }
}

/// Four steps of Newton's method each, from the one before.
const NEWTON_S: [u32; 16] = {
    let mut roots = [u32::MAX; 16];
    let mut count = 1;
    while count < 16 {
        let before = roots[count - 1];
        let four = newton(newton(before, count as u32), count as u32);
        roots[count] = newton(newton(four, count as u32), count as u32);
        count += 1;
    }
    roots
};

/// 1/√count of a one that is a unit less, rounded down.
const ROOTS: [u32; 16] = {
    let mut roots = [u32::MAX; 16];
    let mut count = 1;
    while count < 16 {
        let one = u32::MAX as u64;
        roots[count] = (one * one / count as u64).isqrt() as u32;
        count += 1;
    }
    roots
};

/// A step from `root` towards 1/√count, `root`·(3 − count·`root`²)/2, in units of 2⁻³².
const fn newton(root: u32, count: u32) -> u32 {
    let root = root as u64;
    let square = (root * root) >> 32;
    let step = (3u64 << 32).wrapping_sub(count as u64 * square) >> 2;
    (step.wrapping_mul(root) >> 31) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::policy::lab::Lab;
    use crate::qdisc::Qdisc as _;

    /// 1/√n: 1, 0.7071, 0.5774, 0.5, …; from 16 on a step from the one before.
    #[test]
    fn linux_s_roots_are_near() {
        let mut root = 0;
        for count in 0..100u32 {
            root = linux_root(&NEWTON_S, root, count);
            let exact = 1.0 / f64::from(count.max(1)).sqrt();
            let share = f64::from(root) / 4_294_967_296.0;
            assert!((share - exact).abs() < 2e-3, "{count}: {share}, not {exact}");
            let share = f64::from(*ROOTS.get(count as usize).unwrap_or(&root)) / 4_294_967_296.0;
            assert!(count > 15 || (share - exact).abs() < 1e-9, "{count}: {share}, not {exact}");
        }
        assert_eq!(linux_root(&ROOTS, 0, 16), 0, "there a step from nothing leads nowhere");
    }

    /// Packets of 1 ms that all wait for 40 ms: an interval after the first is the first signal. Where 1/√count
    /// is as Linux has it, that is 0 until count changes, and the second packet is signalled.
    #[test]
    fn the_first_signal_of_a_new_queue() {
        for (root, expected) in [("exact", 101), ("newton", 2), ("newton-from-16", 2)] {
            let mut lab = Lab::<Cobalt>::new(1000, &[("root", root), ("target", "10ms")]);
            (0..200).for_each(|_| _ = lab.arrive_as(1000, Ecn::Ect0));
            lab.wait_ms(40);
            let sent = (1..=200).find(|_| {
                lab.depart();
                lab.wait_ms(1);
                lab.queue.counters().all_marked().packets > 0
            });
            assert_eq!(sent, Some(expected), "{root}");
        }
    }

    /// The queue was signalled and then calm, so that count is 0 again. Linux signals the second packet if the
    /// pause was longer than an interval, else one an interval later.
    #[test]
    fn the_first_signal_after_a_pause() {
        for (root, pause, expected) in [
            ("exact", 200, 101),
            ("newton", 200, 2),
            ("newton-from-16", 200, 2),
            ("newton", 50, 101),
            ("newton-from-16", 50, 101),
        ] {
            let mut lab = Lab::<Cobalt>::new(1000, &[("root", root), ("target", "10ms")]);
            let marks = |lab: &Lab<Cobalt>| lab.queue.counters().all_marked().packets;
            let first = |lab: &mut Lab<Cobalt>| {
                let before = marks(lab);
                (0..200).for_each(|_| _ = lab.arrive_as(1000, Ecn::Ect0));
                lab.wait_ms(40);
                let sent = (1..=200).find(|_| {
                    lab.depart();
                    lab.wait_ms(1);
                    marks(lab) > before
                });
                while lab.depart().is_some() {}
                sent
            };
            assert!(first(&mut lab).is_some(), "{root}");
            lab.wait_ms(1000);
            lab.arrive();
            lab.depart();
            assert_eq!(lab.signal("count"), 0.0, "{root}");
            lab.wait_ms(pause);
            assert_eq!(first(&mut lab), Some(expected), "{root} after {pause} ms");
        }
    }
}
