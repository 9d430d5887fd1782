//! Both ends of a connection of one stack, and the datagrams between them.
//!
//! This file is a module of each stack's. `super::proto` is the stack; the names of `super` beside it are what
//! the stacks have in different forms.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use aqm::Ecn;
use bytes::{Bytes, BytesMut};
use sim::stack::{Datagram, End, Pair, Start, Tally};

use super::config::{address, endpoints};
use super::proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, Event,
    StreamEvent, StreamId, VarInt,
};
use super::{handle, path, transmit, window, write};
use crate::seen::Seen;
use crate::{instant, nanos};

/// A datagram that so many others of its end have overtaken is lost: no network reorders as much, and those
/// that queues dropped are to be forgotten.
const FORGOTTEN: u32 = 1 << 14;
/// What is written, again and again.
static DATA: [u8; 1 << 16] = [0; 1 << 16];

/// One end.
struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    /// Datagrams that have left and not arrived, by number, and the next number.
    sent: BTreeMap<u32, BytesMut>,
    next: u32,
    /// What it answers without a connection.
    answer: Option<BytesMut>,
    /// Something has happened since it had nothing to send.
    awake: bool,
    /// When its timer comes, ns.
    due: u64,
}

/// Both ends.
pub(super) struct Both {
    sides: [Side; 2],
    client: ClientConfig,
    seen: Arc<Seen>,
    /// Nothing is written from now on, the stream has ended, all of it is acknowledged.
    is_last: bool,
    has_ended: bool,
    is_done: bool,
    /// When a stack gave the connection up, ns, and why.
    broken: Option<(u64, String)>,
    tally: Tally,
    buffer: Vec<u8>,
}

impl Both {
    /// Both ends of a connection that is not open yet.
    pub(super) fn new(start: Start) -> Self {
        let seen = Arc::new(Seen::default());
        let (endpoints, client) = endpoints(start, &seen);
        let side = |endpoint| Side {
            endpoint,
            connection: None,
            stream: None,
            sent: BTreeMap::new(),
            next: 0,
            answer: None,
            awake: false,
            due: u64::MAX,
        };
        Self {
            sides: endpoints.map(side),
            client,
            seen,
            is_last: false,
            has_ended: false,
            is_done: false,
            broken: None,
            tally: Tally::default(),
            buffer: Vec::new(),
        }
    }

    /// An end does what its timers and events ask for.
    fn settle(&mut self, now: u64, end: End) {
        let side = &mut self.sides[end as usize];
        let Some((handle, connection)) = &mut side.connection else { return };
        while connection.poll_timeout().is_some_and(|due| nanos(due) <= now) {
            connection.handle_timeout(instant(now));
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = side.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        let mut is_readable = false;
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if end == End::Sender => {
                    side.stream = connection.streams().open(Dir::Uni);
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    side.stream = connection.streams().accept(dir);
                    is_readable = true;
                }
                Event::Stream(StreamEvent::Readable { .. }) => is_readable = true,
                Event::Stream(StreamEvent::Finished { .. }) => {
                    self.is_done = true;
                    connection.close(instant(now), VarInt::from_u32(0), Bytes::new());
                }
                Event::ConnectionLost { reason } if !self.is_done => {
                    self.broken.get_or_insert_with(|| (now, reason.to_string()));
                }
                _ => {}
            }
        }
        let Some(stream) = side.stream else { return };
        if is_readable && let Ok(mut chunks) = connection.recv_stream(stream).read(true) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                self.tally.delivered += chunk.bytes.len() as u64;
            }
            let _ = chunks.finalize();
        }
        if end == End::Sender && self.is_last && !self.has_ended {
            self.has_ended = connection.send_stream(stream).finish().is_ok();
        }
    }
}

impl Pair for Both {
    fn open(&mut self, now: u64) {
        let side = &mut self.sides[End::Sender as usize];
        let config = self.client.clone();
        side.connection =
            side.endpoint.connect(instant(now), config, address(End::Receiver), "receiver").ok();
        side.awake = true;
    }

    fn write(&mut self, now: u64, most: u64) -> u64 {
        self.settle(now, End::Sender);
        let side = &mut self.sides[End::Sender as usize];
        let (Some((_, connection)), Some(stream)) = (&mut side.connection, side.stream) else {
            return 0;
        };
        // A window that is under way, and one that can follow at once.
        connection.set_send_window(2 * window(connection));
        let mut taken = 0;
        while taken < most {
            let piece = (most - taken).min(DATA.len() as u64) as usize;
            match write(connection, stream, Bytes::from_static(&DATA[..piece])) {
                Some(bytes) => taken += bytes as u64,
                None => break,
            }
        }
        side.awake |= taken > 0;
        taken
    }

    fn finish(&mut self) {
        self.sides[End::Sender as usize].awake |= !self.is_last;
        self.is_last = true;
    }

