//! Naive models, written from the papers in the simplest possible way (a `Vec` of packets, one step
//! after the other, no closed forms), run side by side with the library on random traffic: each
//! decision and each signal is equal at every step.
//!
//! Both sides draw from equal streams of random numbers. Signals are compared within 10⁻⁹, because
//! the models step where the library computes powers.

use std::collections::BTreeSet;

use aqm::any::BuildError;
use aqm::{
    Ack, AnyQdisc, Cause, Cx, Ecn, Env, FlowKey, Instant, Label, Limit, Meta, Outlet, Qdisc, Rate,
    Rng,
};
use proptest::prelude::*;

use crate::{Numbered, To, wanted};

mod avq;
mod blue;
mod cake;
mod choke;
mod cobalt;
mod codel;
mod csfq;
mod docsis_pie;
mod drops;
mod dual;
mod fair;
mod fq;
mod fred;
mod gsp;
mod naive;
mod pi;
mod pi2;
mod pie;
mod policer;
mod red;
mod red_pd;
mod red_penalty_box;
mod rem;
mod sfb;
mod sred;
mod wred;

use naive::{Event, MEAN, Model, Naive, Packet, Room, Verdict};

/// A link of 8 Mbit/s: a mean packet of 1000 bytes takes 1 ms.
const PACKET_NS: f64 = 1e6;

/// What is compared with the library: a queue of a model, or several.
trait Side {
    fn start(&mut self, _: &mut Rng);
    fn arrive(&mut self, _now: u64, _: Packet, _: &mut Rng);
    fn depart(&mut self, _now: u64, _: &mut Rng);
    /// Time has come to `now`.
    fn clock(&mut self, _now: u64, _: &mut Rng);
    /// What happened since the last question.
    fn events(&mut self) -> Vec<Event>;
    fn signals(&self, _now: u64) -> Vec<f64>;
    /// What else decides about a packet of a flow, or the beginning of it.
    fn of_flow(&self, _now: u64, _flow: u64) -> Vec<f64> {
        Vec::new()
    }
}

impl<M: Model> Side for Naive<M> {
    fn start(&mut self, rng: &mut Rng) {
        self.model.start(rng);
    }
    fn arrive(&mut self, now: u64, packet: Packet, rng: &mut Rng) {
        self.arrive(now, packet, rng);
    }
    fn depart(&mut self, now: u64, rng: &mut Rng) {
        self.depart(now, rng);
    }
    fn clock(&mut self, now: u64, _: &mut Rng) {
        self.model.clock(now, &self.q);
    }
    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
    fn signals(&self, now: u64) -> Vec<f64> {
        self.model.signals(now)
    }
    fn of_flow(&self, _: u64, _: u64) -> Vec<f64> {
        self.model.more()
    }
}

// ---------------------------------------------------------------------------------------------
// Side by side

#[derive(Clone, Copy, Debug)]
enum Op {
    Arrive { len: u32, ecn: Ecn, flow: u64 },
    Depart,
    Wait(u64),
}

/// Records what the library did, in the model's terms.
#[derive(Default)]
struct Log(Vec<Event>);

impl Outlet<Numbered> for Log {
    fn dropped(&mut self, _: &Meta, Numbered { id, .. }: Numbered, cause: Cause, _: Instant) {
        self.0.push(Event::Dropped(id, cause));
    }
    fn marked(&mut self, _: &Meta, Numbered { id, .. }: &Numbered, _: Cause, _: Instant) {
        self.0.push(Event::Marked(*id));
    }
}

/// What a packet acknowledges.
struct Acknowledged {
    number: u32,
    ece: bool,
    bare: bool,
}

/// That of the packet `id`: some acknowledge nothing, some the same as one before or, overtaken, less.
fn acknowledged(id: u32) -> Option<Acknowledged> {
    let dice = id.wrapping_mul(2_654_435_761) >> 24;
    let late = if dice.is_multiple_of(4) { dice % 3 } else { 0 };
    let number = (id / 2).saturating_sub(late);
    let (ece, bare) = ((id / 9).is_multiple_of(3), !dice.is_multiple_of(5));
    (!dice.is_multiple_of(7)).then_some(Acknowledged { number, ece, bare })
}

