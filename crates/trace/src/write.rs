//! Writes captures: raw IP, times in nanoseconds, little-endian on every machine.

use std::io::{self, Write};

use crate::pcapng::{self, RAW_IP, SNAPLEN, Way};

/// A format of captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Classic pcap, with the magic number of nanoseconds. Times end in 2106.
    Pcap,
    /// pcapng: one section, one interface.
    Pcapng,
}

/// Writes packets.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    format: Format,
}

impl<W: Write> Writer<W> {
    /// Writes the head of a capture.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(mut out: W, format: Format) -> io::Result<Self> {
        match format {
            Format::Pcap => {
                out.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
                for half in [2u16, 4] {
                    out.write_all(&half.to_le_bytes())?; // version 2.4
                }
                for word in [0, 0, SNAPLEN, RAW_IP.into()] {
                    out.write_all(&u32::to_le_bytes(word))?;
                }
            }
            Format::Pcapng => pcapng::head(&mut out, RAW_IP, "")?,
        }
        Ok(Self { out, format })
    }

    /// Writes a packet of `len` bytes, of which `head` is kept (at most 65 535 bytes), at `time` in
    /// ns since 1970.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn packet(&mut self, time: u64, len: u32, head: &[u8]) -> io::Result<()> {
        match self.format {
            Format::Pcap => {
                for part in [time / 1_000_000_000, time % 1_000_000_000] {
                    self.out.write_all(&(part as u32).to_le_bytes())?;
                }
                self.out.write_all(&(head.len() as u32).to_le_bytes())?;
                self.out.write_all(&len.to_le_bytes())?;
                self.out.write_all(head)
            }
            Format::Pcapng => pcapng::packet(&mut self.out, time, len, head, (Way::Unknown, "")),
        }
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
