//! A server of small pages over HTTP that no client can hold up: it reads in bounded turns, cuts off clients
//! that take too long, and makes room for new ones.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;

use httparse::{EMPTY_HEADER, Header, Status};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::asking::Closed;
use super::room;
use crate::clock::Clock;
use crate::trouble::Trouble;

/// The longest head of a request, bytes.
const LONGEST_HEAD: usize = 4096;
/// The longest body, bytes: as a line at the control socket.
pub(super) const LONGEST_BODY: usize = 16 << 10;
/// How long a client may take in all, ns.
pub(super) const PATIENCE: u64 = 2_000_000_000;
/// The most clients at a time. The one that is there longest makes room for a new one.
const MOST: usize = 128;
/// The most that are let in at a time: each is read once before it may have to make room.
const AT_ONCE: usize = 32;
/// The most parts of what one says that are read at a time.
const PARTS: usize = 16;

/// What a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    /// `GET`, `HEAD`, `POST` …
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The header `Host`.
    pub host: Option<String>,
    /// The header `Origin`.
    pub origin: Option<String>,
    /// The header `Content-Type`.
    pub content_type: Option<String>,
    /// The bytes after the head.
    pub body: Vec<u8>,
}

impl Wish {
    /// Path without query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// What stands behind the path.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// Whether it only wants to read.
    pub fn reads(&self) -> bool {
        self.method == "GET" || self.method == "HEAD"
    }
}

/// Reads a request once all of it is there; no HTTP, or more than is taken, is an error. What comes
/// behind it changes nothing.
pub fn read(bytes: &[u8]) -> Option<Result<Wish, NoHttp>> {
    let mut headers = [EMPTY_HEADER; 64];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(bytes) {
        Ok(Status::Partial) => (bytes.len() > LONGEST_HEAD).then_some(Err(NoHttp)),
        Err(_) => Some(Err(NoHttp)),
        Ok(Status::Complete(head)) => wish(&parsed, &bytes[head..]).transpose(),
    }
}

/// This is no HTTP, or more than is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoHttp;

/// Nothing until all of the body is there.
fn wish(parsed: &httparse::Request<'_, '_>, rest: &[u8]) -> Result<Option<Wish>, NoHttp> {
    let header = |name| only(parsed.headers, name);
    let length = match header("content-length")? {
        None => 0,
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map_err(|_| NoHttp)?
        }
        Some(_) => return Err(NoHttp),
    };
    if length > LONGEST_BODY || header("transfer-encoding")?.is_some() {
        return Err(NoHttp);
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    Ok(Some(Wish {
        method: parsed.method.unwrap_or_default().into(),
        target: parsed.path.unwrap_or_default().into(),
        host: header("host")?,
        origin: header("origin")?,
        content_type: header("content-type")?,
        body: body.to_vec(),
    }))
}

/// The value of the header `name`, which there may be once.
fn only(headers: &[Header<'_>], name: &str) -> Result<Option<String>, NoHttp> {
    let mut values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    let value = values.next().map(|header| std::str::from_utf8(header.value).map(str::trim));
    if values.next().is_some() {
        return Err(NoHttp);
    }
    Ok(value.transpose().map_err(|_| NoHttp)?.map(String::from))
}

/// Whether a `Host` is an address with or without a port, or this machine itself: no name that somebody
/// else may give to it.
pub(super) fn is_address(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let alone = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<SocketAddr>().is_ok()
        || alone.parse::<IpAddr>().is_ok()
        || host == "localhost"
        || host.strip_prefix("localhost:").is_some_and(|port| port.parse::<u16>().is_ok())
}

/// What a client gets.
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    /// More headers, each with its line end.
    pub(super) headers: &'static str,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// A line for people.
    pub(super) fn text(status: &'static str, text: &str) -> Self {
        let body = format!("{text}\n").into_bytes();
        Self { status, content_type: "text/plain; charset=utf-8", headers: "", body }
    }

    /// As it is sent; a body that nobody wants is left out.
    fn bytes(self, wanted: bool) -> Vec<u8> {
        let Self { status, content_type, headers, body } = self;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             {headers}Connection: close\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        if wanted {
            bytes.extend(body);
        }
        bytes
    }
}

