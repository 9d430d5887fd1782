//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), as in Linux: that takes no notice
//! of ECN, and of losses only in the round trip after the first.
//!
//! Left out: the detection of policers (Linux's long-term bandwidth).

use aqm::Rng;

use super::super::{CongestionControl, Lost, Pace, PathModel, Repair, RepairChange, Sample, Times};
use super::{
    Aggregation, FullPipe, LEAST_WINDOW, MARGIN, MaxFilter, Pacing, ProbeRtt, Rounds, Trail,
};
use crate::transport::tcp::Options;
use crate::watch::{Look, Value, Values};

/// 2/ln 2: the least gain that doubles the rate each round trip.
const HIGH_GAIN: f64 = 2.885;
const WINDOW_GAIN: f64 = 2.0;
/// Faster for a round trip, slower for one to let the queue go, six as measured.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Windows of the filters: rounds, rounds, ns.
const BW_ROUNDS: u32 = 10;
const AGGREGATION_ROUNDS: u32 = 10;
const MIN_RTT_FOR: u64 = 10_000_000_000;
/// The window has room for no more than what aggregation holds back in so long, ns.
const MOST_AGGREGATION: f64 = 1e8;
/// Below this rate a burst is a packet: 1.2 Mb/s, in bytes a ns.
const SLOW: f64 = 1.5e-4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// In the order of [`Phase`].
const NAMES: [&str; 4] = ["startup", "drain", "probe-bw", "probe-rtt"];

/// The state of BBR version 1.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    phase: Phase,
    trail: Trail,
    rounds: Rounds,
    bw: MaxFilter,
    min_rtt: u64,
    min_rtt_at: u64,
    full: FullPipe,
    aggregation: Aggregation,
    pacing: Pacing,
    /// The place in [`CYCLE`], and since when.
    place: usize,
    place_since: u64,
    probe_rtt: ProbeRtt,
    after_idle: bool,
    initial_window: f64,
    /// The window before losses or [`Phase::ProbeRtt`].
    prior_window: f64,
    /// Losses are being repaired; for the first round what is sent is what arrives.
    repairing: bool,
    conserving: bool,
    /// Lost since the last acknowledgement.
    lost: u32,
    rng: Rng,
}

