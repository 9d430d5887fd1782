//! CAKE: common applications kept enhanced (Høiland-Jørgensen, Täht, Morton, Piece of CAKE, LANMAN 2018,
//! "HTM18"; tc-cake(8)). Its shaper is mostly the link's business here, but tins and flows share what packets
//! take on the wire ([`Framing`]). What is left is flow queueing four times over:
//!
//! ```text
//! a packet arrives:  its codepoint names a tin, its flow a queue of the tin;  it is queued
//!                    the buffer is too full:  the queue with the most bytes loses its head, and its
//!                                             COBALT hears of it
//! next:   of the tins with packets, the last that keeps within its rate, else the one that does
//!         so soonest;  in it a queue by deficits (flows.rs);  its head by its COBALT
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `tins.rs` | codepoints, tins, their rates |
//! | `flows.rs` | set-associative queues, sparse and bulk flows, hosts |
//! | `acks.rs` | which acknowledgement a later one makes needless |
//! | `shaper.rs` | what holds packets back with `ingress` and `autorate_ingress` |
//! | `mq.rs` | several CAKEs that share one rate |
//!
//! Each tin has COBALT's `target` at 1.5 times the transmission of an `mtu` at its rate at least, and
//! its `interval` longer by as much, but twice that target at least. It has a quantum of 1/4096 s at
//! its rate, 300 … 1514 bytes.
//!
//! Against Linux:
//! - Hosts are told apart by their number in the packet's [`Label`], exactly; Linux has a table of 1024.
//! - A share of the quantum is exact; Linux rounds it at random. A bulk flow that waits for several
//!   rounds gets their shares at once, by the load at its turn. Its place in the last of them is by
//!   when it began to wait. With `rounds = "each"` it is as in Linux.
//! - COBALT's 1/√count is exact; with `root = "newton"` it is as in Linux 6.1, with
//!   `newton-from-16` as in 7.2.
//! - The buffer counts the packets' bytes, or packets; Linux counts the memory that they take.
//! - Hashes are keyed ([`FlowHash`]).
//! - The filter of acknowledgements takes the later of two for the greater, and keeps what has SACK
//!   blocks; Linux compares numbers, and drops one whose blocks a later one has as well.
//! - `wash` is not here: what a packet's codepoint is behind the queue is the link's.
//!
//! With `ingress` what is dropped has come over the slow link already. The shaper counts it, the deficits
//! of flows and tins do, and COBALT tolerates the time of two long packets of each bulk flow in the tin.
//! With `unlimited` there is no rate to keep tins within. They take turns by deficit (DRR), with their
//! rates as weights.

use alloc::boxed::Box;
use alloc::vec;

use super::lines::{ByBytes, Lines};
use super::{End, Plan};
use crate::about::{About, Family, Labels, Signal, Unmarked};
use crate::context::{Backlog, Cause, Cx, Env, State};
use crate::framing::Framing;
use crate::hash::FlowHash;
use crate::packet::{Ack, Carried, FlowKey, Label, Meta};
use crate::param::{ConfigError, choice, params};
use crate::policy::Policy as _;
use crate::policy::cobalt::{Cobalt, CobaltConfig, Root, tolerated};
use crate::qdisc::{Counters, Outlet, Qdisc};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Rate, Size};
use flows::{Flows, WAYS};
use shaper::{Measured, Shaper};
use tins::Schedule;

mod acks;
mod flows;
mod mq;
mod shaper;
#[cfg(test)]
mod tests;
mod tins;

pub use acks::AckFilter;
pub use flows::Rounds;
pub use mq::Cakes;
pub use tins::Diffserv;

