//! AVQ: adaptive virtual queue (Kunniyur, Srikant 2001, "KS01").
//!
//! Beside the real queue runs a virtual one with a slower link, which holds no packets but only a
//! count. What would overflow there is signalled here, so that signals come before the real queue
//! grows. The virtual link's rate follows arrivals so that the real link's utilisation is γ:
//!
//! ```text
//! a packet of b bytes arrives a time t after the last:
//!     VQ := max(0, VQ − C̃·t)
//!     VQ + b > B:  signal it                         (B: the virtual buffer)
//!     otherwise:   VQ := VQ + b
//!     C̃ := max(0, min(C, C̃ + α·γ·C·t) − α·b)         (C: the link's rate)
//! ```
//!
//! Without chance, and without an average queue. A link that is busy beyond γ is signalled, however
//! short its real queue.
//!
//! Where the paper is silent: C̃ begins at C. All arrivals count, also those that find no room. The code
//! that its author wrote for ns-2 moves C̃ by the packets alone that are not dropped (`adapts = accepted`).

use super::{Arrival, Cx, Env, Policy, View};
use crate::about::{About, Family, Signal};
use crate::context::Cause;
use crate::packet::Meta;
use crate::param::{ConfigError, choice, params};
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::{Measure, Size};

/// What avq tells of itself.
pub const ABOUT: About = About {
    name: "avq",
    family: Family::One,
    summary: "Signals what would overflow a virtual queue, whose rate follows the arrivals.",
    source: "KS01",
    rule: "AVQ signals the arriving packet if it would overflow the virtual queue, which a link \
        of virtual_rate empties (KS01)",
    causes: &[(Cause::Early, "it would overflow the virtual queue")],
    signals: &[
        Signal { name: "virtual_rate", unit: "bit/s", doc: "rate of the virtual link" },
        Signal { name: "virtual_queue", unit: "bytes", doc: "length of the virtual queue" },
    ],
    live: &["gamma", "alpha", "virtual_buffer"],
    ..About::NEW
};

params! {
    /// Parameters of AVQ.
    pub struct AvqConfig {
        /// Wanted utilisation of the link (γ).
        gamma: f64 = 0.98, in 0.0..=1.0, "KS01 §IV";
        /// Gain of the virtual link's rate, per second (α): it changes by α·(γC − arrivals) in a second.
        alpha: f64 = 0.15, in 0.0..=10.0, "KS01 §IV";
        /// The virtual buffer (B).
        virtual_buffer: Size = Size::OfBuffer(1.0), "KS01 §II";
        /// Whether ECN-capable packets are marked; `false`: every signal is a drop.
        ecn: bool = true, "KS01 §II";
        /// Which packets move the virtual link's rate.
        adapts: Adapts = Adapts::Arrivals, "KS01 §II; ns-2 vq.cc";
    }
}

choice! {
    /// Which packets move the virtual link's rate.
    pub enum Adapts {
        /// All that arrive.
        Arrivals = "arrivals",
        /// Those that the signal does not drop and that find room.
        Accepted = "accepted",
    }
}

/// The AVQ policy.
#[derive(Clone, Debug)]
pub struct Avq {
    gamma: f64,
    alpha: f64,
    /// In bytes.
    buffer: f64,
    /// The link's rate in bytes per second (C).
    capacity: f64,
    /// The answer for a packet that overflows the virtual queue.
    signal: Arrival,
    /// The virtual link's rate in bytes per second (C̃).
    virtual_rate: f64,
    /// The virtual queue in bytes (VQ), as of the last arrival.
    virtual_queue: f64,
    last: Instant,
    /// Whether packets that are dropped leave the virtual link's rate alone.
    accepted_only: bool,
    /// When a packet last moved it.
    moved: Instant,
}

impl Avq {
    /// The virtual queue at `now`.
    #[inline]
    fn queue_at(&self, now: Instant) -> f64 {
        let t = now.since(self.last).as_secs_f64();
        (self.virtual_queue - self.virtual_rate * t).max(0.0)
    }
}

impl Policy for Avq {
    type Config = AvqConfig;
    type Tag = ();

    fn new(c: &AvqConfig, env: &Env, _: &mut Rng) -> Result<Self, ConfigError> {
        let capacity = env.rate.bits_per_second() as f64 / 8.0;
        Ok(Self {
            gamma: c.gamma,
            alpha: c.alpha,
            buffer: env.resolve("virtual_buffer", c.virtual_buffer, Measure::Bytes)?,
            capacity,
            signal: Arrival::early(c.ecn),
            virtual_rate: capacity,
            virtual_queue: 0.0,
            last: env.now,
            accepted_only: c.adapts == Adapts::Accepted,
            moved: env.now,
        })
    }

