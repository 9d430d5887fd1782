//! BBR version 3 (draft-ietf-ccwg-bbr, of August 2026; the sections are named as there).
//!
//! Beside the model of version 1 it keeps what losses say: for long, how much may be under way
//! (`inflight_long`); until the next probe, how much and how fast (`inflight_short`, `bw_short`).
//!
//! ```text
//! Startup ─ full ─→ Drain ─ empty ─→ Down ─ empty ─→ Cruise ─ 2…3 s or 63 rounds ─→ Refill ─┐
//!                                     ↑                                                     │ a round
//!                                     └──── full, or more than 2 % lost ──── Up ←───────────┘
//! each 5 s without a shorter round trip: ProbeRTT, 200 ms with half of the BDP under way
//! ```
//!
//! The draft asks that marks count as congestion and does not say how; here a mark counts as losses
//! above the threshold do while it probes, and as a loss otherwise (ours), or as Google's kernel has it
//! ([`marks`]).

mod marks;
mod phase;

use aqm::Rng;
use marks::Marks;
use phase::Phase::{Cruise, Down, Drain, Refill, Startup, Up};
use phase::{Acks, NAMES, Phase, STARTUP_GAIN};

use super::super::{CongestionControl, Lost, Pace, PathModel, Repair, RepairChange, Sample, Times};
use super::{
    Aggregation, FullPipe, LEAST_WINDOW, MARGIN, MaxFilter, Pacing, ProbeRtt, Rounds, Trail,
};
use crate::transport::tcp::Options;
use crate::transport::tcp::options::MarkRule;
use crate::watch::{Look, Value, Values};

/// The share of losses in a round trip that is borne while it probes.
const LOSS_THRESH: f64 = 0.02;
/// What a round with losses leaves at least.
const BETA: f64 = 0.7;
/// The share of `inflight_long` that is left to others.
const HEADROOM: f64 = 0.15;
/// So many separate losses in a round end Startup.
const STARTUP_LOSSES: u32 = 6;
const DRAIN_ROUNDS: u32 = 3;
/// Windows of the filters: probes, rounds, ns.
const BW_CYCLES: u32 = 2;
const AGGREGATION_ROUNDS: u32 = 10;
const MIN_RTT_FOR: u64 = 10_000_000_000;
const PROBE_RTT_EACH: u64 = 5_000_000_000;
/// The next probe comes after this and up to a second more, ns, or so many rounds as a window of Reno
/// takes, at most 63.
const PROBE_WAIT: u64 = 2_000_000_000;
const MOST_PROBE_ROUNDS: f64 = 63.0;

/// The last round with losses: what it delivered.
#[derive(Clone, Default, Debug)]
struct LossRound {
    /// It ends when this is delivered.
    next: u32,
    ended: bool,
    /// Something was lost, or marked.
    lossy: bool,
    /// Lost in so many separate places.
    places: u32,
    last: Option<u32>,
    bw: f64,
    inflight: f64,
    /// Packets lost, and under way when the last of them was sent, as losses ended a probe or Startup last.
    too_high: (u32, f64),
}

/// What losses take away, should they turn out to be none (*Saving State Upon Loss Recovery*).
#[derive(Clone, Debug)]
struct Undo {
    /// The phase that they ended.
    phase: Option<Phase>,
    bw_short: f64,
    inflight_short: f64,
    inflight_long: f64,
}

/// Whether and when to probe for bandwidth.
#[derive(Clone, Debug)]
struct Probe {
    acks: Acks,
    /// What comes tells of a probe.
    sampling: bool,
    too_high: bool,
    precautionary: bool,
    /// Acknowledged since the bound was raised, and how much raises it by a packet.
    acked: f64,
    acked_per_packet: f64,
    /// Rounds in which it was raised, and since the last probe.
    up_rounds: u32,
    rounds_since: u32,
    /// When the cycle began, and how long it waits, ns.
    since: u64,
    wait: u64,
}

/// Whether the window was full at any point in a round trip, which is counted by packets.
#[derive(Clone, Copy, Default, Debug)]
struct WindowUse {
    /// In the last one: `C.is_cwnd_limited`.
    limited: bool,
    /// In this one so far.
    filled: bool,
}

