//! Rules about the ids within an artifact: calls and actions are unique, and a result answers a call.

use std::collections::HashMap;

use serde_json::Value;

use super::Code;
use super::excerpt::quote;
use super::finding::Findings;
use super::value::items;

pub(super) fn check(document: &Value, findings: &mut Findings) {
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

/// The events of a type: the index and the `call_id` of each.
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
            let message = format!("the `{field}` {} stands at `/{list}/{earlier}` already", quote(id));
            findings.add(code, format!("/{list}/{index}/{field}"), message, "an id that no other has");
        } else {
            first.insert(id, index);
        }
    }
}
