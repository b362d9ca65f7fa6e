//! The native protocol: `POST {base}/run-case` with the case, and the artifact's fields as the answer.
//!
//! `docs/runner.md` has the wire format. A response is an answer only when it holds to the contract. One rule is left to
//! the evaluator: evidence that does not resolve is what the agent claims, and it is the comparison that says what the
//! claim is worth.

use counterproof_artifact::check::{self, Code};
use counterproof_artifact::{Case, CaseId, Outcome, RunId, Side};
use counterproof_cases::{CaseSpec, Input};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::fault::{Fault, Reason, Violation};

/// The path below the base URL.
pub(crate) const PATH: &str = "run-case";

/// Fields of the artifact that the runner writes itself. What an agent says in them is kept beside, not believed.
const RUNNER_FIELDS: [&str; 4] = ["schema_version", "status", "attempts", "runner_failure"];

/// Levels of nesting that every reader of the artifact takes.
const MAX_DEPTH: usize = 127;

/// Where what the agent said in [`RUNNER_FIELDS`] is kept.
const AGENT_FIELDS: &str = "agent_fields";

#[derive(Serialize)]
struct RequestBody<'a> {
    case_id: &'a CaseId,
    version: Side,
    input: &'a Input,
    run_meta: RunMeta<'a>,
}

#[derive(Serialize)]
struct RunMeta<'a> {
    run_id: &'a RunId,
}

/// The body of the request for a case.
pub(crate) fn request(case: &CaseSpec, side: Side, run_id: &RunId) -> Result<Vec<u8>, serde_json::Error> {
    let body = RequestBody { case_id: &case.id, version: side, input: &case.input, run_meta: RunMeta { run_id } };
    serde_json::to_vec(&body)
}

/// Reads the body of a 2xx response as the answer to a case.
pub(crate) fn answer(body: &[u8], case_id: &CaseId, side: Side) -> Result<Case, Fault> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::new(Reason::EmptyBody, "the response has no body"));
    }
    let text = std::str::from_utf8(body).map_err(|error| {
        Fault::new(Reason::InvalidUtf8, format!("the body is not UTF-8 from byte {} on", error.valid_up_to()))
    })?;
    let mut fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(other) => {
            let message = format!("the response is {}, not an object", kind_of(&other));
            return Err(Fault::new(Reason::NotAnObject, message));
        }
        Err(error) => return Err(Fault::new(Reason::NotJson, format!("the body is not JSON: {error}"))),
    };
    expect_echo(&fields, "case_id", case_id.as_str(), Reason::OtherCase)?;
    expect_echo(&fields, "version", side.as_str(), Reason::OtherSide)?;
    let document = Value::Object(envelope(&mut fields, case_id, side));
    // What was set aside lies one level deeper than it came, and no reader takes more levels than these.
    if depth(&document) > MAX_DEPTH {
        return Err(Fault::new(Reason::NotJson, format!("the body is nested more than {MAX_DEPTH} deep")));
    }
    let violations: Vec<_> = check::artifact(&document)
        .into_iter()
        .filter(|finding| finding.code != Code::EvidenceUnresolved)
        .map(|finding| Violation {
            code: finding.code.as_str(),
            pointer: finding.pointer,
            message: finding.message,
            expected: finding.expected,
        })
        .collect();
    if !violations.is_empty() {
        let message = format!("the answer breaks the contract in {} places", violations.len());
        return Err(Fault { violations, ..Fault::new(Reason::ContractViolated, message) });
    }
    let case: Case = serde_json::from_value(document)
        .map_err(|error| Fault::new(Reason::ContractViolated, format!("the answer breaks the contract: {error}")))?;
    refuse_links(&case)?;
    Ok(case)
}

/// Agents may leave the echo out; one that names something else answers something else.
fn expect_echo(fields: &Map<String, Value>, field: &str, expected: &str, reason: Reason) -> Result<(), Fault> {
    match fields.get(field) {
        None => Ok(()),
        Some(Value::String(found)) if found == expected => Ok(()),
        Some(found) => {
            let message = format!("asked with `{field}` {expected:?}, answered with another");
            let violation = Violation {
                code: reason.name(),
                pointer: format!("/{field}"),
                message: format!("is {}", bounded(&found.to_string())),
                expected: format!("{expected:?}, as asked"),
            };
            Err(Fault { violations: vec![violation], ..Fault::new(reason, message) })
        }
    }
}

/// The artifact as a document: the runner's envelope first, then what the agent said.
fn envelope(fields: &mut Map<String, Value>, case_id: &CaseId, side: Side) -> Map<String, Value> {
    let mut said = Map::new();
    for field in RUNNER_FIELDS {
        if let Some(value) = fields.shift_remove(field) {
            said.insert(field.to_owned(), value);
        }
    }
    let mut document = Map::new();
    document.insert("schema_version".to_owned(), "case.v1".into());
    document.insert("case_id".to_owned(), case_id.as_str().into());
    document.insert("version".to_owned(), side.as_str().into());
    document.insert("status".to_owned(), "ok".into());
    for (field, value) in std::mem::take(fields) {
        document.entry(field).or_insert(value);
    }
    // An agent that writes the contract's own envelope says nothing new with it.
    let new = |field: &str, value: &Value| document.get(field) != Some(value);
    said.retain(|field, value| new(field, value));
    if !said.is_empty() {
        document.insert(AGENT_FIELDS.to_owned(), Value::Object(said));
    }
    document
}

