//! Exports of sessions to formats of others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod samples;

use std::collections::HashSet;

use camino::Utf8Path;
use counterproof_redaction::Redactor;
use counterproof_sessions::event::{
    Checkpoint, CheckpointState, Command, EventBody, EventError, LlmCall, LlmRequest, LlmResponse, Opaque,
    RequestedCall, SessionEvent, ToolCall, ToolResult, Usage,
};
use counterproof_sessions::format::{OtlpContent, atif, otlp};
use counterproof_sessions::import::{ImportOptions, ImportedSession, import};
use counterproof_sessions::session::SessionHead;
use counterproof_sessions::summary::Summary;
use counterproof_store::write::{Durability, write};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

fn spans(document: &Value) -> &Vec<Value> {
    document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    attributes.iter().find(|attribute| attribute["key"] == key).map_or(&Value::Null, |attribute| &attribute["value"])
}

/// Checks what OTLP/JSON demands of any document.
fn check_encoding(document: &Value) {
    let is_hex = |value: &Value, digits: usize| {
        let text = value.as_str().unwrap();
        text.len() == digits
            && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && text.contains(|c| c != '0')
    };
    let mut ids = HashSet::new();
    for span in spans(document) {
        assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16), "{span}");
        assert!(ids.insert(span["spanId"].as_str().unwrap()), "an id occurs twice: {span}");
        let times =
            ["startTimeUnixNano", "endTimeUnixNano"].map(|name| span[name].as_str().unwrap().parse::<u64>().unwrap());
        assert!(times[0] <= times[1]);
        for attribute in span["attributes"].as_array().unwrap() {
            assert!(attribute["key"].is_string());
            let value = attribute["value"].as_object().unwrap();
            assert_eq!(value.len(), 1);
            if let Some(number) = value.get("intValue") {
                number.as_str().unwrap().parse::<i64>().unwrap();
            }
        }
    }
    for span in &spans(document)[1..] {
        assert_eq!(span["parentSpanId"], spans(document)[0]["spanId"]);
    }
    assert!(document["resourceSpans"][0]["scopeSpans"][0]["schemaUrl"].as_str().unwrap().starts_with("https://"));
}

#[test]
fn spans_have_the_names_of_the_conventions() {
    let (head, events) = samples::good(1);
    let document = otlp(&head, &events, OtlpContent::Excluded);
    check_encoding(&document);
    let spans = spans(&document);
    let chat = spans.iter().find(|span| span["name"] == "chat gpt-5-mini").unwrap();
    assert_eq!(chat["kind"], 3);
    for (key, value) in [
        ("gen_ai.operation.name", json!({"stringValue": "chat"})),
        ("gen_ai.provider.name", json!({"stringValue": "openai"})),
        ("gen_ai.conversation.id", json!({"stringValue": head.session_id})),
        ("gen_ai.request.model", json!({"stringValue": "gpt-5-mini"})),
        ("gen_ai.usage.input_tokens", json!({"intValue": "1740"})),
        ("gen_ai.usage.cache_read.input_tokens", json!({"intValue": "870"})),
        ("gen_ai.response.finish_reasons", json!({"arrayValue": {"values": [{"stringValue": "tool_calls"}]}})),
    ] {
        assert_eq!(attribute(chat, key), &value, "{key}");
    }
    let tool = spans.iter().find(|span| span["name"] == "execute_tool bash").unwrap();
    assert_eq!(
        (tool["kind"].as_u64(), attribute(tool, "gen_ai.tool.name")),
        (Some(1), &json!({"stringValue": "bash"}))
    );
}

