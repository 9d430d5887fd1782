//! A gateway between two interfaces is replaced by a new process while packets flow. Its program is the one that
//! lies where the old one's did.
//!
//! ```text
//! ctl upgrade -> old: asks the process that keeps the rights (`bound-keep`), which has had the open files since
//!                     the start, and starts the new process with them
//! old -> new: {"queues": …}           the links as they are; the new process opens what else it needs
//! new -> old: {"ready": true}         or {"error": …, "hint": …}: the old one goes on
//! old -> new: {"go": true}            the old one reads no more
//! new -> old: {"reads": true}         from here on the new one reads what comes, at the same sockets
//! old -> new: {"way": 0, "free": ns}  of each way: from then on the old one has nothing more to send,
//!             {"way": 0, "empty": true}  and then nothing on the wire: what the new one sends comes behind it
//!             {"gone": true}
//! ```
//!
//! So packets of the old queues leave by the rules under which they were admitted, at the rate, and none is
//! overtaken. If the new process ends before the old one has, or does not read in time, the old one reads again.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::unistd::geteuid;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::control::place::keeps_names;
use crate::control::{Asking, Request, Step};
use crate::link::Spec;
use crate::messages::{heard, tell};
use crate::record::links;
use crate::trouble::Trouble;

/// The option of `run`, for the new process alone.
pub const OPTION: &str = "--take-over";

/// The version of what the processes tell each other.
const FORMAT: u32 = 1;

/// How long a new process may take until it is ready, while the old one forwards.
const START: Duration = Duration::from_secs(10);

/// How long it may take from then on until it reads, while packets wait.
const READ: Duration = Duration::from_secs(1);

/// What a gateway leaves to the next: open files, each with what it is, and facts.
#[derive(Debug)]
pub(crate) struct Estate {
    facts: Value,
    files: Vec<(String, OwnedFd)>,
}

/// Sends an [`Estate`].
pub(crate) fn leave<'a>(
    stream: &UnixStream,
    facts: &Value,
    files: impl IntoIterator<Item = (&'a str, BorrowedFd<'a>)>,
) -> io::Result<()> {
    let (names, files): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    let mut facts = facts.clone();
    (facts["format"], facts["files"]) = (FORMAT.into(), names.into());
    tell(stream, &facts, &files)
}

impl Estate {
    pub(crate) fn receive(stream: &UnixStream) -> io::Result<Self> {
        let (mut lines, files) = heard(stream)?;
        let facts = lines.pop().unwrap_or_default();
        let names = facts["files"].as_array().into_iter().flatten();
        let names = names.map(|name| name.as_str().unwrap_or_default().to_string());
        Ok(Self { files: names.zip(files).collect(), facts })
    }

    /// The next file of that name.
    pub(crate) fn take(&mut self, name: &str) -> Option<OwnedFd> {
        let at = self.files.iter().position(|(its, _)| its == name)?;
        Some(self.files.remove(at).1)
    }

    /// Takes a file that has to be there.
    pub(crate) fn need(&mut self, name: &str) -> Result<OwnedFd, Trouble> {
        let missing = || Trouble::new(format!("the running gateway left no {name}"), RESTART);
        self.take(name).ok_or_else(missing)
    }

    /// Another file of that name, if there was one.
    pub(crate) fn replace(&mut self, name: &str, file: &File) {
        let old = self.files.iter_mut().find(|(its, _)| its == name);
        if let (Some((_, old)), Ok(new)) = (old, file.try_clone()) {
            *old = new.into();
        }
    }

    pub(crate) fn fact(&self, name: &str) -> &Value {
        &self.facts[name]
    }

    fn files(&self) -> impl Iterator<Item = (&str, BorrowedFd<'_>)> {
        self.files.iter().map(|(name, file)| (&name[..], file.as_fd()))
    }
}

pub(crate) const RESTART: &str = "end it and start it again, as `systemctl restart` does";

/// Starts the `program` that is there now to take over, with the `arguments` of the old one. Returns the way to
/// it.
///
/// # Errors
/// When it is none, or others than this user and root could exchange it.
pub(crate) fn start(
    program: &Path,
    arguments: &[OsString],
    estate: &Estate,
) -> Result<(UnixStream, Child), Trouble> {
    let failed = |e: io::Error| Trouble::system(program.display(), e);
    program.ancestors().try_for_each(trusted)?;
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut new = Command::new(program);
    let (command, options) = arguments.split_at(1.min(arguments.len()));
    new.args(command).arg(OPTION).args(options.iter().filter(|&it| it != OPTION));
    let stderr = estate.files().find(|(name, _)| *name == "stderr");
    let stderr = stderr.and_then(|(_, file)| file.try_clone_to_owned().ok());
    new.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
    new.stderr(stderr.map_or_else(Stdio::null, Stdio::from));
    // The signs of life are asked of the old one by its number.
    new.process_group(0).env_remove("WATCHDOG_PID");
    let mut child = new.spawn().map_err(failed)?;
    if let Err(e) = leave(&ours, &estate.facts, estate.files()) {
        _ = child.kill();
        return Err(failed(e));
    }
    Ok((ours, child))
}

/// Refuses a program that others could exchange, or a folder on the way to it: it would get this user's rights.
fn trusted(part: &Path) -> Result<(), Trouble> {
    let about = part.symlink_metadata().map_err(|e| Trouble::system(part.display(), e))?;
    if keeps_names(&about, geteuid()) && !about.is_symlink() {
        return Ok(());
    }
    Err(Trouble::new(
        format!(
            "{}: it belongs to user {} and has mode {:o}: whoever may write there would get the rights of \
             user {}",
            part.display(),
            about.uid(),
            about.mode() & 0o7777,
            geteuid()
        ),
        "install the program where only root may write, and start the gateway from there",
    ))
}

