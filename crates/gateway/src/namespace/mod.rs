//! Network namespaces, each held by a thread; they go when the process does, however it ends.

pub mod ends;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use netlink_packet_route::link::LinkAttribute;
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, getegid, geteuid};

use crate::io::port::Port;
use crate::netlink::Netlink;
use crate::trouble::Trouble;

/// Gets the right to make network namespaces: without root, by a user namespace of our own, in
/// which the user keeps the same number. Has to be called before any thread is started.
///
/// # Errors
/// When user namespaces are not allowed here.
pub fn enter_user_namespace() -> Result<(), Trouble> {
    let (uid, gid) = (geteuid(), getegid());
    if uid == Uid::from_raw(0) {
        return Ok(());
    }
    let refused = |e: &dyn std::fmt::Display| {
        Trouble::new(
            format!("no user namespace: {e}"),
            "run it as root, or allow user namespaces: sysctl -w user.max_user_namespaces=15000 \
             (Debian: kernel.unprivileged_userns_clone=1; Ubuntu: \
             kernel.apparmor_restrict_unprivileged_userns=0)",
        )
    };
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| refused(&e))?;
    for (file, text) in [
        ("setgroups", "deny".into()),
        ("uid_map", format!("{uid} {uid} 1")),
        ("gid_map", format!("{gid} {gid} 1")),
    ] {
        fs::write(format!("/proc/self/{file}"), text).map_err(|e| refused(&e))?;
    }
    Ok(())
}

/// The errors if a namespace cannot be made, and if nothing can be done in it.
const TO_UNSHARE: &str = "in a container: give it CAP_SYS_ADMIN, or allow the unshare system call";
const TO_SET_UP: &str = "in a container: give it CAP_NET_ADMIN";

/// Lets `ping` work without rights in the network namespace of the calling thread, as it does on most
/// machines: for all groups, or in a user namespace, which does not know all, for its own.
fn allow_ping() {
    let set = |range| fs::write("/proc/sys/net/ipv4/ping_group_range", range);
    let gid = getegid();
    _ = set("0 2147483647".into()).or_else(|_: io::Error| set(format!("{gid} {gid}")));
}

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace, and a thread in it that carries out jobs.
pub struct Namespace {
    /// Dropped to end the thread.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Asks the kernel there, from any thread; a confined process makes no new socket.
    netlink: Mutex<Netlink>,
}

impl Namespace {
    /// An empty namespace; its loopback interface is up.
    ///
    /// # Errors
    /// When namespaces are not allowed here.
    pub fn new(name: &str) -> Result<Self, Trouble> {
        let (jobs, inbox) = channel::<Job>();
        let thread = Builder::new().name(name.into()).spawn(move || {
            inbox.into_iter().for_each(|job| job());
        });
        let thread = thread.map_err(|e| Trouble::system("starting a thread", e))?;
        let first = || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| (e.into(), TO_UNSHARE))?;
            let set_up = || -> io::Result<Netlink> {
                let mut netlink = Netlink::new()?;
                let lo = netlink.interface("lo")?.ok_or(io::ErrorKind::NotFound)?;
                netlink.up(lo.index, Vec::new())?;
                Ok(netlink)
            };
            allow_ping();
            set_up().map_err(|e| (e, TO_SET_UP))
        };
        let (answer, result) = channel();
        let gone = |_| Err((io::ErrorKind::BrokenPipe.into(), ""));
        _ = jobs.send(Box::new(move || _ = answer.send(first())));
        let netlink = result
            .recv()
            .unwrap_or_else(gone)
            .map_err(|(e, hint)| Trouble::system("no network namespace", e).or_hint(hint))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), netlink: Mutex::new(netlink) })
    }

    /// The network namespace of the calling thread.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn here() -> io::Result<OwnedFd> {
        Ok(fs::File::open("/proc/thread-self/ns/net")?.into())
    }

    /// Does `job` in the namespace and returns its result. Processes that it starts are in the namespace,
    /// too.
    ///
    /// # Panics
    /// When `job` does.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, result) = channel();
        let job: Job = Box::new(move || _ = answer.send(job()));
        if let Some(jobs) = &self.jobs {
            _ = jobs.send(job);
        }
        #[expect(clippy::expect_used, reason = "the thread lives as long as its jobs do not panic")]
        result.recv().expect("the namespace's thread is there")
    }

    /// Makes a TUN device that is the way to everywhere.
    ///
    /// # Errors
    /// When TUN devices are not allowed here.
    pub fn tun(
        &self,
        name: &'static str,
        addresses: [IpAddr; 2],
        mtu: u32,
    ) -> Result<Port, Trouble> {
        self.run(move || {
            let port = Port::tun(name)?;
            let mut netlink = Netlink::new()?;
            let index = netlink.interface(name)?.ok_or(io::ErrorKind::NotFound)?.index;
            let length = LinkAttribute::TxQueueLen(QUEUE_TO_US);
            netlink.up(index, vec![LinkAttribute::Mtu(mtu), length])?;
            for address in addresses {
                netlink.address(index, address, if address.is_ipv4() { 24 } else { 64 })?;
                netlink.default_route(index, address)?;
            }
            Ok(port)
        })
        .map_err(|e: io::Error| {
            let hint = match e.raw_os_error() {
                Some(libc::EPERM) => TO_SET_UP,
                Some(libc::EACCES) => {
                    "this user needs /dev/net/tun to read and write; as root: chmod 666 /dev/net/tun"
                }
                _ => "modprobe tun; in a container: give it /dev/net/tun",
            };
            Trouble::system("no TUN device", e).or_hint(hint)
        })
    }

    /// Packets that the kernel dropped before this process could read them from a device.
    pub fn dropped(&self, device: &'static str) -> u64 {
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        netlink.interface(device).ok().flatten().map_or(0, |i| i.dropped)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// Packets that may wait for this process to read them, beside the queue under test: enough for
/// some ms on a busy machine.
const QUEUE_TO_US: u32 = 10_000;
