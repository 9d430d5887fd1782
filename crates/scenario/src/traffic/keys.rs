//! Whose key is whose: a table of a file is cut into the keys of all groups, of its transport and of
//! its application, and the JSON Schema says the same.

use std::borrow::Cow;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::app::{App, AppName, Exponential, Finite, Pareto, Periodic, Schedule, Web};
use super::owner::{Owner, Table, keys_of, read};
use super::transport::{Transport, TransportName, pattern};
use super::{GroupSpec, Place, TrafficSpec};
use crate::error::{Complaint, UNKNOWN_KEY};

/// Why a group could not be read.
pub(crate) enum Unread {
    /// What the parser says, with its place.
    Toml(Error),
    /// About a key.
    Key(Complaint),
}

impl From<Error> for Unread {
    fn from(error: Error) -> Self {
        Self::Toml(error)
    }
}

impl From<Complaint> for Unread {
    fn from(complaint: Complaint) -> Self {
        Self::Key(complaint)
    }
}

static OWNERS: LazyLock<Vec<Owner>> = LazyLock::new(|| {
    let mut owners = Transport::owners();
    owners.extend([
        Owner::new::<Finite>("app", vec!["finite"]),
        Owner::new::<Pareto>("app", vec!["pareto"]),
        Owner::new::<Exponential>("app", vec!["exponential"]),
        Owner::new::<Periodic>("app", vec!["periodic"]),
        Owner::new::<Schedule>("app", vec!["schedule"]),
        Owner::new::<Web>("app", vec!["web"]),
    ]);
    owners
});

/// The keys of all groups.
static COMMON: LazyLock<Vec<String>> = LazyLock::new(|| keys_of::<GroupSpec>().0);

/// The keys that a group may have, with some transport and application.
pub(crate) fn keys_of_traffic() -> Vec<String> {
    COMMON.iter().chain(OWNERS.iter().flat_map(|owner| &owner.keys)).cloned().collect()
}

/// The groups of a parsed file.
pub(crate) fn read_groups(root: &DeTable<'_>) -> Result<Vec<TrafficSpec>, Unread> {
    let Some(traffic) = root.get("traffic") else { return Ok(Vec::new()) };
    let refused = || Complaint::new("traffic", "tables: [[traffic]]");
    let groups = traffic.get_ref().as_array().ok_or_else(refused)?;
    let read = |(i, group): (usize, &Spanned<DeValue<'_>>)| {
        let table = group.get_ref().as_table().ok_or_else(refused)?;
        read_group(&Place(i), Spanned::new(group.span(), table.clone()))
    };
    groups.iter().enumerate().map(read).collect()
}

/// TCP of a preset sends what fills an Ethernet frame.
const PACKET_OF_PRESETS: &str = "packet = \"1500B\"";

/// [`super::ALL_SENDERS`], which the number of nodes takes the place of.
const FLOWS_OF_PATTERNS: &str = "flows = 4294967295";

