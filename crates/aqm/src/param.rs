//! How an algorithm declares its parameters: once, with default, range, documentation and source.
//!
//! [`params!`](crate::param::params) writes the configuration struct, its defaults, and the table
//! that command line, documentation and JSON Schema are generated from.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;

use crate::time::Duration;
use crate::units::{Rate, Size, TextError};

/// One parameter, as documentation and front ends see it.
#[derive(Clone, Debug)]
pub struct Param {
    /// The name in configurations.
    pub name: &'static str,
    /// What kind of value it takes.
    pub kind: Kind,
    /// The default in canonical text.
    pub default: String,
    /// What is allowed, in words: a range or a list.
    pub allowed: String,
    /// What it does.
    pub doc: &'static str,
    /// Where it comes from: paper and section.
    pub source: &'static str,
    /// Without these it has no effect: of each list one has to hold.
    pub with: Vec<&'static [Condition]>,
    /// What to do where one does not hold, if it is not to be left out.
    pub without: &'static str,
}

/// What another parameter has to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// The other parameter.
    pub name: &'static str,
    /// Its texts.
    pub texts: &'static [&'static str],
    /// Whether it has to be one of them, or none of them.
    pub one_of: bool,
}

impl Condition {
    fn holds(&self, config: &dyn Params) -> bool {
        // An algorithm that shares parameters may lack the other.
        config.get(self.name).is_none_or(|text| self.texts.contains(&&*text) == self.one_of)
    }

    /// As it is written in a configuration.
    fn show(&self) -> String {
        let sign = if self.one_of { "=" } else { "other than" };
        format!("{} {sign} {}", self.name, self.texts.join(" | "))
    }
}

/// The kind of a parameter's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A time, `20ms`.
    Duration,
    /// A rate, `45mbit`.
    Rate,
    /// A size, `200kB`, `100p`, `20%`.
    Size,
    /// A real number without unit.
    Number,
    /// A whole number without unit.
    Integer,
    /// `true` or `false`.
    Flag,
    /// Some values of the DS field, `0x1/0x3`.
    DsField,
    /// One of a list of words.
    Choice(&'static [&'static str]),
}

impl Kind {
    /// The word for it in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Rate => "rate",
            Self::Size => "size",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Flag => "flag",
            Self::DsField => "DS field",
            Self::Choice(_) => "choice",
        }
    }
}

/// A parameter whose text cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamError {
    /// What would have been right.
    pub allowed: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

/// Parameters that are fine alone but not together, or not with this buffer or link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The parameter to change.
    pub key: &'static str,
    /// What it has to satisfy.
    pub allowed: Cow<'static, str>,
}

/// An algorithm's parameters.
pub trait Params {
    /// All parameters, in order.
    fn table() -> Vec<Param>
    where
        Self: Sized;

    /// Sets one parameter from its text.
    ///
    /// # Errors
    /// `None` when there is no such parameter; else what is wrong with the value.
    fn set(&mut self, name: &str, text: &str) -> Result<(), Option<ParamError>>;

    /// The canonical text of one parameter; `None` when there is no such parameter.
    fn get(&self, name: &str) -> Option<String>;
}

/// What is wrong with a parameter that has another value than its default while the others take all
/// effect from it.
pub(crate) fn idle(
    param: &Param,
    config: &dyn Params,
    defaults: &dyn Params,
) -> Option<ParamError> {
    let default = defaults.get(param.name);
    let missing = param.with.iter().find(|any| !any.iter().any(|other| other.holds(config)))?;
    if config.get(param.name) == default {
        return None;
    }
    let with: Vec<String> = missing.iter().map(Condition::show).collect();
    let beside: Vec<String> = missing
        .iter()
        .map(|other| format!("{} = {}", other.name, config.get(other.name).unwrap_or_default()))
        .collect();
    Some(ParamError {
        allowed: format!("{}; others with {}", default.unwrap_or_default(), with.join(" or ")),
        hint: match param.without {
            "" => format!("with {} it would have no effect: leave it out", beside.join(" and ")),
            hint => hint.into(),
        },
    })
}

