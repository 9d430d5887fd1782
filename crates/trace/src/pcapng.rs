//! The blocks of pcapng, to be written: one section of interfaces with times in nanoseconds,
//! little-endian on every machine.

use std::io::{self, Write};

/// The most bytes of a packet that are kept.
pub(crate) const SNAPLEN: u32 = 65_535;

/// Writes what comes first: the section, and interfaces of `link_type` by their names, which may be
/// empty.
///
/// # Errors
/// When it cannot be written.
pub fn head(out: &mut impl Write, link_type: u16, interfaces: &[&str]) -> io::Result<()> {
    let byte_order = 0x1a2b_3c4d_u32.to_le_bytes();
    let unknown_length = u64::MAX.to_le_bytes();
    block(out, 0x0a0d_0d0a, &[&byte_order, &[1, 0, 0, 0], &unknown_length], &[])?;
    for name in interfaces {
        let options: [&[u8]; 5] = [
            &option(2, name.len()), // if_name
            name.as_bytes(),
            padding(name.len()),
            &[9, 0, 1, 0, 9, 0, 0, 0], // if_tsresol: ns
            &END,
        ];
        let options = if name.is_empty() { &options[3..] } else { &options };
        block(out, 1, &[&link_type.to_le_bytes(), &[0; 2], &SNAPLEN.to_le_bytes()], options)?;
    }
    Ok(())
}

/// Writes a packet of `len` bytes, of which `kept` are (at most 65 535), at an interface by its
/// number, at `time` in ns since 1970. The parts of the comment are put together; without them there
/// is none.
///
/// # Errors
/// When it cannot be written.
pub fn packet(
    out: &mut impl Write,
    (interface, time): (u32, u64),
    len: u32,
    kept: &[u8],
    comment: [&str; 2],
) -> io::Result<()> {
    let length = comment[0].len() + comment[1].len();
    let options: [&[u8]; 5] =
        [&option(1, length), comment[0].as_bytes(), comment[1].as_bytes(), padding(length), &END];
    let options: &[_] = if length == 0 { &[] } else { &options };
    let words = [interface, (time >> 32) as u32, time as u32, kept.len() as u32, len];
    let [interface, high, low, kept_len, len] = words.map(u32::to_le_bytes);
    let body: [&[u8]; 7] = [&interface, &high, &low, &kept_len, &len, kept, padding(kept.len())];
    block(out, 6, &body, options)
}

/// The end of options.
const END: [u8; 4] = [0; 4];

/// The head of an option.
fn option(code: u16, length: usize) -> [u8; 4] {
    (u32::from(code) | (length as u32) << 16).to_le_bytes()
}

/// What fills `length` bytes up to whole words.
fn padding(length: usize) -> &'static [u8] {
    &[0; 3][..length.next_multiple_of(4) - length]
}

/// A block: a body and options, both of whole words, between its type and lengths.
fn block(out: &mut impl Write, kind: u32, body: &[&[u8]], options: &[&[u8]]) -> io::Result<()> {
    let parts = || body.iter().chain(options);
    let length: usize = parts().map(|part| part.len()).sum();
    debug_assert!(length.is_multiple_of(4));
    let total = (length as u32 + 12).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&total)?;
    parts().try_for_each(|part| out.write_all(part))?;
    out.write_all(&total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_parser::traits::PcapNGPacketBlock as _;
    use pcap_parser::traits::PcapReaderIterator as _;
    use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapError, PcapNGReader};

    /// What a reader that is not ours finds: the names of interfaces; and interface, time, length,
    /// bytes and comment of each packet.
    #[expect(clippy::type_complexity, reason = "a row of what is compared")]
    fn read(file: &[u8]) -> (Vec<String>, Vec<(u32, u64, u32, Vec<u8>, String)>) {
        let mut reader = PcapNGReader::new(65536, file).unwrap();
        let (mut names, mut found) = (Vec::new(), Vec::new());
        let text = |options: &[pcap_parser::PcapNGOption<'_>], code| {
            let option = options.iter().find(|o| o.code == code);
            let value = option.map(|o| &o.value[..usize::from(o.len)]);
            String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
        };
        loop {
            match reader.next() {
                Ok((used, block)) => {
                    match &block {
                        PcapBlockOwned::NG(Block::InterfaceDescription(i)) => {
                            names.push(text(&i.options, OptionCode(2)));
                        }
                        PcapBlockOwned::NG(Block::EnhancedPacket(p)) => {
                            let time = u64::from(p.ts_high) << 32 | u64::from(p.ts_low);
                            let comment = text(&p.options, OptionCode::Comment);
                            let data = p.packet_data().to_vec();
                            found.push((p.if_id, time, p.origlen, data, comment));
                        }
                        _ => {}
                    }
                    reader.consume(used);
                }
                Err(PcapError::Eof) => return (names, found),
                Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
                Err(e) => panic!("{e:?}"),
            }
        }
    }

    #[test]
    fn another_reader_finds_what_was_written() {
        let mut file = Vec::new();
        head(&mut file, 1, &["up", "down", ""]).unwrap();
        let cases = [
            (0, 5, 3, vec![1, 2, 3], ["dropped: ", "overflow"]),
            (1, 1 << 40, 1500, vec![4; 60], ["marked: ", "early"]),
            (1, u64::MAX, 0, vec![], ["x", ""]),
            (2, 7, 1501, vec![9; 1501], ["", ""]),
        ];
        for (interface, time, len, frame, comment) in &cases {
            packet(&mut file, (*interface, *time), *len, frame, *comment).unwrap();
        }
        let (names, found) = read(&file);
        assert_eq!(names, ["up", "down", ""]);
        let expected = cases.map(|(i, t, len, frame, words)| (i, t, len, frame, words.concat()));
        assert_eq!(found, expected);
    }
}
