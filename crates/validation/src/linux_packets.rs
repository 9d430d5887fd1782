//! Packet by packet against Linux's queue disciplines, recorded under virtual time by
//! `reference/linux_packets.py`: `linux_packets.csv` those of 6.1, `linux_packets_72.csv` CAKE of 7.2,
//! `linux_drawn.csv` those of 7.2 that draw.
//!
//! The same schedule of datagrams, which its seed gives, comes to our discipline before a transmitter of
//! the same rate. It has to do the same with every packet; what draws, draws what the kernel's drew, and
//! its timer runs when the kernel's did.

use std::collections::BTreeMap;

use aqm::{
    AnyQdisc, Cause, Cx, Ecn, Env, FlowKey, Instant, Label, Limit, Meta, Outlet, Qdisc, Rate, Rng,
};

use crate::rows::Row;

const ROWS: &str = include_str!("../reference/linux_packets.csv");
const ROWS_72: &str = include_str!("../reference/linux_packets_72.csv");
const DRAWN: &str = include_str!("../reference/linux_drawn.csv");
/// Lengths on the wire, of which a packet has one.
const LENGTHS: [u64; 5] = [1504, 1504, 992, 288, 96];

/// All packets come at multiples of this, ns: the time of 32 bytes.
const GRID: u64 = 25_600;

/// When the schedule begins, ns.
const START: u64 = 1 << 30;
/// What the class saves while it idles: the time of its burst of forty bytes, ns. So a packet never comes
/// when one leaves, unless the class idles.
const CREDIT: u64 = 32_000;

/// The longest packet of an interface, by which the kernel's disciplines reckon.
const LONGEST: u32 = 1514;

/// A time as the kernel's CoDel knows it, in units of 1024 ns.
fn tick(ns: u64) -> Instant {
    Instant::from_nanos(ns >> 10 << 10)
}

/// What the kernel's program draws from (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % below
    }
}

