//! Rules for the ids of an artifact: calls and actions are unique, and every result belongs to a call.

use std::collections::HashMap;

use serde_json::Value;

use crate::Code;
use crate::excerpt::quote;
use crate::finding::Findings;
use crate::json_value::items;

pub(crate) fn check(document: &Value, findings: &mut Findings) {
    let calls = events(document, "tool_call");
    unique(calls, "events", Code::DuplicateCallId, "call_id", findings);
    let actions = items(document, "proposed_actions").map(|(index, action)| (index, &action["action_id"]));
    unique(actions, "proposed_actions", Code::DuplicateActionId, "action_id", findings);

    let calls: HashMap<&str, usize> = ids(events(document, "tool_call")).map(|(index, id)| (id, index)).collect();
    for (index, id) in ids(events(document, "tool_result")) {
        if !calls.contains_key(id) {
            let message = format!("no `tool_call` among the events has the `call_id` {}", quote(id));
            findings.add(
                Code::ResultWithoutCall,
                format!("/events/{index}/call_id"),
                message,
                "the `call_id` of a `tool_call` in the same artifact",
            );
        }
    }
}

/// Returns the index and the `call_id` of each event of a type.
fn events<'a>(document: &'a Value, kind: &'static str) -> impl Iterator<Item = (usize, &'a Value)> {
    items(document, "events")
        .filter(move |(_, event)| event["type"] == kind)
        .map(|(index, event)| (index, &event["call_id"]))
}

fn ids<'a>(values: impl Iterator<Item = (usize, &'a Value)>) -> impl Iterator<Item = (usize, &'a str)> {
    values.filter_map(|(index, value)| Some((index, value.as_str()?)))
}

fn unique<'a>(
    values: impl Iterator<Item = (usize, &'a Value)>,
    list: &str,
    code: Code,
    field: &str,
    findings: &mut Findings,
) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, id) in ids(values) {
        if let Some(earlier) = first.get(id) {
            let message = format!("the `{field}` {} is already used at `/{list}/{earlier}`", quote(id));
            findings.add(code, format!("/{list}/{index}/{field}"), message, "a unique id");
        } else {
            first.insert(id, index);
        }
    }
}
