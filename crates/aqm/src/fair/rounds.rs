//! Who is served next: queues with packets take turns.
//!
//! ```text
//! a packet comes to a queue that is in no list:  it goes to the end of the new queues,
//!                                                or of the old where none are preferred
//! next:  the first of the new queues, else the first of the old
//!     its turn is over:     it goes to the end of the old queues, with another quantum
//!     it has a packet:      send it
//!     it was new:           it goes to the end of the old queues
//!     else:                 it leaves the list
//! ```
//!
//! | turn | is over |
//! |---|---|
//! | `Packet` | after one packet |
//! | `Credit` | when what was sent in it has reached the quantum and what it lacked before (RFC 8290 §4.2) |
//! | `Deficit` | when the next packet is longer than what is left of the quantum and what was left before (SV95 Fig. 2) |
//!
//! Two queues that have packets all the time differ in what they send by at most a quantum and two
//! packets of maximum length, over any interval (SV95 Theorem 2, which holds for credit as well).

use super::Plan;
use super::links::{Chain, Links};
use crate::param::choice;

choice! {
    /// Where a new queue goes that has run empty.
    pub enum Emptied {
        /// To the end of the old queues.
        Old = "old",
        /// There if there are any; else it leaves at once, and comes back as a new one.
        OldIfAny = "old-if-any",
    }
}

/// How long a queue's turn is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// One packet.
    Packet,
    /// A quantum in bytes, with what exceeds it taken from the next turn.
    Credit(u32),
    /// A quantum in bytes, with what is left of it added to the next turn.
    Deficit(u32),
}

/// The queues in their order of service.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// What a queue gets in a turn, in bytes or packets.
    quantum: i64,
    /// Whether a turn is over when its next packet is longer than what is left of it.
    by_deficit: bool,
    by_packets: bool,
    prefer_new: bool,
    /// Whether a new queue that has no packets left always goes to the old ones.
    returns: bool,
    new: Chain,
    old: Chain,
    queues: Links<Place>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Place {
    /// What the queue may still send in its turn, in bytes or packets.
    credit: i64,
    list: List,
}

/// Which list a queue is in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum List {
    #[default]
    None,
    New,
    Old,
}

impl Rounds {
    /// What a queue costs in memory, in bytes.
    pub(super) const BYTES_PER_QUEUE: u64 = Links::<Place>::BYTES;

    /// No queue has a packet.
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            quantum: quantum(plan),
            by_deficit: matches!(plan.turn, Turn::Deficit(_)),
            by_packets: plan.turn == Turn::Packet,
            prefer_new: plan.prefer_new,
            returns: plan.emptied == Emptied::Old,
            new: Chain::EMPTY,
            old: Chain::EMPTY,
            queues: Links::new(plan.queues),
        }
    }

    /// Turns are as long as `plan` says; a queue's credit stays.
    pub(super) fn retune(&mut self, plan: &Plan) {
        self.quantum = quantum(plan);
    }

    /// A packet has come to a queue.
    #[inline]
    pub(super) fn came(&mut self, queue: usize) {
        if self.queues[queue].list == List::None {
            let (list, chain) = match self.prefer_new {
                true => (List::New, &mut self.new),
                false => (List::Old, &mut self.old),
            };
            self.queues[queue] = Place { credit: self.quantum, list };
            self.queues.append(chain, queue);
        }
    }

    /// The queue whose turn it is. `next_len` tells the length of its first packet; a deficit turn
    /// ends by it.
    #[inline]
    pub(super) fn next(&mut self, next_len: impl Fn(usize) -> Option<u32>) -> Option<usize> {
        loop {
            let queue = self.new.head().or(self.old.head())?;
            let credit = self.queues[queue].credit;
            let over = match self.by_deficit {
                true => next_len(queue).is_some_and(|len| i64::from(len) > credit),
                false => credit <= 0,
            };
            if !over {
                return Some(queue);
            }
            self.queues[queue].credit = credit + self.quantum;
            self.postpone(queue);
        }
    }

    /// The queue whose turn it is has sent a packet.
    #[inline]
    pub(super) fn sent(&mut self, queue: usize, len: u32) {
        self.queues[queue].credit -= if self.by_packets { 1 } else { i64::from(len) };
    }

    /// The queue whose turn it is has no packet.
    #[inline]
    pub(super) fn found_empty(&mut self, queue: usize) {
        let new = self.queues[queue].list == List::New;
        if new && (self.returns || self.old.head().is_some()) {
            self.postpone(queue);
        } else {
            self.queues.pop(if new { &mut self.new } else { &mut self.old });
            self.queues[queue].list = List::None;
        }
    }

    /// A queue leaves the lists, if it is in one.
    #[inline]
    pub(super) fn remove(&mut self, queue: usize) {
        let list = match self.queues[queue].list {
            List::None => return,
            List::New => &mut self.new,
            List::Old => &mut self.old,
        };
        self.queues.remove(list, queue);
        self.queues[queue].list = List::None;
    }

    /// Whether a queue is in no list.
    pub(super) fn is_idle(&self, queue: usize) -> bool {
        self.queues[queue].list == List::None
    }

    /// What a queue may still send in its turn, and its list: 0 none, 1 new, 2 old.
    pub(super) fn place_of(&self, queue: usize) -> (i64, u8) {
        match self.queues[queue] {
            Place { list: List::None, .. } => (0, 0),
            Place { credit, list } => (credit, list as u8),
        }
    }

    /// The queue whose turn it is goes to the end of the old ones.
    #[inline]
    fn postpone(&mut self, queue: usize) {
        let new = self.queues[queue].list == List::New;
        self.queues.pop(if new { &mut self.new } else { &mut self.old });
        self.queues[queue].list = List::Old;
        self.queues.append(&mut self.old, queue);
    }
}

