//! A sample of the packets with what became of each, as pcapng: Wireshark and its like show the
//! cause of a drop or a mark as the packet's comment.
//!
//! The packets of both ways are in one file, each way as an interface of its own. A sampled packet
//! is there once: when it is dropped, or when it comes out of the wire.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aqm::Cause;
use trace::pcapng;

use crate::forward::DIRECTIONS;
use crate::frame::Layer;
use crate::trouble::Trouble;
use crate::writer::{Gaps, Lost, Writer};

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It was delivered as it came.
    Delivered,
    /// It was delivered with a mark of this queue.
    Marked(Cause),
    /// It was dropped.
    Dropped(Cause),
}

/// Writes the packets of one way.
#[derive(Clone, Debug)]
pub struct Capture {
    file: Arc<Mutex<Sink>>,
    interface: u32,
    /// One packet of so many.
    every: u32,
    /// Time 0, ns since 1970.
    epoch: u64,
}

#[derive(Debug)]
struct Sink {
    out: Writer,
    /// A packet's block.
    block: Vec<u8>,
}

/// Bytes of blocks that may wait to be written.
const ROOM: usize = 16 << 20;

impl Capture {
    /// Begins a file with one packet of `every`, for both ways between ports of `layer`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, every: u32, layer: Layer, epoch: u64) -> Result<[Self; 2], Trouble> {
        let mut out = Writer::create(path, ROOM, Gaps::Allowed)?;
        let mut block = Vec::with_capacity(1 << 17);
        pcapng::head(&mut block, link_type(layer), &DIRECTIONS)
            .map_err(|e| Trouble::system(path.display(), e))?;
        out.record(&block);
        let file = Arc::new(Mutex::new(Sink { out, block }));
        Ok([0, 1].map(|interface| Self { file: Arc::clone(&file), interface, every, epoch }))
    }

    /// Packet number `seq` and what became of it at `now` (ns).
    #[inline]
    pub(crate) fn packet(&self, seq: u32, now: u64, frame: &[u8], fate: Fate) {
        if seq.is_multiple_of(self.every) {
            self.write(now, frame, fate);
        }
    }

    fn write(&self, now: u64, frame: &[u8], fate: Fate) {
        // Both ways are of one thread: nobody ever waits here.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Sink { out, block } = &mut *file;
        block.clear();
        let at = (self.interface, self.epoch.saturating_add(now));
        if pcapng::packet(&mut *block, at, frame.len() as u32, frame, comment(fate)).is_ok() {
            out.record(block);
        }
    }

    /// Begins to write to the file.
    pub(crate) fn start(&self) {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).out.start();
    }

    /// What is lost, for those who ask.
    pub(crate) fn lost(&self) -> Lost {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).out.lost()
    }

    /// Ends the file, as the last of its ways. The packets that are not in it, and the first reason.
    pub(crate) fn end(self) -> (u64, Option<String>) {
        let Some(file) = Arc::into_inner(self.file) else { return (0, None) };
        file.into_inner().unwrap_or_else(PoisonError::into_inner).out.end()
    }
}

/// What Wireshark and its like call what a frame begins with.
fn link_type(layer: Layer) -> u16 {
    match layer {
        Layer::Ethernet => 1,
        Layer::Ip => 101,
    }
}

/// The parts of a packet's comment.
fn comment(fate: Fate) -> [&'static str; 2] {
    match fate {
        Fate::Delivered => ["", ""],
        Fate::Marked(cause) => ["marked: ", cause.name()],
        Fate::Dropped(cause) => ["dropped: ", cause.name()],
    }
}
