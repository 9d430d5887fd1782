//! Writes captures: raw IP, times in nanoseconds, little-endian on every machine.

use std::io::{self, Write};

/// A format of captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Classic pcap, with the magic number of nanoseconds. Times end in 2106.
    Pcap,
    /// pcapng: one section, one interface.
    Pcapng,
}

const RAW_IP: u16 = 101;
const SNAPLEN: u32 = 65_535;

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
            Format::Pcapng => {
                let unknown_length = u64::MAX.to_le_bytes();
                block(
                    &mut out,
                    0x0a0d_0d0a,
                    &[
                        &0x1a2b_3c4d_u32.to_le_bytes(),
                        &[1, 0, 0, 0], // version 1.0
                        &unknown_length,
                    ],
                )?;
                block(
                    &mut out,
                    1,
                    &[
                        &RAW_IP.to_le_bytes(),
                        &[0, 0],
                        &SNAPLEN.to_le_bytes(),
                        &[9, 0, 1, 0, 9, 0, 0, 0], // if_tsresol: ns
                        &[0; 4],                   // the end of options
                    ],
                )?;
            }
        }
        Ok(Self { out, format })
    }

    /// Writes a packet of `len` bytes, of which `head` is kept (at most 65 535 bytes), at `time` in
    /// ns since 1970.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn packet(&mut self, time: u64, len: u32, head: &[u8]) -> io::Result<()> {
        let kept = (head.len() as u32).to_le_bytes();
        let len = len.to_le_bytes();
        match self.format {
            Format::Pcap => {
                for part in [time / 1_000_000_000, time % 1_000_000_000] {
                    self.out.write_all(&(part as u32).to_le_bytes())?;
                }
                self.out.write_all(&kept)?;
                self.out.write_all(&len)?;
                self.out.write_all(head)
            }
            Format::Pcapng => {
                let [high, low] = [(time >> 32) as u32, time as u32].map(u32::to_le_bytes);
                block(&mut self.out, 6, &[&[0; 4], &high, &low, &kept, &len, head])
            }
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

/// A block of pcapng: the parts of its body, padded to whole words, between its type and lengths.
fn block(out: &mut impl Write, kind: u32, body: &[&[u8]]) -> io::Result<()> {
    let length: usize = body.iter().map(|part| part.len()).sum();
    let padding = length.next_multiple_of(4) - length;
    let total = ((length + padding + 12) as u32).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&total)?;
    for part in body {
        out.write_all(part)?;
    }
    out.write_all(&[0; 3][..padding])?;
    out.write_all(&total)
}
