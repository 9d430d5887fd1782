//! The blocks of pcapng, to be written: one section with times in nanoseconds,
//! little-endian on every machine.

use std::io::{self, Write};

/// The most bytes of a packet that are kept.
pub(crate) const SNAPLEN: u32 = 65_535;

/// The link type of packets that begin with their IP header.
pub const RAW_IP: u16 = 101;

/// Which way a packet went, as its flags say it (`epb_flags`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Not known: no flags.
    Unknown,
    /// Inbound.
    In,
    /// Outbound.
    Out,
}

/// Writes what comes first: the section, and its only interface by its name, which may be empty.
///
/// One interface, not one each way: of several libpcap (1.10) compares the numbers of their link types
/// as they stand in the file with the first one's as it calls it itself, which for raw IP is another
/// (101 and 12), and so refuses the second.
///
/// # Errors
/// When it cannot be written.
pub fn head(out: &mut impl Write, link_type: u16, name: &str) -> io::Result<()> {
    let byte_order = 0x1a2b_3c4d_u32.to_le_bytes();
    let unknown_length = u64::MAX.to_le_bytes();
    block(out, 0x0a0d_0d0a, &[&byte_order, &[1, 0, 0, 0], &unknown_length], &[])?;
    let options: [&[u8]; 5] = [
        &option(2, name.len()), // if_name
        name.as_bytes(),
        padding(name.len()),
        &[9, 0, 1, 0, 9, 0, 0, 0], // if_tsresol: ns
        &END,
    ];
    let options = if name.is_empty() { &options[3..] } else { &options };
    block(out, 1, &[&link_type.to_le_bytes(), &[0; 2], &SNAPLEN.to_le_bytes()], options)
}

/// Writes a packet of `len` bytes, of which `kept` are (at most 65 535), at `time` in ns since 1970,
/// with the way that it went and a comment, if that is not empty.
///
/// # Errors
/// When it cannot be written.
pub fn packet(
    out: &mut impl Write,
    time: u64,
    len: u32,
    kept: &[u8],
    (way, comment): (Way, &str),
) -> io::Result<()> {
    let length = comment.len();
    let options: [&[u8]; 5] = [
        &[2, 0, 4, 0, way as u8, 0, 0, 0], // epb_flags
        &option(1, length),
        comment.as_bytes(),
        padding(length),
        &END,
    ];
    let options = match (way, length) {
        (Way::Unknown, 0) => &[],
        (Way::Unknown, _) => &options[1..],
        (_, 0) => &[options[0], &END][..],
        _ => &options,
    };
    let words = [0, (time >> 32) as u32, time as u32, kept.len() as u32, len];
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

    /// What a reader that is not ours finds: the names of interfaces; and time, length, bytes, flags
    /// and comment of each packet.
    #[expect(clippy::type_complexity, reason = "a row of what is compared")]
    fn read(file: &[u8]) -> (Vec<String>, Vec<(u64, u32, Vec<u8>, u32, String)>) {
        let mut reader = PcapNGReader::new(65536, file).unwrap();
        let (mut names, mut found) = (Vec::new(), Vec::new());
        let value = |options: &[pcap_parser::PcapNGOption<'_>], code| {
            let option = options.iter().find(|o| o.code == code);
            option.map(|o| o.value[..usize::from(o.len)].to_vec()).unwrap_or_default()
        };
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        loop {
            match reader.next() {
                Ok((used, block)) => {
                    match &block {
                        PcapBlockOwned::NG(Block::InterfaceDescription(i)) => {
                            names.push(text(value(&i.options, OptionCode(2))));
                        }
                        PcapBlockOwned::NG(Block::EnhancedPacket(p)) => {
                            let time = u64::from(p.ts_high) << 32 | u64::from(p.ts_low);
                            let comment = text(value(&p.options, OptionCode::Comment));
                            let flags = value(&p.options, OptionCode(2));
                            let flags = flags.try_into().map_or(0, u32::from_le_bytes);
                            found.push((time, p.origlen, p.packet_data().to_vec(), flags, comment));
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
        for name in ["link", ""] {
            let mut file = Vec::new();
            head(&mut file, 1, name).unwrap();
            let cases = [
                (5, 3, vec![1, 2, 3], Way::Out, "dropped: overflow"),
                (1 << 40, 1500, vec![4; 60], Way::In, "marked: early"),
                (u64::MAX, 0, vec![], Way::Unknown, "x"),
                (7, 1501, vec![9; 1501], Way::Unknown, ""),
                (8, 4, vec![9; 4], Way::In, ""),
            ];
            for (time, len, frame, way, comment) in &cases {
                packet(&mut file, *time, *len, frame, (*way, comment)).unwrap();
            }
            let (names, found) = read(&file);
            assert_eq!(names, [name]);
            // Bits 0 and 1: 1 is inbound, 2 outbound.
            let number = |way| {
                [(Way::Unknown, 0), (Way::In, 1), (Way::Out, 2)]
                    .into_iter()
                    .find_map(|(w, n)| (w == way).then_some(n))
                    .unwrap()
            };
            let expected = cases.map(|(t, l, frame, way, c)| (t, l, frame, number(way), c.into()));
            assert_eq!(found, expected);
        }
    }
}
