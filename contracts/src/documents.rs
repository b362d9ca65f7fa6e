//! Contract files: one contract as JSON, or many as JSON Lines. Every problem is reported with its place and its remedy.

use std::collections::HashSet;
use std::sync::LazyLock;

use camino::Utf8Path;
use counterproof_artifact::pointer;
use counterproof_expression::Expression;
use counterproof_validation::{Code, DocumentSchema, DocumentText, Finding, RuleFinding};
use serde::Serialize;
use serde_json::Value;

use crate::contract::{CONTRACT_SCHEMA_SOURCE, Contract, ContractId, Resource, creation_time};
use crate::execution::REQUIRES_APPROVAL;
use crate::resources::ResourceRequest;
use crate::store::Record;
use crate::verification::{ArtifactCheck, OutputSchema, VARIABLES};

#[derive(Debug, Default)]
pub struct CheckedFile {
    pub contracts: Vec<Contract>,
    /// The number of other records, which only the file of a store has.
    pub other_records: usize,
    /// All findings, in the order of the text. Empty if the file is valid.
    pub findings: Vec<Finding>,
}

static CONTRACT: LazyLock<DocumentSchema> = LazyLock::new(|| compile("contract.v1", CONTRACT_SCHEMA_SOURCE));

/// The schema of the other lines, which are checked by their types.
static RECORD: LazyLock<DocumentSchema> = LazyLock::new(|| compile("record", "true"));

#[expect(clippy::expect_used, reason = "the schemas are part of the program, and the tests compile them")]
fn compile(name: &str, source: &str) -> DocumentSchema {
    let source: Value = serde_json::from_str(source).expect("an embedded schema is JSON");
    DocumentSchema::compile(name, &source).expect("an embedded schema is valid")
}

/// Checks the content of a contract file. A file named `*.jsonl` or `*.ndjson` has one document per line; it may be the file of a store.
pub fn check_file(path: &Utf8Path, bytes: &[u8]) -> CheckedFile {
    let mut checked = CheckedFile::default();
    // The name decides: a single contract may be written on one line as well.
    if !matches!(path.extension(), Some("jsonl" | "ndjson")) {
        check_document(DocumentText { file: path, bytes, first_line: 1 }, &mut checked);
        return checked;
    }
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if !line.trim_ascii().is_empty() {
            check_document(DocumentText { file: path, bytes: line, first_line: index + 1 }, &mut checked);
        }
    }
    checked
}

fn check_document(text: DocumentText<'_>, checked: &mut CheckedFile) {
    let is_record = serde_json::from_slice::<Value>(text.bytes).is_ok_and(|value| value.get("record").is_some());
    if is_record {
        match Record::parse(text.bytes) {
            Ok(_) => checked.other_records += 1,
            Err(error) => {
                let rule = |_: &Value| {
                    let expected = "a transition or a note, as the store writes it";
                    vec![RuleFinding::new(Code::WrongValue, "", error.to_string(), expected)]
                };
                checked.findings.extend(RECORD.check(text, rule).findings);
            }
        }
        return;
    }
    let document = CONTRACT.check(text, rules);
    let mut findings = document.findings;
    // An invalid document would fail again here, with a message that names no position.
    if findings.is_empty()
        && let Some(value) = document.value
    {
        match serde_json::from_value::<Contract>(value) {
            Ok(contract) => checked.contracts.push(contract),
            // The schema and the rules check everything that the types check; this is for what they could miss.
            Err(error) => {
                let rule = |_: &Value| vec![RuleFinding::new(Code::WrongValue, "", error.to_string(), "a contract")];
                findings = RECORD.check(text, rule).findings;
            }
        }
    }
    checked.findings.extend(findings);
}

/// Letters of names that were meant as [`REQUIRES_APPROVAL`].
const MISSPELT_APPROVAL: [&str; 5] =
    ["requiresapproval", "requireapproval", "requiredapproval", "requirsapproval", "needsapproval"];

/// Checks a document that is JSON. Values of a wrong type are left to the schema.
fn rules(document: &Value) -> Vec<RuleFinding> {
    let mut findings = Vec::new();
    check_id(document, &mut findings);
    check_time(document, &mut findings);
    check_constraints(document, &mut findings);
    check_assertions(document, &mut findings);
    check_output_schema(document, &mut findings);
    check_resources(document, &mut findings);
    check_commands(document, &mut findings);
    check_dependencies(document, &mut findings);
    check_artifacts(document, &mut findings);
    findings
}

