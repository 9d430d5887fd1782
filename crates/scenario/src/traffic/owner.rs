//! Which transport or application has which keys in a table of `[[traffic]]`, and how its part is read.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, Error};

/// A table of a file, or a part of it.
pub(super) type Table<'a> = Spanned<DeTable<'a>>;

/// A transport or application with keys of its own.
pub(super) struct Owner {
    /// The transport or application; `TCP` and `QUIC` for those that share keys.
    pub(super) name: &'static str,
    /// In the file: `transport` or `app`.
    pub(super) choice: &'static str,
    /// The words that choose it.
    pub(super) words: Vec<&'static str>,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    pub(super) keys: Vec<String>,
    pub(super) required: Vec<String>,
}

impl Owner {
    /// A transport that these words choose.
    pub(super) fn transport<T: JsonSchema>(words: Vec<&'static str>) -> Self {
        Self::new::<T>("transport", words)
    }

    pub(super) fn new<T: JsonSchema>(choice: &'static str, words: Vec<&'static str>) -> Self {
        let (keys, required) = keys_of::<T>();
        Self {
            name: match words[..] {
                [word] => word,
                ["quinn", ..] => "QUIC",
                _ => "TCP",
            },
            choice,
            words,
            schema: |generator| generator.subschema_for::<T>(),
            keys,
            required,
        }
    }
}

/// The keys of a table, and which of them have to be there.
pub(crate) fn keys_of<T: JsonSchema>() -> (Vec<String>, Vec<String>) {
    let schema = T::json_schema(&mut SchemaGenerator::default()).to_value();
    let keys = schema["properties"].as_object().map(|all| all.keys().cloned().collect());
    let required = schema["required"]
        .as_array()
        .map(|all| all.iter().filter_map(Value::as_str).map(String::from).collect());
    (keys.unwrap_or_default(), required.unwrap_or_default())
}

/// From a table whose keys are all known.
pub(super) fn read<T: DeserializeOwned>(table: Table<'_>) -> Result<T, Error> {
    T::deserialize(toml::Deserializer::from(table))
}
