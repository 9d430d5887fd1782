//! What is written while packets go. The thread that forwards puts records into a ring of bounded
//! memory, which takes no lock and no system call but to wake a sleeper; a thread of their own writes
//! them. Where a disk is full, a pipe is closed or its reader stalls, records are lost and counted;
//! the packets go on.

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

/// The longest nap of the thread that writes when it has nothing to do: so much is lost by SIGKILL.
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

/// Opens a file of this user's at `path` to write behind what is there; a new one can be read by nobody
/// else.
///
/// # Errors
/// When it cannot be opened, or should not be: a FIFO that nobody reads would wait for a reader, to a disk,
/// the memory or a watchdog nothing of this is to be written, and what another user has put there may be
/// meant to be written by this one.
pub fn open(path: &Path) -> Result<File, Trouble> {
    // What is looked at is what is opened, whatever has the name by then.
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
        // Who rotates logs may cut the file off meanwhile: what comes then begins it anew, without
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

/// Refuses what belongs to another user than this one, root, or who has become root by `sudo`; but a
/// device, and what this process was given as its output, is what it was told to write to.
fn ours(about: &Metadata, path: &Path) -> Result<(), Trouble> {
    let sudo = || geteuid().is_root().then(|| privilege::by_sudo()).flatten();
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

    /// Goes on in `file`, at `path`, which begins with `head`; whether it is another than before.
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

    /// What is lost, for those who ask while it goes on.
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
mod tests {
    use nix::fcntl::{FcntlArg, fcntl};

    use std::fs;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn numbered(number: u32) -> Vec<u8> {
        format!("{number}\n").into_bytes()
    }

    #[test]
    fn everything_is_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all");
        let mut writer = Writer::create(&path, 1 << 20, Gaps::Allowed).unwrap();
        writer.start();
        (0..50_000).for_each(|n| assert!(writer.record(&numbered(n))));
        assert_eq!(writer.end(), (0, None));
        let all: Vec<u8> = (0..50_000).flat_map(numbered).collect();
        assert!(fs::read(&path).unwrap() == all);
    }

    /// What is being written to is not emptied by who comes second, by whatever name.
    #[test]
    fn a_file_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["file", "link"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut first = Writer::create(&path, 1000, Gaps::Allowed).unwrap();
        first.start();
        first.record(b"first\n");
        let other = Writer::create(&link, 1000, Gaps::Allowed).map(drop).unwrap_err();
        assert!(other.what.contains("something else is being written there"), "{other}");
        assert_eq!(first.end(), (0, None));
        assert_eq!(fs::read(&path).unwrap(), b"first\n");
        drop(Writer::create(&link, 1000, Gaps::Allowed).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"", "emptied once nobody writes there");
    }

    /// Who may read a file, as a group of administrators may, keeps nobody from writing to it.
    #[test]
    fn a_reader_takes_no_lock_and_a_new_file_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        drop(Writer::create(&path, 1000, Gaps::Allowed).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let reader = File::open(&path).unwrap();
        let mut shared = lock_of(libc::F_RDLCK);
        fcntl(&reader, FcntlArg::F_OFD_SETLK(&shared)).unwrap();
        reader.lock().unwrap();
        let first = Writer::create(&path, 1000, Gaps::Allowed).unwrap();
        drop(first);
        shared.l_type = libc::F_UNLCK as libc::c_short;
        fcntl(&reader, FcntlArg::F_OFD_SETLK(&shared)).unwrap();
        let _first = Writer::create(&path, 1000, Gaps::Allowed).unwrap();
        let exclusive = lock_of(libc::F_WRLCK);
        assert!(fcntl(&reader, FcntlArg::F_OFD_SETLK(&exclusive)).is_err());
        Writer::create(&path, 1000, Gaps::Allowed).map(drop).unwrap_err();
    }

    fn lock_of(kind: libc::c_int) -> libc::flock {
        libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        }
    }

    /// In a public folder anybody may be there first: with a file, a FIFO, or a link to somewhere else.
    #[test]
    fn what_another_user_has_put_there_is_not_written_to() {
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let give = |name: &str| std::os::unix::fs::lchown(path(name), Some(4711), None).unwrap();
        fs::write(path("file"), "theirs").unwrap();
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _reader = OpenOptions::new().read(true).write(true).open(path("fifo")).unwrap();
        fs::write(path("ours"), "ours").unwrap();
        std::os::unix::fs::symlink(path("ours"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("file"), path("to theirs")).unwrap();
        ["file", "fifo", "link"].into_iter().for_each(give);
        for name in ["file", "fifo", "link", "to theirs"] {
            let refused = Writer::create(&path(name), 1000, Gaps::Allowed).map(drop).unwrap_err();
            assert!(refused.what.contains("belongs to user 4711"), "{name}: {refused}");
        }
        assert_eq!(fs::read(path("file")).unwrap(), b"theirs");
        assert_eq!(fs::read(path("ours")).unwrap(), b"ours");
        Writer::create(&path("ours"), 1000, Gaps::Allowed).unwrap();
    }

    /// What was handed over before another file is in the one before, all else in the other; and the place that
    /// it had already is no other.
    #[test]
    fn a_writer_goes_on_in_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let [path, old] = ["log", "log.1"].map(|name| folder.path().join(name));
        let mut writer = Writer::create(&path, 1 << 16, Gaps::Allowed).unwrap();
        writer.start();
        writer.record(b"one\n");
        assert!(!writer.turn_to(open(&path).unwrap(), &path, b"head\n").unwrap());
        writer.record(b"two\n");
        fs::rename(&path, &old).unwrap();
        assert!(writer.turn_to(open(&path).unwrap(), &path, b"head\n").unwrap());
        writer.record(b"three\n");
        Writer::create(&path, 1000, Gaps::Allowed).map(drop).unwrap_err();
        assert_eq!(writer.end(), (0, None));
        assert_eq!(fs::read_to_string(&old).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "head\nthree\n");
        // Where there is no room to say so, records are lost, and the other file begins with its head.
        let mut writer = Writer::create(&path, 100, Gaps::Allowed).unwrap();
        assert!(writer.record(&[b'x'; 90]));
        let new = folder.path().join("new");
        assert!(writer.turn_to(open(&new).unwrap(), &new, b"head\n").unwrap());
        assert!(!writer.record(b"lost\n"));
        writer.start();
        while !writer.record(b"kept\n") {
            thread::sleep(NAP);
        }
        let (lost, _) = writer.end();
        assert!(lost > 0);
        assert_eq!(fs::read_to_string(&new).unwrap(), "head\nkept\n");
    }

    /// A log that is rotated by copying it and cutting it off goes on at its new beginning.
    #[test]
    fn a_file_that_is_cut_off_has_no_hole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut writer = Writer::create(&path, 1 << 20, Gaps::Allowed).unwrap();
        writer.start();
        writer.record(b"before\n");
        while fs::metadata(&path).unwrap().len() == 0 {
            thread::sleep(NAP);
        }
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        writer.record(b"after\n");
        assert_eq!(writer.end(), (0, None));
        assert_eq!(fs::read(&path).unwrap(), b"after\n");
    }

    /// Opened for writing, some devices do things.
    #[test]
    fn devices_are_not_written_to() {
        for path in ["/dev/zero", "/dev/random", "/dev/net/tun", "/dev/loop0"] {
            if !Path::new(path).exists() {
                continue;
            }
            let refused = Writer::create(Path::new(path), 1000, Gaps::Allowed).map(drop);
            assert!(refused.unwrap_err().what.contains("device is not written to"), "{path}");
        }
        Writer::create(Path::new("/dev/null"), 1000, Gaps::Allowed).unwrap();
    }

    /// `/dev/full` takes nothing, as a full disk.
    #[test]
    fn what_a_full_disk_does_not_take_is_counted() {
        let mut writer = Writer::create(Path::new("/dev/full"), 1000, Gaps::Allowed).unwrap();
        writer.start();
        (0..10_000).for_each(|n| _ = writer.record(&numbered(n)));
        let (lost, why) = writer.end();
        assert_eq!(lost, 10_000);
        assert!(why.unwrap().contains("No space left"));
    }

    /// A reader that stalls holds nobody up: what it has read are whole records in order, and the
    /// others are counted. With gaps allowed it goes on once it reads again.
    #[test]
    fn a_reader_that_stalls_costs_records() {
        for gaps in [Gaps::Allowed, Gaps::End] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            let file = File::from(std::os::fd::OwnedFd::from(ours));
            let mut writer = Writer::new(file, 1000, gaps);
            writer.start();
            (0..200_000).for_each(|n| _ = writer.record(&numbered(n)));
            let lost = writer.lost().records();
            assert!(lost > 100_000, "{lost}");
            let reader = thread::spawn(move || {
                let mut text = String::new();
                theirs.read_to_string(&mut text).unwrap();
                text
            });
            thread::sleep(Duration::from_millis(200));
            let accepted = writer.record(b"again\n");
            let (all_lost, why) = writer.end();
            let text = reader.join().unwrap();
            let mut numbers: Vec<&str> = text.lines().collect();
            assert_eq!(numbers.len() as u64, 200_001 - all_lost, "{why:?}");
            assert_eq!(accepted, gaps == Gaps::Allowed);
            assert_eq!(numbers.last() == Some(&"again"), accepted);
            numbers.retain(|n| *n != "again");
            let numbers: Vec<u32> = numbers.iter().map(|n| n.parse().unwrap()).collect();
            assert!(numbers.is_sorted());
            if gaps == Gaps::End {
                assert!(numbers.iter().copied().eq(0..numbers.len() as u32), "no gap");
            }
        }
    }

    /// As a reader that is killed: the pipe is closed, and nobody gets a signal.
    #[test]
    fn a_closed_pipe_costs_records() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut writer =
            Writer::new(File::from(std::os::fd::OwnedFd::from(ours)), 1000, Gaps::Allowed);
        drop(theirs);
        (0..100).for_each(|n| _ = writer.record(&numbered(n)));
        let (lost, why) = writer.end();
        assert_eq!(lost, 100);
        assert!(why.unwrap().contains("roken pipe"));
    }
}
