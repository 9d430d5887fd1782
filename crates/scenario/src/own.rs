//! Users' own algorithms and congestion controllers, which the scenario itself contains as classes of another
//! language.
//!
//! A queue names one as `aqm = "python:FILE:CLASS"`, a group of traffic as `transport`. The text of the file
//! becomes part of the scenario when it is read: the canonical scenario alone then determines the run, on any
//! machine, and another text makes another scenario. A host that can run such texts registers once, with
//! [`provide`].

use std::sync::OnceLock;

use aqm::Env;
use aqm::own::Advice;

use crate::arrivals::Files;
use crate::error::Complaint;

/// What such a name begins with.
const LANGUAGE: &str = "python:";
/// What the name of a controller begins with that a program in Rust has registered.
const REGISTERED: &str = "rust:";

/// What a class is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It advises a queue.
    Aqm,
    /// It controls the congestion of a connection.
    Controller,
    /// It sets the rates of shapers.
    Autorate,
}

impl Role {
    /// The key that names such a class.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Aqm => "aqm",
            Self::Controller => "transport",
            Self::Autorate => "algorithm",
        }
    }
}

/// A class by its file, its name and the text of the file.
#[derive(Clone, Copy, Debug)]
pub struct Class<'a> {
    /// What it is for.
    pub role: Role,
    /// The name of the file, for messages.
    pub file: &'a str,
    /// Its own name.
    pub name: &'a str,
    /// The text of the file.
    pub code: &'a str,
}

/// A host that runs classes. The keys in its complaints are those of a queue, a group of traffic or an autorate:
/// [`Role::key`], `params.KEY`.
pub trait Own: Sync {
    /// All parameters with `settings` over the defaults, as canonical text.
    ///
    /// # Errors
    /// A class that cannot be used, and settings that it does not take.
    fn canonical(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, Complaint>;

    /// The class of an autorate algorithm that comes with the host, as `python:FILE:CLASS`, and the text of its
    /// file.
    ///
    /// # Errors
    /// There is none of this name.
    fn built_in(&self, name: &str) -> Result<(String, String), Complaint> {
        let hint = format!("there is no {name:?} here");
        Err(Complaint::new("algorithm", "python:FILE:CLASS").hint(hint))
    }

    /// An object of a class that advises a queue, at rest.
    ///
    /// # Errors
    /// As [`Own::canonical`], and what the class itself says.
    fn build(
        &self,
        class: Class<'_>,
        settings: &[(&str, &str)],
        env: &Env,
    ) -> Result<Box<dyn Advice>, Complaint>;
}

static PROVIDER: OnceLock<&'static dyn Own> = OnceLock::new();

/// From now on classes are run by this; only the first call has an effect.
pub fn provide(own: &'static dyn Own) {
    let _ = PROVIDER.set(own);
}

/// The host that runs classes here.
pub(crate) fn provider(role: Role) -> Result<&'static dyn Own, Complaint> {
    PROVIDER.get().copied().ok_or_else(|| {
        Complaint::wrong(role.key(), "a class in Python, which only the Python package can run")
            .hint("use the command `bluewater`, or `bluewater.run` in Python")
    })
}

/// Whether a transport's name is that of a controller that is brought along.
pub(crate) fn is_brought(transport: &str) -> bool {
    transport.starts_with(LANGUAGE) || transport.starts_with(REGISTERED)
}

/// The name under which a controller is registered, if `transport` is of that kind.
pub fn registered(transport: &str) -> Option<&str> {
    transport.strip_prefix(REGISTERED)
}

/// The file and the class of a name such as `python:blue.py:Blue`, if it is one.
pub fn parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(LANGUAGE)?.rsplit_once(':')
}

/// Reads the file of a class into `code`, unless its text is there, and leaves the file's own name in `name`.
/// Whether `name` is that of a class. `at` is the table, such as `queue[0]`.
///
/// # Errors
/// A file that cannot be read, and a text without a class.
pub(crate) fn resolve(
    role: Role,
    at: &str,
    name: &mut String,
    code: &mut Option<String>,
    files: &mut dyn Files,
) -> Result<bool, Complaint> {
    let key = role.key();
    let Some((file, _)) = parts(name) else {
        if code.is_some() {
            let only = format!("only with an {key} = \"python:FILE:CLASS\"");
            return Err(Complaint::wrong(format!("{at}.code"), only));
        }
        return Ok(false);
    };
    if code.is_none() {
        let read = files.text(file).map_err(|e| Complaint::wrong(format!("{at}.{key}"), e))?;
        *code = Some(read.text);
    }
    if let Some(short) = short(name) {
        *name = short;
    }
    Ok(true)
}

/// The name with the file's own name in place of its path, which is another one on each machine.
pub(crate) fn short(name: &str) -> Option<String> {
    let (file, class) = parts(name)?;
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    Some(format!("{LANGUAGE}{name}:{class}"))
}
