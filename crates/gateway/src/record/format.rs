//! The parts that a recording is made of.

use std::io::{self, BufRead, Read as _, Write};

use serde_json::Value;

use crate::link::Spec;

/// How an arrival refers to its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    /// Its key.
    Keys = 1,
    /// With codepoint and hosts.
    Labels = 2,
    /// With what the packet acknowledges, too.
    Acks = 4,
}

impl Version {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Keys, Self::Labels, Self::Acks];

    /// For what the queues ask for.
    pub(super) fn of(specs: &[Spec; 2]) -> Self {
        match specs {
            _ if specs.iter().any(Spec::asks_for_acks) => Self::Acks,
            _ if specs.iter().any(Spec::asks_for_labels) => Self::Labels,
            _ => Self::Keys,
        }
    }

    /// What a recording begins with.
    pub(super) fn magic(self) -> [u8; 8] {
        [b'b', b'w', b'a', b'r', b'r', 0, 0, self as u8]
    }

    /// Bytes of a key.
    pub(super) fn key(self) -> usize {
        if self == Self::Keys { 4 } else { 8 }
    }
}

pub(super) fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Bytes of the longest number.
pub(super) const LONGEST_VARINT: usize = 10;

pub(super) fn write_varint(out: &mut impl Write, mut value: u64) -> io::Result<()> {
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

pub(super) fn read_varint(input: &mut impl BufRead) -> io::Result<u64> {
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

pub(super) fn write_json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    let text = value.to_string();
    if text.len() > LONGEST_JSON as usize {
        return Err(broken(
            "what varies over time has too many steps, or there are too many classes, to be recorded",
        ));
    }
    out.write_all(&(text.len() as u32).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

/// The longest JSON in a recording, bytes: values over time are in its head.
pub(super) const LONGEST_JSON: u32 = 1 << 23;

pub(super) fn read_json(input: &mut impl BufRead) -> io::Result<Value> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST_JSON {
        return Err(broken("its head is too long"));
    }
    let mut text = Vec::new();
    if input.take(length.into()).read_to_end(&mut text)? < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&text)?)
}
