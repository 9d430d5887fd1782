//! Values of parameters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A parameter's value: a text with its unit, a number, or a flag.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "text in quotes, a number, true or false\u{1f}")]
pub enum Parameter {
    /// `true`, `false`.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A real number.
    Number(f64),
    /// Text: a quantity with unit, or a word.
    Text(String),
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(v) => write!(f, "{v}"),
            Self::Integer(v) => write!(f, "{v}"),
            Self::Number(v) => write!(f, "{v}"),
            Self::Text(v) => f.write_str(v),
        }
    }
}