/// What cake tells of itself.
pub const ABOUT: About = About {
    name: "cake",
    family: Family::Fair,
    summary: "Sorts packets by class, host and flow into queues with a COBALT each, and shares \
        the link among them.",
    source: "HTM18; tc-cake(8)",
    rule: "CAKE serves the last of the tins that keep within their rates, there sparse queues \
        before bulk ones, which get their share in rounds; each queue has a COBALT: CoDel, which \
        signals after an interval above target without a coin, and BLUE, which drops with a \
        probability that overflows raise (HTM18)",
    unmarked: Unmarked {
        coin: "BLUE acts against flows that do not answer: it drops whatever it meets",
        rule: "a later acknowledgement says all that it says",
    },
    signals: &[
        Signal { name: "sparse", unit: "", doc: "new flows" },
        Signal { name: "bulk", unit: "", doc: "flows that take turns" },
        Signal {
            name: "decaying",
            unit: "",
            doc: "flows without packets whose COBALT is not at rest",
        },
        Signal { name: "filtered", unit: "", doc: "acknowledgements that the filter has dropped" },
    ],
    presets: &[
        ("internet", &[("rtt", "100ms")]),
        ("regional", &[("rtt", "30ms")]),
        ("metro", &[("rtt", "10ms")]),
        ("lan", &[("rtt", "1ms")]),
        ("oceanic", &[("rtt", "300ms")]),
        ("satellite", &[("rtt", "1s")]),
        ("interplanetary", &[("rtt", "1000s")]),
        ("datacentre", &[("rtt", "100us")]),
    ],
    labels: Labels { codepoints: true, hosts: true, ..Labels::NONE },
    live: &["rtt", "target"],
    ..About::NEW
};

params! {
    /// Parameters of CAKE.
    pub struct CakeConfig {
        /// How packets are sorted into tins by their DSCP.
        diffserv: Diffserv = Diffserv::Diffserv3, "HTM18 §III.C; tc-cake(8)";
        /// Between whom the link is shared equally.
        isolation: Isolation = Isolation::Triple, "HTM18 §III.B; tc-cake(8)";
        /// About the round-trip time of the slowest flows: COBALT's interval.
        rtt: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), "tc-cake(8)";
        /// Tolerated queueing delay; `none`: a twentieth of `rtt`.
        target: Option<Duration> = None, in Duration::ZERO..=Duration::from_secs(3600), "tc-cake(8): rtt/20";
        /// Sets of eight queues in each tin.
        sets: u32 = 128, in 1..=1024, "HTM18 §III.B: 1024 queues", with isolation != "flowblind";
        /// Longest packet in bytes; `none`: 1514, or the mean packet if it is longer.
        mtu: Option<u32> = None, in 0..=65_535, "Linux sch_cake", with unlimited = "false" or autorate_ingress = "true";
        /// Whether acknowledgements that a later one makes redundant are dropped.
        ack_filter: AckFilter = AckFilter::Off, "HTM18 §III.E; tc-cake(8)";
        /// Whether COBALT's signals mark ECN-capable packets; `false`: every signal is a drop.
        ecn: bool = true, "HTM18 §III.D";
        /// Whether what is dropped has come over the slow link already: the shaper counts it, and two
        /// packets of each bulk flow may wait.
        ingress: bool = false, "tc-cake(8)";
        /// Whether the rate follows that at which packets arrive; the link's is the first guess.
        autorate_ingress: bool = false, "tc-cake(8)", with queues = "1",
            else "several queues share a fixed rate, as in Linux: leave it out, or set queues = 1";
        /// Whether CAKE knows no rate: tins share by weight, and delays alone decide.
        unlimited: bool = false, "tc-cake(8)";
        /// Most bytes that wait, beside the buffer's own bound; `none`: no other.
        memlimit: Option<Size> = None, "tc-cake(8)";
        /// How COBALT finds 1/√count.
        root: Root = Root::Exact, "RFC 8289 §5.4; Linux";
        /// How a bulk flow that has to wait for several rounds takes them: at once, or one by one
        /// as in Linux.
        rounds: Rounds = Rounds::Ahead, "Linux sch_cake", with isolation != "flowblind";
        /// Transmit queues, each with a CAKE, that share one rate: `cake_mq`.
        queues: u32 = 1, in 1..=64, "Linux sch_cake: cake_mq";
        /// The rate that these queues share, 1 kbit/s for each … the link's; `none`: the link's.
        shared_rate: Option<Rate> = None, "tc-cake(8)", with queues != "1",
            else "a CAKE alone has the rate of its link: set that, or several queues that share this rate";
    }
}

