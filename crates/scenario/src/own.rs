//! Algorithms that are brought along in the scenario itself, as classes of another language.
//!
//! A queue names one as `python:FILE:CLASS`. The text of the file becomes part of the scenario when it
//! is read: what was run then follows from the canonical scenario alone, on any machine, and another
//! text makes another scenario. Who can run such a text says so once, with [`provide`].

use std::sync::OnceLock;

use aqm::Env;
use aqm::own::Advice;

use crate::error::Complaint;

/// What such a name begins with.
const LANGUAGE: &str = "python:";

/// A class by its file, its name and the text of the file.
#[derive(Clone, Copy, Debug)]
pub struct Class<'a> {
    /// The name of the file, for messages.
    pub file: &'a str,
    /// Its own name.
    pub name: &'a str,
    /// The text of the file.
    pub code: &'a str,
}

/// Who runs classes. The keys of complaints are those of a queue: `aqm`, `params.KEY`.
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

    /// An object of it, at rest.
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

/// Who runs classes here.
pub(crate) fn provider() -> Result<&'static dyn Own, Complaint> {
    PROVIDER.get().copied().ok_or_else(|| {
        Complaint::wrong("aqm", "an algorithm in Python, which only the Python package can run")
            .hint("use the command `bluewater`, or `bluewater.run` in Python")
    })
}

/// The file and the class of a name such as `python:blue.py:Blue`, if it is one.
pub(crate) fn parts(aqm: &str) -> Option<(&str, &str)> {
    aqm.strip_prefix(LANGUAGE)?.rsplit_once(':')
}

/// The name with the file's own name in place of its path, which is another one on each machine.
pub(crate) fn short(aqm: &str) -> Option<String> {
    let (file, class) = parts(aqm)?;
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    Some(format!("{LANGUAGE}{name}:{class}"))
}
