//! A sample of the packets with what became of each, as pcapng: Wireshark and its like show the
//! cause of a drop or a mark as the packet's comment.
//!
//! The packets of both ways are in one file, those up outbound and those down inbound. A sampled packet
//! is there once: when it is dropped, or when it comes out of the wire.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aqm::{Backlog, Cause};
use trace::pcapng::{self, Way};

use crate::direction::DIRECTIONS;
use crate::frame::Layer;
use crate::output::writer::{Gaps, Lost, Writer};
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
    /// It was sent, and lost on the wire.
    Lost,
}

/// A packet's time at the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    /// When it arrived and when it was dropped or came out, ns.
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// What was queued when it arrived.
    pub(crate) found: Backlog,
}

/// Writes the packets of one way.
#[derive(Clone, Debug)]
pub struct Capture {
    file: Arc<Mutex<Sink>>,
    /// An index of [`DIRECTIONS`].
    direction: usize,
    /// One packet of so many.
    every: u32,
    layer: Layer,
    /// Time 0, ns since 1970.
    epoch: u64,
}

#[derive(Debug)]
struct Sink {
    out: Writer,
    /// A packet's block, and its comment.
    block: Vec<u8>,
    comment: String,
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
        out.record(&head(layer, path)?);
        let block = Vec::with_capacity(1 << 17);
        let comment = String::with_capacity(128);
        let file = Arc::new(Mutex::new(Sink { out, block, comment }));
        Ok([0, 1].map(|direction| Self { file: Arc::clone(&file), direction, every, layer, epoch }))
    }

    /// Packet number `seq` and what became of it.
    #[inline]
    pub(crate) fn packet(&self, seq: u32, stay: Stay, frame: &[u8], fate: Fate) {
        if seq.is_multiple_of(self.every) {
            self.write(stay, frame, fate);
        }
    }

    fn write(&self, stay: Stay, frame: &[u8], fate: Fate) {
        // One thread handles both ways: nobody ever waits here.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Sink { out, block, comment } = &mut *file;
        block.clear();
        let at = self.epoch.saturating_add(stay.until);
        let way = [Way::Out, Way::In][self.direction];
        describe(comment, DIRECTIONS[self.direction], stay, fate);
        let len = frame.len() as u32;
        if pcapng::packet(&mut *block, at, len, frame, (way, comment)).is_ok() {
            out.record(block);
        }
    }

    /// Goes on in `file`, at `path`. Returns whether it is another file than before.
    ///
    /// # Errors
    /// When something else writes there.
    pub(crate) fn turn_to(&self, file: File, path: &Path) -> Result<bool, Trouble> {
        let head = head(self.layer, path)?;
        self.file.lock().unwrap_or_else(PoisonError::into_inner).out.turn_to(file, path, &head)
    }

    /// Begins to write to the file.
    pub(crate) fn start(&self) {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).out.start();
    }

    /// The count of lost records, which can be read meanwhile.
    pub(crate) fn lost(&self) -> Lost {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).out.lost()
    }

    /// Ends the file, as the last of its ways. The packets that are not in it, and the first reason.
    pub(crate) fn end(self) -> (u64, Option<String>) {
        let Some(file) = Arc::into_inner(self.file) else { return (0, None) };
        file.into_inner().unwrap_or_else(PoisonError::into_inner).out.end()
    }
}

/// What a file at `path` begins with.
fn head(layer: Layer, path: &Path) -> Result<Vec<u8>, Trouble> {
    let mut block = Vec::new();
    pcapng::head(&mut block, link_type(layer), "link")
        .map_err(|e| Trouble::system(path.display(), e))?;
    Ok(block)
}

/// What Wireshark and its like call what a frame begins with.
fn link_type(layer: Layer) -> u16 {
    match layer {
        Layer::Ethernet => 1,
        Layer::Ip => pcapng::RAW_IP,
    }
}

/// Writes a packet's comment: "dropped: overflow, up; found 34 packets (50000 B); here for 41.234 ms".
fn describe(comment: &mut String, way: &str, stay: Stay, fate: Fate) {
    comment.clear();
    let (what, cause) = match fate {
        Fate::Delivered => ("delivered", None),
        Fate::Marked(cause) => ("marked: ", Some(cause)),
        Fate::Dropped(cause) => ("dropped: ", Some(cause)),
        Fate::Lost => ("lost on the wire", None),
    };
    let Backlog { packets, bytes } = stay.found;
    let ms = stay.until.saturating_sub(stay.from) as f64 / 1e6;
    let cause = cause.map_or("", Cause::name);
    // A string takes everything.
    _ = write!(
        comment,
        "{what}{cause}, {way}; found {packets} packets ({bytes} B); here for {ms:.3} ms"
    );
}
