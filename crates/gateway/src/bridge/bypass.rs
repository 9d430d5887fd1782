//! A bridge of the kernel's own in place of a gateway that does not run: packets pass, without its queues.

use std::io;

use super::{Named, interface};
use crate::netlink::Netlink;
use crate::trouble::Trouble;

/// The name of the bridge beside the number of the first of its ports.
const NAME: &str = "bw-bypass";

/// Joins two interfaces (LAN, WAN) by a bridge that has no address, or takes it away again. What is done
/// already stays done.
///
/// # Errors
/// An interface that is not there or is a port of something else, or missing rights.
pub fn bypass(names: [&str; 2], on: bool) -> Result<(), Trouble> {
    let both = [interface(names[0])?, interface(names[1])?];
    let failed = |e: io::Error| Trouble::system("joining the interfaces", e);
    let mut netlink = Netlink::new().map_err(failed)?;
    let name = format!("{NAME}{}", both[0].about.index);
    let found = netlink.interface(&name).map_err(failed)?;
    if !on {
        return found.map_or(Ok(()), |bridge| netlink.remove(bridge.index)).map_err(failed);
    }
    let ours = found.as_ref().map(|bridge| bridge.index);
    let other = |one: &&Named<'_>| one.about.master.is_some() && one.about.master != ours;
    if let Some(Named { name, .. }) = both.iter().find(other) {
        let what = format!("{name} is a port of another bridge or bond");
        return Err(Trouble::new(what, format!("ip link set {name} nomaster")));
    }
    if found.is_none() {
        netlink.bridge(&name).map_err(failed)?;
    }
    let bridge = netlink.interface(&name).map_err(failed)?;
    let Some(bridge) = bridge else { return Err(Trouble::new("the bridge is gone", "")) };
    netlink.no_address(bridge.index).map_err(failed)?;
    for Named { about, .. } in &both {
        netlink.join(about.index, bridge.index).map_err(failed)?;
        netlink.up(about.index, Vec::new()).map_err(failed)?;
    }
    netlink.up(bridge.index, Vec::new()).map_err(failed)
}
