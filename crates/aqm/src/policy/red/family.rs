//! What RED shares with its variants: what stays fixed, the average, the spacing, the coin.

use super::{AboveMax, Lengths, RedConfig};
use crate::packet::Meta;
use crate::param::ConfigError;
use crate::policy::average::{Ageing, Average};
use crate::policy::spacing::{Spacing, p_a, picks};
use crate::policy::{Arrival, Cx, Env, View};
use crate::time::Instant;
use crate::units::Measure;

/// What stays fixed while a RED runs. Thresholds are in `measure`.
#[derive(Clone, Debug)]
pub(crate) struct RedParams {
    pub(crate) min_th: f64,
    pub(crate) max_th: f64,
    w_q: f64,
    gentle: bool,
    measure: Measure,
    /// 1 / mean packet, where lengths count.
    per_byte: Option<f64>,
    lengths: Lengths,
    /// Transmission time of a mean packet in nanoseconds.
    packet_time: f64,
    idle: Ageing,
    spacing: Spacing,
    pub(crate) ns2_rules: bool,
    /// Whether there are `ns2_rules`, or numbers are drawn ahead.
    otherwise: bool,
    /// The answer for a packet that chance picked.
    signal: Arrival,
    /// The answer for every packet above the thresholds.
    certain: Arrival,
}

impl RedParams {
    pub(crate) fn new(config: &RedConfig, env: &Env) -> Result<Self, ConfigError> {
        let measure = config.mode.into();
        let min_th = env.resolve("min_th", config.min_th, measure)?;
        let max_th = env.resolve("max_th", config.max_th, measure)?;
        let params = Self {
            min_th,
            max_th,
            w_q: config.w_q,
            gentle: config.gentle,
            measure,
            per_byte: (measure == Measure::Bytes && config.lengths != Lengths::Average)
                .then(|| 1.0 / f64::from(env.mean_packet)),
            lengths: config.lengths,
            packet_time: env.packet_time(),
            idle: config.idle,
            spacing: config.spacing,
            ns2_rules: config.ns2_rules,
            otherwise: config.ns2_rules || config.spacing == Spacing::Ahead,
            signal: Arrival::early(config.ecn),
            certain: Arrival::early(config.ecn && config.above_max == AboveMax::Mark),
        };
        if min_th == max_th { Ok(params) } else { params.with_thresholds(min_th, max_th) }
    }

    /// These parameters with other thresholds, in `measure`.
    ///
    /// # Errors
    /// When there is no room between the thresholds.
    pub(crate) fn with_thresholds(self, min_th: f64, max_th: f64) -> Result<Self, ConfigError> {
        if min_th < max_th {
            Ok(Self { min_th, max_th, ..self })
        } else {
            Err(ConfigError { key: "max_th", allowed: "min_th or more".into() })
        }
    }

    /// These parameters at the rate of `env`.
    pub(crate) fn at_rate(&self, env: &Env) -> Self {
        Self { packet_time: env.packet_time(), ..self.clone() }
    }

    /// What thresholds and averages count.
    pub(crate) fn measure(&self) -> Measure {
        self.measure
    }

    /// The average from which on every packet is signalled.
    fn certain_from(&self) -> f64 {
        if self.gentle { 2.0 * self.max_th } else { self.max_th }
    }
}

/// The part that RED and its self-tuning variants share: the average, the spacing, the coin. The
/// variants move `max_p`.
#[derive(Clone, Debug)]
pub(crate) struct RedCore {
    pub(crate) params: RedParams,
    /// Probability at max_th, [0, 1].
    pub(crate) max_p: f64,
    avg: Average,
    /// Packets since the last signal, or bytes in mean packets; −1: the next packet finds 0.
    count: f64,
    /// What p_b times the count has to reach ([`Spacing::Ahead`]).
    drawn: f64,
    /// Whether no packet has met avg ≥ min_th since the average crossed it (`ns2_rules`).
    crossing: bool,
}

impl RedCore {
    /// An empty queue on an idle link.
    pub(crate) fn new(params: RedParams, max_p: f64, now: Instant) -> Self {
        let avg = Average::new(params.w_q, params.packet_time, now);
        let avg = avg.in_whole_packets(params.ns2_rules).ageing(params.idle);
        Self { params, max_p, avg, count: -1.0, drawn: 0.0, crossing: true }
    }

