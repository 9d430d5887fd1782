//! What is done about two ports while frames go between them, by the process that keeps the rights to do
//! it. Where one loses its carrier the other is taken down, so that who is at its far end sees it; and a
//! port that gets another name is closed to this machine's own stack under that, too.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::libc;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::io::shut::Shut;
use crate::netlink::{Interface, Netlink};

/// What is to be done about the ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guarding {
    /// Whether the loss of a carrier is passed on.
    pub pass_on: bool,
    /// Whether this machine's own stack is kept from their frames.
    pub shut: bool,
}

/// Something that happened, for the log and for people.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Happened {
    pub(crate) event: Value,
    pub(crate) note: String,
}

/// Watches the ports, and acts.
#[derive(Debug)]
pub(crate) struct Guard {
    /// To which the kernel tells that an interface has changed.
    told: Socket,
    netlink: Netlink,
    ports: [Port; 2],
    cable: Cable,
    clock: Clock,
    pass_on: bool,
    shut: bool,
}

/// What a port is known by, in text `INDEX/NAME`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    pub(crate) index: u32,
    pub(crate) name: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.name)
    }
}

impl FromStr for Identity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (index, name) = text.split_once('/').ok_or("INDEX/NAME is wanted")?;
        let index = index.parse().map_err(|_| "INDEX is a number")?;
        Ok(Self { index, name: name.into() })
    }
}

#[derive(Debug)]
struct Port {
    index: u32,
    name: String,
    /// How often it was renamed, and what closes it under the present name.
    renamed: u32,
    closed: Option<Shut>,
}

/// The group of the kernel's messages about interfaces.
const INTERFACES: u32 = libc::RTMGRP_LINK as u32;

impl Guard {
    /// For two ports that are there.
    pub(crate) fn new(ports: [Identity; 2], guarding: Guarding) -> io::Result<Self> {
        let mut told = Socket::new(NETLINK_ROUTE)?;
        told.bind(&SocketAddr::new(0, INTERFACES))?;
        let netlink = Netlink::new()?;
        let ports =
            ports.map(|Identity { index, name }| Port { index, name, renamed: 0, closed: None });
        let Guarding { pass_on, shut } = guarding;
        Ok(Self {
            told,
            netlink,
            ports,
            cable: Cable::default(),
            clock: Clock::new(),
            pass_on,
            shut,
        })
    }

    /// Sees what is otherwise, acts, and tells what happened.
    pub(crate) fn look(&mut self) -> Vec<Happened> {
        while self.told.recv(&mut Vec::with_capacity(1 << 13), libc::MSG_DONTWAIT).is_ok() {}
        let Some(now) = self.state() else { return Vec::new() };
        let mut all = Vec::new();
        for (port, about) in self.ports.iter_mut().zip(&now) {
            if port.name != about.name {
                all.push(port.rename(&about.name, self.shut));
            }
        }
        let now = now.map(|about| (about.up, about.carrier));
        for (at, change) in self.cable.follow(now, self.clock.now()) {
            // Where both are lost at once, one is left up, to see when its own is back.
            if !self.cable.taken[at] {
                all.push(self.carrier(at, change));
            }
        }
        all
    }

    /// Both interfaces, if they are there.
    fn state(&mut self) -> Option<[Interface; 2]> {
        let mut about = |port: &Port| self.netlink.numbered(port.index).ok()?;
        let [lan, wan] = &self.ports;
        Some([about(lan)?, about(wan)?])
    }

    /// The carrier of a port was lost, or is back.
    fn carrier(&mut self, at: usize, change: Change) -> Happened {
        let [name, other] = [at, 1 - at].map(|port| self.ports[port].name.clone());
        let index = self.ports[1 - at].index;
        let back = change == Change::Back;
        let moves = if back { self.cable.taken[1 - at] } else { self.pass_on };
        let done = moves.then(|| match back {
            true => self.netlink.up(index, Vec::new()),
            false => self.netlink.down(index),
        });
        if let Some(Ok(())) = done {
            self.cable.moved(1 - at, back, self.clock.now());
        }
        let what = if back { "has a carrier again" } else { "has lost its carrier" };
        let way = if back { "up" } else { "down" };
        let then = match &done {
            None => String::new(),
            Some(Ok(())) => format!(": {other} is taken {way}"),
            Some(Err(e)) => format!(": {other} cannot be taken {way}: {e}"),
        };
        let moved = done.is_some_and(|done| done.is_ok()).then_some(other);
        Happened {
            event: json!({"event": "carrier", "interface": name, "carrier": back, way: moved}),
            note: format!("warning: {name} {what}{then}"),
        }
    }

