//! What can be asked, as a line of JSON.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use scenario::error::in_plain_words;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::link::Spec;
use crate::namespace::ends::End;
use crate::options::Change;
use crate::trouble::Trouble;

/// How long the other side may take for its part.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// What can be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Settings, counts and signals.
    Show {
        /// Whether the counts of all classes are wanted, and not only of those that sent most.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        classes: bool,
    },
    /// All that the live page shows; the socket does not take it.
    #[serde(skip)]
    Watch {},
    /// What there is after SIGHUP: not asked for by the socket.
    #[serde(skip)]
    Renew(Box<Renewal>),
    /// Something happened at a port, for the log: the socket does not take it.
    #[serde(skip)]
    Note(Box<Value>),
    /// Other links from now on.
    Set(Box<Change>),
    /// The way into an end of the link.
    Join {
        /// Which one.
        end: End,
    },
    /// A new process takes over.
    Upgrade {},
    /// A step of that: the socket does not take it.
    #[serde(skip)]
    Handover(Step),
}

/// What the thread that forwards has to do for a handover.
#[derive(Clone, Debug)]
pub enum Step {
    /// The old one: tell the links as they are.
    Describe,
    /// The old one: the new one is ready, with this process number.
    Ready(Arc<UnixStream>, u64),
    /// The old one: the new one reads.
    Reads,
    /// The old one: nothing comes of it.
    Failed(Trouble),
    /// The new one: the old one says this; nothing if it has ended.
    Said(Value),
}

/// What a gateway is to write to and to be like after SIGHUP.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The log and the capture, if they are written.
    pub(crate) files: [Option<Arc<(File, PathBuf)>>; 2],
    /// The links' new specifications, if they could be read.
    pub(crate) specs: Option<[Spec; 2]>,
    /// The file that says so, if it is one.
    pub(crate) config: Option<PathBuf>,
    /// What of them is otherwise than when they were read before.
    pub(crate) new: [Differs; 2],
}

/// How what a link is to be differs from what it was to be before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) enum Differs {
    /// In nothing.
    #[default]
    Not,
    /// In its classes alone.
    Classes,
    /// In something else.
    Options,
}

/// A request from JSON.
///
/// # Errors
/// The key, the value, and what is allowed.
pub fn parse(line: &str) -> Result<Request, Trouble> {
    let hint = r#"{"show": {}}, {"set": {"rate": "20mbit"}}, {"join": {"end": "near"}} or {"upgrade": {}}"#;
    read(line).map_err(|what| Trouble::new(format!("not a request: {what}"), hint))
}

/// What is in a `set` alone.
///
/// # Errors
/// The key, the value, and what is allowed.
pub fn change(text: &str) -> Result<Change, Trouble> {
    read(text).map_err(|what| Trouble::new(format!("not a change: {what}"), ""))
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut reader)
        .map_err(|e| in_words(&e.path().to_string(), &e.inner().to_string()))?;
    reader.end().map_err(|e| in_words("", &e.to_string()))?;
    Ok(read)
}

/// What is wrong at `path`, in words: the key, the value, and what is allowed.
fn in_words(path: &str, message: &str) -> String {
    let message = message.split(" at line 1 column").next().unwrap_or_default();
    let message = message.trim_end_matches(", there are no fields");
    let (problem, allowed) = message.rsplit_once(", expected ").unwrap_or((message, ""));
    let problem = [
        ("unknown field ", "unknown key "),
        ("duplicate field ", "given twice: "),
        ("unknown variant ", "not allowed: "),
        ("invalid type: ", "not allowed: "),
        ("EOF while parsing", "it ends within"),
        ("trailing characters", "more than one request"),
        ("expected value", "no request in JSON"),
        ("expected ident", "no request in JSON"),
    ]
    .iter()
    .find_map(|(theirs, ours)| Some(format!("{ours}{}", problem.strip_prefix(theirs)?)))
    .unwrap_or_else(|| problem.into());
    let problem = problem.replace("unit variant", "a bare word");
    let kinds = ["integer ", "string ", "boolean ", "floating point "];
    let problem = kinds.iter().fold(problem, |told, kind| told.replace(&format!(": {kind}"), ": "));
    let place = if matches!(path, "." | "") { String::new() } else { format!("{path}: ") };
    let allowed = allowed.strip_prefix("one of ").unwrap_or(allowed).replace('`', "");
    match in_plain_words(&allowed) {
        "" => format!("{place}{problem}"),
        allowed => format!("{place}{problem}; allowed: {allowed}"),
    }
}
