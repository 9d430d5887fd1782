//! The callers at the socket. All are served together, so that none waits for a silent one.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixListener, UnixStream};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{ControlMessage, MsgFlags, getsockopt, sendmsg};
use nix::unistd::Uid;
use serde_json::{Value, json};

use super::asking::Closed;
use super::request::{PATIENCE, Request, parse};
use super::{Group, May, room};
use crate::clock::Clock;
use crate::namespace::ends::Namespaces;
use crate::trouble::Trouble;

/// The longest request, bytes.
pub(super) const LONGEST: usize = 16 << 10;
/// The most callers at a time. The oldest makes room for a new one.
const MOST: usize = 64;
/// The most parts of what one says that are read at a time.
const PARTS: usize = 16;

/// Answers, for as long as the process lasts. With a group its members may ask, too: the socket's mode lets in nobody
/// else.
pub(super) fn listen(
    listener: &UnixListener,
    (owner, group): (Uid, Option<Group>),
    namespaces: Option<&Namespaces>,
    closed: &Closed,
    mut answer: impl FnMut(Request) -> Result<Value, Trouble>,
) -> ! {
    let clock = Clock::new();
    let patience = PATIENCE.as_nanos() as u64;
    let mut callers: Vec<Caller> = Vec::new();
    loop {
        wait(listener, &callers);
        let now = clock.now();
        let mut heard = callers.len();
        for _ in 0..if closed.waits() { 0 } else { MOST } {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(e) if room::made(listener, &mut callers, &mut heard, &e) => continue,
                Err(_) => break,
            };
            let may = match (welcome(&stream, owner), group) {
                (Ok(()), _) => May::All,
                (Err(_), Some(group)) => group.may,
                (Err(trouble), None) => {
                    _ = reply(&stream, Err(trouble), &[]);
                    continue;
                }
            };
            if callers.len() == MOST {
                callers.remove(0);
                heard = heard.saturating_sub(1);
            }
            if stream.set_nonblocking(true).is_ok() {
                callers.push(Caller { stream, may, since: now, said: Vec::new() });
            }
        }
        callers.retain_mut(|caller| {
            let Ok(all) = caller.hear() else { return false };
            let late = now - caller.since >= patience;
            if all || late && caller.said.len() > LONGEST {
                _ = caller.attend(namespaces, &mut answer);
                return false;
            }
            !late
        });
    }
}

/// Waits until somebody comes or goes on, or may have had enough time.
fn wait(listener: &UnixListener, callers: &[Caller]) {
    let ready = |fd| PollFd::new(fd, PollFlags::POLLIN);
    let mut fds = vec![ready(listener.as_fd())];
    fds.extend(callers.iter().map(|caller| ready(caller.stream.as_fd())));
    let time = if callers.is_empty() { PollTimeout::NONE } else { PollTimeout::from(500u16) };
    _ = poll(&mut fds, time);
}

/// A connection.
struct Caller {
    stream: UnixStream,
    may: May,
    /// Since when it is there, ns.
    since: u64,
    /// What came, as far as it may be a request.
    said: Vec<u8>,
}

