//! Reads captures: classic pcap (microseconds or nanoseconds) and pcapng, of either byte order.
//!
//! Of each packet the header is enough: its first [`HEAD`] bytes are looked at and the rest is
//! passed over, as is every block that holds no packet, whatever its length. So memory does not
//! depend on the file. A packet's length is the one that it had on the wire, also where the
//! capture kept less of it.
//!
//! A file may be cut, damaged or hostile. An error names its place; all packets before it have been read by
//! then, and none is read after it.
//!
//! Time is that of the file's first packet on, and never runs back: a packet that is recorded as
//! earlier than one before it counts as simultaneous with that one, and in
//! [`Capture::reordered`]. So does one that is stamped ahead: more than [`AHEAD`] later than the packet
//! before it, and more than [`SET_BACK`] later than the one behind it. One that is recorded as more than
//! [`SET_BACK`] earlier, or more than [`SET_AHEAD`] later, tells that the clock was set: it counts as
//! simultaneous as well, and the gaps behind it are as recorded. pcapng's Simple Packet Blocks have no time; theirs is that of the packet
//! before.

use std::fmt;
use std::io::{self, BufReader, Read};

use wire::{Headers, Layer, Likeness};

/// The bytes of a packet that are looked at.
pub const HEAD: usize = 4096;
/// The most interfaces of one section of a pcapng file.
pub const MAX_INTERFACES: usize = 65_536;
/// The longest packet that a classic pcap may hold if its head announces no longer ones: what
/// tcpdump captures at most.
pub const MAX_PACKET: u32 = 262_144;

/// Packets out of order are closer than this, ns; if one is earlier by more, the clock was set back.
pub const SET_BACK: u64 = 100_000_000;
/// If a packet is later by more, ns, the one behind it tells whether it was stamped ahead.
pub const AHEAD: u64 = 1_000_000_000;
/// No link is silent for so long, ns; if a packet is later by more, the clock was set ahead.
pub const SET_AHEAD: u64 = 24 * 3_600_000_000_000;

/// The longest frame of Ethernet, with two VLAN tags, bytes.
pub const LONGEST_FRAME: u32 = 1522;

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// When, in ns since the first packet.
    pub time: u64,
    /// Length on the wire in bytes, link layer included as far as the capture has it.
    pub len: u32,
    /// Whose it is, and its ECN field.
    pub headers: Headers,
    /// What a UDP datagram has at both ends of a path.
    pub likeness: Option<Likeness>,
}

/// What is wrong with a file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The file's name.
    pub file: String,
    /// Bytes before the record or block that cannot be read.
    pub offset: u64,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}: {}", self.file, self.offset, self.problem)
    }
}

impl std::error::Error for Error {}

/// A capture that is being read.
#[derive(Debug)]
pub struct Capture<R> {
    input: Input<R>,
    file: String,
    format: Format,
    /// The recorded time, ns, that stands for that of the last packet.
    recorded: Option<u64>,
    /// The time of the last packet, ns since the first.
    last: u64,
    reordered: u64,
    unread: u64,
    oversized: u64,
    silence: Silence,
    /// What was read to judge the packet before it.
    ahead: Option<Result<Option<Recorded>, Error>>,
    /// After the end, or after an error.
    ended: bool,
    head: Box<[u8; HEAD]>,
}

/// A packet with the time that the file has for it, ns since 1970.
#[derive(Debug)]
struct Recorded {
    time: Option<u64>,
    len: u32,
    headers: Headers,
    likeness: Option<Likeness>,
}

/// The longest time without a packet, ns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Silence {
    /// When it began, since the first packet.
    pub from: u64,
    /// How long it lasted.
    pub lasts: u64,
}