impl WindowUse {
    /// An acknowledgement, before which the window was `filled`, and which `ends` the round trip.
    fn update(&mut self, filled: bool, ends: bool) {
        self.filled |= filled;
        if ends {
            (self.limited, self.filled) = (self.filled, false);
        }
    }
}

/// The state of BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr {
    phase: Phase,
    trail: Trail,
    rounds: Rounds,
    window_use: WindowUse,
    max_bw: MaxFilter,
    cycle: u32,
    bw: f64,
    bw_short: f64,
    inflight_long: f64,
    inflight_short: f64,
    full: FullPipe,
    loss: LossRound,
    undo: Undo,
    marks: Marks,
    probe: Probe,
    drain_began: u32,
    min_rtt: u64,
    min_rtt_at: u64,
    /// The least round trip since the last ProbeRTT, and when it was.
    probe_min_rtt: u64,
    probe_min_rtt_at: u64,
    probe_rtt: ProbeRtt,
    aggregation: Aggregation,
    pacing: Pacing,
    after_idle: bool,
    repairing: bool,
    initial_window: f64,
    prior_window: f64,
    rng: Rng,
}

/// *Estimates and volumes.*
impl Bbr {
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt == u64::MAX {
            return self.initial_window;
        }
        gain * bw * self.min_rtt as f64
    }

    /// QuantizationBudget: room for three bursts.
    fn with_room(&self, volume: f64) -> f64 {
        let least = volume.max(3.0 * self.pacing.burst(2.0)).max(LEAST_WINDOW);
        least + if self.phase == Up { 2.0 } else { 0.0 }
    }

    fn inflight_with_headroom(&self) -> f64 {
        let headroom = (HEADROOM * self.inflight_long).max(1.0);
        if self.inflight_long.is_finite() {
            (self.inflight_long - headroom).max(LEAST_WINDOW)
        } else {
            f64::INFINITY
        }
    }

    fn target_inflight(&self, window: f64) -> f64 {
        self.bdp(self.bw, 1.0).min(window)
    }

    fn probe_rtt_window(&self) -> f64 {
        self.bdp(self.bw, Phase::ProbeRtt.window_gain()).max(LEAST_WINDOW)
    }
}

/// *Updating the network path model.*
impl Bbr {
    fn update_latest(&mut self, s: &Sample) {
        self.loss.bw = self.loss.bw.max(s.rate);
        self.loss.inflight = self.loss.inflight.max(f64::from(s.delivered));
        self.loss.ended = s.prior_delivered >= self.loss.next;
        if self.loss.ended {
            self.loss.next = s.total;
        }
    }

    fn update_bw(&mut self, s: &Sample) {
        self.rounds.update(s);
        self.window_use.update(s.window_filled, self.rounds.started);
        self.probe.rounds_since += u32::from(self.rounds.started);
        if s.rate > 0.0 && (s.rate >= self.max_bw.max() || !s.app_limited) {
            self.max_bw.update(self.cycle, s.rate, BW_CYCLES);
        }
    }

    /// Losses while it does not probe: once a round, down to what was delivered, at most by 30 %; marks by
    /// their share.
    fn update_short_term(&mut self, window: f64) {
        if !self.loss.ended {
            return;
        }
        let inflight = if self.inflight_short.is_finite() { self.inflight_short } else { window };
        let marked = self.marks.end_round(inflight);
        if self.loss.lossy && !self.phase.accelerates() {
            let bw = if self.bw_short.is_finite() { self.bw_short } else { self.max_bw.max() };
            self.bw_short = self.loss.bw.max(BETA * bw);
            self.inflight_short = self.loss.inflight.max(BETA * inflight);
        }
        if let Some(left) = marked
            && !self.phase.accelerates()
        {
            self.inflight_short = self.inflight_short.min(left);
        }
        self.loss.lossy = false;
    }

    fn forget_short_term(&mut self) {
        (self.bw_short, self.inflight_short) = (f64::INFINITY, f64::INFINITY);
    }

