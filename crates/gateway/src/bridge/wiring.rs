//! Checks that the link is the only way between two interfaces. Wiring that leads frames past the gateway or
//! in circles is refused; wiring that may be intended only gets a warning.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::thread;
use std::time::Duration;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, UnixAddr, UnixCredentials,
    connect, getsockopt, listen, socket,
};
use nix::unistd::geteuid;

use crate::netlink::{Interface, Netlink};
use crate::trouble::{Trouble, say};

/// An interface that the command line names.
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    pub(crate) about: Interface,
}

/// Looks for ways beside the link between two interfaces; `open_host`: this machine's own stack gets the
/// frames, too. Returns warnings of what is odd but can work.
pub(crate) fn check(both: &[Named<'_>; 2], open_host: bool) -> Result<Vec<Trouble>, Trouble> {
    let [lan, wan] = both;
    if lan.about.index == wan.about.index {
        return Err(Trouble::new("--lan and --wan are the same interface", "name two"));
    }
    for Named { name, about } in both {
        if !about.ethernet {
            let kind = about.kind.as_deref().unwrap_or("device without Ethernet frames");
            return Err(Trouble::new(
                format!("{name} is no Ethernet interface, but a {kind}"),
                "name two Ethernet interfaces; IP packets of a command go through `shell`",
            ));
        }
    }
    for (one, other) in [(lan, wan), (wan, lan)] {
        if one.about.beside == Some(other.about.index) {
            let joined = match one.about.kind.as_deref() {
                Some("veth") => "are the two ends of one cable".into(),
                kind => {
                    format!("are one cable: the first is a {} of the other", kind.unwrap_or("part"))
                }
            };
            return Err(Trouble::new(
                format!(
                    "{} and {} {joined}: frames would go round in circles",
                    one.name, other.name
                ),
                "name two interfaces with different networks behind them",
            ));
        }
    }
    both.iter().try_for_each(alone)?;
    let bridges = [behind(lan)?, behind(wan)?];
    if let [Some(one), Some(other)] = &bridges
        && one.index == other.index
    {
        return Err(Trouble::new(
            format!(
                "{} and {} lead to the same bridge, {}: frames would go round in circles",
                lan.name, wan.name, one.name
            ),
            "name two interfaces with different networks behind them",
        ));
    }
    for Named { name, .. } in both {
        if !open_host && let Some(address) = in_use(name) {
            return Err(Trouble::new(
                format!("{name} has the address {address}, and a connection to it would break off"),
                "reach this machine by another interface; --open-host lets it answer, and route beside the link",
            ));
        }
    }
    let addressed = both.iter().filter_map(|Named { name, .. }| {
        let address = addresses(name).into_iter().find(|address| !is_link_local(*address))?;
        let has = format!("{name} has the address {address}");
        Some(match open_host {
            true => Trouble::new(
                format!("{has}: this machine answers there and may route beside the link"),
                format!("ip addr flush dev {name}"),
            ),
            false => Trouble::new(
                format!("{has}: nobody reaches this machine there as long as the gateway runs"),
                "reach it by another interface; --open-host lets it answer, and route beside the link",
            ),
        })
    });
    Ok(addressed.collect())
}

/// The bridge of this machine that an interface leads to: by the cable in it, by what it lies upon, or
/// as the bridge's own port.
fn behind(Named { name, about }: &Named<'_>) -> Result<Option<Interface>, Trouble> {
    let failed = |e: io::Error| Trouble::system(name, e);
    let bridge = |one: &Interface| one.kind.as_deref() == Some("bridge");
    if bridge(about) {
        return Ok(Some(about.clone()));
    }
    let Some(beside) = about.beside else { return Ok(None) };
    let mut netlink = Netlink::new().map_err(failed)?;
    let beside = netlink.numbered(beside).map_err(failed)?;
    let Some(beside) = beside else { return Ok(None) };
    if bridge(&beside) {
        return Ok(Some(beside));
    }
    let Some(master) = beside.master else { return Ok(None) };
    // Where ports may be in different VLANs they may well be two networks.
    let found = netlink.numbered(master).map_err(failed)?;
    Ok(found.filter(|one| bridge(one) && !one.filters_vlans))
}

/// Starts a thread that warns if one of the interfaces is put into a bridge or bond from now on, or if its
/// longest packet changes. The thread uses the files that are open now.
pub(crate) fn watch(both: &[Named<'_>; 2]) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::system("watching the interfaces", e);
    let mut netlink = Netlink::new().map_err(failed)?;
    let mut known =
        both.each_ref().map(|one| (one.name.to_string(), one.about.index, None, one.about.mtu));
    let carried = both[0].about.mtu;
    let look = move || loop {
        for (name, index, master, mtu) in &mut known {
            // One that is gone ends the gateway.
            let Ok(Some(now)) = netlink.numbered(*index) else { continue };
            if now.master != *master && now.master.is_some() {
                let Trouble { what, hint } = past(name, &now, &mut netlink);
                say(format!("warning: {what}\nhint: {hint}"));
            }
            if now.mtu > *mtu && now.mtu > carried {
                say(format!(
                    "warning: {name} has an MTU of {} now: of its packets, those longer than \
                     {carried} bytes are not carried\nhint: ip link set {name} mtu {carried}, or \
                     start the gateway again",
                    now.mtu
                ));
            }
            if now.mtu < *mtu && now.mtu < carried {
                say(format!(
                    "warning: {name} has an MTU of {} now: longer packets are refused there, and nobody \
                     tells their senders\nhint: ip link set {name} mtu {carried}, or the same at all \
                     that send through the link",
                    now.mtu
                ));
            }
            (*master, *mtu) = (now.master, now.mtu);
        }
        thread::sleep(LOOK);
    };
    thread::Builder::new().name("wiring".into()).spawn(look).map(drop).map_err(failed)
}

/// Time between looks at the interfaces.
const LOOK: Duration = Duration::from_millis(500);

/// A port of a bridge has another way for its frames.
fn alone(Named { name, about }: &Named<'_>) -> Result<(), Trouble> {
    if about.master.is_none() {
        return Ok(());
    }
    let mut netlink = Netlink::new().map_err(|e| Trouble::system(name, e))?;
    Err(past(name, about, &mut netlink))
}

/// What is wrong with a port of a bridge.
fn past(name: &str, about: &Interface, netlink: &mut Netlink) -> Trouble {
    let master = about.master.and_then(|index| netlink.numbered(index).ok()?);
    let master = master.map_or_else(|| "another interface".into(), |found| found.name);
    Trouble::new(
        format!("{name} is a port of {master}: frames would go past the gateway"),
        format!("ip link set {name} nomaster"),
    )
}

/// The addresses of an interface.
fn addresses(name: &str) -> Vec<IpAddr> {
    let all = getifaddrs().into_iter().flatten().filter(|one| one.interface_name == name);
    let ip = |address: SockaddrStorage| match address.as_sockaddr_in() {
        Some(v4) => Some(v4.ip().into()),
        None => Some(address.as_sockaddr_in6()?.ip().into()),
    };
    all.filter_map(|one| ip(one.address?)).collect()
}

/// Whether it is one that each interface has of itself.
fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// The address of an interface that a connection of this machine with another one runs over, such as the one by
/// which its user is here.
fn in_use(name: &str) -> Option<IpAddr> {
    let own = addresses(name);
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|path| fs::read_to_string(path).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines()).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote) = (ip(words.next()?)?, ip(words.next()?)?);
        let is_established = words.next()? == "01";
        (is_established && own.contains(&local) && !own.contains(&remote)).then_some(local)
    })
}

