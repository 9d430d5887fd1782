//! No parameter is accepted and then does nothing: at the defaults, and beside each word of each choice,
//! each other parameter of each algorithm either changes what becomes of some packet, or is refused.

use aqm::any::canonical;
use aqm::param::{Kind, Param};
use aqm::{
    Ack, AnyQdisc, CATALOG, Cause, Cx, Duration, Ecn, Env, FlowKey, Instant, Label, Limit, Meta,
    Outlet, Qdisc, Rate, Rng,
};

use crate::{Numbered, To, wanted};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Event {
    Dropped(u32, Cause),
    Marked(u64, u32, Cause),
    Sent(u32),
    Idle,
}

/// A packet that is an acknowledgement as well.
fn acknowledging(id: u32) -> Numbered {
    Numbered { id, ack: Ack::new(id, [false; 2], true), salt: 0 }
}

#[derive(Default)]
struct Log(Vec<Event>);

impl Outlet<Numbered> for Log {
    fn dropped(&mut self, _: &Meta, p: Numbered, cause: Cause, _: Instant) {
        self.0.push(Event::Dropped(p.id, cause));
    }
    fn marked(&mut self, meta: &Meta, p: &Numbered, cause: Cause, _: Instant) {
        self.0.push(Event::Marked(meta.flow.0, p.id, cause));
    }
}

/// Some operations on a queue.
#[derive(Clone, Copy)]
struct Load {
    /// Its buffer in packets.
    limit: u64,
    flows: usize,
    /// The mean time between operations, µs, roughly.
    pause: u64,
    operations: usize,
    /// It is hardly ever idle.
    heavy: bool,
}

const LOADS: [Load; 5] = [
    Load { limit: 40, flows: 5, pause: 300, operations: 6000, heavy: false },
    Load { limit: 20, flows: 5, pause: 2000, operations: 6000, heavy: false },
    Load { limit: 100, flows: 40, pause: 1000, operations: 12_000, heavy: false },
    Load { limit: 20, flows: 3, pause: 1000, operations: 12_000, heavy: true },
    Load { limit: 200, flows: 60, pause: 3000, operations: 20_000, heavy: true },
];

/// A flow among five hosts and eleven; every eighth flow has the same codepoint.
fn flow_key(flow: u64) -> FlowKey {
    let dscp = [0, 8, 46, 20, 38, 16, 32, 56][(flow % 8) as usize];
    let label = Label { dscp, host: (flow % 5) as u16, peer: (flow % 11) as u16 };
    FlowKey::labelled(flow as u32, label)
}

/// What happens under a load; nothing when the settings are refused, and where it differs from `base`
/// only as much as shows that.
fn run(
    name: &str,
    settings: &[(&str, &str)],
    load: Load,
    base: Option<&[Event]>,
) -> Option<Vec<Event>> {
    let mut rng = Rng::new(11, 0);
    let mut now = Instant::ZERO;
    let env = Env { now, ..Env::new(Limit::packets(load.limit).unwrap(), Rate::from_mbit(8)) };
    let mut q = AnyQdisc::<Numbered>::build(name, settings, &env, &mut rng).ok()?;
    let mut log = Log::default();
    let mut draw = Rng::new(1, 77);
    let mut arrivals = 0.7;
    for i in 0..load.operations {
        if i % 200 == 0 {
            arrivals = if load.heavy {
                [0.8, 0.7, 0.8, if i % 1000 == 0 { 0.1 } else { 0.7 }, 0.9]
            } else {
                [0.9, 0.55, 0.2, 0.7, 0.6]
            }[draw.below(5)];
        }
        if draw.chance(0.3) {
            let scale = [0, 1, 1, 3, 20][draw.below(5)] * if draw.chance(0.01) { 100 } else { 1 };
            let until = now
                + Duration::from_nanos((load.pause as f64 * 1e3 * draw.uniform()) as u64) * scale;
            for _ in 0..1000 {
                match q.poll_at().filter(|&at| at <= until) {
                    Some(at) => q.on_timer(&mut Cx { now: at, rng: &mut rng }, &mut To(&mut log)),
                    None => break,
                }
            }
            now = until;
        } else if draw.chance(arrivals) {
            let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ect0];
            let flow = if draw.chance(0.3) { 0 } else { draw.below(load.flows) as u64 };
            let meta = Meta {
                flow: flow_key(flow),
                len: [40, 576, 1000, 1500][draw.below(4)],
                ecn: ecn[(flow % 4) as usize],
                ..Meta::default()
            };
            q.enqueue(
                meta,
                acknowledging(i as u32),
                &mut Cx { now, rng: &mut rng },
                &mut To(&mut log),
            );
        } else {
            let sent = q.dequeue(&mut Cx { now, rng: &mut rng }, &mut To(&mut log));
            log.0.push(sent.map_or(Event::Idle, |(_, p)| Event::Sent(p.id)));
        }
        if let Some(base) = base
            && i % 256 == 255
            && base.get(..log.0.len()) != Some(&log.0[..])
        {
            return Some(log.0);
        }
    }
    Some(log.0)
}

