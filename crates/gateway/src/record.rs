//! Arrivals at the gateway's queues, recorded, and replayed in the simulator's queue.
//!
//! The recording holds all that a queue's decisions depend on: what the links are, the seeds, and
//! each arrival. Everything else follows, since a [`crate::link::Link`] does what is due as of its
//! own instant. A replay drives the simulator's link, not the gateway's, and comes to the same
//! decision hash.
//!
//! The file, numbers little-endian, `varint` being LEB128:
//!
//! ```text
//! "bwarr" 0 0 1                    the last byte is the version
//! u32, JSON of that length         the links: {"queues": [up, down]}
//! for each arrival:
//!   varint                         ns since the arrival before (the first: since time 0)
//!   varint                         length in bytes × 8 + direction (0 up, 1 down) × 4 + ECN field
//!   u32                            flow key
//! at the end, if it was reached:
//!   varint                         ns since the last arrival
//!   varint 0
//!   u32, JSON of that length       {"decision_hash": [up, down]}
//! ```

use std::io::{self, BufRead, Write};

use aqm::any::BuildError;
use aqm::{Cx, Ecn, FlowKey, Instant, Limit, Meta, Qdisc as _, Size};
use link::QueueSummary;
use serde_json::{Value, json};
use sim::network::{END, Event, Link, Network};
use sim::packet::Packet;

use crate::forward::Tap;
use crate::link::{Spec, SpecError};
use crate::options::{MEAN_PACKETS, explain};
use crate::report::setting;
use crate::trouble::Trouble;

const MAGIC: &[u8; 8] = b"bwarr\0\0\x01";

/// Writes a recording, each part of it with one `write`.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    out: W,
    /// Time of the last arrival, ns.
    last: u64,
}

impl<W: Write> Recorder<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(mut out: W, specs: &[Spec; 2]) -> io::Result<Self> {
        let queues = [setting("up", &specs[0]), setting("down", &specs[1])];
        let mut head = MAGIC.to_vec();
        write_json(&mut head, &json!({"queues": queues}))?;
        out.write_all(&head)?;
        Ok(Self { out, last: 0 })
    }

    /// What it is written to.
    pub(crate) fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the recording at `now` (ns) with the decision hashes, and gives back what it was written
    /// to.
    ///
    /// # Errors
    /// When this cannot be written.
    pub fn end(mut self, now: u64, hashes: [String; 2]) -> io::Result<W> {
        let mut end = Vec::new();
        write_varint(&mut end, now - self.last)?;
        write_varint(&mut end, 0)?;
        write_json(&mut end, &json!({"decision_hash": hashes}))?;
        self.out.write_all(&end)?;
        Ok(self.out)
    }

    fn write(&mut self, direction: usize, meta: &Meta) -> io::Result<()> {
        let now = meta.arrived.as_nanos();
        let head = u64::from(meta.len) << 3 | (direction as u64) << 2 | meta.ecn as u64;
        let mut entry = [0; 2 * LONGEST_VARINT + 4];
        let mut rest = &mut entry[..];
        write_varint(&mut rest, now - self.last)?;
        write_varint(&mut rest, head)?;
        rest.write_all(&(meta.flow.0 as u32).to_le_bytes())?;
        let unused = rest.len();
        self.last = now;
        self.out.write_all(&entry[..entry.len() - unused])
    }
}

impl<W: Write> Tap for Recorder<W> {
    fn arrived(&mut self, direction: usize, meta: &Meta) {
        // Whoever writes counts what is lost.
        _ = self.write(direction, meta);
    }
}

/// Tells everything to a recorder, if there is one.
impl<T: Tap> Tap for Option<T> {
    fn arrived(&mut self, direction: usize, meta: &Meta) {
        if let Some(tap) = self {
            tap.arrived(direction, meta);
        }
    }
}

/// A recording that is being read.
#[derive(Debug)]
pub struct Recording<R: BufRead> {
    input: R,
    /// The links.
    pub specs: [Spec; 2],
    now: u64,
    /// Whether its end was read.
    ended: bool,
}

/// What comes next in a recording.
#[derive(Clone, PartialEq, Debug)]
pub enum Entry {
    /// A packet arrived at the queue of a direction; `meta.arrived` says when.
    Arrival(usize, Meta),
    /// The end at a time (ns), and the decision hashes.
    End(u64, [String; 2]),
    /// It breaks off here: whoever recorded was killed, or the disk was full.
    Cut,
}