/// The parameters of both. One that both have is one parameter: it is set in both, and the first
/// documents it.
impl<A: Params, B: Params + Default> Params for (A, B) {
    fn table() -> Vec<Param> {
        include(A::table(), B::table(), &B::default(), None, None)
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), Option<ParamError>> {
        match (self.0.set(name, text), self.1.set(name, text)) {
            (Err(None), other) | (other, Err(None)) => other,
            (first, second) => first.and(second),
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).or_else(|| self.1.get(name))
    }
}

/// A type that a parameter can have.
pub trait Value: Sized + Clone {
    /// The kind that front ends see.
    const KIND: Kind;

    /// Reads it from text.
    ///
    /// # Errors
    /// What would have been right.
    fn read(text: &str) -> Result<Self, TextError>;

    /// Its canonical text.
    fn show(&self) -> String;
}

macro_rules! value {
    ($($type:ty => $kind:expr, $allowed:expr;)*) => {$(
        impl Value for $type {
            const KIND: Kind = $kind;
            fn read(text: &str) -> Result<Self, TextError> {
                from_str(text, $allowed)
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

fn from_str<T: FromStr>(text: &str, allowed: &'static str) -> Result<T, TextError> {
    text.trim().parse().map_err(|_| TextError { allowed, hint: String::new() })
}

value! {
    u32 => Kind::Integer, "a whole number";
    bool => Kind::Flag, "true or false";
}

impl Value for f64 {
    const KIND: Kind = Kind::Number;
    fn read(text: &str) -> Result<Self, TextError> {
        let value: Self = from_str(text, "a number")?;
        if value.is_finite() {
            Ok(value)
        } else {
            Err(TextError { allowed: "a finite number", hint: String::new() })
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! value_with_unit {
    ($($type:ty => $kind:expr;)*) => {$(
        impl Value for $type {
            const KIND: Kind = $kind;
            fn read(text: &str) -> Result<Self, TextError> {
                text.parse()
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

value_with_unit! {
    Duration => Kind::Duration;
    Rate => Kind::Rate;
    Size => Kind::Size;
}

/// An optional parameter; `none` switches it off.
impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    fn read(text: &str) -> Result<Self, TextError> {
        if text.trim() == "none" { Ok(None) } else { T::read(text).map(Some) }
    }
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "none".into(), Value::show)
    }
}

/// Bounds of a parameter, from `low ..= high` of its declaration.
pub trait Bounded<B> {
    /// Whether the value lies inside.
    fn inside(&self, bounds: &B) -> bool;
}

impl<T: PartialOrd> Bounded<core::ops::RangeInclusive<T>> for T {
    fn inside(&self, bounds: &core::ops::RangeInclusive<T>) -> bool {
        bounds.contains(self)
    }
}

impl<T: PartialOrd> Bounded<core::ops::RangeInclusive<T>> for Option<T> {
    fn inside(&self, bounds: &core::ops::RangeInclusive<T>) -> bool {
        self.as_ref().is_none_or(|v| bounds.contains(v))
    }
}

/// Reads a value and checks its bounds. Used by [`params!`](crate::param::params).
#[doc(hidden)]
pub fn read_within<T, U>(
    text: &str,
    bounds: Option<&core::ops::RangeInclusive<U>>,
) -> Result<T, ParamError>
where
    T: Value + Bounded<core::ops::RangeInclusive<U>>,
    U: Value,
{
    let value = read::<T>(text)?;
    match bounds {
        Some(range) if !value.inside(range) => {
            Err(ParamError { allowed: allowed::<T, U>(bounds), hint: String::new() })
        }
        _ => Ok(value),
    }
}

/// Reads a value that has no bounds. Used by [`params!`](crate::param::params).
#[doc(hidden)]
pub fn read<T: Value>(text: &str) -> Result<T, ParamError> {
    T::read(text).map_err(|e| ParamError { allowed: e.allowed.into(), hint: e.hint })
}

/// What is allowed, in words. Used by [`params!`](crate::param::params).
#[doc(hidden)]
pub fn allowed<T: Value, U: Value>(bounds: Option<&core::ops::RangeInclusive<U>>) -> String {
    match (T::KIND, bounds) {
        (Kind::Choice(words), _) => words.join(" | "),
        (Kind::Flag, _) => "true | false".into(),
        (Kind::DsField, _) => "VALUE/MASK".into(),
        (_, Some(range)) => format!("{} … {}", range.start().show(), range.end().show()),
        (kind, None) => format!("any {}", kind.name()),
    }
}

/// A table with the parameters of an included configuration behind its own, which hide those of the
/// same name; a default that is another than the included one's is `by` another source. Used by [`params!`](crate::param::params).
#[doc(hidden)]
pub fn include(
    mut own: Vec<Param>,
    included: Vec<Param>,
    defaults: &dyn Params,
    by: Option<&'static str>,
    with: Option<&'static [Condition]>,
) -> Vec<Param> {
    for mut inner in included {
        if own.iter().all(|p| p.name != inner.name) {
            inner.with.extend(with);
            let default = defaults.get(inner.name).unwrap_or_default();
            if default != inner.default {
                inner.source = by.unwrap_or("ours");
            }
            inner.default = default;
            own.push(inner);
        }
    }
    own
}

/// Declares a configuration struct: for each parameter its documentation, name, type, default,
/// allowed range (left out where the type says it all) and source; and, behind `with`, what others
/// have to be for it to have an effect, and behind `else` what to do where they are not. A last field that begins with
/// `..` includes all parameters of another configuration, at defaults that may be others (`by` says
/// whose; else they are ours); where both have a parameter of one name, the outer one's counts and the inner one's is hidden.
///
/// ```
/// use aqm::param::{Params, params};
/// use aqm::Duration;
///
/// params! {
///     /// Parameters of an example.
///     pub struct ExampleConfig {
///         /// How long to wait.
///         wait: Duration = Duration::from_millis(20), in Duration::ZERO..=Duration::from_secs(1), "Feng01 §2";
///         /// Whether to mark.
///         ecn: bool = true, "RFC 3168";
///         /// From where on.
///         threshold: f64 = 0.1, in 0.0..=1.0, "RFC 8033 §5.1", with ecn = "true";
///     }
/// }
/// let mut config = ExampleConfig::default();
/// config.set("wait", "5ms").unwrap();
/// assert_eq!(config.wait, Duration::from_millis(5));
/// assert_eq!(config.set("wait", "2s").unwrap_err().unwrap().allowed, "0s … 1s");
/// assert!(config.set("weight", "1").unwrap_err().is_none());
///
/// params! {
///     /// Parameters of an example that builds on the other.
///     pub struct LargerConfig {
///         /// How often.
///         count: u32 = 3, "Feng01 §3";
///         ..example: ExampleConfig = ExampleConfig { ecn: false, ..ExampleConfig::default() }, by "Feng01 §3";
///     }
/// }
/// let names: Vec<_> = LargerConfig::table().iter().map(|p| p.name).collect();
/// assert_eq!(names, ["count", "wait", "ecn", "threshold"]);
/// assert_eq!((&*LargerConfig::table()[2].default, LargerConfig::table()[2].source), ("false", "Feng01 §3"));
/// let mut config = LargerConfig::default();
/// config.set("wait", "5ms").unwrap();
/// assert_eq!(config.example.wait, Duration::from_millis(5));
/// ```
#[macro_export]
macro_rules! params {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $config:ident {
            $(
                $(#[doc = $doc:literal])+
                $name:ident : $type:ty = $default:expr, $(in $bounds:expr,)? $source:literal
                    $(, with $($other:ident $is:tt $($text:literal)|+) or +)* $(, else $without:literal)?;
            )*
            $(..$inner:ident : $inner_type:ty = $inner_default:expr
                $(, by $by:literal)?
                $(, with $inner_other:ident = $inner_text:literal)?;)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        $vis struct $config {
            $($(#[doc = $doc])+ pub $name: $type,)*
            $(
                /// The parameters of what this builds on.
                pub $inner: $inner_type,
            )?
        }

        impl Default for $config {
            fn default() -> Self {
                Self { $($name: $default,)* $($inner: $inner_default,)? }
            }
        }

        impl $crate::param::Params for $config {
            fn table() -> $crate::alloc::vec::Vec<$crate::param::Param> {
                let table = $crate::alloc::vec![$($crate::param::Param {
                    name: stringify!($name),
                    kind: <$type as $crate::param::Value>::KIND,
                    default: <$type as $crate::param::Value>::show(&$default),
                    allowed: $crate::params!(@allowed $type $(, $bounds)?),
                    doc: concat!($($doc),+).trim_ascii_start(),
                    source: $source,
                    with: $crate::alloc::vec![$(&[$($crate::param::Condition {
                        name: stringify!($other),
                        texts: &[$($text),+],
                        one_of: $crate::params!(@one_of $is),
                    }),+] as &[_]),*],
                    without: concat!($($without)?),
                }),*];
                $(
                    let with = $crate::params!(@or None $(, Some(&[$crate::param::Condition {
                        name: stringify!($inner_other),
                        texts: &[$inner_text],
                        one_of: true,
                    }] as &[_]))?);
                    let table = $crate::param::include(
                        table,
                        <$inner_type as $crate::param::Params>::table(),
                        &$inner_default,
                        $crate::params!(@or None $(, Some($by))?),
                        with,
                    );
                )?
                table
            }

            fn set(
                &mut self,
                name: &str,
                text: &str,
            ) -> Result<(), Option<$crate::param::ParamError>> {
                let _ = text; // an algorithm may have no parameters
                match name {
                    $(stringify!($name) => {
                        self.$name = $crate::params!(@read text, $type $(, $bounds)?)?;
                        Ok(())
                    })*
                    _ => $crate::params!(@or Err(None) $(, self.$inner.set(name, text))?),
                }
            }

            fn get(&self, name: &str) -> Option<$crate::alloc::string::String> {
                match name {
                    $(stringify!($name) => Some($crate::param::Value::show(&self.$name)),)*
                    _ => $crate::params!(@or None $(, self.$inner.get(name))?),
                }
            }
        }
    };
    (@one_of =) => { true };
    (@one_of !=) => { false };
    (@or $otherwise:expr) => { $otherwise };
    (@or $otherwise:expr, $inner:expr) => { $inner };
    (@allowed $type:ty) => { $crate::param::allowed::<$type, $type>(None) };
    (@allowed $type:ty, $bounds:expr) => { $crate::param::allowed::<$type, _>(Some(&$bounds)) };
    (@read $text:ident, $type:ty) => { $crate::param::read::<$type>($text) };
    (@read $text:ident, $type:ty, $bounds:expr) => {
        $crate::param::read_within::<$type, _>($text, Some(&$bounds))
    };
}
pub use params;

/// Declares an enum whose variants are chosen by word.
#[macro_export]
macro_rules! choice {
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $crate::param::Value for $name {
            const KIND: $crate::param::Kind = $crate::param::Kind::Choice(&[$($word),+]);
            fn read(text: &str) -> Result<Self, $crate::units::TextError> {
                match text.trim() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::units::TextError {
                        allowed: $crate::choice!(@list $($word),+),
                        hint: $crate::alloc::string::String::new(),
                    }),
                }
            }
            fn show(&self) -> $crate::alloc::string::String {
                match self { $(Self::$variant => $word.into(),)+ }
            }
        }
    };
    (@list $first:literal $(, $rest:literal)*) => { concat!($first $(, " | ", $rest)*) };
}
pub use choice;

choice! {
    /// What thresholds and averages count.
    pub enum Mode {
        /// Packets, whatever their length.
        Packets = "packets",
        /// Bytes.
        Bytes = "bytes",
    }
}

impl From<Mode> for crate::units::Measure {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Packets => Self::Packets,
            Mode::Bytes => Self::Bytes,
        }
    }
}