/// When a packet comes, and what it is.
struct Coming {
    at: u64,
    flow: u64,
    len: u64,
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

/// The schedule of a row.
fn schedule(row: &Row) -> Vec<Coming> {
    let mut draw = Draw(number(row.text("seed")));
    let flows = row.text("flows").split(' ').count() as u64;
    let (mut packets, mut at, mut end) = (Vec::new(), 0, 0);
    for phase in row.text("phases").split(' ') {
        let (ms, load) = phase.split_once(':').unwrap_or_default();
        end += number(ms) * 1_000_000;
        while at < end {
            let flow = draw.next(flows);
            let len = LENGTHS[draw.next(LENGTHS.len() as u64) as usize];
            packets.push(Coming { at, flow, len });
            let gap = len * 800_000 / (number(row.text("rate_mbps")) * number(load));
            at += ((gap / 2 + draw.next(gap)) / GRID).max(1) * GRID;
        }
    }
    packets
}

/// What became of each packet.
struct Fates {
    fates: Vec<u8>,
    /// The packets that left, and when, in ns.
    left: Vec<(usize, u64)>,
}

impl Outlet<usize> for Fates {
    fn dropped(&mut self, _: &Meta, packet: usize, _: Cause, _: Instant) {
        self.fates[packet] = b'd';
    }
    fn marked(&mut self, _: &Meta, packet: &usize, _: Cause, _: Instant) {
        self.fates[*packet] = b'm';
    }
}

/// A buffer with room.
fn some(limit: Option<Limit>) -> Limit {
    limit.unwrap_or_else(|| unreachable!("a buffer without room"))
}

/// Our discipline for the words of `tc`.
struct Ours {
    name: &'static str,
    limit: Limit,
    settings: Vec<(&'static str, String)>,
    /// A time as the kernel's discipline knows it.
    tick: fn(u64) -> Instant,
    /// What the class saves while it idles, ns.
    credit: u64,
    /// How long before the schedule the first update of a timer was, and the next ones of that period.
    made: u64,
}

impl Ours {
    fn new(row: &Row) -> Self {
        let words: Vec<&str> = row.text("qdisc").split(' ').collect();
        let after = |word| words.iter().position(|w| *w == word).map(|at| words[at + 1]);
        let has = |word: &str| words.contains(&word);
        let mut ours = Self {
            name: "",
            limit: some(Limit::packets(1)),
            settings: Vec::new(),
            tick: Instant::from_nanos,
            credit: CREDIT,
            made: number(row.text("made")),
        };
        let mut set = |key, word: &str| ours.settings.push((key, word.to_string()));
        let limit = after("limit").map_or(10_000, number);
        let packets = some(Limit::packets(limit));
        (ours.name, ours.limit) = match words[0] {
            "cake" => {
                set("diffserv", words[3]);
                set("isolation", words[4]);
                let of_72 = row.text("setting").starts_with("cake of 7.2");
                set("root", if of_72 { "newton-from-16" } else { "newton" });
                if words[4] != "flowblind" {
                    set("rounds", "each");
                }
                after("rtt").into_iter().for_each(|time| set("rtt", time));
                ours.credit = 0;
                ("cake", packets) // 4 MiB of memory is never full here.
            }
            "dualpi2" => {
                set("preset", "linux");
                after("coupling_factor").into_iter().for_each(|k| set("k", k));
                after("step_thresh").into_iter().for_each(|time| set("min_th", time));
                after("target").into_iter().for_each(|time| set("target", time));
                after("tupdate").into_iter().for_each(|time| set("t_update", time));
                after("classic_protection")
                    .into_iter()
                    .for_each(|percent| set("classic_share", &format!("0.{percent}")));
                has("any_ect").then(|| set("low_latency", "any-ect"));
                has("overflow").then(|| set("overload", "overflow"));
                has("drop_enqueue").then(|| set("decided", "arrival"));
                ("dualpi2", packets)
            }
            "pie" | "fq_pie" => {
                set("preset", "linux");
                set("ecn", if has("ecn") { "true" } else { "false" });
                has("bytemode").then(|| set("mode", "bytes"));
                after("quantum").into_iter().for_each(|bytes| set("quantum", bytes));
                set("t_update", "30ms");
                (if words[0] == "pie" { "pie" } else { "fq-pie" }, packets)
            }
            "red" => {
                set("preset", "linux");
                set("ecn", if has("ecn") { "true" } else { "false" });
                ("red", some(Limit::bytes(limit)))
            }
            name => {
                if let Some(time) = after("ce_threshold") {
                    assert_eq!(time, "20ms");
                    set("ce_threshold", "19999744ns");
                }
                after("quantum").into_iter().for_each(|bytes| set("quantum", bytes));
                // In the kernel's units these are a little shorter.
                set("target", "4999168ns");
                set("interval", "99999744ns");
                set("root", "newton");
                set("preset", "linux");
                set("ecn", if has("noecn") { "false" } else { "true" });
                ours.tick = tick;
                (if name == "codel" { "codel" } else { "fq-codel" }, packets)
            }
        };
        ours
    }
}

/// Plays a row's schedule to ours, with one setting otherwise.
fn play(row: &Row, otherwise: Option<(&'static str, &str)>) -> Fates {
    let rate = Rate::from_mbit(number(row.text("rate_mbps")));
    let Ours { name, limit, mut settings, tick, credit, made } = Ours::new(row);
    if let Some((key, word)) = otherwise {
        settings.retain(|(name, _)| *name != key);
        settings.push((key, word.into()));
    }
    let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let now = Instant::from_nanos(START - made);
    let env = Env { now, mean_packet: LONGEST, ..Env::new(limit, rate) };
    let mut rng = Rng::new(1, 0);
    let mut queue =
        AnyQdisc::build(name, &settings, &env, &mut rng).unwrap_or_else(|e| panic!("{e:?}"));
    let mut rng = Rng::new(number(row.text("seed")), 0);
    let packets = schedule(row);
    let fields: Vec<u8> = row.text("flows").split(' ').map(|f| number(f) as u8).collect();
    let mut out = Fates { fates: vec![b's'; packets.len()], left: Vec::new() };
    let (mut now, mut free) = (START, 0);
    for next in 0..=packets.len() {
        // The class lets a packet go when it has its time, or at an arrival after idleness.
        let until = packets.get(next).map_or(u64::MAX, |p| START + p.at);
        while queue.backlog().packets > 0 && now.max(free) <= until {
            now = now.max(free);
            update(&mut queue, now, &mut rng, &mut out);
            let mut cx = Cx { now: tick(now), rng: &mut rng };
            if let Some((meta, packet)) = queue.dequeue(&mut cx, &mut out) {
                out.left.push((packet, now - START));
                free += rate.transmission(u64::from(meta.len)).as_nanos();
            }
        }
        let Some(packet) = packets.get(next) else { break };
        now = until;
        update(&mut queue, now, &mut rng, &mut out);
        free = free.max(now - credit);
        let field = fields[packet.flow as usize];
        let label = Label { dscp: field >> 2, ..Label::default() };
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(field % 4)];
        let flow = FlowKey::labelled(packet.flow as u32, label);
        let meta = Meta { arrived: tick(now), flow, len: packet.len as u32, ecn };
        queue.enqueue(meta, next, &mut Cx { now: tick(now), rng: &mut rng }, &mut out);
    }
    for (packet, fate) in packets.iter().zip(&mut out.fates) {
        // Nobody sees a mark on what came with one.
        if *fate == b'm' && fields[packet.flow as usize] % 4 == 3 {
            *fate = b's';
        }
    }
    out
}

/// Has the timers run that are due by `now`.
fn update(queue: &mut AnyQdisc<usize>, now: u64, rng: &mut Rng, out: &mut Fates) {
    while let Some(at) = queue.poll_at().filter(|at| at.as_nanos() <= now) {
        queue.on_timer(&mut Cx { now: at, rng }, out);
    }
}

/// A row compared: what is not the same.
#[derive(Debug)]
pub struct Compared {
    /// What the row is called.
    pub setting: &'static str,
    /// Packets.
    pub packets: usize,
    /// Signals of the kernel: drops and marks.
    pub signals: [usize; 2],
    /// Packets with another fate.
    pub fates: usize,
    /// Departures of another flow than the kernel's at the same place.
    pub order: usize,
    /// The largest difference of delays of packets that left in both, of those recorded, in ms.
    pub delay_ms: f64,
    /// Signals of ours: drops and marks.
    pub ours: [usize; 2],
    /// The first packet with another fate.
    pub first: Option<usize>,
}

/// Each row of what does not draw, compared.
pub fn compared() -> Vec<Compared> {
    Row::all(ROWS).chain(Row::all(ROWS_72)).map(|row| compare(&row, None)).collect()
}

/// Each row of what draws, compared.
pub fn drawn() -> Vec<Compared> {
    Row::all(DRAWN).map(|row| compare(&row, None)).collect()
}

/// The rows whose settings begin so, compared with ours when one of its settings is another.
pub fn otherwise(rows: &str, key: &'static str, word: &str) -> Vec<Compared> {
    let all = Row::all(ROWS).chain(Row::all(ROWS_72)).chain(Row::all(DRAWN));
    let rows = all.filter(|row| row.text("setting").starts_with(rows));
    rows.map(|row| compare(&row, Some((key, word)))).collect()
}

fn compare(row: &Row, otherwise: Option<(&'static str, &str)>) -> Compared {
    let played = play(row, otherwise);
    let packets = schedule(row);
    let fates = row.text("fates").as_bytes();
    let count = |of: &[u8]| [b'd', b'm'].map(|kind| of.iter().filter(|f| **f == kind).count());
    let order: Vec<u8> =
        played.left.iter().map(|(packet, _)| b'0' + packets[*packet].flow as u8).collect();
    let left: BTreeMap<usize, u64> = played.left.iter().copied().collect();
    let delay = |(n, text): (usize, &str)| {
        let n = 50 * n;
        let ours = (left.get(&n)? - packets[n].at) as f64 / 1e6;
        Some((text.parse::<f64>().ok()? / 1e6 - ours).abs())
    };
    let differ = |a: &[u8], b: &[u8]| {
        a.iter().zip(b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len())
    };
    Compared {
        setting: row.text("setting"),
        packets: packets.len(),
        signals: count(fates),
        fates: differ(fates, &played.fates),
        order: differ(row.text("order").as_bytes(), &order),
        delay_ms: row.text("delays").split(' ').enumerate().filter_map(delay).fold(0.0, f64::max),
        ours: count(&played.fates),
        first: fates.iter().zip(&played.fates).position(|(a, b)| a != b),
    }
}
