//! Each test applies the proposal to the answer that it was made from, so a path that finds nothing fails.

use std::sync::Arc;

use counterproof_artifact::Side;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::propose;
use crate::agent::http_endpoint::HttpEndpoint;
use crate::agent::protocol::RiskTable;
use crate::agent::{AnswerContext, ProtocolAdapter as _};

const USER: &str = "Where is my order?";

/// The TOML lines of the proposal, and the artifact that it makes of the answer.
struct Proposed {
    lines: Vec<String>,
    case: Value,
}

impl Proposed {
    fn output(&self) -> &Value {
        &self.case["final_output"]["content"]
    }

    /// The name, the arguments and the result of each call, as one text.
    fn calls(&self) -> Vec<String> {
        let events = self.case["events"].as_array().unwrap();
        let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
        let call = |event: &Value| {
            let result = of("tool_result").find(|result| result["call_id"] == event["call_id"]);
            let result = result.map(|result| format!(" {} {}", result["status"], result["payload_summary"]));
            format!("{} {}{}", event["tool"].as_str().unwrap(), event["args"], result.unwrap_or_default())
        };
        of("tool_call").map(call).collect()
    }
}

fn proposed(answer: &Value) -> Proposed {
    let mapping = propose(answer, USER);
    let lines = mapping.toml_lines();
    let endpoint = HttpEndpoint { mapping: Arc::new(mapping), risk: RiskTable::default() };
    let case_id = "c1".parse().unwrap();
    let context =
        AnswerContext { case_id: &case_id, side: Side::New, received: Timestamp::UNIX_EPOCH, content_type: None };
    let case = endpoint.answer(answer.to_string().as_bytes(), context);
    let case = case.unwrap_or_else(|fault| panic!("{lines:#?}: {fault:?}"));
    Proposed { lines, case: serde_json::to_value(case).unwrap() }
}

fn lines(answer: &Value) -> Vec<String> {
    proposed(answer).lines
}

#[test]
fn common_names_of_the_text() {
    for (answer, output) in [
        (json!({"reply": "x"}), "/reply"),
        (json!({"message": USER, "answer": "It is on its way."}), "/answer"),
        (json!({"message": USER, "text": USER, "say": "Soon."}), "/say"),
        (json!({"status": "ok", "data": {"reply": "x"}}), "/data/reply"),
        (json!({"response": {"output": {"text": "x"}}}), "/response/output/text"),
        (json!({"id": "a long id of the answer", "utterance": "It is on its way."}), "/utterance"),
        (json!({"answer": {"action": "create_ticket", "id": 7}}), "/answer"),
        (json!("text"), ""),
    ] {
        assert_eq!(lines(&answer)[0], format!("output = \"{output}\""), "{answer}");
    }
    assert!(propose(&json!({"ok": true}), USER).output.is_none());
}

#[test]
fn an_agent_with_steps_of_its_own_names() {
    let answer = json!({
        "result": {"say": "Refunded.", "did": [
            {"fn": "get_order", "input": {"id": 7}, "out": {"total": 5}}, {"fn": "refund", "input": {"n": 5}, "out": "ok"}]},
        "tok": {"in": 9, "out": 2}, "sources": [{"doc_id": "d1"}], "err": null});
    assert_eq!(
        lines(&answer),
        [
            "output = \"/result/say\"",
            "calls = { path = \"/result/did\", name = \"/fn\", arguments = \"/input\", result = \"/out\" }",
            "documents = { path = \"/sources\", id = \"/doc_id\" }",
            "usage = { input_tokens = \"/tok/in\", output_tokens = \"/tok/out\" }",
            "error = \"/err\"",
        ]
    );
}

#[test]
fn calls_in_several_steps() {
    let answer = json!({"output": "x", "steps": [
        {"thought": "first", "tools": [{"tool": "a", "args": {"n": 1}, "result": 1, "ok": true}]}, {"thought": "none", "tools": []},
        {"thought": "then", "tools": [{"tool": "b", "args": {}, "result": null, "ok": false}, {"tool": "c", "ok": true}]}]});
    let proposed = proposed(&answer);
    assert!(proposed.lines[1].contains("path = \"/steps/*/tools\", name = \"/tool\""), "{:?}", proposed.lines);
    assert_eq!(proposed.calls(), ["a {\"n\":1} \"ok\" \"1\"", "b {} \"error\" null", "c {} \"ok\" null"]);
}

#[test]
fn langgraph_messages() {
    let answer = json!({"messages": [
        {"type": "human", "content": USER, "id": "m1"},
        {"type": "ai", "content": "", "id": "m2", "usage_metadata": {"input_tokens": 9, "output_tokens": 1},
         "tool_calls": [{"name": "get_order", "args": {"id": 7}, "id": "t1", "type": "tool_call"}]},
        {"type": "tool", "content": "shipped", "name": "get_order", "tool_call_id": "t1", "status": "success"},
        {"type": "ai", "content": "It is on its way.", "id": "m4", "tool_calls": []}]});
    let proposed = proposed(&answer);
    assert_eq!(proposed.lines[0], "output = \"answer.messages[size(answer.messages) - 1].content\"");
    assert!(
        proposed.lines[1]
            .starts_with("calls = { path = \"/messages/*/tool_calls\", name = \"/name\", arguments = \"/args\"")
    );
    assert_eq!(proposed.output(), "It is on its way.");
    assert_eq!(proposed.calls(), ["get_order {\"id\":7} \"ok\" \"shipped\""]);
    assert_eq!(proposed.case["usage"]["input_tokens"], 9);
    let nested = self::proposed(&json!({"output": answer}));
    assert_eq!(nested.output(), "It is on its way.");
    assert_eq!(nested.calls().len(), 1);
}

