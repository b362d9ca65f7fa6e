//! The rules of a contract that its schema cannot express.

use std::collections::HashSet;

use counterproof_expression::Expression;
use counterproof_validation::{Code, RuleFinding};
use jiff::Timestamp;
use serde_json::Value;

use crate::contract::{ContractId, Resource};
use crate::execution::REQUIRES_APPROVAL;
use crate::resources::ResourceRequest;
use crate::verification::{ArtifactCheck, OutputSchema, VARIABLES};

/// Letters of names that were meant as [`REQUIRES_APPROVAL`].
const MISSPELT_APPROVAL: [&str; 5] =
    ["requiresapproval", "requireapproval", "requiredapproval", "requirsapproval", "needsapproval"];

/// Checks a document that is JSON. Values of a wrong type are left to the schema.
pub(super) fn rules(document: &Value) -> Vec<RuleFinding> {
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

/// Returns the elements of a list with their pointers.
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
    if text.parse::<Timestamp>().is_err() {
        let message = "the value is not a time with a time zone";
        findings.push(RuleFinding::new(Code::BadTimestamp, "/created_at", message, "a time in ISO 8601"));
    }
}

/// Checks the one constraint that the program itself reads. A mistake would skip the approval of a person.
fn check_constraints(document: &Value, findings: &mut Vec<RuleFinding>) {
    let Some(constraints) = document.pointer("/input/constraints").and_then(Value::as_object) else { return };
    for (name, value) in constraints {
        let pointer = counterproof_artifact::pointer::child("/input/constraints", name);
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
