//! The naive models of BLUE and SFB, driven by what arrives in the experiments of their paper: each
//! decision, each time of departure, each coin and each signal is that of the simulator.
//!
//! A journal gives the arrivals (time, flow, length, ECN field). From them alone a model of its own link
//! and a queue that is counted anew each time say what becomes of every packet.

use aqm::{Cause, Duration, Rng};
use sim::results::journal::Selection;
use sim::results::table::{Column, Table};
use sim::{Run, Scenario};

use models::blue::{self, Blue};
use models::sfb::{self, Rule, Sfb};
use models::{Event, Model, Naive, Packet, Room};

#[path = "../../aqm/tests/oracle/naive/mod.rs"]
#[expect(dead_code, reason = "other models need more of it")]
mod models;

/// Of the paper's bottleneck, bit/s.
const RATE: u64 = 45_000_000;
const SEED: u64 = 3;

/// The network and the traffic of an experiment with another queue, for some seconds.
fn scenario(experiment: &str, seconds: u32, queue: &str) -> String {
    let text = &experiment[experiment.find("\n[network]").unwrap()..];
    let text = &text[..text.find("\n[sweep").unwrap()];
    let (network, rest) = text.split_once("[[queue]]").unwrap();
    let traffic = &rest[rest.find("[[traffic]]").unwrap()..];
    format!("duration = \"{seconds}s\"\nseed = {SEED}\n{network}\n[[queue]]\n{queue}\n{traffic}")
}

/// All rows of the journal of the scenario's one queue.
fn journal(text: &str) -> Vec<Table> {
    let mut run = Scenario::from_toml(text, "naive")
        .and_then(|scenario| Run::new(scenario, text, "naive"))
        .unwrap_or_else(|e| panic!("{e}"));
    run.keep_journal(&Selection::default());
    let mut tables = Vec::new();
    while run.advance(Duration::from_secs(1)) {
        tables.extend(run.drain_journal().into_iter().map(|(_, table)| table));
    }
    tables.extend(run.drain_journal().into_iter().map(|(_, table)| table));
    tables
}

/// What the journal says of a packet.
struct Row {
    n: u32,
    now: u64,
    flow: u64,
    len: u32,
    ect: bool,
    /// The number that was drawn for it, and how many were.
    coin: Option<f64>,
    coins: u64,
    marked: bool,
    dropped: String,
    left: Option<f64>,
    /// The first signals after its arrival.
    signals: Vec<f64>,
}

fn rows(table: &Table) -> Vec<Row> {
    let column = |name: &str| table.columns().find(|(n, _)| *n == name).unwrap().1;
    let count = |name, i| match column(name) {
        Column::Count(all) => all[i],
        _ => panic!("{name} does not count"),
    };
    let real = |name, i| match column(name) {
        Column::Real(all) => all[i],
        _ => panic!("{name} is a number"),
    };
    let text = |name, i| match column(name) {
        Column::Text(all) => &all[i],
        _ => panic!("{name} is text"),
    };
    let then: Vec<&str> =
        table.columns().map(|(name, _)| name).filter(|name| name.starts_with("then_")).collect();
    let Column::Count(numbers) = column("n") else { panic!("n counts") };
    let row = |i: usize| Row {
        n: numbers[i] as u32,
        now: count("arrived_ns", i),
        flow: count("flow", i),
        len: count("bytes", i) as u32,
        ect: text("ecn", i) != "not-ect",
        coin: real("coin", i),
        coins: count("coins", i),
        marked: !text("marked", i).is_empty(),
        dropped: text("dropped", i).clone(),
        left: real("left_ns", i),
        signals: then.iter().map(|name| real(name, i).unwrap()).collect(),
    };
    (0..numbers.len()).map(row).collect()
}

/// A link that is asked for the next packet whenever one has been sent.
struct Link<M> {
    queue: Naive<M>,
    rng: Rng,
    /// When what is being sent is through, ns.
    busy_until: Option<u64>,
    /// Of a ns, in 1/[`RATE`]: what times in whole ns have left over.
    rest: u64,
    sent: Vec<(u32, u64)>,
}

impl<M: Model> Link<M> {
    /// Sends all that leaves up to `now`.
    fn serve(&mut self, now: u64, lengths: &[u32]) {
        while let Some(at) = self.busy_until.filter(|at| *at <= now) {
            self.queue.depart(at, &mut self.rng);
            self.busy_until = match self.queue.events.drain(..).collect::<Vec<_>>()[..] {
                [Event::Sent(id, _)] => {
                    self.rest += u64::from(lengths[id as usize]) * 8_000_000_000;
                    let time = self.rest / RATE;
                    self.rest %= RATE;
                    self.sent.push((id, at));
                    Some(at + time)
                }
                [Event::Idle] => None,
                ref other => panic!("a departure is {other:?}"),
            };
        }
    }
}

/// Runs the scenario and the model, with room for `room` bytes, and compares them. Returns how many packets
/// there were, how many were marked, and how many were dropped for each cause.
fn compare<M: Model>(text: &str, room: u64, model: M) -> Counts {
    let rows: Vec<Row> = journal(text).iter().flat_map(rows).collect();
    let lengths: Vec<u32> = rows.iter().map(|row| row.len).collect();
    // The stream of the queue of the first link.
    let mut rng = Rng::new(SEED, 1 << 56);
    let mut queue = Naive { model, room: Room::Bytes(room), q: Vec::new(), events: Vec::new() };
    queue.model.start(&mut rng);
    let mut link = Link { queue, rng, busy_until: None, rest: 0, sent: Vec::new() };
    for row in &rows {
        link.serve(row.now, &lengths);
        arrive(&mut link, row);
    }
    assert!(link.sent.len() > rows.len() / 4);
    for (id, at) in link.sent {
        assert_eq!(rows[id as usize].left, Some(at as f64), "packet {id}");
    }
    let dropped = |cause| rows.iter().filter(|row| row.dropped == cause).count();
    Counts {
        packets: rows.len(),
        marked: rows.iter().filter(|row| row.marked).count(),
        overflow: dropped("overflow"),
        penalty: dropped("penalty"),
    }
}