#[derive(Debug)]
enum Format {
    Pcap {
        big: bool,
        /// ns in the unit of the times' fraction.
        fraction: u64,
        /// Bytes of a record's head behind the usual ones: interface, protocol, kind (Kuznetzov's libpcap).
        more: u64,
        link: Link,
        longest: u32,
    },
    Pcapng {
        big: bool,
        interfaces: Vec<Interface>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Option<Link>,
    snaplen: u32,
    /// `if_tsresol`: a power of 10, or of 2 where the first bit is set.
    resolution: u8,
    /// `if_tsoffset`, s.
    offset: i64,
}

/// What a packet begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    Ethernet,
    Ip,
    /// Linux cooked, version 1: 14 bytes, then a type as in Ethernet.
    Cooked,
    /// Linux cooked, version 2: the type, then 18 bytes.
    Cooked2,
    /// The address family in four bytes, in an order that nothing tells.
    Loopback,
    /// PPP, with address and control before its protocol or without.
    Ppp,
    /// Netfilter's log: a head of 4 bytes, then attributes, of which one is the packet.
    Nflog,
    /// 802.11, behind a radiotap header if that is so.
    Wifi {
        radiotap: bool,
    },
}

const LINKS: &str = "Ethernet (1), raw IP (12, 14, 101, 228, 229), Linux cooked (113, 276), \
                     BSD loopback (0, 108), PPP (9, 50), NFLOG (239), 802.11 (105), radiotap (127)";

impl Link {
    fn new(number: u32) -> Option<Self> {
        Some(match number {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            9 | 50 => Self::Ppp,
            105 => Self::Wifi { radiotap: false },
            127 => Self::Wifi { radiotap: true },
            239 => Self::Nflog,
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            _ => return None,
        })
    }

    fn parse(self, head: &mut [u8]) -> (Headers, Option<Likeness>) {
        let (skip, layer) = match self {
            Self::Ethernet => (0, Layer::Ethernet),
            Self::Ip => (0, Layer::Ip),
            Self::Cooked => (2, Layer::Ethernet),
            Self::Cooked2 => {
                if head.len() >= 20 {
                    head.copy_within(0..2, 18);
                }
                (6, Layer::Ethernet)
            }
            Self::Loopback => (4, Layer::Ip),
            Self::Ppp => (behind_ppp(head).unwrap_or(head.len()), Layer::Ip),
            Self::Nflog => (behind_nflog(head).unwrap_or(head.len()), Layer::Ip),
            Self::Wifi { radiotap } => {
                (behind_wifi(head, radiotap).unwrap_or(head.len()), Layer::Ip)
            }
        };
        let frame = head.get(skip..).unwrap_or_default();
        (wire::parse(frame, layer), wire::likeness(frame, layer))
    }
}

/// Where IP begins behind PPP: address and control, which may be left out, and the protocol, in one byte
/// or two (RFC 1661 §5, RFC 1662 §3.1).
fn behind_ppp(head: &[u8]) -> Option<usize> {
    let at = if head.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
    match head.get(at..at + 2)? {
        [0x21 | 0x57, _] => Some(at + 1),
        [0x00, 0x21 | 0x57] => Some(at + 2),
        _ => None,
    }
}

/// Where the packet of a Netfilter log begins: attributes have a length, in the order of the host that
/// wrote it, and a type, of which 9 is the packet.
fn behind_nflog(head: &[u8]) -> Option<usize> {
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    loop {
        let [a, b, c, d] = *head.get(at..at + 4)? else { return None };
        // The type is small: whichever order makes it so.
        let big = d != 0 && c == 0;
        let two = |bytes| if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) };
        let (length, kind) = (usize::from(two([a, b])), two([c, d]));
        if kind == PAYLOAD {
            return Some(at + 4);
        }
        at += length.max(4).next_multiple_of(4);
    }
}

/// Whether the card filled up the head of 802.11 to four bytes: a flag of radiotap, behind the words that
/// say which fields there are and the time, which is aligned to its own length.
fn is_padded(head: &[u8]) -> Option<bool> {
    const TIME: u32 = 1;
    const FLAGS: u32 = 1 << 1;
    const MORE: u32 = 1 << 31;
    const PADDED: u8 = 0x20;
    let word = |at: usize| head.get(at..at + 4).map(|four| u32_at(four, 0, false));
    let present = word(4)?;
    let mut at = 8;
    while word(at - 4)? & MORE != 0 {
        at += 4;
    }
    if present & TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    Some(present & FLAGS != 0 && head.get(at)? & PADDED != 0)
}

