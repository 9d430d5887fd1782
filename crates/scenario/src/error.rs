//! What is wrong with a scenario, and where.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::elsewhere;
use crate::text::HINT;

/// A scenario that cannot be run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ScenarioError {
    /// The file, or a name for where the text came from.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// The key, as `queue[0].aqm`.
    pub key: String,
    /// The value as it was written; empty where a key is missing.
    pub value: String,
    /// What is wrong: `not allowed` where the value is.
    pub problem: String,
    /// What is allowed, in words; may be empty.
    pub allowed: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
            if !self.value.is_empty() {
                write!(f, " = {}", self.value)?;
            }
        }
        write!(f, ": {}", self.problem)?;
        if !self.allowed.is_empty() {
            write!(f, "; allowed: {}", self.allowed)?;
        }
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\nhint: {}", self.hint) }
    }
}

impl std::error::Error for ScenarioError {}

/// The problem of a value that is not among those allowed.
const NOT_ALLOWED: &str = "not allowed";

/// The problem of a key that does not exist.
pub(crate) const UNKNOWN_KEY: &str = "unknown key";

/// A complaint about a key, before it is known where the key stands.
#[derive(Clone, Debug)]
pub struct Complaint {
    /// The key, as `queue[0].aqm`.
    pub key: String,
    /// What is wrong: `not allowed` where the value is.
    pub problem: String,
    /// What is allowed, in words; may be empty.
    pub allowed: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Complaint {
    /// About a key, with what is allowed there.
    pub fn new(key: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::wrong(key, NOT_ALLOWED).allowed(allowed)
    }

    /// About a key, with a problem other than a value that is not allowed: a missing key, a file that cannot
    /// be read.
    pub fn wrong(key: impl Into<String>, problem: impl Into<String>) -> Self {
        let (allowed, hint) = (String::new(), String::new());
        let mut problem = problem.into();
        // The system's number of an error says nothing that its words do not.
        if let Some(at) = problem.find(" (os error ") {
            problem.truncate(at);
        }
        Self { key: key.into(), problem, allowed, hint }
    }

    /// This error with what is allowed.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = allowed.into();
        self
    }

    /// This error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// The nearest of `words` to `word`, as a hint.
pub fn did_you_mean<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    if word.len() > 100 {
        return String::new(); // no name is as long, and the comparison would take long, too
    }
    // Capitals and dashes are no mistakes that a name is far off by.
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let word = plain(word);
    words
        .into_iter()
        .map(|w| (strsim::damerau_levenshtein(&word, &plain(w)), w))
        .filter(|&(distance, w)| {
            distance <= (w.len() / 2).max(1) && distance < w.len().max(word.len())
        })
        .min()
        .map_or_else(String::new, |(_, w)| format!("did you mean `{w}`?"))
}

/// A hint for a word that is none of `names`: what other programs call so, or else the nearest.
pub fn meant(word: &str, names: &[&str]) -> String {
    elsewhere::hint(word, names).unwrap_or_else(|| did_you_mean(word, names.iter().copied()))
}

/// A hint for a parameter that is none of `names`.
pub fn meant_parameter(word: &str, names: &[&str]) -> String {
    elsewhere::parameter(word, names).unwrap_or_else(|| did_you_mean(word, names.iter().copied()))
}

/// A hint for `value` where one of several words is `allowed`, such as `packets | bytes`.
pub fn meant_choice(value: &str, allowed: &str) -> String {
    let mut words = allowed.split(OR);
    match words.clone().all(|word| !word.contains(' ')) {
        true => did_you_mean(value, &mut words),
        false => String::new(),
    }
}

/// Stands between the words of a choice.
const OR: &str = " | ";

/// What to say of keys of other files.
fn of_other_file(word: &str) -> Option<&'static str> {
    match word {
        "sweep" | "seeds" | "sizes" | "named" | "claim" | "plot" | "table" | "view" | "reading"
        | "unknown" | "about" => {
            Some("this is a sweep or an experiment: `bluewater sweep FILE` runs it")
        }
        _ => None,
    }
}

/// Serde's message in words of the file: fields are keys. For a value of a wrong type, the value and what is
/// allowed stand elsewhere in the error.
fn in_words(message: &str) -> String {
    let named = |what: &str| message.strip_prefix(what).and_then(|rest| rest.split('`').next());
    if message.starts_with(A_TYPE) || message.starts_with("invalid value: ") {
        return NOT_ALLOWED.into();
    }
    if message.starts_with("unknown field `") {
        return UNKNOWN_KEY.into();
    }
    if message.starts_with("unknown variant `") {
        return NOT_ALLOWED.into();
    }
    match named("missing field `") {
        Some(key) => format!("the key `{key}` is missing"),
        None => message.into(),
    }
}

