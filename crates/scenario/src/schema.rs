//! The JSON Schema of scenario files.

use aqm::CATALOG;
use aqm::any::{FILTERS, PRESET, SHAPER};
use aqm::param::Param;

use crate::Scenario;

impl Scenario {
    /// The JSON Schema of scenario files, for editors.
    pub fn json_schema() -> String {
        let mut schema = schemars::schema_for!(Self).to_value();
        let aqms: Vec<_> = CATALOG.iter().map(|e| e.name).collect();
        let filters: Vec<_> = FILTERS.iter().map(|about| about.name).collect();
        let filter_parameters: serde_json::Map<_, _> =
            FILTERS.iter().flat_map(|about| described(&(about.parameters)())).collect();
        let queue = &mut schema["$defs"]["QueueSpec"];
        queue["properties"]["aqm"]["anyOf"] = serde_json::json!([
            {"enum": aqms},
            {"pattern": "^python:.+:[A-Za-z_][A-Za-z0-9_]*$"}
        ]);
        queue["properties"]["prefilter"]["enum"] = serde_json::json!(filters);
        queue["properties"]["prefilter_params"]["properties"] = filter_parameters.into();
        queue["properties"]["shaper"]["properties"] = described(&(SHAPER.parameters)()).into();
        queue["allOf"] = CATALOG
            .iter()
            .map(|entry| {
                let mut parameters = described(&(entry.parameters)());
                if !entry.presets.is_empty() {
                    let names: Vec<_> = entry.presets.iter().map(|(name, _)| *name).collect();
                    let about = "A named set of parameters; those beside it go before it.";
                    let preset = serde_json::json!({"description": about, "enum": names});
                    parameters.insert(PRESET.into(), preset);
                }
                serde_json::json!({
                    "if": {"properties": {"aqm": {"const": entry.name}}},
                    "then": {"properties": {"params": {
                        "properties": parameters, "additionalProperties": false
                    }}}
                })
            })
            .collect();
        serde_json::to_string_pretty(&schema).unwrap_or_default()
    }
}

/// Parameters, as a schema describes them.
fn described(table: &[Param]) -> serde_json::Map<String, serde_json::Value> {
    let describe = |p: &Param| {
        let about = format!(
            "{} Allowed: {}. Default: {}. Source: {}.",
            p.doc, p.allowed, p.default, p.source
        );
        (p.name.to_string(), serde_json::json!({ "description": about }))
    };
    table.iter().map(describe).collect()
}
