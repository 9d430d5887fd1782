//! Controllers that are brought along: they decide as a control of ours does, and are told the truth.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Once};

use aqm::Qdisc as _;
use sim::control::{
    Ack, Congestion, Controller, Held, Kind, LARGEST_WINDOW, Lost, NEVER, Out, Rng, Sent, Start,
    Undo, register,
};
use sim::{Run, Scenario, ScenarioError};

#[path = "../examples/controller.rs"]
#[expect(dead_code, reason = "the example's own run")]
mod example;

use example::Reno;

const MTU: u64 = 1500;

/// Asks for one window, whatever happens.
#[derive(Clone)]
struct Fixed(Out);

impl Controller for Fixed {
    fn on_congestion(&mut self, _: &Congestion) {}

    fn on_ack(&mut self, _: &Ack) {}

    fn out(&self) -> Out {
        self.0
    }
}

fn boxed(controller: impl Controller + 'static) -> Box<dyn Controller> {
    Box::new(controller)
}

static ONCE: Once = Once::new();

/// Registers what the tests name.
fn ready() {
    ONCE.call_once(|| {
        register("reno", |start: &Start, _: Rng| boxed(Reno::new(start)));
        for (name, cwnd) in [("nan", f64::NAN), ("negative", -1.0), ("endless", f64::INFINITY)] {
            register(name, move |_: &Start, _: Rng| boxed(Fixed(Out { cwnd, ..Out::default() })));
        }
        register("mad", |_: &Start, _: Rng| {
            let out = Out { cwnd: 1e5, ssthresh: f64::NAN, pacing: f64::NAN, ..Out::default() };
            boxed(Fixed(Out { burst: -3.0, timer: 1, ..out }))
        });
        register("slow", |start: &Start, _: Rng| {
            let rate = 10.0 * start.mtu as f64;
            let out = Out { cwnd: 1e6, pacing: rate, ..Out::default() };
            boxed(Fixed(out))
        });
        register("two", |start: &Start, _: Rng| {
            boxed(Fixed(Out { cwnd: 2.0 * start.mtu as f64, ..Out::default() }))
        });
        register("creeping", |_: &Start, _: Rng| {
            boxed(Fixed(Out { cwnd: 1e5, pacing: 1e-9, burst: 1e12, ..Out::default() }))
        });
        register("told", |start: &Start, rng: Rng| boxed(Told::new(start, rng)));
        register("kept", |start: &Start, _: Rng| boxed(Kept(Reno::new(start), false)));
        register("clock", |start: &Start, _: Rng| boxed(Clock(start.now)));
    });
}

fn run(transport: &str, keys: &str, link: &str, more: &str) -> Result<Run, ScenarioError> {
    ready();
    let text = format!(
        "duration = \"20s\"\n{more}\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"4mbit\"\n\
         delay = \"15ms\"\n{link}\n[[queue]]\nlink = \"a->b\"\naqm = \"droptail\"\nbuffer = \"20p\"\n\
         [[traffic]]\nfrom = [\"a\"]\nto = [\"b\"]\npacket = \"{MTU}B\"\n\
         transport = \"{transport}\"\n{keys}\n"
    );
    Run::new(Scenario::from_toml(&text, "x")?, &text, "x")
}

fn hash(transport: &str, keys: &str, link: &str) -> String {
    run(transport, keys, link, "").unwrap().finish().decision_hash
}

