//! Laws that every queue discipline obeys, run for each algorithm of the catalogue with its
//! defaults, with each preset, each word of each choice, each end of each range, and some
//! combinations.
//!
//! A new algorithm is under these laws as soon as it is in the catalogue; settings that are of
//! interest only together go into `TOGETHER` in `cases.rs`.

use aqm::any::{BuildError, PRESET, canonical, fits};
use aqm::told::Rates;
use aqm::tuned::Tunable as _;
use aqm::{
    About, Ack, AnyQdisc, CATALOG, Cause, Cx, Duration, Ecn, Env, FlowKey, Instant, Label, Limit,
    Meta, Outlet, Qdisc, Rate, Rng,
};

mod cases;

use crate::{Numbered, To, wanted};
use cases::{FILTER, FILTER_SETTINGS, Settings, cases};

/// One thing that happens to a queue.
#[derive(Clone, Copy, Debug)]
enum Op {
    Arrive(Meta),
    Depart,
    Wait(Duration),
}

/// What a queue did, as its surroundings see it.
#[derive(Clone, PartialEq, Debug)]
enum Event {
    Dropped(u32, Cause),
    Marked(FlowKey, u32, Cause),
    Sent(u32, Ecn),
    Idle,
    Signals(Vec<u64>),
}

/// Everything is an acknowledgement.
fn ack(id: u32) -> Ack {
    Ack::new(id, [id.is_multiple_of(5), false], !id.is_multiple_of(7))
}

#[derive(Default)]
struct Log(Vec<Event>);

impl Outlet<Numbered> for Log {
    fn dropped(&mut self, _: &Meta, p: Numbered, cause: Cause, _: Instant) {
        self.0.push(Event::Dropped(p.id, cause));
    }
    fn marked(&mut self, meta: &Meta, _: &Numbered, cause: Cause, _: Instant) {
        assert_eq!(meta.ecn, Ecn::Ce, "a report of a mark shows the mark");
        self.0.push(Event::Marked(meta.flow, meta.len, cause));
    }
}

/// Bursts, drains, pauses and idle times at random. `pause` scales the time between operations.
fn traffic(seed: u64, operations: usize, ect: bool, pause: Duration) -> Vec<Op> {
    let mut rng = Rng::new(seed, 77);
    let mut arrivals = 0.7;
    (0..operations)
        .map(|i| {
            if i % 50 == 0 {
                arrivals = [0.9, 0.5, 0.2, 0.7][rng.below(4)];
            }
            if rng.chance(0.3) {
                let scale = [0, 1, 1, 3, 200][rng.below(5)];
                return Op::Wait(pause.mul_f64(rng.uniform()) * scale);
            }
            if !rng.chance(arrivals) {
                return Op::Depart;
            }
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
            Op::Arrive(Meta {
                flow: flow_key(rng.below(5)),
                len: [40, 576, 1000, 1500, 9000][rng.below(5)],
                ecn: if ect { ecn[rng.below(4)] } else { Ecn::NotEct },
                ..Meta::default()
            })
        })
        .collect()
}

/// A flow between two hosts and two, with a codepoint of its own: CS0, CS1, EF, AF22, AF43.
fn flow_key(flow: usize) -> FlowKey {
    let label =
        Label { dscp: [0, 8, 46, 20, 38][flow], host: flow as u16 % 2, peer: flow as u16 / 3 };
    FlowKey::labelled(flow as u32, label)
}

/// What became of each packet so far; the laws of accounting.
struct Ledger {
    /// By number: what arrived, and whether it is still queued.
    packets: Vec<(Meta, bool)>,
    /// Counted by flow: arrived, gone, in packets and bytes.
    flows: [[u64; 4]; 5],
}

impl Ledger {
    fn arrived(&mut self, meta: Meta) {
        let flow = &mut self.flows[meta.flow.0 as u32 as usize];
        flow[0] += 1;
        flow[1] += u64::from(meta.len);
        self.packets.push((meta, true));
    }

