//! OpenAI's Responses: `POST {base}/responses` with an input, and a list of output items as the answer.
//!
//! The formats follow the public API reference. `docs/protocols.md` lists the conversion of each item.

use std::borrow::Cow;

use counterproof_artifact::Case;
use serde_json::{Map, Value, json};

use super::answer::{self, Builder, ExecutedBy, OutputFormat, ToolCall, unreadable};
use super::dialogue::{CallKind, CallResult, Dialogue, Reply, RequestedCall, ToolDefinition};
use super::protocol::{AgentOptions, Protocol};
use super::{AnswerContext, ProtocolAdapter, RequestInput, native, streamed_answer};
use crate::failure::{Fault, Reason};

/// Fields of the answer to copy into the artifact, with their names there.
const COPIED_FIELDS: [(&str, &str); 5] = [
    ("id", "response_id"),
    ("model", "model"),
    ("created_at", "created"),
    ("service_tier", "service_tier"),
    ("status", "response_status"),
];

pub(super) struct OpenaiResponses {
    pub(super) options: AgentOptions,
}

impl ProtocolAdapter for OpenaiResponses {
    fn path(&self) -> &'static str {
        "responses"
    }

    fn request(&self, request_input: RequestInput<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let mut case_fields = Map::new();
        if let Some(system) = &self.options.system_prompt {
            case_fields.insert("instructions".to_owned(), system.as_str().into());
        }
        case_fields.insert("input".to_owned(), request_input.chat_messages().collect());
        self.options.request(request_input, self, case_fields)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        streamed_answer::document(body, streamed_answer::responses)
    }

    fn answer(&self, body: &[u8], context: AnswerContext<'_>) -> Result<Case, Fault> {
        let fields = native::object(body)?;
        answer::reject_errors(&fields)?;
        // `incomplete` is not among them: a truncated answer is an answer, and `finish_reason` records the cause.
        if let Some(status @ ("failed" | "cancelled" | "queued" | "in_progress")) =
            fields.get("status").and_then(Value::as_str)
        {
            return Err(Fault::new(Reason::AgentError, format!("the agent answered that the response is {status}")));
        }
        let items = match fields.get("output") {
            Some(Value::Array(items)) => items,
            other => return Err(unreadable("/output", other.unwrap_or(&Value::Null), "an array of items")),
        };
        let mut builder = Builder::new(context, &self.options.risk, fields.get("created_at"));
        let mut received = Messages::default();
        for (index, item) in items.iter().enumerate() {
            add_item(index, item, &mut received, &mut builder)?;
        }
        let output = self.output(&received);
        let mut extra_fields = answer::copy_fields(&fields, &COPIED_FIELDS);
        extra_fields.extend(answer::from_openai(&fields));
        if let Some(reason) =
            fields.get("incomplete_details").map(|details| &details["reason"]).filter(|r| r.is_string())
        {
            extra_fields.insert("finish_reason".to_owned(), reason.clone());
        }
        builder.finish(Protocol::OpenaiResponses, output, extra_fields)
    }

    fn dialogue(&self) -> Option<&dyn Dialogue> {
        Some(self)
    }
}

