//! The schema of an agent's output, in the short form or as JSON Schema. One engine checks both.

use counterproof_artifact::pointer::child;
use counterproof_validation::json_schema::{JsonSchema, More, SchemaOutcome, Violation};
use counterproof_validation::nearest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const MAX_VIOLATIONS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OutputSchemaError {
    /// A JSON Pointer into the schema as the contract has it.
    pub pointer: String,
    pub message: String,
    pub remedy: String,
}

impl OutputSchemaError {
    pub(super) fn new(pointer: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { pointer: pointer.to_owned(), message: message.into(), remedy: remedy.into() }
    }
}

#[derive(Debug)]
pub struct OutputSchema {
    json_schema: Value,
    compiled: JsonSchema,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OutputCheck {
    Valid,
    Invalid {
        violations: Vec<OutputViolation>,
        /// How many more there are, if that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        more: Option<usize>,
    },
    /// The check takes too much work, so the output does not count as valid.
    Undecided {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputViolation {
    /// A JSON Pointer into the output.
    pub pointer: String,
    /// What is wrong, without the value.
    pub message: String,
}

impl OutputSchema {
    /// Compiles the `output.schema` of a contract. Returns all errors.
    ///
    /// ```
    /// use counterproof_contracts::verification::{OutputCheck, OutputSchema};
    /// use serde_json::json;
    ///
    /// let schema = OutputSchema::compile(&json!({"files": "string[]", "note?": "string"})).unwrap();
    /// assert_eq!(schema.check(&json!({"files": ["a.rs"]})), OutputCheck::Valid);
    /// assert!(matches!(schema.check(&json!({"files": [1]})), OutputCheck::Invalid { .. }));
    /// ```
    pub fn compile(schema: &Value) -> Result<Self, Vec<OutputSchemaError>> {
        let mut errors = Vec::new();
        let json_schema = match schema {
            Value::Object(_) | Value::Bool(_) => to_json_schema(schema, "", &mut errors),
            _ => {
                let remedy = "write fields with types, such as {\"files\": \"string[]\"}, or a JSON Schema";
                return Err(vec![OutputSchemaError::new(
                    "",
                    "the schema is neither an object nor true or false",
                    remedy,
                )]);
            }
        };
        if !errors.is_empty() {
            return Err(errors);
        }
        // Parts were compiled alone. A part that refers to the root of its own schema has another root here.
        let compiled = JsonSchema::compile(&json_schema).map_err(|error| {
            let remedy = "write the whole schema as JSON Schema";
            vec![OutputSchemaError::new("", error.to_string(), remedy)]
        })?;
        Ok(Self { json_schema, compiled })
    }

    pub fn json_schema(&self) -> &Value {
        &self.json_schema
    }

    /// Returns the reason why all checks are undecided, if they are.
    pub fn too_costly(&self) -> Option<String> {
        self.compiled.too_costly()
    }

    /// Checks an output within a bounded amount of work.
    pub fn check(&self, output: &Value) -> OutputCheck {
        match self.compiled.check(output, MAX_VIOLATIONS) {
            SchemaOutcome::Valid => OutputCheck::Valid,
            SchemaOutcome::Undecided(reason) => OutputCheck::Undecided { reason },
            SchemaOutcome::Invalid { violations, more } => OutputCheck::Invalid {
                violations: violations.into_iter().map(OutputViolation::from).collect(),
                more: match more {
                    More::Counted(count) => Some(count),
                    More::Uncounted => None,
                },
            },
        }
    }
}

impl From<Violation> for OutputViolation {
    fn from(violation: Violation) -> Self {
        Self { pointer: violation.pointer, message: violation.message }
    }
}

const TYPES: [&str; 7] = ["string", "boolean", "number", "integer", "object", "array", "null"];

const ANY: &str = "any";

/// The keywords of JSON Schema next to `type`.
const KEYWORDS: &str = "additionalItems additionalProperties allOf anyOf const contains contentEncoding contentMediaType \
    contentSchema default definitions dependencies dependentRequired dependentSchemas deprecated description \
    else enum examples exclusiveMaximum exclusiveMinimum format if items maxContains maxItems maxLength \
    maxProperties maximum minContains minItems minLength minProperties minimum multipleOf not oneOf pattern \
    patternProperties prefixItems properties propertyNames readOnly required then title type unevaluatedItems \
    unevaluatedProperties uniqueItems writeOnly";

fn is_keyword(key: &str) -> bool {
    KEYWORDS.split(' ').any(|keyword| keyword == key)
}

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
        // No field of an output is likely to start with `$`, and JSON Schema reserves it.
        key if key.starts_with('$') => true,
        "type" => is_type(value) || value.as_array().is_some_and(|types| types.iter().all(is_type)),
        // In the short form, `properties` would be a field whose parts are names of types.
        "properties" => value.as_object().is_some_and(|parts| parts.values().all(|part| !part.is_string())),
        key => is_keyword(key) && !matches!(value, Value::String(_) | Value::Object(_)),
    })
}