    fn gone(&mut self, id: u32) -> Meta {
        let (meta, here) = self.packets[id as usize];
        assert!(here, "packet {id} leaves twice");
        self.packets[id as usize].1 = false;
        let flow = &mut self.flows[meta.flow.0 as u32 as usize];
        flow[2] += 1;
        flow[3] += u64::from(meta.len);
        meta
    }

    /// It is the packet that came.
    fn sent(&self, id: u32, meta: &Meta) -> Event {
        let came = self.packets[id as usize].0;
        assert_eq!((meta.len, meta.flow), (came.len, came.flow), "another packet");
        Event::Sent(id, meta.ecn)
    }

    /// What has gone is gone once, with the mark that it may have.
    fn settle(&mut self, event: &Event, q: &AnyQdisc<Numbered>, now: Instant) {
        match *event {
            Event::Dropped(id, _) => _ = self.gone(id),
            Event::Sent(id, ecn) => {
                let came = self.gone(id).ecn;
                assert!(ecn == came || (came.capable() && ecn == Ecn::Ce), "{came:?} → {ecn:?}");
            }
            Event::Idle => {
                let held = q.ready_at().is_some_and(|at| at > now);
                assert!(held || q.backlog().packets == 0, "idle with packets queued");
            }
            Event::Marked(..) | Event::Signals(_) => {}
        }
    }

    /// Arrivals = departures + drops + queued, in packets and bytes, against the queue's own books.
    fn check(&self, q: &AnyQdisc<Numbered>, limit: Limit) {
        let c = q.counters();
        let (b, d) = (q.backlog(), c.all_dropped());
        assert_eq!(c.arrived.packets, c.departed.packets + d.packets + u64::from(b.packets));
        assert_eq!(c.arrived.bytes, c.departed.bytes + d.bytes + b.bytes);
        let sum = |i: usize| self.flows.iter().map(|f| f[i]).sum::<u64>();
        assert_eq!((c.arrived.packets, c.arrived.bytes), (sum(0), sum(1)));
        assert_eq!((u64::from(b.packets), b.bytes), (sum(0) - sum(2), sum(1) - sum(3)));
        assert!(b.packets <= limit.max_packets() && b.bytes <= limit.max_bytes());
    }
}

/// How a run departs from the plain one, in a way that must not matter.
#[derive(Clone, Copy, Default)]
struct Twist<'a> {
    /// Another payload.
    salt: u64,
    /// The timer runs at each operation, mostly too early.
    early_timer: bool,
    /// Everything happens later.
    start: u64,
    /// It is built for a link of this rate, and then told the one that it has.
    built_for: Option<Rate>,
    /// It is told the rate that it has.
    told: bool,
    /// Of the timers that are due in a wait five run at their time, not a hundred. Where each of a thousand
    /// queues has one, a hundred for each wait behind a leap took most of the time of all laws.
    late: bool,
    /// In turn it gets each of these parameters.
    params: &'a [Settings],
}

/// A fresh queue and the signals that it should have, or nothing when the settings do not fit this buffer.
fn built(
    (entry, settings): &(&About, Settings),
    env: &Env,
    twist: Twist<'_>,
    rng: &mut Rng,
) -> Option<(AnyQdisc<Numbered>, Vec<&'static str>)> {
    let mut pairs: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (&k[..], &v[..])).collect();
    let filtered = pairs.contains(&FILTER);
    pairs.retain(|pair| *pair != FILTER);
    let before = Env { rate: twist.built_for.unwrap_or(env.rate), ..*env };
    let mut q = match AnyQdisc::<Numbered>::build(entry.name, &pairs, &before, rng) {
        Ok(q) => q,
        Err(BuildError::Config(_)) if settings.len() <= 2 => return None,
        Err(e) => panic!("{} {settings:?}: {e:?}", entry.name),
    };
    let mut expected: Vec<&str> = entry.signals.iter().map(|signal| signal.name).collect();
    if filtered {
        q = q.filtered(FILTER.1, &FILTER_SETTINGS, env, rng).unwrap();
        let own = About::of(FILTER.1).unwrap().signals;
        expected.splice(..0, own[..8].iter().map(|signal| signal.name));
    }
    if twist.built_for.is_some() {
        q.rate_changed(env);
    }
    if twist.told {
        let steps = [(Duration::ZERO, Some(env.rate))].into();
        q = q.with_rates(env, Rates { steps, period: None });
        q.on_timer(&mut Cx { now: env.now, rng }, &mut To(&mut Log::default()));
    }
    Some((q, expected))
}

