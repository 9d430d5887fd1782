//! The way out: from the far end of a shell's link to the network where the shell was started, so that
//! its command reaches that through the link, and nothing comes in.
//!
//! ```text
//! command -- tun0 =====> link =====> tun0 -- far -- up0 ----- bwN -- the network here
//!                                       masquerade            masquerade
//! ```
//!
//! As root this is a pair of interfaces and NAT by nftables; else `pasta` brings the packets out by
//! sockets of the user's. What is changed here goes when the shell does, however it ends: a second
//! process, which keeps the right to, waits for that.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use caps::Capability;
use nix::fcntl::{Flock, FlockArg, OFlag, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;
use nix::unistd::{geteuid, gettid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::clock::Clock;
use crate::namespace::Namespace;
use crate::namespace::ends::{DEVICE, Ends, UPLINK as HERE};
use crate::netlink::Netlink;
use crate::privilege;
use crate::trouble::Trouble;

/// An unused Ethernet address, for programs that insist on one.
const MAC: &str = "02:00:00:00:00:01";
/// The far end's interface towards the way out.
const OUT: &str = "up0";
/// Pairs of interfaces that there can be, a network of four addresses each.
const PAIRS: u32 = 4096;

/// How it is to go out, chosen before anything is started.
pub(super) enum Way {
    /// By nftables: the program.
    Nft(PathBuf),
    /// A process that becomes `pasta`, and nftables at the far end.
    Pasta(Box<Waiting>),
}

/// Waits for the far end outside of its user namespace.
pub(super) struct Waiting {
    child: Child,
    nft: PathBuf,
    /// What it says.
    said: File,
}

impl Way {
    /// What this machine has, for a shell behind the `outer` link's far end, if it is in another. Has to
    /// be called before [`enter_user_namespace`].
    ///
    /// # Errors
    /// What is missing.
    ///
    /// [`enter_user_namespace`]: crate::namespace::enter_user_namespace
    pub(super) fn find(outer: Option<IpAddr>) -> Result<Self, Trouble> {
        let missing = |what: &str, hint: &str| {
            Trouble::new(format!("--uplink: {what}"), format!("{hint}, or leave out --uplink"))
        };
        let nft = program("nft").ok_or_else(|| {
            missing("there is no nft here", "install nftables (Debian: apt install nftables)")
        })?;
        if geteuid().is_root() {
            return Ok(Self::Nft(nft));
        }
        let pasta = program("pasta").ok_or_else(|| {
            missing(
                "without root it takes pasta, which is not here",
                "run it as root, or install passt (Debian: apt install passt)",
            )
        })?;
        // It goes when this process does, however it ends: then standard input ends.
        let script = "read -r net user || exit
            \"$@\" --netns \"$net\" --userns \"$user\" < /dev/null & pasta=$!
            exec 3<&0; { cat <&3 > /dev/null; kill $pasta; } 2> /dev/null &
            wait $pasta";
        let mut wait = Command::new("sh");
        wait.args(["-c", script, "sh"]);
        wait.arg(pasta).args(["--foreground", "--quiet", "--config-net", "--no-map-gw"]);
        wait.args(["--ipv4-only", "-t", "none", "-u", "none", "-T", "none", "-U", "none"]);
        wait.args(["--ns-ifname", OUT]);
        if let Some(gateway) = outer {
            // It asks the interface to the outside for both, and the end of a link has neither.
            wait.args(["--mac-addr", MAC, "--gateway", &gateway.to_string()]);
        }
        let failed = |e| Trouble::system("--uplink: starting pasta", e);
        let said = memory_file().map_err(failed)?;
        wait.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        wait.stderr(said.try_clone().map_err(failed)?);
        let child = wait.spawn().map_err(failed)?;
        Ok(Self::Pasta(Box::new(Waiting { child, nft, said })))
    }
}

/// A way out that is there.
pub(super) struct Uplink {
    /// Its end is what the other process waits for.
    _alive: Option<UnixStream>,
    pasta: Option<Child>,
}

impl Drop for Uplink {
    fn drop(&mut self) {
        if let Some(pasta) = &mut self.pasta {
            drop(pasta.stdin.take());
            _ = pasta.wait();
        }
    }
}

impl Uplink {
    /// Opens the way out of the far end, with addresses from `first` on.
    ///
    /// # Errors
    /// When the kernel has no such interfaces or rules.
    pub(super) fn new(way: Way, ends: &Ends, first: Ipv4Addr) -> Result<Self, Trouble> {
        let failed = |e: io::Error| Trouble::system("--uplink", e);
        match way {
            Way::Nft(nft) => {
                let alive = by_interfaces(&nft, &ends.far, first).map_err(failed)?;
                Ok(Self { _alive: Some(alive), pasta: None })
            }
            Way::Pasta(waiting) => {
                let Waiting { mut child, nft, said } = *waiting;
                by_pasta(&mut child, &nft, &said, &ends.far).map_err(failed)?;
                Ok(Self { _alive: None, pasta: Some(child) })
            }
        }
    }
}

/// A program on `PATH` or where such are for root.
fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Lets everything of the near end out as of the far end's own interface.
fn masquerade() -> String {
    format!(
        "table ip bluewater {{
            chain out {{
                type nat hook postrouting priority srcnat; policy accept;
                oifname \"{OUT}\" masquerade
            }}
        }}"
    )
}

