//! Room for those who come, where a process may have few open files.

use std::io;
use std::thread;
use std::time::Duration;

use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// As many are enough for all that may be there at a time, and for what else is open.
const ENOUGH: u64 = 512;

/// Asks for so many open files, if the user may have them.
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

/// Whether nobody else can be let in for want of open files or memory and somebody makes room, who is there
/// longest. If nobody is, it waits a little: the next one would be told of at once, again and again.
pub(super) fn made<T>(there: &mut Vec<T>, e: &io::Error) -> bool {
    let full = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM]
        .map(Some)
        .contains(&e.raw_os_error());
    if full && there.is_empty() {
        thread::sleep(Duration::from_millis(100));
        return false;
    }
    if full {
        there.remove(0);
    }
    full
}

#[cfg(test)]
mod tests {
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
        let error = io::Error::from_raw_os_error;
        let mut there = vec![1, 2, 3];
        assert!(made(&mut there, &error(libc::EMFILE)) && made(&mut there, &error(libc::ENFILE)));
        assert!(!made(&mut there, &error(libc::EAGAIN)));
        assert_eq!(there, [3]);
        assert!(made(&mut there, &error(libc::ENOMEM)));
        let begun = Instant::now();
        assert!(!made(&mut there, &error(libc::EMFILE)));
        assert!(begun.elapsed() >= Duration::from_millis(100));
    }
}
