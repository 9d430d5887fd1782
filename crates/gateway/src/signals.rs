//! Signals that end a gateway, and what wakes the thread that forwards.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::trouble::Trouble;

/// A waker, and what to write to to wake.
pub(crate) fn waker() -> Result<(UnixStream, UnixStream), Trouble> {
    UnixStream::pair().map_err(|e| Trouble::system("a pair of sockets", e))
}

/// A flag that SIGTERM and SIGHUP set; they also write to `wake`.
pub(crate) fn terminated(wake: &UnixStream) -> Result<Arc<AtomicBool>, Trouble> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        watch(signal, &flag, wake).map_err(|e| Trouble::system("watching signals", e))?;
    }
    Ok(flag)
}

pub(crate) fn watch(signal: i32, flag: &Arc<AtomicBool>, wake: &UnixStream) -> io::Result<()> {
    signal_hook::flag::register(signal, Arc::clone(flag))?;
    signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
    Ok(())
}
