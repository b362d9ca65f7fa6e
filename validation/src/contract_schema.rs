//! The schemas of the contract, compiled once per process, and the check of a document against the schema of its kind.

use std::sync::LazyLock;

use counterproof_artifact::schema::Kind;
use serde_json::Value;

use crate::Code;
use crate::document_schema::DocumentSchema;
use crate::finding::{Findings, quote};

/// Returns the compiled schema of a kind of document.
pub(crate) fn schema(kind: Kind) -> &'static DocumentSchema {
    // One static per kind: compiling a schema takes milliseconds, and most commands need one or two of them.
    static RUN: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::Run));
    static CASE: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::Case));
    static FAILURE_META: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::FailureMeta));
    static ASSETS_MANIFEST: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::AssetsManifest));
    static EVALUATION: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::Evaluation));
    static LABELS: LazyLock<DocumentSchema> = LazyLock::new(|| compile(Kind::Labels));
    match kind {
        Kind::Run => &RUN,
        Kind::Case => &CASE,
        Kind::FailureMeta => &FAILURE_META,
        Kind::AssetsManifest => &ASSETS_MANIFEST,
        Kind::Evaluation => &EVALUATION,
        Kind::Labels => &LABELS,
    }
}

#[expect(clippy::expect_used, reason = "the schemas are part of the program, and a test compiles each of them")]
fn compile(kind: Kind) -> DocumentSchema {
    DocumentSchema::compile(kind.schema_version(), kind.document()).expect("an embedded schema is a schema")
}

/// Parts of schemas that a rule checks under another code.
const COVERED_BY_RULES: [&str; 1] = ["/$defs/bodyIsKept/"];

/// The kind that a document declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declared {
    /// A document of this contract.
    Known(Kind),
    /// An unknown version of one of its documents.
    UnknownVersion,
    /// A format from before the contract had versions, with its description.
    Older(&'static str),
    /// Not a document of the contract.
    Foreign,
}

pub(crate) fn declared(document: &Value) -> Declared {
    match document.get("schema_version").map(|version| version.as_str().unwrap_or_default()) {
        None => older_shape(document).map_or(Declared::Foreign, Declared::Older),
        Some(version) => match version.parse() {
            Ok(kind) => Declared::Known(kind),
            // In a tree, foreign files are skipped without a finding. A document of a newer version must not be.
            Err(_) if is_other_version(version) => Declared::UnknownVersion,
            Err(_) => Declared::Foreign,
        },
    }
}

/// True for another version of a known document, such as `case.v2`; false for `invoice.v1`.
fn is_other_version(text: &str) -> bool {
    let Some((name, version)) = text.rsplit_once(".v") else { return false };
    Kind::ALL.iter().any(|kind| kind.schema_version().rsplit_once(".v").is_some_and(|(known, _)| known == name))
        && version.starts_with(|c: char| c.is_ascii_digit())
}

/// Recognises the formats that runners and evaluators wrote before the contract had versions.
fn older_shape(document: &Value) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().all(|key| document.get(key).is_some());
    if document["runner_failure"]["type"] == "runner_fetch_failure" {
        return Some("a runner failure in the format before `case.v1`");
    }
    if has(&["run_id", "versions"]) || has(&["run_id", "started_at", "runner"]) {
        return Some("a `run.json` in the format before `run.v1`");
    }
    // A `case.v1` document that only lost its `schema_version` has a status.
    if has(&["case_id", "version", "final_output"]) && !has(&["status"]) {
        return Some("an agent's response in the format before `case.v1`");
    }
    if document["kind"].as_str().is_some_and(|kind| kind.starts_with("runner_") && kind.contains("_capture")) {
        return Some("the metadata of a body in the format before `failure-meta.v1`");
    }
    // An older evaluation is an array.
    let first = document.get(0)?;
    (first.get("case_id").is_some() && first.get("assertions").is_some())
        .then_some("an `evaluation.json` in the format before `evaluation.v1`")
}

/// Checks a document against the schema of the expected kind. Returns false if it is another kind of document, to which
/// no further rule applies.
pub(crate) fn check(expected: Kind, document: &Value, findings: &mut Findings) -> bool {
    let is_expected = check_kind(expected, document, findings);
    if is_expected {
        add_violations(expected, document, findings);
    }
    is_expected
}

/// Adds the violations of the schema of a kind.
pub(crate) fn add_violations(kind: Kind, document: &Value, findings: &mut Findings) {
    // `rules::case::check_failure` reports this part as `snippet-without-body`, which the schema would repeat.
    let is_covered = |path: &str| COVERED_BY_RULES.iter().any(|part| path.contains(part));
    schema(kind).add_findings(document, is_covered, findings);
}

/// Checks that a document does not declare to be of another kind or version.
pub(crate) fn check_kind(expected: Kind, document: &Value, findings: &mut Findings) -> bool {
    let wanted = || format!("`schema_version` `{expected}`");
    let version = || quote(document["schema_version"].as_str().unwrap_or_default());
    match declared(document) {
        Declared::Older(shape) => {
            findings.add(Code::OlderFormat, "", format!("this is {shape}"), wanted());
            return false;
        }
        Declared::UnknownVersion => {
            let message = format!("`schema_version` {} is not known", version());
            findings.add(Code::UnknownSchemaVersion, "/schema_version", message, wanted());
            return false;
        }
        Declared::Known(kind) if kind != expected => {
            let message = format!("this is a {kind} document, but a {expected} document is expected here");
            findings.add(Code::WrongDocument, "/schema_version", message, wanted());
            return false;
        }
        Declared::Foreign if document.get("schema_version").is_some_and(Value::is_string) => {
            let message = format!("`schema_version` {} is not known", version());
            findings.add(Code::UnknownSchemaVersion, "/schema_version", message, wanted());
            return false;
        }
        // A `schema_version` that is missing or not a string violates the schema, which reports it with the field.
        Declared::Known(_) | Declared::Foreign => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_schema_compiles_and_rejects_null() {
        for kind in Kind::ALL {
            assert!(!schema(kind).is_valid(&Value::Null), "{kind}");
        }
    }
}