    fn note_loss(&mut self, delivered: u32) {
        if !self.loss.lossy {
            self.loss.next = delivered;
        }
        self.loss.lossy = true;
        self.marks.lossy_cycle = true;
    }

    /// HandleInflightTooHigh: `inflight` was too much.
    fn on_too_high(&mut self, inflight: f64, app_limited: bool, tells: Tells) {
        self.probe.too_high = true;
        self.probe.sampling = false;
        if !app_limited {
            self.inflight_long = inflight.max(BETA * self.target_inflight(tells.window));
        }
        if self.phase == Up {
            self.undo.phase = Some(Up);
            self.start_down(tells);
        }
    }

    /// A mark, ours: see above.
    fn on_mark(&mut self, s: &Sample, window: f64) {
        self.note_loss(s.total);
        if self.phase == Startup {
            self.leave_startup_high();
        } else if self.probe.sampling {
            let tells = Tells { now: s.now, delivered: s.total, window };
            self.on_too_high(f64::from(s.tx_in_flight), s.app_limited, tells);
        }
    }

    fn update_min_rtt(&mut self, s: &Sample) -> bool {
        let expired = s.now > self.probe_min_rtt_at.saturating_add(PROBE_RTT_EACH);
        if let Some(rtt) = s.rtt
            && (rtt < self.probe_min_rtt || expired)
        {
            (self.probe_min_rtt, self.probe_min_rtt_at) = (rtt, s.now);
        }
        let old = s.now > self.min_rtt_at.saturating_add(MIN_RTT_FOR);
        if self.probe_min_rtt < self.min_rtt || old {
            (self.min_rtt, self.min_rtt_at) = (self.probe_min_rtt, self.probe_min_rtt_at);
        }
        expired
    }
}

/// What a step needs besides the state.
#[derive(Clone, Copy)]
struct Tells {
    now: u64,
    delivered: u32,
    window: f64,
}

