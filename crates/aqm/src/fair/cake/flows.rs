//! The flows of a tin: who has which queue, and whose turn it is.
//!
//! ```text
//! whose queue:  the hash names one queue of a set of eight. If another flow has it, one of the others
//!               that has the flow, else one that nobody has, else the first, shared
//! whose turn:   empty queues whose COBALT is not at rest, one of them before each packet;
//!               sparse flows, in the order in which they came;  bulk flows, in rounds
//! a turn:       while the deficit is positive: send, deficit := deficit − length
//!               else:  the flow is a bulk flow, and gets quantum/load in each round; its turn comes in
//!                      the first round in which its deficit is positive
//! load:         bulk flows of its host that sends, or of that which receives, or the greater of both
//! ```
//!
//! A host with n bulk flows so gets as much in a round as one with a single flow. A flow that gets a
//! small share of a quantum waits for many rounds. It is put into the list of the round that it waits
//! for (one of 64, which come again and again) and costs nothing until then. Its place in that round is by
//! when it began to wait. Where it takes each round (`rounds = "each"`, as Linux does), flows keep their order
//! from round to round.

use alloc::boxed::Box;
use alloc::vec;

use crate::fair::links::{Chain, Links};
use crate::hash::Cuts;
use crate::packet::{FlowKey, Label};
use crate::param::choice;

/// Queues of a set.
pub(super) const WAYS: usize = 8;

/// Most rounds that a queue waits for before it looks again: the lists of rounds come again after 64.
const MOST_ROUNDS: i64 = 63;

choice! {
    /// How a bulk flow that has to wait for several rounds takes them: at once, or one by one as in
    /// Linux.
    pub enum Rounds {
        /// All at once: it is next looked at in the last of them.
        Ahead = "ahead",
        /// One after another.
        Each = "each",
    }
}

/// What a flow is at present.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    /// It has no packets, and its queue is anyone's.
    #[default]
    Idle,
    /// It came lately.
    Sparse,
    /// It was sparse and sent more than a quantum, and had no packet then.
    Waiting,
    /// It takes turns with the others.
    Bulk,
    /// It has no packets, and its COBALT is not at rest.
    Decaying,
}

/// The flows that have the queues of a set.
#[derive(Clone, Copy, Default, Debug)]
struct Set {
    /// By which the flow of each queue is known.
    tags: [u32; WAYS],
    /// A bit for each queue with a flow that is not idle.
    taken: u8,
}

impl Set {
    /// The queue for a flow, and whether the flow has it already. All are looked at from the one on that its
    /// hash names.
    #[inline]
    fn choose(&self, direct: usize, tag: u32) -> (usize, bool) {
        let tagged = self.tags.iter().enumerate();
        let tagged = tagged.fold(0, |bits, (way, of)| bits | u8::from(*of == tag) << way);
        let first = |ways: u8| {
            let behind = ways.rotate_right(direct as u32).trailing_zeros() as usize;
            (ways != 0).then_some((direct + behind) % WAYS)
        };
        match first(tagged) {
            Some(way) => (way, self.taken >> way & 1 == 1),
            None => (first(!self.taken).unwrap_or(direct), false),
        }
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Flow {
    /// Bytes that it may send, in 1/65536.
    deficit: i64,
    /// The sending and the receiving host.
    hosts: [u16; 2],
    state: State,
}

/// Bulk flows in their rounds.
#[derive(Clone, Debug)]
struct Circle {
    lists: [Chain; 64],
    /// Which of the lists are not empty.
    occupied: u64,
    /// That of the present round.
    now: u8,
}

impl Circle {
    /// The flow whose turn it is; goes on to the next round in which there is one.
    #[inline]
    fn head(&mut self) -> Option<usize> {
        if self.occupied == 0 {
            return None;
        }
        let ahead = self.occupied.rotate_right(self.now.into()).trailing_zeros();
        self.now = (self.now + ahead as u8) % 64;
        self.lists[usize::from(self.now)].head()
    }
}

/// The flows.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    sets: Cuts,
    owners: Box<[Set]>,
    flows: Links<Flow>,
    sparse: Chain,
    decaying: Chain,
    rounds: Circle,
    /// How a flow takes the rounds that it waits for.
    takes: Rounds,
    /// How many are in the first list, in the rounds, in the last list.
    pub(super) counts: [u32; 3],
    /// What a flow alone gets in a round, in 1/65536 bytes.
    pub(super) quantum: i64,
    /// The load of the last division into shares, and the share. Mostly the next load is the same, and a division
    /// takes long.
    last_share: (u16, i64),
    /// Bulk flows of each host, as sender and as receiver; of none where that does not count.
    bulk_of: [Box<[u16]>; 2],
}

impl Flows {
    /// What a queue costs in memory, in bytes.
    pub(super) const BYTES_PER_QUEUE: u64 = Links::<Flow>::BYTES + (size_of::<Set>() / WAYS) as u64;

