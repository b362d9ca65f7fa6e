//! Checks a document against the schema of its kind, with findings that point into the text.
//!
//! The schemas are part of the program and trusted. `json_schema` checks schemas that other people wrote.

use camino::Utf8Path;
use counterproof_artifact::pointer::child;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::Code;
use crate::document::{self, DocumentFormat};
use crate::finding::{Finding, Findings, RuleFinding, nearest, quote};

/// The schema of a kind of document: JSON Schema, draft 2020-12. It is trusted, so a check has no limit.
#[derive(Debug)]
pub struct DocumentSchema {
    name: String,
    source: Value,
    validator: Validator,
}

/// A text that is not a JSON Schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid JSON Schema: {0}")]
pub struct InvalidSchema(String);

#[derive(Debug, Clone, Copy)]
pub struct DocumentText<'a> {
    /// The file, as findings name it.
    pub file: &'a Utf8Path,
    /// The bytes of the document: of the file, or of one of its lines.
    pub bytes: &'a [u8],
    /// The line of the file at which the document starts, counted from 1. A document in JSON Lines is one line of its file.
    pub first_line: usize,
}

/// A document that was parsed and checked.
#[derive(Debug)]
pub struct CheckedDocument {
    /// The document; `None` if it is not JSON or YAML. It may violate the schema and the rules.
    pub value: Option<Value>,
    /// All findings in the order of the text; empty if the document is valid.
    pub findings: Vec<Finding>,
}

impl DocumentText<'_> {
    /// Parses any JSON value. Duplicate keys and encoding errors are findings.
    pub fn parse_json(self) -> CheckedDocument {
        self.parse(DocumentFormat::Json, |_, _| {})
    }

    /// Parses any JSON value, and checks it against rules without a schema.
    pub fn check(self, rules: impl FnOnce(&Value) -> Vec<RuleFinding>) -> CheckedDocument {
        self.parse(DocumentFormat::Json, |value, findings| {
            for finding in rules(value) {
                findings.add_rule(finding);
            }
        })
    }

    fn parse(self, format: DocumentFormat, check: impl FnOnce(&Value, &mut Findings)) -> CheckedDocument {
        let mut findings = Findings::new(self.file);
        let value = match format {
            DocumentFormat::Json => document::parse(self.bytes, &mut findings),
            DocumentFormat::Yaml => document::parse_yaml(self.bytes, &mut findings),
        };
        if let Some(value) = &value {
            check(value, &mut findings);
        }
        let mut findings = findings.into_located_as(format, self.bytes);
        // Last, since locating counts lines within the bytes of this document.
        for finding in &mut findings {
            finding.move_down(self.first_line.saturating_sub(1));
        }
        CheckedDocument { value, findings }
    }
}

impl DocumentSchema {
    /// Compiles a schema. `name` is the kind of document in messages, such as `contract.v1`.
    pub fn compile(name: &str, source: &Value) -> Result<Self, InvalidSchema> {
        let compiled = jsonschema::draft202012::new(source);
        let validator = compiled.map_err(|error| InvalidSchema(error.masked().to_string()))?;
        Ok(Self { name: name.to_owned(), source: source.clone(), validator })
    }

    /// Parses a document, and checks it against the schema and further rules.
    ///
    /// `rules` receives every document that can be parsed, also one that violates the schema, so that one wrong field hides no
    /// other. It returns what it finds, in any order.
    ///
    /// ```
    /// use camino::Utf8Path;
    /// use counterproof_validation::{Code, DocumentSchema, DocumentText, RuleFinding};
    /// use serde_json::json;
    ///
    /// let schema = json!({"properties": {"command": {"type": "string"}}, "additionalProperties": false});
    /// let schema = DocumentSchema::compile("task.v1", &schema)?;
    /// let bytes = br#"{"comand": "x && y"}"#;
    /// let text = DocumentText { file: Utf8Path::new("tasks.jsonl"), bytes, first_line: 7 };
    /// let checked = schema.check(text, |task| {
    ///     let is_missing = task.get("command").is_none();
    ///     is_missing.then(|| RuleFinding::new(Code::MissingField, "", "nothing to run", "a command")).into_iter().collect()
    /// });
    /// let lines: Vec<_> = checked.findings.iter().map(|finding| (finding.position.unwrap().line, &*finding.message)).collect();
    /// assert_eq!(lines, [(7, "nothing to run"), (7, "the field `comand` is unknown; did you mean `command`?")]);
    /// # Ok::<(), counterproof_validation::InvalidSchema>(())
    /// ```
    pub fn check(&self, text: DocumentText<'_>, rules: impl FnOnce(&Value) -> Vec<RuleFinding>) -> CheckedDocument {
        self.check_as(DocumentFormat::Json, text, rules)
    }

