//! The native protocol: `POST {base}/run-case` with the case, and the artifact's fields as the answer.
//!
//! `docs/runner.md` describes the wire format. A response is an answer only if it satisfies the contract.

use counterproof_artifact::{Case, CaseId, Outcome, RunId, Side};
use counterproof_cases::Input;
use counterproof_validation::{Code, validate_case};
use serde::Serialize;
use serde_json::{Map, Value};

use super::protocol::RiskTable;
use super::{AnswerContext, ProtocolAdapter, RequestInput, answer, lenient};
use crate::failure::{Fault, Reason, Violation};

/// Fields of the artifact that the runner writes itself. Values that an agent sends in them move to [`AGENT_FIELDS`].
const RUNNER_FIELDS: [&str; 5] = ["schema_version", "status", "attempts", "runner_failure", AGENT_FIELDS];

/// The field for values that the agent sent in [`RUNNER_FIELDS`].
const AGENT_FIELDS: &str = "agent_fields";

/// The native protocol.
#[derive(Default)]
pub(super) struct Native {
    pub(super) risk: RiskTable,
    /// Whether missing parts of an answer are violations instead of being filled in.
    pub(super) strict_wire: bool,
}

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

impl ProtocolAdapter for Native {
    fn path(&self) -> &'static str {
        "run-case"
    }

    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let RequestInput { case, side, run_id, .. } = request_input;
        let run_meta = RunMeta { run_id };
        serde_json::to_vec(&RequestBody { case_id: &case.id, version: side, input: &request_input.input(), run_meta })
    }

    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault> {
        let fields = object(body)?;
        // Before `merge`, which replaces the echoed fields by the runner's.
        expect_echo(&fields, "case_id", context.case_id.as_str(), Reason::OtherCase)?;
        expect_echo(&fields, "version", context.side.as_str(), Reason::OtherSide)?;
        let mut fields = fields;
        if !self.strict_wire {
            lenient::fill_in(&mut fields, &self.risk, context);
        }
        let case = artifact(merge(fields, context))?;
        reject_links(&case)?;
        Ok(case)
    }
}

/// Checks a field that echoes the request.
fn expect_echo(fields: &Map<String, Value>, field: &str, expected: &str, reason: Reason) -> Result<(), Fault> {
    // Agents may omit it, but a different value means an answer to another request.
    match fields.get(field) {
        None => Ok(()),
        Some(Value::String(found)) if found == expected => Ok(()),
        Some(found) => {
            let message = format!("the answer has another `{field}` than the requested {expected:?}");
            let violation = Violation {
                code: reason.name(),
                pointer: format!("/{field}"),
                message: format!("is {}", bounded(&found.to_string())),
                expected: format!("{expected:?}, as in the request"),
            };
            Err(Fault { violations: vec![violation], ..Fault::new(reason, message) })
        }
    }
}

/// Builds the document of the artifact: the runner's envelope, then the agent's fields.
fn merge(mut fields: Map<String, Value>, context: AnswerContext<'_>) -> Map<String, Value> {
    let mut set_aside = Map::new();
    for field in RUNNER_FIELDS {
        // Not `swap_remove`: the artifact has the fields in the order of the answer.
        if let Some(value) = fields.shift_remove(field) {
            set_aside.insert(field.to_owned(), value);
        }
    }
    // Agents may have sent a field of this name before the contract had one. A number for information must not fail a case.
    if fields.get("usage").is_some_and(|usage| !answer::is_valid(usage)) {
        set_aside.extend(fields.shift_remove("usage").map(|value| ("usage".to_owned(), value)));
    }
    let mut document = envelope(context);
    for (field, value) in fields {
        document.entry(field).or_insert(value);
    }
    // Values equal to the runner's own envelope carry no information.
    let differs = |field: &str, value: &Value| document.get(field) != Some(value);
    set_aside.retain(|field, value| differs(field, value));
    if !set_aside.is_empty() {
        document.insert(AGENT_FIELDS.to_owned(), Value::Object(set_aside));
    }
    document
}

/// Rejects references to files, because a response carries no files.
fn reject_links(case: &Case) -> Result<(), Fault> {
    let Outcome::Ok(answer) = &case.outcome else { return Ok(()) };
    let violation = |(index, event): (usize, &counterproof_artifact::Event)| {
        event.asset_href().map(|href| Violation {
            code: Reason::AssetNotDelivered.name(),
            pointer: format!("/events/{index}"),
            message: format!("references `{}`, which the response does not contain", bounded(href.as_str())),
            expected: "the payload itself; the runner moves a large one into an asset".to_owned(),
        })
    };
    let violations: Vec<_> = answer.events.iter().enumerate().filter_map(violation).collect();
    if violations.is_empty() {
        return Ok(());
    }
    Err(Fault {
        violations,
        ..Fault::new(Reason::AssetNotDelivered, "the answer references files, which a response cannot contain")
    })
}

/// The nesting depth that every reader of an artifact supports.
const MAX_DEPTH: usize = 127;

