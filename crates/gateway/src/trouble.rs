//! Errors before the first packet, each with the command that helps, and all other messages to people.

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use scenario::error::ScenarioError;

const ERROR: &str = "error: ";

/// Why nothing was started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// What is wrong.
    pub what: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Trouble {
    /// Something that the user can mend.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: without_number(what.into()), hint: hint.into() }
    }

    /// An error of the system while `doing` something.
    pub fn system(doing: impl fmt::Display, error: impl fmt::Display) -> Self {
        let error = error.to_string();
        // Whatever was to be opened.
        let full = ["EMFILE", "ENFILE", "os error 24)", "os error 23)"];
        let full = full.iter().any(|word| error.contains(word));
        let hint = if full { "allow more open files: ulimit -n 512" } else { "" };
        Self::new(format!("{doing}: {error}"), hint)
    }

    /// With a hint, if it has none of its own.
    #[must_use]
    pub(crate) fn or_hint(mut self, hint: &str) -> Self {
        if self.hint.is_empty() {
            self.hint = hint.into();
        }
        self
    }

    /// What the options of a file make wrong, if one was given.
    #[must_use]
    pub fn by(self, file: Option<&Path>) -> Self {
        let Some(file) = file else { return self };
        Self { what: format!("with {}: {}", file.display(), self.what), ..self }
    }

    /// All that is wrong, as one.
    pub fn all(troubles: Vec<Self>) -> Option<Self> {
        let both = |one: Self, Self { what, hint }: Self| {
            let told = one.to_string();
            let told = told.strip_prefix(ERROR).unwrap_or(&told);
            Self { what: format!("{told}\n{ERROR}{what}"), hint }
        };
        troubles.into_iter().reduce(both)
    }
}

/// Without the system's number of an error, which says nothing that its words do not.
fn without_number(mut text: String) -> String {
    while let Some(at) = text.find(" (os error ") {
        let Some(end) = text[at..].find(')') else { break };
        text.replace_range(at..=at + end, "");
    }
    text
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ERROR}{}", self.what)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\nhint: {}", self.hint) }
    }
}

impl std::error::Error for Trouble {}

impl From<ScenarioError> for Trouble {
    fn from(mut error: ScenarioError) -> Self {
        let hint = std::mem::take(&mut error.hint);
        Self::new(error.to_string(), hint)
    }
}

/// Prints a message on stderr once [`speak`] has begun. Does not wait until it is out; if stderr takes no
/// more, the message is dropped.
pub fn say(text: impl Into<String>) {
    _ = VOICE.get_or_init(Voice::new).words.try_send(Words::Text(text.into()));
}

/// Begins to tell, in a thread with the rights of the one that calls this.
pub(crate) fn speak() {
    let mut listener = VOICE.get_or_init(Voice::new).listener.lock();
    let words = listener.as_mut().ok().and_then(|listener| listener.take());
    let Some(words) = words else { return };
    let tell = move || {
        for words in words {
            match words {
                Words::Text(text) => _ = writeln!(io::stderr(), "{}", text.trim_end()),
                Words::End(told) => _ = told.send(()),
            }
        }
    };
    _ = thread::Builder::new().name("voice".into()).spawn(tell);
}

/// Waits a while until all messages are out.
pub fn said() {
    speak();
    let (tell, told) = channel();
    if VOICE.get_or_init(Voice::new).words.try_send(Words::End(tell)).is_ok() {
        _ = told.recv_timeout(PATIENCE);
    }
}

/// How long stderr may take to take the last words.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many messages may wait.
const ROOM: usize = 64;

enum Words {
    Text(String),
    End(Sender<()>),
}

struct Voice {
    words: SyncSender<Words>,
    /// Until it has begun.
    listener: Mutex<Option<Receiver<Words>>>,
}

impl Voice {
    fn new() -> Self {
        let (words, listener) = sync_channel(ROOM);
        Self { words, listener: Mutex::new(Some(listener)) }
    }
}

static VOICE: OnceLock<Voice> = OnceLock::new();

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    #[test]
    fn too_few_files_are_named_whatever_was_to_be_opened() {
        for error in [Errno::EMFILE, Errno::ENFILE] {
            let system = io::Error::from(error);
            let both = [Trouble::system("x", error), Trouble::system("x", system)];
            assert!(both.iter().all(|trouble| trouble.hint.contains("ulimit -n")), "{both:?}");
        }
        let refused = Trouble::system("x", io::Error::from(Errno::EPERM));
        assert_eq!(refused, Trouble::new("x: Operation not permitted", ""));
    }
}