fn elements<'d>(document: &'d Value, pointer: &'static str) -> impl Iterator<Item = (String, &'d Value)> {
    let list = document.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().enumerate().map(move |(index, value)| (format!("{pointer}/{index}"), value))
}

fn texts<'d>(document: &'d Value, pointer: &'static str) -> impl Iterator<Item = (String, &'d str)> {
    elements(document, pointer).filter_map(|(pointer, value)| Some((pointer, value.as_str()?)))
}

fn check_id(document: &Value, findings: &mut Vec<RuleFinding>) {
    let Some(error) = document["id"].as_str().and_then(|text| text.parse::<ContractId>().err()) else { return };
    findings.push(RuleFinding::new(Code::WrongValue, "/id", error.to_string(), "an id such as `shop/refund/001`"));
}

fn check_time(document: &Value, findings: &mut Vec<RuleFinding>) {
    let Some(text) = document["created_at"].as_str() else { return };
    if creation_time(text).is_none() {
        let message = "the value is neither a time with a time zone nor a date";
        let expected = "a time or a date in ISO 8601, such as `2026-02-02T14:30:00Z` or `2026-02-02`";
        findings.push(RuleFinding::new(Code::BadTimestamp, "/created_at", message, expected));
    }
}

/// Checks the one constraint that the program itself reads. A mistake would skip the approval of a person.
fn check_constraints(document: &Value, findings: &mut Vec<RuleFinding>) {
    let Some(constraints) = document.pointer("/input/constraints").and_then(Value::as_object) else { return };
    for (name, value) in constraints {
        let pointer = counterproof_artifact::pointer::child("/input/constraints", name);
        // `requiresApproval` and `requires-approval` are the usual mistakes.
        let letters: String = name.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
        if name == REQUIRES_APPROVAL && !value.is_boolean() {
            let message = "the value is not true or false, so no approval would be required";
            findings.push(RuleFinding::new(Code::WrongType, pointer, message, "true or false"));
        } else if name != REQUIRES_APPROVAL && MISSPELT_APPROVAL.contains(&letters.as_str()) {
            let (message, expected) = ("no approval would be required", format!("`{REQUIRES_APPROVAL}`"));
            let finding = RuleFinding::new(Code::UnexpectedField, pointer, message, expected);
            findings.push(finding.with_remedy(format!("rename the field to `{REQUIRES_APPROVAL}`")));
        }
    }
}

fn check_assertions(document: &Value, findings: &mut Vec<RuleFinding>) {
    for (pointer, text) in texts(document, "/verification/assertions") {
        if let Err(error) = Expression::compile(text, &VARIABLES) {
            let finding = RuleFinding::new(Code::InvalidExpression, pointer, error.message, "a CEL expression");
            findings.push(finding.with_remedy(error.remedy).within(error.span));
        }
    }
}

fn check_output_schema(document: &Value, findings: &mut Vec<RuleFinding>) {
    let Some(schema) = document.pointer("/output/schema") else { return };
    // The schema of the contract refuses other types.
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return;
    }
    for error in OutputSchema::compile(schema).err().unwrap_or_default() {
        let pointer = format!("/output/schema{}", error.pointer);
        let finding = RuleFinding::new(Code::WrongValue, pointer, error.message, "the short form, or a JSON Schema");
        findings.push(finding.with_remedy(error.remedy));
    }
}

fn check_resources(document: &Value, findings: &mut Vec<RuleFinding>) {
    let Some(resources) = document.get("resources").filter(|value| value.is_array()) else { return };
    // The schema refuses resources of another form.
    let Ok(resources) = serde_json::from_value::<Vec<Resource>>(resources.clone()) else { return };
    for error in ResourceRequest::parse_all(&resources).err().unwrap_or_default() {
        let pointer = format!("/resources{}", error.pointer);
        let finding = RuleFinding::new(Code::WrongValue, pointer, error.message, "a form that docs/contracts.md lists");
        findings.push(finding.with_remedy(error.remedy));
    }
}

