//! A bridge of the kernel's own in place of a gateway that does not run: packets pass, without its queues.

use std::io;
use std::path::Path;

use super::wiring::{self, Claim};
use super::{Named, interface};
use crate::netlink::{Interface, Netlink};
use crate::trouble::Trouble;

/// The name of the bridge beside the number of the first of its ports.
const NAME: &str = "bw-bypass";

/// Joins two interfaces (LAN, WAN), takes them up, and has this machine answer nothing there. What is done already
/// stays done.
///
/// # Errors
/// What would keep a gateway from running there: another way for their frames, a login over one of them, another
/// gateway.
pub fn bypass(names: [&str; 2]) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::system("joining the interfaces", e);
    let mut netlink = Netlink::new().map_err(failed)?;
    let before = names.map(|name| ours(&mut netlink, name).ok().flatten());
    if let [Some(one), Some(other)] = &before
        && one.index == other.index
        && one.up
    {
        return Ok(());
    }
    remove(names)?;
    for name in names {
        if let Some(port) = netlink.interface(name).map_err(failed)? {
            netlink.up(port.index, Vec::new()).map_err(failed)?;
        }
    }
    let both = [interface(names[0])?, interface(names[1])?];
    let mut warnings = wiring::check(&both, false)?;
    let _claims = [Claim::new(&both[0], &mut warnings)?, Claim::new(&both[1], &mut warnings)?];
    let name = format!("{NAME}{}", both[0].about.index);
    netlink.bridge(&name).map_err(failed)?;
    let bridge = netlink.interface(&name).map_err(failed)?;
    let Some(bridge) = bridge else { return Err(Trouble::new("the bridge is gone", "")) };
    // Neither addresses of its own nor answers for others.
    for (setting, value) in
        [("ipv6/conf/NAME/disable_ipv6", "1"), ("ipv4/conf/NAME/arp_ignore", "8")]
    {
        let path = Path::new("/proc/sys/net").join(setting.replace("NAME", &name));
        if path.exists() {
            std::fs::write(path, value).map_err(failed)?;
        }
    }
    for Named { about, .. } in &both {
        netlink.join(about.index, bridge.index).map_err(failed)?;
    }
    netlink.up(bridge.index, Vec::new()).map_err(failed)
}

/// Takes away the bridges that join either of two interfaces, if they were made so.
///
/// # Errors
/// Missing rights.
pub fn remove(names: [&str; 2]) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::system("taking the bridge away", e);
    let mut netlink = Netlink::new().map_err(failed)?;
    for name in names {
        if let Some(bridge) = ours(&mut netlink, name).map_err(failed)? {
            netlink.remove(bridge.index).map_err(failed)?;
        }
    }
    Ok(())
}

/// The bridge of this kind that an interface is a port of.
fn ours(netlink: &mut Netlink, name: &str) -> io::Result<Option<Interface>> {
    let Some(master) = netlink.interface(name)?.and_then(|port| port.master) else {
        return Ok(None);
    };
    Ok(netlink.numbered(master)?.filter(|bridge| bridge.name.starts_with(NAME)))
}
