//! Any command behind an emulated link, without root where user namespaces are allowed.
//!
//! ```text
//! namespace "near"            this process             namespace "far"
//!   COMMAND -- tun0  =======>  link up   =======>  tun0 -- the far commands
//!                    <=======  link down <=======
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use caps::Capability;
use clap::ValueEnum;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::control;
use crate::link::Spec;
use crate::namespace::{Namespace, enter_user_namespace};
use crate::port::Ports;
use crate::privilege;
use crate::session::{Doors, Finished, Forwarding, Session};
use crate::sys;
use crate::trouble::Trouble;

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
    /// The name of the thread that holds its namespace.
    const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
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
    let mut session = Session::new(specs, how, ports)?;
    let doors = Doors::open(how, specs)?;
    let servers = far.iter().map(|line| Server::start(&ends.far, line));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let child = start(&ends.near, command, &how.name())?;
    ends.unprivileged()?;
    session.serve(doors, &wake)?;
    let mut running = Running::new(child, terminated, wake);
    let ended = session.run(&waker, || running.ended());
    drop(servers);
    ended?;
    let finished = session.finish(ends.lost())?;
    Ok((running.code(), finished))
}

/// The command line's own name for [`run_bound`], which users need not know.
pub const BOUND: &str = "bound-exec";

/// Becomes `command`, which will be killed if the parent `parent` dies first. Returns only when it
/// cannot: the exit code is 127 if there is no such command, 126 if it may not be run.
pub fn run_bound(parent: i32, command: &[String]) -> (i32, Trouble) {
    _ = set_pdeathsig(Signal::SIGKILL);
    if getppid() != Pid::from_raw(parent) {
        return (1, Trouble::new("the gateway is gone", ""));
    }
    let (name, arguments) = command.split_first().map_or(("", command), |(n, a)| (n.as_str(), a));
    let error = Command::new(name).args(arguments).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (code, Trouble::system(name, error))
}

/// The command line of a process that does not outlive the thread that starts it.
fn bound(parent: u32, command: &[String]) -> Command {
    let mut bound = Command::new("/proc/self/exe");
    bound.arg(BOUND).arg(parent.to_string()).arg("--").args(command);
    bound.env("BLUEWATER_NEAR", NEAR[0].to_string()).env("BLUEWATER_FAR", FAR[0].to_string());
    bound
}

/// Runs `command` at an end of the link of the shell `name`, which another process runs. When that
/// ends, so does the command. Returns its exit code, as a shell would.
///
/// # Errors
/// When there is no such shell, or it is another user's.
pub fn join(name: &str, end: End, command: &[String]) -> Result<i32, Trouble> {
    let pid = control::process(name)?;
    let refused = |e: io::Error| Trouble::system(format!("joining {name}"), e);
    let shell = sys::process(pid).map_err(refused)?;
    let thread = thread_of(pid, end).map_err(refused)?.ok_or_else(|| {
        Trouble::new(format!("{name} has no ends to join"), "start it with `shell --name`")
    })?;
    enter(&thread).and_then(|()| privilege::keep(&[])).map_err(refused)?;
    let (waker, wake) = waker()?;
    let terminated = terminated(&wake)?;
    leave_the_terminal_to_the_command()?;
    let mut command = bound(std::process::id(), command);
    let child = command.env("BLUEWATER_NAME", name).spawn();
    let child = child.map_err(|e| Trouble::system("starting the command", e))?;
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

/// The thread of the process `pid` that holds the namespace of an end.
fn thread_of(pid: Pid, end: End) -> io::Result<Option<PathBuf>> {
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?.path();
        // It may have ended meanwhile.
        if fs::read_to_string(thread.join("comm")).is_ok_and(|c| c.trim_end() == end.name()) {
            return Ok(Some(thread));
        }
    }
    Ok(None)
}

/// Enters the namespaces of a thread. Without root the right to do so comes from its user namespace,
/// which belongs to the same user.
fn enter(thread: &Path) -> io::Result<()> {
    let (user, net) = (thread.join("ns/user"), File::open(thread.join("ns/net"))?);
    if fs::read_link(&user)? != fs::read_link("/proc/self/ns/user")? {
        setns(File::open(user)?, CloneFlags::CLONE_NEWUSER)?;
    }
    Ok(setns(net, CloneFlags::CLONE_NEWNET)?)
}

fn start(namespace: &Namespace, command: &[String], name: &str) -> Result<Child, Trouble> {
    let mut command = bound(std::process::id(), command);
    command.env("BLUEWATER_NAME", name);
    namespace.run(move || command.spawn()).map_err(|e| Trouble::system("starting the command", e))
}

/// A line for `sh` at the far end, in a process namespace of its own, so that whatever it starts
/// ends with it.
struct Server {
    pid: Pid,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    fn start(namespace: &Namespace, line: &str) -> Result<Self, Trouble> {
        // In a process namespace the parent outside has the number 0.
        let mut command = bound(0, &["sh", "-c", line].map(String::from));
        let (sender, receiver) = channel();
        // The thread is in the same network namespace, and stays as long as the process.
        let thread = namespace.run(move || {
            thread::spawn(move || {
                let child = unshare(CloneFlags::CLONE_NEWPID)
                    .map_err(io::Error::from)
                    .and_then(|()| command.spawn());
                _ = privilege::keep(&[]);
                _ = sender.send(child.as_ref().map(Child::id).map_err(ToString::to_string));
                _ = child.and_then(|mut child| child.wait());
            })
        });
        let failed = |e: &dyn std::fmt::Display| Trouble::system("starting at the far end", e);
        let pid = receiver.recv().map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
        Ok(Self { pid: Pid::from_raw(pid as i32), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take().filter(|t| !t.is_finished()) {
            _ = kill(self.pid, Signal::SIGKILL);
            _ = thread.join();
        }
    }
}

/// A command that runs.
struct Running {
    pid: Pid,
    status: thread::JoinHandle<io::Result<ExitStatus>>,
    /// Whether it is to end.
    terminated: Arc<AtomicBool>,
    /// Whether it was told before.
    told: bool,
}

impl Running {
    /// `wake` is written to until it is heard once `child` has ended.
    fn new(mut child: Child, terminated: Arc<AtomicBool>, mut wake: UnixStream) -> Self {
        let pid = Pid::from_raw(child.id() as i32);
        let status = thread::spawn(move || {
            let status = child.wait();
            thread::spawn(move || {
                while wake.write(&[1]).is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
            });
            status
        });
        Self { pid, status, terminated, told: false }
    }

    /// Ends the command if `terminated` says so. Whether it has ended.
    fn ended(&mut self) -> bool {
        if self.terminated.swap(false, Ordering::Relaxed) {
            // Told once, it may clean up. Told twice, it goes at once.
            _ = kill(self.pid, if self.told { Signal::SIGKILL } else { Signal::SIGTERM });
            self.told = true;
        }
        self.status.is_finished()
    }

    /// Its exit code, as a shell reports it.
    fn code(self) -> i32 {
        let status = self.status.join().ok().and_then(Result::ok);
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
