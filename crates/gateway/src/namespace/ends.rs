//! The two ends of a shell's link.

use std::env;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use caps::Capability;
use clap::ValueEnum;
use nix::ifaddrs::getifaddrs;
use nix::unistd::getpid;
use serde::{Deserialize, Serialize};

use super::Namespace;
use crate::io::port::Ports;
use crate::trouble::Trouble;
use crate::{privilege, sys};

/// Where the ends of a link are, and what is known there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Places {
    /// How many links it is behind: a shell in a shell has other addresses.
    pub depth: u8,
    /// Addresses of the near end, of IPv4 and IPv6.
    pub near: [IpAddr; 2],
    /// Addresses of the far end.
    pub far: [IpAddr; 2],
    /// The far end of the outermost link, if this one leads to it.
    pub outermost: Option<IpAddr>,
    /// Name servers to ask, if there is a way to any.
    pub dns: Vec<IpAddr>,
}

impl Places {
    /// Those of a link behind `depth` others.
    pub fn new(depth: u8) -> Self {
        Self::within(RANGES[0], depth)
    }

    fn within(range: Range, depth: u8) -> Self {
        let [first, second] = range.first;
        let ends = [1, 2].map(|host| {
            [
                IpAddr::V4(Ipv4Addr::new(first, second, depth, host)),
                IpAddr::V6(Ipv6Addr::new(0xfd64, depth.into(), 0, 0, 0, 0, 0, host.into())),
            ]
        });
        Self { depth, near: ends[0], far: ends[1], outermost: None, dns: Vec::new() }
    }

    /// The ends of a link that is started here, behind another link if the environment names one; its
    /// addresses are then of the same range. Of a link that is to lead out they are none of this machine's
    /// network.
    pub(crate) fn here(leads_out: bool) -> Self {
        let text = |name| env::var(name).ok();
        let depth: Option<u8> = text(DEPTH).and_then(|depth| depth.parse().ok());
        let outermost = text(FAR).and_then(|address| address.parse().ok());
        let Some(depth) = depth else {
            let range = if leads_out { Range::free(&networks()) } else { RANGES[0] };
            return Self::within(range, 0);
        };
        let near: Option<Ipv4Addr> = text(NEAR).and_then(|address| address.parse().ok());
        let range = RANGES.into_iter().find(|range| near.is_some_and(|near| range.has(near)));
        Self { outermost, ..Self::within(range.unwrap_or(RANGES[0]), depth.saturating_add(1)) }
    }

    /// The link that this one is behind.
    pub(crate) fn outer(&self) -> Option<Self> {
        Some(Self::within(self.range(), self.depth.checked_sub(1)?))
    }

    /// The first address for what leads out of the far end, of 2^14.
    pub(crate) fn out(&self) -> Ipv4Addr {
        let [first, second] = self.range().out;
        Ipv4Addr::new(first, second, 0, 0)
    }

    fn range(&self) -> Range {
        let IpAddr::V4(near) = self.near[0] else { return RANGES[0] };
        RANGES.into_iter().find(|range| range.has(near)).unwrap_or(RANGES[0])
    }

    /// The environment of a command there.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        let far = self.outermost.unwrap_or(self.far[0]);
        [(DEPTH, self.depth.to_string()), (NEAR, self.near[0].to_string()), (FAR, far.to_string())]
    }
}

/// Addresses for links and their ways out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    /// What the addresses of ends begin with, and the range.
    first: [u8; 2],
    /// Its length as a prefix.
    bits: u8,
    /// What those of ways out begin with.
    out: [u8; 2],
}

/// That for carriers' NAT (RFC 6598), which overlays such as Tailscale use, too; and that for benchmarks (RFC 2544).
const RANGES: [Range; 2] = [
    Range { first: [100, 64], bits: 10, out: [100, 127] },
    Range { first: [198, 18], bits: 15, out: [198, 19] },
];

impl Range {
    fn has(self, address: Ipv4Addr) -> bool {
        let [first, second] = self.first;
        let differing = Ipv4Addr::new(first, second, 0, 0).to_bits() ^ address.to_bits();
        differing.leading_zeros() >= self.bits.into()
    }

    /// The first range that contains none of `networks` (address and prefix); the first of all if each does.
    fn free(networks: &[(Ipv4Addr, u32)]) -> Self {
        let inside = |range: Self| {
            networks.iter().any(|&(address, bits)| bits >= range.bits.into() && range.has(address))
        };
        RANGES.into_iter().find(|range| !inside(*range)).unwrap_or(RANGES[0])
    }
}