/// Has `nft` do what `rules` say in the network namespace of the calling thread.
fn apply(nft: &Path, rules: &str) -> io::Result<()> {
    let mut command = Command::new(nft);
    command.args(["-f", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(rules.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("nft: {}", why.lines().next().unwrap_or("failed"))))
}

/// No IPv6 at an interface, which the rules here know nothing of: not even an address of the link.
fn ipv4_alone(interface: &str) -> io::Result<()> {
    match fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1") {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()), // a kernel without it has none
    }
}

const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";

/// A pair of interfaces between here and the far end, and NAT at both.
fn by_interfaces(nft: &Path, far: &Namespace, first: Ipv4Addr) -> io::Result<UnixStream> {
    let there: OwnedFd = far.run(Namespace::here)?;
    let mut netlink = Netlink::new()?;
    let number = free_pair(&mut netlink, &there)?;
    let name = format!("{HERE}{number}");
    let address = |host: u32| IpAddr::V4((u32::from(first) + 4 * number + host).into());
    let index = netlink.interface(&name)?.ok_or(io::ErrorKind::NotFound)?.index;
    ipv4_alone(&name)?;
    netlink.up(index, Vec::new())?;
    netlink.address(index, address(1), 30)?;
    let (gateway, own, program) = (address(1), address(2), nft.to_path_buf());
    far.run(move || -> io::Result<()> {
        let mut netlink = Netlink::new()?;
        let index = netlink.interface(OUT)?.ok_or(io::ErrorKind::NotFound)?.index;
        ipv4_alone(OUT)?;
        netlink.up(index, Vec::new())?;
        netlink.address(index, own, 30)?;
        netlink.gateway(index, gateway)?;
        fs::write(FORWARD, "1")?;
        apply(&program, &masquerade())
    })?;
    let alive = watch(&name)?;
    forward_for(nft, &name)?;
    Ok(alive)
}

/// Makes a pair of interfaces, of which one is `there`, under the first free number.
fn free_pair(netlink: &mut Netlink, there: &OwnedFd) -> io::Result<u32> {
    let first = std::process::id() % PAIRS;
    for number in (first..PAIRS).chain(0..first) {
        match netlink.veth(&format!("{HERE}{number}"), OUT, there.as_raw_fd()) {
            Err(e) if e.raw_os_error() == Some(nix::libc::EEXIST) => {}
            made => return made.map(|_| number),
        }
    }
    Err(io::Error::from_raw_os_error(nix::libc::EEXIST))
}

