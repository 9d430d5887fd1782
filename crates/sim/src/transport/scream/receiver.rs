//! The receiving half: tells what came (§4.2).

use super::{Report, TOLD};
use crate::results::distinct::Distinct;

/// The receiver's state.
#[derive(Clone, Default, Debug)]
pub(super) struct Receiver {
    pub(super) received: Distinct,
    /// The next number after the highest that came; bit k of `came`: that − 2 − k did.
    next: u32,
    came: u32,
    arrived: u64,
    marks: u16,
    /// Since the last report: packets, and when that was, ns.
    fresh: u32,
    reported_at: u64,
}

impl Receiver {
    /// Packet `number` comes. Returns whether a report has to go at once.
    pub(super) fn on_data(&mut self, now: u64, number: u32, marked: bool) -> bool {
        self.received.take(number);
        self.fresh += 1;
        self.marks = self.marks.wrapping_add(u16::from(marked));
        if number >= self.next {
            let first = self.next == 0;
            let steps = number + 1 - self.next;
            // What came before moves back, the highest so far with it.
            self.came = match steps {
                1..TOLD => self.came << steps | u32::from(!first) << (steps - 1),
                TOLD => u32::from(!first) << (steps - 1),
                _ => 0,
            };
            (self.next, self.arrived) = (number + 1, now);
        } else if let Some(k) = (self.next - 1 - number).checked_sub(1)
            && k < TOLD
        {
            self.came |= 1 << k;
        }
        self.fresh >= TOLD
    }

    /// What there is to tell, and when the next report is due: the more often, the faster the packets
    /// of `len` bytes come (§4.2.2). Without news nothing, and the next packet is answered at once.
    pub(super) fn report(&mut self, now: u64, len: u16) -> (Option<Report>, u64) {
        if self.fresh == 0 {
            return (None, u64::MAX);
        }
        let time = (now - self.reported_at).max(1) as f64 / 1e9;
        let rate = f64::from(self.fresh) * f64::from(len) * 8.0 / time;
        let per_second = (rate / 10_000.0).clamp(2.5, 50.0);
        (self.fresh, self.reported_at) = (0, now);
        // Before the first packet nothing is missing.
        let there = (self.next - 1).min(TOLD);
        let mask = if there == TOLD { u32::MAX } else { (1 << there) - 1 };
        let report = Report {
            highest: self.next - 1,
            arrived: self.arrived,
            missing: !self.came & mask,
            marks: self.marks,
        };
        (Some(report), now + (1e9 / per_second) as u64)
    }
}
