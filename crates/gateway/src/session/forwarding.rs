//! How to forward, and what to write.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::control::Group;
use crate::privilege::RealTime;

/// How to forward.
#[derive(Clone, Debug)]
pub struct Forwarding {
    /// The name of its control socket; without one a free number, see [`Control::bind`](crate::control::Control::bind).
    pub name: Option<String>,
    /// The group whose members may ask there, beside its user and root.
    pub group: Option<Group>,
    /// The port of its metrics.
    pub metrics: Option<u16>,
    /// Where its live page is.
    pub web: Option<SocketAddr>,
    /// Whether the forwarding thread goes before others.
    pub realtime: RealTime,
    /// For how long it busy-waits before a departure instead of sleeping, ns.
    pub spin: u64,
    /// Where to write JSON lines.
    pub log: Option<PathBuf>,
    /// Where to record arrivals.
    pub record: Option<PathBuf>,
    /// Where to write packets as pcapng, and one of how many.
    pub pcapng: Option<(PathBuf, u32)>,
    /// Time between lines, ns.
    pub interval: u64,
}

impl Forwarding {
    /// Nothing is written.
    pub fn silent() -> Self {
        Self {
            name: None,
            group: None,
            metrics: None,
            web: None,
            realtime: RealTime::Auto,
            spin: 0,
            log: None,
            record: None,
            pcapng: None,
            interval: u64::MAX,
        }
    }
}
