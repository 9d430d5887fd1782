//! Output while packets flow. The thread that forwards puts records into a ring of bounded memory, without a
//! lock, and with a system call only to wake a sleeper; another thread writes them. If a disk is full, a pipe
//! is closed or its reader stalls, records are lost and counted; the packets go on.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{FileStat, fstat, major, minor};
use nix::unistd::geteuid;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::trouble::Trouble;
use crate::{privilege, sys};

/// What a file is good for once a record of it is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gaps {
    /// Each record stands for itself: later ones are written again.
    Allowed,
    /// Later records mean nothing without it: the file ends there.
    End,
}

/// The near end of a file that another thread writes; each `write` is a record.
#[derive(Debug)]
pub struct Writer {
    ring: Producer<u8>,
    gaps: Gaps,
    /// Records that were handed over here.
    offered: Arc<AtomicU64>,
    /// Of these, not taken by the ring.
    overflowed: Arc<AtomicU64>,
    shared: Arc<Shared>,
    rest: Rest,
    /// What it is written to: its device and number.
    place: Option<(u64, u64)>,
    /// What another file is to begin with, until there is room to say so.
    head: Option<Vec<u8>>,
}

/// The far end.
#[derive(Debug)]
enum Rest {
    /// Not begun: records wait.
    Waiting(File, Consumer<u8>),
    /// Its thread, and where it tells that all is done.
    Running(Thread, Receiver<()>),
    /// There can be no thread.
    Nobody,
}

/// What both threads know.
#[derive(Debug, Default)]
struct Shared {
    written: AtomicU64,
    /// Records that could not be written.
    failed: AtomicU64,
    ending: AtomicBool,
    /// No time is left: what is not written now is lost.
    hurry: AtomicBool,
    /// The first thing that went wrong.
    error: OnceLock<String>,
    /// What is written to from [`ANOTHER`] on.
    next: Mutex<Option<File>>,
}

/// How many records of a file are lost so far.
#[derive(Clone, Debug)]
pub struct Lost {
    overflowed: Arc<AtomicU64>,
    shared: Arc<Shared>,
}

impl Lost {
    /// Records.
    pub fn records(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed) + self.shared.failed.load(Ordering::Relaxed)
    }
}

/// Whether records may be written to what is there: of devices only terminals, `null` and `full`.
fn takes_text(about: &Metadata) -> bool {
    let kind = about.file_type();
    let device = about.rdev();
    let harmless = match major(device) {
        1 => matches!(minor(device), 3 | 7), // the others are memory
        4 | 5 | 136..=143 => true,           // terminals
        _ => false,
    };
    !kind.is_block_device() && (!kind.is_char_device() || harmless)
}

/// The longest nap of an idle writing thread: SIGKILL loses the records of that time.
const NAP: Duration = Duration::from_millis(20);
/// How long the last records may take, once everything has ended.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes that are written at a time.
const BATCH: usize = 64 << 10;
/// Bytes before each record that say how long it is.
const HEAD: usize = 4;
/// Stands in their place where another file begins.
const ANOTHER: u32 = u32::MAX;

/// Which file it is, whatever it is called.
fn place(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|about| (about.dev(), about.ino()))
}

/// Opens this user's file at `path` for appending; a new file can be read by nobody else.
///
/// # Errors When it cannot be opened, or should not be: a FIFO without a reader would block, output must
/// never go to a disk, the memory or a watchdog, and another user's file may be a trap.
pub fn open(path: &Path) -> Result<File, Trouble> {
    // Opens the very file that was checked, whatever has its name by then.
    let look = |flags| OpenOptions::new().read(true).custom_flags(libc::O_PATH | flags).open(path);
    if let Ok(link) = look(libc::O_NOFOLLOW).and_then(|link| link.metadata())
        && link.is_symlink()
    {
        ours(&link, path)?;
    }
    let there = look(0);
    let again = match there.as_ref().map(|there| (there.metadata(), there.as_raw_fd())) {
        Ok((Ok(about), _)) if !takes_text(&about) => {
            return Err(Trouble::new(
                format!("{}: a device is not written to", path.display()),
                "name a file, a FIFO, a terminal or /dev/null",
            ));
        }
        Ok((about, number)) => {
            ours(&about.map_err(|e| Trouble::system(path.display(), e))?, path)?;
            Some(PathBuf::from(format!("/proc/self/fd/{number}")))
        }
        Err(_) => None,
    };
    let file = OpenOptions::new()
        // A program that rotates logs may truncate the file meanwhile: appending then starts it anew, without
        // a hole.
        .append(true)
        .create_new(again.is_none())
        .mode(0o600)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(again.as_deref().unwrap_or(path));
    file.map_err(|e| match e.raw_os_error() {
        Some(libc::ENXIO) => Trouble::new(
            format!("{}: nobody reads from it", path.display()),
            "start the reader of a FIFO first",
        ),
        _ => Trouble::system(path.display(), e),
    })
}