/// *The state machine.*
impl Bbr {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.trail.enter(phase as u8);
    }

    /// Startup ends with a full pipe, or with many losses in a round of repair.
    fn check_startup(&mut self, s: &Sample) {
        if self.phase != Startup {
            return;
        }
        if self.loss.ended {
            if self.repairing && self.loss.places >= STARTUP_LOSSES && s.is_lossy() {
                self.loss.too_high = (s.lost, s.tx_in_flight.into());
                self.leave_startup_high();
            }
            self.loss.places = 0;
        }
        if self.full.reached {
            self.enter(Drain);
            self.drain_began = self.rounds.count;
            self.marks.restart();
        }
    }

    fn leave_startup_high(&mut self) {
        self.undo.phase = Some(Startup);
        self.full.reached = true;
        self.inflight_long = self.bdp(self.bw, 1.0).max(self.loss.inflight);
    }

    fn check_drain(&mut self, s: &Sample, window: f64) {
        let empty = f64::from(s.in_flight) <= self.with_room(self.bdp(self.bw, 1.0));
        if self.phase == Drain && (empty || self.rounds.count > self.drain_began + DRAIN_ROUNDS) {
            self.start_down(Tells { now: s.now, delivered: s.total, window });
        }
    }

    fn start_down(&mut self, tells: Tells) {
        (self.loss.lossy, self.loss.bw, self.loss.inflight) = (false, 0.0, 0.0);
        self.marks.restart();
        self.probe.acked_per_packet = f64::INFINITY;
        self.probe.rounds_since = self.rng.below(2) as u32;
        self.probe.wait = PROBE_WAIT + (self.rng.uniform() * 1e9) as u64;
        self.probe.since = tells.now;
        self.probe.acks = Acks::ProbeStopping;
        self.rounds.begin(tells.delivered);
        self.enter(Down);
    }

    fn start_refill(&mut self, delivered: u32) {
        self.forget_short_term();
        (self.probe.up_rounds, self.probe.acked) = (0, 0.0);
        self.probe.precautionary = false;
        self.probe.acks = Acks::Refilling;
        self.rounds.begin(delivered);
        self.enter(Refill);
    }

    /// Marks have ceased: the bound rises by half of itself in the first round.
    fn probe_again(&mut self, delivered: u32) {
        self.start_refill(delivered);
        let half = (self.inflight_long / 2.0).max(1.0);
        self.probe.up_rounds = (half.log2() as u32).min(30);
    }

    fn start_up(&mut self, s: &Sample, window: f64) {
        self.probe.sampling = true;
        self.probe.acks = Acks::ProbeStarting;
        self.rounds.begin(s.total);
        self.full.restart(s.rate);
        self.enter(Up);
        self.raise_slope(window);
    }

    /// The bound rises by 1, 2, 4 … packets a round.
    fn raise_slope(&mut self, window: f64) {
        let growth = f64::from(1u32 << self.probe.up_rounds);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
        self.probe.acked_per_packet = (window / growth).max(1.0);
    }

    fn raise_bound(&mut self, s: &Sample, window: f64) {
        if !self.window_use.limited || window < self.inflight_long {
            return;
        }
        self.probe.acked += f64::from(s.newly);
        let packets = (self.probe.acked / self.probe.acked_per_packet).floor();
        if packets >= 1.0 {
            self.probe.acked -= packets * self.probe.acked_per_packet;
            self.inflight_long += packets;
        }
        if self.rounds.started {
            self.raise_slope(window);
        }
    }

    /// AdaptLongTermModel: whether the phase is decided already.
    fn adapt_long_term(&mut self, s: &Sample, window: f64) -> bool {
        if self.probe.acks == Acks::ProbeStarting && self.rounds.started {
            self.probe.acks = Acks::ProbeFeedback;
        }
        if self.probe.acks == Acks::ProbeStopping && self.rounds.started {
            self.probe.sampling = false;
            self.probe.acks = Acks::Calm;
            if self.phase.is_probe_bw() && !s.app_limited {
                self.cycle += 1;
            }
            if self.phase.is_probe_bw() && self.probe.precautionary && !self.probe.too_high {
                self.start_refill(s.total);
                return true;
            }
        }
        if self.marks.are_many(s) {
            if self.probe.sampling {
                let tells = Tells { now: s.now, delivered: s.total, window };
                self.on_too_high(f64::from(s.tx_in_flight), s.app_limited, tells);
            }
        } else if !s.is_lossy() && self.inflight_long.is_finite() {
            self.inflight_long = self.inflight_long.max(f64::from(s.tx_in_flight));
            if self.phase == Up {
                self.raise_bound(s, window);
            }
        }
        false
    }

    fn update_cycle(&mut self, s: &Sample, window: f64) {
        if !self.full.reached || self.adapt_long_term(s, window) {
            return;
        }
        let phase = self.phase;
        match phase {
            Down | Cruise if self.marks.have_ceased(s) => self.probe_again(s.total),
            Down | Cruise if self.is_time_to_probe(s.now, window) => self.start_refill(s.total),
            Down if self.is_time_to_cruise(s) => self.enter(Cruise),
            Refill if self.rounds.started => self.start_up(s, window),
            Up if self.is_time_to_go_down(s, window) => {
                self.probe.too_high = false;
                self.start_down(Tells { now: s.now, delivered: s.total, window });
            }
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: u64, window: f64) -> bool {
        let rounds = self.target_inflight(window).min(MOST_PROBE_ROUNDS);
        now > self.probe.since + self.probe.wait || f64::from(self.probe.rounds_since) >= rounds
    }

    fn is_time_to_cruise(&self, s: &Sample) -> bool {
        let in_flight = f64::from(s.in_flight);
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.with_room(self.bdp(self.max_bw.max(), 1.0))
    }

    fn is_time_to_go_down(&mut self, s: &Sample, window: f64) -> bool {
        if self.probe.too_high && f64::from(s.in_flight) >= self.inflight_long {
            self.probe.precautionary = true;
            return true;
        }
        if self.window_use.limited && window >= self.inflight_long {
            self.full.restart(s.rate);
            return false;
        }
        self.full.now
    }

    fn check_probe_rtt(&mut self, s: &Sample, expired: bool, window: &mut f64) {
        if self.phase != Phase::ProbeRtt && expired && !self.after_idle {
            self.save(*window);
            self.enter(Phase::ProbeRtt);
            self.probe_rtt = ProbeRtt::default();
            self.probe.acks = Acks::ProbeStopping;
            self.rounds.begin(s.total);
        }
        if self.phase == Phase::ProbeRtt {
            let most = self.probe_rtt_window();
            if self.probe_rtt.is_over(s, &mut self.rounds, most) {
                self.leave_probe_rtt(s.now, s.total, window);
            }
        }
        self.after_idle = false;
    }

    fn leave_probe_rtt(&mut self, now: u64, delivered: u32, window: &mut f64) {
        self.probe_min_rtt_at = now;
        *window = window.max(self.prior_window);
        self.forget_short_term();
        if self.full.reached {
            self.start_down(Tells { now, delivered, window: *window });
            self.enter(Cruise);
        } else {
            self.enter(Startup);
        }
    }
}