/// How long a turn is, in bytes or packets.
fn quantum(plan: &Plan) -> i64 {
    match plan.turn {
        Turn::Packet => 1,
        Turn::Credit(quantum) | Turn::Deficit(quantum) => i64::from(quantum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::vec::Vec;

    fn rounds(queues: usize, turn: Turn, prefer_new: bool) -> Rounds {
        Rounds::new(&Plan { turn, prefer_new, ..Plan::of(queues) })
    }

    /// What queues with endless supplies of packets send; lengths are drawn from `lens`.
    fn backlogged(turn: Turn, lens: &[&[u32]], packets: usize) -> Vec<(usize, u32)> {
        let mut rng = Rng::new(4, 0);
        let mut rounds = rounds(lens.len(), turn, false);
        let mut next: Vec<u32> = lens.iter().map(|l| l[0]).collect();
        (0..lens.len()).for_each(|q| rounds.came(q));
        (0..packets)
            .map(|_| {
                let queue = rounds.next(|q| Some(next[q])).unwrap();
                let len = next[queue];
                rounds.sent(queue, len);
                next[queue] = lens[queue][rng.below(lens[queue].len())];
                (queue, len)
            })
            .collect()
    }

    /// Packets of 600 and 1000 bytes, quantum 1000. By credit: 600 and 600 (200 too many), then 600
    /// and 600 from 800 (400 too many), then 600 (600 of 600: over). By deficit: 600 (400 left),
    /// then 600 and 600 from 1400 (200 left), 600 and 600 from 1200.
    #[test]
    fn turns_by_hand() {
        let order = |turn, n| -> Vec<usize> {
            backlogged(turn, &[&[600], &[1000]], n).iter().map(|s| s.0).collect()
        };
        assert_eq!(order(Turn::Packet, 6), [0, 1, 0, 1, 0, 1]);
        assert_eq!(order(Turn::Credit(1000), 8), [0, 0, 1, 0, 0, 1, 0, 1]);
        assert_eq!(order(Turn::Deficit(1000), 8), [0, 1, 0, 0, 1, 0, 0, 1]);
    }

    /// SV95 Theorem 2: over any interval in which two queues have packets, what they send differs by
    /// at most a quantum and two packets. All intervals are looked at, as the largest rise and fall
    /// of the difference.
    #[test]
    fn two_queues_with_packets_differ_by_at_most_a_quantum_and_two_packets() {
        let lens: [&[u32]; 4] = [&[1500], &[40, 1500], &[576, 40, 1000], &[9000, 40]];
        let most = 9000;
        for quantum in [300, 1514, 9000, 20_000] {
            for turn in [Turn::Credit(quantum), Turn::Deficit(quantum)] {
                let sent = backlogged(turn, &lens, 20_000);
                for (a, b) in [(0, 1), (0, 3), (1, 2), (2, 3), (3, 0), (1, 0)] {
                    let (mut ahead, mut least, mut rise) = (0i64, 0i64, 0i64);
                    for &(queue, len) in &sent {
                        let sign = i64::from(queue == a) - i64::from(queue == b);
                        ahead += sign * i64::from(len);
                        least = least.min(ahead);
                        rise = rise.max(ahead - least);
                    }
                    assert!(rise <= i64::from(quantum) + 2 * most, "{turn:?} {a} {b}: {rise}");
                    assert!(rise >= i64::from(quantum.min(9000)) / 2, "nothing was tried");
                }
            }
        }
    }

    #[test]
    fn new_queues_go_first_once() {
        let mut rounds = rounds(3, Turn::Credit(1000), true);
        let serve = |rounds: &mut Rounds| {
            let queue = rounds.next(|_| Some(1000)).unwrap();
            rounds.sent(queue, 1000);
            queue
        };
        rounds.came(0);
        rounds.came(1);
        assert_eq!([serve(&mut rounds), serve(&mut rounds)], [0, 1]);
        assert_eq!(serve(&mut rounds), 0, "both are old now");
        rounds.came(2);
        assert_eq!(serve(&mut rounds), 2, "new: before 1, whose turn it is");
        // 2 came to the end of the old ones before the turn of 0 was found to be over.
        let rest: Vec<usize> = (0..4).map(|_| serve(&mut rounds)).collect();
        assert_eq!(rest, [1, 2, 0, 1]);
    }

    /// RFC 8290 §4.2: else a queue could come back as a new one after each packet, and starve others.
    #[test]
    fn a_new_queue_that_ran_empty_waits_for_a_round_before_it_is_new_again() {
        let mut rounds = rounds(2, Turn::Credit(1000), true);
        rounds.came(0);
        assert_eq!(rounds.next(|_| None), Some(0));
        rounds.sent(0, 300);
        rounds.found_empty(0);
        rounds.came(1);
        rounds.came(0);
        assert_eq!(rounds.next(|_| None), Some(1), "0 is among the old ones");
        rounds.found_empty(1);
        assert_eq!(rounds.next(|_| None), Some(0));
        rounds.found_empty(0);
        assert_eq!(rounds.next(|_| None), Some(1));
        rounds.found_empty(1);
        assert_eq!(rounds.next(|_| None), None);
    }
}