fn check_json_schema(schema: &Value, fields: &Map<String, Value>, pointer: &str, errors: &mut Vec<OutputSchemaError>) {
    // JSON Schema would ignore fields that are not keywords, and accept what their author forbids.
    if !fields.keys().any(|key| key.starts_with('$')) {
        for key in fields.keys().filter(|key| !is_keyword(key)) {
            let message = format!("unknown JSON Schema keyword `{key}` (the other fields make this object a schema)");
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
        // The mark is allowed at the name and at the type.
        let name = key.strip_suffix('?');
        let is_optional = name.is_some() || value.as_str().is_some_and(|text| text.ends_with('?'));
        let name = name.unwrap_or(key);
        let schema = match value {
            Value::String(text) => named_type(text.strip_suffix('?').unwrap_or(text), &at, errors),
            other => to_json_schema(other, &at, errors),
        };
        // `a` and `a?` are two keys of the short form and one field of the schema.
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
    // An unknown type is an error and not `any`, which would accept everything.
    let known: Vec<&str> = TYPES.into_iter().chain([ANY]).collect();
    let remedy = match nearest(text, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of {}, with `[]` for an array and `?` for an optional field", known.join(", ")),
    };
    let shown: String = text.chars().take(80).collect();
    errors.push(OutputSchemaError::new(pointer, format!("`{}` is not a type", shown.escape_debug()), remedy));
    Value::Bool(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_valid(schema: &Value, output: &Value) -> bool {
        match OutputSchema::compile(schema).unwrap().check(output) {
            OutputCheck::Valid => true,
            OutputCheck::Invalid { violations, .. } if !violations.is_empty() => false,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_short_form_names_types_arrays_and_optional_fields() {
        let schema = json!({
            "modified_files": "string[]", "test_coverage": "boolean", "table": "number[][]", "note?": "string",
            "count": "integer?", "extra": {"inner": "object", "list": "array"}, "nothing": "null", "value": "any"
        });
        let output = json!({
            "modified_files": ["a"], "test_coverage": false, "table": [[1, 2.5], []], "extra": {"inner": {}, "list": [1]},
            "nothing": null, "value": null, "more": "allowed"
        });
        assert!(is_valid(&schema, &output));
        for (pointer, value) in [
            ("/modified_files/0", json!(1)),
            ("/test_coverage", json!("true")),
            ("/table/1", json!(["x"])),
            ("/extra/inner", json!([])),
            ("/nothing", json!(0)),
        ] {
            let mut wrong = output.clone();
            *wrong.pointer_mut(pointer).unwrap() = value;
            match OutputSchema::compile(&schema).unwrap().check(&wrong) {
                OutputCheck::Invalid { violations, .. } => assert!(violations[0].pointer.starts_with(pointer)),
                other => panic!("{pointer}: {other:?}"),
            }
        }
        for field in ["modified_files", "value", "nothing"] {
            let mut wrong = output.clone();
            wrong.as_object_mut().unwrap().remove(field);
            assert!(!is_valid(&schema, &wrong), "{field} is required");
        }
        let mut optional = output.clone();
        optional["note"] = json!(null);
        assert!(!is_valid(&schema, &optional), "an optional field may be missing, not null");
        optional["note"] = json!("text");
        optional["count"] = json!(3);
        assert!(is_valid(&schema, &optional));
    }

    #[test]
    fn json_schemas_are_recognised_and_may_be_parts_of_the_short_form() {
        for schema in [
            json!({"type": "object", "required": ["a"]}),
            json!({"required": ["a"]}),
            json!({"$defs": {"x": {"required": ["a"]}}, "$ref": "#/$defs/x", "$schema": "https://json-schema.org/draft/2020-12/schema"}),
            json!({"properties": {"b": {"minimum": 1}}, "required": ["a"]}),
            json!({"type": ["object", "null"], "required": ["a"]}),
            json!({"a": {"type": "integer", "minimum": 1}}),
        ] {
            assert!(is_valid(&schema, &json!({"a": 1})), "{schema}");
            assert!(!is_valid(&schema, &json!({})), "{schema}");
        }
        assert!(!is_valid(&json!({"a": {"type": "integer", "minimum": 1}}), &json!({"a": 0})));
        assert!(is_valid(&json!({"type": "string[]", "title": "string"}), &json!({"type": ["a"], "title": "t"})));
        assert!(is_valid(&json!({"properties": {"a": "string"}}), &json!({"properties": {"a": "x"}})));
        assert!(is_valid(&json!(true), &json!(null)) && !is_valid(&json!(false), &json!(null)));
        assert!(is_valid(&json!({}), &json!({"a": 1})) && !is_valid(&json!({}), &json!(1)));
    }

    #[test]
    fn errors_name_the_place_in_the_schema() {
        let errors = |schema: &Value| {
            let errors = OutputSchema::compile(schema).unwrap_err();
            errors
                .into_iter()
                .map(|error| format!("{}: {} ({})", error.pointer, error.message, error.remedy))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            errors(&json!({"a": "strng", "b": {"c/d": "what?"}, "e": 1})),
            [
                "/a: `strng` is not a type (did you mean `string`?)",
                "/b/c~1d: `what` is not a type (write one of string, boolean, number, integer, object, array, null, any, with `[]` \
                 for an array and `?` for an optional field)",
                "/e: this is neither a type of the short form nor a JSON Schema (write a type such as \"string[]\", an object of \
                 fields, or a JSON Schema)",
            ]
        );
        let twice = errors(&json!({"a": "string", "a?": "string"}));
        assert_eq!(twice, ["/a?: the field `a` is there twice, or has no name (rename it)"]);
        let ignored = errors(&json!({"type": "string", "name": "string"}));
        assert!(ignored[0].starts_with("/name: unknown JSON Schema keyword `name`"), "{ignored:?}");
        let invalid = errors(&json!({"a": {"type": "integer", "minimum": "x"}}));
        assert!(invalid[0].starts_with("/a/minimum: not a valid JSON Schema"), "{invalid:?}");
        assert_eq!(errors(&json!("string")).len(), 1);
    }

    #[test]
    fn a_schema_that_takes_too_much_work_never_accepts() {
        let mut parts = serde_json::Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/definitions/a{}", level + 1)});
            parts.insert(format!("a{level}"), json!({"allOf": [next, next]}));
        }
        parts.insert("a40".to_owned(), json!({}));
        let schema = OutputSchema::compile(&json!({"definitions": parts, "$ref": "#/definitions/a0"})).unwrap();
        assert!(schema.too_costly().is_some());
        assert!(matches!(schema.check(&json!({})), OutputCheck::Undecided { .. }));
    }
}