/// Groups of traffic and links in which a Reno that is brought along decides as `sack` with `rfc9002` does.
const ALIKE: &[(&str, &str)] = &[
    ("flows = 3", ""),
    ("flows = 5\nstart = \"0s..2s\"", ""),
    ("flows = 2\ninitial_window = 10\nhandshake = true", ""),
    ("flows = 2\ndelayed_ack = \"40ms\"\nquick_acks = true", ""),
    ("flows = 2\npacing = true", ""),
    ("flows = 2\npacing = true\nhandshake = true\ndelayed_ack = \"40ms\"\ninitial_window = 10", ""),
    ("flows = 3\ntimestamps = true", "loss = \"3%\""),
    ("flows = 1\ntimestamps = true", "loss = \"10%\""),
    ("flows = 2\ntimestamps = true", "jitter = \"20ms\"\nreorder = true"),
    ("flows = 2", "jitter = \"20ms\"\nreorder = true\nloss = \"1%\""),
    (
        "flows = 1\ntimestamps = true",
        "rate_trace = { steps = [[\"0s\", \"4mbit\"], [\"4s\", \"0bit\"], [\"9s\", \"4mbit\"]], repeat = false }",
    ),
    ("flows = 20\napp = \"finite\"\nsize = \"60kB\"\nstart = \"0s..10s\"", "loss = \"2%\""),
    (
        "flows = 2\napp = \"exponential\"\non = \"300ms\"\noff = \"500ms\"\nrate = \"3mbit\"",
        "loss = \"1%\"",
    ),
    ("flows = 3\napp = \"web\"\nsize = \"20p\"\noff = \"300ms\"\nobjects = 4", ""),
];

#[test]
fn reno_decides_as_ours() {
    for (keys, link) in ALIKE {
        // Its window survives pauses.
        let pauses = if keys.contains("exponential") { "restart_after_idle = false\n" } else { "" };
        let ours = format!("{keys}\nrack = true\ncount_packets = true\nrfc9002 = true\n{pauses}");
        assert_eq!(hash("rust:reno", keys, link), hash("sack", &ours, link), "{keys}\n{link}");
    }
}

#[test]
fn reno_answers_marks_as_ours() {
    for keys in ["flows = 2\necn = true", "flows = 9\necn = true\npacing = true"] {
        let with = |transport: &str, more: &str| {
            let text = format!(
                "duration = \"20s\"\n[network]\npreset = \"dumbbell\"\nrate = \"5mbit\"\n\
                 [[queue]]\naqm = \"red\"\nbuffer = \"50p\"\n\
                 [[traffic]]\ntransport = \"{transport}\"\n{keys}\n{more}\n"
            );
            ready();
            let run = Run::new(Scenario::from_toml(&text, "x").unwrap(), &text, "x").unwrap();
            run.finish().decision_hash
        };
        let ours = with("sack", "rack = true\ncount_packets = true\nrfc9002 = true");
        assert_eq!(with("rust:reno", ""), ours, "{keys}");
    }
}

/// The windows that no number can be: the least one, and the largest.
#[test]
fn a_window_that_is_none_is_held_in_bounds() {
    let most = |name: &str, keys: &str| {
        let mut run = run(&format!("rust:{name}"), keys, "", "").unwrap();
        let mut most = 0.0_f64;
        while run.advance(aqm::Duration::from_millis(50)) {
            most = most.max(run.simulation().window(0).unwrap());
        }
        most
    };
    for name in ["nan", "negative"] {
        assert_eq!(most(name, "initial_window = 1"), 1.0);
        assert_eq!(most(name, "initial_window = 1\nmin_window = 3"), 3.0);
    }
    assert!(most("endless", "") <= LARGEST_WINDOW / MTU as f64);
    assert!(most("mad", "") > 60.0);
}

