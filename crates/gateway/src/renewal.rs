//! What a gateway that runs is to write to and to be like anew: on SIGHUP its files are opened again, as they
//! are called by then (whoever rotates logs has renamed them), and its configuration is read again. A link of
//! which it says the same as before stays as it is: a rotation of logs does not undo a `ctl set`. The
//! gateway itself opens no file any more. Another process, which keeps the rights that it was started with,
//! does it and hands over what it has opened; and it guards the ports ([`Guard`]).

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{env, thread};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::control::{Asking, Renewal, Request};
use crate::guard::{Guard, Guarding, Happened, Identity};
use crate::link::Spec;
use crate::output::writer;
use crate::record::{described, links};
use crate::report::setting;
use crate::sys;
use crate::trouble::{Trouble, say};

/// The command line's own name for [`keep`], which users need not know.
pub const KEEP: &str = "bound-keep";

/// What the options ask for now.
#[derive(Debug)]
pub struct Wanted {
    /// What the links are to be like.
    pub specs: [Spec; 2],
    /// Where log and capture are.
    pub files: [Option<PathBuf>; 2],
    /// All else, which needs another start to be otherwise.
    pub rest: String,
    /// What is done about the ports.
    pub guarding: Guarding,
}

/// The process that opens and reads.
#[derive(Debug)]
pub(crate) struct Keeper(UnixStream);

impl Keeper {
    /// Starts it, with the rights and the command line of this process. From now on SIGHUP is for it.
    pub(crate) fn start(ports: [Identity; 2]) -> Result<Self, Trouble> {
        let failed = |e: io::Error| Trouble::system("starting what opens files anew", e);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let mut keeper = Command::new("/proc/self/exe");
        let ports = ports.map(|port| format!("--port={port}"));
        keeper.arg(KEEP).args(ports).arg("--").args(env::args_os().skip(1));
        keeper.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C is not for it.
        keeper.process_group(0);
        keeper.spawn().map_err(failed)?;
        let asked = ours.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(SIGHUP, asked).map_err(failed)?;
        Ok(Self(ours))
    }

    /// Starts a thread that hands over each renewal.
    pub(crate) fn serve(self, mut asking: Asking) -> Result<(), Trouble> {
        let hear = move || {
            while let Ok((lines, mut files)) = heard(&self.0) {
                for said in lines {
                    if said["files"].is_array() {
                        let renewal = renewal(&said, std::mem::take(&mut files));
                        match asking.ask(Request::Renew(Box::new(renewal))) {
                            Ok(told) => {
                                say(format!("SIGHUP: {}", told.as_str().unwrap_or_default()));
                            }
                            Err(trouble) => say(warning(&trouble)),
                        }
                    }
                    if !said["event"].is_null() {
                        _ = asking.ask(Request::Note(Box::new(said["event"].clone())));
                    }
                    let notes = said["notes"].as_array().into_iter().flatten();
                    notes.for_each(|note| say(note.as_str().unwrap_or_default()));
                }
            }
        };
        let started = thread::Builder::new().name("renewal".into()).spawn(hear);
        started.map(drop).map_err(|e| Trouble::system("starting a thread", e))
    }
}

/// Lines, and the open files that come with one of them.
fn heard(stream: &UnixStream) -> io::Result<(Vec<Value>, Vec<OwnedFd>)> {
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

fn renewal(said: &Value, files: Vec<OwnedFd>) -> Renewal {
    let mut files = files.into_iter();
    let mut file = |i: usize| {
        let path = said["files"][i].as_str()?;
        Some(Arc::new((File::from(files.next()?), PathBuf::from(path))))
    };
    let is_new = [0, 1].map(|i| said["new"][i].as_bool().unwrap_or_default());
    Renewal { files: [file(0), file(1)], specs: links(said), is_new }
}

/// What a link is to become by other options, if it is not that already: the random numbers of a link go on,
/// and parameters that are the same in other words are no others.
pub(crate) fn renewed(old: &Spec, new: &Spec) -> Option<Spec> {
    let mut new = Spec { seed: old.seed, header: old.header, ..new.clone() };
    let [before, after] = [old, &new].map(|spec| setting("", spec)["params"].clone());
    if before == after && old.aqm == new.aqm {
        new.params.clone_from(&old.params);
    }
    (new != *old).then_some(new)
}

/// The message that something goes on as it was.
fn warning(Trouble { what, hint }: &Trouble) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") };
    format!("warning: SIGHUP: {what}{hint}")
}

