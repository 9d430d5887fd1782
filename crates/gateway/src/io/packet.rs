//! Packet sockets (AF_PACKET): Ethernet frames of an interface that is there. The outermost VLAN tag
//! comes beside the frame, and is put back into it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::frames::Frames;
use crate::frame::Layer;
use crate::sys;

#[derive(Debug)]
pub(super) struct Packet {
    frames: Frames,
    /// What the kernel dropped before it could be read.
    overrun: u64,
}

impl Packet {
    /// All frames that come in at the interface with the number `index`.
    pub(super) fn new(index: u32) -> io::Result<Self> {
        Ok(Self::of(sys::packet_socket(index)?))
    }

    /// A packet socket that is there.
    pub(super) fn of(socket: File) -> Self {
        Self { frames: Frames::new(socket), overrun: 0 }
    }

    pub(super) fn is_cutting(&self) -> bool {
        self.frames.is_cutting()
    }

    pub(super) fn receive(&mut self, layer: Layer, each: impl FnMut(&[u8])) -> io::Result<bool> {
        self.frames.receive(layer, sys::read_tagged, each)
    }

    pub(super) fn send(&self, frame: &[u8]) -> bool {
        self.frames.send(frame)
    }

    pub(super) fn uncut(&self) -> u64 {
        self.frames.uncut
    }

    pub(super) fn overrun(&mut self) -> u64 {
        self.overrun += sys::dropped(&self.frames.file).unwrap_or_default();
        self.overrun
    }
}

impl AsFd for Packet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.frames.file.as_fd()
    }
}
