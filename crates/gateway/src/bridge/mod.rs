//! An emulated link between two existing Ethernet interfaces: a bump in the wire. Frames go from one to the
//! other unchanged, except for ECN marks.

mod bypass;
mod wiring;

use std::io;
use std::iter;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;

use clap::ValueEnum;
use nix::libc;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGQUIT};

use crate::frame::Layer;
use crate::guard::Identity;
use crate::io::port::{Port, Ports};
use crate::io::xdp::Xdp;
use crate::link::{Link, Spec};
use crate::netlink::Netlink;
use crate::options::explain;
use crate::privilege;
use crate::renewal::Keeper;
use crate::report::Finished;
use crate::service::Service;
use crate::session::{Beside, Doors, Forwarding, Session};
use crate::signals::{terminated, waker, watch};
use crate::sys;
use crate::trouble::{Trouble, say};
use crate::upgrade::{Estate, Predecessor};
pub use bypass::{bypass, remove};
use wiring::{Claim, Named};

/// Bytes of an Ethernet header with VLAN tags.
const HEADER: u32 = 14 + 4 * crate::frame::MAX_TAGS as u32;

/// The longest packet, so that each frame's length has a place in a recording.
const LONGEST_MTU: u32 = u16::MAX as u32 - HEADER;

/// Forwards between the interfaces `names` (LAN, WAN) until a signal stops it. Returns the summaries. `file` has the
/// options of the links, if it is one.
///
/// # Errors
/// What is missing, with the command that mends it.
pub fn bridge(
    specs: &[Spec; 2],
    how: &Forwarding,
    names: [&str; 2],
    file: Option<&Path>,
    access: Access,
    takes_over: bool,
) -> Result<Finished, Trouble> {
    let mut old = takes_over.then(Predecessor::find).transpose()?;
    let finished = forward(specs, how, names, file, access, old.as_mut());
    if let (Err(trouble), Some(old)) = (&finished, old) {
        old.refuse(trouble);
    }
    finished
}

fn forward(
    specs: &[Spec; 2],
    how: &Forwarding,
    names: [&str; 2],
    file: Option<&Path>,
    access: Access,
    mut old: Option<&mut Predecessor>,
) -> Result<Finished, Trouble> {
    let specs = &old.as_ref().map_or_else(|| specs.clone(), |old| old.specs.clone());
    ready(specs, names, file)?;
    // What passed packets until now, once nothing is wrong with the command line.
    remove(names)?;
    let both = [interface(names[0])?, interface(names[1])?];
    let mut warnings = wiring::check(&both, access.open_host)?;
    let (claims, mut ports) = match &mut old {
        None => {
            let claim = |one| Claim::new(one, &mut warnings);
            let claims = both.iter().map(claim).collect::<Result<Vec<_>, _>>()?;
            (claims.into_iter().flatten().map(OwnedFd::from).collect(), open(names, access)?)
        }
        Some(old) => {
            let claims: Vec<_> = iter::from_fn(|| old.estate.take("claim")).collect();
            claims.iter().for_each(wiring::hold);
            (claims, take_over(&both, access, &mut old.estate)?)
        }
    };
    warnings.append(&mut ports.warnings);
    for Trouble { what, hint } in &warnings {
        say(format!("warning: {what}\nhint: {hint}"));
    }
    let why = ports.fallback.iter().map(|why| format!(", not xdp: {why}")).collect::<String>();
    say(format!("plane: {}{why}", ports.ends[0].plane()));
    let service = Service::find()?;
    let (waker, wake) = waker()?;
    let told = terminated(&wake)?;
    for signal in [SIGINT, SIGQUIT] {
        watch(signal, &told, &wake).map_err(|e| Trouble::system("watching signals", e))?;
    }
    // Complains of a name or port that is taken before it touches a file.
    let doors = match &mut old {
        None => Doors::open(how, specs)?,
        Some(old) => Doors::taken_over(how, specs, old)?,
    };
    let mut session = Session::begin(specs, how, ports, old.as_deref_mut())?;
    let identities = both
        .each_ref()
        .map(|Named { about, .. }| Identity { index: about.index, name: about.name.clone() });
    let (files, mut facts) = doors.parts();
    (facts["clock"], facts["pid"]) = (json!(session.clock()), std::process::id().into());
    let stderr = io::stderr();
    let all = [("stderr", stderr.as_fd())].into_iter().chain(session.files()).chain(files);
    // The claims last: once they are free another gateway takes all else.
    let all = all.chain(claims.iter().map(|claim| ("claim", claim.as_fd())));
    let keeper = Keeper::start(identities, &facts, all)?;
    privilege::drop_all()?;
    wiring::watch(&both)?;
    match old {
        None => {
            session.serve(doors, Beside::Keeper(keeper), &wake)?;
            session.report_to(service);
        }
        Some(old) => {
            session.follow(old, service)?;
            session.serve(doors, Beside::Keeper(keeper), &wake)?;
            old.ready()?;
        }
    }
    session.run(&waker, || told.load(Ordering::Relaxed))?;
    let lost = session.overrun();
    Ok(session.finish(lost))
}

