//! What selective acknowledgements tell, and what is sent for it (RFC 6675).

use super::{DUPLICATES, Sender};
use crate::packet::SACK_BLOCKS;
use crate::transport::tcp::Options;

impl Sender {
    /// RFC 6675 §4, NextSeg: rules 1, 2 and 3.
    pub(super) fn next_by_scoreboard(&mut self, o: &Options) -> Option<u32> {
        let highest = self.sacked.nth_highest(1, self.end).unwrap_or(self.una);
        let lost = self.loss_edge();
        if f64::from(self.pipe(lost)) + 1.0 > self.cwnd {
            return None;
        }
        let hole = self.sacked.next_missing(self.resent.max(self.una));
        match (hole < highest).then_some(hole) {
            Some(seq) if seq < lost => {
                self.resent = seq + 1;
                Some(seq)
            }
            _ if self.has_more(o) => {
                let seq = self.next;
                self.next += 1;
                Some(seq)
            }
            Some(seq) => {
                self.resent = seq + 1;
                Some(seq)
            }
            None => None,
        }
    }

    /// Packets below this number that are not SACKed count as lost: three above them are SACKed
    /// (RFC 6675 §4, IsLost).
    pub(super) fn loss_edge(&self) -> u32 {
        self.sacked.nth_highest(DUPLICATES, self.end).unwrap_or(self.una)
    }

    /// Packets in the network (RFC 6675 §4, SetPipe).
    fn pipe(&self, lost: u32) -> u32 {
        let unsacked = |from: u32, to: u32| {
            if from < to { to - from - self.sacked.count(from, to) } else { 0 }
        };
        unsacked(lost.max(self.una), self.end) + unsacked(self.una, self.resent)
    }

    /// Puts the blocks into the scoreboard; true if they tell anything new.
    pub(super) fn take_sack(&mut self, ack: u32, blocks: [(u16, u16); SACK_BLOCKS]) -> bool {
        self.sacked.advance(self.una.max(ack));
        let mut news = false;
        for (first, end) in blocks {
            let end = (ack + u32::from(end)).min(self.end);
            let mut n = self.sacked.next_missing(ack + u32::from(first));
            while n < end {
                news |= self.sacked.insert(n);
                n = self.sacked.next_missing(n + 1);
            }
        }
        news
    }
}