/// A response carries no files, so a link to one cannot hold.
fn refuse_links(case: &Case) -> Result<(), Fault> {
    let Outcome::Ok(answer) = &case.outcome else { return Ok(()) };
    let linked = |(index, event): (usize, &counterproof_artifact::Event)| {
        event.asset_href().map(|href| Violation {
            code: Reason::AssetNotDelivered.name(),
            pointer: format!("/events/{index}"),
            message: format!("links to `{}`, which the response does not carry", bounded(href.as_str())),
            expected: "the payload itself; the runner moves a large one into an asset".to_owned(),
        })
    };
    let violations: Vec<_> = answer.events.iter().enumerate().filter_map(linked).collect();
    if violations.is_empty() {
        return Ok(());
    }
    Err(Fault {
        violations,
        ..Fault::new(Reason::AssetNotDelivered, "the answer links to files, which a response cannot carry")
    })
}

/// A value of the agent's within a message.
fn bounded(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// How many arrays and objects lie within one another.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(response: &Value) -> Result<Value, Fault> {
        let case = answer(response.to_string().as_bytes(), &"refund_001".parse().unwrap(), Side::New)?;
        Ok(serde_json::to_value(case).unwrap())
    }

    fn minimal() -> Value {
        json!({"proposed_actions": [], "events": [], "final_output": {"content_type": "text", "content": "done"}})
    }

    fn reason(response: &Value) -> Reason {
        ask(response).unwrap_err().reason
    }

    #[test]
    fn the_least_answer_becomes_an_artifact() {
        let case = ask(&minimal()).unwrap();
        assert_eq!(case["schema_version"], "case.v1");
        assert_eq!(
            (&case["case_id"], &case["version"], &case["status"]),
            (&json!("refund_001"), &json!("new"), &json!("ok"))
        );
    }

    #[test]
    fn fields_that_nobody_knows_are_kept_and_the_runner_s_own_are_set_aside() {
        let mut response = minimal();
        response["model"] = json!("m-1");
        response["workflow_id"] = json!("refunds");
        response["status"] = json!("completed");
        response["schema_version"] = json!("case.v1");
        let case = ask(&response).unwrap();
        assert_eq!((&case["model"], &case["workflow_id"]), (&json!("m-1"), &json!("refunds")));
        assert_eq!((&case["status"], &case["agent_fields"]), (&json!("ok"), &json!({"status": "completed"})));
    }

    #[test]
    fn an_answer_to_another_case_or_of_the_other_side_is_none() {
        let with = |field: &str, value: Value| {
            let mut response = minimal();
            response[field] = value;
            reason(&response)
        };
        assert_eq!(with("case_id", json!("refund_002")), Reason::OtherCase);
        assert_eq!(with("case_id", json!(null)), Reason::OtherCase);
        assert_eq!(with("version", json!("baseline")), Reason::OtherSide);
    }

    #[test]
    fn json_of_another_shape_is_no_answer() {
        for response in [json!(null), json!([minimal()]), json!("done"), json!(1)] {
            assert_eq!(reason(&response), Reason::NotAnObject, "{response}");
        }
        assert_eq!(reason(&json!({})), Reason::ContractViolated);
        assert_eq!(reason(&json!({"error": "unknown case"})), Reason::ContractViolated);
    }

    #[test]
    fn bodies_that_are_not_json_are_told_apart() {
        let reason = |body: &[u8]| answer(body, &"a".parse().unwrap(), Side::New).unwrap_err().reason;
        assert_eq!(reason(b" \r\n"), Reason::EmptyBody);
        assert_eq!(reason(b"{\"a\": \"\xff\"}"), Reason::InvalidUtf8);
        assert_eq!(reason(b"<html>"), Reason::NotJson);
        assert_eq!(reason("[".repeat(100_000).as_bytes()), Reason::NotJson);
    }

    #[test]
    fn what_is_set_aside_makes_no_artifact_too_deep_to_read() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let with = |levels| {
            let mut response = minimal();
            response["status"] = nested(levels);
            ask(&response)
        };
        let case = with(MAX_DEPTH - 2).unwrap();
        assert!(serde_json::from_str::<Value>(&case.to_string()).is_ok());
        assert_eq!(with(MAX_DEPTH - 1).unwrap_err().reason, Reason::NotJson);
    }

    #[test]
    fn a_link_to_a_file_is_refused() {
        let mut response = minimal();
        response["events"] = json!([
            {"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "t", "args": {}},
            {"type": "tool_result", "ts": 2, "call_id": "c1", "status": "ok", "latency_ms": 1,
             "payload_asset_href": "assets/payload.json"}
        ]);
        assert_eq!(reason(&response), Reason::AssetNotDelivered);
    }
}