const A_TYPE: &str = "invalid type: ";
const WHOLE: &str = "a whole number";
const A_TABLE: &str = "a table, as { key = value }";

/// What serde expects, in words of the file.
pub fn in_plain_words(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number, 0 … 255",
        "u16" => "a whole number, 0 … 65535",
        "u32" => "a whole number, 0 … 4294967295",
        "u64" | "u128" | "usize" => "a whole number, 0 … 18446744073709551615",
        "i8" | "i16" | "i32" | "i64" | "isize" => WHOLE,
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" => "text in quotes",
        "struct variant" => A_TABLE,
        "a sequence" => "a list in brackets",
        "a map" => A_TABLE,
        _ if expected.starts_with("struct ") => A_TABLE,
        _ => expected,
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at.min(text.len())].matches('\n').count() + 1
}

fn shown(text: &str, span: Range<usize>) -> String {
    beginning(text.get(span).unwrap_or_default())
}

/// The faulty text for people: the beginning of its first line, without characters that a terminal would act
/// upon.
pub(crate) fn beginning(text: &str) -> String {
    const MOST: usize = 60;
    let first = text.lines().next().unwrap_or_default();
    let plain = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.into() };
    let shown: String = first.chars().take(MOST).map(plain).collect();
    let is_all = first.len() == text.len() && first.chars().nth(MOST).is_none();
    if is_all { shown } else { format!("{shown} …") }
}

/// The innermost key whose key or value covers `span`, with the value's span.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<(String, Range<usize>)> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        if key.span().start <= span.start && span.end <= key.span().end {
            return Some((name.to_string(), value.span()));
        }
        inside(name, value, span)
    })
}

fn inside(
    name: &str,
    value: &Spanned<DeValue<'_>>,
    span: &Range<usize>,
) -> Option<(String, Range<usize>)> {
    let deeper = match value.get_ref() {
        DeValue::Table(table) => {
            key_at(table, span).map(|(key, span)| (format!("{name}.{key}"), span))
        }
        DeValue::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(i, item)| inside(&format!("{name}[{i}]"), item, span)),
        _ => None,
    };
    let covers = value.span().start <= span.start && span.end <= value.span().end;
    deeper.or_else(|| covers.then(|| (name.to_string(), value.span())))
}

/// The span of the value at a key such as `queue[0].params.w_q`; of the nearest parent that exists
/// if it does not.
fn span_of(text: &str, key: &str) -> Option<(Range<usize>, bool)> {
    let root = DeTable::parse(text).ok()?;
    let mut table = Some(root.get_ref());
    let mut found: Option<(Range<usize>, bool)> = None;
    for part in key.split('.') {
        let (name, index) = match part.strip_suffix(']').and_then(|p| p.split_once('[')) {
            Some((name, index)) => (name, index.parse::<usize>().ok()),
            None => (part, None),
        };
        let Some(mut value) =
            table.and_then(|t| t.iter().find(|(k, _)| k.get_ref() == name).map(|(_, v)| v))
        else {
            return found.map(|(span, _)| (span, false));
        };
        if let (Some(i), DeValue::Array(items)) = (index, value.get_ref()) {
            value = items.get(i)?;
        }
        found = Some((value.span(), true));
        table = value.get_ref().as_table();
    }
    found
}

/// The text at a key such as `queue[0].aqm`, without its quotes; empty if there is none.
pub(crate) fn value_of<'a>(text: &'a str, key: &str) -> &'a str {
    match span_of(text, key) {
        Some((span, true)) => text.get(span).unwrap_or_default().trim_matches('"'),
        _ => "",
    }
}

/// The table of the file that stands in `[[double brackets]]` though there is only one.
fn doubled(root: &DeTable<'_>) -> Option<(&'static str, Range<usize>)> {
    ["network", "measure"].into_iter().find_map(|name| {
        let (_, value) = root.iter().find(|(key, _)| key.get_ref() == name)?;
        value.get_ref().as_array().map(|_| (name, value.span()))
    })
}