    fn retune(&mut self, with: Self, _: Instant) {
        *self = Self {
            virtual_rate: self.virtual_rate,
            virtual_queue: self.virtual_queue,
            last: self.last,
            moved: self.moved,
            ..with
        };
    }

    #[inline]
    fn on_arrival(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let len = f64::from(pkt.len);
        self.virtual_queue = self.queue_at(cx.now);
        let overflows = self.virtual_queue + len > self.buffer;
        if !overflows {
            self.virtual_queue += len;
        }
        self.last = cx.now;
        let dropped = || {
            let signal = overflows && !(self.signal == Arrival::early(true) && pkt.ecn.capable());
            signal || !q.fits(pkt.len)
        };
        if !(self.accepted_only && dropped()) {
            let t = cx.now.since(self.moved).as_secs_f64();
            let tokens = self.virtual_rate + self.alpha * self.gamma * self.capacity * t;
            self.virtual_rate = (tokens.min(self.capacity) - self.alpha * len).max(0.0);
            self.moved = cx.now;
        }
        if overflows { self.signal } else { Arrival::Admit }
    }

    fn rate_changed(&mut self, env: &Env) {
        self.capacity = env.rate.bits_per_second() as f64 / 8.0;
    }

    fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        sink("virtual_rate", 8.0 * self.virtual_rate);
        sink("virtual_queue", self.queue_at(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::lab::{Fate, Lab};

    /// How many of `n` packets are marked that come each `gap` ms and are sent at once.
    fn marked(lab: &mut Lab<Avq>, gap: u64, n: u64) -> u64 {
        (0..n)
            .filter(|_| {
                lab.wait_ms(gap);
                let fate = lab.arrive();
                lab.depart();
                fate == Fate::Marked
            })
            .count() as u64
    }

    /// 1 MB/s, α = 1, γ = 0.5. A packet each 4 ms is a quarter of the link: C̃ gains up to 2000 and
    /// loses 1000 a packet, and stays within a packet of C.
    #[test]
    fn below_the_wanted_utilisation_nothing_is_signalled() {
        let settings = [("alpha", "1"), ("gamma", "0.5"), ("virtual_buffer", "3kB")];
        let mut lab = Lab::<Avq>::new(100, &settings);
        assert_eq!(marked(&mut lab, 4, 1000), 0);
        assert_eq!(lab.signal("virtual_rate"), 8.0 * 999_000.0);
        assert_eq!(lab.signal("virtual_queue"), 1000.0);
    }

    /// A packet a millisecond fills the link: C̃ loses 500 each, from 999 000 after the first. After
    /// n + 1 packets VQ = 1000 + n + n(n − 1)/4, which lets in another up to 2000: n = 87 gives
    /// 2957.5, n = 88 would give 3002. After 2000 packets C̃ is 0.
    #[test]
    fn a_link_that_is_too_busy_is_signalled_while_its_queue_is_empty() {
        let settings = [("alpha", "1"), ("gamma", "0.5"), ("virtual_buffer", "3kB")];
        let mut lab = Lab::<Avq>::new(100, &settings);
        assert_eq!(marked(&mut lab, 1, 88), 0);
        assert_eq!(marked(&mut lab, 1, 1), 1);
        marked(&mut lab, 1, 1911);
        assert_eq!(lab.signal("virtual_rate"), 0.0);
        assert_eq!(marked(&mut lab, 1, 100), 100, "every packet");
        assert_eq!(lab.backlog().packets, 0);
    }

    /// 1 MB/s, α = 1, γ = 0.5, a virtual buffer for one packet. Of three packets that come at once the
    /// first is accepted and takes 1000 B/s; the others are dropped and take none, or 1000 each.
    #[test]
    fn what_is_dropped_may_leave_the_virtual_rate_alone() {
        for (word, ecn, lost) in [
            ("arrivals", "false", 3000.0),
            ("accepted", "false", 1000.0),
            ("accepted", "true", 3000.0),
        ] {
            let settings = [
                ("alpha", "1"),
                ("gamma", "0.5"),
                ("virtual_buffer", "1kB"),
                ("adapts", word),
                ("ecn", ecn),
            ];
            let mut lab = Lab::<Avq>::new(100, &settings);
            (0..3).for_each(|_| _ = lab.arrive());
            assert_eq!(lab.signal("virtual_rate"), 8.0 * (1e6 - lost), "{word}, ecn = {ecn}");
        }
    }

    #[test]
    fn the_virtual_queue_drains_with_time() {
        let mut lab = Lab::<Avq>::new(100, &[("alpha", "0")]);
        (0..5).for_each(|_| _ = lab.arrive());
        for left in [5000.0, 4000.0, 3000.0] {
            assert_eq!(lab.signal("virtual_queue"), left);
            lab.wait_ms(1);
        }
        lab.wait_ms(100);
        assert_eq!(lab.signal("virtual_queue"), 0.0);
    }
}
