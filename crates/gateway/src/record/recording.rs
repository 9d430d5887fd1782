//! A recording that is read.

use std::io::{self, BufRead};

use std::str::FromStr;
use std::sync::Arc;

use aqm::{Ack, Duration, Ecn, FlowKey, Instant, Limit, Meta, Size};
use link::{Impairments, Sending, Steps};
use scenario::tree::TreeSpec;
use scenario::varies::Probability;
use serde_json::Value;

use super::format::{Version, broken, read_json, read_varint};
use crate::direction::DIRECTIONS;
use crate::link::{Bucket, Classes, Spec};
use crate::options::MEAN_PACKETS;

/// A recording that is being read.
#[derive(Debug)]
pub struct Recording<R: BufRead> {
    input: R,
    version: Version,
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
    Arrival(usize, Meta, Ack),
    /// The end at a time (ns), and the decision hashes.
    End(u64, [String; 2]),
    /// It breaks off here: the recording gateway was killed, or the disk was full.
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
        if magic[..5] != Version::Keys.magic()[..5] {
            return Err(broken("this is no recording of arrivals"));
        }
        let known = Version::ALL.into_iter().find(|v| v.magic() == magic);
        let version = known.ok_or_else(|| broken("this recording is of another version"))?;
        let head = read_json(&mut input).map_err(short)?;
        let specs = links(&head).map_err(|why| broken(&why))?;
        Ok(Self { specs, input, version, now: 0, ended: false })
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
        let mut flow = [0; 8];
        self.input.read_exact(&mut flow[..self.version.key()])?;
        let mut ack = [0; 5];
        if self.version == Version::Acks {
            self.input.read_exact(&mut ack)?;
        }
        self.now = now;
        let len =
            u16::try_from(head >> 3).map_err(|_| broken("a packet of more than 65535 bytes"))?;
        let meta = Meta {
            arrived: Instant::from_nanos(self.now),
            flow: FlowKey(u64::from_le_bytes(flow)),
            len: len.into(),
            ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][(head & 3) as usize],
        };
        Ok(Entry::Arrival((head >> 2 & 1) as usize, meta, Ack::from_bytes(ack)))
    }
}

/// The longest recording: 30 years, ns.
const LONGEST_TIME: u64 = 30 * 365 * 86_400 * 1_000_000_000;

/// The links from what [`super::described`] made of them.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn links(head: &Value) -> Result<[Spec; 2], String> {
    let link = |i: usize| -> Result<Spec, String> {
        let value = &head["queues"][i];
        let classes = classes(value, i == 1)?;
        let spec = spec(value).ok_or("no links in its head")?;
        Ok(Spec { classes, ..spec })
    };
    Ok([link(0)?, link(1)?])
}

/// A link's settings, without classes, from what `setting` made of them.
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
        sending: Sending {
            rates: course(&value["courses"]["rate"], Value::as_u64)?,
            framing: some(&value["framing"])?,
            ..Sending::default()
        },
        header: u8::try_from(value["header"].as_u64().unwrap_or_default()).ok()?,
        impairments: Impairments {
            delay: course(&value["courses"]["delay"], Value::as_u64)?,
            jitter: some::<Duration>(&value["jitter"])?.as_nanos(),
            reorder: value["reorder"].as_bool().unwrap_or_default(),
            loss: some(&value["loss"])?,
            losses: course(&value["courses"]["loss"], |p| p.as_str()?.parse().ok())?,
            duplicate: some::<Probability>(&value["duplicate"])?.0,
            corrupt: some::<Probability>(&value["corrupt"])?.0,
        },
        told_rate: value["told_rate"].as_bool().unwrap_or_default(),
        wash: value["wash"].as_bool().unwrap_or_default(),
        policer: bucket(&value["policer"])?,
        shaper: bucket(&value["shaper"])?,
        peak: bucket(&value["shaper_peak"])?,
        classes: None,
        named: 0,
    })
}

/// A tree of classes, if there is one.
fn classes(link: &Value, down: bool) -> Result<Option<Arc<Classes>>, String> {
    let tree = &link["tree"];
    if tree.is_null() {
        return Ok(None);
    }
    let head = || format!("the classes of the way {} in its head", DIRECTIONS[usize::from(down)]);
    let name = link["classes_file"].as_str().map_or_else(head, String::from);
    let text = tree.as_str().ok_or_else(|| format!("{name}: no text"))?;
    let tree = TreeSpec::from_toml(text, &name).map_err(|e| e.to_string())?;
    Ok(Some(Arc::new(Classes { tree, down })))
}

/// A policer, a shaper or its peak, if there is one.
fn bucket(value: &Value) -> Option<Option<Bucket>> {
    if value.is_null() {
        return Some(None);
    }
    let [rate, burst] = [value["rate"].as_str()?, value["burst"].as_str()?];
    Some(Some(Bucket { rate: rate.parse().ok()?, burst: burst.parse().ok()? }))
}

/// A setting that is written only where it does something.
fn some<T: FromStr + Default>(value: &Value) -> Option<T> {
    if value.is_null() { Some(T::default()) } else { value.as_str()?.parse().ok() }
}

/// Values over time, as [`super::course`] writes them.
fn course<T: Copy>(value: &Value, one: fn(&Value) -> Option<T>) -> Option<Option<Arc<Steps<T>>>> {
    if value.is_null() {
        return Some(None);
    }
    let rows = value["rows"].as_array()?.iter();
    let rows: Option<Vec<_>> = rows.map(|row| Some((row[0].as_u64()?, one(&row[1])?))).collect();
    let steps = Steps::new(&rows?, value["repeats"].as_bool()?)?;
    let in_time = steps.rows().all(|row| row.0 <= LONGEST_TIME);
    in_time.then(|| Some(Arc::new(steps)))
}