/// Each field that is held in bounds is counted, by flow, with its first time.
#[test]
fn what_is_held_in_bounds_is_counted() {
    let held =
        |name: &str, keys: &str| run(&format!("rust:{name}"), keys, "", "").unwrap().finish().held;
    let fields = |name: &str| held(name, "").iter().map(|held| held.field).collect::<Vec<_>>();
    for name in ["nan", "negative", "endless"] {
        assert_eq!(fields(name), ["cwnd"]);
    }
    assert_eq!(fields("creeping"), ["burst", "pacing"]);
    for name in ["reno", "slow", "two"] {
        assert_eq!(held(name, "flows = 3"), []);
    }
    let twice = held("mad", "flows = 2\nstart = \"3s\"");
    let first = 3_000_000_000;
    let of = |flow, field| twice.iter().find(|held| (held.flow, held.field) == (flow, field));
    assert_eq!(of(1, "timer"), Some(&Held { flow: 1, field: "timer", calls: 1, first }));
    for field in ["ssthresh", "pacing", "burst"] {
        let held = of(0, field).unwrap();
        assert!(held.first == first && held.calls > 100, "{held:?}");
    }
    assert_eq!(twice.len(), 8);
    // Two packets are below a least window of three.
    assert_eq!(held("two", "min_window = 3")[0].field, "cwnd");
}

/// Ten packets a second, whatever the window.
#[test]
fn a_rate_spaces_packets() {
    let run = run("rust:slow", "", "", "").unwrap();
    let outcome = run.finish();
    let (_, column) = outcome.queues.columns().find(|(name, _)| *name == "arrivals").unwrap();
    let sim::results::table::Column::Count(arrivals) = column else { panic!() };
    assert!((195..=205).contains(&arrivals[0]), "{arrivals:?}");
}

/// Wakes every 100 ms, and notes when.
#[derive(Clone)]
struct Clock(u64);

static TICKS: Mutex<Vec<u64>> = Mutex::new(Vec::new());

impl Controller for Clock {
    fn on_congestion(&mut self, _: &Congestion) {}

    fn on_ack(&mut self, _: &Ack) {}

    fn on_timer(&mut self, now: u64) {
        TICKS.lock().unwrap().push(now);
        self.0 = now;
    }

    fn out(&self) -> Out {
        Out { cwnd: 3000.0, timer: self.0 + 100_000_000, ..Out::default() }
    }
}

#[test]
fn a_timer_comes_when_it_is_due() {
    run("rust:clock", "start = \"5ms\"", "", "").unwrap().finish();
    let ticks = TICKS.lock().unwrap().clone();
    let due: Vec<u64> = (1..200).map(|n| 5_000_000 + n * 100_000_000).collect();
    assert_eq!(ticks, due);
}

/// Keeps books over what it is told, packet by packet, and checks each number against them.
#[derive(Clone)]
struct Told {
    reno: Reno,
    books: Arc<Mutex<Books>>,
    rng: Rng,
}

#[derive(Default)]
struct Books {
    /// Of each packet that is under way: its tag, when it was sent, whether it is lost.
    flight: HashMap<u64, (u64, u64, bool)>,
    delivered: u64,
    acked: u64,
    in_episode: bool,
    timed_out: bool,
    calls: [u32; 6],
}

static BOOKS: Mutex<Option<Arc<Mutex<Books>>>> = Mutex::new(None);

impl Told {
    fn new(start: &Start, rng: Rng) -> Self {
        let books = Arc::new(Mutex::new(Books::default()));
        *BOOKS.lock().unwrap() = Some(Arc::clone(&books));
        Self { reno: Reno::new(start), books, rng }
    }
}

impl Controller for Told {
    fn on_send(&mut self, sent: &Sent) -> u64 {
        let mut books = self.books.lock().unwrap();
        let tag = self.rng.bits();
        let before = books.flight.insert(sent.number, (tag, sent.now, false));
        assert_eq!(sent.retransmission, before.is_some());
        assert_eq!(sent.bytes, MTU);
        books.calls[0] += 1;
        tag
    }