/// *Updating the model upon detecting a spurious loss recovery.*
impl Bbr {
    /// `SaveStateUponLoss`: as a repair begins, and at the first loss of each round (`NoteLoss`).
    fn save_upon_loss(&mut self, window: f64) {
        self.save(window);
        self.undo = Undo {
            phase: None,
            bw_short: self.bw_short,
            inflight_short: self.inflight_short,
            inflight_long: self.inflight_long,
        };
    }

    /// `HandleSpuriousLossDetection`.
    fn undo_loss(&mut self, delivered: u32, window: &mut f64) {
        *window = window.max(self.prior_window);
        self.loss.lossy = false;
        self.full.restart(0.0);
        self.bw_short = self.bw_short.max(self.undo.bw_short);
        self.inflight_short = self.inflight_short.max(self.undo.inflight_short);
        self.inflight_long = self.inflight_long.max(self.undo.inflight_long);
        let probes_rtt = self.phase == Phase::ProbeRtt;
        match self.undo.phase.take() {
            Some(Startup) if self.phase != Startup => {
                self.full.reached = false;
                if !probes_rtt {
                    self.enter(Startup);
                }
            }
            Some(Up) if self.phase != Up && !probes_rtt => self.start_refill(delivered),
            _ => {}
        }
    }
}

/// *Updating control parameters.*
impl Bbr {
    fn save(&mut self, window: f64) {
        let calm = !self.repairing && self.phase != Phase::ProbeRtt;
        self.prior_window = if calm { window } else { self.prior_window.max(window) };
    }

    fn set_window(&mut self, s: &Sample, window: &mut f64) {
        let volume = self.bdp(self.bw, self.phase.window_gain()) + self.aggregation.most.max();
        let most = self.with_room(volume);
        let grown = *window + f64::from(s.newly);
        if self.full.reached {
            *window = grown.min(most);
        } else if *window < most || f64::from(s.total) < self.initial_window {
            *window = grown;
        }
        *window = window.max(LEAST_WINDOW);
        if self.phase == Phase::ProbeRtt {
            *window = window.min(self.probe_rtt_window());
        }
        *window = window.min(self.window_cap());
    }

    fn window_cap(&self) -> f64 {
        let long = match self.phase {
            Cruise | Phase::ProbeRtt => self.inflight_with_headroom(),
            Down | Refill | Up => self.inflight_long,
            Startup | Drain => f64::INFINITY,
        };
        long.min(self.inflight_short).max(LEAST_WINDOW)
    }
}

