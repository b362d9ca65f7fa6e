//! Completes answers of the native protocol: an agent may leave out what the contract requires and the runner knows.
//!
//! The artifact is as strict as before, and lists what was filled in. What an agent sends is never replaced.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Map, Value, json};

use super::AnswerContext;
use super::protocol::RiskTable;

/// The field of an artifact with the names of the parts that the runner filled in.
pub(crate) const FILLED_IN: &str = "filled_in";

/// The field for the status of a tool that the contract has no word for, such as `timeout`.
const REPORTED_STATUS: &str = "reported_status";

/// Fills in the missing parts of an answer, and lists their names in the field [`FILLED_IN`].
pub(super) fn fill_in(answer: &mut Map<String, Value>, risk: &RiskTable, context: AnswerContext<'_>) {
    let mut filling = Filling { names: BTreeSet::new(), risk, ts: context.received.as_millisecond().into() };
    for list in ["proposed_actions", "events"] {
        filling.set(answer, list, || json!([]));
    }
    filling.output(answer);
    for action in objects(answer, "proposed_actions") {
        filling.action(action);
    }
    filling.action_ids(answer);
    for event in objects(answer, "events") {
        filling.event(event);
    }
    filling.call_ids(answer);
    if !filling.names.is_empty() {
        // A field of this name that the agent sent is replaced: only the runner knows what it filled in.
        answer.insert(FILLED_IN.to_owned(), filling.names.into_iter().collect());
    }
}

struct Filling<'a> {
    names: BTreeSet<&'static str>,
    risk: &'a RiskTable,
    /// The time of arrival.
    ts: Value,
}

