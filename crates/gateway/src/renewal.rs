//! What a gateway that runs is to write to and to be like anew: on SIGHUP its files are opened again, as they
//! are called by then (whoever rotates logs has renamed them), and its configuration is read again. A link of
//! which it says the same as before stays as it is: a rotation of logs does not undo a `ctl set`. The
//! gateway itself opens no file any more. Another process, which keeps the rights that it was started with,
//! does it and hands over what it has opened; it guards the ports ([`Guard`]); and it starts the process that takes
//! over ([`crate::upgrade`]).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use nix::poll::{PollFd, PollFlags, poll};
use serde::Deserialize;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::control::{Asking, Differs, Renewal, Request};
use crate::guard::{Guard, Guarding, Happened, Identity};
use crate::link::Spec;
use crate::messages::{heard, tell};
use crate::output::writer;
use crate::record::{described, links};
use crate::report::setting;
use crate::trouble::{Trouble, say};
use crate::upgrade::{self, Estate};

/// The command line's own name for [`keep`], which users need not know.
pub const KEEP: &str = "bound-keep";

/// What the options ask for now.
#[derive(Debug)]
pub struct Wanted {
    /// What the links are to be like.
    pub specs: [Spec; 2],
    /// The file that says so, if it is one.
    pub config: Option<PathBuf>,
    /// Where log and capture are.
    pub files: [Option<PathBuf>; 2],
    /// All else, which needs another start to be otherwise.
    pub rest: String,
    /// What is done about the ports.
    pub guarding: Guarding,
}

/// The process that opens and reads, and the way to it.
#[derive(Debug)]
pub(crate) struct Keeper(UnixStream, Child);

/// What else the gateway asks of it, each by a byte.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Wish {
    /// To start a new process that takes over.
    Upgrade = b'u',
    /// To end that again.
    Kill = b'k',
    /// To leave the ports to the other process of its kind.
    Leave = b'l',
    /// To know that the links are not what was read last: they could not be.
    Refused = b'r',
}