/// Lets this machine forward what comes from the interface `name`, and for others no more than before.
fn forward_for(nft: &Path, name: &str) -> io::Result<()> {
    let mut notes = one_at_a_time()?;
    let was_router = !notes.was_no_router()? && fs::read_to_string(FORWARD)?.trim() == "1";
    if !was_router {
        // A machine that was no router does not become one for others.
        notes.write(true)?;
        apply(nft, &for_nobody_else())?;
    }
    apply(nft, &outwards_alone(name))?;
    if !was_router {
        fs::write(FORWARD, "1")?;
    }
    Ok(())
}

/// Forwards nothing that is not a shell's.
fn for_nobody_else() -> String {
    format!(
        "table ip {NO_ROUTER} {{}}
        delete table ip {NO_ROUTER}
        table ip {NO_ROUTER} {{
            chain through {{
                type filter hook forward priority filter; policy accept;
                iifname != \"{HERE}*\" oifname != \"{HERE}*\" drop
            }}
        }}"
    )
}

/// Lets what comes from the interface `name` out as of this machine, and nothing in that did not begin
/// there.
fn outwards_alone(name: &str) -> String {
    format!(
        "table ip bluewater_{name} {{
            chain out {{
                type nat hook postrouting priority srcnat; policy accept;
                iifname \"{name}\" masquerade
            }}
            chain through {{
                type filter hook forward priority filter; policy accept;
                oifname \"{name}\" ct state new drop
            }}
            chain from_here {{
                type filter hook output priority filter; policy accept;
                oifname \"{name}\" ct state new drop
            }}
        }}"
    )
}

/// The rules of a machine that did not forward before.
const NO_ROUTER: &str = "bluewater_no_router";

/// What shells of one network namespace note for each other: whether it was no router before the first of them.
/// While it is held no other one looks whether the machine forwards, or changes that.
struct Notes(Flock<File>);

impl Notes {
    fn was_no_router(&mut self) -> io::Result<bool> {
        let mut text = String::new();
        self.0.rewind()?;
        (&*self.0).take(10).read_to_string(&mut text)?;
        Ok(text == WAS_NO_ROUTER)
    }

    fn write(&mut self, was_no_router: bool) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        self.0.write_all(if was_no_router { WAS_NO_ROUTER.as_bytes() } else { b"" })
    }
}

const WAS_NO_ROUTER: &str = "closed\n";

fn one_at_a_time() -> io::Result<Notes> {
    let namespace = fs::metadata("/proc/self/ns/net")?.ino();
    let path = format!("/run/bluewater-uplink-{namespace}.lock");
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{path}: {e}"));
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file =
        open(path.as_str(), flags, Mode::from_bits_truncate(0o600)).map_err(|e| named(e.into()))?;
    let mut file = File::from(file);
    let clock = Clock::new();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Ok(Notes(held)),
            Err((back, _)) if clock.now() < TO_START => file = back,
            Err((_, e)) => return Err(named(e.into())),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The command line's own name for [`sweep_uplink`], which users need not know.
pub const SWEEP_UPLINK: &str = "bound-sweep-uplink";

/// From now on another process waits for the end of this one, and then removes the rules of the
/// interface `name`.
fn watch(name: &str) -> io::Result<UnixStream> {
    let (alive, end) = UnixStream::pair()?;
    let mut sweeper = Command::new("/proc/self/exe");
    sweeper.args([SWEEP_UPLINK, name]);
    sweeper.stdin(OwnedFd::from(end)).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C is not for it.
    sweeper.process_group(0).spawn()?;
    Ok(alive)
}

/// Waits until standard input ends and removes the rules of the interface `name`; if no other shell
/// needs it, a machine that did not forward before does so no longer.
pub fn sweep_uplink(name: &str) {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        _ = signal_hook::flag::register(signal, Arc::default());
    }
    _ = io::copy(&mut io::stdin(), &mut io::sink());
    let Some(nft) = program("nft") else { return };
    let Ok(mut notes) = one_at_a_time() else { return };
    _ = apply(&nft, &format!("delete table ip bluewater_{name}"));
    let Ok(tables) = Command::new(&nft).args(["list", "tables"]).output() else { return };
    let tables = String::from_utf8_lossy(&tables.stdout);
    // Of a shell whose second process was killed the table is left, and no interface.
    let others = tables.lines().filter_map(|line| line.strip_prefix("table ip bluewater_"));
    let others = others.filter(|other| other.starts_with(HERE));
    let Ok(mut netlink) = Netlink::new() else { return };
    let mut exists = |name: &&str| !matches!(netlink.interface(name), Ok(None));
    let (alive, dead): (Vec<_>, Vec<_>) = others.partition(|other| exists(other));
    for other in dead {
        _ = apply(&nft, &format!("delete table ip bluewater_{other}"));
    }
    if alive.is_empty() && notes.was_no_router().unwrap_or(false) {
        _ = fs::write(FORWARD, "0");
        _ = apply(&nft, &format!("delete table ip {NO_ROUTER}"));
        _ = notes.write(false);
    }
}

