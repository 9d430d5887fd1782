//! Where frames come from and go to.
//!
//! **TUN, AF_PACKET**: one file descriptor, one frame each read and write. Each has a virtio header
//! before it, in which the kernel says what it left undone: checksums are filled in and
//! super-packets are cut ([`crate::vnet`]) before anybody sees them, so offloads need not be switched
//! off. What is written needs nothing done. From a packet socket the outermost VLAN tag comes beside
//! the frame, and is put back into it.
//!
//! **AF_XDP**: [`crate::xdp`]. There is no such header. Checksums that were left to be filled in are
//! known by what stands in their place; super-packets are lost.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;

use nix::libc;

use crate::frame::Layer;
use crate::trouble::Trouble;
use crate::xdp::Xdp;
use crate::{sys, vnet};

/// The ends of two links, up from the first to the second and down back.
#[derive(Debug)]
pub struct Ports {
    /// Near and far, LAN and WAN.
    pub ends: [Port; 2],
    /// Longest frame of either, bytes.
    pub longest: usize,
    /// Why they are not on the plane that would be faster, if that was thought of.
    pub fallback: Option<String>,
    /// What may be spoilt on this one.
    pub warnings: Vec<Trouble>,
}

/// An open interface.
#[derive(Debug)]
pub struct Port {
    device: Device,
    layer: Layer,
    /// The number of an existing interface.
    index: Option<u32>,
}

#[derive(Debug)]
enum Device {
    File(Frames),
    Rings(Box<Xdp>),
}

/// A file with a frame each read and write.
#[derive(Debug)]
struct Frames {
    file: File,
    /// Whether VLAN tags come beside the frames.
    tagged: bool,
    buffer: Box<[u8]>,
    /// Super-packets that could not be cut.
    uncut: u64,
    /// What the kernel dropped before it could be read.
    overrun: u64,
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
        Ok(Self::new(file, Layer::Ip, false))
    }

    /// Everything that comes in at the Ethernet interface with the number `index`; what is written
    /// goes out there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn interface(index: u32) -> io::Result<Self> {
        let file = sys::packet_socket(index)?;
        Ok(Self { index: Some(index), ..Self::new(file, Layer::Ethernet, true) })
    }

    /// Two ports that are connected to each other.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn pair(layer: Layer) -> io::Result<(Self, Self)> {
        let (one, other) = UnixDatagram::pair()?;
        let port = |socket: UnixDatagram| -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            Ok(Self::new(File::from(OwnedFd::from(socket)), layer, false))
        };
        Ok((port(one)?, port(other)?))
    }

    fn new(file: File, layer: Layer, tagged: bool) -> Self {
        let buffer = vec![0; LONGEST].into_boxed_slice();
        let frames = Frames { file, tagged, buffer, uncut: 0, overrun: 0 };
        Self { device: Device::File(frames), layer, index: None }
    }

    /// The Ethernet interface with the number `index` by AF_XDP.
    pub(crate) fn rings(index: u32, rings: Xdp) -> Self {
        let device = Device::Rings(Box::new(rings));
        Self { device, layer: Layer::Ethernet, index: Some(index) }
    }

    /// What its frames begin with.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// How it gets frames.
    pub fn plane(&self) -> &'static str {
        match (&self.device, self.index) {
            (Device::Rings(_), _) => "xdp",
            (Device::File(_), Some(_)) => "packet",
            (Device::File(_), None) => "tun",
        }
    }

    /// Reads a frame, if one is there, and gives it or the packets of it to `each`. Whether one was
    /// there.
    ///
    /// # Errors
    /// Those of the system; an interface that is down has no frames.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        match &mut self.device {
            Device::File(frames) => frames.receive(self.layer, each),
            Device::Rings(rings) => Ok(rings.receive(|frame| {
                vnet::complete_unsaid(frame, self.layer);
                each(frame);
            })),
        }
    }

    /// Whether its interface exists, up or down: that one, not another that has its number or its name
    /// since.
    pub fn exists(&self) -> bool {
        let bound = match (&self.device, self.index) {
            (_, None) => return true,
            (Device::File(frames), _) => sys::bound_to(&frames.file),
            (Device::Rings(rings), _) => sys::bound_to(rings.promiscuous()),
        };
        bound.is_ok_and(|index| index == self.index)
    }

    /// Writes a frame; whether there was room for it. It goes out with the next [`Self::flush`] at
    /// the latest.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        match &mut self.device {
            Device::File(frames) => frames.send(frame),
            Device::Rings(rings) => rings.send(frame),
        }
    }

    /// Tells the kernel of what was read and written.
    pub fn flush(&mut self) {
        if let Device::Rings(rings) = &mut self.device {
            rings.flush();
        }
    }

    /// Super-packets that could not be cut, and were lost.
    pub fn uncut(&self) -> u64 {
        match &self.device {
            Device::File(frames) => frames.uncut,
            Device::Rings(_) => 0,
        }
    }

    /// Frames that were written and that the interface did not take after all.
    pub fn unsent(&self) -> u64 {
        match &self.device {
            Device::File(_) => 0,
            Device::Rings(rings) => rings.refused(),
        }
    }

    /// Frames that the kernel dropped because they were not read in time. Only for an existing
    /// interface.
    pub fn overrun(&mut self) -> u64 {
        match &mut self.device {
            Device::File(frames) => frames.overrun(),
            Device::Rings(rings) => rings.lost(),
        }
    }
}

impl Frames {
    fn receive(&mut self, layer: Layer, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        loop {
            match self.read() {
                Ok(bytes) => {
                    let cut = vnet::cut(bytes, layer, &mut each);
                    self.uncut += u64::from(!cut);
                    return Ok(true);
                }
                // A super-packet that the header before it cannot describe: it is gone.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                    self.uncut += 1;
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

    /// The next frame with the header before it.
    fn read(&mut self) -> io::Result<&mut [u8]> {
        let Self { file, buffer, tagged, .. } = self;
        let (room, into) = (vnet::TAG, &mut buffer[vnet::TAG..]);
        let (length, tag) =
            if *tagged { sys::read_tagged(file, into)? } else { ((&*file).read(into)?, None) };
        match tag.filter(|_| length >= vnet::HEADER + 12) {
            Some(tag) => {
                let bytes = &mut buffer[..room + length];
                vnet::put_tag(bytes, tag);
                Ok(bytes)
            }
            None => Ok(&mut buffer[room..room + length]),
        }
    }

    fn send(&self, frame: &[u8]) -> bool {
        let parts = [IoSlice::new(&[0; vnet::HEADER]), IoSlice::new(frame)];
        loop {
            match (&self.file).write_vectored(&parts) {
                Ok(_) => return true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    fn overrun(&mut self) -> u64 {
        self.overrun += sys::dropped(&self.file).unwrap_or_default();
        self.overrun
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::File(frames) => frames.file.as_fd(),
            Device::Rings(rings) => rings.as_fd(),
        }
    }
}

/// The virtio header and the longest super-packet.
const LONGEST: usize = 1 << 17;
