//! Quantities, names and parameters as text: on the command line, and in requests to a gateway.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use aqm::units::TextError;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::direction::DIRECTIONS;

/// The text of a file that has an end: a regular one of at most 64 MiB.
///
/// # Errors
/// When it is another, or cannot be read.
pub(crate) fn text_of(path: &Path) -> io::Result<String> {
    const MOST: u64 = 64 << 20;
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    if File::open(path)?.take(MOST + 1).read_to_string(&mut text)? as u64 > MOST {
        return Err(io::Error::other("more than 64 MiB"));
    }
    Ok(text)
}

/// A quantity with its unit.
///
/// # Errors
/// What is allowed, and a hint.
pub fn text<T: FromStr<Err = TextError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: TextError| {
        let separator = if e.hint.is_empty() { "" } else { "; " };
        format!("allowed: {}{separator}{}", e.allowed, e.hint)
    })
}

/// Reads a whole number of this range.
pub fn whole<T>(
    allowed: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: FromStr + fmt::Display + PartialOrd + Clone + Send + Sync,
{
    move |text| {
        let number = text.parse().ok().filter(|number| allowed.contains(number));
        let (least, most) = (allowed.start(), allowed.end());
        number.ok_or_else(|| format!("allowed: a whole number, {least} … {most}"))
    }
}

/// A quantity, or `none`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OrNone<T>(pub Option<T>);

impl<T: FromStr<Err = TextError>> FromStr for OrNone<T> {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        if text.trim() == NONE {
            return Ok(Self(None));
        }
        text.parse().map(|quantity| Self(Some(quantity)))
    }
}

impl<T: fmt::Display> fmt::Display for OrNone<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(quantity) => quantity.fmt(f),
            None => f.write_str(NONE),
        }
    }
}

const NONE: &str = "none";

/// `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE is wanted")?;
    Ok((name.trim().into(), value.trim().into()))
}

/// One of [`DIRECTIONS`].
pub(crate) fn way<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let way = String::deserialize(from)?;
    if DIRECTIONS.contains(&way.as_str()) {
        return Ok(Some(way));
    }
    Err(D::Error::custom(format_args!("{way:?}: allowed: {}", DIRECTIONS.join(", "))))
}

/// A text, which is there.
pub(crate) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(Some)
}

/// A quantity that may be left out, but is no `null`.
pub(crate) mod quantity {
    use std::fmt::Display;

    use serde::Serializer;

    use super::{Deserialize, Deserializer, Error, FromStr, TextError, text};

    pub(crate) fn serialize<T: Display, S: Serializer>(
        quantity: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(&quantity.as_ref().map(T::to_string).unwrap_or_default())
    }

    pub(crate) fn deserialize<'de, T: FromStr<Err = TextError>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        let given = String::deserialize(from)?;
        let wrong = |why: String| D::Error::custom(format_args!("{given:?}: {why}"));
        text(&given).map(Some).map_err(wrong)
    }
}

/// Parameters, as an object of texts.
pub(crate) mod pairs {
    use std::collections::BTreeMap;

    use serde::Serializer;

    use super::{Deserialize, Deserializer};

    pub(crate) fn serialize<S: Serializer>(
        pairs: &[(String, String)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(pairs.iter().map(|(name, value)| (name, value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(String, String)>, D::Error> {
        BTreeMap::<String, String>::deserialize(from).map(|pairs| pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len((64 << 20) + 1).unwrap();
        for (path, words) in [
            (Path::new("/dev/zero"), "not a regular file"),
            (folder.path(), "not a regular file"),
            (&large, "more than 64 MiB"),
        ] {
            assert_eq!(text_of(path).unwrap_err().to_string(), words);
        }
        File::options().write(true).open(&large).unwrap().set_len(64 << 20).unwrap();
        assert_eq!(text_of(&large).unwrap().len(), 64 << 20);
    }
}