#[derive(Debug)]
struct Counts {
    packets: usize,
    marked: usize,
    overflow: usize,
    penalty: usize,
}

/// A packet arrives at the model: what it does is what the row says.
fn arrive<M: Model>(link: &mut Link<M>, row: &Row) {
    let Row { n: id, now, flow, len, ect, .. } = *row;
    let packet = Packet { id, flow, len, ect, l4s: false, marked: false, arrived: now };
    let (state, mut coins) = (link.rng.listen(), Vec::new());
    link.queue.arrive(now, packet, &mut link.rng);
    link.rng.heard_since(state, &mut coins);
    let marked = row.marked.then_some(Event::Marked(id));
    let dropped = cause(&row.dropped).map(|cause| Event::Dropped(id, cause));
    let expected: Vec<Event> = marked.into_iter().chain(dropped).collect();
    assert_eq!(std::mem::take(&mut link.queue.events), expected, "packet {id}");
    assert_eq!(coins.len() as u64, row.coins, "packet {id}");
    if row.coin.is_some() {
        assert_eq!(coins.last().map(|coin| coin.drawn), row.coin, "packet {id}");
    }
    let signals = link.queue.model.signals(now);
    // Behind the signals is what is known of the packet's flow.
    assert!(signals.len() <= row.signals.len());
    for (model, simulator) in signals.iter().zip(&row.signals) {
        let close = (model - simulator).abs() <= 1e-9 * model.max(1.0);
        assert!(close, "packet {id}: {model}, in the simulator {simulator}");
    }
    if link.busy_until.is_none() && !link.queue.q.is_empty() {
        link.busy_until = Some(now);
    }
}

fn cause(name: &str) -> Option<Cause> {
    [Cause::Overflow, Cause::Early, Cause::Penalty].into_iter().find(|cause| cause.name() == name)
}

const FIG5: &str = include_str!("../../../python/bluewater/experiments/feng/fig5.toml");
const FIG16: &str = include_str!("../../../python/bluewater/experiments/feng/fig16.toml");

#[test]
fn blue_decides_as_its_model_in_fig_5() {
    // B3 and B1 of Table II.
    for (sources, increment, decrement) in [("1000", 0.02, 0.002), ("4000", 0.0025, 0.00025)] {
        let queue = format!(
            "aqm = \"blue\"\nbuffer = \"100kB\"\n\
             params = {{ freeze_time = \"10ms\", increment = {increment}, decrement = {decrement} }}"
        );
        let model = Blue::new(blue::Settings {
            initial: 0.0,
            freeze_time: 10_000_000,
            up: increment,
            down: decrement,
            threshold: None,
            ecn: true,
            front: false,
            at_head: false,
            bytes: false,
            continuous: false,
            jitter: 0.0,
            update: "additive",
            grow: 1.0,
            shrink: 1.0,
            auto: false,
            weight: 0.0,
            legacy: false,
            in_class: false,
        });
        let text = scenario(FIG5, 25, &queue);
        assert!(text.contains("flows = 1000\n"));
        let text = text.replace("flows = 1000\n", &format!("flows = {sources}\n"));
        let done = compare(&text, 100_000, model);
        assert!(done.packets > 100_000 && done.marked > 10_000 && done.overflow > 100, "{done:?}");
    }
}

/// §IV.B's: two levels of 23 bins of 13 packets.
fn bins() -> sfb::Settings {
    sfb::Settings {
        levels: 2,
        bins: 23,
        size: 13,
        limit: None,
        all: false,
        bytes: false,
        ecn: true,
        mark_up_to: 1.0,
        distinct: false,
        hash: "static",
        interval: 2_000_000_000,
        warm_up: None,
        by_length: false,
        kept: false,
        full_teaches: true,
        penalty: "rate",
        rate: 160_000,
        burst: 0,
        boxtime: 0,
        jitter: 0.0,
        share_interval: 1_000_000_000,
        rule: Rule::Blue { up: 0.005, down: 0.001, freeze: 0, penalty_raises: false, from: 1.0 },
    }
}

#[test]
fn sfb_decides_as_its_model_in_fig_16() {
    let queue = "aqm = \"sfb\"\nbuffer = \"200kB\"\nparams = { preset = \"feng\" }";
    let done = compare(&scenario(FIG16, 20, queue), 200_000, Sfb::new(bins()));
    assert!(done.packets > 100_000 && done.marked > 10_000 && done.penalty > 10_000, "{done:?}");
}

#[test]
fn sfb_decides_as_its_model_where_losses_teach() {
    let queue = "aqm = \"sfb\"\nbuffer = \"200kB\"\nparams = { preset = \"feng-boxtime\", \
         increment = 0.05, decrement = 0.0005, penalty_raises = true, nonresponsive_from = 0.999, \
         hash = \"double-buffered\" }";
    let rule = Rule::Blue { up: 0.05, down: 0.0005, freeze: 0, penalty_raises: true, from: 0.999 };
    let model = Sfb::new(sfb::Settings {
        penalty: "boxtime",
        boxtime: 50_000_000,
        hash: "double-buffered",
        rule,
        ..bins()
    });
    let done = compare(&scenario(FIG16, 20, queue), 200_000, model);
    assert!(done.packets > 100_000 && done.marked > 10_000 && done.penalty > 10_000, "{done:?}");
}
