//! Commands that run at an end of the link.

use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use caps::Capability;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::bound::{Start, bound};
use crate::clock::Clock;
use crate::namespace::Namespace;
use crate::namespace::ends::Places;
use crate::trouble::{Trouble, say};
use crate::{privilege, sys};

/// A command in a process namespace of its own: all processes that it starts end with it.
pub(super) struct Bounded {
    /// Its first process, see `run_bound`.
    process: OwnedFd,
    status: Receiver<io::Result<ExitStatus>>,
}

impl Bounded {
    /// Starts it in a network namespace.
    pub(super) fn start(namespace: &Namespace, command: Start) -> Result<Self, Trouble> {
        namespace.run(move || Self::begin(command))
    }

    /// Starts it where the calling thread is. A thread stays as long as it does.
    pub(super) fn begin(command: Start) -> Result<Self, Trouble> {
        let (started, start) = channel();
        let (ended, status) = channel();
        thread::spawn(move || {
            let mut command = command();
            let child = unshare(CloneFlags::CLONE_NEWPID)
                .map_err(io::Error::from)
                .and_then(|()| privilege::hand_down(Capability::CAP_SYS_ADMIN))
                .and_then(|()| command.spawn());
            let kept = privilege::keep(&[]);
            let process = child.as_ref().map_err(ToString::to_string).and_then(|child| {
                let process = sys::process(Pid::from_raw(child.id() as i32));
                process.map_err(|e| e.to_string())
            });
            _ = started.send(process);
            if let Ok(mut child) = child {
                if kept.is_err() {
                    _ = child.kill();
                }
                _ = ended.send(child.wait());
            }
        });
        let failed = |e: &dyn std::fmt::Display| Trouble::system("starting the command", e);
        let process = start.recv().map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
        Ok(Self { process, status })
    }
}

/// A line for `sh` at the far end.
pub(super) struct Server {
    process: Bounded,
    ended: bool,
}

impl Server {
    /// Starts it and waits until something listens that did not before, or it has ended, or nothing of
    /// that happens for a while.
    pub(super) fn start(
        namespace: &Namespace,
        line: &str,
        name: &str,
        places: &Places,
    ) -> Result<Self, Trouble> {
        let before = listening(namespace);
        let command = bound(&["sh", "-c", line].map(String::from), name, places, false);
        let mut new = Self { process: Bounded::start(namespace, command)?, ended: false };
        let clock = Clock::new();
        while !new.has_ended() && listening(namespace) <= before {
            if clock.now() > TO_LISTEN {
                say(format!("note: nothing listens at the far end yet: {line}"));
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(new)
    }

    fn has_ended(&mut self) -> bool {
        self.ended |= !matches!(self.process.status.try_recv(), Err(TryRecvError::Empty));
        self.ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.has_ended() {
            _ = sys::signal(&self.process.process, Signal::SIGKILL);
            _ = self.process.status.recv_timeout(TO_CLEAN_UP);
        }
    }
}

/// How long a server may take until it listens, ns.
const TO_LISTEN: u64 = 2_000_000_000;

/// How many sockets there are in a namespace that wait for others: of TCP in state LISTEN (10), of UDP
/// without a peer (7).
fn listening(namespace: &Namespace) -> usize {
    let count = |(table, state): (&str, &str)| {
        let rows = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        rows.lines().skip(1).filter(|row| row.split_whitespace().nth(3) == Some(state)).count()
    };
    let tables = [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")];
    namespace.run(move || tables.into_iter().map(count).sum())
}

/// What a command may take to end when its shell has, or is to.
pub(super) const TO_CLEAN_UP: Duration = Duration::from_secs(2);

/// A command that runs.
pub(super) struct Running {
    process: OwnedFd,
    status: Receiver<io::Result<ExitStatus>>,
    /// Once it has ended.
    ended: Option<io::Result<ExitStatus>>,
    /// Whether it is to end.
    terminated: Arc<AtomicBool>,
    /// Whether it got SIGTERM before.
    told: bool,
}

impl Running {
    /// `wake` is written to until it is heard once `child` has ended.
    pub(super) fn new(child: Bounded, terminated: Arc<AtomicBool>, mut wake: UnixStream) -> Self {
        let Bounded { process, status: result } = child;
        let (tell, status) = channel();
        thread::spawn(move || {
            let gone = |_| Err(io::ErrorKind::BrokenPipe.into());
            _ = tell.send(result.recv().unwrap_or_else(gone));
            while wake.write(&[1]).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
        });
        Self { process, status, ended: None, terminated, told: false }
    }

    /// Ends the command if `terminated` says so. Whether it has ended.
    pub(super) fn ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.status.try_recv().ok();
        }
        if self.terminated.swap(false, Ordering::Relaxed) && self.ended.is_none() {
            // After one signal it may clean up; after a second it ends at once.
            let signal = if self.told { Signal::SIGKILL } else { Signal::SIGTERM };
            _ = sys::signal(&self.process, signal);
            self.told = true;
        }
        self.ended.is_some()
    }

    /// Its exit code, as a shell reports it.
    pub(super) fn code(self) -> i32 {
        let status = self.ended.and_then(Result::ok);
        status.map_or(1, |s| s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or_default()))
    }
}