    /// A copy of the average, for whoever keeps one of several cores.
    pub(crate) fn own_average(&self) -> Average {
        self.avg.clone()
    }

    /// The average is kept elsewhere, and this is its value.
    #[inline]
    pub(crate) fn set_average(&mut self, value: f64) {
        self.avg.value = value;
    }

    /// Brings an average that is kept elsewhere to the rate of `env`.
    pub(crate) fn retime(&self, avg: &mut Average, env: &Env) {
        avg.change(self.params.w_q, env.packet_time(), env.now);
    }

    /// Takes the queue that an arriving packet finds into the average; its new value.
    #[inline]
    pub(crate) fn average(&mut self, q: &View<'_>, now: Instant) -> f64 {
        self.avg.sample(q.size(self.params.measure), now)
    }

    /// The average with the idle time until `now`.
    pub(crate) fn average_at(&self, now: Instant) -> f64 {
        self.avg.at(now)
    }

    /// Whether the average has reached min_th: congestion, as a filter before a RED sees it
    /// (Mahajan01 §1.2).
    pub(crate) fn congested(&self, now: Instant) -> bool {
        self.average_at(now) >= self.params.min_th
    }

    /// Decides about an arriving packet, with the average that includes it.
    #[inline(always)]
    pub(crate) fn judge(&mut self, pkt: &Meta, q: &View<'_>, cx: &mut Cx<'_>) -> Arrival {
        let avg = self.avg.value;
        if avg < self.params.min_th {
            self.count = -1.0;
            self.crossing = true;
            return Arrival::Admit;
        }
        if self.params.otherwise {
            if self.params.ns2_rules {
                let crossing = core::mem::replace(&mut self.crossing, q.len() <= 1);
                if crossing || self.crossing {
                    self.count = 1.0;
                    return Arrival::Admit;
                }
            }
            if self.params.spacing == Spacing::Ahead && avg < self.params.certain_from() {
                return self.by_number_ahead(pkt, cx);
            }
        }
        if avg >= self.params.certain_from() {
            self.count = self.after_signal();
            return self.params.certain;
        }
        let (p_b, spacing) = (self.p_b(avg), self.params.spacing);
        let coin = cx.rng.uniform();
        let signal = match self.params.per_byte {
            None => {
                self.count += 1.0;
                cx.rng.drawn_for(coin, || p_a(spacing, p_b, self.count));
                picks(coin, spacing, p_b, self.count)
            }
            Some(per_byte) => {
                let packets = per_byte * f64::from(pkt.len);
                if self.params.lengths == Lengths::Chance {
                    self.count += 1.0;
                    cx.rng.drawn_for(coin, || p_a(spacing, p_b * packets, self.count));
                    picks(coin, spacing, p_b * packets, self.count)
                } else {
                    let before = self.count.max(0.0);
                    let after = if self.count < 0.0 { 0.0 } else { self.count + packets };
                    let exact = spacing == Spacing::UniformExact;
                    self.count = if exact { before + packets } else { after };
                    let p = p_a(spacing, p_b, if exact { before } else { after }) * packets;
                    cx.rng.drawn_for(coin, || p);
                    coin < p
                }
            }
        };
        if !signal {
            return Arrival::Admit;
        }
        self.count = self.after_signal();
        self.params.signal
    }

    /// Decides between the thresholds by a number that was drawn ahead.
    #[inline(always)]
    fn by_number_ahead(&mut self, pkt: &Meta, cx: &mut Cx<'_>) -> Arrival {
        let by_length = match (self.params.per_byte, self.params.lengths) {
            (Some(per_byte), Lengths::Chance) => per_byte * f64::from(pkt.len),
            _ => 1.0,
        };
        self.count += 1.0;
        let p_b = self.p_b(self.avg.value) * by_length;
        let signal = self.count > 0.0 && p_b * self.count >= self.drawn;
        if self.count == 0.0 || signal {
            self.count = 0.0;
            self.drawn = cx.rng.uniform();
        }
        if signal { self.params.signal } else { Arrival::Admit }
    }

    /// A packet is lost for want of room: in ns-2 that begins the count anew, as a signal does.
    #[inline]
    pub(crate) fn overflowed(&mut self) {
        if self.params.ns2_rules {
            self.count = self.after_signal();
        }
    }

    /// A packet was queued: the link is not idle.
    #[inline]
    pub(crate) fn admitted(&mut self) {
        self.avg.admitted();
    }

