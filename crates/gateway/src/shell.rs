//! Any command behind an emulated link, without root where user namespaces are allowed.
//!
//! ```text
//! namespace "near"            this process             namespace "far"
//!   COMMAND -- tun0  =======>  link up   =======>  tun0 -- the far commands
//!                    <=======  link down <=======
//! ```

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use caps::Capability;
use clap::ValueEnum;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, geteuid, getpid, gettid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::clock::Clock;
use crate::control;
use crate::link::Spec;
use crate::namespace::{Namespace, enter_user_namespace};
use crate::port::Ports;
use crate::privilege;
use crate::session::{Doors, Finished, Forwarding, Session};
use crate::sys;
use crate::trouble::{Trouble, say};

/// Addresses of the near end.
pub const NEAR: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 64, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd64, 0, 0, 0, 0, 0, 0, 1)),
];
/// Addresses of the far end.
pub const FAR: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 64, 0, 2)),
    IpAddr::V6(Ipv6Addr::new(0xfd64, 0, 0, 0, 0, 0, 0, 2)),
];
/// The TUN device of each end.
pub const DEVICE: &str = "tun0";

/// An end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum End {
    /// Where the shell's command runs.
    Near,
    /// The other one.
    Far,
}

impl End {
    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }

    /// The end that is called so.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Near, Self::Far].into_iter().find(|end| end.name() == name)
    }
}

/// The way into both ends, for those who join.
#[derive(Debug)]
pub(crate) struct Rooms {
    /// This process, to be waited for.
    process: OwnedFd,
    user: File,
    /// The network namespaces, near and far.
    nets: [OwnedFd; 2],
}

impl Rooms {
    /// What [`control::join`] gets, which stays open here.
    pub(crate) fn way(&self, end: End) -> [RawFd; 3] {
        let net = &self.nets[usize::from(end == End::Far)];
        [self.process.as_raw_fd(), self.user.as_raw_fd(), net.as_raw_fd()]
    }
}

/// Two namespaces that have no way but to each other.
pub struct Ends {
    /// Where the command runs.
    pub near: Namespace,
    /// The other end.
    pub far: Namespace,
}

impl Ends {
    /// Both ends and the ports to them; with `ecn` TCP at both asks for ECN.
    ///
    /// # Errors
    /// What is missing, with the command that mends it.
    pub fn new(mtu: u32, ecn: bool) -> Result<(Self, Ports), Trouble> {
        let (near, far) = (Namespace::new(End::Near.name())?, Namespace::new(End::Far.name())?);
        if ecn {
            for end in [&near, &far] {
                end.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"))
                    .map_err(|e| Trouble::system("switching ECN on", e))?;
            }
        }
        let tuns = [near.tun(DEVICE, NEAR, mtu)?, far.tun(DEVICE, FAR, mtu)?];
        let ports =
            Ports { ends: tuns, longest: mtu as usize, fallback: None, warnings: Vec::new() };
        Ok((Self { near, far }, ports))
    }

    /// Gives up all rights of this process for good, but that to end what was started in the ends.
    fn unprivileged(&self) -> Result<(), Trouble> {
        self.near
            .run(|| privilege::keep(&[]))
            .and_then(|()| self.far.run(|| privilege::keep(&[])))
            .and_then(|()| privilege::keep(&[Capability::CAP_KILL]))
            .map_err(|e| Trouble::system("dropping privileges", e))
    }

    /// The way into them.
    fn rooms(&self) -> io::Result<Rooms> {
        Ok(Rooms {
            process: sys::process(getpid())?,
            user: File::open("/proc/self/ns/user")?,
            nets: [self.near.run(Namespace::here)?, self.far.run(Namespace::here)?],
        })
    }

    /// Packets that the kernel dropped at each end before they could be read.
    pub fn lost(&self) -> [u64; 2] {
        [self.near.dropped(DEVICE), self.far.dropped(DEVICE)]
    }
}