fn check_commands(document: &Value, findings: &mut Vec<RuleFinding>) {
    if document["verification"]["command"].as_str().is_some_and(|command| command.trim().is_empty()) {
        let message = "the command is empty: nothing would be checked";
        findings.push(RuleFinding::new(
            Code::WrongValue,
            "/verification/command",
            message,
            "a command line for `sh -c`",
        ));
    }
    let custom = document["rollback"]["custom"].as_str();
    match document["rollback"]["strategy"].as_str() {
        Some("custom") if custom.is_none_or(|command| command.trim().is_empty()) => {
            let message = "the strategy `custom` needs a command";
            let expected = "`custom`: a command line for `sh -c`";
            let finding = RuleFinding::new(Code::MissingField, "/rollback", message, expected);
            findings.push(finding.with_remedy("add `custom` with the command, or choose another strategy"));
        }
        Some(strategy @ ("git_reset" | "restore_snapshot")) if custom.is_some() => {
            let message = format!("the strategy `{strategy}` runs no command");
            let expected = "`custom` only with the strategy `custom`";
            findings.push(RuleFinding::new(Code::UnexpectedField, "/rollback/custom", message, expected));
        }
        _ => {}
    }
}

fn check_dependencies(document: &Value, findings: &mut Vec<RuleFinding>) {
    let mut seen = HashSet::new();
    for (pointer, text) in texts(document, "/dependencies") {
        if let Err(error) = text.parse::<ContractId>() {
            findings.push(RuleFinding::new(Code::WrongValue, pointer, error.to_string(), "the id of a contract"));
        } else if document["id"] == text {
            let message = "the contract depends on itself";
            findings.push(RuleFinding::new(Code::WrongValue, pointer, message, "the id of another contract"));
        } else if !seen.insert(text) {
            let message = format!("the dependency `{text}` is listed twice");
            findings.push(RuleFinding::new(Code::WrongValue, pointer, message, "each dependency once"));
        }
    }
}

fn check_artifacts(document: &Value, findings: &mut Vec<RuleFinding>) {
    for (pointer, text) in texts(document, "/output/artifacts") {
        let Some(problem) = ArtifactCheck::path_problem(text) else { continue };
        let expected = "a path relative to the working directory, such as `src/pool.rs`";
        findings.push(RuleFinding::new(Code::WrongValue, pointer, problem, expected));
    }
}

/// A place at which two documents differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// A JSON Pointer.
    pub pointer: String,
    /// The value in the first document. `None` if it has none there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Compares two documents. Elements of lists are compared from both ends, thus one insertion is one change.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut changes);
    changes
}

fn compare(place: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                compare(pointer::child(&place, key), before.get(key), after.get(key), changes);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => compare_lists(&place, before, after, changes),
        (before, after) => {
            changes.push(Change { pointer: place, before: before.cloned(), after: after.cloned() });
        }
    }
}

fn compare_lists(place: &str, before: &[Value], after: &[Value], changes: &mut Vec<Change>) {
    let equal = |pair: &(&Value, &Value)| pair.0 == pair.1;
    let start = before.iter().zip(after).take_while(equal).count();
    let (before, after) = (&before[start..], &after[start..]);
    let end = before.iter().rev().zip(after.iter().rev()).take_while(equal).count();
    let (before, after) = (&before[..before.len() - end], &after[..after.len() - end]);
    for index in 0..before.len().max(after.len()) {
        let place = format!("{place}/{}", start + index);
        compare(place, before.get(index), after.get(index), changes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_name_the_smallest_part_that_differs() {
        let before = json!({"a": 1, "b": {"c/d": [1, 2, 3]}, "e": "x"});
        let after = json!({"a": 1, "b": {"c/d": [0, 1, 2, 3]}, "f": null});
        let found: Vec<(String, Option<Value>, Option<Value>)> =
            changes(&before, &after).into_iter().map(|it| (it.pointer, it.before, it.after)).collect();
        let expected = [
            ("/b/c~1d/0".to_owned(), None, Some(json!(0))),
            ("/e".to_owned(), Some(json!("x")), None),
            ("/f".to_owned(), None, Some(Value::Null)),
        ];
        assert_eq!(found, expected);
        assert!(changes(&before, &before).is_empty());
    }
}