/// Answers what comes at `listener` in a thread of its own; `answer` is also told the time, ns.
///
/// # Errors
/// When it cannot be started.
pub(super) fn serve(
    listener: TcpListener,
    name: &str,
    closed: Closed,
    mut answer: impl FnMut(u64, &Wish) -> Answer + Send + 'static,
) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::system("starting a thread", e);
    listener.set_nonblocking(true).map_err(failed)?;
    let listen = move || {
        let clock = Clock::new();
        let mut visitors: Vec<Visitor> = Vec::new();
        loop {
            wait(&listener, &visitors);
            let now = clock.now();
            let mut heard = visitors.len();
            for _ in 0..if closed.waits() { 0 } else { AT_ONCE } {
                let stream = match listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(e) if room::made(&listener, &mut visitors, &mut heard, &e) => continue,
                    Err(_) => break,
                };
                if visitors.len() == MOST {
                    visitors.remove(0);
                    heard = heard.saturating_sub(1);
                }
                if stream.set_nonblocking(true).is_ok() {
                    visitors.push(Visitor::new(stream, now));
                }
            }
            visitors.retain_mut(|visitor| {
                now - visitor.since < PATIENCE
                    && visitor.go_on(|wish| answer(now, wish)).unwrap_or(false)
            });
        }
    };
    let thread = thread::Builder::new().name(name.into()).spawn(listen);
    thread.map(drop).map_err(failed)
}

/// Waits until somebody comes or goes on, or may have had enough time.
fn wait(listener: &TcpListener, visitors: &[Visitor]) {
    let mut fds = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    fds.extend(visitors.iter().map(|visitor| {
        let writes = !visitor.answer.is_empty();
        let flags = if writes { PollFlags::POLLOUT } else { PollFlags::POLLIN };
        PollFd::new(visitor.stream.as_fd(), flags)
    }));
    let time = if visitors.is_empty() { PollTimeout::NONE } else { PollTimeout::from(500u16) };
    _ = poll(&mut fds, time);
}

/// A connection.
struct Visitor {
    stream: TcpStream,
    since: u64,
    request: Vec<u8>,
    /// The answer, and how much of it was sent.
    answer: Vec<u8>,
    sent: usize,
    /// All was sent; it may read that before the connection goes.
    answered: bool,
}

impl Visitor {
    fn new(stream: TcpStream, since: u64) -> Self {
        let (request, answer) = (Vec::new(), Vec::new());
        Self { stream, since, request, answer, sent: 0, answered: false }
    }

    /// Does what can be done now. Whether it is to stay.
    fn go_on(&mut self, answer: impl FnOnce(&Wish) -> Answer) -> io::Result<bool> {
        let mut part = [0; 2048];
        for _ in 0..PARTS {
            if !self.answer.is_empty() {
                break;
            }
            match self.stream.read(&mut part) {
                Ok(0) => return Ok(false),
                Ok(_) if self.answered => continue,
                Ok(length) => self.request.extend_from_slice(&part[..length]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(e) => return Err(e),
            }
            match read(&self.request) {
                None if self.request.len() > LONGEST_HEAD + LONGEST_BODY => return Ok(false),
                None => {}
                Some(Err(NoHttp)) if self.request.len() > LONGEST_HEAD => return Ok(false),
                Some(Err(NoHttp)) => {
                    self.answer = Answer::text("400 Bad Request", "this is no HTTP").bytes(true);
                    break;
                }
                Some(Ok(wish)) => {
                    self.answer = answer(&wish).bytes(wish.method != "HEAD");
                    break;
                }
            }
        }
        if self.answer.is_empty() {
            return Ok(true);
        }
        while self.sent < self.answer.len() {
            match self.stream.write(&self.answer[self.sent..]) {
                Ok(length) => self.sent += length,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(e) => return Err(e),
            }
        }
        self.answer = Vec::new();
        self.answered = true;
        self.stream.shutdown(Shutdown::Write)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_once_it_is_there() {
        let told = |text: &str| read(text.as_bytes()).map(|read| read.map(|wish| wish.target));
        for (request, wanted) in [
            ("GET /metrics HTTP/1.1\r\n\r\n", Some(Ok("/metrics"))),
            ("GET /metrics?x=1&y HTTP/1.1\r\nHost: x\r\n\r\n", Some(Ok("/metrics?x=1&y"))),
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n", None),
            ("GET /metric", None),
            ("\0\0", Some(Err(NoHttp))),
            ("GET /metrics HTTP/1.1 what\r\n\r\n", Some(Err(NoHttp))),
            ("POST /set HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", None),
            ("POST /set HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcd", Some(Ok("/set"))),
            ("POST /set HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc", Some(Err(NoHttp))),
            ("POST /set HTTP/1.1\r\nContent-Length: 99999\r\n\r\n", Some(Err(NoHttp))),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", Some(Err(NoHttp))),
            ("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", Some(Err(NoHttp))),
        ] {
            assert_eq!(told(request), wanted.map(|read| read.map(String::from)), "{request}");
        }
        let body = read(b"POST /set HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcd").unwrap().unwrap();
        assert_eq!(body.body, b"abc");
        assert_eq!(read(&[b'x'; LONGEST_HEAD + 1]), Some(Err(NoHttp)), "an endless head");
    }
}