    fn on_lost(&mut self, lost: &Lost) {
        let mut books = self.books.lock().unwrap();
        let packet = books.flight.get_mut(&lost.number).expect("it is under way");
        assert_eq!(packet.0, lost.tag);
        assert!(lost.sent_at < lost.now && packet.1 <= lost.sent_at);
        assert!(!std::mem::replace(&mut packet.2, true), "told once for each sending");
        books.calls[1] += 1;
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        {
            let mut books = self.books.lock().unwrap();
            assert!(congestion.new_episode || congestion.kind >= Kind::Timeout);
            let timeout = congestion.kind >= Kind::Timeout;
            // A loss that is found behind a timeout begins another.
            let behind = std::mem::replace(&mut books.timed_out, timeout);
            assert!(!books.in_episode || timeout || behind, "once an episode");
            assert_eq!(congestion.lost % MTU, 0);
            books.in_episode = true;
            books.calls[2] += 1;
            books.calls[3] += u32::from(congestion.kind == Kind::Persistent);
        }
        self.reno.on_congestion(congestion);
    }

    fn on_recovered(&mut self, _: u64) {
        let mut books = self.books.lock().unwrap();
        assert!(std::mem::replace(&mut books.in_episode, false));
        books.calls[4] += 1;
    }

    fn on_undo(&mut self, undo: &Undo) {
        {
            let mut books = self.books.lock().unwrap();
            assert!(std::mem::replace(&mut books.in_episode, false));
            books.calls[5] += 1;
        }
        self.reno.on_undo(undo);
    }

    fn on_ack(&mut self, ack: &Ack) {
        {
            let mut books = self.books.lock().unwrap();
            let (tag, sent_at, _) = books.flight[&ack.largest];
            assert_eq!(tag, ack.tag);
            assert!(sent_at <= ack.sent_at && ack.sent_at < ack.now);
            assert!(ack.acked > 0 && ack.acked.is_multiple_of(MTU));
            books.acked += ack.acked;
            assert!(ack.delivered >= books.delivered && ack.delivered == books.acked);
            books.delivered = ack.delivered;
            assert!(ack.prior_delivered < ack.delivered);
            let of_sample = ack.rate * ack.interval as f64 / 1e9;
            let came = (ack.delivered - ack.prior_delivered) as f64;
            assert!(ack.interval == 0 || (of_sample - came).abs() < 1e-3, "{ack:?}");
            assert!(ack.rtt == 0 || ack.rtt >= 30_000_000);
            assert!(ack.min_rtt >= 30_000_000);
        }
        self.reno.on_ack(ack);
    }

    fn out(&self) -> Out {
        self.reno.out()
    }
}

#[test]
fn what_it_is_told_agrees_with_itself() {
    let outage = "rate_trace = { steps = [[\"0s\", \"4mbit\"], [\"4s\", \"0bit\"], \
                  [\"9s\", \"4mbit\"]], repeat = false }";
    for (keys, link, seen) in [
        ("", "", vec![0, 1, 2, 4]),
        ("timestamps = true", "loss = \"5%\"", vec![0, 1, 2, 4]),
        ("timestamps = true", "jitter = \"20ms\"\nreorder = true", vec![0, 1, 2, 4, 5]),
        ("", outage, vec![0, 1, 2, 3, 4]),
    ] {
        run("rust:told", keys, link, "").unwrap().finish();
        let books = BOOKS.lock().unwrap().take().unwrap();
        let calls = books.lock().unwrap().calls;
        for kind in seen {
            assert!(calls[kind] > 0, "{keys} {link}: {calls:?}");
        }
    }
}

/// Packets that the sender reports as marked, episodes that marks begin, losses without an episode of their own, and
/// pauses.
static KEPT: Mutex<[u64; 4]> = Mutex::new([0; 4]);

/// Counts what it is told, and whether its episode began with a mark.
#[derive(Clone)]
struct Kept(Reno, bool);

impl Controller for Kept {
    fn on_restart(&mut self, _: u64) {
        KEPT.lock().unwrap()[3] += 1;
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let mut kept = KEPT.lock().unwrap();
        match congestion.kind {
            Kind::Ecn => {
                assert_eq!(congestion.lost, 0, "losses are not hidden behind a mark");
                kept[1] += 1;
            }
            Kind::Loss if !congestion.new_episode => {
                assert!(self.1, "it is of an episode that a mark began");
                kept[2] += 1;
            }
            _ => {}
        }
        if congestion.new_episode {
            self.1 = congestion.kind == Kind::Ecn;
        }
        drop(kept);
        self.0.on_congestion(congestion);
    }

