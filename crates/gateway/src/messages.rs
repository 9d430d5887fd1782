//! Lines of JSON between processes, and open files with them.

use std::io::{self, IoSlice, Write as _};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde_json::Value;

use crate::sys;

/// Lines, and the open files that come with one of them.
pub(crate) fn heard(stream: &UnixStream) -> io::Result<(Vec<Value>, Vec<OwnedFd>)> {
    let (mut text, mut files) = (Vec::new(), Vec::new());
    while !text.ends_with(b"\n") {
        let (more, others) = sys::receive(stream)?;
        if more.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        text.extend(more);
        files.extend(others);
    }
    let lines = serde_json::Deserializer::from_slice(&text).into_iter();
    Ok((lines.collect::<Result<_, _>>()?, files))
}

/// Says something, and shows open files with it.
pub(crate) fn tell(
    mut stream: &UnixStream,
    said: &Value,
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let line = format!("{said}\n").into_bytes();
    let shown: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
    let files = [ControlMessage::ScmRights(&shown)];
    let files = if shown.is_empty() { &[][..] } else { &files };
    let sent =
        sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(&line)], files, MsgFlags::empty(), None)?;
    stream.write_all(&line[sent..])
}
