//! Fast path for the schema `case.v1`, for answers that match it and violate only other rules.
//!
//! Makes the checks of the schema in one pass, without a lookup per key. `true` means that the answer matches the schema.
//! `false` means undecided: the caller validates against the schema, which reports the findings. Tests compare both.

use serde_json::Value;

use counterproof_artifact::Count;

/// Whether a field is required, and whether its value is valid.
enum Field {
    Required(bool),
    Optional(bool),
}

use Field::{Optional, Required};

/// True where the document is a valid answer. Runner failures are always left to the schema.
pub(crate) fn is_answer(document: &Value) -> bool {
    object(document, 7, |name, value| match name {
        "schema_version" => Required(value == "case.v1"),
        "case_id" => Required(value.is_string()),
        "version" => Required(is_one_of(value, &["baseline", "new"])),
        "status" => Required(value == "ok"),
        "proposed_actions" => Required(all(value, is_action)),
        "events" => Required(all(value, is_event)),
        "final_output" => Required(is_output(value)),
        "workflow_id" => Optional(value.is_string()),
        "attempts" => Optional(all(value, is_attempt)),
        "runner_failure" => Optional(false),
        _ => Optional(true),
    })
}

/// True for an object with valid fields and exactly this number of required fields. Keys are unique, so a count is enough.
fn object(value: &Value, required: usize, field: impl Fn(&str, &Value) -> Field) -> bool {
    let Value::Object(fields) = value else { return false };
    let mut found = 0;
    fields.iter().all(|(name, value)| match field(name, value) {
        Required(valid) => {
            found += 1;
            valid
        }
        Optional(valid) => valid,
    }) && found == required
}

fn all(value: &Value, is_valid: fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(is_valid))
}

fn strings(value: &Value) -> bool {
    all(value, Value::is_string)
}

fn is_one_of(value: &Value, words: &[&str]) -> bool {
    value.as_str().is_some_and(|text| words.contains(&text))
}

fn is_risk(value: &Value) -> bool {
    is_one_of(value, &["high", "medium", "low", "unknown"])
}

fn is_content(value: &Value) -> bool {
    value.is_string() || value.is_object()
}

fn is_content_type(value: &Value) -> bool {
    is_one_of(value, &["text", "json"])
}

fn is_attempt(value: &Value) -> bool {
    const CLASSES: [&str; 6] = ["timeout", "http_error", "invalid_json", "schema_mismatch", "network_error", "other"];
    let failed = value.get("outcome").is_some_and(|outcome| outcome == "runner_error");
    object(value, 3, |name, value| match name {
        "attempt" => Required(value.as_u64().is_some_and(|count| (1..=Count::MAX.get()).contains(&count))),
        "started_at" => Required(value.is_string()),
        "outcome" => Required(is_one_of(value, &["ok", "runner_error"])),
        "latency_ms" => Optional(value.is_number()),
        "error_class" => Optional(failed && is_one_of(value, &CLASSES)),
        _ => Optional(true),
    })
}

fn is_action(value: &Value) -> bool {
    object(value, 7, |name, value| match name {
        "action_id" | "action_type" | "tool_name" => Required(value.is_string()),
        "params" => Required(value.is_object()),
        "risk_level" => Required(is_risk(value)),
        "risk_tags" => Required(strings(value)),
        "evidence_refs" => Required(all(value, is_evidence)),
        _ => Optional(true),
    })
}

fn is_evidence(value: &Value) -> bool {
    let identifier = match value.get("kind").and_then(Value::as_str) {
        Some("tool_result") => "call_id",
        Some("retrieval_doc") => "doc_id",
        Some("event" | "asset") => "id",
        _ => return false,
    };
    object(value, 2, |name, value| match name {
        "kind" => Required(true),
        "call_id" | "doc_id" | "id" => Required(name == identifier && value.is_string()),
        _ => Optional(true),
    })
}

fn is_event(value: &Value) -> bool {
    let Some(kind) = value.get("type").and_then(Value::as_str) else { return false };
    let required = match kind {
        "tool_call" | "tool_result" => 3,
        "retrieval" | "final_output" => 2,
        _ => 0,
    };
    object(value, 2 + required, |name, value| match (kind, name) {
        (_, "type") => Required(true),
        (_, "ts") | ("tool_result", "latency_ms") => Required(value.is_number()),
        ("tool_call", "call_id" | "tool") | ("tool_result", "call_id") | ("retrieval", "query") => {
            Required(value.is_string())
        }
        ("tool_call", "args") => Required(value.is_object()),
        ("tool_call", "risk_level") => Optional(is_risk(value)),
        ("tool_call", "risk_tags") | ("retrieval", "snippets_hashes") => Optional(strings(value)),
        ("tool_call" | "tool_result", "action_id")
        | ("tool_result", "payload_asset_href")
        | ("retrieval", "snippets_asset_href") => Optional(value.is_string()),
        ("tool_result", "status") => Required(is_one_of(value, &["ok", "error"])),
        ("tool_result", "payload_summary") => Optional(is_content(value)),
        ("tool_result", "payload_asset_sha256") => Optional(is_digest(value)),
        ("retrieval", "doc_ids") => Required(strings(value)),
        ("final_output", "content_type") => Required(is_content_type(value)),
        ("final_output", "content") => Required(is_content(value)),
        _ => Optional(true),
    })
}