    fn on_ack(&mut self, ack: &Ack) {
        KEPT.lock().unwrap()[0] += ack.ce_packets;
        self.0.on_ack(ack);
    }

    fn out(&self) -> Out {
        self.0.out()
    }
}

#[test]
fn marks_losses_and_pauses_are_told_as_they_are() {
    let kept = |keys: &str, link: &str| {
        *KEPT.lock().unwrap() = [0; 4];
        let queue = "aqm = \"codel\"\nbuffer = \"100p\"";
        ready();
        let text = format!(
            "duration = \"20s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"4mbit\"\n\
             delay = \"15ms\"\n{link}\n[[queue]]\nlink = \"a->b\"\n{queue}\n\
             [[traffic]]\nfrom = [\"a\"]\nto = [\"b\"]\npacket = \"{MTU}B\"\necn = true\n\
             transport = \"rust:kept\"\n{keys}\n"
        );
        let mut run = Run::new(Scenario::from_toml(&text, "x").unwrap(), &text, "x").unwrap();
        while run.advance(aqm::Duration::MAX) {}
        let marks = run.primary().unwrap().queue().counters().all_marked().packets;
        run.finish();
        (marks, *KEPT.lock().unwrap())
    };
    let (marks, [told, episodes, _, pauses]) = kept("", "");
    assert!(marks > 20 && told == episodes && told <= marks, "{told} in {episodes} of {marks}");
    assert_eq!(pauses, 0, "an endless flow is never idle");
    let (marks, [told, episodes, ..]) = kept("accecn = true", "");
    assert!(marks.abs_diff(told) <= 1 && episodes <= told, "{told} in {episodes} of {marks}");
    let (_, [.., within, _]) = kept("", "loss = \"2%\"");
    assert!(within > 0, "losses in an episode that a mark began");
    let outage =
        "rate_trace = { steps = [[\"0s\", \"0bit\"], [\"3s\", \"4mbit\"]], repeat = false }";
    assert_eq!(kept("", outage).1[3], 0, "a packet that is sent again is no pause");
    let (_, [.., pauses]) = kept("app = \"pareto\"\nshape = 100\non = \"1s\"\noff = \"1s\"", "");
    assert!((5..=12).contains(&pauses), "{pauses} pauses");
}

#[test]
fn a_name_that_nobody_registered_is_refused() {
    let said = |name: &str, keys: &str| run(name, keys, "", "").err().unwrap().to_string();
    assert!(said("rust:renoo", "").contains("did you mean `reno`?"));
    assert!(said("rust:reno", "params = { beta = 0.5 }").contains("traffic[0].params.beta"));
    assert!(said("rust:reno", "code = \"x\"").contains("traffic[0].code"));
    assert!(said("python:reno.py:Reno", "").contains("traffic[0].transport"));
    assert!(said("python:reno.py", "").contains("python:FILE:CLASS"));
    assert!(said("sack", "params = { beta = 0.5 }").contains("traffic[0].params"));
    assert!(said("rust:reno", "count_packets = true").contains("count_packets"));
    assert!(said("sack", "rfc9002 = true").contains("traffic[0].rfc9002"));
}

/// Web sessions open connections one after another over a flow, each with a controller of its own.
#[test]
fn each_connection_has_its_own() {
    let keys = "app = \"web\"\nsize = \"4p\"\noff = \"100ms\"\nobjects = 3\nflows = 2";
    assert_eq!(hash("rust:reno", keys, ""), hash("rust:reno", keys, ""));
    assert_eq!(NEVER, u64::MAX);
}
