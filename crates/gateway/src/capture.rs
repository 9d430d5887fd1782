//! A sample of the packets with what became of each, as pcapng: Wireshark and its like show the
//! cause of a drop or a mark as the packet's comment.
//!
//! The packets of both ways are in one file, each way as an interface of its own. A sampled packet
//! is there once: when it is dropped, or when it comes out of the wire.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aqm::Cause;
use trace::pcapng;

use crate::forward::DIRECTIONS;
use crate::frame::Layer;
use crate::trouble::Trouble;

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
    out: BufWriter<File>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

impl Capture {
    /// Begins a file with one packet of `every`, for both ways between ports of `layer`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, every: u32, layer: Layer, epoch: u64) -> Result<[Self; 2], Trouble> {
        let failed = |e: io::Error| Trouble::system(path.display(), e);
        let mut out = BufWriter::new(File::create(path).map_err(failed)?);
        pcapng::head(&mut out, link_type(layer), &DIRECTIONS).map_err(failed)?;
        let file = Arc::new(Mutex::new(Sink { out, error: None }));
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
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.error.is_none() {
            let at = (self.interface, self.epoch.saturating_add(now));
            let len = frame.len() as u32;
            file.error = pcapng::packet(&mut file.out, at, len, frame, comment(fate)).err();
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When this or anything before could not be written.
    pub fn end(self) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.error.take().map_or(Ok(()), Err)?;
        file.out.flush()
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
