//! A queue that is built from text, holds cookies in place of packets, and reports errors as text.

use std::collections::VecDeque;
use std::str::FromStr;

use aqm::any::BuildError;
use aqm::param::ParamError;
use aqm::units::{Size, TextError};
use aqm::{
    About, AnyQdisc, CATALOG, Carried, Cause, Cx, Ecn, Env, FlowHash, FlowKey, Instant, Label,
    Limit, Meta, Outlet, Qdisc as _, Rng, Tally,
};

/// A packet as the caller sees it: `aqm_packet` in C.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Packet {
    /// Whatever the caller finds its bytes by.
    pub cookie: u64,
    /// Which packets belong together.
    pub flow: u64,
    /// Length in bytes, 1 … 2²⁰.
    pub len: u32,
    /// The ECN field of the IP header, 0 … 3.
    pub ecn: u8,
}

/// The room for a count of all causes, and of each behind it.
const COUNTS: usize = 1 + Cause::COUNT;

/// What happened so far: `aqm_stats` in C. Of an array the first is the sum of the others, which are
/// numbered by cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Stats {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets that the caller took out.
    pub departed_packets: u64,
    /// Their bytes.
    pub departed_bytes: u64,
    /// Packets in the queue.
    pub queued_packets: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: [u64; COUNTS],
    /// Their bytes.
    pub dropped_bytes: [u64; COUNTS],
    /// Packets that the queue marked.
    pub marked_packets: [u64; COUNTS],
}

/// What became of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Admitted,
    Marked,
    Dropped,
}

/// What the queue holds: the cookie, and the packet's number among all that arrived, since cookies may
/// repeat.
#[derive(Clone, Copy, Default, Debug)]
struct Held {
    cookie: u64,
    number: u64,
}

impl Carried for Held {}

/// A queue discipline with all that it needs but a clock.
pub struct Queue {
    queue: AnyQdisc<Held>,
    env: Env,
    rng: Rng,
    /// For flows that the caller identifies by bytes.
    hash: FlowHash,
    /// The time of the last call.
    now: Instant,
    arrivals: u64,
    /// Dropped packets that the caller has not asked for yet.
    dropped: VecDeque<(Packet, Cause)>,
    /// The last call for a packet gave none.
    held: bool,
    /// Whether a call was begun and not ended: it panicked.
    broken: bool,
}

/// The longest packet, bytes: longer than any that a system hands over.
const LONGEST: u32 = 1 << 20;

/// So many timers are run one after another; after a longer silence one call stands for those left.
const TIMERS: u32 = 1 << 16;

/// The random stream of the queue, and the one for hashes of bytes.
const STREAMS: [u64; 2] = [0, 1];

impl Queue {
    /// An empty queue at `now`, see the header.
    pub(crate) fn new(
        discipline: &str,
        parameters: &str,
        link: &str,
        seed: u64,
        now: u64,
    ) -> Result<Self, String> {
        let now = Instant::from_nanos(now);
        let env = environment(link, now)?;
        let settings = pairs(parameters)?;
        let [mut rng, mut other] = STREAMS.map(|stream| Rng::new(seed, stream));
        let queue = AnyQdisc::build(discipline, &settings, &env, &mut rng)
            .map_err(|error| explain(discipline, &settings, error))?;
        if let Some((key, value)) = settings.iter().find(|(k, v)| *k == "ack_filter" && *v != "off")
        {
            let hint = "packets do not say here what they acknowledge";
            return Err(hinted(wrong(&format!("{discipline}: {key}"), value, "off"), hint));
        }
        let (hash, dropped) = (FlowHash::new(&mut other), VecDeque::new());
        Ok(Self { queue, env, rng, hash, now, arrivals: 0, dropped, held: false, broken: false })
    }

