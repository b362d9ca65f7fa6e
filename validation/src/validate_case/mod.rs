//! Validates one artifact, alone or in its run folder: its type or its schema, and the rules that no schema states.

use camino::Utf8Path;
use serde::Deserialize;
use serde_json::Value;

use crate::Code;
use crate::contract_schema;
use crate::document;
use crate::document::items;
use crate::finding::{Finding, Findings};
use crate::rules::assets;
use crate::rules::case;
use crate::rules::names;
use crate::run_folder::RunFolder;
use counterproof_artifact::schema::Kind;
use counterproof_artifact::{AttemptOutcome, Case, CaseId, Outcome};

/// An artifact that was read and validated.
#[derive(Debug)]
pub struct CheckedCase {
    /// The artifact; `None` if it is invalid, with the reason in `findings`.
    pub case: Option<Case>,
    /// The bytes of the file; empty if it could not be read.
    pub bytes: Vec<u8>,
    /// All violations.
    pub findings: Vec<Finding>,
}

/// Validates a `case.v1` document against its schema and the rules that need no folder. Findings have pointers, but no
/// positions.
///
/// Refs to assets are not resolved, and links to assets are checked for syntax only.
pub fn validate_case(document: &Value) -> Vec<Finding> {
    let mut findings = Findings::new(Utf8Path::new(""));
    check(document, None, &mut findings);
    findings.into_list()
}

impl RunFolder {
    /// Reads `<case_id>.json` and validates it with its assets.
    pub fn read_case(&self, case_id: &CaseId) -> CheckedCase {
        let name = format!("{case_id}.json");
        let path = self.path().join(&name);
        let mut findings = Findings::new(&path);
        let Some(bytes) = crate::document::read(self.path(), &name, &mut findings) else {
            // A dangling symbolic link exists; it is an unreadable artifact, not a missing one.
            if path.symlink_metadata().is_err() {
                findings = Findings::new(&path);
                findings.add(Code::CaseFileMissing, "", "the file does not exist", "the artifact of the case");
            }
            return CheckedCase { case: None, bytes: Vec::new(), findings: findings.into_list() };
        };
        self.check(case_id, bytes, findings)
    }

    /// Validates the bytes of `<case_id>.json` with the assets of the folder, whether or not they are stored.
    pub fn check_case(&self, case_id: &CaseId, bytes: Vec<u8>) -> CheckedCase {
        self.check(case_id, bytes, Findings::new(&self.path().join(format!("{case_id}.json"))))
    }

    fn check(&self, case_id: &CaseId, bytes: Vec<u8>, mut findings: Findings) -> CheckedCase {
        let document = document::parse(&bytes, &mut findings);
        let case = document.and_then(|document| match check_in(&document, case_id.as_str(), self, &mut findings) {
            CaseCheck::Answer(case) => Some(*case),
            CaseCheck::Untyped => typed(document, &mut findings),
            CaseCheck::OtherDocument => None,
        });
        CheckedCase { case, findings: findings.into_located(&bytes), bytes }
    }

    /// True if `<case_id>.json` is JSON that does not declare a document of the contract, or is the labels of the run.
    /// It is ignored if no run selected it.
    pub fn is_foreign(&self, case_id: &CaseId) -> bool {
        let mut findings = Findings::new(self.path());
        let bytes = crate::document::read(self.path(), &format!("{case_id}.json"), &mut findings);
        let document = bytes.and_then(|bytes| document::parse(&bytes, &mut findings));
        document.is_some_and(|document| {
            matches!(
                contract_schema::declared(&document),
                contract_schema::Declared::Foreign | contract_schema::Declared::Known(Kind::Labels)
            )
        })
    }
}

/// Converts a document to its type.
fn typed(document: Value, findings: &mut Findings) -> Option<Case> {
    match serde_json::from_value::<Case>(document) {
        Ok(case) => Some(case),
        Err(error) => {
            // A document that passes the schema and the rules always converts. An error is a gap in the rules.
            if findings.is_empty() {
                let message =
                    counterproof_artifact::escape_invisible(&error.to_string().chars().take(300).collect::<String>());
                findings.add(Code::WrongValue, "", message, "a `case.v1` document");
            }
            None
        }
    }
}

/// What the check of an artifact knows about it, apart from its findings.
#[derive(Debug)]
pub(crate) enum CaseCheck {
    /// It satisfies the schema, and was converted.
    Answer(Box<Case>),
    /// A runner failure, or a document that violates the schema.
    Untyped,
    /// Another kind of document, to which no further rule applies.
    OtherDocument,
}

