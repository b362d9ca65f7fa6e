//! Traces in the JSON of OTLP and of OpenInference, and trajectories in ATIF.

use counterproof_sessions::event::{EventBody, LlmCall};
use counterproof_sessions::import::{Format, ImportedSession};
use counterproof_sessions::session::{Origin, SessionStatus};
use serde_json::{Value, json};

use crate::import_kit::{Files, history, jsonl, of_type, tokens, tools};

/// Returns a value as OTLP types it.
fn typed(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Bool(it) => json!({"boolValue": it}),
        Value::Array(items) => json!({"arrayValue": {"values": items.iter().map(typed).collect::<Vec<_>>()}}),
        Value::Object(fields) => json!({"kvlistValue": {"values": attributes(&Value::Object(fields.clone()))}}),
        Value::Null => json!({}),
    }
}

fn attributes(fields: &Value) -> Value {
    fields.as_object().unwrap().iter().map(|(key, value)| json!({"key": key, "value": typed(value)})).collect()
}

fn span(number: u64, name: &str, fields: &Value) -> Value {
    json!({
        "traceId": "5b8efff798038103d269b633813fc60c", "spanId": format!("{number:016x}"), "name": name, "kind": 3,
        "startTimeUnixNano": format!("{}", 1_700_000_000_000_000_000_u64 + number * 1_000_000_000),
        "endTimeUnixNano": format!("{}", 1_700_000_000_250_000_000_u64 + number * 1_000_000_000),
        "attributes": attributes(fields), "status": {},
    })
}

fn document(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]})
}

fn call(session: &ImportedSession, number: usize) -> LlmCall {
    if let EventBody::LlmCall(call) = of_type(session, "llm_call").remove(number).body { call } else { unreachable!() }
}

fn current_spans() -> Vec<Value> {
    let question = json!({"role": "user", "parts": [{"type": "text", "content": "Weather?"}]});
    let request = json!({"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "weather", "arguments": {"city": "Paris"}}], "finish_reason": "tool_call"});
    let answer = json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "result": "rainy"}]});
    let end =
        json!({"role": "assistant", "parts": [{"type": "text", "content": "It rains."}], "finish_reason": "stop"});
    let base = json!({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4", "gen_ai.request.max_tokens": 200, "gen_ai.conversation.id": "conv-1"});
    let with = |fields: Value| {
        let mut all = base.clone();
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        all
    };
    vec![
        span(1, "invoke_agent x", &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 999})),
        span(
            2,
            "chat gpt-4",
            &with(
                json!({"gen_ai.input.messages": [question], "gen_ai.output.messages": [request], "gen_ai.response.finish_reasons": ["tool_calls"], "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 50}),
            ),
        ),
        // As JSON text, which the conventions allow.
        span(
            3,
            "chat gpt-4",
            &with(
                json!({"gen_ai.input.messages": json!([question, request, answer]).to_string(), "gen_ai.output.messages": json!([end]).to_string(), "gen_ai.usage.input_tokens": 120, "gen_ai.usage.output_tokens": 6}),
            ),
        ),
        span(4, "GET /", &json!({"http.request.method": "GET"})),
    ]
}

#[test]
fn current_conventions_are_read() {
    let files = Files::new();
    files.write("trace.json", serde_json::to_string_pretty(&document(&current_spans())).unwrap());
    let imported = files.import();
    let session = imported.only();
    assert_eq!(session.head.session_id, "conv-1");
    assert_eq!(session.head.origin, Origin::Otlp);
    assert_eq!(session.head.title.as_deref(), Some("Weather?"));
    assert_eq!(tokens(session), (220, 11, 50, 2));
    let first = call(session, 0);
    assert_eq!(first.request.model.as_deref(), Some("gpt-4"));
    assert_eq!(first.request.max_tokens, 200);
    assert_eq!(first.request.temperature, Value::Null);
    assert_eq!(first.latency_ms, Some(250));
    let response = first.response.unwrap();
    assert_eq!(response.finish_reason.as_deref(), Some("tool_calls"));
    assert_eq!(response.tool_calls[0].function.arguments, r#"{"city":"Paris"}"#);
    assert_eq!(call(session, 1).response.unwrap().content.as_deref(), Some("It rains."));
    let tool = &tools(session)[0];
    assert_eq!((tool.tool_name.as_str(), tool.result.content.as_deref()), ("weather", Some("rainy")));
    assert_eq!(history(session, 1).as_array().unwrap().len(), 3);
    assert_eq!(imported.report.left_out["invoke_agent"], 1);
    assert_eq!(imported.report.left_out["(other span)"], 1);
    assert!((imported.report.coverage() - 1.0).abs() < f64::EPSILON);
}

#[test]
fn a_tool_span_is_the_tool_call_of_its_id() {
    let mut spans = current_spans();
    spans.push(span(5, "execute_tool weather", &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "gen_ai.tool.call.id": "call_1", "gen_ai.tool.call.arguments": {"city": "Paris"}, "gen_ai.tool.call.result": "rainy"})));
    spans.push(spans[4].clone());
    let mut failed = span(
        6,
        "execute_tool bash",
        &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash", "gen_ai.tool.call.arguments": "{\"command\":\"ls\"}", "error.type": "timeout"}),
    );
    failed["status"] = json!({"code": 2, "message": "too slow"});
    spans.push(failed);
    let files = Files::new();
    files.lines("trace.jsonl", &[document(&spans[..3]), document(&spans[3..])]);
    let imported = files.import();
    let session = imported.only();
    let found = tools(session);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].latency_ms, &found[0].arguments), (Some(250), &json!({"city": "Paris"})));
    assert_eq!((found[1].result.success, found[1].result.error.as_deref()), (Some(false), Some("too slow")));
    assert_eq!(of_type(session, "command").len(), 1);
    assert_eq!(session.head.status, SessionStatus::Failed, "a span without a parent failed");
}

