//! The sending half: the window (§4.1.2), the queue at the sender, and the pace.

use std::collections::VecDeque;

use super::delay::Delay;
use super::rate::MediaRate;
use super::{Options, Report, TOLD, seconds};

/// QDELAY_TREND_TH, which is QDELAY_TREND_LO too.
const TREND: f64 = 0.2;
/// MIN_CWND, bytes.
const LEAST: f64 = 3000.0;
/// MAX_BYTES_IN_FLIGHT_HEAD_ROOM, and for how long the maximum counts, ns.
const HEADROOM: f64 = 1.1;
const MAXIMUM: u64 = 5_000_000_000;
/// BETA_LOSS, BETA_ECN, and BETA_R of the rate.
const BETA_LOSS: f64 = 0.8;
const BETA_ECN: f64 = 0.9;
const BETA_R: f64 = 0.9;
/// T_RESUME_FAST_INCREASE, ns.
const RESUME: u64 = 5_000_000_000;
/// RATE_PACE_MIN, bit/s.
const LEAST_PACE: f64 = 50_000.0;
/// Weight of a sample in the smoothed round trip (RFC 6298).
const RTT_WEIGHT: f64 = 0.125;
/// Without a report for so long all packets under way are taken for lost, ns: ours.
const SILENCE: u64 = 1_000_000_000;
/// A packet that has waited for so long is not sent any more, ns: ours (§4.1.3 wants some).
const STALE: u64 = 1_000_000_000;

/// The sender's state.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// Length of a packet, bytes: MSS.
    len: f64,
    pub(super) delay: Delay,
    pub(super) rate: MediaRate,
    /// Congestion window, bytes.
    pub(super) cwnd: f64,
    pub(super) rising: bool,
    /// Since when the trend is low, ns.
    calm_since: u64,
    /// When each packet that waits was encoded, ns.
    pub(super) queue: VecDeque<u64>,
    /// Bytes of a frame that made no packet.
    carry: f64,
    /// When each packet under way was sent, ns; the first is number `answered`.
    flying: VecDeque<u64>,
    answered: u32,
    marks: u16,
    /// The most packets under way, with the time, ns: falling, of the last seconds.
    most: VecDeque<(u64, usize)>,
    pub(super) srtt: f64,
    /// Loss events, and marks, count again from then on, ns.
    losses_from: u64,
    marks_from: u64,
    /// When the round trip ends of which losses are counted, ns; whether there were some.
    round_end: u64,
    lossy: bool,
    /// When the next packet may go, ns.
    pub(super) paced_until: u64,
    /// When silence is long enough, ns; `u64::MAX` with nothing under way.
    pub(super) deadline: u64,
    pub(super) silences: u32,
}

impl Sender {
    pub(super) fn new(now: u64, len: u16, o: &Options) -> Self {
        let len = f64::from(len);
        Self {
            len,
            delay: Delay::default(),
            rate: MediaRate::new(now, o),
            cwnd: LEAST.max(2.0 * len),
            rising: true,
            calm_since: now,
            queue: VecDeque::new(),
            carry: 0.0,
            flying: VecDeque::new(),
            answered: 0,
            marks: 0,
            most: VecDeque::new(),
            srtt: 0.0,
            losses_from: 0,
            marks_from: 0,
            round_end: 0,
            lossy: false,
            paced_until: 0,
            deadline: u64::MAX,
            silences: 0,
        }
    }

    /// A frame is encoded, at the rate of now.
    pub(super) fn encode(&mut self, now: u64, o: &Options) {
        while self.queue.front().is_some_and(|made| made + STALE < now) {
            self.queue.pop_front();
        }
        let queued = 8.0 * self.len * self.queue.len() as f64;
        self.rate.adjust(now, queued, self.rising, &self.delay, o);
        let bits = self.rate.target * seconds(o.frame);
        self.rate.encoded += bits;
        self.carry += bits / 8.0;
        while self.carry >= self.len {
            self.carry -= self.len;
            self.queue.push_back(now);
        }
    }

    /// The congestion window, packets.
    pub(super) fn window(&self) -> f64 {
        self.cwnd / self.len
    }

    fn in_flight(&self) -> f64 {
        self.len * self.flying.len() as f64
    }

    /// Whether the window has room for a packet (§4.1.2.5).
    pub(super) fn has_room(&self) -> bool {
        let extra = if self.delay.now <= self.delay.target { self.len } else { 0.0 };
        self.cwnd + extra - self.in_flight() >= self.len
    }