#[test]
fn openai_messages_and_completions() {
    let call = json!({"id": "t1", "type": "function", "function": {"name": "get_order", "arguments": "{\"id\": 7}"}});
    let history = json!({"reply": "x", "messages": [
        {"role": "user", "content": USER}, {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "shipped"}, {"role": "assistant", "content": "x"}]});
    assert_eq!(proposed(&history).calls(), ["get_order {\"id\":7} \"ok\" \"shipped\""]);
    assert_eq!(lines(&history)[0], "output = \"/reply\"");
    let completion = json!({"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": null, "tool_calls": [call]}}],
                            "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    let completion = proposed(&completion);
    assert_eq!(completion.lines[0], "output = \"/choices/0/message/content\"");
    assert_eq!(completion.calls(), ["get_order {\"id\":7}"]);
    assert_eq!(completion.case["usage"], json!({"input_tokens": 3, "output_tokens": 4}));
    let responses = json!({"object": "response", "output": [
        {"type": "function_call", "call_id": "t1", "name": "get_order", "arguments": "{\"id\": 7}"},
        {"type": "function_call_output", "call_id": "t1", "output": "shipped"},
        {"type": "message", "content": [{"type": "output_text", "text": "On its way."}]}]});
    let responses = proposed(&responses);
    assert_eq!(responses.output(), "On its way.");
    assert_eq!(responses.calls(), ["get_order {\"id\":7} \"ok\" \"shipped\""]);
}

#[test]
fn anthropic_blocks() {
    let answer = json!({"role": "assistant", "type": "message", "content": [
        {"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "t1", "name": "get_order", "input": {"id": 7}}],
        "usage": {"input_tokens": 3, "output_tokens": 4}});
    let proposed = proposed(&answer);
    assert_eq!(proposed.output(), "Let me look.");
    assert_eq!(proposed.calls(), ["get_order {\"id\":7}"]);
}

#[test]
fn agents_sdk_items() {
    let answer = json!({"final_output": "On its way.", "new_items": [
        {"type": "tool_call_item", "raw_item": {"type": "function_call", "call_id": "t1", "name": "get_order", "arguments": "{\"id\": 7}"}},
        {"type": "tool_call_output_item", "output": "shipped", "raw_item": {"call_id": "t1", "output": "shipped"}},
        {"type": "message_output_item", "raw_item": {"content": [{"text": "On its way."}]}}]});
    let proposed = proposed(&answer);
    assert_eq!(proposed.output(), "On its way.");
    assert_eq!(proposed.calls(), ["get_order {\"id\":7} \"ok\" \"shipped\""]);
}

#[test]
fn agents_sdk_input_list() {
    let proposed = proposed(&json!([
        {"role": "user", "content": USER},
        {"type": "function_call", "call_id": "t1", "name": "get_order", "arguments": "{\"id\": 7}"},
        {"type": "function_call_output", "call_id": "t1", "output": "shipped"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "On its way."}]}]));
    assert_eq!(proposed.output(), "On its way.");
    assert_eq!(proposed.calls(), ["get_order {\"id\":7} \"ok\" \"shipped\""]);
}

#[test]
fn pydantic_ai_messages() {
    let messages = json!([
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": USER}]},
        {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "get_order", "args": "{\"id\": 7}", "tool_call_id": "t1"}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "get_order", "content": {"s": 1}, "tool_call_id": "t1"}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "On its way."}]}]);
    for answer in [json!({"output": "On its way.", "messages": messages}), json!({"all_messages": messages}), messages]
    {
        let proposed = proposed(&answer);
        assert_eq!(proposed.output(), "On its way.");
        assert_eq!(proposed.calls(), ["get_order {\"id\":7} \"ok\" {\"s\":1}"]);
    }
}

#[test]
fn streams_are_joined() {
    let chunks = json!([{"type": "token", "delta": "It is"}, {"type": "token", "delta": " here."}, {"type": "done", "text": "It is here."}]);
    assert_eq!(lines(&chunks)[0], "output = \"/*/delta\"");
    let openai = json!([{"choices": [{"delta": {"role": "assistant", "content": "a"}}]}, {"choices": [{"delta": {"content": "b"}}]}]);
    assert_eq!(proposed(&openai).output(), "ab");
    assert_eq!(lines(&json!(["a", "b"]))[0], "output = \"/*\"");
}

#[test]
fn actions_and_calls_of_langchain() {
    let answer = json!({"answer": "x", "intermediate_steps": [{"tool": "get_order", "tool_input": {"id": 7}, "observation": "shipped"}],
                        "proposed_actions": [{"name": "refund", "params": {"n": 1}}], "context": {"documents": ["d1", "d2"]}});
    let proposed = proposed(&answer);
    assert_eq!(proposed.calls(), ["get_order {\"id\":7} \"ok\" \"shipped\""]);
    assert_eq!(proposed.case["proposed_actions"].as_array().unwrap().len(), 1);
    assert_eq!(proposed.case["events"][0]["doc_ids"], json!(["d1", "d2"]));
}