/// Checks that the interfaces `names` are there, and that there can be such links.
///
/// # Errors
/// All that is wrong with either.
fn ready(specs: &[Spec; 2], names: [&str; 2], file: Option<&Path>) -> Result<(), Trouble> {
    let link = |spec: &Spec| {
        let made = Link::new(spec, Layer::Ethernet, HEADER as usize);
        made.map(drop).map_err(|e| explain(spec, e).by(file))
    };
    let mut wrong: Vec<_> = specs.iter().filter_map(|spec| link(spec).err()).collect();
    wrong.dedup();
    wrong.extend(names.into_iter().filter_map(|name| interface(name).err()));
    Trouble::all(wrong).map_or(Ok(()), Err)
}

/// How frames come and go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Plane {
    /// AF_XDP where the driver has it and nothing would be spoilt, else AF_PACKET.
    Auto,
    /// AF_XDP, or nothing is started.
    Xdp,
    /// AF_PACKET.
    Packet,
}

/// Which programs get the frames that come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// How the gateway has them.
    pub plane: Plane,
    /// Whether this machine's own stack has them, too.
    pub open_host: bool,
}

/// Ports of the interfaces `names`. If the user insists on AF_XDP, warns of the frames that it would spoil.
pub(crate) fn open(names: [&str; 2], access: Access) -> Result<Ports, Trouble> {
    let Access { plane, open_host } = access;
    let both = [interface(names[0])?, interface(names[1])?];
    let [mtu, other] = both.each_ref().map(|one| one.about.mtu);
    if mtu != other {
        return Err(Trouble::new(
            format!("{} has an MTU of {mtu}, {} of {other}", names[0], names[1]),
            format!("ip link set {} mtu {other}", names[0]),
        ));
    }
    if mtu > LONGEST_MTU {
        return Err(Trouble::new(
            format!("an MTU of {mtu}: frames of more than {} bytes are not counted", u16::MAX),
            names.map(|name| format!("ip link set {name} mtu {LONGEST_MTU}")).join(" && "),
        ));
    }
    let longest = (mtu + HEADER) as usize;
    let mut warnings = Vec::new();
    let mut warn = |warning| warnings.push(warning);
    let mut xdp = || -> Result<_, Trouble> {
        Ok([xdp(&both[0], longest, plane, &mut warn)?, xdp(&both[1], longest, plane, &mut warn)?])
    };
    let packet = || -> Result<_, Trouble> {
        Ok([packet(&both[0], open_host)?, packet(&both[1], open_host)?])
    };
    let (ends, fallback) = match plane {
        Plane::Xdp if open_host => {
            return Err(Trouble::new(
                "--open-host: with AF_XDP no frame comes to this machine's own stack",
                "--plane packet",
            ));
        }
        Plane::Auto if open_host => (packet()?, None),
        Plane::Xdp => (xdp()?, None),
        Plane::Packet => (packet()?, None),
        Plane::Auto => match xdp() {
            Ok(ends) => (ends, None),
            Err(Trouble { what, hint }) => (packet()?, Some(format!("{what}; {hint}"))),
        },
    };
    Ok(Ports { ends, longest, fallback, warnings })
}

