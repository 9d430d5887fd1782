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

#[derive(Clone, Copy, Default, Debug)]
struct Flow {
    /// By which it is known in its set.
    tag: u32,
    /// Bytes that it may send, in 1/65536.
    deficit: i64,
    /// The sending and the receiving host.
    hosts: [u16; 2],
    state: State,
    /// The list of rounds that it is in, if it is in one.
    round: u8,
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
    /// Bulk flows of each host, as sender and as receiver, where that counts.
    bulk_of: [Option<Box<[u16]>>; 2],
}

impl Flows {
    /// What a queue costs in memory, in bytes.
    pub(super) const BYTES_PER_QUEUE: u64 = Links::<Flow>::BYTES;

    /// `sets` of eight queues; `fair` says between whom shares are equal: senders, receivers.
    pub(super) fn new(sets: u32, fair: [bool; 2], takes: Rounds, quantum: i64) -> Self {
        let queues = sets as usize * WAYS;
        let hosts = || vec![0; usize::from(Label::HOSTS)].into();
        Self {
            sets: Cuts::new(sets),
            flows: Links::new(queues),
            sparse: Chain::EMPTY,
            decaying: Chain::EMPTY,
            rounds: Circle { lists: [Chain::EMPTY; 64], occupied: 0, now: 0 },
            takes,
            counts: [0; 3],
            quantum,
            bulk_of: fair.map(|counts| counts.then(hosts)),
        }
    }

    /// What the counts of hosts take, in bytes.
    pub(super) fn bytes_of_hosts(&self) -> u64 {
        self.bulk_of.iter().flatten().map(|hosts| 2 * hosts.len() as u64).sum()
    }

    /// The queue of a flow, by the hash of what distinguishes it.
    #[inline]
    pub(super) fn queue_of(&mut self, word: u64, key: FlowKey) -> usize {
        let (set, direct, tag) = self.named(word);
        let flow = &self.flows[direct];
        if flow.tag == tag && flow.state != State::Idle {
            return direct;
        }
        self.queue_in_set(set, direct, tag, key)
    }

    /// The queue that a flow has, or would get.
    pub(super) fn find(&self, word: u64) -> usize {
        let (set, direct, tag) = self.named(word);
        self.choose(set, direct, tag).0
    }

    /// The set that a hash names, the queue in it, and the tag by which a flow is known there.
    #[inline]
    fn named(&self, word: u64) -> (usize, usize, u32) {
        let mut rest = word;
        let set = self.sets.cut(&mut rest) * WAYS;
        (set, set + (rest >> 61) as usize, word as u32)
    }

    /// The queue of a set for a flow, and whether the flow has it already.
    fn choose(&self, set: usize, direct: usize, tag: u32) -> (usize, bool) {
        let mut ways = (0..WAYS).map(|way| set + (direct + way) % WAYS);
        let has_it = |queue: &usize| self.flows[*queue].tag == tag;
        let is_free = |queue: &usize| self.flows[*queue].state == State::Idle;
        let found = ways.clone().find(has_it);
        match found.filter(|queue| !is_free(queue)) {
            Some(queue) => (queue, true),
            None => (found.or_else(|| ways.find(is_free)).unwrap_or(direct), false),
        }
    }

    #[inline(never)]
    fn queue_in_set(&mut self, set: usize, direct: usize, tag: u32, key: FlowKey) -> usize {
        let (queue, has_it) = self.choose(set, direct, tag);
        if has_it {
            return queue;
        }
        let bulk = self.flows[queue].state == State::Bulk;
        if bulk {
            self.count_at_hosts(queue, false);
        }
        let Label { host, peer, .. } = key.label();
        (self.flows[queue].hosts, self.flows[queue].tag) = ([host, peer], tag);
        if bulk {
            self.count_at_hosts(queue, true);
        }
        queue
    }

    /// Whether there are flows that are neither idle nor decaying.
    #[inline]
    pub(super) fn are_busy(&self) -> bool {
        self.counts[0] + self.counts[1] > 0
    }