    /// Checks a document as [`DocumentSchema::check`] does, in another format.
    pub fn check_as(
        &self,
        format: DocumentFormat,
        text: DocumentText<'_>,
        rules: impl FnOnce(&Value) -> Vec<RuleFinding>,
    ) -> CheckedDocument {
        text.parse(format, |value, findings| {
            self.add_findings(value, |_| false, findings);
            for finding in rules(value) {
                findings.add_rule(finding);
            }
        })
    }

    /// Adds the violations of a document, without those for whose part of the schema `is_covered` returns true.
    pub(crate) fn add_findings(&self, value: &Value, is_covered: impl Fn(&str) -> bool, findings: &mut Findings) {
        // Nearly all documents are valid, and `is_valid` builds no errors.
        if self.validator.is_valid(value) {
            return;
        }
        for error in self.validator.iter_errors(value) {
            // The loop goes on when the list is full: the report states how many findings it omits.
            if findings.is_full() {
                findings.omit(1);
            } else if !is_covered(error.schema_path().as_str()) {
                add(&self.name, &self.source, &error, findings);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }
}

/// The pattern of a digest in the schemas.
const SHA_256: &str = "^[0-9A-Fa-f]{64}$";

/// Adds the findings of one violation. `name` is the kind of the document.
fn add(name: &str, schema: &Value, error: &ValidationError<'_>, findings: &mut Findings) {
    let schema_path = error.schema_path().as_str();
    let pointer = error.instance_path().as_str();
    let about = |field: &str| description(schema, schema_path, field);
    let value = || describe(error.instance());
    let (code, message, expected) = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let field = property.as_str().unwrap_or_default();
            let expected = about(field).map_or_else(|| format!("`{field}`"), |text| format!("`{field}`: {text}"));
            (Code::MissingField, format!("the field `{field}` is missing"), expected)
        }
        ValidationErrorKind::FalseSchema => {
            // The validator reports a property with the schema `false` at the property, so its name ends the pointer.
            let name = pointer.rsplit('/').next().unwrap_or_default();
            let expected = about(name).map_or_else(|| "no such field here".to_owned(), str::to_owned);
            (Code::UnexpectedField, format!("the field {} must not be here", quote(name)), expected)
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(expected) } => {
            return findings.add_rule(other_type(pointer, expected.as_str(), error.instance()));
        }
        ValidationErrorKind::Type { kind: TypeKind::Multiple(expected) } => {
            let expected: Vec<&str> = expected.iter().map(|expected| with_article(expected.as_str())).collect();
            (Code::WrongType, value(), expected.join(" or "))
        }
        ValidationErrorKind::Enum { options } => {
            return findings.add_rule(other_option(pointer, options, error.instance()));
        }
        ValidationErrorKind::Constant { expected_value } => {
            let code = if same_type(expected_value, error.instance()) { Code::WrongValue } else { Code::WrongType };
            let expected = expected_value.as_str().map_or_else(|| expected_value.to_string(), str::to_owned);
            (code, value(), format!("`{expected}`"))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            return add_unknown(&known_fields(schema, schema_path), pointer, unexpected, findings);
        }
        // Words explain more than a regular expression.
        ValidationErrorKind::Pattern { pattern } if pattern == SHA_256 => {
            (Code::WrongValue, value(), "64 hexadecimal digits".to_owned())
        }
        ValidationErrorKind::Pattern { pattern } => {
            (Code::WrongValue, value(), format!("a text that matches {}", quote(pattern)))
        }
        // Only a choice between required fields has a short explanation. Other uses of `anyOf` end in the last arm.
        ValidationErrorKind::AnyOf { .. } if let Some(fields) = alternatives(schema, schema_path) => {
            let fields: Vec<_> = fields.iter().map(|field| format!("`{field}`")).collect();
            let message = format!("one of the fields {} is missing", fields.join(", "));
            (Code::MissingField, message, fields.join(" or "))
        }
        ValidationErrorKind::PropertyNames { error } => {
            let message = format!("the key {} is not allowed", describe(error.instance()));
            (Code::WrongValue, message, "one of the keys that the schema lists".to_owned())
        }
        other => {
            let limit = limit(other, pointer, error.instance());
            return findings.add_rule(limit.unwrap_or_else(|| {
                let message = format!("the value violates `{}` of the schema", other.keyword());
                RuleFinding::new(Code::WrongValue, pointer, message, format!("a value that matches the {name} schema"))
            }));
        }
    };
    findings.add(code, pointer, message, expected);
}

/// Returns the finding about a value that is none of the options.
fn other_option(pointer: &str, options: &Value, value: &Value) -> RuleFinding {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_type = options.iter().any(|option| same_type(option, value));
    let texts: Vec<_> = options.iter().map(|option| format!("`{}`", option.as_str().unwrap_or("null"))).collect();
    let code = if is_type { Code::WrongValue } else { Code::WrongType };
    let known: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
    let near = value.as_str().and_then(|text| nearest(text, &known));
    let meant = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let expected = format!("one of {}", texts.join(", "));
    let finding = RuleFinding::new(code, pointer, format!("{}{meant}", describe(value)), expected);
    finding.with_any_remedy(near.map(|near| format!("write `{near}`")))
}