    fn arrive(&mut self, now: u64, at: End, number: u32, ecn: Ecn) {
        let from = if at == End::Sender { End::Receiver } else { End::Sender };
        let sent = &mut self.sides[from as usize].sent;
        let arrived = sent.remove(&number);
        while sent
            .first_key_value()
            .is_some_and(|(old, _)| number.wrapping_sub(*old) as i32 > FORGOTTEN as i32)
        {
            sent.pop_first();
        }
        // One that comes twice is nothing to QUIC.
        let Some(data) = arrived else { return };
        let side = &mut self.sides[at as usize];
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        self.buffer.clear();
        let event = handle(&mut side.endpoint, instant(now), from, ecn, data, &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut side.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = side.endpoint.accept(incoming, instant(now), &mut self.buffer, None);
                side.connection = accepted.ok();
            }
            Some(DatagramEvent::Response(answer)) => {
                side.answer = Some(BytesMut::from(&self.buffer[..answer.size]));
            }
            None => {}
        }
        side.awake = true;
        self.settle(now, at);
    }

    fn on_timer(&mut self, now: u64) {
        for side in &mut self.sides {
            side.awake |= side.due <= now;
        }
    }

    fn next(&mut self, now: u64) -> Option<Datagram> {
        for end in [End::Sender, End::Receiver] {
            if !self.sides[end as usize].awake {
                continue;
            }
            self.settle(now, end);
            let side = &mut self.sides[end as usize];
            self.buffer.clear();
            let sent = match (side.answer.take(), &mut side.connection) {
                (Some(answer), _) => Some((answer, None)),
                (None, Some((_, connection))) => {
                    transmit(connection, instant(now), &mut self.buffer)
                        .map(|sent| (BytesMut::from(&self.buffer[..sent.size]), sent.ecn))
                }
                (None, None) => None,
            };
            if let Some((data, ecn)) = sent {
                let (number, bytes) = (side.next, data.len() as u16);
                side.next = number.wrapping_add(1);
                side.sent.insert(number, data);
                let ecn = match ecn {
                    Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                    Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                    _ => Ecn::NotEct,
                };
                return Some(Datagram { from: end, number, bytes, ecn });
            }
            self.rest(now, end);
        }
        None
    }

    fn timer(&self) -> u64 {
        let wanted = |side: &Side| if side.awake { 0 } else { side.due };
        self.sides.iter().map(wanted).min().unwrap_or(u64::MAX)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn take_sample(&mut self) -> Option<u64> {
        self.seen.take_sample()
    }

    fn broken(&self) -> Option<(u64, &str)> {
        self.broken.as_ref().map(|(at, why)| (*at, &why[..]))
    }

    fn tally(&self) -> Tally {
        Tally { marked: self.seen.marked.load(Relaxed), ..self.tally }
    }
}

