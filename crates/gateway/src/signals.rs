//! Signals that end a gateway, and what wakes the thread that forwards.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::libc::{SIGPWR, SIGSTKFLT};
use signal_hook::consts::{SIGALRM, SIGIO, SIGPROF, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU};

use crate::trouble::Trouble;

/// A waker, and what to write to to wake.
pub(crate) fn waker() -> Result<(UnixStream, UnixStream), Trouble> {
    UnixStream::pair().map_err(|e| Trouble::system("a pair of sockets", e))
}

/// The signals that would end a process at once, except faults, those of a terminal, and real-time signals.
const ENDING: [i32; 8] = [SIGTERM, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXCPU, SIGPWR, SIGSTKFLT];

/// What asks others to do something, and is no reason to end.
const ASKING: [i32; 2] = [SIGUSR1, SIGUSR2];

/// A flag that any signal sets which would end the process; they also write to `wake`.
pub(crate) fn terminated(wake: &UnixStream) -> Result<Arc<AtomicBool>, Trouble> {
    let flag = Arc::new(AtomicBool::new(false));
    let failed = |e| Trouble::system("watching signals", e);
    for signal in ENDING {
        watch(signal, &flag, wake).map_err(failed)?;
    }
    for signal in ASKING {
        signal_hook::flag::register(signal, Arc::default()).map_err(failed)?;
    }
    Ok(flag)
}

pub(crate) fn watch(signal: i32, flag: &Arc<AtomicBool>, wake: &UnixStream) -> io::Result<()> {
    signal_hook::flag::register(signal, Arc::clone(flag))?;
    signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
    Ok(())
}
