//! The loop: frames from each port through a link to the other, in one thread that sleeps when
//! nothing is due.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::Duration;

use aqm::{Ack, Meta};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::clock::Clock;
use crate::io::port::Port;
use crate::link::Link;
use crate::sys;

/// The most packets that are read from one port before the other is looked at; as many as a super-packet is
/// cut to at a time may be beyond that.
const BATCH: usize = 64;

/// The largest share of a processor for a real-time thread, and the time over which it is taken, ns. Without
/// a bound a flood would take the whole processor, and the kernel would stop the thread for 50 ms in each
/// second, while all packets wait: by `sched_rt_runtime_us`, and from Linux 6.12 on by the scheduler's fair server,
/// where ordinary work waits.
const SHARE: f64 = 0.9;
const TURN: u64 = 10_000_000;

/// Why [`Forwarder::run`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// The time has come.
    Time,
    /// Somebody wrote to the waker.
    Woken,
}

/// Sees every packet that arrives at a queue: its direction, and what the queue learns of it.
pub trait Tap {
    /// A packet arrived at the queue of a direction.
    fn arrived(&mut self, direction: usize, meta: &Meta, ack: Ack);
}

impl Tap for () {
    fn arrived(&mut self, _: usize, _: &Meta, _: Ack) {}
}

/// Two ports with a link each way.
pub struct Forwarder<T> {
    /// From port 0 to port 1, and back.
    pub links: [Link; 2],
    ports: [Port; 2],
    clock: Clock,
    /// How long before an event the thread stops sleeping and looks at the clock instead, ns.
    spin: u64,
    tap: T,
    /// Frames that a port did not take.
    refused: [u64; 2],
    /// The present turn of a thread that goes before all others.
    turn: Option<Turn>,
    /// Whether it reads what comes; else another process does.
    reads: bool,
}

/// What a thread did since it last looked.
#[derive(Debug)]
struct Turn {
    /// When, by the links' clock, ns.
    began: u64,
    /// Its time on a processor by then, ns.
    before: u64,
}

impl Turn {
    /// Time on a processor since it was last asked, ns.
    fn worked(&mut self) -> u64 {
        let all = sys::processor_time();
        all - std::mem::replace(&mut self.before, all)
    }
}

impl<T: Tap> Forwarder<T> {
    /// Time 0 of the links is time 0 of `clock`.
    pub fn new(links: [Link; 2], ports: [Port; 2], clock: Clock, spin: u64, tap: T) -> Self {
        Self { links, ports, clock, spin, tap, refused: [0; 2], turn: None, reads: true }
    }

    /// The calling thread, which is the one that forwards, goes before all others: it leaves them a share
    /// of the processor.
    pub fn share(&mut self) {
        self.turn = Some(Turn { began: self.clock.now(), before: sys::processor_time() });
    }

    /// Forwards until `until` (ns), or until `waker` can be read.
    ///
    /// # Errors
    /// When an interface is gone.
    pub fn run(&mut self, until: u64, waker: BorrowedFd<'_>) -> io::Result<Pause> {
        loop {
            // The event that woke it goes first.
            self.deliver(self.clock.now());
            let moved = self.reads && (self.receive(0, BATCH)? | self.receive(1, BATCH)?);
            let now = self.clock.now();
            self.deliver(now);
            let next = self.links.iter().map(Link::next_event).min().unwrap_or(until).min(until);
            // A busy thread still has to look at the waker, but need not sleep.
            let sleep = if moved { 0 } else { next.saturating_sub(now + self.spin) };
            if self.sleep(sleep, waker)? {
                return Ok(Pause::Woken);
            }
            let rest = self.rest(now);
            if rest > 0 {
                thread::sleep(Duration::from_nanos(rest));
            }
            if now >= until {
                return Ok(Pause::Time);
            }
        }
    }

