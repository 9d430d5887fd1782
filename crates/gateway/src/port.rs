//! Where frames come from and go to: one file descriptor, one frame each read and write.
//!
//! Each frame has a virtio header before it, in which the kernel says what it left undone:
//! checksums are filled in and super-packets are cut ([`crate::vnet`]) before anybody sees them, so
//! offloads need not be switched off. What is written needs nothing done.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

use nix::libc;
use nix::net::if_::if_indextoname;

use crate::frame::Layer;
use crate::{sys, vnet};

/// The ends of two links, up from the first to the second and down back.
#[derive(Debug)]
pub struct Ports {
    /// Near and far, LAN and WAN.
    pub ends: [Port; 2],
    /// Longest frame of either, bytes.
    pub longest: usize,
}

/// An open interface.
#[derive(Debug)]
pub struct Port {
    file: File,
    layer: Layer,
    buffer: Box<[u8]>,
    /// Super-packets that could not be cut.
    uncut: u64,
    /// What the kernel dropped before it could be read.
    overrun: u64,
    /// The number of an existing interface.
    index: Option<u32>,
}

impl Port {
    /// A new TUN device `name` in the network namespace of the calling thread, which goes when the
    /// port does.
    ///
    /// # Errors
    /// Those of the system.
    pub fn tun(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        sys::tun(&file, name)?;
        Ok(Self::new(file, Layer::Ip))
    }

    /// Everything that comes in at the Ethernet interface with the number `index`; what is written
    /// goes out there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn interface(index: u32) -> io::Result<Self> {
        let file = sys::packet_socket(index)?;
        Ok(Self { index: Some(index), ..Self::new(file, Layer::Ethernet) })
    }

    /// Two ports that are connected to each other.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn pair(layer: Layer) -> io::Result<(Self, Self)> {
        let (one, other) = UnixDatagram::pair()?;
        let port = |socket: UnixDatagram| -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            Ok(Self::new(File::from(OwnedFd::from(socket)), layer))
        };
        Ok((port(one)?, port(other)?))
    }

    fn new(file: File, layer: Layer) -> Self {
        let buffer = vec![0; LONGEST].into_boxed_slice();
        Self { file, layer, buffer, uncut: 0, overrun: 0, index: None }
    }

    /// What its frames begin with.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Reads a frame, if one is there, and gives it or the packets of it to `each`. Whether one was
    /// there.
    ///
    /// # Errors
    /// Those of the system; an interface that is down has no frames.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        loop {
            match (&self.file).read(&mut self.buffer) {
                Ok(length) => {
                    let cut = vnet::cut(&mut self.buffer[..length], self.layer, &mut each);
                    self.uncut += u64::from(!cut);
                    return Ok(true);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                // The socket goes on when the interface is up again.
                Err(e) if e.raw_os_error() == Some(libc::ENETDOWN) => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether its interface exists, up or down.
    pub fn exists(&self) -> bool {
        // The wrapper takes "no such interface" for an empty name.
        let name = |index| if_indextoname(index).unwrap_or_default();
        self.index.is_none_or(|index| !name(index).is_empty())
    }

    /// Writes a frame; whether the interface took it.
    pub fn send(&self, frame: &[u8]) -> bool {
        let parts = [IoSlice::new(&[0; vnet::HEADER]), IoSlice::new(frame)];
        loop {
            match (&self.file).write_vectored(&parts) {
                Ok(_) => return true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Super-packets that could not be cut, and were lost.
    pub fn uncut(&self) -> u64 {
        self.uncut
    }

    /// Frames that the kernel dropped because they were not read in time. Only for an existing
    /// interface.
    pub fn overrun(&mut self) -> u64 {
        self.overrun += sys::dropped(&self.file).unwrap_or_default();
        self.overrun
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The virtio header and the longest super-packet.
const LONGEST: usize = 1 << 17;
