//! The native protocol: `POST {base}/run-case` with the case, and the artifact's fields as the answer.
//!
//! `docs/runner.md` has the wire format. A response is an answer only when it holds to the contract.

use counterproof_artifact::{Case, CaseId, Outcome, RunId, Side};
use counterproof_cases::Input;
use serde::Serialize;
use serde_json::{Map, Value};

use super::document::{self, bounded};
use super::{Answering, Asking, Dialect};
use crate::failure::{Fault, Reason, Violation};

/// Fields of the artifact that the runner writes itself. What an agent says in them is kept beside, not believed.
const RUNNER_FIELDS: [&str; 5] = ["schema_version", "status", "attempts", "runner_failure", AGENT_FIELDS];

/// Where what the agent said in [`RUNNER_FIELDS`] is kept.
const AGENT_FIELDS: &str = "agent_fields";

/// The native protocol.
pub(super) struct Native;

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

impl Dialect for Native {
    fn path(&self) -> &'static str {
        "run-case"
    }

    fn request(&self, Asking { case, side, run_id }: Asking<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let run_meta = RunMeta { run_id };
        serde_json::to_vec(&RequestBody { case_id: &case.id, version: side, input: &case.input, run_meta })
    }

    fn answer(&self, body: &[u8], answering: Answering<'_>) -> Result<Case, Fault> {
        let fields = document::object(body)?;
        expect_echo(&fields, "case_id", answering.case_id.as_str(), Reason::OtherCase)?;
        expect_echo(&fields, "version", answering.side.as_str(), Reason::OtherSide)?;
        let case = document::artifact(merge(fields, answering))?;
        refuse_links(&case)?;
        Ok(case)
    }
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
fn merge(mut fields: Map<String, Value>, answering: Answering<'_>) -> Map<String, Value> {
    let mut said = Map::new();
    for field in RUNNER_FIELDS {
        if let Some(value) = fields.shift_remove(field) {
            said.insert(field.to_owned(), value);
        }
    }
    let mut document = document::envelope(answering);
    for (field, value) in fields {
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::document::MAX_DEPTH;
    use super::*;

    fn answer(body: &[u8]) -> Result<Case, Fault> {
        let case_id = "refund_001".parse().unwrap();
        let answering = Answering { case_id: &case_id, side: Side::New, received: Timestamp::UNIX_EPOCH };
        Native.answer(body, answering)
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
    fn what_an_agent_says_under_the_name_of_what_is_set_aside_is_not_lost() {
        let mut response = minimal();
        response["agent_fields"] = json!({"mine": 1});
        assert_eq!(ask(&response).unwrap()["agent_fields"], json!({"agent_fields": {"mine": 1}}));
        response["status"] = json!("completed");
        let both = json!({"status": "completed", "agent_fields": {"mine": 1}});
        assert_eq!(ask(&response).unwrap()["agent_fields"], both);
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
        let reason = |body: &[u8]| answer(body).unwrap_err().reason;
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