choice! {
    /// Between whom the link is shared equally.
    pub enum Isolation {
        /// Nobody: one queue in each tin.
        FlowBlind = "flowblind",
        /// Hosts that send.
        SrcHost = "srchost",
        /// Hosts that receive.
        DstHost = "dsthost",
        /// Pairs of hosts.
        Hosts = "hosts",
        /// Flows.
        Flows = "flows",
        /// Hosts that send, and their flows.
        DualSrcHost = "dual-srchost",
        /// Hosts that receive, and their flows.
        DualDstHost = "dual-dsthost",
        /// Hosts that send, hosts that receive, and their flows.
        Triple = "triple-isolate",
    }
}

impl Isolation {
    /// The bits of a key by which queues are told apart.
    fn mask(self) -> u64 {
        let [dscp, host, peer] = Label::FIELDS;
        match self {
            Self::FlowBlind => 0,
            Self::SrcHost => host,
            Self::DstHost => peer,
            Self::Hosts => host | peer,
            _ => !dscp,
        }
    }

    /// Whether senders, and whether receivers share equally what their flows get.
    fn fair(self) -> [bool; 2] {
        let triple = self == Self::Triple;
        [triple || self == Self::DualSrcHost, triple || self == Self::DualDstHost]
    }
}

#[derive(Clone, Debug)]
struct Tin {
    schedule: Schedule,
    flows: Flows,
    packets: u32,
}

/// One CAKE, of packets with payload `P`.
///
/// All memory is taken at construction.
#[derive(Clone, Debug)]
struct Cake<P> {
    config: CakeConfig,
    hash: FlowHash,
    mask: u64,
    /// The tin of each codepoint.
    tin_of: [u8; Label::CODEPOINTS as usize],
    tins: Box<[Tin]>,
    /// A bit for each tin that has flows.
    busy: u8,
    /// Queues of a tin.
    queues: usize,
    /// Of all tins, one tin's after the other's.
    lines: Lines<Cobalt, P>,
    /// How many acknowledgements the filter has dropped.
    filtered: u64,
    framing: Framing,
    /// What only some of its options need.
    special: Option<Box<Special>>,
}

/// What `ingress`, `autorate_ingress` and `unlimited` need.
#[derive(Clone, Debug)]
struct Special {
    shaper: Option<Shaper>,
    measured: Option<Measured>,
    env: Env,
    /// Of each tin: what its COBALTs tolerate, and the time of a long packet.
    times: Box<[[Duration; 2]]>,
    /// Whether there is no rate, the tin whose turn it is then, and what each may still send, bytes.
    weighs: bool,
    turn: usize,
    deficits: Box<[i64]>,
}

impl CakeConfig {
    /// Queues of a tin.
    fn queues_of_tin(&self) -> usize {
        self.sets as usize * WAYS
    }

    /// The rate that it knows; the highest there is if it knows none.
    fn known(&self, rate: Rate) -> Rate {
        if self.unlimited { Rate::MAX } else { rate }
    }

    /// What the COBALT of a tin's queues is like, with the tin's rate in `env`.
    fn cobalt(&self, env: &Env) -> CobaltConfig {
        let target = self.target.unwrap_or(self.rtt / 20);
        let at_least = env.rate.transmission(u64::from(env.longest(self.mtu)) * 3 / 2).max(target);
        let interval = self.rtt + at_least.saturating_sub(target);
        CobaltConfig {
            target: at_least,
            interval: interval.max(at_least * 2),
            ecn: self.ecn,
            root: self.root,
            mtu: self.mtu,
            ..CobaltConfig::default()
        }
    }
}

/// What a flow alone gets in a round, in 1/65536 bytes.
fn quantum(rate: Rate) -> i64 {
    ((rate.bits_per_second() / 8 / 4096).clamp(300, 1514) as i64) << 16
}

impl<P: Carried> Cake<P> {
    /// The tin of a flow's packets, and the hash of what its queue there is found by.
    #[inline]
    fn sorted(&self, flow: FlowKey) -> (usize, u64) {
        let number = usize::from(self.tin_of[usize::from(flow.label().dscp)]);
        (number, self.hash.word(FlowKey(flow.0 & self.mask)))
    }

