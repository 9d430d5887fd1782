//! What is wrong before the first packet, and the command that mends it.

use std::fmt;

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
        Self { what: what.into(), hint: hint.into() }
    }

    /// An error of the system while `doing` something.
    pub fn system(doing: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::new(format!("{doing}: {error}"), "")
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\nhint: {}", self.hint) }
    }
}

impl std::error::Error for Trouble {}