#[test]
fn texts_are_exported_on_request_only() {
    let (head, events) = samples::good(1);
    let without = otlp(&head, &events, OtlpContent::Excluded).to_string();
    for text in ["parse_date", "pytest", "dates.py", "careful"] {
        assert!(!without.contains(text), "{text}");
    }
    let document = otlp(&head, &events, OtlpContent::Included);
    check_encoding(&document);
    let chat = spans(&document).iter().find(|span| span["kind"] == 3).unwrap();
    let read =
        |key: &str| serde_json::from_str::<Value>(attribute(chat, key)["stringValue"].as_str().unwrap()).unwrap();
    assert_eq!(read("gen_ai.input.messages")[0]["parts"][0]["type"], "text");
    let output = read("gen_ai.output.messages");
    assert_eq!((&output[0]["role"], &output[0]["finish_reason"]), (&json!("assistant"), &json!("tool_calls")));
    assert_eq!(output[0]["parts"][1]["type"], "tool_call");
    assert_eq!(output[0]["parts"][1]["arguments"], json!({"command": "cat dates.py"}));
}

#[test]
fn failures_have_a_status_and_an_error_type() {
    let (head, events) = samples::bad(1);
    let document = otlp(&head, &events, OtlpContent::Excluded);
    let failed: Vec<_> = spans(&document).iter().filter(|span| span["status"]["code"] == 2).collect();
    let types: Vec<_> =
        failed.iter().map(|span| attribute(span, "error.type")["stringValue"].as_str().unwrap()).collect();
    assert_eq!(types, ["failed", "429", "tool_error", "500"]);
}

#[test]
fn a_trajectory_has_one_step_of_the_agent_for_each_model_call() {
    let (head, events) = samples::long(1);
    let trajectory = atif(&head, &events);
    assert_eq!(trajectory["schema_version"], "ATIF-v1.7");
    assert_eq!(trajectory["session_id"], head.session_id.as_str());
    let steps = trajectory["steps"].as_array().unwrap();
    let numbers: Vec<_> = steps.iter().map(|step| step["step_id"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=steps.len() as u64).collect::<Vec<_>>());
    let of = |source: &str| steps.iter().filter(|step| step["source"] == source).count();
    let summary = Summary::new(&events);
    assert_eq!((of("agent") as u64, of("system"), of("user")), (summary.llm_calls, 1, 3));
    let sum: u64 = steps.iter().filter_map(|step| step["metrics"]["prompt_tokens"].as_u64()).sum();
    assert_eq!(Some(sum), summary.tokens.prompt_tokens);
    assert_eq!(trajectory["final_metrics"]["total_prompt_tokens"], sum);
    let call = steps.iter().find(|step| step["tool_calls"].is_array()).unwrap();
    assert_eq!(call["tool_calls"][0]["function_name"], "bash");
    assert_eq!(call["observation"]["results"][0]["source_call_id"], call["tool_calls"][0]["tool_call_id"]);
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,20}", "(?s).{0,12}", Just("\u{202e}</script>".to_owned())]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        text().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (text(), text())
            .prop_map(|(role, text)| json!([{"role": role, "content": text}, text, {"type": "tool_use", "id": role}])),
        text().prop_map(
            |text| json!({"type": text, "content": [{"type": "text"}, [1]], "tool_calls": [1, {"id": text}]})
        ),
    ]
}

fn body() -> impl Strategy<Value = EventBody> {
    let usage = (any::<Option<u64>>(), any::<Option<u64>>()).prop_map(|(one, other)| Usage::new(one, other, one));
    let answer = (text(), proptest::option::of(text()), proptest::option::of(usage), value()).prop_map(
        |(text, id, usage, body)| {
            let tool_calls = vec![RequestedCall::new(id, text.clone(), text.clone())];
            LlmResponse { content: Some(text.clone()), tool_calls, usage, finish_reason: None, model: Some(text), body }
        },
    );
    let model = (value(), proptest::option::of(answer), any::<Option<u64>>(), value()).prop_map(
        |(messages, response, latency_ms, body)| {
            let request =
                LlmRequest { messages, body: json!({"system": body}), temperature: body, ..LlmRequest::default() };
            EventBody::LlmCall(LlmCall { request, response, latency_ms, cost: None })
        },
    );
    let tool = (text(), value(), proptest::option::of(text()), any::<Option<bool>>()).prop_map(
        |(tool_name, arguments, call_id, success)| {
            let result = ToolResult { success, content: call_id.clone(), truncated: None, error: None, sandbox: None };
            EventBody::ToolCall(ToolCall {
                tool_name,
                arguments: arguments.clone(),
                result,
                latency_ms: None,
                call_id,
                decision: Some(arguments),
            })
        },
    );
    let other = (text(), value()).prop_map(|(text, value)| {
        let state = CheckpointState {
            message_history: vec![value.clone()],
            current_step: text.clone(),
            workspace: value.clone(),
            tool_state: value,
        };
        EventBody::Checkpoint(Checkpoint { checkpoint_id: text, state, resumable: true, reason: None })
    });
    let command = (text(), any::<Option<i64>>()).prop_map(|(text, exit_code)| {
        let command = Some(counterproof_sessions::event::CommandLine::Shell(text));
        EventBody::Command(Command { command, exit_code, ..Command::default() })
    });
    prop_oneof![model, tool, other, command, value().prop_map(|data| EventBody::Opaque(Opaque { data }))]
}