/// Runs `ops` through a fresh queue, checking the books after each; what it did, or nothing when
/// the settings do not fit this buffer.
fn run(case: &(&About, Settings), env: &Env, ops: &[Op], twist: Twist<'_>) -> Option<Vec<Event>> {
    let mut now = Instant::from_nanos(twist.start);
    let mut rng = Rng::new(11, 0);
    let env = Env { now, ..*env };
    let (mut q, expected) = built(case, &env, twist, &mut rng)?;
    let mut log = Log::default();
    let mut ledger = Ledger { packets: Vec::new(), flows: [[0; 4]; 5] };
    for (n, op) in ops.iter().enumerate() {
        let before = log.0.len();
        if n % 37 == 36 && !twist.params.is_empty() {
            retune(&mut q, case.0, &twist.params[n / 37 % twist.params.len()], now);
        }
        if twist.early_timer && q.poll_at().is_some_and(|at| at > now) {
            q.on_timer(&mut Cx { now, rng: &mut rng }, &mut To(&mut log));
        }
        match *op {
            Op::Wait(d) => {
                let until = now + d;
                // A few due timers run at their time; after a long night the rest come late.
                let on_time = if twist.late { 5 } else { 100 };
                for _ in 0..on_time {
                    match q.poll_at().filter(|&at| at <= until) {
                        Some(at) => {
                            q.on_timer(&mut Cx { now: at, rng: &mut rng }, &mut To(&mut log))
                        }
                        None => break,
                    }
                }
                now = until;
            }
            Op::Arrive(meta) => {
                let id = ledger.packets.len() as u32;
                ledger.arrived(meta);
                let packet = Numbered { id, ack: ack(id), salt: twist.salt };
                q.enqueue(meta, packet, &mut Cx { now, rng: &mut rng }, &mut To(&mut log));
            }
            Op::Depart => {
                let sent = q.dequeue(&mut Cx { now, rng: &mut rng }, &mut To(&mut log));
                log.0.push(sent.map_or(Event::Idle, |(meta, p)| ledger.sent(p.id, &meta)));
            }
        }
        for event in &log.0[before..] {
            ledger.settle(event, &q, now);
        }
        ledger.check(&q, env.limit);
        log.0.push(Event::Signals(signals(&expected, &q, now)));
    }
    tally(&q, &log.0);
    Some(log.0)
}

/// Gives a queue other parameters, if they fit its buffer.
fn retune(q: &mut AnyQdisc<Numbered>, about: &About, settings: &Settings, now: Instant) {
    let pairs = settings.iter().map(|(k, v)| (&k[..], &v[..])).filter(|pair| *pair != FILTER);
    let env = Env { now, ..env(Limit::packets(20)) };
    let queue = match q {
        AnyQdisc::Filtered(filtered) => filtered.behind_mut(),
        queue => queue,
    };
    match queue.retune(about.name, &pairs.collect::<Vec<_>>(), &env) {
        Ok(()) | Err(BuildError::Config(_)) => {}
        Err(e) => panic!("{settings:?}: {e:?}"),
    }
}

