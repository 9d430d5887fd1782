//! A sender and a receiver of bulk TCP, for where iperf3 is not at hand: connections of the
//! kernel's own TCP that always have something to send.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};

/// The port that receivers listen at, if no other is given.
pub const PORT: u16 = 5001;

/// How long until a flag is looked at, ms.
const ATTENTION_MS: u16 = 50;
/// Bytes handed to the kernel at a time.
const CHUNK: usize = 1 << 16;

/// Accepts connections and throws away what comes, until `stop`; counts bytes into `received`.
///
/// # Errors
/// When waiting fails.
pub fn receive(listener: &TcpListener, stop: &AtomicBool, received: &AtomicU64) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut streams: Vec<TcpStream> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    while !stop.load(Ordering::Relaxed) {
        let listening = PollFd::new(listener.as_fd(), PollFlags::POLLIN);
        let mut fds: Vec<PollFd<'_>> = vec![listening];
        fds.extend(streams.iter().map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN)));
        wait(&mut fds)?;
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        let mut ready = ready.into_iter();
        let more = ready.next().unwrap_or(false);
        streams.retain_mut(|stream| {
            if !ready.next().unwrap_or(false) {
                return true;
            }
            match stream.read(&mut chunk) {
                Ok(0) => false,
                Ok(n) => {
                    received.fetch_add(n as u64, Ordering::Relaxed);
                    true
                }
                Err(e) => e.kind() == ErrorKind::WouldBlock,
            }
        });
        if more && let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            streams.push(stream);
        }
    }
    Ok(())
}

/// Opens `flows` connections to `to`, controlled by the kernel's algorithm `congestion` (else its
/// default), and sends on all of them until `stop`. Returns how many were ever connected.
///
/// # Errors
/// When a socket cannot be made or the kernel does not know the algorithm.
pub fn send(
    to: SocketAddr,
    flows: usize,
    congestion: Option<&str>,
    stop: &AtomicBool,
) -> io::Result<usize> {
    let mut streams = Vec::with_capacity(flows);
    for _ in 0..flows {
        streams.push((open(to, congestion)?, false));
    }
    let chunk = vec![0x42; CHUNK];
    let mut connected = 0;
    while !stop.load(Ordering::Relaxed) && !streams.is_empty() {
        let mut fds: Vec<PollFd<'_>> =
            streams.iter().map(|(s, _)| PollFd::new(s.as_fd(), PollFlags::POLLOUT)).collect();
        wait(&mut fds)?;
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        let mut ready = ready.into_iter();
        streams.retain_mut(|(stream, sent)| {
            if !ready.next().unwrap_or(false) {
                return true;
            }
            match stream.write(&chunk) {
                // The content does not matter, so neither does how much of it went.
                Ok(1..) => {
                    connected += usize::from(!*sent);
                    *sent = true;
                    true
                }
                Ok(0) => false,
                Err(e) => matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected),
            }
        });
    }
    Ok(connected)
}

/// A connection under way.
fn open(to: SocketAddr, congestion: Option<&str>) -> io::Result<TcpStream> {
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

fn wait(fds: &mut [PollFd<'_>]) -> io::Result<()> {
    match poll(fds, ATTENTION_MS) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}
