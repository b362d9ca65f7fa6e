//! Each violation of an artifact has its code and pointer.

use serde_json::json;

use super::*;

fn answer() -> Value {
    json!({
        "schema_version": "case.v1", "case_id": "refund_001", "version": "new", "status": "ok",
        "proposed_actions": [{
            "action_id": "a1", "action_type": "refund", "tool_name": "refund", "params": {}, "risk_level": "high",
            "risk_tags": [], "evidence_refs": [{"kind": "tool_result", "call_id": "c1"}]
        }],
        "events": [
            {"type": "tool_call", "ts": 1, "call_id": "c1", "tool": "find", "args": {}},
            {"type": "tool_result", "ts": 2.5, "call_id": "c1", "status": "ok", "latency_ms": 15000.0},
            {"type": "thought", "ts": 3, "anything": null}
        ],
        "final_output": {"content_type": "text", "content": "done"}
    })
}

fn failure() -> Value {
    json!({
        "schema_version": "case.v1", "case_id": "refund_001", "version": "new", "status": "runner_error",
        "runner_failure": {
            "class": "http_error", "url": "http://127.0.0.1/run-case", "attempt": 1, "status": 500,
            "body_snippet": "oops", "full_body_saved_to": "assets/b.txt", "full_body_meta_saved_to": null
        }
    })
}

/// Replaces one value of a valid document, or removes it for `None`, and returns the codes and pointers of the findings.
fn broken(mut document: Value, pointer: &str, value: Option<Value>) -> Vec<(Code, String)> {
    if let Some(value) = value {
        *document.pointer_mut(pointer).unwrap() = value;
    } else {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    }
    validate_case(&document).into_iter().map(|finding| (finding.code, finding.pointer)).collect()
}

#[test]
fn valid_artifacts_have_no_findings() {
    assert_eq!(validate_case(&answer()), []);
    assert_eq!(validate_case(&failure()), []);
}

/// A pointer, its new value (`None` removes the field), and the code and pointer of the expected finding.
type Break = (&'static str, Option<Value>, Code, &'static str);

fn assert_breaks(document: fn() -> Value, breaks: Vec<Break>) {
    for (pointer, value, code, expected) in breaks {
        let found = broken(document(), pointer, value.clone());
        assert_eq!(found, [(code, expected.to_owned())], "{pointer} = {value:?}");
    }
}

#[test]
fn each_break_of_an_answer_has_its_code_and_pointer() {
    use Code::*;
    let breaks = vec![
        ("/schema_version", None, MissingField, ""),
        ("/schema_version", Some(json!("case.v2")), UnknownSchemaVersion, "/schema_version"),
        ("/schema_version", Some(json!("invoice.v1")), UnknownSchemaVersion, "/schema_version"),
        ("/schema_version", Some(json!("run.v1")), WrongDocument, "/schema_version"),
        ("/schema_version", Some(json!(1)), WrongType, "/schema_version"),
        ("/case_id", Some(json!("../x")), UnsafeCaseId, "/case_id"),
        ("/case_id", Some(json!("NUL")), UnsafeCaseId, "/case_id"),
        ("/version", Some(json!("old")), WrongValue, "/version"),
        ("/version", Some(json!(null)), WrongType, "/version"),
        ("/status", Some(json!("failed")), WrongValue, "/status"),
        ("/final_output", None, MissingField, ""),
        ("/final_output", Some(json!(null)), WrongType, "/final_output"),
        ("/final_output/content", Some(json!([])), WrongType, "/final_output/content"),
        ("/proposed_actions/0/params", None, MissingField, "/proposed_actions/0"),
        ("/proposed_actions/0/risk_level", Some(json!("critical")), WrongValue, "/proposed_actions/0/risk_level"),
        ("/events/0/args", Some(json!([])), WrongType, "/events/0/args"),
        ("/events/1/latency_ms", None, MissingField, "/events/1"),
        ("/events/2/ts", None, MissingField, "/events/2"),
        ("/events/2/type", None, MissingField, "/events/2"),
        ("/events/0", Some(json!({"type": "later", "ts": 1})), ResultWithoutCall, "/events/1/call_id"),
    ];
    assert_breaks(answer, breaks);
}