impl Caller {
    /// Reads the bytes that are there. Returns whether the request is complete: bytes after its line change
    /// nothing. A request that is too long is read to its end, since closing earlier would discard the
    /// answer.
    fn hear(&mut self) -> io::Result<bool> {
        let mut part = [0; 4096];
        for _ in 0..PARTS {
            let length = match self.stream.read(&mut part) {
                Ok(0) => return Ok(true),
                Ok(length) => length,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            };
            let line = part[..length].split(|&byte| byte == b'\n').next().unwrap_or_default();
            let room = LONGEST + 1 - self.said.len();
            self.said.extend_from_slice(&line[..line.len().min(room)]);
            if line.len() < length {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Answers the caller; if it has gone, its request is not carried out.
    fn attend(
        &self,
        namespaces: Option<&Namespaces>,
        answer: impl FnOnce(Request) -> Result<Value, Trouble>,
    ) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        if gone(&self.stream) {
            return Ok(());
        }
        let mut shown = Vec::new();
        let answer = match request(&self.said) {
            Ok(request) if self.may == May::Show && !matches!(request, Request::Show { .. }) => {
                Err(Trouble::new(
                    "members of the group may show and save, and change nothing",
                    "started with --group-may all, the gateway lets them",
                ))
            }
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
        };
        reply(&self.stream, answer, &shown)
    }
}

/// Reads a caller's words as a request.
pub(super) fn request(said: &[u8]) -> Result<Request, Trouble> {
    if said.len() > LONGEST {
        let what = format!("not a request: it is longer than {LONGEST} bytes");
        return Err(Trouble::new(what, ""));
    }
    let text = std::str::from_utf8(said);
    parse(text.map_err(|e| Trouble::new(format!("not a request: {e}"), "write it in UTF-8"))?)
}

/// Whether the other side has closed its end, and not only said all that it has to say: it may have given
/// up while this process was stopped.
fn gone(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    let told = poll(&mut fds, PollTimeout::ZERO).is_ok();
    told && fds[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

/// Writes an answer, and hands over the files that are `shown` with it.
fn reply(
    mut stream: &UnixStream,
    answer: Result<Value, Trouble>,
    shown: &[std::os::fd::RawFd],
) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = match answer {
        Ok(answer) => json!({"answer": answer}),
        Err(Trouble { what, hint }) => json!({"error": what, "hint": hint}),
    };
    let mut line = format!("{line}\n").into_bytes();
    if !shown.is_empty() {
        let files = [ControlMessage::ScmRights(shown)];
        let bytes = [IoSlice::new(&line)];
        let sent = sendmsg::<()>(stream.as_raw_fd(), &bytes, &files, MsgFlags::empty(), None)?;
        line.drain(..sent);
    }
    stream.write_all(&line)
}

/// Admits the user who owns the gateway, and root.
fn welcome(stream: &UnixStream, owner: Uid) -> Result<(), Trouble> {
    let peer = getsockopt(stream, PeerCredentials).map(|peer| Uid::from_raw(peer.uid()));
    let peer = peer.map_err(|e| Trouble::system("asking who asks", e))?;
    if may_ask(peer, owner) {
        return Ok(());
    }
    Err(Trouble::new(format!("this gateway is user {owner}'s, not user {peer}'s"), ""))
}

pub(super) fn may_ask(peer: Uid, owner: Uid) -> bool {
    peer == owner || peer.is_root()
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::thread;
    use std::time::{Duration, Instant};

    use nix::unistd::geteuid;

    use super::*;

    /// A socket that takes requests, and a channel that reports each one that is carried out.
    fn heard() -> (tempfile::TempDir, std::sync::mpsc::Receiver<String>) {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("x")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        thread::spawn(move || {
            listen(&listener, (geteuid(), None), None, &Closed::default(), |request| {
                // One that takes as long as a process that is stopped.
                if matches!(request, Request::Set(_)) {
                    thread::sleep(Duration::from_millis(300));
                }
                _ = tell.send(format!("{request:?}"));
                Ok(json!("done"))
            })
        });
        (folder, told)
    }

    fn call(folder: &tempfile::TempDir) -> UnixStream {
        let stream = UnixStream::connect(folder.path().join("x")).unwrap();
        stream.set_read_timeout(Some(3 * PATIENCE)).unwrap();
        stream
    }

    fn answer(mut stream: &UnixStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
    fn nobody_waits_for_who_says_nothing() {
        let (folder, _told) = heard();
        let silent: Vec<_> = (0..20).map(|_| call(&folder)).collect();
        (&silent[0]).write_all(b"{\"sh").unwrap();
        let begun = Instant::now();
        let stream = call(&folder);
        (&stream).write_all(b"{\"show\": {}}\n").unwrap();
        assert_eq!(answer(&stream), "{\"answer\":\"done\"}\n");
        assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
        // They are cut off, and more than there is room for make each other go.
        assert_eq!(answer(&silent[1]), "");
        let many: Vec<_> = (0..2 * MOST).map(|_| call(&folder)).collect();
        (&many[2 * MOST - 1]).write_all(b"{\"show\": {}}\n").unwrap();
        assert_eq!(answer(&many[2 * MOST - 1]), "{\"answer\":\"done\"}\n");
    }

    #[test]
    fn whatever_is_no_request_gets_an_error() {
        let (folder, _told) = heard();
        let long = vec![b'x'; 1 << 20];
        for (said, words) in [
            (&b"\xff\xfe\n"[..], "utf-8"),
            (b"{\"show\": \"\xff\"}\n", "utf-8"),
            (&long, "longer than 16384"),
            (&[&long[..LONGEST + 1], b"\n"].concat(), "longer than 16384"),
            (b"{\"show\": {}}x\n", "more than one request"),
            (b"", "it ends within"),
        ] {
            let stream = call(&folder);
            (&stream).write_all(said).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let answer = answer(&stream);
            assert!(answer.starts_with("{\"error\":") && answer.contains(words), "{answer}");
        }
        // As long as is allowed, in parts, without an end of the line.
        let stream = call(&folder);
        let mut whole = b"{\"show\": {}}".to_vec();
        whole.resize(LONGEST, b' ');
        for part in whole.chunks(1000) {
            (&stream).write_all(part).unwrap();
        }
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(answer(&stream), "{\"answer\":\"done\"}\n");
    }

    /// A caller that gives up while the gateway is busy or stopped changes nothing; one that only stops
    /// writing does.
    #[test]
    fn a_request_ends_with_its_asker() {
        let (folder, told) = heard();
        let first = call(&folder);
        (&first).write_all(b"{\"set\": {\"delay\": \"1ms\"}}\n").unwrap();
        thread::sleep(Duration::from_millis(100));
        let gone = call(&folder);
        (&gone).write_all(b"{\"set\": {\"delay\": \"2ms\"}}\n").unwrap();
        drop(gone);
        let patient = call(&folder);
        (&patient).write_all(b"{\"set\": {\"delay\": \"3ms\"}}\n").unwrap();
        patient.shutdown(Shutdown::Write).unwrap();
        assert_eq!(answer(&patient), "{\"answer\":\"done\"}\n");
        let done: Vec<_> = told.try_iter().collect();
        assert_eq!(done.len(), 2, "{done:?}");
    }
}
