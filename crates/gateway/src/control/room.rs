//! Room for those who come, where a process may have few open files.

use std::io;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Enough files for all callers at a time and for all else that is open.
const ENOUGH: u64 = 512;

/// Raises the limit of open files to [`ENOUGH`], or as far as the user may.
pub(super) fn ask() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && let Some(more) = more(soft, hard)
    {
        _ = setrlimit(Resource::RLIMIT_NOFILE, more, hard);
    }
}

fn more(soft: u64, hard: u64) -> Option<u64> {
    let wanted = ENOUGH.min(hard);
    (wanted > soft).then_some(wanted)
}

/// Makes room if a caller waits at the door and cannot be let in because open files or memory are used up: the oldest
/// of those `there` has to go. Returns whether it has. The first `heard` of those `there` were served before;
/// the others come first. If nobody is `there`, waits a little, since the door would report the caller at
/// once, again and again.
pub(super) fn made<T>(
    door: &impl AsFd,
    there: &mut Vec<T>,
    heard: &mut usize,
    e: &io::Error,
) -> bool {
    let full = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM]
        .map(Some)
        .contains(&e.raw_os_error());
    // Without a file to spare the door reports this error even if nobody waits.
    if !full || !somebody_waits(door) {
        return false;
    }
    if there.is_empty() {
        thread::sleep(Duration::from_millis(100));
    }
    if *heard == 0 {
        return false;
    }
    *heard -= 1;
    there.remove(0);
    true
}

fn somebody_waits(door: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(door.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    use super::*;

    #[test]
    fn as_many_files_are_asked_for_as_the_user_may_have() {
        assert_eq!(more(40, 4096), Some(ENOUGH));
        assert_eq!(more(40, 100), Some(100));
        assert_eq!([more(40, 40), more(1024, 4096), more(1024, u64::MAX)], [None; 3]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
    fn who_is_there_longest_makes_room() {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut there, mut heard) = (vec![1, 2, 3, 4], 3);
        let mut full = |kind, heard: &mut usize| {
            made(&door, &mut there, heard, &io::Error::from_raw_os_error(kind)).then(|| there[0])
        };
        assert_eq!(full(libc::EMFILE, &mut heard), None, "nobody waits");
        let _waits = TcpStream::connect(door.local_addr().unwrap()).unwrap();
        assert_eq!(full(libc::EAGAIN, &mut heard), None);
        for (kind, first) in [
            (libc::EMFILE, Some(2)),
            (libc::ENFILE, Some(3)),
            (libc::ENOMEM, Some(4)),
            (libc::EMFILE, None),
        ] {
            assert_eq!(full(kind, &mut heard), first, "who has just come is heard");
        }
        let begun = Instant::now();
        let nobody = &mut Vec::<u8>::new();
        assert!(!made(&door, nobody, &mut 0, &io::Error::from_raw_os_error(libc::EMFILE)));
        assert!(begun.elapsed() >= Duration::from_millis(100));
    }
}
