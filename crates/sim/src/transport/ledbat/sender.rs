//! The sending half, a state machine without I/O; windows are in packets, times in ns.

use std::collections::VecDeque;

use super::Options;
use super::delay::Delays;
use crate::transport::tcp::rtt::{Backoff, RtoBounds, RttEstimator};

/// INIT_CWND, MIN_CWND and ALLOWED_INCREASE (§2.5).
const FIRST_WINDOW: f64 = 2.0;
const LEAST_WINDOW: f64 = 2.0;
const ALLOWED_INCREASE: f64 = 1.0;
/// A packet is lost if one that was sent so many later has come.
const LATER: u32 = 3;
/// In place of when a packet was sent: it has come, or is lost.
const GONE: u64 = u64::MAX;
const TIMEOUT: RtoBounds = RtoBounds {
    initial: 1_000_000_000,
    min: 1_000_000_000,
    max: 60_000_000_000,
    granularity: 1_000_000,
    tick: 0,
};

/// The state of a flow's sender.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) window: f64,
    /// When each packet from number `first` on was sent.
    sent: VecDeque<u64>,
    first: u32,
    pub(super) under_way: u32,
    /// The window gives way for none that was sent before this number.
    recover: u32,
    delays: Delays,
    pub(super) rtt: RttEstimator,
    backoff: Backoff,
    pub(super) deadline: u64,
    pub(super) stopped: bool,
    pub(super) timeouts: u32,
    /// Reductions because of a mark alone.
    pub(super) marked: u32,
}

impl Default for Sender {
    fn default() -> Self {
        Self {
            window: FIRST_WINDOW,
            sent: VecDeque::new(),
            first: 0,
            under_way: 0,
            recover: 0,
            delays: Delays::default(),
            rtt: RttEstimator::default(),
            backoff: Backoff::default(),
            deadline: u64::MAX,
            stopped: false,
            timeouts: 0,
            marked: 0,
        }
    }
}

impl Sender {
    /// The number of the next packet, which is sent now, if there is room for one.
    pub(super) fn send(&mut self, now: u64) -> Option<u32> {
        if self.stopped || self.under_way >= self.window as u32 {
            return None;
        }
        if self.under_way == 0 {
            self.wait(now);
        }
        let number = self.next();
        self.sent.push_back(now);
        self.under_way += 1;
        Some(number)
    }

    fn next(&self) -> u32 {
        self.first + self.sent.len() as u32
    }

    fn wait(&mut self, now: u64) {
        self.deadline = now + self.rtt.rto(self.backoff, &TIMEOUT);
    }

    /// Packet `number` came at `arrived`, `marked` or not; that is known now.
    pub(super) fn on_answer(
        &mut self,
        now: u64,
        number: u32,
        (arrived, marked): (u64, bool),
        o: &Options,
    ) {
        let Some(sent) = self.take(number) else { return };
        let before = f64::from(self.under_way + 1);
        self.rtt.sample(now - sent, &mut self.backoff);
        self.backoff.end();
        self.delays.take(now, arrived - sent);
        let off = (o.target - self.delays.queueing() as f64) / o.target;
        self.window += o.gain * off / self.window;
        self.window = self.window.min(before + ALLOWED_INCREASE).max(LEAST_WINDOW);

        let mut lost = None;
        for earlier in self.first..number.saturating_sub(LATER - 1) {
            if self.take(earlier).is_some() {
                lost = Some(earlier);
            }
        }
        let signal = lost.max(marked.then_some(number));
        if signal.is_some_and(|number| number >= self.recover) {
            self.window = self.window.min((self.window / 2.0).max(LEAST_WINDOW));
            self.recover = self.next();
            self.marked += u32::from(lost.is_none());
        }
        while self.sent.front() == Some(&GONE) {
            self.sent.pop_front();
            self.first += 1;
        }
        self.wait(now);
        if self.under_way == 0 {
            self.deadline = u64::MAX;
        }
    }

    /// When `number` was sent, which from now on is not under way.
    fn take(&mut self, number: u32) -> Option<u64> {
        let at = number.checked_sub(self.first)? as usize;
        let sent = self.sent.get_mut(at).filter(|sent| **sent != GONE)?;
        self.under_way -= 1;
        Some(std::mem::replace(sent, GONE))
    }

    /// No answer has come for a timeout: all under way is lost.
    pub(super) fn on_silence(&mut self) {
        self.timeouts += 1;
        self.window = 1.0;
        self.backoff.double(false);
        self.first = self.next();
        self.recover = self.first;
        self.sent.clear();
        (self.under_way, self.deadline) = (0, u64::MAX);
    }
}
