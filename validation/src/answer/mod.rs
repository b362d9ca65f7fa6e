//! Decides whether a document is an answer that satisfies its schema: by its type, which takes a fraction of the time of the schema.

use counterproof_artifact::{AttemptOutcome, Case, Outcome};
use serde::Deserialize;
use serde_json::Value;

use crate::json_value::items;

/// Returns the answer if the document satisfies the schema of `case.v1`. `None` means undecided, also for a runner failure: the
/// caller applies the schema, which alone can explain what is wrong. The rules that no schema states are not checked.
pub(crate) fn conforming_answer(document: &Value) -> Option<Case> {
    // The type drops the failure of an answer, so it cannot tell whether that is well-formed.
    if document.get("runner_failure").is_some() || !has_strict_fields(document) {
        return None;
    }
    let case = Case::deserialize(document).ok()?;
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