/// The signals: all that are expected, in order, finite, probabilities in [0, 1].
fn signals(expected: &[&str], q: &AnyQdisc<Numbered>, now: Instant) -> Vec<u64> {
    let mut at = 0;
    let mut bits = Vec::new();
    q.observe(now, &mut |name, value| {
        assert_eq!(expected.get(at), Some(&name));
        assert!(value.is_finite(), "{name} = {value}");
        if name.starts_with("p_") || name == "max_p" {
            assert!((0.0..=1.0).contains(&value), "{name} = {value}");
        }
        at += 1;
        bits.push(value.to_bits());
    });
    assert_eq!(at, expected.len(), "all signals are reported");
    bits
}

/// The counters by cause are the events, counted.
fn tally(q: &AnyQdisc<Numbered>, events: &[Event]) {
    for cause in Cause::ALL {
        let count = |f: &dyn Fn(&Event) -> bool| events.iter().filter(|e| f(e)).count() as u64;
        let dropped = count(&|e| matches!(e, Event::Dropped(_, c) if *c == cause));
        let marked = count(&|e| matches!(e, Event::Marked(_, _, c) if *c == cause));
        assert_eq!(q.counters().dropped[cause as usize].packets, dropped, "{cause:?}");
        assert_eq!(q.counters().marked[cause as usize].packets, marked, "{cause:?}");
    }
}

fn env(limit: Option<Limit>) -> Env {
    Env::new(limit.unwrap(), Rate::from_mbit(8))
}

const MS: Duration = Duration::from_millis(1);

