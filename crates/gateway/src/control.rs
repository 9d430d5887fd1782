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

use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use aqm::units::TextError;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{ControlMessage, MsgFlags, getsockopt, sendmsg};
use nix::unistd::{Uid, geteuid};
use serde_json::{Map, Value, json};

use crate::forward::DIRECTIONS;
use crate::options::{Change, text};
use crate::place::{self, Entry, Folder};
use crate::shell::{End, Rooms};
use crate::sys;
use crate::trouble::Trouble;

/// What can be asked.
#[derive(Clone, Debug)]
pub enum Request {
    /// Settings, counts and signals.
    Show,
    /// Other links from now on.
    Set(Change),
    /// The way into an end of the link.
    Join(End),
}

/// A request, and where the answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// The answer, or why not.
    pub answer: Sender<Result<Value, Trouble>>,
}

/// The longest request, bytes.
const LONGEST: u64 = 16 << 10;
/// How long the other side may take for its part.
const PATIENCE: Duration = Duration::from_secs(2);

/// A socket that waits for requests; its name goes with it.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    entry: Entry,
    /// Whose it is.
    owner: Uid,
}

impl Control {
    /// Opens the socket of the gateway `name`.
    ///
    /// # Errors
    /// When there is another of that name, or nowhere to put it.
    pub fn bind(name: &str) -> Result<Self, Trouble> {
        let mut why = Trouble::new("no folder for the control socket", "");
        for path in place::candidates() {
            match Folder::open(&path, true) {
                Ok(None) => {}
                Err(trouble) => why = trouble,
                Ok(Some(folder)) => {
                    let listening = folder
                        .listen(&file(name))
                        .map_err(|e| Trouble::system("opening the control socket", e))?;
                    let (listener, entry) = listening.ok_or_else(|| {
                        Trouble::new(
                            format!("a gateway called {name} is running"),
                            "choose another --name; a shell can be joined: bluewater-gateway join \
                             NAME",
                        )
                    })?;
                    return Ok(Self { listener, entry, owner: geteuid() });
                }
            }
        }
        Err(why)
    }

    /// Listens in a thread of its own; who joins is shown into the `rooms`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn serve(self, mut asking: Asking, rooms: Option<Rooms>) -> Result<Entry, Trouble> {
        let Self { listener, entry, owner } = self;
        let listen = move || {
            for stream in listener.incoming().flatten() {
                // One at a time, and whoever is too slow is cut off.
                _ = attend(&stream, owner, rooms.as_ref(), |request| asking.ask(request));
            }
        };
        let thread = thread::Builder::new().name("control".into()).spawn(listen);
        thread.map_err(|e| Trouble::system("starting a thread", e))?;
        Ok(entry)
    }
}

/// The name of the socket of the gateway `name`.
fn file(name: &str) -> String {
    format!("{name}.sock")
}

/// The way to the thread that forwards.
#[derive(Debug)]
pub(crate) struct Asking {
    requests: Sender<Asked>,
    wake: UnixStream,
}

/// A way to ask, which writes to `wake`, and where what is asked arrives.
pub(crate) fn line(wake: &UnixStream) -> Result<(Asking, Receiver<Asked>), Trouble> {
    let (requests, inbox) = channel();
    let wake = wake.try_clone().map_err(|e| Trouble::system("a pair of sockets", e))?;
    Ok((Asking { requests, wake }, inbox))
}

impl Asking {
    /// Hands over a request and waits for its answer.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Value, Trouble> {
        let gone = || Trouble::new("the gateway ends", "");
        let (answer, answered) = channel();
        self.requests.send(Asked { request, answer }).map_err(|_| gone())?;
        self.wake.write_all(&[1]).map_err(|_| gone())?;
        answered.recv_timeout(PATIENCE).map_err(|_| gone())?
    }

    /// Another one.
    pub(crate) fn again(&self) -> Result<Self, Trouble> {
        let wake = self.wake.try_clone().map_err(|e| Trouble::system("a pair of sockets", e))?;
        Ok(Self { requests: self.requests.clone(), wake })
    }
}