impl Both {
    /// An end has nothing more to send now.
    fn rest(&mut self, now: u64, end: End) {
        let side = &mut self.sides[end as usize];
        (side.awake, side.due) = (false, u64::MAX);
        let Some((_, connection)) = &mut side.connection else { return };
        if connection.is_drained() {
            side.connection = None;
            if self.sides.iter().all(|side| side.connection.is_none()) {
                self.sides.iter_mut().for_each(|side| side.sent.clear());
            }
            return;
        }
        side.due = connection.poll_timeout().map_or(u64::MAX, |due| nanos(due).max(now + 1));
        if end == End::Sender {
            let (srtt, lost) = path(connection);
            self.tally.srtt = if self.seen.has_measured() { srtt.as_nanos() as u64 } else { 0 };
            self.tally.lost = lost as u32;
            self.tally.window = window(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use aqm::Rng;
    use scenario::traffic::QuicControl;

    use super::*;

    const DELAY: u64 = 10_000_000;
    const BYTES: u64 = 1_000_000;

    /// Datagrams by number, time of sending and end, with what they hold.
    type Log = Vec<(u64, End, Vec<u8>)>;

    /// Sends so many bytes over a path that loses every `loses`-th datagram of the sender.
    fn transfer(control: QuicControl, loses: usize) -> (Both, Log, u64) {
        let mut pair = Both::new(Start { control, datagram: 1200, rng: Rng::new(1, 2) });
        let (mut now, mut left, mut sent) = (0, BYTES, 0);
        let (mut log, mut coming) = (Log::new(), BTreeMap::new());
        pair.open(now);
        while now < 60_000_000_000 {
            left -= if left > 0 { pair.write(now, left) } else { 0 };
            if left == 0 {
                pair.finish();
            }
            while let Some(Datagram { from, number, ecn, bytes }) = pair.next(now) {
                let data = pair.sides[from as usize].sent[&number].to_vec();
                assert_eq!(data.len(), usize::from(bytes));
                log.push((now, from, data));
                sent += usize::from(from == End::Sender);
                let at = [End::Receiver, End::Sender][from as usize];
                if from == End::Receiver || loses == 0 || sent % loses > 0 {
                    coming.insert((now + DELAY, log.len()), (at, number, ecn));
                }
            }
            let next = coming.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
            now = next.min(pair.timer());
            if now == u64::MAX {
                break;
            }
            if next <= now
                && let Some((_, (at, number, ecn))) = coming.pop_first()
            {
                pair.arrive(now, at, number, ecn);
            }
            if pair.timer() <= now {
                pair.on_timer(now);
            }
        }
        (pair, log, now)
    }

    /// What a datagram of the sender carries of its stream, if it has one packet of 1-RTT with such a frame
    /// alone.
    fn carried(data: &[u8]) -> Option<usize> {
        let flags = *data.first()?;
        // Flags, connection id and packet number (RFC 9000 §17.3.1); the frame's type (§19.8) and stream.
        let frame = 1 + 8 + usize::from(flags & 3) + 1;
        let kind = *data.get(frame)?;
        if flags & 0x80 > 0 || kind & 0xf8 != 8 {
            return None;
        }
        let varint = |at: usize| 1 << (data[at] >> 6);
        let mut begins = frame + 1 + varint(frame + 1);
        begins += if kind & 4 > 0 { varint(begins) } else { 0 };
        let ends = data.len() - 16;
        if kind & 2 == 0 {
            return Some(ends - begins);
        }
        let length = varint(begins);
        let number =
            data[begins..begins + length].iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
        assert!(begins + length + (number & ((1 << (8 * length - 2)) - 1)) <= ends);
        Some(number & ((1 << (8 * length - 2)) - 1))
    }

    #[test]
    fn datagrams_are_as_long_as_with_tls() {
        let (pair, log, _) = transfer(QuicControl::Cubic, 0);
        assert!(pair.is_done && pair.tally().delivered == BYTES, "{:?}", pair.tally());
        // Hellos, and what else has a long header and asks for an answer, are padded (RFC 9000 §14.1).
        assert_eq!((log[0].2.len(), log[0].2[0] & 0xf0), (1200, 0xc0));
        let data: Vec<&[u8]> = log
            .iter()
            .filter(|(_, from, _)| *from == End::Sender)
            .map(|(.., data)| &data[..])
            .collect();
        let of_stream: usize = data.iter().filter_map(|data| carried(data)).sum();
        // Nothing is hidden; a few have other frames before the stream's.
        assert!((BYTES - BYTES / 20..=BYTES).contains(&(of_stream as u64)), "{of_stream}");
        let full =
            data.iter().filter(|data| carried(data).is_some_and(|bytes| bytes > 1150)).count();
        assert!(full as u64 > BYTES / 1172 * 19 / 20, "{full}");
        assert!(data.iter().all(|data| carried(data).is_none_or(|bytes| bytes <= 1172)));
        // What the receiver sends alone: header, tag, and short frames.
        let shortest =
            log.iter().filter(|(_, from, _)| *from == End::Receiver).map(|(.., d)| d.len()).min();
        assert!((27..40).contains(&shortest.unwrap()), "{shortest:?}");
    }

    #[test]
    fn losses_are_found_and_repaired_and_all_is_over_in_the_end() {
        for control in [QuicControl::Cubic, QuicControl::NewReno] {
            let (pair, log, _) = transfer(control, 50);
            let lost = log.iter().filter(|(_, from, _)| *from == End::Sender).count() / 50;
            let tally = pair.tally();
            assert!(pair.is_done && tally.delivered == BYTES, "{tally:?}");
            assert!((lost / 2..2 * lost).contains(&(tally.lost as usize)), "{lost}: {tally:?}");
            assert!((2 * DELAY..3 * DELAY).contains(&tally.srtt), "{tally:?}");
            assert!(
                pair.sides.iter().all(|side| side.connection.is_none() && side.sent.is_empty())
            );
            assert_eq!(pair.timer(), u64::MAX);
        }
    }

    /// And nothing of the system's reaches it: also in two threads, whose hash tables differ.
    #[test]
    fn one_seed_gives_one_connection() {
        let run = || transfer(QuicControl::Cubic, 50).1;
        let other = std::thread::spawn(run).join().unwrap();
        assert!(run() == other);
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let mut pair =
            Both::new(Start { control: QuicControl::Cubic, datagram: 1200, rng: Rng::new(1, 2) });
        pair.open(0);
        let hello = pair.next(0).unwrap();
        pair.sides[0].sent.get_mut(&hello.number).unwrap()[1100] ^= 1;
        pair.arrive(DELAY, End::Receiver, hello.number, Ecn::NotEct);
        assert_eq!((pair.next(DELAY), pair.sides[1].connection.is_some()), (None, false));
    }
}
