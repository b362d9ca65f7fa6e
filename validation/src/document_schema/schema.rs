//! The compiled schema of a kind of document.

use camino::Utf8Path;
use jsonschema::Validator;
use serde_json::Value;

use super::violation;
use crate::document_format::DocumentFormat;
use crate::finding::{Finding, Findings, RuleFinding};
use crate::parse;

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
    /// The bytes of the document: those of the file, or of one of its lines.
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
            DocumentFormat::Json => parse::parse(self.bytes, &mut findings),
            DocumentFormat::Yaml => parse::parse_yaml(self.bytes, &mut findings),
        };
        if let Some(value) = &value {
            check(value, &mut findings);
        }
        let mut findings = findings.into_located_as(format, self.bytes);
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
        if self.validator.is_valid(value) {
            return;
        }
        for error in self.validator.iter_errors(value) {
            if findings.is_full() {
                findings.omit(1);
            } else if !is_covered(error.schema_path().as_str()) {
                violation::add(&self.name, &self.source, &error, findings);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }
}
