//! The two ends of a shell's link.

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

/// Addresses of the near end.
pub const NEAR: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 64, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd64, 0, 0, 0, 0, 0, 0, 1)),
];
/// Addresses of the far end.
pub const FAR: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(100, 64, 0, 2)),
    IpAddr::V6(Ipv6Addr::new(0xfd64, 0, 0, 0, 0, 0, 0, 2)),
];
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

/// The way into both ends, for those who join.
#[derive(Debug)]
pub(crate) struct Rooms {
    /// This process, to be waited for.
    process: OwnedFd,
    user: File,
    /// The network namespaces, near and far.
    nets: [OwnedFd; 2],
}

impl Rooms {
    /// What [`control::join`] gets, which stays open here.
    pub(crate) fn way(&self, end: End) -> [RawFd; 3] {
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
    pub fn new(mtu: u32, ecn: bool) -> Result<(Self, Ports), Trouble> {
        let (near, far) = (Namespace::new(End::Near.name())?, Namespace::new(End::Far.name())?);
        if ecn {
            for end in [&near, &far] {
                end.run(|| fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"))
                    .map_err(|e| Trouble::system("switching ECN on", e))?;
            }
        }
        let tuns = [near.tun(DEVICE, NEAR, mtu)?, far.tun(DEVICE, FAR, mtu)?];
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

    /// The way into them.
    pub(crate) fn rooms(&self) -> io::Result<Rooms> {
        Ok(Rooms {
            process: sys::process(getpid())?,
            user: File::open("/proc/self/ns/user")?,
            nets: [self.near.run(Namespace::here)?, self.far.run(Namespace::here)?],
        })
    }

    /// Packets that the kernel dropped at each end before they could be read.
    pub fn lost(&self) -> [u64; 2] {
        [self.near.dropped(DEVICE), self.far.dropped(DEVICE)]
    }
}
