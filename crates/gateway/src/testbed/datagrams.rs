//! Datagrams at a constant rate, whatever becomes of them, counted where they are sent and received.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use aqm::Rate;
use aqm::units::TextError;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use crate::clock::Clock;
use crate::sys;

/// Bytes of payload in each; with the headers of UDP and IPv4 it is a packet of 1500 B.
pub const PAYLOAD: usize = 1472;
/// Length of the packet, bytes.
const PACKET: u64 = PAYLOAD as u64 + 28;
/// How long until a flag is looked at.
const ATTENTION: Duration = Duration::from_millis(50);
/// ECN-capable, ECT(0), and marked, CE (RFC 3168 §5), in the lowest two bits of the TOS byte.
const ECT: u8 = 0b10;
const CE: u8 = 0b11;

/// What is sent; as text `5mbit`, or `5mbit,ect`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blast {
    /// Of the IP packets.
    pub rate: Rate,
    /// Whether they say that they are ECN-capable.
    pub ect: bool,
}

impl FromStr for Blast {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let (rate, ect) = match text.strip_suffix(",ect") {
            Some(rate) => (rate, true),
            None => (text, false),
        };
        Ok(Self { rate: rate.parse()?, ect })
    }
}

/// Packets so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Given to the kernel.
    pub sent: u64,
    /// Received.
    pub received: u64,
    /// Received with a mark.
    pub marked: u64,
}

impl Counts {
    /// What came after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            received: self.received - before.received,
            marked: self.marked - before.marked,
        }
    }
}

/// Counts that a sender and a receiver share.
#[derive(Default, Debug)]
pub struct Tally {
    sent: AtomicU64,
    received: AtomicU64,
    marked: AtomicU64,
}

impl Tally {
    /// Those so far.
    pub fn now(&self) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts { sent: of(&self.sent), received: of(&self.received), marked: of(&self.marked) }
    }
}

/// Sends to where `socket` is connected until `stop`. Each packet has its own instant, so that the
/// rate holds in the long run; a sender that comes late catches up.
///
/// # Errors
/// When the ECN field cannot be set.
pub fn send(socket: &UdpSocket, blast: Blast, stop: &AtomicBool, tally: &Tally) -> io::Result<()> {
    sys::send_tos(socket, if blast.ect { ECT } else { 0 })?;
    let payload = [0x42; PAYLOAD];
    let clock = Clock::new();
    let mut due = Duration::ZERO;
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let early = due.saturating_sub(Duration::from_nanos(clock.now()));
        if !early.is_zero() {
            thread::sleep(early.min(ATTENTION));
            continue;
        }
        // What the kernel does not take is not sent.
        let taken = socket.send(&payload).is_ok();
        tally.sent.fetch_add(taken.into(), Ordering::Relaxed);
        number += 1;
        let bits = u128::from(8 * PACKET * number);
        let ns = bits * 1_000_000_000 / u128::from(blast.rate.bits_per_second());
        due = Duration::from_nanos(ns as u64);
    }
    Ok(())
}

/// Counts what comes until `stop`.
///
/// # Errors
/// When receiving fails.
pub fn receive(socket: &UdpSocket, stop: &AtomicBool, tally: &Tally) -> io::Result<()> {
    sys::receive_tos(socket)?;
    socket.set_read_timeout(Some(ATTENTION))?;
    let mut payload = [0; PAYLOAD];
    let mut control = cmsg_space!(u8);
    while !stop.load(Ordering::Relaxed) {
        let mut parts = [IoSliceMut::new(&mut payload)];
        let fd = socket.as_raw_fd();
        match recvmsg::<()>(fd, &mut parts, Some(&mut control), MsgFlags::empty()) {
            Ok(message) => {
                let ce = |c| matches!(c, ControlMessageOwned::Ipv4Tos(tos) if tos & CE == CE);
                let marked = message.cmsgs()?.any(ce);
                tally.received.fetch_add(1, Ordering::Relaxed);
                tally.marked.fetch_add(marked.into(), Ordering::Relaxed);
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_read_from_text() {
        let rate = Rate::from_mbit(5);
        assert_eq!("5mbit".parse(), Ok(Blast { rate, ect: false }));
        assert_eq!("5mbit,ect".parse(), Ok(Blast { rate, ect: true }));
        for wrong in ["", ",ect", "5", "5mbit,ECT", "5mbit,ect,ect"] {
            assert!(wrong.parse::<Blast>().is_err(), "{wrong}");
        }
    }
}