/// `pasta` at the far end, and NAT there. Its interface takes the default route.
fn by_pasta(pasta: &mut Child, nft: &Path, said: &File, far: &Namespace) -> io::Result<()> {
    let process = std::process::id();
    let program = nft.to_path_buf();
    let net = far.run(move || -> io::Result<String> {
        Netlink::new()?.no_default_route(DEVICE)?;
        fs::write(FORWARD, "1")?;
        privilege::hand_down(Capability::CAP_NET_ADMIN)?;
        apply(&program, &masquerade())?;
        Ok(format!("/proc/{process}/task/{}/ns/net", gettid()))
    })?;
    if let Some(stdin) = &mut pasta.stdin {
        writeln!(stdin, "{net} /proc/{process}/ns/user")?;
    }
    let clock = Clock::new();
    while clock.now() < TO_START {
        if let Some(status) = pasta.try_wait()? {
            return Err(io::Error::other(format!("pasta ended ({status}){}", words(said)?)));
        }
        let there = far.run(|| Netlink::new()?.interface(OUT));
        if there?.is_some_and(|interface| interface.up) {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other(format!("pasta does not start{}", words(said)?)))
}

/// A file that only this process and those that it starts know.
fn memory_file() -> io::Result<File> {
    Ok(memfd_create("bluewater", MFdFlags::MFD_CLOEXEC)?.into())
}

/// The last that was written to `said`, as the end of a sentence.
fn words(mut said: &File) -> io::Result<String> {
    const MOST: u64 = 1 << 16;
    let mut bytes = Vec::new();
    said.seek(SeekFrom::Start(said.metadata()?.len().saturating_sub(MOST)))?;
    said.take(MOST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    Ok(last.map_or_else(String::new, |line| format!(": {line}")))
}

/// How long `pasta` may take, ns.
const TO_START: u64 = 5_000_000_000;

/// A name server's address that can be reached from behind a link.
///
/// # Errors
/// What is allowed.
pub fn name_server(text: &str) -> Result<Ipv4Addr, String> {
    let address: Option<Ipv4Addr> = text.parse().ok();
    address.filter(|a| !a.is_loopback() && !a.is_unspecified() && !a.is_multicast()).ok_or_else(|| {
        "allowed: an IPv4 address, but not this machine's own 127.0.0.1, which is another behind the \
         link"
            .into()
    })
}

/// The name servers for commands behind the link: those `given`, else this machine's. A server at a loopback
/// address cannot be reached from there.
///
/// # Errors
/// When there is none.
pub(super) fn name_servers(given: &[IpAddr]) -> Result<Vec<IpAddr>, Trouble> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let of = |file: &str| -> Vec<IpAddr> {
        let text = fs::read_to_string(file).unwrap_or_default();
        let servers =
            text.lines().filter_map(|l| l.strip_prefix("nameserver")?.trim().parse().ok());
        servers.filter(|server: &IpAddr| server.is_ipv4() && !server.is_loopback()).collect()
    };
    let files = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
    files.into_iter().map(of).find(|servers| !servers.is_empty()).ok_or_else(|| {
        Trouble::new(
            "--uplink: this machine's name servers cannot be asked from behind the link",
            "name one: --dns ADDRESS",
        )
    })
}