    /// The packet that may be sent at `now`, as its number and when it was encoded.
    pub(super) fn send(&mut self, now: u64) -> Option<(u32, u64)> {
        if now < self.paced_until || !self.has_room() {
            return None;
        }
        let made = self.queue.pop_front()?;
        let number = self.answered + self.flying.len() as u32;
        if self.flying.is_empty() {
            self.deadline = now + SILENCE;
        }
        self.flying.push_back(now);
        while self.most.back().is_some_and(|(_, count)| *count <= self.flying.len()) {
            self.most.pop_back();
        }
        self.most.push_back((now, self.flying.len()));
        let bits = 8.0 * self.len;
        self.rate.sent += bits;
        // Before the first round trip nothing tells how fast a window is.
        let pace = if self.srtt > 0.0 { 8.0 * self.cwnd / self.srtt } else { self.rate.target };
        self.paced_until = now + (1e9 * bits / pace.max(LEAST_PACE)) as u64;
        Some((number, made))
    }

    /// A report has come.
    pub(super) fn on_report(&mut self, now: u64, report: Report, o: &Options) {
        let newly = (report.highest + 1).saturating_sub(self.answered);
        let Some(&sent) = newly.checked_sub(1).and_then(|k| self.flying.get(k as usize)) else {
            return; // an old one, or of packets that were given up
        };
        self.delay.measure(now, report.arrived - sent);
        let rtt = seconds(now - sent);
        self.srtt = if self.srtt > 0.0 { self.srtt + RTT_WEIGHT * (rtt - self.srtt) } else { rtt };
        let before = self.in_flight();
        self.flying.drain(..newly as usize);
        self.answered = report.highest + 1;
        self.deadline = if self.flying.is_empty() { u64::MAX } else { now + SILENCE };
        let bytes = self.len * f64::from(newly);
        self.rate.acknowledged += 8.0 * bytes;
        // Of those that it tells for the first time.
        let fresh = if newly > TOLD { u32::MAX } else { (1 << (newly - 1)) - 1 };
        let lost = report.missing & fresh != 0;
        let marked = report.marks != std::mem::replace(&mut self.marks, report.marks);
        self.count_round(now, lost);
        if lost && self.losses_from <= now {
            self.losses_from = now + (1e9 * self.srtt) as u64;
            self.reduce(BETA_LOSS, BETA_R, o);
        } else if marked && self.marks_from <= now {
            self.marks_from = now + (1e9 * self.srtt) as u64;
            self.reduce(BETA_ECN, BETA_ECN, o);
        } else {
            self.grow(now, bytes, before);
        }
        if o.compete {
            self.delay.adjust_target();
        }
        self.resume(now);
    }

    /// Nothing was heard for long: what is under way is lost.
    pub(super) fn on_silence(&mut self, now: u64, o: &Options) {
        self.silences += 1;
        self.answered += self.flying.len() as u32;
        self.flying.clear();
        self.deadline = u64::MAX;
        self.count_round(now, true);
        self.reduce(BETA_LOSS, BETA_R, o);
    }

    fn count_round(&mut self, now: u64, lost: bool) {
        self.lossy |= lost;
        if self.round_end <= now {
            self.delay.round(std::mem::take(&mut self.lossy));
            self.round_end = now + (1e9 * self.srtt) as u64;
        }
    }

    fn reduce(&mut self, of_window: f64, of_rate: f64, o: &Options) {
        self.rising = false;
        self.cwnd = (of_window * self.cwnd).max(LEAST);
        self.rate.congestion(of_rate, o);
    }

    /// update_cwnd of §4.1.2.2: so many bytes are acknowledged, of so many that were under way.
    fn grow(&mut self, now: u64, bytes: f64, in_flight: f64) {
        if self.rising && self.delay.trend < TREND {
            if 1.5 * in_flight + bytes > self.cwnd {
                self.cwnd += bytes;
            }
            return;
        }
        self.rising = false;
        let off_target = (self.delay.target - self.delay.now) / self.delay.target;
        if off_target <= 0.0 || 1.25 * in_flight + bytes > self.cwnd {
            self.cwnd += off_target * bytes * self.len / self.cwnd;
        }
        while self.most.front().is_some_and(|(at, _)| at + MAXIMUM < now) {
            self.most.pop_front();
        }
        let most = self.most.front().map_or(0, |(_, count)| *count);
        self.cwnd = self.cwnd.min(HEADROOM * self.len * most as f64).max(LEAST);
    }

    /// Fast increase goes on after a calm time (§4.1.2.7).
    fn resume(&mut self, now: u64) {
        if self.delay.trend >= TREND {
            self.calm_since = now;
        } else if now >= self.calm_since + RESUME {
            self.rising = true;
        }
    }
}
