//! Asks a gateway that runs.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::{Gid, Group, Uid, User, geteuid};
use serde_json::Value;

use super::place::{self, Folder, file};
use super::request::{PATIENCE, Request};
use crate::namespace::ends::{End, Places};
use crate::sys;
use crate::trouble::Trouble;

/// Asks the gateway `name` of `user`, by default of the present user. Root may ask any user's.
///
/// # Errors
/// When there is none, or it refuses.
pub fn ask(name: &str, user: Option<Uid>, request: &Request) -> Result<Value, Trouble> {
    question(name, user.unwrap_or_else(geteuid), request, |_| ())
}

/// Has a new process take over from the gateway `name` of `user`. Returns what became of it.
///
/// # Errors
/// When it goes on instead.
pub fn upgrade(name: &str, user: Option<Uid>) -> Result<String, Trouble> {
    let show = || ask(name, user, &Request::Show { classes: false });
    let old = show()?;
    ask(name, user, &Request::Upgrade {})?;
    for _ in 0..LOOKS {
        std::thread::sleep(LOOK);
        // In between nobody may answer.
        let Ok(state) = show() else { continue };
        let word = |key: &str| state["handover"][key].as_str();
        if let Some(what) = word("error") {
            let what = format!("{name} goes on as it is: {what}");
            return Err(Trouble::new(what, word("hint").unwrap_or_default()));
        }
        if state["pid"] != old["pid"] {
            return Ok(format!(
                "process {} of version {} takes over from process {} of version {}",
                state["pid"],
                state["version"].as_str().unwrap_or_default(),
                old["pid"],
                old["version"].as_str().unwrap_or_default()
            ));
        }
    }
    Err(Trouble::new(
        format!("{name} does not tell what became of the upgrade"),
        "`ctl show` tells",
    ))
}

/// Time between looks, and how many there are: longer than a new process may take.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 300;

/// The number of a user, given by name or number.
///
/// # Errors
/// When there is none.
pub fn user(text: &str) -> Result<Uid, String> {
    let named = || User::from_name(text).ok().flatten().map(|user| user.uid);
    let number = text.parse().ok().map(Uid::from_raw);
    number.or_else(named).ok_or_else(|| "there is no such user".into())
}

/// The number of a group, given by name or number.
///
/// # Errors
/// When there is none.
pub fn group(text: &str) -> Result<Gid, String> {
    let named = || Group::from_name(text).ok().flatten().map(|group| group.gid);
    let number = text.parse().ok().map(Gid::from_raw);
    number
        .or_else(named)
        .ok_or_else(|| format!("there is no such group; `addgroup --system {text}` makes it"))
}

/// Handles of an `end` of the shell `name` (its process, its user namespace, its network namespace), and its
/// addresses.
///
/// # Errors
/// When there is none, or it refuses.
pub(crate) fn join(name: &str, end: End) -> Result<([OwnedFd; 3], Places), Trouble> {
    let mut files = Vec::new();
    let answer = question(name, geteuid(), &Request::Join { end }, |received| files = received)?;
    let unexpected = || Trouble::new(format!("{name} did not answer as expected"), "");
    let places = serde_json::from_value(answer).map_err(|_| unexpected())?;
    Ok((files.try_into().map_err(|_| unexpected())?, places))
}

/// Asks, and hands over the open files that come with the answer.
fn question(
    name: &str,
    user: Uid,
    request: &Request,
    files: impl FnOnce(Vec<OwnedFd>),
) -> Result<Value, Trouble> {
    let mut stream = reach(name, user)?;
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => silent(name, request),
        _ => Trouble::system(format!("asking {name}"), e),
    };
    stream.set_read_timeout(Some(2 * PATIENCE)).map_err(failed)?;
    let mut asked = serde_json::to_vec(request).map_err(|e| failed(e.into()))?;
    asked.push(b'\n');
    stream.write_all(&asked).map_err(failed)?;
    let (mut line, received) = sys::receive(&stream).map_err(failed)?;
    files(received);
    if !line.ends_with(b"\n") {
        BufReader::new(stream).read_until(b'\n', &mut line).map_err(failed)?;
    }
    let mut reply: Value = serde_json::from_slice(&line).map_err(|e| failed(e.into()))?;
    match reply["error"].as_str() {
        None => Ok(reply["answer"].take()),
        Some(what) => Err(Trouble::new(what, reply["hint"].as_str().unwrap_or_default())),
    }
}

/// The gateway has not answered in time. It drops requests of callers that have gone, but may have begun this
/// one.
fn silent(name: &str, request: &Request) -> Trouble {
    let hint = match request {
        Request::Set(_) => {
            "it is stopped or very busy; a change that it has begun may still be made: `ctl show` tells"
        }
        _ => "it is stopped or very busy: try again",
    };
    Trouble::new(format!("{name} does not answer"), hint)
}

/// A connection to the gateway `name`, which is that of `user`.
fn reach(name: &str, user: Uid) -> Result<UnixStream, Trouble> {
    let mut why = None;
    for path in place::candidates(user) {
        match Folder::open(&path, user, false) {
            Ok(None) => {}
            Err(trouble) => why = why.or(Some(trouble)),
            Ok(Some(folder)) => {
                if let Ok(stream) = folder.connect(&file(name)) {
                    return theirs(name, user, stream);
                }
            }
        }
    }
    let names = running(user);
    let others = if user.is_root() { "; of another user's: --user" } else { "" };
    let hint = match why {
        Some(Trouble { what, hint }) => format!("{what}: {hint}"),
        None if names.is_empty() && user != geteuid() => {
            format!("none of user {user}'s is running, or you may not ask it")
        }
        None if names.is_empty() => format!("none of yours is running{others}"),
        None => format!("there are {}{others}", names.join(", ")),
    };
    Err(Trouble::new(format!("no gateway called {name} is running"), hint))
}

/// Another user's process may answer in the gateway's place and cannot be trusted.
fn theirs(name: &str, user: Uid, stream: UnixStream) -> Result<UnixStream, Trouble> {
    let peer = getsockopt(&stream, PeerCredentials);
    let peer = peer.map_err(|e| Trouble::system(format!("asking who {name} is"), e))?;
    if peer.uid() == user.as_raw() {
        return Ok(stream);
    }
    Err(Trouble::new(format!("{name} is user {}'s, not user {user}'s", peer.uid()), ""))
}

/// The names of the gateways of `user` that run.
fn running(user: Uid) -> Vec<String> {
    let folders =
        place::candidates(user).into_iter().filter_map(|f| Folder::open(&f, user, false).ok()?);
    let names = |folder: Folder| {
        let mut files = folder.names();
        files.retain(|file| folder.connect(file).is_ok());
        files
    };
    let files = folders.flat_map(names);
    files.filter_map(|file| file.strip_suffix(".sock").map(Into::into)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_socket_is_is_asked() {
        for (user, ours) in [(geteuid(), true), (Uid::from_raw(4711), false)] {
            let (one, _other) = UnixStream::pair().unwrap();
            assert_eq!(theirs("x", user, one).is_ok(), ours);
        }
        assert_eq!([user("root"), user("4711")], [Ok(Uid::from_raw(0)), Ok(Uid::from_raw(4711))]);
        assert!(user("nobody called so").is_err());
    }
}
