//! Arrivals at the gateway's queues, recorded, and replayed in the simulator's queue.
//!
//! The recording holds all that a queue's decisions depend on: the links' specifications, the seeds, and each
//! arrival. Everything else follows, since a [`crate::link::Link`] does what is due as of its own instant. A
//! replay drives the simulator's link, not the gateway's, and comes to the same decision hash.
//!
//! The file, numbers little-endian, `varint` being LEB128:
//!
//! ```text
//! "bwarr" 0 0 1                    the last byte is the version, 2 if a queue asks for more of a
//!                                  packet than its flow, 4 if one filters acknowledgements
//! u32, JSON of that length         the links: {"queues": [up, down]}
//! for each arrival:
//!   varint                         ns since the arrival before (the first: since time 0)
//!   varint                         length in bytes × 8 + direction (0 up, 1 down) × 4 + ECN field
//!   u32                            flow key; from version 2 on u64, with its codepoint (6 bits, the
//!                                  uppermost) and hashes of the hosts from and to (13 bits each)
//!   five bytes                     version 4: what it acknowledges, as `aqm::Ack` writes it: u32, the
//!                                  number; flags. (Version 3 had 12 bits of the number.)
//! at the end, if it was reached:
//!   varint                         ns since the last arrival
//!   varint 0
//!   u32, JSON of that length       {"decision_hash": [up, down]}
//! ```

mod format;
mod recording;
mod replay;

use std::io::{self, Write};

use aqm::{Ack, Meta};
use link::{Impairments, Steps};
use serde::Serialize;
use serde_json::{Value, json};

use crate::io::forward::Tap;
use crate::link::Spec;
use crate::report::setting;

use format::{LONGEST_VARINT, Version, write_json, write_varint};
pub(crate) use recording::links;
pub use recording::{Entry, Recording};
pub use replay::{Allowed, Listener, Replay, Replayed, replay};

/// All that the links are, as the head of a recording has it; [`links`] reads it.
pub(crate) fn described(specs: &[Spec; 2]) -> Value {
    let one = |name: &str, spec: &Spec| {
        let mut all = setting(name, spec);
        let Impairments { delay, losses, .. } = &spec.impairments;
        all["header"] = spec.header.into();
        // As text, for the same reason as losses.
        if let Some(classes) = &spec.classes {
            all["tree"] = classes.tree.to_toml().into();
        }
        all["courses"] = json!({
            "rate": course(spec.sending.rates.as_deref()),
            "delay": course(delay.as_deref()),
            // As text: JSON's numbers are not read back to the last bit.
            "loss": course(losses.as_deref().map(|losses| losses.map(|p| p.to_string())).as_ref()),
        });
        all
    };
    json!({"queues": [one("up", &specs[0]), one("down", &specs[1])]})
}

/// Writes a recording, each part of it with one `write`.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    out: W,
    version: Version,
    /// Time of the last arrival, ns.
    last: u64,
}

impl<W: Write> Recorder<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(mut out: W, specs: &[Spec; 2]) -> io::Result<Self> {
        let version = Version::of(specs);
        let mut head = version.magic().to_vec();
        write_json(&mut head, &described(specs))?;
        out.write_all(&head)?;
        Ok(Self { out, version, last: 0 })
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

    fn write(&mut self, direction: usize, meta: &Meta, ack: Ack) -> io::Result<()> {
        let now = meta.arrived.as_nanos();
        let head = u64::from(meta.len) << 3 | (direction as u64) << 2 | meta.ecn as u64;
        let mut entry = [0; 2 * LONGEST_VARINT + 8 + 5];
        let mut rest = &mut entry[..];
        write_varint(&mut rest, now - self.last)?;
        write_varint(&mut rest, head)?;
        rest.write_all(&meta.flow.0.to_le_bytes()[..self.version.key()])?;
        if self.version == Version::Acks {
            rest.write_all(&ack.to_bytes())?;
        }
        let unused = rest.len();
        self.last = now;
        self.out.write_all(&entry[..entry.len() - unused])
    }
}

impl<W: Write> Tap for Recorder<W> {
    fn arrived(&mut self, direction: usize, meta: &Meta, ack: Ack) {
        // The writer counts lost records.
        _ = self.write(direction, meta, ack);
    }
}

/// Values over time, to be read again.
fn course<T: Clone + Serialize>(steps: Option<&Steps<T>>) -> Option<Value> {
    let steps = steps?;
    let rows: Vec<(u64, T)> = steps.rows().collect();
    Some(json!({"rows": rows, "repeats": steps.period().is_some()}))
}

/// Hands everything to a recorder, if there is one.
impl<T: Tap> Tap for Option<T> {
    fn arrived(&mut self, direction: usize, meta: &Meta, ack: Ack) {
        if let Some(tap) = self {
            tap.arrived(direction, meta, ack);
        }
    }
}

#[cfg(test)]
mod tests;