#[test]
fn older_conventions_are_read() {
    let older = [
        json!({"gen_ai.system": "openai", "llm.request.type": "chat", "gen_ai.request.model": "gpt-3", "gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 2, "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi", "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Hello", "gen_ai.completion.0.finish_reason": "stop"}),
        json!({"gen_ai.system": "openai", "gen_ai.operation.name": "chat", "gen_ai.prompt": "Hi", "gen_ai.completion": "Hello", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2, "gen_ai.response.finish_reasons": ["stop"]}),
        json!({"gen_ai.system": "openai", "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}),
    ];
    let mut spans: Vec<Value> = (1..).zip(&older).map(|(number, fields)| span(number, "chat", fields)).collect();
    spans[2]["events"] = json!([
        {"name": "gen_ai.user.message", "timeUnixNano": "1", "attributes": attributes(&json!({"content": "Hi"}))},
        {"name": "gen_ai.choice", "timeUnixNano": "2", "attributes": attributes(&json!({"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello"}}))},
    ]);
    let files = Files::new();
    files.lines("trace.jsonl", &[document(&spans)]);
    let imported = files.import();
    let session = imported.only();
    assert_eq!(session.head.session_id, "5b8efff798038103d269b633813fc60c", "the trace");
    for number in 0..3 {
        let call = call(session, number);
        assert_eq!(call.request.messages, json!([{"role": "user", "content": "Hi"}]), "{number}");
        let response = call.response.unwrap();
        assert_eq!(
            (response.content.as_deref(), response.finish_reason.as_deref()),
            (Some("Hello"), Some("stop")),
            "{number}"
        );
        assert_eq!(response.usage.unwrap().total_tokens, Some(12));
    }
}

#[test]
fn spans_of_console_exporters_are_read() {
    let span = |number: u32, attributes: Value| {
        json!({
            "name": "chat", "context": {"trace_id": "0x5B8EFFF798038103D269B633813FC60C", "span_id": format!("0x{number:016x}"), "trace_state": "[]"},
            "kind": "SpanKind.CLIENT", "parent_id": null, "start_time": format!("2026-05-01T10:00:0{number}.000000Z"), "end_time": format!("2026-05-01T10:00:0{number}.500000Z"),
            "status": {"status_code": "UNSET"}, "attributes": attributes, "events": [], "resource": {},
        })
    };
    let spans: Vec<Value> = (1..3).map(|number| span(number, json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 1}))).collect();
    let pretty: String = spans.iter().map(|span| serde_json::to_string_pretty(span).unwrap() + "\n").collect();
    for (name, text) in
        [("spans.json", pretty), ("spans.jsonl", jsonl(&spans)), ("list.json", Value::from(spans.clone()).to_string())]
    {
        let files = Files::new();
        files.write(name, text);
        let imported = files.import();
        let session = imported.only();
        assert_eq!(session.head.session_id, "5b8efff798038103d269b633813fc60c", "{name}");
        assert_eq!(tokens(session), (6, 2, 0, 2), "{name}");
        assert_eq!(call(session, 0).latency_ms, Some(500));
    }
}

#[test]
fn open_inference_is_read() {
    let llm = json!({
        "openinference.span.kind": "LLM", "session.id": "sess-1", "llm.model_name": "gpt-4", "llm.invocation_parameters": "{\"temperature\": 0.5, \"max_tokens\": 9}",
        "llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be kind",
        "llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.contents.0.message_content.type": "text", "llm.input_messages.1.message.contents.0.message_content.text": "List",
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "bash", "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{\"command\":\"ls\"}",
        "llm.token_count.prompt": 10, "llm.token_count.completion": 4, "llm.token_count.total": 14, "llm.token_count.prompt_details.cache_read": 3, "llm.cost.total": 0.25,
        "llm.tools.0.tool.json_schema": "{\"name\":\"bash\"}",
    });
    let tool = json!({"openinference.span.kind": "TOOL", "session.id": "sess-1", "tool.name": "bash", "input.value": "{\"command\": \"ls\"}", "output.value": "a.rs", "tool_call.id": "c1"});
    let chain = json!({"openinference.span.kind": "CHAIN", "session.id": "sess-1", "input.value": "x"});
    let spans: Vec<Value> =
        (1..).zip([&chain, &llm, &tool]).map(|(number, fields)| span(number, "x", fields)).collect();
    let files = Files::new();
    files.lines("trace.jsonl", &[document(&spans)]);
    let imported = files.import();
    let session = imported.only();
    assert_eq!((session.head.session_id.as_str(), session.head.origin), ("sess-1", Origin::Openinference));
    assert_eq!(session.head.title.as_deref(), Some("List"));
    assert_eq!(tokens(session), (10, 4, 3, 1));
    let call = call(session, 0);
    assert_eq!(call.cost, Some(0.25));
    assert_eq!((call.request.temperature, call.request.max_tokens), (json!(0.5), json!(9)));
    assert_eq!(call.request.tools, json!([{"name": "bash"}]));
    assert_eq!(call.response.unwrap().tool_calls[0].function.name, "bash");
    let tool = &tools(session)[0];
    assert_eq!((&tool.arguments, tool.result.content.as_deref()), (&json!({"command": "ls"}), Some("a.rs")));
    assert_eq!(of_type(session, "command").len(), 1);
}

#[test]
fn atif_is_read() {
    let steps = json!([
        {"step_id": 1, "timestamp": "2026-05-01T10:00:00Z", "source": "system", "message": "Be kind"},
        {"step_id": 2, "timestamp": "2026-05-01T10:00:01Z", "source": "user", "message": "List the files"},
        {"step_id": 3, "timestamp": "2026-05-01T10:00:02Z", "source": "agent", "model_name": "gpt-5", "message": "I look.",
         "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}],
         "observation": {"results": [{"source_call_id": "c1", "content": "a.rs\nexit code 0"}]},
         "metrics": {"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 40, "cost_usd": 0.5}},
        {"step_id": 4, "source": "agent", "message": [{"type": "text", "text": "Done"}], "metrics": {"prompt_tokens": 120, "completion_tokens": 2}},
        {"step_id": 5, "source": "agent", "message": "no call", "llm_call_count": 0},
        {"step_id": 6, "source": "agent", "message": "copied", "is_copied_context": true, "metrics": {"prompt_tokens": 7}},
        {"step_id": 7, "source": "robot", "message": "?"},
    ]);
    let child = json!({"schema_version": "ATIF-v1.7", "trajectory_id": "t2", "agent": {"name": "helper", "version": "1"}, "steps": [
        {"step_id": 1, "source": "agent", "message": "deep", "metrics": {"prompt_tokens": 1, "completion_tokens": 1}},
    ]});
    let document = json!({
        "schema_version": "ATIF-v1.7", "session_id": "s-1", "agent": {"name": "a", "version": "1", "model_name": "gpt-4"}, "steps": steps,
        "subagent_trajectories": [child], "final_metrics": {"total_prompt_tokens": 9999},
    });
    let files = Files::new();
    files.write("trajectory.json", serde_json::to_string_pretty(&document).unwrap());
    let imported = files.import();
    let session = imported.only();
    assert_eq!((session.head.session_id.as_str(), session.head.origin), ("s-1", Origin::Atif));
    assert_eq!(session.head.title.as_deref(), Some("List the files"));
    assert_eq!(tokens(session), (221, 8, 40, 3), "the sum is of the steps");
    assert_eq!(call(session, 0).cost, Some(0.5));
    assert_eq!(call(session, 0).request.model.as_deref(), Some("gpt-5"));
    assert_eq!(call(session, 1).request.model.as_deref(), Some("gpt-4"));
    let second = history(session, 1);
    assert_eq!(second[2]["tool_calls"][0]["function"]["name"], "bash");
    assert_eq!(second[3], json!({"role": "tool", "tool_call_id": "c1", "content": "a.rs\nexit code 0"}));
    let EventBody::Command(command) = &of_type(session, "command")[0].body else { panic!() };
    assert_eq!(command.exit_code, Some(0));
    let agents: Vec<_> = of_type(session, "llm_call").into_iter().filter_map(|event| event.agent).collect();
    assert_eq!(agents, ["helper"]);
    assert_eq!(imported.report.opaque["step/robot"], 1);
    assert_eq!(imported.report.left_out["step/copied"], 1);
}

#[test]
fn a_given_format_is_not_guessed() {
    let files = Files::new();
    let path = files.lines("x.log", &[document(&current_spans())]);
    let imported = crate::import_kit::import_all(&[path], Some(Format::Otlp));
    assert_eq!(imported.only().head.session_id, "conv-1");
}
