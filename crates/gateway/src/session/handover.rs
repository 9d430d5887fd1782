//! What the thread that forwards does while one process takes over from another ([`crate::upgrade`]).

use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Session;
use crate::control::{Closed, Step};
use crate::io::port::Port;
use crate::link::Link;
use crate::record::described;
use crate::renewal::{Keeper, Wish};
use crate::service::Service;
use crate::trouble::{Trouble, say};
use crate::upgrade::{Predecessor, RESTART, told};

/// How far a handover is.
#[derive(Debug, Default)]
pub(super) struct Handover {
    stage: Stage,
    /// Why the last one failed.
    failed: Option<Trouble>,
    /// The process that starts the new one.
    pub(super) keeper: Option<Keeper>,
    /// Whether another process answers users.
    pub(super) closed: Closed,
}

#[derive(Debug, Default)]
enum Stage {
    /// No other process is there.
    #[default]
    Alone,
    /// The new one is not ready yet.
    Starting,
    /// The new one, with this number, is to read, and does so at last; of each way, what it has heard.
    Leaving { to: Arc<UnixStream>, pid: u64, reads: bool, free: [bool; 2], empty: [bool; 2] },
    /// The old one, with this number, still sends; when its transmitters are free, ns.
    Coming { from: u64, stream: Arc<UnixStream>, reads: bool, free: [u64; 2], service: Service },
}

impl Session {
    /// This process takes over; `service` hears of it once the old one has ended.
    pub(crate) fn follow(&mut self, old: &Predecessor, service: Service) -> Result<(), Trouble> {
        let failed = |e| Trouble::system("taking over", e);
        let stream = Arc::new(old.stream.try_clone().map_err(failed)?);
        self.handover.stage =
            Stage::Coming { from: old.pid, stream, reads: false, free: [u64::MAX; 2], service };
        self.forwarder.read(false).map_err(failed)
    }

    /// What the old one says comes here, if there is one.
    pub(super) fn voice(&self) -> Option<Arc<UnixStream>> {
        let Stage::Coming { stream, .. } = &self.handover.stage else { return None };
        self.handover.closed.set(true);
        Some(Arc::clone(stream))
    }

    /// The open files that another process needs to take over, each with what it is.
    pub(crate) fn files(&mut self) -> Vec<(&'static str, BorrowedFd<'_>)> {
        let log = self.log.as_ref().and_then(|log| log.file()).map(|log| ("log", log.as_fd()));
        let ports = self.forwarder.ports().iter().filter_map(Port::files);
        let port = |(port, shut): (_, Option<_>)| {
            [Some(("port", port)), shut.map(|shut| ("shut", shut))].into_iter().flatten()
        };
        ports.flat_map(port).chain(log).collect()
    }

    /// Time 0, for another process.
    pub(crate) fn clock(&self) -> [u64; 2] {
        self.forwarder.clock().told()
    }

    /// Refuses changes of a process that is being replaced.
    ///
    /// # Errors
    /// When it is.
    pub(super) fn unchanging(&self) -> Result<(), Trouble> {
        match &self.handover.stage {
            Stage::Alone | Stage::Coming { .. } => Ok(()),
            _ => Err(Trouble::new("an upgrade is under way", "try again")),
        }
    }

    /// Asks for a new process that takes over.
    pub(super) fn upgrade(&mut self) -> Result<Value, Trouble> {
        self.unchanging()?;
        if let Stage::Coming { from, .. } = &self.handover.stage {
            return Err(Trouble::new(
                format!("process {from} still sends what came before the last upgrade"),
                format!("try again; or `kill {from}`: what it holds is lost then"),
            ));
        }
        let refused =
            |what: &str, hint| Err(Trouble::new(format!("no upgrade while it runs: {what}"), hint));
        let Some(keeper) = &self.handover.keeper else {
            return refused("this is no gateway between two interfaces", RESTART);
        };
        if self.forwarder.tap().is_some() || self.capture.is_some() {
            return refused(
                "--record and --pcapng write files that no other process continues",
                RESTART,
            );
        }
        let limits = |link: &Link| link.spec().policer.or(link.spec().shaper).is_some();
        if self.forwarder.links.iter().any(limits) {
            return refused("a new policer or shaper would let its burst pass again", RESTART);
        }
        if self.forwarder.links.iter().any(|link| link.spec().classes.is_some()) {
            return refused(
                "with classes, what is queued in the old process would leave before all that comes to \
                 the new one",
                RESTART,
            );
        }
        if !self.forwarder.ports().iter().all(|port| port.files().is_some()) {
            return refused("no other process takes over the rings of AF_XDP", RESTART);
        }
        if !keeper.wish(Wish::Upgrade) {
            return refused("the helper process bound-keep has ended", RESTART);
        }
        (self.handover.stage, self.handover.failed) = (Stage::Starting, None);
        Ok(Value::Null)
    }

    /// What `show` tells of it.
    pub(super) fn handover(&self) -> Value {
        match (&self.handover.stage, &self.handover.failed) {
            (Stage::Starting, _) => json!("starting"),
            (Stage::Leaving { pid, .. }, _) => json!({"to": pid}),
            (Stage::Coming { from, .. }, _) => json!({"from": from}),
            (Stage::Alone, failed) => failed.as_ref().map(told).into(),
        }
    }