impl Bbr {
    fn fresh(initial_window: f64) -> Self {
        Self {
            phase: Startup,
            trail: Trail(1),
            rounds: Rounds::default(),
            window_use: WindowUse::default(),
            max_bw: MaxFilter::default(),
            cycle: 0,
            bw: 0.0,
            bw_short: f64::INFINITY,
            inflight_long: f64::INFINITY,
            inflight_short: f64::INFINITY,
            full: FullPipe::default(),
            loss: LossRound::default(),
            undo: Undo { phase: None, bw_short: 0.0, inflight_short: 0.0, inflight_long: 0.0 },
            marks: Marks::new(MarkRule::AsLosses),
            probe: Probe {
                acks: Acks::Calm,
                sampling: false,
                too_high: false,
                precautionary: false,
                acked: 0.0,
                acked_per_packet: f64::INFINITY,
                up_rounds: 0,
                rounds_since: 0,
                since: 0,
                wait: 0,
            },
            drain_began: 0,
            min_rtt: u64::MAX,
            min_rtt_at: 0,
            probe_min_rtt: u64::MAX,
            probe_min_rtt_at: u64::MAX,
            probe_rtt: ProbeRtt::default(),
            aggregation: Aggregation::default(),
            pacing: Pacing::new(1500.0),
            after_idle: false,
            repairing: false,
            initial_window,
            prior_window: 0.0,
            rng: Rng::new(0, 0),
        }
    }
}

impl CongestionControl for Bbr {
    fn new(o: &Options) -> Self {
        Self {
            marks: Marks::new(o.control.marks),
            pacing: Pacing::new(o.control.packet),
            ..Self::fresh(o.window.initial)
        }
    }

    fn model(&mut self) -> Option<&mut dyn PathModel> {
        Some(self)
    }

    fn pace(&self, times: Times) -> Pace {
        Pace::Gap(self.pacing.gap(STARTUP_GAIN * self.initial_window, times.srtt))
    }

    fn rng(&mut self) -> Option<&mut Rng> {
        Some(&mut self.rng)
    }
}

impl PathModel for Bbr {
    fn on_restart(&mut self, now: u64, delivered: u32, window: &mut f64) {
        self.after_idle = true;
        self.aggregation.restart(now);
        if self.phase.is_probe_bw() {
            self.pacing.set(MARGIN * self.bw, self.full.reached);
        } else if self.phase == Phase::ProbeRtt && self.probe_rtt.time_is_over(now) {
            self.leave_probe_rtt(now, delivered, window);
        }
    }

    fn on_lost(&mut self, lost: &Lost, window: f64) {
        if !self.loss.lossy {
            self.save_upon_loss(window);
        }
        self.note_loss(lost.total);
        if self.loss.last.is_none_or(|last| last + 1 != lost.seq) {
            self.loss.places += 1;
        }
        self.loss.last = Some(lost.seq);
        let in_flight = f64::from(lost.tx_in_flight);
        if !self.probe.sampling || f64::from(lost.lost) <= in_flight * LOSS_THRESH {
            return;
        }
        // InflightAtLoss: where in a burst the threshold was passed; here a burst is a packet.
        let (before, lost_before) = (in_flight - 1.0, f64::from(lost.lost) - 1.0);
        let part = (LOSS_THRESH * before - lost_before) / (1.0 - LOSS_THRESH);
        self.loss.too_high = (lost.lost, in_flight);
        let tells = Tells { now: lost.now, delivered: lost.total, window };
        self.on_too_high(before + part, lost.app_limited, tells);
    }

    fn on_repair(&mut self, change: &RepairChange, window: &mut f64) {
        let &RepairChange { repair, in_flight, .. } = change;
        match repair {
            Repair::Begins | Repair::TimedOut => {
                self.save_upon_loss(*window);
                self.repairing = true;
            }
            Repair::Ends => {
                self.repairing = false;
                *window = window.max(self.prior_window);
            }
        }
        if repair == Repair::TimedOut {
            *window = f64::from(in_flight) + 1.0;
        }
    }

    fn on_undo(&mut self, delivered: u32, window: &mut f64) {
        self.undo_loss(delivered, window);
    }