    /// The tin to send from at `now`, if any has flows.
    #[inline]
    fn choose(&self, now: Instant) -> Option<usize> {
        let mut best = self.busy.checked_ilog2()? as usize;
        let mut left = self.busy & !(1 << best);
        if left == 0 {
            return Some(best);
        }
        let mut soonest = self.tins[best].schedule.next;
        while soonest > now && left > 0 {
            let number = left.ilog2() as usize;
            left &= !(1 << number);
            let next = self.tins[number].schedule.next;
            if next < soonest {
                (best, soonest) = (number, next);
            }
        }
        Some(best)
    }

    /// The longest queue gives way until the buffer is no longer too full.
    #[inline(never)]
    fn make_room(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        while self.lines.excess() {
            self.drop_longest(cx, out);
        }
    }

    /// The longest queue loses its head.
    fn drop_longest(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        let line = self.lines.longest();
        let len = self.lines.next_len(line).unwrap_or_default();
        self.lines.give_way(line, cx);
        self.lines.drop_at(line, End::Head, cx, out);
        self.tins[line / self.queues].packets -= 1;
        self.lost(line / self.queues, len, cx.now);
    }

    /// The acknowledgement that came last to a line of a tin may make one before it needless.
    #[inline(never)]
    fn filter_acks(
        &mut self,
        number: usize,
        line: usize,
        new: (FlowKey, Ack),
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) {
        let queue = self.lines.packets(line).map(|(flow, packet)| (flow, packet.ack()));
        if let Some(position) = self.config.ack_filter.needless(queue, new) {
            let before = self.lines.backlog().bytes;
            self.lines.drop_queued(line, position, Cause::Early, cx, out);
            self.tins[number].packets -= 1;
            self.filtered += 1;
            self.lost(number, (before - self.lines.backlog().bytes) as u32, cx.now);
        }
    }

    /// A queued packet was dropped, which has come over the slow link already if that is before this one.
    fn lost(&mut self, number: usize, len: u32, now: Instant) {
        let Some(special) = &mut self.special else { return };
        if self.config.ingress {
            let on_wire = self.framing.on_wire(len);
            self.tins[number].schedule.sent(on_wire, now);
            special.shaper.iter_mut().for_each(|shaper| shaper.dropped(on_wire));
        }
    }

    /// A queue of a tin, whose turn it is or that decays, has no packets.
    #[inline]
    fn pass_by(&mut self, number: usize, queue: usize, now: Instant) {
        let at_rest = self.lines.policy(number * self.queues + queue).at_rest(now);
        let flows = &mut self.tins[number].flows;
        flows.found_empty(queue, at_rest);
        if !flows.are_busy() {
            self.busy &= !(1 << number);
        }
    }

    /// A packet of a queue of a tin, if its COBALT leaves it any.
    #[inline]
    fn serve(
        &mut self,
        number: usize,
        queue: usize,
        cx: &mut Cx<'_>,
        out: &mut impl Outlet<P>,
    ) -> Option<(Meta, P)> {
        let line = number * self.queues + queue;
        if !self.lines.has_packets(line) {
            self.lines.idle(line, cx);
            return None;
        }
        let before = self.lines.backlog().packets;
        let sent = self.lines.dequeue(line, cx, out);
        let tin = &mut self.tins[number];
        tin.packets -= before - self.lines.backlog().packets;
        if let Some((meta, _)) = &sent {
            let on_wire = self.framing.on_wire(meta.len);
            tin.flows.sent(queue, on_wire);
            tin.schedule.sent(on_wire, cx.now);
        }
        sent
    }
}

/// With `ingress`, `autorate_ingress` or `unlimited`, or `shaped` beside others.
impl<P: Carried> Cake<P> {
    fn special(config: &CakeConfig, shaped: bool, env: &Env) -> Option<Box<Special>> {
        let CakeConfig { ingress, autorate_ingress, unlimited, .. } = *config;
        let shaped = shaped || ingress || autorate_ingress;
        if !(shaped || unlimited) {
            return None;
        }
        let rate = (!unlimited).then_some(env.rate);
        let mut special = Special {
            shaper: shaped.then(|| Shaper::new(rate, env.now)),
            measured: autorate_ingress.then(|| Measured::new(rate, env.now)),
            env: *env,
            times: [].into(),
            weighs: unlimited,
            turn: 0,
            deficits: vec![0; config.diffserv.count()].into(),
        };
        special.times = special.times(config, config.known(env.rate));
        Some(Box::new(special))
    }