/// Where IP begins in a data frame of 802.11 that is not encrypted, behind LLC and SNAP.
fn behind_wifi(head: &[u8], radiotap: bool) -> Option<usize> {
    let (at, padded) = if radiotap {
        (u16_at(head.get(..4)?, 2, false).into(), is_padded(head).unwrap_or(false))
    } else {
        (0, false)
    };
    let [control, flags] = *head.get(at..at + 2)? else { return None };
    let (data, has_data) = (control & 0x0c == 0x08, control & 0x40 == 0);
    let protected = flags & 0x40 != 0;
    if !data || !has_data || protected {
        return None;
    }
    let quality = control & 0x80 != 0;
    let four_addresses = flags & 3 == 3;
    let ordered = quality && flags & 0x80 != 0;
    let address =
        24 + 6 * usize::from(four_addresses) + 2 * usize::from(quality) + 4 * usize::from(ordered);
    let llc = at + if padded { address.next_multiple_of(4) } else { address };
    let kind = head.get(llc..llc + 8)?;
    let ip =
        matches!(kind, [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00] | [0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd]);
    ip.then_some(llc + 8)
}

/// What a record or block turned out to be.
enum Found {
    /// `looked_at` bytes of it are in the buffer.
    Packet {
        time: Option<u64>,
        len: u32,
        looked_at: usize,
        link: Option<Link>,
    },
    Other,
    End,
}

/// Why reading ends: the file's end within something, or what is wrong.
enum Stop {
    Cut,
    Bad(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Cut,
            _ => Self::Bad(error.to_string()),
        }
    }
}

fn bad<T>(problem: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Bad(problem.into()))
}

impl<R: Read> Capture<R> {
    /// Reads the head of a capture; `file` is its name in errors.
    ///
    /// # Errors
    /// When it is none, or none that can be read.
    pub fn new(input: R, file: &str) -> Result<Self, Error> {
        let mut input = Input { from: BufReader::with_capacity(1 << 18, input), offset: 0 };
        match begin(&mut input) {
            Ok(format) => Ok(Self {
                input,
                file: file.into(),
                format,
                recorded: None,
                last: 0,
                reordered: 0,
                unread: 0,
                oversized: 0,
                silence: Silence::default(),
                ahead: None,
                ended: false,
                head: Box::new([0; HEAD]),
            }),
            Err(stop) => Err(error(file, 0, stop)),
        }
    }