/// Returns the finding about a value of another type, with its remedy if it is nearly of the expected one.
fn other_type(pointer: &str, expected: &str, value: &Value) -> RuleFinding {
    let remedy = match (expected, value) {
        ("array", Value::String(_) | Value::Number(_) | Value::Bool(_)) => Some("put the value in a list: `[…]`"),
        ("string", Value::Number(_) | Value::Bool(_)) => Some("put the value in quotes"),
        ("integer" | "number", Value::String(text)) if text.parse::<f64>().is_ok() => Some("remove the quotes"),
        _ => None,
    };
    let finding = RuleFinding::new(Code::WrongType, pointer, describe(value), with_article(expected));
    finding.with_any_remedy(remedy)
}

/// Returns the finding about a number, a length or a size outside of its limits.
fn limit(kind: &ValidationErrorKind, pointer: &str, value: &Value) -> Option<RuleFinding> {
    let number = "write a number within the limit";
    let (expected, remedy) = match kind {
        ValidationErrorKind::Minimum { limit } => (format!("at least {limit}"), number),
        ValidationErrorKind::Maximum { limit } => (format!("at most {limit}"), number),
        ValidationErrorKind::MinLength { limit: 1 } => ("at least one character".to_owned(), "write a text"),
        ValidationErrorKind::MinItems { limit: 1 } => {
            ("at least one element".to_owned(), "add an element, or remove an optional field")
        }
        ValidationErrorKind::MaxItems { limit } => (format!("at most {limit} elements"), "remove elements"),
        ValidationErrorKind::MinProperties { limit: 1 } => {
            ("at least one field".to_owned(), "add a field, or remove an optional object")
        }
        _ => return None,
    };
    // `describe` gives no size of an object, and `minProperties` is reported for empty ones only.
    let is_object = matches!(kind, ValidationErrorKind::MinProperties { .. });
    let message = if is_object { "the object is empty".to_owned() } else { describe(value) };
    Some(RuleFinding::new(Code::WrongValue, pointer, message, expected).with_remedy(remedy))
}

/// Adds a finding for each field that the schema does not allow, with the known field that was probably meant.
fn add_unknown(known: &[&str], pointer: &str, unexpected: &[String], findings: &mut Findings) {
    for name in unexpected {
        let near = nearest(name, known);
        let message = match near {
            Some(near) => format!("the field {} is unknown; did you mean `{near}`?", quote(name)),
            None => format!("the field {} is unknown", quote(name)),
        };
        let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        let expected = if names.is_empty() { "no field".to_owned() } else { format!("one of {}", names.join(", ")) };
        let finding = RuleFinding::new(Code::UnexpectedField, child(pointer, name), message, expected);
        let remedy = near.map(|near| format!("rename the field to `{near}`, or remove it"));
        findings.add_rule(finding.with_any_remedy(remedy));
    }
}

/// Returns the fields that the violated part of a schema lists, or the nearest part around it that lists any.
fn known_fields<'s>(schema: &'s Value, schema_path: &str) -> Vec<&'s str> {
    let parts = schema_path.match_indices('/').rev().map(|(end, _)| &schema_path[..end]);
    let mut listed = parts.filter_map(|part| schema.pointer(part)?.get("properties")?.as_object());
    listed.next().into_iter().flat_map(|fields| fields.keys()).map(String::as_str).collect()
}

/// Returns the fields of which a part of a schema requires one, if it requires nothing else.
fn alternatives<'s>(schema: &'s Value, schema_path: &str) -> Option<Vec<&'s str>> {
    let branches = schema.pointer(schema_path)?.as_array()?;
    branches.iter().map(|branch| branch["required"][0].as_str()).collect()
}

/// Returns the description of a field in the violated part of the schema or the nearest part around it.
fn description<'s>(schema: &'s Value, schema_path: &str, field: &str) -> Option<&'s str> {
    let mut path = schema_path;
    while let Some((parent, _)) = path.rsplit_once('/') {
        let text = schema.pointer(parent).and_then(|around| around["properties"][field]["description"].as_str());
        if text.is_some() {
            return text;
        }
        path = parent;
    }
    None
}

fn same_type(a: &Value, b: &Value) -> bool {
    // JSON has one type of numbers, and so has `Value`: integers and floats are equal here.
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Describes a value in bounded length.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "the value is null".to_owned(),
        Value::Bool(value) => format!("the value is `{value}`"),
        Value::Number(number) => format!("the value is {number}"),
        Value::String(text) if text.is_empty() => "the value is an empty string".to_owned(),
        Value::String(text) => format!("the value is the string {}", quote(text)),
        Value::Array(items) => format!("the value is an array of {}", items.len()),
        Value::Object(_) => "the value is an object".to_owned(),
    }
}

fn with_article(kind: &str) -> &'static str {
    match kind {
        "array" => "an array",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "null" => "null",
        "number" => "a number",
        "object" => "an object",
        _ => "a string",
    }
}