/// Addresses of this machine and routes of its main table, but for those of shells.
fn networks() -> Vec<(Ipv4Addr, u32)> {
    let addresses = getifaddrs().into_iter().flatten().filter(|one| !is_ours(&one.interface_name));
    let addresses =
        addresses.filter_map(|one| Some((one.address?.as_sockaddr_in()?.ip(), Ipv4Addr::BITS)));
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let number = |text: &str| Some(u32::from_be(u32::from_str_radix(text, 16).ok()?));
    let route = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [interface, to, .., mask, _, _, _] = words[..] else { return None };
        let bits = number(mask)?.count_ones();
        (!is_ours(interface)).then_some((Ipv4Addr::from_bits(number(to)?), bits))
    };
    addresses.chain(routes.lines().filter_map(route)).collect()
}

/// What interfaces to shells are called on this machine, before a number.
pub(crate) const UPLINK: &str = "bwup";

fn is_ours(interface: &str) -> bool {
    interface.starts_with(UPLINK)
}

const DEPTH: &str = "BLUEWATER_DEPTH";
const NEAR: &str = "BLUEWATER_NEAR";
const FAR: &str = "BLUEWATER_FAR";

/// The TUN device of each end.
pub const DEVICE: &str = "tun0";

/// An end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Where the shell's command runs.
    Near,
    /// The other one.
    Far,
}

impl End {
    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// Open handles of both ends' namespaces, for commands that join.
#[derive(Debug)]
pub(crate) struct Namespaces {
    /// This process, to be waited for.
    process: OwnedFd,
    user: File,
    /// The network namespaces, near and far.
    nets: [OwnedFd; 2],
    /// Where they are.
    pub(crate) places: Places,
}

impl Namespaces {
    /// What [`crate::control::join`] gets, which stays open here.
    pub(crate) fn handles(&self, end: End) -> [RawFd; 3] {
        let net = &self.nets[usize::from(end == End::Far)];
        [self.process.as_raw_fd(), self.user.as_raw_fd(), net.as_raw_fd()]
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
    pub fn new(places: &Places, mtu: u32, ecn: bool) -> Result<(Self, Ports), Trouble> {
        let (near, far) = (Namespace::new(End::Near.name())?, Namespace::new(End::Far.name())?);
        if ecn {
            for end in [&near, &far] {
                end.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"))
                    .map_err(|e| Trouble::system("switching ECN on", e))?;
            }
        }
        let tuns = [near.tun(DEVICE, places.near, mtu)?, far.tun(DEVICE, places.far, mtu)?];
        let ports =
            Ports { ends: tuns, longest: mtu as usize, fallback: None, warnings: Vec::new() };
        Ok((Self { near, far }, ports))
    }

    /// Gives up all rights of this process for good, but that to end what was started in the ends.
    pub(crate) fn unprivileged(&self) -> Result<(), Trouble> {
        self.near
            .run(|| privilege::keep(&[]))
            .and_then(|()| self.far.run(|| privilege::keep(&[])))
            .and_then(|()| privilege::keep(&[Capability::CAP_KILL]))
            .map_err(|e| Trouble::system("dropping privileges", e))
    }

    /// Their open handles.
    pub(crate) fn namespaces(&self, places: Places) -> io::Result<Namespaces> {
        Ok(Namespaces {
            process: sys::process(getpid())?,
            user: File::open("/proc/self/ns/user")?,
            nets: [self.near.run(Namespace::here)?, self.far.run(Namespace::here)?],
            places,
        })
    }

    /// Packets that the kernel dropped at each end before they could be read.
    pub fn lost(&self) -> [u64; 2] {
        [self.near.dropped(DEVICE), self.far.dropped(DEVICE)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(networks: &[(&str, u32)]) -> [u8; 2] {
        let networks = networks.iter().map(|(address, bits)| (address.parse().unwrap(), *bits));
        Range::free(&networks.collect::<Vec<_>>()).first
    }

    #[test]
    fn a_link_that_leads_out_has_no_addresses_of_the_network_there() {
        let (carriers, benchmarks) = ([100, 64], [198, 18]);
        assert_eq!(free(&[("192.168.1.7", 32), ("192.168.1.0", 24)]), carriers);
        assert_eq!(free(&[("100.101.102.103", 32)]), benchmarks, "an overlay's address");
        assert_eq!(free(&[("100.64.0.0", 10)]), benchmarks, "a route to a carrier's network");
        assert_eq!(free(&[("0.0.0.0", 0), ("0.0.0.0", 1)]), carriers, "default routes");
        assert_eq!(free(&[("100.128.0.1", 32), ("100.63.255.0", 24)]), carriers);
        assert_eq!(free(&[("100.64.0.1", 32), ("198.19.0.1", 32)]), carriers, "no choice is left");
    }

    #[test]
    fn all_addresses_of_a_link_are_of_one_range() {
        for (range, out) in RANGES.into_iter().zip(["100.127.0.0", "198.19.0.0"]) {
            let places = Places::within(range, 3);
            assert!(range.has(out.parse().unwrap()));
            assert_eq!((places.range(), places.out().to_string()), (range, out.into()));
            assert_eq!(places.outer(), Some(Places::within(range, 2)));
        }
        assert_eq!(Places::new(0).outer(), None);
    }
}