impl<R: BufRead> Recording<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// When this is no recording.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut magic = [0; 8];
        let short = |e: io::Error| match e.kind() {
            io::ErrorKind::UnexpectedEof => broken("the recording breaks off inside its head"),
            _ => e,
        };
        input.read_exact(&mut magic).map_err(short)?;
        if magic[..5] != MAGIC[..5] {
            return Err(broken("this is no recording of arrivals"));
        }
        if magic != *MAGIC {
            return Err(broken("this recording is of another version"));
        }
        let head = read_json(&mut input).map_err(short)?;
        let link =
            |i: usize| spec(&head["queues"][i]).ok_or_else(|| broken("no links in its head"));
        Ok(Self { specs: [link(0)?, link(1)?], input, now: 0, ended: false })
    }

    /// The next entry; nothing after the last one.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        if self.ended {
            return match self.input.fill_buf()? {
                [] => Ok(None),
                _ => Err(broken("something stands behind its end")),
            };
        }
        let entry = match self.read_entry() {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Entry::Cut),
            entry => entry,
        };
        self.ended = matches!(entry, Ok(Entry::Cut | Entry::End(..)));
        entry.map(Some)
    }

    fn read_entry(&mut self) -> io::Result<Entry> {
        let passed = read_varint(&mut self.input)?;
        let now = self.now.checked_add(passed).filter(|&now| now <= LONGEST_TIME);
        let now = now.ok_or_else(|| broken("time runs over"))?;
        let head = read_varint(&mut self.input)?;
        if head == 0 {
            let hashes = read_json(&mut self.input)?;
            let hash = |i: usize| hashes["decision_hash"][i].as_str().unwrap_or_default().into();
            return Ok(Entry::End(now, [hash(0), hash(1)]));
        }
        let mut flow = [0; 4];
        self.input.read_exact(&mut flow)?;
        self.now = now;
        let len =
            u16::try_from(head >> 3).map_err(|_| broken("a packet of more than 65535 bytes"))?;
        let meta = Meta {
            arrived: Instant::from_nanos(self.now),
            flow: FlowKey(u32::from_le_bytes(flow).into()),
            len: len.into(),
            ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][(head & 3) as usize],
        };
        Ok(Entry::Arrival((head >> 2 & 1) as usize, meta))
    }
}

/// The longest recording: 30 years, ns.
const LONGEST_TIME: u64 = 30 * 365 * 86_400 * 1_000_000_000;

/// How a replay ended.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Of each direction: the hash over its decisions, and what was measured.
    pub queues: [(String, Option<QueueSummary>); 2],
    /// The hashes that were recorded; nothing if the recording breaks off.
    pub recorded: Option<[String; 2]>,
    /// Arrivals in it.
    pub arrivals: u64,
    /// The last instant in it, ns.
    pub last: u64,
}

/// Runs a recording through the simulator, as far as it goes.
///
/// # Errors
/// When it is damaged, no link can be as it says, or its queues would be updated more than `most`
/// times, usually [`MOST_UPDATES`], and [`PER_ARRIVAL`] times an arrival.
pub fn replay<R: BufRead>(recording: &mut Recording<R>, most: u64) -> io::Result<Replayed> {
    let new = |spec: &Spec| Replay::new(spec).map_err(|e| broken(&e.what));
    let mut replays = [new(&recording.specs[0])?, new(&recording.specs[1])?];
    let (mut arrivals, mut last) = (0, 0);
    let recorded = loop {
        match recording.next_entry()? {
            Some(Entry::Arrival(direction, meta)) => {
                last = meta.arrived.as_nanos();
                arrivals += 1;
                replays[direction].check(last, most, arrivals)?;
                replays[direction].arrive(meta);
            }
            Some(Entry::End(at, hashes)) => {
                last = at;
                break Some(hashes);
            }
            Some(Entry::Cut) | None => break None,
        }
    };
    replays.iter().try_for_each(|replay| replay.check(last, most, arrivals))?;
    Ok(Replayed { queues: replays.map(|replay| replay.end(last)), recorded, arrivals, last })
}

/// One direction of a recording in the simulator.
pub struct Replay {
    network: Network,
    seq: u32,
    /// Time between the updates of an idle queue, ns.
    period: u64,
}

/// The most updates of a queue in a replay, beside [`PER_ARRIVAL`]: a timer of 15 ms for three days, or
/// seconds of computing. More would be a file of few bytes that takes minutes.
pub const MOST_UPDATES: u64 = 20_000_000;
/// Updates for each arrival.
pub const PER_ARRIVAL: u64 = 1000;