    pub(crate) fn enqueue(&mut self, packet: &Packet, now: u64) -> Result<Verdict, String> {
        let Packet { cookie, flow, len, ecn } = *packet;
        if !(1..=LONGEST).contains(&len) {
            return Err(wrong("len", &len.to_string(), &format!("1 … {LONGEST} bytes")));
        }
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]
            .into_iter()
            .find(|each| *each as u8 == ecn)
            .ok_or_else(|| wrong("ecn", &ecn.to_string(), "0 … 3, the ECN field"))?;
        self.begin(now)?;
        let number = self.arrivals;
        self.arrivals += 1;
        let mut seen = Seen { number, verdict: Verdict::Admitted, dropped: &mut self.dropped };
        let meta = Meta { flow: FlowKey(flow), len, ecn, ..Meta::default() };
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.queue.enqueue(meta, Held { cookie, number }, &mut cx, &mut seen);
        let verdict = seen.verdict;
        self.broken = false;
        Ok(verdict)
    }

    pub(crate) fn dequeue(&mut self, now: u64) -> Result<Option<Packet>, String> {
        self.begin(now)?;
        let mut seen = Seen::of_no_arrival(&mut self.dropped);
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        let sent = self.queue.dequeue(&mut cx, &mut seen);
        self.held = sent.is_none();
        self.broken = false;
        Ok(sent.map(|(meta, held)| packet(&meta, held)))
    }

    pub(crate) fn next_dropped(&mut self) -> Option<(Packet, Cause)> {
        self.dropped.pop_front()
    }

    pub(crate) fn wake_at(&self) -> u64 {
        let held = self.queue.ready_at().filter(|_| self.held);
        self.queue.poll_at().into_iter().chain(held).min().map_or(u64::MAX, Instant::as_nanos)
    }

    pub(crate) fn wake(&mut self, now: u64) -> Result<(), String> {
        self.begin(now)?;
        self.broken = false;
        Ok(())
    }

    pub(crate) fn set_rate(&mut self, rate: &str, now: u64) -> Result<(), String> {
        let rate = parsed("rate", rate)?;
        self.begin(now)?;
        self.env = Env { now: self.now, rate, ..self.env };
        self.queue.rate_changed(&self.env);
        self.broken = false;
        Ok(())
    }

    pub(crate) fn stats(&self) -> Stats {
        let (counters, backlog) = (self.queue.counters(), self.queue.backlog());
        let packets = |tally: &Tally| tally.packets;
        Stats {
            arrived_packets: counters.arrived.packets,
            arrived_bytes: counters.arrived.bytes,
            departed_packets: counters.departed.packets,
            departed_bytes: counters.departed.bytes,
            queued_packets: backlog.packets.into(),
            queued_bytes: backlog.bytes,
            dropped_packets: counts(&counters.dropped, packets),
            dropped_bytes: counts(&counters.dropped, |tally| tally.bytes),
            marked_packets: counts(&counters.marked, packets),
        }
    }

    /// A keyed hash of the bytes that identify a flow.
    pub(crate) fn flow_hash(&self, bytes: &[u8]) -> u32 {
        let mut word = self.hash.word(FlowKey(bytes.len() as u64));
        for chunk in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word = self.hash.word(FlowKey(word ^ u64::from_le_bytes(padded)));
        }
        (word >> 32) as u32
    }

    /// Goes on to `now`, and runs the timers that are due, each as at its time: nothing happened since.
    fn begin(&mut self, now: u64) -> Result<(), String> {
        if self.broken {
            return Err("the queue is broken: an earlier call failed by a defect; free it".into());
        }
        let now = Instant::from_nanos(now);
        if now < self.now {
            let allowed = format!("{} ns or later: times never go back", self.now.as_nanos());
            return Err(wrong("now", &format!("{} ns", now.as_nanos()), &allowed));
        }
        self.broken = true;
        for number in 0..=TIMERS {
            let Some(due) = self.queue.poll_at().filter(|due| *due <= now) else { break };
            self.now = if number == TIMERS { now } else { due.max(self.now) };
            let mut cx = Cx { now: self.now, rng: &mut self.rng };
            self.queue.on_timer(&mut cx, &mut Seen::of_no_arrival(&mut self.dropped));
        }
        self.now = now;
        Ok(())
    }
}

fn packet(meta: &Meta, held: Held) -> Packet {
    Packet { cookie: held.cookie, flow: meta.flow.0, len: meta.len, ecn: meta.ecn as u8 }
}

/// The key of a flow with a label, see [`Label`].
pub(crate) fn flow_key(flow: u32, dscp: u8, host: u16, peer: u16) -> u64 {
    FlowKey::labelled(flow, Label { dscp, host, peer }).0
}

/// Their sum, then those of all causes.
fn counts(of_causes: &[Tally; Cause::COUNT], count: impl Fn(&Tally) -> u64) -> [u64; COUNTS] {
    let mut all = [0; COUNTS];
    for (into, tally) in all[1..].iter_mut().zip(of_causes) {
        *into = count(tally);
    }
    all[0] = all[1..].iter().sum();
    all
}

/// Keeps dropped packets, and notes what became of the one that arrives.
struct Seen<'a> {
    number: u64,
    verdict: Verdict,
    dropped: &'a mut VecDeque<(Packet, Cause)>,
}