/// Runs `command` at the near end and each of `far` (a line for `sh`) at the far end, until the
/// command ends. Returns its exit code, as a shell would.
///
/// # Errors
/// What is missing, before anything is started.
pub fn shell(
    specs: &[Spec; 2],
    how: &Forwarding,
    (mtu, ecn): (u32, bool),
    command: &[String],
    far: &[String],
) -> Result<(i32, Finished), Trouble> {
    enter_user_namespace()?;
    let (waker, wake) = waker()?;
    let terminated = terminated(&wake)?;
    leave_the_terminal_to_the_command()?;
    let (ends, ports) = Ends::new(mtu, ecn)?;
    // A name or port that is taken is said before a file is touched.
    let doors = Doors::open(how, specs)?;
    let mut session = Session::new(specs, how, ports)?;
    let rooms = ends.rooms().map_err(|e| Trouble::system("opening the namespaces", e))?;
    let servers = far.iter().map(|line| Server::start(&ends.far, line, &how.name()));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let child = Bounded::start(&ends.near, bound(command, &how.name(), false))?;
    ends.unprivileged()?;
    let again = wake.try_clone().map_err(|e| Trouble::system("a pair of sockets", e))?;
    let mut running = Running::new(child, terminated, again);
    session.serve(doors, Some(rooms), &wake)?;
    drop(wake);
    let ended = session.run(&waker, || running.ended());
    drop(servers);
    ended?;
    let finished = session.finish(ends.lost());
    Ok((running.code(), finished))
}

/// The command line's own name for [`run_bound`], which users need not know.
pub const BOUND: &str = "bound-exec";

/// Runs `command` as the first process of a process namespace, and is all that such a process has to
/// be: it takes in what others leave behind, and hands on SIGTERM. When the command has ended,
/// everything that it has started is told to, and goes with this process a moment later; it goes with
/// the thread `parent` (a place in `/proc`) that has started it, too. Without rights over the
/// namespaces if it is `confined`. Returns the command's exit code, as a shell would; 127 if there is
/// no such command, 126 if it may not be run; and why it is not run.
pub fn run_bound(parent: &str, confined: bool, command: &[String]) -> (i32, Option<Trouble>) {
    let failed = |e: &dyn std::fmt::Display| (1, Some(Trouble::system("starting the command", e)));
    if let Err(e) = set_pdeathsig(Signal::SIGKILL) {
        return failed(&e);
    }
    // From here on it is noticed if the parent goes; before, it is gone from the outer /proc.
    if !Path::new(parent).exists() {
        return (1, Some(Trouble::new("the gateway is gone", "")));
    }
    // Where the kernel does not allow another one, /proc shows the processes of the outer namespace.
    _ = own_proc();
    let dropped = if confined { privilege::keep(&[]) } else { privilege::take_back() };
    if let Err(e) = dropped {
        return failed(&e);
    }
    let terminated = Arc::new(AtomicBool::new(false));
    let woken = waker().and_then(|(waker, wake)| {
        let watched = watch(SIGTERM, &terminated, &wake)
            .and_then(|()| signal_hook::low_level::pipe::register(SIGCHLD, wake).map(drop));
        watched.map(|()| waker).map_err(|e| Trouble::system("watching signals", e))
    });
    let waker = match woken {
        Ok(waker) => waker,
        Err(trouble) => return (1, Some(trouble)),
    };
    let (name, arguments) = command.split_first().map_or(("", command), |(n, a)| (n.as_str(), a));
    let child = match Command::new(name).args(arguments).spawn() {
        Ok(child) => Pid::from_raw(child.id() as i32),
        Err(e) => {
            let code = if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            return (code, Some(Trouble::system(name, e)));
        }
    };
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
    (code, None)
}

/// A mount namespace of its own with the `/proc` of this process namespace.
fn own_proc() -> nix::Result<()> {
    const NOTHING: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_SLAVE, NOTHING)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)
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

/// Tells all other processes of this namespace to end, and waits a while until they have.
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