impl Keeper {
    /// Starts it, with the rights and the command line of this process, and with the `facts` and open `files` for
    /// one that takes over. From now on SIGHUP is for it.
    pub(crate) fn start<'a>(
        ports: [Identity; 2],
        facts: &Value,
        files: impl IntoIterator<Item = (&'a str, BorrowedFd<'a>)>,
    ) -> Result<Self, Trouble> {
        let failed = |e: io::Error| Trouble::system("starting what opens files anew", e);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let mut keeper = Command::new("/proc/self/exe");
        let ports = ports.map(|port| format!("--port={port}"));
        keeper.arg(KEEP).args(ports).arg("--").args(env::args_os().skip(1));
        keeper.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C is not for it.
        keeper.process_group(0);
        let child = keeper.spawn().map_err(failed)?;
        // It has the other end, which is to close if it ends.
        drop(keeper);
        upgrade::leave(&ours, facts, files).map_err(failed)?;
        let asked = ours.try_clone().map_err(failed)?;
        signal_hook::low_level::pipe::register(SIGHUP, asked).map_err(failed)?;
        // Until it has read where the program and the options lie, which users may change from then on. It ends
        // where they cannot be read again.
        _ = (&ours).read(&mut [0]);
        Ok(Self(ours, child))
    }

    /// Starts a thread that hands over each renewal, and leads a process that takes over.
    pub(crate) fn serve(&self, mut asking: Asking) -> Result<(), Trouble> {
        let failed = |e| Trouble::system("starting a thread", e);
        let stream = self.0.try_clone().map_err(failed)?;
        let hear = move || {
            let refused = |trouble: &Trouble| {
                say(warning(trouble));
                _ = (&stream).write_all(&[Wish::Refused as u8]);
            };
            while let Ok((lines, mut files)) = heard(&stream) {
                for said in lines {
                    let notes = said["notes"].as_array().into_iter().flatten();
                    notes.for_each(|note| say(note.as_str().unwrap_or_default()));
                    if said["files"].is_array() {
                        let renewal = renewal(&said, std::mem::take(&mut files));
                        match asking.ask(Request::Renew(Box::new(renewal))) {
                            Ok(told) => {
                                say(format!("SIGHUP: {}", told.as_str().unwrap_or_default()));
                            }
                            Err(trouble) => refused(&trouble),
                        }
                    }
                    if !said["upgrade"].is_null() {
                        upgrade::lead(&said["upgrade"], files.pop(), &mut asking);
                    }
                    if !said["event"].is_null() {
                        _ = asking.ask(Request::Note(Box::new(said["event"].clone())));
                    }
                }
            }
            upgrade::ended(&mut asking);
        };
        let started = thread::Builder::new().name("renewal".into()).spawn(hear);
        started.map(drop).map_err(failed)
    }

    /// Asks for something; whether it is there to hear that.
    pub(crate) fn wish(&self, wish: Wish) -> bool {
        (&self.0).write_all(&[wish as u8]).is_ok()
    }

    /// Waits a while until it has ended: the next gateway may need what it holds.
    pub(crate) fn end(mut self) {
        _ = self.0.shutdown(Shutdown::Both);
        for _ in 0..200 {
            if !matches!(self.1.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn renewal(said: &Value, files: Vec<OwnedFd>) -> Renewal {
    let mut files = files.into_iter();
    let mut file = |i: usize| {
        let path = said["files"][i].as_str()?;
        Some(Arc::new((File::from(files.next()?), PathBuf::from(path))))
    };
    let new = [0, 1].map(|i| Differs::deserialize(&said["new"][i]).unwrap_or_default());
    let config = said["config"].as_str().map(PathBuf::from);
    Renewal { files: [file(0), file(1)], specs: links(said).ok(), config, new }
}

/// What a link is to become by other options, if it is not that already: the random numbers of a link go on,
/// and parameters that are the same in other words are no others.
pub(crate) fn renewed(old: &Spec, new: &Spec) -> Option<Spec> {
    let mut new = Spec { seed: old.seed, header: old.header, named: old.named, ..new.clone() };
    let [before, after] = [old, &new].map(|spec| setting("", spec)["params"].clone());
    if before == after && old.aqm == new.aqm {
        new.params.clone_from(&old.params);
    }
    (new != *old).then_some(new)
}

/// What of a link is to be otherwise; each reading may draw another seed.
fn differs(new: &Spec, old: &Spec) -> Differs {
    let old = Spec { seed: new.seed, ..old.clone() };
    if *new == old {
        Differs::Not
    } else if *new == (Spec { classes: new.classes.clone(), ..old }) {
        Differs::Classes
    } else {
        Differs::Options
    }
}

/// The message that something goes on as it was.
fn warning(Trouble { what, hint }: &Trouble) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") };
    format!("warning: SIGHUP: {what}{hint}")
}

/// Opens files and reads options anew each time that a byte comes on standard input, until that ends; what
/// there is goes back there. Meanwhile it guards the ports. `wanted` reads the options.
pub fn keep(
    ports: Vec<Identity>,
    arguments: &[OsString],
    wanted: impl Fn() -> Result<Wanted, Trouble>,
) {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        _ = signal_hook::flag::register(signal, Arc::default());
    }
    let Ok(stream) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else { return };
    let (Ok(mut estate), Ok(program)) = (Estate::receive(&stream), env::current_exe()) else {
        return;
    };
    let mut new: Option<Child> = None;
    let Ok(first) = wanted() else { return };
    _ = (&stream).write_all(b"\n");
    let mut read = first.specs.clone();
    let mut before = read.clone();
    let ports = ports.try_into().ok();
    let mut guard = ports.and_then(|ports| Guard::new(ports, first.guarding).ok());
    loop {
        for Happened { event, note } in guard.as_mut().map(Guard::look).unwrap_or_default() {
            let said = json!({"event": event, "notes": [note]});
            if tell(&stream, &said, &[]).is_err() {
                break;
            }
        }
        // Nothing is left of one that has ended.
        new.as_mut().map(Child::try_wait);
        if !asked(&stream, guard.as_ref()) {
            continue;
        }
        // Several at a time are one.
        let mut bytes = [0; 64];
        let Ok(count @ 1..) = (&stream).read(&mut bytes) else { break };
        let wishes = |wish: Wish| bytes[..count].contains(&(wish as u8));
        if wishes(Wish::Leave) {
            return;
        }
        if wishes(Wish::Refused) {
            read.clone_from(&before);
        }
        if wishes(Wish::Kill) {
            new.as_mut().map(Child::kill);
        }
        if wishes(Wish::Upgrade) {
            let same = wanted().and_then(|wanted| {
                if wanted.rest != first.rest {
                    Err(Trouble::new(ANOTHER_START, upgrade::RESTART))
                } else if [0, 1]
                    .iter()
                    .any(|&i| differs(&wanted.specs[i], &read[i]) != Differs::Not)
                {
                    Err(Trouble::new(
                        "the file has changed, and the links have not",
                        "SIGHUP first",
                    ))
                } else {
                    Ok(())
                }
            });
            let started = same.and_then(|()| upgrade::start(&program, arguments, &estate));
            let told = match &started {
                Ok((way, child)) => {
                    tell(&stream, &json!({"upgrade": {"pid": child.id()}}), &[way.as_fd()])
                }
                Err(trouble) => tell(&stream, &json!({"upgrade": upgrade::told(trouble)}), &[]),
            };
            if told.is_err() {
                break;
            }
            new = started.ok().map(|(_, child)| child);
        }
        // SIGHUP has another byte.
        if bytes[..count].iter().all(u8::is_ascii_lowercase) {
            continue;
        }
        // One that fails is no reason to leave out another.
        let mut notes = Vec::new();
        let mut said = match wanted() {
            Ok(wanted) => {
                if wanted.rest != first.rest {
                    notes.push(format!("warning: SIGHUP: {ANOTHER_START}"));
                }
                let specs = wanted.specs;
                let mut said = described(&specs);
                let new = [0, 1].map(|i| differs(&specs[i], &read[i]));
                said["new"] = json!(new);
                // Errors name their file.
                for (link, spec) in said["queues"].as_array_mut().into_iter().flatten().zip(&specs)
                {
                    if let Some(classes) = &spec.classes {
                        let [file, text] = classes.tree.source();
                        (link["classes_file"], link["tree"]) = (file.into(), text.into());
                    }
                }
                let last = std::mem::replace(&mut read, specs);
                if new != [Differs::Not; 2] {
                    before = last;
                }
                said["config"] = json!(wanted.config);
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
        files[0].iter().for_each(|log| estate.replace("log", log));
        said["files"] = json!(opened.collect::<Vec<_>>());
        said["notes"] = json!(notes);
        let files: Vec<_> = files.iter().flatten().map(AsFd::as_fd).collect();
        if tell(&stream, &said, &files).is_err() {
            break;
        }
    }
    drop(estate);
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