/// Ports at the sockets of another process.
fn take_over(both: &[Named<'_>; 2], access: Access, estate: &mut Estate) -> Result<Ports, Trouble> {
    let mut port = |Named { name, about }: &Named<'_>| {
        let socket = estate.need("port")?;
        let shut = if access.open_host { None } else { Some(estate.need("shut")?) };
        Port::taken_over(about.index, socket, shut).map_err(|e| Trouble::system(name, e))
    };
    let ends = [port(&both[0])?, port(&both[1])?];
    let longest = (both[0].about.mtu + HEADER) as usize;
    Ok(Ports { ends, longest, fallback: None, warnings: Vec::new() })
}

/// The interface `name`, which is up.
fn interface(name: &str) -> Result<Named<'_>, Trouble> {
    let system = |e: io::Error| Trouble::system(name, e);
    let found = Netlink::new().and_then(|mut netlink| netlink.interface(name)).map_err(system)?;
    let Some(about) = found else {
        return Err(Trouble::new(format!("there is no interface {name}"), "ip -br link"));
    };
    if !about.up {
        return Err(Trouble::new(format!("{name} is down"), format!("ip link set {name} up")));
    }
    Ok(Named { name, about })
}

fn packet(Named { name, about }: &Named<'_>, open_host: bool) -> Result<Port, Trouble> {
    let port = Port::interface(about.index).map_err(|e| match e.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Trouble::new(
            format!("{name}: not permitted"),
            "run it as root, or: setcap cap_net_raw,cap_net_admin+ep bluewater-gateway",
        ),
        _ => Trouble::system(name, e),
    })?;
    if open_host { Ok(port) } else { port.shut(name) }
}

/// AF_XDP at an interface. Unless the user insists, only where every frame arrives as it was on a wire.
fn xdp(
    Named { name, about }: &Named<'_>,
    longest: usize,
    plane: Plane,
    mut warn: impl FnMut(Trouble),
) -> Result<Port, Trouble> {
    let queues = sys::queues(name);
    if queues != 1 {
        return Err(Trouble::new(
            format!("{name} has {queues} queues for what comes in, AF_XDP would read one"),
            format!("ethtool -L {name} combined 1"),
        ));
    }
    let insists = plane == Plane::Xdp;
    if let Some(kind) = &about.kind {
        let unsaid = Trouble::new(
            format!(
                "{name} is a {kind}: what comes there may never have been on a wire, and with \
                 AF_XDP the kernel does not say which checksums it left unfilled, which are found \
                 by what stands in their place, nor which VLAN tags are kept beside the frame"
            ),
            "`ethtool -K NAME txvlan off` at all senders of tags on this machine, and --plane xdp",
        );
        if !insists {
            return Err(unsaid);
        }
        warn(unsaid);
    } else if sys::takes_tags(name) {
        let untold = Trouble::new(
            format!("{name} takes VLAN tags out of frames, and with AF_XDP nobody says which"),
            format!("ethtool -K {name} rxvlan off"),
        );
        if !insists {
            return Err(untold);
        }
        warn(untold);
    }
    // What nobody has sent over a wire comes as super-packets then, which AF_XDP cannot cut, nor anything at
    // this interface prevent.
    let rings = Xdp::open(about.index, name, longest, insists && about.kind.is_none())?;
    if !rings.native() && sys::merges(name) {
        warn(Trouble::new(
            format!(
                "{name}: its driver has no XDP, so frames come when the kernel has put them \
                 together; what is too long then is lost"
            ),
            format!("ethtool -K {name} gro off"),
        ));
    }
    Ok(Port::rings(about.index, rings))
}

#[cfg(test)]
mod tests {
    use aqm::{Duration, Limit, Rate};

    use super::*;

    /// One thing after another would be a try for each.
    #[test]
    fn all_that_is_missing_is_told_at_once() {
        let limit = Limit::packets(10).unwrap();
        let spec = |aqm| Spec::new(Rate::from_mbit(1), Duration::ZERO, limit, aqm);
        let names = ["absent0", "absent1"];
        let text = ready(&[spec("bleu"), spec("bleu")], names, None).err().unwrap().to_string();
        let told: Vec<_> = text.lines().collect();
        assert_eq!(
            told,
            [
                "error: no queue discipline is called bleu",
                "hint: did you mean `blue`?",
                "error: there is no interface absent0",
                "hint: ip -br link",
                "error: there is no interface absent1",
                "hint: ip -br link",
            ]
        );
    }
}