    /// Leaves what comes to another process, or reads it again. Of a super-packet that is being cut the rest
    /// arrives first.
    ///
    /// # Errors
    /// When an interface is gone.
    pub fn read(&mut self, reads: bool) -> io::Result<()> {
        for direction in 0..2 {
            while !reads && self.ports[direction].is_cutting() {
                self.receive(direction, 1)?;
            }
        }
        self.reads = reads;
        Ok(())
    }

    /// The clock of the links.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// The time, ns.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The time, ns since 1970: as the calendar had it at the start, and the clock since.
    pub fn time_of_day(&self) -> u64 {
        self.clock.epoch().saturating_add(self.clock.now())
    }

    /// Delivers what is due at `now` (ns).
    pub fn deliver(&mut self, now: u64) {
        for direction in 0..2 {
            let (link, to) = (&mut self.links[direction], &mut self.ports[1 - direction]);
            deliver(link, now, to, &mut self.refused[direction]);
        }
        self.ports.iter_mut().for_each(Port::flush);
    }

    /// Frames of each direction that were lost at its ports: super-packets that could not be cut,
    /// and what the far port did not take.
    pub fn refused(&self) -> [u64; 2] {
        let [near, far] = &self.ports;
        let at_ports = [near.uncut() + far.unsent(), far.uncut() + near.unsent()];
        std::array::from_fn(|i| self.refused[i] + at_ports[i])
    }

    /// The ports.
    pub fn ports(&mut self) -> &mut [Port; 2] {
        &mut self.ports
    }

    /// What looks at the packets.
    pub fn tap(&self) -> &T {
        &self.tap
    }

    /// What looks at the packets, mutably.
    pub fn tap_mut(&mut self) -> &mut T {
        &mut self.tap
    }

    /// Gives up the ports and keeps what looked at the packets.
    pub fn into_tap(self) -> T {
        self.tap
    }

    /// Reads what is there at a port, until `most` packets have come. Whether there was anything.
    fn receive(&mut self, direction: usize, most: usize) -> io::Result<bool> {
        let Self { links, ports: [near, far], clock, tap, refused, .. } = self;
        let (from, to) = if direction == 0 { (near, far) } else { (far, near) };
        let (link, refused) = (&mut links[direction], &mut refused[direction]);
        let mut count = 0;
        while count < most {
            let before = count;
            let there = from.receive(|frame| {
                count += 1;
                let now = clock.now();
                deliver(link, now, to, refused);
                if let Some((meta, ack)) = link.arrive(now, frame) {
                    tap.arrived(direction, &meta, ack);
                }
            })?;
            if !there {
                return Ok(count > 0);
            }
            // A frame without a packet was read all the same.
            count = count.max(before + 1);
        }
        Ok(true)
    }

    /// How long this thread has to leave the processor to others at `now`, ns.
    fn rest(&mut self, now: u64) -> u64 {
        let Some(turn) = &mut self.turn else { return 0 };
        let passed = now.saturating_sub(turn.began);
        if passed < TURN {
            return 0;
        }
        let worked = turn.worked();
        // Of a sleep much longer than a turn nothing is saved up.
        let rest = ((worked as f64 / SHARE) as u64).saturating_sub(passed).min(TURN);
        turn.began = now + rest;
        rest
    }

