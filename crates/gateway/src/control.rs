//! Questions and changes while a gateway runs, over a socket in the file system: only its user can
//! open it, and nothing on a network leads to it.
//!
//! A connection carries one request and its answer, each a line of JSON:
//!
//! ```text
//! {"show": {}}
//! {"set": {"way": "up", "rate": "20mbit", "delay": "5ms", "buffer": "50kB", "aqm": "sfb",
//!          "params": {"increment": "0.01"}}}
//! {"answer": …} or {"error": "what is wrong", "hint": "what to do"}
//! ```

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use std::{env, thread};

use aqm::units::TextError;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::{Pid, geteuid};
use serde_json::{Map, Value, json};

use crate::forward::DIRECTIONS;
use crate::options::{Change, text};
use crate::trouble::Trouble;

/// What can be asked.
#[derive(Clone, Debug)]
pub enum Request {
    /// Settings, counts and signals.
    Show,
    /// Other links from now on.
    Set(Change),
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
    file: Socket,
}

/// The name of a socket in the file system, which goes when this does.
#[derive(Debug)]
pub(crate) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // Without the right to do so it is left behind, and the next of its name replaces it.
        _ = fs::remove_file(&self.0);
    }
}

impl Control {
    /// Opens the socket of the gateway `name`.
    ///
    /// # Errors
    /// When there is another of that name, or nowhere to put it.
    pub fn bind(name: &str) -> Result<Self, Trouble> {
        let failed = |e: io::Error| Trouble::system("opening the control socket", e);
        let folder = folders().into_iter().find(|f| own(f).is_ok());
        let folder = folder.ok_or_else(|| {
            Trouble::new(
                "no folder for the control socket",
                "set XDG_RUNTIME_DIR to one of your own",
            )
        })?;
        let path = folder.join(format!("{name}.sock"));
        if UnixStream::connect(&path).is_ok() {
            return Err(Trouble::new(
                format!("a gateway called {name} is running"),
                "choose another --name; a shell can be joined: bluewater-gateway join NAME",
            ));
        }
        _ = fs::remove_file(&path);
        // Until its permissions are set, those of the folder keep others out.
        let listener = UnixListener::bind(&path).map_err(failed)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(Self { listener, file: Socket(path) })
    }

    /// Listens in a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(crate) fn serve(self, mut asking: Asking) -> Result<Socket, Trouble> {
        let Self { listener, file } = self;
        let listen = move || {
            for stream in listener.incoming().flatten() {
                // One at a time, and whoever is too slow is cut off.
                _ = attend(&stream, |request| asking.ask(request));
            }
        };
        let thread = thread::Builder::new().name("control".into()).spawn(listen);
        thread.map_err(|e| Trouble::system("starting a thread", e))?;
        Ok(file)
    }
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
    answer: impl FnOnce(Request) -> Result<Value, Trouble>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    let answer = parse(&line).and_then(answer);
    let line = match answer {
        Ok(answer) => json!({"answer": answer}),
        Err(Trouble { what, hint }) => json!({"error": what, "hint": hint}),
    };
    (&*stream).write_all(format!("{line}\n").as_bytes())
}

/// Asks the gateway `name`.
///
/// # Errors
/// When there is none, or it refuses.
pub fn ask(name: &str, request: &Request) -> Result<Value, Trouble> {
    let mut stream = reach(name)?;
    let failed = |e: io::Error| Trouble::system(format!("asking {name}"), e);
    stream.set_read_timeout(Some(2 * PATIENCE)).map_err(failed)?;
    stream.write_all(format!("{}\n", spell(request)).as_bytes()).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(failed)?;
    let mut reply: Value = serde_json::from_str(&line).map_err(|e| failed(e.into()))?;
    match reply["error"].as_str() {
        None => Ok(reply["answer"].take()),
        Some(what) => Err(Trouble::new(what, reply["hint"].as_str().unwrap_or_default())),
    }
}

/// The process of the gateway `name`.
///
/// # Errors
/// When there is none.
pub(crate) fn process(name: &str) -> Result<Pid, Trouble> {
    let peer = getsockopt(&reach(name)?, PeerCredentials);
    peer.map(|peer| Pid::from_raw(peer.pid()))
        .map_err(|e| Trouble::system(format!("asking {name}"), e))
}

/// A connection to the gateway `name`.
fn reach(name: &str) -> Result<UnixStream, Trouble> {
    let file = format!("{name}.sock");
    let connected = folders().iter().find_map(|f| UnixStream::connect(f.join(&file)).ok());
    connected.ok_or_else(|| {
        let names = running();
        let hint = if names.is_empty() {
            "none of yours is running".into()
        } else {
            format!("there are {}", names.join(", "))
        };
        Trouble::new(format!("no gateway called {name} is running"), hint)
    })
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

/// Where sockets are looked for, the best place first.
fn folders() -> Vec<PathBuf> {
    let user = geteuid();
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(|f| PathBuf::from(f).join("bluewater"));
    let system = user.is_root().then(|| PathBuf::from("/run/bluewater"));
    let temporary = env::temp_dir().join(format!("bluewater-{user}"));
    runtime.into_iter().chain(system).chain([temporary]).collect()
}

/// Makes a folder that nobody else can look into, or checks that it is one.
fn own(folder: &PathBuf) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        other => return other,
    }
    let found = fs::symlink_metadata(folder)?;
    let mine = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    if mine { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// The names of this user's gateways that run.
fn running() -> Vec<String> {
    let files = folders().into_iter().filter_map(|f| fs::read_dir(f).ok()).flatten().flatten();
    files
        .filter(|file| UnixStream::connect(file.path()).is_ok())
        .filter_map(|file| file.path().file_stem().map(|name| name.to_string_lossy().into()))
        .collect()
}

/// A request as JSON.
fn spell(request: &Request) -> Value {
    let Request::Set(change) = request else { return json!({"show": {}}) };
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
fn parse(line: &str) -> Result<Request, Trouble> {
    let wrong = |what: &str| Trouble::new(format!("not a request: {what}"), "");
    let line: Value = serde_json::from_str(line).map_err(|e| wrong(&e.to_string()))?;
    let line = line.as_object().ok_or_else(|| wrong("no object"))?;
    let Some((verb, body)) = line.iter().next().filter(|_| line.len() == 1) else {
        return Err(wrong("one of show, set is wanted"));
    };
    let body = body.as_object().ok_or_else(|| wrong("no object"))?;
    match verb.as_str() {
        "show" if body.is_empty() => Ok(Request::Show),
        "set" => body.iter().try_fold(Change::default(), set).map(Request::Set),
        _ => Err(wrong("one of show, set is wanted")),
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
        for request in [Request::Show, Request::Set(change), Request::Set(Change::default())] {
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