/// Opens files and reads options anew each time that a byte comes on standard input, until that ends; what
/// there is goes back there. Meanwhile it guards the ports. `wanted` reads the options.
pub fn keep(ports: Vec<Identity>, wanted: impl Fn() -> Result<Wanted, Trouble>) {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        _ = signal_hook::flag::register(signal, Arc::default());
    }
    let Ok(stream) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else { return };
    let Ok(first) = wanted() else { return };
    let mut read = first.specs.clone();
    let ports = ports.try_into().ok();
    let mut guard = ports.and_then(|ports| Guard::new(ports, first.guarding).ok());
    loop {
        for Happened { event, note } in guard.as_mut().map(Guard::look).unwrap_or_default() {
            let said = json!({"event": event, "notes": [note]});
            if tell(&stream, &said, &[None, None]).is_err() {
                break;
            }
        }
        if !asked(&stream, guard.as_ref()) {
            continue;
        }
        // Several at a time are one.
        if !matches!((&stream).read(&mut [0; 64]), Ok(1..)) {
            break;
        }
        // One that fails is no reason to leave out another.
        let mut notes = Vec::new();
        let mut said = match wanted() {
            Ok(wanted) => {
                if wanted.rest != first.rest {
                    notes.push(format!("warning: SIGHUP: {ANOTHER_START}"));
                }
                let specs = wanted.specs;
                let is_new =
                    [0, 1].map(|i| specs[i] != Spec { seed: specs[i].seed, ..read[i].clone() });
                let mut said = described(&specs);
                said["new"] = json!(is_new);
                read = specs;
                said
            }
            Err(trouble) => {
                notes.push(warning(&trouble));
                json!({})
            }
        };
        let files = first.files.each_ref().map(|path| {
            let opened = path.as_deref().map(writer::open).transpose();
            opened.unwrap_or_else(|trouble| {
                notes.push(warning(&trouble));
                None
            })
        });
        let opened =
            first.files.iter().zip(&files).map(|(path, file)| file.as_ref().and(path.as_ref()));
        said["files"] = json!(opened.collect::<Vec<_>>());
        said["notes"] = json!(notes);
        if tell(&stream, &said, &files).is_err() {
            break;
        }
    }
    if let Some(guard) = guard {
        guard.end();
    }
}

/// Waits for a request, for a while, or until an interface changes; returns whether a request came.
fn asked(stream: &UnixStream, guard: Option<&Guard>) -> bool {
    let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
    let mut all: Vec<_> =
        [Some(stream.as_fd()), guard.map(Guard::as_fd)].into_iter().flatten().map(watch).collect();
    _ = poll(&mut all, LOOK);
    all[0].any().unwrap_or(false)
}

/// The longest between looks at the ports, ms.
const LOOK: u16 = 500;

const ANOTHER_START: &str = "only the links change while it runs: what else is otherwise in the configuration needs another start";

fn tell(mut stream: &UnixStream, said: &Value, files: &[Option<File>; 2]) -> io::Result<()> {
    let line = format!("{said}\n").into_bytes();
    let shown: Vec<_> = files.iter().flatten().map(|file| file.as_raw_fd()).collect();
    let files = [ControlMessage::ScmRights(&shown)];
    let files = if shown.is_empty() { &[][..] } else { &files };
    let sent =
        sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(&line)], files, MsgFlags::empty(), None)?;
    stream.write_all(&line[sent..])
}