fn pairs<'a>(settings: &'a [(&str, String)]) -> Vec<(&'a str, &'a str)> {
    settings.iter().map(|(name, text)| (*name, &text[..])).collect()
}

fn compare<M: Model>(
    name: &str,
    settings: &[(&str, String)],
    room: Room,
    ops: &[Op],
    model: M,
) -> Result<(), TestCaseError> {
    let naive = Naive { model, room, q: Vec::new(), events: Vec::new() };
    compare_with(name, settings, room, ops, naive)
}

fn compare_with(
    name: &str,
    settings: &[(&str, String)],
    room: Room,
    ops: &[Op],
    mut naive: impl Side,
) -> Result<(), TestCaseError> {
    compare_behind(None, name, settings, room, ops, &mut naive)
}

/// What is built of the settings that are not refused for having no effect; the model has these, too, so
/// that it shows whether they have none.
fn without_idle<'a, T>(
    mut settings: Vec<(&'a str, &'a str)>,
    mut build: impl FnMut(&[(&'a str, &'a str)]) -> Result<T, BuildError>,
) -> T {
    loop {
        match build(&settings) {
            Err(BuildError::Parameter(name, e)) if e.allowed.contains("; others with ") => {
                settings.retain(|(key, _)| *key != name);
            }
            other => return other.unwrap(),
        }
    }
}

/// The same for an algorithm behind a filter.
fn compare_behind(
    filter: Option<(&str, &[(&str, String)])>,
    name: &str,
    settings: &[(&str, String)],
    room: Room,
    ops: &[Op],
    naive: &mut dyn Side,
) -> Result<(), TestCaseError> {
    if !wanted(name) && filter.is_none_or(|(filter, _)| !wanted(filter)) {
        return Ok(());
    }
    let limit = match room {
        Room::Packets(n) => Limit::packets(n),
        Room::Bytes(n) => Limit::bytes(n),
    };
    let env = Env { mean_packet: MEAN as u32, ..Env::new(limit.unwrap(), Rate::from_mbit(8)) };
    let (mut ours, mut theirs) = (Rng::new(5, 1), Rng::new(5, 1));
    let build = |settings: &[_]| AnyQdisc::<Numbered>::build(name, settings, &env, &mut ours);
    let mut q = without_idle(pairs(settings), build);
    if let Some((filter, settings)) = filter {
        q = without_idle(pairs(settings), |settings| {
            q.clone().filtered(filter, settings, &env, &mut ours)
        });
    }
    naive.start(&mut theirs);
    let (mut now, mut id, mut log) = (0, 0, Log::default());
    let mut flows = BTreeSet::new();
    for (step, op) in ops.iter().enumerate() {
        let at = Instant::from_nanos(now);
        match *op {
            Op::Wait(ns) => {
                now += ns;
                while let Some(due) = q.poll_at().filter(|t| t.as_nanos() <= now) {
                    q.on_timer(&mut Cx { now: due, rng: &mut ours }, &mut To(&mut log));
                }
                naive.clock(now, &mut theirs);
            }
            Op::Arrive { len, ecn, flow } => {
                let ack = acknowledged(id)
                    .map_or(Ack::NONE, |ack| Ack::new(ack.number, [ack.ece, false], ack.bare));
                let meta = Meta { len, ecn, flow: FlowKey(flow), arrived: at };
                let packet = Numbered { id, ack, salt: 0 };
                q.enqueue(meta, packet, &mut Cx { now: at, rng: &mut ours }, &mut To(&mut log));
                let (ect, l4s) = (ecn != Ecn::NotEct, ecn == Ecn::Ect1);
                let packet = Packet { id, flow, len, ect, l4s, marked: false, arrived: 0 };
                naive.arrive(now, packet, &mut theirs);
                flows.insert(flow);
                id += 1;
            }
            Op::Depart => {
                let sent = q.dequeue(&mut Cx { now: at, rng: &mut ours }, &mut To(&mut log));
                log.0.push(match sent {
                    Some((meta, Numbered { id, .. })) => Event::Sent(id, meta.ecn == Ecn::Ce),
                    None => Event::Idle,
                });
                naive.depart(now, &mut theirs);
            }
        }
        prop_assert_eq!(&log.0, &naive.events(), "step {}: {:?}", step, op);
        log.0.clear();
        let (mut signals, mut of_flow, at) = (Vec::new(), Vec::new(), Instant::from_nanos(now));
        q.observe(at, &mut |name, value| signals.push((name, value)));
        let expected = naive.signals(now);
        prop_assert_eq!(signals.len(), expected.len());
        close(step, &signals, &expected)?;
        for &flow in &flows {
            let meta = Meta { flow: FlowKey(flow), arrived: at, ..Meta::default() };
            of_flow.clear();
            q.observe_flow(&meta, at, &mut |name, value| of_flow.push((name, value)));
            close(step, &of_flow, &naive.of_flow(now, flow))?;
        }
    }
    prop_assert_eq!(ours.bits(), theirs.bits(), "as many random numbers were drawn");
    Ok(())
}