/// Refuses a file that belongs to another user than this one, root, or the caller of `sudo`. Devices and this
/// process's own output are accepted: the user chose them.
fn ours(about: &Metadata, path: &Path) -> Result<(), Trouble> {
    let sudo = || geteuid().is_root().then(privilege::by_sudo).flatten();
    let given = || {
        let same = |it: nix::Result<FileStat>| {
            it.is_ok_and(|it| (it.st_dev, it.st_ino) == (about.dev(), about.ino()))
        };
        same(fstat(io::stdout())) || same(fstat(io::stderr()))
    };
    let trusted = [0, geteuid().as_raw()].contains(&about.uid())
        || about.file_type().is_char_device()
        || sudo().is_some_and(|(user, _)| user == about.uid())
        || given();
    if trusted {
        return Ok(());
    }
    let what = if about.is_symlink() { "a link" } else { "it" };
    Err(Trouble::new(
        format!(
            "{}: {what} belongs to user {}: nothing is written there",
            path.display(),
            about.uid()
        ),
        "name a file in a folder of your own",
    ))
}

/// Takes the lock of a file at `path`.
///
/// # Errors
/// When something else writes there.
pub fn lock(file: &File, path: &Path) -> Result<(), Trouble> {
    match sys::lock(file) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Trouble::new(
            format!("{}: something else is being written there", path.display()),
            "name a file for each of --log, --record and --pcapng, and of each gateway",
        )),
        Err(e) => Err(Trouble::system(path.display(), e)),
    }
}

impl Writer {
    /// A new file at `path`, with memory for `room` bytes that wait.
    ///
    /// # Errors
    /// When it cannot be opened, or should not be, see [`open`].
    pub fn create(path: &Path, room: usize, gaps: Gaps) -> Result<Self, Trouble> {
        let file = open(path)?;
        // Only then is it emptied: it may be another's.
        let system = |e| Trouble::system(path.display(), e);
        if file.metadata().map_err(system)?.is_file() {
            lock(&file, path)?;
            file.set_len(0).map_err(system)?;
        }
        Self::on(file, room, gaps)
    }

    /// Goes on in a `file` that is open, with its lock.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn on(file: File, room: usize, gaps: Gaps) -> Result<Self, Trouble> {
        // By default a file that reaches its limit (`ulimit -f`) ends the process; with a handler, which
        // commands do not inherit as they would that it is ignored, it is an error of `write`.
        signal_hook::flag::register(libc::SIGXFSZ, Arc::default())
            .map_err(|e| Trouble::system("watching signals", e))?;
        Ok(Self::new(file, room, gaps))
    }

    fn new(file: File, room: usize, gaps: Gaps) -> Self {
        let (ring, rest) = RingBuffer::new(room);
        let place = place(&file);
        Self {
            ring,
            gaps,
            offered: Arc::default(),
            overflowed: Arc::default(),
            shared: Arc::default(),
            rest: Rest::Waiting(file, rest),
            place,
            head: None,
        }
    }

    /// The file, before it begins to write.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.rest {
            Rest::Waiting(file, _) => Some(file),
            Rest::Running(..) | Rest::Nobody => None,
        }
    }

    /// Goes on in `file`, at `path`, which begins with `head`. Returns whether it is another file than
    /// before.
    ///
    /// # Errors
    /// When something else writes there.
    pub fn turn_to(&mut self, file: File, path: &Path, head: &[u8]) -> Result<bool, Trouble> {
        let place = place(&file);
        if place == self.place {
            return Ok(false);
        }
        lock(&file, path)?;
        self.place = place;
        *self.shared.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        self.head = Some(head.to_vec());
        self.turn();
        Ok(true)
    }

    /// Puts it among the records that another file begins, once there is room.
    fn turn(&mut self) {
        let room = self.ring.slots();
        if let Some(head) = self.head.take_if(|head| room >= 2 * HEAD + head.len()) {
            _ = self.ring.push_entire_slice(&ANOTHER.to_le_bytes());
            self.offered.fetch_add(1, Ordering::Relaxed);
            self.put(&head);
        }
    }

    fn put(&mut self, record: &[u8]) {
        _ = self.ring.push_entire_slice(&(record.len() as u32).to_le_bytes());
        _ = self.ring.push_entire_slice(record);
    }

    /// Begins to write. The thread has the rights of the one that calls this.
    pub fn start(&mut self) {
        let (file, rest) = match std::mem::replace(&mut self.rest, Rest::Nobody) {
            Rest::Waiting(file, rest) => (file, rest),
            begun => {
                self.rest = begun;
                return;
            }
        };
        let (gaps, shared) = (self.gaps, Arc::clone(&self.shared));
        let (tell, done) = channel();
        let thread = thread::Builder::new().name("writer".into()).spawn(move || {
            Pen {
                file,
                rest,
                gaps,
                shared: &shared,
                batch: Vec::new(),
                ends: Vec::new(),
                another: false,
            }
            .run();
            _ = tell.send(());
        });
        match thread {
            Ok(thread) => self.rest = Rest::Running(thread.thread().clone(), done),
            Err(e) => _ = self.shared.error.set(e.to_string()),
        }
    }

    /// Hands over a record; whether there was room for it.
    pub fn record(&mut self, record: &[u8]) -> bool {
        self.turn();
        self.offered.fetch_add(1, Ordering::Relaxed);
        let over = self.gaps == Gaps::End && self.overflowed.load(Ordering::Relaxed) > 0;
        if over || self.head.is_some() || self.ring.slots() < HEAD + record.len() {
            self.overflowed.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.put(record);
        if let Rest::Running(thread, _) = &self.rest
            && self.ring.cached_slots() < self.ring.buffer().capacity() / 2
        {
            thread.unpark();
        }
        true
    }

    /// The count of lost records, which can be read meanwhile.
    pub fn lost(&self) -> Lost {
        Lost { overflowed: Arc::clone(&self.overflowed), shared: Arc::clone(&self.shared) }
    }

    /// Waits a while until all is written. The records that are not, and the first reason.
    pub fn end(mut self) -> (u64, Option<String>) {
        self.shared.ending.store(true, Ordering::Release);
        self.start();
        if let Rest::Running(thread, done) = &self.rest {
            thread.unpark();
            if done.recv_timeout(PATIENCE).is_err() {
                self.shared.hurry.store(true, Ordering::Release);
                _ = done.recv_timeout(PATIENCE / 10);
            }
        }
        let lost =
            self.offered.load(Ordering::Relaxed) - self.shared.written.load(Ordering::Acquire);
        let slow = || "it was not written as fast as it came".to_string();
        let why = (lost > 0).then(|| self.shared.error.get().cloned().unwrap_or_else(slow));
        (lost, why)
    }
}

