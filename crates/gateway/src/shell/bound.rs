//! The first process of a command's process namespace.

use std::env;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, gettid};
use signal_hook::consts::{SIGCHLD, SIGTERM};

use crate::namespace::ends::Places;
use crate::privilege;
use crate::signals::{waker, watch};
use crate::trouble::Trouble;

/// The command line's own name for [`run_bound`], which users need not know.
pub const BOUND: &str = "bound-exec";

/// Runs `command` as the first process of a process namespace, with the duties of such a process: it reaps
/// orphans and hands on SIGTERM. When the command has ended, all processes that it has started get SIGTERM
/// and end with this process a moment later. This process ends with the thread `parent` (a place in `/proc`)
/// that has started it. If it is `confined` it has no rights over the namespaces. Returns the command's exit
/// code, as a shell would (127: no such command, 126: it may not be run), and the reason if it is not run.
pub fn run_bound(
    parent: &str,
    confined: bool,
    dns: &[IpAddr],
    command: &[String],
) -> (i32, Option<Trouble>) {
    let failed = |e: &dyn std::fmt::Display| (1, Some(Trouble::system("starting the command", e)));
    if let Err(e) = set_pdeathsig(Signal::SIGKILL) {
        return failed(&e);
    }
    // From here on it is noticed if the parent goes; before, it is gone from the outer /proc.
    if !Path::new(parent).exists() {
        return (1, Some(Trouble::new("the gateway is gone", "")));
    }
    if let Err(trouble) = own_view(dns) {
        return (1, Some(trouble));
    }
    let dropped = if confined { privilege::keep(&[]) } else { privilege::regain() };
    if let Err(e) = dropped {
        return failed(&e);
    }
    match run(command) {
        Ok(code) => (code, None),
        Err((code, trouble)) => (code, Some(trouble)),
    }
}

/// Runs `command` until it ends, and ends the processes that it leaves behind. Returns the exit code; for an
/// error also the reason.
fn run(command: &[String]) -> Result<i32, (i32, Trouble)> {
    let terminated = Arc::new(AtomicBool::new(false));
    let (waker, wake) = waker().map_err(|trouble| (1, trouble))?;
    watch(SIGTERM, &terminated, &wake)
        .and_then(|()| signal_hook::low_level::pipe::register(SIGCHLD, wake).map(drop))
        .map_err(|e| (1, Trouble::system("watching signals", e)))?;
    let (name, arguments) = command.split_first().map_or(("", command), |(n, a)| (n.as_str(), a));
    let child = Command::new(name).args(arguments).spawn().map_err(|e| {
        let code = if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
        (code, Trouble::system(name, e))
    })?;
    let child = Pid::from_raw(child.id() as i32);
    let code = loop {
        if let Some(code) = reap(child) {
            break code;
        }
        if terminated.swap(false, Ordering::Relaxed) {
            _ = kill(child, Signal::SIGTERM);
        }
        _ = (&waker).read(&mut [0; 64]);
    };
    end_all(&waker);
    Ok(code)
}

const NOTHING: Option<&str> = None;

/// Enters a mount namespace of its own, from which no mount gets out. Fails where the root is no mount, as in
/// some chroots.
fn own_mounts() -> nix::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_SLAVE, NOTHING)
}

/// What the command sees of the machine: processes of this namespace, and servers `dns` for names.
fn own_view(dns: &[IpAddr]) -> Result<(), Trouble> {
    let apart = own_mounts();
    // Where the kernel does not allow another one, /proc shows the processes of the outer namespace.
    _ = apart.and_then(|()| own_proc());
    if dns.is_empty() {
        // No name server can be reached here: look-ups fail at once instead of waiting for an answer.
        _ = apart.map_err(io::Error::from).and_then(|()| ask_for_names(dns));
        return Ok(());
    }
    // What is mounted elsewhere would be for everybody, and for good.
    apart.map_err(|e| {
        Trouble::new(
            format!("--uplink: no mounts for the command alone: {e}"),
            "in a chroot: first, outside, mount --bind ROOT ROOT",
        )
    })?;
    ask_for_names(dns).map_err(|e| Trouble::system("--uplink: /etc/resolv.conf", e))
}

