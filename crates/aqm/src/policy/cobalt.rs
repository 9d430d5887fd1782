//! COBALT: CoDel and BLUE side by side (Høiland-Jørgensen, Täht, Morton, Piece of CAKE, LANMAN 2018,
//! the queue management of Linux's CAKE).
//!
//! CoDel handles flows that respond. Against flows that do not it is helpless, since its signals
//! come ever faster only by the square root of their number; there a [BLUE](super::blue) takes over,
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
//! √0 stands for 1. BLUE drops ECN-capable packets, too: what it is for does not listen. The last
//! packet in a queue is never dropped at departure. On overflow the packet at the head has to go.

use super::{Departure, Policy, Victim, View};
use crate::context::{Cause, Cx, Env};
use crate::packet::Meta;
use crate::param::{ConfigError, params};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

params! {
    /// Parameters of COBALT.
    pub struct CobaltConfig {
        /// Delay that is let alone.
        target: Duration = Duration::from_millis(5), in Duration::ZERO..=Duration::from_secs(3600), "RFC 8289 §4.4; tc-cake(8)";
        /// About the round-trip time of the slowest flows.
        interval: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), "RFC 8289 §4.3; tc-cake(8)";
        /// Whether CoDel's signals mark ECN-capable packets; `false`: every signal is a drop.
        ecn: bool = true, "RFC 8289 §3";
        /// Length in bytes of the packet of which four may always wait.
        mtu: u32 = 1514, in 0..=1_048_576, "Linux sch_cake";
        /// What an overflow adds to the probability of BLUE.
        increment: f64 = 0.003_906_25, in 0.0..=1.0, "Linux sch_cake: 1/256";
        /// What an empty queue takes from the probability of BLUE.
        decrement: f64 = 0.000_244_140_625, in 0.0..=1.0, "Linux sch_cake: 1/4096";
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
            drop_next: env.now,
            dropping: false,
            p_drop: 0.0,
            moved: env.now,
            sojourn: Duration::ZERO,
        })
    }

    fn rate_changed(&mut self, env: &Env) {
        self.tolerated = tolerated(&self.config, env);
    }

    #[inline]
    fn on_departure(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Departure {
        self.sojourn = cx.now.since(pkt.arrived);
        let due = self.due(cx.now);
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
            self.count = self.count.saturating_add(1);
            self.drop_next = self.next_after(self.drop_next);
        } else if due {
            while self.due(cx.now) {
                self.relax();
            }
        }
        let blue = self.p_drop > 0.0 && cx.rng.chance(self.p_drop);
        let marks = self.config.ecn && pkt.ecn.capable();
        let drop = blue || (signal && !marks);
        if self.count == 0 {
            self.drop_next = cx.now + self.config.interval;
        } else if cx.now > self.drop_next && !drop {
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
            self.relax();
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

    /// Whether an empty queue need not remember anything of it.
    #[inline]
    pub(crate) fn at_rest(&self, now: Instant) -> bool {
        self.p_drop == 0.0 && self.count == 0 && now >= self.drop_next
    }

    fn due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// One signal less a round.
    fn relax(&mut self) {
        self.count -= 1;
        self.drop_next = self.next_after(self.drop_next);
    }

    /// When the signal after the one at `t` is due (RFC 8289 §5.4).
    fn next_after(&self, t: Instant) -> Instant {
        let gap = self.config.interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count.max(1)));
        t + Duration::from_nanos(gap as u64)
    }

    /// Whether the probability of BLUE may move, which it does once a `target`.
    fn may_move(&self, now: Instant) -> bool {
        now.since(self.moved) > self.config.target
    }
}

/// The delay above which the queue is too long: the target, or that of four long packets.
fn tolerated(config: &CobaltConfig, env: &Env) -> Duration {
    config.target.max(env.rate.transmission(4 * u64::from(config.mtu)))
}
