//! The short form of an output schema: an object of field names and types, such as `{"files": "string[]", "note?": "string"}`.
//!
//! | text | meaning |
//! |---|---|
//! | `string`, `boolean`, `number`, `integer`, `object`, `array`, `null` | the JSON type |
//! | `any` | every value |
//! | `T[]` | an array of `T`, also repeated: `string[][]` |
//! | `T?` as a type, or `name?` as a field | the field may be missing |
//! | an object | a nested short form, or a JSON Schema |

use counterproof_artifact::pointer::child;
use counterproof_validation::json_schema::JsonSchema;
use counterproof_validation::nearest;
use serde_json::{Map, Value, json};

use super::OutputSchemaError;

/// The names of the JSON types in JSON Schema, and in the short form.
const TYPES: [&str; 7] = ["string", "boolean", "number", "integer", "object", "array", "null"];

/// The name of the type of every value.
const ANY: &str = "any";

/// The keywords of JSON Schema next to `type`.
const KEYWORDS: [&str; 51] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// Converts an output schema to JSON Schema, and adds what is wrong to `errors`.
pub(super) fn to_json_schema(schema: &Value, pointer: &str, errors: &mut Vec<OutputSchemaError>) -> Value {
    match schema {
        Value::Bool(_) => schema.clone(),
        Value::Object(fields) if is_json_schema(fields) => {
            check_json_schema(schema, fields, pointer, errors);
            schema.clone()
        }
        Value::Object(fields) => object(fields, pointer, errors),
        Value::String(name) => named_type(name, pointer, errors),
        _ => {
            errors.push(OutputSchemaError::new(
                pointer,
                "this is neither a type of the short form nor a JSON Schema",
                "write a type such as \"string[]\", an object of fields, or a JSON Schema",
            ));
            Value::Bool(true)
        }
    }
}

/// True for an object that is written as JSON Schema: it has a key such as `$ref`, a `type` of JSON Schema, or another keyword
/// with a value that no field of the short form has.
fn is_json_schema(fields: &Map<String, Value>) -> bool {
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    fields.iter().any(|(key, value)| match key.as_str() {
        key if key.starts_with('$') => true,
        "type" => is_type(value) || value.as_array().is_some_and(|types| types.iter().all(is_type)),
        "properties" => value.as_object().is_some_and(|parts| parts.values().all(|part| !part.is_string())),
        key => KEYWORDS.contains(&key) && !matches!(value, Value::String(_) | Value::Object(_)),
    })
}

/// Compiles a JSON Schema for its errors, and refuses fields that are no keywords: JSON Schema would ignore them.
fn check_json_schema(schema: &Value, fields: &Map<String, Value>, pointer: &str, errors: &mut Vec<OutputSchemaError>) {
    if !fields.keys().any(|key| key.starts_with('$')) {
        for key in fields.keys().filter(|key| !KEYWORDS.contains(&key.as_str())) {
            let message =
                format!("`{key}` is no keyword of JSON Schema, which this object is because of its other fields");
            let remedy = "remove it; to describe a field named `type` or like another keyword, write the whole schema as \
                          JSON Schema with `properties`";
            errors.push(OutputSchemaError::new(&child(pointer, key), message, remedy));
        }
    }
    if let Err(error) = JsonSchema::compile(schema) {
        let at = format!("{pointer}{}", error.pointer);
        errors.push(OutputSchemaError::new(&at, error.to_string(), "correct the schema at this position"));
    }
}

fn object(fields: &Map<String, Value>, pointer: &str, errors: &mut Vec<OutputSchemaError>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (key, value) in fields {
        let at = child(pointer, key);
        let name = key.strip_suffix('?');
        let is_optional = name.is_some() || value.as_str().is_some_and(|text| text.ends_with('?'));
        let name = name.unwrap_or(key);
        let schema = match value {
            Value::String(text) => named_type(text.strip_suffix('?').unwrap_or(text), &at, errors),
            other => to_json_schema(other, &at, errors),
        };
        if name.is_empty() || properties.insert(name.to_owned(), schema).is_some() {
            errors.push(OutputSchemaError::new(
                &at,
                format!("the field `{name}` is there twice, or has no name"),
                "rename it",
            ));
        }
        if !is_optional {
            required.push(name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn named_type(text: &str, pointer: &str, errors: &mut Vec<OutputSchemaError>) -> Value {
    if let Some(element) = text.strip_suffix("[]") {
        return json!({ "type": "array", "items": named_type(element, pointer, errors) });
    }
    if text == ANY {
        return Value::Bool(true);
    }
    if TYPES.contains(&text) {
        return json!({ "type": text });
    }
    let known: Vec<&str> = TYPES.into_iter().chain([ANY]).collect();
    let remedy = match nearest(text, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of {}, with `[]` for an array and `?` for an optional field", known.join(", ")),
    };
    let shown: String = text.chars().take(80).collect();
    errors.push(OutputSchemaError::new(pointer, format!("`{}` is no type", shown.escape_debug()), remedy));
    Value::Bool(true)
}
