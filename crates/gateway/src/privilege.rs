//! What the process may do: once everything is open, as little as possible; and, for the thread
//! that forwards, the processor before others.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::{env, fs, io};

use caps::{CapSet, Capability};
use clap::ValueEnum;
use nix::unistd::{Gid, Uid, geteuid, setgid, setgroups, setuid};

use crate::sys;
use crate::trouble::Trouble;

/// Whether the forwarding thread goes before others (`SCHED_FIFO`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum RealTime {
    /// Where it is permitted.
    Auto,
    /// Or nothing is started.
    On,
    /// Never.
    Off,
}

impl RealTime {
    /// Asks for it, for the calling thread; threads and processes that it starts are ordinary ones.
    /// Whether it was granted.
    ///
    /// # Errors
    /// When it must be and is not.
    pub fn apply(self) -> Result<bool, Trouble> {
        match self {
            Self::Off => Ok(false),
            Self::Auto => Ok(sys::real_time().is_ok()),
            Self::On => sys::real_time().map(|()| true).map_err(|e| {
                Trouble::new(
                    format!("--realtime on: {e}"),
                    "run it as root, or: setcap cap_sys_nice+ep bluewater-gateway, or raise \
                     `ulimit -r` to 1 in /etc/security/limits.conf",
                )
            }),
        }
    }
}

/// Numbers of users that are given to services while they run (systemd's `DynamicUser`).
const PASSING: std::ops::RangeInclusive<u32> = 61_184..=65_519;

/// The number of a user without a name and without a process. Another process of the same user, as services
/// run as `nobody`, could signal this one.
fn stranger() -> Option<u32> {
    let names = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = names.lines().filter_map(|line| line.split(':').nth(2)?.parse().ok());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let running = processes.filter_map(|process| process.metadata().ok().map(|m| m.uid()));
    let taken: HashSet<u32> = named.chain(running).collect();
    let first = PASSING.start() + std::process::id() % (PASSING.end() - PASSING.start() + 1);
    (first..=*PASSING.end()).chain(PASSING).find(|user| !taken.contains(user))
}

/// The user and group who became root by `sudo`, if they were not root's before.
pub(crate) fn by_sudo() -> Option<(u32, u32)> {
    sudoer(|name| env::var(name).ok())
}

fn sudoer(variable: impl Fn(&str) -> Option<String>) -> Option<(u32, u32)> {
    let number = |name| variable(name)?.parse().ok();
    let (user, group) = (number("SUDO_UID")?, number("SUDO_GID")?);
    (user != 0 && group != 0).then_some((user, group))
}

/// Gives up all rights for good: root becomes the user who called sudo, or else a user of no other process.
/// All threads change the user; the calling thread and those that it starts from now on lose all
/// capabilities.
///
/// # Errors
/// When that fails: then nothing should be forwarded.
pub fn drop_all() -> Result<(), Trouble> {
    let failed = |e: &dyn std::fmt::Display| {
        let hint =
            "root needs cap_setuid, cap_setgid and cap_setpcap for it; another user does not";
        Trouble::new(format!("dropping privileges: {e}"), hint)
    };
    // Another user than root has no right to do this, so it comes first.
    empty_bounding_set().map_err(|e| failed(&e))?;
    if geteuid().is_root() && is_initial_namespace() {
        let stranger = || stranger().ok_or_else(|| failed(&"all users' numbers are taken"));
        let (user, group) = match by_sudo() {
            Some(both) => both,
            None => stranger().map(|stranger| (stranger, stranger))?,
        };
        setgroups(&[]).map_err(|e| failed(&e))?;
        setgid(Gid::from_raw(group)).map_err(|e| failed(&e))?;
        setuid(Uid::from_raw(user)).map_err(|e| failed(&e))?;
    }
    keep(&[]).map_err(|e| failed(&e))
}

/// Whether the numbers of users are those of the machine. Root of a user namespace is an ordinary user
/// outside and can become nobody else.
pub(crate) fn is_initial_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Gives up all capabilities of the calling thread but `some`, for good.
///
/// # Errors
/// Those of the system.
pub fn keep(some: &[Capability]) -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    empty_bounding_set()?;
    let held = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let kept = some.iter().copied().filter(|c| held.contains(c)).collect();
    caps::clear(None, CapSet::Inheritable)
        .and_then(|()| caps::set(None, CapSet::Effective, &kept))
        .and_then(|()| caps::set(None, CapSet::Permitted, &kept))
        .map_err(io::Error::other)
}

/// What the calling thread starts cannot get any capability again. Without the right to do that (a
/// program that was given capabilities by its file) `no_new_privs` has to do.
fn empty_bounding_set() -> io::Result<()> {
    let held = caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP);
    if held.map_err(io::Error::other)? {
        caps::clear(None, CapSet::Bounding).map_err(io::Error::other)?;
    }
    Ok(())
}

/// The next program that the calling thread starts has `some`, too, whatever its user.
pub(crate) fn hand_down(some: Capability) -> io::Result<()> {
    caps::raise(None, CapSet::Inheritable, some)
        .and_then(|()| caps::raise(None, CapSet::Ambient, some))
        .map_err(io::Error::other)
}

/// Takes back what was handed down to this program: it has what its user has.
pub(crate) fn regain() -> io::Result<()> {
    let taken =
        caps::clear(None, CapSet::Ambient).and_then(|()| caps::clear(None, CapSet::Inheritable));
    taken.map_err(io::Error::other)?;
    if geteuid().is_root() {
        return Ok(());
    }
    caps::clear(None, CapSet::Effective)
        .and_then(|()| caps::clear(None, CapSet::Permitted))
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If root itself calls `sudo`, there is no other user to become.
    #[test]
    fn rights_go_to_who_called_sudo_but_root() {
        let of = |user: &'static str, group: &'static str| {
            sudoer(move |name| {
                let value = if name == "SUDO_UID" { user } else { group };
                (!value.is_empty()).then(|| value.into())
            })
        };
        assert_eq!(of("1000", "100"), Some((1000, 100)));
        for (user, group) in [
            ("0", "0"),
            ("0", "100"),
            ("1000", "0"),
            ("", "100"),
            ("1000", ""),
            ("x", "1"),
            ("-1", "1"),
        ] {
            assert_eq!(of(user, group), None, "{user} {group}");
        }
    }
}