/// Returns a body as text that is not blank.
pub(super) fn text(body: &[u8]) -> Result<&str, Fault> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::new(Reason::EmptyBody, "the response has no body"));
    }
    // Checked first: a JSON parser would report invalid UTF-8 as a syntax error.
    std::str::from_utf8(body).map_err(|error| {
        Fault::new(Reason::InvalidUtf8, format!("the body is not UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// Parses a body as a JSON object.
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    let text = text(body)?;
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => {
            let message = format!("the response is {}, not an object", kind_of(&other));
            Err(Fault::new(Reason::NotAnObject, message))
        }
        Err(error) => Err(Fault::new(Reason::NotJson, format!("the body is not JSON: {error}"))),
    }
}

/// Returns the envelope of an answer, which the runner writes. The agent's fields follow it.
pub(super) fn envelope(context: AnswerContext<'_>) -> Map<String, Value> {
    let mut document = Map::new();
    document.insert("schema_version".to_owned(), "case.v1".into());
    document.insert("case_id".to_owned(), context.case_id.as_str().into());
    document.insert("version".to_owned(), context.side.as_str().into());
    document.insert("status".to_owned(), "ok".into());
    document
}

/// Validates a document and converts it into an artifact.
pub(super) fn artifact(document: Map<String, Value>) -> Result<Case, Fault> {
    // Unresolved evidence is accepted: it is a claim of the agent that the evaluator assesses.
    let document = Value::Object(document);
    // Fields that were set aside are one level deeper than in the answer.
    if depth(&document) > MAX_DEPTH {
        return Err(Fault::new(Reason::NotJson, format!("the body is nested more than {MAX_DEPTH} deep")));
    }
    let violations: Vec<_> = validate_case(&document)
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
        let message = format!("the answer violates the contract in {} places", violations.len());
        return Err(Fault { violations, ..Fault::new(Reason::ContractViolated, message) });
    }
    serde_json::from_value(document)
        .map_err(|error| Fault::new(Reason::ContractViolated, format!("the answer violates the contract: {error}")))
}

/// Truncates a value of the agent for a message.
pub(super) fn bounded(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the nesting depth of arrays and objects.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the JSON type of a value with its article.
pub(super) const fn kind_of(value: &Value) -> &'static str {
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
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn answer(body: &[u8]) -> Result<Case, Fault> {
        let case_id = "refund_001".parse().unwrap();
        let context =
            AnswerContext { case_id: &case_id, side: Side::New, received: Timestamp::UNIX_EPOCH, content_type: None };
        Native { strict_wire: true, ..Native::default() }.answer(body, context)
    }

    fn ask(response: &Value) -> Result<Value, Fault> {
        Ok(serde_json::to_value(answer(response.to_string().as_bytes())?).unwrap())
    }

    fn minimal() -> Value {
        json!({"proposed_actions": [], "events": [], "final_output": {"content_type": "text", "content": "done"}})
    }

    fn reason(response: &Value) -> Reason {
        ask(response).unwrap_err().reason
    }

    #[test]
    fn the_smallest_answer_becomes_an_artifact() {
        let case = ask(&minimal()).unwrap();
        assert_eq!(case["schema_version"], "case.v1");
        assert_eq!(
            (&case["case_id"], &case["version"], &case["status"]),
            (&json!("refund_001"), &json!("new"), &json!("ok"))
        );
    }

    #[test]
    fn unknown_fields_are_retained_and_runner_fields_are_set_aside() {
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
    fn usage_in_another_form_does_not_fail_the_answer() {
        let mut response = minimal();
        response["usage"] = json!({"input_tokens": 9, "cost": 0.5, "currency": "EUR", "model_calls": 2});
        assert_eq!(ask(&response).unwrap()["usage"], response["usage"]);
        response["usage"] = json!({"cost": "0.5 EUR"});
        let case = ask(&response).unwrap();
        assert_eq!((&case["usage"], &case["agent_fields"]), (&Value::Null, &json!({"usage": {"cost": "0.5 EUR"}})));
    }

    #[test]
    fn an_agent_field_named_agent_fields_is_retained() {
        let mut response = minimal();
        response["agent_fields"] = json!({"mine": 1});
        assert_eq!(ask(&response).unwrap()["agent_fields"], json!({"agent_fields": {"mine": 1}}));
        response["status"] = json!("completed");
        let both = json!({"status": "completed", "agent_fields": {"mine": 1}});
        assert_eq!(ask(&response).unwrap()["agent_fields"], both);
    }

    #[test]
    fn an_answer_to_another_case_or_of_the_other_side_is_rejected() {
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
    fn json_of_another_shape_is_rejected() {
        for response in [json!(null), json!([minimal()]), json!("done"), json!(1)] {
            assert_eq!(reason(&response), Reason::NotAnObject, "{response}");
        }
        assert_eq!(reason(&json!({})), Reason::ContractViolated);
        assert_eq!(reason(&json!({"error": "unknown case"})), Reason::ContractViolated);
    }

    #[test]
    fn bodies_that_are_not_json_have_reasons_of_their_own() {
        let reason = |body: &[u8]| answer(body).unwrap_err().reason;
        assert_eq!(reason(b" \r\n"), Reason::EmptyBody);
        assert_eq!(reason(b"{\"a\": \"\xff\"}"), Reason::InvalidUtf8);
        assert_eq!(reason(b"<html>"), Reason::NotJson);
        assert_eq!(reason("[".repeat(100_000).as_bytes()), Reason::NotJson);
    }

    #[test]
    fn fields_that_are_set_aside_respect_the_nesting_limit() {
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
    fn a_reference_to_a_file_is_rejected() {
        let mut response = minimal();
        response["events"] = json!([
            {"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "t", "args": {}},
            {"type": "tool_result", "ts": 2, "call_id": "c1", "status": "ok", "latency_ms": 1,
             "payload_asset_href": "assets/payload.json"}
        ]);
        assert_eq!(reason(&response), Reason::AssetNotDelivered);
    }
}