/// What is reported agrees with what the model has of it.
fn close(step: usize, signals: &[(&str, f64)], expected: &[f64]) -> Result<(), TestCaseError> {
    prop_assert!(signals.len() >= expected.len());
    for ((name, value), expected) in signals.iter().zip(expected) {
        let close = (value - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        prop_assert!(close, "step {step}: {name} is {value}, the model's {expected}");
    }
    Ok(())
}

// ---------------------------------------------------------------------------------------------
// What traffic and settings are tried

fn operation() -> impl Strategy<Value = Op> {
    let len = prop::sample::select(vec![40u32, 576, 1000, 1500, 3000]);
    prop_oneof![
        8 => (len, prop::sample::select(vec![Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1]), 0..4u64)
            .prop_map(|(len, ecn, flow)| Op::Arrive { len, ecn, flow }),
        5 => Just(Op::Depart),
        3 => (0..2_000_000u64).prop_map(Op::Wait),
        1 => prop::sample::select(vec![0, 1, 1_000_000, 5_000_000, 10_000_000]).prop_map(Op::Wait),
        1 => (0..300_000_000u64).prop_map(Op::Wait),
    ]
}

fn traffic() -> impl Strategy<Value = Vec<Op>> {
    // Runs of the same operation, so that queues fill and links go idle.
    prop::collection::vec((operation(), 1..6usize), 1..120)
        .prop_map(|runs| runs.into_iter().flat_map(|(op, n)| std::iter::repeat_n(op, n)).collect())
}

/// The same traffic of twelve flows between three hosts and two, whose packets have codepoints.
fn labelled(ops: Vec<Op>, codepoints: &[u8]) -> Vec<Op> {
    let mut number = 0;
    let one = |op| {
        let Op::Arrive { len, ecn, flow } = op else { return op };
        number += 1;
        let flow = (7 * (number / 3) + flow) % 12;
        let dscp = codepoints[flow as usize % codepoints.len()];
        let label = Label { dscp, host: (flow % 3) as u16, peer: (flow / 6) as u16 };
        Op::Arrive { len, ecn, flow: FlowKey::labelled(flow as u32, label).0 }
    };
    ops.into_iter().map(one).collect()
}

fn room() -> impl Strategy<Value = Room> {
    prop_oneof![
        4 => (1..15u64).prop_map(Room::Packets),
        2 => (1_000..12_000u64).prop_map(Room::Bytes),
        1 => (28..1_000u64).prop_map(Room::Bytes),
    ]
}

fn amount(n: u64, bytes: bool) -> String {
    if bytes { format!("{n}B") } else { format!("{n}p") }
}

fn pick(words: &[&'static str]) -> impl Strategy<Value = &'static str> + use<> {
    prop::sample::select(words.to_vec())
}

fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    // PROPTEST_CASES asks for more.
    ProptestConfig { cases: default.cases.max(400), failure_persistence: None, ..default }
}
