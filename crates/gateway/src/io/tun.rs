//! TUN devices: IP packets.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

use nix::libc;

use super::frames::Frames;
use crate::frame::Layer;
use crate::sys;

#[derive(Debug)]
pub(super) struct Tun(Frames);

impl Tun {
    /// A new device `name` in the network namespace of the calling thread.
    pub(super) fn new(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        sys::tun(&file, name)?;
        Ok(Self(Frames::new(file)))
    }

    /// Two that are connected to each other, as sockets.
    pub(super) fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixDatagram::pair()?;
        let tun = |socket: UnixDatagram| -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            Ok(Self(Frames::new(File::from(OwnedFd::from(socket)))))
        };
        Ok((tun(one)?, tun(other)?))
    }

    pub(super) fn receive(&mut self, layer: Layer, each: impl FnMut(&[u8])) -> io::Result<bool> {
        self.0.receive(layer, |mut file, into| Ok((file.read(into)?, None)), each)
    }

    pub(super) fn send(&self, frame: &[u8]) -> bool {
        self.0.send(frame)
    }

    pub(super) fn uncut(&self) -> u64 {
        self.0.uncut
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}