/// The address in a column of `/proc/net/tcp`: words of 32 bits in this machine's order, and a port.
fn ip(text: &str) -> Option<IpAddr> {
    let (address, _) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok();
    let words: Vec<_> = (0..address.len() / 8).map_while(|i| word(8 * i)).collect();
    let bytes: Vec<_> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    if let Ok(v4) = <[u8; 4]>::try_from(&bytes[..]) {
        return Some(v4.into());
    }
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical())
}

/// An interface that no other gateway forwards at as long as this is there: a name among the abstract
/// sockets of the network namespace, which goes with the process however it ends.
#[derive(Debug)]
pub(crate) struct Claim(UnixListener);

impl From<Claim> for OwnedFd {
    fn from(Claim(listener): Claim) -> Self {
        listener.into()
    }
}

/// Takes over a claim of another process: the kernel reports this one as its holder.
pub(super) fn hold(claim: &OwnedFd) {
    _ = listen(claim, Backlog::MAXCONN);
}

/// How often a claim is tried, and how long after the one before.
const TRIES: u32 = 10;
const TRY: Duration = Duration::from_millis(30);

impl Claim {
    /// Claims an interface.
    ///
    /// # Errors
    /// When a gateway of this user's or of root's is there. Others may take the name, too, so that
    /// one of theirs is only warned of.
    pub(crate) fn new(
        Named { name, about }: &Named<'_>,
        warnings: &mut Vec<Trouble>,
    ) -> Result<Option<Self>, Trouble> {
        let failed = |e: io::Error| Trouble::system(name, e);
        let called = format!("bluewater-gateway/{}", about.index);
        let address = SocketAddr::from_abstract_name(&called).map_err(failed)?;
        // After SIGKILL the helper process of a gateway ends a little later, and holds the claim until then.
        for _ in 0..TRIES {
            match UnixListener::bind_addr(&address) {
                Ok(listener) => return Ok(Some(Self(listener))),
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => thread::sleep(TRY),
                Err(e) => return Err(failed(e)),
            }
        }
        let (who, ours) = match holder(&called) {
            Ok(peer) => (
                format!("process {} of user {}", peer.pid(), peer.uid()),
                peer.uid() == 0 || peer.uid() == geteuid().as_raw(),
            ),
            // Nobody takes connections: it is full of those of other users, or just ends.
            Err(_) => ("a process".into(), false),
        };
        let taken = Trouble::new(
            format!(
                "another gateway ({who}) forwards at {name}: each would forward the other's frames"
            ),
            "end that one, or name another interface",
        );
        if ours {
            return Err(taken);
        }
        warnings.push(taken);
        Ok(None)
    }
}