impl Bbr1 {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.trail.enter(phase as u8);
    }

    fn pacing_gain(&self) -> f64 {
        match self.phase {
            Phase::Startup => HIGH_GAIN,
            Phase::Drain => 1.0 / HIGH_GAIN,
            Phase::ProbeBw => CYCLE[self.place],
            Phase::ProbeRtt => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.phase {
            Phase::Startup | Phase::Drain => HIGH_GAIN,
            Phase::ProbeBw => WINDOW_GAIN,
            Phase::ProbeRtt => 1.0,
        }
    }

    fn bdp(&self, gain: f64) -> f64 {
        if self.min_rtt == u64::MAX {
            return self.initial_window;
        }
        gain * self.bw.max() * self.min_rtt as f64
    }

    /// What is to be under way: with room for three bursts, even, and for two more while it probes.
    fn with_room(&self, volume: f64) -> f64 {
        let slow = self.pacing.rate * self.pacing.packet < SLOW;
        let burst = self.pacing.burst(if slow { 1.0 } else { 2.0 }).floor();
        let even = 2.0 * ((volume + 3.0 * burst) / 2.0).ceil();
        let probing = self.phase == Phase::ProbeBw && self.place == 0;
        even + if probing { 2.0 } else { 0.0 }
    }

    fn update_bw(&mut self, s: &Sample) {
        self.rounds.update(s);
        self.conserving &= !self.rounds.started;
        if s.rate > 0.0 && (s.rate >= self.bw.max() || !s.app_limited) {
            self.bw.update(self.rounds.count, s.rate, BW_ROUNDS);
        }
    }

    /// The next phase of the cycle after a round trip; faster until that many are under way or one is
    /// lost, slower until no queue is left.
    fn update_cycle(&mut self, s: &Sample) {
        if self.phase != Phase::ProbeBw {
            return;
        }
        let over = s.now - self.place_since > self.min_rtt;
        let under_way = f64::from(s.prior_in_flight);
        let gain = self.pacing_gain();
        let next = if gain > 1.0 {
            over && (self.lost > 0 || under_way >= self.with_room(self.bdp(gain)))
        } else if gain < 1.0 {
            over || under_way <= self.with_room(self.bdp(1.0))
        } else {
            over
        };
        if next {
            self.place = (self.place + 1) % CYCLE.len();
            self.place_since = s.now;
        }
    }

    /// At any place of the cycle but the slow one.
    fn enter_probe_bw(&mut self, now: u64) {
        self.enter(Phase::ProbeBw);
        self.place = (CYCLE.len() - self.rng.below(CYCLE.len() - 1)) % CYCLE.len();
        self.place_since = now;
    }

    fn update_full(&mut self, s: &Sample) {
        if !self.full.reached && self.rounds.started && !s.app_limited {
            self.full.update(self.bw.max());
        }
        if self.phase == Phase::Startup && self.full.reached {
            self.enter(Phase::Drain);
        }
        if self.phase == Phase::Drain && f64::from(s.in_flight) <= self.with_room(self.bdp(1.0)) {
            self.enter_probe_bw(s.now);
        }
    }

    fn update_min_rtt(&mut self, s: &Sample, window: &mut f64) {
        let expired = s.now > self.min_rtt_at.saturating_add(MIN_RTT_FOR);
        if let Some(rtt) = s.rtt
            && (rtt < self.min_rtt || expired)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt, s.now);
        }
        if expired && !self.after_idle && self.phase != Phase::ProbeRtt {
            self.enter(Phase::ProbeRtt);
            self.save(*window);
            self.probe_rtt = ProbeRtt::default();
        }
        if self.phase == Phase::ProbeRtt
            && self.probe_rtt.is_over(s, &mut self.rounds, LEAST_WINDOW)
        {
            self.leave_probe_rtt(s.now, window);
        }
        self.after_idle = false;
    }

    fn leave_probe_rtt(&mut self, now: u64, window: &mut f64) {
        self.min_rtt_at = now;
        *window = window.max(self.prior_window);
        if self.full.reached {
            self.enter_probe_bw(now);
        } else {
            self.enter(Phase::Startup);
        }
    }

    fn save(&mut self, window: f64) {
        let calm = !self.repairing && self.phase != Phase::ProbeRtt;
        self.prior_window = if calm { window } else { self.prior_window.max(window) };
    }

    fn set_window(&mut self, s: &Sample, window: &mut f64) {
        let acked = f64::from(s.newly);
        *window = (*window - f64::from(self.lost)).max(1.0);
        self.lost = 0;
        if self.conserving {
            *window = window.max(f64::from(s.in_flight) + acked);
        } else {
            let gain = self.window_gain();
            let ahead = self.aggregation.most.max().min(self.bw.max() * MOST_AGGREGATION);
            let ahead = if self.full.reached { ahead } else { 0.0 };
            let target = self.with_room(self.bdp(gain) + ahead);
            if self.full.reached {
                *window = (*window + acked).min(target);
            } else if *window < target || f64::from(s.total) < self.initial_window {
                *window += acked;
            }
            *window = window.max(LEAST_WINDOW);
        }
        if self.phase == Phase::ProbeRtt {
            *window = window.min(LEAST_WINDOW);
        }
    }
}