impl ScenarioError {
    /// From an error of the TOML parser or of deserialization.
    pub(crate) fn from_toml(error: &toml::de::Error, text: &str, file: &str) -> Self {
        let mut new = Self { file: file.into(), ..Self::default() };
        let message = error.message();
        let (problem, allowed, hint) = match message.split_once(HINT) {
            Some((allowed, hint)) => (NOT_ALLOWED.into(), allowed.into(), hint.into()),
            // What serde says of unknown names and of values of another type.
            None => match message.rsplit_once(", expected ") {
                Some((problem, expected)) => {
                    let allowed = expected.strip_prefix("one of ").unwrap_or(expected);
                    let allowed = match in_plain_words(allowed) {
                        // The range of its type, where the type is what is wrong, would hide its own.
                        whole if whole.starts_with(WHOLE) && problem.starts_with(A_TYPE) => WHOLE,
                        allowed => allowed,
                    };
                    (in_words(problem), allowed.into(), String::new())
                }
                None => (in_words(message), String::new(), String::new()),
            },
        };
        (new.problem, new.allowed, new.hint) = (problem, allowed, hint);
        if let Some(span) = error.span() {
            new.line = Some(line_of(text, span.start));
            new.in_syntax(message, text, &span);
            if let Ok(root) = DeTable::parse(text)
                && let Some((key, value)) = key_at(root.get_ref(), &span)
            {
                new.key = key;
                new.value = shown(text, value);
                if message.ends_with("expected a sequence") {
                    new.hint = match message.contains("map") {
                        true => format!("a table of several, even of one: [[{}]]", new.key),
                        false => format!("a list is in brackets, even of one: [{}]", new.value),
                    };
                }
                if new.value == new.key {
                    new.value.clear(); // the head of a table shows nothing
                }
            }
        }
        if let Ok(root) = DeTable::parse(text)
            && let Some((name, span)) = doubled(root.get_ref())
        {
            return Self {
                file: file.into(),
                line: Some(line_of(text, span.start)),
                key: name.into(),
                problem: NOT_ALLOWED.into(),
                allowed: "a table".into(),
                hint: format!("there is one, in single brackets: [{name}]"),
                ..Self::default()
            };
        }
        let unknown = |what: &str| {
            let (word, rest) = message.strip_prefix(what)?.split_once('`')?;
            Some((word, rest.split('`').skip(1).step_by(2).collect::<Vec<_>>()))
        };
        if let Some((word, names)) = unknown("unknown field `") {
            new.hint = of_other_file(word).unwrap_or_default().into();
            new.allowed = names.join(", ");
        } else if let Some((word, names)) = unknown("unknown variant `") {
            let own = names.contains(&"sack").then(|| elsewhere::class(word)).flatten();
            new.hint = own.unwrap_or_else(|| meant(word, &names));
            new.allowed = names.join(", ");
        }
        new
    }

    /// What the parser says of a text that is no TOML, in words of the file.
    fn in_syntax(&mut self, message: &str, text: &str, span: &Range<usize>) {
        let line = text.lines().nth(line_of(text, span.start) - 1).unwrap_or_default();
        if message.contains("duplicate key") {
            self.problem = format!("the key `{}` stands twice", shown(text, span.clone()));
        } else if message.contains("string values must be quoted")
            && let Some((key, value)) = line.split_once('=')
        {
            let value = value.split(['#', ',', '}', ']']).next().unwrap_or_default();
            self.problem = "text without quotes".into();
            self.allowed.clear();
            self.hint = format!("{} = \"{}\"", beginning(key.trim()), beginning(value.trim()));
        } else if message.contains("key with no value") {
            self.problem = "a key without a value".into();
            self.allowed.clear();
            self.hint = format!("{} = …", beginning(line.trim()));
        } else if message.contains("invalid boolean") {
            self.problem = "no value".into();
            self.allowed = "true or false, in small letters".into();
        }
    }

    /// From a complaint about a key of a text that parsed.
    pub fn from_complaint(complaint: Complaint, text: &str, file: &str) -> Self {
        let span = span_of(text, &complaint.key);
        let value = match &span {
            Some((span, true)) => shown(text, span.clone()),
            _ => String::new(),
        };
        let hint = match complaint.hint.is_empty() {
            true => meant_choice(value.trim_matches('"'), &complaint.allowed),
            false => complaint.hint,
        };
        Self {
            file: file.into(),
            line: span.as_ref().map(|(span, _)| line_of(text, span.start)),
            value,
            key: complaint.key,
            problem: complaint.problem,
            allowed: complaint.allowed,
            hint,
        }
    }
}