impl Filling<'_> {
    /// Sets a field that is absent or null.
    fn set(&mut self, fields: &mut Map<String, Value>, name: &'static str, value: impl FnOnce() -> Value) {
        if fields.get(name).is_none_or(Value::is_null) {
            fields.insert(name.to_owned(), value());
            self.names.insert(name);
        }
    }

    /// A text is the content. The output itself stays required.
    fn output(&mut self, answer: &mut Map<String, Value>) {
        if let Some(text @ Value::String(_)) = answer.get_mut("final_output") {
            *text = json!({"content_type": "text", "content": text.take()});
            self.names.insert("content_type");
        } else if let Some(Value::Object(output)) = answer.get_mut("final_output") {
            self.content_type(output);
        }
    }

    fn content_type(&mut self, output: &mut Map<String, Value>) {
        let content_type = match output.get("content") {
            Some(Value::String(_)) => "text",
            Some(Value::Object(_)) => "json",
            _ => return,
        };
        self.set(output, "content_type", || content_type.into());
    }

    fn action(&mut self, action: &mut Map<String, Value>) {
        if let Some(tool) = action.get("tool_name").and_then(Value::as_str).map(str::to_owned) {
            self.set(action, "action_type", || tool.as_str().into());
            let level = self.risk.level(&tool);
            self.set(action, "risk_level", || json!(level));
        }
        for list in ["risk_tags", "evidence_refs"] {
            self.set(action, list, || json!([]));
        }
        for evidence in objects(action, "evidence_refs") {
            let name = match evidence.get("kind").and_then(Value::as_str) {
                Some("tool_result") => "call_id",
                Some("retrieval_doc") => "doc_id",
                _ => continue,
            };
            // The contract allows one identifier only, so the value moves.
            if !evidence.contains_key(name)
                && let Some(id) = evidence.shift_remove("id")
            {
                evidence.insert(name.to_owned(), id);
                self.names.insert(name);
            }
        }
    }

    /// Numbers the actions without an id.
    fn action_ids(&mut self, answer: &mut Map<String, Value>) {
        let mut used = ids(answer, "proposed_actions", "action_id");
        used.extend(ids(answer, "proposed_actions", "id"));
        let mut numbers = (1..).map(|number| format!("action_{number}")).filter(move |id| !used.contains(id));
        for action in objects(answer, "proposed_actions") {
            let own = action.get("id").filter(|id| id.is_string()).cloned();
            self.set(action, "action_id", || own.or_else(|| numbers.next().map(Value::from)).unwrap_or_default());
        }
    }

    fn event(&mut self, event: &mut Map<String, Value>) {
        let ts = self.ts.clone();
        self.set(event, "ts", || ts);
        match event.get("type").and_then(Value::as_str) {
            Some("tool_call") => self.event_id(event),
            Some("tool_result") => {
                self.event_id(event);
                self.set(event, "latency_ms", || 0.into());
                self.tool_status(event);
                // The contract has texts and objects; a list or a number is the same as its JSON text.
                if let Some(payload) = event.get_mut("payload_summary") {
                    match payload {
                        Value::String(_) | Value::Object(_) => {}
                        Value::Null => drop(event.shift_remove("payload_summary")),
                        other => {
                            *other = other.to_string().into();
                            self.names.insert("payload_summary");
                        }
                    }
                }
            }
            Some("retrieval") => {
                self.set(event, "query", || "".into());
                self.set(event, "doc_ids", || json!([]));
            }
            Some("final_output") => self.content_type(event),
            _ => {}
        }
    }

    /// Reads `id` as the id of the call.
    fn event_id(&mut self, event: &mut Map<String, Value>) {
        if let Some(id) = event.get("id").filter(|id| id.is_string()).cloned() {
            self.set(event, "call_id", || id);
        }
    }

    /// A status that the contract has no word for is an error, since an agent reports success as `ok`.
    fn tool_status(&mut self, event: &mut Map<String, Value>) {
        let Some(Value::String(status)) = event.get_mut("status") else { return };
        let known = match status.as_str() {
            "ok" | "error" => return,
            "success" | "succeeded" | "completed" | "done" => "ok",
            _ => "error",
        };
        let reported = std::mem::replace(status, known.to_owned());
        event.insert(REPORTED_STATUS.to_owned(), reported.into());
        self.names.insert("status");
    }

    /// Numbers the calls without an id. A result without one belongs to the first call before it that has no result yet.
    fn call_ids(&mut self, answer: &mut Map<String, Value>) {
        let used = ids(answer, "events", "call_id");
        let mut numbers = (1..).map(|number| format!("call_{number}")).filter(move |id| !used.contains(id));
        let mut open: VecDeque<String> = VecDeque::new();
        for event in objects(answer, "events") {
            let is_call = match event.get("type").and_then(Value::as_str) {
                Some("tool_call") => true,
                Some("tool_result") => false,
                _ => continue,
            };
            if is_call {
                self.set(event, "call_id", || numbers.next().map(Value::from).unwrap_or_default());
            } else if let Some(id) = open.front().cloned() {
                self.set(event, "call_id", || id.into());
            }
            let Some(id) = event.get("call_id").and_then(Value::as_str) else { continue };
            if is_call {
                open.push_back(id.to_owned());
            } else {
                open.retain(|call| call != id);
            }
        }
    }
}

/// Returns the objects in a list of an object.
fn objects<'v>(
    fields: &'v mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'v mut Map<String, Value>> + use<'v> {
    fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Returns the ids that the objects of a list have.