/// Checks an artifact in its run folder under its file name.
pub(crate) fn check_in(document: &Value, stem: &str, folder: &RunFolder, findings: &mut Findings) -> CaseCheck {
    let checked = check(document, Some(folder), findings);
    if matches!(checked, CaseCheck::OtherDocument) {
        return checked;
    }
    names::file_name(document, stem, findings);
    if let Some(side) = folder.side() {
        names::side(&document["version"], "/version", side, "run", findings);
    }
    checked
}

/// Checks an artifact with or without its folder.
pub(crate) fn check(document: &Value, folder: Option<&RunFolder>, findings: &mut Findings) -> CaseCheck {
    if !contract_schema::check_kind(Kind::Case, document, findings) {
        return CaseCheck::OtherDocument;
    }
    // Nearly all artifacts are valid answers. The schema is applied only to the others: it is slow, and explains what is wrong.
    let answer = conforming_answer(document);
    if answer.is_none() {
        contract_schema::add_violations(Kind::Case, document, findings);
    }
    names::case_id(&document["case_id"], "/case_id", findings);
    for (index, attempt) in items(document, "attempts") {
        names::time(&attempt["started_at"], &format!("/attempts/{index}/started_at"), findings);
    }
    case::check_call_ids(document, findings);
    case::check_evidence(document, folder, findings);
    assets::check_events(document, folder, findings);
    assets::check_request(document, folder, findings);
    case::check_failure(document, folder, findings);
    answer.map_or(CaseCheck::Untyped, |case| CaseCheck::Answer(Box::new(case)))
}

/// Returns the answer if the document satisfies the schema of `case.v1`. `None` means undecided, also for a runner failure: the
/// caller applies the schema, which alone can explain what is wrong. The rules that no schema states are not checked.
pub(crate) fn conforming_answer(document: &Value) -> Option<Case> {
    // The type drops the failure of an answer, so it cannot tell whether that is well-formed.
    if document.get("runner_failure").is_some() || !has_strict_fields(document) {
        return None;
    }
    let case = Case::deserialize(document).ok()?;
    // The schema demands this of an attempt and of the cost, and the type does not.
    let is_attempt = |(attempt, outcome, is_failed): (u64, AttemptOutcome, bool)| {
        attempt > 0 && !(is_failed && outcome == AttemptOutcome::Ok)
    };
    let mut attempts =
        case.attempts.iter().flatten().map(|it| (it.attempt.get(), it.outcome, it.error_class.is_some()));
    let cost = case.usage.as_ref().and_then(|usage| usage.cost);
    let is_valid =
        matches!(case.outcome, Outcome::Ok(_)) && attempts.all(is_attempt) && cost.is_none_or(|cost| cost >= 0.0);
    is_valid.then_some(case)
}

/// False if a field has a value that its type reads as another one: null as a missing field, and `{"low": null}` as the word `low`.
fn has_strict_fields(case: &Value) -> bool {
    let lists =
        |object: &Value, field: &str, is_strict: fn(&Value) -> bool| items(object, field).all(|(_, it)| is_strict(it));
    is_strict(case, &["schema_version", "version", "status"], &["workflow_id", "attempts", "usage"])
        && lists(case, "attempts", |it| is_strict(it, &["outcome", "error_class"], &["latency_ms"]))
        && is_strict(&case["usage"], &[], &["input_tokens", "output_tokens", "cached_tokens", "cost", "currency"])
        && lists(case, "proposed_actions", |action| {
            is_strict(action, &["risk_level"], &[])
                && items(action, "evidence_refs").all(|(_, it)| is_strict(it, &["kind"], &["call_id", "doc_id", "id"]))
        })
        && lists(case, "events", |event| match event["type"].as_str() {
            Some("tool_call") => is_strict(event, &["risk_level"], &["action_id", "risk_tags", "annotations"]),
            Some("tool_result") => {
                let optional = ["action_id", "payload_summary", "payload_asset_href", "payload_asset_sha256"];
                is_strict(event, &["status"], &optional)
            }
            Some("retrieval") => is_strict(event, &[], &["snippets_hashes", "snippets_asset_href"]),
            Some("final_output") => is_strict(event, &["content_type"], &[]),
            _ => true,
        })
        && is_strict(&case["final_output"], &["content_type"], &["output_hash", "redactions_applied"])
}

/// True if the words of an object are strings, and its optional fields are not null.
fn is_strict(object: &Value, words: &[&str], optional: &[&str]) -> bool {
    words.iter().all(|field| object.get(field).is_none_or(Value::is_string))
        && optional.iter().all(|field| object.get(field).is_none_or(|value| !value.is_null()))
}

#[cfg(test)]
mod sample_answers;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod type_and_schema;
