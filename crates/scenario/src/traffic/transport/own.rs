//! Transports by name, and TCP whose congestion controller is brought along.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::IntoDeserializer;
use serde::de::value::{Error as Unread, StringDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::{Carrier, Tcp, TcpName, Transport, TransportName};
use crate::arrivals::Files;
use crate::error::Complaint;
use crate::own::{self, Class, Role, is_brought, parts, provider, registered, short};
use crate::queue::{pairs, texts, typed};
use crate::traffic::{Place, TrafficSpec};

/// The transport of a group, as files name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransportChoice {
    /// One of Bluewater's.
    Named(TransportName),
    /// TCP with a controller that is brought along: `python:FILE:CLASS` or `rust:NAME`.
    Own(String),
}

impl TransportChoice {
    /// The name in files and results.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name.name(),
            Self::Own(name) => name,
        }
    }

    /// Whose keys it takes.
    pub fn kind(&self) -> Carrier {
        match self {
            Self::Named(name) => name.kind(),
            Self::Own(_) => Carrier::Tcp(TcpName::Own),
        }
    }

    /// A transport that takes the same keys.
    pub(in crate::traffic) fn like(&self) -> &'static str {
        match self {
            Self::Named(name) => name.name(),
            Self::Own(_) => TransportName::Sack.name(),
        }
    }
}

/// What a schema says of the names of controllers that are brought along.
pub(in crate::traffic) fn pattern() -> Value {
    json!({"type": "string", "pattern": "^(python:.+:[A-Za-z_][A-Za-z0-9_]*|rust:.+)$"})
}

impl Serialize for TransportChoice {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for TransportChoice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        if is_brought(&name) {
            return Ok(Self::Own(name));
        }
        let named: StringDeserializer<Unread> = name.into_deserializer();
        TransportName::deserialize(named).map(Self::Named).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for TransportChoice {
    fn schema_name() -> Cow<'static, str> {
        "TransportChoice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let named = generator.subschema_for::<TransportName>();
        json_schema!({"anyOf": [named, pattern()]})
    }
}

impl TrafficSpec {
    /// Reads the file of a controller in Python, keeps its text, and writes out the defaults of its
    /// parameters.
    pub(in crate::traffic) fn bring(
        &mut self,
        at: &Place,
        files: &mut dyn Files,
    ) -> Result<(), Complaint> {
        let Transport::Tcp(tcp) = &mut self.transport else { return Ok(()) };
        let TransportChoice::Own(name) = &mut self.group.transport else {
            return refuse_idle(tcp, at);
        };
        if registered(name).is_some() {
            return match &tcp.code {
                Some(_) => at.refuse("code", "only with transport = \"python:FILE:CLASS\""),
                None => Ok(()),
            };
        }
        let Some((file, class)) = parts(name) else {
            return at.refuse("transport", "python:FILE:CLASS");
        };
        let (file, class) = (file.to_string(), class.to_string());
        let code = match &tcp.code {
            Some(code) => code.clone(),
            None => {
                let read = files.text(&file);
                read.map_err(|e| Complaint::wrong(at.key("transport"), e))?.text
            }
        };
        let read = Class { role: Role::Controller, file: &file, name: &class, code: &code };
        let given = texts(&tcp.params);
        let all = provider(Role::Controller).and_then(|own| own.canonical(read, &pairs(&given)));
        let all = all.map_err(|complaint| within(at, complaint))?;
        tcp.params = all.into_iter().map(|(name, text)| (name, typed(text))).collect();
        tcp.code = Some(code);
        if let Some(short) = short(name) {
            *name = short;
        }
        Ok(())
    }

    /// The class of its controller, if that is one in Python.
    pub fn class(&self) -> Option<Class<'_>> {
        let (Transport::Tcp(tcp), TransportChoice::Own(own)) =
            (&self.transport, &self.group.transport)
        else {
            return None;
        };
        let (file, name) = own::parts(own)?;
        Some(Class { role: Role::Controller, file, name, code: tcp.code.as_deref()? })
    }

    /// The parameters of a controller that is brought along.
    pub fn settings(&self) -> Vec<(&str, String)> {
        match &self.transport {
            Transport::Tcp(tcp) => texts(&tcp.params),
            _ => Vec::new(),
        }
    }
}

/// Refuses keys that belong to controllers that are brought along.
fn refuse_idle(tcp: &Tcp, at: &Place) -> Result<(), Complaint> {
    for (key, given) in [("code", tcp.code.is_some()), ("params", !tcp.params.is_empty())] {
        if given {
            return at.refuse(key, "only with a transport of your own, python:FILE:CLASS");
        }
    }
    Ok(())
}

/// A complaint about the group `at`.
fn within(at: &Place, complaint: Complaint) -> Complaint {
    Complaint { key: at.key(&complaint.key), ..complaint }
}