    /// A packet has come to a queue.
    #[inline]
    pub(super) fn came(&mut self, queue: usize) {
        match self.flows[queue].state {
            State::Sparse | State::Bulk => {}
            State::Waiting => self.join_bulk(queue),
            State::Idle | State::Decaying => self.join_sparse(queue),
        }
    }

    fn join_sparse(&mut self, queue: usize) {
        if self.flows[queue].state == State::Decaying {
            self.flows.remove(&mut self.decaying, queue);
            self.counts[2] -= 1;
        }
        self.flows.append(&mut self.sparse, queue);
        self.counts[0] += 1;
        self.flows[queue].state = State::Sparse;
        self.flows[queue].deficit = self.share(self.flows[queue].hosts);
    }

    fn join_bulk(&mut self, queue: usize) {
        self.counts[0] -= 1;
        self.counts[1] += 1;
        self.flows[queue].state = State::Bulk;
        self.count_at_hosts(queue, true);
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
            let queue = self.sparse.head().or_else(|| self.rounds.head())?;
            if self.flows[queue].deficit > 0 {
                return Some(queue);
            }
            self.wait(queue, has_packets(queue));
        }
    }

    /// The queue whose turn it is has used up what it had: it waits for the round in which it has more.
    #[inline]
    fn wait(&mut self, queue: usize, has_packets: bool) {
        if self.flows[queue].state == State::Sparse {
            self.flows.pop(&mut self.sparse);
            if has_packets {
                self.join_bulk(queue);
            } else {
                self.flows[queue].state = State::Waiting;
            }
        } else {
            self.leave_round(queue);
        }
        let share = self.share(self.flows[queue].hosts);
        let flow = &mut self.flows[queue];
        // The lists of rounds come again after 64. A queue that waits for longer looks again before.
        let wanted = -flow.deficit;
        let rounds = match self.takes {
            Rounds::Ahead if wanted >= share => (wanted / share + 1).min(63),
            _ => 1,
        };
        flow.deficit += rounds * share;
        flow.round = (self.rounds.now + rounds as u8) % 64;
        self.rounds.occupied |= 1 << flow.round;
        let list = &mut self.rounds.lists[usize::from(flow.round % 64)];
        self.flows.append(list, queue);
    }

    /// The queue whose turn it is is no more in the present round.
    #[inline]
    fn leave_round(&mut self, queue: usize) {
        let round = self.flows[queue].round % 64;
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
                self.leave_round(queue);
                self.counts[0] -= 1;
            }
            State::Bulk => {
                self.leave_round(queue);
                self.counts[1] -= 1;
                self.count_at_hosts(queue, false);
            }
            State::Decaying => {
                self.flows.pop(&mut self.decaying);
                self.counts[2] -= 1;
            }
        }
        let state = if at_rest { State::Idle } else { State::Decaying };
        self.flows[queue].state = state;
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
        sink("flow_share", self.share([host, peer]) as f64 / 65_536.0);
        sink("flow_state", f64::from(self.flows[queue].state as u8));
    }

    /// What a flow between these hosts gets in a round.
    #[inline]
    fn share(&self, hosts: [u16; 2]) -> i64 {
        let load = |side: usize| {
            self.bulk_of[side].as_ref().map_or(0, |bulk| bulk[usize::from(hosts[side])])
        };
        match load(0).max(load(1)) {
            0 | 1 => self.quantum,
            load => self.quantum / i64::from(load),
        }
    }

    /// A bulk flow more, or less, of its hosts.
    fn count_at_hosts(&mut self, queue: usize, more: bool) {
        let hosts = self.flows[queue].hosts;
        for (bulk, host) in self.bulk_of.iter_mut().zip(hosts) {
            if let Some(bulk) = bulk {
                let bulk = &mut bulk[usize::from(host)];
                *bulk = if more { *bulk + 1 } else { *bulk - 1 };
            }
        }
    }
}
