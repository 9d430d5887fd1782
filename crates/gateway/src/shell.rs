//! Any command behind an emulated link, without root where user namespaces are allowed.
//!
//! ```text
//! namespace "near"            this process             namespace "far"
//!   COMMAND -- tun0  =======>  link up   =======>  tun0 -- the far commands
//!                    <=======  link down <=======
//! ```

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use aqm::Counters;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{set_pdeathsig, set_timerslack};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::clock::Clock;
use crate::forward::{DIRECTIONS, Forwarder, Pause, Tap};
use crate::link::Spec;
use crate::namespace::{Namespace, enter_user_namespace};
use crate::options::links;
use crate::record::Recorder;
use crate::report;
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

/// The two ends, and what is between them.
pub struct Emulation {
    /// Where the command runs.
    pub near: Namespace,
    /// The other end.
    pub far: Namespace,
    specs: [Spec; 2],
}

/// How to forward.
#[derive(Clone, Debug)]
pub struct Forwarding {
    /// Longest packet, bytes.
    pub mtu: u32,
    /// Look at the clock instead of sleeping for the last so many ns before a departure.
    pub spin: u64,
    /// Where to write JSON lines.
    pub log: Option<PathBuf>,
    /// Where to record arrivals.
    pub record: Option<PathBuf>,
    /// Time between lines, ns.
    pub interval: u64,
    /// Whether TCP at both ends asks for ECN.
    pub ecn: bool,
}

impl Emulation {
    /// Two namespaces that know how to reach each other, and what is forwarded between them.
    ///
    /// # Errors
    /// What is missing, with the command that mends it.
    pub fn new<T: Tap>(
        specs: &[Spec; 2],
        how: &Forwarding,
        tap: T,
    ) -> Result<(Self, Forwarder<T>), Trouble> {
        let (near, far) = (Namespace::new("near")?, Namespace::new("far")?);
        if how.ecn {
            for end in [&near, &far] {
                end.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"))
                    .map_err(|e| Trouble::system("switching ECN on", e))?;
            }
        }
        let ports = [near.tun(DEVICE, NEAR, how.mtu)?, far.tun(DEVICE, FAR, how.mtu)?];
        let links = links(specs, &ports, how.mtu as usize)?;
        // The default of 50 µs would delay every departure.
        set_timerslack(1).map_err(|e| Trouble::system("setting the timer slack", e))?;
        let forwarder = Forwarder::new(links, ports, Clock::new(), how.spin, tap);
        Ok((Self { near, far, specs: specs.clone() }, forwarder))
    }

    /// Forwards until `ended`, which is asked whenever `waker` was written to, and writes the log
    /// every `interval` (ns). Returns when it ended (ns), and the summaries.
    ///
    /// # Errors
    /// When a device is gone or the log cannot be written.
    pub fn forward<T: Tap>(
        &self,
        forwarder: &mut Forwarder<T>,
        log: &mut Log,
        interval: u64,
        waker: &UnixStream,
        mut ended: impl FnMut() -> bool,
    ) -> Result<(u64, [Value; 2]), Trouble> {
        let broken = |e: io::Error| Trouble::system("forwarding", e);
        let mut next = interval;
        loop {
            match forwarder.run(next, waker.as_fd()).map_err(broken)? {
                Pause::Time => {
                    log.samples(forwarder)?;
                    next += interval;
                }
                Pause::Woken => {
                    _ = io::Read::read(&mut &*waker, &mut [0; 64]);
                    if ended() {
                        break;
                    }
                }
            }
        }
        log.samples(forwarder)?;
        let now = forwarder.now();
        forwarder.deliver(now);
        let lost = [self.near.dropped(DEVICE), self.far.dropped(DEVICE)];
        let summaries = std::array::from_fn(|i| {
            let beside = (lost[i], forwarder.refused()[i]);
            report::summary(DIRECTIONS[i], &self.specs[i], &forwarder.links[i], now, beside)
        });
        log.line(&json!({"summary": summaries}))?;
        Ok((now, summaries))
    }
}

/// The JSON lines.
pub struct Log {
    file: Option<BufWriter<File>>,
    before: [Counters; 2],
}

impl Log {
    /// Begins a log, if there is to be one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(path: Option<&Path>, specs: &[Spec; 2]) -> Result<Self, Trouble> {
        let file = path.map(create).transpose()?;
        let mut log = Self { file, before: [Counters::default(); 2] };
        log.line(&report::head(specs))?;
        Ok(log)
    }

    fn samples<T: Tap>(&mut self, forwarder: &mut Forwarder<T>) -> Result<(), Trouble> {
        if self.file.is_none() {
            return Ok(());
        }
        let now = forwarder.now();
        forwarder.deliver(now);
        for (i, link) in forwarder.links.iter().enumerate() {
            let line = report::sample(i, link, now, &mut self.before[i]);
            self.line(&line)?;
        }
        Ok(())
    }

    fn line(&mut self, line: &Value) -> Result<(), Trouble> {
        let Some(file) = &mut self.file else { return Ok(()) };
        writeln!(file, "{line}")
            .and_then(|()| file.flush())
            .map_err(|e| Trouble::system("writing the log", e))
    }
}