/// Settings under which more parameters show; they go before the defaults of those that have them all.
const REVEALING: &[&str] = &[
    "min_th=20% max_th=80% max_p=1 gentle=false",
    "w_q=0.5 min_th=2p max_th=6p",
    "w_q=1 min_th=2p max_th=4p gentle=false",
    "w_q=0.3 min_th=1p max_th=4p max_p=0.05",
    "w_q=0.1 min_th=1kB max_th=5kB mode=bytes gentle=false",
    "w_q=0.1 min_th=1kB max_th=5kB mode=bytes gentle=true",
    "w_q=0.9 min_th=6p max_th=18p max_p=0.02",
    "aqm=red w_q=0.5 min_th=1p max_th=2p",
    "bins=2 bin_size=1p increment=1 freeze_time=1ms nonresponsive_from=0.6",
    "bins=2 bin_size=1p increment=0.1 decrement=0.1",
    "bins=3 bin_size=2p w_q=0.7 max_p=0.5",
    "bins=3 bin_size=2p w_q=0.7 max_p=1 hash_interval=5ms",
    "bins=2 bin_size=2p increment=0.3 decrement=0.1 hash_interval=20ms",
    "target=1ms alpha=100 beta=100 max_burst=1ms",
    "target=1ms alpha=1 beta=10 max_burst=1ms",
    "target_rtt=5s k=1 least_drop_rate=1 min_th=1p max_th=4p w_q=0.5",
    "target_rtt=5s k=1 least_drop_rate=1 min_th=1p max_th=4p w_q=0.5 test_drops=1 test_increase=1.1",
    "interval=1ms w_q=0.9 min_th=6p max_th=18p",
    "dq_threshold=2000 target=1ms alpha=100 beta=100 max_burst=0s",
    "k=1ms k_alpha=20ms k_c=2ms threshold=20%",
];

fn values(p: &Param) -> Vec<String> {
    let more: &[&str] = match p.kind {
        Kind::Choice(words) => words,
        Kind::Flag => &["true", "false"],
        Kind::Duration => &["1ms", "10ms", "100ms", "3s"],
        Kind::Rate => &["100kbit", "8mbit"],
        Kind::Size => &["1p", "7p", "30%", "2kB"],
        Kind::Number => &["0.01", "0.3", "0.9", "2"],
        Kind::Integer => &["2", "7", "100"],
        Kind::DsField => &["0x1/0x3", "0xb8/0xfc"],
    };
    let ends = p.allowed.split_once(" … ").map_or(vec![], |(low, high)| vec![low, high]);
    let all = ends.iter().chain(more).map(ToString::to_string);
    all.filter(|value| *value != p.default).collect()
}

type Runs = [Option<Vec<Event>>; LOADS.len()];

fn plain(name: &str, base: &[(&str, &str)]) -> Runs {
    LOADS.map(|load| run(name, base, load, None))
}

/// Whether a parameter shows beside `base`, which gives `plain`; `None` where it is refused.
fn shows(name: &str, base: &[(&str, &str)], plain: &Runs, p: &Param) -> Option<bool> {
    let mut taken = None;
    for value in values(p) {
        let all = [base, &[(p.name, &value[..])]].concat();
        for (load, plain) in LOADS.iter().zip(plain) {
            let (Some(plain), Some(other)) = (plain, run(name, &all, *load, plain.as_deref()))
            else {
                continue;
            };
            if other != *plain {
                return Some(true);
            }
            taken = Some(false);
        }
    }
    taken
}

#[test]
fn no_parameter_is_accepted_and_then_does_nothing() {
    let mut idle = Vec::new();
    for entry in CATALOG.iter().filter(|entry| wanted(entry.name)) {
        let table = (entry.parameters)();
        let choices = table.iter().filter(|p| matches!(p.kind, Kind::Choice(_) | Kind::Flag));
        let words: Vec<(&str, String)> =
            choices.flat_map(|p| values(p).into_iter().map(|word| (p.name, word))).collect();
        let beside = words.iter().map(|(name, word)| vec![(*name, &word[..])]);
        for base in [vec![]].into_iter().chain(beside) {
            if canonical(entry.name, &base).is_err() {
                continue; // refused alone: shown beside what it needs
            }
            let runs = plain(entry.name, &base);
            for p in table.iter().filter(|p| base.iter().all(|(name, _)| *name != p.name)) {
                if shows(entry.name, &base, &runs, p) != Some(false) {
                    continue;
                }
                let revealed = REVEALING.iter().any(|settings| {
                    let more = settings.split(' ').filter_map(|pair| pair.split_once('='));
                    let own = |name: &str| name == p.name || base.iter().any(|(n, _)| *n == name);
                    let more: Vec<_> = more.filter(|(name, _)| !own(name)).collect();
                    let all = [&base[..], &more].concat();
                    shows(entry.name, &all, &plain(entry.name, &all), p) == Some(true)
                });
                if !revealed {
                    idle.push(format!("{} {base:?} {}", entry.name, p.name));
                }
            }
        }
    }
    assert!(idle.is_empty(), "without effect:\n{}", idle.join("\n"));
}
