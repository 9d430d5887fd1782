//! The two ends of a shell's link.

use std::env;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use caps::Capability;
use clap::ValueEnum;
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
        let ends = [1, 2].map(|host| {
            [
                IpAddr::V4(Ipv4Addr::new(100, 64, depth, host)),
                IpAddr::V6(Ipv6Addr::new(0xfd64, depth.into(), 0, 0, 0, 0, 0, host.into())),
            ]
        });
        Self { depth, near: ends[0], far: ends[1], outermost: None, dns: Vec::new() }
    }

    /// The ends of a link that is started here, behind another link if the environment names one.
    pub(crate) fn here() -> Self {
        let text = |name| env::var(name).ok();
        let depth: Option<u8> = text(DEPTH).and_then(|depth| depth.parse().ok());
        let outermost = text(FAR).and_then(|address| address.parse().ok());
        let Some(depth) = depth else { return Self::new(0) };
        Self { outermost, ..Self::new(depth.saturating_add(1)) }
    }

    /// The environment of a command there.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        let far = self.outermost.unwrap_or(self.far[0]);
        [(DEPTH, self.depth.to_string()), (NEAR, self.near[0].to_string()), (FAR, far.to_string())]
    }
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
