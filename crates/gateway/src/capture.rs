//! A sample of the packets with what became of each, as pcapng: Wireshark and its like show the
//! cause of a drop or a mark as the packet's comment.
//!
//! The packets of both ways are in one file, each way as an interface of its own. A sampled packet
//! is there once: when it is dropped, or when it comes out of the wire.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aqm::Cause;

use crate::forward::DIRECTIONS;
use crate::frame::Layer;
use crate::trouble::Trouble;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It was delivered as it came.
    Delivered,
    /// It was delivered with a mark of this queue.
    Marked(Cause),
    /// It was dropped.
    Dropped(Cause),
}

/// Writes the packets of one way.
#[derive(Clone, Debug)]
pub struct Capture {
    file: Arc<Mutex<Sink>>,
    interface: u32,
    /// One packet of so many.
    every: u32,
    /// Time 0, ns since 1970.
    epoch: u64,
}

#[derive(Debug)]
struct Sink {
    out: BufWriter<File>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

impl Capture {
    /// Begins a file with one packet of `every`, for both ways between ports of `layer`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, every: u32, layer: Layer, epoch: u64) -> Result<[Self; 2], Trouble> {
        let failed = |e: io::Error| Trouble::system(path.display(), e);
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        head(&mut out, layer).map_err(failed)?;
        let file = Arc::new(Mutex::new(Sink { out, error: None }));
        Ok([0, 1].map(|interface| Self { file: Arc::clone(&file), interface, every, epoch }))
    }

    /// Packet number `seq` and what became of it at `now` (ns).
    #[inline]
    pub(crate) fn packet(&self, seq: u32, now: u64, frame: &[u8], fate: Fate) {
        if seq.is_multiple_of(self.every) {
            self.write(now, frame, fate);
        }
    }

    fn write(&self, now: u64, frame: &[u8], fate: Fate) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.error.is_none() {
            let time = self.epoch.saturating_add(now);
            file.error = packet(&mut file.out, self.interface, time, frame, fate).err();
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When this or anything before could not be written.
    pub fn end(self) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.error.take().map_or(Ok(()), Err)?;
        file.out.flush()
    }
}

/// Section header, and an interface for each way.
fn head(out: &mut impl Write, layer: Layer) -> io::Result<()> {
    let link_type: u16 = match layer {
        Layer::Ethernet => 1,
        Layer::Ip => 101,
    };
    let byte_order = 0x1a2b_3c4d_u32.to_le_bytes();
    block(out, 0x0a0d_0d0a, &[&byte_order, &[1, 0, 0, 0], &u64::MAX.to_le_bytes()])?;
    for name in DIRECTIONS {
        let mut options = Vec::new();
        option(&mut options, 2, name.as_bytes())?; // if_name
        option(&mut options, 9, &[9])?; // if_tsresol: ns
        option(&mut options, 0, &[])?;
        block(out, 1, &[&link_type.to_le_bytes(), &[0; 6], &options])?;
    }
    Ok(())
}

/// An enhanced packet block.
fn packet(
    out: &mut impl Write,
    interface: u32,
    time: u64,
    frame: &[u8],
    fate: Fate,
) -> io::Result<()> {
    let (verb, cause) = match fate {
        Fate::Delivered => ("", ""),
        Fate::Marked(cause) => ("marked: ", cause.name()),
        Fate::Dropped(cause) => ("dropped: ", cause.name()),
    };
    let mut comment = [0; 32];
    let length = verb.len() + cause.len();
    comment[..verb.len()].copy_from_slice(verb.as_bytes());
    comment[verb.len()..length].copy_from_slice(cause.as_bytes());
    let code_and_length = (1 | (length as u32) << 16).to_le_bytes();
    let options: [&[u8]; 3] = match fate {
        Fate::Delivered => [&[], &[], &[]],
        _ => [&code_and_length, &comment[..length.next_multiple_of(4)], &[0; 4]],
    };
    let [high, low] = [(time >> 32) as u32, time as u32].map(u32::to_le_bytes);
    let len = (frame.len() as u32).to_le_bytes();
    let padding = frame.len().next_multiple_of(4) - frame.len();
    let body: [&[u8]; 10] = [
        &interface.to_le_bytes(),
        &high,
        &low,
        &len,
        &len,
        frame,
        &[0; 3][..padding],
        options[0],
        options[1],
        options[2],
    ];
    block(out, 6, &body)
}

/// An option: its code, its length, and its value, filled up to whole words.
fn option(out: &mut impl Write, code: u16, value: &[u8]) -> io::Result<()> {
    out.write_all(&code.to_le_bytes())?;
    out.write_all(&(value.len() as u16).to_le_bytes())?;
    out.write_all(value)?;
    out.write_all(&[0; 3][..value.len().next_multiple_of(4) - value.len()])
}

/// A block of pcapng: a body of whole words between its type and lengths.
fn block(out: &mut impl Write, kind: u32, body: &[&[u8]]) -> io::Result<()> {
    let length: usize = body.iter().map(|part| part.len()).sum();
    debug_assert!(length.is_multiple_of(4));
    let total = (length as u32 + 12).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&total)?;
    body.iter().try_for_each(|part| out.write_all(part))?;
    out.write_all(&total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_parser::traits::PcapNGPacketBlock as _;
    use pcap_parser::traits::PcapReaderIterator as _;
    use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapError, PcapNGReader};

    /// What a reader that is not ours finds: interface, time, bytes and comment of each packet.
    fn read(file: &[u8]) -> Vec<(u32, u64, Vec<u8>, String)> {
        let mut reader = PcapNGReader::new(65536, file).unwrap();
        let mut found = Vec::new();
        loop {
            match reader.next() {
                Ok((used, block)) => {
                    if let PcapBlockOwned::NG(Block::EnhancedPacket(p)) = &block {
                        let time = u64::from(p.ts_high) << 32 | u64::from(p.ts_low);
                        let comment = p.options.iter().find(|o| o.code == OptionCode::Comment);
                        let comment = comment.map(|o| &o.value[..usize::from(o.len)]);
                        let comment = String::from_utf8_lossy(comment.unwrap_or_default());
                        found.push((p.if_id, time, p.packet_data().to_vec(), comment.into()));
                    }
                    reader.consume(used);
                }
                Err(PcapError::Eof) => return found,
                Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
                Err(e) => panic!("{e:?}"),
            }
        }
    }

    #[test]
    fn another_reader_finds_what_was_written() {
        let mut file = Vec::new();
        head(&mut file, Layer::Ethernet).unwrap();
        let cases = [
            (0, 5, vec![1, 2, 3], Fate::Dropped(Cause::Overflow), "dropped: overflow"),
            (1, 1 << 40, vec![4; 60], Fate::Marked(Cause::Early), "marked: early"),
            (1, u64::MAX, vec![], Fate::Dropped(Cause::Penalty), "dropped: penalty"),
            (0, 7, vec![9; 1501], Fate::Delivered, ""),
        ];
        for (interface, time, frame, fate, _) in &cases {
            packet(&mut file, *interface, *time, frame, *fate).unwrap();
        }
        let expected: Vec<_> =
            cases.into_iter().map(|(i, t, frame, _, words)| (i, t, frame, words.into())).collect();
        assert_eq!(read(&file), expected);
    }
}