/// The `/proc` of this process namespace.
fn own_proc() -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)
}

const NAMES: &str = "/etc/resolv.conf";

/// Sends look-ups of names to these servers, in this process and in those that it starts.
fn ask_for_names(servers: &[IpAddr]) -> io::Result<()> {
    let text: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    // Nobody can take a random name first.
    let number = RandomState::new().hash_one(0);
    let folder = env::temp_dir().join(format!("bluewater-names-{number:016x}"));
    let named = |e| io::Error::other(format!("{}: {e}", folder.display()));
    fs::create_dir(&folder).map_err(named)?;
    // In a file system of its own the file keeps a name; without a name a shell inside this one could not
    // mount on it.
    let (flags, options) = (MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=0755,size=64k"));
    let mounted =
        mount(Some("tmpfs"), &folder, Some("tmpfs"), flags, options).map_err(io::Error::from);
    let mounted = mounted.and_then(|()| {
        let file = folder.join("resolv.conf");
        let bound = fs::write(&file, text)
            .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o644)))
            .and_then(|()| Ok(mount(Some(&file), NAMES, NOTHING, MsFlags::MS_BIND, NOTHING)?));
        umount2(&folder, MntFlags::MNT_DETACH)?;
        bound
    });
    _ = fs::remove_dir(&folder);
    mounted
}

/// Takes in all processes that have ended; the exit code if `child` is one of them.
fn reap(child: Pid) -> Option<i32> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == child => code = Some(status),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                code = Some(128 + signal as i32);
            }
            Ok(WaitStatus::StillAlive) | Err(_) => return code,
            Ok(_) => {}
        }
    }
}

/// Sends SIGTERM to all other processes of this namespace, and waits a while until they have ended.
fn end_all(waker: &UnixStream) {
    // Elsewhere these would be all processes of the user.
    if getpid() != Pid::from_raw(1) || kill(Pid::from_raw(-1), Signal::SIGTERM).is_err() {
        return;
    }
    _ = waker.set_read_timeout(Some(LAST_WORDS / 10));
    for _ in 0..10 {
        if waitpid(None, Some(WaitPidFlag::WNOHANG)) == Err(Errno::ECHILD) {
            return;
        }
        _ = (&*waker).read(&mut [0; 64]);
        _ = reap(getpid());
    }
}

/// How long processes that the command has left behind may take to end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The command line of a process that does not outlive the thread that asks for it; see
/// [`run_bound`].
pub(super) fn bound(command: &[String], name: &str, places: &Places, confined: bool) -> Start {
    let (command, name, places) = (command.to_vec(), name.to_string(), places.clone());
    Box::new(move || {
        let mut bound = Command::new("/proc/self/exe");
        bound.arg(BOUND).arg(format!("--parent=/proc/{}/task/{}", getpid(), gettid()));
        bound.args(confined.then_some("--confined"));
        places.dns.iter().for_each(|server| _ = bound.arg(format!("--dns={server}")));
        bound.arg("--").args(command);
        bound.env("BLUEWATER_NAME", name);
        bound.envs(places.environment());
        // So that it finds this program by its name.
        if let Some(path) = path_with_ours() {
            bound.env("PATH", path);
        }
        bound
    })
}

/// `PATH`, and behind all else the folder of this program.
fn path_with_ours() -> Option<OsString> {
    let own = env::current_exe().ok()?;
    let path = env::var_os("PATH").unwrap_or_default();
    env::join_paths(env::split_paths(&path).chain([own.parent()?.to_path_buf()])).ok()
}

pub(super) type Start = Box<dyn FnOnce() -> Command + Send>;
