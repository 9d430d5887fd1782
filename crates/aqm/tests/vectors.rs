//! The test vectors in `vectors/`: what each discipline decides about one story, with every random number
//! that it draws. `docs/embed.md` describes the files; `make vectors` writes them.

use std::fmt::Write as _;
use std::path::PathBuf;

use aqm::any::{BuildError, PRESET, canonical};
use aqm::{
    About, AnyQdisc, CATALOG, Cause, Cx, Duration, Ecn, Env, FlowKey, Instant, Label, Limit, Meta,
    Outlet, Qdisc, Rate, Rng,
};

use crate::{Numbered, To, wanted};

const SEED: u64 = 1;
const RATE: Rate = Rate::new(1_000_000).unwrap();

/// Packets that there is room for.
const BUFFER: u64 = 30;

/// A light load, an overload, a silence, a burst, and again a light load: packets, and the mean gap in
/// microseconds. A packet takes the link about 7500.
const PHASES: [(u32, u64); 5] = [(20, 12_000), (80, 4_300), (1, 600_000), (40, 100), (19, 11_000)];

/// Codepoints (CS0, CS1, EF, AF22) and ECN fields of the four flows; the first sends half of all packets.
const FLOWS: [(u8, Ecn); 4] =
    [(0, Ecn::NotEct), (8, Ecn::Ect0), (46, Ecn::Ect1), (20, Ecn::NotEct)];

/// A further case with each of these, where a discipline has them: weights and steps of the papers need more
/// packets than a story has, an average passes twice the highest threshold, and a pause takes many intervals.
const QUICK: [&[(&str, &str)]; 5] = [
    &[("w_q", "0.05")],
    &[("w_q", "0.2"), ("min_th", "2p"), ("max_th", "6p")],
    &[("increment", "0.2")],
    &[("gamma", "1")],
    &[("interval", "20ms")],
];

/// Disciplines that decide nothing before the buffer, or that of a flow, is full.
const OVERFLOW_ALONE: [&str; 6] = ["droptail", "random-drop", "drop-front", "sfq", "drr", "fq"];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// What arrives, when.
fn arrivals() -> Vec<(Instant, usize, u32)> {
    let mut rng = Rng::new(2026, 8);
    let mut at = Instant::ZERO;
    let mut arrivals = Vec::new();
    for (packets, gap) in PHASES {
        for _ in 0..packets {
            at += Duration::from_micros(gap / 2 + rng.below(gap as usize) as u64);
            let flow = [0, 0, 0, 1, 2, 3][rng.below(6)];
            let len = [1000, 1000, 1000, 1500, 200][rng.below(5)];
            arrivals.push((at, flow, len));
        }
    }
    arrivals
}

/// What is reported during a call.
#[derive(Default)]
struct Reports {
    drops: Vec<(u32, Cause)>,
    marks: Vec<(u32, Cause)>,
}

impl Outlet<Numbered> for Reports {
    fn dropped(&mut self, _: &Meta, packet: Numbered, cause: Cause, _: Instant) {
        self.drops.push((packet.id, cause));
    }
    fn marked(&mut self, _: &Meta, packet: &Numbered, cause: Cause, _: Instant) {
        self.marks.push((packet.id, cause));
    }
}

/// The words that were drawn since `before`, as a field of an object; nothing if there are none.
fn draws(mut before: Rng, now: &Rng) -> String {
    let mut words = Vec::new();
    while before != *now {
        words.push(format!("\"{:016x}\"", before.bits()));
    }
    if words.is_empty() { String::new() } else { format!(",\"draws\":[{}]", words.join(",")) }
}

fn signals(key: &str, all: &[(u32, Cause)]) -> String {
    let all: Vec<_> = all.iter().map(|(id, c)| format!("[{id},\"{}\"]", c.name())).collect();
    if all.is_empty() { String::new() } else { format!(",\"{key}\":[{}]", all.join(",")) }
}

/// A discipline on its way through the story.
struct Run {
    queue: AnyQdisc<Numbered>,
    rng: Rng,
    now: Instant,
    /// Objects of JSON.
    events: Vec<String>,
}

impl Run {
    /// Does `act` and writes down what came of it behind what `act` returns.
    fn event<T>(
        &mut self,
        act: impl FnOnce(&mut AnyQdisc<Numbered>, &mut Cx<'_>, &mut To<'_>) -> (String, T),
    ) -> T {
        let (before, mut reports) = (self.rng.clone(), Reports::default());
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        let (text, answer) = act(&mut self.queue, &mut cx, &mut To(&mut reports));
        let drawn = draws(before, &self.rng);
        let (drops, marks) = (signals("drop", &reports.drops), signals("mark", &reports.marks));
        let at = self.now.as_nanos();
        self.events.push(format!("{{\"t\":{at},{text}{drawn}{drops}{marks}}}"));
        answer
    }

    fn arrive(&mut self, id: u32, flow: usize, len: u32, labelled: bool) {
        let (dscp, ecn) = FLOWS[flow];
        let label = Label { dscp, host: flow as u16 % 2, peer: flow as u16 / 2 };
        let key = FlowKey::labelled(flow as u32, if labelled { label } else { Label::default() });
        let meta = Meta { flow: key, len, ecn, ..Meta::default() };
        let mut text = format!("\"in\":{id},\"flow\":{flow},\"len\":{len},\"ecn\":{}", ecn as u8);
        if labelled {
            let Label { dscp, host, peer } = label;
            let _ = write!(text, ",\"dscp\":{dscp},\"host\":{host},\"peer\":{peer}");
        }
        self.event(|queue, cx, out| (text, queue.enqueue(meta, Numbered::plain(id), cx, out)));
    }