    /// Takes a step.
    ///
    /// # Errors
    /// When this process has nothing to do any more.
    pub(super) fn step(&mut self, step: &Step) -> Result<Value, Trouble> {
        match step {
            Step::Describe => {
                Ok(described(&self.forwarder.links.each_ref().map(|link| link.spec().clone())))
            }
            Step::Ready(to, pid) => {
                let time = self.now() as f64 / 1e9;
                self.samples();
                self.line(&json!({"time_s": time, "event": "upgrade", "to": pid}));
                self.reads(false)?;
                write(to, &json!({"go": true}));
                let (to, pid, none) = (Arc::clone(to), *pid, [false; 2]);
                self.handover.stage =
                    Stage::Leaving { to, pid, reads: false, free: none, empty: none };
                Ok(Value::Null)
            }
            Step::Reads => {
                if let Stage::Leaving { reads, .. } = &mut self.handover.stage {
                    *reads = true;
                }
                Ok(Value::Null)
            }
            Step::Failed(_)
                if matches!(self.handover.stage, Stage::Alone | Stage::Coming { .. }) =>
            {
                Ok(Value::Null)
            }
            Step::Failed(trouble) => {
                self.handover.keeper.iter().for_each(|keeper| _ = keeper.wish(Wish::Kill));
                self.reads(true)?;
                self.handover.stage = Stage::Alone;
                self.handover.failed = Some(trouble.clone());
                say(format!("warning: no upgrade, this process goes on\n{trouble}"));
                Ok(Value::Null)
            }
            Step::Said(said) => self.said(said).map(|()| Value::Null),
        }
    }

    /// Reads what comes and answers users, or leaves both to another process.
    fn reads(&mut self, reads: bool) -> Result<(), Trouble> {
        self.handover.closed.set(!reads);
        self.forwarder.read(reads).map_err(|e| Trouble::system("forwarding", e))
    }

    /// The old one says something, or has ended.
    fn said(&mut self, said: &Value) -> Result<(), Trouble> {
        let Stage::Coming { from, stream, reads, free, service } = &mut self.handover.stage else {
            return Ok(());
        };
        let ends = said.is_null() || said["gone"] == true;
        if said["go"] == true {
            *reads = true;
            let stream = Arc::clone(stream);
            self.reads(true)?;
            write(&stream, &json!({"reads": true}));
            self.restart_measurement();
        } else if ends && !*reads {
            return Err(Trouble::new(
                format!("process {from} has ended instead of handing over"),
                "",
            ));
        } else if ends {
            if said.is_null() {
                say(format!("warning: process {from} has ended, with what it had queued"));
            }
            let now = self.forwarder.now();
            for (link, free) in self.forwarder.links.iter_mut().zip(free) {
                if *free > now {
                    link.free_from(now);
                }
                link.open();
            }
            let service = std::mem::take(service);
            self.handover.stage = Stage::Alone;
            self.report_to(service);
        } else if let Some(way) = said["way"].as_u64().filter(|&way| way < 2) {
            let (way, now) = (way as usize, self.forwarder.clock().now());
            let link = &mut self.forwarder.links[way];
            if let Some(at) = said["free"].as_u64() {
                // Not in the past, where the queue did not know of what has come since.
                link.free_from(at.max(now));
                free[way] = at;
            } else if said["empty"] == true {
                link.open();
            }
        }
        Ok(())
    }

    /// Until when it forwards before it looks at what has left, ns.
    pub(super) fn until(&self) -> u64 {
        match self.handover.stage {
            Stage::Leaving { reads: true, .. } => {
                self.forwarder.links.iter().map(Link::next_step).min().unwrap_or(0)
            }
            _ => u64::MAX,
        }
    }

    /// Tells the new process what has left, once that one reads. Whether nothing is left for this one to do.
    pub(super) fn has_left(&mut self) -> bool {
        let Stage::Leaving { to, pid, reads: true, free, empty } = &mut self.handover.stage else {
            return false;
        };
        for (way, link) in self.forwarder.links.iter().enumerate() {
            if let Some(at) = link.free_at().filter(|_| !free[way]) {
                write(to, &json!({"way": way, "free": at}));
                free[way] = true;
            }
            if free[way] && !empty[way] && link.is_empty() {
                write(to, &json!({"way": way, "empty": true}));
                empty[way] = true;
            }
        }
        if *empty != [true; 2] {
            return false;
        }
        self.service.hands_over(*pid);
        write(to, &json!({"gone": true}));
        self.handover.keeper.iter().for_each(|keeper| _ = keeper.wish(Wish::Leave));
        say(format!("process {pid} forwards from here on"));
        true
    }

    /// Whether the log and the manager of services are another process's.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.handover.stage, Stage::Leaving { .. })
    }
}

/// If the other one has ended, that is heard elsewhere.
fn write(mut to: &UnixStream, said: &Value) {
    _ = writeln!(to, "{said}");
}