    /// The link went idle, or stays so.
    #[inline]
    pub(crate) fn on_idle(&mut self, now: Instant) {
        self.avg.on_idle(now);
    }

    /// The link has another rate from `env.now` on, for which `params` are.
    pub(crate) fn rate_changed(&mut self, params: RedParams, env: &Env) {
        self.avg.change(params.w_q, params.packet_time, env.now);
        self.params = params;
    }

    /// Goes on as `with` from what it knows.
    pub(crate) fn retune(&mut self, with: Self, now: Instant) {
        self.avg.retune(&with.avg, now);
        (self.params, self.max_p) = (with.params, with.max_p);
    }

    /// The signals that the RED family reports: what a packet of mean length would meet at `now`.
    pub(crate) fn observe(&self, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let avg = self.average_at(now);
        let p_b = self.p_b(avg);
        let count = if avg < self.params.min_th { 0.0 } else { self.count + 1.0 };
        sink("avg", avg);
        sink("p_b", p_b);
        sink("p_a", p_a(self.params.spacing, p_b, count));
        sink("max_p", self.max_p);
    }

    /// Reports the count that a packet of `len` bytes would have, if it came now: that of its p_a.
    pub(crate) fn observe_count(&self, len: u32, sink: &mut dyn FnMut(&'static str, f64)) {
        let exact = self.params.spacing == Spacing::UniformExact;
        let count = match self.params.per_byte {
            _ if self.params.spacing == Spacing::Ahead => self.count + 1.0,
            Some(_) if self.params.lengths != Lengths::Chance && exact => self.count.max(0.0),
            Some(_) if self.params.lengths != Lengths::Chance && self.count < 0.0 => 0.0,
            Some(per_byte) if self.params.lengths != Lengths::Chance => {
                self.count + per_byte * f64::from(len)
            }
            _ => self.count + 1.0,
        };
        sink("count", count);
    }

    /// The probability of the average alone, at any average.
    #[inline]
    pub(crate) fn p_b(&self, avg: f64) -> f64 {
        let (min_th, max_th) = (self.params.min_th, self.params.max_th);
        if avg < min_th {
            0.0
        } else if avg < max_th {
            linear(avg, min_th, max_th, self.max_p)
        } else if avg < self.params.certain_from() {
            gentle(avg, max_th, self.max_p)
        } else {
            1.0
        }
    }

    fn after_signal(&self) -> f64 {
        match self.params.spacing {
            Spacing::UniformExact | Spacing::Ahead => -1.0,
            _ => 0.0,
        }
    }
}

/// What a policy with a [`RedCore`] leaves to it: packets that were queued or found no room, an idle
/// link, and the question for congestion; with `but rate` all but what to do at another rate of the
/// link.
macro_rules! as_red {
    ($core:tt) => {
        as_red!($core but rate);

        fn rate_changed(&mut self, env: &Env) {
            self.$core.rate_changed(self.$core.params.at_rate(env), env);
        }
    };
    ($core:tt but rate) => {
        #[inline]
        fn admitted(&mut self, _: &Meta, _: &mut Cx<'_>) {
            self.$core.admitted();
        }

        #[inline]
        fn on_overflow(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) -> crate::policy::Victim {
            self.$core.overflowed();
            crate::policy::Victim::Arriving
        }

        fn gave_way(&mut self, _: &Meta, _: &View<'_>, _: &mut Cx<'_>) {}

        fn on_idle(&mut self, cx: &mut Cx<'_>) {
            self.$core.on_idle(cx.now);
        }

        fn congested(&self, _: &View<'_>, now: Instant) -> bool {
            self.$core.congested(now)
        }

        fn observe_flow(&self, pkt: &Meta, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
            self.$core.observe_count(pkt.len, sink);
        }
    };
}
pub(crate) use as_red;

/// p_b between the thresholds (FJ93 §4; Feng02 §III.C).
#[inline]
pub(crate) fn linear(avg: f64, min_th: f64, max_th: f64, max_p: f64) -> f64 {
    max_p * (avg - min_th) / (max_th - min_th)
}

/// p_b between max_th and 2·max_th in gentle mode (Floyd00).
pub(super) fn gentle(avg: f64, max_th: f64, max_p: f64) -> f64 {
    max_p + (1.0 - max_p) * (avg - max_th) / max_th
}