/// A file to write to.
fn create(path: &Path) -> Result<BufWriter<File>, Trouble> {
    File::create(path).map(BufWriter::new).map_err(|e| Trouble::system(path.display(), e))
}

/// Runs `command` at the near end and each of `far` (a line for `sh`) at the far end, until the
/// command ends. Returns its exit code, as a shell would.
///
/// # Errors
/// What is missing, before anything is started.
pub fn shell(
    specs: &[Spec; 2],
    how: &Forwarding,
    command: &[String],
    far: &[String],
) -> Result<(i32, [Value; 2]), Trouble> {
    let mut log = Log::new(how.log.as_deref(), specs)?;
    let unwritten = |e: io::Error| Trouble::system("recording", e);
    let recorder = how.record.as_deref().map(create).transpose()?;
    let recorder =
        recorder.map(|file| Recorder::new(file, specs)).transpose().map_err(unwritten)?;
    enter_user_namespace()?;
    let (waker, wake) = UnixStream::pair().map_err(|e| Trouble::system("a pair of sockets", e))?;
    let terminated = Arc::new(AtomicBool::new(false));
    watch_signals(&wake, &terminated).map_err(|e| Trouble::system("watching signals", e))?;
    let (emulation, mut forwarder) = Emulation::new(specs, how, recorder)?;
    let servers = far.iter().map(|line| Server::start(&emulation.far, line));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let child = start(&emulation.near, command)?;
    let pid = Pid::from_raw(child.id() as i32);
    let status = wait(child, wake);
    let mut killed = false;
    let ended = emulation.forward(&mut forwarder, &mut log, how.interval, &waker, || {
        if terminated.swap(false, Ordering::Relaxed) {
            // Asked once: the command may clean up. Asked twice: at once.
            _ = kill(pid, if killed { Signal::SIGKILL } else { Signal::SIGTERM });
            killed = true;
        }
        status.is_finished()
    });
    drop(servers);
    let (at, summaries) = ended?;
    let hashes = forwarder.links.each_ref().map(|link| link.decision_hash().to_string());
    if let Some(recorder) = forwarder.into_tap() {
        recorder.end(at, hashes).map_err(unwritten)?;
    }
    let status = status.join().ok().and_then(Result::ok);
    Ok((status.map_or(1, code), summaries))
}

/// The command line's own name for [`run_bound`], which users need not know.
pub const BOUND: &str = "bound-exec";

/// Becomes `command`, which will be killed if the parent `parent` dies first. Returns only when it
/// cannot: the exit code is 127 if there is no such command, 126 if it may not be run.
pub fn run_bound(parent: i32, command: &[String]) -> (i32, Trouble) {
    let (name, arguments) = command.split_first().map_or(("", command), |(n, a)| (n.as_str(), a));
    _ = set_pdeathsig(Signal::SIGKILL);
    if getppid() != Pid::from_raw(parent) {
        return (1, Trouble::new("the gateway is gone", ""));
    }
    let error = Command::new(name).args(arguments).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (code, Trouble::system(name, error))
}

/// The command line of a process that does not outlive the thread that starts it.
fn bound(parent: u32, command: &[String]) -> Command {
    let mut bound = Command::new("/proc/self/exe");
    bound
        .arg(BOUND)
        .arg(parent.to_string())
        .arg("--")
        .args(command)
        .env("BLUEWATER_NEAR", NEAR[0].to_string())
        .env("BLUEWATER_FAR", FAR[0].to_string());
    bound
}

fn start(namespace: &Namespace, command: &[String]) -> Result<Child, Trouble> {
    let mut command = bound(std::process::id(), command);
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

/// Waits for `child` in a thread, which then writes to `wake` until it is heard.
fn wait(mut child: Child, mut wake: UnixStream) -> thread::JoinHandle<io::Result<ExitStatus>> {
    thread::spawn(move || {
        let status = child.wait();
        thread::spawn(move || {
            while wake.write(&[1]).is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
        });
        status
    })
}

/// Ctrl-C goes to the command, which shares our terminal; we end when it does. SIGTERM and SIGHUP
/// are for us.
fn watch_signals(wake: &UnixStream, terminated: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(terminated))?;
        signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
    }
    Ok(())
}

/// The exit code that a shell reports.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