    /// Takes up what it took down.
    pub(crate) fn end(mut self) {
        for (port, taken) in self.ports.iter().zip(self.cable.taken) {
            if taken {
                _ = self.netlink.up(port.index, Vec::new());
            }
        }
    }
}

impl AsFd for Guard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

impl Port {
    /// It is called `name` from now on.
    fn rename(&mut self, name: &str, shut: bool) -> Happened {
        let old = std::mem::replace(&mut self.name, name.into());
        self.renamed += 1;
        let table = format!("bluewater-{}-{}", self.index, self.renamed);
        let mut note = format!("warning: {old} is called {name} now");
        if shut {
            match Shut::new(self.index, name, &table) {
                Ok(closed) => self.closed = Some(closed),
                Err(trouble) => note += &format!("\n{trouble}"),
            }
        }
        Happened { event: json!({"event": "name", "interface": old, "name": name}), note }
    }
}

/// Which of two ports have a carrier, and which were taken down since the other one had none.
#[derive(Debug)]
struct Cable {
    carrier: [bool; 2],
    taken: [bool; 2],
    /// Until when a port that was just taken up may look for its carrier, ns.
    patience: [u64; 2],
}

impl Default for Cable {
    /// A port without a carrier at the start has just lost it.
    fn default() -> Self {
        Self { carrier: [true; 2], taken: [false; 2], patience: [0; 2] }
    }
}

/// What became of a carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Lost,
    Back,
}

/// The longest that both ends of a cable need to agree upon a rate, ns.
const PATIENCE: u64 = 10_000_000_000;

impl Cable {
    /// Both ports are up, or not, and have a carrier, or not, at a `time` (ns): what has changed, by port.
    fn follow(&mut self, now: [(bool, bool); 2], time: u64) -> Vec<(usize, Change)> {
        let mut changes = Vec::new();
        for (at, (up, carrier)) in now.into_iter().enumerate() {
            if self.taken[at] {
                if !up {
                    continue;
                }
                // Somebody else took it up.
                self.moved(at, true, time);
            }
            if !carrier && time < self.patience[at] {
                continue;
            }
            self.patience[at] = 0;
            if carrier != self.carrier[at] {
                self.carrier[at] = carrier;
                changes.push((at, if carrier { Change::Back } else { Change::Lost }));
            }
        }
        changes
    }

    /// A port was taken up or down, which says nothing about its cable.
    fn moved(&mut self, at: usize, up: bool, time: u64) {
        (self.taken[at], self.carrier[at]) = (!up, true);
        self.patience[at] = if up { time + PATIENCE } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: (bool, bool) = (true, true);
    const WITHOUT: (bool, bool) = (true, false);
    const DOWN: (bool, bool) = (false, false);

    /// A cable is pulled and put back: the other port goes down and comes back, and is given time to find
    /// its carrier; if it finds none, that is a loss of its own.
    #[test]
    fn a_lost_carrier_takes_the_other_port_down() {
        let mut cable = Cable::default();
        let at = |seconds: u64| seconds * 1_000_000_000;
        assert_eq!(cable.follow([UP, UP], at(0)), []);
        assert_eq!(cable.follow([WITHOUT, UP], at(1)), [(0, Change::Lost)]);
        cable.moved(1, false, at(1));
        assert_eq!(cable.follow([WITHOUT, DOWN], at(2)), []);
        assert_eq!(cable.follow([UP, DOWN], at(60)), [(0, Change::Back)]);
        cable.moved(1, true, at(60));
        assert_eq!(cable.follow([UP, WITHOUT], at(63)), []);
        assert_eq!(cable.follow([UP, UP], at(64)), []);
        assert_eq!(cable.taken, [false; 2]);
        assert_eq!(cable.follow([UP, WITHOUT], at(65)), [(1, Change::Lost)]);
        cable.moved(0, false, at(65));
        assert_eq!(cable.follow([DOWN, UP], at(66)), [(1, Change::Back)]);
        cable.moved(0, true, at(66));
        assert_eq!(cable.follow([WITHOUT, UP], at(75)), []);
        assert_eq!(cable.follow([WITHOUT, UP], at(76)), [(0, Change::Lost)]);
    }

    /// What somebody else takes up is no longer this gateway's to take up.
    #[test]
    fn a_port_that_others_take_up_is_theirs() {
        let (mut cable, now) = (Cable::default(), 0);
        assert_eq!(cable.follow([DOWN, UP], now), [(0, Change::Lost)]);
        cable.moved(1, false, now);
        assert_eq!(cable.follow([DOWN, UP], now), []);
        assert_eq!((cable.taken, cable.carrier), ([false; 2], [false, true]));
    }
}
