//! Tells systemd, or another manager of services (sd_notify(3)), that packets flow, that the gateway
//! lives, that it ends.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::trouble::Trouble;

/// The least time in which a manager may expect a sign of life, µs: signs come twice a second.
const LEAST_WATCHDOG: u64 = 1_000_000;

/// The manager of services that started this process, if one did.
#[derive(Debug, Default)]
pub(crate) struct Service(Option<UnixDatagram>);

impl Service {
    /// Reads the environment and connects. What comes later opens nothing more.
    ///
    /// # Errors
    /// A manager that cannot be reached, or does not wait long enough for signs of life.
    pub(crate) fn find() -> Result<Self, Trouble> {
        let variable = |name| std::env::var(name).ok();
        let number = |name| variable(name).and_then(|text| text.parse::<u64>().ok());
        let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        if let Some(time) = number("WATCHDOG_USEC").filter(|time| ours && *time < LEAST_WATCHDOG) {
            let what = format!("WATCHDOG_USEC={time}: signs of life come every 500 ms");
            return Err(Trouble::new(what, "WatchdogSec=2 or more in the unit"));
        }
        variable("NOTIFY_SOCKET").map_or(Ok(Self::default()), |path| Self::at(&path))
    }

    fn at(path: &str) -> Result<Self, Trouble> {
        let failed = |e| Trouble::system(format!("NOTIFY_SOCKET={path}"), e);
        let address = match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(path),
        };
        let socket = UnixDatagram::unbound().map_err(failed)?;
        socket.connect_addr(&address.map_err(failed)?).map_err(failed)?;
        // A manager that does not read must not hold up packets.
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Self(Some(socket)))
    }

    /// Packets flow, of which `status` is a line for people.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// The thread that forwards is alive.
    pub(crate) fn lives(&self) {
        self.tell("WATCHDOG=1");
    }

    /// From here on the process `pid` is the service's.
    pub(crate) fn hands_over(&self, pid: u64) {
        self.tell(&format!("MAINPID={pid}"));
    }

    /// It ends.
    pub(crate) fn stops(&self) {
        self.tell("STOPPING=1");
    }

    fn tell(&self, what: &str) {
        if let Some(socket) = &self.0 {
            _ = socket.send(what.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_hears_it_by_path_and_by_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("@bluewater-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name[1..]).unwrap();
        for (manager, at) in [
            (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap()),
            (UnixDatagram::bind_addr(&address).unwrap(), &name[..]),
        ] {
            let service = Service::at(at).unwrap();
            service.ready("up 10mbit");
            service.lives();
            service.stops();
            let mut heard = [0; 64];
            let mut next = || {
                let length = manager.recv(&mut heard).unwrap();
                String::from_utf8_lossy(&heard[..length]).into_owned()
            };
            assert_eq!(
                [next(), next(), next()],
                ["READY=1\nSTATUS=up 10mbit", "WATCHDOG=1", "STOPPING=1"]
            );
            // One that does not read holds up nothing.
            (0..100_000).for_each(|_| service.lives());
        }
        let absent = Service::at("/absent/notify").unwrap_err();
        assert!(absent.what.starts_with("NOTIFY_SOCKET=/absent/notify: "), "{absent}");
    }
}
