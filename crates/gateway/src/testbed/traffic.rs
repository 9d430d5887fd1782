//! A sender and a receiver of bulk TCP, for where iperf3 is not at hand: connections of the
//! kernel's own TCP that always have something to send.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};

use crate::clock::Clock;

/// The port that receivers listen at, if no other is given.
pub const PORT: u16 = 5001;

/// How long connections may take to be made, ns.
const PATIENCE: u64 = 20_000_000_000;
/// How long until a flag is looked at, ms.
const ATTENTION_MS: u16 = 50;
/// How long a refused connection waits before the next try.
const BEFORE_ANOTHER: Duration = Duration::from_millis(5);
/// Bytes handed to the kernel at a time.
const CHUNK: usize = 1 << 16;

/// Bytes received over each connection, in the order in which they were accepted.
#[derive(Debug, Default)]
pub struct Received(Mutex<Vec<Arc<AtomicU64>>>);

impl Received {
    /// Those of each.
    pub fn each(&self) -> Vec<u64> {
        self.all().iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect()
    }

    /// Another connection.
    fn more(&self) -> Arc<AtomicU64> {
        let mut all = self.all();
        all.push(Arc::default());
        all.last().map(Arc::clone).unwrap_or_default()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<AtomicU64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts connections and throws away what comes, until `stop`; counts it.
///
/// # Errors
/// When waiting fails.
pub fn receive(listener: &TcpListener, stop: &AtomicBool, received: &Received) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut streams: Vec<(TcpStream, Arc<AtomicU64>)> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        let all = streams.iter().map(|(stream, _)| stream.as_fd()).chain([listener.as_fd()]);
        let all: Vec<BorrowedFd<'_>> = all.collect();
        let mut ready = ready(all.iter(), PollFlags::POLLIN)?;
        let more = ready.pop().unwrap_or(false);
        let mut ready = ready.into_iter();
        streams.retain_mut(|(stream, bytes)| {
            if !ready.next().unwrap_or(false) {
                return true;
            }
            match stream.read(&mut chunk) {
                Ok(0) => false,
                Ok(n) => {
                    bytes.fetch_add(n as u64, Ordering::Relaxed);
                    true
                }
                Err(e) => e.kind() == ErrorKind::WouldBlock,
            }
        });
        if more && let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            streams.push((stream, received.more()));
        }
    }
    Ok(())
}

/// Opens `flows` connections to `to`, controlled by the kernel's algorithm `congestion` (else its
/// default), and waits until all are made, for 20 s at most; those that are not are left out. Who is
/// refused tries again: the receiver may be about to listen.
///
/// # Errors
/// When a socket cannot be made or the kernel does not know the algorithm.
pub fn open(to: SocketAddr, flows: usize, congestion: Option<&str>) -> io::Result<Vec<TcpStream>> {
    let mut waiting = Vec::with_capacity(flows);
    for _ in 0..flows {
        waiting.push(begin(to, congestion)?);
    }
    let mut made = Vec::with_capacity(flows);
    let clock = Clock::new();
    while !waiting.is_empty() && clock.now() < PATIENCE {
        let ready = ready(waiting.iter(), PollFlags::POLLOUT)?;
        let mut ready = ready.into_iter();
        for stream in std::mem::take(&mut waiting) {
            match (ready.next(), stream.take_error()) {
                (Some(true), Ok(None)) => made.push(stream),
                (_, Ok(None)) => waiting.push(stream),
                (_, Ok(Some(e))) if e.kind() == ErrorKind::ConnectionRefused => {
                    thread::sleep(BEFORE_ANOTHER);
                    waiting.push(begin(to, congestion)?);
                }
                _ => {}
            }
        }
    }
    Ok(made)
}

/// Sends on all of `streams` until `stop`.
///
/// # Errors
/// When waiting fails.
pub fn send(mut streams: Vec<TcpStream>, stop: &AtomicBool) -> io::Result<()> {
    let chunk = vec![0x42; CHUNK];
    while !stop.load(Ordering::Relaxed) && !streams.is_empty() {
        let mut ready = ready(streams.iter(), PollFlags::POLLOUT)?.into_iter();
        streams.retain_mut(|stream| {
            if !ready.next().unwrap_or(false) {
                return true;
            }
            // The content does not matter, so neither does how much of it went.
            match stream.write(&chunk) {
                Ok(n) => n > 0,
                Err(e) => e.kind() == ErrorKind::WouldBlock,
            }
        });
    }
    Ok(())
}

/// A connection under way.
fn begin(to: SocketAddr, congestion: Option<&str>) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(family, SockType::Stream, flags, None)?;
    if let Some(name) = congestion {
        // Before the connection is opened: the algorithm may decide about ECN.
        setsockopt(&fd, sockopt::TcpCongestion, &OsString::from(name))?;
    }
    match connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(fd.into()),
        Err(e) => Err(e.into()),
    }
}

/// Which of `sockets` are ready, after a while at most.
fn ready<'a, S: AsFd + 'a>(
    sockets: impl Iterator<Item = &'a S>,
    what: PollFlags,
) -> io::Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = sockets.map(|s| PollFd::new(s.as_fd(), what)).collect();
    match poll(&mut fds, ATTENTION_MS) {
        Ok(_) | Err(Errno::EINTR) => Ok(fds.iter().map(|f| f.any().unwrap_or(false)).collect()),
        Err(e) => Err(e.into()),
    }
}
