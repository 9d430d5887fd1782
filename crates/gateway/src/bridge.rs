//! An emulated link between two Ethernet interfaces that are there: a bump in the wire. Frames go
//! from one to the other as they are, but for the mark.

use std::io;

use nix::libc;
use signal_hook::consts::SIGINT;

use crate::link::Spec;
use crate::netlink::Netlink;
use crate::port::{Port, Ports};
use crate::privilege;
use crate::session::{Doors, Finished, Forwarding, Session};
use crate::shell::{terminated, waker, watch};
use crate::trouble::Trouble;

/// Bytes of an Ethernet header with VLAN tags.
const HEADER: u32 = 14 + 4 * crate::frame::MAX_TAGS as u32;

/// Forwards between the interfaces `names` (LAN, WAN) until it is told to stop. Returns the summaries.
///
/// # Errors
/// What is missing, with the command that mends it.
pub fn bridge(specs: &[Spec; 2], how: &Forwarding, names: [&str; 2]) -> Result<Finished, Trouble> {
    let ports = open(names)?;
    let (waker, wake) = waker()?;
    let told = terminated(&wake)?;
    watch(SIGINT, &told, &wake).map_err(|e| Trouble::system("watching signals", e))?;
    let mut session = Session::new(specs, how, ports)?;
    let doors = Doors::open(how, specs)?;
    privilege::drop_all()?;
    session.serve(doors, &wake)?;
    session.run(&waker, || true)?;
    let lost = session.overrun();
    session.finish(lost)
}

/// Ports of the interfaces `names`.
pub(crate) fn open(names: [&str; 2]) -> Result<Ports, Trouble> {
    if names[0] == names[1] {
        return Err(Trouble::new("--lan and --wan are the same interface", "name two"));
    }
    let [(lan, mtu), (wan, other)] = [port(names[0])?, port(names[1])?];
    if mtu != other {
        return Err(Trouble::new(
            format!("{} has an MTU of {mtu}, {} of {other}", names[0], names[1]),
            format!("ip link set {} mtu {other}", names[0]),
        ));
    }
    Ok(Ports { ends: [lan, wan], longest: (mtu + HEADER) as usize })
}

/// A port of the interface `name`, and its MTU.
fn port(name: &str) -> Result<(Port, u32), Trouble> {
    let system = |e: io::Error| Trouble::system(name, e);
    let found = Netlink::new().and_then(|mut netlink| netlink.interface(name)).map_err(system)?;
    let Some(found) = found else {
        return Err(Trouble::new(format!("there is no interface {name}"), "ip -br link"));
    };
    if !found.up {
        return Err(Trouble::new(format!("{name} is down"), format!("ip link set {name} up")));
    }
    let port = Port::interface(found.index).map_err(|e| match e.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Trouble::new(
            format!("{name}: not permitted"),
            "run it as root, or: setcap cap_net_raw+ep bluewater-gateway",
        ),
        _ => system(e),
    })?;
    Ok((port, found.mtu))
}