    /// The next packet; none at the end, and after an error.
    ///
    /// # Errors
    /// When the file goes on with something that cannot be read.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, Error> {
        let next = self.ahead.take().unwrap_or_else(|| self.read())?;
        let Some(Recorded { time, len, headers, likeness }) = next else { return Ok(None) };
        self.oversized += u64::from(len > LONGEST_FRAME);
        let time = match time {
            Some(recorded) if self.stamped_ahead(recorded) => {
                self.reordered += 1;
                self.last
            }
            recorded => self.since_origin(recorded),
        };
        Ok(Some(Packet { time, len, headers, likeness }))
    }

    fn read(&mut self) -> Result<Option<Recorded>, Error> {
        while !self.ended {
            let offset = self.input.offset;
            let found = match &mut self.format {
                &mut Format::Pcap { big, fraction, more, link, longest } => {
                    record(&mut self.input, (big, fraction, more), link, longest, &mut self.head)
                }
                Format::Pcapng { big, interfaces } => {
                    block(&mut self.input, big, interfaces, &mut self.head)
                }
            };
            match found {
                Ok(Found::Packet { time, len, looked_at, link: Some(link) }) => {
                    let (headers, likeness) = link.parse(&mut self.head[..looked_at]);
                    return Ok(Some(Recorded { time, len, headers, likeness }));
                }
                Ok(Found::Packet { link: None, .. }) => self.unread += 1,
                Ok(Found::Other) => {}
                Ok(Found::End) => self.ended = true,
                Err(stop) => {
                    self.ended = true;
                    return Err(error(&self.file, offset, stop));
                }
            }
        }
        Ok(None)
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.input.offset
    }

    /// Packets that the file has as earlier than one before them, as stamped ahead, or behind a clock that was
    /// set ahead.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Packets left out: they are from interfaces whose link layer is not known.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Packets longer than [`LONGEST_FRAME`]: jumbo frames, or several packets that a network card or the
    /// kernel had merged (LRO, GRO) or not yet cut (TSO, GSO) where they were recorded.
    pub fn oversized(&self) -> u64 {
        self.oversized
    }

    /// The longest time without a packet so far.
    pub fn silence(&self) -> Silence {
        self.silence
    }

    /// Whether the packet behind one of this time, itself no earlier than the one before, is much earlier.
    fn stamped_ahead(&mut self, recorded: u64) -> bool {
        let Some(before) = self.recorded.filter(|before| recorded.saturating_sub(*before) > AHEAD)
        else {
            return false;
        };
        let behind = self.read();
        let earlier = match &behind {
            Ok(Some(Recorded { time: Some(time), .. })) => {
                (before.saturating_sub(SET_BACK)..recorded - SET_BACK).contains(time)
            }
            _ => false,
        };
        self.ahead = Some(behind);
        earlier
    }

    fn since_origin(&mut self, recorded: Option<u64>) -> u64 {
        if let Some(recorded) = recorded {
            let before = *self.recorded.get_or_insert(recorded);
            match recorded.checked_sub(before) {
                Some(gap) if gap <= SET_AHEAD => {
                    if gap > self.silence.lasts {
                        self.silence = Silence { from: self.last, lasts: gap };
                    }
                    self.last += gap;
                    self.recorded = Some(recorded);
                }
                later_or_earlier => {
                    self.reordered += 1;
                    if later_or_earlier.is_some() || before - recorded > SET_BACK {
                        self.recorded = Some(recorded);
                    }
                }
            }
        }
        self.last
    }
}

fn error(file: &str, offset: u64, stop: Stop) -> Error {
    let problem = match stop {
        Stop::Cut => "the file ends in the middle of what begins here".into(),
        Stop::Bad(problem) => problem,
    };
    Error { file: file.into(), offset, problem }
}

/// Bytes, and how many have been taken.
#[derive(Debug)]
struct Input<R> {
    from: BufReader<R>,
    offset: u64,
}