    /// A packet of `len` bytes has come.
    #[cold]
    #[inline(never)]
    fn came(&mut self, len: u32, now: Instant) {
        let alone = self.lines.backlog().packets == 1;
        let on_wire = self.framing.on_wire(len);
        let Some(special) = &mut self.special else { return };
        if alone {
            special.shaper.iter_mut().for_each(|shaper| shaper.wake(now));
        }
        if let Some(rate) = special.measured.as_mut().and_then(|m| m.arrived(on_wire, now)) {
            let env = Env { now, rate, ..special.env };
            self.has_rate(&env, rate);
            if let Some(shaper) = self.special.as_mut().and_then(|s| s.shaper.as_mut()) {
                shaper.set_rate(Some(rate));
            }
        }
    }

    /// The tin whose turn it is by weight, if any has flows.
    fn choose_by_weight(&mut self) -> Option<usize> {
        let special = self.special.as_mut()?;
        if self.busy == 0 {
            return None;
        }
        loop {
            let (turn, busy) = (special.turn, self.busy >> special.turn & 1 == 1);
            let deficit = &mut special.deficits[turn];
            if busy && *deficit >= 0 {
                return Some(turn);
            }
            if *deficit <= 0 {
                *deficit += self.config.diffserv.weight(turn);
            }
            special.turn = (turn + 1) % self.tins.len();
        }
    }

    fn choose_special(&mut self, now: Instant) -> Option<usize> {
        let weighs = self.special.as_ref().is_some_and(|special| special.weighs);
        if weighs { self.choose_by_weight() } else { self.choose(now) }
    }

    #[cold]
    #[inline(never)]
    fn dequeue_special(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        if self.ready_at().is_some_and(|at| at > cx.now) {
            return None;
        }
        let mut number = self.choose_special(cx.now)?;
        if let Some(queue) = self.tins[number].flows.decaying() {
            self.lines.idle(number * self.queues + queue, cx);
            self.pass_by(number, queue, cx.now);
        }
        loop {
            let start = number * self.queues;
            let flows = &mut self.tins[number].flows;
            let queue = flows.next(|n| self.lines.has_packets(start + n))?;
            let bulk = u64::from(flows.counts[1]);
            if self.config.ingress
                && let Some(special) = &self.special
            {
                let [tolerated, packet] = special.times[number];
                self.lines.policy_mut(start + queue).tolerate(tolerated.max(packet * (2 * bulk)));
            }
            match self.lines.judge_head(start + queue, cx, out) {
                Some((len, sent)) => {
                    self.tins[number].packets -= 1;
                    if sent.is_some() || self.config.ingress {
                        self.charge(number, queue, len, sent.is_some(), cx.now);
                    }
                    if sent.is_some() {
                        return sent;
                    }
                }
                None => {
                    self.lines.idle(start + queue, cx);
                    self.pass_by(number, queue, cx.now);
                    // With `ingress` what was dropped may have taken the time.
                    let waits = self.ready_at().is_some_and(|at| at > cx.now);
                    if waits || self.lines.backlog().packets == 0 {
                        return None;
                    }
                    number = self.choose_special(cx.now)?;
                }
            }
        }
    }

    /// A packet of `len` bytes of a queue was sent, or was dropped and counts.
    fn charge(&mut self, number: usize, queue: usize, len: u32, sent: bool, now: Instant) {
        let on_wire = self.framing.on_wire(len);
        let tin = &mut self.tins[number];
        tin.flows.sent(queue, on_wire);
        tin.schedule.sent(on_wire, now);
        let Some(special) = &mut self.special else { return };
        special.deficits[number] -= i64::from(on_wire);
        if let Some(shaper) = &mut special.shaper {
            if sent { shaper.sent(on_wire) } else { shaper.dropped(on_wire) }
        }
    }

    /// A target from now, that of the first tin with COBALTs which are not at rest.
    fn rests_at(&self, now: Instant) -> Option<Instant> {
        let special = self.special.as_ref()?;
        let number = self.tins.iter().position(|tin| tin.flows.counts[2] > 0)?;
        let rate = self.config.diffserv.rate(number, self.config.known(special.env.rate));
        Some(now + self.config.cobalt(&Env { rate, ..special.env }).target)
    }