    /// `sets` of eight queues; `fair` says between whom shares are equal: senders, receivers.
    pub(super) fn new(sets: u32, fair: [bool; 2], takes: Rounds, quantum: i64) -> Self {
        let queues = sets as usize * WAYS;
        let hosts = |counts| vec![0; if counts { usize::from(Label::HOSTS) } else { 0 }].into();
        Self {
            sets: Cuts::new(sets),
            owners: vec![Set::default(); sets as usize].into(),
            flows: Links::new(queues),
            sparse: Chain::EMPTY,
            decaying: Chain::EMPTY,
            rounds: Circle { lists: [Chain::EMPTY; 64], occupied: 0, now: 0 },
            takes,
            counts: [0; 3],
            quantum,
            last_share: (1, quantum),
            bulk_of: fair.map(hosts),
        }
    }

    /// What the counts of hosts take, in bytes.
    pub(super) fn bytes_of_hosts(&self) -> u64 {
        self.bulk_of.iter().map(|hosts| 2 * hosts.len() as u64).sum()
    }

    /// The queue of a flow, by the hash of what distinguishes it.
    #[inline(always)]
    pub(super) fn queue_of(&mut self, word: u64, key: FlowKey) -> usize {
        let (set, direct, tag) = self.named(word);
        let owners = &mut self.owners[set];
        let (way, has_it) = match owners.tags[direct] == tag {
            true => (direct, owners.taken >> direct & 1 == 1),
            false => owners.choose(direct, tag),
        };
        let queue = set * WAYS + way;
        if !has_it {
            owners.tags[way] = tag;
            self.give(queue, key);
        }
        queue
    }

    /// The queue that a flow has, or would get.
    pub(super) fn find(&self, word: u64) -> usize {
        let (set, direct, tag) = self.named(word);
        set * WAYS + self.owners[set].choose(direct, tag).0
    }

    /// The set that a hash names, the queue in it, and the tag by which a flow is known there.
    #[inline]
    fn named(&self, word: u64) -> (usize, usize, u32) {
        let mut rest = word;
        let set = self.sets.cut(&mut rest);
        (set, (rest >> 61) as usize, word as u32)
    }

    /// A queue is another flow's from now on.
    #[inline]
    fn give(&mut self, queue: usize, key: FlowKey) {
        let Label { host, peer, .. } = key.label();
        let Flow { state, hosts, .. } = &mut self.flows[queue];
        let before = core::mem::replace(hosts, [host, peer]);
        if *state == State::Bulk {
            self.count_at_hosts(before, false);
            self.count_at_hosts([host, peer], true);
        }
    }

    /// A queue has another state, and is anyone's if it is idle.
    #[inline]
    fn put(&mut self, queue: usize, state: State) {
        self.flows[queue].state = state;
        let (taken, bit) = (&mut self.owners[queue / WAYS].taken, 1 << (queue % WAYS));
        *taken = if state == State::Idle { *taken & !bit } else { *taken | bit };
    }

    /// Whether there are flows that are neither idle nor decaying.
    #[inline]
    pub(super) fn are_busy(&self) -> bool {
        self.counts[0] + self.counts[1] > 0
    }

    /// A packet has come to a queue.
    #[inline]
    pub(super) fn came(&mut self, queue: usize) {
        let state = self.flows[queue].state;
        if state == State::Waiting {
            self.join_bulk(queue);
        } else if matches!(state, State::Idle | State::Decaying) {
            self.join_sparse(queue);
        }
    }

    fn join_sparse(&mut self, queue: usize) {
        if self.flows[queue].state == State::Decaying {
            self.flows.remove(&mut self.decaying, queue);
            self.counts[2] -= 1;
        }
        self.flows.append(&mut self.sparse, queue);
        self.counts[0] += 1;
        self.put(queue, State::Sparse);
        self.flows[queue].deficit = self.share(self.flows[queue].hosts);
    }

    fn join_bulk(&mut self, queue: usize) {
        self.counts[0] -= 1;
        self.counts[1] += 1;
        self.flows[queue].state = State::Bulk;
        self.count_at_hosts(self.flows[queue].hosts, true);
    }

    /// The queue that has been decaying for longest since it was looked at.
    #[inline]
    pub(super) fn decaying(&self) -> Option<usize> {
        self.decaying.head()
    }

    /// The queue whose turn it is, with a positive deficit. `has_packets` says whether a queue has any.
    #[inline]
    pub(super) fn next(&mut self, has_packets: impl Fn(usize) -> bool) -> Option<usize> {
        loop {
            let sparse = self.sparse.head();
            let queue = sparse.or_else(|| self.rounds.head())?;
            if self.flows[queue].deficit > 0 {
                return Some(queue);
            }
            if sparse.is_none() {
                self.leave_round();
            } else {
                self.flows.pop(&mut self.sparse);
                if has_packets(queue) {
                    self.join_bulk(queue);
                } else {
                    self.flows[queue].state = State::Waiting;
                }
            }
            self.wait(queue);
        }
    }

    /// A queue has used up what it had: it waits for the round in which it has more.
    #[inline]
    fn wait(&mut self, queue: usize) {
        let share = self.share(self.flows[queue].hosts);
        let wanted = -self.flows[queue].deficit;
        let rounds = match self.takes {
            Rounds::Ahead if wanted >= MOST_ROUNDS * share => MOST_ROUNDS,
            Rounds::Ahead if wanted >= share => wanted / share + 1,
            _ => 1,
        };
        self.flows[queue].deficit += rounds * share;
        let round = (self.rounds.now + rounds as u8) % 64;
        self.rounds.occupied |= 1 << round;
        self.flows.append(&mut self.rounds.lists[usize::from(round)], queue);
    }