    /// The length of what was sent.
    fn depart(&mut self) -> Option<u32> {
        self.event(|queue, cx, out| match queue.dequeue(cx, out) {
            Some((meta, packet)) => {
                (format!("\"out\":{},\"ecn\":{}", packet.id, meta.ecn as u8), Some(meta.len))
            }
            None => ("\"out\":null".into(), None),
        })
    }

    /// All arrivals, and departures as a link of [`RATE`] takes them, until nothing is left.
    fn story(&mut self, labelled: bool) {
        let arrivals = arrivals();
        let mut next = arrivals.iter().zip(0..).peekable();
        // When the link is free; none if it waits for an arrival.
        let mut free: Option<Instant> = None;
        loop {
            let arrival = next.peek().map(|((at, ..), _)| *at);
            let Some(call) = free.into_iter().chain(arrival).min() else { return };
            if let Some(due) = self.queue.poll_at().filter(|due| *due <= call) {
                self.now = due;
                self.event(|queue, cx, out| ("\"timer\":true".into(), queue.on_timer(cx, out)));
                continue;
            }
            self.now = call;
            if free != Some(call) {
                let Some((&(_, flow, len), id)) = next.next() else { return };
                self.arrive(id, flow, len, labelled);
                if free.is_some() {
                    continue;
                }
            }
            free = self.depart().map(|len| call + RATE.transmission(len.into()));
        }
    }
}

fn build(
    name: &str,
    settings: &[(&str, &str)],
    rng: &mut Rng,
) -> Result<AnyQdisc<Numbered>, BuildError> {
    let env = Env::new(Limit::packets(BUFFER).expect("a buffer"), RATE);
    AnyQdisc::build(name, settings, &env, rng)
}

/// The story with one discipline, as an object of JSON, and how many signals are no overflows.
fn case(about: &About, settings: &[(&str, &str)]) -> (String, u64) {
    let name = about.name;
    let mut rng = Rng::new(SEED, 0);
    let queue = build(name, settings, &mut rng)
        .unwrap_or_else(|error| panic!("{name} {settings:?}: {error:?}"));
    let start = draws(Rng::new(SEED, 0), &rng);
    let mut run = Run { queue, rng, now: Instant::ZERO, events: Vec::new() };
    let given = |name: &str| {
        settings.iter().find(|(key, _)| *key == name).map(|(_, text)| text.to_string())
    };
    run.story(about.reads_labels(given));
    let counters = run.queue.counters();
    let all = counters.all_dropped().packets + counters.all_marked().packets;
    assert!(all > 0, "{name} {settings:?}: a vector without a signal tests nothing");
    let parameters: Vec<_> = canonical(name, settings)
        .expect("it was built")
        .iter()
        .map(|(key, text)| format!("\"{key}\":\"{text}\""))
        .collect();
    let preset = settings.iter().find(|(key, _)| *key == PRESET);
    let text = format!(
        "{{\"discipline\":\"{name}\",\"preset\":{},\n\"parameters\":{{{}}},\n\
         \"link\":{{\"rate\":\"{RATE}\",\"buffer\":\"{BUFFER}p\",\"mean_packet\":1000}},\n\
         \"seed\":{SEED}{start},\n\"events\":[\n{}\n]}}",
        preset.map_or("null".into(), |(_, preset)| format!("\"{preset}\"")),
        parameters.join(","),
        run.events.join(",\n"),
    );
    (text, all - counters.dropped[Cause::Overflow as usize].packets)
}

#[test]
fn every_discipline_decides_as_its_vectors_say() {
    let update = std::env::var_os("BLUEWATER_UPDATE_VECTORS").is_some();
    for about in CATALOG.iter().filter(|about| wanted(about.name)) {
        let quick = QUICK
            .into_iter()
            .filter(|settings| build(about.name, settings, &mut Rng::new(SEED, 0)).is_ok());
        let presets = about.presets.iter().map(|(name, _)| vec![(PRESET, *name)]);
        let (cases, early): (Vec<_>, Vec<_>) = [vec![]]
            .into_iter()
            .chain(presets)
            .chain(quick.map(<[_]>::to_vec))
            .map(|settings| case(about, &settings))
            .unzip();
        let overflow_alone = OVERFLOW_ALONE.contains(&about.name);
        assert_eq!(early.iter().all(|n| *n == 0), overflow_alone, "{}: signals", about.name);
        let text = format!("[\n{}\n]\n", cases.join(",\n"));
        let file = folder().join(about.name).with_extension("json");
        if update {
            std::fs::write(&file, &text).expect("the folder can be written");
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        let line = text.lines().zip(kept.lines()).position(|(a, b)| a != b);
        assert!(
            text == kept,
            "{} differs from line {:?} on; if that is meant: make vectors",
            file.display(),
            line.map_or(kept.lines().count(), |line| line + 1),
        );
    }
}

#[test]
fn each_file_of_vectors_has_its_discipline() {
    let names = std::fs::read_dir(folder()).expect("the folder").flatten();
    for path in
        names.map(|entry| entry.path()).filter(|path| path.extension() == Some("json".as_ref()))
    {
        let name = path.file_stem().unwrap_or_default();
        assert!(CATALOG.iter().any(|about| about.name == name), "{}", path.display());
    }
}