    fn on_sample(&mut self, s: &Sample, window: &mut f64) {
        if self.probe_min_rtt_at == u64::MAX {
            (self.probe_min_rtt_at, self.min_rtt_at) = (s.now, s.now);
            self.aggregation.restart(s.now);
        }
        if self.pacing.rate == 0.0 && s.srtt > 0 {
            self.pacing.rate = STARTUP_GAIN * self.initial_window / s.srtt as f64;
        }
        if s.marked && self.marks.rule == MarkRule::AsLosses {
            self.on_mark(s, *window);
        }
        self.update_latest(s);
        self.update_bw(s);
        if self.marks.update(s, self.rounds.started, self.min_rtt) && !self.full.reached {
            self.leave_startup_high();
        }
        self.update_short_term(*window);
        let length = if self.full.reached { AGGREGATION_ROUNDS } else { 1 };
        self.aggregation.update(s, *window, self.bw, self.rounds.count, length);
        if !self.full.now && self.rounds.started && !s.app_limited {
            self.full.update(s.rate);
        }
        self.check_startup(s);
        self.check_drain(s, *window);
        self.update_cycle(s, *window);
        let expired = self.update_min_rtt(s);
        self.check_probe_rtt(s, expired, window);
        if self.loss.ended {
            (self.loss.bw, self.loss.inflight) = (s.rate, f64::from(s.delivered));
        }
        self.marks.note(s);
        self.bw = self.max_bw.max().min(self.bw_short);
        self.pacing.set(self.phase.pacing_gain() * MARGIN * self.bw, self.full.reached);
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

    fn values(&self, window: f64, values: Values<'_>) {
        self.rounds.values(values);
        self.full.values(values);
        let volume = self.bdp(self.bw, self.phase.window_gain()) + self.aggregation.most.max();
        let numbers = [
            ("cycle_count", self.cycle.into()),
            ("bw_probe_up_rounds", self.probe.up_rounds.into()),
            ("pacing_gain", self.phase.pacing_gain()),
            ("cwnd_gain", self.phase.window_gain()),
            ("inflight_longterm", self.inflight_long),
            ("inflight_shortterm", self.inflight_short),
            ("inflight_latest", self.loss.inflight),
            ("bdp", self.bdp(self.bw, 1.0)),
            ("inflight_target", self.with_room(self.bdp(self.bw, 1.0))),
            ("inflight_target_max_bw", self.with_room(self.bdp(self.max_bw.max(), 1.0))),
            ("inflight_with_headroom", self.inflight_with_headroom()),
            ("target_inflight", self.target_inflight(window)),
            ("extra_acked", self.aggregation.most.max()),
            ("max_inflight", self.with_room(volume)),
            ("prior_cwnd", self.prior_window),
            ("loss_ranges", self.loss.places.into()),
            ("high_lost", self.loss.too_high.0.into()),
            ("high_inflight", self.loss.too_high.1),
            ("undo_inflight_shortterm", self.undo.inflight_short),
            ("undo_inflight_longterm", self.undo.inflight_long),
        ];
        numbers.into_iter().for_each(|(name, value)| values(name, Value::Number(value)));
        let rates = [
            ("max_bw", self.max_bw.max()),
            ("bw", self.bw),
            ("bw_shortterm", self.bw_short),
            ("bw_latest", self.loss.bw),
            ("undo_bw_shortterm", self.undo.bw_short),
        ];
        rates.into_iter().for_each(|(name, value)| values(name, Value::Rate(value)));
        let flags = [
            ("prev_probe_too_high", self.probe.too_high),
            ("prev_probe_precautionary", self.probe.precautionary),
            ("is_bw_probe_sample", self.probe.sampling),
            ("idle_restart", self.after_idle),
        ];
        flags.into_iter().for_each(|(name, value)| values(name, Value::flag(value)));
        values("min_rtt", Value::Time(self.min_rtt));
        values("probe_rtt_min_delay", Value::Time(self.probe_min_rtt));
        values("bw_probe_wait", Value::Time(self.probe.wait));
        values("probe_rtt_min_stamp", Value::Time(self.probe_min_rtt_at));
        values("probe_rtt_done_stamp", Value::Time(self.probe_rtt.until));
    }
}

impl Sample {
    /// IsInflightTooHigh: more than 2 % of what was under way was lost.
    fn is_lossy(&self) -> bool {
        f64::from(self.lost) > f64::from(self.tx_in_flight) * LOSS_THRESH
    }
}

#[cfg(test)]
mod tests;