fn events() -> impl Strategy<Value = Vec<SessionEvent>> {
    let event = (body(), any::<u32>(), proptest::option::of(text()), any::<bool>());
    proptest::collection::vec(event, 0..12).prop_map(|events| {
        let event = |(number, (body, second, agent, is_failed)): (usize, (EventBody, u32, Option<String>, bool))| {
            let time = Timestamp::from_second(i64::from(second)).unwrap();
            let mut event = SessionEvent::reconstructed(&number.to_string(), time, body);
            event.seq = Some(number as u64 + 1);
            event.agent = agent;
            event.error =
                is_failed.then(|| EventError { kind: "http".to_owned(), status: Some(500), message: "x".to_owned() });
            event
        };
        events.into_iter().enumerate().map(event).collect()
    })
}

proptest! {
    #[test]
    fn any_records_can_be_exported(events in events()) {
        let (head, _) = samples::good(0);
        for content in [OtlpContent::Excluded, OtlpContent::Included] {
            check_encoding(&otlp(&head, &events, content));
        }
        let trajectory = atif(&head, &events);
        let calls = events.iter().filter(|event| matches!(event.body, EventBody::LlmCall(_))).count();
        let steps = trajectory["steps"].as_array().unwrap();
        let answers = steps.iter().filter(|step| step["source"] == "agent").count();
        assert!(answers >= calls);
        for step in steps {
            assert!(step["message"].is_string() && step["timestamp"].is_string(), "{step}");
        }
    }
}

/// Writes a document, and returns what the importer makes of it.
fn imported(name: &str, document: &Value) -> (SessionHead, Vec<SessionEvent>) {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap().join(name);
    write(&path, document.to_string().as_bytes(), Durability::Cached).unwrap();
    let redactor = Redactor::broad([]).unwrap();
    let options = ImportOptions { format: None, since: None, redactor: &redactor };
    let mut sessions = Vec::new();
    let mut receive = |session: ImportedSession| {
        sessions.push((session.head.clone(), session.events().collect::<Vec<_>>()));
        Ok(())
    };
    let report = import(&[path], &options, &mut receive, &mut |_| ()).unwrap();
    assert!(report.coverage() >= 0.99 && report.problems.is_empty(), "{report:?}");
    assert_eq!(sessions.len(), 1, "one document is one session");
    sessions.remove(0)
}

#[test]
fn an_export_can_be_imported() {
    for (head, events) in [samples::good(1), samples::bad(2), samples::long(3)] {
        let before = Summary::new(&events);
        for (name, document) in
            [("spans.json", otlp(&head, &events, OtlpContent::Included)), ("trajectory.json", atif(&head, &events))]
        {
            let (read, records) = imported(name, &document);
            let after = Summary::new(&records);
            assert_eq!(read.session_id, head.session_id, "{name}");
            assert_eq!(after.llm_calls, before.llm_calls, "{name}");
            assert_eq!(after.tool_calls_by_tool, before.tool_calls_by_tool, "{name}");
            assert_eq!(after.tokens, before.tokens, "{name}");
        }
    }
}
