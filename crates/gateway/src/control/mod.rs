//! Questions and changes while a gateway runs, over a socket in the file system: only its user can open it,
//! and no network leads to it. Each side asks the kernel for the user of the other one and refuses other
//! users, except that root may ask any gateway.
//!
//! A connection carries one request and its answer, each a line of JSON:
//!
//! ```text
//! {"show": {}}
//! {"set": {"way": "up", "rate": "20mbit", "delay": "5ms", "buffer": "50kB", "aqm": "sfb",
//!          "params": {"increment": "0.01"}}}
//! {"join": {"end": "near"}}
//! {"upgrade": {}}
//! {"answer": …} or {"error": "what is wrong", "hint": "what to do"}
//! ```
//!
//! With the answer to `join` come three open files: the gateway's process, and the user and the network
//! namespace of that end. So nobody has to find them by a process number, which may belong to another process
//! by then.

mod asking;
mod callers;
mod client;
mod http;
pub mod metrics;
pub mod place;
mod request;
mod room;
mod save;
mod told;
pub mod web;

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use clap::ValueEnum;
use nix::unistd::{Gid, Uid, geteuid};

use crate::namespace::ends::Namespaces;
use crate::trouble::Trouble;
pub(crate) use asking::{Asked, Asking, Closed, Told, line};
pub(crate) use client::join;
pub use client::{ask, group, upgrade, user};
pub use http::{NoHttp, Wish, read};
pub use place::name;
use place::{Entry, Folder, file};
pub(crate) use request::Differs;
pub use request::{Renewal, Request, Step, parse};
pub use save::file as saved;
pub use told::told;

/// A group whose members may ask, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Which one.
    pub gid: Gid,
    /// What for.
    pub may: May,
}

/// What members of a group may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum May {
    /// All that its user may.
    All,
    /// Show and save settings and counts.
    Show,
}

/// A socket that waits for requests; its name goes with it.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    entry: Entry,
    name: String,
    /// Whose it is.
    owner: Uid,
    /// Whose members may ask, too.
    group: Option<Group>,
}

impl Control {
    /// Opens the socket of the gateway `name`. Without one it is called by its process number or, since
    /// in other process namespaces others have the same, by the next number that is free.
    ///
    /// # Errors
    /// When there is another of that name, or nowhere to put it.
    pub fn bind(name: Option<&str>, group: Option<Group>) -> Result<Self, Trouble> {
        room::ask();
        let named = name.is_some();
        let mut why = Trouble::new("no folder for the control socket", "");
        let reached = |path: &PathBuf| group.is_none() || place::is_public(path);
        for path in place::candidates(geteuid()).into_iter().filter(reached) {
            match Folder::open(&path, geteuid(), true) {
                Ok(None) => {}
                Err(trouble) => why = trouble,
                Ok(Some(folder)) => {
                    let failed = |e| Trouble::system("opening the control socket", e);
                    let mut number = std::process::id();
                    loop {
                        let name = name.map_or_else(|| number.to_string(), String::from);
                        if let Some((listener, entry)) =
                            folder.listen(&file(&name), group.map(|it| it.gid)).map_err(failed)?
                        {
                            return Ok(Self { listener, entry, name, owner: geteuid(), group });
                        }
                        if named || number == u32::MAX {
                            return Err(Trouble::new(
                                format!("a gateway called {name} is running"),
                                "choose another --name; a shell can be joined: bluewater-gateway \
                                 join NAME",
                            ));
                        }
                        number += 1;
                    }
                }
            }
        }
        Err(why)
    }

    /// Goes on at the socket of another process.
    pub(crate) fn taken_over(
        name: String,
        group: Option<Group>,
        listener: OwnedFd,
        alive: OwnedFd,
    ) -> Self {
        let entry = Entry::taken_over(alive.into());
        Self { listener: listener.into(), entry, name, owner: geteuid(), group }
    }

    /// What it needs for that.
    pub(crate) fn files(&self) -> [(&'static str, BorrowedFd<'_>); 2] {
        [("control socket", self.listener.as_fd()), ("sweeper", self.entry.as_fd())]
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Listens in a thread of its own; who joins gets handles of the `namespaces`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn serve(
        self,
        mut asking: Asking,
        namespaces: Option<Namespaces>,
    ) -> Result<Entry, Trouble> {
        let Self { listener, entry, owner, group, .. } = self;
        let failed = |e| Trouble::system("starting a thread", e);
        listener.set_nonblocking(true).map_err(failed)?;
        let listen = move || {
            let closed = asking.closed();
            let answer = |request| asking.ask(request);
            callers::listen(&listener, (owner, group), namespaces.as_ref(), &closed, answer);
        };
        thread::Builder::new().name("control".into()).spawn(listen).map_err(failed)?;
        Ok(entry)
    }
}

#[cfg(test)]
mod tests;