    /// Tins have their shares of a rate.
    fn share(&mut self, rate: Rate) {
        for (number, tin) in self.tins.iter_mut().enumerate() {
            let rate = self.config.diffserv.rate(number, rate);
            tin.schedule = Schedule::new(rate, tin.schedule.next);
            tin.flows.set_quantum(quantum(rate));
        }
    }

    /// Shapes at a rate from now on. COBALTs stay as they are.
    fn shapes_at(&mut self, rate: Rate) {
        self.share(rate);
        if let Some(shaper) = self.special.as_mut().and_then(|special| special.shaper.as_mut()) {
            shaper.set_rate(Some(rate));
        }
    }

    /// Tins and their COBALTs have their shares of a rate.
    fn has_rate(&mut self, env: &Env, rate: Rate) {
        self.share(rate);
        if let Some(special) = &mut self.special {
            special.env = *env;
            special.weighs = rate == Rate::MAX;
        }
        self.has_config(env);
    }

    /// The COBALTs of all tins are as the configuration says.
    fn has_config(&mut self, env: &Env) {
        let queues = self.queues;
        for (line, cobalt) in self.lines.policies().enumerate() {
            let env = Env { rate: self.tins[line / queues].schedule.rate, ..*env };
            cobalt.reconfigure(self.config.cobalt(&env), &env);
        }
        if let Some(special) = &mut self.special {
            let rate = if special.weighs { Rate::MAX } else { special.env.rate };
            special.times = special.times(&self.config, rate);
        }
    }
}

impl Special {
    /// What each tin's COBALTs tolerate, and the time of a long packet there.
    fn times(&self, config: &CakeConfig, rate: Rate) -> Box<[[Duration; 2]]> {
        let times = |number| {
            let env = Env { rate: config.diffserv.rate(number, rate), ..self.env };
            let packet = env.rate.transmission(env.longest(config.mtu).into());
            [tolerated(&config.cobalt(&env), &env), packet]
        };
        (0..config.diffserv.count()).map(times).collect()
    }
}

impl<P: Carried> Cake<P> {
    /// With a shaper of its own if it is `shaped`.
    fn new(
        config: &CakeConfig,
        shaped: bool,
        env: &Env,
        rng: &mut Rng,
    ) -> Result<Self, ConfigError> {
        let (count, queues) = (config.diffserv.count(), config.queues_of_tin());
        let special = Self::special(config, shaped, env);
        let rate = config.known(env.rate);
        let hash = FlowHash::new(rng);
        let tin = |number| {
            let rate = config.diffserv.rate(number, rate);
            Tin {
                schedule: Schedule::new(rate, env.now),
                flows: Flows::new(
                    config.sets,
                    config.isolation.fair(),
                    config.rounds,
                    quantum(rate),
                ),
                packets: 0,
            }
        };
        let tins: Box<[Tin]> = (0..count).map(tin).collect();
        let memory = env.memory("memlimit", config.memlimit)?;
        let plan = Plan { memory, ..Plan::of(count * queues) };
        let mut line = 0;
        let lines = Lines::new(&plan, env, ByBytes, |env| {
            let rate = tins[line / queues].schedule.rate;
            line += 1;
            let env = Env { rate, ..*env };
            Cobalt::new(&config.cobalt(&env), &env, rng)
        })?;
        Ok(Self {
            hash,
            mask: config.isolation.mask(),
            tin_of: core::array::from_fn(|dscp| config.diffserv.tin_of(dscp as u8)),
            tins,
            busy: 0,
            queues,
            lines,
            filtered: 0,
            framing: env.framing,
            config: config.clone(),
            special,
        })
    }

    fn retune(&mut self, config: &CakeConfig, env: &Env) {
        self.config = config.clone();
        self.has_config(env);
    }
}