#[test]
fn each_break_of_a_failure_has_its_code_and_pointer() {
    use Code::*;
    let breaks = vec![
        ("/runner_failure", None, MissingField, ""),
        ("/runner_failure/class", Some(json!("http_5xx")), WrongValue, "/runner_failure/class"),
        ("/runner_failure/status", None, MissingField, "/runner_failure"),
        ("/runner_failure/attempt", Some(json!(0)), WrongValue, "/runner_failure/attempt"),
        ("/runner_failure/attempt", Some(json!(1.5)), WrongType, "/runner_failure/attempt"),
        ("/runner_failure/body_snippet", None, MissingField, "/runner_failure"),
        (
            "/runner_failure/full_body_saved_to",
            Some(json!(null)),
            SnippetWithoutBody,
            "/runner_failure/full_body_saved_to",
        ),
        ("/runner_failure/full_body_saved_to", Some(json!("/b")), AbsolutePath, "/runner_failure/full_body_saved_to"),
        (
            "/runner_failure/full_body_meta_saved_to",
            Some(json!("assets/../../b")),
            HrefEscapes,
            "/runner_failure/full_body_meta_saved_to",
        ),
    ];
    assert_breaks(failure, breaks);
}

#[test]
fn an_evidence_ref_has_exactly_one_identifier() {
    let refs = "/proposed_actions/0/evidence_refs/0";
    let with = |evidence| broken(answer(), refs, Some(evidence));
    assert_eq!(with(json!({"kind": "retrieval_doc"})), [(Code::MissingField, refs.to_owned())]);
    assert_eq!(
        with(json!({"kind": "tool_result", "call_id": "c1", "id": "x"})),
        [(Code::UnexpectedField, format!("{refs}/id"))]
    );
    assert_eq!(with(json!({"kind": "web", "id": "x"})), [(Code::WrongValue, format!("{refs}/kind"))]);
}

#[test]
fn a_successful_attempt_has_no_error_class() {
    let mut document = answer();
    document["attempts"] = json!([
        {"attempt": 1, "started_at": "2026-01-31T12:00:00Z", "outcome": "runner_error", "error_class": "timeout"},
        {"attempt": 2, "started_at": "yesterday", "outcome": "ok", "error_class": "timeout"}
    ]);
    let found: Vec<_> = validate_case(&document).into_iter().map(|finding| (finding.code, finding.pointer)).collect();
    assert_eq!(
        found,
        [
            (Code::UnexpectedField, "/attempts/1/error_class".to_owned()),
            (Code::BadTimestamp, "/attempts/1/started_at".to_owned())
        ]
    );
}

#[test]
fn all_findings_are_reported_at_once() {
    let document = json!({"schema_version": "case.v1", "case_id": "a/b", "status": "ok", "events": [{}, 5], "proposed_actions": {}});
    let codes: Vec<Code> = validate_case(&document).iter().map(|finding| finding.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == Code::MissingField).count(), 4, "{codes:?}");
    assert!(codes.contains(&Code::WrongType) && codes.contains(&Code::UnsafeCaseId), "{codes:?}");
}

#[test]
fn messages_are_bounded_and_name_the_expected_value() {
    let mut document = answer();
    document["final_output"]["content_type"] = json!("x".repeat(1_000_000));
    document["events"][1].as_object_mut().unwrap().remove("latency_ms");
    let findings = validate_case(&document);
    for finding in &findings {
        assert!(finding.message.len() < 500 && finding.expected.len() < 500, "{finding:#?}");
    }
    assert!(
        findings.iter().any(|finding| finding.expected == "`latency_ms`: How long the tool took, in milliseconds.")
    );
    assert!(findings.iter().any(|finding| finding.expected == "one of `text`, `json`"));
}

#[test]
fn the_list_of_findings_is_bounded() {
    let mut document = answer();
    document["events"] = vec![json!(1); 5000].into();
    let findings = validate_case(&document);
    assert_eq!(findings.len(), crate::MAX_FINDINGS + 1);
    let last = findings.last().unwrap();
    assert_eq!((last.code, last.message.as_str()), (Code::MoreFindings, "4001 more findings are not listed"));
}

#[test]
fn older_formats_are_named() {
    let shapes = [
        json!({"case_id": "a", "version": "new", "proposed_actions": [], "events": [], "final_output": {}}),
        json!({"case_id": "a", "version": "new", "runner_failure": {"type": "runner_fetch_failure"}}),
        json!({"run_id": "r", "started_at": 1, "versions": ["baseline", "new"], "runner": {}}),
    ];
    for shape in shapes {
        let findings = validate_case(&shape);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0].code, Code::OlderFormat);
        assert!(findings[0].message.contains("before `"), "{}", findings[0].message);
    }
}