/// The process that holds the abstract name `called`. Does not wait, since the holder of a name need not
/// accept connections.
fn holder(called: &str) -> nix::Result<UnixCredentials> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let stream: OwnedFd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(stream.as_raw_fd(), &UnixAddr::new_abstract(called.as_bytes())?)?;
    getsockopt(&stream, PeerCredentials)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use nix::sys::socket::bind;

    use super::*;

    #[test]
    fn the_addresses_of_connections_are_read() {
        let text = |address: IpAddr| match address {
            IpAddr::V4(v4) => format!("{:08X}:0016", u32::from_ne_bytes(v4.octets())),
            IpAddr::V6(v6) => {
                let words = v6.octets();
                let words = words.chunks(4).map(|w| u32::from_ne_bytes(w.try_into().unwrap()));
                words.map(|word| format!("{word:08X}")).collect::<String>() + ":0016"
            }
        };
        for address in ["10.1.2.3", "fd77::1"] {
            let address = address.parse().unwrap();
            assert_eq!(ip(&text(address)), Some(address));
        }
        let mapped = "::ffff:10.1.2.3".parse().unwrap();
        assert_eq!(ip(&text(mapped)), Some("10.1.2.3".parse().unwrap()));
        assert_eq!([ip("local_address"), ip("xyz:1"), ip("0:0")], [None; 3]);
    }

    /// A process that takes the name first and lets nobody in holds nobody up. A claim of this process's own
    /// is respected.
    #[test]
    fn a_claim_is_made_or_refused_at_once() {
        let about = Interface {
            name: "lan".into(),
            index: 0xb10e + std::process::id(),
            mtu: 1500,
            up: true,
            carrier: true,
            kind: None,
            master: None,
            beside: None,
            filters_vlans: false,
            ethernet: true,
            address: Vec::new(),
            dropped: 0,
            received: 0,
        };
        let called = format!("bluewater-gateway/{}", about.index);
        let name = UnixAddr::new_abstract(called.as_bytes()).unwrap();
        let new = || {
            socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_NONBLOCK, None).unwrap()
        };
        let squatter = new();
        bind(squatter.as_raw_fd(), &name).unwrap();
        listen(&squatter, Backlog::new(0).unwrap()).unwrap();
        let claim = move || {
            let mut warnings = Vec::new();
            let claim = Claim::new(&Named { name: "lan", about: about.clone() }, &mut warnings);
            (claim.map(|claim| claim.is_some()).map_err(|e| e.what), warnings)
        };
        let (refused, _) = claim();
        assert!(refused.unwrap_err().contains("another gateway (process "));
        let mut waiting = vec![new()];
        while connect(waiting[waiting.len() - 1].as_raw_fd(), &name).is_ok() {
            waiting.push(new());
        }
        let (tell, told) = channel();
        thread::spawn(move || tell.send(claim()));
        let (claimed, warnings) = told.recv_timeout(Duration::from_secs(5)).expect("it hangs");
        assert_eq!(claimed, Ok(false));
        assert!(warnings[0].what.contains("another gateway (a process)"), "{warnings:?}");
    }
}