/// The old one leads the new one, which `said` describes, and asks for each step; until either ends.
pub(crate) fn lead(said: &Value, file: Option<OwnedFd>, asking: &mut Asking) {
    let led = match file {
        Some(stream) => led(&stream.into(), said["pid"].as_u64().unwrap_or_default(), asking),
        None => Err(trouble(said)),
    };
    if let Err(trouble) = led {
        asking.tell(Request::Handover(Step::Failed(trouble)));
    }
}

/// The old one has lost the process that starts the new one.
pub(crate) fn ended(asking: &mut Asking) {
    let trouble = Trouble::new("the helper process bound-keep has ended", RESTART);
    asking.tell(Request::Handover(Step::Failed(trouble)));
}

fn led(mut stream: &UnixStream, pid: u64, asking: &mut Asking) -> Result<(), Trouble> {
    let failed = |e: io::Error| Trouble::system("the new process", e);
    let links = asking.ask(Request::Handover(Step::Describe))?;
    stream.set_read_timeout(Some(START)).map_err(failed)?;
    stream.set_write_timeout(Some(START)).map_err(failed)?;
    // It may have ended, which the answer tells.
    _ = writeln!(stream, "{links}");
    let mut reader = BufReader::new(stream);
    let mut answer = |late: String| {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                Err(Trouble::new(format!("the new process {late}"), ""))
            }
            Err(e) if e.kind() != io::ErrorKind::ConnectionReset => Err(failed(e)),
            _ => Ok(serde_json::from_str::<Value>(&line).unwrap_or_default()),
        }
    };
    let first = answer(format!("was not ready within {} s", START.as_secs()))?;
    if first["ready"] != true {
        return Err(trouble(&first));
    }
    let again = Arc::new(stream.try_clone().map_err(failed)?);
    stream.set_read_timeout(Some(READ)).map_err(failed)?;
    asking.ask(Request::Handover(Step::Ready(again, pid)))?;
    let reads = answer(format!("did not read within {} s", READ.as_secs()))?["reads"] == true;
    if reads {
        stream.set_read_timeout(None).map_err(failed)?;
        asking.tell(Request::Handover(Step::Reads));
        _ = reader.read_line(&mut String::new());
    }
    let lost = if reads { ", with what it had queued" } else { " before it read a packet" };
    Err(Trouble::new(format!("the new process {pid} has ended{lost}"), ""))
}

/// Why it was refused.
fn trouble(said: &Value) -> Trouble {
    let word = |key: &str| said[key].as_str().map(String::from);
    let silent = || "the new program ended before it was ready".into();
    let hint =
        word("hint").unwrap_or_else(|| "its messages are where those of the gateway are".into());
    Trouble { what: word("error").unwrap_or_else(silent), hint }
}

/// As [`trouble`] reads it.
pub(crate) fn told(Trouble { what, hint }: &Trouble) -> Value {
    json!({"error": what, "hint": hint})
}

/// The gateway that this process takes over from.
#[derive(Debug)]
pub(crate) struct Predecessor {
    pub(crate) stream: UnixStream,
    pub(crate) estate: Estate,
    pub(crate) specs: [Spec; 2],
    pub(crate) clock: Clock,
    pub(crate) pid: u64,
}

impl Predecessor {
    /// Hears of it on standard input.
    ///
    /// # Errors
    /// When there is none, or it tells things that are not known here.
    pub(crate) fn find() -> Result<Self, Trouble> {
        let unasked =
            |_| Trouble::new(format!("{OPTION} is for `bluewater-gateway ctl NAME upgrade`"), "");
        let stream = io::stdin().as_fd().try_clone_to_owned().map_err(unasked)?.into();
        let estate = Estate::receive(&stream).map_err(unasked)?;
        let (lines, _) = heard(&stream).map_err(unasked)?;
        let number = |value: &Value| value.as_u64();
        let clock = &estate.facts["clock"];
        let known = || {
            let specs = links(lines.first()?).ok()?;
            let clock = Clock::of([number(&clock[0])?, number(&clock[1])?])?;
            let pid = number(&estate.facts["pid"])?;
            (estate.facts["format"] == FORMAT).then_some((specs, clock, pid))
        };
        let found = known();
        let (specs, clock, pid) = found.ok_or_else(|| {
            Trouble::new(
                "the running gateway hands over in a way that this version does not know",
                RESTART,
            )
        })?;
        Ok(Self { stream, estate, specs, clock, pid })
    }

    /// Everything is open.
    ///
    /// # Errors
    /// When it has ended meanwhile.
    pub(crate) fn ready(&self) -> Result<(), Trouble> {
        let failed = |e| Trouble::system("taking over", e);
        writeln!(&self.stream, "{}", json!({"ready": true})).map_err(failed)
    }

    /// This process cannot take over.
    pub(crate) fn refuse(&self, trouble: &Trouble) {
        _ = writeln!(&self.stream, "{}", told(trouble));
    }
}

/// Starts a thread that passes on what the old one says.
pub(crate) fn follow(stream: Arc<UnixStream>, mut asking: Asking) -> Result<(), Trouble> {
    let listen = move || {
        let lines = BufReader::new(&*stream).lines().map_while(Result::ok);
        let said = lines.map_while(|line| serde_json::from_str(&line).ok());
        for said in said.chain([Value::Null]) {
            asking.tell(Request::Handover(Step::Said(said)));
        }
    };
    let started = thread::Builder::new().name("predecessor".into()).spawn(listen);
    started.map(drop).map_err(|e| Trouble::system("starting a thread", e))
}