impl<'a> Seen<'a> {
    fn of_no_arrival(dropped: &'a mut VecDeque<(Packet, Cause)>) -> Self {
        Self { number: u64::MAX, verdict: Verdict::Admitted, dropped }
    }
}

impl Outlet<Held> for Seen<'_> {
    fn dropped(&mut self, meta: &Meta, held: Held, cause: Cause, _: Instant) {
        if held.number == self.number {
            self.verdict = Verdict::Dropped;
        }
        self.dropped.push_back((packet(meta, held), cause));
    }

    fn marked(&mut self, _: &Meta, held: &Held, _: Cause, _: Instant) {
        if held.number == self.number {
            self.verdict = Verdict::Marked;
        }
    }
}

/// `key=value` between commas.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>, String> {
    text.split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("{pair}: not allowed; allowed: key=value,key=value"))?;
            Ok((key.trim(), value.trim()))
        })
        .collect()
}

/// The surroundings of a queue, from the text about its link.
fn environment(link: &str, now: Instant) -> Result<Env, String> {
    let (mut rate, mut buffer, mut mean, mut framing) = (None, None, None, None);
    for (key, value) in pairs(link)? {
        let place = match key {
            "rate" => &mut rate,
            "buffer" => &mut buffer,
            "mean_packet" => &mut mean,
            "framing" => &mut framing,
            _ => {
                let allowed = "rate, buffer, mean_packet, framing";
                return Err(format!("link: {key}: unknown key; allowed: {allowed}"));
            }
        };
        *place = Some(value);
    }
    let missing = |key: &str, example: &str| format!("link: {key}: missing; write {key}={example}");
    let rate = rate.ok_or_else(|| missing("rate", "20mbit"))?;
    let buffer = buffer.ok_or_else(|| missing("buffer", "1000p"))?;
    let rate = parsed("link: rate", rate)?;
    let limit = match parsed("link: buffer", buffer)? {
        Size::Packets(n) => Limit::packets(n),
        Size::Bytes(n) => Limit::bytes(n),
        Size::OfBuffer(_) | Size::Bdp(_) => None,
    };
    let allowed = "1p … 16777216p (packets), or at least 28B";
    let limit = limit.ok_or_else(|| wrong("link: buffer", buffer, allowed))?;
    let mut env = Env { now, ..Env::new(limit, rate) };
    if let Some(text) = mean {
        env.mean_packet = text
            .parse()
            .ok()
            .filter(|n| (1..=65_535).contains(n))
            .ok_or_else(|| wrong("link: mean_packet", text, "1 … 65535 (bytes)"))?;
    }
    if let Some(text) = framing {
        env.framing = parsed("link: framing", text)?;
    }
    Ok(env)
}

/// A quantity from its text.
fn parsed<T: FromStr<Err = TextError>>(key: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|e: TextError| hinted(wrong(key, text, e.allowed), &e.hint))
}

/// Why there can be no such queue.
fn explain(discipline: &str, settings: &[(&str, &str)], error: BuildError) -> String {
    let value = |key: &str| settings.iter().rfind(|(name, _)| *name == key).map_or("", |(_, v)| *v);
    match error {
        BuildError::UnknownAqm => {
            let names: Vec<_> = CATALOG.iter().map(|about| about.name).collect();
            wrong("discipline", discipline, &names.join(", "))
        }
        BuildError::UnknownParameter(key) => {
            let table = About::of(discipline).map_or_else(Vec::new, |about| (about.parameters)());
            let names: Vec<_> = table.iter().map(|param| param.name).collect();
            let allowed = if names.is_empty() { "none".into() } else { names.join(", ") };
            format!("{discipline}: {key}: unknown parameter; allowed: {allowed}")
        }
        BuildError::Parameter(key, ParamError { allowed, hint }) => {
            hinted(wrong(&format!("{discipline}: {key}"), value(&key), &allowed), &hint)
        }
        BuildError::Config(e) => {
            wrong(&format!("{discipline}: {}", e.key), value(e.key), &e.allowed)
        }
    }
}

/// Names a key, its value, where it has one, and what is allowed.
fn wrong(key: &str, value: &str, allowed: &str) -> String {
    let value = if value.is_empty() { String::new() } else { format!(" = {value}") };
    format!("{key}{value}: not allowed; allowed: {allowed}")
}

fn hinted(text: String, hint: &str) -> String {
    if hint.is_empty() { text } else { format!("{text}; hint: {hint}") }
}