/// Runs `law` for every case, naming the case that breaks it.
fn for_each_case(law: impl Fn(&(&About, Settings))) {
    for case in cases() {
        let name = format!("{} {:?}", case.0.name, case.1);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| law(&case)));
        if let Err(panic) = outcome {
            eprintln!("broken by {name}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn the_books_balance_after_every_operation() {
    for_each_case(|case| {
        for limit in [Limit::packets(20), Limit::bytes(20_000), Limit::packets(1)] {
            for seed in 0..3 {
                run(case, &env(limit), &traffic(seed, 1000, true, MS), Twist::default());
            }
        }
    });
}

/// A buffer of 28 bytes has room for nothing that arrives here; one of 600 for some.
#[test]
fn packets_longer_than_the_buffer_are_dropped_for_want_of_room() {
    for_each_case(|case| {
        for limit in [Limit::bytes(28), Limit::bytes(600)] {
            let room = limit.unwrap().max_bytes();
            let ops = traffic(5, 500, false, MS);
            let Some(events) = run(case, &env(limit), &ops, Twist::default()) else { continue };
            let long = ops.iter().filter_map(|op| match op {
                Op::Arrive(meta) => Some(u64::from(meta.len) > room),
                _ => None,
            });
            for (id, _) in long.enumerate().filter(|(_, long)| *long) {
                assert!(!events.iter().any(|e| matches!(e, Event::Sent(i, _) if *i == id as u32)));
            }
        }
    });
}

#[test]
fn a_buffer_has_room_for_something() {
    assert!(Limit::packets(0).is_none() && Limit::bytes(0).is_none());
}

#[test]
fn nothing_is_marked_that_is_not_ecn_capable() {
    for_each_case(|case| {
        let ops = traffic(1, 3000, false, MS);
        let events = run(case, &env(Limit::packets(20)), &ops, Twist::default());
        let marks = events.iter().flatten().filter(|e| matches!(e, Event::Marked(..))).count();
        assert_eq!(marks, 0);
    });
}

/// One packet at a time, each sent before the next arrives.
#[test]
fn an_uncongested_queue_signals_nothing() {
    for_each_case(|case| {
        match case.0.name {
            // A lossy link loses whatever comes.
            "bernoulli" => return,
            // AVQ signals a link that is busier than it should be, while its queue is empty (KS01).
            "avq" => return,
            // BLUE that begins with p_m above 0 signals until idleness has brought it down.
            "blue" if case.1.iter().any(|(key, value)| key == "initial" && value != "0") => return,
            // A rate a little below that of arrivals lets a queue grow.
            "cake" if case.1.contains(&("autorate_ingress".into(), "true".into())) => return,
            // Of several CAKEs each keeps within its part of the rate, though flows are unequal.
            "cake" if case.1.iter().any(|(key, _)| key == "queues") => return,
            // FQ holds flows to their rate until too many of their packets wait.
            "fq" if case.1.iter().any(|(key, _)| key == "maxrate") => return,
            // CSFQ holds a flow to the fair rate of the last window, congested or not (SSZ98 Fig. 3).
            "csfq" if !case.1.contains(&("only_congested".into(), "true".into())) => return,
            _ => {}
        }
        let mut ops = Vec::new();
        for (i, op) in traffic(2, 5000, true, MS).into_iter().enumerate() {
            if let Op::Arrive(meta) = op {
                ops.extend([Op::Arrive(Meta { len: 1000, ..meta }), Op::Depart, Op::Wait(MS)]);
                ops.extend((i % 3 == 0).then_some(Op::Depart));
                ops.extend((i % 7 == 0).then_some(Op::Wait(Duration::from_secs(1))));
            }
        }
        let events = run(case, &env(Limit::packets(20)), &ops, Twist::default());
        for event in events.iter().flatten() {
            assert!(!matches!(event, Event::Dropped(..) | Event::Marked(..)), "{event:?}");
        }
    });
}

/// Packets of one flow leave in the order in which they came; where two queues are sorted by codepoint,
/// those of one codepoint.
#[test]
fn a_flow_keeps_its_order() {
    for_each_case(|case| {
        // A flow that goes to the other queue and comes back is not in order.
        if case.1.contains(&("protection".into(), "queue".into())) {
            return;
        }
        // In a set of ns-3 it moves to an earlier queue that has become idle.
        if case.0.name.starts_with("fq-") && case.1.iter().any(|(key, _)| key == "ways") {
            return;
        }
        let ops = traffic(3, 3000, true, MS);
        let Some(events) = run(case, &env(Limit::packets(20)), &ops, Twist::default()) else {
            return;
        };
        let by_codepoint = matches!(case.0.name, "dualpi2" | "curvy-red");
        let flows: Vec<u64> = ops
            .iter()
            .filter_map(|op| match op {
                Op::Arrive(meta) if by_codepoint => {
                    Some(u64::from(meta.flow.0 as u32) + 5 * meta.ecn as u64)
                }
                Op::Arrive(meta) => Some(u64::from(meta.flow.0 as u32)),
                _ => None,
            })
            .collect();
        let mut last = [None; 20];
        for event in events {
            if let Event::Sent(id, _) = event {
                let flow = flows[id as usize] as usize;
                assert!(last[flow] < Some(id), "{id} after {:?}", last[flow]);
                last[flow] = Some(id);
            }
        }
    });
}

/// Decisions and signals stay what they are with a queue built anew, another payload, a timer that asks too early, a
/// start in the far future, and a change of parameters to those that it has.
#[test]
fn decisions_depend_on_traffic_and_seed_alone() {
    for_each_case(|case| {
        let ops = traffic(4, 2000, true, MS);
        let env = env(Limit::packets(20));
        let plain = run(case, &env, &ops, Twist::default());
        for twist in [
            Twist::default(),
            Twist { salt: 99, ..Twist::default() },
            Twist { early_timer: true, ..Twist::default() },
            Twist { start: 12_345_678_901_234_567, ..Twist::default() },
            Twist { start: u64::MAX / 2, ..Twist::default() },
            Twist { told: true, ..Twist::default() },
            Twist { params: std::slice::from_ref(&case.1), ..Twist::default() },
        ] {
            let other = run(case, &env, &ops, twist);
            let differ = plain.iter().flatten().zip(other.iter().flatten()).find(|(a, b)| a != b);
            assert_eq!(differ, None);
            assert_eq!(plain.is_some(), other.is_some());
        }
    });
}

/// Each parameter that may change while a queue runs goes to each end of its range; the books balance, and a
/// queue goes on to serve what it has.
#[test]
fn parameters_may_change_while_it_runs() {
    for about in CATALOG {
        let names = (about.parameters)().into_iter().map(|param| param.name).collect::<Vec<_>>();
        assert!(about.live.iter().all(|name| names.contains(name)), "{}", about.name);
        // SFQ's are those of the RED in its queues.
        let base: Settings = if about.name == "sfq" { vec![own(("aqm", "red"))] } else { vec![] };
        let may = |(name, value): &(String, String)| {
            about.live.contains(&&name[..]) || base.contains(&(name.clone(), value.clone()))
        };
        let own_cases = cases().into_iter().filter(|(of, _)| of.name == about.name);
        let changed: Vec<_> =
            own_cases.map(|(_, set)| set).filter(|set| set.iter().all(may)).collect();
        assert_eq!(changed.len() > 1, !about.live.is_empty(), "{}", about.name);
        let twist = Twist { params: &changed, ..Twist::default() };
        for seed in 0..3 {
            let ops = traffic(seed, 3000, true, MS);
            assert!(run(&(about, base.clone()), &env(Limit::packets(20)), &ops, twist).is_some());
        }
    }
}

fn own((name, value): (&str, &str)) -> (String, String) {
    (name.into(), value.into())
}

/// A queue that is told another rate before the first packet is as one that was built for it. AVQ and
/// CSFQ begin with the rate as the first value of what they then adapt.
#[test]
fn a_rate_that_is_told_is_as_good_as_one_that_was_known() {
    for_each_case(|case| {
        if ["avq", "csfq"].contains(&case.0.name) {
            return;
        }
        let (ops, env) = (traffic(4, 2000, true, MS), env(Limit::packets(20)));
        let (known, told) = (Twist::default(), Rate::from_mbit(3));
        if let Some(other) = run(case, &env, &ops, Twist { built_for: Some(told), ..known }) {
            let plain = run(case, &env, &ops, known);
            assert_eq!(plain.iter().flatten().zip(&other).find(|(a, b)| a != b), None);
        }
    });
}

/// Whoever changes the rate of a link asks `fits`. It refuses a rate for the reason for which `build` refuses it.
#[test]
fn a_rate_that_does_not_fit_is_one_for_which_there_is_no_queue() {
    let more = [
        ("ared", vec![own(("max_th", "20p"))]),
        ("fred", vec![own(("max_th", "20p")), own(("rtt", "10ms"))]),
    ]
    .map(|(name, settings)| (About::of(name).unwrap(), settings));
    let mut refused = std::collections::BTreeSet::new();
    let more = more.into_iter().filter(|(about, _)| wanted(about.name));
    for (about, settings) in cases().into_iter().chain(more) {
        let pairs: Vec<_> = settings.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        if pairs.contains(&FILTER) {
            continue;
        }
        let built = |rate: u64| {
            let env = Env { rate: Rate::new(rate).unwrap(), ..env(Limit::packets(100)) };
            let queue = AnyQdisc::<Numbered>::build(about.name, &pairs, &env, &mut Rng::new(1, 0));
            (queue.map(drop), fits(about.name, &pairs, &env))
        };
        if built(8_000_000).0.is_err() {
            continue;
        }
        for rate in [1, 8_000, 1_000_000, 100_000_000_000] {
            let (built, fits) = built(rate);
            assert_eq!(built, fits, "{} {settings:?} at {rate} bit/s", about.name);
            if fits.is_err() {
                refused.insert(about.name);
            }
        }
    }
    let expected = ["ared", "cake", "fred", "pi"].into_iter().filter(|name| wanted(name));
    assert_eq!(refused, expected.collect());
}

/// The traffic of the laws makes algorithms decide: without that the laws above would say nothing.
#[test]
fn each_algorithm_drops_or_marks_under_this_traffic() {
    for_each_case(|case| {
        let ops = traffic(4, 2000, true, MS);
        if let Some(events) = run(case, &env(Limit::packets(20)), &ops, Twist::default()) {
            assert!(events.iter().any(|e| matches!(e, Event::Dropped(..) | Event::Marked(..))));
        }
    });
}

/// The canonical text of all parameters is as good as the settings it was made from.
#[test]
fn canonical_settings_give_the_same_queue() {
    for_each_case(|(entry, settings)| {
        if settings.iter().any(|(name, _)| name == FILTER.0) {
            return; // not a parameter of the algorithm
        }
        let pairs: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        let full: Settings = canonical(entry.name, &pairs)
            .unwrap()
            .into_iter()
            .map(|(name, value)| (name.to_string(), value))
            .collect();
        let (ops, env) = (traffic(6, 1000, true, MS), env(Limit::bytes(20_000)));
        if let Some(events) = run(&(entry, settings.clone()), &env, &ops, Twist::default()) {
            assert_eq!(Some(events), run(&(entry, full), &env, &ops, Twist::default()));
        }
    });
}

/// A preset's settings hold, and those given beside it go before it, whatever their order.
#[test]
fn settings_go_before_the_preset_beside_them() {
    let get = |settings: &[(&str, &str)], name: &str| {
        let all = canonical("red", settings).unwrap();
        all.into_iter().find(|(n, _)| *n == name).unwrap().1
    };
    let settings = [("max_p", "0.5"), (PRESET, "linux")];
    assert_eq!(get(&settings, "max_p"), "0.5");
    assert_eq!(get(&settings, "mode"), "bytes");
    let wrong = canonical("red", &[(PRESET, "windows")]);
    assert!(
        matches!(&wrong, Err(BuildError::Parameter(name, e)) if name == PRESET && e.allowed == "feng | linux")
    );
    let none = canonical("droptail", &[(PRESET, "linux")]);
    assert!(matches!(none, Err(BuildError::Parameter(name, _)) if name == PRESET));
}

/// The comparison report (HRC §3) gives FRED thresholds of 50 and 100 packets, on links of 0.5 to
/// 20 Mbit/s; and its SFB lets a Boxtime of 20 ms pass a quarter of the link, more than its bins of
/// 9 packets would hold: packets that the penalty lets pass are not dropped for a full bin.
#[test]
fn the_comparison_reports_presets_are_its_numbers() {
    let get = |aqm: &str, name: &str| {
        let all = canonical(aqm, &[(PRESET, "cmu")]).unwrap();
        all.into_iter().find(|(n, _)| *n == name).unwrap().1
    };
    assert_eq!([get("fred", "min_th"), get("fred", "max_th")], ["50p", "100p"]);
    assert_eq!(get("sfb", "bin_limit"), "150p");
}

#[test]
fn time_may_stand_still() {
    for_each_case(|case| {
        let ops = traffic(7, 2000, true, Duration::ZERO);
        run(case, &env(Limit::packets(20)), &ops, Twist::default());
    });
}

/// Gaps of centuries between bursts, up to the end of time. From the first of them on timers come late.
#[test]
fn time_may_leap() {
    for_each_case(|case| {
        let mut ops = Vec::new();
        for (seed, leap) in [(1, u64::MAX / 4), (2, u64::MAX / 8), (3, 1), (4, u64::MAX / 2)] {
            ops.extend(traffic(seed, 300, true, MS));
            ops.push(Op::Wait(Duration::from_nanos(leap)));
            ops.push(Op::Depart);
            ops.push(Op::Wait(Duration::from_nanos(leap / 16)));
        }
        for start in [0, u64::MAX / 2] {
            let twist = Twist { start, late: true, ..Twist::default() };
            run(case, &env(Limit::packets(20)), &ops, twist);
        }
    });
}