/// Cuts a table into the keys of all groups and those of its transport and its application.
fn read_group(at: &Place, mut rest: Table<'_>) -> Result<TrafficSpec, Unread> {
    let given = ["flows", "packet"].map(|key| rest.get_ref().contains_key(key));
    let preset = if rest.get_ref().contains_key("preset") { PACKET_OF_PRESETS } else { "" };
    let named = rest.get_ref().get("transport").and_then(|name| name.get_ref().as_str());
    let pattern = if rest.get_ref().contains_key("pattern") { FLOWS_OF_PATTERNS } else { "" };
    let own = TransportName::ALL.iter().find(|known| Some(known.name()) == named);
    for defaults in [preset, pattern, own.map_or("", |name| name.kind().defaults())] {
        for (key, value) in DeTable::parse(defaults)?.into_inner() {
            rest.get_mut().entry(key).or_insert(value);
        }
    }
    let group: GroupSpec = part(&mut rest, &COMMON)?;
    let (transport, app) = (group.transport.name(), group.app.name());
    let carries = group.transport.kind().carries(group.app);
    carries.map_err(|allowed| Complaint::new(at.key("app"), allowed))?;
    let of = |choice: &str, word: &str| {
        OWNERS.iter().find(|owner| owner.choice == choice && owner.words.contains(&word))
    };
    let owners = [of("transport", group.transport.like()), of("app", app)];
    let mine: Vec<&Owner> = owners.into_iter().flatten().collect();
    let owned = |key: &str| mine.iter().any(|owner| owner.keys.iter().any(|own| own == key));
    let idle_keys = rest.get_ref().keys().filter(|key| !owned(key.get_ref()));
    if let Some(key) = idle_keys.min_by_key(|key| key.span().start) {
        return Err(idle(at, key.get_ref(), &mine, [transport, app]).into());
    }
    for owner in &mine {
        let missing = owner.required.iter().find(|key| !rest.get_ref().contains_key(key.as_str()));
        if let Some(key) = missing {
            return Err(Complaint::wrong(at.key(key), format!("needed by {}", owner.name)).into());
        }
    }
    // No transport and application that go together share a key.
    let mut own = |owner: Option<&'static Owner>| {
        let keys: &[String] = owner.map_or(&[], |owner| &owner.keys);
        cut(&mut rest, keys)
    };
    let (of_transport, of_app) = (own(owners[0]), own(owners[1]));
    let transport = Transport::read(of_transport, &group, given)?;
    let app = match group.app {
        AppName::Infinite => App::Infinite {},
        AppName::Finite => App::Finite(read(of_app)?),
        AppName::Pareto => App::Pareto(read(of_app)?),
        AppName::Exponential => App::Exponential(read(of_app)?),
        AppName::Periodic => App::Periodic(read(of_app)?),
        AppName::Schedule => App::Schedule(read(of_app)?),
        AppName::Web => App::Web(read(of_app)?),
    };
    Ok(TrafficSpec { group, transport, app })
}

/// A key that nobody here has.
fn idle(at: &Place, key: &str, mine: &[&Owner], chosen: [&str; 2]) -> Complaint {
    let whose: Vec<&Owner> =
        OWNERS.iter().filter(|owner| owner.keys.iter().any(|own| own == key)).collect();
    if whose.is_empty() {
        let all = COMMON.iter().chain(mine.iter().flat_map(|owner| &owner.keys));
        let all: Vec<&str> = all.map(String::as_str).collect();
        return Complaint::wrong(at.key(key), UNKNOWN_KEY).allowed(all.join(", "));
    }
    let names: Vec<&str> = whose.iter().map(|owner| owner.name).collect();
    let [transport, app] = chosen;
    Complaint::new(at.key(key), format!("for {} only", names.join(", "))).hint(format!(
        "with transport = \"{transport}\" and app = \"{app}\" it would have no effect: leave it out"
    ))
}

/// Takes the keys named out of a table.
fn cut<'a>(table: &mut Table<'a>, keys: &[String]) -> Table<'a> {
    let span = table.span();
    let mut own = DeTable::new();
    for key in keys {
        if let Some((key, value)) = table.get_mut().remove_entry(key.as_str()) {
            own.insert(key, value);
        }
    }
    Spanned::new(span, own)
}

fn part<T: DeserializeOwned>(table: &mut Table<'_>, keys: &[String]) -> Result<T, Error> {
    read(cut(table, keys))
}

/// Leaves the groups to [`read_groups`], which has their place in the file.
pub(crate) fn later<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<TrafficSpec>, D::Error> {
    IgnoredAny::deserialize(from).map(|_| Vec::new())
}

impl JsonSchema for TrafficSpec {
    fn schema_name() -> Cow<'static, str> {
        "TrafficSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let common = GroupSpec::json_schema(generator).to_value();
        let mut choices = Vec::new();
        for owner in OWNERS.iter() {
            let (choice, words) = (owner.choice, &owner.words);
            let mut ways = vec![json!({"enum": words})];
            if words.contains(&TransportName::Sack.name()) {
                ways.push(pattern());
            }
            for way in ways {
                let chosen = json!({"properties": {choice: way}, "required": [choice]});
                choices.push(json!({"if": chosen, "then": (owner.schema)(generator)}));
            }
        }
        json_schema!({
            "type": "object",
            "description": "A group of flows that are alike.",
            "properties": common["properties"],
            "required": common["required"],
            "allOf": choices,
            "unevaluatedProperties": false,
        })
    }
}
