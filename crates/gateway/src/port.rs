//! Where frames come from and go to: one file descriptor, one frame each read and write.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;

use crate::frame::Layer;
use crate::sys;

/// An open interface.
#[derive(Debug)]
pub struct Port {
    file: File,
    layer: Layer,
}

impl Port {
    /// A new TUN device `name` in the network namespace of the calling thread, which goes when the
    /// port does. A TUN device without offloads: the kernel cuts super-packets and fills in
    /// checksums before they come here.
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
        Ok(Self { file, layer: Layer::Ip })
    }

    /// What its frames begin with.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Reads a frame into `buffer`, if one is there, and tells its length.
    ///
    /// # Errors
    /// When the interface is gone or down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&self.file).read(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Writes a frame; whether the interface took it.
    pub fn send(&self, frame: &[u8]) -> bool {
        loop {
            match (&self.file).write(frame) {
                Ok(_) => return true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