impl<R: Read> Input<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.from.read_exact(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// The next bytes, or nothing where the file ends before the first of them.
    fn begin<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        loop {
            match self.from.read(&mut bytes[..1]) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.offset += 1;
        self.fill(&mut bytes[1..])?;
        Ok(Some(bytes))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Stop> {
        let skipped = io::copy(&mut self.from.by_ref().take(bytes), &mut io::sink())?;
        self.offset += skipped;
        if skipped < bytes { Err(Stop::Cut) } else { Ok(()) }
    }

    /// The packet's head into `head`; gives its length. The rest is passed over.
    fn packet(&mut self, captured: u32, head: &mut [u8; HEAD]) -> Result<usize, Stop> {
        let looked_at = HEAD.min(captured as usize);
        self.fill(&mut head[..looked_at])?;
        self.skip(u64::from(captured) - looked_at as u64)?;
        Ok(looked_at)
    }
}

fn u16_at(bytes: &[u8], at: usize, big: bool) -> u16 {
    let two = [bytes[at], bytes[at + 1]];
    if big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
}

fn u32_at(bytes: &[u8], at: usize, big: bool) -> u32 {
    let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
}

fn begin<R: Read>(input: &mut Input<R>) -> Result<Format, Stop> {
    let magic = input.begin::<4>()?;
    let (big, fraction, more) = match magic {
        Some([0xa1, 0xb2, 0xc3, 0xd4]) => (true, 1000, 0),
        Some([0xd4, 0xc3, 0xb2, 0xa1]) => (false, 1000, 0),
        Some([0xa1, 0xb2, 0x3c, 0x4d]) => (true, 1, 0),
        Some([0x4d, 0x3c, 0xb2, 0xa1]) => (false, 1, 0),
        Some([0xa1, 0xb2, 0xcd, 0x34]) => (true, 1000, 8),
        Some([0x34, 0xcd, 0xb2, 0xa1]) => (false, 1000, 8),
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => {
            let length = input.take()?;
            return Ok(Format::Pcapng { big: section(input, length)?, interfaces: Vec::new() });
        }
        Some([0x1f, 0x8b, ..]) => {
            return bad("this is packed by gzip; `zcat FILE | bluewater trace -` reads it");
        }
        Some([0x28, 0xb5, 0x2f, 0xfd]) => {
            return bad("this is packed by zstd; `zstdcat FILE | bluewater trace -` reads it");
        }
        Some(_) => return bad("this is neither pcap nor pcapng"),
        None => return bad("the file is empty"),
    };
    let head = input.take::<20>()?;
    let (longest, network) = (u32_at(&head, 12, big), u32_at(&head, 16, big));
    // The upper bits tell of frame check sequences.
    let number = network & 0x03ff_ffff;
    let Some(link) = Link::new(number) else {
        return bad(format!("packets of link type {number}; those that are read: {LINKS}"));
    };
    Ok(Format::Pcap { big, fraction, more, link, longest: longest.max(MAX_PACKET) })
}

/// A record of a classic pcap.
fn record<R: Read>(
    input: &mut Input<R>,
    (big, fraction, more): (bool, u64, u64),
    link: Link,
    longest: u32,
    head: &mut [u8; HEAD],
) -> Result<Found, Stop> {
    let Some(fields) = input.begin::<16>()? else { return Ok(Found::End) };
    let [seconds, part, captured, len] = [0, 4, 8, 12].map(|at| u32_at(&fields, at, big));
    input.skip(more)?;
    if captured > longest {
        return bad(format!("a packet of {captured} bytes, where {longest} are the most"));
    }
    let time = u64::from(seconds) * 1_000_000_000 + u64::from(part) * fraction;
    let looked_at = input.packet(captured, head)?;
    Ok(Found::Packet { time: Some(time), len: len.max(captured), looked_at, link: Some(link) })
}

/// The block types of pcapng.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;

/// A block of a pcapng file.
fn block<R: Read>(
    input: &mut Input<R>,
    big: &mut bool,
    interfaces: &mut Vec<Interface>,
    head: &mut [u8; HEAD],
) -> Result<Found, Stop> {
    let Some(start) = input.begin::<8>()? else { return Ok(Found::End) };
    let kind = u32_at(&start, 0, *big);
    if kind == SECTION {
        *big = section(input, [start[4], start[5], start[6], start[7]])?;
        interfaces.clear();
        return Ok(Found::Other);
    }
    let mut block = Block::new(input, u32_at(&start, 4, *big), *big)?;
    let found = match kind {
        INTERFACE => {
            if interfaces.len() == MAX_INTERFACES {
                return bad(format!("more than {MAX_INTERFACES} interfaces"));
            }
            interfaces.push(block.interface()?);
            Found::Other
        }
        PACKET | OLD_PACKET => {
            let fields = block.take::<20>()?;
            let [number, high, low, captured, len] =
                [0, 4, 8, 12, 16].map(|at| u32_at(&fields, at, *big));
            let number = if kind == PACKET { number } else { u16_at(&fields, 0, *big).into() };
            let interface = of(interfaces, number)?;
            let time = interface.time(u64::from(high) << 32 | u64::from(low));
            block.packet(interface.link, Some(time), captured, len, head)?
        }
        SIMPLE_PACKET => {
            let len = u32_at(&block.take::<4>()?, 0, *big);
            let interface = of(interfaces, 0)?;
            let most = if interface.snaplen == 0 { len } else { len.min(interface.snaplen) };
            block.packet(interface.link, None, most.min(block.left), len, head)?
        }
        _ => Found::Other,
    };
    block.end()?;
    Ok(found)
}

/// A section header, behind its type and `length`; gives the byte order.
fn section<R: Read>(input: &mut Input<R>, length: [u8; 4]) -> Result<bool, Stop> {
    let big = match input.take::<4>()? {
        [0x1a, 0x2b, 0x3c, 0x4d] => true,
        [0x4d, 0x3c, 0x2b, 0x1a] => false,
        _ => return bad("a section without byte order"),
    };
    let mut block = Block::new(input, u32_at(&length, 0, big), big)?;
    block.spend(4)?; // the byte order
    let version = u16_at(&block.take::<12>()?, 0, big);
    if version != 1 {
        return bad(format!("pcapng of version {version}; 1 is read"));
    }
    block.end()?;
    Ok(big)
}

fn of(interfaces: &[Interface], number: u32) -> Result<&Interface, Stop> {
    match interfaces.get(number as usize) {
        Some(interface) => Ok(interface),
        None => {
            let known = interfaces.len();
            bad(format!("a packet from interface {number} in a section that has {known}"))
        }
    }
}

/// A block that is being read, behind its type and length.
struct Block<'a, R> {
    input: &'a mut Input<R>,
    big: bool,
    length: u32,
    /// Bytes of its body that have not been taken.
    left: u32,
}