/// What the command has left behind may take so long to end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The command line of a process that does not outlive the thread that asks for it; see
/// [`run_bound`].
fn bound(command: &[String], name: &str, confined: bool) -> Start {
    let (command, name) = (command.to_vec(), name.to_string());
    Box::new(move || {
        let mut bound = Command::new("/proc/self/exe");
        bound.arg(BOUND).arg(format!("--parent=/proc/{}/task/{}", getpid(), gettid()));
        bound.args(confined.then_some("--confined")).arg("--").args(command);
        bound.env("BLUEWATER_NAME", name);
        bound.env("BLUEWATER_NEAR", NEAR[0].to_string()).env("BLUEWATER_FAR", FAR[0].to_string());
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

type Start = Box<dyn FnOnce() -> Command + Send>;

/// Runs `command` at an end of the link of the shell `name`, which another process runs. When that
/// ends, so does the command. Returns its exit code, as a shell would.
///
/// # Errors
/// When there is no such shell, or it is another user's.
pub fn join(name: &str, end: End, command: &[String]) -> Result<i32, Trouble> {
    let [shell, user, net] = control::join(name, end)?;
    let refused = |e: io::Error| Trouble::system(format!("joining {name}"), e);
    enter(user, net).map_err(refused)?;
    let child = Bounded::begin(bound(command, name, true))?;
    privilege::keep(&[]).map_err(refused)?;
    let (waker, wake) = waker()?;
    let terminated = terminated(&wake)?;
    leave_the_terminal_to_the_command()?;
    end_with(shell, Arc::clone(&terminated), wake.try_clone().map_err(refused)?);
    let mut running = Running::new(child, terminated, wake);
    while !running.ended() {
        _ = (&waker).read(&mut [0; 64]);
    }
    Ok(running.code())
}

/// When the process `shell` has ended, sets `terminated` and writes to `wake`, and again after a
/// while.
fn end_with(shell: OwnedFd, terminated: Arc<AtomicBool>, mut wake: UnixStream) {
    thread::spawn(move || {
        let mut end = [PollFd::new(shell.as_fd(), PollFlags::POLLIN)];
        while poll(&mut end, PollTimeout::NONE) == Err(Errno::EINTR) {}
        for _ in 0..2 {
            terminated.store(true, Ordering::Relaxed);
            _ = wake.write(&[1]);
            thread::sleep(TO_CLEAN_UP);
        }
    });
}

/// What a joined command may take to end when its shell has.
const TO_CLEAN_UP: Duration = Duration::from_secs(2);

/// Enters namespaces. Without root the right to do so comes from the user namespace, which belongs to
/// the same user. Root needs no such right, and in another's user namespace that one would have all
/// rights over it.
fn enter(user: OwnedFd, net: OwnedFd) -> io::Result<()> {
    let theirs = File::from(user.try_clone()?).metadata()?.ino();
    if theirs != fs::metadata("/proc/self/ns/user")?.ino() {
        if geteuid().is_root() && privilege::is_initial_namespace() {
            let why = "root does not enter another user namespace";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        setns(user, CloneFlags::CLONE_NEWUSER)?;
    }
    Ok(setns(net, CloneFlags::CLONE_NEWNET)?)
}

/// A command in a process namespace of its own: whatever it starts ends with it.
struct Bounded {
    /// Its first process, see [`run_bound`].
    process: OwnedFd,
    status: Receiver<io::Result<ExitStatus>>,
}

impl Bounded {
    /// Starts it in a network namespace.
    fn start(namespace: &Namespace, command: Start) -> Result<Self, Trouble> {
        namespace.run(move || Self::begin(command))
    }

    /// Starts it where the calling thread is. A thread stays as long as it does.
    fn begin(command: Start) -> Result<Self, Trouble> {
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
struct Server {
    process: Bounded,
    ended: bool,
}

impl Server {
    /// Starts it and waits until something listens that did not before, or it has ended, or nothing of
    /// that happens for a while.
    fn start(namespace: &Namespace, line: &str, name: &str) -> Result<Self, Trouble> {
        let before = listening(namespace);
        let command = bound(&["sh", "-c", line].map(String::from), name, false);
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

/// A command that runs.
struct Running {
    process: OwnedFd,
    status: Receiver<io::Result<ExitStatus>>,
    /// Once it has ended.
    ended: Option<io::Result<ExitStatus>>,
    /// Whether it is to end.
    terminated: Arc<AtomicBool>,
    /// Whether it was told before.
    told: bool,
}

impl Running {
    /// `wake` is written to until it is heard once `child` has ended.
    fn new(child: Bounded, terminated: Arc<AtomicBool>, mut wake: UnixStream) -> Self {
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
    fn ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.status.try_recv().ok();
        }
        if self.terminated.swap(false, Ordering::Relaxed) && self.ended.is_none() {
            // Told once, it may clean up. Told twice, it goes at once.
            let signal = if self.told { Signal::SIGKILL } else { Signal::SIGTERM };
            _ = sys::signal(&self.process, signal);
            self.told = true;
        }
        self.ended.is_some()
    }

    /// Its exit code, as a shell reports it.
    fn code(self) -> i32 {
        let status = self.ended.and_then(Result::ok);
        status.map_or(1, |s| s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or_default()))
    }
}

/// Ctrl-C goes to the command, which shares our terminal; we end when it does.
fn leave_the_terminal_to_the_command() -> Result<(), Trouble> {
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::default())
            .map_err(|e| Trouble::system("watching signals", e))?;
    }
    Ok(())
}

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
