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

/// A second gateway does not empty a file that the first one writes, by whatever name.
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

/// A user who may only read a file, as one of a group of administrators, keeps nobody from writing to it.
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

/// Records handed over before the change to another file are in the old file, all others in the new one. A
/// path that still leads to the present file changes nothing.
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
    let mut writer = Writer::new(File::from(std::os::fd::OwnedFd::from(ours)), 1000, Gaps::Allowed);
    drop(theirs);
    (0..100).for_each(|n| _ = writer.record(&numbered(n)));
    let (lost, why) = writer.end();
    assert_eq!(lost, 100);
    assert!(why.unwrap().contains("roken pipe"));
}