impl<'a, R: Read> Block<'a, R> {
    fn new(input: &'a mut Input<R>, length: u32, big: bool) -> Result<Self, Stop> {
        match length.checked_sub(12) {
            Some(left) if length.is_multiple_of(4) => Ok(Self { input, big, length, left }),
            _ => bad(format!("a block of {length} bytes, where it is 12, 16 …")),
        }
    }

    fn spend(&mut self, bytes: u32) -> Result<(), Stop> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => return bad("a block that is shorter than what it claims to hold"),
        }
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.spend(N as u32)?;
        Ok(self.input.take()?)
    }

    fn packet(
        &mut self,
        link: Option<Link>,
        time: Option<u64>,
        captured: u32,
        len: u32,
        head: &mut [u8; HEAD],
    ) -> Result<Found, Stop> {
        self.spend(captured)?;
        let looked_at = self.input.packet(captured, head)?;
        Ok(Found::Packet { time, len: len.max(captured), looked_at, link })
    }

    fn interface(&mut self) -> Result<Interface, Stop> {
        let big = self.big;
        let fields = self.take::<8>()?;
        let mut interface = Interface {
            link: Link::new(u16_at(&fields, 0, big).into()),
            snaplen: u32_at(&fields, 4, big),
            resolution: 6,
            offset: 0,
        };
        while self.left >= 4 {
            let option = self.take::<4>()?;
            match (u16_at(&option, 0, big), u16_at(&option, 2, big)) {
                (0, _) => break,
                (IF_TSRESOL, 1) => interface.resolution = self.take::<4>()?[0],
                (IF_TSOFFSET, 8) => {
                    let bytes = self.take()?;
                    interface.offset =
                        if big { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) };
                }
                (_, length) => {
                    let padded = u32::from(length).next_multiple_of(4);
                    self.spend(padded)?;
                    self.input.skip(padded.into())?;
                }
            }
        }
        Ok(interface)
    }

    /// Passes over what is left.
    fn end(self) -> Result<(), Stop> {
        self.input.skip(self.left.into())?;
        let (begin, end) = (self.length, u32_at(&self.input.take::<4>()?, 0, self.big));
        if begin == end {
            Ok(())
        } else {
            bad(format!("a block of {begin} bytes by its begin and of {end} by its end"))
        }
    }
}

const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

impl Interface {
    /// ns since 1970 of a recorded time, within 0 … 2⁶⁴ − 1.
    fn time(&self, ticks: u64) -> u64 {
        let power = u32::from(self.resolution & 0x7f);
        let ticks = i128::from(ticks);
        let ns = if self.resolution & 0x80 != 0 {
            (ticks * 1_000_000_000) >> power
        } else if power <= 9 {
            ticks * 10i128.pow(9 - power)
        } else {
            10i128.checked_pow(power - 9).map_or(0, |unit| ticks / unit)
        };
        let ns = ns + i128::from(self.offset) * 1_000_000_000;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