/// One request of a connection.
fn attend(
    stream: &UnixStream,
    owner: Uid,
    rooms: Option<&Rooms>,
    answer: impl FnOnce(Request) -> Result<Value, Trouble>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    let mut shown = Vec::new();
    let answer = match welcome(stream, owner) {
        Err(trouble) => Err(trouble),
        Ok(()) => {
            BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
            match parse(&line) {
                Ok(Request::Join(end)) => rooms
                    .map(|rooms| {
                        shown.extend(rooms.way(end));
                        json!({})
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

/// Asks the gateway `name`.
///
/// # Errors
/// When there is none, or it refuses.
pub fn ask(name: &str, request: &Request) -> Result<Value, Trouble> {
    question(name, request, |_| ())
}

/// The way into an `end` of the shell `name`: its process, and the user and the network namespace.
///
/// # Errors
/// When there is none, or it refuses.
pub(crate) fn join(name: &str, end: End) -> Result<[OwnedFd; 3], Trouble> {
    let mut files = Vec::new();
    question(name, &Request::Join(end), |received| files = received)?;
    files.try_into().map_err(|_| Trouble::new(format!("{name} did not answer as expected"), ""))
}

/// Asks, and hands over the open files that come with the answer.
fn question(
    name: &str,
    request: &Request,
    files: impl FnOnce(Vec<OwnedFd>),
) -> Result<Value, Trouble> {
    let mut stream = reach(name)?;
    let failed = |e: io::Error| Trouble::system(format!("asking {name}"), e);
    stream.set_read_timeout(Some(2 * PATIENCE)).map_err(failed)?;
    stream.write_all(format!("{}\n", spell(request)).as_bytes()).map_err(failed)?;
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

/// A connection to the gateway `name`, which is this user's.
fn reach(name: &str) -> Result<UnixStream, Trouble> {
    let mut why = None;
    for path in place::candidates() {
        match Folder::open(&path, false) {
            Ok(None) => {}
            Err(trouble) => why = why.or(Some(trouble)),
            Ok(Some(folder)) => {
                if let Ok(stream) = folder.connect(&file(name)) {
                    return ours(name, stream);
                }
            }
        }
    }
    let names = running();
    let hint = match why {
        Some(Trouble { what, hint }) => format!("{what}: {hint}"),
        None if names.is_empty() => "none of yours is running".into(),
        None => format!("there are {}", names.join(", ")),
    };
    Err(Trouble::new(format!("no gateway called {name} is running"), hint))
}

/// Whoever answers for another user may want anything.
fn ours(name: &str, stream: UnixStream) -> Result<UnixStream, Trouble> {
    let peer = getsockopt(&stream, PeerCredentials);
    let peer = peer.map_err(|e| Trouble::system(format!("asking who {name} is"), e))?;
    if peer.uid() == geteuid().as_raw() {
        return Ok(stream);
    }
    let (theirs, me) = (peer.uid(), geteuid());
    Err(Trouble::new(format!("{name} is user {theirs}'s, and you are user {me}"), ""))
}

/// A name that can be that of a file.
///
/// # Errors
/// What is allowed.
pub fn name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=MAX_NAME).contains(&text.len()) && text.chars().all(good) {
        Ok(text.into())
    } else {
        Err(format!("allowed: 1 to {MAX_NAME} letters, digits, - and _"))
    }
}

const MAX_NAME: usize = 32;

/// The names of this user's gateways that run.
fn running() -> Vec<String> {
    let folders = place::candidates().into_iter().filter_map(|f| Folder::open(&f, false).ok()?);
    let names = |folder: Folder| {
        let mut files = folder.names();
        files.retain(|file| folder.connect(file).is_ok());
        files
    };
    let files = folders.flat_map(names);
    files.filter_map(|file| file.strip_suffix(".sock").map(Into::into)).collect()
}

/// A request as JSON.
fn spell(request: &Request) -> Value {
    let change = match request {
        Request::Show => return json!({"show": {}}),
        Request::Join(end) => return json!({"join": {"end": end.name()}}),
        Request::Set(change) => change,
    };
    let mut set = Map::new();
    let texts = [
        ("way", change.way.clone()),
        ("rate", change.rate.map(|r| r.to_string())),
        ("delay", change.delay.map(|d| d.to_string())),
        ("buffer", change.buffer.map(|b| b.to_string())),
        ("aqm", change.aqm.clone()),
    ];
    for (key, text) in texts {
        set.extend(text.map(|text| (key.into(), text.into())));
    }
    let params: Map<_, _> = change.params.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    set.insert("params".into(), params.into());
    json!({"set": set})
}

/// A request from JSON.
///
/// # Errors
/// What is wrong with it.
pub fn parse(line: &str) -> Result<Request, Trouble> {
    let wrong = |what: &str| Trouble::new(format!("not a request: {what}"), "");
    let line: Value = serde_json::from_str(line).map_err(|e| wrong(&e.to_string()))?;
    let line = line.as_object().ok_or_else(|| wrong("no object"))?;
    let Some((verb, body)) = line.iter().next().filter(|_| line.len() == 1) else {
        return Err(wrong("one of show, set, join is wanted"));
    };
    let body = body.as_object().ok_or_else(|| wrong("no object"))?;
    match verb.as_str() {
        "show" if body.is_empty() => Ok(Request::Show),
        "set" => body.iter().try_fold(Change::default(), set).map(Request::Set),
        "join" if body.len() == 1 => {
            let end = body.get("end").and_then(Value::as_str).and_then(End::named);
            end.map(Request::Join).ok_or_else(|| wrong("end: near or far"))
        }
        _ => Err(wrong("one of show, set, join is wanted")),
    }
}

/// Reads one member of a `set`.
fn set(mut change: Change, (key, value): (&String, &Value)) -> Result<Change, Trouble> {
    let told = || Trouble::new(format!("{key}: text is wanted"), "");
    match key.as_str() {
        "way" => {
            let way = value.as_str().filter(|way| DIRECTIONS.contains(way));
            change.way = Some(way.ok_or_else(|| Trouble::new("way: up or down", ""))?.into());
        }
        "rate" => change.rate = Some(quantity(key, value)?),
        "delay" => change.delay = Some(quantity(key, value)?),
        "buffer" => change.buffer = Some(quantity(key, value)?),
        "aqm" => change.aqm = Some(value.as_str().ok_or_else(told)?.into()),
        "params" => {
            let all = value.as_object().ok_or_else(|| Trouble::new("params: an object", ""))?;
            for (name, value) in all {
                let value = value.as_str().ok_or_else(told)?;
                change.params.push((name.clone(), value.into()));
            }
        }
        _ => {
            let hint = "there are way, rate, delay, buffer, aqm, params";
            return Err(Trouble::new(format!("nothing is called {key}"), hint));
        }
    }
    Ok(change)
}

fn quantity<T: FromStr<Err = TextError>>(key: &str, value: &Value) -> Result<T, Trouble> {
    let wrong = |why: String| Trouble::new(format!("{key}: {why}"), "");
    text(value.as_str().unwrap_or_default()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_read_as_it_was_meant() {
        let change = Change {
            way: Some("up".into()),
            rate: Some("20mbit".parse().unwrap()),
            delay: None,
            buffer: Some("1.5bdp".parse().unwrap()),
            aqm: Some("sfb".into()),
            params: vec![("increment".into(), "0.01".into())],
        };
        for request in [
            Request::Show,
            Request::Set(change),
            Request::Set(Change::default()),
            Request::Join(End::Near),
            Request::Join(End::Far),
        ] {
            let line = spell(&request).to_string();
            assert_eq!(format!("{:?}", parse(&line).unwrap()), format!("{request:?}"));
        }
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        for (line, words) in [
            ("", "EOF"),
            ("[]", "no object"),
            ("{}", "show, set"),
            (r#"{"show": {}, "set": {}}"#, "show, set"),
            (r#"{"stop": {}}"#, "show, set"),
            (r#"{"join": {"end": "middle"}}"#, "near or far"),
            (r#"{"join": {"ends": "near"}}"#, "near or far"),
            (r#"{"set": {"rte": "1mbit"}}"#, "rte"),
            (r#"{"set": {"rate": "1mbps"}}"#, "rate: allowed"),
            (r#"{"set": {"rate": 5}}"#, "rate: allowed"),
            (r#"{"set": {"way": "left"}}"#, "up or down"),
            (r#"{"set": {"aqm": null}}"#, "text"),
            (r#"{"set": {"params": {"p": 1}}}"#, "text"),
        ] {
            let why = parse(line).unwrap_err().what;
            assert!(why.contains(words), "{line}: {why}");
        }
        assert!(parse(&"[".repeat(LONGEST as usize)).is_err(), "deep nesting ends");
    }

    #[test]
    fn only_the_owner_and_root_may_ask() {
        let [root, one, other] = [0, 1000, 1001].map(Uid::from_raw);
        assert!(may_ask(one, one) && may_ask(root, one));
        assert!(!may_ask(other, one) && !may_ask(one, root));
        // A socket of this process's own.
        let (one, _other) = UnixStream::pair().unwrap();
        assert!(ours("x", one).is_ok());
    }

    #[test]
    fn a_name_is_that_of_a_file() {
        assert_eq!(name("lab-1_b").as_deref(), Ok("lab-1_b"));
        for bad in ["", "../x", "a/b", ".", "a b", &"x".repeat(33)] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_harm(line in ".{0,200}", value in any::<u64>()) {
            _ = parse(&line);
            _ = parse(&format!("{{\"set\": {{\"rate\": \"{line}\", \"delay\": \"{value}s\"}}}}"));
        }
    }
}
