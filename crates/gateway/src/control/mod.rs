//! Questions and changes while a gateway runs, over a socket in the file system: only its user can
//! open it, and nothing on a network leads to it. Each side asks the kernel who the other one is, and
//! has nothing to do with other users; but root may ask everybody.
//!
//! A connection carries one request and its answer, each a line of JSON:
//!
//! ```text
//! {"show": {}}
//! {"set": {"way": "up", "rate": "20mbit", "delay": "5ms", "buffer": "50kB", "aqm": "sfb",
//!          "params": {"increment": "0.01"}}}
//! {"join": {"end": "near"}}
//! {"answer": …} or {"error": "what is wrong", "hint": "what to do"}
//! ```
//!
//! With the answer to `join` come three open files: the gateway's process, and the user and the network
//! namespace of that end. So nobody has to find them by a process number, which may be another's by
//! then.

mod asking;
mod client;
mod http;
pub mod metrics;
pub mod place;
mod request;
pub mod web;

use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{ControlMessage, MsgFlags, getsockopt, sendmsg};
use nix::unistd::{Uid, geteuid};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::namespace::ends::Namespaces;
use crate::trouble::Trouble;
pub(crate) use asking::{Asked, Asking, line};
pub use client::ask;
pub(crate) use client::join;
pub use http::{NoHttp, Wish, read};
pub use place::name;
use place::{Entry, Folder, file};
use request::PATIENCE;
pub use request::{Request, parse};

/// The longest request, bytes.
const LONGEST: u64 = 16 << 10;

/// A socket that waits for requests; its name goes with it.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    entry: Entry,
    name: String,
    /// Whose it is.
    owner: Uid,
}

impl Control {
    /// Opens the socket of the gateway `name`. Without one it is called by its process number or, since
    /// in other process namespaces others have the same, by the next number that is free.
    ///
    /// # Errors
    /// When there is another of that name, or nowhere to put it.
    pub fn bind(name: Option<&str>) -> Result<Self, Trouble> {
        let named = name.is_some();
        let mut why = Trouble::new("no folder for the control socket", "");
        for path in place::candidates() {
            match Folder::open(&path, true) {
                Ok(None) => {}
                Err(trouble) => why = trouble,
                Ok(Some(folder)) => {
                    let failed = |e| Trouble::system("opening the control socket", e);
                    let mut number = std::process::id();
                    loop {
                        let name = name.map_or_else(|| number.to_string(), String::from);
                        if let Some((listener, entry)) =
                            folder.listen(&file(&name)).map_err(failed)?
                        {
                            return Ok(Self { listener, entry, name, owner: geteuid() });
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
        let Self { listener, entry, owner, .. } = self;
        let listen = move || {
            for stream in listener.incoming().flatten() {
                // One at a time, and whoever is too slow is cut off.
                _ = attend(&stream, owner, namespaces.as_ref(), |request| asking.ask(request));
            }
        };
        let thread = thread::Builder::new().name("control".into()).spawn(listen);
        thread.map_err(|e| Trouble::system("starting a thread", e))?;
        Ok(entry)
    }
}

/// One request of a connection.
fn attend(
    stream: &UnixStream,
    owner: Uid,
    namespaces: Option<&Namespaces>,
    answer: impl FnOnce(Request) -> Result<Value, Trouble>,
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    let mut shown = Vec::new();
    let answer = match welcome(stream, owner) {
        Err(trouble) => Err(trouble),
        Ok(()) => {
            BufReader::new(Hasty::new(stream).take(LONGEST)).read_line(&mut line)?;
            match parse(&line) {
                Ok(Request::Join { end }) => namespaces
                    .map(|namespaces| {
                        shown.extend(namespaces.handles(end));
                        json!(namespaces.places)
                    })
                    .ok_or_else(|| {
                        Trouble::new("it has no ends to join", "start it with `shell --name`")
                    }),
                Ok(request) => answer(request),
                Err(trouble) => Err(trouble),
            }
        }
    };
    let line = match answer {
        Ok(answer) => json!({"answer": answer}),
        Err(Trouble { what, hint }) => json!({"error": what, "hint": hint}),
    };
    let mut line = format!("{line}\n").into_bytes();
    if !shown.is_empty() {
        let files = [ControlMessage::ScmRights(&shown)];
        let bytes = [IoSlice::new(&line)];
        let sent = sendmsg::<()>(stream.as_raw_fd(), &bytes, &files, MsgFlags::empty(), None)?;
        line.drain(..sent);
    }
    (&*stream).write_all(&line)
}

/// A reader for whom the whole of what it reads has to come within [`PATIENCE`].
struct Hasty<'a> {
    stream: &'a UnixStream,
    clock: Clock,
}

impl<'a> Hasty<'a> {
    fn new(stream: &'a UnixStream) -> Self {
        Self { stream, clock: Clock::new() }
    }
}

impl Read for Hasty<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = PATIENCE.saturating_sub(Duration::from_nanos(self.clock.now()));
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        (&*self.stream).read(bytes)
    }
}

/// Whether whoever asks may: the user whose gateway it is, and root.
fn welcome(stream: &UnixStream, owner: Uid) -> Result<(), Trouble> {
    let peer = getsockopt(stream, PeerCredentials).map(|peer| Uid::from_raw(peer.uid()));
    let peer = peer.map_err(|e| Trouble::system("asking who asks", e))?;
    if may_ask(peer, owner) {
        return Ok(());
    }
    Err(Trouble::new(format!("this gateway is user {owner}'s, not user {peer}'s"), ""))
}

fn may_ask(peer: Uid, owner: Uid) -> bool {
    peer == owner || peer.is_root()
}

#[cfg(test)]
mod tests;