impl CongestionControl for Bbr1 {
    fn new(o: &Options) -> Self {
        Self {
            phase: Phase::Startup,
            trail: Trail(1),
            rounds: Rounds::default(),
            bw: MaxFilter::default(),
            min_rtt: u64::MAX,
            min_rtt_at: u64::MAX,
            full: FullPipe::default(),
            aggregation: Aggregation::default(),
            pacing: Pacing::new(o.control.packet),
            place: 0,
            place_since: 0,
            probe_rtt: ProbeRtt::default(),
            after_idle: false,
            initial_window: o.window.initial,
            prior_window: 0.0,
            repairing: false,
            conserving: false,
            lost: 0,
            rng: Rng::new(0, 0),
        }
    }

    fn model(&mut self) -> Option<&mut dyn PathModel> {
        Some(self)
    }

    fn pace(&self, times: Times) -> Pace {
        Pace::Gap(self.pacing.gap(HIGH_GAIN * self.initial_window, times.srtt))
    }

    fn rng(&mut self) -> Option<&mut Rng> {
        Some(&mut self.rng)
    }
}

impl PathModel for Bbr1 {
    fn on_restart(&mut self, now: u64, _: u32, window: &mut f64) {
        self.after_idle = true;
        self.aggregation.restart(now);
        if self.phase == Phase::ProbeBw {
            self.pacing.set(MARGIN * self.bw.max(), true);
        } else if self.phase == Phase::ProbeRtt && self.probe_rtt.time_is_over(now) {
            self.leave_probe_rtt(now, window);
        }
    }

    fn on_lost(&mut self, _: &Lost, _: f64) {
        self.lost += 1;
    }

    fn on_repair(&mut self, change: &RepairChange, window: &mut f64) {
        let &RepairChange { repair, in_flight, delivered } = change;
        match repair {
            Repair::Begins => {
                self.save(*window);
                self.repairing = true;
                self.conserving = true;
                self.rounds.begin(delivered);
                *window = f64::from(in_flight) + 1.0;
            }
            Repair::TimedOut => {
                self.save(*window);
                self.repairing = true;
                self.conserving = false;
                self.full.rate = 0.0;
                *window = f64::from(in_flight) + 1.0;
            }
            Repair::Ends => {
                self.repairing = false;
                self.conserving = false;
                *window = window.max(self.prior_window);
            }
        }
    }

    fn on_sample(&mut self, s: &Sample, window: &mut f64) {
        if self.min_rtt_at == u64::MAX {
            self.min_rtt_at = s.now;
        }
        if self.pacing.rate == 0.0 && s.srtt > 0 {
            self.pacing.rate = HIGH_GAIN * self.initial_window / s.srtt as f64;
        }
        self.update_bw(s);
        let (bw, round) = (self.bw.max(), self.rounds.count);
        self.aggregation.update(s, *window, bw, round, AGGREGATION_ROUNDS);
        self.update_cycle(s);
        self.update_full(s);
        self.update_min_rtt(s, window);
        self.pacing.set(self.pacing_gain() * MARGIN * self.bw.max(), self.full.reached);
        self.set_window(s, window);
    }

    fn is_probing_rtt(&self) -> bool {
        self.phase == Phase::ProbeRtt
    }

    fn look(&mut self, look: &mut Look) {
        look.phases.extend(self.trail.take().map(|phase| NAMES[usize::from(phase)]));
        look.round = Some(self.rounds.count);
        look.restarting = self.after_idle;
    }

    fn values(&self, _: f64, values: Values<'_>) {
        self.rounds.values(values);
        self.full.values(values);
        values("pacing_gain", Value::Number(self.pacing_gain()));
        values("cwnd_gain", Value::Number(self.window_gain()));
        values("max_bw", Value::Rate(self.bw.max()));
        values("bw", Value::Rate(self.bw.max()));
        values("min_rtt", Value::Time(self.min_rtt));
        values("bdp", Value::Number(self.bdp(1.0)));
        values("inflight_target", Value::Number(self.with_room(self.bdp(1.0))));
        values("extra_acked", Value::Number(self.aggregation.most.max()));
        values("prior_cwnd", Value::Number(self.prior_window));
        values("idle_restart", Value::flag(self.after_idle));
    }
}