impl Write for Writer {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        self.record(record);
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the thread that writes works with.
struct Pen<'a> {
    file: File,
    rest: Consumer<u8>,
    gaps: Gaps,
    shared: &'a Shared,
    /// Whole records.
    batch: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    /// Whether what follows is for another file.
    another: bool,
}

impl Pen<'_> {
    fn run(&mut self) {
        loop {
            let ending = self.shared.ending.load(Ordering::Acquire);
            self.fill();
            let idle = self.ends.is_empty() && !self.another;
            if !self.ends.is_empty() {
                self.write();
            }
            if std::mem::take(&mut self.another) {
                let next = self.shared.next.lock().unwrap_or_else(PoisonError::into_inner).take();
                next.into_iter().for_each(|next| self.file = next);
            }
            if idle && ending {
                return;
            } else if idle {
                thread::park_timeout(NAP);
            }
        }
    }

    /// Takes records until there are enough.
    fn fill(&mut self) {
        self.batch.clear();
        self.ends.clear();
        while self.batch.len() < BATCH {
            let mut head = [0; HEAD];
            if self.rest.pop_entire_slice(&mut head).is_err() {
                return;
            }
            let head = u32::from_le_bytes(head);
            if head == ANOTHER {
                self.another = true;
                return;
            }
            let (from, length) = (self.batch.len(), head as usize);
            self.batch.resize(from + length, 0);
            // The other side may still be putting it there.
            while self.rest.pop_entire_slice(&mut self.batch[from..]).is_err() {
                thread::yield_now();
            }
            self.ends.push(self.batch.len());
        }
    }

    /// Writes what was taken, or as many whole records of it as can be.
    fn write(&mut self) {
        let over = self.gaps == Gaps::End && self.shared.failed.load(Ordering::Relaxed) > 0;
        let mut written = 0;
        let mut error = None;
        while !over && error.is_none() && written < self.batch.len() {
            match (&self.file).write(&self.batch[written..]) {
                Ok(0) => error = Some(ErrorKind::WriteZero.into()),
                Ok(n) => written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if self.shared.hurry.load(Ordering::Acquire) {
                        error = Some(e);
                    } else {
                        let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
                        _ = poll(&mut fds, PollTimeout::from(NAP_MS));
                    }
                }
                Err(e) => error = Some(e),
            }
        }
        let whole = self.ends.partition_point(|&end| end <= written);
        self.shared.written.fetch_add(whole as u64, Ordering::Release);
        self.shared.failed.fetch_add((self.ends.len() - whole) as u64, Ordering::Relaxed);
        if let Some(error) = error {
            _ = self.shared.error.set(error.to_string());
            let kept = if whole == 0 { 0 } else { self.ends[whole - 1] };
            self.undo((written - kept) as u64);
            // A disk that is full stays so for a while; records may pile up meanwhile.
            if !self.shared.ending.load(Ordering::Relaxed) {
                thread::sleep(NAP);
            }
        }
    }

    /// Removes the part of a record from the end of the file, if it is one that has an end.
    fn undo(&mut self, part: u64) {
        use std::io::Seek as _;
        if part > 0
            && let Ok(at) = self.file.stream_position()
        {
            _ = self.file.set_len(at.saturating_sub(part));
        }
    }
}

/// [`NAP`] in ms.
const NAP_MS: u16 = NAP.as_millis() as u16;

#[cfg(test)]
mod tests;