    /// The queue whose turn it is is no more in the present round.
    #[inline]
    fn leave_round(&mut self) {
        let round = self.rounds.now % 64;
        let list = &mut self.rounds.lists[usize::from(round)];
        self.flows.pop(list);
        if list.head().is_none() {
            self.rounds.occupied &= !(1 << round);
        }
    }

    /// The queue whose turn it is has sent a packet of `len` bytes.
    #[inline]
    pub(super) fn sent(&mut self, queue: usize, len: u32) {
        self.flows[queue].deficit -= i64::from(len) << 16;
    }

    /// The queue whose turn it is, or that decays, was found empty; `at_rest`: nothing needs to be remembered of it.
    #[inline]
    pub(super) fn found_empty(&mut self, queue: usize, at_rest: bool) {
        match self.flows[queue].state {
            State::Idle => return,
            State::Sparse => {
                self.flows.pop(&mut self.sparse);
                self.counts[0] -= 1;
            }
            State::Waiting => {
                self.leave_round();
                self.counts[0] -= 1;
            }
            State::Bulk => {
                self.leave_round();
                self.counts[1] -= 1;
                self.count_at_hosts(self.flows[queue].hosts, false);
            }
            State::Decaying => {
                self.flows.pop(&mut self.decaying);
                self.counts[2] -= 1;
            }
        }
        self.put(queue, if at_rest { State::Idle } else { State::Decaying });
        if !at_rest {
            self.flows.append(&mut self.decaying, queue);
            self.counts[2] += 1;
        }
    }

    /// Reports the queue of a flow: what it may still send, what the flow gets in a round, in bytes,
    /// and what it is at present (0 idle, 1 sparse, 2 sparse and waiting for a packet, 3 bulk, 4
    /// decaying).
    pub(super) fn observe(
        &self,
        queue: usize,
        key: FlowKey,
        sink: &mut dyn FnMut(&'static str, f64),
    ) {
        // The queue may still have the hosts of the flow that had it last.
        let Label { host, peer, .. } = key.label();
        sink("flow_deficit", self.flows[queue].deficit as f64 / 65_536.0);
        let share = self.quantum / i64::from(self.load([host, peer]));
        sink("flow_share", share as f64 / 65_536.0);
        sink("flow_state", f64::from(self.flows[queue].state as u8));
    }

    /// What a flow alone gets in a round is another now.
    pub(super) fn set_quantum(&mut self, quantum: i64) {
        (self.quantum, self.last_share) = (quantum, (1, quantum));
    }

    /// What a flow between these hosts gets in a round.
    #[inline]
    fn share(&mut self, hosts: [u16; 2]) -> i64 {
        let load = self.load(hosts);
        if self.last_share.0 != load {
            self.last_share = (load, self.quantum / i64::from(load));
        }
        self.last_share.1
    }

    /// Among how many bulk flows these hosts share what they get.
    #[inline]
    fn load(&self, hosts: [u16; 2]) -> u16 {
        let [from, to] = &self.bulk_of;
        let load = |of: &[u16], host: u16| of.get(usize::from(host)).map_or(1, |&load| load);
        load(from, hosts[0]).max(load(to, hosts[1])).max(1)
    }

    /// A bulk flow more, or less, of these hosts.
    fn count_at_hosts(&mut self, hosts: [u16; 2], more: bool) {
        for (bulk, host) in self.bulk_of.iter_mut().zip(hosts) {
            if let Some(bulk) = bulk.get_mut(usize::from(host)) {
                *bulk = if more { *bulk + 1 } else { *bulk - 1 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Sets of few tags, so that several queues have one, taken or not. A search from queue to queue finds the same
    /// queue.
    #[test]
    fn a_set_is_searched_from_the_queue_that_the_hash_names() {
        let mut rng = Rng::new(1, 0);
        let mut found = [0; 3];
        for _ in 0..100_000 {
            let tags = [(); WAYS].map(|()| rng.below(12) as u32);
            let set = Set { tags, taken: rng.bits() as u8 | rng.bits() as u8 };
            let (direct, tag) = (rng.below(WAYS), rng.below(12) as u32);
            let taken = |way: &usize| set.taken >> way & 1 == 1;
            let mut ways = (0..WAYS).map(|way| (direct + way) % WAYS);
            let expected = match ways.clone().find(|way| tags[*way] == tag) {
                Some(way) => (way, taken(&way)),
                None => (ways.find(|way| !taken(way)).unwrap_or(direct), false),
            };
            assert_eq!(set.choose(direct, tag), expected, "{set:?} {direct} {tag}");
            let own = tags[expected.0] == tag;
            found[if expected.1 { 0 } else { 1 + usize::from(own) }] += 1;
        }
        assert!(found.iter().all(|&n| n > 1000), "{found:?}");
    }
}