impl Replay {
    /// The simulator's link for `spec`.
    ///
    /// # Errors
    /// When there is no such link.
    pub fn new(spec: &Spec) -> Result<Self, Trouble> {
        spec.possible().map_err(|e| explain(&spec.aqm, e))?;
        let failed = |e| explain(&spec.aqm, SpecError::Queue(e));
        let (queue, rng) = spec.queue(Instant::ZERO, 0).map_err(failed)?;
        let period = period(spec).map_err(failed)?;
        let link = Link::managed(spec.rate, spec.delay, queue, rng, 0);
        Ok(Self { network: Network::new(vec![link], vec![0, END], 0), seq: 0, period })
    }

    /// Whether it is worth going on to `now` (ns) after so many `arrivals`.
    fn check(&self, now: u64, most: u64, arrivals: u64) -> io::Result<()> {
        let allowed = most.saturating_add(arrivals.saturating_mul(PER_ARRIVAL));
        if now / self.period <= allowed {
            return Ok(());
        }
        let (seconds, updates) = (now as f64 / 1e9, now / self.period);
        Err(broken(&format!(
            "time jumps to {seconds:.0} s, which takes {updates} updates of its queue: allowed are \
             {allowed}"
        )))
    }

    /// A packet arrives at `meta.arrived`.
    pub fn arrive(&mut self, meta: Meta) {
        let now = meta.arrived.as_nanos();
        self.deliver(now);
        let packet = Packet {
            flow: meta.flow.0 as u32,
            seq: self.seq,
            len: meta.len as u16,
            ecn: meta.ecn,
            ..Packet::default()
        };
        self.seq = self.seq.wrapping_add(1);
        self.network.forward(now, &packet);
    }

    /// The decision hash and the summary of everything up to and including `now` (ns).
    pub fn end(mut self, now: u64) -> (String, Option<QueueSummary>) {
        self.deliver(now);
        self.network.catch_up_all(now);
        let summary = self.network.queue(0).map(|queue| queue.summary(now));
        (self.network.decision_hash().to_string(), summary)
    }

    fn deliver(&mut self, now: u64) {
        let mut packet = Packet::default();
        self.network.set_end(now + 1);
        while self.network.next(&mut packet).1 == Event::End {}
    }
}

/// Time between the updates of such a queue while it is idle, ns.
fn period(spec: &Spec) -> Result<u64, BuildError> {
    let (mut queue, mut rng) = spec.queue::<()>(Instant::ZERO, 0)?;
    let Some(first) = queue.poll_at() else { return Ok(u64::MAX) };
    queue.on_timer(&mut Cx { now: first, rng: &mut rng }, &mut ());
    let next = queue.poll_at().map_or(u64::MAX, Instant::as_nanos);
    Ok(next.saturating_sub(first.as_nanos()).max(1))
}

/// A link's settings from what [`setting`] made of them.
fn spec(value: &Value) -> Option<Spec> {
    let text = |key: &str| value[key].as_str();
    let params = value["params"].as_object()?.iter();
    Some(Spec {
        rate: text("rate")?.parse().ok()?,
        delay: text("delay")?.parse().ok()?,
        limit: match text("buffer")?.parse().ok()? {
            Size::Packets(n) => Limit::packets(n)?,
            Size::Bytes(n) => Limit::bytes(n)?,
            _ => return None,
        },
        aqm: text("aqm")?.into(),
        params: params
            .map(|(k, v)| Some((k.clone(), v.as_str()?.into())))
            .collect::<Option<_>>()?,
        mean_packet: u32::try_from(value["mean_packet"].as_u64()?)
            .ok()
            .filter(|length| MEAN_PACKETS.contains(length))?,
        seed: value["seed"].as_u64()?,
    })
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Bytes of the longest number.
const LONGEST_VARINT: usize = 10;

fn write_varint(out: &mut impl Write, mut value: u64) -> io::Result<()> {
    let mut bytes = [0; LONGEST_VARINT];
    let mut count = 0;
    loop {
        let more = value >> 7 != 0;
        bytes[count] = value as u8 & 0x7f | u8::from(more) << 7;
        count += 1;
        value >>= 7;
        if !more {
            return out.write_all(&bytes[..count]);
        }
    }
}

fn read_varint(input: &mut impl BufRead) -> io::Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(broken("a number without end"))
}