impl Dialogue for OpenaiResponses {
    fn reply(&self, body: &[u8]) -> Reply {
        let mut answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let messages = match answer["output"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let calls = messages.iter().filter_map(|item| {
            let id = if item["call_id"].is_string() { &item["call_id"] } else { &item["id"] };
            match item["type"].as_str()? {
                "function_call" => RequestedCall::new(id, CallKind::Function, &item["name"], &item["arguments"]),
                "custom_tool_call" => RequestedCall::new(id, CallKind::Custom, &item["name"], &item["input"]),
                _ => None,
            }
        });
        Reply { calls: calls.collect(), messages }
    }

    fn results(&self, results: &[CallResult]) -> Vec<Value> {
        let item = |result: &CallResult| {
            let kind = match result.call.kind {
                CallKind::Function => "function_call_output",
                CallKind::Custom => "custom_tool_call_output",
            };
            json!({"type": kind, "call_id": result.call.id, "output": result.text})
        };
        results.iter().map(item).collect()
    }

    fn definition(&self, tool: &ToolDefinition) -> Value {
        let mut definition = json!({"type": "function", "name": tool.name});
        if let Some(description) = &tool.description {
            definition["description"] = description.as_str().into();
        }
        definition["parameters"] = tool.parameters.clone();
        definition
    }
}

/// The text of the messages of an answer.
#[derive(Default)]
struct Messages {
    texts: Vec<String>,
    refused: bool,
}

impl OpenaiResponses {
    fn output(&self, received: &Messages) -> Value {
        let text = received.texts.join("\n");
        if received.refused {
            return json!({"content_type": "text", "content": text, "refusal": true});
        }
        let format = self.options.request.get("text").and_then(|text| text["format"]["type"].as_str());
        answer::output(&text, OutputFormat::from_type(format))
    }
}

fn add_item(index: usize, item: &Value, received: &mut Messages, builder: &mut Builder<'_>) -> Result<(), Fault> {
    let pointer = format!("/output/{index}");
    let Some(kind) = item["type"].as_str() else {
        return Err(unreadable(&format!("{pointer}/type"), &item["type"], "the type of the item"));
    };
    let called = |arguments| ToolCall {
        pointer: &pointer,
        // An `mcp_call` has an item id only.
        call_id: item["call_id"].as_str().or(item["id"].as_str()),
        tool: &item["name"],
        arguments,
    };
    match kind {
        "message" => {
            let parts = item["content"].as_array().map_or(&[][..], Vec::as_slice);
            received.refused |= parts.iter().any(|part| part["type"] == "refusal");
            let texts = parts.iter().filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()));
            let text: String = texts.collect();
            // Some servers send a message without text before the tool calls.
            received.texts.extend((!text.is_empty()).then_some(text));
            Ok(())
        }
        "function_call" => builder.call(called(&item["arguments"]), ExecutedBy::Caller, Map::new()),
        "custom_tool_call" => builder.call(called(&item["input"]), ExecutedBy::Caller, Map::new()),
        // The server executed the tool and returns the output, but no time and no latency, which `tool_result` requires.
        "mcp_call" => {
            let fields = item.as_object().map(|fields| {
                let kept = [("server_label", "server_label"), ("output", "output"), ("error", "error")];
                answer::copy_fields(fields, &kept)
            });
            builder.call(called(&item["arguments"]), ExecutedBy::Server, fields.unwrap_or_default())
        }
        other => {
            builder.other(&format!("openai.{other}"), item);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use counterproof_artifact::Side;
    use jiff::Timestamp;

    use super::*;

    fn read(response: &Value) -> Result<Value, Fault> {
        let case_id = "c1".parse().unwrap();
        let context =
            AnswerContext { case_id: &case_id, side: Side::New, received: Timestamp::UNIX_EPOCH, content_type: None };
        let responses = OpenaiResponses { options: AgentOptions::default() };
        let case = responses.answer(response.to_string().as_bytes(), context)?;
        Ok(serde_json::to_value(case).unwrap())
    }

    fn response(output: &Value) -> Value {
        json!({
            "id": "resp_1", "object": "response", "created_at": 1_767_600_000.5, "status": "completed", "error": null,
            "incomplete_details": null, "model": "m-1", "output": output, "usage": {"total_tokens": 12}
        })
    }

    #[test]
    fn items_become_events_in_order() {
        let case = read(&response(&json!([
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "id": "msg_0", "role": "assistant", "content": [{"type": "output_text", "text": ""}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "lookup", "arguments": "{\"id\": 7}"},
            {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_b", "name": "shell", "input": "ls"},
            {"type": "mcp_call", "id": "mcp_1", "server_label": "shop", "name": "search", "arguments": "{}", "output": "2 found"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [
                {"type": "output_text", "text": "Your ", "annotations": []},
                {"type": "output_text", "text": "order.", "annotations": []}]},
        ])))
        .unwrap();
        let kinds: Vec<_> = case["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
        assert_eq!(kinds, ["openai.reasoning", "tool_call", "tool_call", "tool_call", "final_output"]);
        let actions: Vec<_> = case["proposed_actions"].as_array().unwrap().iter().map(|a| &a["action_id"]).collect();
        assert_eq!(actions, ["call_a", "call_b"], "calls that the server executed are not proposed");
        assert_eq!(case["events"][2]["args"], json!({"raw_arguments": "ls"}));
        assert_eq!((&case["events"][3]["call_id"], &case["events"][3]["output"]), (&json!("mcp_1"), &json!("2 found")));
        assert_eq!(
            case["events"][0],
            json!({"type": "openai.reasoning", "ts": 1_767_600_000_500_u64, "item": {"type": "reasoning", "summary": []}})
        );
        assert_eq!(case["final_output"], json!({"content_type": "text", "content": "Your order."}));
        assert_eq!((&case["model"], &case["response_status"]), (&json!("m-1"), &json!("completed")));
    }

    #[test]
    fn a_refusal_and_a_truncated_answer_are_marked() {
        let mut cut = response(&json!([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]));
        cut["status"] = json!("incomplete");
        cut["incomplete_details"] = json!({"reason": "max_output_tokens"});
        let case = read(&cut).unwrap();
        assert_eq!(case["final_output"], json!({"content_type": "text", "content": "No.", "refusal": true}));
        assert_eq!(
            (&case["response_status"], &case["finish_reason"]),
            (&json!("incomplete"), &json!("max_output_tokens"))
        );
    }

    #[test]
    fn a_failed_or_unfinished_response_is_rejected() {
        let reason = |response: &Value| read(response).unwrap_err().reason;
        for status in ["failed", "cancelled", "queued", "in_progress"] {
            let mut unfinished = response(&json!([]));
            unfinished["status"] = json!(status);
            assert_eq!(reason(&unfinished), Reason::AgentError, "{status}");
        }
        assert_eq!(reason(&json!({"error": {"code": "server_error"}, "output": []})), Reason::AgentError);
        assert_eq!(reason(&json!({"status": "completed"})), Reason::ProtocolViolated);
        assert_eq!(reason(&response(&json!([{"id": "x"}]))), Reason::ProtocolViolated);
    }
}