fn ids(fields: &Map<String, Value>, list: &str, name: &str) -> BTreeSet<String> {
    let items = fields.get(list).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.get(name)?.as_str()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::{RiskLevel, Side};
    use jiff::Timestamp;

    use super::*;
    use crate::agent::ProtocolAdapter as _;
    use crate::agent::native::Native;

    fn read_with(answer: &Value, strict_wire: bool) -> Option<Value> {
        let case_id = "c1".parse().unwrap();
        let received = Timestamp::from_millisecond(1_767_600_000_123).unwrap();
        let context = AnswerContext { case_id: &case_id, side: Side::New, received, content_type: None };
        let risk: RiskTable = [("issue_*".to_owned(), RiskLevel::High)].into_iter().collect();
        let case = Native { risk, strict_wire }.answer(answer.to_string().as_bytes(), context).ok()?;
        Some(serde_json::to_value(case).unwrap())
    }

    fn read(answer: &Value) -> Value {
        read_with(answer, false).unwrap()
    }

    #[test]
    fn a_text_is_an_answer() {
        let case = read(&json!({"final_output": "Done."}));
        assert_eq!(case["final_output"], json!({"content_type": "text", "content": "Done."}));
        assert_eq!((&case["proposed_actions"], &case["events"]), (&json!([]), &json!([])));
        assert_eq!(case["filled_in"], json!(["content_type", "events", "proposed_actions"]));
        assert!(read_with(&json!({"final_output": "Done."}), true).is_none());
        for incomplete in [json!({}), json!({"final_output": null}), json!({"final_output": {}}), json!({"error": "x"})]
        {
            assert!(read_with(&incomplete, false).is_none(), "{incomplete}");
        }
        assert_eq!(read(&json!({"final_output": {"content": {"a": 1}}}))["final_output"]["content_type"], "json");
    }

    #[test]
    fn missing_fields_of_actions_come_from_the_tool_and_the_configuration() {
        let case = read(&json!({
            "proposed_actions": [
                {"tool_name": "issue_refund", "params": {"n": 1}},
                {"action_id": "action_1", "action_type": "note", "tool_name": "add_note", "params": {}, "risk_level": "low",
                 "risk_tags": ["x"], "evidence_refs": [{"kind": "retrieval_doc", "id": "d1"}, {"kind": "tool_result", "id": "c1"}]},
            ],
            "events": [{"type": "retrieval", "ts": 1, "query": "q", "doc_ids": ["d1"]}],
            "final_output": {"content_type": "text", "content": "x"},
        }));
        assert_eq!(
            case["proposed_actions"][0],
            json!({"tool_name": "issue_refund", "params": {"n": 1}, "action_type": "issue_refund", "risk_level": "high",
                   "risk_tags": [], "evidence_refs": [], "action_id": "action_2"})
        );
        let second = &case["proposed_actions"][1];
        assert_eq!((&second["action_type"], &second["risk_level"]), (&json!("note"), &json!("low")));
        let refs = json!([{"kind": "retrieval_doc", "doc_id": "d1"}, {"kind": "tool_result", "call_id": "c1"}]);
        assert_eq!(second["evidence_refs"], refs);
        let expected = ["action_id", "action_type", "call_id", "doc_id", "evidence_refs", "risk_level", "risk_tags"];
        assert_eq!(case["filled_in"], json!(expected));
    }

    #[test]
    fn calls_without_an_id_are_numbered_and_their_results_follow_them() {
        let case = read(&json!({
            "events": [
                {"type": "tool_call", "tool": "a", "args": {}},
                {"type": "tool_call", "id": "own", "tool": "b", "args": {}},
                {"type": "tool_result", "status": "ok"},
                {"type": "tool_result", "id": "own", "status": "timeout", "payload_summary": [1]},
                {"type": "tool_call", "call_id": "call_1", "tool": "c", "args": {}},
                {"type": "tool_result", "status": "ok", "payload_summary": null},
                {"type": "final_output", "content": "x"},
            ],
            "final_output": "x",
        }));
        let ids: Vec<_> = (0..6).map(|index| case["events"][index]["call_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["call_2", "own", "call_2", "own", "call_1", "call_1"]);
        assert_eq!(case["events"][0]["ts"], 1_767_600_000_123_u64);
        let timeout = &case["events"][3];
        assert_eq!((&timeout["status"], &timeout["reported_status"]), (&json!("error"), &json!("timeout")));
        assert_eq!((&timeout["payload_summary"], &timeout["latency_ms"]), (&json!("[1]"), &json!(0)));
    }

    #[test]
    fn a_complete_answer_is_unchanged() {
        let complete = json!({
            "proposed_actions": [{"action_id": "a1", "action_type": "t", "tool_name": "t", "params": {}, "risk_level": "low",
                                  "risk_tags": [], "evidence_refs": [{"kind": "event", "id": "events[0]"}]}],
            "events": [{"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "t", "args": {}, "id": "e1"},
                       {"type": "tool_result", "ts": 2, "call_id": "c1", "status": "ok", "latency_ms": 1}],
            "final_output": {"content_type": "text", "content": "x"},
        });
        assert_eq!(read_with(&complete, false), read_with(&complete, true));
    }
}