impl<P: Carried> Qdisc<P> for Cake<P> {
    #[inline]
    fn enqueue(&mut self, meta: Meta, packet: P, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) {
        let (number, word) = self.sorted(meta.flow);
        let tin = &mut self.tins[number];
        let queue = tin.flows.queue_of(word, meta.flow);
        let line = number * self.queues + queue;
        let before = self.lines.backlog().packets;
        self.lines.enqueue(line, meta, packet, cx, out);
        if self.lines.backlog().packets == before {
            return;
        }
        self.busy |= 1 << number;
        if tin.packets == 0 {
            tin.schedule.wake(cx.now);
        }
        tin.packets += 1;
        tin.flows.came(queue);
        if self.special.is_some() {
            self.came(meta.len, cx.now);
        }
        if self.config.ack_filter != AckFilter::Off && packet.ack().is_some() {
            self.filter_acks(number, line, (meta.flow, packet.ack()), cx, out);
        }
        if self.lines.excess() {
            self.make_room(cx, out);
        }
    }

    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>, out: &mut impl Outlet<P>) -> Option<(Meta, P)> {
        if self.lines.backlog().packets == 0 {
            return None;
        }
        if self.special.is_some() {
            return self.dequeue_special(cx, out);
        }
        let mut number = self.choose(cx.now)?;
        if let Some(queue) = self.tins[number].flows.decaying() {
            self.lines.idle(number * self.queues + queue, cx);
            self.pass_by(number, queue, cx.now);
        }
        loop {
            let start = number * self.queues;
            let queue = self.tins[number].flows.next(|n| self.lines.has_packets(start + n))?;
            let sent = self.serve(number, queue, cx, out);
            if sent.is_some() {
                return sent;
            }
            self.pass_by(number, queue, cx.now);
            if self.lines.backlog().packets == 0 {
                return None;
            }
            number = self.choose(cx.now)?;
        }
    }

    fn ready_at(&self) -> Option<Instant> {
        let shaper = self.special.as_ref()?.shaper.as_ref()?;
        (self.lines.backlog().packets > 0).then(|| shaper.ready_at())
    }

    fn backlog(&self) -> Backlog {
        self.lines.backlog()
    }

    fn counters(&self) -> &Counters {
        self.lines.counters()
    }

    fn poll_at(&self) -> Option<Instant> {
        None
    }

    fn on_timer(&mut self, _: &mut Cx<'_>, _: &mut impl Outlet<P>) {}

    fn rate_changed(&mut self, env: &Env) {
        self.framing = env.framing;
        self.has_rate(env, self.config.known(env.rate));
        let rate = (!self.config.unlimited).then_some(env.rate);
        if let Some(Special { shaper, measured, .. }) = self.special.as_deref_mut() {
            shaper.iter_mut().for_each(|shaper| shaper.set_rate(rate));
            measured.iter_mut().for_each(|measured| *measured = Measured::new(rate, env.now));
        }
    }

    fn observe(&self, _: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let all = |kind: usize| self.tins.iter().map(|tin| f64::from(tin.flows.counts[kind])).sum();
        sink("sparse", all(0));
        sink("bulk", all(1));
        sink("decaying", all(2));
        sink("filtered", self.filtered as f64);
    }

    /// The queue that its flow has or would get: its tin, its number there, of which eight after each
    /// other are a set, what waits in it, what `flows.rs` reports, and all that its COBALT does.
    fn observe_flow(&self, packet: &Meta, now: Instant, sink: &mut dyn FnMut(&'static str, f64)) {
        let (number, word) = self.sorted(packet.flow);
        let flows = &self.tins[number].flows;
        let queue = flows.find(word);
        let line = number * self.queues + queue;
        let backlog = self.lines.backlog_of(line);
        sink("flow_tin", number as f64);
        sink("flow_queue", queue as f64);
        sink("flow_packets", f64::from(backlog.packets));
        sink("flow_bytes", backlog.bytes as f64);
        flows.observe(queue, packet.flow, sink);
        self.lines.policy(line).observe(now, sink);
        self.lines.policy(line).observe_flow(packet, now, sink);
    }

    fn state(&self) -> State {
        let lines = self.lines.state(Flows::BYTES_PER_QUEUE);
        let tins = self.tins.iter().map(|tin| size_of::<Tin>() as u64 + tin.flows.bytes_of_hosts());
        State { queue: size_of::<Self>() as u64 + tins.sum::<u64>(), ..lines }
    }
}