    /// Sleeps for at most `ns`, or until a frame comes. Whether the waker can be read.
    fn sleep(&self, ns: u64, waker: BorrowedFd<'_>) -> io::Result<bool> {
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = [watch(self.ports[0].as_fd()), watch(self.ports[1].as_fd()), watch(waker)];
        let time = TimeSpec::new((ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64);
        let watched = if self.reads { 0 } else { 2 };
        match ppoll(&mut fds[watched..], Some(time), None) {
            Ok(_) => Ok(fds[2].any().unwrap_or(false)),
            Err(Errno::EINTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

fn deliver(link: &mut Link, now: u64, to: &mut Port, refused: &mut u64) {
    link.deliver(now, |frame| *refused += u64::from(!to.send(frame)));
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use aqm::{Limit, Rate};
    use nix::unistd::write;

    use super::*;
    use crate::frame::Layer;
    use crate::io::vnet;
    use crate::link::Spec;

    const MS: u64 = 1_000_000;

    /// The direction and length of each packet.
    #[derive(Default)]
    struct Seen(Vec<(usize, u32)>);

    impl Tap for Seen {
        fn arrived(&mut self, direction: usize, meta: &Meta, _: Ack) {
            self.0.push((direction, meta.len));
        }
    }

    /// A forwarder over links of 1 Gb/s with `delay` (ms), and what is beyond its ports.
    fn between(delay: u64) -> (Forwarder<Seen>, [Port; 2]) {
        let limit = Limit::packets(10).unwrap();
        let delay = aqm::Duration::from_millis(delay);
        let spec = Spec::new(Rate::from_mbit(1000), delay, limit, "droptail");
        let link = || Link::new(&spec, Layer::Ip, 1500).unwrap();
        let [(near, lan), (far, wan)] = [(); 2].map(|()| Port::pair(Layer::Ip).unwrap());
        let links = [link(), link()];
        (Forwarder::new(links, [near, far], Clock::new(), 0, Seen::default()), [lan, wan])
    }

    fn packet(len: usize) -> Vec<u8> {
        let mut packet = vec![0; len];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet
    }

    fn received(port: &mut Port) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while port.receive(|frame| frames.push(frame.to_vec())).unwrap() {}
        frames
    }

    /// Forwards for `ms` from now on.
    fn run(forwarder: &mut Forwarder<Seen>, ms: u64) {
        let (waker, _wake) = UnixStream::pair().unwrap();
        let until = forwarder.now() + ms * MS;
        assert_eq!(forwarder.run(until, waker.as_fd()).unwrap(), Pause::Time);
        assert!(forwarder.now() >= until);
    }

    /// A request to end is heard even if it keeps coming back for something else.
    #[test]
    fn the_waker_is_heard_when_the_time_has_come() {
        let (mut forwarder, _beyond) = between(0);
        let (waker, mut wake) = UnixStream::pair().unwrap();
        assert_eq!(forwarder.run(0, waker.as_fd()).unwrap(), Pause::Time);
        wake.write_all(&[1]).unwrap();
        assert_eq!(forwarder.run(0, waker.as_fd()).unwrap(), Pause::Woken);
        // What was written is still there: the caller reads it.
        assert_eq!(forwarder.run(u64::MAX, waker.as_fd()).unwrap(), Pause::Woken);
    }

    #[test]
    fn each_way_has_its_own_link() {
        let (mut forwarder, [mut lan, mut wan]) = between(0);
        let (up, down) = ([packet(100), packet(200)], [packet(300)]);
        assert!(up.iter().all(|frame| lan.send(frame)) && down.iter().all(|frame| wan.send(frame)));
        run(&mut forwarder, 5);
        assert_eq!((received(&mut wan), received(&mut lan)), (up.to_vec(), down.to_vec()));
        let arrived = forwarder.links.each_ref().map(|link| link.counters().arrived.packets);
        assert_eq!((arrived, forwarder.refused()), ([2, 1], [0; 2]));
        assert_eq!(forwarder.into_tap().0, [(0, 100), (0, 200), (1, 300)]);
    }

    /// Not before its time; what is due is delivered although nothing more comes.
    #[test]
    fn a_packet_is_on_the_wire_for_the_delay() {
        let (mut forwarder, [mut lan, mut wan]) = between(60);
        assert!(lan.send(&packet(100)));
        run(&mut forwarder, 20);
        assert_eq!(received(&mut wan), Vec::<Vec<u8>>::new());
        run(&mut forwarder, 50);
        assert_eq!(received(&mut wan), [packet(100)]);
        assert!(lan.send(&packet(100)));
        run(&mut forwarder, 1);
        // By another clock, which is an hour ahead.
        forwarder.deliver(3_600_000 * MS);
        assert_eq!(received(&mut wan), [packet(100)]);
    }

    #[test]
    fn reading_tells_whether_anything_was_there() {
        let (mut forwarder, [mut lan, _wan]) = between(0);
        assert!(!forwarder.receive(0, BATCH).unwrap());
        assert!(lan.send(&packet(100)));
        assert!(!forwarder.receive(1, BATCH).unwrap());
        assert!(forwarder.receive(0, BATCH).unwrap());
        assert!(!forwarder.receive(0, BATCH).unwrap());
    }

    /// A sender of endless super-packets gets one turn after the other, as everybody.
    #[test]
    fn a_turn_is_bounded_whatever_comes() {
        let (mut forwarder, [lan, _wan]) = between(0);
        let mut whole = packet(40 + 60_000);
        whole[9] = 6;
        whole[32] = 5 << 4;
        let mut bytes = vec![0u8; vnet::HEADER];
        (bytes[0], bytes[1]) = (1, 1);
        for (at, word) in [(4, 64u16), (6, 20), (8, 16)] {
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        bytes.extend(&whole);
        for _ in 0..3 {
            write(&lan, &bytes).unwrap();
        }
        let (mut all, mut turns) = (0, 0);
        while forwarder.receive(0, BATCH).unwrap() {
            let came = forwarder.links[0].counters().arrived.packets;
            assert!(came - all < (BATCH + vnet::PIECES) as u64, "{} at once", came - all);
            (all, turns) = (came, turns + 1);
            assert!(!forwarder.receive(1, BATCH).unwrap());
        }
        assert_eq!(all, 3 * 60_000u64.div_ceil(64));
        assert!(turns >= all / (BATCH + vnet::PIECES) as u64);
    }

    /// A thread that goes before all others takes no more than its share, however much there is to do.
    #[test]
    fn the_processor_is_shared() {
        let (mut forwarder, _beyond) = between(0);
        forwarder.share();
        let (waker, mut wake) = UnixStream::pair().unwrap();
        wake.write_all(&[1]).unwrap();
        let (began, before) = (forwarder.now(), sys::processor_time());
        while forwarder.now() < began + 200 * MS {
            // It never sleeps: somebody always wants something.
            let until = forwarder.now() + MS;
            _ = forwarder.run(until, waker.as_fd()).unwrap();
            forwarder.deliver(until);
            let now = forwarder.now();
            let rest = forwarder.rest(now);
            thread::sleep(Duration::from_nanos(rest));
        }
        let (passed, worked) = (forwarder.now() - began, sys::processor_time() - before);
        assert!(worked as f64 <= (SHARE + 0.05) * passed as f64, "{worked} of {passed} ns");
    }

    /// What the far port does not take, and super-packets that cannot be cut, by their ways.
    #[test]
    fn what_is_lost_at_ports_is_counted_by_its_way() {
        for way in 0..2 {
            let (mut forwarder, mut beyond) = between(0);
            let mut sent = 0;
            // Nobody reads: what the system lets wait is soon reached.
            while forwarder.refused() == [0; 2] {
                assert!(beyond[way].send(&packet(1000)), "{sent}");
                sent += 1;
                run(&mut forwarder, 1);
            }
            let came = received(&mut beyond[1 - way]).len() as u64;
            let mut expected = [0; 2];
            expected[way] = sent - came;
            assert_eq!(forwarder.refused(), expected);
            let mut uncut = vec![0u8; vnet::HEADER + 3000];
            (uncut[0], uncut[1]) = (1, 1);
            uncut[4..6].copy_from_slice(&1000u16.to_ne_bytes());
            write(&beyond[way], &uncut).unwrap();
            run(&mut forwarder, 1);
            expected[way] += 1;
            assert_eq!(forwarder.refused(), expected);
        }
    }
}