fn is_digest(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn is_output(value: &Value) -> bool {
    object(value, 2, |name, value| match name {
        "content_type" => Required(is_content_type(value)),
        "content" => Required(is_content(value)),
        "output_hash" => Optional(value.is_string()),
        "redactions_applied" => Optional(strings(value)),
        _ => Optional(true),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use counterproof_artifact::pointer;
    use counterproof_artifact::schema::Kind;

    /// The content of `assets/x`, which `full` links to.
    pub(crate) const ASSET: &[u8] = b"{}";

    /// Returns an answer with every field of the schema.
    pub(crate) fn full() -> Value {
        let hash = counterproof_artifact::Sha256Digest::from_bytes(ASSET).to_string();
        json!({
            "schema_version": "case.v1", "case_id": "a", "version": "new", "status": "ok", "workflow_id": "w",
            "attempts": [
                {"attempt": 1, "started_at": "2026-01-31T12:00:00Z", "latency_ms": 2.5, "outcome": "runner_error", "error_class": "timeout"},
                {"attempt": 2, "started_at": "2026-01-31", "outcome": "ok"},
            ],
            "proposed_actions": [{
                "action_id": "a1", "action_type": "write", "tool_name": "t", "params": {"a": null}, "risk_level": "low",
                "risk_tags": ["x"], "more": 1, "evidence_refs": [
                    {"kind": "tool_result", "call_id": "c1"}, {"kind": "retrieval_doc", "doc_id": "d", "why": []},
                    {"kind": "event", "id": "events[0]"}, {"kind": "event", "id": "e5"}, {"kind": "asset", "id": "assets/x"},
                ],
            }],
            "events": [
                {"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "t", "args": {}, "action_id": "a1", "risk_level": "high", "risk_tags": []},
                {"type": "tool_result", "ts": 2, "call_id": "c1", "action_id": "a1", "status": "ok", "latency_ms": 3,
                    "payload_summary": {"a": [1]}, "payload_asset_href": "assets/x", "payload_asset_sha256": hash},
                {"type": "tool_result", "ts": 2, "call_id": "c1", "status": "error", "latency_ms": 3, "payload_summary": "s"},
                {"type": "retrieval", "ts": 3, "query": "q", "doc_ids": ["d"], "snippets_hashes": ["h"], "snippets_asset_href": "assets/x"},
                {"type": "final_output", "ts": 4, "content_type": "json", "content": {"a": 1}},
                {"type": "thought", "ts": 5, "id": "e5", "args": 1, "status": null, "query": []},
            ],
            "final_output": {"content_type": "text", "content": "c", "output_hash": "h", "redactions_applied": ["r"]},
            "of_a_later_version": null,
        })
    }

    fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
        found.push(at.to_owned());
        match value {
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(i, item)| pointers(item, &format!("{at}/{i}"), found));
            }
            Value::Object(fields) => {
                fields.iter().for_each(|(key, value)| pointers(value, &pointer::child(at, key), found));
            }
            _ => {}
        }
    }

    #[test]
    fn a_full_answer_takes_the_fast_path_and_a_failure_does_not() {
        assert!(is_answer(&full()));
        let mut failed = full();
        failed["runner_failure"] = json!({});
        assert!(!is_answer(&failed));
    }

    /// Generates answers in which one value is replaced, removed or added.
    pub(crate) fn changed() -> impl Strategy<Value = Value> {
        let value = prop_oneof![
            Just(json!(null)),
            Just(json!(0)),
            Just(json!(1.5)),
            Just(json!(1e300)),
            Just(json!(u64::MAX)),
            Just(json!("ok")),
            Just(json!("low")),
            Just(json!("tool_call")),
            Just(json!("asset")),
            Just(json!([])),
            Just(json!(["a"])),
            Just(json!([1])),
            Just(json!({})),
            Just(json!({"kind": "event", "id": "x"})),
            Just(json!(true)),
        ];
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4, value).prop_map(
            |(place, other, change, value)| {
                let mut document = full();
                let mut all = Vec::new();
                pointers(&document, "", &mut all);
                let at = &all[place.index(all.len())];
                let elsewhere = document.pointer(&all[other.index(all.len())]).unwrap().clone();
                match (change, at.rsplit_once('/')) {
                    (0, _) | (_, None) => *document.pointer_mut(at).unwrap() = value,
                    (1, _) => *document.pointer_mut(at).unwrap() = elsewhere,
                    (2, Some((parent, key))) => match document.pointer_mut(parent).unwrap() {
                        Value::Object(fields) => drop(fields.remove(key)),
                        Value::Array(items) => items.push(value),
                        _ => unreachable!(),
                    },
                    (_, Some((parent, _))) => {
                        let key = all[other.index(all.len())].rsplit('/').next().unwrap().to_owned();
                        if let Value::Object(fields) = document.pointer_mut(parent).unwrap() {
                            fields.insert(key, value);
                        }
                    }
                }
                document
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_accepted_answer_matches_the_schema(document in changed()) {
            prop_assert!(!is_answer(&document) || crate::compiled_schema::validator(Kind::Case).is_valid(&document), "{document}");
        }
    }
}
