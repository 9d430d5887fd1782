//! Any command behind an emulated link, without root where user namespaces are allowed.
//!
//! ```text
//! namespace "near"            this process             namespace "far"
//!   COMMAND -- tun0  =======>  link up   =======>  tun0 -- the far commands
//!                    <=======  link down <=======
//! ```

mod bound;
mod running;
mod uplink;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::unistd::geteuid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};

use crate::control;
use crate::link::Spec;
use crate::namespace::ends::{End, Ends, Places};
use crate::namespace::enter_user_namespace;
use crate::privilege;
use crate::report::Finished;
use crate::session::{Beside, Doors, Forwarding, Session};
use crate::signals::{terminated, waker, watch};
use crate::trouble::{Trouble, say};
use bound::bound;
pub use bound::{BOUND, run_bound};
use running::{Bounded, Running, Server, TO_CLEAN_UP};
pub use uplink::{SWEEP_UPLINK, name_server, sweep_uplink};
use uplink::{Uplink, Way, name_servers};

/// The way out of the far end.
#[derive(Clone, Default, Debug)]
pub struct Out {
    /// Whether there is to be one.
    pub wanted: bool,
    /// Name servers to ask, if not this machine's.
    pub dns: Vec<IpAddr>,
}

impl Out {
    /// How it is to go out, if it is. A shell within a shell is to add to its link if it can.
    fn find(&self, places: &Places) -> Result<Option<Way>, Trouble> {
        let outer = places.outer().map(|outer| outer.far[0]);
        if !self.wanted && outer.is_none() {
            return Ok(None);
        }
        self.insist(Way::find(outer))
    }

    /// Goes out, if that is possible, and says where names are known.
    fn open(
        &self,
        way: Option<Way>,
        ends: &Ends,
        places: &mut Places,
    ) -> Result<Option<Uplink>, Trouble> {
        let Some(way) = way else { return Ok(None) };
        let servers = name_servers(&self.dns);
        if let (Err(trouble), true) = (&servers, self.wanted) {
            return Err(trouble.clone());
        }
        let uplink = self.insist(Uplink::new(way, ends, places.out()))?;
        if uplink.is_some() {
            places.dns = servers.unwrap_or_default();
        }
        Ok(uplink)
    }

    /// A failure of something that the user asked for is an error; any other is only a warning.
    fn insist<T>(&self, found: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
        match found {
            Err(Trouble { what, hint }) if !self.wanted => {
                let hint = if hint.is_empty() { hint } else { format!("\nhint: {hint}") };
                say(format!(
                    "note: this shell is within another, and does not lead to that one's link: \
                     {what}{hint}"
                ));
                Ok(None)
            }
            found => found.map(Some),
        }
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
    out: &Out,
) -> Result<(i32, Finished), Trouble> {
    let mut places = Places::here(out.wanted);
    let way = out.find(&places)?;
    enter_user_namespace()?;
    let (waker, wake) = waker()?;
    let terminated = terminated(&wake)?;
    // The terminal is gone.
    watch(SIGHUP, &terminated, &wake).map_err(|e| Trouble::system("watching signals", e))?;
    leave_the_terminal_to_the_command()?;
    let (ends, ports) = Ends::new(&places, mtu, ecn)?;
    let uplink = out.open(way, &ends, &mut places)?;
    // What listens at this far end is what is meant by it.
    if uplink.is_none() || !far.is_empty() {
        places.outermost = None;
    }
    // Complains of a name or port that is taken before it touches a file.
    let doors = Doors::open(how, specs)?;
    let name = doors.name().to_string();
    let mut session = Session::new(specs, how, ports)?;
    let namespaces = ends
        .namespaces(places.clone())
        .map_err(|e| Trouble::system("opening the namespaces", e))?;
    let servers = far.iter().map(|line| Server::start(&ends.far, line, &name, &places));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let child = Bounded::start(&ends.near, bound(command, &name, &places, false))?;
    ends.unprivileged()?;
    let again = wake.try_clone().map_err(|e| Trouble::system("a pair of sockets", e))?;
    let mut running = Running::new(child, terminated, again);
    session.serve(doors, Beside::Commands(namespaces), &wake)?;
    drop(wake);
    let ended = session.run(&waker, || running.ended());
    drop(servers);
    drop(uplink);
    ended?;
    let finished = session.finish(ends.lost());
    Ok((running.code(), finished))
}

/// Runs `command` at an end of the link of the shell `name`, which another process runs. When that
/// ends, so does the command. Returns its exit code, as a shell would.
///
/// # Errors
/// When there is no such shell, or it is another user's.
pub fn join(name: &str, end: End, command: &[String]) -> Result<i32, Trouble> {
    let ([shell, user, net], places) = control::join(name, end)?;
    let refused = |e: io::Error| Trouble::system(format!("joining {name}"), e);
    enter(user, net).map_err(refused)?;
    let child = Bounded::begin(bound(command, name, &places, true))?;
    privilege::keep(&[]).map_err(refused)?;
    let (waker, wake) = waker()?;
    let terminated = terminated(&wake)?;
    // The terminal is gone.
    watch(SIGHUP, &terminated, &wake).map_err(|e| Trouble::system("watching signals", e))?;
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

/// Ctrl-C goes to the command, which shares our terminal; we end when it does.
fn leave_the_terminal_to_the_command() -> Result<(), Trouble> {
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::default())
            .map_err(|e| Trouble::system("watching signals", e))?;
    }
    Ok(())
}