fn write_json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    let text = value.to_string();
    out.write_all(&(text.len() as u32).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

/// The longest JSON in a recording, bytes.
const LONGEST_JSON: u32 = 1 << 20;

fn read_json(input: &mut impl BufRead) -> io::Result<Value> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST_JSON {
        return Err(broken("its head is too long"));
    }
    let mut text = vec![0; length as usize];
    input.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Layer;
    use aqm::{CATALOG, Duration, Rate, Rng};
    use proptest::prelude::*;

    fn specs(aqm: &str) -> [Spec; 2] {
        let up = Spec {
            rate: Rate::new(9_999_991).unwrap(),
            delay: Duration::from_micros(2500),
            limit: Limit::bytes(30_000).unwrap(),
            aqm: aqm.into(),
            params: Vec::new(),
            mean_packet: 1000,
            seed: u64::MAX - 7,
        };
        let down = Spec { limit: Limit::packets(20).unwrap(), seed: 3, ..up.clone() };
        [up, down]
    }

    /// A datagram of `len` bytes of one of some flows.
    fn datagram(rng: &mut Rng) -> Vec<u8> {
        let mut p = vec![0; [28, 40, 576, 1000, 1500][rng.below(5)]];
        p[0] = 0x45;
        p[1] = rng.below(4) as u8;
        let len = p.len() as u16;
        p[2..4].copy_from_slice(&len.to_be_bytes());
        p[9] = 17;
        p[20] = rng.below(10) as u8;
        p
    }

    /// Random traffic through the gateway's links, recorded; the simulator, given the recording and
    /// nothing else, takes the same decisions at the same nanoseconds, under every algorithm.
    #[test]
    fn a_replay_decides_alike() {
        for (i, entry) in CATALOG.iter().enumerate() {
            let specs = specs(entry.name);
            let new = |s: &Spec| crate::link::Link::new(s, Layer::Ip, 1500).unwrap();
            let mut links = specs.each_ref().map(new);
            let mut file = Vec::new();
            let mut recorder = Recorder::new(&mut file, &specs).unwrap();
            let mut rng = Rng::new(11, i as u64);
            let mut now = 0;
            for n in 0..20_000 {
                now += rng.below([150_000, 1_500_000][n / 4_000 % 2]) as u64;
                let direction = rng.below(2);
                let link = &mut links[direction];
                link.deliver(now, |_| ());
                let meta = link.arrive(now, &datagram(&mut rng)).unwrap();
                recorder.arrived(direction, &meta);
            }
            now += 1_234_567;
            links.iter_mut().for_each(|l| l.deliver(now, |_| ()));
            let hashes = links.each_ref().map(|l| l.decision_hash().to_string());
            recorder.end(now, hashes.clone()).unwrap();
            assert!(file.len() < 20_000 * 11, "{} bytes", file.len());

            let mut recording = Recording::new(&file[..]).unwrap();
            assert_eq!(recording.specs[0].seed, specs[0].seed);
            let mut replays = recording.specs.each_ref().map(|s| Replay::new(s).unwrap());
            let ended = loop {
                match recording.next_entry().unwrap().unwrap() {
                    Entry::Arrival(direction, meta) => replays[direction].arrive(meta),
                    Entry::End(at, recorded) => break (at, recorded),
                    Entry::Cut => panic!("it is whole"),
                }
            };
            assert_eq!(ended, (now, hashes.clone()));
            let replayed = replays.map(|r| r.end(now));
            for i in 0..2 {
                assert_eq!(replayed[i].0, hashes[i], "{} {i}", entry.name);
                let (sim, live) = (replayed[i].1.unwrap(), links[i].summary(now));
                assert_eq!(sim.counts, live.counts, "{}", entry.name);
                assert_eq!(sim.delay_s, live.delay_s, "{}", entry.name);
                assert_eq!(sim.mean_packets, live.mean_packets, "{}", entry.name);
                assert!(sim.counts.all_dropped().packets > 0, "{} was not tried", entry.name);
            }
            assert_eq!(recording.next_entry().unwrap(), None);
        }
    }

    /// One bit of one arrival's time makes another hash: the comparison is not vacuous.
    #[test]
    fn another_nanosecond_is_another_hash() {
        let spec = &specs("droptail")[0];
        let hash = |nudge: u64| {
            let mut replay = Replay::new(spec).unwrap();
            for n in 0..10 {
                let arrived = Instant::from_nanos(n * 10_000_000 + nudge * u64::from(n == 5));
                replay.arrive(Meta { arrived, flow: FlowKey(n), len: 1000, ecn: Ecn::NotEct });
            }
            replay.end(1 << 30).0
        };
        assert_eq!(hash(0), hash(0));
        assert_ne!(hash(0), hash(1));
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        let mut file = Vec::new();
        Recorder::new(&mut file, &specs("red")).unwrap();
        let refused = |bytes: &[u8]| Recording::new(bytes).map(drop).unwrap_err().to_string();
        assert!(refused(b"not a recording of any kind").contains("no recording"));
        let mut other = file.clone();
        other[7] = 2;
        assert!(refused(&other).contains("version"));
        let mut long = file.clone();
        long[11] = 0xff;
        assert!(refused(&long).contains("too long"));
        for end in 0..file.len() {
            assert!(Recording::new(&file[..end]).is_err(), "cut off at {end}");
        }
        let mut recording = Recording::new(&file[..]).unwrap();
        assert_eq!(recording.next_entry().unwrap(), Some(Entry::Cut));
        assert_eq!(recording.next_entry().unwrap(), None);
    }

    /// A recording of three arrivals, with an end.
    fn short(specs: &[Spec; 2], times: [u64; 3]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut recorder = Recorder::new(&mut file, specs).unwrap();
        for time in times {
            let arrived = Instant::from_nanos(time);
            let meta = Meta { arrived, flow: FlowKey(7), len: 1000, ecn: Ecn::Ect0 };
            recorder.arrived(0, &meta);
        }
        recorder.end(times[2] + 5, ["a".into(), "b".into()]).unwrap();
        file
    }

    /// Cut off anywhere behind its head, it replays up to there.
    #[test]
    fn a_recording_that_breaks_off_replays_as_far_as_it_goes() {
        let file = short(&specs("red"), [1_000_000, 2_000_000, 300_000_000]);
        let mut head = Vec::new();
        Recorder::new(&mut head, &specs("red")).unwrap();
        let mut seen = Vec::new();
        for end in head.len()..=file.len() {
            let replayed = replay(&mut Recording::new(&file[..end]).unwrap(), 1).unwrap();
            assert_eq!(replayed.recorded.is_some(), end == file.len());
            seen.push((replayed.arrivals, replayed.last));
        }
        assert!(seen.is_sorted());
        seen.dedup();
        let whole = (3, 300_000_005);
        assert_eq!(
            seen,
            [(0, 0), (1, 1_000_000), (2, 2_000_000), (3, 300_000_000), whole],
            "each arrival as soon as it is there"
        );
        let mut more = file.clone();
        more.push(0);
        let mut recording = Recording::new(&more[..]).unwrap();
        (0..4).for_each(|_| _ = recording.next_entry().unwrap());
        assert!(recording.next_entry().is_err(), "behind its end");
    }

    /// A few bytes that would take for ever, or all memory, are refused at once.
    #[test]
    fn a_crafted_recording_is_refused() {
        let refused = |file: &[u8]| {
            let recording = Recording::new(file);
            recording
                .and_then(|mut r| replay(&mut r, MOST_UPDATES).map(drop))
                .unwrap_err()
                .to_string()
        };
        let mut quick = specs("pie");
        quick[0].params = vec![("t_update".into(), "1ms".into())];
        let jump = short(&quick, [1, 2, 10_000_000_000_000_000]);
        assert!(refused(&jump).contains("time jumps to 10000000 s"), "{}", refused(&jump));
        let late = short(&specs("droptail"), [1, 2, u64::MAX / 2]);
        assert!(refused(&late).contains("time runs over"));
        // 15 ms, from 350 bytes: minutes of computing.
        let month = short(&specs("pie"), [1, 2, 2_592_000_000_000_000]);
        assert!(refused(&month).contains("time jumps to 2592000 s"));
        // A year of nothing is no reason.
        let year = short(&specs("droptail"), [1, 2, 31_536_000_000_000_000]);
        replay(&mut Recording::new(&year[..]).unwrap(), MOST_UPDATES).unwrap();
        let mut large = specs("droptail");
        large[1].limit = Limit::packets(2 * Spec::MAX_PACKETS).unwrap();
        assert!(refused(&short(&large, [1, 2, 3])).contains("beyond reach"));
        for end in [4, 10, 50] {
            assert!(refused(&year[..end]).contains("breaks off inside its head"));
        }
        let mut empty = specs("droptail");
        empty[0].mean_packet = 0;
        assert!(refused(&short(&empty, [1, 2, 3])).contains("no links"));
    }

    proptest! {
        #[test]
        fn varints_come_back(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            write_varint(&mut bytes, value).unwrap();
            prop_assert_eq!(read_varint(&mut &bytes[..]).unwrap(), value);
        }

        /// Damaged recordings are read to an error or an end.
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut file = Vec::new();
            Recorder::new(&mut file, &specs("droptail")).unwrap();
            file.extend(bytes);
            let mut recording = Recording::new(&file[..]).unwrap();
            _ = replay(&mut recording, 1000);
        }
    }
}
