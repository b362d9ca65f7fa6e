//! Answers for tests: one with every field of the schema, and changed copies of it.

use counterproof_artifact::pointer;
use proptest::prelude::*;
use serde_json::{Value, json};

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
        "usage": {"input_tokens": 9, "output_tokens": 2, "cached_tokens": 0, "cost": 0.5, "currency": "USD", "more": {}},
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
        "request_asset_href": "assets/x", "of_a_later_version": null,
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
