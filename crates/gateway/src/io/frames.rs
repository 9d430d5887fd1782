//! A file with a frame each read and write, and a virtio header before each, in which the kernel says
//! what it left undone: checksums are filled in and super-packets are cut ([`vnet`]) before anybody
//! sees them. What is written needs nothing done.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::ops::Range;

use nix::libc;

use super::vnet;
use crate::frame::Layer;

#[derive(Debug)]
pub(super) struct Frames {
    pub(super) file: File,
    buffer: Box<[u8]>,
    cutter: vnet::Cutter,
    /// Where in the buffer the frame is that is being cut.
    frame: Range<usize>,
    /// Super-packets that could not be cut.
    pub(super) uncut: u64,
}

/// The virtio header and the longest super-packet.
const LONGEST: usize = 1 << 17;

impl Frames {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            buffer: vec![0; LONGEST].into_boxed_slice(),
            cutter: vnet::Cutter::default(),
            frame: 0..0,
            uncut: 0,
        }
    }

    /// Gives the next packets to `each`, as many as a super-packet is cut to at a time; whether a frame was
    /// there. `read` reads it with the header before it; a VLAN tag that it has beside the frame is put back.
    pub(super) fn receive(
        &mut self,
        layer: Layer,
        mut read: impl FnMut(&File, &mut [u8]) -> io::Result<(usize, Option<[u8; vnet::TAG]>)>,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<bool> {
        if self.cutter.goes_on() {
            self.cutter.go_on(&self.buffer[self.frame.clone()], &mut each);
            return Ok(true);
        }
        loop {
            match read(&self.file, &mut self.buffer[vnet::TAG..]) {
                Ok((length, tag)) => {
                    let end = vnet::TAG + length;
                    self.frame = match tag.filter(|_| length >= vnet::HEADER + 12) {
                        Some(tag) => {
                            vnet::put_tag(&mut self.buffer[..end], tag);
                            0..end
                        }
                        None => vnet::TAG..end,
                    };
                    let bytes = &mut self.buffer[self.frame.clone()];
                    let cut = self.cutter.begin(bytes, layer, &mut each);
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

    pub(super) fn is_cutting(&self) -> bool {
        self.cutter.goes_on()
    }

    pub(super) fn send(&self, frame: &[u8]) -> bool {
        let parts = [IoSlice::new(&[0; vnet::HEADER]), IoSlice::new(frame)];
        loop {
            match (&self.file).write_vectored(&parts) {
                Ok(_) => return true,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}
