//! Packet by packet against Linux 6.1's queue disciplines: `reference/linux_packets.csv`, recorded under
//! virtual time by `linux_packets.py` beside it.
//!
//! The same schedule of datagrams, which its seed gives, comes to our discipline before a transmitter of
//! the same rate. What does not draw has to do the same with every packet.

use std::collections::BTreeMap;

use aqm::{
    AnyQdisc, Cause, Cx, Ecn, Env, FlowKey, Instant, Label, Limit, Meta, Outlet, Qdisc, Rate, Rng,
};

use crate::rows::Row;

const ROWS: &str = include_str!("../reference/linux_packets.csv");
/// Lengths on the wire, of which a packet has one.
const LENGTHS: [u64; 5] = [1504, 1504, 992, 288, 96];

/// All packets come at multiples of this, ns: the time of 32 bytes.
const GRID: u64 = 25_600;

/// When the schedule begins, ns.
const START: u64 = 1 << 30;
/// What the class saves while it idles: the time of its burst of forty bytes, ns. So a packet never comes
/// when one leaves, unless the class idles.
const CREDIT: u64 = 32_000;

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

/// Our discipline for the words of `tc`, its buffer, its settings.
fn ours(qdisc: &str) -> (&'static str, u64, Vec<(&'static str, String)>) {
    let words: Vec<&str> = qdisc.split(' ').collect();
    let after = |word| words.iter().position(|w| *w == word).map(|at| words[at + 1]);
    let has = |word: &str| words.contains(&word);
    let limit = after("limit").map_or(0, number);
    let mut settings = Vec::new();
    if let Some(time) = after("ce_threshold") {
        assert_eq!(time, "20ms");
        settings.push(("ce_threshold", "19999744ns".into()));
    }
    if let Some(bytes) = after("quantum") {
        settings.push(("quantum", bytes.into()));
    }
    if words[0] == "cake" {
        settings.push(("diffserv", words[3].into()));
        settings.push(("isolation", words[4].into()));
        settings.extend(after("rtt").map(|time| ("rtt", time.into())));
        settings.push(("root", "newton".into()));
        if words[4] != "flowblind" {
            settings.push(("rounds", "each".into()));
        }
        // 4 MiB of memory is never full here.
        return ("cake", 10_000, settings);
    }
    // In the kernel's units these are a little shorter.
    settings.push(("target", "4999168ns".into()));
    settings.push(("interval", "99999744ns".into()));
    settings.push(("root", "newton".into()));
    settings.push(("preset", "linux".into()));
    settings.push(("ecn", (!has("noecn")).to_string()));
    (if words[0] == "codel" { "codel" } else { "fq-codel" }, limit, settings)
}

/// Plays a row's schedule to ours, with one setting otherwise.
fn play(row: &Row, otherwise: Option<(&'static str, &str)>) -> Fates {
    let rate = Rate::from_mbit(number(row.text("rate_mbps")));
    let (name, limit, mut settings) = ours(row.text("qdisc"));
    if let Some((key, word)) = otherwise {
        settings.retain(|(name, _)| *name != key);
        settings.push((key, word.into()));
    }
    let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let Some(limit) = Limit::packets(limit) else { unreachable!("a buffer without room") };
    let env = Env::new(limit, rate);
    let mut rng = Rng::new(1, 0);
    let mut queue =
        AnyQdisc::build(name, &settings, &env, &mut rng).unwrap_or_else(|e| panic!("{e:?}"));
    let packets = schedule(row);
    let fields: Vec<u8> = row.text("flows").split(' ').map(|f| number(f) as u8).collect();
    let mut out = Fates { fates: vec![b's'; packets.len()], left: Vec::new() };
    let credit = if name == "cake" { 0 } else { CREDIT };
    // CAKE knows the time to the nanosecond.
    let tick = if name == "cake" { Instant::from_nanos } else { tick };
    let (mut now, mut free) = (START, 0);
    for next in 0..=packets.len() {
        // The class lets a packet go when it has its time, or at an arrival after idleness.
        let until = packets.get(next).map_or(u64::MAX, |p| START + p.at);
        while queue.backlog().packets > 0 && now.max(free) <= until {
            now = now.max(free);
            let mut cx = Cx { now: tick(now), rng: &mut rng };
            if let Some((meta, packet)) = queue.dequeue(&mut cx, &mut out) {
                out.left.push((packet, now - START));
                free += rate.transmission(u64::from(meta.len)).as_nanos();
            }
        }
        let Some(packet) = packets.get(next) else { break };
        now = until;
        free = free.max(now - credit);
        let field = fields[packet.flow as usize];
        let label = Label { dscp: field >> 2, ..Label::default() };
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(field % 4)];
        let flow = FlowKey::labelled(packet.flow as u32, label);
        let meta = Meta { arrived: tick(now), flow, len: packet.len as u32, ecn };
        queue.enqueue(meta, next, &mut Cx { now: tick(now), rng: &mut rng }, &mut out);
    }
    out
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
    /// The same for the numbers of drops and of marks.
    pub ours: [usize; 2],
    /// The first packet with another fate.
    pub first: Option<usize>,
}

/// Each row, compared.
pub fn compared() -> Vec<Compared> {
    Row::all(ROWS).map(|row| compare(&row, None)).collect()
}

/// The rows whose settings begin so, compared with ours when one of its settings is another.
pub fn otherwise(rows: &str, key: &'static str, word: &str) -> Vec<Compared> {
    let rows = Row::all(ROWS).filter(|row| row.text("setting").starts_with(rows));
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
