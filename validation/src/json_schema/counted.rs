//! Adds the counting keyword to every part of a schema that a validator can evaluate.

use serde_json::{Value, json};

/// The keyword that counts steps. The name is too odd to be in a schema by chance, and then its value is replaced.
pub(super) const STEPS: &str = "counterproof:steps";

/// Keywords whose value maps names to schemas.
pub(super) const MAPS: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose value is data, which may look like a schema.
pub(super) const DATA: [&str; 6] = ["enum", "const", "default", "examples", "$vocabulary", "dependentRequired"];

/// Keywords whose value is a schema for the same value.
const CONDITIONS: [&str; 4] = ["not", "if", "then", "else"];

/// Adds the counting keyword to a schema and to all schemas in it.
pub(super) fn add_steps(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for (keyword, value) in map.iter_mut() {
        match (keyword.as_str(), value) {
            (keyword, _) if DATA.contains(&keyword) => {}
            (keyword, Value::Object(named)) if MAPS.contains(&keyword) => {
                // The report names a property that must not be there, so these stay as they are.
                let keep_false = matches!(keyword, "properties" | "patternProperties");
                for schema in named.values_mut().filter(|schema| !(keep_false && **schema == Value::Bool(false))) {
                    add_steps_to_any(schema);
                }
            }
            (_, Value::Array(list)) => list.iter_mut().for_each(add_steps_to_any),
            (keyword, value) if CONDITIONS.contains(&keyword) => add_steps_to_any(value),
            // Unknown keywords too: a reference can point into them.
            (_, value) => add_steps(value),
        }
    }
    map.insert(STEPS.to_owned(), Value::Bool(true));
}

/// Adds the counting keyword to a schema that may be a boolean. References can multiply these too.
fn add_steps_to_any(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = json!({"not": {}}),
        _ => {}
    }
    add_steps(schema);
}

/// Calls `visit` for a schema and for all schemas in it.
pub(super) fn for_each_schema<'a>(schema: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    let Value::Object(map) = schema else { return };
    visit(schema);
    for (keyword, value) in map {
        match value {
            _ if DATA.contains(&keyword.as_str()) => {}
            Value::Object(named) if MAPS.contains(&keyword.as_str()) => {
                named.values().for_each(|schema| for_each_schema(schema, visit));
            }
            Value::Array(list) => list.iter().for_each(|schema| for_each_schema(schema, visit)),
            other => for_each_schema(other, visit),
        }
    }
}
